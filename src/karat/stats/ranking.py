"""Several conditions side by side: which is ahead, and which these questions cannot separate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from karat.stats._bootstrap import check_replicates, resampled_counts, studentized
from karat.stats._groups import Floats, check_level, columns, group, t_quantile, t_two_sided
from karat.stats.differences import answered_means
from karat.stats.intervals import sample_sd, t_interval
from karat.stats.results import Contrast, Leaderboard, Standing

Many = Iterable[object] | Mapping[str, Iterable[object]]
Name = TypeVar("Name")


def leaderboard(
    values: Mapping[str, Iterable[object]] | Sequence[Iterable[object]],
    clusters: Many | None = None,
    *,
    rng: np.random.Generator | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
    replicates: int = 10_000,
) -> Leaderboard:
    """All conditions, the best first, with simultaneous intervals, and the groups that cannot be
    separated.

    `values`: by condition (or as rows: named 1, 2, …). `clusters`: the question of each value, once
    for all conditions or by condition; without, the i-th values belong together. Only questions
    with a value under every condition count; the result reports how many each condition lost, with
    a warning if that differs.

    With probability `level` all differences are in their intervals, and all means in theirs. The
    width comes from the distribution of the largest |t|, by resampling questions (`replicates`
    draws from `rng`): never narrower than Student's for one comparison, never wider than
    Bonferroni's for all. Two conditions are apart if the interval of their difference excludes 0,
    so identical conditions are apart in at most 1 − `level` of leaderboards. A group is a maximal
    set in which no two are apart. Groups may overlap; sharing one does not prove equality.

    >>> scores = {
    ...     "a": [5, 4, 5, 5, 4, 5, 5, 4],
    ...     "b": [4, 4, 5, 5, 4, 5, 4, 4],
    ...     "c": [2, 1, 2, 3, 1, 2, 1, 1],
    ... }
    >>> found = leaderboard(scores, rng=np.random.default_rng(1))
    >>> found.groups
    (('a', 'b'), ('c',))
    >>> [(one.name, one.interval.value, one.best_rank, one.worst_rank) for one in found.standings]
    [('a', 4.625, 1, 2), ('b', 4.375, 1, 2), ('c', 1.625, 3, 3)]

    Westfall and Young (1993), Resampling-Based Multiple Testing; Piepho (2004), J. Comput. Graph.
    Stat. 13:456 (groups).
    """
    check_replicates(replicates, check_level(level))
    if rng is None:
        raise ValueError("rng: is required")
    if not isinstance(values, Mapping):
        values = {str(place): column for place, column in enumerate(values, start=1)}
    if not values:
        raise ValueError("values: must hold a condition")
    listed = {name: columns(f"values of {name}", column) for name, column in values.items()}
    if isinstance(clusters, Mapping):
        if clusters.keys() != listed.keys():
            raise ValueError("clusters: must be given for the same conditions as values")
        sides = {name: group(column, clusters[name]) for name, column in listed.items()}
    else:
        sizes = {column.size for column in listed.values()}
        if len(sizes) > 1:
            raise ValueError(
                "values: must be equally many for every condition, or give clusters by condition"
            )

        if clusters is None:
            questions = None
        elif isinstance(clusters, np.ndarray):
            questions = clusters.tolist()
        else:
            questions = list(clusters)

        sides = {name: group(column, questions) for name, column in listed.items()}
    answered = {name: answered_means(side) for name, side in sides.items()}
    asked = dict.fromkeys(label for side in sides.values() for label in side.labels)
    shared = []
    for label in asked:
        if all(label in means for means in answered.values()):
            shared.append(label)

    table = np.array(
        [[means[label] for label in shared] for means in answered.values()], dtype=np.float64
    ).T
    if shared:
        order = np.argsort(
            -table.mean(axis=0) if higher_is_better else table.mean(axis=0), kind="stable"
        )
    else:
        table = np.zeros((0, len(sides)))
        order = np.arange(len(sides))

    names = [list(sides)[place] for place in order]
    table = table[:, order]
    means, differences = _families(table, level=level, rng=rng, replicates=replicates)
    contrasts = _contrasts(names, table, differences)
    lost = {name: len(asked) - len(answered[name]) for name in names}
    missing = {name: sides[name].missing for name in names}
    warnings: list[str] = []
    for loss, counts in (("questions lost", lost), ("answers missing", missing)):
        if not warnings and len(set(counts.values())) > 1:
            listed_counts = ", ".join(f"{name}: {count}" for name, count in counts.items())
            warnings.append(f"{loss} under {listed_counts}; the compared parts may differ")

    return Leaderboard(
        standings=_standings(names, table, means, contrasts, lost),
        contrasts=contrasts,
        groups=maximal_groups(
            names, [(contrast.first, contrast.second) for contrast in contrasts if contrast.apart]
        ),
        n=len(shared),
        level=level,
        method=f"max-t, {replicates} resamples of questions",
        warnings=tuple(warnings),
        reason="fewer than two questions have a value under every condition"
        if len(shared) < 2
        else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Family:
    """Comparisons that are considered together."""

    errors: Floats
    largest: Floats  # |t| of the most extreme of them, over resamples; falling
    level: float
    df: int

    @property
    def size(self) -> int:
        """Comparisons whose error is above 0."""
        return int(np.count_nonzero(self.errors > 0))

    @property
    def critical(self) -> float:
        """The critical value for Student's t of one comparison."""
        if self.df < 1 or not self.size:
            return math.nan
        tail = (1 - self.level) / 2
        place = math.floor((1 - self.level) * (self.largest.size + 1) + 1e-9) - 1
        reached = float(self.largest[place])
        return min(
            max(reached, t_quantile(1 - tail, self.df)), t_quantile(1 - tail / self.size, self.df)
        )

    def adjusted(self, t: float) -> float:
        """The p-value of one comparison, adjusted for the others."""
        alone = t_two_sided(t, self.df)
        # ties, whatever the rounding
        beyond = int(np.count_nonzero(self.largest >= abs(t) * (1 - 1e-9)))
        return min(max((beyond + 1) / (self.largest.size + 1), alone), self.size * alone, 1.0)


def _families(
    table: Floats,
    *,
    level: float,
    rng: np.random.Generator,
    replicates: int,
) -> tuple[_Family, _Family]:
    """The means, and all differences of two of them."""
    n, many = table.shape
    a, b = np.triu_indices(many, 1)
    if n < 2:
        nothing = np.full(replicates, np.nan)
        families = [
            _Family(errors=np.full(size, np.nan), largest=nothing, level=level, df=0)
            for size in (many, a.size)
        ]
        return families[0], families[1]

    centred = table - table.mean(axis=0)
    errors = (_errors(table), _errors(table[:, a] - table[:, b]))
    shown = [
        values[:, error > 0]
        for values, error in zip((centred, centred[:, a] - centred[:, b]), errors, strict=True)
    ]
    largest = []
    for counts in resampled_counts(n, rng=rng, replicates=replicates):
        for values in shown:
            # the most extreme |t| of each replicate; none if all values are equal
            largest.append(np.abs(studentized(counts, values)).max(axis=1, initial=0.0))

    families = []
    for place, error in enumerate(errors):
        families.append(
            _Family(
                errors=error,
                largest=-np.sort(-np.concatenate(largest[place::2])),
                level=level,
                df=n - 1,
            )
        )

    return families[0], families[1]


def _errors(values: Floats) -> Floats:
    return np.array([sample_sd(column) for column in values.T]) / math.sqrt(len(values))


def _contrasts(names: Sequence[str], table: Floats, family: _Family) -> tuple[Contrast, ...]:
    pairs = list(combinations(range(len(names)), 2))
    reach = family.critical
    contrasts = []
    for (a, b), error in zip(pairs, family.errors.tolist(), strict=True):
        d = table[:, a] - table[:, b]
        plain = t_interval(d, level=family.level, observations=d.size)
        p = math.nan
        note = plain.reason
        low = plain.low
        high = plain.high
        if error > 0:
            p = family.adjusted(plain.value / error)
            low = plain.value - reach * error
            high = plain.value + reach * error
        elif error == 0:
            if plain.value == 0:
                p = 1.0
            else:
                p = min(1.0, len(pairs) * 2.0 ** (1 - d.size))

            note = f"all {d.size} differences are equal: p by sign flips"

        contrasts.append(
            Contrast(
                first=names[a],
                second=names[b],
                value=plain.value,
                se=error,
                low=low,
                high=high,
                p=max(p, math.ulp(0.0)),
                apart=p <= 1 - family.level + 1e-12,
                reason=note,
            )
        )

    return tuple(contrasts)


def _standings(
    names: Sequence[str],
    table: Floats,
    family: _Family,
    contrasts: Sequence[Contrast],
    lost: Mapping[str, int],
) -> tuple[Standing, ...]:
    standings = []
    for place, name in enumerate(names):
        plain = t_interval(table[:, place], level=family.level, observations=len(table))
        if plain.se > 0:
            reach = family.critical * plain.se
        else:
            reach = plain.se

        simultaneous = replace(
            plain,
            low=plain.value - reach,
            high=plain.value + reach,
            method="max-t",
        )
        better = sum(contrast.apart and contrast.second == name for contrast in contrasts)
        worse = sum(contrast.apart and contrast.first == name for contrast in contrasts)
        standings.append(
            Standing(
                name=name,
                interval=simultaneous,
                best_rank=1 + better,
                worst_rank=len(names) - worse,
                lost=lost[name],
            )
        )

    return tuple(standings)


def maximal_groups(
    names: Sequence[Name], apart: Iterable[tuple[Name, Name]]
) -> tuple[tuple[Name, ...], ...]:
    """Maximal sets without a pair that is apart: each such pair splits the sets that contain
    both.
    """
    sets = [frozenset(names)]
    for a, b in apart:
        split = [
            kept
            for group in sets
            for kept in ((group - {a}, group - {b}) if {a, b} <= group else (group,))
        ]
        sets = [kept for kept in dict.fromkeys(split) if not any(kept < other for other in split)]

    place = {name: rank for rank, name in enumerate(names)}
    ordered = [tuple(sorted(kept, key=place.__getitem__)) for kept in sets]
    return tuple(sorted(ordered, key=lambda kept: [place[name] for name in kept]))
