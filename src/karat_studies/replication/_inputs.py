"""Input and output handling for all functions of `karat_studies.replication`: domains,
broadcasting, blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from karat.stats import special

Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = "float | npt.NDArray[np.float64 | np.int64] | Sequence[Numbers] | None"
"""What a function takes: one number, or an array or nested list of them; None is NaN."""
Result: TypeAlias = float | Floats
"""What it gives: a float if all that it took were single numbers, else an array."""

ALTERNATIVES = ("two-sided", "greater", "less")
Z95 = 1.959963984540054
BLOCK = 4_096  # elements at a time, so that the buffers of a kernel stay in the second-level cache


def floats(name: str, values: Numbers) -> Floats:
    """Values as float64; None is NaN. Raises ValueError for anything but numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: must be numbers, got {values!r}") from error


def domain(
    name: str,
    values: Numbers,
    inside: Callable[[Floats], npt.NDArray[np.bool_]],
    wanted: str,
    *,
    errors: str = "nan",
) -> Floats:
    """The values, with NaN for those outside the domain.

    A single number outside the domain raises ValueError with its name and value; so does any
    element with `errors="raise"`. NaN is kept and never counts as outside.
    """
    check_choice("errors", errors, ("nan", "raise"))
    array = floats(name, values)
    if array.ndim == 0 and (math.isnan(array) or inside(array)):  # most calls: three times as fast
        return array
    with np.errstate(invalid="ignore"):
        outside = ~(np.asarray(inside(array), dtype=bool) | np.isnan(array))
    if not outside.any():
        return array
    if array.ndim == 0 or errors == "raise":
        raise ValueError(f"{name}: must be {wanted}, got {float(array[outside].flat[0]):g}")
    return np.where(outside, np.nan, array)


def counts(name: str, values: Numbers, *, least: int = 0, errors: str = "nan") -> Floats:
    """Whole numbers of at least `least`, as floats."""
    wanted = f"a whole number of at least {least}"
    return domain(
        name,
        values,
        lambda n: (n >= least) & (n == np.floor(n)) & np.isfinite(n),
        wanted,
        errors=errors,
    )


def within_0_1(name: str, values: Numbers, *, errors: str = "nan") -> Floats:
    """Shares of a whole."""
    return domain(name, values, lambda v: (v >= 0) & (v <= 1), "between 0 and 1", errors=errors)


def within_1(name: str, values: Numbers, *, errors: str = "nan") -> Floats:
    """Correlations."""
    return domain(name, values, lambda v: np.abs(v) <= 1, "between −1 and 1", errors=errors)


def at_least_0(name: str, values: Numbers, *, errors: str = "nan") -> Floats:
    """Numbers, also ∞, that are not negative."""
    return domain(name, values, lambda v: v >= 0, "at least 0", errors=errors)


def above_0(name: str, values: Numbers, *, errors: str = "nan") -> Floats:
    """Positive numbers, also ∞."""
    return domain(name, values, lambda v: v > 0, "above 0", errors=errors)


def finite_above_0(name: str, values: Numbers, *, errors: str = "nan") -> Floats:
    """Positive numbers."""
    return domain(name, values, lambda v: (v > 0) & np.isfinite(v), "above 0", errors=errors)


def check_choice(name: str, value: str, known: tuple[str, ...]) -> str:
    """Returns the value. Raises ValueError if it is not one of the known ones."""
    if value not in known:
        raise ValueError(f"{name}: must be one of {', '.join(known)}, got {value!r}")
    return value


def check_level(level: float) -> float:
    """Returns the level. Raises ValueError if it is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level: must lie between 0 and 1, got {level:g}")
    return level


def z_of_level(level: float) -> float:
    """The half width, in standard errors, of a normal interval of this level. Raises ValueError.

    >>> z_of_level(0.95), round(z_of_level(0.99), 6)
    (1.959963984540054, 2.575829)
    """
    if level == 0.95:
        return Z95
    return float(special.ndtri((1 + check_level(level)) / 2))


def percentiles_of_level(level: float) -> tuple[float, float]:
    """The ends of a percentile interval of this level, as shares. Raises ValueError.

    >>> percentiles_of_level(0.95)
    (0.025, 0.975)
    """
    tail = round((1 - check_level(level)) / 2, 15)
    return tail, 1 - tail


def evaluate(kernel: Callable[..., Floats], *arguments: Floats, block: int = BLOCK) -> Result:
    """The kernel's value for each element of the broadcast arguments; NaN if one of them is NaN.

    Kernels see one-dimensional arrays of equal length without NaN.
    """
    if not any(array.ndim for array in arguments):  # most calls: three times as fast
        one = np.full(1, np.nan)
        if not any(map(math.isnan, arguments)):
            with np.errstate(all="ignore"):
                one[:] = kernel(*(np.array([array]) for array in arguments))

        return float(one[0])

    spread = np.broadcast_arrays(*arguments)
    shape = spread[0].shape
    flat = [array.reshape(-1) for array in spread]
    missing = np.zeros(flat[0].size, dtype=bool)
    for array in arguments:
        if np.isnan(array).any():
            missing |= np.broadcast_to(np.isnan(array), shape).reshape(-1)

    result = np.full(flat[0].size, np.nan)
    present = np.flatnonzero(~missing)
    with np.errstate(all="ignore"):
        for start in range(0, present.size, block):
            picked = present[start : start + block]
            result[picked] = kernel(*(np.ascontiguousarray(array[picked]) for array in flat))

    return unwrap(result.reshape(shape))


def unwrap(values: Floats) -> Result:
    """A float for a scalar, else the array."""
    if values.ndim == 0:
        return float(values)
    return values


def gamma_shift(x: Floats, by: Result) -> Floats:
    """lnΓ(x + by) − lnΓ(x) for x > 0, x + by > 0: without cancellation for large x.

    From 20 on both logarithms use Stirling's series, with their main parts subtracted as
    (x + by − ½)·ln(1 + by/x) + by·ln x − by.
    """
    high = x + by
    large = np.minimum(x, high) >= 20
    safe = np.where(large, x, 20.0)
    top = np.where(large, high, 20.0)
    step = np.where(large, by, 0.0)
    far = (
        (top - 0.5) * np.log1p(step / safe)
        + step * np.log(safe)
        - step
        + stirling(top)
        - stirling(safe)
    )
    if large.all():
        return np.asarray(far, dtype=np.float64)
    return np.asarray(
        np.where(large, far, special.gammaln(high) - special.gammaln(x)), dtype=np.float64
    )


def stirling(x: Floats) -> Floats:
    """lnΓ(x) − [(x − ½) ln x − x + ½ ln 2π] for x ≥ 16: error below 1e-16."""
    z = 1.0 / (x * x)
    series = 1 / 12 - z * (
        1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360))))
    )
    return np.asarray(series / x, dtype=np.float64)
