"""Turns with doubtful golden answers: JSON Lines that `karat check --lint` writes and a run can
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from karat.documents.rows import read_rows
from karat.documents.validation import shown
from karat.errors import BadDataset, did_you_mean
from karat.kinds import Doubted

Quarantine = Mapping[str, Mapping[int | None, tuple[str, ...]]]
"""Conversation → turn (from 0; None: all of them) → reasons."""


def read_quarantine(path: Path, turns: Mapping[str, int]) -> Quarantine:
    """The marks of a quarantine file. `turns`: conversation → its number of turns.

    Raises BadDataset with every fault: invalid lines, and turns that the dataset does not have.
    """
    rows = read_rows(path)
    quarantine: dict[str, dict[int | None, tuple[str, ...]]] = {}
    for number, row in rows.rows:
        wrong = _wrong(row, turns)
        if wrong is not None:
            rows.fault(number, wrong)
            continue

        reasons = row["reasons"]
        marks = quarantine.setdefault(str(row["id"]), {})
        if isinstance(reasons, str):
            named = (reasons,)
        else:
            named = tuple(reasons)

        turn = row.get("turn")
        marks[turn] = tuple(dict.fromkeys([*marks.get(turn, ()), *named]))

    if rows.faults:
        raise BadDataset(str(path), rows.sorted_faults())
    return quarantine


def written(doubted: Iterable[Doubted]) -> str:
    """The file's text: one line per turn, `{"id", "turn", "reasons", "evidence"}`."""
    lines = (
        {"id": doubt.id, "turn": doubt.turn, "reasons": doubt.reasons, "evidence": doubt.evidence}
        for doubt in doubted
    )
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _wrong(row: Mapping[str, object], turns: Mapping[str, int]) -> str | None:
    name = row.get("id")
    turn = row.get("turn")
    reasons = row.get("reasons")
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        return f"'id' must be the id of a conversation, got {shown(name)}"
    if str(name) not in turns:
        if len(turns) < _MANY:
            near = did_you_mean(str(name), turns, listing=False)
        else:
            near = ""

        return f"the dataset has no conversation '{name!s:.80}'{near}"

    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool)):
        return f"'turn' must be a whole number from 0, or null for all turns, got {shown(turn)}"
    if turn is not None and not 0 <= turn < turns[str(name)]:
        return f"'{name!s:.80}' has no turn {turn}: it has {turns[str(name)]}, counted from 0"
    listed = [reasons] if isinstance(reasons, str) else reasons
    if (
        not isinstance(listed, list)
        or not listed
        or not all(isinstance(reason, str) and reason for reason in listed)
    ):
        return f"'reasons' must be a list of texts, got {shown(reasons)}"

    return None


_MANY = 2_000  # names; searching more for the nearest takes too long
