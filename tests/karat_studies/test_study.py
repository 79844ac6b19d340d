"""Participants of a study as samples: who they are, what they are shown, and that it is the same every time."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from karat.errors import BadDataset, BadOption
from karat.kinds import Dataset
from karat.records import Sample
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.experiments import Response, to_study_tests
from karat_studies.kinds.study.people import people
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.prompts import answer_form, shown_to
from karat_studies.kinds.study.reading import read_study
from karat_studies.kinds.study.samples import question_of, read_reply, responses_of

from .studies import MATERIALS, STUDY, read, write


def load(folder: Path, text: str = STUDY, **options: Any) -> Dataset:
    return Study(Study.Options(**options)).load(write(folder, text) / "study.yaml")


def test_a_participant_is_a_sample_and_a_task_a_turn(tmp_path: Path) -> None:
    dataset = load(tmp_path)
    assert dataset.kind == "study"
    assert Counter(sample.metadata["arm"] for sample in dataset) == {"gain": 152, "loss": 155, "rating": 40}
    assert (dataset.samples[0].id, dataset.samples[0].position) == ("loss-001", 0)  # the largest arm begins
    first, last = (
        next(one for one in dataset if one.id == "gain-001"),
        next(one for one in dataset if one.id == "rating-040"),
    )
    assert len(first.turns) == 1
    assert first.turns[0].question == (
        MATERIALS["gain"] + "\n\nEnd your answer with one line in this form:\nchoice: A or B"
    )
    assert (last.id, [turn.detail for turn in last.turns]) == (
        "rating-040",
        [{"arm": "rating", "task": "materials/first.md"}, {"arm": "rating", "task": "materials/second.md"}],
    )
    assert last.detail["fields"][1] == {
        "second": {"type": "likert", "range": [1.0, 7.0]}, "why": {"type": "text", "optional": True}
    }  # fmt: skip
    assert set(first.metadata) == {"arm", "participant", "age", "gender", "occupation"}
    assert len({sample.id for sample in dataset}) == len(dataset)


def test_a_reply_is_read_with_the_fields_of_its_turn(tmp_path: Path) -> None:
    sample = load(tmp_path, arms=["rating"], per_arm=1).samples[0]
    assert read_reply(sample, 0, "first: 3").values == {"first": 3}
    assert read_reply(sample, 1, "second: 9").kinds == {"second": "out_of_range", "why": "missing"}


def test_the_same_seed_gives_the_same_persons(tmp_path: Path) -> None:
    assert list(load(tmp_path)) == list(load(tmp_path))
    assert list(load(tmp_path)) != list(load(tmp_path, seed=1))


def test_a_study_that_was_read_before_starts_no_process(tmp_path: Path) -> None:
    load(tmp_path)
    before = os.times()
    load(tmp_path)
    after = os.times()
    assert (after.children_user, after.children_system) == (before.children_user, before.children_system)


def test_more_participants_and_fewer_arms_leave_the_others_as_they_are(tmp_path: Path) -> None:
    def persons(**options: Any) -> dict[str, Any]:
        return {sample.id: (sample.metadata, sample.turns) for sample in load(tmp_path, **options)}

    few = persons(per_arm=3, arms=["loss"])
    assert list(few) == ["loss-001", "loss-002", "loss-003"]
    assert few.items() <= persons(per_arm=30).items()


def test_profiles_follow_the_population(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY.replace(
        "occupation: student",
        "occupation: student, education: [school, college], income: [0.5, 1.5], born: {north: 3, south: 1, east: 0}",
    ))  # fmt: skip
    found = [person.profile for person in people(study, ["gain", "loss"], seed=3, per_arm=500)]
    assert {type(one["age"]) for one in found} == {int}
    assert (min(one["age"] for one in found), max(one["age"] for one in found)) == (18, 25)
    assert {one["occupation"] for one in found} == {"student"}
    assert {one["education"] for one in found} == {"school", "college"}
    assert all(0.5 <= one["income"] <= 1.5 for one in found)
    shares = {name: sum(one["gender"] == name for one in found) / 1000 for name in ("female", "male")}
    assert shares == {"female": pytest.approx(0.5, abs=0.06), "male": pytest.approx(0.5, abs=0.06)}
    assert sum(one["born"] == "north" for one in found) / 1000 == pytest.approx(0.75, abs=0.06)
    assert not any(one["born"] == "east" for one in found)


def test_listed_persons_take_part_once_before_anybody_does_twice(tmp_path: Path) -> None:
    folder = write(tmp_path, STUDY.replace("per_arm: human", "per_arm: 2\n  given: people.csv"))
    (folder / "people.csv").write_text("name,age\nAda,36\nBob,41\nCleo,39\nDan,52\n", encoding="utf-8")
    study = read(tmp_path, (folder / "study.yaml").read_text(encoding="utf-8"))
    found = people(study, ["gain"], seed=0, per_arm=9)
    names = Counter(person.profile["name"] for person in found)
    assert set(names.values()) == {2, 3} and len(names) == 4
    assert study.attributes == ("age", "gender", "occupation", "name")
    ada = next(person.profile for person in found if person.profile["name"] == "Ada")
    assert ada["age"] in {36, "36"}  # the file's, not drawn
    assert people(study, ["gain"], seed=0, per_arm=9) == found != people(study, ["gain"], seed=1, per_arm=9)


def test_prompts_are_filled_and_end_with_the_form(tmp_path: Path) -> None:
    study = read(tmp_path)
    first, second = shown_to(study, ["rating"], {"occupation": "baker"}, seed="x")
    assert first.text == (
        "How much do you like rain, baker?\n\n"
        "End your answer with one line in this form:\nfirst: a whole number from 1 to 7\n\nTake your time."
    )
    assert second.text == MATERIALS["second"]  # it says how to answer itself


def test_values_of_the_arm_and_the_task_are_put_in(tmp_path: Path) -> None:
    text = STUDY.replace("gain: {prompt: materials/gain.md,", "gain: {prompt: materials/gain.md, values: {count: 600},")
    study = read(tmp_path, text, {"gain": "{{ count }} people. A or B?"})
    assert shown_to(study, ["gain"], {}, seed="")[0].text.startswith("600 people. A or B?\n\nEnd your answer")


def test_the_form_says_every_kind_of_answer(tmp_path: Path) -> None:
    study = read(tmp_path, STUDY.replace("{choice: {type: choice, options: [A, B]}}", (
        "{choice: {type: choice, options: [A, B, IV]}, many: {type: number, range: [0, null]}, "
        "few: {type: number, whole: true, range: [0, 9]}, any: {type: number}, "
        "order: {type: rank, options: [A, B]}, why: {type: text}, sure: {type: text, hint: very or not}}"
    )), {"gain": "A, B, or IV?"})  # fmt: skip
    assert answer_form(study.arms["gain"].answered).splitlines() == [
        "End your answer with 7 lines in this form:",
        "choice: A, B or IV",
        "many: a number, 0 or more",
        "few: a whole number from 0 to 9",
        "any: a number",
        "order: A, B in your order, the first one first, with commas between",
        "why: your words",
        "sure: very or not",
    ]


def test_a_random_order_differs_between_participants_and_not_between_runs(tmp_path: Path) -> None:
    text = STUDY.replace("derive: |", "order: random\nderive: |")
    orders = [tuple(turn.detail["task"] for turn in sample.turns) for sample in load(tmp_path, text, arms=["rating"])]
    assert set(Counter(orders)) == {
        ("materials/first.md", "materials/second.md"), ("materials/second.md", "materials/first.md")
    }  # fmt: skip
    assert min(Counter(orders).values()) > 8
    again = load(tmp_path, text, arms=["rating"])
    assert orders == [tuple(turn.detail["task"] for turn in sample.turns) for sample in again]
    fields = [list(one) for one in again.samples[0].detail["fields"]]
    assert [next(iter(one)) for one in fields] == [
        task.removeprefix("materials/").removesuffix(".md") for task in orders[0]
    ]


def test_within_subjects_everybody_goes_through_all_arms(tmp_path: Path) -> None:
    text = (
        STUDY.replace("derive: |", "design: within\norder: random\nderive: |")
        .replace("152", "155")
        .replace("n: 40", "n: 155")
    )
    text = text.replace("k: 43,", "k: 43, ").replace("t(39)", "t(154)").replace("r(38)", "r(153)")
    text = text.replace("78 % vs 28 %", "78 % vs 27.7 %").replace("sd: 2.0", "sd: 3.93")
    dataset = load(tmp_path, text, per_arm=6)
    assert [sample.id for sample in dataset] == [f"p-{number:03d}" for number in range(1, 7)]
    assert {tuple(sorted({turn.detail["arm"] for turn in sample.turns})) for sample in dataset} == {
        ("gain", "loss", "rating")
    }
    assert len({tuple(turn.detail["arm"] for turn in sample.turns) for sample in dataset}) > 1


def test_only_the_arms_of_chosen_findings_are_run(tmp_path: Path) -> None:
    assert {sample.metadata["arm"] for sample in load(tmp_path, findings=["F1"])} == {"gain", "loss"}
    assert {sample.metadata["arm"] for sample in load(tmp_path, findings="F2")} == {"rating"}
    assert {sample.metadata["arm"] for sample in load(tmp_path, findings=["F1"], arms=["gain", "rating"])} == {"gain"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"arms": ["gian"]}, r"dataset\.arms: the study has no 'gian' \(did you mean 'gain'\?\)"),
        ({"findings": ["F3"]}, r"dataset\.findings: the study has no 'F3'"),
        ({"findings": ["F1"], "arms": ["rating"]}, "none of the chosen arms is needed by these findings"),
    ],
)
def test_what_the_study_does_not_have_is_said(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        load(tmp_path, **options)


def test_digests_follow_what_a_participant_sees_and_is(tmp_path: Path) -> None:
    plain = load(tmp_path / "a", per_arm=2).samples
    form = load(tmp_path / "b", STUDY.replace("options: [A, B]", "options: [B, A]"), per_arm=2).samples
    older = load(tmp_path / "c", STUDY.replace("[18, 25]", "[60, 65]"), per_arm=2).samples
    assert plain[0].digest != form[0].digest and plain[0].digest != older[0].digest
    assert plain[2].digest == form[2].digest


@pytest.mark.parametrize("name", sorted(shipped_studies()))
def test_every_shipped_study_gives_participants_who_are_told_how_to_answer(name: str) -> None:
    dataset = Study(Study.Options(per_arm=2)).load(shipped_studies()[name])
    for sample in dataset:
        for turn, fields in zip(sample.turns, sample.detail["fields"], strict=True):
            assert ("{{" in turn.question) == (turn.detail.get("round", 1) > 1)
            assert all(f"{field}:" in turn.question for field in fields)


def test_in_a_game_a_sample_is_a_group_and_a_turn_one_member_in_one_round() -> None:
    dataset = Study(Study.Options(arms=["two_thirds"])).load(shipped_studies()["beauty_contest"])
    assert [(sample.id, sample.metadata["members"], len(sample.turns)) for sample in dataset] == [
        ("two_thirds-group-01", 17, 68), ("two_thirds-group-02", 17, 68), ("two_thirds-group-03", 17, 68),
        ("two_thirds-group-04", 16, 64),
    ]  # fmt: skip
    places = [(turn.detail["round"], turn.detail["member"]) for turn in dataset.samples[3].turns]
    assert places == [(number, member) for number in range(1, 5) for member in range(16)]
    members = [one["participant"] for sample in dataset for one in sample.detail["members"]]
    assert len(set(members)) == 67


def played(sample: Sample, numbers: list[list[int | None]]) -> list[str]:
    """What was asked, when the members said these numbers in each round; None: what cannot be read."""
    asked: list[str] = []
    replies: list[str | None] = []
    for said in numbers:
        for one in said:
            asked.append(question_of(sample, len(replies), replies))
            replies.append("I do not know" if one is None else f"number: {one}")
    return asked


def test_a_round_of_a_game_is_asked_from_the_last_one_alone() -> None:
    group = Study(Study.Options(arms=["half"], per_arm=3)).load(shipped_studies()["beauty_contest"]).samples[0]
    plain = played(group, [[10, 20, 60], [1, 2, 3], [7, 7, 7]])
    assert "you said 10. The numbers of the others had a mean of 40 and\na median of 40" in plain[3]
    assert "you said 60. The numbers of the others had a mean of 15 and\na median of 15" in plain[5]
    assert "you said 1. The numbers of the others had a mean of 2.5 and\na median of 2.5" in plain[6]
    other = played(group, [[99, 98, 97], [1, 2, 3], [7, 7, 7]])
    assert (plain[:3], plain[6:]) == (other[:3], other[6:])  # the first round is not seen in the third
    assert plain == played(group, [[10, 20, 60], [1, 2, 3], [50, 50, 50]])  # nobody sees their own round
    silent = played(group, [[10, None, 60], [1, 2, 3]])
    assert "had a mean of 60 and" in silent[3]
    assert "you said unknown" in silent[4]


def test_answers_become_rows_of_responses(tmp_path: Path) -> None:
    sample = load(tmp_path, arms=["rating"], per_arm=1).samples[0]
    assert responses_of(sample, [{"first": 3}, None]) == [
        Response(participant="rating-001", arm="rating", profile=sample.detail["profile"], values={"first": 3})
    ]
    assert [row.answered for row in responses_of(sample, [])] == [False]
    group = Study(Study.Options(arms=["half"], per_arm=2)).load(shipped_studies()["beauty_contest"]).samples[0]
    rows = responses_of(group, [{"number": 3.0}, {}, {"number": 1.0}])
    assert [(row.participant, row.group, row.round, dict(row.values), row.answered) for row in rows[:4]] == [
        ("half-001", "half-group-01", 1, {"number": 3.0}, True), ("half-002", "half-group-01", 1, {}, True),
        ("half-001", "half-group-01", 2, {"number": 1.0}, True), ("half-002", "half-group-01", 2, {}, False),
    ]  # fmt: skip
    assert len(rows) == 8


def test_a_played_game_has_its_tests() -> None:
    path = shipped_studies()["beauty_contest"]
    rows = []
    for group in Study(Study.Options()).load(path):
        values = [{"number": 40.0 / turn.detail["round"] + turn.detail["member"] / 7} for turn in group.turns]
        rows += responses_of(group, values)
    tests = to_study_tests(read_study(path), rows)
    assert {test.coverage for test in tests} == {1}
    assert [test.agent.missing for test in tests if test.kind != "mannwhitney"] == [None] * 7


def test_another_wording_is_shown_where_there_is_one(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "materials" / "gain.other.md").write_text(
        "A firm has 60 workers.\n\nA: 20 stay.\nB: A bet.", encoding="utf-8"
    )
    plain = Study(Study.Options(per_arm=1)).load(folder / "study.yaml")
    other = Study(Study.Options(per_arm=1, wording="other")).load(folder / "study.yaml")
    assert other.samples[0].turns[0].question.startswith("A firm has 60 workers.")
    assert other.samples[1] == plain.samples[1]
    assert other.samples[0].metadata == plain.samples[0].metadata
    assert (other.sha256 != plain.sha256, other.samples[0].digest != plain.samples[0].digest) == (True, True)
    with pytest.raises(
        BadDataset, match=r"no material has the wording 'othr', as gain\.othr\.md \(did you mean 'other'\?\)"
    ):
        Study(Study.Options(wording="othr")).load(folder / "study.yaml")


def test_another_wording_is_checked_as_well(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "materials" / "gain.other.md").write_text("A: 20 stay.\nC: A bet.", encoding="utf-8")
    with pytest.raises(BadDataset, match=r"does not say what 'B' of 'choice' is"):
        Study(Study.Options(wording="other")).load(folder / "study.yaml")


def test_options_can_be_shown_the_last_one_first(tmp_path: Path) -> None:
    sample = load(tmp_path, per_arm=1, reorder=True).samples[0]
    assert sample.turns[0].question == (
        "600 people are ill.\n\nB: One third of a chance that all are saved.\nA: 200 are saved.\n\nWhich one?\n\n"
        "End your answer with one line in this form:\nchoice: B or A"
    )
    assert read_reply(sample, 0, "choice: B").values == {"choice": "B"}


def test_options_stay_where_they_are_not_lines_of_their_own(tmp_path: Path) -> None:
    texts = {"gain": "Take A or B.\n\nA: one\n\nSomething else.\n\nB: two\n\nchoice: A or B"}
    folder = write(tmp_path, materials=texts)
    sample = Study(Study.Options(per_arm=1, reorder=True)).load(folder / "study.yaml").samples[0]
    assert sample.turns[0].question == texts["gain"].replace("choice: A or B", "choice: B or A")


@pytest.mark.parametrize("name", sorted(shipped_studies()))
def test_reordering_loses_no_line(name: str) -> None:
    plain, other = (Study(Study.Options(per_arm=1, reorder=way)).load(shipped_studies()[name]) for way in (False, True))
    for one, two in zip(plain, other, strict=True):
        for first, second in zip(one.turns, two.turns, strict=True):
            assert sorted(first.question.split()) == sorted(second.question.split())
