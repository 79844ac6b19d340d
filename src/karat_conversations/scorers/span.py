"""Exact match and F1 of reading comprehension: the rules of SQuAD, or of TAT-QA for its questions.

SQuAD (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section
6.1; 2018, "Know What You Don't Know", section 4). TAT-QA (Zhu et al. 2021, "TAT-QA: A Question
Answering Benchmark on a Hybrid of Tabular and Textual Content in Finance", ACL, section 5.2; the
details are those of its public evaluation script).
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.records import Answer, Metric, Reply, Sample, Turn
from karat.scorers import Verdict, golden_turns
from karat_conversations.numeric import extract

__all__ = ["Span"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_LONGEST = 100_000  # characters of an answer


class Span:
    """Exact match and F1 of the words, as SQuAD counts them, or TAT-QA for its own questions.

    SQuAD: without case, punctuation and the articles a, an, the; the best of several golden answers
    counts. To a question that its text does not answer, an empty reply or one of `no_answer` is
    right, and nothing else.

    TAT-QA: numbers count with their scale (thousand, million, billion, percent) to two decimals,
    several spans in any order; F1 is over the set of words, to two decimals, and equals exact match
    where the answer was computed. The answer and its scale are those of the last `{"answer": …,
    "scale": …}` in the reply, else the reply itself.

    Every word of the reply counts: ask for the answer alone.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        no_answer: list[str] = Field(
            default=["unanswerable", "no answer"],
            description="replies that say that the text gives no answer",
        )

    metrics = (
        Metric(
            name="exact_match",
            low=0,
            high=1,
            kind="share",
            description="answers equal to a golden one",
        ),
        Metric(
            name="f1",
            low=0,
            high=1,
            kind="number",
            description="F1 of the words, with the nearest golden answer",
        ),
    )

    def __init__(self, options: Options | None = None) -> None:
        self._none = {_squad_words(text) for text in (options or self.Options()).no_answer}

    def score(self, sample: Sample, answer: Answer) -> list[Verdict] | None:
        """For each turn with a golden answer. None: there is none."""
        verdicts = []
        for number, turn, text in golden_turns(sample, answer):
            if number is None:
                place = len(sample.turns) - 1
            else:
                place = number

            if place < len(answer.replies):
                reply = answer.replies[place]
            else:
                reply = None

            if "answer_type" in turn.detail:
                exact, f1 = self._tatqa(turn, text, reply)
            else:
                given = _squad_words(text[:_LONGEST])
                if given in self._none:
                    given = ()
                if turn.detail.get("impossible"):
                    texts = []
                else:
                    texts = turn.detail.get("answers", [turn.golden])

                wanted = [
                    words for words in (_squad_words(str(golden)) for golden in texts) if words
                ] or [()]
                exact = given in wanted
                f1 = max(_f1(Counter(given), Counter(words)) for words in wanted)

            verdicts.append(Verdict(values={"exact_match": exact, "f1": f1}, turn=number))

        return verdicts or None

    def _tatqa(self, turn: Turn, text: str, reply: Reply | None) -> tuple[bool, float]:
        computed = turn.detail["answer_type"] in ("arithmetic", "count")
        wanted = _tatqa_words(_joined(turn.detail["answers"], str(turn.detail.get("scale") or "")))
        given, scale = _prediction(text[:_LONGEST], reply)
        if not given:
            return False, 0.0
        forms = [_joined(given, scale)]
        if (
            len(given) == 1
            and not scale
            and "%" not in given[0]
            and (value := _number(given[0])) is not None
        ):
            # 0.2342 is 23.42 percent: such an answer is not rounded to two decimals
            forms.append(_written(value))

        words = [_tatqa_words(form) for form in forms]
        exact = wanted in words
        return exact, float(exact) if computed else max(
            round(_f1(Counter(set(form)), Counter(set(wanted))), 2) for form in words
        )


def _squad_words(text: str) -> tuple[str, ...]:
    return tuple(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _f1(given: Counter[str], wanted: Counter[str]) -> float:
    """The harmonic mean of precision and recall; if one side has no words, whether the other has
    none too.
    """
    if not given or not wanted:
        return float(given == wanted)
    shared = (given & wanted).total()
    precision = shared / given.total()
    recall = shared / wanted.total()
    if shared:
        return 2 * precision * recall / (precision + recall)
    return 0.0


_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "percent": 0.01}
_SIGNS = str.maketrans("", "", "'\"\\$€£¥%(),[]")
_DIGITS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?|[+-]?\.[0-9]+")


def _scale(text: str) -> float:
    return next((factor for word, factor in _SCALES.items() if word in text.lower()), 1)


def _number(text: str) -> float | None:
    """The value of `(1.5)`, `12%`, `$1,496.5` or `1 million`, to four decimals; None: the text is
    not a number.
    """
    words = text.translate(_SIGNS).split()
    try:
        if (
            not words
            or not math.isfinite(float(words[0]))
            or (len(words) > 1 and _scale(words[1]) == 1)
        ):
            return None
    except ValueError:
        return None

    digits = _DIGITS.search(text.translate(_SIGNS))
    if digits is None or digits[0].lstrip("+-").startswith("."):
        return None
    unit = re.search(r"[0-9.]+\s?[a-zA-Z]+", text)
    value = (float(digits[0]) if "." in digits[0] else int(digits[0])) * (
        _scale(unit[0]) if unit else 1
    )
    # there, a bracket with a comma is not a minus
    value *= -1 if re.search(r"\([0-9.\s%]+\)", text) else 1
    return round(value * (0.01 if re.search(r"[0-9.\s]+%", text) else 1), 4)


def _joined(answers: Sequence[str], scale: str) -> str:
    """All spans as one text, in alphabetical order; numbers in full."""
    parts = []
    for text in sorted(map(str, answers)):
        value = _number(text)
        if value is None:
            if scale:
                parts.append(f"{text} {scale}")
            else:
                parts.append(text)
        else:
            parts.append(_written(value if "%" in text else round(value, 2) * _scale(scale)))

    return " ".join(parts)


def _written(value: float) -> str:
    """To four decimals, never with an exponent."""
    return format(round(float(value), 4), "f")


def _tatqa_words(text: str) -> tuple[str, ...]:
    words: list[str] = []
    for token in text.lower().split(" "):
        if _number(token) is not None:
            plain = token
        else:
            plain = token.translate(_PUNCTUATION)

        value = _number(plain)
        words += _ARTICLE.sub(" ", plain if value is None else str(value)).split()

    return tuple(words)


def _prediction(text: str, reply: Reply | None) -> tuple[list[str], str]:
    """The answers that a reply gives, and their scale; an answer given apart may be such JSON
    too.
    """
    unit = None
    if reply is not None and reply.answer is not None:
        text = reply.answer[:_LONGEST]
        unit = reply.unit
    extracted = extract(text)
    if extracted.how != "json" or extracted.span is None:
        return _listed(text.strip()), _named(unit)
    try:
        given = msgspec.json.decode(text[slice(*extracted.span)])
        if isinstance(given, dict):
            given = {str(key).lower(): value for key, value in given.items()}
        else:
            given = {}
    except (msgspec.DecodeError, RecursionError):
        given = {"answer": extracted.answer, "unit": extracted.unit}

    return _listed(given.get("answer")), _named(given.get("scale", given.get("unit")) or unit)


def _listed(answer: object) -> list[str]:
    if isinstance(answer, list):
        answers = answer
    else:
        answers = [answer]

    return [str(item) for item in answers if item is not None and str(item).strip()]


def _named(scale: object) -> str:
    return next(
        (word for word in _SCALES if word in str(scale or "").lower().replace("%", "percent")), ""
    )
