"""What every planned participant of a run over human studies answered, out of the score rows of `replication`.

The rows are read again by the index's bytes. What is kept is one reference a declared turn,
to one of the few different things that participants say.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from karat.index import RunIndex
from karat.kinds.study.analysis.model import StudyUsage
from karat.records import NOT_ASKED, Usage

__all__ = ["Answers", "Said", "read_answers_of"]

Values = dict[str, float | str | list[str]]
_LARGEST = 1e150
"""Of an answer: thirty digits with an exponent of two are read. What a square of it could not hold is a forgery."""


class Said(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came back in one turn."""

    values: Values  # field → answer
    kinds: dict[str, str]  # field → why it has none
    parsed: bool  # every field that is not optional was read
    why: str | None = None  # why there was no reply: stopped, unrecorded; None: there was one

    @property
    def replied(self) -> bool:
        """Whether a reply came, readable or not."""
        return self.why is None


@dataclass(slots=True)
class Spent:
    """What answers cost, added up."""

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens_unknown: int = 0
    dollars: float | None = None
    dollars_unknown: int = 0

    def add(self, reply: _Reply) -> None:
        """Books one reply."""
        if reply.stop_reason == NOT_ASKED.stop_reason:
            return
        self.calls += 1
        told = reply.usage
        if told is None or (told.input_tokens is None and told.output_tokens is None):
            self.tokens_unknown += 1
        else:
            self.input_tokens = (self.input_tokens or 0) + (told.input_tokens or 0)
            self.output_tokens = (self.output_tokens or 0) + (told.output_tokens or 0)
        if reply.dollars is None:
            self.dollars_unknown += 1
        else:
            self.dollars = (self.dollars or 0.0) + reply.dollars

    def told(self) -> StudyUsage:
        """As the summary has it."""
        return StudyUsage(
            calls=self.calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            tokens_unknown=self.tokens_unknown,
            dollars=self.dollars,
            dollars_unknown=self.dollars_unknown,
        )


@dataclass(slots=True)
class Answers:
    """The answers of all conditions and repetitions. A sample is one participant, in games one group."""

    studies: list[str]
    study: array[int]  # of each sample: which study; −1: none that the run keeps
    lines: list[set[int]]  # of samples.jsonl: those of each study
    first: array[int]  # of each sample: the place of its first turn
    turns: int  # declared, of all samples
    repetitions: int
    slots: list[Said | None]  # a condition after the other, a repetition after the other in it
    spent: list[list[Spent]]  # condition → study

    @property
    def asked(self) -> int:
        """Turns of the participants of all studies that the run keeps, in one repetition of one condition."""
        after = [*self.first[1:], self.turns] if self.first else []
        return sum(end - start for start, end, at in zip(self.first, after, self.study, strict=True) if at >= 0)

    def samples_of(self, number: int, rows: Mapping[str, int]) -> list[str]:
        """The ids of a study's samples. `rows`: id → row, of the whole run."""
        return [name for name, row in rows.items() if self.study[row] == number]

    def of(self, row: int, condition: int, repetition: int, count: int) -> Sequence[Said | None]:
        """What a sample of `count` turns answered; None: nothing came, or nothing was scored."""
        start = (condition * self.repetitions + repetition) * self.turns + self.first[row]
        return self.slots[start : start + count]

    def is_scored(self, row: int, condition: int, repetition: int) -> bool:
        """Whether any turn of a sample has a score row."""
        after = self.first[row + 1] if row + 1 < len(self.first) else self.turns
        return any(one is not None for one in self.of(row, condition, repetition, after - self.first[row]))


class _Reply(msgspec.Struct, gc=False):
    usage: Usage | None = None
    dollars: float | None = None
    stop_reason: str | None = None


class _Answer(msgspec.Struct, gc=False):
    replies: tuple[_Reply, ...]


class _Detail(msgspec.Struct, gc=False):
    answers: msgspec.Raw = msgspec.Raw(b"{}")


class _Score(msgspec.Struct, gc=False):
    trial: str
    values: dict[str, float | bool | None] = {}
    turn: int | None = None
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    detail: _Detail = msgspec.field(default_factory=_Detail)


_answer = msgspec.json.Decoder(_Answer).decode
_score = msgspec.json.Decoder(_Score).decode
_values = msgspec.json.Decoder(Values).decode
_labels = msgspec.json.Decoder(dict[str, str]).decode


def read_answers_of(index: RunIndex, studies: Sequence[str], scoring: tuple[str, str]) -> Answers:
    """The answers, by the score rows of `scoring` (scorer and digest). The last row of a turn counts."""
    answers = _planned(index, studies)
    places = _Places(index, answers)
    known: dict[tuple[bytes, bytes, bool], Said] = {}
    for cell, row in index.score_lines(scoring, _score):
        slot = places.slot(cell, row.turn)
        if slot is not None:
            answers.slots[slot] = _said(row, known)
    for cell, answer in index.answer_lines(_answer):
        places.pay(cell, answer.replies)
    rows = index.scores.get(scoring)
    for cell in rows.partial if rows is not None else ():
        places.forget(cell)
    return answers


def _planned(index: RunIndex, studies: Sequence[str]) -> Answers:
    size = len(index.samples)
    counts, study = array("q", bytes(8 * size)), array("q", bytes(8 * size))
    numbers = {name: at for at, name in enumerate(studies)}
    lines: list[set[int]] = [set() for _ in studies]
    for line, sample in enumerate(index.run.samples()):
        row = index.samples[sample.id]
        counts[row], study[row] = len(sample.turns), numbers.get(str(sample.detail.get("study")), -1)
        if (number := study[row]) >= 0:
            lines[number].add(line)
    first, total = array("q"), 0
    for count in counts:
        first.append(total)
        total += count
    conditions = len(index.conditions)
    return Answers(
        studies=list(studies),
        study=study,
        lines=lines,
        first=first,
        turns=total,
        repetitions=index.repetitions,
        slots=[None] * (total * conditions * index.repetitions),
        spent=[[Spent() for _ in studies] for _ in range(conditions)],
    )


class _Places:
    """Where a cell's turns stand."""

    def __init__(self, index: RunIndex, answers: Answers) -> None:
        self._index, self._answers = index, answers

    def _span(self, cell: int) -> range:
        row, condition, repetition = self._index.place(cell)
        answers = self._answers
        start = (condition * self._index.repetitions + repetition) * answers.turns
        after = answers.first[row + 1] if row + 1 < len(answers.first) else answers.turns
        return range(start + answers.first[row], start + after)

    def slot(self, cell: int, turn: int | None) -> int | None:
        """Where a turn stands; None where the sample has none of that number."""
        span = self._span(cell)
        return span[turn] if turn is not None and 0 <= turn < len(span) else None

    def forget(self, cell: int) -> None:
        """A scoring that was cut short is none."""
        for slot in self._span(cell):
            self._answers.slots[slot] = None

    def pay(self, cell: int, replies: Sequence[_Reply]) -> None:
        row, condition, _ = self._index.place(cell)
        if (number := self._answers.study[row]) >= 0:
            for reply in replies:
                self._answers.spent[condition][number].add(reply)


def _said(row: _Score, known: dict[tuple[bytes, bytes, bool], Said]) -> Said:
    """One value for all rows that say the same."""
    key = bytes(row.labels), bytes(row.detail.answers), bool(row.values.get("parsed"))
    found = known.get(key)
    if found is None:
        labels = _labels(row.labels)
        why = labels.pop("turn", None) if row.values.get("parsed") is None else None
        values = _values(row.detail.answers)
        if any(isinstance(value, float) and not abs(value) <= _LARGEST for value in values.values()):
            raise msgspec.ValidationError(f"an answer of trial {row.trial} is a number that nobody can have given")
        found = known[key] = Said(values=values, kinds=labels, parsed=key[2] and why is None, why=why)
    return found
