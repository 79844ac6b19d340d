"""The run folder: `experiment.yaml`, `run.json`, `samples.jsonl`, `journal.jsonl`."""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from karat import formats
from karat.errors import BadRun, unreadable
from karat.journal.codec import Codec, decode
from karat.journal.events import (
    FORMAT_VERSION,
    Attempt,
    End,
    Event,
    Head,
    PlanInfo,
    Resume,
    RunInfo,
    ScorerInfo,
    StudyCopy,
)
from karat.journal.lock import RunLock
from karat.journal.writer import sync_folder
from karat.records import Answer, Failure, Sample, Score
from karat.redact import Redactor

__all__ = ["RunFolder", "Status", "create_run", "slugged"]

Status = Literal["running", "done", "interrupted", "crashed", "max_failures", "budget"]
_STUDY_FILE = re.compile(r"[a-z0-9-]{1,80}\.yaml", re.ASCII)
_LARGEST_STUDY = 2_000_000  # bytes; more than a document may have

_Kind = TypeVar("_Kind", Resume, Answer, Score, Failure, Attempt, End)


def slugged(name: str) -> str:
    """A name as a folder can carry it: lower case, letters, digits and dashes, at most 60 characters.

    >>> slugged("Support KB (v2)")
    'support-kb-v2'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")
    return plain or "run"


def create_run(
    results: Path,
    info: RunInfo,
    *,
    experiment: str,
    samples: Iterable[Sample],
    redact: Redactor,
    studies: Mapping[str, bytes] | None = None,
) -> RunFolder:
    """A new run folder with everything but its journal.

    It is filled under a temporary name and then renamed, so that a folder that is there is
    whole. `info.run` is replaced by the folder's own 8 hex digits. `studies`: the files of
    `info.studies`, by name.
    """
    try:
        if not results.is_dir():
            results.mkdir(parents=True, exist_ok=True)
            sync_folder(results.parent)
    except (OSError, ValueError) as error:
        where = formats.excerpt(str(results), 60)
        raise BadRun(where, f"the folder of results cannot be made: {unreadable(error)}") from error
    day = datetime.now(UTC).strftime("%Y%m%d")
    while True:
        run = secrets.token_hex(4)
        final = results / f"{slugged(info.name)}-{day}-{run}"
        if not final.exists():
            break
    building = results / f".{final.name}.part"
    building.mkdir()
    folder = RunFolder(building, msgspec.structs.replace(info, run=run))
    write_durably(building / "experiment.yaml", [redact(experiment).encode("utf-8", "replace")])
    folder.write_samples(samples, redact=redact)
    folder.write_studies(studies or {})
    line = Codec(redact).line(folder.info)
    write_durably(building / "run.json", [msgspec.json.format(line, indent=2), b"\n"])
    sync_folder(building)
    building.rename(final)
    sync_folder(results)
    return RunFolder(final, folder.info)


class RunFolder:
    """A run on disk. Reading takes no lock and repairs nothing: a torn last line is not there yet."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _repr_html_(self) -> str:
        plan = self.info.plan
        size = (
            f"{formats.plural(plan.samples, 'sample')} × {formats.plural(len(plan.conditions), 'condition')} "
            f"× {formats.plural(plan.repetitions, 'repetition')}"
        )
        facts = {
            "run": f"{self.info.name} {self.info.run} ({self.status()})",
            "folder": str(self.path),
            "made": self.info.created,
            "planned": size,
            "conditions": ", ".join(plan.conditions),
            "agent": " ".join(filter(None, (self.info.agent_type, self.info.agent_model))),
            "scorers": ", ".join(scorer.name for scorer in self.info.scorers),
        }
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape(formats.clean(text))}</td></tr>" for name, text in facts.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """Raises BadRun: no run there, or one of a newer format."""
        folder = Path(path)
        if folder.name in ("journal.jsonl", "run.json"):
            folder = folder.parent
        file = folder / "run.json"
        try:
            raw = file.read_bytes()
        except FileNotFoundError as error:
            found = "is no run folder (it has no run.json)" if folder.is_dir() else "there is no such folder"
            raise BadRun(str(path), f"{found}; `karat run FILE` makes one under results/") from error
        except OSError as error:
            raise BadRun(str(path), f"cannot be read: {error.strerror}") from error
        try:
            known = msgspec.json.decode(raw, type=_Format)
            if known.format > FORMAT_VERSION:
                newer = f"has format {known.format}, this karat reads up to {FORMAT_VERSION}: update karat"
                raise BadRun(str(path), newer)
            run = cls(folder, msgspec.json.decode(raw, type=RunInfo))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRun(str(path), f"run.json is damaged: {error}") from error
        run._check_head()
        return run

    def _check_head(self) -> None:
        first = next(self.lines(), b"")
        if not first.startswith(b'{"event":"head"'):
            return
        head = decode(first, path=str(self.path), number=1)
        if isinstance(head, Head) and head.format > FORMAT_VERSION:
            newer = f"its journal has format {head.format}, this karat reads up to {FORMAT_VERSION}: update karat"
            raise BadRun(str(self.path), newer)
        if isinstance(head, Head) and head.run != self.info.run:
            raise BadRun(str(self.path), f"the journal is of run {head.run}, run.json of {self.info.run}")

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    def lines(self, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Every complete line from byte `start` up to byte `stop`, without its newline."""
        try:
            file = self.journal.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(start)
            at = start
            for line in file:
                at += len(line)
                if not line.endswith(b"\n") or (stop is not None and at > stop):
                    return
                yield line[:-1]

    def events(self) -> Iterator[Event]:
        """Every event, in the order in which it was written. Raises BadRun at a damaged line."""
        for number, line in enumerate(self.lines(), start=1):
            yield decode(line, path=str(self.path), number=number)

    def events_of(self, kind: type[_Kind], *, stop: int | None = None) -> Iterator[_Kind]:
        """The events of one kind up to byte `stop`; other lines are passed over undecoded."""
        head = b'{"event":"%s"' % str(kind.__struct_config__.tag).encode()
        for number, line in enumerate(self.lines(stop=stop), start=1):
            if line.startswith(head):
                event = decode(line, path=str(self.path), number=number)
                assert isinstance(event, kind)
                yield event

    def samples(self, *, lines: Container[int] | None = None) -> Iterator[Sample]:
        """The planned samples, in the order of the dataset. `lines`: of the file, from 0; others stay undecoded."""
        decoder = msgspec.json.Decoder(Sample)
        try:
            file = (self.path / "samples.jsonl").open("rb")
        except FileNotFoundError as error:
            raise BadRun(str(self.path), "samples.jsonl is missing") from error
        with file:
            for number, line in enumerate(file, start=1):
                if lines is not None and number - 1 not in lines:
                    continue
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise BadRun(str(self.path), f"samples.jsonl, line {number}: {error}") from error

    def studies(self) -> tuple[StudyCopy, ...]:
        """The human studies that the run keeps, each as it was when it was last run."""
        found = {copy.study: copy for copy in self.info.studies}
        for resume in self.events_of(Resume):
            found.update({copy.study: copy for copy in resume.studies})
        return tuple(found.values())

    def write_studies(self, files: Mapping[str, bytes]) -> None:
        """Adds files of studies. For the holder of the lock alone."""
        if not files:
            return
        (self.path / "studies").mkdir(exist_ok=True)
        for name, data in files.items():
            write_durably(self.path / "studies" / name, [data])
        sync_folder(self.path)

    def study(self, copy: StudyCopy) -> bytes:
        """The study.yaml that the run keeps of a study. Raises BadRun where it is not the one that was run."""
        name = f"studies/{copy.file}"
        if _STUDY_FILE.fullmatch(copy.file) is None:
            raise BadRun(str(self.path), f"run.json is damaged: '{copy.file}' is no file of a study")
        path = self.path / "studies" / copy.file
        try:
            # What is no regular file may never end.
            with path.open("rb") if path.is_file() else io.BytesIO() as file:
                data = file.read(_LARGEST_STUDY + 1)
        except OSError as error:
            raise BadRun(str(self.path), f"{name} cannot be read: {error.strerror}") from error
        if sha256(data).hexdigest() != copy.sha256:
            raise BadRun(str(self.path), f"{name} is missing, or not as it was when the run began")
        return data

    def write_samples(self, samples: Iterable[Sample], *, redact: Redactor) -> None:
        """Replaces samples.jsonl, atomically. For the holder of the lock alone."""
        codec = Codec(redact)
        write_durably(self.path / "samples.jsonl", (codec.line(sample) for sample in samples))

    def plan(self) -> PlanInfo:
        """What is to be run: the first plan, widened by every resume."""
        plan = self.info.plan
        for resume in self.events_of(Resume):
            if resume.plan is not None:
                plan = widened(plan, resume.plan)
        return plan

    def digests(self) -> dict[str, tuple[str, str]]:
        """Condition → its digest and its agent's, as they were when it was first planned."""
        found = {name: (digest, self.info.agents.get(name, "")) for name, digest in self.info.conditions.items()}
        for resume in self.events_of(Resume):
            for name, digest in resume.conditions.items():
                found.setdefault(name, (digest, resume.agents.get(name, "")))
        return found

    def scorers(self) -> tuple[ScorerInfo, ...]:
        """Every scoring there is: of the run, then of each `karat score`; the newest last."""
        found = {scorer.scoring: scorer for scorer in self.info.scorers}
        for resume in self.events_of(Resume):
            for scorer in resume.scorers:
                found.pop(scorer.scoring, None)
                found[scorer.scoring] = scorer
        return tuple(found.values())

    def status(self) -> Status:
        """How the run stands. "crashed": its process ended without saying so; resume it.

        `karat score` does not change it: a run that was stopped is not done because it was scored.
        """
        if RunLock(self.path).held():
            return "running"
        last = self._last_line()
        ended = decode(last, path=str(self.path), number=0) if last.startswith(b'{"event":"end"') else None
        if isinstance(ended, End) and ended.command == "run":
            return ended.reason
        status: Status = "crashed"
        if ended is not None or self._scored_again():
            for event in self._ends():
                status = event.reason if isinstance(event, End) else "crashed"
        return status

    def _scored_again(self) -> bool:
        return any(resume.command == "score" for resume in self.events_of(Resume))

    def _ends(self) -> Iterator[End | Resume]:
        """Begins and ends of the run's own parts."""
        for number, line in enumerate(self.lines(), start=1):
            if line.startswith((b'{"event":"end"', b'{"event":"resume"')):
                event = decode(line, path=str(self.path), number=number)
                if isinstance(event, (End, Resume)) and event.command == "run":
                    yield event

    def _last_line(self) -> bytes:
        try:
            file = self.journal.open("rb")
        except FileNotFoundError:
            return b""
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 65536))
            lines = file.read().split(b"\n")
        return lines[-2] if len(lines) > 1 else b""


class _Format(msgspec.Struct):
    format: int


def widened(first: PlanInfo, second: PlanInfo) -> PlanInfo:
    """The union of two plans of one run."""
    conditions = tuple(dict.fromkeys([*first.conditions, *second.conditions]))
    return PlanInfo(
        samples=max(first.samples, second.samples),
        conditions=conditions,
        repetitions=max(first.repetitions, second.repetitions),
    )


def write_durably(path: Path, parts: Iterable[bytes]) -> None:
    """Replaces a file so that a reader, or a crash, meets the old one or the new one, whole."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)
