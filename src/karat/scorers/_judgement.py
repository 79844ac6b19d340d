"""A judge's output: the form that is asked for, and what is read from the text that came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from karat.records import JsonObject
from karat.rubrics import ExtraField, Rubric
from karat.thoughts import spoken

_MOST_CHARACTERS = 60_000  # of an output; a judgement has a few hundred
_MOST_STARTS = 2_000  # opening braces of an answer that are tried
_TYPES = {
    "list": "a list of texts",
    "text": "a text",
    "bool": "true or false",
    "number": "a number",
}
_SCHEMAS: dict[str, JsonObject] = {
    "list": {"type": "array", "items": {"type": "string"}},
    "text": {"type": "string"},
    "bool": {"type": "boolean"},
    "number": {"type": "number"},
}
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,9}\s*")


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One parsed output."""

    scores: dict[str, int]  # metric → level
    reasons: dict[str, str]
    extra: JsonObject  # field → list of texts, text, bool or number


class Unusable(Exception):
    """The output cannot be used. The message never repeats the output.

    It goes back to the judge outside every block, and a judge's output may have been dictated
    by the answer.
    """


def schema_of(rubric: Rubric) -> dict[str, object]:
    """The form as a JSON schema: each metric's reasoning before its score, so the judge reasons
    first.
    """
    properties: JsonObject = {}
    for metric in rubric.metrics:
        properties[metric.name] = {
            "type": "object",
            "description": metric.description,
            "properties": {
                "reasoning": {
                    "type": "string",
                    "description": "what was found, in one to three sentences",
                },
                "score": {"type": "integer", "enum": list(range(metric.low, metric.high + 1))},
            },
            "required": ["reasoning", "score"],
            "additionalProperties": False,
        }

    for field in rubric.extra_fields:
        properties[field.name] = {**_SCHEMAS[field.type], "description": field.description}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_object(text: str, rubric: Rubric) -> dict[str, object]:
    """The one JSON object in a text that names a metric.

    Raises Unusable if there is none, or two that differ.
    """
    if len(text) > _MOST_CHARACTERS:
        raise Unusable("the output is far too long; give the JSON object alone")
    # a tag within the object may be quoted from the answer
    if not text.lstrip().startswith(("{", "```")):
        text = spoken(text)
    names = {metric.name for metric in rubric.metrics}
    exact: list[JsonObject] = []
    loose: list[JsonObject] = []  # used only where the judge wrote nothing better
    for value, is_loose in _objects(text):
        if is_loose:
            candidates = loose
        else:
            candidates = exact

        if names & set(value) and value not in candidates:
            candidates.append(value)

    candidates = exact or loose
    if not candidates:
        raise Unusable(
            "there is no JSON object with the scores in the output; give that object and "
            "nothing else"
        )

    if len(candidates) > 1:
        raise Unusable(
            "there are several JSON objects with scores in the output; give one and nothing else"
        )

    return candidates[0]


def _objects(text: str) -> Iterator[tuple[JsonObject, bool]]:
    """Every outermost `{…}` that is JSON, and whether that is so only without its comments and with
    Python's quotes replaced. Text inside braces that are not JSON is ignored, and so is text after
    a brace that is never closed: it may be a quoted piece of the answer.
    """
    end = 0
    while (start := text.find("{", end)) >= 0:
        end = _closing(text, start)
        if not end:
            break
        written = text[start:end]
        plain = _ODD_TOKEN.sub(_token, written)
        for form, is_loose in ((written, False), (_fixed(written), False), (_fixed(plain), True)):
            with suppress(ValueError, RecursionError):
                value = json.loads(
                    form, object_pairs_hook=_once, parse_constant=_refused, strict=False
                )
                yield value, is_loose
                break


def _fixed(text: str) -> str:
    """Without what models add to JSON: LaTeX and paths in texts, commas after the last item."""
    return _ODD_COMMA.sub("", _ODD_ESCAPE.sub(r"\\\g<0>", text))


_ODD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?![\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_ODD_TOKEN = re.compile(
    r"""("(?:[^"\\]|\\.)*+"?)|(?<!\d)(?:(?://|#)[^\n]*|/\*.{0,2000}?\*/)"""
    r"""|'((?:[^'\\]|\\.|'(?!\s{0,80}[:,}\]]))*+)'?""",
    re.DOTALL,
)
_ODD_QUOTE = re.compile(r"""\\.|\"""", re.DOTALL)
_ODD_COMMA = re.compile(r",(?=\s{0,80}[}\]])")


def _token(odd: re.Match[str]) -> str:
    """A text in single quotes as JSON has it; a blank for a comment."""
    if odd[2] is None:
        return odd[1] or " "
    quotes = {"\\'": "'", '"': '\\"'}
    text = _ODD_QUOTE.sub(lambda sign: quotes.get(sign[0], sign[0]), odd[2])
    return f'"{text}"'


def is_copy(values: Mapping[str, object], text: str, rubric: Rubric) -> bool:
    """Whether the answer contains this judgement word for word: a judge that quotes it has not
    judged.
    """
    if not any(metric.name in text or "\\u" in text for metric in rubric.metrics):
        return False
    decoder = json.JSONDecoder()
    for brace in islice(re.finditer("{", text), _MOST_STARTS):
        with suppress(ValueError, RecursionError):
            if decoder.raw_decode(text, brace.start())[0] == values:
                return True

    return any(found == values for found, _ in _objects(text[:_MOST_CHARACTERS]))


def _closing(text: str, start: int) -> int:
    """The index after the brace that closes the one at `start`; 0 if none does."""
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


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # A key that appears twice has two meanings: the object counts as unreadable.
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def judgement_of(values: Mapping[str, object], rubric: Rubric) -> Judgement:
    """The output in the rubric's form. Raises Unusable with every fault, each with its place."""
    faults: list[str] = []
    scores, reasons, extra = {}, {}, {}
    for metric in rubric.metrics:
        given = values.get(metric.name)
        if not isinstance(given, Mapping):
            faults.append(
                f"{metric.name} "
                f"{_wanted('an object with reasoning and score', values, metric.name)}"
            )
            continue

        score = _level(given.get("score"))
        if score is None:
            wanted = f"a whole number from {metric.low} to {metric.high}"
            faults.append(f"{metric.name}.score {_wanted(wanted, given, 'score')}")
        elif not metric.low <= score <= metric.high:
            faults.append(
                f"{metric.name}.score must be from {metric.low} to {metric.high}, got {score}"
            )
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


def _level(value: object) -> int | None:
    """4, 4.0 and "4" are four; 4.5, true, "4/5" and "four" are None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) else None


def _extra(value: Any, field: ExtraField) -> tuple[bool, Any]:
    """Whether the value has the field's type, and the value to keep."""
    if field.type == "list":
        if value is None:
            return True, []
        if isinstance(value, str):
            texts = [value]
        else:
            texts = value

        usable = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        return usable, [text.strip() for text in texts if text.strip()] if usable else []

    return type(value) in _PLAIN[field.type], value


_PLAIN = {"bool": (bool,), "number": (int, float), "text": (str,)}


def _wanted(description: str, values: Mapping[str, object], key: str) -> str:
    if key not in values:
        return f"is missing: must be {description}"
    return f"must be {description}, got {_KINDS.get(type(values[key]), 'an object')}"


_KINDS = {
    bool: "true or false",
    int: "another number",
    float: "another number",
    str: "a text",
    list: "a list",
    type(None): "nothing",
}
