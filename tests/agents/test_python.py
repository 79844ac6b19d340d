"""Functions and objects of the user's own, as they come."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import ValidationError

from karat.agents import Session
from karat.errors import AgentFault, BadPlugin
from karat.records import Condition, Reply, Sample, ToolCall, Trial, Turn

Ask = Callable[..., tuple[Reply, ...]]


def plain(user_query: str, system_prompt: str, mcp_servers: Any) -> str:
    return f"{user_query}|{system_prompt}|{mcp_servers}|{threading.current_thread().name}"


async def later(user_query: str, system_prompt: str, mcp_servers: Any) -> str:
    await asyncio.sleep(0)
    return user_query


def other_names(question: str, prompt: str) -> str:
    return f"{question}/{prompt}"


def only_what_it_needs(user_query: str, *, repetition: int, history: list[dict[str, str]], seed: int) -> dict[str, Any]:
    return {"text": f"{user_query} {repetition} {seed} {history}", "dollars": 0.25}


def with_tools(user_query: str, system_prompt: str, mcp_servers: Any) -> Reply:
    return Reply(text="x", tool_calls=(ToolCall(tool="search", server="docs", result="found"),))


class WithSession:
    @asynccontextmanager
    async def session(self, condition: Condition, sample: Sample) -> AsyncIterator[Session]:
        yield Counting(condition.name + sample.id)


class Counting:
    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    async def ask(self, turn: Turn) -> Reply:
        self.count += 1
        return Reply(text=f"{self.name}:{self.count}:{turn.question}")


class WithAsk:
    async def ask(
        self, condition: Condition, sample: Sample, turn: Turn, history: Sequence[tuple[Turn, Reply]], trial: Trial
    ) -> Reply:
        return Reply(text=f"{trial.repetition}:{[reply.text for _, reply in history]}")


def test_a_plain_query_runs_on_a_thread_of_its_own(ask: Ask) -> None:
    (said,) = ask("python", {"target": plain})
    assert said.text == "q|be brief|{}|karat-call"


def test_an_async_query_is_awaited(ask: Ask) -> None:
    assert ask("python", {"target": later})[0].text == "q"


def test_other_parameter_names_are_filled_in_order(ask: Ask) -> None:
    assert ask("python", {"target": other_names})[0].text == "q/be brief"


def test_a_function_gets_what_it_names_and_may_return_a_mapping(ask: Ask) -> None:
    replies = ask("python", {"target": only_what_it_needs}, repetition=2, turns=("one", "two"))
    assert replies[0] == Reply(text="one 2 7 []", dollars=0.25)
    assert replies[1].text.startswith("two 2 7 [{'question': 'one', 'answer': 'one 2 7 []'}]")


def test_a_reply_passes_as_it_is(ask: Ask) -> None:
    assert ask("python", {"target": with_tools})[0].tool_calls[0].server == "docs"


def test_objects_with_session_or_ask_keep_their_protocol(ask: Ask) -> None:
    assert [reply.text for reply in ask("python", {"target": WithSession()}, turns=("x", "y"))] == ["a0:1:x", "a0:2:y"]
    assert [reply.text for reply in ask("python", {"target": WithAsk}, turns=("x", "y"), repetition=1)] == [
        "1:[]",
        "1:['1:[]']",
    ]


@pytest.mark.parametrize("said", [None, 3, ["x"], {"no": "text"}, {"text": 3}])
def test_what_is_no_answer_is_a_fault_and_not_an_empty_text(ask: Ask, said: object) -> None:
    with pytest.raises(AgentFault) as fault:
        ask("python", {"target": lambda user_query, system_prompt, mcp_servers: said})
    assert fault.value.kind == "bad_reply"


def test_a_function_may_run_an_event_loop_and_may_leave_by_system_exit(ask: Ask) -> None:
    assert ask("python", {"target": lambda q, s, m: asyncio.run(later(q, s, m))})[0].text == "q"

    def leaves(user_query: str, system_prompt: str, mcp_servers: Any) -> str:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        ask("python", {"target": leaves})


def test_a_function_that_hangs_is_given_up_at_once(ask: Ask) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        ask("python", {"target": lambda q, s, m: time.sleep(60)}, timeout=0.1)
    assert time.monotonic() - started < 40


@pytest.mark.parametrize(
    ("target", "says"),
    [("no_such_module:query", "cannot be imported"), ("json:dumpz", "did you mean 'dump")],
)
def test_a_target_that_is_not_there_is_named(ask: Ask, target: str, says: str) -> None:
    with pytest.raises(BadPlugin, match=says):
        ask("python", {"target": target})


@pytest.mark.parametrize("target", ["module", ":query", "module:", 3])
def test_a_target_is_a_module_and_a_name(ask: Ask, target: object) -> None:
    with pytest.raises(ValidationError, match="module:function"):
        ask("python", {"target": target})
