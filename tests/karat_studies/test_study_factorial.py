"""Factorial designs: main effects and the interaction of four cells, against R's table, statsmodels, and laws."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from karat.errors import BadDataset
from karat_studies.kinds.study import copy as copied
from karat_studies.kinds.study.bootstrap import test_rows as rows_of
from karat_studies.kinds.study.format import Groups, Human, Test
from karat_studies.kinds.study.sides import agent_side, human_side
from karat_studies.replication import log_bf10_anova, measure, replicate_test

from .studies import read

# Crampton (1947), J. Nutr. 33:491, as `ToothGrowth` of R: length of teeth by supplement and dose.
TEETH = {
    ("VC", 0.5): [4.2, 11.5, 7.3, 5.8, 6.4, 10, 11.2, 11.2, 5.2, 7],
    ("VC", 1): [16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5],
    ("VC", 2): [23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5],
    ("OJ", 0.5): [15.2, 21.5, 17.6, 9.7, 14.5, 10, 8.2, 9.4, 16.5, 9.7],
    ("OJ", 1): [19.7, 23.3, 23.6, 26.4, 20, 25.2, 25.8, 21.2, 14.5, 27.3],
    ("OJ", 2): [25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23],
}
LOST = {0, 1, 2, 13, 14, 25, 30, 31, 45, 59}  # rows that are left out, so that cells differ in size


def teeth(*, doses: tuple[float, ...] = (0.5, 1, 2), lost: set[int] = frozenset()) -> dict[str, list[Any]]:  # type: ignore[assignment]
    rows = [(supp, dose, length) for (supp, dose), lengths in TEETH.items() for length in lengths]
    kept = [row for at, row in enumerate(rows) if at not in lost and row[1] in doses]
    supp, dose, length = zip(*kept, strict=True)
    return {"supp": list(supp), "dose": list(dose), "len": list(length)}


def a_test(kind: str = "anova", *, column: str = "supp", doses: tuple[float, ...] = (0.5, 1, 2), **more: Any) -> Test:
    levels: dict[str, list[Any]] = {"supp": ["OJ", "VC"], "dose": list(doses)}
    return Test(
        id="T1", kind=kind, measure="len", expect="different", groups=Groups(column=column, levels=levels.pop(column)),
        factors=levels, human=Human(), **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("column", "f", "df1"),
    [("supp", 15.572, 1), ("dose", 92.000, 2)],
    ids=["supp", "dose"],
)
def test_main_effects_are_those_that_r_prints(column: str, f: float, df1: int) -> None:
    """`summary(aov(len ~ supp * factor(dose), ToothGrowth))`: 15.572 and 92.000 on 54 degrees of freedom."""
    side = agent_side(a_test(column=column), teeth())
    assert (round(side.statistic, 3), side.df1, side.df2) == (f, df1, 54)


# statsmodels 0.14, `anova_lm(ols("len ~ C(supp, Sum) * C(dose, Sum)"), typ=3)`
@pytest.mark.parametrize(
    ("kind", "column", "doses", "lost", "f", "df2"),
    [
        ("anova", "supp", (0.5, 1, 2), False, 15.571979452497233, 54),
        ("anova", "dose", (0.5, 1, 2), False, 91.99996489286703, 54),
        ("anova", "supp", (0.5, 1, 2), True, 15.327710379656212, 44),
        ("anova", "dose", (0.5, 1, 2), True, 90.88645996553375, 44),
        ("anova", "supp", (0.5, 2), False, 4.648459435174552, 36),
        ("interaction", "supp", (0.5, 2), False, 4.940630525308923, 36),
        ("anova", "supp", (0.5, 2), True, 3.904693646364435, 29),
        ("anova", "dose", (0.5, 2), True, 170.87642187579846, 29),
        ("interaction", "supp", (0.5, 2), True, 1.3936357008713844, 29),
        ("interaction", "dose", (0.5, 2), True, 1.3936357008713844, 29),
    ],
)
def test_every_effect_is_that_of_statsmodels_type_iii(
    kind: str, column: str, doses: tuple[float, ...], lost: bool, f: float, df2: int
) -> None:
    data = teeth(doses=doses, lost=LOST if lost else set())
    side = agent_side(a_test(kind, column=column, doses=doses), data)
    assert side.statistic == pytest.approx(f, rel=1e-9)
    assert side.df2 == df2


def random_data(rng: np.random.Generator) -> dict[str, list[Any]]:
    cells = list(product(["a", "b"], [False, True]))
    sizes = rng.integers(2, 9, size=len(cells))
    rows = [(*cell, float(value)) for cell, n in zip(cells, sizes, strict=True) for value in rng.normal(size=n)]
    first, second, value = zip(*rows, strict=True)
    return {"x": list(first), "y": list(second), "v": list(value), "participant": [f"p{at}" for at in range(len(rows))]}


def two_by_two(kind: str, *, column: str = "x") -> Test:
    levels: dict[str, list[Any]] = {"x": ["a", "b"], "y": [True, False]}
    groups = Groups(column=column, levels=levels.pop(column))
    return Test(id="T1", kind=kind, measure="v", expect="different", groups=groups, factors=levels, human=Human())


@pytest.mark.parametrize("seed", range(5))
def test_the_effect_is_the_difference_of_unweighted_means_in_pooled_deviations(seed: int) -> None:
    """D from its definition; and t² = F with the error of the contrast."""
    data = random_data(np.random.default_rng(seed))
    cells = {
        (x, y): np.array([v for a, b, v in zip(data["x"], data["y"], data["v"], strict=True) if (a, b) == (x, y)])
        for x, y in product(["a", "b"], [False, True])
    }
    df2 = sum(len(one) for one in cells.values()) - 4
    sd = math.sqrt(sum(((one - one.mean()) ** 2).sum() for one in cells.values()) / df2)
    for kind, signs in (("anova", (1, 1, -1, -1)), ("interaction", (1, -1, -1, 1))):
        order = [cells["a", True], cells["a", False], cells["b", True], cells["b", False]]
        apart = sum(sign * one.mean() for sign, one in zip(signs, order, strict=True)) / 2
        error = sd * math.sqrt(sum(1 / len(one) for one in order)) / 2
        side = agent_side(two_by_two(kind), data)
        assert side.statistic == pytest.approx((apart / error) ** 2, rel=1e-9)
        assert measure("anova", side, method="jzs").d == pytest.approx(apart / sd, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_an_interaction_is_the_same_from_both_sides_and_no_effect_of_one_factor_is_part_of_it(seed: int) -> None:
    data = random_data(np.random.default_rng(seed))
    side = agent_side(two_by_two("interaction"), data)
    other = agent_side(two_by_two("interaction", column="y"), data)
    assert other.statistic == pytest.approx(side.statistic, rel=1e-9)
    assert other.sign == side.sign
    moved = {**data, "v": [v + 5 * (x == "a") - 3 * y for x, y, v in zip(data["x"], data["y"], data["v"], strict=True)]}
    assert agent_side(two_by_two("interaction"), moved).statistic == pytest.approx(side.statistic, rel=1e-6)
    shifted = {**data, "v": [v - 3 * y for y, v in zip(data["y"], data["v"], strict=True)]}
    for test in (two_by_two("anova"), two_by_two("interaction")):
        before, after = agent_side(test, data), agent_side(test, shifted)
        assert after.statistic == pytest.approx(before.statistic, rel=1e-6)
        assert (after.sign, after.df2) == (before.sign, before.df2)


def test_equal_cells_have_an_effect_of_exactly_none() -> None:
    values = [0.1, 0.2, 0.6] * 4
    data = {"x": ["a"] * 6 + ["b"] * 6, "y": ([True] * 3 + [False] * 3) * 2, "v": values}
    for kind in ("anova", "interaction"):
        test = two_by_two(kind)
        side = agent_side(test, data)
        assert (side.statistic, side.sign) == (0.0, None)
        again = replicate_test(rows_of(test, data, np.arange(12)), np.full((1, 12), 3.0), method="jzs")
        assert (again.statistic[0], math.isnan(again.d[0])) == (0.0, True)


def test_an_interaction_that_is_rounding_alone_is_none_when_drawn_again() -> None:
    values = [base + a + b for a in (0.0, 0.3) for b in (0.0, 0.6) for base in (0.1, 0.2, 0.7)]
    data = {"x": ["a"] * 6 + ["b"] * 6, "y": ([True] * 3 + [False] * 3) * 2, "v": values}
    test = two_by_two("interaction")
    found = replicate_test(rows_of(test, data, np.arange(12)), np.ones((1, 12)), method="jzs")
    assert agent_side(test, data).statistic == found.statistic[0] == 0.0
    assert math.isnan(found.d[0])


def test_the_bayes_factor_has_the_degrees_of_freedom_of_the_design() -> None:
    side = agent_side(a_test(), teeth())
    assert measure("anova", side, method="jzs").log_bf == pytest.approx(
        float(log_bf10_anova(side.statistic, 1, 54, n_per_group=[30, 30])), rel=1e-12
    )


@pytest.mark.parametrize("kind", ["anova", "interaction"])
def test_replicates_of_everybody_drawn_once_are_the_test_itself(kind: str) -> None:
    data = random_data(np.random.default_rng(7))
    test = two_by_two(kind)
    side = agent_side(test, data)
    found = replicate_test(rows_of(test, data, np.arange(len(data["v"]))), np.ones((1, len(data["v"]))), method="jzs")
    measured = measure("anova", side, method="jzs")
    assert found.statistic[0] == pytest.approx(side.statistic, rel=1e-9)
    assert (found.d[0], found.log_bf[0]) == pytest.approx((measured.d, measured.log_bf), rel=1e-9)


DESIGN = """\
study: noise
title: Noise and tasks
source: Nobody (2026)
domain: cognition
participants: {per_arm: human}
arms:
  quiet_easy: &asked {prompt: materials/x.md, fields: {score: {type: number, range: [0, 100]}}, n: 19}
  quiet_hard: *asked
  loud_easy: *asked
  loud_hard: *asked
derive: |
  SELECT *, split_part(arm, '_', 1) AS noise, split_part(arm, '_', 2) AS task FROM responses
findings:
  - id: F1
    claim: Noise costs points, and more of them in hard tasks.
    tests:
      - id: T1
        kind: anova
        groups: {column: noise, levels: [quiet, loud]}
        factors: {task: [easy, hard]}
        measure: score
        expect: greater
        human: {quiet: {n: 38}, loud: {n: 38}, F: 6.1, sign: 1, reported: "F(1, 72) = 6.10, p = .016"}
      - id: T2
        kind: interaction
        groups: {column: noise, levels: [quiet, loud]}
        factors: {task: [easy, hard]}
        measure: score
        expect: less
        human: {n: 76, F: 4.2, df1: 1, df2: 72, sign: -1, reported: "F(1, 72) = 4.20, p < .05"}
"""
MATERIALS = {"x": "How many points?"}
F = "factors: {task: [easy, hard]}"


def test_a_main_effect_and_an_interaction_with_the_degrees_of_freedom_of_the_design_pass(tmp_path: Path) -> None:
    study = read(tmp_path, DESIGN, MATERIALS)
    people = copied.human_scores(study)
    statistic, _ = copied.tested_copies(study, people)
    assert (statistic.tests, statistic.apart) == (2, ())
    first, second = people.tests
    assert (first.test.human.df2, first.human.n_eff) == (72, 76)
    assert first.human.d == pytest.approx(math.sqrt(6.1 * (1 / 38 + 1 / 38)))
    assert second.human.d == pytest.approx(-math.sqrt(4.2 * (1 / 38 + 1 / 38)))
    assert first.pas == pytest.approx(first.ceiling, abs=1e-9)


def test_a_copy_has_cells_as_large_as_the_arms_and_an_f_without_a_direction_has_no_d(tmp_path: Path) -> None:
    arm = "prompt: materials/x.md, fields: {score: {type: number, range: [0, 10]}}"
    arms = f"arms:\n  quiet: {{{arm}, n: 50}}\n  loud: {{{arm}, n: 26}}\n"
    text = DESIGN[: DESIGN.index("arms:")] + arms + DESIGN[DESIGN.index("findings:") :]
    text = text.replace("{per_arm: human}", "{per_arm: human, profile: {task: [easy, hard]}}")
    text = text.replace("column: noise", "column: arm").replace(
        "quiet: {n: 38}, loud: {n: 38}, F: 6.1, sign: 1", "F: 6.1"
    )
    study = read(tmp_path, text.replace("expect: greater", "expect: different"), MATERIALS)
    people = copied.human_scores(study)
    assert copied.tested_copies(study, people)[0].apart == ()
    first, second = people.tests
    assert math.isnan(first.human.d)
    assert second.human.d == pytest.approx(-math.sqrt(4.2 * (1 / 50 + 1 / 26)))


@pytest.mark.parametrize("n", [21, 39, 76, 77])
def test_a_copy_of_people_whose_cells_cannot_be_equal_has_their_numbers(tmp_path: Path, n: int) -> None:
    text = DESIGN.replace("n: 76, F: 4.2, df1: 1, df2: 72", f"n: {n}, F: 4.2").replace("F(1, 72) = 4.20", "F = 4.20")
    study = read(
        tmp_path, text.replace("expect: less", "expect: less\n        n_reason: some did not answer"), MATERIALS
    )
    statistic, _ = copied.tested_copies(study, copied.human_scores(study))
    assert statistic.apart == ()
    assert human_side(study.tests[1][1], study.arms).df2 == n - 4


@pytest.mark.parametrize(
    ("before", "after", "place", "message"),
    [
        ("        factors: {task: [easy, hard]}\n", "", "reported", "name them in `factors`"),
        ("F(1, 72) = 6.10", "F(1, 74) = 6.10", "reported", "74 degrees of freedom are printed, but sizes give 72"),
        (F, "factors: {noise: [quiet, loud]}", "factors", "is the column of `groups` already"),
        (F, "factors: {task: [easy, easy]}", "factors", "a level appears twice"),
        (F, "factors: {tusk: [easy, hard]}", "factors.tusk", "derive gives no column 'tusk'"),
        (F, "factors: {task: [easy]}", "factors.task", "at least 2"),
        ("quiet: {n: 38}, loud: {n: 38}", "quiet: {n: 3}, loud: {n: 3}", "human", "each cell of the design"),
        ("kind: anova", "kind: ttest_ind", "factors", "this is a ttest_ind"),
        ("T2\n", "T2\n        use: descriptives\n        reason: x\n", "human", "no F of people"),
        ("kind: anova", "kind: Cochran's Q", "kind", "McNemar's exact test"),
        ("kind: anova", "kind: mood", "kind", "above the median of all"),
        ("kind: anova", "kind: OLS", "kind", "`correlation` (r = t/√(t² + df))"),
        ("kind: anova", "kind: logit", "kind", "the ln odds ratio of a `contingency`"),
        ("kind: anova", "kind: repeated measures", "kind", "`ttest_paired`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_design_is_said(tmp_path: Path, before: str, after: str, place: str, message: str) -> None:
    assert before in DESIGN
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, DESIGN.replace(before, after, 1), MATERIALS)
    assert any(place in fault.place and message in fault.message for fault in caught.value.faults), caught.value


def test_an_interaction_of_more_than_four_cells_is_refused(tmp_path: Path) -> None:
    text = DESIGN.replace("T2\n        kind: interaction", "T2\n        kind: interaction").replace(
        "factors: {task: [easy, hard]}\n        measure: score\n        expect: less",
        "factors: {task: [easy, hard, none]}\n        measure: score\n        expect: less",
    )
    with pytest.raises(BadDataset, match="the contrast of four cells"):
        read(tmp_path, text, MATERIALS)


def test_a_row_outside_of_the_design_is_left_out() -> None:
    data = random_data(np.random.default_rng(3))
    more = {
        name: [*values, None, 9.0] if name == "y" else [*values, values[0], values[0]] for name, values in data.items()
    }
    # As texts: from Python 3.13 on, values with a NaN are not equal to themselves.
    assert repr(agent_side(two_by_two("anova"), more)) == repr(agent_side(two_by_two("anova"), data))
