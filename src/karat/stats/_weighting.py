"""What part of an agreement a near miss counts for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from karat.stats._groups import Floats, columns

__all__ = ["Spacing", "Weights", "weight_matrix", "weighted"]

Weights = Literal["none", "linear", "quadratic", "ordinal"] | Sequence[Sequence[float]]


Spacing = Literal["positions", "values"]
"""How far two categories lie apart: by their places in the list, or by the numbers that they are."""


def weight_matrix(categories: Sequence[Any], weights: Weights, spacing: Spacing = "positions") -> Floats:
    """One row and column a category, 1 on the diagonal.

    `linear` and `quadratic`: 1 − |x_i − x_j|/(largest difference), or with its square. x is the category's place in
    the list (`spacing="positions"`) or its number (`"values"`, as R's irrCAC); equally spaced numbers give the same.
    `ordinal` (Gwet 2014, section 3.5) is by places always: 1 − C(|i − j| + 1, 2)/C(q, 2). Raises ValueError for
    other names, for categories that are no numbers where `spacing` wants numbers, and for a matrix that has not one
    row and column a category, is not symmetric, or has anything but 1 on its diagonal.
    """
    if spacing not in ("positions", "values"):
        raise ValueError(f"spacing: must be positions or values, got {spacing!r}")
    size = len(categories)
    if not isinstance(weights, str):
        return _own(size, weights)
    places = np.arange(size, dtype=np.float64)
    apart = np.abs(np.subtract.outer(places, places))
    if weights == "none":
        return np.asarray(apart == 0, dtype=np.float64)
    if weights == "ordinal":
        return np.asarray(1 - apart * (apart + 1) / max(1, (size - 1) * size))
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights: must be none, linear, quadratic, ordinal or a matrix, got {weights!r}")
    if spacing == "values":
        numbers = _numbers(categories)
        apart = np.abs(np.subtract.outer(numbers, numbers))
    share = apart / (float(apart.max(initial=0.0)) or 1.0)
    return np.asarray(1 - (share if weights == "linear" else share**2))


def _numbers(categories: Sequence[Any]) -> Floats:
    numbers = columns("categories", categories)
    if any(isinstance(one, (bool, str)) for one in categories) or not np.isfinite(numbers).all():
        raise ValueError("categories: must be finite numbers for spacing='values'")
    return numbers


def weighted(name: str, weights: Weights, spacing: Spacing = "positions") -> str:
    """The coefficient's name with its weights."""
    if not isinstance(weights, str):
        return f"{name}, own weights"
    by = " by value" if spacing == "values" and weights in ("linear", "quadratic") else ""
    return name if weights == "none" else f"{name}, {weights} weights{by}"


def _own(size: int, weights: Any) -> Floats:
    try:
        matrix = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights: must be numbers: {error}") from error
    if matrix.shape != (size, size):
        raise ValueError(f"weights: want one row and column a category ({size}), got shape {matrix.shape}")
    if not (np.isfinite(matrix).all() and (matrix == matrix.T).all() and (np.diag(matrix) == 1).all()):
        raise ValueError("weights: must be symmetric, with 1 for full agreement")
    if (matrix > 1).any():
        raise ValueError("weights: nothing agrees more than full agreement, which is 1")
    return matrix
