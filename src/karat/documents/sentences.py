"""Columns with sentences that no name explains: a question or an answer may be among them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from karat.documents.columns import Column
from karat.documents.names import ADDED, Meaning, Role, meanings, word_set, words_of

NO_WORDS = re.compile(
    r"https?://\S+|[0-9a-f-]{16,}|(\d{4}-\d\d-\d\d|\d{1,4}[./]\d{1,2}[./]\d{1,4})([T ].{,25})?"
)
"""URLs, ids and dates: no question or answer consists of one."""
FEW_ROWS = 40
"""Rows whose values are enough to tell questions from classes."""
_SENTENCE = 15  # characters on average; names and classes are shorter
_ASIDE = word_set(
    """metadata additionalmetadata meta config usage extra info annotations annotation scores
    metrics params parameters settings context contexts evidence"""
)
_REMARKS = (("note",), ("notes",), ("comment",), ("comments",), ("remark",), ("remarks",))
_SAYS_LITTLE = frozenset(
    {"metadata", "cluster", "condition", "turn", "context", "id", *ADDED.identifying}
)
"""Roles of names such as `title`, which may also be a question's or an answer's."""


def is_aside(path: str) -> bool:
    """Whether a column is inside an object that holds no part of a question."""
    parents = path.split(".")[:-1]
    return any("".join(words_of(parent)) in _ASIDE for parent in parents)


def unexplained(
    columns: Mapping[str, Column], roles: Mapping[Role, Sequence[str]], role: Role
) -> list[str]:
    """Columns with sentences for a role that is empty, or for a question with a weak name."""
    decided = roles.get(role, ())
    sure = role != "question" or any(Meaning(role) in meanings(path) for path in decided)
    if "messages" in roles or (decided and sure):
        return []
    paths = sentences(columns, role)
    if decided:
        paths = [path for path in paths if not meanings(path)]
    kept = {path for of, taken in roles.items() if of not in _SAYS_LITTLE for path in taken}
    return [path for path in paths if not {path, path.partition(".")[0]} & kept]


def sentences(columns: Mapping[str, Column], role: Role) -> list[str]:
    """Columns with sentences that differ from row to row, and no name that says what else they
    are.
    """
    may_be = _SAYS_LITTLE if role == "question" else _SAYS_LITTLE - {"context"}
    found = []
    for path, column in columns.items():
        known = meanings(path) or meanings(words_of(path)[-1] if words_of(path) else path)
        said = {meaning.role for meaning in known if not meaning.weak}
        inside = is_aside(path) or path.count(".") > 1
        if not said <= may_be or inside or not column.is_text:
            continue
        if role == "golden" and words_of(path)[-1:] in _REMARKS:
            continue
        if 2 * column.filled < column.rows or column.mean_length < _SENTENCE:
            continue
        if 2 * len(column.values) < min(column.filled, FEW_ROWS):
            continue
        text = column.example
        if not isinstance(text, str) or NO_WORDS.fullmatch(text.strip()):
            continue
        if len(text.split()) > 2 or not text.isascii():
            found.append(path)

    return found
