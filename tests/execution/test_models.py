"""Runs that ask models: what was spent, what is paced, what is refused, what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("pydantic_ai") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `chat`", allow_module_level=True)

from tests.running_experiments import Run, RunStatus

from karat.config import load
from karat.errors import BadOption
from karat.journal import Attempt
from karat.records import Answer, Failure, Usage
from karat.testing.models import Request, serve

Write = Callable[..., Path]
PRICES = {"openai:rehearsal": {"input": 1.0, "output": 10.0}}


def chat(server: Any, **options: Any) -> dict[str, Any]:
    return {"type": "chat", "model": "openai:rehearsal", "base_url": server.openai_url, **options}


@pytest.mark.slow
def test_a_rate_limit_is_waited_for_and_slows_everybody_down(experiment: Write, run: Run) -> None:
    """Seven at a time are too many for this provider: it refuses, and the run finds its pace."""
    seen: list[str] = []
    watch = RunStatus(lambda event: seen.extend(watch.slowed))
    too_many = {"when": {"busy": 4}, "say": [{"status": 429, "retry_after": 0.05}]}
    with serve([too_many, {"say": [{"text": "yes", "delay": 0.01}]}]) as server:
        patience = {"max_attempts": 20, "initial_backoff_seconds": 0.01, "max_backoff_seconds": 0.02}
        file = experiment(agent=chat(server), questions=30, execution={"max_concurrent": 12, "retry": patience})
        outcome = run(file, status=watch)
        most = server.most_busy
    events = list(outcome.run.events())
    assert outcome.failed == 0
    assert sum(isinstance(event, Answer) for event in events) == 120
    refusals = [event for event in events if isinstance(event, Attempt)]
    assert refusals
    assert {(one.cls, one.kind, one.retriable) for one in refusals} == {("infrastructure", "rate_limit", True)}
    assert most <= 12
    assert seen
    assert seen[0].startswith("openai 127.0.0.1:")


def test_what_a_failed_attempt_spent_is_journalled_also_where_time_ran_out(experiment: Write, run: Run) -> None:
    first = {
        "tool_calls": [{"name": "nothing", "arguments": {}}],
        "usage": {"input": 1000, "output": 100},
    }
    with serve([{"say": [first, {"hang": True}]}]) as server:
        execution = {"num_repetitions": 1, "timeout_seconds": 1.0}
        file = experiment(
            agent=chat(server), questions=1, conditions={"a": {}}, prices=PRICES, execution=execution, scorers=[]
        )
        outcome = run(file)
    (attempt,) = outcome.run.events_of(Attempt)
    (failure,) = outcome.run.events_of(Failure)
    assert (attempt.cls, attempt.kind) == (failure.cls, failure.kind) == ("limit", "timeout")
    assert attempt.usage == Usage(input_tokens=1000, output_tokens=100)
    assert attempt.dollars == pytest.approx(0.002)


def test_a_limit_of_turns_keeps_what_was_said(experiment: Write, run: Run) -> None:
    turn = {"text": "again", "tool_calls": [{"name": "nothing", "arguments": {}}]}
    with serve([{"say": [turn]}]) as server:
        file = experiment(
            agent=chat(server, max_turns=2),
            questions=1,
            conditions={"a": {}},
            execution={"num_repetitions": 1},
            scorers=[],
        )
        outcome = run(file)
    (attempt,) = outcome.run.events_of(Attempt)
    (failure,) = outcome.run.events_of(Failure)
    assert (failure.cls, failure.kind) == ("limit", "max_turns")
    (said,) = attempt.replies
    assert said.text == "again\n\nagain"
    assert len(said.tool_calls) == 2


def test_a_budget_in_dollars_wants_prices_and_then_holds(experiment: Write, run: Run, tmp_path: Path) -> None:
    with serve([{"say": [{"text": "yes", "usage": {"input": 100_000, "output": 10_000}}]}]) as server:
        execution = {"budget": {"usd": 1.0}, "max_concurrent": 2, "num_repetitions": 5}
        sections = {"agent": chat(server), "conditions": {"a": {}}, "scorers": [], "execution": execution}
        with pytest.raises(BadOption, match=r"execution\.budget\.usd: .*no price is known for 'openai:rehearsal'"):
            run(experiment(questions=3, **sections))
        assert not (tmp_path / "results").exists()
        assert server.requests == []
        outcome = run(experiment(questions=3, prices=PRICES, **sections))
    assert outcome.reason == "budget"
    dollars = [answer.replies[0].dollars for answer in outcome.run.events_of(Answer)]
    assert dollars == pytest.approx([0.2] * 5)


def test_the_run_tells_versions_and_prices(experiment: Write, run: Run) -> None:
    with serve([{"say": ["yes"]}]) as server:
        file = experiment(agent=chat(server), questions=1, prices=PRICES, scorers=[])
        info = run(file).run.info
    assert {"karat", "pydantic-ai-slim", "genai-prices", "openai"} <= set(info.versions)
    chosen = {key: choice.value for key, choice in info.experiment.items() if key.startswith("prices.")}
    assert chosen == {f"prices.openai:rehearsal.{key}": value for key, value in PRICES["openai:rehearsal"].items()} | {
        "prices.openai:rehearsal.cache_read": None,
        "prices.openai:rehearsal.cache_write": None,
    }


def test_conditions_may_ask_different_models(experiment: Write, run: Run) -> None:
    with serve(lambda request: f"I am {request.model}") as server:
        conditions = {"small": {}, "large": {"agent": {"model": "openai:large"}}}
        file = experiment(agent=chat(server), questions=1, conditions=conditions, scorers=[])
        outcome = run(file)
    said = {(answer.condition, answer.text) for answer in outcome.run.events_of(Answer)}
    assert said == {("small", "I am rehearsal"), ("large", "I am large")}


def test_the_key_is_never_written(
    experiment: Write, run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = "canary-of-the-provider"

    def echo(request: Request) -> dict[str, Any]:
        return {"status": 401, "error": f"{request.headers['authorization']} is not valid"}

    with serve(echo) as server:
        file = experiment(agent=chat(server), questions=1, conditions={"a": {}}, scorers=[])
        outcome = run(load(file, env={"OPENAI_API_KEY": key}))
    (failure, *_) = outcome.run.events_of(Failure)
    assert failure.kind == "unauthorized"
    assert "Bearer ${OPENAI_API_KEY} is not valid" in failure.message
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert key.encode() not in written
    assert key not in "".join(capfd.readouterr())
    assert json.loads((outcome.run.path / "run.json").read_text())["format"] == 2
