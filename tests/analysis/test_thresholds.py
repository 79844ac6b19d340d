"""Names of thresholds: which condition and metric they mean."""

from __future__ import annotations

import pytest

from karat.analysis.thresholds import Threshold, metric_names, parse_threshold, resolve, thresholds_of
from karat.errors import BadOption
from karat.records import Metric


@pytest.mark.parametrize(
    ("text", "bound", "wanted"),
    [
        ("completeness=4.2", "min", Threshold(name="completeness", bound="min", value=4.2)),
        ("with-docs.right=80%", "min", Threshold(name="with-docs.right", bound="min", value=0.8)),
        ("a=b.c=-1", "max", Threshold(name="a=b.c", bound="max", value=-1.0)),
        ("right=0", "max_drop", Threshold(name="right", bound="max_drop", value=0.0)),
    ],
)
def test_a_threshold_is_a_name_and_a_number(text, bound, wanted):
    assert parse_threshold(text, bound) == wanted


@pytest.mark.parametrize("text", ["", "right", "=4", "right=", "right=many", "right=nan", "right=inf", "right=4%%"])
def test_anything_else_is_refused(text):
    with pytest.raises(BadOption, match=r"^--min: expected \[CONDITION\.\]METRIC=NUMBER, got '"):
        parse_threshold(text, "min")


def test_a_drop_is_not_negative():
    with pytest.raises(BadOption, match=r"--max-drop: a drop is 0 or more, got 'right=-0\.1'"):
        parse_threshold("right=-0.1", "max_drop")


METRICS = ["completeness", "judge.clarity", "other.clarity"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("completeness", (None, "completeness")),
        ("cost_usd", (None, "cost_usd")),
        ("gpt-4.1.completeness", ("gpt-4.1", "completeness")),
        ("gpt-4.1.judge.clarity", ("gpt-4.1", "judge.clarity")),
        ("judge.clarity", (None, "judge.clarity")),
        ("judge.completeness", ("judge", "completeness")),
        ("gpt-4.1.failed", ("gpt-4.1", "failed")),
    ],
)
def test_conditions_and_metrics_may_hold_dots(name, wanted):
    assert resolve(name, ["gpt-4.1", "judge"], METRICS) == wanted


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("completness", "no metric is called 'completness' (did you mean 'completeness'?)"),
        ("gpt-4.1.completness", "no metric is called 'completness' (did you mean 'completeness'?)"),
        ("gpt-4.completeness", "no condition is called 'gpt-4' (did you mean 'gpt-4.1'?)"),
        ("nothing.like.it", "no metric is called 'nothing.like.it' (completeness, judge.clarity, other.clarity, cost"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name, because):
    with pytest.raises(BadOption) as refused:
        resolve(name, ["gpt-4.1", "judge"], METRICS)
    assert because in str(refused.value)


def test_a_name_that_can_be_read_in_two_ways_is_refused():
    with pytest.raises(BadOption, match=r"can be read in several ways: 'a\.b' of all or 'b' under 'a'"):
        resolve("a.b", ["a"], ["a.b", "b"])


def test_metrics_that_are_not_announced_are_not_refused():
    assert metric_names([("words", (Metric(name="words"),))]) is None
    assert resolve("anything", ["a"], None) == (None, "anything")
    assert resolve("a.anything", ["a"], None) == ("a", "anything")


def test_metrics_of_two_scorers_carry_the_scorer():
    both, alone = Metric(name="clarity", low=1, high=5), Metric(name="length", low=0)
    assert metric_names([("one", (both, alone)), ("two", (both,))]) == ["one.clarity", "length", "two.clarity"]


def test_thresholds_are_read_from_the_settings_of_a_run():
    settings = {"gate.min.a.b": 4, "gate.max_drop.c": 0.1, "gate.baseline": "latest:x", "name": "x"}
    assert thresholds_of(settings) == [
        Threshold(name="a.b", bound="min", value=4.0),
        Threshold(name="c", bound="max_drop", value=0.1),
    ]
