"""Questions in a text: one a line, or each with its answer below it, as people keep them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from karat.documents.names import with_role
from karat.documents.text_rows import BELOW_HEADER, cells_in

_ASKED = "q|question|frage|pregunta|pergunta|domanda|问|问题|вопрос"
_SAID = (
    "a|ans|answer|expected(?: answer)?|gold(?:en)?(?: answer)?|antwort|respuesta|resposta|réponse"
    "|risposta|答|答案|ответ"
)
_MARK = re.compile(
    rf"^[ \t]*(?:[-*>#]+[ \t]*)?\**(?:(?P<asked>{_ASKED})[ \t]*\d{{0,4}}[ \t]*\**[:：.)]"
    rf"|(?P<said>{_SAID})[ \t]*\d{{0,4}}[ \t]*\**[:：])[ \t]*\**[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a question or an answer begins. `A)` begins a choice."""
_HEADING = re.compile(r"^(#{1,6})[ \t]+(\S[^\n]*)$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\(?\d{1,4}[.):])[ \t]+")
_ASKS = ("?", "？", "؟", "\u037e")  # the last is Greek
_FEWEST = 3  # lines, of which most are questions


def questions_in(text: str) -> list[Mapping[str, str]]:
    """A row for each question, with its answer if the text has one; none: it is another text."""
    text = text.lstrip("\ufeff")
    found = _of_tables(text) or _below_headings(text)
    if found:
        return found
    marks = [*_MARK.finditer(text)]
    asked = sum(mark["asked"] is not None for mark in marks)
    if asked > 1 and marks[0]["asked"] is not None:
        return _of_pairs(text, marks)
    lines = []
    for line in text.splitlines():
        written = _ITEM.sub("", line).strip()
        if written and not written.startswith(("#", "//")):
            lines.append(written)

    asking = sum(line.endswith(_ASKS) for line in lines)
    if len(lines) < _FEWEST or 2 * asking <= len(lines):
        return []
    return [{"question": line} for line in lines]


def _of_tables(text: str) -> list[Mapping[str, str]]:
    """The rows of the tables in Markdown of which a column is the question, if they have one
    header.
    """
    lines = [line.strip() for line in text.splitlines()]
    rows: list[Mapping[str, str]] = []
    names: list[str] = []
    for at, line in enumerate(lines[1:], start=1):
        if not BELOW_HEADER.fullmatch(line):
            continue
        header = cells_in(lines[at - 1])
        if not with_role(header, "question") or len({*header}) < len(header):
            continue
        if names and header != names:
            return []
        names = header
        for row in lines[at + 1 :]:
            if not row.startswith("|"):
                break
            cells = cells_in(row)
            if len(cells) != len(names):
                return []
            rows.append(dict(zip(names, cells, strict=True)))

    return rows


def _below_headings(text: str) -> list[Mapping[str, str]]:
    """The questions that are headings, with the text below each; none if not all of one level are,
    or one has nothing below it.
    """
    headings = [*_HEADING.finditer(text)]
    level = max((len(heading[1]) for heading in headings), default=0)
    asked = []
    for heading in headings:
        if len(heading[1]) == level:
            asked.append(heading)

    if len(asked) < _FEWEST or not all(
        heading[2].rstrip("* ").endswith(_ASKS) for heading in asked
    ):
        return []

    rows: list[Mapping[str, str]] = []
    for heading in asked:
        after = _HEADING.search(text, heading.end())
        said = text[heading.end() : after.start() if after else len(text)].strip()
        if not said:
            return []
        rows.append({"question": heading[2].strip("* "), "answer": said})

    return rows


def _of_pairs(text: str, marks: Sequence[re.Match[str]]) -> list[Mapping[str, str]]:
    """The questions and answers that begin at marks; none if an answer has no question."""
    rows: list[dict[str, str]] = []
    ends = [mark.start() for mark in marks[1:]]
    for mark, end in zip(marks, [*ends, len(text)], strict=True):
        said = text[mark.end() : end].strip()
        if mark["asked"] is not None:
            rows.append({"question": said})
        elif "answer" in rows[-1]:
            return []
        else:
            rows[-1]["answer"] = said

    return list(rows)
