"""Ends karat when code holds the interpreter, so that no thread of karat can act on a second
signal.

Python writes the number of a signal to a pipe even then, because it does that in C. A small process
watches this pipe without reading from it: bytes that stay there were read by no thread of karat.
A thread that has read some may not get the interpreter again; so handlers tell of signals, too.
The journal is safe: every answer that counts is on disk. Run as a program (by its path, standard
library only) this file is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

_NOTE = 255  # in the pipe of beats: a handler was called
_HELD = (
    "karat: code of an agent or a scorer holds the interpreter, so nothing can finish; a second "
    "signal ends the run"
)
_ENDED = (
    "karat: ended while code held the interpreter; what was answered is in the journal: go on "
    "with --resume"
)


class LastResort:
    """The process, from entry to exit. It ends by itself when karat ends, however that happens."""

    def __init__(self, signals: int, *, patience_seconds: float = 3.0) -> None:
        """`signals`: the end of the pipe from which the signals are read.

        `patience_seconds`: how long one may wait to be acted on.
        """
        reading, self._beats = os.pipe()
        os.set_blocking(self._beats, False)  # a stopped process must not block the run
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(signals), str(patience_seconds)],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            pass_fds=(signals,),
            cwd="/",
            start_new_session=True,
        )
        os.close(reading)

    def beat(self, received: int) -> None:
        """Signals are acted on; so many have been read."""
        self._write(min(received, _NOTE - 1))

    def note(self) -> None:
        """A signal has arrived, and may never be acted on."""
        self._write(_NOTE)

    def _write(self, byte: int) -> None:
        try:
            os.write(self._beats, bytes([byte]))
        except OSError:
            return  # the process was killed; the run continues without it

    def close(self) -> None:
        """Ends the process."""
        os.close(self._beats)
        self._process.kill()
        self._process.wait()

    def leave_to_child(self) -> None:
        """In a forked child: it must not keep the process alive."""
        os.close(self._beats)


def main() -> None:
    """Watches until standard input ends; kills the parent if it leaves two signals unread."""
    import fcntl
    import select
    import termios
    import time

    signals, patience = int(sys.argv[1]), float(sys.argv[2])
    karat = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    received = noted = 0  # signals: read by karat, told by its handlers
    heard = time.monotonic()
    said = False
    while True:
        unread = int.from_bytes(fcntl.ioctl(signals, termios.FIONREAD, bytes(4)), sys.byteorder)
        arrived = max(received + unread, noted)
        if arrived:
            ready = select.select([0], [], [], patience / 12)[0]
        else:
            ready = select.select([0, signals], [], [])[0]
            heard = time.monotonic()

        if 0 in ready:
            said_by_karat = os.read(0, 4096)
            if not said_by_karat:
                return
            noted += said_by_karat.count(_NOTE)
            beats = said_by_karat.replace(bytes([_NOTE]), b"")
            if beats:
                received = beats[-1]
                heard = time.monotonic()
        elif time.monotonic() - heard > patience:
            ends = arrived > 1 and os.getppid() == karat
            if ends or not said:
                print(_ENDED if ends else _HELD, file=sys.stderr)  # noqa: T201 -- a program of its own
            if ends:
                os.kill(karat, signal.SIGKILL)
                return

            said = True


if __name__ == "__main__":
    main()
