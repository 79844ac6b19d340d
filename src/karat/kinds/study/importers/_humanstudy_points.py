"""The numbers of people in a study folder: every one with its place, and those that say n, share, mean or spread."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from karat.formats import excerpt
from karat.kinds.study.importers._humanstudy_files import Spot, slug

__all__ = ["Point", "leaves", "points", "possible_counts", "rows", "texts"]

_DEPTH = 6  # mappings in mappings; deeper is left out
_MEANINGS = {
    "n": "n", "total_n": "n", "n_total": "n", "total": "n", "total_transitions": "n", "mean": "mean", "sd": "sd",
    "std": "sd", "percentage": "percentage", "percent": "percentage", "count": "k", "k": "k",
}  # fmt: skip
_OF_GROUP = re.compile(
    r"(?P<before>.+?)_(?P<what>percentage|percent|count|mean|sd|n|total)"
    r"|(?P<what2>percentage|percent|mean|n|count)_(?P<after>.+)"
)
_SIZE = re.compile(
    r"(?P<outer>[A-Za-z0-9]+(?: [A-Za-z0-9]+)?) ?\((?:(?P<inner>[\w /-]{1,60}), )?n ?= ?(?P<n>\d{1,9})\)"
)


@dataclass(slots=True)
class Point:
    """What is given of one group of people: n, k, mean, sd, percentage."""

    label: str
    where: str
    numbers: dict[str, float] = field(default_factory=dict)


def rows(data: Spot) -> list[tuple[str, str]]:
    """Everything in a finding's data as lines for people: `Harm condition: percentage 82, n 39`, and the place."""
    found: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for label, key, value, spot in leaves(data.get("data")):
        found.setdefault(label, []).append(f"{key} {value:g}")
        places.setdefault(label, spot.where)
    for label, key, text, spot in texts(data.get("data")):
        found.setdefault(label, []).append(f"{key} '{excerpt(text, 120)}'")
        places.setdefault(label, spot.where)
    return [(f"{label or 'all'}: {', '.join(said)}", places[label]) for label, said in found.items()]


def texts(spot: Spot, label: str = "", depth: int = 0) -> Iterator[tuple[str, str, str, Spot]]:
    """Every text below that is no number: label of its mapping, key, text, place."""
    for key, below in spot.pairs() if depth <= _DEPTH else ():
        if isinstance(below.value, dict):
            yield from texts(below, f"{label} / {key}" if label else key, depth + 1)
        elif isinstance(below.value, str) and below.number() is None and (text := below.text()) is not None:
            yield label, key, text, below


def leaves(spot: Spot, label: str = "", depth: int = 0) -> Iterator[tuple[str, str, float, Spot]]:
    """Every number below: label of its mapping, key, value, place."""
    if depth > _DEPTH:
        return
    for key, below in spot.pairs():
        if isinstance(below.value, dict):
            yield from leaves(below, f"{label} / {key}" if label else key, depth + 1)
        elif isinstance(below.value, list):
            for one in below.items()[:200]:
                if (value := one.number()) is not None:
                    yield label, key, value, one
        elif (value := below.number()) is not None:
            yield label, key, value, below


def points(data: Spot, *, shares: Collection[float] = ()) -> list[Point]:
    """The groups of people that the data points of a finding describe, in the order of the source.

    `shares`: what the finding's strings print with a `%`. A number of a row that has an n, and
    a name of its own, is a share of that n where it is one of these.
    """
    sizes = _sizes(data.get("description").text() or "")
    rows: dict[str, list[tuple[str, float, Spot]]] = {}
    for label, key, value, spot in leaves(data.get("data")):
        rows.setdefault(label, []).append((key, value, spot))
    return [point for label, row in rows.items() for point in _of_row(label, row, sizes, shares)]


def possible_counts(percentage: float, n: float) -> list[int]:
    """How many of n print as the percentage; none where no number of them does.

    >>> possible_counts(82.0, 39), possible_counts(77.0, 21)
    ([32], [])
    """
    half = 0.5 if percentage == int(percentage) else 0.5 * 10.0 ** -len(repr(percentage).partition(".")[2])
    low = max(0, math.floor((percentage - half) * n / 100) - 1)
    high = min(int(n), math.ceil((percentage + half) * n / 100) + 1)
    return [k for k in range(low, high + 1) if abs(100 * k / n - percentage) <= half + 1e-9]


def _of_row(
    label: str, row: list[tuple[str, float, Spot]], sizes: dict[str, int], shares: Collection[float]
) -> list[Point]:
    plain = Point(label or "all", row[0][2].where)
    groups: dict[str, Point] = {}
    printed: list[Point] = []
    for key, value, spot in row:
        word = key.lower()
        match = _OF_GROUP.fullmatch(word)
        if word in _MEANINGS:
            plain.numbers.setdefault(_MEANINGS[word], value)
        elif match is not None:
            group, what = match["before"] or match["after"], match["what"] or match["what2"]
            name = f"{label} / {group}" if label else group
            point = groups.setdefault(group, Point(name, spot.where))
            point.numbers.setdefault(_MEANINGS[what], value)
        elif value in shares:
            printed.append(Point(f"{label} / {key}" if label else key, spot.where, {"percentage": value}))
    _count(plain, list(groups.values()))
    for group, point in groups.items():
        if "n" not in point.numbers and group.split("_")[0] in sizes:
            point.numbers["n"] = sizes[group.split("_")[0]]
    for point in printed if "n" in plain.numbers else ():
        point.numbers["n"] = plain.numbers["n"]
    return [point for point in [plain, *groups.values(), *printed] if set(point.numbers) - {"n"}]


def _count(plain: Point, groups: list[Point]) -> None:
    """An n that is a count: of the parts of a whole (66 % and 34 % of all), or one n beside the number of all."""
    parts = [group for group in groups if {"percentage", "n"} <= set(group.numbers)]
    if len(parts) > 1 and abs(sum(group.numbers["percentage"] for group in parts) - 100) <= 1:
        whole = sum(group.numbers["n"] for group in parts)
        for group in parts:
            group.numbers |= {"k": group.numbers["n"], "n": whole}
    alone = [group for group in groups if set(group.numbers) == {"n"}]
    if len(alone) == 1 and "k" not in plain.numbers and alone[0].numbers["n"] <= plain.numbers.get("n", 0):
        plain.numbers["k"] = alone[0].numbers["n"]


def _sizes(description: str) -> dict[str, int]:
    """`Group A (Warm, n=90)` → the words that name the group, and its n; words that name two groups name none."""
    found: dict[str, int | None] = {}
    for match in _SIZE.finditer(description[:2000]):
        words = {word for name in (match["outer"], match["inner"] or "") for word in slug(name).split("_")}
        for word in words | {f"x{word}" for word in words if word.isdigit()}:
            found[word] = int(match["n"]) if word not in found else None
    return {word: n for word, n in found.items() if n is not None}
