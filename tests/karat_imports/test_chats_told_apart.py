"""What is one conversation, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.karat_imports.imported import imported

from karat.documents.rows import read_rows
from karat.errors import BadDataset, BadOption
from karat.layouts import unasked
from karat_imports.imported import import_results


def test_the_direction_of_calls_that_are_told_of_is_no_speaker(tmp_path: Path) -> None:
    rows = [{"direction": way, "summary": f"They spoke of {way} calls."} for way in ("Inbound", "Outbound")]
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(rows * 3))
    with pytest.raises(BadDataset, match=r"holds no chats.*name those that hold them"):
        imported("chats", tmp_path / "runs", path)


@pytest.mark.parametrize(
    "row",
    [
        {"Petitioner": "May it please the Court", "Respondent": "Thank you all"},
        {"subject": "Talk with Ann", "status": "done", "consultant_reply": None},
    ],
)
def test_columns_whose_names_or_cells_tell_nothing_are_not_offered_as_a_chat(
    tmp_path: Path, row: dict[str, str | None]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{**row, "year": year} for year in range(2000, 2009)]))
    with pytest.raises(BadDataset) as refused:
        imported("chats", tmp_path / "runs", path)
    assert "name those that hold them" in str(refused.value)
    assert "1)" not in str(refused.value)


def test_interviews_are_of_people_until_one_is_said_to_be_the_agent(tmp_path: Path) -> None:
    said = [("Interviewer", "How often?"), ("Respondent #1", "Daily."), ("Interviewer", "Why so?")]
    talk = [{"speaker": who, "text": text} for who, text in said]
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([{"id": number, "city": "Rome", "transcript": talk} for number in range(3)]))
    with pytest.raises(BadOption, match="none of them an assistant by name: 'Interviewer'"):
        imported("chats", tmp_path / "asked", path)
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "Interviewer"})
    assert made.counts["answers"] == 3
    other = unasked(read_rows(path))
    assert other is not None and "none of them an assistant" in other.message


def test_an_id_of_two_messages_in_a_log_with_times_names_an_exchange(tmp_path: Path) -> None:
    rows = ["role,text,ts,id"]
    for number in range(3):
        for who in ("user", "assistant"):
            rows.append(f"{who},{who} says {number},2025-11-25T17:35:{len(rows):02},x{number}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows[:5]))
    made = imported("chats", tmp_path / "few", path)
    assert {one.metadata["turn"] for one in made.run.samples()} == {1, 2}
    path.write_text("\n".join(rows))
    with pytest.raises(BadOption, match=r"conversation=id  # 3 conv.*\n.*conversation=all  # one conv"):
        imported("chats", tmp_path / "asked", path)


def test_numbered_turns_are_one_conversation_until_they_begin_again(tmp_path: Path) -> None:
    turns: list[dict[str, object]] = []
    for at in (1, 2, 3, 1, 2):
        asked = "" if at == 1 else f"Answer {at}"
        turns.append({"turn_number": at, "user_input": asked, "assistant_response": f"Question {len(turns)}"})
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"session_start": "2025-07-24", "turns": turns}))
    made = imported("chats", tmp_path / "runs", path)
    found = [(one.metadata["conversation"], one.turns[0].question) for one in made.run.samples()]
    assert sorted(found) == [
        ("chat 1", "Answer 2"),
        ("chat 1", "Answer 3"),
        ("chat 1", "[no text]"),
        ("chat 2", "Answer 2"),
        ("chat 2", "[no text]"),
    ]
    assert made.counts["answers"] == 5


@pytest.mark.parametrize("header", ["Chat ID: {}", "=== Conversation {} ===", "Session {}:"])
def test_lines_that_name_conversations_part_a_text(tmp_path: Path, header: str) -> None:
    lines = []
    for number in range(2, 5):
        lines += [header.format(number), "Customer: Hi.", "Agent (Ben): Hello.", ""]
    path = tmp_path / "log.txt"
    path.write_text("\n".join(lines))
    made = imported("chats", tmp_path / "runs", path)
    assert {one.metadata["conversation"] for one in made.run.samples()} == {"2", "3", "4"}
    assert made.counts["answers"] == 3
