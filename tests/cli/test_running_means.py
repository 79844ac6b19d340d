"""The main metric while scores come: at the end of a run it is what the summary says."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.cli.progress import ProgressReader
from karat.cli.running_means import RunningMeans
from karat.execution import RunStatus
from karat.journal import ScorerInfo
from karat.records import Metric, Sample, Score, Turn

Rows = Callable[..., RunningMeans]


def sample(name: str, *, turns: int = 1, weight: float = 1.0) -> Sample:
    asked = tuple(Turn(question=f"{number}?") for number in range(turns))
    return Sample(id=name, position=0, digest="", turns=asked, weight=weight)


def score(trial: str, value: float | bool | None, **more: Any) -> Score:
    return Score(trial=trial, scorer="s", scoring="d", values={"m": value}, **more)


def following(kind: str = "golden", *metrics: Metric, of_type: str = "x") -> RunningMeans:
    running = RunningMeans()
    info = ScorerInfo(name="s", type=of_type, scoring="d", metrics=metrics or (Metric(name="m"),))
    running.expects(info, kind)
    return running


def add(running: RunningMeans, trial: str, question: Sample, *rows: Score, condition: str = "a") -> None:
    for row in rows:
        running.scored(row)
    running.settled(trial, condition, question, answered=True)


def test_each_question_counts_once_however_often_it_was_answered():
    running = following()
    for number in range(10):
        add(running, f"t{number}", sample("often"), score(f"t{number}", 1.5))
    add(running, "u", sample("once"), score("u", 4.5))
    found = running.estimates()["a"]
    assert (found.value, found.n) == (3.0, 2)


def test_a_trial_of_several_rows_counts_when_it_is_whole():
    running = following()
    panel = [score("t", value, judge=judge, repeat=repeat, rows=3) for value, judge, repeat in
             [(2.0, "a", 0), (4.0, "a", 1), (5.0, "b", 0)]]  # fmt: skip
    add(running, "t", sample("q"), *panel)
    assert running.estimates()["a"].value == 4.0  # mean of judges, each the mean of its repeats
    add(running, "u", sample("r"), *panel[:2])
    assert running.estimates()["a"].n == 1


def test_a_row_that_came_again_counts_once():
    running = following()
    add(running, "t", sample("q"), score("t", 1.0), score("t", 3.0))
    assert running.estimates()["a"].value == 3.0


def test_what_could_not_be_scored_stays_missing():
    running = following()
    add(running, "t", sample("q"), score("t", None))
    running.settled("u", "a", sample("r"), answered=False)
    running.settled("v", "a", sample("r"), answered=True)
    assert {name: one.value for name, one in running.estimates().items()} in ({}, {"a": None})


def test_of_a_scorer_that_measures_otherwise_than_announced_the_first_measured_is_shown():
    running = following("golden", Metric(name="never"), Metric(name="m", kind="share"))
    add(running, "t", sample("q"), score("t", True))
    assert running.metric is not None
    assert (running.metric.name, running.kind) == ("m", "share")


@pytest.mark.needs_kind("study")
def test_a_study_has_no_mean():
    running = following("study")
    add(running, "t", sample("q"), score("t", 1.0))
    assert running.estimates() == {}


def test_another_scoring_is_not_mixed_in():
    running = following()
    add(running, "t", sample("q"), Score(trial="t", scorer="s", scoring="other", values={"m": 9.0}))
    assert running.estimates() == {}


def watched(file: Path, folder: Path, **options: Any) -> tuple[karat.RunFolder, ProgressReader]:
    running = RunningMeans()
    watch = RunStatus(None, running)
    from karat import api

    outcome = asyncio.run(api.carry_out(file, results=folder / "results", status=watch, **options))
    return outcome.run, ProgressReader(watch, running)


def as_told(run: karat.RunFolder) -> dict[str, tuple[float | None, float | None, float | None, int]]:
    """What the summary says of its first metric."""
    summary = karat.summarize(run)
    found = {one.condition: one.mean for one in summary.results if one.metric == summary.metrics[0].key}
    return {name: (one.value, one.low, one.high, one.n) for name, one in found.items()}


def as_followed(reader: ProgressReader) -> dict[str, tuple[float | None, float | None, float | None, int]]:
    now = reader.read(exact=True)
    return {
        name: (one.mean.value, one.mean.low, one.mean.high, one.mean.n)
        for name, one in now.conditions.items()
        if one.mean is not None
    }


def close(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(other[name] == pytest.approx(one[name], rel=1e-9) for name in one)


@pytest.mark.parametrize("judge", ["{type: overlap}", "{type: contains}", "{type: equals}"])
def test_at_the_end_of_a_run_over_questions_it_is_what_the_summary_says(here, judge):
    rows = [{"id": f"q{n}", "question": f"{n}?", "answer": f"It is {n % 4}. It is even."} for n in range(12)]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (here / "agent.py").write_text(
        textwrap.dedent("""
            def query(user_query, system_prompt, mcp_servers, sample, repetition):
                number = int(user_query[:-1])
                if repetition == 1 and number in (2, 5, 6):
                    raise ValueError("no")
                told = ["It is 0. It is even.", "It is 1.", "no", "It is 3. It is even."]
                return told[(number + repetition * (system_prompt == "x")) % 4]
        """),
        encoding="utf-8",
    )
    (here / "experiment.yaml").write_text(
        textwrap.dedent(f"""
            dataset: {{path: questions.jsonl, id_key: id}}
            agent: {{type: python, target: "agent:query"}}
            judge: {judge}
            conditions: {{a: {{}}, b: {{system_prompt: x}}}}
            execution: {{num_repetitions: 3, max_failures: 100, retry: {{max_attempts: 1}}}}
        """),
        encoding="utf-8",
    )
    run, reader = watched(here / "experiment.yaml", here)
    assert as_told(run)
    assert close(as_told(run), as_followed(reader))


CONVERSATIONS = Path(__file__).parents[2] / "examples" / "convfinqa" / "conversations.json"


@pytest.mark.needs_kind("conversation")
def test_at_the_end_of_a_run_over_conversations_it_is_what_the_summary_says(here):
    """Turns that were never reached are wrong, and repetitions of a conversation stay together."""
    (here / "agent.py").write_text(
        textwrap.dedent("""
            def query(user_query, system_prompt, mcp_servers, turn, seed):
                if turn > 1 and seed % 3 == 0:
                    raise ValueError("no")
                return str(seed % 4 + turn) if seed % 2 else "1"
        """),
        encoding="utf-8",
    )
    (here / "experiment.yaml").write_text(
        textwrap.dedent(f"""
            dataset: {{kind: conversation, path: {CONVERSATIONS}}}
            agent: {{type: python, target: "agent:query"}}
            scorers: [numeric]
            conditions: {{a: {{}}, b: {{system_prompt: x}}}}
            execution: {{num_repetitions: 2, max_failures: 100, retry: {{max_attempts: 1}}}}
        """),
        encoding="utf-8",
    )
    run, reader = watched(here / "experiment.yaml", here)
    now = reader.read(exact=True)
    assert now.failed
    assert (now.metric, now.metric_kind, now.unit) == ("numerical", "share", "turn")
    assert close(as_told(run), as_followed(reader))


def test_a_resumed_run_tells_of_its_own_part_and_says_so(here):
    (here / "questions.jsonl").write_text(
        "".join(json.dumps({"question": f"{n}?", "answer": "yes"}) + "\n" for n in range(6)), encoding="utf-8"
    )
    (here / "experiment.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}, b: {}}\n",
        encoding="utf-8",
    )
    from karat.execution import Selection

    run, reader = watched(here / "experiment.yaml", here, selection=Selection(limit=2))
    first = reader.read(exact=True)
    assert (first.planned, first.done, first.continued) == (12, 12, False)
    _, reader = watched(here / "experiment.yaml", here, resume=run)
    now = reader.read(exact=True)
    assert (now.planned, now.done, now.failed, now.continued) == (36, 36, 0, True)
    assert {name: (one.planned, one.done) for name, one in now.conditions.items()} == {"a": (18, 18), "b": (18, 18)}
    assert {one.mean.n for one in now.conditions.values() if one.mean is not None} == {4}


def test_scores_wait_until_their_trial_is_settled_and_flags_are_a_share():
    running = following()
    assert (running.metric, running.kind, running.estimates(), running.noun, running.unit) == (
        *(None, None, {}, "question", "question"),
    )
    running.scored(score("t", True))
    assert running.estimates() == {}
    running.settled("t", "a", sample("q"), answered=True)
    assert (running.kind, running.estimates()["a"].value) == ("share", 1.0)
    add(running, "u", sample("r"), score("u", False))
    assert (running.kind, running.estimates()["a"].value) == ("share", 0.5)
    add(running, "v", sample("s"), score("v", 3.0))
    assert (running.kind, running.estimates()["a"].n) == ("number", 3)


def test_what_is_not_finite_is_no_score():
    running = following()
    add(running, "t", sample("q"), score("t", float("inf")))
    add(running, "u", sample("r"), score("u", 2.0))
    rows = [score("v", value, judge=judge, rows=2) for value, judge in ((float("nan"), "x"), (4.0, "y"))]
    add(running, "v", sample("s"), *rows)
    found = running.estimates()["a"]
    assert (found.value, found.n) == (3.0, 2)


def test_conditions_have_means_of_their_own_over_many_questions():
    running = following()
    for number in range(1_100):
        add(running, f"t{number}", sample(f"q{number}"), score(f"t{number}", number % 2 + 1.0))
    add(running, "u", sample("q1099"), score("u", 5.0), condition="b")
    add(running, "w", sample("new"), score("w", 1.0), condition="b")
    found = running.estimates()
    assert {name: (one.value, one.n) for name, one in found.items()} == {"a": (1.5, 1_100), "b": (3.0, 2)}


@pytest.mark.needs_kind("conversation")
def test_turns_count_by_their_weight_and_turns_never_reached_as_wrong():
    running = following("conversation", Metric(name="m", low=0, high=1, kind="share"))
    assert running.unit == "turn"
    for trial, value in (("t", 1.0), ("u", 0.0)):
        rows = [score(trial, value, turn=turn, rows=2) for turn in range(2)]
        add(running, trial, sample(trial, turns=2, weight=3.0 if value else 1.0), *rows)
    found = running.estimates()["a"]
    assert (found.value, found.n) == (0.75, 2)
