"""What a package beside karat adds to the context of agents: the family `context_parts`.

Its plug-in `workspaces` makes the folders in which trials work, and reads what they left there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from karat import plugins
from karat.errors import JudgeFault
from karat.records import Answer, Condition, Trial, WorkspaceChanges
from karat.redact import Redactor

FOLDER = "workspaces"
"""In the run folder."""


class Workspace(Protocol):
    """A fresh copy of the condition's workspace."""

    @property
    def path(self) -> Path:
        """As the agent's processes see it."""
        ...

    @property
    def left_out(self) -> Sequence[str]:
        """Of a rebuilt one: what is not there although the trial left it, and why."""
        ...

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line for a process that sees the workspace; it may also start there."""
        ...


class TrialWorkspaces(Protocol):
    """Opens a fresh workspace for each attempt, and stores what it left."""

    def opened(
        self, run: Path, *, overlays: bool, notice: Callable[[str], None]
    ) -> AbstractContextManager[None]:
        """Use around the run. `notice` is called with how workspaces are made, and the cost.

        `overlays`: whether some agent can work in an overlay. Raises OSError.
        """
        ...

    async def open(self, trial: Trial, *, overlay: bool) -> Workspace:
        """`overlay`: whether an overlay is possible, because the agent starts processes through
        `Workspace.command`.
        """
        ...

    def store(
        self, workspace: Workspace, trial: Trial, answer: bytes | None
    ) -> Future[WorkspaceChanges]:
        """Stores the changes in the run folder, then ends and removes the workspace, on a thread.

        `answer`: its line of the journal; None: the attempt failed. The future may raise OSError.
        """
        ...

    def last_number(self, trial: str) -> int:
        """The number of a trial's last workspace; 0: it had none."""
        ...

    def continue_after(self, trial: str, number: int) -> None:
        """Records that the trial has had `number` workspaces, here or on another machine."""
        ...

    async def stored_answer(self, trial: str) -> Answer | None:
        """The answer that a killed run stored with its workspace but had not yet written to the
        journal.
        """
        ...


class _Rebuilt(Protocol):
    def of(self, answer: Answer) -> AbstractContextManager[Workspace]: ...

    def close(self) -> None: ...


class Workspaces(Protocol):
    """The plug-in `workspaces`, built without arguments."""

    def for_trials(
        self,
        conditions: Iterable[Condition],
        *,
        redact: Redactor,
        keep: bool,
        ignore: Sequence[str],
    ) -> TrialWorkspaces:
        """For the conditions that have a workspace.

        `keep`: also keep each workspace as a folder. `ignore`: names that are not stored. Raises
        BadOption if agents would find instructions above their workspace, or if it contains a
        secret.
        """
        ...

    def rebuilt(self, run: Path) -> _Rebuilt:
        """Workspaces as trials left them, in a temporary folder."""
        ...

    def differences(self, run: Path, file: str) -> str:
        """What a trial changed in text files. Raises OSError, ValueError."""
        ...


def trial_workspaces(
    conditions: Iterable[Condition],
    *,
    redact: Redactor,
    keep: bool,
    ignore: Sequence[str],
) -> TrialWorkspaces | None:
    """The object with which trials open their workspaces; None if no condition has a workspace.

    Raises BadOption, as `Workspaces.for_trials` and if its package is not there.
    """
    theirs = []
    for condition in conditions:
        if condition.context.workspace is not None:
            theirs.append(condition)

    if not theirs:
        return None
    return _workspaces(f"conditions.{theirs[0].name}.workspace").for_trials(
        theirs, redact=redact, keep=keep, ignore=ignore
    )


def stored_differences(run: Path, file: str) -> str:
    """What a trial changed in text files of its workspace.

    Raises OSError, ValueError, and BadOption if the package of workspaces is not there.
    """
    return _workspaces(file).differences(run, file)


class RebuiltWorkspaces:
    """Workspaces as trials left them, rebuilt from the run folder once one is asked for."""

    def __init__(self) -> None:
        self.run: Path | None = None  # the run folder, once it exists
        self._lock = threading.Lock()  # blocking scorers run on threads
        self._rebuilt: _Rebuilt | None = None

    def close(self) -> None:
        """Removes temporary files."""
        if self._rebuilt is not None:
            self._rebuilt.close()

    @contextmanager
    def of(self, answer: Answer) -> Iterator[Workspace]:
        """A copy that the block may change, without what was left out.

        Raises JudgeFault if none can be made, BadOption if the package of workspaces is not there.
        """
        if answer.workspace is None or self.run is None:
            raise JudgeFault(
                "no_workspace",
                "the trial had no workspace: give its condition one (`workspace: DIR`)",
            )

        with self._lock:
            if self._rebuilt is None:
                self._rebuilt = _workspaces(answer.workspace.file).rebuilt(self.run)

        with self._rebuilt.of(answer) as workspace:
            yield workspace


def _workspaces(needed_by: str) -> Workspaces:
    workspaces: Workspaces = plugins.part(
        "context_parts", "workspaces", package="coding", needed_by=needed_by
    )()
    return workspaces
