"""What a dataset kind adds to the pages of the viewer, and the inputs it gets.

`Kind.views()` returns a `Views`. Its methods get values of a run and return values that a template
draws; they read no file and no request. Everything in a run folder is untrusted: templates pass it
through their filters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from karat.blocks import Section
from karat.journal import Attempt, Label, Labels, RunInfo
from karat.records import Answer, Failure, Reply, Sample, Score

if TYPE_CHECKING:
    from karat.analysis import Summary

VERDICTS = {"right": "right", "wrong": "wrong", "cannot_tell": "cannot tell"}
"""What a person can say of an answer against the golden one, as pages write it."""

Reading = float | str | list[str]
"""An answer as a person or karat reads it in a field."""


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in the journal about one trial."""

    n: int  # its cell in the index
    id: str
    condition: int
    repetition: int
    answer: Answer | None
    scores: tuple[Score, ...]  # of the newest scorings
    failure: Failure | None
    attempts: tuple[Attempt, ...]  # that failed
    heard: tuple[Reply, ...]  # of a conversation without an answer: the replies before it failed
    dollars: float | None
    tokens: int | None
    damaged: bool = False  # whether there is an answer whose line cannot be read
    values: dict[str, float]  # metric's key → number; NaN: none

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Those of the answer; without one those before the conversation failed."""
        return self.heard if self.answer is None else self.answer.replies

    def why_missing(self) -> str:
        """Why there is no reply to a turn, if nothing else explains it."""
        return "never reached" if self.failure is not None or self.answer is not None else "not yet"


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """Every label that counts, and the current person."""

    labels: Labels
    reviewer: str
    # of the requested trials, by turn, the oldest first
    turns: dict[str, dict[int, list[Label]]] = {}

    def by_reviewer(self, trial: str, turn: int) -> Label | None:
        """The current person's label of a turn."""
        return next(
            (label for label in self.of_turn(trial, turn) if label.who == self.reviewer), None
        )

    def of_turn(self, trial: str, turn: int) -> list[Label]:
        """The labels of one turn (from 0), the oldest first."""
        labels = self.labels.of(trial)
        if labels and trial not in self.turns:
            by_turn: dict[int, list[Label]] = {}
            for label in labels:
                if label.turn is not None:
                    by_turn.setdefault(label.turn, []).append(label)

            self.turns[trial] = by_turn

        return self.turns.get(trial, {}).get(turn, [])


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page of one sample."""

    run: str  # name of the folder
    info: RunInfo
    n: int  # the sample, from 1
    sample: Sample
    trials: Sequence[TrialRecord]
    conditions: Sequence[str]
    reviews: Reviews
    rule: str = ""  # the match that makes a turn right; empty: the kind has no such option
    seat: str = ""  # the requested member of a group
    query: Mapping[str, str] = {}  # the list that the page was opened from

    def name_of(self, trial: TrialRecord) -> str:
        """The condition of a trial."""
        if 0 <= trial.condition < len(self.conditions):
            return self.conditions[trial.condition]
        return "?"


class SampleList(msgspec.Struct, kw_only=True):
    """What a kind adds to the list of samples, by the row of a sample."""

    unit: str = ""  # the name for a sample; empty: the kind's
    heads: tuple[str, ...] = ()  # of its columns
    # row → text and a quieter line below it, per column
    cells: dict[int, tuple[tuple[str, str], ...]] = {}
    choices: dict[str, dict[str, list[int]]] = {}  # parameter of the address → value → rows
    parts: dict[int, str] = {}  # row → its part of the dataset


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement by a person and by karat: right or wrong, a diagnosis, the value of a field."""

    what: str  # empty: karat has nothing to compare
    person: Hashable = None  # None: they cannot tell
    karat: Hashable = None  # None: karat gives none
    words: str  # as shown in the list of reviews
    differs: bool = False
    field: bool = False  # whether it is one of a turn's fields


class KindPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that only runs of one kind have."""

    name: str
    title: str
    facts: tuple[tuple[str, str], ...]
    samples: dict[str, str]  # query for its list of samples
    sections: tuple[Section, ...]


class ReviewTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Wording of the page of reviews."""

    judge: str = "the judge"
    head: str = "metric"
    counted: str = "answers"
    reviewed: str = "answers"  # the things with a form
    empty: str = "No answer has both a score of a person and a score of the judge."
    legend: str = ""


class Views:
    """How the viewer shows the runs of a kind. The methods here are the defaults."""

    templates: Path | None = None  # a page names the template `KIND/FILE`
    label_head = "Diagnosis"  # the heading of score labels in the list of samples
    label_any = "any"
    diagnoses: tuple[str, ...] = ()  # the causes that a person can name for a wrong turn
    searched = "question or answers"
    reviews = ReviewTexts()

    def listing(self, samples: Iterable[tuple[int, Sample]]) -> SampleList:
        """The columns and filters of the list of samples. `samples`: by row."""
        del samples
        return SampleList()

    def searched_texts(self, sample: Sample) -> Sequence[str]:
        """Searchable texts of a sample, in addition to its questions and golden answers."""
        del sample
        return ()

    def label_choices(self, labels: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """The filters of the list: `name=value`, or `=value` for any name, and their wording."""
        return [(f"{name}={value}", f"{name}: {value}".replace("_", " ")) for name, value in labels]

    def sample_page(self, page: SamplePage) -> tuple[str, dict[str, object]] | None:
        """Template and content of the page of a sample; None: question, golden answer and answers
        side by side.
        """
        del page
        return None

    def place_of(self, sample: Sample, turn: int) -> tuple[dict[str, str], str]:
        """The location of a turn (from 0) on the page of a sample: query and fragment of its
        address.
        """
        del sample, turn
        return {}, ""

    def own_judgement(
        self, scores: Sequence[Score], turn: int, rule: str
    ) -> tuple[bool | None, str | None]:
        """Whether a turn is right by the match `rule`, and a diagnosis, as karat judges; None: it
        does not.
        """
        del scores, turn, rule
        return None, None

    def judgements(
        self, label: Label, scores: Sequence[Score], part: str, rule: str
    ) -> Iterator[Judgement]:
        """A person's label of a turn compared with karat's judgement. `part`: of the dataset."""
        assert label.turn is not None
        right, diagnosis = self.own_judgement(scores, label.turn, rule)
        if label.verdict is not None:
            if right is None:
                karat = None
            elif right:
                karat = "right"
            else:
                karat = "wrong"

            person = None if label.verdict == "cannot_tell" else label.verdict
            differs = karat is not None and karat != person
            yield Judgement(
                what="right or wrong",
                person=person,
                karat=karat,
                words=VERDICTS[label.verdict] + (f" (karat: {karat})" if differs else ""),
                differs=differs and person is not None,
            )

        if label.verdict is not None and label.diagnosis:
            differs = diagnosis is not None and diagnosis != label.diagnosis
            words = label.diagnosis + (f" (karat: {diagnosis})" if differs else "")
            yield Judgement(
                what="diagnosis, where both say wrong"
                if label.verdict == "wrong" and right is False
                else "",
                person=label.diagnosis,
                karat=diagnosis,
                words=words.replace("_", " "),
                differs=differs,
            )

    def check_readings(
        self,
        sample: Sample,
        turn: int,
        scores: Sequence[Score],
        readings: Mapping[str, tuple[Reading | None, str]],
    ) -> tuple[dict[str, Reading], dict[str, str]]:
        """The fields of a turn from a form: answers, and reasons for missing ones, by field.

        Raises ValueError.
        """
        del sample, turn, scores
        if readings:
            raise ValueError("this run has no answers with fields")
        return {}, {}

    def links(self, summary: Summary) -> tuple[str, Sequence[tuple[str, str]]]:
        """The subject of the kind's own pages of a run, and each page: group and name in its
        address.
        """
        del summary
        return "", ()

    def page(self, summary: Summary, run: str, group: str, name: str) -> KindPage | None:
        """One of those pages; None: there is none. `run`: the name of its folder."""
        del summary, run, group, name
        return None


def is_judged(sample: Sample, turn: int, trial: TrialRecord) -> bool:
    """Whether a person can judge a turn: there is a golden answer, and a reply in a completed
    trial.
    """
    if trial.answer is None or not 0 <= turn < min(len(sample.turns), len(trial.answer.replies)):
        return False
    return sample.turns[turn].golden is not None and not trial.answer.replies[turn].absent


def address(*parts: str | int, **query: object) -> str:
    """A path of the viewer; parts are escaped, and empty, None and False values are left out of the
    query.

    A tuple gives several values.

    >>> address("runs", "a b/c", "samples", sort="gap", text="", low=0)
    '/runs/a%20b%2Fc/samples?sort=gap&low=0'
    >>> address("compare", run=("a", "b"))
    '/compare?run=a&run=b'
    """
    path = "/" + "/".join(quote(str(part), safe="") for part in parts)
    pairs = []
    for name, value in query.items():
        for item in value if isinstance(value, tuple) else (value,):
            pairs.append((name, item))

    given = [
        (name, value)
        for name, value in pairs
        if value is not None and value is not False and value != ""
    ]
    if given:
        return f"{path}?{urlencode(given)}"
    return path
