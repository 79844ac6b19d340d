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
from typing import BinaryIO

import msgspec

from karat.context.run_workspaces import FOLDER as WORKSPACES
from karat.errors import BadOption, BadRun, unreadable
from karat.execution.plan import Shard
from karat.files import in_use, make_folder, open_regular, remove_leftovers, sync_folder, write_durably
from karat.formats import plural
from karat.journal import FORMAT_WITHOUT_STOP, Codec, End, Head, Merged, RunFolder, RunInfo, slugged
from karat.journal.folder import widened, with_conditions_of
from karat.records import Sample
from karat.sums import exact_sum

__all__ = ["MergedRun", "merge_runs"]

_OF_A_TRIAL = re.compile(rb'\{"event":"(answer|score|failure|attempt|reply)","trial":"([^"\\]*)"')
_BLOCK = 2**20


class MergedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder merged from others, new or existing."""

    run: RunFolder
    changed: bool  # False: it existed unchanged
    notes: tuple[str, ...]  # notes for readers of its numbers


def merge_runs(runs: Sequence[RunFolder], results: Path) -> MergedRun:
    """One run folder with the content of all these runs, in `results`; they are unchanged, and can be resumed.

    The same runs give the same folder, in any order; merging again after one of them continued replaces the
    folder, unless it was itself resumed, scored or reviewed. If a trial was answered in
    several runs, the answer of the oldest run counts. Raises BadRun for runs of different
    experiments, with all differences.
    """
    runs = _each_once(runs)
    _refuse_unlike(runs)
    first = runs[0].info
    ids = sorted({part for run in runs for part in (run.info.merged.runs if run.info.merged else (run.info.run,))})
    name = blake2b("\n".join(ids).encode(), digest_size=4).hexdigest()
    final = results / f"{slugged(first.name)}-{first.created[:10].replace('-', '')}-{name}"
    notes = [*_notes(runs)]
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption("--out", f"{results} cannot be made: {unreadable(error)}") from error
    remove_leftovers(results, r"\.[a-z0-9-]+-\d{8}-[0-9a-f]{8}-\d+\.part")
    building = results / f".{final.name}-{os.getpid()}.part"
    building.mkdir(mode=0o700)
    try:
        with in_use(building):
            digest, left_out = _write_journal(building / "journal.jsonl", runs, name)
            notes += left_out
            there = _there(final)
            if there is not None and _digest(there) == digest:
                return MergedRun(run=there, changed=False, notes=tuple(notes))
            if there is not None:
                _refuse_changed(there)
            info = _info(runs, name, Merged(runs=tuple(ids), journal=digest))
            _copy_files(building, runs, info)
            if there is not None:
                final.rename(building.with_name(f".{final.name}-{os.getpid()}-before.part"))
            building.rename(final)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(building.with_name(f".{final.name}-{os.getpid()}-before.part"), ignore_errors=True)
    sync_folder(results)
    return MergedRun(run=RunFolder(final, info), changed=True, notes=tuple(notes))


def _each_once(runs: Sequence[RunFolder]) -> list[RunFolder]:
    """The runs by creation time; of two copies of one run the longer. Raises BadRun if both continued.

    A merged run is left out if all its parts are there.
    """
    by_id: dict[str, RunFolder] = {}
    for run in runs:
        other = by_id.get(run.info.run)
        if other is None:
            by_id[run.info.run] = run
        elif other.path.resolve() != run.path.resolve():
            shorter, longer = sorted((other, run), key=lambda run: run.journal_size)
            if _digest(shorter) != _digest(longer, shorter.journal_size):
                raise BadRun(str(run.path), f"is a copy of {other.path}, and both went on: merge one of them")
            by_id[run.info.run] = longer
    kept = [run for run in by_id.values() if run.info.merged is None or not by_id.keys() >= set(run.info.merged.runs)]
    return sorted(kept, key=lambda run: (run.info.created, run.info.run))


def _digest(run: RunFolder, size: int | None = None) -> str:
    """The digest of the journal's first `size` bytes; None: of all."""
    digest, left = sha256(), size if size is not None else 2**63
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
    "the scorers": lambda run: sorted((scorer.name, scorer.scoring) for scorer in run.info.scorers),
    "the studies and their code": lambda run: sorted((one.study, one.digest, str(one.code)) for one in run.studies()),
}


def _refuse_unlike(runs: Sequence[RunFolder]) -> None:
    first = runs[0]
    for run in runs:
        if run.info.imported or run.info.format > FORMAT_WITHOUT_STOP:
            reason = (
                "is of another tool's results" if run.info.imported else "may stop early, so it is no part of a whole"
            )
            raise BadRun(str(run.path), f"{reason}: it cannot be merged")
        unlike = [part for part, of in _ALIKE.items() if of(run) != of(first)]
        conditions, known = run.digests(), first.digests()
        unlike += [
            f"condition '{name}'" for name in conditions if known.get(name, conditions[name]) != conditions[name]
        ]
        if unlike:
            raise BadRun(str(run.path), f"is not of the same experiment as {first.path}: {', '.join(unlike)} differ")
    seen: dict[str, Sample] = {}
    for run in runs:
        for sample in run.samples():
            if seen.setdefault(sample.id, sample).digest != sample.digest:
                raise BadRun(str(run.path), f"has another sample '{sample.id}' than {first.path}")


def _notes(runs: Sequence[RunFolder]) -> Iterator[str]:
    for run in runs:
        if (status := run.status()) != "done":
            yield f"{run.path} is not complete (status: {status}): resume it, then merge again"
        if any((run.path / name).exists() for name in _REVIEWS):
            yield f"the reviews by people in {run.path} are not merged"
    tools: dict[str, set[str | None]] = {}
    for run in runs:
        for server in run.info.servers:
            tools.setdefault(server.name, set()).add(server.tools_digest)
    for name, digests in tools.items():
        if len(digests) > 1:
            yield f"MCP server '{name}' did not offer the same tools in every run; its answers are not alike"
    for program in sorted({name for run in runs for name in run.info.versions}):
        known = {run.info.versions[program] for run in runs if program in run.info.versions}
        if len(known) > 1:
            yield f"the runs were made with different versions of {program}: {', '.join(sorted(known))}"
    if missing := _missing_shards(runs):
        yield missing


def _missing_shards(runs: Sequence[RunFolder]) -> str | None:
    shards = {run.info.shard for run in runs if run.info.shard is not None}
    of = {Shard.parse(text).of for text in shards}
    if len(of) != 1:
        return None
    (number,) = of
    missing = [str(shard) for shard in (Shard(at, number) for at in range(1, number + 1)) if str(shard) not in shards]
    more = f" and {plural(len(missing) - 10, 'other')}" if len(missing) > 10 else ""
    return f"not all shards are here: {', '.join(missing[:10])}{more} missing" if missing else None


_REVIEWS = ("labels.jsonl", "calibration.jsonl")


def _there(final: Path) -> RunFolder | None:
    return RunFolder.open(final) if final.exists() else None


def _refuse_changed(run: RunFolder) -> None:
    """Raises BadRun if something was added to a merged run."""
    merged = run.info.merged
    if merged is None or _digest(run) != merged.journal or any((run.path / name).exists() for name in _REVIEWS):
        message = "was resumed, scored or reviewed after it was merged: name another --out"
        raise BadRun(str(run.path), message)


def _info(runs: Sequence[RunFolder], name: str, merged: Merged) -> RunInfo:
    plan, infos = runs[0].plan(), [run.widened_info() for run in runs]
    for run in runs[1:]:
        plan = widened(plan, run.plan())
    ids = {sample.id for run in runs for sample in run.samples()}
    return msgspec.structs.replace(
        reduce(with_conditions_of, infos),
        run=name,
        shard=None,
        merged=merged,
        plan=msgspec.structs.replace(plan, samples=len(ids)),
        reports_tool_calls=all(info.reports_tool_calls for info in infos),
        studies=tuple({copy.study: copy for run in runs for copy in run.studies()}.values()),
        host=", ".join(dict.fromkeys(info.host for info in infos)),
    )


def _copy_files(building: Path, runs: Sequence[RunFolder], info: RunInfo) -> None:
    """Everything but the journal."""
    samples = {sample.id: sample for run in runs for sample in run.samples()}
    ordered = sorted(samples.values(), key=lambda sample: (sample.position, sample.id))
    codec = Codec()
    write_durably(building / "samples.jsonl", (codec.line(sample) for sample in ordered))
    folder = RunFolder(building, info)
    with open_regular(runs[0].path / "experiment.yaml", within=runs[0].path) as file:
        write_durably(building / "experiment.yaml", [file.read()])
    of_run = {copy.study: run for run in runs for copy in run.studies()}
    folder.write_studies({copy.file: of_run[copy.study].study(copy) for copy in info.studies})
    for run in reversed(runs):  # for a trial, the archives of the run whose answer counts come last
        for path in sorted((run.path / WORKSPACES).glob("*.tar.gz")):
            make_folder(building / WORKSPACES)
            with open_regular(path, within=run.path) as file:
                write_durably(building / WORKSPACES / path.name, iter(partial(file.read, _BLOCK), b""))
    write_durably(building / "run.json", [msgspec.json.format(codec.line(info), indent=2), b"\n"])


def _write_journal(path: Path, runs: Sequence[RunFolder], name: str) -> tuple[str, list[str]]:
    """The unchanged lines of all runs, between a new head and end; digest, and what was left out."""
    codec, digest = Codec(), sha256()
    overlaps = None if _disjoint(runs) else _Overlaps(runs)
    complete = all(run.status() == "done" for run in runs) and _missing_shards(runs) is None
    ends = [end for run in runs for end in run.events_of(End)]
    last = End(
        at=max((end.at for end in ends), default=runs[0].info.created),
        reason="done" if complete else "interrupted",
        seconds=exact_sum(end.seconds or 0.0 for end in ends if end.command == "run"),
    )

    with path.open("xb") as file:

        def write(line: bytes) -> None:
            file.write(line)
            digest.update(line)

        write(codec.line(Head(format=FORMAT_WITHOUT_STOP, run=name)))
        for number, run in enumerate(runs):
            for line in run.lines():
                if line.startswith((b'{"event":"head"', b'{"event":"end"')):
                    continue
                if overlaps is None or overlaps.counts(number, line):
                    write(line + b"\n")
        write(codec.line(last))
        _sync(file)
    return digest.hexdigest(), overlaps.notes() if overlaps is not None else []


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _disjoint(runs: Sequence[RunFolder]) -> bool:
    """Whether no two of them can share a trial."""
    shards = [Shard.parse(run.info.shard) if run.info.shard is not None else None for run in runs]
    return None not in shards and len(set(shards)) == len(shards) and len({shard.of for shard in shards if shard}) == 1


class _Overlaps:
    """Which lines count if runs may have asked the same trial."""

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self._owner: dict[bytes, int] = {}  # trial → the first run with an answer
        self._answers: list[dict[bytes, bytes]] = [{} for _ in runs]  # per run: trial → digest of its answer's line
        self._twice, self._scores = 0, 0
        for number, run in enumerate(runs):
            for line in run.lines():
                match = _OF_A_TRIAL.match(line)
                if match is not None and match[1] == b"answer":
                    self._owner.setdefault(match[2], number)
                    self._answers[number].setdefault(match[2], blake2b(line, digest_size=8).digest())

    def counts(self, number: int, line: bytes) -> bool:
        """Whether a line of a run is kept."""
        match = _OF_A_TRIAL.match(line)
        if match is None:
            return True
        kind, trial = match.groups()
        owner, answers = self._owner.get(trial, number), self._answers[number]
        if owner == number or trial not in answers:
            return True
        if answers[trial] == self._answers[owner][trial]:  # a copy: it was paid for once
            return False
        self._twice += kind == b"answer"
        self._scores += kind == b"score"
        return kind in (b"answer", b"attempt")  # they cost something; the answer is the second one, and does not count

    def notes(self) -> list[str]:
        """What was left out."""
        if not self._twice:
            return []
        twice, scores = plural(self._twice, "trial"), plural(self._scores, "score")
        note = f"{twice} had an answer in two runs: that of the earlier run counts, and the other's cost is in the sums"
        return [f"{note}; {scores} of the other are left out with what they cost"]
