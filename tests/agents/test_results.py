"""What libraries return, read as they mean it: real types of those that are installed, others by their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from tests.agents.later import later, made

from karat.agents._answers import framework_reply
from karat.errors import AgentFault, BadPlugin, TrialFault
from karat.records import Reply, ToolCall, Usage

Ask = Callable[..., tuple[Reply, ...]]


@later
def completion(*, usage: dict[str, Any] | None = None, **message: Any) -> Any:
    from openai.types.chat import ChatCompletion

    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Paris", **message}}
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return ChatCompletion.model_validate(whole)


@later
def no_choices() -> Any:
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_construct(object="chat.completion", choices=[])


def written(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "2", "type": "message", "role": "assistant", "status": "completed", "content": content, **more}


@later
def response(*output: dict[str, Any], **more: Any) -> Any:
    from openai.types.responses import Response

    whole: dict[str, Any] = {"id": "1", "object": "response", "created_at": 0, "model": "m", "output": list(output)}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return Response.construct(**whole | more)  # as the SDK makes it of what it receives


THOUGHT = {"id": "3", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
SEARCH = {"id": "4", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}
DOWN = {"type": "protocol_error", "code": 1, "message": "down"}
BROKEN = {"id": "5", "type": "mcp_call", "server_label": "docs", "name": "find", "arguments": "{}", "error": DOWN}


@later
def message(*content: dict[str, Any], stop: str = "end_turn") -> Any:
    from anthropic.types.beta import BetaMessage

    whole: dict[str, Any] = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": content}
    whole |= {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3}}
    return BetaMessage.model_validate(whole)


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


MCP_USE = {"type": "mcp_tool_use", "id": "1", "name": "find", "server_name": "docs", "input": {"a": 1}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "1", "is_error": False, "content": [block("found")]}


@later
def google(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> Any:
    from google.genai.types import GenerateContentResponse

    counts = {"prompt_token_count": 7, "candidates_token_count": 2, "thoughts_token_count": 1}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finish_reason": finish}
    whole = {"candidates": [candidate], "model_version": "g", "usage_metadata": counts}
    return GenerateContentResponse.model_validate(whole | more)


@later
def claude(**more: Any) -> Any:
    from claude_agent_sdk import ResultMessage

    usage = {"input_tokens": 2, "output_tokens": 3, "cache_read_input_tokens": 5}
    whole = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1}
    whole |= {"session_id": "s", "total_cost_usd": 0.01, "usage": usage, "result": "Paris"}
    return ResultMessage(**whole | more)


# LangChain's and LangGraph's.


@dataclass
class AI:
    content: Any
    response_metadata: dict[str, Any]
    usage_metadata: dict[str, Any] | None = None
    tool_calls: list[Any] = field(default_factory=list)
    type: str = "ai"


@dataclass(frozen=True)
class GraphOutput:
    value: Any
    interrupts: tuple[Any, ...] = ()


class Named(NamedTuple):
    answer: str
    confidence: float


class Capital(Enum):
    FRANCE = "Paris"


# smolagents', DSPy's and LlamaIndex's.


@dataclass
class RunResult:
    output: Any
    state: str = "success"
    steps: list[dict[str, Any]] = field(default_factory=list)
    token_usage: Any = None


class Prediction:
    def __init__(self, **outputs: Any) -> None:
        self._outputs = outputs

    def toDict(self) -> dict[str, Any]:  # noqa: N802 -- DSPy's name
        return dict(self._outputs)

    def get_lm_usage(self) -> dict[str, Any] | None:
        return None


@dataclass
class StreamingResponse:
    response_gen: Iterator[str]
    response_txt: str | None = None


def step(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": name, "function": {"name": name, "arguments": arguments}}], "observations": "found"}


# Agno's, AutoGen's, Haystack's and Strands'.


@dataclass
class RunOutput:
    content: Any
    metrics: Any
    tools: list[Any]
    status: str = "COMPLETED"
    run_id: str = "r"


@dataclass
class TextMessage:
    source: str
    content: Any
    models_usage: Any = None
    type: str = "TextMessage"


@dataclass
class TaskResult:
    messages: list[TextMessage]
    stop_reason: str | None = None


@dataclass
class ChatMessage:
    role: str
    text: str
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class AgentResult:
    message: dict[str, Any]
    metrics: Any
    stop_reason: str = "end_turn"


COUNTED = SimpleNamespace(prompt_tokens=7, completion_tokens=3)
HAYSTACK = ChatMessage(
    "assistant", "Paris", {"usage": {"prompt_tokens": 7, "completion_tokens": 3}, "model": "m", "finish_reason": "stop"}
)
CALLED = SimpleNamespace(id="1", name="find", arguments='{"a": 1}')
RETURNED = SimpleNamespace(call_id="1", content="found", is_error=False)
REACT = {
    "thought_0": "t",
    "tool_name_0": "find",
    "tool_args_0": {"a": 1},
    "observation_0": "found",
    "tool_name_1": "finish",
    "tool_args_1": {},
    "observation_1": "Completed.",
}
FOUND = ToolCall(tool="find", input={"a": 1}, result="found")
TOOL_OUTPUT = SimpleNamespace(content="found", is_error=False)


@dataclass
class Answer:
    answer: str
    confidence: float


class Final(BaseModel):
    final: str


class City(BaseModel):
    name: str
    country: str


SMALL = Usage(input_tokens=7, output_tokens=3)
USER = {"role": "user", "content": "q"}
CALLING = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "find"}}]}

USE = {"toolUse": {"name": "find"}}
USED = {"type": "tool_use", "name": "find", "input": {}, "id": "1"}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "found"}

RESULTS: dict[str, tuple[object, Reply]] = {
    "reasoning beside a completion": (
        completion(reasoning_content="hm"),
        Reply(text="Paris", reasoning="hm", model="m", stop_reason="stop"),
    ),
    "the cost that OpenRouter adds": (
        completion(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}),
        Reply(text="Paris", usage=SMALL, dollars=0.25, model="m", stop_reason="stop"),
    ),
    "text before a hosted tool is no part of the answer": (
        response(THOUGHT, written("I look."), SEARCH, BROKEN, written("Par"), written("is")),
        Reply(
            text="Paris",
            reasoning="hm",
            model="m",
            tool_calls=(ToolCall(tool="web_search_call"), ToolCall(tool="find", server="docs", error="down")),
        ),
    ),
    "a commentary is no part of the answer": (
        response(written("I look.", phase="commentary"), written("Paris", phase="final_answer")),
        Reply(text="Paris", model="m"),
    ),
    "text before a server's tool is no part of the answer": (
        message(block("I look."), MCP_USE, MCP_RESULT, block("Par"), block("is")),
        Reply(
            text="Paris",
            tool_calls=(ToolCall(tool="find", server="docs", input={"a": 1}, result="found"),),
            usage=SMALL,
            model="m",
            stop_reason="end_turn",
        ),
    ),
    "Google's, with its thoughts": (
        google({"text": "hm", "thought": True}, {"text": "Par"}, {"text": "is"}),
        Reply(
            text="Paris",
            reasoning="hm",
            usage=Usage(input_tokens=7, output_tokens=3, reasoning_tokens=1),
            model="g",
            stop_reason="STOP",
        ),
    ),
    "the Claude Agent SDK's": (
        claude(),
        Reply(text="Paris", dollars=0.01, usage=Usage(input_tokens=7, output_tokens=3, cache_read_tokens=5)),
    ),
    "LangChain's message that was cut": (
        AI("Par", {"model_name": "m", "finish_reason": "length"}),
        Reply(text="Par", model="m", stop_reason="length"),
    ),
    "LangGraph's output": (GraphOutput({"answer": "Paris"}), Reply(text="Paris", answer="Paris")),
    "smolagents' run with its tools": (
        RunResult({"city": "Paris"}, steps=[step("find", a=1), step("final_answer", answer="x")]),
        Reply(text='{"city":"Paris"}', tool_calls=(FOUND,)),
    ),
    "DSPy's ReAct": (
        Prediction(trajectory=REACT, reasoning="hm", answer="Paris", confidence=0.9),
        Reply(text="Paris", reasoning="hm", tool_calls=(FOUND,)),
    ),
    "DSPy's list": (Prediction(cities=["Paris", "Oslo"]), Reply(text='["Paris","Oslo"]')),
    "an agent of LlamaIndex with its tools": (
        SimpleNamespace(
            response=SimpleNamespace(role="assistant", content="Paris"),
            tool_calls=[SimpleNamespace(tool_name="find", tool_kwargs={"a": 1}, tool_output=TOOL_OUTPUT)],
        ),
        Reply(text="Paris", tool_calls=(FOUND,)),
    ),
    "a completion of LlamaIndex": (
        SimpleNamespace(text="Paris", raw={"usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
        Reply(text="Paris", usage=SMALL),
    ),
    "Agno's": (
        RunOutput(
            "Paris",
            SimpleNamespace(input_tokens=7, output_tokens=3, cost=0.25),
            [SimpleNamespace(tool_name="find", tool_args={"a": 1}, result="found")],
        ),
        Reply(text="Paris", usage=SMALL, dollars=0.25, tool_calls=(FOUND,)),
    ),
    "AutoGen's": (
        TaskResult(
            [
                TextMessage("user", "q"),
                TextMessage("a", [CALLED], COUNTED),
                TextMessage("a", [RETURNED]),
                TextMessage("a", "Paris", COUNTED),
            ]
        ),
        Reply(text="Paris", usage=Usage(input_tokens=14, output_tokens=6), tool_calls=(FOUND,)),
    ),
    "Haystack's agent": (
        {"messages": [ChatMessage("user", "q"), HAYSTACK], "last_message": HAYSTACK},
        Reply(text="Paris", usage=SMALL, model="m", stop_reason="stop"),
    ),
    "Haystack's pipeline": (
        {"prompt": {"prompt": "q"}, "llm": {"replies": [HAYSTACK]}},
        Reply(text="Paris", usage=SMALL, model="m", stop_reason="stop"),
    ),
    "Haystack's generator of texts": ({"replies": ["Paris"], "meta": [{}]}, Reply(text="Paris")),
    "Strands'": (
        AgentResult(
            {"role": "assistant", "content": [{"text": "Par"}, {"text": "is"}]},
            SimpleNamespace(accumulated_usage={"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}),
        ),
        Reply(text="Paris", usage=SMALL, stop_reason="end_turn"),
    ),
    "Bedrock's": (
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Par"}]}},
            "usage": {"inputTokens": 7, "outputTokens": 3},
            "stopReason": "max_tokens",
        },
        Reply(text="Par", usage=SMALL, stop_reason="max_tokens"),
    ),
    "Google's, as JSON": (
        {
            "candidates": [{"content": {"parts": [{"text": "Par"}]}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3},
        },
        Reply(text="Par", usage=SMALL, stop_reason="MAX_TOKENS"),
    ),
    "Ollama's, as JSON": (
        {"message": {"role": "assistant", "content": "Paris"}, "prompt_eval_count": 7, "eval_count": 3},
        Reply(text="Paris", usage=SMALL),
    ),
    "a completion of a text": (
        {"choices": [{"text": "<think>hm</think>Paris", "finish_reason": "stop"}]},
        Reply(text="Paris", reasoning="hm", stop_reason="stop"),
    ),
    "blocks of a message": (
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Paris"}],
        Reply(text="Paris"),
    ),
    "a list of messages of OpenAI's responses": ([THOUGHT, written("Paris")], Reply(text="Paris", reasoning="hm")),
    "a pipeline's of Transformers": (
        [{"generated_text": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "Paris"}]}],
        Reply(text="Paris"),
    ),
    "a state with a message as its answer": ({"answer": AI("Paris", {})}, Reply(text="Paris")),
    "a named tuple": (Named("Paris", 0.9), Reply(text="Paris", answer="Paris")),
    "a member of an enumeration": (Capital.FRANCE, Reply(text="Paris")),
    "an answer beside messages": ({"answer": "Paris", "output": [USER, CALLING]}, Reply(text="Paris", answer="Paris")),
    "an answer beside a call": (
        {"text": "Paris", "result": {**CALLING, "content": [{"type": "tool_use"}]}},
        Reply(text="Paris"),
    ),
    "a number beside a call": ({"content": 5, "response": CALLING}, Reply(text="5")),
    "an object with an answer beside messages": (SimpleNamespace(answer="Paris", output=[USER]), Reply(text="Paris")),
    "an answer beside candidates": (SimpleNamespace(answer="Paris", candidates=["Rome", "Paris"]), Reply(text="Paris")),
    "a result of choices": ({"result": "Rome", "choices": [{"text": "Rome"}, {"text": "Oslo"}]}, Reply(text="Rome")),
    "blocks of a call with its result": ([USED, RESULT, block("Paris")], Reply(text="Paris")),
    "a text after a call": ({"content": [USED, block("Paris")]}, Reply(text="Paris")),
    "Bedrock's with a call": (
        {"output": {"message": {"role": "assistant", "content": [USE, {"toolResult": {}}, {"text": "Paris"}]}}},
        Reply(text="Paris"),
    ),
    "a message with calls that were made": (
        {"message": {"role": "assistant", "content": "Paris", "tool_calls": [{"name": "s", "result": "x"}, "look"]}},
        Reply(text="Paris"),
    ),
    "LangChain's with a call that it could not read": (
        {"messages": [USER, {"role": "assistant", "content": "Paris", "invalid_tool_calls": [{"name": "x"}]}]},
        Reply(text="Paris"),
    ),
    "an object with a call of no name": (
        SimpleNamespace(text="Paris", tool_calls=[SimpleNamespace(function_name="s"), {"tool": "find"}]),
        Reply(text="Paris", tool_calls=(ToolCall(tool="find"),)),
    ),
    "Agno's with a call of no name": (
        RunOutput("Paris", SimpleNamespace(), [SimpleNamespace(tool_name=None)]),
        Reply(text="Paris"),
    ),
    "a dataclass with an answer": (Answer("Paris", 0.9), Reply(text="Paris")),
    "a model with one field": (Final(final="Paris"), Reply(text="Paris")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_whole(ask: Ask, name: str) -> None:
    result, reply = RESULTS[name]
    answer = made(result)
    assert ask("python", {"target": lambda question: answer}) == (reply,)


CALL = {"name": "find", "arguments": "{}"}


@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        (no_choices(), "provider_error", "holds no choices"),
        (response(status="in_progress"), "bad_reply", "not finished (status 'in_progress')"),
        (message(block("I look."), stop="pause_turn"), "bad_reply", "the turn was paused"),
        (google(finish="SAFETY"), "content_filter", "filter"),
        (google(finish="MAX_TOKENS"), "max_tokens", "ran out of tokens"),
        (google(candidates=None, prompt_feedback={"block_reason": "SAFETY"}), "content_filter", "filter"),
        (google({"function_call": {"name": "find", "args": {}}}), "bad_reply", "asks for a tool"),
        (claude(is_error=True, subtype="error_max_turns", result=None), "bad_reply", "an error: error_max_turns"),
        (GraphOutput({"answer": "draft"}, interrupts=("may I?",)), "bad_reply", "waits for a person"),
        ({"answer": "draft", "__interrupt__": ["may I?"]}, "bad_reply", "waits for a person"),
        (RunResult(None, state="max_steps_error"), "max_turns", "ran out of steps"),
        (Prediction(reasoning="hm"), "bad_reply", "no output"),
        (RunOutput("draft", COUNTED, [], status="PAUSED"), "bad_reply", "did not finish (status 'PAUSED')"),
        (TaskResult([TextMessage("user", "q")]), "bad_reply", "no text of an agent"),
        ({"replies": ["a", "b"]}, "bad_reply", "several texts: replies[0], replies[1]"),
        (AgentResult({"role": "assistant", "content": [{"toolUse": {}}]}, None), "bad_reply", "holds no text"),
        (StreamingResponse(iter("ab")), "bad_reply", "a StreamingResponse, which comes in pieces"),
        ((letter for letter in "ab"), "bad_reply", "a generator, which comes in pieces"),
        (City(name="Paris", country="France"), "bad_reply", "returned a City"),
        ({"result": CALLING}, "bad_reply", "asks for a tool"),
        ({"message": {**CALLING, "content": "I look."}, "done": True}, "bad_reply", "asks for a tool"),
        ([block("I look."), USED], "bad_reply", "asks for a tool"),
        ([USED, RESULT, block("Again."), USED, block("")], "bad_reply", "asks for a tool"),
        ({"message": {"role": "assistant", "content": [{"text": "a"}, USE]}}, "bad_reply", "asks for a tool"),
        (completion(content="I look.", function_call=CALL), "bad_reply", "asks for a tool"),
        (response(written("I look."), {"type": "local_shell_call", "id": "5"}), "bad_reply", "asks for a tool"),
        ({"message": {"role": "assistant", "content": ""}, "done_reason": "length"}, "max_tokens", "ran out of tokens"),
        ({"text": "", "finish_reason": "content_filter"}, "content_filter", "filter"),
        ({"text": "", "finishReason": "content-filter"}, "content_filter", "filter"),
        ({"text": "", "finishReason": "tool-calls"}, "bad_reply", "asks for a tool"),
        ([{"text": "a passage"}, {"text": "another"}], "bad_reply", "returned a list"),
        ([SimpleNamespace(text="a passage", score=0.5)], "bad_reply", "returned a list"),
        ({"result": [{"type": "text", "text": "a passage", "score": 0.5}]}, "bad_reply", "no 'text' (keys: result)"),
        ({"result": [{"type": "text", "text": {"value": "a"}}]}, "bad_reply", "no 'text' (keys: result)"),
        ({"result": [{"text": 5}]}, "bad_reply", "no 'text' (keys: result)"),
        ({"result": [{"text": "a passage", "source": "a.md"}]}, "bad_reply", "no 'text' (keys: result)"),
        ({"response": [{"type": "retrieval", "text": "a passage"}]}, "bad_reply", "no 'text' (keys: response)"),
    ],
)
def test_a_result_that_is_no_whole_answer_is_a_fault(ask: Ask, result: object, kind: str, says: str) -> None:
    answer = made(result)
    with pytest.raises(TrialFault) as caught:
        ask("python", {"target": lambda question: answer})
    assert caught.value.kind == kind
    assert says in caught.value.message


def test_an_answer_of_pydantic_ai_that_was_cut_is_known_as_cut(ask: Ask) -> None:
    cut = ModelResponse(parts=[TextPart("Par")], finish_reason="length", model_name="m")

    async def answer(question: str) -> Any:
        return await Agent(FunctionModel(lambda messages, info: cut)).run(question)

    (reply,) = ask("python", {"target": answer})
    assert (reply.text, reply.stop_reason) == ("Par", "length")


class Managed:
    """As smolagents' agents, whose call is for other agents."""

    def __call__(self, task: str, **kwargs: Any) -> str:
        return self.run(f"You were asked: {task}", **kwargs)

    def run(self, task: str, stream: bool = False) -> str:
        return task


class Handler:
    """As LlamaIndex's, which has to be made in the event loop."""

    def __init__(self, text: str) -> None:
        import asyncio

        self._task = asyncio.get_running_loop().create_future()
        self._task.set_result(text)

    def __await__(self) -> Any:
        return self._task.__await__()


class Workflow:
    def run(self, question: str) -> Handler:
        return Handler(question)


Workflow.run.__annotations__["return"] = Handler


class State(TypedDict):
    question: str
    answer: str


class Graph:
    """As LangGraph's, which may not know the schema of its state."""

    builder = SimpleNamespace(input_schema=State)

    def __init__(self, schema: dict[str, Any] | None) -> None:
        self._schema = schema

    def get_input_jsonschema(self) -> dict[str, Any]:
        if self._schema is None:
            raise TypeError("use another TypedDict")
        return self._schema

    async def ainvoke(self, input: dict[str, Any]) -> str:  # noqa: A002 -- LangGraph's name
        return str(input)


STRICT = {"properties": {"question": {}, "answer": {}}, "required": ["question", "answer"]}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Managed(), "q"),
        (Workflow(), "q"),
        (Graph(None), "{'question': 'q'}"),
        (Graph(STRICT), "{'question': 'q'}"),
    ],
)
def test_an_object_is_asked_as_its_library_means_it(ask: Ask, target: object, text: str) -> None:
    assert ask("python", {"target": target})[0].text == text


def test_an_object_without_a_usual_method_is_refused_with_its_own_ones(ask: Ask, tmp_path: Any) -> None:
    (tmp_path / "two.py").write_text(
        "class Two:\n    def first(self, question): return 'one'\n    def second(self, question): ...\ntwo = Two()\n"
    )
    with pytest.raises(BadPlugin, match=r"or name one of its methods, e\.g\. .* \(`first`, `second`\)"):
        ask("python", {"target": "two.py:two"})
    assert ask("python", {"target": "two.py:two.first"})[0].text == "one"


def test_a_call_that_holds_its_result_is_kept_with_it():
    call = {"tool": "search", "input": {"q": 1}, "result": "x"}
    reply = framework_reply(
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "Paris", "tool_calls": [call]}], set()
    )
    assert reply.text == "Paris"
    assert reply.tool_calls == (ToolCall(tool="search", input={"q": 1}, result="x"),)


def test_what_is_said_before_a_tools_result_is_no_answer():
    said = [{"type": "text", "text": "I will search"}, {"type": "tool_use", "id": "1", "name": "s", "input": {}}]
    with pytest.raises(AgentFault, match="asks for a tool"):
        framework_reply({"role": "assistant", "content": [*said, {"type": "tool_result", "content": "r"}]}, set())
