"""The uncertainty of PAS and ECS: what would vary if the agent's participants were redrawn.

Human numbers are held fixed. The interval of a benchmark or domain PAS is the estimate ± z
bootstrap standard errors (1.96 at 95 %), clipped to [0, 1]: its estimand is the expected PAS of an
experiment with these participant numbers. Percentiles are never used for it; they cover 38–95 %. A
study has an interval with the same estimand but another method (`_study_interval`), and so has a
domain or benchmark in which no other study has a score; `benchmarks/coverage.py` measures it for
each shipped study. Findings have a standard error and no claim of coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from karat.stats import special
from karat_studies.replication._inputs import Floats, percentiles_of_level, z_of_level
from karat_studies.replication.agreement import CLAMP, posterior
from karat_studies.replication.consistency import FEWEST, EcsInterval, ccc_rows, noise_ceiling
from karat_studies.replication.counts import gunel_dickey
from karat_studies.replication.evidence import (
    RANK_KINDS,
    SHARE_KINDS,
    draw_agent,
    interval_of_effect,
    log_bf10_of,
    statistic_of,
)
from karat_studies.replication.scores import Agreement, Scored, TestScore, effects_of, test_weights

NAN = float("nan")

FindingId = tuple[str, str, str]
Key = tuple[str, str] | tuple[str, FindingId]
WHOLE: Key = ("benchmark", "")
POINT = 5e-4  # a narrower interval is printed as a point
FEWEST_UNITS = 5  # per arm: resampling fewer says too little about other participants


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """A score with its bootstrap standard error. An interval of NaN: none is claimed."""

    value: float
    se: float
    low: float = NAN
    high: float = NAN
    n: int  # tests that count
    method: str
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertainty:
    """For every level of an agreement, by ("benchmark", ""), ("domain", name), ("study", name),
    ("finding", id).
    """

    pas: dict[Key, Spread]
    # for these studies: percentiles of the bootstrap over participants; no findings
    ecs_fixed: dict[Key, Spread]
    # the overall ECS of a perfect copy, given both sides' standard errors
    noise_ceiling: float = NAN
    noise_ceiling_n: int = 0  # tests with both errors
    # the same, study by study; NaN for fewer than 3 tests
    ecs_ceiling: dict[str, float] = field(default_factory=dict)
    ecs_new: EcsInterval  # of the overall ECS, for new studies
    replicates: int
    each: tuple[Uncertainty, ...] = ()  # of every repetition, in the uncertainty of their means


@dataclass(frozen=True, kw_only=True, slots=True)
class Draws:
    """Replicates of the agent's side: arrays (replicates, tests)."""

    log_bf: Floats
    d: Floats
    drawn: tuple[str, ...] = ()  # per test: participants, groups, statistic; empty: statistics
    units: tuple[int, ...] = ()  # per test: units in its smallest arm; 0, empty: statistics


def draw_scores(
    agreement: Agreement, *, rng: np.random.Generator, replicates: int = 2_000
) -> Draws:
    """The agent's Bayes factors and effects, redrawn for every test."""
    columns = [
        draw_statistics(score, rng=rng, replicates=replicates, convention=agreement.convention)
        for score in agreement.tests
    ]
    if not columns:
        return Draws(log_bf=np.empty((replicates, 0)), d=np.empty((replicates, 0)))
    return Draws(
        log_bf=np.stack([c[0] for c in columns], axis=1),
        d=np.stack([c[1] for c in columns], axis=1),
    )


def draw_statistics(
    score: TestScore,
    *,
    rng: np.random.Generator,
    replicates: int,
    convention: str = "humanstudy",
) -> tuple[Floats, Floats]:
    """(ln BF10, d) of one test, its statistic drawn from its sampling distribution."""
    return draw_agent(
        score.test.kind,
        score.test.agent,
        rng,
        replicates,
        method=score.method,
        convention=convention,
    )


def join_draws(parts: Sequence[Draws]) -> Draws:
    """Replicates of several studies side by side, in the order of their tests.

    If a study has fewer replicates than another, they are repeated: studies are drawn separately,
    so each keeps its spread.
    """
    if not parts:
        return Draws(log_bf=np.empty((0, 0)), d=np.empty((0, 0)))
    rows = np.arange(max(len(part.log_bf) for part in parts))
    return Draws(
        log_bf=np.concatenate([part.log_bf[rows % len(part.log_bf)] for part in parts], axis=1),
        d=np.concatenate([part.d[rows % len(part.d)] for part in parts], axis=1),
        drawn=tuple(
            how for part in parts for how in part.drawn or ("statistic",) * part.d.shape[1]
        ),
        units=tuple(count for part in parts for count in part.units or (0,) * part.d.shape[1]),
    )


def score_uncertainty(
    agreement: Agreement,
    *,
    rng: np.random.Generator,
    replicates: int = 2_000,
    draws: Draws | None = None,
) -> Uncertainty:
    """Standard errors and intervals (of `agreement.level`) of every level, from replicates of the
    agent's side.

    `draws` are replicates resampled from participants; without them the
    statistics are drawn from their sampling distributions.
    """
    if draws is not None:
        drawn = draws
    else:
        drawn = draw_scores(agreement, rng=rng, replicates=replicates)

    levels = pool(agreement.tests, pas_rows(agreement.tests, drawn.log_bf))
    scores: dict[Key, Scored] = {WHOLE: agreement.benchmark}
    scores.update({("domain", domain.name): domain for domain in agreement.domains})
    scores.update({("study", study.name): study for study in agreement.studies})
    scores.update({("finding", finding.id): finding for finding in agreement.findings})
    names = [study.name for study in agreement.studies]
    streams = rng.spawn(1 + len(names))
    ceiling, tests = _noise_ceiling(agreement, streams[0])
    ceilings = {
        name: _noise_ceiling(agreement, own, study=name)[0]
        for name, own in zip(names, streams[1:], strict=True)
    }
    if len(names) == 1:
        ceiling = ceilings[names[0]]

    # Percentiles of the ECS over replicates, at every level with enough tests
    values: dict[Key, float] = {WHOLE: agreement.benchmark.ecs.value}
    values |= {("domain", domain.name): domain.ecs.value for domain in agreement.domains}
    values |= {("study", study.name): study.ecs.value for study in agreement.studies}
    spreads: dict[Key, Spread] = {}
    for key, (n, rows) in ecs_levels(agreement, drawn).items():
        if rows is None:
            reason = f"needs {FEWEST} tests with errors, has {n}"
            spreads[key] = Spread(
                value=values[key],
                se=NAN,
                n=n,
                method="percentile",
                reason=reason,
            )
        else:
            spreads[key] = ecs_spread(place_of(key, agreement, drawn), values[key], rows, n=n)

    return Uncertainty(
        noise_ceiling=ceiling,
        noise_ceiling_n=tests,
        ecs_ceiling=ceilings,
        pas={
            key: pas_spread(
                place_of(key, agreement, drawn),
                score.pas,
                levels[key],
                n=score.tests_used,
            )
            for key, score in scores.items()
            if key in levels
        },
        ecs_fixed=spreads,
        ecs_new=agreement.ecs_interval,
        replicates=int(drawn.log_bf.shape[0]),
    )


def _noise_ceiling(
    agreement: Agreement, rng: np.random.Generator, *, study: str | None = None
) -> tuple[float, int]:
    """Overall, or for one study; and its tests with both errors."""
    tests = []
    for score in agreement.tests:
        if study is None or score.test.study == study:
            tests.append(score)

    human = np.array(
        [(score.human.d, score.human.d_se, score.agent.d_se) for score in tests]
    ).reshape(-1, 3)
    known = np.isfinite(human).all(axis=1)
    weights = test_weights(tests, known)
    kept = human[known]
    return noise_ceiling(kept[:, 0], kept[:, 1], kept[:, 2], weights[known], rng=rng), len(kept)


def over(draws: Draws) -> str:
    """What was resampled, if given; and how many tests were still drawn by their statistics."""
    kinds = [how for how in dict.fromkeys(draws.drawn) if how != "statistic"]
    if not kinds:
        return ""
    apart = draws.drawn.count("statistic")
    parts = " and ".join(
        part for part in ("participants", "groups") if any(part in kind for kind in kinds)
    )
    return f" over {parts}" + (
        f"; {apart} of {len(draws.drawn)} tests by their statistics" if apart else ""
    )


def pas_rows(tests: Sequence[TestScore], log_bf: Floats) -> Floats:
    """PAS of each test in each replicate."""
    odds = np.array([score.test.prior_odds_agent for score in tests])
    human = np.array([score.pi_human for score in tests])
    agent = np.asarray(posterior(log_bf, odds))
    return np.asarray(human * agent + (1 - human) * (1 - agent))


def pool(tests: Sequence[TestScore], scores: Floats) -> dict[Key, Floats]:
    """PAS of findings, studies, domains and benchmark, for each row of test scores."""
    if not tests:
        return {}
    weights = np.nan_to_num(np.array([score.human.n_eff for score in tests]))
    places: dict[FindingId, list[int]] = {}
    for at, score in enumerate(tests):
        places.setdefault(score.test.finding_id, []).append(at)
    findings: dict[FindingId, Floats] = {}
    for key, own in places.items():
        if len(own) == 1:
            findings[key] = scores[:, own[0]]
            continue

        z = np.arctanh(np.clip(2 * scores[:, own] - 1, -(1 - CLAMP), 1 - CLAMP))
        there = ~np.isnan(z)
        of_tests = weights[own]
        if not of_tests.sum() > 0:
            of_tests = np.ones(len(own))
        mass = there * of_tests
        with np.errstate(invalid="ignore"):
            mean = (np.where(there, z, 0.0) * mass).sum(axis=1) / mass.sum(axis=1)
        findings[key] = np.asarray((np.tanh(mean) + 1) / 2)

    nested: dict[str, list[Floats]] = {}
    for key, values in findings.items():
        nested.setdefault(key[0], []).append(values)
    studies = {name: mean_rows(values) for name, values in nested.items()}
    domain_of = {score.test.study: score.test.domain for score in reversed(tests)}
    domains: dict[str, list[Floats]] = {}
    for name, domain in domain_of.items():
        domains.setdefault(domain, []).append(studies[name])
    pooled: dict[Key, Floats] = {("finding", key): values for key, values in findings.items()}
    pooled.update({("study", name): values for name, values in studies.items()})
    pooled.update({("domain", name): mean_rows(values) for name, values in domains.items() if name})
    pooled[WHOLE] = mean_rows(list(studies.values()))
    return pooled


def mean_rows(rows: Sequence[Floats]) -> Floats:
    """The mean of several arrays, element by element, over the finite ones."""
    stacked = np.stack(rows)
    there = np.isfinite(stacked)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, stacked, 0.0).sum(axis=0) / there.sum(axis=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The level of an interval, and its basis."""

    key: Key  # of the study, for a domain or benchmark in which no other has a score
    level: float
    over: str  # what was resampled
    units: int  # for a study: units in the smallest arm; 0: not known


def place_of(key: Key, agreement: Agreement, draws: Draws) -> Place:
    """The basis of a score's interval."""
    below = []
    for study in agreement.studies:
        if key in {WHOLE, ("domain", study.domain)}:
            below.append(study)

    scored = [study for study in below if study.used] or below
    if len(scored) == 1:
        key = ("study", scored[0].name)
    counts = zip(draws.units, agreement.tests, strict=False)
    return Place(
        key=key,
        level=agreement.level,
        over=over(draws),
        units=min(
            (count for count, score in counts if score.test.study == key[1] and count), default=0
        ),
    )


def pas_spread(place: Place, value: float, values: Floats, *, n: int) -> Spread:
    """`values`: of the replicates."""
    key = place.key
    bare = Spread(value=value, se=sd(values), n=n, method=f"bootstrap SE{place.over}")
    if math.isnan(value):
        return bare
    if key[0] == "finding":
        return replace(bare, reason="no coverage claimed")
    if key[0] == "study":
        return _study_interval(bare, values, place, least=0.0)
    z = z_of_level(place.level)
    low = max(0.0, value - z * bare.se)
    high = min(1.0, value + z * bare.se)
    return replace(bare, low=low, high=high, method=f"± {round(z, 2)} {bare.method}")


def _study_interval(bare: Spread, values: Floats, place: Place, *, least: float) -> Spread:
    """For PAS the wider of percentiles and ± z bootstrap SE, at each end; for ECS (from −1)
    percentiles, shifted back by half of the bootstrap's bias. The percentiles are expanded for the
    units of the smallest arm.

    Measured on draws from people's own copy of the ten shipped studies (decision 0014): near its
    ceiling PAS is skewed, ± z SE covers 79–98 % and percentiles 91–98; for ECS percentiles cover
    68–99 %, shifted by the full bias 88–100.

    Hesterberg (2015), Am. Stat. 69:371, 4.2, for the expansion: α becomes 2Φ(−√(n/(n − 1))·t).
    """
    values = values[np.isfinite(values)]
    units = place.units
    if 0 < units < FEWEST_UNITS:
        return replace(bare, reason=f"an arm has {units} to be drawn from: too few for an interval")
    if values.size < 2 or math.isnan(bare.value):
        return replace(bare, reason=bare.reason or "no replicate has a score")
    wide = z_of_level(place.level)
    if units:
        wide = math.sqrt(units / (units - 1)) * float(
            special.stdtrit(units - 1, (1 + place.level) / 2)
        )

    low, high = (
        float(end) for end in np.quantile(values, [special.ndtr(-wide), special.ndtr(wide)])
    )
    if least < 0:
        bias = (float(values.mean()) - bare.value) / 2
        low = low - bias
        high = high - bias
        method = "percentile, moved by half of the bootstrap's bias"
    else:
        low = min(low, bare.value - wide * bare.se)
        high = max(high, bare.value + wide * bare.se)
        method = "wider of percentile and ± z SE"

    return replace(
        bare,
        low=max(least, low),
        high=min(1.0, high),
        method=bare.method.replace("bootstrap SE", method, 1),
    )


def sd(values: Floats) -> float:
    """Of the finite values; NaN for fewer than two."""
    kept = values[np.isfinite(values)]
    if kept.size > 1:
        return float(kept.std(ddof=1))
    return NAN


def ecs_levels(agreement: Agreement, draws: Draws) -> dict[Key, tuple[int, Floats | None]]:
    """For each level its tests with errors, and the ECS of every replicate; None for too few
    tests.
    """
    human, agent = effects_of(agreement.tests)
    names = [score.test.study for score in agreement.tests]
    domains = [score.test.domain for score in agreement.tests]
    known = np.isfinite(human) & np.isfinite(agent) & np.isfinite(draws.d).any(axis=0)
    inside: dict[Key, list[bool]] = {WHOLE: [True] * len(names)}
    inside |= {
        ("domain", domain.name): [name == domain.name for name in domains]
        for domain in agreement.domains
    }
    inside |= {
        ("study", study.name): [name == study.name for name in names] for study in agreement.studies
    }
    levels: dict[Key, tuple[int, Floats | None]] = {}
    for key, members in inside.items():
        valid = known & np.array(members, dtype=bool)
        n = int(valid.sum())
        rows = None
        if n >= FEWEST:
            own = np.flatnonzero(members)
            weights = test_weights([agreement.tests[at] for at in own], known[own])
            rows = ecs_rows(human[valid], draws.d[:, valid], weights[known[own]])

        levels[key] = n, rows

    return levels


def ecs_spread(place: Place, value: float, values: Floats, *, n: int) -> Spread:
    """For domain and benchmark percentiles, shifted by the bootstrap's bias; for a study see
    `_study_interval`.

    Noise pulls a concordance towards 0, and a bootstrap adds it a second time: if agent and
    people are close, plain percentiles cover 62–93 %; shifted back by mean(replicates) − value,
    93–96 %. Far from people that bias vanishes, and the two are the same.
    """
    values = values[np.isfinite(values)]
    bare = Spread(value=value, se=sd(values), n=n, method=f"bootstrap SE{place.over}")
    if place.key[0] == "study":
        return _study_interval(bare, values, place, least=-1.0)
    if values.size < 2:
        return replace(bare, reason="no replicate has an ECS")
    low, high = np.quantile(values, percentiles_of_level(place.level)) - (values.mean() - value)
    method = f"percentile, moved by the bootstrap's bias{place.over}"
    return replace(bare, low=max(-1.0, float(low)), high=min(1.0, float(high)), method=method)


def ecs_rows(human: Floats, d: Floats, weights: Floats) -> Floats:
    """ECS of each replicate, over the tests that have an effect in it."""
    there = np.isfinite(d)
    mass = there * weights
    mass = mass / mass.sum(axis=1, keepdims=True)
    return np.asarray(ccc_rows(np.broadcast_to(human, d.shape), np.where(there, d, 0.0), mass))


def pas_interval_of_test(score: TestScore, *, level: float = 0.95) -> Spread:
    """The interval of one test's PAS: that of its signed statistic, mapped through ln BF.

    Evidence grows with the distance from no effect, so the ends of the interval give the ends of
    PAS; if the interval contains zero effect, the value there is an end. Constant answers have no
    interval that is a point: they do not show how sure other participants would be.
    """
    bare = Spread(value=score.pas, se=NAN, n=1, method="signed statistic")
    ends = _effect_interval(score, level)
    if ends is None:
        return replace(bare, reason="no signed statistic with an error")
    low, high, nothing = ends
    points = [low, high] + ([nothing] if low < nothing < high else [])
    values = pas_rows([score], np.array([_log_bf_at(score, point) for point in points])[:, None])[
        :, 0
    ]
    values = np.append(values, score.pas)
    low = float(values.min())
    high = float(values.max())
    if high - low < POINT and _is_constant(score):
        return replace(bare, reason="all answers within each group are the same")
    return replace(bare, low=low, high=high)


def _is_constant(score: TestScore) -> bool:
    """Whether the agent gave one and the same answer within each group."""
    side = score.test.agent
    if score.test.kind in SHARE_KINDS:
        return side.statistic in {0, side.n1}
    if score.test.kind == "mannwhitney":
        tied = side.n1**3 - side.n1 + side.n2**3 - side.n2
        return abs(score.agent.effect) == 1 and side.tie_term == tied

    return side.table is not None and all(max(row) == sum(row) for row in side.table)


def _effect_interval(score: TestScore, level: float) -> tuple[float, float, float] | None:
    """(low, high, no effect) in the unit in which the effect is nearly normal."""
    kind = score.test.kind
    side = score.test.agent
    agent = score.agent
    if kind in SHARE_KINDS and math.isfinite(side.statistic):
        low, high = interval_of_effect(kind, side, agent.effect, agent.se, level=level)
        return low, high, side.p0

    if kind in {"correlation", "spearman"} and abs(agent.effect) < 1:
        effect = math.atanh(agent.effect)
    else:
        effect = agent.effect

    if math.isnan(effect) or math.isnan(agent.se):
        return None
    z = z_of_level(level)
    return effect - z * agent.se, effect + z * agent.se, 0.0


def _log_bf_at(score: TestScore, effect: float) -> float:
    kind = score.test.kind
    side = score.test.agent
    if kind in SHARE_KINDS:
        return float(log_bf10_of(kind, side, round(effect * side.n1), method=score.method))
    if kind == "contingency":
        # The table with the same margins and this log odds ratio; its cells need not be whole
        table = np.asarray(side.table, dtype=np.float64)
        (r1, r2), c1 = table.sum(axis=1), table[:, 0].sum()
        low = max(0.0, c1 - r2)
        high = min(r1, c1)
        for _ in range(200):
            a = (low + high) / 2
            cells = np.array([[a, r1 - a], [c1 - a, r2 - c1 + a]])
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(cells)
                now = float(logs[0, 0] + logs[1, 1] - logs[0, 1] - logs[1, 0])

            if now < effect:
                low = a
            else:
                high = a

        return float(gunel_dickey(cells[..., None], 1.0, score.method)[0])

    statistic, _ = statistic_of(kind, side, np.array([effect]))
    method = "asymptotic" if kind in RANK_KINDS else score.method
    return float(np.asarray(log_bf10_of(kind, side, statistic, method=method))[0])
