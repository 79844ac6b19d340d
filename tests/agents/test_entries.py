"""What is called of a user's object, and how its result is read, library by library."""

from __future__ import annotations

import asyncio
import functools
import operator
import sys
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.agents.later import later, made

import karat
from karat.agents import AgentSetting
from karat.agents.python import Python
from karat.errors import BadPlugin, TrialFault
from karat.mcp import Toolbox
from karat.records import Reply, ToolCall, Usage
from karat.redact import Redactor

Ask = Callable[..., tuple[Reply, ...]]


def flat(*said: object) -> str:
    return "|".join(map(str, said))


@dataclass
class CallableDataclass:
    style: str

    def __call__(self, question: str, system_prompt: str) -> str:
        return flat(self.style, question, system_prompt)


class CallableModel(BaseModel):
    style: str

    async def __call__(self, question: str) -> str:
        return flat(self.style, question)


class Methods:
    def bound(self, question: str) -> str:
        return flat("bound", question)

    @staticmethod
    def static(question: str) -> str:
        return flat("static", question)

    @classmethod
    def of_class(cls, question: str) -> str:
        return flat(cls.__name__, question)


class Runnable:
    """As LangChain's: both forms, with parameters of its own."""

    async def ainvoke(self, input: str, config: Any = None, **kwargs: Any) -> str:  # noqa: A002 -- LangChain's name
        return flat("ainvoke", input, config, sorted(kwargs))

    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> str:  # noqa: A002 -- LangChain's name
        raise NotImplementedError


class Graph:
    """As LangGraph's compiled graphs."""

    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"$ref": "#/$defs/State", "$defs": {"State": {"properties": {"messages": {}, "step": {}}}}}

    def invoke(self, input: dict[str, Any], config: Any = None) -> str:  # noqa: A002 -- LangChain's name
        return flat(*(f"{key} {[one['content'] for one in value]}" for key, value in input.items()))


class Chain(Runnable):
    """As a LangChain prompt with a model behind it."""

    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"properties": {"topic": {}}, "required": ["topic"]}

    async def ainvoke(self, input: dict[str, str], config: Any = None, **kwargs: Any) -> str:  # type: ignore[override]  # a mapping  # noqa: A002 -- LangChain's name
        return str(input)


class Crew(BaseModel):
    """As CrewAI's: a model of pydantic that cannot be called."""

    tasks: list[str]

    def fetch_inputs(self) -> set[str]:
        return {"query"}

    def kickoff(self, inputs: dict[str, Any] | None = None) -> str:
        return str(inputs)


class Module:
    """As DSPy's: called itself, with the parameters of `forward`."""

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return flat("called", self.forward(*args, **kwargs))

    def forward(self, question: str, k: int = 3) -> str:
        return flat(question, k)


class Predict(Module):
    signature = SimpleNamespace(input_fields={"topic": None})

    def forward(self, **kwargs: Any) -> str:  # type: ignore[override]  # as DSPy's own
        return flat(kwargs)


class Runner:
    """As smolagents': further parameters keep their defaults."""

    def run(self, task: str, stream: bool = False, metadata: Any = "mine", max_steps: int | None = None) -> str:
        return flat(task, stream, metadata, max_steps)


class OwnRunner:
    def run(self, question: str, history: list[Any]) -> str:
        return flat(question, history)


class Engine:
    """As LlamaIndex's query engines."""

    async def aquery(self, str_or_query_bundle: str) -> str:
        return flat("aquery", str_or_query_bundle)

    def query(self, str_or_query_bundle: str) -> str:
        raise NotImplementedError


def keywords(**kwargs: Any) -> str:
    return flat(kwargs["question"], kwargs["system_prompt"])


@functools.lru_cache
def cached(question: str) -> str:
    return flat("cached", question)


ENTRIES = {
    "a dataclass": (CallableDataclass("brief"), "brief|q|be brief"),
    "a model of pydantic": (CallableModel(style="brief"), "brief|q"),
    "a bound method": (Methods().bound, "bound|q"),
    "a static method": (Methods.static, "static|q"),
    "a class method": (Methods.of_class, "Methods|q"),
    "a method of str": (str.upper, "Q"),
    "a method written in C": ("{}!".format, "q!"),
    "a function without a signature": (functools.partial(max, "a"), "q"),
    "operator.methodcaller": (operator.methodcaller("upper"), "Q"),
    "a partial of a bound method": (functools.partial(Methods().bound), "bound|q"),
    "a cached function": (cached, "cached|q"),
    "**kwargs alone": (keywords, "q|be brief"),
    "a lambda with a default alone": (lambda said="x": said, "q"),
    "LangChain": (Runnable(), "ainvoke|q|None|[]"),
    "LangChain with a prompt": (Chain(), "{'topic': 'q'}"),
    "LangGraph": (Graph(), "messages ['be brief', 'q']"),
    "CrewAI": (Crew(tasks=[]), "{'query': 'q'}"),
    "DSPy": (Module(), "called|q|3"),
    "DSPy's own": (Predict(), "called|{'topic': 'q'}"),
    "smolagents": (Runner(), "q|False|mine|None"),
    "a user's own run": (OwnRunner(), "q|[]"),
    "LlamaIndex": (Engine(), "aquery|q"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_whatever_can_be_called_is_asked(ask: Ask, name: str) -> None:
    target, text = ENTRIES[name]
    assert ask("python", {"target": target})[0].text == text


def test_an_object_of_pydantic_ai_is_run_with_the_system_prompt(ask: Ask) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(flat(messages[-1].parts[0].content, info.instructions))])  # type: ignore[union-attr]  # the prompt

    (reply,) = ask("python", {"target": Agent(FunctionModel(answer))})
    assert reply.text == "q|be brief"
    assert reply.usage is not None


async def taken_of(target: object, folder: Path) -> str:
    async with Toolbox((), redact=Redactor({}), folder=folder) as toolbox:
        agent = Python(Python.Options(target=target), AgentSetting(folder=folder, toolbox=toolbox))
        await agent.aclose()
        return agent.taken


@pytest.mark.parametrize(
    ("target", "taken"),
    [
        (Runnable(), "by Runnable.ainvoke(input)"),
        (Graph(), "by Graph.invoke(input) with messages"),
        (Module(), "by Module.forward(question)"),
        (str.upper, ""),
        (CallableDataclass("brief"), ""),
    ],
)
def test_it_is_said_which_method_is_taken(target: object, taken: str, tmp_path: Path) -> None:
    assert asyncio.run(taken_of(target, tmp_path)) == taken


class Strict(Chain):
    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"properties": {"question": {}, "tone": {}}, "required": ["question", "tone"]}


class Unsure(Chain):
    def get_input_jsonschema(self) -> dict[str, Any]:
        raise NotImplementedError("no schema")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (Strict(), "cannot fill 'tone'"),
        (Unsure(), "Unsure.get_input_jsonschema: failed: NotImplementedError: no schema"),
        (str, "its constructor's parameters cannot be seen"),
    ],
)
def test_an_object_that_cannot_be_asked_is_refused(ask: Ask, target: object, says: str) -> None:
    with pytest.raises(BadPlugin, match=says):
        ask("python", {"target": target})


@later
def completion(*texts: str | None, finish: str = "stop", as_json: bool = False, **message: Any) -> Any:
    from openai.types.chat import ChatCompletion

    choices = [
        {"index": place, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        for place, text in enumerate(texts)
    ]
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 300,
        "total_tokens": 1300,
        "prompt_tokens_details": {"cached_tokens": 900},
        "completion_tokens_details": {"reasoning_tokens": 200},
    }
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, "usage": usage}
    parsed = ChatCompletion.model_validate(whole)
    return parsed.model_dump() if as_json else parsed


@later
def response(*output: dict[str, Any], **more: Any) -> Any:
    from openai.types.responses import Response

    usage = {
        "input_tokens": 1000,
        "output_tokens": 300,
        "total_tokens": 1300,
        "input_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 200},
    }
    whole = {"id": "1", "object": "response", "created_at": 0, "model": "m", "output": list(output), "usage": usage}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return Response.model_validate(whole | more)


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "2", "type": "message", "role": "assistant", "status": "completed", "content": content}


MCP_CALL = {
    "id": "3",
    "type": "mcp_call",
    "server_label": "docs",
    "name": "find",
    "arguments": '{"a": 1}',
    "output": "x",
}
ASKS = {"id": "4", "call_id": "4", "type": "function_call", "name": "find", "arguments": "{}"}
CUT = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


@later
def message(*content: dict[str, Any], stop: str = "end_turn", as_json: bool = False) -> Any:
    from anthropic.types import Message

    usage = {
        "input_tokens": 100,
        "output_tokens": 30,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 50,
    }
    whole = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    parsed = Message.model_validate(whole | {"stop_reason": stop, "stop_sequence": None, "usage": usage})
    return parsed.model_dump() if as_json else parsed


TEXT = {"type": "text", "text": "Paris"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
TOOL = {"type": "tool_use", "id": "5", "name": "find", "input": {}}
OPENAI = Usage(input_tokens=1000, output_tokens=300, cache_read_tokens=900, reasoning_tokens=200)


class Prediction:
    """As DSPy's: its signature's outputs are attributes."""

    def __init__(self, **outputs: Any) -> None:
        self._outputs = outputs

    def __getattr__(self, name: str) -> Any:
        if name in self._outputs:
            return self._outputs[name]
        raise AttributeError(name)

    def toDict(self) -> dict[str, Any]:  # noqa: N802 -- DSPy's name
        return dict(self._outputs)

    def get_lm_usage(self) -> dict[str, Any]:
        return {"m": {"prompt_tokens": 7, "completion_tokens": 3}, "n": {"prompt_tokens": 1, "completion_tokens": 1}}


class AgentText(str):
    """As smolagents'."""

    __slots__ = ()

    def __str__(self) -> str:
        return "shown otherwise"


@dataclass
class CrewOutput:
    raw: str
    pydantic: Any = None
    json_dict: Any = None
    tasks_output: list[Any] = field(default_factory=list)
    token_usage: Any = None


def counted(**counts: int) -> SimpleNamespace:
    return SimpleNamespace(**counts)


LONG = SimpleNamespace(prompt_tokens=7, completion_tokens=3, total_tokens=10, cached_prompt_tokens=0)
RESPONSES = Usage(
    input_tokens=1000, output_tokens=300, cache_read_tokens=900, cache_write_tokens=0, reasoning_tokens=200
)
ANTHROPIC = Usage(input_tokens=1050, output_tokens=30, cache_read_tokens=900, cache_write_tokens=50)
SMALL = Usage(input_tokens=7, output_tokens=3)
RESULTS: dict[str, tuple[object, Reply]] = {
    "ChatCompletion": (completion("Paris"), Reply(text="Paris", model="m", stop_reason="stop", usage=OPENAI)),
    "ChatCompletion, cut": (
        completion("Par", finish="length"),
        Reply(text="Par", model="m", stop_reason="length", usage=OPENAI),
    ),
    "ChatCompletion as JSON": (
        completion("Paris", as_json=True),
        Reply(text="Paris", model="m", stop_reason="stop", usage=OPENAI),
    ),
    "Response": (response(said("Par"), said("is")), Reply(text="Paris", model="m", usage=RESPONSES)),
    "Response with a call": (
        response(MCP_CALL, said("Paris")),
        Reply(
            text="Paris",
            model="m",
            usage=RESPONSES,
            tool_calls=(ToolCall(tool="find", server="docs", input={"a": 1}, result="x"),),
        ),
    ),
    "Response, cut": (
        response(said("Par"), **CUT),
        Reply(text="Par", model="m", stop_reason="max_output_tokens", usage=RESPONSES),
    ),
    "Message": (
        message(THOUGHT, TEXT),
        Reply(text="Paris", reasoning="hm", model="m", stop_reason="end_turn", usage=ANTHROPIC),
    ),
    "Message as JSON": (
        message(TEXT, as_json=True),
        Reply(text="Paris", model="m", stop_reason="end_turn", usage=ANTHROPIC),
    ),
    "DSPy": (
        Prediction(reasoning="hm", answer="Paris"),
        Reply(text="Paris", reasoning="hm", usage=Usage(input_tokens=8, output_tokens=4)),
    ),
    "DSPy, its own field": (
        Prediction(city="Paris"),
        Reply(text="Paris", usage=Usage(input_tokens=8, output_tokens=4)),
    ),
    "CrewAI": (
        CrewOutput("Paris", token_usage=LONG),
        Reply(text="Paris", usage=Usage(input_tokens=7, output_tokens=3, cache_read_tokens=0)),
    ),
    "CrewAI without usage": (
        CrewOutput("Paris", token_usage=counted(prompt_tokens=0, completion_tokens=0)),
        Reply(text="Paris"),
    ),
    "LlamaIndex": (SimpleNamespace(response="Paris", source_nodes=[], metadata={}), Reply(text="Paris")),
    "LlamaIndex's agent": (
        SimpleNamespace(response=SimpleNamespace(role="assistant", content="Paris"), raw={}, tool_calls=[]),
        Reply(text="Paris"),
    ),
    "smolagents": (AgentText("Paris"), Reply(text="Paris")),
    "smolagents' run": (
        SimpleNamespace(output=42, state="success", token_usage=counted(input_tokens=7, output_tokens=3)),
        Reply(text="42", usage=SMALL),
    ),
    "Google": (
        SimpleNamespace(text="Paris", usage_metadata=counted(prompt_token_count=7, candidates_token_count=3)),
        Reply(text="Paris", usage=SMALL),
    ),
    "Ollama": (
        SimpleNamespace(
            model="m", message=SimpleNamespace(role="assistant", content="Paris"), prompt_eval_count=7, eval_count=3
        ),
        Reply(text="Paris", model="m", usage=SMALL),
    ),
    "the same text twice": (SimpleNamespace(text="Paris", raw="Paris"), Reply(text="Paris")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_of_a_library_is_read_by_its_shape(ask: Ask, name: str) -> None:
    result, reply = RESULTS[name]
    answer = made(result)
    assert ask("python", {"target": lambda question: answer}) == (reply,)


@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        (completion("a", "b"), "bad_reply", "choices[0].message.content, choices[1].message.content"),
        (completion(None, refusal="no"), "content_filter", "refused"),
        (completion(None, finish="length"), "max_tokens", "ran out of tokens"),
        (
            completion("I look", tool_calls=[TOOL | {"type": "function", "function": {"name": "f", "arguments": ""}}]),
            "bad_reply",
            "asks for a tool",
        ),
        (response(ASKS), "bad_reply", "asks for a tool"),
        (response(**CUT), "max_tokens", "ran out of tokens"),
        (response(error={"code": "server_error", "message": "down"}), "provider_error", "the response failed: down"),
        (message(TEXT, TOOL, stop="tool_use"), "bad_reply", "asks for a tool"),
        (message(THOUGHT, stop="max_tokens"), "max_tokens", "ran out of tokens"),
        (Prediction(answer="Paris", response="Rome"), "bad_reply", "could be several texts: answer, response;"),
        (Prediction(city="Paris", country="France"), "bad_reply", "could be several texts: city, country;"),
        (SimpleNamespace(text=None, usage=1), "bad_reply", "returned a SimpleNamespace"),
    ],
)
def test_a_result_without_one_answer_is_a_fault(ask: Ask, result: object, kind: str, says: str) -> None:
    answer = made(result)
    with pytest.raises(TrialFault) as caught:
        ask("python", {"target": lambda question: answer})
    assert caught.value.kind == kind
    assert says in caught.value.message


def test_a_target_may_be_a_file(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("SAYS = 'beside'\n", encoding="utf-8")
    (tmp_path / "json.py").write_text(
        "from beside_it import SAYS\nclass A:\n    def run(self, question): return SAYS + question\nagent = A()\n",
        encoding="utf-8",
    )
    for target in (
        "json.py:agent",
        "./json.py:agent",
        f"../{tmp_path.name}/json.py:agent.run",
        f"{tmp_path}/json.py:agent",
    ):
        assert ask("python", {"target": target})[0].text == "besideq"


@pytest.mark.parametrize(
    ("code", "target", "says"),
    [
        ("", "agnt.py:agent", "there is no such file (did you mean 'agent.py'?)"),
        ("", "agent.py:agent", "file 'agent.py' has no 'agent'"),
        ("import no_such_library", "agent.py:agent", f"No module named 'no_such_library' (in {sys.executable}); if it"),
        ("import sys; sys.exit(2)", "agent.py:agent", "it calls sys.exit(2) as it is imported"),
        ("agent = 3", "agent.py:agent", "it is a int; expected a function, an object that can be called"),
        ("", "./notes.txt:agent", "its name must end in .py"),
        ("", "agent_of_nobody:agent", "a file is named as 'agent_of_nobody.py:name'"),
    ],
)
def test_a_target_that_cannot_be_loaded_is_named_with_its_place(
    tmp_path: Path, code: str, target: str, says: str
) -> None:
    (tmp_path / "agent.py").write_text(code + "\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "answer": "A"}\n', encoding="utf-8")
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "dataset: {path: q.jsonl}\nscorers: [equals]\nagent:\n  type: python\n"
        f'  target: "{target}"\nconditions: {{a: {{}}}}\n',
        encoding="utf-8",
    )
    with pytest.raises(BadPlugin) as caught:
        karat.run(file, results=tmp_path / "results")
    assert str(caught.value).startswith(f"{file}: agent.target (line 5, column 3): ")
    assert says in str(caught.value)


@pytest.mark.parametrize("form", ["def", "async def"])
def test_an_agent_that_leaves_by_sys_exit_is_named_as_that(tmp_path: Path, form: str) -> None:
    (tmp_path / "agent.py").write_text(f"import sys\n{form} agent(question): sys.exit(3)\n", encoding="utf-8")
    (tmp_path / "q.jsonl").write_text('{"question": "Q?", "answer": "A"}\n', encoding="utf-8")
    run = karat.run(
        karat.Experiment(
            dataset={"path": str(tmp_path / "q.jsonl")},
            agent={"type": "python", "target": f"{tmp_path}/agent.py:agent"},
            scorers=["equals"],
            conditions={"only": {}},
            execution={"num_repetitions": 1, "retry": {"max_attempts": 1}},
        ),
        results=tmp_path / "results",
    )
    (failure,) = karat.summarize(run).failures
    assert failure.example == "SystemExit: it called sys.exit(3) (agent.py, line 2, in agent)"


def asked_by(target: object, folder: Path) -> karat.Experiment:
    (folder / "q.jsonl").write_text('{"question": "Q?", "answer": "A"}\n', encoding="utf-8")
    return karat.Experiment(
        dataset={"path": str(folder / "q.jsonl")},
        agent={"type": "python", "target": target},
        scorers=["equals"],
        conditions={"only": {}},
    )


def test_a_model_of_pydantic_stays_the_agent_that_it_is(tmp_path: Path) -> None:
    crew = Crew(tasks=["x"])
    assert asked_by(crew, tmp_path).agent.options["target"] is crew


@pytest.mark.parametrize("kind", [dict, list, str, tuple, UserDict])
def test_a_container_that_can_be_called_is_an_agent(tmp_path: Path, ask: Ask, kind: type) -> None:
    agent = type("Agent", (kind,), {"__call__": lambda self, question: flat("called", len(self), question)})
    experiment = asked_by(agent([("a", 1)]) if kind is not str else agent("a"), tmp_path)
    assert ask("python", experiment.agent.options)[0].text == "called|1|q"
    assert "Agent" in experiment.text
