"""A summary as rows, as a data frame and as text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat import formats
from karat.analysis.format_metric import estimated
from karat.errors import BadOption
from karat.installation import install_command
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.analysis.model import MetricInfo, Result, Summary


def rows(summary: Summary) -> list[JsonObject]:
    """One row per condition and metric (per condition, if nothing was scored), raw numbers."""
    if not summary.results:
        return [
            {"condition": condition, "metric": None, **_account(summary, condition)}
            for condition in summary.conditions
        ]

    return [
        {**_numbers(result), **_account(summary, result.condition)} for result in summary.results
    ]


def _numbers(result: Result) -> JsonObject:
    return {
        "condition": result.condition,
        "metric": result.metric,
        "offline": result.offline,
        "mean": result.mean.value,
        "low": result.mean.low,
        "high": result.mean.high,
        "level": result.mean.level,
        "method": result.mean.method,
        "within_sd": result.within_sd.value,
        "between_sd": result.between_sd.value,
        "judge_sd": result.judge_sd.value,
        "top_share": result.top_share.value,
        "reliability": result.reliability.value,
        "worst": result.worst.value,
        "best": result.best.value,
        "n_questions": result.n_questions,
        "n_answers": result.n_answers,
        "n_missing": result.n_missing,
    }


def _account(summary: Summary, condition: str) -> JsonObject:
    account = summary.accounts[condition]
    ledger, cost = account.ledger, account.cost
    return {
        "planned": ledger.planned,
        "scored": ledger.scored,
        "failed": ledger.failed,
        "not_run": ledger.not_run,
        "agent_dollars": cost.agent.known,
        "agent_dollars_unknown": cost.agent.unknown,
        "judge_dollars": cost.judge.known,
        "judge_dollars_unknown": cost.judge.unknown,
        "median_seconds": account.latency.median,
    }


def frame(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> Any:
    """Rows as a DataFrame of pandas, or of polars if only that is installed.

    No extra of karat includes either.
    """
    names = tuple(columns or (rows[0] if rows else ()))
    values = {}
    for name in names:
        values[name] = [row.get(name) for row in rows]
    for library in ("pandas", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue

        # by default, polars guesses a column's type from its first rows only
        if library == "pandas":
            return module.DataFrame(values)
        return module.DataFrame(values, infer_schema_length=None)

    remedy = (
        f"needs pandas or polars: {install_command('pandas')} (table() returns the same rows "
        f"without them)"
    )
    raise BadOption("to_frame", remedy)


def text(summary: Summary) -> str:
    """For `print`: the headline, the ledger, one line per condition and metric.

    `karat report` shows everything.
    """
    ledger = summary.total.ledger
    ended = f"{formats.count(ledger.scored)} scored, {formats.count(ledger.failed)} failed"
    trials = (
        f"{formats.plural(ledger.planned, 'trial')}: {ended}, {formats.count(ledger.not_run)} not "
        f"run"
    )
    if ledger.decided:
        trials += f", {formats.count(ledger.decided)} not run: decided"
    lines = [summary.headline, f"{summary.name} {summary.run} ({summary.status}), {trials}"]
    longest = max((formats.width(formats.clean(name)) for name in summary.conditions), default=0)
    for metric in summary.metrics:
        lines.append(f"{metric.key}{' (offline)' if metric.offline else ''}")
        results = [result for result in summary.results if result.metric == metric.key]
        lines += [f"  {_text_line(result, metric, longest)}" for result in results]

    lines += [f"warning: {warning}" for warning in summary.warnings]
    return "\n".join(formats.clean(line) for line in lines) + "\n"


def _text_line(result: Result, metric: MetricInfo, longest: int) -> str:
    name = formats.clean(result.condition)
    blank = " " * (longest - formats.width(name))
    value = estimated(result.mean, percent=metric.percent)
    if result.n_missing:
        missing = f", {formats.count(result.n_missing)} missing"
    else:
        missing = ""

    return f"{name}{blank}  {value}  {formats.plural(result.n_answers, 'answer')}{missing}"
