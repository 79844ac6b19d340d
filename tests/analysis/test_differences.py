"""Who is better: only where the numbers, adjusted for all looks at them, allow to say so."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.journals import JUDGE, SCALE, Script

from karat.analysis import compare, summarize
from karat.analysis.verdicts import NO_DIFFERENCE
from karat.records import Metric


def only(summary):
    (difference,) = summary.differences
    return difference


def test_by_hand(tmp_path, journals):
    scores = {"a": [[1], [2], [3], [4], [2], [3]], "b": [[3], [3], [5], [5], [5], [4]]}
    found = only(summarize(journals.table(tmp_path / "run", scores)))
    # differences 2 1 2 1 3 1: mean 5/3, sd √(2/3) = 0.8165, se 1/3, t = 5 with 5 df
    assert found.estimate.value == pytest.approx(5 / 3)
    assert found.estimate.se == pytest.approx(1 / 3)
    assert found.estimate.low == pytest.approx(5 / 3 - 2.5706 / 3, abs=1e-4)
    assert found.p == pytest.approx(0.004105, abs=1e-6)
    assert found.effect == pytest.approx(2.0412, abs=1e-4)
    assert (found.winner, found.verdict) == ("b", "b is better")


def test_the_lower_side_wins_where_lower_is_better(tmp_path, journals):
    errors = Metric(name="errors", low=0, high=9, direction="lower", kind="ordinal")
    scores = {"a": [[1], [2], [3], [4], [2], [3]], "b": [[3], [3], [5], [5], [5], [4]]}
    summary = summarize(journals.table(tmp_path / "run", scores, metric=errors))
    assert only(summary).winner == "a"
    assert summary.headline.startswith("a beats b on errors by 1.67 [0.81, 2.52] over 6 questions")


def test_a_metric_without_a_direction_names_no_winner(tmp_path, journals):
    words = Metric(name="words", direction="none")
    scores = {"a": [[1], [2], [3], [4], [2], [3]], "b": [[3], [3], [5], [5], [5], [4]]}
    summary = summarize(journals.table(tmp_path / "run", scores, metric=words))
    found = only(summary)
    assert (found.winner, found.verdict) == (None, "b is higher")
    assert summary.headline.startswith("b is higher than a on words by 1.67 [0.81, 2.52] over 6 questions, p = 0.004")


def test_two_equal_conditions_over_two_equal_questions_stay_apart_and_have_no_winner(tmp_path, journals):
    samples = [journals.sample(0, digest="ee" * 16, name="0"), journals.sample(1, digest="ee" * 16, name="1")]
    scores = {"a": [[2, 3], [2, 3]], "same": [[2, 3], [2, 3]]}
    summary = summarize(journals.table(tmp_path / "run", scores, samples=samples))
    assert summary.total.ledger.scored == 8
    found = only(summary)
    assert (found.estimate.value, found.p, found.winner, found.verdict) == (0, 1, None, NO_DIFFERENCE)
    assert summary.headline.startswith("No difference shown between a and same")


def test_equal_differences_are_tested_by_signs_and_two_of_them_show_nothing(tmp_path, journals):
    # 13/3 − 10/3 and 4/3 − 1/3 differ in the last bit: an sd of 1e-16 must not make a winner.
    scores = {"a": [[3, 3, 4], [0, 0, 1]], "b": [[4, 4, 5], [1, 1, 2]]}
    found = only(summarize(journals.table(tmp_path / "run", scores)))
    assert found.p == 0.5
    assert found.winner is None


def test_one_question_cannot_be_tested(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", {"a": [[1, 1]], "b": [[5, 5]]}))
    found = only(summary)
    assert (found.p, found.winner, found.verdict) == (None, None, NO_DIFFERENCE)
    assert summary.headline.endswith("on completeness: +4.00 over 1 question, not testable, offline scores")
    assert found.reason


def test_nothing_in_common_is_not_comparable(tmp_path, journals):
    summary = summarize(journals.table(tmp_path / "run", {"a": [[1], [None]], "b": [[None], [5]]}))
    found = only(summary)
    assert (found.estimate.value, found.verdict, found.n_pairs) == (None, "not comparable", 0)
    assert (found.lost_a, found.lost_b, found.lost_both) == (1, 1, 0)
    assert summary.headline == "a and b cannot be compared on completeness: no question has a score under both"


def test_p_values_are_adjusted_over_all_that_is_shown(tmp_path, journals):
    scores = {
        "a": [[1], [2], [3], [4], [2], [3]],
        "b": [[3], [3], [5], [5], [5], [4]],
        "c": [[2], [2], [4], [4], [3], [3]],
    }
    found = summarize(journals.table(tmp_path / "run", scores)).differences
    raw = sorted(one.p for one in found)
    running, wanted = 0.0, {}
    for rank, p in enumerate(raw):
        running = max(running, min(1.0, (len(raw) - rank) * p))
        wanted[p] = running
    assert [one.p_adjusted for one in found] == [pytest.approx(wanted[one.p]) for one in found]
    assert [(one.a, one.b) for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_only_shared_questions_are_compared_and_uneven_losses_are_said(tmp_path, journals):
    scores = {"a": [[1], [2], [None], [None], [2], [3], [4]], "b": [[2], [3], [4], [5], [3], [None], [4]]}
    summary = summarize(journals.table(tmp_path / "run", scores))
    found = only(summary)
    assert (found.n_pairs, found.lost_a, found.lost_b) == (4, 2, 1)
    assert found.estimate.value == pytest.approx((1 + 1 + 1 + 0) / 4)
    text = " ".join(summary.warnings)
    assert "3 questions lost (2 without a score under a, 1 under b)" in text
    assert "(a 2, b 1): see the bounds" in text
    assert "4 shared questions: too few" in text


def metrics_run(folder, journals, rows):
    """Scores on three metrics alike: condition → questions; None: the trial failed."""
    metrics = tuple(Metric(name=name, low=1, high=5, kind="ordinal") for name in ("x", "y", "z"))
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=metrics)
    count = len(next(iter(rows.values())))
    script = journals.Script(folder, samples=count, conditions=tuple(rows), scorers=(scorer,))
    for condition, values in rows.items():
        for row, value in enumerate(values):
            if value is None:
                script.failure(row, condition)
            else:
                script.answer(row, condition)
                script.score(row, condition, values=dict.fromkeys("xyz", value), scorer=scorer)
    return script.end()


def test_what_is_lost_alike_on_several_metrics_is_said_once(tmp_path, journals):
    rows = {"a": [1, None, 3, 4, 5, 1, 2, 3], "b": [2] * 8, "c": [3] * 8}
    lost = "1 question lost (1 without a score under a, 0 under {}); the compared parts may differ"
    assert summarize(metrics_run(tmp_path / "run", journals, rows)).warnings == (
        f"b against a on 3 metrics: {lost.format('b')}",
        f"c against a on 3 metrics: {lost.format('c')}",
        "scores are missing unevenly on 3 metrics (a 1, b 0, c 0): see the bounds",
    )


def test_a_condition_without_any_score_is_said_once_and_asks_for_no_more_questions(tmp_path, journals):
    rows = {"a": [1, 2, 3, 4, 5, 1, 2, 3], "b": [None] * 8}
    warnings = summarize(metrics_run(tmp_path / "run", journals, rows)).warnings
    assert warnings == ("b: no score on any metric, so it is compared with nothing",)


def test_even_losses_make_no_noise(tmp_path, journals):
    scores = {"a": [[1], [None], *[[3]] * 6], "b": [[2], [None], *[[4]] * 6]}
    assert summarize(journals.table(tmp_path / "run", scores)).warnings == ()


def test_an_a_a_run_names_a_winner_in_about_one_of_twenty(tmp_path, journals):
    rng = random.Random(20)
    runs, winners = 60, 0
    for number in range(runs):
        draw = [[[rng.choice((1, 2, 3, 4, 5)) for _ in range(3)] for _ in range(20)] for _ in range(2)]
        run = journals.table(tmp_path / str(number), {"a": draw[0], "again": draw[1]})
        winners += only(summarize(run)).winner is not None
    assert winners <= 8  # P(more than 8 of 60 at 5 %) < 0.01


def test_the_headline_speaks_of_the_first_metric_that_shows_something(tmp_path, journals):
    scores = {"a": [[1], [2], [3], [4], [2], [3]], "b": [[3], [3], [5], [5], [5], [4]]}
    headline = summarize(journals.table(tmp_path / "run", scores)).headline
    assert headline == ("b beats a on completeness by 1.67 [0.81, 2.52] over 6 questions, p = 0.004 (offline scores)")


def test_one_condition_is_told_alone(tmp_path, journals):
    headline = summarize(journals.table(tmp_path / "run", {"a": [[1, 2], [2, 3]]})).headline
    assert headline == "a: completeness 2.00 [1.00, 5.00] over 2 questions, 4 answers, offline scores"


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.none() | st.integers(1, 5)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_laws(tmp_path_factory, journals, rows, rng):
    """Turned round, a difference changes its sign alone; the order of questions is nothing; none beats itself."""
    one, other = [[row[0], row[1]] for row in rows], [[row[2], row[1]] for row in rows]
    found = only(summarize(journals.table(tmp_path_factory.mktemp("run"), {"a": one, "b": other})))
    turned = only(summarize(journals.table(tmp_path_factory.mktemp("run"), {"b": other, "a": one})))
    assert (turned.p, turned.n_pairs) == (found.p, found.n_pairs)
    assert turned.winner == found.winner
    if found.estimate.value is not None:
        assert turned.estimate.value == pytest.approx(-found.estimate.value)
    order = list(range(len(rows)))
    rng.shuffle(order)
    mixed = {"a": [one[row] for row in order], "b": [other[row] for row in order]}
    shuffled = only(summarize(journals.table(tmp_path_factory.mktemp("run"), mixed)))
    assert shuffled.p == (pytest.approx(found.p, rel=1e-9, abs=1e-300) if found.p is not None else None)
    same = only(summarize(journals.table(tmp_path_factory.mktemp("run"), {"a": one, "a again": one})))
    assert (same.estimate.value, same.winner) == (0, None)


def test_conditions_are_not_compared_on_what_is_about_the_scoring_itself(tmp_path: Path) -> None:
    """As whether a judge changed its mind when the answers came in the other order."""
    about = Metric(name="order", low=0, high=1, compared=False)
    scorer = msgspec.structs.replace(JUDGE, metrics=(SCALE, about))
    runs = []
    for number in range(2):
        script = Script(tmp_path / str(number), samples=4, scorers=(scorer,), run=f"{number}" * 8)
        for row in range(4):
            for at, name in enumerate(script.conditions):
                script.answer(row, name)
                values = {"completeness": 1.0 + (row + at) % 4, "order": float(at == 0 or row == 0)}
                script.score(row, name, values=values, scorer=scorer)
        runs.append(script.end())
    summary = summarize(runs[0], pairs="all")
    assert {result.metric for result in summary.results} == {"completeness", "order"}
    assert [difference.metric for difference in summary.differences] == ["completeness"]
    assert {pairing.difference.metric for pairing in compare(*runs).pairings} == {"completeness"}
