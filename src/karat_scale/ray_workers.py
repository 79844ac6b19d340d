"""Workers as Ray actors. The only file that loads Ray."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from karat import __version__
from karat.errors import BadOption, KaratError, described
from karat.files import temporary_folder
from karat.formats import plural
from karat.threads import Threads
from karat_scale.remote import Finished, Request, Worker, WorkerLost
from karat_scale.worker import WorkerSide

if TYPE_CHECKING:
    from karat.config.model import RayModel
    from karat_scale.worker import WorkerSetup

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray would report this run to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray would warn of a change in its next version
    "RAY_DEDUP_LOGS": "0",
    "RAY_LOG_TO_DRIVER": "0",
}

_ANSWER_SECONDS = 10.0
# bytes of session_2026-11-23_16-06-43_617766_1234567/sockets/plasma_store, and two more
_RAYS_SOCKET = 65


@asynccontextmanager
async def ray_workers(
    settings: RayModel,
    setup: WorkerSetup,
    archives: Mapping[str, bytes],
    *,
    max_concurrent: int,
    notice: Callable[[str], None],
) -> AsyncGenerator[RayWorkers]:
    """Workers of a cluster, during the block. A cluster started for it ends with it.

    Raises BadOption if the cluster cannot be reached.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    # Where nothing answers, Ray would try for minutes and not be interrupted
    host, _, port = (settings.address or "").rpartition(":")
    if port.isdigit():
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writer.close()
        except (OSError, OverflowError) as error:
            message = (
                f"nothing answers at {settings.address}: is the head node of the cluster running "
                f"there?"
            )
            raise BadOption("execution.ray.address", message) from error

    async with _connected(ray, settings):
        # The number of workers that fit on the existing nodes.
        needed = {"CPU": settings.num_cpus, "GPU": settings.num_gpus, **settings.resources}
        needed = {name: amount for name, amount in needed.items() if amount > 0}
        rooms = 0
        for node in ray.nodes():
            if node["Alive"]:
                there = node["Resources"]
                counts = [
                    int((there.get(name, 0.0) + 1e-9) // amount) for name, amount in needed.items()
                ]
                rooms += min(counts, default=int(there.get("CPU", 1.0)))

        # Concurrent attempts per worker: `max_concurrent` in total
        count = min(settings.num_workers or max(rooms, 1), max_concurrent)
        share, more = divmod(max_concurrent, count)
        concurrency = tuple(share + (number < more) for number in range(count))

        if settings.address:
            where = f"the cluster at {settings.address}"
        else:
            where = "a cluster of this machine alone"

        workers = RayWorkers(ray, settings, setup, ray.put(dict(archives)), concurrency)
        notice(
            f"trials run on {plural(len(concurrency), 'worker')} of {where}, "
            f"{sum(concurrency)} at a time"
        )
        try:
            yield workers
        finally:
            workers.kill_all()


@asynccontextmanager
async def _connected(ray: Any, settings: RayModel) -> AsyncGenerator[None]:
    threads = Threads()  # on the main thread Ray would take SIGTERM for itself
    logging.getLogger("ray").setLevel(logging.ERROR)
    with temporary_folder("ray", for_socket=_RAYS_SOCKET) as folder:
        local = {"address": "local", "_temp_dir": str(folder), "include_dashboard": False}
        where = {"address": settings.address} if settings.address else local
        connecting = asyncio.ensure_future(
            threads.call(ray.init, log_to_driver=False, logging_level=logging.ERROR, **where)
        )
        try:
            await asyncio.shield(connecting)
            if threading.current_thread() is threading.main_thread():
                # Ray's C++ takes SIGTERM all the same: it prints its stack, and aborts the process
                # 3 s later.
                signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))

            yield
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            if ray.is_initialized():
                raise
            cluster = settings.address or "a cluster on this machine"
            hint = (
                ""
                if "RAY_AUTH_MODE" in os.environ
                else "; if its nodes have a token, set RAY_AUTH_MODE=token"
            )
            message = f"Ray cannot connect to {cluster}: {described(error)}{hint}"
            raise BadOption("execution.ray.address", message) from error
        finally:
            await asyncio.wait([connecting])
            await threads.call(ray.shutdown)
            threads.close()


class RayWorkers:
    """Starts actors. Implements `karat_scale.remote.Workers`."""

    def __init__(
        self,
        ray: Any,
        settings: RayModel,
        setup: WorkerSetup,
        archives: Any,
        concurrency: tuple[int, ...],
    ) -> None:
        """`archives`: a reference to them."""
        self.concurrency = concurrency
        self.batch_size = settings.batch_size
        self.patience = settings.start_timeout_seconds
        resources = "".join(f", {name} {amount:g}" for name, amount in settings.resources.items())
        if settings.num_gpus:
            gpus = f", num_gpus {settings.num_gpus:g}"
        else:
            gpus = ""

        self.needs = f"num_cpus {settings.num_cpus:g}{gpus}{resources}"
        self._ray = ray
        self._setup = setup
        self._archives = archives
        self._actor = ray.remote(Actor).options(
            num_cpus=settings.num_cpus,
            num_gpus=settings.num_gpus,
            resources=dict(settings.resources),
            max_restarts=0,
            max_task_retries=0,
        )
        self._handles: list[Any] = []

    async def open(self, number: int) -> Worker:
        """As `Workers.open`."""
        limits = msgspec.structs.replace(
            self._setup.limits, max_concurrent=self.concurrency[number]
        )
        setup = msgspec.structs.replace(self._setup, name=f"worker {number + 1}", limits=limits)
        handle = self._actor.remote()
        self._handles.append(handle)
        worker = RayWorker(self._ray, handle, setup.name)
        try:
            # Not to the actor's constructor: the cluster keeps its arguments, and these include
            # secrets.
            problem = await worker.call("open", setup, __version__, self._archives)
        except (asyncio.CancelledError, WorkerLost):
            self.kill(worker)
            raise

        if problem is not None:
            raise BadOption(
                "execution.executor", f"{setup.name} cannot run this experiment: {problem}"
            )

        return worker

    def kill(self, worker: Worker) -> None:
        """As `Workers.kill`."""
        assert isinstance(worker, RayWorker)
        if worker.handle in self._handles:
            self._handles.remove(worker.handle)
            self._ray.kill(worker.handle)

    def kill_all(self) -> None:
        """Ends every worker."""
        for handle in self._handles:
            self._ray.kill(handle)


class RayWorker:
    """An actor, seen from the driver. Implements `karat_scale.remote.Worker`."""

    def __init__(self, ray: Any, handle: Any, name: str) -> None:
        self._ray = ray
        self.handle = handle
        self.name = name

    async def send(self, request: Request) -> None:
        """As `Worker.send`."""
        await self.call("use", "send", request)

    async def take(self, request: Request) -> Finished:
        """As `Worker.take`."""
        finished: Finished = await self.call("use", "take", request)
        return finished

    async def close(self) -> Finished:
        """As `Worker.close`."""
        finished: Finished = await self.call("close")
        return finished

    async def call(self, method: str, *arguments: Any) -> Any:
        """The result of a method of the actor. Raises WorkerLost."""
        try:
            return await getattr(self.handle, method).remote(*arguments)
        except self._ray.exceptions.RayTaskError as error:
            raise BadOption(
                "execution.executor", f"{self.name} failed: {described(error.cause or error)}"
            ) from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(described(error).partition("\n")[0]) from error


class Actor:
    """The process of a worker."""

    def __init__(self) -> None:
        self._closing = asyncio.Event()
        self._side: Any = None
        self._life: asyncio.Task[None] | None = None

    async def open(
        self, setup: WorkerSetup, version: str, archives: Mapping[str, bytes]
    ) -> str | None:
        """Prepares everything; returns the problem if that fails."""
        if version != __version__:
            return (
                f"its karat is {__version__}, the driver's {version}: install the same on every "
                f"node"
            )

        ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(setup, archives, ready))
        return await ready

    async def _live(
        self, setup: WorkerSetup, archives: Mapping[str, bytes], ready: asyncio.Future[str | None]
    ) -> None:
        """In one task: servers must be closed by the task that opened them."""
        try:
            async with WorkerSide(setup, archives) as self._side:
                ready.set_result(None)
                await self._closing.wait()
        except KaratError as error:
            if not ready.done():
                ready.set_result(str(error))
        except Exception as error:  # what a scorer or an agent raises as it opens
            if ready.done():
                raise
            ready.set_result(described(error))

    async def use(self, method: str, request: Request) -> Finished | None:
        """`send` or `take` of the worker's side."""
        finished: Finished | None = await getattr(self._side, method)(request)
        return finished

    async def close(self) -> Finished:
        """As `Worker.close`."""
        self._closing.set()
        if self._life is not None:
            await self._life
        finished: Finished = self._side.last()
        return finished
