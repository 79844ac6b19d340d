"""Values by cluster, and the checks at the start of every function of `karat.stats`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from karat.stats import special

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Counts = int | Iterable[float]  # for one question, or for each


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """Values and their clusters, numbered in order of appearance."""

    values: Floats
    codes: Codes
    labels: tuple[Hashable, ...]
    counts: Codes  # values per cluster
    means: Floats  # of each cluster; exact if all values of the cluster are equal
    squares: Floats  # sum of squared deviations from the cluster's mean

    @property
    def missing(self) -> int:
        """Values that are NaN, infinite or None."""
        return int(np.count_nonzero(~np.isfinite(self.values)))


def columns(name: str, values: Iterable[object]) -> Floats:
    """One-dimensional floats; None becomes NaN. Raises ValueError for anything else."""
    if isinstance(values, (np.ndarray, list, tuple)):
        listed = values
    else:
        listed = list(values)

    try:
        array = np.asarray(listed, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: must be numbers: {error}") from error

    if array.ndim != 1:
        raise ValueError(f"{name}: must have one dimension, has {array.ndim}")
    return array


def group(values: Iterable[object], clusters: Iterable[object] | None) -> Groups:
    """Values by cluster; without clusters each value is its own cluster.

    Raises ValueError for unequal lengths.
    """
    array = columns("values", values)
    if clusters is None:
        codes = np.arange(array.size)
        labels: tuple[Hashable, ...] = tuple(range(array.size))
    else:
        codes, labels = _codes(clusters)
        if codes.size != array.size:
            raise ValueError(
                f"clusters: must be as many as values ({array.size}), got {codes.size}"
            )

    size = len(labels)
    counts = np.bincount(codes, minlength=size)
    # Deviations from each cluster's first value, so that equal values have exactly zero variance.
    first = np.empty(size)
    first[codes[::-1]] = array[::-1]
    with np.errstate(invalid="ignore"):
        offsets = array - first[codes]
        mean_offsets = summed_by(codes, offsets, size) / np.maximum(counts, 1)
        squares = summed_by(codes, (offsets - mean_offsets[codes]) ** 2, size)

    return Groups(
        values=array,
        codes=codes,
        labels=labels,
        counts=counts,
        means=first + mean_offsets,
        squares=squares,
    )


def labels_of(groups: Groups, labels: Iterable[object]) -> list[object]:
    """Of each cluster, the label of its values, such as the document of a question.

    Raises ValueError unless there is one label a value, and the values of a cluster have the same.
    """
    if isinstance(labels, np.ndarray):
        listed: list[object] = labels.tolist()
    else:
        listed = list(labels)

    if len(listed) != groups.values.size:
        raise ValueError(
            f"sources: must be as many as values ({groups.values.size}), got {len(listed)}"
        )

    found: dict[int, object] = {}
    for code, label in zip(groups.codes.tolist(), listed, strict=True):
        if found.setdefault(code, label) != label:
            raise ValueError(
                f"sources: {groups.labels[code]!r} has two, {found[code]!r} and {label!r}"
            )

    return [found[code] for code in range(len(groups.labels))]


def whole(name: str, number: float) -> int:
    """A count. Raises ValueError for anything but a whole number ≥ 0."""
    if not math.isfinite(number) or number != int(number) or number < 0:
        raise ValueError(f"{name}: must be a whole number of at least 0, got {number}")
    return int(number)


def plain(numbers: Counts) -> Counts:
    """An array without dimensions as a number; anything else unchanged."""
    if isinstance(numbers, np.ndarray) and numbers.ndim == 0:
        value: Counts = numbers.item()
    else:
        value = numbers

    return value


def counts_of(names: tuple[str, str], parts: Counts, totals: Counts) -> tuple[list[int], list[int]]:
    """Parts and totals of the same questions.

    Raises ValueError for unequal lengths and a part above its total.
    """
    some = _counts(names[0], parts)
    every = _counts(names[1], totals)
    if len(some) != len(every):
        raise ValueError(
            f"{names[0]}: must be as long as {names[1]} ({len(every)}), got {len(some)}"
        )

    for part, total in zip(some, every, strict=True):
        if part > total:
            raise ValueError(f"{names[0]}: must be at most {names[1]} ({total}), got {part}")

    return some, every


def summed_by(codes: Codes, weights: Floats, size: int) -> Floats:
    """The sum of the weights of each code from 0 to size − 1."""
    summed: Floats = np.bincount(codes, weights=weights, minlength=size).astype(
        np.float64, copy=False
    )
    return summed


def check_level(level: float) -> float:
    """Returns the level. Raises ValueError outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: must lie between 0 and 1, got {level}")
    return level


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t; NaN for df ≤ 0."""
    if df > 0:
        return float(special.stdtrit(df, probability))
    return math.nan


def t_two_sided(t: float, df: float) -> float:
    """Two-sided p of Student's t, at least the smallest positive float: a p-value is never 0."""
    if math.isnan(t) or not df > 0:
        return math.nan
    return max(2.0 * float(special.stdtr(df, -abs(t))), math.ulp(0.0))


def unbiased(df: float) -> float:
    """The factor that removes the bias of a standardised difference; NaN for df ≤ 1."""
    if not df > 1:
        return math.nan
    return math.exp(float(special.gammaln(df / 2) - special.gammaln((df - 1) / 2))) / math.sqrt(
        df / 2
    )


def z_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(special.ndtri(probability))


def _codes(clusters: Iterable[object]) -> tuple[Codes, tuple[Hashable, ...]]:
    if isinstance(clusters, np.ndarray) and clusters.ndim == 1 and clusters.dtype.kind in "iu":
        labels, first, places = np.unique(clusters, return_index=True, return_inverse=True)
        order = np.argsort(first)  # labels in order of appearance
        return np.argsort(order)[places], tuple(labels[order].tolist())

    if isinstance(clusters, np.ndarray):
        listed: Sequence[object] = clusters.tolist()
    else:
        listed = list(clusters)

    numbers: dict[Hashable, int] = {}
    codes = np.fromiter(
        (numbers.setdefault(label, len(numbers)) for label in listed), np.int64, len(listed)
    )
    return codes, tuple(numbers)


def _counts(name: str, numbers: Counts) -> list[int]:
    """Counts of questions; one number is one question."""
    numbers = plain(numbers)
    if isinstance(numbers, (int, float, np.number)):
        return [whole(name, float(numbers))]
    return [whole(name, number) for number in numbers]
