"""The reference vectors of `../shared/data/vectors/statistics.json`: R packages and exact arithmetic.

Each quantity that karat.stats computes is answered by one function below. A quantity
that it does not compute yet stands in NOT_BUILT: its rows are skipped by name, so a
skip can never be read as a pass; an unknown quantity fails.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from karat import stats

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors" / "statistics.json"

NOT_BUILT = {
    "brennan_prediger": "agreement of judges and people",
    "gwet_ac": "agreement of judges and people",
    "krippendorff_alpha": "agreement of judges and people",
    "krippendorff_alpha_2raters_table": "agreement of judges and people",
    "multirater_agreement": "agreement of judges and people",
    "ppi_mean": "agreement of judges and people",
    "mde_ttest_paired": "planning",
    "n_questions_paired_mde": "planning",
    "noncentral_t_pdf_cdf": "planning",
    "optimal_repetitions": "planning",
    "power_anova": "planning",
    "power_correlation": "planning",
    "power_ttest": "planning",
    "sample_size_ttest": "planning",
    "se_mean_planned": "planning",
    "spearman_brown": "planning",
    "tost_one_sample": "equivalence",
    "tost_two_sample_raw": "equivalence",
    "ttest_independent": "unpaired comparison",
}
ANSWERED = 82
METHODS_NOT_BUILT = {"wald", "wilsoncc", "beta_posterior_uniform"}


def _binomial_ci(k, n, method, conf):
    if method in METHODS_NOT_BUILT:
        pytest.skip(f"not built: {method} intervals of a share")
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
    if model != "ICC(1,1)":
        pytest.skip(f"not built: {model}")
    flat = [(value, subject) for subject, row in enumerate(ratings) for value in row]
    found = stats.icc([value for value, _ in flat], [subject for _, subject in flat], level=conf)
    return {"icc": found.value, "lo": found.low, "hi": found.high}


def _pass_hat_mean(trials, k):
    found = stats.pass_hat_k([n for n, _ in trials], [c for _, c in trials], k)
    return {"mean": found.value, "se": found.se}


def _binomial_exact(k, n, p0):
    found = stats.proportion_interval(k, n, method="clopper-pearson")
    return {"cp_lo": found.low, "cp_hi": found.high}  # the test of a given p0 is not built


ANSWERS = {
    "binomial_ci": _binomial_ci,
    "binomial_exact": _binomial_exact,
    "clustered_se_mean": _clustered,
    "cohen_kappa": _kappa,
    "cohen_kappa_raters": _kappa_of_raters,
    "icc": _icc,
    "mcnemar_exact": _mcnemar,
    "newcombe_diff_ci": _newcombe,
    "p_adjust": lambda p, method: stats.adjust(p, method=method),
    "paired_condition_difference": _paired,
    "paired_condition_difference_mixed_model": _paired,
    "pairwise_consistency": lambda category_counts: stats.consistency(category_counts).value,
    "pass_at_k": lambda n, c, k: stats.pass_at_k(n, c, k).value,
    "pass_hat_k": lambda n, c, k: stats.pass_hat_k(n, c, k).value,
    "pass_hat_k_mean": _pass_hat_mean,
    "sign_flip_permutation_exact": lambda d: stats.sign_flip_test(d).p,
    "twoway_clustered_se_mean": lambda y, cluster1, cluster2: stats.clustered_se(y, cluster1, second=cluster2).se,
    "variance_components_balanced": lambda y, question: _components(y, question, "auto"),
    "variance_components_reml": lambda y, question: _components(y, question, "reml"),
    "variance_components_unbalanced_anova": lambda y, question: _components(y, question, "anova"),
    "wilcoxon_signed_rank_exact": lambda d: stats.wilcoxon(d).p,
}
NOT_ASKED = {"binomial_exact": {"p"}}  # parts of `expected` that no function answers yet


def _rows():
    if not VECTORS.exists():
        why = pytest.mark.skip(reason="the vectors stand beside the checkout: ../shared/data")
        return [pytest.param(None, marks=why, id="vectors")]
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["id"]) for row in rows if row["quantity"] in {*ANSWERS, *NOT_BUILT}]


@pytest.mark.parametrize("row", _rows())
def test_the_reference_vector_is_reproduced(row):
    quantity, expected = row["quantity"], row["expected"]
    if quantity in NOT_BUILT:
        pytest.skip(f"not built: {NOT_BUILT[quantity]}")
    found = ANSWERS[quantity](**{key: _decoded(value) for key, value in row["inputs"].items()})
    if isinstance(expected, dict):
        asked = expected.keys() - NOT_ASKED.get(quantity, set())
        assert asked
        for key in sorted(asked):
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
    answered = [
        row
        for row in rows
        if row["quantity"] in ANSWERS
        and row["inputs"].get("method") not in METHODS_NOT_BUILT
        and row["inputs"].get("model", "ICC(1,1)") == "ICC(1,1)"
    ]
    assert len(answered) == ANSWERED


def _decoded(value):
    return [_decoded(one) for one in value] if isinstance(value, list) else math.nan if value == "NaN" else value


def _close(found, expected, row, key):
    wanted = _decoded(expected)
    wanted = math.nan if wanted is None else wanted
    assert np.isclose(found, wanted, rtol=row["rel_tol"], atol=row["abs_tol"], equal_nan=True), (key, found, wanted)
