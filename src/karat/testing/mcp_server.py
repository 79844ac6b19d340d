"""A scripted MCP server with tools that succeed, fail, hang, crash and report what they see. For
tests and for trying out agents.

    python -m karat.testing.mcp_server                          # stdio
    python -m karat.testing.mcp_server --transport http         # prints {"url": …}, then serves
    python -m karat.testing.mcp_server --transport sse --require-header "authorization: Bearer abc"
    python -m karat.testing.mcp_server --transport http --status 429 --retry-after 7

From Python, `serving("http")` runs one in a process and yields its URL. The server over HTTP and
SSE is the SDK's; the one over stdio does without it, and starts in a tenth of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from karat.records import McpServer
from karat.testing.stdio_mcp import Request, StdioServer

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_SHELF = "shelf://lamps"
_MODULE = __spec__.name  # also where this file is the program


def stdio_server(name: str = "scripted", *options: str, **fields: Any) -> McpServer:
    """The definition of a scripted stdio server, as an experiment file would give it."""
    arguments = ("-m", _MODULE, *options)
    return McpServer(name=name, type="stdio", command="python", args=arguments, **fields)


@contextmanager
def serving(transport: str, *options: str) -> Iterator[str]:
    """The URL of a scripted server that runs during the block; transport `http` or `sse`."""
    argv = [
        sys.executable,
        "-P",
        "-m",
        _MODULE,
        "--transport",
        transport,
        *options,
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url: str = json.loads(process.stdout.readline())["url"]
            yield url
        finally:
            process.kill()


def scripted(*, more_tools: int = 0) -> MCPServer[object]:
    """The SDK's server, with `more_tools` tools that do nothing, to make the list long."""
    from mcp.server.mcpserver import MCPServer

    server: MCPServer[Any] = MCPServer("scripted", log_level="CRITICAL")
    for name, tool in _tools(more_tools).items():
        server.add_tool(tool, name=name, structured_output=tool is structured)

    _add_tools_of_the_sdk(server)
    server.resource(_SHELF, name="lamps", mime_type="text/markdown")(lamps)
    server.prompt(name="ask_about")(ask_about)
    return server


def _scripted_stdio(*, more_tools: int) -> StdioServer:
    """The same server without the SDK."""

    def fail(message: str = "out of order") -> str:
        """Fails, and says why."""
        raise RuntimeError(message)

    def grow(name: str) -> str:
        """Adds a tool to the server."""
        server.tools[name] = nothing
        return name

    def headers() -> str:
        """Reports, as JSON, the HTTP headers of this call."""
        return "{}"

    def order(request: Request, book: str) -> dict[str, object]:
        """Asks the user how many copies to order, and reports the reply."""
        form = {"type": "object", "properties": {"copies": {"type": "integer"}}}
        question = {"message": f"How many copies of {book}?", "requestedSchema": form}
        reply = request.elicit(question)
        said = {"accept": "Accepted", "decline": "Declined", "cancel": "Cancelled"}[reply["action"]]
        copies = reply.get("content", {}).get("copies", 0)
        return {"book": book, "copies": copies, "said": f"{said}Elicitation"}

    own = {tool.__name__: tool for tool in (fail, grow, headers, order)}
    server = StdioServer(
        "scripted",
        tools=_tools(more_tools) | own,
        documents={_SHELF: lamps},
        prompts={"ask_about": ask_about},
    )
    return server


def _tools(more_tools: int) -> dict[str, Callable[..., object]]:
    """The tools that know nothing of their server."""
    tools = (
        search,
        echo,
        hang,
        large,
        picture,
        structured,
        environment,
        crash,
        spawn,
        complain,
    )
    fillers = {f"nothing_{number}": nothing for number in range(more_tools)}
    return {tool.__name__: tool for tool in tools} | fillers


def search(query: str, limit: int = 3) -> str:
    """Searches a shelf of three documents."""
    shelf = [
        (
            "# Lamps\n\nA lamp is lit with a match. It burns for six hours.\n\nKeep it away from "
            "curtains."
        ),
        "# Boats\n\nA boat floats. It is steered with a rudder.",
        "# Rain\n\nRain falls from clouds.",
    ]
    words = query.lower().split()
    hits = []
    for text in shelf:
        if any(word in text.lower() for word in words):
            hits.append(text)

    return "\n\n".join(hits[:limit]) or "nothing found"


def echo(text: str) -> str:
    """Returns what it gets."""
    return text


async def hang(seconds: float = 3600.0) -> str:
    """Answers late."""
    import asyncio

    await asyncio.sleep(seconds)
    return f"here after {seconds:g} s"


def large(megabytes: float) -> str:
    """Answers at length."""
    return "x" * int(megabytes * 1024 * 1024)


def picture() -> object:
    """Answers with a picture and a link."""
    from mcp_types import ImageContent, ResourceLink

    return [
        ImageContent(type="image", data="AAAA", mime_type="image/png"),
        ResourceLink(type="resource_link", name="more", uri="file:///more.md"),
    ]


def structured() -> dict[str, int]:
    """Answers with an object."""
    return {"seven": 7}


def environment() -> str:
    """Reports, as JSON, what this process sees: variables, arguments, ids."""
    pid = os.getpid()
    ids = {
        "pid": pid,
        "parent": os.getppid(),
        "group": os.getpgrp(),
        "session": os.getsid(0),
        "cwd": os.getcwd(),
    }
    return json.dumps(
        {"variables": dict(os.environ), "argv": sys.argv, "executable": sys.executable, **ids}
    )


def crash(words: str = "", code: int = 3) -> str:
    """Ends the process in the middle of the call, with last words on stderr."""
    sys.stderr.write(words)
    sys.stderr.flush()
    os._exit(code)


def spawn(stubborn: bool = False) -> str:
    """Starts a child that outlives the server unless someone ends it; returns its process id."""
    script = "import signal, time\n"
    if stubborn:
        script += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    script += "print('up', flush=True)\ntime.sleep(600)"
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    return str(child.pid)


def complain(lines: int) -> str:
    """Writes to stderr at length."""
    for number in range(lines):
        sys.stderr.write(f"complaint {number}\n")
    sys.stderr.flush()
    return "done"


def lamps() -> str:
    """A document on lamps."""
    return "# Lamps\n\nA lamp is lit with a match."


def ask_about(topic: str) -> str:
    """Asks about a topic."""
    return f"What do you know about {topic}?"


def nothing() -> str:
    """Does nothing."""
    return ""


def _add_tools_of_the_sdk(server: MCPServer[object]) -> None:
    from typing import Annotated

    from mcp.server.mcpserver import (
        AcceptedElicitation,
        Context,
        Elicit,
        ElicitationResult,
        Resolve,
    )
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import BaseModel

    class Order(BaseModel):
        copies: int

    def fail(message: str = "out of order") -> str:
        """Fails, and says why."""
        raise ToolError(message)

    def grow(name: str) -> str:
        """Adds a tool to the server."""
        server.add_tool(nothing, name=name, structured_output=False)
        return name

    def headers(ctx: Context[Any, Any]) -> str:
        """Reports, as JSON, the HTTP headers of this call."""
        request = ctx.request_context.request
        return json.dumps(dict(request.headers) if request is not None else {})

    def question(book: str) -> Elicit[Order]:
        return Elicit(f"How many copies of {book}?", Order)

    def order(book: str, wanted: object) -> dict[str, object]:
        """Asks the user how many copies to order, and reports the reply."""
        copies = wanted.data.copies if isinstance(wanted, AcceptedElicitation) else 0
        return {"book": book, "copies": copies, "said": type(wanted).__name__}

    # The annotations above are strings, which the SDK cannot look up inside a function.
    headers.__annotations__["ctx"] = Context
    question.__annotations__["return"] = Elicit[Order]
    order.__annotations__ |= {
        "book": str,
        "wanted": Annotated[ElicitationResult[Order], Resolve(question)],
        "return": dict[str, str | int],
    }
    server.add_tool(fail, structured_output=False)
    server.add_tool(grow, structured_output=False)
    server.add_tool(headers, structured_output=False)
    server.add_tool(order, structured_output=True)


def main(arguments: list[str] | None = None) -> None:
    """Serves until stdin is closed (stdio) or the process is ended."""
    parser = argparse.ArgumentParser(prog=_MODULE, description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--port", type=int, default=0, help="http and sse; default: a free one")
    parser.add_argument("--more-tools", type=int, default=0, help="add this many tools")
    parser.add_argument("--start-seconds", type=float, default=0.0, help="how long the start takes")
    parser.add_argument(
        "--exit", type=int, default=None, metavar="CODE", help="end before the handshake"
    )
    parser.add_argument("--words", default="", help="written to stderr at the start")
    parser.add_argument(
        "--babble", default="", help="written to stdout at the start, where it does not belong"
    )
    parser.add_argument("--silent", action="store_true", help="never answer the handshake")
    parser.add_argument("--ignore-end", action="store_true", help="keep running when stdin closes")
    parser.add_argument(
        "--ignore-sigterm",
        action="store_true",
        help="keep running on SIGTERM and when stdin closes",
    )
    parser.add_argument(
        "--status", type=int, default=None, help="answer every HTTP request with this status"
    )
    parser.add_argument("--retry-after", default=None, help="with --status: send this header")
    parser.add_argument("--location", default=None, help="with --status: redirect to this URL")
    parser.add_argument(
        "--require-header", default=None, metavar="NAME: VALUE", help="else HTTP 401"
    )
    chosen = parser.parse_args(arguments)
    sys.stderr.write(chosen.words)
    sys.stderr.flush()
    sys.stdout.write(chosen.babble)
    sys.stdout.flush()
    time.sleep(chosen.start_seconds)
    if chosen.exit is not None:
        sys.exit(chosen.exit)
    if chosen.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if chosen.silent:
        time.sleep(3600)
    if chosen.transport == "stdio":
        _scripted_stdio(more_tools=chosen.more_tools).serve()
        if chosen.ignore_sigterm or chosen.ignore_end:
            time.sleep(3600)
    else:
        import asyncio

        asyncio.run(_serve(chosen))


async def _serve(chosen: argparse.Namespace) -> None:
    import socket

    import uvicorn

    server = scripted(more_tools=chosen.more_tools)
    if chosen.transport == "sse":
        app: Any = server.sse_app()
    else:
        app = server.streamable_http_app()

    name, _, value = (chosen.require_header or "").partition(":")

    async def door(scope: Any, receive: Any, send: Any) -> None:
        """The application, or a fixed status instead, or before it a check for a header."""
        status = chosen.status
        if status is None and name and scope["type"] == "http":
            given = dict(scope["headers"]).get(name.strip().lower().encode())
            status = None if given == value.strip().encode() else 401

        if status is None or scope["type"] != "http":
            await app(scope, receive, send)
            return

        extra = {"retry-after": chosen.retry_after, "location": chosen.location}
        headers = []
        for key, text in extra.items():
            if text is not None:
                headers.append((key.encode(), text.encode()))

        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    # asyncio turns Nagle's algorithm off only on sockets with a named protocol; otherwise every
    # answer waits 40 ms for the client's delayed acknowledgement.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", chosen.port))
    listening.listen()
    path = "/sse" if chosen.transport == "sse" else "/mcp"
    url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
    sys.stdout.write(json.dumps({"url": url}) + "\n")
    sys.stdout.flush()
    await uvicorn.Server(uvicorn.Config(door, log_level="critical")).serve(sockets=[listening])


if __name__ == "__main__":
    main()
