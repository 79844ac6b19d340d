"""The output of `karat import`: what was read and written, contradictions, and what a person must decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from karat import formats, plugins
from karat.cli.output import aligned
from karat.cli.values import settings_of
from karat.errors import BadExperiment, BadOption
from karat.formats import OUTPUT_FORMAT
from karat.importers import Doubt, Draft, Open, save

__all__ = [
    "ImportedDraft",
    "ImportedDrafts",
    "ImportedResult",
    "ImportedResults",
    "import_",
    "import_results",
    "is_of_results",
]

_SHOWN = 40  # doubts, and open points, per draft; DECISIONS.md and --json have all
_WIDEST = 150  # columns of each
_TITLES = {
    "contradiction": "contradicts itself",
    "unreadable": "could not be read",
    "changed": "was changed",
    "left out": "is not in the draft",
}


class ImportedDraft(msgspec.Struct, frozen=True, kw_only=True):
    """One draft."""

    name: str
    folder: str  # as it was written
    files: tuple[str, ...]
    counts: Mapping[str, int]
    notes: tuple[str, ...]
    open: tuple[Open, ...]
    doubts: tuple[Doubt, ...]


class ImportedDrafts(msgspec.Struct, frozen=True, kw_only=True):
    """`karat import --json`."""

    format: int = OUTPUT_FORMAT
    kind: str
    drafts: tuple[ImportedDraft, ...]

    def __str__(self) -> str:
        blocks = [line for draft in self.drafts for line in _block(draft, alone=len(self.drafts) == 1)]
        return formats.clean("\n".join([*_table(self.drafts), *blocks])) + "\n"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of problem met while reading, and how often."""

    kind: str  # "unreadable", "left out" or "changed"
    what: str
    count: int
    places: tuple[str, ...]  # the first few


class ImportedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run folder made from another tool's results."""

    run: str
    folder: str
    name: str
    existed: bool  # the same files were imported before
    conditions: tuple[str, ...]
    samples: int
    repetitions: int
    counts: Mapping[str, int]  # answers, failures, scores; empty if the folder existed
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


class ImportedResults(msgspec.Struct, frozen=True, kw_only=True):
    """`karat import FORMAT --json`, of results."""

    format: int = OUTPUT_FORMAT
    tool: str
    runs: tuple[ImportedResult, ...]

    def __str__(self) -> str:
        lines = []
        for run in self.runs:
            size = (
                f"{formats.plural(run.samples, 'sample')} × {formats.plural(len(run.conditions), 'condition')} "
                f"× {formats.plural(run.repetitions, 'repetition')}"
            )
            counts = ", ".join(f"{formats.count(count)} {noun}" for noun, count in run.counts.items() if count)
            lines.append(f"{run.folder}: {'imported before' if run.existed else counts or 'nothing in it'}; {size}")
            lines += [f"  conditions: {formats.excerpt(', '.join(run.conditions), _WIDEST)}"]
            lines += [f"  {note}" for note in run.notes]
            for entry in run.findings:
                times = f"{formats.count(entry.count)} × " if entry.count > 1 else ""
                lines.append(f"  {entry.kind}: {times}{entry.what} ({formats.excerpt('; '.join(entry.places), 80)})")
        return formats.clean("\n".join(lines)) + "\n"


def is_of_results(kind: str) -> bool:
    """Whether an importer turns results into run folders; otherwise it drafts a dataset."""
    return hasattr(plugins.find("importers", kind, allow_code=False), "runs")


def import_results(
    kind: str,
    paths: Sequence[Path],
    *,
    results: Path,
    columns: Sequence[str],
    settings: Sequence[str],
    cluster: str | None = None,
) -> ImportedResults:
    """Makes run folders. Raises BadDataset if nothing can be read, BadOption for bad options."""
    from karat.execution.imported import import_results as import_runs

    options = settings_of(settings)
    if columns:
        pairs = [pair.partition("=") for pair in columns]
        if wrong := next((target for target, equals, _ in pairs if not equals), None):
            raise BadOption(f"--map {wrong}", "want TARGET=COLUMN, e.g. --map answer=output")
        if len({target for target, _, _ in pairs}) < len(pairs):
            raise BadOption("--map", "names a target twice")
        options["map"] = {target: column for target, _, column in pairs}
    runs = []
    for result in import_runs(kind, paths, results, options=options, cluster=cluster):
        plan = result.run.info.plan
        findings = [Finding(kind=fate, what=text, count=count, places=at) for fate, text, count, at in result.findings]
        runs.append(
            ImportedResult(
                run=result.run.info.run,
                folder=str(result.run.path),
                name=result.run.info.name,
                existed=not result.counts,
                conditions=plan.conditions,
                samples=plan.samples,
                repetitions=plan.repetitions,
                counts=result.counts,
                findings=tuple(findings),
                notes=tuple(result.findings.notes),
            )
        )
    return ImportedResults(tool=kind, runs=tuple(runs))


def import_(kind: str, path: Path, *, out: Path | None, force: bool, settings: Sequence[str]) -> ImportedDrafts:
    """Drafts and writes. Raises BadDataset if nothing can be read, BadOption if files are in the way."""
    plugin = plugins.find("importers", kind, allow_code=False)
    checked, faults = plugins.check_options(plugin, settings_of(settings), place="--set")
    if faults:
        raise BadExperiment("--set", faults)
    drafts: Sequence[Draft] = plugins.build(plugin, checked).drafts(path)
    home = out or Path()
    folders = [home if out is not None and len(drafts) == 1 else home / draft.name for draft in drafts]
    for twice, count in Counter(folders).items():
        if count > 1:
            raise BadOption("PATH", f"{count} drafts are called '{twice.name}'; import them one by one")
    imported = []
    for draft, folder in zip(drafts, folders, strict=True):
        files = tuple(str(written) for written in save(draft, folder, force=force))
        about = {name: getattr(draft, name) for name in ("name", "counts", "notes", "open", "doubts")}
        imported.append(ImportedDraft(folder=str(folder), files=files, **about))
    return ImportedDrafts(kind=kind, drafts=tuple(imported))


def _table(drafts: Sequence[ImportedDraft]) -> list[str]:
    """One row per draft: its counts, and what is open."""
    columns = list(dict.fromkeys(key for draft in drafts for key in draft.counts))
    head = ["draft", *columns, "open"]
    rows = [
        [draft.name, *(formats.count(draft.counts.get(key)) for key in columns), formats.count(len(draft.open))]
        for draft in drafts
    ]
    if len(rows) > 1:
        sums = [sum(draft.counts.get(key, 0) for draft in drafts) for key in columns]
        opened = sum(len(draft.open) for draft in drafts)
        rows.append(["all", *map(formats.count, (*sums, opened))])
    return aligned([head, *rows], right=range(1, len(head)))


def _block(draft: ImportedDraft, *, alone: bool) -> list[str]:
    """What was written, and what to check; open points only for a single draft."""
    wrote = f"{draft.folder}: {formats.plural(len(draft.files), 'file')}"
    lines = ["", wrote, *(f"  {note}" for note in draft.notes)]
    for kind, title in _TITLES.items():
        doubts = [doubt for doubt in draft.doubts if doubt.kind == kind]
        if not doubts:
            continue
        if not alone:
            lines.append(f"  {formats.count(len(doubts))} × {title}")
            continue
        lines += ["", f"{title[:1].upper()}{title[1:]}:"]
        lines += _rows([f"{doubt.message} – {doubt.source}" for doubt in doubts])
    if alone and draft.open:
        lines += ["", "For you to decide (`karat check` names these too):"]
        lines += _rows([f"{point.place}: {point.question}" for point in draft.open])
    return lines


def _rows(texts: Sequence[str]) -> list[str]:
    left = len(texts) - _SHOWN
    more = [f"  … and {formats.count(left)} more; DECISIONS.md or --json has all"] if left > 0 else []
    return [*(f"  {formats.excerpt(text, _WIDEST)}" for text in texts[:_SHOWN]), *more]
