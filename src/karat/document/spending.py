"""How the trials ended, what they cost, how long they took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import Account
from karat.analysis.verdicts import attempts_sentence
from karat.blocks import Bar, Block, Cell, Column, Count, Duration, Money, Row, Table, Text, columns

CLASSES = {
    "scored": "scored",
    "agent": "agent's fault",
    "infrastructure": "infrastructure",
    "judge": "judge's fault",
    "limit": "limit",
    "not_run": "not run",
    "decided": "not run: decided",
}
"""The classes of the ledger, as they are called on a page."""

_FURTHER = {
    "retried": Column("retried", rank=1),
    "failed_attempts": Column("failed attempts", rank=2),
    "cut": Column(
        "cut",
        rank=1,
        legend="Cut: the answer was cut at a limit of tokens, and is scored as it is.",
    ),
}
"""Counts of an account beside the classes, each with its column; a count that is 0 in the whole run
has none.
"""


def ledger(summary: Summary) -> Iterator[Block]:
    """Every planned trial in exactly one class."""
    total = summary.total.ledger
    shown = []
    for name in CLASSES:
        if name == "scored" or getattr(total, name):
            shown.append(name)

    named = {**CLASSES, **({} if summary.metrics else {"scored": "answered"})}
    heads = [
        Column("condition", number=False),
        Column("planned"),
        *(Column(named[name]) for name in shown),
    ]
    further = [name for name in _FURTHER if getattr(summary.total, name)]
    heads += [_FURTHER[name] for name in further]
    rows = [
        Row(name=name, color=at, cells=_ended(account, shown, further))
        for at, (name, account) in enumerate(summary.accounts.items())
    ]
    if len(rows) > 1:
        rows.append(Row(name="in all", total=True, cells=_ended(summary.total, shown, further)))
    yield Table(
        caption="How the planned trials ended",
        columns=tuple(heads),
        rows=tuple(rows),
        legend="Each planned trial is in exactly one class; the classes sum to the plan.",
    )


def _ended(account: Account, shown: Sequence[str], further: Sequence[str]) -> tuple[Cell, ...]:
    ledger = account.ledger
    bar = None
    if ledger.planned:
        shares = ((name, getattr(ledger, name) / ledger.planned) for name in CLASSES)
        bar = Bar(tuple((name.replace("_", "-"), share) for name, share in shares))

    cells = [Count(ledger.planned, bar=bar)]
    for name in shown:
        trials: int = getattr(ledger, name)
        fault = trials and name not in ("scored", "not_run", "decided")
        cells.append(Count(trials, tone="bad" if fault else ("" if trials else "quiet")))

    return (*cells, *(Count(getattr(account, name)) for name in further))


def spent(summary: Summary) -> Iterator[Block]:
    """Dollars, tokens, time."""
    unknown = summary.total.cost.agent.unknown + summary.total.cost.judge.unknown
    rows = [
        Row(name=name, color=at, cells=_spent(account))
        for at, (name, account) in enumerate(summary.accounts.items())
    ]
    if len(rows) > 1:
        rows.append(Row(name="in all", total=True, cells=_spent(summary.total)))
    legend = (
        "Time: from question to answer, of the attempts that succeeded, without the start of MCP "
        "servers and without waits for rate limits or after refusals. Money and tokens: of failed "
        "attempts as well."
    )
    legend += "".join(f" {sentence}" for sentence in [attempts_sentence(summary.total)] if sentence)
    if unknown:
        legend += (
            f" No price known for {formats.plural(unknown, 'call')}: ≥ leaves them out, – means "
            f"no price at all."
        )

    yield Table(
        caption="Cost and time",
        columns=columns(
            "condition",
            "agent",
            "judge",
            "median",
            Column("p95", rank=1),
            Column("tokens in", rank=2),
            Column("out", rank=2),
            Column("cached", rank=3),
            Column("reasoning", rank=3),
        ),
        rows=tuple(rows),
        legend=legend,
    )


def _spent(account: Account) -> tuple[Cell, ...]:
    cost = account.cost
    tokens = account.tokens
    time = account.latency
    return (
        Money(cost.agent.known, cost.agent.unknown),
        Money(cost.judge.known, cost.judge.unknown),
        Duration(time.median),
        Duration(time.p95),
        *map(Count, (tokens.input, tokens.output, tokens.cache_read, tokens.reasoning)),
    )


def servers(summary: Summary) -> Iterator[Block]:
    """Calls of each MCP server under each condition."""
    rows = tuple(
        Row(
            name=use.server,
            cells=(
                Text(name),
                Count(use.calls),
                Count(use.errors, tone="bad" if use.errors else "quiet"),
                Count(use.trials),
                *(
                    Duration(None if ms is None else ms / 1000)
                    for ms in (use.median_ms, use.p95_ms)
                ),
                Count(use.result_tokens_estimate),
            ),
        )
        for name, account in summary.accounts.items()
        for use in account.servers
    )
    if rows:
        yield Table(
            caption="MCP servers",
            columns=columns(
                "server",
                "condition",
                "calls",
                "errors",
                Column("answers with a call", rank=2),
                "median",
                Column("p95", rank=1),
                Column(
                    "≈ tokens",
                    legend="≈ tokens: an estimate of the results' length: characters / 4, each "
                    "result counted once.",
                ),
                text=("condition",),
            ),
            rows=rows,
        )
