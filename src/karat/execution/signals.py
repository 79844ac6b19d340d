"""Ctrl-C and other signals that end a process; and code that blocks the event loop, so that neither
works.

A separate thread reads the signals, because an agent that never yields (`time.sleep` in an
`async def`) blocks everything in the loop: timeouts, other trials, signal handlers.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

from karat import formats
from karat.execution.last_resort import LastResort
from karat.execution.limits import RunStatus
from karat.execution.provenance import now
from karat.execution.retry import is_foreign
from karat.execution.runner import Runner
from karat.execution.scoring import PendingScore
from karat.execution.trial import Attempt
from karat.journal import End, Journal

BLOCKED_SECONDS = 5.0
"""So long without a turn of the event loop, and the code that holds it is named."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BEAT_SECONDS = 0.5
# the delay from a second signal that the loop ignores to the end of the process
_PATIENCE_SECONDS = 2.0
_STOPPED = 130  # exit code
_SIGSET = 128  # bytes of a `sigset_t`, at most

_REMEDY = (
    "nothing else can run meanwhile, no timeout and no other trial; write `def` instead of `async "
    "def`, or `await asyncio.to_thread(...)` around the call that blocks; Ctrl-C twice ends the "
    "run"
)


class SignalHandler:
    """First signal: trials in flight finish. Second: stop at once, whatever the event loop is
    doing.

    SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`): a closed terminal must not leave
    agents and servers behind. Before the run starts, the task that prepares it is cancelled, so the
    servers it has started are closed. Once the end of the run is in the journal, its outcome is
    final: a second signal only interrupts the closing of agents and servers. A second signal that
    the event loop does not react to ends the process; everything given to the journal is on disk by
    then. If not even the thread can react, another process ends this one (`last_resort`).
    """

    def __init__(self, status: RunStatus, *, handle: bool) -> None:
        self.runner: Runner | None = None
        self.ended = False  # whether the end of the run is in the journal
        self.journal: Journal | None = None
        self._status, self._handle = status, handle
        self._handled: dict[signal.Signals, Any] = {}  # with the previous handlers
        self._cancelled = 0  # times that the task was cancelled from here
        self._received = self._noted = 0  # signals: by this process, by the event loop
        self._received_at = 0.0
        self._named: set[str] = set()  # reported places in foreign code
        self._over = threading.Event()

    def __enter__(self) -> SignalHandler:
        self._running, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._in = threading.get_ident()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        if self._handle:
            self._last_resort = LastResort(self._reading)
            _HANDLING.append(self)
            _held_at_forks()(_ENDING)
            self._wakes = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
            handlers = {number: signal.getsignal(number) for number in _ENDING}
            self._handled = {
                number: before
                for number, before in handlers.items()
                if before is not signal.SIG_IGN
            }

        self._beat()
        self._thread = threading.Thread(target=self._look_on, name="karat-stop", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self._over.set()
        self._timer.cancel()
        for number, before in self._handled.items():
            signal.signal(number, before)
        if self._handle:
            signal.set_wakeup_fd(self._wakes)
            _HANDLING.remove(self)
            _held_at_forks()(())

        os.write(self._writing, b"\0")
        self._thread.join()
        if self._handle:
            self._last_resort.close()
        os.close(self._reading)
        os.close(self._writing)
        if self._task is None or not self._cancelled:
            return False
        by_others = min(self._task.uncancel() for _ in range(self._cancelled))
        if not isinstance(error, asyncio.CancelledError):
            return False
        if not self.ended:
            raise KeyboardInterrupt from None
        return by_others == 0

    def leave_to_child(self) -> None:
        """In a process that an agent forked: its signals end it, and do not reach this run."""
        signal.set_wakeup_fd(-1)
        for number in self._handled:
            # Python's own for SIGINT would unwind karat's frames in the child
            signal.signal(number, signal.SIG_DFL)

        self._last_resort.leave_to_child()
        os.close(self._reading)
        os.close(self._writing)

    def note(self) -> None:
        """Tells the other process of a signal, whatever becomes of what is in the pipe."""
        self._last_resort.note()

    def _beat(self) -> None:
        self._alive_at = monotonic()
        if self._handle:  # again and again: an agent may have taken them
            signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
            for number in self._handled:
                signal.signal(number, _leave_to_pipe)

        self._timer = self._running.call_later(_BEAT_SECONDS, self._beat)

    def _stop(self) -> None:
        if self._over.is_set():
            return  # too late: the task may be doing something else by now
        self._noted += 1
        if self.ended and self._noted == 1:
            self._status.notice(
                "the run has ended and is closing its agents and servers; Ctrl-C again stops "
                "at once"
            )
        elif self.runner is None:
            self._cancelled += 1
            if self._task is not None:
                self._task.cancel()
        elif self._noted > 1:  # whatever the first one did: a run may already have been draining
            self._status.notice("stopping at once: what was in flight is cut off")
            self.runner.cancel()
        else:
            self._status.notice("finishing the trials in flight; Ctrl-C again stops at once")
            self.runner.drain("interrupted")

    def _look_on(self) -> None:
        """The thread: passes signals on to the loop, and acts if the loop does not react."""
        while not self._over.is_set():
            if select.select([self._reading], [], [], _BEAT_SECONDS)[0]:
                for number in os.read(self._reading, 64):
                    if number in self._handled and not self._over.is_set():
                        self._received, self._received_at = self._received + 1, monotonic()
                        self._running.call_soon_threadsafe(self._stop)

            if self._received:
                self._last_resort.beat(self._received)
            silent = monotonic() - self._alive_at
            patient = monotonic() - self._received_at > _PATIENCE_SECONDS
            unheard = self._received > self._noted and patient
            # an agent that is cancelled may hold the loop, as `with ThreadPoolExecutor()` does
            holds_up = silent > _PATIENCE_SECONDS and patient
            if self._over.is_set():
                return
            if (unheard or holds_up) and self._received > 1:
                if self.journal is None:
                    again = ""
                else:
                    again = f"; go on with --resume {self.journal.path.parent}"

                self._status.notice(
                    "stopped while the event loop was blocked; what was answered is in the "
                    f"journal{again}"
                )
                if self.journal is not None and not self.ended:
                    end = End(
                        at=now(), reason="interrupted", seconds=round(self._status.seconds, 3)
                    )
                    self.journal.write_out(end)

                os._exit(_STOPPED)  # nothing else ends a process whose main thread does not return
            elif silent > BLOCKED_SECONDS or (unheard and silent > _PATIENCE_SECONDS):
                # What blocks the event loop, and what to do; each place in foreign code once
                # No name for the frame: this thread would keep all that it holds.
                place, who = _held_by(sys._current_frames().get(self._in))  # noqa: SLF001 -- documented, in spite of its name
                if place and place not in self._named:
                    self._named.add(place)
                    self._status.notice(
                        f"{who} has held the event loop for {formats.duration(round(silent))} "
                        f"({place}): {_REMEDY}"
                    )

            if unheard:
                self._status.notice(
                    "the event loop is blocked and cannot finish anything; Ctrl-C again ends "
                    "the run"
                )


def _leave_to_pipe(*_: object) -> None:
    """The number is in the pipe already. Python calls this from some code that holds the
    interpreter, such as a regular expression: the thread may then read the pipe, and wait for the
    interpreter again before it has said so.
    """
    for handler in _HANDLING:
        handler.note()


_HANDLING: list[SignalHandler] = []  # those of this process; at most one


def _leave_to_child() -> None:
    while _HANDLING:
        _HANDLING.pop().leave_to_child()


os.register_at_fork(after_in_child=_leave_to_child)


@cache
def _held_at_forks() -> Callable[[Iterable[int]], None]:
    """From now on, a signal that is sent to a new process at once waits until its handlers are its
    own: karat's would take it for one to the run. Returns what sets which signals wait.

    C functions that look after no handlers of Python: what an agent's handler raises, such as its
    own timeout, would be lost in a hook, and the mask would stay as it is.
    """
    import ctypes

    libc = ctypes.PyDLL(None)
    held, before = ctypes.create_string_buffer(_SIGSET), ctypes.create_string_buffer(_SIGSET)

    def hold(numbers: Iterable[int]) -> None:
        libc.sigemptyset(held)
        for number in numbers:
            libc.sigaddset(held, int(number))

    hold(())
    restore = partial(libc.pthread_sigmask, int(signal.SIG_SETMASK), before, None)
    os.register_at_fork(
        before=partial(libc.pthread_sigmask, int(signal.SIG_BLOCK), held, before),
        after_in_parent=restore,
        after_in_child=restore,
    )
    return hold


def _held_by(frame: FrameType | None) -> tuple[str, str]:
    """A thread's current place in foreign code, and its caller; "" if it is in karat's own."""
    place, who = "", "an agent or scorer"
    for caller, line in traceback.walk_stack(frame):
        if caller.f_code is asyncio.BaseEventLoop.run_forever.__code__:
            break  # outer frames started the loop, and do not block it
        if not place and is_foreign(caller.f_code.co_filename):
            place = (
                f"{Path(caller.f_code.co_filename).name}, line {line}, in {caller.f_code.co_name}"
            )

        attempt, pending = caller.f_locals.get("attempt"), caller.f_locals.get("pending")
        if isinstance(attempt, Attempt) and not isinstance(pending, PendingScore):
            trial = attempt.job.trial
            where = (
                f"sample '{trial.sample.id}', condition '{trial.condition.name}', repetition "
                f"{trial.repetition}"
            )
            return place, f"the agent of the trial {where}"

        if isinstance(pending, PendingScore):
            answer = pending.answer
            where = (
                f"sample '{answer.sample}', condition '{answer.condition}', repetition "
                f"{answer.repetition}"
            )
            return place, f"a scorer of the trial {where}"

    return place, who
