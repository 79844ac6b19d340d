"""What must hold of an answer, as a row of a dataset or an assertion of promptfoo states it.

Source of promptfoo's types and prefixes: its types `Assertion` and `BaseAssertionTypes`, and
`assertionFromString`, which reads `__expected` in files of tests (version 0.121).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from karat.documents.names import criterion_type
from karat.documents.validation import shown
from karat.errors import did_you_mean
from karat.records import CRITERION_TYPES, Criterion

NOT = "not-"
"""Before a type: the opposite must hold."""

_VALUE_KEYS = ("text", "value", "criterion", "assertion")
_TEXT_KEYS = (*_VALUE_KEYS, "description", "fact", "expectation")
_WEIGHT_KEYS = ("weight", "points")
_DEALBREAKER_KEYS = ("dealbreaker", "required", "critical")
_TOOL_KEYS = ("name", "tool", "tool_name", "function")
_TYPE_KEYS = ("type", "method")
_TEXTLESS = ("is-json", "contains-json")
_NUMBERS = ("max-seconds", "max-dollars")
_JUDGED = {
    "judge": "{}",
    "llm-rubric": "{}",
    "g-eval": "{}",
    "model-graded-closedqa": "{}",
    "factuality": "The answer agrees in its facts with: {}",
    "model-graded-factuality": "The answer agrees in its facts with: {}",
    "similar": "The answer means the same as: {}",
}
"""Types that a judge decides → what must hold."""
_RENAMED = {
    "trajectory:tool-used": "tool",
    "includes": "contains",
    "exact": "equals",
    "exact_match": "equals",
    "llm": "judge",
    "rubric": "judge",
}
_LIMITS = {"latency": ("max-seconds", 0.001), "cost": ("max-dollars", 1.0)}
_URL = re.compile(r"https?://\S+\Z", re.IGNORECASE)
_EXPECTED = re.compile(r"__expected\d*\Z")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+")
_PATTERN = 10_000  # characters of a regular expression, as of the scorer `regex`


def columns_of(columns: Iterable[str]) -> list[str]:
    """The columns that hold criteria by their names."""
    expected = sorted(column for column in columns if _EXPECTED.match(column.strip()))
    return [*(column for column in columns if criterion_type(column) is not None), *expected]


def read(value: object, *, column: str = "criteria") -> tuple[tuple[Criterion, ...], list[str]]:
    """The criteria in a cell, and its faults, each with its place.

    A text is one criterion, several if its lines are a list or if it is a JSON list, or if it has
    semicolons or bars and is no sentence; in a list, bars part texts of which one suffices, as
    does one of those in a list inside it. A criterion is a text, or an object with `text` and
    perhaps `type`, `weight` (or `points`) and `dealbreaker` (or `required`), or an assertion of
    promptfoo. A text without a type is judged, unless it is an address or the column's name says
    otherwise. An empty cell has none.

    >>> [(one.type, one.text) for one in read(["Says 30 days", "https://a.example/b"])[0]]
    [('judge', 'Says 30 days'), ('url', 'https://a.example/b')]
    """
    if _EXPECTED.match(column.strip()):
        if value is None or value == "":
            return (), []
        if not isinstance(value, str):
            return (), [f"'{column}' must be a text, got {shown(value)}"]
        expected, unlike = of_expected(value)
        if unlike is None:
            return tuple(expected), []
        return (), [
            f"'{column}' has no equivalent in karat ({unlike}); `karat init --from` leaves it out"
        ]

    by_default = criterion_type(column) or "judge"
    found: list[Criterion] = []
    wrong: list[str] = []
    entries = _entries(value, by_default)
    if by_default.endswith("-any") and all(isinstance(entry, str) for entry in entries):
        entries = [entries] if entries else []
    several = len(entries) > 1
    for place, entry in enumerate(entries):
        if several:
            named = f"'{column}'[{place}]"
        else:
            named = f"'{column}'"

        if isinstance(entry, str):
            kind = by_default
            if kind == "judge" and _URL.match(entry.strip()):
                kind = "url"
            text = entry
            if kind == f"{NOT}judge" and len(entry.split()) == 1:
                kind = f"{NOT}icontains"  # a word, which no judge can take as a rule
            if "|" in entry and kind.endswith("contains"):
                kind = f"{kind}-any"
                text = entry.replace("|", "\n")
            criteria, why = _of_object({"type": kind, "text": text}, by_default)
        elif isinstance(entry, list) and by_default.startswith("icontains"):  # alternatives
            criteria, why = _of_object({"type": "icontains-any", "value": entry}, by_default)
        elif isinstance(entry, Mapping):
            given = _of_call(entry) if by_default.endswith("tool") else entry
            criteria, why = _of_object(given, by_default)
        else:
            criteria = []
            why = [f"must be a text or an object with `text`, got {shown(entry)}"]

        found += criteria
        wrong += [f"{named} {message}" for message in why]

    return tuple(found), wrong


def _of_call(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The criterion of a tool call, as a model makes it: its name, without the arguments."""
    function = entry.get("function")
    call = function if isinstance(function, Mapping) else entry
    name = _first(call, _TOOL_KEYS)
    return entry if name is None else {"text": name}


def of_assertion(assertion: Mapping[str, object]) -> tuple[list[Criterion], str | None]:
    """The criteria of one of promptfoo's assertions, or why it cannot be taken.

    Its value is text already: no file, no program, no variable.
    """
    kind = _plain_type(str(assertion.get("type") or ""))
    if kind.removeprefix(NOT) == "assert-set":
        # The members of a set of assertions that must all hold; they share its weight
        members = assertion.get("assert")
        if assertion.get("threshold") is not None or not isinstance(members, list) or not members:
            return [], "assert-set: has a threshold, or no assertions"
        found: list[Criterion] = []
        for member in members:
            criteria, why = of_assertion(member if isinstance(member, Mapping) else {})
            if why is not None:
                return [], f"assert-set: {why}"
            found += criteria

        share = (_number(assertion.get("weight", 1)) or 0.0) / len(found)
        return [msgspec.structs.replace(one, weight=one.weight * share) for one in found], None

    if kind and not _is_known(kind):
        return [], kind
    criteria, wrong = _of_object(assertion, "judge")
    if wrong:
        return [], f"{kind or 'an assertion without a type'}: {'; '.join(wrong)}"
    return criteria, None


def of_expected(text: str) -> tuple[list[Criterion], str | None]:
    """The criteria of a cell `__expected` in a file of tests of promptfoo, or why it cannot be
    taken.

    >>> of_expected("icontains-any: free, no charge")[0][0].text
    'free\\nno charge'
    """
    text = text.strip()
    graded = re.match(r"(?:grade|llm-rubric):", text)
    if graded is not None:
        return of_assertion({"type": "llm-rubric", "value": text[graded.end() :].strip()})
    if re.match(r"fn:|eval:|python:|file:", text):
        return [], f"{text.partition(':')[0]}: a program"

    typed = re.match(r"((?:not-)?[a-z][a-z-]*)(?:\(([0-9.]+)\))?(:|\Z)", text)
    kind = ""
    if typed is not None:
        kind = typed[1]
    if typed is None or not _is_known(kind):
        if typed is not None and typed[3] and re.fullmatch(_OTHERS, kind.removeprefix(NOT)):
            return [], kind
        return of_assertion({"type": "equals", "value": text})

    threshold = typed[2]
    value = text[typed.end() :].strip()
    given: dict[str, object] = {"type": kind, "value": value}
    if kind.removeprefix(NOT) in _LIMITS:
        given = {"type": kind, "threshold": threshold or value}
    elif _plain_type(kind).endswith(("-any", "-all")):
        given["value"] = [part.strip() for part in value.split(",") if part.strip()]

    return of_assertion(given)


_OTHERS = (
    r"javascript|python|ruby|webhook|levenshtein|rouge-n|bleu|gleu|meteor|perplexity(-score)?"
    r"|is-(?!json).*|contains-(sql|xml|html)|answer-relevance|context-.*|classifier|moderation"
    r"|select-best|guardrails|finish-reason|word-count|pi|search-rubric|trajectory.*"
)
"""Types of promptfoo that have no equivalent."""


def _entries(value: object, by_default: str) -> list[object]:
    """The single criteria in a cell."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith(("[", "{")):
            with suppress(ValueError, RecursionError):
                return _entries(json.loads(text), by_default)

        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and all(_BULLET.match(line) for line in lines):
            return [_BULLET.sub("", line, count=1) for line in lines]
        if by_default != "judge":
            parts = [part.strip() for line in lines for part in re.split("[;|]", line)]
            return [part for part in parts if part]

        if text:
            return [text]
        return []

    if value is None:
        return []
    if not isinstance(value, list):
        return [value]
    return [entry for entry in value if entry not in (None, "")]


def _of_object(given: Mapping[str, Any], by_default: str) -> tuple[list[Criterion], list[str]]:
    wrong = []
    stated = _first(given, _TYPE_KEYS)
    if stated is None:
        kind = by_default
    else:
        kind = _plain_type(str(stated))

    if not _is_known(kind):
        known = [*CRITERION_TYPES, *_JUDGED, *_LIMITS]
        return [], [f"has the unknown type {shown(stated)}{did_you_mean(kind, known)}"]

    opposite = kind.startswith(NOT)
    base = kind.removeprefix(NOT)
    value = _first(given, _TEXT_KEYS if base == "judge" else _VALUE_KEYS)
    if base in _LIMITS:
        base, factor = _LIMITS[base]
        limit = _number(given.get("threshold", value))
        value = None
        if limit is not None:
            value = f"{limit * factor:.12g}"

    text, why = _text_of(value, base)
    if why is not None:
        wrong.append(why)
    weight = _first(given, _WEIGHT_KEYS)
    if weight is not None:
        number = _number(weight)
    else:
        number = 1.0
    if number is None or abs(number) > 1e6:
        wrong.append(f"has the weight {shown(weight)}, expected a number from -1e6 to 1e6")
    dealbreaker = _first(given, _DEALBREAKER_KEYS)
    if not isinstance(dealbreaker, (bool, type(None))):
        wrong.append(f"has `dealbreaker` {shown(dealbreaker)}, expected true or false")
    if wrong or number is None:
        return [], wrong

    if base in _JUDGED:
        text = _JUDGED[base].format(text)
        base = "judge"
    if opposite:
        name = f"{NOT}{base}"
    else:
        name = base
    if dealbreaker:
        stated_besides: dict[str, Any] = {"dealbreaker": True}
    else:
        stated_besides = {}
    if number != 1:  # what a struct leaves out is the default itself, not an equal value
        stated_besides["weight"] = number
    if name != "judge":
        stated_besides["type"] = name
    return [Criterion(text=text, **stated_besides)], []


def _plain_type(kind: str) -> str:
    """A type as it is listed: `not-equals`."""
    name = kind.strip().casefold()
    if name.replace("_", "-") in CRITERION_TYPES:
        return name.replace("_", "-")
    return _RENAMED.get(name, name)


def _is_known(kind: str) -> bool:
    base = _plain_type(kind).removeprefix(NOT)
    return base in CRITERION_TYPES or base in _JUDGED or base in _LIMITS


def _text_of(value: object, kind: str) -> tuple[str, str | None]:
    """The text of a criterion of this type, or what is wrong with its value."""
    if kind.endswith(("-any", "-all")) and isinstance(value, (list, str)):
        parts = value
        if isinstance(parts, str):
            if "\n" in parts.strip():
                parts = parts.splitlines()
            else:
                parts = parts.split(",")
        lines = []
        for part in parts:
            if isinstance(part, str):
                line = part
            else:
                line = json.dumps(part, ensure_ascii=False)
            if line.strip():
                lines.append(" ".join(line.split()))

        text = "\n".join(lines)
    elif isinstance(value, str):
        text = value.strip()
    elif value is None or isinstance(value, bool):
        text = ""
        if value is not None:
            text = str(value).lower()
    elif isinstance(value, (int, float)):
        text = str(value).removesuffix(".0")
    else:
        text = json.dumps(value, ensure_ascii=False)

    if not text and kind not in _TEXTLESS:
        return "", f"has no text (`{kind}` needs one)"
    return text, _unfit(text, kind)


def _unfit(text: str, kind: str) -> str | None:
    """What is wrong with the text of a criterion of this type; None: nothing."""
    if kind == "regex":
        if len(text) > _PATTERN:
            return f"has a pattern of {len(text)} characters, at most {_PATTERN} are read"
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            return f"is not a regular expression: {error}"

    if kind in _NUMBERS:
        limit = _number(text)
        if limit is None or limit < 0:
            return f"must be a number of at least 0, got '{text:.40}'"

    if kind in _TEXTLESS and text:
        try:
            schema = json.loads(text)
        except (ValueError, RecursionError) as error:
            return f"is not a JSON schema: {error}"

        if not isinstance(schema, (dict, bool)):
            return "is not a JSON schema: must be an object"

    return None


def _first(given: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _number(value: object) -> float | None:
    """The number, or the one in a text; None: it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None

    return number if math.isfinite(number) else None
