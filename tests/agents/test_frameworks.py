"""Results of agent frameworks, returned by a Python agent as they are."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from karat.errors import AgentFault
from karat.records import Reply, ToolCall, Usage

Ask = Callable[..., tuple[Reply, ...]]


class City(BaseModel):
    name: str
    people: int


@dataclass
class Place:
    name: str
    at: tuple[float, float]


# LangChain's messages, as langchain-core documents them.


@dataclass
class Human:
    content: Any
    type: str = "human"


@dataclass
class AI:
    content: Any
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage_metadata: dict[str, Any] | None = None
    type: str = "ai"


@dataclass
class Tool:
    content: Any
    tool_call_id: str
    status: str = "success"
    type: str = "tool"


def tokens(first: int, second: int) -> dict[str, int]:
    return {"input_tokens": first, "output_tokens": second, "total_tokens": first + second}


def search(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"name": "search", "args": arguments, "id": call_id, "type": "tool_call"}


# The OpenAI Agents SDK's RunResult, as its documentation describes it.


@dataclass
class RunResult:
    final_output: Any
    new_items: list[Any] = field(default_factory=list)
    raw_responses: list[Any] = field(default_factory=list)
    context_wrapper: Any = None


def call_item(**raw: Any) -> SimpleNamespace:
    return SimpleNamespace(type="tool_call_item", raw_item=SimpleNamespace(**raw))


def output_item(call_id: str, output: Any) -> SimpleNamespace:
    raw = {"type": "function_call_output", "call_id": call_id, "output": str(output)}
    return SimpleNamespace(type="tool_call_output_item", raw_item=raw, output=output)


def counted(first: int, second: int) -> SimpleNamespace:
    return SimpleNamespace(requests=1, input_tokens=first, output_tokens=second, total_tokens=first + second)


def returned(ask: Ask, result: Any) -> Reply:
    return ask("python", {"target": lambda question: result})[0]


def fault(ask: Ask, result: Any) -> str:
    with pytest.raises(AgentFault) as caught:
        returned(ask, result)
    assert caught.value.kind == "bad_reply"
    return caught.value.message


def capital_agent() -> Agent[None, str]:
    """Asks a tool for France, which it gets wrong the first time, and answers with what the tool says."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = sum(isinstance(message, ModelResponse) for message in messages)
        if calls < 2:
            country = ("Frnace", "France")[calls]
            return ModelResponse(parts=[ToolCallPart("capital", {"country": country})])
        return ModelResponse(parts=[TextPart("It is Paris.")])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def capital(country: str) -> dict[str, str]:
        if country != "France":
            raise ModelRetry(f"no country is called {country}")
        return {"capital": "Paris"}

    return agent


def test_a_run_of_pydantic_ai_is_taken_with_its_tool_calls_and_tokens(ask: Ask) -> None:
    async def answer(question: str) -> Any:
        return await capital_agent().run(question)

    (reply,) = ask("python", {"target": answer})
    assert reply.text == "It is Paris."
    wrong, right = reply.tool_calls
    assert (wrong.tool, wrong.server, wrong.input, wrong.result) == ("capital", None, {"country": "Frnace"}, None)
    assert wrong.error is not None
    assert "no country is called Frnace" in wrong.error
    assert right == ToolCall(tool="capital", input={"country": "France"}, result='{"capital":"Paris"}')

    whole = asyncio.run(answer("q")).usage
    assert whole.output_tokens > 0
    assert reply.usage == Usage(input_tokens=whole.input_tokens, output_tokens=whole.output_tokens)


def test_a_synchronous_run_of_pydantic_ai_is_taken(ask: Ask) -> None:
    def answer(question: str) -> Any:
        return Agent(TestModel(custom_output_text="yes")).run_sync(question)

    assert ask("python", {"target": answer})[0].text == "yes"


def test_structured_output_is_json_and_its_output_tool_is_no_tool_call(ask: Ask) -> None:
    async def answer(question: str) -> Any:
        model = TestModel(custom_output_args={"name": "Oslo", "people": 717710})
        return await Agent(model, output_type=City).run(question)

    (reply,) = ask("python", {"target": answer})
    assert (reply.text, reply.tool_calls) == ('{"name":"Oslo","people":717710}', ())


def test_only_the_new_messages_of_a_run_count(ask: Ask) -> None:
    async def answer(question: str) -> Any:
        first = await capital_agent().run(question)
        return await Agent(TestModel(custom_output_text="as before")).run("again", message_history=first.all_messages())

    (reply,) = ask("python", {"target": answer})
    assert (reply.text, reply.tool_calls) == ("as before", ())


def test_a_state_of_langgraph_is_taken_from_the_last_message_of_the_user_on(ask: Ask) -> None:
    state = {
        "messages": [
            Human("before"),
            AI("", [search("0", query="before")], tokens(1000, 1000)),
            Tool("old", "0"),
            AI("old", usage_metadata=tokens(1000, 1000)),
            Human("now"),
            AI("I look", [search("1", query="a"), search("2", query="b")], tokens(10, 2)),
            Tool("no such page", "2", status="error"),
            Tool([{"type": "text", "text": "found"}], "1"),
            AI(
                [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "It is "}, "4."],
                usage_metadata=tokens(20, 3),
            ),
        ]
    }
    expected = Reply(
        text="It is 4.",
        tool_calls=(
            ToolCall(tool="search", input={"query": "a"}, result="found"),
            ToolCall(tool="search", input={"query": "b"}, error="no such page"),
        ),
        usage=Usage(input_tokens=30, output_tokens=5),
    )
    assert returned(ask, state) == expected
    assert returned(ask, state["messages"]) == expected


def test_a_message_alone_is_an_answer(ask: Ask) -> None:
    assert returned(ask, AI("4", usage_metadata=tokens(3, 1))) == Reply(
        text="4", usage=Usage(input_tokens=3, output_tokens=1)
    )


def test_messages_may_be_mappings_as_chat_completions_write_them(ask: Ask) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"query": "a"}'}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
        {"role": "assistant", "content": "4"},
    ]
    expected = Reply(text="4", tool_calls=(ToolCall(tool="search", input={"query": "a"}, result="found"),))
    assert returned(ask, messages) == expected
    assert returned(ask, {"messages": messages}) == expected


def test_a_structured_response_and_a_field_of_the_state_are_the_answer(ask: Ask) -> None:
    messages = [Human("q"), AI("", [search("1")]), Tool("done", "1")]
    state = {"messages": messages, "structured_response": City(name="Oslo", people=3)}
    assert returned(ask, state).text == '{"name":"Oslo","people":3}'
    assert returned(ask, {"messages": messages, "answer": "Oslo"}).text == "Oslo"
    assert returned(ask, messages).text == "done"  # the result of a tool that is returned directly


def test_a_mapping_with_text_keeps_its_own_fields_beside_messages(ask: Ask) -> None:
    said = {"answer": "4", "dollars": 0.5, "messages": [{"role": "assistant", "content": "five"}]}
    assert returned(ask, said) == Reply(text="4", answer="4", dollars=0.5)


def test_further_keys_of_a_mapping_need_no_json_form(ask: Ask) -> None:
    assert returned(ask, {"input": "q", "context": [object()], "output": "4"}) == Reply(text="4")


def test_tokens_are_unknown_where_a_response_has_none(ask: Ask) -> None:
    messages = [AI("", [search("1")], tokens(10, 2)), Tool("found", "1"), AI("4")]
    assert returned(ask, messages).usage is None
    run = RunResult("4", context_wrapper=SimpleNamespace(usage=counted(0, 0)))
    assert returned(ask, run).usage is None


def test_a_result_of_the_openai_agents_sdk_is_taken(ask: Ask) -> None:
    run = RunResult(
        "4",
        [
            SimpleNamespace(type="reasoning_item", raw_item=None),
            call_item(type="function_call", name="search", arguments='{"query": "a"}', call_id="1"),
            call_item(type="function_call", name="search", arguments="not JSON", call_id="2"),
            output_item("2", 7),
            output_item("1", "found"),
            call_item(
                type="mcp_call", name="read", arguments="{}", id="3", server_label="docs", output="page", error=None
            ),
            call_item(
                type="mcp_call", name="read", arguments="{}", id="4", server_label="docs", output=None, error="gone"
            ),
            call_item(type="web_search_call", id="5"),
            call_item(type="shell_call", call_id="6"),
            SimpleNamespace(
                type="tool_call_output_item", raw_item={"call_id": "6", "output": [{"stdout": b"\xff"}, len]}
            ),
        ],
        context_wrapper=SimpleNamespace(usage=counted(30, 5)),
    )
    assert returned(ask, run) == Reply(
        text="4",
        tool_calls=(
            ToolCall(tool="search", input={"query": "a"}, result="found"),
            ToolCall(tool="search", input={"arguments": "not JSON"}, result="7"),
            ToolCall(tool="read", server="docs", result="page"),
            ToolCall(tool="read", server="docs", error="gone"),
            ToolCall(tool="web_search_call"),
            ToolCall(tool="shell_call", result='[{"stdout":"_w=="},"<builtin_function_or_method>"]'),
        ),
        usage=Usage(input_tokens=30, output_tokens=5),
    )


def test_tokens_of_the_responses_count_where_the_run_has_no_sum(ask: Ask) -> None:
    responses = [SimpleNamespace(usage=counted(10, 2)), SimpleNamespace(usage=counted(20, 3))]
    assert returned(ask, RunResult("4", raw_responses=responses)).usage == Usage(input_tokens=30, output_tokens=5)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (City(name="Oslo", people=3), '{"name":"Oslo","people":3}'),
        (Place("Oslo", (59.9, 10.7)), '{"name":"Oslo","at":[59.9,10.7]}'),
        ([1, "a"], '[1,"a"]'),
        (4.5, "4.5"),
        ("", ""),
    ],
)
def test_an_output_that_is_no_text_is_json(ask: Ask, output: object, text: str) -> None:
    assert returned(ask, RunResult(output)).text == text


class Broken:
    new_items = ()

    @property
    def final_output(self) -> str:
        raise SystemExit("the connection was closed")


class Loop:
    def __init__(self) -> None:
        self.loop = self


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (RunResult(None), "interrupted, or did not finish"),
        (RunResult(object()), "cannot be read"),
        (Broken(), "a Broken that cannot be read: SystemExit: the connection was closed"),
        ([Human("q")], "no message of the model follows"),
        ([AI("old"), Human("q"), Tool("found", "1")], "no message of the model follows"),
        ({"messages": [Human("q"), AI("I look", [search("1")])]}, "the run did not finish"),
        (AI(None), "holds no text"),
        (AI([{"type": "reasoning", "reasoning": "hm"}]), "holds no text"),
        ({"messages": []}, "has no 'text'"),
        ({"messages": ["x"]}, "has no 'text'"),
        ([], "the agent returned a list, expected a text, a number, a mapping with `text`"),
        (object(), "the result of an agent framework or a provider's SDK"),
        (Loop(), "the agent returned a Loop, expected"),
        (UserPromptPart("q"), "the agent returned a UserPromptPart, expected"),
    ],
)
def test_a_result_without_an_answer_is_a_fault(ask: Ask, result: object, says: str) -> None:
    assert says in fault(ask, result)


async def client() -> Any:
    return asyncio.get_running_loop()


def test_a_client_that_is_shared_between_threads_is_explained(ask: Ask) -> None:
    loop = asyncio.run(client())  # closed, as the loop of an earlier call is
    connection = sqlite3.connect(":memory:")

    def wrapped(question: str) -> str:
        try:
            loop.call_soon(print)
        except RuntimeError as error:
            raise ConnectionError("connection error") from error
        return question

    def database(question: str) -> str:
        return str(connection.execute("select 1").fetchone())

    for target, says in ((wrapped, "RuntimeError: Event loop is closed"), (database, "in that same thread")):
        with pytest.raises(AgentFault) as caught:
            ask("python", {"target": target})
        assert (caught.value.kind, caught.value.retriable) == ("crash", True)
        assert says in caught.value.message
        assert caught.value.message.endswith("inside the function, or make the function `async def`)")
    connection.close()


def test_a_synchronous_call_in_an_async_agent_is_explained(ask: Ask) -> None:
    async def answer(question: str) -> Any:
        return Agent(TestModel()).run_sync(question)

    with pytest.raises(AgentFault, match="`await` the client's async method"):
        ask("python", {"target": answer})


def test_other_errors_and_faults_of_the_function_pass_as_they_are(ask: Ask) -> None:
    def crashes(question: str) -> str:
        raise RuntimeError("no event loop of mine")

    def says_so(question: str) -> str:
        raise AgentFault("mine", "see the cause") from RuntimeError("Event loop is closed")

    with pytest.raises(RuntimeError, match="of mine"):
        ask("python", {"target": crashes})
    with pytest.raises(AgentFault, match="mine: see the cause"):
        ask("python", {"target": says_so})
