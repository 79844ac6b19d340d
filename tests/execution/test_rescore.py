"""Scoring again: no agent is asked, nothing is overwritten, only what is missing is scored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from karat.analysis import summarize
from karat.config import Retry, load
from karat.execution import Limits, Outcome, rescore
from karat.journal import Resume
from karat.records import Answer, Failure, Score, ScorerSpec

Write = Callable[..., Path]
Run = Callable[..., Outcome]

PLAIN = "def query(user_query, system_prompt, mcp_servers):\n    return user_query.replace('q', 'a')\n"
LIMITS = Limits(max_concurrent=2, timeout_seconds=9, judge_timeout_seconds=9, retry=Retry(), max_failures=1000)


def score_again(outcome: Outcome, *specs: ScorerSpec, base: Path) -> Outcome:
    return asyncio.run(rescore(outcome.run, specs, base=base, limits=LIMITS))


def rows(outcome: Outcome) -> Counter[str]:
    return Counter(score.scorer for score in outcome.run.events_of(Score))


def test_new_scores_are_appended_and_old_ones_kept(experiment: Write, run: Run, tmp_path: Path) -> None:
    first = run(experiment(PLAIN))
    before = first.run.journal.read_bytes()
    contains = ScorerSpec(type="contains", name="contains")
    again = score_again(first, contains, base=tmp_path)
    assert again.run.journal.read_bytes().startswith(before)
    assert rows(again) == {"equals": 12, "contains": 12}
    assert len(list(again.run.events_of(Answer))) == 12
    (resume,) = again.run.events_of(Resume)
    assert (resume.command, [scorer.name for scorer in resume.scorers]) == ("score", ["contains"])
    size = again.run.journal.stat().st_size
    assert rows(score_again(first, contains, base=tmp_path)) == rows(again), "what is scored is not scored again"
    assert again.run.journal.stat().st_size > size, "that it was tried is written down"


def test_another_option_is_another_scoring_of_the_same_name(experiment: Write, run: Run, tmp_path: Path) -> None:
    first = run(experiment(PLAIN))
    strict = ScorerSpec(type="regex", name="form", options={"pattern": "^a[0-9]$"})
    loose = ScorerSpec(type="regex", name="form", options={"pattern": "^b"})
    score_again(first, strict, base=tmp_path)
    again = score_again(first, loose, base=tmp_path)
    assert rows(again)["form"] == 24
    assert len({score.scoring for score in again.run.events_of(Score) if score.scorer == "form"}) == 2
    shown = next(one for one in summarize(again.run).results if one.metric == "form")
    assert shown.mean.value == 0.0, "the newest scoring is shown"


def test_a_scoring_torn_in_the_middle_is_completed(experiment: Write, run: Run, tmp_path: Path) -> None:
    code = (
        PLAIN
        + """
from karat.scorers import Verdict
class Scorer:
    def score(self, sample, answer):
        return [Verdict(values={"m": 1.0}, repeat=repeat) for repeat in range(3)]
"""
    )
    outcome = run(experiment(code, questions=1, conditions={"a": {}}, execution={"num_repetitions": 1}))
    lines = outcome.run.journal.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if b'"score"' in line]
    assert len(whole) == 3
    # What two power cuts can leave: an answer, two of its three rows, and the first of them again.
    outcome.run.journal.write_bytes(b"".join([*lines[:4], lines[2]]))
    again = run(tmp_path / "experiment.yaml", resume=outcome.run.path)
    assert sorted(score.repeat for score in again.run.events_of(Score)) == [0, 0, 0, 1, 1, 2]
    last = run(tmp_path / "experiment.yaml", resume=outcome.run.path)
    assert len(list(last.run.events_of(Score))) == 6, "complete now"


STREAMING = (
    PLAIN
    + """
from pathlib import Path
from karat.scorers import Verdict
class Scorer:
    async def score(self, sample, answer, *, done):
        for repeat in range(3):
            if (None, None, repeat) not in done:
                with Path(__file__).with_name("asked").open("a") as file:
                    file.write(f"{answer.repetition}.{repeat} ")
                yield Verdict(values={"m": float(repeat)}, repeat=repeat, rows=3)
"""
)


def test_verdicts_that_come_one_by_one_are_asked_once_each(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(STREAMING, questions=1, conditions={"a": {}}, execution={"num_repetitions": 2})
    outcome = run(file)
    asked = tmp_path / "asked"
    assert sorted(asked.read_text().split()) == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    kept = [
        line
        for line in outcome.run.journal.read_bytes().splitlines(keepends=True)
        if not (b'"score"' in line and b'"repeat":2' in line) and b'"end"' not in line
    ]
    outcome.run.journal.write_bytes(b"".join(kept))
    asked.unlink()
    assert summarize(outcome.run).total.ledger.scored == 0
    (spec,) = load(file).scorers
    for again in (lambda: run(file, resume=outcome.run.path), lambda: score_again(outcome, spec, base=tmp_path)):
        outcome.run.journal.write_bytes(b"".join(kept))
        summary = summarize(again().run)
        assert sorted(asked.read_text().split()) == ["0.2", "1.2"], "only what is missing"
        assert summary.results[0].mean.value == 1.0
        asked.unlink()


def test_a_failing_scorer_leaves_failures_and_can_be_run_again(experiment: Write, run: Run, tmp_path: Path) -> None:
    first = run(experiment(PLAIN))
    (tmp_path / "judge_of_rescore.py").write_text(
        "class Judge:\n    def score(self, sample, answer):\n        raise ValueError('no')\n"
    )
    spec = ScorerSpec(type="judge_of_rescore:Judge", name="mine")
    again = score_again(first, spec, base=tmp_path)
    assert again.failed == 12
    assert {(one.stage, one.cls, one.scorer) for one in again.run.events_of(Failure)} == {("score", "judge", "mine")}
    assert summarize(again.run).total.ledger.judge == 12
