"""What participants were shown and what they answered, task by task, from a sample and its trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat import formats
from karat.errors import KaratError
from karat.kinds import of_sample
from karat.records import Reply, Sample, Score
from karat.viewer.texts import Told

__all__ = ["Heard", "answer_of", "field_told", "fields_of", "heard", "put_in", "reading_rows", "shown", "value_told"]

_LONG = 300  # characters of one answer
_MOST_FIELDS = 60  # of one task
_MOST_TURNS = 1_000  # of a sample whose texts are filled: each looks at those of a whole group
_WITHOUT = {"stopped": "not asked any more", "unrecorded": "not recorded"}


class Heard:
    """One trial, by turn."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.replies: Sequence[Reply] = told.answer.replies if told.answer is not None else told.heard
        self.texts = [None if reply.absent else reply.text for reply in self.replies]
        self.rows = reading_rows(told.scores)

    def reply(self, turn: int) -> Reply | None:
        """What came back; None where nothing did."""
        return self.replies[turn] if turn < len(self.replies) and not self.replies[turn].absent else None

    def missing(self, turn: int) -> str:
        """Why there is no reply; empty where there is one."""
        if self.reply(turn) is not None:
            return ""
        why = self.rows[turn].labels.get("turn") if turn in self.rows else None
        if turn < len(self.replies):
            why = why or {"not_asked": "stopped"}.get(self.replies[turn].stop_reason or "", "unrecorded")
        if why is not None:
            return _WITHOUT.get(why, why)
        return "never reached" if self.told.failure is not None or self.told.answer is not None else "not yet"


def reading_rows(scores: Iterable[Score]) -> dict[int, Score]:
    """Turn → the row that says how it was read: that with the answers, or with why there are none.

    A run may have further scorers, whose rows say neither.
    """
    return {one.turn: one for one in scores if one.turn is not None and (one.labels or "answers" in one.detail)}


def heard(trials: Sequence[Told]) -> list[Heard]:
    """Each trial, by turn."""
    return [Heard(told) for told in trials]


def shown(sample: Sample, turn: int, one: Heard) -> str | None:
    """What somebody was shown in a turn; None where they were not asked, or nobody can know."""
    if not sample.turns[turn].open:
        return sample.turns[turn].question
    if turn > len(one.texts) or len(sample.turns) > _MOST_TURNS:
        return None
    try:
        return of_sample(sample).next_turn(sample, turn, one.texts)
    except (AttributeError, ArithmeticError, KaratError, LookupError, TypeError, ValueError):
        return None  # samples that no study made


def answer_of(sample: Sample, turn: int, one: Heard) -> dict[str, Any]:
    """What was read in a reply: each field with its answer, or with why there is none."""
    row = one.rows.get(turn)
    said = row.detail.get("answers") if row is not None else None
    values: Mapping[str, Any] = said if isinstance(said, dict) else {}
    labels = {} if row is None else {name: why for name, why in row.labels.items() if name != "turn"}
    fields = fields_of(sample, turn)
    names = list(dict.fromkeys([*fields, *values, *labels]))[:_MOST_FIELDS]
    reply = one.reply(turn)
    return {
        "missing": one.missing(turn),
        "read": row is not None,
        "text": "" if reply is None else reply.text or reply.answer or "",
        "fields": [
            {
                "name": name,
                "value": value_told(values[name]) if name in values else None,
                "meaning": meaning_of(values.get(name), fields.get(name)),
                "why": labels.get(name, "").replace("_", " "),
            }
            for name in names
        ],
    }


def fields_of(sample: Sample, turn: int) -> Mapping[str, Any]:
    """Field → what it asks for, as the study says."""
    found = sample.detail.get("fields")
    one = found[turn] if isinstance(found, list) and turn < len(found) else None
    return one if isinstance(one, dict) else {}


def field_told(one: Any) -> str:
    """What a field asks for, in a few words."""
    if not isinstance(one, dict):
        return ""
    options, ends = one.get("options"), one.get("range")
    parts = []
    if isinstance(options, (list, dict)):
        parts.append(" / ".join(str(label) for label in list(options)[:20]))
    if isinstance(ends, list) and len(ends) == 2:
        low, high = ("" if end is None else value_told(end) for end in ends)
        parts.append(f"{low} to {high}" if low and high else f"from {low}" if low else f"to {high}")
    parts += ["optional"] if one.get("optional") is True else []
    told = ", ".join(filter(None, parts))
    return formats.excerpt(": ".join(filter(None, (str(one.get("type", "")), told))), _LONG)


def value_told(value: Any) -> str:
    """An answer, written."""
    if isinstance(value, float) and value == value and abs(value) < 1e15 and value == int(value):
        value = int(value)
    if isinstance(value, list):
        return _cut(", ".join(value_told(one) for one in value[:100]))
    if isinstance(value, str):
        return _cut(value)
    return formats.raw(value) if isinstance(value, (int, float)) else _cut(json.dumps(value, ensure_ascii=False))


def meaning_of(value: Any, field: Any) -> str:
    """What a chosen option says, where the study tells."""
    options = field.get("options") if isinstance(field, dict) else None
    said = options.get(value) if isinstance(options, dict) and isinstance(value, str) else None
    return _cut(said) if isinstance(said, str) and said != value else ""


def put_in(template: str, filled: str | None) -> list[tuple[str, str]]:
    """The values that stand in a text where its template has {{ names }}, each name once.

    Nothing where the two do not fit together.

    >>> put_in("You said {{ last.number }}, others {{ others.mean }}.", "You said 3, others 41.5.")
    [('last.number', '3'), ('others.mean', '41.5')]
    """
    first, *rest = template.split("{{")
    if filled is None or not rest or not filled.startswith(first):
        return []
    found: dict[str, str] = {}
    at = len(first)
    for number, part in enumerate(rest):
        name, closed, literal = part.partition("}}")
        last = number == len(rest) - 1
        end = len(filled) - len(literal) if last and filled.endswith(literal) else filled.find(literal, at)
        if not closed or end < at or (not literal and not last):
            return []
        found.setdefault(name.strip(), filled[at:end])
        at = end + len(literal)
    return list(found.items())


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
