"""Each question in a log of chats is a sample with the answer to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openpyxl import Workbook
from tests.karat_imports.imported import FILES, findings, imported

from karat.errors import BadDataset, BadOption, OperatorError
from karat.records import Answer, ToolCall
from karat_imports.imported import format_of, import_results
from karat_imports.importers.csv import Csv

CHATS = FILES / "chats"


def test_each_question_is_a_sample_with_its_answer(tmp_path: Path) -> None:
    made = imported("chats", tmp_path, CHATS)
    questions = {one.id: one.turns[0].question for one in made.run.samples()}
    found = {(questions[one.sample], one.condition): one.text for one in made.run.events_of(Answer)}
    assert found == {
        ("Hi?", "small-1"): "Hello.",
        ("Where is order 7?", "small-1"): "On its way.",
        ("Where is order 7?", "not named"): "It was sent on Tuesday.",
        ("Why?", "not named"): "Because.",
    }
    assert {one.id: one.metadata["turn"] for one in made.run.samples()}["c-1 turn 2"] == 2
    assert made.counts == {"answers": 4, "failures": 1, "scores": 0, "not run": 0}
    assert findings(made) == {("left out", "chat in which the user says nothing"): 1}


def test_calls_between_question_and_answer_belong_to_the_answer(tmp_path: Path) -> None:
    (answer,) = imported("chats", tmp_path, CHATS / "messages.jsonl").run.events_of(Answer)
    assert answer.replies[0].tool_calls == (ToolCall(tool="lookup", input={"order": 7}, result="sent on Tuesday"),)


def test_the_same_chat_again_is_a_repetition(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text((CHATS / "messages.jsonl").read_text() * 2)
    assert imported("chats", tmp_path / "runs", path).run.info.plan.repetitions == 2


def test_a_table_of_messages_and_turns_of_other_shapes_are_chats_too(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text("conversation_id,sender,text\n7,customer,Hi?\n7,agent,Hello.\n7,customer,Why?\n7,agent,So.\n")
    turns = tmp_path / "turns.json"
    turns.write_text('[{"id": "t", "turns": [{"user": "Hi?", "bot": "Hello."}]}]')
    said = tmp_path / "said.json"
    said.write_text(
        '[{"id": "s", "conversation": [{"role": "user", "text": "Hi?"}, {"role": "bot", "text": "Hello."}]}]'
    )
    pairs = tmp_path / "pairs.json"
    pairs.write_text(
        '[{"id": "p", "turns": [{"question": "Hi?", "answer": "Hello."}, {"question": "Why?", "answer": "So."}]}]'
    )
    cases = ((table, ["7 turn 1", "7 turn 2"]), (turns, ["t"]), (said, ["s"]), (pairs, ["p turn 1", "p turn 2"]))
    for path, names in cases:
        made = imported("chats", tmp_path / path.stem, path)
        assert [sample.id for sample in made.run.samples()] == names
        assert [answer.text for answer in made.run.events_of(Answer)] == ["Hello.", "So."][: len(names)]


def test_two_chats_in_a_row_are_answers_of_two_models(tmp_path: Path) -> None:
    chats: dict[str, object] = {}
    for name in ("a", "b"):
        said = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": f"Hello {name}."}]
        chats |= {f"conversation_{name}": said, f"model_{name}": f"model {name}"}
    path = tmp_path / "arena.jsonl"
    path.write_text(json.dumps({"question_id": "q", **chats, "winner": "model_a"}))
    made = imported("chats", tmp_path / "runs", path)
    found = {answer.condition: answer.text for answer in made.run.events_of(Answer)}
    assert found == {"model a": "Hello a.", "model b": "Hello b."}


@pytest.mark.parametrize(
    ("rows", "answers"),
    [
        pytest.param(
            [{"messages": [{"role": "user", "content": "Hi?"}], "response": "Hello."}],
            ["Hello."],
            id="the reply is in a column of its own",
        ),
        pytest.param(
            [{"input": [{"role": "user", "content": "Hi?"}], "output": {"role": "assistant", "content": "Hello."}}],
            ["Hello."],
            id="the reply is a message in a column of its own",
        ),
        pytest.param(
            [
                {
                    "request": {"model": "m", "messages": [{"role": "user", "content": "Hi?"}]},
                    "response": {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]},
                }
            ],
            ["Hello."],
            id="a request and its response",
        ),
        pytest.param(
            [
                {"chat": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello."}]},
                {"chat": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I."}]},
                {"chat": "User: Why?\nAssistant: So."},
            ],
            ["Hello.", "I.", "So."],
            id="a few chats have another shape",
        ),
        pytest.param(
            [{"messages": [{"role": who, "content": who} for who in ("user", "system", "user", "bot")]}],
            ["bot"],
            id="what the system says in a log is no answer",
        ),
        pytest.param(
            [{"turns": [{"speaker": who, "utterance": who} for who in ("USER", "SYSTEM", "USER")]}],
            ["SYSTEM"],
            id="the system answers in a dialogue",
        ),
        pytest.param(
            [{"messages": [{"type": "text", "direction": way, "text": way} for way in ("inbound", "outbound")]}],
            ["outbound"],
            id="what goes out is the answer",
        ),
        pytest.param(
            [{"conversations": [{"from": who, "value": who} for who in ("human", "function_call", "observation")]}],
            [],
            id="calls are nobody who speaks",
        ),
        pytest.param(
            [{"messages": [{"gonderen": name, "mesaj": name} for name in ("Müşteri", "Sistem", "Temsilci")]}],
            ["Temsilci"],
            id="in another language",
        ),
        pytest.param(
            [{"messages": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": '{"name": "I"}'}]}],
            ['{"name": "I"}'],
            id="a reply that is JSON",
        ),
    ],
)  # fmt: skip
def test_only_what_the_assistant_says_is_an_answer(tmp_path: Path, rows: list[object], answers: list[str]) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows))
    made = imported("chats", tmp_path / "runs", path)
    assert [answer.text for answer in made.run.events_of(Answer)] == answers
    assert not findings(made)


def test_a_session_of_a_coding_agent_is_a_conversation_of_what_its_user_asked(tmp_path: Path) -> None:
    def event(role: str, content: object, session: str = "s1") -> dict[str, object]:
        return {"type": role, "sessionId": session, "message": {"role": role, "content": content}, "cwd": "/project"}

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    rows = [
        {"type": "summary", "summary": "Looking around", "leafUUID": "1"},
        event("user", "What is here?"),
        event("assistant", [{"type": "text", "text": "I look."}, call]),
        event("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}]),
        event("assistant", [{"type": "text", "text": "One file."}]),
        event("user", "And there?", "s2"),
        event("assistant", "Nothing.", "s2"),
        {"type": "system", "subtype": "turn_duration", "durationMs": 5, "sessionId": "s1"},
        event("user", "Remove it."),
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    made = imported("chats", tmp_path / "runs", path)
    questions = {one.id: one.turns[0].question for one in made.run.samples()}
    replies = {questions[one.sample]: one.replies[0] for one in made.run.events_of(Answer)}
    assert {question: reply.text for question, reply in replies.items()} == {
        "What is here?": "One file.", "And there?": "Nothing.",
    }  # fmt: skip
    assert replies["What is here?"].tool_calls == (ToolCall(tool="Bash", input={"command": "ls"}, result="a.py"),)
    assert set(questions.values()) == {"What is here?", "And there?"}
    assert "2 conversations; 1 end with last words of a user, no question: no failure" in made.findings.notes


def test_chats_that_are_mostly_empty_are_chats(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hi?", "id": "1"}, {"role": "assistant", "content": "Hello.", "id": "2"}]
    path = tmp_path / "chats.json"
    path.write_text(
        json.dumps([{"title": "Chat", "pinned": False, "messages": said if n == 1 else []} for n in range(5)])
    )
    made = imported("chats", tmp_path / "runs", path)
    assert [answer.text for answer in made.run.events_of(Answer)] == ["Hello."]
    assert findings(made) == {("left out", "chat in which the user says nothing"): 4}
    with pytest.raises(BadDataset, match=r"`karat import chats` reads them$"):
        imported("csv", tmp_path / "others", path)


def test_one_file_whose_speakers_are_unclear_does_not_stop_the_others(tmp_path: Path) -> None:
    calls, plain = tmp_path / "calls.json", tmp_path / "plain.json"
    calls.write_text(json.dumps([{"sender": "Caller", "text": "Hi?"}, {"sender": "Recipient", "text": "Hello."}]))
    plain.write_text(json.dumps([{"turns": [{"user": "Hi?", "bot": "Hello."}]}]))
    (made,) = import_results("chats", [calls, plain], tmp_path / "runs")
    assert [answer.text for answer in made.run.events_of(Answer)] == ["Hello."]
    ((kind, text),) = findings(made)
    assert kind == "unreadable" and "none of them an assistant by name: 'Caller' (1), 'Recipient' (1)" in text


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "7", "talk": [{"speaker": "Caller", "text": "Hi?"}, {"speaker": "Recipient", "text": "Hello."}]}],
        [{"id": "7", "messages": [{"role": "Caller", "content": "Hi?"}, {"role": "Recipient", "content": "Hello."}]}],
        [{"sender": "Caller", "text": "Hi?"}, {"sender": "Recipient", "text": "Hello."}],
    ],
)
def test_who_answers_is_asked_where_no_name_tells(tmp_path: Path, rows: list[object]) -> None:
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(OperatorError, match=r"agent=NAME: .*'Caller'.*'Recipient'"):
        imported("chats", tmp_path / "runs", path)
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "Recipient"})
    assert [answer.text for answer in made.run.events_of(Answer)] == ["Hello."]


def asked(place: int, /, **more: object) -> dict[str, object]:
    """A chat whose first question is the same as that of others, and whose second is not."""
    said = ("user", "Hi?"), ("assistant", "Hello."), ("user", f"{place}?"), ("assistant", "So.")
    return {**more, "messages": [{"role": who, "content": text} for who, text in said]}


@pytest.mark.parametrize(
    ("rows", "repetitions", "samples"),
    [
        pytest.param([asked(1), asked(2)], 1, 4, id="without names"),
        pytest.param([asked(1, number=1), asked(1, number=2)], 1, 4, id="the same words under two numbers"),
        pytest.param([asked(1, by="x", transcript_id="a"), asked(1, by="x", transcript_id="b")], 1, 4),
        pytest.param([asked(1), asked(1)], 2, 2, id="the same words"),
        pytest.param([asked(1, repetition=1, uid="a"), asked(1, repetition=2, uid="b")], 2, 2, id="numbered"),
    ],
)
def test_chats_that_open_alike_are_repetitions_only_where_nothing_tells_them_apart(
    tmp_path: Path, rows: list[dict[str, object]], repetitions: int, samples: int
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"chat" if key == "messages" else key: row[key] for key in row} for row in rows]))
    made = imported("chats", tmp_path / "runs", path)
    assert made.run.info.plan.repetitions == repetitions
    assert len([*made.run.samples()]) == samples
    assert len([*made.run.events_of(Answer)]) == 4


def test_a_turn_of_pictures_keeps_its_reply_and_every_reply_without_a_place_is_counted(tmp_path: Path) -> None:
    picture = [{"type": "image_url", "image_url": {"url": "a.png"}}]
    said = [
        ("assistant", "Welcome."),
        ("user", picture),
        ("assistant", "A cat."),
        ("user", ""),
        ("user", "And now?"),
        ("assistant", "I look."),
        ("assistant", "A dog."),
        ("user", ""),
        ("assistant", "Still there?"),
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"id": "x", "messages": [{"role": who, "content": text} for who, text in said]}]))
    made = imported("chats", tmp_path / "runs", path)
    questions = {one.id: one.turns[0].question for one in made.run.samples()}
    assert {questions[one.sample]: one.text for one in made.run.events_of(Answer)} == {
        "[image]": "A cat.", "And now?": "I look.\nA dog.", "[no text]": "Still there?",
    }  # fmt: skip
    assert findings(made) == {("left out", "reply before the user says anything"): 1}
    assert "1 message joined with the one before, of the same speaker" in made.findings.notes


def test_what_one_speaker_says_in_succession_is_one_message_unless_it_is_marked_as_a_retry(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": "Which is cheaper?"},
        {"role": "assistant", "content": "The red one.", "attempt": 1},
        {"role": "assistant", "content": "The blue one.", "attempt": 2},
        {"role": "assistant", "content": "By far.", "attempt": 2},
        {"role": "user", "content": "And lighter?"},
        {"role": "assistant", "content": "I look it up."},
        {"role": "tool", "content": "red: 2 kg"},
        {"role": "assistant", "content": "The red one."},
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"id": "x", "messages": said}]))
    made = imported("chats", tmp_path / "runs", path)
    questions = {sample.id: sample.turns[0].question for sample in made.run.samples()}
    assert {questions[answer.sample]: answer.text for answer in made.run.events_of(Answer)} == {
        "Hi.\nWhich is cheaper?": "The blue one.\nBy far.", "And lighter?": "The red one.",
    }  # fmt: skip
    assert findings(made) == {("left out", "reply that another follows: the last counts"): 2}
    assert "2 messages joined with the one before, of the same speaker" in made.findings.notes


def test_each_list_in_a_list_is_a_conversation_whoever_speaks(tmp_path: Path) -> None:
    rounds = []
    for topic in ("Trees?", "Roads?"):
        said = [("host", topic), ("ann", f"More: {topic}"), ("bea", f"Fewer: {topic}")]
        rounds.append([{"role": who, "text": text} for who, text in said])
    path = tmp_path / "rounds.json"
    path.write_text(json.dumps(rounds))
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": ["ann", "bea"]})
    answers = {(answer.sample.split()[0], answer.condition): answer.text for answer in made.run.events_of(Answer)}
    assert answers == {
        ("Trees?", "ann"): "More: Trees?",
        ("Trees?", "bea"): "Fewer: Trees?",
        ("Roads?", "ann"): "More: Roads?",
        ("Roads?", "bea"): "Fewer: Roads?",
    }


def test_each_turn_of_chatgpts_export_is_read_along_the_last_branch_with_its_model(tmp_path: Path) -> None:
    def node(name: str, parent: str | None, who: str, parts: list[object], **more: object) -> dict[str, object]:
        metadata = {"model_slug": more.pop("model")} if "model" in more else {}
        message = {"author": {"role": who}, "content": {"parts": parts}, "metadata": metadata, **more}
        children = {"q": ["old", "call"], "call": ["end"], "end": ["p"], "p": ["z"]}.get(name, [])
        return {name: {"id": name, "parent": parent, "children": children, "message": message}}

    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file://1"}
    mapping = {
        **node("q", None, "user", ["Draw."]),
        **node("call", "q", "assistant", ['{"size": 3}'], recipient="painter", model="small"),
        **node("p", "end", "user", [picture, ""]),
        **node("z", "p", "assistant", ["A cat."], recipient="all", model="large"),
        **node("end", "call", "assistant", ["Done."], recipient="all", model="small"),
        **node("old", "q", "assistant", ["No."], recipient="all", model="small"),
    }
    for last in ({"current_node": "z"}, {}):
        path = tmp_path / f"export{len(last)}.json"
        nodes = dict(sorted(mapping.items(), key=lambda item: item[0] != "old"))  # the last has no children
        path.write_text(json.dumps([{"title": "t", **last, "mapping": nodes, "conversation_id": "c"}]))
        made = imported("chats", tmp_path / "runs", path)
        questions = {one.id: one.turns[0].question for one in made.run.samples()}
        answers = {questions[one.sample]: (one.text, one.condition) for one in made.run.events_of(Answer)}
        assert answers == {"Draw.": ("Done.", "small"), "[image]": ("A cat.", "large")}
        assert "'mapping': conversations; 1 message of other branches not read" in made.findings.notes
        assert f"not used: title{', current_node' if last else ''}" in made.findings.notes


def test_messages_of_people_are_put_in_order_once_one_is_said_to_answer(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "sent_at,group_id,author,text,started_at,level\n"
        "2026-01-02 10:00:03+00:00,a,dog,Why?,2026-01-02 10:00:00+00:00,1\n"
        "2026-01-02 10:00:02.5+00:00,a,cat,Hello.,2026-01-02 10:00:00+00:00,1\n"
        "2026-01-02 10:00:01+00:00,a,dog,Hi?,2026-01-02 10:00:00+00:00,1\n"
        "2026-01-02 10:00:04+00:00,a,cat,So.,2026-01-02 10:00:00+00:00,1\n"
        "2026-01-02 11:00:01+00:00,b,dog,Hi?,2026-01-02 11:00:00+00:00,1\n"
        "2026-01-02 11:00:02+00:00,b,cat,Bye.,2026-01-02 11:00:00+00:00,1\n"
    )
    with pytest.raises(OperatorError, match=r"6 messages of 2 people, .*: 'dog' \(3\), 'cat' \(3\); only"):
        imported("chats", tmp_path / "runs", path)
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "cat"})
    assert {one.sample: one.text for one in made.run.events_of(Answer)} == {
        "a turn 1": "Hello.", "a turn 2": "So.", "b": "Bye.",
    }  # fmt: skip
    assert (
        "a row: a message; 'group_id' names the conversation; 1 conversation put in the order of 'sent_at'"
        in made.findings.notes
    )
    assert "not used: started_at, level" in made.findings.notes


def test_a_sheet_with_chats_can_be_named_also_by_a_number(tmp_path: Path) -> None:
    book = Workbook()
    for name in ("0", "notes"):
        sheet = book.create_sheet(name)
        for row in (["chat_id", "sender", "text"], ["7", "customer", "Hi?"], ["7", "agent", f"Hello {name}."]):
            sheet.append(row)

    del book["Sheet"]
    book.save(tmp_path / "log.xlsx")
    with pytest.raises(OperatorError, match=r"--set sheet=NAME: .*must name .*: '0', 'notes'"):
        imported("chats", tmp_path / "runs", tmp_path / "log.xlsx")
    (made,) = import_results("chats", [tmp_path / "log.xlsx"], tmp_path / "runs", options={"sheet": 0})
    assert [answer.text for answer in made.run.events_of(Answer)] == ["Hello 0."]


def test_one_object_with_a_transcript_beside_other_lists_is_one_conversation(tmp_path: Path) -> None:
    said = [{"role": who, "content": who, "phase": "p"} for who in ("user", "assistant", "user", "assistant")]
    verdicts = {"verdicts": [{"question": "Is it?", "answer": "yes"}], "score": 1}
    path = tmp_path / "debate.json"
    path.write_text(json.dumps({"scenario_id": "s-1", "transcript": said, "judge": verdicts, "facts": [{"a": 1}]}))
    made = imported("chats", tmp_path / "runs", path)
    assert [answer.text for answer in made.run.events_of(Answer)] == ["assistant", "assistant"]
    assert [sample.id for sample in made.run.samples()] == ["s-1 turn 1", "s-1 turn 2"]
    assert "not used: judge, facts, messages[].phase" in made.findings.notes


def test_rows_of_a_question_and_an_answer_are_exchanges_of_their_own_and_judged_ones_are_left_to_csv(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"question": "Hi?", "answer": "Hello.", "time": "10:02:11"}\n' * 2)
    made = imported("chats", tmp_path / "a", path)
    assert [sample.id for sample in made.run.samples()] == ["row 1", "row 2"]
    (clock,) = {note for note in imported("csv", tmp_path / "c", path).findings.notes if "by their names" in note}
    assert "started=time" in clock
    path.write_text('{"question": "Hi?", "answer": "Hello.", "score": 0.5}\n' * 2)
    with pytest.raises(BadDataset, match=r"holds no chats.*use `karat import csv`"):
        imported("chats", tmp_path / "b", path)


def test_the_files_are_recognized_and_others_refused(tmp_path: Path) -> None:
    assert {format_of(path) for path in CHATS.iterdir() if path.suffix != ".md"} == {"chats"}
    other = tmp_path / "other.json"
    other.write_text('[{"messages": "none"}]')
    with pytest.raises(BadDataset, match="holds no chats"):
        imported("chats", tmp_path / "runs", other)


def test_a_judges_conversation_beside_an_answer_is_no_log_of_chats(tmp_path: Path) -> None:
    path = tmp_path / "graded.jsonl"
    judged = "### Instruction: Grade this.\n### Response: Score: 2"
    path.write_text(json.dumps({"task": "How many?", "student_answer": "Ten of them.", "model_result": judged}))
    assert Csv.reader_of(path) is None
    path.write_text(json.dumps({"task": "grading", "log": judged}))
    assert Csv.reader_of(path) == "chats"


def test_the_time_of_a_message_is_not_its_text_and_the_first_exchange_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "chat_id,message_timestamp,sender,message_text\n"
        "1,2026-01-02 10:00:01,user,Is it open today?\n"
        "1,2026-01-02 10:00:02,agent,Until five.\n"
        "2,2026-01-02 11:00:01,user,And tomorrow?\n"
        "2,2026-01-02 11:00:02,agent,All day.\n"
    )
    (made,) = import_results("chats", [path], tmp_path / "runs")
    assert {one.text for one in made.run.events_of(Answer)} == {"Until five.", "All day."}
    assert made.run.info.dataset.first_row == {"question": "Is it open today?", "answer": "Until five."}


@pytest.mark.parametrize(
    ("name", "text", "pairs"),
    [
        (
            "turns.jsonl",
            '{"agent_model": "m", "turns": [{"user_text": "Hi you?", "assistant_text": "Hello."}]}\n',
            [("Hi you?", "Hello.", "m")],
        ),
        (
            "halves.jsonl",
            '{"turns": [{"user_text": "Hi you?"}, {"assistant_text": "Hello."}]}\n',
            [("Hi you?", "Hello.", "not named")],
        ),
        (
            "dump.jsonl",
            '{"messages": [{"type": "human", "data": {"content": "Hi?"}}, {"type": "ai", "data": {"content": "So."}}]}',
            [("Hi?", "So.", "not named")],
        ),
        (
            "one.json",
            '{"messages": [{"id": 1, "role": "user", "content": "Hi?"}, {"id": 2, "role": "ai", "content": "So."}]}',
            [("Hi?", "So.", "not named")],
        ),
        (
            "said.txt",
            "[12/03/2024, 10:01:11] Anna: Hi?\n[12/03/2024, 10:01:30] Bot: So.\n",
            [("Hi?", "So.", "not named")],
        ),
        (
            "times.csv",
            'id,chat\n1,"[2026-07-14T20:47:02.000Z] Customer: Why me?\n[2026-07-14T20:47:09.000Z] Agent: So."\n',
            [("Why me?", "So.", "not named")],
        ),
        (
            "turned.csv",
            "session_id,turn_id,speaker,utterance\ns,2,bot,Hello you.\ns,1,user,Hi you?\n",
            [("Hi you?", "Hello you.", "not named")],
        ),
        (
            "speakers.csv",
            "chat_id,customer,agent\n1,Hi you?,\n1,,Hello you.\n2,Why is it?,\n2,,So it is.\n",
            [("Hi you?", "Hello you.", "not named"), ("Why is it?", "So it is.", "not named")],
        ),
    ],
)
def test_names_of_columns_and_keys_tell_who_speaks(
    tmp_path: Path, name: str, text: str, pairs: list[tuple[str, str, str]]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    run = imported("chats", tmp_path / "runs", path).run
    questions = {sample.id: sample.turns[0].question for sample in run.samples()}
    answers = [(questions[answer.sample], answer.text, answer.condition) for answer in run.events_of(Answer)]
    assert answers == pairs


def test_rows_of_a_message_and_the_reply_are_chats_of_a_session_or_of_one_turn(tmp_path: Path) -> None:
    rows = ["user_message,bot_response,session_id", "Hi you?,Hello you.,a", "Why is it?,So it is.,a"]
    path = tmp_path / "sessions.csv"
    path.write_text("\n".join(rows))
    assert [sample.id for sample in imported("chats", tmp_path / "a", path).run.samples()] == ["a turn 1", "a turn 2"]
    path.write_text("\n".join(row.rpartition(",")[0] for row in rows))
    made = imported("chats", tmp_path / "b", path)
    assert [sample.metadata["turn"] for sample in made.run.samples()] == [1, 1]
    assert any("a row is a chat" in note for note in made.findings.notes)


def test_times_before_unknown_names_tell_messages_and_the_speakers_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(
        'Ticket,Log\n1,"[2026-07-14T20:47:02Z] User 11: My lamp broke\n[2026-07-14T20:57:02Z] User 21: Send a photo"\n'
    )
    with pytest.raises(OperatorError, match=r"of 2 people.*'User 11' \(1\), 'User 21' \(1\)"):
        imported("chats", tmp_path / "a", path)
    (made,) = import_results("chats", [path], tmp_path / "b", options={"agent": "User 21"})
    assert [answer.text for answer in made.run.events_of(Answer)] == ["Send a photo"]


def test_keys_with_ids_of_speakers_tell_people(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    said = [{"senderID": who, "message": text} for who, text in (("17", "Hi you"), ("18", "Hello"), ("17", "So"))]
    path.write_text(json.dumps([{"id": "g", "msgs": said}]))
    with pytest.raises(OperatorError, match=r"of 2 people.*'17' \(2\), '18' \(1\)"):
        imported("chats", tmp_path / "runs", path)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_chats_over_several_lines_that_follow_each_other_are_all_read(tmp_path: Path, ending: str) -> None:
    chats = [{"id": f"c{n}", "messages": turns(f"How is {n}?", f"It is {n}.")} for n in range(3)]
    path = tmp_path / f"chats.{ending}"
    path.write_text("\n".join(json.dumps(chat, indent=2) for chat in chats))
    made = imported("chats", tmp_path / "runs", path)
    assert [answer.text for answer in made.run.events_of(Answer)] == ["It is 0.", "It is 1.", "It is 2."]


def turns(asked: str, said: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]


def test_an_exported_group_has_the_messages_of_its_people_and_several_may_be_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "group.txt"
    path.write_text(
        "13/08/2020, 08:19 - Messages are encrypted. Learn more.\n"
        "13/08/2020, 08:19 - \u200e\u202aAnn\u202c created group\n"
        "13/08/2020, 08:20 - Ann: Where is\nnote: the key?\n"
        "13/08/2020, 08:21 - Bob Lee: On the shelf\n"
        "14/08/2020, 9:21 PM - \u202a+44 7400 1\u202c: No: the drawer\n"
        "14/08/2020, 9:23 PM - Ann: Thanks\n"
    )
    with pytest.raises(OperatorError, match=r"4 messages of 3 people, .*: 'Ann' \(2\), 'Bob Lee' \(1\), '\+44 7400 1'"):
        imported("chats", tmp_path / "a", path)
    (made,) = import_results("chats", [path], tmp_path / "b", options={"agent": ["Bob Lee", "+44 7400 1"]})
    assert [sample.turns[0].question for sample in made.run.samples()] == ["Where is\nnote: the key?"]
    answers = {answer.condition: answer.text for answer in made.run.events_of(Answer)}
    assert answers == {"Bob Lee": "On the shelf", "+44 7400 1": "No: the drawer"}


def test_empty_lines_part_the_conversations_of_a_text_and_lines_without_speakers_are_none(tmp_path: Path) -> None:
    path = tmp_path / "dialogues.txt"
    path.write_text("П: Да?\nБ: Нет.\nП: Нет?\nБ: Да.\n\nП: Как?\nБ: Так.\n")
    (made,) = import_results("chats", [path], tmp_path / "a", options={"agent": "Б"})
    assert [sample.metadata["turn"] for sample in made.run.samples()] == [1, 2, 1]
    path.write_text("Где ключ?\nНа полке.\n")
    with pytest.raises(OperatorError, match="no conversation: its lines have no speakers"):
        imported("chats", tmp_path / "b", path)


def test_a_chat_without_the_named_agent_is_counted_as_that(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("channel,author,text\na,dog,Why?\na,cat,So.\nb,dog,Hi?\nb,cow,Moo.\n")
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "cat"})
    assert [answer.text for answer in made.run.events_of(Answer)] == ["So."]
    assert any("chat without 'cat'" in what for _, what in findings(made))


def test_chatgpts_export_is_read_to_the_leaf_below_its_current_node(tmp_path: Path) -> None:
    def node(parent: str | None, children: list[str], role: str, text: str) -> dict[str, object]:
        message = {"author": {"role": role}, "content": {"parts": [text]}}
        return {"parent": parent, "children": children, "message": message}

    tree = {
        "r": node(None, ["x", "a"], "user", "Hi?"),
        "x": node("r", [], "assistant", "No."),
        "a": node("r", [], "assistant", "Yes."),
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": "c", "current_node": "r", "mapping": tree}]))
    assert [answer.text for answer in imported("chats", tmp_path / "runs", path).run.events_of(Answer)] == ["Yes."]


@pytest.mark.parametrize(
    ("name", "held", "pairs"),
    [
        pytest.param(
            "coach.json",
            [
                {
                    "turns": [
                        {"system_utterance": {"text": "What is it?"}, "user_utterance": {"text": "Rice."}},
                        {"system_utterance": {"text": "How much?"}},
                    ]
                }
            ],
            [("Rice.", "How much?")],
            id="an object a speaker",
        ),
        pytest.param(
            "lists.json",
            [{"user_utterances": ["Hi?", "Why?"], "ai_utterances": ["Hello.", "So."]}],
            [("Hi?", "Hello."), ("Why?", "So.")],
            id="a list a speaker",
        ),
        pytest.param(
            "sales.json",
            {
                name: {
                    "estado": "ok",
                    "historial": [
                        {"rol": "sistema", "mensaje": "Hola."},
                        {"rol": "cliente", "mensaje": f"Precio {name}?"},
                        {"rol": "sistema", "mensaje": "Gratis."},
                    ],
                }
                for name in ("a", "b")
            },
            [("Precio a?", "Gratis."), ("Precio b?", "Gratis.")],
            id="chats by name, with a system that answers",
        ),
        pytest.param(
            "rasa.json",
            {
                "sender_id": "u",
                "events": [
                    {"event": "action", "name": "listen", "timestamp": 1},
                    {"event": "user", "text": "Hi?", "timestamp": 2},
                    {"event": "bot", "text": "Hello.", "timestamp": 3},
                ],
            },
            [("Hi?", "Hello.")],
            id="Rasa's events",
        ),
        pytest.param(
            "wrapped.json",
            [
                {
                    "log": [
                        {"gptMessage": {"role": "user", "content": "Hi?"}},
                        {"gptMessage": {"role": "ai", "content": "So."}},
                    ]
                }
            ],
            [("Hi?", "So.")],
            id="messages below a name",
        ),
        pytest.param(
            "chainlit.json",
            [{"steps": [{"type": "user_message", "output": "Hi?"}, {"type": "assistant_message", "output": "So."}]}],
            [("Hi?", "So.")],
            id="Chainlit's steps",
        ),
        pytest.param(
            "gradio.json",
            [{"history": [["Hi you?", "So."], ["And?", "Yes."]]}] * 2,
            [("Hi you?", "So."), ("And?", "Yes.")] * 2,
            id="Gradio's pairs",
        ),
        pytest.param(
            "dialogflow.json",
            [{"session": "s", "queryResult": {"queryText": f"{at}?", "fulfillmentText": "So."}} for at in "ab"],
            [("a?", "So."), ("b?", "So.")],
            id="Dialogflow's results",
        ),
    ],
)
def test_turns_may_lie_by_speaker_and_chats_by_name(
    tmp_path: Path, name: str, held: object, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(held))
    run = imported("chats", tmp_path / "runs", path).run
    questions = {sample.id: sample.turns[0].question for sample in run.samples()}
    assert [(questions[answer.sample], answer.text) for answer in run.events_of(Answer)] == pairs


def test_names_with_a_time_and_a_message_are_people(tmp_path: Path) -> None:
    path = tmp_path / "chat.csv"
    path.write_text("Date,Time,Name,Message\n11.04.20,09:05,Mum,Marcus est.\n11.04.20,10:46,Marco,Tenet.\n")
    with pytest.raises(OperatorError, match=r"2 messages of 2 people, .*'Mum' \(1\), 'Marco' \(1\)"):
        imported("chats", tmp_path / "runs", path)


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"user": "{}", "text": "Hi", "ts": "1690000000.01"}, ("U1", "U2")),
        (
            {"author": {"name": "{}", "isBot": False}, "content": "Hi", "timestamp": "2026-01-02T10:00:00"},
            ("ann", "bob"),
        ),
        (
            {"envelope": {"sourceName": "{}", "timestamp": 1690000000000, "dataMessage": {"message": "Hi"}}},
            ("Ann", "Bob"),
        ),
    ],
    ids=["Slack", "Discord", "Signal"],
)
def test_exports_of_groups_name_their_people(
    tmp_path: Path, message: dict[str, object], names: tuple[str, str]
) -> None:
    path = tmp_path / "export.json"
    said = [json.loads(json.dumps(message).replace("{}", name)) for name in (*names, names[0])]
    path.write_text(json.dumps(said))
    with pytest.raises(OperatorError, match=rf"3 messages of 2 people, .*'{names[0]}' \(2\), '{names[1]}' \(1\)"):
        imported("chats", tmp_path / "runs", path)


def test_a_chat_that_is_saved_after_each_turn_counts_once(tmp_path: Path) -> None:
    whole = [*turns("Hi?", "Hello."), *turns("Open?", "At nine."), *turns("Bye.", "Bye.")]
    chats = [{"session_id": "s1", "messages": whole[:end]} for end in (2, 4, 6)]
    chats += [{"session_id": "s2", "messages": turns("Hi?", "Hello.")} for _ in range(2)]  # saved twice
    path = tmp_path / "saved.jsonl"
    path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    made = imported("chats", tmp_path / "runs", path)
    assert made.counts["answers"] == 4
    assert findings(made) == {("left out", "chat that another record of it continues or repeats"): 3}

    path.write_text("".join(json.dumps(chat) + "\n" for chat in reversed(chats)))  # the newest first
    assert imported("chats", tmp_path / "reversed", path).counts["answers"] == 4


def test_the_model_may_be_in_an_object_beside_the_messages(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    lines = []
    for model in ("small", "large"):
        said = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": f"I am {model}."}]
        lines.append(json.dumps({"conversation": said, "metadata": {"responder_model": model}}))
    path.write_text("\n".join(lines))
    assert imported("chats", tmp_path / "runs", path).run.info.plan.conditions == ("small", "large")


def test_who_answers_is_said_and_who_is_neither_is_counted(tmp_path: Path) -> None:
    said = [("client", "Hi?"), ("admin", "One moment."), ("shop bot", "Hello."), ("client", "Bye.")]
    path = tmp_path / "log.json"
    path.write_text(json.dumps([{"id": 1, "talk": [{"from": who, "text": text} for who, text in said]}]))
    made = imported("chats", tmp_path / "runs", path)
    notes = made.run.info.source["notes"]
    assert "who answers: 'shop bot' (1)" in notes
    assert "who asks: 'client' (2)" in notes
    assert findings(made)["left out", "message of 'admin', neither user nor agent"] == 1


def test_answers_that_may_be_errors_are_doubted(tmp_path: Path) -> None:
    chats = []
    for number in range(8):
        said = [
            {"role": "user", "content": f"Say {number}!"},
            {"role": "assistant", "content": "Error: 500 from server"},
        ]
        chats.append({"id": f"c{number}", "messages": said})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(chats))
    assert "may be an error" in imported("chats", tmp_path / "runs", path).run.info.source["notes"]


def test_a_log_that_grows_by_a_turn_a_record_is_one_chat(tmp_path: Path) -> None:
    turns = [{"user": f"Ask {number}", "bot": f"Say {number}"} for number in range(4)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"id": end, "history": turns[:end]}) for end in range(1, 5)))
    made = imported("chats", tmp_path / "runs", path)
    assert made.counts["answers"] == 4
    assert findings(made) == {("left out", "chat that another record of it continues or repeats"): 3}

    others = [[{"user": "Bye", "bot": "Bye"}, *turns[2:]][:end] for end in (1, 2)]  # saved twice
    lines = [json.dumps({"id": f"o{end}", "history": chat}) for end, chat in enumerate(others)]
    path.write_text("\n".join([path.read_text(), *lines]))
    made = imported("chats", tmp_path / "again", path)
    assert made.counts["answers"] == 6
    assert findings(made) == {("left out", "chat that another record of it continues or repeats"): 4}


def test_a_chat_that_begins_as_another_is_its_own(tmp_path: Path) -> None:
    turns = [{"user": "Hi", "bot": "Hello"}, {"user": "Where?", "bot": "Here"}]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps({"id": end, "history": turns[:end]}) for end in (1, 2)))
    assert imported("chats", tmp_path / "runs", path).counts["answers"] == 3


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("id,prompt,followup\n1,Is it dry?,Are you sure?\n", "no replies"),
        ("conversation_id,role,content\n1,user,Is it dry?\n1,user,Are you sure?\n", "none of an assistant"),
        ('id,text,responses\n1,Hello traveller,"[{""text"": ""Yes""}]"\n', "holds no chats"),
    ],
)
def test_what_nobody_answered_is_no_log(tmp_path: Path, table: str, said: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(table)
    with pytest.raises(OperatorError, match=said):
        imported("chats", tmp_path / "runs", path)


def test_what_was_asked_in_words_is_the_question_of_a_log_beside_a_label(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("message,intent,provider,model,reply\nGood day to you,hi,p,m-1,Yo\nWhere is it?,place,p,m-1,Here\n")
    made = imported("chats", tmp_path / "runs", path)
    assert [sample.turns[0].question for sample in made.run.samples()] == ["Good day to you", "Where is it?"]
    assert {answer.condition for answer in made.run.events_of(Answer)} == {"m-1"}


_MESSAGES = [
    ("2026-01-01T09:00", "ann", "user", "Open?"),
    ("2026-01-01T09:01", "ann", "assistant", "At nine."),
    ("2026-01-01T09:02", "bob", "user", "Closed?"),
    ("2026-01-01T09:03", "bob", "assistant", "At six."),
    ("2026-01-01T12:00", "ann", "user", "Today?"),
    ("2026-01-01T12:01", "ann", "assistant", "Yes."),
]


@pytest.mark.parametrize(
    ("chosen", "turns"),
    [
        ({"conversation": "patient"}, [1, 2, 1]),
        ({"conversation": "patient", "pause": 30}, [1, 1, 1]),
        ({"pause": 30}, [1, 2, 1]),
        ({"conversation": "all"}, [1, 2, 3]),
    ],
)
def test_what_groups_messages_is_asked_with_each_way_and_what_is_chosen_counts(
    tmp_path: Path, chosen: dict[str, object], turns: list[int]
) -> None:
    path = tmp_path / "log.csv"
    lines = ["time,patient,sender,message", *(",".join(row) for row in _MESSAGES)]
    path.write_text("\n".join(lines))
    with pytest.raises(OperatorError) as asked:
        imported("chats", tmp_path / "a", path)
    said = str(asked.value)
    assert "conversation=patient  # 2 conversations" in said
    assert "conversation=patient --set pause=30  # 3 conversations" in said
    assert "--set conversation=all  # one conversation" in said
    (made,) = import_results("chats", [path], tmp_path / "b", options=chosen)
    assert [sample.metadata["turn"] for sample in made.run.samples()] == turns


def test_a_log_whose_rows_nothing_parts_is_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = ["time,sender,message"]
    for number in range(6):
        who = "user" if number % 2 == 0 else "assistant"
        lines.append(f"2026-01-01T09:0{number},{who},Text {number}.")
    path.write_text("\n".join(lines))
    made = imported("chats", tmp_path / "runs", path)
    assert "a row: a message, all of one conversation" in made.findings.notes
    with pytest.raises(OperatorError, match="no column is called 'sende'"):
        [*import_results("chats", [path], tmp_path / "b", options={"conversation": "sende"})]


def test_exchanges_of_people_are_asked_what_groups_them(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = ["user_id,day,question,answer"]
    for number in range(6):
        lines.append(f"u{number % 2},2026-01-0{1 + number // 4},What is {number}?,It is {number}.")
    path.write_text("\n".join(lines))
    with pytest.raises(OperatorError) as asked:
        imported("chats", tmp_path / "a", path)
    ways = ("conversation=row  # 6", "conversation=user_id  # 2", "'conversation=[user_id, day]'  # 4")
    assert all(way in str(asked.value) for way in ways)
    (made,) = import_results("chats", [path], tmp_path / "b", options={"conversation": ["user_id", "day"]})
    assert len({sample.metadata["conversation"] for sample in made.run.samples()}) == 4


def test_a_name_whose_conversations_go_on_after_days_may_be_a_persons(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = ["session_id,time,user,assistant"]
    for day in range(1, 7):
        lines.append(f"s{day % 2},2026-01-0{day}T09:00,What is {day}?,It is {day}.")
    path.write_text("\n".join(lines))
    with pytest.raises(OperatorError, match=r"conversation=session_id  # 2 conversations"):
        imported("chats", tmp_path / "a", path)


def test_replies_beside_what_is_right_may_be_written_with_the_questions(tmp_path: Path) -> None:
    path = tmp_path / "tests.json"
    said = [*turns("I am Kofi.", "Hello!"), {"role": "user", "content": "Who am I?"}]
    path.write_text(json.dumps([{"id": "a", "messages": said, "expected_keywords": ["Kofi"]}]))
    notes = imported("chats", tmp_path / "runs", path).findings.notes
    assert any("'expected_keywords' says what is right" in note and "karat check" in note for note in notes)


def test_pauses_alone_do_not_make_exchanges_conversations(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    lines = ["time,phone,user,assistant"]
    for number in range(6):
        lines.append(f"2026-01-01T0{number}:00,555-{number},What is {number}?,It is {number}.")
    path.write_text("\n".join(lines))
    notes = imported("chats", tmp_path / "runs", path).findings.notes
    assert any("a row is a chat" in note for note in notes)


def test_who_goes_on_after_days_may_have_had_several_conversations(tmp_path: Path) -> None:
    said = []
    for day in (1, 2, 5):
        for who, text in (("user", "Hi?"), ("bot", "Hello."), ("user", f"Day {day}?"), ("bot", "Yes.")):
            said.append({"sender": who, "message": text, "timestamp": f"2024-01-0{day}T10:00:00"})
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"ann": said, "bob": said[:2]}))
    with pytest.raises(BadOption, match=r"pause=30  # 4 conversations.*\n  2\) --set conversation=id  # 2 conv"):
        imported("chats", tmp_path / "asked", path)
    for options, conversations in (({"pause": 30}, 4), ({"conversation": "id"}, 2)):
        (made,) = import_results("chats", [path], tmp_path / str(conversations), options=options)
        assert len({one.metadata["conversation"] for one in made.run.samples()}) == conversations


def test_messages_in_cells_are_of_the_conversations_that_a_column_names(tmp_path: Path) -> None:
    rows = ["conversation_uuid,message"]
    for name in ("a", "b"):
        for who, text in (("human", f"Who is {name}?"), ("ai", f"I am {name}.")):
            message = json.dumps({"type": who, "data": {"content": text, "type": who}})
            rows.append(f"{name}," + '"' + message.replace('"', '""') + '"')
    path = tmp_path / "messages.csv"
    path.write_text("\n".join(rows))
    made = imported("chats", tmp_path / "runs", path)
    assert [one.text for one in made.run.events_of(Answer)] == ["I am a.", "I am b."]


def test_answers_that_other_rows_ask_are_of_no_agent(tmp_path: Path) -> None:
    lines = [f"what is number {number}?,what is number {number + 1}!" for number in range(12)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["said,replied", *lines]))
    with pytest.raises(BadOption, match="11 of 12 answers are what other rows ask"):
        imported("chats", tmp_path / "asked", path)
    named = {"text": "said", "agent": "replied"}
    (made,) = import_results("chats", [path], tmp_path / "runs", options=named)
    assert made.counts["answers"] == 12


def test_numbers_of_turns_say_which_message_is_first(tmp_path: Path) -> None:
    chats = []
    for number in range(8):
        who = [("assistant", f"Task {number}?"), ("user", "A."), ("assistant", "Why?"), ("user", "B.")]
        said = [{"role": role, "content": text, "turn": at // 2} for at, (role, text) in enumerate(who)]
        chats.append({"id": f"c{number}", "messages": said})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(chats))
    assert imported("chats", tmp_path / "runs", path).counts["answers"] == 8


def test_sessions_of_coding_agents_hold_a_message_a_row_beside_other_events(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x = 1"}
    said = [
        ("user", "Fix it."),
        ("assistant", [{"type": "text", "text": "Looking."}, call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "Done."}]),
    ]
    rows: list[object] = [{"type": "snapshot", "files": []}]
    for role, content in said:
        rows.append({"type": role, "sessionId": "s1", "message": {"role": role, "content": content}})
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (answer,) = imported("chats", tmp_path / "runs", path).run.events_of(Answer)
    assert answer.replies[0].text == "Done."
    assert answer.replies[0].tool_calls == (ToolCall(tool="look", input={"at": 1}, result="x = 1"),)
