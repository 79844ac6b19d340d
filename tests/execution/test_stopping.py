"""Stopping when it is decided: what is asked, what is journalled, and what a resumed run makes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.analysis.journals import Script

import karat
from karat.analysis import compare, summarize
from karat.analysis.gate import gate
from karat.analysis.leaderboard import leaderboard
from karat.analysis.model import Stopping
from karat.analysis.stopping import in_order
from karat.analysis.thresholds import parse_threshold
from karat.config import load
from karat.errors import BadExperiment, BadOption, ResumeRefused
from karat.execution import Outcome, RunStatus, Selection
from karat.execution.plan import plan
from karat.execution.stopping import EarlyStop, horizon_of, refuse_another_horizon, stops_when
from karat.journal import Decided, Head, Horizon, RunFolder, verify
from karat.records import Answer, Failure, Metric, Score

Write = Callable[..., Path]
Run = Callable[..., Outcome]

# An answer is a quality from 1 to 5 that depends on question, condition and the number that ends the system prompt.
AGENT = """
import asyncio, hashlib, pathlib, time
from karat.errors import AgentFault
from karat.records import Metric
from karat.scorers import Verdict
CALLS = pathlib.Path(__file__).with_name("calls.txt")
PAUSE, JUDGE, FAILS = 0.0, 0.0, 0
def drawn(text, most):
    return int(hashlib.md5(text.encode()).hexdigest(), 16) % most
async def query(user_query, system_prompt, mcp_servers):
    with CALLS.open("a") as file:
        file.write(system_prompt.split()[0] + " " + user_query + "\\n")
    await asyncio.sleep(PAUSE)
    if FAILS and drawn(user_query + system_prompt, FAILS) == 0:
        raise AgentFault("refused", "no answer")
    spread = 3 if "wide" in system_prompt else 2
    return str(2 + drawn(user_query + system_prompt, spread) + int(system_prompt.split()[-1]))
class Scorer:
    metrics = (Metric(name="quality", low=1, high=5, kind="ordinal"), Metric(name="length"))
    async def score(self, sample, answer):
        await asyncio.sleep(JUDGE)
        return Verdict(values={"quality": float(answer.text), "length": 1.0 + len(sample.id)})
"""


def prompts(**shifts: int | str) -> dict[str, dict[str, str]]:
    return {name: {"system_prompt": f"{name} {shift}"} for name, shift in shifts.items()}


BETTER = prompts(a=0, b=1)
ALIKE = prompts(a="wide 0", b="wide 0")


def stop(**keys: Any) -> dict[str, Any]:
    return {"num_repetitions": 1, "max_concurrent": 2, "stop": {"metric": "quality", **keys}}


def ordered(questions: int, seed: int = 0) -> list[str]:
    return [name for (name,) in in_order(dict.fromkeys(map(str, range(questions))), seed)]


def asked(file: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in file.with_name("calls.txt").read_text().splitlines())


def decided(outcome: Outcome) -> list[tuple[str, str, str, int]]:
    return [(one.a, one.b, one.verdict, one.questions) for one in outcome.run.events_of(Decided)]


@pytest.mark.parametrize(
    ("conditions", "keys", "verdict"),
    [
        (prompts(a=0, b=1), {}, "better"),
        (prompts(a=1, b=0), {}, "worse"),
        (prompts(a=0, b=0), {"margin": 0.9}, "equivalent"),
        (prompts(a="wide 0", b="wide 0"), {"futility": True}, "futile"),
    ],
)
def test_a_run_stops_once_it_is_decided(
    experiment: Write, run: Run, conditions: dict[str, Any], keys: dict[str, Any], verdict: str
) -> None:
    file = experiment(AGENT, questions=100, conditions=conditions, execution=stop(**keys))
    status = RunStatus()
    outcome = run(file, status=status)
    ((a, b, found, questions),) = decided(outcome)
    assert status.planned == status.settled < 200, "the progress counts against what is still asked"
    assert all(one.planned == one.settled for one in status.conditions.values())
    assert (a, b, found, outcome.reason) == ("a", "b", verdict, "done")
    assert 20 <= questions < 100
    answers = len(list(outcome.run.events_of(Answer)))
    assert sum(asked(file).values()) == answers < 2 * (questions + 8), "few questions ahead of the look"
    assert len(list(outcome.run.events_of(Score))) == answers, "what was asked is scored"
    ledger = summarize(outcome.run).total.ledger
    assert (ledger.scored, ledger.decided, ledger.not_run) == (answers, 200 - answers, 0)
    assert verify(outcome.run.path).ok


def test_where_nothing_differs_every_question_is_asked(experiment: Write, run: Run) -> None:
    for name in ("x", "y", "z"):
        file = experiment(AGENT, questions=60, conditions=prompts(**{"a": "wide 0", name: "wide 0"}), execution=stop())
        outcome = run(file)
        assert decided(outcome) == []
        assert len(list(outcome.run.events_of(Answer))) == 120
        summary = summarize(outcome.run)
        assert isinstance(summary.stopping, Stopping)
        assert summary.stopping.comparisons[0].verdict is None
        assert [one.verdict for one in summary.differences if one.metric == "quality"] == ["not decided"]


def test_questions_come_in_an_order_drawn_by_the_seed(experiment: Write, run: Run) -> None:
    found = {}
    for seed in (0, 1):
        file = experiment(AGENT, questions=12, execution={**stop(seed=seed), "max_concurrent": 1})
        file.write_text(file.read_text().replace("system_prompt: A", "system_prompt: a 0").replace(": B", ": b 0"))
        outcome = run(file)
        answers = [(one.sample, one.condition) for one in outcome.run.events_of(Answer)]
        found[seed] = [sample for sample, _ in answers[::2]]
        assert answers == [(sample, name) for sample in found[seed] for name in "ab"]
        assert found[seed] == ordered(12, seed)
        assert [sample.id for sample in outcome.run.samples()] == [str(number) for number in range(12)]
    assert found[0] != found[1]


def test_a_condition_that_is_out_is_not_asked_while_others_are(experiment: Write, run: Run) -> None:
    conditions = {**prompts(a="wide 0"), **prompts(b="wide 1"), **prompts(c="wide 0")}
    file = experiment(AGENT, questions=120, conditions=conditions, execution=stop())
    outcome = run(file)
    first, *_ = outcome.run.events_of(Decided)
    assert (first.a, first.b, first.verdict, first.out) == ("a", "b", "better", ("b",))
    counts = asked(file)
    assert counts["a"] == counts["c"] == 120
    assert first.questions <= counts["b"] < first.questions + 8
    summary = summarize(outcome.run)
    assert summary.accounts["b"].ledger.decided == 120 - counts["b"]
    assert summary.accounts["a"].ledger.decided == 0
    results = {(one.condition, one.metric): one for one in summary.results}
    assert [results[name, "quality"].n_missing for name in "abc"] == [0, 0, 0]
    assert results["b", "quality"].worst.value == results["b", "quality"].mean.value
    assert [(one.lost_a, one.lost_b) for one in summary.differences] == [(0, 0)] * len(summary.differences)
    assert not summary.warnings


def test_comparisons_beside_the_report_say_that_they_do_not_allow_for_the_stop(experiment: Write, run: Run) -> None:
    conditions = {**prompts(a="wide 0"), **prompts(b="wide 1"), **prompts(c="wide 0")}
    outcome = run(experiment(AGENT, questions=60, conditions=conditions, execution=stop()))
    found = compare(outcome.run, outcome.run, condition_a="a", condition_b="b")
    assert [(one.difference.lost_a, one.difference.lost_b) for one in found.pairings] == [(0, 0)] * len(found.pairings)
    assert len(found.warnings) == 1
    assert "ended early, once it was decided" in found.warnings[0]
    board = leaderboard([(summarize(outcome.run), None)])
    assert "do not allow for that" in board.warnings[0]


def test_the_horizon_stands_in_the_journal_before_the_first_answer(experiment: Write, run: Run) -> None:
    file = experiment(AGENT, questions=30, conditions=ALIKE, execution=stop(margin=0.3, seed=7))
    outcome = run(file)
    head, horizon, *_ = outcome.run.events()
    assert isinstance(head, Head)
    assert head.format == outcome.run.info.format == 3
    assert isinstance(horizon, Horizon)
    assert (horizon.questions, horizon.pairs, horizon.repetitions) == (30, (("a", "b"),), 1)
    assert (horizon.metric, horizon.alpha, horizon.margin, horizon.seed) == ("quality", 0.05, 0.3, 7)
    plain = run(experiment(AGENT, questions=3, conditions=ALIKE))
    assert plain.run.info.format == 2
    assert plain.run.info.experiment.get("execution.stop.metric") is None
    assert not isinstance(summarize(plain.run).stopping, Stopping)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "selection", "says"),
    [
        ({"questions": 60}, None, "the number of questions was 30, now 60"),
        ({}, Selection(limit=10), "the number of questions was 30, now 10"),
        ({"execution": {**stop(), "num_repetitions": 2}}, None, "num_repetitions was 1, now 2"),
        ({"execution": stop(alpha=0.1)}, None, "alpha 0.05, now 0.1"),
        ({"execution": stop(margin=0.5)}, None, "margin None, now 0.5"),
        ({"execution": {"num_repetitions": 1}}, None, "`execution.stop` is gone"),
        ({"conditions": {**ALIKE, **prompts(c=0)}}, None, "the comparisons were"),
    ],
)
def test_a_larger_or_another_plan_is_refused_afterwards(
    experiment: Write, run: Run, changed: dict[str, Any], selection: Selection | None, says: str
) -> None:
    plan = {"questions": 30, "conditions": ALIKE, "execution": stop()}
    outcome = run(experiment(AGENT, **plan))
    before = outcome.run.journal.read_bytes()
    with pytest.raises(ResumeRefused, match=r"6\.7 %") as refused:
        run(experiment(AGENT, **{**plan, **changed}), resume=outcome.run.path, selection=selection)
    assert says in str(refused.value)
    assert outcome.run.journal.read_bytes() == before


def test_a_run_without_a_horizon_gets_none_afterwards(experiment: Write, run: Run) -> None:
    outcome = run(experiment(AGENT, questions=5, conditions=ALIKE, execution={"num_repetitions": 1}))
    with pytest.raises(ResumeRefused, match=r"`execution\.stop` is new"):
        run(experiment(AGENT, questions=5, conditions=ALIKE, execution=stop()), resume=outcome.run.path)


def test_a_resume_asks_nothing_that_was_decided(experiment: Write, run: Run) -> None:
    file = experiment(AGENT, questions=100, conditions=BETTER, execution=stop())
    outcome = run(file)
    before, calls = decided(outcome), sum(asked(file).values())
    again = run(file, resume=outcome.run.path)
    assert (again.reason, decided(again)) == ("done", before)
    assert sum(asked(file).values()) == calls
    retried = run(file, resume=outcome.run.path, retry_failed=True)
    assert (sum(asked(file).values()), decided(retried)) == (calls, before)


@pytest.mark.quick(1)
@pytest.mark.parametrize("cut", [0.2, 0.6, 0.999])
def test_a_run_that_lost_its_end_decides_as_the_whole_one(experiment: Write, run: Run, cut: float) -> None:
    """Whatever a kill leaves: any number of whole lines, the last look among them or not."""
    file = experiment(AGENT, questions=100, conditions=BETTER, execution=stop())
    outcome = run(file)
    whole = decided(outcome)
    lines = [line for line in outcome.run.journal.read_bytes().splitlines(keepends=True) if b'"end"' not in line]
    outcome.run.journal.write_bytes(b"".join(lines[: max(2, int(len(lines) * cut))]))
    again = run(file, resume=outcome.run.path)
    assert decided(again) == whole
    answers = [(one.sample, one.condition, one.repetition) for one in again.run.events_of(Answer)]
    assert len(set(answers)) == len(answers)


@pytest.mark.slow
def test_after_kill_9_the_decision_is_the_same_and_nothing_is_asked_twice(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    quick = run(experiment(AGENT, questions=100, conditions=BETTER, execution=stop()))
    (tmp_path / "calls.txt").unlink()
    code = AGENT.replace("PAUSE, JUDGE, FAILS = 0.0, 0.0", "PAUSE, JUDGE, FAILS = 0.02, 0.03")
    file = experiment(code, questions=100, conditions=BETTER, execution=stop())
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(tmp_path / "killed"), "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path)
    give_up = time.monotonic() + 60
    journal = None
    while time.monotonic() < give_up:
        journal = next((tmp_path / "killed").glob("[!.]*/journal.jsonl"), None)
        if journal is not None and journal.read_bytes().count(b'{"event":"score"') >= 30:
            break
        time.sleep(0.005)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert journal is not None
    paid = {(one.sample, one.condition) for one in RunFolder.open(journal.parent).events_of(Answer)}
    calls = len((tmp_path / "calls.txt").read_text().splitlines())
    again = run(file, resume=journal.parent)
    assert decided(again) == decided(quick)
    answers = [(one.sample, one.condition) for one in again.run.events_of(Answer)]
    assert len(answers) == len(set(answers))
    assert paid <= set(answers)
    lost = calls - len(paid)
    assert lost <= 2, "what was in flight"
    assert len((tmp_path / "calls.txt").read_text().splitlines()) == len(answers) + lost


def test_failed_trials_are_left_out_and_do_not_hold_a_look_up(experiment: Write, run: Run) -> None:
    file = experiment(AGENT.replace("FAILS = 0.0, 0.0, 0", "FAILS = 0.0, 0.0, 6"), questions=150, conditions=BETTER,
                      execution=stop())  # fmt: skip
    outcome = run(file)
    ((one),) = outcome.run.events_of(Decided)
    failed = {failure.sample for failure in outcome.run.events_of(Failure)}
    order = ordered(150)[: one.questions]
    assert one.verdict == "better"
    assert one.n == one.questions - len(failed & set(order)) < one.questions
    summary = summarize(outcome.run)
    assert isinstance(summary.stopping, Stopping)
    (look,) = summary.stopping.comparisons
    assert (look.n, look.questions) == (one.n, one.questions)
    ledger = summary.total.ledger
    assert ledger.agent == len(list(outcome.run.events_of(Failure)))
    assert ledger.planned == 300 == ledger.scored + ledger.agent + ledger.decided


def test_scores_that_come_late_hold_the_agent_back(experiment: Write, run: Run) -> None:
    code = AGENT.replace("JUDGE, FAILS = 0.0, 0.0", "JUDGE, FAILS = 0.0, 0.05")
    file = experiment(code, questions=100, conditions=BETTER, execution={**stop(), "max_concurrent": 4})
    outcome = run(file)
    ((one),) = outcome.run.events_of(Decided)
    assert len(list(outcome.run.events_of(Answer))) <= 2 * (one.questions + 6)


def test_repetitions_count_once_all_are_scored(experiment: Write, run: Run) -> None:
    file = experiment(AGENT, questions=60, conditions=BETTER, execution={**stop(), "num_repetitions": 3})
    outcome = run(file)
    ((one),) = outcome.run.events_of(Decided)
    order = ordered(60)[: one.questions]
    done = Counter(answer.sample for answer in outcome.run.events_of(Answer))
    assert {done[name] for name in order} == {6}


def test_offline_scorers_decide_too(experiment: Write, run: Run) -> None:
    code = (
        "def query(user_query, system_prompt, mcp_servers):\n    return 'a' + user_query[1:] * (system_prompt == 'B')\n"
    )
    outcome = run(experiment(code, questions=80, execution={"num_repetitions": 1, "stop": {"metric": "equals"}}))
    assert [one.verdict for one in outcome.run.events_of(Decided)] == ["better"]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"execution": stop(metric="length")}, "'length' has no range: one answer that was not asked yet"),
        ({"execution": stop(metric="qualty")}, "no scorer measures 'qualty'"),
    ],
)
def test_a_metric_that_cannot_decide_is_refused_before_anything_is_asked(
    experiment: Write, run: Run, tmp_path: Path, sections: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadOption, match=says):
        run(experiment(AGENT, conditions=ALIKE, **sections))
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"execution": stop(), "conditions": prompts(a=0)}, "there is one condition, and it takes two"),
        ({"execution": stop(alpha=0.7)}, "must be less than 0.5, got 0.7"),
        ({"execution": stop(margin=0)}, "must be more than 0, got 0"),
        ({"execution": {"stop": {}}}, "is required: a metric with a range"),
        ({"stop": {"metric": "quality"}}, "it belongs under 'execution'"),
    ],
)
def test_the_file_says_what_is_wrong(experiment: Write, sections: dict[str, Any], says: str) -> None:
    with pytest.raises(BadExperiment) as bad:
        load(experiment(AGENT, **sections))
    assert says in str(bad.value)


@pytest.mark.needs_kind("conversation", "study")
@pytest.mark.parametrize(
    ("kind", "says"),
    [("conversation", "rates over their turns"), ("study", "no scores of its own")],
)
def test_conversations_and_studies_are_refused(experiment: Write, tmp_path: Path, kind: str, says: str) -> None:
    (tmp_path / "data.jsonl").write_text("")
    with pytest.raises(BadExperiment) as bad:
        load(experiment(AGENT, dataset={"kind": kind, "path": str(tmp_path / "data.jsonl")}, execution=stop()))
    assert says in str(bad.value)


@pytest.mark.slow
@pytest.mark.needs_package("karat_query")
def test_the_report_shows_the_interval_of_the_look_and_says_that_it_stopped(experiment: Write, run: Run) -> None:
    outcome = run(experiment(AGENT, questions=100, conditions=BETTER, execution=stop()))
    ((one),) = outcome.run.events_of(Decided)
    summary = summarize(outcome.run)
    quality = next(pair for pair in summary.differences if pair.metric == "quality")
    assert (quality.winner, quality.n_pairs, quality.estimate.method) == ("b", one.n, "repeated t")
    assert quality.estimate.value == pytest.approx(one.value)
    turned = next(pair for pair in summarize(outcome.run, baseline="b").differences if pair.metric == "quality")
    assert (turned.a, turned.b, turned.winner) == ("b", "a", "b")
    assert (turned.estimate.value, turned.estimate.low) == (-quality.estimate.value, -quality.estimate.high)
    assert quality.again is None
    counts = karat.query(outcome.run, "SELECT outcome, count(*) FROM trials GROUP BY outcome ORDER BY outcome").rows
    assert dict(counts) == {"scored": summary.total.ledger.scored, "decided": summary.total.ledger.decided}
    checks = gate(summary, [parse_threshold("quality=1.5", "min")]).checks
    assert [check.missing for check in checks] == [0, 0], "what was not needed is not missing"
    for face in ("terminal", "html", "markdown", "json"):
        options = ["--full"] if face == "terminal" else []
        command = [sys.executable, "-m", "karat", "report", str(outcome.run.path), "--to", face, *options]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if face == "json":
            found = json.loads(out)
            assert found["total"]["ledger"]["decided"] == summary.total.ledger.decided > 0
            assert found["stopping"]["comparisons"][0]["verdict"] == "better"
        else:
            assert "not run: decided" in out
            assert "9 to 12 %" in " ".join(out.split())


HORIZON = Horizon(
    questions=30, order="o", seed=0, repetitions=1, pairs=(("a", "b"),), metric="quality", scorer="s", scoring="x",
    alpha=0.05,
)  # fmt: skip


ALL = "nothing is decided early with 20 or fewer"
SHOWN = "on: once quality of the 2 conditions is shown to differ (alpha 0.05)"
WITH_A_MARGIN = (
    "on: once quality of the 3 conditions is shown to differ, or surely differs by less than 0.25 (alpha 0.1)"
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, f"may stop early, from 20 of 30 questions {SHOWN}"),
        (
            {"questions": 21, "pairs": (("a", "b"), ("a", "c")), "alpha": 0.1, "margin": 0.25},
            f"may stop early, from 20 of 21 questions {WITH_A_MARGIN}",
        ),
        ({"clusters": 21}, f"may stop early, from 20 of 21 clusters (30 questions) {SHOWN}"),
        ({"questions": 20}, f"asks all 20 questions: {ALL}"),
        ({"questions": 1}, f"asks all 1 question: {ALL}"),
        ({"clusters": 20}, f"asks all 20 clusters (30 questions): {ALL}"),
    ],
)
def test_a_run_says_when_it_may_stop(changes: dict[str, Any], says: str) -> None:
    assert stops_when(msgspec.structs.replace(HORIZON, **changes)) == says


def test_a_run_that_asks_everything_says_nothing_of_stopping() -> None:
    assert stops_when(None) is None


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (None, HORIZON, ["`execution.stop` is new"]),
        (HORIZON, None, ["`execution.stop` is gone"]),
        (HORIZON, msgspec.structs.replace(HORIZON, order="p"),
         ["the questions were other ones: their order was o, now p"]),
        (HORIZON, msgspec.structs.replace(HORIZON, order="p", questions=40, alpha=0.1),
         ["the number of questions was 30, now 40", "alpha 0.05, now 0.1"]),
        (HORIZON, msgspec.structs.replace(HORIZON, clusters=7, repetitions=2, pairs=(("b", "a"),)),
         ["the number of clusters was None, now 7", "num_repetitions was 1, now 2",
          "the comparisons were (('a', 'b'),), now (('b', 'a'),)"]),
    ],
)  # fmt: skip
def test_what_is_other_in_the_rule_of_a_resumed_run_is_listed(
    tmp_path: Path, before: Horizon | None, now: Horizon | None, changes: list[str]
) -> None:
    run = Script(tmp_path / "run").stop()
    with pytest.raises(ResumeRefused) as refused:
        refuse_another_horizon(run, before, now)
    assert sorted(refused.value.changes) == sorted(changes)
    assert refused.value.path == str(run.path)
    assert refused.value.remedy == (
        "A run that may stop early is planned before its first answer: enlarging it after a look finds a difference "
        "where there is none in 6.7 % of runs instead of 5 %. Undo the change, leave out --limit and --only-…, or "
        "start a new run without --resume."
    )
    refuse_another_horizon(run, before, before)


def test_a_scorer_that_waits_for_all_answers_cannot_end_a_run(experiment: Write) -> None:
    loaded = load(experiment("", agent={"type": "floor"}, execution=stop(metric="m")))
    late: Any = SimpleNamespace(
        late=True, info=SimpleNamespace(name="pairs", metrics=(Metric(name="m", low=0, high=1),))
    )
    with pytest.raises(BadOption) as refused:
        horizon_of(loaded, plan(loaded, loaded.load_dataset()), [late])
    assert str(refused.value) == (
        "execution.stop.metric: 'pairs' compares answers when all of them are in, so it cannot end a run: name another "
        "metric, or leave out `stop`"
    )


def measuring(name: str, *metrics: Metric) -> Any:
    """A scorer in use."""
    return SimpleNamespace(late=False, info=SimpleNamespace(name=name, scoring=f"digest of {name}", metrics=metrics))


def horizon_in(file: Path, *scorers: Any) -> Horizon | None:
    loaded = load(file)
    return horizon_of(loaded, plan(loaded, loaded.load_dataset()), scorers)


def test_the_whole_rule_is_fixed_before_the_first_answer(experiment: Write) -> None:
    rule = {"metric": "two.m", "seed": 7, "alpha": 0.1, "margin": 0.25, "futility": True}
    conditions: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    setup: dict[str, Any] = {"agent": {"type": "floor"}, "conditions": conditions, "questions": 5}
    execution = {"num_repetitions": 3, "stop": rule}
    metric = Metric(name="m", low=0, high=1)
    both = measuring("one", metric), measuring("two", Metric(name="other"), metric)
    horizon = horizon_in(experiment(execution=execution, baseline="b", **setup), *both)
    assert horizon is not None
    assert horizon == Horizon(
        questions=5, clusters=None, order=horizon.order, seed=7, repetitions=3, pairs=(("b", "a"), ("b", "c")),
        metric="m", scorer="two", scoring="digest of two", alpha=0.1, margin=0.25, futility=True,
    )  # fmt: skip


def test_questions_of_clusters_are_counted_by_these(experiment: Write, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    file = experiment(
        agent={"type": "floor"}, dataset={"path": str(path), "cluster": "page"}, execution=stop(metric="m")
    )
    pages = ("x", "y", "x", "z")
    path.write_text("".join(json.dumps({"question": f"q{page}", "answer": "a", "page": page}) + "\n" for page in pages))
    horizon = horizon_in(file, measuring("s", Metric(name="m", low=0, high=1)))
    assert horizon is not None
    assert (horizon.questions, horizon.clusters) == (4, 3)


def test_a_run_without_a_stop_fixes_nothing(experiment: Write) -> None:
    assert horizon_in(experiment(agent={"type": "floor"})) is None


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        ([], "no scorer measures 'm': the experiment names none"),
        (["n"], "no scorer measures 'm' (known: n)"),
        (["length", "width"], "no scorer measures 'm' (known: length, width)"),
    ],
)
def test_a_metric_that_nobody_measures_is_refused_with_those_that_are(
    experiment: Write, metrics: list[str], says: str
) -> None:
    scorers = [measuring(f"of {name}", Metric(name=name, low=0, high=1)) for name in metrics]
    with pytest.raises(BadOption) as refused:
        horizon_in(experiment(agent={"type": "floor"}, execution=stop(metric="m")), *scorers)
    assert str(refused.value) == f"execution.stop.metric: {says}"


@pytest.mark.slow
@pytest.mark.parametrize(("repetitions", "at_a_time", "ahead"), [(1, 2, 3), (2, 1, 2), (3, 7, 4)])
def test_few_questions_start_ahead_of_the_next_look(
    experiment: Write, run: Run, repetitions: int, at_a_time: int, ahead: int
) -> None:
    execution = {**stop(), "num_repetitions": repetitions}
    file = experiment(AGENT, questions=25, conditions=ALIKE, execution=execution)
    outcome = run(file)
    lines = outcome.run.journal.read_bytes().splitlines(keepends=True)
    outcome.run.journal.write_bytes(b"".join(lines[:2]))  # its head and its horizon
    (horizon,) = outcome.run.events_of(Horizon)
    early = EarlyStop(outcome.run, horizon, max_concurrent=at_a_time)
    loaded = load(file)
    trials = [*plan(loaded, loaded.load_dataset())]
    assert not any(early.may_start(trial) for trial in trials), "before the first look"
    assert early.look() == []
    started = {trial.sample.id for trial in trials if early.may_start(trial)}
    assert started == {*ordered(25)[: 20 + ahead]}
    assert (early.out, {early.wants(trial) for trial in trials}) == (frozenset(), {True})


def test_after_a_decision_a_condition_is_not_wanted_any_more(experiment: Write, run: Run) -> None:
    file = experiment(AGENT, questions=60, conditions=BETTER, execution=stop())
    outcome = run(file)
    ((decision),) = outcome.run.events_of(Decided)
    (horizon,) = outcome.run.events_of(Horizon)
    lines = [line for line in outcome.run.journal.read_bytes().splitlines(keepends=True) if b'"decided"' not in line]
    outcome.run.journal.write_bytes(b"".join(lines))
    early = EarlyStop(outcome.run, horizon, max_concurrent=2)
    assert early.look() == [decision]
    assert early.look() == [], "it is told once"
    assert early.out == {"a", "b"}
    loaded = load(file)
    assert {early.wants(trial) for trial in plan(loaded, loaded.load_dataset())} == {False}


@pytest.mark.parametrize(
    ("low", "high", "refused"),
    [(0, 1, False), (None, 1, True), (0, None, True), (1, 1, True), (2, 1, True)],
)
def test_a_metric_without_a_range_cannot_end_a_run(
    experiment: Write, low: float | None, high: float | None, refused: bool
) -> None:
    loaded = load(experiment("", agent={"type": "floor"}, execution=stop(metric="m"), baseline="b"))
    info = SimpleNamespace(name="s", scoring="x", metrics=(SimpleNamespace(name="m", bounds=(low, high)),))
    used: Any = SimpleNamespace(late=False, info=info)
    chosen = plan(loaded, loaded.load_dataset())
    if refused:
        with pytest.raises(BadOption) as bad:
            horizon_of(loaded, chosen, [used])
        assert str(bad.value) == (
            "execution.stop.metric: 'm' has no range: one answer that was not asked yet could outweigh all others, so "
            "nothing can be decided early; leave out `stop`, or announce `low` and `high`"
        )
    else:
        horizon = horizon_of(loaded, chosen, [used])
        assert horizon is not None
        assert (horizon.pairs, horizon.clusters, horizon.questions, horizon.metric) == ((("b", "a"),), None, 3, "m")


@pytest.mark.parametrize(
    ("sections", "selection", "says"),
    [
        ({}, Selection(conditions=("b",)), "needs two conditions to compare, 'b' alone is selected"),
        ({"scorers": [], "execution": stop()}, None, "no scorer measures 'quality': the experiment names none"),
    ],
)
def test_a_run_that_could_not_decide_anything_is_refused(
    experiment: Write, run: Run, sections: dict[str, Any], selection: Selection | None, says: str
) -> None:
    file = experiment(AGENT, **{"questions": 3, "conditions": ALIKE, "execution": stop(), **sections})
    with pytest.raises(BadOption) as refused:
        run(file, selection=selection)
    assert says in str(refused.value)


def test_a_metric_of_two_scorers_is_named_with_its_scorer(experiment: Write, run: Run, tmp_path: Path) -> None:
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    both = [{"type": f"{module}:Scorer", "name": name} for name in ("one", "two")]
    plan = {"questions": 3, "conditions": ALIKE, "scorers": both}
    with pytest.raises(BadOption, match=r"'quality' is measured by 2 scorers: write one\.quality or two\.quality"):
        run(experiment(AGENT, **plan, execution=stop()))
    outcome = run(experiment(AGENT, **plan, execution=stop(metric="two.quality"), baseline="b"))
    _, horizon, *_ = outcome.run.events()
    assert isinstance(horizon, Horizon)
    assert (horizon.scorer, horizon.metric, horizon.pairs) == ("two", "quality", (("b", "a"),))
