"""The judge in a run, against a scripted model: whatever it says, the agent is asked once and nothing paid is lost."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import karat
from karat import rubrics
from karat.analysis import Summary, summarize
from karat.config import Experiment, Retry
from karat.errors import ResumeRefused
from karat.execution import Limits, Outcome, rescore, run_experiment
from karat.journal import Attempt
from karat.records import Answer, Failure, Reply, Sample, Score, Turn
from karat.scorers import Verdict
from karat.scorers.judge import Judge
from karat.testing.models import ModelServer, Request, serve

METRICS = [metric.name for metric in rubrics.load("default").metrics]
PRICES = {"openai:judge": {"input": 1.0, "output": 1.0}, "openai:other": {"input": 1.0, "output": 1.0}}
CENT = {"input": 10_000, "output": 0}
"""A usage that costs a cent."""


def levels(score: Any, **changes: Any) -> dict[str, Any]:
    given = {name: {"reasoning": f"because of {name}", "score": score} for name in METRICS}
    return {**given, "unverified_claims": ["It is fast."], **changes}


def tool(score: Any, **changes: Any) -> dict[str, Any]:
    calls = [{"name": "record_judgement", "arguments": levels(score, **changes)}]
    return {"tool_calls": calls, "usage": CENT}


def text(words: str) -> dict[str, Any]:
    return {"text": words, "usage": CENT}


@dataclass
class Bench:
    """An agent that counts, and a judge that says what it is told, one thing a request; the last one again."""

    folder: Path
    server: ModelServer
    says: list[Any]
    agent_calls: Counter[str] = field(default_factory=Counter)

    def experiment(
        self, *, questions: int = 1, repetitions: int = 1, prices: Any = PRICES, patience: float = 60, **judge: Any
    ) -> Experiment:
        rows = [{"question": f"q{number}", "answer": f"Use --flag{number}."} for number in range(questions)]
        (self.folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

        def agent(user_query: str, system_prompt: str, mcp_servers: object) -> str:
            self.agent_calls[user_query] += 1
            return f"It is --flag of {user_query}."

        judge = {"model": "openai:judge", "base_url": self.server.openai_url, **judge}
        retry = {"max_attempts": 3, "initial_backoff_seconds": 0.01, "max_backoff_seconds": 0.01}
        return Experiment(
            name="judged", dataset={"path": "questions.jsonl"}, agent={"type": "python", "target": agent},
            judge=judge, conditions={"a": {}}, folder=self.folder, prices=prices,
            execution={
                "num_repetitions": repetitions, "retry": retry, "max_failures": 1000,
                "judge_timeout_seconds": patience, "max_concurrent": 4,
            },
        )  # fmt: skip

    def run(self, **options: Any) -> Outcome:
        return self.carry_out(self.experiment(**options))

    def carry_out(self, experiment: Experiment, **options: Any) -> Outcome:
        return asyncio.run(run_experiment(experiment, results=self.folder / "results", **options))

    def score(self, run: karat.RunFolder, experiment: Experiment) -> Outcome:
        retry = Retry(initial_backoff_seconds=0.01, max_backoff_seconds=0.01)
        limits = Limits(max_concurrent=2, timeout_seconds=60, judge_timeout_seconds=60, retry=retry, max_failures=1000)
        return asyncio.run(rescore(run, experiment.scorers, base=self.folder, limits=limits))

    @property
    def asked(self) -> int:
        """How often the judge was asked."""
        return len(self.server.requests)


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    says: list[Any] = []

    def hook(request: Request) -> Any:
        told = says.pop(0) if len(says) > 1 else says[0]
        return told(request) if callable(told) else told

    with serve(hook) as server:
        yield Bench(tmp_path, server, says)


def scores(outcome: Outcome) -> list[Score]:
    return list(outcome.run.events_of(Score))


def judge_bill(summary: Summary) -> tuple[float, int]:
    cost = summary.total.cost.judge
    return round(cost.known, 6), cost.unknown


BUSY = {"status": 429, "retry_after": 0.01}
GOOD = tool(4)
FENCED = text("```json\n" + json.dumps(levels(4), indent=2) + "\n```")
PROSE = text(f"I read it twice. {json.dumps(levels(4))} That is my judgement.")


@pytest.mark.parametrize(
    ("says", "asked", "cents"),
    [
        pytest.param([GOOD], 1, 1, id="valid"),
        pytest.param([tool(9), GOOD], 2, 2, id="out of range, then valid"),
        pytest.param([text("I would say four."), text("{"), GOOD], 3, 3, id="twice no JSON, then valid"),
        pytest.param([BUSY, GOOD], 2, 1, id="429, then valid"),
        pytest.param([tool(9), BUSY, GOOD], 3, 2, id="out of range, 429, then valid"),
        pytest.param([{"status": 500}, {"status": 529}, GOOD], 3, 1, id="500, 529, then valid"),
        pytest.param([PROSE], 1, 1, id="prose around JSON"),
        pytest.param([FENCED], 1, 1, id="fenced JSON"),
        pytest.param([tool("4")], 1, 1, id="a text that is a number"),
        pytest.param([tool(4.0)], 1, 1, id="a float that is whole"),
        pytest.param([tool(4.5), GOOD], 2, 2, id="half a level, then valid"),
        pytest.param([tool(True), GOOD], 2, 2, id="true, then valid"),
        pytest.param([tool([4]), tool(None), GOOD], 3, 3, id="a list, nothing, then valid"),
        pytest.param([tool(9), tool(9), tool(9), GOOD], 4, 4, id="a whole attempt in vain, then valid"),
        pytest.param([{**GOOD, "stop": "length"}, GOOD], 2, 2, id="cut off, then valid"),
    ],
)
def test_the_answer_is_asked_once_and_scored_in_the_end(bench: Bench, says: list[Any], asked: int, cents: int) -> None:
    bench.says[:] = says
    outcome = bench.run()
    (score,) = scores(outcome)
    assert score.values == dict.fromkeys(METRICS, 4)
    assert score.claims == ("It is fast.",)
    assert score.reasons == {name: f"because of {name}" for name in METRICS}
    assert not score.offline
    assert (bench.agent_calls, bench.asked) == ({"q0": 1}, asked)
    summary = summarize(outcome.run)
    assert judge_bill(summary) == (cents / 100, 0)
    assert summary.total.tokens.input == 10_000 * cents
    assert summary.total.ledger.scored == 1


def test_output_in_json_asks_for_no_tool(bench: Bench) -> None:
    bench.says[:] = [text(json.dumps(levels(2)))]
    (score,) = scores(bench.run(output="json"))
    assert score.values == dict.fromkeys(METRICS, 2)
    (request,) = bench.server.requests
    assert not request.tools
    assert '"factual_adherence"' in request.system


@pytest.mark.parametrize(
    ("says", "cls", "kind", "asked", "bill"),
    [
        pytest.param([tool(9)], "judge", "bad_output", 9, (0.09, 0), id="never valid"),
        pytest.param([{"hang": True}], "judge", "timeout", 1, (0.0, 1), id="hang"),
        pytest.param([tool(9), {"hang": True}], "judge", "timeout", 2, (0.01, 0), id="out of range, then hang"),
        pytest.param([BUSY], "infrastructure", "rate_limit", 3, (0.0, 0), id="429 for ever"),
        pytest.param([{"status": 401}], "infrastructure", "unauthorized", 1, (0.0, 0), id="401"),
        pytest.param([{"malformed": True}], "infrastructure", "bad_response", 3, (0.0, 3), id="no JSON on the wire"),
        pytest.param([{"disconnect": True}], "infrastructure", "network", 3, (0.0, 3), id="the connection breaks"),
    ],
)
def test_a_judge_that_fails_costs_no_second_answer(
    bench: Bench, says: list[Any], cls: str, kind: str, asked: int, bill: tuple[float, int]
) -> None:
    bench.says[:] = says
    experiment = bench.experiment(patience=3 if {"hang": True} in says else 60)
    outcome = bench.carry_out(experiment)
    (failure,) = outcome.run.events_of(Failure)
    assert (failure.stage, failure.cls, failure.kind) == ("score", cls, kind)
    assert (bench.agent_calls, bench.asked) == ({"q0": 1}, asked)
    assert judge_bill(summarize(outcome.run)) == bill
    bench.says[:] = [GOOD]
    again = bench.carry_out(experiment, resume=outcome.run.path)
    assert (len(scores(again)), bench.agent_calls) == (1, {"q0": 1})
    assert summarize(again.run).total.ledger.scored == 1


def test_the_fault_is_named_when_it_is_asked_again(bench: Bench) -> None:
    bench.says[:] = [tool(4, completeness={"score": 7}), GOOD]
    bench.run()
    first, again = (request.question for request in bench.server.requests)
    assert again.startswith(first)
    assert "completeness.score must be from 1 to 5, got 7; completeness.reasoning is missing" in again


def test_a_repeat_that_fails_loses_none_that_was_paid(bench: Bench) -> None:
    bench.says[:] = [tool(4), tool(5), {"status": 400}]
    experiment = bench.experiment(repeats=3, temperature=0.5)
    outcome = bench.carry_out(experiment)
    assert [(one.repeat, one.rows) for one in scores(outcome)] == [(0, 3), (1, 3)]
    first = summarize(outcome.run)
    assert (first.total.ledger.judge, judge_bill(first)) == (1, (0.02, 0)), "no score, but paid for"
    bench.says[:] = [tool(3)]
    again = bench.carry_out(experiment, resume=outcome.run.path)
    assert [one.repeat for one in scores(again)] == [0, 1, 2]
    assert (bench.asked, bench.agent_calls) == (4, {"q0": 1})
    summary = summarize(again.run)
    assert judge_bill(summary) == (0.03, 0)
    assert summary.results[0].mean.value == 4.0
    assert summary.results[0].judge_sd.value == 1.0


def test_each_repeat_has_its_attempts_and_its_time_to_itself(bench: Bench) -> None:
    slow = {**GOOD, "delay": 0.4}
    bench.says[:] = [part for _ in range(4) for part in (BUSY, BUSY, slow)] + [GOOD]
    outcome = bench.run(repeats=4)
    assert [one.repeat for one in scores(outcome)] == [0, 1, 2, 3]
    assert len(list(outcome.run.events_of(Attempt))) == 8


def test_a_seed_is_another_one_for_each_repeat(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    bench.run(repeats=3, seed=7, model="openai-chat:judge")
    assert [request.body["seed"] for request in bench.server.requests] == [7, 8, 9]


def test_parameters_are_sent_as_they_are_pinned(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    bench.run(top_p=0.5, max_tokens=900, model="openai-chat:judge")
    body = bench.server.requests[0].body
    assert (body["temperature"], body["top_p"]) == (0.0, 0.5)
    assert 900 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    bench.run(temperature=None)
    assert "temperature" not in bench.server.requests[-1].body


def by_model(**said: Any) -> Callable[[Request], Any]:
    return lambda request: said[request.model]


def test_a_panel_has_each_judges_scores_their_mean_and_their_agreement(bench: Bench) -> None:
    bench.says[:] = [by_model(judge=tool(5), other=tool(2, completeness={"reasoning": "r", "score": 4}))]
    outcome = bench.run(model=None, judges=["openai:judge", "openai:other"], questions=2, repeats=2)
    assert Counter((one.judge, one.repeat, one.rows) for one in scores(outcome)) == Counter(
        {(judge, repeat, 4): 2 for judge in ("openai:judge", "openai:other") for repeat in (0, 1)}
    )
    summary = summarize(outcome.run)
    assert [result.mean.value for result in summary.results] == [3.5, 4.5, 3.5]
    assert [(one.judge, one.mean) for one in summary.results[1].by_judge] == [("openai:judge", 5), ("openai:other", 4)]
    assert [(pair.metric, pair.exact, pair.within_one, pair.answers) for pair in summary.panel] == [
        ("factual_adherence", 0.0, 0.0, 2),
        ("completeness", 0.0, 1.0, 2),
        ("helpfulness_and_clarity", 0.0, 0.0, 2),
    ]
    shown = karat_report(outcome)
    assert "What each judge gave" in shown
    assert "How far judges agree" in shown
    assert "openai:judge – openai:other" in shown


def karat_report(outcome: Outcome) -> str:
    from karat import plugins

    terminal = plugins.build(plugins.find("exports", "terminal"), {"width": 120, "full": True})
    text: str = terminal.render(summarize(outcome.run), outcome.run)["report.txt"]
    return text


def test_a_panel_that_loses_a_judge_asks_only_that_judge_again(bench: Bench) -> None:
    bench.says[:] = [by_model(judge=GOOD, other={"status": 400})]
    experiment = bench.experiment(model=None, judges=["openai:judge", "openai:other"])
    outcome = bench.carry_out(experiment)
    assert [one.judge for one in scores(outcome)] == ["openai:judge"]
    bench.says[:] = [GOOD]
    bench.carry_out(experiment, resume=outcome.run.path)
    assert Counter(request.model for request in bench.server.requests) == {"judge": 1, "other": 2}


def test_scoring_identical_things_again_costs_nothing(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    outcome = bench.run(questions=3)
    before = bench.asked
    assert before == 3
    named = Experiment(
        dataset={"path": "questions.jsonl"}, agent={"type": "floor"}, conditions={"a": {}}, folder=bench.folder,
        scorers=[{"type": "judge", "name": "twice", "model": "openai:judge", "base_url": bench.server.openai_url,
                  "repeats": 2}],
    )  # fmt: skip
    again = bench.score(outcome.run, named)
    assert bench.asked - before == 3, "the first repeat was there"
    rows = [one for one in scores(again) if one.scorer == "twice"]
    assert Counter((one.repeat, one.dollars, one.detail.get("cached", False)) for one in rows) == {
        (0, 0.0, True): 3, (1, 0.01, False): 3,
    }  # fmt: skip
    assert {name: row.reasons[name] for row in rows for name in row.reasons} == scores(outcome)[0].reasons
    assert judge_bill(summarize(again.run)) == (0.06, 0)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, 0),
        ({"max_asks": 5}, 0),
        ({"api_key_env": "KARAT_TEST_KEY"}, 0),
        ({"top_p": 0.5}, 1),
        ({"temperature": 0.5}, 1),
        ({"output": "json"}, 1),
        ({"model": "openai:other"}, 1),
        ({"rubric": "own.yaml"}, 1),
        ({"rubric": "v1"}, 1),
    ],
)
def test_what_a_judgement_depends_on_is_paid_for_again(
    bench: Bench, change: dict[str, Any], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_TEST_KEY", "a-key-for-tests")
    own = (Path(rubrics.__file__).parent / "default.yaml").read_text(encoding="utf-8")
    (bench.folder / "own.yaml").write_text(own.replace("None of it.", "Nothing."), encoding="utf-8")
    bench.says[:] = [lambda request: GOOD if request.tools else text(json.dumps(levels(4)))]
    outcome = bench.run()
    bench.score(outcome.run, bench.experiment(**change))
    assert bench.asked - 1 == asked
    assert bench.agent_calls == {"q0": 1}


def test_equal_answers_share_a_judgement_only_at_temperature_zero(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    for temperature, asked in ((0.0, 1), (0.5, 2)):
        before = bench.asked
        experiment = bench.experiment(temperature=temperature)
        outcome = bench.carry_out(experiment)
        bench.carry_out(bench.experiment(temperature=temperature, repetitions=2), resume=outcome.run.path)
        assert bench.asked - before == asked


@pytest.mark.parametrize("turns", [(), (Turn(question="q"),), (Turn(question="q", golden=" "),)])
def test_a_sample_without_a_golden_answer_is_not_scored_and_not_paid_for(bench: Bench, turns: tuple[Turn, ...]) -> None:
    async def ask() -> list[Verdict]:
        judge = Judge(Judge.Options(model="openai:judge", base_url=bench.server.openai_url, repeats=2))
        sample = Sample(id="s", position=0, digest="d", turns=turns)
        answer = Answer(trial="t", sample="s", condition="c", repetition=0, replies=(), started="now", seconds=0.1)
        verdicts = [one async for one in judge.score(sample, answer)]
        await judge.aclose()
        return verdicts

    (verdict,) = asyncio.run(ask())
    assert (bench.asked, verdict.values, verdict.dollars, verdict.rows) == (0, dict.fromkeys(METRICS), 0.0, 1)
    assert verdict.reasons["completeness"] == "there is no golden answer"


def test_run_json_and_reports_say_what_the_scores_depend_on(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    outcome = bench.run()
    (info,) = outcome.run.info.scorers
    rubric = rubrics.load("default")
    assert (info.offline, info.rubric, info.rubric_digest) == (False, "default", rubric.digest)
    told = info.provenance
    assert told["judges"] == ["openai:judge"]
    assert told["base_url"] == [bench.server.openai_url]
    assert (told["temperature"], told["seed"], told["top_p"], told["max_tokens"]) == (0.0, None, None, None)
    assert len(told["prompt"]) == 32
    assert "genai-prices" in told["prices"]
    summary = summarize(outcome.run)
    assert summary.provenance.judge == "openai:judge"
    assert summary.provenance.judges["judge"]["prompt"] == told["prompt"]
    shown = karat_report(outcome)
    assert f"rubric default; rubric_digest {rubric.digest}" in (words := " ".join(shown.split()))
    assert "temperature 0.0" in words
    assert f"prompt {told['prompt']}" in words


def test_the_key_that_a_provider_repeats_in_its_refusal_is_masked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-the-judge")
    bench.says[:] = [{"status": 401, "error": "Incorrect API key provided: canary-of-the-judge."}]
    outcome = bench.run()
    assert bench.server.requests[0].headers["authorization"] == "Bearer canary-of-the-judge"
    (failure,) = outcome.run.events_of(Failure)
    assert "provided: ${OPENAI_API_KEY}." in failure.message
    assert not [file for file in outcome.run.path.rglob("*") if file.is_file() and b"canary" in file.read_bytes()]


def test_several_rubrics_at_once(bench: Bench) -> None:
    own = (Path(rubrics.__file__).parent / "default.yaml").read_text(encoding="utf-8")
    (bench.folder / "strict.yaml").write_text(own.replace("Score each metric", "Be strict. Score each metric"))
    bench.says[:] = [lambda request: tool(2 if "Be strict." in request.system else 4)]
    url = bench.server.openai_url
    first = bench.experiment()
    both = Experiment(
        dataset={"path": "questions.jsonl"}, conditions={"a": {}}, folder=bench.folder,
        agent={"type": "python", "target": first.agent.options["target"]}, execution={"num_repetitions": 1},
        judge={"model": "openai:judge", "base_url": url},
        scorers=[{"type": "judge", "name": "strict", "rubric": "strict.yaml", "model": "openai:one", "base_url": url}],
    )  # fmt: skip
    outcome = bench.carry_out(both)
    assert {one.scorer: one.values["completeness"] for one in scores(outcome)} == {"judge": 4, "strict": 2}
    assert {metric.key for metric in summarize(outcome.run).metrics} >= {"judge.completeness", "strict.completeness"}


@pytest.mark.parametrize("answer", ["", " \n", "\u200b", "\x00"], ids=ascii)
def test_an_empty_answer_is_scored_by_the_rubric_without_a_call(bench: Bench, answer: str) -> None:
    verdicts = asyncio.run(said_of(bench, answer, repeats=2))
    assert bench.asked == 0
    assert [verdict.values for verdict in verdicts] == [
        {"factual_adherence": 2, "completeness": 1, "helpfulness_and_clarity": 1}
    ] * 2
    assert {(verdict.repeat, verdict.dollars, verdict.rows) for verdict in verdicts} == {(0, 0.0, 2), (1, 0.0, 2)}
    assert "the answer is empty" in verdicts[0].reasons["factual_adherence"]


def test_a_rubric_that_does_not_say_so_has_empty_answers_judged(bench: Bench) -> None:
    bench.says[:] = [GOOD]
    (verdict,) = asyncio.run(said_of(bench, "", rubric="v1"))
    assert (bench.asked, verdict.values) == (1, dict.fromkeys(METRICS, 4))


async def said_of(bench: Bench, answer: str, **options: Any) -> list[Verdict]:
    judge = Judge(Judge.Options(model="openai:judge", base_url=bench.server.openai_url, **options))
    sample = Sample(id="s", position=0, digest="d", turns=(Turn(question="q", golden="It is five."),))
    reply = Reply(text=answer)
    made = Answer(trial="t", sample="s", condition="c", repetition=0, replies=(reply,), started="now", seconds=0.1)
    try:
        return [verdict async for verdict in judge.score(sample, made)]
    finally:
        await judge.aclose()


def for_one(request: Request) -> Any:
    """Scores the one metric that the tool of this request asks for by its place in the rubric: 1, 2, 3."""
    (offered,) = request.tools
    (metric,) = [name for name in offered.schema["properties"] if name in METRICS]
    given: dict[str, Any] = {metric: {"reasoning": f"because of {metric}", "score": METRICS.index(metric) + 1}}
    given |= {"unverified_claims": ["It is fast."]} if "unverified_claims" in offered.schema["properties"] else {}
    return {"tool_calls": [{"name": "record_judgement", "arguments": given}], "usage": CENT}


def test_one_call_a_metric_asks_for_each_alone(bench: Bench) -> None:
    bench.says[:] = [for_one]
    outcome = bench.run(call_per_metric=True)
    (score,) = scores(outcome)
    assert score.values == {name: place + 1 for place, name in enumerate(METRICS)}
    assert (score.claims, score.detail["asks"], score.dollars) == (("It is fast.",), 3, 0.03)
    assert judge_bill(summarize(outcome.run)) == (0.03, 0)
    for request in bench.server.requests:
        assert sum(f"## {name} (whole number" in request.system for name in METRICS) == 1


def test_one_call_a_metric_pays_for_none_twice_when_a_later_one_fails(bench: Bench) -> None:
    bench.says[:] = [for_one, {"status": 500}, for_one]
    outcome = bench.run(call_per_metric=True)
    (score,) = scores(outcome)
    assert score.values == {name: place + 1 for place, name in enumerate(METRICS)}
    assert bench.asked == 4, "three metrics, and one refusal"
    assert judge_bill(summarize(outcome.run)) == (0.03, 0)


@pytest.mark.needs_kind("conversation")
def test_a_conversation_of_texts_is_judged_turn_by_turn_and_each_turn_paid_once(bench: Bench) -> None:
    """The judge sees each turn's own question, golden answer and reply, after the questions that came before."""
    turns = [("Who built it?", "Wren built it."), ("And when?", "In 1675."), ("And why?", "After the fire.")]
    rows = [
        {"conversation_id": "c", "turn_idx": number, "question": question, "answer": golden}
        for number, (question, golden) in enumerate(turns)
    ]
    (bench.folder / "turns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    replies = {"Who built it?": "Wren did, I think.", "And when?": "", "And why?": "It burned down before."}

    def agent(user_query: str, system_prompt: str, mcp_servers: object) -> str:
        bench.agent_calls[user_query] += 1
        return replies[user_query]

    def judged(request: Request) -> Any:
        return tool(5) if "Wren did, I think." in json.dumps(request.body) else tool(2)

    experiment = Experiment(
        name="texts", dataset={"kind": "conversation", "path": "turns.jsonl"},
        agent={"type": "python", "target": agent}, conditions={"a": {}}, folder=bench.folder, prices=PRICES,
        judge={"model": "openai:judge", "base_url": bench.server.openai_url}, execution={"num_repetitions": 1},
    )  # fmt: skip
    bench.says.append(judged)
    outcome = bench.carry_out(experiment)

    said = [json.dumps(request.body) for request in bench.server.requests]
    assert len(said) == 2, "an empty reply is scored by the rubric, without a call"
    for text_, inside, outside in [
        (said[0], ["Who built it?", "Wren built it.", "Wren did, I think."], ["And when?", "1675", "the fire"]),
        (
            said[1],
            ["in the same conversation:", "Who built it?", "And when?", "After the fire.", "It burned down before."],
            ["1675", "Wren"],
        ),
    ]:
        assert all(part in text_ for part in inside)
        assert not any(part in text_ for part in outside)
    by_turn = {one.turn: one for one in scores(outcome) if one.scorer == "judge"}
    assert {turn: set(one.values.values()) for turn, one in by_turn.items() if turn != 1} == {0: {5}, 2: {2}}
    assert (by_turn[1].detail["empty"], by_turn[1].dollars) == (True, 0.0)
    assert {one.rows for one in by_turn.values()} == {3}
    summary = summarize(outcome.run)
    assert judge_bill(summary) == (0.02, 0)
    name = METRICS[0]
    mean = sum(float(one.values[name] or 0) for one in by_turn.values()) / 3
    assert summary.result("a", name).mean.value == pytest.approx(mean)
    bench.carry_out(experiment, resume=outcome.run.path)
    assert (bench.asked, set(bench.agent_calls.values())) == (2, {1})
    assert summarize(outcome.run).total == summary.total


def test_a_judge_that_gives_nothing_usable_stops_the_run_and_may_be_changed(bench: Bench) -> None:
    bench.says[:] = [text("I would say four, more or less.")]
    outcome = bench.carry_out(bench.experiment(questions=60))
    assert outcome.reason == "max_failures"
    assert len(bench.agent_calls) <= 4, "no more than were in flight"
    assert bench.asked <= 3 * 4 + 3 * 3, "three judgements, and those in flight"
    message = next(
        failure.message for failure in outcome.run.events_of(Failure) if "change the judge" in failure.message
    )
    assert message.count("“I would say four, more or less.”") >= 3
    bench.says[:] = [GOOD]
    after = bench.carry_out(bench.experiment(questions=60, model="openai:other"), resume=outcome.run.path)
    assert after.reason == "done"
    assert set(bench.agent_calls.values()) == {1}, "no paid answer is asked for again"
    summary = summarize(after.run)
    assert summary.total.ledger.scored == 60
    with pytest.raises(ResumeRefused):
        bench.carry_out(bench.experiment(questions=60, model="openai:third"), resume=outcome.run.path)


def test_a_judge_that_does_not_understand_tools_is_asked_by_schema(bench: Bench) -> None:
    asked: list[Any] = []

    def without_tools(request: Request) -> Any:
        asked.append(request.body.get("response_format"))
        if request.body.get("tools"):
            return {"status": 400, "error": "tools param requires --jinja flag"}
        return text(json.dumps(levels(4)))

    bench.says[:] = [without_tools]
    (first, second) = scores(bench.run(questions=2))
    assert first.values == second.values == dict.fromkeys(METRICS, 4)
    assert first.detail["output"] == second.detail["output"] == "schema", "each score says how it was asked for"
    schemas = [given["json_schema"]["schema"] for given in asked if given]
    assert len(schemas) >= 2
    assert all(set(METRICS) <= set(schema["properties"]) for schema in schemas)


def test_output_schema_asks_by_response_format(bench: Bench) -> None:
    asked: list[Any] = []

    def answer(request: Request) -> Any:
        asked.append((request.body.get("tools"), request.body["response_format"]["type"]))
        return text(json.dumps(levels(2)))

    bench.says[:] = [answer]
    (score,) = scores(bench.run(output="schema"))
    assert score.values == dict.fromkeys(METRICS, 2)
    assert asked == [(None, "json_schema")]
