"""An MCP server whose every reply a test can replace."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response


class RawServer:
    """An MCP server over HTTP whose replies a test gives, one function a method; the handshake is given."""

    def __init__(self, httpserver: HTTPServer, path: str = "/mcp") -> None:
        self.url = httpserver.url_for(path)
        self.seen: list[str] = []  # methods, in order; of a call the tool
        self.tools: list[dict[str, Any]] = [{"name": "t", "inputSchema": {"type": "object"}}]
        # None: the usual answer
        self.answers: dict[str, Callable[[Any], Response | dict[str, Any] | None]] = {}
        self.session: str | None = None
        httpserver.expect_request(path).respond_with_handler(self._answer)

    def text(self, text: str) -> dict[str, Any]:
        return {"result": {"content": [{"type": "text", "text": text}], "structuredContent": {"seven": 7}}}

    def reply(self, request: Request, content: dict[str, Any], **options: Any) -> Response:
        """A reply of JSON-RPC to this request."""
        body = json.dumps({"jsonrpc": "2.0", "id": request.json["id"], **content})
        return Response(body, content_type="application/json", **options)

    def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status=405)
        message = request.json
        method = message.get("method", "reply")
        self.seen.append(method)
        if method in self.answers and (made := self.answers[method](request)) is not None:
            return made if isinstance(made, Response) else self.reply(request, made)
        if "id" not in message or method == "reply":
            return Response(status=202)
        if method == "initialize":
            self.session = f"s{self.seen.count('initialize')}"
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
            return self.reply(request, {"result": result}, headers={"Mcp-Session-Id": self.session})
        if method == "tools/list":
            return self.reply(request, {"result": {"tools": self.tools}})
        if method == "tools/call":
            return self.reply(request, self.text("fine"))
        return self.reply(request, {"error": {"code": -32601, "message": "no such method"}})
