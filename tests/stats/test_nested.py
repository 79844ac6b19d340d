"""Variance between questions, between answers to one, and between verdicts on one."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from karat import stats

# Davies and Goldsmith (1972), table 6.5: strength of a paste, from ten batches, three casks each, tested twice.
PASTE = """62.8 62.6 60.1 62.3 62.7 63.1  60.0 61.4 57.5 56.9 61.1 58.9  58.7 57.5 63.9 63.1 65.4 63.7
57.1 56.4 56.9 58.6 64.7 64.5  55.1 55.1 54.7 54.2 58.8 57.5  63.4 64.9 59.3 58.1 60.5 60.0
62.5 62.6 61.0 58.7 56.9 57.7  59.2 59.4 65.2 66.0 64.8 64.1  54.8 54.8 64.0 64.0 57.7 56.8
58.3 59.3 59.2 59.2 58.9 56.6"""
STRENGTH = [float(word) for word in PASTE.split()]
BATCH = [place // 6 for place in range(60)]
CASK = [place // 2 % 3 for place in range(60)]


def drawn(rng, questions=8):
    """Unequal numbers of answers and verdicts."""
    rows = []
    for question in range(questions):
        level = rng.normal()
        for answer in range(rng.integers(1, 5)):
            own = level + 0.8 * rng.normal()
            rows += [(own + 0.5 * rng.normal(), question, answer) for _ in range(rng.integers(1, 4))]
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("method", ["anova", "reml"])
def test_the_parts_agree_with_the_printed_ones_of_pastes(method):
    """Bates (2010), lme4: Mixed-effects modeling with R, section 2.2.1: REML 8.434, 1.657 and 0.678."""
    found = stats.variance_components(STRENGTH, BATCH, answer=CASK, method=method)
    parts = (found.within.value, found.between.value, found.judge.value)
    assert parts == pytest.approx((8.434, 1.657, 0.678), abs=5e-4)
    assert found.mean == pytest.approx(60.0533, abs=5e-5)
    assert (found.statistic, found.df) == (pytest.approx(1.567, abs=5e-4), (9, 20))


def dense_deviance(y, question, answer):
    """The restricted likelihood, written down with whole matrices."""
    y = np.array(y)
    same_question = np.equal.outer(question, question)
    same_answer = same_question & np.equal.outer(answer, answer)

    def deviance(logs):
        parts = np.exp(np.clip(logs, -25, 25))
        cover = parts[0] * same_question + parts[1] * same_answer + parts[2] * np.eye(y.size)
        inverse, ones = np.linalg.inv(cover), np.ones(y.size)
        information = ones @ inverse @ ones
        rest = y - (ones @ inverse @ y) / information
        return np.linalg.slogdet(cover)[1] + math.log(information) + rest @ inverse @ rest

    return deviance


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reml_finds_the_optimum_of_the_likelihood(seed):
    y, question, answer = drawn(np.random.default_rng(seed))
    found = stats.variance_components(y, question, answer=answer)
    assert found.method == "reml"
    deviance = dense_deviance(y, question, answer)
    ours = deviance(np.log([max(part.value, 1e-10) for part in (found.between, found.within, found.judge)]))
    best = scipy.optimize.minimize(deviance, [0.0, -0.5, -1.0], method="Nelder-Mead", options={"fatol": 1e-10})
    assert ours <= best.fun + 1e-6


def test_reml_agrees_with_statsmodels():
    """MixedLM of statsmodels 0.15, with questions as groups and answers as a variance component of theirs."""
    y, question, answer = drawn(np.random.default_rng(3), questions=12)
    found = stats.variance_components(y, question, answer=answer)
    parts = (found.between.value, found.within.value, found.judge.value)
    assert parts == pytest.approx((0.992125, 1.270470, 0.300392), rel=1e-3)


@settings(max_examples=15)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**31))
def test_balanced_parts_agree_with_the_expected_mean_squares(questions, answers, verdicts, seed):
    y = np.random.default_rng(seed).integers(1, 6, size=(questions, answers, verdicts)).astype(float)
    of_answers, of_questions = y.mean(axis=2), y.mean(axis=(1, 2))
    ms_judge = ((y - of_answers[..., None]) ** 2).sum() / (questions * answers * (verdicts - 1))
    ms_agent = verdicts * ((of_answers - of_questions[:, None]) ** 2).sum() / (questions * (answers - 1))
    ms_between = answers * verdicts * of_questions.var(ddof=1)
    places = np.indices(y.shape).reshape(3, -1)
    found = stats.variance_components(y.ravel(), places[0], answer=places[1])
    assert found.judge.value == pytest.approx(ms_judge, abs=1e-12)
    assert found.within.value == pytest.approx((ms_agent - ms_judge) / verdicts, abs=1e-12)
    assert found.between.value == pytest.approx((ms_between - ms_agent) / (answers * verdicts), abs=1e-12)
    assert (found.ms_between, found.ms_within) == pytest.approx((ms_between, ms_agent), abs=1e-9)
    shares = (found.share_between, found.share_within, found.share_judge)
    if not math.isnan(shares[0]):
        assert sum(shares) == pytest.approx(1)
        for share, interval in zip(shares, found.share_intervals, strict=True):
            assert interval.value == share
            assert 0 <= interval.low <= interval.high <= 1
    judges = stats.variance_components(y.ravel(), places[0], judge=places[2])
    assert judges.judge.value == pytest.approx(found.judge.value, abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_one_verdict_an_answer_is_two_levels_and_cannot_tell_the_judge(seed):
    y, question, answer = drawn(np.random.default_rng(seed))
    once = dict(zip(zip(question, answer, strict=True), y, strict=True))
    found = stats.variance_components(list(once.values()), [q for q, _ in once], answer=[a for _, a in once])
    if not math.isnan(stats.variance_components(list(once.values()), [q for q, _ in once]).within.value):
        assert found.reason == "no answer was judged twice"
    assert math.isnan(found.share_judge)
    assert len(found.share_intervals) == 3


def test_a_judge_that_never_wavers_leaves_two_levels():
    y, question = [1.0, 2.0, 4.0, 4.5, 3.0, 2.0, 2.5], [1, 1, 2, 2, 3, 3, 3]
    twice = stats.variance_components(np.repeat(y, 2), np.repeat(question, 2), answer=np.repeat(range(7), 2))
    once = stats.variance_components(y, question, method="reml")
    assert twice.judge.value == 0.0
    assert (twice.between.value, twice.within.value) == (once.between.value, once.within.value)


def test_the_chi_squared_interval_of_the_judge_is_exact():
    found = stats.variance_components(STRENGTH, BATCH, answer=CASK)
    squares = 30 * 0.678
    assert (found.judge.low, found.judge.high) == pytest.approx((squares / 46.979, squares / 16.791), rel=2e-3)


def test_generalised_intervals_agree_with_drawn_pivots():
    """The same by two hundred thousand random draws instead of the lattice."""
    found = stats.variance_components(STRENGTH, BATCH, answer=CASK)
    rng = np.random.default_rng(5)
    judge = 30 * 0.678 / rng.chisquare(30, 200_000)
    agent = (20 * found.ms_within / rng.chisquare(20, 200_000) - judge) / 2
    between = (9 * found.ms_between / rng.chisquare(9, 200_000) - 20 * found.ms_within / rng.chisquare(20, 200_000)) / 6
    assert found.within.high == pytest.approx(np.quantile(agent, 0.975), rel=0.02)
    assert found.between.high == pytest.approx(np.quantile(between, 0.975), rel=0.03)
    assert found.between.low == 0.0


@pytest.mark.parametrize(
    ("y", "question", "answer", "reason"),
    [
        ([1, 2, 3, 4], [1, 1, 1, 1], [1, 1, 2, 2], "needs two questions"),
        ([1, 2, 3, 4], [1, 1, 2, 2], [1, 1, 1, 1], "no question was answered twice"),
        ([1, 2, 3, 4], [1, 1, 2, 2], [1, 2, 1, 2], "no answer was judged twice"),
        ([1, 2, 3, None], [1, 1, 1, 2], [1, 1, 2, 1], "1 of 4 values are missing"),
        ([], [], [], "needs two questions"),
    ],
)
def test_what_cannot_be_told_apart_is_nan_with_a_reason(y, question, answer, reason):
    found = stats.variance_components(y, question, answer=answer)
    assert found.reason == reason
    assert all(math.isnan(part.value) for part in (found.between, found.within, found.judge))


def test_equal_values_have_no_shares():
    found = stats.variance_components([3] * 8, [1] * 4 + [2] * 4, answer=[1, 1, 2, 2] * 2)
    assert (found.judge.value, found.reason) == (0.0, "all values are equal")
    assert math.isnan(found.share_judge)
    assert math.isnan(found.share_intervals[0].low)


def test_lengths_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"question and answer: must be as many as values \(3\), got 3, 2"):
        stats.variance_components([1, 2, 3], [1, 1, 2], answer=[1, 2])
    with pytest.raises(ValueError, match=r"question and judge: must be as many as values \(3\), got 3, 2"):
        stats.variance_components([1, 2, 3], [1, 1, 2], judge=[1, 2])
