"""Cassettes: requests to MCP servers and their answers, in files, so a run can be repeated without
the servers.

One file per server, named after it and the digest of its definition, one line per event:

    {"event":"head","format":1,"server":"docs","digest":"…"}
    {"event":"begin","session":"<trial>-<attempt>"}          earlier lines of it no longer count
    {"event":"asked","session":…,"method":"tools/call","arguments":{…},"n":0,"result":{…},"milliseconds":3.1}

An answer is found by session, method, arguments in canonical form, and how often the same
was asked before (`n`), so concurrent repetitions stay separate. Instead of
`result` there may be an `error` of the protocol, a `fault` of the server, or `cut`: the trial
ended first. `relayed` marks the requests of an agent that connects to the server itself, of
any method. A long result that is already in the file is given by `same`, its digest.
Every line is redacted before it is written, and so are the arguments of a lookup.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
from collections.abc import Callable, Coroutine, Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

import msgspec

from karat.errors import BadOption, InfrastructureFault
from karat.mcp import attempts
from karat.mcp.attempts import Attempt
from karat.mcp.hub import NO_METHOD, Refused, introduction
from karat.mcp.parts import ServerConnection
from karat.mcp.preflight import Offer, offer_of
from karat.mcp.results import READS, Outcome, as_json, bounded, recorded_arguments, result_of
from karat.records import Cassettes, Elicited, JsonObject, McpServer
from karat.redact import Redactor, map_texts, without_surrogates

__all__ = ["CassetteStore"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_LONG = 256  # characters; a repeated result this long is not written again


class RecordedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault of a server."""

    kind: str
    message: str
    retriable: bool = False
    retry_after: float | None = None

    def as_fault(self) -> InfrastructureFault:
        return InfrastructureFault(**msgspec.structs.asdict(self))

    @classmethod
    def of(cls, fault: InfrastructureFault) -> RecordedFault:
        return msgspec.convert(fault, cls, from_attributes=True)


class RecordedRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="asked", tag_field="event"
):
    """One request and its outcome."""

    session: str
    method: str
    arguments: JsonObject = {}
    n: int = 0
    result: JsonObject | None = None
    same: str | None = None  # digest of an earlier result
    error: str | None = None
    code: int | None = None
    data: object = None  # of the error, as given by the server
    # asked by an agent that connects to the server itself: result or error come from the server
    relayed: bool = False
    fault: RecordedFault | None = None
    cut: bool = False
    # the server's questions to the user meanwhile, and the answers
    elicited: tuple[Elicited, ...] = ()
    milliseconds: float | None = None


class _Head(msgspec.Struct, frozen=True, kw_only=True, tag="head", tag_field="event"):
    format: int
    server: str
    digest: str


class _Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin", tag_field="event"):
    session: str


_decode = msgspec.json.Decoder(_Head | _Begin | RecordedRequest).decode


def cassette_path(folder: Path, server: McpServer) -> Path:
    """The file of one definition of a server."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", server.name).strip("-.")[:40]
    return folder / f"{name or 'server'}-{server.digest[:16] or '0'}.jsonl"


class CassetteWriter:
    """Appends to the cassette of one server. Raises BadOption if another process does."""

    def __init__(self, path: Path, server: McpServer, redact: Redactor) -> None:
        self._redact = redact
        self._written: set[bytes] = set()  # digests of long results
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise BadOption(
                "mcp.record", f"another process is recording to {path}; wait for it"
            ) from error
        except OSError as error:
            raise BadOption("mcp.record", f"{path} cannot be written: {error.strerror}") from error

        # Remove a last line that a kill cut short.
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            kept = path.read_bytes().rpartition(b"\n")[0]
            os.ftruncate(self._file, len(kept) + 1 if kept else 0)

        self.name = path.name
        self._put(_Head(format=FORMAT_VERSION, server=server.name, digest=server.digest))

    def request(self, method: str, arguments: JsonObject) -> str:
        """The request in the canonical form for counting."""
        return _request(method, arguments, self._redact)

    def add(self, attempt: Attempt, asked: RecordedRequest) -> None:
        """Write it at once, so that nothing is lost if karat is killed."""
        if self.name not in attempt.started and not attempt.goes_on:
            attempt.started.add(self.name)
            self._put(_Begin(session=attempt.name))

        line = _masked(msgspec.to_builtins(asked), self._redact)
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

    def _put(self, line: object) -> None:
        data = msgspec.json.encode(line) + b"\n"
        while data:
            data = data[os.write(self._file, data) :]


class CassetteReader:
    """The cassette of one server, read by offset: memory grows by some bytes per request, not with
    the answers.
    """

    def __init__(self, path: Path, redact: Redactor) -> None:
        self.path = path
        self._redact = redact
        self._places: dict[bytes, int] = {}  # request → offset of its line
        self._results: dict[str, int] = {}  # digest of a long result → its line
        self._takes: dict[str, int] = {}  # session → how often it began
        self._relayed: set[str] = set()  # sessions of agents that connect to the server themselves
        self._reading: set[str] = set()  # sessions that asked for resources or prompts
        self.known = path.is_file()
        if self.known:
            for place, line in self._lines():
                if isinstance(line, _Head) and line.format > FORMAT_VERSION:
                    message = (
                        f"{self.path} has format {line.format}; this version of karat reads up to "
                        f"{FORMAT_VERSION}"
                    )
                    raise BadOption("mcp.replay", message)

                if isinstance(line, _Begin):
                    self._takes[line.session] = self._takes.get(line.session, 0) + 1
                if not isinstance(line, RecordedRequest):
                    continue
                if line.relayed:
                    self._relayed.add(line.session)
                if line.method in READS:
                    self._reading.add(line.session)
                request = self.request(line.method, line.arguments)
                for n in (line.n, None):
                    self._places[self._key(line.session, request, n)] = place
                if line.result is not None:
                    digest, long = _digest(line.result)
                    if long:
                        self._results.setdefault(digest.hex(), place)

    def request(self, method: str, arguments: JsonObject) -> str:
        """The request in the canonical form for lookup."""
        return _request(method, arguments, self._redact)

    def find(
        self,
        attempt: Attempt,
        method: str,
        arguments: JsonObject,
        n: int | None,
    ) -> RecordedRequest | None:
        """The n-th answer (from 0), or the last one; None: it was never asked."""
        place = self._places.get(self._key(attempt.name, self.request(method, arguments), n))
        if place is None:
            return None
        asked = self._at(place)
        if asked.same is not None:
            asked = msgspec.structs.replace(
                asked, result=self._at(self._results[asked.same]).result
            )

        return asked

    def relayed(self, attempt: Attempt) -> bool:
        """Whether the recording has all requests of the agent, not only tools."""
        return attempt.name in self._relayed

    def masked(self, value: JsonObject) -> JsonObject:
        """As in the recording: without secrets."""
        return _masked(value, self._redact)

    def reads(self, attempt: Attempt) -> bool:
        """Whether the agent asked for resources or prompts."""
        return attempt.name in self._reading

    def _key(self, session: str, request: str, n: int | None) -> bytes:
        parts = msgspec.json.encode([session, self._takes.get(session, 0), request, n])
        return blake2b(parts, digest_size=16).digest()

    def _lines(self) -> Iterator[tuple[int, _Head | _Begin | RecordedRequest]]:
        """Raises BadOption for an invalid line; an incomplete last line is ignored."""
        place = 0
        with self.path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                if not data.endswith(b"\n"):
                    return
                try:
                    yield place, _decode(data)
                except msgspec.DecodeError as error:
                    raise BadOption(
                        "mcp.replay", f"{self.path}, line {number} is damaged: {error}"
                    ) from error

                place += len(data)

    def _at(self, place: int) -> RecordedRequest:
        with self.path.open("rb") as file:
            file.seek(place)
            asked = _decode(file.readline())

        assert isinstance(asked, RecordedRequest)
        return asked


def _masked(value: JsonObject, redact: Redactor) -> JsonObject:
    masked: JsonObject = redact.values(map_texts(value, without_surrogates))
    return masked


def _request(method: str, arguments: JsonObject, redact: Redactor) -> str:
    """Method and arguments in canonical form: sorted keys, no secrets."""
    return f"{method} {msgspec.json.encode(_masked(arguments, redact), order='sorted').decode()}"


def _digest(result: JsonObject) -> tuple[bytes, bool]:
    """The digest of a result as in the file, and whether it is long enough to need one."""
    data = msgspec.json.encode(result, order="sorted")
    return blake2b(data, digest_size=16).digest(), len(data) > _LONG


def _capabilities(attempt: Attempt) -> JsonObject:
    """What identifies a handshake: a server that may ask the user can offer and answer
    differently.
    """
    if attempt.elicit:
        return {"capabilities": {"elicitation": {}}}
    return {}


UNREPEATABLE = frozenset({"subscriptions/listen"})
"""Methods whose answer is a stream of notifications, which are not recorded."""


class CassetteStore:
    """The cassettes of a run, one per server, opened when first needed."""

    def __init__(self, cassettes: Cassettes, redact: Redactor) -> None:
        self.replays = cassettes.mode == "replay"
        self._folder = cassettes.folder
        self._redact = redact
        self._recorders: dict[str, CassetteWriter] = {}
        self._readers: dict[str, CassetteReader] = {}
        self._whole_run = Attempt(attempts.WHOLE_RUN)

    def recorded(
        self, server: McpServer, line: ServerConnection, attempt: Attempt | None
    ) -> ServerConnection:
        """The same connection, with every request recorded."""
        return _Recorded(line, self.recording(server, attempt))

    def recording(self, server: McpServer, attempt: Attempt | None) -> Recording:
        """The recorder of this attempt's requests to the server."""
        return Recording(self._recorder(server), attempt or self._whole_run)

    def refused(
        self, server: McpServer, fault: InfrastructureFault, attempt: Attempt | None
    ) -> None:
        """Record why there was no connection at all."""
        asked = RecordedRequest(
            session=(attempt or self._whole_run).name,
            method="initialize",
            fault=RecordedFault.of(fault),
        )
        self._recorder(server).add(attempt or self._whole_run, asked)

    def replayed(self, server: McpServer, attempt: Attempt | None) -> Replayed:
        """A connection answered only from the recording."""
        path = cassette_path(self._folder, server)
        if path.name not in self._readers:
            self._readers[path.name] = CassetteReader(path, self._redact)
        return Replayed(server, self._readers[path.name], attempt or self._whole_run)

    def close(self) -> None:
        for recorder in self._recorders.values():
            recorder.close()
        self._recorders.clear()

    def _recorder(self, server: McpServer) -> CassetteWriter:
        path: Path = cassette_path(self._folder, server)
        if path.name not in self._recorders:
            self._recorders[path.name] = CassetteWriter(path, server, self._redact)
        return self._recorders[path.name]


class Recording:
    """The requests of one attempt to one server, and the cassette they are written to (None: not
    recorded).
    """

    def __init__(self, recorder: CassetteWriter | None, attempt: Attempt) -> None:
        self._recorder = recorder
        self.attempt = attempt

    def asking(
        self, method: str, arguments: dict[str, object], *, relayed: bool = False
    ) -> OpenRequest:
        """A request in progress. `relayed`: by an agent that connects to the server itself."""
        recorder = self._recorder
        if recorder is None:
            n = 0
        else:
            n = self.attempt.next(recorder.name, recorder.request(method, arguments))

        asked = RecordedRequest(
            session=self.attempt.name,
            method=method,
            arguments=arguments,
            n=n,
            relayed=relayed,
        )
        return OpenRequest(asked, self._recorder, self.attempt)


class _Recorded:
    def __init__(self, line: ServerConnection, recording: Recording) -> None:
        self._line = line
        self._recording = recording

    async def offer(self) -> Offer:
        with self._recording.asking("initialize", _capabilities(self._recording.attempt)) as asking:
            offer = await self._line.offer()
            asking.keep(result=offer.introduction)

        listed = [as_json(tool) for tool in offer.as_listed]
        with self._recording.asking("tools/list", {}) as asking:
            asking.keep(result={"tools": listed})
        return offer

    async def ask(self, tool: str, arguments: JsonObject) -> Outcome:
        parameters = {"name": tool, "arguments": arguments}
        return await self._kept("tools/call", parameters, self._line.ask(tool, arguments))

    async def read(self, method: str, parameters: JsonObject) -> Outcome:
        return await self._kept(method, parameters, self._line.read(method, parameters))

    async def _kept(
        self, method: str, parameters: JsonObject, answer: Coroutine[object, object, Outcome]
    ) -> Outcome:
        with self._recording.asking(method, parameters) as asking:
            outcome = bounded(await answer)
            asking.keep(**msgspec.structs.asdict(outcome))
            if outcome.result is not None:
                asking.keep(result=as_json(outcome.result))

        return outcome


class OpenRequest:
    """A request in progress, recorded when it ends, in any way."""

    def __init__(
        self, asked: RecordedRequest, recorder: CassetteWriter | None, attempt: Attempt
    ) -> None:
        self._asked = asked
        self._recorder = recorder
        self._attempt = attempt

    @property
    def method(self) -> str:
        return self._asked.method

    @property
    def arguments(self) -> JsonObject:
        return self._asked.arguments

    def keep(self, **fields: object) -> None:
        self._asked = msgspec.structs.replace(self._asked, **fields)

    def __enter__(self) -> OpenRequest:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, InfrastructureFault):
            self.end(fault=RecordedFault.of(error))
        else:
            self.end(cut=error is not None)  # if so, the trial ended first

    def end(self, **fields: object) -> None:
        """Records the request, with its outcome."""
        self.keep(**fields)
        if self._recorder is not None:
            self._recorder.add(self._attempt, self._asked)


class Replayed:
    """The recording of one server, as used by one attempt."""

    def __init__(self, server: McpServer, reader: CassetteReader, attempt: Attempt) -> None:
        self._server = server
        self._reader = reader
        self._attempt = attempt

    async def offer(self) -> Offer:
        from mcp_types import Tool

        # The list may be requested more often than recorded: that depends on the clock.
        capabilities = _capabilities(self._attempt)
        introduction = _without_fault(await self._found("initialize", capabilities, or_last=True))
        listed = _without_fault(await self._found("tools/list", {}, or_last=True))
        tools = [Tool.model_validate(tool) for tool in (listed.result or {})["tools"]]
        return offer_of(self._server.name, introduction.result or {}, tools)

    async def ask(self, tool: str, arguments: JsonObject) -> Outcome:
        return await self.read("tools/call", {"name": tool, "arguments": arguments})

    async def read(self, method: str, parameters: JsonObject) -> Outcome:
        asked = _without_fault(await self._found(method, parameters))
        result = result_of(method, asked.result)
        for was in asked.elicited:
            # The current script must give the server the recorded answers
            if self._attempt.elicit:
                today = self._attempt.elicited(self._server.name)
                same = not was.content or self._reader.masked(today.content) == was.content
                if today.action == was.action and same:
                    continue
            raise self._missing(
                "holds another answer to an elicitation during", method, parameters, asked.n
            )

        return Outcome(
            result=result,
            error=asked.error,
            code=asked.code,
            milliseconds=asked.milliseconds,
            elicited=asked.elicited,
        )

    @property
    def reads(self) -> bool:
        """Whether this attempt requested more than tools: otherwise it was not offered, or not
        noticed.
        """
        return self._reader.reads(self._attempt)

    async def served(
        self, method: str, parameters: JsonObject, *, hang_up: Callable[[], None]
    ) -> JsonObject:
        """What the agent was given. As AnswersAgents."""
        asked = await self.answer(method, recorded_arguments(method, parameters))
        if asked is None:
            raise Refused(
                NO_METHOD,
                f"karat replays this MCP server, and cannot answer '{method}' from the recording",
            )

        if asked.fault is not None:
            if asked.relayed:  # the agent saw the connection end
                hang_up()
            raise asked.fault.as_fault()

        if asked.error is not None:
            raise Refused(asked.code, asked.error, asked.data)

        result = asked.result or {}
        if method != "initialize" or asked.relayed:
            return result
        return introduction(result if self.reads else {**result, "capabilities": {}}, parameters)

    async def answer(self, method: str, arguments: JsonObject) -> RecordedRequest | None:
        """The recorded answer to an agent's own request; None if it was not recorded, and could not
        be.

        The server's fault, if there was one, is in it. Raises InfrastructureFault for requests
        missing in the recording. In recordings of only tools, those are the handshake and the
        tools.
        """
        expected = method in ("initialize", "tools/list", "tools/call") or self._reader.relayed(
            self._attempt
        )
        if method in UNREPEATABLE or not (
            expected or self._reader.find(self._attempt, method, arguments, None)
        ):
            return None

        return await self._found(method, arguments, or_last=method != "tools/call")

    async def _found(
        self, method: str, arguments: dict[str, object], *, or_last: bool = False
    ) -> RecordedRequest:
        n = self._attempt.next(self._reader.path.name, self._reader.request(method, arguments))
        asked = self._reader.find(self._attempt, method, arguments, n)
        if asked is None and or_last:
            asked = self._reader.find(self._attempt, method, arguments, None)
        # then the attempt ended at its own limit, and does so again
        if asked is not None and asked.cut:
            await asyncio.sleep(self._server.call_timeout_seconds)
            raise self._missing("was cut off before there was an answer to", method, arguments, n)

        if asked is None:
            raise self._missing("holds no answer to", method, arguments, n)
        return asked

    def _missing(
        self,
        lack: str,
        method: str,
        arguments: dict[str, object],
        n: int,
    ) -> InfrastructureFault:
        if not self._reader.known:
            reason = f"there is no recording of it with this definition ({self._reader.path})"
        else:
            request = self._reader.request(method, arguments)
            if len(request) <= 300:
                shown = request
            else:
                shown = f"{request[:299]}…"

            if n:
                times = f", requested {n + 1} times"
            else:
                times = ""

            reason = (
                f"the recording {lack} {shown}{times} (session {self._attempt.name}, "
                f"{self._reader.path.name})"
            )

        fault = InfrastructureFault(
            "cassette_miss", f"MCP server '{self._server.name}' is replayed: {reason}"
        )
        # Also kept here: the agent may be another program, which only sees that its call failed.
        self._attempt.fault = self._attempt.fault or fault
        return fault


def _without_fault(asked: RecordedRequest) -> RecordedRequest:
    """The request itself, if the server had no fault."""
    if asked.fault is not None:
        raise asked.fault.as_fault()
    return asked
