"""A chatbot's intents: a row for each of the phrases that call for one answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from karat.documents.columns import Row, are_texts, is_empty, without
from karat.documents.names import joined, roles_of, word_set
from karat.documents.row_list import Rows
from karat.formats import plural
from karat_conversations.layouts._rows import with_rows

_PHRASES = word_set(
    """patterns phrases trainingphrases triggerphrases triggers variants paraphrases variations
    alternativequestions similarquestions"""
)
_OF_AN_INTENT = word_set("questions examples utterances queries samples inputs texts sentences")
"""Names that mean phrases only beside the name of an intent: elsewhere they may be turns."""
_INTENTS = word_set("intent intents intentname intentid tag")


def phrases_apart(rows: Rows, named: Collection[str]) -> Rows:
    """The rows with one for each phrase, in the column `question` unless its own is among those
    `named`; the same rows if they hold none.
    """
    first = rows.first_rows()
    if len(first) < 2:
        return rows
    intents = []
    for name in first[0]:
        if joined(name) not in _INTENTS:
            continue
        texts = [row.get(name) for row in first]
        if are_texts(texts) and len({*texts}) == len(texts):
            intents.append(name)

    if intents:
        names = _PHRASES | _OF_AN_INTENT
    else:
        names = _PHRASES

    for name in first[0]:
        if joined(name) not in names:
            continue
        listed = [_phrases(row, name) for row in first]
        if None in listed or max(map(len, filter(None, listed))) < 2:
            continue
        others = []
        for other in first[0]:
            if other != name and other not in intents:
                others.append(other)

        roles = roles_of(*others)
        asks = 0  # texts of another column that are questions
        for row in first:
            asks += any(str(row.get(other)).strip().endswith(("?", "？")) for other in others)

        if "question" in roles or 2 * asks > len(first):
            continue  # they are variants of it
        if name in named:
            to = name
        else:
            to = "question"

        numbered = []
        for number, row in rows.rows:
            beside = without(row, (name,))
            phrases: Sequence[object] = _phrases(row, name) or [row.get(name)]
            for phrase in phrases:
                numbered.append((number, {to: phrase, **beside}))

        in_rows = f"{len(numbered)} in {plural(rows.count, 'row')}"
        note = f"each phrase of '{name}' is a question of its own: {in_rows}"
        if intents and "golden" in roles:
            note += f"; those of one row are alike: `cluster: {intents[0]}` counts them together"
        return with_rows(rows, numbered, note)

    return rows


def _phrases(row: Row, name: str) -> list[str] | None:
    """The texts of a list, also of one in Markdown; None: the cell holds something else."""
    value = row.get(name)
    if isinstance(value, str):
        lines = []
        for line in value.splitlines():
            if line.strip():
                lines.append(line.strip())

        if not all(line.startswith("- ") for line in lines):
            return None
        value = [line.removeprefix("- ").strip() for line in lines]

    if not isinstance(value, list) or is_empty(value):
        return None
    if not are_texts(value):
        return None
    return value
