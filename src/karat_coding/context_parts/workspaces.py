"""The workspaces of a run: those in which trials work, and those rebuilt from the run folder for
scorers.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from karat import formats
from karat.context import FOLDER
from karat.context.archive import BadArchive
from karat.context.trees import copy_tree
from karat.errors import JudgeFault
from karat.files import make_folder, remove_tree, temporary_folder
from karat.records import Answer, Condition, Trial, WorkspaceChanges
from karat.redact import Redactor
from karat_coding.changes import (
    all_left_out,
    apply_changes,
    read_stored,
    refuse_secrets,
    store_base,
    store_changes,
    summary_of,
    unpack_base,
    why_mostly_left_out,
)
from karat_coding.workspace import (
    Base,
    Overlay,
    Workspace,
    open_workspace,
    overlay_for,
    refuse_instructions_above,
)

__all__ = ["Workspaces"]

_THREADS = 4  # workspaces opened, stored and removed at a time


class Workspaces:
    """Folders in which trials work, and what they left there."""

    def for_trials(
        self,
        conditions: Iterable[Condition],
        *,
        redact: Redactor,
        keep: bool,
        ignore: Sequence[str],
    ) -> TrialWorkspaces:
        """Raises BadOption if agents would find instructions above their workspace, or if it
        contains a secret.
        """
        parts = {}
        for condition in conditions:
            part = condition.context.workspace
            assert part is not None
            parts[part.digest] = part

        refuse_instructions_above(Path(tempfile.gettempdir()))
        bases = {digest: Base(part.path) for digest, part in parts.items()}
        for base in bases.values():
            refuse_secrets(base, redact)
        return TrialWorkspaces(bases, redact=redact, keep=keep, ignore=ignore)

    def rebuilt(self, run: Path) -> RebuiltWorkspaces:
        """Workspaces as trials left them."""
        return RebuiltWorkspaces(run)

    def differences(self, run: Path, file: str) -> str:
        """What a trial changed in text files. Raises OSError, BadArchive."""
        return read_stored(run, file)[1]


class TrialWorkspaces:
    """Opens a fresh workspace for each attempt, and stores what it left."""

    def __init__(
        self, bases: Mapping[str, Base], *, redact: Redactor, keep: bool, ignore: Sequence[str]
    ) -> None:
        """`bases`: by digest.

        `keep`: also keep each workspace as a folder. `ignore`: as in `store_changes`.
        """
        self._bases = bases
        self._redact = redact
        self._keep = keep
        self._ignore = ignore
        self._overlay: Overlay | None = None  # None: copies
        # trial → its last attempt with a workspace, including earlier parts
        self._numbers: dict[str, int] = {}

    @contextmanager
    def opened(self, run: Path, *, overlays: bool, notice: Callable[[str], None]) -> Iterator[None]:
        """Use around the run. `notice` is called with how workspaces are made, and the cost.

        `overlays`: whether some agent can work in an overlay. Raises OSError.
        """
        self._kept = run / FOLDER
        make_folder(self._kept)
        for path in self._kept.glob("*-*.tar.gz"):
            trial, _, number = path.name.removesuffix(".tar.gz").rpartition("-")
            if number.isdecimal():
                self.continue_after(trial, int(number))

        for base in self._bases.values():
            store_base(self._kept, base)
        with (
            temporary_folder("workspaces") as self._folder,
            ThreadPoolExecutor(_THREADS) as self._threads,
        ):
            if overlays:
                overlay = overlay_for(self._folder)
            else:
                overlay = None

            if overlay is not None and overlay.enter:
                self._overlay = overlay
                notice(f"each attempt gets its workspace as {overlay.shown}")
            else:
                no_mount = (
                    overlay is not None and f"no overlay can be mounted here ({overlay.shown})"
                )
                why = no_mount or "the agent runs in karat's own process"

                # The measured time to copy the largest folder
                largest = max(self._bases.values(), key=lambda base: len(base.entries))
                clock = time.monotonic()
                open_workspace(self._folder / "measured", largest, None).close()
                seconds = formats.duration(time.monotonic() - clock)
                many = sum(not entry.folder for entry in largest.entries.values())
                notice(
                    f"workspaces are copied for each attempt, because {why}: {seconds} for "
                    f"{formats.plural(many, 'file')} with {formats.count(largest.tree.size)} bytes"
                )

            yield

    async def open(self, trial: Trial, *, overlay: bool) -> Workspace:
        """`overlay`: whether an overlay is possible, because the agent starts processes through
        `Workspace.command`.
        """
        part = trial.condition.context.workspace
        assert part is not None
        number = self._numbers[trial.id] = self.last_number(trial.id) + 1
        folder = self._folder / f"{trial.id}-{number}"
        way = self._overlay if overlay else None
        opening = self._threads.submit(open_workspace, folder, self._bases[part.digest], way)
        return await asyncio.wrap_future(opening)

    def store(
        self, workspace: Workspace, trial: Trial, answer: bytes | None
    ) -> Future[WorkspaceChanges]:
        """Stores the changes in the run folder, then ends and removes the workspace, on a thread.

        `answer`: its line of the journal; None: the attempt failed. The future may raise OSError.
        """
        part = trial.condition.context.workspace
        assert part is not None
        return self._threads.submit(self._store, workspace, self._bases[part.digest], answer)

    def _store(self, workspace: Workspace, base: Base, answer: bytes | None) -> WorkspaceChanges:
        name = workspace.path.parent.name
        try:
            path = self._kept / f"{name}.tar.gz"
            changes = store_changes(
                workspace, base, path, redact=self._redact, answer=answer, ignore=self._ignore
            )
            if self._keep:
                copy_tree(base.tree, base.path, self._kept / name)
                apply_changes(self._kept.parent, changes, self._kept / name)

            return changes
        finally:
            workspace.close()

    def last_number(self, trial: str) -> int:
        """The number of a trial's last workspace; 0: it had none."""
        return self._numbers.get(trial, 0)

    def continue_after(self, trial: str, number: int) -> None:
        """Records that the trial has had `number` workspaces, here or on another machine."""
        self._numbers[trial] = max(self.last_number(trial), number)

    async def stored_answer(self, trial: str) -> Answer | None:
        """The answer that a killed run stored with its workspace but had not yet written to the
        journal.
        """
        if trial not in self._numbers:
            return None
        return await asyncio.wrap_future(self._threads.submit(self._stored_answer, trial))

    def _stored_answer(self, trial: str) -> Answer | None:
        path = self._kept / f"{trial}-{self._numbers[trial]}.tar.gz"
        try:
            stored, _ = read_stored(self._kept.parent, path.name)
            if stored.answer is None or stored.answer.trial != trial:
                return None
            return msgspec.structs.replace(stored.answer, workspace=summary_of(stored, path))
        except (OSError, BadArchive):
            return None


class RebuiltWorkspaces:
    """Workspaces as trials left them, rebuilt in a temporary folder from the run folder."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._undo = ExitStack()
        self._lock = threading.Lock()  # blocking scorers run on threads
        self._folder: Path | None = None
        self._bases: dict[str, Base] = {}
        self._count = 0

    def close(self) -> None:
        """Removes the temporary folder."""
        self._undo.close()

    @contextmanager
    def of(self, answer: Answer) -> Iterator[Workspace]:
        """A copy that the block may change, without what was left out.

        Raises JudgeFault if none can be made.
        """
        changes = answer.workspace
        assert changes is not None
        try:
            with self._lock:
                if self._folder is None:
                    self._folder = self._undo.enter_context(temporary_folder("rebuilt"))
                base = self._bases.get(changes.base)
                if base is None:
                    unpacked = self._folder / f"base-{changes.base}"
                    base = unpack_base(self._run, changes.base, unpacked)
                    self._bases[changes.base] = base

                self._count += 1
                place = self._folder / f"{self._count}"
                place.mkdir(mode=0o700)
        except (OSError, BadArchive, ValueError) as error:
            archive = f"{FOLDER}/base-{changes.base}.tar.gz"
            raise JudgeFault(
                "workspace_damaged", f"{archive}: {error}; restore the run folder from a copy"
            ) from error

        try:
            left_out = all_left_out(self._run, changes)
            if why_mostly_left_out(left_out) is None:
                copy_tree(base.tree, base.path, place / "workspace")
            else:  # what of it was removed is not known either
                (place / "workspace").mkdir()

            apply_changes(self._run, changes, place / "workspace")
            yield Workspace(place / "workspace", left_out=left_out)
        except BadArchive as error:
            archive = f"{FOLDER}/{changes.file}"
            raise JudgeFault(
                "workspace_damaged", f"{archive}: {error}; restore the run folder from a copy"
            ) from error
        finally:
            remove_tree(place)
