"""Parses test results as papers print them, such as `t(78) = 2.66, p < .01`, without guessing."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """The content of a reported string. None: not given."""

    kind: str  # "t", "F", "r", "chi2", "z", "U"
    statistic: float
    dfs: tuple[float, ...] = ()  # one for t, r, χ²; numerator and denominator for F
    n: int | None = None  # "N = 80", "χ²(1, N = 80)"; None also if several are printed
    n2: int | None = None  # of a second group: "n1 = 20, n2 = 22"
    relation: str | None = None  # of p: =, <, >, ≤, ≥, or "ns"
    p: float | None = None  # as printed: never halved, never computed
    text: str = ""
    decimals: int = 0  # printed decimals of the statistic
    p_decimals: int = 0  # of p

    @property
    def df1(self) -> float | None:
        """The first of the degrees of freedom."""
        if self.dfs:
            return self.dfs[0]
        return None

    @property
    def df2(self) -> float | None:
        """The second: the denominator of F."""
        if len(self.dfs) > 1:
            return self.dfs[1]
        return None


_NUMBER = (
    r"(?:[-+]\s?)?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE][-+]?\d+|\s*[x×*]\s*10\s*\^?\s*[-+]?\d+)?"
)
_SMALL = rf"(?:10\s*\^\s*-\s?\d+|10-\d+|{_NUMBER})"  # of a p: also `10^-5`
_KINDS = {
    "t": "t",
    "f": "F",
    "r": "r",
    "χ2": "chi2",
    "chi2": "chi2",
    "x2": "chi2",
    "z": "z",
    "u": "U",
}
_STATISTIC = re.compile(
    rf"(?<![A-Za-z])(?P<name>χ2|chi[- ]?squared?|chi2|x2|rs?|rho|ρ|[tfzu])\s*"
    rf"(?:[(\[](?P<inside>[^()\[\]]*)[)\]])?\s*(?:=|is)\s*(?P<value>{_NUMBER})"
    # not a range, share or ratio
    r"(?!\d|\.\s?\d|\s*(?:%|/|-\s?\.?\d|(?:to|or)\s\.?\d))(?P<comma>,\d)?",
    re.IGNORECASE,
)
_P = re.compile(
    r"(?<![A-Za-z])p(?:[- ]?values?|['’]?s)?\s*(?:\((?:one|two|[12])[- ](?:tailed|sided)\)\s*)?"
    rf"(?P<relation><=|>=|[=<>≤≥])\s*(?P<p>{_SMALL})(?P<comma>,\d)?(?P<percent>\s?%)?",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?<![A-Za-z])(?:n\.\s?s\.?|ns(?![A-Za-z])|not\s+significant)", re.IGNORECASE)
_SIZE = re.compile(
    r"(?<![A-Za-z])(?P<name>[nN])(?P<which>[12])?\s*=\s*(?P<n>\d{1,3}(?:[, ]\d{3})+(?!\d)"
    r"|\d+)(?!\d|\.\d)"
    r"(?P<each>\s*(?:per|each|in each|in every)\b)?"
)
_DF = re.compile(  # next to the statistic: `t = 2.66, df = 78`, `with 2 and 57 df`
    r"(?<![A-Za-z])d\.?f\.?\s*[=:]\s*\(?\s*(?P<one>\d+(?:\.\d+)?)"
    r"(?:\s*(?:,|/|;|and|&)\s*(?P<two>\d+(?:\.\d+)?)(?![\d.]))?"
    r"|(?P<first>\d+(?:\.\d+)?)(?:\s*(?:,|/|and|&)\s*(?P<second>\d+(?:\.\d+)?))?"
    r"\s*(?:df\b|d\.f\.|degrees of freedom)",
    re.IGNORECASE,
)
_TYPOGRAPHY = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "‐": "-",
        "‑": "-",
        "﹣": "-",
        "－": "-",
        "²": "2",
        "Χ": "χ",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "*": " ",
        "_": "",
        "⩽": "≤",
        "⩾": "≥",
        "≦": "≤",
        "≧": "≥",
        "ₛ": "s",
    }
)
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RAISED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_MARKUP = (  # written form, meaning; in this order
    (r"</?(?:i|b|em|strong|sup|span|var)>", ""),
    (r"\\(?:textit|textbf|emph|mathit|mathrm|text|it)\s*\{([^{}]{0,40})\}", r"\1"),
    (r"\\chi\b", "χ"),
    (r"\\times\b", "×"),
    (r"\\leq?\b", "≤"),
    (r"\\geq?\b", "≥"),
    (r"\^\s*\{\s*([-+−]?\d{1,4})\s*\}", r"^\1"),
    (r"(?<!\d)·(?=\d)|(?<=\d)·(?=\d)", "."),
)
_LOW = re.compile(r"<sub>([^<>]{0,20})</sub>|_\{([^{}]{0,20})\}")
# a single digit may be an index or degrees of freedom: `t₁ = 5`, `F₁(1, 20)`
_LOW_DEGREES = re.compile(
    r"((?:(?<=[tr])[₀-₉]{2,}(?:\.[₀-₉]+)?|(?<=F)[₀-₉.]+[,;]\s?[₀-₉.]+|(?<=[²2])[₀-₉]+))(?=\s*[=<>])"
)


def parse_reported(text: str) -> Reported:
    """The statistic, degrees of freedom, n and p of a reported test: t, F, r, χ², z, U.

    Unicode minus, `χ²`, italics, subscripts, HTML and LaTeX are understood; `n.s.` gives the
    relation "ns" and no p. A p is returned as printed: never halved, never computed from missing
    degrees of freedom. Unreadable or ambiguous strings (`2,66`) raise ValueError with the expected
    form.

    >>> found = parse_reported("t(78) = 2.66, p < .01")
    >>> found.kind, found.statistic, found.dfs, found.relation, found.p
    ('t', 2.66, (78.0,), '<', 0.01)
    >>> parse_reported("χ²(1, N = 155) = 12.3, p = .0004").n
    155
    """
    plain = _plain(text)
    match = next((hit for hit in _STATISTIC.finditer(plain) if not _otherwise_called(hit)), None)
    if match is None:
        raise ValueError(
            f"reported: cannot read a statistic in {text!r}; write it as 't(78) = 2.66, p < .01'"
        )

    return _reported(plain, match, text)


def every_reported(text: str) -> list[Reported]:
    """Every readable statistic, in order: an effect size may be printed before the test.

    >>> [one.kind for one in every_reported("r = .59, chi2(1, N = 78) = 27.2, p < .001")]
    ['r', 'chi2']
    """
    plain = _plain(text)
    read = []
    for match in _STATISTIC.finditer(plain):
        with suppress(ValueError):
            read += [] if _otherwise_called(match) else [_reported(plain, match, text)]

    return read


def _reported(plain: str, match: re.Match[str], text: str) -> Reported:
    name = match["name"].lower()
    if name.startswith("chi"):
        kind = "chi2"
    elif name in {"rs", "rho", "ρ"}:
        kind = "r"
    else:
        kind = _KINDS[name]

    inside = match["inside"]
    outside = plain[: match.start()] + ";" + plain[match.end("value") :]
    # N by its index. Several n without an index are those of groups, unless one of them is a
    # capital N: the total.
    sizes: dict[str, int] = {}
    by_letter: dict[str, set[int]] = {"n": set(), "N": set()}
    for found in _SIZE.finditer(f"{inside or ''};{outside}"):
        n = int(re.sub(r"[, ]", "", found["n"]))
        if found["which"]:
            sizes[found["which"]] = n
        elif not found["each"]:
            by_letter[found["name"]].add(n)

    total = by_letter["N"] or by_letter["n"]
    if len(total) == 1:
        sizes[""] = next(iter(total))
    dfs = _degrees(kind, inside, plain[match.end() :], text)
    # The text up to the next statistic with degrees of freedom; if it has no p, the text before
    behind = plain[match.end() :]
    following = (one for one in _STATISTIC.finditer(behind) if one["inside"] is not None)
    after = next(following, None)
    if after is None:
        words = behind
    else:
        words = behind[: after.start()]

    if not _P.search(words) and not _NOT.search(words):
        before = re.split(r"[;.](?!\d)", plain[: match.start()])[-1]
        # a p there would belong to that statistic
        words = "" if _STATISTIC.search(before) else before

    relation = "ns" if _NOT.search(words) else None
    p = None
    p_decimals = 0
    printed = _P.search(words)
    if printed is not None:
        relation = {"<=": "≤", ">=": "≥"}.get(printed["relation"], printed["relation"])
        p = _number(printed, "p", text) / (100 if printed["percent"] else 1)
        p_decimals = _decimals(printed["p"]) + 2 * bool(printed["percent"])
        if not 0 <= p <= 1:
            raise ValueError(f"reported: p must be between 0 and 1, got {p:g} in {text!r}")

    statistic = _number(match, "value", text)
    if kind == "r" and abs(statistic) > 1:
        raise ValueError(f"reported: r must be between −1 and 1, got {statistic:g} in {text!r}")
    if kind in {"F", "chi2", "U"} and statistic < 0:
        raise ValueError(f"reported: {kind} must be at least 0, got {statistic:g} in {text!r}")
    if not all(0 < value < math.inf for value in dfs):
        raise ValueError(f"reported: degrees of freedom must be above 0 and finite in {text!r}")
    return Reported(
        kind=kind,
        statistic=statistic,
        dfs=dfs,
        n=sizes.get("", sizes.get("1")),
        n2=sizes.get("2"),
        relation=relation,
        p=p,
        text=text,
        decimals=_decimals(match["value"]),
        p_decimals=p_decimals,
    )


def _plain(text: str) -> str:
    """The text without markup, with ASCII signs and digits."""
    plain = html.unescape(text)
    plain = "".join(
        unicodedata.normalize("NFKC", char)
        if "\U0001d400" <= char <= "\U0001d7ff" or "！" <= char <= "～"
        else char
        for char in plain
    )
    for written, meant in _MARKUP:
        plain = re.sub(written, meant, plain)
    plain = _LOW.sub(lambda match: (match[1] or match[2] or "").strip().translate(_LOWERED), plain)
    plain = _LOW_DEGREES.sub(r"(\1)", plain).translate(_RAISED).translate(_TYPOGRAPHY)
    plain = re.sub(r"(?:(?<=[xXχ])|(?<=\bchi))\s*\^\s*2", "2", plain)
    return re.sub(r"=<", "≤", re.sub(r"=\s+(?=[<>])", "", plain))


def _otherwise_called(match: re.Match[str]) -> bool:
    """Wilcoxon's T and Cohen's f are not t and F: a letter in the other case counts only with
    degrees of freedom.
    """
    return match["name"] in {"T", "f"} and match["inside"] is None


def _degrees(kind: str, inside: str | None, behind: str, text: str) -> tuple[float, ...]:
    """Those in brackets; else those printed after the value, before the next statistic, if they
    fit.
    """
    wanted = 2 if kind == "F" else 1
    if inside is None:
        after = _STATISTIC.search(behind)
        match = _DF.search(behind[: after.start()] if after is not None else behind)
        if match is None or kind in {"U", "z"}:
            return ()
        found = (match["one"] or match["first"], match["two"] or match["second"])
        df = tuple(float(one) for one in found if one)
        return df if len(df) == wanted else ()

    without = _SIZE.sub("", re.sub(r"\bdf\s*=\s*", "", inside, flags=re.IGNORECASE))
    if kind == "U":  # anything after U is the sizes of the groups
        return ()
    df = _degrees_in(without, inside, text)
    if len(df) > wanted:  # `F(1, 1,234)`
        df = _degrees_in(
            re.sub(r"(?<![\d.])(\d{1,3}),(\d{3})(?![\d.])", r"\1\2", without), inside, text
        )

    if len(df) > wanted or (kind == "F" and len(df) == 1):
        people = "; write the number of people as N = 100" if kind == "chi2" else ""
        raise ValueError(
            f"reported: {kind} has {wanted} degrees of freedom, {text!r} gives {len(df)}{people}"
        )

    return df


def _degrees_in(without: str, inside: str, text: str) -> tuple[float, ...]:
    values = []
    for part in re.split(r"[,;/]", without):
        if part.strip():
            values.append(part.strip())

    try:
        return tuple(float(value) for value in values)
    except ValueError:
        raise ValueError(
            f"reported: cannot read degrees of freedom in '({inside})' of {text!r}"
        ) from None


def _number(match: re.Match[str], name: str, text: str) -> float:
    written = match[name]
    if match["comma"] and "." not in written:
        shown = f"{written}{match['comma']}"
        raise ValueError(
            f"reported: there is a comma in the number {shown}… of {text!r}; write it with a point"
        )

    value = float(_as_python(written))
    if math.isinf(value):
        raise ValueError(f"reported: the number {written} of {text!r} is too large")
    return value


def _as_python(written: str) -> str:
    plain = re.sub(r"^10\s*\^?\s*-\s?(\d+)$", r"1e-\1", written.strip())
    plain = re.sub(r"\s*[x×*]\s*10\s*\^?\s*([-+]?\d+)", r"e\1", plain)
    return plain.replace(",", "").replace(" ", "")


def _decimals(written: str) -> int:
    """Digits after the point; `1.5e-3` has four. No float has more than 400."""
    mantissa, _, exponent = _as_python(written).lower().partition("e")
    return min(400, max(0, len(mantissa.partition(".")[2]) - int(exponent or 0)))
