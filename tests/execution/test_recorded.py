"""Answers that exist are journalled and scored in batches, and a batch that is cut off is made whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.running_commands import Done

from karat.execution import Outcome
from karat.journal import RunFolder
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
