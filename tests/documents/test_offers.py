"""What is offered, and taken, where the names of columns leave something open."""

from __future__ import annotations

import json

import pytest

from karat.documents.cells import golden, question
from karat.documents.columns import columns_of
from karat.documents.names import criterion_type, holds_scores, is_score_name
from karat.documents.results import scores_by_system, systems_in
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.rows import read_rows
from karat.documents.unfolding import unfolded
from karat.kinds.golden import Golden

ASKED = ["How high is the tower?", "Who wrote the old play?", "Where does the river end?", "When did it all begin?"]
SAID = ["It is ninety metres high.", "A poet of the court did.", "It ends in the cold sea.", "It began in the spring."]


def table(**columns):
    return [{name: values[at] for name, values in columns.items()} for at in range(4)]


def offers(door, rows, *roles, file="file.json"):
    """The roles of each reading, the likeliest first."""
    result = assign(columns_of(rows), door=door, file=file)
    readings = result.readings if isinstance(result, Undecided) else (result,)
    return [tuple(reading.roles.get(role, ()) for role in roles) for reading in readings]


def test_an_object_may_be_the_question_as_a_text_with_a_line_a_key():
    row = {"input": {"city": "Oslo", "rooms": 3, "extras": ["a", "b"], "note": ""}}
    assert question(row, ["input"]) == 'city: Oslo\nrooms: 3\nextras: ["a","b"]'
    rows = [{"input": {"city": "Oslo", "kind": "flat"}, "expected_output": text} for text in SAID]
    assert offers("dataset", rows, "question") == [(("input",),)]


def test_a_list_of_objects_is_golden_as_it_is_and_an_empty_one_expects_nothing(tmp_path):
    rows = [{"text": ASKED[0], "expected": [{"type": "a"}, {"type": "b"}]}, {"text": ASKED[1], "expected": []}]
    path = tmp_path / "g.json"
    path.write_text(json.dumps(rows))
    dataset = Golden(Golden.Options(several="all", roles={"question": "text", "golden": "expected"})).load(path)
    assert [turn.golden for sample in dataset.samples for turn in sample.turns] == [
        '[{"type":"a"},{"type":"b"}]',
        "[]",
    ]
    assert "'expected' is an empty list in 1 of 2 rows: nothing is expected there, as `[]` says" in dataset.warnings
    read = golden([{"type": "a"}, {"type": "b"}], path="expected", several="any")
    assert read is not None
    assert read.accepted == ('{"type":"a"}', '{"type":"b"}')


def test_where_an_answer_is_found_is_offered_as_golden_if_nothing_else_is():
    pages = ["a.pdf", "b.pdf", "c.pdf", "a.pdf"]
    found = offers("dataset", table(question=ASKED, source=pages), "question", "golden")
    assert found == [(("question",), ("source",)), (("question",), ())]


def test_a_list_under_a_demanding_name_may_be_golden_answer_or_criterion():
    found = offers("dataset", table(question=ASKED, expected_signs=[["a", "b"]] * 4), "golden", "criterion")
    assert found[:2] == [(("expected_signs",), ()), ((), ("expected_signs",))]


def test_letters_of_choices_are_golden_in_any_language():
    rows = table(Küsimus=ASKED, **{"Vastus A)": SAID, "Vastus B)": SAID[::-1], "Õige": ["a", "b ", "a", "b"]})
    (found,) = offers("dataset", rows, "question", "golden", "choices")
    assert found == (("Küsimus",), ("Õige",), ("Vastus A)", "Vastus B)"))


def test_texts_that_no_name_explains_are_offered_both_ways_and_together():
    rows = table(source=ASKED, reference=SAID, greedy=SAID, beam=SAID[::-1])
    found = offers("results", rows, "question", "golden", "answer")
    assert found[0] == (("source",), ("reference",), ("greedy", "beam"))
    assert (("source",), ("reference",), ("beam",)) in found
    labels = table(dv=["a", "b", "c", "d"], iv=["e", "f", "g", "h"])
    assert offers("results", labels, "question") == []


def test_a_text_is_golden_beside_those_of_several_systems_under_the_same_words():
    rows = table(document=ASKED, target_summary=SAID, generated_summary_a=SAID, generated_summary_bc=SAID[::-1])
    assert {found[1:] for found in offers("results", rows, "question", "golden", "answer")} == {
        (("target_summary",), ("generated_summary_a", "generated_summary_bc"))
    }


def test_a_teachers_model_answer_is_offered_as_golden():
    found = offers("dataset", table(question=ASKED, model_answer=SAID, marks=[1, 2, 1, 2]), "golden")
    assert found[0] == (("model_answer",),)


def test_systems_may_be_texts_in_one_object_and_their_scores_beside_them():
    rows: list[dict[str, object]] = [{"systems": {"rag": text, "plain": text[::-1]}} for text in SAID]
    assert [*systems_in(columns_of(rows), ["systems.rag", "systems.plain"])] == ["systems.rag", "systems.plain"]
    of_both = [{"models": {name: {"response": text, "score": 4} for name in ("xx", "yy")}} for text in SAID]
    columns = columns_of(of_both)
    systems = systems_in(columns, ["models.xx.response", "models.yy.response"])
    assert scores_by_system(systems, columns, file="x") == {
        "models.xx.response": {"score": "models.xx.score"},
        "models.yy.response": {"score": "models.yy.score"},
    }


def test_two_responses_and_the_winner_are_systems_and_no_choices():
    rows = table(prompt=ASKED, response_a=SAID, response_b=SAID[::-1], winner=["A", "B", "A", "B"])
    assert offers("results", rows, "answer", "choices") == [(("response_a", "response_b"), ())]


def test_the_label_beside_a_judges_score_is_not_golden():
    rows = [{"question": text, "response": text, "eval": {"tone": {"label": "good", "score": 1}}} for text in SAID]
    assert offers("results", rows, "golden", "answer") == [((), ("response",))]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("expect.contains", "icontains"),
        ("assert.not_contains", "not-icontains"),
        ("expected.regex", "regex"),
        ("expected.topic", None),
        ("contains", None),
    ],
)
def test_rules_inside_an_object_of_expectations_are_criteria(path, kind):
    assert criterion_type(path) == kind


def test_a_sort_of_fault_and_ratings_of_numbered_things_are_no_scores():
    assert [is_score_name(name) for name in ("bias", "bias_variable", "hallucination_type")] == [True, False, False]
    assert [holds_scores(path) for path in ("scores.tone", "reply.scores.1")] == [True, False]


def unfold(tmp_path, rows):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rows))
    return [row for _, row in unfolded(read_rows(path, results=True)).rows]


def test_lists_of_several_conditions_are_rows(tmp_path):
    rows = [{"item": "x", "plain": [{"choice": "A"}, {"choice": "B"}], "treated": [{"choice": "C", "of": "B"}]}]
    assert unfold(tmp_path, rows) == [
        {"item": "x", "condition": "plain", "choice": "A"},
        {"item": "x", "condition": "plain", "choice": "B"},
        {"item": "x", "condition": "treated", "choice": "C", "of": "B"},
    ]


def test_objects_written_in_cells_are_objects(tmp_path):
    rows = [{"inputs": '{"question": "q"}', "outputs": '{"answer": "a"}', "n": 1}]
    assert unfold(tmp_path, rows) == [{"inputs": {"question": "q"}, "outputs": {"answer": "a"}, "n": 1}]


def test_what_was_chosen_is_asked_about_beside_another_name_of_an_answer():
    rows = table(question=ASKED, choice=["A", "B", "A", "B"], baseline_choice=["B", "B", "A", "A"])
    assert offers("results", rows, "answer") == [(("choice",),), (("baseline_choice",),)]


def test_all_lists_of_a_file_are_read_on_demand(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps({name: [{"question": f"{name}?", "answer": name}] * 1 for name in ("ab", "cd")}))
    dataset = Golden(Golden.Options(split="*")).load(path)
    assert [sample.metadata["list"] for sample in dataset.samples] == ["ab", "cd"]


def test_parts_of_an_object_that_are_not_used_are_named():
    rows = [{"case": {"input": text, "expected": "yes", "name": "n"}} for text in ASKED]
    reading = assign(columns_of(rows), door="dataset")
    assert isinstance(reading, Reading)
    assert reading.unused == ("case.name",)
