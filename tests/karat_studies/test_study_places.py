"""Where studies lie, and several of them in one run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.karat_studies import studies

from karat.errors import BadDataset, BadOption
from karat.kinds import Dataset, kind_of
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.format import studies_of
from karat_studies.kinds.study.places import locate, shipped_studies, study_of
from karat_studies.kinds.study.samples import responses_of


def load(path: Path, **options) -> Dataset:
    return Study(Study.Options(**options)).load(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two studies that differ in their name alone."""
    for name in ("one", "two"):
        studies.write(tmp_path / "studies" / name, studies.STUDY.replace("study: small", f"study: {name}"))
    return tmp_path / "studies"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("studies/one/study.yaml", "studies/one/study.yaml"),
        ("studies/one", "studies/one/study.yaml"),
        ("studies/one/", "studies/one/study.yaml"),
        ("studies", "studies"),
        ("one", "studies/one/study.yaml"),
    ],
)
def test_a_study_is_a_file_a_folder_or_one_of_a_folder(text, found, folder):
    assert locate(text, folders=[folder.parent, folder]).path == folder.parent / found


def test_names_that_come_with_karat():
    shipped = shipped_studies()
    assert {name: locate(name, folders=[Path("/")]).path for name in shipped} == shipped
    everything = locate("shipped", folders=[Path("/")]).path
    assert {one.name for one in everything.iterdir() if (one / "study.yaml").is_file()} == set(shipped)


def test_a_device_or_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadOption, match="not a regular file"):
        locate("pipe", folders=[tmp_path])


@pytest.mark.parametrize("text", ["", " ", "a\0b", "x" * 5000, "../" * 50])
def test_what_is_no_path_is_refused(text, tmp_path):
    with pytest.raises(BadOption):
        locate(text, folders=[tmp_path])


def test_several_studies_are_told_apart_by_their_ids(folder):
    found = load(folder)
    one, two = load(folder / "one" / "study.yaml"), load(folder / "two" / "study.yaml")
    assert [sample.id for sample in found if sample.id.startswith("one/")] == [f"one/{sample.id}" for sample in one]
    assert [sample.id for sample in found if sample.id.startswith("two/")] == [f"two/{sample.id}" for sample in two]
    assert [sample.position for sample in found] == list(range(len(one) + len(two)))
    assert [study.study for study in studies_of(found)] == ["one", "two"]
    assert (
        {sample.metadata["study"] for sample in found} == {sample.detail["study"] for sample in found} == {"one", "two"}
    )


def test_another_study_leaves_participants_as_they_are(folder):
    before = load(folder)
    studies.write(folder / "again", studies.STUDY.replace("study: small", "study: again"))
    after = {sample.id: sample for sample in load(folder)}
    assert all(after[sample.id].turns == sample.turns for sample in before)
    assert all(after[sample.id].detail == sample.detail for sample in before)
    alone = load(folder / "one" / "study.yaml")
    assert [after[f"one/{sample.id}"].digest for sample in alone] == [sample.digest for sample in alone]


def test_the_digest_covers_every_study_and_its_materials(folder):
    digests = [load(folder).sha256]
    (folder / "two" / "materials" / "gain.md").write_text(f"{studies.MATERIALS['gain']} Think.", encoding="utf-8")
    digests.append(load(folder).sha256)
    digests.append(load(folder, studies=["one"]).sha256)
    studies.write(folder / "three", studies.STUDY.replace("study: small", "study: three"))
    digests.append(load(folder).sha256)
    assert len(set(digests)) == len(digests)


def test_responses_are_those_of_the_study_alone(folder):
    """So that SQL over `participant` means the same in every run."""
    alone, among = load(folder / "one" / "study.yaml").samples[0], load(folder).samples[0]
    assert responses_of(among, [{"choice": "A"}]) == responses_of(alone, [{"choice": "A"}])


def test_some_studies_and_some_of_their_arms(folder):
    chosen = {
        "studies": load(folder, studies="two"),
        "arms": load(folder, arms=["one/gain", "two/loss"]),
        "findings": load(folder, findings=["one/F1"]),
        "both": load(folder, arms=["one/gain", "two/rating"], findings=["one/F1", "two/F1"]),
    }
    assert {key: {(one.detail["study"], one.metadata["arm"]) for one in found} for key, found in chosen.items()} == {
        "studies": {("two", "gain"), ("two", "loss"), ("two", "rating")},
        "arms": {("one", "gain"), ("two", "loss")},
        "findings": {("one", "gain"), ("one", "loss")},
        "both": {("one", "gain")},
    }
    assert [study.study for study in studies_of(chosen["both"])] == ["one"]


def test_the_name_of_the_study_may_stand_before_those_of_its_parts(folder):
    path = folder / "one" / "study.yaml"
    assert list(load(path, arms=["one/gain"])) == list(load(path, arms=["gain"]))
    assert len(load(path, findings=["one/F1"])) == len(load(path, findings=["F1"])) == 152 + 155


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"studies": ["tow"]}, "dataset.studies: there is no study 'tow' (did you mean 'two'?)"),
        ({"arms": ["gain"]}, "dataset.arms: no study that is run has 'gain' (did you mean 'two/gain'?)"),
        ({"arms": ["one/gian"]}, "dataset.arms: no study that is run has 'one/gian' (did you mean 'one/gain'?)"),
        (
            {"findings": ["F1"]},
            "dataset.findings: no study that is run has 'F1' (known: one/F1, one/F2, two/F1, two/F2)",
        ),
        (
            {"arms": ["one/gain"], "findings": ["two/F1"]},
            "dataset.findings: none of the chosen arms is needed by these findings",
        ),
        (
            {"arms": ["one/rating"], "findings": ["one/F1"]},
            "dataset.findings: none of the chosen arms is needed by these findings",
        ),
    ],
)
def test_names_that_no_study_has(options, said, folder):
    with pytest.raises(BadOption) as caught:
        load(folder, **options)
    assert str(caught.value) == said


def test_studies_are_chosen_from_a_folder_of_several(folder):
    with pytest.raises(BadOption, match="is for a folder of several studies"):
        load(folder / "one" / "study.yaml", studies=["one"])


def test_faults_of_all_studies_come_at_once_with_their_folder(folder):
    (folder / "one" / "study.yaml").write_text(studies.STUDY.replace("expect: greater", "expect: grater", 1))
    (folder / "two" / "materials" / "gain.md").unlink()
    with pytest.raises(BadDataset) as caught:
        load(folder)
    assert [fault.place for fault in caught.value.faults] == [
        "one: findings.0.tests.0.expect",
        "two: arms.gain.prompt",
    ]


def test_two_studies_are_not_called_alike(folder):
    studies.write(folder / "two")
    studies.write(folder / "three")
    with pytest.raises(BadDataset) as caught:
        load(folder)
    assert str(caught.value).splitlines()[1:] == ["  two: study: is called 'small', like the study in 'three'"]


@pytest.mark.parametrize("name", ["a/b", "..", "two words", "-x", "x" * 101, ""])
def test_a_name_that_files_cannot_carry_is_a_fault(name, tmp_path):
    with pytest.raises(BadDataset) as caught:
        studies.read(tmp_path, studies.STUDY.replace("study: small", f"study: '{name}'"))
    assert [fault.place for fault in caught.value.faults] == ["study"]


@pytest.mark.slow
def test_a_folder_of_groups_keeps_them_apart():
    found = Study(Study.Options(findings=["beauty_contest/four_rounds/F4"])).load(locate("shipped", folders=[]).path)
    assert {sample.id.split("-")[0] for sample in found} == {"beauty_contest/half", "beauty_contest/two_thirds"}
    first = next(sample for sample in found if sample.id == "beauty_contest/half-group-01")
    rows = responses_of(first, [{"number": 3.0}])
    assert (rows[0].group, rows[0].participant) == ("half-group-01", "half-001")


def test_what_a_file_looks_like(folder, tmp_path):
    (tmp_path / "e.yaml").write_text("dataset: {path: x}\nagent: {type: floor}\nconditions: {}\n", encoding="utf-8")
    (tmp_path / "other.yaml").write_text(studies.STUDY, encoding="utf-8")
    (tmp_path / "q.jsonl").write_text('{"question": "?", "answer": "!"}\n', encoding="utf-8")
    kinds = {name: kind_of(tmp_path / name) for name in ("studies", "other.yaml", "studies/one", "q.jsonl")}
    assert kinds == {"studies": "study", "other.yaml": "study", "studies/one": "study", "q.jsonl": "golden"}
    assert study_of(tmp_path / "e.yaml") is None
    assert study_of(tmp_path / "other.yaml") == tmp_path / "other.yaml"
    assert study_of(tmp_path / "nothing") is None
