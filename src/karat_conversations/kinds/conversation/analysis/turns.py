"""Every declared turn of a run over conversations, as columns: scores, replies, cost.

A *slot* is a declared turn of one repetition: repetition · declared turns + the turn's place among
them, so that columns of all conditions line up. What the index does not hold is read again from the
lines that count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat import formats
from karat.analysis.details import reply_of
from karat.analysis.grids import Layout
from karat.foreign import Json
from karat.index import RunIndex
from karat.journal import RunFolder
from karat.records import JsonObject, Reply, Turn, Usage
from karat_conversations.numeric import (
    MATCHES,
    extract,
    match,
    operations_attempted,
    parse_program,
    parse_value,
    right_by,
    stated,
)
from karat_conversations.numeric.matches import same_text


class Matcher(msgspec.Struct, frozen=True, kw_only=True):
    """Compares a reply with the golden answer as the scorer `numeric` does."""

    extract: Literal["final", "json", "last_number"]

    def values(self, turn: Turn, reply: Reply) -> dict[str, bool | None]:
        """Match → whether it holds; None for all of them without a golden number."""
        if parse_value(turn.golden) is None:
            return dict.fromkeys(MATCHES)
        take = partial(extract, how=self.extract, question=turn.question)
        given = stated(reply.text, answer=reply.answer, unit=reply.unit, take=take)
        printed = turn.detail.get("printed")
        matches = match(
            turn.golden,
            given.answer,
            declared_unit=given.unit,
            golden_unit=turn.detail.get("unit"),
            printed=printed,
        )
        values: dict[str, bool | None] = {name: getattr(matches, name) for name in MATCHES}
        if printed is not None:
            return values
        return values | {"printed": None}


def matcher_of(run: RunFolder, scorer: str, scoring: str) -> Matcher | None:
    """With the options of that scoring.

    None if they use a regular expression: one from a run folder is not run.
    """
    options: Mapping[str, object] = next(
        (info.options for info in run.scorers() if (info.name, info.scoring) == (scorer, scoring)),
        {},
    )
    match options.get("extract", "final"):
        case "final" | "json" | "last_number" as how:
            return Matcher(extract=how)

    return None


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

WITHIN = "within_1_percent"
"""The cause of a turn that is wrong only by a match that is stricter than `numerical`."""

_STEP = "step_"


class Declarations(msgspec.Struct):
    """The declared turns of the samples, in the order of the run's samples."""

    ids: list[str]
    weights: Floats  # of the samples
    metadata: list[JsonObject]
    first: Ints  # of each sample: the place of its first turn
    sample: Ints  # of each turn: its sample
    number: Ints  # of each turn: from 0, within its sample
    turns: list[Turn]
    golden: list[str | None]  # None: there is none, or it is text; a declared sentinel is there
    printed: list[str | None]
    operations: Floats  # golden compute operations; NaN if no program is known
    texts: list[str | None]  # golden answers that are text
    quarantined: list[tuple[str, ...] | None]  # reasons; None: no quarantine file was given

    @property
    def size(self) -> int:
        return len(self.golden)


def declarations(index: RunIndex) -> Declarations:
    """The declared turns of the planned samples."""
    listed = sorted(index.run.samples(), key=lambda sample: index.samples[sample.id])
    counts = np.array([len(sample.turns) for sample in listed], dtype=np.int64)
    turns = [turn for sample in listed for turn in sample.turns]
    if listed:
        first = np.concatenate(([0], np.cumsum(counts)))[:-1]
    else:
        first = counts

    operations = []
    for turn in turns:
        count = turn.detail.get("operations")
        if turn.detail.get("program") and isinstance(count, (int, float)):
            operations.append(float(count))
        else:
            operations.append(np.nan)

    reasons = [turn.detail.get("quarantined") for turn in turns]
    quarantined: list[tuple[str, ...] | None] = [None] * len(turns)
    if any(one is not None for one in reasons):
        quarantined = [
            tuple(map(str, one)) if isinstance(one, (list, tuple)) else () for one in reasons
        ]

    return Declarations(
        ids=[sample.id for sample in listed],
        weights=np.array([sample.weight for sample in listed], dtype=np.float64),
        metadata=[dict(sample.metadata) for sample in listed],
        first=first,
        sample=np.repeat(np.arange(len(listed)), counts),
        number=np.arange(len(turns)) - np.repeat(first, counts),
        turns=turns,
        golden=[turn.golden if _is_scored(turn) else None for turn in turns],
        texts=[None if _is_scored(turn) else turn.golden for turn in turns],
        printed=[_text(turn.detail.get("printed")) for turn in turns],
        operations=np.array(operations, dtype=np.float64),
        quarantined=quarantined,
    )


def _is_scored(turn: Turn) -> bool:
    return bool(turn.detail.get("unanswerable")) or parse_value(turn.golden) is not None


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value)


class FailedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What the score of a failed turn says about it, in words."""

    trial: str
    diagnosis: str
    expected: str | None = None
    actual: str | None = None
    evidence: str = ""
    carried: bool = False  # proved to be right if earlier turns had been right


class Turns(msgspec.Struct):
    """One condition's turns; each column has one number per slot."""

    base: Declarations
    repetitions: int
    counted: Flags  # of trials that were scored, or ended without an answer
    scored: Flags  # has matches
    reached: Flags  # has a reply
    milliseconds: Floats
    prompt_tokens: Floats
    completion_tokens: Floats
    verdicts: Floats  # of the file of answers: 1, 0; NaN without
    level: float  # of the intervals
    values: dict[str, Floats] = {}  # metric → NaN if there is none
    failed_turns: dict[int, FailedTurn] = {}  # by slot
    # slots whose answer is the golden text
    same_texts: set[int] = msgspec.field(default_factory=set)
    unreadable: dict[int, str] = {}  # slot → side
    abstentions: dict[int, str] = {}  # slot → right, over_refusal or unsupported
    extractors: dict[int, str] = {}  # slot → how the answer was found in the reply
    unreadable_programs: set[int] = msgspec.field(default_factory=set)  # slots
    scoring_tokens: int = 0  # of judges, not part of the answers' cost

    @property
    def sample(self) -> Ints:
        return np.tile(self.base.sample, self.repetitions)

    @property
    def number(self) -> Ints:
        return np.tile(self.base.number, self.repetitions)

    @property
    def conversation(self) -> Ints:
        """The trial of each slot: sample and repetition as one number."""
        return self.sample + np.repeat(
            np.arange(self.repetitions) * len(self.base.ids), self.base.size
        )

    def value(self, metric: str) -> Floats:
        """The metric of the turns that count; NaN elsewhere, and everywhere if there is no such
        metric.
        """
        nothing = np.full(self.counted.size, np.nan)
        return np.where(self.counted & self.asked, self.values.get(metric, nothing), np.nan)

    @property
    def asked(self) -> Flags:
        """Whether the golden answer is a number, yes or no."""
        return np.tile(
            np.array([golden is not None for golden in self.base.golden], dtype=bool),
            self.repetitions,
        )

    @property
    def unscored(self) -> Flags:
        """Turns that count, but are neither right nor wrong: their golden answer is another text,
        or there is none.
        """
        unscored = self.counted & ~self.asked
        unscored[sorted(self.same_texts)] = False
        return unscored

    def rate(self, metric: str) -> Floats:
        """Like `value`, but 0 for turns that were never reached; NaN if the dataset has no golden
        answer.
        """
        wrong = self.counted & ~self.scored & self.asked
        return np.where(wrong, 0.0, self.value(metric))


class _Reply(msgspec.Struct, gc=False):
    usage: Usage | None = None
    milliseconds: float | None = None
    verdict: bool | None = None


class _Answer(msgspec.Struct, gc=False):
    replies: tuple[_Reply, ...]


class _Reasoning(msgspec.Struct):
    step: JsonObject = {}


class _Detail(msgspec.Struct):
    rules: str = ""
    extractor: str = ""
    expected: Any = None
    actual: Any = None
    program: Any = None
    evidence: JsonObject = {}
    carried: bool = False
    reasoning: _Reasoning | None = None
    unreached: bool = False


class _Score(msgspec.Struct):
    trial: str
    turn: int | None = None
    labels: dict[str, str] = {}
    detail: _Detail = msgspec.field(default_factory=_Detail)


_answer = msgspec.json.Decoder(_Answer).decode
_score = msgspec.json.Decoder(_Score).decode


def read_turns(
    index: RunIndex,
    base: Declarations,
    scoring: tuple[str, str],
    failed: Collection[int],
    *,
    right: str,
    level: float,
) -> tuple[list[Turns], set[str]]:
    """Each condition's turns, and the versions of the rules in their scores.

    `scoring`: scorer and digest. `failed`: cells without an answer. `right`: the match that makes a
    turn right.
    `level`: of the intervals.
    """
    rows = index.scores.get(scoring)
    parts = []
    for _ in index.conditions:
        size = base.size * index.repetitions
        nothing = np.zeros(size, dtype=bool)
        unknown = np.full(size, np.nan)
        parts.append(
            Turns(
                base=base,
                repetitions=index.repetitions,
                counted=nothing,
                scored=nothing.copy(),
                reached=nothing.copy(),
                milliseconds=unknown,
                prompt_tokens=unknown.copy(),
                completion_tokens=unknown.copy(),
                verdicts=unknown.copy(),
                level=level,
            )
        )

    places = _Places(index, base)
    for cell in failed:
        condition, slots = places.of(cell)
        parts[condition].counted[slots] = True

    if rows is not None:
        layout = Layout(rows)
        conditions, all_slots, there = places.slots(layout.cells, layout.turns.astype(np.int64))
        for number, part in enumerate(parts):
            mine = there & (conditions == number)
            own = all_slots[mine]
            part.scored[own] = part.reached[own] = True
            part.counted |= part.scored
            for metric in sorted(rows.values):
                column = part.values[metric] = np.full(part.counted.size, np.nan)
                column[own] = layout.values(metric)[mine]

    rules: set[str] = set()
    for cell, score in index.score_lines(scoring, _score):
        condition, slots = places.of(cell)
        rules.add(_note(parts[condition], slots, score))

    for cell, answer in index.answer_lines(_answer):
        condition, slots = places.of(cell)
        _meter(parts[condition], slots, answer.replies)

    matcher = matcher_of(index.run, *scoring)
    for pending in index.open_trials.values():
        if matcher is not None and pending.cell in failed:
            condition, slots = places.of(pending.cell)
            replies = []
            for line in index.lines(at for at, _ in pending.partial.replies):
                replies.append(reply_of(line))
            # The turns answered before a conversation failed
            part = parts[condition]
            for slot, reply in zip(range(slots.start, slots.stop), replies, strict=False):
                place = slot % part.base.size
                part.scored[slot] = part.reached[slot] = True
                for name, value in matcher.values(part.base.turns[place], reply).items():
                    column = part.values.setdefault(name, np.full(part.counted.size, np.nan))
                    column[slot] = np.nan if value is None else value

            _meter(part, slots, replies)

    for part, tally in zip(parts, index.tallies, strict=True):
        part.scoring_tokens = tally.judge_tokens
        if {right, "right", "numerical"} <= part.values.keys():
            part.values["right"] = right_by(part.values, right)

    return parts, rules - {""}


class _Places:
    """The indices of a cell's turns."""

    def __init__(self, index: RunIndex, base: Declarations) -> None:
        self._index = index
        self._repetitions = index.repetitions
        self._conditions = len(index.conditions)
        self._first = base.first
        self._size = base.size
        self._counts = np.bincount(base.sample, minlength=len(base.ids))

    def of(self, cell: int) -> tuple[int, slice]:
        """Condition, and slots."""
        sample, condition, repetition = self._index.place(cell)
        start = int(repetition * self._size + self._first[sample])
        return condition, slice(start, start + int(self._counts[sample]))

    def slots(self, cells: Ints, turns: Ints) -> tuple[Ints, Ints, Flags]:
        """Condition and slot of each row, and which rows are of a declared turn."""
        place, repetition = np.divmod(cells, self._repetitions)
        sample, condition = np.divmod(place, self._conditions)
        there = (turns >= 0) & (turns < self._counts[sample])
        return condition, repetition * self._size + self._first[sample] + turns, there


def _meter(part: Turns, slots: slice, replies: Sequence[_Reply | Reply]) -> None:
    for slot, reply in zip(range(slots.start, slots.stop), replies, strict=False):
        if reply.milliseconds is not None:
            part.milliseconds[slot] = reply.milliseconds
        if reply.verdict is not None:
            part.verdicts[slot] = reply.verdict
        usage = reply.usage
        if usage is not None and usage.input_tokens is not None:
            part.prompt_tokens[slot] = usage.input_tokens
        if usage is not None and usage.output_tokens is not None:
            part.completion_tokens[slot] = usage.output_tokens


def _note(part: Turns, slots: slice, score: _Score) -> str:
    """Keeps the details of a score row; returns the version of its rules."""
    slot = slots.start + (score.turn or 0)
    if score.turn is None or not slots.start <= slot < slots.stop:
        return ""
    detail = score.detail
    if detail.unreached:
        part.reached[slot] = False
    elif detail.extractor:
        part.extractors[slot] = detail.extractor

    if same_text(part.base.texts[slot % part.base.size], detail.actual):
        part.same_texts.add(slot)
    part.failed_turns.pop(slot, None)
    part.unreadable.pop(slot, None)
    part.unreadable_programs.discard(slot)
    part.abstentions.pop(slot, None)
    if (abstention := score.labels.get("abstention")) is not None:
        part.abstentions[slot] = abstention
    if (label := score.labels.get("diagnosis")) is not None:
        part.failed_turns[slot] = FailedTurn(
            trial=score.trial,
            diagnosis=label,
            expected=_text(detail.expected),
            actual=_text(detail.actual),
            evidence=", ".join(
                _proof(value) if key == "proof" else f"{key} {_written(value)}"
                for key, value in detail.evidence.items()
            ),
            carried=detail.carried,
        )

    if (side := score.labels.get("unreadable")) is not None:
        part.unreadable[slot] = side
    if score.labels.get("program") == "unreadable":
        part.unreadable_programs.add(slot)
    if detail.program:
        # Step metrics, and the operations that the program attempts: missing in older scores
        if detail.reasoning is not None:
            step = detail.reasoning.step
        else:
            step = {}

        values = {_STEP + name: value for name, value in step.items()}
        attempted = part.values.get("agent_operations")
        if attempted is None or np.isnan(attempted[slot]):
            values["agent_operations"] = operations_attempted(parse_program(detail.program))
        for name, value in values.items():
            if isinstance(value, (bool, int, float)):
                column = part.values.setdefault(name, np.full(part.counted.size, np.nan))
                column[slot] = value

    return detail.rules


def _written(value: object) -> str:
    if isinstance(value, float):
        return formats.brief(value)
    return formats.text_of(value)


def _proof(evidence: object) -> str:
    """A short proof that an error was carried over; the full proof is in the score row."""
    proof = Json(evidence)
    if not proof:
        return _written(evidence)
    parts = []
    for swap in proof.list("substitutions"):
        parts.append(
            f"turn {_written(swap.get('turn'))} {_written(swap.get('answer'))} for "
            f"{_written(swap.get('golden'))}"
        )

    return f"proved: {', '.join(parts)} gives {_written(proof.get('result'))}"
