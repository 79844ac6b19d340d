"""`karat report --charts`, and `--plot` of study tests: charts as files."""

import json
from pathlib import Path

import pytest

from karat.document.ink import DARK

ROOT = Path(__file__).resolve().parents[2]
HEADER = "study,finding,test,kind,human_statistic,human_n1,human_n2,agent_statistic,agent_n1,agent_n2"
ROWS = [
    "a,F1,T1,ttest_ind,6,60,60,-6,60,60",
    "a,F2,T1,ttest_ind,3,60,60,2,60,60",
    "b,F1,T1,ttest_ind,2,40,40,2.5,40,40",
]


@pytest.fixture
def tests_file(here):
    path = here / "tests.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n", encoding="utf-8")
    return path


def test_each_chart_is_a_drawing(karat, run, here):
    done = karat("report", "--charts", run, "--out", "charts")
    assert done.code == 0
    written = sorted(path.name for path in (here / "charts").iterdir())
    assert {"means.svg", "differences.svg"} < set(written)
    assert sorted(done.out.split()) == [f"charts/{name}" for name in written]
    for name in written:
        assert (here / "charts" / name).read_text(encoding="utf-8").startswith("<svg")
        assert f"{name.removesuffix('.svg')}: " in done.err  # with the finding


def test_other_forms_and_the_dark_theme_can_be_asked_for(karat, run, here):
    forms = ("--format", "png", "--format", "json", "--format", "svg")
    assert karat("report", "--charts", run, "--out", "charts", *forms, "--dark", "-q").code == 0
    names = {path.stem for path in (here / "charts").iterdir()}
    for name in names:
        assert (here / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert DARK.background in (here / "charts" / f"{name}.svg").read_text(encoding="utf-8")
    numbers = json.loads((here / "charts" / "means.json").read_text(encoding="utf-8"))
    assert set(numbers) == {"title", "description", "columns", "rows"}
    assert all(len(row) == len(numbers["columns"]) for row in numbers["rows"])


def test_the_numbers_come_as_json(karat, run):
    done = karat("report", "--charts", run, "--out", "charts", "--format", "svg", "--json", "-q")
    found = done.json["charts"]
    first = next(chart for chart in found if chart["name"] == "means")
    assert first["columns"][:2] == ["part", "condition"]
    assert {row[1] for row in first["rows"]} == {"guess", "add"}
    assert [len(chart["paths"]) for chart in found] == [1] * len(found)


def test_the_same_run_gives_the_same_files(karat, run, here):
    for folder in ("one", "two"):
        assert karat("report", "--charts", run, "--out", folder, "-q").code == 0
    for path in (here / "one").iterdir():
        assert path.read_bytes() == (here / "two" / path.name).read_bytes(), path.name


def test_charts_go_to_a_folder_named_after_the_run_unless_another_is_named(karat, run, here):
    assert karat("report", "--charts", run, "--format", "json", "-q").code == 0
    (folder,) = here.glob("*-charts")
    assert (here / "results" / folder.name.removesuffix("-charts") / "run.json").exists()
    assert list(folder.glob("*.json"))


def test_the_folder_of_charts_must_be_one(karat, run, here):
    (here / "taken").write_text("", encoding="utf-8")
    done = karat("report", "--charts", run, "--out", "taken/charts", "--format", "json")
    assert done.code == 2
    assert "--out: cannot write" in done.err


@pytest.mark.needs_package("karat_conversations")
def test_without_the_extra_it_says_what_to_install_and_writes_nothing(here, karat, run, process):
    (here / "block.py").write_text(
        "import sys; sys.modules['vl_convert'] = None\nfrom karat.__main__ import main\nsys.exit(main(sys.argv[1:]))\n",
        encoding="utf-8",
    )
    import subprocess
    import sys

    command = [sys.executable, "block.py", "report", "--charts", "latest", "--out", "charts", "--format", "png"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"install -e '{ROOT}[plots]'" in done.stderr
    assert not (here / "charts").exists()
    assert subprocess.run(command[:-2], cwd=here, capture_output=True, check=False).returncode == 0


@pytest.mark.needs_package("karat_conversations")
def test_real_conversations_have_charts_that_say_what_was_found(karat, here, shared_data):
    data = shared_data / "convfinqa"
    asked = ("--dataset", data / "dev.json", "--kind", "conversation", "-q")
    karat("score", data / "predictions_sonnet.jsonl", *asked)
    done = karat("report", "--charts", "latest", "--out", "charts", "--format", "json", "--json", "-q")
    titles = {chart["name"]: chart["title"] for chart in done.json["charts"]}
    assert "66.9 % [" in titles["ladder-of-matches"] and "83.4 % [" in titles["ladder-of-matches"]
    assert "73 wrong turns are proved" in titles["propagation"]
    assert titles["accuracy-by-turn"].startswith("numerical accuracy of answers: 78.4 % [")
    assert titles["first-wrong-turn"].startswith("answers: 91 of 421 conversations go wrong first at turn 0")


@pytest.mark.needs_kind("study")
def test_study_tests_have_charts_beside_their_text(karat, tests_file, here):
    done = karat("score", tests_file, "--kind", "study-tests", "--plot", "charts")
    assert done.code == 0
    assert "PAS  " in done.out
    names = sorted(path.name for path in (here / "charts").glob("*.svg"))
    assert names == ["agreement-agent.svg", "effect-differences-agent.svg", "effects-agent.svg"]


@pytest.mark.needs_kind("study")
def test_charts_of_study_tests_go_with_their_files_too(karat, tests_file, here):
    asked = ("--kind", "study-tests", "--to", "humanstudy", "--out", "files", "--plot", "charts")
    assert karat("score", tests_file, *asked).code == 0
    assert (here / "files" / "benchmark_summary.json").exists()
    assert (here / "charts" / "effects-agent.svg").exists()


@pytest.mark.needs_kind("study")
def test_flags_of_study_tests_are_not_for_answers(karat, here):
    (here / "answers.jsonl").write_text('{"id": "1", "answer": "a"}\n', encoding="utf-8")
    done = karat("score", "answers.jsonl", "--plot", "charts")
    assert done.code == 2
    assert "--kind study-tests" in done.err
