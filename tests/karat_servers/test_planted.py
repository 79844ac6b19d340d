"""Each fault of a small server is found, and a sound server has no finding."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from karat.foreign import Json
from karat.records import McpServer
from karat.redact import Redactor
from karat_servers.server_checks.checks import CHECKS
from karat_servers.server_checks.probe import Listing, Probe
from karat_servers.server_checks.running import check_server
from karat_servers.server_checks.wire import Reply

SERVER = Path(__file__).with_name("planted_server.py")

FAULTS = {
    "silent": {"handshake": "failed"},
    "no-server-info": {"handshake": "failed"},
    "echoes-version": {"protocol.unknown": "failed"},
    "no-ping": {"ping": "failed"},
    "ids-as-text": {"messages": "failed"},
    "old-jsonrpc": {"messages": "failed"},
    "cursor-repeats": {"list.tools": "failed"},
    "endless-list": {"list.tools": "failed"},
    "any-cursor": {"list.cursor": "warning"},
    "undeclared": {"list.resources": "failed"},
    "list-changes": {"list.stable": "warning"},
    "duplicate-names": {"tools.duplicates": "failed"},
    "bad-name": {"tools.names": "failed"},
    "dotted-name": {"tools.names": "warning"},
    "bad-schema": {"tools.schemas": "failed"},
    "schema-not-object": {"tools.schemas": "failed"},
    "no-description": {"descriptions.tools": "warning"},
    "argument-without-description": {"descriptions.arguments": "warning"},
    "long-description": {"descriptions.length": "warning"},
    "near-duplicates": {"descriptions.alike": "warning"},
    "unknown-method-succeeds": {"errors.method": "failed"},
    "unknown-method-hangs": {"errors.method": "failed"},
    "unknown-tool-succeeds": {"errors.tool": "failed"},
    "unknown-tool-crashes": {"errors.tool": "failed"},
    "unknown-resource-succeeds": {"errors.resource": "failed"},
    "arguments-unchecked": {"errors.arguments": "failed"},
    "malformed-crashes": {"errors.json": "failed"},
    "slow-call": {"calls.results": "failed"},
    "no-content": {"calls.results": "failed"},
    "structured-mismatch": {"calls.structured": "failed"},
    "no-structured-content": {"calls.structured": "failed"},
    "long-result": {"calls.size": "warning"},
    "cancellation-crashes": {"cancellation": "failed"},
    "stdout-noise": {"stdout": "failed"},
    "stderr-flood": {"stderr": "warning"},
    "exit-code": {"shutdown": "warning"},
    "stays": {"shutdown": "failed"},
    "leaves-child": {"children": "failed"},
}
ALSO = {  # what one fault brings with it
    "ids-as-text": {"ids"},
    "unknown-method-succeeds": {"protocol.2026-07-28", "list.templates"},
    "cursor-repeats": {"protocol.2025-06-18", "protocol.2025-11-25", "list.cursor", "tools.duplicates"},
    "endless-list": {"protocol.2025-06-18", "protocol.2025-11-25", "list.cursor", "tools.duplicates"},
    "bad-schema": {"descriptions.arguments"},
    "schema-not-object": {"list.tools", "protocol.2025-06-18", "protocol.2025-11-25"},
    "slow-call": {"cancellation", "shutdown"},
}

SLOW = ("stays", "slow-call", "silent", "leaves-child")  # each waits for a limit, several times


async def checked(fault, tmp_path):
    server = McpServer(
        name="planted", type="stdio", command="python", args=(str(SERVER), fault), init_timeout_seconds=3
    )
    report = await check_server(server, folder=tmp_path, redact=Redactor({}), seconds=2.0)
    assert [check.id for check in report.checks] == [check.id for check in CHECKS]
    return report, {check.id: check.verdict for check in report.checks if check.verdict in ("failed", "warning")}


def assert_found(fault, report, found):
    assert FAULTS[fault].items() <= found.items()
    assert found.keys() <= FAULTS[fault].keys() | ALSO.get(fault, set())
    assert all(check.advice for check in report.checks if check.verdict in ("failed", "warning"))


def test_a_sound_server_has_no_finding(tmp_path):
    report, found = asyncio.run(checked("", tmp_path))
    assert found == {}
    assert (report.about, report.protocol, report.tools, report.resources, report.prompts) == (
        "planted 1",
        "2025-11-25",
        3,
        1,
        0,
    )
    assert not report.failed
    assert all(check.seen and not check.advice for check in report.checks)


@pytest.mark.quick(2)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in SLOW])
def test_a_planted_fault_is_found_and_nothing_else(fault, tmp_path):
    assert_found(fault, *asyncio.run(checked(fault, tmp_path)))


@pytest.mark.slow
def test_a_planted_fault_that_takes_its_time_is_found_and_nothing_else(tmp_path):
    """All at once, because the checks wait."""

    async def together():
        return await asyncio.gather(*(checked(fault, tmp_path) for fault in SLOW))

    for fault, (report, found) in zip(SLOW, asyncio.run(together()), strict=True):
        assert_found(fault, report, found)


def test_what_a_server_says_is_cleaned_cut_and_free_of_secrets(tmp_path):
    server = McpServer(name="planted", type="stdio", command="python", args=(str(SERVER), "hostile"))
    redact = Redactor({"KEY": "key-of-the-house"})
    report = asyncio.run(check_server(server, folder=tmp_path, redact=redact, seconds=2))
    names = next(check for check in report.checks if check.id == "tools.names")
    assert names.verdict == "failed"
    assert "red\ufffd${KEY} ${KEY}" in names.seen
    assert len(names.seen) < 200
    everything = msgspec.json.encode(report).decode()
    assert not [text for text in ("\x1b", "\u202e", "key-of") if text in everything]


class Told(Probe):
    """A server of which the lists and the replies are written down."""

    def __init__(self, tools, replies=(), gone="", **calls):
        server = McpServer(name="told", type="stdio", command="python")
        super().__init__(server, folder=Path(), seconds=1.0, calls=calls, redact=Redactor({}))
        self.lists["tools"] = Listing(items=[Json(tool) for tool in tools], offered=True)
        self.replies, self.gone = list(replies), gone

    async def ask(self, method, params=None, **chosen):
        return self.replies.pop(0)

    async def alive(self):
        return self.gone


def tool(name="look", description="Looks up where a page is.", about="what is looked for", **more):
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": about}}, "required": ["q"]}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def reply(kind="result", **more):
    return Reply(kind=kind, **more)


SAID = {"content": [{"type": "text", "text": "found"}]}
READS = {"annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ERROR = reply("error", code=-32602, message="no such")
LISTS = {
    "sound": [tool(), tool("write", "Stores a new text under its title.")],
    "names": [tool("a b"), tool("a.b"), tool("x" * 65), tool("x" * 129), tool("")],
    "only odd names": [tool("a.b"), tool("x" * 64)],
    "twice": [tool(), tool(), tool("b"), tool("b"), tool("c")],
    "schemas": [
        tool("a", inputSchema={}), tool("b", inputSchema={"type": "object", "properties": 7}),
        tool("c", outputSchema={}), tool("d", outputSchema={"type": "array"}), tool("e", outputSchema=NUMBER),
    ],
    "descriptions": [
        tool("a", ""), tool("b", " "), tool("c", "x" * 1025, about=""), tool("d", "y" * 1030), tool("e", "z" * 1024),
    ],
    "alike": [
        tool("a", "Finds one page of docs"), tool("b", "finds one page of docs!"), tool("c", "Finds one"),
        tool("d", "Else is far away"),
    ],
    "no arguments": [tool("a", inputSchema={"type": "object"})],
    "destructive": [tool("a", annotations={"destructiveHint": True})],
}  # fmt: skip
REPLIES = {
    "errors.method": [
        [reply("error", code=-32601)],
        [reply("error", code=-32000)],
        [reply("error", status=404)],
        [reply()],
    ],
    "errors.tool": [[ERROR], [reply(result={"isError": True})], [reply(result=SAID)], [reply("timeout", seconds=1.0)]],
    "errors.arguments": [[ERROR, ERROR], [reply(result=SAID), ERROR], [reply("closed"), ERROR]],
}  # fmt: skip
CALLS = {
    "sound": ([tool(**READS)], [reply(result=SAID, size=30, seconds=0.5)]),
    "an error": ([tool(**READS), tool("b", **READS)], [ERROR, reply(result={"content": 7}, size=5)]),
    "structured": (
        [tool(**READS, outputSchema=NUMBER)], [reply(result={**SAID, "structuredContent": {"n": 1}}, size=100_001)]
    ),
    "structured of another shape": (
        [tool(**READS, outputSchema=NUMBER)], [reply(result={**SAID, "structuredContent": {"n": "1"}}, size=10**9)]
    ),
    "no structure": ([tool(**READS, outputSchema=NUMBER)], [reply(result=SAID, size=100_000)]),
    "nothing to call": ([tool()], []),
}  # fmt: skip


def test_what_is_found_in_what_a_server_says(golden):
    checks = {check.id: check for check in CHECKS}
    told = []

    async def found_in(probe, name):
        return await checks[name].look(probe)

    def look(name, probe):
        found = asyncio.run(found_in(probe, name))
        told.append(f"    {name}: {found.verdict}: {found.seen}")

    for case, tools in LISTS.items():
        told.append(f"tools: {case}")
        for name in checks:
            if name.startswith(("tools.", "descriptions.")) and (
                name != "tools.schemas" or case in ("sound", name[6:])
            ):
                look(name, Told(tools))
    told.append("arguments: destructive")
    look("errors.arguments", Told(LISTS["destructive"]))
    for name, each in REPLIES.items():
        told.append(f"replies: {name}")
        for replies in each:
            look(name, Told(LISTS["sound"], replies))
        look(name, Told(LISTS["sound"], each[0], gone="the end of the connection"))
    for case, (tools, replies) in CALLS.items():
        told.append(f"calls: {case}")
        probe = Told(tools, replies)
        for name in ("calls.results", "calls.structured", "calls.size"):
            look(name, probe)
    told.append("calls: one that was named, and reports a failure")
    look("calls.results", Told([tool()], [reply(result={**SAID, "isError": True})], look={"q": "x"}))
    golden("servers/findings.txt", "\n".join(told) + "\n")
