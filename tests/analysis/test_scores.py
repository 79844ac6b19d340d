"""From score rows to one number per trial: repeats, panels, turns, several scorings."""

from __future__ import annotations

import math

import msgspec
import pytest

from karat.analysis import summarize, trials
from karat.errors import BadOption
from karat.records import Metric


def one_trial(folder, journals, rows, **more):
    script = journals.Script(folder, samples=1, conditions=("only",), **more)
    script.answer(0, "only")
    for row in rows:
        script.score(0, "only", **row)
    return script.end()


def test_repeats_are_averaged_before_judges_and_judges_before_turns(tmp_path, journals):
    rows = [
        {"value": 1, "judge": "a", "repeat": 0, "turn": 0},
        {"value": 2, "judge": "a", "repeat": 1, "turn": 0},
        {"value": 4, "judge": "b", "repeat": 0, "turn": 0},
        {"value": 5, "judge": "b", "repeat": 0, "turn": 1},
    ]
    summary = summarize(one_trial(tmp_path / "run", journals, rows))
    # turn 0: a is 1.5, b is 4, together 2.75; turn 1 is 5
    assert summary.results[0].mean.value == pytest.approx((2.75 + 5) / 2)
    assert summary.metrics[0].judges == ("a", "b")
    assert summary.metrics[0].repeats == 2
    by_judge = {one.judge: one.mean for one in summary.results[0].by_judge}
    assert by_judge == {"a": 1.5, "b": 4.5}


def test_judge_noise_is_the_spread_between_repeats_alone(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",))
    for row, values in enumerate([(1, 3), (5, 5)]):
        script.answer(row, "only")
        for repeat, value in enumerate(values):
            script.score(row, "only", value=value, repeat=repeat)
    result = summarize(script.end()).results[0]
    assert result.judge_sd.value == pytest.approx(math.sqrt((2 + 0) / 2))
    assert result.mean.value == 3.5


def test_the_last_row_of_a_judges_repeat_counts(tmp_path, journals):
    rows = [{"value": 1}, {"value": 5}]
    assert summarize(one_trial(tmp_path / "run", journals, rows)).results[0].mean.value == 5


def test_a_value_that_could_not_be_given_is_missing_and_not_0(tmp_path, journals):
    result = summarize(one_trial(tmp_path / "run", journals, [{"value": None}])).results[0]
    assert result.mean.value is None
    assert (result.n_answers, result.n_missing) == (0, 1)
    assert (result.worst.value, result.best.value) == (1, 5)


def test_metrics_that_come_and_go_stay_in_their_rows(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, conditions=("only",))
    for row, values in enumerate([{"x": 1.5}, {"y": 2.5, "x": 3.5}, {"y": 4.5}]):
        script.answer(row, "only")
        script.score(row, "only", values=values)
    summary = summarize(script.end())
    means = {column.metric: column.mean for column in summary.table_of_samples.columns}
    assert means == {"x": [1.5, 3.5, None], "y": [None, 2.5, 4.5]}


def test_two_scorers_may_measure_a_metric_of_one_name(tmp_path, journals):
    second = msgspec.structs.replace(journals.JUDGE, name="people", scoring="cc" * 16, offline=False)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=(journals.JUDGE, second))
    script.scored(0, "only", value=2)
    script.score(0, "only", value=4, scorer=second)
    summary = summarize(script.end())
    assert [(metric.key, metric.offline) for metric in summary.metrics] == [
        ("judge.completeness", True),
        ("people.completeness", False),
    ]
    assert [result.mean.value for result in summary.results] == [2, 4]
    assert [result.offline for result in summary.results] == [True, False]


@pytest.fixture
def rescored(tmp_path, journals):
    newer = msgspec.structs.replace(journals.JUDGE, scoring="cc" * 16)
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",))
    script.scored(0, "only", value=1)
    script.scored(1, "only", value=2)
    script.resume(newer)
    script.score(0, "only", value=5, scorer=newer)
    return script.end("interrupted")


def test_the_newest_scoring_is_shown_and_nothing_of_the_old_one(rescored, journals):
    summary = summarize(rescored)
    assert summary.metrics[0].scoring == "cc" * 16
    assert (summary.results[0].mean.value, summary.results[0].n_missing) == (5, 1)
    assert (summary.total.ledger.scored, summary.total.ledger.not_run) == (1, 1)


def test_an_older_scoring_can_be_asked_for_by_its_beginning(rescored):
    summary = summarize(rescored, scorings={"judge": "0f0f"})
    assert summary.results[0].mean.value == 1.5
    assert summary.total.ledger.scored == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"juge": "0f"}, "the run has no scorer 'juge' (did you mean 'judge'?)"),
        ({"judge": "ee"}, "'ee' is not a scoring of 'judge'"),
        ({"judge": ""}, "'' matches several scorings of 'judge'"),
    ],
)
def test_a_scoring_that_is_not_there_is_an_error_that_lists_what_is(rescored, asked, message):
    with pytest.raises(BadOption, match="--scoring") as caught:
        summarize(rescored, scorings=asked)
    assert message in str(caught.value)


def test_labels_alone_make_no_metric(tmp_path, journals):
    rows = [{"values": {}, "labels": {"completeness": "good"}}]
    summary = summarize(one_trial(tmp_path / "run", journals, rows))
    assert summary.metrics == ()
    assert summary.total.ledger.scored == 1


def test_a_score_without_an_answer_is_left_out_aloud(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",))
    script.score(0, "only", value=5)
    summary = summarize(script.end())
    assert summary.results[0].n_answers == 0
    assert any("1 score of trials without an answer" in warning for warning in summary.warnings)


def test_scoring_a_run_that_named_no_scorer(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=())
    script.answer(0, "only")
    script.resume(journals.JUDGE)
    script.score(0, "only", value=4)
    assert summarize(script.end()).results[0].mean.value == 4


def test_announced_ranges_and_directions_are_kept(tmp_path, journals):
    cost = Metric(name="errors", low=0, direction="lower", kind="ordinal", description="how many")
    summary = summarize(journals.table(tmp_path / "run", {"only": [[2]]}, metric=cost))
    metric = summary.metrics[0]
    assert (metric.low, metric.high, metric.direction, metric.threshold) == (0, None, "lower", 1)


def test_a_scoring_that_was_cut_short_is_none_until_it_is_whole(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",))
    panel = [{"judge": judge, "rows": 3} for judge in "abc"]
    script.answer(0, "only")
    script.answer(1, "only")
    for value, row in zip((1, 1, 1), panel, strict=True):
        script.score(0, "only", value=value, **row)
    # Killed after two rows; done again from the first, and killed after that one: three rows, but two judges.
    for row in (panel[0], panel[1], panel[0]):
        script.score(1, "only", value=5, **row)
    summary = summarize(script.end("interrupted"))
    assert (summary.total.ledger.scored, summary.total.ledger.not_run) == (1, 1)
    assert (summary.results[0].mean.value, summary.results[0].n_missing) == (1, 1)
    assert [len(trial.scores) for trial in trials(script.stop(), summary)] == [3, 0]


def test_done_again_it_takes_the_place_of_the_torn_rows(tmp_path, journals):
    rows = [{"value": value, "judge": judge, "rows": 2} for value, judge in [(1, "a"), (3, "a"), (5, "b")]]
    summary = summarize(one_trial(tmp_path / "run", journals, rows))
    assert summary.results[0].mean.value == 4
    assert summary.total.ledger.scored == 1
