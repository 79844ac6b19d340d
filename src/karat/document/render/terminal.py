"""A document as plain text for a terminal, with colours if enabled.

Foreign text is cleaned before layout, so none of its escape sequences take effect; the styles are
this file's own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence

from karat import formats
from karat.blocks import (
    Block,
    Cell,
    Chart,
    Estimate,
    Facts,
    Group,
    Listing,
    Low,
    LowAnswer,
    Note,
    Row,
    Section,
    Table,
    legend_of,
    limited,
    without_details,
    written,
)
from karat.document.run import Document

_GAP = 2
_INDENT = 2
_NARROWEST = 16  # columns of a text that is wrapped
_SHORT_TEXT = 40  # minimum width of a text before a less important column is left out
_SHORT_NAME = 32  # … of a name
_INTERVAL = re.compile(r"\[[^\[\]\n]{1,30}\]|(?<=\d) %")
_STYLES = {"bold": "1", "dim": "2", "bad": "31", "good": "32", "quiet": "2"}


def render_terminal(
    document: Document,
    *,
    width: int | None = None,
    full: bool = True,
    color: bool = False,
    lowest: int = 3,
) -> str:
    """The result first, then its basis; with `full` every section except folded details.

    `width`: columns; by default the terminal's, from 60 to 140. `lowest`: how many of the lowest
    questions are shown.
    """
    page = _Page(width or _terminal_width(), color=color)
    lines = [
        line for text in document.verdicts for line in page.wrapped(text, style="bold", hang=2)
    ]
    lines += [
        "",
        *page.wrapped(document.title),
    ]
    lines += page.items([f"{term}: {value}" for term, value in document.facts])
    for section in document.sections:
        lines += page.section(section, full=full, lowest=lowest)
    if document.warnings:
        lines += ["", page.styled("Warnings", "bold")]
        lines += [line for text in document.warnings for line in page.wrapped(text, indent=_INDENT)]

    return "\n".join(line.rstrip() for line in lines) + "\n"


def block_lines(
    blocks: Iterable[Block],
    *,
    width: int | None = None,
    color: bool = False,
) -> list[str]:
    """Blocks that belong to no document, one below the other."""
    page = _Page(width or _terminal_width(), color=color)
    lines = []
    for block in blocks:
        lines += [line.rstrip() for line in page.block(block)]

    return lines


def _terminal_width() -> int:
    columns = shutil.get_terminal_size((100, 24)).columns
    return max(60, min(140, columns))


class _Page:
    """The width of the terminal, and whether it has colours."""

    def __init__(self, width: int, *, color: bool) -> None:
        self._width, self._color = width, color

    def styled(self, text: str, style: str) -> str:
        if self._color and style and text.strip():
            return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
        return text

    def wrapped(self, text: str, *, style: str = "", indent: int = 0, hang: int = 0) -> list[str]:
        """A paragraph; `hang`: the indentation of further lines."""
        lines = _wrap(formats.clean(text), self._width - indent - hang)
        return [
            " " * (indent + (hang if place else 0)) + self.styled(line, style)
            for place, line in enumerate(lines)
        ]

    def items(self, texts: Sequence[str]) -> list[str]:
        """Short texts side by side, with line breaks between them."""
        found = []
        for line in _lines([f"{_line(text)} ·" for text in texts], self._width):
            found.append(line.removesuffix(" ·"))
        return found

    def section(self, section: Section, *, full: bool, lowest: int) -> Iterator[str]:
        lows = 0
        for block in section.blocks:
            if isinstance(block, Low):
                lows += 1
                if not full or lows > lowest:
                    continue
                if lows == 1:
                    yield ""
                    yield self.styled("Lowest questions", "bold")

            if full or (isinstance(block, (Table, Note)) and block.brief):
                shown: Block = block
                if isinstance(block, Table) and not full:
                    shown = without_details(limited(block, block.limit, block.rest))
                yield from self.block(shown)

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Table():
                yield ""
                yield self.styled(_line(block.caption), "bold")
                yield from self.table(block)
            case Chart() if not block.detail:
                yield from self.block(block.table)
            case Note():
                yield ""
                if block.title:
                    yield self.styled(_line(block.title), "bold")
                style = "dim" if block.tone == "quiet" else ""
                for text in block.texts:
                    yield from self.wrapped(text, style=style, indent=_INDENT)
            case Facts():
                yield ""
                if block.title:
                    yield self.styled(_line(block.title), "bold")
                for term, value in block.items:
                    yield from self.wrapped(f"{term}: {value}", indent=_INDENT, hang=2)
            case Listing() if not block.folded:
                yield ""
                yield self.styled(_line(block.title), "bold")
                for quoted in formats.clean(block.text[: block.limit]).split("\n"):
                    yield f"  {quoted}"
            case Low():
                yield from self.low(block)
            case _:  # charts, and details that are shown on request
                pass

    def low(self, low: Low) -> Iterator[str]:
        end = f"  {_line(low.score)}"
        start = f"  {formats.excerpt(low.sample, 24)}  "
        room = self._width - formats.width(start) - formats.width(end)
        if room >= _NARROWEST:
            yield start + formats.excerpt(low.question, room) + end
        else:
            yield start + formats.excerpt(low.question, self._width - formats.width(start))
            yield from self.wrapped(low.score, indent=4)

        longest = max(
            formats.width(formats.excerpt(answer.condition, 24)) for answer in low.answers
        )
        for answer in low.answers:
            for line in self.low_answer(answer, longest):
                yield self.styled(line, "dim")

    def low_answer(self, answer: LowAnswer, longest: int) -> Iterator[str]:
        name = formats.excerpt(answer.condition, 24)
        start = f"    {name}{' ' * (longest - formats.width(name))}  {_line(answer.score)}"
        if answer.claims:
            end = f"  [{formats.plural(len(answer.claims), 'unverified claim')}]"
        else:
            end = ""

        words = answer.reason or (f"answered: {answer.answer}" if answer.answer else "")
        room = self._width - formats.width(start) - 2 - formats.width(end)
        if not words or room >= _NARROWEST:
            yield f"{start}  {formats.excerpt(words, max(room, 1))}{end}"
        else:
            yield start + end
            yield f"      {formats.excerpt(words, self._width - 6)}"

    def table(self, table: Table) -> Iterator[str]:
        kept = self.fitting(table)
        grid = _Grid(table, kept, self._width)
        heads = [table.columns[at] for at in kept]
        pairs = []
        for head, (_, beside) in zip(heads, grid.widths, strict=True):
            text = _line(head.head)
            value, _, level = text.partition(" [")
            if level and beside:  # one heading over a value, another over its interval
                pairs.append((value, f"[{level}"))
            else:
                pairs.append((text, ""))

        yield self.styled(grid.line(pairs), "dim")
        rule = f"{' ' * _INDENT}{self.styled('─' * grid.total, 'dim')}"
        yield rule
        grouped = False
        for at, row in enumerate(table.rows):
            if isinstance(row, Group):
                grouped = True
                yield self.group(row)
                continue

            if row.total and not grouped and at:
                yield rule
            yield from self.row(grid, row, kept, grouped=grouped)

        legend = legend_of(table, heads)
        if legend:
            yield from self.wrapped(legend, style="dim", indent=_INDENT)

    def fitting(self, table: Table) -> list[int]:
        """The columns that are shown: those of the highest rank are dropped first until the others
        fit.
        """
        kept = list(range(len(table.columns)))
        while len(kept) > 1 and _Grid(table, kept, self._width).least > self._width:
            worst = max(kept, key=lambda at: (table.columns[at].rank, at))
            if not table.columns[worst].rank:
                break
            kept.remove(worst)

        return kept

    def group(self, group: Group) -> str:
        room = self._width - _INDENT
        if group.mark:
            mark = f" [{_line(group.mark)}]"
        else:
            mark = ""

        name = formats.excerpt(group.name, room)
        if group.note:
            note = f" ({_line(group.note)})"
        else:
            note = ""

        left = room - formats.width(name) - formats.width(mark) - 1
        if note and left >= _NARROWEST:
            note = formats.excerpt(note, left)
        else:
            note = ""

        between = " " if note else ""
        parts = (
            self.styled(name, "bold"),
            self.styled(mark, "bad"),
            between + self.styled(note, "dim"),
        )
        return " " * _INDENT + "".join(parts)

    def row(self, grid: _Grid, row: Row, kept: Sequence[int], *, grouped: bool) -> Iterator[str]:
        name = " " * (_INDENT if grouped else 0) + _line(row.name)
        cells = [row.cells[at - 1] for at in kept if at]
        if formats.width(name) > grid.widths[0][0]:
            yield " " * _INDENT + formats.cut(name, self._width - _INDENT)
            name = ""

        texts = [grid.parts(at + 1, cell) for at, cell in enumerate(cells)]
        for place in range(max([1, *(len(lines) for lines, _ in texts)])):
            pairs = []
            for lines, beside in texts:
                pairs.append(
                    ((lines[place] if place < len(lines) else ""), beside if not place else "")
                )

            yield grid.line(
                [(name if not place else "", ""), *pairs],
                tones=["", *(self.tone(cell) for cell in cells)],
            )

        if row.note:
            yield from self.wrapped(
                row.note, style=row.tone, indent=_INDENT + 2 + (_INDENT if grouped else 0)
            )

    def tone(self, cell: Cell) -> str:
        tone: str = getattr(cell, "tone", "")
        if self._color and tone:
            return _STYLES[tone]
        return ""


class _Grid:
    """The widths of the columns of a table: for each value, and for the text next to it."""

    def __init__(self, table: Table, kept: Sequence[int], width: int) -> None:
        columns = [table.columns[at] for at in kept]
        rows = [row for row in table.rows if isinstance(row, Row)]
        self._left = [not column.number for column in columns]
        self._left[0] = True
        names = [formats.width(_line(row.name)) for row in rows]
        if len(rows) < len(table.rows):  # rows below the name of a group are indented
            names = [_INDENT + name for name in names]
        names.append(formats.width(_line(columns[0].head)))
        self.widths: list[tuple[int, int]] = [(max(names), 0)]
        for at, column in zip(kept[1:], columns[1:], strict=True):
            cells = [_texts(row.cells[at - 1]) for row in rows]
            beside = max((formats.width(text) for _, text in cells), default=0)
            values = max((formats.width(text) for text, _ in cells), default=0)
            head = _line(column.head)
            value, _, level = head.partition(" [")
            room = formats.width(head)  # what the head needs of the column of values
            if beside and level:
                room = formats.width(value)
                beside = max(beside, formats.width(level) + 1)
            elif beside:
                room -= 1 + beside
            self.widths.append((max(values, room), beside))

        shortest = min(self.widths[0][0], _SHORT_NAME)
        room = width - _INDENT - self._sum() + self.widths[0][0] - shortest
        # Columns of text get narrower until the table fits, and wrap; a long name has its own line
        texts = [at for at, left in enumerate(self._left) if left and at]
        texts.sort(key=lambda at: -self.widths[at][0])
        self.least = width - room - sum(max(self.widths[at][0] - _SHORT_TEXT, 0) for at in texts)
        for at in texts:
            if room < 0:
                text, beside = self.widths[at]
                narrow = max(min(text, _NARROWEST), text + room)
                room += text - narrow
                self.widths[at] = (narrow, beside)

        space = width - _INDENT - (self._sum() - self.widths[0][0])
        self.widths[0] = (max(2, min(self.widths[0][0], space)), 0)
        self.total = self._sum()

    def _sum(self) -> int:
        return sum(
            value + (1 + beside if beside else 0) for value, beside in self.widths
        ) + _GAP * (len(self.widths) - 1)

    def parts(self, at: int, cell: Cell) -> tuple[list[str], str]:
        """The lines of a cell, and the text next to the first."""
        text, beside = _texts(cell)
        return (_wrap(text, self.widths[at][0]) if self._left[at] else [text]), beside

    def line(self, cells: Sequence[tuple[str, str]], tones: Sequence[str] = ()) -> str:
        parts = []
        for at, ((text, beside), (value, wide), left) in enumerate(
            zip(cells, self.widths, self._left, strict=True)
        ):
            blank = " " * (value - formats.width(text))
            if left:
                shown = text + blank
            else:
                shown = blank + text

            if wide:
                shown += " " + " " * (wide - formats.width(beside)) + beside
            if tones and tones[at] and text:
                parts.append(f"\x1b[{tones[at]}m{shown}\x1b[0m")
            else:
                parts.append(shown)

        return " " * _INDENT + (" " * _GAP).join(parts).rstrip()


def _line(text: str) -> str:
    """Foreign text on one line, cleaned."""
    return " ".join(formats.clean(text).split())


def _texts(cell: Cell) -> tuple[str, str]:
    """A cell as its value and the text next to it; a note in words is put in brackets."""
    text, below = written(cell)
    if isinstance(cell, Estimate):
        return text, formats.clean(below)
    line = _line(text)
    note = _line(below)
    return (f"{line} ({note})" if line and note else line or note), ""


def _wrap(text: str, width: int) -> list[str]:
    """Lines of limited width, broken between words, and never inside an interval."""
    words = _INTERVAL.sub(lambda match: match[0].replace(" ", "\x00"), text).split()
    return _lines([word.replace("\x00", " ") for word in words], width)


def _lines(words: Iterable[str], width: int) -> list[str]:
    pieces = []
    longest = max(width, 8)
    for word in words:
        tail = word
        while formats.width(tail) > longest:  # it is split
            piece = formats.cut(tail, longest + 1)[:-1] or tail[:1]
            pieces.append(piece)
            tail = tail[len(piece) :]

        if tail:
            pieces.append(tail)

    lines, line = [], ""
    for piece in pieces:
        if line and formats.width(line) + 1 + formats.width(piece) > width:
            lines.append(line)
            line = piece
        elif line:
            line = f"{line} {piece}"
        else:
            line = piece

    return [*lines, line]
