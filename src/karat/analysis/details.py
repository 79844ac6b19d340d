"""Every planned trial with its texts, in the plan's order: for exports, where the words matter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from karat.analysis.reading import trusted
from karat.journal import Conversation, Torn
from karat.records import Answer, Failure, Reply, Sample, Score, recorded_seconds

if TYPE_CHECKING:
    from karat.analysis.model import MetricInfo, Summary
    from karat.journal import RunFolder

__all__ = ["TrialRecord", "trials"]


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal's final reading says of one planned trial."""

    sample: Sample
    condition: str
    repetition: int  # from 0
    answer: Answer | None
    scores: tuple[Score, ...]  # of the shown scorings; by scorer, turn, judge, repeat
    failure: Failure | None  # the last one, where there is no answer or a score is missing
    heard: tuple[Reply, ...] = ()  # of a conversation that has no answer: the turns that were answered before it broke

    def value(self, metric: MetricInfo) -> float | None:
        """The trial's number: mean over repeats of each judge, then over judges, then over turns."""
        turns: dict[int | None, dict[str | None, list[float]]] = {}
        for score in self.scores:
            found = score.values.get(metric.name)
            if (score.scorer, score.scoring) == (metric.scorer, metric.scoring) and found is not None:
                turns.setdefault(score.turn, {}).setdefault(score.judge, []).append(float(found))
        per_turn = [fmean(map(fmean, judges.values())) for judges in turns.values()]
        return fmean(per_turn) if per_turn else None


class _Lines:
    """The raw lines of one trial: decoded only when the trial's turn comes."""

    __slots__ = ("answer", "failure", "said", "scores")

    def __init__(self) -> None:
        self.answer: bytes | None = None
        self.failure: bytes | None = None
        self.scores: list[bytes] = []
        self.said: Conversation[bytes] | None = None  # turn by turn, while there is no answer


class _Key(msgspec.Struct, gc=False):
    trial: str
    turn: int | None = None
    sample: str | None = None
    condition: str | None = None
    repetition: int | None = None


class _Said(msgspec.Struct, gc=False):
    reply: Reply


_key = msgspec.json.Decoder(_Key).decode
_answer = msgspec.json.Decoder(Answer).decode
_score = msgspec.json.Decoder(Score).decode
_failure = msgspec.json.Decoder(Failure).decode
_reply = msgspec.json.Decoder(_Said).decode


def trials(run: RunFolder, summary: Summary) -> Iterator[TrialRecord]:
    """Every planned trial: by sample position, then condition, then repetition.

    Answers are put in order by holding the journal's lines in memory, so this takes about
    as much memory as the journal is long. Raises BadRun for a damaged run.
    """
    with trusted(run):
        yield from _trials(run, summary)


def _trials(run: RunFolder, summary: Summary) -> Iterator[TrialRecord]:
    lines = _by_trial(run)
    shown = {(metric.scorer, metric.scoring): place for place, metric in enumerate(summary.metrics)}
    shown |= {pair: 0 for pair in summary.provenance.scorers.items() if pair not in shown}
    nothing = _Lines()
    recorded = run.info.agent_type == "replay"
    for sample in sorted(run.samples(), key=lambda one: (one.position, one.id)):
        for condition in summary.conditions:
            for repetition in range(summary.repetitions):
                found = lines.pop((sample.id, condition, repetition), nothing)
                record = _record(sample, condition, repetition, found, shown)
                if recorded and record.answer is not None:  # older versions kept how long it took to read it back
                    seconds = recorded_seconds(reply.milliseconds for reply in record.answer.replies)
                    answer = msgspec.structs.replace(record.answer, seconds=seconds)
                    record = msgspec.structs.replace(record, answer=answer)
                yield record


def _by_trial(run: RunFolder) -> dict[tuple[str, str, int], _Lines]:
    found: dict[tuple[str, str, int], _Lines] = {}
    by_id: dict[str, _Lines] = {}
    for line in run.lines():
        kind = line[10:15]
        if kind not in (b"answe", b"score", b"failu", b"reply"):
            continue
        key = _key(line)
        lines = by_id.get(key.trial)
        if kind == b"reply":
            lines = by_id.setdefault(key.trial, lines or _Lines())
            lines.said = lines.said or Conversation()
            lines.said.add(key.turn or 0, line)
            continue
        if key.sample is not None and key.condition is not None and key.repetition is not None:
            lines = by_id[key.trial] = found.setdefault((key.sample, key.condition, key.repetition), lines or _Lines())
        if lines is None:
            continue
        if kind == b"answe":
            lines.answer, lines.said = lines.answer or line, None
        elif kind == b"failu":
            lines.failure = line
        else:
            lines.scores.append(line)
    return found


def _record(
    sample: Sample, condition: str, repetition: int, lines: _Lines, shown: dict[tuple[str, str], int]
) -> TrialRecord:
    answer = _answer(lines.answer) if lines.answer is not None else None
    last: dict[tuple[int, str, int, str, int], Score] = {}
    for line in lines.scores if answer is not None else ():
        score = _score(line)
        place = shown.get((score.scorer, score.scoring))
        if place is not None:
            turn = -1 if score.turn is None else score.turn
            last[place, score.scorer, turn, score.judge or "", score.repeat] = score
    torn = _torn(last)
    failure = _failure(lines.failure) if lines.failure is not None else None
    if answer is not None and failure is not None and (failure.stage != "score" or len(last) > len(torn)):
        failure = None
    return TrialRecord(
        sample=sample,
        condition=condition,
        repetition=repetition,
        answer=answer,
        scores=tuple(last[key] for key in sorted(last) if (key[0], key[1]) not in torn),
        failure=failure,
        heard=tuple(_reply(line).reply for line in lines.said.replies) if lines.said is not None else (),
    )


def _torn(scores: dict[tuple[int, str, int, str, int], Score]) -> Collection[tuple[int, str]]:
    """The scorers whose rows of this trial are too few, because a kill cut them short."""
    torn: Torn[tuple[int, str], tuple[int, str, int]] = Torn()
    whole: set[tuple[int, str]] = set()
    for (place, scorer, turn, judge, repeat), score in scores.items():
        key = place, scorer
        if key not in whole and torn.completes(key, (turn, judge, repeat), rows=score.rows):
            whole.add(key)
    return torn.there
