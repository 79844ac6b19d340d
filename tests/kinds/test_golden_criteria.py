"""Columns that say what must hold of an answer, and assertions of promptfoo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.errors import BadDataset
from karat.kinds import Dataset
from karat.kinds.golden import Golden
from karat.kinds.golden.criteria import of_assertion, of_expected, read
from karat.records import Criterion


def load(path: Path, rows: list[dict[str, Any]], **options: Any) -> Dataset:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Golden(Golden.Options(**options)).load(path)


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("criteria", "Says 30 days.", [Criterion(text="Says 30 days.")]),
        ("criteria", "https://a.example/b", [Criterion(text="https://a.example/b", type="url")]),
        ("criteria", "- first\n- second", [Criterion(text="first"), Criterion(text="second")]),
        ("criteria", "1. first\n2) second", [Criterion(text="first"), Criterion(text="second")]),
        ("criteria", "one\nof two lines", [Criterion(text="one\nof two lines")]),
        ("criteria", '["a", {"text": "b", "weight": 2}]', [Criterion(text="a"), Criterion(text="b", weight=2.0)]),
        ("criteria", {"text": 0.9999}, [Criterion(text="0.9999")]),
        ("criteria", {"text": 3.0}, [Criterion(text="3")]),
        ("criteria", "", []),
        ("criteria", None, []),
        ("criteria", ["", "a", None], [Criterion(text="a")]),
        ("Expected Facts", ["a"], [Criterion(text="a")]),
        ("must_mention", "a; b", [Criterion(text="a", type="icontains"), Criterion(text="b", type="icontains")]),
        ("must_not_mention", ["tea"], [Criterion(text="tea", type="not-icontains")]),
        ("must_mention", "a b|c", [Criterion(text="a b", type="icontains"), Criterion(text="c", type="icontains")]),
        (
            "must_mention",
            ["a b|c", "d"],
            [Criterion(text="a b\nc", type="icontains-any"), Criterion(text="d", type="icontains")],
        ),
        ("must_not_mention", ["tea|coffee"], [Criterion(text="tea\ncoffee", type="not-icontains-any")]),
        ("deve_conter", ["tea"], [Criterion(text="tea", type="icontains")]),
        ("nao_deve_conter", ["tea"], [Criterion(text="tea", type="not-icontains")]),
        ("no_debe_contener", ["tea"], [Criterion(text="tea", type="not-icontains")]),
        ("contamination_terms", ["tea"], [Criterion(text="tea", type="not-icontains")]),
        (
            "unexpected_items",
            ["tea", "offers a cup of tea"],
            [Criterion(text="tea", type="not-icontains"), Criterion(text="offers a cup of tea", type="not-judge")],
        ),
        ("criteria", ["a|b"], [Criterion(text="a|b")]),
        ("gold_url", "a.example/b", [Criterion(text="a.example/b", type="url")]),
        (
            "criteria",
            [{"criterion": "stays calm", "points": -5, "tags": ["x"]}, {"assertion": "a", "required": True}],
            [Criterion(text="stays calm", weight=-5.0), Criterion(text="a", dealbreaker=True)],
        ),
        (
            "criteria",
            [{"type": "contains-any", "value": ["a b", "c"]}, {"type": "not-regex", "value": "^x+"}],
            [Criterion(text="a b\nc", type="contains-any"), Criterion(text="^x+", type="not-regex")],
        ),
        ("criteria", {"type": "latency", "threshold": 5000}, [Criterion(text="5", type="max-seconds")]),
        ("criteria", {"type": "is-json"}, [Criterion(text="", type="is-json")]),
        ("criteria", {"refund": {"low": 20, "currency": "EUR"}, "polite": True, "late": None}, [
            Criterion(text="refund: low: 20; currency: EUR"), Criterion(text="polite: yes"),
        ]),
        ("expected", {"tool": "search", "must_not_mention": ["tea"]}, [
            Criterion(text="search", type="tool"), Criterion(text="tea", type="not-icontains"),
        ]),
        ("criteria", {"type": "words", "any_of": ["tea", "cake"], "all_of": ["jam"], "none_of": ["salt"]}, [
            Criterion(text="tea\ncake", type="icontains-any"), Criterion(text="jam", type="icontains"),
            Criterion(text="salt", type="not-icontains"),
        ]),
        ("criteria", {"any_of": [{"colour": "red", "size": 3}, {"colour": "blue"}]}, [
            Criterion(text="one of these: colour: red; size: 3; or colour: blue"),
        ]),
        ("criteria", [{"name": "sum", "value": 5.0, "tolerance": 0.01, "weight": 2}], [
            Criterion(text="name: sum; value: 5.0; tolerance: 0.01", weight=2.0),
        ]),
        ("criteria", ["It is free.", ["It is red.", "It is blue."]], [
            Criterion(text="It is free."), Criterion(text="one of these: It is red.; or It is blue."),
        ]),
        ("expected_total", 0.9999, [Criterion(text="expected_total: 0.9999")]),
        ("must_mention", [2.03, 7], [Criterion(text="2.03", type="icontains"), Criterion(text="7", type="icontains")]),
        ("must_mention", "['tea', 'cake']", [
            Criterion(text="tea", type="icontains"), Criterion(text="cake", type="icontains"),
        ]),
        ("must_mention", "tea, 1,000 cakes", [
            Criterion(text="tea", type="icontains"), Criterion(text="1,000 cakes", type="icontains"),
        ]),
        ("must_mention", "tea, which is free for all who come in time", [
            Criterion(text="tea, which is free for all who come in time", type="icontains"),
        ]),
        ("expected_tools", "find,send", [Criterion(text="find", type="tool"), Criterion(text="send", type="tool")]),
        ("expected_tools", ["find", ["send", "post"]], [
            Criterion(text="find", type="tool"), Criterion(text="send\npost", type="tool"),
        ]),
        ("expected_tool_sequence", [{"tool": "find", "args": {"a": 1}}], [Criterion(text="find", type="tool")]),
    ],
)  # fmt: skip
def test_a_cell_states_criteria(column: str, cell: object, expected: list[Criterion]) -> None:
    assert read(cell, column=column) == (tuple(expected), [])


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ([{"type": "regex", "value": "("}, "a"], "'criteria'[0] is not a regular expression: missing ), unterminated"),
        ({"weight": 2}, "'criteria' has no text (`judge` needs one)"),
        ({"text": "a", "type": "contain"}, "'criteria' has the unknown type 'contain' (did you mean 'contains'?)"),
        ({"text": "a", "weight": "heavy"}, "'criteria' has the weight 'heavy', expected a number from -1e6 to 1e6"),
        ({"text": "a", "required": "yes"}, "'criteria' has `dealbreaker` 'yes', expected true or false"),
        ({"text": "(", "type": "regex"}, "'criteria' is not a regular expression: missing ), unterminated"),
        ({"text": "soon", "type": "max-seconds"}, "'criteria' must be a number of at least 0, got 'soon'"),
        ({"text": "[1]", "type": "is-json"}, "'criteria' is not a JSON schema: must be an object"),
    ],
)
def test_a_fault_of_a_cell_names_its_place(cell: object, message: str) -> None:
    (fault,) = read(cell)[1]
    assert fault.startswith(message)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("contains: three", Criterion(text="three", type="contains")),
        ("yes", Criterion(text="yes", type="equals")),
        ("note: it is free", Criterion(text="note: it is free", type="equals")),
        ("not-icontains:free", Criterion(text="free", type="not-icontains")),
        ("icontains-all: free, no charge", Criterion(text="free\nno charge", type="icontains-all")),
        ("grade: is polite", Criterion(text="is polite")),
        ("llm-rubric: is polite", Criterion(text="is polite")),
        ("is-json", Criterion(text="", type="is-json")),
        ("latency(500)", Criterion(text="0.5", type="max-seconds")),
        ("similar(0.8): a cat", Criterion(text="The answer means the same as: a cat")),
        ("starts-with: A", Criterion(text="A", type="starts-with")),
    ],
)
def test_expected_of_a_file_of_promptfoo_is_a_criterion(cell: str, expected: Criterion) -> None:
    assert of_expected(cell) == ([expected], None)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("fn: output.length", "fn: a program"),
        ("python: len(output)", "python: a program"),
        ("levenshtein(5): abc", "levenshtein"),
        ("regex: (", "regex: is not a regular expression: missing ), unterminated subpattern at position 0"),
    ],
)
def test_expected_without_an_equivalent_says_why(cell: str, why: str) -> None:
    assert of_expected(cell) == ([], why)


def test_a_set_of_assertions_shares_its_weight() -> None:
    members = [{"type": "contains", "value": "a"}, {"type": "icontains", "value": "b", "weight": 3}]
    assert of_assertion({"type": "assert-set", "weight": 2, "assert": members}) == (
        [Criterion(text="a", type="contains"), Criterion(text="b", type="icontains", weight=3.0)],
        None,
    )
    assert of_assertion({"type": "assert-set", "threshold": 0.5, "assert": members})[0] == []
    assert of_assertion({"type": "javascript", "value": "true"}) == ([], "javascript")


def test_columns_with_usual_names_are_criteria_and_no_metadata(tmp_path: Path) -> None:
    rows = [
        {"question": "q", "answer": "g", "must_mention": ["tea"], "expected_facts": "Says so.", "topic": "t"},
        {"question": "r", "must_mention": ["cake"]},
    ]
    dataset = load(tmp_path / "a.jsonl", rows)
    facts, tea, cake = (
        Criterion(text="Says so."),
        Criterion(text="tea", type="icontains"),
        Criterion(text="cake", type="icontains"),
    )
    assert [(one.turns[0].golden, one.criteria, one.metadata) for one in dataset] == [
        ("g", (tea, facts), {"topic": "t"}),
        (None, (cake,), {}),
    ]
    assert dataset.understood is not None
    assert [part.columns for part in dataset.understood.parts if part.role == "criterion"] == [
        ("must_mention",),
        ("expected_facts",),
    ]


def test_named_columns_alone_are_taken(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "g", "must_mention": "tea", "holds": "Says so."}]
    (sample,) = load(tmp_path / "a.jsonl", rows, criteria_key="holds")
    assert (sample.criteria, sample.metadata) == ((Criterion(text="Says so."),), {"must_mention": "tea"})
    (sample,) = load(tmp_path / "a.jsonl", rows, criteria_key=[])
    assert (sample.criteria, sample.metadata) == ((), {"must_mention": "tea", "holds": "Says so."})


def test_every_fault_names_its_row(tmp_path: Path) -> None:
    rows = [
        {"question": "q", "criteria": [{"points": 2}]},
        {"question": "r", "criteria": []},
        {"question": "s", "criteria": ["a", {"type": "is-xml"}]},
    ]
    with pytest.raises(BadDataset) as raised:
        load(tmp_path / "a.jsonl", rows, criteria_key="criteria")
    assert [(fault.place, fault.message) for fault in raised.value.faults] == [
        ("line 1", "'criteria' has no text (`judge` needs one)"),
        ("line 3", "'criteria'[1] has the unknown type 'is-xml'"),
    ]
    with pytest.raises(BadDataset, match=r"no line has the key 'hold' \(did you mean 'holds'"):
        load(tmp_path / "b.jsonl", [{"question": "q", "answer": "g", "holds": "x"}], criteria_key="hold")


def test_criteria_are_part_of_what_a_sample_is(tmp_path: Path) -> None:
    row = {"question": "q", "answer": "g"}
    (plain,) = load(tmp_path / "a.jsonl", [row])
    (stated,) = load(tmp_path / "b.jsonl", [row | {"criteria": "Says so."}])
    (heavier,) = load(tmp_path / "c.jsonl", [row | {"criteria": {"text": "Says so.", "weight": 2}}])
    assert len({plain.digest, stated.digest, heavier.digest}) == 3


def test_what_must_and_must_not_be_contained_is_shown_as_such(tmp_path):
    row = {"question": "Q?", "expected_answer": "A", "deve_conter": ["a", "b c"], "nao_deve_conter": ["x", "y z"]}
    dataset = load(tmp_path / "q.jsonl", [row] * 2, repeated=True)
    said = str(dataset.understood)
    assert "criterion  all of: a; b c  [deve_conter]" in said
    assert "criterion  none of: x; y z  [nao_deve_conter]" in said


def test_what_must_not_be_said_is_never_offered_as_the_golden_answer(tmp_path):
    row = {"question": "Which?", "expected_items": ["a"], "unexpected_items": ["b"]}
    with pytest.raises(BadDataset) as bad:
        load(tmp_path / "q.jsonl", [row, {**row, "question": "What?"}])
    assert "golden: expected_items, criterion: unexpected_items" in str(bad.value)
    assert "golden: unexpected_items" not in str(bad.value)
    assert "unexpected_items: none of: ['b']" in str(bad.value)


def test_an_empty_cell_of_tools_is_said_and_may_forbid_them(tmp_path: Path) -> None:
    rows = [{"question": "q", "expected_tools": ["find"]}, {"question": "r", "expected_tools": None}]
    silent = load(tmp_path / "a.jsonl", rows)
    assert "'expected_tools' is empty in 1 of 2 rows, and says nothing there" in silent.warnings[0]
    forbidding = load(tmp_path / "a.jsonl", rows, empty="no_tool")
    assert [one.criteria for one in forbidding] == [
        (Criterion(text="find", type="tool"),),
        (Criterion(text="*", type="not-tool"),),
    ]


def test_spellings_in_lists_inside_lists_are_terms_in_all_rows(tmp_path: Path) -> None:
    rows = [{"question": "q", "must": ["tea", ["2", "two"]]}, {"question": "r", "must": ["cake"]}]
    dataset = load(tmp_path / "a.jsonl", rows, roles={"golden": None, "criterion": "must"})
    assert [one.criteria for one in dataset] == [
        (Criterion(text="tea", type="icontains"), Criterion(text="2\ntwo", type="icontains-any")),
        (Criterion(text="cake", type="icontains"),),
    ]


def test_criteria_that_the_user_names_and_no_scorer_scores_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "a", "rules": "Is polite."}))
    options = Golden.Options(roles={"golden": "answer", "criterion": "rules"})
    dataset = Golden(options).without_criteria().load(path)
    assert dataset.warnings == ("'rules' is taken as criteria, which no scorer scores: name `criteria`",)
