"""The statistics of people in a study folder: each string read, and held against everything that stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from karat.formats import excerpt
from karat.kinds.study.importers._humanstudy_files import Spot
from karat.kinds.study.importers._humanstudy_points import Point, leaves, texts

if TYPE_CHECKING:
    from karat.replication import Reported

__all__ = ["Beside", "Said", "nested", "numbers_of", "said", "shares_in"]

_START = re.compile(
    r"(?<![A-Za-z])(?:χ\s*\^?\s*[²2]|chi[- ]?squared?|chi2|x\s*\^?\s*[²2]|rs?|rho|ρ|[tfzu])\s*"
    r"(?:[(\[][^()\[\]]*[)\]])?\s*=",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"(?<![\d.])(\d+(?:\.\d+)?)\s*(?:%|percent\b)(?!\s*level)|percentage\s*=\s*(\d+(?:\.\d+)?)", re.IGNORECASE
)
_COUNT = re.compile(r"(?<![\d.^/=])(\d{1,12})\s*(?:of|/|out of)\s*(\d{1,12})(?![\d./])")
_PAIR = re.compile(r"(?<![\d.=])(\d{1,12})\s*(?:vs\.?|versus)\s*(\d{1,12})(?![\d.]|\s*%)")
_MEAN = re.compile(r"\bM(?:ean)?\b[^=;,\n]{0,20}=\s*[$€£]?\s*([-+−]?\d{1,12}(?:\.\d+)?)")
_LONGEST = 2000  # characters of a string with results
_MOST = 10.0**15  # of a statistic, and of degrees of freedom
_NESTED = {"t": "t", "f": "F", "r": "r", "rs": "rs", "rho": "rs", "correlation": "r", "z": "z", "u": "U",
           "chi2": "chi2", "chisquare": "chi2"}  # fmt: skip


@dataclass(slots=True)
class Said:
    """One string with results of people: what it gives, what was compared, and what did not fit."""

    text: str
    where: str
    found: Reported | None = None
    described: tuple[float, ...] = ()  # shares, counts and means, where it has no statistic
    why: str = ""  # it cannot be read
    nested: bool = False  # a number in the data, not a string for people
    checked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def read(self) -> bool:
        """Whether it gives anything that a test can be made of."""
        return self.found is not None or bool(self.described)


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """What a string can be held against."""

    points: Sequence[Point] = ()  # of its finding
    numbers: Sequence[float] = ()  # every number in the data of its finding
    people: Sequence[float] = ()  # sizes that the source names anywhere
    alone: bool = False  # it is the only statistic of its finding


def said(spot: Spot) -> list[Said]:
    """The statistics of a string: several where it prints several. One that cannot be read is one, with the reason."""
    text = spot.text()
    if text is None:
        return []
    line = " ".join(text[:_LONGEST].split())
    return [_read(part, spot.where) for part in _parts(line)]


def nested(data: Spot) -> list[Said]:
    """Statistics in the data, as numbers (`consensus_f: 17.7` is F = 17.7) or within texts."""
    found = [
        one
        for _, _, text, spot in texts(data.get("data"))
        if _START.search(text[:_LONGEST])
        for one in said(spot)
        if one.found is not None
    ]
    for one in found:
        one.nested = True
    for label, key, value, spot in leaves(data.get("data")):
        kind = _NESTED.get(re.sub(r".*_", "", key.lower()).strip())
        if kind is not None:
            one = _read(f"{kind} = {value:g}", spot.where)
            one.nested = True
            one.text = f"{label + ': ' if label else ''}{key} = {value:g}"
            found.append(one)
    return found


def numbers_of(data: Spot) -> list[float]:
    """Every number of a finding's data."""
    return [value for _, _, value, _ in leaves(data.get("data"))]


def shares_in(text: str) -> list[float]:
    """The percentages that a text prints."""
    return [value for match in _SHARE.finditer(text) if (value := float(match[1] or match[2])) <= _MOST]


def _parts(text: str) -> list[str]:
    """A string for each statistic that it prints, cut at the last `;`, `,` or `and` before the next one."""
    starts = [match.start() for match in _START.finditer(text)]
    cuts = [0]
    for before, start in pairwise(starts):
        between = text[before:start]
        marks = [match.end() for match in re.finditer(r";|,|\band\b", re.sub(r"\([^()]*\)", _blank, between))]
        semicolon = between.rfind(";") + 1
        cuts.append(before + (semicolon or (marks[-1] if marks else len(between))))
    parts = [text[begin:end].strip(" ;,") for begin, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]
    return [part for part in parts if part] or [text]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _read(text: str, where: str) -> Said:
    from karat.replication import parse_reported

    one = Said(text=text, where=where)
    try:
        found = parse_reported(text)
        one.found = found if all(abs(value) <= _MOST for value in (found.statistic, *found.dfs, found.n or 0)) else None
        one.why = "" if one.found is not None else "has a number beyond all bounds"
    except (ValueError, OverflowError) as error:
        one.described = tuple(_described(text))
        if not one.described:
            message = str(error)
            only_p = re.search(r"(?<![A-Za-z])p\s*[=<>≤≥]\s*\.?\d", text) and "cannot read a statistic" in message
            one.why = "gives a p and no statistic" if only_p else excerpt(_reason(message), 90)
    return one


def _reason(message: str) -> str:
    """parse_reported's sentence without the string, which is quoted beside it."""
    if "cannot read a statistic" in message:
        return "has no statistic, share, count or mean that can be read"
    return re.sub(r" (?:in|of) '.*", "", message.removeprefix("reported: "))


def _described(text: str) -> Iterable[float]:
    yield from shares_in(text)
    for match in _COUNT.finditer(text):
        yield float(match[1])
    for match in _PAIR.finditer(text):
        yield from (float(match[1]), float(match[2]))
    for match in _MEAN.finditer(text):
        yield float(match[1].replace("−", "-"))
