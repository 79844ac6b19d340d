"""The scripted model server as Gemini's API, asked by Google's SDK."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from karat.testing.models import ModelServer, serve

DECLARED = {
    "function_declarations": [
        {
            "name": "mcp_docs_search",
            "description": "Searches.",
            "parameters_json_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
        }
    ]
}


@pytest.fixture(scope="module")
def sdk() -> ModuleType:
    """Importing it takes a second, which all processes that collect tests would pay."""
    module: ModuleType = pytest.importorskip("google.genai", reason="needs the extra `chat`")
    return module


def parts(sdk: ModuleType, server: ModelServer, contents: Any, *, stream: bool, **config: Any) -> list[Any]:
    """What is answered, piece by piece."""
    client = sdk.Client(api_key="none", http_options=sdk.types.HttpOptions(base_url=server.gemini_url))
    asked = {"model": "gemini-x", "contents": contents, "config": sdk.types.GenerateContentConfig(**config)}
    models = client.models
    return list(models.generate_content_stream(**asked)) if stream else [models.generate_content(**asked)]


@pytest.mark.parametrize("stream", [False, True])
def test_text_thoughts_and_tokens_arrive(sdk: ModuleType, stream: bool) -> None:
    tokens = {"input": 100, "output": 20, "cache_read": 30, "reasoning": 5}
    said = {"text": "A match lights it – “gently”.", "reasoning": "A lamp, so to speak.", "usage": tokens}
    with serve([{"say": [said]}]) as server:
        found = parts(sdk, server, "What lights a lamp?", stream=stream, system_instruction="Be brief.")
        (request,) = server.requests
    pieces = [part for one in found for part in one.candidates[0].content.parts]
    assert "".join(part.text for part in pieces if not part.thought) == said["text"]
    assert "".join(part.text for part in pieces if part.thought) == said["reasoning"]
    used = found[-1].usage_metadata
    assert (used.prompt_token_count, used.candidates_token_count, used.thoughts_token_count) == (100, 15, 5)
    assert (used.cached_content_token_count, used.total_token_count) == (30, 120)
    assert found[-1].candidates[0].finish_reason == sdk.types.FinishReason.STOP
    assert (request.api, request.model, request.stream, request.key) == ("gemini", "gemini-x", stream, "none")
    assert (request.system, request.question) == ("Be brief.", "What lights a lamp?")


@pytest.mark.parametrize("stream", [False, True])
def test_calls_of_tools_and_their_results_make_a_conversation(sdk: ModuleType, stream: bool) -> None:
    """Also where two calls of one tool have no ids, as clients may leave them."""
    call = {"name": "search", "arguments": {"query": "{{ question }}"}}
    with serve([{"say": [{"tool_calls": [call, call]}, "It says: {{ tool_result }}"]}]) as server:
        (first, *_) = parts(sdk, server, "lamp", stream=stream, tools=[DECLARED])
        made = first.candidates[0].content
        assert [(part.function_call.name, part.function_call.args) for part in made.parts] == [
            ("mcp_docs_search", {"query": "lamp"}),
            ("mcp_docs_search", {"query": "lamp"}),
        ]
        for part in made.parts:
            part.function_call.id = None
        results = [
            sdk.types.Part.from_function_response(name="mcp_docs_search", response={"output": "a match"}),
            sdk.types.Part.from_function_response(name="mcp_docs_search", response={"error": "no more"}),
        ]
        asked = sdk.types.Content(role="user", parts=[sdk.types.Part(text="lamp")])
        contents = [asked, made, sdk.types.Content(role="user", parts=results)]
        found = parts(sdk, server, contents, stream=stream, tools=[DECLARED])
        request = server.requests[-1]
    assert "".join(one.text for one in found) == "It says: no more"
    assert [(said.text, said.error) for said in request.messages if said.role == "tool"] == [
        ("a match", False),
        ("no more", True),
    ]
    (tool,) = request.tools
    assert (tool.name, tool.schema["properties"]) == ("mcp_docs_search", {"query": {"type": "string"}})


@pytest.mark.parametrize("stream", [False, True])
def test_limits_refusals_and_faults_arrive(sdk: ModuleType, stream: bool) -> None:
    with serve([{"say": [{"text": "half", "stop": "length"}]}]) as server:
        found = parts(sdk, server, "why?", stream=stream)
    assert found[-1].candidates[0].finish_reason == sdk.types.FinishReason.MAX_TOKENS
    with serve([{"say": [{"status": 400, "error": "no such thing"}]}]) as server:
        with pytest.raises(sdk.errors.ClientError, match="no such thing") as fault:
            parts(sdk, server, "why?", stream=stream)
        assert (fault.value.code, fault.value.status) == (400, "INVALID_ARGUMENT")
    with serve([{"say": ["never"]}]) as server, pytest.raises(sdk.errors.ClientError, match="has no result"):
        loose = sdk.types.Content(role="model", parts=[sdk.types.Part.from_function_call(name="search", args={})])
        parts(sdk, server, [loose, sdk.types.Content(role="user", parts=[sdk.types.Part(text="well?")])], stream=stream)


def test_answers_are_made_up_from_a_schema(sdk: ModuleType) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}}}
    with serve() as server:
        (found,) = parts(
            sdk, server, "why?", stream=False, response_mime_type="application/json", response_json_schema=schema
        )
    assert found.parsed["score"] in range(1, 6)
