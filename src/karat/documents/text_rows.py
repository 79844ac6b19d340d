"""The rows of a text that is not a table to a computer: a table in Markdown, or blocks of lines
such as `Question: …`, `Expected: …`, `Answer: …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from karat.documents.names import roles_of, side_of

_BETWEEN = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?|(?:\s*:?-+:?\s*\|)+.*-")
"""The line between the header of a table in Markdown and its rows."""
_BAR = re.compile(r"(?<!\\)\|")
_HEADING = re.compile(r"#+\s+(.+?)\s*#*")
_LABEL = re.compile(
    r"(?:\[[^]]*\]|\d+[.)])?[-*\s]*(?:\*\*|__)?([^\W\d_][^:：*_|#]{0,30}?)\s*(\d*)(?:\*\*|__)?\s*[:：](.*)"
)
_SHORT = {"q": "question", "a": "answer", "f": "question"}
_FEWEST_LABELS, _FEWEST_BLOCKS = 3, 3


def rows_in_text(text: str) -> tuple[list[tuple[int, dict[str, str]]], str]:
    """The rows of a text, with the numbers of their lines, and what to say of them. Empty: it has
    neither a table with rows nor three blocks with the same three labels, one of a question.
    """
    lines = text.splitlines()
    tables: dict[tuple[str, ...], list[tuple[int, dict[str, str]]]] = {}
    for header, number, cells, heading in table_lines(lines):
        row = dict(zip(header, cells, strict=True))
        tables.setdefault(header, []).append((number, {"list": heading, **row}))

    if tables:
        header = max(tables, key=lambda names: len(tables[names]))
        rows = tables[header]
        if len({row["list"] for _, row in rows}) == 1:
            for _, row in rows:
                del row["list"]

        others = len(tables) - 1
        note = "rows: a table in Markdown"
        if others:
            note += f"; not read: {others} with other columns"
        return (rows, note) if len(rows) > 1 else ([], "")

    blocks = labelled_blocks(lines)
    return blocks, "rows: blocks of lines that begin with the same labels" if blocks else ""


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
        below = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if "|" not in line:
            header = ()
        elif "-" in below and _BETWEEN.fullmatch(below) and _BAR.search(below):
            names = cells_in(line)
            alike = len({*names}) == len(names) > 1 and all(names)
            header = tuple(names) if alike else ()
        elif header and not _BETWEEN.fullmatch(line.strip()):
            cells = cells_in(line)
            if len(cells) == len(header):
                yield header, at + 1, cells, heading


def labelled_blocks(lines: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The blocks of lines with a label each; a line without one continues the text above it."""
    rows: list[tuple[int, dict[str, str]]] = []
    first = last = ""
    for number, line in enumerate(lines, start=1):
        labelled = _LABEL.fullmatch(line.rstrip())
        name = "" if labelled is None else _SHORT.get(labelled[1].lower(), labelled[1].strip())
        first = first or name
        if labelled is None or not name:
            if rows and line.strip(" -=_*") and last:
                rows[-1][1][last] += f"\n{line.strip()}"
            continue

        if name == first:
            rows.append((number, {}))
        if name in rows[-1][1]:
            return []
        rows[-1][1][name] = labelled[3].strip().removeprefix("**").strip()
        last = name

    labels = {tuple(row) for _, row in rows}
    if len(rows) < _FEWEST_BLOCKS or len(labels) != 1:
        return []
    (names,) = labels
    asked = any("question" in roles_of(name) for name in names)
    speaking = all(side_of(name) is not None for name in names)
    return rows if asked and not speaking and len(names) >= _FEWEST_LABELS else []
