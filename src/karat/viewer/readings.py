"""How a person reads what a participant answered: what the form of a turn asks, what can be said, what karat read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from karat.journal import Label
from karat.kinds import of_sample
from karat.kinds.study.fields import KINDS
from karat.records import Sample, Score
from karat.viewer.tasks import fields_of, value_told

__all__ = ["LONGEST", "Answered", "asked", "checked", "read_by", "read_by_karat", "said"]

Answered = float | str | list[str]

LONGEST = 10_000
"""Characters of an answer as JSON that a form sends back; of a longer one it can only say why it is none."""

_MOST_FIELDS = 60  # of one turn
_MOST_OPTIONS = 60
_NAMED = 60  # characters of an answer in a list of choices


def read_by_karat(row: Score | None, name: str) -> tuple[Answered | None, str]:
    """The answer that karat read in a field, or why there is none; neither, where it has not read the turn."""
    if row is None:
        return None, ""
    values = row.detail.get("answers")
    value = values.get(name) if isinstance(values, dict) else None
    return (value, "") if _is_answer(value) else (None, row.labels.get(name, ""))


def read_by(label: Label, name: str) -> tuple[Answered | None, str]:
    """The same of a person."""
    return label.answers.get(name), label.unread.get(name, "")


def said(value: Answered | None, kind: str) -> str:
    """A reading, written.

    >>> said(40.0, ""), said(None, "out_of_range"), said(None, "")
    ('40', 'out of range', '–')
    """
    return value_told(value) if value is not None else kind.replace("_", " ") or "–"


def asked(sample: Sample, turn: int, row: Score | None, own: Label | None) -> list[dict[str, Any]]:
    """What the form of a turn asks of each field: choices as JSON with their names, and what its person said before.

    `row`: how karat read the turn, as `karat.viewer.tasks.reading_rows` has it.
    """
    found = []
    for place, (name, what) in enumerate(list(fields_of(sample, turn).items())[:_MOST_FIELDS]):
        karats = read_by_karat(row, name)
        options = _options(what)
        choices = [_choice(value, "", karats) for value in options]
        if karats[0] is not None and karats[0] not in options and len(_sent(*karats)) <= LONGEST:
            choices.insert(0, _choice(karats[0], "", karats))
        choices += [_choice(None, kind, karats) for kind in KINDS]
        mine = (None, "") if own is None else read_by(own, name)
        before = "" if mine == (None, "") else _sent(*mine)
        typed = bool(before) and before not in {value for value, _ in choices}
        found.append({
            "place": place, "name": name, "choices": choices, "open": not options,
            "own": "typed" if typed else before, "typed": value_told(mine[0]) if typed and mine[0] is not None else "",
        })  # fmt: skip
    return found


def checked(
    sample: Sample, turn: int, row: Score | None, place: str, given: tuple[Answered | None, str]
) -> tuple[str, Answered | None, str]:
    """Field, answer and why there is none, as a form gave them. Raises ValueError, with a sentence, for what is none.

    An answer is read as the study reads those of participants, but for one that karat itself had read.
    """
    names = list(fields_of(sample, turn))[:_MOST_FIELDS]
    at = int(place) if place.isascii() and place.isdigit() and len(place) < 6 else len(names)
    value, kind = given
    if at >= len(names) or (value is None) == (not kind):
        raise ValueError("a reading is of one of the turn's fields: an answer, or why there is none")
    name = names[at]
    if value is None:
        if kind not in KINDS:
            raise ValueError(f"{name}: want {', '.join(KINDS)}")
        return name, None, kind
    if len(_sent(value, "")) > LONGEST:
        raise ValueError(f"{name}: an answer has at most 10,000 characters")
    if value == read_by_karat(row, name)[0]:
        return name, value, ""
    read = of_sample(sample).read(sample, turn, json.dumps({name: value}))
    if name not in read.values:
        why = read.kinds.get(name, "invalid").replace("_", " ")
        raise ValueError(f"{name}: the study would not read that as an answer ({why})")
    return name, read.values[name], ""


def _options(what: Any) -> list[Answered]:
    """What can be chosen from, where that is few."""
    found = what.get("options") if isinstance(what, dict) and what.get("type") == "choice" else None
    if isinstance(found, dict | list) and all(isinstance(one, str) for one in found):
        return list(found) if len(found) <= _MOST_OPTIONS else []
    ends: Any = what.get("range") if isinstance(what, Mapping) and what.get("type") == "likert" else None
    if isinstance(ends, list) and len(ends) == 2 and all(_is_step(end) for end in ends):
        low, high = ends
        if low == int(low) and 0 < high - low <= _MOST_OPTIONS:
            return [float(step) for step in range(int(low), int(high) + 1)]
    return []


def _is_step(end: Any) -> bool:
    return isinstance(end, int | float) and not isinstance(end, bool) and abs(end) < 1e15


def _choice(value: Answered | None, kind: str, karats: tuple[Answered | None, str]) -> tuple[str, str]:
    name = said(value, kind)
    name = name if len(name) <= _NAMED else f"{name[:_NAMED]}…"
    return _sent(value, kind), f"{name}, as karat read it" if (value, kind) == karats else name


def _sent(value: Answered | None, kind: str) -> str:
    """As a form sends it: ASCII, so that nothing in it can be taken for something else."""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        value = int(value)
    return json.dumps({"kind": kind} if value is None else {"value": value})


def _is_answer(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str | float | int) and not isinstance(value, bool) and value == value
