"""Cassettes by themselves: what they hold, what keeps sessions apart, and what a replay says."""

from __future__ import annotations

import asyncio
import json

import pytest

from karat.errors import BadOption, InfrastructureFault
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.records import Cassettes, McpServer
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server

GONE = "import sys; sys.exit('gone')"


@pytest.fixture
def box(tmp_path):
    """`box(mode, *servers, **secrets)`: a toolbox that records to, or replays from, `tmp_path/tapes`."""

    def build(mode, *servers, **secrets):
        cassettes = Cassettes(mode=mode, folder=tmp_path / "tapes")
        return Toolbox(servers, redact=Redactor(secrets), folder=tmp_path, cassettes=cassettes)

    return build


@pytest.fixture
def both(box, condition):
    """What a trial makes of a recording and, after it, of its replay by a toolbox whose server cannot start."""

    def go(trial, server, **secrets):
        async def once(mode, one):
            async with box(mode, one, **secrets) as toolbox:
                return await trial(toolbox, condition(one))

        gone = McpServer(name=server.name, type="stdio", command="python", args=("-c", GONE), digest=server.digest)
        return asyncio.run(once("record", server)), asyncio.run(once("replay", gone))

    return go


def tape(tmp_path):
    (path,) = (tmp_path / "tapes").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_replay_gives_what_the_server_gave_errors_and_times_included(both):
    async def trial(toolbox, condition):
        with Attempt("t-1"):
            async with toolbox.open(condition) as tools:
                for tool, arguments in [
                    ("echo", {"text": "once"}),
                    ("fail", {"message": "out of order"}),
                    ("no_such_tool", {}),
                    ("picture", {}),
                    ("structured", {}),
                    ("large", {"megabytes": 11}),
                ]:
                    await tools.call("s", tool, arguments)
                return tools.calls, tools.tools

    recorded, replayed = both(trial, stdio_server("s"))
    assert replayed == recorded
    errors = [call.error for call in recorded[0]]
    assert errors[:2] == [None, "Error executing tool fail: out of order"]
    assert "more than the" in errors[-1]


@pytest.mark.slow
def test_the_same_question_is_answered_in_the_order_of_asking(both):
    async def trial(toolbox, condition):
        pids = []
        with Attempt("t-1"):
            for _ in range(2):  # two sessions of one attempt, as an agent has that connects for each turn
                async with toolbox.open(condition) as tools:
                    call = await tools.call("s", "environment", {})
                    pids.append(json.loads(call.result)["pid"])
        return pids

    recorded, replayed = both(trial, stdio_server("s"))
    assert len(set(recorded)) == 2
    assert replayed == recorded


@pytest.mark.quick(1)
@pytest.mark.parametrize("scope", ["trial", "run"])
def test_trials_at_the_same_time_stay_apart_in_whatever_order_they_come(both, scope):
    orders = iter([(0, 1, 2), (2, 1, 0)])

    async def trial(toolbox, condition):
        delays = dict(enumerate(next(orders)))

        async def one(number):
            await asyncio.sleep(0.1 * delays[number])
            with Attempt(f"{number}-1"):
                async with toolbox.open(condition) as tools:
                    return [(await tools.call("s", "spawn", {})).result for _ in range(2)]  # never the same twice

        return await asyncio.gather(*(one(number) for number in range(3)))

    recorded, replayed = both(trial, stdio_server("s", scope=scope))
    assert replayed == recorded
    assert len({pid for pids in recorded for pid in pids}) == 6


@pytest.mark.slow
def test_a_fault_of_the_server_is_a_fault_again(both):
    async def trial(toolbox, condition):
        faults = []
        for number, (tool, arguments) in enumerate([("crash", {"words": "no ink"}), ("hang", {})]):
            with pytest.raises(InfrastructureFault) as found, Attempt(f"{number}-1"):
                async with toolbox.open(condition) as tools:
                    await tools.call("s", tool, arguments)
            faults.append((found.value.kind, found.value.message, found.value.retriable))
        return faults

    recorded, replayed = both(trial, stdio_server("s", call_timeout_seconds=0.3))
    assert replayed == recorded
    assert [kind for kind, _, _ in recorded] == ["mcp_server_down", "mcp_call_timeout"]
    assert "no ink" in recorded[0][1]


def test_what_the_trials_own_limit_cut_off_is_cut_off_again(both):
    async def trial(toolbox, condition):
        with Attempt("t-1"):
            try:
                async with asyncio.timeout(5), toolbox.open(condition) as tools, asyncio.timeout(0.5):
                    await tools.call("s", "hang", {})
            except TimeoutError:
                return "cut off"

    assert both(trial, stdio_server("s")) == ("cut off", "cut off")


@pytest.mark.slow
def test_an_attempt_that_is_made_again_takes_the_place_of_the_first(box, condition, tmp_path):
    server = stdio_server("s")

    async def trial(mode, *texts):
        async with box(mode, server) as toolbox:
            with Attempt("t-1"):
                async with toolbox.open(condition(server)) as tools:
                    return [(await tools.call("s", "echo", {"text": text})).result for text in texts]

    asyncio.run(trial("record", "early", "both"))
    asyncio.run(trial("record", "late", "both"))
    assert asyncio.run(trial("replay", "both", "late")) == ["both", "late"]
    with pytest.raises(InfrastructureFault, match="no answer to tools/call") as fault:
        asyncio.run(trial("replay", "early"))
    assert (fault.value.kind, fault.value.retriable) == ("cassette_miss", False)
    assert '{"arguments":{"text":"early"},"name":"echo"}' in fault.value.message


def test_no_secret_is_on_a_tape_and_asking_with_one_finds_the_answer(both, tmp_path):
    secret = "canary/in\"a'cage"

    async def trial(toolbox, condition):
        with Attempt("t-1"):
            async with toolbox.open(condition) as tools:
                return (await tools.call("s", "echo", {"text": f"the key is {secret}, half a pair \ud83d"})).result

    recorded, replayed = both(trial, stdio_server("s"), KEY=secret)
    assert recorded.startswith("the key is ${KEY}, half a pair")
    assert replayed.startswith("the key is ${KEY}, half a pair")
    assert "canary" not in (next((tmp_path / "tapes").iterdir())).read_text()


def test_a_tape_can_be_read_by_people(both, tmp_path):
    async def trial(toolbox, condition):
        with Attempt("t-1"):
            async with toolbox.open(condition) as tools:
                await tools.call("s", "echo", {"text": "ä"})

    both(trial, stdio_server("s", digest="0123456789abcdef0123"))
    assert [path.name for path in (tmp_path / "tapes").iterdir()] == ["s-0123456789abcdef.jsonl"]
    head, begin, introduced, listed, called = tape(tmp_path)
    assert head == {"event": "head", "format": 1, "server": "s", "digest": "0123456789abcdef0123"}
    assert begin == {"event": "begin", "session": "t-1"}
    assert (introduced["method"], listed["method"]) == ("initialize", "tools/list")
    assert {"name", "inputSchema"} <= set(listed["result"]["tools"][0])
    assert called["arguments"] == {"name": "echo", "arguments": {"text": "ä"}}
    assert called["result"]["content"] == [{"type": "text", "text": "ä"}]
    assert called["milliseconds"] > 0


def test_two_processes_do_not_record_to_one_tape(box, condition):
    server = stdio_server("s")

    async def go():
        async with box("record", server) as first, first.open(condition(server)), box("record", server) as second:
            with pytest.raises(BadOption, match="another process is recording"):
                async with second.open(condition(server)):
                    pass

    asyncio.run(go())


@pytest.mark.parametrize(
    ("line", "message"),
    [('{"event":"head","format":2,"server":"s","digest":""}', "has format 2"), ('{"event":', "line 1 is damaged")],
)
def test_a_tape_that_cannot_be_read_is_named(box, tmp_path, line, message):
    (tmp_path / "tapes").mkdir()
    (tmp_path / "tapes" / "s-0.jsonl").write_text(line + "\n")

    async def go():
        async with box("replay", stdio_server("s")) as toolbox:
            await toolbox.preflight()

    with pytest.raises(BadOption, match=message):
        asyncio.run(go())
