"""No process is left after an end, a failure, a timeout or a cancellation; no child of a server either."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from karat.errors import InfrastructureFault
from karat.testing.mcp_server import stdio_server

BOUND = 60
"""Seconds. By design an end takes 2.7 at most (stdio.py); what is ended here would otherwise last an hour."""


def arguments_of_all_processes() -> str:
    return subprocess.run(["ps", "-A", "-o", "args"], capture_output=True, text=True, check=True).stdout


async def pids_of(tools, *, stubborn=False):
    """The server's process, and a child that it started."""
    own = json.loads((await tools.call("s", "environment", {})).result)["pid"]
    return own, int((await tools.call("s", "spawn", {"stubborn": stubborn})).result)


@pytest.mark.quick(1)
@pytest.mark.parametrize("stubborn", [False, True], ids=["children end at SIGTERM", "children ignore SIGTERM"])
@pytest.mark.parametrize("scope", ["trial", "run"])
def test_a_session_that_ends_takes_its_processes_with_it(toolbox, condition, ends, scope, stubborn):
    async def story():
        server = stdio_server("s", scope=scope)
        async with toolbox(server) as box, box.open(condition(server)) as tools:
            pids = await pids_of(tools, stubborn=stubborn)
            started = time.monotonic()
        return pids, time.monotonic() - started

    pids, seconds = asyncio.run(story())
    assert [ends(pid) for pid in pids] == [True, True]
    assert seconds < BOUND


def test_a_server_that_ignores_everything_is_killed(toolbox, condition, ends):
    async def story():
        server = stdio_server("s", "--ignore-sigterm")
        async with toolbox(server).open(condition(server)) as tools:
            pids = await pids_of(tools)
            started = time.monotonic()
        return pids, time.monotonic() - started

    pids, seconds = asyncio.run(story())
    assert all(ends(pid) for pid in pids)
    assert seconds < BOUND


def test_a_timeout_in_the_middle_of_a_call_leaves_nothing_and_does_not_wait(toolbox, condition, ends):
    async def story():
        server = stdio_server("s")
        pids: list[int] = []
        started = 0.0
        try:
            async with asyncio.timeout(60) as limit, toolbox(server).open(condition(server)) as tools:
                pids += await pids_of(tools, stubborn=True)
                started = time.monotonic()
                limit.reschedule(asyncio.get_running_loop().time() + 0.2)
                await tools.call("s", "hang", {})
        except TimeoutError:
            return pids, time.monotonic() - started

    pids, seconds = asyncio.run(story())
    assert [ends(pid) for pid in pids] == [True, True]
    assert seconds < BOUND


@pytest.mark.parametrize("after", [0.0, 0.005, 0.03, 0.15, 0.35, 0.6])
def test_a_cancellation_while_servers_start_leaves_nothing(toolbox, condition, tmp_path, after):
    """At whatever moment: the start of the process, of Python, the handshake."""
    mark = f"--words=mark-of-{tmp_path.name}"

    async def open_and_wait(box, servers):
        async with box.open(condition(*servers)):
            await asyncio.sleep(60)

    async def story():
        servers = [stdio_server(f"s{number}", mark, "--start-seconds=0.1") for number in range(2)]
        async with toolbox(*servers) as box:
            trial = asyncio.create_task(open_and_wait(box, servers))
            await asyncio.sleep(after)
            trial.cancel()
            started = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await trial
            return time.monotonic() - started

    assert asyncio.run(story()) < BOUND
    assert mark not in arguments_of_all_processes()


def test_cancelled_twice_the_toolbox_still_sees_to_the_end(toolbox, condition, ends):
    async def trial(box, server, pids, up):
        async with box.open(condition(server)) as tools:
            pids += await pids_of(tools, stubborn=True)
            up.set()
            await asyncio.sleep(60)

    async def story():
        server = stdio_server("s", "--ignore-sigterm")
        pids: list[int] = []
        async with toolbox(server) as box:
            task = asyncio.create_task(trial(box, server, pids, up := asyncio.Event()))
            await up.wait()
            task.cancel()
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return pids

    assert all(ends(pid) for pid in asyncio.run(story()))


def test_an_event_loop_that_is_torn_down_takes_the_servers_with_it(toolbox, condition, ends):
    """A second Ctrl-C: `asyncio.run` cancels every task at once, the sessions' owners among them."""
    pids: list[int] = []

    async def trial(box, server, up):
        async with box.open(condition(server)) as tools:
            pids.extend(await pids_of(tools))
            up.set()
            await asyncio.sleep(60)

    async def story():
        server = stdio_server("s", scope="run")
        task = asyncio.create_task(trial(toolbox(server), server, up := asyncio.Event()))
        await up.wait()
        assert not task.done()

    asyncio.run(story())
    assert all(ends(pid) for pid in pids)


def test_a_server_that_crashed_leaves_no_child(toolbox, condition, ends):
    async def story():
        server = stdio_server("s")
        async with toolbox(server).open(condition(server)) as tools:
            pids = await pids_of(tools)
            with pytest.raises(InfrastructureFault, match="exit code 3"):
                await tools.call("s", "crash", {})
        return pids

    assert all(ends(pid) for pid in asyncio.run(story()))


def test_a_handshake_that_never_comes_is_given_up_and_the_process_ended(toolbox, tmp_path):
    mark = f"--words=mark-of-{tmp_path.name}"

    async def story():
        server = stdio_server("s", "--silent", mark, init_timeout_seconds=1)
        started = time.monotonic()
        async with toolbox(server) as box:
            found = await box.preflight()
        return found["s"], time.monotonic() - started

    fault, seconds = asyncio.run(story())
    assert (fault.kind, seconds < BOUND) == ("mcp_init_timeout", True)
    assert mark not in arguments_of_all_processes()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the entries of /proc/self/fd")
def test_sessions_leave_no_open_file_behind(toolbox, condition):
    """What a run of thousands of trials would die of."""

    async def story():
        server = stdio_server("s")
        box = toolbox(server)
        counts = []
        for _ in range(3):
            async with box.open(condition(server)):
                pass
            await asyncio.sleep(0.05)
            counts.append(len(os.listdir("/proc/self/fd")))
        return counts

    counts = asyncio.run(story())
    assert counts[-1] == counts[0]
