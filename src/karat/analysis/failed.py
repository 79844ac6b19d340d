"""Questions whose answers failed, as rows of a dataset for people to fill in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from karat.analysis.details import trials
from karat.analysis.label_sheet import scale_of
from karat.analysis.model import MetricInfo, Summary
from karat.analysis.parts import kind_of
from karat.errors import BadOption
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.journal import RunFolder

_OF_THE_AGENT = ("agent", "limit")
_SLACK = 1e-9  # a mean over judges may miss the score only by rounding


class FailedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with the worst answer to it."""

    sample: str
    question: str
    golden: str | None  # as the run knows it
    condition: str  # of the worst answer, like what follows
    repetition: int
    answer: str | None  # None: there is none, and `failure` says why
    score: float | None
    reason: str | None
    failure: str | None
    trials: int  # that failed on this question

    def row(self, run: str, metric: MetricInfo | None) -> JsonObject:
        """The question as a row of a dataset, whose `answer` people fill in."""
        origin = {"run": run, "sample": self.sample, "condition": self.condition}
        return {
            "question": self.question,
            "answer": self.golden or "",
            "agent_answer": self.answer,
            "metric": metric and metric.key,
            "score": self.score,
            "reason": self.reason,
            "failure": self.failure,
            "failed_trials": self.trials,
            "origin": {**origin, "repetition": self.repetition},
        }


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """What failed in a run, in the order of its questions."""

    questions: tuple[FailedQuestion, ...]
    trials: int  # that failed
    scored: int  # of these: with a score that is not enough
    passed: int
    left_out: Mapping[str, int]  # class → trials that say nothing about the agent


def threshold_of(metric: MetricInfo, given: float | None) -> float:
    """The score that is enough: `given`, else that of a reliable answer.

    Raises BadOption if neither is known, or neither direction is better.
    """
    if metric.direction == "none":
        raise BadOption("--metric", f"neither direction of {metric.key} is better: name another")
    if given is not None:
        return given
    if metric.threshold is not None:
        return metric.threshold
    raise BadOption(
        "--enough",
        f"say which score of {metric.key} ({scale_of(metric)}) is enough, e.g. --enough 4",
    )


def failed_questions(
    run: RunFolder,
    summary: Summary,
    metric: MetricInfo | None,
    enough: float,
) -> Failed:
    """The questions with an answer whose score is worse than `enough`, or that the agent failed to
    answer.

    Failures of servers and judges, and answers without a score, are counted only. Raises BadOption
    for a run whose answers are judged turn by turn.
    """
    kind = kind_of(summary.kind)
    if kind.by_turn or not kind.compared:
        raise BadOption(
            "label --failed", f"a question of a {summary.kind} dataset is not a row with one answer"
        )

    found: dict[str, list[tuple[float, FailedQuestion]]] = {}
    passed = scored = 0
    left_out = Counter[str]()
    for record in trials(run, summary):
        value = None
        if metric is not None:
            value = record.value(metric)
        if value is not None and metric is not None:
            short = enough - value
            if metric.direction == "lower":
                short = -short
            if short <= _SLACK:
                passed += 1
                continue

            scored += 1
        elif record.failure is not None and record.failure.cls in _OF_THE_AGENT:
            short = -1.0  # an answer shows more than none
        else:
            if record.answer is not None or record.failure is not None or not run.info.sparse:
                if record.failure is not None:
                    left_out[record.failure.cls] += 1
                elif record.answer is None:
                    left_out["not run"] += 1
                else:
                    left_out["no score"] += 1

            continue

        reasons = [
            text
            for score in record.scores
            if metric is not None and (text := score.reasons.get(metric.name))
        ]
        answer = failure = None
        if record.answer is not None and not record.answer.replies[-1].absent:
            answer = record.answer.text
        if record.answer is None and record.failure is not None:
            failure = f"{record.failure.cls}: {record.failure.message}"
        turn = record.sample.turns[-1]
        question = FailedQuestion(
            sample=record.sample.id,
            question=turn.question,
            golden=turn.golden,
            condition=record.condition,
            repetition=record.repetition,
            answer=answer,
            score=value,
            reason=next(iter(reasons), None),
            failure=failure,
            trials=1,
        )
        found.setdefault(record.sample.id, []).append((short, question))

    questions = []
    for of_sample in found.values():
        _, worst = max(of_sample, key=lambda pair: pair[0])
        questions.append(msgspec.structs.replace(worst, trials=len(of_sample)))

    return Failed(
        questions=tuple(questions),
        trials=sum(map(len, found.values())),
        scored=scored,
        passed=passed,
        left_out=left_out,
    )
