"""`karat check` of a study, and of an experiment over studies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.karat_studies import studies

from karat.__main__ import main
from karat_studies.kinds.study import copy as copied
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study

EXPERIMENT = """\
name: designs
dataset: {kind: study, path: PATH}
agent: {type: floor}
conditions: {a: {preset: empty}, b: {preset: human}}
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `karat init study` writes."""
    folder = tmp_path_factory.mktemp("begun") / "mine"
    assert main(["init", "study", str(folder), "-q"]) == 0
    return folder


@pytest.fixture
def bridge(begun, here) -> Path:
    """A copy of the study in it."""
    return Path(shutil.copytree(begun, here / "mine")) / "bridge"


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize("study", ["framing", "beauty_contest", "trust"])
def test_what_a_study_holds(karat, golden, study):
    done = karat("check", study)
    assert done.code == 0
    golden(f"cli/check-{study}.txt", f"{done.out}{'-' * 20}\n{done.err}")


def test_json_is_the_same_for_programs(karat, bridge, here, golden):
    done = karat("check", bridge, "--json")
    assert (done.code, done.err) == (0, "")
    [study] = done.json["studies"]
    golden("cli/check-study.json", done.out.replace(f"{here}/", "").replace(study["sha256"], "DIGEST"))


def test_every_way_to_name_a_study(karat, bridge):
    texts = [karat("check", name).out for name in (bridge, f"{bridge}/", bridge / "study.yaml")]
    (bridge / "study.yaml").rename(bridge / "other.yaml")
    texts.append(karat("check", bridge / "other.yaml").out)
    assert len(set(texts)) == 1 and texts[0].startswith("bridge: ")


def test_a_folder_of_studies_is_checked_as_a_whole(karat, bridge, here):
    studies.write(here / "mine" / "small")
    done = karat("check", "mine")
    assert done.code == 0
    assert done.out.splitlines()[-1] == (
        "together: 2 studies, 4 findings, 5 tests, 407 participants, 447 questions under one condition"
    )
    assert [one["name"] for one in karat("check", "mine", "--json").json["studies"]] == ["bridge", "small"]


def test_all_faults_come_at_once_and_nothing_else(karat, bridge, here):
    text = (bridge / "study.yaml").read_text(encoding="utf-8")
    text = text.replace("expect: greater", "expect: grater").replace("measure: says_longer", "measure: says_loger")
    (bridge / "study.yaml").write_text(text.replace("n: 30\n", "n: 31\n", 1), encoding="utf-8")
    (bridge / "materials" / "bridge.md").unlink()
    done = karat("check", bridge)
    assert (done.code, done.out) == (2, "")
    places = [line.split()[0] for line in done.err.splitlines()[1:]]
    assert {"arms.high.prompt", "findings.0.tests.0.expect"} <= set(places)
    found = karat("check", bridge, "--json")
    assert (found.code, found.json["ready"], found.json["studies"]) == (2, False, [])
    assert [fault["place"] for fault in found.json["faults"]] == places


def test_a_copy_that_is_none_is_a_fault(karat, bridge):
    rows = lines(bridge / "copy.jsonl")
    for row in rows[:8]:
        row["answers"] = {"longer": "longer", "estimate": 5000}
    write(bridge / "copy.jsonl", rows)
    done = karat("check", bridge)
    assert done.code == 2
    assert "copy of people's answers: does not give their result" in done.out
    assert done.err.splitlines() == [
        "bridge, copy.jsonl: F1 T1: d of people 1.252, of the copy 1.001",
        "bridge, copy.jsonl: F2 T1: d of people −1.796, of the copy −0.988",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.pop(), "F1 T1: n of people 30 and 30, of the copy 30 and 29"),
        (lambda rows: rows[0].update(arm="hihg"), "line 1: the study has no arm 'hihg' (did you mean 'high'?)"),
        (lambda rows: rows[0]["answers"].pop("estimate"), "line 1: 'estimate' is missing"),
        (lambda rows: rows[0]["answers"].update(estimate=-1), "line 1: 'estimate' is out_of_range"),
        (lambda rows: rows[0]["answers"].update(guess=1), "line 1: arm 'high' has no field 'guess'"),
        (lambda rows: rows.clear(), "bridge, copy.jsonl: file: is empty"),
    ],
)
def test_what_is_wrong_with_a_copy(karat, bridge, change, said):
    rows = lines(bridge / "copy.jsonl")
    change(rows)
    write(bridge / "copy.jsonl", rows)
    done = karat("check", bridge)
    assert done.code == 2
    assert said in done.err


def test_a_study_without_a_copy_says_so(karat, bridge):
    (bridge / "copy.jsonl").unlink()
    done = karat("check", bridge)
    assert done.code == 0
    assert "copy of people's numbers: gives their result in 2 tests" in done.out
    assert "copy of people's answers: not tried, there is no copy.jsonl" in done.out


def test_what_cannot_be_checked_is_a_warning(karat, here):
    text = studies.STUDY.replace('"78 % vs 28 %"', '"more of them"')
    studies.write(here / "small", text)
    done = karat("check", "small")
    assert done.code == 0
    assert done.err.startswith("warning: F1 T1: ")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["framng"], 2, "and no study of that name comes with karat (did you mean 'framing'?)"),
        (["framing", "--limit", "3"], 2, "--limit: is for an experiment file; this is a study"),
        (["framing", "--only-sample", "x"], 2, "--only-sample: is for an experiment file; this is a study"),
        (["framing", "--set", "arms=gian"], 2, "dataset.arms: the study has no 'gian' (did you mean 'gain'?)"),
        (["framing", "--set", "arm=gain"], 2, "--set: 1 fault\n  --set.arm: no such key (did you mean 'arms'?)"),
        (["framing", "--set", "wording=other"], 2, "no material has the wording 'other', as gain.other.md"),
        (["gone.yaml"], 2, "gone.yaml: 1 fault\n  file: there is no such file"),
        (["."], 2, "file: is a folder; name the experiment file in it"),
    ],
)  # fmt: skip
def test_what_is_no_study(karat, words, code, said):
    done = karat("check", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_options_of_the_dataset_are_seen(karat):
    done = karat("check", "framing", "--set", "per_arm=3", "--set", "findings=[F1]", "--json").json["studies"][0]
    assert (done["participants"], done["questions"]) == (6, 6)
    assert [arm["name"] for arm in done["arms"] if arm["participants"]] == ["gain", "loss"]


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("framing", "1,350 participants, 1,350 questions × 2 conditions × 3 repetitions = 8,100 agent calls"),
        ("beauty_contest", "166 participants, 664 questions × 2 conditions × 3 repetitions = 3,984 agent calls"),
        pytest.param(
            "shipped",
            "10 studies, 3,744 participants, 5,182 questions × 2 conditions × 3 repetitions = 31,092 agent calls",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_plan_of_an_experiment_says_how_many_are_asked(karat, here, path, size):
    (here / "e.yaml").write_text(EXPERIMENT.replace("PATH", path), encoding="utf-8")
    done = karat("check", "e.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == f"designs: {size}"
    assert "judge" not in done.out
    assert ("166 participants, 664 questions, beauty_contest" in done.out) == (path == "shipped")
    assert "b (preset human)" in done.out


def test_the_plan_counts_what_is_chosen(karat, here):
    (here / "e.yaml").write_text(EXPERIMENT.replace("PATH", "beauty_contest"), encoding="utf-8")
    found = karat("check", "e.yaml", "--limit", "1", "--json").json
    assert found["parts"] == [{"name": "beauty_contest", "counts": {"participant": 17, "question": 68}}]
    assert (found["samples"], found["agent_calls"], found["judge_calls"]) == (1, 408, 0)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("derive", "told"),
    [
        ("SELECT *, longer = 'longer' AS says_longer FROM responses LIMIT 59", ["F1 T1", "F2 T1"]),
        (
            "SELECT *, longer = 'longer' AS says_longer FROM (SELECT * REPLACE (lag(estimate) OVER () AS estimate) FROM responses)",  # noqa: E501 -- one query
            ["F1 T1"],
        ),
        ("SELECT *, longer = 'longer' AS says_longer, row_number() OVER () AS place FROM responses", []),
        ("SELECT *, longer = 'longer' AS says_longer FROM responses ORDER BY participant", []),
    ],
)
def test_sql_that_depends_on_the_order_of_answers_is_told(karat, bridge, derive, told):
    text = (bridge / "study.yaml").read_text(encoding="utf-8")
    old = "SELECT *, longer = 'longer' AS says_longer FROM responses"
    (bridge / "study.yaml").write_text(text.replace(old, derive), encoding="utf-8")
    done = karat("check", bridge)
    said = [line for line in done.err.splitlines() if "in another order" in line]
    assert len(said) == len(told)
    for line, name in zip(said, told, strict=True):
        assert f"derive: {name} gives another result when the same answers are in another order" in line


@pytest.mark.slow
def test_no_shipped_study_depends_on_the_order_of_answers():
    for name, folder in shipped_studies().items():
        study = read_study(folder)
        assert [one.unordered for one in copied.tested_copies(study, copied.human_scores(study))] == [(), ()], name
