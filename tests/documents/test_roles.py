"""Which column is what: by its name, by its company, and by what it holds; what stays open is asked."""

from __future__ import annotations

import pytest

from karat.documents.columns import columns_of
from karat.documents.roles import Reading, Undecided, assign

USER = {"role": "user", "content": "Why?"}
REPLY = {"role": "assistant", "content": "So."}


def table(names, *cells, rows=3):
    """Rows whose cells have their number where `{}` is, or take turns in a tuple."""
    found = []
    for at in range(rows):
        row = {}
        for name, held in zip(names.split(), cells, strict=True):
            value = held[at % len(held)] if isinstance(held, tuple) else held
            row[name] = value.format(at) if isinstance(value, str) else value
        found.append(row)

    return found


def roles_of(reading):
    return {role: " ".join(paths) for role, paths in reading.roles.items()}


def read(rows, **options):
    """The roles; a list of readings if it is asked."""
    result = assign(columns_of(rows), **options)
    if isinstance(result, Reading):
        return roles_of(result)
    assert isinstance(result, Undecided)
    return [roles_of(reading) for reading in result.readings]


def asked(rows, **options):
    result = assign(columns_of(rows), **options)
    assert isinstance(result, Undecided), result
    return result.asked


QA = {"question": "question", "golden": "answer"}
QG = {"question": "question", "golden": "golden"}
Q = {"question": "question"}


@pytest.mark.parametrize(
    ("rows", "roles"),
    [
        (table("question answer", "{}?", "a{}"), QA),
        (table("question answer category", "{}?", "a{}", "c"), QA),
        (table("question golden label", "{}?", "a{}", "c"), QG),
        (table("question golden expected_score", "{}?", "a{}", 5), QG),
        (table("question category", "{}?", "c"), [Q, Q | {"golden": "category"}]),
        (table("question golden reference", "{}?", "a{}", "b{}"), [QG, Q | {"golden": "reference"}]),
        (
            [{"question": "A?", "golden": {"x": "1", "y": "2"}}],
            [
                Q | {"golden": "golden"},
                Q | {"criterion": "golden"},
                *(Q | {"golden": path} for path in ("golden.x", "golden.y")),
            ],
        ),
        # questions
        (
            table("input prompt golden", "{}?", "b{}?", "a"),
            [{"question": name, "golden": "golden"} for name in ("input", "prompt")],
        ),
        (table("input prompt golden", "{}?", "{}?", "a"), {"question": "input", "golden": "golden"}),
        (table("prompt question golden", "Answer.", "{}?", "a"), QG),
        (table("prompt input golden", "Answer.", "{}?", "a"), {"question": "input", "golden": "golden"}),
        (table("question query answer", "{}?", "SELECT {}", "a{}"), QA),
        (table("query answer", "{}?", "a{}"), {"question": "query", "golden": "answer"}),
        (
            table("instruction input target", "Translate.", "x{}", "y{}"),
            [{"question": name, "golden": "target"} for name in ("instruction input", "input")],
        ),
        (
            table("instruction input target", "Translate {}.", "x{}", "y{}"),
            [{"question": name, "golden": "target"} for name in ("instruction input", "instruction", "input")],
        ),
        (table("id text label", "{}", "it is number {}", "a"), {"id": "id", "question": "text", "golden": "label"}),
        (
            [{"inputs": {"question": "A?"}, "outputs": {"answer": "a"}}],
            {"question": "inputs.question", "golden": "outputs.answer"},
        ),
        (
            [{"inputs": {"text": "it is"}, "outputs": {"text": "a"}}],
            {"question": "inputs.text", "golden": "outputs.text"},
        ),
        (
            table("question extract golden", "Rate it.", "The text number {} is here", "y{}", rows=6),
            [{"question": name, "golden": "golden"} for name in ("extract", "question")],
        ),
        (table("question extract golden", "Rate it.", "The text number {} is here", "y{}", rows=5), QG),
        (table("question golden", "0123456789abcdef", "a"), []),
        (table("question golden", ("A?", "", ""), "a"), [QG]),
        # answers in a dataset
        (table("question model_answer", "{}?", "a"), [Q | {role: "model_answer"} for role in ("golden", "answer")]),
        (table("question model_answer answer", "{}?", "a", "b"), QA | {"answer": "model_answer"}),
        (
            table("question raw_answer answer", "{}?", "a", "b"),
            [QA | {"answer": "raw_answer"}, Q | {"answer": "raw_answer"}],
        ),
        (
            table("question output latency_ms", "{}?", "a", 5),
            [{"latency": "latency_ms", **Q, role: "output"} for role in ("golden", "answer")],
        ),
        (
            table("goal target", "Do {}", "Sure"),
            [{"question": "goal", role: "target"} for role in ("golden", "answer")],
        ),
        (table("user ai", "Hi {} there", "Hello"), [{"question": "user", role: "ai"} for role in ("golden", "answer")]),
        # criteria
        (table("question criteria", "{}?", "be short"), {"criterion": "criteria", **Q}),
        (
            table("question model_answer must_mention", "{}?", "a", "b"),
            [{"criterion": "must_mention", **Q, **more} for more in ({"golden": "model_answer"}, {})],
        ),
        (
            table("question expected_mood expected_style", "{}?", "a", "b"),
            [
                {"criterion": "expected_style", **Q, "golden": "expected_mood"},
                {"criterion": "", **Q, "golden": "expected_mood expected_style"},
                {"criterion": "expected_mood", **Q, "golden": "expected_style"},
                {"criterion": "expected_mood expected_style", **Q},
                {"criterion": "", **Q},
            ],
        ),
        # chats
        (table("messages", [USER, REPLY]), {"question": "messages", "golden": "messages"}),
        (table("messages answer", [USER], "a"), {"question": "messages", "golden": "answer"}),
        (
            table("messages faithfulness", [USER, REPLY], 1),
            [{"score": "faithfulness", "question": "messages", **more} for more in ({"golden": "messages"}, {})],
        ),
        (
            table("messages", [USER, REPLY, USER, REPLY]),
            [{"question": "messages", **more} for more in ({"golden": "messages"}, {})],
        ),
        # choices
        (table("question A B answer", "{}?", "x", "y", "A"), {"choices": "A B", **QA}),
        (table("question choice1 choice2 answer", "{}?", "x", "y", "A"), {"choices": "choice1 choice2", **QA}),
        (table("question choice2 choice3 answer", "{}?", "x", "y", "A"), QA),
        (table("question choice_a choice_c answer", "{}?", "x", "y", "A"), QA),
        (table("question choice_a answer", "{}?", "x", "A"), QA),
        (table("question part_a part_b answer", "{}?", "x", "y", "a{}"), QA),
        (table("question options answer", "{}?", "x;y", "x"), {"choices": "options", **QA}),
        (table("question options answer", "{}?", "none", "x"), QA),
        (table("question distractors answer", "{}?", ["y"], "x"), {"distractor": "distractors", **QA}),
        # others
        (table("question golden relevance", "{}?", "a", (1, 2)), {"score": "relevance", **QG}),
        (table("question golden relevance", "{}?", "a", "much"), QG),
        (
            table("id question golden model timestamp context", "{}", "{}?", "a", "m", "2026-01-01", "text"),
            {"id": "id", "model": "model", "started": "timestamp", "context": "context", **QG},
        ),
    ],
)
def test_what_a_dataset_holds(rows, roles):
    assert read(rows, door="dataset") == roles


def test_a_question_without_a_golden_answer_is_asked_about_only_if_one_is_needed():
    rows = table("question", "{}?")
    assert read(rows, door="dataset") == [Q]
    assert read(rows, door="dataset", needs_golden=False) == Q


def test_a_file_of_a_run_may_hold_answers():
    rows = table("question model_answer answer", "{}?", "a", "b")
    both = [QA | {"answer": "model_answer"}, Q | {"answer": "model_answer"}]
    assert read(rows, door="dataset", file="predictions.csv") == both
    assert read(table("question output", "{}?", "a"), door="dataset", file="run/logs.csv") == [
        {**Q, role: "output"} for role in ("golden", "answer")
    ]
    assert read(table("question output", "{}?", "a"), door="dataset", file="logs/qa.csv") == {**Q, "golden": "output"}


def test_what_the_user_names_is_taken():
    rows = table("a b question", "{}?", "m", "x{}?")
    assert read(rows, door="dataset", named={"golden": ("b",)}) == {**Q, "golden": "b"}
    assert read(rows, door="dataset", named={"question": ("a",), "golden": ("b",)}) == {"question": "a", "golden": "b"}
    assert read(rows, door="dataset", named={"question": ("a",), "golden": ()}) == {"question": "a"}
    result = assign(columns_of(rows), door="dataset", named={"golden": ("b",)})
    assert result.unused == ("a",)


def test_only_columns_that_hold_something_are_named_as_unused():
    rows = [{"question": "A?", "answer": "a", "note": "x", "empty": "", "object": {"y": 1}}]
    result = assign(columns_of(rows), door="dataset")
    assert (result.one("question"), result.one("score"), result.unused) == ("question", None, ("note", "object"))


def test_without_a_header_columns_are_offered_and_none_is_taken():
    rows = [{"column 1": "is it so?", "column 2": "so it is"}] * 3
    assert read(rows, door="dataset") == [
        {"question": "column 1", "golden": "column 2"},
        {"question": "column 1"},
        {"question": "column 2"},
    ]
    assert read(rows, door="results") == [{"question": "column 1", "answer": "column 2"}]


def test_what_is_missing_is_asked():
    assert asked(table("answer n", "a{}", 1), door="dataset") == "which column is the question"
    assert asked(table("question golden", "{}?", "b{}"), door="results") == "which column is the answer"
    assert asked(table("question model_answer", "{}?", "a"), door="dataset") == "what the columns hold"
    assert asked(table("prediction", "a{}"), door="results") == "which column is the question"


QP = {"question": "question", "answer": "prediction"}
QPG = {"question": "question", "golden": "golden", "answer": "prediction"}


@pytest.mark.parametrize(
    ("rows", "roles"),
    [
        (table("question prediction golden", "{}?", "a{}", "b{}"), QPG),
        (
            table("question prediction generated golden", "{}?", "a{}", "c{}", "b{}"),
            [QPG, QPG | {"answer": "generated"}],
        ),
        (table("question answer", "{}?", "a{}"), Q | {"answer": "answer"}),
        (table("question answer golden", "{}?", "a{}", "b{}"), QG | {"answer": "answer"}),
        (table("question answer response", "{}?", "a{}", "b{}"), QA | {"answer": "response"}),
        (table("question response answer", "{}?", "a{}", "b{}"), QA | {"answer": "response"}),
        (table("question golden correctness", "{}?", "a{}", (1, 0)), {"score": "correctness", **QG}),
        (table("question golden", "{}?", "a{}"), []),
        (table("question expected_label label", "{}?", "a{}", "b"), [Q | {"answer": "label"}]),
        (
            table("question label intent class", "{}?", "a{}", "b", "c"),
            [Q | {"golden": "label", "answer": name} for name in ("intent", "class")],
        ),
        (table("text summary", "the text {} is long", "it is {}"), [{"question": "text", "answer": "summary"}]),
        (table("question sql", "{}?", "SELECT {}"), Q | {"answer": "sql"}),
        (table("question output", "{}?", {"text": "it is"}), Q | {"answer": "output.text"}),
        (table("question metadata", "{}?", {"answer": "it is"}), []),
        # few rows need an answer, and none an error
        (table("question prediction golden", "{}?", ("x", *[""] * 9), "b", rows=10), QPG),
        (table("question prediction golden", "{}?", ("x", *[""] * 10), "b", rows=11), []),
        (table("question prediction error", "{}?", "a", ("x", *[""] * 19), rows=20), {"error": "error", **QP}),
        # of judges and models
        (table("question prediction judge_cost cost_usd", "{}?", "a{}", 5, 6), {"cost": "cost_usd", **QP}),
        (table("question prediction cost", "{}?", "a{}", 47_000), QP),  # of a contract
        (
            table("question prediction generation_time total_time cost", "{}?", "a{}", 5, 6, 7),
            {"latency": "total_time", "cost": "cost", **QP},
        ),
        (table("question prediction judge_model", "{}?", "a{}", "m"), QP),
        (table("question prediction model_name", "{}?", "a{}", "m"), {"model": "model_name", **QP}),
        (table("question prediction model", "{}?", "a{}", {"a": 1}), QP),
        (table("question prediction judge_prediction", "{}?", "a{}", "b{}"), QP),
        (table("question prediction raw_prediction", "{}?", "a{}", "b{}"), QP),
        (table("question raw_prediction", "{}?", "b{}"), Q | {"answer": "raw_prediction"}),
        # twins
        (
            table("dialogue generated summary", "Hi {} there", "a{}", "b{}"),
            {"question": "dialogue", "golden": "summary", "answer": "generated"},
        ),
        (table("question generated summary", "{}?", "a{}", "b{}"), Q | {"answer": "generated"}),
        (table("question generated label", "{}?", "a{}", ("x", "y")), Q | {"golden": "label", "answer": "generated"}),
        (table("question generated label", "{}?", "a{}" + " word" * 20, ("x", "y")), Q | {"answer": "generated"}),
        (
            table("question generated label solution", "{}?", "a{}", ("a0", "x"), "x{}"),
            Q | {"golden": "label", "answer": "generated"},
        ),
        (table("question generated label solution", "{}?", "a{}", ("y", "x"), "x{}"), Q | {"answer": "generated"}),
        (
            table("id raw_output label", "{}", "It is {}, I think", "x"),
            [{"id": "id", "answer": "label"}, {"id": "id", "golden": "label", "answer": "raw_output"}],
        ),
        # systems
        (
            table("question gpt_answer claude_answer golden", "{}?", "a{}", "b{}", "c{}"),
            QG | {"answer": "gpt_answer claude_answer"},
        ),
        (
            table("question predicted_answer suggested_answer", "{}?", "a{}", "b{}"),
            Q | {"answer": "predicted_answer"},
        ),
        (
            table("id qid question prediction model engine", "{}", "{}", "{}?", "a{}", "m", "n"),
            {"id": "id", "model": "model", **QP},
        ),
        # turns
        (table("question prediction prediction_2", "{}?", "a{}", "c{}"), [QP]),
        (table("question question_2 prediction", "{}?", "b{}?", "c{}"), [QP]),
        # rows without questions
        (table("question_id text", "{}", "it is {}"), {"id": "question_id", "answer": "text"}),
        (table("case tone_score", "{}", (1, 2)), {"score": "tone_score", "id": "case"}),
        (table("prediction golden", "a{}", "b{}"), {"golden": "golden", "answer": "prediction"}),
        (table("hypothesis golden", "It is {}", "b{}"), {"golden": "golden", "answer": "hypothesis"}),
        (
            table("id expected_call actual_call", "{}", "a{}", "b{}"),
            {"id": "id", "golden": "expected_call", "answer": "actual_call"},
        ),
        (table("id expected_url actual_url", "{}", "a{}", "b{}"), []),
        # chats
        (table("messages prediction", [USER], "a{}"), {"question": "messages", "answer": "prediction"}),
        (table("messages score", [USER, REPLY], (1, 2)), {"messages": "messages", "score": "score"}),
        (table("messages prediction", [USER, REPLY], "b{}"), {"messages": "messages", "answer": "prediction"}),
        (
            table("user assistant tone_score", "Hi {} there", "so {}", (1, 2)),
            {"score": "tone_score", "question": "user", "answer": "assistant"},
        ),
    ],
)
def test_what_a_file_of_results_holds(rows, roles):
    assert read(rows, door="results") == roles


def test_what_the_user_names_of_results_is_taken():
    rows = table("question label prediction other", "{}?", "a{}", "p{}", "o{}")
    assert read(rows, door="results", named={"answer": ("other",)}) == {**Q, "golden": "label", "answer": "other"}
    named = {**Q, "answer": "prediction", "golden": "other"}
    assert read(rows, door="results", named={"golden": ("other",)}) == named
    scored = table("question prediction other tone", "{}?", "p{}", (1, 2), (True, False))
    assert read(scored, door="results", named={"score": ("other",)}) == {"score": "other", **QP}


@pytest.mark.parametrize(
    ("rows", "compared"),
    [
        (table("prompt run tone_score", ("short", "long"), "{}", (1, 2), rows=8), True),
        (table("prompt tone_score", ("short", "long"), (1, 2), rows=8), False),
        (table("prompt run tone_score", ("short text", "long text"), "{}", (1, 2), rows=8), False),
        (table("prompt run tone_score", "p{}", "{}", (1, 2), rows=8), False),
        (table("prompt run tone_score", "short", "{}", (1, 2), rows=8), False),
        (table("prompt run tone_score answer", ("short", "long"), "{}", (1, 2), "a{}", rows=8), False),
        (table("prompt run tone_score golden", ("short", "long"), "{}", (1, 2), "a{}", rows=8), False),
        (table("prompt run tone_score", (*"abcd",), "{}", (1, 2), rows=8), True),
        (table("prompt run tone_score", (*"abcde",), "{}", (1, 2), rows=8), False),
    ],
)
def test_short_labels_of_prompts_in_trials_are_conditions(rows, compared):
    result = assign(columns_of(rows), door="results")
    asks = isinstance(result, Reading) and result.one("question") == "prompt"
    assert asks is not compared
