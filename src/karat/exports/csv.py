"""`--to csv`: rows with raw numbers, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import formats
from karat.analysis import Summary, TrialRecord, trials
from karat.analysis.ledger import ledger_rows
from karat.analysis.means_columns import row_names
from karat.analysis.model import ServerUse
from karat.errors import BadOption
from karat.journal import RunFolder
from karat.records import JsonObject

__all__ = ["Csv"]


class Csv:
    """One table, UTF-8, comma-separated.

    Unknown numbers are empty; foreign text cannot become a formula.
    """

    class Options(BaseModel):
        """Which rows."""

        model_config = ConfigDict(extra="forbid")

        rows: Literal["summary", "scores", "servers", "rates", "tests", "ledger"] | None = Field(
            default=None,
            description="what a row is: a metric of a condition (summary), a score, an MCP server "
            "of a condition, how trials ended (ledger), or what the kind of dataset adds: a rate "
            "of a condition, a test of a condition; null: tests if the run has them, else summary",
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        tables = {
            name: table for part in summary.parts.values() for name, table in part.tables().items()
        }
        leading = next(
            (name for part in summary.parts.values() if part.leads for name in part.tables()),
            "summary",
        )
        rows = self._options.rows or leading
        if rows in tables:
            columns, table = tables[rows]
            return {f"{rows}.csv": _written(columns, table)}

        if rows in ("tests", "rates"):
            raise BadOption(
                "report csv", f"--set rows={rows}: a run of {summary.kind} datasets has no {rows}"
            )

        if rows == "summary":
            return {"summary.csv": _written(row_names(), iter(summary.table()))}
        if rows == "ledger":
            ledger = ledger_rows(summary.accounts, summary.total)
            return {"ledger.csv": _written(tuple(ledger[-1]), iter(ledger))}

        if rows == "servers":
            used = (
                (name, use) for name, account in summary.accounts.items() for use in account.servers
            )
            servers = ({"condition": name, **msgspec.structs.asdict(use)} for name, use in used)
            return {"servers.csv": _written(_SERVERS, servers)}

        scores = (row for trial in trials(run, summary) for row in _scores(trial))
        return {"scores.csv": _written(_SCORES, scores)}


_SCORES = (
    "sample",
    "position",
    "condition",
    "repetition",
    "trial",
    "scorer",
    "scoring",
    "turn",
    "judge",
    "repeat",
    "metric",
    "value",
    "offline",
    "reason",
    "failure",
)
_SERVERS = ("condition", *ServerUse.__struct_fields__)


def _written(columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([formats.csv_cell(row.get(column)) for column in columns])
    return out.getvalue()


def _scores(trial: TrialRecord) -> Iterator[JsonObject]:
    place: JsonObject = {
        "sample": trial.sample.id,
        "position": trial.sample.position,
        "condition": trial.condition,
        "repetition": trial.repetition,
    }
    if not trial.scores:
        if trial.failure is not None:
            failure = f"{trial.failure.cls}: {trial.failure.kind}"
        else:
            failure = "not scored" if trial.answer is not None else "not run"

        yield {
            **place,
            "trial": trial.answer.trial if trial.answer else None,
            "failure": failure,
        }

    for score in trial.scores:
        facts = {
            "trial": score.trial,
            "scorer": score.scorer,
            "scoring": score.scoring,
            "turn": score.turn,
            "judge": score.judge,
            "repeat": score.repeat,
            "offline": score.offline,
        }
        for metric, value in score.values.items():
            yield {
                **place,
                **facts,
                "metric": metric,
                "value": value,
                "reason": score.reasons.get(metric),
            }
