"""Tables of results whose rows are told apart by other columns than the first that come to mind, and files of results
of something else than answers.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from karat.cli import cli
from karat.errors import BadOption
from karat_imports.imported import Imported, import_results


def read(folder: Path, rows: object, **options: object) -> Imported:
    path = folder / "r.json"
    path.write_text(json.dumps(rows))
    (made,) = import_results("csv", [path], folder / "runs", options=options)
    return made


def size(made: Imported) -> tuple[int, int, int]:
    plan = made.run.info.plan
    return plan.samples, len(plan.conditions), plan.repetitions


def refused(folder: Path, rows: object, **options: object) -> str:
    with pytest.raises(BadOption) as error:
        read(folder, rows, **options)
    return str(error.value)


def test_of_two_ids_the_one_counts_under_which_no_row_repeats(tmp_path: Path) -> None:
    rows = []
    for name, topic, repeat in product(("plain", "full"), range(6), range(3)):
        row = {"doc_id": f"d{topic % 2}", "topic_id": f"t{topic}", "repeat_idx": repeat, "name": name}
        rows.append({**row, "prompt_version": "v1", "recall": (topic + repeat) / 9})
    made = read(tmp_path, rows)
    assert size(made) == (6, 2, 3)
    assert [*made.run.info.plan.conditions] == ["plain", "full"], "a constant version is no condition beside them"
    assert "'topic_id' is the id: under one 'doc_id', rows repeat" in made.findings.notes


def test_what_parts_all_rows_of_a_condition_and_repetition_is_the_id(tmp_path: Path) -> None:
    rows = []
    for topic, condition, rep in product(("Bias", "Maths", "Cells"), ("a", "b"), range(2)):
        rows.append({"topic": topic, "condition": condition, "rep": rep, "n_pairs": 4, "accuracy": 0.5 + rep / 4})
    assert size(read(tmp_path, rows, map={"score.accuracy": "accuracy"})) == (3, 2, 2)


def test_an_id_that_is_the_same_in_all_rows_is_that_of_the_run(tmp_path: Path) -> None:
    rows = [{"run_id": "r7", "accuracy": n / 9} for n in range(9)]
    assert size(read(tmp_path, rows)) == (9, 1, 1)


SPOKEN = [
    {"scene_id": n, "condition": way, "model": model, "prompt": f"{way} {n}?", "response": f"{model} {n}"}
    for n, way, model in product(range(5), ("alone", "in pairs"), ("small", "large"))
]


def test_where_no_question_has_two_conditions_the_id_that_joins_them_is_asked_for(tmp_path: Path) -> None:
    said = refused(tmp_path, SPOKEN)
    assert said.splitlines()[1:3] == ["  --map id=scene_id", "  --map condition=model"]
    joined = read(tmp_path, SPOKEN, map={"id": "scene_id"})
    assert size(joined) == (5, 4, 1)
    assert "one 'scene_id' has several 'prompt', of which the first counts" in joined.findings.notes
    assert size(read(tmp_path, SPOKEN, map={"condition": "model"})) == (10, 2, 1)


def test_the_column_that_alone_parts_rows_of_a_question_is_named(tmp_path: Path) -> None:
    rows = [{"question_id": q, "persona_id": p, "score": (q + p) % 5} for q, p in product(range(6), range(4))]
    said = refused(tmp_path, rows, map={"id": "question_id"})
    assert "only 'persona_id' parts them" in said
    assert "--map condition=persona_id)" in said


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"average_score": 3.5, "standard_deviation": 0.4}, "means or statistics of several results"),
        ({"left": "rag", "right": "plain", "winner": "rag", "accuracy": 1}, "which of two is better"),
    ],
)
def test_rows_of_something_else_than_answers_are_said_to_be_so(
    tmp_path: Path, columns: dict[str, object], said: str
) -> None:
    rows = []
    for n in range(8):
        row = {"question_id": n, **columns}
        if "winner" in row:
            row["winner"] = ("rag", "plain")[n % 2]
        rows.append(row)
    found = refused(tmp_path, rows)
    assert said in found
    option = found.splitlines()[1].split()
    path = str(tmp_path / "r.json")
    shown = CliRunner().invoke(cli, ["import", "csv", path, *option, "--out", str(tmp_path / "runs")])
    assert "8 scores; 8 samples" in shown.output


def test_columns_with_a_measure_of_each_are_systems(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        said = {name: f"{name} says that it is {n}" for name in ("gpt-4o", "groq-70b", "own")}
        rows.append({"Question": f"What is {n}?", **said, **{f"{name} LLM Duration": n for name in said}})
    assert [*read(tmp_path, rows).run.info.plan.conditions] == ["gpt-4o", "groq-70b", "own"]


def test_an_answer_with_its_word_in_the_middle_of_the_name_is_one_of_several(tmp_path: Path) -> None:
    names = ("model_1_answer", "model_2_answer", "model_3_answer", "base_model_answer_v5")
    rows = [{"query": f"What is {n}?", **{name: f"It is {n} in {name}" for name in names}} for n in range(4)]
    assert [*read(tmp_path, rows).run.info.plan.conditions] == [*names]


def test_whether_a_label_or_what_is_actual_was_predicted_is_asked(tmp_path: Path) -> None:
    rows = []
    for n in range(30):
        rows.append({"text": f"Sentence {n} is good.", "label": n % 2, "actual": n % 3 % 2, "confidence": 0.9})
    said = refused(tmp_path, rows)
    assert "--map golden=actual --map answer=label\n" in said
    assert "--map golden=label --map answer=actual\n" in said


def test_scoring_says_which_scores_of_the_file_it_does_not_use(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n}?", "golden": n, "response": f"{n}", "correct": True} for n in range(3)]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rows))
    wanted = ["score", str(path), "--scorer", "overlap", "--results", str(tmp_path / "runs")]
    shown = CliRunner().invoke(cli, wanted)
    assert "not used: its own scores (correct) are read by: karat import csv" in " ".join(shown.output.split())


def test_whether_questions_under_other_ids_are_repetitions_is_asked(tmp_path: Path) -> None:
    rows = [{"id": n, "question": f"What is {n % 4}?", "answer": f"It is {n}."} for n in range(6)]
    said = refused(tmp_path, rows)
    assert "2 rows repeat the question of an earlier row under another 'id'" in said
    assert said.splitlines()[1:] == ["  --map id=id", "  --map id=question"]
    assert size(read(tmp_path, rows, map={"id": "id"})) == (6, 1, 1)
    assert size(read(tmp_path, rows, map={"id": "question"})) == (4, 1, 2)


def test_a_class_is_offered_as_what_predictions_answer(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        rows.append(
            {"id": n, "complaint": f"Patient {n} feels dizzy and weak.", "band": ("LOW", "HIGH")[n % 2], "score": n}
        )
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(BadOption) as error:
        [*import_results("csv", [path], tmp_path / "runs")]
    assert "--map question=complaint --map answer=band\n" in str(error.value)


@pytest.mark.parametrize("command", [["score", "--scorer", "overlap"], ["import", "csv"]])
def test_lines_of_text_are_said_to_be_no_table(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "said.txt"
    path.write_text("It rains in the north today.\nI like the way you talk.\n")
    shown = CliRunner().invoke(cli, [*command, str(path)])
    assert "holds 2 lines of text and no columns" in " ".join(f"{shown.output} {shown.exception}".split())


def test_answers_without_golden_ones_are_read_by_the_command_that_score_names(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n}?", "response": f"It is {n}."} for n in range(4)]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rows))
    shown = CliRunner().invoke(cli, ["score", str(path), "--scorer", "overlap"])
    assert "answers alone are read by: karat import csv" in str(shown.exception)


def test_a_text_beside_that_which_it_was_made_from_is_an_answer(tmp_path: Path) -> None:
    rows = [{"seed_id": n, "seed_text": f"Mira dropped mug {n}.", "text": f"She swept up {n}."} for n in range(6)]
    path = tmp_path / "generations.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(BadOption) as error:
        [*import_results("csv", [path], tmp_path / "runs")]
    assert "--map id=seed_id --map question=seed_text --map answer=text\n" in str(error.value)


def test_of_marks_alone_a_way_to_leave_them_is_offered(tmp_path: Path) -> None:
    rows = [{"question": f"Define {n}.", "model_answer": f"It is {n}.", "marks": n + 1} for n in range(4)]
    said = refused(tmp_path, rows)
    assert said.splitlines()[1:] == [
        "  --map answer=model_answer --map score.marks=marks",
        "  --map answer=model_answer",
    ]
    assert read(tmp_path, rows, map={"answer": "model_answer"}).counts["answers"] == 4


def test_what_is_asked_next_is_asked_with_what_was_answered(tmp_path: Path) -> None:
    rows = []
    for n, model in product(range(4), ("small", "large")):
        row = {"id": n, "model": model, "accuracy": n / 4, "f(a=1)": n / 5, "diversity": n / 6}
        rows.append({**row, "response": f"{model} {n}"})
    given = {"score.diversity": "diversity"}
    assert "\n  --map score.diversity=diversity --set 'higher_is_better=" in refused(tmp_path, rows, map=given)
    assert "--map 'score.f(a:1)=f(a=1)'" in refused(tmp_path, rows)
