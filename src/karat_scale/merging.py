"""Merges runs of the same experiment, such as its shards from several machines."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path

import msgspec

from karat.context import FOLDER as WORKSPACES
from karat.errors import BadOption, BadRun, unreadable
from karat.execution.plan import Shard
from karat.files import (
    in_use,
    make_folder,
    open_regular,
    remove_leftovers,
    sync_folder,
    write_durably,
)
from karat.formats import plural
from karat.journal import (
    FORMAT_WITHOUT_STOP,
    Codec,
    End,
    Head,
    Merged,
    PlanInfo,
    Resume,
    RunFolder,
    RunInfo,
    slugged,
)
from karat.journal.codec import Cover
from karat.journal.folder import widened, with_conditions_of
from karat.journal.outcomes import add_outcomes, read_outcomes
from karat.records import Sample
from karat.sums import exact_sum

_OF_A_TRIAL = re.compile(rb'\{"event":"(answer|score|failure|attempt|reply)","trial":"([^"\\]*)"')
_BLOCK = 2**20


class MergedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder merged from others, new or existing."""

    run: RunFolder
    changed: bool  # False: it existed unchanged
    notes: tuple[str, ...]  # notes for readers of its numbers


def merge_runs(runs: Sequence[RunFolder], results: Path) -> MergedRun:
    """One run folder with the content of all these runs, in `results`; they are unchanged, and can
    be resumed.

    The same runs give the same folder, in any order; merging again after one of them continued
    replaces the folder, unless it was itself resumed, scored or reviewed. If a trial was answered
    in several runs, the answer of the oldest run counts. Raises BadRun for runs of different
    experiments, with all differences.
    """
    runs = _each_once(runs)
    _refuse_unlike(runs)
    first = runs[0].info
    ids = sorted(part for run in runs for part in _parts(run))
    name = blake2b("\n".join(ids).encode(), digest_size=4).hexdigest()
    final = results / f"{slugged(first.name)}-{first.created[:10].replace('-', '')}-{name}"
    plan = reduce(widened, [run.plan() for run in runs])

    # Different shards of one plan can share no trial
    shards = {Shard.parse(run.info.shard) for run in runs if run.info.shard is not None}
    one_plan = len({shard.of for shard in shards}) == len({run.plan() for run in runs}) == 1
    overlaps = None
    if len(shards) < len(runs) or not one_plan:
        overlaps = _Overlaps(runs)
    plan = msgspec.structs.replace(
        plan, samples=len({sample.id for run in runs for sample in run.samples()})
    )
    missing = _missing(runs, plan, overlaps)
    notes = [*missing, *_notes(runs)]
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption("--out", f"{results} cannot be made: {unreadable(error)}") from error

    remove_leftovers(results, r"\.[a-z0-9-]+-\d{8}-[0-9a-f]{8}-\d+\.part")
    building = results / f".{final.name}-{os.getpid()}.part"
    ends = [end for run in runs for end in run.events_of(End)]
    end = End(
        at=max((end.at for end in ends), default=runs[0].info.created),
        reason="done" if (not missing) else "interrupted",
        seconds=exact_sum(end.seconds or 0.0 for end in ends if end.command == "run"),
    )
    building.mkdir(mode=0o700)
    try:
        with in_use(building):
            digest = _write_journal(building / "journal.jsonl", runs, name, overlaps, end)
            if overlaps is not None:
                notes += overlaps.notes()
            there = _there(final)
            if there is not None and _digest(there) == digest:
                return MergedRun(run=there, changed=False, notes=tuple(notes))
            if there is not None:
                before = there.info.merged
                if (
                    before is None
                    or _digest(there) != before.journal
                    or any((there.path / one).exists() for one in _REVIEWS)
                ):
                    message = (
                        "was resumed, scored or reviewed after it was merged: name another --out"
                    )
                    raise BadRun(there.path, message)

            merged = Merged(runs=tuple(ids), journal=digest)
            info = _write_rest(building, runs, name, plan, merged, overlaps)
            if there is not None:
                gated = read_outcomes(there).newest
                if gated:  # a gate that failed still counts
                    add_outcomes(RunFolder(building, info), gated)
                final.rename(building.with_name(f".{final.name}-{os.getpid()}-before.part"))

            building.rename(final)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(
            building.with_name(f".{final.name}-{os.getpid()}-before.part"), ignore_errors=True
        )

    sync_folder(results)
    return MergedRun(run=RunFolder(final, info), changed=True, notes=tuple(notes))


def _each_once(runs: Sequence[RunFolder]) -> list[RunFolder]:
    """The runs by creation time; of two copies of one run the longer. Raises BadRun if both
    continued.

    A merged run to which nothing was added is left out if all its parts are there. Otherwise raises
    BadRun if two runs contain the same part.
    """
    by_id: dict[str, RunFolder] = {}
    for run in runs:
        other = by_id.get(run.info.run)
        if other is None:
            by_id[run.info.run] = run
        elif other.path.resolve() != run.path.resolve():
            shorter, longer = sorted((other, run), key=lambda run: run.journal_size)
            if _digest(shorter) != _digest(longer, shorter.journal_size):
                raise BadRun(
                    run.path, f"is a copy of {other.path}, and both went on: merge one of them"
                )

            by_id[run.info.run] = longer

    kept = list[RunFolder]()
    holders = dict[str, RunFolder]()
    for run in by_id.values():
        merged = run.info.merged
        if (
            merged is not None
            and by_id.keys() >= set(merged.runs)
            and _digest(run) == merged.journal
        ):
            continue

        kept.append(run)
        for part in _parts(run):
            if (other := holders.setdefault(part, run)) is not run:
                raise BadRun(
                    run.path,
                    f"contains run {part}, and so does {other.path}: merge only one of them",
                )

    return sorted(kept, key=lambda run: (run.info.created, run.info.run))


def _parts(run: RunFolder) -> tuple[str, ...]:
    if run.info.merged is not None:
        return run.info.merged.runs
    return (run.info.run,)


def _digest(run: RunFolder, size: int | None = None) -> str:
    """The digest of the journal's first `size` bytes; None: of all."""
    digest = sha256()
    if size is not None:
        left = size
    else:
        left = 2**63

    with run.open_journal() or BytesIO() as file:
        while block := file.read(min(_BLOCK, left)):
            digest.update(block)
            left -= len(block)

    return digest.hexdigest()


_ALIKE: Mapping[str, Callable[[RunFolder], object]] = {
    "the experiment's name": lambda run: run.info.name,
    "its version": lambda run: run.info.version,
    "the kind of dataset": lambda run: run.info.kind,
    "the dataset (sha256)": lambda run: run.info.dataset.sha256,
    "num_repetitions": lambda run: run.plan().repetitions,
    "the agent": lambda run: run.info.agent_type,
    "the recorded answers (sha256)": lambda run: run.info.source.get("sha256"),
    "whether it is a rehearsal": lambda run: run.info.rehearsed,
    "whether its lines have checksums": lambda run: run.has_checksums,
    "the scorers": lambda run: sorted((scorer.name, scorer.scoring) for scorer in run.info.scorers),
    "the files it keeps": lambda run: sorted(
        (file.name, file.digest, str(file.code)) for file in run.kept()
    ),
}


def _refuse_unlike(runs: Sequence[RunFolder]) -> None:
    first = runs[0]
    known = dict[str, tuple[str, str]]()
    for run in runs:
        if run.info.imported or run.info.format > FORMAT_WITHOUT_STOP:
            reason = (
                "is of another tool's results"
                if run.info.imported
                else "may stop early, so it is no part of a whole"
            )
            raise BadRun(run.path, f"{reason}: it cannot be merged")

        unlike = [part for part, of in _ALIKE.items() if of(run) != of(first)]
        unlike += [
            f"condition '{name}'"
            for name, of in run.digests().items()
            if known.setdefault(name, of) != of
        ]
        if unlike:
            raise BadRun(
                run.path,
                f"is not of the same experiment as {first.path}: it differs in {', '.join(unlike)}",
            )

    seen: dict[str, Sample] = {}
    for run in runs:
        for sample in run.samples():
            other = seen.setdefault(sample.id, sample)
            if (other.digest, other.weight) != (sample.digest, sample.weight):
                raise BadRun(
                    run.path,
                    f"has sample '{sample.id}' with another content or weight than {first.path}",
                )


def _notes(runs: Sequence[RunFolder]) -> Iterator[str]:
    for run in runs:
        if any((run.path / name).exists() for name in _REVIEWS):
            yield f"the reviews by people in {run.path} are not merged"

    scorers = [{scorer.name for scorer in run.scorers()} for run in runs]
    if unlike := scorers[0].union(*scorers) - scorers[0].intersection(*scorers):
        yield f"only some of the runs were scored by {', '.join(sorted(unlike))}"
    tools: dict[str, set[str | None]] = {}
    for run in runs:
        for server in run.info.servers:
            tools.setdefault(server.name, set()).add(server.tools_digest)

    for name, digests in tools.items():
        if len(digests) > 1:
            yield (
                f"MCP server '{name}' did not offer the same tools in every run; its answers are "
                f"not alike"
            )

    for program in sorted({name for run in runs for name in run.info.versions}):
        known = {run.info.versions[program] for run in runs if program in run.info.versions}
        if len(known) > 1:
            yield (
                f"the runs were made with different versions of {program}: "
                f"{', '.join(sorted(known))}"
            )


def _missing(runs: Sequence[RunFolder], plan: PlanInfo, overlaps: _Overlaps | None) -> list[str]:
    """What the runs together lack.

    Runs that are no shards may be selections, and lack nothing once they are done.
    """
    if overlaps is not None and overlaps.count() >= plan.trials:
        return []
    shards = {Shard.parse(run.info.shard) for run in runs if run.info.shard is not None}
    missing: list[str] = []
    for run in runs:
        if (status := run.status()) != "done":
            how = (
                "resume it, then merge again"
                if run.info.merged is None
                else "merge the runs that it consists of"
            )
            missing.append(f"{run.path} is not complete (status: {status}): {how}")

    if overlaps is None:
        of = max(shard.of for shard in shards)
        names = []
        for number in range(1, of + 1):
            if (shard := Shard(number, of)) not in shards:
                names.append(str(shard))

        if len(names) > 10:
            more = f" and {plural(len(names) - 10, 'other')}"
        else:
            more = ""

        if names:
            missing += [f"not all shards are here: {', '.join(names[:10])}{more} missing"]
    elif shards or any(run.info.merged is not None for run in runs):
        missing.append(
            f"{plural(plan.trials - overlaps.count(), 'trial')} of the plan are in none of the runs"
        )

    return missing


_REVIEWS = ("labels.jsonl", "calibration.jsonl")


def _there(final: Path) -> RunFolder | None:
    try:
        if final.exists():
            return RunFolder.open(final)
        return None
    except BadRun as error:
        raise BadOption(
            "--out", f"{final} is in the way, and cannot be read as a run: remove it"
        ) from error


def _write_rest(
    building: Path,
    runs: Sequence[RunFolder],
    name: str,
    plan: PlanInfo,
    merged: Merged,
    overlaps: _Overlaps | None,
) -> RunInfo:
    """Writes everything but the journal; returns what run.json says."""
    infos = [run.widened_info() for run in runs]
    info = msgspec.structs.replace(
        reduce(with_conditions_of, infos),
        run=name,
        shard=None,
        merged=merged,
        plan=plan,
        reports_tool_calls=all(info.reports_tool_calls for info in infos),
        measures_calls=all(info.measures_calls for info in infos),
        kept=tuple({copy.name: copy for run in runs for copy in run.kept()}.values()),
        host=", ".join(dict.fromkeys(info.host for info in infos)),
    )
    samples = {sample.id: sample for run in runs for sample in run.samples()}
    ordered = sorted(samples.values(), key=lambda sample: (sample.position, sample.id))
    codec = Codec()
    write_durably(building / "samples.jsonl", (codec.line(sample) for sample in ordered))
    folder = RunFolder(building, info)
    with open_regular(runs[0].path / "experiment.yaml", within=runs[0].path) as file:
        write_durably(building / "experiment.yaml", [file.read()])
    of_run = {copy.name: run for run in runs for copy in run.kept()}
    folder.write_kept({copy.file: of_run[copy.name].kept_file(copy) for copy in info.kept})
    for number, run in reversed([*enumerate(runs)]):
        for path in sorted((run.path / WORKSPACES).glob("*.tar.gz")):
            owns = (
                overlaps is None
                or overlaps.owner(path.name.rpartition("-")[0].encode(), number) == number
            )
            if not owns and (building / WORKSPACES / path.name).exists():
                continue
            make_folder(building / WORKSPACES)
            with open_regular(path, within=run.path) as file:
                write_durably(
                    building / WORKSPACES / path.name, iter(partial(file.read, _BLOCK), b"")
                )

    write_durably(building / "run.json", [msgspec.json.format(codec.line(info), indent=2), b"\n"])
    return info


def _write_journal(
    path: Path, runs: Sequence[RunFolder], name: str, overlaps: _Overlaps | None, end: End
) -> str:
    """The lines of all runs, between a new head and end; their digest.

    Raises BadRun if lines of a run are missing.
    """
    codec = Codec()
    digest = sha256()
    cover = Cover()
    resume = msgspec.json.Decoder(Resume).decode

    with path.open("xb") as file:

        def write(line: bytes) -> None:
            file.write(line)
            digest.update(line)
            cover.add([line[:-1]])

        write(codec.line(Head(format=FORMAT_WITHOUT_STOP, run=name)))
        for number, run in enumerate(runs):
            # a conversation does not continue from one run into the next
            if number and overlaps is not None:
                part = Resume(
                    at=run.info.created, versions=run.info.versions, host=run.info.host, pid=0
                )
                write(codec.line(cover.stated_by(part)))

            for line in run.lines():
                if line.startswith((b'{"event":"head"', b'{"event":"end"')):
                    continue
                if line.startswith(b'{"event":"resume"'):
                    write(codec.line(cover.stated_by(resume(line))))
                elif overlaps is None or overlaps.counts(number, line):
                    write(line + b"\n")

            run.refuse_gaps()

        write(codec.line(cover.stated_by(end)))
        file.flush()
        os.fsync(file.fileno())

    return digest.hexdigest()


class _Overlaps:
    """Which lines count if runs may have asked the same trial."""

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self._owner: dict[bytes, int] = {}  # trial → the first run with an answer
        # per run: trial → digest of its answer's line
        self._answers: list[dict[bytes, bytes]] = [{} for _ in runs]
        self._twice = 0
        self._scores = 0
        self._failed: set[bytes] = set()
        for number, run in enumerate(runs):
            for line in run.lines():
                match = _OF_A_TRIAL.match(line)
                if match is not None and match[1] == b"answer":
                    self._owner.setdefault(match[2], number)
                    self._answers[number].setdefault(
                        match[2], blake2b(line, digest_size=8).digest()
                    )
                elif match is not None and match[1] == b"failure":
                    self._failed.add(match[2])

    def count(self) -> int:
        """The number of trials that have ended, with an answer or without."""
        return len(self._owner.keys() | self._failed)

    def owner(self, trial: bytes, number: int) -> int:
        """The run whose answer counts; `number` if there is no answer."""
        return self._owner.get(trial, number)

    def counts(self, number: int, line: bytes) -> bool:
        """Whether a line of a run is kept."""
        match = _OF_A_TRIAL.match(line)
        if match is None:
            return True
        kind, trial = match.groups()
        owner = self.owner(trial, number)
        answers = self._answers[number]
        if owner == number or trial not in answers:
            return True
        if answers[trial] == self._answers[owner][trial]:  # a copy: it was paid for once
            return False
        self._twice += kind == b"answer"
        self._scores += kind == b"score"
        # they cost something; of two answers the first counts
        return kind in (b"answer", b"attempt", b"reply")

    def notes(self) -> list[str]:
        """What was left out."""
        if not self._twice:
            return []
        twice = plural(self._twice, "trial")
        scores = plural(self._scores, "score")
        note = (
            f"{twice} had an answer in two runs: that of the earlier run counts, and the other's "
            f"cost is in the sums"
        )
        return [f"{note}; {scores} of the other are left out with what they cost"]
