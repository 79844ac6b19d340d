"""The looks of a run that may stop early, on journals written line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.analysis.journals import JUDGE, Script, sample

from karat.analysis import summarize
from karat.analysis.model import Stopping
from karat.analysis.stopping import RunLooks, in_order, order_digest, questions_in_order, stopping_of
from karat.index import read_index
from karat.journal import Decided, Horizon, RunFolder

NAMES = [str(number) for number in range(30)]
ORDER = [name for (name,) in in_order(dict.fromkeys(NAMES), 0)]
HORIZON = Horizon(
    questions=30, order=order_digest(ORDER), seed=0, repetitions=1, pairs=(("baseline", "with-docs"),),
    metric="completeness", scorer="judge", scoring="0f" * 16, alpha=0.05,
)  # fmt: skip


def begun(folder: Path, *, horizon: Horizon = HORIZON, clusters: int | None = None, **more: Any) -> Script:
    samples = [sample(number) for number in range(30)]
    if clusters is not None:
        samples = [
            msgspec.structs.replace(one, cluster=f"document {number % clusters}") for number, one in enumerate(samples)
        ]
    script = Script(folder, samples=samples, format=3, **more)
    script.write(horizon)
    return script


def asked(script: Script, names: list[str], *, better: float = 1.0) -> None:
    """Scores of these questions; under the second condition more by `better`, give or take a tenth."""
    for name in names:
        row = int(name)
        script.scored(row, "baseline", value=2.0)
        script.scored(row, "with-docs", value=2.0 + better + (0.1 if row % 2 else -0.1))


def looks(run: RunFolder, horizon: Horizon = HORIZON) -> RunLooks:
    return RunLooks(read_index(run), horizon)


def test_questions_are_in_a_random_order_that_others_do_not_move():
    assert sorted(ORDER) == sorted(NAMES)
    assert ORDER != NAMES
    assert [name for (name,) in in_order(dict.fromkeys(NAMES), 1)] != ORDER
    fewer = [name for (name,) in in_order(dict.fromkeys(NAMES[:20]), 0)]
    assert fewer == [name for name in ORDER if name in NAMES[:20]]


def test_the_questions_of_a_cluster_are_asked_together():
    clusters: dict[str, str | None] = {name: f"document {int(name) % 4}" if int(name) < 20 else None for name in NAMES}
    units = in_order(clusters, 0)
    assert sorted(map(len, units)) == [1] * 10 + [5] * 4
    for unit in units:
        assert len({clusters[name] for name in unit}) == 1
        if len(unit) > 1:
            assert unit == [name for name in ORDER if name in unit], "within a cluster, too, the order is random"


def test_a_digest_identifies_questions_in_an_order():
    assert order_digest(ORDER) == order_digest(tuple(ORDER))
    others = {order_digest(ids) for ids in (ORDER, NAMES, ORDER[:-1], ["ab", "c"], ["a", "bc"], [])}
    assert len(others) == 6
    assert all(len(digest) == 16 for digest in others)


def test_a_question_has_ended_when_those_before_it_have_all_their_scores(tmp_path: Path):
    script = begun(tmp_path / "run")
    asked(script, ORDER[:3])
    asked(script, ORDER[4:6])
    script.scored(int(ORDER[3]), "baseline", value=2.0)
    run = script.stop()
    assert looks(run).ended() == 3
    assert looks(run).decide() == []


@pytest.mark.parametrize("stage", ["agent", "score", None])
def test_a_failure_ends_a_question_and_an_answer_without_a_score_does_not(tmp_path: Path, stage: str | None):
    script = begun(tmp_path / "run")
    asked(script, ORDER[:2])
    row = int(ORDER[2])
    script.scored(row, "baseline", value=2.0)
    if stage == "agent":
        script.failure(row, "with-docs")
    else:
        script.answer(row, "with-docs")
        if stage == "score":
            script.failure(row, "with-docs", stage="score", cls="judge", scorer="judge")
    asked(script, ORDER[3:5])
    assert looks(script.stop()).ended() == (2 if stage is None else 5)


def test_a_score_whose_rows_are_not_all_there_is_waited_for(tmp_path: Path):
    script = begun(tmp_path / "run")
    row = int(ORDER[0])
    script.scored(row, "baseline", value=2.0)
    script.answer(row, "with-docs")
    script.score(row, "with-docs", value=3.0, rows=2)
    run = script.stop()
    assert looks(run).ended() == 0


def test_an_index_that_follows_the_run_is_read_on(tmp_path: Path):
    script = begun(tmp_path / "run")
    asked(script, ORDER[:19])
    run = script.stop()
    index = read_index(run)
    one = RunLooks(index, HORIZON)
    assert (one.ended(), one.decide()) == (19, [])
    more = Script(tmp_path / "more", samples=script.samples, format=3)
    asked(more, ORDER[19:20])
    lines = more.stop().journal.read_bytes().splitlines(keepends=True)[1:]
    with run.journal.open("ab") as journal:
        journal.write(b"".join(lines))
    again = looks(run)
    assert again.ended() == 20
    [decided] = again.decide()
    assert (decided.a, decided.b, decided.verdict, decided.questions, decided.n) == (
        "baseline",
        "with-docs",
        "better",
        20,
        20,
    )
    assert decided.value == pytest.approx(1.0, abs=0.05)
    assert decided.clusters is None
    assert again.decide() == [], "a decision is final"


def test_a_lost_trial_counts_at_the_worst_value_of_the_metric(tmp_path: Path):
    script = begun(tmp_path / "run")
    asked(script, ORDER[:2])
    row = int(ORDER[2])
    script.scored(row, "baseline", value=2.0)
    script.failure(row, "with-docs")
    one = looks(script.stop())
    means, worst = one.means()
    assert means[:2].tolist() == worst[:2].tolist()
    assert means[0, 0] == 2.0
    assert str(means[2].tolist()) == "[2.0, nan]"
    assert worst[2].tolist() == [2.0, 1.0]


def test_a_run_without_scores_has_no_means(tmp_path: Path):
    means, worst = looks(begun(tmp_path / "run").stop()).means()
    assert means.shape == worst.shape == (30, 2)
    assert str(means[0].tolist()) == "[nan, nan]"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"scoring": "ee" * 16}, "metric: no scorer of the run has 'completeness'"),
        ({"metric": "speed"}, "metric: no scorer of the run has 'speed'"),
        ({"questions": 29}, "questions: the run has others than it planned"),
        ({"clusters": 10}, "questions: the run has others than it planned"),
    ],
)
def test_a_horizon_of_another_run_is_refused(tmp_path: Path, changes: dict[str, Any], says: str):
    run = begun(tmp_path / "run").stop()
    with pytest.raises(ValueError, match=says):
        looks(run, msgspec.structs.replace(HORIZON, **changes))
    damaged = begun(tmp_path / "other", horizon=msgspec.structs.replace(HORIZON, **changes)).stop()
    assert stopping_of(read_index(damaged), level=0.95) is None


def test_looks_count_whole_clusters(tmp_path: Path):
    horizon = msgspec.structs.replace(HORIZON, clusters=15)
    script = begun(tmp_path / "run", horizon=horizon, clusters=15)
    run = script.stop()
    units = questions_in_order(read_index(run), horizon)
    assert [len(unit) for unit in units] == [2] * 15
    assert questions_in_order(read_index(run), HORIZON) == [[name] for name in ORDER], "nothing is declared"
    script = begun(tmp_path / "more", horizon=horizon, clusters=15)
    asked(script, [*units[0], units[1][0]])
    assert looks(script.stop(), horizon).ended() == 2


def test_a_run_that_asks_everything_has_no_looks(tmp_path: Path):
    script = Script(tmp_path / "run", samples=2)
    assert stopping_of(read_index(script.stop()), level=0.95) is None


def test_a_comparison_is_shown_as_of_the_look_that_decided_it(tmp_path: Path):
    script = begun(tmp_path / "run", conditions=("baseline", "with-docs"))
    asked(script, ORDER[:22])
    script.write(
        Decided(
            a="baseline", b="with-docs", verdict="better", questions=20, n=20, value=1.0, p=0.001,
            out=("baseline", "with-docs"),
        )
    )  # fmt: skip
    run = script.end()
    found = stopping_of(read_index(run), level=0.95)
    assert isinstance(found, Stopping)
    assert (found.metric, found.scorer, found.horizon, found.alpha, found.margin) == (
        "completeness",
        "judge",
        30,
        0.05,
        None,
    )
    assert found.out == ("baseline", "with-docs")
    (look,) = found.comparisons
    assert (look.a, look.b, look.verdict, look.questions, look.n, look.clusters) == (
        "baseline",
        "with-docs",
        "better",
        20,
        20,
        None,
    )
    assert (look.p, look.p_adjusted) == (0.001, 0.001)
    assert look.estimate.method == "repeated t"
    assert look.estimate.level == 0.95
    assert look.estimate.value == pytest.approx(1.0, abs=0.05)
    assert look.estimate.low is not None
    assert look.estimate.high is not None
    assert look.estimate.low < look.estimate.value < look.estimate.high
    summary = summarize(run)
    assert summary.stopping == found
    assert summary.differences[0].winner == "with-docs"
    assert (summary.total.ledger.scored, summary.total.ledger.decided, summary.total.ledger.not_run) == (44, 16, 0)


def test_a_comparison_that_is_not_decided_is_shown_as_of_the_questions_that_ended(tmp_path: Path):
    script = begun(tmp_path / "run", scorers=(JUDGE,))
    asked(script, ORDER[:7], better=0.0)
    found = stopping_of(read_index(script.stop()), level=0.9)
    assert isinstance(found, Stopping)
    assert found.out == ()
    (look,) = found.comparisons
    assert (look.verdict, look.questions, look.n, look.p, look.p_adjusted) == (None, 7, 7, 1.0, 1.0)
    assert (look.estimate.low, look.estimate.high, look.estimate.level) == (None, None, 0.9)
    assert look.estimate.reason == "decided from 20 questions on, 7 are answered under both"
