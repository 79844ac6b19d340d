"""What ends karat where code holds the interpreter, whatever a thread has read of the signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

PROGRAM = """
import os, signal, sys, time
from karat.execution.last_resort import LastResort

reading, writing = os.pipe()
last_resort = LastResort(reading, patience_seconds=float(sys.argv[1]))
(watching,) = open(f"/proc/self/task/{os.getpid()}/children").read().split()
for step in sys.stdin.readline().split():
    if step == "arrives":
        os.write(writing, b"\\2")
        last_resort.note()
    elif step == "read":
        os.read(reading, 64)
    elif step == "beats":
        for _ in range(5):
            last_resort.beat(2)
            time.sleep(0.1)
    elif step == "stops":
        os.kill(int(watching), signal.SIGSTOP)
        for _ in range(100_000):
            last_resort.note()
    elif step == "dies":
        os.kill(int(watching), signal.SIGKILL)
        os.waitid(os.P_PID, int(watching), os.WEXITED | os.WNOWAIT)
    elif step == "forks":
        if not os.fork():
            last_resort.leave_to_child()
            os.close(2)
            break
    else:
        last_resort.beat(int(step))
os.write(1, b"held\\n")  # at once: a child may write, too
sys.stdin.read()
last_resort.close()
"""
HELD = (
    "karat: code of an agent or a scorer holds the interpreter, so nothing can finish; a second signal ends the run\n"
)
ENDED = "karat: ended while code held the interpreter; what was answered is in the journal: go on with --resume\n"
Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """`begin(steps, patience)`: a program that holds its interpreter after these steps, until its input ends."""
    begun: list[subprocess.Popen[str]] = []

    def go(steps: str, patience: float = 0.3) -> subprocess.Popen[str]:
        pipe, command = subprocess.PIPE, [sys.executable, "-c", PROGRAM, str(patience)]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        begun.append(process)
        assert process.stdin is not None
        process.stdin.write(f"{steps}\n")
        process.stdin.flush()
        return process

    yield go
    for process in begun:
        process.communicate(timeout=60)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("arrives arrives", id="nobody reads them"),
        pytest.param("arrives read arrives", id="one is read and nothing comes of it"),
        pytest.param("arrives arrives read", id="both are read and nothing comes of it"),
        pytest.param("arrives read 1 arrives", id="the first is acted on"),
        pytest.param("arrives arrives read beats", id="they are acted on, and nothing ends"),
        pytest.param("arrives arrives read 300", id="very many are acted on, and nothing ends"),
    ],
)
def test_two_signals_end_what_acts_on_none(begin: Begin, steps: str) -> None:
    process = begin(steps)
    assert process.wait(60) == -signal.SIGKILL
    assert process.stderr is not None
    assert process.stderr.read().removeprefix(HELD) == ENDED


def test_signals_that_arrive_before_the_process_looks_are_waited_for_too(begin: Begin) -> None:
    process = begin("arrives arrives", patience=6.0)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.2)
    assert process.communicate() == ("held\n", "")
    assert process.returncode == 0


def test_one_signal_is_not_enough_and_what_it_waits_for_is_said_once(begin: Begin) -> None:
    process = begin("arrives read 1")
    assert process.stderr is not None
    assert process.stderr.readline() == HELD
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.6)
    assert process.communicate() == ("held\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param("", id="no signal"),
        pytest.param("arrives arrives stops", id="the process is stopped and its pipe full"),
        pytest.param("dies arrives arrives 2", id="the process is killed"),
    ],
)
def test_without_signals_or_without_the_process_nothing_is_ended(begin: Begin, steps: str) -> None:
    process = begin(steps)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.6)
    assert process.communicate() == ("", "")
    assert process.returncode == 0


def test_the_process_ends_with_karat_and_not_with_what_karat_has_forked(begin: Begin) -> None:
    process = begin("forks")
    assert process.stdout is not None
    assert process.stderr is not None
    assert [process.stdout.readline(), process.stdout.readline()] == ["held\n"] * 2
    process.kill()
    process.wait()
    assert select.select([process.stderr], [], [], 30)[0], "nobody has it open any more"
    assert os.read(process.stderr.fileno(), 1) == b""
