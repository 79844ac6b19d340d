"""An earlier answer of a model, as messages that tell another session of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from karat.mcp import Tool
from karat.records import Reply

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["retold"]


def retold(reply: Reply, named: Mapping[str, Tool], before: int) -> list[ModelMessage]:
    """Its tool calls, each with what came back, then its text; `before`: so many calls were retold already.

    What it thought, what it said between calls, and which calls it made at once are not kept
    with a reply. Calls of tools that are not offered now are left out.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart

    names = {(tool.server, tool.name): name for name, tool in named.items()}
    messages: list[ModelMessage] = []
    for number, call in enumerate(reply.tool_calls, start=before):
        name = names.get((call.server or "", call.tool))
        if name is None:
            continue
        key = f"karat{number:04}"  # nine letters and digits: Mistral takes no other
        messages.append(ModelResponse(parts=[ToolCallPart(tool_name=name, args=call.input, tool_call_id=key)]))
        back = ToolReturnPart(
            tool_name=name,
            content=call.error if call.error is not None else call.result or "",
            tool_call_id=key,
            outcome="success" if call.error is None else "failed",
        )
        messages.append(ModelRequest(parts=[back]))
    messages.append(ModelResponse(parts=[TextPart(content=reply.text)], model_name=reply.model))
    return messages
