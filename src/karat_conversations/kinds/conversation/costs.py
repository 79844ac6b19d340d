"""What right answers of a run over conversations cost: tokens, dollars and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from karat import formats
from karat.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Duration,
    Line,
    Mark,
    Money,
    Number,
    Row,
    Rows,
    Table,
    Text,
    columns,
    labels,
)
from karat_conversations.kinds.conversation.analysis.model import ConversationSummary


def right_answers(part: ConversationSummary) -> Iterator[Block]:
    """The total cost, divided by the right answers."""
    table = _table(part)
    names = labels(result.condition for result in part.conditions)
    panels = []
    least = []
    for unit, goal, write, right in _COSTS:
        lines, known = [], []
        for result in part.conditions:
            # at least so much: not shown beside exact figures
            bound = getattr(result.cost, f"{unit}_unknown")
            if bound:
                each: float | None = None
            else:
                each = getattr(result.cost, f"{unit}_per_{right.removesuffix('s')}")

            mark = () if each is None else (Mark(start=0.0, value=each, label=write(each)),)
            lines.append(Line(name=names[result.condition], marks=mark))
            known += [] if each is None else [(each, result)]

        if known:
            title = f"{unit} for {goal}"
            panels.append(Rows(title=title, axis=Axis(title=title, start=0.0), lines=tuple(lines)))
            lowest, result = min(known, key=lambda pair: pair[0])
            n = formats.count(getattr(result.cost, right))
            least.append(f"{result.condition} spends {write(lowest)} for {goal} (n {n} right)")

    if not panels:
        yield table
        return

    yield Chart(
        name="cost-of-right-answers",
        title=least[0],
        description="The total cost of all conversations, divided by what they got right: one bar "
        "per condition. A condition without a bar has nothing right, or did not report "
        "what it spent.",
        panels=tuple(panels),
        table=table,
    )


def _table(part: ConversationSummary) -> Table:
    rows = []
    for at, result in enumerate(part.conditions):
        cost = result.cost
        pace = result.pace
        if pace.milliseconds_median is None:
            median = None
        else:
            median = pace.milliseconds_median / 1000

        tokens_cells: list[Cell] = []
        for tokens in (
            cost.tokens,
            cost.tokens_per_right_conversation,
            cost.tokens_per_right_turn,
        ):
            if cost.tokens_unknown and tokens is not None:
                tokens_cells.append(Text(f"≥ {formats.number(tokens, digits=0)}"))
            else:
                tokens_cells.append(Number(tokens, digits=0))

        cells: tuple[Cell, ...] = (
            Count(cost.right_conversations),
            Count(cost.right_turns),
            *tokens_cells,
            *(
                Money(dollars, cost.dollars_unknown)
                for dollars in (
                    cost.dollars,
                    cost.dollars_per_right_conversation,
                    cost.dollars_per_right_turn,
                )
            ),
            Duration(median),
        )
        rows.append(Row(name=result.condition, color=at, cells=cells))

    return Table(
        caption=f"Cost of right answers, right: {part.right}",
        columns=columns(
            "condition",
            "right conversations",
            "right turns",
            Column("tokens", rank=1),
            Column("each conv.", rank=2),
            Column("each turn", rank=2),
            "dollars",
            Column("each conv.", rank=3),
            Column("each turn", rank=3),
            Column("time of a turn", legend="Time: median."),
        ),
        rows=tuple(rows),
        legend=(
            "Each: everything spent, over those that are right; – where none is, or the cost was "
            "not reported."
        ),
    )


def _tokens(many: float | None) -> str:
    if many is None:
        return formats.UNKNOWN
    return f"{formats.number(many, digits=0)} tokens"


_COSTS: tuple[tuple[str, str, Callable[[float | None], str], str], ...] = (
    ("tokens", "a fully right conversation", _tokens, "right_conversations"),
    ("tokens", "a right turn", _tokens, "right_turns"),
    ("dollars", "a fully right conversation", formats.dollars, "right_conversations"),
    ("dollars", "a right turn", formats.dollars, "right_turns"),
)
