"""What papers print where they print no statistic: shares, counts and means, against those of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, TypeVar

from karat.formats import excerpt
from karat.kinds.study.format import Level
from karat.kinds.study.human import levels_of

if TYPE_CHECKING:
    from karat.kinds.study.numbers import Numbers

__all__ = ["check_patterns", "listed"]

_Value = TypeVar("_Value")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent)")
_COUNT = re.compile(r"(\d+)\s*(?:of|/|out of)\s*(\d+)")
_MEAN = re.compile(r"\bM(?:ean)?s?\s*=\s*\$?(?P<mean>[-−]?\d+(?:\.\d+)?)")
_MEAN_SD = re.compile(r"(?<![\d.(])(?P<mean>[-−]?\d+(?:\.\d+)?)\s*\((?P<sd>\d+(?:\.\d+)?)\)(?:\s*of\s*(?P<of>\d+))?")


def check_patterns(numbers: Numbers, text: str) -> bool:
    """Shares, counts and means as papers write them without a statistic; whether there was anything to check."""
    test = numbers.test
    levels = levels_of(test, numbers.arms) or [Level(n=test.human.n, k=test.human.k, mean=test.human.mean)]
    return any(
        [
            _check_shares(numbers, levels, text),
            _check_k_of_n(numbers, levels, text),
            _check_means(numbers, levels, text),
        ]
    )


def _check_shares(numbers: Numbers, levels: Sequence[Level], text: str) -> bool:
    printed = [match[1] for match in _SHARE.finditer(text)]
    shares = [100 * one.k / one.n for one in levels if one.k is not None and one.n]
    if len(shares) != len(levels) or len(printed) != len(shares):
        return False
    good = any(
        all(abs(share - float(said)) <= 0.5 * 10.0 ** -len(said.partition(".")[2]) + 1e-6 for share, said in pairs)
        for pairs in (list(zip(shares, order, strict=True)) for order in _orders(printed))
    )
    if not good:
        found = ", ".join(f"{round(share, 2):g} %" for share in shares)
        message = f"counts give {found}, '{excerpt(text, 60)}' is printed"
        if numbers.test.use is not None and numbers.test.reason is not None:
            numbers.notes.append(message)
        else:
            numbers.fault(f"{message}; mend the numbers, or say which holds: `use:` with a `reason`")
    return True


def _check_k_of_n(numbers: Numbers, levels: Sequence[Level], text: str) -> bool:
    printed = [(int(match[1]), int(match[2])) for match in _COUNT.finditer(text)]
    counts = [(one.k, one.n) for one in levels if one.k is not None]
    if len(printed) != len(levels) or len(counts) != len(levels):
        return False
    if not any(list(order) == counts for order in _orders(printed)):
        shown = ", ".join(f"{k} of {n}" for k, n in counts)
        numbers.fault(f"the counts are {shown}, '{excerpt(text, 60)}' is printed")
    return True


def _check_means(numbers: Numbers, levels: Sequence[Level], text: str) -> bool:
    """`M = 2.33`, `2.33 (0.49)` with the standard deviation, also `2.33 (0.49) of 5`."""
    own = [(one.mean, one.sd) for one in levels if one.mean is not None]
    printed = [match.groupdict() for match in _MEAN_SD.finditer(text)] or [
        match.groupdict() for match in _MEAN.finditer(text)
    ]
    if len(own) != len(levels) or len(printed) != len(own) or not own:
        return False
    if not any(all(map(_same_mean, own, order)) for order in _orders(printed)):
        found = ", ".join(f"{mean:g}" if sd is None else f"{mean:g} ({sd:g})" for mean, sd in own)
        numbers.fault(f"the means are {found}, '{excerpt(text, 60)}' is printed")
    return True


def _same_mean(own: tuple[float | None, float | None], printed: Mapping[str, str | None]) -> bool:
    unit = float(printed.get("of") or 1)
    if unit == 0:  # `2.33 (0.49) of 0`
        return False
    for value, said in zip(own, (printed["mean"], printed.get("sd")), strict=True):
        if value is None or said is None:
            continue
        half = 0.5 * 10.0 ** -len(said.partition(".")[2]) / unit
        rounded = 0.5 * 10.0 ** -len(repr(value).partition(".")[2])
        if abs(value - float(said.replace("−", "-")) / unit) > max(half, rounded) + 1e-9:
            return False
    return True


def _orders(values: Sequence[_Value]) -> Iterator[tuple[_Value, ...]]:
    """The values in every order (papers need not follow the levels'); many of them only as they stand."""
    return permutations(values) if len(values) <= 4 else iter([tuple(values)])


def listed(values: Sequence[float]) -> str:
    """Numbers, with commas between."""
    return ", ".join(f"{value:g}" for value in values)
