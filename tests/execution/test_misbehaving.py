"""What agents and scorers raise and return at their worst: a fault of one trial, and the run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.analysis import summarize
from karat.config import load
from karat.execution import Outcome, RunStatus, run_experiment
from karat.journal import Attempt
from karat.records import Answer, Failure, Score

Write = Callable[..., Path]
Run = Callable[..., Outcome]
ONE: dict[str, Any] = {
    "conditions": {"a": {}},
    "execution": {"num_repetitions": 1, "retry": {"max_attempts": 1}},
}

RAISED = """
import karat
from karat.records import Reply
class Mute(Exception):
    def __str__(self):
        raise ValueError("no words")
class Base(BaseException):
    pass
class MuteBase(BaseException):
    def __str__(self):
        raise Base("none at all")
class NotBuilt(karat.AgentFault):
    def __init__(self):
        pass
class Odd(karat.InfrastructureFault):
    ledger_class = "nobody"
{kind}def answer(question):
    if question == "q1":
        raise {error}
    return "fine"
"""
ERRORS = {
    "Mute()": ("agent", "crash", "Mute (its message cannot be read: ValueError)"),
    "Base('away')": ("agent", "crash", "Base: away"),
    "MuteBase()": ("agent", "crash", "MuteBase (its message cannot be read: Base)"),
    "GeneratorExit('out')": ("agent", "crash", "GeneratorExit: out"),
    "SystemExit(3)": ("agent", "crash", "SystemExit: it called sys.exit(3)"),
    "BaseExceptionGroup('all', [Base('in a group')])": ("agent", "crash", "Base: in a group"),
    "NotBuilt()": ("agent", "fault", "NotBuilt: "),
    "karat.AgentFault(3, 4, retry_after='soon', dollars='much')": ("agent", "fault", "AgentFault: 3: 4"),
    "karat.AgentFault('x', 'y', dollars=-1.0, reply=Reply(text='z', dollars=1e308))": ("agent", "x", "y"),
    "Odd('x', 'y')": ("agent", "x", "y"),
}


@pytest.mark.parametrize("kind", ["", "async "])
@pytest.mark.parametrize("error", ERRORS)
def test_whatever_an_agent_raises_is_a_fault_of_one_trial(experiment: Write, run: Run, error: str, kind: str) -> None:
    outcome = run(target(experiment(RAISED.format(kind=kind, error=error), **ONE)))
    (failure,) = outcome.run.events_of(Failure)
    assert outcome.reason == "done"
    assert sorted(answer.sample for answer in outcome.run.events_of(Answer)) == ["0", "2"]
    cls, slug, message = ERRORS[error]
    assert (failure.sample, failure.cls, failure.kind) == ("1", cls, slug)
    assert message in failure.message
    (attempt,) = outcome.run.events_of(Attempt)
    assert (attempt.dollars, attempt.replies) == (None, ())


def test_a_scorer_may_raise_anything_too(experiment: Write, run: Run) -> None:
    code = """
def answer(question):
    return question
class Away(BaseException):
    pass
class Scorer:
    calls = 0
    def score(self, sample, answer):
        if answer.text == "q1":
            self.calls += 1
            raise Away(f"for good at call {self.calls}")
        if answer.text == "q2":
            raise GeneratorExit("out")
        return 1.0
"""
    outcome = run(target(experiment(code, **ONE)))
    failures = {one.sample: (one.cls, one.message.partition(" (")[0]) for one in outcome.run.events_of(Failure)}
    assert failures == {"1": ("judge", "Away: for good at call 1"), "2": ("judge", "GeneratorExit: out")}
    assert [list(score.values.values()) for score in outcome.run.events_of(Score)] == [[1.0]]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")  # a call that nobody awaits
def test_a_scorer_that_waits_is_called_once_for_an_answer(experiment: Write, run: Run) -> None:
    code = """
def answer(question):
    return question
class Scorer:
    calls = 0
    def score(self, sample, answer):
        self.calls += 1
        return self.later(float(self.calls))
    async def later(self, calls):
        return calls
"""
    outcome = run(target(experiment(code, **ONE)))
    assert sorted(value for score in outcome.run.events_of(Score) for value in score.values.values()) == [1.0, 2.0, 3.0]


def test_an_agent_that_cannot_be_closed_takes_nothing_from_its_run(experiment: Write, run: Run) -> None:
    code = """
from karat import Reply
class Agent:
    async def ask(self, condition, sample, turn, history):
        return Reply(text=turn.question)
    async def aclose(self):
        raise ConnectionError("gone")
"""
    notices: list[object] = []
    file = target(experiment(code, **ONE), name="Agent")
    outcome = run(file, status=RunStatus(notices.append))
    assert (outcome.reason, len(list(outcome.run.events_of(Answer)))) == ("done", 3)
    assert "an agent or scorer did not close well: ConnectionError: gone" in notices


ABSURD = {
    "Reply(text='x', dollars=1e308)": "dollars is 1e+308, expected 0 to 1e+06",
    "Reply(text='x', dollars=-0.5)": "dollars is -0.5",
    "Reply(text='x', dollars=float('nan'))": "dollars is nan",
    "Reply(text='x', dollars=float('inf'))": "dollars is inf",
    "Reply(text='x', usage=Usage(input_tokens=-1))": "input_tokens is -1",
    "Reply(text='x', usage=Usage(output_tokens=10**15))": "output_tokens is 1000000000000000",
    "Reply(text='x', milliseconds=float('nan'))": "milliseconds is nan",
    "Reply(text='x', tool_calls=(ToolCall(tool='t', milliseconds=-1.0),))": "milliseconds is -1.0",
    "Reply(text='x' * 10_000_001)": "the reply has 10000001 characters, expected at most 10000000",
    "Reply(text='x', reasoning='x' * 10_000_001)": "the reply has 10000002 characters",
}


@pytest.mark.parametrize("reply", ABSURD)
def test_an_absurd_reply_is_refused_and_spoils_nothing(experiment: Write, run: Run, reply: str) -> None:
    code = f"""
from karat.records import Reply, ToolCall, Usage
def answer(question):
    fine = Reply(text="fine", dollars=0.25, usage=Usage(input_tokens=3, output_tokens=4))
    return {reply} if question == "q1" else fine
"""
    execution = {**ONE["execution"], "max_concurrent": 1, "budget": {"usd": 5.0}}
    outcome = run(target(experiment(code, **{**ONE, "execution": execution})))
    (failure,) = outcome.run.events_of(Failure)
    assert (failure.sample, failure.kind) == ("1", "output_too_long" if "characters" in ABSURD[reply] else "bad_reply")
    assert ABSURD[reply] in failure.message
    assert summarize(outcome.run).total.cost.agent.known == 0.5


def test_an_answer_of_a_program_is_kept_whatever_it_says_of_its_cost(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "free.py").write_text('print(\'{"text": "x", "dollars": -3}\')')
    outcome = run(experiment(agent={"type": "command", "command": ["python", "free.py"]}, **ONE))
    assert list(outcome.run.events_of(Failure)) == []
    assert [reply.dollars for answer in outcome.run.events_of(Answer) for reply in answer.replies] == [None] * 3


@pytest.mark.parametrize("value", ["1e308", "Verdict(values={'v': 1.0}, dollars=-1.0)"])
def test_an_absurd_verdict_is_a_fault_of_the_scorer(experiment: Write, run: Run, value: str) -> None:
    code = f"""
from karat.scorers import Verdict
def answer(question):
    return question
class Scorer:
    def score(self, sample, answer):
        return {value} if answer.text == "q1" else 1.0
"""
    outcome = run(target(experiment(code, **ONE)))
    (failure,) = outcome.run.events_of(Failure)
    assert (failure.sample, failure.cls, failure.kind) == ("1", "judge", "bad_verdict")
    assert "cannot be right" in failure.message


def test_an_agent_that_changes_the_working_directory_does_not_move_the_results(
    experiment: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os\ndef answer(question):\n    os.chdir('/')\n    return question\n"
    target(experiment(code, questions=30, **ONE))
    monkeypatch.chdir(tmp_path)
    outcome = asyncio.run(run_experiment(load("experiment.yaml"), results=Path("results")))
    assert (tmp_path / outcome.run.path / "journal.jsonl").is_file()
    assert len(list(outcome.run.events_of(Answer))) == 30
    assert summarize(outcome.run).total.ledger.scored == 30
    assert Path.cwd() == tmp_path, "and the process is where it was"


def target(file: Path, name: str = "answer") -> Path:
    """The experiment, with the agent of that name."""
    file.write_text(file.read_text().replace(":query", f":{name}"))
    return file
