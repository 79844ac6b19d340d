"""What `karat import` shows: what was written and read, what contradicts itself, what a person must decide."""

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

__all__ = ["Imported", "ImportedDraft", "import_"]

_SHOWN = 40  # doubts, and open points, of a draft; DECISIONS.md and --json have all
_WIDEST = 150  # columns of one of them
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


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """`karat import --json`."""

    format: int = OUTPUT_FORMAT
    kind: str
    drafts: tuple[ImportedDraft, ...]

    def __str__(self) -> str:
        blocks = [line for draft in self.drafts for line in _block(draft, alone=len(self.drafts) == 1)]
        return formats.clean("\n".join([*_table(self.drafts), *blocks])) + "\n"


def import_(kind: str, path: Path, *, out: Path | None, force: bool, settings: Sequence[str]) -> Imported:
    """Drafts and writes. Raises BadDataset where nothing can be read, BadOption where files are in the way."""
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
    return Imported(kind=kind, drafts=tuple(imported))


def _table(drafts: Sequence[ImportedDraft]) -> list[str]:
    """A row a draft, a column a count, and what is open."""
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
    """What was written, and what to look at; what is open only of a draft that stands alone."""
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
        lines += ["", "To be decided, and named by `karat check`:"]
        lines += _rows([f"{point.place}: {point.question}" for point in draft.open])
    return lines


def _rows(texts: Sequence[str]) -> list[str]:
    left = len(texts) - _SHOWN
    more = [f"  … and {formats.count(left)} more; DECISIONS.md or --json has all"] if left > 0 else []
    return [*(f"  {formats.excerpt(text, _WIDEST)}" for text in texts[:_SHOWN]), *more]
