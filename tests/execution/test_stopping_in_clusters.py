"""Stopping when it is decided, where questions come in clusters: looks count these, whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.execution.test_stopping import AGENT, ALIKE, BETTER, Run, Write, stop

from karat.__main__ import main
from karat.analysis import summarize
from karat.analysis.model import Stopping
from karat.analysis.stopping import StoppingRule, in_order
from karat.errors import ResumeRefused
from karat.execution import Outcome, RunStatus
from karat.journal import Decided, Horizon
from karat.journal.codec import Codec
from karat.records import Answer, Metric, Score

Capture = pytest.CaptureFixture[str]
Clustered = Callable[..., Path]
SIZES = [1 + cluster % 5 for cluster in range(40)]
LABELS = [f"page {cluster}" for cluster, size in enumerate(SIZES) for _ in range(size)]


@pytest.fixture
def clustered(experiment: Write, tmp_path: Path) -> Clustered:
    """`clustered(labels, **sections)`: an experiment whose questions are of the pages that `labels` names."""

    def write(labels: list[str], code: str = AGENT, **sections: Any) -> Path:
        path = tmp_path / "questions.jsonl"
        file = experiment(code, dataset={"path": str(path), "cluster": "page"}, **sections)
        rows = [{"question": f"q{row}", "answer": "a", "page": page} for row, page in enumerate(labels)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    return write


def qualities(outcome: Outcome) -> dict[tuple[str, str], float]:
    scored = {row.trial: float(row.values["quality"] or 0) for row in outcome.run.events_of(Score)}
    asked = outcome.run.events_of(Answer)
    return {(one.sample, one.condition): scored[one.trial] for one in asked if one.trial in scored}


def pages(labels: list[str]) -> list[list[str]]:
    return in_order({str(row): page for row, page in enumerate(labels)}, 0)


def test_the_questions_of_a_cluster_follow_each_other_and_the_order_is_drawn() -> None:
    clusters = {"a": "p", "b": "q", "c": "p", "d": None, "p": None, "e": "q"}
    found = in_order(clusters, 3)
    assert sorted(map(sorted, found)) == [["a", "c"], ["b", "e"], ["d"], ["p"]]
    assert len({tuple(map(tuple, in_order(clusters, seed))) for seed in range(20)}) > 5
    without = in_order({name: cluster for name, cluster in clusters.items() if name != "d"}, 3)
    assert without == [unit for unit in found if unit != ["d"]]
    alone = [name for (name,) in in_order({name: f"page of {name}" for name in clusters}, 3)]
    assert alone == [name for (name,) in in_order(dict.fromkeys(clusters), 3)], "no two questions share a page"


def test_a_run_looks_after_whole_clusters_and_tests_their_means(clustered: Clustered, run: Run) -> None:
    status = RunStatus()
    outcome = run(clustered(LABELS, conditions=BETTER, execution=stop()), status=status)
    horizon = next(outcome.run.events_of(Horizon))
    assert (horizon.questions, horizon.clusters) == (120, 40)
    (one,) = outcome.run.events_of(Decided)
    assert one.clusters is not None
    assert 20 <= one.clusters < 40
    units = pages(LABELS)[: one.clusters]
    assert (one.questions, one.n) == (sum(map(len, units)), sum(map(len, units)))
    scores = qualities(outcome)
    means = [np.mean([scores[name, "b"] - scores[name, "a"] for name in unit]) for unit in units]
    assert one.value == pytest.approx(np.mean(means))
    assert len(list(outcome.run.events_of(Answer))) < 2 * (one.questions + 8), "few questions ahead of the look"
    assert f"decided after {one.clusters} clusters: b against a: better" in "\n".join(status.notices)
    summary = summarize(outcome.run)
    assert isinstance(summary.stopping, Stopping)
    (look,) = summary.stopping.comparisons
    assert (look.questions, look.n, look.clusters) == (one.questions, one.n, one.clusters)
    quality = next(pair for pair in summary.differences if pair.metric == "quality")
    assert (quality.winner, quality.n_pairs, quality.clusters) == ("b", one.n, one.clusters)
    assert quality.estimate.n == one.clusters


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0.3, 0.6, 0.999])
def test_a_run_that_lost_its_end_decides_as_the_whole_one(clustered: Clustered, run: Run, cut: float) -> None:
    file = clustered(LABELS, conditions=BETTER, execution=stop())
    outcome = run(file)
    whole = list(outcome.run.events_of(Decided))
    lines = [line for line in outcome.run.journal.read_bytes().splitlines(keepends=True) if b'"end"' not in line]
    outcome.run.journal.write_bytes(b"".join(lines[: int(len(lines) * cut)]))
    again = run(file, resume=outcome.run.path)
    assert list(again.run.events_of(Decided)) == whole
    answers = [(one.sample, one.condition) for one in again.run.events_of(Answer)]
    assert len(set(answers)) == len(answers)


def test_other_clusters_are_another_plan(clustered: Clustered, run: Run) -> None:
    outcome = run(clustered(LABELS[:30], conditions=ALIKE, execution=stop()))
    with pytest.raises(ResumeRefused, match="the number of clusters was 10, now 15"):
        run(clustered([f"page {row // 2}" for row in range(30)], conditions=ALIKE, execution=stop()),
            resume=outcome.run.path)  # fmt: skip


def test_lost_questions_leave_the_rest_of_their_cluster(clustered: Clustered, run: Run) -> None:
    code = AGENT.replace("FAILS = 0.0, 0.0, 0", "FAILS = 0.0, 0.0, 6")
    outcome = run(clustered(LABELS, code, conditions=BETTER, execution=stop()))
    (one,) = outcome.run.events_of(Decided)
    assert one.clusters is not None
    scores = qualities(outcome)
    both = [
        [scores[name, "b"] - scores[name, "a"] for name in unit if {(name, "a"), (name, "b")} <= scores.keys()]
        for unit in pages(LABELS)[: one.clusters]
    ]
    assert one.n == sum(map(len, both)) < one.questions
    assert one.value == pytest.approx(np.mean([np.mean(unit) for unit in both if unit]))


def test_fewer_clusters_than_five_decide_nothing_even_at_the_end(clustered: Clustered, run: Run) -> None:
    for count, decided in ((4, 0), (5, 1)):
        labels = [f"page {row % count}" for row in range(60)]
        outcome = run(clustered(labels, conditions=prompts_far_apart(count), execution=stop()))
        assert len(list(outcome.run.events_of(Decided))) == decided
        quality = next(pair for pair in summarize(outcome.run).differences if pair.metric == "quality")
        assert (quality.winner is not None) is bool(decided)


def prompts_far_apart(number: int) -> dict[str, dict[str, str]]:
    return {"a": {"system_prompt": f"a{number} 0"}, "b": {"system_prompt": f"b{number} 2"}}


def test_a_plan_of_questions_is_read_as_one_though_they_come_in_clusters(clustered: Clustered, run: Run) -> None:
    """As journals say from before looks counted clusters."""
    outcome = run(clustered(LABELS[:30], conditions=BETTER, execution=stop()))
    horizon = msgspec.structs.replace(next(outcome.run.events_of(Horizon)), clusters=None)
    lines = outcome.run.journal.read_bytes().splitlines(keepends=True)
    outcome.run.journal.write_bytes(b"".join([lines[0], Codec().line(horizon), *lines[2:]]))
    summary = summarize(outcome.run)
    assert isinstance(summary.stopping, Stopping)
    assert (summary.stopping.horizon, summary.stopping.clusters) == (30, None)
    assert (summary.stopping.comparisons[0].questions, summary.stopping.comparisons[0].clusters) == (30, None)


def test_clusters_of_one_question_decide_as_questions_do() -> None:
    metric = Metric(name="m", low=0, high=1)
    horizon = Horizon(
        questions=60, order="", seed=0, repetitions=1, pairs=(("a", "b"),), metric="m", scorer="", scoring="",
        alpha=0.05,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    for _ in range(20):
        means = rng.random((60, 2)) * [0.7, 1.0]
        plain = StoppingRule(horizon, metric, ["a", "b"]).look(means, 60)
        single = StoppingRule(horizon, metric, ["a", "b"], sizes=[1] * 60).look(means, 60)
        assert [msgspec.structs.replace(one, clusters=None) for one in single] == plain


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (LABELS, "may stop early, from 20 of 40 clusters (120 questions) on: once quality of the 2 conditions"),
        (LABELS[:30], "asks all 10 clusters (30 questions): nothing is decided early with 20 or fewer"),
        ([f"page {row}" for row in range(30)], "may stop early, from 20 of 30 questions on"),
    ],
)
def test_check_says_what_looks_count(clustered: Clustered, capsys: Capture, labels: list[str], says: str) -> None:
    file = clustered(labels, conditions=BETTER, execution=stop())
    assert main(["check", str(file)]) == 0
    assert says in " ".join(capsys.readouterr().out.split())


def test_the_report_says_that_looks_count_clusters(clustered: Clustered, run: Run, capsys: Capture) -> None:
    outcome = run(clustered(LABELS, conditions=BETTER, execution=stop()))
    (one,) = outcome.run.events_of(Decided)
    assert main(["report", str(outcome.run.path), "--full"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"b − a: better, decided after {one.clusters} of 40 clusters." in shown
    assert "A look counts each cluster once, by the mean difference of its questions, whatever its size." in shown


def test_a_run_that_has_just_begun_has_looked_at_no_cluster(clustered: Clustered, run: Run) -> None:
    outcome = run(clustered(LABELS, conditions=BETTER, execution=stop()))
    lines = outcome.run.journal.read_bytes().splitlines(keepends=True)
    outcome.run.journal.write_bytes(b"".join(lines[:4]))
    summary = summarize(outcome.run)
    assert isinstance(summary.stopping, Stopping)
    assert [(look.questions, look.clusters) for look in summary.stopping.comparisons] == [(0, 0)]
