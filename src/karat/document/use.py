"""Whether answers used what their condition offers, their scores with and without it, and which
tools were confused.
"""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis import Summary
from karat.analysis import numbers as analysis
from karat.analysis.model import ContextUse
from karat.analysis.verdicts import CONTEXT_KINDS
from karat.blocks import (
    Block,
    Column,
    Count,
    Estimate,
    Group,
    Note,
    Row,
    Scale,
    Table,
    Text,
    columns,
    estimate,
)
from karat.document.scores import note_of
from karat.kinds import of

_MOST_TOOLS = 30  # rows
_MOST_CONFUSIONS = 20
_JSON = "`karat report --to json` has them"
_NOT_RANDOMISED = (
    "Whether an answer used it was not randomised: it may depend on the question, so the two "
    "columns may differ for other reasons than the use. The differences between conditions "
    "compare all answers, whether they used it or not (intention to treat): they are the effect "
    "of offering it."
)


def use(summary: Summary) -> Iterator[Block]:
    """How many answers used what their condition offers, and their scores next to those of the
    others.
    """
    if not summary.contexts:
        return
    failed = any(context.only_failed for context in summary.contexts)
    heads = [
        Column(
            f"used [{formats.level(summary.level)}]",
            legend="Used: the share of answers with a call that succeeded.",
        ),
        Column("answers"),
    ]
    if failed:
        heads.append(
            Column("only failed calls", legend="Only failed calls: answers that count as not used.")
        )

    yield Table(
        caption="Answers that used what their condition offers",
        columns=columns("condition", "offers", *heads, text=("offers",)),
        rows=tuple(
            Row(
                name=context.condition,
                color=summary.conditions.index(context.condition),
                cells=(Text(_name(context)), _share(context.share), Count(context.answers))
                + (
                    (Count(context.only_failed, tone="bad" if context.only_failed else "quiet"),)
                    if failed
                    else ()
                ),
            )
            for context in summary.contexts
        ),
    )
    unknown = dict.fromkeys(
        context.share.reason for context in summary.contexts if context.used is None
    )
    if unknown:
        yield Note(texts=tuple(f"Use is not known: {reason}." for reason in unknown), tone="quiet")
    rows: list[Row | Group] = []
    for info in summary.metrics:
        metric_rows = []
        for context in summary.contexts:
            for by in context.scores:
                if by.metric == info.key and by.answers_used and by.answers_not_used:
                    used, unused = (
                        estimate(mean, percent=info.percent) for mean in (by.used, by.not_used)
                    )
                    cells = used, Count(by.answers_used), unused, Count(by.answers_not_used)
                    metric_rows.append(
                        Row(name=f"{context.condition}: {_name(context)}", cells=cells)
                    )

        if metric_rows:
            rows += [Group(info.key, note_of(info, summary)), *metric_rows]

    if rows:
        level = formats.level(summary.level)
        unit = of(summary.kind).unit
        yield Table(
            caption="Scores of answers that used it, and of those that did not",
            columns=columns(
                "condition",
                f"used [{level}]",
                "answers",
                f"not used [{level}]",
                "answers",
            ),
            rows=tuple(rows),
            legend=(
                f"Means over answers; the intervals allow for answers to one {unit} being alike."
            ),
        )
        yield Note(texts=(_NOT_RANDOMISED,))


def _name(context: ContextUse) -> str:
    return f"{CONTEXT_KINDS[context.kind]} {context.name}"


def _share(share: analysis.Estimate) -> Estimate:
    return estimate(share, percent=True, scale=Scale(0.0, 1.0))


def tools(summary: Summary) -> Iterator[Block]:
    """Precision and recall of the tools that samples expect, and which were called instead of
    others.
    """
    several = len({tool.scorer for tool in summary.tools}) > 1
    rows: list[Row | Group] = []
    # Without an expected tool there is no recall.
    able = {context.condition for context in summary.contexts} | {
        one.condition for one in summary.tools if one.called
    }
    group = None
    for tool in (tool for tool in summary.tools if tool.condition in able):
        if group != (
            group := Group(f"{tool.condition}, {tool.scorer}" if several else tool.condition)
        ):
            rows.append(group)

        counts = map(Count, (tool.expected, tool.called, tool.matched))
        rows.append(
            Row(name=tool.tool, cells=(_share(tool.precision), _share(tool.recall), *counts))
        )

    level = formats.level(summary.level)
    precision = "Precision: of the answers that called it, the share that should have."
    recall = "Recall: of the answers that should have called it, the share that did."
    if rows:
        yield Table(
            caption="Expected tools",
            columns=columns(
                "tool",
                Column(f"precision [{level}]", legend=precision),
                Column(f"recall [{level}]", legend=recall),
                Column("expected", rank=1),
                Column("called", rank=1),
                Column("both", rank=2),
            ),
            rows=tuple(rows),
            legend="An answer counts once for a tool, however often it called it.",
            limit=_MOST_TOOLS,
            rest=_JSON,
        )

    confused = []
    for pair in summary.confusions:
        if pair.called is not None:
            confused.append(
                Row(
                    name=pair.expected,
                    cells=(Text(pair.called), Text(pair.condition), Count(pair.answers)),
                )
            )

    if confused:
        text = ("called instead", "condition")
        yield Table(
            caption="Confused tools",
            columns=columns("expected", *text, "answers", text=text),
            rows=tuple(confused),
            legend="Answers that did not call the first tool, which was expected, and called the "
            "second, which was not. Where an answer has several of either, every pair "
            "counts.",
            limit=_MOST_CONFUSIONS,
            rest=_JSON,
        )
