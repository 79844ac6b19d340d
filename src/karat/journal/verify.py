"""Reads every file of a run folder and reports everything that is not as karat wrote it.

Changes nothing.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from karat.errors import BadRun
from karat.formats import plural
from karat.journal.calibration import CALIBRATION_FILE, read_calibrations
from karat.journal.codec import (
    LONGEST_LINE,
    UNREADABLE,
    Cover,
    LineDamaged,
    checked_lines,
    has_checksum,
)
from karat.journal.events import FORMAT_VERSION, KEPT, Event, Head, Resume
from karat.journal.folder import RunFolder
from karat.journal.labels import labels_path, read_labels
from karat.journal.lock import RunLock
from karat.journal.outcomes import GATE_FILE, read_outcomes
from karat.records import Answer, Sample, WorkspaceChanges

_EVENT = re.compile(rb'\{"event":"([a-z]{3,7})"')
_REMEDIES = {
    "head": "restore the journal from a copy",
    "resume": (
        "restore the journal from a copy: without this line the plan and the scorers of that part "
        "are unknown"
    ),
    "end": "delete the line: the run then counts as one that was killed",
    "answer": "delete the line: `karat run FILE --resume RUN` asks its trial again",
    "reply": "delete the line: its turn is asked again, unless the trial has an answer",
    "score": "delete the line: `karat run FILE --resume RUN` scores the answer again",
    "attempt": "delete the line: what the failed attempt cost is then missing from every total",
    "failure": "delete the line: the trial then counts as not run",
    "server": "delete the line: what the server did is then in no report",
    "horizon": (
        "restore the journal from a copy: without this line karat cannot know when the run may stop"
    ),
    "decided": (
        "restore the journal from a copy: without this line decided conditions are asked again"
    ),
}
_REMOVED = "a resume removes it, or ends it if only its newline is missing"
_ANY_EVENT = (
    "delete the line: a lost answer is then asked again, a lost score made again, a lost cost "
    "stays missing"
)


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One place that is not as karat wrote it."""

    file: str  # in the run folder
    line: int | None  # from 1; None: the whole file
    reason: str
    remedy: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The findings in one run folder."""

    folder: str
    run: str | None  # run id; None: run.json cannot be read
    lines: int  # of all files of lines together: journal, samples, labels, calibration, gate
    unprotected: int  # of these, lines of an older karat: without a checksum, only parsed
    damages: tuple[Damage, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    @property
    def deletion(self) -> str | None:
        """The command that deletes the damaged lines of the journal; None if there are none, or
        none may be deleted.
        """
        lines = []
        for damage in self.damages:
            if damage.file == "journal.jsonl" and damage.line is not None:
                lines.append(damage)

        if not lines or any(not damage.remedy.startswith("delete") for damage in lines):
            return None
        numbers = ";".join(f"{damage.line}d" for damage in lines)
        return f"sed -i.damaged -e '{numbers}' {shlex.quote(f'{self.folder}/journal.jsonl')}"


def verify(folder: Path) -> Verified:
    """Raises BadRun if there is no run folder, or one of a newer karat."""
    if not (folder / "run.json").exists():
        RunFolder.open(folder, look=False)
    findings = _Found(folder)
    run = findings.info()
    if run is not None:
        findings.journal(run)
        findings.samples(run)
        findings.labels(run)
        findings.calibrations(run)
        findings.outcomes(run)
        findings.kept(run)

    return Verified(
        folder=str(folder),
        run=None if run is None else run.info.run,
        lines=findings.lines,
        unprotected=findings.unprotected,
        damages=tuple(findings.damages),
        notes=tuple(findings.notes),
    )


class _Found:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = self.unprotected = 0
        self.damages: list[Damage] = []
        self.notes: list[str] = []

    def info(self) -> RunFolder | None:
        try:
            return RunFolder.open(self.folder, look=False)
        except BadRun as error:
            if "update karat" in error.problem:
                raise
            remedy = "restore it from a copy; the journal cannot be read without it"
            self._add("run.json", None, error.problem.partition("; ")[0], remedy)
            return None

    def journal(self, run: RunFolder) -> None:
        self._kept = {copy.name: copy for copy in run.info.kept}
        for number, event in self._events(run, run.journal.name, Event):
            if isinstance(event, Head) and event.format > FORMAT_VERSION:
                raise BadRun(self.folder, f"its journal has format {event.format}: update karat")
            if isinstance(event, Head) and event.run != run.info.run:
                self._add(run.journal.name, number, f"it is of run {event.run}", _REMEDIES["head"])
            if isinstance(event, Answer) and event.workspace is not None:
                self._workspace(run, event.workspace)
            if isinstance(event, Resume):
                self._kept.update({copy.name: copy for copy in event.kept})

    def _workspace(self, run: RunFolder, changes: WorkspaceChanges) -> None:
        """The archive of what a trial changed."""
        name = f"workspaces/{changes.file}"
        reason = "it is missing"
        try:
            if "/" in changes.file:
                file = None
            else:
                file = run.open_file(name)

            with file or BytesIO() as opened:
                if file and hashlib.sha256(opened.read()).hexdigest() == changes.sha256:
                    return
                reason = "it has changed since the answer was given" if file else reason
        except BadRun as error:
            reason = error.problem

        self._add(
            name,
            None,
            reason,
            "restore it from a copy: without it this workspace is neither shown nor scored",
        )

    def samples(self, run: RunFolder) -> None:
        if not (self.folder / "samples.jsonl").exists():
            self._add("samples.jsonl", None, "it is missing", "restore it from a copy")
        count = sum(1 for _ in self._events(run, "samples.jsonl", Sample))
        damaged = any(
            damage.file.startswith(("samples.jsonl", "journal.jsonl")) for damage in self.damages
        )
        if not damaged and count < (planned := run.plan().samples):
            self._add(
                "samples.jsonl",
                None,
                f"it holds {count} of {planned} samples",
                "restore it from a copy",
            )

    def labels(self, run: RunFolder) -> None:
        try:
            labels = read_labels(run)
        except BadRun as error:
            self._add(labels_path(run).name, None, error.problem, "restore it from a copy")
            return

        self.lines += labels.lines
        for number in labels.damaged_lines:
            remedy = "delete the line: that review is lost; review the answer again"
            self._add("labels.jsonl", number, "it is not as karat wrote it", remedy)

    def calibrations(self, run: RunFolder) -> None:
        try:
            self.lines += read_calibrations(run).lines
        except BadRun as error:
            self._add(
                CALIBRATION_FILE, None, error.problem.partition("; ")[0], "restore it from a copy"
            )

    def outcomes(self, run: RunFolder) -> None:
        try:
            self.lines += read_outcomes(run).lines
        except BadRun as error:
            self._add(
                GATE_FILE,
                None,
                error.problem.partition("; ")[0],
                "delete it, and gate the run again",
            )

    def kept(self, run: RunFolder) -> None:
        for copy in self._kept.values():
            try:
                run.kept_file(copy)
            except BadRun as error:
                self._add(f"{KEPT}/{copy.file}", None, error.problem, "restore it from a copy")

    def _events(self, run: RunFolder, name: str, kind: object) -> Iterator[tuple[int, object]]:
        """Each complete line, with its number; faults of the others are added."""
        decode = msgspec.json.Decoder(kind).decode
        try:
            if name == run.journal.name:
                file: BinaryIO = run.open_journal() or BytesIO()  # a killed run may have none
            else:
                file = run.open_file(name) or BytesIO()
        except BadRun as error:
            reason, _, remedy = error.problem.partition("; ")
            self._add(name, None, reason, remedy or "replace it by the run's own file")
            return

        damaged: dict[int, str] = {}
        cover = Cover()
        with file:
            lines = checked_lines(
                file,
                required=run.has_checksums,
                torn=name == run.journal.name,
                on_damage=lambda error: damaged.update({error.number: error.reason}),
                cover=cover,
            )
            try:
                for number, _, line in lines:
                    self.unprotected += not has_checksum(line)
                    try:
                        yield number, decode(line)
                    except UNREADABLE as error:
                        damaged[number] = str(error)
            except LineDamaged as error:  # too long: nothing after it can be read
                damaged[error.number] = error.reason

            self.lines += cover.lines
            self._name(file, name, damaged)
            if name == run.journal.name:
                cover.end_at(RunLock(run.path).lines_left())
                for gap in cover.gaps:
                    self._add("journal.jsonl", None, str(gap), gap.remedy)
                if cover.older and not cover.states:
                    self.notes.append(
                        "journal.jsonl: of an older karat, with no running checksum: missing "
                        "lines go unnoticed"
                    )
                elif cover.uncovered:
                    last = plural(cover.uncovered, "line at its end is", "lines at its end are")
                    self.notes.append(
                        f"journal.jsonl: {last} not covered yet; the next resume or scoring "
                        f"covers them"
                    )

                size = file.seek(0, 2)
                file.seek(max(0, size - 1))
                if file.read(1) not in (b"", b"\n"):
                    self.notes.append(
                        f"{name}: the last line is incomplete, as a killed run leaves it; "
                        f"{_REMOVED}"
                    )

    def _name(self, file: BinaryIO, name: str, damaged: dict[int, str]) -> None:
        if not damaged:
            return
        file.seek(0)
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), start=1):
            if number > max(damaged):
                break
            if number in damaged:
                event = _EVENT.match(line)
                remedy = _REMEDIES.get(event[1].decode() if event else "", _ANY_EVENT)
                if b'"}{"event":"' in line or line.count(b',"crc":"') > 1:
                    remedy = (
                        "restore the journal from a copy: the newline between two lines is lost"
                    )

                self._add(
                    name,
                    number,
                    damaged[number],
                    remedy if name == "journal.jsonl" else "restore it from a copy",
                )

    def _add(self, file: str, line: int | None, reason: str, remedy: str) -> None:
        self.damages.append(Damage(file=file, line=line, reason=reason, remedy=remedy))
