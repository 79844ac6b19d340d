"""Test results as papers print them: `t(78) = 2.66, p < .01` becomes numbers, nothing is guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Reported", "parse_reported"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """What a reported string says. None: it does not say."""

    kind: str  # "t", "F", "r", "chi2", "z", "U"
    statistic: float
    dfs: tuple[float, ...] = ()  # one of t, r, χ²; numerator and denominator of F
    n: int | None = None  # "N = 80", "χ²(1, N = 80)"
    n2: int | None = None  # of a second group: "n1 = 20, n2 = 22"
    relation: str | None = None  # of p: =, <, >, ≤, ≥, or "ns"
    p: float | None = None  # as printed: never halved, never computed
    text: str = ""

    @property
    def df1(self) -> float | None:
        """The first of the degrees of freedom."""
        return self.dfs[0] if self.dfs else None

    @property
    def df2(self) -> float | None:
        """The second: the denominator of F."""
        return self.dfs[1] if len(self.dfs) > 1 else None


_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+|\s*[x×*]\s*10\s*\^?\s*[-+]?\d+)?"
_KINDS = {"t": "t", "f": "F", "r": "r", "χ2": "chi2", "chi2": "chi2", "x2": "chi2", "z": "z", "u": "U"}
_STATISTIC = re.compile(
    rf"(?<![A-Za-z])(?P<name>χ2|chi[- ]?squared?|chi2|x2|rs?|rho|ρ|[tfzu])\s*"
    rf"(?:[(\[](?P<inside>[^()\[\]]*)[)\]])?\s*(?:=|is)\s*(?P<value>{_NUMBER})",
    re.IGNORECASE,
)
_P = re.compile(rf"(?<![A-Za-z])p(?:-value)?s?\s*(?P<relation><=|>=|[=<>≤≥])\s*(?P<p>{_NUMBER})", re.IGNORECASE)
_NOT = re.compile(r"(?<![A-Za-z])(?:n\.\s?s\.?|ns(?![A-Za-z])|not\s+significant)", re.IGNORECASE)
_SIZE = re.compile(r"(?<![A-Za-z])n(?P<which>[12])?\s*=\s*(?P<n>\d[\d,]*)", re.IGNORECASE)
_PLAIN = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-", "²": "2", "Χ": "χ", "\u00a0": " "}
)
_TYPOGRAPHY = {
    "\u2009": " ",
    "\u202f": " ",
    "₁": "1",
    "₂": "2",
    "*": " ",
    "_": "",
    "⩽": "≤",
    "⩾": "≥",
    "＝": "=",
    "＜": "<",
}


def parse_reported(text: str) -> Reported:
    """The statistic, degrees of freedom, n and p of a reported test: t, F, r, χ², z, U.

    Unicode minus and `χ²` are read; `n.s.` gives the relation "ns" and no p. A p is what is
    printed: never halved, never computed from degrees of freedom that are not there. What
    cannot be read raises ValueError, which says what is wanted.

    >>> found = parse_reported("t(78) = 2.66, p < .01")
    >>> found.kind, found.statistic, found.dfs, found.relation, found.p
    ('t', 2.66, (78.0,), '<', 0.01)
    >>> parse_reported("χ²(1, N = 155) = 12.3, p = .0004").n
    155
    """
    plain = text.translate(_PLAIN)
    for written, meant in _TYPOGRAPHY.items():
        plain = plain.replace(written, meant)
    plain = re.sub(r"(?<=[xXχ])\s*\^\s*2", "2", plain)
    found = _STATISTIC.search(plain)
    if found is None:
        raise ValueError(f"reported: cannot read a statistic in {text!r}; write it as 't(78) = 2.66, p < .01'")
    kind = _kind(found["name"])
    inside = found["inside"]
    rest = plain[: found.start()] + ";" + plain[found.end() :]
    sizes = {match["which"]: int(match["n"].replace(",", "")) for match in _SIZE.finditer(f"{inside or ''};{rest}")}
    dfs = _degrees(kind, inside, text)
    relation, p = _p_value(rest, text)
    statistic = _number(found["value"])
    _check(kind, statistic, dfs, text)
    return Reported(
        kind=kind,
        statistic=statistic,
        dfs=dfs,
        n=sizes.get(None, sizes.get("1")),
        n2=sizes.get("2"),
        relation=relation,
        p=p,
        text=text,
    )


def _kind(name: str) -> str:
    low = name.lower()
    if low.startswith("chi"):
        return "chi2"
    if low in {"rs", "rho", "ρ"}:
        return "r"
    return _KINDS[low]


def _degrees(kind: str, inside: str | None, text: str) -> tuple[float, ...]:
    if inside is None:
        return ()
    without = _SIZE.sub("", re.sub(r"\bdf\s*=\s*", "", inside, flags=re.IGNORECASE))
    if kind == "U":  # what stands behind U, if anything, are the sizes of the groups
        return ()
    values = [part.strip() for part in re.split(r"[,;/]", without) if part.strip()]
    try:
        df = tuple(float(value) for value in values)
    except ValueError:
        raise ValueError(f"reported: cannot read degrees of freedom in '({inside})' of {text!r}") from None
    wanted = 2 if kind == "F" else 1
    if len(df) > wanted or (kind == "F" and len(df) == 1):
        raise ValueError(f"reported: {kind} has {wanted} degrees of freedom, {text!r} gives {len(df)}")
    return df


def _p_value(rest: str, text: str) -> tuple[str | None, float | None]:
    printed = _P.search(rest)
    if printed is None:
        return ("ns", None) if _NOT.search(rest) else (None, None)
    p = _number(printed["p"])
    if not 0 <= p <= 1:
        raise ValueError(f"reported: p must be between 0 and 1, got {p:g} in {text!r}")
    return {"<=": "≤", ">=": "≥"}.get(printed["relation"], printed["relation"]), p


def _number(written: str) -> float:
    plain = re.sub(r"\s*[x×*]\s*10\s*\^?\s*([-+]?\d+)", r"e\1", written)
    return float(plain.replace(",", ""))


def _check(kind: str, statistic: float, df: tuple[float, ...], text: str) -> None:
    if kind == "r" and abs(statistic) > 1:
        raise ValueError(f"reported: r must be between −1 and 1, got {statistic:g} in {text!r}")
    if kind in {"F", "chi2", "U"} and statistic < 0:
        raise ValueError(f"reported: {kind} must be at least 0, got {statistic:g} in {text!r}")
    if any(value <= 0 for value in df):
        raise ValueError(f"reported: degrees of freedom must be above 0 in {text!r}")
