"""Tables of results as people write them: grids of systems, marks in words, names as ids, means."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pytest

from karat.errors import BadOption
from karat.records import Score
from karat_imports.imported import Imported, import_results

QUESTIONS = [f"Where is room {n}?" for n in range(12)]


def read(folder: Path, text: object, name: str = "r.csv", **options: object) -> Imported:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    (made,) = import_results("csv", [path], folder / "runs", options=options)
    return made


def table(*columns: str, rows: int = 12) -> str:
    """A CSV file; `{n}` is the number of the row, `{m}` 0 or 1."""
    header = ",".join(column.partition("=")[0] for column in columns)
    lines = []
    for n in range(rows):
        lines.append(",".join(column.partition("=")[2].format(n=n, m=n % 2, third=n % 3) for column in columns))
    return "\n".join([header, *lines]) + "\n"


def asked(folder: Path, text: object, name: str = "r.csv") -> str:
    with pytest.raises(BadOption) as error:
        read(folder, text, name)
    return str(error.value)


def conditions(made: Imported) -> tuple[str, ...]:
    return tuple(made.run.info.plan.conditions)


ASKED = "question=Where is room {n}?"
SAID = "answer=It is upstairs {n}"


@pytest.mark.parametrize("column", ["mark", "note", "calidad", "zgodne"])
def test_short_scales_of_a_file_without_scores_are_asked_about(tmp_path: Path, column: str) -> None:
    said = asked(tmp_path, table(ASKED, SAID, f"{column}={{third}}"))
    assert f"{column} may be scores, by their values" in said
    assert f"--map answer=answer --map score.{column}={column}\n  --map answer=answer" in said


def test_marks_in_words_are_asked_about_with_what_is_known_of_them(tmp_path: Path) -> None:
    rows = [{"質問": asked, "回答": f"{n} です", "評価": "○×△"[n % 3]} for n, asked in enumerate(QUESTIONS)]
    said = asked(tmp_path, rows, "r.json")
    assert """--map 'score.評価=評価' --set 'words={"×": 0, "△": ?, "○": 1}'""" in said


def test_what_says_whether_an_answer_is_right_is_no_golden_answer(tmp_path: Path) -> None:
    rows = []
    for n, question in enumerate(QUESTIONS):
        right = ("Sí", "No", "Parcial")[n % 3]
        rows.append({"Pregunta": question, "Respuesta esperada": f"Arriba {n}", "Respuesta del bot": f"Sube {n}"})
        rows[-1]["¿Correcta?"] = right
    assert "'¿Correcta?' judges in words" in asked(tmp_path, rows, "r.json")


def test_a_grid_of_scores_under_the_names_of_systems_is_a_row_a_system(tmp_path: Path) -> None:
    made = read(tmp_path, table(ASKED, "gpt-4={third}", "claude={m}"))
    assert conditions(made) == ("gpt-4", "claude")
    assert len([*made.run.events_of(Score)]) == 24


def test_columns_of_one_score_can_be_named_as_systems(tmp_path: Path) -> None:
    text = table("question_id=q{n}", "full={third}", "no_retrieval={third}")
    assert "--map score=full --map score=no_retrieval" in asked(tmp_path, text)
    assert conditions(read(tmp_path, text, scored=["full", "no_retrieval"])) == ("full", "no_retrieval")


def test_texts_that_other_columns_judge_by_name_are_systems(tmp_path: Path) -> None:
    made = read(
        tmp_path,
        table("ground_truth=Room {n} here", "abby=Room {n}", "ocra=Rom {n}", "cer_abby=0.{n}", "cer_ocra=0.1{n}"),
    )
    assert conditions(made) == ("abby", "ocra")
    assert {name for score in made.run.events_of(Score) for name in score.values} == {"cer"}


def test_numbers_inside_of_names_are_repetitions_after_a_word_for_them(tmp_path: Path) -> None:
    made = read(
        tmp_path, table(ASKED, "run1_answer=Up {n}", "run1_score={m}", "run2_answer=Down {n}", "run2_score={m}")
    )
    assert (conditions(made), made.run.info.plan.repetitions) == (("answers",), 2)


def test_an_object_that_names_a_system_is_a_condition_by_its_name(tmp_path: Path) -> None:
    rows = []
    for n, question in enumerate(QUESTIONS):
        for name in ("react", "plan"):
            rows.append({"goal": question, "agent": {"name": name, "final_answer": f"Up {n}"}, "success": n % 2})
    assert conditions(read(tmp_path, rows, "r.json")) == ("react", "plan")


def test_names_that_repeat_once_a_condition_are_offered_as_ids(tmp_path: Path) -> None:
    lines = [
        f"{side},{name},{n % 5 + 1}"
        for side in ("North", "South")
        for n, name in enumerate(("Ann", "Bo", "Cy", "Di", "Ed"))
    ]
    said = asked(tmp_path, "\n".join(["Scenario,Who,relevance", *lines]))
    assert "--map id=Who --map condition=Scenario --map score.relevance=relevance" in said


def test_a_column_of_different_names_is_offered_as_ids(tmp_path: Path) -> None:
    said = asked(tmp_path, "Test name,Result\nopens the door,passed\ncloses it,failed\nlocks it,passed\n")
    assert "--map 'id=Test name' --map score.Result=Result" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metric,value\naccuracy,0.9\nf1,0.8\n", "measures of a whole run, one a row ('metric')"),
        ("what,value\naccuracy,0.9\nlatency,8\n", "measures of a whole run, one a row ('what')"),
        ("model,arc,piqa\nm1,0.9,0.3\nm2,0.5,0.4\n", "means of several results, a row a 'model'"),
        ("epoch,train_loss,acc\n1,0.9,0.3\n2,0.5,0.4\n", "how a training went, a step a row ('epoch')"),
        (",cat,dog\ncat,9,1\ndog,2,8\n", "how often one class was taken for another"),
    ],
)
def test_numbers_of_whole_runs_are_called_so(tmp_path: Path, text: str, said: str) -> None:
    assert f"rows say {said}" in asked(tmp_path, text)


def test_sheets_with_the_measures_of_runs_are_called_so(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for title in ("run 1", "run 2"):
        sheet = book.create_sheet(title)
        for line in (("Metric", "Value"), ("Spread", 0.5), ("Coverage", 3)):
            sheet.append(line)
    del book["Sheet"]
    book.save(tmp_path / "r.xlsx")
    with pytest.raises(BadOption, match=r"Rows say measures of a whole run, one a row \('Metric'\)"):
        [*import_results("csv", [tmp_path / "r.xlsx"], tmp_path / "runs")]


def test_a_dataset_is_called_so_with_the_command_that_reads_it(tmp_path: Path) -> None:
    said = asked(tmp_path, table(ASKED, "correct_answer=It is upstairs {n}"))
    assert "r.csv` reads it as a dataset" in said


def test_each_pair_of_what_is_true_and_predicted_is_a_reading(tmp_path: Path) -> None:
    said = asked(tmp_path, table("True_1d=0.{n}", "Pred_1d=0.1{n}", "True_7d=0.2{n}", "Pred_7d=0.{n}", "Prob_7d=0.3"))
    assert "--map golden=True_1d --map answer=Pred_1d\n  --map golden=True_7d --map answer=Pred_7d\n" in said


def test_two_lines_of_names_are_one_header(tmp_path: Path) -> None:
    lines = [f"{question},Up {n},3,Down {n},4" for n, question in enumerate(QUESTIONS)]
    made = read(tmp_path, "\n".join([",GPT,,Claude,", "Question,Answer,Score,Answer,Score", *lines]))
    assert conditions(made) == ("GPT Answer", "Claude Answer")
    assert len([*made.run.events_of(Score)]) == 24
    book = openpyxl.Workbook()
    for names in (["Question", "GPT", None, "Claude"], [None, "Answer", "Score", "Answer", "Score"]):
        book.active.append(names)
    for line in lines:
        book.active.append(line.split(","))
    book.save(tmp_path / "r.xlsx")
    (made,) = import_results("csv", [tmp_path / "r.xlsx"], tmp_path / "others")
    assert conditions(made) == ("GPT Answer", "Claude Answer")


def test_columns_that_are_called_as_questions_are_questions(tmp_path: Path) -> None:
    header = ",".join(["model", *QUESTIONS[:4]])
    made = read(
        tmp_path, f"{header}\ngpt,it is up,it is in,by the door,to the left\nllama,go up,go in,the door,the left\n"
    )
    assert (made.run.info.plan.samples, conditions(made)) == (4, ("gpt", "llama"))


def test_an_answer_that_is_an_error_of_a_service_is_a_failure(tmp_path: Path) -> None:
    made = read(tmp_path, table(ASKED, SAID).replace("It is upstairs 3\n", "Error: HTTP request timed out\n"))
    assert (made.counts["answers"], made.counts["failures"]) == (11, 1)
