"""How often intervals of PAS and ECS hold what they claim, by simulation.

    python benchmarks/coverage.py [runs]

Studies of t tests, tables and correlations with 20 to 100 people a group; human numbers are
drawn once and held fixed, the agent's are drawn anew in every run from fixed true effects.
Each interval is judged by its own estimand, which stands beside it.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

import numpy as np

from karat.replication import (
    Side,
    StudyTest,
    ecs_interval,
    pas_interval_of_test,
    score_test,
    score_tests,
    score_uncertainty,
    weighted_ccc,
)

BANDS = [
    ("PAS of the benchmark", 0.93, 1.0),
    ("PAS of one test", 0.90, 0.98),
    ("ECS for new studies", 0.92, 0.97),
    ("ECS for these studies", 0.92, 0.97),
]
ESTIMANDS = {
    "PAS of the benchmark": "expected PAS of an experiment with these participant numbers",
    "PAS of one test": "PAS at the population effect",
    "ECS for new studies": "ECS of very many studies drawn in the same way",
    "ECS for these studies": "expected ECS of an experiment with these participant numbers",
}
KINDS = ("ttest_ind", "contingency", "correlation", "ttest_paired")


@dataclass(frozen=True, kw_only=True)
class World:
    """Tests whose truth is known."""

    tests: tuple[StudyTest, ...]  # the human side as it was found
    effects: np.ndarray  # of the agent, in truth: d, ln OR, atanh r, d

    def run(self, rng: np.random.Generator) -> list[StudyTest]:
        """The same tests with the agent's side drawn anew."""
        return [
            replace(test, agent=draw(test.kind, test.agent, effect, rng))
            for test, effect in zip(self.tests, self.effects, strict=True)
        ]


def draw(kind: str, side: Side, effect: float, rng: np.random.Generator) -> Side:
    """One experiment."""
    n = int(side.n1)
    if kind in {"ttest_ind", "ttest_paired"}:
        unit = math.sqrt(2 / n) if kind == "ttest_ind" else math.sqrt(1 / n)
        df = 2 * n - 2 if kind == "ttest_ind" else n - 1
        return replace(
            side, statistic=float((effect / unit + rng.standard_normal()) / math.sqrt(rng.chisquare(df) / df))
        )
    if kind == "correlation":
        x = rng.standard_normal(n)
        rho = math.tanh(effect)
        y = rho * x + math.sqrt(1 - rho * rho) * rng.standard_normal(n)
        return replace(side, statistic=float(np.corrcoef(x, y)[0, 1]))
    k1, k2 = rng.binomial(n, expit(effect / 2)), rng.binomial(n, expit(-effect / 2))
    return replace(side, table=((int(k1), n - int(k1)), (int(k2), n - int(k2))))


def expit(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def exact(kind: str, side: Side, effect: float) -> Side:
    """The side whose statistic is that of the effect itself."""
    n = int(side.n1)
    if kind == "ttest_ind":
        return replace(side, statistic=effect / math.sqrt(2 / n))
    if kind == "ttest_paired":
        return replace(side, statistic=effect * math.sqrt(n))
    if kind == "correlation":
        return replace(side, statistic=math.tanh(effect))
    k = round(n * expit(effect / 2))
    return replace(side, table=((k, n - k), (n - k, k)))


UNIT = {"ttest_ind": 1.0, "ttest_paired": 1.0, "contingency": math.pi / math.sqrt(3), "correlation": 0.5}


def world(rng: np.random.Generator, *, studies: int = 12, findings: int = 4) -> World:
    """Human effects about d = 0.4, the agent's half like them and half its own."""
    tests, effects = [], []
    for study in range(studies):
        own = rng.normal(0, 0.3)
        for finding in range(findings):
            kind = KINDS[int(rng.integers(len(KINDS)))]
            n = int(rng.integers(20, 100))
            d_human = rng.normal(0.4, 0.4) + own
            d_agent = 0.7 * d_human + rng.normal(0.2, 0.35)
            side = Side(n1=n, n2=n)
            human = draw(kind, side, d_human * UNIT[kind], rng)
            tests.append(
                StudyTest(study=f"s{study}", finding=f"F{finding}", test="T1", kind=kind, human=human, agent=side)
            )
            effects.append(d_agent * UNIT[kind])
    return World(tests=tuple(tests), effects=np.array(effects))


def simulate(
    what: str, *, runs: int, replicates: int = 400, studies: int = 12, seed: int = 1, times: int = 4
) -> tuple[float, int]:
    """The share of intervals that hold their estimand, and the number of intervals.

    `times`: how many experiments give the expectation for each that has an interval.
    """
    rng = np.random.default_rng(seed)
    if what == "PAS of one test":
        held = one_test(rng, runs)
    elif what == "ECS for new studies":
        held = new_studies(rng, runs)
    else:
        held = fixed_studies(rng, runs, replicates, ecs=what.startswith("ECS"), studies=studies, times=times)
    return float(np.mean(held)), len(held)


def fixed_studies(
    rng: np.random.Generator, runs: int, replicates: int, *, ecs: bool, studies: int, times: int
) -> list[bool]:
    held: list[bool] = []
    each = min(50, max(1, runs // 4))  # many worlds: a single one may be lucky
    while len(held) < runs:
        place = world(rng, studies=studies)
        found, spans = [], []
        for run in range(times * each):  # all for the expectation, some with intervals
            agreement = score_tests(place.run(rng))
            found.append(agreement.benchmark.ecs.value if ecs else agreement.benchmark.pas)
            if run < each:
                sure = score_uncertainty(agreement, rng=rng, replicates=replicates)
                spans.append((sure.ecs_fixed if ecs else sure.pas)["benchmark", ""])
        expected = float(np.mean(found))
        held += [span.low <= expected <= span.high for span in spans]
    return held


def one_test(rng: np.random.Generator, runs: int) -> list[bool]:
    held: list[bool] = []
    while len(held) < runs:
        place = world(rng, studies=1, findings=1)
        test = place.tests[0]
        truth = score_test(replace(test, agent=exact(test.kind, test.agent, float(place.effects[0])))).pas
        for _ in range(5):
            span = pas_interval_of_test(score_test(place.run(rng)[0]))
            held.append(span.low <= truth <= span.high)
    return held


def new_studies(rng: np.random.Generator, runs: int) -> list[bool]:
    truth = weighted_ccc(*ecs_sample(np.random.default_rng(99), 60_000)[:2]).value
    held: list[bool] = []
    for _ in range(runs):
        human, agent, studies = ecs_sample(rng, 12)
        span = ecs_interval(human, agent, studies, list(range(len(studies))))
        held.append(span.low <= truth <= span.high)
    return held


def ecs_sample(rng: np.random.Generator, studies: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Observed effects of studies drawn anew: four tests each, 60 people a group."""
    labels = np.repeat(np.arange(studies), 4)
    human = rng.normal(0.4, 0.4, labels.size) + rng.normal(0, 0.3, studies)[labels]
    agent = 0.7 * human + rng.normal(0.2, 0.35, labels.size)
    error = math.sqrt(2 / 60)
    return human + rng.normal(0, error, labels.size), agent + rng.normal(0, error, labels.size), labels.tolist()


def main() -> None:
    """Prints the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for what, low, high in BANDS:
        share, count = simulate(what, runs=runs)
        verdict = "ok" if low <= share <= high else "MISSED"
        print(f"{what:24} {share:6.1%} of {count:5}, wanted {low:.0%}–{high:.0%} {verdict:7} {ESTIMANDS[what]}")


if __name__ == "__main__":
    main()
