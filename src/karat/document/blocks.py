"""What a section of a page is made of. Values only: templates draw them, and escape every text in them.

A text in a block is plain, and may be foreign: control characters and all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from karat.document.charts import Chart

__all__ = [
    "Bar",
    "Block",
    "Cell",
    "Column",
    "Facts",
    "Figure",
    "Fold",
    "Group",
    "Listing",
    "Low",
    "LowAnswer",
    "LowTurn",
    "Note",
    "Row",
    "Section",
    "Span",
    "Table",
    "columns",
    "kind_of",
    "numbers",
    "words",
]

_WIDE = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A value with its interval, to be drawn on a line from `start` to `end`."""

    value: float
    low: float | None
    high: float | None
    start: float
    end: float
    zero: float | None = None  # where a line stands that means something, such as no difference
    color: int = 0  # which of the categories

    def x(self, value: float) -> float:
        """Where a value stands, from 0 to 100."""
        if self.end <= self.start:
            return _WIDE / 2
        return round(min(_WIDE, max(0.0, _WIDE * (value - self.start) / (self.end - self.start))), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """Parts of a whole, each with the name of its class."""

    parts: tuple[tuple[str, float], ...]  # (class, share of one)

    def places(self) -> list[tuple[str, float, float]]:
        """Class, start and width, from 0 to 100."""
        found, at = [], 0.0
        for name, share in self.parts:
            found.append((name, round(_WIDE * at, 2), round(_WIDE * share, 2)))
            at += share
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One cell. A second line is quieter."""

    text: str
    below: str = ""
    number: bool = True  # set right, on one line
    tone: Literal["", "good", "bad", "quiet"] = ""
    drawn: Span | Bar | None = None
    code: bool = False  # read letter by letter


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A heading."""

    text: str
    number: bool = True
    told: str = ""  # what it means, where the word alone does not say


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A name and its cells, one a further column."""

    name: str
    cells: tuple[Cell, ...]
    color: int | None = None  # which of the categories stands for the name in charts
    total: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A heading over the rows that follow."""

    name: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows under headings; the first column holds names."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row | Group, ...]
    legend: str = ""
    folded: bool = False  # shown only when it is opened; without script and on paper as well
    slim: bool = False  # no wider than its content
    matrix: bool = False  # its values are what the page is about


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A chart with its table."""

    chart: Chart


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A paragraph, or a list of them."""

    texts: tuple[str, ...]
    tone: Literal["", "warning", "quiet"] = ""
    title: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Terms and what holds for them."""

    items: tuple[tuple[str, str], ...]
    title: str = ""
    code: bool = False  # values are read letter by letter


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A long text, letter by letter."""

    title: str
    text: str
    folded: bool = True
    limit: int = 64_000


@dataclass(frozen=True, kw_only=True, slots=True)
class LowTurn:
    """One of several turns: what was asked, what was wanted, what was said."""

    question: str
    golden: str | None
    said: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LowAnswer:
    """How one condition answered a question that went badly."""

    condition: str
    color: int
    score: str  # mean, spread, n
    reason: str | None
    answer: str | None  # Markdown
    excerpt: bool = False  # whether `answer` is only its beginning
    turns: tuple[LowTurn, ...] = ()  # where there are several; then `answer` is None
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Low:
    """A question that went badly."""

    sample: str
    question: str
    score: str  # metric, mean, gap
    golden: str | None  # Markdown; None: there is none, or it is not at hand
    answers: tuple[LowAnswer, ...]
    limit: int = 8_000  # characters of a golden answer or an answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """Blocks that are shown when they are asked for."""

    title: str
    blocks: tuple[Block, ...]


Block = Table | Figure | Note | Facts | Listing | Low | Fold


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of the page, with a title of its own."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""


def kind_of(value: Block | Row | Group | Span | Bar) -> str:
    """The macro that draws it."""
    return type(value).__name__.lower()


def numbers(*texts: str) -> tuple[Cell, ...]:
    """Cells of numbers."""
    return tuple(Cell(text=text) for text in texts)


def words(text: str | None, *, below: str = "", tone: Literal["", "good", "bad", "quiet"] = "") -> Cell:
    """A cell of text."""
    return Cell(text="" if text is None else text, below=below, number=False, tone=tone)


def columns(*heads: str, text: Sequence[str] = ()) -> tuple[Column, ...]:
    """Headings: the first is that of names, the others of numbers but for those in `text`."""
    return tuple(Column(text=head, number=place > 0 and head not in text) for place, head in enumerate(heads))
