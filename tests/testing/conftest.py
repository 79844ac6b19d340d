"""Real clients of the providers' SDKs, and one way to hear what each of them says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from karat.testing.models import ModelServer

PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
ASKED = [{"role": "user", "content": "What lights a lamp?"}]


class Clients:
    """Asks one question by any of the three APIs, whole or streamed, and tells the answer in one form."""

    def __init__(self, server: ModelServer, stack: ExitStack) -> None:
        openai = pytest.importorskip("openai", reason="the extra 'chat' brings the providers' SDKs")
        anthropic = pytest.importorskip("anthropic", reason="the extra 'chat' brings the providers' SDKs")
        common: dict[str, Any] = {"api_key": "a-secret-key", "max_retries": 0, "timeout": 5}
        self.openai = stack.enter_context(openai.OpenAI(base_url=server.openai_url, **common))
        self.anthropic = stack.enter_context(anthropic.Anthropic(base_url=server.anthropic_url, **common))
        self.errors = (openai.APIError, anthropic.APIError)

    def ask(self, api: str, *, stream: bool, tools: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
        ways = {"chat": self._chat, "responses": self._responses, "messages": self._messages}
        return ways[api](stream, tools, {"model": "some-model", **more})

    def _chat(self, stream: bool, tools: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
        offered = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in tools]
        given = {"messages": ASKED, **({"tools": offered} if tools else {}), **given}
        if stream:
            with self.openai.chat.completions.stream(stream_options={"include_usage": True}, **given) as events:
                found = events.get_final_completion()
        else:
            found = self.openai.chat.completions.create(**given)
        (choice,) = found.choices
        usage = found.usage
        return {
            "text": choice.message.content or "",
            "calls": [(one.function.name, one.function.arguments) for one in choice.message.tool_calls or []],
            "stop": choice.finish_reason,
            "model": found.model,
            "usage": {
                "input": usage.prompt_tokens,
                "output": usage.completion_tokens,
                "cache_read": usage.prompt_tokens_details.cached_tokens,
                "reasoning": usage.completion_tokens_details.reasoning_tokens,
            },
        }

    def _responses(self, stream: bool, tools: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
        offered = [{"type": "function", "name": name, "parameters": PARAMETERS, "strict": False} for name in tools]
        given = {"input": ASKED, **({"tools": offered} if tools else {}), **given}
        if stream:
            with self.openai.responses.stream(**given) as events:
                found = events.get_final_response()
        else:
            found = self.openai.responses.create(**given)
        usage = found.usage
        return {
            "text": found.output_text,
            "calls": [(one.name, one.arguments) for one in found.output if one.type == "function_call"],
            "stop": found.status,
            "model": found.model,
            "usage": {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.input_tokens_details.cached_tokens,
                "reasoning": usage.output_tokens_details.reasoning_tokens,
            },
        }

    def _messages(self, stream: bool, tools: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
        offered = [{"name": name, "input_schema": PARAMETERS} for name in tools]
        given = {"messages": ASKED, "max_tokens": 100, **({"tools": offered} if tools else {}), **given}
        if stream:
            with self.anthropic.messages.stream(**given) as events:
                found = events.get_final_message()
        else:
            found = self.anthropic.messages.create(**given)
        usage = found.usage
        return {
            "text": "".join(one.text for one in found.content if one.type == "text"),
            "calls": [(one.name, json.dumps(one.input)) for one in found.content if one.type == "tool_use"],
            "stop": found.stop_reason,
            "model": found.model,
            "usage": {
                "input": usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.cache_read_input_tokens,
                "reasoning": usage.output_tokens_details.thinking_tokens,
            },
        }


@pytest.fixture
def clients() -> Iterator[Any]:
    """`clients(server)`: they are closed with the test."""
    with ExitStack() as stack:
        yield lambda server: Clients(server, stack)
