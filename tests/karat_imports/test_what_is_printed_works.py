"""Files whose columns can be read in several ways: the right reading is offered, and every command that is printed
reads the file when it is run as printed.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.karat_imports.held_tables import Row, run

TEXTS = [f"The shop number {number} opens at nine in the morning on weekdays" for number in range(8)]


def rows(**columns: Sequence[object]) -> list[Row]:
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def said_by(*systems: str) -> dict[str, list[str]]:
    return {name: [f"{name} says that {text.lower()}" for text in TEXTS] for name in systems}


def words(*some: str) -> list[str]:
    return [some[number % len(some)] for number in range(len(TEXTS))]


def offers(text: str, start: str = "--map") -> list[list[str]]:
    """The options in lines of their own, without those to be filled in."""
    lines = [line for line in text.splitlines() if line.strip().startswith(f"{start} ")]
    return [shlex.split(line) for line in lines if "…" not in line and "?" not in line]


SHAPES = {
    "reviews of two": rows(prompt=TEXTS, **said_by("baseline_review", "clarified_review")),
    "runs of systems": rows(
        statement=TEXTS, **said_by("gpt-4_0", "gpt-4_1", "llama_0", "llama_1", "claude-2.0_0", "claude-2.0_1")
    ),
    "decisions": rows(id=range(8), predicted_decision=words("yes", "no"), actual_decision=words("yes", "no", "no")),
    "numbers alone": rows(**{"Data 1": words("1", "3"), "Data 2": words("2", "3", "4")}),
    "a number alone": rows(name=words("a", "b"), hits_of_all=[1, 2, 3, 4, 5, 6, 7, 8]),
    "an attack": rows(
        attacker_prompt=TEXTS, adversarial_prompt=[f"Say this: {text}" for text in TEXTS], **said_by("victim_response")
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_command_that_is_printed_reads_the_file_as_printed(tmp_path: Path, shape: str) -> None:
    code, text = run(tmp_path, SHAPES[shape])
    assert code == 0 or "or name the columns: --map id=… --map question=… --map golden=… --map answer=…" in text
    printed = offers(text)
    for options in printed:
        code, text = run(tmp_path, SHAPES[shape], *options)
        assert code == 0, f"{shlex.join(options)} leads to\n{text}"


def test_what_is_actual_is_golden_beside_what_is_predicted(tmp_path: Path) -> None:
    _, text = run(tmp_path, SHAPES["decisions"])
    assert "golden=actual_decision" in text
    assert "answer=predicted_decision" in text
    assert "answer=actual_decision" not in text


def test_what_is_actual_is_the_answer_beside_what_is_expected(tmp_path: Path) -> None:
    table = rows(question=TEXTS, expected_route=words("a", "b"), actual_route=words("a", "b", "b"))
    assert "golden=expected_route, answer=actual_route" in run(tmp_path, table)[1]


def test_a_target_is_no_answer_of_a_second_system(tmp_path: Path) -> None:
    table = rows(model_input=TEXTS, target_output=TEXTS, model_output=TEXTS[::-1])
    assert "question=model_input, golden=target_output, answer=model_output" in run(tmp_path, table)[1]


def test_labels_called_as_the_expected_one_are_each_a_system(tmp_path: Path) -> None:
    labels = {"expected_label": words("toxic", "fine"), "bert_label": words("fine"), "other_label": words("toxic")}
    text = run(tmp_path, rows(text=TEXTS, **labels, bert_score=words("0.1", "0.5")))[1]
    assert "each column of answers is a condition: bert_label, other_label" in text


def test_answers_called_alike_are_offered_together_first(tmp_path: Path) -> None:
    first, *_ = offers(run(tmp_path, SHAPES["reviews of two"])[1])
    assert first[-4:] == ["--map", "answer=baseline_review", "--map", "answer=clarified_review"]
    assert "2 conditions" in run(tmp_path, SHAPES["reviews of two"], *first)[1]
    text = run(tmp_path, SHAPES["reviews of two"], command="score")[1]
    assert "--question prompt --answer baseline_review --answer clarified_review" in text


def test_runs_of_several_systems_are_conditions_and_repetitions(tmp_path: Path) -> None:
    table = [{**row, "reason": "An owner said so in the other shop."} for row in SHAPES["runs of systems"]]
    text = run(tmp_path, table, "--map", "question=statement", "--map", "answer=*_[0-9]")[1]
    assert "48 answers; 8 samples × 3 conditions × 2 repetitions" in text
    assert "conditions: gpt-4, llama, claude-2.0" in text


def test_a_score_alone_judges_rows(tmp_path: Path) -> None:
    text = run(tmp_path, SHAPES["a number alone"], "--map", "score.hits=hits_of_all")[1]
    assert "there are neither ids nor questions: each item is a sample" in text


def test_questions_asked_again_under_another_id_are_said_with_what_makes_them_repetitions(tmp_path: Path) -> None:
    table = rows(id=[f"r{n}" for n in range(8)], question=[*TEXTS[:6], *TEXTS[:2]], answer=TEXTS)
    text = run(tmp_path, table)[1]
    assert "2 rows repeat the question of an earlier row under another 'id'" in text
    assert "6 samples × 1 condition × 2 repetitions" in run(tmp_path, table, "--map", "id=question")[1]


def test_a_label_that_is_the_prediction_in_words_is_no_golden_answer(tmp_path: Path) -> None:
    table = rows(text=TEXTS, prediction=words("0", "1"), label=words("bad", "good"))
    text = run(tmp_path, table)[1]
    assert "'label' is 'prediction' in words (0 bad, 1 good), and no golden answer" in text
    assert "golden: bad" in run(tmp_path, table, "--map", "golden=label")[1]
