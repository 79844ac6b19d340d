"""What is wrong with a file of answers, seen from the dataset: all of it, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from karat.agents._turns import Key, RecordedTurns, TurnFault, conversation_of
from karat.records import Sample

__all__ = ["Census", "take_census"]

_WORDS = {
    "unknown_id": ("row", "rows", "of a conversation that is not asked for (left out)"),
    "unknown_turn": ("row", "rows", "of a turn that the conversation does not have (left out)"),
    "unknown_condition": ("row", "rows", "of a condition or repetition that is not asked for (left out)"),
    "duplicate": ("further row", "further rows", "for a turn that has one (the first counts)"),
    "missing_turn": ("turn", "turns", "without a row (wrong)"),
    "other_question": ("row", "rows", "with another question than the dataset's (scored all the same)"),
    "bad_row": ("row", "rows", "that cannot be read (left out)"),
    "bad_value": ("value", "values", "of a kind that its column cannot hold"),
}


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """A file of answers held against the dataset."""

    rows: int  # in the file
    used: int  # rows that answer a turn
    turns: int  # that the dataset asks, under every condition and in every repetition
    columns: Mapping[str, str]  # what each column was taken for
    faults: tuple[TurnFault, ...]
    hint: str | None = None  # what may lie behind the faults

    @property
    def counts(self) -> dict[str, int]:
        """How many rows or turns each kind of fault concerns, in one order."""
        met: Counter[str] = Counter()
        for fault in self.faults:
            met[fault.kind] += fault.count
        return {kind: met[kind] for kind in _WORDS if met[kind]}

    @property
    def lines(self) -> list[str]:
        """The counts in words."""
        return [f"{count} {_WORDS[kind][count != 1]} {_WORDS[kind][2]}" for kind, count in self.counts.items()]

    @property
    def told(self) -> dict[str, str]:
        """For `run.json`: what the file holds, and the faults as counts and as a sentence."""
        found = {"rows": str(self.rows), "rows_used": str(self.used), "turns": str(self.turns)}
        found["columns"] = " ".join(f"{target}={name}" for target, name in self.columns.items())
        found.update({kind: str(count) for kind, count in self.counts.items()})
        if self.faults:
            hint = f"; {self.hint}" if self.hint else ""
            found["faults"] = "the file of answers has faults: " + "; ".join(self.lines) + hint
        return found


def take_census(
    held: RecordedTurns, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
) -> Census:
    """Every row is used or a fault, and every turn has a row or is one."""
    asked = list(samples)
    used: dict[Key, None] = {}
    faults: list[TurnFault] = list(held.faults)
    for repetition in range(repetitions):
        for condition in conditions:
            place = _place(condition if len(conditions) > 1 else None, repetition if repetitions > 1 else None)
            for sample in asked:
                faults += _seen(held, sample, (condition, repetition), place, used)
    turns = {sample.id: len(sample.turns) for sample in asked}
    left = [key for key in held.rows if key not in used]
    faults += [_unused(held, key, turns, conditions, repetitions) for key in left]
    return Census(
        rows=held.count,
        used=len(used),
        turns=sum(turns.values()) * len(conditions) * repetitions,
        columns=held.columns,
        faults=tuple(faults),
        hint=_hint(held, left, turns, repetitions),
    )


def _place(condition: str | None, repetition: int | None) -> str:
    parts = [f"condition '{condition}'"] if condition is not None else []
    return "".join(f", {part}" for part in [*parts, *([f"repetition {repetition}"] if repetition is not None else [])])


def _seen(
    held: RecordedTurns, sample: Sample, which: tuple[str, int], place: str, used: dict[Key, None]
) -> list[TurnFault]:
    """Marks the rows of one conversation as used; what is wrong with them."""
    faults, missing = [], []
    for number, turn in enumerate(sample.turns):
        key = held.find(sample.id, number, *which)
        if key is None:
            missing.append(number)
            continue
        row = held.rows[key]
        if key not in used and row.question is not None and _folded(row.question) != _folded(turn.question):
            message = f"asks {row.question!r:.60}, turn {number} of '{sample.id}' is {turn.question!r:.60}"
            faults.append(TurnFault(kind="other_question", place=row.place, message=message))
        used[key] = None
    if missing:
        whole = len(missing) == len(sample.turns)
        names = ", ".join(map(str, missing))
        message = "has no row at all" if whole else f"has no row for {'turn' if len(missing) == 1 else 'turns'} {names}"
        fault = TurnFault(
            kind="missing_turn", place=f"conversation '{sample.id}'{place}", message=message, count=len(missing)
        )
        faults.append(fault)
    return faults


def _unused(
    held: RecordedTurns, key: Key, turns: Mapping[str, int], conditions: Sequence[str], repetitions: int
) -> TurnFault:
    place, name, (_, turn, condition, repetition) = held.rows[key].place, conversation_of(key), key
    if condition is not None and condition not in conditions:
        message = f"condition '{condition}' is not asked for"
        return TurnFault(kind="unknown_condition", place=place, message=message)
    if repetition >= repetitions:
        message = f"repetition {repetition} is not asked for: there are {repetitions}, counted from 0"
        return TurnFault(kind="unknown_condition", place=place, message=message)
    if name in turns:
        count = turns[name]
        has = f"turns 0 to {count - 1}" if count > 1 else "turn 0 only"
        said = f"turn {turn}" if turn is not None else f"'{key[0]}'"
        return TurnFault(kind="unknown_turn", place=place, message=f"{said}: '{name}' has {has}")
    return TurnFault(kind="unknown_id", place=place, message=f"no conversation is called '{key[0]}'")


def _hint(held: RecordedTurns, left: Sequence[Key], turns: Mapping[str, int], repetitions: int) -> str | None:
    """What may lie behind the faults."""
    past_the_end = sum(turns.get(name) == turn for name, turn, _, _ in left)
    if past_the_end and held.first_turn == 0 and all(turn for _, turn, _, _ in held.rows):
        return "no row is of turn 0: if the file counts turns from 1, say --map first_turn=1"
    if held.rows and len(left) == len(held.rows):
        theirs, ours = next(iter(held.rows))[0], next(iter(turns), "")
        return f"no row is of this dataset: the file's ids look like '{theirs}', the dataset's like '{ours}'"
    if repetitions > (most := held.repetitions):
        kept = f"{most} {'answer' if most == 1 else 'answers'} to a turn, and {repetitions} repetitions are asked for"
        return f"the file has {kept}: set execution.num_repetitions to {most}"
    return None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
