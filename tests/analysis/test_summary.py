"""A summary as a value: what may be asked of it, and what it says without scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.analysis.journals import JUDGE, Script, table
from tests.analysis.test_verdicts import info

from karat.analysis import leaderboard, summarize
from karat.analysis.history import history
from karat.analysis.ledger import ordered
from karat.analysis.model import Summary
from karat.analysis.numbers import quantile
from karat.analysis.verdicts import family_words
from karat.errors import BadOption
from karat.records import Metric


def unscored(folder: Path) -> Summary:
    script = Script(folder, samples=2, conditions=("p", "q"), scorers=())
    script.answer(0, "p", seconds=3.0)
    script.answer(1, "q", seconds=5.0)
    return summarize(script.stop())


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0])
def test_a_level_lies_between_0_and_1(tmp_path: Path, level: float) -> None:
    with pytest.raises(BadOption) as refused:
        summarize(table(tmp_path / "run", {"p": [[1]]}), level=level)
    assert str(refused.value) == f"level: must lie between 0 and 1, got {level}"


def test_a_result_is_asked_by_condition_and_metric(tmp_path: Path) -> None:
    summary = summarize(table(tmp_path / "run", {"p": [[1], [2]], "q": [[3], [4]]}))
    result = summary.result("q", "completeness")
    assert result is not None
    assert (result.condition, result.mean.value) == ("q", 3.5)
    with pytest.raises(BadOption, match="the condition comes first, then the metric"):
        summary.result("completeness", "q")
    with pytest.raises(BadOption) as refused:
        summary.result("r", "completeness")
    assert "comes first" not in str(refused.value)
    with pytest.raises(BadOption, match=r"^metric: "):
        summary.result("p", "other")


def test_a_run_without_scores_has_a_row_for_each_condition(tmp_path: Path) -> None:
    summary = unscored(tmp_path / "run")
    assert [(row["condition"], row["metric"], row["median_seconds"]) for row in summary.table()] == [
        ("p", None, 3.0),
        ("q", None, 5.0),
    ]
    assert not summary.offline
    assert summary.headline.endswith("2 of 4 trials answered, none scored: the experiment names no scorer")
    assert (summary.results, summary.differences) == ((), ())
    with pytest.raises(BadOption, match=f"^compare --history: run {summary.run} has no scores$"):
        history([summary, summary], metric=None, condition=None)


@pytest.mark.parametrize("offline", [True, False])
def test_the_headline_of_one_condition_says_whether_a_rule_scored_it(tmp_path: Path, offline: bool) -> None:
    scorer = msgspec.structs.replace(JUDGE, offline=offline)
    script = Script(tmp_path / "run", samples=2, conditions=("p",), repetitions=2, scorers=(scorer,))
    for row, repetition, value in ((0, 0, 1), (0, 1, 3), (1, 0, 4), (1, 1, 4)):
        script.answer(row, "p", repetition)
        script.score(row, "p", repetition, value=value, scorer=scorer)
    summary = summarize(script.end())
    assert summary.headline.startswith("p: completeness 3.00 ")
    assert summary.headline.endswith(" over 2 questions, 4 answers" + (", offline scores" if offline else ""))
    assert summary.offline is offline
    assert ("completeness (offline)" in str(summary)) is offline


def test_a_summary_is_printed_with_what_is_missing(tmp_path: Path) -> None:
    lines = str(summarize(table(tmp_path / "run", {"p": [[1], [None]], "long": [[3], [4]]}))).splitlines()
    assert lines[1] == "support-kb 1234abcd (done), 4 trials: 3 scored, 1 failed, 0 not run"
    assert lines[2] == "completeness (offline)"
    assert lines[3].startswith("  p     1.00")
    assert lines[3].endswith("  1 answer, 1 missing")
    assert lines[4].startswith("  long  3.50")
    assert lines[4].endswith("  2 answers")


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({"kind": "share", "low": 0, "high": 1}, [0.0, 1.0]),
        ({"kind": "share", "low": 0, "high": 2}, []),
        ({"kind": "share", "low": -1, "high": 1}, []),
        ({"kind": "ordinal", "low": 1, "high": 3}, [1.0, 2.0, 3.0]),
        ({"kind": "ordinal", "low": 0.5, "high": 3}, []),
        ({"kind": "ordinal", "low": None, "high": 3}, []),
        ({"kind": "ordinal", "low": 1, "high": None}, []),
        ({"kind": "number", "low": 1, "high": 3}, []),
        ({"kind": "ordinal", "low": 0, "high": 10_000}, []),
    ],
)
def test_a_scale_with_few_whole_steps_lists_them(fields: dict[str, Any], steps: list[float]) -> None:
    assert msgspec.structs.replace(info(), **fields).steps == steps


def test_runs_that_share_no_metric_have_no_leaderboard(tmp_path: Path) -> None:
    one = table(tmp_path / "a", {"p": [[1], [2]], "q": [[3], [4]]})
    other = table(tmp_path / "b", {"p": [[1], [2]]}, metric=Metric(name="length"), run="5678abcd")
    with pytest.raises(BadOption) as refused:
        leaderboard.leaderboard([(summarize(one), None), (summarize(other), None)])
    assert str(refused.value) == "compare: the runs share no metric; score them alike with `karat score`"


@pytest.mark.parametrize("count", [0, 1, 7, 60_000])
def test_all_values_are_put_in_order(count: int) -> None:
    from array import array

    values = np.random.default_rng(0).normal(size=count)
    found = ordered([array("d", values[: count // 2]), array("d", values[count // 2 :])])
    assert [*found] == sorted(values.tolist())


@pytest.mark.parametrize(
    ("values", "q", "found"),
    [([], 0.5, None), ([3], 0.5, 3), ([1, 2], 0.5, 1.5), ([1, 2, 9], 0.5, 2), ([1, 2, 3, 4], 0.95, 4),
     ([1, 2, 3, 4], 0.75, 3), ([1, 2, 3, 4], 0.76, 4), ([1, 2, 3, 4], 1.0, 4)],
)  # fmt: skip
def test_a_quantile_is_a_value_that_the_share_does_not_exceed(values: list[float], q: float, found: float) -> None:
    assert quantile(values, q) == found


def test_the_spread_of_a_judge_is_that_of_each_condition(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=2, conditions=("p", "q"))
    for row in (0, 1):
        for condition, values in (("p", (2, 4)), ("q", (3, 3))):
            script.answer(row, condition)
            for repeat, value in enumerate(values):
                script.score(row, condition, value=value, repeat=repeat, rows=2)
    found = {result.condition: result.judge_sd.value for result in summarize(script.end()).results}
    assert found == {"p": pytest.approx(math.sqrt(2)), "q": 0.0}


def test_of_no_family_of_comparisons_nothing_is_said() -> None:
    assert family_words(None) == ""
