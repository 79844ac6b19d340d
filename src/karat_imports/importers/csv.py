"""`karat import csv`: any table with one result per row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.documents.answers import (
    STOP_REASONS,
    Copies,
    Repetitions,
    condition_columns,
    condition_of,
    key_of,
    like_conditions,
    repetition_value,
    sample_columns,
    usual,
)
from karat.documents.rows import Row, read_rows
from karat.errors import BadDataset, BadOption, did_you_mean
from karat.formats import some_of, text_of
from karat.importers import Findings, ImportedFailure, ImportedRun, ImportedScore, ImportedTrial
from karat.records import Metric, Reply, Usage, was_cut
from karat_imports.importers._reading import title

__all__ = ["Csv"]

_TARGETS = (
    *(
        "id",
        "question",
        "golden",
        "answer",
        "condition",
        "repetition",
        "model",
        "error",
        "stop_reason",
    ),
    *("seconds", "dollars", "input_tokens", "output_tokens", "started"),
)
_TRUE, _FALSE = (
    ("true", "yes", "pass", "passed", "correct"),
    ("false", "no", "fail", "failed", "incorrect"),
)
_MISSING = ("", "na", "n/a", "nan", "null", "none")
_NO_ERROR = (*_MISSING, "false", "no", "0")


class Csv:
    """Any table (CSV, TSV, JSON Lines, JSON, Parquet, …) with one result per row; --map says which
    column is what.
    """

    class Options(BaseModel):
        """Without an entry in `map`, a target's column is the one with the target's name."""

        model_config = ConfigDict(extra="forbid")

        map: dict[str, str] = Field(
            default={},
            description="target → column; targets: "
            + ", ".join(_TARGETS)
            + ", score.NAME (a metric), reason.NAME (why it has its value)",
        )
        lower_is_better: list[str] = Field(
            default=[], description="metrics for which lower is better"
        )

    listed_as: ClassVar[str] = "csv"

    def __init__(self, options: Options) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Never: the user must say which column is what."""
        return False

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per file.

        Raises BadDataset for a file that is not a table, BadOption for a missing column.
        """
        for path in paths:
            rows = read_rows(path)
            if not rows.count:
                raise BadDataset(str(path), list(rows.sorted_faults()))
            for fault in rows.sorted_faults():
                findings.lose(fault.message, f"{path.name}, {fault.place}")
            columns = list(dict.fromkeys(name for _, row in rows.rows for name in row))
            chosen = self._columns(path, columns)
            metrics = {}
            for name, column in chosen.items():
                if name.startswith("score."):
                    metrics[name.partition(".")[2]] = column
            lower = set(self._options.lower_is_better)
            if unknown := lower - set(metrics):
                raise BadOption("--set lower_is_better", f"no metric is called '{min(unknown)}'")
            if metrics and set(metrics) - lower:
                findings.note(
                    f"taken to be better when higher: "
                    f"{', '.join(name for name in metrics if name not in lower)} (name others "
                    f"with --set lower_is_better=[…])"
                )

            announced = {}
            for name in metrics:
                if name in lower:
                    announced[name] = (Metric(name=name, direction="lower"),)
            trials = _Trials(
                f"{path.name}, {rows.unit}",
                rows.rows,
                chosen,
                metrics,
                findings,
                has_conditions="condition" in self._options.map,
            )
            if trials.hint is not None:
                findings.note(trials.hint)
            yield ImportedRun(
                name=title(path),
                tool="table",
                dataset=path.name,
                metrics=announced,
                trials=trials,
                sparse=trials.sparse,
            )

    def _columns(self, path: Path, columns: Sequence[str]) -> dict[str, str]:
        mapped = self._options.map
        for target, column in mapped.items():
            if target not in _TARGETS and target.partition(".")[0] not in ("score", "reason"):
                known = ", ".join((*_TARGETS, "score.NAME", "reason.NAME"))
                raise BadOption("--map", f"unknown target '{target}' (known: {known})")
            if column not in columns:
                raise BadOption(
                    f"--map {target}",
                    f"{path} has no column '{column}'{did_you_mean(column, columns)}",
                )

        chosen = {}
        for name in columns:
            if name in _TARGETS or name.startswith(("score.", "reason.")):
                chosen[name] = name
        for column in usual(STOP_REASONS, columns)[:1]:
            chosen["stop_reason"] = column
        chosen |= mapped
        if "id" not in chosen and "question" not in chosen:
            raise BadOption(
                "--map",
                (
                    f"say which column is the sample's id or its question (columns: "
                    f"{_listed(columns)})"
                ),
            )

        if "answer" not in chosen and not any(name.startswith("score.") for name in chosen):
            message = (
                f"say which column is the answer or a score, e.g. --map "
                f"score.accuracy={columns[-1]}"
            )
            raise BadOption("--map", f"{message} (columns: {_listed(columns)})")

        return chosen


class _Trials:
    """The trials of a table."""

    def __init__(
        self,
        place: str,
        rows: Iterable[tuple[int, Row]],
        columns: Mapping[str, str],
        metrics: Mapping[str, str],
        findings: Findings,
        *,
        has_conditions: bool,
    ) -> None:
        self._place, self._rows, self._columns, self._metrics = place, rows, columns, metrics
        self._findings, self._has_conditions = findings, has_conditions
        self._ids, self._conditions = self._grouping()
        texts = [columns[target] for target in ("question", "golden") if target in columns]
        self._of_one_sample = list(dict.fromkeys([*self._ids, *texts]))
        used = {*columns.values(), *self._conditions}
        self.hint = like_conditions((row for _, row in rows), self._group, used=used)

    @property
    def sparse(self) -> bool:
        """Whether no question lacks a result: each has rows under each condition, and none says
        which repetition.
        """
        groups = {self._group(row) for _, row in self._rows}
        samples, conditions = ({group[part] for group in groups} for part in (0, 1))
        return "repetition" not in self._columns and len(groups) == len(samples) * len(conditions)

    def _group(self, row: Row) -> tuple[tuple[str, ...], str | None]:
        """The row's sample and condition."""
        return key_of(row, self._of_one_sample), condition_of(row, self._conditions)

    def __iter__(self) -> Iterator[ImportedTrial]:
        repetitions, copies = Repetitions(), Copies("row")
        for _, row in self._rows:
            with suppress(ValueError):  # counted below
                repetitions.add(*self._group(row), self._repetition(row))
        counts = Counter[tuple[tuple[str, ...], str | None]]()
        first: dict[tuple[str, ...], ImportedTrial] = {}
        for number, row in self._rows:
            place = f"{self._place} {number}"
            sample = key_of(row, self._ids[:1])[0]
            if not sample:
                self._findings.lose("row without an id or a question", place)
                continue
            if self._text(row, "answer") and copies.is_copy(number, row):
                self._findings.left_out("row identical to an earlier one: it counts once", place)
                continue
            group = self._group(row)
            value = None
            try:
                value = self._repetition(row)
            except ValueError as error:
                self._findings.unreadable(str(error), place)

            if value is None:
                repetition = counts[group]
            else:
                repetition = repetitions.number(*group, value)

            counts[group] += 1
            trial = self._trial(row, sample, group[1] or "answers", repetition, place)
            same = first.setdefault(group[0], trial)
            yield msgspec.structs.replace(trial, question=same.question, golden=same.golden)

    def _grouping(self) -> tuple[list[str], tuple[str, ...]]:
        """The columns in which rows of one question agree, and those that name the condition."""
        columns, rows = self._columns, [row for _, row in self._rows]
        ids = [columns.get("id") or columns["question"]]
        if "question" in columns:
            ids = sample_columns(
                rows,
                question=columns["question"],
                golden=columns.get("golden"),
                id_column=columns.get("id"),
            )

        if self._has_conditions:
            return ids, (columns["condition"],)
        used = set()
        for target, column in columns.items():
            if target not in ("condition", "model"):
                used.add(column)
        conditions = condition_columns(rows, lambda row: key_of(row, ids), used=used)
        named = [columns[target] for target in ("condition", "model") if target in columns]
        return ids, conditions or tuple(named[:1])

    def _repetition(self, row: Row) -> int | str | None:
        column = self._columns.get("repetition")
        if column is None:
            return None
        return repetition_value(row.get(column), column)

    def _trial(
        self, row: Row, sample: str, condition: str, repetition: int, place: str
    ) -> ImportedTrial:
        error, answer, stop = (
            self._text(row, target) for target in ("error", "answer", "stop_reason")
        )
        error = "" if error.strip().lower() in _NO_ERROR else error
        scores = {
            name: self._score(row.get(column), place, name)
            for name, column in self._metrics.items()
        }
        tokens = [self._number(row, name, place) for name in ("input_tokens", "output_tokens")]
        usage = None
        if tokens != [None, None]:
            counts = [None if count is None else int(count) for count in tokens]
            usage = Usage(input_tokens=counts[0], output_tokens=counts[1])
        reply = None
        if not error and (
            answer or was_cut(stop) or any(value is not None for value in scores.values())
        ):
            reply = Reply(
                text=answer,
                stop_reason=stop or None,
                dollars=self._number(row, "dollars", place),
                usage=usage,
                model=self._text(row, "model") or None,
            )

        used = set(self._columns.values())
        if error:
            failure = ImportedFailure(cls="agent", kind="error", message=error)
        else:
            failure = None

        return ImportedTrial(
            sample=sample,
            question=self._text(row, "question") or sample,
            golden=self._text(row, "golden") or None,
            condition=condition,
            repetition=repetition,
            reply=reply,
            seconds=self._number(row, "seconds", place),
            started=self._text(row, "started") or None,
            failure=failure,
            scores=[]
            if reply is None
            else [
                ImportedScore(
                    scorer=name,
                    values={name: value},
                    reasons={name: self._text(row, f"reason.{name}")},
                )
                for name, value in scores.items()
            ],
            metadata={name: value for name, value in row.items() if name not in used},
        )

    def _text(self, row: Row, target: str) -> str:
        column = self._columns.get(target)
        if column is not None:
            value = row.get(column)
        else:
            value = None

        if value is None:
            return ""
        return text_of(value)

    def _number(self, row: Row, target: str, place: str) -> float | None:
        column = self._columns.get(target)
        if column is None:
            return None
        return self._score(row.get(column), place, target)

    def _score(self, value: object, place: str, target: str) -> float | None:
        """A number, or true or false in any usual spelling; None if the cell is empty."""
        if value is None or isinstance(value, (bool, int, float)):
            if value is None or not math.isfinite(value):
                return None
            return float(value)

        text = str(value).strip().lower()
        if text in _MISSING:
            return None
        if text in _TRUE or text in _FALSE:
            return float(text in _TRUE)
        try:
            number = float(text)
        except ValueError:
            number = math.nan

        if math.isfinite(number):
            return number
        self._findings.unreadable(f"'{target}' is not a number", place)
        return None


def _listed(columns: Sequence[str]) -> str:
    return some_of(columns, most=12) or "none"
