"""Every study that comes with karat, in every form it has: as written, as a paraphrase, in other names and amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.karat_studies.studies import MATERIALS, STUDY, write

from karat_studies.kinds.study import Study
from karat_studies.kinds.study import copy as copied
from karat_studies.kinds.study.contents import contents_of
from karat_studies.kinds.study.copy import answer_copy
from karat_studies.kinds.study.format import Answered, StudyFile, Task, studies_of
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.prompts import described
from karat_studies.kinds.study.reading import read_study
from karat_studies.kinds.study.rounds import round_task

OPTIONS: dict[str, dict[str, Any]] = {
    "as written": {},
    "paraphrase": {"wording": "paraphrase"},
    "relabelled": {"relabel": True},
}
CANNOT = {"alcohol_norms", "impressions"}  # names and amounts are what they measure, or there are none
FORM = "End your answer"
FIGURE = r"\d+(?:,\d{3})*(?:\.\d+)?"
ROW, LABEL = r"^\|.*\d.*\|$", r"^([A-Z]{1,2}|ii?|\d)[:.] "  # of a table; of options and questions

every_study = pytest.mark.parametrize("name", list(shipped_studies()))
every_form = pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, id=f"{name}-{form}")
        for name in shipped_studies()
        for form in OPTIONS
        if not (form == "relabelled" and name in CANNOT)
    ],
)


@cache
def study(name: str, form: str = "as written") -> StudyFile:
    return read_study(shipped_studies()[name], **OPTIONS[form])


def tasks(found: StudyFile) -> Iterator[Task]:
    """Everything that anybody is shown; of a game its first round and a later one."""
    for arm in found.arms.values():
        yield from arm.shown if arm.rounds is None else (round_task(arm, number) for number in (1, 2))


def told(text: str) -> str:
    """What is said before the form of the answer."""
    return text.partition(FORM)[0]


def phrases(text: str, words: int) -> set[tuple[str, ...]]:
    found = re.findall(r"\w+", told(text).lower())
    return {tuple(found[at : at + words]) for at in range(len(found) - words + 1)}


@cache
def load(name: str, form: str) -> list:
    return list(Study(Study.Options.model_validate(OPTIONS[form])).load(shipped_studies()[name]))


@pytest.mark.quick(2)
@every_form
def test_every_form_is_read_and_passes_the_copy_test_in_both_layers(name: str, form: str) -> None:
    found = study(name, form)
    assert (found.wording, found.relabel) == (OPTIONS[form].get("wording"), "relabel" in OPTIONS[form])
    for copy in copied.tested_copies(found, copied.human_scores(found)):
        assert (copy.apart, copy.reason, copy.tests) == ((), None, len(found.tests))


@every_form
def test_every_form_has_the_same_arms_and_fields(name: str, form: str) -> None:
    plain, found = study(name), study(name, form)
    assert list(found.arms) == list(plain.arms)
    assert [arm.n for arm in found.arms.values()] == [arm.n for arm in plain.arms.values()]
    assert (found.findings, found.derive) == (plain.findings, plain.derive)
    for before, after in zip(tasks(plain), tasks(found), strict=True):
        assert (after.prompt, list(after.fields)) == (before.prompt, list(before.fields))
        for one, other in zip(before.fields.values(), after.fields.values(), strict=True):
            assert (other.type, other.labels, other.whole) == (one.type, one.labels, one.whole)
            assert _counted_range(other) == _counted_range(one)
            assert form == "relabelled" or other == one


def _counted_range(one: Answered) -> list[float | None] | None:
    """In the units of the study."""
    return None if one.range is None else [None if end is None else end / one.scale for end in one.range]


@every_form
def test_every_material_says_how_to_answer_each_field(name: str, form: str) -> None:
    found = study(name, form)
    for task in tasks(found):
        text = found.materials[task.prompt].rstrip()
        if not text.endswith("{{ answer_form }}"):
            lines = text.splitlines()[-len(task.fields) :]
            assert lines == [f"{field}: {described(one)}" for field, one in task.fields.items()], text


@every_form
def test_the_same_people_take_part_in_every_form(name: str, form: str) -> None:
    plain, other = load(name, "as written"), load(name, form)
    assert [(one.id, one.metadata) for one in other] == [(one.id, one.metadata) for one in plain]
    assert [[turn.detail for turn in one.turns] for one in other] == [
        [turn.detail for turn in one.turns] for one in plain
    ]
    if form != "as written":
        assert all(one.digest != two.digest for one, two in zip(plain, other, strict=True))
        assert study(name, form).sha256 != study(name).sha256


@every_study
def test_every_material_has_a_paraphrase_with_the_same_facts(name: str) -> None:
    """The same figures and no others, the same fields, tables and labels, and the same way to answer."""
    plain, other = study(name).materials, study(name, "paraphrase").materials
    assert list(other) == list(plain)
    for prompt, text in plain.items():
        said = other[prompt]
        assert said != text, prompt
        assert set(re.findall(FIGURE, told(said))) == set(re.findall(FIGURE, told(text))), prompt
        assert set(re.findall(r"\{\{.*?\}\}", said)) == set(re.findall(r"\{\{.*?\}\}", text)), prompt
        for line in (ROW, LABEL):
            assert re.findall(line, told(said), re.MULTILINE) == re.findall(line, told(text), re.MULTILINE), prompt
        assert said.partition(FORM)[2] == text.partition(FORM)[2], prompt


@every_study
def test_a_paraphrase_has_sentences_of_its_own(name: str) -> None:
    """Five words on end are seldom those of the other forms: tables, lists and rules of the answer are."""
    own = study(name, "paraphrase").materials
    for form in ["as written", *(["relabelled"] if name not in CANNOT else [])]:
        for prompt, text in study(name, form).materials.items():
            runs = phrases(text, 5)
            assert len(runs & phrases(own[prompt], 5)) <= 0.25 * len(runs), (prompt, form)


@cache
def of_the_benchmark(shared_data: Path) -> set[tuple[str, ...]]:
    """Six words on end in the materials that HumanStudy-Bench took from the papers."""
    files = list((shared_data / "humanstudy" / "studies").glob("*/materials/*.json"))
    assert files
    return {run for file in files for run in phrases(file.read_text(encoding="utf-8").replace("\\n", " "), 6)}


@every_study
def test_second_forms_do_not_have_the_sentences_of_a_benchmark(name: str, shared_data: Path) -> None:
    there = of_the_benchmark(shared_data)
    for form in ["paraphrase", *(["relabelled"] if name not in CANNOT else [])]:
        for prompt, text in study(name, form).materials.items():
            runs = phrases(text, 6)
            assert len(runs & there) <= 0.1 * len(runs), (prompt, runs & there)


@every_study
def test_what_a_study_holds_says_its_forms(name: str) -> None:
    found = contents_of(study(name), [], copies=False)
    assert (found.wordings, found.relabelled) == (("paraphrase",), name not in CANNOT)


@every_study
def test_the_readme_speaks_of_every_form(name: str) -> None:
    text = " ".join((shipped_studies()[name].parent / "README.md").read_text(encoding="utf-8").split())
    assert "## Paraphrase `wording: paraphrase` tells" in text
    assert ("## Relabelled There is no such form. " in text) == (name in CANNOT)
    assert ("## Relabelled `relabel: true` shows" in text) == (name not in CANNOT)


@pytest.mark.slow
def test_all_shipped_studies_run_in_a_paraphrase_at_once() -> None:
    found = Study(Study.Options(wording="paraphrase", per_arm=1)).load(shipped_studies()["framing"].parents[1])
    assert [one.study for one in studies_of(found)] == list(shipped_studies())
    assert all(one.wording == "paraphrase" for one in studies_of(found))


@pytest.mark.parametrize("name", [name for name in shipped_studies() if name not in CANNOT])
def test_the_copy_of_people_is_read_alike_in_other_amounts(name: str) -> None:
    """Answers of the copy are shown in the other amounts, read, and counted in the study's own."""
    plain, other = answer_copy(study(name)), answer_copy(study(name, "relabelled"))
    assert [(one.participant, one.arm, one.values.keys()) for one in other] == [
        (one.participant, one.arm, one.values.keys()) for one in plain
    ]
    for one, two in zip(plain, other, strict=True):
        for field, value in one.values.items():
            assert two.values[field] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)


def test_a_copy_of_scaled_answers_is_counted_as_a_run_counts_them(tmp_path: Path) -> None:
    """Without another form: what is said is divided, in the copy as in a run."""
    text = STUDY.replace("second: {type: likert, range: [1, 7]}", "second: {type: number, range: [0, 70], scale: 10}")
    folder = write(tmp_path, text, {"second": MATERIALS["second"].replace("1 to 7", "0 to 70")})
    row = '{"participant": "rating-001", "arm": "rating", "answers": {"first": 5, "second": 35, "why": "sun"}}\n'
    (folder / "copy.jsonl").write_text(row, encoding="utf-8")
    (one,) = answer_copy(read_study(folder))
    assert one.values == {"first": 5, "second": 3.5, "why": "sun"}


def test_texts_beside_nothing_are_no_wording(tmp_path: Path) -> None:
    """Only `gain.plain.md` beside a `gain.md` is one."""
    folder = write(tmp_path)
    for name in ("gain.plain", "gone.draft", "loss.relabelled"):
        (folder / "materials" / f"{name}.md").write_text(MATERIALS["gain"], encoding="utf-8")
    found = contents_of(read_study(folder), [], copies=False)
    assert (found.wordings, found.relabelled) == (("plain",), True)
