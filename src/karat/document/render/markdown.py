"""A document as Markdown for a pull request: the result on one screen, the rest folded.

Foreign text is shown as it is written: nothing in it becomes a heading, a link, a mention or an
element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from karat import formats
from karat.blocks import (
    Block,
    Chart,
    Facts,
    Group,
    Listing,
    Low,
    Note,
    Table,
    legend_of,
    limited,
    plain,
)
from karat.document.run import Document

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_FIRST = re.compile(r"^(\d{0,9})([-#+>=.):!])")  # what begins a heading, a list or a quotation
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\b[Gg][Hh](?=-\d)|\b[Ww]{3}(?=\.)|\w:(?=//)")
_NUMBER = re.compile(r"[-+]?\d+\.\d")
_BREAK = "<!-- -->"
_LONGEST = 2_000  # characters of one text
_MOST_ROWS = 200  # of one folded table


def render_markdown(document: Document) -> str:
    """Verdicts, facts, the most important tables and warnings; then each section in `<details>`."""
    first, *others = document.verdicts
    lines = [
        f"### {_text(first)}",
        "",
        *(f"- {_text(line)}" for line in others),
        *([""] if others else []),
    ]
    lines += [f"{_text(document.title)}  "]
    lines += [" · ".join(f"{term}: {_text(value)}" for term, value in document.facts), ""]
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, (Table, Note)) and block.brief:
                lines += _block(
                    limited(block, block.limit, "below") if isinstance(block, Table) else block
                )

    if document.warnings:
        lines += ["**Warnings**", "", *(f"- {_text(text)}" for text in document.warnings), ""]
    for section in document.sections:
        shown: list[str] = []
        for block in section.blocks:
            is_seen = isinstance(block, (Table, Note)) and block.brief
            if isinstance(block, Table) and block.limit and len(block.rows) > block.limit:
                is_seen = False
            if not is_seen:  # the first screen does not show all of it
                shown += _block(block)

        if shown:
            lines += [
                "<details>",
                f"<summary>{escape(section.title)}</summary>",
                "",
                *shown,
                "</details>",
                "",
            ]

    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Table():
            yield f"**{_text(block.caption)}**"
            yield ""
            shown = limited(block, _MOST_ROWS, "`karat report --to json` has them")
            yield f"| {' | '.join(_text(column.head) for column in shown.columns)} |"
            yield f"|{'|'.join('--:' if column.number else '---' for column in shown.columns)}|"
            for row in shown.rows:
                name = _text(row.name)
                if isinstance(row, Group):
                    note = " ".join(filter(None, (row.note, row.mark)))
                    name = f"**{name}**{f' ({_text(note)})' if note else ''}"
                    cells = [""] * (len(shown.columns) - 1)
                else:
                    if row.note:
                        name += f"<br><sub>{_text(row.note)}</sub>"
                    cells = [_text(plain(cell)) for cell in row.cells]

                yield f"| {' | '.join([name, *cells])} |"

            yield ""
            legend = legend_of(shown, shown.columns)
            if legend:
                yield f"<sub>{_text(legend)}</sub>"
                yield ""
        case Chart() if not block.detail:
            yield from _block(block.table)
        case Note():
            if block.title:
                yield f"**{_text(block.title)}**"
                yield ""
            for text in block.texts:
                yield f"- {_text(text)}"
            yield ""
        case Facts():
            if block.title:
                yield f"**{_text(block.title)}**"
                yield ""
            for term, value in block.items:
                yield f"- {_text(term)}: {_text(value)}"
            yield ""
        case Listing() if not block.folded:
            yield f"**{_text(block.title)}**"
            yield ""
            for line in formats.clean(block.text[: block.limit]).split("\n"):
                yield f"    {line}"
            yield ""
        case Low():
            yield f"**{_text(block.question)}**"
            yield ""
            yield f"{_text(block.sample)}: {_text(block.score)}"
            yield ""
            for answer in block.answers:
                if answer.reason:
                    reason = f": {_text(answer.reason)}"
                else:
                    reason = ""

                yield f"- {_text(answer.condition)} {_text(answer.score)}{reason}"

            yield ""
        case _:  # charts, and details that are shown on request
            pass


def _text(text: str) -> str:
    r"""Foreign text on one line that Markdown readers treat only as text.

    >>> _text("a|b <b>*c*\n@somebody #12 [x](http://y)")
    'a\\|b &lt;b&gt;\\*c\\* @<!-- -->somebody #<!-- -->12 \\[x\\](http:<!-- -->//y)'
    >>> _text("# no heading"), _text("1. no list"), _text("0.42")
    ('\\# no heading', '1\\. no list', '0.42')
    """
    line = " ".join(formats.clean(text[:_LONGEST]).split())
    safe = _SPECIAL.sub(r"\\\1", escape(line, quote=False))
    if not _NUMBER.match(line):
        safe = _FIRST.sub(r"\1\\\2", safe)
    return _LINKED.sub(lambda match: f"{match[0]}{_BREAK}", safe)
