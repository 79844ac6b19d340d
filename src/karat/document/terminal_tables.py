"""The tables of the terminal report."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import between, interval_of, measured
from karat.analysis.model import Account, Difference, MetricInfo, Result
from karat.analysis.verdicts import NO_DIFFERENCE, NOT_MEASURED
from karat.document.terminal_layout import Cell, Columns

__all__ = [
    "conditions_table",
    "differences_table",
    "has_steps",
    "judges_table",
    "scores_table",
    "servers_table",
]


def has_steps(summary: Summary) -> bool:
    """Whether a metric has steps, so that one of them is the best."""
    return any(metric.kind != "number" for metric in summary.metrics)


def scores_table(summary: Summary, *, wide: bool) -> Columns:
    """Metrics, and under each the conditions."""
    missing = any(result.n_missing for result in summary.results)
    repeated = any(metric.repeats > 1 for metric in summary.metrics)
    stepped = wide and has_steps(summary)
    heads = ["", "mean", f"{formats.level(summary.level)} interval", "±", "answers"]
    heads += ["bounds"] if missing else []
    heads += ["± judge"] if repeated else []
    ordinal = any(metric.kind == "ordinal" for metric in summary.metrics)
    heads += [*(["best"] if ordinal else []), "reliable"] if stepped else []
    table = Columns(heads)
    for metric in summary.metrics:
        table.title(_title(metric))
        for condition in summary.conditions:
            result = summary.result(condition, metric.key)
            if result is not None:
                table.row(condition, _score_cells(metric, result, heads[1:]), indent=2)
    return table


def _score_cells(metric: MetricInfo, result: Result, heads: Sequence[str]) -> list[Cell]:
    mean, planned = result.mean, result.n_answers + result.n_missing
    answers = formats.count(result.n_answers)
    low, high = (result.best, result.worst) if metric.direction == "lower" else (result.worst, result.best)
    bounds = f"{measured(low.value, percent=metric.percent)} … {measured(high.value, percent=metric.percent)}"
    texts = {
        "mean": measured(mean.value, percent=metric.percent),
        "±": measured(result.within_sd.value, percent=metric.percent),
        "answers": f"{answers} of {formats.count(planned)}" if result.n_missing else answers,
        "bounds": bounds if result.n_missing else "",
        "± judge": measured(result.judge_sd.value, percent=metric.percent),
        "best": "" if metric.kind == "share" else formats.share(result.top_share.value),  # it would be the mean again
        "reliable": formats.share(result.reliability.value),
    }
    interval = interval_of(mean, percent=metric.percent) or formats.UNKNOWN
    return [(texts.get(head, interval), "") for head in heads]


def judges_table(summary: Summary) -> Columns | None:
    """Metrics, under each the judges of a panel with their means, and every two of them with their agreement."""
    if not summary.panel:
        return None
    table = Columns(["", "mean", "same", "within 1", "answers"])
    for metric in summary.metrics:
        if len(metric.judges) < 2:
            continue
        table.title(_title(metric))
        for judge in metric.judges:
            parts = [
                one
                for condition in summary.conditions
                if (result := summary.result(condition, metric.key)) is not None
                for one in result.by_judge
                if one.judge == judge
            ]
            answers = sum(one.answers for one in parts)
            total = sum(one.mean * one.answers for one in parts if one.mean is not None)
            mean = formats.number(total / answers if answers else None)
            table.row(judge, [(mean, ""), ("", ""), ("", ""), (formats.count(answers), "")], indent=2)
        for pair in summary.panel:
            if pair.metric == metric.key:
                shares = [(formats.share(pair.exact), ""), (formats.share(pair.within_one), "")]
                table.row(f"{pair.a} – {pair.b}", [("", ""), *shares, (formats.count(pair.answers), "")], indent=2)
    return table


def conditions_table(summary: Summary, *, wide: bool) -> Columns:
    """How the planned trials ended, and what they cost; classes that nothing ended in are left out."""
    total = summary.total.ledger
    faults = {
        name: cls
        for name, cls in (("agent", "agent"), ("infra", "infrastructure"), ("judge", "judge"), ("limit", "limit"))
        if getattr(total, cls)
    }
    scored = "scored" if summary.metrics else "answered"
    heads = ["planned", scored, *(faults or ["failed"])]
    heads += ["not run"] if total.not_run else []
    heads += ["retried"] if summary.total.retried else []
    heads += ["cost", "median", *(["p95", "tokens in", "out"] if wide else [])]
    table = Columns(["", *heads])
    for name, account in summary.accounts.items():
        table.row(name, _account_cells(account, heads, faults))
    if len(summary.accounts) > 1:
        table.rule()
        table.row("in all", _account_cells(summary.total, heads, faults))
    return table


def _account_cells(account: Account, heads: Sequence[str], faults: dict[str, str]) -> list[Cell]:
    ledger, tokens, cost = account.ledger, account.tokens, account.cost
    known, unknown = cost.agent.known + cost.judge.known, cost.agent.unknown + cost.judge.unknown
    texts = {
        "planned": formats.count(ledger.planned),
        "scored": formats.count(ledger.scored),
        "answered": formats.count(ledger.scored),
        "failed": formats.count(ledger.failed),
        "not run": formats.count(ledger.not_run),
        "retried": formats.count(account.retried),
        "cost": formats.dollars(known, unknown=unknown),
        "median": formats.duration(account.latency.median),
        "p95": formats.duration(account.latency.p95),
        "tokens in": formats.count(tokens.input),
        "out": formats.count(tokens.output),
        **{head: formats.count(getattr(ledger, cls)) for head, cls in faults.items()},
    }
    red = {head for head, cls in faults.items() if getattr(ledger, cls)}
    return [(texts[head], "red" if head in red else "") for head in heads]


def servers_table(summary: Summary) -> Columns | None:
    """Calls per condition and server; None where no server was called."""
    used = [(name, use) for name, account in summary.accounts.items() for use in account.servers]
    if not used:
        return None
    table = Columns(["", "server", "calls", "errors", "median", "p95", "≈ tokens"], left=["server"])
    for name, use in used:
        times = [formats.duration(None if ms is None else ms / 1000) for ms in (use.median_ms, use.p95_ms)]
        cells = [
            (formats.excerpt(use.server, 24), ""),
            (formats.count(use.calls), ""),
            (formats.count(use.errors), "red" if use.errors else ""),
            *((time, "") for time in times),
            (formats.count(use.result_tokens_estimate), ""),
        ]
        table.row(name, cells)
    return table


def differences_table(summary: Summary, *, wide: bool) -> Columns:
    """Metrics, and under each the pairs of conditions."""
    heads = ["", "diff.", f"{formats.level(summary.level)} interval", "p", *(["d", "questions"] if wide else [])]
    table = Columns([*heads, "verdict"], left=["verdict"])
    for metric in summary.metrics:
        table.title(_title(metric, *(["points"] if metric.percent else [])))
        for one in summary.differences:
            if one.metric == metric.key:
                table.row(f"{one.b} − {one.a}", _difference_cells(one, wide=wide, percent=metric.percent), indent=2)
    return table


def _difference_cells(one: Difference, *, wide: bool, percent: bool) -> list[Cell]:
    found = one.estimate
    value, interval = between(found.value, found.low, found.high, percent=percent)
    interval = interval or formats.UNKNOWN
    extra = [(formats.number(one.effect), ""), (formats.count(one.n_pairs), "")]
    return [
        (value, ""),
        (interval, ""),
        (formats.p_value(one.p_adjusted), ""),
        *(extra if wide else []),
        (_verdict(one, wide=wide), "green" if one.winner is not None else ""),
    ]


def _verdict(one: Difference, *, wide: bool) -> str:
    if one.winner is not None:
        return "better" if one.winner == one.b else "worse"
    if one.verdict in (NO_DIFFERENCE, NOT_MEASURED) and not wide:
        return "not shown" if one.verdict == NO_DIFFERENCE else "no MCP"
    return one.verdict.rpartition(" is ")[2]


def _title(metric: MetricInfo, *more: str) -> Text:
    notes = [
        *more,
        *(["offline"] if metric.offline else []),
        *(["lower is better"] if metric.direction == "lower" else []),
    ]
    text = Text(formats.excerpt(metric.key, 60), style="bold")
    if notes:
        text.append(f" ({', '.join(notes)})", style="not bold dim")
    return text
