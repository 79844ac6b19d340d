"""Every planned trial with its texts, in the plan's order, for exports that need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from karat.analysis.model import MetricInfo, Summary
from karat.index import read_index, trial_value, trusted
from karat.records import Answer, Failure, Reply, Sample, Score, recorded_seconds

if TYPE_CHECKING:
    from karat.index import LineReader, RunIndex, ScoreRows
    from karat.journal import RunFolder


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Those records of one planned trial that count."""

    sample: Sample
    condition: str
    repetition: int  # from 0
    answer: Answer | None
    scores: tuple[Score, ...]  # of the shown scorings; by scorer, turn, judge, repeat
    failure: Failure | None  # the last one, if there is no answer or a score is missing
    # for a conversation without an answer: the turns answered before it failed
    heard: tuple[Reply, ...] = ()

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Those of the answer, or of the turns before a conversation failed."""
        if self.answer is None:
            return self.heard
        return self.answer.replies

    def value(self, metric: MetricInfo) -> float | None:
        """The trial's number: mean over repeats of each judge, then over judges, then over
        turns.
        """
        rows = []
        for row in self.scores:
            if (row.scorer, row.scoring) == (metric.scorer, metric.scoring):
                rows.append(row)

        return trial_value((row.turn, row.judge, row.values.get(metric.name)) for row in rows)


class _ReplyEvent(msgspec.Struct, gc=False):
    reply: Reply


_answer = msgspec.json.Decoder(Answer).decode
_score = msgspec.json.Decoder(Score).decode
_failure = msgspec.json.Decoder(Failure).decode
_event = msgspec.json.Decoder(_ReplyEvent).decode


def reply_of(line: bytes) -> Reply:
    """The reply in a line of the event `reply`."""
    return _event(line).reply


def trials(run: RunFolder, summary: Summary) -> Iterator[TrialRecord]:
    """Every planned trial: by sample position, then condition, then repetition.

    Texts are read from the journal one trial at a time. Raises BadRun for a damaged run.
    """
    shown = {(metric.scorer, metric.scoring): place for place, metric in enumerate(summary.metrics)}
    shown |= {pair: 0 for pair in summary.provenance.scorers.items() if pair not in shown}
    scorings = sorted(shown, key=lambda scoring: (shown[scoring], scoring[0]))
    with trusted(run):
        index = read_index(run)
        rows = [index.scores[key] for key in scorings if key in index.scores]
        with index.reader() as reader:
            texts = _Texts(index, reader, rows)
            for sample in sorted(run.samples(), key=lambda sample: (sample.position, sample.id)):
                for condition in summary.conditions:
                    for repetition in range(summary.repetitions):
                        yield texts.record(sample, condition, repetition)


class _Texts:
    """Reads the lines of trials, one by one."""

    def __init__(self, index: RunIndex, reader: LineReader, rows: list[ScoreRows]) -> None:
        self._index = index
        self._line = reader.line
        self._rows = rows
        self._failed = {cell: at for at, cell, _ in index.failures}  # the last failure of each
        self._open = {pending.cell: pending.partial for pending in index.open_trials.values()}

    def record(self, sample: Sample, condition: str, repetition: int) -> TrialRecord:
        cell = self._index.cell(sample.id, condition, repetition)
        if cell is None:
            return TrialRecord(
                sample=sample,
                condition=condition,
                repetition=repetition,
                answer=None,
                scores=(),
                failure=None,
            )

        answered = bool(self._index.answered[cell])
        if answered:
            answer = _answer(self._line(self._index.answers[cell]))
        else:
            answer = None

        # older versions recorded the time it took to read the file
        if answer is not None and self._index.recorded:
            seconds = recorded_seconds([reply.milliseconds for reply in answer.replies])
            answer = msgspec.structs.replace(answer, seconds=seconds)

        if answered:
            scores = tuple(
                _score(self._line(at)) for rows in self._rows for at in rows.places_of(cell)
            )
        else:
            scores = ()

        if cell in self._failed:
            failure = _failure(self._line(self._failed[cell]))
        else:
            failure = None

        if answered and failure is not None and (failure.stage != "score" or scores):
            failure = None
        partial = self._open.get(cell)
        heard: tuple[Reply, ...] = ()
        if partial is not None and not answered:
            heard = tuple(reply_of(self._line(at)) for at, _ in partial.replies)

        return TrialRecord(
            sample=sample,
            condition=condition,
            repetition=repetition,
            answer=answer,
            scores=scores,
            failure=failure,
            heard=heard,
        )
