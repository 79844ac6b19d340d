"""Ends the programs that karat would leave behind when it is killed with no time to say so (kill −9, out of memory).

A small process of its own reads a pipe, through which it is told of each process group that
begins or is over. When the pipe closes, because karat has ended in whatever way, it ends the
groups that are left. So it works wherever there are pipes, and costs a start a write of
five bytes. As a program (run by its path, standard library only) this file is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref

__all__ = ["Watchdog", "main"]

_BEGUN, _OVER = b"+", b"-"
_PID_BYTES = 4
_PATIENCE_SECONDS = 2.0


class Watchdog:
    """`begun(pid)` and `over(pid)` of process groups; the process starts with the first of them."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._end: weakref.finalize[..., Watchdog] | None = None

    def begun(self, group: int) -> None:
        """From now on it is ended with karat."""
        if self._pipe is None:
            self._start()
        self._tell(_BEGUN, group)

    def over(self, group: int) -> None:
        """It was ended; its number may become another's."""
        self._tell(_OVER, group)

    def close(self) -> None:
        """Ends what is left of the groups, and the process."""
        if self._end is not None:
            self._end()
            self._pipe = self._end = None

    def _start(self) -> None:
        reading, self._pipe = os.pipe()
        command = [sys.executable, "-I", "-S", __file__]
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            command, stdin=reading, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
        )
        os.close(reading)
        os.set_blocking(self._pipe, False)  # a watchdog that somebody stopped must not hold the run
        _open.add(self._pipe)
        self._end = weakref.finalize(self, _close, self._pipe, process)

    def _tell(self, what: bytes, group: int) -> None:
        if self._pipe is not None:
            try:
                os.write(self._pipe, what + group.to_bytes(_PID_BYTES, "little"))
            except OSError:
                return  # somebody has ended it: nobody watches any more, and nothing else is lost


def _close(pipe: int, process: subprocess.Popen[bytes]) -> None:
    _open.discard(pipe)
    os.close(pipe)
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# A child that an agent forks would hold the pipe open after karat's end.
_open: set[int] = set()


def _let_go() -> None:
    for pipe in _open:
        os.close(pipe)
    _open.clear()


os.register_at_fork(after_in_child=_let_go)


def main() -> None:
    """Reads standard input to its end, then ends what has begun and is not over."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    while len(told := sys.stdin.buffer.read(1 + _PID_BYTES)) == 1 + _PID_BYTES:
        group = int.from_bytes(told[1:], "little")
        (groups.add if told[:1] == _BEGUN else groups.discard)(group)
    for group in groups:
        try:  # noqa: SIM105 -- one import less for a process that stands by
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
