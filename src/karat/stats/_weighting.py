"""What part of an agreement a near miss counts for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from karat.stats._groups import Floats

__all__ = ["Weights", "weight_matrix", "weighted"]

Weights = Literal["none", "linear", "quadratic", "ordinal"] | Sequence[Sequence[float]]


def weight_matrix(size: int, weights: Weights) -> Floats:
    """One row and column a category, 1 on the diagonal.

    By distance in steps: 1 − |i − j|/(q − 1), or its square. `ordinal` (Gwet 2014, section 3.5):
    1 − C(|i − j| + 1, 2)/C(q, 2). Raises ValueError for other names and for a matrix that has not
    one row and column a category, is not symmetric, or has anything but 1 on its diagonal.
    """
    if not isinstance(weights, str):
        return _own(size, weights)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    most = max(1, size - 1)
    if weights == "none":
        return np.asarray(apart == 0, dtype=np.float64)
    if weights == "linear":
        return np.asarray(1 - apart / most)
    if weights == "quadratic":
        return np.asarray(1 - (apart / most) ** 2)
    if weights == "ordinal":
        return np.asarray(1 - apart * (apart + 1) / (most * (most + 1)))
    raise ValueError(f"weights: must be none, linear, quadratic, ordinal or a matrix, got {weights!r}")


def weighted(name: str, weights: Weights) -> str:
    """The coefficient's name with its weights."""
    if not isinstance(weights, str):
        return f"{name}, own weights"
    return name if weights == "none" else f"{name}, {weights} weights"


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
