"""Answers of study participants that were recorded elsewhere: one row per participant and task, or
member and round.

A row names the `participant` and gives either the literal `text` of the answer or `answers`, an
object of field → answer. A column that is absent matches everything: without `task` the row applies
to every task of the participant, without `condition` to every condition, without `study` and `arm`
to any they take part in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import msgspec
from pydantic import BaseModel, ConfigDict

from karat.documents.answers import Repetitions, repetition_value
from karat.errors import AgentFault, BadDataset, Fault, did_you_mean
from karat.formats import plural
from karat.kinds import read_rows
from karat.records import Reply, Sample

_MOST_FAULTS = 50
_PLACES = ("study", "arm", "task", "round", "condition")

Key = tuple[str, tuple[str | None, ...], int]
"""The participant; then study, arm, task, round and condition (None: any); then the repetition,
from 0.
"""


class ParticipantColumns(BaseModel):
    """For the answers of a human study: column names, e.g. {participant: subject}; {}: the names
    below.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    participant: str = "participant"  # the participant's id; in games the member's
    study: str = "study"  # in a run of several studies
    arm: str = "arm"  # the participant's arm
    task: str = "task"  # the task's name in the study; if it has none, its prompt's file
    round: str = "round"  # of a game, counted from 1
    text: str = "text"  # the answer, word for word
    answers: str = "answers"  # instead of a text: an object of field → answer
    condition: str = "condition"  # without it a row applies to every condition
    # its different values are numbered; without it rows are numbered in file order
    repetition: str = "repetition"


class RecordedParticipants:
    """The rows of a file, held in memory, by who answered and where."""

    def __init__(self, path: Path, columns: ParticipantColumns) -> None:
        """Raises BadDataset that lists every unusable row."""
        self.path = path
        self.conditions: dict[str, None] = {}  # in file order
        self.repetitions = 1
        self._columns = columns
        self._rows: dict[Key, str | Mapping[str, object]] = {}
        self._met: Counter[tuple[str, tuple[str | None, ...]]] = Counter()
        table = read_rows(path)
        faults = list(table.faults)
        self._repetitions = Repetitions()
        for _, row in table.rows:
            with suppress(ValueError):  # a fault of the row, below
                value = repetition_value(row.get(columns.repetition), columns.repetition)
                self._repetitions.add(
                    str(row.get(columns.participant)), _text(row.get(columns.condition)), value
                )

        for number, row in table.rows:
            try:
                self._add(row)
            except ValueError as error:
                faults.append(Fault(place=f"{table.unit} {number}", message=str(error)))

        if faults:
            raise BadDataset(str(path), faults[:_MOST_FAULTS])

    def reply(self, sample: Sample, turn: int, condition: str, repetition: int) -> Reply:
        """The recorded reply; empty, with `stop_reason` "not_recorded", if only this turn has no
        row.

        Raises AgentFault if the whole sample has no row: a participant without any reply has not
        answered.
        """
        key = self._find(sample, turn, condition, repetition)
        if key is None:
            if all(
                self._find(sample, at, condition, repetition) is None
                for at in range(len(sample.turns))
            ):
                place = f"sample '{sample.id}', condition '{condition}', repetition {repetition}"
                raise AgentFault("not_recorded", f"{self.path.name} holds no row for {place}")

            return Reply(text="", stop_reason="not_recorded", dollars=0.0)

        recorded = self._rows[key]
        if not isinstance(recorded, str):
            fields = sample.detail["fields"][turn]
            recorded = msgspec.json.encode(
                {name: value for name, value in recorded.items() if name in fields}
            ).decode()

        return Reply(text=recorded, dollars=0.0)

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> None:
        """None: `notes` reports everything known about the file."""

    def notes(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> dict[str, str]:
        """For `run.json`: how many rows are used, how many turns have none, and a sentence on
        both.
        """
        used: set[Key] = set()
        turns = missing = 0
        for sample in samples:
            for turn, condition, repetition in product(
                range(len(sample.turns)), conditions, range(repetitions)
            ):
                key = self._find(sample, turn, condition, repetition)
                turns += 1
                if key is None:
                    missing += 1
                else:
                    used.add(key)

        counts = {"rows": str(len(self._rows)), "rows_used": str(len(used)), "turns": str(turns)}
        left = len(self._rows) - len(used)
        faults = []
        if left:
            faults.append(f"{plural(left, 'row')} for nobody in the run (left out)")
        if missing:
            faults.append(f"{plural(missing, 'turn')} without a row (not answered)")
        if faults:
            counts["faults"] = f"the file of answers has faults: {'; '.join(faults)}"
        return counts

    def _find(self, sample: Sample, turn: int, condition: str, repetition: int) -> Key | None:
        """The most specific row that matches."""
        if "study" not in sample.detail:
            return None
        detail = sample.turns[turn].detail
        known = {"study": sample.detail["study"], **detail, "condition": condition}
        places = [
            (str(known[name]), None) if known.get(name) is not None else (None,) for name in _PLACES
        ]
        member = detail.get("member")
        if member is not None:
            names = [str(sample.detail["members"][member]["participant"])]
        else:  # in a run of several studies samples are named STUDY/ID
            names = [sample.id, sample.id.removeprefix(f"{sample.detail['study']}/")]

        for who in names:
            for place in product(*places):
                if (who, place, repetition) in self._rows:
                    return who, place, repetition

        return None

    def _add(self, row: Mapping[str, object]) -> None:
        """Raises ValueError with what is wrong with the row."""
        columns = self._columns
        who = row.get(columns.participant)
        if who in (None, "") or isinstance(who, (dict, list, bool)):
            if columns.participant not in row:
                hint = did_you_mean(columns.participant, row)
            else:
                hint = ""

            raise ValueError(f"'{columns.participant}' must name the participant{hint}")

        place = tuple(_text(row.get(getattr(columns, name))) for name in _PLACES)
        value = repetition_value(row.get(columns.repetition), columns.repetition)
        if value is None:
            number = self._met[str(who), place]
            self._met[str(who), place] += 1
        else:
            number = self._repetitions.number(str(who), place[-1], value)

        key = str(who), place, number
        if key in self._rows:
            if value is None:
                at = ""
            else:
                at = f", repetition {value}"

            raise ValueError(f"a second row for '{who}' in the same place{at}")

        answers = row.get(columns.answers)
        text = row.get(columns.text)
        if isinstance(answers, dict):
            self._rows[key] = answers
        elif isinstance(text, str):
            self._rows[key] = text
        else:
            wanted = f"'{columns.text}', a text, or '{columns.answers}', an object"
            raise ValueError(f"needs {wanted} (it has: {', '.join(map(str, row))})")

        if place[-1] is not None:
            self.conditions[place[-1]] = None
        self.repetitions = max(self.repetitions, key[2] + 1)


def _text(value: object) -> str | None:
    if value in (None, ""):
        return None
    return str(value)
