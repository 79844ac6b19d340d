"""Small inputs that once went wrong, from the shared material, and what each must give now."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.models.test_refusals import answering


@pytest.fixture
def case(shared_data, here):
    """`case("N")`: the files of a folder of cases, copied into the working directory."""

    def copied(name: str) -> Path:
        shutil.copytree(shared_data / "cases" / name, here, dirs_exist_ok=True)
        return here

    return copied


def lines(text: str) -> str:
    """The text with every run of white space as one space: what is said, however it is wrapped."""
    return " ".join(text.split())


def summary(karat) -> Any:
    """The newest run's report as JSON."""
    return karat("report", newest_run(), "--to", "json").json


def newest_run() -> Path:
    return max(Path("results").iterdir(), key=lambda path: path.stat().st_mtime_ns)


# --- agents, models, judges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "tokens"),
    [
        ("openai_usage", {"input": 1000, "output": 300}),
        ("anthropic_usage", {"input": 1050, "output": 30, "cache_read": 900, "cache_write": 50}),
        ("float_usage", {"input": 5, "output": 1}),
    ],
)
def test_usage_counts_as_its_provider_means_it(case, karat, function, tokens):
    case("B")
    assert karat("run", "agents.yaml", "--set", f"agent.target=agents:{function}").code == 0
    counted = summary(karat)["total"]["tokens"]
    assert {name: counted[name] / 6 for name in tokens} == tokens
    assert counted["unknown"] == 0


def chat(karat, file, experiment="chat.yaml", key="agent"):
    """Runs the experiment with a server that gives the file's one reply again and again."""
    (reply,) = json.loads(Path(file).read_text(encoding="utf-8"))
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    head = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    status = reply.pop("status", 200)
    with answering(status, reply if "error" in reply else head | reply) as address:
        return karat("run", experiment, "--set", f"{key}.base_url={address}")


@pytest.fixture
def _a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")


@pytest.mark.usefixtures("_a_key")
def test_a_cut_answer_is_counted_and_said(case, karat):
    case("B")
    done = chat(karat, "cut_answer.json")
    assert "cut" in done.out.split("Means")[0]
    assert summary(karat)["total"]["cut"] == 1


@pytest.mark.usefixtures("_a_key")
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("error_in_200.json", "Provider is rate limited upstream"),
        ("filter_400.json", "content management policy"),
        ("no_choices.json", "choices"),
    ],
)
def test_an_error_of_the_provider_keeps_its_message(case, karat, file, message):
    case("B")
    chat(karat, file)
    said = json.dumps(summary(karat)["failures"])
    assert message in said
    assert "crash" not in said
    assert "validation error" not in said


@pytest.mark.usefixtures("_a_key")
def test_thoughts_without_an_opening_tag_are_no_part_of_the_answer(case, karat):
    case("B")
    chat(karat, "thought_without_opening_tag.json")
    assert [result["mean"]["value"] for result in summary(karat)["results"]] == [5.0, 5.0, 5.0]


@pytest.mark.usefixtures("_a_key")
def test_a_judges_reply_with_raw_line_breaks_is_read(case, karat):
    case("B")
    assert chat(karat, "judge_line_break_in_text.json", "judge.yaml", "judge").code == 0
    assert [result["mean"]["value"] for result in summary(karat)["results"]] == [4.0, 4.0, 4.0]


def test_versions_and_codes_are_not_numbers(case, karat):
    case("B")
    karat("score", "versions.csv", "--question", "Q", "--golden", "G", "--answer", "A")
    assert {result["distribution"]["5"] for result in summary(karat)["results"]} == {0}


# --- numeric conversations --------------------------------------------------------------------------------------------


def conversation(karat, answers, dataset):
    done = karat("score", answers, "--dataset", dataset, "--kind", "conversation")
    return done, summary(karat)


@pytest.mark.needs_package("karat_conversations")
@pytest.mark.parametrize(
    ("answers", "dataset", "metric", "share"),
    [
        ("1_declared_answers", "1_declared_dataset", "declared", 1.0),
        ("1_declared_billion_answers", "1_declared_dataset", "declared", 1.0),
        ("2_prose_answers", "2_prose_dataset", "numerical", 1.0),
        ("3_last_number_answers", "3_last_number_dataset", "numerical", 1.0),
        ("8_equals_tail_answers", "8_equals_tail_dataset", "numerical", 1.0),
        ("9_messages_answers", "2_prose_dataset", "numerical", 1.0),
    ],
)
def test_a_right_number_is_read(case, karat, answers, dataset, metric, share):
    case("C")
    _, read = conversation(karat, f"{answers}.jsonl", f"{dataset}.jsonl")
    means = {result["metric"]: result["mean"]["value"] for result in read["results"]}
    assert means[metric] == share


def turns(karat, name="turns.csv"):
    assert karat("report", newest_run(), "--to", "convfinqa", "--out", "tables").code == 0
    with open(Path("tables") / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.needs_package("karat_conversations")
def test_the_text_of_a_turn_is_kept_and_is_no_wrong_answer(case, karat):
    case("C")
    conversation(karat, "4_text_turn_answers.jsonl", "4_text_turn_dataset.jsonl")
    assert "chief financial officer" in json.dumps(turns(karat)[1]).lower()
    assert turns(karat, "errors.csv") == []


@pytest.mark.needs_package("karat_conversations")
def test_a_zero_that_means_unknown_is_unanswered_and_proves_nothing(case, karat):
    case("C")
    conversation(karat, "7_diagnosis_answers.jsonl", "7_diagnosis_dataset.jsonl")
    causes = {(row["conversation_id"], row["turn_idx"]): row["error_type"] for row in turns(karat, "errors.csv")}
    assert causes == {("na", "0"): "unanswered", ("pr", "2"): "wrong_operand", ("pr", "3"): "propagated"}


@pytest.mark.needs_package("karat_conversations")
def test_a_refusal_is_unanswered(case, karat):
    case("C")
    conversation(karat, "9_idk_answers.jsonl", "2_prose_dataset.jsonl")
    assert {row["error_type"] for row in turns(karat, "errors.csv")} == {"unanswered"}


@pytest.mark.needs_package("karat_conversations")
def test_tat_qa_with_an_empty_span_loads_and_its_predictions_are_read(case, karat):
    case("C")
    assert karat("check", "--lint", "5_tatqa_empty_span.json").code == 0
    done, read = conversation(karat, "5_tatqa_official_predictions.json", "5_tatqa_empty_span.json")
    assert done.code == 0
    assert {result["metric"]: result["mean"]["value"] for result in read["results"]}["exact_match"] == 1.0


@pytest.mark.needs_package("karat_conversations")
def test_spans_of_tat_qa_raise_no_alarm(case, karat):
    case("C")
    done = karat("check", "--lint", "5_tatqa_lint_false.json")
    assert done.code == 0
    assert "nothing contradicts itself" in done.out


@pytest.mark.needs_package("karat_conversations")
def test_a_bare_number_is_no_program_by_finqas_rule(case, karat):
    case("C")
    conversation(karat, "6_finqa_bare_number.json", "6_finqa.json")
    official = karat("report", newest_run(), "--to", "convfinqa_official").json["conditions"]["answers"]
    assert official["execution_accuracy"]["value"] == 0.0
    assert official["invalid_programs"] == 1


# --- files of answers and results -------------------------------------------------------------------------------------


def test_rows_of_one_question_are_its_repetitions(case, karat):
    case("N")
    done = karat("score", "pseudo_rep.csv")
    assert "4.10 [3.06, 5.00] over 10 questions, 100 answers" in lines(done.out)


def test_models_of_a_file_are_paired_conditions(case, karat):
    case("N")
    assert karat("score", "long.csv").code == 0
    read = summary(karat)
    assert read["conditions"] == ["gpt", "claude"]
    assert read["samples"] == 2


def test_ten_questions_cannot_win_among_39_comparisons(case, karat):
    case("N")
    assert "ask at least 11 questions for 39 comparisons" in lines(karat("check", "many_conditions.yaml").out)
    first = lines(karat("run", "many_conditions.yaml").out)
    assert "10 questions cannot show a difference among 39 comparisons" in first
    assert "c4 against c0" in first
    assert "+4.00" in first


@pytest.mark.slow
@pytest.mark.needs_package("karat_servers")
def test_expected_failures_are_no_fault_of_the_measurement(case, karat):
    case("N")
    done = karat("run", "c2.yaml")
    assert done.code == 0
    assert "Failures" not in done.out
    assert "failed" not in done.out
    assert {result["mean"]["value"] for result in summary(karat)["results"]} == {1.0}


@pytest.mark.needs_package("karat_imports")
def test_two_tables_of_one_name_are_two_runs(case, karat):
    case("E")
    assert karat("import", "csv", "eval.a.csv", "eval.b.csv").code == 0
    assert len(list(Path("results").iterdir())) == 2


@pytest.mark.needs_package("karat_imports")
def test_repetitions_may_be_numbered_from_1(case, karat):
    case("E")
    done = karat("import", "csv", "epochs_from_1.csv", "--map", "repetition=epoch")
    assert "8 samples × 1 condition × 3 repetitions" in done.out + done.err
    assert summary(karat)["total"]["ledger"]["planned"] == 24


@pytest.mark.needs_package("karat_imports")
def test_a_column_that_groups_questions_is_named(case, karat):
    case("E")
    done = karat("import", "csv", "grouped_null.csv")
    assert "import with --cluster document" in lines(done.out + done.err)
    clustered = karat("import", "csv", "grouped_null.csv", "--cluster", "document")
    assert "not used" not in clustered.out + clustered.err
    report = lines(karat("report", newest_run()).out)
    assert report.startswith("No difference shown between A and B on quality")
    assert "few clusters (6 clusters)" in report


def test_two_golden_columns_are_a_fault_that_names_both(case, karat):
    case("F")
    done = karat("check", "01_experiment.yaml")
    assert done.code == 2
    said = lines(done.out + done.err)
    assert "1) roles: {question: question, golden: ground_truth, answer: answer}" in said
    assert "2) roles: {question: question, golden: answer}" in said


@pytest.mark.needs_package("karat_imports")
def test_the_run_that_hallucinates_is_the_worse_one(case, karat):
    case("F")
    karat("import", "deepeval", "02_deepeval_hallucination_all_bad.json", "02_deepeval_hallucination_none.json")
    (row, *_) = [row for row in summary(karat)["differences"] if row["metric"].lower().startswith("halluc")]
    assert row["winner"] in {None, "run0"}
    assert "run1 is better" not in karat("report", newest_run()).out


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize("file", ["03_promptfoo_prompts_per_test.json", "09_promptfoo_keys_sorted.json"])
def test_cells_that_were_never_planned_are_not_missing(case, karat, file):
    case("F")
    assert karat("import", "promptfoo", file).code == 0
    ledger = summary(karat)["total"]["ledger"]
    assert (ledger["planned"], ledger["scored"]) == (6, 6)


@pytest.mark.parametrize(
    ("file", "taken"),
    [
        (
            "04_choices_left_out.jsonl",
            ["question Which is smallest? A) 9 B) 2 C) 7 [input, choices]", "golden B (or: 2"],
        ),
        ("05_yaml_list_under_a_key.yaml", ["question What is it? [question]", "golden A lid. [answer]"]),
        ("07_gsm8k_shape.jsonl", ["golden 10 [answer]"]),
        (
            "08_chat_input_and_list_of_ideals.jsonl",
            ["question Be short. Say yes. [input]", "golden yes (or: Yes) [ideal]"],
        ),
        ("11_usual_names.jsonl", ["golden Three days. [reference]", "(answer) Three. [response]"]),
        ("12_promptfoo_tests.csv", ["criterion contains: three [__expected]"]),
    ],
)
def test_people_s_files_are_taken_for_what_they_are_and_shown(case, karat, file, taken):
    case("F")
    scorer = "criteria" if file.startswith("12") else "equals"
    done = karat(
        "check", "01_experiment.yaml", "--no-start", "--set", f"dataset.path={file}", "--set", f"scorers=[{scorer}]"
    )
    assert done.code == 0, done.err
    assert [text for text in taken if text not in lines(done.out)] == []


@pytest.mark.needs_package("karat_conversations")
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("04_choices_left_out.jsonl", "1 sample; nothing contradicts itself"),
        ("05_yaml_list_under_a_key.yaml", "2 samples; nothing contradicts itself"),
        ("06_tatqa_empty_span.json", "nothing contradicts itself"),
        ("07_gsm8k_shape.jsonl", "2 samples; nothing contradicts itself"),
    ],
)
def test_lint_says_what_a_run_would_do(case, karat, file, said):
    case("F")
    done = karat("check", "--lint", file)
    assert said in lines(done.out + done.err)


# --- studies ----------------------------------------------------------------------------------------------------------


@pytest.mark.needs_package("karat_studies")
@pytest.mark.parametrize("study", ["items", "conjoint"])
def test_rows_that_are_not_people_are_a_fault(case, karat, study):
    case("H")
    done = karat("check", f"{study}/study.yaml")
    assert done.code == 2
    assert "rows are not people: add `by: participant`" in lines(done.out + done.err)


@pytest.mark.needs_package("karat_studies")
def test_neither_of_two_agents_that_know_nothing_is_closer_to_people(case, karat):
    case("H")
    done = karat("score", "two-agents-that-know-nothing.jsonl", "--kind", "study", "--dataset", "side_effects")
    assert "neither is shown to know people" in lines(done.out)
    assert "closer to people" not in lines(done.out)
