"""A connection to an MCP server over stdio or streamable HTTP that records breaches of the
protocol.

Client libraries drop lines that are not messages and repair ids; this connection records each of
them, within bounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

import karat
from karat.errors import InfrastructureFault
from karat.foreign import Json
from karat.mcp.faults import Evidence, Tail
from karat.mcp.launch import CANNOT_START
from karat.mcp.remote import is_loopback
from karat.mcp.results import LONGEST_MESSAGE
from karat.mcp.stdio import launch_command
from karat.records import JsonObject, McpServer
from karat.redact import Redactor
from karat_servers.mcp_parts.oauth import Tokens

if TYPE_CHECKING:
    import httpx2

INITIALIZE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol that start with `initialize`."""

MODERN_VERSION = "2026-07-28"
"""The version without a handshake: each request names the client and the version."""

EXIT_SECONDS = 5.0  # for a server to end after its stdin closed
_CLEAR_SECONDS = 0.5  # for its children, and for the kernel after a kill
_KEPT = 5  # of each kind of breach
_SHOWN = 120  # characters of a line that is not a message
_NO_METHOD = -32601


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request."""

    kind: Literal["result", "error", "malformed", "timeout", "closed"]
    result: JsonObject = {}
    code: int | None = None  # of JSON-RPC
    status: int | None = None  # of HTTP, if only that shows the error
    message: str = ""
    seconds: float = 0.0
    size: int = 0  # bytes of the message

    def __str__(self) -> str:
        match self.kind:
            case "result":
                return "a result"
            case "error":
                if self.code is None:
                    status = f"HTTP {self.status}"
                else:
                    status = f"error {self.code}"

                if self.message:
                    return f"{status} ({self.message})"
                return status
            case "malformed":
                return f"a reply that is not valid: {self.message}"
            case "timeout":
                return f"no reply within {self.seconds:g} s"

        return f"the end of the connection{f' ({self.message})' if self.message else ''}"


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a stdio server ended after its stdin closed."""

    seconds: float | None  # None: it had to be killed
    code: int | None
    children: bool  # whether processes of its group kept running


class Connection:
    """Requests and replies. `breaches`: breaches of the protocol by kind, with examples."""

    def __init__(self, server: McpServer, *, folder: Path, redact: Redactor) -> None:
        self.server = server
        self._redact = redact
        self.breaches: dict[str, list[str]] = {}
        self.version: str | None = None  # None: before the handshake
        self.ending: Ending | None = None
        self.usable = True  # False after a timeout or an end: later replies could not be told apart
        self._waiting: dict[object, asyncio.Future[Reply]] = {}
        self._numbers = 0
        self._answers: set[asyncio.Future[None]] = set()  # to the server's own requests
        if server.type == "stdio":
            self.transport: Stdio | Http = Stdio(server, folder=folder, link=self)
        else:
            self.transport = Http(server, link=self, redact=redact)

    async def start(self) -> None:
        """Starts the connection. Raises OSError if the program cannot be started."""
        await self.transport.start()

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        seconds: float,
        number: int | str | None = None,
    ) -> Reply:
        """Sends a request and waits for its reply.

        Never raises for what a server does. `number`: the id to use.
        """
        sent = await self.send(method, params, number=number)
        return await self.reply(sent, seconds=seconds)

    async def send(
        self, method: str, params: JsonObject | None = None, *, number: int | str | None = None
    ) -> object:
        """Sends a request and returns its id, without waiting for the reply."""
        self._numbers += 1
        known = number if number is not None else self._numbers
        self._waiting[known] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": known, "method": method, "params": self._params(params)}
        await self.transport.send(message, known)
        return known

    async def reply(self, number: object, *, seconds: float) -> Reply:
        """The reply to a request that was sent."""
        started = time.perf_counter()
        waiting = self._waiting[number]
        try:
            reply = await asyncio.wait_for(asyncio.shield(waiting), seconds)
        except TimeoutError:
            reply = Reply(kind="timeout", seconds=seconds)
        finally:
            self._waiting.pop(number, None)

        self.usable = self.usable and reply.kind not in ("timeout", "closed")
        if reply.kind == "timeout":
            return reply
        return msgspec.structs.replace(reply, seconds=round(time.perf_counter() - started, 3))

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self.transport.send(
            {"jsonrpc": "2.0", "method": method, "params": self._params(params)}, None
        )

    async def close(self) -> None:
        self.usable = False
        await self.transport.close()
        self.closed("")

    def arrived(self, data: bytes, number: object = None) -> None:
        """One message of the server. `number`: the request whose HTTP response it came in."""
        # before cutting: half a secret would not be recognised
        text = self._redact(data.decode("utf-8", "replace"))
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            self.note("stdout" if number is None else "json", text.strip()[:_SHOWN])
            return

        if not isinstance(message, dict):
            self.note(
                "message",
                (
                    f"{'a batch' if isinstance(message, list) else 'a value'} where a message is "
                    f"expected"
                ),
            )
            return

        if message.get("jsonrpc") != "2.0":
            self.note("message", "a message without jsonrpc '2.0'")
        if "method" in message:
            # Handles the server's own request: answers a ping, refuses others, which were not
            # offered
            if "id" in message:
                answer: JsonObject = {"result": {}}
                if message["method"] != "ping":
                    self.note(
                        "message",
                        f"it asks for '{str(message['method'])[:_SHOWN]}', which the client did "
                        "not offer",
                    )
                    answer = {
                        "error": {"code": _NO_METHOD, "message": "the client did not offer this"}
                    }

                reply = {"jsonrpc": "2.0", "id": message["id"], **answer}
                sending = asyncio.ensure_future(self.transport.send(reply, None))
                self._answers.add(sending)
                sending.add_done_callback(self._answers.discard)

            return

        known = self._meant(message.get("id"), number)
        if (
            known is not None
            and (waiting := self._waiting.get(known)) is not None
            and not waiting.done()
        ):
            waiting.set_result(_reply(message, len(data)))

    def closed(self, why: str) -> None:
        """No more replies come."""
        for number in list(self._waiting):
            self.fail(number, Reply(kind="closed", message=why))

    def fail(self, number: object, reply: Reply) -> None:
        """Ends the wait for a reply that has not arrived."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def note(self, kind: str, example: str) -> None:
        """Records an example of a breach."""
        kept = self.breaches.setdefault(kind, [])
        if len(kept) < _KEPT and example not in kept:
            kept.append(example)

    def _params(self, params: JsonObject | None) -> JsonObject:
        if self.version != MODERN_VERSION:
            return params or {}
        from mcp_types import (
            CLIENT_CAPABILITIES_META_KEY,
            CLIENT_INFO_META_KEY,
            PROTOCOL_VERSION_META_KEY,
        )

        about = {"name": "karat", "version": karat.__version__}
        meta = {
            PROTOCOL_VERSION_META_KEY: MODERN_VERSION,
            CLIENT_INFO_META_KEY: about,
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        return {**(params or {}), "_meta": meta}

    def _meant(self, given: object, number: object) -> object:
        """The request that a reply answers; records a wrongly spelt id."""
        for known in self._waiting:
            if str(known) == str(given):
                if type(known) is not type(given):
                    self.note("id", f"a reply has the id {given!r} where the request had {known!r}")
                return known

        if given is None:  # an error that names no request
            if number is not None:
                return number
            return next(iter(self._waiting), None)

        if number is not None:
            self.note(
                "id", f"a reply has the id {str(given)[:_SHOWN]!r} where the request had {number!r}"
            )

        return number


def _reply(message: JsonObject, size: int) -> Reply:
    if ("result" in message) == ("error" in message):
        return Reply(
            kind="malformed", message="a reply needs either a result or an error", size=size
        )

    if "result" in message:
        result = message["result"]
        if not isinstance(result, dict):
            return Reply(kind="malformed", message="the result is not an object", size=size)
        return Reply(kind="result", result=result, size=size)

    error = Json(message["error"])
    code, text = error.get("code"), error.get("message")
    if not isinstance(code, int) or not isinstance(text, str):
        return Reply(
            kind="malformed",
            message="an error needs a code (a whole number) and a message",
            size=size,
        )

    return Reply(kind="error", code=code, message=text[:_SHOWN], size=size)


class Stdio:
    """A process in its own group."""

    def __init__(self, server: McpServer, *, folder: Path, link: Connection) -> None:
        self._server = server
        self._folder = folder
        self._link = link
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stderr = Tail()
        self.stderr_bytes = 0

    async def start(self) -> None:
        argv, env = launch_command(self._server, folder=self._folder, parent=os.getpid())
        self._process = await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=LONGEST_MESSAGE,
        )
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._drain())]

    async def send(self, message: JsonObject, number: object) -> None:
        await self.raw(json.dumps(message).encode() + b"\n")

    async def raw(self, data: bytes) -> None:
        """Writes raw bytes to stdin."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(data)

    def last_words(self, redact: Redactor) -> str:
        """The end of stderr, or why the program could not be started."""
        words = self._stderr.text(redact)
        return words.partition(CANNOT_START)[2] or words

    async def close(self) -> None:
        """Closes stdin, waits, and ends what is left of the group."""
        process = self._process
        if process is None or process.stdin is None:
            return
        already = process.returncode is not None
        process.stdin.close()
        started = time.perf_counter()
        exited = await _until(lambda: process.returncode is not None, EXIT_SECONDS)
        if exited:
            seconds = round(time.perf_counter() - started, 2)
        else:
            seconds = None

        alone = exited and await _until(lambda: not _group(process.pid, 0), _CLEAR_SECONDS)
        if not already:
            self._link.ending = Ending(
                seconds=seconds, code=process.returncode, children=exited and not alone
            )

        _group(process.pid, signal.SIGKILL)
        await _until(
            lambda: process.returncode is not None and not _group(process.pid, 0), _CLEAR_SECONDS
        )
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                if line.strip():
                    self._link.arrived(line)
        except ValueError:
            self._link.note("message", f"a line of more than {LONGEST_MESSAGE // 1024**2} MB")

        self._link.usable = False
        await _until(
            lambda: self._process is not None and self._process.returncode is not None,
            _CLEAR_SECONDS,
        )
        code = self._process.returncode
        self._link.closed(
            "it closed its stdout" if code is None else f"it ended with exit code {code}"
        )

    async def _drain(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(65536):
            self.stderr_bytes += len(data)
            self._stderr.add(data)


def _group(pid: int, number: int) -> bool:
    """Sends a signal to the group; returns whether it may still have members."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True

    return True


async def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0.01)
    return holds()


class Http:
    """Streamable HTTP: one POST per message."""

    def __init__(self, server: McpServer, *, link: Connection, redact: Redactor) -> None:
        self._server = server
        self._link = link
        self._redact = redact
        self._client: httpx2.AsyncClient | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.session: str | None = None
        self.stderr_bytes = 0

    async def start(self) -> None:
        import httpx2

        if self._server.auth is None:
            auth: httpx2.Auth | None = None
        else:
            auth = Tokens(self._server, redact=self._redact).authentication(Evidence())

        self._client = httpx2.AsyncClient(
            headers=self._server.headers,
            timeout=httpx2.Timeout(30.0, read=None),
            follow_redirects=False,
            trust_env=not is_loopback(self._server.url),
            auth=auth,
        )

    async def send(self, message: JsonObject, number: object) -> None:
        task = asyncio.create_task(self._post(message, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def raw(self, data: bytes, **headers: str) -> int | None:
        """The status of the response to a raw body; None: no response within five seconds."""
        import httpx2

        assert self._client is not None
        with suppress(httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                given = {**self._headers(), **headers}
                async with self._client.stream(
                    "POST",
                    self._server.url,
                    content=data,
                    headers=given,
                ) as response:
                    return int(response.status_code)

        return None

    def last_words(self, redact: Redactor) -> str:
        return ""

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            import httpx2

            if self.session is not None:
                with suppress(httpx2.HTTPError, TimeoutError):
                    async with asyncio.timeout(EXIT_SECONDS):
                        await self._client.delete(self._server.url, headers=self._headers())

            await self._client.aclose()

    def _headers(self) -> dict[str, str]:
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        if self.session is not None:
            headers["mcp-session-id"] = self.session
        if self._link.version is not None:
            headers["mcp-protocol-version"] = self._link.version
        return headers

    async def _post(self, message: JsonObject, number: object) -> None:
        import httpx2
        from mcp.shared import inbound

        assert self._client is not None
        headers = self._headers()
        method = str(message.get("method", ""))
        if self._link.version == MODERN_VERSION:
            headers[inbound.MCP_METHOD_HEADER] = method
            name = message.get("params", {}).get(inbound.NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)

        try:
            async with self._client.stream(
                "POST",
                self._server.url,
                content=json.dumps(message).encode(),
                headers=headers,
            ) as response:
                if method == "initialize":
                    self.session = response.headers.get("mcp-session-id")
                await self._received(response, number)
                if response.status_code >= 300:
                    self._link.fail(number, Reply(kind="error", status=response.status_code))
        except InfrastructureFault as fault:  # no token
            self._link.fail(number, Reply(kind="closed", message=fault.message))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._link.fail(
                number, Reply(kind="closed", message=f"{type(error).__name__}: {error}")
            )

        self._link.fail(number, Reply(kind="malformed", message="the HTTP response holds no reply"))

    async def _received(self, response: httpx2.Response, number: object) -> None:
        """Processes the body, which is one message or an event stream of messages."""
        stream = response.headers.get("content-type", "").startswith("text/event-stream")
        buffer = b""
        async for piece in response.aiter_bytes():
            buffer += piece.replace(b"\r\n", b"\n")
            if len(buffer) > LONGEST_MESSAGE:
                self._link.note(
                    "message", f"a message of more than {LONGEST_MESSAGE // 1024**2} MB"
                )
                return

            while stream and (event := buffer.partition(b"\n\n"))[1]:
                lines = event[0].split(b"\n")
                buffer = event[2]
                data = b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))
                if data:
                    self._link.arrived(data, number)

        readable = response.status_code < 300 or buffer.lstrip().startswith(b"{")
        if buffer.strip() and not stream and number is not None and readable:
            self._link.arrived(buffer, number)
