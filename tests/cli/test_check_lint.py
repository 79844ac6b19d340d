"""`karat check --lint`: golden answers that contradict themselves, as a table, as JSON, and as a quarantine."""

from __future__ import annotations

import json

import pytest

TABLE = {"2007": {"price": 60.94, "volatility": -27.0}, "2005": {"price": 25.14, "volatility": -28.0}}


def conversation(name, **dialogue):
    return {
        "id": name,
        "doc": {"pre_text": "prices of options .", "post_text": "", "table": TABLE},
        "dialogue": {
            "conv_questions": ["what was the price in 2007?", "and the volatility?"],
            "conv_answers": ["60.94", "27%"],
            "turn_program": ["60.94", "27%"],
            "executed_answers": [60.94, 0.27],
        }
        | dialogue,
    }


@pytest.fixture
def conversations(here):
    path = here / "dev.json"
    records = [
        conversation("oil/2007"),
        conversation("oil/2008", conv_answers=["-60.94", "28%"], executed_answers=[60.94, 0.28]),
        conversation(
            "gas/2007", turn_program=["60.94", "-27"], executed_answers=[60.94, -27.0], conv_answers=["61", "-27"]
        ),
    ]
    path.write_text(json.dumps({"dev": records}), encoding="utf-8")
    return path


@pytest.mark.needs_kind("conversation")
def test_what_contradicts_itself_is_shown_as_a_table(karat, conversations, golden):
    done = karat("check", "--lint", conversations.name)
    assert (done.code, done.err) == (0, "")
    golden("lint.txt", done.out)


@pytest.mark.needs_kind("conversation")
def test_the_same_as_json(karat, conversations):
    found = karat("check", "--lint", conversations.name, "--json").json
    assert {key: found[key] for key in ("format", "kind", "samples", "turns", "reasons", "faults")} == {
        "format": 1,
        "kind": "conversation",
        "samples": 3,
        "turns": 6,
        "reasons": {"cell_sign": 2, "contradicts": 2, "printed_sign": 1, "program_disagrees": 1},
        "faults": [],
    }
    assert found["doubted"][0] == {
        "id": "oil/2007",
        "turn": 1,
        "reasons": ["cell_sign"],
        "evidence": {
            "cell_sign": {"operands": [{"operand": "27%", "row": "volatility", "column": "2007", "value": -27.0}]}
        },
    }


@pytest.mark.needs_kind("conversation")
def test_a_run_can_name_the_quarantine(karat, conversations, here):
    done = karat("check", "--lint", conversations.name, "--quarantine", "doubts.jsonl")
    assert done.err == "wrote doubts.jsonl: name it in the experiment as `dataset.quarantine`\n"
    lines = [json.loads(line) for line in (here / "doubts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["id"], line["turn"], line["reasons"]) for line in lines] == [
        ("oil/2007", 1, ["cell_sign"]),
        ("oil/2008", 0, ["printed_sign"]),
        ("oil/2008", 1, ["program_disagrees", "cell_sign", "contradicts"]),
        ("gas/2007", 1, ["contradicts"]),
    ]
    (here / "experiment.yaml").write_text(
        "dataset: {kind: conversation, path: dev.json, quarantine: doubts.jsonl}\n"
        "agent: {type: floor}\nconditions: {any: {}}\n",
        encoding="utf-8",
    )
    checked = karat("check", "experiment.yaml", "--json")
    assert checked.json["samples"] == 3


@pytest.mark.needs_kind("conversation")
def test_a_dataset_that_says_nothing_against_itself(karat, here):
    (here / "dev.json").write_text(json.dumps([conversation("c", turn_program=[None, None])]), encoding="utf-8")
    done = karat("check", "--lint", "dev.json")
    assert (done.code, done.out) == (0, "dev.json: 1 conversation, 2 turns; nothing contradicts itself\n")


def test_a_file_that_cannot_be_read_is_not_said_to_be_in_order(karat, here):
    (here / "dev.jsonl").write_bytes(b'{"conversation_id": "c", "question": "caf\xe9?", "answer": 1}\n')
    done = karat("check", "--lint", "dev.jsonl")
    assert (done.code, done.out) == (2, "dev.jsonl: 0 samples could be checked; a run would refuse the file\n")
    assert "line 1: byte 0xe9 is not UTF-8" in done.err


@pytest.mark.needs_kind("conversation")
def test_what_a_run_would_refuse_is_a_fault_and_the_rest_is_looked_at(karat, here):
    records = [conversation("c"), conversation("c"), conversation("d", conv_questions=["a?", ""])]
    (here / "dev.json").write_text(json.dumps(records), encoding="utf-8")
    done = karat("check", "--lint", "dev.json")
    assert done.code == 2
    assert done.out.startswith("dev.json: 1 conversation, 2 turns; 1 turn doubtful\n")
    assert done.err.splitlines() == [
        "item 2: the id 'c' is also in item 1; each conversation needs its own",
        "item 3: 'dialogue.conv_questions.1' is empty; fill it in, or remove the turn",
    ]


def test_questions_with_golden_answers_are_looked_at_too(karat, here):
    rows = [{"x": "How long?", "answer": "3 days"}, {"x": "how long", "answer": "5 days"}]
    (here / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert karat("check", "--lint", "q.jsonl").code == 2
    done = karat("check", "--lint", "q.jsonl", "--set", "question_key=x")
    assert done.code == 0
    assert done.out == (
        "q.jsonl: 2 samples; 1 sample doubtful\n\n"
        "  contradicts  1  an earlier sample asks the same and has another golden answer\n\n"
        "  1  contradicts  id 0, there 3 days, answer 5 days\n"
    )
    refused = karat("check", "--lint", "q.jsonl", "--set", "question_key=x", "--quarantine", "doubts.jsonl")
    assert refused.code == 2
    assert not (here / "doubts.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.json"], "gone.json: 1 fault\n  file: cannot be read: No such file or directory"),
        (
            ["dev.json", "--kind", "conversations"],
            "no kind of dataset is called 'conversations' (did you mean 'conversation'?)",
        ),
        (["dev.json", "--set", "splt=dev"], "--set: 1 fault\n  --set.splt: no such key (did you mean 'split'?)"),
        (["dev.json", "--set", "split"], "--set: expected KEY=VALUE, got 'split'"),
        (["dev.json", "--set", "split=test"], "dataset.split: there is no list 'test' in the file"),
    ],
)
@pytest.mark.needs_kind("conversation")
def test_what_cannot_be_looked_at_says_why(karat, conversations, arguments, message):
    done = karat("check", "--lint", *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.needs_kind("conversation")
def test_many_findings_are_counted_and_the_first_are_shown(karat, here):
    records = [conversation(f"c{number}", conv_answers=["-60.94", "27%"]) for number in range(30)]
    (here / "dev.json").write_text(json.dumps(records), encoding="utf-8")
    shown = karat("check", "--lint", "dev.json").out.splitlines()
    assert shown[0] == "dev.json: 30 conversations, 60 turns; 60 turns doubtful"
    assert shown[-1] == "  … and 10 more; --json or --quarantine FILE has all"


@pytest.mark.slow
def test_studies_show_the_numbers_that_nothing_checks(karat):
    done = karat("check", "--lint", "framing")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "framing: 1,350 samples; 1 published number doubtful"
    assert "calculator F5 T1  unchecked" in done.out
    found = karat("check", "--lint", "shipped", "--json").json
    assert (found["kind"], found["samples"], found["turns"]) == ("study", 3588, 5182)
    assert found["doubted"][0]["id"].startswith("beauty_contest: ")


@pytest.mark.slow
@pytest.mark.needs_kind("study")
def test_a_study_without_doubts(karat):
    assert karat("check", "--lint", "trust", "--set", "findings=F1").code == 0
    assert karat("check", "--lint", "impressions").out == "impressions: 376 samples; nothing contradicts itself\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["framng"], "and no study of that name comes with karat (did you mean 'framing'?)"),
        (["e.yaml"], "is an experiment file: use `karat check` for it"),
        (["plain"], "'plain' is a folder without a study.yaml"),
        (["bad.yaml"], "study (line 1, column 1): "),
        (["framing", "--quarantine", "x"], "--quarantine: a dataset of kind study has no key `quarantine`"),
        (["framing", "--set", "arm=x"], "no such key (did you mean 'arms'?)"),
    ],
)
@pytest.mark.needs_kind("study")
def test_what_is_no_study_to_be_looked_at(karat, here, words, said):
    (here / "plain").mkdir()
    (here / "e.yaml").write_text("dataset: {path: x}\nagent: {type: floor}\n", encoding="utf-8")
    (here / "bad.yaml").write_text("study: a b\narms: {}\nfindings: []\n", encoding="utf-8")
    done = karat("check", "--lint", *words)
    assert done.code == 2
    assert said in done.err
