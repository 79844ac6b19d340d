"""A real terminal: the live line, and Ctrl-C once and twice."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .screen import Screen

# The terminal becomes the session's own, so that the kernel sends Ctrl-C to karat as to any foreground program.
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'karat', *sys.argv[1:]])"
)


class Terminal:
    """A karat process on a pseudo-terminal."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 100, rows: int = 24) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, *arguments],
            cwd=folder,
            env={**plain, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read_until(self, wanted: str, *, seconds: float = 60) -> None:
        """Reads what is shown until the text has come; the end of the process counts as its coming for ''."""
        give_up = time.monotonic() + seconds
        while not (wanted and re.search(wanted, self.seen)):
            assert time.monotonic() < give_up, f"no {wanted!r} in: {self.seen[-2000:]}"
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # Linux: the other side has closed
                data = b""
            if not data:
                assert not wanted, f"no {wanted!r} in: {self.seen[-2000:]}"
                return
            self.seen += self._decoder.decode(data)

    def ctrl_c(self) -> None:
        os.write(self.master, b"\x03")

    def end(self) -> int:
        self.read_until("")
        return self.process.wait(timeout=20)


def running(marker: str) -> list[str]:
    """The command lines of the processes that carry a marker."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "command="], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if marker in line and " ps " not in line]


def await_none(marker: str, *, seconds: float = 30) -> list[str]:
    """What is still there after a while of patience: an ended process may take a moment to be reaped."""
    give_up = time.monotonic() + seconds
    while (left := running(marker)) and time.monotonic() < give_up:
        time.sleep(0.05)
    return left


@pytest.fixture
def slow(here: Path) -> Path:
    """Three trials at a time, of three seconds each, and a shared server; the folder's path marks every process."""
    (here / "questions.jsonl").write_text(
        "".join(json.dumps({"question": f"{n}?", "answer": "yes"}) + "\n" for n in range(30)), encoding="utf-8"
    )
    (here / "agent.py").write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\nprint('yes')\n", encoding="utf-8")
    (here / "experiment.yaml").write_text(
        textwrap.dedent(f"""
            name: slow
            dataset: {{path: questions.jsonl}}
            agent: {{type: command, command: [python, {here}/agent.py, "3"]}}
            judge: {{type: overlap}}
            mcp_servers:
              shelf:
                type: stdio
                command: python
                args: [-m, karat.testing.mcp_server, --words, "{here}/shelf "]
                scope: run
            conditions: {{only: {{mcp_servers: [shelf]}}}}
            execution: {{num_repetitions: 1, max_concurrent: 3}}
        """),
        encoding="utf-8",
    )
    return here


@pytest.fixture
def terminal(slow: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str, **size: int) -> Terminal:
        opened.append(Terminal(slow, *arguments, **size))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()
        os.close(one.master)


def answers(folder: Path) -> int:
    (run,) = (folder / "results").iterdir()
    return (run / "journal.jsonl").read_text(encoding="utf-8").count('{"event":"answer"')


@pytest.mark.slow
def test_the_first_ctrl_c_lets_trials_finish_with_their_servers_alive(terminal, slow):
    shown = terminal("run", "experiment.yaml")
    shown.read_until("in flight 3")
    shown.ctrl_c()
    shown.read_until("Ctrl-C again stops at once")
    alive = running(str(slow))
    assert sum("agent.py" in line for line in alive) == 3
    assert any("karat.testing.mcp_server" in line for line in alive)
    assert shown.end() == 130
    assert answers(slow) == 3
    assert "--resume results/slow-" in shown.seen
    assert await_none(str(slow)) == []


def test_the_second_ctrl_c_stops_at_once(terminal, slow):
    shown = terminal("run", "experiment.yaml", "--set", f"agent.command=[python, {slow}/agent.py, '60']")
    shown.read_until("in flight 3")
    shown.ctrl_c()
    shown.read_until("Ctrl-C again stops at once")
    clock = time.monotonic()
    shown.ctrl_c()
    assert shown.end() == 130
    assert time.monotonic() - clock < 30  # an answer takes 60
    assert answers(slow) == 0
    assert await_none(str(slow)) == []


@pytest.mark.slow
def test_ctrl_c_before_the_first_trial_leaves_nothing(terminal, slow):
    experiment = slow / "experiment.yaml"
    text = experiment.read_text(encoding="utf-8")
    experiment.write_text(text.replace("--words", "--start-seconds, '30', --words"), encoding="utf-8")
    shown = terminal("run", "experiment.yaml")
    shown.read_until("preparing")
    give_up = time.monotonic() + 20
    while not any("karat.testing.mcp_server" in line for line in running(str(slow))) and time.monotonic() < give_up:
        time.sleep(0.05)
    shown.ctrl_c()
    assert shown.end() == 130
    assert "Traceback" not in shown.seen
    assert not (slow / "results").exists()
    assert await_none(str(slow)) == []


@pytest.mark.slow
def test_a_second_run_on_the_same_folder_is_told_who_holds_it(terminal, slow, process):
    shown = terminal("run", "experiment.yaml")
    shown.read_until("in flight 3")
    (run,) = (slow / "results").iterdir()
    second = process("run", "experiment.yaml", "--resume", run)
    assert second.code == 2
    assert f"process {shown.process.pid} on " in second.err
    assert process("score", run).code == 2
    reading = process("report", run)
    assert reading.code == 0
    assert "running" in reading.out
    shown.ctrl_c()
    shown.read_until("Ctrl-C again stops at once")
    shown.ctrl_c()
    assert shown.end() == 130, shown.seen
    assert await_none(str(slow)) == []


@pytest.mark.slow
def test_the_live_line_counts(terminal, slow):
    experiment = slow / "experiment.yaml"
    experiment.write_text(experiment.read_text(encoding="utf-8").replace("max_concurrent: 3", "max_concurrent: 30"))
    shown = terminal("run", "experiment.yaml", "--limit", "9")
    shown.read_until(r"0/9\b")
    shown.read_until(r"in flight 9 of 30")
    assert shown.end() == 0
    assert "factual_adherence" in shown.seen
    assert shown.seen.rstrip().endswith("# differences, variation, lowest questions, cost")


@pytest.mark.slow
def test_a_page_is_not_poured_over_the_terminal(tmp_path, journals):
    journals.table(tmp_path / "run", {"only": [[1], [2]]})
    words = ("report", str(tmp_path / "run"), "--to", "html")
    shown = Terminal(tmp_path, *words)
    assert shown.end() == 2
    os.close(shown.master)
    assert "name a file for it" in shown.seen
    assert "<!doctype" not in shown.seen
    piped = subprocess.run([sys.executable, "-m", "karat", *words], capture_output=True, text=True, check=True)
    assert piped.stdout.startswith("<!doctype html>")


@pytest.fixture
def crowded(slow: Path) -> Path:
    """Twenty conditions whose agent fails now and then, with words that would clear the screen."""
    (slow / "agent.py").write_text(
        "import random, sys, time\ntime.sleep(random.uniform(0.1, 0.3))\n"
        "sys.exit('\\x1b[2J\\x9b2Jout of paper') if random.random() < 0.3 else print('yes')\n",
        encoding="utf-8",
    )
    text = (slow / "experiment.yaml").read_text(encoding="utf-8")
    conditions = ", ".join(f"condition-{number}: {{}}" for number in range(20))
    text = text.replace("only: {mcp_servers: [shelf]}", conditions).replace("max_concurrent: 3", "max_concurrent: 6")
    text = text.replace("num_repetitions: 1", "num_repetitions: 1, max_failures: 1000, retry: {max_attempts: 1}")
    (slow / "experiment.yaml").write_text(text, encoding="utf-8")
    return slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "rows", "told"),
    [
        pytest.param(80, 24, r"condition-\d+ +\d+/4 .* over \d questions?$", id="80 columns"),
        pytest.param(40, 16, r"^condition-\d+ +\d/4 +(–|\d.*)$", id="40 columns"),
    ],
)
def test_the_live_lines_stay_within_the_terminal(terminal, crowded, columns, rows, told):
    shown = terminal("run", "experiment.yaml", "--limit", "4", columns=columns, rows=rows)
    assert shown.end() == 3
    screen, frames = Screen(columns, rows, folds=True), []
    for drawn in shown.seen.split("\x1b[J")[:-1]:  # each whole drawing; the report follows the last
        screen.feed(drawn + "\x1b[J")
        frames.append(screen.shown)
    assert [line for line in screen.gone if re.search("in flight|failed|condition-|last failure", line)] == []
    assert any(re.search(told, line) for frame in frames for line in frame), frames[-1]
    assert any("more conditions: done" in line for frame in frames for line in frame)
    assert any(line.startswith("last failure") and "exit_code" in line for frame in frames for line in frame)
    assert all(frame[-1] == "" for frame in frames)
