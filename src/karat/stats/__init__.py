"""Statistics of repeated, paired, clustered measurements: arrays in, frozen results out.

The unit is the question, not the answer: answers to one question under one condition
are repetitions, so every interval and test works on cluster means or clusters its
error. Unknown results are NaN with a reason; missing values never become 0; random
procedures take `rng`. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.stats.agreement import cohen_kappa, gwet_ac, krippendorff_alpha
    from karat.stats.bounds import OneSided, one_sided_bounds
    from karat.stats.calibration import Calibration, calibrate
    from karat.stats.differences import paired_difference, tost
    from karat.stats.drift import Alarm, ChangePoint, change_point, cusum_alarm, whitened
    from karat.stats.intervals import clustered_mean, mean_interval, too_few_clusters
    from karat.stats.labels import (
        LabelDraw,
        corrected_bounds,
        draw_for_labels,
        labels_needed,
        strata_of_scores,
        stratified_difference,
        stratified_mean,
    )
    from karat.stats.multiplicity import adjust
    from karat.stats.planning import (
        DifferenceVariances,
        Split,
        best_split,
        difference_variances,
        minimum_detectable_effect,
        questions_needed,
        repetitions_needed,
    )
    from karat.stats.power import Planned, effect_size_ttest, power_ttest, sample_size_ttest
    from karat.stats.ratios import ClusteredRatio, Sums, ratio_difference, ratio_gap, ratio_interval
    from karat.stats.repeatability import SameVerdict, same_verdict
    from karat.stats.results import Equivalence, Interval, PairedDifference, VarianceComponents
    from karat.stats.sequential import (
        SequentialLook,
        sequential_look,
        sequential_p,
        stopping_boundary,
    )
    from karat.stats.shares import proportion_interval, share_interval
    from karat.stats.variance import between_sd, pooled_sd, variance_components

__all__ = [
    "Alarm",
    "Calibration",
    "ChangePoint",
    "ClusteredRatio",
    "DifferenceVariances",
    "Equivalence",
    "Interval",
    "LabelDraw",
    "OneSided",
    "PairedDifference",
    "Planned",
    "SameVerdict",
    "SequentialLook",
    "Split",
    "Sums",
    "VarianceComponents",
    "adjust",
    "best_split",
    "between_sd",
    "calibrate",
    "change_point",
    "clustered_mean",
    "cohen_kappa",
    "corrected_bounds",
    "cusum_alarm",
    "difference_variances",
    "draw_for_labels",
    "effect_size_ttest",
    "gwet_ac",
    "krippendorff_alpha",
    "labels_needed",
    "mean_interval",
    "minimum_detectable_effect",
    "one_sided_bounds",
    "paired_difference",
    "pooled_sd",
    "power_ttest",
    "proportion_interval",
    "questions_needed",
    "ratio_difference",
    "ratio_gap",
    "ratio_interval",
    "repetitions_needed",
    "same_verdict",
    "sample_size_ttest",
    "sequential_look",
    "sequential_p",
    "share_interval",
    "stopping_boundary",
    "strata_of_scores",
    "stratified_difference",
    "stratified_mean",
    "too_few_clusters",
    "tost",
    "variance_components",
    "whitened",
]

# The names of each module; each is imported when it is first used.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "agreement": "cohen_kappa gwet_ac krippendorff_alpha",
        "bounds": "OneSided one_sided_bounds",
        "calibration": "Calibration calibrate",
        "differences": "paired_difference tost",
        "drift": "Alarm ChangePoint change_point cusum_alarm whitened",
        "intervals": "clustered_mean mean_interval too_few_clusters",
        "labels": (
            "LabelDraw corrected_bounds draw_for_labels labels_needed strata_of_scores "
            "stratified_difference stratified_mean"
        ),
        "multiplicity": "adjust",
        "planning": (
            "DifferenceVariances Split best_split difference_variances minimum_detectable_effect "
            "questions_needed repetitions_needed"
        ),
        "power": "Planned effect_size_ttest power_ttest sample_size_ttest",
        "ratios": "ClusteredRatio Sums ratio_difference ratio_gap ratio_interval",
        "repeatability": "SameVerdict same_verdict",
        "results": "Equivalence Interval PairedDifference VarianceComponents",
        "sequential": "SequentialLook sequential_look sequential_p stopping_boundary",
        "shares": "proportion_interval share_interval",
        "variance": "between_sd pooled_sd variance_components",
    },
)
