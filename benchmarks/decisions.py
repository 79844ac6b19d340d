"""How often decision rules err: `python benchmarks/decisions.py [EXPERIMENTS [PART …]]` (default: 1,000).

Simulates experiments with a known truth. Each line: what was simulated, the figure, and its limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from scipy import stats

import karat
from karat.analysis.estimates import differences as compared
from karat.analysis.gate import gate
from karat.analysis.grids import Grid
from karat.analysis.model import Difference, MetricInfo, SampleColumn, SampleTable, Summary
from karat.analysis.stopping import StoppingRule
from karat.analysis.thresholds import Bound, Threshold
from karat.analysis.units import units_of_grid
from karat.journal import Horizon
from karat.records import Metric
from karat.stats import (
    corrected_bounds,
    cusum_alarm,
    draw_for_labels,
    minimum_detectable_effect,
    one_sided_bounds,
    paired_difference,
    same_verdict,
    sequential_look,
    stratified_difference,
    stratified_mean,
    variance_components,
    whitened,
)

Floats = np.ndarray
SKEWED = [0.02, 0.03, 0.1, 0.25, 0.6]  # answers on a scale of 1 to 5
FALSE = "at most 0.064"
TEMPLATE = karat.summarize(Path(__file__).parents[1] / "tests" / "corpus" / "runs" / "demo")


def differences(rng: np.random.Generator, name: str, n: int, repetitions: int, shift: float = 0.0) -> Floats:
    """Differences of question means between two equal conditions, plus `shift`."""
    size = (n, repetitions)
    if name == "1-5":
        first, other = (rng.choice([1, 2, 3, 4, 5], p=SKEWED, size=size).mean(1) for _ in range(2))
    elif name == "0/1":
        first, other = (rng.binomial(1, 0.3, size).mean(1) for _ in range(2))
    else:
        raise ValueError(name)
    return other - first + shift


def decide(d: Floats, scale: float, batch: int = 5, margin: float | None = None) -> tuple[str | None, int, bool]:
    """The decision, with a look after each batch, the questions it took, and whether the interval contains 0."""
    for n in [*range(20, len(d), batch), len(d)]:
        look = sequential_look(d[:n], horizon=len(d), scale=scale, margin=margin)
        if look.decision or n == len(d):
            return look.decision, n, look.low <= 0 <= look.high
    raise AssertionError


def stopping(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """False verdicts, power and savings of the sequential test."""
    for n in (50, 100, 200):
        for name, scale in (("1-5", 4.0), ("0/1", 1.0)):
            for k in (1, 3):
                decisions = [decide(differences(rng, name, n, k), scale) for _ in range(experiments)]
                false = np.mean([verdict is not None for verdict, _, _ in decisions])
                yield f"stop, nothing differs, {name}, N = {n}, k = {k}: decided", false, FALSE
                yield "  its interval holds the truth", np.mean([holds for _, _, holds in decisions]), "0.95 to 0.999"
    for n in (100, 200):
        for share, loss in ((0.08, 3.0), (0.03, 4.0)):
            rows = [
                np.where(rng.random(n) < share, -loss, loss * share / (1 - share)) + rng.normal(0, 0.3, n)
                for _ in range(experiments)
            ]
            fixed = np.mean([stats.ttest_1samp(row, 0).pvalue < 0.05 for row in rows])
            limit = fixed + 2 * math.sqrt(fixed * (1 - fixed) / experiments)
            false = np.mean([decide(row, 4.0)[0] is not None for row in rows])
            yield f"stop, {share:.0%} lose {loss:g} points, N = {n}: decided", false, f"at most {limit:.3f} (t test)"
            at_margin = [decide(row - 0.3 + rng.normal(0, 1e-9), 4.0, margin=0.3)[0] for row in rows]
            same = np.mean([verdict == "equivalent" for verdict in at_margin])
            yield "  called equivalent at a true difference of the margin", same, "at most 0.1"
    for n, saved in ((100, 0.3), (200, 0.4)):
        for name, scale in (("1-5", 4.0), ("0/1", 1.0)):
            for k in (1, 3):
                sd = float(differences(rng, name, 20_000, k).std())
                delta = minimum_detectable_effect(n, sd**2).value
                once, twice = (
                    [
                        decide(differences(rng, name, n, k, times * delta), scale + delta)
                        for _ in range(experiments // 2)
                    ]
                    for times in (1, 2)
                )
                power = np.mean([verdict == "better" for verdict, _, _ in once])
                yield f"stop, the detectable difference, {name}, N = {n}, k = {k}: decided", power, "at least 0.65"
                share = 1 - np.mean([used for _, used, _ in twice]) / n
                yield "  trials saved at twice that", share, f"at least {saved}"


def gates(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Thresholds that are met but called failed, or missed but called passed."""
    for n in (50, 100, 200):
        for best in (0.6, 0.8, 0.92, 0.95, 0.97):
            p = np.append((1 - best) * np.array([0.4, 0.3, 0.2, 0.1]), best)
            truth = float(p @ [1, 2, 3, 4, 5])
            rows = [one_sided_bounds(rng.choice(5, n, p=p) + 1, scale=(1, 5)) for _ in range(experiments)]
            yield f"gate, mean, {best:.0%} best answers, n = {n}: passed below", _share(rows, truth, "low"), FALSE
            yield "  failed above", _share(rows, truth, "high"), FALSE
            rows = [one_sided_bounds(rng.binomial(1, best, n), scale=(0, 1)) for _ in range(experiments)]
            yield f"gate, share of {best:.0%}, n = {n}: passed below", _share(rows, best, "low"), FALSE
            yield "  failed above", _share(rows, best, "high"), FALSE
        for name, draw, truth in (
            ("gamma, shape 2", lambda n=n: rng.gamma(2, 0.5, n), 1.0),
            ("lognormal, sd 0.5", lambda n=n: rng.lognormal(0, 0.5, n), math.exp(0.125)),
            ("lognormal, sd 1", lambda n=n: rng.lognormal(0, 1, n), math.exp(0.5)),
        ):
            rows = [one_sided_bounds(draw(), skewed=True) for _ in range(experiments)]
            yield f"gate, mean cost, {name}, n = {n}: passed above", _share(rows, truth, "high"), FALSE


def gated_runs(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Whole runs, decided by `karat gate`."""
    for n in (50, 100, 200):
        runs = [_run([rng.normal(0.2, 1, n)], scale=(-100, 100)) for _ in range(experiments)]
        undecided = _gate_verdicts(runs, "min", 0.0).count("undecided") / experiments
        yield f"gate, margin of .2 sd, n = {n}: undecided", undecided, "0.60, 0.37, 0.12 at n = 50, 100, 200"
        p = [0.02, 0.03, 0.1, 0.25, 0.6]
        truth = float(np.array(p) @ [1, 2, 3, 4, 5])
        runs = [_run([rng.choice(5, n, p=p) + 1.0 for _ in range(5)]) for _ in range(experiments)]
        verdicts = _gate_verdicts(runs, "min", truth)
        yield f"gate, five conditions at the threshold, n = {n}: failed", verdicts.count("failed") / experiments, FALSE
        yield "  passed", verdicts.count("passed") / experiments, FALSE
        for scale, draw in (
            ("1-5", lambda n=n: rng.choice(5, n, p=SKEWED) + 1.0),
            ("0/1", lambda n=n: rng.binomial(1, 0.8, n)),
        ):
            ends, lost = ((1, 5), 1.0) if scale == "1-5" else ((0, 1), 0.0)
            old = [np.asarray(draw(), dtype=float) for _ in range(experiments)]
            new = [np.where(rng.random(n) < 0.15, lost, row) for row in old]
            truth = 0.15 * ((float(np.array(SKEWED) @ [1, 2, 3, 4, 5]) - 1) if scale == "1-5" else 0.8)
            verdicts = [
                gate(_run([b], scale=ends), [_bound("max_drop", truth)], baseline=_run([a], scale=ends)).verdict
                for a, b in zip(old, new, strict=True)
            ]
            yield (
                f"gate, drop at the threshold, {scale}, n = {n}: passed",
                verdicts.count("passed") / experiments,
                FALSE,
            )
            yield "  failed", verdicts.count("failed") / experiments, FALSE
        runs = []
        for _ in range(experiments):
            right = rng.random(n) < 0.8
            runs.append(_run([np.where(~right & (rng.random(n) < 0.5), np.nan, right)], scale=(0, 1)))
        passed = _gate_verdicts(runs, "min", 0.8).count("passed") / experiments
        yield f"gate, share of 80% whose wrong answers go missing, n = {n}: passed", passed, FALSE


def _run(rows: list[Floats], scale: tuple[float, float] = (1, 5)) -> Summary:
    """A run whose conditions have these question means; NaN: the trial is missing."""
    info = msgspec.structs.replace(TEMPLATE.metrics[0], key="score", low=scale[0], high=scale[1])
    names = tuple(f"c{number}" for number in range(len(rows)))
    columns = tuple(
        SampleColumn(
            condition=name, metric="score", mean=[None if math.isnan(value) else float(value) for value in row],
            sd=[None] * len(row), n=(~np.isnan(row)).astype(int).tolist(),
        )
        for name, row in zip(names, rows, strict=True)
    )  # fmt: skip
    ids = [str(number) for number in range(len(rows[0]))]
    table = SampleTable(ids=ids, positions=list(range(len(ids))), digests=ids, columns=columns)
    return msgspec.structs.replace(
        TEMPLATE, metrics=(info,), conditions=names, repetitions=1, table_of_samples=table, server_problems=(),
        accounts=dict.fromkeys(names, next(iter(TEMPLATE.accounts.values()))),
    )  # fmt: skip


def _bound(bound: Bound, value: float) -> Threshold:
    return Threshold(name="score", bound=bound, value=value)


def _gate_verdicts(runs: list[Summary], bound: Bound, value: float) -> list[str]:
    return [gate(run, [_bound(bound, value)]).verdict for run in runs]


def _share(rows: list, truth: float, side: str) -> float:
    return float(np.mean([row.low >= truth + 1e-12 if side == "low" else row.high < truth for row in rows]))


def repeats(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """The predicted chance of the same verdict, and the share of repeats that gave it, by decile."""
    n, k, se = 100, 2, math.sqrt((1 + 0.5 * 2) / 100)
    worlds = (("effects of 2 se", 2, 1.0), ("effects of 2.8 se", 2.8, 1.0), ("half are null", 2.8, 0.5), ("null", 0, 1))
    for name, spread, real in worlds:
        rows = []
        for effect in rng.normal(0, spread * se, 4 * experiments) * (rng.random(4 * experiments) < real):
            truth = rng.normal(effect, 1, n)
            runs = []
            for questions in (truth, truth, rng.normal(effect, 1, n)):
                a, b = rng.normal(0, 1, (n, k)), questions[:, None] + rng.normal(0, 1, (n, k))
                runs.append((paired_difference(a.ravel(), b.ravel(), np.repeat(np.arange(n), k)), a, b))
            (first, a, b), (again, _, _), (new, _, _) = runs
            agent = (a.var(1, ddof=1).mean() + b.var(1, ddof=1).mean()) / (k * n)
            chance = same_verdict(first.value, first.se, first.df, agent_variance=agent)
            verdicts = [np.sign(d.value) * (d.low > 0 or d.high < 0) for d in (first, again, new)]
            same = [verdict == verdicts[0] for verdict in verdicts]
            rows.append((chance.new_questions, same[2], chance.same_questions, same[1], chance.significant))
        table = np.array(rows, dtype=float)
        winners = table[table[:, 4] == 1]
        yield (
            f"same verdict, {name}: a winner wins again on new questions",
            winners[:, 1].mean(),
            (f"predicted: {winners[:, 0].mean():.3f}"),
        )
        for kind, predicted, same in (("new questions", table[:, 0], table[:, 1]), ("same", table[:, 2], table[:, 3])):
            if spread:
                parts = np.array_split(np.argsort(predicted), 10)
                off = max(abs(predicted[part].mean() - same[part].mean()) for part in parts)
                yield f"same verdict, {name}, {kind}: worst decile is off by", off, "at most 0.07 and 2 errors"


def plans(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Power of planned experiments, and recovery of known variance components."""
    for n, k in ((50, 1), (100, 3), (200, 5)):
        delta = minimum_detectable_effect(n, 0.25, 0.5, k).value
        significant = []
        for _ in range(4 * experiments):
            d = delta + rng.normal(0, 0.5, n) + rng.normal(0, math.sqrt(0.5 * 2 / k), n)
            significant.append(stats.ttest_1samp(d, 0).pvalue < 0.05)
        yield f"plan, n = {n}, k = {k}: power", float(np.mean(significant)), "0.77 to 0.83"
    parts = []
    for _ in range(max(experiments // 10, 10)):
        question = np.repeat(np.arange(100), 6)
        answer, judge = np.repeat(np.arange(300), 2), np.tile([0, 1], 300)
        values = rng.normal(0, 1, 100)[question] + rng.normal(0, 0.7, 300)[answer] + rng.normal(0, 0.4, 600)
        split = variance_components(values, question, judge=judge)
        parts.append((split.between.value, split.within.value, split.judge.value))
    for name, got, planted in zip(
        ("questions", "agent", "judge"), np.mean(parts, axis=0), (1, 0.49, 0.16), strict=True
    ):
        yield f"variance of {name}", float(got), f"planted: {planted}"


def labels(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Coverage of corrected means and differences: 300 questions, three answers each under two conditions.

    The judge scores 0.4 points too high; `count` labels per condition.
    """
    questions, groups = np.tile(np.repeat(np.arange(300), 3), 2), np.repeat(["a", "b"], 900)
    first = groups == "a"
    ends = [
        float(np.clip(np.rint(rng.normal(3.4 + shift, math.hypot(0.7, 0.6), 2_000_000)), 1, 5).mean())
        for shift in (0.0, 0.3)
    ]
    for count in (50, 100, 200):
        covered: dict[tuple[str, str], list[bool]] = {}
        width: dict[tuple[str, str], list[float]] = {}
        for _ in range(max(experiments // 2, 50)):
            quality = rng.normal(3.4, 0.7, 300)[questions] + np.where(first, 0.0, 0.3)
            truth = np.clip(np.rint(quality + rng.normal(0, 0.6, 1800)), 1, 5)
            judge = np.clip(np.rint(truth + 0.4 + rng.normal(0, 0.6, 1800)), 1, 5)
            draw = draw_for_labels(judge, groups, 2 * count, rng=rng)
            strata, human = np.array(draw.strata), np.full(1800, np.nan)
            human[list(draw.rows)] = truth[list(draw.rows)]
            for target in ("questions", "answers"):
                intervals = {
                    "mean": stratified_mean(
                        human[first], strata[first], questions[first], judge=judge[first], target=target
                    ),
                    "difference": stratified_difference(
                        human, strata, questions, groups=groups, a="a", b="b", judge=judge, target=target
                    ),
                }
                mean = truth[first].mean()
                expected = {"mean": ends[0], "difference": ends[1] - ends[0]}
                if target == "answers":
                    expected = {"mean": mean, "difference": truth[~first].mean() - mean}
                for name, interval in intervals.items():
                    covered.setdefault((name, target), []).append(interval.low <= expected[name] <= interval.high)
                    width.setdefault((name, target), []).append((interval.high - interval.low) / 2)
        for (name, target), held_it in covered.items():
            share = float(np.mean(held_it))
            yield f"labels, {count}: the {name} of {target} is in its interval", share, "0.93 to 0.97"
            known = "at most 0.19, 0.13, 0.09" if (name, target) == ("mean", "answers") else ""
            yield "  half width", float(np.mean(width[name, target])), known


def corrected_gates(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Gates on corrected means at their true value: 100 questions, three answers each, 50 labels, nearly all best."""
    for best, worst in ((0.9, 2.0), (0.95, 2.0), (0.7, 2.0), (0.9, 1.0), (0.95, 4.0)):
        threshold, passed, failed, plain = 5 * best + worst * (1 - best), 0, 0, 0
        for _ in range(experiments):
            good = rng.random((100, 3)) < rng.beta(6 * best, 6 * (1 - best), 100)[:, None]
            truth = np.where(good, 5.0, worst).ravel()
            judge = np.where(truth == 5, np.where(rng.random(300) < 0.95, 5, 4), np.where(rng.random(300) < 0.6, 3, 5))
            draw = draw_for_labels(judge, [0] * 300, 50, rng=rng)
            human = np.full(300, np.nan)
            human[list(draw.rows)] = truth[list(draw.rows)]
            mean = stratified_mean(human, draw.strata, np.repeat(np.arange(100), 3), judge=judge)
            bounds = corrected_bounds(mean.value, mean.se, mean.df, labels=len(draw.rows), scale=(1, 5))
            passed += bounds.low >= threshold
            failed += bounds.high < threshold
            plain += mean.value - stats.t.ppf(0.95, mean.df) * mean.se >= threshold
        yield f"gate, corrected, {best:.0%} give 5, others {worst:g}: falsely passed", passed / experiments, FALSE
        yield "  falsely failed", failed / experiments, FALSE
        yield "  falsely passed without the pseudo-label", plain / experiments, ""


def history(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Alarms over 100 runs."""
    for name, series in (
        ("independent", lambda: rng.standard_normal(100)),
        ("correlated by 0.3, whitened", lambda: whitened(_correlated(rng, 100, 0.3))[0]),
    ):
        alarms = np.mean([cusum_alarm(series()).index is not None for _ in range(experiments)])
        yield f"history, no change, {name}: alarms", float(alarms), FALSE
    indices = []
    for _ in range(experiments):
        x = rng.standard_normal(100)
        x[60:] += 1
        indices.append(cusum_alarm(x).index)
    late = [index - 59 for index in indices if index is not None and index >= 60]
    yield "history, one sd at run 60: found", len(late) / experiments, "about 0.95"
    yield "  median delay in runs", float(np.median(late)), "15"


def _correlated(rng: np.random.Generator, n: int, r: float) -> Floats:
    x = rng.standard_normal(n)
    for i in range(1, n):
        x[i] = r * x[i - 1] + math.sqrt(1 - r * r) * x[i]
    return x


def runs(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Runs that stop early by the runner's own rule: errors, power and savings."""
    for n, saved in ((100, 0.3), (200, 0.4)):
        for name, low in (("1-5", 1.0), ("0/1", 0.0)):
            for k in (1, 3):
                setting = f"{name}, N = {n}, k = {k}"
                delta = minimum_detectable_effect(n, float(differences(rng, name, 20_000, k).std()) ** 2).value
                metric = Metric(name="m", low=low, high=(1.0 if low == 0 else 5.0) + delta)
                null, once, twice = (
                    [rule_of(differences(rng, name, n, k, times * delta), metric) for _ in range(count)]
                    for times, count in ((0, experiments), (1, experiments // 2), (2, experiments // 2))
                )
                yield f"run, nothing differs, {setting}: decided", _verdicts(null, "better", "worse"), FALSE
                yield "  the detectable difference: decided", _verdicts(once, "better"), "at least 0.65"
                yield "  trials saved at twice that", 1 - np.mean([used for _, used in twice]) / n, f"at least {saved}"
    three = [three_alike(rng, 100) for _ in range(experiments)]
    yield "run, three equal conditions, 1-5, N = 100: any decided", float(np.mean(three)), FALSE


def rule_of(d: Floats, metric: Metric) -> tuple[str | None, int]:
    """The verdict of a run with these differences, and the questions it took."""
    rule = StoppingRule(horizon(len(d), ("b",)), metric, ["a", "b"])
    decided = rule.look(np.column_stack((np.zeros(len(d)), d)), len(d))
    return (decided[0].verdict, decided[0].questions) if decided else (None, len(d))


def three_alike(rng: np.random.Generator, n: int) -> bool:
    """Whether a run calls any of three equal conditions different."""
    means = rng.choice([1, 2, 3, 4, 5], p=SKEWED, size=(n, 3, 3)).mean(2)
    rule = StoppingRule(horizon(n, ("b", "c")), Metric(name="m", low=1, high=5), ["a", "b", "c"])
    return bool(rule.look(means, n))


def horizon(n: int, others: tuple[str, ...]) -> Horizon:
    pairs = tuple(("a", name) for name in others)
    return Horizon(
        questions=n, order="", seed=0, repetitions=1, pairs=pairs, metric="m", scorer="", scoring="", alpha=0.05
    )


def _verdicts(decisions: list[tuple[str | None, int]], *names: str) -> float:
    return float(np.mean([verdict in names for verdict, _ in decisions]))


def pairwise(rng: np.random.Generator, experiments: int) -> Iterator[tuple[str, float, str]]:
    """Equal conditions with judges that go by order: how often a condition is called better."""
    for bias, ties in ((1.0, 0.0), (0.8, 0.0), (0.8, 0.3), (0.0, 0.3)):
        setting = f"pairs, {bias:.0%} go to the answer shown first, {ties:.0%} of the others ties"
        for n, k in ((20, 1), (50, 1), (50, 3), (200, 1)):
            outcomes = [judged_pairs(rng, n, k, bias=bias, ties=ties) for _ in range(experiments)]
            yield f"{setting}, n = {n}, k = {k}: a winner", _winners(outcomes), FALSE
            if k == 1:
                passed = _gate_verdicts([_run([pairs[:, 1, 0]], scale=(0, 1)) for pairs in outcomes], "min", 0.5 + 1e-9)
                yield "  passed a threshold just above 0.5", passed.count("passed") / experiments, FALSE
    outcomes = [judged_pairs(rng, 50, 1, bias=0.8, ties=0.3, others=3) for _ in range(experiments)]
    yield "pairs, three conditions against an equal baseline, n = 50: a winner", _winners(outcomes), FALSE
    for n in (50, 100, 200):
        outcomes = [judged_pairs(rng, n, 1, bias=0.5, ties=0.2, better=0.8) for _ in range(experiments)]
        truth = float(np.mean([pairs[:, 1].mean() for pairs in outcomes]))
        yield f"pairs, a preference of {truth:.2f} under a bias of 50%, n = {n}: shown", _winners(outcomes), ""


def judged_pairs(
    rng: np.random.Generator, n: int, k: int, *, bias: float, ties: float, others: int = 1, better: float = 0.0
) -> Floats:
    """Preferences: questions × conditions × repetitions, the baseline first.

    A share `bias` of the judgements goes to the answer shown first; of the rest, a share `ties` goes to neither, and
    the others to the better answer. `better`: by how many standard deviations the other conditions are better.
    """
    quality = rng.normal(0, 1, (n, others + 1, k)) + rng.normal(0, 1, (n, 1, 1))
    wins = (quality[:, 1:] + better > quality[:, :1]).astype(float)
    orders = []
    for first in (0.0, 1.0):  # the baseline's answer first, then the other
        by_merit = np.where(rng.random(wins.shape) < ties, 0.5, wins)
        orders.append(np.where(rng.random(wins.shape) < bias, first, by_merit))
    return np.concatenate([np.full((n, 1, k), 0.5), (orders[0] + orders[1]) / 2], axis=1)


def _winners(outcomes: list[Floats]) -> float:
    """The share of experiments in which a condition is called better, by the code behind every report."""
    metric = msgspec.structs.replace(
        TEMPLATE.metrics[0], key="preference", low=0.0, high=1.0, kind="number", direction="higher"
    )
    return float(np.mean([any(pair.winner for pair in _differences(metric, values)) for values in outcomes]))


def _differences(metric: MetricInfo, values: Floats) -> list[Difference]:
    grid = Grid(metric, values, (np.empty(0), np.empty(0, dtype=np.int64)), {})
    names = [f"c{number}" for number in range(values.shape[1])]
    units = {name: units_of_grid(grid, column) for column, name in enumerate(names)}
    return compared([grid], names, [units], level=0.95)


Part = Callable[[np.random.Generator, int], Iterator[tuple[str, float, str]]]
PARTS: tuple[Part, ...] = (
    stopping, runs, gates, gated_runs, repeats, plans, labels, corrected_gates, history, pairwise,
)  # fmt: skip


def main() -> None:
    import _results as results  # beside this file

    parser, rows = results.parser(__doc__), list[list[object]]()
    parser.add_argument("experiments", type=int, nargs="?", default=1000)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    for part in PARTS:
        if options.parts and part.__name__ not in options.parts:
            continue
        for title, figure, held_against in part(np.random.default_rng(20261122), options.experiments):
            print(f"{title:78} {figure:8.3f}   {held_against}", flush=True)
            rows.append([title, float(figure), held_against])
    about = f"Shares of {options.experiments:,} simulated experiments whose truth is known."
    columns = ["", "measured", "held against"]
    results.write(options.json, {"title": "Rules for decisions", "about": about, "columns": columns, "rows": rows})


if __name__ == "__main__":
    main()
