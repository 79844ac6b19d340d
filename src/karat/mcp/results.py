"""A tool's result as text: what an agent is told, and what the journal keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["LARGEST_RESULT", "as_text", "too_large"]

LARGEST_RESULT = 10 * 1024 * 1024
"""Bytes of UTF-8. A larger result is an error of the call: no agent could read it, and the journal would carry it."""


def as_text(result: CallToolResult) -> str:
    """Text blocks joined by line breaks, other blocks described; structured content as JSON where there is no text."""
    from mcp_types import TextContent

    parts = [_block(block) for block in result.content]
    has_text = any(isinstance(block, TextContent) and block.text for block in result.content)
    if not has_text and result.structured_content is not None:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    return "\n".join(parts)


def too_large(text: str) -> str | None:
    """Why the text is too much; None if it is not."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= LARGEST_RESULT:
        return None
    return f"the result has {size} bytes, more than the {LARGEST_RESULT} that are taken"


def _block(block: Any) -> str:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents

    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, (ImageContent, AudioContent)):
        return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    if isinstance(block, ResourceLink):
        return f"[link {block.name}: {block.uri}]"
    if isinstance(block, EmbeddedResource):
        if isinstance(block.resource, TextResourceContents):
            return block.resource.text
        return f"[resource {block.resource.uri}, {len(block.resource.blob) * 3 // 4} bytes]"
    return f"[{getattr(block, 'type', type(block).__name__)}]"
