"""P-values that are valid for a whole family of comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, overload

import numpy as np

from karat.stats._groups import Floats, columns

Method = Literal["holm", "hochberg", "bh", "by", "bonferroni"]


@overload
def adjust(p: float, method: Method = "holm") -> float: ...
@overload
def adjust(p: Iterable[object], method: Method = "holm") -> Floats: ...
def adjust(p: float | Iterable[object], method: Method = "holm") -> float | Floats:
    """Adjusted p-values, in the order given: valid when all comparisons are considered.

    `holm` and `hochberg` bound the chance of any false finding (hochberg needs
    independence or positive dependence), as does the cruder `bonferroni`; `bh` and `by`
    bound the expected share of false ones (by under any dependence). A NaN or None is not a
    test: it stays NaN and does not count in the family. A number gives a number.
    Method names ignore case. Raises ValueError for a p outside [0, 1].

    >>> adjust([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.03, 0.06, 0.06, 0.02]

    Holm (1979), Scand. J. Stat. 6:65; Hochberg (1988), Biometrika 75:800; Benjamini and
    Hochberg (1995), J. R. Stat. Soc. B 57:289; Benjamini and Yekutieli (2001), Ann. Stat. 29:1165.
    """
    if isinstance(p, (int, float, np.floating)):
        return float(adjust([p], method)[0])
    raw = columns("p", p)
    known = ~np.isnan(raw)
    family = raw[known]
    outside = family[(family < 0) | (family > 1)]
    if outside.size:
        raise ValueError(f"p: must lie between 0 and 1, got {outside[0]}")
    adjusted = np.full(raw.shape, np.nan)
    name = method.lower()

    m = family.size
    rank = np.arange(1, m + 1, dtype=np.float64)
    if name in ("holm", "hochberg"):
        factors = m + 1 - rank
    elif name == "bonferroni":
        factors = np.full(m, float(m))
    elif name == "bh":
        factors = m / rank
    elif name == "by":
        factors = float(np.sum(1 / rank)) * m / rank
    else:
        raise ValueError(f"method: must be holm, hochberg, bh, by or bonferroni, got {name!r}")

    if family.size:
        order = np.argsort(family, kind="stable")
        scaled = family[order] * factors
        if name == "holm":
            scaled = np.maximum.accumulate(scaled)
        elif name != "bonferroni":
            scaled = np.minimum.accumulate(scaled[::-1])[::-1]

        adjusted[np.flatnonzero(known)[order]] = np.minimum(scaled, 1.0)

    return adjusted
