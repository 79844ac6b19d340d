"""How the trials ended, what they cost, how long they took."""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import Account, Ledger
from karat.analysis.verdicts import attempts_sentence
from karat.document.blocks import Bar, Block, Cell, Column, Row, Table, columns, numbers
from karat.document.charts.written import unit_of
from karat.kinds.conversation.analysis.model import ConversationResult

__all__ = ["CLASSES", "ledger", "right_answers", "servers", "spent"]

CLASSES = {
    "scored": "scored",
    "agent": "agent's fault",
    "infrastructure": "infrastructure",
    "judge": "judge's fault",
    "limit": "limit",
    "not_run": "not run",
}
"""The classes of the ledger, as they are called on a page."""


def ledger(summary: Summary) -> Iterator[Block]:
    """Every planned trial in exactly one class."""
    total = summary.total.ledger
    shown = [name for name in CLASSES if name == "scored" or getattr(total, name)]
    named = {**CLASSES, **({} if summary.metrics else {"scored": "answered"})}
    heads = [
        Column(text="condition", number=False),
        Column(text="planned"),
        *(Column(text=named[one]) for one in shown),
    ]
    retried = summary.total.retried or summary.total.failed_attempts
    heads += [Column(text="retried"), Column(text="failed attempts")] if retried else []
    rows = [
        Row(name=name, color=at, cells=_ended(account, shown, retried=bool(retried)))
        for at, (name, account) in enumerate(summary.accounts.items())
    ]
    if len(rows) > 1:
        rows.append(Row(name="in all", total=True, cells=_ended(summary.total, shown, retried=bool(retried))))
    yield Table(
        caption="How the planned trials ended",
        columns=tuple(heads),
        rows=tuple(rows),
        legend="Each planned trial stands in exactly one class, and the classes sum to the plan.",
    )


def _ended(account: Account, shown: list[str], *, retried: bool) -> tuple[Cell, ...]:
    own = account.ledger
    cells = [Cell(text=formats.count(own.planned), drawn=_bar(own))]
    for name in shown:
        many: int = getattr(own, name)
        fault = many and name not in ("scored", "not_run")
        cells.append(Cell(text=formats.count(many), tone="bad" if fault else ("" if many else "quiet")))
    more = (formats.count(account.retried), formats.count(account.failed_attempts)) if retried else ()
    return (*cells, *numbers(*more))


def _bar(own: Ledger) -> Bar | None:
    if not own.planned:
        return None
    return Bar(parts=tuple((name.replace("_", "-"), getattr(own, name) / own.planned) for name in CLASSES))


def spent(summary: Summary) -> Iterator[Block]:
    """Dollars, tokens, time."""
    unknown = summary.total.cost.agent.unknown + summary.total.cost.judge.unknown
    rows = [
        Row(name=name, color=at, cells=_spent(account)) for at, (name, account) in enumerate(summary.accounts.items())
    ]
    if len(rows) > 1:
        rows.append(Row(name="in all", total=True, cells=_spent(summary.total)))
    legend = (
        "Time: from question to answer, of the attempts that succeeded. Money and tokens: of failed attempts as well."
    )
    legend += "".join(f" {sentence}" for sentence in [attempts_sentence(summary.total)] if sentence)
    if unknown:
        legend += f" {formats.plural(unknown, 'call')} with no known price: – is not known, ≥ leaves them out."
    yield Table(
        caption="Cost and time",
        columns=columns("condition", "agent", "judge", "median", "p95", "tokens in", "out", "cached", "reasoning"),
        rows=tuple(rows),
        legend=legend,
    )


def _spent(account: Account) -> tuple[Cell, ...]:
    cost, tokens, time = account.cost, account.tokens, account.latency
    return numbers(
        formats.dollars(cost.agent.known, unknown=cost.agent.unknown),
        formats.dollars(cost.judge.known, unknown=cost.judge.unknown),
        formats.duration(time.median),
        formats.duration(time.p95),
        *map(formats.count, (tokens.input, tokens.output, tokens.cache_read, tokens.reasoning)),
    )


def servers(summary: Summary) -> Iterator[Block]:
    """What was called, and how it went."""
    rows = tuple(
        Row(
            name=use.server,
            cells=(
                Cell(text=name, number=False),
                *numbers(formats.count(use.trials), formats.count(use.calls)),
                Cell(text=formats.count(use.errors), tone="bad" if use.errors else "quiet"),
                *numbers(*(formats.duration(None if ms is None else ms / 1000) for ms in (use.median_ms, use.p95_ms))),
                *numbers(formats.count(use.result_tokens_estimate)),
            ),
        )
        for name, account in summary.accounts.items()
        for use in account.servers
    )
    if rows:
        heads = (
            "server",
            "condition",
            "answers with a call",
            "calls",
            "errors",
            "median",
            "p95",
            "≈ tokens of results",
        )
        yield Table(
            caption="MCP servers",
            columns=columns(*heads, text=("condition",)),
            rows=rows,
            legend="≈ tokens: what the results come to at four characters a token, each read once; an estimate.",
        )


def right_answers(summary: Summary) -> Iterator[Block]:
    """Over conversations: everything that was spent, over what came out right."""
    part = summary.conversation
    if part is None:
        return
    heads = (
        "condition",
        "right conversations",
        "right turns",
        "tokens",
        "for a right conversation",
        "for a right turn",
    )
    yield Table(
        caption=f"What right answers cost, each {unit_of(summary)} whole",
        columns=columns(*heads, "dollars", "for a right conversation", "for a right turn", "time of a turn"),
        rows=tuple(
            Row(name=one.condition, color=at, cells=_right(one)) for at, one in enumerate(part.conditions)
        ),
        legend="Everything spent on all of them, over those that came out right. Time: median.",
    )  # fmt: skip


def _right(one: ConversationResult) -> tuple[Cell, ...]:
    cost, pace = one.cost, one.pace
    each = (cost.tokens_per_right_conversation, cost.tokens_per_right_turn)
    paid = (cost.dollars, cost.dollars_per_right_conversation, cost.dollars_per_right_turn)
    return numbers(
        formats.count(cost.right_conversations),
        formats.count(cost.right_turns),
        formats.count(cost.tokens),
        *(formats.number(value, digits=0) for value in each),
        *(formats.dollars(value, unknown=cost.dollars_unknown) for value in paid),
        formats.duration(None if pace.milliseconds_median is None else pace.milliseconds_median / 1000),
    )
