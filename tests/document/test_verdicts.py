"""The result in a few lines, from differences that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import Difference, Summary
from karat.analysis.numbers import Estimate
from karat.analysis.verdicts import NO_DIFFERENCE, ONLY_AHEAD
from karat.document.verdicts import verdicts


@pytest.fixture
def summary(journals, tmp_path) -> Summary:
    found = summarize(journals.table(tmp_path, {name: [[3.0], [4.0]] for name in ("a", "b", "c")}))
    return structs.replace(found, notices=("A notice",), headline="The headline", server_problems=())


def pair(a: str = "a", b: str = "b", *, span: Any = (1.0, 0.5, 1.5), **fields: Any) -> Difference:
    value, low, high = span
    given = {
        "metric": "completeness", "p": 0.01, "p_adjusted": 0.02, "effect": 1.0, "n_pairs": 9, "lost_a": 0, "lost_b": 0,
        "lost_both": 0, "winner": b, "verdict": f"{b} is better",
        "estimate": Estimate(value=value, low=low, high=high, se=None, n=9, level=0.95, method="made up"),
    }  # fmt: skip
    return Difference(**{**given, **fields}, a=a, b=b)


def said(summary: Summary, *pairs: Difference, **fields: Any) -> tuple[str, ...]:
    found = verdicts(structs.replace(summary, differences=pairs, **fields))
    assert found[0] == "A notice"
    return found[1:]


NONE = {"winner": None, "verdict": NO_DIFFERENCE}


def test_without_a_difference_the_headline_is_all(summary):
    assert said(summary) == said(summary, pair(**NONE)) == ("The headline",)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "b is better than a on completeness: 1.00 [0.50, 1.50]"),
        ({"winner": "a", "span": (-1.0, -1.5, -0.5)}, "a is better than b on completeness: 1.00 [0.50, 1.50]"),
        ({"span": (1.0, None, None)}, "b is better than a on completeness: +1.00"),
        ({"winner": None, "verdict": "b is higher"}, "b is higher than a on completeness: 1.00 [0.50, 1.50]"),
        (
            {"winner": None, "verdict": "a is higher", "span": (-1.0, -1.5, -0.5)},
            "a is higher than b on completeness: 1.00 [0.50, 1.50]",
        ),
    ],
)
def test_a_difference_is_a_line(summary, fields, line):
    (found,) = said(summary, pair(**fields))
    assert found.replace("+", "") == line.replace("+", "")
    assert "−" not in found


def test_what_is_better_by_less_has_its_sign(summary):
    (line,) = said(summary, pair(span=(-1.0, -1.5, -0.5)))
    assert line == "b is better than a on completeness: −1.00 [−1.50, −0.50]"


def test_shares_differ_by_points_and_names_are_words(summary):
    share = structs.replace(summary.metrics[0], key="is_right", kind="share", low=0, high=1)
    (line,) = said(summary, pair(metric="is_right", span=(0.1, 0.05, 0.15)), metrics=(share,))
    assert line == "b is better than a on is right: +10.0 points [5.0, 15.0]"


def test_many_differences_are_a_line_for_each_pair_of_conditions(summary):
    info = summary.metrics[0]
    metrics = tuple(structs.replace(info, key=f"m_{at}") for at in range(9))

    def of(many: int) -> tuple[str, ...]:
        pairs = [pair(metric=f"m_{at}") for at in range(many)]
        return said(summary, *pairs, metrics=metrics)

    assert len(of(8)) == 8
    (line,) = of(9)
    assert line == "b is better than a on " + ", ".join(f"m {at} (+1.00)" for at in range(9))
    mixed = [pair(metric=f"m_{at}") for at in range(8)] + [
        pair("a", "c", metric="m_8", winner="a", span=(-1, -2, -0.5))
    ]
    assert said(summary, *mixed, metrics=metrics)[1] == "a is better than c on m 8 (+1.00)"


def test_scores_of_a_rule_are_named(summary):
    other = structs.replace(summary.metrics[0], key="the_other")
    rule = "given by a rule, not by a model that understands"
    metrics = {"metrics": (*summary.metrics, other)}
    assert said(summary, pair(offline=True))[1:] == (f"Offline scores: {rule}",)
    mixed = said(summary, pair(), pair(metric="the_other", offline=True), **metrics)
    assert mixed[2:] == (f"Offline scores of the other: {rule}",)
    assert len(said(summary, pair(), pair(metric="the_other"), **metrics)) == 2


def test_pairs_without_a_difference_are_named_if_no_metric_tells_them_apart(summary):
    shown = pair("a", "b")
    assert said(summary, shown, pair("a", "b", metric="completeness", **NONE))[1:] == ()
    assert said(summary, shown, pair("a", "c", **NONE), pair("a", "c", **NONE))[1:] == (
        "No difference shown between c and a",
    )
    many = [pair("a", name, **NONE) for name in "cdefg"]
    assert said(summary, shown, *many[:3])[1:] == ("No difference shown between c and a; d and a; e and a",)
    assert said(summary, shown, *many[:4])[1] == (
        "No difference shown between c and a; d and a; e and a; 1 further pair"
    )
    assert said(summary, shown, *many)[1].endswith("e and a; 2 further pairs")


def test_who_is_only_ahead_is_said_of_three_pairs(summary):
    ahead = [pair("a", name, winner=None, verdict=f"{name} is ahead {ONLY_AHEAD}") for name in "cdef"]
    lines = said(summary, pair(), *ahead)
    assert len(lines) == 4
    assert all(name in line for name, line in zip("cde", lines[1:], strict=True))
