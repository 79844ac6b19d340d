"""What the server says without a script: enough to rehearse an experiment."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from karat.testing.models import ModelServer, serve
from karat.testing.models.default_response import default_response, filled_form, value_of
from karat.testing.models.request import read_request

jsonschema: Any = importlib.import_module("jsonschema")  # has no types
if find_spec("pydantic_ai") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("the extra 'chat' brings pydantic-ai", allow_module_level=True)


class Reason(BaseModel):
    text: Annotated[str, Field(min_length=30, max_length=60)]
    weight: Annotated[float, Field(ge=0.25, le=0.5)]


class Verdict(BaseModel):
    """What a judge might be asked for."""

    factual_adherence: Annotated[int, Field(ge=1, le=5)]
    completeness: Literal[1, 2, 3]
    level: Literal["low", "high"] | None
    certain: bool
    reasons: list[Reason]
    unverified_claims: list[str] = []


def model_of(kind: str, server: ModelServer) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    if kind == "messages":
        return AnthropicModel("claude-opus-5", provider=AnthropicProvider(base_url=server.anthropic_url, api_key="k"))
    provider = OpenAIProvider(base_url=server.openai_url, api_key="k")
    return (
        OpenAIChatModel("gpt-4.1", provider=provider)
        if kind == "chat"
        else OpenAIResponsesModel("gpt-5", provider=provider)
    )


def outputs() -> dict[str, Callable[[type[BaseModel]], Any]]:
    from pydantic_ai import NativeOutput, PromptedOutput, ToolOutput

    return {"tool": ToolOutput, "native": NativeOutput, "prompted": PromptedOutput}


async def study_experiments(agent: Any, question: str, **more: Any) -> Any:
    async with agent.model:
        return await agent.run(question, **more)


@pytest.mark.quick(2)
@pytest.mark.parametrize("mode", ["tool", "native", "prompted"])
@pytest.mark.parametrize("kind", ["chat", "responses", "messages"])
def test_a_judge_gets_a_verdict_at_once_however_it_asks_for_it(kind, mode):
    from pydantic_ai import Agent

    with serve() as server:
        found = []
        for _ in range(2):
            agent = Agent(model_of(kind, server), output_type=outputs()[mode](Verdict), instructions="You are a judge.")
            found.append(asyncio.run(study_experiments(agent, "Score: a match lights it.")).output)
        assert isinstance(found[0], Verdict)
        assert found[0] == found[1]
        assert len(server.requests) == 2


@pytest.mark.parametrize("kind", ["chat", "responses", "messages"])
def test_an_agent_searches_with_the_question_and_answers_what_it_found(kind):
    from pydantic_ai import Agent

    with serve() as server:
        agent = Agent(model_of(kind, server))

        @agent.tool_plain
        def unrelated(number: int) -> str:
            """Counts."""
            return str(number)

        @agent.tool_plain
        def docs_search(query: str, shelf: Literal["a", "b"]) -> str:
            """Looks things up."""
            return f"found on {shelf[:0]}the shelf for: {query}"

        first = asyncio.run(study_experiments(agent, "What lights a lamp?"))
        assert first.output == "found on the shelf for: What lights a lamp?"
        second = asyncio.run(study_experiments(agent, "And a boat?", message_history=first.all_messages()))
        assert second.output == "found on the shelf for: And a boat?"
        assert [bool(request.tool_results) for request in server.requests] == [False, True, False, True]


def test_an_agent_that_must_give_structured_output_searches_before(clients):
    from pydantic_ai import Agent

    with serve() as server:
        agent = Agent(model_of("chat", server), output_type=Verdict)
        asked = []

        @agent.tool_plain
        def search(query: str) -> str:
            asked.append(query)
            return "found"

        assert isinstance(asyncio.run(study_experiments(agent, "lamp?")).output, Verdict)
        assert asked == ["lamp?"]


def test_without_tools_it_says_that_it_knows_nothing(clients):
    with serve() as server:
        assert clients(server).ask("messages", stream=False)["text"].startswith("This is a rehearsal")


@pytest.mark.parametrize(
    ("name", "required"), [("Bash", "command"), ("run_search", "script"), ("search_file", "path"), ("Skill", "skill")]
)
def test_a_question_is_never_run_as_a_command(name: str, required: str) -> None:
    texts = {required: {"type": "string"}}
    schema = {"type": "object", "properties": texts, "required": [required]}
    tool = {"name": name, "description": "Find anything.", "input_schema": schema}
    body = {"model": "m", "messages": [{"role": "user", "content": "rm -rf ~"}], "tools": [tool]}
    request = read_request("messages", number=1, path="/v1/messages", headers={}, body=body)
    assert default_response(request).tool_calls == ()


@pytest.mark.parametrize("more", ["", " (house:other)"])
def test_a_skill_that_is_listed_is_loaded_beside_the_search(more: str) -> None:
    reminder = f"The following skills are available for use with the Skill tool:\n\n- house:tables{more}: How to."
    tools = [
        {"name": name, "input_schema": {"properties": {"query": {"type": "string"}}}} for name in ("Skill", "search")
    ]
    said = [
        {"type": "text", "text": f"<system-reminder>\n{reminder}\n</system-reminder>"},
        {"type": "text", "text": "q"},
    ]
    body = {"model": "m", "messages": [{"role": "user", "content": said}], "tools": tools}
    request = read_request("messages", number=1, path="/v1/messages", headers={}, body=body)
    skill, search = default_response(request).tool_calls
    assert (skill.name, skill.arguments) == ("Skill", {"skill": "house:tables"})
    assert (search.name, search.arguments) == ("search", {"query": "q"})
    calls = [{"type": "tool_use", "id": str(at), "name": tool["name"], "input": {}} for at, tool in enumerate(tools)]
    results = [{"type": "tool_result", "tool_use_id": str(at), "content": f"result {at}"} for at in range(2)]
    loaded = {"type": "text", "text": "Base directory for this skill: /x\n\nHow to."}
    body["messages"] += [{"role": "assistant", "content": calls}, {"role": "user", "content": [*results, loaded]}]
    request = read_request("messages", number=2, path="/v1/messages", headers={}, body=body)
    assert (default_response(request).text, default_response(request).tool_calls) == ("result 1", ())


def test_claude_codes_reminders_are_neither_question_nor_result():
    reminder = "<system-reminder>\nYou have tokens left.\n</system-reminder>"
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": "lamp?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "search", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": f"A match.\n\n{reminder}"},
                    {"type": "text", "text": reminder},
                ],
            },
        ],
    }
    request = read_request("messages", number=1, path="/v1/messages", headers={}, body=body)
    assert (request.question, request.tool_results) == ("lamp?", ("A match.",))
    assert default_response(request).text == "A match."


_SCALARS = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.fixed_dictionaries({"const": st.integers() | st.text(max_size=5)}),
    st.fixed_dictionaries({"enum": st.lists(st.integers() | st.text(max_size=5), min_size=1, max_size=4)}),
    st.integers(0, 40).map(lambda n: {"type": "string", "minLength": n, "maxLength": n + 3}),
    st.tuples(st.integers(-50, 50), st.integers(0, 9)).map(
        lambda pair: {"type": "integer", "minimum": pair[0], "maximum": pair[0] + pair[1]}
    ),
    st.integers(-50, 50).map(lambda n: {"type": "integer", "exclusiveMinimum": n, "exclusiveMaximum": n + 2}),
    st.tuples(st.floats(-50, 50), st.integers(1, 9)).map(
        lambda pair: {"type": "number", "minimum": pair[0], "maximum": pair[0] + pair[1]}
    ),
)


def _larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.dictionaries(st.text(max_size=5), inner, max_size=4).map(
            lambda found: {
                "type": "object",
                "properties": found,
                "required": list(found),
                "additionalProperties": False,
            }
        ),
        st.tuples(inner, st.integers(0, 2)).map(
            lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1], "maxItems": pair[1] + 1}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found}),
        inner.map(lambda found: {"$defs": {"one": found}, "$ref": "#/$defs/one"}).filter(
            lambda one: "$defs" not in one["$defs"]["one"]
        ),
    )


@given(schema=st.recursive(_SCALARS, _larger, max_leaves=8), seed=st.text(max_size=5))
def test_a_value_is_what_its_schema_allows(schema, seed):
    schema = _lifted(schema)
    value = value_of(schema, seed)
    jsonschema.validate(value, schema)
    assert json.dumps(value) == json.dumps(value_of(schema, seed))


def _lifted(schema: dict[str, Any]) -> dict[str, Any]:
    """With all definitions at the root, where a reference looks for them."""
    found: dict[str, Any] = {}

    def lift(one: Any) -> Any:
        if isinstance(one, list):
            return [lift(part) for part in one]
        if not isinstance(one, dict):
            return one
        if "$ref" in one and "$defs" in one:
            name = f"d{len(found)}"
            found[name] = {}
            found[name] = lift(one["$defs"]["one"])
            return {"$ref": f"#/$defs/{name}"}
        return {key: lift(part) for key, part in one.items()}

    lifted = lift(schema)
    return {**lifted, "$defs": found} if found else lifted


def test_a_schema_that_refers_to_itself_ends():
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["children"],
    }
    jsonschema.validate(value_of(tree, "x"), tree)


FORM = """Say what you think.

End your answer with 7 lines in this form:
choice: A or B
more: first, second or neither
order: red, green, blue in your order, the first one first, with commas between
guess: a whole number from 3 to 7
share: 0 to 100, person a: shy
price: an amount in dollars, 5 or more
why: your words
"""


def test_a_form_is_filled_in_as_it_asks():
    filled = filled_form(FORM, "seed")
    assert filled is not None
    assert filled == filled_form(FORM, "seed") != filled_form(FORM, "another seed")
    answers = dict(line.split(": ") for line in filled.splitlines())
    assert list(answers) == ["choice", "more", "order", "guess", "share", "price", "why"]
    assert answers["choice"] in {"A", "B"}
    assert answers["more"] in {"first", "second", "neither"}
    assert sorted(answers["order"].split(", ")) == ["blue", "green", "red"]
    assert 3 <= int(answers["guess"]) <= 7
    assert 0 <= int(answers["share"]) <= 100
    assert int(answers["price"]) >= 5
    assert answers["why"]


def test_only_the_last_form_of_a_question_counts():
    assert filled_form("One line in this form:\nold: A\n\nNo: one line in this form:\nnew: B\n", "x") == "new: B"
    assert filled_form("Which form do you like? A: this, or B: that?", "x") is None


@given(lines=st.text(max_size=200), seed=st.text(max_size=5))
def test_any_text_may_stand_where_a_form_does(lines, seed):
    filled_form(f"End in this form:\n{lines}", seed)
