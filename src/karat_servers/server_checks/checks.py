"""The checks of a server, in order: versions, lists, names and descriptions, errors, calls, and
shutdown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import combinations

import msgspec

from karat import formats
from karat.foreign import Json
from karat.mcp.remote import is_loopback
from karat.mcp.results import LARGEST_RESULT
from karat.records import JsonObject
from karat_servers.server_checks.probe import (
    Finding,
    Probe,
    example,
    failed,
    named,
    passed,
    skipped,
    warning,
)
from karat_servers.server_checks.wire import INITIALIZE_VERSIONS, MODERN_VERSION, Http, Reply

LONGEST_DESCRIPTION = 1024
"""Characters that the strictest model APIs accept."""

ALIKE = 0.8
"""Two descriptions are called alike if they share at least this part of their words (Jaccard)."""

LONG_RESULT = 100_000
"""Bytes, about 25,000 tokens: more fills a large part of a model's context."""

MUCH_STDERR = 1024 * 1024
"""Bytes per connection."""

_COMPARED = 500  # tools: pairs grow with the square
_FEWEST_WORDS = 3
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MODELS_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WORD = re.compile(r"\w+")
_MOST_CALLS = 20
_UNKNOWN = "karat-no-such-name"
_NO_METHOD = -32601
_OLD_VERSION = "1999-01-01"
_PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}'
_NO_CALLS = "no tool is marked as read-only (annotations.readOnlyHint) or named with --call"

_Look = Callable[[Probe], Awaitable[Finding]]


class PlannedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check, and what to do if it does not pass."""

    id: str
    advice: str
    look: _Look
    # what the server must have: tools, resources, prompts; or its transport: stdio, http; or empty
    needs: str


def _check(name: str, advice: str, needs: str = "") -> Callable[[_Look], PlannedCheck]:
    return lambda look: PlannedCheck(id=name, advice=advice, look=look, needs=needs)


@_check(
    "handshake",
    (
        "Check that the command or the address is right, and that the server answers the first "
        "request."
    ),
)
async def handshake(probe: Probe) -> Finding:
    """Whether the server can be reached, and its introduction is valid."""
    connection = await probe.connected()
    about = probe.introduction
    method = "server/discover" if connection.version == MODERN_VERSION else "initialize"
    if problem := probe.problem(method, about):
        return failed(f"the result of {method} is not valid: {problem}")
    return passed(f"protocol {connection.version}")


async def _version(probe: Probe, wanted: str) -> Finding:
    """Whether the server speaks this version; offering another one is not a fault."""
    connection, reply = await probe.open(wanted)
    try:
        if wanted == MODERN_VERSION:
            return await _modern(probe, reply)
        if reply.kind == "error" and probe.version == MODERN_VERSION:
            return skipped(f"the server speaks {MODERN_VERSION} only")
        if reply.kind != "result":
            return failed(f"initialize got {reply}")
        given = reply.result.get("protocolVersion")
        if given not in INITIALIZE_VERSIONS:
            return failed(
                f"it answers with protocolVersion {json.dumps(given)[:60]}, which is not a version"
            )

        if given != wanted:
            return skipped(f"the server offers {given} instead")
        listing = await probe.fresh_tools(connection)
        if listing.offered and listing.problem:
            return failed(listing.problem)
        return passed(f"agreed; {formats.plural(len(listing.items), 'tool')}")
    finally:
        await probe.close(connection)


def _speaks(version: str) -> PlannedCheck:
    advice = "Answer with this version, or with another one that you support."
    return _check(f"protocol.{version}", advice)(partial(_version, wanted=version))


async def _modern(probe: Probe, reply: Reply) -> Finding:
    if reply.kind in ("closed", "timeout", "malformed"):
        return failed(
            f"server/discover got {reply}; a server that does not know it must answer with an error"
        )

    if reply.kind == "error":
        return skipped(f"the server only knows initialize (server/discover got {reply})")
    versions = reply.result.get("supportedVersions")
    if not isinstance(versions, list):
        return failed("the result of server/discover has no supportedVersions")
    if MODERN_VERSION not in versions:
        return skipped(f"the server supports {named([str(version) for version in versions])}")
    connection, _ = await probe.open(MODERN_VERSION)
    try:
        listing = await probe.fresh_tools(connection)
    finally:
        await probe.close(connection)

    if listing.offered and listing.problem:
        return failed(listing.problem)
    return passed(f"supported; {formats.plural(len(listing.items), 'tool')}")


@_check(
    "protocol.unknown",
    "Never echo the client's version unchecked: answer with the newest that you support.",
)
async def unknown_version(probe: Probe) -> Finding:
    """Whether a version that does not exist is refused, or answered with another."""
    if probe.version == MODERN_VERSION:
        return skipped(f"the server speaks {MODERN_VERSION} only")
    connection, reply = await probe.open(_OLD_VERSION)
    await probe.close(connection)
    given = reply.result.get("protocolVersion")
    if reply.kind == "error":
        return passed(f"refused: {reply}")
    if reply.kind != "result":
        return failed(f"initialize with version {_OLD_VERSION} got {reply}")
    if given == _OLD_VERSION:
        return failed(f"it agrees to version {_OLD_VERSION}, which does not exist")
    return passed(f"it offers {str(given)[:20]} instead")


@_check("ping", "Answer `ping` at once with an empty result.")
async def ping(probe: Probe) -> Finding:
    """Whether `ping` is answered."""
    if (await probe.connected()).version == MODERN_VERSION:
        return skipped(f"{MODERN_VERSION} has no ping")
    reply = await probe.ask("ping")
    if reply.kind == "result":
        return passed(f"after {formats.number(reply.seconds)} s")
    return failed(f"ping got {reply}")


@_check("ids", "Return each id unchanged: the text '7' is not the number 7.")
async def ids(probe: Probe) -> Finding:
    """Whether the id of an answer is that of its request, and of the same type."""
    connection = await probe.connected()
    before = len(connection.breaches.get("id", ()))
    reply = await probe.ask(
        "ping" if probe.version != MODERN_VERSION else "server/discover", number="karat-7"
    )
    noted = connection.breaches.get("id", [])[before:]
    if noted or reply.kind not in ("result", "error"):
        return failed("; ".join(noted) or f"a request with a text as id got {reply}")
    return passed("texts and numbers come back unchanged")


async def _list(probe: Probe, kind: str) -> Finding:
    """Whether the list is valid and ends, if the server declares that it has one."""
    await probe.connected()
    capability = kind.partition("/")[0]
    declared = capability in probe.introduction.at("capabilities")
    listing = await probe.listing(kind)
    if not declared:
        if listing.items:
            return failed(
                f"it lists {len(listing.items)} {kind} but does not declare the capability "
                f"'{capability}'"
            )

        return skipped(f"it does not declare the capability '{capability}'")

    if not listing.offered and kind == "resources/templates":
        return skipped("it has no templates")
    if listing.problem:
        return failed(listing.problem)
    return passed(
        f"{len(listing.items)} on {listing.pages} page{'' if listing.pages == 1 else 's'}"
    )


def _lists(kind: str) -> PlannedCheck:
    advice = (
        "Declare what you list; send a nextCursor only if there is another page, and a new one "
        "each time."
    )
    return _check(f"list.{kind.rpartition('/')[2]}", advice)(partial(_list, kind=kind))


@_check("list.cursor", "Refuse a cursor that you did not issue with error -32602.")
async def cursor(probe: Probe) -> Finding:
    """Whether a list refuses a cursor that the server did not issue."""
    for kind in ("tools", "resources", "prompts"):
        if (await probe.listing(kind)).pages > 1:
            reply = await probe.ask(f"{kind}/list", {"cursor": "karat-no-such-cursor"})
            if reply.kind == "error":
                return passed(f"{kind}/list refuses an unknown cursor: {reply}")
            verdict = warning if reply.kind == "result" else failed
            return verdict(f"{kind}/list with an unknown cursor got {reply}")

    return skipped("no list has more than one page")


@_check(
    "list.stable",
    (
        "List the same tools in the same order: changes make answers incomparable and invalidate "
        "prompt caches."
    ),
    needs="tools",
)
async def stable(probe: Probe) -> Finding:
    """Whether another connection gets the same tools in the same order."""
    first = (await probe.listing("tools")).items
    connection, reply = await probe.open(probe.version or INITIALIZE_VERSIONS[-1])
    try:
        if reply.kind != "result":
            return failed(f"a second connection got {reply}")
        second = (await probe.fresh_tools(connection)).items
    finally:
        await probe.close(connection)

    if first == second:
        return passed("a second connection lists the same tools")
    old = {str(tool.get("name")): tool for tool in first}
    new = {str(tool.get("name")): tool for tool in second}
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return warning(
        f"a second connection lists other tools: "
        f"{named(changed) if changed else 'in another order'}"
    )


@_check("tools.names", "Use letters, digits, _ and - only, up to 64 of them.", needs="tools")
async def names(probe: Probe) -> Finding:
    """Whether models can call each tool by its name."""
    names = [str(tool["name"]) for tool in await probe.tools()]
    if bad := [name for name in names if not _NAME.fullmatch(name)]:
        return failed(f"not 1 to 128 characters from A-Z a-z 0-9 _ - . : {named(bad)}")
    if odd := [name for name in names if not _MODELS_NAME.fullmatch(name)]:
        return warning(
            f"with dots, or longer than 64 characters, which many models refuse: {named(odd)}"
        )

    return passed(formats.plural(len(names), "name"))


@_check("tools.duplicates", "Give each tool a unique name.", needs="tools")
async def duplicates(probe: Probe) -> Finding:
    """Whether no two tools have the same name."""
    counted = Counter(str(tool["name"]) for tool in await probe.tools())
    twice = [name for name, times in counted.items() if times > 1]
    if twice:
        return failed(f"listed more than once: {named(twice)}")
    return passed("every name is unique")


@_check(
    "tools.schemas",
    "Use JSON Schema with type: object, without references to other documents.",
    needs="tools",
)
async def schemas(probe: Probe) -> Finding:
    """Whether the schemas of tools are valid."""
    tools = await probe.tools()
    problems = []
    for tool in tools:
        for key in ("inputSchema", "outputSchema"):
            schema = tool.at(key)
            if tool.get(key) is None and key == "outputSchema":
                continue
            if schema.get("type") != "object":
                problems.append(f"{tool['name']}.{key} is not of type object")
            elif (fit := probe.fits(schema, {}))[0] is None:
                problems.append(f"{tool['name']}.{key}: {fit[1]}")

    if len(problems) > 3:
        more = f"; and {len(problems) - 3} more"
    else:
        more = ""

    if problems:
        return failed("; ".join(problems[:3]) + more)
    return passed("every schema is valid JSON Schema")


@_check(
    "descriptions.tools",
    "Say what the tool does and when to use it: models choose by this text.",
    needs="tools",
)
async def descriptions(probe: Probe) -> Finding:
    """Whether each tool has a description."""
    tools = await probe.tools()
    without = []
    for tool in tools:
        if not _description(tool).strip():
            without.append(str(tool["name"]))

    if without:
        return warning(f"without description: {named(without)}")
    return passed("every tool has one")


@_check(
    "descriptions.arguments",
    "Say what each argument means, with its unit or an example.",
    needs="tools",
)
async def arguments_described(probe: Probe) -> Finding:
    """Whether each argument of a tool has a description."""
    total = 0
    without = []
    for tool in await probe.tools():
        for name, about in tool.at("inputSchema", "properties").items():
            total += 1
            if not str(Json(about).get("description") or "").strip():
                without.append(f"{tool['name']}.{name}")

    if not total:
        return skipped("no tool has arguments")
    seen = f"{len(without)} of {total} without description: {named(without)}"
    if without:
        return warning(seen)
    return passed(f"{formats.plural(total, 'argument')} described")


@_check(
    "descriptions.length",
    "Shorten it: every request pays for it, and some models refuse more.",
    needs="tools",
)
async def descriptions_long(probe: Probe) -> Finding:
    """Whether no description is longer than model APIs accept."""
    tools = await probe.tools()
    lengths = {str(tool["name"]): len(_description(tool)) for tool in tools}
    if long := sorted(
        (name for name in lengths if lengths[name] > LONGEST_DESCRIPTION),
        key=lambda name: -lengths[name],
    ):
        return warning(
            f"longer than {LONGEST_DESCRIPTION} characters: {named(long)}, up to "
            f"{formats.count(max(lengths.values()))}"
        )

    return passed(f"the longest has {formats.count(max(lengths.values()))} characters")


@_check(
    "descriptions.alike",
    "Say how the tools differ, or merge them: models confuse such tools.",
    needs="tools",
)
async def descriptions_alike(probe: Probe) -> Finding:
    """Whether models can tell the tools apart by their descriptions."""
    words = {
        str(tool["name"]): tokens
        for tool in (await probe.tools())[:_COMPARED]
        if len(tokens := set(_WORD.findall(_description(tool).lower()))) >= _FEWEST_WORDS
    }
    if len(words) < 2:
        return skipped("there are no two descriptions to compare")
    alike = []
    for (name, first), (other, second) in combinations(words.items(), 2):
        shared = len(first & second) / len(first | second)
        if shared >= ALIKE:
            alike.append((shared, f"{name} / {other}"))

    if not alike:
        return passed(f"no two share {100 * ALIKE:g} % of their words")
    return warning(
        f"sharing {100 * ALIKE:g} % of their words or more: "
        f"{named([pair for _, pair in sorted(alike, reverse=True)])}"
    )


def _description(tool: Json) -> str:
    return tool.text("description") or ""


@_check("errors.method", "Answer with error -32601 (method not found).")
async def unknown_method(probe: Probe) -> Finding:
    """Whether an unknown method gets an error."""
    reply = await probe.ask("karat/no_such_method")
    if reply.kind == "error" and (reply.code == _NO_METHOD or reply.status is not None):
        return passed(str(reply))
    verdict = warning if reply.kind == "error" else failed
    return verdict(f"an unknown method got {reply}, expected error {_NO_METHOD}")


async def _refused(probe: Probe, method: str, params: JsonObject, request: str) -> Finding:
    """Whether a request for what there is not gets an error."""
    reply = await probe.ask(method, params)
    if not _refuses(reply):
        return failed(f"{request} got {reply}, expected an error")
    if gone := await probe.alive():
        return failed(f"after {request}, the next request got {gone}")
    return passed(str(reply) if reply.kind == "error" else "a result with isError")


def _refuses_unknown(
    kind: str,
    method: str,
    params: JsonObject,
    error: str = "error -32602",
) -> PlannedCheck:
    look = partial(_refused, method=method, params=params, request=f"an unknown {kind}")
    planned = _check(f"errors.{kind}", f"Answer with {error}, and keep running.", f"{kind}s")
    return planned(look)


def _refuses(reply: Reply) -> bool:
    return reply.kind == "error" or reply.result.get("isError") is True


@_check(
    "errors.arguments",
    (
        "Validate arguments against the inputSchema first; answer with isError and say what is "
        "missing."
    ),
    needs="tools",
)
async def wrong_arguments(probe: Probe) -> Finding:
    """Calls tools without the arguments they require: their schema must refuse that."""
    candidates = []
    for tool in await probe.tools():
        destructive = tool.at("annotations").flag("destructiveHint")
        schema = tool.at("inputSchema")
        if not destructive and probe.fits(schema, {})[0] is False:
            candidates.append(str(tool["name"]))

    if not candidates:
        return skipped("no tool requires an argument (destructive ones are left out)")
    accepted = []
    for name in candidates[:_MOST_CALLS]:
        reply = await probe.ask("tools/call", {"name": name, "arguments": {}})
        if reply.kind not in ("result", "error"):
            return failed(f"'{name[:60]}' without its arguments got {reply}")
        if not _refuses(reply):
            accepted.append(name)

    if accepted:
        return failed(
            f"called without their required arguments, these gave a result: {named(accepted)}"
        )

    return passed(
        f"refused by {len(candidates[:_MOST_CALLS])} of {len(candidates)} tools that require "
        f"arguments"
    )


@_check("errors.json", "Answer with error -32700 (over HTTP with status 400), and keep running.")
async def malformed(probe: Probe) -> Finding:
    """Whether the server keeps running after a message that is not JSON."""
    connection = await probe.connected()
    if isinstance(connection.transport, Http):
        status = await connection.transport.raw(b'{"jsonrpc": "2.0", "id": 1, ')
        if status is None or not 400 <= status < 500:
            return failed(
                f"a body that is not JSON got "
                f"{'no answer' if status is None else f'HTTP {status}'}, expected 400"
            )

        return passed(f"HTTP {status}")

    await connection.transport.raw(b'{"jsonrpc": "2.0", "id": 1, \n')
    gone = await probe.alive()
    if gone:
        return failed(f"after a line that is not JSON, the next request got {gone}")
    return passed("it keeps running")


@_check(
    "calls.results",
    "Answer within the time limit with `content`, a list; report failures with isError.",
    needs="tools",
)
async def results(probe: Probe) -> Finding:
    """Whether calls are answered with content."""
    calls = await _callable(probe)
    if not calls:
        return skipped(_NO_CALLS)
    problems = []
    for tool, arguments in calls[:_MOST_CALLS]:
        name = str(tool["name"])
        reply = await probe.ask("tools/call", {"name": name, "arguments": arguments})
        probe.results[name] = (tool, reply)
        problem = ""
        if reply.kind != "result":
            problem = f"got {reply}"
        elif fault := probe.problem("tools/call", reply.result):
            problem = f"returned an invalid result: {fault}"
        elif name in probe.calls and reply.result.get("isError") is True:
            problem = f"reported a failure: {json.dumps(reply.result.get('content'))[:100]}"

        if problem:
            problems.append(f"'{name[:60]}' {problem}")

    if problems:
        return failed("; ".join(problems[:3]))
    slowest = max(reply.seconds for _, reply in probe.results.values())
    return passed(
        f"{formats.plural(len(probe.results), 'tool')} called, the slowest "
        f"{formats.number(slowest)} s"
    )


@_check(
    "calls.structured",
    "Return structuredContent that fits the tool's own outputSchema.",
    needs="tools",
)
async def structured(probe: Probe) -> Finding:
    """Whether structured results fit the schema of their tool."""
    problems = []
    fit = 0
    for name, (tool, reply) in probe.results.items():
        if (
            reply.kind != "result"
            or reply.result.get("isError") is True
            or not tool.at("outputSchema")
        ):
            continue

        if not isinstance(reply.result.get("structuredContent"), dict):
            problems.append(f"'{name[:60]}' has an outputSchema but returned no structuredContent")
            continue

        valid, why = probe.fits(tool.at("outputSchema"), reply.result["structuredContent"])
        fit += valid is True
        if valid is not True:
            problems.append(f"'{name[:60]}': {why}")

    if problems:
        return failed("; ".join(problems[:3]))
    if fit:
        return passed(f"valid, of {formats.plural(fit, 'tool')}")
    return skipped("no tool with an outputSchema was called successfully")


@_check("calls.size", "Return less: pages, a limit, or a link to a resource.", needs="tools")
async def sizes(probe: Probe) -> Finding:
    """Whether results leave room in a model's context."""
    sizes = {
        name: reply.size for name, (_, reply) in probe.results.items() if reply.kind == "result"
    }
    if not sizes:
        return skipped("no tool was called successfully")
    largest = max(sizes, key=lambda name: sizes[name])
    seen = f"the largest, of '{largest[:60]}', has {formats.count(sizes[largest])} bytes"
    if sizes[largest] > LARGEST_RESULT:
        return failed(f"{seen}, more than the {formats.count(LARGEST_RESULT)} that karat accepts")
    if sizes[largest] > LONG_RESULT:
        return warning(seen)
    return passed(seen)


async def _callable(probe: Probe) -> list[tuple[Json, JsonObject]]:
    """The tools that may be called, with arguments: first those that the caller named, then
    read-only ones.
    """
    tools = {str(tool["name"]): tool for tool in await probe.tools()}
    calls = [
        (tools.get(name, Json({"name": name})), arguments)
        for name, arguments in probe.calls.items()
    ]
    for name, tool in tools.items():
        if name in probe.calls or not tool.at("annotations").flag("readOnlyHint"):
            continue

        schema = tool.at("inputSchema")
        arguments = example({**schema, "type": "object"})
        if schema and isinstance(arguments, dict) and probe.fits(schema, arguments)[0]:
            calls.append((tool, arguments))

    return calls


@_check(
    "cancellation", "Stop the request and keep running; ignore cancellations of unknown requests."
)
async def cancellation(probe: Probe) -> Finding:
    """Whether the server keeps running after a cancellation."""
    connection = await probe.connected()
    if connection.version == MODERN_VERSION and probe.server.type == "http":
        return skipped("over HTTP, closing the response is the cancellation")
    await connection.notify(
        "notifications/cancelled", {"requestId": 987654321, "reason": "unknown"}
    )
    called = next(iter(await _callable(probe)), None)
    if called is not None:
        tool, arguments = called
        sent = await connection.send("tools/call", {"name": tool["name"], "arguments": arguments})
        await connection.notify(
            "notifications/cancelled", {"requestId": sent, "reason": "karat checks this"}
        )

    if gone := await probe.alive():
        return failed(f"after a cancellation, the next request got {gone}")
    if called:
        target = f"of '{str(called[0]['name'])[:60]}' and "
    else:
        target = ""

    return passed(f"it keeps running after a cancellation {target}of an unknown request")


@_check(
    "http.origin",
    (
        "Refuse an unknown Origin with 403: otherwise any page in a browser can call a server on "
        "this machine."
    ),
    needs="http",
)
async def origin(probe: Probe) -> Finding:
    """Whether a server on this machine refuses other sites' pages."""
    if not is_loopback(probe.server.url):
        return skipped("for servers over HTTP on this machine")
    status = await (await _over_http(probe)).raw(_PING, origin="http://karat.invalid")
    if status is not None and 400 <= status < 500:
        return passed(f"HTTP {status} for another site's page")
    return failed(f"a request with another site's Origin got HTTP {status}, expected 403")


async def _over_http(probe: Probe) -> Http:
    transport = (await probe.connected()).transport
    assert isinstance(transport, Http)  # the checks need it
    return transport


@_check("http.session", "Answer 404, so that the client starts a new session.", needs="http")
async def session(probe: Probe) -> Finding:
    """Whether an unknown session gets the status that makes a client start anew."""
    transport = await _over_http(probe)
    if transport.session is None:
        return skipped("the server issues no session id")
    status = await transport.raw(_PING, **{"mcp-session-id": "karat-no-such-session"})
    if status in (400, 404):
        return passed(f"HTTP {status} for an unknown session")
    return failed(f"a request with an unknown session got HTTP {status}, expected 404")


@_check(
    "messages",
    "Send one JSON-RPC 2.0 object per message, and ask the client only for what it declares.",
)
async def messages(probe: Probe) -> Finding:
    """Whether all that was received on any connection were messages. Closes them."""
    await probe.end()
    noted = [
        *probe.breaches.get("message", ()),
        *probe.breaches.get("json", ()),
        *probe.breaches.get("id", ()),
    ]
    if noted:
        return failed("; ".join(noted))
    return passed("every message is valid JSON-RPC 2.0")


@_check("stdout", "Print to stderr: stdout is only for messages.", needs="stdio")
async def stdout(probe: Probe) -> Finding:
    """Whether stdout has only messages."""
    noted = probe.breaches.get("stdout", [])
    if noted:
        return failed(f"lines that are not messages: {named(noted)}")
    return passed("it has only messages")


@_check("stderr", "Log less: clients store it, and a full pipe blocks the server.", needs="stdio")
async def stderr(probe: Probe) -> Finding:
    """Whether stderr has a size that clients can store."""
    seen = f"{formats.count(probe.stderr_bytes)} bytes, on the connection with the most"
    if probe.stderr_bytes > MUCH_STDERR:
        return warning(seen)
    return passed(seen)


@_check("shutdown", "End with code 0 when stdin is closed.", needs="stdio")
async def shutdown(probe: Probe) -> Finding:
    """Whether the server ends by itself when stdin is closed."""
    if not probe.endings:
        return skipped("the server ended before")
    late = [ending for ending in probe.endings if ending.seconds is None]
    if late:
        return failed(
            f"{len(late)} of {len(probe.endings)} times it was still running 5 s after its "
            f"stdin was closed"
        )

    codes = {ending.code for ending in probe.endings}
    latest = max(ending.seconds or 0.0 for ending in probe.endings)
    seen = f"at the latest {formats.number(latest)} s after its stdin was closed"
    if codes - {0}:
        return warning(f"{seen}, with exit code {', '.join(sorted(map(str, codes - {0})))}")
    return passed(seen)


@_check("children", "End the processes you started before you exit.", needs="stdio")
async def children(probe: Probe) -> Finding:
    """Whether no process is left that the server started."""
    if not probe.endings:
        return skipped("the server ended before")
    left = sum(ending.children for ending in probe.endings)
    if left:
        return failed(
            f"{left} of {len(probe.endings)} times, processes that it started kept running"
        )

    return passed("no process is left")


CHECKS = (
    handshake,
    _speaks("2025-06-18"),
    _speaks("2025-11-25"),
    _speaks(MODERN_VERSION),
    unknown_version,
    ping,
    ids,
    _lists("tools"),
    _lists("resources"),
    _lists("resources/templates"),
    _lists("prompts"),
    cursor,
    stable,
    names,
    duplicates,
    schemas,
    descriptions,
    arguments_described,
    descriptions_long,
    descriptions_alike,
    unknown_method,
    _refuses_unknown("tool", "tools/call", {"name": _UNKNOWN, "arguments": {}}),
    _refuses_unknown("resource", "resources/read", {"uri": f"karat://{_UNKNOWN}"}, "an error"),
    _refuses_unknown("prompt", "prompts/get", {"name": _UNKNOWN}),
    wrong_arguments,
    malformed,
    results,
    structured,
    sizes,
    cancellation,
    origin,
    session,
    messages,
    stdout,
    stderr,
    shutdown,
    children,
)
"""In this order: `messages` closes all connections, and later checks look at what was recorded."""
