"""Tables that no name explains: what they are is proposed by how their values repeat, cross and differ, and every
command that is printed reads the file when it is run as printed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from karat.cli import cli
from karat.documents.sentences import says_not_judged

Row = Mapping[str, object]
PLACES = ["quay", "mill", "ford", "wood", "barn", "lake"]


def text(about: object, number: int = 0) -> str:
    return f"What people say of the {about} is that it opens {number} hours after dawn"


def run(folder: Path, table: Sequence[Row], *options: str, command: str = "import csv") -> tuple[int, str]:
    path = folder / "held.json"
    path.write_text(json.dumps(table))
    to = "--results" if command == "score" else "--out"
    result = CliRunner().invoke(cli, [*command.split(), str(path), *options, to, str(folder / "runs")])
    error = "" if isinstance(result.exception, SystemExit | None) else str(result.exception)
    return result.exit_code, result.output + error


def offers(printed: str) -> list[str]:
    lines = [line.strip() for line in printed.splitlines()]
    return [line for line in lines if line.startswith("--map ") and "…" not in line]


CROSSED = [
    {"ort": place, "blick": view, "laune": mood, "wert": (at * 7) % 9}
    for at, (place, view, mood) in enumerate(product(PLACES, ["ich", "sie"], ["+", "0", "-"]))
]
RATED = [
    {"bundle": f"{place}0", "variant": variant, "judge": judge, "wert": (len(judge) * at + nr) % 7}
    for (nr, place), (at, variant), judge in product(enumerate(PLACES), enumerate("pqr"), ["ann", "bob"])
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
PICKED = [{"technik": name, "picked": pick} for name, pick in product(["kurz", "lang"], ["tee", "", "sport"])]
CHOSEN = [
    {"id": f"c{number}", "original_resumo": text(place), "generated_resumo": text(place, number)}
    for number, place in enumerate(PLACES)
]
TABLES = {
    "crossed": CROSSED,
    "rated": RATED,
    "systems": SYSTEMS,
    "parts": PARTS,
    "picked": PICKED,
    "chosen": CHOSEN,
}


@pytest.mark.parametrize("shape", TABLES)
def test_every_reading_that_is_proposed_reads_the_file(tmp_path: Path, shape: str) -> None:
    code, printed = run(tmp_path, TABLES[shape])
    assert code == 1
    assert offers(printed)
    for line in offers(printed):
        if line == "--map score.wert=wert" or "?" in line:
            continue  # to be filled in
        code, text = run(tmp_path, TABLES[shape], *shlex.split(line))
        further = [line for line in text.splitlines() if line.startswith("  --map") and "--set" in line]
        if code and further:  # the direction of unknown scores is asked about by itself
            code, text = run(tmp_path, TABLES[shape], *shlex.split(further[0]))
        assert code == 0, f"{line} leads to\n{text}"


@pytest.mark.parametrize(
    ("shape", "reading"),
    [
        ("crossed", "--map id=ort --map condition=blick --map condition=laune --map score.wert=wert"),
        ("rated", "--map id=bundle --map condition=variant --map repetition=judge --map score.wert=wert"),
        ("systems", "--map 'answer=*_resume' --map 'score.k1=*_k1' --map 'score.kL=*_kL'"),
        ("parts", "--map id=id --map score.f1=parts.f1 --map score.chrf=parts.chrf"),
        ("picked", "--map condition=technik --map answer=picked"),
        ("chosen", "--map id=id --map golden=original_resumo --map answer=generated_resumo"),
    ],
)
def test_the_first_reading_is_the_likeliest(tmp_path: Path, shape: str, reading: str) -> None:
    _, printed = run(tmp_path, TABLES[shape])
    assert reading in offers(printed)


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


def test_a_first_line_like_the_others_may_be_a_row(tmp_path: Path) -> None:
    path = tmp_path / "held.tsv"
    path.write_text("".join(f"{word}o a\t{word}a\t{word}alla\n" for word in PLACES))
    out = ["--out", str(tmp_path / "runs")]
    printed = str(CliRunner().invoke(cli, ["import", "csv", str(path), *out]).exception)
    lines = [shlex.split(line) for line in offers(printed)]
    assert len(lines) == 2
    for line in lines:
        result = CliRunner().invoke(cli, ["import", "csv", str(path), *line, *out])
        assert "6 samples" in result.output, result.exception


def test_what_is_scored_is_proposed_with_its_golden_answer(tmp_path: Path) -> None:
    _, printed = run(tmp_path, CHOSEN, "--scorer", "overlap", command="score")
    line = "--question id --golden original_resumo --answer generated_resumo"
    assert line in printed
    code, printed = run(tmp_path, CHOSEN, "--scorer", "overlap", *line.split(), command="score")
    assert code == 0, printed


def test_what_cannot_be_scored_is_proposed_as_a_command(tmp_path: Path) -> None:
    _, printed = run(tmp_path, CROSSED, "--scorer", "overlap", command="score")
    (line, *_) = [line for line in printed.splitlines() if line.strip().startswith("karat import csv")]
    assert "--map id=ort --map condition=blick --map condition=laune" in line
