"""Cassettes: what MCP servers were asked and what they answered, in files, so that a run can be repeated without them.

One file a server, called after its name and the digest of its definition, one line an event:

    {"event":"head","format":1,"server":"docs","digest":"…"}
    {"event":"begin","session":"<trial>-<attempt>"}          what this session said before counts no more
    {"event":"asked","session":…,"method":"tools/call","arguments":{…},"n":0,"result":{…},"milliseconds":3.1}

An answer is found by session, method, arguments in canonical form, and how often the same
was asked before (`n`), so that repetitions that run at the same time stay apart. Instead of
`result` there may be an `error` of the protocol, a `fault` of the server, or `cut`: the trial
was over first. `relayed` marks the requests of an agent that connects to the server itself, of
any method. A long result that the file holds already is named by `same`, its digest.
Every line is redacted before it is written, and so are the arguments that are looked for.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from karat.errors import BadOption, InfrastructureFault
from karat.mcp.attempts import Attempt
from karat.mcp.results import mapped
from karat.records import McpServer
from karat.redact import Redactor

__all__ = ["FORMAT_VERSION", "Asked", "Kept", "Player", "Recorder", "cassette_path"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_LONG = 256  # characters from which on a result that was written before is not written again


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault of a server."""

    kind: str
    message: str
    retriable: bool = False
    retry_after: float | None = None

    def as_fault(self) -> InfrastructureFault:
        return InfrastructureFault(self.kind, self.message, retriable=self.retriable, retry_after=self.retry_after)

    @classmethod
    def of(cls, fault: InfrastructureFault) -> Kept:
        return cls(kind=fault.kind, message=fault.message, retriable=fault.retriable, retry_after=fault.retry_after)


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="asked", tag_field="event"):
    """One request and what came of it."""

    session: str
    method: str
    arguments: dict[str, Any] = {}
    n: int = 0
    result: dict[str, Any] | None = None
    same: str | None = None  # digest of a result that stands further up
    error: str | None = None
    code: int | None = None
    data: Any = None  # of the error, as the server gave it
    relayed: bool = False  # asked by an agent that connects to the server itself: result or error are the server's own
    fault: Kept | None = None
    cut: bool = False
    milliseconds: float | None = None


class _Head(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="event"):
    format: int
    server: str
    digest: str


class _Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin", tag_field="event"):
    session: str


_decode = msgspec.json.Decoder(_Head | _Begin | Asked).decode


def cassette_path(folder: Path, server: McpServer) -> Path:
    """The file of one definition of a server."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", server.name).strip("-.")[:40]
    return folder / f"{name or 'server'}-{server.digest[:16] or '0'}.jsonl"


class Recorder:
    """Adds to the cassette of one server. Raises BadOption where another process does."""

    def __init__(self, path: Path, server: McpServer, redact: Redactor) -> None:
        self._redact = redact
        self._written: set[bytes] = set()  # digests of long results
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise BadOption("mcp.record", f"another process is recording to {path}; wait for it") from error
        except OSError as error:
            raise BadOption("mcp.record", f"{path} cannot be written: {error.strerror}") from error
        self._mend(path)
        self.name = path.name
        self._put(_Head(format=FORMAT_VERSION, server=server.name, digest=server.digest))

    def request(self, method: str, arguments: dict[str, Any]) -> str:
        """What is asked, in the spelling by which it is counted."""
        return _request(method, arguments, self._redact)

    def add(self, attempt: Attempt, asked: Asked) -> None:
        """Writes it down at once: what is said is there when karat is killed the next moment."""
        if self.name not in attempt.begun and not attempt.goes_on:
            attempt.begun.add(self.name)
            self._put(_Begin(session=attempt.name))
        line = mapped(msgspec.to_builtins(asked), self._redact)
        if "result" in line:
            digest, long = _digest(line["result"])
            if long and digest in self._written:
                del line["result"]
                line["same"] = digest.hex()
            elif long:
                self._written.add(digest)
        self._put(line)

    def close(self) -> None:
        os.close(self._file)

    def _mend(self, path: Path) -> None:
        """Takes away a last line that a kill cut short."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            kept = path.read_bytes().rpartition(b"\n")[0]
            os.ftruncate(self._file, len(kept) + 1 if kept else 0)

    def _put(self, line: Any) -> None:
        data = msgspec.json.encode(line) + b"\n"
        while data:
            data = data[os.write(self._file, data) :]


class Player:
    """The cassette of one server, read by place: memory grows by some bytes a request, not with the answers."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        self.path, self._redact = path, redact
        self._places: dict[bytes, int] = {}  # request → where its line begins
        self._results: dict[str, int] = {}  # digest of a long result → the line that holds it
        self._takes: dict[str, int] = {}  # session → how often it began
        self._relayed: set[str] = set()  # sessions of agents that connect to the server themselves
        self.known = path.is_file()
        if self.known:
            self._read()

    def request(self, method: str, arguments: dict[str, Any]) -> str:
        """What is asked, in the spelling by which it is looked for."""
        return _request(method, arguments, self._redact)

    def find(self, attempt: Attempt, method: str, arguments: dict[str, Any], n: int | None) -> Asked | None:
        """What was answered the n-th time (from 0), or at last; None: it was never asked."""
        place = self._places.get(self._key(attempt.name, _request(method, arguments, self._redact), n))
        if place is None:
            return None
        asked = self._at(place)
        if asked.same is not None:
            asked = msgspec.structs.replace(asked, result=self._at(self._results[asked.same]).result)
        return asked

    def relayed(self, attempt: Attempt) -> bool:
        """Whether everything that the agent asked is in the recording, not the tools alone."""
        return attempt.name in self._relayed

    def _key(self, session: str, request: str, n: int | None) -> bytes:
        parts = msgspec.json.encode([session, self._takes.get(session, 0), request, n])
        return blake2b(parts, digest_size=16).digest()

    def _read(self) -> None:
        for place, line in self._lines():
            if isinstance(line, _Head) and line.format > FORMAT_VERSION:
                message = f"{self.path} has format {line.format}; this version of karat reads up to {FORMAT_VERSION}"
                raise BadOption("mcp.replay", message)
            if isinstance(line, _Begin):
                self._takes[line.session] = self._takes.get(line.session, 0) + 1
            if not isinstance(line, Asked):
                continue
            if line.relayed:
                self._relayed.add(line.session)
            request = _request(line.method, line.arguments, self._redact)
            for n in (line.n, None):
                self._places[self._key(line.session, request, n)] = place
            if line.result is not None:
                digest, long = _digest(line.result)
                if long:
                    self._results.setdefault(digest.hex(), place)

    def _lines(self) -> Iterator[tuple[int, _Head | _Begin | Asked]]:
        """Raises BadOption for a line that is none; a last line without its end is not there yet."""
        place = 0
        with self.path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                if not data.endswith(b"\n"):
                    return
                try:
                    yield place, _decode(data)
                except msgspec.DecodeError as error:
                    raise BadOption("mcp.replay", f"{self.path}, line {number} is damaged: {error}") from error
                place += len(data)

    def _at(self, place: int) -> Asked:
        with self.path.open("rb") as file:
            file.seek(place)
            asked = _decode(file.readline())
        assert isinstance(asked, Asked)
        return asked


def _request(method: str, arguments: dict[str, Any], redact: Redactor) -> str:
    """Method and arguments in one spelling: sorted keys, no secrets."""
    return f"{method} {msgspec.json.encode(mapped(arguments, redact), order='sorted').decode()}"


def _digest(result: dict[str, Any]) -> tuple[bytes, bool]:
    """Of a result as it stands in the file, and whether it is long enough to be worth it."""
    data = msgspec.json.encode(result, order="sorted")
    return blake2b(data, digest_size=16).digest(), len(data) > _LONG
