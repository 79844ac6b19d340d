"""Rates over turns with intervals clustered by conversation: accuracies, the ladder, strata, features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.analysis.estimates import estimated, known
from karat.analysis.numbers import Estimate
from karat.kinds.conversation.analysis.model import Feature, Rate, Rung, Stratum
from karat.kinds.conversation.analysis.turns import Flags, Floats, Ints, Turns
from karat.stats import ClusteredRatio, Sums, ratio_gap, ratio_interval

__all__ = [
    "ACCURACIES",
    "Nulls",
    "accuracies",
    "conversation_accuracy",
    "features",
    "ladder",
    "rate_of",
    "reasoning",
    "strata",
]

ACCURACIES = {
    "numerical": "numerical_accuracy",
    "soft": "soft_match_accuracy",
    "unit_agnostic": "unit_agnostic_accuracy",
    "sign_agnostic": "sign_agnostic_accuracy",
    "general": "general_accuracy",
    "exact": "exact_accuracy",
    "declared": "declared_accuracy",
    "right": "right_accuracy",  # by the match that was chosen, or the same yes or no
}
"""Metric → its name in `statistics.json`."""

_READINGS = (
    "logic_recall", "logic_precision", "logic_f1", "order_score", "operand_recall", "operand_precision",
    "partial_credit", "program_match", "execution_match", "self_consistent",
)  # fmt: skip

_RUNGS = {
    "exact": "nothing: equal to five decimals",
    "numerical": "1 %, or 0.001",
    "declared": "a unit that the agent declared",
    "unit_agnostic": "any factor 100, named or not",
    "sign_agnostic": "the sign",
    "scale_and_sign": "factor 100 and sign together",
}


@dataclass(frozen=True, slots=True)
class Nulls:
    """What trivial answerers get: name → metric → 1, 0 or NaN for each declared turn, once."""

    rates: Mapping[str, Mapping[str, Floats]]

    def of(self, metric: str, part: Turns, kept: Flags) -> dict[str, float | None]:
        """Each one's rate over the same turns, with the same weights."""
        found = {}
        for name, metrics in self.rates.items():
            column = metrics.get(metric)
            values = None if column is None else np.where(kept, np.tile(column, part.repetitions), np.nan)
            found[name] = None if values is None else known(_sums(values, part.sample, part.base.weights).ratio)
        return found


def accuracies(part: Turns, nulls: Nulls, *, kept: Flags | None = None, level: float) -> tuple[Rate, ...]:
    """The readings of one answer against the golden one. `kept`: of which turns; None: of all that count."""
    found = []
    for metric, name in ACCURACIES.items():
        values = part.rate(metric) if kept is None else np.where(kept, part.rate(metric), np.nan)
        null = nulls.of(metric, part, ~np.isnan(values))
        found.append(rate_of(values, part, name=name, metric=metric, nulls=null, level=level))
    return tuple(found)


def rate_of(
    values: Floats, part: Turns, *, name: str, metric: str, nulls: dict[str, float | None] | None = None, level: float
) -> Rate:
    """A rate, or a mean, over the turns that have a value."""
    return _rate(values, part.sample, part.base.weights, name=name, metric=metric, nulls=nulls or {}, level=level)


def conversation_accuracy(part: Turns, nulls: Nulls, *, kept: Flags | None = None, level: float) -> Rate:
    """The share of conversations with every turn right."""
    wholly = _wholly(part.rate("right"), part, kept)
    null = {
        name: known(_whole_sums(_wholly(_tiled(metrics, part), part, kept), part).ratio)
        for name, metrics in nulls.rates.items()
    }
    samples = np.arange(wholly.size) % len(part.base.ids) if wholly.size else np.empty(0, dtype=np.int64)
    name = "conversation_accuracy"
    return _rate(wholly, samples, part.base.weights, name=name, metric=name, nulls=null, level=level)


def _tiled(metrics: Mapping[str, Floats], part: Turns) -> Floats:
    return np.where(part.counted, np.tile(metrics["right"], part.repetitions), np.nan)


def _whole_sums(wholly: Floats, part: Turns) -> Sums:
    return _sums(wholly, np.arange(wholly.size) % len(part.base.ids), part.base.weights)


def _wholly(right: Floats, part: Turns, kept: Flags | None) -> Floats:
    """Per conversation and repetition: whether every turn is right; NaN without turns."""
    there = ~np.isnan(right) if kept is None else ~np.isnan(right) & kept
    size = len(part.base.ids) * part.repetitions
    turns = np.bincount(part.conversation[there], minlength=size)
    wins = np.bincount(part.conversation[there], weights=right[there], minlength=size)
    return np.where(turns > 0, (wins == turns).astype(np.float64), np.nan)


def reasoning(part: Turns, *, level: float) -> tuple[Rate, ...]:
    """How good the programs are, over the turns where it can be said; the `step` readings after the `chain` ones."""
    found = []
    for prefix in ("", "step_"):
        for reading in _READINGS:
            values = part.value(prefix + reading)
            if not np.isnan(values).all():
                name = f"avg_{prefix}{reading}"
                found.append(rate_of(values, part, name=name, metric=prefix + reading, level=level))
    return tuple(found)


def ladder(part: Turns) -> tuple[Rung, ...]:
    """From the strictest match to the most forgiving one."""
    numerical = part.rate("numerical")
    found = []
    for metric, forgives in _RUNGS.items():
        values = part.rate(metric)
        there = ~np.isnan(values) & ~np.isnan(numerical)
        right, sums = int(values[there].sum()), _sums(values, part.sample, part.base.weights)
        found.append(
            Rung(
                metric=metric,
                forgives=forgives,
                rate=known(sums.ratio),
                right=right,
                forgiven=right - int(numerical[there].sum()),
                n=int(there.sum()),
            )
        )
    return tuple(found)


def strata(part: Turns, keys: Floats, *, level: float) -> tuple[Stratum, ...]:
    """Accuracy for each whole number in `keys` (one a slot; NaN: of none)."""
    right = part.rate("right")
    there = ~np.isnan(keys) & ~np.isnan(right)
    return tuple(
        _stratum(part, np.where(there & (keys == key), right, np.nan), str(int(key)), level)
        for key in np.unique(keys[there]).tolist()
    )


def _stratum(part: Turns, values: Floats, key: str, level: float) -> Stratum:
    there = ~np.isnan(values)
    golden, attempted = np.tile(part.base.operations, part.repetitions), part.value("agent_operations")

    def mean(operations: Floats) -> float | None:
        return known(_sums(np.where(there, operations, np.nan), part.sample, part.base.weights).ratio)

    return Stratum(
        key=key,
        estimate=_clustered(values, part.sample, part.base.weights, level)[0],
        n=int(there.sum()),
        right=int(values[there].sum()),
        golden_operations=mean(golden),
        agent_operations=mean(attempted),
    )


def features(part: Turns, *, level: float) -> tuple[Feature, ...]:
    """By every feature of the dataset that has few values: yes or no, whole numbers, short texts."""
    listed = {name: None for metadata in part.base.metadata for name in metadata}
    return tuple(one for name in listed if (one := _feature(part, name, level)) is not None)


_MOST_VALUES = 12  # of a feature; an id or a free text is none


def _feature(part: Turns, name: str, level: float) -> Feature | None:
    told = [metadata.get(name) for metadata in part.base.metadata]
    values = {value for value in told if isinstance(value, (bool, int, str))}
    kinds = {type(value) for value in values}
    if not values or len(values) > _MOST_VALUES or len(kinds) > 1:
        return None
    ordered: list[Any] = sorted(values)
    place = {value: number for number, value in enumerate(ordered)}
    codes = np.array([place.get(value, -1) if isinstance(value, (bool, int, str)) else -1 for value in told])[
        part.sample
    ]
    right = part.rate("right")
    right = np.where(codes < 0, np.nan, right)
    parts = [np.where(codes == number, right, np.nan) for number in range(len(ordered))]
    found = [_stratum(part, one, _shown(value), level) for value, one in zip(ordered, parts, strict=True)]
    ordinal = kinds <= {bool, int}
    numbers = np.array([float(value) for value in ordered]) if ordinal else np.empty(0)
    return Feature(
        name=name,
        strata=tuple(one for one in found if one.n),
        correlation=_correlation(part, right, numbers[codes]) if ordinal else None,
        difference=_between(part, parts, level) if kinds == {bool} and len(parts) == 2 else None,
    )


def _shown(value: bool | int | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _correlation(part: Turns, one: Floats, two: Floats) -> float | None:
    """Pearson's, weighted, over the turns that have both."""
    there = ~np.isnan(one) & ~np.isnan(two)
    weights = part.base.weights[part.sample][there]
    if not weights.sum() > 0:
        return None
    x, y = (column[there] - np.average(column[there], weights=weights) for column in (one, two))
    scale = math.sqrt(float(weights @ x**2) * float(weights @ y**2))
    return known(float(weights @ (x * y)) / scale) if scale > 1e-12 else None


def _between(part: Turns, groups: Sequence[Floats], level: float) -> Estimate | None:
    """The last group's rate minus the first one's."""
    one, two = (_sums(values, part.sample, part.base.weights) for values in groups)
    found = ratio_gap(one, two, level=level)
    return None if math.isnan(found.se) else estimated(found, -1.0, 1.0)


def _rate(
    values: Floats,
    samples: Ints,
    weights: Floats,
    *,
    name: str,
    metric: str,
    nulls: dict[str, float | None],
    level: float,
) -> Rate:
    estimate, found = _clustered(values, samples, weights, level)
    there = ~np.isnan(values)
    return Rate(
        name=name,
        metric=metric,
        estimate=estimate,
        n=int(there.sum()),
        total=float(values[there].sum()) if there.any() else None,
        naive_se=known(found.naive_se),
        design_effect=known(found.design_effect),
        nulls=nulls,
    )


def _clustered(values: Floats, samples: Ints, weights: Floats, level: float) -> tuple[Estimate, ClusteredRatio]:
    found = ratio_interval(_sums(values, samples, weights), share=_is_share(values), level=level)
    return estimated(found.interval, 0.0, 1.0), found


def _is_share(values: Floats) -> bool:
    there = values[~np.isnan(values)]
    return bool(np.isin(there, (0.0, 1.0)).all())


def _sums(values: Floats, samples: Ints, weights: Floats) -> Sums:
    there = ~np.isnan(values)
    size = weights.size
    counts = np.bincount(samples[there], minlength=size).astype(np.float64)
    totals, squares = (
        np.bincount(samples[there], weights=part[there], minlength=size).astype(np.float64)
        for part in (values, values**2)
    )
    return Sums(totals=totals, counts=counts, squares=squares, weights=weights)
