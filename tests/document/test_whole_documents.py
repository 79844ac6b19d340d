"""Whole documents as one reads them, from values that are made up: each line of them, and what its charts draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs
from tests.analysis import journals
from tests.analysis.labelled import drawn, label
from tests.document.laying_out import layout
from tests.exports.test_reports import story

from karat.analysis import Summary, summarize
from karat.analysis.calibration import calibrated, with_corrected
from karat.analysis.history import History, Point, Series
from karat.analysis.leaderboard import Entry, Leaderboard
from karat.analysis.model import StopLook, Stopping
from karat.analysis.numbers import Estimate
from karat.analysis.planning import Pilot, plan
from karat.blocks import Axis, Chart, Low, Note, Plane
from karat.document.calibrated import calibrated_document
from karat.document.followed import history_document
from karat.document.html_texts import read_texts
from karat.document.planned import plan_document
from karat.document.ranked import leaderboard_document
from karat.document.render.markdown import render_markdown
from karat.document.render.terminal import render_terminal
from karat.document.run import Document, document
from karat.records import Metric, Reply, Turn
from karat.stats.drift import Alarm, ChangePoint


def read(document: Document) -> str:
    """Everything that a terminal shows, what the charts would draw, and how a page would set it."""
    lines = [render_terminal(document, width=100, full=True)]
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Chart):
                lines += drawing(block)
    return "\n".join([*lines, *layout(document)]) + "\n"


def answers(run, summary: Summary, **options: Any) -> Document:
    """The document of a run with what its page quotes."""
    texts, _ = read_texts(run, summary)
    return document(summary, texts=texts, files={"experiment.yaml": "name: support-kb\n"}, **options)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    run = story(tmp_path_factory.mktemp("told") / "run", journals)
    return run, summarize(run)


def test_a_run_with_all_that_its_page_quotes(told, golden):
    golden("documents/run.txt", read(answers(*told)))
    golden("documents/run.md", render_markdown(answers(*told, lowest=1, longest=20)))


def test_a_first_screen_has_the_blocks_of_the_whole_that_it_shows(told):
    _, summary = told
    whole, brief = (render_terminal(document(summary, brief=brief), width=100, full=False) for brief in (False, True))
    assert brief == whole


def test_a_run_whose_verdict_is_that_of_people(tmp_path, golden):
    run, summary, draw = drawn(tmp_path / "run", size=30)
    label(run, draw, "ann", lambda at, judge: judge - (at % 2))
    told = document(with_corrected(run, summary), brief=True)
    golden("documents/run-corrected.txt", read(told))


def test_judges_of_a_panel_stand_beside_each_other(tmp_path, golden):
    tone = Metric(name="tone", low=1, high=5, kind="ordinal")
    scorer = structs.replace(journals.JUDGE, metrics=(journals.SCALE, tone))
    script = journals.Script(tmp_path / "run", samples=4, conditions=("a", "b"), scorers=(scorer,))
    for row in range(4):
        for at, condition in enumerate("ab"):
            script.answer(row, condition)
            for judge in ("x", "y") if (row, condition) != (3, "b") else ("x",):
                values = {"completeness": 2 + at + row % 2, "tone": 4 - (judge == "y")}
                script.score(row, condition, values=values, judge=judge, scorer=scorer, rows=2)
    told = document(summarize(script.end()))
    golden("documents/run-panel.txt", read(only(told, "variation")))


def only(told: Document, section: str) -> Document:
    sections = tuple(one for one in told.sections if one.id == section)
    assert sections
    return structs.replace(told, facts=(), verdicts=(), sections=sections)


def look(b: str, verdict: Any, questions: int, **fields: Any) -> StopLook:
    return StopLook(
        a="a", b=b, verdict=verdict, questions=questions, n=questions, estimate=span(0.5), p=0.01, p_adjusted=0.02,
        **fields,
    )  # fmt: skip


def test_the_decisions_of_a_run_that_may_stop_early_are_said(told):
    _, summary = told
    stopping = Stopping(
        metric="factual_adherence",
        scorer="judge",
        scoring="0f" * 16,
        alpha=0.05,
        margin=0.2,
        futility=True,
        horizon=60,
        comparisons=(
            look("b", "better", 40),
            look("c", "equivalent", 50),
            look("d", "futile", 30),
            look("e", None, 30),
        ),
        out=("b",),
    )

    def said(**fields: Any) -> list[str]:
        told = document(structs.replace(summary, stopping=structs.replace(stopping, **fields)))
        (section,) = only(told, "differences").sections
        return [text for block in section.blocks if isinstance(block, Note) for text in block.texts]

    hold = "Intervals and p-values of these comparisons hold at every look (alpha 0.05)."
    early = f"{hold} An estimate at an early stop is a little too large: by 9 to 12 % on average."
    others = "The other comparisons do not allow for the stop."
    lines = said()
    assert lines[:6] == [
        "b − a: better, decided after 40 of 60 questions.",
        "c − a: equivalent within ±0.2, after 50 of 60 questions.",
        "d − a: given up, because the rest would hardly decide it, after 30 of 60 questions.",
        "e − a: not decided yet, after 30 of 60 questions.",
        early,
        others,
    ]
    at_the_end = (look("b", "worse", 60), look("e", None, 60))
    assert said(comparisons=at_the_end)[:3] == [
        "b − a: worse, decided after 60 of 60 questions.",
        "e − a: not decided at the horizon, after 60 of 60 questions.",
        hold,
    ]
    assert others not in said(out=())
    clustered = said(comparisons=(look("b", "better", 40, clusters=7),), clusters=12)
    assert clustered[0] == "b − a: better, decided after 7 of 12 clusters."
    assert any(line.startswith("A look counts each cluster once") for line in clustered)
    unlike = "The scores that are shown are not those that decided it"
    assert not [line for line in lines if line.startswith(unlike)]
    assert [line for line in said(scoring="1a" * 16) if line.startswith(unlike)]


def test_the_turns_of_a_low_conversation_stand_with_their_golden_and_given_answers(tmp_path):
    turns = (Turn(question="First?", golden="One."), Turn(question="Then?"), Turn(question="Last?", golden="Three."))
    for many in (2, 3):
        asked = structs.replace(journals.sample(0), turns=turns[:many])
        script = journals.Script(tmp_path / str(many), samples=[asked], conditions=("a",))
        script.answer(0, "a", replies=(Reply(text="1"), Reply(text="2")))
        script.score(0, "a", value=1)
        run = script.end()
        (low,) = [block for block in only(answers(run, summarize(run)), "failing").sections[0].blocks
                  if isinstance(block, Low)]  # fmt: skip
        (answer,) = low.answers
        told = [(turn.question, turn.golden, turn.answer) for turn in answer.turns]
        assert told == [("First?", "One.", "1"), ("Then?", None, "2"), ("Last?", "Three.", None)][:many]
        assert answer.answer is None


def test_a_run_of_which_nothing_is_scored_yet_says_so(tmp_path):
    script = journals.Script(tmp_path / "run")
    script.answer(0, "baseline")
    begun = render_terminal(document(summarize(script.stop())), width=100, full=True)
    assert "Nothing was scored yet." in begun
    ended = journals.Script(tmp_path / "ended", samples=1)
    ended.failure(0, "baseline")
    ended.failure(0, "with-docs")
    assert "No answer has a score." in render_terminal(document(summarize(ended.end())), width=100, full=True)


def drawing(chart: Chart) -> Iterator[str]:
    yield f"chart {chart.name}: {chart.title} | {chart.description} | {', '.join(chart.legend)}"
    for panel in chart.panels:
        if not isinstance(panel, Plane):
            for line in panel.lines:
                marks = [f"{mark.start or 0:.4g}…{mark.value:.4g} {mark.series} {mark.label}" for mark in line.marks]
                yield f"{line.name} joined={line.joined} tick={line.tick}: {'; '.join(marks)}"
            continue
        for side, axis in (("x", panel.x), ("y", panel.y)):
            yield f"{side}: {axis_of(axis)}"
        for curve in panel.curves:
            points = " ".join(f"({point.x:.4g}, {point.y:.4g})" for point in curve.points)
            yield f"{curve.form} {curve.series}: {points}"


def axis_of(axis: Axis) -> str:
    return f"{axis.title} start={axis.start} zero={axis.zero} whole={axis.whole} percent={axis.percent}"


ONCE = Pilot(between=0.64, reason="each question was answered once, so repeats are not known", questions=20)
PLANS = {
    "assumed": plan(Pilot(between=0.64, within=(0.2, 0.3)), questions=[20, 40], repetitions=[1, 3]),
    "assumed-for-a-difference": plan(
        Pilot(between=0.64, within=(0.2, 0.2), cost_answer=0.01, cost_score=0.002, seconds=3.0, questions=25,
              repetitions=2),
        delta=0.4, questions=[25, 50], repetitions=[1, 2],
    ),
    "shares": plan(Pilot(between=0.1, within=(0.05, 0.08)), delta=0.1, questions=[30], repetitions=[1]),
    "out-of-reach": plan(Pilot(between=1e18), delta=1e-9, questions=[10]),
    "answered-once": plan(ONCE, questions=[20, 40]),
    "steady": plan(Pilot(between=0.5, questions=12, repetitions=3), delta=0.5, questions=[12]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_plan(name, golden):
    told = plan_document(PLANS[name], title=f"plan: {name}", percent=name == "shares")
    golden(f"documents/plan-{name}.txt", read(told))


def span(value: float | None, reach: float = 0.25) -> Estimate:
    low, high = (None, None) if value is None else (value - reach, value + reach)
    return Estimate(value=value, low=low, high=high, se=None, n=20, level=0.95, method="made up")


def series(condition: str, values: list[float | None], *, change: dict = {}, alarm: dict = {}, **fields) -> Series:  # noqa: B006
    points = tuple(
        Point(run=f"run{at}", created=f"2026-10-{20 - at:02}T08:00:00Z", estimate=span(value))
        for at, value in enumerate(values)
    )
    none = {
        "index": None,
        "before": math.nan,
        "after": math.nan,
        "statistic": math.nan,
        "p": math.nan,
        "n": len(values),
    }
    quiet = {"index": None, "since": None, "upwards": False, "statistic": 0.0, "threshold": 4.0, "n": len(values)}
    return Series(
        condition=condition, metric="completeness", points=points, change=ChangePoint(**{**none, **change}),
        alarm=Alarm(**{**quiet, **alarm}), correlation=None, **fields,
    )  # fmt: skip


CHANGED = {"index": 1, "before": 0.25, "after": 0.75, "p": 0.05}


def test_a_history(golden):
    level: list[float | None] = [3.0, 3.5, None]
    told = History(
        name="nightly", dataset="questions.jsonl", sha256="", runs=3, left_out=1,
        series=(
            series("rising", level, alarm={"index": 2, "since": 1, "upwards": True}, change=CHANGED),
            series("falling", level[::-1], alarm={"index": 2, "since": 0}),
            series("changed", level, change=CHANGED),
            series("hardly changed", level, change={**CHANGED, "p": 0.051}),
            series("short", level[:1], change={"reason": "needs 10 runs to detect a change, got 1"}),
        ),
    )  # fmt: skip
    golden("documents/history.txt", read(history_document(told)))
    shares = History(
        name="nightly", dataset="q.jsonl", sha256="", runs=1, left_out=0,
        series=(series("alone", [0.5, 0.75], percent=True, change=CHANGED),),
    )  # fmt: skip
    golden("documents/history-of-shares.txt", read(history_document(shares)))


def board(groups: str, *, runs: str = "1", **fields) -> Leaderboard:
    """Entries with these groups, words apart; their runs in turn."""
    entries = tuple(
        Entry(run=runs[at % len(runs)] * 8, name="nightly", condition=f"c{at}", mean=span(4.5 - at / 2), groups=mine)
        for at, mine in enumerate(groups.split())
    )
    facts = {"metric": "completeness", "percent": False, "direction": "higher", "level": 0.95, "questions": 60}
    return Leaderboard(**{**facts, "left_out": 0, "tests": 3, "entries": entries, **fields})


BOARDS = {
    "one-is-best": board("a b b"),
    "one-is-like-the-best": board("a ab b", runs="12", left_out=1, warnings=("Few questions.",)),
    "nobody-is-best": board("a ab a", direction="lower", tests=1),
    "many-are-like-the-best": board("a a a a a a a b", percent=True),
    "no-direction": board("a b", direction="none"),
}


@pytest.mark.parametrize("name", BOARDS)
def test_a_leaderboard(name, golden):
    golden(f"documents/leaderboard-{name}.txt", read(leaderboard_document(BOARDS[name])))


def test_a_judge_beside_people(tmp_path, golden):
    run, summary, draw = drawn(tmp_path / "run", size=30)
    label(run, draw, "ann", lambda at, judge: judge - (at % 2))
    label(run, draw, "bob", lambda at, judge: max(1, judge - 1) if at % 5 else None)
    told = calibrated_document(calibrated(run, summary, half_width=0.3), name="support-kb")
    golden("documents/calibrated.txt", read(told))
    run, summary, draw = drawn(tmp_path / "few", size=30)
    label(run, draw, "ann", lambda at, judge: judge + 1 if at < 1 else None)
    golden("documents/calibrated-by-one-label.txt", read(calibrated_document(calibrated(run, summary), name="few")))


def test_a_judge_of_yes_and_no_beside_people(tmp_path, golden):
    right = {"plain": [[at % 3 > 0] for at in range(12)], "docs": [[at % 4 > 0] for at in range(12)]}
    run, summary, draw = drawn(tmp_path / "run", right, size=24, metric=Metric(name="right", kind="share"))
    label(run, draw, "ann", lambda at, judge: 1.0 if at % 7 else judge, metric="right")
    told = calibrated_document(calibrated(run, summary, target="answers"), name="yes and no")
    golden("documents/calibrated-shares.txt", read(told))
