"""The reference vectors of `../shared/data/vectors`: R packages, JASP, 40-digit quadrature, exact fractions.

Each quantity that karat_studies.replication computes is answered by one function below. The
others stand in NOT_OURS: they are skipped by name, so a skip can never be read as a pass.
"""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from karat_studies import replication as rep

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors"

BY_STATS = [
    "binomial_ci", "brennan_prediger", "clustered_se_mean", "cohen_kappa", "cohen_kappa_raters", "gwet_ac", "icc",
    "krippendorff_alpha", "krippendorff_alpha_2raters_table", "mcnemar_exact", "mde_ttest_paired",
    "multirater_agreement", "n_questions_paired_mde", "newcombe_diff_ci", "optimal_repetitions", "p_adjust",
    "paired_condition_difference", "paired_condition_difference_mixed_model", "pairwise_consistency", "pass_at_k",
    "pass_hat_k", "pass_hat_k_mean", "power_anova", "power_correlation", "power_ttest", "ppi_mean",
    "sample_size_ttest", "se_mean_planned", "sign_flip_permutation_exact", "spearman_brown",
    "twoway_clustered_se_mean", "variance_components_balanced", "variance_components_reml",
    "variance_components_unbalanced_anova", "wilcoxon_signed_rank_exact",
]  # fmt: skip
NO_KIND = [
    "arcsine_difference_metafor", "freeman_tukey_proportion", "risk_difference", "smd_change_change_scores",
    "smd_heteroscedastic", "smd_raw_score_change", "or_to_d_normal",
]  # fmt: skip
NOT_OURS = {
    **dict.fromkeys(BY_STATS, "tests/stats/test_vectors.py asks karat.stats"),
    **dict.fromkeys(NO_KIND, "computed nowhere: no kind of test has this effect size"),
    **dict.fromkeys(["meta_fixed", "meta_random_DL", "meta_random_REML"], "computed nowhere: no study is pooled so"),
    "hedges_g_var_unbiased": "computed nowhere: standard errors are the large-sample ones",
}

# Parts of rows that are answered: what of their `expected` nothing here computes.
LEFT_OUT = {
    "F_to_variance_explained": {"partial_epsilon2", "partial_omega2"},  # η² is the effect of an F
    "binomial_exact": {"cp_hi", "cp_lo"},  # asked of karat.stats
    "ccc_lin": {"hi", "lo"},  # Lin's interval, for one sample of independent pairs: studies cluster tests
    "ccc_lin_components": {"hi_asym", "lo_asym"},
    "correlation": {"hi", "kendall_tau_b", "lo", "spearman", "t"},  # of raw data, which no test brings
    "logit_proportion": {"var"},
    "noncentral_t_pdf_cdf": {"pdf"},
    "rank_biserial_mann_whitney": {"hi", "lo", "p_normal_tie_corrected"},
    "t_to_d": {"hi", "lo"},  # noncentral t; intervals here are normal, with the documented standard error
    "ttest_independent": {"welch_df", "welch_p", "welch_t"},  # of raw data
}

RENAMED = {
    "rho_s": "rho",
    "ln_bf_human": "log_odds_human",
    "ln_bf_agent": "log_odds_agent",
    "ln_bf10": "log_bf",
    "z_diff": "z_diffs",
    "weights": "n_eff",
}

SAMPLING = {
    "poisson": "poisson",
    "jointMulti": "joint_multinomial",
    "indepMulti": "independent_multinomial",
    "hypergeom": "hypergeometric",
}


def _contingency(table, sampling, fixed_margin, prior_concentration):
    fixed = "columns" if fixed_margin == "cols" else "rows"
    return rep.log_bf10_contingency(table, sampling=SAMPLING[sampling], fixed=fixed, a=prior_concentration)


def _rbf(method):
    def answer(t_orig, n_orig, t_rep, n_rep, rscale=0.7071067811865476):
        return rep.log_replication_bayes_factor(t_orig, n_orig, t_rep, n_rep, rscale=rscale, method=method)

    return answer


def _three_way(t, n1, n2, rscale, prior_odds):
    both, above, below = (
        rep.log_bf10_ttest(t, n1, n2, rscale=rscale, alternative=one) for one in ("two-sided", "greater", "less")
    )
    found = rep.directional_posterior(both, above, below, prior_odds=prior_odds)
    return {"pi_plus": found.positive, "pi_minus": found.negative, "pi_zero": found.null}


def _pas(log_odds_human, log_odds_agent, prior_odds_human, prior_odds_agent):
    human, agent = rep.posterior(log_odds_human, prior_odds_human), rep.posterior(log_odds_agent, prior_odds_agent)
    found = rep.pas(human, agent)
    in_logs = rep.pas_log_odds(log_odds_human + math.log(prior_odds_human), log_odds_agent + math.log(prior_odds_agent))
    assert rep.posterior(in_logs) == pytest.approx(found, rel=1e-13)
    return found


def _ccc_lin(x, y, **_):
    return {"est": rep.weighted_ccc(x, y).value}


def _ccc_components(x, y):
    found = rep.weighted_ccc(x, y)
    return {
        "est": found.value,
        "scale_shift": found.scale_shift,
        "location_shift": found.location_shift,
        "C_b": found.bias,
    }


def _logistic_d(a, b, c, d):
    table = [[a, b], [c, d]]
    value, se = rep.log_odds_ratio(table), rep.log_odds_ratio_se(table)
    return {
        "d": rep.to_cohens_d("contingency", value),
        "var": rep.to_cohens_d_se("contingency", value, se) ** 2,
    }


def _hedges(m1, sd1, n1, m2, sd2, n2):
    d = rep.d_from_means(m1, sd1, n1, mean2=m2, sd2=sd2, n2=n2)
    g = rep.hedges_g(d, n1 + n2 - 2)
    return {"g": g, "var_LS": rep.cohens_d_se(g, n1, n2) ** 2}


def _means(x):
    return len(x), float(np.mean(x)), float(np.std(x, ddof=1))


def _t_test(x, y):
    (n1, m1, s1), (n2, m2, s2) = _means(x), _means(y)
    d = rep.d_from_means(m1, s1, n1, mean2=m2, sd2=s2, n2=n2)
    t = d / math.sqrt(1 / n1 + 1 / n2)
    p = rep.p_value("ttest_ind", t, n1=n1, n2=n2)
    return {"t": t, "df": n1 + n2 - 2, "p": p, "cohens_d": d, "hedges_g": rep.hedges_g(d, n1 + n2 - 2)}


def _tost_one(mean, sd, n, low, high):
    found = rep.equivalence_test(mean, sd / math.sqrt(n), low=low, high=high, df=n - 1)
    return {"t_low": found.t_low, "t_high": found.t_high, "p": found.p}


def _tost_two(x, y, low, high):
    (n1, m1, s1), (n2, m2, s2) = _means(x), _means(y)
    df = n1 + n2 - 2
    se = math.sqrt(((n1 - 1) * s1**2 + (n2 - 1) * s2**2) / df * (1 / n1 + 1 / n2))
    found = rep.equivalence_test(m1 - m2, se, low=low, high=high, df=df)
    return {"t_low": found.t_low, "t_high": found.t_high, "p": found.p, "df": found.df}


def _prediction(r_orig, n_orig, r_rep, n_rep, conf):
    found = rep.prediction_interval(
        r_orig, rep.fisher_z_se(n_orig), r_rep, rep.fisher_z_se(n_rep), level=conf, correlation=True
    )
    return {"lo": found.low, "hi": found.high, "inside": int(found.inside)}


def _rank_biserial(x, y, ci):
    u = sum((a > b) + 0.5 * (a == b) for a in x for b in y)
    return {"U": u, "r_rb": rep.rank_biserial(u, len(x), len(y))}


def _d33(n_per_group, power, alpha, type):  # noqa: A002
    groups = 1 if type == "paired" else 2
    return rep.effect_with_power([n_per_group] * groups, power=power, alpha=alpha)


def _spearman_ci(rho, n, conf):
    from scipy.special import ndtri

    reach = ndtri((1 + conf) / 2) * rep.fisher_z_se(n, spearman_r=rho)
    z = rep.fisher_z(rho)
    return {"lo": math.tanh(z - reach), "hi": math.tanh(z + reach)}


ANSWERS = {
    "F_to_variance_explained": lambda f, df1, df2: {"partial_eta2": rep.eta_squared(f, df1, df2)},
    "binomial_exact": lambda k, n, p0: {"p": rep.p_value("binomial", k, n1=n, p0=p0)},
    "ccc_lin": _ccc_lin,
    "ccc_lin_components": _ccc_components,
    "ccc_weighted": lambda x, y, w: rep.weighted_ccc(x, y, w).value,
    "cohens_h": rep.cohens_h,
    "correlation": lambda x, y: {
        "p": rep.p_value("correlation", float(np.corrcoef(x, y)[0, 1]), n1=len(x)),
        "r": float(np.corrcoef(x, y)[0, 1]),
    },
    "d33_small_telescopes": _d33,
    "d_to_r": lambda d: math.tanh(math.asinh(d / 2)),
    "ecs_strict_chi2": lambda z_diffs: rep.ecs_strict(z_diffs, method="chi2"),
    "ecs_strict_rms": rep.ecs_strict,
    "fisher_z": lambda r, n: {"z": rep.fisher_z(r), "var": rep.fisher_z_se(n) ** 2},
    "fisher_z_pooling": lambda r, w: 2 * rep.pool_pas((1 + np.array(r)) / 2, w) - 1,
    "hedges_g_independent": _hedges,
    "ln_bf10_anova_bic": lambda f, df1, df2, n: rep.log_bf10_anova(f, df1, df2, method="bic"),
    "ln_bf10_anova_jzs_oneway": lambda f, n_per_group, k, rscale: rep.log_bf10_anova(
        f, k - 1, k * (n_per_group - 1), n_per_group=n_per_group, rscale=rscale
    ),
    "ln_bf10_anova_pearson": lambda f, df1, df2, alpha: rep.log_bf10_anova(f, df1, df2, method="pearson"),
    "ln_bf10_binomial_beta": rep.log_bf10_binomial,
    "ln_bf10_binomial_logistic": rep.log_bf10_binomial_logistic,
    "ln_bf10_contingency_gunel_dickey": _contingency,
    "ln_bf10_jzs_ttest": lambda t, n1, n2, **prior: rep.log_bf10_ttest(t, n1, n2 or None, **prior),
    "ln_bf10_kendall": rep.log_bf10_kendall,
    "ln_bf10_linreg_jzs": rep.log_bf10_regression,
    "ln_bf10_mann_whitney_normal": partial(rep.log_bf10_mann_whitney, method="asymptotic"),
    "ln_bf10_mann_whitney_teststat": rep.log_bf10_mann_whitney,
    "ln_bf10_meta_ttest": rep.log_bf10_meta_ttest,
    "ln_bf10_normal_prior": rep.log_bf10_normal_prior,
    "ln_bf10_pearson": rep.log_bf10_pearson,
    "ln_bf10_pearson_wetzels": lambda r, n: rep.log_bf10_regression(r * r, n, 1, rscale=1),
    "ln_bf10_spearman_teststat": rep.log_bf10_spearman,
    "ln_bf10_z_cauchy": lambda z, n_eff, rscale: rep.log_bf10_z(z, n_eff, rscale=rscale),
    "ln_rbf_evidence_updating_ttest": _rbf("evidence_updating"),
    "ln_rbf_verhagen_wagenmakers_ttest": _rbf("posterior"),
    "log_odds_ratio": lambda a, b, c, d, zero_cell_correction: {
        "log_or": rep.log_odds_ratio([[a, b], [c, d]]),
        "var": rep.log_odds_ratio_se([[a, b], [c, d]]) ** 2,
    },
    "logit_pas": rep.pas_log_odds,
    "logit_proportion": lambda k, n: {"est": rep.log_odds_ratio([[k, n - k], [1, 1]])},
    "noncentral_t_pdf_cdf": lambda t, df, ncp: {"cdf": _noncentral(t, df, ncp)},
    "oddsratio_to_d": lambda odds_ratio: rep.to_cohens_d("contingency", math.log(odds_ratio)),
    "or_to_d_logistic": _logistic_d,
    "pas": _pas,
    "pas_fisher_z_pool": rep.pool_pas,
    "pas_normalized": lambda pi_human, pas: rep.pas_normalized(pas, pi_human),
    "posterior_from_ln_bf": rep.posterior,
    "posterior_three_way_jzs": _three_way,
    "prediction_interval_correlation": _prediction,
    "r_to_d": lambda r: rep.to_cohens_d("correlation", r),
    "rank_biserial_mann_whitney": _rank_biserial,
    "rank_biserial_to_d": lambda r_rb: rep.to_cohens_d("mannwhitney", r_rb, convention="standard"),
    "spearman_ci_bonett_wright": _spearman_ci,
    "t_to_d": lambda t, df, paired, ci: {"d": rep.d_from_t_df(t, df, paired=paired)},
    "tost_one_sample": _tost_one,
    "tost_two_sample_raw": _tost_two,
    "ttest_independent": _t_test,
}


def _noncentral(t, df, ncp):
    from karat.stats import noncentral_t_cdf

    return noncentral_t_cdf(t, df, ncp)


def _rows(name):
    path = VECTORS / name
    if not path.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no ../shared/data/vectors/{name}"), id="absent")]
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [pytest.param(row, id=row.get("id") or f"{row['function']}/{at}") for at, row in enumerate(rows)]


@pytest.mark.parametrize("row", _rows("statistics.json"))
def test_a_row_of_the_statistics_vectors_comes_out(row):
    quantity = row["quantity"]
    if quantity in NOT_OURS:
        pytest.skip(f"not here: {NOT_OURS[quantity]}")
    inputs = {RENAMED.get(key, key.lower()): value for key, value in row["inputs"].items()}
    found, expected = ANSWERS[quantity](**inputs), row["expected"]
    if not isinstance(expected, dict):
        found, expected = {"": found}, {"": expected}
    assert expected.keys() - found.keys() == LEFT_OUT.get(quantity, set())
    for key, value in found.items():
        limit = row["abs_tol"] + row["rel_tol"] * abs(expected[key])
        assert abs(value - expected[key]) <= limit, (key, value, expected[key])


def test_every_quantity_is_answered_or_named(shared_data):
    rows = json.loads((shared_data / "vectors" / "statistics.json").read_text(encoding="utf-8"))
    assert {row["quantity"] for row in rows} <= {*ANSWERS, *NOT_OURS}
    assert not ANSWERS.keys() & NOT_OURS.keys()
    assert LEFT_OUT.keys() <= ANSWERS.keys()


def test_what_is_said_to_be_asked_of_the_statistics_is_asked_there():
    from tests.stats import test_vectors as of_stats

    assert set(BY_STATS) <= of_stats.ANSWERS.keys()


def _calc_bf_t(t, n1, n2=None, *, r_scale=0.707, independent=True):
    return rep.log_bf10_ttest(t, n1, n2, rscale=r_scale)


def _equal_groups(f, df1, df2, n_total):
    return rep.log_bf10_anova(f, df1, df2, n_per_group=n_total / (df1 + 1))


KIND = {
    "anova": "anova",
    "spearman": "spearman",
    "chi2": "contingency",
    "t_test": "ttest_ind",
    "t-test": "ttest_ind",
    "mannwhitneyu": "mannwhitney",
    "binomial": "binomial",
}


def _to_d(kind, value):
    value = math.tanh(value) if kind == "spearman" else float(value)
    convention = "standard" if kind == "mannwhitneyu" else "humanstudy"
    found = rep.to_cohens_d(KIND[kind], value, convention=convention)
    return None if math.isnan(found) else found


def _unknown_is_nan(values):
    return [math.nan if value is None else float(value) for value in values]


def _line(x, y, w):
    found = rep.caricature(_unknown_is_nan(x), y, w)
    return None if math.isnan(found.slope) else [found.slope, found.intercept]


def _z_diff(effect_human, se_human, effect_agent, se_agent):
    z = rep.z_diff(effect_human, se_human, effect_agent, se_agent)
    return [abs(z), rep.ecs_strict([z])]


LOGS = {"calc_bf_t": _calc_bf_t, "calc_bf_anova": _equal_groups, "calc_bf_r": rep.log_bf10_pearson,
        "contingency_bf_rows_fixed": rep.log_bf10_contingency,
        "calc_bf_binomial": lambda k, n, p0: rep.log_bf10_binomial(k, n, p0=p0)}  # fmt: skip
PLAIN = {
    "calculate_z_diff": _z_diff,
    "cohens_d_se": lambda d, n1, n2: rep.cohens_d_se(d, n1, n2 or None),
    "correlation_se": lambda r, n: rep.fisher_z_se(n),
    "correlation_to_fisher_z": rep.fisher_z,
    "effect_to_d_equiv": _to_d,
    "log_odds_ratio": lambda a, b, c, d: rep.log_odds_ratio([[a, b], [c, d]]),
    "log_odds_ratio_se": lambda a, b, c, d: rep.log_odds_ratio_se([[a, b], [c, d]]),
    "t_to_cohens_d": lambda t, n1, n2, independent: rep.cohens_d(t, n1, n2),
    "weighted_ccc": lambda x, y, w: rep.weighted_ccc(_unknown_is_nan(x), y, w).value,
    "weighted_corr": lambda x, y, w: rep.weighted_ccc(_unknown_is_nan(x), y, w).pearson,
    "weighted_linreg": _line,
}


@pytest.mark.parametrize("row", _rows("replication.json"))
def test_a_row_of_the_replication_vectors_comes_out(row):
    name, right = row["function"], row["right"]
    arguments = [float(a) if a == "NaN" else a for a in row["args"]]
    answer = (LOGS | PLAIN)[name]
    if isinstance(right, dict) and "$raises" in right:
        with pytest.raises(ValueError, match="must be"):
            answer(*arguments)
        return
    found = answer(*arguments, **row.get("kwargs", {}))
    if name in LOGS:
        wanted = right["log"] if isinstance(right, dict) else math.inf if right == "$inf" else math.log(right)
        assert found == wanted or abs(found - wanted) <= 1e-6
    elif right is None:
        assert found is None
    else:
        assert found == pytest.approx(float("nan") if right == "NaN" else right, rel=1e-9, abs=1e-9, nan_ok=True)
