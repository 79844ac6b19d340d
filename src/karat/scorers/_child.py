"""A small program in a process of its own, asked line by line and ended after a time limit.

Neither a regular expression nor a JSON schema can be stopped in this process once it
has begun on a hostile text: both run in C without looking at signals or letting other
threads work. The child sets an alarm before each question, whose default action ends
it wherever it is; it needs no one to watch it, and ends with its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from karat.errors import JudgeFault

__all__ = ["Child"]

# SIGINT is left to the parent: Ctrl-C on a terminal reaches the child too, while trials in flight are still scored.
_FRAME = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
setting = json.loads(sys.stdin.readline())
{program}
for line in sys.stdin:
    signal.setitimer(signal.ITIMER_REAL, setting["seconds"])
    answer = ask(json.loads(line))
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
"""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")


class Child:
    """Runs `program`, which defines `ask(question)`, with `setting` in scope; started when first asked.

    Thread-safe. A child that was ended by its alarm is replaced at the next question.
    """

    def __init__(self, program: str, setting: dict[str, Any], *, seconds: float) -> None:
        self._code = _FRAME.replace("{program}", program)
        self._setting = {**setting, "seconds": seconds}
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = _nothing

    def ask(self, question: Any) -> Any:
        """What the program answers. Raises JudgeFault: `scorer_timeout` where its alarm ended it, or `scorer_crash`."""
        with self._lock:
            process = self._process or self._start()
            try:
                self._say(process, question)
                line = process.stdout.readline() if process.stdout is not None else b""
            except BrokenPipeError:
                line = b""
            if line:
                return json.loads(line)
            code = process.wait()
            self._end()
            self._process = None
        if code == -signal.SIGALRM:
            why = f"no result within {self._seconds:g} seconds: the answer is too much for this pattern or schema"
            raise JudgeFault("scorer_timeout", why)
        raise JudgeFault("scorer_crash", f"the process that scores ended with code {code}")

    def close(self) -> None:
        """End the child; asking again starts another."""
        with self._lock:
            self._end()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", self._code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._process = process
        self._end = weakref.finalize(self, _finish, process)
        self._say(process, self._setting)
        return process

    @staticmethod
    def _say(process: subprocess.Popen[bytes], message: Any) -> None:
        if process.stdin is not None:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()


def _nothing() -> None:
    """There is no child to end."""


def _finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    process.wait()
