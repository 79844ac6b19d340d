"""A printed p against the statistic that it is printed with: within rounding, or one of them is wrong."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from karat.replication.report_strings import Reported

__all__ = ["PrintedP", "printed_p"]

ALPHA = 0.05  # what "n.s." is above
_ONE_SIDED = re.compile(r"\b(?:one|1)[- ]?(?:tailed|sided)|(?<!non)(?<!non-)\bdirectional", re.IGNORECASE)
_TWO_SIDED = re.compile(r"\b(?:two|2)[- ]?(?:tailed|sided)|\bnon-?directional", re.IGNORECASE)
_OF_ANOTHER_KIND = re.compile(  # corrected p, and degrees of freedom, follow from more than the statistic
    r"adjust|correct|bonferroni|holm|greenhouse|huynh|ε|epsilon|\bnot p\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedP:
    """What the statistic gives, and whether what is printed can be it."""

    holds: bool
    low: float  # p at the ends of what was rounded to the statistic
    high: float


def printed_p(found: Reported, *, one_sided: bool = False) -> PrintedP | None:
    """The p of a reported statistic beside the printed one; None where one of them is not known.

    Two-sided; halved only where the string says one-tailed, or the caller does; where it says both, either may
    hold. None, too, where p or the degrees of freedom were corrected.

    >>> from karat.replication.report_strings import parse_reported
    >>> printed_p(parse_reported("t(78) = 2.66, p < .01")).holds
    True
    >>> printed_p(parse_reported("t(102) = 7.99, p = .01")).holds
    False
    """
    if found.relation is None or (found.p is None and found.relation != "ns") or _OF_ANOTHER_KIND.search(found.text):
        return None
    half = 0.5 * 10.0**-found.decimals
    low, high = sorted(_p_of(found, found.statistic + end) for end in (-half, half))
    if math.isnan(low):
        return None
    said_one = _ONE_SIDED.search(found.text) is not None
    if said_one and _TWO_SIDED.search(found.text):
        low /= 2
    elif one_sided or said_one:
        low, high = low / 2, high / 2
    p = ALPHA if found.p is None else found.p
    half_p = 0.5 * 10.0**-found.p_decimals
    holds = {
        "<": low < p, "≤": low <= p, ">": high > p, "≥": high >= p, "ns": high >= p,
        "=": low <= p + half_p and high >= p - half_p,
    }[found.relation]  # fmt: skip
    return PrintedP(holds=holds, low=low, high=high)


def _p_of(found: Reported, statistic: float) -> float:
    """Two-sided p of the statistic; NaN where degrees of freedom are not known."""
    from karat.replication.p_values import p_value
    from karat.stats.special import chdtrc, ndtr

    size, df = abs(statistic), found.df1
    if found.kind == "z":
        return float(2 * ndtr(-size))
    if found.kind == "r" and df is None and found.n is not None and found.n > 2:
        df = found.n - 2.0
    if df is None or df <= 0:
        return math.nan
    if found.kind == "t":
        return float(p_value("ttest_one", size, df=df))
    if found.kind == "F":
        return float(p_value("anova", max(0.0, statistic), df=df, df2=found.df2))
    if found.kind == "chi2":
        return float(chdtrc(df, max(0.0, statistic)))
    whole = found.kind == "r" and df >= 1 and df == int(df)
    return float(p_value("correlation", min(1.0, size), n1=df + 2)) if whole else math.nan
