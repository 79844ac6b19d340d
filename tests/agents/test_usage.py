"""Token counts of providers and frameworks, in the shapes that their documentation gives."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from karat.agents._answers import reply_from
from karat.errors import AgentFault
from karat.models.prices import Price
from karat.models.usage import unread_counts, usage_from
from karat.records import Elicited, Reply, ToolCall, Usage

Ask = Callable[..., tuple[Reply, ...]]

OPENAI_CHAT = {
    "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300,
    "prompt_tokens_details": {"cached_tokens": 400, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 200},
}  # fmt: skip
OPENAI_RESPONSES = {
    "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 300,
    "output_tokens_details": {"reasoning_tokens": 200}, "total_tokens": 1300,
}  # fmt: skip
ANTHROPIC = {
    "input_tokens": 100, "output_tokens": 30, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50,
    "service_tier": "standard",
}  # fmt: skip
GOOGLE = {
    "promptTokenCount": 1000, "candidatesTokenCount": 20, "thoughtsTokenCount": 10, "cachedContentTokenCount": 400,
    "toolUsePromptTokenCount": 5, "totalTokenCount": 1035,
}  # fmt: skip
LANGCHAIN = {
    "input_tokens": 1000, "output_tokens": 300, "total_tokens": 1300,
    "input_token_details": {"cache_read": 400, "cache_creation": 50}, "output_token_details": {"reasoning": 200},
}  # fmt: skip
BEDROCK = {"inputTokens": 100, "outputTokens": 30, "totalTokens": 130, "cacheReadInputTokens": 900}
LITELLM_OF_ANTHROPIC = {
    "prompt_tokens": 1050, "completion_tokens": 30, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50,
}  # fmt: skip
XAI = {
    "prompt_tokens": 37, "completion_tokens": 530, "total_tokens": 800,
    "completion_tokens_details": {"reasoning_tokens": 233},
}  # fmt: skip
CACHED_AS_MUCH = {
    "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 184,
    "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 64},
}  # fmt: skip
GEMINI_CHAT = {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 1052}
GATEWAY = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 915, "cache_read_input_tokens": 900}
COHERE = {"billed_units": {"input_tokens": 5, "output_tokens": 1}, "tokens": {"input_tokens": 70, "output_tokens": 4}}
GOOGLE_SDK = SimpleNamespace(prompt_token_count=7, candidates_token_count=2, thoughts_token_count=None)


@pytest.mark.parametrize(
    ("reported", "input_tokens", "output_tokens", "read", "written", "reasoning"),
    [
        pytest.param(OPENAI_CHAT, 1000, 300, 400, None, 200, id="OpenAI chat completions"),
        pytest.param(OPENAI_RESPONSES, 1000, 300, 400, None, 200, id="OpenAI responses"),
        pytest.param(ANTHROPIC, 1050, 30, 900, 50, None, id="Anthropic leaves cached tokens out"),
        pytest.param(LITELLM_OF_ANTHROPIC, 1050, 30, 900, 50, None, id="LiteLLM includes them"),
        pytest.param(GOOGLE, 1005, 30, 400, None, 10, id="Google leaves thoughts and tools out"),
        pytest.param(GOOGLE_SDK, 7, 2, None, None, None, id="an object of Google's SDK"),
        pytest.param(LANGCHAIN, 1000, 300, 400, 50, 200, id="LangChain"),
        pytest.param(BEDROCK, 1000, 30, 900, None, None, id="Bedrock leaves cached tokens out"),
        pytest.param(XAI, 37, 763, None, None, 233, id="xAI leaves reasoning out of the output"),
        pytest.param(CACHED_AS_MUCH, 100, 84, 64, None, 64, id="as much reasoning as cached input"),
        pytest.param(GEMINI_CHAT, 12, 1040, None, None, None, id="Gemini's chat completions do not even name it"),
        pytest.param(GATEWAY, 910, 5, 900, None, None, id="a gateway that leaves cached tokens out"),
        pytest.param(COHERE, 70, 4, None, None, None, id="Cohere"),
        pytest.param({"prompt_eval_count": 26, "eval_count": 290}, 26, 290, None, None, None, id="Ollama"),
        pytest.param({"input_tokens": 9, "cache_read_tokens": 4}, 9, None, 4, None, None, id="karat includes them"),
        pytest.param({"input_tokens": 5.0, "output_tokens": Decimal(1)}, 5, 1, None, None, None, id="whole floats"),
        pytest.param({"input_tokens": 5, "output_tokens": 1.5}, 5, None, None, None, None, id="no whole number"),
    ],
)
def test_tokens_are_counted_as_the_provider_means_them(reported, input_tokens, output_tokens, read, written, reasoning):
    assert usage_from(reported) == Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )


def test_what_counts_no_tokens_is_unknown_and_its_names_are_given():
    assert usage_from({"tokens_in": 5}) is usage_from(None) is usage_from("5") is None
    assert unread_counts({"tokens_in": 5, "input_tokens": "5", "total_tokens": 5}) == ["tokens_in", "input_tokens"]
    assert unread_counts(OPENAI_CHAT | GOOGLE | ANTHROPIC) == ["audio_tokens"]


class AgentText(str):
    """A text that prints itself differently, as smolagents' does."""

    __slots__ = ()

    def __str__(self) -> str:
        return "printed"


def test_costs_and_numbers_of_any_type_are_taken():
    unread: set[str] = set()
    reply = reply_from(
        {"answer": Decimal("15.770"), "unit": AgentText("million"), "cost": Decimal("0.02"), "sources": []}, unread
    )
    assert (reply.text, reply.answer, reply.unit, reply.dollars) == ("15.770", "15.770", "million", 0.02)
    assert type(reply.unit) is str
    assert unread == {"sources"}
    assert reply_from(AgentText("A")) == Reply(text="A")
    assert reply_from(42).text == "42"
    assert reply_from({"text": "x", "dollars": 0.5, "cost": 9}).dollars == 0.5
    assert reply_from({"answer": "x", "output": "y", "response": "x"}, unread).text == "x"
    assert unread == {"sources", "output"}
    assert reply_from({"text": "x", "toolCalls": [{"toolName": "find"}]}, unread).text == "x"
    assert unread == {"sources", "output", "toolCalls"}
    assert reply_from({"text": "x", "cost": np.float32(0.5), "usage": {"input_tokens": np.int64(7)}}).usage is not None
    for no_answer in (None, True, [1], {"text": True}):
        with pytest.raises(AgentFault):
            reply_from(no_answer)


@pytest.mark.parametrize(
    ("named", "value"),
    [
        ("cost", -1.0),
        ("cost", float("nan")),
        ("dollars", "0.02"),
        ("total_cost", 1e9),
        ("cost", 10**400),
        ("cost", Decimal("sNaN")),
        ("usage", [{"input_tokens": 7}]),
        ("usage.input_tokens", {"input_tokens": -5, "output_tokens": 2}),
        ("usage.output_tokens", {"input_tokens": 5, "output_tokens": 10**13}),
    ],
)
def test_no_answer_is_lost_for_a_cost_or_a_count_that_cannot_be_right(named, value):
    unread: set[str] = set()
    reply = reply_from({"text": "Paris", named.partition(".")[0]: value}, unread)
    assert (reply.text, reply.dollars) == ("Paris", None)
    assert unread == {named}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", {"name": "m"}),
        ("reasoning", ["first", "then"]),
        ("milliseconds", float("nan")),
        ("milliseconds", "12"),
        ("responses", ["Paris"]),
        ("agent", 5),
    ],
)
def test_no_answer_is_lost_for_a_key_that_means_something_else_to_karat(name, value):
    unread: set[str] = set()
    assert reply_from({"text": "Paris", name: value}, unread) == Reply(text="Paris")
    assert unread == {name}


def test_tool_calls_are_read_in_the_forms_that_agents_give_them():
    asked = {"type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}
    made = {"name": "find", "args": {"q": "x"}, "output": {"hits": 2}, "milliseconds": float("nan")}
    reply = reply_from({"text": "Paris", "tool_calls": [asked, made, "look"]})
    assert reply.tool_calls == (
        ToolCall(tool="find", input={"q": "x"}),
        ToolCall(tool="find", input={"q": "x"}, result='{"hits":2}'),
        ToolCall(tool="look"),
    )
    assert reply_from({"text": "Paris", "tool_calls": ""}).tool_calls == ()
    assert reply_from({"text": "Paris", "tool_calls": reply.tool_calls}).tool_calls == reply.tool_calls


@pytest.mark.parametrize(
    ("call", "read"),
    [
        ({"result": "found 3", "error": ""}, ToolCall(tool="find", result="found 3")),
        ({"result": "partial", "error": "timeout"}, ToolCall(tool="find", result="partial", error="timeout")),
        ({"result": "found", "content": ""}, ToolCall(tool="find", result="found")),
        ({"result": "", "content": "found"}, ToolCall(tool="find", result="found")),
        ({"result": "down", "is_error": True}, ToolCall(tool="find", error="down")),
        ({"is_error": True}, ToolCall(tool="find", error="")),
        ({"elicited": [{"action": "accept"}]}, ToolCall(tool="find", elicited=(Elicited(action="accept"),))),
    ],
)
def test_nothing_of_a_tool_call_is_lost(call, read):
    assert reply_from({"text": "Paris", "tool_calls": [{"tool": "find", **call}]}).tool_calls == (read,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool_calls", 3),  # not an answer that called none
        ("tool_calls", [{"id": 1}]),
        ("answer", ["Paris"]),
        ("answer", {"city": "Paris"}),
        ("unit", True),
        ("program", {"name": "p"}),
        ("verdict", "yes"),
    ],
)
def test_what_scorers_read_must_have_its_form(name, value):
    with pytest.raises(AgentFault, match=rf"the object is not a reply: .*{name}"):
        reply_from({"text": "The capital is Paris", name: value})


@pytest.mark.parametrize(
    ("returned", "text", "named"),
    [
        ({"content": [{"type": "text", "text": "Paris"}], "generation": "gen-123"}, "Paris", {"generation"}),
        ({"message": {"role": "assistant", "content": "Paris"}, "generation": 3}, "Paris", {"generation"}),
        ({"output": {"role": "assistant", "content": "Paris"}, "generation": 2}, "Paris", {"generation"}),
        ({"content": [{"type": "text", "text": "Paris"}], "output_text": ""}, "Paris", {"output_text"}),
        ({"final_output": "Paris", "id": 1}, "Paris", {"id"}),
    ],
)
def test_a_name_that_may_be_an_id_is_a_text_only_where_there_is_no_other(returned, text, named):
    unread: set[str] = set()
    assert (reply_from(returned, unread).text, unread) == (text, named)


def test_a_number_of_a_generation_is_no_text():
    with pytest.raises(AgentFault, match="no 'text'"):
        reply_from({"result": {"text": "Paris"}, "generation": 7})


def test_more_cached_tokens_than_sent_ones_have_no_price():
    price = Price(input=1.0, output=1.0, cache_read=0.1)
    assert price.dollars(Usage(input_tokens=100, cache_read_tokens=900, output_tokens=1)) is None
    assert price.dollars(Usage(input_tokens=1000, cache_read_tokens=900, output_tokens=0)) == pytest.approx(190e-6)


def test_a_python_agent_may_return_a_text_subclass_or_a_provider_s_usage(ask: Ask):
    def answer(question: str) -> Any:
        return {"text": AgentText("Paris"), "usage": ANTHROPIC, "cost": 0.25}

    (reply,) = ask("python", {"target": answer})
    assert (reply.text, reply.dollars) == ("Paris", 0.25)
    assert reply.usage == usage_from(ANTHROPIC)


@pytest.mark.parametrize(
    ("returned", "reply"),
    [
        ({"text": "a", "token_usage": {"prompt_tokens": 7}}, Reply(text="a", usage=Usage(input_tokens=7))),
        ({"text": "a", "usage_metadata": {"input_tokens": 7}}, Reply(text="a", usage=Usage(input_tokens=7))),
        (
            {"text": "a", "usage": {"prompt_tokens": 7, "cost": 0.25}},
            Reply(text="a", usage=Usage(input_tokens=7), dollars=0.25),
        ),
        ({"text": "a", "usage": {}, "input_tokens": 7}, Reply(text="a", usage=Usage(input_tokens=7))),
        ({"text": "a", "totalCost": 0.5, "finishReason": "x"}, Reply(text="a", dollars=0.5, stop_reason="x")),
        ({"text": "a", "cost": {"total_cost": 0.5}, "tool_calls": None}, Reply(text="a", dollars=0.5)),
        ({"output": [{"type": "text", "text": "a"}], "input_tokens": 7}, Reply(text="a", usage=Usage(input_tokens=7))),
        (UserDict(content=[{"type": "text", "text": "a"}], isError=False), Reply(text="a")),
        (
            {"content": "a", "stop_type": "limit", "tokens_evaluated": 7, "tokens_predicted": 2},  # llama.cpp
            Reply(text="a", stop_reason="limit", usage=Usage(input_tokens=7, output_tokens=2)),
        ),
        ({"output_text": "a"}, Reply(text="a")),
        ({"text": "The capital", "answer": [{"type": "text", "text": "a"}]}, Reply(text="The capital", answer="a")),
        ({"content": "a"}, Reply(text="a")),
        ({"text": None, "result": "a"}, Reply(text="a")),
        (np.int64(5), Reply(text="5")),
        (np.float32(0.5), Reply(text="0.5")),
    ],
)
def test_texts_counts_and_costs_are_read_by_their_usual_names(returned: object, reply: Reply) -> None:
    unread: set[str] = set()
    assert (reply_from(returned, unread), unread) == (reply, set())


def test_tokens_of_anthropic_by_lifetime_are_no_unread_key() -> None:
    assert unread_counts(ANTHROPIC | {"cache_creation": {"ephemeral_5m_input_tokens": 50}}) == []


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ({"error": "no quota"}, "the agent reported an error: no quota"),
        ({"text": None, "error": {"message": "no quota"}}, "the agent reported an error: no quota"),
        ({"message": "boom"}, "the object has no 'text' (keys: message)"),
        ({"text": "", "error": "no quota"}, "the agent reported an error: no quota"),
        ({"content": [{"type": "text", "text": "no quota"}], "isError": True}, "reported an error: no quota"),
    ],
)
def test_a_mapping_without_a_text_says_what_it_holds(returned: object, says: str) -> None:
    with pytest.raises(AgentFault, match=re.escape(says)):
        reply_from(returned)
