"""What the functions of `karat.stats` return: frozen, with n, level and method for every number."""

from __future__ import annotations

from dataclasses import dataclass, replace

from karat.stats._groups import t_quantile

NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """An estimate with its uncertainty. NaN: unknown, and `reason` explains why."""

    value: float
    se: float = NAN
    low: float = NAN
    high: float = NAN
    level: float
    n: int  # independent units: clusters if there are any
    method: str
    df: float = NAN  # of the t distribution that the interval used
    observations: int = 0  # values used
    design_effect: float = NAN  # variance, relative to that of independent values; NaN: no clusters
    reason: str | None = None  # why a number is NaN, or a note for the reader

    def with_error(self, se: float, df: float, reason: str | None = None) -> Interval:
        """The same estimate with Student's interval of this error."""
        reach = t_quantile(0.5 + self.level / 2, df) * se
        return replace(
            self,
            se=se,
            low=self.value - reach,
            high=self.value + reach,
            df=df,
            reason=reason,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class HypothesisTest:
    """A test of "no difference". NaN: unknown, and `reason` explains why."""

    statistic: float
    p: float  # two-sided; never exactly 0
    n: int
    method: str
    df: float = NAN
    value: float = NAN  # the tested estimate, in the unit of the data
    p_mid: float = NAN  # mid-p, if the test is exact on counts
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedDifference:
    """How much higher the second condition is than the first, over the questions that both
    answered.
    """

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
    clusters: int | None = None  # sources of the questions; None: the questions are independent
    design_effect: float = NAN  # variance, relative to that of independent questions
    warnings: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanDifference:
    """How much higher the second group is than the first, when each has its own questions."""

    value: float  # mean of b − mean of a, each over question means, in points of the metric
    se: float
    low: float
    high: float
    level: float
    n_a: int  # questions with a value
    n_b: int
    method: str
    statistic: float
    df: float
    p: float  # two-sided; never exactly 0
    mean_a: float
    mean_b: float
    cohens_d: float  # value / pooled sd of question means
    hedges_g: float  # the same, corrected for small-sample bias
    cliffs_delta: float  # P(b > a) − P(b < a) over question means
    missing_a: int = 0  # NaN values under a
    missing_b: int = 0
    warnings: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def n(self) -> int:
        """Questions of both groups."""
        return self.n_a + self.n_b


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Two one-sided tests of "the effect reaches a bound": a small p shows that it is between
    both.
    """

    value: float  # the effect
    se: float
    low: float  # of the interval at 1 − 2 alpha: inside the bounds exactly where p < alpha
    high: float
    bounds: tuple[float, float]
    alpha: float
    t_low: float  # (value − lower bound) / se
    t_high: float  # (value − upper bound) / se
    p_low: float  # of "at or below the lower bound"
    p_high: float  # of "at or above the upper bound"
    n: int
    method: str
    df: float = NAN
    warnings: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def p(self) -> float:
        """The larger of the two; never exactly 0."""
        return max(self.p_low, self.p_high)

    @property
    def statistic(self) -> float:
        """The t for that p."""
        return self.t_low if self.p_low >= self.p_high else self.t_high

    @property
    def level(self) -> float:
        """Of the interval: 1 − 2 alpha."""
        return 1 - 2 * self.alpha

    @property
    def equivalent(self) -> bool | None:
        """Whether equivalence is shown; None: unknown. False does not prove a difference."""
        if self.p != self.p:
            return None
        return self.p < self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """One condition of a leaderboard."""

    name: str
    interval: Interval  # of its mean; simultaneous with those of the others
    best_rank: int  # 1 + the number of conditions that are apart from it, and better
    worst_rank: int
    lost: int = 0  # questions without a value under this condition


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """Two conditions of a leaderboard."""

    first: str  # ranked higher
    second: str
    value: float  # mean of (first − second) over questions
    se: float
    low: float  # simultaneous with the intervals of all other pairs
    high: float
    p: float  # two-sided, adjusted for all pairs; never exactly 0
    apart: bool  # the two differ at this level
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaderboard:
    """Conditions in order, and how certain that order is."""

    standings: tuple[Standing, ...]  # the best first
    contrasts: tuple[Contrast, ...]  # of each pair
    groups: tuple[tuple[str, ...], ...]  # maximal sets in which no two are apart; they may overlap
    n: int  # questions answered under all conditions
    level: float  # of all differences together, and of all means together
    method: str
    warnings: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VarianceComponents:
    """Where the spread of scores comes from: the questions, the agent's repetitions, or the
    judge.
    """

    mean: float  # of question means
    se_mean: float
    between: Interval  # variance between questions; the raw estimate, which may be negative
    # variance between repetitions of one question; includes the judge's unless that is separate
    within: Interval
    share_between: float  # of max(0, ·); the shares sum to 1
    share_within: float
    # of the shares: between, within and, if separate, the judge
    share_intervals: tuple[Interval, ...]
    # ICC(1): correlation of two answers to one question, each judged once; equals the raw share
    icc: Interval
    ms_between: float  # NaN for three unbalanced levels, like the test
    ms_within: float
    n0: float  # repetitions per question, averaged so that E[ms_between] = within + n0·between
    statistic: float  # F test of "the questions do not differ"
    df: tuple[float, float]
    p: float
    n: int  # questions
    observations: int
    method: str
    judge: Interval | None = None  # variance between verdicts on one answer; None: not separated
    share_judge: float | None = None
    reason: str | None = None
