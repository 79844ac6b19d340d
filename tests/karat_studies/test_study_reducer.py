"""A study's own code: it runs where the operator said so, out of the study's folder, and nowhere else."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.karat_studies.copied_runs import put_through
from tests.karat_studies.studies import STUDY, write

from karat.__main__ import main
from karat.analysis import compare, summarize
from karat.journal import RunFolder, with_checksum
from karat.records import Sample
from karat_studies.kinds.study.analysis.model import StudyCondition

REDUCE = """\
from pathlib import Path

Path(__file__).with_name("ran.txt").write_text("yes")


def apart(columns):
    return {**columns, "risky": [None if one is None else not one for one in columns["risky"]]}


def fails(columns):
    raise KeyError("no such thing")


def uneven(columns):
    return {"risky": [True], "arm": []}
"""


NEEDS = (
    STUDY.replace("        kind: contingency", "        needs: [choice]\n        kind: contingency")
    .replace("        kind: ttest_paired", "        needs: [first, second]\n        kind: ttest_paired")
    .replace("        kind: correlation", "        needs: [first, second]\n        kind: correlation")
)
"""With a reducer nobody can see what a column is made of."""


def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
    del condition, repetition
    found = {}
    for name, field in sample.detail["fields"][turn].items():
        if "options" in field:
            found[name] = field["options"][0 if sample.position % 3 else 1]
        elif field["type"] == "likert":
            found[name] = 1 + (sample.position * (turn + 2)) % 7
    return json.dumps(found)


def run_of(folder: Path, function: str = "apart", *, code: str = REDUCE) -> RunFolder:
    study = write(folder / "study", f"{NEEDS}reducer: reduce:{function}\n")
    (study / "reduce.py").write_text(code, encoding="utf-8")
    return put_through(folder, study, say)


def only(run: RunFolder, *, allow_code: bool) -> StudyCondition:
    summary = summarize(run, allow_code=allow_code)
    assert summary.study is not None
    return summary.study.conditions[0]


def test_without_leave_nothing_runs_and_the_findings_say_why(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    summary = summarize(run)
    assert not (tmp_path / "study" / "ran.txt").exists()
    found = only(run, allow_code=False)
    assert found.benchmark.pas.value is None
    assert found.benchmark.reason is not None
    assert "--allow-code" in found.benchmark.reason
    assert found.participants.parsed == found.participants.planned
    assert all(one.coverage == 1.0 for one in found.findings)
    assert any("did not run" in warning for warning in summary.warnings)


@pytest.mark.slow
def test_with_leave_the_code_makes_the_columns(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    plain = put_through(tmp_path / "plain", write(tmp_path / "plain" / "study"), say)
    reduced, straight = only(run, allow_code=True), only(plain, allow_code=True)
    assert (tmp_path / "study" / "ran.txt").exists()
    one, other = (part.findings[0].tests[0].repetitions[0].agent.table for part in (reduced, straight))
    assert one is not None
    assert other is not None
    assert one == tuple((no, yes) for yes, no in other)
    assert reduced.benchmark.pas.se is not None


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("fails", "KeyError: 'no such thing'"),
        ("uneven", "columns of equal length"),
        ("nothing", "has no function 'nothing'"),
    ],
)
def test_code_that_fails_is_the_reason_for_no_score(tmp_path: Path, function: str, why: str) -> None:
    found = only(run_of(tmp_path, function), allow_code=True)
    assert found.benchmark.pas.value is None
    assert found.benchmark.reason is not None
    assert why in found.benchmark.reason


def test_code_that_cannot_be_imported_is_the_reason_for_no_score(tmp_path: Path) -> None:
    found = only(run_of(tmp_path, code="import no_such_module\n"), allow_code=True)
    assert "ModuleNotFoundError" in (found.benchmark.reason or "")


def test_a_library_is_never_taken_for_the_code(tmp_path: Path) -> None:
    study = write(tmp_path / "study", f"{NEEDS}reducer: os:system\n")
    found = only(put_through(tmp_path, study, say), allow_code=True)
    assert "there is no file os.py" in (found.benchmark.reason or "")


def test_code_of_a_study_that_has_changed_does_not_run(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (tmp_path / "study" / "study.yaml").write_text(f"{NEEDS}reducer: reduce:fails\n", encoding="utf-8")
    found = only(run, allow_code=True)
    assert "no longer the study that was run" in (found.benchmark.reason or "")
    assert not (tmp_path / "study" / "ran.txt").exists()


def test_a_run_folder_brings_no_code(tmp_path: Path) -> None:
    """A folder that somebody sends names itself as the place of the study."""
    run = run_of(tmp_path)
    (copy,) = run.info.kept
    inside = run.path / "own"
    write(inside, f"{NEEDS}reducer: reduce:apart\n")
    (inside / "reduce.py").write_text(REDUCE, encoding="utf-8")
    info = msgspec.structs.replace(run.info, kept=(msgspec.structs.replace(copy, folder=str(inside)),))
    (run.path / "run.json").write_bytes(with_checksum(msgspec.json.encode(info)))
    found = only(RunFolder.open(run.path), allow_code=True)
    assert "code in a run folder is never used" in (found.benchmark.reason or "")
    assert not (inside / "ran.txt").exists()


def test_a_link_out_of_the_study_is_not_followed(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (tmp_path / "elsewhere.py").write_text(REDUCE, encoding="utf-8")
    (tmp_path / "study" / "reduce.py").unlink()
    (tmp_path / "study" / "reduce.py").symlink_to(tmp_path / "elsewhere.py")
    found = only(run, allow_code=True)
    assert found.benchmark.pas.value is None
    assert not (tmp_path / "ran.txt").exists()


def changed_after(tmp_path: Path, *, code: str = f"{REDUCE}\n# another line\n") -> RunFolder:
    run = run_of(tmp_path)
    (tmp_path / "study" / "reduce.py").write_text(code, encoding="utf-8")
    return run


def test_the_run_keeps_the_digest_of_the_code_and_of_what_lies_beside_it(tmp_path: Path) -> None:
    study = write(tmp_path / "study", f"{NEEDS}reducer: reduce:apart\n")
    for name in ("reduce.py", "other.py", "weights.json"):
        (study / name).write_text(REDUCE, encoding="utf-8")
    (study / "materials" / "more.py").write_text("", encoding="utf-8")
    (copy,) = put_through(tmp_path, study, say).info.kept
    digest = sha256(REDUCE.encode()).hexdigest()
    assert copy.code == {"other.py": digest, "reduce.py": digest}
    (plain,) = put_through(tmp_path / "plain", write(tmp_path / "plain" / "study"), say).info.kept
    assert plain.code is None


@pytest.mark.slow
@pytest.mark.parametrize("file", ["reduce.py", "beside.py"])
def test_code_that_changed_since_the_run_was_made_does_not_run(tmp_path: Path, file: str) -> None:
    study = write(tmp_path / "study", f"{NEEDS}reducer: reduce:apart\n")
    for name in ("reduce.py", "beside.py"):
        (study / name).write_text(REDUCE, encoding="utf-8")
    run = put_through(tmp_path, study, say)
    before = only(run, allow_code=True)
    (study / "ran.txt").unlink()
    (study / file).write_text(f"{REDUCE}\n# another line\n", encoding="utf-8")
    found = only(run, allow_code=True)
    assert found.benchmark.pas.value is None
    assert f"its code is not that of the run: {file} changed since the run was made" in (found.benchmark.reason or "")
    assert "--allow-changed-code" in (found.benchmark.reason or "")
    assert not (study / "ran.txt").exists()
    (study / file).write_text(REDUCE, encoding="utf-8")
    assert only(run, allow_code=True) == before


@pytest.mark.slow
def test_changed_code_runs_where_one_says_so_and_every_report_says_it_too(tmp_path: Path) -> None:
    run = changed_after(tmp_path)
    summary = summarize(run, allow_code="changed")
    assert summary.study is not None
    assert summary.study.conditions[0].benchmark.pas.value is not None
    told = "small: its own code (reduce:apart) made these numbers in its present state: reduce.py changed"
    assert [told in warning for warning in summary.warnings].count(True) == 1
    compared = compare(run_of(tmp_path / "other"), run, allow_code="changed")
    assert [told in warning for warning in compared.warnings].count(True) == 1


@pytest.mark.slow
def test_code_that_is_as_it_was_needs_no_second_leave_and_no_word(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    both = [summarize(run, allow_code=leave) for leave in (True, "changed")]
    assert both[0].study == both[1].study
    assert not any("made these numbers in its present state" in warning for one in both for warning in one.warnings)


def test_code_that_went_or_came_later_has_changed(tmp_path: Path) -> None:
    study = write(tmp_path / "study", f"{NEEDS}reducer: reduce:apart\n")
    run = put_through(tmp_path, study, say)
    (study / "reduce.py").write_text(REDUCE, encoding="utf-8")
    assert "reduce.py changed" in (only(run, allow_code=True).benchmark.reason or "")
    other = changed_after(tmp_path / "other")
    (tmp_path / "other" / "study" / "reduce.py").unlink()
    assert "there is no file reduce.py" in (only(other, allow_code=True).benchmark.reason or "")


@pytest.mark.slow
def test_a_run_that_recorded_no_code_says_that_it_may_have_changed(tmp_path: Path) -> None:
    """As runs were before the digest was kept."""
    run = run_of(tmp_path)
    (copy,) = run.info.kept
    info = msgspec.structs.replace(run.info, kept=(msgspec.structs.replace(copy, code=None),))
    (run.path / "run.json").write_bytes(with_checksum(msgspec.json.encode(info)))
    summary = summarize(RunFolder.open(run.path), allow_code=True)
    assert summary.study is not None
    assert summary.study.conditions[0].benchmark.pas.value is not None
    assert any("the run did not record it, so it may have changed" in warning for warning in summary.warnings)


@pytest.mark.slow
def test_a_resume_keeps_the_code_that_the_run_began_with(tmp_path: Path) -> None:
    study = write(tmp_path / "study", f"{NEEDS}reducer: reduce:apart\n")
    (study / "reduce.py").write_text(REDUCE, encoding="utf-8")
    said = {"dataset": {"kind": "study", "path": "study"}, "agent": {"type": "floor"}, "conditions": {"a": {}},
            "execution": {"num_repetitions": 1}}  # fmt: skip
    (tmp_path / "e.yaml").write_text(json.dumps(said), encoding="utf-8")
    command = ["run", str(tmp_path / "e.yaml"), "--results", str(tmp_path / "results"), "-q"]
    main([*command, "--limit", "3"])
    (path,) = (tmp_path / "results").iterdir()
    before = RunFolder.open(path).kept()[0].code
    (study / "reduce.py").write_text(f"{REDUCE}\n# another line\n", encoding="utf-8")
    assert main([*command, "--resume", str(path)]) == 0
    run = RunFolder.open(path)
    assert before is not None
    assert [copy.code for copy in run.kept()] == [before]
    assert "reduce.py changed" in (only(run, allow_code=True).benchmark.reason or "")
