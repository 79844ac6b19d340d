"""Compares a printed p with its statistic: they agree within rounding, or one of them is wrong."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from karat.stats import special
from karat_studies.replication.p_values import p_value
from karat_studies.replication.report_strings import Reported

ALPHA = 0.05  # the lower limit of "n.s."
_ONE_SIDED = re.compile(
    r"\b(?:one|1)[- ]?(?:tailed|sided)|(?<!non)(?<!non-)\bdirectional", re.IGNORECASE
)
_TWO_SIDED = re.compile(r"\b(?:two|2)[- ]?(?:tailed|sided)|\bnon-?directional", re.IGNORECASE)
# corrected p and degrees of freedom depend on more than the statistic
_OF_ANOTHER_KIND = re.compile(
    r"adjust|correct|bonferroni|holm|greenhouse|huynh|ε|epsilon|\bnot p\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PrintedP:
    """The p of the statistic, and whether the printed one is consistent."""

    holds: bool
    low: float  # p at the ends of the statistic's rounding interval
    high: float


def printed_p(test: Reported, *, one_sided: bool = False) -> PrintedP | None:
    """The p of a reported statistic and the printed one; None if either is not known.

    Two-sided; halved only if the string or the caller specifies one-tailed; if it specifies both,
    either may hold. Also None if p or the degrees of freedom were corrected.

    >>> from karat_studies.replication.report_strings import parse_reported
    >>> printed_p(parse_reported("t(78) = 2.66, p < .01")).holds
    True
    >>> printed_p(parse_reported("t(102) = 7.99, p = .01")).holds
    False
    """
    if (
        test.relation is None
        or (test.p is None and test.relation != "ns")
        or _OF_ANOTHER_KIND.search(test.text)
    ):
        return None

    half = 0.5 * 10.0**-test.decimals
    low, high = sorted(_p_of(test, test.statistic + end) for end in (-half, half))
    if math.isnan(low):
        return None
    said_one = _ONE_SIDED.search(test.text) is not None
    if said_one and _TWO_SIDED.search(test.text):
        low /= 2
    elif one_sided or said_one:
        low = low / 2
        high = high / 2

    p = ALPHA if test.p is None else test.p
    half_p = 0.5 * 10.0**-test.p_decimals
    holds = {
        "<": low < p,
        "≤": low <= p,
        ">": high > p,
        "≥": high >= p,
        "ns": high >= p,
        "=": low <= p + half_p and high >= p - half_p,
    }[test.relation]
    return PrintedP(holds=holds, low=low, high=high)


def _p_of(reported: Reported, statistic: float) -> float:
    """Two-sided p of the statistic; NaN if the degrees of freedom are not known."""
    size = abs(statistic)
    df = reported.df1
    if reported.kind == "z":
        return float(2 * special.ndtr(-size))
    if reported.kind == "r" and df is None and reported.n is not None and reported.n > 2:
        df = reported.n - 2.0
    if df is None or df <= 0:
        return math.nan
    if reported.kind == "t":
        return float(p_value("ttest_one", size, df=df))
    if reported.kind == "F":
        return float(p_value("anova", max(0.0, statistic), df=df, df2=reported.df2))
    if reported.kind == "chi2":
        return float(special.chdtrc(df, max(0.0, statistic)))
    is_whole = reported.kind == "r" and df >= 1 and df == int(df)
    if is_whole:
        return float(p_value("correlation", min(1.0, size), n1=df + 2))
    return math.nan
