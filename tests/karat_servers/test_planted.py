"""Each fault of a small server is found, and a sound server has no finding."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from karat.records import McpServer
from karat.redact import Redactor
from karat_servers.server_checks.checks import CHECKS
from karat_servers.server_checks.running import check_server

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
