"""The messages of a server to karat's own client, so that the SDK takes each for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from karat.records import MODERN_PROTOCOL, JsonObject

if TYPE_CHECKING:
    from karat.mcp.faults import Evidence


class Answered(msgspec.Struct, frozen=True):
    """As `data` of an error: the server sent it.

    The SDK has the same codes for timeouts and closed connections.
    """

    data: object


class Undelivered(msgspec.Struct, frozen=True):
    """As `data` of an error: the transport made it, because the request got no answer."""

    evidence: Evidence


class Screen:
    """Sees every message before the SDK does."""

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}  # tools that no client can call → why
        self._names: set[str] = set()  # of the tools of the list so far
        self.changed = False  # the server has announced another list of tools

    def notified(self, method: str) -> None:
        """Records a notification."""
        self.changed = self.changed or method == "notifications/tools/list_changed"

    def __call__(self, request: Any, reply: Any, *, undelivered: Evidence | None) -> None:
        """Marks errors, and corrects lists, in place.

        `undelivered`: why the transport made the error.
        """
        from mcp_types import CONNECTION_CLOSED, PROTOCOL_VERSION_META_KEY, REQUEST_TIMEOUT

        error: Any = getattr(reply, "error", None)
        parameters = request.params or {}
        if error is None:
            # Many servers write null for what is absent, and an empty cursor for the last page
            for key, value in list(reply.result.items()):
                if value is None or (key == "nextCursor" and value == ""):
                    del reply.result[key]
            if request.method == "tools/list":
                if not parameters.get("cursor"):
                    self.left_out.clear()
                    self._names.clear()

                # Revisions from 2026 on name theirs in each request, and the others are alike
                meta = parameters.get("_meta")
                modern = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
                self._correct(reply.result, MODERN_PROTOCOL if modern else "2025-11-25")
        elif undelivered is not None:
            error.data = Undelivered(undelivered)
        elif error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):  # those of the SDK
            error.data = Answered(error.data)

    def _correct(self, result: JsonObject, version: str) -> None:
        """Leaves out tools that cannot be called, instead of refusing the whole list."""
        tools = result.get("tools")
        if not isinstance(tools, list) or _problem(result | {"tools": []}, version) is not None:
            return
        kept = []
        for place, tool in enumerate(tools, start=1):
            name = f"number {place} of the list"
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                name = tool["name"]
            problem = _problem(result | {"tools": [tool]}, version)
            if problem is None and name in self._names:
                self.left_out[f"another {name}"] = "a tool before it has the same name"
            elif problem is None:
                kept.append(tool)
                self._names.add(name)
            else:
                self.left_out[name] = problem

        result["tools"] = kept


def _problem(result: JsonObject, version: str) -> str | None:
    """Why the SDK refuses or drops a list with this one tool; None if it does not."""
    from mcp.shared.inbound import find_invalid_x_mcp_header
    from mcp_types.methods import validate_server_result
    from pydantic import ValidationError

    try:
        validate_server_result("tools/list", version, result)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][2:]))
        return f"its {place or 'definition'} is not valid ({first['msg'].lower()})"

    for tool in result["tools"]:
        wrong = find_invalid_x_mcp_header(tool["inputSchema"])
        if wrong is not None and version == MODERN_PROTOCOL:
            return f"its x-mcp-header is not valid ({wrong})"

    return None
