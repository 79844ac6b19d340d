"""Statistics of people against themselves: p, degrees of freedom and data against what is printed."""

from __future__ import annotations

import math
import re
from itertools import product

from karat.formats import p_value as shown_p
from karat.kinds.study.importers._humanstudy_points import Point, possible_counts
from karat.kinds.study.importers._humanstudy_statistics import Beside, Said

__all__ = ["check_point", "check_said"]

_N = re.compile(r"(?<![A-Za-z])[nN]\s*=\s*(\d[\d,]{0,11})(?![\d.])")


def check_said(one: Said, beside: Beside, *, name: str = "") -> None:
    """Notes what was compared, and what does not fit; nothing is mended. `name`: of the test, as the source has it."""
    _check_n(one, beside)
    if one.found is None:
        if one.described:
            _check_described(one, beside)
        return
    _check_p(one)
    _check_df(one, beside)
    if beside.alone and not one.nested:
        _check_effect(one, beside, variances="variance" in name.lower() and "analysis of" not in name.lower())
    if one.found.kind == "r" and not one.nested:
        _check_r(one, beside)


def check_point(point: Point) -> str:
    """What is wrong with one group's numbers; "" for nothing."""
    n, k, percentage = (point.numbers.get(key) for key in ("n", "k", "percentage"))
    if n is None or n < 1 or n > 10**6 or n != int(n):
        return ""
    if k is not None and k > n:
        return f"{k:g} of {n:g} are more than all"
    if percentage is None or not 0 <= percentage <= 100:
        return ""
    counts = possible_counts(percentage, n)
    if not counts:
        return f"no count of {n:g} prints as {percentage:g} %"
    if k is not None and k not in counts:
        return f"{k:g} of {n:g} are {round(100 * k / n, 1):g} %, {percentage:g} % is given"
    return ""


def _check_n(one: Said, beside: Beside) -> None:
    """An n or N in the string against every number of people that the source gives."""
    match = _N.search(one.text)
    if match is None or not beside.people:
        return
    one.checked.append("n")
    n = float(match[1].replace(",", ""))
    if n not in beside.people:
        named = ", ".join(f"{value:g}" for value in sorted(set(beside.people))[:8])
        one.wrong.append(f"n = {n:g} is none of the numbers of people that are given: {named}")


def _check_p(one: Said) -> None:
    from karat.replication.printed_p import printed_p

    found = one.found
    assert found is not None
    given = printed_p(found)
    if given is None:
        return
    one.checked.append("p")
    if not given.holds:
        less = "; 'p <' would hold" if found.relation == "=" and found.p is not None and given.low < found.p else ""
        printed = "n.s." if found.p is None else f"p {found.relation} {found.p:g}"
        gives = shown_p((given.low + given.high) / 2)
        equal = "" if gives.startswith("<") else "= "
        one.wrong.append(f"the statistic gives p {equal}{gives}, printed is {printed}{less}")


def _ends(one: Said) -> tuple[float, float]:
    """What was rounded to the statistic: from, to."""
    assert one.found is not None
    half = 0.5 * 10.0**-one.found.decimals
    return one.found.statistic - half, one.found.statistic + half


def _check_df(one: Said, beside: Beside) -> None:
    """Degrees of freedom against the n of the string, else against every n that the source names."""
    found = one.found
    assert found is not None
    df = found.df2 if found.kind == "F" else found.df1
    people = [float(found.n)] if found.n is not None else [n for n in dict.fromkeys(beside.people) if n > 1]
    if df is None or not people or found.kind not in {"t", "r", "F"}:
        return
    one.checked.append("df")
    if found.kind == "F":
        within = [n for n in people if df <= (n - 1) * (found.df1 or 1)]
        fits = bool(within)
    else:
        fits = any(n - df in ({1, 2} if found.kind == "t" else {2}) for n in people)
    if not fits:
        named = ", ".join(f"{n:g}" for n in sorted(set(people))[:8])
        one.wrong.append(f"{df:g} degrees of freedom fit none of the numbers of people that are given: {named}")


def _check_effect(one: Said, beside: Beside, *, variances: bool) -> None:
    """Two groups with means and deviations give t, two with shares χ², two deviations F: against what is printed."""
    found = one.found
    assert found is not None
    low, high = (abs(end) for end in _ends(one))
    low, high = min(low, high), max(low, high)
    full = [point for point in beside.points if {"n", "mean", "sd"} <= set(point.numbers)]
    shares = [point for point in beside.points if "n" in point.numbers and {"k", "percentage"} & set(point.numbers)]
    squared = found.kind == "F" and found.df1 == 1
    spreads = [point.numbers["sd"] for point in beside.points if point.numbers.get("sd", 0) > 0]
    if variances and found.kind == "F" and len(spreads) == len(beside.points) == 2:
        spans = [_variance_span(max(spreads), min(spreads))]
    elif len(full) == 2 and len(beside.points) == 2 and (found.kind == "t" or squared):
        spans = [_t_span(*(tuple(point.numbers[key] for key in ("n", "mean", "sd")) for point in full))]
        spans = [(a * a, b * b) for a, b in spans] if squared else spans
    elif len(shares) == 2 and len(beside.points) == 2 and found.kind == "chi2" and found.df1 in {1.0, None}:
        spans = [(one, one) for one in _chi_squares(*(_counts(point) for point in shares))]
    else:
        return
    spans = [span for span in spans if not math.isnan(span[0])]
    if not spans:
        return
    one.checked.append("effect")
    if not any(a <= high * (1 + 1e-6) and low <= b * (1 + 1e-6) for a, b in spans):
        given = " or ".join(dict.fromkeys(_shown(span) for span in spans[:6]))
        one.wrong.append(f"the data give {found.kind} = {given}")


def _shown(span: tuple[float, float]) -> str:
    low, high = (f"{round(end, 2):g}" for end in span)
    return low if low == high else f"{low} to {high}"


def _variance_span(larger: float, smaller: float) -> tuple[float, float]:
    """The ratio of two variances, from deviations that were rounded."""
    a, b = _half_unit(larger), _half_unit(smaller)
    return ((larger - a) / (smaller + b)) ** 2, ((larger + a) / max(smaller - b, 1e-9)) ** 2


def _half_unit(value: float) -> float:
    return 0.5 * 10.0 ** -len(f"{value:g}".partition(".")[2])


def _t_span(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, float]:
    """The size of t, from means and deviations that were rounded."""
    (n1, m1, s1), (n2, m2, s2) = first, second
    if n1 + n2 <= 2 or min(n1, n2) < 1:
        return math.nan, math.nan
    found = []
    for a, b, c, d in product(*[(-_half_unit(value), _half_unit(value)) for value in (m1, s1, m2, s2)]):
        pooled = ((n1 - 1) * (s1 + b) ** 2 + (n2 - 1) * (s2 + d) ** 2) / (n1 + n2 - 2)
        if pooled > 0:
            found.append(abs(m1 + a - m2 - c) / math.sqrt(pooled * (1 / n1 + 1 / n2)))
    return (min(found), max(found)) if found else (math.nan, math.nan)


def _counts(point: Point) -> tuple[list[int], int]:
    n = int(point.numbers["n"])
    if "k" in point.numbers:
        return [int(point.numbers["k"])], n
    return possible_counts(point.numbers["percentage"], n) if 1 <= n <= 10**6 else [], n


def _chi_squares(first: tuple[list[int], int], second: tuple[list[int], int]) -> list[float]:
    """χ² of every table that prints as the percentages, plain and with Yates's correction."""
    found = []
    for a, b in product(first[0][:20], second[0][:20]):
        n1, n2 = first[1], second[1]
        yes, no, total = a + b, n1 + n2 - a - b, n1 + n2
        if yes > 0 and no > 0 and a <= n1 and b <= n2:
            apart = abs(a * (n2 - b) - b * (n1 - a))
            scale = total / (n1 * n2 * yes * no)
            found += [apart**2 * scale, max(0.0, apart - total / 2) ** 2 * scale]
    return found


def _check_r(one: Said, beside: Beside) -> None:
    assert one.found is not None
    given = [value for value in beside.numbers if -1 <= value <= 1]
    if given and beside.alone:
        one.checked.append("data")
        if not any(math.isclose(value, one.found.statistic, abs_tol=1e-9) for value in given):
            one.wrong.append("this correlation is not among the finding's data")


def _check_described(one: Said, beside: Beside) -> None:
    """Shares, counts and means of a string must all stand in the data of its finding, where some of them do."""
    missing = [value for value in one.described if value not in beside.numbers]
    if len(missing) == len(one.described):
        return  # the data are of something else
    one.checked.append("data")
    if missing:
        one.wrong.append(f"not among the finding's data: {', '.join(f'{value:g}' for value in missing)}")
