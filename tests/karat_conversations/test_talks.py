"""Conversations and lists of questions in the rows of a file: what is asked, and what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from karat import plugins
from karat.documents.chats import NAME
from karat.documents.rows import read_rows
from karat.errors import BadDataset
from karat.layouts import laid_out, speakers, unasked
from karat_conversations.layouts._phrases import phrases_apart
from karat_conversations.layouts._questions import questions_in
from karat_conversations.layouts._rows import MESSAGES

TWO = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def read(tmp_path: Path, text, name="chats.json", named=()):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return [nameless(row) for _, row in laid_out(read_rows(path), named).rows]


def written(tmp_path: Path, document) -> Path:
    path = tmp_path / "written.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def nameless(row):
    """The row without what the file calls those who speak."""
    said = [{key: message[key] for key in message if key != NAME} for message in row.get(MESSAGES, ())]
    return {**row, MESSAGES: said} if MESSAGES in row else row


def questions(tmp_path: Path, rows, name="questions.json", **options):
    path = tmp_path / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    samples = plugins.build(plugins.find("kinds", "golden"), options).load(path).samples
    return [(sample.turns[0].question, sample.turns[0].golden) for sample in samples]


@pytest.mark.parametrize(
    "cell",
    [
        {"turns": [{"user": "Hi", "bot": "Hello"}]},
        {"dialog": [{"user": "Hi", "system": "Hello"}]},
        {"original": [["customer", "Hi"], ["agent", "Hello"]]},
        {"conversation": [{"at": 8, "message": TWO[0]}, {"at": 9, "message": TWO[1]}]},
        {"log": "Customer: Hi\nAgent: Hello"},
        {"dialogue": "<user> Hi\n<assistant> Hello"},
        {"tagged": "[USER]\r\nHi\r\n[/USER]\r\n\r\n[ASSISTANT]\r\nHello\r\n[/ASSISTANT]"},
        {"text": "<s>[INST] Hi [/INST] Hello</s>"},
        {"text": "### Human: Hi### Assistant: Hello"},
        {"text": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>"},
        {"conversations": json.dumps(TWO)},
        {"conversation": [{"role": "seller", "content": "Hi"}, {"role": "agent", "content": "Hello"}]},
        {"chat": [{"sender": "user", "text": "Hi"}, {"sender": "Luna", "text": "Hello"}]},
        {"dialogue": [{"Customer": "Hi"}, {"Agent": "Hello"}]},
        {"call": "Member: Hi\nPA Agent: Hello"},
        {"call": "[10:02] Customer: Hi\n[10:03] Support Agent: Hello"},
        {"call": "Customer (10:02): Hi\n**Agent:** Hello"},
        {"call": "Customer (Ann Lee): Hi\nAgent (Bob): Hello"},
        {"text": "用户：Hi\n客服：Hello"},
        {"call": "Customer: Hi Agent: Hello"},
        {"call": "Customer: Hi\\nAgent: Hello"},
        {"text": "## User\nHi\n\n## Assistant\nHello"},
        {"conversations": str(TWO)},
        {
            "mapping": {
                "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}},
                "b": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Hello"]}}},
                "c": {"message": None},
            }
        },
    ],
)
def test_a_cell_with_a_conversation_becomes_messages(tmp_path, cell):
    assert read(tmp_path, [{"id": 1, **cell}, {"id": 2, **cell}]) == [
        {"id": 1, "messages": TWO},
        {"id": 2, "messages": TWO},
    ]


def test_a_table_with_a_column_a_turn_is_one_conversation_a_row(tmp_path):
    table = "topic,Prompt,Claude Response 1,Prompt 2,Claude Response 2\nx,Hi,Hello,Why?,Because\nx,Hi,Hello,,\n"
    more = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because"}]
    assert read(tmp_path, table, "c.csv") == [
        {"topic": "x", "messages": [*TWO, *more]},
        {"topic": "x", "messages": TWO},
    ]


@pytest.mark.parametrize(
    "header",
    [
        "q1,a1,q2,a2",
        "turn_1_question,turn_1_answer,turn_2_question,turn_2_answer",
        "turn1_user,turn1_bot,turn2_user,turn2_bot",
        "user_turn_1,assistant_turn_1,user_turn_2,assistant_turn_2",
    ],
)
def test_the_number_of_a_turn_may_stand_anywhere_in_its_column(tmp_path, header):
    (row,) = read(tmp_path, f"{header}\nHi,Hello,Why?,Because\n", "c.csv")
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Why?"),
        ("assistant", "Because"),
    ]


WHERE, SENT = "Where is my order?", "It was sent on Tuesday."
ONE_TURN = [{"role": "user", "content": WHERE}, {"role": "assistant", "content": SENT}]


@pytest.mark.parametrize(
    "row",
    [
        {"mensagens": [{"remetente": "cliente", "conteudo": WHERE}, {"remetente": "atendente", "conteudo": SENT}]},
        {"log": [{"at": "2024-01-01 10:00", "who": "human", "line": WHERE}, {"who": "bot", "line": SENT}]},
        {"对话": [{"角色": "用户", "内容": WHERE}, {"角色": "助手", "内容": SENT}]},
        {"parts": [{"author": {"type": "user"}, "body": WHERE}, {"author": {"type": "bot"}, "body": SENT}]},
        {"deep": {"parts": [{"by": "client", "x": WHERE}, {"by": "bot", "x": SENT}]}},
        {"messages": [{"is_bot": False, "text": WHERE}, {"is_bot": True, "text": SENT}]},
        {"talk": [{"by": "user", "text": WHERE, "body": None}, {"by": "bot", "body": SENT}]},
        {"opened": {"by": "user", "said": WHERE}, "rest": [{"by": "bot", "said": SENT}, {"by": "user", "said": ""}]},
        {"log": json.dumps([{"by": "user", "said": WHERE}, {"by": "bot", "said": SENT}])},
        {"utterances": [WHERE, SENT], "speakers": ["user", "bot"]},
        {"messages": [WHERE], "replies": [SENT]},
    ],
)
def test_messages_are_known_by_what_their_keys_hold(tmp_path, row):
    for found in read(tmp_path, [row, row]):
        said = [(message["role"], message["content"]) for message in found[MESSAGES]]
        assert said == [("user", WHERE), ("assistant", SENT)]


@pytest.mark.parametrize(
    "row",
    [
        {"steps": [{"kind": kind, "details": "Looked for it"} for kind in ("search", "read", "search")]},
        {"found": [{"source": name, "text": "It is in the box."} for name in ("a.pdf", "b.pdf", "a.pdf")]},
        {"tags": [{"tag": "greeting", "patterns": ["Hi"], "responses": ["Hello"]}] * 2},
        {"turns": [{"topic": "boxes", "text": "It is in the box."}] * 3},
        {"accounts": [{"role": "admin", "name": "Ann Lee of Rome"}, {"role": "user", "name": "Bob Fox of Bonn"}]},
    ],
)
def test_lists_of_texts_that_nobody_speaks_are_no_conversation(tmp_path, row):
    (tmp_path / "rows.json").write_text(json.dumps([row, row]), encoding="utf-8")
    assert not speakers(read_rows(tmp_path / "rows.json"))


def test_one_object_of_two_lists_is_one_conversation(tmp_path):
    assert read(tmp_path, {"utterances": [WHERE, SENT], "speakers": ["user", "bot"]}) == [{MESSAGES: ONE_TURN}]


def test_a_history_of_pairs_is_one_conversation_also_as_the_only_one(tmp_path):
    (row,) = laid_out(read_rows(written(tmp_path, {"k1": {"history": [{"user": "Hi", "bot": "Hello"}] * 2}}))).rows
    assert row[1] == {"id": "k1", MESSAGES: TWO * 2}
    asked, said = "Hi to you", "Hello"
    (row,) = laid_out(read_rows(written(tmp_path, {"history": [[asked, said], ["Why?", "So"]]})), whole=True).rows
    assert [message["content"] for message in row[1][MESSAGES]] == [asked, said, "Why?", "So"]


def test_chats_by_name_may_hold_nothing_but_their_turns(tmp_path):
    assert read(tmp_path, {"a": {"messages": TWO}, "b": {"messages": TWO}}) == [
        {"id": name, MESSAGES: TWO} for name in "ab"
    ]
    turns: list[dict[str, object]] = [{"text": text, "metadata": {}} for text in ("Hi", "Hello")]
    path = written(tmp_path, {"a.json": {"goal": {}, "log": turns}, "b.json": {"goal": {}, "log": turns}})
    assert speakers(read_rows(path)) == {"speaker 1": 2, "speaker 2": 2}


def test_questions_with_answers_in_a_text_are_a_conversation_where_one_is_asked_for(tmp_path):
    (tmp_path / "talk.txt").write_text("Q: Hi\nA: Hello\nQ: Why?\nA: So.", encoding="utf-8")
    rows = read_rows(tmp_path / "talk.txt")
    ((_, row),) = laid_out(rows, whole=True).rows
    assert [message["role"] for message in row[MESSAGES]] == ["user", "assistant"] * 2
    assert [row["question"] for _, row in laid_out(rows).rows] == ["Hi", "Why?"]


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("П: Hi\nБ: Hello", ["user", "assistant"]),
        ("You said:\nHi\n\nChatGPT said:\nHello\n\nYou said:\nBye", ["user", "assistant", "user"]),
        ("Call 7\nDate: 3\n\nAgent: Hello\nCaller: My line is dead\nAgent: Oh\nCaller: Yes", ["assistant", "user"] * 2),
        ("[00:01] Caller: Hi [00:04] Agent: Hello there. [00:09] Caller: Bye", ["user", "assistant", "user"]),
        ("WEBVTT\n\n1\n0:01.0 --> 0:02.0\n<v Caller>Hi</v>\n\n2\n0:03.0 --> 0:04.0\n<v Bot>Yo", ["user", "assistant"]),
    ],
)  # fmt: skip
def test_texts_mark_their_speakers_in_many_ways(tmp_path, text, roles):
    found = read(tmp_path, text, "talk.txt")
    said = [message["role"] for row in found for message in row[MESSAGES] if message["role"] != "system"]
    assert said == roles


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("a.txt", "Aired 3 May\nA title\n\n" + "KING: Well then.\n\nDOGG: It is so.\n\n" * 4, {"KING": 4, "DOGG": 4}),
        ("a.txt", "".join(f"[10:0{n}] <n{n}> hi: you\n" for n in range(9)) * 3, {f"n{n}": 3 for n in range(9)}),
        ("a.csv", "time,speaker,talk\n1,Ann,Hi\n2,Bob,Hello\n3,Ann,Why?\n", {"Ann": 2, "Bob": 1}),
        ("a.json", '{"utterance": ["Hi", "Hello", "Why?"], "speaker": [0, 1, 0]}', {"0": 2, "1": 1}),
        (
            "a.json",
            '[{"chat": [{"message": "Hi", "senderID": 1}, {"message": "Hello", "senderID": 2}]}]',
            {"1": 1, "2": 1},
        ),
    ],
)
def test_who_may_be_the_agent_is_asked_of_people_in_other_forms(tmp_path, name, text, names):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert dict(speakers(read_rows(tmp_path / name))) == names


def test_turns_of_a_user_to_which_nobody_replies_are_said_to_be_such(tmp_path):
    for rows in (
        [{"prompt": "Dry?", "followups": ["Sure?"]}],
        [{"id": 1, "turns": ["Write it.", "Shorten it."]}],
        [{"goal": "refund", "user_turns": ["I want it back.", "Why not?"]}],
    ):
        other = unasked(read_rows(written(tmp_path, rows)))
        assert other is not None and "but no replies" in other.message


def test_several_answers_to_one_question_are_no_turns(tmp_path):
    table = "question,answer 1,answer 2\nHi,Hello,Hey\n"
    assert read(tmp_path, table, "c.csv") == [{"question": "Hi", "answer 1": "Hello", "answer 2": "Hey"}]


def test_rows_that_are_messages_are_gathered_by_their_conversation(tmp_path):
    table = (
        "conversation_id,Sender,Message,at,subject\n1,customer,Hi,8,s\n2,customer,Hi,8,t\n1,agent,Hello,9,s\n"
        "2,agent,Hello,9,t\n"
    )
    assert read(tmp_path, table, "c.csv") == [
        {"conversation_id": "1", "subject": "s", "messages": TWO},
        {"conversation_id": "2", "subject": "t", "messages": TWO},
    ]


def test_an_id_that_several_speakers_share_names_their_conversation(tmp_path):
    table = "call_id,speaker,text\n1,Ann,Hi\n1,Agent,Hello\n2,Bob,Hi\n2,Agent,Hello\n"
    assert read(tmp_path, table, "c.csv") == [{"call_id": "1", "messages": TWO}, {"call_id": "2", "messages": TWO}]


@pytest.mark.parametrize(
    "rows",
    [[TWO, TWO], {"one": TWO, "two": TWO}, [[{"user": "Hi", "assistant": "Hello"}]] * 2],
)
def test_conversations_may_lie_in_lists_without_names(tmp_path, rows):
    found = read(tmp_path, rows)
    assert [row.get("messages", "pairs") for row in found] in ([TWO, TWO], ["pairs", "pairs"])


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (
            [{"talk": [{"speaker": "Caller", "text": "Hi"}, {"speaker": "Recipient", "text": "Hello"}]}],
            ["Caller", "Recipient"],
        ),
        ([{"talk": "Ann: Hi\nBob: Hello\nAnn: Why?\nBob: So."}], ["Ann", "Bob"]),
        ([{"dialog": ["Hi", "Hello"]}], ["speaker 1", "speaker 2"]),
        ([{"sender": "Ann", "message": "Hi"}, {"sender": "Bob", "message": "Hello"}], ["Ann", "Bob"]),
        ([{"turns": ["Hi", "And now shorter"]}], []),
        ([{"sender": f"P{n}", "message": "Hi"} for n in range(9)], []),
        ([{"form": "Name: Ann\nCity: Rome"}], []),
    ],
)
def test_who_answers_is_known_once_it_is_said(tmp_path, rows, names):
    path = tmp_path / "talks.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert [*speakers(read_rows(path))] == names
    assert not any(MESSAGES in row for _, row in laid_out(read_rows(path)).rows)
    if names:
        for _, row in laid_out(read_rows(path), agent=(names[1],)).rows:
            assert nameless(row)[MESSAGES][:2] == TWO


def test_speakers_are_named_under_any_key_also_where_most_chats_have_only_one(tmp_path):
    chats = [["Anna", "support", "Anna"], ["Anna", "Anna"], ["Anna"]]
    rows = [{"messages": [{"from": speaker, "text": f"Words of {speaker}"} for speaker in chat]} for chat in chats]
    (tmp_path / "chats.json").write_text(json.dumps(rows), encoding="utf-8")
    assert speakers(read_rows(tmp_path / "chats.json")) == {"Anna": 5, "support": 1}


def test_entries_of_lists_may_hold_numbers_and_flags_beside_their_questions(tmp_path):
    entry = {"done": True, "at": 3, "turns": [{"question": "Who?", "answer": "I"}]}
    rows = read(tmp_path, [{"parts": [entry, entry]}] * 2)
    assert [row["messages"] for row in rows] == [[{"role": "user", "content": "Who?"}]] * 4


def test_parallel_lists_of_which_a_row_has_none_are_read(tmp_path):
    rows = read(
        tmp_path, [{"questions": 5, "answers": ["1"]}, *[{"questions": ["A?", "B?"], "answers": ["1", "2"]}] * 2]
    )
    assert [row["questions"] for row in rows[-4:]] == ["A?", "B?", "A?", "B?"]


def test_a_file_may_be_one_conversation(tmp_path):
    assert read(
        tmp_path, {"call": 7, "utterances": [{"speaker": "USER", "text": "Hi"}, {"speaker": "BOT", "text": "Hello"}]}
    ) == [{"messages": TWO}]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Is it?", "chat_history": "user: Hi\nassistant: Hello"},
        {"prompt": "Human: Hi\n\nAssistant: "},
        {"speaker": "Ann", "message": "Hi"},
        {"role": "user", "content": "Hi", "expected": "greeting"},
        {"speaker": "user", "text": "Hi", "intent": "greeting"},
        {"author": "ai", "text": "Hi"},
    ],
)
def test_what_is_no_conversation_stays_as_it_is(tmp_path, row):
    assert read(tmp_path, [row, row]) == [row, row]


def test_lists_of_questions_and_of_as_many_answers_are_pairs(tmp_path):
    rows = [
        {"story": "s", "questions": ["Who?", "When?"], "answers": ["Ann", "1999"]},
        {"questions": ["Why?"], "answers": ["So"]},
    ]
    assert questions(tmp_path, rows) == [("Who?", "Ann"), ("When?", "1999"), ("Why?", "So")]
    options = [["Ann", "Bo"], ["1999", "2000"]]
    asked = [{"questions": ["Who?", "When?"], "options": options, "answers": ["A", "B"]}]
    assert [row["options"] for row in read(tmp_path, asked)] == options
    uneven = [{"questions": ["Who?", "When?"], "answers": ["Ann"]}]
    assert read(tmp_path, uneven) == uneven


def test_columns_that_the_user_names_are_not_moved(tmp_path):
    row = {"log": "User: Hi\nAgent: Hello", "summary": "a greeting"}
    assert read(tmp_path, [row], named=["log", "summary"]) == [row]


def test_a_chat_with_one_reply_is_a_question_with_its_golden_answer(tmp_path):
    system = {"role": "system", "content": "Be brief."}
    rows = [{"messages": [system, *TWO]}, {"messages": [system, {"role": "user", "content": "Bye"}, TWO[1]]}]
    assert questions(tmp_path, rows) == [("Be brief.\n\nHi", "Hello"), ("Be brief.\n\nBye", "Hello")]
    shared = [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}]
    assert questions(tmp_path, shared) == [("Hi", "Hello")]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"messages": [*TWO, {"role": "user", "content": "Why?"}, TWO[1]]}, "questions.json"),  # of several turns
        ({"messages": TWO, "latency_ms": 30}, "questions.json"),  # a run left it
        ({"messages": TWO, "created_at": "2026-01-02"}, "questions.json"),
        ({"messages": TWO}, "chat_logs.json"),
    ],
)
def test_whether_the_last_reply_is_golden_is_asked_where_it_may_be_a_log(tmp_path, row, name):
    with pytest.raises(BadDataset) as bad:
        questions(tmp_path, [row, row], name)
    assert "1) roles: {question: messages, golden: messages}" in str(bad.value)
    assert "2) roles: {question: messages, golden: null}" in str(bad.value)
    ((asked, golden), _) = questions(tmp_path, [row, row], name, roles={"question": "messages", "golden": "messages"})
    assert (asked.splitlines()[-1].removeprefix("user: "), golden) == (row["messages"][-2]["content"], "Hello")


def test_turns_with_golden_answers_are_questions_with_what_was_said_before(tmp_path):
    steps = [{"question": "Who?", "goldSQL": "SELECT a"}, {"question": "And when?", "goldSQL": "SELECT b"}]
    assert questions(tmp_path, [{"id": "x", "steps": steps}, {"id": "y", "steps": steps[:1]}]) == [
        ("Who?", "SELECT a"),
        ("user: Who?\nassistant: SELECT a\nuser: And when?", "SELECT b"),
        ("Who?", "SELECT a"),
    ]


def test_a_turn_without_a_question_is_a_fault_and_not_the_turn_before(tmp_path):
    steps = [
        {"question": "Who?", "expected": "Ann"},
        {"question": "", "expected": "1999"},
        {"question": "Why?", "expected": "So"},
    ]
    with pytest.raises(BadDataset, match="'messages' is empty"):
        questions(tmp_path, [{"id": "x", "steps": steps}])


def test_lists_of_questions_in_documents_are_questions_apart(tmp_path):
    pairs = [{"question": "Who?", "answer": "Ann"}, {"question": "When?", "answer": "1999"}]
    nested = {
        "documents": [
            {"title": "t", "sections": [{"text": "…", "qa_pairs": pairs}, {"text": "!", "qa_pairs": pairs[:1]}]}
        ]
    }
    assert questions(tmp_path, nested) == [("Who?", "Ann"), ("When?", "1999"), ("Who?", "Ann")]


ASKED = {"question": "Who?", "answer": "Ann"}


def test_lists_of_questions_inside_an_object_are_read_with_their_names(tmp_path):
    rows = [
        {"topic": "a", "items": [ASKED]},
        {"topic": "b", "items": [{"question": "When?", "answer": "Now"}]},
        {"topic": "c", "items": {"north": [{"question": "Where?", "answer": "Up"}], "south": {"x": [ASKED]}}},
    ]
    read_rows = read(tmp_path, rows)
    assert [row["question"] for row in read_rows] == ["Who?", "When?", "Where?", "Who?"]
    assert [row.get("items") for row in read_rows] == [None, None, "north", "south.x"]


@pytest.mark.parametrize(
    ("odd", "said"),
    [("soon", "item 3: 'items' holds soon, no question"), ([ASKED, 7], "item 3: 'items' holds 7, no question")],
)
def test_what_stands_in_place_of_a_list_of_questions_is_a_fault(tmp_path, odd, said):
    rows = [{"topic": "a", "items": [ASKED]}, {"topic": "b", "items": [ASKED]}, {"topic": "c", "items": odd}]
    with pytest.raises(BadDataset) as bad:
        questions(tmp_path, rows)
    assert said in str(bad.value)


def test_rows_without_questions_among_such_with_lists_are_counted(tmp_path):
    rows = [{"topic": "a", "items": [ASKED]}, {"topic": "b", "items": [ASKED]}, {"topic": "c", "items": []}]
    path = tmp_path / "q.json"
    path.write_text(json.dumps(rows))
    assert "'items' is empty in 1 of 3 items" in laid_out(read_rows(path)).notes


def test_lists_that_are_not_equally_long_are_a_fault(tmp_path):
    even = {"questions": ["A?", "B?"], "answers": ["a", "b"]}
    odd = [*[even] * 500, {"questions": ["C?", "D?"], "answers": ["c"]}]
    with pytest.raises(BadDataset, match="item 501: the lists questions, answers are not equally long"):
        questions(tmp_path, odd)


def test_rows_without_both_sides_are_counted_and_rows_without_a_conversation_are_their_own(tmp_path):
    table = "session_id,user_message,bot_reply\ns1,Hi,Hello\n,Who?,Ann\ns1,Where?,Here\n,Why?,So\ns2,,\n"
    (tmp_path / "log.csv").write_text(table, encoding="utf-8")
    found = laid_out(read_rows(tmp_path / "log.csv"), whole=True)
    sizes = {row["session_id"]: len(row[MESSAGES]) for _, row in found.rows}
    assert sizes == {"s1": 4, "row 3": 2, "row 5": 2}
    assert any("both empty in 1 row" in note for note in found.notes)


def test_a_reply_in_a_row_without_a_question_answers_no_question_of_another_row(tmp_path):
    table = "session_id,user_message,bot_reply\ns1,Hi,Hello\ns1,,Still there?\ns1,Where?,\ns1,Why?,So\ns1,Who?,Ann\n"
    (tmp_path / "log.csv").write_text(table, encoding="utf-8")
    found = laid_out(read_rows(tmp_path / "log.csv"), whole=True)
    ((_, row),) = found.rows
    assert [message["content"] for message in row[MESSAGES]] == [
        "Hi",
        "Hello",
        "Where?",
        "",
        "Why?",
        "So",
        "Who?",
        "Ann",
    ]
    assert any("not read: 1 reply in rows without a question" in note for note in found.notes)


def test_turns_of_a_user_alone_are_said_to_be_asked_one_after_the_other(tmp_path):
    tests = [{"name": "a b", "turns": [{"user": "Hi", "expect": {"x": 1}}, {"user": "Where?"}]}] * 3
    other = unasked(read_rows(written(tmp_path, {"tests": tests})))
    assert other is not None
    said = other.message
    assert other.question == ("turns[].user",)
    assert "holds what users say in several turns ('turns')" in said
    assert "speaker 2" not in said
    assert "`roles: {question: turns[].user}` asks those of a row at once" in said
    both = [{"name": "a b", "turns": [{"user": "Hi", "bot": "Hello"}, {"user": "Where?", "bot": "Here"}]}] * 3
    assert unasked(read_rows(written(tmp_path, {"tests": both}))) is None


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"archetype": "angry", "customer_turns": ["It is cold.", "Pay me!"]}, "question: customer_turns"),
        ({"archetype": "angry", "followups": ["It is cold.", "Pay me!"]}, "('followups'), but no replies"),
    ],
)
def test_what_one_side_says_in_turn_has_yet_to_be_asked(tmp_path, row, named):
    other = unasked(read_rows(written(tmp_path, [row] * 3)))
    assert other is not None
    assert named in other.message
    assert ("at once" in other.message) == ("customer_turns" in row)


def test_lists_of_what_people_say_are_named_for_that(tmp_path):
    said = [{"role": who, "text": f"I am {who}."} for who in ("host", "ann", "bea", "host")]
    assert "8 messages of 3 people" in str(unasked(read_rows(written(tmp_path, [said, said]))))


def test_rows_of_another_shape_are_read_by_their_own_names(tmp_path):
    rows: list[object] = [{"incoming_message": f"Where is {number}?", "ai_reply": "Here."} for number in range(3)]
    rows += [{"message": "Who?", "result": {"reply": "Ann."}}, {"incoming_message": "", "ai_reply": ""}, {"route": "x"}]
    found = laid_out(read_rows(written(tmp_path, rows)), whole=True)
    said = [[message["content"] for message in row[MESSAGES]] for _, row in found.rows]
    assert said[3:] == [["Who?", "Ann."], [], []]
    assert any("in 1 row other columns of such names, both empty in 2 rows" in note for note in found.notes)


def test_messages_of_nobody_are_of_two_who_speak_by_turns(tmp_path):
    said = [{"user_id": 1 + number // 4, "message_id": number, "message_text": f"Text {number}"} for number in range(8)]
    rows = read_rows(written(tmp_path, said))
    assert laid_out(rows, whole=True).rows == rows.rows
    assert speakers(rows) == {"speaker 1": 4, "speaker 2": 4}
    assert "8 messages, and nothing says who speaks" in str(unasked(rows))
    found = laid_out(rows, agent=["speaker 2"], whole=True)
    roles = [[message["role"] for message in row[MESSAGES]] for _, row in found.rows]
    assert roles == [["user", "assistant"] * 2] * 2


def test_headings_may_be_the_speakers(tmp_path):
    found = read(
        tmp_path, "# A talk\n\n## User:\nHi\n\n## Assistant:\nHello\n\n## User:\nWhy?\n\n## Assistant:\nSo.", "t.md"
    )
    roles = [message["role"] for row in found for message in row[MESSAGES] if message["role"] != "system"]
    assert roles == ["user", "assistant"] * 2


class Counted(list):
    """Rows that count how often they are read from the start."""

    reads = 0

    def __iter__(self):
        self.reads += 1
        return super().__iter__()


def test_rows_are_read_as_often_with_many_columns_as_with_few(tmp_path):
    reads = []
    for columns in (3, 60):
        row = {f"place {number}": [{"name": f"Museum {number}", "city": "Bath"}] for number in range(columns)}
        rows = read_rows(written(tmp_path, [row] * 4))
        counted = Counted(rows.rows)
        laid_out(structs.replace(rows, rows=counted), whole=True)
        reads.append(counted.reads)

    assert 0 < reads[0] == reads[1]


HOURS = {"tag": "hours", "patterns": ["When?", "Open now?"], "responses": "At 9."}
PRICE = {"tag": "price", "patterns": ["How much?"], "responses": "5."}


@pytest.mark.parametrize(
    ("rows", "named", "expected"),
    [
        ([HOURS, PRICE], (), [("question", "When?"), ("question", "Open now?"), ("question", "How much?")]),
        ([HOURS, PRICE], ("patterns",), [("patterns", "When?"), ("patterns", "Open now?"), ("patterns", "How much?")]),
        ([{"intent": 'a', "examples": "- x\n\n- y\n"}, {"intent": "b", "examples": "- z"}], (),
         [("question", "x"), ("question", "y"), ("question", "z")]),
        ([{"intent": 'a', "examples": "x\ny\n"}, {"intent": "b", "examples": "- z"}], (), None),
        ([{"name": 'a', "examples": ["x", "y"]}, {"name": "b", "examples": ["z"]}], (), None),
        ([{"intent": 'a', "examples": ["x", "y"]}, {"intent": "a", "examples": ["z"]}], (), None),
        ([{"tag": "a", "patterns": ["x"]}, {"tag": "b", "patterns": ["z"]}], (), None),
        ([{"question": "x?", "variants": ["x", "y"]}, {"question": "z?", "variants": ["z"]}], (), None),
        ([{"of": "x?", "variants": ["x", "y"]}, {"of": "z?", "variants": ["z"]}], (), None),
        ([{"tag": "a", "patterns": ["x", 7]}, {"tag": "b", "patterns": ["z"]}], (), None),
        ([HOURS], (), None),
    ],
)  # fmt: skip
def test_each_phrase_of_an_intent_is_a_question(tmp_path: Path, rows, named, expected):
    path = written(tmp_path, rows)
    read_as = read_rows(path)
    apart = phrases_apart(read_as, named)
    if expected is None:
        assert apart is read_as
        return
    found = [row for _, row in apart.rows]
    assert [next(iter(row.items())) for row in found] == expected
    assert all(len(row) == len(rows[0]) for row in found)
    assert [number for number, _ in apart.rows] == [1, 1, 2]


def test_phrases_are_told_and_counted(tmp_path: Path):
    apart = phrases_apart(read_rows(written(tmp_path, [HOURS, PRICE])), ())
    assert apart.notes[-1] == (
        "each phrase of 'patterns' is a question of its own: 3 in 2 rows; those of one row are alike: "
        "`cluster: tag` counts them together"
    )


TABLE_OF_QUESTIONS = """
| question | answer |
|---|---|
| Why? | Because. |
| When? | Now. |
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TABLE_OF_QUESTIONS, [("Why?", "Because."), ("When?", "Now.")]),
        (TABLE_OF_QUESTIONS + "text" + TABLE_OF_QUESTIONS, 2 * [("Why?", "Because."), ("When?", "Now.")]),
        (TABLE_OF_QUESTIONS + "text" + TABLE_OF_QUESTIONS.replace("answer", "gold"), []),
        (TABLE_OF_QUESTIONS + "| more |\n", []),
        (TABLE_OF_QUESTIONS.replace("question", "other"), []),
        (TABLE_OF_QUESTIONS.replace("answer", "question"), []),
        ("# FAQ\n## Why?\nBecause.\n## **When?**\n Now. \n## Who?\nMe\n",
         [("Why?", "Because."), ("When?", "Now."), ("Who?", "Me")]),
        ("## Why?\nBecause.\n## When?\nNow.\n", []),
        ("## Why?\nBecause.\n## When?\n## Who?\nMe\n", []),
        ("## Why?\nBecause.\n## Then\nNow.\n## Who?\nMe\n", []),
        ("Q: Why?\nA: Because.\nQ: When?\nAnswer: Now.\n", [("Why?", "Because."), ("When?", "Now.")]),
        ("Q: Why?\nA: Because.\nA: So.\nQ: When?\n", []),
        ("# list\n1. Why?\n- When?\n// no\nWho?\n", [("Why?", None), ("When?", None), ("Who?", None)]),
        ("Why?\nWhen?\n", []),
        ("Why?\nWhen?\nSo.\nThus.\n", []),
    ],
)  # fmt: skip
def test_questions_are_found_in_a_text(text, expected):
    assert [(row["question"], row.get("answer")) for row in questions_in(text)] == expected


def test_a_list_of_chats_is_a_row_each(tmp_path: Path):
    more = [{"role": "user", "content": "Bye"}, {"role": "assistant", "content": "So long"}]
    rows = read(tmp_path, [{"id": 1, "sessions": [TWO, more]}, {"id": 2, "sessions": [more]}])
    assert [(row["id"], row["sessions"]) for row in rows] == [(1, TWO), (1, more), (2, more)]


def test_a_heading_ends_what_is_said_and_parts_conversations(tmp_path):
    turn = "User: Is {0} dry?\n\nAgent: Yes, {0} is.\n\n"
    text = "# Examples\n\n" + "".join(f"## Case {at}\n\n{turn.format(at) * 2}" for at in "ab")
    found = [row[MESSAGES] for row in read(tmp_path, text, "c.md")]
    assert [len(chat) for chat in found] == [4, 4]
    assert found[0][-1] == {"role": "assistant", "content": "Yes, a is."}


def test_an_answer_keeps_its_own_headings_and_a_fence_that_is_left_open_holds_turns(tmp_path):
    asked = "User: How?\n\nAgent: So.\n\n# Plan\n\n## Next steps\n\nUser: Thanks.\n\nAgent: Yes.\n"
    (chat,) = read(tmp_path, asked, "c.md")
    assert chat[MESSAGES][1]["content"] == "So.\n\n# Plan\n\n## Next steps"
    (chat,) = read(tmp_path, asked.replace("So.", "So:\n```\na = 1"), "d.md")
    assert len(chat[MESSAGES]) == 4


def test_many_headings_and_fences_are_read_in_linear_time(tmp_path):
    for line in ("  # a", "```", "~~~ x\n```y"):
        text = "User: How?\n" + f"{line}\n" * 20_000 + "Agent: So.\nUser: Why?\nAgent: So.\n"
        assert read(tmp_path, text, "c.md")


def test_lines_of_code_are_no_speakers(tmp_path):
    part = "## What do you say of {0}?\n```\nFirst View: it is {0}.\n\nSecond View: it is not {0}.\n```\n\n"
    (tmp_path / "c.md").write_text("# A talk\n" + "".join(part.format(at) for at in "abcd"))
    other = unasked(read_rows(tmp_path / "c.md"))
    assert other is not None and other.message == "no conversation: its lines have no speakers"
    whole = "```\n" + "User: Is it dry?\nAssistant: It is.\n" * 2 + "```\n"
    said = [message["role"] for message in read(tmp_path, whole, "d.md")[0][MESSAGES]]
    assert said[-4:] == ["user", "assistant"] * 2
