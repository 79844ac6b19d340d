"""Ctrl-C, and what else ends a process from outside."""

from __future__ import annotations

import asyncio
import signal

from karat.engine.loop import Loop
from karat.engine.watch import Watch

__all__ = ["Stop"]


class Stop:
    """First signal: what is in flight finishes. Second: stop at once.

    SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`): a closed terminal must not
    leave agents and servers behind. Before there is a loop to drain, the task that
    prepares the run is cancelled, so that the servers it has started are closed.
    """

    def __init__(self, watch: Watch, *, handle: bool) -> None:
        self.loop: Loop | None = None
        self._watch, self._handle = watch, handle
        self._handled: list[signal.Signals] = []
        self._stopped_early = False

    def __enter__(self) -> Stop:
        if self._handle:
            running, self._task = asyncio.get_running_loop(), asyncio.current_task()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    running.add_signal_handler(number, self._stop)
                    self._handled.append(number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        for number in self._handled:
            asyncio.get_running_loop().remove_signal_handler(number)
        if self._stopped_early and isinstance(error, asyncio.CancelledError):
            raise KeyboardInterrupt from None

    def _stop(self) -> None:
        if self.loop is None:
            self._stopped_early = True
            if self._task is not None:
                self._task.cancel()
        elif self._watch.draining == "interrupted":
            self._watch.notice("stopping at once: what was in flight is cut off")
            self.loop.cancel()
        else:
            self._watch.notice("finishing what is in flight; Ctrl-C again stops at once")
            self.loop.drain("interrupted")
