"""Charts: every one says its finding, keeps to the schema, loads nothing, and takes foreign text for text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair
import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest
import vl_convert
from benchmarks.coverage import world
from tests.document.made_up import conversations, studies

from karat.analysis import summarize
from karat.document.charts import Chart, charts, study_charts, svg, themed
from karat.document.charts.chart import labels
from karat.records import Metric
from karat.replication import Agreement, Side, StudyTest, score_tests, score_uncertainty

SCHEMA = json.loads(
    (Path(altair.__file__).parent / "vegalite" / "v6" / "schema" / "vega-lite-schema.json").read_text(encoding="utf-8")
)
HOSTILE = [
    "\"]; alert('karat-1'); //",
    "</script><script>alert('karat-2')</script>",
    "datum.mean + 'karat-3'",
    "\x1b[31mkarat-4\x1b[0m \u202eder",
    "{{ karat-5 }}" * 500,
    "javascript:alert('karat-6')",
    "line one\nkarat-7\r\n",
    '{"signal": "karat-8"}',
]


def study(*, more: tuple[StudyTest, ...] = ()) -> Agreement:
    rng = np.random.default_rng(3)
    return score_tests([*world(rng, studies=5, findings=4).run(rng), *more])


def of_study(agreement: Agreement, condition: str = "agent") -> tuple[Chart, ...]:
    sure = score_uncertainty(agreement, rng=np.random.default_rng(1), replicates=60)
    return study_charts(agreement, sure, condition=condition)


@pytest.fixture
def golden_run(tmp_path, journals):
    """Two metrics of one scale would need a script of their own: this is one, under three conditions."""

    def make(conditions=("baseline", "with-docs", "terse"), *, metric=None, name="run"):
        rng = np.random.default_rng(2)
        metric = metric or Metric(name="completeness", low=1, high=5, kind="ordinal")
        scores = {
            condition: [[float(np.clip(rng.integers(1, 5) + at, 1, 5)) for _ in range(2)] for _ in range(12)]
            for at, condition in enumerate(conditions)
        }
        return summarize(journals.table(tmp_path / name, scores, metric=metric))

    return make


@pytest.fixture
def every(golden_run) -> dict[str, Chart]:
    summary = msgspec.structs.replace(golden_run(), parts={"conversation": conversations("own", "golden")})
    number = golden_run(name="number", metric=Metric(name="words", kind="number"))
    people = msgspec.structs.replace(
        golden_run(name="people"), parts={"study": studies(study(), "own", "chance", floor="chance")}
    )
    found = [*charts(summary), *of_study(study()), *charts(number), *charts(people)]
    return {f"{at}-{chart.name}": chart for at, chart in enumerate(found)}


def walk(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield place, value
    if isinstance(value, dict):
        for key, one in value.items():
            yield from walk(one, (*place, key))
    elif isinstance(value, list):
        for one in value:
            yield from walk(one, place)


def test_a_golden_run_has_its_charts(golden_run):
    assert [chart.name for chart in charts(golden_run())] == [
        "means-completeness",
        "differences-completeness",
        "scores-completeness",
        "gaps-completeness",
    ]


def test_a_run_of_one_condition_is_compared_with_nothing(golden_run):
    assert [chart.name for chart in charts(golden_run(("alone",)))] == ["means-completeness", "scores-completeness"]


def test_a_run_without_scores_has_no_chart(tmp_path, journals):
    assert charts(summarize(journals.Script(tmp_path / "run").end())) == ()


def test_a_conversation_run_has_those_of_conversations_first(golden_run):
    summary = msgspec.structs.replace(golden_run(), parts={"conversation": conversations("own")})
    assert [chart.name for chart in charts(summary)][:9] == [
        "accuracy-by-turn", "complexity-ceiling", "ladder-of-matches", "diagnoses", "propagation", "first-wrong-turn",
        "features", "cost-in-tokens", "cost-in-dollars",
    ]  # fmt: skip


def test_titles_state_the_finding_with_n_and_interval(every, golden_run):
    titles = {chart.name: chart.title for chart in every.values()}
    summary = golden_run(name="again")
    best = max((one for one in summary.results), key=lambda one: one.mean.value)
    assert f"{best.mean.value:.2f} [" in titles["means-completeness"]
    assert "over 12 questions" in titles["means-completeness"]
    assert "beats baseline on completeness by" in titles["differences-completeness"]
    assert titles["accuracy-by-turn"].startswith("numerical accuracy of own: 79.0 % [")
    assert "(n 421 turns)" in titles["accuracy-by-turn"]
    assert titles["complexity-ceiling"].endswith("at 3 operations (n 200 turns)")
    assert titles["diagnoses"] == "scale is behind 49.0 % of the 335 failed turns of own (n 240)"
    assert titles["cost-in-tokens"] == "own spends 11,111 tokens for a fully right conversation (n 180 right)"
    assert "PAS" in titles["agreement-agent"] and "over 20 tests of 5 studies" in titles["agreement-agent"]
    assert "ECS" in titles["effects-agent"] and "slope" in titles["effects-agent"]


def test_names_are_files_and_apart(every):
    names = [chart.name for chart in every.values()]
    assert len(set(names)) == len(names)
    assert all(name and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


def test_specs_keep_to_the_published_schema(every):
    validator = jsonschema.Draft7Validator(SCHEMA)
    for name, chart in every.items():
        for dark in (False, True):
            faults = list(validator.iter_errors(themed(chart, dark=dark)))
            assert not faults, (name, jsonschema.exceptions.best_match(faults).message)


@pytest.mark.slow
def test_altair_takes_them(every):
    for chart in every.values():
        assert chart.to_altair(dark=True).to_dict()["description"] == chart.spec["description"]


def test_specs_are_plain_json_and_say_no_nan(every):
    for chart in every.values():
        assert json.loads(json.dumps(chart.spec, allow_nan=False)) == chart.spec


def test_specs_load_nothing_and_hold_no_expression(every):
    forbidden = {"url", "href", "expr", "signal", "calculate", "labelExpr", "test", "selection", "params", "update"}
    for chart in every.values():
        for place, value in walk(chart.spec):
            assert not forbidden & set(place) or "values" in place, place
            if place and place[-1] == "sort" and "values" not in place:  # a list would be compiled into an expression
                assert not isinstance(value, list), place
            if place and place[-1] == "filter":
                assert isinstance(value, dict)


def test_axes_say_what_they_measure(every):
    for name, chart in every.items():
        for place, value in walk(chart.spec):
            measures = isinstance(value, dict) and value.get("type") == "quantitative" and place[-1] in {"x", "y"}
            assert not measures or value["title"], (name, place)


def test_the_table_has_a_cell_for_each_heading(every):
    for name, chart in every.items():
        assert chart.rows, name
        assert {len(row) for row in chart.rows} == {len(chart.columns)}, name
        assert all(isinstance(cell, str) and cell for row in chart.rows for cell in row[:1]), name


def test_the_table_says_what_is_drawn(every):
    chart = next(one for one in every.values() if one.name == "accuracy-by-turn")
    drawn = [row for row in chart.spec["data"]["values"] if row["condition"] == "own"]
    assert [f"{100 * row['accuracy']:.1f} %" for row in drawn] == [
        row[2].partition(" [")[0] for row in chart.rows if row[0] == "own"
    ]


def test_what_costs_nothing_known_is_a_dash_and_no_bar(every):
    chart = next(one for one in every.values() if one.name == "cost-in-tokens")
    assert chart.rows[1][:2] == ("golden", "–")
    whole = [row for row in chart.spec["data"]["values"] if row["group"] == "a fully right conversation"]
    assert [row["condition"] for row in whole] == ["own"]


def test_one_spec_holds_no_colour_and_two_themes(every):
    chart = next(iter(every.values()))
    assert "#" not in json.dumps(chart.spec["title"]) and "config" not in chart.spec
    light, dark = themed(chart), themed(chart, dark=True)
    assert light["config"]["background"] != dark["config"]["background"]
    assert {key: value for key, value in light.items() if key != "config"} == chart.spec


def test_foreign_text_stays_text(golden_run):
    """The compiled charts hold it in data, scales and titles; no expression knows of it."""
    summary = golden_run(tuple(HOSTILE), metric=Metric(name=HOSTILE[2], low=1, high=5, kind="ordinal"))
    other = msgspec.structs.replace(summary, parts={"conversation": conversations(*HOSTILE)})
    side = Side(statistic=6, n1=60, n2=60)
    tests = tuple(
        StudyTest(study=name, finding=name, test=name, kind="ttest_ind", human=side, agent=side) for name in HOSTILE
    )
    people = msgspec.structs.replace(
        summary, parts={"study": studies(study(more=tests), HOSTILE[0], HOSTILE[4], floor=HOSTILE[4])}
    )
    found = [*charts(other), *of_study(study(more=tests), HOSTILE[0]), *charts(people)]
    assert len(found) >= 24
    for chart in found:
        ElementTree.fromstring(svg(chart))  # and no tag of theirs is one
        assert "<script" not in svg(chart)
        compiled = vl_convert.vegalite_to_vega(themed(chart))
        for place, value in walk(compiled):
            if (
                isinstance(value, str)
                and "values" not in place
                and place[-1] in {"signal", "expr", "test", "update", "filter", "calculate"}
            ):
                assert "karat-" not in value, (chart.name, place, value)
        text = json.dumps(chart.spec, ensure_ascii=False)
        assert not {"\x1b", "\u202e"} & set(text)
        assert "\\u001b" not in text
        assert len(chart.spec["title"]["text"]) <= 8
        assert max(map(len, chart.spec["title"]["text"])) <= 120


def test_names_that_look_alike_stay_apart():
    assert labels(["a\x1b[1m", "a", "a\u202e", "b"]) == {"a\x1b[1m": "a", "a": "a (2)", "a\u202e": "a (3)", "b": "b"}


def test_a_pair_shows_both_names_however_long(golden_run):
    chart = charts(golden_run(("a" * 60, "b" * 60, "b" * 59)))[1]
    pairs = [row[1] for row in chart.rows]
    assert len(set(pairs)) == 3
    assert all(pair.startswith("b") and (" − a" in pair or " − b" in pair) for pair in pairs)


def test_two_metrics_of_one_name_get_two_files(golden_run):
    summary = golden_run()
    info = summary.metrics[0]
    twin = msgspec.structs.replace(info, key="Completeness!", low=0.0, high=7.0)
    more = tuple(msgspec.structs.replace(one, metric="Completeness!") for one in summary.results)
    both = msgspec.structs.replace(summary, metrics=(info, twin), results=(*summary.results, *more))
    names = [chart.name for chart in charts(both)]
    assert "means-completeness" in names and "means-completeness-2" in names


def test_metrics_of_one_scale_share_a_chart_and_others_do_not(golden_run):
    summary = golden_run()
    info = summary.metrics[0]
    others = [msgspec.structs.replace(info, key=f"m{at}") for at in range(9)]
    results = tuple(
        msgspec.structs.replace(one, metric=metric.key) for metric in [info, *others] for one in summary.results
    )
    many = msgspec.structs.replace(summary, metrics=(info, *others), results=results)
    assert [chart.name for chart in charts(many)][:3] == [
        "means-completeness-and-7-more",
        "differences-completeness-and-7-more",
        "means-m7-and-1-more",
    ]


def test_many_tests_of_studies_are_several_charts():
    rng = np.random.default_rng(5)
    agreement = score_tests(world(rng, studies=12, findings=4).run(rng))
    names = [chart.name for chart in of_study(agreement)]
    assert names == [
        "agreement-agent-1", "agreement-agent-2", "effects-agent", "effect-differences-agent-1",
        "effect-differences-agent-2",
    ]  # fmt: skip


def test_a_run_over_studies_has_those_of_studies_alone(golden_run):
    part = studies(study(), "own", "chance", floor="chance")
    found = charts(msgspec.structs.replace(golden_run(), parts={"study": part}))
    assert [chart.name for chart in found] == [
        "agreement-own", "effects-own", "effect-differences-own", "agreement-chance", "effects-chance",
        "effect-differences-chance", "participants-own", "participants-chance",
    ]  # fmt: skip
    titles = {chart.name: chart.title for chart in found}
    pas = part.conditions[0].benchmark.pas
    assert f"{pas.value:.3f} [{pas.low:.3f}, {pas.high:.3f}] over 20 tests of 5 studies" in titles["agreement-own"]
    assert "; random answers " in titles["agreement-own"] and "(random answers " in titles["effects-own"]
    assert "; random answers " in titles["agreement-chance"], "the reference stands beside an agent of chance as well"
    assert titles["participants-own"].startswith(
        "own: of 300 participants 290 were asked, 250 answered and 225 could be read (75.0 %); fewest in s"
    )
    assert titles["participants-own"].endswith("high, 20 of 30")


def test_the_floor_is_a_third_mark(golden_run):
    part = studies(study(), "own", "chance", floor="chance")
    chart = charts(msgspec.structs.replace(golden_run(), parts={"study": part}))[0]
    assert chart.columns[:4] == ("finding and test", "π people", "π agent", "π floor")
    dots = chart.spec["layer"][1]["data"]["values"]
    assert [row["side"] for row in dots[:3]] == ["people", "agent", "floor"]


def test_the_line_of_a_run_goes_through_the_centre_too(golden_run):
    part = studies(study(), "own")
    line = part.conditions[0].caricature
    chart = charts(msgspec.structs.replace(golden_run(), parts={"study": part}))[1]
    fit = next(layer for layer in chart.spec["layer"] if layer["mark"].get("style") == "fit")["data"]["values"]
    assert (fit[-1]["agent"] - fit[0]["agent"]) / (fit[-1]["human"] - fit[0]["human"]) == pytest.approx(line.slope)
    assert line.intercept + line.slope * line.centre == pytest.approx(line.centre_agent)


def test_many_arms_are_shown_study_by_study(golden_run):
    rng = np.random.default_rng(5)
    part = studies(score_tests(world(rng, studies=25, findings=2).run(rng)), "own")
    chart = next(
        one
        for one in charts(msgspec.structs.replace(golden_run(), parts={"study": part}))
        if "participants" in one.name
    )
    assert len(chart.rows) == 25


def test_opposite_directions_are_written_beside_the_line():
    opposite = StudyTest(
        study="s9", finding="F1", test="T1", kind="ttest_ind",
        human=Side(statistic=6, n1=60, n2=60), agent=Side(statistic=-6, n1=60, n2=60),
    )  # fmt: skip
    chart = of_study(study(more=(opposite,)))[0]
    assert "1 finding in the opposite direction" in chart.title
    assert [row[-1] for row in chart.rows if row[0] == "s9/F1 T1"] == ["opposite directions"]


def test_the_line_of_caricature_goes_through_its_centre():
    agreement = study()
    chart = of_study(agreement)[1]
    line = next(layer for layer in chart.spec["layer"] if layer["mark"].get("style") == "fit")["data"]["values"]
    slope = (line[-1]["agent"] - line[0]["agent"]) / (line[-1]["human"] - line[0]["human"])
    assert slope == pytest.approx(agreement.caricature.slope)
    middle = agreement.caricature.intercept + slope * agreement.caricature.centre
    assert middle == pytest.approx(agreement.caricature.centre_agent)
    identity = next(layer for layer in chart.spec["layer"] if layer["mark"].get("style") == "reference")
    assert all(row["human"] == row["agent"] for row in identity["data"]["values"])


def test_effects_without_statistics_have_a_profile_and_no_posteriors():
    sides = [(Side(d=k / 5, d_se=0.1), Side(d=k / 4)) for k in range(4)]
    agreement = score_tests([
        StudyTest(study="s", finding=f"F{at}", test="T1", kind="ttest_ind", human=human, agent=agent)
        for at, (human, agent) in enumerate(sides)
    ])  # fmt: skip
    found = of_study(agreement)
    assert [chart.name for chart in found] == ["effects-agent", "effect-differences-agent"]
    assert found[1].rows[1][1] == "+0.05"  # no interval: the agent's error is not known
