"""Conversations with numbers, in each of their forms: what they become."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.config import load as load_experiment
from karat.errors import BadDataset, BadOption
from karat.kinds import Dataset, kind_of
from karat.records import Sample, Turn
from karat_conversations.kinds.conversation import Conversation
from karat_conversations.numeric import execute, parse_value

from .conversations import (
    CLEANED,
    EXECUTED,
    LINES,
    ORIGINAL,
    PRINTED,
    PROGRAMS,
    QUESTIONS,
    ROWS,
    TABLE,
    changed,
    load,
    write,
)


def golden_numbers(sample: Sample) -> list[Any]:
    return [
        (turn.golden, turn.detail["executed"], turn.detail["printed"], turn.detail["program"]) for turn in sample.turns
    ]


def test_a_cleaned_conversation_becomes_a_sample(folder: Path) -> None:
    [sample] = load(write("dev.json", {"dev": [CLEANED]}))
    assert sample.id == "MRO/2007-1"
    assert sample.turns[3] == Turn(
        question="and relative to 2005?",
        golden="1.42403",
        detail={
            "executed": 1.42403,
            "printed": "142.4%",
            "program": "subtract(60.94, 25.14), divide(#0, 25.14)",
            "operations": 2,
            "qa_split": True,
        },
    )
    assert [turn.detail["operations"] for turn in sample.turns] == [0, 0, 1, 2]
    assert sample.metadata == {
        "turns": 4,
        "has_type2_question": True,
        "has_duplicate_columns": False,
        "has_non_numeric_values": False,
        "conversation_type": "hybrid",
    }
    assert sample.detail == {"pre_text": "prices of options .", "post_text": "all in dollars .", "table": TABLE}
    assert (sample.weight, sample.apart) == (1.0, False)


def test_all_forms_of_a_file_say_the_same(folder: Path) -> None:
    files = [
        write("a.json", {"dev": [CLEANED]}),
        write("b.json", [CLEANED]),
        write("c.jsonl", [CLEANED]),
        write("d.json", [ORIGINAL]),
        write("e.jsonl", [ORIGINAL]),
        write("f.jsonl", LINES),
        write("g.json", LINES[::-1]),
    ]
    samples = [load(name).samples[0] for name in files]
    for name, sample in zip(files, samples, strict=True):
        assert golden_numbers(sample) == golden_numbers(samples[0]), name
        assert (sample.id, sample.position) == ("MRO/2007-1", 0)
        assert sample.detail["pre_text"] == "prices of options ."
    assert len({sample.digest for sample in samples[:3]}) == 1
    assert samples[3].detail["table"] == ROWS
    assert samples[3].metadata == samples[0].metadata
    assert samples[5].metadata["sector"] == "oil"


def test_turns_come_from_any_table_of_rows(folder: Path) -> None:
    Path("t.csv").write_text(
        "record_id,turn,question,answer,unit,document,qa_split\n"
        "c1,2,and in 2005?,10%,,,1\n"
        'c1,1,what was it in 2007?,60.94,million,"the price was 60.94",0\n'
        "c2,1,and here?,yes,,,\n"
    )
    first, second = load("t.csv")
    assert [(turn.question, turn.golden) for turn in first.turns] == [
        ("what was it in 2007?", "60.94"),
        ("and in 2005?", "10%"),
    ]
    assert first.turns[0].detail["unit"] == "million"
    assert first.metadata["conversation_type"] == "hybrid"
    assert first.detail["pre_text"] == "the price was 60.94"
    assert second.turns[0].golden == "yes"
    assert "Here is an extract" not in (second.materials or "")
    assert second.metadata["has_type2_question"] is None


def test_turns_may_be_lists_and_their_columns_have_usual_names(folder: Path) -> None:
    turns = [{"query": "how much?", "expected_answer": 3}, {"query": "and then?", "expected_answer": 4.5}]
    write("nested.json", [{"id": "c1", "turns": turns}, {"id": "c2", "turns": turns[:1]}])
    write("t.jsonl", [{"session_id": "c1", **turn} for turn in turns] + [{"session_id": "c2", **turns[0]}])
    for name, options in (("nested.json", {}), ("t.jsonl", {"conversation_key": "session_id"})):
        found = [(sample.id, [turn.golden for turn in sample.turns]) for sample in load(name, **options)]
        assert found == [("c1", ["3", "4.5"]), ("c2", ["3"])], name


def test_columns_of_other_names_are_named(folder: Path) -> None:
    write("t.jsonl", [{"dialog": 7, "q": "how much?", "a": 3}, {"dialog": 7, "q": "and then?", "a": 4.5}])
    [sample] = load("t.jsonl", conversation_key="dialog", question_key="q", answer_key="a")
    assert (sample.id, [turn.golden for turn in sample.turns]) == ("7", ["3", "4.5"])


def test_the_printed_answer_can_be_the_golden_one(folder: Path) -> None:
    write("dev.json", [CLEANED])
    executed, printed = load("dev.json"), load("dev.json", expected="printed")
    assert [turn.golden for turn in printed.samples[0].turns] == PRINTED
    assert [turn.golden for turn in executed.samples[0].turns] == ["60.94", "25.14", "35.8", "1.42403"]
    assert executed.samples[0].digest != printed.samples[0].digest


def test_printed_answers_of_the_original_form_are_left_out_where_they_cannot_be_known(folder: Path) -> None:
    record = changed(ORIGINAL, annotation__step_list=["divide(1, 2)"])
    write("dev.json", [record])
    assert [turn.detail["printed"] for turn in load("dev.json").samples[0].turns] == ["60.94", "25.14", None, "142%"]


def test_printed_answers_of_two_questions_come_from_the_steps_of_both(folder: Path) -> None:
    steps = ["-8.94", "-8.9%"], ["-24.05", "-24.05%", "2.11"]
    record = changed(
        ORIGINAL,
        qa=...,
        qa_0={"answer": "-8.9%", "steps": [{"res": result} for result in steps[0]]},
        qa_1={"answer": "2.11", "steps": [{"res": result} for result in steps[1]]},
        annotation__dialogue_break=[f"question {number}?" for number in range(6)],
        annotation__turn_program=None,
        annotation__exe_ans_list=[-8.94, -0.0894, 100.0, -24.05, -0.2405, 2.11],
        annotation__step_list=["a(1, 2)", "a(3, 4)", "Ask for number 100", "a(5, 6)", "a(7, 8)", "a(9, 10)"],
        annotation__answer_list=["#0", "#1", "100", "#3", "#4", "#5"],
        annotation__qa_split=[0, 0, 1, 1, 1, 1],
    )
    write("dev.json", [record])
    [sample] = load("dev.json")
    assert [turn.detail["printed"] for turn in sample.turns] == ["-8.94", "-8.9%", "100", "-24.05", "-24.05%", "2.11"]
    assert [turn.detail["operations"] for turn in sample.turns] == [0] * 6
    assert sample.metadata["conversation_type"] == "hybrid"


def test_with_golden_history_each_turn_stands_apart_and_tells_what_went_before(folder: Path) -> None:
    write("dev.json", [CLEANED])
    [sample] = load("dev.json", history="golden")
    assert sample.apart
    assert sample.turns[0].asked is None
    assert sample.turns[2].asked == (
        "What was asked before, with the right answers:\n\n"
        "Question: what was the price in 2007?\nAnswer: 60.94\n\n"
        "Question: and in 2005?\nAnswer: 25.14\n\n"
        "The question now:\nwhat was the change?"
    )
    assert sample.digest != load("dev.json").samples[0].digest


def test_the_first_message_holds_the_document_the_table_and_how_to_answer(
    folder: Path, golden: Callable[[str, str], None]
) -> None:
    write("dev.json", [CLEANED])
    golden("conversation-first-message.txt", (load("dev.json").samples[0].materials or "") + "\n")


def test_a_template_of_the_user_replaces_the_first_message(folder: Path) -> None:
    write("dev.json", [CLEANED])
    assert load("dev.json", template="{{ post_text }} {{id}}").samples[0].materials == "all in dollars . MRO/2007-1"
    Path("first.txt").write_text("Report: {{ pre_text }}", encoding="utf-8")
    assert load("dev.json", template="first.txt").samples[0].materials == "Report: prices of options ."
    Path("elsewhere").mkdir()
    Path("elsewhere", "own.txt").write_text("{{ table }}", encoding="utf-8")
    kind = Conversation(Conversation.Options(template="own.txt"), folder=Path("elsewhere").absolute())
    assert (kind.load(Path("dev.json")).samples[0].materials or "").startswith(
        "|  | 2007 | 2005 |\n| --- | --- | --- |"
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ documnt }}", r"there is no value called 'documnt' \(did you mean 'document'\?\)"),
        ("gone.txt", r"there is no file 'gone.txt', and it is not a text with a field such as \{\{ document \}\}"),
        (
            "plain.txt",
            r"'plain.txt' has no field such as \{\{ document \}\}: every conversation would get the same text",
        ),
        ("latin.txt", "'latin.txt' is not UTF-8"),
        ("long.txt", "'long.txt' is longer than 1,000,000 bytes"),
    ],
)
def test_a_template_that_cannot_be_used_says_why(folder: Path, template: str, message: str) -> None:
    write("dev.json", [CLEANED])
    Path("plain.txt").write_text("no field")
    Path("latin.txt").write_bytes("{{ document }} für".encode("latin-1"))
    Path("long.txt").write_text("x" * 1_000_001)
    with pytest.raises(BadOption, match=f"dataset.template: {message}"):
        load("dev.json", template=template)


def test_a_template_never_expands_what_stands_in_the_document(folder: Path) -> None:
    write("dev.json", [changed(CLEANED, doc__pre_text="{{ answer_format }}")])
    assert load("dev.json", template="{{ pre_text }}").samples[0].materials == "{{ answer_format }}"


def test_a_digest_covers_what_is_asked_what_is_golden_and_what_is_read(folder: Path) -> None:
    plain = load(write("a.json", [CLEANED])).samples[0].digest
    others = [
        changed(CLEANED, doc__post_text="other ."),
        changed(CLEANED, dialogue__conv_questions=["other?", *QUESTIONS[1:]]),
        changed(CLEANED, dialogue__executed_answers=[1.0, *EXECUTED[1:]]),
        changed(CLEANED, dialogue__turn_program=["25.14", *PROGRAMS[1:]]),
    ]
    digests = {load(write("b.json", [record])).samples[0].digest for record in others}
    assert len(digests | {plain}) == 5
    same = changed(CLEANED, id="other", features__has_type2_question=False)
    assert load(write("b.json", [same])).samples[0].digest == plain


def test_one_of_several_splits_is_named(folder: Path) -> None:
    write("all.json", {"train": [changed(CLEANED, id="t")], "dev": [CLEANED], "version": 2})
    assert [sample.id for sample in load("all.json", split="dev")] == ["MRO/2007-1"]
    with pytest.raises(BadDataset, match=r"dataset.split: must name one of the file's lists: train, dev"):
        load("all.json")
    with pytest.raises(BadDataset, match="there is no list 'dve' in the file"):
        load("all.json", split="dve")


def marks(dataset: Dataset) -> list[list[str] | None]:
    return [turn.detail.get("quarantined") for sample in dataset for turn in sample.turns]


def test_a_quarantine_marks_turns_and_drops_none(folder: Path) -> None:
    write("dev.json", [CLEANED, changed(CLEANED, id="other")])
    lines = [
        {"id": "MRO/2007-1", "turn": 2, "reasons": ["cell_sign"], "evidence": {}},
        {"id": "MRO/2007-1", "turn": 2, "reasons": ["cell_sign", "doubt"]},
        {"id": "other", "turn": None, "reasons": "all of it"},
    ]
    marked = load("dev.json", quarantine=write("q.jsonl", lines))
    assert marks(marked) == [[], [], ["cell_sign", "doubt"], [], *[["all of it"]] * 4]
    plain = load("dev.json")
    assert marks(plain) == [None] * 8
    assert [sample.digest for sample in marked] == [sample.digest for sample in plain]


def test_what_lint_writes_a_run_can_name(folder: Path) -> None:
    write("dev.json", [changed(CLEANED, dialogue__conv_answers=["-60.94", *PRINTED[1:]])])
    found = Conversation(Conversation.Options()).lint(Path("dev.json"))
    assert [(one.id, one.turn, one.reasons) for one in found.doubted] == [("MRO/2007-1", 0, ("printed_sign",))]
    Path("q.jsonl").write_text(Conversation.quarantine_text(found.doubted), encoding="utf-8")
    assert marks(load("dev.json", quarantine="q.jsonl")) == [["printed_sign"], [], [], []]


def test_a_quarantine_that_does_not_fit_the_dataset_is_refused_with_every_fault(folder: Path) -> None:
    write("dev.json", [CLEANED])
    lines = [
        {"id": "MRO/2007-2", "turn": 0, "reasons": ["x"]},
        {"id": "MRO/2007-1", "turn": 4, "reasons": ["x"]},
        {"id": "MRO/2007-1", "turn": "0", "reasons": ["x"]},
        {"id": "MRO/2007-1", "turn": 0, "reasons": []},
        {"turn": 0, "reasons": ["x"]},
    ]
    with pytest.raises(BadDataset) as caught:
        load("dev.json", quarantine=write("q.jsonl", lines))
    assert str(caught.value).split("\n") == [
        "q.jsonl: 5 faults",
        "  line 1: the dataset has no conversation 'MRO/2007-2' (did you mean 'MRO/2007-1'?)",
        "  line 2: 'MRO/2007-1' has no turn 4: it has 4, counted from 0",
        "  line 3: 'turn' must be a whole number from 0, or null for all turns, got '0'",
        "  line 4: 'reasons' must be a list of texts, got a list",
        "  line 5: 'id' must be the id of a conversation, got nothing",
    ]
    with pytest.raises(
        BadOption, match=r"dataset.quarantine: there is no file 'gone.jsonl'; `karat check --lint` writes one"
    ):
        load("dev.json", quarantine="gone.jsonl")


def test_the_kind_of_a_file_is_seen(folder: Path) -> None:
    assert kind_of(Path(write("a.json", {"dev": [CLEANED]}))) == "conversation"
    assert kind_of(Path(write("b.json", {"train": [], "dev": [CLEANED]}))) == "conversation"
    assert kind_of(Path(write("c.jsonl", [ORIGINAL]))) == "conversation"
    assert kind_of(Path(write("d.jsonl", LINES))) == "conversation"
    assert kind_of(Path(write("e.jsonl", [{"question": "q", "answer": "a"}]))) == "golden"


def test_convfinqa_is_read_whole(convfinqa: Path) -> None:
    dataset = load(convfinqa)
    assert len(dataset) == 421
    turns = [turn for sample in dataset for turn in sample.turns]
    assert len(turns) == 1490
    assert Counter(sample.metadata["conversation_type"] for sample in dataset) == {"simple": 300, "hybrid": 121}
    features = ("has_type2_question", "has_duplicate_columns", "has_non_numeric_values")
    assert [sum(sample.metadata[name] for sample in dataset) for name in features] == [121, 17, 32]
    assert len({sample.digest for sample in dataset}) == 421
    assert all(turn.golden is not None and parse_value(turn.golden) is not None for turn in turns)
    printed = [turn for sample in load(convfinqa, expected="printed") for turn in sample.turns]
    assert all(turn.golden == turn.detail["printed"] for turn in printed)


def test_every_golden_program_of_convfinqa_gives_its_answer(convfinqa: Path) -> None:
    for sample in load(convfinqa):
        for turn in sample.turns:
            value = execute(turn.detail["program"], table=sample.detail["table"], rounding=5)
            wanted = {"yes": True, "no": False}.get(turn.detail["executed"], turn.detail["executed"])
            assert value == pytest.approx(wanted, abs=1e-9), (sample.id, turn)


def test_an_experiment_finds_template_and_quarantine_beside_itself(folder: Path) -> None:
    home = Path("home")
    home.mkdir()
    write("home/dev.json", [CLEANED])
    write("home/doubts.jsonl", [{"id": "MRO/2007-1", "turn": 0, "reasons": ["x"]}])
    (home / "first.txt").write_text("Read: {{ pre_text }}", encoding="utf-8")
    (home / "experiment.yaml").write_text(
        "dataset: {kind: conversation, path: dev.json, template: first.txt, quarantine: doubts.jsonl}\n"
        "agent: {type: floor}\nconditions: {any: {}}\n",
        encoding="utf-8",
    )
    [sample] = load_experiment(home / "experiment.yaml").load_dataset()
    assert sample.materials == "Read: prices of options ."
    assert sample.turns[0].detail["quarantined"] == ["x"]


def test_what_a_conversation_is_about_is_that_of_its_first_turn(folder: Path) -> None:
    turns = [
        {"turn_idx": 1, "answer": "2", "year": 2007.0, "flag": True},
        {"turn_idx": 0, "answer": "1", "flag": 1, "year": 2007},
    ]
    rows = [{"conversation_id": "c", "question": f"Turn {turn['turn_idx']}?", **turn} for turn in turns]
    (folder / "turns.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (sample,) = Conversation(Conversation.Options()).load(folder / "turns.jsonl").samples
    kept = {name: sample.metadata[name] for name in ("flag", "year")}
    assert [(name, type(value)) for name, value in kept.items()] == [("flag", int), ("year", int)]
    assert [*sample.metadata].index("flag") < [*sample.metadata].index("year")
