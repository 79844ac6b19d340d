"""What must hold of an answer, as a row of a dataset or an assertion of promptfoo states it.

Source of promptfoo's types and prefixes: its types `Assertion` and `BaseAssertionTypes`, and
`assertionFromString`, which reads `__expected` in files of tests (version 0.121).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from karat.documents.cells import as_text, parsed
from karat.documents.columns import are_texts, is_empty
from karat.documents.names import criterion_type, joined, last_part, word_set, words_of
from karat.documents.validation import shown
from karat.errors import did_you_mean
from karat.records import CRITERION_TYPES, Criterion

NOT = "not-"
"""Before a type: the opposite must hold."""

NO_TEXT = "has no text (`judge` needs one)"
NO_TOOL = Criterion(text="*", type="not-tool")
"""That no tool may be called."""
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
_TERM = re.compile(r"(?!.*[.!?。]$)(?:\S+ ){0,4}\S{1,40}")
"""A word or a few, to find in an answer."""
_HOW_MANY = {
    **dict.fromkeys(("any", "anyof", "oneof"), "any"),
    **dict.fromkeys(("all", "allof"), "all"),
    **dict.fromkeys(("none", "noneof"), "none"),
}
"""Names of lists in an object of criteria → how many of their entries must hold."""
_OF_SPELLINGS = word_set(
    "answer answers key keys alias aliases variants spellings acceptable accepted"
)
"""Words of names of lists in which each text is the same answer."""
_FEW = 4  # rows, which may lack terms by chance
_PATTERN = 10_000  # characters of a regular expression, as of the scorer `regex`


def columns_of(columns: Iterable[str]) -> list[str]:
    """The columns that hold criteria by their names."""
    expected = sorted(column for column in columns if _EXPECTED.match(column.strip()))
    return [*(column for column in columns if criterion_type(column) is not None), *expected]


def type_of(column: str, values: Iterable[object]) -> str:
    """The type of a text in a column that is known to hold criteria: as its name says, or as its
    cells do.

    A list inside a list is one fact in several spellings, which a comparison of texts finds.
    """
    named = criterion_type(column) or criterion_type(f"expect.{last_part(column)}")
    if named is not None:
        return named
    spellings = not _OF_SPELLINGS.isdisjoint(words_of(last_part(column)))
    for value in values:
        if spellings and isinstance(value, list) and _are_terms(value):
            return "icontains-any"
        for entry in _entries(value, "judge"):
            if isinstance(entry, list) and _are_terms(entry):
                return "icontains"

    return "judge"


def read(
    value: object,
    *,
    column: str = "criteria",
    by_default: str | None = None,
) -> tuple[tuple[Criterion, ...], list[str]]:
    """The criteria in a cell, and its faults, each with its place.

    A text is one criterion, several if its lines are a list or if it is a list in JSON or Python,
    or if it has semicolons or bars and is no sentence; in a list, bars part texts of which one
    suffices, as does one of those in a list inside it. A criterion is a text, or an object with
    `text` and perhaps `type`, `weight` (or `points`) and `dealbreaker` (or `required`), or an
    assertion of promptfoo. Of another object each key is a criterion; in a list, it is one as a
    whole. A text without a type is judged, unless it is an address or the column's name says
    otherwise. An empty cell has none.

    `by_default`: the type of a text; None: as the column's name says.

    >>> [(one.type, one.text) for one in read(["Says 30 days", "https://a.example/b"])[0]]
    [('judge', 'Says 30 days'), ('url', 'https://a.example/b')]
    >>> [(one.type, one.text) for one in read({"refund": True, "any_of": ["tea", "cake"]})[0]]
    [('judge', 'refund: yes'), ('icontains-any', 'tea\\ncake')]
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

    kind = by_default or criterion_type(column) or "judge"
    found: list[Criterion] = []
    wrong: list[str] = []
    entries = _entries(value, kind)
    if kind.endswith("-any") and are_texts(entries):
        entries = [entries] if entries else []
    several = len(entries) > 1
    for place, entry in enumerate(entries):
        if several:
            named = f"'{column}'[{place}]"
        else:
            named = f"'{column}'"

        if isinstance(entry, list):
            criteria, why = _of_alternatives(entry, kind)
        elif isinstance(entry, Mapping) and kind.removeprefix(NOT) != "tool" and _has_parts(entry):
            criteria, why = _of_parts(entry, kind, apart=not isinstance(value, list))
        elif isinstance(entry, Mapping):
            given = entry
            if kind.endswith("tool"):
                given = _of_call(entry)
            criteria, why = _of_object(given, kind)
        else:
            criteria, why = _of_value(entry, kind, column)

        found += criteria
        wrong += [f"{named} {message}" for message in why]

    return tuple(found), wrong


def unstated(value: object, *, column: str, asked: bool) -> list[str]:
    """Why a cell is no criterion unless the user says so: a number or a flag alone, or (not if they
    are `asked`) an object without a text.
    """
    if _EXPECTED.match(column.strip()):
        return []
    for entry in _entries(value, "judge"):
        if isinstance(entry, Mapping) and _has_parts(entry) and not asked:
            if criterion_type(column) != "tool":
                return [f"'{column}' {NO_TEXT}"]
        elif not isinstance(entry, (str, list, Mapping)):
            return [f"'{column}' must be a text or an object with `text`, got {shown(entry)}"]

    return []


def _of_value(value: object, kind: str, column: str) -> tuple[list[Criterion], list[str]]:
    """The criterion that a text or a number is."""
    if not isinstance(value, str):
        if kind.endswith("judge"):  # to a judge, a number alone says nothing
            value = f"{last_part(column)}: {as_text(value)}"
        return _of_object({"type": kind, "value": value}, kind)

    if kind == "judge" and _URL.match(value.strip()):
        kind = "url"
    if kind == f"{NOT}judge" and len(value.split()) == 1:
        kind = f"{NOT}icontains"  # a word, which no judge can take as a rule
    if "|" in value and kind.endswith("contains"):
        kind = f"{kind}-any"
        value = value.replace("|", "\n")

    return _of_object({"type": kind, "text": value}, kind)


def _of_alternatives(entries: Sequence[object], kind: str) -> tuple[list[Criterion], list[str]]:
    """The criterion that one of several entries meets."""
    if kind.endswith("tool"):
        entries = [_of_call(entry) if isinstance(entry, Mapping) else entry for entry in entries]
    texts = []
    for entry in entries:
        named = entry.get("text") if isinstance(entry, Mapping) else None
        texts.append(_as_line(named or entry))

    texts = [*filter(None, texts)]
    if kind.endswith("contains"):
        return _of_object({"type": f"{kind}-any", "value": texts}, kind)
    if kind.endswith("judge") and len(texts) > 1:
        return _of_object({"type": kind, "text": f"one of these: {'; or '.join(texts)}"}, kind)
    return _of_object({"type": kind, "text": "\n".join(texts)}, kind)


def _as_line(value: object) -> str:
    """A value as one line: an object as its keys with what they hold."""
    if isinstance(value, Mapping):
        parts = []
        for key, below in value.items():
            if below != []:
                parts.append(f"{key}: {_as_line(below)}")

        return "; ".join(parts)

    if isinstance(value, list):
        return ", ".join(map(_as_line, value))
    return " ".join((as_text(value) or "").split())


def _has_parts(entry: Mapping[str, Any]) -> bool:
    """Whether an object has no text, nor a type that is known, but other keys."""
    others = {*entry} - {*_TEXT_KEYS, *_WEIGHT_KEYS, *_DEALBREAKER_KEYS, *_TYPE_KEYS}
    filled = []
    for key in others:
        if not is_empty(entry[key]):
            filled.append(key)

    stated = _first(entry, _TYPE_KEYS)
    is_typed = stated is not None and _is_known(_plain_type(str(stated)))
    has_text = any(isinstance(entry.get(key), str) for key in _TEXT_KEYS)
    return bool(filled) and not is_typed and not has_text


def _of_parts(
    entry: Mapping[str, Any],
    kind: str,
    *,
    apart: bool,
) -> tuple[list[Criterion], list[str]]:
    """The criteria of an object: one for each key (`apart`), or one for all keys; and those of a
    list whose key says how many of it must hold.
    """
    found: list[Criterion] = []
    wrong: list[str] = []
    counted = any(joined(key) in _HOW_MANY for key in entry)
    others, kept = {}, {}
    for key, value in entry.items():
        many = _HOW_MANY.get(joined(key))
        named = criterion_type(key) or criterion_type(f"expect.{key}") or "judge"
        says_type = counted and joined(key) in _TYPE_KEYS
        if is_empty(value) or says_type:
            continue
        if many is not None and isinstance(value, list):
            criteria, why = _of_list(value, kind, many)
        elif key in (*_WEIGHT_KEYS, *_DEALBREAKER_KEYS) and isinstance(value, (bool, int, float)):
            kept[key] = value
            continue
        elif apart and named != "judge" and not isinstance(value, bool):
            criteria, why = read(value, column=key, by_default=named)
        elif apart:
            criteria, why = _of_object({"text": f"{key}: {_as_line(value)}"}, kind)
        else:
            others[key] = value
            continue

        found += criteria
        wrong += why

    if others:
        criteria, why = _of_object({**kept, "text": _as_line(others)}, kind)
        found += criteria
        wrong += why

    return found, wrong


def _of_list(values: list[Any], kind: str, many: str) -> tuple[Iterable[Criterion], list[str]]:
    """The criteria of a list of which so many must hold: `any`, `all` or `none`."""
    if kind.endswith("judge") and _are_terms(values):
        kind = kind.replace("judge", "icontains")
    if many == "none":
        kind = f"{NOT}{kind.removeprefix(NOT)}"
    if many == "any":
        return _of_alternatives(values, kind)
    return read(values, by_default=kind)


def _are_terms(values: Iterable[object]) -> bool:
    """Whether a list, also one of lists, holds words to find in an answer, and no sentences."""
    for value in values:
        if isinstance(value, list):
            if not _are_terms(value):
                return False
        elif not isinstance(value, (str, int, float)) or not _TERM.fullmatch(str(value).strip()):
            return False

    return True


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
        listed = parsed(text)
        is_object = isinstance(listed, dict) and any(value is not None for value in listed.values())
        if isinstance(listed, list) or is_object:
            return _entries(listed, by_default)

        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and all(_BULLET.match(line) for line in lines):
            return [_BULLET.sub("", line, count=1) for line in lines]
        if by_default != "judge":
            parts = []
            for line in lines:
                for part in re.split("[;|]", line):
                    parts.append(part.strip())

            if len(parts) == 1:
                parts = _comma_list(parts[0], by_default)
            return [part for part in parts if part]

        if text:
            return [text]
        return []

    if value is None or value == {}:
        return []
    if not isinstance(value, list):
        return [value]
    return [entry for entry in value if entry not in (None, "", {})]


def _comma_list(text: str, kind: str) -> list[str]:
    """The parts of a text that commas part, if these can be names of tools, addresses or terms."""
    parts = [part.strip() for part in re.split(r",(?!\d{3})", text)]
    names = kind.removeprefix(NOT) in ("tool", "url")
    if all(not part or " " not in part if names else _TERM.fullmatch(part) for part in parts):
        return parts
    return [text]


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


def most_fail(pairs: Iterable[tuple[object, object]], path: str, kind: str) -> bool:
    """Whether most golden answers hold none of the terms in their cells of a column: then these
    are terms of another text. `pairs`: a cell and the golden answer beside it.
    """
    if not kind.startswith(("contains", "icontains")):
        return False
    failed = together = 0
    for value, golden in pairs:
        stated, _ = read(value, column=path, by_default=kind)
        terms = [line for one in stated for line in one.text.casefold().splitlines()]
        if terms and isinstance(golden, str) and golden:
            together += 1
            failed += not any(term in golden.casefold() for term in terms)

    return 2 * failed > together > _FEW


def as_rule(value: object, path: str, kind: str) -> str:
    """The criteria in a cell as one text, which says how they must hold."""
    by_type: dict[str, list[str]] = {}
    stated, _ = read(value, column=path, by_default=kind)
    for criterion in stated:
        rule = criterion.type
        if rule.startswith(NOT):
            rule = "none of"
        by_type.setdefault(rule, []).append(criterion.text.replace("\n", " | "))

    rules = []
    for rule, texts in by_type.items():
        listed = "; ".join(texts)
        if rule != "judge" or len(texts) > 1:
            listed = f"{_RULES.get(rule, rule)}: {listed}"
        rules.append(listed)

    return "; ".join(rules)


_RULES = {
    "judge": "all of, as a judge sees it",
    "icontains": "all of",
    "icontains-any": "one of each",
    "tool": "calls all of the tools",
    "url": "names all of",
}
