"""`execution.executor: ray`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from karat.errors import BadOption, MissingExtra
from karat.execution.executors import Distributed, MakeTrials
from karat_scale.ray_workers import ray_workers
from karat_scale.remote import RemoteTrials
from karat_scale.shipping import digest_of, pack, portable
from karat_scale.worker import WorkerSetup

if TYPE_CHECKING:
    from karat.config import Experiment

__all__ = ["Ray"]


class Ray:
    """The nodes of a Ray cluster."""

    def check(self, experiment: Experiment) -> None:
        """Raises BadOption and MissingExtra for what a run cannot have on workers elsewhere."""
        if experiment.cassettes is not None and experiment.cassettes.mode == "record":
            message = (
                "workers elsewhere cannot add to one recording: record with `executor: local`, "
                "then replay"
            )
            raise BadOption("execution.executor", message)

        if experiment.execution.keep_workspaces:
            raise BadOption(
                "execution.keep_workspaces",
                "folders stay with the worker: leave it out, or run locally",
            )

        if find_spec("ray") is None:
            raise MissingExtra("ray", "`execution.executor: ray`")

    @asynccontextmanager
    async def opened(self, run: Distributed) -> AsyncIterator[MakeTrials]:
        """Starts the workers, which get the experiment's files.

        Raises BadOption if the cluster cannot be reached.
        """
        experiment = run.experiment
        archives = pack(experiment, results=run.results)
        setup = WorkerSetup(
            name="",
            experiment=portable(experiment),
            conditions=run.conditions,
            digests={root: digest_of(archive) for root, archive in archives.items()},
            scorings=run.scorings,
            servers=run.servers,
            limits=run.limits,
        )
        workers = ray_workers(
            experiment.execution.ray,
            setup,
            archives,
            max_concurrent=run.limits.max_concurrent,
            notice=run.notice,
        )
        async with workers as opened:
            yield partial(RemoteTrials, opened)
