"""Planning the next run: the variance of a difference, how repeatable it is, and what a larger run
would show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from karat.analysis.model import (
    Difference,
    MetricInfo,
    Money,
    Repeat,
    Step,
    Summary,
    check_condition,
    metric_of,
)
from karat.analysis.stopping import REPEATED
from karat.analysis.units import Units, by_cluster, shared, units_of
from karat.analysis.verdicts import NO_VERDICT, ONLY_AHEAD, few_clusters_factor
from karat.errors import BadOption
from karat.stats import (
    minimum_detectable_effect,
    power_ttest,
    questions_needed,
    same_verdict,
    special,
)
from karat.sums import exact_sum

Sides = tuple[tuple[Summary, str], tuple[Summary, str]]  # the run and the condition of each side
POWER = 0.8
MARGIN = 0.2  # in standard deviations of question means
REPETITIONS = (1, 2, 3, 5, 8)


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a comparison in advance.

    Variances in squared points of the metric, prices in dollars.
    """

    between: float  # variance over questions of the true differences
    # variance of repeated answers to one question, of each condition
    within: tuple[float, float] = (0.0, 0.0)
    judge: float = 0.0  # variance between scores of one answer; 0: not known
    cost_answer: float | None = None  # of one answer of one condition; None: no price known
    cost_score: float | None = None  # of judging it once
    seconds: float | None = None  # of one answer, median
    scores: int = 1  # of each answer: judges times repeats
    questions: int = 0  # questions of the pilot; 0: assumed
    repetitions: int = 1
    reason: str | None = None  # what is assumed, since the run does not show it
    unit: str = "question"  # that can be drawn anew; "cluster" where questions come in clusters

    def se(self, questions: int, repetitions: int) -> float:
        """Standard error of the difference."""
        return math.sqrt((self.between + exact_sum(self.within) / repetitions) / questions)

    def cost(self, questions: int, repetitions: int) -> float | None:
        """Of both conditions, in dollars; None if a price is not known."""
        if self.cost_answer is None or self.cost_score is None:
            return None
        return 2 * questions * repetitions * (self.cost_answer + self.scores * self.cost_score)


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """One possible experiment."""

    questions: int
    repetitions: int
    detectable: float | None  # smallest difference that it shows with the given power
    power: float | None  # for the given difference; None: none given
    cost: float | None
    seconds: float | None  # answers one at a time
    # chance that a gate stays undecided although the mean meets its threshold by MARGIN sd
    undecided: float
    cheapest: bool = False  # among those that reach the power


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What experiments of several sizes would show about a difference between two conditions on one
    metric.
    """

    delta: float | None
    power: float
    alpha: float
    pilot: Pilot
    designs: tuple[Design, ...]
    needed: tuple[Design, ...]  # for `delta`: the fewest questions for each number of repetitions


def pilot_of(summary: Summary, difference: Difference) -> Pilot:
    """A pilot for one of a run's comparisons.

    `between` is NaN if unknown; `reason` explains why.
    """
    units = shared(
        [units_of(summary, name, difference.metric) for name in (difference.a, difference.b)]
    )
    return _pilot((units[0], units[1]), ((summary, difference.a), (summary, difference.b)))


def _pilot(pair: tuple[Units, Units], sides: Sides) -> Pilot:
    """The pilot for a comparison of two sides. `sides`: where their prices and latencies come from.

    Where questions come in clusters, what can be drawn anew is a cluster, so its sizes count
    clusters.
    """
    metric = pair[0].metric.key
    clustered = pair[0].clusters is not None
    if clustered:
        pair = by_cluster(pair[0], pair[1])
    means, counts, deviations = (
        np.stack([getattr(units, part) for units in pair]) for part in ("means", "answers", "sds")
    )
    both = np.isfinite(means).all(axis=0)
    # count 0: the conversation never began
    counts = np.maximum(counts[:, both], 1)
    spreads = deviations[:, both] ** 2
    spare = np.where(np.isfinite(spreads), counts - 1, 0.0)
    questions = int(both.sum())
    if questions > 1:
        total = float(np.var(means[1, both] - means[0, both], ddof=1))
    else:
        total = math.nan

    reason = None if questions > 1 else "fewer than two questions were answered under both"
    within = (0.0, 0.0)
    if questions > 1 and spare.sum(axis=1).all():
        first, second = (np.nansum(spreads * spare, axis=1) / spare.sum(axis=1)).tolist()
        within = first, second
        total = max(0.0, total - float((np.array(within) @ (1 / counts)).mean()))
    elif questions > 1:
        reason = "each question was answered once: what repetitions would change is not known"

    if clustered:
        reason = (
            reason
            if questions < 2
            else "sizes count clusters of questions, each with as many as in this run"
        )

    if total == 0 and not sum(within):
        total = math.nan
        reason = "every question has the same difference"
    results = [
        result for summary, name in sides if (result := summary.result(name, metric)) is not None
    ]
    accounts = [summary.accounts[name] for summary, name in sides]
    answers = sum(result.n_answers for result in results)
    repeats, judges = next(
        (
            (info.repeats, max(len(info.judges), 1))
            for info in sides[0][0].metrics
            if info.key == metric
        ),
        (1, 1),
    )
    seconds = [account.latency.median for account in accounts if account.latency.median is not None]
    if questions:
        repetitions = max(1, round(float(counts.mean())))
    else:
        repetitions = 1

    return Pilot(
        between=total,
        within=within,
        judge=max([(result.judge_sd.value or 0.0) ** 2 for result in results], default=0.0),
        cost_answer=_price([account.cost.agent for account in accounts], answers),
        cost_score=_price([account.cost.judge for account in accounts], answers * repeats * judges),
        scores=repeats * judges,
        seconds=max(seconds, default=None),
        questions=questions,
        unit="cluster" if clustered else "question",
        repetitions=repetitions,
        reason=reason,
    )


def comparison_of(
    summary: Summary, *, metric: str | None = None, pair: tuple[str, str] | None = None
) -> tuple[Difference, MetricInfo]:
    """The selected comparison of a summary, by default its first, and its metric.

    Raises BadOption if there is none, and for names that the run does not have.
    """
    if not summary.differences:
        raise BadOption(
            "run", f"run {summary.run} compares nothing: it has one condition, or no scores"
        )

    if metric is not None:
        metric_of(summary, metric)
    for name in pair or ():
        check_condition(summary, name, option="--pair")
    of_metric = []
    for difference in summary.differences:
        if metric is None or difference.metric == metric:
            of_metric.append(difference)

    of_pair = []
    for difference in of_metric:
        if pair is None or {difference.a, difference.b} == set(pair):
            of_pair.append(difference)

    comparison = next(
        (difference for difference in of_pair if difference.estimate.value is not None), None
    )
    if of_pair and comparison is None:
        if pair:
            where = f" of {' and '.join(pair)}"
        else:
            where = ""

        if metric:
            on = f" on {metric}"
        else:
            on = ""

        raise BadOption(
            "run", f"no comparison{where}{on} in run {summary.run} has a question scored under both"
        )

    if comparison is None:
        raise BadOption(
            "--pair",
            "these two conditions were not compared on that metric; `--pairs all` compares all",
        )

    return comparison, metric_of(summary, comparison.metric)


def _price(spent: Sequence[Money], units: int) -> float | None:
    """Dollars for one; None if a part has no known price."""
    unknown = sum(money.unknown for money in spent)
    if unknown or not units:
        return None
    return exact_sum(money.known for money in spent) / units


def would_repeat(difference: Difference, pair: tuple[Units, Units], sides: Sides) -> Repeat | None:
    """The chance that a repeat of a comparison gives the same verdict; None if it has no value.

    `pair`: the compared units. `sides`: where they come from.
    """
    estimate = difference.estimate
    if estimate.value is None or difference.verdict.endswith((ONLY_AHEAD, NO_VERDICT)):
        return None
    if estimate.method == REPEATED:  # the formula only holds for a test with one look
        return None
    pilot = _pilot(pair, sides)
    if difference.df is not None:
        df = difference.df
    else:
        df = estimate.n - 1
    if pilot.reason:
        agent = math.nan
    else:
        agent = exact_sum(pilot.within) / (pilot.repetitions * pilot.questions)

    level = estimate.level
    # the level at which this test by itself agrees with Holm's rule
    if difference.p and difference.p_adjusted:
        level = 1 - (1 - level) * min(1.0, difference.p / difference.p_adjusted)
    se = math.nan if estimate.se is None else estimate.se
    chance = same_verdict(estimate.value, se, df, agent_variance=agent, level=level)
    new, same = (
        None if math.isnan(p) else p for p in (chance.new_questions, chance.same_questions)
    )
    return Repeat(
        shown=chance.significant,
        new_questions=new,
        same_questions=same,
        settle=_settle(pilot, abs(estimate.value), 1 - level),
        reason=chance.reason,
    )


def _settle(pilot: Pilot, delta: float, alpha: float) -> tuple[Step, ...]:
    """Plans that would show a difference of `delta` in 80 % of runs, the cheapest first.

    By the normal approximation with Guenther's correction for t, within one question of the
    noncentral t from about 10 questions on; `plan` computes the exact value, too slow for every
    report.

    Guenther (1981), The American Statistician 35:243.
    """
    n = pilot.questions
    k = pilot.repetitions
    lost = float(special.ndtri(alpha / 2)) ** 2 / 2  # questions that t needs in addition to z
    if not delta > 0 or math.isnan(pilot.between) or n <= lost:
        return ()
    scale = (delta / float(special.ndtri(POWER) - special.ndtri(alpha / 2))) ** 2
    room = (n - lost) * scale - pilot.between  # variance that the answers to one question may have
    within = exact_sum(pilot.within)
    steps = []
    questions = math.ceil((pilot.between + within / k) / scale + lost)
    if questions > n:
        steps.append(Step(what=pilot.unit, more=questions - n, cost=pilot.cost(questions - n, k)))
    if within > 0 and room > 0 and (repetitions := math.ceil(within / room)) > k:
        steps.append(
            Step(what="repetition", more=repetitions - k, cost=pilot.cost(n, repetitions - k))
        )

    for scores in (
        range(pilot.scores + 1, 4 * pilot.scores + 1) if pilot.judge and within > 0 else ()
    ):
        less = pilot.judge * (1 / pilot.scores - 1 / scores)
        if exact_sum(max(0.0, part - less) for part in pilot.within) / k <= room:
            if pilot.cost_score is None:
                price = None
            else:
                price = 2 * n * k * (scores - pilot.scores) * pilot.cost_score

            steps.append(Step(what="judge repeat", more=scores - pilot.scores, cost=price))
            break

    return tuple(sorted(steps, key=lambda step: math.inf if step.cost is None else step.cost))


def plan(
    pilot: Pilot,
    *,
    delta: float | None = None,
    power: float = POWER,
    alpha: float = 0.05,
    questions: Sequence[int] = (),
    repetitions: Sequence[int] = (),
    largest: float = math.inf,
) -> Plan:
    """What experiments of several sizes would show, and for `delta` the fewest questions that are
    enough.

    `questions`: sizes of the table; by default half, once, twice and four times the pilot's.
    `repetitions`: by default 1, 2, 3, 5 and 8; 1 if repeated answers did not vary; the pilot's if
    that is not known. `largest`: the difference between the ends of the scale; a size that needs a
    larger one shows nothing. Raises ValueError for a power, alpha, size or difference out of range.
    """
    base = pilot.questions or 50
    sizes = sorted(set(questions or (max(2, base // 2), max(2, base), 2 * base, 4 * base)))
    times: Sequence[int] = sorted(set(repetitions))
    if not times and sum(pilot.within) > 0:
        times = REPETITIONS
    elif not times:
        times = [pilot.repetitions if pilot.reason else 1]

    needed = []
    for k in times if delta is not None else ():
        n = _needed(pilot, delta or 0.0, k, power, alpha)
        if n is not None:
            needed.append(_design(pilot, n, k, delta, power, alpha, largest))

    prices = [design.cost for design in needed if design.cost is not None]
    answers = [design.questions * design.repetitions for design in needed]
    if len(prices) == len(needed):
        least = min(prices, default=None)
    else:
        least = None

    chosen = []
    for design, count in zip(needed, answers, strict=True):
        chosen.append(
            msgspec.structs.replace(
                design, cheapest=design.cost == least if least else count == min(answers)
            )
        )

    return Plan(
        delta=delta,
        power=power,
        alpha=alpha,
        pilot=pilot,
        designs=tuple(
            _design(pilot, n, k, delta, power, alpha, largest) for n in sizes for k in times
        ),
        needed=tuple(chosen),
    )


def _needed(pilot: Pilot, delta: float, k: int, power: float, alpha: float) -> int | None:
    spread = (pilot.between, pilot.within, k)
    n = questions_needed(delta, *spread, power=power, alpha=alpha).n
    if n is None or _level(pilot, n, alpha) == alpha:
        return n
    few = questions_needed(delta, *spread, power=power, alpha=_level(pilot, n, alpha)).n
    while _level(pilot, n, alpha) < alpha:
        n += 1
    return n if few is None else min(few, n)


def _level(pilot: Pilot, n: int, alpha: float) -> float:
    """The p-value that shows a difference over `n` clusters."""
    if pilot.unit == "cluster":
        return alpha / few_clusters_factor(n - 1)
    return alpha


def _design(
    pilot: Pilot,
    n: int,
    k: int,
    delta: float | None,
    power: float,
    alpha: float,
    largest: float,
) -> Design:
    alpha = _level(pilot, n, alpha)
    detectable = minimum_detectable_effect(
        n,
        pilot.between,
        pilot.within,
        k,
        power=power,
        alpha=alpha,
    ).value
    reached = None
    if delta is not None:
        spread = pilot.se(1, k)
        reached = 1.0
        if spread > 0:
            reached = power_ttest(delta / spread, n, alpha=alpha).value

    if pilot.seconds is None:
        seconds = None
    else:
        seconds = 2 * n * k * pilot.seconds

    return Design(
        questions=n,
        repetitions=k,
        detectable=detectable if detectable <= largest else None,
        power=reached,
        cost=pilot.cost(n, k),
        seconds=seconds,
        undecided=1 - power_ttest(MARGIN, n, alternative="greater").value,
    )
