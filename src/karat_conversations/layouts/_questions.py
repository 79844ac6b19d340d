"""Questions in a text: one a line, or each with its answer below it, as people keep them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\(?\d{1,4}[.):])[ \t]+")
_ASKS = ("?", "？", "؟", ";")  # the last is the Greek question mark
_FEWEST = 3  # lines, of which most are questions


def questions_in(text: str) -> list[Mapping[str, str]]:
    """A row for each question, with its answer if the text has one; none: it is another text."""
    marks = [*_MARK.finditer(text)]
    asked = sum(mark["asked"] is not None for mark in marks)
    if asked > 1 and marks[0]["asked"] is not None:
        return _of_pairs(text, marks)
    lines = []
    for line in text.lstrip("\ufeff").splitlines():
        written = _ITEM.sub("", line).strip()
        if written and not written.startswith(("#", "//")):
            lines.append(written)

    asking = sum(line.endswith(_ASKS) for line in lines)
    if len(lines) < _FEWEST or 2 * asking <= len(lines):
        return []
    return [{"question": line} for line in lines]


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
