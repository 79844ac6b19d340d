"""In which other forms a study can be shown: wordings of its materials, and other names and amounts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from karat.kinds.study.format import StudyFile
from karat.kinds.study.relabel import WORDING, changes

__all__ = ["has_relabelled", "wordings", "wordings_of"]


def wordings_of(study: StudyFile) -> tuple[str, ...]:
    """What `dataset.wording` may be. Sorted."""
    return wordings(study.folder / prompt for prompt in study.materials)


def wordings(materials: Iterable[Path]) -> tuple[str, ...]:
    """The wordings of some of these files: `plain`, where `gain.plain.md` lies beside `gain.md`. Sorted."""
    found: dict[Path, list[str]] = {}
    names: set[str] = set()
    for file in materials:
        if file.parent not in found:
            found[file.parent] = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
        for name in found[file.parent]:
            wording = name.removeprefix(f"{file.stem}.").removesuffix(file.suffix)
            if name == f"{file.stem}.{wording}{file.suffix}" and "." not in wording:
                names.add(wording)
    return tuple(sorted(names - {WORDING}))


def has_relabelled(study: StudyFile) -> bool:
    """Whether `dataset.relabel` changes anything that participants see."""
    if any(changes(arm) for arm in study.arms.values()):
        return True
    files = [study.folder / prompt for prompt in study.materials]
    return any(file.with_suffix(f".{WORDING}{file.suffix}").is_file() for file in files)
