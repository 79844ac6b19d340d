"""Does an agent replicate what people did? Evidence, agreement, effect sizes: pure functions of
numbers.

Bayes factors are natural logarithms and nothing is capped. PAS is the probability that people
and agent are in the same state (effect or none). ECS measures whether effects have the same size
as in people. An unknown result is NaN with a reason, never 0 and never one half. Modules are
imported when one of their names is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_studies.replication._inputs import z_of_level
    from karat_studies.replication.agreement import (
        DirectionalPosterior,
        directional_posterior,
        pas,
        pas_ceiling,
        pas_directional,
        pas_log_odds,
        pas_normalized,
        pool_pas,
        posterior,
    )
    from karat_studies.replication.bayes import (
        log_bf10_anova,
        log_bf10_bound_from_p,
        log_bf10_meta_ttest,
        log_bf10_normal_prior,
        log_bf10_regression,
        log_bf10_ttest,
        log_bf10_z,
    )
    from karat_studies.replication.beyond import (
        Equivalence,
        PredictionInterval,
        ReplicationMeasures,
        SmallTelescopes,
        effect_with_power,
        equivalence_test,
        log_replication_bayes_factor,
        prediction_interval,
        replication_measures,
        small_telescopes,
    )
    from karat_studies.replication.consistency import (
        Caricature,
        Concordance,
        EcsInterval,
        caricature,
        ecs_interval,
        ecs_strict,
        noise_ceiling,
        weighted_ccc,
        weights_by_study,
    )
    from karat_studies.replication.correlations import (
        log_bf10_kendall,
        log_bf10_pearson,
        log_bf10_spearman,
    )
    from karat_studies.replication.counts import (
        log_bf10_binomial,
        log_bf10_binomial_logistic,
        log_bf10_contingency,
    )
    from karat_studies.replication.differences import (
        Difference,
        reference_differences,
        repeated_differences,
    )
    from karat_studies.replication.effects import (
        CONVENTIONS,
        KINDS,
        cohens_d,
        cohens_d_se,
        cohens_h,
        d_from_means,
        d_from_t_df,
        eta_squared,
        fisher_z,
        fisher_z_se,
        hedges_g,
        log_odds_ratio,
        log_odds_ratio_se,
        proportion_se,
        rank_biserial,
        rank_biserial_se,
        to_cohens_d,
        to_cohens_d_se,
        z_diff,
    )
    from karat_studies.replication.evidence import (
        Measured,
        Side,
        common_method,
        log_bf10_of,
        measure,
    )
    from karat_studies.replication.p_values import p_value
    from karat_studies.replication.ranks import (
        log_bf10_mann_whitney,
    )
    from karat_studies.replication.repetitions import (
        directed_pas,
        repeated_uncertainty,
    )
    from karat_studies.replication.report_strings import (
        Reported,
        parse_reported,
    )
    from karat_studies.replication.resampling import (
        Replicates,
        TestRows,
        multiplicities,
        replicate_test,
        ties_merged,
    )
    from karat_studies.replication.scores import (
        Agreement,
        FindingScore,
        OtherConvention,
        Scored,
        StudyScore,
        StudyTest,
        TestScore,
        score_test,
        score_tests,
    )
    from karat_studies.replication.uncertainty import (
        Draws,
        Spread,
        Uncertainty,
        draw_scores,
        draw_statistics,
        join_draws,
        pas_interval_of_test,
        score_uncertainty,
    )

__all__ = [
    "CONVENTIONS",
    "KINDS",
    "Agreement",
    "Caricature",
    "Concordance",
    "Difference",
    "DirectionalPosterior",
    "Draws",
    "EcsInterval",
    "Equivalence",
    "FindingScore",
    "Measured",
    "OtherConvention",
    "PredictionInterval",
    "Replicates",
    "ReplicationMeasures",
    "Reported",
    "Scored",
    "Side",
    "SmallTelescopes",
    "Spread",
    "StudyScore",
    "StudyTest",
    "TestRows",
    "TestScore",
    "Uncertainty",
    "caricature",
    "cohens_d",
    "cohens_d_se",
    "cohens_h",
    "common_method",
    "d_from_means",
    "d_from_t_df",
    "directed_pas",
    "directional_posterior",
    "draw_scores",
    "draw_statistics",
    "ecs_interval",
    "ecs_strict",
    "effect_with_power",
    "equivalence_test",
    "eta_squared",
    "fisher_z",
    "fisher_z_se",
    "hedges_g",
    "join_draws",
    "log_bf10_anova",
    "log_bf10_binomial",
    "log_bf10_binomial_logistic",
    "log_bf10_bound_from_p",
    "log_bf10_contingency",
    "log_bf10_kendall",
    "log_bf10_mann_whitney",
    "log_bf10_meta_ttest",
    "log_bf10_normal_prior",
    "log_bf10_of",
    "log_bf10_pearson",
    "log_bf10_regression",
    "log_bf10_spearman",
    "log_bf10_ttest",
    "log_bf10_z",
    "log_odds_ratio",
    "log_odds_ratio_se",
    "log_replication_bayes_factor",
    "measure",
    "multiplicities",
    "noise_ceiling",
    "p_value",
    "parse_reported",
    "pas",
    "pas_ceiling",
    "pas_directional",
    "pas_interval_of_test",
    "pas_log_odds",
    "pas_normalized",
    "pool_pas",
    "posterior",
    "prediction_interval",
    "proportion_se",
    "rank_biserial",
    "rank_biserial_se",
    "reference_differences",
    "repeated_differences",
    "repeated_uncertainty",
    "replicate_test",
    "replication_measures",
    "score_test",
    "score_tests",
    "score_uncertainty",
    "small_telescopes",
    "ties_merged",
    "to_cohens_d",
    "to_cohens_d_se",
    "weighted_ccc",
    "weights_by_study",
    "z_diff",
    "z_of_level",
]

# Module → its public names
__getattr__, __dir__ = lazy(
    __name__,
    {
        "_inputs": "z_of_level",
        "agreement": (
            "DirectionalPosterior directional_posterior pas pas_ceiling pas_directional "
            "pas_log_odds pas_normalized pool_pas posterior"
        ),
        "bayes": (
            "log_bf10_anova log_bf10_bound_from_p log_bf10_meta_ttest log_bf10_normal_prior "
            "log_bf10_regression log_bf10_ttest log_bf10_z"
        ),
        "beyond": (
            "Equivalence PredictionInterval ReplicationMeasures SmallTelescopes effect_with_power "
            "equivalence_test log_replication_bayes_factor prediction_interval "
            "replication_measures small_telescopes"
        ),
        "consistency": (
            "Caricature Concordance EcsInterval caricature ecs_interval ecs_strict noise_ceiling "
            "weighted_ccc weights_by_study"
        ),
        "correlations": "log_bf10_kendall log_bf10_pearson log_bf10_spearman",
        "counts": "log_bf10_binomial log_bf10_binomial_logistic log_bf10_contingency",
        "differences": "Difference reference_differences repeated_differences",
        "effects": (
            "CONVENTIONS KINDS cohens_d cohens_d_se cohens_h d_from_means d_from_t_df eta_squared "
            "fisher_z fisher_z_se hedges_g log_odds_ratio log_odds_ratio_se proportion_se "
            "rank_biserial rank_biserial_se to_cohens_d to_cohens_d_se z_diff"
        ),
        "evidence": "Measured Side common_method log_bf10_of measure",
        "p_values": "p_value",
        "ranks": "log_bf10_mann_whitney",
        "repetitions": "directed_pas repeated_uncertainty",
        "report_strings": "Reported parse_reported",
        "resampling": "Replicates TestRows multiplicities replicate_test ties_merged",
        "scores": (
            "Agreement FindingScore OtherConvention Scored StudyScore StudyTest TestScore "
            "score_test score_tests"
        ),
        "uncertainty": (
            "Draws Spread Uncertainty draw_scores draw_statistics join_draws "
            "pas_interval_of_test score_uncertainty"
        ),
    },
)
