"""Trials and their turns as the rows of `--to convfinqa`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from karat.numeric import parse_program
from karat.records import Reply, Score, Turn
from karat.summary import TrialRecord
from karat.summary.conversation_heard import Matcher

__all__ = [
    "ERRORS",
    "SUMMARY",
    "TURNS",
    "VALIDATION",
    "Shown",
    "error_rows",
    "summary_row",
    "turn_rows",
    "validation_rows",
]

Row = dict[str, Any]

_FEATURES = ("has_type2_question", "has_duplicate_columns", "has_non_numeric_values")
SUMMARY = (
    "trace_id", "conversation_id", "condition", "repetition", "conversation_type", "num_turns", "total_tokens",
    "prompt_tokens", "completion_tokens", "total_llm_calls", "total_tool_calls", "total_latency_ms",
    "numerical_accuracy", "soft_match_accuracy", "unit_agnostic_accuracy", "sign_agnostic_accuracy", "general_accuracy",
    "avg_logic_recall", "avg_operations_per_turn", "error_occurred", "error_type", "error_message", "failed_turn",
    "timestamp_start", "timestamp_end", *_FEATURES,
)  # fmt: skip
TURNS = (
    "trace_id", "conversation_id", "condition", "repetition", "turn_idx", "question", "expected_answer",
    "actual_answer", "numerical_match", "soft_match", "unit_agnostic_match", "sign_agnostic_match", "general_match",
    "exact_match", "logic_recall", "operations_per_turn", "ground_truth_program", "predicted_program", "diagnosis",
    "turn_tokens", "prompt_tokens", "completion_tokens", "turn_llm_calls", "turn_tool_calls", "turn_latency_ms",
    "tools_used", "error_occurred", "error_type", "error_message",
)  # fmt: skip
ERRORS = (
    "trace_id", "conversation_id", "turn_idx", "question", "expected_answer", "actual_answer", "error_type",
    "error_message", "has_type2_question", "has_non_numeric_values", "plan_steps", "operations_per_turn", "diagnosis",
    "error_context",
)  # fmt: skip
VALIDATION = (
    "trace_id", "conversation_id", "turn_idx", "retry_number", "valid", "confidence", "failed_steps", "issues",
)  # fmt: skip

_MATCHES = {
    "numerical_match": "numerical",
    "soft_match": "soft",
    "unit_agnostic_match": "unit_agnostic",
    "sign_agnostic_match": "sign_agnostic",
    "general_match": "general",
    "exact_match": "exact",
}
_ACCURACIES = {
    "numerical_accuracy": "numerical_match",
    "soft_match_accuracy": "soft_match",
    "unit_agnostic_accuracy": "unit_agnostic_match",
    "sign_agnostic_accuracy": "sign_agnostic_match",
    "general_accuracy": "general_match",
}
_ADDED = {
    "total_tokens": "turn_tokens",
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "total_llm_calls": "turn_llm_calls",
    "total_tool_calls": "turn_tool_calls",
    "total_latency_ms": "turn_latency_ms",
}


class Shown(NamedTuple):
    """The scoring that is shown, and what compares the turns that it never saw."""

    scorer: str
    scoring: str
    matcher: Matcher | None


@dataclass(frozen=True, slots=True)
class _Place:
    """A turn, and what is known of it."""

    trial: TrialRecord
    number: int
    turn: Turn
    reply: Reply | None  # None: never reached
    score: Score | None
    values: Mapping[str, Any]  # of the score, or the matches of a turn that was answered before the conversation broke
    broke: bool  # whether the conversation broke off here

    @property
    def reached(self) -> bool:
        return self.reply is not None and (self.score is None or not self.score.detail.get("unreached"))


def _places(trial: TrialRecord, shown: Shown) -> Iterator[_Place]:
    replies = trial.answer.replies if trial.answer is not None else trial.heard
    scores = {one.turn: one for one in trial.scores if (one.scorer, one.scoring) == (shown.scorer, shown.scoring)}
    broken = trial.answer is None
    for number, turn in enumerate(trial.sample.turns):
        reply = replies[number] if number < len(replies) else None
        score = scores.get(number)
        values: Mapping[str, Any] = score.values if score is not None else {}
        if broken and reply is not None and shown.matcher is not None:
            values = shown.matcher.values(turn.golden, _text(turn.detail.get("printed")), reply)
        yield _Place(trial, number, turn, reply, score, values, broken and number == len(replies))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def turn_rows(trial: TrialRecord, trace: str, shown: Shown) -> list[Row]:
    """One row a declared turn, in order."""
    return [_turn_row(place, trace) for place in _places(trial, shown)]


def _turn_row(place: _Place, trace: str) -> Row:
    score, reply, failure = place.score, place.reply, place.trial.failure
    detail = score.detail if score is not None else {}
    values = place.values
    # A turn that was never reached is wrong; an answer without a score is not known to be.
    unscored: bool | None = None if place.trial.answer is not None or place.turn.golden is None else False
    return {
        "trace_id": trace,
        "conversation_id": place.trial.sample.id,
        "condition": place.trial.condition,
        "repetition": place.trial.repetition,
        "turn_idx": place.number,
        "question": place.turn.question,
        "expected_answer": place.turn.golden,
        "actual_answer": detail.get("actual") if score is not None else _stated(reply),
        **{column: values.get(metric, unscored) for column, metric in _MATCHES.items()},
        "logic_recall": values.get("logic_recall"),
        "operations_per_turn": _operations(place.turn),
        "ground_truth_program": place.turn.detail.get("program"),
        "predicted_program": detail.get("program") or (reply.program if reply is not None else None),
        "diagnosis": score.labels.get("diagnosis") if score is not None else None,
        **_spent(reply),
        "error_occurred": place.broke,
        "error_type": failure.kind if place.broke and failure is not None else None,
        "error_message": failure.message if place.broke and failure is not None else None,
    }


def _stated(reply: Reply | None) -> str | None:
    return None if reply is None else reply.answer if reply.answer is not None else reply.text


def _operations(turn: Turn) -> Any:
    return turn.detail.get("operations") if turn.detail.get("program") is not None else None


def _spent(reply: Reply | None) -> Row:
    if reply is None:
        return {}
    usage = reply.usage
    prompt = usage.input_tokens if usage is not None else None
    completion = usage.output_tokens if usage is not None else None
    return {
        "turn_tokens": _total([prompt, completion]),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "turn_llm_calls": reply.responses,
        "turn_tool_calls": len(reply.tool_calls),
        "turn_latency_ms": reply.milliseconds,
        "tools_used": ";".join(dict.fromkeys(call.tool for call in reply.tool_calls)) or None,
    }


def _total(parts: Sequence[float | None]) -> float | None:
    """Of what is known; None where nothing is."""
    there = [part for part in parts if part is not None]
    return sum(there) if there else None


def _mean(parts: Sequence[float | None]) -> float | None:
    there = [float(part) for part in parts if part is not None]
    return sum(there) / len(there) if there else None


def summary_row(trial: TrialRecord, trace: str, turns: Sequence[Row]) -> Row:
    """The conversation, from its turns."""
    answer, failure, metadata = trial.answer, trial.failure, trial.sample.metadata
    broken = failure is not None
    return {
        "trace_id": trace,
        "conversation_id": trial.sample.id,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "conversation_type": metadata.get("conversation_type"),
        "num_turns": len(turns),
        **{column: _total([row.get(part) for row in turns]) for column, part in _ADDED.items()},
        **{column: _mean([row[match] for row in turns]) for column, match in _ACCURACIES.items()},
        "avg_logic_recall": _mean([row["logic_recall"] for row in turns]),
        "avg_operations_per_turn": _mean([row["operations_per_turn"] for row in turns]),
        "error_occurred": broken,
        "error_type": failure.kind if failure is not None else None,
        "error_message": failure.message if failure is not None else None,
        "failed_turn": next((row["turn_idx"] for row in turns if row["error_occurred"]), None),
        "timestamp_start": answer.started if answer is not None else None,
        "timestamp_end": _ended(answer.started, answer.seconds) if answer is not None else None,
        **{feature: metadata.get(feature) for feature in _FEATURES},
    }


def _ended(started: str, seconds: float) -> str | None:
    try:
        return (datetime.fromisoformat(started) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return None


def error_rows(trial: TrialRecord, turns: Sequence[Row], shown: Shown) -> Iterator[Row]:
    """Every turn that is wrong, broke off, or was never reached."""
    for place, row in zip(_places(trial, shown), turns, strict=True):
        right = place.values.get("right")
        known = place.score is not None or trial.answer is None
        if right or not known or place.turn.golden is None:
            continue
        unreached = (
            "the conversation broke off before" if trial.answer is None else "the file of answers has no such turn"
        )
        yield {
            **row,
            "error_type": row["error_type"] or ("wrong_answer" if place.reached else "unreached"),
            "error_message": row["error_message"] or (None if place.reached else unreached),
            **{feature: trial.sample.metadata.get(feature) for feature in _FEATURES},
            "plan_steps": _steps(row["predicted_program"]),
            "error_context": _context(place),
        }


def _steps(program: Any) -> int | None:
    if not program:
        return None
    found = parse_program(program)
    return len(found.steps) if found.error is None else None


def _context(place: _Place) -> str:
    detail: dict[str, Any] = place.score.detail if place.score is not None else {}
    failure = place.trial.failure
    context: dict[str, Any] = {
        "condition": place.trial.condition,
        "repetition": place.trial.repetition,
        **{key: detail[key] for key in ("rules", "extractor", "span", "unit", "evidence") if key in detail},
        **({"labels": place.score.labels} if place.score is not None and place.score.labels else {}),
        **({"failure": {"class": failure.cls, "stage": failure.stage}} if failure is not None else {}),
        **({"said": place.reply.text} if place.reply is not None else {}),
    }
    return msgspec.json.encode(context, order="sorted").decode()


def validation_rows(trial: TrialRecord, trace: str, shown: Shown) -> Iterator[Row]:
    """What the file of answers, and scorers other than `numeric`, say of each turn."""
    common = {"trace_id": trace, "conversation_id": trial.sample.id}
    for number, reply in enumerate(trial.answer.replies if trial.answer is not None else ()):
        if reply.verdict is not None:
            yield {**common, "turn_idx": number, "retry_number": 0, "valid": reply.verdict}
    for score in trial.scores:
        if (score.scorer, score.scoring) == (shown.scorer, shown.scoring):
            continue
        flags = {name: value for name, value in score.values.items() if isinstance(value, bool)}
        yield {
            **common,
            "turn_idx": score.turn,
            "retry_number": score.repeat,
            "valid": all(flags.values()) if flags else None,
            "confidence": score.values.get("confidence"),
            "failed_steps": ";".join(name for name, value in flags.items() if not value) or None,
            "issues": "; ".join(dict.fromkeys([*score.reasons.values(), *score.claims])) or None,
        }
