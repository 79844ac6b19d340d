"""Rows of answers become the agent's side of each kind of test; people's side comes from the file; copies agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import BadDataset, BadOption
from karat_query.sql import Limits, select_each
from karat_studies.kinds.study.copy import answer_copy, statistic_copies, statistic_copy
from karat_studies.kinds.study.experiments import Response, data_of, table_of, tallied, to_study_tests
from karat_studies.kinds.study.format import Arm, Test
from karat_studies.kinds.study.sides import agent_side, human_side
from karat_studies.replication import Side, measure, score_tests

from .studies import STUDY, read, stated

PAIR = {"column": "arm", "levels": ["one", "two"]}
VALUES = st.lists(st.integers(0, 9), min_size=3, max_size=30)


def a_test(kind: str, human: dict[str, Any] | None = None, **more: Any) -> Test:
    said = {"id": "T", "kind": kind, "measure": "x", "expect": "greater", **more}
    if "groups" not in said and kind in {"ttest_ind", "welch", "anova", "mannwhitney", "contingency", "variance_ratio"}:
        said["groups"] = PAIR
    return Test.model_validate({**said, "human": human or {}})


def in_groups(*samples: list[Any]) -> dict[str, list[Any]]:
    names = ["one", "two", "three", "four"]
    return {
        "arm": [name for name, one in zip(names, samples, strict=False) for _ in one],
        "x": [value for one in samples for value in one],
    }


def spread(*samples: list[int]) -> bool:
    return all(len(set(one)) > 1 for one in samples)  # SciPy warns of groups that are all alike


@given(VALUES, VALUES)
def test_two_groups_agree_with_scipy(one: list[int], two: list[int]) -> None:
    data = in_groups(one, two)
    if spread(one, two):
        assert agent_side(a_test("ttest_ind"), data).statistic == pytest.approx(stats.ttest_ind(one, two).statistic)
        welch = stats.ttest_ind(one, two, equal_var=False).statistic
        assert agent_side(a_test("welch"), data).statistic == pytest.approx(welch)
        side = agent_side(a_test("anova"), data)
        assert side.statistic == pytest.approx(stats.f_oneway(one, two).statistic)
        assert (side.df1, side.df2, side.sizes) == (1, len(one) + len(two) - 2, (len(one), len(two)))
        assert side.sign in {None, int(np.sign(np.mean(one) - np.mean(two)))}
    if len({*one, *two}) == 1:
        return
    ranked = agent_side(a_test("mannwhitney"), data)
    assert ranked.statistic == stats.mannwhitneyu(one, two).statistic
    _, counts = np.unique([*one, *two], return_counts=True)
    assert ranked.tie_term == (counts**3 - counts).sum()


@given(VALUES, VALUES, VALUES)
def test_several_groups_agree_with_scipy(one: list[int], two: list[int], three: list[int]) -> None:
    if not spread(one, two, three):
        return
    test = a_test("anova", groups={"column": "arm", "levels": ["one", "two", "three"]}, expect="different")
    side = agent_side(test, in_groups(one, two, three))
    assert side.statistic == pytest.approx(stats.f_oneway(one, two, three).statistic)
    assert (side.df1, side.df2, side.sign) == (2, len(one) + len(two) + len(three) - 3, None)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=30))
def test_one_group_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = ([pair[at] for pair in pairs] for at in (0, 1))
    data = {"x": first, "y": second}
    apart = [a - b for a, b in pairs]
    if spread(apart):
        paired = agent_side(a_test("ttest_paired", against="y"), data)
        assert paired.statistic == pytest.approx(stats.ttest_rel(first, second).statistic)
        assert (paired.n1, paired.df1) == (len(pairs), len(pairs) - 1)
    if spread(first):
        against = agent_side(a_test("ttest_one", against=4.5), data).statistic
        assert against == pytest.approx(stats.ttest_1samp(first, 4.5).statistic)
    if spread(first) and spread(second):
        pearson = agent_side(a_test("correlation", against="y"), data).statistic
        assert pearson == pytest.approx(stats.pearsonr(first, second).statistic)
        ranks = agent_side(a_test("spearman", against="y"), data).statistic
        assert ranks == pytest.approx(stats.spearmanr(first, second).statistic)
    if any(apart):
        signed = agent_side(a_test("wilcoxon", against="y"), data)
        theirs: Any = stats.wilcoxon(
            apart, zero_method="wilcox", correction=False, method="approx", alternative="greater"
        )
        assert signed.statistic == pytest.approx(theirs.zstatistic)
        assert signed.n1 == sum(one != 0 for one in apart)


def test_counts_take_what_is_true_and_what_is_false():
    data = in_groups([True, True, False, None], [False, 1, 0.0, "true"])
    assert stated(agent_side(a_test("contingency"), data)) == stated(Side(table=((2, 1), (1, 2))))
    assert stated(agent_side(a_test("binomial", p0=0.3), data)) == stated(Side(statistic=3, n1=6, p0=0.3))
    only = agent_side(a_test("proportion", groups={"column": "arm", "levels": ["two"]}), data)
    assert stated(only) == stated(Side(statistic=1, n1=3))


def test_tables_of_several_outcomes():
    test = a_test("contingency", outcomes=["A", "B", "C"], expect="different")
    assert agent_side(test, in_groups(["A", "B", "B", None], ["C", "D", "A"])).table == ((1, 2, 0), (1, 0, 1))


def test_groups_may_be_truths_and_numbers():
    data = {"own": [True, True, False, False, None], "x": [1, 2, 5, 6, 9]}
    test = a_test("ttest_ind", groups={"column": "own", "levels": [True, False]})
    assert agent_side(test, data).statistic == pytest.approx(stats.ttest_ind([1, 2], [5, 6]).statistic)
    numbered = {"own": [1.0, 1.0, 2.0, 2.0, 3.0], "x": [1, 2, 5, 6, 9]}
    test = a_test("ttest_ind", groups={"column": "own", "levels": [1, 2]})
    assert agent_side(test, numbered).statistic == pytest.approx(stats.ttest_ind([1, 2], [5, 6]).statistic)


@pytest.mark.parametrize(
    ("test", "data", "why"),
    [
        (a_test("ttest_ind"), in_groups([], []), "too few answers in 'one', 'two'"),
        (a_test("ttest_ind"), in_groups([1, 2], [None, "x"]), "too few answers in 'two'"),
        (a_test("welch"), in_groups([1, 1], [1, 1]), "all answers within each group are the same: there is no spread"),
        (a_test("contingency"), in_groups([True], [None]), "no answer in 'two' could be used"),
        (a_test("binomial"), {"x": [None, None]}, "no answer could be used"),
        (a_test("spearman", against="y"), {"x": [1, 2, 3], "y": [1] * 3},
         "all answers are the same: there is no spread"),
        (a_test("wilcoxon", against="y"), {"x": [1, 2], "y": [1, 2]}, "no two answers differ"),
        (a_test("ttest_one"), {"x": [3]}, "too few answers could be used"),
        (a_test("ttest_one"), {"z": [3]}, "derive gives no column 'x'"),
        (a_test("variance_ratio"), in_groups([1, 1], [1, 2]), "no spread in a group"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_says_why(test: Test, data: dict[str, list[Any]], why: str) -> None:
    assert stated(agent_side(test, data)) == stated(Side(missing=why))


ARMS = {"one": Arm(prompt="p", fields={}, n=30), "two": Arm(prompt="p", fields={}, n=28)}
ONE, TWO = {"n": 30, "mean": 3.1, "sd": 1.2}, {"n": 28, "mean": 2.2, "sd": 1.1}


def people(kind: str, levels: dict[str, Any], **more: Any) -> Side:
    given = {key: more.pop(key) for key in ("use", "against", "reason") if key in more}
    return human_side(a_test(kind, {**levels, **more}, **given), ARMS)


@pytest.mark.parametrize(
    ("side", "wanted"),
    [
        (people("ttest_ind", {"one": ONE, "two": TWO}),
         {"statistic": stats.ttest_ind_from_stats(3.1, 1.2, 30, 2.2, 1.1, 28).statistic, "n1": 30, "n2": 28}),
        (people("welch", {"one": ONE, "two": TWO}),
         {"statistic": stats.ttest_ind_from_stats(3.1, 1.2, 30, 2.2, 1.1, 28, equal_var=False).statistic}),
        (people("ttest_ind", {}, t=2.5), {"statistic": 2.5, "n1": 30, "n2": 28}),  # n of the arms
        (people("ttest_ind", {"one": ONE, "two": TWO}, t=2.5), {"statistic": 2.5}),
        (people("ttest_ind", {"one": ONE, "two": TWO}, t=2.5, use="descriptives", reason="r"),
         {"statistic": stats.ttest_ind_from_stats(3.1, 1.2, 30, 2.2, 1.1, 28).statistic}),
        (people("anova", {"one": ONE, "two": TWO}),
         {"statistic": stats.ttest_ind_from_stats(3.1, 1.2, 30, 2.2, 1.1, 28).statistic ** 2, "sign": 1, "df2": 56,
          "sizes": (30, 28)}),
        (people("anova", {}, F=4.0, df1=1, df2=50, sign=-1), {"statistic": 4.0, "sign": -1, "df2": 50}),
        (people("mannwhitney", {}, U=500), {"statistic": 500, "n1": 30, "n2": 28}),
        (people("mannwhitney", {}, z=0), {"statistic": 420}),
        (people("variance_ratio", {"one": ONE, "two": TWO}), {"statistic": (1.2 / 1.1) ** 2}),
        (people("contingency", {"one": {"k": 3}, "two": {"k": 4, "n": 28}}), {"table": ((3, 27), (4, 24))}),
        (people("ttest_paired", {}, mean=0.5, sd=2.0, n=16), {"statistic": 1.0, "n1": 16}),
        (people("ttest_one", {}, mean=5.5, sd=2.0, n=16, against=5.0), {"statistic": 1.0}),
        (people("ttest_paired", {}, t=3.0, df1=19), {"statistic": 3.0, "n1": 20, "df1": 19}),
        (people("wilcoxon", {}, z=2.0, n=19), {"statistic": 2.0, "n1": 19}),
        (people("spearman", {}, r=0.3, n=19), {"statistic": 0.3, "n1": 19}),
        (people("binomial", {}, k=3, n=19), {"statistic": 3, "n1": 19}),
        (people("ttest_ind", {"one": {"n": 30, "mean": 1.0}}),
         {"missing": "no t of people was published, nor anything to compute it from"}),
        (people("contingency", {"one": {"n": 30}}, chi2=3.0), {"missing": "no counts of people were published"}),
    ],
)  # fmt: skip
def test_people_are_taken_as_they_were_published(side: Side, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        assert getattr(side, name) == (pytest.approx(value) if isinstance(value, float) else value), name


def test_where_only_degrees_of_freedom_are_known_there_is_an_effect_and_no_evidence():
    side = human_side(a_test("ttest_ind", {"t": 2.0, "df1": 64}), {})
    assert (side.statistic, side.d) == (2.0, 0.5)
    assert math.isnan(side.n1)


COPIED = [
    (people("ttest_ind", {}, t=2.66), a_test("ttest_ind")),
    (people("welch", {"one": ONE, "two": TWO}), a_test("welch")),
    (people("anova", {"one": ONE, "two": TWO}), a_test("anova")),
    (people("variance_ratio", {}, ratio=2.5), a_test("variance_ratio")),
    (people("contingency", {"one": {"k": 30}, "two": {"k": 0}}), a_test("contingency")),
    (Side(statistic=-3.1, n1=17), a_test("ttest_paired", against="y")),
    (Side(statistic=1.3, n1=2), a_test("ttest_one", against=4.5)),
    (Side(statistic=0.31, n1=33), a_test("correlation", against="y")),
    (Side(statistic=-1.0, n1=8), a_test("correlation", against="y")),
    (Side(statistic=7, n1=9, p0=0.5), a_test("binomial")),
    (Side(statistic=4.2, df1=2, df2=47, sizes=(20, 20, 10)),
     a_test("anova", groups={"column": "arm", "levels": ["one", "two", "three"]}, expect="different")),
]  # fmt: skip


@pytest.mark.parametrize(("human", "test"), COPIED, ids=lambda one: getattr(one, "kind", ""))
def test_a_copy_has_the_statistic_exactly(human: Side, test: Test) -> None:
    agent = agent_side(test, statistic_copy(test, human))
    assert agent.statistic == pytest.approx(human.statistic, rel=1e-9, nan_ok=True)
    assert (agent.table, agent.sign) == (human.table, human.sign)
    assert (agent.n1, agent.n2) == pytest.approx((human.n1, human.n2), nan_ok=True)


@pytest.mark.parametrize("n", [8, 28, 32, 101])
@pytest.mark.parametrize("r", [-0.93, -0.2, 0.01, 0.34, 0.6, 1.0])
def test_a_copy_of_ranks_is_as_near_as_ranks_can_be(n: int, r: float) -> None:
    test = a_test("spearman", against="y")
    agent = agent_side(test, statistic_copy(test, Side(statistic=r, n1=n)))
    assert abs(agent.statistic - r) <= 6 / (n**3 - n) + 1e-12  # sums of squared distances are even
    assert agent.n1 == n


@given(st.integers(2, 40), st.integers(2, 40), st.data())
def test_a_copy_of_u_has_no_ties(n1: int, n2: int, data: st.DataObject) -> None:
    u = data.draw(st.integers(0, n1 * n2))
    test = a_test("mannwhitney")
    side = Side(statistic=u, n1=n1, n2=n2)
    assert stated(agent_side(test, statistic_copy(test, side))) == stated(side)


def test_ranks_of_answers_that_are_all_alike_say_so() -> None:
    side = agent_side(a_test("mannwhitney"), in_groups([10, 10], [10, 10]))
    alike = measure("mannwhitney", side, method="asymptotic")
    assert (alike.effect, alike.reasons) == (0, ("all answers are the same: there is no spread",))
    assert math.isnan(alike.log_bf)


def test_a_copy_of_signed_ranks_is_as_near_as_ranks_can_be():
    test = a_test("wilcoxon", against="y")
    agent = agent_side(test, statistic_copy(test, Side(statistic=1.37, n1=24)))
    assert agent.statistic == pytest.approx(1.37, abs=0.5 / math.sqrt(24 * 25 * 49 / 24))


def test_the_statistic_copy_of_a_study_reaches_its_ceiling(tmp_path: Path) -> None:
    scores = score_tests(statistic_copies(read(tmp_path)))
    for score in scores.tests:
        assert score.agent.d == pytest.approx(score.human.d, abs=1e-6)
        assert score.pas == pytest.approx(score.ceiling, abs=1e-6)
    assert scores.studies[0].ecs.value == pytest.approx(1, abs=1e-6)


def answers(folder: Path, *rows: str) -> Path:
    path = folder / "copy.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_an_answer_copy_goes_through_the_parser(tmp_path: Path) -> None:
    study = read(tmp_path)
    answers(
        tmp_path,
        '{"participant": "p1", "arm": "gain", "answers": {"choice": "A"}, "age": 20}',
        '{"participant": "p2", "arm": "loss", "text": "I like the gamble.\\nchoice: D"}',
    )
    unknown = {"age": None, "gender": None, "occupation": None}
    assert answer_copy(study) == [
        Response(participant="p1", arm="gain", values={"choice": "A"}, profile=unknown | {"age": 20}),
        Response(participant="p2", arm="loss", values={"choice": "D"}, profile=unknown),
    ]


def test_an_answer_copy_that_cannot_be_read_is_told_whole(tmp_path: Path) -> None:
    study = read(tmp_path)
    answers(
        tmp_path,
        '{"participant": "p1", "arm": "gian", "answers": {"choice": "A"}}',
        '{"participant": "p2", "arm": "loss", "answers": {"choise": "D"}}',
        '{"participant": "p3", "arm": "rating", "answers": {"first": 9, "second": 2}}',
    )
    with pytest.raises(BadDataset) as caught:
        answer_copy(study)
    assert [str(fault) for fault in caught.value.faults] == [
        "line 1: the study has no arm 'gian' (did you mean 'gain'?)",
        "line 2: arm 'loss' has no field 'choise' (did you mean 'choice'?)",
        "line 2: 'choice' is missing",
        "line 3: 'first' is out_of_range",
    ]


def some(arm: str, count: int, **values: Any) -> list[Response]:
    profile = {"age": 20, "gender": "female", "occupation": "student"}
    return [Response(participant=f"{arm}{at}", arm=arm, profile=profile, values=values) for at in range(count)]


def test_tests_take_their_rows_from_derive(tmp_path: Path) -> None:
    study = read(tmp_path)
    responses = [
        *some("gain", 6, choice="A"), *some("gain", 2, choice="B"),
        *some("loss", 1, choice="C"), *some("loss", 7, choice="D"),
    ]  # fmt: skip
    first, second, third = to_study_tests(study, responses)
    assert stated(first.agent) == stated(Side(table=((7, 1), (2, 6))))
    assert stated(first.human) == stated(Side(table=((121, 34), (43, 109))))
    assert (first.study, first.finding, first.test, first.domain, first.coverage) == (
        "small",
        "F1",
        "T1",
        "cognition",
        1,
    )
    assert second.agent.missing == "too few answers could be used"
    assert (second.coverage, third.coverage) == (0, 0)


def test_coverage_is_the_lowest_share_of_those_who_were_asked(tmp_path: Path) -> None:
    study = read(tmp_path)
    gone = [Response(participant="x", arm="gain", answered=False)] * 2
    responses = [
        *some("gain", 3, choice="A"),
        *gone,
        *some("loss", 3, choice="D"),
        *some("loss", 7),
        *some("rating", 2, first=3),
    ]
    risky, apart, _ = to_study_tests(study, responses)
    assert (risky.coverage, apart.coverage) == (0.3, 0)
    counts = tallied(study, responses, study.tests[0][1])
    assert {name: (one.asked, one.answered, one.parsed) for name, one in counts.items()} == {
        "loss": (10, 10, 3), "gain": (5, 3, 3)
    }  # fmt: skip


def test_a_text_that_may_be_left_out_takes_nothing_from_coverage(tmp_path: Path) -> None:
    plain = "against: second\n        expect: positive"
    text = STUDY.replace(plain, f"needs: [first, second, why]\n        {plain}")
    study = read(tmp_path, text)
    assert to_study_tests(study, some("rating", 5, first=3, second=4))[2].coverage == 1


def test_all_empty_answers_have_no_score(tmp_path: Path) -> None:
    study = read(tmp_path)
    scores = score_tests(to_study_tests(study, [*some("gain", 9), *some("loss", 9), *some("rating", 9)]))
    assert math.isnan(scores.benchmark.pas)
    assert all(math.isnan(score.pas) for score in scores.tests)
    assert math.isnan(score_tests(to_study_tests(study, [])).benchmark.pas)


def test_half_of_the_answers_is_a_flagged_finding(tmp_path: Path) -> None:
    study = read(tmp_path)
    responses = [*some("gain", 6, choice="A"), *some("gain", 6), *some("loss", 6, choice="D"), *some("loss", 3)]
    finding = score_tests(to_study_tests(study, responses)).findings[0]
    assert finding.coverage == 0.5
    assert finding.flagged and not math.isnan(finding.pas)


@pytest.mark.slow
def test_derive_may_not_reach_out_nor_go_on_forever(tmp_path: Path) -> None:
    endless = "FROM responses, range(100000000000) AS many WHERE many.range % 7 > 8"
    study = read(tmp_path, STUDY.replace("FROM responses", endless), sql=False)
    with pytest.raises(BadOption, match=r"derive: took longer than 0\.5 seconds"):
        select_each(
            study.derive,
            "responses",
            [table_of(study, some("gain", 3, choice="A"))],
            limits=Limits(seconds=0.5),
            place="derive",
        )


def test_columns_of_games_are_there(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY.replace("SELECT *,", "SELECT *, group_id || round AS both,"))
    row = Response(participant="p", arm="gain", values={"choice": "A"}, group="g1", round=2)
    assert data_of(study, [row]).columns["both"] == ["g12"]


def test_a_reducer_runs_only_where_it_is_handed_in(tmp_path: Path) -> None:
    text = STUDY.replace("findings:\n", "reducer: mine:doubled\nfindings:\n", 1)
    for kept in ("measure: risky", "measure: first"):
        needs = "[choice]" if "risky" in kept else "[first, second]"
        text = text.replace(kept, f"{kept}\n        needs: {needs}")
    study = read(tmp_path, text)
    responses = [*some("gain", 4, choice="A"), *some("loss", 4, choice="D")]
    with pytest.raises(BadOption, match="--allow-code: the study 'small' runs its own code, mine:doubled"):
        to_study_tests(study, responses)
    first = to_study_tests(study, responses, reducer=lambda data: {**data, "risky": [False] * 8})[0]
    assert stated(first.agent) == stated(Side(table=((0, 4), (0, 4))))
    with pytest.raises(BadDataset, match="needs is missing: karat cannot see which fields the reducer uses"):
        read(tmp_path, STUDY.replace("findings:\n", "reducer: mine:doubled\nfindings:\n", 1))


def test_a_column_made_of_nothing_needs_every_field(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY.replace("AS risky", "AS daring, pi() > 0.5 AS risky"))
    assert to_study_tests(study, [*some("gain", 4, choice="A"), *some("loss", 4)])[0].coverage == 0


@pytest.mark.parametrize("kind", ["ttest_ind", "welch", "anova", "variance_ratio"])
def test_answers_that_differ_by_rounding_alone_have_no_spread(kind: str) -> None:
    """The mean of three times 0.1 is not 0.1: the t of two such groups would be 10¹⁶."""
    side = agent_side(a_test(kind), in_groups([0.1] * 3, [0.3, 0.1 + 0.2, 0.3]))
    assert side.missing is not None
    assert "spread" in side.missing


TENTHS = st.lists(st.integers(-50, 50).map(lambda x: x / 10), min_size=3, max_size=12)


@given(TENTHS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_groups_with_the_same_answers_have_no_effect_and_no_direction(answers: list[float], dice: Any, times: int):
    """In another order, and several times over: the means are equal, whatever the sums of floats say."""
    if len(set(answers)) < 2:
        return
    other = answers * times
    dice.shuffle(other)
    for first, second in ((answers, other), (other, answers)):
        data = in_groups(first, second)
        for kind in ("ttest_ind", "welch"):
            assert agent_side(a_test(kind), data).statistic == 0
        assert agent_side(a_test("anova"), data).sign is None
        assert agent_side(a_test("anova"), data).statistic == 0
        ranks = agent_side(a_test("mannwhitney"), data)
        assert measure("mannwhitney", ranks, method="asymptotic").sign == 0
    pairs = {"x": answers + other[: len(answers)], "y": other[: len(answers)] + answers}
    if pairs["x"] != pairs["y"]:
        assert agent_side(a_test("ttest_paired", against="y"), pairs).statistic == 0
        assert agent_side(a_test("wilcoxon", against="y"), pairs).statistic == 0


def test_what_rounding_leaves_of_nothing_has_no_direction() -> None:
    """0.1 + 0.2 is above 0.3, and 0.3 − 0.2 below 0.1: no answer says so."""
    sums = in_groups([0.1 + 0.2, 0.3, 0.5], [0.3, 0.3, 0.5])
    assert agent_side(a_test("ttest_ind"), sums).statistic == 0
    assert agent_side(a_test("mannwhitney"), sums).statistic == 4.5
    cross = {"x": [0.1, 0.1, 0.7, 0.7] * 5, "y": [0.1, 0.3, 0.1, 0.3] * 5}
    for kind in ("correlation", "spearman"):
        assert agent_side(a_test(kind, against="y"), cross).statistic == 0
    mirrored = {"x": [0.3, 0.1, 0.7], "y": [0.2, 0.2, 0.7]}
    assert agent_side(a_test("wilcoxon", against="y"), mirrored).statistic == 0


def test_a_difference_that_is_always_the_same_has_no_spread() -> None:
    data = {"x": [0.3, 0.8, 1.5], "y": [0.2, 0.7, 1.4]}  # 0.1 each time, but for rounding
    assert (
        agent_side(a_test("ttest_paired", against="y"), data).missing == "all answers are the same: there is no spread"
    )
    assert agent_side(a_test("correlation", against="y"), {"x": [0.1] * 4, "y": [1, 2, 3, 4]}).missing is not None


@pytest.mark.parametrize(("apart", "r"), [([1, 1, 1, 1, 1], 1), ([-2, -2, -2, -1], -1), ([1, 1, -1, 1], 0.5)])
def test_the_rank_biserial_of_tied_differences_stays_within_one(apart: list[int], r: float) -> None:
    """(W+ − W−) over all ranks, whatever ties do to the spread of z; at 1 it has no d."""
    side = agent_side(a_test("wilcoxon", against="y"), {"x": apart, "y": [0] * len(apart)})
    found = measure("wilcoxon", side, method="z")
    assert found.effect == pytest.approx(r, abs=1e-12)
    assert np.isnan(found.d) == (abs(r) == 1)
