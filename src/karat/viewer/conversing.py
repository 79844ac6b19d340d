"""A conversation as its page shows it: turn by turn, golden and agent's answers and programs beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from karat.numeric import right_by
from karat.records import Reply, Sample, Score
from karat.viewer.beside import aligned, steps
from karat.viewer.texts import Told
from karat.viewer.voices import NOBODY, Voices

__all__ = ["is_judged", "right_of", "turns", "verdict_row"]

_MOST_TURNS = 100
_LONG = 300  # characters of one value in a proof
_MATCHES = {"right", "numerical"}  # by which a turn is right


def turns(
    sample: Sample,
    trials: Sequence[Told],
    conditions: Sequence[str],
    *,
    voices: Voices = NOBODY,
    rule: str = "numerical",
) -> list[dict[str, Any]]:
    """What the template needs: each turn with what every trial made of it, and what people said of that.

    `rule`: by which match a turn is right.
    """
    return [
        {
            "question": turn.question,
            "golden": turn.golden,
            "program": [(step, None) for step in steps(_text(turn.detail.get("program")))],
            "answers": [
                {
                    **_answer(at, told, conditions, steps(_text(turn.detail.get("program"))), rule=rule),
                    **_judged(sample, at, told, voices, rule=rule),
                }
                for told in trials
            ],
        }
        for at, turn in enumerate(sample.turns[:_MOST_TURNS])
    ]  # fmt: skip


def verdict_row(scores: Iterable[Score], turn: int) -> Score | None:
    """The row that says whether a turn is right; None where no scorer does."""
    return next((one for one in scores if one.turn == turn and not _MATCHES.isdisjoint(one.values)), None)


def right_of(score: Score | None, rule: str = "numerical") -> bool | None:
    """Whether karat calls a turn right, by the match `rule`; None where it does not say."""
    if score is None:
        return None
    if {rule, "right", "numerical"} <= score.values.keys():
        right: bool | None = right_by(score.values, rule)
        return right
    value = score.values.get("right", score.values.get("numerical"))
    return None if value is None else bool(value)


def is_judged(sample: Sample, turn: int, told: Told) -> bool:
    """Whether a person can judge a turn: there is a golden answer, and a reply in a trial that came to its end."""
    if told.answer is None or not 0 <= turn < min(len(sample.turns), len(told.answer.replies)):
        return False
    return sample.turns[turn].golden is not None and not told.answer.replies[turn].absent


def _judged(sample: Sample, turn: int, told: Told, voices: Voices, *, rule: str) -> dict[str, Any]:
    return {
        "trial": told.id,
        "turn": turn,
        "ask": is_judged(sample, turn, told),
        "people": voices.verdicts(told.id, turn, right_of(verdict_row(told.scores, turn), rule)),
        "own": voices.own_verdict(told.id, turn),
    }


def _answer(turn: int, told: Told, conditions: Sequence[str], golden: Sequence[str], *, rule: str) -> dict[str, Any]:
    replies = told.answer.replies if told.answer is not None else told.heard
    reply = replies[turn] if turn < len(replies) else None
    score = verdict_row(told.scores, turn)
    detail = score.detail if score is not None else {}
    actual = detail.get("actual") if score is not None else None
    program = _text(detail.get("program")) or (reply.program if reply is not None else None)
    evidence = detail.get("evidence")
    return {
        "n": told.n,
        "condition": told.condition,
        "repetition": told.repetition,
        "name": conditions[told.condition] if 0 <= told.condition < len(conditions) else "?",
        "missing": _missing(reply, told),
        "text": reply.text if reply is not None else "",
        "actual": _shown(actual) or _said(reply),
        "unit": _text(detail.get("unit")),
        "program": aligned(golden, steps(program)) if golden else [(step, None) for step in steps(program)],
        "right": right_of(score, rule),
        "diagnosis": score.labels.get("diagnosis") if score is not None else None,
        "evidence": [(name, _shown(value)) for name, value in _told(evidence, detail)],
    }


def _missing(reply: Reply | None, told: Told) -> str:
    if reply is not None:
        return ""
    return "never reached" if told.failure is not None or told.answer is not None else "not yet"


def _said(reply: Reply | None) -> str:
    if reply is None:
        return ""
    return reply.answer or reply.text[:_LONG]


def _told(evidence: Any, detail: dict[str, Any]) -> list[tuple[str, Any]]:
    found = list(_counted(evidence).items())[:20] if isinstance(evidence, dict) else []
    if detail.get("carried") is True:
        found.append(("carried", "proved to be right, had earlier turns been right"))
    return found


def _counted(value: Any) -> Any:
    """A proof with its turns as the page counts them, from 1. Its steps are from 0, as in programs: #0."""
    if isinstance(value, list):
        return [_counted(one) for one in value[:50]]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, one in list(value.items())[:50]:
        if name == "turn" and isinstance(one, int):
            found[name] = one + 1
        elif name == "turns" and isinstance(one, list):
            found[name] = [each + 1 if isinstance(each, int) else each for each in one]
        else:
            found[name] = _counted(one)
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
