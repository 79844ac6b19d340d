"""Where trials run besides this process: the protocol of the plug-ins of the family `executors`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from karat import plugins
from karat.execution.limits import Limits
from karat.execution.scoring import RunContext, Scoring
from karat.execution.trial import Job, TrialRunner, Work
from karat.journal import ServerInfo

if TYPE_CHECKING:
    from karat.config import Experiment


class TrialsElsewhere(Protocol):
    """Runs trials elsewhere and journals what they give.

    The runner uses it like a `TrialRunner`.
    """

    @property
    def most(self) -> int:
        """Trials sent out at a time: running and waiting ones."""
        ...

    def start(self) -> None:
        """Starts whatever runs the trials."""
        ...

    async def run(
        self, job: Job, *, asked: Callable[[], None], retry: Callable[[Job, float], None]
    ) -> None:
        """As `TrialRunner.run`."""
        ...

    async def close(self) -> None:
        """Ends it, and journals what it still delivers."""
        ...


class MakeTrials(Protocol):
    """Makes the trials of a run.

    `local`, `scoring`: for work that is done here. `fail`: ends the run.
    """

    def __call__(
        self,
        work: Work,
        run: RunContext,
        *,
        local: TrialRunner,
        scoring: Scoring,
        fail: Callable[[BaseException | None], None],
    ) -> TrialsElsewhere: ...


class Distributed(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor knows of the run that it is to carry out."""

    experiment: Experiment
    conditions: tuple[str, ...]
    scorings: tuple[str, ...]  # of the scorers that score answers as they arrive
    servers: tuple[ServerInfo, ...]
    limits: Limits
    results: Path  # the folder of runs: not to be sent anywhere
    notice: Callable[[str], None]


class Executor(Protocol):
    """A place where trials run."""

    def check(self, experiment: Experiment) -> None:
        """Raises OperatorError for what a run cannot have there."""
        ...

    def opened(self, run: Distributed) -> AbstractAsyncContextManager[MakeTrials]:
        """The place, ready to run trials until the block ends. Raises OperatorError."""
        ...


def executor_of(experiment: Experiment) -> Executor | None:
    """The executor that the file names; None: this process runs the trials, as it does for a
    rehearsal.

    Raises OperatorError if there is none of that name, and for what a run cannot have there.
    """
    name = experiment.execution.executor
    if name == "local" or experiment.rehearsed:
        return None
    executor: Executor = plugins.find("executors", name)()
    executor.check(experiment)
    return executor
