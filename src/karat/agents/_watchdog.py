"""Ends the programs that karat would leave behind when it is killed without warning (kill −9, out
of memory).

A small process reads from a pipe which process groups start and end. When the pipe closes, because
karat has ended in any way, it kills the remaining groups. This works wherever there are pipes, and
costs each start a write of five bytes. Run as a program (by its path, standard library only) this
file is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref

_WATCH = b"+"
_RELEASE = b"-"
_PID_BYTES = 4
_PATIENCE_SECONDS = 2.0


class Watchdog:
    """`watch(pid)` and `release(pid)` of process groups; the process starts with the first
    group.
    """

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._end: weakref.finalize[..., Watchdog] | None = None

    def watch(self, group: int) -> None:
        """Kill this group when karat ends."""
        if self._pipe is None:
            reading, self._pipe = os.pipe()
            command = [sys.executable, "-I", "-S", __file__]
            nothing = subprocess.DEVNULL
            process = subprocess.Popen(
                command,
                stdin=reading,
                stdout=nothing,
                stderr=nothing,
                cwd="/",
                start_new_session=True,
            )
            os.close(reading)
            os.set_blocking(self._pipe, False)  # a stopped watchdog must not block the run
            _open.add(self._pipe)
            self._end = weakref.finalize(self, _close, self._pipe, process)

        self._send(_WATCH, group)

    def release(self, group: int) -> None:
        """The group has ended; its number may be reused."""
        self._send(_RELEASE, group)

    def close(self) -> None:
        """Kill the remaining groups and end the process."""
        if self._end is not None:
            self._end()
            self._pipe = self._end = None

    def _send(self, command: bytes, group: int) -> None:
        if self._pipe is not None:
            try:
                os.write(self._pipe, command + group.to_bytes(_PID_BYTES, "little"))
            except OSError:
                return  # the watchdog was killed; the run continues without it


def _close(pipe: int, process: subprocess.Popen[bytes]) -> None:
    _open.discard(pipe)
    os.close(pipe)
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# A child that an agent forks would keep the pipe open after karat has ended.
_open: set[int] = set()


def _close_in_child() -> None:
    for pipe in _open:
        os.close(pipe)
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


def main() -> None:
    """Read standard input to its end, then kill the groups that were not released."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    while len(message := sys.stdin.buffer.read(1 + _PID_BYTES)) == 1 + _PID_BYTES:
        group = int.from_bytes(message[1:], "little")
        (groups.add if message[:1] == _WATCH else groups.discard)(group)

    for group in groups:
        try:  # noqa: SIM105 -- one import less for a process that only waits
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    os._exit(0)


if __name__ == "__main__":
    main()
