"""Tables whose cells say more than the names of their columns: conditions, items, scores, judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from karat.cli import cli
from karat.errors import BadDataset, BadOption
from karat.records import Answer, Score
from karat_imports.imported import Imported, import_results


def read(folder: Path, rows: object, name: str = "r.json", **options: object) -> Imported:
    path = folder / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    (made,) = import_results("csv", [path], folder / "runs", options=options)
    return made


def size(made: Imported) -> tuple[int, tuple[str, ...], int]:
    plan = made.run.info.plan
    return plan.samples, tuple(plan.conditions), plan.repetitions


def notes(made: Imported) -> str:
    return "\n".join(made.findings.notes)


def first_row(made: Imported) -> Mapping[str, str]:
    return made.run.info.dataset.first_row


def refused(folder: Path, rows: object, **options: object) -> str:
    with pytest.raises((BadOption, BadDataset)) as error:
        read(folder, rows, **options)
    return str(error.value)


def test_an_id_that_few_questions_spell_in_two_ways_is_the_key(tmp_path: Path) -> None:
    rows = []
    for number in range(60):
        for model in ("a", "b"):
            spelling = "What's" if (number, model) == (7, "b") else "What is"
            rows.append({"query_id": number, "query": f"{spelling} {number}?", "model": model, "response": "It is."})
    made = read(tmp_path, rows)
    assert size(made) == (60, ("a", "b"), 1)
    assert "'query_id' 7 has several questions, of which the first counts" in notes(made)


def test_an_id_that_is_not_the_key_is_not_said_to_be_used(tmp_path: Path) -> None:
    rows = []
    for version in ("v1", "v2"):
        rows += [{"prompt_id": version, "question": f"What is {n}?", "answer": f"{version} {n}"} for n in range(6)]
    made = read(tmp_path, rows, unnamed="repetitions")
    assert "id=prompt_id" not in notes(made)
    assert size(made)[0] == 6


def test_rows_of_scores_are_no_answers(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("summary_id,relevance\n" + "".join(f"s{n},0.{n}\n" for n in range(5)))
    shown = CliRunner().invoke(cli, ["import", "csv", str(tmp_path / "r.csv"), "--out", str(tmp_path / "runs")])
    assert ": 5 rows without the answers, 5 scores; 5 samples" in shown.output


def test_what_lies_on_the_scale_of_a_score_is_offered_with_its_option(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        rows.append({"id": n, "relevance": n / 9, "salience": n / 8, "truncated": n % 2, "words": n, "noise": False})
    said = refused(tmp_path, rows)
    assert "salience, truncated may be scores too, by their values; say one:\n" in said
    named = "  --map score.relevance=relevance"
    assert said.splitlines()[1:] == [f"{named} --map score.salience=salience --map score.truncated=truncated", named]
    made = read(tmp_path, rows, map={"score.salience": "salience"})
    assert made.counts["scores"] == 16


def test_yes_and_no_beside_scores_of_yes_and_no_are_offered(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = "Yes" if n % 2 else "No"
        rows.append({"question": f"Draw {n}?", "answer": f"<svg {n}>", "is_correct": said, "Shape is closed": said})
    assert "--map 'score.Shape is closed=Shape is closed'" in refused(tmp_path, rows)


def test_judges_in_words_are_named_and_the_next_step_works(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        for sample in (1, 2, 3):
            verdict = {"detection": "seen" if sample % 2 else "missed"}
            row = {
                "prompt_id": f"p{n}",
                "sample_idx": sample,
                "gpt": {"verdict": verdict},
                "grok": {"verdict": verdict},
            }
            rows.append(row)
    said = refused(tmp_path, rows)
    assert "these judge in words, which have no value: gpt.verdict.detection, grok.verdict.detection" in said
    made = read(tmp_path, rows, map={"answer": "gpt.verdict.detection"})
    assert size(made) == (4, ("answers",), 3)
    assert "'sample_idx' numbers the repetitions" in notes(made)


def test_pass_and_fail_under_the_name_of_a_fault_are_better_when_passed(tmp_path: Path) -> None:
    rows = [{"id": n, "answer": f"It is {n}.", "hallucination": "Fail" if n == 2 else "Pass"} for n in range(6)]
    said = notes(read(tmp_path, rows))
    assert "'hallucination' holds Fail, Pass: better when higher, whatever its name" in said


def test_a_direction_by_name_that_the_other_scores_contradict_is_doubted(tmp_path: Path) -> None:
    rows = []
    for n in range(12):
        rows.append({"id": n, "answer": f"It is {n}.", "hallucination": n % 4, "faithfulness": n % 4, "x": 1})
    said = notes(read(tmp_path, rows))
    assert "'hallucination' rises with faithfulness" in said
    assert "--set 'higher_is_better=[hallucination]'" in said or "--set higher_is_better=[hallucination]" in said
    turned = notes(read(tmp_path, rows, higher_is_better=["hallucination"]))
    assert "better when lower" not in turned
    assert "rises with" not in turned


def of_two_systems(**scores: float) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for n in range(6):
        for system in ("a", "b"):
            held = {name: n * worth for name, worth in scores.items()}
            rows.append({"question": f"Is it {n}?", "system": system, "answer": f"{system}: {n}", **held})
    return rows


def test_scores_of_uncertain_direction_that_rank_conditions_are_asked_about_together(tmp_path: Path) -> None:
    rows = of_two_systems(accuracy=0.1, latency_score=0.1, sentiment_score=0.1)
    options = "--set 'higher_is_better=[\"sentiment_score\"]' --set 'lower_is_better=[\"latency_score\"]'"
    said = refused(tmp_path, rows)
    assert "('latency_score', 'sentiment_score')" in said
    assert options in said
    made = read(tmp_path, rows, higher_is_better=["sentiment_score", "latency_score"])
    assert size(made) == (6, ("a", "b"), 1)
    alone = read(tmp_path, [row for row in rows if row["system"] == "a"])
    assert "taken to be better when higher: sentiment_score" in notes(alone)


def test_a_fault_that_rises_with_the_other_scores_is_asked_about_where_it_ranks(tmp_path: Path) -> None:
    said = refused(tmp_path, of_two_systems(hallucination=1, faithfulness=1))
    assert "'hallucination': a high one goes with high others" in said
    assert "--set 'higher_is_better=[\"hallucination\"]'" in said


def test_a_metric_cannot_be_better_in_both_directions(tmp_path: Path) -> None:
    rows = [{"id": n, "answer": "It is.", "score": n} for n in range(3)]
    assert "better when lower, too" in refused(tmp_path, rows, lower_is_better=["score"], higher_is_better=["score"])


def test_a_setting_that_all_questions_have_alike_is_the_condition(tmp_path: Path) -> None:
    rows = []
    for chunk in (300, 500, 700):
        rows += [{"chunk_size": chunk, "question": f"What is {n}?", "faithfulness": n / 9} for n in range(5)]
    assert size(read(tmp_path, rows)) == (5, ("300", "500", "700"), 1)
    del rows[0]  # then it may be chance
    assert size(read(tmp_path, rows))[1] == ("answers",)


def test_names_of_systems_before_the_same_scores_are_conditions(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        scores = {"LLM Tone": n % 3, "RAG Faithfulness": 0.5, "LLM Faithfulness": n / 6, "RAG Hit": 1}
        rows.append({"ID": n, "Question": f"What is {n}?", **scores})
    made = read(tmp_path, rows)
    assert size(made) == (6, ("RAG", "LLM"), 1)
    assert made.counts["scores"] == 12
    assert "not used: LLM Tone, RAG Hit" in notes(made)


def test_answers_with_letters_are_of_systems_unless_another_column_answers(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for n in range(6):
        said = {"answer_a": f"It is {n}.", "answer_b": f"It may be {n}, or not."}
        rows.append({"question": f"What is {n}?", **said, "winner": "ab"[n % 2]})
    assert size(read(tmp_path, rows)) == (6, ("answer_a", "answer_b"), 1)
    for n, row in enumerate(rows):
        row |= {"winner": None, "correct_answer": "ab"[n % 2], "model_answer": "a"}
    assert size(read(tmp_path, rows, name="choices.json"))[1] == ("answers",)


def test_texts_of_numbered_runs_are_repetitions_also_if_they_agree(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = f"It is certainly the number {n}."
        rows.append({"question": f"What is {n}?", "gold": f"{n}", "run_1": said, "run_2": f"{n}!", "run_3": said})
    assert size(read(tmp_path, rows)) == (6, ("answers",), 3)


def test_what_was_said_before_and_after_a_change_are_conditions(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = {"before": f"It is {n}.", "after": f"It is {n}, surely.", "score_before": n, "score_after": n + 1}
        rows.append({"question": f"What is {n}?", **said})
    made = read(tmp_path, rows)
    assert size(made) == (6, ("before", "after"), 1)
    assert made.counts["scores"] == 12


def test_a_model_in_an_object_of_settings_is_the_condition(tmp_path: Path) -> None:
    rows = []
    for model in ("a", "b"):
        settings = {"model": model, "judge_model": "c", "temperature": 0.2}
        rows += [{"question": f"What is {n}?", "answer": f"{model} {n}", "metadata": settings} for n in range(6)]
    assert size(read(tmp_path, rows)) == (6, ("a", "b"), 1)


def test_ids_of_rows_under_several_models_do_not_part_a_question(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for model in ("a", "b"):
        for n in range(6):
            rows.append({"id": len(rows), "question": f"What is {n}?", "answer": f"{model} {n}", "model": model})
    assert size(read(tmp_path, rows)) == (6, ("a", "b"), 1)
    rows[-1]["question"] = "What is more?"  # then an id may be that of a question
    assert size(read(tmp_path, rows, name="more.json"))[0] == 12


def test_the_scores_of_each_system_are_named(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = {"base_response": f"It is {n}.", "tuned_response": f"It is {n}, I think."}
        rows.append({"question": f"What is {n}?", **said, "base_tone": n, "tuned_tone": 1})
    assert "score.tone of each: base_tone, tuned_tone" in notes(read(tmp_path, rows, name="scores.json"))


def test_a_part_of_the_question_is_no_answer(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = {"headline": f"The number {n} was found", "lead": f"Nobody had looked for {n} there."}
        rows.append({"text": f"{said['headline']} {said['lead']}", **said, "category": "xy"[n % 2]})
    assert "no column is an answer or a score by its name" in refused(tmp_path, rows)


@pytest.mark.parametrize("column", ["app_id", "pipeline_name", "prompt_version", "approach"])
def test_names_and_ids_of_conditions_are_conditions(tmp_path: Path, column: str) -> None:
    rows = []
    for name in ("one", "two"):
        rows += [{"question": f"What is {n}?", "answer": f"{name} {n}", column: name} for n in range(3)]
    assert size(read(tmp_path, rows)) == (3, ("one", "two"), 1)


def test_systems_may_end_with_what_they_are_and_models_have_letters(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for n in range(6):
        said = {"naive_rag": f"It is {n}.", "graph_rag": f"It is {n}, I think."}
        rows.append({"query": f"What is {n}?", "ground_truth": f"{n}", **said})
    assert size(read(tmp_path, rows)) == (6, ("naive_rag", "graph_rag"), 1)
    for n, row in enumerate(rows):
        row |= {"Answer_ModelA": row.pop("naive_rag"), "Answer_ModelB": row.pop("graph_rag")}
        row |= {"Fluency_A": n, "Fluency_B": 5 - n}
    made = read(tmp_path, rows, name="letters.json")
    assert made.counts["scores"] == 12


@pytest.mark.parametrize(
    ("column", "yes", "no"),
    [
        ("Correct?", "✓", "✗"),
        ("Is correct (Y/N)", "Y", "N"),
        ("¿Correcto?", "✅", "❌"),
        ("Correcto", "Sí", "No"),
        ("korrekt", "richtig", "falsch"),
        ("是否正确", "是", "否"),
        ("Оценка", "верно", "неверно"),
    ],
)
def test_marks_are_verdicts(tmp_path: Path, column: str, yes: str, no: str) -> None:
    rows = [{"question": f"What is {n}?", "answer": f"It is {n}.", column: yes if n % 2 else no} for n in range(6)]
    assert read(tmp_path, rows).counts["scores"] == 6


def test_pairs_of_preferences_are_no_results(tmp_path: Path) -> None:
    rows = [{"prompt": f"What is {n}?", "chosen": f"It is {n}.", "rejected": f"It may be {n}."} for n in range(6)]
    assert "no column is an answer or a score by its name" in refused(tmp_path, rows)


def test_a_list_of_failures_is_called_one(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n}?", "expected": f"{n}", "got": "x"} for n in range(3)]
    made = read(tmp_path, {"accuracy": 0.9, "failures": rows})
    assert "rows: the list 'failures'; by its name, it holds only what failed" in notes(made)


def test_answers_with_numbers_and_a_preferred_one_are_no_repetitions(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        said = {"Response 1": f"It is {n}.", "Response 2": f"It may be {n}, or not."}
        rows.append({"Prompt": f"What is {n}?", **said, "Preferred": "Response 1"})
    assert size(read(tmp_path, rows))[1] == ("Response 1", "Response 2")


def test_scores_may_hold_their_meaning_a_thumb_or_a_judge(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        judged = [{"judge": name, "score": n, "rationale": "It fits."} for name in ("one", "two")]
        said = {"score": ["4 - Good", "2 (poor)"][n % 2], "thumbs": ["up", "down"][n % 2], "evaluations": judged}
        rows.append({"question": f"What is {n}?", "answer": f"It is {n}.", **said})
    assert read(tmp_path, rows).counts["scores"] == 24


def test_context_and_answer_before_a_score_are_no_systems(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n}?", "context_recall": 0.5, "answer_recall": n / 6} for n in range(6)]
    assert size(read(tmp_path, rows))[1] == ("answers",)


def test_parallel_lists_under_the_names_of_conditions_are_rows(tmp_path: Path) -> None:
    arms = {}
    for name in ("base", "tested"):
        arms[name] = {"scores": [90, 100, 80], "responses": [f"{name} {n}" for n in range(3)], "avg": 90}
    made = read(tmp_path, arms)
    assert size(made) == (3, ("base", "tested"), 1)
    assert (made.counts["answers"], made.counts["scores"]) == (6, 6)


def test_the_first_of_what_a_model_thought_likely_is_its_answer(tmp_path: Path) -> None:
    likely = {}
    for n in range(30):
        likely[f"q-{n}"] = [{"text": f"best {n}", "probability": 0.8}, {"text": "other", "probability": 0.1}]
    made = read(tmp_path, likely)
    assert size(made) == (30, ("answers",), 1)
    assert next(iter(made.run.events_of(Answer))).text == "best 0"
    assert "not used: probability, other_candidates" in notes(made)


def test_written_text_is_the_answer_before_a_class_that_somebody_gave_it(tmp_path: Path) -> None:
    rows = []
    for n in range(20):
        text = f"I do not think that {n} is a feeling."
        rows.append({"prompt": f"Do you feel {n}?", "completion": text, "label_llm": ("yes", "no")[n % 2]})
    assert "answer=completion" in notes(read(tmp_path, rows))


def test_what_was_parsed_is_compared_with_the_number_that_was_expected(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        rows.append({"question": f"How far is {n}?", "expected_km": n, "parsed_km": n, "model_output": f"It is {n} km"})
    assert "golden=expected_km, answer=parsed_km" in notes(read(tmp_path, rows))


def test_captions_of_reference_are_golden(tmp_path: Path) -> None:
    rows = [{"image_id": n, "reference_captions": f"['A {n}.']", "generated_caption": f"a {n}"} for n in range(6)]
    assert "golden=reference_captions, answer=generated_caption" in notes(read(tmp_path, rows))


def test_answers_by_name_come_before_variants_of_them(tmp_path: Path) -> None:
    rows = []
    for n in range(12):
        label = ("good", "bad")[n % 2]
        names = ("gpt answer", "bert answer", "gpt_flip", "bert_flip", "llama_flip")
        rows.append({"question": f"How is {n}?", "labels": label, **dict.fromkeys(names, label)})
    assert size(read(tmp_path, rows))[1] == ("gpt answer", "bert answer")


def test_a_copy_of_the_better_answer_is_no_system(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        said = {"LLM Translation": f"Here is the text {n} of one", "Google Translation": f"Here is another text {n}"}
        better = [*said.values()][n % 2]
        rows.append(
            {"question": f"Translate {n}?", **said, "LLM Score": n, "Google Score": 5, "Better Translation": better}
        )
    made = read(tmp_path, rows)
    assert size(made)[1] == ("LLM Translation", "Google Translation")
    assert made.counts["scores"] == 16


def test_the_output_of_a_judge_is_no_answer(tmp_path: Path) -> None:
    rows = []
    for n in range(5):
        scores = {"adequacy": n, "fluency": 5 - n}
        rows.append({"id": n, **scores, "raw_response": json.dumps(scores)})
    made = read(tmp_path, rows)
    assert "answer=" not in notes(made)
    assert made.counts["scores"] == 10


def test_the_list_with_the_answers_is_read(tmp_path: Path) -> None:
    cases = [{"input": f"Buy {n}?", "expected_output": "yes", "criteria": "short", "context": "shop"} for n in range(4)]
    results = [{"input": f"Buy {n}?", "actual_output": f"Yes, {n}."} for n in range(4)]
    made = read(tmp_path, {"test_cases": cases, "results": results})
    assert "rows: the list 'results'; not read: 'test_cases' (4 rows)" in notes(made)


def test_an_id_that_stands_for_two_samples_sets_up_no_repetition(tmp_path: Path) -> None:
    rows = []
    for n in range(30):
        rows += [{"video_id": f"v{n}", "kind": f"k{n % 3}", "tool": tool, "f1": n / 30} for tool in ("a", "b")]
    rows += [{"video_id": "v4", "kind": "k0", "tool": tool, "f1": 0.5} for tool in ("a", "b")]
    made = read(tmp_path, rows)
    assert size(made) == (31, ("a", "b"), 1)
    assert "1 id stands for two samples, which differ in 'kind': v4" in notes(made)


def test_many_texts_under_one_id_are_items(tmp_path: Path) -> None:
    rows = [{"qid": n % 2, "answer": f"The student writes essay {n}."} for n in range(40)]
    made = read(tmp_path, rows)
    assert size(made) == (40, ("answers",), 1)
    assert "if they are repetitions, --map id=qid" in notes(made)
    assert size(read(tmp_path, rows, map={"id": "qid"})) == (2, ("answers",), 20)


def test_the_importer_that_reads_a_format_is_named_first(tmp_path: Path) -> None:
    row = {"success": True, "score": 1, "vars": {"query": "A?"}, "response": {"output": "b"}, "promptIdx": 0}
    document = {"evalId": "e", "results": {"version": 3, "results": [row, row], "stats": {}}, "config": {}}
    assert notes(read(tmp_path, document)).startswith("r.json: `karat import promptfoo` reads files of its format")


def test_verdicts_that_are_known_in_part_are_no_scores(tmp_path: Path) -> None:
    rows = []
    for number, verdict in enumerate(("correct", "hedged", "correct", "made up")):
        rows.append({"question": f"What is {number}?", "answer": "It is.", "category": verdict})
    message = refused(tmp_path, rows, map={"score.category": "category"})
    assert "'category' holds words of which not all have a value: say what they are worth" in message
    assert '{"correct": 1, "hedged": ?, "made up": ?}' in message
    rows = [{**row, "category": "error" if row["category"] == "hedged" else "correct"} for row in rows]
    assert read(tmp_path, rows, map={"score.category": "category"}).counts["answers"] >= 3


def test_small_ids_of_runs_number_the_repetitions(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?", "response": f"It is {n + run}.", "run_id": run} for n in range(4) for run in (1, 2)]
    made = read(tmp_path, rows)
    assert size(made) == (4, ("answers",), 2)
    assert "'run_id' numbers the repetitions" in notes(made)


BY_TASK = [
    {"example_id": n, "task": task, "target": target, "prediction": "A", "shots": shots}
    for task, target in zip("uvw", "AAB", strict=True)
    for n in range(8)
    for shots in ("none", "five")
]


def test_ids_that_count_anew_in_each_task_name_a_sample_with_it(tmp_path: Path) -> None:
    made = read(tmp_path, BY_TASK)
    assert size(made) == (24, ("none", "five"), 1)
    assert "one 'example_id' has several golden answers, and one for each 'task'" in notes(made)
    assert {sample.id for sample in made.run.samples()} >= {"0 · u", "0 · v", "7 · w"}


def test_few_ids_of_two_questions_are_samples_of_their_own(tmp_path: Path) -> None:
    rows = [{"id": min(n, 8), "target": "AB"[n % 2], "prediction": "A", "model": "m"} for n in range(10)]
    made = read(tmp_path, rows)
    assert size(made)[0] == 10
    assert "8 (2)" in {sample.id for sample in made.run.samples()}


def test_grades_in_words_are_offered_with_their_words_and_taken_with_what_these_are_worth(tmp_path: Path) -> None:
    rows = [
        {"question_id": n, "model": "m", "category": word} for n, word in enumerate(("correct", "hedged", "refused"))
    ]
    told = '--map score.category=category --set \'words={"correct": 1, "hedged": ?, "refused": ?}\''
    assert f"if 'category' judges:\n  {told}" in refused(tmp_path, rows)
    assert told in refused(tmp_path, rows, map={"score.category": "category"})
    words = {"hedged": 0.5, "refused": None}
    made = read(tmp_path, rows, map={"score.category": "category"}, words=words)
    assert (made.counts["scores"], made.counts["not run"]) == (2, 1)


def test_a_status_that_tells_of_no_result_is_a_failure_and_no_score_of_0(tmp_path: Path) -> None:
    ended = ("done", "timeout", "blocked_by_quota", "done")
    rows = [{"id": f"q{n}", "question": f"{n}?", "status": word, "score": 1} for n, word in enumerate(ended)]
    made = read(tmp_path, rows)
    assert (made.counts["scores"], made.counts["failures"]) == (2, 2)
    assert "error=status" in notes(made)


def test_how_many_checks_passed_is_a_share_and_0_of_0_is_none(tmp_path: Path) -> None:
    counts = [(1, 2), (2, 2), (0, 0)]
    rows = [
        {"id": f"q{n}", "question": f"{n}?", "checks_passed": p, "checks_total": t} for n, (p, t) in enumerate(counts)
    ]
    made = read(tmp_path, rows)
    assert (made.counts["scores"], made.counts["not run"]) == (2, 1)
    assert "taken as a share: 'checks_passed' of 'checks_total'" in notes(made)


def test_of_several_pairs_of_expected_and_actual_one_is_asked_for(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        words = {"expected_path": "faq", "expected_action": "tell", "actual_path": "faq", "actual_action": "ask"}
        rows.append({"id": n, "query": f"What is {n}?", **words})
    said = refused(tmp_path, rows)
    for part in ("path", "action"):
        assert f"--map golden=expected_{part} --map answer=actual_{part}" in said
    made = read(tmp_path, rows, map={"golden": "expected_path", "answer": "actual_path"})
    assert (size(made)[0], first_row(made)["golden"]) == (4, "faq")


def test_how_an_attack_ended_is_no_golden_answer(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"Tell me {n}.", "response": f"No, not {n}.", "label": word}
        for n, word in enumerate(("success", "refused", "error", "refused"))
    ]
    made = read(tmp_path, rows)
    assert "golden" not in first_row(made)
    assert "not taken, as it judges in words: 'label' (error, refused, success)" in notes(made)


def test_the_success_of_an_attack_is_asked_for_its_direction(tmp_path: Path) -> None:
    rows = [{"prompt": f"Tell me {n}.", "victim_response": f"No, not {n}.", "score": n} for n in range(4)]
    option = "--set 'lower_is_better=[score]'"
    said = f"'victim_response' speaks of attacks: if more of score means that an attack succeeded, {option}"
    assert said in notes(read(tmp_path, rows))
    assert said not in notes(read(tmp_path, rows, lower_is_better=["score"]))


def test_an_accuracy_beside_attacks_is_no_success_of_them(tmp_path: Path) -> None:
    rows = [{"prompt": f"Tell me {n}.", "response": f"No {n}.", "attack": "x", "accuracy": n} for n in range(4)]
    assert "speaks of attacks" not in notes(read(tmp_path, rows))


def test_a_column_with_a_role_is_not_hidden_behind_those_without(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        rest = {f"x{place}": n for place in range(14)}
        rows.append({"question": f"Is it {n}?", "answer": f"It is {n}.", **rest, "generation_time": n, "total_time": n})
    said = notes(read(tmp_path, rows))
    assert "not used: generation_time, x0" in said
    assert "seconds=total_time" in said


def test_numbers_that_are_named_as_scores_need_no_ids(tmp_path: Path) -> None:
    rows = [
        {"Model": name, "Data 1": n, "Data 2": 2 * n, "Data 3": n + 2, "Average": n} for n, name in enumerate("abc", 1)
    ]
    said = refused(tmp_path, rows)
    assert "score.Average" not in said
    made = read(tmp_path, rows, map={"score.first": "Data 1"}, higher_is_better=["first"])
    assert size(made)[0] == 3
    assert "there are neither ids nor questions: each item is a sample" in notes(made)


def test_a_count_is_a_score_only_as_a_share_of_its_total(tmp_path: Path) -> None:
    rows = [
        {"question": f"Is it {n}?", "answer": f"It is {n}.", "kw_matched": n, "kw_total": 2 * n, "claims_passed": n}
        for n in range(4)
    ]
    made = read(tmp_path, [*rows, {"question": "Is it?", "answer": "It is."}])
    assert "taken as a share: 'kw_matched' of 'kw_total'" in notes(made)
    assert "'claims_passed' holds counts: no score; if it is one, --map score.claims_passed=claims_passed" in notes(
        made
    )
    shares = [score.values["kw_matched"] for score in made.run.events_of(Score) if score.scorer == "kw_matched"]
    assert [share for share in shares if share is not None] == [0.5] * 3  # 0 of 0 is no share


def test_a_code_that_numbers_the_rows_is_no_golden_answer(tmp_path: Path) -> None:
    rows = [{"reference": f"Web-0{n}", "question": f"Is it {n}?", "answer": "Yes"} for n in range(4)]
    made = read(tmp_path, rows)
    assert first_row(made) == {"question": "Is it 0?", "answer": "Yes"}


def test_what_as_many_rows_of_each_question_are_is_asked_if_nothing_names_them(tmp_path: Path) -> None:
    rows = [
        {"question": f"Is it {n}?", "response": f"It is {word} {n}."} for n in range(5) for word in ("not", "surely")
    ]
    assert "each question has 2 rows, and nothing names or numbers them" in refused(tmp_path, rows)
    assert size(read(tmp_path, rows, unnamed="repetitions")) == (5, ("answers",), 2)
    assert size(read(tmp_path, rows, unnamed="conditions")) == (5, ("1", "2"), 1)
    named = [{**row, "trial": number % 2} for number, row in enumerate(rows)]
    assert size(read(tmp_path, named)) == (5, ("answers",), 2)
    assert size(read(tmp_path, rows[:-1])) == (5, ("answers",), 2)


def test_labels_whose_equality_is_in_a_column_are_offered_and_that_column_is_the_grade(tmp_path: Path) -> None:
    rows = []
    for n in range(16):
        forced, choice = "AB"[n % 2], "AB"[n // 2 % 2]
        rows.append({"item_id": n, "forced": forced, "choice": choice, "congruent": int(forced == choice)})
    assert "--map id=item_id --map golden=forced --map answer=choice" in refused(tmp_path, rows)
    made = read(tmp_path, rows, map={"id": "item_id", "golden": "forced", "answer": "choice"})
    assert made.counts["scores"] == 16
    assert "score.congruent=congruent" in notes(made)


def test_rows_of_means_are_named_with_the_means_as_scores(tmp_path: Path) -> None:
    rows = [{"Set": f"s{n}", "AUC_mean": 0.5 + n / 20, "AUC_std": n / 90} for n in range(6)]
    said = refused(tmp_path, rows)
    assert "rows say means or statistics of several results ('AUC_std'): give the file with a row an answer" in said
    assert "\n  --map score.AUC_mean=AUC_mean\n" in said


def test_how_well_people_did_beside_kinds_of_errors_is_no_agents(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        kind = ("shape", "colour")[n % 2]
        rows.append({"task_id": f"t{n}", "human_accuracy": n / 7, "error_label": kind, "notes": f"It is wrong {n}."})
    assert "how well people did ('human_accuracy') and kinds of errors ('error_label')" in refused(tmp_path, rows)


def test_answers_whose_names_end_those_of_their_marks_are_conditions(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        said = {"Writer": f"It is so because {n} follows {n - 1}.", "Editor": f"As all know, {n} is what it is."}
        marks = {"Helpfulness Writer": "YN"[n % 2], "Helpfulness Editor": "Y"}
        rows.append({"Question": f"Why {n}?", **said, **marks})
    made = read(tmp_path, rows)
    assert (size(made), made.counts["scores"]) == ((4, ("Writer", "Editor"), 1), 8)


def test_a_raw_answer_beside_one_of_another_way_is_asked_about(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        said = {"raw_response": f"It is {n}, I think.", "routed_response": f"The needle says {n}."}
        rows.append({"question": f"Why {n}?", **said, "correct": n % 2})
    lines = refused(tmp_path, rows).splitlines()[1:4]
    answers = [line.strip().removeprefix("--map question=question ") for line in lines]
    raw, routed = "--map answer=raw_response", "--map answer=routed_response"
    assert answers == [raw, routed, f"{raw} {routed}"]


def test_what_an_agent_did_is_its_answer_beside_scores(tmp_path: Path) -> None:
    rows = []
    for n in range(12):
        row = {
            "profile": ("open", "strict")[n % 2],
            "scenario_id": f"s{n // 2}",
            "action": ("ALLOW", "BLOCK")[n % 3 % 2],
        }
        rows.append({**row, "is_safe_decision": int(n % 5 > 0)})
    assert "  --map id=scenario_id --map answer=action\n" in refused(tmp_path, rows)
    made = read(tmp_path, rows, map={"id": "scenario_id", "answer": "action"})
    assert (size(made), made.counts["scores"]) == ((6, ("open", "strict"), 1), 12)


def test_results_in_a_part_of_a_message_are_its_rows(tmp_path: Path) -> None:
    results = [{"id": n, "question": f"Why {n}?", "expected": "a", "predicted": "b", "score": 0} for n in range(3)]
    parts = [{"kind": "text", "text": "done"}, {"kind": "data", "data": {"results": results}}]
    log = [{"role": "agent", "parts": [{"text": f"step {n}"}]} for n in range(9)]
    made = read(tmp_path, {"result": {"artifacts": [{"name": "all", "parts": parts}], "history": log}})
    assert (size(made)[0], first_row(made)["golden"]) == (3, "a")


def test_what_some_questions_have_is_no_score(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        rows.append(
            {"question": f"Why {n}?", "answer": "a", "correct": n % 2 > 0, "№": n, "has_cat": n > 4 if n > 5 else None}
        )
    rows[7]["has_cat"] = False
    assert read(tmp_path, rows).counts["scores"] == 8
    for row in rows:
        row["has_cat"] = row["correct"]
    assert "has_cat may be scores too" in refused(tmp_path, rows)


def test_the_direction_of_every_score_is_said_and_times_are_none(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        times = {"itl": n / 9, "first": 900.5 + n}
        rows.append(
            {"id": n, "answer": f"It is {n}.", "passed": n > 2, "safety_flag": n < 2, "tone_score": n, "metrics": times}
        )
    made = read(tmp_path, rows)
    said = notes(made)
    assert "'safety_flag' is better when lower, by its name" in said
    assert "better when higher: passed" in said
    assert "not used: metrics" in said
    directions = {metric.name: metric.direction for scorer in made.run.info.scorers for metric in scorer.metrics}
    assert directions["safety_flag"] == "lower"


def test_a_finer_column_than_the_condition_parts_its_rows(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        for method, system in (("tuned", "t1"), ("tuned", "t2"), ("rag", "r1"), ("rag", "r2")):
            rows.append({"question_id": n, "method": method, "producer": system, "faithfulness": n / 9})
    assert size(read(tmp_path, rows))[1:] == (("tuned · t1", "tuned · t2", "rag · r1", "rag · r2"), 1)


def test_verdicts_with_a_sign_are_scores_and_no_answers(tmp_path: Path) -> None:
    rows = [{"question": f"Is it {n}?", "result": ("✅ PASS", "❌ FAIL")[n % 2], "notes": "As said."} for n in range(6)]
    made = read(tmp_path, rows)
    assert [score.values for score in made.run.events_of(Score)][:2] == [{"result": 1.0}, {"result": 0.0}]
    assert "score.result=result" in notes(made)


def test_the_last_row_may_sum_up(tmp_path: Path) -> None:
    lines = [f"What is {n}?,{n},{n},True" for n in range(9)]
    table = "\n".join(
        ["question,answer,correct_answer,is_correct", *lines, "SUMMARY - all,Answers: 9,Right: 9/9,Errors: 0"]
    )
    made = read(tmp_path, table + "\n", "r.csv")
    assert "the last row sums up the others and is left out: SUMMARY - all" in notes(made)
    assert made.counts["answers"] == 9
    assert size(made) == (9, ("answers",), 1)


def test_a_last_question_that_begins_with_total_is_kept_and_so_is_any_score_in_scores(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        judged = {"memory": n % 5, "elo": 1000 + n}
        rows.append({"question": f"What is {n}?", "answer": f"It is {n}.", "tone": n, "scores": judged})
    rows.append({"question": "Total Recall is by whom?", "answer": "By V.", "tone": "N/A", "scores": judged})
    made = read(tmp_path, rows)
    assert made.counts["answers"] == 9
    assert "score.memory=scores.memory" in notes(made)
    assert "score.elo=scores.elo" in notes(made)


def test_an_output_to_train_with_is_golden_beside_those_of_models(tmp_path: Path) -> None:
    rows = []
    for n in range(4):
        said = {"training_output": f"It is {n}.", "llama_output": f"I say {n}.", "llama_tuned_output": f"Well, {n}."}
        rows.append({"input": f"Is it {n}?", **said})
    made = read(tmp_path, rows)
    assert size(made)[1] == ("llama_output", "llama_tuned_output")
    assert first_row(made)["golden"].startswith("It is 0.")


def test_forecasts_of_numbers_answer_no_question(tmp_path: Path) -> None:
    rows = [{"team": f"Team of {n}", "player": f"Ann {n}", "predicted_points": n + 0.25} for n in range(6)]
    assert "answer=predicted_points" not in refused(tmp_path, rows)
