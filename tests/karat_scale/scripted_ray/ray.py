"""What karat asks of Ray, on this machine: an actor is a thread with an event loop of its own.

`plan` says what goes wrong: `lost_after` how many messages the actors take, one number each, before they are lost;
`silent` that none of them opens; `damaged` that the objects which are sent to them are not what was put.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import CancelledError, Future
from types import SimpleNamespace
from typing import Any

plan = SimpleNamespace(lost_after=[], silent=False, damaged=False, calls=[])


class RayError(Exception):
    """What Ray raises."""


class RayTaskError(RayError):
    """What an actor raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
_state = SimpleNamespace(connected=False, handles=[], here="")


def init(**settings: Any) -> None:
    plan.calls.append(("init", settings))
    if settings["address"] == "auto":
        raise ConnectionError("no cluster")
    _state.connected, _state.here = True, os.getcwd()


def is_initialized() -> bool:
    return bool(_state.connected)


def shutdown() -> None:
    for handle in _state.handles:
        kill(handle)
        handle.thread.join()
    if _state.connected:
        os.chdir(_state.here)  # an actor of Ray's is a process, and has a folder of its own
    _state.connected, _state.handles = False, []


def nodes() -> list[dict[str, Any]]:
    return [{"Alive": True, "Resources": {"CPU": 2.0, "there": 3.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}]


def put(value: dict[str, bytes]) -> dict[str, bytes]:
    return {root: archive[:-1] for root, archive in value.items()} if plan.damaged else value


def remote(actor: type) -> Any:
    def options(**settings: Any) -> Any:
        plan.calls.append(("options", settings))
        return SimpleNamespace(remote=lambda: Handle(actor))

    return SimpleNamespace(options=options)


def handles() -> list[Handle]:
    return list(_state.handles)


def kill(handle: Handle) -> None:
    handle.lose("it was killed")


class Handle:
    """An actor, which is lost for good once it was killed."""

    def __init__(self, actor: type) -> None:
        self.loop = asyncio.new_event_loop()
        self.left = plan.lost_after.pop(0) if plan.lost_after else None
        self.lost = ""
        self.waiting: set[Future[Any]] = set()
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()
        _state.handles.append(self)
        self.actor = actor()

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def lose(self, why: str) -> None:
        if not self.lost:
            self.lost = why
            for future in list(self.waiting):
                if not future.done():
                    future.set_exception(RayError(why))
            self.loop.call_soon_threadsafe(self.loop.stop)

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: self._ask(name, arguments))

    async def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if not self.lost and name == "use" and self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.lose("its node died\nand more")
        if self.lost:
            raise RayError(self.lost)
        result: Future[Any] = Future()

        def ended(task: asyncio.Task[Any]) -> None:
            if task.cancelled() or result.done():
                return
            error = task.exception()
            if isinstance(error, Exception):
                result.set_exception(RayTaskError(error))
            else:
                result.set_result(task.result())

        def begin() -> None:
            if not plan.silent:
                self.loop.create_task(getattr(self.actor, name)(*arguments)).add_done_callback(ended)

        self.waiting.add(result)
        self.loop.call_soon_threadsafe(begin)
        try:
            return await asyncio.wrap_future(result)
        except CancelledError:
            raise asyncio.CancelledError from None
        finally:
            self.waiting.discard(result)
