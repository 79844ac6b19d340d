"""Recorded answers of participants: who said what, in which task or round, and what nobody said."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from karat.errors import AgentFault, BadDataset
from karat.records import Sample, Turn
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.recorded import ParticipantColumns, RecordedParticipants
from karat_studies.kinds.study.samples import read_reply

FIELDS: dict[str, Any] = {"number": {"type": "number", "range": [0, 100]}}


def alone(name: str = "gain-001", **detail: Any) -> Sample:
    turns = tuple(Turn(question="?", detail={"arm": "gain", "task": task}) for task in ("one", "two"))
    fields = [{"first": FIELDS["number"]}, {"second": FIELDS["number"]}]
    return Sample(
        id=name, position=0, digest="d", turns=turns,
        detail={"study": "small", "profile": {}, "fields": fields, **detail},
    )  # fmt: skip


def group() -> Sample:
    turns = tuple(
        Turn(question="?", seat=member, detail={"arm": "game", "task": "next", "round": number, "member": member})
        for number in (1, 2) for member in (0, 1)
    )  # fmt: skip
    members = [{"participant": f"game-00{number}", "profile": {}} for number in (1, 2)]
    detail = {"study": "small", "members": members, "fields": [FIELDS] * 4}
    return Sample(id="game-group-01", position=1, digest="d", turns=turns, detail=detail)


def held(folder: Path, rows: Iterable[dict[str, Any]], **columns: str) -> RecordedParticipants:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RecordedParticipants(path, ParticipantColumns(**columns))


def said(found: RecordedParticipants, sample: Sample, condition: str = "a", repetition: int = 0) -> list[str | None]:
    try:
        replies = [found.reply(sample, turn, condition, repetition) for turn in range(len(sample.turns))]
    except AgentFault as fault:
        return ["missing" if fault.kind == "not_recorded" else fault.kind]
    return [None if reply.absent else reply.text for reply in replies]


ROWS: dict[str, tuple[list[dict[str, Any]], list[str | None]]] = {
    "a row a task": (
        [
            {"participant": "gain-001", "task": "two", "text": "2"},
            {"participant": "gain-001", "task": "one", "text": "1"},
        ],
        ["1", "2"],
    ),
    "a row for all tasks": (
        [{"participant": "gain-001", "answers": {"first": 1, "second": 2}}],
        ['{"first":1}', '{"second":2}'],
    ),
    "the exact one goes first": (
        [{"participant": "gain-001", "text": "any"}, {"participant": "gain-001", "task": "two", "text": "2"}],
        ["any", "2"],
    ),
    "another arm": ([{"participant": "gain-001", "arm": "loss", "text": "1"}], ["missing"]),
    "another condition": (
        [
            {"participant": "gain-001", "condition": "b", "text": "b"},
            {"participant": "gain-001", "task": "one", "text": "x"},
        ],
        ["x", None],
    ),
    "somebody else": ([{"participant": "gain-002", "text": "1"}], ["missing"]),
    "one task only": ([{"participant": "gain-001", "task": "one", "text": "1"}], ["1", None]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_every_task_gets_what_was_said_to_it(tmp_path: Path, kind: str) -> None:
    rows, wanted = ROWS[kind]
    assert said(held(tmp_path, rows), alone()) == wanted


def test_in_a_run_of_several_studies_a_row_may_name_its_own(tmp_path: Path) -> None:
    rows = [
        {"participant": "gain-001", "study": "small", "text": "small"},
        {"participant": "gain-001", "study": "other", "text": "other"},
    ]
    found = held(tmp_path, rows)
    assert said(found, alone("small/gain-001")) == ["small", "small"]
    assert said(found, alone("other/gain-001", study="other")) == ["other", "other"]


def test_every_member_gets_what_they_said_in_each_round(tmp_path: Path) -> None:
    rows = [
        {"participant": f"game-00{member}", "round": number, "answers": {"number": 10 * number + member}}
        for member in (1, 2) for number in (1, 2) if (member, number) != (2, 2)
    ]  # fmt: skip
    found = held(tmp_path, rows)
    assert said(found, group()) == ['{"number":11}', '{"number":12}', '{"number":21}', None]


def test_repetitions_count_up_or_are_named(tmp_path: Path) -> None:
    found = held(tmp_path, [{"participant": "gain-001", "text": text} for text in "xyz"])
    assert [said(found, alone(), repetition=number)[0] for number in range(4)] == ["x", "y", "z", "missing"]
    assert found.repetitions == 3
    named = held(tmp_path, [{"participant": "gain-001", "text": "x", "repetition": 1, "condition": "b"}])
    assert [said(named, alone(), "b", number)[0] for number in range(2)] == ["x", "missing"]
    assert list(named.conditions) == ["b"]


def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    found = held(tmp_path, [{"subject": 7, "said": "1"}], participant="subject", text="said")
    assert said(found, alone("7")) == ["1", "1"]


def test_every_row_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"participants": "gain-001", "text": "1"},
        {"participant": "gain-001"},
        {"participant": "gain-001", "text": "1", "repetition": -1},
        {"participant": "gain-001", "text": "1", "repetition": 0},
        {"participant": "gain-001", "text": "2", "repetition": 0},
        {"participant": ["gain-001"], "text": "2"},
    ]
    with pytest.raises(BadDataset) as caught:
        held(tmp_path, rows)
    assert [str(fault) for fault in caught.value.faults] == [
        "line 1: 'participant' must name the participant (did you mean 'participants'?)",
        "line 2: needs 'text', a text, or 'answers', an object (it has: participant)",
        "line 3: 'repetition' is -1, expected a whole number from 0",
        "line 5: a second row for 'gain-001' in the same place, repetition 0",
        "line 6: 'participant' must name the participant",
    ]


def test_what_serves_nobody_and_what_nobody_said_is_counted(tmp_path: Path) -> None:
    rows = [{"participant": who, "task": "one", "text": "1"} for who in ("gain-001", "gain-009")]
    assert held(tmp_path, rows).notes([alone(), group()], conditions=["a", "b"], repetitions=1) == {
        "rows": "2", "rows_used": "1", "turns": "12",
        "faults": "the file of answers has faults: 1 row for nobody in the run (left out); "
        "10 turns without a row (not answered)",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["beauty_contest", "framing", "side_effects"])
def test_the_copy_of_people_s_answers_that_comes_with_a_study_can_be_replayed(name: str) -> None:
    path = shipped_studies()[name]
    samples = Study(Study.Options()).load(path).samples
    found = RecordedParticipants(path.parent / "copy.jsonl", ParticipantColumns())
    assert "faults" not in found.notes(samples, conditions=["a"], repetitions=1)
    for sample in samples:
        for turn, text in enumerate(said(found, sample)):
            assert text is not None
            assert read_reply(sample, turn, text).kinds == {}
