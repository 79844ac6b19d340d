"""Participants of one study: their rows of `responses` in every condition and repetition, and how many there were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karat.errors import BadRun
from karat.index import RunIndex
from karat.journal import RunFolder
from karat.kinds.study.analysis.answers import Answers, Said
from karat.kinds.study.analysis.model import ArmCount, Participants
from karat.kinds.study.samples import responses_of
from karat.records import Sample

if TYPE_CHECKING:
    from karat.kinds.study.analysis.floor import Guesser
    from karat.kinds.study.format import StudyFile
    from karat.kinds.study.tests import Response

__all__ = ["Counted", "People", "people_of"]

STOPPED = "stopped"
_SEVERAL = object()


@dataclass(slots=True)
class Counted:
    """One arm, or the whole study, under one condition, over its repetitions."""

    planned: int = 0
    asked: int = 0
    answered: int = 0
    parsed: int = 0
    stopped: int = 0
    unread: dict[str, dict[str, int]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    same: dict[str, object] = field(default_factory=dict)  # field → the one answer that all gave; _SEVERAL: they differ

    def add(self, said: Sequence[Said | None], fields: Sequence[Mapping[str, object]]) -> None:
        """Books one participant: what came back in each of their turns, and the fields that it was to have."""
        replies = [one for one in said if one is not None and one.replied]
        self.planned += 1
        self.asked += bool(replies)
        self.answered += len(replies) == len(said)
        self.parsed += len(replies) == len(said) and all(one.parsed for one in replies)
        self.stopped += any(one is not None and one.why == STOPPED for one in said)
        for one, asked in zip(said, fields, strict=True):
            if one is None or one.why not in {None, STOPPED}:
                continue
            for name in asked:
                kind = STOPPED if one.why else one.kinds.get(name)
                if kind is not None:
                    kinds = self.unread.setdefault(name, {})
                    kinds[kind] = kinds.get(kind, 0) + 1
                elif name in one.values:
                    self.read[name] = self.read.get(name, 0) + 1
                    if self.same.setdefault(name, one.values[name]) != one.values[name]:
                        self.same[name] = _SEVERAL

    @property
    def participants(self) -> Participants:
        """As the summary has it."""
        return Participants(
            planned=self.planned,
            asked=self.asked,
            answered=self.answered,
            parsed=self.parsed,
            stopped=self.stopped,
        )

    def told(self, arm: str, people: int | None) -> ArmCount:
        """As the summary has it, the most frequent reasons first."""
        unread = {
            name: dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
            for name, kinds in sorted(self.unread.items())
        }
        return ArmCount(
            arm=arm,
            people=people,
            participants=self.participants,
            unread=unread,
            answers=dict(sorted(self.read.items())),
            unvaried=max(self.read.values(), default=0) > 1 and _SEVERAL not in self.same.values(),
        )


@dataclass(slots=True)
class People:
    """Everybody of one study. Conditions and repetitions by number."""

    responses: dict[tuple[int, int], list[Response]]
    whole: list[Counted]  # by condition; each person once, also within subjects
    arms: list[dict[str, Counted]]  # condition → arm, those that were run, in the order of the file
    samples: list[int]  # rows of `RunIndex.samples`
    floor: list[list[Response]]  # the same participants, answered for by each guesser


def people_of(
    run: RunFolder,
    index: RunIndex,
    answers: Answers,
    *,
    study: StudyFile,
    number: int,
    guessers: Sequence[Guesser] = (),
) -> People:
    """Raises BadRun for samples that no study made. `guessers`: who answers for everybody without reading.

    Everybody who was planned has a row, also those who were never asked: they are what coverage
    is a share of. A reply of which no field could be read is no answer in `responses`.
    """
    conditions, repetitions = len(index.conditions), index.repetitions
    found = People(
        responses={(one, two): [] for one in range(conditions) for two in range(repetitions)},
        whole=[Counted() for _ in range(conditions)],
        arms=[{} for _ in range(conditions)],
        samples=[],
        floor=[[] for _ in guessers],
    )
    for row, sample in _samples_of(run, index, answers, number):
        found.samples.append(row)
        try:
            for (condition, repetition), responses in found.responses.items():
                said = answers.of(row, condition, repetition, len(sample.turns))
                values = [one.values if one is not None and one.values else None for one in said]
                responses.extend(responses_of(sample, values))
                _count(found.arms[condition], found.whole[condition], sample, said)
            for guess, responses in zip(guessers, found.floor, strict=True):
                guessed = [guess(sample, turn) for turn in range(len(sample.turns))]
                responses.extend(responses_of(sample, guessed))
        except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise BadRun(str(run.path), f"samples.jsonl is damaged: '{sample.id}' is no participant") from error
    foreign = {arm for counted in found.arms for arm in counted} - set(study.arms)
    if foreign:
        raise BadRun(str(run.path), f"samples.jsonl is damaged: '{study.study}' has no arm '{min(foreign)}'")
    found.arms = [{name: counted[name] for name in study.arms if name in counted} for counted in found.arms]
    return found


def _samples_of(run: RunFolder, index: RunIndex, answers: Answers, number: int) -> Iterator[tuple[int, Sample]]:
    for sample in run.samples(lines=answers.lines[number]):
        row = index.samples[sample.id]
        if answers.study[row] == number:
            yield row, sample


def _count(arms: dict[str, Counted], whole: Counted, sample: Sample, said: Sequence[Said | None]) -> None:
    """A participant counts once in each arm they are in, and once in the whole, whatever number of turns it has."""
    turns: dict[tuple[int | None, str], list[int]] = {}
    persons: dict[int | None, list[int]] = {}
    for at, turn in enumerate(sample.turns):
        member = turn.detail.get("member")
        turns.setdefault((member, turn.detail["arm"]), []).append(at)
        persons.setdefault(member, []).append(at)
    fields = sample.detail["fields"]
    counts = [(arms.setdefault(arm, Counted()), places) for (_, arm), places in turns.items()]
    for counted, places in [*counts, *((whole, places) for places in persons.values())]:
        counted.add([said[at] for at in places], [fields[at] for at in places])
