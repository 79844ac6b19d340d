"""exp, log, tanh and their kin, with the same last digits on every processor.

numpy computes these functions with the widest vectors of the processor, and its results on AVX-512 differ in the last
bit from those without. The functions of scipy.special, which these call, are compiled for all processors alike. Any
shape; float64; within 4 units in the last place; outside the domain NaN or infinite, as in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.stats import special

__all__ = ["arccosh", "arcsinh", "arctan2", "arctanh", "cosh", "exp", "log", "log1p", "sinh", "tanh"]


def exp(x: Any, out: Any = None) -> Any:
    """e^x: the inverse of Box and Cox's transformation with λ = 0."""
    return special.inv_boxcox(x, 0.0, out=out)


def log(x: Any) -> Any:
    """Ln x: Box and Cox's transformation with λ = 0."""
    return special.boxcox(x, 0.0)


def log1p(x: Any, out: Any = None) -> Any:
    """Ln(1 + x)."""
    return special.log1p(x, out=out)


def sinh(x: Any) -> Any:
    """(e^x − e^−x)/2, for |x| < 709."""
    grown = special.expm1(np.abs(x))
    return np.copysign((grown + grown / (grown + 1)) / 2, x)


def cosh(x: Any) -> Any:
    """(e^x + e^−x)/2, for |x| < 709."""
    grown = exp(np.abs(x))
    return (grown + 1 / grown) / 2


def tanh(x: Any) -> Any:
    """(e^x − e^−x)/(e^x + e^−x)."""
    shrunk = special.expm1(-2 * np.abs(x))
    return np.copysign(shrunk / (shrunk + 2), x)


def arcsinh(x: Any) -> Any:
    """Ln(x + √(x² + 1)), for |x| < 1e154."""
    size = np.abs(x)
    return np.copysign(special.log1p(size + size * size / (1 + np.sqrt(size * size + 1))), x)


def arccosh(x: Any) -> Any:
    """Ln(x + √(x² − 1)), for x < 1e154."""
    return special.log1p(x - 1 + np.sqrt((x - 1) * (x + 1)))


def arctanh(x: Any) -> Any:
    """½ ln((1 + x)/(1 − x))."""
    size = np.abs(x)
    return np.copysign(special.log1p(2 * size / (1 - size)) / 2, x)


def arctan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), in radians: part of a complex logarithm, which numpy takes from the C library."""
    return np.log(np.asarray(x) + 1j * np.asarray(y)).imag
