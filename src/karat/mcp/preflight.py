"""What a server offers: its tools, listed and hashed, so a change of the measured factor is
detected.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from karat.errors import InfrastructureFault
from karat.records import JsonObject, ServerEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mcp_types
    from mcp import Client

MOST_PAGES = 100
MOST_TOOLS = 10_000
"""Bounds of a listing: a server that never stops paging cannot hold up a run."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of one server, as offered to a model."""

    server: str
    name: str
    description: str
    input_schema: JsonObject  # JSON Schema of its arguments


class ToolList(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of one server."""

    server: str
    tools: tuple[Tool, ...]  # in the server's order
    digest: str  # hex, over names, descriptions and input schemas; the order does not matter
    protocol: str | None = None  # the negotiated version; None: not known, in an old recording
    left_out: dict[str, str] = {}  # tools that no client can call → why; not in the digest


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A server's description of itself and its tools, in karat's form and in the protocol's."""

    tools: ToolList
    introduction: dict[str, object]  # the result of `initialize`
    as_listed: tuple[Any, ...]  # the SDK's tools, with all their fields


class ServerFault(msgspec.Struct, frozen=True, kw_only=True):
    """A server that could not be reached or listed; the trials that need it cannot run."""

    server: str
    kind: str  # as in the InfrastructureFault of a trial
    message: str
    retriable: bool = False
    retry_after: float | None = None  # seconds that it asked for


async def list_tools(client: Client, server: str) -> list[mcp_types.Tool]:
    """Every page of the server's list. Raises InfrastructureFault for a list without end.

    A server that does not know the method has no tools, which is no fault.
    """
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and not tools:
                return []
            raise

        tools += page.tools
        if page.next_cursor is None:
            return tools
        if page.next_cursor == cursor or len(tools) > MOST_TOOLS:
            break
        cursor = page.next_cursor

    message = f"MCP server '{server}': its list of tools does not end ({len(tools)} tools so far)"
    raise InfrastructureFault("mcp_tool_list", message)


def tool_change(before: ToolList, after: ToolList) -> ServerEvent | None:
    """What differs between two lists of the same server; None if nothing does."""
    same_protocol = before.protocol == after.protocol
    if before.digest == after.digest and same_protocol:
        return None
    old = {tool.name: tool for tool in before.tools}
    new = {tool.name: tool for tool in after.tools}
    return ServerEvent(
        server=after.server,
        what="changed",
        tools_digest=after.digest,
        protocol=None if same_protocol else after.protocol,
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        altered=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
    )


def offer_of(
    server: str,
    introduction: dict[str, object],
    listed: Sequence[mcp_types.Tool],
    left_out: dict[str, str] | None = None,
) -> Offer:
    """The listed tools, as a ToolList with its digest, and as received.

    `left_out`: tools that are not among them.
    """
    tools = tuple(
        Tool(
            server=server,
            name=tool.name,
            description=tool.description or "",
            input_schema=dict(tool.input_schema),
        )
        for tool in listed
    )
    offered = sorted(
        msgspec.json.encode([tool.name, tool.description, tool.input_schema], order="sorted")
        for tool in tools
    )
    digest = blake2b(b"\n".join(offered), digest_size=16).hexdigest()
    version = introduction.get("protocolVersion")
    protocol = version if isinstance(version, str) else None
    offer = ToolList(
        server=server, tools=tools, digest=digest, protocol=protocol, left_out=left_out or {}
    )
    return Offer(tools=offer, introduction=introduction, as_listed=tuple(listed))
