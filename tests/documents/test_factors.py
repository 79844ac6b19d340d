"""Which columns are conditions by their values alone."""

import random
from itertools import product

import pytest

from karat.documents.batches import Table
from karat.documents.factors import Factor, factors_in, like_conditions, sentence

QUESTIONS = [f"{number}?" for number in range(8)]


def crossed(**columns):
    """A row for each question and combination of values."""
    for asked, *values in product(QUESTIONS, *columns.values()):
        yield {"question": asked, **dict(zip(columns, values, strict=True))}


def found(rows, *, conditions=()):
    table = Table(list(enumerate(rows, start=1)))
    return [factor.column for factor in factors_in(table, ["question"], conditions, used={"question"})]


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        ({"k": ["1", "3", "5"]}, ["k"]),
        ({"prompt_category": ["plain", "spaced", "mixed"]}, ["prompt_category"]),
        ({"k": ["1", "5"], "pressure": ["low", "high"]}, ["pressure", "k"]),
        ({"temperature": [0.0, 0.7], "trial": [1, 2, 3]}, ["temperature"]),
        ({"with_documents": [True, False]}, ["with_documents"]),
        ({"grupo": ["A", "B"]}, ["grupo"]),
        pytest.param({"level": [1, 2, 3]}, [], id="may count repetitions"),
        pytest.param({"batch": ["run_1", "run_2"]}, [], id="values are of repetitions"),
        pytest.param({"state": ["0123456789abcdef", "fedcba9876543210"]}, [], id="hashes"),
        pytest.param({"when": ["2026-01-02 10:00", "2026-01-03 10:00"]}, [], id="times"),
        pytest.param({"style": ["kind", "curt"], "again": [1, 2, 3]}, [], id="something else parts the rows"),
        *(
            pytest.param({name: ["a", "b"]}, [], id=name)
            for name in (
                *("run", "trial_number", "random_seed", "Attempt", "epoch", "iteration", "sample_id"),
                *("participant", "Participante", "rater", "judge_model", "annotator_name", "person"),
                *("answer", "prediction", "tone_score", "winner", "confidence", "rank"),
                *("timestamp", "run_date", "session_id", "file", "metric", "error"),
            )
        ),
    ],
)
def test_what_each_question_has_alike_is_a_condition(columns, taken):
    assert found(crossed(**columns)) == taken


def test_a_label_and_its_number_are_one_condition():
    rows = [row | {"level_number": str(len(row["level"]))} for row in crossed(level=["low", "high"])]
    assert found(rows) == ["level"]


def test_a_factor_beside_a_known_condition_stays_one():
    rows = [*crossed(model=["m", "n"], pressure=["low", "high"])]
    assert found(rows, conditions=["model"]) == ["pressure"]
    assert found(rows, conditions=["pressure"]) == ["model"]


def test_a_property_of_the_question_is_none():
    rows = [row | {"domain": row["question"] < "4?"} for row in crossed(run=["1", "2"])]
    assert found(rows) == []


def test_a_few_missing_rows_do_not_matter():
    rows = [*crossed(style=["kind", "curt", "plain"])]
    assert found(rows[:-2]) == ["style"]
    assert found(rows[:10]) == []  # four questions show nothing


def test_what_is_measured_is_rarely_alike_for_all_questions():
    rng = random.Random(1)
    taken = 0
    for _ in range(200):
        rows = [row | {"looks": rng.choice(["good", "bad"])} for row in crossed(run=["1", "2"])]
        taken += bool(found(rows))
    assert taken <= 4  # one of 256 is expected


def test_persons_are_never_proposed_as_conditions():
    table = Table(list(enumerate(crossed(Participante=["Ana", "Luis"]), start=1)))
    hint = like_conditions(table, ["question"], used={"question"})
    assert "--map id=Participante" in hint
    assert "condition=" not in hint


STYLED = [*crossed(style=["kind", "curt"])]


def hint(rows, *, columns=("question",), used=("question",)):
    return like_conditions(Table(list(enumerate(rows, start=1))), columns, used=used)


def test_a_column_that_each_question_has_alike_is_named():
    rows = [*crossed(style=["kind", "curt"])]
    assert hint(rows) == (
        "each question has rows with 'curt', 'kind' in 'style': if they are conditions, --map condition=style"
    )
    spaced = [{"question": row["question"], "my style": row["style"]} for row in rows]
    assert hint(spaced).endswith("--map condition='my style'")
    assert hint(rows, used=("question", "style")) is None
    assert hint(rows[::2]) is None  # one row a question
    assert hint(rows[:2]) is None  # one question


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        pytest.param([*crossed(k=["2", "7"])], True, id="chosen numbers"),
        pytest.param([*crossed(k=["1", "2"])], False, id="running numbers"),
        pytest.param([*crossed(level=["1.5", "2.5"])], True, id="other numbers"),
        pytest.param([*crossed(style=["kind", "kind"])], False, id="one value"),
        pytest.param([*crossed(style=["kind", "kind", "curt"])], False, id="one value more often than another"),
        pytest.param([*crossed(style=["kind", "kind", "curt", "curt"])], True, id="each value twice"),
        pytest.param(STYLED[:-1], True, id="nearly all questions have all rows"),
        pytest.param([*STYLED[:12], {"question": "9?", "style": "kind"}], True, id="six of seven"),
        pytest.param([*STYLED[:6], {"question": "9?", "style": "kind"}], False, id="three of four"),
        pytest.param(
            [row | ({"style": "odd"} if row["question"] < "2?" else {}) for row in STYLED],
            False,
            id="two of eight have other values",
        ),
        pytest.param(
            [row | ({"style": "odd"} if row["question"] == "7?" else {}) for row in STYLED],
            True,
            id="one of eight has other values",
        ),
    ],
)
def test_when_a_column_is_like_conditions(rows, named):
    assert (hint(rows) is not None) is named


def test_a_sentence_says_what_was_taken_for_conditions():
    table = Table(list(enumerate(crossed(style=["kind", "curt"], model=["m", "n"]), start=1)))
    factors = factors_in(table, ["question"], ["model"], used=set())
    assert [(factor.column, factor.values) for factor in factors] == [("style", ("kind", "curt"))]
    assert sentence(["model", "style"], factors) == (
        "conditions: model, style (kind, curt), as nearly each question has a row with each value; if these are "
        "repetitions, --map repetition=style"
    )
    assert str(Factor(column="k", values=("x" * 30, *"abcdef"))) == f"k ({'x' * 23}…, a, b, c, d, e and 1 more)"


def test_a_factor_has_few_values_and_is_in_each_question():
    few, many = ([f"{at} pieces" for at in range(number)] for number in (20, 21))
    assert found(crossed(size=few)) == ["size"]
    assert found(crossed(size=many)) == []
    assert found([row | {"column 2": row.pop("style")} for row in crossed(style=["kind", "curt"])]) == []
    rows = [*crossed(style=["kind", "curt"])]
    assert found(rows[:10]) == ["style"]  # five questions
    assert found([*rows, *rows[:1]]) == []
    twenty = [row | {"question": f"{part} {row['question']}"} for part in range(3) for row in rows]
    assert found([*twenty, twenty[0], twenty[1]]) == ["style"]
    assert found([*twenty, *twenty[:3]]) == []
