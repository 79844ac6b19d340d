"""Answers recorded elsewhere, asked for again: score what you already have."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.agents import AgentSetting
from karat.agents._census import Census, take_census
from karat.agents._participants import ParticipantColumns, RecordedParticipants
from karat.agents._recorded import Columns, OffsetRows, TableRows
from karat.agents._turns import USUAL_NAMES, RecordedTurns, TurnColumns
from karat.errors import AgentFault
from karat.files import open_regular
from karat.journal import RunFolder
from karat.records import Condition, Reply, Sample, Trial, Turn

__all__ = ["Replay"]


class Replay:
    """Answers from a file (JSONL, CSV, JSON, Parquet) or from another karat run.

    A JSONL file is read by offset: memory does not grow with its answers, only by
    some bytes a row. Repetition r of a sample gets its r-th recorded answer; what was not
    recorded stays missing, unless `reuse` says that one answer serves every repetition.

    With `turns` the file has one row a turn. A turn without a row is then answered with nothing:
    it is wrong, and its conversation goes on.

    With `participants` it has what participants of a human study said: a row each, for each of
    their tasks or rounds. A task or round without a row is not answered; a participant without any is
    missing, as a sample without an answer is.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")

        path: str = Field(description="a file of answers, or the folder of a karat run")
        id_key: str | None = Field(
            default="id", description="column with the sample's id; null: the row's number from 0"
        )
        answer_key: str = Field(default="answer", description="column with the text of the answer")
        condition_key: str = Field(
            default="condition", description="column with the condition; rows without it serve all"
        )
        repetition_key: str = Field(
            default="repetition", description="column that counts from 0; without it rows count up"
        )
        reuse: bool = Field(default=False, description="one recorded answer serves every repetition")
        latency_seconds: float = Field(
            default=0.0, ge=0.0, description="wait before each answer, to rehearse a slow agent"
        )
        turns: TurnColumns | None = Field(
            default=None,
            description="for files with one row a turn: the names of their columns, e.g. {conversation_id: record_id}; "
            "{} looks for the usual ones; null: one row a sample",
        )
        participants: ParticipantColumns | None = Field(
            default=None,
            description="for the answers of a human study: the names of their columns, e.g. {participant: subject}; "
            "{}: as they are called below",
        )

    offline = True
    indifferent = ("latency_seconds", "path")  # which answers are there shows in the answers, not in where they lie
    columns: Mapping[str, tuple[str, ...]] = {  # option → what a column of such a file can be for
        "turns": (*USUAL_NAMES, "first_turn"),
        "participants": tuple(ParticipantColumns.model_fields),
    }

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._options = options
        self._turns: RecordedTurns | None = None
        self._participants: RecordedParticipants | None = None
        path = Path(options.path).expanduser()
        if not path.is_absolute():
            beside = setting.folder / path
            path = beside if beside.exists() else path
        if options.turns is not None:
            self._turns = RecordedTurns(path, options.turns)
        elif options.participants is not None:
            self._participants = RecordedParticipants(path, options.participants)
        elif (path / "run.json").exists():
            columns = Columns(id="sample", answer=None, condition="condition", repetition="repetition")
            run = RunFolder.open(path)
            self._rows: OffsetRows | TableRows = OffsetRows(run.journal, columns, run=run)
        elif path.suffix.lower() in (".jsonl", ".ndjson"):
            self._rows = OffsetRows(path, _columns(options))
        else:
            self._rows = TableRows(path, _columns(options))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that the answers name, in the order of the file."""
        held = self._turns or self._participants
        return tuple(held.conditions if held is not None else self._rows.keys.conditions)

    @property
    def repetitions(self) -> int:
        """The most answers of one sample under one condition."""
        held = self._turns or self._participants
        return held.repetitions if held is not None else self._rows.keys.repetitions

    @property
    def source(self) -> dict[str, str]:
        """Where the answers come from, for `run.json`."""
        held = self._turns or self._participants
        path = held.path if held is not None else self._rows.path
        with open_regular(path) as file:
            return {"file": str(path), "sha256": file_digest(file, "sha256").hexdigest()}

    def census(self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int) -> Census | None:
        """What is wrong with the file, held against what is asked; None where it has no row a turn."""
        if self._turns is None:
            return None
        return take_census(
            self._turns, samples, conditions=conditions, repetitions=1 if self._options.reuse else repetitions
        )

    def told(self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int) -> dict[str, str]:
        """The census as `run.json` keeps it beside `source`."""
        if self._participants is not None:
            asked = 1 if self._options.reuse else repetitions
            return self._participants.told(samples, conditions=conditions, repetitions=asked)
        found = self.census(samples, conditions=conditions, repetitions=repetitions)
        return {} if found is None else found.told

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: Sequence[tuple[Turn, Reply]],
        trial: Trial,
        number: int,
    ) -> Reply:
        if self._options.latency_seconds:
            await asyncio.sleep(self._options.latency_seconds)
        repetition = 0 if self._options.reuse else trial.repetition
        if self._turns is not None:
            return self._turns.reply(sample, number, condition.name, repetition)
        if self._participants is not None:
            return self._participants.reply(sample, number, condition.name, repetition)
        for key in ((sample.id, condition.name, repetition), (sample.id, None, repetition)):
            row = self._rows.get(key)
            if row is not None:
                return self._reply(row, number)
        place = f"sample '{sample.id}', condition '{condition.name}', repetition {repetition}"
        raise AgentFault("not_recorded", f"{self._rows.path.name} holds no answer for {place}")

    def _reply(self, row: Mapping[str, Any], turn: int) -> Reply:
        if "replies" in row:
            replies: list[Any] = row["replies"]
            if turn >= len(replies):
                raise AgentFault(
                    "not_recorded", f"{self._rows.path.name} holds {len(replies)} turns, asked for {turn + 1}"
                )
            return msgspec.convert(replies[turn], Reply)
        text = row.get(self._options.answer_key)
        if not isinstance(text, str):
            raise AgentFault("bad_record", f"'{self._options.answer_key}' is a {type(text).__name__}, want a text")
        return Reply(text=text, dollars=_recorded(row, _COSTS), milliseconds=_recorded(row, _LATENCIES))


_LATENCIES = {"latency_seconds": 1000.0, "seconds": 1000.0, "latency_ms": 1.0, "milliseconds": 1.0}
"""Columns with the time that an answer took, and how many milliseconds their unit is."""
_COSTS = {"dollars": 1.0, "cost_usd": 1.0, "cost": 1.0}


def _recorded(row: Mapping[str, Any], columns: Mapping[str, float]) -> float | None:
    """The first of these columns that holds a number of at least 0, times its unit; None if none does."""
    for name, unit in columns.items():
        try:
            value = float(row[name]) * unit
        except (KeyError, TypeError, ValueError):
            continue
        if 0 <= value < math.inf:
            return value
    return None


def _columns(options: Replay.Options) -> Columns:
    return Columns(
        id=options.id_key, answer=options.answer_key, condition=options.condition_key, repetition=options.repetition_key
    )
