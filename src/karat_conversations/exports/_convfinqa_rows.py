"""Trials and their turns as the rows of `--to convfinqa`, and each conversation whole as
`traces/ID.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from karat import formats
from karat.analysis import TrialRecord
from karat.records import Reply, Score, Turn, Usage
from karat_conversations.kinds.conversation.analysis.turns import WITHIN, Matcher
from karat_conversations.numeric import operations_attempted, parse_program, parse_value, right_by
from karat_conversations.numeric.matches import same_text
from karat_conversations.numeric.values import plain

Row = dict[str, Any]

_FEATURES = ("has_type2_question", "has_duplicate_columns", "has_non_numeric_values")
# First the columns of the original system, in the order that its readers expect; then karat's own.
SUMMARY = (
    "trace_id",
    "conversation_id",
    "conversation_type",
    "num_turns",
    "total_tokens",
    "prompt_tokens",
    "completion_tokens",
    "total_llm_calls",
    "total_tool_calls",
    "total_latency_ms",
    "avg_plan_steps",
    "total_validator_retries",
    "numerical_accuracy",
    "financial_accuracy",
    "soft_match_accuracy",
    "avg_logic_recall",
    "avg_operations_per_turn",
    "error_occurred",
    "error_type",
    "error_message",
    "failed_turn",
    "timestamp_start",
    "timestamp_end",
    "has_type2_question",
    "has_non_numeric_values",
    "condition",
    "repetition",
    "right_accuracy",
    "unit_agnostic_accuracy",
    "sign_agnostic_accuracy",
    "general_accuracy",
    "avg_golden_operations_per_turn",
    "has_duplicate_columns",
)
TURNS = (
    "trace_id",
    "conversation_id",
    "turn_idx",
    "question",
    "expected_answer",
    "actual_answer",
    "turn_tokens",
    "prompt_tokens",
    "completion_tokens",
    "turn_llm_calls",
    "turn_tool_calls",
    "turn_latency_ms",
    "plan_type",
    "plan_steps",
    "plan_complexity",
    "validator_retries",
    "validator_valid",
    "validator_confidence",
    "tools_used",
    "numerical_match",
    "financial_match",
    "soft_match",
    "logic_recall",
    "operations_per_turn",
    "ground_truth_program",
    "error_occurred",
    "error_type",
    "error_message",
    "condition",
    "repetition",
    "right",
    "unit_agnostic_match",
    "sign_agnostic_match",
    "general_match",
    "exact_match",
    "predicted_program",
    "golden_operations",
    "diagnosis",
    "expected_text",
    "actual_text",
    "extractor",
    "recorded_verdict",
)
ERRORS = (
    "trace_id",
    "conversation_id",
    "turn_idx",
    "question",
    "expected_answer",
    "error_type",
    "error_message",
    "has_type2_question",
    "has_non_numeric_values",
    "plan_steps",
    "operations_per_turn",
    "error_context",
    "actual_answer",
    "diagnosis",
    "condition",
    "repetition",
    "golden_operations",
    "expected_text",
    "actual_text",
)
VALIDATION = (
    "trace_id",
    "conversation_id",
    "turn_idx",
    "retry_number",
    "valid",
    "confidence",
    "failed_steps",
    "issues",
)

_MATCHES = {
    "numerical_match": "numerical",
    "financial_match": "soft",  # both allow 1 % relative error
    "soft_match": "soft",
    "unit_agnostic_match": "unit_agnostic",
    "sign_agnostic_match": "sign_agnostic",
    "general_match": "general",
    "exact_match": "exact",
}
_MEANS = {
    "right_accuracy": "right",
    "numerical_accuracy": "numerical_match",
    "financial_accuracy": "financial_match",
    "soft_match_accuracy": "soft_match",
    "unit_agnostic_accuracy": "unit_agnostic_match",
    "sign_agnostic_accuracy": "sign_agnostic_match",
    "general_accuracy": "general_match",
    "avg_logic_recall": "logic_recall",
    "avg_operations_per_turn": "operations_per_turn",
    "avg_golden_operations_per_turn": "golden_operations",
    "avg_plan_steps": "plan_steps",
}
_ADDED = {
    "total_tokens": "turn_tokens",
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "total_llm_calls": "turn_llm_calls",
    "total_tool_calls": "turn_tool_calls",
    "total_latency_ms": "turn_latency_ms",
    "total_validator_retries": "validator_retries",
}


class Shown(NamedTuple):
    """The shown scoring, and the comparison for turns that it did not score."""

    scorer: str
    scoring: str
    matcher: Matcher | None
    right: str = "numerical"  # the match that makes a turn right


class _Place(msgspec.Struct, frozen=True):
    """A turn, and what is known about it."""

    trial: TrialRecord
    number: int
    turn: Turn
    reply: Reply | None  # None: never reached
    score: Score | None
    # of the score, or the matches of a turn answered before the conversation failed
    values: Mapping[str, Any]
    broke: bool  # whether the conversation failed here
    rule: str  # the match that makes it right

    @property
    def text(self) -> bool:
        """Whether the golden answer is text."""
        return self.turn.golden is not None and parse_value(self.turn.golden) is None

    @property
    def actual(self) -> object:
        """The answer as the scorer read it; without a score, as the agent gave it."""
        if self.score is not None and "actual" in self.score.detail:
            return self.score.detail["actual"]
        if self.reply is None:
            return None
        if self.reply.answer is None:
            return self.reply.text
        return self.reply.answer

    @property
    def right(self) -> bool | None:
        """None: not known, as of an answer without a score, or of words that are not the golden
        text.
        """
        if self.text and self.reached:
            return same_text(self.turn.golden, self.actual) or None
        known = {self.rule, "right", "numerical"} <= self.values.keys()
        return right_by(self.values, self.rule) if known else self.values.get("right")

    @property
    def reached(self) -> bool:
        return self.reply is not None and (
            self.score is None or not self.score.detail.get("unreached")
        )


def _places(trial: TrialRecord, shown: Shown) -> Iterator[_Place]:
    scores = {}
    for row in trial.scores:
        if (row.scorer, row.scoring) == (shown.scorer, shown.scoring):
            scores[row.turn] = row

    broken = trial.answer is None
    for number, turn in enumerate(trial.sample.turns):
        if number < len(trial.replies):
            reply = trial.replies[number]
        else:
            reply = None

        score = scores.get(number)
        if score is not None:
            values: Mapping[str, object] = score.values
        else:
            values = {}

        if broken and reply is not None and shown.matcher is not None:
            values = shown.matcher.values(turn, reply)
        yield _Place(
            trial,
            number,
            turn,
            reply,
            score,
            values,
            broken and number == len(trial.replies),
            shown.right,
        )


def turn_rows(trial: TrialRecord, trace: str, shown: Shown) -> list[Row]:
    """One row per declared turn, in order."""
    rows = []
    for place in _places(trial, shown):
        score = place.score
        reply = place.reply
        failure = place.trial.failure
        detail: Row = {}
        labels: Mapping[str, str] = {}
        if score is not None:
            detail = score.detail
            labels = score.labels

        values = place.values
        golden = place.turn.golden
        # A turn that was never reached is wrong; for an answer without a score it is unknown.
        unknown = place.trial.answer is not None or golden is None or (place.text and place.reached)
        unscored = None if unknown else False
        actual = place.actual
        predicted = detail.get("program") or (reply.program if reply is not None else None)
        golden_operations = None
        if place.turn.detail.get("program") is not None:
            golden_operations = place.turn.detail.get("operations")

        plan: Row = {}
        if predicted and (program := parse_program(predicted)).readable:
            attempted = operations_attempted(program)
            plan = {
                "plan_type": "multi_step_table_query" if attempted else "table_lookup",
                "plan_steps": len(program.steps),
                "operations_per_turn": attempted,
            }

        # What the reply cost, and the final verdict of the agent's validator
        of_reply: Row = {}
        if reply is not None:
            usage = reply.usage or Usage()
            of_reply = {
                "turn_tokens": _total([usage.input_tokens, usage.output_tokens]),
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "turn_llm_calls": reply.responses,
                "turn_tool_calls": len(reply.tool_calls),
                "turn_latency_ms": reply.milliseconds,
                "tools_used": ";".join(dict.fromkeys(call.tool for call in reply.tool_calls))
                or None,
                "recorded_verdict": reply.verdict,
            }
            for last in reply.validations[-1:]:
                of_reply |= {
                    "validator_retries": last.retry_number,
                    "validator_valid": last.valid,
                    "validator_confidence": last.confidence,
                }

        rows.append(
            {
                "trace_id": trace,
                "conversation_id": place.trial.sample.id,
                "condition": place.trial.condition,
                "repetition": place.trial.repetition,
                "turn_idx": place.number,
                "question": place.turn.question,
                "expected_answer": in_numbers(golden),
                "actual_answer": in_numbers(actual),
                "expected_text": golden,
                "actual_text": actual,
                "right": unscored if place.right is None else place.right,
                **{column: values.get(metric, unscored) for column, metric in _MATCHES.items()},
                "logic_recall": values.get("logic_recall"),
                "golden_operations": golden_operations,
                "ground_truth_program": place.turn.detail.get("program"),
                "predicted_program": predicted,
                **plan,
                "diagnosis": labels.get("diagnosis"),
                "extractor": detail.get("extractor"),
                **of_reply,
                "error_occurred": place.broke,
                "error_type": failure.kind if place.broke and failure is not None else None,
                "error_message": failure.message if place.broke and failure is not None else None,
            }
        )

    return rows


def in_numbers(text: object) -> str | None:
    """An answer in a form for data frames: `-7.4%` is -0.074, `1,234.5` is 1234.5; other text is
    unchanged.
    """
    if isinstance(text, str):
        value = parse_value(text)
    else:
        value = None

    if value is None or value.boolean is not None or plain(str(text)) == value.number:
        if text is None:
            return None
        return str(text)
    return formats.raw(value.number)


def _total(parts: Sequence[float | None]) -> float | None:
    """Of the known values; None if there are none."""
    there = [part for part in parts if part is not None]
    if there:
        return sum(there)
    return None


def summary_row(trial: TrialRecord, trace: str, turns: Sequence[Row]) -> Row:
    """The conversation, from its turns."""
    answer = trial.answer
    failure = trial.failure
    metadata = trial.sample.metadata
    broken = failure is not None
    ended = None
    if answer is not None and answer.started is not None and answer.seconds is not None:
        ended = _after(answer.started, seconds=answer.seconds)
    means: dict[str, float | None] = {}
    for column, part in _MEANS.items():
        parts = [row.get(part) for row in turns]
        there = [float(part) for part in parts if part is not None]
        if there:
            means[column] = sum(there) / len(there)
        else:
            means[column] = None

    return {
        "trace_id": trace,
        "conversation_id": trial.sample.id,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "conversation_type": metadata.get("conversation_type"),
        "num_turns": len(turns),
        **{column: _total([row.get(part) for row in turns]) for column, part in _ADDED.items()},
        **means,
        "error_occurred": broken,
        "error_type": failure.kind if failure is not None else None,
        "error_message": failure.message if failure is not None else None,
        "failed_turn": next((row["turn_idx"] for row in turns if row["error_occurred"]), None),
        "timestamp_start": answer.started if answer is not None else None,
        "timestamp_end": ended,
        **{feature: metadata.get(feature) for feature in _FEATURES},
    }


def error_rows(trial: TrialRecord, turns: Sequence[Row], shown: Shown) -> Iterator[Row]:
    """Every turn that is wrong, failed, or was never reached."""
    for place, row in zip(_places(trial, shown), turns, strict=True):
        right = place.right
        known = place.score is not None or trial.answer is None
        undecided = right is None and place.reached
        if right or undecided or not known or place.turn.golden is None:
            continue
        unreached = (
            "the conversation broke off before"
            if trial.answer is None
            else "the file of answers has no such turn"
        )
        if place.score is not None:
            detail: Row = place.score.detail
        else:
            detail = {}

        # As `error_types` in `statistics.json` counts it
        if not place.reached:
            cause = "unreached"
        elif place.values.get("numerical"):
            cause = WITHIN
        else:
            if place.score is None:
                labels = {}
            else:
                labels = place.score.labels
            cause = labels.get("diagnosis") or "wrong_answer"

        failure = place.trial.failure
        yield {
            **row,
            "error_type": row["error_type"] or cause,
            "error_message": row["error_message"] or (None if place.reached else unreached),
            **{feature: trial.sample.metadata.get(feature) for feature in _FEATURES},
            "error_context": {
                "condition": place.trial.condition,
                "repetition": place.trial.repetition,
                **{
                    key: detail[key]
                    for key in ("rules", "extractor", "span", "unit", "evidence")
                    if key in detail
                },
                **(
                    {"labels": place.score.labels}
                    if place.score is not None and place.score.labels
                    else {}
                ),
                **(
                    {"failure": {"class": failure.cls, "stage": failure.stage}}
                    if failure is not None
                    else {}
                ),
                **({"said": place.reply.text} if place.reply is not None else {}),
            },
        }


def validation_rows(trial: TrialRecord, trace: str) -> Iterator[Row]:
    """The agent's own validator's verdict on each attempt at each turn."""
    for number, reply in enumerate(trial.replies):
        for validation in reply.validations:
            yield {
                "trace_id": trace,
                "conversation_id": trial.sample.id,
                "turn_idx": number,
                "retry_number": validation.retry_number,
                "valid": validation.valid,
                "confidence": validation.confidence,
                "failed_steps": ";".join(validation.failed_steps) or None,
                "issues": "; ".join(validation.issues) or None,
            }


# Values for unknown fields whose type in the original does not allow null.
_TRACE: Row = {
    "trace_id": "",
    "conversation_id": "",
    "conversation_type": "unknown",
    "num_turns": 0,
    "total_tokens": 0,
    "total_prompt_tokens": 0,
    "total_completion_tokens": 0,
    "total_llm_calls": 0,
    "total_tool_calls": 0,
    "total_latency_ms": 0.0,
    "avg_plan_steps": 0.0,
    "total_validator_retries": 0,
    "numerical_accuracy": 0.0,
    "financial_accuracy": 0.0,
    "soft_match_accuracy": 0.0,
    "avg_logic_recall": 0.0,
    "avg_operations_per_turn": 0.0,
    "error_occurred": False,
    "has_type2_question": False,
    "has_duplicate_columns": False,
    "has_non_numeric_values": False,
}
_TURN: Row = {
    "turn_idx": 0,
    "question": "",
    "expected_answer": "",
    "turn_tokens": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "turn_llm_calls": 0,
    "turn_tool_calls": 0,
    "turn_latency_ms": 0.0,
    "plan_steps": 0,
    "plan_complexity": 0.0,
    "validator_retries": 0,
    "validator_valid": True,
    "validator_confidence": 0.0,
    "numerical_match": False,
    "financial_match": False,
    "soft_match": False,
    "operations_per_turn": 0,
    "error_occurred": False,
}
_NULL = {  # fields that may be null
    "trace": ("error_type", "error_message", "failed_turn"),
    "turn": (
        "actual_answer",
        "plan_type",
        "logic_recall",
        "ground_truth_program",
        "error_type",
        "error_message",
    ),
}


def typed(values: Mapping[str, Any], neutral: Mapping[str, Any]) -> Row:
    """The fields of `neutral`, filled; `unknown` lists those whose value is not known."""
    known = {name: values.get(name) for name in neutral}
    filled = {}
    for name, value in known.items():
        if value is None:
            filled[name] = neutral[name]
        elif isinstance(neutral[name], float):
            filled[name] = float(value)
        else:
            filled[name] = value

    return {**filled, "unknown": [name for name, value in known.items() if value is None]}


def trace_of(
    trial: TrialRecord,
    row: Row,
    turns: Sequence[Row],
    errors: Sequence[Row],
    *,
    began: str,
) -> Row:
    """The whole conversation. `row`, `turns`, `errors`: its rows in the tables. `began`: when the
    run did.

    A failed conversation has no times in the journal and gets `began`.
    """
    answer = trial.answer
    values = {
        **row,
        "total_prompt_tokens": row.get("prompt_tokens"),
        "total_completion_tokens": row.get("completion_tokens"),
    }
    start = row.get("timestamp_start") or began
    record = typed(values, _TRACE)
    record["unknown"] += [] if row.get("timestamp_start") else ["timestamp_start", "timestamp_end"]
    return {
        **record,
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


def _turns(
    trial: TrialRecord,
    turns: Sequence[Row],
    errors: Sequence[Row],
    start: str,
) -> list[Row]:
    contexts = {error["turn_idx"]: error["error_context"] for error in errors}
    spent = 0.0
    records = []
    for number, (turn, cells) in enumerate(zip(trial.sample.turns, turns, strict=True)):
        if number < len(trial.replies):
            reply = trial.replies[number]
        else:
            reply = None

        milliseconds = reply.milliseconds if reply is not None else None
        before = spent
        spent += milliseconds or 0.0
        values = {**cells, "expected_answer": _number(cells["expected_answer"])}
        if reply is not None:
            calls = reply.tool_calls
        else:
            calls = ()

        # One entry for all calls of the turn: the journal keeps their sum
        llm_calls: list[Row] = []
        if reply is not None and reply.usage is not None:
            alone = reply.responses in (None, 1)
            entry = {
                "prompt_tokens": cells.get("prompt_tokens") or 0,
                "completion_tokens": cells.get("completion_tokens") or 0,
                "total_tokens": cells.get("turn_tokens") or 0,
                "latency_ms": float(reply.milliseconds or 0.0),
                "model": reply.model or "",
                "purpose": None if alone else f"{reply.responses} calls",
            }
            llm_calls.append(entry)

        trace_turn = {
            **typed(values, _TURN),
            **{name: cells.get(name) for name in _NULL["turn"]},
            "actual_answer": _number(cells["actual_answer"]),
            "validator_logs": [
                {**msgspec.structs.asdict(log), "confidence": log.confidence or 0.0}
                for log in (reply.validations if reply is not None else ())
            ],
            "tools_used": list(dict.fromkeys(call.tool for call in calls)),
            "tool_calls": [
                {
                    "tool_name": call.tool,
                    "params": call.input,
                    "result": call.result,
                    "latency_ms": float(call.milliseconds or 0.0),
                    "success": call.error is None,
                    "error": call.error,
                }
                for call in calls
            ],
            "llm_calls": llm_calls,
        }
        records.append(
            {
                **trace_turn,
                "error_context": contexts.get(number, {}),
                "timestamp_start": _after(start, milliseconds=before) or start,
                "timestamp_end": _after(start, milliseconds=spent) or start,
                "asked": turn.asked,
                "golden": turn.golden,
                "detail": turn.detail,
                "reply": reply,
                "scores": [score for score in trial.scores if score.turn == number],
            }
        )

    return records


def _number(text: str | None) -> float | int | str | None:
    """A number if the text is one."""
    if text is None:
        value = float("nan")
    else:
        value = plain(text)

    if value != value or text is None:
        return text
    if text.strip().lstrip("+-").isdigit():
        return int(text)
    return value


def _after(start: str, **length: float) -> str | None:
    """The time so much later; None if that is no time. `length`: as of `timedelta`."""
    try:
        return (datetime.fromisoformat(start) + timedelta(**length)).isoformat(
            timespec="milliseconds"
        )
    except (ValueError, OverflowError):
        return None
