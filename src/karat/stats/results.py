"""What the functions of `karat.stats` return: frozen, with n, level and method beside every number."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HypothesisTest", "Interval", "PairedDifference", "VarianceComponents"]

NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """An estimate with its uncertainty. NaN: cannot be known, and `reason` says why."""

    value: float
    se: float = NAN
    low: float = NAN
    high: float = NAN
    level: float
    n: int  # independent units: clusters where there are any
    method: str
    df: float = NAN  # of the t distribution that the interval used
    observations: int = 0  # values that went in
    reason: str | None = None  # why a number is NaN, or what a reader must know


@dataclass(frozen=True, kw_only=True, slots=True)
class HypothesisTest:
    """A test of "no difference". NaN: cannot be known, and `reason` says why."""

    statistic: float
    p: float  # two-sided; never exactly 0
    n: int
    method: str
    df: float = NAN
    value: float = NAN  # the estimate that is tested, in the unit of the data
    p_mid: float = NAN  # mid-p, where the test is exact on counts
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedDifference:
    """How much higher the second condition is than the first, over the questions that both answered."""

    value: float  # mean over questions of (b − a), in points of the metric
    se: float
    low: float
    high: float
    level: float
    n: int  # questions answered under both
    method: str
    statistic: float
    df: float
    p: float  # two-sided; never exactly 0
    mean_a: float  # over the shared questions
    mean_b: float
    d_z: float  # value / sd of the differences
    cliffs_delta: float  # P(b > a) − P(b < a) over question means
    correlation: float  # of question means: the share of variance that pairing removes
    better: int  # questions where b is higher
    worse: int
    equal: int
    lost_a: int = 0  # questions without a value under a
    lost_b: int = 0
    missing_a: int = 0  # NaN values under a
    missing_b: int = 0
    warnings: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VarianceComponents:
    """Where the spread of scores comes from: the questions, or the agent's repetitions."""

    mean: float  # of question means
    se_mean: float
    between: Interval  # variance between questions; the raw estimate, which may be negative
    within: Interval  # variance between repetitions of one question
    share_between: float  # of max(0, ·); the two sum to 1
    share_within: float
    icc: Interval  # ICC(1): correlation of two answers to one question; equals the raw share
    ms_between: float
    ms_within: float
    n0: float  # repetitions a question, averaged so that E[ms_between] = within + n0·between
    statistic: float  # F test of "the questions do not differ"
    df: tuple[float, float]
    p: float
    n: int  # questions
    observations: int
    method: str
    reason: str | None = None
