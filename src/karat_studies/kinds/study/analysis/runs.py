"""One study of a run: all answers, from the score rows of `replication`, and the tests computed
from them.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat import formats
from karat.analysis.numbers import from_fields
from karat.errors import BadPlugin, BadRun
from karat.index import RunIndex
from karat.journal import KeptFile, RunFolder
from karat.records import NOT_ASKED, Sample, Usage
from karat_studies.kinds.study.analysis.model import QUOTES, ArmCount, Participants
from karat_studies.kinds.study.bootstrap import StudyRun
from karat_studies.kinds.study.experiments import study_experiments
from karat_studies.kinds.study.kept import load_reducer
from karat_studies.kinds.study.samples import responses_of
from karat_studies.kinds.study.values import MISSING, REFUSED
from karat_studies.replication import score_tests

if TYPE_CHECKING:
    from karat_studies.kinds.study.allowed import AllowCode
    from karat_studies.kinds.study.analysis.floor import Guesser
    from karat_studies.kinds.study.experiments import Reducer, Response
    from karat_studies.kinds.study.format import StudyFile
    from karat_studies.replication import Agreement, StudyTest

REPLICATES = 2_000
CONVENTION = "humanstudy"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The tests of each experiment. Those with too few readable answers lack the agent's side."""

    agreements: Sequence[Agreement]
    runs: Sequence[StudyRun]
    floor: Sequence[Sequence[StudyTest]]  # of each repetition of random answers


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A study's own code if it may run, or why not."""

    reducer: Reducer | None = None
    refused: str | None = None
    differs: str | None = None  # how it differs from the code at the time of the run


def seed_of(copy: KeptFile, samples: Iterable[str]) -> int:
    """The seed of draws in one study: from its questions and participants, so that another run with
    the same answers has the same numbers, whatever its id, the order of its journal, its conditions
    and its other studies.
    """
    parts = [copy.digest, *sorted(sample.removeprefix(f"{copy.name}/") for sample in samples)]
    return int.from_bytes(
        blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def measured(
    file: StudyFile,
    experiments: Sequence[Sequence[Response]],
    *,
    arms: Collection[str],
    reducer: Reducer | None,
    refused: str | None,
    floor: Sequence[Sequence[Response]] = (),
) -> Measured:
    """`experiments`: the answers of each; `floor`: random ones, processed the same way.

    Raises nothing: what cannot be computed gets a reason instead of a value.
    """
    every = study_experiments(
        file,
        [*experiments, *floor],
        reducer=reducer,
        refused=refused,
        arms=arms,
    )
    given = every[: len(experiments)]
    guessed = every[len(experiments) :]
    agreements = [
        score_tests(result.tests, convention=CONVENTION, min_coverage=file.min_coverage)
        for result in given
    ]
    runs = [
        StudyRun(responses=responses, data=result.data or {}, scores=agreement.tests)
        for responses, result, agreement in zip(experiments, given, agreements, strict=True)
    ]
    random = [covered(result.tests, file.min_coverage) for result in guessed]
    return Measured(agreements=agreements, runs=runs, floor=random)


def covered(tests: Sequence[StudyTest], least: float) -> Sequence[StudyTest]:
    """The tests as scored: without the agent if an arm had no participants."""
    if all(not test.coverage < least for test in tests):
        return tests
    return [
        test.test for test in score_tests(tests, convention=CONVENTION, min_coverage=least).tests
    ]


def agreement_of(*studies: Sequence[StudyTest], level: float) -> Agreement:
    """Of the studies' tests, from which the agent was left out where too few answers could be
    read.
    """
    tests = chain.from_iterable(studies)
    return score_tests(tests, convention=CONVENTION, min_coverage=0.0, level=level)


def reducer_of(file: StudyFile, *, inside: Path, allowed: AllowCode) -> Code:
    """`inside`: the run folder, whose code is never used."""
    if file.reducer is None or not allowed:
        return Code()
    try:
        reducer, differs = load_reducer(file, inside=inside, changed=allowed == "changed")
    except BadPlugin as error:
        return Code(refused=str(error))

    return Code(reducer=reducer, differs=differs)


Values = dict[str, float | str | list[str]]
_LARGEST = 1e150
"""Largest possible answer: at most thirty digits and a two-digit exponent are read, so anything
larger was forged.
"""


class TurnAnswer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The reply in one turn."""

    values: Values  # field → answer
    kinds: dict[str, str]  # field → why it has none
    parsed: bool  # all required fields were parsed
    why: str | None = None  # why there was no reply: stopped, unrecorded; None: there was one

    @property
    def replied(self) -> bool:
        """Whether a reply came, readable or not."""
        return self.why is None


class Spent(msgspec.Struct):
    """The total cost of answers."""

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens_unknown: int = 0
    dollars: float | None = None
    dollars_unknown: int = 0

    def add(self, reply: _Reply) -> None:
        """Adds one reply."""
        if reply.stop_reason == NOT_ASKED.stop_reason:
            return
        self.calls += 1
        usage = reply.usage
        if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
            self.tokens_unknown += 1
        else:
            self.input_tokens = (self.input_tokens or 0) + (usage.input_tokens or 0)
            self.output_tokens = (self.output_tokens or 0) + (usage.output_tokens or 0)

        if reply.dollars is None:
            self.dollars_unknown += 1
        else:
            self.dollars = (self.dollars or 0.0) + reply.dollars


class Answers(msgspec.Struct):
    """The answers of all conditions and repetitions.

    A sample is one participant, in games one group.
    """

    studies: list[str]
    study: array[int]  # per sample: its study; −1: none in the run folder
    lines: list[set[int]]  # of samples.jsonl: those of each study
    first: array[int]  # per sample: the index of its first turn
    turns: int  # turns of all samples, as declared
    repetitions: int
    slots: list[TurnAnswer | None]  # by condition, then by repetition
    spent: list[list[Spent]]  # condition → study
    # condition → the beginnings of up to three replies that could not be read
    unread: list[list[str]]

    @property
    def asked(self) -> int:
        """Turns of the participants of all studies in the run folder, in one repetition of one
        condition.
        """
        if self.first:
            after = [*self.first[1:], self.turns]
        else:
            after = []

        return sum(
            end - start
            for start, end, at in zip(self.first, after, self.study, strict=True)
            if at >= 0
        )

    def samples_of(self, number: int, rows: Mapping[str, int]) -> list[str]:
        """The ids of a study's samples. `rows`: id → row, of the whole run."""
        return [name for name, row in rows.items() if self.study[row] == number]

    def places(self, row: int, condition: int, repetition: int) -> range:
        """The indices of a sample's turns in `slots`."""
        start = (condition * self.repetitions + repetition) * self.turns
        if row + 1 < len(self.first):
            after = self.first[row + 1]
        else:
            after = self.turns

        return range(start + self.first[row], start + after)

    def of(self, row: int, condition: int, repetition: int) -> Sequence[TurnAnswer | None]:
        """A sample's answers in each turn; None: no reply, or not scored."""
        places = self.places(row, condition, repetition)
        return self.slots[places.start : places.stop]


class _Reply(msgspec.Struct, gc=False):
    text: str = ""
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
    """The answers, by the score rows of `scoring` (scorer and digest).

    The last row of a turn counts.
    """
    answers = _planned(index, studies)
    known: dict[tuple[bytes, bytes, bool], TurnAnswer] = {}
    for cell, row in index.score_lines(scoring, _score):
        places = answers.places(*index.place(cell))
        if row.turn is not None and 0 <= row.turn < len(places):
            key = bytes(row.labels), bytes(row.detail.answers), bool(row.values.get("parsed"))
            turn = known.get(key)
            if turn is None:
                labels = _labels(row.labels)
                if row.values.get("parsed") is None:
                    why = labels.pop("turn", None)
                else:
                    why = None

                values = _values(row.detail.answers)
                if any(
                    isinstance(value, float) and not abs(value) <= _LARGEST
                    for value in values.values()
                ):
                    raise msgspec.ValidationError(
                        f"an answer of trial {row.trial} is a number that nobody can have given"
                    )

                turn = known[key] = TurnAnswer(
                    values=values,
                    kinds=labels,
                    parsed=key[2] and why is None,
                    why=why,
                )

            answers.slots[places[row.turn]] = turn

    for cell, answer in index.answer_lines(_answer):
        number, condition, _ = index.place(cell)
        if (of_study := answers.study[number]) >= 0:
            for reply in answer.replies:
                answers.spent[condition][of_study].add(reply)

            # The beginnings of the first different replies that could not be read
            quotes = answers.unread[condition]
            turns = answers.of(*index.place(cell))
            for reply, turn in zip(answer.replies, turns, strict=False):
                if len(quotes) == QUOTES or turn is None or not turn.replied or turn.parsed:
                    continue
                if set(turn.kinds.values()) - {REFUSED}:
                    quote = formats.excerpt(reply.text, _QUOTE) or "(empty)"
                    if quote not in quotes:
                        quotes.append(quote)

    rows = index.scores.get(scoring)
    for cell in rows.partial if rows is not None else ():  # an incomplete scoring does not count
        for slot in answers.places(*index.place(cell)):
            answers.slots[slot] = None

    return answers


_QUOTE = 60  # characters of a reply


def _planned(index: RunIndex, studies: Sequence[str]) -> Answers:
    size = len(index.samples)
    counts = array("q", bytes(8 * size))
    study = array("q", bytes(8 * size))
    numbers = {name: at for at, name in enumerate(studies)}
    lines: list[set[int]] = [set() for _ in studies]
    for line, sample in enumerate(index.run.samples()):
        row = index.samples[sample.id]
        counts[row], study[row] = (
            len(sample.turns),
            numbers.get(str(sample.detail.get("study")), -1),
        )
        if (number := study[row]) >= 0:
            lines[number].add(line)

    first = array("q")
    total = 0
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
        unread=[[] for _ in range(conditions)],
    )


STOPPED = "stopped"
_SEVERAL = object()


class Counted(msgspec.Struct):
    """One arm, or the whole study, under one condition, over its repetitions."""

    planned: int = 0
    asked: int = 0
    answered: int = 0
    parsed: int = 0
    stopped: int = 0
    unread: dict[str, dict[str, int]] = {}
    read: dict[str, int] = {}
    same: dict[str, object] = {}  # field → the common answer of all; _SEVERAL: they differ

    def add(
        self, turns: Sequence[TurnAnswer | None], fields: Sequence[Mapping[str, Mapping[str, Any]]]
    ) -> None:
        """Adds one participant: the reply in each of their turns, and its expected fields."""
        replies = []
        for answer in turns:
            if answer is not None and answer.replied:
                replies.append(answer)

        self.planned += 1
        self.asked += bool(replies)
        self.answered += len(replies) == len(turns)
        self.parsed += len(replies) == len(turns) and all(reply.parsed for reply in replies)
        self.stopped += any(answer is not None and answer.why == STOPPED for answer in turns)
        for turn, asked in zip(turns, fields, strict=True):
            if turn is None or turn.why not in {None, STOPPED}:
                continue
            for name, field in asked.items():
                if not turn.why:
                    kind = turn.kinds.get(name)
                else:
                    kind = STOPPED

                if kind == MISSING and field.get("optional"):
                    continue
                if kind is not None:
                    kinds = self.unread.setdefault(name, {})
                    kinds[kind] = kinds.get(kind, 0) + 1
                elif name in turn.values:
                    self.read[name] = self.read.get(name, 0) + 1
                    if self.same.setdefault(name, turn.values[name]) != turn.values[name]:
                        self.same[name] = _SEVERAL

    @property
    def participants(self) -> Participants:
        """In the summary's form."""
        return from_fields(Participants, self)

    def arm_count(self, arm: str, people: int | None) -> ArmCount:
        """In the summary's form, the most frequent reasons first."""
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


class People(msgspec.Struct):
    """All participants of one study. Conditions and repetitions by number."""

    responses: dict[tuple[int, int], list[Response]]
    whole: list[Counted]  # by condition; each person once, also within subjects
    arms: list[dict[str, Counted]]  # condition → arms that were run, in the order of the file
    samples: list[int]  # rows of `RunIndex.samples`


def people_of(
    run: RunFolder,
    index: RunIndex,
    answers: Answers,
    *,
    study: StudyFile,
    number: int,
) -> People:
    """Raises BadRun for samples not from a study.

    All planned participants have a row, even those never asked: they are the base of
    coverage. A reply without any readable field is not an answer in `responses`.
    """
    conditions = len(index.conditions)
    repetitions = index.repetitions
    people = People(
        responses={
            (condition, repetition): []
            for condition in range(conditions)
            for repetition in range(repetitions)
        },
        whole=[Counted() for _ in range(conditions)],
        arms=[{} for _ in range(conditions)],
        samples=[],
    )
    for row, sample in _samples_of(run, index, answers, number):
        people.samples.append(row)
        try:
            for (condition, repetition), responses in people.responses.items():
                answered = answers.of(row, condition, repetition)
                values = [
                    answer.values if answer is not None and answer.values else None
                    for answer in answered
                ]
                responses.extend(responses_of(sample, values))
                _count(people.arms[condition], people.whole[condition], sample, answered)
        except _DAMAGED as error:
            raise _no_participant(run, sample) from error

    foreign = {arm for counted in people.arms for arm in counted} - set(study.arms)
    if foreign:
        raise BadRun(
            str(run.path), f"samples.jsonl is damaged: '{study.study}' has no arm '{min(foreign)}'"
        )

    people.arms = [
        {name: counted[name] for name in study.arms if name in counted} for counted in people.arms
    ]
    return people


def guessed_by(
    guessers: Sequence[Guesser],
    run: RunFolder,
    index: RunIndex,
    answers: Answers,
    *,
    number: int,
) -> list[list[Response]]:
    """The answers of each guesser for all participants of a study, without reading."""
    every: list[list[Response]] = [[] for _ in guessers]
    for _, sample in _samples_of(run, index, answers, number):
        try:
            for guess, responses in zip(guessers, every, strict=True):
                guessed = [guess(sample, turn) for turn in range(len(sample.turns))]
                responses.extend(responses_of(sample, guessed))
        except _DAMAGED as error:
            raise _no_participant(run, sample) from error

    return every


_DAMAGED = (AttributeError, ArithmeticError, LookupError, TypeError, ValueError)


def _no_participant(run: RunFolder, sample: Sample) -> BadRun:
    return BadRun(str(run.path), f"samples.jsonl is damaged: '{sample.id}' is not a participant")


def _samples_of(
    run: RunFolder,
    index: RunIndex,
    answers: Answers,
    number: int,
) -> Iterator[tuple[int, Sample]]:
    for sample in run.samples(lines=answers.lines[number]):
        row = index.samples[sample.id]
        if answers.study[row] == number:
            yield row, sample


def _count(
    arms: dict[str, Counted],
    total: Counted,
    sample: Sample,
    answered: Sequence[TurnAnswer | None],
) -> None:
    """A participant counts once in each arm they are in, and once in the whole, whatever its number
    of turns.
    """
    turns: dict[tuple[int | None, str], list[int]] = {}
    persons: dict[int | None, list[int]] = {}
    for at, turn in enumerate(sample.turns):
        member = turn.detail.get("member")
        turns.setdefault((member, turn.detail["arm"]), []).append(at)
        persons.setdefault(member, []).append(at)

    fields = sample.detail["fields"]
    counts = [(arms.setdefault(arm, Counted()), places) for (_, arm), places in turns.items()]
    for counted, places in [*counts, *((total, places) for places in persons.values())]:
        counted.add([answered[at] for at in places], [fields[at] for at in places])
