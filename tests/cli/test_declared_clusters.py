"""`dataset.cluster`, `--cluster` and the documents of conversations, from the file to the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat import Experiment, api
from karat.clusters import SharedValues
from karat.errors import BadDataset
from karat.index import read_index
from karat.journal import RunFolder


def faq(folder: Path, rows: list[dict[str, object]], **dataset: object) -> Experiment:
    path = folder / "faq.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Experiment(
        dataset={"path": str(path), **dataset}, agent={"type": "floor"}, judge={"type": "overlap"},
        conditions={"a": {}, "b": {}},
    )  # fmt: skip


ROWS: list[dict[str, object]] = [
    {"question": f"q{row}?", "answer": "yes", "page": f"p{row // 3}", "number": row} for row in range(12)
]


def test_a_column_says_which_questions_share_a_document(tmp_path: Path) -> None:
    samples = faq(tmp_path, ROWS, cluster="page").load_dataset().samples
    assert [sample.cluster for sample in samples[:4]] == ["p0", "p0", "p0", "p1"]
    assert {sample.cluster for sample in faq(tmp_path, ROWS).load_dataset()} == {None}


@pytest.mark.parametrize(
    ("rows", "column", "message"),
    [
        (ROWS, "pgae", "no row has the key 'pgae' (did you mean 'page'?), or the rows of a question differ in it"),
        ([*ROWS, {"question": "q?", "answer": "a"}], "page", "1 sample without a text or whole number in 'page'"),
        ([*ROWS, {"question": "q?", "answer": "a", "page": 1.5}], "page", "1 sample without a text or whole number"),
    ],
)
def test_a_cluster_that_is_not_known_is_a_fault(
    tmp_path: Path, rows: list[dict[str, object]], column: str, message: str
) -> None:
    with pytest.raises(BadDataset) as caught:
        faq(tmp_path, rows, cluster=column).load_dataset()
    assert message in str(caught.value)


def test_check_names_a_column_that_looks_like_a_cluster(tmp_path, karat):
    faq(tmp_path, ROWS)
    file = tmp_path / "e.yaml"
    text = "dataset: {path: faq.jsonl%s}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}, b: {}}\n"
    for option, named in (("", True), (", cluster: page", False)):
        file.write_text(text % option, encoding="utf-8")
        said = karat("check", str(file)).err
        assert ("12 questions share 4 values of 'page'" in said) is named


@pytest.mark.needs_package("karat_imports")
def test_an_import_takes_clusters_from_a_column_and_names_one(tmp_path, karat):
    lines = ["question,condition,score.quality,document"]
    lines += [f"q{row},{side},{row % 2},d{row // 4}" for row in range(24) for side in "AB"]
    file = tmp_path / "results.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    said = karat("import", "csv", str(file), "--out", str(tmp_path / "plain")).out
    assert "24 questions share 6 values of 'document'" in said
    karat("import", "csv", str(file), "--cluster", "document", "--out", str(tmp_path / "out"))
    [folder] = (tmp_path / "out").iterdir()
    index = read_index(RunFolder.open(folder))
    assert index.clusters[:5] == ["d0", "d0", "d0", "d0", "d1"]
    wrong = karat("import", "csv", str(file), "--cluster", "documnet", "--out", str(tmp_path / "out"))
    assert "24 of 24 samples have no value of 'documnet' (did you mean 'document'?)" in wrong.err


@pytest.mark.needs_package("karat_conversations")
def test_conversations_share_the_document_that_they_are_about(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"c{number}", "pre_text": [f"Report {number // 2}."], "post_text": [],
            "table": [["", "2020"], ["x", "1"]],
            "annotation": {
                "dialogue_break": ["what was x?"], "turn_program": ["1"], "exe_ans_list": [1.0],
            },
        }
        for number in range(4)
    ]  # fmt: skip
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    experiment = Experiment(
        dataset={"path": str(path), "kind": "conversation"}, agent={"type": "floor"}, conditions={"a": {}},
    )  # fmt: skip
    clusters = [sample.cluster for sample in experiment.load_dataset()]
    assert clusters[0] is not None
    assert clusters[0] == clusters[1] != clusters[2] == clusters[3]


@pytest.mark.parametrize(
    ("dataset", "pages", "clusters"),
    [
        pytest.param({}, "aab", ["sample 0", None, "sample 0"], id="nothing declared"),
        pytest.param({"cluster": "page"}, "aba", ["a", "b", "a"], id="in one document"),
        pytest.param({"cluster": "page"}, "aab", ["a", "a", "a"], id="in two documents, which it joins"),
        pytest.param({"cluster": "page"}, "aaa", ["a", "a", "a"], id="all in one document"),
    ],
)
def test_samples_that_ask_the_same_share_a_cluster(tmp_path, dataset, pages, clusters):
    asked = ["Who?", "Where?", "who "]
    rows = [{"question": text, "answer": f"a{at}", "page": pages[at]} for at, text in enumerate(asked)]
    other = {"question": "When?", "answer": "x", "page": "c"}
    samples = faq(tmp_path, [*rows, other], **dataset).load_dataset().samples
    assert [sample.cluster for sample in samples] == [*clusters, "c" if dataset else None]


def test_a_question_that_stands_twice_counts_as_one_unit_of_every_decision(tmp_path):
    def answer(user_query: str, system_prompt: str | None, mcp_servers: object) -> str:
        return "yes" if int(user_query[1:-1]) % (3 if system_prompt else 2) else "no"

    questions = [{"question": f"q{row}?", "answer": "yes"} for row in range(12)]
    runs = {}
    for name, rows in (("once", questions), ("twice", [*questions, *questions])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        experiment = Experiment(
            dataset={"path": str(path)}, agent={"type": "python", "target": answer}, scorers=[{"type": "equals"}],
            conditions={"plain": {}, "brief": {"system_prompt": "Be brief."}},
        )  # fmt: skip
        runs[name] = api.run(experiment, results=tmp_path / name)
    once, twice = (api.summarize(run) for run in runs.values())
    assert [result.clusters for result in twice.results] == [12, 12]
    for of_once, of_twice in zip(once.results, twice.results, strict=True):
        assert of_twice.mean.low == pytest.approx(of_once.mean.low)
    [difference], [other] = once.differences, twice.differences
    assert (other.clusters, other.df) == (12, pytest.approx(difference.df))
    assert (other.p, other.estimate.low) == pytest.approx((difference.p, difference.estimate.low))
    first, second = (api.gate(run, min={"equals": 0.2}, results=tmp_path).checks[0] for run in runs.values())
    assert second.verdict == first.verdict == "passed"
    assert first.low - 0.05 < second.low <= first.low  # of the effective n, which degrees of freedom reduce


@pytest.mark.needs_package("karat_imports")
def test_a_column_that_differs_within_a_question_is_no_cluster(tmp_path, karat):
    file = tmp_path / "graded.csv"
    rows = [
        f"q{row // 2},What is {row // 2}+1?,{row // 2 + 1},2,1,{'late' if row % 2 else 'early'}" for row in range(6)
    ]
    file.write_text("\n".join(["id,question,expected_answer,answer,correct,shift", *rows]), encoding="utf-8")
    imported = karat("import", "csv", str(file), "--cluster", "shift", "--out", str(tmp_path / "imported"))
    assert imported.code == 2
    assert "3 samples with several values of 'shift' (the first is 'q0')" in imported.err
    assert not list((tmp_path / "imported").glob("*/journal.jsonl"))

    scored = karat("score", str(file), "--scorer", "equals", "--cluster", "shift")
    assert scored.code == 2
    assert "or the rows of a question differ in it" in scored.err


def test_what_is_said_of_answers_is_no_source_of_questions():
    shared = SharedValues()
    for row in range(12):
        shared.add({"liked": ["yes", "no"][row % 2], "done": row % 2, "page": f"p{row // 3}"})
    assert "'page'" in (shared.hint("set --cluster") or "")
    alone = SharedValues()
    for row in range(12):
        alone.add({"liked": ["Yes", "No"][row % 2], "done": row % 2})
    assert alone.hint("set --cluster") is None
