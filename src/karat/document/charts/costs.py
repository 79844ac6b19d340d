"""Charts of what right answers cost: everything that was spent, over what came out right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat import formats
from karat.document.charts.chart import Chart, made
from karat.document.charts.pieces import ROW, facets, named, number, tooltip
from karat.kinds.conversation.analysis.model import ConversationResult, ConversationSummary, Cost

__all__ = ["cost_charts"]

GROUPS = ("a fully right conversation", "a right turn")


def cost_charts(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """In tokens, and in dollars where prices are known."""
    tokens = _chart(found, names, "tokens", _tokens, _written)
    dollars = _chart(found, names, "US dollars", _dollars, formats.dollars)
    return tokens + dollars


def _written(tokens: float | None) -> str:
    return formats.UNKNOWN if tokens is None else f"{formats.number(tokens, digits=0)} tokens"


def _tokens(cost: Cost) -> tuple[float | None, float | None]:
    return cost.tokens_per_right_conversation, cost.tokens_per_right_turn


def _dollars(cost: Cost) -> tuple[float | None, float | None]:
    return cost.dollars_per_right_conversation, cost.dollars_per_right_turn


def _chart(
    found: ConversationSummary,
    names: dict[str, str],
    unit: str,
    read: Callable[[Cost], tuple[float | None, float | None]],
    write: Callable[[float | None], str],
) -> list[Chart]:
    values = [row for one in found.conditions for row in _rows(one, names, read)]
    known = [row for row in values if row["cost"] is not None]
    if not any(row["cost"] for row in known):
        return []  # what is free, or not known, has no bars
    table = [
        (one.condition, *map(write, read(one.cost)), formats.count(one.cost.right_conversations),
         formats.count(one.cost.right_turns))
        for one in found.conditions
    ]  # fmt: skip
    told = tooltip({"condition": "condition", "group": "for each", "cost": unit, "n": "right ones"})
    shown = list(names.values())
    places = {"x": number("cost", f"{unit} for each", zero=True), "y": named("condition", shown)}
    bar = {"mark": {"type": "bar", "height": {"band": 0.6}}, "encoding": {**places, "tooltip": told}}
    panels = facets(known, [bar], field="group", height=ROW * len(shown))
    least = min(known, key=lambda row: (row["group_order"], row["cost"]))
    chart = made(
        f"cost-in-{unit.rpartition(' ')[2]}",
        f"{least['condition']} spends {write(least['cost'])} for {least['group']} "
        f"(n {formats.count(least['n'])} right)",
        "Everything that was spent on all conversations, over what came out right: one bar a condition. A condition "
        "without a bar has nothing right, or did not tell what it spent.",
        {**panels, "resolve": {"scale": {"x": "independent"}}},
        ("condition", *(f"{unit} for {group}" for group in GROUPS), "right conversations", "right turns"),
        table,
    )
    return [chart]


def _rows(
    one: ConversationResult, names: dict[str, str], read: Callable[[Cost], tuple[float | None, float | None]]
) -> list[dict[str, Any]]:
    right = (one.cost.right_conversations, one.cost.right_turns)
    return [
        {"condition": names[one.condition], "group": group, "group_order": order, "cost": cost, "n": n}
        for order, (group, cost, n) in enumerate(zip(GROUPS, read(one.cost), right, strict=True))
    ]
