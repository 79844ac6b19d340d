"""How fast and how exact Bayes factors are, compared with pingouin's scalar function if it is installed.

    python benchmarks/bayes.py

Times are in reference seconds (`limits.py`), next to their limits. pingouin is timed on 2,000 tests, and
its time is extrapolated. Accuracy is against `../shared/data/vectors/statistics.json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat_studies.replication import (
    Side,
    StudyTest,
    log_bf10_anova,
    log_bf10_binomial,
    log_bf10_contingency,
    log_bf10_pearson,
    log_bf10_ttest,
    score_tests,
    score_uncertainty,
)

MANY = 1_000_000
FEW = 2_000
VECTORS = Path(__file__).resolve().parents[2] / "shared" / "data" / "vectors" / "statistics.json"


def main() -> None:
    """Prints the tables."""
    options = results.parser(__doc__).parse_args()
    rng = np.random.default_rng(1)
    t, n1, n2 = rng.standard_t(4, MANY) * 3, rng.integers(5, 2000, MANY), rng.integers(5, 2000, MANY)
    limits = Limits()
    best = limits.best
    ours = best(lambda: log_bf10_ttest(t, n1, n2))
    limits.row("1,000,000 two-sample t", ours, at_most=1.5)
    limits.row("1,000,000 t, one-sided", limits.timed(lambda: log_bf10_ttest(t, n1, n2, alternative="greater")))
    k = rng.binomial(n1, 0.4)
    limits.row("1,000,000 binomial", best(lambda: log_bf10_binomial(k, n1)), at_most=1)
    tables = rng.integers(0, 200, (MANY, 2, 2))
    limits.row("1,000,000 tables 2×2", best(lambda: log_bf10_contingency(tables)), at_most=1)
    r = np.tanh(rng.normal(0, 0.4, MANY))
    limits.row("1,000,000 Pearson", best(lambda: log_bf10_pearson(r, n1)), at_most=1)
    three_groups = limits.timed(lambda: log_bf10_anova(t * t, 2, 3 * n1 - 3, n_per_group=n1[:, None]))
    limits.row("1,000,000 F, 3 groups", three_groups)
    agreement = score_tests(study_tests(rng))
    replicates = limits.timed(lambda: score_uncertainty(agreement, rng=rng, replicates=2_000))
    limits.row("2,000 replicates, 12 studies", replicates, at_most=10)
    if find_spec("pingouin") is None:
        print("pingouin is not installed: nothing to compare with")
    else:
        beside_pingouin(limits, t, n1, n2, ours)
    results.write(options.json, limits.section("Bayes factors", "Reference seconds, the best of three."))
    limits.exit()


def beside_pingouin(limits: Limits, t: Any, n1: Any, n2: Any, ours: float) -> None:
    """Compares with pingouin's scalar function on the same tests, and both with the vectors."""
    from pingouin import bayesfactor_ttest

    sizes = list(zip(t[:FEW].tolist(), n1[:FEW].tolist(), n2[:FEW].tolist(), strict=True))
    theirs = limits.timed(lambda: [log_of(bayesfactor_ttest, *size) for size in sizes]) * MANY / FEW
    verdict = limits.check("pingouin's time against ours", theirs / ours, "≥", 80, "×")
    limits.row("pingouin, scaled to 1,000,000", theirs, note=f"{theirs / ours:,.0f} × ours, {verdict}")
    if not VECTORS.is_file():
        print("no ../shared/data: accuracy is not compared")
        return
    rows = [row for row in json.loads(VECTORS.read_text()) if row["quantity"] == "ln_bf10_jzs_ttest"]
    rows = [row for row in rows if row["inputs"]["alternative"] == "two-sided" and row["rel_tol"] <= 1e-11]
    worst = {"karat": 0.0, "pingouin": 0.0}
    failed = dict.fromkeys(worst, 0)
    for row in rows:
        given = row["inputs"]
        values = {
            "karat": log_bf10_ttest(given["t"], given["n1"], given["n2"] or None, rscale=given["rscale"]),
            "pingouin": log_of(bayesfactor_ttest, given["t"], given["n1"], given["n2"] or None, r=given["rscale"]),
        }
        for name, value in values.items():
            if math.isfinite(value):
                worst[name] = max(worst[name], abs(value - row["expected"]))
            else:
                failed[name] += 1
    for name, error in worst.items():
        print(f"{name:32} worst error in ln BF {error:.1e} over {len(rows)} exact vectors, no answer to {failed[name]}")
    print(limits.check("karat's worst error in ln BF", worst["karat"], "≤", 1e-6))


def log_of(function: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Ln of a Bayes factor; NaN if there is none: pingouin divides by 0 if the evidence is strong."""
    try:
        factor = float(function(*arguments, **options))
    except ArithmeticError:
        return math.nan
    return math.log(factor) if factor > 0 and math.isfinite(factor) else math.nan


def study_tests(rng: np.random.Generator) -> list[StudyTest]:
    """110 tests of 12 studies, of every kind."""
    sides: list[tuple[str, Callable[[], Side]]] = [
        ("ttest_ind", lambda: Side(statistic=float(rng.normal(2, 2)), n1=60, n2=55)),
        ("contingency", lambda: Side(table=((int(rng.integers(20, 60)), 30), (int(rng.integers(20, 60)), 40)))),
        ("correlation", lambda: Side(statistic=float(rng.uniform(-0.5, 0.7)), n1=80)),
        ("binomial", lambda: Side(statistic=float(rng.integers(20, 80)), n1=90)),
        ("anova", lambda: Side(statistic=float(rng.gamma(2, 2)), df1=2, df2=87, sizes=(30, 30, 30))),
        ("mannwhitney", lambda: Side(statistic=float(rng.integers(200, 700)), n1=30, n2=30)),
        ("spearman", lambda: Side(statistic=float(rng.uniform(-0.5, 0.7)), n1=80)),
    ]
    tests = []
    for at in range(110):
        kind, side = sides[at % len(sides)]
        tests.append(
            StudyTest(study=f"s{at % 12}", finding=f"F{at // 24}", test=f"T{at}", kind=kind, human=side(), agent=side())
        )
    return tests


if __name__ == "__main__":
    main()
