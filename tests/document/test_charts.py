"""Charts: every one says its finding, loads nothing, and takes foreign text for text."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from benchmarks.coverage import world
from tests.document.made_up import conversations, studies

from karat.analysis import Summary, summarize
from karat.analysis.parts import Part
from karat.blocks import Axis, Chart, Curve, Plane, Point, Rows, Table, labels
from karat.charts import charts, svg
from karat.document.render.svg import render_svg
from karat.records import Metric
from karat_studies.kinds.study.charts import study_charts
from karat_studies.replication import Agreement, Side, StudyTest, score_tests, score_uncertainty

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


def of_kind(summary: Summary, kind: str, part: Part) -> Summary:
    """A run of that kind, with the scores of another scorer besides."""
    return msgspec.structs.replace(summary, kind=kind, parts={kind: part})


def of_people(summary: Summary, part: Part) -> list[Chart]:
    return [chart for chart in charts(of_kind(summary, "study", part)) if chart.name not in ("means", "differences")]


def curves(chart: Chart, form: str) -> Iterator[Curve]:
    return (one for panel in chart.panels if isinstance(panel, Plane) for one in panel.curves if one.form == form)


@pytest.fixture
def every(golden_run) -> dict[str, Chart]:
    summary = of_kind(golden_run(), "conversation", conversations("own", "golden"))
    number = golden_run(name="number", metric=Metric(name="words", kind="number"))
    people = of_kind(golden_run(name="people"), "study", studies(study(), "own", "chance", floor="chance"))
    found = [*charts(summary), *of_study(study()), *charts(number), *charts(people)]
    return {f"{at}-{chart.name}": chart for at, chart in enumerate(found)}


def test_a_golden_run_has_its_charts(golden_run):
    assert [chart.name for chart in charts(golden_run())] == [
        "means",
        "differences",
        "scores-completeness",
        "gaps-completeness",
    ]


def test_a_run_of_one_condition_is_compared_with_nothing(golden_run):
    assert [chart.name for chart in charts(golden_run(("alone",)))] == ["means", "scores-completeness"]


def test_a_run_without_scores_has_no_chart(tmp_path, journals):
    assert charts(summarize(journals.Script(tmp_path / "run").end())) == ()


def test_a_conversation_run_has_those_of_conversations(golden_run):
    summary = of_kind(golden_run(), "conversation", conversations("own"))
    names = [chart.name for chart in charts(summary)]
    own = ["accuracy-by-turn", "complexity-ceiling", "ladder-of-matches", "diagnoses", "propagation",
           "first-wrong-turn", "features"]  # fmt: skip
    at = names.index("accuracy-by-turn")
    assert names[at : at + len(own)] == own
    assert names[0] == "accuracy" and names[-1] == "cost-of-right-answers"


def test_titles_state_the_finding_with_n_and_interval(every, golden_run):
    titles = {chart.name: chart.title for chart in reversed(every.values())}
    summary = golden_run(name="again")
    titles |= {chart.name: chart.title for chart in charts(summary)}
    best = max((one for one in summary.results), key=lambda one: one.mean.value)
    assert f"{best.mean.value:.2f} [" in titles["means"]
    assert "over 12 questions" in titles["means"]
    assert "beats baseline on completeness by" in titles["differences"]
    assert titles["accuracy-by-turn"].startswith("numerical accuracy of own: 79.0 % [")
    assert "(n 421 turns)" in titles["accuracy-by-turn"]
    assert titles["complexity-ceiling"].endswith("at 3 operations (n 200 turns)")
    assert titles["diagnoses"] == "scale is behind 49.0 % of the 335 failed turns of own (n 240)"
    assert titles["cost-of-right-answers"] == "own spends 11,111 tokens for a fully right conversation (n 180 right)"
    assert "PAS" in titles["agreement-agent"] and "over 20 tests of 5 studies" in titles["agreement-agent"]
    assert "ECS" in titles["effects-agent"] and "slope" in titles["effects-agent"]


def test_names_are_files_and_apart(every, golden_run):
    part = studies(study(), "Own", "own!", "own?")
    names = [chart.name for chart in of_people(golden_run(), part)]
    assert len(set(names)) == len(names) == 12
    names += [chart.name for chart in every.values()]
    assert all(name and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


def test_the_table_has_a_cell_for_each_heading(every):
    for name, chart in every.items():
        assert chart.rows, name
        assert {len(row) for row in chart.rows} == {len(chart.columns)}, name
        assert all(isinstance(cell, str) and cell for row in chart.rows for cell in row[:1]), name


def test_names_that_look_alike_stay_apart():
    assert labels(["a\x1b[1m", "a", "a\u202e", "b"]) == {"a\x1b[1m": "a", "a": "a (2)", "a\u202e": "a (3)", "b": "b"}


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
    found = of_people(golden_run(), part)
    assert [chart.name for chart in found] == [
        "agreement-own", "effects-own", "effect-differences-own", "participants-own",
        "agreement-chance", "effects-chance", "effect-differences-chance", "participants-chance",
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


def test_many_arms_are_shown_study_by_study(golden_run):
    rng = np.random.default_rng(5)
    part = studies(score_tests(world(rng, studies=25, findings=2).run(rng)), "own")
    chart = next(one for one in of_people(golden_run(), part) if "participants" in one.name)
    assert len(chart.rows) == 25


def test_opposite_directions_are_written_beside_the_line():
    opposite = StudyTest(
        study="s9", finding="F1", test="T1", kind="ttest_ind",
        human=Side(statistic=6, n1=60, n2=60), agent=Side(statistic=-6, n1=60, n2=60),
    )  # fmt: skip
    chart = of_study(study(more=(opposite,)))[0]
    assert "1 finding in the opposite direction" in chart.title
    assert [row[-1] for row in chart.rows if row[0] == "s9/F1 T1"] == ["opposite directions"]


def test_effects_without_statistics_have_a_profile_and_no_posteriors():
    sides = [(Side(d=k / 5, d_se=0.1), Side(d=k / 4)) for k in range(4)]
    agreement = score_tests([
        StudyTest(study="s", finding=f"F{at}", test="T1", kind="ttest_ind", human=human, agent=agent)
        for at, (human, agent) in enumerate(sides)
    ])  # fmt: skip
    found = of_study(agreement)
    assert [chart.name for chart in found] == ["effects-agent", "effect-differences-agent"]
    assert found[1].rows[1][1] == "+0.05"  # no interval: the agent's error is not known


def test_the_table_says_what_is_drawn(every):
    chart = next(one for one in every.values() if one.name == "accuracy-by-turn")
    (first, *_) = curves(chart, "lines")
    assert [f"{100 * point.y:.1f} %" for point in first.points] == [
        row[2].partition(" [")[0] for row in chart.rows if row[0] == "own"
    ]


def test_what_costs_nothing_known_is_a_dash_and_no_bar(every):
    chart = next(one for one in every.values() if one.name == "cost-of-right-answers")
    assert chart.rows[1][0] == "golden" and "–" in chart.rows[1]
    panel = next(panel for panel in chart.panels if panel.title == "tokens for a fully right conversation")
    assert isinstance(panel, Rows)
    assert [(line.name, len(line.marks)) for line in panel.lines] == [("own", 1), ("golden", 0)]


def test_only_what_is_known_is_drawn(every):
    """Marks and points are finite, or a browser would draw nothing at all."""
    for name, chart in every.items():
        numbers: list[float | None] = []
        for panel in chart.panels:
            if isinstance(panel, Rows):
                marks = [mark for line in panel.lines for mark in line.marks]
                numbers += [value for one in marks for value in (one.value, one.low, one.high, one.start)]
            else:
                points = [point for curve in panel.curves for point in curve.points]
                numbers += [value for one in points for value in (one.x, one.y, one.low, one.high, one.left, one.right)]
        assert numbers, name
        assert all(value is None or math.isfinite(value) for value in numbers), name
        assert "nan" not in svg(chart), name


def test_axes_say_what_they_measure(every):
    for name, chart in every.items():
        for panel in chart.panels:
            axes = [panel.axis] if isinstance(panel, Rows) else [panel.x, panel.y]
            assert all(axis.title for axis in axes), name


def test_foreign_text_stays_text(golden_run):
    summary = golden_run(tuple(HOSTILE), metric=Metric(name=HOSTILE[2], low=1, high=5, kind="ordinal"))
    side = Side(statistic=6, n1=60, n2=60)
    tests = tuple(
        StudyTest(study=name, finding=name, test=name, kind="ttest_ind", human=side, agent=side) for name in HOSTILE
    )
    people = studies(study(more=tests), HOSTILE[0], HOSTILE[4], floor=HOSTILE[4])
    found = [
        *charts(summary),
        *charts(of_kind(summary, "conversation", conversations(*HOSTILE))),
        *of_study(study(more=tests), HOSTILE[0]),
        *charts(of_kind(summary, "study", people)),
    ]
    assert len(found) >= 24
    for chart in found:
        drawing = svg(chart)
        tags = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(drawing).iter()}
        assert tags <= {"svg", "title", "desc", "rect", "g", "text", "path"}
        assert not {"\x1b", "\u202e"} & set(drawing)
        names = {name for node in ElementTree.fromstring(drawing).iter() for name in node.attrib}
        assert not any(name.startswith("on") or name.endswith("href") for name in names)


def test_a_pair_shows_both_names_however_long(golden_run):
    chart = charts(golden_run(("a" * 60, "b" * 60, "b" * 59)))[1]
    (panel,) = chart.panels
    assert isinstance(panel, Rows)
    pairs = [line.name for line in panel.lines]
    assert len(set(pairs)) == 3
    assert all(pair.startswith("b") and pair.rstrip(" (2)").endswith(("a", "b")) for pair in pairs)


def test_two_charts_of_one_name_get_two_files(golden_run):
    summary = golden_run()
    info = summary.metrics[0]
    twin = msgspec.structs.replace(info, key="Completeness!", low=0.0, high=7.0)
    more = tuple(msgspec.structs.replace(one, metric="Completeness!", distribution={"0": 1}) for one in summary.results)
    both = msgspec.structs.replace(summary, metrics=(info, twin), results=(*summary.results, *more))
    names = [chart.name for chart in charts(both)]
    assert "scores-completeness" in names and "scores-completeness-2" in names


def test_metrics_with_the_same_steps_share_a_chart(golden_run):
    summary = golden_run()
    info = summary.metrics[0]
    others = [msgspec.structs.replace(info, key=f"m{at}") for at in range(9)]
    results = tuple(
        msgspec.structs.replace(one, metric=metric.key) for metric in [info, *others] for one in summary.results
    )
    many = msgspec.structs.replace(summary, metrics=(info, *others), results=results)
    found = charts(many)
    assert [chart.name for chart in found][:3] == ["means", "differences", "scores-completeness-and-9-more"]
    assert [len(chart.panels) for chart in found[:3:2]] == [10, 10]


def test_the_floor_is_a_third_mark(golden_run):
    part = studies(study(), "own", "chance", floor="chance")
    chart = of_people(golden_run(), part)[0]
    assert chart.columns[:4] == ("finding and test", "π people", "π agent", "π floor")
    assert chart.legend == ("people", "agent", "floor")


@pytest.mark.parametrize("run", [True, False])
def test_the_line_of_caricature_goes_through_its_centre(golden_run, run):
    if run:
        part = studies(study(), "own")
        line, found = part.conditions[0].caricature, of_people(golden_run(), part)
    else:
        agreement = study()
        line, found = agreement.caricature, of_study(agreement)
    (fit,), (identity,) = curves(found[1], "fit"), curves(found[1], "reference")
    first, last = fit.points[0], fit.points[-1]
    assert (last.y - first.y) / (last.x - first.x) == pytest.approx(line.slope)
    assert line.intercept + line.slope * line.centre == pytest.approx(line.centre_agent)
    assert all(point.x == point.y for point in identity.points)


@pytest.mark.parametrize(("whole", "gap"), [(False, 0.0), (True, 0.5)])
def test_an_axis_of_whole_numbers_ends_half_a_step_beyond_them(whole, gap):
    points = tuple(Point(x=x, y=x) for x in (1, 2, 3))
    panel = Plane(x=Axis(title="x", whole=whole), y=Axis(title="y"), curves=(Curve(points=points, form="lines"),))
    table = Table(caption="", columns=(), rows=())
    text = render_svg(Chart(name="c", title="t", description="d", panels=(panel,), table=table))
    left, _, width = map(float, re.findall(r'd="M([\d.]+) ([\d.]+)h([\d.]+)"', text)[0])
    first, middle, last = map(float, re.findall(r'd="M([\d.]+) [\d.]+L([\d.]+) [\d.]+L([\d.]+) [\d.]+"', text)[0])
    step = width / (2 + 2 * gap)
    assert [first, middle, last] == pytest.approx([left + step * (gap + at) for at in range(3)], abs=0.1)
