"""`RUN:CONDITION` → a run and a condition."""

from __future__ import annotations

from pathlib import Path

from karat import api
from karat.errors import BadOption, BadRun
from karat.journal import RunFolder

__all__ = ["split"]


def split(text: str, *, results: Path, otherwise: RunFolder | None = None) -> tuple[RunFolder, str | None]:
    """The run, and the condition where one is named; both may hold a colon themselves.

    `otherwise` is the run of a text that begins with the colon. Raises BadRun, BadOption.
    """
    if text.startswith(":"):
        if otherwise is None:
            raise BadOption("compare", f"'{text}' names no run; write RUN{text}")
        return otherwise, text[1:]
    complaint: BadRun | None = None
    for place in [len(text), *(place for place, char in enumerate(text) if char == ":")]:
        try:
            return api.open(text[:place], results=results), text[place + 1 :] or None
        except BadRun as error:
            # Of several, the complaint about the shortest: what stands before the first colon is most likely the run.
            complaint = error if complaint is None or len(error.path) < len(complaint.path) else complaint
    assert complaint is not None
    raise complaint
