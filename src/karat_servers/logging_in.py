"""The work of `karat check --login`: opens the browser, waits for the person, and receives the
redirect.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import msgspec

from karat import formats
from karat.cli.ending import keep_hidden
from karat.config import load
from karat.errors import BadOption, did_you_mean
from karat.formats import OUTPUT_FORMAT
from karat.mcp import ServerFault, Toolbox
from karat.records import McpServer
from karat.redact import Redactor
from karat_servers.mcp_parts.oauth import Person
from karat_servers.token_file import TokenFile

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

_PATH = "/callback"
_LARGEST = 16_384  # bytes of a browser's request


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check --login --json`."""

    format: int = OUTPUT_FORMAT
    server: str
    url: str
    tools: int
    file: str  # that holds the tokens

    def __str__(self) -> str:
        tools = formats.plural(self.tools, "tool")
        return f"logged in to {self.server} ({self.url}): {tools}; tokens in {self.file}"


def log_in(
    file: Path,
    name: str,
    *,
    browser: bool,
    port: int | None,
    seconds: float,
    env_file: Path | None,
    show: Callable[[str], None],
) -> LoggedIn:
    """Waits for the person. Raises BadOption and BadExperiment."""
    experiment = load(file, env_file=env_file)
    keep_hidden(experiment.secrets)
    server = next((server for server in experiment.servers if server.name == name), None)
    if server is None:
        hint = (
            did_you_mean(name, [server.name for server in experiment.servers]) or " (it has none)"
        )
        raise BadOption("SERVER", f"the experiment has no MCP server '{name}'{hint}")

    if server.auth is None or server.auth.type != "login":
        raise BadOption(
            "SERVER",
            f"'{name}' has no `auth: {{type: login}}` in the experiment file: it needs no login",
        )

    patient = msgspec.structs.replace(server, init_timeout_seconds=seconds, scope="trial")
    tools = asyncio.run(
        _logged_in(
            patient,
            folder=experiment.folder,
            redact=Redactor(experiment.secrets),
            port=port,
            show=show,
            browser=browser,
        )
    )
    if isinstance(tools, ServerFault):
        raise BadOption("SERVER", tools.message)
    return LoggedIn(server=name, url=server.url, tools=tools, file=str(TokenFile(server).path))


async def _logged_in(
    server: McpServer,
    *,
    folder: Path,
    redact: Redactor,
    port: int | None,
    show: Callable[[str], None],
    browser: bool,
) -> int | ServerFault:
    """How many tools the server offers after the login."""
    way_back = _WayBack()
    redirect = await way_back.open(port)

    async def shown(address: str) -> None:
        way_back.expect(address)
        show("Open this address in your browser, and log in:")
        show(f"  {address}")
        if browser:
            import webbrowser

            webbrowser.open(address)

    try:
        person = Person(redirect=redirect, show=shown, wait=way_back.wait)
        async with Toolbox((server,), redact=redact, folder=folder, person=person) as toolbox:
            offer = (await toolbox.preflight())[server.name]
    finally:
        way_back.close()

    if isinstance(offer, ServerFault):
        return offer
    return len(offer.tools)


class _WayBack:
    """A page on this machine, to which the browser is redirected after the login; a server may want
    more than one.
    """

    def __init__(self) -> None:
        self._result: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )
        self._state = ""

    def expect(self, address: str) -> None:
        """Waits for the return from this address, and for no earlier one."""
        self._result = asyncio.get_running_loop().create_future()
        self._state = dict(parse_qsl(urlsplit(address).query)).get("state", "")

    async def open(self, port: int | None) -> str:
        """Its address. Raises BadOption."""
        try:
            self._server = await asyncio.start_server(
                self._answer,
                "127.0.0.1",
                port or 0,
                limit=_LARGEST,
            )
        except OSError as error:
            raise BadOption("--port", f"port {port} cannot be used: {error.strerror}") from error

        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{_PATH}"

    async def wait(self) -> AuthorizationCodeResult:
        """The code that the browser brought. Raises OAuthFlowError if the login was refused."""
        return await self._result

    def close(self) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
            parts = urlsplit(request[1].decode("ascii", "replace"))
            known = request[0] == b"GET" and parts.path == _PATH
            if known:
                text = self._take(dict(parse_qsl(parts.query)))
            else:
                text = "Nothing here."

            page = (
                f"<!doctype html><meta charset=utf-8><title>karat</title><p>{html.escape(text)}"
            ).encode()
            head = (
                f"HTTP/1.1 {'200 OK' if known else '404 Not Found'}\r\nContent-Type: text/html; "
                f"charset=utf-8\r\n"
            )
            head += (
                f"Content-Length: {len(page)}\r\nConnection: close\r\nReferrer-Policy: "
                f"no-referrer\r\n\r\n"
            )
            writer.write(head.encode() + page)
            await writer.drain()
        except (
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ConnectionError,
            IndexError,
            ValueError,
        ):
            pass  # not a browser's request
        finally:
            writer.close()

    def _take(self, given: dict[str, str]) -> str:
        from mcp.client.auth import OAuthFlowError
        from mcp.shared.auth import AuthorizationCodeResult

        if self._result.done() or given.get("state", self._state) != self._state:
            return "The login is over. You can close this page."
        if "code" in given:
            result = AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
            self._result.set_result(result)
            return "You are logged in. You can close this page; karat continues in the terminal."

        reason = given.get("error", "the browser brought no code")
        self._result.set_exception(OAuthFlowError(f"the login was refused: {reason}"))
        return "The login was refused. You can close this page."
