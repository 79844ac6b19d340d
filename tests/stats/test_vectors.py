"""The reference vectors of `../shared/data/vectors/statistics.json`: R packages and exact arithmetic.

Each quantity that karat.stats computes is answered by one function below; the others are those
of karat_studies.replication. No row of these is left out.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from karat import stats

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors" / "statistics.json"

ANSWERED = 164


def _binomial_ci(k, n, method, conf):
    found = stats.proportion_interval(k, n, method=method, level=conf)
    return {"lo": found.low, "hi": found.high}


def _clustered(y, cluster):
    found = {kind: stats.clustered_se(y, cluster, kind=kind) for kind in ("CR0", "CR1", "CR2", "CR3")}
    each = {f"se_{kind}": interval.se for kind, interval in found.items()}
    alone = stats.clustered_se(y, range(len(y)), kind="CR1")
    return {
        **each,
        "mean": found["CR2"].value,
        "df_CR2": found["CR2"].df,
        "se_CR1S": found["CR1"].se,  # for a mean alone, Stata's correction is the same
        "se_iid": alone.se,
    }


def _kappa(table, weights, conf):
    found = stats.kappa_of_table(table, weights=weights, level=conf or 0.95)
    return {"kappa": found.value, "lo": found.low, "hi": found.high}


def _kappa_of_raters(rater1, rater2, labels, weights):
    return stats.cohen_kappa(rater1, rater2, categories=labels, weights=weights).value


def _paired(y, question, condition, rep):
    rows = list(zip(y, question, condition, strict=True))
    sides = [([v for v, _, c in rows if c == side], [q for _, q, c in rows if c == side]) for side in (1, 2)]
    (a, at_a), (b, at_b) = sides
    found = stats.paired_difference(a, b, at_a, clusters_b=at_b)
    return {
        "diff": found.value,
        "se": found.se,
        "t": found.statistic,
        "df": found.df,
        "p": found.p,
        "lo": found.low,
        "hi": found.high,
        "d_z": found.d_z,
        "n_pos": found.better,
        "n_neg": found.worse,
        "p_sign": stats.mcnemar_exact(found.worse, found.better).p,
    }


def _mcnemar(b, c):
    found = stats.mcnemar_exact(b, c)
    return {"p": found.p, "p_mid": found.p_mid, "chi2_cc": found.statistic}


def _newcombe(k1, n1, k2, n2, conf):
    found = stats.newcombe(k1, n1, k2, n2, level=conf)
    return {"diff": found.value, "lo": found.low, "hi": found.high}


def _components(y, question, method):
    found = stats.variance_components(y, question, method=method)
    return {
        "mean": found.mean,
        "se_mean": found.se_mean,
        "ms_between": found.ms_between,
        "ms_within": found.ms_within,
        "var_between": found.between.value,
        "var_within": found.within.value,
        "icc1": found.icc.value,
        "F": found.statistic,
        "p": found.p,
        "n0": found.n0,
    }


def _icc(ratings, model, conf):
    found = stats.icc(ratings, model=model, level=conf or 0.95)
    return {"icc": found.value, "lo": found.low, "hi": found.high}


def _pass_hat_mean(trials, k):
    found = stats.pass_hat_k([n for n, _ in trials], [c for _, c in trials], k)
    return {"mean": found.value, "se": found.se}


def _binomial_exact(k, n, p0):
    found = stats.proportion_interval(k, n, method="clopper-pearson")
    return {"p": stats.binomial_test(k, n, p0).p, "cp_lo": found.low, "cp_hi": found.high}


def _tost(low, high, x=None, y=None, mean=None, sd=None, n=None):
    if x is None:
        found = stats.tost_of_estimate(mean, sd / math.sqrt(n), n - 1, bounds=(low, high), n=n)
    else:  # the vectors look at x − y
        found = stats.tost(y, x, bounds=(low, high), design="pooled")
    return {"p": found.p, "t_low": found.t_low, "t_high": found.t_high, "df": found.df}


def _unpaired(x, y):
    student, welch = (stats.mean_difference(y, x, equal_variances=equal) for equal in (True, False))
    return {
        "t": student.statistic,
        "df": student.df,
        "p": student.p,
        "welch_t": welch.statistic,
        "welch_df": welch.df,
        "welch_p": welch.p,
        "cohens_d": student.cohens_d,
        "hedges_g": student.hedges_g,
    }


def _of_table(coefficient):
    def answer(table, weights):
        found = coefficient(*stats.raters_of_table(table), categories=range(len(table)), weights=weights)
        return {"coef": found.value, "se": found.se}

    return answer


def _of_raters(ratings, weights):
    columns = list(zip(*ratings, strict=True))
    given = {"categories": range(1, 6), "weights": {"unweighted": "none"}.get(weights, weights)}
    coefficients = {
        "gwet_ac": stats.gwet_ac,
        "krippendorff_alpha": stats.krippendorff_alpha,
        "fleiss_kappa": stats.fleiss_kappa,
        "conger_kappa": stats.conger_kappa,
        "brennan_prediger": stats.brennan_prediger,
        "percent_agreement": stats.percent_agreement,
    }
    return {name: coefficient(*columns, **given).value for name, coefficient in coefficients.items()}


def _corrected(judge_unlabelled, judge_labelled, human_labelled):
    judge, human = [*judge_unlabelled, *judge_labelled], [None] * len(judge_unlabelled) + human_labelled
    found = stats.calibrate(judge, human).corrected
    return {"mean": found.value, "se": found.se}


def _questions(omega2, sigma2_a, sigma2_b, K_a, K_b, delta, alpha, power):  # noqa: N803 – as the vectors call them
    within, times = (sigma2_a, sigma2_b), (K_a, K_b)
    return stats.questions_needed(delta, omega2, within, times, alpha=alpha, power=power, method="z").value


def _noncentral(t, df, ncp):
    return {"pdf": stats.noncentral_t_pdf(t, df, ncp), "cdf": stats.noncentral_t_cdf(t, df, ncp)}


def _planned_se(n_questions, var_between, var_within, K):  # noqa: N803 – as the vectors call it
    return stats.planned_se(n_questions, var_between, var_within, K)


def _repetitions(omega2, sigma2, cost_per_question, cost_per_run):
    return stats.optimal_repetitions(omega2, sigma2, cost_question=cost_per_question, cost_run=cost_per_run)


ANSWERS = {
    "binomial_ci": _binomial_ci,
    "binomial_exact": _binomial_exact,
    "brennan_prediger": _of_table(stats.brennan_prediger),
    "clustered_se_mean": _clustered,
    "cohen_kappa": _kappa,
    "cohen_kappa_raters": _kappa_of_raters,
    "gwet_ac": _of_table(stats.gwet_ac),
    "icc": _icc,
    "krippendorff_alpha": lambda reliability_data, level: (
        stats.krippendorff_alpha(*reliability_data, level=level).value
    ),
    "krippendorff_alpha_2raters_table": _of_table(stats.krippendorff_alpha),
    "mcnemar_exact": _mcnemar,
    "mde_ttest_paired": lambda n, **test: stats.minimum_detectable_effect(n, 1.0, **test).value,
    "multirater_agreement": _of_raters,
    "n_questions_paired_mde": _questions,
    "newcombe_diff_ci": _newcombe,
    "noncentral_t_pdf_cdf": _noncentral,
    "optimal_repetitions": _repetitions,
    "p_adjust": lambda p, method: stats.adjust(p, method=method),
    "paired_condition_difference": _paired,
    "paired_condition_difference_mixed_model": _paired,
    "pairwise_consistency": lambda category_counts: stats.consistency(category_counts).value,
    "pass_at_k": lambda n, c, k: stats.pass_at_k(n, c, k).value,
    "pass_hat_k": lambda n, c, k: stats.pass_hat_k(n, c, k).value,
    "pass_hat_k_mean": _pass_hat_mean,
    "power_anova": lambda **inputs: stats.power_anova(**inputs).value,
    "power_correlation": lambda **inputs: stats.power_correlation(**inputs).value,
    "power_ttest": lambda **inputs: stats.power_ttest(**inputs).value,
    "ppi_mean": _corrected,
    "sample_size_ttest": lambda **inputs: stats.sample_size_ttest(**inputs).value,
    "se_mean_planned": _planned_se,
    "sign_flip_permutation_exact": lambda d: stats.sign_flip_test(d).p,
    "spearman_brown": stats.spearman_brown,
    "tost_one_sample": _tost,
    "tost_two_sample_raw": _tost,
    "ttest_independent": _unpaired,
    "twoway_clustered_se_mean": lambda y, cluster1, cluster2: stats.clustered_se(y, cluster1, second=cluster2).se,
    "variance_components_balanced": lambda y, question: _components(y, question, "auto"),
    "variance_components_reml": lambda y, question: _components(y, question, "reml"),
    "variance_components_unbalanced_anova": lambda y, question: _components(y, question, "anova"),
    "wilcoxon_signed_rank_exact": lambda d: stats.wilcoxon(d).p,
}


def _rows():
    if not VECTORS.exists():
        why = pytest.mark.skip(reason="the vectors stand beside the checkout: ../shared/data")
        return [pytest.param(None, marks=why, id="vectors")]
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["id"]) for row in rows if row["quantity"] in ANSWERS]


@pytest.mark.parametrize("row", _rows())
def test_the_reference_vector_is_reproduced(row):
    quantity, expected = row["quantity"], row["expected"]
    found = ANSWERS[quantity](**{key: _decoded(value) for key, value in row["inputs"].items()})
    if isinstance(expected, dict):
        assert expected
        for key in sorted(expected):
            _close(found[key], expected[key], row, key)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for position, (one, other) in enumerate(zip(found, expected, strict=True)):
            _close(one, other, row, position)
    else:
        _close(found, expected, row, "value")


def test_the_vectors_that_are_answered_are_counted():
    """A row that silently stopped being asked would show here."""
    if not VECTORS.exists():
        pytest.skip("the vectors stand beside the checkout: ../shared/data")
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert sum(row["quantity"] in ANSWERS for row in rows) == ANSWERED


def _decoded(value):
    return [_decoded(one) for one in value] if isinstance(value, list) else math.nan if value == "NaN" else value


def _close(found, expected, row, key):
    wanted = _decoded(expected)
    wanted = math.nan if wanted is None else wanted
    assert np.isclose(found, wanted, rtol=row["rel_tol"], atol=row["abs_tol"], equal_nan=True), (key, found, wanted)
