"""What pages ask the index: every question has a limit of rows and of time."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from karat.errors import KaratError
from karat.viewer.columns import Column
from karat.viewer.schema import rows

__all__ = [
    "MOST_COUNTED",
    "PAGE",
    "Cell",
    "Filter",
    "Listed",
    "Place",
    "TooSlow",
    "count",
    "listed",
    "neighbour",
    "place_of",
    "timed",
]

PAGE = 50
MOST_COUNTED = 100_000
_SECONDS = 5.0
_STEPS = 20_000  # of SQLite's machine between two looks at the clock

Sort = Literal["position", "gap", "worst", "best", "variance"]
_Row = TypeVar("_Row")


class TooSlow(KaratError):
    """A filter that looks at more of a large run than a page may."""

    def __init__(self) -> None:
        super().__init__("this filter takes too long on a run of this size: narrow it, or use `karat query`")


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions, in which order."""

    sort: Sort = "position"
    metric: str = ""  # of the score range and of sorting; empty: the first
    condition: str = ""  # of range, failure, diagnosis and claims; empty: any
    low: float | None = None  # of the mean of one question under a condition
    high: float | None = None
    label: str = ""  # name=value; =value: of any name
    failure: str = ""  # kind; "any"
    claims: bool = False  # with unverified claims
    text: str = ""
    study: str = ""
    arm: str = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One question under one condition."""

    condition: int
    mean: float | None
    sd: float | None
    n: int
    answers: int
    failures: int


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One question of a list."""

    n: int
    id: str
    position: int
    question: str
    turns: int
    gap: float | None
    cells: tuple[Cell, ...]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a question stands in samples.jsonl."""

    n: int
    id: str
    position: int
    at: int
    length: int


def listed(base: sqlite3.Connection, wanted: Filter, shown: Sequence[Column], *, page: int = 0) -> list[Listed]:
    """One page of questions. Raises TooSlow."""
    column = _column(wanted, shown)
    query, given = _query(wanted, column, base)
    gap = "t.gap" if column is not None else "NULL"
    told = f"SELECT s.n, s.id, s.position, s.question, s.turns, {gap}"
    sql = f"{told} {query} {_order(wanted, column)} LIMIT ? OFFSET ?"
    found = timed(base, sql, (*given, PAGE, page * PAGE), tuple[int, str, int, str, int, float | None])
    return [
        Listed(n=n, id=id_, position=position, question=question, turns=turns, gap=gap, cells=_cells(base, n, column))
        for n, id_, position, question, turns, gap in found
    ]


def count(base: sqlite3.Connection, wanted: Filter, shown: Sequence[Column]) -> int:
    """How many questions a filter finds, up to one more than MOST_COUNTED. Raises TooSlow."""
    query, given = _query(wanted, _column(wanted, shown), base)
    sql = f"SELECT count(*) FROM (SELECT 1 {query} LIMIT {MOST_COUNTED + 1})"  # noqa: S608 -- made of constants; values are given apart
    return timed(base, sql, given, tuple[int])[0][0]


def neighbour(base: sqlite3.Connection, wanted: Filter, shown: Sequence[Column], at: int) -> int | None:
    """The question at a place of a list, from 0. Raises TooSlow."""
    if at < 0:
        return None
    column = _column(wanted, shown)
    query, given = _query(wanted, column, base)
    found = timed(base, f"SELECT s.n {query} {_order(wanted, column)} LIMIT 1 OFFSET ?", (*given, at), tuple[int])
    return found[0][0] if found else None


def place_of(base: sqlite3.Connection, n: int) -> Place | None:
    """Where a question's line is."""
    sql = "SELECT n, id, position, at, length FROM samples WHERE n = ?"
    found = rows(base, sql, (n,), tuple[int, str, int, int, int])
    return next(
        (Place(n=n, id=id_, position=position, at=at, length=length) for n, id_, position, at, length in found), None
    )


def _column(wanted: Filter, shown: Sequence[Column]) -> Column | None:
    return next((one for one in shown if one.key == wanted.metric), shown[0] if shown else None)


def _query(wanted: Filter, column: Column | None, base: sqlite3.Connection) -> tuple[str, list[Any]]:
    """FROM and WHERE of a filter, and what is put into it."""
    given: list[Any] = []
    joined = "FROM samples s"
    if column is not None:
        # The order in which the tables are read is the order in which rows come.
        joined = (
            "FROM samples s LEFT JOIN standings t ON t.metric = ? AND t.sample = s.n"
            if wanted.sort == "position"
            else "FROM standings t CROSS JOIN samples s ON s.n = t.sample AND t.metric = ?"
        )
        given.append(column.n)
    parts = [
        _range(wanted, column),
        _failed(wanted),
        _labelled(wanted),
        _claimed(wanted),
        _said(wanted),
        _took_part(wanted),
    ]
    where = [one for one in parts if one is not None]
    condition = _condition(wanted, base)
    given += [condition if value is _CONDITION else value for _, values in where for value in values]
    told = " AND ".join(sql for sql, _ in where) or "1"
    return f"{joined} WHERE {told}", given


_CONDITION = object()
_Part = tuple[str, list[Any]]


def _condition(wanted: Filter, base: sqlite3.Connection) -> int | None:
    """The number of the condition; −1, which none has, for a name that is not there."""
    if not wanted.condition:
        return None
    row = base.execute("SELECT n FROM conditions WHERE name = ?", (wanted.condition,)).fetchone()
    return -1 if row is None else int(row[0])


def _range(wanted: Filter, column: Column | None) -> _Part | None:
    if column is None or (wanted.low is None and wanted.high is None):
        return None
    low = -1e308 if wanted.low is None else wanted.low
    high = 1e308 if wanted.high is None else wanted.high
    return _IN_RANGE, [column.n, low, high, _CONDITION]


def _failed(wanted: Filter) -> _Part | None:
    if not wanted.failure:
        return None
    return (_FAILED, [_CONDITION]) if wanted.failure == "any" else (_FAILED_SO, [wanted.failure, _CONDITION])


def _labelled(wanted: Filter) -> _Part | None:
    name, equals, value = wanted.label.partition("=")
    if not name and equals:
        return _LABELLED_SO, [value, _CONDITION]
    return (_LABELLED, [name, value, _CONDITION]) if equals else None


def _took_part(wanted: Filter) -> _Part | None:
    if wanted.study:
        return (_TOOK_PART, [wanted.study, wanted.arm]) if wanted.arm else (_IN_STUDY, [wanted.study])
    return (_IN_ARM, [wanted.arm]) if wanted.arm else None


def _claimed(wanted: Filter) -> _Part | None:
    return (_CLAIMED, [_CONDITION]) if wanted.claims else None


def _said(wanted: Filter) -> _Part | None:
    """Questions whose id, text, golden answer or answers hold all words; the last one may be a beginning."""
    words = re.findall(r"[^\W_]+", wanted.text[:200])[:10]
    match = " ".join(f'"{word}"' for word in words) + "*"
    return (_SAID, [match, match, _CONDITION]) if words else None


_IN_RANGE = (
    "EXISTS (SELECT 1 FROM conditions d CROSS JOIN cells c ON c.metric = ? AND c.condition = d.n AND c.sample = s.n "
    "WHERE c.mean BETWEEN ? AND ? AND ifnull(?, d.n) = d.n)"
)
_FAILED = "s.n IN (SELECT sample FROM trials WHERE kind IS NOT NULL AND ifnull(?, condition) = condition)"
_FAILED_SO = "s.n IN (SELECT sample FROM trials WHERE kind = ? AND ifnull(?, condition) = condition)"
_LABELLED = (
    "s.n IN (SELECT r.sample FROM labels l JOIN trials r ON r.n = l.trial "
    "WHERE l.name = ? AND l.value = ? AND ifnull(?, r.condition) = r.condition)"
)
_LABELLED_SO = (
    "s.n IN (SELECT r.sample FROM labels l JOIN trials r ON r.n = l.trial "
    "WHERE l.value = ? AND ifnull(?, r.condition) = r.condition)"
)
_TOOK_PART = "s.n IN (SELECT sample FROM arms WHERE study = ? AND arm = ?)"
_IN_STUDY = "s.n IN (SELECT sample FROM arms WHERE study = ?)"
_IN_ARM = "s.n IN (SELECT sample FROM arms WHERE arm = ?)"
_CLAIMED = (
    "s.n IN (SELECT r.sample FROM scores x INDEXED BY scores_claims JOIN trials r ON r.n = x.trial "
    "WHERE x.claims > 0 AND ifnull(?, r.condition) = r.condition)"
)
_SAID = (
    "s.n IN (SELECT rowid / 2 FROM words WHERE words MATCH ? AND rowid % 2 = 0 UNION "
    "SELECT r.sample FROM words w JOIN trials r ON r.n = w.rowid / 2 WHERE words MATCH ? AND w.rowid % 2 = 1 "
    "AND ifnull(?, r.condition) = r.condition)"
)


def _order(wanted: Filter, column: Column | None) -> str:
    if column is None or wanted.sort == "position":
        return "ORDER BY s.position, s.n"
    lower = column.direction == "lower"
    if wanted.sort == "worst":
        return "ORDER BY t.high DESC, t.sample DESC" if lower else "ORDER BY t.low, t.sample"
    if wanted.sort == "best":
        return "ORDER BY t.low, t.sample" if lower else "ORDER BY t.high DESC, t.sample DESC"
    return "ORDER BY t.gap DESC, t.sample DESC" if wanted.sort == "gap" else "ORDER BY t.sd DESC, t.sample DESC"


def _cells(base: sqlite3.Connection, sample: int, column: Column | None) -> tuple[Cell, ...]:
    trials = rows(
        base,
        "SELECT condition, count(answer_at), count(kind) FROM trials WHERE sample = ? GROUP BY condition",
        (sample,), tuple[int, int, int],
    )  # fmt: skip
    means: dict[int, tuple[float, float | None, int]] = {}
    if column is not None:
        found = rows(
            base,
            "SELECT c.condition, c.mean, c.sd, c.n FROM conditions d CROSS JOIN cells c "
            "ON c.metric = ? AND c.condition = d.n AND c.sample = ?",
            (column.n, sample), tuple[int, float, float | None, int],
        )  # fmt: skip
        means = {condition: (mean, sd, n) for condition, mean, sd, n in found}
    made = []
    for condition, answers, failures in trials:
        mean, sd, n = means.get(condition, (None, None, 0))
        made.append(Cell(condition=condition, mean=mean, sd=sd, n=n, answers=answers, failures=failures))
    return tuple(made)


def timed(base: sqlite3.Connection, sql: str, given: Sequence[Any], row: type[_Row]) -> list[_Row]:
    """Rows of the types that are promised, within the time that a page may take. Raises TooSlow."""
    end = time.monotonic() + _SECONDS
    base.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        return rows(base, sql, given, row)
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise TooSlow from error
        if "phrase" in str(error):  # letters that are younger than the index's list of letters
            raise KaratError("the search does not know some of these letters: use `karat query`") from error
        raise
    finally:
        base.set_progress_handler(None, 0)
