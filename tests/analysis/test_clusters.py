"""Questions of one document are not independent: everything that compares counts documents."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats
from tests.analysis import journals

from karat.analysis import compare, summarize
from karat.analysis.gate import gate
from karat.analysis.leaderboard import leaderboard
from karat.analysis.model import Summary
from karat.analysis.planning import Pilot, pilot_of, plan
from karat.analysis.thresholds import Threshold
from karat.analysis.units import units_of
from karat.analysis.verdicts import few_clusters_factor
from karat.cli.running_means import RunningMeans
from karat.journal import RunFolder
from karat.records import Metric, Score
from karat.stats import paired_difference, power_ttest

SCORE = Metric(name="score", low=-100, high=100)


def grouped(folder: Path, documents: int, each: int, *, seed: int = 0, spread: float = 1.0) -> RunFolder:
    """Two conditions whose difference depends on the document, and is 0 on average over documents."""
    rng = np.random.default_rng(seed)
    effects = np.repeat(rng.normal(0, spread, documents), each)
    first = rng.normal(0, 0.3, documents * each)
    second = first + effects + rng.normal(0, 0.3, documents * each)
    samples = [
        msgspec.structs.replace(journals.sample(row), cluster=f"d{row // each}") for row in range(documents * each)
    ]
    scores = {"a": [[value] for value in first.tolist()], "b": [[value] for value in second.tolist()]}
    return journals.table(folder, scores, metric=SCORE, samples=samples)


def by_document(summary: Summary, each: int) -> np.ndarray:
    d = units_of(summary, "b", "score").means - units_of(summary, "a", "score").means
    return d.reshape(-1, each).mean(axis=1)


def test_equal_clusters_give_the_t_test_of_their_means_everywhere(tmp_path: Path) -> None:
    run = grouped(tmp_path / "run", 12, 5)
    summary = summarize(run)
    [pair] = summary.differences
    wanted = stats.ttest_1samp(by_document(summary, 5), 0)
    low, high = wanted.confidence_interval()
    assert (pair.p, pair.clusters, pair.df) == (pytest.approx(wanted.pvalue), 12, pytest.approx(11))
    assert (pair.estimate.low, pair.estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert pair.design_effect is not None
    assert pair.design_effect > 2
    again = compare(run, run, condition_a="a", condition_b="b").pairings[0].difference
    assert (again.p, again.estimate) == (pytest.approx(pair.p), pair.estimate)
    means = summary.result("b", "score")
    assert means is not None
    board = leaderboard([(summary, None)])
    assert [entry.mean.low for entry in board.entries if entry.condition == "b"] == [means.mean.low]
    assert means.clusters == 12
    assert "60 questions in 12 clusters" in summary.headline
    assert pilot_of(summary, pair).questions == 12


@pytest.mark.slow
def test_two_equal_conditions_win_in_at_most_five_percent_of_grouped_runs() -> None:
    from karat.analysis.model import MetricInfo
    from karat.analysis.units import Units, difference

    info = MetricInfo(
        key="m", name="m", scorer="s", scoring="x", low=None, high=None, direction="higher", kind="number",
        offline=True,
    )  # fmt: skip
    rng, wins, naive = np.random.default_rng(1), 0, 0
    codes, nothing = np.repeat(np.arange(6), 10), np.zeros(60)
    for _ in range(1000):
        values = np.repeat(rng.normal(0, 0.5, 6), 10) + rng.normal(0, 1, 60)
        sides = [
            Units(
                metric=info, keys=(), means=means, answers=np.ones(60, dtype=np.int64), sds=np.full(60, np.nan),
                planned=np.ones(60, dtype=np.int64), lost={}, clusters=codes,
            )
            for means in (nothing, values)
        ]  # fmt: skip
        wins += difference(sides[0], sides[1], level=0.95).test.p < 0.05
        bare = [msgspec.structs.replace(side, clusters=None) for side in sides]
        naive += difference(bare[0], bare[1], level=0.95).test.p < 0.05
    assert naive > 200
    assert wins <= 64


def test_fewer_than_five_clusters_give_an_interval_and_no_verdict(tmp_path: Path) -> None:
    summary = summarize(grouped(tmp_path / "run", 4, 15, spread=0.01))
    [pair] = summary.differences
    assert pair.estimate.low is not None
    assert (pair.p_adjusted, pair.winner, pair.again) == (None, None, None)
    assert pair.verdict == "too few clusters for a verdict"
    assert "4 clusters: a verdict needs at least 5" in summary.headline
    assert not any(text.startswith("few clusters") for text in summary.warnings)
    [check] = gate(summary, [Threshold(bound="min", name="score", value=-50.0)]).checks[:1]
    assert (check.verdict, check.reason) == ("undecided", "4 clusters: a verdict needs at least 5")


def test_few_clusters_pay_for_the_skew_that_they_may_have(tmp_path: Path) -> None:
    steps = np.repeat([11 / 30, 9 / 30, 2 / 30, 3 / 30, 8 / 30, 15 / 30], 2).tolist()  # t(5) = 4.0
    samples = [msgspec.structs.replace(journals.sample(row), cluster=f"d{row // 2}") for row in range(12)]
    scores = {"a": [[0.0]] * 12, "b": [[step] for step in steps]}
    summary = summarize(journals.table(tmp_path / "run", scores, metric=SCORE, samples=samples))
    [pair] = summary.differences
    p = 2 * stats.t.sf(4.0, 5)
    assert (pair.p, pair.p_adjusted) == (pytest.approx(p, rel=1e-9), pytest.approx(5 * p, rel=1e-9))
    assert (pair.winner, pair.verdict) == (None, "no difference shown")
    assert any(text.startswith("few clusters (6 clusters): p-values are multiplied by 5") for text in summary.warnings)


@pytest.mark.slow
def test_skewed_effects_of_few_clusters_give_a_winner_in_at_most_five_percent_of_runs() -> None:
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(6), 4)
    found = []
    for _ in range(2000):
        effects = rng.exponential(1.0, 6) - 1.0
        values = np.repeat(effects, 4) + rng.normal(0, 0.5, 24)
        test = paired_difference(np.zeros(24), values, sources=codes)
        found.append(few_clusters_factor(test.df) * test.p)
    p = np.array(found)
    assert (p / 5 < 0.05).mean() > 0.08  # which is why
    assert (p < 0.05).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / p.size)


@pytest.mark.parametrize(
    ("variance", "needed", "alpha"), [(0.25, 7, 0.01), (0.5, 10, 0.01), (0.6, 11, 0.05), (1.6, 15, 0.05)]
)
def test_plans_of_few_clusters_pay_as_verdicts_do(variance: float, needed: int, alpha: float) -> None:
    pilot = Pilot(between=variance, questions=6, unit="cluster")
    design = plan(pilot, delta=1.0).needed[0]
    assert design.questions == needed
    assert design.power == pytest.approx(power_ttest(1 / math.sqrt(variance), needed, alpha=alpha).value)


def test_few_clusters_are_said(tmp_path: Path) -> None:
    few, many = (summarize(grouped(tmp_path / str(count), count, 3)) for count in (8, 20))
    assert any(text.startswith("few clusters (8 clusters)") for text in few.warnings)
    assert not any("cluster" in text for text in many.warnings)


def test_samples_that_share_nothing_are_read_as_before(tmp_path: Path) -> None:
    run = grouped(tmp_path / "run", 30, 1)
    [pair] = summarize(run).differences
    assert pair.clusters is None
    assert pair.df == 29


def test_the_running_means_have_the_intervals_of_the_report(tmp_path: Path) -> None:
    run = grouped(tmp_path / "run", 6, 4)
    summary, means = summarize(run), RunningMeans()
    means.expects(msgspec.structs.replace(journals.JUDGE, metrics=(SCORE,)), "golden")
    result = summary.result("b", "score")
    assert result is not None
    units = units_of(summary, "b", "score")
    for sample, value in zip(run.samples(), units.means.tolist(), strict=True):
        trial = f"t{sample.id}"
        score = Score(trial=trial, scorer="judge", scoring=journals.JUDGE.scoring, values={"score": value})
        means.scored(score)
        means.settled(trial, "b", sample, answered=True)
    assert means.estimates()["b"].low == pytest.approx(result.mean.low)


def test_a_drop_has_the_clusters_that_either_run_declares(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    effects = np.repeat(rng.normal(0, 1, 6), 10)
    sides = {"old": rng.normal(0, 0.3, 60), "new": rng.normal(0, 0.3, 60) + effects}
    runs = {}
    for name, values in sides.items():
        for documents in (True, False):
            samples = [
                msgspec.structs.replace(journals.sample(row), cluster=f"d{row // 10}" if documents else None)
                for row in range(60)
            ]
            scores = {"a": [[value] for value in values.tolist()]}
            folder = tmp_path / f"{name}{documents}"
            runs[name, documents] = summarize(journals.table(folder, scores, metric=SCORE, samples=samples))
    drop = [Threshold(name="score", bound="max_drop", value=0.2)]
    bounds = {
        both: gate(runs["new", both[0]], drop, baseline=runs["old", both[1]]).checks[0].low
        for both in ((True, True), (True, False), (False, True), (False, False))
    }
    assert bounds[True, True] == bounds[True, False] == bounds[False, True] != bounds[False, False]
