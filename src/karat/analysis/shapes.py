"""A summary as rows, as a data frame and as text."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat import formats
from karat.analysis.format_metric import estimated
from karat.errors import BadOption
from karat.installation import install_command

if TYPE_CHECKING:
    from karat.analysis.model import Summary


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
        for result in results:
            name = formats.clean(result.condition)
            blank = " " * (longest - formats.width(name))
            value = estimated(result.mean, percent=metric.percent)
            answers = formats.plural(result.n_answers, "answer")
            if result.n_missing:
                answers += f", {formats.count(result.n_missing)} missing"
            lines.append(f"  {name}{blank}  {value}  {answers}")

    lines += [f"warning: {warning}" for warning in summary.warnings]
    return "\n".join(formats.clean(line) for line in lines) + "\n"
