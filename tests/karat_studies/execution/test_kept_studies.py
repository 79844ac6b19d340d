"""A run folder keeps the studies it is over: from the start, and what a resume brings."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

from tests.karat_studies import studies

from karat import Experiment
from karat.analysis import summarize
from karat.execution import run_experiment
from karat.journal import RunFolder


def experiment(folder: Path) -> Experiment:
    return Experiment(
        dataset={"kind": "study", "path": str(folder), "per_arm": 4},
        agent={"type": "floor"},
        conditions={"any": {}},
        execution={"num_repetitions": 1},
    )


def run(folder: Path, *, resume: RunFolder | None = None, results: Path | None = None) -> RunFolder:
    path = resume.path if resume is not None else None
    made = experiment(folder)
    return asyncio.run(run_experiment(made, results=results or folder.parent / "results", resume=path)).run


def write(folder: Path, name: str) -> Path:
    return studies.write(folder / name, studies.STUDY.replace("study: small", f"study: {name}"))


def kept(found: RunFolder) -> dict[str, bytes]:
    return {copy.name: found.kept_file(copy) for copy in found.kept()}


def test_the_folder_holds_each_study_as_it_was_read(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    one, two = write(folder, "one"), write(folder, "two")
    found = run(folder)
    texts = {"one": (one / "study.yaml").read_bytes(), "two": (two / "study.yaml").read_bytes()}
    assert kept(found) == texts
    assert {copy.sha256 for copy in found.kept()} == {sha256(text).hexdigest() for text in texts.values()}
    assert sorted(file.name for file in (found.path / "studies").iterdir()) == sorted(
        copy.file for copy in found.kept()
    )


def test_a_study_that_is_added_later_is_kept_and_analysed(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    write(folder, "one")
    first = run(folder)
    before = summarize(first).study
    write(folder, "two")
    second = run(folder, resume=first)
    assert list(kept(second)) == ["one", "two"]
    after = summarize(second).study
    assert before is not None
    assert after is not None
    assert [one.study for one in after.conditions[0].studies] == ["one", "two"]
    old, new = before.conditions[0].studies[0], after.conditions[0].studies[0]
    assert old.participants == new.participants
    assert (old.score.pas.value, old.score.pas.se) == (new.score.pas.value, new.score.pas.se)


def test_numbers_of_people_that_are_put_right_count_after_a_resume(tmp_path: Path) -> None:
    """Participants saw the same; only what they are compared with changed. Nobody is asked again."""
    folder = tmp_path / "many"
    study = write(folder, "one")
    first = run(folder)
    lines = first.journal.read_bytes().count(b'"event":"answer"')
    text = (study / "study.yaml").read_text(encoding="utf-8")
    (study / "study.yaml").write_text(text.replace("title: A small study", "title: A better study"), encoding="utf-8")
    second = run(folder, resume=first)
    found = summarize(second).study
    assert found is not None
    assert found.studies[0].title == "A better study"
    assert second.journal.read_bytes().count(b'"event":"answer"') == lines
    assert len(list((second.path / "studies").iterdir())) == 2


def test_a_resume_that_changes_nothing_keeps_nothing_new(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    write(folder, "one")
    first = run(folder)
    second = run(folder, resume=first)
    assert second.kept() == first.info.kept
    assert len(list((second.path / "studies").iterdir())) == 1


def test_runs_over_anything_else_keep_no_studies(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "?", "answer": "x"}\n', encoding="utf-8")
    made = Experiment(
        dataset={"path": str(tmp_path / "questions.jsonl")},
        agent={"type": "floor"},
        judge={"type": "overlap"},
        conditions={"any": {}},
    )
    found = asyncio.run(run_experiment(made, results=tmp_path / "results")).run
    assert found.kept() == ()
    assert not (found.path / "studies").exists()
    assert summarize(found).study is None
