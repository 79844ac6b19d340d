"""A leaderboard, as a document."""

from __future__ import annotations

from karat import formats
from karat.analysis.leaderboard import Entry, Leaderboard
from karat.blocks import Column, Row, Section, Table, Text, estimate
from karat.document.run import Document

_LEGEND = (
    "Groups: conditions that share a letter cannot be told apart (paired by question, Holm over "
    "{tests}). Means are over questions scored under every condition."
)


def leaderboard_document(board: Leaderboard) -> Document:
    """Conditions, the best first, with their means and the groups without shown differences."""
    facts = [("Questions", formats.count(board.questions))]
    if board.left_out:
        facts.append(
            ("Left out", f"{formats.plural(board.left_out, 'question')} that some of them lack")
        )

    several = len({entry.run for entry in board.entries}) > 1
    if board.direction != "none":
        caption = (
            f"{board.metric} ({'lower' if board.direction == 'lower' else 'higher'} is better)"
        )
    else:
        caption = board.metric

    table = Table(
        caption=caption,
        columns=(
            Column("condition", number=False),
            *([Column("run", number=False, rank=1)] if several else []),
            Column(f"mean [{formats.level(board.level)}]"),
            Column(
                "groups",
                number=False,
                legend=_LEGEND.format(tests=formats.plural(board.tests, "pair")),
            ),
        ),
        rows=tuple(
            Row(
                name=entry.condition,
                cells=(
                    *([Text(f"{entry.name} {entry.run}")] if several else []),
                    estimate(entry.mean, percent=board.percent),
                    Text(entry.groups),
                ),
            )
            for entry in board.entries
        ),
        brief=True,
    )
    return Document(
        name=f"{board.metric}: {formats.plural(len(board.entries), 'condition')}",
        verdicts=(_verdict(board),),
        facts=tuple(facts),
        warnings=board.warnings,
        sections=(Section(id="leaderboard", title="Leaderboard", blocks=(table,)),),
    )


def _verdict(board: Leaderboard) -> str:
    first = board.entries[0]
    level = [entry for entry in board.entries[1:] if set(entry.groups) & set(first.groups)]
    several = len({entry.run for entry in board.entries}) > 1

    def name(entry: Entry) -> str:
        if several:
            return f"{entry.condition} ({entry.run})"
        return entry.condition

    if board.direction == "none":
        return f"No direction of {board.metric} is better: conditions are listed by their means"
    if not level:
        return f"{name(first)} is best on {board.metric}; it can be told apart from every other"
    if len({entry.mean.value for entry in board.entries}) == 1:
        return f"All conditions have the same mean on {board.metric}"
    if len(level) == len(board.entries) - 1:
        return (
            f"{name(first)} has the best mean on {board.metric}, and cannot be told apart from "
            f"any other"
        )

    names = ", ".join(map(name, level[:5])) + (" and others" if len(level) > 5 else "")
    return (
        f"{name(first)} has the best mean on {board.metric}; it cannot be told apart from {names}"
    )
