"""`--to convfinqa`: conversations, turns, errors and statistics as files for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from karat import __version__, formats
from karat.analysis import Summary, TrialRecord, trials
from karat.files import Streamed
from karat.journal import RunFolder
from karat.kinds.conversation.analysis.model import ConversationResult, ConversationSummary, Rate, Stratum
from karat.kinds.conversation.analysis.turns import matcher_of
from karat.kinds.conversation.exports._convfinqa_rows import (
    ERRORS,
    SUMMARY,
    TURNS,
    VALIDATION,
    Row,
    Shown,
    error_rows,
    summary_row,
    trace_of,
    turn_rows,
    typed,
    validation_rows,
)

__all__ = ["Convfinqa"]

FORMAT_VERSION = 2
"""1: 2026-11, the first. 2: the original's fields at the top, 0 where not known; operations are the agent's."""

_READINGS = tuple(
    f"avg_{step}{reading}"
    for step in ("", "step_")
    for reading in ("logic_recall", "logic_precision", "logic_f1", "order_score", "operand_recall", "operand_precision")
)


_SUMMARY: dict[str, Any] = {
    "run_id": "", "timestamp": "", "total_conversations": 0, "total_turns": 0, "sample_size": 0, "random_seed": 0,
    "numerical_accuracy": 0.0, "financial_accuracy": 0.0, "soft_match_accuracy": 0.0,
    "conversation_level_accuracy": 0.0, "avg_logic_recall": 0.0, "avg_tokens_per_turn": 0.0,
    "avg_latency_per_turn": 0.0, "avg_llm_calls_per_turn": 0.0, "avg_tool_calls_per_turn": 0.0, "avg_plan_steps": 0.0,
    "error_rate": 0.0, "avg_validator_retries": 0.0, "avg_validator_confidence": 0.0,
}  # fmt: skip
"""The original system's fields that are one number, and what stands for a number that is not known."""


class Totals:
    """What all conversations come to, added up while their rows are written."""

    def __init__(self) -> None:
        self.conversations = self.broken = self.turns = 0
        self._means: dict[str, list[float]] = {}  # field → sum, count
        self._groups: dict[str, dict[str, list[float]]] = {}  # field → key → sum, count
        self._tools: dict[str, list[int]] = {}  # tool → calls, of which without an error

    def add(self, trial: TrialRecord, row: Row, turns: Sequence[Row]) -> None:
        """One conversation: its row of `summary.csv` and those of `turns.csv`."""
        self.conversations += 1
        self.broken += bool(row["error_occurred"])
        self.turns += len(turns)
        rights = [turn["right"] for turn in turns if turn["right"] is not None]
        self._mean("conversation_level_accuracy", all(rights) if rights else None)
        for turn in turns:
            for name, column in _OF_TURNS.items():
                self._mean(name, turn.get(column))
            key = str(turn["turn_idx"])
            self._group("accuracy_by_turn_number", key, turn["right"])
            self._group("avg_operations_by_turn", key, turn.get("operations_per_turn"))
            if row["conversation_type"] is not None:
                self._group("accuracy_by_type", str(row["conversation_type"]), turn["right"])
        for reply in trial.answer.replies if trial.answer is not None else trial.heard:
            for call in reply.tool_calls:
                counts = self._tools.setdefault(call.tool, [0, 0])
                counts[0] += 1
                counts[1] += call.error is None

    def _mean(self, name: str, value: float | None) -> None:
        if value is not None:
            found = self._means.setdefault(name, [0.0, 0.0])
            found[0] += value
            found[1] += 1

    def _group(self, name: str, key: str, value: float | None) -> None:
        if value is not None:
            found = self._groups.setdefault(name, {}).setdefault(key, [0.0, 0.0])
            found[0] += value
            found[1] += 1

    def fields(self) -> dict[str, Any]:
        """By the original's names; what is not known is not there."""
        groups = {
            name: {key: total / n for key, (total, n) in sorted(self._groups.get(name, {}).items())}
            for name in ("accuracy_by_turn_number", "avg_operations_by_turn", "accuracy_by_type")
        }
        return {
            "total_conversations": self.conversations,
            "total_turns": self.turns,
            **({"error_rate": self.broken / self.conversations} if self.conversations else {}),
            **{name: total / n for name, (total, n) in self._means.items()},
            **groups,
            "tool_usage_counts": {tool: calls for tool, (calls, _) in sorted(self._tools.items())},
            "tool_success_rates": {tool: good / calls for tool, (calls, good) in sorted(self._tools.items())},
        }


_OF_TURNS = {
    "numerical_accuracy": "numerical_match",
    "financial_accuracy": "financial_match",
    "soft_match_accuracy": "soft_match",
    "avg_logic_recall": "logic_recall",
    "avg_tokens_per_turn": "turn_tokens",
    "avg_latency_per_turn": "turn_latency_ms",
    "avg_llm_calls_per_turn": "turn_llm_calls",
    "avg_tool_calls_per_turn": "turn_tool_calls",
    "avg_plan_steps": "plan_steps",
    "avg_validator_retries": "validator_retries",
    "avg_validator_confidence": "validator_confidence",
}


def statistics(summary: Summary, totals: Totals) -> dict[str, Any]:
    """The original system's fields over everything; then, by condition, all that karat knows.

    Where a run has one condition, its numbers are those at the top too. In `conditions` what does not exist is
    None, with n, interval and design effect under `estimates` and what trivial answerers get under `null_rates`.
    """
    part = summary.part(ConversationSummary)
    head = {"format": FORMAT_VERSION, "made_by": f"karat {__version__}", "run": summary.run, "name": summary.name}
    found = {one.condition: _condition(one) for one in (part.conditions if part is not None else ())}
    only = next(iter(found.values())) if len(found) == 1 else {}
    top = {**head, **only, **_original(summary, totals, only)}
    if part is None:
        return {**top, "conditions": {}}
    return {
        **top,
        "rules": list(part.rules),
        "right": part.right,
        "scorer": part.scorer,
        "scoring": part.scoring,
        "level": part.level,
        "weighted": part.weighted,
        "declared_conversations": part.conversations,
        "declared_turns": part.turns,
        "null_answerers": {one.name: one.meaning for one in part.nulls},
        "differences": [
            {
                "metric": one.metric,
                "a": one.a,
                "b": one.b,
                **msgspec.to_builtins(one.estimate),
                "p": one.p,
                "p_adjusted": one.p_adjusted,
                "verdict": one.verdict,
            }
            for one in summary.differences
        ],
        "conditions": found,
    }


def _original(summary: Summary, totals: Totals, only: Mapping[str, Any]) -> dict[str, Any]:
    """`EvaluationSummary`, with its types. `only`: the numbers of the one condition; {} with several."""
    part = summary.part(ConversationSummary)
    conditions = part.conditions if part is not None else ()
    seed = summary.provenance.settings.get("dataset.seed")
    same = {  # estimates of the summary, which weigh the conversations
        "financial_accuracy": only.get("soft_match_accuracy"),
        "conversation_level_accuracy": only.get("conversation_accuracy"),
        "avg_latency_per_turn": only.get("avg_latency_ms_per_turn"),
        **{name: only.get(name) for name in _SUMMARY},
    }
    values = {
        **totals.fields(),
        **{name: value for name, value in same.items() if value is not None},
        **{
            name: {key: value for key, value in only[name].items() if value is not None}
            for name in ("accuracy_by_turn_number", "avg_operations_by_turn")
            if only
        },
        "run_id": summary.run,
        "timestamp": summary.created,
        "sample_size": summary.samples,
        "random_seed": seed if isinstance(seed, int) else None,
    }
    errors: dict[str, int] = {}
    for one in conditions:
        for each in one.diagnoses:
            errors[each.label] = errors.get(each.label, 0) + each.turns
    filled = typed(values, _SUMMARY)
    cost, known = _cost(conditions)
    return {
        **{name: value for name, value in values.items() if name not in _SUMMARY},
        **filled,
        "cost_per_correct_answer": cost,
        "unknown": [*filled["unknown"], *([] if known else ["cost_per_correct_answer"])],
        "error_types": errors,
    }


def _cost(conditions: Sequence[ConversationResult]) -> tuple[float | None, bool]:
    """Tokens of each wholly right conversation, and whether it is known.

    None where no conversation is right: nothing can be said to have cost so much. 0.0 where tokens are not known.
    """
    right = sum(one.cost.right_conversations for one in conditions)
    tokens = [one.cost.tokens for one in conditions if one.cost.tokens is not None]
    if conditions and not right:
        return None, True
    return (sum(tokens) / right, True) if tokens and right else (0.0, False)


def _condition(found: ConversationResult) -> dict[str, Any]:
    rates = (*found.accuracies, found.conversation_accuracy, *found.reasoning)
    spread = found.propagation
    return {
        "total_conversations": found.conversations,
        "total_turns": found.turns,
        "unreached": found.unreached,
        "not_run": found.not_run,
        **dict.fromkeys(_READINGS),  # what no turn has is there, and null
        **{rate.name: rate.estimate.value for rate in rates},
        **_groups(found),
        "cost_per_correct_answer": found.cost.tokens_per_right_conversation,
        "cost_per_correct_answer_dollars": found.cost.dollars_per_right_conversation,
        "cost_per_right_turn": found.cost.tokens_per_right_turn,
        "cost_per_right_turn_dollars": found.cost.dollars_per_right_turn,
        "cost": msgspec.to_builtins(found.cost),
        "error_types": {one.label: one.turns for one in found.diagnoses},
        "failures": found.failures,
        "unreadable": found.unreadable,
        "unreadable_programs": found.unreadable_programs,
        "avg_latency_ms_per_turn": found.pace.milliseconds_mean,
        "avg_tokens_per_turn": found.pace.tokens_mean,
        "pace": msgspec.to_builtins(found.pace),
        "first_wrong_turn": spread.first_wrong,
        "never_wrong": spread.never_wrong,
        "cascades": spread.cascades,
        "propagated": spread.propagated,
        **{rate.name: rate.estimate.value for rate in _after(found)},
        "ladder": msgspec.to_builtins(found.ladder),
        "estimates": {rate.name: _estimate(rate) for rate in (*rates, *_after(found))},
        "null_rates": {rate.name: rate.nulls for rate in rates if rate.nulls},
        "without_quarantine": _quarantine(found),
        "verdicts_of_the_file": msgspec.to_builtins(found.verdicts),
    }


def _groups(found: ConversationResult) -> dict[str, Any]:
    """Accuracy of some of the turns: the numbers, then the same with n and interval."""
    return {
        "accuracy_by_turn_number": _values(found.by_turn),
        "avg_operations_by_turn": {one.key: one.agent_operations for one in found.by_turn},
        "avg_golden_operations_by_turn": {one.key: one.golden_operations for one in found.by_turn},
        "accuracy_by_operations": _values(found.by_operations),
        "accuracy_by_feature": {one.name: _values(one.strata) for one in found.features},
        "feature_correlations": {one.name: one.correlation for one in found.features},
        "by_turn": msgspec.to_builtins(found.by_turn),
        "by_operations": msgspec.to_builtins(found.by_operations),
        "features": msgspec.to_builtins(found.features),
    }


def _after(found: ConversationResult) -> tuple[Rate, ...]:
    spread = found.propagation
    return spread.after_right, spread.after_wrong, spread.had_earlier_been_right


def _values(strata: Sequence[Stratum]) -> dict[str, float | None]:
    return {one.key: one.estimate.value for one in strata}


def _estimate(rate: Rate) -> dict[str, Any]:
    found = rate.estimate
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "se": found.se,
        "level": found.level,
        "method": found.method,
        "n": rate.n,
        "conversations": found.n,
        "naive_se": rate.naive_se,
        "design_effect": rate.design_effect,
        "reason": found.reason,
    }


def _quarantine(found: ConversationResult) -> dict[str, Any] | None:
    part = found.quarantine
    if part is None:
        return None
    rates = (*part.accuracies, part.conversation_accuracy)
    return {
        "quarantined_turns": part.turns,
        "reasons": part.reasons,
        **{rate.name: rate.estimate.value for rate in rates},
        "estimates": {rate.name: _estimate(rate) for rate in rates},
    }


_TABLES = {"summary.csv": SUMMARY, "turns.csv": TURNS, "errors.csv": ERRORS}
MOST_CHARACTERS = 32_000
"""Of a cell: a spreadsheet takes 32,767. The traces hold everything."""


class Convfinqa:
    """Tables of conversations, turns and errors, `statistics.json`, and each conversation whole, as JSON.

    For a folder: `--out FOLDER`. Written while the run is read. Readers of the original system's files can read
    these: its columns come first, in its order, and its fields have its types. What is not known is empty in a
    table. In JSON it is null where the original allows that, else 0, an empty list, or true for
    `validator_valid`, and `unknown` lists such fields. `validation.csv` is there where an agent
    reports a validator. A cell that a spreadsheet would take for a formula begins with an apostrophe. Trials
    that were not run have no rows. For runs over conversations.
    """

    kinds = ("conversation",)

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        return Streamed(lambda: _pieces(summary, run))


def _pieces(summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
    part = summary.part(ConversationSummary)
    shown = Shown("", "", None)
    if part is not None:
        shown = Shown(part.scorer, part.scoring, matcher_of(run, part.scorer, part.scoring), part.right)
    for name, columns in _TABLES.items():
        yield name, _line(columns)
    totals, validated = Totals(), False
    for trial in trials(run, summary):
        # The trial's id, as a file can be called; None where it was not run
        found = (
            trial.answer.trial if trial.answer is not None else trial.failure.trial if trial.failure is not None else ""
        )
        trace = re.sub(r"[^0-9A-Za-z_-]", "_", found)[:80] or None
        if trace is None:
            continue
        turns = turn_rows(trial, trace, shown)
        row = summary_row(trial, trace, turns)
        errors = list(error_rows(trial, turns, shown))
        totals.add(trial, row, turns)
        yield "summary.csv", _written(SUMMARY, [row])
        yield "turns.csv", _written(TURNS, turns)
        yield "errors.csv", _written(ERRORS, errors)
        validations = list(validation_rows(trial, trace))
        if validations:
            yield "validation.csv", ("" if validated else _line(VALIDATION)) + _written(VALIDATION, validations)
            validated = True
        yield f"traces/{trace}.json", _json(trace_of(trial, row, turns, errors, began=summary.created))
    yield "statistics.json", _json(statistics(summary, totals))


def _written(columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(_line([_cell(row.get(column)) for column in columns]) for row in rows)


def _line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (dict, list)):
        value = msgspec.json.encode(value, order="sorted").decode()
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        value = f"{value[:MOST_CHARACTERS]}…"
    return formats.csv_cell(value)


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace") + "\n"
