"""How fast `karat.stats` is, and how often its intervals and tests do what they claim.

    python benchmarks/stats.py [experiments]

Times are in reference seconds (`limits.py`). Experiments are drawn from a known truth; a share may
miss its band by two Monte Carlo errors. `tests/stats/test_simulation.py` has a small version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat import stats

QUESTIONS, CONDITIONS, REPLICATES = 500, 10, 10_000


def main() -> None:
    """Prints the tables."""
    parser = results.parser(__doc__)
    parser.add_argument("experiments", type=int, nargs="?", default=500)
    options, limits = parser.parse_args(), Limits()
    speed(limits)
    for title, low, high, simulate in TABLE:
        rng = np.random.default_rng(1)
        share = float(np.mean([simulate(rng) for _ in range(options.experiments)]))
        error = 2 * (share * (1 - share) / options.experiments) ** 0.5
        outside = max(low - share, share - high, 0.0)
        verdict = limits.check(f"{title}: distance from {low:.1%}–{high:.1%}", outside, "≤", error)
        limits.note(title, share)
        print(f"{title:66} {share:6.1%} of {options.experiments}, wanted {low:.1%}–{high:.1%}, off by {verdict}")
    about = f"Reference seconds; shares of {options.experiments:,} experiments drawn from known truths."
    results.write(options.json, limits.section("Statistics", about))
    limits.exit()


def speed(limits: Limits) -> None:
    best = limits.best
    rng = np.random.default_rng(1)
    y = rng.normal(size=(CONDITIONS, QUESTIONS))
    limits.row(
        "10,000 replicates, 10 conditions × 500 questions", best(lambda: stats.leaderboard(y, rng=rng)), at_most=0.3
    )
    bootstrap_t = best(lambda: stats.mean_interval(y[0], method="bootstrap-t", rng=rng))
    limits.row("10,000 replicates, one mean, bootstrap-t", bootstrap_t)
    limits.row("20,000 sign flips of 500 questions", best(lambda: stats.sign_flip_test(y[0], rng=rng)), at_most=0.3)
    question, answer = np.repeat(np.arange(QUESTIONS), 6), np.tile([0, 0, 1, 1, 2, 2], QUESTIONS)
    scores = y[0].repeat(6) + rng.normal(size=question.size)
    three = best(lambda: stats.variance_components(scores, question, answer=answer, method="reml"))
    limits.row("variance of three levels by REML, 3,000 verdicts", three)


def scores(rng: np.random.Generator, conditions: int, questions: int, repetitions: int) -> np.ndarray:
    """Scores of 1 to 5 under equal conditions, question by question."""
    latent = 3.4 + 0.9 * rng.standard_normal((1, questions, 1))
    noise = 0.8 * rng.standard_normal((conditions, questions, repetitions))
    return np.clip(np.rint(latent + noise), 1, 5).reshape(conditions, -1)


def told_apart(conditions: int, questions: int, repetitions: int) -> Callable[[np.random.Generator], bool]:
    clusters = np.repeat(np.arange(questions), repetitions)

    def simulate(rng: np.random.Generator) -> bool:
        y = scores(rng, conditions, questions, repetitions)
        return any(contrast.apart for contrast in stats.leaderboard(y, clusters, rng=rng, replicates=999).contrasts)

    return simulate


def skewed(method: Literal["bootstrap-t", "bca"], questions: int) -> Callable[[np.random.Generator], bool]:
    def simulate(rng: np.random.Generator) -> bool:
        y = rng.exponential(size=questions)
        interval = stats.mean_interval(y, method=method, rng=rng, replicates=999)
        return interval.low <= 1 <= interval.high

    return simulate


def equivalent(rng: np.random.Generator) -> bool:
    a, b = rng.standard_normal(30), rng.standard_normal(30) + 0.8
    return bool(stats.tost(a, b, bounds=0.8).equivalent)


def of_shares(rng: np.random.Generator) -> bool:
    """Two groups of 30 and 60 questions, three answers each."""
    right = [
        (rng.standard_normal((size, 1)) + rng.standard_normal((size, 3)) > -1.2).sum(axis=1).tolist()
        for size in (30, 60)
    ]
    interval = stats.newcombe(right[0], [3] * 30, right[1], [3] * 60)
    return interval.low <= 0 <= interval.high


def agreement(rng: np.random.Generator) -> bool:
    y = rng.standard_normal((20, 1)) + 0.5 * rng.standard_normal((1, 6)) + 0.7 * rng.standard_normal((20, 6))
    interval = stats.icc(y, model="ICC(2,1)")
    return interval.low <= 1 / (1 + 0.25 + 0.49) <= interval.high


def three_levels(place: int, *, balanced: bool) -> Callable[[np.random.Generator], bool]:
    truth = (0.5, 0.35, 0.15)
    question, answer = np.repeat(np.arange(20), 6), np.tile([0, 0, 1, 1, 2, 2], 20)

    def simulate(rng: np.random.Generator) -> bool:
        parts = [sd**0.5 * rng.standard_normal(size) for sd, size in zip(truth, (20, (20, 3), 120), strict=True)]
        y = parts[0][question] + parts[1][question, answer] + parts[2]
        kept = np.ones(120, dtype=bool) if balanced else rng.random(120) < 0.75
        interval = stats.variance_components(y[kept], question[kept], answer=answer[kept]).share_intervals[place]
        return interval.low <= truth[place] <= interval.high

    return simulate


TABLE: list[tuple[str, float, float, Callable[[np.random.Generator], bool]]] = [
    *(
        (f"equal conditions told apart: {conditions} of {questions} questions × {repetitions}", 0.0, 0.05, simulate)
        for conditions, questions, repetitions in [(3, 20, 3), (10, 20, 1), (5, 50, 3), (10, 200, 1)]
        for simulate in [told_apart(conditions, questions, repetitions)]
    ),
    ("bootstrap-t covers an exponential mean, 20 questions", 0.93, 0.97, skewed("bootstrap-t", 20)),
    ("bootstrap-t covers an exponential mean, 50 questions", 0.93, 0.97, skewed("bootstrap-t", 50)),
    ("bca covers an exponential mean, 50 questions", 0.90, 0.97, skewed("bca", 50)),
    ("a difference at the bound is called equivalence", 0.0, 0.05, equivalent),
    ("difference of clustered shares covered", 0.93, 0.985, of_shares),
    ("ICC(2,1) covered, 20 things × 6 raters", 0.93, 0.98, agreement),
    *(
        (f"share of the {name} covered, {kind}", 0.93, 1.0, three_levels(place, balanced=kind == "balanced"))
        for kind in ("balanced", "unbalanced")
        for place, name in enumerate(("questions", "agent", "judge"))
    ),
]


if __name__ == "__main__":
    main()
