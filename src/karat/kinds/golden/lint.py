"""Contradictions in a file of questions with golden answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karat.kinds import Doubted
from karat.numeric import parse_value
from karat.records import Sample

__all__ = ["MEANINGS", "doubted"]

MEANINGS = {
    "contradicts": "an earlier sample asks the same and has another golden answer",
    "same_question": "an earlier sample asks the same, and has the same golden answer",
    "same_answer": "other questions have the same long golden answer",
    "answer_is_question": "the golden answer repeats the question",
}

_FEW = 3
"""So many questions with one answer are worth a look: an answer that fits many questions is often a placeholder."""
_SHORT = 24  # characters: `yes`, `42` and `Paris` rightly answer many questions


def doubted(samples: Iterable[Sample]) -> list[Doubted]:
    """Repeated questions, and answers that contradict each other, echo their question, or occur everywhere."""
    listed = list(samples)
    reasons: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for reason, place, evidence in (*_repeated(listed), *_echoes(listed), *_everywhere(listed)):
        reasons.setdefault(place, []).append((reason, evidence))
    return [
        Doubted(
            id=listed[place].id,
            turn=None,
            reasons=tuple(reason for reason, _ in of_sample),
            evidence=dict(of_sample),
        )
        for place, of_sample in sorted(reasons.items())
    ]


_Finding = tuple[str, int, dict[str, Any]]


def _repeated(samples: Sequence[Sample]) -> Iterable[_Finding]:
    """Each repeated question: `contradicts` with another answer, else `same_question`."""
    first: dict[tuple[str, str | None], int] = {}
    for place, sample in enumerate(samples):
        earlier = first.setdefault((_folded(sample.turns[0].question), sample.materials), place)
        if earlier == place:
            continue
        answers = [samples[at].turns[0].golden or "" for at in (earlier, place)]
        reason = "same_question" if _same(*answers) else "contradicts"
        evidence = {"id": samples[earlier].id, "there": answers[0][:200], "answer": answers[1][:200]}
        yield reason, place, evidence


def _echoes(samples: Sequence[Sample]) -> Iterable[_Finding]:
    for place, sample in enumerate(samples):
        turn = sample.turns[0]
        if _folded(turn.question) == _folded(turn.golden or ""):
            yield "answer_is_question", place, {"answer": (turn.golden or "")[:200]}


def _everywhere(samples: Sequence[Sample]) -> Iterable[_Finding]:
    """Long answers that several different questions share."""
    sharing: dict[str, dict[str, int]] = {}
    for place, sample in enumerate(samples):
        turn = sample.turns[0]
        if turn.golden is not None and len(turn.golden) >= _SHORT:
            sharing.setdefault(_folded(turn.golden), {}).setdefault(_folded(turn.question), place)
    for questions in sharing.values():
        if len(questions) >= _FEW:
            first, *others = questions.values()
            for place in others:
                evidence = {"id": samples[first].id, "questions": len(questions)}
                yield "same_answer", place, evidence | {"answer": (samples[place].turns[0].golden or "")[:200]}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?.! ")


def _same(one: str, other: str) -> bool:
    """The same text except for case and spaces, or the same value: `10 %` and `0.1`."""
    if _folded(one) == _folded(other):
        return True
    value, its = parse_value(one), parse_value(other)
    if value is None or its is None:
        return False
    if value.boolean is not None or its.boolean is not None:
        return value.boolean is its.boolean
    return value.number == its.number
