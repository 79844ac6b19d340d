"""MCP over stdio: a process in its own group; nothing of it is left when the session ends.

The SDK's own stdio transport hides the process: its stderr and its group are not
accessible, a server that exits on time leaves its children behind, and one endless line on stdout
costs quadratic time in the event loop that all trials share. The messages are the SDK's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import karat
from karat.mcp import launch
from karat.mcp.faults import Evidence
from karat.mcp.replies import Pending
from karat.mcp.results import LONGEST_MESSAGE
from karat.records import JsonObject, McpServer

if TYPE_CHECKING:
    from karat.mcp.screen import Screen


EXIT_SECONDS = 1.0  # for a server to end by itself after its stdin closed
TERM_SECONDS = 0.5  # after SIGTERM, before SIGKILL
KILL_SECONDS = 1.0  # for the kernel to clean up killed processes
_NEWS_SECONDS = 0.2  # between a process's last output and the notice of its exit, in either order
_POLL_SECONDS = 0.01


def launch_command(
    server: McpServer, *, folder: Path, parent: int | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command line and environment that start a stdio server through `karat.mcp.launch`.

    For every agent that starts servers, also in other programs: whatever is added to this
    environment, the server sees only PATH, HOME, LANG and the file's `env`. It runs
    in its `cwd`, from `folder`; `python` and `python3` mean the interpreter that runs karat.
    `parent`: the process that the server must end with.
    """
    command = sys.executable if server.command in ("python", "python3") else server.command
    own = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME") or str(Path.home()),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
    definition = {
        "argv": [command, *server.args],
        "env": own | server.env,
        "cwd": str(folder / (server.cwd or "")),
        "parent": parent,
    }
    # -P keeps the folder's own `json.py` from being imported; -S leaves out the .pth files of large
    # environments.
    argv = [sys.executable, "-P", "-S", "-m", launch.__name__]
    home = str(Path(karat.__file__).resolve().parents[1])
    return argv, {launch.VARIABLE: json.dumps(definition), "PYTHONPATH": home, "PATH": own["PATH"]}


class StdioLink:
    """One server process, and the two streams of the SDK's client."""

    def __init__(self, server: McpServer, *, folder: Path, on_broken: Callable[[], None]) -> None:
        self._server = server
        self._folder = folder
        self._on_broken = on_broken
        self.evidence = Evidence()
        self.end_at_once = True  # SIGTERM at once, until the server is up

    @asynccontextmanager
    async def connect(self, screen: Screen | None = None) -> AsyncIterator[Any]:
        """Starts the process; on exit it has ended, with its children.

        `screen`: as in Pending. Raises OSError.
        """
        import anyio
        from mcp.shared.message import SessionMessage

        argv, env = launch_command(self._server, folder=self._folder, parent=os.getpid())
        loop = asyncio.get_running_loop()
        pipes: JsonObject = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        with anyio.CancelScope(shield=True):  # an interrupted start could not be cleaned up
            _, process = await loop.subprocess_exec(
                lambda: _Process(self.evidence), *argv, env=env, start_new_session=True, **pipes
            )

        # No await between the start and this `try`, so a cancellation cannot lose the process.
        try:
            arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
            async with anyio.create_task_group() as tasks, arriving, incoming, outgoing, leaving:
                pending = Pending(screen)
                tasks.start_soon(self._receive, process, arriving, pending)
                tasks.start_soon(_send, process, leaving, pending)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await process.end(at_once=self.end_at_once)

    async def _receive(self, process: _Process, arriving: Any, pending: Pending) -> None:
        """Pass on every message; report the end of the stream."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        async with arriving:
            while line := await _next_line(process.lines, self.evidence):
                try:
                    messages = pending.received(
                        jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except ValueError:
                    messages, junk = pending.malformed(line)
                    if junk and self.evidence.not_mcp is None:
                        self.evidence.not_mcp = junk

                try:
                    for message in messages:
                        await arriving.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

        self._on_broken()


class _Process(asyncio.SubprocessProtocol):
    """The pipes of one server.

    Notified of its exit directly, even while a child still holds the pipes.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._exited = asyncio.Event()
        self._ending = False
        self._ended = False
        self.lines = asyncio.StreamReader(limit=LONGEST_MESSAGE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._pid = self._transport.get_pid()  # the leader of its group: start_new_session
        stdout = self._transport.get_pipe_transport(1)
        assert stdout is not None
        self.lines.set_transport(stdout)  # so it stops reading if the lines are not consumed

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._evidence.stderr.add(data)
        elif not self._ended:
            self.lines.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._end_of_lines()

    def process_exited(self) -> None:
        if not self._ending:
            self._evidence.exit_code = self._transport.get_returncode()
        self._exited.set()
        # Its last output may still be in the pipe; a child that holds the pipe must not keep the
        # session alive.
        asyncio.get_running_loop().call_later(_NEWS_SECONDS, self._end_of_lines)

    def _end_of_lines(self) -> None:
        if not self._ended:
            self._ended = True
            self.lines.feed_eof()

    def write(self, line: bytes) -> bool:
        """False if the server no longer reads."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe is None or pipe.is_closing():
            return False
        pipe.write(line)
        return True

    async def end(self, *, at_once: bool) -> None:
        """Closes stdin, waits, SIGTERM to the group, waits, SIGKILL to the group."""
        try:
            if self._ended:  # it ended by itself: its exit code is on the way
                await self._until(self._exited.is_set, _NEWS_SECONDS)
            self._ending = True
            pipe = self._transport.get_pipe_transport(0)
            if pipe is not None:
                pipe.close()
            if not at_once:
                await self._until(self._exited.is_set, EXIT_SECONDS)
            if self._signal(signal.SIGTERM):
                await self._until(self._gone, TERM_SECONDS)
        finally:  # even while the event loop is being torn down
            self._signal(signal.SIGKILL)
            try:
                await self._until(self._gone, KILL_SECONDS)
            finally:
                self._transport.close()

    def _gone(self) -> bool:
        return self._exited.is_set() and not self._signal(0)

    def _signal(self, number: int) -> bool:
        """Whether the group may still have members.

        The leader's pid names it even after the leader has ended.
        """
        try:
            os.killpg(self._pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return not self._exited.is_set()  # macOS reports this for a group of dead processes

        return True

    async def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while not holds() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(_POLL_SECONDS)


async def _next_line(lines: asyncio.StreamReader, evidence: Evidence) -> bytes:
    """Empty at the end, and if a line is too long to be a message."""
    try:
        return await lines.readline()
    except ValueError:
        evidence.not_mcp = f"a line of more than {LONGEST_MESSAGE // 1024**2} MB"
        return b""


async def _send(process: _Process, leaving: Any, pending: Pending) -> None:
    async with leaving:
        async for item in leaving:
            pending.sent(item.message)
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            if not process.write(text.encode("utf-8", "surrogatepass") + b"\n"):
                return
