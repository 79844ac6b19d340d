"""Calls of agents and scorers: anything they raise becomes data, and a call that does not end is
abandoned.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import msgspec

from karat.errors import OperatorError, TrialFault
from karat.execution.limits import RunStatus
from karat.execution.retry import AttemptError, classify, timed_out
from karat.models.metering import METER, Meter
from karat.threads import end_child

_T = TypeVar("_T")

GRACE_SECONDS = 5.0
"""How long a call may take to end after it was cancelled; then it is abandoned."""

_CHECK_SECONDS = 0.5


class _Call(msgspec.Struct, Generic[_T], kw_only=True):
    """A running call. Its task has no result: it would be lost if the call cancels its own task."""

    work: Callable[[], Coroutine[object, object, _T]]
    stage: Literal["agent", "score"]
    seconds: float
    limit: asyncio.Timeout
    meter: Meter
    result: asyncio.Future[_T | AttemptError]


class ForeignCode:
    """Runs each call in a separate task, so the caller continues if the call refuses to end.

    The task also isolates the caller from context variables that the call sets and cancellations
    that it requests.
    """

    def __init__(
        self,
        status: RunStatus,
        *,
        redact: Callable[[str], str],
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        # whether the run cancels its calls: a CancelledError is not the plug-in's
        self.stopping = False
        self._status = status
        self._redact = redact
        self._grace = grace_seconds
        self._running: dict[asyncio.Task[None], _Call[object]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def call(
        self,
        work: Callable[[], Coroutine[object, object, _T]],
        seconds: float,
        stage: Literal["agent", "score"],
    ) -> _T | AttemptError:
        """The result of `work()`, or why it did not return within `seconds`. Raises OperatorError.

        The limit is suspended while a model's provider makes the call wait
        (`karat.models.metering`).
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(seconds)
        meter = Meter(limit, METER.get())
        call: _Call[_T] = _Call(
            work=work,
            stage=stage,
            seconds=seconds,
            limit=limit,
            meter=meter,
            result=loop.create_future(),
        )
        task = loop.create_task(self._run(call))
        self._running[task] = call  # type: ignore[assignment]  # a call of any result
        if self._timer is None:
            self._timer = loop.call_later(_CHECK_SECONDS, self._abandon_overdue)
        try:
            result = await call.result
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=self._grace)  # the call's resources are closed
            raise

        if task.done():
            self._running.pop(task, None)
        if isinstance(result, AttemptError):
            return result.having_spent(meter.usage, meter.dollars)
        return result

    async def _run(self, call: _Call[_T]) -> None:
        outcome: _T | AttemptError
        process = os.getpid()
        METER.set(call.meter)  # only in the context of this task
        try:
            async with call.limit:
                outcome = await call.work()
                if os.getpid() != process:
                    end_child(None)
        except OperatorError as error:
            # the disk fails, or a plug-in does not match the file: no trial can continue
            if not call.result.done():
                call.result.set_exception(error)
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if os.getpid() != process:
                end_child(error)
            if self.stopping and isinstance(error, asyncio.CancelledError):
                raise
            outcome = classify(error, stage=call.stage, redact=self._redact)
            if call.limit.expired():
                paid = outcome if isinstance(error, TrialFault) else None
                outcome = timed_out(call.seconds, stage=call.stage, paid=paid)

        if not call.result.done():
            call.result.set_result(outcome)

    def _abandon_overdue(self) -> None:
        """Abandons calls that do not end after their time limit.

        Repeats while calls are running.
        """
        loop = asyncio.get_running_loop()
        for task, call in list(self._running.items()):
            if task.done():
                del self._running[task]
            elif call.limit.expired() and (call.limit.when() or 0.0) + self._grace < loop.time():
                del self._running[task]
                if not call.result.done():
                    self._status.notice(
                        "an agent or a scorer did not stop after its time limit and was abandoned"
                    )
                    call.result.set_result(timed_out(call.seconds, stage=call.stage))

                abandon(task)

        if self._running:
            self._timer = loop.call_later(_CHECK_SECONDS, self._abandon_overdue)
        else:
            self._timer = None

    async def close(self, callers: Iterable[asyncio.Task[None]]) -> None:
        """Cancels the callers, and with them their calls, and waits for them; abandons those that
        refuse to end.
        """
        if self._timer is not None:
            self._timer.cancel()
        waiting = [task for task in callers if not task.done()]
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=self._grace + _CHECK_SECONDS)
        for task in (*waiting, *self._running):
            if not task.done():
                abandon(task)


def abandon(task: asyncio.Task[Any]) -> None:
    """Abandons a task that ignores its cancellation: nothing waits for it, and its later errors are
    ignored.
    """
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    # Otherwise `asyncio.run` would wait for it at its end, forever. Documented under "Extending
    # asyncio".
    asyncio._unregister_task(task)  # noqa: SLF001 -- there is no other way, and it is documented
    coroutine = task.get_coro()
    if isinstance(coroutine, Coroutine):
        with suppress(Exception):  # it refuses even that, or what it does at its end fails
            coroutine.close()  # or it would continue to ask its model

    task.cancel()
