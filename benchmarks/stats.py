"""How fast `karat.stats` is, and how often its intervals and tests do what they claim.

    python benchmarks/stats.py [experiments]

Times are in reference seconds (`limits.py`). Experiments are drawn from a known truth; a share may
miss its band by two Monte Carlo errors. `tests/stats/test_simulation.py` has a small version.
"""

from __future__ import annotations

from collections.abc import Callable

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat import stats

QUESTIONS = 500


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
    question, answer = np.repeat(np.arange(QUESTIONS), 6), np.tile([0, 0, 1, 1, 2, 2], QUESTIONS)
    scores = rng.normal(size=QUESTIONS).repeat(6) + rng.normal(size=question.size)
    three = best(lambda: stats.variance_components(scores, question, answer=answer, method="reml"))
    limits.row("variance of three levels by REML, 3,000 verdicts", three)


def equivalent(rng: np.random.Generator) -> bool:
    a, b = rng.standard_normal(30), rng.standard_normal(30) + 0.8
    return bool(stats.tost(a, b, bounds=0.8).equivalent)


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
    ("a difference at the bound is called equivalence", 0.0, 0.05, equivalent),
    *(
        (f"share of the {name} covered, {kind}", 0.93, 1.0, three_levels(place, balanced=kind == "balanced"))
        for kind in ("balanced", "unbalanced")
        for place, name in enumerate(("questions", "agent", "judge"))
    ),
]


if __name__ == "__main__":
    main()
