"""One session with one server, held by its own task.

The SDK's sessions must be exited by the task that entered them, and a broken connection
cancels that task. So no trial's task enters one: an owner task does, and trials only wait
for the session to be ready and for results. An interrupted trial leaves
nothing of the SDK in its task, and sessions may be shared by any number of trials.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import karat
from karat.errors import InfrastructureFault
from karat.mcp.faults import Evidence, call_timeout, fault_of
from karat.mcp.launch import EXIT_CANNOT_START
from karat.mcp.negotiation import Introduction, negotiate
from karat.mcp.preflight import Offer, ToolList, list_tools, offer_of
from karat.mcp.remote import RemoteLink
from karat.mcp.results import Outcome, as_json, failure_of, masked, misfit, sendable
from karat.mcp.screen import Answered, Screen, Undelivered
from karat.mcp.stdio import StdioLink
from karat.records import MODERN_PROTOCOL, JsonObject, McpServer, ServerEvent
from karat.redact import Redactor

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

    from karat.mcp.elicitation import Answering
    from karat.mcp.parts import ServerTokens

_T = TypeVar("_T")

_HTTP_GONE = ("Session terminated", "Not Found")
"""What the SDK makes of an HTTP status; the status itself is in the evidence."""

CLOSE_SECONDS = 3.0  # longer than a stdio server may take (stdio.py)
CAUSE_SECONDS = 2.0  # for an owner to end after its connection broke, to report the cause


class Session:
    """Opened on construction, in the background; `offer` waits for it.

    Needs a running event loop.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        folder: Path,
        redact: Redactor,
        relist_seconds: float,
        report: Callable[[ToolList | ServerEvent], None],
        answering: Answering | None = None,
        tokens: ServerTokens | None = None,
    ) -> None:
        """`report`: hears of every list of tools, and of a session that was opened again.

        `answering`: answers the server's questions to the user; None: it cannot ask. `tokens`: for
        OAuth.
        """
        import anyio

        self.server = server
        self._redact = redact
        self._relist_seconds = relist_seconds
        self._report = report
        self._scope = anyio.CancelScope()
        self._stop = asyncio.Event()
        self._listed = asyncio.Event()
        self._screen = Screen()
        self._answering = answering
        self.is_older = False  # the server is known not to speak the newest version
        self._one_call = asyncio.Lock()
        self._broken = False
        self._client: Client | None = None
        self._offer: Offer | None = None
        self._listed_at = 0.0
        self._calls: set[asyncio.Task[object]] = set()
        self._link: StdioLink | RemoteLink
        if server.type == "stdio":
            self._link = StdioLink(server, folder=folder, on_broken=self._stop.set)
        else:
            self._link = RemoteLink(
                server, on_broken=self._scope.cancel, on_renewed=self._on_renewed, tokens=tokens
            )

        self._owner = asyncio.create_task(self._own(), name=f"MCP server {server.name}")
        self._owner.add_done_callback(_retrieve)

    @property
    def alive(self) -> bool:
        """Whether a call may succeed. An unnoticed death of the server shows at the next call."""
        return not (self._owner.done() or self._broken or self._stop.is_set())

    @property
    def pending(self) -> bool:
        """Whether its owner is still cleaning up."""
        return not self._owner.done()

    async def offer(self) -> Offer:
        """What the server offers; requested again if the list is a few seconds old.

        Raises InfrastructureFault.
        """
        await self._ready()
        if self._screen.changed or time.monotonic() - self._listed_at > self._relist_seconds:
            await self._relist()
        return await self._ready()

    async def _relist(self) -> None:
        """Asks for the list of tools again.

        If the server does not give it, the last one is kept.
        """
        if self._client is None or self._offer is None or not self.alive:
            return
        self._listed_at = time.monotonic()
        self._screen.changed = False
        asked = self._request(list_tools(self._client, self.server.name))
        await self._first(asked, seconds=self.server.call_timeout_seconds)
        if asked.done() and not asked.cancelled() and asked.exception() is None:
            self._keep(self._offer.introduction, asked.result())

    def _keep(self, introduction: dict[str, object], listed: Sequence[mcp_types.Tool]) -> None:
        self._listed_at = time.monotonic()
        self._offer = offer_of(self.server.name, introduction, listed, dict(self._screen.left_out))
        self._report(self._offer.tools)

    def _on_renewed(self) -> None:
        """Perhaps it is another version of the server now, with other tools."""
        self._screen.changed = True
        self._report(ServerEvent(server=self.server.name, what="renewed"))

    async def ask(self, tool: str, arguments: JsonObject) -> Outcome:
        """The tool's result, or its error.

        Raises InfrastructureFault for a dead or silent server.
        """
        seconds = self.server.call_timeout_seconds
        given = sendable(arguments)
        await self._ready()
        if (problem := self._screen.left_out.get(tool)) is not None:
            return Outcome(error=f"the tool was not called, because no client can: {problem}")
        return await self._outcome(
            f"tool '{tool}'",
            lambda client: client.call_tool(tool, given, read_timeout_seconds=seconds),
        )

    async def read(self, method: str, parameters: JsonObject) -> Outcome:
        """The same for a resource, a prompt, or a page of their lists. `method`: one of READS."""
        given = sendable(parameters)
        return await self._outcome(f"'{method}'", lambda client: self._read(client, method, given))

    async def _read(self, client: Client, method: str, given: JsonObject) -> object:
        async with asyncio.timeout(self.server.call_timeout_seconds):
            match method:
                case "resources/read":
                    return await client.read_resource(str(given.get("uri")))
                case "prompts/get":
                    arguments = given.get("arguments") or {}
                    # Arguments of prompts are text.
                    texts = {}
                    for name, value in arguments.items():
                        if isinstance(value, str):
                            texts[name] = value
                        else:
                            texts[name] = msgspec.json.encode(value).decode()

                    return await client.get_prompt(str(given.get("name")), texts)
                case "resources/list":
                    return await client.list_resources(cursor=given.get("cursor"))
                case "resources/templates/list":
                    return await client.list_resource_templates(cursor=given.get("cursor"))

            return await client.list_prompts(cursor=given.get("cursor"))

    async def _outcome(
        self, label: str, request: Callable[[Client], Coroutine[object, object, object]]
    ) -> Outcome:
        if self._answering is None:
            outcome = await self._answered(label, request)
        else:
            # versions before 2026 do not tell which call a question belongs to
            async with self._one_call:
                self._answering.noted()
                outcome = await self._answered(label, request)
                outcome = msgspec.structs.replace(outcome, elicited=self._answering.noted())
                if (
                    "elicitation/create" in failure_of(outcome)
                    and self._client is not None
                    and self._client.protocol_version >= MODERN_PROTOCOL
                ):
                    self._report(ServerEvent(server=self.server.name, what="unasked"))

        if self._screen.changed:
            await self._relist()
        return outcome

    async def _answered(
        self, label: str, request: Callable[[Client], Coroutine[object, object, object]]
    ) -> Outcome:
        import mcp
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        await self._ready()
        if self._client is None or not self.alive:
            raise await self._down()
        started = time.perf_counter()
        asked = self._request(request(self._client))
        await self._first(asked)
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        if asked.done() and not asked.cancelled():
            error = asked.exception()
        else:
            error = InterruptedError("closed")

        if error is None:
            return Outcome(result=masked(asked.result(), self._redact), milliseconds=milliseconds)
        if isinstance(error, mcp.MCPError):
            made_by = error.error.data
            by_the_sdk = not isinstance(made_by, Answered)
            if error.code == REQUEST_TIMEOUT and by_the_sdk:
                raise call_timeout(self.server, label, self._link.evidence)
            # Whether HTTP reports that the session no longer exists, rather than a failed tool
            redirected = (
                self._link.evidence.location is not None and "not followed" in error.message
            )
            no_session = redirected or error.message in _HTTP_GONE
            gone = (error.code == CONNECTION_CLOSED and by_the_sdk) or (
                no_session and isinstance(made_by, Undelivered)
            )
            if isinstance(made_by, Undelivered) and not gone:
                # of this request only: the session continues
                raise self._fault(error, made_by.evidence)

            # the limit of one event: the connection continues
            if not gone or "byte limit" in error.message:
                return Outcome(
                    error=self._redact(error.message), code=error.code, milliseconds=milliseconds
                )
        elif isinstance(error, TimeoutError) and self.alive:
            raise call_timeout(self.server, label, self._link.evidence)
        elif self.alive and isinstance(error, (ValueError, RuntimeError)):
            problem = f"the server's result does not follow the protocol: {misfit(error)}"
            return Outcome(error=self._redact(problem), milliseconds=milliseconds)

        raise await self._down(error)

    def stop(self, *, at_once: bool = False) -> None:
        """Start ending the session. `at_once`: without giving the server time to end by itself."""
        for call in self._calls:
            call.cancel()
        self._link.end_at_once = self._link.end_at_once or at_once
        self._stop.set()
        if self._link.end_at_once:
            self._scope.cancel()

    async def gone(self) -> None:
        """Waits, after `stop`, for the end; a stdio server has then ended with its children.

        Bounded.
        """
        await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
        if not self._owner.done():
            self._link.end_at_once = True
            self._scope.cancel()
            await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)

    async def _ready(self) -> Offer:
        if self._offer is None:
            await self._first(asyncio.ensure_future(self._listed.wait()))
        if self._offer is None:
            raise self._fault()
        return self._offer

    async def _own(self) -> None:
        import anyio
        from mcp import MCPError

        with self._scope:
            self._scope.deadline = anyio.current_time() + self.server.init_timeout_seconds
            try:
                await self._hold("legacy" if self.is_older else "auto")
            except (ExceptionGroup, MCPError):
                # Servers of older revisions may end at the request that only the newest has
                may_be_older = self.server.protocol == "auto" and not self.is_older
                code = self._link.evidence.exit_code
                ended = code not in (None, EXIT_CANNOT_START)
                if not may_be_older or not ended or self._listed.is_set():
                    raise
                self._link.evidence = Evidence()
                self._stop.clear()
                await self._hold("legacy")

    async def _hold(self, handshake: str) -> None:
        """Opens the session, and keeps it until `stop`."""
        from mcp import Client, types

        information = types.Implementation(name="karat", version=karat.__version__)
        pinned = self.server.protocol
        # With a modern version nothing is sent: the handshake is then our own.
        mode = handshake if pinned == "auto" else MODERN_PROTOCOL
        async with Client(
            self._link.connect(self._screen),
            mode=mode,
            client_info=information,
            elicitation_callback=self._answering,
            cache=None,
        ) as client:
            if pinned != "auto":
                elicits = self._answering is not None
                client_side = Introduction(
                    server=self.server.name, information=information, elicits=elicits
                )
                await negotiate(client.session, pinned, client_side, evidence=self._link.evidence)

            listed = await list_tools(client, self.server.name)
            about = client.server_info
            introduction: dict[str, object] = {  # as the result of an `initialize`
                "protocolVersion": client.protocol_version,
                "capabilities": as_json(client.server_capabilities),
                "serverInfo": as_json(about) if about is not None else None,
                "instructions": client.instructions,
            }
            self._keep(introduction, listed)
            self._client = client
            self._scope.deadline = math.inf
            self._link.end_at_once = False
            self._listed.set()
            await self._stop.wait()

    def _request(self, request: Coroutine[object, object, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(request)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def _first(self, wanted: asyncio.Future[Any], *, seconds: float | None = None) -> None:
        """Waits for `wanted`, the owner's end or so many seconds; cancels what is no longer
        wanted.
        """
        try:
            await asyncio.wait(
                {wanted, self._owner}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            # the owner's end resolves every request in progress
            if wanted in self._calls and not wanted.done():
                await asyncio.wait({wanted}, timeout=CAUSE_SECONDS)
        finally:
            if not wanted.done():
                wanted.cancel()
            wanted.add_done_callback(_retrieve)

    async def _down(self, error: BaseException | None = None) -> InfrastructureFault:
        """Mark the session as unusable, and give the reason."""
        self._broken = True
        self._stop.set()  # the owner ends, and its exception gives the reason
        await asyncio.wait({self._owner}, timeout=CAUSE_SECONDS)
        return self._fault(error)

    def _fault(
        self, error: BaseException | None = None, evidence: Evidence | None = None
    ) -> InfrastructureFault:
        owner = self._owner
        evidence = evidence or self._link.evidence
        if owner.done() and not owner.cancelled() and owner.exception() is not None:
            error = owner.exception()
        return fault_of(
            self.server, error, evidence, ready=self._listed.is_set(), redact=self._redact
        )


def _retrieve(task: asyncio.Future[Any]) -> None:
    """Retrieves the exception of a task that is no longer awaited, so that asyncio does not
    log it.
    """
    if not task.cancelled():
        task.exception()
