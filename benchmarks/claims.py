"""How often karat claims a winner where there is none: `python benchmarks/claims.py [EXPERIMENTS [PART …]]`.

500 experiments by default, each compared by the code behind every report. At most 6.4 % may have a winner: 5 % and two
standard errors of 1,000 experiments. A row of pairs of agents takes minutes, and has a fifth of the experiments.
Parts: `losses`, `clusters`, `stops`, `conditions`, `power`, `pairs`, `again`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import _results as results  # beside this file
import msgspec
import numpy as np
from limits import Limits

import karat
from karat.analysis.estimates import differences
from karat.analysis.grids import Grid
from karat.analysis.model import Difference
from karat.analysis.stopping import StoppingRule
from karat.analysis.units import units_of_grid
from karat.journal import Horizon
from karat.records import Metric
from karat.stats import paired_difference, same_verdict, sequential_look

Floats = np.ndarray
MOST = 0.064
CALIBRATED = 0.07  # between a predicted chance and the share that repeats
TEMPLATE = karat.summarize(Path(__file__).parents[1] / "tests" / "corpus" / "runs" / "demo").metrics[0]
SCALES = {"0/1": (0.0, 1.0), "1-5": (1.0, 5.0)}
SIZES = ((30, 1), (30, 3), (100, 1), (100, 3))
STUDIES = ("side_effects", "impressions", "framing")


def answers(
    rng: np.random.Generator, scale: str, shape: tuple[int, int, int], better: float = 0.0, shared: Floats | None = None
) -> Floats:
    """Scores, questions × conditions × repetitions, of equal conditions; the second may be `better`.

    `shared`: what is added to all answers to a question under the second condition.
    """
    latent = rng.normal(0.3, 0.8, (shape[0], 1, 1)) + rng.normal(0, 0.8, shape)
    latent[:, 1] += better
    if shared is not None:
        latent[:, 1] += shared[:, None]
    return (latent > 0).astype(float) if scale == "0/1" else np.clip(np.rint(3 + latent), 1, 5)


def compared(
    scale: str, values: Floats, lost: Floats | None = None, clusters: Floats | None = None, *, every: bool = False
) -> list[Difference]:
    """The comparisons of a report. `lost`: trials that the agent lost."""
    low, high = SCALES[scale]
    kind = "share" if scale == "0/1" else "ordinal"
    metric = msgspec.structs.replace(TEMPLATE, key="score", low=low, high=high, kind=kind, direction="higher")
    gone = np.zeros(values.shape, dtype=bool) if lost is None else lost
    grid = Grid(metric, np.where(gone, np.nan, values), (np.empty(0), np.empty(0, dtype=np.int64)), {})
    names = [f"c{number}" for number in range(values.shape[1])]
    units = {name: units_of_grid(grid, column, {"agent": gone}, clusters) for column, name in enumerate(names)}
    return differences([grid], names, [units], level=0.95, every=every)


def won(found: list[Difference]) -> bool:
    return any(difference.winner is not None for difference in found)


def losses(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """One of two equal agents loses answers: 60 % of its bad ones, or 25 % of all."""
    for scale in SCALES:
        for questions, repetitions in SIZES:
            for name in ("60 % of bad answers", "25 % at random"):
                hits = []
                for _ in range(experiments):
                    values = answers(rng, scale, (questions, 2, repetitions))
                    bad = values <= (0.0 if scale == "0/1" else 2.0)
                    share = 0.6 * bad if name.startswith("60") else np.full(values.shape, 0.25)
                    lost = rng.random(values.shape) < share
                    lost[:, 0] = False
                    hits.append(won(compared(scale, values, lost)))
                yield f"loss of {name}, {scale}, {questions} × {repetitions}", float(np.mean(hits))


def clusters(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """Documents on which one of two agents, equal on average, does better or worse."""
    for documents, each in ((6, 10), (12, 5), (20, 10)):
        labels = np.repeat(np.arange(documents), each)
        for scale in SCALES:
            hits = []
            for _ in range(4 * experiments):
                shared = rng.normal(0, 0.8, documents)[labels]
                values = answers(rng, scale, (labels.size, 2, 1), shared=shared)
                hits.append(won(compared(scale, values, clusters=labels)))
            yield f"clusters, {documents} × {each}, {scale}", float(np.mean(hits))
    yield from one_mean(rng, experiments)


def one_mean(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """The mean of clustered differences against 0, where there are enough clusters for a verdict."""
    for documents in (5, 8, 12, 20, 30):
        for icc in (0.0, 0.3, 0.8):
            for equal in (True, False):
                hits = []
                for _ in range(4 * experiments):
                    sizes = np.full(documents, 10) if equal else rng.integers(2, 25, documents)
                    labels = np.repeat(np.arange(documents), sizes)
                    shared = rng.normal(0, icc**0.5, documents)[labels]
                    d = shared + rng.normal(0, (1 - icc) ** 0.5, labels.size)
                    found = paired_difference(np.zeros(d.size), d, sources=labels)
                    if found.df >= 4 - 1e-9:
                        hits.append(found.p < 0.05)
                sizes_of = "10 questions" if equal else "2 to 24 questions"
                if len(hits) >= experiments:
                    yield f"clusters, {documents} of {sizes_of}, ICC {icc:g}", float(np.mean(hits))


def stops(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float] | tuple[str, float, float]]:
    """Runs that may stop early over such documents, by the runner's own rule; then without documents."""
    uneven = np.arange(40) % 5 + 1
    for scale, (low, high) in SCALES.items():
        metric = Metric(name="score", low=low, high=high)
        for name, sizes in (("60 × 5", np.full(60, 5)), ("40 × 3, uneven", uneven)):
            hits = []
            for _ in range(experiments):
                drawn = rng.permutation(sizes)
                shared = np.repeat(rng.normal(0, 0.8, drawn.size), drawn)
                means = answers(rng, scale, (shared.size, 2, 1), shared=shared).mean(axis=2)
                hits.append(bool(stop_rule(metric, shared.size, drawn).look(means, shared.size)))
            yield f"early stop, clusters, {name}, {scale}", float(np.mean(hits))
        cost = []
        for _ in range(experiments):
            means = answers(rng, scale, (100, 2, 1), better=0.4).mean(axis=2)
            d = means[:, 1] - means[:, 0]
            looks = (sequential_look(d[:n], horizon=100, scale=high - low) for n in range(20, 101))
            plain = any(look.decision == "better" for look in looks)
            cost.append(plain - bool(stop_rule(metric, 100).look(means, 100)))
        yield f"early stop, power lost without clusters, 100 questions, {scale}", float(np.mean(cost)), 0.0


def stop_rule(metric: Metric, questions: int, sizes: Floats | None = None) -> StoppingRule:
    """The rule of a run with two conditions. `sizes`: questions of each cluster, in order."""
    horizon = Horizon(
        questions=questions, clusters=None if sizes is None else sizes.size, order="", seed=0, repetitions=1,
        pairs=(("c0", "c1"),), metric=metric.name, scorer="", scoring="", alpha=0.05,
    )  # fmt: skip
    return StoppingRule(horizon, metric, ["c0", "c1"], sizes=None if sizes is None else sizes.tolist())


def conditions(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """Eight equal conditions, every pair compared."""
    for scale in SCALES:
        for questions, repetitions in ((30, 3), (100, 1)):
            hits = [
                won(compared(scale, answers(rng, scale, (questions, 8, repetitions)), every=True))
                for _ in range(experiments)
            ]
            yield f"eight conditions, {scale}, {questions} × {repetitions}", float(np.mean(hits))


def power(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """What the rule for losses costs where nothing is lost: the t test's winners less the report's."""
    for scale in SCALES:
        for questions, repetitions in SIZES:
            cost = []
            for _ in range(experiments):
                values = answers(rng, scale, (questions, 2, repetitions), better=0.4)
                a, b = (values[:, column].mean(axis=1) for column in (0, 1))
                plain = paired_difference(a, b)
                cost.append((plain.p < 0.05 and plain.value > 0) - won(compared(scale, values)))
            yield f"power lost without loss, {scale}, {questions} × {repetitions}", float(np.mean(cost))


def pairs(_: np.random.Generator, experiments: int) -> Iterator[tuple[str, float]]:
    """Two agents that know nothing about people: is one called closer to them?"""
    from knowledge_free import SORTS, World  # beside this file

    for name in STUDIES:
        world = World(name, seed=1)
        for sort in SORTS:
            yield f"know-nothing pairs, {name}, {sort}", world.winners(sort, experiments // 5)


def again(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, float]]:
    """How far the predicted chance that a winner wins again is from the share that does, by tenths of the former."""
    draws, df = 80 * experiments, 99
    for name, spread, real in (("2 se", 2.0, 1.0), ("2.8 se", 2.8, 1.0), ("2.8 se, half are null", 2.8, 0.5)):
        effects = rng.normal(0, spread, draws) * (rng.random(draws) < real)
        first, second = (effects + rng.normal(0, 1, draws) for _ in range(2))
        errors = np.sqrt(rng.chisquare(df, (2, draws)) / df)
        chances = [same_verdict(value, se, df) for value, se in zip(first, errors[0], strict=True)]
        winners = np.array([chance.significant for chance in chances])
        predicted = np.array([chance.new_questions for chance in chances])[winners]
        repeat = np.array(
            [same_verdict(value, se, df).significant for value, se in zip(second, errors[1], strict=True)]
        )
        same = (repeat & (np.sign(first) == np.sign(second)))[winners]
        yield f"same again, effects of {name}: all winners", abs(predicted.mean() - same.mean()), CALIBRATED
        tenths = np.rint(10 * predicted)
        for tenth in np.unique(tenths):
            there = tenths == tenth
            if there.sum() >= 100:
                title = f"  predicted {predicted[there].mean():.0%}, seen {same[there].mean():.0%}: off by"
                error = 2 * (0.25 / there.sum()) ** 0.5
                yield title, abs(predicted[there].mean() - same[there].mean()), CALIBRATED + error


Part = Callable[[np.random.Generator, int], Iterator[tuple[str, float] | tuple[str, float, float]]]
PARTS: dict[str, tuple[Part, float]] = {
    "losses": (losses, MOST),
    "clusters": (clusters, MOST),
    "stops": (stops, MOST),
    "conditions": (conditions, MOST),
    "power": (power, 0.0),
    "pairs": (pairs, MOST),
    "again": (again, CALIBRATED),
}


def main() -> None:
    """Prints the table; exits with 1 when a figure is above its limit."""
    parser = results.parser(__doc__)
    parser.add_argument("experiments", type=int, nargs="?", default=500)
    parser.add_argument("parts", nargs="*")
    options, limits = parser.parse_args(), Limits()
    for name in options.parts or PARTS:
        part, most = PARTS[name]
        for title, figure, *limit in part(np.random.default_rng(20261126), options.experiments):
            verdict = limits.check(title, figure, "≤", round(limit[0] if limit else most, 3))
            print(f"{title:70} {figure:7.3f}   {verdict}", flush=True)
    about = (
        f"Shares of {options.experiments:,} simulated experiments without a difference that have a winner; "
        f"of know-nothing pairs, {options.experiments // 5:,} a row; of clusters, {4 * options.experiments:,}."
    )
    results.write(options.json, limits.section("What karat claims", about))
    limits.exit()


if __name__ == "__main__":
    main()
