"""The rows of a text without a format: those of a table in Markdown, or blocks of lines such as
`Question: …`, `Expected: …`, `Answer: …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from karat.documents.names import roles_of, side_of, with_role
from karat.documents.row_list import Rows

BELOW_HEADER = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?|(?:\s*:?-+:?\s*\|)+.*-")
"""The line between the header of a table in Markdown and its rows."""
_BAR = re.compile(r"(?<!\\)\|")
_HEADING = re.compile(r"#+\s+(.+?)\s*#*")
_LABEL = re.compile(
    r"(?:\[[^]]*\]|\d+[.)])?[-*\s]*(?:\*\*|__)?([^\W\d_][^:：*_|#]{0,30}?)\s*(\d*)(?:\*\*|__)?\s*[:：](.*)"
)
_SHORT = {"q": "question", "a": "answer", "f": "question"}
_FEWEST_LABELS, _FEWEST_BLOCKS = 3, 3
_ENDS = ("?", "？", "؟")
_MOST = 0.9  # share of lines
_NumberedRows = list[tuple[int, dict[str, str]]]
"""Rows with the numbers of their lines."""


def rows_in_text(text: str) -> tuple[_NumberedRows, str]:
    """The rows of a text, with the numbers of their lines, and a note on how they were found. Both
    are empty if the text has neither a table of two rows nor three blocks with the same three
    labels, one of a question, or two labels, of a question and of what is right.
    """
    lines = text.splitlines()
    tables: dict[tuple[str, ...], _NumberedRows] = {}
    for header, number, cells, heading in table_lines(lines):
        row = dict(zip(header, cells, strict=True))
        tables.setdefault(header, []).append((number, {"list": heading, **row}))

    if not tables:
        blocks = labelled_blocks(lines)
        if not blocks:
            return [], ""
        return blocks, "rows: blocks of lines that begin with the same labels"

    rows = max(tables.values(), key=len)
    if len(rows) < 2:
        return [], ""
    if len({row["list"] for _, row in rows}) == 1:
        for _, row in rows:
            del row["list"]

    note = "rows: a table in Markdown"
    others = len(tables) - 1
    if others:
        note += f"; not read: {others} with other columns"
    return rows, note


def in_pairs(rows: Rows) -> Rows:
    """The rows of a table of one column as pairs, if questions and what is none alternate in it."""
    texts = []
    for number, row in rows.rows:
        texts += [(number, str(value).strip()) for value in row.values()]

    pairs = [*zip(texts[::2], texts[1::2], strict=False)]
    asked = sum(question.endswith(_ENDS) for (_, question), _ in pairs)
    said = sum(answer.endswith(_ENDS) for _, (_, answer) in pairs)
    even = len(texts) == 2 * len(pairs) and len(pairs) >= _FEWEST_BLOCKS
    if not even or asked < _MOST * len(pairs) or said > (1 - _MOST) * len(pairs):
        return rows
    found = rows.emptied("rows: two lines each, a question and its answer")
    for (number, question), (_, answer) in pairs:
        found.add(number, {"question": question, "answer": answer})

    return found


def cells_in(line: str) -> list[str]:
    """The cells of a line of a table in Markdown."""
    inside = line.strip().removeprefix("|")
    if inside.endswith("|") and not inside.endswith("\\|"):
        inside = inside[:-1]
    return [cell.replace("\\|", "|").strip() for cell in _BAR.split(inside)]


def table_lines(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int, list[str], str]]:
    """The header, the number of its line, the cells and the heading above of each row."""
    heading = ""
    header: tuple[str, ...] = ()
    for at, line in enumerate(lines):
        titled = _HEADING.fullmatch(line.strip())
        if titled is not None:
            heading = titled[1]
        below = ""
        if at + 1 < len(lines):
            below = lines[at + 1].strip()
        cells = cells_in(line)
        if "|" not in line:
            header = ()
        elif BELOW_HEADER.fullmatch(below):
            header = ()
            different = len({*cells}) == len(cells)
            if different and len(cells) > 1 and all(cells):
                header = tuple(cells)
        elif len(cells) == len(header) and not BELOW_HEADER.fullmatch(line.strip()):
            yield header, at + 1, cells, heading


def _above_headings(text: str) -> str:
    """What is above the headings at the end of a text: they say what the next block is about."""
    lines = text.split("\n")
    while len(lines) > 1 and _HEADING.fullmatch(lines[-1]):
        lines.pop()
    return "\n".join(lines)


def labelled_blocks(lines: Sequence[str]) -> _NumberedRows:
    """The blocks of lines that begin with labels; a line without one continues the text above it.
    Empty if the blocks are few, have different labels, or are turns of a chat.
    """
    rows: _NumberedRows = []
    row: dict[str, str] = {}
    first = last = ""
    for number, line in enumerate(lines, start=1):
        labelled = _LABEL.fullmatch(line.rstrip())
        if labelled is None:
            if last and line.strip(" -=_*"):
                row[last] += f"\n{line.strip()}"
            continue

        label = labelled[1].strip()
        name = _SHORT.get(label.lower(), label)
        first = first or name
        if name == first:
            if last:
                row[last] = _above_headings(row[last])
            row = {}
            rows.append((number, row))
        if name in row:
            return []
        row[name] = labelled[3].strip().removeprefix("**").strip()
        last = name

    labels = {tuple(row) for _, row in rows}
    if len(rows) < _FEWEST_BLOCKS or len(labels) != 1:
        return []
    (names,) = labels
    speaking = all(side_of(name) is not None for name in names)
    key = with_role(names, "question") and with_role(names, "golden")  # and no chat
    if speaking or not (key or len(names) >= _FEWEST_LABELS):
        return []
    if "question" not in roles_of(*names):
        return []
    return rows
