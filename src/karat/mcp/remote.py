"""MCP over streamable HTTP and SSE.

Redirects are followed only within the origin of the URL, so headers never reach
another (the SDK ensures it; a redirect elsewhere is a fault that names the target). The
environment's proxies are used for remote servers, as they are the only way out of many
networks, and never for local ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from karat.errors import InfrastructureFault
from karat.mcp.faults import Evidence
from karat.mcp.replies import Pending
from karat.mcp.results import LONGEST_MESSAGE
from karat.records import McpServer
from karat.waits import retry_after

if TYPE_CHECKING:
    import httpx2

    from karat.mcp.parts import ServerTokens
    from karat.mcp.screen import Screen

CONNECT_SECONDS = 30.0
"""To connect and to send. Reading is bounded by the handshake's and the call's own limits."""

_BROKEN_STREAM = ("SSE stream failed: ", "SSE stream ended ", "Redirect to ")
"""What the SDK's transport says of a request whose answer did not come."""


class RemoteLink:
    """One connection to a remote server."""

    def __init__(
        self,
        server: McpServer,
        *,
        on_broken: Callable[[], None],
        on_renewed: Callable[[], object],
        tokens: ServerTokens | None = None,
    ) -> None:
        """`on_renewed`: a session that the server had ended was opened again."""
        self._server = server
        self._on_broken = on_broken
        self._on_renewed = on_renewed
        self._tokens = tokens
        self._pending = Pending()
        self.evidence = Evidence()
        self.end_at_once = True

    @asynccontextmanager
    async def connect(self, screen: Screen | None = None) -> AsyncIterator[Any]:
        """The streams that the SDK's client speaks through. Raises httpx2's errors, perhaps in a
        group.

        `screen`: as in Pending.
        """
        self._pending = Pending(screen)
        if self._server.type == "sse":
            from mcp.client.sse import sse_client

            async with sse_client(
                self._server.url,
                httpx_client_factory=lambda headers=None, timeout=None, auth=None: self._client(),
                sse_read_timeout=0,
            ) as streams:
                yield self._watched(*streams)

            return

        from mcp.client.streamable_http import streamable_http_client

        async with self._client() as client:
            transport = streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=LONGEST_MESSAGE
            )
            async with transport as streams:
                yield self._watched(*streams)

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        from karat.mcp.http_client import SessionClient

        if self._tokens is None:
            auth: httpx2.Auth | None = None
        else:
            auth = self._tokens.authentication(self.evidence)

        return SessionClient(
            self,
            headers=self._server.headers,
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            # A call that waits too long for a connection ends the session. One that is sent while
            # the server closes an idle connection fails: most servers do after 5 s, some after 2 s.
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=1.0),
            follow_redirects=False,
            trust_env=not is_loopback(self._server.url),
            event_hooks={"response": [self._note]},
            auth=auth,
        )

    @property
    def up(self) -> bool:
        """Whether a session is open that one failed request does not end."""
        return self._server.type == "http" and not self.end_at_once

    def on_lost(self, reason: str | InfrastructureFault) -> bool:
        """Keeps why a request got no response, for the call's fault; whether the session goes
        on.
        """
        if self.up:
            self.evidence.status = None
            self.evidence.lost = reason

        return self.up

    def on_renewed(self) -> None:
        """Passes it on."""
        self._on_renewed()
        self.on_answered()

    def on_answered(self) -> None:
        """Forgets a status that came with an answer: it explains nothing that follows."""
        self.evidence.status = None

    def on_undelivered(self, number: int | str, response: httpx2.Response) -> None:
        """Keeps what came instead of an answer, for the request's fault."""
        evidence = msgspec.structs.replace(self.evidence)
        if not response.is_error:
            evidence.status = response.status_code
            evidence.lost = None
            evidence.instead = response.headers.get("content-type", "").partition(";")[0]

        self._pending.undelivered[number] = evidence

    def _watched(self, incoming: Any, outgoing: Any, *_: Any) -> tuple[Any, Any]:
        """The streams, with invalid replies turned into errors of their requests."""
        return _Incoming(incoming, self._pending, self.evidence), _Outgoing(
            outgoing, self._pending, self.evidence
        )

    async def _note(self, response: httpx2.Response) -> None:
        """Keeps the details that the SDK turns into "Server returned an error response"."""
        if response.status_code < 300 or response.request.method == "DELETE":
            if self.evidence.location is not None:  # that redirect was followed
                self.evidence.status = self.evidence.location = None
            return

        asked = str(response.request.url).partition("?")[0]
        elsewhere = asked != self._server.url.partition("?")[0]
        if self._tokens is not None and (elsewhere or response.status_code in (401, 403)):
            return  # only part of getting a token: the outcome is recorded there
        if (
            response.status_code in (404, 405)
            and response.request.method == "GET"
            and self._server.type == "http"
        ):
            return  # it has no stream of notifications, as the protocol allows

        evidence = self.evidence
        evidence.status = response.status_code
        evidence.lost = None
        if response.has_redirect_location:
            # The target of a redirect, without possible secrets
            place = response.request.url.join(response.headers["location"])
            evidence.location = str(place.copy_with(userinfo=b"", query=None, fragment=None))
        else:
            evidence.location = None

        evidence.retry_after = retry_after(response.headers)
        if (
            self._server.type == "sse"
            and response.request.method == "POST"
            and response.status_code >= 400
        ):
            self._on_broken()  # the SDK stops sending and would let every call wait for its timeout


class _Wrapped:
    """A stream of the SDK, closed with the block."""

    def __init__(self, stream: Any, pending: Pending, evidence: Evidence) -> None:
        self._stream = stream
        self._pending = pending
        self._evidence = evidence

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Outgoing(_Wrapped):
    async def send(self, item: Any) -> None:
        self._pending.sent(item.message)
        await self._stream.send(item)


class _Incoming(_Wrapped):
    @property
    def last_context(self) -> object:
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._seen(await self._stream.__anext__())

    async def receive(self) -> Any:
        return self._seen(await self._stream.receive())

    def _seen(self, item: Any) -> Any:
        from mcp.shared.message import SessionMessage

        if isinstance(item, Exception):
            error = self._pending.unreadable(item)
            if error is None:
                return item
            return SessionMessage(error)

        error = getattr(item.message, "error", None)
        if error is not None and error.message.startswith(_BROKEN_STREAM):
            self._pending.undelivered[item.message.id] = self._evidence
        (message,) = self._pending.received(item.message)
        if message is item.message:
            return item
        return SessionMessage(message)


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
