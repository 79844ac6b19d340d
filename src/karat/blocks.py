"""What a report is made of, for every renderer: sections of blocks, tables of typed cells.

Values only. Renderers (`karat.document.render`, the viewer's templates) write every cell with
`written`, and know nothing of metrics, dataset kinds or statistics. Text in a block is plain, and
may be foreign, with control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from karat import formats

Tone = Literal["", "good", "bad", "quiet"]
_WIDE = 100.0
_LONGEST_TITLE = 380  # columns: five lines, however long the names in it are
LABEL = 48  # columns of a name on an axis


class Scale(msgspec.Struct, frozen=True):
    """The range in which intervals are drawn, and a reference value such as no difference."""

    start: float
    end: float
    zero: float | None = None


class Bar(msgspec.Struct, frozen=True):
    """Parts of a whole: (class, share of one)."""

    parts: tuple[tuple[str, float], ...]

    def places(self) -> list[tuple[str, float, float]]:
        """Class, start and width, from 0 to 100."""
        places, at = [], 0.0
        for name, share in self.parts:
            places.append((name, round(_WIDE * at, 2), round(_WIDE * share, 2)))
            at += share

        return places


class Text(msgspec.Struct, frozen=True):
    """Text.

    A second line is quieter; `code` is set in monospace. `link`: a page's link target, never
    foreign.
    """

    text: str | None
    below: str = ""
    tone: Tone = ""
    code: bool = False
    link: str = ""


class Number(msgspec.Struct, frozen=True):
    """A number with a fixed count of decimals.

    `bar`: its size as a share of the largest in its column.
    """

    value: float | None
    digits: int = 2
    signed: bool = False
    tone: Tone = ""
    bar: Bar | None = None
    below: str = ""


class Share(msgspec.Struct, frozen=True):
    """A share of one, shown in percent."""

    value: float | None
    tone: Tone = ""
    bar: Bar | None = None
    below: str = ""


class Count(msgspec.Struct, frozen=True):
    """A count; `of`: the expected count, where some are missing."""

    value: int | None
    of: int | None = None
    tone: Tone = ""
    bar: Bar | None = None
    below: str = ""
    link: str = ""


class Money(msgspec.Struct, frozen=True):
    """Dollars. `unknown`: how many parts of the sum have no known price."""

    known: float | None
    unknown: int = 0


class Duration(msgspec.Struct, frozen=True):
    """A time span."""

    seconds: float | None


class PValue(msgspec.Struct, frozen=True):
    """A p-value."""

    value: float | None


class Range(msgspec.Struct, frozen=True):
    """A range from one value to another, such as bounds."""

    low: float | None
    high: float | None
    percent: bool = False


class Estimate(msgspec.Struct, frozen=True):
    """A value with its interval; drawn where there is a scale.

    `percent`: a share; with `signed` a difference of shares, in percentage points. `mark` follows
    the interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    percent: bool = False
    signed: bool = False
    digits: int = 2
    tone: Tone = ""
    scale: Scale | None = None
    color: int = 0  # which of the categories
    mark: str = ""
    below: str = ""  # instead of the interval, where there is none


Cell = Text | Number | Share | Count | Money | Duration | PValue | Range | Estimate


class _Found(Protocol):
    """Any result with an interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def estimate(found: _Found | None, **shown: Any) -> Estimate:
    """The cell of a result. `shown`: the other fields of `Estimate`."""
    if found is None:
        return Estimate(None)
    return Estimate(found.value, found.low, found.high, **shown)


def written(cell: Cell) -> tuple[str, str]:
    """The text of a cell, and the text next to or below it: an interval, a note.

    >>> (
    ...     written(Estimate(0.5, 0.4, 0.6)),
    ...     written(Estimate(0.05, -0.01, 0.11, percent=True, signed=True)),
    ... )
    (('0.50', '[0.40, 0.60]'), ('+5.0', '[−1.0, +11.0]'))
    >>> written(Share(0.9999))[0], written(Count(3, of=4))[0], written(Count(4, of=4))[0]
    ('>99.9 %', '3 of 4', '4')
    """
    match cell:
        case Text():
            return "" if cell.text is None else cell.text, cell.below
        case Number():
            return (formats.signed if cell.signed else formats.number)(
                cell.value, digits=cell.digits
            ), cell.below
        case Share():
            return formats.share(cell.value), cell.below
        case Count():
            part = cell.of is not None and cell.value != cell.of
            return formats.count(cell.value) + (
                f" of {formats.count(cell.of)}" if part else ""
            ), cell.below
        case Money():
            return formats.dollars(cell.known, unknown=cell.unknown), ""
        case Duration():
            return formats.duration(cell.seconds), ""
        case PValue():
            return formats.p_value(cell.value), ""
        case Range():
            write = formats.share if cell.percent else formats.number
            return f"{write(cell.low)} … {write(cell.high)}", ""
        case Estimate():
            return _estimate(cell)


def _estimate(cell: Estimate) -> tuple[str, str]:
    if cell.percent and not cell.signed:
        interval = formats.bracketed(cell.low, cell.high, formats.share)
        return formats.share(cell.value), interval and f"{interval}{cell.mark}"

    value, interval = formats.between(
        cell.value,
        cell.low,
        cell.high,
        digits=cell.digits,
        percent=cell.percent,
        plain=not cell.signed,
    )
    return value, f"{interval}{cell.mark}" if interval else cell.below


def plain(cell: Cell) -> str:
    """The text of a cell on one line."""
    return " ".join(filter(None, written(cell)))


def place(scale: Scale, value: float) -> float:
    """Where a value is drawn on a scale, from 0 to 100."""
    if scale.end <= scale.start:
        return _WIDE / 2
    return round(min(_WIDE, max(0.0, _WIDE * (value - scale.start) / (scale.end - scale.start))), 1)


class Column(msgspec.Struct, frozen=True):
    """A heading.

    In a narrow terminal, the columns of the highest rank are left out first, with their legends.
    """

    head: str
    number: bool = True  # set right
    rank: int = 0  # 0: always shown
    legend: str = ""  # a sentence
    detail: bool = False  # the first screen of a terminal leaves it out


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A name and its cells, one per further column. `note`: a separate line below."""

    name: str
    cells: tuple[Cell, ...]
    color: int | None = None  # which category represents the name in charts
    total: bool = False
    note: str = ""
    tone: Tone = ""  # of the note
    link: str = ""  # from the name


class Group(msgspec.Struct, frozen=True):
    """A heading over the rows that follow. `mark`: what is wrong with them."""

    name: str
    note: str = ""
    mark: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under headings; the first column holds names.

    `brief`: one of the few tables needed at first. `folded`: a page shows it once it is unfolded;
    always shown without scripts and on paper. `limit`: rows shown where there is little room;
    `rest` tells where the others are.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row | Group, ...]
    legend: str = ""
    brief: bool = False
    folded: bool = False
    slim: bool = False  # no wider than its content
    limit: int = 0  # 0: all
    rest: str = ""
    # the name of the chart that `karat report --charts` draws of its intervals; empty: none
    chart: str = ""
    finding: str = ""  # the title of that chart


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """The quantity along an axis, and its range; without `start` or `end` the range of the data."""

    title: str
    start: float | None = None
    end: float | None = None
    percent: bool = False  # shares, written in percent
    whole: bool = False  # whole numbers, such as turns
    zero: float | None = None  # a reference value such as no difference: a dashed line


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A point with its interval, or, with `start`, a bar from there to `value`."""

    value: float
    low: float | None = None
    high: float | None = None
    start: float | None = None
    series: int | None = None  # of the legend or of the categories; None: there is only one
    label: str = ""  # shown on hover


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A name on the left and its marks."""

    name: str
    marks: tuple[Mark, ...]
    joined: bool = False  # whether a line joins the smallest and the largest
    tick: float | None = None  # a reference for this line
    note: str = ""  # on the right


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A panel of lines, stacked."""

    axis: Axis
    lines: tuple[Line, ...]
    title: str = ""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A point, with its intervals: `low` to `high` of y, `left` to `right` of x.

    A bar is as wide as the latter.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    left: float | None = None
    right: float | None = None
    label: str = ""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Points that belong together. Intervals of `lines` and of a `fit` are bands."""

    points: tuple[Point, ...]
    form: Literal["points", "lines", "bars", "fit", "reference"] = "points"
    series: int | None = None


class Plane(msgspec.Struct, frozen=True, kw_only=True):
    """A panel with numbers on both axes."""

    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    title: str = ""
    height: int = 110  # pixels


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with its description, and the same numbers as a table. It holds no colours and
    computes nothing.

    A terminal and Markdown show the table, unless it is a `detail`.
    """

    name: str  # of its file: lower case, unique within a run
    title: str  # the finding, with n and interval
    description: str  # what is drawn, for readers who do not see it
    panels: tuple[Rows | Plane, ...]
    table: Table
    legend: tuple[str, ...] = ()  # the names of the series
    ordered: bool = False  # whether the series are steps of a scale, in shades of one colour
    detail: bool = False

    def __post_init__(self) -> None:
        """Cleans texts, which may be foreign, and cuts a long title."""
        texts = {
            "name": slug(self.name),
            "title": formats.excerpt(self.title, _LONGEST_TITLE),
            "description": formats.clean(self.description),
            "legend": tuple(labels(self.legend).values()),
        }
        for field, text in texts.items():
            msgspec.structs.force_setattr(self, field, text)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the table."""
        grouped = any(isinstance(row, Group) for row in self.table.rows)
        return (*(["part"] if grouped else []), *(column.head for column in self.table.columns))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The table as texts, each row under the heading of its group."""
        rows, part = [], [""] if len(self.columns) > len(self.table.columns) else []
        for row in self.table.rows:
            if isinstance(row, Group):
                part = [formats.clean(row.name)]
            else:
                rows.append(
                    (
                        *part,
                        formats.clean(row.name),
                        *(formats.clean(plain(cell)) for cell in row.cells),
                    )
                )

        return tuple(rows)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from karat.document.render.notebook import chart_html  # it imports this module

        return chart_html(self)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A paragraph, or a list of them."""

    texts: tuple[str, ...]
    tone: Literal["", "warning", "quiet"] = ""
    title: str = ""
    brief: bool = False


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Terms and their values."""

    items: tuple[tuple[str, str], ...]
    title: str = ""
    code: bool = False  # values are set in monospace


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A long text in monospace."""

    title: str
    text: str
    folded: bool = True
    limit: int = 64_000


class LowTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One of several turns: the question, the expected answer, the answer."""

    question: str
    golden: str | None
    answer: str | None


class LowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How one condition answered a question that went badly."""

    condition: str
    color: int
    score: str  # mean, spread, n
    reason: str | None
    answer: str | None  # Markdown
    excerpt: bool = False  # whether `answer` is only the beginning
    turns: tuple[LowTurn, ...] = ()  # where there are several; then `answer` is None
    claims: tuple[str, ...] = ()


class Low(msgspec.Struct, frozen=True, kw_only=True):
    """A question that went badly."""

    sample: str
    question: str
    score: str  # metric, mean, gap
    golden: str | None  # Markdown; None: there is none, or it is not available
    answers: tuple[LowAnswer, ...]
    limit: int = 8_000  # characters of a golden answer or an answer


class Fold(msgspec.Struct, frozen=True):
    """Details that are shown on request; a terminal leaves them out."""

    title: str
    blocks: tuple[Block, ...]


Block = Table | Chart | Note | Facts | Listing | Low | Fold
_Block = TypeVar("_Block", bound=Block)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a report, with its own title."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""


class KindBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset kind adds to a document, by place among the common blocks."""

    asked: str = ""  # what was asked under each condition; empty: the number of samples
    # settings under which numbers are not comparable with those of other runs
    asked_with: tuple[str, ...] = ()
    # whose metrics are in the kind's own tables, not in the common ones
    scorers: tuple[str, ...] = ()
    results: tuple[Block, ...] = ()  # before the means
    details: tuple[Block, ...] = ()  # after the means
    # instead of the common table; None: the common table is right
    differences: tuple[Block, ...] | None = None
    variation: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()  # after the variation
    failing: tuple[Block, ...] = ()
    cost: tuple[Block, ...] = ()
    origin: tuple[Block, ...] = ()


def kind_of(value: object) -> str:
    """The macro that draws it."""
    return type(value).__name__.lower()


def legend_of(table: Table, shown: Sequence[Column]) -> str:
    """The legend of the table, with the sentences of the columns that are shown."""
    return " ".join(filter(None, [*dict.fromkeys(column.legend for column in shown), table.legend]))


def columns(*heads: str | Column, text: Sequence[str] = ()) -> tuple[Column, ...]:
    """Headings: the first is for names, the others are for numbers, except those in `text`."""
    return tuple(
        head if isinstance(head, Column) else Column(head, number=at > 0 and head not in text)
        for at, head in enumerate(heads)
    )


def explained(block: _Block) -> _Block:
    """A table with the legend of the mark for an unknown number, if it shows one; any other block
    as it is.
    """
    if not isinstance(block, Table):
        return block
    cells = (cell for row in block.rows if isinstance(row, Row) for cell in row.cells)
    if not any(written(cell)[0] == formats.UNKNOWN for cell in cells):
        return block
    legend = f"{block.legend} {formats.UNKNOWN}: not known, or does not apply."
    return msgspec.structs.replace(block, legend=legend.strip())


def limited(table: Table, most: int, rest: str = "") -> Table:
    """The same with a limited number of rows, and how many are left out; a heading counts as
    a row.
    """
    if not most or len(table.rows) <= most:
        return table
    left = formats.plural(len(table.rows) - most, "further row")
    note = f"{left} left out{f': {rest}' if rest else ''}."
    return msgspec.structs.replace(
        table, rows=table.rows[:most], legend=f"{table.legend} {note}".strip()
    )


def without_details(table: Table) -> Table:
    """The same without the columns that are details; the first column is the rows' name."""
    kept = [at for at, column in enumerate(table.columns) if not column.detail]
    if len(kept) == len(table.columns):
        return table
    rows: list[Row | Group] = []
    for row in table.rows:
        if isinstance(row, Row):
            cells = tuple(row.cells[at - 1] for at in kept if at)
            rows.append(msgspec.structs.replace(row, cells=cells))
        else:
            rows.append(row)

    columns = tuple(table.columns[at] for at in kept)
    return msgspec.structs.replace(table, columns=columns, rows=tuple(rows))


def forest(table: Table) -> Chart:
    """The first column of drawn intervals of a table as a chart: a panel for each group of rows."""
    panels: list[tuple[str, list[tuple[str, Estimate, int]]]] = []
    for row in table.rows:
        if isinstance(row, Group):
            panels.append((row.name, []))
        else:
            panels = panels or [("", [])]
            drawn = []
            for cell in row.cells:
                if isinstance(cell, Estimate) and cell.scale is not None:
                    drawn.append(cell)

            panels[-1][1].extend((row.name, cell, row.color or 0) for cell in drawn[:1])

    head = next(column.head for column in table.columns[1:] if column.number).partition(" [")[0]
    rows = []
    for part, lines in panels:
        scale = next((cell.scale for _, cell, _ in lines if cell.scale is not None), None)
        if scale is None:
            continue
        percent = any(cell.percent for _, cell, _ in lines)
        rows.append(
            Rows(
                title=formats.clean(part),
                axis=Axis(
                    title=head, start=scale.start, end=scale.end, zero=scale.zero, percent=percent
                ),
                lines=tuple(
                    Line(name=label, marks=marks_of(cell, series))
                    for label, (_, cell, series) in zip(
                        apart(_short(line[0]) for line in lines), lines, strict=True
                    )
                ),
            )
        )

    return Chart(
        name=table.chart,
        title=table.finding,
        description=f"{table.caption}: a point for each row, with its interval.",
        panels=tuple(rows),
        table=table,
    )


def _short(name: str) -> str:
    """The name of a row for an axis; for a pair both names, each cut so that both are visible."""
    if " − " in name:
        return " − ".join(formats.middle(half, LABEL // 2 - 4) for half in name.split(" − "))
    return name


def marks_of(cell: Estimate, series: int | None = None) -> tuple[Mark, ...]:
    """An estimate as a mark; nothing where it is not known."""
    if cell.value is None:
        return ()
    return (Mark(value=cell.value, low=cell.low, high=cell.high, series=series, label=plain(cell)),)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Foreign names as short, distinct labels: two names never get the same label.

    >>> labels(["a", "b\\x1b[31m", "b"])
    {'a': 'a', 'b\\x1b[31m': 'b', 'b': 'b (2)'}
    """
    once = list(dict.fromkeys(names))
    return dict(zip(once, apart(once), strict=True))


def apart(names: Iterable[str]) -> list[str]:
    """The same for a list in which a name may be repeated: one label per position."""
    distinct: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = formats.middle(formats.excerpt(name, 4 * LABEL), LABEL) or "(no name)"
        label, again = plain, 1
        while label in taken:
            again += 1
            label = f"{plain} ({again})"

        taken.add(label)
        distinct.append(label)

    return distinct


def slug(*parts: str) -> str:
    """The name of a file, from foreign text: letters of ASCII, digits, dashes.

    >>> slug("means", "Größe / 1–5")
    'means-gr-e-1-5'
    """
    words = re.findall(r"[a-z0-9]+", " ".join(parts).lower())
    return "-".join(words)[:60].strip("-") or "chart"
