"""Functions and objects of the user's own, as they come."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import karat
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


@dataclasses.dataclass
class CallableDataclass:
    style: str = "brief"

    def __call__(self, question: str) -> str:
        return f"{self.style} {question}"


class CallableModel(BaseModel):
    style: str = "brief"

    def __call__(self, question: str) -> str:
        return f"{self.style} {question}"


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


def test_other_usual_names_are_bound(ask: Ask) -> None:
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


@pytest.mark.parametrize("said", [None, True, ["x"], {"no": "text"}, {"text": ["x"]}])
def test_what_is_no_answer_is_a_fault_and_not_an_empty_text(ask: Ask, said: object) -> None:
    with pytest.raises(AgentFault) as fault:
        ask("python", {"target": lambda user_query, system_prompt, mcp_servers: said})
    assert fault.value.kind == "bad_reply"


def test_a_function_may_run_an_event_loop_and_may_leave_by_system_exit(ask: Ask) -> None:
    assert ask("python", {"target": lambda q: asyncio.run(later(q, "", {}))})[0].text == "q"

    def leaves(user_query: str, system_prompt: str, mcp_servers: Any) -> str:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        ask("python", {"target": leaves})


def test_a_function_that_hangs_is_given_up_at_once(ask: Ask) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        ask("python", {"target": lambda q: time.sleep(60)}, timeout=0.1)
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


def flat(*said: object) -> str:
    return "|".join(map(str, said))


class AsyncCall:
    async def __call__(self, query: str, instructions: str) -> str:
        return flat(query, instructions)


class AsksByName:
    def ask(self, question: str, system: str) -> str:
        return flat(question, system)


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return inner


async def with_model(model: str, question: str, system_prompt: str) -> str:
    return flat(model, question, system_prompt)


def camel(userQuery: str, systemPrompt: str) -> str:  # noqa: N803 -- the names are what is tested
    return flat(userQuery, systemPrompt)


def positional_only(prompt: str, extra: int = 3, system_prompt: str = "mine", /) -> str:
    return flat(prompt, extra, system_prompt)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        pytest.param(
            lambda question, system_prompt="You are helpful": f"{question}|{system_prompt}",
            "q|be brief",
            id="a default gives way",
        ),
        pytest.param(lambda question, system_prompt: f"{question}|{system_prompt}", "q|be brief", id="two names"),
        pytest.param(lambda system, question: f"{system}|{question}", "be brief|q", id="by name, not by place"),
        pytest.param(
            lambda prompt, system_prompt, tools: f"{prompt}|{system_prompt}|{tools}",
            "q|be brief|{}",
            id="prompt is the question",
        ),
        pytest.param(lambda question, prompt: f"{question}|{prompt}", "q|be brief", id="prompt beside a question"),
        pytest.param(lambda question, seed: f"{question}|{seed}", "q|7", id="seed"),
        pytest.param(lambda question, history=(): f"{question}|{history}", "q|[]", id="history with a default"),
        pytest.param(
            lambda said, instructions: f"{said}|{instructions}", "q|be brief", id="the first free one is the question"
        ),
        pytest.param(
            lambda system_prompt, said: f"{system_prompt}|{said}", "be brief|q", id="the first free one comes last"
        ),
        pytest.param(camel, "q|be brief", id="camel case"),
        pytest.param(
            lambda question, temperature=0.5: f"{question}|{temperature}", "q|0.5", id="an unknown one with a default"
        ),
        pytest.param(lambda question, text="plain": f"{question}|{text}", "q|plain", id="the required one of two"),
        pytest.param(
            lambda question, tools=("mine",): f"{question}|{tools}", "q|('mine',)", id="no servers: the default stays"
        ),
        pytest.param(lambda *, repetition, question: f"{repetition}|{question}", "0|q", id="keywords only"),
        pytest.param(positional_only, "q|3|be brief", id="positional only, with a gap"),
        pytest.param(lambda *args: f"{args[0]}", "q", id="only *args"),
        pytest.param(lambda system_prompt, *args: f"{system_prompt}|{args[0]}", "be brief|q", id="*args behind a name"),
        pytest.param(
            lambda question, **rest: flat(question, *sorted(rest)), "q|history|mcp_servers|system_prompt", id="**kwargs"
        ),
        pytest.param(
            logged(lambda question, system_prompt: f"{question}|{system_prompt}"), "q|be brief", id="decorated"
        ),
        pytest.param(functools.partial(with_model, "m1"), "m1|q|be brief", id="partial, async, by place"),
        pytest.param(functools.partial(with_model, model="m1"), "m1|q|be brief", id="partial, async, by name"),
        pytest.param(AsyncCall(), "q|be brief", id="an object with an async __call__"),
        pytest.param(AsyncCall, "q|be brief", id="its class"),
        pytest.param(AsksByName(), "q|be brief", id="an object whose ask names its values"),
    ],
)
def test_arguments_are_bound_by_name_and_the_question_also_by_place(ask: Ask, target: object, says: str) -> None:
    assert ask("python", {"target": target})[0].text == says


@pytest.mark.needs_kind("conversation")
def test_a_function_may_use_a_name_that_a_kind_of_dataset_declares(ask: Ask) -> None:
    def earlier(question: str, conversation_history: list[dict[str, str]]) -> str:
        return " ".join(message["content"] for message in conversation_history)

    assert ask("python", {"target": earlier}, turns=("a", "b"))[1].text == "a "


def test_history_comes_in_the_form_that_its_name_stands_for(ask: Ask) -> None:
    def chat(messages: list[dict[str, str]]) -> str:
        return " ".join(f"{one['role']}:{one['content']}" for one in messages)

    def earlier(question: str, chat_history: list[dict[str, str]] | None = None) -> str:
        return chat(chat_history or [])

    assert [reply.text for reply in ask("python", {"target": chat}, turns=("one", "two"))] == [
        "system:be brief user:one",
        "system:be brief user:one assistant:system:be brief user:one user:two",
    ]
    assert [reply.text for reply in ask("python", {"target": earlier}, turns=("one", "two"))] == [
        "",
        "user:one assistant:",
    ]


class NeedsMore:
    async def ask(self, condition: Condition, sample: Sample) -> Reply:
        return Reply(text="never")


class OpensWithout:
    def session(self) -> None:
        return None


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (lambda question, context, k: "", r"<lambda>\(question, context, k\): .*'context'.*'k'.*It may name: question"),
        (lambda question, systm_prompt: "", r"'systm_prompt' \(did you mean 'system_prompt'\?\)"),
        (lambda question, query: "", "'question' and 'query' both ask for the question"),
        (lambda system, system_prompt, question: "", "'system' and 'system_prompt' both ask for the system prompt"),
        (lambda system_prompt, temperature=0.2: "", "no parameter takes the question"),
        (lambda: "", "no parameter takes the question"),
        (lambda *args, **kwargs: "", "functools.wraps"),
        (NeedsMore(), r"NeedsMore.ask\(condition.*expected ask\(condition, sample, turn, history\)"),
        (OpensWithout(), r"OpensWithout.session\(\).*expected session\(condition, sample\)"),
    ],
)
def test_what_cannot_be_bound_is_refused_before_anything_is_asked(ask: Ask, target: object, says: str) -> None:
    with pytest.raises(BadPlugin, match=f"(?s){says}"):
        ask("python", {"target": target}, turns=())


def test_a_function_that_yields_is_refused(ask: Ask) -> None:
    def pieces(question: str) -> Any:
        yield question

    with pytest.raises(BadPlugin, match="yields its answer in pieces"):
        ask("python", {"target": pieces}, turns=())


@pytest.mark.parametrize("target", [CallableDataclass(), CallableModel()])
def test_an_object_that_can_be_called_stays_the_object_it_is(tmp_path: Path, target: Any) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "answer": "brief Q?"}\n', encoding="utf-8")
    experiment = karat.Experiment(
        dataset={"path": str(tmp_path / "q.jsonl")},
        agent={"type": "python", "target": target},
        scorers=["equals"],
        conditions={"only": {}},
    )
    assert experiment.agent.options["target"] is target
