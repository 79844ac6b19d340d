"""One conversation as `traces/ID.json`: the fields of the original system with its types, then what karat knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from karat.analysis import TrialRecord
from karat.kinds.conversation.exports._convfinqa_rows import Row
from karat.numeric.values import plain
from karat.records import Reply

__all__ = ["trace_of", "typed"]

# What stands for a value that is not known where the original's type has no null.
_TRACE: Row = {
    "trace_id": "", "conversation_id": "", "conversation_type": "unknown", "num_turns": 0, "total_tokens": 0,
    "total_prompt_tokens": 0, "total_completion_tokens": 0, "total_llm_calls": 0, "total_tool_calls": 0,
    "total_latency_ms": 0.0, "avg_plan_steps": 0.0, "total_validator_retries": 0, "numerical_accuracy": 0.0,
    "financial_accuracy": 0.0, "soft_match_accuracy": 0.0, "avg_logic_recall": 0.0, "avg_operations_per_turn": 0.0,
    "error_occurred": False, "has_type2_question": False, "has_duplicate_columns": False,
    "has_non_numeric_values": False,
}  # fmt: skip
_TURN: Row = {
    "turn_idx": 0, "question": "", "expected_answer": "", "turn_tokens": 0, "prompt_tokens": 0,
    "completion_tokens": 0, "turn_llm_calls": 0, "turn_tool_calls": 0, "turn_latency_ms": 0.0, "plan_steps": 0,
    "plan_complexity": 0.0, "validator_retries": 0, "validator_valid": True, "validator_confidence": 0.0,
    "numerical_match": False, "financial_match": False, "soft_match": False, "operations_per_turn": 0,
    "error_occurred": False,
}  # fmt: skip
_NULL = {  # fields that may be null
    "trace": ("error_type", "error_message", "failed_turn"),
    "turn": ("actual_answer", "plan_type", "logic_recall", "ground_truth_program", "error_type", "error_message"),
}


def typed(values: Mapping[str, Any], neutral: Mapping[str, Any]) -> Row:
    """The fields of `neutral`, filled; `unknown` lists those whose value is not known."""
    known = {name: values.get(name) for name in neutral}
    filled = {
        name: neutral[name] if value is None else float(value) if isinstance(neutral[name], float) else value
        for name, value in known.items()
    }
    return {**filled, "unknown": [name for name, value in known.items() if value is None]}


def trace_of(
    trial: TrialRecord, row: Row, turns: Sequence[Row], errors: Sequence[Row], *, began: str
) -> dict[str, Any]:
    """The whole conversation. `row`, `turns`, `errors`: its rows in the tables. `began`: when the run did.

    A conversation that broke off has no times of its own in the journal: it has `began`.
    """
    answer = trial.answer
    values = {
        **row,
        "total_prompt_tokens": row.get("prompt_tokens"),
        "total_completion_tokens": row.get("completion_tokens"),
    }
    start = row.get("timestamp_start") or began
    told = typed(values, _TRACE)
    told["unknown"] += [] if row.get("timestamp_start") else ["timestamp_start", "timestamp_end"]
    return {
        **told,
        **{name: row.get(name) for name in _NULL["trace"]},
        "timestamp_start": start,
        "timestamp_end": row.get("timestamp_end") or start,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "features": trial.sample.metadata,
        "document": trial.sample.detail,
        "materials": trial.sample.materials,
        "weight": trial.sample.weight,
        "started": answer.started if answer is not None else None,
        "seconds": answer.seconds if answer is not None else None,
        "attempts": answer.attempts if answer is not None else None,
        "turns": _turns(trial, turns, errors, start),
        "scores": [score for score in trial.scores if score.turn is None],
        "failure": trial.failure,
    }


def _turns(trial: TrialRecord, turns: Sequence[Row], errors: Sequence[Row], start: str) -> list[dict[str, Any]]:
    replies = trial.answer.replies if trial.answer is not None else trial.heard
    contexts = {error["turn_idx"]: error["error_context"] for error in errors}
    spent = 0.0
    made = []
    for number, (turn, cells) in enumerate(zip(trial.sample.turns, turns, strict=True)):
        reply = replies[number] if number < len(replies) else None
        milliseconds = reply.milliseconds if reply is not None else None
        before, spent = spent, spent + (milliseconds or 0.0)
        made.append({
            **_turn(cells, reply),
            "error_context": contexts.get(number, {}),
            "timestamp_start": _after(start, before),
            "timestamp_end": _after(start, spent),
            "asked": turn.asked,
            "golden": turn.golden,
            "detail": turn.detail,
            "reply": reply,
            "scores": [score for score in trial.scores if score.turn == number],
        })  # fmt: skip
    return made


def _turn(cells: Row, reply: Reply | None) -> Row:
    values = {**cells, "expected_answer": _number(cells["expected_answer"])}
    calls = reply.tool_calls if reply is not None else ()
    return {
        **typed(values, _TURN),
        **{name: cells.get(name) for name in _NULL["turn"]},
        "actual_answer": _number(cells["actual_answer"]),
        "validator_logs": [
            {**msgspec.to_builtins(one), "valid": one.valid, "confidence": one.confidence or 0.0,
             "failed_steps": one.failed_steps, "issues": one.issues, "retry_number": one.retry_number}
            for one in (reply.validations if reply is not None else ())
        ],
        "tools_used": list(dict.fromkeys(call.tool for call in calls)),
        "tool_calls": [
            {"tool_name": call.tool, "params": call.input, "result": call.result,
             "latency_ms": float(call.milliseconds or 0.0), "success": call.error is None, "error": call.error}
            for call in calls
        ],
        "llm_calls": _llm_calls(cells, reply),
    }  # fmt: skip


def _llm_calls(cells: Row, reply: Reply | None) -> list[Row]:
    """One entry for all calls of the turn: the journal keeps their sum."""
    if reply is None or reply.usage is None:
        return []
    return [{
        "prompt_tokens": cells.get("prompt_tokens") or 0,
        "completion_tokens": cells.get("completion_tokens") or 0,
        "total_tokens": cells.get("turn_tokens") or 0,
        "latency_ms": float(reply.milliseconds or 0.0),
        "model": reply.model or "",
        "purpose": None if reply.responses in (None, 1) else f"{reply.responses} calls",
    }]  # fmt: skip


def _number(text: str | None) -> float | int | str | None:
    """A number where the text is one."""
    value = float("nan") if text is None else plain(text)
    if value != value or text is None:
        return text
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def _after(start: str, milliseconds: float) -> str:
    try:
        return (datetime.fromisoformat(start) + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return start
