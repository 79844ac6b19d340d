"""What the tables of studies say alike: who took part, under which condition."""

from __future__ import annotations

from rich.text import Text

from karat import formats
from karat.document.terminal_layout import Cell
from karat.kinds.study.analysis.model import Participants, StudyCondition

__all__ = ["FLOOR", "PEOPLE", "heading", "low", "people_cells", "took_part"]

FLOOR = " (floor)"
PEOPLE = ("asked", "answered", "parsed")
_FLAGGED = 0.8  # of coverage


def took_part(people: Participants) -> str:
    """How many were asked, answered, and could be read.

    >>> took_part(Participants(planned=10, asked=10, answered=9, parsed=8, stopped=1))
    '10 asked, 9 answered, 8 parsed'
    """
    counts = zip((people.asked, people.answered, people.parsed), PEOPLE, strict=True)
    return ", ".join(f"{formats.count(count)} {word}" for count, word in counts)


def people_cells(people: Participants) -> list[Cell]:
    """The same as three cells, red where somebody is missing."""
    counts = (people.asked, people.answered, people.parsed)
    before = (people.planned, people.asked, people.answered)
    return [(formats.count(count), "red" if count < more else "") for count, more in zip(counts, before, strict=True)]


def heading(one: StudyCondition, name: str = "", people: Participants | None = None) -> Text:
    """A line over all columns: the condition (or `name`), and who took part."""
    said = name or f"{formats.excerpt(one.condition, 48)}{FLOOR if one.floor else ''}"
    return Text(said, style="bold").append(f": {took_part(people or one.participants)}", style="not bold dim")


def low(coverage: float | None) -> str:
    """The style of a coverage."""
    return "red" if coverage is not None and coverage < _FLAGGED else ""
