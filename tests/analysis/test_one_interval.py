"""One mean has one interval, one question has none, and numbers below rounding are 0."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.analysis import journals

from karat.analysis import compare, summarize
from karat.analysis.estimates import estimated
from karat.analysis.leaderboard import leaderboard
from karat.records import Metric
from karat.stats.results import Interval

RIGHT = Metric(name="right", low=0, high=1, kind="share")


def test_the_leaderboard_has_the_intervals_of_the_report(tmp_path: Path) -> None:
    scores = {name: [[bool((row * at) % 3)] for row in range(20)] for at, name in enumerate("abc", start=1)}
    summary = summarize(journals.table(tmp_path / "run", scores, metric=RIGHT))
    for entry in leaderboard([(summary, None)]).entries:
        result = summary.result(entry.condition, "right")
        assert result is not None
        assert entry.mean == result.mean
        assert entry.mean.method == "wilson at effective n"


@pytest.mark.parametrize("metric", [RIGHT, journals.SCALE], ids=lambda metric: metric.name)
@pytest.mark.parametrize("repetitions", [1, 3])
def test_one_question_has_no_interval(tmp_path: Path, metric: Metric, repetitions: int) -> None:
    scores = {name: [[1.0] * repetitions] for name in ("a", "b", "c")}
    run = journals.table(tmp_path / "run", scores, metric=metric)
    summary = summarize(run)
    for result in summary.results:
        assert (result.mean.value, result.mean.low, result.mean.high) == (1.0, None, None)
        assert result.mean.reason is not None
        assert (result.reliability.low, result.reliability.high) == (None, None)
    assert all(pair.estimate.low is None for pair in summary.differences)
    assert all(entry.mean.low is None for entry in leaderboard([(summary, None)]).entries)
    assert compare(run, run, condition_a="a", condition_b="b").pairings[0].difference.estimate.low is None


@pytest.mark.parametrize(
    ("value", "low", "high", "scale"), [(-5.2e-16, -0.3, 0.3, 1.0), (2.1e-17, 2.1e-17, 2.1e-17, 4.0)]
)
def test_numbers_below_rounding_are_zero(value: float, low: float, high: float, scale: float) -> None:
    shown = estimated(Interval(value=value, low=low, high=high, se=0.1, level=0.95, n=9, method="t"), -scale, scale)
    assert shown.value == 0.0
    assert str(shown.value) == "0.0"
    assert (shown.low, shown.high) == ((low, high) if abs(low) > 1e-9 else (0.0, 0.0))


def test_small_numbers_of_a_metric_without_a_range_stay(tmp_path: Path) -> None:
    shown = estimated(Interval(value=3e-15, low=1e-15, high=5e-15, se=1e-15, level=0.95, n=9, method="t"), None, None)
    assert (shown.value, shown.low) == (3e-15, 1e-15)


def test_a_comparison_of_two_imported_files_names_the_files(tmp_path: Path) -> None:
    runs = [
        journals.table(
            tmp_path / name, {"a": [[1.0], [float(value)]] * 4}, run=code, name="task",
            source={"file": f"{name}.eval", "format": "inspect"},
        )
        for name, code, value in (("before", "0000000a", 2), ("after", "0000000b", 3))
    ]  # fmt: skip
    found = compare(*runs)
    assert (found.a.label, found.b.label) == ("before.eval", "after.eval")
    assert "a (after.eval)" in found.headline
    assert msgspec.structs.replace(found).pairings[0].difference.a == "a (before.eval)"
