"""`statistics.json`: the aggregates of a run over conversations, by the names they are published under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from karat import __version__
from karat.summary import Summary
from karat.summary.conversation_model import ConversationResult, Rate, Stratum
from karat.summary.model import Difference

__all__ = ["FORMAT_VERSION", "statistics"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""

_READINGS = tuple(
    f"avg_{step}{reading}"
    for step in ("", "step_")
    for reading in ("logic_recall", "logic_precision", "logic_f1", "order_score", "operand_recall", "operand_precision")
)


def statistics(summary: Summary) -> dict[str, Any]:
    """Numbers under their names, by condition; of a run with one condition at the top too.

    Beside each number, under `estimates`: n, interval, design effect; under `null_rates`: what
    trivial answerers get. What does not exist is None.
    """
    part = summary.conversation
    head = {"format": FORMAT_VERSION, "made_by": f"karat {__version__}", "run": summary.run, "name": summary.name}
    if part is None:
        return {**head, "conditions": {}}
    found = {one.condition: _condition(one) for one in part.conditions}
    only = next(iter(found.values())) if len(found) == 1 else {}
    return {
        **head,
        "rules": list(part.rules),
        "scorer": part.scorer,
        "scoring": part.scoring,
        "level": part.level,
        "weighted": part.weighted,
        "declared_conversations": part.conversations,
        "declared_turns": part.turns,
        "null_answerers": {one.name: one.meaning for one in part.nulls},
        "differences": [_difference(one) for one in summary.differences],
        **only,
        "conditions": found,
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "a": one.a,
        "b": one.b,
        **msgspec.to_builtins(one.estimate),
        "p": one.p,
        "p_adjusted": one.p_adjusted,
        "verdict": one.verdict,
    }


def _condition(found: ConversationResult) -> dict[str, Any]:
    rates = (*found.accuracies, found.conversation_accuracy, *found.reasoning)
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
        **_spread(found),
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
        "avg_operations_by_turn": {one.key: one.operations for one in found.by_turn},
        "accuracy_by_operations": _values(found.by_operations),
        "accuracy_by_feature": {one.name: _values(one.strata) for one in found.features},
        "feature_correlations": {one.name: one.correlation for one in found.features},
        "by_turn": msgspec.to_builtins(found.by_turn),
        "by_operations": msgspec.to_builtins(found.by_operations),
        "features": msgspec.to_builtins(found.features),
    }


def _spread(found: ConversationResult) -> dict[str, Any]:
    """How errors go on."""
    spread = found.propagation
    return {
        "first_wrong_turn": spread.first_wrong,
        "never_wrong": spread.never_wrong,
        "cascades": spread.cascades,
        "propagated": spread.propagated,
        **{rate.name: rate.estimate.value for rate in _after(found)},
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
