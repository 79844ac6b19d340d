"""The questions on which two conditions differ, of one run or of two, from their indexes: page by page."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

import msgspec

from karat.viewer.queries import PAGE, timed

__all__ = ["ORDERS", "Counted", "Flipped", "Order", "Side", "attach", "counted", "flipped"]

_NOISE = 1e-12  # as in `karat.analysis.compare_runs`: thirds do not subtract exactly

Order = Literal["worst", "best", "largest"]
ORDERS: tuple[str, ...] = get_args(Order)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, by its numbers in an index."""

    schema: Literal["main", "other"]
    metric: int
    condition: int


class Flipped(msgspec.Struct, frozen=True, kw_only=True):
    """A question on which the two sides differ."""

    n: int  # its number in the first index
    other: int  # in the second one
    id: str
    question: str
    a: float
    b: float


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are."""

    up: int  # the number is higher on the second side
    down: int


def attach(base: sqlite3.Connection, path: Path) -> None:
    """Makes a second index readable as `other`. It was looked at before: foreign tables are not read."""
    base.execute("ATTACH ? AS other", (f"file:{quote(str(path))}?mode=ro",))


def flipped(
    base: sqlite3.Connection, sides: tuple[Side, Side], *, order: Order, lower: bool = False, page: int = 0
) -> list[Flipped]:
    """One page of them. `lower`: whether less is better; `worst`: what the second side lost most comes first.

    Means over repetitions are compared, of questions with the same id and content that both have numbers for.
    Raises TooSlow.
    """
    gain = "a - b" if lower else "b - a"
    by = {"worst": gain, "best": f"-({gain})", "largest": "-abs(b - a)"}[order]
    ordered = f"SELECT n, o, a, b FROM ({_both(sides)}) WHERE abs(b - a) > ? ORDER BY {by}, n LIMIT ? OFFSET ?"  # noqa: S608 -- made of constants; values are given apart
    told = "SELECT f.n, f.o, s.id, s.question, f.a, f.b FROM"
    sql = f"{told} ({ordered}) f CROSS JOIN main.samples s ON s.n = f.n ORDER BY {by}, f.n"
    given = (*_given(sides), _NOISE, PAGE, page * PAGE)
    found = timed(base, sql, given, tuple[int, int, str, str, float, float])
    return [Flipped(n=n, other=o, id=id_, question=question, a=a, b=b) for n, o, id_, question, a, b in found]


def counted(base: sqlite3.Connection, sides: tuple[Side, Side]) -> Counted:
    """How many have gone up, and down. Raises TooSlow."""
    sql = f"SELECT count(*) FILTER (WHERE b - a > ?), count(*) FILTER (WHERE a - b > ?) FROM ({_both(sides)})"  # noqa: S608 -- made of constants; values are given apart
    [(up, down)] = timed(base, sql, (_NOISE, _NOISE, *_given(sides)), tuple[int, int])
    return Counted(up=up, down=down)


def _both(sides: tuple[Side, Side]) -> str:
    """What both have a number for. Of one run that is found without the samples: they would take half of the time."""
    return _OF_ONE if sides[0].schema == sides[1].schema else _OF_TWO


_OF_ONE = (
    "SELECT a.sample n, a.sample o, a.mean a, b.mean b FROM main.cells a "
    "CROSS JOIN main.cells b ON b.metric = ? AND b.condition = ? AND b.sample = a.sample "
    "WHERE a.metric = ? AND a.condition = ?"
)
_OF_TWO = (
    "SELECT s.n n, o.n o, a.mean a, b.mean b FROM main.cells a CROSS JOIN main.samples s ON s.n = a.sample "
    "CROSS JOIN other.samples o ON o.id = s.id AND o.digest = s.digest "
    "CROSS JOIN other.cells b ON b.metric = ? AND b.condition = ? AND b.sample = o.n "
    "WHERE a.metric = ? AND a.condition = ?"
)


def _given(sides: tuple[Side, Side]) -> list[Any]:
    a, b = sides
    return [b.metric, b.condition, a.metric, a.condition]
