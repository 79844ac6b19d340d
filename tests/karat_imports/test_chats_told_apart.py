"""What is one conversation, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.karat_imports.imported import imported

from karat.documents.rows import read_rows
from karat.errors import BadDataset, BadOption
from karat.layouts import unasked
from karat.records import Answer
from karat_imports.imported import Imported, import_results

ASKED = (("user", "Hi"), ("model", "Hello"))


def texts(made: Imported) -> list[tuple[str, str]]:
    """The questions and the answers of a run."""
    questions = {sample.id: sample.turns[0].question for sample in made.run.samples()}
    return [(questions[answer.sample], answer.text) for answer in made.run.events_of(Answer)]


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


def test_objects_name_who_writes_the_messages_of_a_service(tmp_path: Path) -> None:
    def sent(user: str | None, bot: str | None, text: str) -> dict[str, object]:
        who = {"user": user and {"displayName": user}, "application": bot and {"displayName": bot}}
        return {"createdDateTime": "2026-01-02", "from": who, "body": {"content": text}}

    path = tmp_path / "teams.json"
    path.write_text(json.dumps({"value": [sent("Ann", None, "Days left?"), sent(None, "HR", "Ten.")]}))
    assert texts(imported("chats", tmp_path / "teams", path)) == [("Days left?", "Ten.")]

    slack = [{"user": "U1", "text": "Help?", "ts": "170.1"}, {"bot_id": "B", "text": "Yes.", "ts": "170.2"}]
    path = tmp_path / "slack.json"
    path.write_text(json.dumps(slack))
    assert texts(imported("chats", tmp_path / "slack", path)) == [("Help?", "Yes.")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.log", "[INFO] 2026-05-01 10:00:01 - User: Hi\n[INFO] 2026-05-01 10:00:02 - Assistant: Hello\n"),
        ("b.txt", "2026-05-01 10:00:01 | USER | Hi\n2026-05-01 10:00:02 | BOT | Hello\n"),
        ("c.srt", "1\n00:00:00,000 --> 00:00:02,000\nUser: Hi\n\n2\n00:00:02,100 --> 00:00:05,000\nBot: Hello\n"),
        ("d.csv", "話者,発話\nお客様,Hi\nオペレーター,Hello\n"),
        ("e.csv", "nguoi_noi,noi_dung\nKhách hàng,Hi\nNhân viên,Hello\n"),
        ("f.csv", "eh_bot,mensagem\n0,Hi\n1,Hello\n0,Hi you\n1,Hello you\n"),
        ("f.tsv", "wiadomość klienta\todpowiedź bota\nHi\tHello\n"),
        ("g.json", json.dumps({"contents": [{"role": r, "parts": [{"text": t}]} for r, t in ASKED]})),
        ("h.json", json.dumps([{"role": r, "content": [{"type": "text", "text": {"value": t}}]} for r, t in ASKED])),
    ],
)
def test_messages_are_known_in_more_logs_and_languages(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert texts(imported("chats", tmp_path / "runs", path))[0] == ("Hi", "Hello")


def test_a_text_in_pieces_is_read_whole(tmp_path: Path) -> None:
    pieces = ["Take ", {"type": "bold", "text": "this"}, "!"]
    rows = [{"from": "user", "text": "Which?"}, {"from": "Shop Bot", "text": pieces}]
    path = tmp_path / "telegram.json"
    path.write_text(json.dumps(rows))
    assert texts(imported("chats", tmp_path / "runs", path)) == [("Which?", "Take this!")]


def test_many_who_speak_are_named(tmp_path: Path) -> None:
    path = tmp_path / "play.txt"
    names = ("gpt-4", "llama2", "qwen", "phi", "yi", "olmo", "bloom")
    path.write_text("".join(f"{name}: Line {at}.\n" for at in range(2) for name in names))
    with pytest.raises(BadOption, match=r"14 messages of 7 people, .*'llama2'"):
        imported("chats", tmp_path / "runs", path)


def test_rows_with_their_history_are_turns_of_it(tmp_path: Path) -> None:
    def row(asked: str, answered: str, *before: tuple[str, str]) -> dict[str, object]:
        said = [{"role": who, "content": text} for who, text in before]
        return {"session_id": "s", "message": asked, "history": said, "response": {"message": answered}}

    rows = [row("Hi", "Hello"), row("Open?", "At nine.", ("user", "Hi"), ("assistant", "Hello"))]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = imported("chats", tmp_path / "runs", path)
    assert texts(made) == [("Hi", "Hello"), ("Open?", "At nine.")]
    assert "'history': what was said before a row, in rows of its own" in made.findings.notes


def test_names_beside_one_role_are_agents_of_their_own(tmp_path: Path) -> None:
    said = [("user", "Ann", "Plot it."), ("assistant", "planner", "Get data."), ("assistant", "coder", "plot()")]
    path = tmp_path / "team.json"
    path.write_text(json.dumps([{"role": role, "name": name, "content": text} for role, name, text in said]))
    made = imported("chats", tmp_path / "runs", path)
    assert {answer.condition for answer in made.run.events_of(Answer)} == {"planner", "coder"}


def test_the_result_of_a_batch_is_the_reply(tmp_path: Path) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    replied = {"message": {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}}
    path = tmp_path / "batch.jsonl"
    path.write_text(json.dumps({"custom_id": "a", "params": asked, "result": replied}) + "\n")
    assert texts(imported("chats", tmp_path / "runs", path)) == [("Hi", "Hello")]


def test_preferred_and_rejected_answers_are_conditions(tmp_path: Path) -> None:
    def said(who: str, text: str) -> list[dict[str, str]]:
        return [{"role": who, "content": text}]

    row = {"prompt": said("user", "Hi"), "chosen": said("assistant", "Hello"), "rejected": said("assistant", "No")}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(row) + "\n")
    made = imported("chats", tmp_path / "runs", path)
    answers = {answer.condition: answer.text for answer in made.run.events_of(Answer)}
    assert answers == {"chosen": "Hello", "rejected": "No"}


def test_a_column_whose_rows_stand_together_may_name_conversations(tmp_path: Path) -> None:
    said = [("a", "Cliente", "Oi"), ("a", "Atendente", "Bom dia"), ("a", "Cliente", "Tchau")]
    said += [("b", "Cliente", "Preço?"), ("b", "Atendente", "Dez"), ("b", "Cliente", "Obrigado")]
    path = tmp_path / "chats.csv"
    path.write_text("".join(f"{','.join(row)}\n" for row in [("kanal", "remetente", "mensagem"), *said]))
    with pytest.raises(BadOption, match=r"conversation=kanal  # 2 conversations"):
        imported("chats", tmp_path / "runs", path)


def test_turns_that_are_counted_anew_begin_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    counts = "1,user,A?\n1,bot,B.\n2,user,C?\n2,bot,D.\n1,user,E?\n1,bot,F.\n"
    path.write_text(f"turn,role,text\n{counts}")
    made = imported("chats", tmp_path / "runs", path)
    assert {answer.sample for answer in made.run.events_of(Answer)} == {"chat 1 turn 1", "chat 1 turn 2", "chat 2"}
    assert "a row: a message; 'turn' counts the turns of 2 conversations" in made.findings.notes

    exchanges = "turn_id,user_input,bot_response\n" + "".join(f"{n},q {n}?,a {n}.\n" for n in (1, 2, 3, 1, 2, 1, 2))
    path.write_text(exchanges)
    assert "3 conversations" in imported("chats", tmp_path / "exchanges", path).findings.notes


def test_tests_of_turns_are_no_chats(tmp_path: Path) -> None:
    turns = [{"query": "Look.", "expected_response": "It looks."}, {"query": "Fix it.", "expected_response": "Fixed."}]
    path = tmp_path / "tests.json"
    path.write_text(json.dumps([{"group": group, "turns": turns} for group in "ab"]))
    with pytest.raises(BadDataset, match=r"holds tests: .*'turns\[\].query'.* no replies of an agent"):
        imported("chats", tmp_path / "runs", path)


def test_a_store_holds_the_chats_of_each_key_and_messages_stand_beside_their_people(tmp_path: Path) -> None:
    stored = [{"role": who, "blocks": [{"type": "text", "text": text}]} for who, text in ASKED]
    path = tmp_path / "store.json"
    path.write_text(json.dumps({"store": {"a": stored, "b": stored}, "class_name": "ChatStore"}))
    assert {answer.sample for answer in imported("chats", tmp_path / "a", path).run.events_of(Answer)} == {"a", "b"}

    said = [{"sender_name": who, "content": text} for who, text in (("Ann", "Open?"), ("Shop Bot", "Yes."))]
    path.write_text(json.dumps({"participants": [{"name": "Ann"}, {"name": "Shop Bot"}], "messages": said}))
    assert texts(imported("chats", tmp_path / "b", path)) == [("Open?", "Yes.")]


def test_the_text_of_a_reply_is_found_in_what_a_model_returns(tmp_path: Path) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ben Nevis."}]}
    path = tmp_path / "responses.jsonl"
    path.write_text(
        json.dumps({"id": "r", "input": "The tallest hill?", "output": [{"type": "reasoning"}, said]}) + "\n"
    )
    assert texts(imported("chats", tmp_path / "runs", path)) == [("The tallest hill?", "Ben Nevis.")]


def test_an_error_of_a_service_is_a_failure_and_the_last_words_of_a_user_are_none(tmp_path: Path) -> None:
    error = "API Error: HTTPSConnectionPool(host='api', port=443): Max retries exceeded"
    said = [("user", "Hi"), ("assistant", "Hello"), ("user", "And?"), ("assistant", error), ("user", "Thanks, bye")]
    chats = [{"messages": [{"role": who, "content": text} for who, text in said]}]
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(chats[0]) + "\n")
    made = imported("chats", tmp_path / "runs", path)
    assert texts(made) == [("Hi", "Hello")]
    assert (made.counts["answers"], made.counts["failures"]) == (1, 1)
    assert "1 conversation; 1 end with last words of a user, no question: no failure" in made.findings.notes


def test_a_column_of_lines_with_speakers_is_a_chat_whatever_its_name(tmp_path: Path) -> None:
    talk = "Ann: Hi\nPA Agent: Hello\n\nAnn: My card?\nPA Agent: Is on the way."
    rows = [{"n": n, "context": talk, "outcome": "done", "mood": "calm"} for n in range(3)]
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(rows))
    assert texts(imported("chats", tmp_path / "runs", path))[:2] == [("Hi", "Hello"), ("My card?", "Is on the way.")]


def test_an_object_of_records_is_rows_whose_talk_asks_who_answers(tmp_path: Path) -> None:
    talk = "\n".join(f"Ann: Where is room {n}?\nBob: It is upstairs, beside room {n + 1}." for n in range(3))
    path = tmp_path / "talks.json"
    path.write_text(json.dumps({f"talk_{n}": {"context": talk, "mood": "calm"} for n in range(3)}))
    assert read_rows(path).rows[0][1] == {"id": "talk_0", "context": talk, "mood": "calm"}
    with pytest.raises(BadOption, match=r"none of them an assistant by name: 'Ann' \(9\), 'Bob' \(9\)"):
        imported("chats", tmp_path / "asked", path)
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "Bob"})
    assert made.counts["answers"] == 9


def test_of_a_log_the_lines_are_read_in_which_somebody_speaks(tmp_path: Path) -> None:
    said = [
        "Saved a.wav",
        "Clinic said: Who is it?",
        "POST /voice",
        "Patient reply: Alex.",
        "Clinic said: Hi.",
        "Patient reply: Bye",
    ]
    path = tmp_path / "server.txt"
    path.write_text("".join(f"2026-02-17T04:35:3{at}.000Z [inf]  {line}\n" for at, line in enumerate(said)))
    with pytest.raises(BadOption, match=r"none of them an assistant by name: 'Clinic' \(2\), 'Patient' \(2\)"):
        imported("chats", tmp_path / "asked", path)
    (made,) = import_results("chats", [path], tmp_path / "runs", options={"agent": "Clinic"})
    assert texts(made) == [("Alex.", "Hi.")]
    path.write_text("".join(f"2026-02-17T04:35:3{at}Z [{['inf', 'err'][at % 2]}] Saved\n" for at in range(9)))
    with pytest.raises(BadDataset, match="its lines have no speakers"):
        imported("chats", tmp_path / "none", path)


def test_dated_exchanges_that_nothing_tells_apart_may_follow_each_other(tmp_path: Path) -> None:
    rows = [{"question": "Hi", "answer": "Hello", "when": 1}, {"question": "And?", "answer": "Why?", "when": 2}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows))
    assert len(texts(imported("chats", tmp_path / "runs", path))) == 2
    dated = [{**row, "timestamp ": f"08:0{row['when']}:11 09/04/2025"} for row in rows]
    path.write_text(json.dumps(dated))
    with pytest.raises(BadOption, match=r"one conversation is not certain.*\n.*=row .*\n.*--set conversation=all"):
        imported("chats", tmp_path / "asked", path)
    (made,) = import_results("chats", [path], tmp_path / "all", options={"conversation": "all"})
    assert [sample.metadata["turn"] for sample in made.run.samples()] == [1, 2]


def test_dialogue_acts_are_no_messages(tmp_path: Path) -> None:
    turns = [
        {"intent": "request", "slots": ["cost"], "speaker": "user"},
        {"intent": "ok", "slots": [], "speaker": "agent"},
    ]
    last = {"intent": "inform", "inform": {"cost": "no match"}, "speaker": "agent"}
    path = tmp_path / "acts.json"
    path.write_text(json.dumps([turns * 3, [*turns * 4, last]]))
    with pytest.raises(BadDataset, match=r"holds who speaks \('speaker'\), but not what is said"):
        imported("chats", tmp_path / "runs", path)


@pytest.mark.parametrize(
    ("header", "row", "way"),
    [
        ("nr,wer,inhalt", "r{group},{turn},Das ist der Satz {n}", "--set speaker=wer --set text=inhalt --set agent=KO"),
        (
            "nr,links,rechts",
            "r{group},Das ist der Satz {n},Es ist ja der Satz {n}",
            "--set text=links --set agent=rechts",
        ),
        ("nr,links,rechts", "r{group},{left},{right}", "--set text=links --set agent=rechts"),
    ],
)
def test_columns_are_offered_by_their_structure_and_the_offer_works(
    tmp_path: Path, header: str, row: str, way: str
) -> None:
    lines = []
    for n in range(12):
        sides = [f"Das ist der Satz {n}", ""][:: 1 - n % 2 * 2]
        lines.append(row.format(group=n // 4, turn=("KU", "KO")[n % 2], n=n, left=sides[0], right=sides[1]))
    path = tmp_path / "talk.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    with pytest.raises(BadOption, match=rf"1\) {way}"):
        imported("chats", tmp_path / "asked", path)
    options = dict(word.split("=") for word in way.split() if "=" in word)
    with pytest.raises(BadOption, match="--set conversation=nr  # 3 conversations"):
        [*import_results("chats", [path], tmp_path / "asked", options=options)]
    (made,) = import_results("chats", [path], tmp_path / "runs", options={**options, "conversation": "nr"})
    assert len({sample.metadata["conversation"] for sample in made.run.samples()}) == 3


def test_lists_of_texts_are_offered_by_turns_and_pairs_by_their_names(tmp_path: Path) -> None:
    said = [f"Das ist der Satz {n}." for n in range(4)]
    path = tmp_path / "lists.json"
    path.write_text(json.dumps([{"nr": n, "xyz": said} for n in range(3)]))
    with pytest.raises(BadOption, match=r"1\) --set 'agent=speaker 2'  # 'xyz': two speak by turns"):
        imported("chats", tmp_path / "asked", path)
    (made,) = import_results("chats", [path], tmp_path / "turns", options={"agent": "speaker 2"})
    assert texts(made)[:2] == [(said[0], said[1]), (said[2], said[3])]
    path.write_text(
        json.dumps([{"nr": n, "xyz": [["KM"[at % 2], text] for at, text in enumerate(said)]} for n in range(3)])
    )
    with pytest.raises(BadOption, match=r"none of them an assistant by name: 'K' \(6\), 'M' \(6\)"):
        imported("chats", tmp_path / "pairs", path)
