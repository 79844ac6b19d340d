"""Experiments over human studies: where the study lies, presets, and who a system prompt speaks to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.karat_studies import studies

from karat.config import load
from karat.config.prompts import presets
from karat.errors import BadExperiment
from karat.records import Condition

from .bad_study_experiments import CASES

AGENT = "agent: {type: floor}\n"
PROFILE = "  profile: {age: [18, 25], gender: {female: 0.5, male: 0.5}, occupation: student}\n"


@pytest.fixture
def several(folder: Path) -> Path:
    """`studies`: one with an age, gender and occupation, one with a country alone, one that says nothing of people."""
    for name, profile in {"one": PROFILE, "other": "  profile: {country: Ruritania}\n", "nobody": ""}.items():
        text = studies.STUDY.replace(PROFILE, profile).replace("study: small", f"study: {name}")
        materials = {} if name == "one" else {"first": "How much do you like rain?\n\n{{ answer_form }}"}
        studies.write(folder / "studies" / name, text, materials)
    (folder / "plain").mkdir()
    return folder


def said_of(text: str) -> str:
    path = Path("experiment.yaml")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadExperiment) as caught:
        load(path, env={})
    return str(caught.value)


def test_what_is_said_of_every_bad_experiment_over_studies(several, golden) -> None:
    said = [f"{'=' * 20} {name}\n{text}{'-' * 20}\n{said_of(text)}\n" for name, text in CASES.items()]
    golden("faults/study_experiments.txt", "\n".join(said))


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_a_line_and_says_what_is_wanted(name, several) -> None:
    for line in said_of(CASES[name]).splitlines()[1:]:
        assert "(line " in line
        assert len(line.partition("): ")[2]) > 10


def conditions(read, dataset: str, conditions: str) -> dict[str, Condition]:
    found = read(f"dataset: {{kind: study, path: {dataset}}}\n{AGENT}conditions: {conditions}\n").conditions
    return {one.name: one for one in found}


def test_a_preset_is_the_system_prompt_of_its_name(read) -> None:
    found = conditions(read, "framing", "{a: {preset: empty}, b: {preset: human}, c: {preset: demographic}, d: {}}")
    assert {name: one.system_prompt for name, one in found.items()} == {
        "a": None, "b": presets()["human"].text, "c": presets()["demographic"].text, "d": None,
    }  # fmt: skip


def test_the_digest_is_that_of_the_text(read) -> None:
    text = presets()["human"].text
    found = conditions(
        read, "framing", f"{{a: {{preset: human}}, b: {{system_prompt: '{text}'}}, c: {{preset: empty}}}}"
    )
    assert found["a"].digest == found["b"].digest != found["c"].digest


def test_the_resolved_settings_name_the_preset_and_hold_its_text(read) -> None:
    found = read(
        f"dataset: {{kind: study, path: framing}}\n{AGENT}conditions: {{a: {{preset: human}}, b: {{}}}}\n"
    ).resolved
    assert (found["conditions.a.preset"].value, found["conditions.a.preset"].source) == ("human", "file")
    assert found["conditions.a.system_prompt"].value == presets()["human"].text
    assert "conditions.b.preset" not in found


def test_the_command_line_sets_a_preset(read) -> None:
    text = f"dataset: {{kind: study, path: framing}}\n{AGENT}conditions: {{a: {{}}}}\n"
    found = read(text, settings=["conditions.a.preset=human"])
    assert found.conditions[0].system_prompt == presets()["human"].text


def test_presets_read_as_whole_sentences_for_any_attributes() -> None:
    from karat_studies.kinds.study.people import persona

    for preset in presets().values():
        for profile in ({}, {"age": 20}, {"gender": "female", "country": "Ruritania"}, {"education": "school"}):
            text = persona(preset.text or "", profile)
            assert "{{" not in text and "\n\n\n" not in text
            assert all(
                str(value) in text for name, value in profile.items() if f"profile.{name}" in (preset.text or "")
            )
    assert "country: Ruritania" in persona(presets()["background"].text, {"country": "Ruritania"})


@pytest.mark.parametrize("prompt", ["You are {{ profile.age }}.", "{{? profile.job }}Your job: {{ profile.job }}"])
def test_outside_of_studies_braces_are_text(read, prompt) -> None:
    golden = f"dataset: {{path: questions.jsonl}}\njudge: {{type: overlap}}\n{AGENT}"
    text = f"{golden}conditions: {{a: {{system_prompt: '{prompt}'}}}}\n"
    assert read(text).conditions[0].system_prompt == prompt


def test_a_preset_that_says_nothing_in_some_studies_is_named(several, read) -> None:
    text = f"dataset: {{kind: study, path: studies}}\n{AGENT}conditions: {{a: {{preset: demographic}}}}\n"
    end = "occupation: its participants learn only that they take part"
    [warning] = read(text).warnings
    assert warning.endswith(f"studies 'nobody', 'other' do not say age, gender, education or {end}")


def test_a_study_that_is_wrong_is_left_to_where_it_is_loaded(several, read) -> None:
    (several / "studies" / "one" / "study.yaml").write_text("study: 3\n", encoding="utf-8")
    condition = "{system_prompt: '{{ profile.x }}'}"
    experiment = read(f"dataset: {{kind: study, path: studies/one}}\n{AGENT}conditions: {{a: {condition}}}\n")
    assert experiment.conditions[0].system_prompt == "{{ profile.x }}"


def test_the_path_is_kept_as_it_is_written(read) -> None:
    found = read(f"dataset: {{kind: study, path: framing}}\n{AGENT}conditions: {{a: {{}}}}\n")
    assert found.resolved["dataset.path"].value == "framing"
    assert found.dataset.path.is_absolute() and found.dataset.path.name == "study.yaml"


def test_what_lies_here_comes_before_a_shipped_name(folder, read) -> None:
    studies.write(folder / "framing", studies.STUDY)
    found = read(f"dataset: {{kind: study, path: framing}}\n{AGENT}conditions: {{a: {{}}}}\n")
    assert found.dataset.path == folder / "framing" / "study.yaml"
    assert [warning.partition(": ")[2] for warning in found.warnings] == [
        "'framing' is here and is also the name of something that comes with karat; the one here is used"
    ]


def test_a_study_without_a_judge_is_scored_by_replication(read) -> None:
    found = read(f"dataset: {{kind: study, path: shipped}}\n{AGENT}conditions: {{a: {{}}}}\n")
    assert [one.type for one in found.scorers] == ["replication"]
