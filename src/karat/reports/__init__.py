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
from pathlib import Path
from typing import Protocol

from karat.errors import BadOption
from karat.journal import RunFolder
from karat.summary import Summary

__all__ = ["Report", "save"]


class Report(Protocol):
    """Shapes a summary. An inner `Options` model (pydantic) is all that may be asked of it.

    `render` returns file name → text, at least one. One file goes to standard output
    unless a path is given; several need one. `run` is there for texts that no summary
    holds; a report never writes to it, and the same run gives the same bytes.
    """

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]: ...


def save(files: Mapping[str, str], out: Path) -> list[Path]:
    """Writes what a report rendered: one file as `out` itself, or into it where it is a folder; several into it.

    Returns the paths. Raises BadOption where that cannot be, and where a name is more than a
    name: a report writes nowhere but there.
    """
    for name in files:
        if name in ("", ".", "..") or set(name) & set("/\\\0"):
            raise BadOption("--out", f"the report calls a file {name!r}; it must be a plain name, without folders")
    into = len(files) > 1 or out.is_dir()
    try:
        (out if into else out.parent).mkdir(parents=True, exist_ok=True)
        paths = []
        for name, text in files.items():
            path = out / name if into else out
            path.write_text(text, encoding="utf-8", errors="replace", newline="")
            paths.append(path)
    except OSError as error:
        raise BadOption("--out", f"cannot write {error.filename or out}: {error.strerror}") from error
    return paths
