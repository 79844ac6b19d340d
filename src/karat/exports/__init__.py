"""What a report is. One file a report; each name is the file's name.

A report gives a summary a shape; it computes nothing. Numbers come written from
`karat.formats`, foreign text (questions, answers, messages) goes through its `clean`.
The smallest report is a class with `render` that returns one file:

    class Names:
        def render(self, summary, run):
            return {"names.txt": "\\n".join(summary.conditions)}
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TextIO

from karat.analysis import Summary
from karat.errors import BadOption
from karat.files import Streamed
from karat.journal import RunFolder

__all__ = ["Report", "Streamed", "save"]


class Report(Protocol):
    """Shapes a summary. An inner `Options` model (pydantic) is all that may be asked of it.

    `render` returns file name → text, at least one. One file goes to standard output
    unless a path is given; several need one. `run` is there for texts that no summary
    holds; a report never writes to it, and the same run gives the same bytes. One that is too
    large for memory returns `Streamed`. A report that has something to say of some kinds of dataset
    alone names them, `kinds = ("study",)`: it is refused for runs over others. `absolute_paths = True`: what is
    written is listed with absolute paths, because other programs need them. `shows_corrected = True`: it shows
    `summary.calibrated`, where that is set.
    """

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]: ...


def save(files: Mapping[str, str], out: Path) -> list[Path]:
    """Writes what a report rendered: one file as `out` itself, or into it where it is a folder; several into it.

    Returns the paths. Raises BadOption where that cannot be, and where a name is more than a
    name: a report writes nowhere but there.
    """
    if isinstance(files, Streamed):
        return _streamed(files, out)
    for name in files:
        for part in name.split("/"):
            _require_plain(part)
    into = len(files) > 1 or out.is_dir()
    try:
        (out if into else out.parent).mkdir(parents=True, exist_ok=True)
        paths = []
        for name, text in files.items():
            path = _placed(name, out) if into else out
            path.write_text(text, encoding="utf-8", errors="replace", newline="")
            paths.append(path)
    except OSError as error:
        raise BadOption("--out", f"cannot write {error.filename or out}: {error.strerror}") from error
    return paths


def _require_plain(name: str) -> None:
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise BadOption("--out", f"the report calls a file {name!r}; it must be a plain name, without folders")


def _streamed(files: Streamed, out: Path) -> list[Path]:
    paths: dict[str, Path] = {}
    try:
        with ExitStack() as stack:
            open_files: dict[str, TextIO] = {}
            for name, text in files.pieces():
                again = name in paths
                if not again:
                    paths[name] = _placed(name, out)
                if "/" in name:
                    with paths[name].open(
                        "a" if again else "w", encoding="utf-8", errors="replace", newline=""
                    ) as file:
                        file.write(text)
                    continue
                if name not in open_files:
                    opened = paths[name].open("w", encoding="utf-8", errors="replace", newline="")
                    open_files[name] = stack.enter_context(opened)
                open_files[name].write(text)
    except OSError as error:
        raise BadOption("--out", f"cannot write {error.filename or out}: {error.strerror}") from error
    return list(paths.values())


def _placed(name: str, out: Path) -> Path:
    parts = name.split("/")
    for part in parts:
        _require_plain(part)
    path = out.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
