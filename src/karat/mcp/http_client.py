"""The HTTP client of an MCP session, which outlives broken connections and sessions that the server
has ended.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec

from karat.errors import InfrastructureFault
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.mcp.remote import RemoteLink

SESSION_ID = "mcp-session-id"

_OPENING = ("initialize", "notifications/initialized")
_NOT_THE_SERVER = (401, 403, 429, 502, 503, 504)
"""Statuses that ask for a login or for patience, whatever the body says."""
_ENDED = (400, 404, 410)
"""Statuses that say that a session has ended; with any other, only the words of an error can."""
_ENDED_IN_WORDS = (419, 422)
"""Statuses with which the words of any body can."""
_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_ERROR = 4096  # bytes of a first event that may say that a session has ended
_SESSION_ENDED = re.compile(
    r"session\b.{0,200}"
    r"\b(?:not found|not exist|unknown|expired|invalid|ended|closed|terminated|gone)\b"
    r"|session\b.{0,200}\b(?:no longer|not) (?:valid|active|available|open)\b"
    r"|\b(?:no such|unknown|invalid|expired|missing|no valid)\b.{0,20}\bsession\b"
    r"|\bnot (?:been )?initiali[sz]ed\b|\bexpect\w* initiali[sz]e\b"
)


class _Message(msgspec.Struct):
    """What matters of a message that is sent."""

    method: str | None = None
    id: int | str | None = None


class _Reply(msgspec.Struct):
    """What matters of a reply."""

    jsonrpc: object
    error: JsonObject | None = None


class SessionClient(httpx2.AsyncClient):
    """Answers a request whose connection breaks off as a gateway does, with 502.

    The SDK's transport would end the session, and with it every other call in flight. A server that
    cannot be connected to does end it. A session that has expired is opened again, and the request
    is sent once more.
    """

    def __init__(self, link: RemoteLink, **options: Any) -> None:
        super().__init__(**options)
        self._link = link
        # method → the request that opened the session
        self._opening: dict[str, httpx2.Request] = {}
        self._renewed_id: str | None = None  # in place of the id that the SDK's transport knows
        self._renewing = asyncio.Lock()

    async def send(self, request: httpx2.Request, **options: object) -> httpx2.Response:
        """As `httpx2.AsyncClient.send`. Raises httpx2's errors."""
        if self._renewed_id is not None and SESSION_ID in request.headers:
            request.headers[SESSION_ID] = self._renewed_id

        message = _Message()
        if request.method == "POST":
            with suppress(msgspec.DecodeError, httpx2.RequestNotRead):
                message = msgspec.json.decode(request.content, type=_Message)

        if message.method in _OPENING:
            self._opening[message.method] = request
        response = await self._sent(request, **options)
        if message.id is None or not self._link.up:
            return response
        expired = await _expired(response)
        if expired and await self._renewed(request.headers[SESSION_ID]):
            await response.aclose()
            request.headers[SESSION_ID] = self._renewed_id or ""
            response = await self._sent(request, **options)
            expired = await _expired(response)

        if response.has_redirect_location:
            return response
        ended = expired and response.status_code in _ENDED
        if not ended and await _answers(response):
            if response.is_error:
                self._link.on_answered()
            return response

        await response.aclose()
        self._link.on_undelivered(message.id, response)
        return httpx2.Response(response.status_code if response.is_error else 502, request=request)

    async def _sent(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
            if request.method != "POST" or not self._link.on_lost(
                str(error) or type(error).__name__
            ):
                raise

            return httpx2.Response(502, request=request)
        except InfrastructureFault as fault:  # there is no token for this request
            if request.method != "POST" or not self._link.on_lost(fault):
                raise
            return httpx2.Response(403, request=request)

    async def _renewed(self, expired: str) -> bool:
        """Opens another session in place of the expired one, if no other request has; whether there
        is one now.
        """
        async with self._renewing:
            if self._renewed_id not in (None, expired):
                return True
            first = self._opening["initialize"]
            response = await self._sent(first)
            if response.is_error or SESSION_ID not in response.headers:
                return False
            self._renewed_id = response.headers[SESSION_ID]
            if (second := self._opening.get("notifications/initialized")) is not None:
                second.headers[SESSION_ID] = self._renewed_id
                await self._sent(second)

            self._link.on_renewed()
            return True


async def _expired(response: httpx2.Response) -> bool:
    """Whether the server no longer knows the session: 404, 410, 400 unless it is about something
    else, or an error that says so with another status, or a text with 419 or 422.
    """
    status = response.status_code
    if SESSION_ID not in response.request.headers or status in _NOT_THE_SERVER:
        return False
    error = await _error_in(response)
    if error is None and status not in _ENDED_IN_WORDS:
        return status in _ENDED
    if error is None:
        await response.aread()
        words = response.text[:_LONGEST_ERROR]
    elif status in (404, 410):
        return error.get("code") != -32601  # a method that it does not know
    else:
        words = str(error.get("message"))

    words = words.lower()
    if status == 400:
        return "session" in words or "initiali" in words
    return _SESSION_ENDED.search(words) is not None


async def _answers(response: httpx2.Response) -> bool:
    """Whether the server answers with this: a message, or a stream of them."""
    kind = response.headers.get("content-type", "").lower()
    if response.is_error:
        return response.status_code not in _NOT_THE_SERVER and await _error_in(response) is not None
    if response.status_code in (202, 204):
        return False
    if kind.startswith("text/event-stream"):
        return True
    return kind.startswith("application/json") and b'"jsonrpc"' in await response.aread()


async def _error_in(response: httpx2.Response) -> JsonObject | None:
    """The error of JSON-RPC in a response, or in the first event of a stream; None if there is
    none.
    """
    kind = response.headers.get("content-type", "").lower()
    if kind.startswith("text/event-stream") and not response.is_error:
        stream = response.stream
        if not isinstance(stream, httpx2.AsyncByteStream) or "content-encoding" in response.headers:
            return None
        if not isinstance(stream, _Begun):
            response.stream = stream = _Begun(stream)
        body = await stream.event()
    elif kind.startswith("application/json"):
        body = await response.aread()
    else:
        return None

    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(body, type=_Reply).error
    return None


class _Begun(httpx2.AsyncByteStream):
    """A stream whose first pieces were read already."""

    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole
        self._pieces = aiter(whole)
        self._first: list[bytes] = []

    async def event(self) -> bytes:
        """The data of the first event that has some, if it is short."""
        read = b""
        while len(read) < _LONGEST_ERROR:
            for event in _END_OF_EVENT.split(read)[:-1]:
                lines = event.splitlines()
                data = [line[5:] for line in lines if line.startswith(b"data:")]
                if data:
                    return b"\n".join(data)

            piece = await anext(self._pieces, None)
            if piece is None:
                break
            self._first.append(piece)
            read += piece

        return b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._first:
            yield piece
        async for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        await self._whole.aclose()
