"""Criteria of a sample: by rules, by a scripted judge, and what becomes of both."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karat import plugins
from karat.cli.checking import check
from karat.config import Experiment, Retry
from karat.errors import BadDataset, BadOption
from karat.execution import Limits, Outcome, Selection, rescore, run_experiment
from karat.records import Answer, Criterion, Reply, Sample, Score, ToolCall, Turn
from karat.scorers import ScorerSetting, Verdict
from karat.scorers.criteria import Criteria
from karat.testing.models import ModelServer, Request, serve

PRICES = {"openai:judge": {"input": 1.0, "output": 1.0}, "openai:other": {"input": 1.0, "output": 1.0}}


def scored(*criteria: Criterion, text: str = "", scorer: Criteria | None = None, **answer: Any) -> Verdict:
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), criteria=criteria)
    calls = answer.pop("calls", ())
    replies = (Reply(text=text, tool_calls=calls, dollars=answer.pop("dollars", None)),)
    given = Answer(trial="t", sample="1", condition="c", repetition=0, replies=replies, **answer)
    used = scorer or Criteria()

    async def judged() -> list[Verdict]:
        try:
            return [verdict async for verdict in used.score(sample, given)]
        finally:
            await used.aclose()

    (verdict,) = asyncio.run(judged())
    return verdict


@pytest.mark.parametrize(
    ("kind", "text", "answer", "met"),
    [
        ("contains", "30 days", "It is  30\ndays.", True),
        ("contains", "30 Days", "It is 30 days.", False),
        ("icontains", "30 DAYS", "It is 30 days.", True),
        ("contains-any", "a\nb c", "x b  c", True),
        ("contains-any", "a\nb", "A B", False),
        ("icontains-any", "a\nb", "A B", True),
        ("contains-all", "a\nb", "b a", True),
        ("contains-all", "a\nb", "a", False),
        ("icontains-all", "A\nB", "b a", True),
        ("starts-with", "Yes", " Yes, it is", True),
        ("starts-with", "it", "Yes, it is", False),
        ("equals", "yes sir", "yes  sir ", True),
        ("equals", '{"a": [1]}', '{ "a":[1] }', True),
        ("equals", '{"a": [1]}', '{"a": [2]}', False),
        ("equals", "yes", "yes, sir", False),
        ("regex", r"\b\d{3}\b", "room 101", True),
        ("regex", r"^\d+$", "room 101", False),
        ("is-json", "", "[1, 2]", True),
        ("is-json", "", "```json\n{}\n```", True),
        ("is-json", "", "no", False),
        ("is-json", '{"required": ["a"]}', '{"a": 1}', True),
        ("is-json", '{"required": ["a"]}', "{}", False),
        ("contains-json", "", 'Here: {"a": 1}.', True),
        ("contains-json", '{"required": ["b"]}', 'Here: {"a": 1}, {"b": 2}.', True),
        ("contains-json", "", "Here: {a}.", False),
        ("url", "https://www.a.example/b/", "See [b](http://a.example/b#top).", True),
        ("url", "https://a.example/b", "See https://a.example/bc.", False),
        ("url", "https://a.example/b", "See https://docs.a.example/b.", False),
        ("url", "a.example/b", "See <a.example/b>, please", True),
        ("url", "https://a.example/wiki/B_(c)", "(https://a.example/wiki/B_(c))", True),
        ("url", "https://a.example/b?x=1", "https://a.example/b?x=2", False),
    ],
)
def test_a_rule_decides_and_its_opposite_holds_otherwise(kind: str, text: str, answer: str, met: bool) -> None:
    share = scored(Criterion(text=text, type=kind), text=answer).values
    opposite = scored(Criterion(text=text, type=f"not-{kind}"), text=answer).values
    assert share == {"criteria": float(met), "criteria.all": met}
    assert opposite == {"criteria": float(not met), "criteria.all": not met}


@pytest.mark.parametrize(
    ("criterion", "answer", "met", "reason"),
    [
        (Criterion(text="docs.search", type="tool"), {"calls": (ToolCall(tool="search", server="docs"),)}, True, ""),
        (Criterion(text="read", type="tool"), {"calls": (ToolCall(tool="ls"),)}, False, "called: ls"),
        (Criterion(text="read", type="tool"), {}, False, "no tool was called"),
        (Criterion(text="read\nls", type="tool"), {"calls": (ToolCall(tool="ls"),)}, True, ""),
        (Criterion(text="*", type="not-tool"), {"calls": (ToolCall(tool="ls"),)}, False, ""),
        (Criterion(text="*", type="not-tool"), {}, True, "no tool was called"),
        (Criterion(text="2", type="max-seconds"), {"seconds": 1.5}, True, "1.5 seconds"),
        (Criterion(text="2", type="max-seconds"), {}, None, "the seconds of the answer are not known"),
        (Criterion(text="0.5", type="max-dollars"), {"dollars": 0.75}, False, "0.75 dollars"),
        (Criterion(text="(a+)+$", type="regex"), {"text": "a" * 60 + "b"}, None, "no result within 1 seconds"),
        (Criterion(text="x", type="later"), {"text": "x"}, None, "this karat does not know the type 'later'"),
        (Criterion(text="Is polite."), {"text": "x"}, None, "no judge decides it: set `model`"),
    ],
)
def test_an_outcome_has_its_reason(criterion: Criterion, answer: dict[str, Any], met: bool | None, reason: str) -> None:
    verdict = scored(criterion, **answer)
    (shown,) = verdict.detail["criteria"]
    assert (verdict.values["criteria.all"], shown["met"]) == (met, met)
    assert shown.get("reason", "").startswith(reason)


YES, NO = ({"text": text, "type": "contains"} for text in ("yes", "no"))


@pytest.mark.parametrize(
    ("criteria", "share", "every"),
    [
        ([YES, NO], 0.5, False),
        ([YES | {"weight": 3.0}, NO], 0.75, False),
        ([YES, NO | {"weight": 0.0}], 1.0, True),
        ([YES, NO | {"dealbreaker": True}], 0.0, False),
        ([YES | {"dealbreaker": True}, NO], 0.5, False),
        ([YES, {"text": "unknown"}], None, None),
        ([YES, {"text": "unknown", "weight": 0.0}], 1.0, True),
        ([{"text": "unknown"}, NO | {"dealbreaker": True}], 0.0, False),
        ([NO, {"text": "unknown"}], None, None),
        ([YES | {"weight": 4.0}, YES | {"weight": -1.0}], 0.75, False),
        ([YES | {"weight": 4.0}, NO | {"weight": -1.0}], 1.0, True),
        ([YES, YES | {"weight": -9.0}], 0.0, False),
        ([YES | {"weight": -1.0}, NO | {"weight": -3.0}], 0.75, False),
        ([YES | {"weight": -1.0, "dealbreaker": True}, YES], 0.0, False),
        ([], None, None),
    ],
)
def test_the_share_is_weighted_and_missing_where_a_verdict_is(
    criteria: list[dict[str, Any]], share: float | None, every: bool | None
) -> None:
    values = scored(*[Criterion(**one) for one in criteria], text="yes").values
    assert values == {"criteria": share, "criteria.all": every}


def test_a_scorer_has_its_own_name() -> None:
    scorer = plugins.build(Criteria, {}, setting=ScorerSetting(folder=Path(), name="facts"))
    verdict = scored(Criterion(text="a", type="contains", weight=2.0), text="b", scorer=scorer)
    assert [metric.name for metric in scorer.metrics] == ["facts", "facts.all"]
    assert verdict.reasons == {"facts": "[not met, weight 2] contains: a"}


def decide(request: Request) -> list[tuple[str, int]]:
    """What a word-matching judge says of each criterion: its number's metric and level."""
    blocks = re.findall(r"=== (\w+) BEGIN ([A-Z' ]+) ===\n(.*?)\n=== \1 END \2 ===", request.question, re.DOTALL)
    named = {name: text for _, name, text in blocks}
    assert list(named) == ["QUESTION", "GOLDEN ANSWER", "CRITERIA", "AGENT'S ANSWER"]
    found = []
    for line in named["CRITERIA"].splitlines():
        number, _, text = line.partition(". ")
        level = 2 if text == "unclear" else int(text in named["AGENT'S ANSWER"])
        found.append((f"criterion_{number}", level))
    return found


class Bench:
    """An agent that says "tea and cake", and a judge that looks for words."""

    server: ModelServer

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = 0
        self.seen: list[Any] = []
        self.decide: Callable[[Request], list[tuple[str, int]]] = decide

    def reply(self, request: Request) -> dict[str, Any]:
        self.asked += 1
        given = {name: {"reasoning": f"{name} is {level}", "score": level} for name, level in self.decide(request)}
        tool = {"name": "record_judgement", "arguments": given}
        return {"tool_calls": [tool], "usage": {"input": 1000, "output": 0}}

    def experiment(self, rows: list[dict[str, Any]], judge: dict[str, Any] | None = None, **extra: Any) -> Experiment:
        (self.folder / "q.jsonl").write_text("".join(json.dumps({"question": "q", **row}) + "\n" for row in rows))

        def agent(user_query: str, sample: Any) -> str:
            self.seen.append((sample.criteria, sample.metadata))
            return "tea and cake"

        retry = {"max_attempts": 2, "initial_backoff_seconds": 0.01, "max_backoff_seconds": 0.01}
        judge = {"model": "openai:judge"} if judge is None else judge
        return Experiment(
            name="c", dataset={"path": "q.jsonl", "repeated": False}, agent={"type": "python", "target": agent},
            judge={"type": "criteria", "base_url": self.server.openai_url, **judge}, prices=PRICES,
            conditions={"only": {"system_prompt": "x"}}, folder=self.folder,
            execution={"num_repetitions": 1, "max_failures": 1000, "retry": retry, **extra},
        )  # fmt: skip

    def run(self, *rows: dict[str, Any], **judge: Any) -> Outcome:
        experiment = self.experiment([*rows], **({"judge": judge} if judge else {}))
        return asyncio.run(run_experiment(experiment, results=self.folder / "results"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    with serve(made.reply) as made.server:
        yield made


def scores(outcome: Outcome) -> list[Score]:
    """The scores of a run by question, judge and repeat: they may arrive in any order."""
    events = list(outcome.run.events())
    question = {event.trial: event.sample for event in events if isinstance(event, Answer)}
    found = [event for event in events if isinstance(event, Score)]
    return sorted(found, key=lambda score: (question[score.trial], score.judge or "", score.repeat))


@pytest.mark.slow
def test_one_call_decides_what_no_rule_decides(bench: Bench) -> None:
    criteria = ["tea", {"text": "and", "type": "contains"}, {"text": "milk", "type": "not-judge"}, "coffee"]
    (score,) = scores(bench.run({"criteria": criteria}))
    assert bench.asked == 1
    assert score.values == {"judge": 0.75, "judge.all": False}
    assert (score.dollars, score.offline, score.detail["asks"]) == (0.001, False, 1)
    assert [(one["text"], one["met"], one.get("reason")) for one in score.detail["criteria"]] == [
        ("tea", True, "criterion_1 is 1"),
        ("and", True, None),
        ("milk", True, "criterion_2 is 0"),
        ("coffee", False, "criterion_3 is 0"),
    ]
    assert score.reasons["judge"].splitlines()[1:] == [
        "[met] contains: and",
        "[met] not-judge: milk – criterion_2 is 0",
        "[not met] coffee – criterion_3 is 0",
    ]
    assert bench.seen == [((), {})], "agents see no criteria"


def test_an_unclear_verdict_leaves_the_answer_without_a_score(bench: Bench) -> None:
    (score,) = scores(bench.run({"criteria": ["tea", "unclear"]}))
    assert score.values == {"judge": None, "judge.all": None}
    assert [one["met"] for one in score.detail["criteria"]] == [True, None]


def test_a_panel_and_its_repeats_have_a_row_each(bench: Bench) -> None:
    outcome = bench.run({"criteria": ["tea"]}, judges=["openai:judge", "openai:other"], repeats=2)
    rows = [(score.judge, score.repeat, score.rows, score.values["judge"]) for score in scores(outcome)]
    assert rows == [(judge, repeat, 4, 1.0) for judge in ("openai:judge", "openai:other") for repeat in (0, 1)]


def test_a_judgement_of_the_run_is_not_paid_for_again(bench: Bench) -> None:
    outcome = bench.run({"criteria": ["tea", {"text": "milk", "type": "not-judge"}, "unclear"]})
    again = bench.experiment([], judge={"model": "openai:judge", "repeats": 2})
    limits = Limits(max_concurrent=2, timeout_seconds=9, judge_timeout_seconds=9, retry=Retry(), max_failures=1000)
    asyncio.run(rescore(outcome.run, again.scorers, base=bench.folder, limits=limits))
    first, second, third = scores(outcome)
    assert bench.asked == 2, "the first repeat is taken from before"
    assert [first.detail["criteria"]] * 2 == [second.detail["criteria"], third.detail["criteria"]]
    assert [score.dollars for score in (first, second, third)] == [0.001, 0.0, 0.001]


def test_rules_alone_need_no_judge_and_a_row_without_criteria_is_not_scored(bench: Bench) -> None:
    outcome = bench.run({"must_mention": "TEA"}, {"answer": "g", "question": "r"}, base_url=None)
    assert bench.asked == 0
    assert [(score.values["judge"], score.offline) for score in scores(outcome)] == [(1.0, True), (None, True)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"criteria": "Is polite."}], "judge: criteria of 1 question \\(0\\) need a judge: write `judge:"),
        ([{"answer": "g"}], "judge: no question of the dataset states criteria; name their column"),
    ],
)
def test_samples_that_cannot_be_scored_are_refused_before_a_run(
    bench: Bench, rows: list[dict[str, Any]], message: str
) -> None:
    experiment = bench.experiment(rows, judge={"base_url": None})
    with pytest.raises(BadOption, match=message):
        check(experiment, selection=Selection(), results=bench.folder, start=None)
    with pytest.raises(BadOption, match=message):
        asyncio.run(run_experiment(experiment, results=bench.folder / "results"))
    assert bench.seen == []


def test_other_scorers_still_need_golden_answers(bench: Bench) -> None:
    experiment = bench.experiment([{"criteria": "Is polite."}], judge={"type": "judge", "model": "openai:judge"})
    with pytest.raises(
        BadDataset, match=r"no column is the golden answer.*; to score its criteria \('criteria'\), write `judge: {type"
    ):
        experiment.load_dataset()
    both = bench.experiment([{"criteria": "a", "answer": "g"}], judge={"type": "judge", "model": "openai:judge"})
    assert "'criteria' is taken as criteria, which no scorer scores: name `criteria`" in (both.load_dataset().warnings)
