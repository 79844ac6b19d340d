"""What a run must stand: plug-ins that misbehave, stops at the worst moment, and costs of what failed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.analysis import summarize
from karat.config import Experiment, load
from karat.errors import BadPlugin, ResumeRefused
from karat.execution import Outcome, RunStatus, run_experiment
from karat.journal import Attempt, RunFolder
from karat.records import Answer, Failure, Score

Write = Callable[..., Path]
Run = Callable[..., Outcome]
ONE: dict[str, Any] = {"conditions": {"a": {}}, "execution": {"num_repetitions": 1}}
PLAIN = "def query(user_query, system_prompt, mcp_servers):\n    return user_query\n"


def kinds(outcome: Outcome) -> Counter[tuple[str, str]]:
    return Counter((one.cls, one.kind) for one in outcome.run.events_of(Failure))


def execution(**settings: Any) -> dict[str, Any]:
    return {"num_repetitions": 1, **settings}


@pytest.mark.parametrize(
    "reply",
    [
        "Reply(text=None)",
        "Reply(text='x', tool_calls=({'no': 'call'},))",
        "Reply(text='x', tool_calls=(ToolCall(tool='t', input={'a': {1, (2,)}.__iter__()}),))",
        "[3]",
    ],
)
def test_a_reply_that_is_none_is_a_fault_of_the_agent_and_the_run_goes_on(
    experiment: Write, run: Run, reply: str
) -> None:
    code = f"""
from karat.records import Reply, ToolCall
def query(user_query, system_prompt, mcp_servers):
    return {reply} if user_query == "q1" else "fine"
"""
    outcome = run(experiment(code, **ONE))
    assert kinds(outcome) == {("agent", "bad_reply"): 1}
    assert sorted(one.sample for one in outcome.run.events_of(Answer)) == ["0", "2"]
    assert summarize(outcome.run).total.ledger.agent == 1, "the journal can be read"


def test_numbers_of_numpy_are_numbers(experiment: Write, run: Run) -> None:
    code = """
import numpy as np
def query(user_query, system_prompt, mcp_servers):
    return {"text": "x", "dollars": np.float64(0.5)}
class Scorer:
    def score(self, sample, answer):
        return {"0": np.float64(0.5), "1": np.bool_(True), "2": {"half": np.float32(0.5)}}[sample.id]
"""
    outcome = run(experiment(code, **ONE))
    assert outcome.failed == 0
    assert [reply.dollars for one in outcome.run.events_of(Answer) for reply in one.replies] == [0.5] * 3
    values = {one.trial: next(iter(one.values.values())) for one in outcome.run.events_of(Score)}
    assert {one.sample: values[one.trial] for one in outcome.run.events_of(Answer)} == {"0": 0.5, "1": True, "2": 0.5}


@pytest.mark.parametrize("verdict", ["{'m': object()}", "Verdict(values={}, labels={'w': 3})", "[1, 2]"])
def test_a_verdict_that_is_none_is_a_fault_of_the_scorer(experiment: Write, run: Run, verdict: str) -> None:
    code = (
        PLAIN
        + f"""
from karat.scorers import Verdict
class Scorer:
    def score(self, sample, answer):
        return {verdict}
"""
    )
    outcome = run(experiment(code, **ONE))
    assert kinds(outcome) == {("judge", "bad_verdict"): 3}
    assert summarize(outcome.run).total.ledger.judge == 3


@pytest.mark.parametrize("what", ["asyncio.CancelledError()", "SystemExit(0)"])
def test_an_agent_cannot_end_the_run_from_within(experiment: Write, run: Run, what: str) -> None:
    code = f"""
import asyncio
async def query(user_query, system_prompt, mcp_servers):
    await asyncio.sleep(0)
    if user_query == "q1":
        raise {what}
    return "fine"
class Scorer:
    async def score(self, sample, answer):
        await asyncio.sleep(0)
        if sample.id == "2":
            raise {what}
        return 1.0
"""
    outcome = run(experiment(code, **ONE))
    assert (outcome.reason, outcome.run.status()) == ("done", "done")
    assert kinds(outcome) == {("agent", "crash"): 1, ("judge", "crash"): 1}


@pytest.mark.slow
def test_an_agent_that_does_not_stop_is_abandoned(experiment: Write) -> None:
    code = """
import asyncio
async def query(user_query, system_prompt, mcp_servers):
    for _ in range(6000):
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass
    return "late"
"""
    settings = execution(timeout_seconds=0.1)
    file = experiment(code, questions=1, conditions={"a": {}}, execution=settings)
    # In a process of its own: what was abandoned is destroyed with it, and Python complains of that.
    script = (
        "import asyncio,sys,time\nfrom pathlib import Path\nfrom karat.config import load\n"
        "from karat.execution import RunStatus,run_experiment\nstatus=RunStatus()\nstarted=time.monotonic()\n"
        "asyncio.run(run_experiment(load(sys.argv[1]),results=Path(sys.argv[2]),status=status))\n"
        "print(time.monotonic()-started < 290, status.notices)"
    )
    command = [sys.executable, "-c", script, str(file), str(file.parent / "results")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.startswith("True"), "nobody waited for its five minutes"
    assert "was abandoned" in done.stdout
    (folder,) = (file.parent / "results").iterdir()
    assert [(one.cls, one.kind) for one in RunFolder.open(folder).events_of(Failure)] == [("limit", "timeout")]


def test_a_session_that_fails_to_close_costs_no_answer(experiment: Write, run: Run) -> None:
    code = """
import contextlib
from karat.records import Reply
CALLS = []
class query:
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        class Session:
            async def ask(self, turn):
                CALLS.append(turn.question)
                return Reply(text=turn.question, dollars=1.0)
        yield Session()
        raise ConnectionError("gone while closing")
"""
    watch = RunStatus()
    outcome = run(experiment(code, **ONE), status=watch)
    assert (outcome.failed, len(list(outcome.run.events_of(Answer)))) == (0, 3)
    assert any("did not close well" in notice for notice in watch.notices)


def test_answers_in_hand_survive_a_stop_at_once(experiment: Write) -> None:
    code = """
import asyncio, pathlib
async def query(user_query, system_prompt, mcp_servers):
    with pathlib.Path(__file__).with_name("answered.txt").open("a") as file:
        file.write("x")
    return user_query
class Scorer:
    async def score(self, sample, answer):
        await asyncio.sleep(60)
"""
    file = experiment(code, questions=300, conditions={"a": {}}, execution=execution(max_concurrent=4))

    async def stopped() -> None:
        task = asyncio.create_task(run_experiment(load(file), results=file.parent / "results"))
        answered = file.with_name("answered.txt")
        while not answered.exists() or answered.stat().st_size <= 64:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    (folder,) = (file.parent / "results").iterdir()
    answered = len(file.with_name("answered.txt").read_text())
    assert answered > 64, "more than can wait for the judge"
    assert len(list(RunFolder.open(folder).events_of(Answer))) == answered


@pytest.mark.slow
def test_what_a_failed_attempt_said_and_cost_is_kept(experiment: Write, run: Run) -> None:
    code = """
from karat.records import Reply, ToolCall, Usage
tries = {}
def query(user_query, system_prompt, mcp_servers):
    tries[user_query] = tries.get(user_query, 0) + 1
    error = "broken" if tries[user_query] == 1 else None
    call = ToolCall(tool="t", server="docs", result=None if error else "r", error=error)
    return Reply(text="x", dollars=1.0, usage=Usage(input_tokens=10), tool_calls=(call,))
"""
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"], "scope": "run"}
    gated = {"mcp_servers": ["docs"], "require_mcp_tool_success": True}
    sections: dict[str, Any] = {"mcp_servers": {"docs": docs}, "conditions": {"a": gated}}
    file = experiment(code, questions=3, execution=execution(max_concurrent=1), **sections)
    outcome = run(file)
    attempts = list(outcome.run.events_of(Attempt))
    assert [one.replies[0].dollars for one in attempts] == [1.0] * 3
    account = summarize(outcome.run).total
    assert (account.cost.agent.known, account.cost.agent.unknown, account.tokens.input) == (6.0, 0, 60)
    assert [(use.calls, use.errors) for use in account.servers] == [(6, 3)]
    limited = run(experiment(code, questions=30, execution=execution(max_concurrent=1, budget={"usd": 7}), **sections))
    assert limited.reason == "budget"
    assert summarize(limited.run).total.cost.agent.known <= 7


def test_a_budget_that_cannot_be_measured_stops_and_stays_stopped(experiment: Write, run: Run) -> None:
    watch = RunStatus()
    sections: dict[str, Any] = {"questions": 20, "conditions": {"a": {}}}
    file = experiment(PLAIN, execution=execution(max_concurrent=2, budget={"tokens": 10}), **sections)
    outcome = run(file, status=watch)
    assert outcome.reason == "budget"
    count = len(list(outcome.run.events_of(Answer)))
    assert count <= 2
    assert any("without its tokens" in notice for notice in watch.notices)
    again = run(file, resume=outcome.run.path)
    assert (again.reason, len(list(again.run.events_of(Answer)))) == ("budget", count)


def test_a_provider_that_refuses_everything_is_not_asked_everything(experiment: Write, run: Run) -> None:
    code = """
import pathlib
from karat.errors import InfrastructureFault
def query(user_query, system_prompt, mcp_servers):
    with pathlib.Path(__file__).with_name("calls.txt").open("a") as file:
        file.write("x")
    raise InfrastructureFault("rate_limit", "slow down", retriable=True, retry_after=0.3)
"""
    settings = execution(max_concurrent=5, max_failures=3, retry={"max_attempts": 2, "initial_backoff_seconds": 0.01})
    file = experiment(code, questions=2000, conditions={"a": {}}, execution=settings)
    outcome = run(file)
    assert outcome.reason == "max_failures"
    assert len(file.with_name("calls.txt").read_text()) < 60


def test_a_stop_does_not_wait_for_a_judges_back_off(experiment: Write) -> None:
    code = (
        PLAIN
        + """
from karat.errors import InfrastructureFault
class Scorer:
    async def score(self, sample, answer):
        raise InfrastructureFault("rate_limit", "slow down", retriable=True, retry_after=600)
"""
    )
    attempts: list[Attempt] = []

    def listen(event: Any) -> None:
        if isinstance(event, Attempt) and event.stage == "score":
            attempts.append(event)
            if len(attempts) == 1:  # a second signal would stop the run at once
                asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)

    outcome = stopped(experiment(code, **ONE), listen)
    assert outcome.reason == "interrupted"
    assert not list(outcome.run.events_of(Failure)), "the scores are still owed"


def stopped(file: Path, listener: Callable[[Any], None]) -> Outcome:
    run = run_experiment(load(file), results=file.parent / "results", status=RunStatus(listener), handle_signals=True)
    return asyncio.run(asyncio.wait_for(run, 60))


CLOSING = """
import asyncio, os, pathlib, signal
here = pathlib.Path(__file__).parent
class Scorer:
    def score(self, sample, answer):
        return 1.0
    async def aclose(self):
        os.kill(os.getpid(), signal.SIGINT)
        while not (here / "noticed").exists():
            await asyncio.sleep(0.01)
        {again}
        (here / "closed").touch()
"""


@pytest.mark.parametrize(
    ("again", "closed"),
    [
        pytest.param("pass", True, id="one lets it close"),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM); await asyncio.sleep(600)", False, id="two cut it off"),
    ],
)
def test_a_signal_after_the_end_takes_nothing_from_the_outcome(
    experiment: Write, tmp_path: Path, again: str, closed: bool
) -> None:
    def listen(event: Any) -> None:
        if isinstance(event, str) and event.startswith("the run has ended"):
            (tmp_path / "noticed").touch()

    outcome = stopped(experiment(PLAIN + CLOSING.format(again=again), **ONE), listen)
    assert outcome.reason == "done"
    assert outcome.run.status() == "done"
    assert (tmp_path / "closed").exists() is closed


def test_two_signals_cut_off_a_run_that_is_winding_down_already(experiment: Write) -> None:
    code = """
import asyncio
async def query(user_query, system_prompt, mcp_servers):
    if user_query == "q0":
        raise NotImplementedError("this one fails for good")
    await asyncio.sleep(600)
"""
    settings = execution(max_concurrent=2, max_failures=1, timeout_seconds=600)
    file = experiment(code, questions=2, conditions={"a": {}}, execution=settings)
    watch = RunStatus()

    async def go() -> Outcome:
        run = run_experiment(load(file), results=file.parent / "results", status=watch, handle_signals=True)
        running = asyncio.create_task(run)
        while not watch.draining:
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        while not any(notice.startswith("finishing the trials in flight") for notice in watch.notices):
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        return await running

    outcome = asyncio.run(asyncio.wait_for(go(), 60))
    assert outcome.reason == "max_failures"
    assert [failure.kind for failure in outcome.run.events_of(Failure)] == ["crash"]
    assert "stopping at once: what was in flight is cut off" in watch.notices


def test_conditions_that_override_the_agent_never_share_it(experiment: Write, run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        rows = [{"id": str(number), "answer": name} for number in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    conditions = {"one": {}, "two": {"agent": {"path": "two.jsonl"}}}
    agent = {"type": "replay", "path": "one.jsonl"}
    outcome = run(experiment(agent=agent, conditions=conditions, execution=execution()))
    assert {(one.condition, one.text) for one in outcome.run.events_of(Answer)} == {("one", "one"), ("two", "two")}
    sources = Experiment(
        dataset={"path": str(tmp_path / "questions.jsonl")},
        agent={"type": "python", "target": lambda q: "first"},
        conditions={"x": {}, "y": {"agent": {"target": lambda q: "second"}}},
        scorers=["equals"],
        execution={"num_repetitions": 1},
    )
    outcome = run(sources)
    assert {(one.condition, one.text) for one in outcome.run.events_of(Answer)} == {("x", "first"), ("y", "second")}


def test_two_experiments_of_one_process_have_each_their_own_module(tmp_path: Path) -> None:
    from karat import plugins

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name_of_agents.py").write_text(f"def query():\n    return {name!r}\n")
    found = [plugins.load("same_name_of_agents:query", folder=tmp_path / name)() for name in ("one", "two", "one")]
    assert found == ["one", "two", "one"]


@pytest.mark.parametrize("code", ["import sys\nsys.exit(4)", "1 / 0", "raise KeyError('x')", "def broken(:"])
def test_a_module_that_cannot_be_imported_is_the_operators_to_mend(tmp_path: Path, code: str) -> None:
    from karat import plugins

    name = f"broken_module_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code + "\n")
    with pytest.raises(BadPlugin, match="cannot be imported"):
        plugins.load(f"{name}:query", folder=tmp_path)


def test_a_crash_names_the_line_of_the_agent(experiment: Write, run: Run) -> None:
    code = "def query(user_query, system_prompt, mcp_servers):\n    return {}[user_query]\n"
    outcome = run(experiment(code, **ONE))
    message = next(outcome.run.events_of(Failure)).message
    assert message.startswith("KeyError: 'q")
    assert " (agent_of_" in message
    assert message.endswith(".py, line 2, in query)")


def test_a_resume_with_other_recorded_answers_is_refused(experiment: Write, run: Run, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"id": "0", "answer": "x"}\n')
    file = experiment(agent={"type": "replay", "path": "answers.jsonl"}, conditions={"a": {}}, execution=execution())
    first = run(file)
    assert kinds(first) == {("agent", "not_recorded"): 2}
    answers.write_text('{"id": "0", "answer": "y"}\n{"id": "1", "answer": "z"}\n')
    with pytest.raises(ResumeRefused, match="another file"):
        run(file, resume=first.run.path, retry_failed=True)


def test_trials_count_once_however_many_scorers_fail(experiment: Write, run: Run, tmp_path: Path) -> None:
    (tmp_path / "two_judges.py").write_text(
        "class One:\n    def score(self, sample, answer): raise ValueError('1')\n"
        "class Two:\n    def score(self, sample, answer): raise ValueError('2')\n"
    )
    file = experiment(PLAIN, scorers=["two_judges:One", "two_judges:Two"], **ONE)
    assert run(file).failed == 3
