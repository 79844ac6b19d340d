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
                completion = events.get_final_completion()
        else:
            completion = self.openai.chat.completions.create(**given)
        (choice,) = completion.choices
        usage = completion.usage
        return {
            "text": choice.message.content or "",
            "calls": [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []],
            "stop": choice.finish_reason,
            "model": completion.model,
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
                response = events.get_final_response()
        else:
            response = self.openai.responses.create(**given)
        usage = response.usage
        return {
            "text": response.output_text,
            "calls": [(item.name, item.arguments) for item in response.output if item.type == "function_call"],
            "stop": response.status,
            "model": response.model,
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
                message = events.get_final_message()
        else:
            message = self.anthropic.messages.create(**given)
        usage = message.usage
        return {
            "text": "".join(block.text for block in message.content if block.type == "text"),
            "calls": [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"],
            "stop": message.stop_reason,
            "model": message.model,
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
