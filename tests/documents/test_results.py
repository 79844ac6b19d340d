"""What is read from files of results: answers, scores, systems side by side, ids without questions."""

from __future__ import annotations

import pytest

from karat.documents.columns import columns_of, score_in
from karat.documents.names import is_score_name, lower_is_better
from karat.documents.results import (
    belongs_to,
    joining_id,
    like_scores,
    models_by_system,
    repeats_scores,
    same_classes,
    score_columns,
    scores_by_system,
    systems_in,
    systems_of_scores,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.tables import best_of, tables_in, together


def read(*rows, file="results.csv"):
    """The roles of the columns; None: it is asked."""
    found = assign(columns_of(rows), door="results", file=file)
    if not isinstance(found, Reading):
        return None
    roles = ("id", "question", "golden", "answer", "score")
    return {role: " ".join(found.roles[role]) for role in roles if role in found.roles}


def row(names, *values):
    return dict(zip(names.split(), values, strict=True))


@pytest.mark.parametrize(
    ("rows", "roles"),
    [
        pytest.param(
            [row("question answer predicted_answer em", "A?", "a", "b", 0)],
            {"question": "question", "golden": "answer", "answer": "predicted_answer", "score": "em"},
            id="an answer beside the predicted one is golden",
        ),
        pytest.param(
            [
                row("prompt label sql prediction", "A?", "yes", "SELECT", "yes"),
                row("prompt label sql prediction", "B?", "no", "SELECT 2", "yes"),
            ],
            {"question": "prompt", "golden": "label", "answer": "prediction"},
            id="of two twins the one with the answer's values is golden",
        ),
        pytest.param(
            [row("question_id faithfulness tone_score", "q1", 1, 0.5)],
            {"id": "question_id", "score": "faithfulness tone_score"},
            id="ids and scores are enough",
        ),
        pytest.param(
            [row("reference generated", "a", "b")],
            {"golden": "reference", "answer": "generated"},
            id="a golden answer and an answer are enough",
        ),
        pytest.param(
            [{"id": "q1", "value": "a"}, {"id": "q2", "value": "b"}],
            {"id": "id", "answer": "value"},
            id="the column next to an id is the answer",
        ),
        pytest.param([{"id": "q1", "label": "a"}], None, id="a label next to an id may be golden, too"),
        pytest.param([{"id": "q1", "expected_output": "a"}], None, id="what is expected is never the answer"),
        pytest.param(
            [row("question_bn gold_answer_bn generated_answer_bn", "A?", "a", "b")],
            {"question": "question_bn", "golden": "gold_answer_bn", "answer": "generated_answer_bn"},
            id="a name may end with a language",
        ),
        pytest.param(
            [row("claim_id expected_decision actual_decision", "c1", "pay", "refuse")],
            {"id": "claim_id", "golden": "expected_decision", "answer": "actual_decision"},
            id="what is expected and what was done, whatever it is",
        ),
        pytest.param(
            [row("id expected_call predicted_call expected_arg predicted_arg", "c", "get", "put", {"a": 1}, {"a": 2})],
            {"id": "id", "golden": "expected_call", "answer": "predicted_call"},
            id="what is expected and predicted, and their parts",
        ),
        pytest.param(
            [row("id true_answer predicted_answer suggested_answer", "c", "A", "B", "B")],
            {"id": "id", "golden": "true_answer", "answer": "predicted_answer"},
            id="a sure answer beside another column of answers",
        ),
        pytest.param(
            [row("question gold_sql candidate_sql response_fields response_matches", "q?", "SELECT", "SELECT 1", 3, 2)],
            {"question": "question", "golden": "gold_sql", "answer": "candidate_sql"},
            id="counts are no answers of systems",
        ),
        pytest.param(
            [row("question_id model text score", "q1", "small", "It is so.", 4)],
            {"id": "question_id", "answer": "text", "score": "score"},
            id="a text beside the id of a question is the answer to it",
        ),
        pytest.param(
            [row("case_id final_text label", "c", "Nothing of what was asked is in the files. " * 2, "misled")],
            {"id": "case_id", "answer": "final_text"},
            id="a label of a long answer is what somebody says of it",
        ),
        pytest.param(
            [row("id query_type expected mode hit", "q1", "fact", "doc-7", "fast", True)],
            {"id": "id", "score": "hit"},
            id="nothing is compared with ids of documents",
        ),
        pytest.param(
            [row("agent_id challenge_id passed", "a", "c", True)],
            {"id": "challenge_id", "score": "passed"},
            id="the id of who answers joins no questions",
        ),
        pytest.param(
            [row("experiment_id hypothesis", "e1", "It will be faster.")],
            None,
            id="a hypothesis about an experiment is no answer",
        ),
        pytest.param(
            [row("question expected got passed", "A?", "a", "b", False)],
            {"question": "question", "golden": "expected", "answer": "got", "score": "passed"},
            id="what an agent got",
        ),
        pytest.param(
            [row("dialogue summary generated", "A: hello", "a", "b")],
            {"question": "dialogue", "golden": "summary", "answer": "generated"},
            id="a summary beside the generated one is golden",
        ),
        pytest.param(
            [
                {"query": "A?", "agent_response": {"output": "a", "input": "A?"}},
                *({"query": name, "agent_response": "b"} for name in "BCDEF"),
            ],
            {"question": "query", "answer": "agent_response"},
            id="a part of an answer is not golden",
        ),
        pytest.param(
            [{"question": "A?", "output": {"text": "a"}, "metrics": {"tone": 3, "latency_ms": 5}}],
            {"question": "question", "answer": "output.text", "score": "metrics.tone"},
            id="answers and scores in objects",
        ),
        pytest.param(
            [
                row("question answer verdict", "A?", "a", "CORRECT"),
                row("question answer verdict", "B?", "b", "incorrect"),
            ],
            {"question": "question", "answer": "answer", "score": "verdict"},
            id="a verdict in words is a score",
        ),
        pytest.param(
            [row("question prediction raw_response", "A?", "a", "[a]")],
            {"question": "question", "answer": "prediction"},
            id="a raw reply is no second answer",
        ),
        pytest.param(
            [row("query sql passed", "A?", "SELECT 1", True)],
            {"question": "query", "answer": "sql", "score": "passed"},
            id="what an agent makes is its answer",
        ),
        pytest.param(
            [
                row("query ground_truth cot_tool rag_tool", text, want, want, "search")
                for text, want in zip("ABCDEF", ["search", "math"] * 3, strict=True)
            ],
            {"question": "query", "golden": "ground_truth", "answer": "cot_tool rag_tool"},
            id="columns with the classes of the golden answer are answers",
        ),
        pytest.param([row("id label raw_response", "q1", "spam", "it is spam")], None, id="a label of the raw reply"),
        pytest.param([row("id answer_key language", "q1", "A", "el")], None, id="a golden column alone"),
        pytest.param([row("configuration faithfulness recall", "base", 0.5, 0.4)], None, id="means"),
    ],
)  # fmt: skip
def test_files_of_results_are_read_by_names_values_and_company(rows, roles):
    assert read(*rows) == roles


def test_parts_of_what_is_right_are_offered_with_the_same_parts_of_the_answer():
    right, said = {"type": "fall", "risk": "high", "time": 3}, {"type": "fall", "risk": "low", "notes": "none"}
    found = assign(columns_of([{"id": "a", "ground_truth": right, "prediction": said}]), door="results")
    pairs = [(reading.one("golden"), reading.one("answer")) for reading in found.readings]
    assert pairs == [("ground_truth.type", "prediction.type"), ("ground_truth.risk", "prediction.risk")]


def test_what_is_measured_of_systems_is_no_score():
    side = {"response": "a", "tokens_in": 3, "latency_ms": 5.0, "safety": 1}
    columns = columns_of([{"prompt": "A?", "small": side, "large": side}])
    systems = systems_in(columns, ["small.response", "large.response"])
    scores = scores_by_system(systems, columns, file="scores.json")
    assert scores == {f"{name}.response": {"safety": f"{name}.safety"} for name in ("small", "large")}


@pytest.mark.parametrize(
    ("names", "systems"),
    [
        ("question gpt4_answer claude_answer", "gpt4_answer claude_answer"),
        ("question answer_llama answer_llama_rag", "answer_llama answer_llama_rag"),
        ("question model_a_output model_b_output", "model_a_output model_b_output"),
        ("question t5_pred_race t5_pred_all", "t5_pred_race t5_pred_all"),
        ("question RAG Baseline", "RAG Baseline"),
        ("question gold_answer generated_answer", ""),
        ("question raw_answer final_answer", ""),
        ("question model_answer human_answer", ""),
        ("question predicted_impact predicted_tone", ""),
        ("prompt_text response_text", ""),
    ],
)
def test_columns_of_systems_differ_by_a_name_that_is_no_form_of_an_answer(names, systems):
    columns = columns_of([dict.fromkeys(names.split(), "some text")])
    assert " ".join(systems_in(columns, columns)) == systems


def test_a_point_between_digits_is_part_of_a_name_and_parts_no_path():
    row = {
        "question": "What is it?",
        "reference": "It.",
        "gpt-3.5": "This.",
        "gpt-4o": "It.",
        "gemini-1.5-pro": "That.",
    }
    columns = columns_of([row, {**row, "question": "Who?"}])
    systems = ["gpt-3.5", "gpt-4o", "gemini-1.5-pro"]
    assert [*systems_in(columns, systems)] == systems
    reading = assign(columns, door="results")
    assert isinstance(reading, Reading)
    assert [*reading.roles["answer"]] == systems
    assert reading.unused == ()


def test_scores_of_systems_are_those_that_two_of_them_have():
    names = "rag_answer base_answer rag_score base_score rag_accuracy correct_rag correct_base"
    columns = columns_of([{name: "text" if name.endswith("answer") else 1 for name in names.split()}])
    found = scores_by_system(systems_in(columns, columns), columns, file="results")
    assert found == {
        "rag_answer": {"score": "rag_score", "correct": "correct_rag"},
        "base_answer": {"score": "base_score", "correct": "correct_base"},
    }


def test_what_stands_in_the_object_of_a_system_is_that_system_s():
    row = {
        name: {"output": "text", "latency_ms": 12, "evaluation": {"score": at, "label": "bypass"}, "hit": True}
        for at, name in enumerate(("GPT2", "Llama"))
    }
    columns = columns_of([{"responses": row}])
    systems = systems_in(columns, [f"responses.{name}.output" for name in row])
    assert scores_by_system(systems, columns, file="results") == {
        f"responses.{name}.output": {
            "evaluation": f"responses.{name}.evaluation.score",
            "hit": f"responses.{name}.hit",
        }
        for name in row
    }


@pytest.mark.parametrize(
    ("names", "models"),
    [
        ("prompt response_a response_b model_a model_b winner", {"response_a": "model_a", "response_b": "model_b"}),
        ("text output_1 output_2 generator_1 generator_2", {"output_1": "generator_1", "output_2": "generator_2"}),
        ("prompt response_a response_b model_a", {}),
    ],
)
def test_the_model_of_each_answer_may_be_in_a_column_of_its_own(names, models):
    row = {name: f"the text of {name}" for name in names.split()}
    answers = [name for name in row if name.startswith(("response", "output"))]
    assert models_by_system(answers, columns_of([row])) == models
    same = {name: "one model" if name in models.values() else text for name, text in row.items()}
    assert models_by_system(answers, columns_of([same])) == {}


@pytest.mark.parametrize(
    ("cell", "score"),
    [
        (True, 1.0), ("PASS", 1.0), ("Incorrect", 0.0), ("4/5", 0.8), ("85%", 85.0), ("0,5", 0.5), ("partly", None),
        ("5/4", None), ("", None), (float("nan"), None), ([1], None),
    ],
)  # fmt: skip
def test_a_score_is_a_number_a_share_of_a_whole_or_a_verdict(cell, score):
    assert score_in(cell) == score


@pytest.mark.parametrize(
    ("names", "judge"),
    [
        ("hit@5 recall_at_3 top1_correct judge_empathy valid_json F1 answer_overlap rater_2 Tone_(1-5)", True),
        (
            "judge_cost_usd response_time num_tokens top_score confidence judge_ok n_unsupported rater risk_1_5",
            False,
        ),
    ],
)
def test_a_score_needs_a_word_of_judgement(names, judge):
    assert [name for name in names.split() if is_score_name(name) is not judge] == []


def test_verdicts_by_name_are_scores_and_what_is_derived_or_guessed_is_none():
    scores = "answer_ok retrieval_ok validity_flag refusal_quality_score incompleteness is_unsafe violation"
    others = "parse_ok both_correct only_a_correct anomaly_score pass_probability certainty_score quality_flag"
    assert [name for name in scores.split() if not is_score_name(name)] == []
    assert [name for name in others.split() if is_score_name(name)] == []


def test_a_verdict_of_three_words_is_no_score():
    rows = [{"id": "q", "judgement": word} for word in ("correct", "partly correct", "incorrect")]
    assert score_columns(columns_of(rows)) == []


def test_what_turns_a_bad_word_round_is_better_when_higher():
    names = ("refusal_correct", "refusal_quality_score", "num_contradictions", "toxicity")
    assert [lower_is_better(name) for name in names] == [False, False, True, True]


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([{"doc_id": "d", "case_id": "a"}, {"doc_id": "d", "case_id": "b"}], "case_id"),
        ([{"run_id": "r1"}, {"run_id": "r2"}], "run_id"),
        ([{"image_index": 4}, {"image_index": 5}], "image_index"),
        ([{"a_id": "x", "b_id": "y"}, {"a_id": "x", "b_id": "y"}], None),
        ([{"topic": "x"}], None),
    ],
)
def test_the_id_that_joins_rows_differs_from_row_to_row(rows, name):
    assert joining_id(columns_of(rows)) == name


@pytest.mark.parametrize(("passes", "scored"), [((1, 2, 3), []), ((1, 0, 1), ["pass"]), ((0.5, 1.0, 0.0), ["pass"])])
def test_the_number_of_a_pass_is_no_score(passes, scored):
    rows = [{"id": str(at), "pass": value} for at, value in enumerate(passes)]
    assert score_columns(columns_of(rows)) == scored


_ANSWER = {"answer": "Paris", "verified": 2}


@pytest.mark.parametrize(
    ("document", "first"),
    [
        pytest.param(
            {"q1": {"small": _ANSWER, "large": _ANSWER}, "q2": {"small": _ANSWER, "large": _ANSWER}},
            {"id": "q1", "condition": "small", **_ANSWER},
            id="by question, then by system",
        ),
        pytest.param(
            {"small": [{"id": "q", "gold": "a", "actual": "b"}], "large": [{"id": "q", "gold": "a", "actual": "a"}]},
            {"condition": "small", "id": "q", "gold": "a", "actual": "b"},
            id="lists with the same ids",
        ),
        pytest.param(
            {"runs": {"s-1.5": [{"qid": "q", "gold": "a", "got": "b"}], "b": [{"qid": "q", "gold": "a", "got": "a"}]}},
            {"condition": "s-1.5", "qid": "q", "gold": "a", "got": "b"},
            id="a name with a version",
        ),
        pytest.param(
            {"run1": {"a": _ANSWER, "b": _ANSWER}, "run2": {"a": _ANSWER, "b": _ANSWER}}, None, id="numbered runs"
        ),
        pytest.param({"missed": [{"id": "q1", "got": "b"}], "kept": [{"id": "q2", "got": "a"}]}, None, id="other ids"),
    ],
)  # fmt: skip
def test_answers_of_systems_under_each_others_names_are_read_as_one(document, first):
    tables = tables_in(document)
    rows = together(tables, best_of(tables, results=True))
    assert (rows[0] if rows else None) == first


def test_numbers_under_a_few_names_are_means_of_settings_not_of_questions():
    means = {"mrr": 0.4, "recall": {"mean": 0.5, "per_query": {"q0": 0.5}}}
    (rows,) = tables_in({"hybrid": means, "dense": means}).values()
    assert rows[0] == {"condition": "hybrid", **means}
    (rows,) = tables_in({f"q{number}": means for number in range(3)}).values()
    assert rows[0] == {"id": "q0", **means}


def test_the_rows_of_one_run_are_inside_it():
    samples = [{"challenge_id": "c1", "is_secure": True}, {"challenge_id": "c2", "is_secure": False}]
    assert tables_in({"results": [{"metrics": {"pass": 0.5}, "samples": samples}]}) == {"results.samples": samples}
    assert [*tables_in({"data": [{"title": "t", "paragraphs": samples}]})] == ["data"]


def test_parts_of_one_name_in_two_objects_are_what_is_right_and_what_was_said():
    result = {"question": "Where?", "expected": {"city": "Paris", "n": 1}, "actual": {"city": "Rome", "time": 2}}
    assert read(result) == {"question": "question", "golden": "expected.city", "answer": "actual.city"}


def test_a_heading_and_its_text_are_offered_as_one_question():
    told = ["The gateway returns 504 for each request since noon.", "Could you add a dark theme to the settings page?"]
    rows = [
        {"id": at, "title": told[at % 2][:20], "description": told[at % 2], "expected_priority": "HIGH"}
        for at in (1, 2)
    ]
    undecided = assign(columns_of(rows), door="dataset")
    assert isinstance(undecided, Undecided)
    first = undecided.readings[0]
    assert (first.roles["question"], first.roles["golden"]) == (("title", "description"), ("expected_priority",))


def test_columns_with_running_letters_are_choices_in_any_language_if_a_column_says_which_is_right():
    rows = [
        {
            "Küsimus": f"Kumb on õige, {at}?",
            "Vastus A)": f"ruun {at}",
            "Vastus B)": f"hall {at}",
            "Õige vastus": "ab"[at % 2],
        }
        for at in range(6)
    ]
    named = {"question": ("Küsimus",), "golden": ("Õige vastus",)}
    reading = assign(columns_of(rows), door="dataset", named=named)
    assert isinstance(reading, Reading)
    assert reading.roles["choices"] == ("Vastus A)", "Vastus B)")
    without = [{**row, "Õige vastus": "ruun"} for row in rows]
    other = assign(columns_of(without), door="dataset", named=named)
    assert not isinstance(other, Reading) or "choices" not in other.roles


def systems(names, **values):
    rows = [{name: values.get(name, f"{name} {at}") for name in names.split()} for at in range(3)]
    columns = columns_of(rows)
    return " ".join(systems_in(columns, columns))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("small_answer large_answer", "small_answer large_answer"),
        ("answer_small answer_large", "answer_small answer_large"),
        ("generated_small generated_large", "generated_small generated_large"),
        ("small_generated large_generated", ""),
        ("a.small_answer large_answer b.large_answer", "a.small_answer b.large_answer"),
        ("small_answer small_answer_text", ""),
        ("model_answer agent_answer", ""),
        ("pred_gpt pred_claude", "pred_gpt pred_claude"),
        ("pred_small pred_large", ""),  # they may be parts of one answer
        ("predicted_answer expected_answer", ""),
        ("small_answer", ""),
        ("gpt4 claude3 notes", "gpt4 claude3"),
        ("gpt4_answers claude_outputs", ""),
        ("small_answer large_answer small_output large_output mini_output", "small_output large_output mini_output"),
    ],
)
def test_which_columns_are_those_of_systems(names, found):
    assert systems(names) == found


def test_counts_and_golden_values_tell_what_names_leave_open():
    assert systems("answer_small answer_large", answer_small=1, answer_large=2) == ""
    assert systems("small_answer large_answer", small_answer=1, large_answer=2) == "small_answer large_answer"
    shared = {"golden": "x", "pred_small": "x", "pred_large": "x"}
    assert systems("golden pred_small pred_large", **shared) == "pred_small pred_large"
    assert systems("golden pred_small pred_large", **shared | {"pred_large": "y"}) == ""


def test_a_column_belongs_to_the_system_that_its_name_begins_or_ends_with():
    names = {"small_answer": ("small",), "small_v2_answer": ("small", "v", "2"), "x.out": ("x",)}
    assert belongs_to("small_answer", names) is None
    assert belongs_to("small_tone", names) == ("small_answer", ("tone",))
    assert belongs_to("tone_small", names) == ("small_answer", ("tone",))
    assert belongs_to("small_v2_tone", names) == ("small_v2_answer", ("tone",))
    assert belongs_to("x.metrics.tone", names) == ("x.out", ("metrics", "tone"))
    assert belongs_to("x.tone.score", names) == ("x.out", ("tone",))
    assert belongs_to("y.tone_small.value", names) == ("small_answer", ("tone",))
    assert belongs_to("other", names) is None
    assert belongs_to("a.small_tone", {"a.p": ("p",), "a.small": ("small",)}) is None


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ({"golden": ["ham", "spam"], "said": ["ham", "ham"], "other": ["eggs", "ham"]}, ["said"]),
        ({"golden": ["ham", "spam"], "gold_copy": ["spam", "ham"], "answer": ["ham", "ham"], "n": ["", ""]}, []),
        ({"golden": ["ham", "ham"], "said": ["ham", "ham"]}, []),
    ],
)
def test_columns_of_the_golden_classes(values, classes):
    rows = [{name: held[at % len(held)] for name, held in values.items()} for at in range(6)]
    assert same_classes(columns_of(rows), "golden") == classes
    few = columns_of(rows[:4])
    assert same_classes(few, "golden") == []


def scored(*rows):
    return score_columns(columns_of(rows))


def test_which_columns_judge_answers():
    assert scored({"tone_score": 1, "notes": "x", "latency_ms": 5}) == ["tone_score"]
    assert scored({"tone": "correct"}, {"tone": "wrong"}) == ["tone"]
    assert scored({"label": "correct"}, {"label": "wrong"}) == []
    assert scored({"answer": "correct"}, {"answer": "wrong"}) == []
    assert scored({"metrics": {"tone": 1, "latency": 5}, "config": {"score": 1}}) == ["metrics.tone"]
    assert scored({"tone": {"score": 0.7, "success": True, "threshold": 0.5}}) == ["tone.score"]
    assert scored({"judge": {"tone": 1, "score": 2}}) == ["judge.score"]
    assert scored({"correct_answer": 3}) == []
    assert scored({"tone_score": "partly"}, {"tone_score": "much"}) == []
    assert scored({"tone_score": None}) == []


def test_ids_of_questions_join_rows_before_other_ids():
    def joins(*rows):
        return joining_id(columns_of(rows))

    assert joins({"doc_id": "d", "question_id": "a"}, {"doc_id": "e", "question_id": "a"}) == "question_id"
    assert (
        joins({"doc_id": "d", "question_id": "a", "qid": "1"}, {"doc_id": "e", "question_id": "a", "qid": "2"}) == "qid"
    )
    assert joins({"model_id": "m", "doc_id": "d"}, {"model_id": "n", "doc_id": "e"}) == "doc_id"
    assert joins({"item": "a"}, {"item": "b"}) == "item"
    assert joins({"case_no": 1}, {"case_no": 2}) == "case_no"
    assert joins({"doc_id": "d"}, {"doc_id": ""}) is None
    assert joins({"doc_id": ["d"]}, {"doc_id": ["e"]}) is None


def test_a_judge_s_output_repeats_the_scores_of_its_row():
    columns = ["tone_score", "clarity", "notes"]
    assert repeats_scores(' {"tone_score": 1, "clarity": "4/5", "notes": "x"}', columns)
    for text in (
        '{"tone_score": 1}', '{"tone_score": 1, "clarity": "much"}', '{"notes": 1, "clarity": 2}', "[1, 2]",
        "{not json", {"tone_score": 1, "clarity": 2}, None, '{"a":' * 100_000,
    ):  # fmt: skip
        assert not repeats_scores(text, columns)


def test_scores_of_systems_without_answers_differ_by_the_name_of_a_system():
    numbered = ["gpt4_score", "claude3_score"]
    assert systems_of_scores(numbered) == {"gpt4": {"score": numbered[0]}, "claude3": {"score": numbered[1]}}
    after = ["tone_gpt4", "tone_claude"]
    assert systems_of_scores(after) == {"gpt4": {"tone": after[0]}, "claude": {"tone": after[1]}}
    assert systems_of_scores(["grade_gpt", "grade_gemini", "grade_teacher"]) == {}
    assert systems_of_scores(["gpt_judge_score", "claude_judge_score"]) == {}
    assert systems_of_scores(["LLM Tone", "RAG Tone", "LLM Cost", "other"]) == {
        "LLM": {"Tone": "LLM Tone"},
        "RAG": {"Tone": "RAG Tone"},
    }
    assert [*systems_of_scores(["rag_tone", "gpt_tone"])] == ["rag", "gpt"]
    for scores in (["LLM Tone"], ["LLM Tone", "RAG Clarity"], ["good Tone", "bad Tone"], ["LLM", "RAG"], []):
        assert systems_of_scores(scores) == {}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"clear": (1, 4)}, ["clear"]),
        ({"clear": (1, 9)}, []),  # another scale
        ({"clear": (3, 3)}, []),
        ({"points": (1, 9)}, ["points"]),
        ({"token_count": (1, 4)}, []),
        ({"rater_age": (1, 4)}, []),
        ({"clear": (-1, 4)}, []),
        ({"clear": ("a", "b")}, []),
        ({"answer": (1, 4)}, ["answer"]),
        ({"gold_answer": (1, 4)}, []),
        ({"in.clear": (1, 4)}, []),  # inside another object
        ({f"c{at}": (1, 4) for at in range(7)}, [f"c{at}" for at in range(7)]),
    ],
)
def test_columns_that_hold_what_scores_beside_them_hold(more, found):
    rows = [{"tone_score": (2, 5)[at % 2], **{name: held[at % 2] for name, held in more.items()}} for at in range(4)]
    columns = columns_of(rows)
    for row in rows:
        if "in.clear" in row:
            row["in"] = {"clear": row.pop("in.clear")}
            columns = columns_of(rows)
    assert like_scores(columns, [*more], ["tone_score"]) == found
    assert like_scores(columns, [*more], []) == [name for name in found if name == "points"]


def test_how_sure_a_classifier_is_of_its_label_is_no_score():
    rows = [
        row(
            "text gold_label bert_label bert_score judge_label judge_score", "A.", "toxic", "fine", 0.9, "meets it", 0.4
        ),
        row(
            "text gold_label bert_label bert_score judge_label judge_score", "B.", "fine", "toxic", 0.8, "lacks it", 0.7
        ),
    ]
    assert score_columns(columns_of(rows)) == ["judge_score"]
    said = [
        row("text bert_label bert_score", "How nice.", "fine", 0.9),
        row("text bert_label bert_score", "Bah.", "toxic", 1),
    ]
    assert read(*said) == {"question": "text", "answer": "bert_label"}
    names = "question answer hallucination_label hallucination_score tone_label tone_score"
    answered = [
        row(names, "A?", "It is b.", "none", 0.1, "dry", 0.2),
        row(names, "B?", "It is c.", "much", 0.9, "warm", 0.7),
    ]
    scores = "hallucination_score tone_score"
    assert read(*answered) == {"question": "question", "answer": "answer", "score": scores}


def test_labels_that_agree_by_chance_do_not_hide_the_answer():
    rows = [
        row("question type route hit answer", f"{at}?", kind, route, kind == route, f"The long answer is number {at}.")
        for at, (kind, route) in enumerate([("a", "a"), ("b", "a"), ("a", "b"), ("b", "b"), ("a", "a"), ("b", "a")])
    ]
    assert read(*rows) == {"question": "question", "answer": "answer", "score": "hit"}


def test_a_rate_with_fractions_may_be_a_score_beside_others():
    rows = [
        row("id tone_score fact_rate retry_rate", "a", 0.5, 0.25, 1),
        row("id tone_score fact_rate retry_rate", "b", 0.7, 1, 0),
    ]
    columns = columns_of(rows)
    assert like_scores(columns, ["fact_rate", "retry_rate"], ["tone_score"]) == ["fact_rate"]
