"""The run folder: `experiment.yaml`, `run.json`, `samples.jsonl`, `journal.jsonl`."""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from hashlib import sha256
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

import msgspec

from karat import formats
from karat.errors import BadRun, unreadable
from karat.files import (
    in_use,
    make_folder,
    open_regular,
    remove_leftovers,
    sync_folder,
    write_durably,
)
from karat.journal.codec import (
    LONGEST_LINE,
    UNREADABLE,
    Codec,
    Cover,
    Gap,
    LineDamaged,
    checked_lines,
    checksum_fault,
    content_of,
    damaged,
    decode,
    ended,
    fail,
    is_whole,
)
from karat.journal.events import (
    CHECKSUMS_SINCE,
    FORMAT_VERSION,
    KEPT,
    Attempt,
    End,
    Event,
    Head,
    KeptFile,
    PlanInfo,
    Resume,
    RunInfo,
    ScorerInfo,
    ServerInfo,
)
from karat.journal.lock import RunLock
from karat.records import Answer, Failure, Sample, Score, ServerEvent
from karat.redact import Redactor

LARGEST_INFO = 8 * 2**20
"""Bytes of run.json, and of each document beside it."""

Status = Literal[
    "running", "done", "interrupted", "crashed", "max_failures", "budget", "no_workers"
]
_JOURNAL = "journal.jsonl"
_COMPRESSED = "journal.jsonl.zst"
_OLD = "was written by a version of karat that could compress journals"
RUN_FILES = (_JOURNAL, _COMPRESSED, "run.json")
"""Files that stand for their run where a run is named."""
_KEPT_FILE = re.compile(r"[a-z0-9-]{1,80}\.yaml", re.ASCII)
_BLOCK = 2**20  # bytes
_TOGETHER = 1000  # samples that are written together
# of RunInfo and Resume
_BY_CONDITION = ("conditions", "agents", "prompts", "condition_servers", "condition_offers")

_Kind = TypeVar("_Kind", Resume, Answer, Score, Failure, Attempt, End, ServerEvent)
_Rare = TypeVar("_Rare", Resume, ServerEvent)
_Fields = TypeVar("_Fields")


def slugged(name: str) -> str:
    """A name usable for a folder: lower case, letters, digits and dashes, at most 60 characters.

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
    kept: Mapping[str, bytes] | None = None,
    shared: bool = False,
) -> RunFolder:
    """A new run folder with everything but its journal.

    It is filled under a temporary name and then renamed, so a folder that exists is complete.
    `info.run` is replaced by the folder's own 8 hex digits. `kept`: the files of `info.kept`, by
    name. `shared`: the group may read the folder, as far as the umask allows; else only its owner.
    """
    try:
        if not results.is_dir():
            results.mkdir(parents=True, exist_ok=True)
            sync_folder(results.parent)
    except (OSError, ValueError) as error:
        where = formats.excerpt(str(results), 60)
        raise BadRun(where, f"the folder of results cannot be made: {unreadable(error)}") from error

    remove_leftovers(results, r"\.[a-z0-9-]+-\d{8}-[0-9a-f]{8}\.part")
    day = datetime.now(UTC).strftime("%Y%m%d")
    while True:
        run = secrets.token_hex(4)
        final = results / f"{slugged(info.name)}-{day}-{run}"
        if not final.exists():
            break

    building = results / f".{final.name}.part"
    building.mkdir(mode=0o750 if shared else 0o700)
    with in_use(building):
        folder = RunFolder(building, msgspec.structs.replace(info, run=run))
        write_durably(building / "experiment.yaml", [redact(experiment).encode("utf-8", "replace")])
        folder.write_samples(samples, redact=redact)
        folder.write_kept(kept or {})
        line = Codec(redact).line(folder.info)
        write_durably(building / "run.json", [msgspec.json.format(line, indent=2), b"\n"])
        sync_folder(building)
        building.rename(final)

    sync_folder(results)
    return RunFolder(final, folder.info)


class RunFolder:
    """A run on disk.

    Reading takes no lock and repairs nothing: an incomplete last line is ignored.
    """

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info
        # found when the journal was last read from its first line to its last
        self.gaps: tuple[Gap, ...] = ()
        # the journal whose lines all match their checksums
        self._checked: tuple[int, ...] | None = None
        # rare events, of a journal in that state
        self._found: dict[type, tuple[tuple[int, ...], tuple[Any, ...]]] = {}

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _repr_html_(self) -> str:
        plan = self.info.plan
        size = (
            f"{formats.plural(plan.samples, 'sample')} × "
            f"{formats.plural(len(plan.conditions), 'condition')} × "
            f"{formats.plural(plan.repetitions, 'repetition')}"
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
            f"<tr><th>{name}</th><td>{escape(formats.clean(text))}</td></tr>"
            for name, text in facts.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, look: bool = True) -> RunFolder:
        """`look`: also read the journal.

        Raises BadRun if there is no run, or one of a newer format.
        """
        folder = Path(path)
        if folder.name in RUN_FILES:
            folder = folder.parent
        try:
            with open_regular(folder / "run.json", within=folder, at_most=LARGEST_INFO) as file:
                raw = content_of(file.read())
        except (FileNotFoundError, NotADirectoryError) as error:
            problem = (
                "is not a run folder (it has no run.json)"
                if folder.is_dir()
                else "there is no such folder"
            )
            raise BadRun(path, f"{problem}; `karat run FILE` creates one under results/") from error
        except OSError as error:
            raise _unreadable(path, "run.json", error) from error

        try:
            known = msgspec.json.decode(raw, type=_Format)
            if known.format > FORMAT_VERSION:
                newer = (
                    f"has format {known.format}, this karat reads up to {FORMAT_VERSION}: update "
                    f"karat"
                )
                raise BadRun(path, newer)

            fault = checksum_fault(
                msgspec.json.format(raw, indent=-1), required=known.format >= CHECKSUMS_SINCE
            )
            run = cls(folder, msgspec.json.decode(raw, type=RunInfo))
        except UNREADABLE as error:
            raise BadRun(path, f"run.json is damaged: {error}") from error

        if fault is not None:
            raise BadRun(path, f"run.json is damaged ({fault}); restore it from a copy")
        head: Event | None = None
        first = next(run.lines(), b"") if look else b""
        if first.startswith(b'{"event":"head"'):
            head = decode(first, path=str(folder), number=1)
        if isinstance(head, Head) and head.format > FORMAT_VERSION:
            newer = (
                f"its journal has format {head.format}, this karat reads up to {FORMAT_VERSION}: "
                f"update karat"
            )
            raise BadRun(folder, newer)

        if isinstance(head, Head) and head.run != run.info.run:
            raise BadRun(folder, f"the journal is of run {head.run}, run.json of {run.info.run}")
        return run

    @property
    def journal(self) -> Path:
        """The file of the journal."""
        return self.path / _JOURNAL

    @property
    def journal_size(self) -> int:
        """Bytes of the journal's lines; 0 if there is none."""
        with self.open_journal() or io.BytesIO() as file:
            return file.seek(0, os.SEEK_END)

    def lines(self, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """As `numbered_lines`, without numbers and bytes."""
        return (line for _, _, line in self.numbered_lines(start=start, stop=stop))

    def numbered_lines(
        self,
        *,
        start: int = 0,
        stop: int | None = None,
        on_damage: Callable[[LineDamaged], None] = fail,
    ) -> Iterator[tuple[int, int, bytes]]:
        """Every complete line from byte `start` up to byte `stop`: its number, from 1 at `start`,
        its byte, its text.

        Each is checked against its checksum, and a whole journal for `gaps`, once while the file
        does not change. Raises BadRun at a damaged line unless `on_damage` returns, which skips
        that line, and if the journal is not a regular file.
        """
        file = self.open_journal()
        cover = Cover()
        left = RunLock(self.path).lines_left()
        if file is None:
            if start == 0 and stop is None:
                cover.end_at(left)
                self.gaps = tuple(cover.gaps)
            return

        with file:
            state = _state(file)
            file.seek(start)
            check = self._checked != state
            whole = check and start == 0 and stop is None
            lines = checked_lines(
                file,
                stop=stop,
                required=self.has_checksums,
                check=check,
                on_damage=on_damage,
                cover=cover if whole else None,
            )
            try:
                yield from lines
            except LineDamaged as error:
                raise damaged(
                    str(self.path), self._lines_before(start) + error.number, error
                ) from error

            if not whole:
                return
            if state == _state(file):  # no process is writing
                cover.end_at(left)
                self._checked = state if on_damage is fail else None

            self.gaps = tuple(cover.gaps)

    def refuse_gaps(self) -> None:
        """Raises BadRun if the journal, which was read, has gaps."""
        for gap in self.gaps:
            raise BadRun(self.path, f"{gap}; {gap.remedy}")

    def gap_notices(self) -> list[str]:
        """What to know before reading numbers of a journal that was read and has gaps."""
        if not self.gaps:
            return []
        if len(self.gaps) > 1:
            more = f" and {formats.plural(len(self.gaps) - 1, 'other place')}"
        else:
            more = ""

        hint = f"`karat runs verify {self.path}` says what to do"
        return [
            (
                f"The numbers may be wrong, because the journal is not as karat wrote it: "
                f"{self.gaps[0]}{more}; {hint}"
            )
        ]

    def _lines_before(self, end: int) -> int:
        if end:
            file = self.open_journal()
        else:
            file = None

        if file is None:
            return 0
        with file:
            return sum(
                file.read(min(_BLOCK, end - at)).count(b"\n") for at in range(0, end, _BLOCK)
            )

    @property
    def has_checksums(self) -> bool:
        """Whether each line of this run's files must have one."""
        return self.info.format >= CHECKSUMS_SINCE

    def open_journal(self) -> io.BufferedReader | None:
        """The journal's lines, open for reading; None if there are none. Raises BadRun."""
        file = self.open_file(_JOURNAL)
        if file is None and (self.path / _COMPRESSED).exists():
            raise BadRun(
                self.path, f"{_OLD}; `unzstd {_COMPRESSED}` in its folder makes it plain again"
            )

        return file

    def open_file(self, name: str, *, at_most: int | None = None) -> io.BufferedReader | None:
        """A file of the folder, open for reading; None if there is none.

        Raises BadRun if it is not a regular file in the folder itself, or longer than `at_most`
        bytes.
        """
        try:
            return open_regular(self.path / name, within=self.path, at_most=at_most)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, name, error) from error

    def events(self) -> Iterator[Event]:
        """Every event, in the order written. Raises BadRun at a damaged line."""
        for number, _, line in self.numbered_lines():
            yield decode(line, path=str(self.path), number=number)

    def events_of(self, kind: type[_Kind]) -> Iterator[_Kind]:
        """The events of one kind; other lines are skipped undecoded."""
        head = b'{"event":"%s"' % str(kind.__struct_config__.tag).encode()
        for number, _, line in self.numbered_lines():
            if line.startswith(head):
                event = decode(line, path=str(self.path), number=number)
                assert isinstance(event, kind)
                yield event

    def _resumes(self) -> tuple[Resume, ...]:
        return self._rare(Resume)

    def server_events(self) -> tuple[ServerEvent, ...]:
        """What the MCP servers did during the run."""
        return self._rare(ServerEvent)

    def _rare(self, kind: type[_Rare]) -> tuple[_Rare, ...]:
        """Every event of a rare kind.

        The journal is searched for them once, while it does not change.
        """
        file = self.open_journal()
        if file is None:
            return ()
        with file:
            state = _state(file)
            if kind not in self._found or self._found[kind][0] != state:
                self._found[kind] = state, tuple(self._search(file, kind))

        return self._found[kind][1]

    def _search(self, file: BinaryIO, kind: type[_Rare]) -> list[_Rare]:
        """Searches the bytes: six times as fast as reading every line.

        Other lines are checked when read.
        """
        found: list[_Rare] = []
        head = b'\n{"event":"%s"' % str(kind.__struct_config__.tag).encode()
        rest = b"\n"
        while block := file.read(max(_BLOCK, len(rest))):
            block = rest + block
            start = block.find(head)
            end = block.rfind(b"\n")
            while 0 <= start < end:
                line = content_of(block[start + 1 : block.index(b"\n", start + 1)])
                if checksum_fault(line, required=self.has_checksums) is not None:
                    return list(self.events_of(kind))  # raises, with the line number
                try:
                    found.append(msgspec.json.decode(line, type=kind))
                except UNREADABLE:
                    return list(self.events_of(kind))

                start = block.find(head, start + 1)

            rest = block[end:]
            if len(rest) > LONGEST_LINE:
                return found  # readers of the lines report it

        last = content_of(rest[1:])
        if rest.startswith(head) and is_whole(last):  # only its newline is not written yet
            with suppress(*UNREADABLE):
                found.append(msgspec.json.decode(last, type=kind))

        return found

    def samples(self, *, lines: Container[int] | None = None) -> Iterator[Sample]:
        """The planned samples, in the order of the dataset.

        `lines`: of the file, from 0; others stay undecoded.
        """
        for sample in self.samples_as(Sample, lines=lines):
            if not sample.kind:
                msgspec.structs.force_setattr(sample, "kind", self.info.kind)
            yield sample

    def samples_as(
        self, fields: type[_Fields], *, lines: Container[int] | None = None
    ) -> Iterator[_Fields]:
        """The same with some of their fields: decoding the others takes most of the time."""
        decoder = msgspec.json.Decoder(fields)
        file = self.open_file("samples.jsonl")
        if file is None:
            raise BadRun(self.path, "samples.jsonl is missing")
        number = 0
        try:
            with file:
                whole = checked_lines(file, required=self.has_checksums, torn=False)
                for number, (_, _, line) in enumerate(whole, start=1):
                    if lines is None or number - 1 in lines:
                        yield decoder.decode(line)
        except (LineDamaged, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            at = error.number if isinstance(error, LineDamaged) else number
            raise BadRun(
                self.path, f"samples.jsonl, line {at}: {error}; restore the file from a copy"
            ) from error

    def kept(self) -> tuple[KeptFile, ...]:
        """The files of the dataset that the run keeps, each as last run."""
        copies = {copy.name: copy for copy in self.info.kept}
        for resume in self._resumes():
            copies.update({copy.name: copy for copy in resume.kept})
        return tuple(copies.values())

    def write_kept(self, files: Mapping[str, bytes]) -> None:
        """Adds files of the dataset. Only for the holder of the lock."""
        if not files:
            return
        make_folder(self.path / KEPT)
        for name, data in files.items():
            write_durably(self.path / KEPT / name, [data])
        sync_folder(self.path)

    def kept_file(self, copy: KeptFile) -> bytes:
        """A file that the run keeps. Raises BadRun if it is not the one that was run."""
        name = f"{KEPT}/{copy.file}"
        if _KEPT_FILE.fullmatch(copy.file) is None:
            raise BadRun(
                self.path,
                f"run.json is damaged: '{copy.file}' is not the name of a file that karat keeps",
            )

        with self.open_file(name, at_most=LARGEST_INFO) or io.BytesIO() as file:
            data = file.read()
        if sha256(data).hexdigest() != copy.sha256:
            raise BadRun(self.path, f"{name} is missing, or has changed since the run began")
        return data

    def write_samples(self, samples: Iterable[Sample], *, redact: Redactor) -> None:
        """Replaces samples.jsonl, atomically. Only for the holder of the lock."""
        unwritten = iter(samples)
        blocks = iter(lambda: [*islice(unwritten, _TOGETHER)], [])
        lines = map(Codec(redact).lines, blocks)
        write_durably(self.path / "samples.jsonl", map(ended, lines))

    def plan(self) -> PlanInfo:
        """The planned trials: the first plan, extended by every resume."""
        plan = self.info.plan
        for resume in self._resumes():
            if resume.plan is not None:
                plan = widened(plan, resume.plan)

        return plan

    def widened_info(self) -> RunInfo:
        """`run.json`, with the conditions and MCP servers that were added by resuming the run."""
        return reduce(with_conditions_of, self._resumes(), self.info)

    def digests(self) -> dict[str, tuple[str, str]]:
        """Condition → its digest and its agent's, as first planned."""
        info = self.widened_info()
        return {
            name: (digest, info.agents.get(name, "")) for name, digest in info.conditions.items()
        }

    def scorers(self) -> tuple[ScorerInfo, ...]:
        """All scorings: of the run, then of each `karat score`; the newest last."""
        scorers = {scorer.scoring: scorer for scorer in self.info.scorers}
        for resume in self._resumes():
            for scorer in resume.scorers:
                scorers.pop(scorer.scoring, None)
                scorers[scorer.scoring] = scorer

        return tuple(scorers.values())

    def changed_servers(self) -> tuple[ServerInfo, ...]:
        """MCP servers at each resume: those that were new, or whose offer had changed."""
        return tuple(server for resume in self._resumes() for server in resume.servers)

    def status(self) -> Status:
        """The status of the run. "crashed": its process ended without an `end` event; resume it.

        `karat score` does not change it: scoring a stopped run does not make it done.
        """
        if RunLock(self.path).held():
            return "running"
        last = self.last_line()
        if last.startswith(b'{"event":"end"'):
            ended = decode(last, path=str(self.path), number=0)
        else:
            ended = None

        if isinstance(ended, End) and ended.command == "run":
            return ended.reason
        status: Status = "crashed"
        if ended is not None or any(resume.command == "score" for resume in self._resumes()):
            for number, _, line in self.numbered_lines():
                if line.startswith((b'{"event":"end"', b'{"event":"resume"')):
                    event = decode(line, path=str(self.path), number=number)
                    if isinstance(event, (End, Resume)) and event.command == "run":
                        status = event.reason if isinstance(event, End) else "crashed"

        return status

    def last_line(self) -> bytes:
        """The journal's last complete line if it is short, else its end.

        Raises BadRun if it is damaged.
        """
        file = self.open_journal()
        if file is None:
            return b""
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 65536))
            lines = [*map(content_of, file.read(65536).split(b"\n"))]

        if not is_whole(lines[-1]):
            del lines[-1]
        complete = [*filter(None, lines)]
        if complete:
            last = complete[-1]
        else:
            last = b""

        if len(complete) > 1:
            fault = checksum_fault(last, required=self.has_checksums)
        else:
            fault = None

        if fault is not None:
            raise damaged(str(self.path), self._lines_before(size), fault)
        return last


def _state(file: BinaryIO) -> tuple[int, ...]:
    """Changes when the file is written to."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _unreadable(path: str | os.PathLike[str], name: str, error: OSError) -> BadRun:
    why = error.strerror or str(error)
    if not why.startswith("is "):
        return BadRun(os.fspath(path), f"{name} cannot be read: {why}")
    return BadRun(os.fspath(path), f"{name} {why}; replace it by a copy of the run's own file")


class _Format(msgspec.Struct):
    format: int


def with_conditions_of(info: RunInfo, part: Resume | RunInfo) -> RunInfo:
    """The first, plus the conditions and MCP servers that only the other part of the run has."""

    def union(field: str) -> dict[str, Any]:
        known: dict[str, Any] = getattr(info, field)
        others: dict[str, Any] = getattr(part, field)
        return known | {name: value for name, value in others.items() if name not in known}

    known = {server.name for server in info.servers}
    servers = (*info.servers, *(server for server in part.servers if server.name not in known))
    return msgspec.structs.replace(
        info, servers=servers, **{field: union(field) for field in _BY_CONDITION}
    )


def widened(first: PlanInfo, second: PlanInfo) -> PlanInfo:
    """The union of two plans of one run."""
    conditions = tuple(dict.fromkeys([*first.conditions, *second.conditions]))
    return PlanInfo(
        samples=max(first.samples, second.samples),
        conditions=conditions,
        repetitions=max(first.repetitions, second.repetitions),
    )


def server_changes(
    before: Iterable[ServerInfo], after: Iterable[ServerInfo]
) -> Iterator[tuple[ServerInfo, str]]:
    """Servers whose tools or protocol version have changed; each with a sentence."""
    first = {server.name: server for server in before}
    for server in after:
        old = first.get(server.name)
        if old is None or None in (old.tools_digest, server.tools_digest):
            continue
        if old.protocol not in (None, server.protocol):
            yield (
                server,
                (
                    f"MCP server '{server.name}' spoke protocol {old.protocol} at the start, and "
                    f"then {server.protocol}"
                ),
            )
        elif old.tools_digest != server.tools_digest:
            yield (
                server,
                (
                    f"MCP server '{server.name}' offered other tools when the run was resumed "
                    f"than at its start"
                ),
            )
