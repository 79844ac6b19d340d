"""What a column's name alone says about its role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.documents.columns import columns_of
from karat.documents.names import (
    ADDED,
    Meaning,
    any_speaker_and_text,
    criterion_type,
    ends_with_reply,
    holds_scores,
    is_choice_stem,
    is_gold,
    is_measure,
    is_score_name,
    is_score_of_bad,
    lower_is_better,
    may_be_factor,
    meanings,
    names_persons,
    repeats,
    side_of,
    speaker_and_text,
    sure_roles,
    with_role,
    words_of,
)
from karat.documents.roles import Reading, assign


@pytest.mark.parametrize("name", ["expected_output", "expectedOutput", "Expected Output", "EXPECTED-output"])
def test_a_name_is_its_words_however_it_is_written(name):
    assert words_of(name) == ("expected", "output")


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("question", "question user_query customer_message Prompt testInput pergunta 问题"),
        ("golden", "reference_answer goldSQL ground_truth verified_ground_truth ideal resposta_esperada answer_orig"),
        ("answer", "model_answer generated_sql predictedIntent rag_agent_answer actual_output top1_actual"),
        (
            "criterion",
            "expected_sources must_mention gold_url forbiddenTools __expected2 relevant_ids tools_expected",
        ),
        ("score", "faithfulness correctness_score gpt_groundedness recall@5 is_correct judge_accuracy"),
    ],
)
def test_names_are_composed_of_words_that_tools_use(role, names):
    for name in names.split():
        assert role in {meaning.role for meaning in meanings(name)}, name


@pytest.mark.parametrize(
    "name",
    [
        "answer_start",
        "answer_not_matching_behavior",
        "difficulty_score",
        "confidence",
        "topic_id",
        "weather",
        "expected_unit",
    ],
)
def test_names_that_only_sound_alike_say_nothing_of_questions_answers_or_scores(name):
    assert {meaning.role for meaning in meanings(name)} & {
        "question",
        "golden",
        "answer",
        "score",
        "criterion",
    } == set()


@pytest.mark.parametrize("name", ["answer", "output", "label", "response", "completion", "summary", "sql"])
def test_names_that_tools_use_for_both_are_weak(name):
    assert {meaning.weak for meaning in meanings(name) if meaning.role == "golden"} == {True}


def test_less_is_better_by_a_closed_list_only():
    names = ("latency_ms", "hallucination", "faithfulness", "length_ratio")
    assert [lower_is_better(name) for name in names] == [True, True, False, None]


def test_a_message_says_who_speaks_and_what():
    assert speaker_and_text({"role": "user", "content": "Hi"}) == ("role", "content")
    assert speaker_and_text({"sender": "customer", "text": "Hi"}) == ("sender", "text")
    assert speaker_and_text({"type": "ip", "value": "1.2.3.4"}) is None


SURE = ("question", "context", "id", "reason", "error", "latency", "cost", *ADDED.roles)


def test_the_spellings_of_other_tools_are_known(shared_data: Path):
    roles = json.loads((shared_data / "roles.json").read_text(encoding="utf-8"))
    unknown = []
    for role in SURE:
        for entry in roles[role]:
            for name in entry["written"]:
                known = {meaning.role for meaning in meanings(name)}
                plain = name.replace("_", "").replace(" ", "").isalnum()
                if plain and not entry["ambiguous_with"] and role not in known:
                    unknown.append((role, name))
    assert unknown == []


@pytest.mark.parametrize(("values", "golden"), [((True, False), None), ((1, 0), None), (("x", "y"), "correct")])
def test_a_column_correct_of_yes_and_no_is_a_score_and_no_golden_answer(values, golden):
    rows = [{"question": f"{n}?", "pred_label": "x", "correct": value} for n, value in enumerate(values)]
    reading = assign(columns_of(rows), door="results", file="rows.csv")
    assert isinstance(reading, Reading)
    assert (reading.one("golden"), reading.one("answer")) == (golden, "pred_label")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("expect_contains", "icontains"),
        ("good_answer_contains", "icontains"),
        ("reply_must_include", "icontains"),
        ("forbid_contains", "not-icontains"),
        ("must_not_contain", "not-icontains"),
        ("contains", None),
    ],
)
def test_what_an_answer_contains_is_a_rule(name, kind):
    assert criterion_type(name) == kind
    assert (Meaning("criterion") in meanings(name)) == (kind is not None)


def test_a_rule_may_be_that_of_a_few_questions():
    rows = [{"question": f"Who {n}?", "expected_facts": ["I"], "must_not_contain": None} for n in range(9)]
    rows[4]["must_not_contain"] = "me"
    result = assign(columns_of(rows), door="dataset")
    assert isinstance(result, Reading)
    assert result.roles["criterion"] == ("expected_facts", "must_not_contain")


@pytest.mark.parametrize(
    ("role", "weak", "names"),
    [
        ("question", False, "input.value attributes.input.value user_message customer_query visitor_prompt query"),
        ("question", True, "text search_query question_en my_prompt"),
        ("golden", False, "reference_text final_correct_answer original_answer true_label gold gold_text"),
        ("golden", True, "short_answer answer label sql final_answer"),
        ("answer", False, "output.value model_text generated_summary predicted_mood label_predicted"),
        ("criterion", False, "expected_mood must_be_short mandatory_words relevant_urls expected_mood_id gold_doc_ids"),
        ("id", False, "id question_id uid"),
        ("id", True, "ticket_id order_id"),
    ],
)  # fmt: skip
def test_what_names_mean_surely_and_perhaps(role, weak, names):
    for name in names.split():
        if (role, name) != ("golden", "raw_response"):
            assert Meaning(role, weak) in meanings(name), name


@pytest.mark.parametrize(
    "name",
    [
        *("not_expected", "wrong_answer_text", "input.value.x", "value_input", "question_id_number", "prompt_type"),
        *("expected_model_tone", "expected_answer_length", "answer_of_the_model_in_words", "system_prompt_x", "mood"),
        *("order_of_id", "id_order_x", "text_of_mood", "expected_score", "goal_currency"),
    ],
)
def test_names_that_mean_no_question_golden_answer_or_answer_surely(name):
    assert not {Meaning("question"), Meaning("golden"), Meaning("answer")} & {*meanings(name)}


def test_roles_are_listed_by_role_and_the_usual_names_first():
    columns = ["notes", "qid", "x.finish_reason", "id", "stop_reason", "tone", "finishReason"]
    assert with_role(columns, "id") == ["id", "qid"]
    assert with_role(columns, "stop_reason", "id") == ["stop_reason", "x.finish_reason", "finishReason", "id", "qid"]
    assert with_role(["answer"], "golden") == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("judge", "criteria rubric acceptance_criteria expected_facts mustPoints expected_behavior"),
        ("url", "gold_url goldUrls expected_url must_urls"),
        ("tool", "expected_tools tools_expected required_tool x.must_tool"),
        ("not-tool", "forbidden_tools must_not_tool"),
        ("icontains", "must_mention expected_keywords should_include required_phrase answer_contains"),
        ("not-icontains", "forbidden_words_contain must_not_include forbid_terms"),
        (None, "keywords test_list tool tools mention expected_mood expected contains topic"),
    ],
)
def test_what_a_text_under_a_name_must_hold(kind, names):
    assert {name: criterion_type(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


def test_names_of_scores_hold_for_ranks_scales_and_faults():
    scores = "f1 hit@5 map@10 recall_at_3 tone_1_5 tone_0_100 quality_1_10 rater_2 score_2 answer_quality judge_tone "
    scores += "scoring_score num_contradictions is_toxic em word_em hallucination_rate tone_match winner"
    others = "hits top_score best_similarity tone_5_1 tone_2_5 latency_1_5 risk_0_10 quality rater confidence_score "
    others += "judge_of_the_tone_here num_tokens all_words_em difficulty threshold reference_score"
    assert [name for name in scores.split() if not is_score_name(name)] == []
    assert [name for name in others.split() if is_score_name(name)] == []


def test_numbers_in_an_object_of_scores_are_scores_unless_they_measure():
    held = "scores.tone x.metrics.tone metrics.tone.score judge.tone.value evaluation.quality score.value"
    others = "tone tone.score metrics.latency scores.risk x.scores.y.z metrics.count notes.tone"
    assert [name for name in held.split() if not holds_scores(name)] == []
    assert [name for name in others.split() if holds_scores(name)] == []


def test_whether_less_is_better_is_told_by_closed_lists():
    assert [lower_is_better(name) for name in ("num_errors", "x.loss", "error_free", "f1", "tone", "bias_score")] == [
        *(True, True, False, False, False, True),
    ]


def test_a_word_that_denies_a_quality_is_bad_and_an_unknown_one_says_nothing():
    names = ("incompleteness", "is_unsafe", "misalignment", "instruction", "sentiment_score", "llm_score", "hit_at_5")
    assert [lower_is_better(name) for name in names] == [True, True, True, None, None, False, False]


def test_more_of_a_score_for_something_bad_may_be_better():
    names = ("latency_score", "hallucinations_score", "hallucination_rate", "safety_score")
    assert [is_score_of_bad(name) for name in names] == [True, True, False, False]


def test_a_negated_name_is_turned_round_and_tokens_of_a_judge_are_no_scores():
    assert [lower_is_better(name) for name in ("non_compliant", "non_hallucinated")] == [True, False]
    assert [holds_scores(name) for name in ("judge_tokens.input", "judge.tone")] == [False, True]
    assert [is_score_name(name) for name in ("cache_hit", "is_hit")] == [False, True]


def test_how_well_was_retrieved_is_a_score_and_how_similar_is_none():
    names = "retrieval_hit search_recall retrieval_score search_similarity"
    assert [is_score_name(name) for name in names.split()] == [True, True, False, False]


def test_names_of_persons_repetitions_measures_and_factors():
    assert [names_persons(name) for name in ("rater_1", "x.Participants", "personName", "tone", "judge")] == [
        *(True, True, True, False, True),
    ]
    assert [repeats(name) for name in ("run_2", "Seed", "sample", "prune", "tone")] == [True, True, True, False, False]
    assert [is_measure(words) for words in (["latency"], {"tone", "ms"}, ["tone"])] == [True, True, False]
    assert [is_gold(words) for words in (["gold"], {"the", "reference"}, ["tone"])] == [True, True, False]
    assert [is_choice_stem(stem) for stem in ("Choice", "option_", "A", "tone")] == [True, True, True, False]
    factors = "style temperature assistant x.pressure agent"
    others = "seed rater page answer score x.started language_id rank tokens"
    assert [name for name in factors.split() if not may_be_factor(name)] == []
    assert [name for name in others.split() if may_be_factor(name)] == []


def test_who_speaks_is_known_by_the_last_word():
    assert [side_of(name) for name in (" User ", "user 12", "the happy customer", "Human#3")] == ["user"] * 4
    assert [side_of(name) for name in ("AI", "support agent", "bot-2", "客服")] == ["assistant"] * 4
    assert [side_of(name) for name in ("", "Ann", "a very happy customer", "user of it", "user 1234", "system")] == [
        None
    ] * 6


def test_a_chat_ends_with_a_reply_after_others():
    user, reply = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}
    assert ends_with_reply([user, reply])
    for chat in (
        [reply],
        [],
        [reply, user],
        [user, {"role": "tool", "content": "x"}],
        [user, "So."],
        [user, {"role": "bot"}],
    ):
        assert not ends_with_reply(chat)


@pytest.mark.parametrize(
    ("message", "keys", "anybody"),
    [
        ({"role": "user", "content": "Hi"}, ("role", "content"), ("role", "content")),
        ({"from": "Ann", "text": "Hi"}, None, ("from", "text")),
        ({"from": "system", "value": "Hi"}, ("from", "value"), ("from", "value")),
        ({"role": "customer 3", "message": "Hi"}, ("role", "message"), ("role", "message")),
        ({"type": "user", "text": "Hi"}, ("type", "text"), None),
        ({"name": "Ann", "text": "Hi"}, None, None),
        ({"role": "user"}, None, None),
        ({"role": 5, "sender": "bot", "body": "Hi"}, ("sender", "body"), ("sender", "body")),
        ({"from": "x" * 40, "text": "Hi"}, None, ("from", "text")),
        ({"from": "x" * 41, "text": "Hi"}, None, None),
        ({"from": " ", "text": "Hi"}, None, None),
        ("Hi", None, None),
    ],
)
def test_the_keys_of_a_message(message, keys, anybody):
    assert speaker_and_text(message) == keys
    assert any_speaker_and_text(message) == anybody


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("question", "提示词 文案 質問文 입력 프롬프트 entrada Eingabe entrée промпт masukan girdi"),
        ("golden", "标准答案 真实标签 金标准 正解 모범답안 respuesta_esperada gabarito Musterantwort réponse_attendue"),
        (
            "answer",
            "模型回答 生成回答 実際の回答 실제답변 respuesta_generada réponse_générée ответ_модели jawaban_model",
        ),
        ("score", "完全匹配 人工评分 総合評価 평가점수 puntuación pontuação acerto Bewertung évaluation балл nilai"),
        ("model", "模型名称 モデル名 모델명 nombre_modelo nome_modelo Modellname nom_modèle model_adı nama_model"),
        ("condition", "方法 手法 방법 método estratégia Methode stratégie метод metode yöntem 实验条件 配置"),
    ],
)
def test_plain_names_of_other_languages_are_known(role, names):
    unknown = [name for name in names.split() if role not in {meaning.role for meaning in meanings(name)}]
    assert not unknown


def test_a_flag_is_raised_for_something_bad_unless_its_name_says_otherwise():
    bad = "flag safety_flag flagged content_flag red_flag hallucination_flag is_unsafe failed violated"
    assert [name for name in bad.split() if lower_is_better(name) is not True] == []
    good = "correct_flag validity_flag valid_flag safe_flag success_flag correctness_flag flag_score"
    assert [name for name in good.split() if lower_is_better(name) is not False] == []


def test_training_texts_and_generations_that_are_gold_are_golden_answers():
    assert [sure_roles(name) for name in ("training_output", "generation_gt", "training_steps")] == [
        *({"golden"}, {"golden"}, set()),
    ]
