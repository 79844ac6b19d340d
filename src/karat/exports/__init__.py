"""What a report is. Each report is one file, and has its name.

A report formats a summary; it computes nothing. `karat.formats` writes the numbers, and its `clean` must be
applied to foreign text (questions, answers, messages). The smallest report is a class whose `render` returns
one file:

    class Names:
        def render(self, summary, run):
            return {"names.txt": "\\n".join(summary.conditions)}
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Protocol, TextIO

from karat.analysis import Summary
from karat.errors import BadOption
from karat.files import Streamed
from karat.journal import RunFolder

__all__ = ["Report", "Streamed", "epoch", "save"]


class Report(Protocol):
    """Formats a summary. Its options are an inner pydantic model, `Options`.

    `render` returns file name → text, for at least one file. A single file goes to standard output
    unless a path is given; several need a path. Use `run` for texts that are not in the summary, and
    never write to it; the same run must give the same bytes. A file too large for memory is returned
    as `Streamed`. A report for some kinds of dataset only names them, `kinds = ("study",)`, and is
    refused for runs over others. `absolute_paths = True` lists the written files with absolute paths,
    because other programs need them. `shows_corrected = True` says that it shows `summary.calibrated`,
    if that is set.
    """

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]: ...


def epoch(summary: Summary) -> int:
    """When the run was made, in seconds since 1970; 0 where that cannot be read."""
    try:
        return int(datetime.fromisoformat(summary.created).timestamp())
    except (ValueError, OverflowError, OSError):  # a run folder may come from a stranger
        return 0


def save(files: Mapping[str, str], out: Path, *, option: str = "--out") -> list[Path]:
    """Writes a rendered report: one file as `out`, or into `out` if that is a folder; several files into `out`.

    Returns the paths. Raises BadOption if that is impossible, or if a name contains a folder: a report writes
    nowhere else.
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
        raise BadOption(option, f"cannot write {error.filename or out}: {error.strerror}") from error
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
