"""Parts of an experiment that are run apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import BadOption
from karat.execution import Outcome, Selection, Shard
from karat.execution.plan import plan
from karat.journal import RunFolder

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[..., Path]
Run = Callable[..., Outcome]

AGENT = """
from karat import AgentFault, Reply, Usage

async def query(question, *, condition, repetition, **_):
    number = int(question[1:])
    if number % 5 == 4:
        raise AgentFault("refused", "not this one")
    text = f"a{number}" if (number + repetition) % 3 or condition == "b" else "?"
    return Reply(text=text, dollars=0.1 * number + 0.03, usage=Usage(input_tokens=number, output_tokens=1))
"""


def shards(run: Run, file: Path, of: int, *numbers: int, **options: Any) -> list[RunFolder]:
    return [
        run(file, selection=Selection(shard=Shard(number, of)), **options).run for number in numbers or range(1, of + 1)
    ]


@given(of=st.integers(1, 9), limit=st.integers(1, 12), repetitions=st.integers(1, 4))
def test_every_trial_is_in_one_shard_whatever_is_selected(of: int, limit: int, repetitions: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        rows = [json.dumps({"question": f"q{number}", "answer": "a"}) + "\n" for number in range(12)]
        Path(folder, "questions.jsonl").write_text("".join(rows))
        experiment = karat.Experiment(
            dataset={"path": "questions.jsonl"}, agent={"type": "floor"}, scorers=[], conditions={"a": {}, "b": {}},
            execution={"num_repetitions": repetitions}, folder=folder,
        )  # fmt: skip
        dataset = experiment.load_dataset()
        whole = {trial.id: trial.index for trial in plan(experiment, dataset, limit=limit)}
        parts = [plan(experiment, dataset, limit=limit, shard=Shard(number, of)) for number in range(1, of + 1)]
        found = [(trial.id, trial.index) for part in parts for trial in part]
        assert sorted(found) == sorted(whole.items())
        assert [len(part) for part in parts] == [len(list(part)) for part in parts]
        every = plan(experiment, dataset, shard=Shard(1, of))
        assert {trial.id for trial in parts[0]} == {trial.id for trial in every if trial.id in whole}


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "1/3/2", "-1/3", "1/0", "1 /3"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(BadOption, match="--shard: must be I/N"):
        Shard.parse(text)


def test_a_shard_may_spend_and_ask_its_part(experiment: Write, run: Run) -> None:
    code = """
from karat import Reply
from karat.models import parse_model, rate_limit

async def query(question, **_):
    limit = rate_limit(parse_model("openai:gpt-x"))
    return Reply(text=f"{limit.rate.requests_per_minute} {limit.rate.tokens_per_minute}", dollars=1.0)
"""
    file = experiment(
        code, questions=40, limits={"openai:gpt-x": {"requests_per_minute": 90}},
        execution={"budget": {"usd": 30}, "max_concurrent": 1},
    )  # fmt: skip
    outcome = run(file, selection=Selection(shard=Shard(2, 3)))
    answers = [event for event in outcome.run.events() if isinstance(event, karat.Answer)]
    assert {answer.text for answer in answers} == {"30.0 None"}
    assert outcome.reason == "budget"
    assert len(answers) == 10


def test_a_run_that_may_stop_early_is_not_divided(experiment: Write, run: Run) -> None:
    file = experiment(AGENT, questions=30, execution={"stop": {"metric": "equals"}}, baseline="a")
    with pytest.raises(BadOption, match="looks at all answers together"):
        shards(run, file, 2, 1)
