"""A server under test: the connection in use, what the server lists, and what a valid result is."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

import karat
from karat.errors import JudgeFault
from karat.foreign import Json
from karat.mcp.preflight import MOST_PAGES, MOST_TOOLS
from karat.records import JsonObject, McpServer
from karat.redact import Redactor
from karat.scorers._child import Schemas
from karat_servers.server_checks.outcomes import Verdict
from karat_servers.server_checks.wire import (
    INITIALIZE_VERSIONS,
    MODERN_VERSION,
    Connection,
    Ending,
    Reply,
)

_SCHEMA_SECONDS = 5.0
_NAMED = 5
_LAST_WORDS = 200  # characters of stderr
_DEEPEST = 5


class Unavailable(Exception):
    """There is no connection; the text gives the reason."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    verdict: Verdict
    seen: str


def passed(seen: str) -> Finding:
    """The check passed."""
    return Finding(verdict="passed", seen=seen)


def failed(seen: str) -> Finding:
    """The server breaks the protocol."""
    return Finding(verdict="failed", seen=seen)


def warning(seen: str) -> Finding:
    """Allowed, but a risk."""
    return Finding(verdict="warning", seen=seen)


def skipped(why: str) -> Finding:
    """The check does not apply."""
    return Finding(verdict="not_applicable", seen=why)


def named(names: list[str]) -> str:
    """The first few of a list, quoted."""
    shown = ", ".join(f"'{name[:60]}'" for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


class Listing(msgspec.Struct, kw_only=True):
    """All pages of one list."""

    items: list[Json] = []
    problem: str = ""  # why the list is invalid, or does not end
    pages: int = 0
    offered: bool = True  # False: the server has no such list


class Probe:
    """Opens connections for the checks, and keeps what they recorded."""

    def __init__(
        self,
        server: McpServer,
        *,
        folder: Path,
        seconds: float,
        calls: Mapping[str, JsonObject],
        redact: Redactor,
    ) -> None:
        self.server = server
        self.seconds = seconds
        self.calls = calls
        self.redact = redact
        self._folder = folder
        self.lists: dict[str, Listing] = {}
        self.results: dict[str, tuple[Json, Reply]] = {}  # name → the tool and its reply
        self.introduction = Json()  # the result of `initialize` or `server/discover`
        self.version: str | None = None  # of the main connection
        self.breaches: dict[str, list[str]] = {}
        self.endings: list[Ending] = []
        self.stderr_bytes = 0
        self._schemas = Schemas([], seconds=_SCHEMA_SECONDS)
        self._current: Connection | None = None

    async def open(self, version: str) -> tuple[Connection, Reply]:
        """A new connection, and the server's answer to this version. Raises Unavailable."""
        connection = Connection(self.server, folder=self._folder, redact=self.redact)
        try:
            await connection.start()
        except OSError as error:
            raise Unavailable(f"cannot be started: {error}") from error

        seconds = self.server.init_timeout_seconds
        if version == MODERN_VERSION:
            connection.version = version
            return connection, await connection.request("server/discover", seconds=seconds)

        about = {"name": "karat", "version": karat.__version__}
        params: JsonObject = {"protocolVersion": version, "capabilities": {}, "clientInfo": about}
        reply = await connection.request("initialize", params, seconds=seconds)
        if reply.kind == "result":
            given = reply.result.get("protocolVersion")
            connection.version = given if given in INITIALIZE_VERSIONS else version
            await connection.notify("notifications/initialized")

        return connection, reply

    async def connected(self) -> Connection:
        """The connection in use; a new one if the last check left none. Raises Unavailable."""
        if self._current is not None and self._current.usable:
            return self._current
        if self._current is not None:
            await self.close(self._current)
        if self.version is not None:
            versions = [self.version]
        else:
            versions = [INITIALIZE_VERSIONS[-1], MODERN_VERSION]

        why = ""
        for version in versions:
            connection, reply = await self.open(version)
            self._current = connection
            if reply.kind == "result":
                self.version = connection.version
                self.introduction = Json(reply.result)
                return connection

            words = connection.transport.last_words(self.redact)[-_LAST_WORDS:]
            why = why or f"{version}: {reply}{f'; its stderr ends: {words}' if words else ''}"
            await self.close(connection)

        raise Unavailable(why)

    async def close(self, connection: Connection) -> None:
        """Ends a connection, and keeps what it recorded."""
        await connection.close()
        if connection is self._current:
            self._current = None
        for kind, examples in connection.breaches.items():
            kept = self.breaches.setdefault(kind, [])
            kept += [text for text in examples if text not in kept][: _NAMED - len(kept)]

        if connection.ending is not None:
            self.endings.append(connection.ending)
        self.stderr_bytes = max(self.stderr_bytes, connection.transport.stderr_bytes)

    async def end(self) -> None:
        """Ends all connections; the next request opens a new one."""
        if self._current is not None:
            await self.close(self._current)
        self._schemas.close()

    async def ask(
        self, method: str, params: JsonObject | None = None, **chosen: int | str
    ) -> Reply:
        """The reply to a request.

        Raises Unavailable if the server has gone and cannot be reached again.
        """
        connection = await self.connected()
        number = chosen.get("number")
        return await connection.request(method, params, seconds=self.seconds, number=number)

    async def alive(self) -> str:
        """Why the server no longer answers; empty if it does."""
        connection = await self.connected()
        method = "ping" if self.version != MODERN_VERSION else "server/discover"
        reply = await connection.request(method, seconds=self.seconds)
        if reply.kind in ("result", "error"):
            return ""
        return str(reply)

    async def listing(self, kind: str) -> Listing:
        """Every page of `tools`, `resources`, `prompts` or `resources/templates`, requested
        once.
        """
        if kind not in self.lists:
            self.lists[kind] = await self._listed(kind, await self.connected())
        return self.lists[kind]

    async def tools(self) -> list[Json]:
        """The tools that have a name."""
        found = []
        for tool in (await self.listing("tools")).items:
            if isinstance(tool.get("name"), str):
                found.append(tool)

        return found

    async def fresh_tools(self, connection: Connection) -> Listing:
        """The tools, requested on another connection."""
        return await self._listed("tools", connection)

    def problem(self, method: str, result: JsonObject) -> str:
        """What is invalid in a result, by the SDK's types for the version in use; empty if nothing
        is.
        """
        from mcp_types.methods import validate_server_result
        from pydantic import ValidationError

        try:
            validate_server_result(method, self.version or INITIALIZE_VERSIONS[-1], result)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
            return f"{place}: {first['msg']}"
        except (KeyError, ValueError, RecursionError):
            return ""

        return ""

    def fits(self, schema: JsonObject, value: object) -> tuple[bool | None, str]:
        """Whether a value is valid against a schema; None: the schema is invalid, or takes too
        long.
        """
        try:
            return self._schemas.check(schema, json.dumps(value))
        except JudgeFault as fault:
            return None, fault.message

    async def _listed(self, kind: str, connection: Connection) -> Listing:
        method = f"{kind}/list"
        listing = Listing()
        cursor: str | None = None
        seen: set[str] = set()
        key = "resourceTemplates" if kind == "resources/templates" else kind
        deadline = time.monotonic() + 3 * self.seconds
        while True:
            if cursor is None:
                params = {}
            else:
                params = {"cursor": cursor}

            reply = await connection.request(method, params, seconds=self.seconds)
            if reply.kind != "result":
                listing.offered = not (
                    reply.kind == "error" and reply.code == -32601 and not listing.pages
                )
                listing.problem = f"{method} got {reply}"
                return listing

            listing.pages += 1
            listing.problem = listing.problem or self.problem(method, reply.result)
            listing.items += Json(reply.result).list(key)
            cursor = reply.result.get("nextCursor")
            if not isinstance(cursor, str):
                return listing
            if cursor in seen:
                listing.problem = (
                    f"page {listing.pages} gives the cursor '{cursor[:60]}' a second time"
                )
                return listing

            seen.add(cursor)
            if (
                listing.pages >= MOST_PAGES
                or len(listing.items) > MOST_TOOLS
                or time.monotonic() > deadline
            ):
                listing.problem = (
                    f"the list does not end: {len(listing.items)} entries on {listing.pages} "
                    f"pages so far"
                )
                return listing


def example(schema: object, depth: int = 0) -> object:
    """A small value for a schema, not always valid: one of its own examples, else the smallest of
    its type.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "a"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]

    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]

    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return example(schema[key][0], depth + 1)

    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties")
        required = schema.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list):
            return {}
        found = {}
        for name in required:
            if isinstance(name, str):
                found[name] = example(properties.get(name), depth + 1)

        return found

    if kind == "array":
        if schema.get("minItems"):
            return [example(schema.get("items"), depth + 1)]
        return []

    number = schema.get("minimum", 1)
    return {"integer": number, "number": number, "boolean": False, "null": None}.get(str(kind), "a")
