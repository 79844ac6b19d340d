"""Which columns are conditions by their values alone."""

import random
from itertools import product

import pytest

from karat.documents.batches import Table
from karat.documents.factors import factors_in, like_conditions

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
