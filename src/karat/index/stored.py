"""Stores the index of a large run that has ended in the user's cache: its columns as they are in
memory.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import msgspec

from karat.index.cache import LARGE, CacheFile
from karat.index.run_index import FailureCount, FailureGroup, Places, RunIndex, ScoreRows
from karat.index.spending import CallRows, Doubles, Ints, Tally
from karat.journal import Decided, Gap, Horizon, PlanInfo, ScorerInfo

if TYPE_CHECKING:
    from karat.journal import RunFolder


class _Rows(msgspec.Struct):
    """The attributes of `ScoreRows`."""

    at: Ints
    cells: Ints
    turns: Ints
    judges: Ints
    repeats: Ints
    values: dict[str, Doubles]
    names: dict[str, int]
    numbers: set[str]
    labels: dict[tuple[str, str], Ints]
    claims: Ints
    offline: bool
    too_large: int
    partial: dict[int, set[tuple[int, int, int]]]


class _Stored(msgspec.Struct):
    """The attributes of `RunIndex` once everything is read."""

    end: int
    gaps: tuple[Gap, ...]
    plan: PlanInfo
    scorers: dict[str, ScorerInfo]
    samples: dict[str, int]
    positions: Ints
    digests: list[str]
    clusters: list[str | None]
    sample_lines: Ints
    answered: bytearray
    answers: Ints
    retried: bytearray
    failed: Ints
    score_failed: dict[tuple[int, str | None], tuple[str | None, int]]
    failures: Places
    attempts: Places
    groups: dict[FailureGroup, FailureCount]
    completed: dict[str, bool]
    tallies: list[Tally]
    unassigned: Tally
    calls: CallRows
    scores: dict[tuple[str, str], _Rows]
    newest: dict[str, str]
    duplicates: int
    outside_plan: int
    foreign_lines: int
    orphan_scores: int
    horizon: Horizon | None
    decisions: dict[tuple[str, str], Decided]


def read_index(run: RunFolder, *, at_least: int = LARGE) -> RunIndex:
    """The index of a run, read in one pass, or from the user's cache if the run has ended and has
    `at_least` bytes.

    Raises BadRun at a damaged line.
    """
    file = CacheFile(run, "index", at_least=at_least)
    index = _restored(run, file.read())
    if index is None:
        index = RunIndex(run)
        index.read()
        if file.possible and not index.open_trials:
            file.write(_encoder.encode(_stored(index)))

    return index


def _stored(index: RunIndex) -> _Stored:
    attributes = {name: getattr(index, name) for name in _Stored.__struct_fields__}
    rows = {
        key: _Rows(**{name: getattr(rows, name) for name in _Rows.__struct_fields__})
        for key, rows in index.scores.items()
    }
    return _Stored(**attributes | {"scores": rows})


def _restored(run: RunFolder, data: bytes | None) -> RunIndex | None:
    """The stored index; None if there is none, or it cannot be read."""
    if data is None:
        return None
    try:
        stored = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError, IndexError):
        return None

    index = RunIndex(run, plan=stored.plan, scorers=tuple(stored.scorers.values()))
    for name in _Stored.__struct_fields__:
        setattr(index, name, getattr(stored, name))
    run.gaps = index.gaps
    index.planned = len(index.samples) * len(index.conditions) * index.repetitions
    index.scores = {}
    for key, columns in stored.scores.items():
        rows = index.scores[key] = ScoreRows()
        rows.incomplete.places = columns.partial
        for name in _Rows.__struct_fields__:
            if name != "partial":
                setattr(rows, name, getattr(columns, name))

    return index


def _encode(value: Any) -> bytes:
    assert isinstance(value, array)
    return value.typecode.encode() + value.tobytes()


def _decode(wanted: Any, value: Any) -> Any:
    del wanted  # msgspec knows every other type
    values: array[Any] = array(chr(value[0]))
    values.frombytes(memoryview(value)[1:])
    return values


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode)
_decoder = msgspec.msgpack.Decoder(_Stored, dec_hook=_decode)
