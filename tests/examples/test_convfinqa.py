"""The example with conversations: it runs as it stands, its golden data holds, and it shows every diagnosis."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from karat.__main__ import main
from karat_conversations.numeric import execute
from karat_conversations.numeric.diagnosis import LABELS

pytestmark = pytest.mark.needs_kind("conversation")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "convfinqa"
SUSPECT = ("Single_IVO/2004/page_17.pdf-1", 2)
"""The golden answer that contradicts itself on purpose."""


@pytest.fixture(scope="module")
def conversations() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))["dev"]
    return found


def turns(conversation: dict[str, Any]) -> list[tuple[str, str, str, float | str, bool]]:
    dialogue = conversation["dialogue"]
    keys = ("conv_questions", "conv_answers", "turn_program", "executed_answers", "qa_split")
    return list(zip(*(dialogue[key] for key in keys), strict=True))


def test_each_golden_program_comes_to_its_golden_answer(conversations):
    for conversation in conversations:
        for _, _, program, executed, _ in turns(conversation):
            value = execute(program, conversation["doc"]["table"], rounding=5)
            said = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            assert said == executed, (conversation["id"], program)


def test_each_printed_answer_is_the_executed_one_but_for_one(conversations):
    differing = []
    for conversation in conversations:
        for number, (_, printed, _, executed, _) in enumerate(turns(conversation)):
            if isinstance(executed, str):
                same = printed == executed
            else:
                bare = printed.removesuffix("%")
                decimals = len(bare.partition(".")[2])
                same = abs(executed * (100 if bare != printed else 1) - float(bare)) <= 0.51 * 10**-decimals
            if not same:
                differing.append((conversation["id"], number))
    assert differing == [SUSPECT]


def test_the_sample_holds_what_conversations_hold(conversations):
    asked = [turn for conversation in conversations for turn in turns(conversation)]
    programs = " ".join(program for _, _, program, _, _ in asked)
    features = Counter(name for one in conversations for name, has in one["features"].items() if has is True)
    assert len(conversations) >= 30
    assert len(asked) >= 100
    assert all(operation in programs for operation in ("add", "subtract", "multiply", "divide", "greater", "exp"))
    assert all(f"table_{name}" in programs for name in ("max", "min", "sum", "average"))
    assert sum(printed.endswith("%") for _, printed, _, _, _ in asked) > 20
    assert sum(not isinstance(value, str) and value < 0 for _, _, _, value, _ in asked) > 10
    assert {value for _, _, _, value, _ in asked if isinstance(value, str)} == {"yes", "no"}
    assert min(features[name] for name in ("has_type2_question", "has_non_numeric_values", "has_duplicate_columns")) > 0
    for conversation in conversations:
        assert conversation["features"]["num_dialogue_turns"] == len(turns(conversation))
        assert conversation["features"]["has_type2_question"] == any(turn[4] for turn in turns(conversation))


def run(capsys, tmp_path, *arguments) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The summary, and the rows of the scores."""
    code = main([*map(str, arguments), "--results", str(tmp_path), "--json", "-q"])
    told = capsys.readouterr()
    assert code == 0, told.err
    done = json.loads(told.out)
    lines = (Path(done["run"]) / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return done["summary"], [row for row in map(json.loads, lines) if row["event"] == "score"]


def test_the_floor_reads_what_can_be_read_and_computes_nothing(capsys, tmp_path):
    summary, scores = run(capsys, tmp_path, "run", FOLDER / "experiment.yaml")
    assert summary["total"]["ledger"]["scored"] == 33
    by_operations: dict[bool, list[bool]] = {False: [], True: []}
    for score in scores:
        by_operations[score["values"]["golden_operations"] > 0].append(score["values"]["right"])
    reading, computing = (sum(found) / len(found) for found in by_operations.values())
    assert reading > 0.5
    assert computing < 0.05


def test_the_recorded_answers_show_every_diagnosis(capsys, tmp_path):
    answers, dataset = FOLDER / "answers.jsonl", FOLDER / "conversations.json"
    summary, scores = run(
        capsys, tmp_path, "score", answers, "--dataset", dataset, "--kind", "conversation", "--strict"
    )
    met = Counter(score["labels"]["diagnosis"] for score in scores if "diagnosis" in score.get("labels", {}))
    assert set(met) == set(LABELS)
    assert met.total() == 24
    proofs = [
        score["detail"]["evidence"]["proof"]
        for score in scores
        if score.get("labels", {}).get("diagnosis") == "propagated"
    ]
    assert len(proofs) == 3
    (condition,) = summary["conversation"]["conditions"]
    assert condition["verdicts"]["n"] == 127


def test_linting_finds_the_one_golden_answer_that_contradicts_itself(capsys):
    assert main(["check", "--lint", str(FOLDER / "conversations.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["turn"], one["reasons"]) for one in found["doubted"]] == [(*SUSPECT, ["printed_disagrees"])]


def test_the_answers_hold_one_row_for_each_turn(conversations):
    rows = [json.loads(line) for line in (FOLDER / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    declared = [(one["id"], number) for one in conversations for number in range(len(turns(one)))]
    assert [(row["conversation_id"], row["turn"]) for row in rows] == declared
