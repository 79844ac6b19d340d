"""Statistics of repeated, paired, clustered measurements: arrays in, frozen results out.

The unit is the question, not the answer: answers of one question under one condition
are repetitions, so every interval and test works on cluster means or clusters its
error. What cannot be known is NaN with a reason; missing values never become 0; random
procedures take `rng`. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.stats.agreement import cohen_kappa, kappa_of_table
    from karat.stats.intervals import clustered_se, mean_interval
    from karat.stats.multiplicity import adjust
    from karat.stats.paired import cliffs_delta, mcnemar_exact, paired_difference, sign_flip_test, wilcoxon
    from karat.stats.ratios import ClusteredRatio, Sums, ratio_difference, ratio_gap, ratio_interval
    from karat.stats.reliability import consistency, pass_at_k, pass_hat_k
    from karat.stats.results import HypothesisTest, Interval, PairedDifference, VarianceComponents
    from karat.stats.shares import newcombe, proportion_interval, share_interval
    from karat.stats.variance import between_sd, icc, pooled_sd, variance_components

__all__ = [
    "ClusteredRatio",
    "HypothesisTest",
    "Interval",
    "PairedDifference",
    "Sums",
    "VarianceComponents",
    "adjust",
    "between_sd",
    "cliffs_delta",
    "clustered_se",
    "cohen_kappa",
    "consistency",
    "icc",
    "kappa_of_table",
    "mcnemar_exact",
    "mean_interval",
    "newcombe",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "pooled_sd",
    "proportion_interval",
    "ratio_difference",
    "ratio_gap",
    "ratio_interval",
    "share_interval",
    "sign_flip_test",
    "variance_components",
    "wilcoxon",
]

_HOME = {
    "ClusteredRatio": "ratios",
    "HypothesisTest": "results",
    "Interval": "results",
    "PairedDifference": "results",
    "Sums": "ratios",
    "VarianceComponents": "results",
    "adjust": "multiplicity",
    "between_sd": "variance",
    "cliffs_delta": "paired",
    "clustered_se": "intervals",
    "cohen_kappa": "agreement",
    "consistency": "reliability",
    "icc": "variance",
    "kappa_of_table": "agreement",
    "mcnemar_exact": "paired",
    "mean_interval": "intervals",
    "newcombe": "shares",
    "paired_difference": "paired",
    "pass_at_k": "reliability",
    "pass_hat_k": "reliability",
    "pooled_sd": "variance",
    "proportion_interval": "shares",
    "ratio_difference": "ratios",
    "ratio_gap": "ratios",
    "ratio_interval": "ratios",
    "share_interval": "shares",
    "sign_flip_test": "paired",
    "variance_components": "variance",
    "wilcoxon": "paired",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
