"""`${NAME}`, and files that hold variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reading_experiments import GOOD

from karat.config import Experiment
from karat.config.environment import fill, is_variable, read_env_file
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


def test_an_env_file_that_is_no_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"A=caf\xe9\n")
    (tmp_path / "folder").mkdir()
    for path, says in (
        (tmp_path / "latin", "is not UTF-8; save it as UTF-8"),
        (tmp_path / "folder", "cannot be read: "),
        (tmp_path / "gone", "cannot be read: No such file or directory"),
    ):
        values, (fault,) = read_env_file(path)
        assert (values, fault.place) == ({}, f"--env-file {path}")
        assert fault.message.startswith(says)
    values, (fault,) = read_env_file(Path("a\0b"))
    assert (values, fault.place) == ({}, "--env-file")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("export A = 1 ", "1"),
        ("A=", ""),
        ("A='", "'"),
        ("A=''", ""),
        ("A='it is # no comment'", "it is # no comment"),
        ("A=1 # a comment", "1"),
        ("A=1#2", "1#2"),
        ("A='a\\nb'", "a\\nb"),
        ('A="a\\nb"', "a\nb"),
        ('A="say \\"b\\""', 'say "b"'),
        ('A="a\\\\b"', "a\\b"),
        ("A=\"mixed'", "\"mixed'"),
        ("\ufeffA=1", "1"),
        ("A=1=2", "1=2"),
    ],
)
def test_a_line_of_an_env_file_is_read_as_by_a_shell(tmp_path: Path, line: str, value: str) -> None:
    (tmp_path / "env").write_text(f"{line}\n\n# B=2\n")
    assert read_env_file(tmp_path / "env") == ({"A": value}, [])


@pytest.mark.parametrize(
    ("name", "usable"), [("A", True), ("_a1", True), ("1A", False), ("A-B", False), ("", False), ("A\n", False)]
)
def test_what_can_be_the_name_of_a_variable(name: str, usable: bool) -> None:
    assert is_variable(name) is usable
