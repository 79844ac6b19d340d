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
    from karat.stats.agreement import (
        brennan_prediger,
        cohen_kappa,
        conger_kappa,
        fleiss_kappa,
        gwet_ac,
        kappa_of_table,
        krippendorff_alpha,
        percent_agreement,
        raters_of_table,
    )
    from karat.stats.bounds import OneSided, one_sided_bounds
    from karat.stats.calibration import Calibration, calibrate
    from karat.stats.differences import (
        cliffs_delta,
        mcnemar_exact,
        mean_difference,
        paired_difference,
        sign_flip_test,
        tost,
        tost_of_estimate,
        wilcoxon,
    )
    from karat.stats.drift import Alarm, ChangePoint, change_point, cusum_alarm, whitened
    from karat.stats.intervals import clustered_mean, clustered_se, mean_interval, too_few_clusters
    from karat.stats.intraclass import icc
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
    from karat.stats.noncentral import noncentral_t_cdf, noncentral_t_pdf
    from karat.stats.planning import (
        DifferenceVariances,
        Split,
        best_split,
        difference_variances,
        minimum_detectable_effect,
        optimal_repetitions,
        planned_se,
        questions_needed,
        repetitions_needed,
        spearman_brown,
    )
    from karat.stats.power import (
        Planned,
        effect_size_ttest,
        power_anova,
        power_correlation,
        power_ttest,
        sample_size_ttest,
    )
    from karat.stats.ranking import leaderboard
    from karat.stats.ratios import ClusteredRatio, Sums, ratio_difference, ratio_gap, ratio_interval
    from karat.stats.reliability import consistency, pass_at_k, pass_hat_k
    from karat.stats.repeatability import SameVerdict, same_verdict
    from karat.stats.results import (
        Contrast,
        Equivalence,
        HypothesisTest,
        Interval,
        Leaderboard,
        MeanDifference,
        PairedDifference,
        Standing,
        VarianceComponents,
    )
    from karat.stats.sequential import (
        SequentialLook,
        sequential_look,
        sequential_p,
        stopping_boundary,
    )
    from karat.stats.shares import (
        binomial_test,
        newcombe,
        newcombe_paired,
        proportion_interval,
        share_interval,
    )
    from karat.stats.variance import between_sd, pooled_sd, variance_components

__all__ = [
    "Alarm",
    "Calibration",
    "ChangePoint",
    "ClusteredRatio",
    "Contrast",
    "DifferenceVariances",
    "Equivalence",
    "HypothesisTest",
    "Interval",
    "LabelDraw",
    "Leaderboard",
    "MeanDifference",
    "OneSided",
    "PairedDifference",
    "Planned",
    "SameVerdict",
    "SequentialLook",
    "Split",
    "Standing",
    "Sums",
    "VarianceComponents",
    "adjust",
    "best_split",
    "between_sd",
    "binomial_test",
    "brennan_prediger",
    "calibrate",
    "change_point",
    "cliffs_delta",
    "clustered_mean",
    "clustered_se",
    "cohen_kappa",
    "conger_kappa",
    "consistency",
    "corrected_bounds",
    "cusum_alarm",
    "difference_variances",
    "draw_for_labels",
    "effect_size_ttest",
    "fleiss_kappa",
    "gwet_ac",
    "icc",
    "kappa_of_table",
    "krippendorff_alpha",
    "labels_needed",
    "leaderboard",
    "mcnemar_exact",
    "mean_difference",
    "mean_interval",
    "minimum_detectable_effect",
    "newcombe",
    "newcombe_paired",
    "noncentral_t_cdf",
    "noncentral_t_pdf",
    "one_sided_bounds",
    "optimal_repetitions",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "percent_agreement",
    "planned_se",
    "pooled_sd",
    "power_anova",
    "power_correlation",
    "power_ttest",
    "proportion_interval",
    "questions_needed",
    "raters_of_table",
    "ratio_difference",
    "ratio_gap",
    "ratio_interval",
    "repetitions_needed",
    "same_verdict",
    "sample_size_ttest",
    "sequential_look",
    "sequential_p",
    "share_interval",
    "sign_flip_test",
    "spearman_brown",
    "stopping_boundary",
    "strata_of_scores",
    "stratified_difference",
    "stratified_mean",
    "too_few_clusters",
    "tost",
    "tost_of_estimate",
    "variance_components",
    "whitened",
    "wilcoxon",
]

# The names of each module; each is imported when it is first used.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "labels": (
            "LabelDraw corrected_bounds draw_for_labels labels_needed strata_of_scores "
            "stratified_difference stratified_mean"
        ),
        "bounds": "OneSided one_sided_bounds",
        "drift": "Alarm ChangePoint change_point cusum_alarm whitened",
        "repeatability": "SameVerdict same_verdict",
        "sequential": "SequentialLook sequential_look sequential_p stopping_boundary",
        "agreement": (
            "brennan_prediger cohen_kappa conger_kappa fleiss_kappa gwet_ac kappa_of_table "
            "krippendorff_alpha percent_agreement raters_of_table"
        ),
        "calibration": "Calibration calibrate",
        "differences": (
            "cliffs_delta mcnemar_exact mean_difference paired_difference sign_flip_test tost "
            "tost_of_estimate wilcoxon"
        ),
        "intervals": "clustered_mean clustered_se mean_interval too_few_clusters",
        "intraclass": "icc",
        "multiplicity": "adjust",
        "noncentral": "noncentral_t_cdf noncentral_t_pdf",
        "planning": (
            "DifferenceVariances Split best_split difference_variances minimum_detectable_effect "
            "optimal_repetitions planned_se questions_needed repetitions_needed spearman_brown"
        ),
        "power": (
            "Planned effect_size_ttest power_anova power_correlation power_ttest sample_size_ttest"
        ),
        "ranking": "leaderboard",
        "ratios": "ClusteredRatio Sums ratio_difference ratio_gap ratio_interval",
        "reliability": "consistency pass_at_k pass_hat_k",
        "results": (
            "Contrast Equivalence HypothesisTest Interval Leaderboard MeanDifference "
            "PairedDifference Standing VarianceComponents"
        ),
        "shares": "binomial_test newcombe newcombe_paired proportion_interval share_interval",
        "variance": "between_sd pooled_sd variance_components",
    },
)
