"""Whatever form the cells under a named path have, they are read, or one question is asked of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.errors import BadDataset
from karat.kinds import Dataset
from karat.kinds.golden import Golden
from karat.records import Sample

SHAPES: dict[str, tuple[str, Any]] = {
    "text": ("held", "tea"),
    "number": ("held", 12.5),
    "flag": ("held", True),
    "one text in a list": ("held", ["tea"]),
    "list": ("held", ["tea", "cake"]),
    "list of numbers": ("held", [2.03, 7]),
    "list as JSON": ("held", '["tea", "cake"]'),
    "list as Python": ("held", "['tea', 'cake']"),
    "list with commas": ("held", "tea, cake"),
    "list with bars": ("held", "tea | cake"),
    "list of lines": ("held", "- tea\n- cake"),
    "ids": ("held", "T-1,T-2"),
    "object": ("held", {"drink": "tea", "cups": 2}),
    "object in an object": ("held", {"order": {"drink": "tea"}, "paid": False}),
    "path": ("held.order.drink", {"order": {"drink": "tea"}}),
    "list of objects": ("held", [{"drink": "tea", "cups": 2}, {"drink": "cake", "cups": 1}]),
    "numbers with tolerances": ("held", [{"name": "sum", "value": 5.0, "tolerance": 0.1}]),
    "texts in objects": ("held", [{"text": "tea"}, {"text": "cake"}]),
    "path into a list": ("held[].drink", [{"drink": "tea"}, {"drink": "cake"}]),
    "path into a list, by dots": ("held.drink", [{"drink": "tea"}, {"drink": "cake"}]),
    "path into lists": ("held[].all[].drink", [{"all": [{"drink": "tea"}, {"drink": "cake"}]}]),
    "spellings": ("held", [["tea", "chai"], "cake"]),
    "any of": ("held", {"type": "words", "any_of": ["tea", "chai"]}),
    "calls": ("held", [{"tool": "tea", "arguments": {"cups": 2}}]),
    "reply": ("held", [{"role": "assistant", "content": "tea"}]),
    "chat": ("held", [{"role": "user", "content": "tea"}]),
}
ANSWERED: tuple[dict[str, Any], ...] = ({}, {"several": "any"}, {"several": "all"})


def load(folder: Path, role: str, shape: str, *, gap: bool = False, **options: Any) -> Dataset:
    path, value = SHAPES[shape]
    rows: list[dict[str, Any]] = [{"asked": f"What is {number}?", "held": value} for number in range(4)]
    if gap:
        rows[2]["held"] = None
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    roles: dict[str, Any] = {"question": "asked", "golden": None, role: path}
    return Golden(Golden.Options(roles=roles, **options)).load(file)


def texts(sample: Sample, role: str) -> str:
    (turn,) = sample.turns
    if role == "question":
        return turn.question
    if role == "criterion":
        return "\n".join(criterion.text for criterion in sample.criteria)
    return "\n".join([turn.golden or "", *turn.detail.get("answers", ())])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("role", ["question", "golden", "criterion"])
def test_a_named_path_is_read_or_asked_about_once(tmp_path: Path, role: str, shape: str) -> None:
    read = None
    asked = []
    for answer in ANSWERED:
        try:
            read = load(tmp_path, role, shape, **answer)
            break
        except BadDataset as error:
            asked.append(error.faults)

    if read is None:  # the question names the role that fits
        assert asked[-1][0].message.endswith("write `roles: {golden: null, criterion: held}`")
        role = "criterion"
        read = load(tmp_path, role, shape)
    assert {fault.place.partition(".")[0] for faults in asked for fault in faults} <= {"dataset"}
    assert all(len(faults) == 1 for faults in asked)
    assert len(read) == 4
    values = json.dumps(SHAPES[shape][1])
    for word in ("tea", "12.5", "2.03", "5.0", "T-2"):
        if word in values:
            assert all(word in texts(sample, role) for sample in read)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gap_under_a_named_path_is_no_criterion(tmp_path: Path, shape: str) -> None:
    read = load(tmp_path, "criterion", shape, gap=True)
    assert [bool(sample.criteria) for sample in read] == [True, True, False, True]


@pytest.mark.parametrize("shape", ["list", "path into a list", "object", "ids", "text"])
def test_a_gap_under_a_golden_path_may_be_declined(tmp_path: Path, shape: str) -> None:
    read = load(tmp_path, "golden", shape, gap=True, several="any", empty="declines")
    assert "decline" in (read.samples[2].turns[0].golden or "")


def test_documents_in_a_list_of_objects_are_offered_by_their_path(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [
        {"query": f"Where is {place}?", "category": "place", "relevant": [{"path": f"{place}.py", "lines": [1, 2]}]}
        for place in ("tea", "cake", "jam", "salt", "oil")
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BadDataset) as error:
        Golden(Golden.Options()).load(file)
    assert error.value.readings[0] == 'roles: {question: query, golden: "relevant[].path"}'
    roles: dict[str, Any] = {"question": "query", "golden": "relevant[].path"}
    read = Golden(Golden.Options(roles=roles)).load(file)
    assert texts(read.samples[0], "golden").startswith("tea.py")
    assert read.understood is not None
    assert read.understood.unused == ("category",)


@pytest.mark.parametrize(
    ("rows", "offered"),
    [
        (
            [{"turns": ["Hi.", "Where?"], "expected_output": "Here.", "lang": "en"}],
            ["roles: {question: turns, golden: expected_output}"],
        ),
        (
            [{"turns": [{"user": "Hi.", "expected_facts": ["a"]}, {"user": "Who?", "expected_facts": ["b", "c"]}]}],
            ['roles: {question: "turns[].user", golden: null, criterion: "turns[].expected_facts"}'],
        ),
    ],
)
@pytest.mark.needs_package("karat_conversations")
def test_turns_yet_to_be_asked_are_offered_as_one_message(tmp_path: Path, rows: list[Any], offered: list[str]) -> None:
    file = tmp_path / "tests.json"
    file.write_text(json.dumps(rows * 3))
    with pytest.raises(BadDataset, match="in several turns") as error:
        Golden(Golden.Options()).load(file)
    assert [*error.value.readings] == offered
