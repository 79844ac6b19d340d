"""What a judge has to give back: its form, and the tolerant reading of what models make of it.

Tolerated, because it is unambiguous: prose around the JSON, a code fence, further keys, `"4"`
and `4.0` for 4, a list that is missing. Asked for again: whatever could mean two things.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from karat.rubrics import ExtraField, Rubric, RubricMetric

__all__ = ["Judgement", "Unusable", "is_copy", "judgement_of", "read_object", "schema_of"]

_MOST_CHARACTERS = 60_000  # of an output; a judgement has a few hundred
_MOST_STARTS = 2_000  # opening braces of an answer that are looked behind
_MOST_DIGITS = 6  # of a number that a fault names
_TYPES = {"list": "a list of texts", "text": "a text", "bool": "true or false", "number": "a number"}
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,9}\s*")


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One output, read."""

    scores: dict[str, int]  # metric → level
    reasons: dict[str, str]
    extra: dict[str, Any]  # field → list of texts, text, bool or number


class Unusable(Exception):
    """The output cannot be used. The message never repeats the output's own words.

    It goes back to the judge outside of every block, and what a judge wrote may have been put
    into its mouth by the answer.
    """


def schema_of(rubric: Rubric) -> dict[str, Any]:
    """The form as a JSON schema: each metric's reasoning before its score, so that it is thought first."""
    properties: dict[str, Any] = {metric.name: _metric_schema(metric) for metric in rubric.metrics}
    properties |= {field.name: _extra_schema(field) for field in rubric.extra_fields}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _metric_schema(metric: RubricMetric) -> dict[str, Any]:
    return {
        "type": "object",
        "description": metric.description,
        "properties": {
            "reasoning": {"type": "string", "description": "what was found, in one to three sentences"},
            "score": {"type": "integer", "enum": list(range(metric.low, metric.high + 1))},
        },
        "required": ["reasoning", "score"],
        "additionalProperties": False,
    }


def _extra_schema(field: ExtraField) -> dict[str, Any]:
    if field.type == "list":
        return {"type": "array", "items": {"type": "string"}, "description": field.description}
    kind = {"text": "string", "bool": "boolean", "number": "number"}[field.type]
    return {"type": kind, "description": field.description}


def read_object(text: str, rubric: Rubric) -> dict[str, Any]:
    """The one JSON object in a text that names a metric. Raises Unusable: none, or two that differ."""
    if len(text) > _MOST_CHARACTERS:
        raise Unusable("the output is far too long; give the JSON object alone")
    names = {metric.name for metric in rubric.metrics}
    found: list[dict[str, Any]] = []
    for value in _objects(text):
        if names & set(value) and value not in found:
            found.append(value)
    if not found:
        raise Unusable("there is no JSON object with the scores in the output; give that object and nothing else")
    if len(found) > 1:
        raise Unusable("there are several JSON objects with scores in the output; give one and nothing else")
    return found[0]


def is_copy(values: Mapping[str, Any], text: str, rubric: Rubric) -> bool:
    """Whether a judgement stands word for word in the answer: a judge that quotes it has not judged."""
    if not any(metric.name in text or "\\u" in text for metric in rubric.metrics):
        return False
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(_MOST_STARTS):
        if start < 0:
            return False
        try:
            if decoder.raw_decode(text, start)[0] == values:
                return True
        except (ValueError, RecursionError):
            pass
        start = text.find("{", start + 1)
    return False


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost `{…}` that is JSON.

    What stands inside of braces that are no JSON is not looked at, nor what follows a brace
    that is never closed: it may be a piece of the answer that the judge quotes.
    """
    end = 0
    while (start := text.find("{", end)) >= 0:
        end = _closing(text, start)
        if not end:
            return
        value = _decoded(text[start:end])
        if value is not None:
            yield value


def _closing(text: str, start: int) -> int:
    """The place behind the brace that closes the one at `start`; 0 where none does."""
    depth, quoted, place = 0, False, start
    while place < len(text):
        character = text[place]
        if quoted:
            place += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if not depth:
                return place + 1
        place += 1
    return 0


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A key that stands twice has two meanings: the object counts as unreadable.
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def judgement_of(values: Mapping[str, Any], rubric: Rubric) -> Judgement:
    """The output as the rubric wants it. Raises Unusable with every fault, each with its place."""
    faults: list[str] = []
    scores, reasons, extra = {}, {}, {}
    for metric in rubric.metrics:
        given = values.get(metric.name)
        if not isinstance(given, Mapping):
            faults.append(f"{metric.name} {_wanted('an object with reasoning and score', values, metric.name)}")
            continue
        score = _level(given.get("score"))
        if score is None:
            wanted = f"a whole number from {metric.low} to {metric.high}"
            faults.append(f"{metric.name}.score {_wanted(wanted, given, 'score')}")
        elif not metric.low <= score <= metric.high:
            faults.append(f"{metric.name}.score must be from {metric.low} to {metric.high}, got {_digits(score)}")
        else:
            scores[metric.name] = score
        reason = given.get("reasoning")
        if isinstance(reason, str) and reason.strip():
            reasons[metric.name] = reason.strip()
        else:
            faults.append(f"{metric.name}.reasoning {_wanted('a text', given, 'reasoning')}")
    for field in rubric.extra_fields:
        usable, extra[field.name] = _extra(values.get(field.name), field)
        if not usable:
            faults.append(f"{field.name} {_wanted(_TYPES[field.type], values, field.name)}")
    if faults:
        raise Unusable("; ".join(faults))
    return Judgement(scores=scores, reasons=reasons, extra=extra)


def _level(value: Any) -> int | None:
    """4, 4.0 and "4" are four; 4.5, true, "4/5" and "four" are nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) else None


def _extra(value: Any, field: ExtraField) -> tuple[bool, Any]:
    """Whether the value is of the field's type, and the value as it is kept."""
    if field.type == "list":
        if value is None:
            return True, []
        texts = [value] if isinstance(value, str) else value
        usable = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        return usable, [text.strip() for text in texts if text.strip()] if usable else []
    if field.type == "bool":
        return isinstance(value, bool), value
    if field.type == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool), value
    return isinstance(value, str), value


def _digits(number: int) -> str:
    return str(number) if abs(number) < 10**_MOST_DIGITS else "a number far outside"


def _wanted(what: str, values: Mapping[str, Any], key: str) -> str:
    if key not in values:
        return f"is missing: must be {what}"
    kinds = ((bool, "true or false"), ((int, float), "another number"), (str, "a text"), (list, "a list"))
    got = next((words for kind, words in kinds if isinstance(values[key], kind)), None)
    return f"must be {what}, got {got or ('nothing' if values[key] is None else 'an object')}"
