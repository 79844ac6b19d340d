"""HTTP/1.1 by hand, because a server that is to break in the middle of a sentence must hold the connection itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Call", "Connection", "Gone"]

_LARGEST_BODY = 256 * 1024 * 1024


class Gone(Exception):
    """The client has closed the connection, or what it sent is no HTTP."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One HTTP request."""

    method: str
    path: str  # without the query
    headers: Mapping[str, str]  # lower case names
    body: bytes


class Connection:
    """One client's connection: calls in, answers out, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._method = ""

    async def next_call(self) -> Call:
        """Raises Gone when there is none any more."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            self._method, target, _ = first.split(" ", 2)
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            if headers.get("expect", "").lower() == "100-continue":
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await self._body(headers)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError) as error:
            raise Gone from error
        return Call(method=self._method, path=target.partition("?")[0], headers=headers, body=body)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            length = int(headers.get("content-length") or 0)
            if not 0 <= length <= _LARGEST_BODY:
                raise ValueError(f"a body of {length} bytes")
            return await self._reader.readexactly(length)
        parts: list[bytes] = []
        while size := int((await self._reader.readline()).partition(b";")[0], 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
            if sum(map(len, parts)) > _LARGEST_BODY:
                raise ValueError("a body without end")
        while (await self._reader.readline()).strip():
            pass
        return b"".join(parts)

    async def answer(self, status: int, body: bytes, headers: Mapping[str, str], *, cut: int | None = None) -> None:
        """A whole answer; with `cut` only so many bytes of it, and the connection breaks."""
        length = {"content-length": str(len(body))}
        shown = b"" if self._method == "HEAD" else body
        await self._send(_head(status, {**headers, **length}) + (shown if cut is None else shown[:cut]))
        if cut is not None:
            self.close()

    async def begin(self, headers: Mapping[str, str]) -> None:
        """A stream, of which `send` gives the parts and `end` the end."""
        await self._send(_head(200, {**headers, "transfer-encoding": "chunked"}))

    async def send(self, part: bytes) -> None:
        await self._send(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    async def end(self) -> None:
        await self._send(b"0\r\n\r\n")

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise Gone from error

    async def wait(self, seconds: float | None) -> None:
        """Until the time is over (None: never); raises Gone where the client does not wait so long."""
        try:
            # The client has said all it has to say: whatever comes now is its end, or a call that came too early.
            early = await asyncio.wait_for(self._reader.read(1), seconds)
        except TimeoutError:
            return
        except OSError as error:
            raise Gone from error
        raise Gone if not early else Gone("a second call before the first was answered")

    def close(self) -> None:
        """Breaks the connection where it stands."""
        self._writer.close()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded" if status == 529 else "Unknown"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1", "replace")
