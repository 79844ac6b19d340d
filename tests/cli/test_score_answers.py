"""`karat score PREDICTIONS --kind conversation`: answers to conversations that were made elsewhere."""

from __future__ import annotations

import csv
import json

import pytest

from karat_conversations.numeric import parse_program

CONVERSATIONS = [
    {
        "id": "a.pdf-1",
        "doc": {
            "pre_text": "sales in millions .",
            "post_text": "",
            "table": {"2019": {"sales": 110.0}, "2018": {"sales": 100.0}},
        },
        "dialogue": {
            "conv_questions": ["sales in 2019?", "and in 2018?", "the growth?"],
            "conv_answers": ["110", "100", "10.0%"],
            "turn_program": ["110", "100", "subtract(110, 100), divide(#0, 100)"],
            "executed_answers": [110.0, 100.0, 0.1],
            "qa_split": [False, False, False],
        },
        "features": {"num_dialogue_turns": 3, "has_type2_question": False},
    },
    {
        "id": "b.pdf",
        "doc": {"pre_text": "", "post_text": "", "table": {"2019": {"costs": 80.0}}},
        "dialogue": {
            "conv_questions": ["costs in 2019?", "were they above 90?"],
            "conv_answers": ["80", "no"],
            "turn_program": ["80", "greater(80, 90)"],
            "executed_answers": [80.0, "no"],
            "qa_split": [False, False],
        },
        "features": {"num_dialogue_turns": 2, "has_type2_question": False},
    },
]
RIGHT = {("a.pdf-1", 0): "110", ("a.pdf-1", 1): "100", ("a.pdf-1", 2): "0.1", ("b.pdf", 0): "80", ("b.pdf", 1): "no"}
ROWS = [{"record_id": name, "turn_idx": turn, "predicted_answer": said} for (name, turn), said in RIGHT.items()]


@pytest.fixture
def score(karat, here):
    """`score(rows, *flags)`: how `karat score` ends for a file of these rows."""
    (here / "dev.json").write_text(json.dumps({"dev": CONVERSATIONS}), encoding="utf-8")

    def run(rows, *flags, name="said.jsonl"):
        lines = "".join(json.dumps(row) + "\n" for row in rows) if name.endswith(".jsonl") else json.dumps(rows)
        (here / name).write_text(lines, encoding="utf-8")
        return karat("score", name, "--dataset", "dev.json", "--kind", "conversation", *flags)

    return run


def journalled(here, run, event):
    lines = (here / run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [found for found in map(json.loads, lines) if found["event"] == event]


def right(here, run):
    """(conversation, turn) → whether it is right."""
    samples = {found["trial"]: found["sample"] for found in journalled(here, run, "answer")}
    return {
        (samples[found["trial"]], found["turn"]): found["values"]["right"] for found in journalled(here, run, "score")
    }


@pytest.mark.needs_kind("conversation")
def test_one_row_a_turn_becomes_one_answer_a_conversation(score, here):
    done = score(ROWS, "--json")
    assert done.code == 0, done.err
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)
    summary = done.json["summary"]
    assert (summary["name"], summary["samples"], summary["total"]["ledger"]["scored"]) == ("said", 2, 2)
    assert summary["warnings"] == []
    assert "columns: conversation_id=record_id turn=turn_idx answer=predicted_answer" in done.err


@pytest.mark.needs_kind("conversation")
def test_columns_are_named_with_map(score, here):
    rows = [{"doc": row["record_id"], "k": row["turn_idx"], "final": row["predicted_answer"]} for row in ROWS]
    named = [f"--map={target}" for target in ("conversation_id=doc", "turn=k", "answer=final")]
    done = score(rows, *named, "--json")
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--map", "anser=x"], "--map: unknown target 'anser' (did you mean 'answer'?)", id="misspelt"),
        pytest.param(["--map", "answer"], "expected TARGET=COLUMN", id="no column"),
        pytest.param(["--map", "turn=a", "--map", "turn=b"], "'turn' is given twice", id="twice"),
        pytest.param(["--map", "answer=predicted"], "no row has the column 'predicted'", id="no such column"),
        pytest.param(["--map", "first_turn=7"], "first_turn", id="turns from 7"),
    ],
)
@pytest.mark.needs_kind("conversation")
def test_what_is_named_wrongly_is_refused(score, here, flags, said):
    done = score(ROWS, *flags)
    assert done.code == 2
    assert said in done.err
    assert not (here / "results").exists()


@pytest.mark.needs_kind("conversation")
def test_columns_of_plain_answers_are_named_with_map_as_well(karat, here):
    (here / "asked.jsonl").write_text('{"key": "a", "question": "?", "answer": "yes"}\n', encoding="utf-8")
    (here / "said.csv").write_text("key,output\na,yes\n", encoding="utf-8")
    command = ["score", "said.csv", "--dataset", "asked.jsonl", "--scorer", "equals", "--map", "answer=output"]
    done = karat(*command, "--map", "id=key", "--json")
    assert done.code == 0, done.err
    assert done.json["summary"]["results"][0]["mean"]["value"] == 1.0
    refused = karat(*command, "--map", "program=x")
    assert refused.code == 2
    assert "unknown target 'program' (it is for --kind conversation); choose from id, answer" in refused.err


def test_columns_that_are_not_used_are_said(karat, here):
    (here / "said.csv").write_text("id,question,golden,answer,topic\na,?,yes,yes,geo\n", encoding="utf-8")
    done = karat("score", "said.csv", "--scorer", "equals")
    assert (done.code, "\nnot used: topic\n" in done.err) == (0, True)


FAULTY = [
    *ROWS[:1],
    {**ROWS[0], "predicted_answer": "111"},
    ROWS[3],
    ROWS[4],
    {"record_id": "c.pdf", "turn_idx": 0, "predicted_answer": "1"},
]
TOLD = [
    "1 row of a conversation that is not asked for (left out)",
    "1 further row for a turn that has one (the first counts)",
    "2 turns without a row (wrong)",
]


@pytest.mark.needs_kind("conversation")
def test_faults_of_the_file_are_listed_at_once_counted_and_scored(score, here, karat):
    done = score(FAULTY)
    assert done.code == 0, done.err
    block = done.err[done.err.index("said.jsonl: 4 faults in 5 rows") :].splitlines()
    assert block[1:9] == [
        f"  {TOLD[0]}",
        "    line 5: no conversation is called 'c.pdf'",
        f"  {TOLD[1]}",
        "    line 2: a second row for 'a.pdf-1', turn 0, with another answer; line 1 counts",
        f"  {TOLD[2]}",
        "    conversation 'a.pdf-1': has no row for turns 1, 2",
        "  The rest is scored. With --strict, nothing is.",
        *block[8:9],
    ]
    again = karat("report", "latest", "--json").json
    (warning,) = [text for text in again["warnings"] if "file of answers" in text]
    assert all(text in warning for text in TOLD)
    run = next(path.name for path in (here / "results").iterdir())
    source = json.loads((here / "results" / run / "run.json").read_text(encoding="utf-8"))["source"]
    counts = {key: source[key] for key in ("rows", "rows_used", "turns", "unknown_id", "duplicate", "missing_turn")}
    assert list(counts.values()) == ["5", "3", "5", "1", "1", "2"]


@pytest.mark.needs_kind("conversation")
def test_a_turn_without_a_row_is_wrong_and_counted(score, here):
    done = score(FAULTY, "--json", "-q")
    assert done.err == ""
    assert right(here, done.json["run"]) == {**dict.fromkeys(RIGHT, True), ("a.pdf-1", 1): False, ("a.pdf-1", 2): False}
    (condition,) = done.json["summary"]["conversation"]["conditions"]
    assert (condition["turns"], condition["unreached"]) == (5, 2)


@pytest.mark.needs_kind("conversation")
def test_a_file_of_which_no_row_fits_is_no_file_of_answers(score, here):
    ended = score([{**row, "record_id": "elsewhere"} for row in ROWS])
    assert ended.code == 2
    assert ended.err.index("no row answers a turn of the dataset") < ended.err.index("elsewhere")
    assert not (here / "results").exists()


@pytest.mark.needs_kind("conversation")
def test_strict_refuses_a_file_with_faults(score, here):
    done = score(FAULTY, "--strict")
    assert done.code == 2
    assert "said.jsonl: 3 faults" in done.err
    assert "conversation 'a.pdf-1': has no row for turns 1, 2" in done.err
    assert not (here / "results").exists()
    assert score(ROWS, "--strict").code == 0


def test_strict_refuses_plain_answers_to_unknown_samples(karat, here):
    (here / "asked.jsonl").write_text('{"question": "?", "answer": "yes"}\n', encoding="utf-8")
    (here / "said.csv").write_text("id,answer\n0,yes\n7,no\n", encoding="utf-8")
    done = karat("score", "said.csv", "--dataset", "asked.jsonl", "--strict")
    assert done.code == 2
    assert "1 answer left out: the dataset has no sample called '7'" in done.err


@pytest.mark.needs_kind("conversation")
def test_events_tell_the_faults_too(score):
    done = score(FAULTY, "--events")
    events = [json.loads(line) for line in done.err.splitlines()]
    told = " ".join(json.dumps(event) for event in events)
    assert all(text in told for text in TOLD)


@pytest.mark.needs_kind("conversation")
def test_the_programs_of_a_leaderboard_file_are_scored(score, here):
    programs = {
        "a.pdf-1_0": ["110", "EOF"],
        "a.pdf-1_1": ["100", "EOF"],
        "a.pdf-1_2": ["subtract(", "110", "100", ")", "divide(", "#0", "100", ")", "EOF"],
        "b.pdf_0": ["80", "EOF"],
        "b.pdf_1": ["greater(", "80", "90", ")", "EOF"],
    }
    rows = [{"id": name, "predicted": tokens} for name, tokens in programs.items()]
    done = score(rows, "--json", "--strict", name="said.json")
    assert done.code == 0, done.err
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)
    matches = [found["values"]["program_match"] for found in journalled(here, done.json["run"], "score")]
    assert matches == [True] * 5


@pytest.mark.needs_kind("conversation")
def test_the_file_s_own_verdicts_stand_beside_ours(score):
    rows = [{**row, "correct": row["turn_idx"] != 1} for row in ROWS]
    done = score(rows, "--json")
    (condition,) = done.json["summary"]["conversation"]["conditions"]
    verdicts = condition["verdicts"]
    assert (verdicts["n"], verdicts["right"], verdicts["agreement"]["numerical"]) == (5, 3, 0.8)


@pytest.mark.needs_kind("conversation")
def test_printed_answers_may_be_the_golden_ones(score, here):
    rows = [
        {**row, "predicted_answer": "10%" if row["predicted_answer"] == "0.1" else row["predicted_answer"]}
        for row in ROWS
    ]
    done = score(rows, "--set", "dataset.expected=printed", "--json")
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)


@pytest.mark.needs_kind("conversation")
def test_turns_that_are_asked_apart_find_their_rows(score, here):
    done = score(ROWS, "--set", "dataset.history=golden", "--json")
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)


def test_a_run_of_its_own_takes_no_columns(score, karat):
    score(ROWS)
    refused = karat("score", "latest", "--map", "answer=x")
    assert refused.code == 2
    assert "--map" in refused.err


@pytest.mark.slow
def test_the_real_predictions_are_scored_as_published(karat, here, shared_data):
    """numeric.md and the issue: accuracies of `predictions_sonnet.jsonl` in percent, each ± 0.1."""
    data = shared_data / "convfinqa"
    done = karat(
        "score", data / "predictions_sonnet.jsonl", "--dataset", data / "dev.json", "--kind", "conversation", "--json"
    )
    assert done.code == 0, done.err
    scores = journalled(here, done.json["run"], "score")
    assert len(scores) == 1490
    wanted = {"numerical": 66.9, "unit_agnostic": 83.8, "sign_agnostic": 68.3, "exact": 59.5, "declared": 83.4}
    found = {name: 100 * sum(score["values"][name] for score in scores) / 1490 for name in wanted}
    assert found == pytest.approx(wanted, abs=0.1)
    (condition,) = done.json["summary"]["conversation"]["conditions"]
    assert (condition["verdicts"]["n"], condition["verdicts"]["right"]) == (1490, 1244)
    assert done.json["summary"]["warnings"] == []


@pytest.mark.slow
def test_the_golden_programs_as_a_leaderboard_file_are_right_throughout(karat, here, shared_data):
    dataset = shared_data / "convfinqa" / "dev.json"
    rows = [
        {"id": f"{one['id']}_{turn}", "predicted": list(parse_program(program).tokens)}
        for one in json.loads(dataset.read_text(encoding="utf-8"))["dev"]
        for turn, program in enumerate(one["dialogue"]["turn_program"])
    ]
    (here / "predictions.json").write_text(json.dumps(rows), encoding="utf-8")
    done = karat("score", "predictions.json", "--dataset", dataset, "--kind", "conversation", "--json", "--strict")
    assert done.code == 0, done.err
    found = right(here, done.json["run"])
    assert len(found) == 1490
    assert all(found.values())


def test_predictions_with_programs_are_read_as_they_are(karat, here, shared_data):
    """The file brings its golden answers along, of conversations that `dev.json` does not have."""
    file = shared_data / "convfinqa" / "predictions_programs.json"
    rows = json.loads(file.read_text(encoding="utf-8"))["results"]
    turns = [(*row["question_id"].rpartition("-")[::2], row) for row in rows]
    asked = [
        {"conversation": name, "turn": int(turn), "question": row["question"], "answer": str(row["expected_answer"])}
        for name, turn, row in turns
    ]
    (here / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    keys = {"conversation_key": "conversation", "turn_key": "turn", "question_key": "question", "answer_key": "answer"}
    settings = [f"--set=dataset.{key}={column}" for key, column in keys.items()]
    settings.append("--set=dataset.expected=printed")
    done = karat("score", file, "--dataset", "asked.jsonl", "--kind", "conversation", "--json", "--strict", *settings)
    assert done.code == 0, done.err
    assert len(journalled(here, done.json["run"], "score")) == 355
    replies = [reply for found in journalled(here, done.json["run"], "answer") for reply in found["replies"]]
    assert sum(reply["verdict"] for reply in replies) == 300
    assert sum("program" in reply for reply in replies) == 354  # one turn ended in an error


@pytest.mark.needs_kind("conversation")
def test_a_forgotten_kind_is_named_instead_of_a_fault_a_row(karat, here):
    (here / "dev.json").write_text(json.dumps({"dev": CONVERSATIONS}), encoding="utf-8")
    (here / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    done = karat("score", "said.jsonl", "--dataset", "dev.json")
    assert (done.code, done.err) == (2, "--kind: dev.json holds conversations: say --kind conversation\n")


PROSE = {
    ("a.pdf-1", 0): "The answer is 110",
    ("a.pdf-1", 1): "**100**",
    ("a.pdf-1", 2): "it grew by 10%",
    ("b.pdf", 0): "USD 80.0",
    ("b.pdf", 1): "no",
}
PROSE_ROWS = [{"record_id": name, "turn_idx": turn, "predicted_answer": said} for (name, turn), said in PROSE.items()]


@pytest.mark.needs_kind("conversation")
def test_extract_reads_the_number_in_an_answer_that_is_more_than_a_number(score, here, karat):
    done = score(PROSE_ROWS, "--extract", "last_number", "--json")
    assert done.code == 0, done.err
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)
    assert done.json["summary"]["conversation"]["conditions"][0]["extraction"] == {"last_number": 4, "reply": 1}
    shown = karat("report", done.json["run"])
    assert "Answers: 4 by last_number, 1 as given." in " ".join(shown.out.split())


@pytest.mark.needs_kind("conversation")
def test_without_extract_prose_is_read_as_well(score, here):
    done = score(PROSE_ROWS, "--json")
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)
    assert done.json["summary"]["conversation"]["conditions"][0]["extraction"] == {"final": 4, "reply": 1}
    assert done.json["summary"]["notices"] == []


@pytest.mark.needs_kind("conversation")
def test_unreadable_answers_are_named_above_the_result_with_their_remedy(score):
    done = score(PROSE_ROWS, "--extract", "json")
    first = " ".join(done.out.split("\n\n")[0].split())
    assert first.startswith(
        "4 of 5 answers of answers could not be read as a number, and count as wrong: ask the agent"
    )
    assert "`karat score RUN --extract final`" in first


@pytest.mark.needs_kind("conversation")
def test_a_row_with_chat_messages_answers_its_turns_in_order(score, here):
    said = ["The answer is 110.", [{"type": "text", "text": "100"}], "10%"]
    messages = [{"role": role, "content": text} for text in said for role, text in (("user", "q"), ("assistant", text))]
    done = score([{"id": "a.pdf-1", "messages": messages}], "--json")
    assert done.code == 0, done.err
    assert [now for (name, _), now in sorted(right(here, done.json["run"]).items()) if name == "a.pdf-1"] == [True] * 3


@pytest.mark.needs_kind("conversation")
def test_a_declared_sentinel_makes_abstaining_right(karat, here):
    golden = [5, "NOT_AVAILABLE", "NOT_AVAILABLE", 7]
    said = ["5", "The report does not disclose this.", "12", "unknown"]
    rows = [{"conversation_id": "a", "turn_idx": at, "question": "q", "answer": x} for at, x in enumerate(golden)]
    answers = [{"conversation_id": "a", "turn": at, "answer": text} for at, text in enumerate(said)]
    for name, lines in (("d.jsonl", rows), ("said.jsonl", answers)):
        (here / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    experiment = {
        "name": "s",
        "dataset": {"kind": "conversation", "path": "d.jsonl", "unanswerable": "not_available"},
        "agent": {"type": "replay", "path": "said.jsonl", "turns": {}},
        "conditions": {"plain": {}},
        "execution": {"num_repetitions": 1},
    }
    (here / "experiment.yaml").write_text(json.dumps(experiment), encoding="utf-8")
    done = karat("run", "experiment.yaml", "--json")
    assert done.code == 0, done.err
    condition = done.json["summary"]["conversation"]["conditions"][0]
    assert condition["abstentions"] == {"over_refusal": 1, "right": 1, "unsupported": 1}
    rates = {rate["metric"]: rate["estimate"]["value"] for rate in condition["accuracies"]}
    assert (rates["right"], condition["turns"]) == (0.5, 4)


@pytest.mark.needs_kind("conversation")
def test_a_run_is_scored_again_with_another_extraction(score, here, karat):
    first = score(PROSE_ROWS, "--json").json["run"]
    again = karat("score", first, "--extract", r"regex:(\d+%?)", "--json")
    assert again.code == 0, again.err
    rates = {rate["metric"]: rate for rate in again.json["summary"]["conversation"]["conditions"][0]["accuracies"]}
    assert rates["general"]["estimate"]["value"] == 0.8  # the 0 of 80.0 comes last


@pytest.mark.parametrize("how", ["number", "regex", "regex:", "json:x"])
@pytest.mark.needs_kind("conversation")
def test_an_unknown_extraction_is_refused(score, how):
    done = score(PROSE_ROWS, "--extract", how)
    assert (done.code, "expected final, json, last_number or regex:PATTERN" in done.err) == (2, True)


@pytest.mark.needs_kind("conversation")
def test_an_answer_column_with_an_object_is_read_like_a_reply(score, here):
    told = [{**row, "predicted_answer": json.dumps({"answer": row["predicted_answer"]})} for row in ROWS]
    done = score(told, "--json")
    assert right(here, done.json["run"]) == dict.fromkeys(RIGHT, True)


TEXTS = [
    {"conversation_id": "c", "turn_idx": 0, "question": "who left?", "answer": "The chief executive resigned."},
    {"conversation_id": "c", "turn_idx": 1, "question": "and why?", "answer": "Because sales fell in Europe."},
]
SAID = [
    {"conversation_id": "c", "turn_idx": 0, "answer": "The chief executive resigned."},
    {"conversation_id": "c", "turn_idx": 1, "answer": "I like turtles."},
]


@pytest.fixture
def score_text(karat, here):
    def run(turns, rows, *flags):
        for name, lines in (("turns.jsonl", turns), ("said.jsonl", rows)):
            (here / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return karat("score", "said.jsonl", "--dataset", "turns.jsonl", "--kind", "conversation", "--json", *flags)

    return run


@pytest.mark.needs_kind("conversation")
def test_golden_text_is_judged_turn_by_turn_and_numbers_say_nothing_of_it(score_text, here):
    done = score_text(TEXTS, SAID)
    assert done.code == 0, done.err
    rows = [row for row in journalled(here, done.json["run"], "score") if row["scorer"] == "judge"]
    assert [(row["turn"], row["values"]["factual_adherence"] > 3) for row in rows] == [(0, True), (1, False)]
    assert {row["rows"] for row in rows} == {2}
    (sample,) = map(json.loads, (here / done.json["run"] / "samples.jsonl").read_text(encoding="utf-8").splitlines())
    assert "materials" not in sample  # nobody is asked for JSON with a number
    summary = done.json["summary"]
    assert "conversation" not in summary
    assert "numerically right" not in summary["headline"]
    assert "factual_adherence" in summary["headline"]


@pytest.mark.needs_kind("conversation")
def test_only_turns_with_numbers_count_in_the_rates_of_numbers(score_text):
    number = {"conversation_id": "c", "turn_idx": 2, "question": "by how much?", "answer": "5"}
    done = score_text([*TEXTS, number], [*SAID, {"conversation_id": "c", "turn_idx": 2, "answer": "5"}])
    summary = done.json["summary"]
    (found,) = summary["conversation"]["conditions"]
    assert (summary["conversation"]["turns"], summary["conversation"]["texts"], found["turns"]) == (1, 2, 1)
    assert summary["headline"].startswith("answers: 100.0 %")
    assert found["unreadable"] == {}
    assert any("2 turns with a golden text" in text for text in summary["warnings"])
    (numerical,) = [one for one in summary["results"] if one["metric"] == "numerical"]
    assert numerical["mean"]["value"] == 1.0


@pytest.mark.needs_kind("conversation")
def test_text_without_a_judge_is_not_called_wrong(score_text):
    done = score_text(TEXTS, SAID, "--scorer", "numeric")
    assert "none scored: no golden answer is a number" in done.json["summary"]["headline"]


@pytest.mark.needs_kind("conversation")
def test_equals_and_contains_look_at_each_turn(score_text, here):
    done = score_text(TEXTS, SAID, "--scorer", "equals", "--scorer", "contains")
    found = {(row["scorer"], row["turn"]): row["values"] for row in journalled(here, done.json["run"], "score")}
    assert found == {
        ("equals", 0): {"equals": True},
        ("equals", 1): {"equals": False},
        ("contains", 0): {"contains": True},
        ("contains", 1): {"contains": False},
    }


def test_one_file_with_question_golden_answer_and_answer_is_scored_in_one_command(karat, here):
    (here / "answers.csv").write_text("Q,G,A\nOne?,one,one\nTwo?,two,three\nThree?,three,three\n", encoding="utf-8")
    done = karat("score", "answers.csv", "--question", "Q", "--golden", "G", "--answer", "A", "--scorer", "equals")
    assert done.code == 0
    assert "columns used: question = Q, golden = G, answer = A" in done.err
    assert "answers: equals 66.7 %" in done.out
    summary = karat("report", "latest", "--to", "json").json
    assert summary["total"]["latency"] == {"median": None, "p95": None, "n": 0}


def test_rows_of_several_conditions_that_ask_the_same_are_one_sample(karat, here):
    rows = "id,topic,condition,question,golden,answer\n"
    rows += (
        "q1,sums,base,One?,one,one\nq2,sums,base,Two?,two,three\nq1,sums,new,One?,one,one\nq2,sums,new,Two?,two,two\n"
    )
    (here / "answers.csv").write_text(rows, encoding="utf-8")
    assert karat("score", "answers.csv", "--scorer", "equals").code == 0
    summary = karat("report", "latest", "--to", "json").json
    assert (summary["samples"], summary["total"]["ledger"]["planned"], summary["total"]["ledger"]["scored"]) == (
        2,
        4,
        4,
    )
    assert summary["differences"][0]["n_pairs"] == 2
    found = karat("query", "latest", "SELECT sample, metadata FROM samples ORDER BY 1", "--to", "csv").out
    assert list(csv.reader(found.splitlines()))[1:] == [
        ["q1", '{"topic":"sums","answer":"one"}'],
        ["q2", '{"topic":"sums"}'],
    ]
    (here / "clash.csv").write_text(rows.replace("q1,sums,new,One?,one", "q1,sums,new,One?,1"), encoding="utf-8")
    clash = karat("score", "clash.csv", "--scorer", "equals")
    assert (clash.code, "1 id with several questions or golden answers" in clash.err) == (2, True)


CHOSEN = [(["nine", "two", "seven"], 1, 1), (["four", "three", "six"], 1, 0), (["hook", "box", "floor"], 2, 2)]
"""The choices of each question, the right one, and the answer: two of three are right."""


@pytest.mark.parametrize("golden", ["letter", "text", "from 0", "from 1"])
@pytest.mark.parametrize("answer", ["letter", "text"])
def test_choices_are_right_by_letter_and_by_text_whichever_the_file_has(karat, here, golden, answer):
    rows = []
    for number, (choices, right, said) in enumerate(CHOSEN):
        forms = {"letter": "ABC".__getitem__, "text": choices.__getitem__, "from 0": int, "from 1": lambda at: at + 1}
        row = {"question": f"Which, {number}?", "choices": choices}
        rows.append({**row, "answer": forms[golden](right), "prediction": forms[answer](said)})
    if golden == "from 0":  # a row shows it
        rows.append({**row, "question": "And?", "answer": 0, "prediction": forms[answer](1)})
    (here / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = karat("score", "said.jsonl", "--scorer", "equals")
    assert (done.code, f"answers: equals {200 / len(rows):.1f} %" in done.out) == (0, True)


def test_the_number_of_a_choice_is_not_the_text_of_another(karat, here):
    choices = ["1", "2", "3"]
    rows = [
        {"question": f"Number {right}?", "choices": choices, "answer": right, "prediction": "1"} for right in (0, 1, 2)
    ]
    (here / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "answers: equals 33.3 %" in karat("score", "said.jsonl", "--scorer", "equals").out


def test_one_question_without_an_id_can_be_answered_under_two_conditions(karat, here):
    (here / "answers.csv").write_text("question,golden,answer,condition\nA?,b,b,old\nA?,b,c,new\n", encoding="utf-8")
    assert karat("score", "answers.csv", "--scorer", "equals").code == 0
    assert karat("report", "latest", "--to", "json").json["samples"] == 1


def test_an_answer_that_a_file_does_not_have_for_a_condition_stays_missing(karat, here):
    rows = "condition,question,golden,answer\nbase,One?,one,one\nbase,Two?,two,two\nnew,One?,one,one\n"
    (here / "answers.csv").write_text(rows, encoding="utf-8")
    karat("score", "answers.csv", "--scorer", "equals")
    summary = karat("report", "latest", "--to", "json").json
    assert (summary["samples"], summary["total"]["ledger"]["planned"], summary["total"]["ledger"]["scored"]) == (
        2,
        4,
        3,
    )


def test_no_latency_is_made_up_for_recorded_answers(karat, here):
    (here / "answers.csv").write_text("question,golden,answer\nOne?,one,one\n", encoding="utf-8")
    assert karat("score", "answers.csv", "--scorer", "equals").code == 0
    (folder,) = (here / "results").iterdir()
    (answer,) = (
        json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines() if b'"answer"' in line[:20]
    )
    assert "seconds" not in answer
    assert karat("query", "latest", "SELECT count(seconds) AS n FROM trials").out.split()[-1] == "0"
    assert karat("report", "latest", "--to", "keval", "--out", "keval").code == 0
    assert '"duration_ms":null' in "".join(file.read_text() for file in (here / "keval").rglob("*") if file.is_file())


def test_the_latency_of_recorded_answers_is_the_files_own(karat, here):
    rows = "question,golden,answer,latency_seconds\nOne?,one,one,2.7\nTwo?,two,two,2.7\n"
    (here / "answers.csv").write_text(rows, encoding="utf-8")
    assert karat("score", "answers.csv", "--scorer", "equals").code == 0
    summary = karat("report", "latest", "--to", "json").json
    assert summary["total"]["latency"] == {"median": 2.7, "p95": 2.7, "n": 2}


def test_usual_columns_of_one_file_are_found_and_missing_ones_are_asked_for(karat, here):
    (here / "answers.csv").write_text("Question,Expected Answer,response\nOne?,one,one\n", encoding="utf-8")
    done = karat("score", "answers.csv", "--scorer", "equals")
    assert (done.code, "question = Question, golden = Expected Answer, answer = response" in done.err) == (0, True)
    (here / "less.csv").write_text("question,answer\nOne?,one\n", encoding="utf-8")
    refused = karat("score", "less.csv")
    assert refused.code == 2
    assert "--golden: say which column of less.csv holds the golden answer (it has: question, answer)" in refused.err
    twice = karat("score", "less.csv", "--golden", "answer")
    assert twice.code == 2
    assert "--question: say which columns of less.csv hold the question, the golden answer and the answer" in twice.err


def test_a_file_of_several_lists_is_read_by_the_command_that_is_named(karat, here):
    rows = [{"question": f"{n}?", "expected": "one", "response": "one"} for n in range(3)]
    (here / "said.json").write_text(json.dumps({"base": rows, "tuned": rows, "other": rows}), encoding="utf-8")
    refused = karat("score", "said.json", "--scorer", "equals")
    assert "`karat import csv said.json --set part=NAME` reads it; score the run that it makes" in refused.err
    imported = karat("import", "csv", "said.json", "--set", "part=*")
    assert (imported.code, "3 samples × 3 conditions × 1 repetition" in imported.out) == (0, True)


def test_ids_that_count_anew_in_each_task_are_scored_with_it(karat, here):
    rows = [(n, task, "AB"[task == "v"], "A", model) for task in "uvw" for n in range(8) for model in "mn"]
    lines = ["example_id,task,target,prediction,model", *(",".join(map(str, row)) for row in rows)]
    (here / "said.csv").write_text("\n".join(lines), encoding="utf-8")
    done = karat("score", "said.csv", "--scorer", "equals")
    assert (done.code, "one question: the same example_id and task and target" in done.err) == (0, True)
    assert "over 24 questions" in done.out


@pytest.mark.needs_kind("conversation")
@pytest.mark.parametrize(
    ("column", "values", "conditions"),
    [("repetition", (1, 2), ["answers"]), ("repetition", ("10", "20"), ["answers"]), ("model", "uv", ["u", "v"])],
)
def test_repetitions_and_models_of_conversations_are_found(score, column, values, conditions):
    done = score([{**row, column: value} for value in values for row in ROWS], "--json")
    assert done.code == 0, done.err
    summary = done.json["summary"]
    assert summary["conditions"] == conditions
    assert (summary["total"]["ledger"]["planned"], summary["total"]["ledger"]["scored"]) == (4, 4)
