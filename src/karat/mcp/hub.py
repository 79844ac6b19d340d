"""The endpoint of karat's proxies: MCP for agents that start or reach their servers themselves.

Such an agent gets `karat.mcp.proxy` in place of a server. The proxy only carries
bytes to a socket of karat's own process. There they are passed on to the agent's
own server and recorded (the part `relay`), or answered here: from a recording, or from a
server that all trials share. So karat starts the server with the usual environment, its key
and address never reach the agent, and one process writes cassettes.

For a server with karat's own session (a shared one, or one with `protocol`, `auth` or
`elicit`) a proxy offers tools, resources, prompts and instructions; not notifications.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import get_args

import msgspec

from karat.errors import InfrastructureFault
from karat.files import temporary_folder
from karat.mcp import proxy
from karat.mcp.attempts import Attempt
from karat.mcp.observed import Observed
from karat.mcp.parts import AnswersAgents, ServerConnection
from karat.mcp.preflight import Offer
from karat.mcp.results import LONGEST_MESSAGE, READS, Outcome, as_json, recorded_arguments
from karat.records import MODERN_PROTOCOL, JsonObject, McpServer, ProtocolVersion

_VERSIONS = [version for version in get_args(ProtocolVersion) if version != MODERN_PROTOCOL]
"""Of the protocol: those that have `initialize`. Tools look the same in all of them."""

_PARSE_ERROR, _INVALID, NO_METHOD, _BAD_PARAMETERS, INTERNAL = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)

_Serve = Callable[
    [McpServer, Attempt | None, Observed | None, asyncio.StreamReader, asyncio.StreamWriter],
    Coroutine[object, object, None],
]


class Hub:
    """A socket in a separate folder that only this user can enter.

    Each proxy authenticates with a token.
    """

    def __init__(self, serve: _Serve) -> None:
        self._serve = serve
        self._lent: dict[str, tuple[McpServer, Attempt | None, Observed | None]] = {}
        self._folder: Path | None = None
        self._undo = ExitStack()
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._folder = self._undo.enter_context(temporary_folder("mcp", for_socket=3))
        self._server = await asyncio.start_unix_server(
            self._called, self._folder / "mcp", limit=LONGEST_MESSAGE
        )

    async def stop(self) -> None:
        """Ends all connections; their sessions are then closed."""
        if self._server is not None:
            self._server.close()
        talks = set(self._talks)
        for talk in talks:
            _cut_off(talk)
        await asyncio.gather(*talks, return_exceptions=True)
        self._undo.close()

    def command(
        self, server: McpServer, attempt: Attempt | None, observed: Observed | None = None
    ) -> tuple[list[str], dict[str, str]]:
        """The command that starts a proxy for this server.

        Its token is valid until the attempt ends.
        """
        assert self._folder is not None, "the toolbox is not open"
        token = secrets.token_hex(16)
        self._lent[token] = (server, attempt, observed)
        if attempt is not None:
            attempt.lent.callback(self._lent.pop, token, None)
        where = json.dumps({"socket": str(self._folder / "mcp"), "token": token})
        environment = {proxy.VARIABLE: where, "PATH": os.environ.get("PATH", os.defpath)}
        # some agents refuse to pass PYTHONPATH on
        return [sys.executable, "-I", "-S", proxy.__file__], environment

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            token = (await reader.readline()).decode("ascii", "replace").strip()
            if (lent := self._lent.get(token)) is not None:
                server, attempt, observed = lent
                if attempt is not None:
                    attempt.lent.callback(_cut_off, task)
                try:
                    await self._serve(server, attempt, observed, reader, writer)
                except InfrastructureFault as fault:
                    if observed is not None:
                        observed.failed(fault)
                    raise
        except (InfrastructureFault, ConnectionError, ValueError):
            # the server was refused, the agent has ended, or a line was too long: the proxy sees
            # the end
            pass
        except asyncio.CancelledError:
            # at the end of the attempt or of the run; asyncio would log the cancellation of a
            # callback
            pass
        finally:
            self._talks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def _cut_off(talk: asyncio.Task[None]) -> None:
    """Cancels it once: a second time would interrupt the end of its server."""
    if not talk.cancelling():
        talk.cancel()


class Refused(Exception):
    """A request that gets an error of the protocol. `code`: None: the server gave none."""

    def __init__(self, code: int | None, message: str, data: object = None) -> None:
        self.error = {"code": INTERNAL if code is None else code, "message": message}
        if data is not None:
            self.error["data"] = data
        super().__init__(message)


class ProxySession:
    """One client's requests, answered as they complete: calls do not wait for each other."""

    def __init__(
        self,
        line: ServerConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        observed: Observed | None = None,
    ) -> None:
        self._line = line
        self._reader = reader
        self._writer = writer
        self._observed = observed
        self._offer: asyncio.Task[Offer] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Until the client closes its side; then calls in progress are cut off."""
        try:
            while data := await self._reader.readline():
                await self._take(data)
        finally:
            under_way: list[asyncio.Task[object]] = [
                *self._tasks.values(),
                *([self._offer] if self._offer else []),
            ]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _take(self, data: bytes) -> None:
        try:
            message = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            await self._say(None, error={"code": _PARSE_ERROR, "message": f"no JSON: {error}"})
            return

        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            await self._say(None, error={"code": _INVALID, "message": "no request"})
            return

        parameters = message.get("params")
        if not isinstance(parameters, dict):
            parameters = {}
        if "id" in message:
            name = repr(message["id"])
            answer = self._answer(message["id"], message["method"], parameters)
            task = self._tasks[name] = asyncio.create_task(answer)
            task.add_done_callback(
                lambda done: self._tasks.pop(name, None) if self._tasks.get(name) is done else None
            )
        elif message["method"] == "notifications/cancelled":
            cancelled = self._tasks.get(repr(parameters.get("requestId")))
            if cancelled is not None:
                cancelled.cancel()

    async def _answer(self, number: object, method: str, parameters: JsonObject) -> None:
        try:
            result = await self._result(method, parameters)
        except Refused as refused:
            if self._observed is not None:
                self._observed.answered(method, parameters, Outcome(error=str(refused)))
            await self._say(number, error=refused.error)
        except InfrastructureFault as fault:
            if self._observed is not None:
                self._observed.failed(fault)
            await self._say(number, error={"code": INTERNAL, "message": fault.message})
        else:
            if self._observed is not None:
                self._observed.answered(method, parameters, result)
            await self._say(number, result=result)

    async def _result(self, method: str, parameters: dict[str, object]) -> dict[str, object]:
        if method == "ping":
            return {}
        if isinstance(self._line, AnswersAgents):
            return await self._line.served(method, parameters, hang_up=self._writer.close)
        match method:
            case "initialize":
                return introduction((await self._offered()).introduction, parameters)
            case "tools/list":
                return {"tools": [as_json(tool) for tool in (await self._offered()).as_listed]}
            case "tools/call":
                tool = parameters.get("name")
                arguments = parameters.get("arguments")
                if not isinstance(tool, str) or not isinstance(arguments, (dict, type(None))):
                    raise Refused(
                        _BAD_PARAMETERS, "a call needs a `name`, and `arguments` that are an object"
                    )

                await self._offered()
                outcome = await self._line.ask(tool, arguments or {})
                return _passed_on(outcome)

        if method in READS:
            return _passed_on(await self._line.read(method, recorded_arguments(method, parameters)))
        raise Refused(
            NO_METHOD, f"karat's proxy passes on tools, resources and prompts, not '{method}'"
        )

    async def _offered(self) -> Offer:
        """Requested once per connection, when first needed."""
        if self._offer is None:
            self._offer = asyncio.create_task(self._line.offer())
        return await asyncio.shield(self._offer)

    async def _say(self, number: object, **content: object) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(msgspec.json.encode({"jsonrpc": "2.0", "id": number, **content}) + b"\n")
        with suppress(ConnectionError):
            await self._writer.drain()


def _passed_on(outcome: Outcome) -> JsonObject:
    if outcome.error is not None:
        raise Refused(outcome.code, outcome.error)
    return as_json(outcome.result)


def introduction(about: dict[str, object], parameters: dict[str, object]) -> dict[str, object]:
    """The result of `initialize`, without features that are not passed on.

    `about`: the server's introduction.
    """
    asked = parameters.get("protocolVersion")
    known = {key: about[key] for key in ("serverInfo", "instructions") if about.get(key)}
    if asked in _VERSIONS:
        version = asked
    else:
        version = _VERSIONS[-1]

    has = about.get("capabilities")
    if not isinstance(has, dict):
        has = {}
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}}
        | {name: {} for name in ("resources", "prompts") if name in has},
        "serverInfo": {"name": "anonymous", "version": ""},
        **known,
    }
