"""The examples that `karat init` writes: one folder a kind, copied as it is.

A file that ends in `.in` is written without it: so an example's Python is no module of karat's.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec

from karat.errors import BadOption, did_you_mean

__all__ = ["Scaffolded", "scaffold"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_KINDS = ("golden", "conversation", "study")


class Scaffolded(msgspec.Struct, frozen=True, kw_only=True):
    """`karat init --json`."""

    format: int = FORMAT_VERSION
    kind: str
    folder: str
    files: tuple[str, ...]  # paths, as written


def scaffold(kind: str, folder: Path) -> Scaffolded:
    """Writes the example of a kind. Raises BadOption where there is none, or where a file is in the way."""
    source = files(__name__) / kind
    if kind not in _KINDS:
        raise BadOption("KIND", f"there is no kind '{kind}'{did_you_mean(kind, _KINDS)}")
    if not source.is_dir():
        raise BadOption(
            "KIND", f"an example of the kind '{kind}' comes with a later version; `golden` and `conversation` are here"
        )
    texts = {folder / entry.name.removesuffix(".in"): entry.read_bytes() for entry in source.iterdir()}
    there = sorted(path.name for path in texts if path.exists() or path.is_symlink())
    if there:
        raise BadOption("DIR", f"{folder} already holds {', '.join(there)}; name another folder (nothing was written)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in sorted(texts.items()):
            with path.open("xb") as file:
                file.write(data)
    except OSError as error:
        raise BadOption("DIR", f"cannot write {error.filename or folder}: {error.strerror}") from error
    return Scaffolded(kind=kind, folder=str(folder), files=tuple(str(path) for path in sorted(texts)))
