"""Answers that exist are journalled and scored in batches, and a batch that is cut off is made whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.running_commands import Done

from karat.config import load
from karat.execution import Outcome, RunStatus
from karat.journal import Attempt, RunFolder
from karat.records import Answer, Failure, Score

ENDING = """
import os
from pathlib import Path

class Ending:
    def score(self, sample, answer):
        if sample.id == "700" and not Path("again").exists():
            os._exit(7)
        return answer.text == "7"
"""
EXPERIMENT = """
dataset: {path: rows.csv, question_key: q, answer_key: a, id_key: id}
agent: {type: replay, path: said.csv, answer_key: said}
conditions: {answers: {}}
scorers: ["ending:Ending"]
execution: {num_repetitions: 1, max_failures: 100}
"""


@pytest.mark.slow
def test_a_scorer_that_ends_the_process_costs_no_answer_and_none_is_written_twice(
    here: Path, process: Callable[..., Done]
) -> None:
    ids = [str(number) for number in range(1200)]
    (here / "rows.csv").write_text("id,q,a\n" + "".join(f"{name},{name}?,7\n" for name in ids))
    (here / "said.csv").write_text("id,said\n" + "".join(f"{name},7\n" for name in ids if name != "40"))
    (here / "ending.py").write_text(ENDING)
    (here / "experiment.yaml").write_text(EXPERIMENT)

    assert process("run", "experiment.yaml").code == 7
    (folder,) = (here / "results").glob("[!.]*")
    answered = [answer.sample for answer in RunFolder.open(folder).events_of(Answer)]
    assert "700" in answered

    (here / "again").touch()
    resumed = process("run", "experiment.yaml", "--resume", folder)
    assert resumed.code == 3, resumed.err
    run = RunFolder.open(folder)
    assert sorted(answer.sample for answer in run.events_of(Answer)) == sorted({*ids} - {"40"})
    assert len({score.trial for score in run.events_of(Score)}) == len(list(run.events_of(Score))) == 1199
    assert {failure.kind for failure in run.events_of(Failure)} == {"not_recorded"}


def test_a_run_stops_at_its_limit_of_failures(here: Path, karat: Callable[..., Done]) -> None:
    (here / "rows.csv").write_text("id,q,a\n" + "".join(f"{number},{number}?,7\n" for number in range(900)))
    (here / "said.csv").write_text("id,said\n0,7\n")
    (here / "experiment.yaml").write_text(EXPERIMENT.replace("ending:Ending", "equals"))
    assert karat("run", "experiment.yaml").code == 3
    (folder,) = (here / "results").glob("[!.]*")
    assert len(list(RunFolder.open(folder).events_of(Failure))) == 100


def test_an_answer_that_is_looked_up_says_when(experiment: Callable[..., Path], run: Callable[..., Outcome]) -> None:
    file = experiment(agent={"type": "replay", "path": "answers.jsonl"}, conditions={"a": {}})
    rows = [{"id": str(row), "answer": f"a{row}"} for row in range(3)]
    file.with_name("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = datetime.now(UTC)
    answers = list(run(file).run.events_of(Answer))
    assert len(answers) == 3
    for answer in answers:
        assert before - timedelta(seconds=1) < datetime.fromisoformat(answer.started) <= datetime.now(UTC)


def test_a_condition_whose_server_is_broken_is_not_looked_up(
    experiment: Callable[..., Path], run: Callable[..., Outcome]
) -> None:
    file = experiment(
        agent={"type": "replay", "path": "answers.jsonl"},
        mcp_servers={"gone": {"type": "stdio", "command": "/nowhere/server"}},
        conditions={"plain": {}, "served": {"mcp_servers": ["gone"]}},
        execution={"num_repetitions": 1},
    )
    rows = [{"id": str(row), "answer": f"a{row}"} for row in range(3)]
    file.with_name("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = run(file).run
    assert [answer.condition for answer in ended.events_of(Answer)] == ["plain"] * 3
    assert {(lost.condition, lost.stage, lost.cls) for lost in ended.events_of(Failure)} == {
        ("served", "preflight", "infrastructure")
    }


RECORDED = """
from karat import AgentFault, LimitReached, Reply, ToolCall

class Agent:
    def recorded_reply(self, trial, number):
        question = trial.sample.turns[number].question
        if question == "q1":
            raise AgentFault("nonsense", "none of these", dollars=0.5)
        if question == "q2":
            raise LimitReached("max_turns", "too many turns")
        if question == "q3":
            return "no reply"
        failed = "broken" if question == "q4" else None
        calls = (ToolCall(tool="t", server="docs", error=failed),) if question != "q5" else ()
        return Reply(text=f"a{question[1:]} canary-of-the-run", milliseconds=250.0, dollars=0.25, tool_calls=calls)

    async def ask(self, condition, sample, turn, history):
        raise AssertionError("what is recorded is not asked")
"""


def test_what_is_looked_up_is_checked_and_counted_as_what_is_asked(
    experiment: Callable[..., Path], run: Callable[..., Outcome], tmp_path: Path
) -> None:
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"], "scope": "run"}
    gates = {"mcp_servers": ["docs"], "require_mcp_tool_use": True, "require_mcp_tool_success": True}
    file = experiment(
        RECORDED, questions=7, agent={"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent"},
        mcp_servers={"docs": docs}, conditions={"a": gates}, secrets=["CANARY"], execution={"num_repetitions": 1},
    )  # fmt: skip
    status = RunStatus()
    outcome = run(load(file, env={"CANARY": "canary-of-the-run", "PATH": os.environ["PATH"]}), status=status)
    assert (outcome.reason, outcome.failed) == ("done", 5)
    answers = list(outcome.run.events_of(Answer))
    assert [(answer.sample, answer.text, answer.seconds, answer.condition) for answer in answers] == [
        ("0", "a0 ${CANARY}", 0.25, "a"),
        ("6", "a6 ${CANARY}", 0.25, "a"),
    ]
    told = {
        "1": ("agent", "nonsense"),
        "2": ("limit", "max_turns"),
        "3": ("agent", "bad_reply"),
        "4": ("agent", "gate_tool_success"),
        "5": ("agent", "gate_tool_use"),
    }
    failures = list(outcome.run.events_of(Failure))
    assert {failure.sample: (failure.cls, failure.kind) for failure in failures} == told
    assert {(failure.stage, failure.condition, failure.repetition) for failure in failures} == {("agent", "a", 0)}
    attempts = list(outcome.run.events_of(Attempt))
    assert [(one.trial, one.n, one.cls, one.kind) for one in attempts] == [
        (failure.trial, 1, failure.cls, failure.kind) for failure in failures
    ]
    assert [one.dollars for one in attempts] == [0.5, None, None, None, None]
    assert [[reply.dollars for reply in one.replies] for one in attempts] == [[], [], [], [0.25], [0.25]]
    assert (status.planned, status.settled, status.failed, status.answered) == (7, 7, 5, 2)
    assert len({score.trial for score in outcome.run.events_of(Score)}) == 2


@pytest.mark.parametrize(("most", "reason"), [(4, "max_failures"), (5, "done")])
def test_answers_that_were_cut_off_are_no_failures_that_end_a_run(
    experiment: Callable[..., Path], run: Callable[..., Outcome], tmp_path: Path, most: int, reason: str
) -> None:
    """Under each of two conditions one has a limit, and two fail otherwise."""
    agent = {"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent"}
    file = experiment(RECORDED, questions=4, agent=agent, execution={"num_repetitions": 1, "max_failures": most})
    outcome = run(file)
    assert outcome.reason == reason
    assert outcome.failed == 6
