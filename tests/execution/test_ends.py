"""How a run ends from outside: signals, and kill −9 with programs under way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import execution
from karat.execution import run_in_own_loop
from karat.execution.signals import _held_by
from karat.journal import RunFolder
from karat.journal.verify import verify
from karat.records import Answer, Failure, Score

Write = Callable[..., Path]

SIGNALLED = """
import asyncio, os, signal
count = 0
async def query(user_query, system_prompt, mcp_servers):
    global count
    count += 1
    if count == 2:
        os.kill(os.getpid(), signal.{name})
        await asyncio.sleep(0.1)
        {again}
    return user_query
"""
SECTIONS: dict[str, Any] = {"questions": 50, "conditions": {"a": {}}}


def karat(file: Path, *, ignoring: str | None = None) -> subprocess.CompletedProcess[str]:
    """`karat run` in a process of its own; `ignoring`: a signal that it ignores from the start, as with nohup."""
    start = f"import signal; signal.signal(signal.{ignoring}, signal.SIG_IGN);" if ignoring else ""
    code = f"{start}import runpy; runpy.run_module('karat', run_name='__main__')"
    command = [sys.executable, "-c", code, "run", str(file), "--results", str(file.parent / "results")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def run_of(file: Path) -> RunFolder:
    (folder,) = (file.parent / "results").glob("[!.]*")
    return RunFolder.open(folder)


FORKING = """
import multiprocessing, os, signal, sys, time

def pool():
    with multiprocessing.get_context("fork").Pool(1) as workers:
        return workers.apply(str, ("pool",))

def terminate():
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    child.terminate()
    child.join()
    return f"terminate {child.exitcode}"

def fork():
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    os.kill(child, signal.SIGINT)
    return f"fork {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0}"

def leaves():
    child = os.fork()
    if not child:
        sys.exit(7)
    return f"leaves {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"

def returns():
    child = os.fork()
    if not child:
        return "of the child"
    return f"returns {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"

def query(user_query, system_prompt, mcp_servers):
    return [pool, terminate, fork, leaves, returns][int(user_query[1:]) % 5]()
"""


@pytest.mark.slow
def test_a_process_that_an_agent_forked_gets_its_own_signals(experiment: Write) -> None:
    file = experiment(FORKING, questions=10, conditions={"a": {}}, execution={"num_repetitions": 1})
    done = karat(file)
    assert done.returncode == 0, done.stderr
    assert sorted(answer.text for answer in run_of(file).events_of(Answer)) == sorted(
        ["pool", f"terminate {-signal.SIGTERM}", "fork True", "leaves 7", "returns 0"] * 2
    )


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_one_signal_finishes_what_is_in_flight(experiment: Write, name: str) -> None:
    code = SIGNALLED.format(name=name, again="pass")
    file = experiment(code, **SECTIONS, execution={"num_repetitions": 1, "max_concurrent": 1})
    done = karat(file)
    assert done.returncode == 130, done.stderr
    run = run_of(file)
    assert run.status() == "interrupted"
    assert len(list(run.events_of(Answer))) == len(list(run.events_of(Score))) == 2
    assert not list(run.events_of(Failure))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_second_signal_cuts_off_what_is_in_flight(experiment: Write, name: str) -> None:
    again = f"os.kill(os.getpid(), signal.{name}); await asyncio.sleep(30)"
    code = SIGNALLED.format(name=name, again=again)
    file = experiment(code, **SECTIONS, execution={"num_repetitions": 1, "max_concurrent": 1})
    done = karat(file)
    assert done.returncode == 130, done.stderr
    run = run_of(file)
    assert run.status() == "interrupted"
    assert len(list(run.events_of(Answer))) == 1


def test_a_hang_up_that_is_ignored_does_not_stop_the_run(experiment: Write) -> None:
    code = SIGNALLED.format(name="SIGHUP", again="pass")
    file = experiment(code, **{**SECTIONS, "questions": 5}, execution={"num_repetitions": 1})
    done = karat(file, ignoring="SIGHUP")
    assert done.returncode == 0, done.stderr
    assert len(list(run_of(file).events_of(Answer))) == 5


BLOCKING = """
import time
async def answer(question, system_prompt):
    if question == "q1":
        open("blocked", "w").close()
        {block}
    return question
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "block", "named"),
    [
        pytest.param("SIGINT", "time.sleep(600)", True, id="named after a while"),
        pytest.param("SIGTERM", "time.sleep(600)", False, id="by SIGTERM"),
        pytest.param("SIGINT", "while True: pass", False, id="busy"),
    ],
)
def test_a_blocked_event_loop_is_named_and_ended_by_the_second_signal(
    experiment: Write, tmp_path: Path, name: str, block: str, named: bool
) -> None:
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    agent = {"type": "python", "target": f"{module}:answer"}
    execution = {"num_repetitions": 1, "max_concurrent": 1}
    file = experiment(BLOCKING.format(block=block), agent=agent, conditions={"a": {}}, execution=execution)
    start = f"import signal; signal.signal(signal.{name}, signal.default_int_handler);"
    code = f"{start} import runpy; runpy.run_module('karat', run_name='__main__')"
    command = [sys.executable, "-c", code, "run", str(file), "--results", str(tmp_path / "results")]
    printed = tmp_path / "stderr.txt"
    with printed.open("wb") as errors:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=errors)
        wait_until((tmp_path / "blocked").exists)
        if named:
            wait_until(lambda: "has held the event loop" in printed.read_text())
        process.send_signal(signal.Signals[name])
        wait_until(lambda: "Ctrl-C again ends the run" in printed.read_text())
        assert process.poll() is None
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 130
    said = printed.read_text()
    assert "the agent of the trial sample '1', condition 'a', repetition 0" in said
    assert f"({module}.py, line " in said
    assert "`def` instead of `async def`" in said
    run = run_of(file)
    assert run.status() == "interrupted"
    assert [answer.text for answer in run.events_of(Answer)] == ["q0"], "what was answered is on disk"


CLEANING_UP = """
import asyncio, time
async def query(question):
    open("asked", "w").close()
    try:
        await asyncio.sleep(600)
    finally:
        time.sleep(600)
"""


@pytest.mark.slow
def test_an_agent_that_blocks_while_it_is_cancelled_is_ended(experiment: Write, tmp_path: Path) -> None:
    file = experiment(CLEANING_UP, questions=1, conditions={"a": {}}, execution={"num_repetitions": 1})
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(tmp_path / "results")]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "asked").exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert "stopped while the event loop was blocked" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert run_of(file).status() == "interrupted"


HOLDING = """
import re, time

def query(question):
    if question == "q1":
        time.sleep(1)  # the answer before is on disk
        open("blocked", "w").close()
        re.match(r"(a+)+$", "a" * 40 + "b")
    return question
"""


@pytest.mark.slow
def test_code_that_holds_the_interpreter_is_ended_by_the_second_signal(experiment: Write, tmp_path: Path) -> None:
    execution = {"num_repetitions": 1, "max_concurrent": 1}
    file = experiment(HOLDING, conditions={"a": {}}, execution=execution)
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(tmp_path / "results")]
    printed = tmp_path / "stderr.txt"
    with printed.open("wb") as errors:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=errors)
        wait_until((tmp_path / "blocked").exists)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "holds the interpreter" in printed.read_text())
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGKILL, "no signal of its own can end it"
    assert "go on with --resume" in printed.read_text()
    run = run_of(file)
    assert verify(run.path).ok
    assert [answer.text for answer in run.events_of(Answer)] == ["q0"], "what was answered is on disk"


IN_KARAT = """
import sys

async def busy(look):
    return look(sys._getframe())
"""


def test_karat_s_own_work_in_the_event_loop_is_blamed_on_nobody() -> None:
    """The script that started the loop is further out on the stack, and holds nothing."""
    names: dict[str, Any] = {}
    exec(compile(IN_KARAT, execution.__file__, "exec"), names)  # a frame in karat's own code
    assert asyncio.run(names["busy"](_held_by))[0] == ""


def test_kill_9_leaves_no_program_of_the_command_agent(experiment: Write, tmp_path: Path) -> None:
    """Nor what the program has started, nor the processes that see to it."""
    (tmp_path / "agent.sh").write_text("sleep 47 & echo $$ $! >> pids.txt; sleep 47\n")
    agent = {"type": "command", "command": ["sh", "agent.sh"]}
    file = experiment(agent=agent, questions=3, conditions={"a": {}}, execution={"num_repetitions": 1})
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(tmp_path / "results")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pids = tmp_path / "pids.txt"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 6)
    started = [int(pid) for pid in pids.read_text().split()]
    watchdog = [pid for pid, parent in parents() if parent == process.pid and pid not in started]
    assert len(watchdog) == 2, "one for programs, one for signals"
    assert all(map(alive, started))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(map(alive, [*started, *watchdog])))


def parents() -> list[tuple[int, int]]:
    """Every process with its parent."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [(int(pid), int(parent)) for pid, parent in map(str.split, listed.splitlines())]


def alive(pid: int) -> bool:
    """Zombies are not: nobody may be there to collect them."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.strip().startswith("Z")


def wait_until(true: Callable[[], bool]) -> None:
    """Up to a minute."""
    for _ in range(1200):
        if true():
            return
        time.sleep(0.05)
    pytest.fail(f"in vain (this is process {os.getpid()})")


def test_the_end_of_a_run_does_not_wait_for_functions_in_to_thread() -> None:
    over = threading.Event()

    async def work() -> str:
        calls = [asyncio.create_task(asyncio.to_thread(over.wait, 60)) for _ in range(50)]
        assert await asyncio.to_thread(str, "another") == "another", "hung calls stop no other"
        assert not any(call.done() for call in calls)
        return "done"

    started = time.monotonic()
    try:
        assert run_in_own_loop(work()) == "done"
        assert time.monotonic() - started < 10
    finally:
        over.set()


LEFT = """
import asyncio, threading, time

async def query(question):
    threading.Thread(target=time.sleep, args=(600,)).start()
    await asyncio.to_thread(time.sleep, 600)
"""


@pytest.mark.slow
def test_a_program_ends_although_an_agent_left_threads(experiment: Write) -> None:
    execution = {"num_repetitions": 1, "timeout_seconds": 0.2, "retry": {"max_attempts": 1}}
    done = karat(experiment(LEFT, questions=2, conditions={"a": {}}, execution=execution))
    assert done.returncode == 3, done.stderr
    assert "does not wait for threads" in done.stderr


TAKING = """
import asyncio, os, signal
async def query(user_query, system_prompt, mcp_servers):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    await asyncio.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.2)
    return user_query
"""


@pytest.mark.slow
def test_an_agent_cannot_take_the_signals(experiment: Write) -> None:
    done = karat(experiment(TAKING, **SECTIONS, execution={"num_repetitions": 1, "max_concurrent": 1}))
    assert done.returncode == 130, done.stderr
