"""What may be set of judges, and what a run records of them before one is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest

from karat import rubrics
from karat.errors import BadOption
from karat.models import Price
from karat.scorers import ScorerSetting
from karat.scorers.criteria import Criteria
from karat.scorers.judge import Judge

METRICS = rubrics.load("default").metrics


def judge(setting: dict[str, Any] | None = None, **options: Any) -> Judge:
    given = Judge.Options(**{"model": "openai:judge", **options})
    return Judge(given, ScorerSetting(folder=Path(), name="quality", env={}, **(setting or {})))


def test_a_run_records_everything_that_is_sent_to_the_judge():
    alone = judge()
    prompt = alone.provenance["prompt"]
    prices = alone.provenance["prices"]
    assert alone.provenance == {
        "judges": ["openai:judge"],
        "temperature": 0.0,
        "seed": None,
        "top_p": None,
        "max_tokens": None,
        "output": "tool",
        "base_url": [None],
        "repeats": 1,
        "prompt": prompt,
        "prices": prices,
    }
    pinned = judge(
        {"prices": {"openai:judge": Price(input=1, output=2)}},
        temperature=0.5,
        seed=7,
        top_p=0.9,
        max_tokens=500,
        output="json",
        repeats=3,
        call_per_metric=True,
        base_url="https://me:secret@judges.example/v1?key=secret",
    )
    assert pinned.provenance["prompt"] != prompt, "another output is asked for in other words"
    assert pinned.provenance == {
        "judges": ["openai:judge"],
        "temperature": 0.5,
        "seed": 7,
        "top_p": 0.9,
        "max_tokens": 500,
        "output": "json",
        "base_url": ["https://judges.example/v1"],
        "repeats": 3,
        "call_per_metric": True,
        "prompt": pinned.provenance["prompt"],
        "prices": f"the experiment file, {prices}",
    }


def test_a_judge_has_the_metrics_of_its_rubric():
    found = judge().metrics
    assert [(metric.name, metric.low, metric.high, metric.direction, metric.description) for metric in found] == [
        (metric.name, metric.low, metric.high, metric.direction, metric.description) for metric in METRICS
    ]
    assert {metric.kind for metric in found} == {"ordinal"}


def test_a_member_of_a_panel_has_its_own_address_and_else_that_of_all():
    panel = judge(
        model=None,
        judges=["openai:one", {"model": "openai:two", "base_url": "http://two.example/v1"}],
        base_url="http://all.example/v1",
    )
    assert panel.provenance["judges"] == ["openai:one", "openai:two"]
    assert panel.provenance["base_url"] == ["http://all.example/v1", "http://two.example/v1"]


def test_judges_whose_price_is_not_known_are_named():
    prices = {"openai:one": Price(input=1, output=1)}
    panel = judge({"prices": prices}, model=None, judges=["openai:one", "openai:two"], base_url="http://a.example/v1")
    assert panel.unpriced == ("openai:two",)


def test_criteria_without_a_judge_name_none():
    rules = Criteria()
    assert (rules.offline, rules.unpriced, rules.routes) == (True, (), ())
    judged = Criteria(
        Criteria.Options(model="openai:judge", base_url="http://a.example/v1"),
        ScorerSetting(folder=Path(), name="criteria", env={}),
    )
    assert (judged.offline, judged.unpriced) == (False, ("openai:judge",))
    assert len(judged.routes) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs either `model`"),
        ({"judges": []}, "needs either `model`"),
        ({"model": "openai:a", "judges": ["openai:b"]}, "needs either `model`"),
        ({"judges": ["openai:a", {"model": "openai:a"}]}, "names a model twice"),
        ({"judges": ["openai:a", "a"]}, "provider"),
        ({"judges": [{"model": "a"}]}, "provider"),
        ({"model": "a"}, "provider"),
        ({"model": "openai:a", "temperature": 2.1}, "less than or equal to 2"),
        ({"model": "openai:a", "temperature": -0.1}, "greater than or equal to 0"),
        ({"model": "openai:a", "top_p": 0}, "greater than 0"),
        ({"model": "openai:a", "top_p": 1.1}, "less than or equal to 1"),
        ({"model": "openai:a", "max_tokens": 0}, "greater than or equal to 1"),
        ({"model": "openai:a", "max_asks": 0}, "greater than or equal to 1"),
        ({"model": "openai:a", "max_asks": 11}, "less than or equal to 10"),
        ({"model": "openai:a", "repeats": 0}, "greater than or equal to 1"),
        ({"model": "openai:a", "repeats": 101}, "less than or equal to 100"),
        ({"judges": [f"openai:{number}" for number in range(21)]}, "at most 20"),
        ({"model": "openai:a", "outputs": "json"}, "Extra inputs are not permitted"),
    ],
)
def test_what_a_judge_cannot_be_is_refused(options: dict[str, Any], message: str):
    with pytest.raises(pydantic.ValidationError, match=message):
        Judge.Options.model_validate(options)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 2},
        {"temperature": 0},
        {"temperature": None},
        {"top_p": 1},
        {"max_tokens": 1},
        {"max_asks": 1},
        {"max_asks": 10},
        {"repeats": 100},
        {"model": None, "judges": [f"openai:{number}" for number in range(20)]},
    ],
)
def test_the_ends_of_each_range_are_in_it(options: dict[str, Any]):
    assert Judge.Options.model_validate({"model": "openai:a", **options}).judged


def test_criteria_may_have_no_judge_but_not_two_kinds():
    assert not Criteria.Options().judged
    with pytest.raises(pydantic.ValidationError, match="needs either `model`"):
        Criteria.Options(model="openai:a", judges=["openai:b"])


def test_a_judge_whose_key_is_missing_is_refused_before_anything_is_asked():
    with pytest.raises(BadOption, match=r"quality\.model"):
        judge().open()
