"""The least that a chat trial or a tool call can be: `bare.py chat|mcp|start --trials N --tools URL [--model URL]`.

A chat trial is two requests to the model by pydantic-ai's bare model class, with one tool call by the MCP SDK's client
between them. `start` connects, and asks nothing.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client

AT_ONCE = 10
PROMPT = "Use the search tool."


async def chat(url: str, tools: str, trials: int) -> None:
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.tools import ToolDefinition

    model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=url))
    async with Client(tools) as client:
        offered = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema)
            for tool in (await client.list_tools()).tools
        ]
        parameters = ModelRequestParameters(function_tools=offered)

        async def ask(number: int) -> None:
            parts: list[Any] = [SystemPromptPart(PROMPT), UserPromptPart(f"How is lamp {number} lit?")]
            messages: list[Any] = [ModelRequest(parts=parts)]
            wanted = await model.request(messages, None, parameters)
            (call,) = wanted.tool_calls
            result: Any = await client.call_tool(call.tool_name, call.args_as_dict())
            text = result.content[0].text
            returned = ToolReturnPart(tool_name=call.tool_name, content=text, tool_call_id=call.tool_call_id)
            messages += [wanted, ModelRequest(parts=[returned])]
            assert "match" in ((await model.request(messages, None, parameters)).text or "")

        await crowd(ask, trials)


async def mcp(_: str, tools: str, trials: int) -> None:
    async with Client(tools) as client:

        async def call(number: int) -> None:
            result: Any = await client.call_tool("search", {"query": f"lamp {number}"})
            assert result.content[0].text

        await crowd(call, trials)


async def crowd(ask: Callable[[int], Awaitable[None]], trials: int) -> None:
    """All of them, `AT_ONCE` at a time."""
    numbers = iter(range(trials))

    async def work() -> None:
        for number in numbers:
            await ask(number)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("chat", "mcp"))
    parser.add_argument("--model", default="")
    parser.add_argument("--tools", required=True)
    parser.add_argument("--trials", type=int, required=True)
    options = parser.parse_args()
    asyncio.run({"chat": chat, "mcp": mcp}[options.what](options.model, options.tools, options.trials))


if __name__ == "__main__":
    main()
