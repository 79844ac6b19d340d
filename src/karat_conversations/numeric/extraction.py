"""Extracts the answer from an agent's reply, with its position in the text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from karat_conversations.numeric.prose import answer_in_prose
from karat_conversations.numeric.quantities import may_be_a_year, quantities
from karat_conversations.numeric.values import parse_value

How = Literal["final", "json", "last_number", "regex"]


class Extracted(NamedTuple):
    """What was taken out of a text."""

    # as written, or spelled so that `parse_value` reads it; None: the text has none, or null
    answer: str | None
    unit: str | None  # if the agent gave one separately
    program: str | None  # its text; for a list or a plan, its JSON
    how: str  # final, json, last_number or regex; whole: the text is a single value
    # of the text: the JSON object, the number, or the expression's match
    span: tuple[int, int] | None


class Stated(NamedTuple):
    """The result for a whole reply."""

    answer: str | None
    unit: str | None
    program: Any
    # reply: the agent gave the answer separately; none: words without an answer; else as in
    # Extracted
    how: str
    # in the text, or in the answer that was given separately and searched
    span: tuple[int, int] | None


_LONGEST = 2_000  # characters kept of a text without an answer


def stated(
    text: str,
    *,
    answer: str | None = None,
    unit: str | None = None,
    program: Any = None,
    take: Callable[[str], Extracted] | None = None,
) -> Stated:
    """The answer that an agent gave separately from its text, else what `take` extracts from the
    text, else the text.

    `take` is `extract` by default. A separate answer that is not a single value, such as "The
    answer is 5" in a column of a file, is also searched by `take`; if nothing is found in it, it
    stays unchanged. A separate unit or program overrides that of the text.

    >>> stated("It grew by 5 %.", answer="0.05").how, stated("I do not know.").answer
    ('reply', 'I do not know.')
    """
    if answer is not None:
        if answer.strip() and parse_value(answer) is None:
            inside = (take or extract)(answer)
        else:
            inside = None

        if inside is None or inside.answer is None:
            return Stated(answer, unit, program or None, "reply", None)
        return Stated(
            inside.answer,
            unit or inside.unit,
            program or inside.program,
            inside.how,
            inside.span,
        )

    extracted = (take or extract)(text)
    unit = unit or extracted.unit
    program = program or extracted.program
    words = text.strip()
    if extracted.answer is None and extracted.span is None and words:
        return Stated(words[:_LONGEST], unit, program, "none", None)
    return Stated(extracted.answer, unit, program, extracted.how, extracted.span)


def extract(
    text: str,
    how: How = "json",
    pattern: str | None = None,
    *,
    question: str = "",
) -> Extracted:
    """The answer in an agent's text, and the span of the text that it was taken from.

    * `json`: the object `{"answer": …, "unit": …, "program": …}` of the last fenced block that
      has one, else the last one in the text; keys in any case, `scale` is a unit. Numbers stay as
      written (`0.10`), true is `true`, null is no answer; line breaks within strings are allowed.
      An object without `answer` is used only if there is no other, and gives no answer.
    * `final`: the JSON object, if one has `answer`; else what the text gives as its answer in
      words: `answer_in_prose`, which does not take numbers of the `question`. Two numbers that
      could both be meant are no answer.
    * `last_number`: the last number with its sign, currency, unit or %, as `quantities` finds it,
      but no year in brackets.
    * `regex`: the last match of `pattern`; its groups `answer`, `unit`, `program`, or its first
      group, or the whole match.

    If the text is a single value and nothing else, such as `14.1%` or `yes`, all but `regex` return
    it, with `how` = `whole`. No text raises, and time is linear in its length, except for the
    user's own pattern; an invalid or missing pattern raises ValueError.

    >>> extract('Thus ```json\\n{"answer": 14.10, "unit": "percent"}\\n```').answer
    '14.10'
    >>> extract("Sales fell from 12 to 10.5 million.", "last_number")
    Extracted(answer='10.5 million', unit=None, program=None, how='last_number', span=(22, 34))
    """
    if how == "regex":
        if not pattern:
            raise ValueError("pattern: the extractor `regex` needs one")
        try:
            matches = deque(re.finditer(pattern, text), maxlen=1)
        except re.error as error:
            raise ValueError(f"pattern: {error}") from error

        if not matches:
            return Extracted(None, None, None, "regex", None)
        last = matches[0]
        named = last.groupdict()
        if "answer" in named:
            group: str | int = "answer"
        elif last.re.groups and not named:
            group = 1
        else:
            group = 0

        span = last.span(group)
        return Extracted(
            last[group],
            named.get("unit"),
            named.get("program"),
            "regex",
            None if span == (-1, -1) else span,
        )

    if parse_value(text) is not None:
        start = len(text) - len(text.lstrip())
        return Extracted(text.strip(), None, None, "whole", (start, len(text.rstrip())))

    match how:
        case "json":
            return _from_json(text)
        case "last_number":
            for number in reversed(quantities(text)):
                if not (number.remark and may_be_a_year(number)):
                    return Extracted(
                        number.answer,
                        None,
                        None,
                        "last_number",
                        (number.start, number.end),
                    )

            return Extracted(None, None, None, "last_number", None)

    given = _from_json(text)
    if given.span is not None and _ANSWERS.search(text, *given.span):
        inner = None
        if given.answer is not None and parse_value(given.answer) is None:
            inner = answer_in_prose(given.answer, question)
        if inner is None:
            return given
        return given._replace(answer=inner.answer, unit=given.unit or inner.unit)

    found = answer_in_prose(text, question)
    if found is None:
        return Extracted(None, None, None, "final", None)
    unit = found.unit
    if given.span is not None and given.span[0] <= found.span[0] < given.span[1]:
        unit = unit or given.unit  # an object that calls its answer otherwise
    return Extracted(found.answer, unit, None, "final", found.span)


_ANSWERS = re.compile(r'"answer"\s*:', re.IGNORECASE)


def _from_json(text: str) -> Extracted:
    # The start and end of fenced blocks; the last one may never be closed
    marks = [mark.start() for mark in re.finditer("```", text)]
    ends = marks[1::2]
    starts = marks[::2]
    if len(marks) % 2 != 0:
        ends = [*ends, len(text)]

    best: tuple[tuple[bool, bool, int], dict[str, object], int] | None = None
    for fields, start, end in _objects(text):
        block = bisect_right(starts, start) - 1
        answers = "answer" in fields
        rank = (answers, answers and block >= 0 and end <= ends[block], start)
        if best is None or rank > best[0]:
            best = (rank, fields, end)

    if best is None:
        return Extracted(None, None, None, "json", None)
    (_, _, start), fields, end = best
    source = text[start:end]
    named = "unit" if "unit" in fields else "scale"  # as TAT-QA calls it
    given = fields.get("answer")
    if isinstance(given, dict):  # a value with its unit
        inner = {str(key).casefold(): value for key, value in given.items()}
        fields.setdefault(named, inner.get("unit"))
        if isinstance(inner.get("value"), str):
            fields["answer"] = inner["value"]
    answer, unit, program = (
        _text(fields.get(key), source, key) for key in ("answer", named, "program")
    )
    return Extracted(answer, unit, program, "json", (start, end))


_OPENING = re.compile(r'\{(?=\s*+(?:\}|"[^"]{0,99}+"\s*+:))')
_AS_WRITTEN = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=str)
_USUAL = json.JSONDecoder(strict=False)
# how often a text may be read in search of objects: a bound for nests that are never closed
_READINGS = 32


def _objects(text: str) -> Iterator[tuple[dict[str, object], int, int]]:
    """The outermost JSON objects, from left to right, with their start and end."""
    at = 0
    left = _READINGS * len(text)
    while left > 0 and (opening := _OPENING.search(text, at)):
        start = opening.start()
        try:
            fields, end = _AS_WRITTEN.raw_decode(text, start)
        except json.JSONDecodeError as error:
            at = start + 1
            if error.msg.startswith("Unterminated"):
                far = len(text)
            else:
                far = error.pos

            left -= far - start + far // 64 + 1  # json's error counts the lines up to its position
        except RecursionError:
            at = start + 1
            left -= len(text)
        else:
            yield {str(key).casefold(): value for key, value in fields.items()}, start, end
            at = end


def _text(value: object, source: str, key: str) -> str | None:
    """A value of an object as text: texts and numbers as written, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    try:
        usual = {name.casefold(): item for name, item in _USUAL.decode(source).items()}
        return json.dumps(usual[key])
    except ValueError:  # a number with more digits than Python reads
        return json.dumps(value)
    except RecursionError:
        return None
