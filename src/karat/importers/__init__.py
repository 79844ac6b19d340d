"""What an importer is. There is one file per importer, which gives it its name.

An importer reads what people already have. A `ResultImporter` turns results of another tool into run
folders. An `Importer` drafts a dataset from other material: it decides nothing that the material does
not say. What a person must decide stays undecided in the draft, so that `karat check` reports it, and
is listed with the place in the material that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

import msgspec

from karat.errors import BadOption
from karat.importers._results import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    ResultImporter,
    Stated,
    bounded,
)

__all__ = [
    "Doubt",
    "Draft",
    "Findings",
    "ImportedCondition",
    "ImportedFailure",
    "ImportedRun",
    "ImportedScore",
    "ImportedTrial",
    "Importer",
    "Open",
    "ResultImporter",
    "Stated",
    "bounded",
    "save",
]


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a person must decide."""

    place: str  # in the draft, as `karat check` names it
    question: str  # what to decide, and what the material says about it
    source: str  # the file, line and place that it is about


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the material that a person should look at; the draft contains it unchanged, or not at all."""

    kind: str  # "contradiction", "unreadable", "left out" or "changed"
    message: str
    source: str


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The files to write for one piece of material, and what was noticed in it."""

    name: str  # suitable as the name of a folder
    files: Mapping[str, str]  # path below the folder, with at most one subfolder → text
    open: tuple[Open, ...] = ()  # in the order of the draft
    doubts: tuple[Doubt, ...] = ()
    counts: Mapping[str, int] = {}  # what was found and what became of it; each key is a column
    notes: tuple[str, ...] = ()  # further lines worth reading


class Importer(Protocol):
    """Drafts datasets from material. All its settings are in an inner `Options` model (pydantic).

    `drafts` writes nothing, starts nothing, and never uses anything in the material as a path, a
    template or code. It raises BadDataset if nothing can be read at all; faults in parts of the
    material become doubts. The same material gives the same drafts.
    """

    def drafts(self, path: Path) -> Sequence[Draft]: ...


def save(draft: Draft, out: Path, *, force: bool = False) -> list[Path]:
    """Writes a draft into `out`, and returns the paths.

    Raises BadOption if files are in the way (without `force`), and for names that lead out of `out`.
    """
    paths = {out / _inside(name): text for name, text in draft.files.items()}
    there = sorted(str(path.relative_to(out)) for path in paths if path.exists() or path.is_symlink())
    if there and not force:
        raise BadOption(
            "--out", f"{out} already holds {', '.join(there[:3])}{' …' if len(there) > 3 else ''}; "
            "name another folder, or write over them with --force (nothing was written)"
        )  # fmt: skip
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.resolve() != out.resolve() / path.parent.relative_to(out):
                raise BadOption("--out", f"{path.parent} leads to another folder")
            path.unlink(missing_ok=True)  # a link is replaced, never followed
            path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise BadOption("--out", f"cannot write {error.filename or out}: {error.strerror}") from error
    return list(paths)


def _inside(name: str) -> str:
    parts = PurePosixPath(name).parts
    plain = all(part not in ("", ".", "..", "/") and not set(part) & set("\\\0:") for part in parts)
    if not plain or not 1 <= len(parts) <= 2:
        raise BadOption("--out", f"the importer names a file {name!r}; it must be in the folder, or one folder below")
    return name
