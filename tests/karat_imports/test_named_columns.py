"""Tables whose columns the user names: several of a condition, scores of systems by a pattern, lists of scores; and
scores and rows that count for nothing, or only once.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.karat_imports.held_tables import run

from karat.cli import cli
from karat.documents.sentences import says_not_judged

PLACES = ["quay", "mill", "ford", "wood", "barn", "lake"]


def text(about: object, number: int = 0) -> str:
    return f"What people say of the {about} is that it opens {number} hours after dawn"


CROSSED = [
    {"ort": place, "blick": view, "laune": mood, "wert": (at * 7) % 9}
    for at, (place, view, mood) in enumerate(product(PLACES, ["ich", "sie"], ["+", "0", "-"]))
]
SYSTEMS = [
    {
        **{f"{name}_resume": text(place, at) for at, name in enumerate(["uno", "due", "tre"])},
        **{f"{name}_{field}": at / 10 for at, (name, field) in enumerate(product(["uno", "due", "tre"], ["k1", "kL"]))},
    }
    | {"uno_k1": number / 10, "due_kL": number / 7, "tre_k1": number / 9, "uno_kL": number / 8}
    | {"due_k1": number / 11, "tre_kL": number / 13}
    for number, place in enumerate(PLACES)
]
PARTS = [
    {"id": place, "parts": [{"f1": number / 10, "chrf": number}, {"f1": 0.5, "chrf": 3}]}
    for number, place in enumerate(PLACES)
]


def test_conditions_of_several_columns_are_put_together(tmp_path: Path) -> None:
    reading = "--map id=ort --map condition=blick --map condition=laune --map score.wert=wert"
    _, printed = run(tmp_path, CROSSED, *reading.split(), "--set", "higher_is_better=[wert]")
    assert "6 samples × 6 conditions" in printed
    assert "ich · +" in printed


def test_a_score_of_several_parts_is_their_mean(tmp_path: Path) -> None:
    run(tmp_path, PARTS, "--map", "id=id", "--map", "score.f1=parts.f1")
    journal = next((tmp_path / "runs").rglob("journal.jsonl")).read_text()
    assert '"values":{"f1":0.25}' in journal  # of 0 and 0.5


def test_scores_of_systems_are_named_by_a_pattern(tmp_path: Path) -> None:
    _, printed = run(tmp_path, SYSTEMS, "--map", "score.k1=*_k1", "--set", "higher_is_better=[k1]")
    assert "conditions: uno, due, tre" in printed
    assert "score.k1 of each: uno_k1, due_k1, tre_k1" in printed


def test_zeros_beside_a_judge_that_failed_are_no_scores(tmp_path: Path) -> None:
    table = [
        {"id": place, "answer": text(place), "score": at % 2, "reasoning": "Fine." if at % 2 else "Parse error"}
        for at, place in enumerate(PLACES)
    ]
    _, printed = run(tmp_path, table)
    assert "6 answers, 3 scores" in printed
    assert "'score' is 0 where judging failed: no score" in printed


def test_a_zero_beside_other_words_is_a_score(tmp_path: Path) -> None:
    table = [
        {"id": place, "answer": text(place), "score": 0, "reasoning": "Evaluation failed to mention it"}
        for place in PLACES
    ]
    assert "6 answers, 6 scores" in run(tmp_path, table)[1]


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ("Could not parse judge output.", True),
        ("Error during evaluation: 429", True),
        ("JSON decode error", True),
        ("LLM judge failed", True),
        ("Failed to extract the answer", False),
        ("API error handling is wrong", False),
        ("The answer failed to parse", False),
    ],
)
def test_what_says_that_judging_failed(said: str, failed: bool) -> None:
    assert says_not_judged(said) is failed


def test_the_names_of_models_are_no_answers(tmp_path: Path) -> None:
    table = [
        {"model_label": model.title(), "model_id": model, "task_id": place, "answer": text(place, at)}
        for (at, model), place in product(enumerate(["ab:1", "cd:2"]), PLACES)
    ]
    _, printed = run(tmp_path, table)
    assert "golden=answer" not in printed
    assert "answer=model_label" not in printed


def test_rows_that_are_mostly_the_same_are_asked_about(tmp_path: Path) -> None:
    row = {"question": "Which came first?", "reference": "The first one came first.", "answer": "yes"}
    table = [row] * 8
    code, printed = run(tmp_path, table)
    assert code == 1
    assert "7 of 8 rows are identical to an earlier one" in printed
    assert "8 answers" in run(tmp_path, table, "--set", "unnamed=repetitions")[1]
    assert "1 answer" in run(tmp_path, table, "--set", "unnamed=copies")[1]
    code, printed = run(tmp_path, table, "--scorer", "overlap", command="score")
    assert code == 1
    assert "--set unnamed=repetitions" in printed


def test_a_first_line_that_is_said_to_be_a_row_is_one(tmp_path: Path) -> None:
    path = tmp_path / "held.tsv"
    path.write_text("".join(f"{word}o a\t{word}a\t{word}alla\n" for word in PLACES))
    options = ["--map", "question=column 1", "--map", "answer=column 3", "--set", "header=false"]
    result = CliRunner().invoke(cli, ["import", "csv", str(path), *options, "--out", str(tmp_path / "runs")])
    assert "6 samples" in result.output, result.exception


def test_a_pattern_that_matches_no_column_is_named_with_its_target(tmp_path: Path) -> None:
    code, printed = run(tmp_path, SYSTEMS, "--map", "score.k1=*_zz")
    assert code == 1
    assert "has no column '*_zz'" in printed
    assert "--map score.k1" in printed
