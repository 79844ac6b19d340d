"""What is said of p-values: adjusted only where they are, and what so few questions cannot show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.analysis import journals

from karat.analysis import compare, estimates, summarize
from karat.analysis.grids import Grid
from karat.analysis.model import MetricInfo
from karat.analysis.units import Units
from karat.analysis.verdicts import least_p
from karat.document.scores import differences
from karat.journal import RunFolder


def run_of(folder: Path, conditions: int, questions: int, *, gain: float = 4.0) -> RunFolder:
    """The second half of the conditions gain the same on every question."""
    scores = {f"c{at}": [[1.0 + (gain if at >= conditions / 2 else 0.0)]] * questions for at in range(conditions)}
    return journals.table(folder, scores)


def noisy(folder: Path, conditions: int) -> RunFolder:
    rng = np.random.default_rng(0)
    base = rng.integers(1, 5, 20)
    return journals.table(
        folder,
        {f"c{at}": [[float(x)] for x in np.clip(base + rng.integers(-1, 2, 20), 1, 5)] for at in range(conditions)},
    )


@pytest.mark.parametrize(("conditions", "pairs"), [(2, 1), (3, 3), (7, 21)])
def test_one_test_of_a_run_is_not_called_adjusted(tmp_path: Path, conditions: int, pairs: int) -> None:
    run = noisy(tmp_path / "run", conditions)
    found = compare(run, run, condition_a="c0", condition_b="c1")
    [pairing] = found.pairings
    assert pairing.difference.p_adjusted == pairing.difference.p
    assert found.p_label == "p"
    assert "Holm" not in str(found)
    assert found.pairs == pairs
    assert (f"the run has {pairs} pairs of conditions, and this is one" in str(found)) is (pairs > 1)


def test_several_tests_are_called_adjusted(tmp_path: Path) -> None:
    summary = summarize(noisy(tmp_path / "run", 3))
    [table] = [block for block in differences(summary) if hasattr(block, "columns")]
    assert [str(getattr(column, "head", column)) for column in table.columns][2] == "p (Holm)"
    summary = summarize(noisy(tmp_path / "two", 2))
    [table] = [block for block in differences(summary) if hasattr(block, "columns")]
    assert [str(getattr(column, "head", column)) for column in table.columns][2] == "p"


@pytest.mark.parametrize(("conditions", "said"), [(3, False), (6, True)])
def test_the_table_says_what_the_choice_of_the_best_costs(tmp_path: Path, conditions: int, said: bool) -> None:
    summary = summarize(noisy(tmp_path / "run", conditions))
    [table] = [block for block in differences(summary) if hasattr(block, "columns")]
    assert (table.columns[2].legend.count("were first multiplied by 2.5,") == 1) is said


def test_what_so_few_questions_cannot_show_is_said_before_it_is_denied(tmp_path: Path) -> None:
    few = summarize(run_of(tmp_path / "few", 8, 5))
    assert few.headline.startswith(
        "5 questions cannot show a difference among 13 comparisons (by sign flips at best p = 0.812); the largest: "
    )
    assert "+4.00" in few.headline
    assert "No difference shown" not in few.headline
    enough = summarize(run_of(tmp_path / "enough", 8, 11))
    assert "beats" in enough.headline


@pytest.mark.parametrize(
    ("tests", "questions", "reaches"), [(39, 10, False), (39, 11, True), (1, 5, False), (1, 6, True)]
)
def test_the_least_p_value_is_that_of_sign_flips_times_the_comparisons(
    tests: int, questions: int, reaches: bool
) -> None:
    assert (least_p(tests, questions) < 0.05) is reaches


@pytest.mark.slow
def test_the_best_of_twenty_equal_conditions_seldom_wins() -> None:
    """The best is chosen by the same answers: with Holm's adjustment alone it wins in 15 % of runs."""
    draw, wins = np.random.default_rng(77), 0
    info = MetricInfo(
        key="m", name="m", scorer="s", scoring="x", low=1.0, high=5.0, direction="higher", kind="number", offline=True
    )
    names = [f"c{at}" for at in range(20)]
    nothing = Grid(info, np.zeros((1, 1, 1)), (np.empty(0), np.empty(0, dtype=np.int64)), {})
    for _ in range(200):
        scores = 3 + draw.normal(0, 0.8, (30, 1)) + draw.normal(0, 0.9, (30, 20))
        sides = {
            name: Units(
                metric=info,
                keys=(),
                means=np.clip(np.rint(scores[:, at]), 1, 5),
                answers=np.ones(30, dtype=np.int64),
                sds=np.full(30, np.nan),
                planned=np.ones(30, dtype=np.int64),
                lost={},
            )
            for at, name in enumerate(names)
        }
        wins += any(pair.winner for pair in estimates.differences([nothing], names, [sides], level=0.95))
    assert wins <= 0.081 * 200  # 5 % and two standard errors
