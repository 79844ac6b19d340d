"""Scoring again: no agent is asked, nothing is overwritten, only what is missing is scored."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.analysis import summarize
from karat.config import Retry, load
from karat.errors import UnknownPlugin
from karat.execution import Limits, Outcome, RunStatus, rescore
from karat.journal import End, Resume, RunFolder, ScorerInfo
from karat.records import Answer, Failure, Sample, Score, ScorerSpec
from karat.redact import Redactor

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


KNOWING = """
import json, os
from karat.models import parse_model, rate_limit
from karat.models.pacing import limiter
from karat.scorers import Verdict
class Knowing:
    def __init__(self, setting):
        self.setting = setting
    def score(self, sample, answer):
        os.chdir("/")
        limiter("nobody")
        price, limit = self.setting.prices["openai:gpt-x"], rate_limit(parse_model("openai:gpt-x"))
        told = {
            "name": self.setting.name, "folder": str(self.setting.folder), "conditions": self.setting.conditions,
            "prices": [price.input, price.output, len(self.setting.prices)],
            "limits": [limit.rate.requests_per_minute, limit.rate.tokens_per_minute],
            "other": self.setting.answer_of(sample.id, "b", answer.repetition).text,
            "earlier": self.setting.recall("none", answer.trial),
        }
        return Verdict(values={"mine": 1.0}, reasons={"mine": json.dumps(told)})
"""


def test_a_scorer_of_a_rescoring_knows_what_the_run_was_made_with(
    experiment: Write, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = experiment(
        PLAIN, baseline="b", prices={"openai:gpt-x": {"input": 2.0, "output": 8.0}},
        limits={"openai:gpt-x": {"requests_per_minute": 90}}, execution={"max_concurrent": 1},
    )  # fmt: skip
    first = run(file)
    (tmp_path / "knowing.py").write_text(KNOWING)
    monkeypatch.chdir(tmp_path)
    expected: list[Any] = []

    class Following:
        def expects(self, scorer: ScorerInfo, kind: str) -> None:
            expected.append((scorer.name, kind))

        def scored(self, score: Score) -> None: ...

        def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None: ...

    status = RunStatus(follower=Following())
    relative = RunFolder.open(first.run.path.relative_to(tmp_path))
    spec = ScorerSpec(type="knowing:Knowing", name="mine")
    again = asyncio.run(rescore(relative, [spec], base=tmp_path, limits=LIMITS, status=status))
    assert (again.run.path, again.reason, again.failed) == (relative.path, "done", 0)
    assert Path.cwd() == tmp_path
    assert status.notices == [f"the agent changed the working directory; it is {tmp_path} again"]
    assert (status.planned, status.settled, status.failed) == (12, 12, 0)
    assert (expected, [*status.limiters]) == ([("mine", "golden")], ["nobody"])
    scores = [score for score in again.run.events_of(Score) if score.scorer == "mine"]
    told = [json.loads(score.reasons["mine"]) for score in scores]
    assert len(told) == 12
    assert {one.pop("other") for one in told} == {"a0", "a1", "a2"}
    assert told == 12 * [
        {
            "name": "mine",
            "folder": str(tmp_path),
            "conditions": ["b", "a"],
            "prices": [2.0, 8.0, 1],
            "limits": [90, None],
            "earlier": None,
        }
    ]
    assert [(end.reason, end.command) for end in again.run.events_of(End)] == [("done", "run"), ("done", "score")]


def test_answers_are_scored_in_the_order_in_which_they_were_given(experiment: Write, run: Run, tmp_path: Path) -> None:
    execution = {"num_repetitions": 1, "max_concurrent": 1, "retry": {"max_attempts": 1}}
    failing = "import os\n" + PLAIN.replace("    return", "    assert user_query != os.environ['LATE']\n    return")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LATE", "q0")
        first = run(experiment(failing, conditions={"a": {}}, execution=execution))
        environment.setenv("LATE", "none")
        second = run(tmp_path / "experiment.yaml", resume=first.run.path, retry_failed=True)
    order = [answer.trial for answer in second.run.events_of(Answer)]
    assert [answer.sample for answer in second.run.events_of(Answer)] == ["1", "2", "0"]
    one = Limits(max_concurrent=1, timeout_seconds=9, judge_timeout_seconds=9, retry=Retry(), max_failures=1000)
    spec = ScorerSpec(type="contains", name="contains")
    again = asyncio.run(rescore(second.run, [spec], base=tmp_path, limits=one))
    assert [score.trial for score in again.run.events_of(Score) if score.scorer == "contains"] == order


LATE = (
    PLAIN
    + """
class Scorer:
    compared_with = "a"
    def __init__(self, setting):
        self.setting = setting
    def score(self, sample, answer):
        other = self.setting.answer_of(sample.id, "a", answer.repetition)
        return answer.text == other.text
"""
)


def test_a_scorer_that_waits_for_all_answers_counts_no_trial_twice(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(LATE)
    module = next(tmp_path.glob("agent_of_*.py")).stem
    file.write_text(file.read_text().replace("scorers:\n", "scorers:\n- equals\n"))
    status = RunStatus()
    outcome = run(file, status=status)
    assert rows(outcome) == {"equals": 12, f"{module}:Scorer": 12}
    assert (status.planned, status.settled, status.conditions["a"].settled) == (12, 12, 6)
    assert [score.values for score in outcome.run.events_of(Score)].count({f"{module}:Scorer": True}) == 12
    status = RunStatus()
    spec = ScorerSpec(type=f"{module}:Scorer", name="again")
    again = asyncio.run(rescore(outcome.run, [spec], base=tmp_path, limits=LIMITS, status=status))
    assert rows(again)["again"] == 12
    assert (status.planned, status.settled) == (12, 12)


def test_a_scorer_that_there_is_not_leaves_the_run_as_it_is(experiment: Write, run: Run, tmp_path: Path) -> None:
    first = run(experiment(PLAIN, questions=1))
    before = first.run.journal.read_bytes()
    with pytest.raises(UnknownPlugin):
        score_again(first, ScorerSpec(type="contain", name="mine"), base=tmp_path)
    assert first.run.journal.read_bytes() == before


def test_a_line_that_is_missing_in_a_journal_is_said_before_it_is_scored_or_goes_on(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    first = run(experiment(PLAIN, questions=2))
    lines = first.run.journal.read_bytes().splitlines(keepends=True)
    first.run.journal.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    scored, resumed = RunStatus(), RunStatus()
    spec = ScorerSpec(type="contains", name="contains")
    asyncio.run(rescore(RunFolder.open(first.run.path), [spec], base=tmp_path, limits=LIMITS, status=scored))
    run(tmp_path / "experiment.yaml", resume=first.run.path, status=resumed)
    for status in (scored, resumed):
        assert [notice.partition(",")[0] for notice in status.notices] == ["The numbers may be wrong"]


def test_secrets_are_masked_in_what_is_scored_later_too(experiment: Write, run: Run, tmp_path: Path) -> None:
    first = run(experiment(PLAIN, questions=1, conditions={"a": {}}, execution={"num_repetitions": 1}))
    (tmp_path / "telling_scorer.py").write_text(
        "from karat.scorers import Verdict\n"
        "class Telling:\n"
        "    def score(self, sample, answer):\n"
        "        return Verdict(values={'mine': True}, reasons={'mine': 'it is hunter22'})\n"
    )
    spec = ScorerSpec(type="telling_scorer:Telling", name="mine")
    masked = Redactor({"KEY": "hunter22"})
    again = asyncio.run(rescore(first.run, [spec], base=tmp_path, limits=LIMITS, redact=masked))
    assert [score.reasons for score in again.run.events_of(Score)] == [{}, {"mine": "it is ${KEY}"}]
