"""What a report is. Each report is one file, and has its name.

A report formats a summary; it computes nothing. `karat.formats` writes the numbers, and its `clean`
must be applied to foreign text (questions, answers, messages). The smallest report is a class whose
`render` returns one file:

    class Names:
        def render(self, summary, run):
            return {"names.txt": "\\n".join(summary.conditions)}
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol

from karat.analysis import Summary
from karat.errors import BadOption
from karat.files import Streamed
from karat.journal import RunFolder

__all__ = ["Report", "Streamed", "epoch", "save"]


class Report(Protocol):
    """Formats a summary. Its options are an inner pydantic model, `Options`.

    `render` returns file name → text, for at least one file. A single file goes to standard output
    unless a path is given; several need a path. Use `run` for texts that are not in the summary,
    and never write to it; the same run must give the same bytes. A file too large for memory is
    returned as `Streamed`. A report for some kinds of dataset only names them, `kinds =
    ("study",)`, and is refused for runs over others. `absolute_paths = True` lists the written
    files with absolute paths, because other programs need them. `shows_corrected = True` says that
    it shows `summary.calibrated`, if that is set.
    """

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]: ...


def epoch(summary: Summary) -> int:
    """When the run was made, in seconds since 1970; 0 where that cannot be read."""
    try:
        return int(datetime.fromisoformat(summary.created).timestamp())
    except (ValueError, OverflowError, OSError):  # a run folder may come from a stranger
        return 0


def save(files: Mapping[str, str], out: Path, *, option: str = "--out") -> list[Path]:
    """Writes a rendered report: one file as `out`, or into `out` if that is a folder; several files
    into `out`.

    Returns the paths. Raises BadOption if that is impossible, or if a name leads out of the folder:
    a report writes nowhere else.
    """
    streamed = isinstance(files, Streamed)
    for name in () if streamed else files:  # before anything is written
        _require_plain(name)
    into = streamed or len(files) > 1 or out.is_dir()
    paths: dict[str, Path] = {}
    try:
        with ExitStack() as stack:
            open_files: dict[str, IO[str]] = {}
            for name, text in files.pieces() if isinstance(files, Streamed) else files.items():
                mode = "a" if name in paths else "w"
                if name not in paths:
                    _require_plain(name)
                    if into:
                        path = out / name
                    else:
                        path = out

                    path.parent.mkdir(parents=True, exist_ok=True)
                    paths[name] = path

                if name in open_files:
                    open_files[name].write(text)
                    continue

                file = paths[name].open(mode, encoding="utf-8", errors="replace", newline="")
                if "/" in name:
                    with file:
                        file.write(text)
                else:
                    open_files[name] = stack.enter_context(file)
                    file.write(text)
    except OSError as error:
        raise BadOption(
            option, f"cannot write {error.filename or out}: {error.strerror}"
        ) from error

    return list(paths.values())


def _require_plain(name: str) -> None:
    for part in name.split("/"):
        if part in ("", ".", "..") or set(part) & set("\\\0"):
            raise BadOption(
                "--out",
                f"the report calls a file {part!r}; it must be a plain name, without folders",
            )
