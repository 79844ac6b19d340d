"""`${NAME}`, and files that hold variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reading_experiments import GOOD

from karat.config import Experiment
from karat.config.environment import fill
from karat.errors import BadExperiment

Read = Callable[..., Experiment]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "one"),
        ("x${A}y${B}", "xoney${A}"),  # what was put in is not looked at again
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A and {A} and ${A", "$A and {A} and ${A"),
        ("", ""),
    ],
)
def test_references_are_filled_once(text: str, filled: str) -> None:
    assert fill(text, {"A": "one", "B": "${A}"}.__getitem__) == filled


@given(st.text())
def test_text_without_a_dollar_stays(text: str) -> None:
    assert fill(text.replace("$", ""), {}.__getitem__) == text.replace("$", "")


def test_any_text_of_the_file_may_name_variables(read: Read) -> None:
    text = GOOD.replace("questions.jsonl", "'${DATA}.jsonl'").replace(
        "baseline: {}", "a: {system_prompt: '${P} $${P}'}"
    )
    found = read(text, env={"DATA": "questions", "P": "Be ${brief}."})
    assert found.conditions[0].system_prompt == "Be ${brief}. ${P}"
    assert found.dataset.path.name == "questions.jsonl"


def test_an_alias_of_a_text_is_filled_once(read: Read) -> None:
    text = GOOD.replace("{baseline: {}}", "{a: {system_prompt: &p '${P}'}, b: {system_prompt: *p}}")
    found = read(text, env={"P": "${P}"})
    assert [condition.system_prompt for condition in found.conditions] == ["${P}", "${P}"]


def test_an_env_file_fills_what_the_environment_lacks(read: Read, folder: Path) -> None:
    (folder / ".env").write_text(
        "# a comment\n\nexport N=5\n"
        'P=\'single ${N}\'\nQ="double \\"quoted\\""  \nR=plain # remark\nS=a#b=c\nHOME=/nowhere\n'
    )
    text = GOOD.replace("baseline: {}", "a: {system_prompt: '${N}|${P}|${Q}|${R}|${S}|${HOME}'}")
    found = read(text, env={"HOME": "/home"}, env_file=folder / ".env")
    assert found.conditions[0].system_prompt == '5|single ${N}|double "quoted"|plain|a#b=c|/home'


def test_faults_of_an_env_file_come_with_the_others_and_show_no_value(read: Read, folder: Path) -> None:
    (folder / "env").write_text("A=1\ncanary-1234\n1X=canary-1234\n")
    with pytest.raises(BadExperiment) as caught:
        read(GOOD + "execution: {num_repetitions: 0}\n", env_file=folder / "env")
    assert [(fault.line, fault.message) for fault in caught.value.faults] == [
        (2, "must be NAME=value"),
        (3, "must be NAME=value"),
        (5, "must be at least 1, got 0"),
    ]
    assert "canary" not in str(caught.value)
    with pytest.raises(BadExperiment, match="--env-file gone: cannot be read: No such file"):
        read(GOOD, env_file="gone")
