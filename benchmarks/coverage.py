"""How often intervals of PAS and ECS cover their estimand, by simulation.

    python benchmarks/coverage.py [runs]
    python benchmarks/coverage.py shipped [draws] [study …]

First, unless `shipped` is given: studies of t tests, tables and correlations with 20 to 100 people per group. Human
numbers are drawn once and kept fixed; the agent's are drawn anew in every run from fixed true effects. Where
participants are resampled, each study is four tests of the same people, and in games they come in groups of
similar members. Each interval is judged by its own estimand, which is shown next to it.

Second, the intervals of each shipped study: participants (in games, groups) are drawn with replacement from the
human copy, 200 times by default, and each draw is scored like a run. The estimand is the mean score of 1,000 further
draws.

Exits with 1 if a share is outside its band. A share in `EXCEPTIONS` may be above its band, but never below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from karat_studies.kinds.study.bootstrap import StudyRun, study_draws, units_of
from karat_studies.kinds.study.copy import answer_copy
from karat_studies.kinds.study.experiments import study_experiments
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study
from karat_studies.replication import (
    Agreement,
    Draws,
    Side,
    Spread,
    StudyTest,
    TestRows,
    ecs_interval,
    join_draws,
    multiplicities,
    pas_interval_of_test,
    replicate_test,
    score_test,
    score_tests,
    score_uncertainty,
    weighted_ccc,
)

if TYPE_CHECKING:
    from benchmarks.limits import Limits

    from karat_studies.kinds.study.experiments import Response
    from karat_studies.kinds.study.format import StudyFile

BANDS = [
    ("PAS of the benchmark", 0.93, 1.0),
    ("PAS of one test", 0.90, 0.98),
    ("ECS for new studies", 0.92, 0.97),
    ("ECS for these studies", 0.92, 0.97),
    ("PAS, participants drawn", 0.93, 1.0),
    ("PAS, groups drawn", 0.90, 1.0),
    ("ECS, participants drawn", 0.92, 1.0),
]
ESTIMANDS = {
    "PAS of the benchmark": "expected PAS of an experiment with these participant numbers",
    "PAS of one test": "PAS at the population effect",
    "ECS for new studies": "ECS of very many studies drawn in the same way",
    "ECS for these studies": "expected ECS of an experiment with these participant numbers",
    "PAS, participants drawn": "expected PAS of an experiment with these participant numbers",
    "PAS, groups drawn": "the same, in games of 5 groups of 8 in each arm",
    "ECS, participants drawn": "expected ECS of an experiment with these participant numbers",
}
STUDY_BAND = (0.92, 0.98)
WIDE_PAS = "too wide: the wider of two intervals is taken, because each alone covers too little in other studies"
WIDE_ECS = "too wide: percentiles are expanded for small arms, and moved by half of the bias, as other studies need it"
EXCEPTIONS = {
    ("alcohol_norms", "ECS"): "no ECS: fewer than three tests have an effect",
    ("bargaining", "PAS"): WIDE_PAS,
    ("beauty_contest", "PAS"): "no interval: an arm has 3 or 4 groups to draw from",
    ("beauty_contest", "ECS"): "no interval: an arm has 3 or 4 groups to draw from",
    ("false_consensus", "PAS"): WIDE_PAS,
    ("false_consensus", "ECS"): WIDE_ECS,
    ("framing", "ECS"): WIDE_ECS,
    ("impressions", "PAS"): WIDE_PAS,
    ("impressions", "ECS"): WIDE_ECS,
    ("trust", "PAS"): WIDE_PAS,
    ("trust", "ECS"): WIDE_ECS,
}
KINDS = ("ttest_ind", "contingency", "correlation", "ttest_paired")


@dataclass(frozen=True, kw_only=True)
class World:
    """Tests with known true effects."""

    tests: tuple[StudyTest, ...]  # with the human side as observed
    effects: np.ndarray  # the agent's true effects: d, ln OR, atanh r, d

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
    """The side whose statistic equals the effect."""
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
    """Human effects around d = 0.4; half of the agent's are like them, half its own."""
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
    name: str, *, runs: int, replicates: int = 400, studies: int = 12, seed: int = 1, times: int = 4
) -> tuple[float, int]:
    """The share of intervals that cover their estimand, and the number of intervals.

    `times`: how many experiments give the expectation for each that has an interval.
    """
    rng = np.random.default_rng(seed)
    if name == "PAS of one test":
        hits = one_test(rng, runs)
    elif name == "ECS for new studies":
        hits = new_studies(rng, runs)
    elif name.endswith("drawn"):
        group = 8 if "groups" in name else 1
        hits = populations(rng, runs, replicates, ecs=name.startswith("ECS"), studies=studies, times=times, group=group)
    else:
        hits = fixed_studies(rng, runs, replicates, ecs=name.startswith("ECS"), studies=studies, times=times)
    return float(np.mean(hits)), len(hits)


def fixed_studies(
    rng: np.random.Generator, runs: int, replicates: int, *, ecs: bool, studies: int, times: int
) -> list[bool]:
    hits: list[bool] = []
    intervals = min(50, max(1, runs // 4))  # many worlds: a single one may be lucky
    while len(hits) < runs:
        place = world(rng, studies=studies)
        scores, spans = [], []
        for run in range(times * intervals):  # all for the expectation, some with intervals
            agreement = score_tests(place.run(rng))
            scores.append(agreement.benchmark.ecs.value if ecs else agreement.benchmark.pas)
            if run < intervals:
                sure = score_uncertainty(agreement, rng=rng, replicates=replicates)
                spans.append((sure.ecs_fixed if ecs else sure.pas)["benchmark", ""])
        expected = float(np.mean(scores))
        hits += [span.low <= expected <= span.high for span in spans]
    return hits


@dataclass(frozen=True, kw_only=True)
class Population:
    """A study of four tests of the same people, in two arms."""

    people: int  # in each arm
    effects: np.ndarray  # the agent's true effects: x and y between the arms, x above y, correlation
    human: tuple[Side, ...]
    group: int  # members of a group, who are similar; 1: everyone plays alone

    def run(self, rng: np.random.Generator, name: str) -> tuple[list[StudyTest], list[TestRows]]:
        """An experiment: its tests, and the rows behind them."""
        rows = asked(rng, self.people, self.effects, group=self.group)
        sides = [side_of(row) for row in rows]
        tests = [
            StudyTest(study=name, finding=f"F{at}", test="T", kind=row.kind, human=human, agent=side)
            for at, (row, human, side) in enumerate(zip(rows, self.human, sides, strict=True))
        ]
        return tests, rows


def population(rng: np.random.Generator, *, group: int) -> Population:
    """Human effects around d = 0.4; half of the agent's are like them, half its own."""
    people = int(rng.integers(20, 100)) if group == 1 else 5 * group
    human = np.append(rng.normal(0.4, 0.4, 3) + rng.normal(0, 0.3), rng.uniform(-0.2, 0.6))
    agent = np.append(0.7 * human[:3] + rng.normal(0.2, 0.35, 3), rng.uniform(-0.2, 0.6))
    sides = tuple(side_of(row) for row in asked(rng, people, human, group=1))
    return Population(people=people, effects=agent, human=sides, group=group)


def asked(rng: np.random.Generator, people: int, effects: np.ndarray, *, group: int) -> list[TestRows]:
    """The rows of a t test, a table, a paired t test and a correlation of the same people."""
    arm, units = np.repeat([0, 1], people), np.arange(2 * people) // group
    rho = effects[3]
    own, other = rng.standard_normal((2, 2 * people))
    if group > 1:  # a tenth of the variance is the group's
        shared = rng.standard_normal((2, units.max() + 1))[:, units]
        own, other = (
            math.sqrt(0.9) * single + math.sqrt(0.1) * both for single, both in zip((own, other), shared, strict=True)
        )
    x = own + effects[0] * (arm == 0)
    y = rho * own + math.sqrt(1 - rho * rho) * other + effects[1] * (arm == 0)
    apart = x - y - effects[0] * (arm == 0) + effects[1] * (arm == 0) + effects[2]
    together: dict[str, Any] = {"units": units, "groups": np.zeros_like(arm), "levels": 1}
    compared: dict[str, Any] = {"units": units, "groups": arm, "levels": 2}
    return [
        TestRows(kind="ttest_ind", values=x, scale=10.0, **compared),
        TestRows(kind="contingency", values=(y <= 0).astype(float), **compared),  # outcome 0 is "above"
        TestRows(kind="ttest_paired", values=apart, scale=10.0, **together),
        TestRows(kind="correlation", values=x, against=y, **together),
    ]


def side_of(rows: TestRows) -> Side:
    """The test with everybody once."""
    n1, n2 = (float((rows.groups == level).sum()) for level in (0, 1))
    if rows.kind == "contingency":
        cells = [[int(((rows.groups == g) & (rows.values == v)).sum()) for v in (0, 1)] for g in (0, 1)]
        return Side(table=(tuple(cells[0]), tuple(cells[1])))
    once = replicate_test(rows, np.ones((1, int(rows.units.max()) + 1)), method="default").statistic[0]
    return Side(statistic=float(once), n1=n1, n2=n2) if n2 else Side(statistic=float(once), n1=n1)


def populations(
    rng: np.random.Generator, runs: int, replicates: int, *, ecs: bool, studies: int, times: int, group: int
) -> list[bool]:
    hits: list[bool] = []
    intervals = min(50, max(1, runs // 4))
    while len(hits) < runs:
        place = [population(rng, group=group) for _ in range(studies)]
        scores, spans = [], []
        for run in range(times * intervals):
            experiments = [study.run(rng, f"s{at}") for at, study in enumerate(place)]
            agreement = score_tests([test for tests, _ in experiments for test in tests])
            scores.append(agreement.benchmark.ecs.value if ecs else agreement.benchmark.pas)
            if run < intervals:
                draws = join_draws([drawn(rows, agreement, rng, replicates) for _, rows in experiments])
                sure = score_uncertainty(agreement, rng=rng, draws=draws)
                spans.append((sure.ecs_fixed if ecs else sure.pas)["benchmark", ""])
        expected = float(np.mean(scores))
        hits += [span.low <= expected <= span.high for span in spans]
    return hits


def drawn(rows: list[TestRows], agreement: Agreement, rng: np.random.Generator, replicates: int) -> Draws:
    """Participants, or groups, resampled within their arm."""
    units = int(rows[0].units.max()) + 1
    strata = np.repeat([0, 1], units // 2)
    weights = np.concatenate(list(multiplicities(strata, rng=rng, replicates=replicates)))
    method = {score.test.kind: score.method for score in agreement.tests}
    tests = [replicate_test(row, weights, method=method[row.kind]) for row in rows]
    return Draws(log_bf=np.stack([test.log_bf for test in tests], 1), d=np.stack([test.d for test in tests], 1))


def one_test(rng: np.random.Generator, runs: int) -> list[bool]:
    hits: list[bool] = []
    while len(hits) < runs:
        place = world(rng, studies=1, findings=1)
        test = place.tests[0]
        truth = score_test(replace(test, agent=exact(test.kind, test.agent, float(place.effects[0])))).pas
        for _ in range(5):
            span = pas_interval_of_test(score_test(place.run(rng)[0]))
            hits.append(span.low <= truth <= span.high)
    return hits


def new_studies(rng: np.random.Generator, runs: int) -> list[bool]:
    truth = weighted_ccc(*ecs_sample(np.random.default_rng(99), 60_000)[:2]).value
    hits: list[bool] = []
    for _ in range(runs):
        human, agent, studies = ecs_sample(rng, 12)
        span = ecs_interval(human, agent, studies, list(range(len(studies))))
        hits.append(span.low <= truth <= span.high)
    return hits


def ecs_sample(rng: np.random.Generator, studies: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Observed effects of newly drawn studies: four tests each, 60 people per group."""
    labels = np.repeat(np.arange(studies), 4)
    human = rng.normal(0.4, 0.4, labels.size) + rng.normal(0, 0.3, studies)[labels]
    agent = 0.7 * human + rng.normal(0.2, 0.35, labels.size)
    error = math.sqrt(2 / 60)
    return human + rng.normal(0, error, labels.size), agent + rng.normal(0, error, labels.size), labels.tolist()


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """A shipped study, and its human copy as the population from which agents are drawn."""

    study: StudyFile
    copy: list[Response]

    def drawn(self, rng: np.random.Generator) -> list[Response]:
        """An experiment: units drawn with replacement within their arms, each copy with its own name."""
        units = units_of(self.copy)
        members: dict[int, list[Response]] = {}
        for row in self.copy:
            members.setdefault(units.participants[row.participant], []).append(row)
        responses: list[Response] = []
        for stratum in np.unique(units.strata):
            inside = np.flatnonzero(units.strata == stratum)
            for number, unit in enumerate(rng.choice(inside, inside.size).tolist()):
                mark = f"#{stratum}.{number}"
                responses += [
                    replace(row, participant=row.participant + mark, group=row.group and row.group + mark)
                    for row in members[unit]
                ]
        return responses

    def scored(self, rng: np.random.Generator, count: int) -> Iterator[tuple[Agreement, StudyRun]]:
        """Draws and scores experiments, 50 at a time."""
        for at in range(0, count, 50):
            experiments = [self.drawn(rng) for _ in range(min(50, count - at))]
            scored = study_experiments(self.study, experiments, reducer=None, refused=None, arms=list(self.study.arms))
            for responses, experiment in zip(experiments, scored, strict=True):
                agreement = score_tests(experiment.tests, min_coverage=0.0)
                yield agreement, StudyRun(responses=responses, data=experiment.data or {}, scores=agreement.tests)

    def intervals(self, draws: int, *, seed: int = 1, replicates: int = 500) -> dict[str, tuple[float, list[Spread]]]:
        """For PAS and ECS: the estimand, and the interval of each draw that has one."""
        rng, name = np.random.default_rng(seed), self.study.study
        pas, ecs = zip(*((a.studies[0].pas, a.studies[0].ecs.value) for a, _ in self.scored(rng, 1_000)), strict=True)
        truths = {"PAS": pas, "ECS": ecs}
        spreads: dict[str, list[Spread]] = {"PAS": [], "ECS": []}
        for agreement, run in self.scored(rng, draws):
            resampled = study_draws(self.study, [run], rng=rng, replicates=replicates)[0].draws
            sure = score_uncertainty(agreement, rng=rng, draws=resampled)
            for estimand, spread in (("PAS", sure.pas["study", name]), ("ECS", sure.ecs_fixed["study", name])):
                if math.isfinite(spread.low):
                    spreads[estimand].append(spread)
        known = {kind: [value for value in values if math.isfinite(value)] for kind, values in truths.items()}
        return {kind: (float(np.mean(known[kind])) if known[kind] else math.nan, spreads[kind]) for kind in spreads}


def shipped(limits: Limits, draws: int, names: list[str]) -> None:
    """Prints a line for PAS and one for ECS per study."""
    for name in names or sorted(shipped_studies()):
        study = read_study(shipped_studies()[name].parent)
        for estimand, (truth, spans) in Shipped(study=study, copy=answer_copy(study)).intervals(draws).items():
            covered = sum(span.low <= truth <= span.high for span in spans) / len(spans) if spans else math.nan
            width = float(np.mean([span.high - span.low for span in spans])) if spans else math.nan
            if (name, estimand) in EXCEPTIONS:
                verdict = f"exception: {EXCEPTIONS[name, estimand]}"
                if spans:  # coverage must not be too low
                    verdict = f"{limits.check(f'{estimand} of {name}', covered, '≥', STUDY_BAND[0])}, {verdict}"
            else:
                verdict = within(limits, f"{estimand} of {name}", covered, *STUDY_BAND)
            figures = f"{truth:6.3f} {covered:6.1%} of {len(spans):3} intervals, mean width {width:.2f}"
            print(f"{name:18} {estimand} {figures}  {verdict}", flush=True)


def within(limits: Limits, title: str, share: float, low: float, high: float) -> str:
    """`ok`, or the missed limit."""
    verdicts = [limits.check(title, share, "≥", low), limits.check(title, share, "≤", high)]
    return next((verdict for verdict in verdicts if "MISSED" in verdict), "ok")


def main() -> None:
    """Prints a table; exits with 1 when a share is outside its band."""
    import _results as results  # type: ignore[import-not-found]  # beside this file
    from limits import Limits  # type: ignore[import-not-found]

    parser = results.parser(__doc__)
    parser.add_argument("arguments", nargs="*")
    options, limits = parser.parse_args(), Limits()
    first, *more = options.arguments or ["1000"]
    only = first == "shipped"
    if not only:
        runs = int(first)
        for name, low, high in BANDS:
            share, count = simulate(name, runs=runs)
            verdict = within(limits, name, share, low, high)
            print(f"{name:24} {share:6.1%} of {count:5}, wanted {low:.0%}–{high:.0%} {verdict:7} {ESTIMANDS[name]}")
    shipped(limits, int(more[0]) if only and more else 200, more[1:] if only else [])
    about = "Shares of intervals that hold their estimand: by simulation, and for draws of people's own copy."
    results.write(options.json, limits.section("Coverage of intervals of PAS and ECS", about))
    limits.exit()


if __name__ == "__main__":
    main()
