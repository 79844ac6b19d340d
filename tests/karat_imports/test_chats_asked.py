"""What holds chats under names nobody knows: it is asked, and each way that is shown works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.karat_imports.imported import imported

from karat.documents.columns import columns_of
from karat.documents.roles import Undecided, assign
from karat.errors import BadOption, OperatorError
from karat.records import Answer, Failure
from karat_imports.imported import import_results

PARCEL = {"ask": "Where is my parcel?", "fox": "It is on its way.", "elk": "It is at the post."}
LATE = {"ask": "Is it late now?", "fox": "By one day, sorry.", "elk": "It is on time."}


def write(folder: Path, rows: object) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(rows))
    return path


def answers(folder: Path, path: Path, **options: object) -> list[tuple[str, str, str]]:
    """Condition, question and answer of each trial."""
    (made,) = import_results("chats", [path], folder / "runs", options=options)
    questions = {sample.id: sample.turns[-1].question for sample in made.run.samples()}
    found = []
    for answer in made.run.events_of(Answer):
        found.append((answer.condition, questions[answer.sample], answer.text))
    return sorted(found)


def test_what_has_no_usual_names_is_asked_with_every_column_and_each_way_works(tmp_path: Path) -> None:
    path = write(tmp_path, [PARCEL, LATE])
    with pytest.raises(BadOption) as error:
        imported("chats", tmp_path / "runs", path)
    shown = str(error.value)
    assert "its columns: ask, fox, elk" in shown
    ways = re.findall(r"--set text=(\w+) --set agent=(\w+)", shown)
    assert ("ask", "fox") in ways
    assert ("ask", "elk") in ways
    for text, agent in ways:
        assert len(answers(tmp_path / agent / text, path, text=text, agent=agent)) == 2


def test_several_columns_of_answers_are_an_agent_each_whether_a_row_has_one_or_all(tmp_path: Path) -> None:
    path = write(tmp_path, [PARCEL, LATE])
    assert [row[0] for row in answers(tmp_path / "a", path, text="ask", agent=["fox", "elk"])] == [
        *["elk"] * 2,
        *["fox"] * 2,
    ]
    alone = [{"ask": "Where?", "fox": "Here it is."}, {"ask": "When?", "elk": "Now it is."}]
    path = write(tmp_path, alone)
    assert answers(tmp_path / "b", path, text="ask", agent=["fox", "elk"]) == [
        ("elk", "When?", "Now it is."),
        ("fox", "Where?", "Here it is."),
    ]


def test_a_second_reply_beside_the_one_that_is_read_is_asked(tmp_path: Path) -> None:
    rows = [{"user": row["ask"], "first_response": row["fox"], "assistant": row["elk"]} for row in (PARCEL, LATE)]
    path = write(tmp_path, rows)
    with pytest.raises(OperatorError, match=r"'agent=\[assistant, first_response\]'  # agents: each answers all"):
        imported("chats", tmp_path / "runs", path)


@pytest.mark.parametrize(
    "rows",
    [
        [{"at": 1, "is_bot": False, "body": "Where is it?"}, {"at": 2, "is_bot": True, "body": "It is here."}],
        [{"event": "user_message", "body": "Where is it?"}, {"event": "agent_response", "body": "It is here."}],
        [{"direction": "inbound", "body": "Where is it?"}, {"direction": "outbound", "body": "It is here."}],
    ],
)
def test_flags_events_and_directions_tell_who_speaks(tmp_path: Path, rows: list[object]) -> None:
    path = write(tmp_path, rows)
    assert answers(tmp_path, path) == [("not named", "Where is it?", "It is here.")]


def test_what_is_missing_or_unknown_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, [PARCEL, LATE])
    with pytest.raises(BadOption, match=r"no column is called 'fix'.*did you mean 'fox'.*its columns: ask, fox, elk"):
        imported_with(tmp_path, path, text="fix")
    with pytest.raises(BadOption, match=r"to name a speaker, add --set speaker=COLUMN"):
        imported_with(tmp_path, path, agent="Ann")
    spoken = [{"by": "Ann", "words": "Where is it?"}, {"by": "Ben", "words": "It is here."}]
    path = write(tmp_path, spoken)
    with pytest.raises(BadOption, match=r"which value of 'by' answers: 'Ann' \(1\), 'Ben' \(1\)"):
        imported_with(tmp_path, path, speaker="by", text="words")
    with pytest.raises(BadOption, match=r"nobody in 'by' is called 'bob'; there are 'Ann'"):
        imported_with(tmp_path, path, speaker="by", text="words", agent="Bob")
    assert answers(tmp_path, path, speaker="by", text="words", agent="Ben") == [
        ("not named", "Where is it?", "It is here.")
    ]


def imported_with(folder: Path, path: Path, **options: object) -> None:
    list(import_results("chats", [path], folder / "runs", options=options))


def test_messages_in_lists_can_be_named_by_their_paths(tmp_path: Path) -> None:
    turns = [{"wer": "K", "was": "Wo ist es?"}, {"wer": "B", "was": "Es ist hier."}]
    path = write(tmp_path, [{"id": 1, "verlauf": turns}, {"id": 2, "verlauf": turns[:1]}])
    found = answers(tmp_path, path, speaker="verlauf[].wer", text="verlauf[].was", agent="B")
    assert found == [("not named", "Wo ist es?", "Es ist hier.")]


def test_the_chats_of_all_branches_are_read(tmp_path: Path) -> None:
    def chat(text: str) -> dict[str, object]:
        said = [{"role": "user", "content": text}, {"role": "assistant", "content": "So."}]
        return {"title": text, "messages": said}

    by_user = {
        "u1": {"c1": chat("1"), "c2": chat("2")},
        "u2": {"c3": chat("3"), "c4": chat("4")},
        "u3": {"c5": chat("5")},
    }
    assert [row[1] for row in answers(tmp_path / "a", write(tmp_path, by_user))] == [*"12345"]
    beside = {"now": chat("1"), "before": [chat("2"), chat("3")], "updated": "today"}
    assert [row[1] for row in answers(tmp_path / "b", write(tmp_path, beside))] == [*"123"]


def test_a_pair_who_write_to_each_other_is_one_conversation(tmp_path: Path) -> None:
    rows = []
    for pair in ("+4912", "+4913"):
        for at in range(3):
            rows.append({"from": pair, "to": "+49", "is_bot": False, "body": f"Where is {at}?"})
            rows.append({"from": "+49", "to": pair, "is_bot": True, "body": f"It is at {pair}."})
    path = write(tmp_path, rows)
    with pytest.raises(BadOption, match=r"'conversation=\[from, to\]'  # 2 conversations"):
        imported("chats", tmp_path / "runs", path)
    assert len(answers(tmp_path, path, conversation=["from", "to"])) == 6


def test_calls_in_a_message_with_their_results_are_kept_and_other_keys_are_named(tmp_path: Path) -> None:
    call = {"toolName": "find", "args": {"name": "Ann"}, "result": {"found": 2}}
    said = [
        {"role": "user", "content": "Find Ann.", "mood": "calm"},
        {"role": "assistant", "content": "There are two.", "toolCalls": [call]},
    ]
    (made,) = import_results("chats", [write(tmp_path, [{"id": 1, "messages": said}])], tmp_path / "runs")
    (answer,) = made.run.events_of(Answer)
    assert answer.text == "There are two."
    assert [(call.tool, call.input, call.result) for call in answer.replies[0].tool_calls] == [
        ("find", {"name": "Ann"}, '{"found":2}')
    ]
    assert "not used: messages[].mood" in made.findings.notes


def test_messages_are_counted_and_one_answer_to_all_is_said(tmp_path: Path) -> None:
    rows = []
    for place in range(5):
        who = [("assistant", "Welcome."), ("user", f"Where is {place}?"), ("assistant", "To be written.")]
        rows.append({"id": place, "messages": [{"role": side, "content": text} for side, text in who]})
    (made,) = import_results("chats", [write(tmp_path, rows)], tmp_path / "runs")
    assert "15 messages: 10 used, 5 not (left out, or before what is asked)" in made.findings.notes
    assert "all 5 answers are the same text ('To be written.'): a placeholder?" in made.findings.notes


def test_what_a_model_left_unanswered_is_lost_and_no_other_model_was_asked_it(tmp_path: Path) -> None:
    rows = []
    for place, model in enumerate(("m1", "m1", "m2", "m2")):
        said = [{"role": "user", "content": f"Where is {place}?"}]
        if place != 1:
            said.append({"role": "assistant", "content": f"At {place}."})
        rows.append({"id": place, "model": model, "messages": said})
    (made,) = import_results("chats", [write(tmp_path, rows)], tmp_path / "runs")
    assert [failure.sample for failure in made.run.events_of(Failure)] == ["1"]
    assert made.run.info.sparse


def test_columns_of_messages_that_are_not_read_are_named(tmp_path: Path) -> None:
    rows = [
        {"sender": "user", "to": "Ann", "text": "Where is it?", "mood": "calm"},
        {"sender": "assistant", "to": "Ben", "text": "It is here.", "mood": "kind"},
    ]
    (made,) = import_results("chats", [write(tmp_path, rows)], tmp_path / "runs")
    assert "not used: to, mood" in made.findings.notes


def test_a_dialogue_of_people_with_a_label_may_be_what_is_asked() -> None:
    said = [{"speaker": "Caller", "text": "Hi, who is it?"}, {"speaker": "Ann", "text": "It is Ann."}]
    rows = [
        {"id": f"c{at}", "label": kind, "way": "phone", "dialogue": said} for at, kind in enumerate(["good", "bad"])
    ]
    result = assign(columns_of(rows), door="dataset", file="calls.json")
    assert isinstance(result, Undecided)
    assert result.readings[0].roles["question"] == ("dialogue",)


@pytest.mark.parametrize("timed", [False, True])
def test_chats_that_stand_newest_first_are_asked_or_read_by_their_times(tmp_path: Path, timed: bool) -> None:
    chats = []
    for number in range(6):
        said = [("assistant", f"It is on shelf {number}."), ("user", f"Where is book {number}?")]
        messages = []
        for place, (role, text) in enumerate(said):
            message = {"role": role, "content": text}
            if timed:
                message["created_at"] = str(1767225600000 - 1000 * place)
            messages.append(message)
        chats.append({"messages": messages})
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(chat) for chat in chats))
    options = {} if timed else {"order": "newest"}
    if not timed:
        with pytest.raises(BadOption, match=r"order=newest: .*add --set order=newest, else --set order=oldest"):
            imported("chats", tmp_path / "runs", path)
    first = answers(tmp_path, path, **options)[0]
    assert first == ("not named", "Where is book 0?", "It is on shelf 0.")


def test_cells_on_the_first_row_of_each_block_are_read_for_its_rows_and_their_id_names_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    block = "{},{},Client,Hello there\n,,Agent,Good morning\n,,Client,A house please\n,,Agent,Here is house {}\n"
    path.write_text("RecID,Day,author,words\n" + block.format(7, "Mon", 7) + block.format(9, "Tue", 9))
    for options in ({}, {"conversation": "RecID"}):
        (result,) = import_results("chats", [path], tmp_path / str(len(options)), options=options)
        assert "2 conversations" in result.findings.notes
        assert "'RecID', 'Day': on the first row of 2 blocks only" in result.findings.notes[0]
        assert sorted(sample.id for sample in result.run.samples())[::2] == ["7 turn 1", "9 turn 1"]


@pytest.mark.parametrize("whole", [False, True])
def test_a_pause_in_seconds_or_milliseconds_parts_what_one_user_says(tmp_path: Path, whole: bool) -> None:
    chats: dict[str, list[object]] = {"ann": [], "bob": []}
    rows = []
    for name, chat in chats.items():
        for hour in range(3):
            said = [("user", f"Is it {hour}, says {name}?"), ("bot", f"Yes, {name}, it is {hour}.")]
            for role, text in said:
                message = {"sender": role, "text": text, "timestamp": 1767225600000 + 3_600_000 * hour}
                chat.append(message)
                rows.append({"session_id": name, **message, "timestamp": 1767225600 + 3600 * hour})
    path = write(tmp_path, chats if whole else rows)
    for pause, conversations in ((30, 6), (90, 2)):
        (result,) = import_results("chats", [path], tmp_path / str(pause), options={"pause": pause})
        notes = result.findings.notes
        assert f"{conversations} conversations" in notes
        assert ("pause=90 splits no conversation: no gap is that long" in notes) == (pause == 90)
        (first, *_) = sorted(sample.id for sample in result.run.samples())
        assert first.startswith("ann")
        assert result.counts["answers"] == 6


def test_words_for_nobody_name_no_conversation_and_replies_that_report_errors_are_doubted(tmp_path: Path) -> None:
    rows = []
    for number, name in enumerate(["a", "a", "unknown", "Unknown", "n/a"]):
        reply = "Error connecting to the API: 'choices'" if number > 2 else f"It is page {number}."
        rows.append({"session_id": name, "user_input": f"Which page has picture {number}?", "model_reply": reply})
    (result,) = import_results("chats", [write(tmp_path, rows)], tmp_path / "runs")
    notes = result.findings.notes
    assert "'unknown' (2 rows), 'n/a' (1 row) in 'session_id' names no conversation" in notes
    assert "2 answers of 5 in 'answer' may be an error: Error connecting to the API: 'choices'" in notes
    assert "4 conversations" in notes


def test_messages_without_text_and_the_chats_of_nothing_else_are_counted(tmp_path: Path) -> None:
    said = [("a", False, "Where is it?"), ("a", True, "It is here."), ("a", False, ""), ("b", False, "")]
    rows = [{"conversation_id": name, "is_bot": bot, "body": text} for name, bot, text in said]
    (result,) = import_results("chats", [write(tmp_path, rows)], tmp_path / "runs")
    lost = "not read: 2 messages without text, with them all of 1 conversation (b)"
    assert lost in result.findings.notes


def test_the_text_of_a_part_is_in_the_field_that_its_type_names(tmp_path: Path) -> None:
    part = {"type": "html", "html": "<p>It is here.</p>", "text": None}
    pictured = {"type": "image_url", "image_url": "https://example.org/a.png"}
    asked = {"role": "user", "content": [{"type": "text", "text": "Where is it?", "html": None}]}
    path = write(tmp_path, [{"messages": [asked, {"role": "assistant", "content": [part, pictured]}]}])
    assert answers(tmp_path, path) == [("not named", "Where is it?", "<p>It is here.</p>")]


def test_a_table_of_two_texts_may_hold_right_answers_which_check_asks(tmp_path: Path) -> None:
    rows = [
        {"questions": "Where is it now?", "answers": "It is here."},
        {"questions": "Who is it?", "answers": "It is me."},
    ]
    note = "only 'questions' and 'answers': if they are questions and right answers to them, see `karat check FILE`"
    for number, more in enumerate(({}, {"latency": 3})):
        path = write(tmp_path, [{**row, **more} for row in rows])
        (result,) = import_results("chats", [path], tmp_path / str(number))
        assert (note in result.findings.notes) == (not more)


def test_exchanges_are_called_by_their_ids(tmp_path: Path) -> None:
    rows = [{"id": f"x{number}", "question": f"Is {number} even?", "response": "Yes, it is."} for number in range(6)]
    made = imported("chats", tmp_path / "runs", write(tmp_path, rows))
    assert [one.id for one in made.run.samples()] == [f"x{number}" for number in range(6)]
