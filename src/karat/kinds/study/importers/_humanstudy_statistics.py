"""Reads the human statistics of a study folder, and checks each against the other numbers given with it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, product

import msgspec

from karat.formats import excerpt
from karat.formats import p_value as shown_p
from karat.kinds.study.importers._humanstudy_files import Spot, slug
from karat.replication import Reported, parse_reported
from karat.replication.printed_p import printed_p

__all__ = [
    "Beside",
    "Point",
    "ReportedText",
    "check_point",
    "check_reported_text",
    "leaves",
    "nested",
    "numbers_of",
    "points",
    "reported_in",
    "rows",
    "shares_in",
]

_DEPTH = 6  # of nested mappings; deeper ones are left out
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


class Point(msgspec.Struct):
    """What the source gives about one group of people: n, k, mean, sd, percentage."""

    label: str
    where: str
    numbers: dict[str, float] = {}


def rows(data: Spot) -> list[tuple[str, str]]:
    """Everything in a finding's data as readable lines with places: `Harm condition: percentage 82, n 39`."""
    by_label: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for label, key, value, spot in leaves(data.get("data")):
        by_label.setdefault(label, []).append(f"{key} {value:g}")
        places.setdefault(label, spot.where)
    for label, key, text, spot in texts(data.get("data")):
        by_label.setdefault(label, []).append(f"{key} '{excerpt(text, 120)}'")
        places.setdefault(label, spot.where)
    return [(f"{label or 'all'}: {', '.join(lines)}", places[label]) for label, lines in by_label.items()]


def texts(spot: Spot, label: str = "", depth: int = 0) -> Iterator[tuple[str, str, str, Spot]]:
    """Every text below the value that is not a number: label of its mapping, key, text, place."""
    for key, below in spot.pairs() if depth <= _DEPTH else ():
        if isinstance(below.value, dict):
            yield from texts(below, f"{label} / {key}" if label else key, depth + 1)
        elif isinstance(below.value, str) and below.number() is None and (text := below.text()) is not None:
            yield label, key, text, below


def leaves(spot: Spot, label: str = "", depth: int = 0) -> Iterator[tuple[str, str, float, Spot]]:
    """Every number below the value: label of its mapping, key, number, place."""
    if depth > _DEPTH:
        return
    for key, below in spot.pairs():
        if isinstance(below.value, dict):
            yield from leaves(below, f"{label} / {key}" if label else key, depth + 1)
        elif isinstance(below.value, list):
            for item in below.items()[:200]:
                if (value := item.number()) is not None:
                    yield label, key, value, item
        elif (value := below.number()) is not None:
            yield label, key, value, below


def points(data: Spot, *, shares: Collection[float] = ()) -> list[Point]:
    """The groups of people that the data points of a finding describe, in the order of the source.

    `shares`: the percentages in the finding's strings. A number with a name of its own, in a row that
    has an n, is a share of that n if it is one of these.
    """
    # `Group A (Warm, n=90)` → the words that name the group, and its n; words that name two groups are ignored
    description = data.get("description").text() or ""
    counts: dict[str, int | None] = {}
    for match in _SIZE.finditer(description[:2000]):
        words = {word for name in (match["outer"], match["inner"] or "") for word in slug(name).split("_")}
        for word in words | {f"x{word}" for word in words if word.isdigit()}:
            counts[word] = int(match["n"]) if word not in counts else None
    sizes = {word: n for word, n in counts.items() if n is not None}
    rows: dict[str, list[tuple[str, float, Spot]]] = {}
    for label, key, value, spot in leaves(data.get("data")):
        rows.setdefault(label, []).append((key, value, spot))
    return [point for label, row in rows.items() for point in _of_row(label, row, sizes, shares)]


def possible_counts(percentage: float, n: float) -> list[int]:
    """The counts k for which k of n prints as the percentage; may be empty.

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
            group, term = match["before"] or match["after"], match["what"] or match["what2"]
            name = f"{label} / {group}" if label else group
            point = groups.setdefault(group, Point(name, spot.where))
            point.numbers.setdefault(_MEANINGS[term], value)
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
    """Recognises an n that is a count: parts of a whole (66 % and 34 % of all), or one n beside the total."""
    parts = [group for group in groups if {"percentage", "n"} <= set(group.numbers)]
    if len(parts) > 1 and abs(sum(group.numbers["percentage"] for group in parts) - 100) <= 1:
        total = sum(group.numbers["n"] for group in parts)
        for group in parts:
            group.numbers |= {"k": group.numbers["n"], "n": total}
    alone = [group for group in groups if set(group.numbers) == {"n"}]
    if len(alone) == 1 and "k" not in plain.numbers and alone[0].numbers["n"] <= plain.numbers.get("n", 0):
        plain.numbers["k"] = alone[0].numbers["n"]


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


class ReportedText(msgspec.Struct):
    """One string with human results: what it gives, what was compared, and what did not fit."""

    text: str
    where: str
    found: Reported | None = None
    described: tuple[float, ...] = ()  # shares, counts and means, if it has no statistic
    why: str = ""  # why it cannot be read
    nested: bool = False  # a number in the data, not a printed string
    checked: list[str] = []
    wrong: list[str] = []

    @property
    def read(self) -> bool:
        """Whether it gives anything from which a test can be made."""
        return self.found is not None or bool(self.described)


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What a string can be checked against."""

    points: Sequence[Point] = ()  # of its finding
    numbers: Sequence[float] = ()  # every number in the data of its finding
    people: Sequence[float] = ()  # sizes that the source names anywhere
    alone: bool = False  # it is the only statistic of its finding


def reported_in(spot: Spot) -> list[ReportedText]:
    """The statistics that a string prints. A string that cannot be read gives one entry, with the reason."""
    text = spot.text()
    if text is None:
        return []
    line = " ".join(text[:_LONGEST].split())
    return [_read(part, spot.where) for part in _parts(line)]


def nested(data: Spot) -> list[ReportedText]:
    """Statistics within the data, as numbers (`consensus_f: 17.7` is F = 17.7) or in texts."""
    statistics = [
        reported
        for _, _, text, spot in texts(data.get("data"))
        if _START.search(text[:_LONGEST])
        for reported in reported_in(spot)
        if reported.found is not None
    ]
    for reported in statistics:
        reported.nested = True
    for label, key, value, spot in leaves(data.get("data")):
        kind = _NESTED.get(re.sub(r".*_", "", key.lower()).strip())
        if kind is not None:
            reported = _read(f"{kind} = {value:g}", spot.where)
            reported.nested = True
            reported.text = f"{label + ': ' if label else ''}{key} = {value:g}"
            statistics.append(reported)
    return statistics


def numbers_of(data: Spot) -> list[float]:
    """Every number of a finding's data."""
    return [value for _, _, value, _ in leaves(data.get("data"))]


def shares_in(text: str) -> list[float]:
    """The percentages that a text prints."""
    return [value for match in _SHARE.finditer(text) if (value := float(match[1] or match[2])) <= _MOST]


def _parts(text: str) -> list[str]:
    """The text cut into one string per statistic, at the last `;`, `,` or `and` before the next one."""
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


def _read(text: str, where: str) -> ReportedText:
    result = ReportedText(text=text, where=where)
    try:
        test = parse_reported(text)
        result.found = test if all(abs(value) <= _MOST for value in (test.statistic, *test.dfs, test.n or 0)) else None
        result.why = "" if result.found is not None else "has a number that is too large"
    except (ValueError, OverflowError) as error:
        result.described = tuple(_described(text))
        if not result.described:
            message = str(error)
            only_p = re.search(r"(?<![A-Za-z])p\s*[=<>≤≥]\s*\.?\d", text) and "cannot read a statistic" in message
            result.why = "gives a p but no statistic" if only_p else excerpt(_reason(message), 90)
    return result


def _reason(message: str) -> str:
    """The message of parse_reported without the quoted string, which is shown anyway."""
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


_N = re.compile(r"(?<![A-Za-z])[nN]\s*=\s*(\d[\d,]{0,11})(?![\d.])")


def check_reported_text(reported: ReportedText, beside: Beside, *, name: str = "") -> None:
    """Notes what was compared and what does not fit; corrects nothing. `name`: the source's name of the test."""
    _check_n(reported, beside)
    if reported.found is None:
        if reported.described:
            _check_described(reported, beside)
        return
    _check_p(reported)
    _check_df(reported, beside)
    if beside.alone and not reported.nested:
        _check_effect(reported, beside, variances="variance" in name.lower() and "analysis of" not in name.lower())
    if reported.found.kind == "r" and not reported.nested:
        assert reported.found is not None
        given = [value for value in beside.numbers if -1 <= value <= 1]
        if given and beside.alone:
            reported.checked.append("data")
            if not any(math.isclose(value, reported.found.statistic, abs_tol=1e-9) for value in given):
                reported.wrong.append("this correlation is not among the finding's data")


def check_point(point: Point) -> str:
    """What is wrong with one group's numbers; "" for nothing."""
    n, k, percentage = (point.numbers.get(key) for key in ("n", "k", "percentage"))
    if n is None or n < 1 or n > 10**6 or n != int(n):
        return ""
    if k is not None and k > n:
        return f"{k:g} is more than n = {n:g}"
    if percentage is None or not 0 <= percentage <= 100:
        return ""
    counts = possible_counts(percentage, n)
    if not counts:
        return f"no count out of {n:g} rounds to {percentage:g} %"
    if k is not None and k not in counts:
        return f"{k:g} of {n:g} are {round(100 * k / n, 1):g} %, but {percentage:g} % is given"
    return ""


def _check_n(reported: ReportedText, beside: Beside) -> None:
    """Checks an n or N in the string against every number of people in the source."""
    match = _N.search(reported.text)
    if match is None or not beside.people:
        return
    reported.checked.append("n")
    n = float(match[1].replace(",", ""))
    if n not in beside.people:
        named = ", ".join(f"{value:g}" for value in sorted(set(beside.people))[:8])
        reported.wrong.append(f"n = {n:g} is not among the given numbers of people: {named}")


def _check_p(reported: ReportedText) -> None:
    test = reported.found
    assert test is not None
    given = printed_p(test)
    if given is None:
        return
    reported.checked.append("p")
    if not given.holds:
        less = "; 'p <' would hold" if test.relation == "=" and test.p is not None and given.low < test.p else ""
        printed = "n.s." if test.p is None else f"p {test.relation} {test.p:g}"
        gives = shown_p((given.low + given.high) / 2)
        equal = "" if gives.startswith("<") else "= "
        reported.wrong.append(f"the statistic gives p {equal}{gives}, but printed is {printed}{less}")


def _ends(reported: ReportedText) -> tuple[float, float]:
    """The lowest and highest value that round to the printed statistic."""
    assert reported.found is not None
    half = 0.5 * 10.0**-reported.found.decimals
    return reported.found.statistic - half, reported.found.statistic + half


def _check_df(reported: ReportedText, beside: Beside) -> None:
    """Checks degrees of freedom against the n in the string, else against every n in the source."""
    test = reported.found
    assert test is not None
    df = test.df2 if test.kind == "F" else test.df1
    people = [float(test.n)] if test.n is not None else [n for n in dict.fromkeys(beside.people) if n > 1]
    if df is None or not people or test.kind not in {"t", "r", "F"}:
        return
    reported.checked.append("df")
    if test.kind == "F":
        within = [n for n in people if df <= (n - 1) * (test.df1 or 1)]
        fits = bool(within)
    else:
        fits = any(n - df in ({1, 2} if test.kind == "t" else {2}) for n in people)
    if not fits:
        named = ", ".join(f"{n:g}" for n in sorted(set(people))[:8])
        reported.wrong.append(f"{df:g} degrees of freedom fit none of the given numbers of people: {named}")


def _check_effect(reported: ReportedText, beside: Beside, *, variances: bool) -> None:
    """Checks the printed statistic against t from two means and SDs, χ² from two shares, or F from two SDs."""
    test = reported.found
    assert test is not None
    low, high = (abs(end) for end in _ends(reported))
    low, high = min(low, high), max(low, high)
    full = [point for point in beside.points if {"n", "mean", "sd"} <= set(point.numbers)]
    shares = [point for point in beside.points if "n" in point.numbers and {"k", "percentage"} & set(point.numbers)]
    squared = test.kind == "F" and test.df1 == 1
    spreads = [point.numbers["sd"] for point in beside.points if point.numbers.get("sd", 0) > 0]
    if variances and test.kind == "F" and len(spreads) == len(beside.points) == 2:
        # The ratio of two variances, from rounded standard deviations
        larger = max(spreads)
        smaller = min(spreads)
        a, b = _half_unit(larger), _half_unit(smaller)
        spans = [(((larger - a) / (smaller + b)) ** 2, ((larger + a) / max(smaller - b, 1e-9)) ** 2)]
    elif len(full) == 2 and len(beside.points) == 2 and (test.kind == "t" or squared):
        spans = [_t_span(*(tuple(point.numbers[key] for key in ("n", "mean", "sd")) for point in full))]
        spans = [(a * a, b * b) for a, b in spans] if squared else spans
    elif len(shares) == 2 and len(beside.points) == 2 and test.kind == "chi2" and test.df1 in {1.0, None}:
        spans = [(value, value) for value in _chi_squares(*(_counts(point) for point in shares))]
    else:
        return
    spans = [span for span in spans if not math.isnan(span[0])]
    if not spans:
        return
    reported.checked.append("effect")
    if not any(a <= high * (1 + 1e-6) and low <= b * (1 + 1e-6) for a, b in spans):
        given = " or ".join(dict.fromkeys(_shown(span) for span in spans[:6]))
        reported.wrong.append(f"the data give {test.kind} = {given}")


def _shown(span: tuple[float, float]) -> str:
    low, high = (f"{round(end, 2):g}" for end in span)
    return low if low == high else f"{low} to {high}"


def _half_unit(value: float) -> float:
    return 0.5 * 10.0 ** -len(f"{value:g}".partition(".")[2])


def _t_span(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, float]:
    """The range of |t|, from rounded means and standard deviations."""
    (n1, m1, s1), (n2, m2, s2) = first, second
    if n1 + n2 <= 2 or min(n1, n2) < 1:
        return math.nan, math.nan
    values = []
    for a, b, c, d in product(*[(-_half_unit(value), _half_unit(value)) for value in (m1, s1, m2, s2)]):
        pooled = ((n1 - 1) * (s1 + b) ** 2 + (n2 - 1) * (s2 + d) ** 2) / (n1 + n2 - 2)
        if pooled > 0:
            values.append(abs(m1 + a - m2 - c) / math.sqrt(pooled * (1 / n1 + 1 / n2)))
    return (min(values), max(values)) if values else (math.nan, math.nan)


def _counts(point: Point) -> tuple[list[int], int]:
    n = int(point.numbers["n"])
    if "k" in point.numbers:
        return [int(point.numbers["k"])], n
    return possible_counts(point.numbers["percentage"], n) if 1 <= n <= 10**6 else [], n


def _chi_squares(first: tuple[list[int], int], second: tuple[list[int], int]) -> list[float]:
    """χ² of every table whose shares print as the percentages, without and with Yates's correction."""
    values = []
    for a, b in product(first[0][:20], second[0][:20]):
        n1, n2 = first[1], second[1]
        yes, no, total = a + b, n1 + n2 - a - b, n1 + n2
        if yes > 0 and no > 0 and a <= n1 and b <= n2:
            apart = abs(a * (n2 - b) - b * (n1 - a))
            scale = total / (n1 * n2 * yes * no)
            values += [apart**2 * scale, max(0.0, apart - total / 2) ** 2 * scale]
    return values


def _check_described(reported: ReportedText, beside: Beside) -> None:
    """If any share, count or mean of a string is in the data of its finding, all of them must be."""
    missing = [value for value in reported.described if value not in beside.numbers]
    if len(missing) == len(reported.described):
        return  # the data are about something else
    reported.checked.append("data")
    if missing:
        reported.wrong.append(f"not among the finding's data: {', '.join(f'{value:g}' for value in missing)}")
