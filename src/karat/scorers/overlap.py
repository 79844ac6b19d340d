"""The offline judge: the words of the golden answer, looked for in the agent's answer.

Token recall and F1 as in SQuAD (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", section 6.1): lower case, without punctuation and articles; here also
without other function words, with numbers compared by value, and a tenth of the weight for words in
the question. Two more checks: a number, or a yes or no, that disagrees with the golden answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import structs
from pydantic import BaseModel, ConfigDict, Field

from karat import formats
from karat.records import Answer, Metric, Sample, Turn
from karat.scorers import Verdict, accepted, golden_turns
from karat.sums import exact_sum

__all__ = ["Overlap"]

METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
_STEPS = (0.2, 0.4, 0.6, 0.8)  # recall or F1 that levels 2 to 5 begin at
_SHOWN = 6  # words that a reason lists
_CLAIM_CHARACTERS = 300
_DENIED = "a yes or no that disagrees with the golden answer"
_ASKED = 0.1  # weight of a word from the question: repeating it means little
_FUNCTION_TEXT = """
a an the and or but if of in on at to up for from by with as is are was were be been it its this
that these those there i you your we they he she do does did can will would should so then than also
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split())
_NEGATIONS = frozenset({"no", "not", "never", "none", "nothing", "neither", "nor", "cannot"})
_NUMBER_WORDS = "two three four five six seven eight nine ten"
_SPELLED = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split(), 2)}

# Every repeat is bounded, so no text makes matching slow. Scripts without spaces, and emoji: each
# character is a token.
_NUMBER = r"\d{1,40}(?:[.,]\d{1,40}){0,12}"
_VERSION = r"[^\W\d_]\w{0,79}(?:\.\d{1,40}){1,12}"  # v2.0.10, py3.10
_TOKEN = re.compile(
    rf"{_VERSION}|(?:(?<![\w)\]])[-−])?{_NUMBER}|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u2600-\u27bf\U0001f300-\U0001faff]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]\w{0,79}(?:['’]\w{1,10})?"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[\n。!?]")
_OPENING = re.compile(r"\W{0,20}(yes|no)\b(?=\W{0,3}(?:[,.;:!\n–—-]|$))", re.IGNORECASE)
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060-\u2064\ufeff]")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Overlap:
    """Scores an answer offline, by the words that it shares with the golden answer (1 to 5 each).

    completeness: token recall, the share of the golden answer's words in the answer.
    helpfulness_and_clarity: token F1, which falls with every additional word; at most 3 if the
    answer contradicts the golden one.
    factual_adherence: recall, at least 2; at most 2 if a golden number is missing and another
    number is there, or if one answers yes and the other no. Levels 2 to 5 begin at 0.2, 0.4, 0.6
    and 0.8.

    Deterministic, without a model: it does not understand paraphrases. `claims` lists the sentences
    most of whose words are neither in the golden answer nor in the question. A sample without a
    golden answer is not scored.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        max_claims: int = Field(
            default=20, ge=0, le=1000, description="unverified claims kept of one answer"
        )

    offline = True
    fingerprint = "5"  # version of these rules: it separates new scores from old ones
    metrics = tuple(
        Metric(name=name, low=1, high=5, direction="higher", kind="ordinal") for name in METRICS
    )

    def __init__(self, options: Options | None = None) -> None:
        self._max_claims = (options or self.Options()).max_claims

    def score(self, sample: Sample, answer: Answer) -> Verdict | list[Verdict]:
        """Three integers from 1 to 5, each with its reason, for each turn that has a golden
        answer.
        """
        verdicts = []
        for number, turn, text in golden_turns(sample, answer):
            # if several golden answers are right, the one that fits best
            fits = [self._against(golden, turn, text) for golden in accepted(turn)]
            best = max(fits, key=lambda verdict: sum(filter(None, verdict.values.values())))
            verdicts.append(structs.replace(best, turn=number))

        if len(verdicts) > 1:
            return verdicts
        if verdicts:
            return verdicts[0]
        return _unscored()

    def _against(self, golden_text: str, turn: Turn, text: str) -> Verdict:
        golden = _plain(golden_text)
        if not golden:
            return _unscored()
        text, question = _plain(text), _plain(turn.question)
        if text.split() == golden.split():
            return _verdict(*[(5, "is the golden answer")] * 3)
        if not text:
            return _verdict(
                (2, "the answer is empty"), (1, "the answer is empty"), (1, "the answer is empty")
            )

        asked = set(_tokens(question))
        wanted, given = Counter(_tokens(golden)), Counter(_tokens(text))
        shared = wanted & given
        missing = wanted - shared
        weight = _weight(shared, asked)
        recall, precision = weight / _weight(wanted, asked), weight / (_weight(given, asked) or 1.0)
        if shared:
            f1 = 2 * recall * precision / (recall + precision)
        else:
            f1 = 0.0

        contradiction, sentence = _contradiction(golden, text, asked)
        recalled = f"{len(shared)} of {len(shared) + len(missing)} words of the golden answer"
        adherence = max(2, _level(recall)), f"no contradiction; {recalled}"
        clarity = _level(f1), f"F1 of the words: {formats.number(f1)}"
        if contradiction:
            adherence = 2, f"contradicts: {contradiction}"
            clarity = min(clarity[0], 3), f"{clarity[1]}; contradicts the golden answer"

        if missing:
            lacking = f"; missing: {formats.some_of([*missing], most=_SHOWN)}"
        else:
            lacking = ""

        known = {*_tokens(golden), *_tokens(question)}
        claims = []  # sentences that neither question nor golden answer holds most words of
        for claim in _sentences(text):
            own = set(_tokens(claim))
            is_new = 2 * len(own - known) > len(own) > 0
            if is_new and not claim.endswith("?") and claim != sentence:
                cut = f"{claim[: _CLAIM_CHARACTERS - 1]}…"
                claims.append(claim if len(claim) <= _CLAIM_CHARACTERS else cut)

        return _verdict(
            adherence,
            (
                _level(recall),
                f"{recalled}: {formats.some_of([*shared], most=_SHOWN) or 'none'}{lacking}",
            ),
            clarity,
            claims=list(dict.fromkeys(claims))[: self._max_claims],
        )


def _weight(tokens: Counter[str], asked: set[str]) -> float:
    return exact_sum(n * (_ASKED if token in asked else 1.0) for token, n in tokens.items())


def _contradiction(golden: str, text: str, asked: set[str]) -> tuple[str, str]:
    """What in the answer disagrees with the golden answer, and in which sentence; empty:
    nothing.
    """
    values = {token for token in _tokens(golden) if _is_number(token)}
    if values and values.isdisjoint(_tokens(text)):
        for sentence in _sentences(text):
            numbers = []
            for token in _tokens(sentence):
                if _is_number(token) and token not in asked:
                    numbers.append(token)

            if numbers:
                return f"{numbers[0]} where the golden answer has {min(values)}", sentence

    first, second = _OPENING.match(golden), _OPENING.match(text)
    if first and second:
        if first[1].lower() != second[1].lower():
            return (_DENIED, next(_sentences(text), text))
        return ("", "")

    stated = next(_sentences(golden[first.end() :] if first else golden), "")
    if stated:
        denied = _denies(stated)
    else:
        denied = first is not None and first[1].lower() == "no"

    words, matching = set(_tokens(stated)) - _NEGATIONS, []
    for sentence in _sentences(text):
        others = set(_tokens(sentence)) - _NEGATIONS
        # half of the shorter one's
        if not stated or 2 * len(words & others) >= min(len(words), len(others)) > 0:
            matching.append(sentence)

    if matching and (stated or first) and all(_denies(sentence) != denied for sentence in matching):
        return _DENIED, matching[0]
    return "", ""


def _denies(sentence: str) -> bool:
    words = [word.lower().replace("’", "'") for word in _TOKEN.findall(sentence)]
    return any(word in _NEGATIONS or word.endswith("n't") for word in words)


def _level(share: float) -> int:
    return 1 + sum(share >= step for step in _STEPS)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        if sentence := text[start:end].strip():
            yield sentence
        start = end


@lru_cache(maxsize=16)  # question, golden answer and answer are asked for several times
def _tokens(text: str) -> Sequence[str]:
    """Words in lower case, numbers by value; for a text without either, its characters."""
    tokens = []
    for match in _TOKEN.finditer(text):
        # Whether a number is written as a code or a version, which has no value: 007 is not 7,
        # and 3.10 is not 3.1. Not in a date or a time (09:30), and not an amount ($3.10, 3.10
        # %).
        token = match[0]
        start, end = match.span()
        is_code = False
        if token[0] == "0" and token[1:].isdecimal() and token.strip("0"):
            before = text[max(start - _NEAR, 0) : start].rstrip()
            in_date = _DATE_BEFORE.search(before[-2:]) or _DATE_AFTER.match(text, end)
            is_code = len(token) > 2 or in_date is None
        elif _TRAILING_ZERO.fullmatch(token):
            before = text[max(start - _NEAR, 0) : start].rstrip()
            is_amount = before.endswith(_MONEY_BEFORE) or _AMOUNT_AFTER.match(text, end)
            is_code = not is_amount

        if is_code:
            tokens.append(match[0])
        else:
            tokens.append(_normal(match[0]))

    return (
        [token for token in tokens if token not in _FUNCTION_WORDS]
        or tokens
        or [*text.casefold().replace(" ", "")]
    )


_NEAR = (
    80  # characters before a number that may say what it is: with all, a text takes quadratic time
)
_DATE_BEFORE = re.compile(r"\d[/:-]\Z")
_DATE_AFTER = re.compile(r"[/:-]\d")
_MONEY_BEFORE = ("$", "€", "£", "¥")
_AMOUNT_AFTER = re.compile(
    r"\s?(?:[%$€£¥°]|percent|dollar|euro|pound|cent|usd|eur|gbp|[mb]illion|met(?:er|re)|mile"
    r"|second|minute|hour|day|week|month|year|(?:[kcm]?[mgl]|ms|[kmgt]b|[kmg]?(?:w|hz))\b)",
    re.IGNORECASE,
)
_TRAILING_ZERO = re.compile(r"[1-9]\d?\.[1-9]0")


def _normal(token: str) -> str:
    if not (token[0] in "-−" or token[0].isdecimal()):
        word = token.casefold().replace("’", "'").removesuffix("'s")
        if word in _NEGATIONS or word.endswith("n't"):
            return "not"
        return _SPELLED.get(word, word)

    text = token.replace("−", "-")
    decimal = max(text.rfind("."), text.rfind(","))
    separators = text.count(".") + text.count(",")
    if (separators > 1 and text.count(text[decimal]) > 1) or re.fullmatch(
        r"-?[1-9]\d{0,2},\d{3}", text
    ):
        decimal = -1  # all of them group thousands

    if decimal < 0:
        integer, part = (text, "")
    else:
        integer, part = (text[:decimal], text[decimal + 1 :])

    integer = integer.replace(".", "").replace(",", "").lstrip("0") or "0"
    return f"{integer}.{part.rstrip('0')}".rstrip(".")


def _is_number(token: str) -> bool:
    return token[-1:].isdecimal()


def _plain(text: str) -> str:
    """Without invisible and control characters; compatible characters as one."""
    text = _INVISIBLE.sub(
        "", unicodedata.normalize("NFKC", text).encode("utf-8", "ignore").decode()
    )
    return _CONTROL.sub(" ", text).strip()


def _unscored() -> Verdict:
    reason = "there is no golden answer"
    return Verdict(values=dict.fromkeys(METRICS), reasons=dict.fromkeys(METRICS, reason))


def _verdict(*scores: tuple[int, str], claims: Iterable[str] = ()) -> Verdict:
    return Verdict(
        values={name: value for name, (value, _) in zip(METRICS, scores, strict=True)},
        reasons={name: reason for name, (_, reason) in zip(METRICS, scores, strict=True)},
        claims=tuple(claims),
    )
