"""Answers recorded elsewhere, replayed: score what you already have."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, create_model

from karat.agents import AgentSetting
from karat.agents._recorded import AnswerRow, Columns, OffsetRows, TableRows
from karat.documents.answers import condition_columns, error_in, is_status, stop_reason
from karat.documents.batches import Table
from karat.documents.cells import Unread, as_text
from karat.documents.columns import cell
from karat.documents.doubts import is_error_of_service
from karat.documents.names import with_role
from karat.errors import AgentFault, BadDataset, Fault
from karat.files import open_regular
from karat.journal import NO_PLAN, RunFolder
from karat.kinds import RecordedAnswers, RecordedFaults, installed
from karat.records import Condition, History, Reply, Sample, Trial, Turn, was_cut

__all__ = ["Replay"]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str = Field(description="a file of answers, or the folder of a karat run")
    id_key: str | list[str] | None = Field(
        default="id",
        description="column with the sample's id; several: rows that agree in all of them are one "
        "sample, and samples are numbered from 0; null: the row's number from 0",
    )
    answer_key: str | list[str] = Field(
        default="answer",
        min_length=1,
        description=(
            "column with the text of the answer; several: each is a condition, named after its "
            "column"
        ),
    )
    condition_key: str | list[str] | None = Field(
        default="condition",
        description="column with the condition, or several that name it together; rows without it "
        "serve all; null: there is none",
    )
    repetition_key: str = Field(
        default="repetition",
        description=(
            "column with the repetition: its different values are numbered; without it rows count "
            "up"
        ),
    )
    skip: Literal["unreadable"] | None = Field(
        default=None, description="leave unreadable rows out, and count them"
    )
    reuse: bool = Field(default=False, description="one recorded answer serves every repetition")
    latency_seconds: float = Field(
        default=0.0, ge=0.0, description="wait before each answer, to rehearse a slow agent"
    )


def _options() -> type[_Options]:
    """With a key for each dataset kind whose recorded answers have their own file format."""
    columns: dict[str, Any] = {
        kind.answer_file.option: (
            kind.recorded_columns() | None,
            Field(default=None, description=description),
        )
        for kind in installed().values()
        if kind.answer_file is not None and (description := inspect.getdoc(kind.recorded_columns()))
    }
    return create_model("Options", __base__=_Options, **columns)


class Replay:
    """Answers from a file (JSONL, CSV, JSON, Parquet) or from another karat run.

    Repetition r of a sample gets its r-th recorded answer; what was not recorded stays missing,
    unless `reuse` lets one answer serve every repetition.

    With `turns` the file has one row per turn. A turn without a row then has an empty answer:
    it is wrong, and its conversation continues.

    With `participants` it has a row for each task or round of a human study's participants. A task
    or round without a row is not answered; a participant without rows is missing.
    """

    Options = _options()

    offline = True
    # the answers may have been made with any
    context = ("skills", "plugins", "instructions", "workspace", "tools")
    indifferent = ("latency_seconds", "path")  # the answers themselves matter, not their location
    columns: Mapping[str, tuple[str, ...]] = {  # option → what a column of such a file can hold
        kind.answer_file.option: tuple(kind.recorded_columns().model_fields)
        for kind in installed().values()
        if kind.answer_file is not None
    }

    def __init__(self, options: _Options, setting: AgentSetting) -> None:
        self._options = options
        self._recorded: RecordedAnswers | None = None
        path = Path(options.path).expanduser()
        if not path.is_absolute():
            beside = setting.folder / path
            path = beside if beside.exists() else path

        for kind in installed().values():
            if kind.answer_file is not None:
                columns = getattr(options, kind.answer_file.option)
            else:
                columns = None

            if columns is not None:
                self._recorded = kind.recorded(path, columns)
                return

        if (path / "run.json").exists():
            named = Columns(
                id=("sample",),
                answers=(),
                condition=("condition",),
                repetition="repetition",
                of_karat=True,
            )
            run = RunFolder.open(path)
            self._rows: OffsetRows | TableRows = OffsetRows(run.journal, named, run=run)
            return

        is_lines = path.suffix.lower() in (".jsonl", ".ndjson")
        skip = options.skip is not None

        columns = Columns(
            id=_names(options.id_key),
            answers=_names(options.answer_key),
            condition=_names(options.condition_key),
            repetition=options.repetition_key,
        )

        self._rows = (OffsetRows if is_lines else TableRows)(path, columns, skip=skip)
        if options.condition_key == "condition" and options.id_key is not None:
            # Raises BadDataset if rows of one sample name different models, say, in a column
            # that no option names
            ids = _names(options.id_key)
            used = (*ids, *_names(options.answer_key), options.repetition_key)
            differing = condition_columns(Table(self._rows), ids, used=used)
            if not set(differing) - set(_names(options.condition_key)):
                return
            listed = ", ".join(differing)
            option = listed if len(differing) == 1 else f"[{listed}]"
            message = (
                f"rows differ in '{listed}': set `agent.condition_key: {option}` and name the "
                f"conditions after its values, or set `agent.condition_key: null` if the rows are "
                f"repetitions"
            )
            raise BadDataset(self._rows.path, [Fault(place="agent.condition_key", message=message)])

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions named in the answers, in the order of the file."""
        return tuple((self._recorded or self._rows.keys).conditions)

    @property
    def repetitions(self) -> int:
        """The most answers of one sample under one condition."""
        return (self._recorded or self._rows.keys).repetitions

    @property
    def source(self) -> dict[str, str]:
        """Where the answers come from, for `run.json`."""
        rows = self._recorded or self._rows
        with rows.open() if isinstance(rows, OffsetRows) else open_regular(rows.path) as file:
            return {"file": str(rows.path), "sha256": file_digest(file, "sha256").hexdigest()}

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> RecordedFaults | None:
        """Faults of the file with respect to the samples; None if its rows are samples."""
        if self._recorded is None:
            return None
        asked = 1 if self._options.reuse else repetitions
        return self._recorded.census(samples, conditions=conditions, repetitions=asked)

    def source_notes(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> dict[str, str]:
        """What `run.json` keeps of the file in addition to `source`."""
        if self._recorded is None:
            sentences = []
            keys = self._rows.keys
            for text in (self._rows.left_out, keys.copies.sentence(), keys.attempts.sentence()):
                if text:
                    sentences.append(text)

            if sentences:
                return {**NO_PLAN, "faults": f"the file of answers: {'; '.join(sentences)}"}
            return NO_PLAN

        asked = 1 if self._options.reuse else repetitions
        return self._recorded.notes(samples, conditions=conditions, repetitions=asked)

    @property
    def never_made(self) -> Callable[[Trial], bool] | None:
        """Whether a trial is a further repetition of a question that was answered less often than
        others, under every condition, or of a condition under which all were.

        None: all were answered equally often, or rows number their repetitions and so say which
        there should be.
        """
        if self._recorded is not None or self._options.reuse:
            return None
        keys = self._rows.keys
        if len(set(keys.counts.values())) < 2:
            return None
        of_conditions = Counter[str | None]()
        of_samples = Counter[str]()
        for (sample, condition), count in keys.rows.items():
            of_conditions[condition] = max(count, of_conditions[condition])
            of_samples[sample] = max(count, of_samples[sample])

        def never_made(trial: Trial) -> bool:
            sample = trial.sample.id
            if trial.condition.name in of_conditions:
                name = trial.condition.name
            else:
                name = None

            made = min(of_conditions[name], of_samples[sample])
            lost = keys.rows[sample, name] <= trial.repetition < made
            return (
                not lost
                and trial.repetition in range(1, self.repetitions)
                and self._row(trial, trial.repetition) is None
            )

        return never_made

    @property
    def recorded_reply(self) -> Callable[[Trial, int], Reply] | None:
        """What looks up the reply to a turn; None: it is to take as long as a slow agent."""
        if self._options.latency_seconds:
            return None
        return self._look_up

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: History,
        trial: Trial,
        number: int,
    ) -> Reply:
        await asyncio.sleep(self._options.latency_seconds)
        return self._look_up(trial, number)

    def _look_up(self, trial: Trial, number: int) -> Reply:
        sample, condition = trial.sample, trial.condition
        repetition = 0 if self._options.reuse else trial.repetition
        if self._recorded is not None:
            return self._recorded.reply(sample, number, condition.name, repetition)
        row = self._row(trial, repetition)
        if row is not None:
            if "replies" in row:
                replies: list[Any] = row["replies"]
                if number >= len(replies):
                    raise AgentFault(
                        "not_recorded",
                        f"{self._rows.path.name} holds {len(replies)} turns, asked for "
                        f"{number + 1}",
                    )

                try:
                    return msgspec.convert(replies[number], Reply)
                except msgspec.ValidationError as error:
                    raise AgentFault(
                        "bad_record", f"holds a reply that is none: {error}"
                    ) from error

            column = self._options.answer_key
            if not isinstance(column, str):
                column = condition.name if len(column) > 1 else column[0]
            text = cell(row, column)
            try:
                text = as_text(text) or ""
            except Unread as unread:
                raise AgentFault("bad_record", f"'{column}' {unread}, expected a text") from unread

            if is_error_of_service(text):
                raise AgentFault("error", text)
            if text and _is_only_text(tuple(row)):
                return Reply(text=text)
            ended = stop_reason(row)
            reported = error_in(row)
            # beside answers of several, an error may be that of another
            if reported is not None and (not text or len(self._rows.keys.answers) == 1):
                raise AgentFault("error", reported)
            if not text and not was_cut(ended):
                raise AgentFault("not_recorded", f"'{column}' is empty in {self._rows.path.name}")

            return Reply(
                text=text,
                dollars=_recorded(row, _COSTS),
                milliseconds=_recorded(row, _LATENCIES),
                stop_reason=ended,
            )

        place = f"sample '{sample.id}', condition '{condition.name}', repetition {repetition}"
        raise AgentFault("not_recorded", f"{self._rows.path.name} holds no answer for {place}")

    def _row(self, trial: Trial, repetition: int) -> AnswerRow | None:
        name = trial.condition.name
        if name in self._rows.keys.conditions:
            own = self._rows.get((trial.sample.id, name, repetition))
            if own is not None:
                return own

        return self._rows.get((trial.sample.id, None, repetition))


_LATENCIES = {"latency_seconds": 1000.0, "seconds": 1000.0, "latency_ms": 1.0, "milliseconds": 1.0}
"""Columns with the time that an answer took, and how many milliseconds their unit is."""
_COSTS = {"dollars": 1.0, "cost_usd": 1.0, "cost": 1.0}


@lru_cache
def _is_only_text(columns: tuple[str, ...]) -> bool:
    """Whether nothing in a row with these columns says more about its answer."""
    known = {*_COSTS, *_LATENCIES, *with_role(columns, "stop_reason", "error")}
    return known.isdisjoint(columns) and not any(map(is_status, columns))


def _recorded(row: AnswerRow, columns: Mapping[str, float]) -> float | None:
    """The first of these columns that holds a number of at least 0, times its unit; None if none
    does.
    """
    for name, unit in columns.items():
        if name not in row:
            continue
        try:
            value = float(row[name]) * unit
        except (TypeError, ValueError):
            continue

        if 0 <= value < math.inf:
            return value

    return None


def _names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns)
