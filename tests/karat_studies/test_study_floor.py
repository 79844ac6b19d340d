"""The floor of a run over human studies: random answers of the same participants, recomputed step by step."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.karat_studies.copied_runs import copy_of, put_through, several
from tests.karat_studies.test_study_reducer import run_of

from karat import Experiment, formats
from karat.analysis import Summary, compare, summarize
from karat.analysis.numbers import Estimate
from karat.document.charts import charts
from karat.execution import run_experiment
from karat.exports.html import Html
from karat.exports.json import Json
from karat.exports.terminal import Terminal
from karat.journal import RunFolder
from karat_studies.kinds.study.analysis.floor import (
    BEYOND_SINGLE,
    MOST,
    ONE_ANSWER,
    REPETITIONS,
    floor_repetitions,
    guessers_of,
    mostly_one_an_arm,
    p_of_one,
)
from karat_studies.kinds.study.analysis.model import StudyFloor, StudySummary
from karat_studies.kinds.study.analysis.runs import seed_of
from karat_studies.kinds.study.analysis.verdicts import (
    Pair,
    above_chance,
    closer_to_people,
    narrow_studies,
    study_headline,
    warnings_of,
)
from karat_studies.kinds.study.experiments import to_study_tests
from karat_studies.kinds.study.kept import kept_studies
from karat_studies.kinds.study.samples import random_reply, read_reply, responses_of
from karat_studies.replication import score_tests

NAMES = ("beauty_contest", "representativeness", "side_effects")


def part_of(summary: Summary) -> StudySummary:
    assert summary.study is not None
    return summary.study


def floor_in(summary: Summary) -> StudyFloor:
    found = part_of(summary).floor
    assert found is not None
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("floor")
    studies = folder / "studies"
    studies.mkdir()
    return put_through(folder, studies, several(copy_of(studies, *NAMES)))


@pytest.fixture(scope="module")
def summary(run: RunFolder) -> Summary:
    return summarize(run)


@pytest.fixture(scope="module")
def at_level(run: RunFolder) -> Callable[[float], Summary]:
    """The summary with intervals of another level, made once for each level."""
    return cache(lambda level: summarize(run, level=level))


@pytest.mark.slow
def test_it_is_what_comes_out_when_the_replies_are_written_read_and_scored(run: RunFolder, summary: Summary) -> None:
    """By the text of the replies, as an agent would give them, and one study after the other."""
    agreements = []
    names = [sample.id for sample in run.samples()]
    for number in range(REPETITIONS):
        tests: list[Any] = []
        for study, copy in zip(kept_studies(run), run.kept(), strict=True):
            own = [name for name in names if name.startswith(f"{study.study}/")]
            dice = Random(f"{seed_of(copy, own)}/floor/{number}")
            responses = []
            for sample in run.samples():
                if sample.detail["study"] == study.study:
                    replies = [random_reply(sample, turn, dice) for turn in range(len(sample.turns))]
                    read = [read_reply(sample, turn, text) for turn, text in enumerate(replies)]
                    assert not any(one.kinds for one in read)
                    responses += responses_of(sample, [one.values for one in read])
            tests += to_study_tests(study, responses)
        agreements.append(score_tests(tests))
    found = floor_in(summary)
    assert found.repetitions == REPETITIONS == 5
    assert found.benchmark.pas_each == pytest.approx([one.benchmark.pas for one in agreements])
    assert found.benchmark.ecs_each == pytest.approx([one.benchmark.ecs.value for one in agreements])
    for at, one in enumerate(found.studies):
        assert one.name == agreements[0].studies[at].name
        assert one.pas.value == pytest.approx(np.mean([each.studies[at].pas for each in agreements]))
    for at, domain in enumerate(found.domains):
        assert domain.name == agreements[0].domains[at].name
        assert domain.pas.value == pytest.approx(np.mean([one.domains[at].pas for one in agreements]))
    for at, test in enumerate(found.tests):
        assert test.pas == pytest.approx(np.mean([one.tests[at].pas for one in agreements]))
    each = [one.benchmark.pas for one in agreements]
    low, high = scipy_stats.t.interval(0.95, 4, np.mean(each), scipy_stats.sem(each))
    assert (found.benchmark.pas.low, found.benchmark.pas.high) == pytest.approx((low, high))
    assert found.benchmark.pas_sd == pytest.approx(np.std(each, ddof=1))
    assert found.questions == sum(len(sample.turns) for sample in run.samples())


@pytest.mark.slow
def test_the_same_answers_under_another_id_give_the_same_numbers(run: RunFolder, summary: Summary) -> None:
    """Every number: floors, intervals and differences are drawn by what was asked, not by what the run is called."""
    other = summarize(RunFolder(run.path, msgspec.structs.replace(run.info, run="00000000")))
    assert other.study == summary.study


def test_people_are_above_it_and_the_first_line_says_so(summary: Summary) -> None:
    found = floor_in(summary)
    (more,) = found.differences
    (agent,) = part_of(summary).conditions
    assert agent.benchmark.pas.value is not None
    assert found.benchmark.pas.value is not None
    assert more.pas.value == pytest.approx(agent.benchmark.pas.value - found.benchmark.pas.value)
    assert more.pas.low is not None
    assert more.pas.low > 0
    second = part_of(summary).floor_one_answer
    assert second is not None
    floors = (found.benchmark.pas.value, second.benchmark.pas.value)
    assert summary.headline.endswith(
        "; above random answers (PAS {:.2f}) and one answer an arm (PAS {:.2f})".format(*floors)
    )
    assert not any("random answers" in warning for warning in summary.warnings)


def random_run(folder: Path, dataset: Path, *, repetitions: int) -> RunFolder:
    experiment = Experiment(
        dataset={"kind": "study", "path": str(dataset)},
        agent={"type": "floor"},
        conditions={"chance": {}},
        execution={"num_repetitions": repetitions, "max_concurrent": 50},
    )
    return asyncio.run(run_experiment(experiment, results=folder / "results")).run


def test_an_agent_that_answers_at_random_is_at_the_floor_and_both_are_shown(tmp_path: Path) -> None:
    copy_of(tmp_path, "side_effects")
    found = summarize(random_run(tmp_path, tmp_path / "side_effects", repetitions=8))
    (agent,), floor = part_of(found).conditions, floor_in(found)
    assert agent.floor
    each = [one.pas for one in agent.benchmark.repetitions]
    assert None not in each
    known = [one for one in (*each, *floor.benchmark.pas_each) if one is not None]
    spread = float(np.std(known, ddof=1)) * math.sqrt(1 / 8 + 1 / 5)
    assert agent.benchmark.pas.value is not None
    assert floor.benchmark.pas.value is not None
    assert abs(agent.benchmark.pas.value - floor.benchmark.pas.value) < 4 * spread
    assert "random answers in PAS" not in " ".join(found.warnings), "nobody expects it to be above"


@pytest.mark.slow
def test_nobody_has_to_answer_for_it(tmp_path: Path) -> None:
    """It depends on what is asked of whom, on no reply, and not on the run's id."""
    studies = tmp_path / "studies"
    studies.mkdir()
    copy_of(studies, "side_effects")
    silent = put_through(tmp_path, studies / "side_effects", lambda *_: "")
    found = summarize(silent)
    floor = floor_in(found)
    assert part_of(found).conditions[0].benchmark.pas.value is None
    assert floor.benchmark.pas.value is not None
    (more,) = floor.differences
    assert more.pas.value is None
    assert more.pas.reason == "no test is scored on both sides"
    again = floor_in(summarize(RunFolder(silent.path, silent.info)))
    assert again == floor
    other = RunFolder(silent.path, msgspec.structs.replace(silent.info, run="00000000"))
    assert floor_in(summarize(other)) == floor


@pytest.mark.slow
def test_a_study_with_code_of_its_own_has_none_until_the_code_may_run(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    refused = summarize(run)
    floor = floor_in(refused)
    assert floor.benchmark.pas.value is None
    assert list(floor.without) == [part_of(refused).studies[0].study]
    assert all("--allow-code" in why for why in floor.without.values())
    assert any(one.startswith("no floor beside these numbers: ") and "--allow-code" in one for one in refused.warnings)
    assert not (tmp_path / "study" / "ran.txt").exists()
    allowed = floor_in(summarize(run, allow_code=True))
    assert allowed.benchmark.pas.value is not None
    assert allowed.without == {}


def test_large_runs_have_fewer_repetitions_and_say_so(summary: Summary) -> None:
    assert floor_repetitions(MOST // REPETITIONS) == REPETITIONS
    assert floor_repetitions(MOST // REPETITIONS + 1) == REPETITIONS - 1
    assert floor_repetitions(MOST) == floor_repetitions(50 * MOST) == 1
    short = msgspec.structs.replace(floor_in(summary), repetitions=2, questions=100_000)
    told = list(warnings_of(msgspec.structs.replace(part_of(summary), floor=short)))
    assert "floor: random answers in 2 repetitions instead of 5, for each has 100,000 questions" in told


def test_who_is_not_above_it_is_named(summary: Summary) -> None:
    floor = floor_in(summary)
    low = msgspec.structs.replace(floor.differences[0].pas, value=0.01, low=-0.1, high=0.12)
    level = msgspec.structs.replace(floor.differences[0], pas=low)
    part = msgspec.structs.replace(part_of(summary), floor=msgspec.structs.replace(floor, differences=(level,)))
    assert "agent: not shown to be above random answers in PAS (+0.01 [−0.10, +0.12])" in list(warnings_of(part))
    under = msgspec.structs.replace(level, pas=msgspec.structs.replace(low, value=-0.2, low=-0.3, high=-0.1))
    part = msgspec.structs.replace(part, floor=msgspec.structs.replace(floor, differences=(under,)))
    assert "agent: below random answers in PAS (−0.20 [−0.30, −0.10])" in list(warnings_of(part))


def estimates(tree: Any, place: str = "") -> dict[str, dict[str, Any]]:
    if isinstance(tree, dict):
        below = {key: one for name, value in tree.items() for key, one in estimates(value, f"{place}.{name}").items()}
        return {place: tree, **below} if {"low", "high", "level", "method"} <= tree.keys() else below
    if isinstance(tree, list | tuple):
        return {key: one for at, value in enumerate(tree) for key, one in estimates(value, f"{place}.{at}").items()}
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_every_interval_has_the_level_that_was_asked_for(
    at_level: Callable[[float], Summary], summary: Summary, level: float
) -> None:
    other = at_level(level)
    asked, usual = (estimates(msgspec.to_builtins(part_of(one))) for one in (other, summary))
    assert asked.keys() == usual.keys()
    assert part_of(other).level == level
    several = 0
    for key, one in asked.items():
        wide, narrow = (one, usual[key]) if level > 0.95 else (usual[key], one)
        assert (one["level"], usual[key]["level"]) == (level, 0.95)
        assert (one["value"], one["se"], one["n"]) == tuple(usual[key][name] for name in ("value", "se", "n"))
        if one["low"] is not None:
            assert wide["low"] <= narrow["low"] <= narrow["high"] <= wide["high"], key
            several += wide["high"] - wide["low"] > narrow["high"] - narrow["low"]
    assert several > 10
    assert at_level(0.95).study == summary.study
    assert not any("level" in one for one in (*summary.warnings, *other.warnings))


@pytest.mark.quick(1)
@pytest.mark.parametrize(("level", "shown"), [(0.9, "90 %"), (0.99, "99 %")])
def test_whatever_says_a_level_says_this_one(
    run: RunFolder, at_level: Callable[[float], Summary], level: float, shown: str
) -> None:
    found = at_level(level)
    texts = [
        Terminal().render(found, run)["report.txt"],
        "".join(Html(Html.Options(charts=False)).render(found, run).values()),
    ]
    texts += [text for chart in charts(found) for text in (chart.title, chart.description, *chart.columns)]
    for text in texts:
        assert "95 %" not in text
    assert sum(f"{shown} interval" in text for text in texts) > 4


@pytest.fixture(scope="module")
def constant(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Everybody in an arm gives one and the same arbitrary answer, as a model may at temperature 0."""
    folder = tmp_path_factory.mktemp("constant")
    copy_of(folder, "framing")
    [guess] = guessers_of(-3, repetitions=0, one_answer=1)
    return summarize(put_through(folder, folder / "framing", several(guess)))


@pytest.mark.slow
def test_one_arbitrary_answer_an_arm_is_not_called_above_chance(constant: Summary) -> None:
    part = part_of(constant)
    (agent,) = part.conditions
    more = floor_in(constant).of("agent")
    assert more is not None
    assert more.pas.low is not None
    assert more.pas.low > 0, "the mean of random answers alone would call it so"
    assert not above_chance(agent, part)
    assert "; above" not in constant.headline
    arms = len(agent.studies[0].arms)
    assert constant.headline.endswith(f"; answers do not vary in {arms} of {arms} arms")
    assert any(f"answers do not vary in {arms} of {arms} arms" in warning for warning in constant.warnings)


@pytest.mark.slow
def test_constant_answers_have_an_interval(constant: Summary) -> None:
    score = part_of(constant).conditions[0].studies[0].score
    assert score.pas.value is not None and score.pas.low is not None and score.pas.high is not None
    assert score.pas.high - score.pas.low > 0.005
    assert score.pas.low <= score.pas.value <= score.pas.high


def test_a_run_of_one_study_shows_its_scores_with_intervals_first(constant: Summary) -> None:
    """The same as beside the study."""
    part = part_of(constant)
    (agent,) = part.conditions
    (domain,), (study,) = agent.domains, agent.studies
    for one in (agent.benchmark, domain):
        assert (one.pas, one.ecs) == (study.score.pas, study.score.ecs)
    assert agent.benchmark.ecs_ceiling == study.score.ecs_ceiling
    pas, ecs = study.score.pas, study.score.ecs
    for name, found in (("PAS", pas), ("ECS", ecs)):
        assert f"{name} {formats.estimate(found.value, found.low, found.high)}" in constant.headline


def test_constant_answers_to_a_test_have_no_point_interval(constant: Summary) -> None:
    """The study has one, from its tests: other participants would be in other arms."""
    tests = [test for finding in part_of(constant).conditions[0].findings for test in finding.tests]
    assert tests
    for test in tests:
        assert test.pas.value is not None
        assert (test.pas.low, test.pas.high) == (None, None)
        assert test.pas.reason == "all answers within each group are the same"


def test_opposed_findings_are_never_called_above_chance(summary: Summary) -> None:
    part = part_of(summary)
    (agent,) = part.conditions
    assert above_chance(agent, part)
    first, *others = agent.findings
    test = msgspec.structs.replace(first.tests[0], opposed=True)
    opposed = msgspec.structs.replace(first, tests=(test, *first.tests[1:]))
    agent = msgspec.structs.replace(
        agent, studies=tuple(
            msgspec.structs.replace(one, findings=tuple(opposed if each == first else each for each in one.findings))
            for one in agent.studies
        )
    )  # fmt: skip
    assert [one for one in agent.findings if one == opposed]
    assert len(agent.findings) == 1 + len(others)
    part = msgspec.structs.replace(part, conditions=(agent,))
    assert not above_chance(agent, part)
    assert study_headline(part).endswith("; not called above chance: 1 finding opposite to people's")


def test_the_second_floor_is_the_same_tests_of_one_answer_an_arm(run: RunFolder, summary: Summary) -> None:
    found = part_of(summary).floor_one_answer
    assert found is not None
    assert found.repetitions == ONE_ANSWER
    tests: list[Any] = []
    for study, copy in zip(kept_studies(run), run.kept(), strict=True):
        own = [sample for sample in run.samples() if sample.detail["study"] == study.study]
        [guess] = guessers_of(seed_of(copy, [sample.id for sample in own]), repetitions=0, one_answer=1)
        responses, given = [], dict[tuple[Any, ...], Any]()
        for sample in own:
            said = [guess(sample, turn) for turn in range(len(sample.turns))]
            for turn, one in enumerate(said):
                place = (sample.turns[turn].detail["arm"], repr(sample.detail["fields"][turn]))
                assert given.setdefault(place, one) == one, "the same from everybody in the arm"
            responses += responses_of(sample, said)
        tests += to_study_tests(study, responses)
    assert found.benchmark.pas_each[0] == pytest.approx(score_tests(tests).benchmark.pas)
    assert len(set(found.benchmark.pas_each)) > 1


def test_the_ceiling_of_ecs_is_beside_ecs(run: RunFolder, summary: Summary) -> None:
    (agent,) = part_of(summary).conditions
    whole = agent.benchmark
    assert whole.ecs_ceiling is not None
    assert whole.ecs_ceiling == agent.noise_ceiling.value
    assert f"(ceiling: {whole.ecs_ceiling:.2f})" in summary.headline
    table = Terminal(Terminal.Options(width=120)).render(summary, run)["report.txt"]
    main = table.partition("\nAgreement with people\n")[2].partition("\n\n")[0]
    assert "ceiling" in main
    assert f"{whole.ecs_ceiling:.3f}" in main
    page = "".join(Html(Html.Options(charts=False)).render(summary, run).values())
    assert f"{whole.ecs_ceiling:.3f}" in page
    [text] = Json().render(summary, run).values()
    written = msgspec.json.decode(text)["study"]["conditions"][0]
    assert written["benchmark"]["ecs_ceiling"] == pytest.approx(whole.ecs_ceiling)
    assert [one["score"]["ecs_ceiling"] is not None for one in written["studies"]] == [True] * len(NAMES)


def test_studies_whose_floor_and_ceiling_hardly_differ_are_in_no_comparison(tmp_path: Path) -> None:
    """PAS of random answers and of a copy of people: .61 and .67 in trust."""
    answers = copy_of(tmp_path, "trust")
    found = summarize(put_through(tmp_path, tmp_path / "trust", several(answers), conditions=("a", "b")))
    part = part_of(found)
    assert narrow_studies(part) == ["trust"]
    assert any(
        warning.startswith("trust: random answers and a perfect copy of people hardly") for warning in found.warnings
    )
    (between,) = part.differences
    assert between.pas.value is None
    assert between.pas.reason == "no test outside trust is scored under both"
    assert between.ecs.value is not None
    assert "closer to people" not in found.headline
    assert "; this study cannot show whether it is above random answers (" in found.headline
    assert not any("not shown to be above" in text for text in (found.headline, *found.warnings))


def test_two_agents_that_know_nothing_differ_and_neither_is_closer_to_people(tmp_path: Path) -> None:
    """One answer an arm each: the other participants of the arm would give it too, which is not knowledge of people."""
    copy_of(tmp_path, "side_effects")
    agents = guessers_of(11, repetitions=0, one_answer=3)[1:]
    say = [several(agent) for agent in agents]
    names = ("a", "b")
    run = put_through(
        tmp_path, tmp_path / "side_effects", lambda sample, at, name, _: say[names.index(name)](sample, at, name, 0),
        conditions=names,
    )  # fmt: skip
    found = summarize(run)
    assert "b and a differ by " in found.headline
    assert ", but neither is shown to know people; " in found.headline


@pytest.mark.slow
def test_unread_answers_and_selective_reading_are_said_first(tmp_path: Path) -> None:
    answers = several(copy_of(tmp_path, "side_effects"))

    def say(sample: Any, turn: int, condition: str, repetition: int) -> str:
        number = int(sample.id.rpartition("-")[2])
        if condition == "b" and number % 3 == 0:
            return f"Well, it depends on much. {number}"
        refused = condition == "c" and number % 10 == 0
        return "I cannot answer this." if refused else answers(sample, turn, condition, repetition)

    run = put_through(tmp_path, tmp_path / "side_effects", say, conditions=("a", "b", "c"))
    found = summarize(run)
    unread, selective = found.notices
    assert unread.startswith("78 of 240 answers of b could not be read and are left out, such as ")
    assert unread.count('"Well, it depends on much. ') == 3
    assert "one line in the form that the prompt ends with, such as `choice: A`" in unread
    assert selective.startswith("100.0 % of the answers were read in ")
    assert selective.endswith(": a difference between them may be one of what could be read")
    lines = Terminal().render(found, run)["report.txt"].splitlines()
    assert any("could not be read" in line for line in lines[:4])
    warnings = [
        [
            text
            for text in compare(run, run, condition_a="a", condition_b=other).warnings
            if "answers were read in" in text
        ]
        for other in ("b", "c")
    ]
    assert [len(texts) for texts in warnings] == [1, 0]
    assert re.match(r"100\.0 % of the answers were read in a, [67]\d\.\d % in b \(arm side_effects/", warnings[0][0])


def gap(value: float, se: float = 0.02) -> Estimate:
    return Estimate(
        value=value, low=value - 2 * se, high=value + 2 * se, se=se, n=6, level=0.95, method="", reason=None
    )


NARROW_FLOOR = (0.50, 0.52, 0.54)
WIDE_FLOOR = (0.2, 0.5, 0.9)


@pytest.mark.parametrize(
    ("difference", "above", "floor", "verdict"),
    [
        pytest.param(gap(0.3), (False, True), NARROW_FLOOR, "closer", id="the winner knows people"),
        pytest.param(gap(-0.3), (True, False), NARROW_FLOOR, "closer", id="the first is the winner"),
        pytest.param(gap(0.3), (False, False), NARROW_FLOOR, "different", id="neither knows people"),
        pytest.param(gap(0.3), (True, False), NARROW_FLOOR, "different", id="only the one behind knows people"),
        pytest.param(gap(0.3), (True, True), WIDE_FLOOR, "different", id="ignorance differs as much"),
        pytest.param(gap(0.3), (True, True), (0.5,), "different", id="a floor without a spread"),
        pytest.param(gap(0.3), (True, True), (None, 0.5), "different", id="a floor that is not known"),
        pytest.param(gap(0.03), (True, True), NARROW_FLOOR, "not shown", id="other participants might not confirm it"),
    ],
)
def test_a_winner_knows_people_and_is_further_ahead_than_ignorance(
    difference: Estimate, above: tuple[bool, bool], floor: tuple[float | None, ...], verdict: str
) -> None:
    assert closer_to_people([Pair(difference=difference, above=above, floor=floor)]) == [verdict]


@pytest.mark.parametrize("designs", [1, 4])
def test_the_best_of_several_that_know_nothing_is_as_rarely_above_chance_as_one(designs: int) -> None:
    """Shares with the mean and spread of one answer an arm in framing."""
    rng = np.random.default_rng(3)
    draws = rng.beta(1.06, 3.2, size=(6000, ONE_ANSWER + designs)).tolist()
    called = [
        any(p_of_one(value, row[:ONE_ANSWER]) < BEYOND_SINGLE / designs for value in row[ONE_ANSWER:]) for row in draws
    ]
    assert np.mean(called) < 0.07, "0.080 and 0.107 without the arcsine"


def test_where_one_answer_an_arm_has_no_score_most_of_an_arm_give_it(tmp_path: Path) -> None:
    """Without a spread no t test has a score; 18 of 40 arbitrary distributions per arm were called above chance."""
    copy_of(tmp_path, "alcohol_norms")
    [guess] = mostly_one_an_arm(5, repetitions=1)
    found = summarize(put_through(tmp_path, tmp_path / "alcohol_norms", several(guess)))
    second = part_of(found).floor_one_answer
    assert second is not None and second.mostly is not None
    assert (second.benchmark.pas.value, second.mostly.benchmark.pas.value is None) == (None, False)
    assert not above_chance(part_of(found).conditions[0], part_of(found))
