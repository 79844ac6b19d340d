"""The reference vectors of `../shared/data/vectors/statistics.json`: R packages and exact arithmetic.

Each quantity that karat.stats computes is answered by one function below; the others are those
of karat_studies.replication, or are computed nowhere.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from karat import stats
from karat.stats.power import noncentral_t_cdf

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "vectors" / "statistics.json"

ANSWERED = 79


def _binomial_ci(k, n, method, conf):
    found = stats.proportion_interval(k, n, method=method, level=conf)
    return {"lo": found.low, "hi": found.high}


def _clustered(y, cluster):
    found, alone = stats.clustered_mean(y, cluster), stats.clustered_mean(y, None)
    return {"mean": found.value, "se_CR2": found.se, "df_CR2": found.df, "se_iid": alone.se}


def _raters(table):
    """Two raters' lists from a table of how often the first gave step i and the second step j."""
    rows, columns = np.indices(np.shape(table))
    times = np.ravel(table)
    return np.repeat(rows.ravel(), times).tolist(), np.repeat(columns.ravel(), times).tolist()


def _kappa(table, weights, conf):
    found = stats.cohen_kappa(*_raters(table), categories=range(len(table)), weights=weights, level=conf or 0.95)
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
    }


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


def _gwet(table, weights):
    found = stats.gwet_ac(*_raters(table), categories=range(len(table)), weights=weights)
    return {"coef": found.value, "se": found.se}


def _of_raters(ratings, weights):
    columns = list(zip(*ratings, strict=True))
    weights = {"unweighted": "none"}.get(weights, weights)
    return {"gwet_ac": stats.gwet_ac(*columns, categories=range(1, 6), weights=weights).value}


def _corrected(judge_unlabelled, judge_labelled, human_labelled):
    judge, human = [*judge_unlabelled, *judge_labelled], [None] * len(judge_unlabelled) + human_labelled
    found = stats.calibrate(judge, human).corrected
    return {"mean": found.value, "se": found.se}


def _paired_only(**inputs):
    assert inputs.pop("type") == "paired"
    return inputs


def _noncentral(t, df, ncp):
    return {"cdf": noncentral_t_cdf(t, df, ncp)}


ANSWERS = {
    "binomial_ci": _binomial_ci,
    "clustered_se_mean": _clustered,
    "cohen_kappa": _kappa,
    "cohen_kappa_raters": _kappa_of_raters,
    "gwet_ac": _gwet,
    "krippendorff_alpha": lambda reliability_data, level: (
        stats.krippendorff_alpha(*reliability_data, level=level).value
    ),
    "mde_ttest_paired": lambda n, **test: stats.minimum_detectable_effect(n, 1.0, **test).value,
    "multirater_agreement": _of_raters,
    "noncentral_t_pdf_cdf": _noncentral,
    "p_adjust": lambda p, method: stats.adjust(p, method=method),
    "paired_condition_difference": _paired,
    "paired_condition_difference_mixed_model": _paired,
    "power_ttest": lambda **inputs: stats.power_ttest(**_paired_only(**inputs)).value,
    "ppi_mean": _corrected,
    "sample_size_ttest": lambda **inputs: stats.sample_size_ttest(**_paired_only(**inputs)).value,
    "variance_components_balanced": lambda y, question: _components(y, question, "auto"),
    "variance_components_reml": lambda y, question: _components(y, question, "reml"),
    "variance_components_unbalanced_anova": lambda y, question: _components(y, question, "anova"),
}


def _rows():
    if not VECTORS.exists():
        why = pytest.mark.skip(reason="the vectors stand beside the checkout: ../shared/data")
        return [pytest.param(None, marks=why, id="vectors")]
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["id"]) for row in rows if _is_answered(row)]


def _is_answered(row):
    inputs = row["inputs"]
    if row["quantity"] == "binomial_ci":
        return inputs["method"] in ("wilson", "clopper-pearson")
    return row["quantity"] in ANSWERS and inputs.get("type") != "two-sample"


@pytest.mark.parametrize("row", _rows())
def test_the_reference_vector_is_reproduced(row):
    quantity, expected = row["quantity"], row["expected"]
    found = ANSWERS[quantity](**{key: _decoded(value) for key, value in row["inputs"].items()})
    if isinstance(expected, dict):
        shared = expected.keys() & found.keys()
        assert shared
        for key in sorted(shared):
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
    assert sum(map(_is_answered, rows)) == ANSWERED


def _decoded(value):
    return [_decoded(one) for one in value] if isinstance(value, list) else math.nan if value == "NaN" else value


def _close(found, expected, row, key):
    wanted = _decoded(expected)
    wanted = math.nan if wanted is None else wanted
    assert np.isclose(found, wanted, rtol=row["rel_tol"], atol=row["abs_tol"], equal_nan=True), (key, found, wanted)
