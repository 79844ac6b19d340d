"""`karat check --ask`: each judge scores a right and a wrong answer before anything is paid for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from karat import rubrics
from karat.testing.models import Request, serve

METRICS = [metric.name for metric in rubrics.load("default").metrics]


def levels(score: int) -> dict[str, Any]:
    given: dict[str, Any] = {name: {"reasoning": "why", "score": score} for name in METRICS}
    return {"tool_calls": [{"name": "record_judgement", "arguments": {**given, "unverified_claims": []}}]}


def discerning(request: Request) -> Any:
    """Full marks where the answer is the golden one: then the text is there twice."""
    return levels(5 if json.dumps(request.body).count("Paris is it.") > 1 else 1)


def always_three(_: Request) -> Any:
    return levels(3)


def prose(_: Request) -> Any:
    return {"text": "I would say four, more or less."}


@pytest.fixture
def judged(here):
    def write(address: str, *golden: str) -> str:
        rows = [{"question": f"q{number}", "answer": text} for number, text in enumerate(golden)]
        (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (here / "judged.yaml").write_text(
            "name: judged\ndataset: {path: questions.jsonl}\nconditions: {a: {}}\n"
            "agent: {type: search-baseline}\n"
            f"judge: {{model: openai:judge, base_url: '{address}'}}\n"
        )
        return "judged.yaml"

    return write


@pytest.mark.parametrize("others", [("Rome is it.",), ()])
def test_what_a_judge_gives_to_a_right_and_a_wrong_answer_is_shown(karat, judged, others):
    with serve(discerning) as server:
        done = karat("check", judged(server.openai_url, "Paris is it.", *others), "--ask", "--no-start", "--json")
        assert len(server.requests) == 2
    (judge,) = done.json["asked"]
    assert (set(judge["right"].values()), set(judge["wrong"].values())) == ({5}, {1})
    assert (done.code, done.json["problems"]) == (0, [])
    assert not [text for text in done.json["warnings"] if "same scores" in text]


def test_a_judge_that_gives_both_the_same_scores_is_named_first(karat, judged):
    with serve(always_three) as server:
        done = karat("check", judged(server.openai_url, "Paris is it.", "Rome is it."), "--ask", "--no-start")
    assert "asked        judge: right answer factual_adherence 3, completeness 3" in done.out
    assert "warning: judge gave a right and a wrong answer to " in done.err
    assert "the same scores (factual_adherence 3" in done.err
    assert done.code == 0


def test_a_judge_without_a_usable_output_is_a_fault(karat, judged):
    with serve(prose) as server:
        done = karat("check", judged(server.openai_url, "Paris is it."), "--ask", "--no-start")
    assert done.code == 2
    assert "judge: failed" in done.out
    assert "gave no usable judgement in 3 outputs" in done.err


def test_without_a_judge_there_is_nobody_to_ask(karat, experiment):
    done = karat("check", experiment.name, "--ask", "--no-start")
    assert done.code == 2
    assert "--ask: no scorer of this experiment asks a model" in done.err
