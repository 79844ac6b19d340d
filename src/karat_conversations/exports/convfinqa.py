"""`--to convfinqa`: conversations, turns, errors and statistics as files for spreadsheets and data
frames.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from karat import __version__, formats
from karat.analysis import Summary, TrialRecord, trials
from karat.files import streamed
from karat.journal import RunFolder
from karat_conversations.exports._convfinqa_rows import (
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
from karat_conversations.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Rate,
    Shares,
    Stratum,
)
from karat_conversations.kinds.conversation.analysis.turns import matcher_of

__all__ = ["Convfinqa"]

FORMAT_VERSION = 2
"""1: 2026-11, the first.

2: the original's fields at the top, 0 where not known; operations are the agent's.
"""

_READINGS = tuple(
    f"avg_{step}{reading}"
    for step in ("", "step_")
    for reading in (
        "logic_recall",
        "logic_precision",
        "logic_f1",
        "order_score",
        "operand_recall",
        "operand_precision",
    )
)


_SUMMARY: Row = {
    "run_id": "",
    "timestamp": "",
    "total_conversations": 0,
    "total_turns": 0,
    "sample_size": 0,
    "random_seed": 0,
    "numerical_accuracy": 0.0,
    "financial_accuracy": 0.0,
    "soft_match_accuracy": 0.0,
    "conversation_level_accuracy": 0.0,
    "avg_logic_recall": 0.0,
    "avg_tokens_per_turn": 0.0,
    "avg_latency_per_turn": 0.0,
    "avg_llm_calls_per_turn": 0.0,
    "avg_tool_calls_per_turn": 0.0,
    "avg_plan_steps": 0.0,
    "error_rate": 0.0,
    "avg_validator_retries": 0.0,
    "avg_validator_confidence": 0.0,
}
"""The original system's single-number fields, with the value written for an unknown number."""


class Totals:
    """Totals over all conversations, summed while their rows are written."""

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
        rights = [turn["right"] for turn in turns]
        scored = any(right is not None for right in rights)
        self._mean("conversation_level_accuracy", all(rights) if scored else None)
        for turn in turns:
            for name, column in _OF_TURNS.items():
                self._mean(name, turn.get(column))
            key = str(turn["turn_idx"])
            self._group("accuracy_by_turn_number", key, turn["right"])
            self._group("avg_operations_by_turn", key, turn.get("operations_per_turn"))
            if row["conversation_type"] is not None:
                self._group("accuracy_by_type", str(row["conversation_type"]), turn["right"])

        for reply in trial.replies:
            for call in reply.tool_calls:
                counts = self._tools.setdefault(call.tool, [0, 0])
                counts[0] += 1
                counts[1] += call.error is None

    def _mean(self, name: str, value: float | None) -> None:
        if value is not None:
            sums = self._means.setdefault(name, [0.0, 0.0])
            sums[0] += value
            sums[1] += 1

    def _group(self, name: str, key: str, value: float | None) -> None:
        sums = self._groups.setdefault(name, {}).setdefault(key, [0.0, 0.0])
        if value is not None:
            sums[0] += value
            sums[1] += 1

    def fields(self) -> Row:
        """By the original's names; unknown values are omitted."""
        groups = {}
        for name in ("accuracy_by_turn_number", "avg_operations_by_turn", "accuracy_by_type"):
            groups[name] = {
                key: total / n if n else None
                for key, (total, n) in sorted(self._groups.get(name, {}).items())
            }

        return {
            "total_conversations": self.conversations,
            "total_turns": self.turns,
            **({"error_rate": self.broken / self.conversations} if self.conversations else {}),
            **{name: total / n for name, (total, n) in self._means.items()},
            **groups,
            "tool_usage_counts": {tool: calls for tool, (calls, _) in sorted(self._tools.items())},
            "tool_success_rates": {
                tool: good / calls for tool, (calls, good) in sorted(self._tools.items())
            },
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


def statistics(summary: Summary, totals: Totals) -> Row:
    """The original system's fields over everything, followed by everything karat knows, by
    condition.

    If a run has one condition, its numbers are also at the top. In `conditions` missing values are
    None, with n, interval and design effect under `estimates` and scores of trivial answerers under
    `null_rates`.
    """
    part = summary.part(ConversationSummary)
    head = {
        "format": FORMAT_VERSION,
        "made_by": f"karat {__version__}",
        "run": summary.run,
        "name": summary.name,
    }
    by_condition = {}
    for result in part.conditions if part is not None else ():
        by_condition[result.condition] = _condition(result)
    if len(by_condition) == 1:
        only = next(iter(by_condition.values()))
    else:
        only = {}

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
        "null_answerers": {null.name: null.meaning for null in part.nulls},
        "differences": [
            {
                "metric": difference.metric,
                "a": difference.a,
                "b": difference.b,
                **msgspec.to_builtins(difference.estimate),
                "p": difference.p,
                "p_adjusted": difference.p_adjusted,
                "verdict": difference.verdict,
            }
            for difference in summary.differences
        ],
        "conditions": by_condition,
    }


def _original(summary: Summary, totals: Totals, only: Mapping[str, object]) -> Row:
    """`EvaluationSummary`, with its types.

    `only`: the numbers of the one condition; {} with several.
    """
    part = summary.part(ConversationSummary)
    if part is not None:
        conditions = part.conditions
    else:
        conditions = ()

    seed = summary.provenance.settings.get("dataset.seed")
    same = {  # estimates of the summary, which weight the conversations
        "financial_accuracy": only.get("soft_match_accuracy"),
        "conversation_level_accuracy": only.get("conversation_accuracy"),
        "avg_latency_per_turn": only.get("avg_latency_ms_per_turn"),
        **{name: only.get(name) for name in _SUMMARY},
    }
    values = {
        **totals.fields(),
        **{name: value for name, value in same.items() if value is not None},
        **{
            name: only[name]
            for name in ("accuracy_by_turn_number", "avg_operations_by_turn")
            if only
        },
        "run_id": summary.run,
        "timestamp": summary.created,
        "sample_size": summary.samples,
        "random_seed": seed if isinstance(seed, int) else None,
    }
    errors: dict[str, int] = {}
    for condition in conditions:
        for diagnosis in condition.diagnoses:
            errors[diagnosis.label] = errors.get(diagnosis.label, 0) + diagnosis.turns

    filled = typed(values, _SUMMARY)
    # Tokens per completely right conversation: None if there is none; 0.0 if tokens are not known,
    # and too low if some calls did not report them
    right = sum(condition.cost.right_conversations for condition in conditions)
    spent = []
    for one in conditions:
        if one.cost.tokens is not None:
            spent.append(one.cost.tokens)

    cost: float | None = 0.0
    known = False
    if conditions and not right:
        cost, known = None, True
    elif spent and right:
        cost = sum(spent) / right
        known = len(spent) == len(conditions)
        known = known and not any(condition.cost.tokens_unknown for condition in conditions)

    return {
        **{name: value for name, value in values.items() if name not in _SUMMARY},
        **filled,
        "cost_per_correct_answer": cost,
        "unknown": [*filled["unknown"], *([] if known else ["cost_per_correct_answer"])],
        "error_types": errors,
    }


def _condition(condition: ConversationResult) -> Row:
    rates = condition.rates
    spread = condition.propagation

    part = condition.quarantine
    if part is None:
        quarantine: Row | None = None
    else:
        accuracies = (*part.accuracies, part.conversation_accuracy)
        quarantine = {
            "quarantined_turns": part.turns,
            "reasons": part.reasons,
            **{rate.name: rate.estimate.value for rate in accuracies},
            "estimates": {rate.name: _estimate(rate) for rate in accuracies},
        }

    return {
        "total_conversations": condition.conversations,
        "total_turns": condition.turns,
        "unreached": condition.unreached,
        "not_run": condition.not_run,
        **dict.fromkeys(_READINGS),  # null unless some turn has the metric
        **{rate.name: rate.estimate.value for rate in rates},
        **_groups(condition),
        "cost_per_correct_answer": condition.cost.tokens_per_right_conversation,
        "cost_per_correct_answer_dollars": condition.cost.dollars_per_right_conversation,
        "cost_per_right_turn": condition.cost.tokens_per_right_turn,
        "cost_per_right_turn_dollars": condition.cost.dollars_per_right_turn,
        "cost": msgspec.to_builtins(condition.cost),
        "error_types": {diagnosis.label: diagnosis.turns for diagnosis in condition.diagnoses},
        "failures": condition.failures,
        "unreadable": condition.unreadable,
        "unreadable_programs": condition.unreadable_programs,
        "avg_latency_ms_per_turn": condition.pace.milliseconds_mean,
        "avg_tokens_per_turn": condition.pace.tokens_mean,
        "pace": msgspec.to_builtins(condition.pace),
        "first_wrong_turn": spread.first_wrong,
        "never_wrong": spread.never_wrong,
        "cascades": spread.cascades,
        "propagated": spread.propagated,
        **{rate.name: rate.estimate.value for rate in _after(condition)},
        "ladder": msgspec.to_builtins(condition.ladder),
        "estimates": {rate.name: _estimate(rate) for rate in (*rates, *_after(condition))},
        "null_rates": {rate.name: rate.nulls for rate in rates if rate.nulls},
        "without_quarantine": quarantine,
        "verdicts_of_the_file": msgspec.to_builtins(condition.verdicts),
    }


def _groups(condition: ConversationResult) -> Row:
    """Accuracy of some of the turns: the numbers, then the same with n and interval."""
    return {
        "accuracy_by_turn_number": _values(condition.by_turn),
        "avg_operations_by_turn": {
            stratum.key: stratum.agent_operations for stratum in condition.by_turn
        },
        "avg_golden_operations_by_turn": {
            stratum.key: stratum.golden_operations for stratum in condition.by_turn
        },
        "accuracy_by_operations": _values(condition.by_operations),
        "accuracy_by_feature": {
            feature.name: _values(feature.strata) for feature in condition.features
        },
        "feature_correlations": {
            feature.name: feature.correlation for feature in condition.features
        },
        "by_turn": msgspec.to_builtins(condition.by_turn),
        "by_operations": msgspec.to_builtins(condition.by_operations),
        "features": msgspec.to_builtins(condition.features),
    }


def _after(condition: ConversationResult) -> tuple[Rate, ...]:
    spread = condition.propagation
    return spread.after_right, spread.after_wrong, spread.had_earlier_been_right


def _values(strata: Sequence[Stratum]) -> Shares:
    return {stratum.key: stratum.estimate.value for stratum in strata}


def _estimate(rate: Rate) -> Row:
    estimate = rate.estimate
    return {
        **msgspec.structs.asdict(estimate),
        "n": rate.n,
        "conversations": estimate.n,
        "naive_se": rate.naive_se,
        "design_effect": rate.design_effect,
    }


_TABLES = {"summary.csv": SUMMARY, "turns.csv": TURNS, "errors.csv": ERRORS}
MOST_CHARACTERS = 32_000
"""Characters of a cell; a spreadsheet allows 32,767. The traces contain everything."""


class Convfinqa:
    """Tables of conversations, turns and errors, `statistics.json`, and each complete conversation
    as JSON.

    For a folder: `--out FOLDER`. Readers of the original system's files can read these: its columns
    come first, in its order, and its fields have its types. Unknown values are empty in a table. In
    JSON they are null if the original allows that, else 0, an empty list, or true for
    `validator_valid`, and `unknown` lists such fields. `validation.csv` exists if an agent reports
    a validator. Trials that were not run have no rows. For runs over conversations.
    """

    kinds = ("conversation",)

    @streamed
    def render(self, summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
        part = summary.part(ConversationSummary)
        shown = Shown("", "", None)
        if part is not None:
            shown = Shown(
                part.scorer,
                part.scoring,
                matcher_of(run, part.scorer, part.scoring),
                part.right,
            )

        for name, columns in _TABLES.items():
            yield name, _written(columns, (), head=True)
        totals = Totals()
        validated = False
        for trial in trials(run, summary):
            # The trial's id, as a file name; None if it was not run
            if trial.answer is not None:
                trial_id = trial.answer.trial
            elif trial.failure is not None:
                trial_id = trial.failure.trial
            else:
                trial_id = ""

            trace = re.sub(r"[^0-9A-Za-z_-]", "_", trial_id)[:80] or None
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
                yield "validation.csv", _written(VALIDATION, validations, head=not validated)
                validated = True

            yield (
                f"traces/{trace}.json",
                formats.json_file(trace_of(trial, row, turns, errors, began=summary.created)),
            )

        yield "statistics.json", formats.json_file(statistics(summary, totals))


def _written(
    columns: tuple[str, ...], rows: Iterable[Mapping[str, object]], *, head: bool = False
) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if head:
        writer.writerow(columns)
    for row in rows:
        cells = []
        for column in columns:
            value: Any = row.get(column)
            if isinstance(value, (dict, list)):
                value = msgspec.json.encode(value, order="sorted").decode()
            if isinstance(value, str) and len(value) > MOST_CHARACTERS:
                value = f"{value[:MOST_CHARACTERS]}…"
            cells.append(str(value) if isinstance(value, bool) else formats.csv_cell(value))

        writer.writerow(cells)

    return out.getvalue()
