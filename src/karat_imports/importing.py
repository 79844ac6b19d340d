"""The output of `karat import`: what was read and written, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from karat import formats
from karat.cli.values import settings_of
from karat.errors import BadOption
from karat.formats import OUTPUT_FORMAT
from karat_imports.imported import import_results as import_runs
from karat_imports.importers._unread import options_of
from karat_imports.importers.csv import Csv

_WIDEST = 150  # columns of a line
_SINGULAR = {"answers": "answer", "failures": "failure", "scores": "score"}


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
    first_row: Mapping[str, str] = {}  # role → what its text begins with, as it was read


class ImportedResults(msgspec.Struct, frozen=True, kw_only=True):
    """`karat import FORMAT --json`, of results."""

    format: int = OUTPUT_FORMAT
    tool: str
    runs: tuple[ImportedResult, ...]

    def __str__(self) -> str:
        lines = []
        for run in self.runs:
            size = (
                f"{formats.plural(run.samples, 'sample')} × "
                f"{formats.plural(len(run.conditions), 'condition')} × "
                f"{formats.plural(run.repetitions, 'repetition')}"
            )
            by_noun = {**run.counts}
            # a table may hold only what is said of answers
            if self.tool == Csv.listed_as and "answer" not in run.first_row:
                unanswered = by_noun.pop("answers", 0)
                by_noun = {"rows without the answers": unanswered, **by_noun}

            counted = []
            for noun, count in by_noun.items():
                if noun in _SINGULAR:
                    said = formats.plural(count, _SINGULAR[noun])
                else:
                    said = f"{formats.count(count)} {noun}"

                if count:
                    counted.append(said)

            counts = ", ".join(counted)
            lines.append(
                f"{run.folder}: "
                f"{'imported before' if run.existed else counts or 'nothing in it'}; {size}"
            )
            lines += [f"  conditions: {formats.excerpt(', '.join(run.conditions), _WIDEST)}"]
            if run.first_row:
                lines.append("  first row:")
                lines += [f"    {role}: {text}" for role, text in run.first_row.items()]

            lines += [f"  {note}" for note in run.notes]
            for entry in run.findings:
                if entry.count > 1:
                    times = f"{formats.count(entry.count)} × "
                else:
                    times = ""

                lines.append(
                    f"  {entry.kind}: {times}{entry.what} "
                    f"({formats.excerpt('; '.join(entry.places), 80)})"
                )

        return formats.clean("\n".join(lines)) + "\n"


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
    options = settings_of(settings)
    if columns:
        pairs = [pair.partition("=") for pair in columns]
        if wrong := next((target for target, equals, _ in pairs if not equals), None):
            raise BadOption(f"--map {wrong}", "expected TARGET=COLUMN, e.g. --map answer=output")
        options |= options_of([(target, column) for target, _, column in pairs])

    runs = []
    for result in import_runs(kind, paths, results, options=options, cluster=cluster):
        plan = result.run.info.plan
        findings = []
        for fate, text, count, at in result.findings:
            findings.append(Finding(kind=fate, what=text, count=count, places=at))

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
                first_row=result.run.info.dataset.first_row,
            )
        )

    return ImportedResults(tool=kind, runs=tuple(runs))
