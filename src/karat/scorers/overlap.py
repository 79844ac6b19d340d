"""The offline judge: a golden answer's facts, looked for in the agent's answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs
from pydantic import BaseModel, ConfigDict, Field

from karat.records import Answer, Metric, Sample, Turn
from karat.scorers import Verdict, golden_turns
from karat.scorers._contradictions import Contradiction, contradictions
from karat.scorers._facts import Fact, Golden, Reading, Sentence, Stance, golden_of, plain, read, stance
from karat.scorers._words import CODE, POLARITY, Token

__all__ = ["Overlap"]

METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")
_SHOWN = 6  # items that a reason names
_CLAIM_CHARACTERS = 300
_ENOUGH = 6  # weight of facts that may stand for the yes or no before them
_NEARLY_ALL = 0.85  # share of them that does
_SHORT = 3  # content words of an answer that need not be about the question: "Yes, absolutely."
_NO_CORE = "without the core of the golden answer at most 2"
_FILLER = (
    "great question",
    "good question",
    "as an ai",
    "hope this helps",
    "hope that helps",
    "let me know if",
    "happy to help",
    "feel free to",
    "in conclusion",
)
_IGNORANT = (
    "n't know",
    "not know",
    "n't have any information",
    "not have any information",
    "n't have enough information",
    "not have enough information",
    "no information",
    "not sure",
    "cannot answer",
    "can't answer",
    "unable to answer",
    "could not find",
    "couldn't find",
)
_ABOUT_ITSELF = ("i don't", "i do not", "i cannot", "i can't", "i am ", "i'm ", "i have no", "sorry", "i could not")


class Overlap:
    """Scores an answer offline, by the golden facts it states, contradicts and buries (1 to 5 each).

    Deterministic, without a model: it counts numbers, commands, names and content words,
    and understands none of them. Good for trying things out, for CI and as a floor; a
    model as judge is the better reader. `claims` lists sentences whose facts the golden
    answer does not confirm. A sample without a golden answer is not scored.
    """

    class Options(BaseModel):
        """What the experiment file may say about it."""

        model_config = ConfigDict(extra="forbid")
        max_claims: int = Field(default=20, ge=0, le=1000, description="unverified claims kept of one answer")

    offline = True
    fingerprint = "3"  # of these rules: another number tells new scores from old ones
    metrics = tuple(Metric(name=name, low=1, high=5, direction="higher", kind="ordinal") for name in METRICS)

    def __init__(self, options: Options | None = None) -> None:
        self._max_claims = (options or self.Options()).max_claims

    def score(self, sample: Sample, answer: Answer) -> Verdict | list[Verdict]:
        """Three integers from 1 to 5, each with its reason, of each turn that has a golden answer."""
        judged = golden_turns(sample, answer)
        found = [structs.replace(self._of_turn(turn, text), turn=number) for number, turn, text in judged]
        return found if len(found) > 1 else found[0] if found else _unscored()

    def _of_turn(self, turn: Turn, text: str) -> Verdict:
        if turn.golden is None or not plain(turn.golden):
            return _unscored()
        golden = golden_of(turn.golden, turn.question)
        if text.split() == golden.pieces:
            return _verdict(*[(5, "is the golden answer")] * 3)
        reading = read(text)
        if not reading.words and not plain(text):
            reasons = (2, f"the answer is empty; {_NO_CORE}"), (1, "the answer is empty"), (1, "the answer is empty")
            return _verdict(*reasons)
        match = _match(golden, reading)
        return _verdict(
            _adherence(match),
            _completeness(match),
            _helpfulness(golden, reading, match),
            claims=_claims(golden, reading, match, self._max_claims),
        )


def _unscored() -> Verdict:
    reason = "there is no golden answer"
    return Verdict(values=dict.fromkeys(METRICS), reasons=dict.fromkeys(METRICS, reason))


class Match(NamedTuple):
    """How an answer stands to the golden facts."""

    found: list[Fact]
    missing: list[Fact]
    share: float  # of the facts' weight
    critical: tuple[int, int]  # found, of all
    against: list[Contradiction]
    harmful: bool
    ignorant: bool  # says that it does not know, and states little
    stance: Stance
    evasive: bool  # does not say the yes or no that the golden answer begins with
    stray: bool  # holds next to no word of the golden answer or the question
    echo: bool  # states nothing but what the question holds


def _verdict(*scores: tuple[int, str], claims: Iterable[str] = ()) -> Verdict:
    return Verdict(
        values={name: value for name, (value, _) in zip(METRICS, scores, strict=True)},
        reasons={name: reason for name, (_, reason) in zip(METRICS, scores, strict=True)},
        claims=tuple(claims),
    )


def _match(golden: Golden, reading: Reading) -> Match:
    found, missing = [], []
    weight = critical = 0
    side = stance(golden, reading)
    for fact in golden.facts:
        if side.confirmed if fact.kind == POLARITY else reading.states(fact):
            found.append(fact)
            weight += fact.weight
            critical += fact.critical
        else:
            missing.append(fact)
    every = critical + sum(fact.critical for fact in missing)
    against, harmful = contradictions(golden, reading, missing=missing, stance=side)
    share = weight / golden.weight
    evasive = bool(golden.opening) and not side.confirmed and bool(side.opens or not _is_implied(golden, found))
    stray = _is_stray(golden, reading, found)
    echo = all(fact.asked for fact in found) and not all(fact.asked for fact in missing)
    ignorant = (share < 0.5 or echo or evasive) and _says(reading.text[:400], _IGNORANT)
    return Match(
        found=found,
        missing=missing,
        share=share,
        critical=(critical, every),
        against=against,
        harmful=harmful,
        ignorant=ignorant,
        stance=side,
        evasive=evasive,
        stray=stray,
        echo=echo,
    )


def _is_implied(golden: Golden, found: list[Fact]) -> bool:
    """Whether an answer spells out nearly all that follows the golden yes or no, without saying it."""
    every = sum(fact.weight for fact in golden.facts if not fact.asked and fact.kind != POLARITY)
    stated = sum(fact.weight for fact in found if not fact.asked)
    return every >= _ENOUGH and stated >= _NEARLY_ALL * every


def _is_stray(golden: Golden, reading: Reading, found: list[Fact]) -> bool:
    """Whether less than a quarter of what could be shared is."""
    if len(reading.keys) <= _SHORT and found:
        return False
    shared = len(reading.keys & golden.known) + sum(fact.number is not None for fact in found)
    return 4 * shared < min(len(reading.keys), len(golden.known))


def _level(share: float, steps: tuple[float, float, float, float]) -> int:
    return 1 + sum(share >= step for step in steps)


def _completeness(match: Match) -> tuple[int, str]:
    found, every = match.critical
    level = _level(match.share, (0.1, 0.3, 0.55, 0.75))
    if every and found == every:
        level = max(level, 3)
    elif every and found * 2 < every:
        level = min(level, 3)
    elif found < every:
        level = min(level, 4)
    if match.evasive:
        level = min(level, 2 if match.stance.opens else 3)
    if match.echo:
        level = min(level, 2)
    total = len(match.found) + len(match.missing)
    reason = f"states {len(match.found)} of {total} golden facts"
    if match.found:
        reason += f": {_list(match.found)}"
    if match.missing:
        reason += f"; missing: {_list(match.missing)}"
    return level, reason


def _adherence(match: Match) -> tuple[int, str]:
    if match.against:
        found, every = match.critical
        single = len(match.against) == 1 and not match.against[0].core
        mild = single and match.share >= 0.65 and found > 0 and found >= 3 * (every - found)
        level = 1 if match.harmful else 3 if mild else 2 if len(match.against) == 1 or match.share >= 0.45 else 1
        return level, "contradicts: " + "; ".join(against.text for against in match.against[:_SHOWN])
    if not match.found:
        return 2, f"no golden fact is confirmed; none is contradicted; {_NO_CORE}"
    if match.ignorant:
        return 2, f"says that it does not know; {_NO_CORE}"
    if match.echo:
        return 2, f"states nothing that the question does not hold; {_NO_CORE}"
    found, every = match.critical
    level = max(2, _level(match.share, (0.1, 0.2, 0.4, 0.6)))
    if every and found == every:
        level = max(level, 4)
    reason = f"nothing found that contradicts; confirmed: {_list(match.found)}"
    core_missing = {
        "no number, name or command of the golden answer": every and not found and not match.stance.confirmed,
        "yes or no is not said": match.evasive,
        "little is about the question": match.stray,
    }
    missing = [words for words, so in core_missing.items() if so]
    return (min(level, 2), "; ".join([reason, *missing, _NO_CORE])) if missing else (level, reason)


def _helpfulness(golden: Golden, reading: Reading, match: Match) -> tuple[int, str]:
    if not match.found:
        return 1, "nothing of the golden answer is there"
    if match.ignorant:
        return 1, "says that it does not know"
    base = max(golden.words, 25)
    ratio = reading.words / base
    level = 5 - sum(ratio > limit for limit in (2.0, 3.5, 6.0, 10.0))
    notes = [f"words: {reading.words}, in the golden answer {golden.words}"]
    for fault in _form(golden, reading, match):
        level -= 1
        notes.append(fault)
    cap = 2 if match.share < 0.15 else 3 if match.share < 0.35 or match.against or match.evasive else 5
    if match.echo or match.stray or (match.evasive and match.against):
        cap = min(cap, 2)
    if cap < level:
        notes.append("contradicts the golden answer" if match.against else "little of the golden answer is there")
    return max(1, min(level, cap)), "; ".join(notes)


def _form(golden: Golden, reading: Reading, match: Match) -> list[str]:
    """What is wrong with the shape of the answer, one note each."""
    faults = []
    if _says(reading.text[:2000], _FILLER) or _says(reading.text[2000:][-2000:], _FILLER):
        faults.append("filler phrases")
    if golden.coded and "`" not in reading.text and any(fact.kind == CODE for fact in match.found):
        faults.append("commands are not set apart as code")
    limit = max(1200, 2 * golden.longest_line)
    if len(reading.text) > limit and max(map(len, reading.text.split("\n"))) > limit:
        faults.append("a wall of text")
    if reading.words > 80 and _buried(reading, match):
        faults.append("the answer comes late")
    return faults


def _says(text: str, phrases: tuple[str, ...]) -> bool:
    lower = text.lower().replace("’", "'")
    return any(phrase in lower for phrase in phrases)


def _buried(reading: Reading, match: Match) -> bool:
    if match.stance.opens and match.stance.confirmed:
        return False
    sought = {key for fact in match.found for key in (fact.key, *fact.parts)}
    values = {fact.number.value for fact in match.found if fact.number is not None}
    before = 0
    for sentence in reading.sentences:
        if not sought.isdisjoint(sentence.keys) or any(number.value in values for number in sentence.numbers):
            break
        before += sentence.words
    return before > 0.6 * reading.words


def _claims(golden: Golden, reading: Reading, match: Match, most: int) -> list[str]:
    against = [contradiction.sentence for contradiction in match.against]
    found: dict[str, None] = {}
    for sentence in reading.sentences:
        if len(found) >= most:
            break
        if _unverified(golden, sentence) and sentence not in against:
            text = plain(sentence.text)
            found[text if len(text) <= _CLAIM_CHARACTERS else text[: _CLAIM_CHARACTERS - 1] + "…"] = None
    return list(found)


def _unverified(golden: Golden, sentence: Sentence) -> bool:
    unknown = sentence.keys - golden.known
    strange = any(number not in golden.numbers for number in sentence.numbers)
    if not unknown and not strange:
        return False
    text = sentence.text.strip()
    if text.endswith("?") or text.lower().startswith(_ABOUT_ITSELF):
        return False
    filled_in = golden.placeholders and len(sentence.keys & golden.code) > 1
    if strange or filled_in:
        return strange
    if any(_is_strange(golden, token) for token in sentence.marked):
        return True
    return len(unknown) > 2 and 2 * len(unknown) > len(sentence.keys)


def _is_strange(golden: Golden, token: Token) -> bool:
    return token.key not in golden.known and not (token.parts and golden.known.issuperset(token.parts))


def _list(facts: Sequence[Fact]) -> str:
    shown = ", ".join(fact.shown for fact in facts[:_SHOWN])
    more = len(facts) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
