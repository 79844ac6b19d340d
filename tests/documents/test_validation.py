"""What is wrong in a tree of values, in words: one sentence a place, whatever a model is made of."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from karat.documents.validation import Problem, explain, refusal, shown, validated


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, ge=1, le=9)
    path: str | None = None


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, description="of the run")
    share: float = Field(default=0.5, gt=0, lt=1, allow_inf_nan=False)
    mode: Literal["fast", "slow"] = "fast"
    inner: Annotated[Inner | None, Field(description="more")] = None
    many: dict[str, Inner] = {}
    rows: list[Inner] = Field(default=[], max_length=2)
    words: dict[str, int] = Field(default={}, max_length=1)
    example: int | None = Field(default=None, examples=[3])
    steps: list[str] | int = 1


def problems(**values: object) -> list[tuple[tuple[str | int, ...], str]]:
    with pytest.raises(ValidationError) as error:
        Model.model_validate(values)
    return [(problem.place, problem.message) for problem in explain(error.value, values, Model)]


@pytest.mark.parametrize(
    ("values", "place", "message"),
    [
        ({}, ("name",), "is required: of the run"),
        ({"name": ""}, ("name",), "must not be empty"),
        ({"name": 3}, ("name",), "must be text, got 3; put it in quotes"),
        ({"name": ["x"]}, ("name",), "must be text, got a list"),
        ({"share": 1}, ("share",), "must be less than 1, got 1"),
        ({"share": 0}, ("share",), "must be more than 0, got 0"),
        ({"share": float("inf")}, ("share",), "must be a finite number, got inf"),
        ({"share": "x"}, ("share",), "must be a number, got 'x'"),
        ({"mode": "fasst"}, ("mode",), "must be 'fast' or 'slow', got 'fasst' (did you mean 'fast'?)"),
        ({"example": "x"}, ("example",), "must be a whole number, got 'x'; write e.g. `example: 3`"),
        ({"inner": {"cuont": 3}}, ("inner", "cuont"), "no such key (did you mean 'count'?)"),
        ({"inner": {"count": 0}}, ("inner", "count"), "must be at least 1, got 0"),
        ({"inner": 3}, ("inner",), "must be a mapping, got 3"),
        ({"many": {"a": {"count": 10}}}, ("many", "a", "count"), "must be at most 9, got 10"),
        ({"many": {"a": {"pth": "x"}}}, ("many", "a", "pth"), "no such key (did you mean 'path'?)"),
        ({"rows": [{}, {"pth": "x"}]}, ("rows", 1, "pth"), "no such key (did you mean 'path'?)"),
        ({"rows": [{}] * 3}, ("rows",), "must be a list of at most 2, got a list"),
        ({"words": {"a": 1, "b": 2}}, ("words",), "at most 1 entries, got 2"),
        ({"steps": {}}, ("steps",), "must be a list or a whole number, got a mapping"),
    ],
)
def test_each_fault_is_a_sentence_at_its_place(values, place, message):
    given = values if "name" in values or not values else {"name": "x", **values}
    assert problems(**given) == [(place, message)]


def test_a_required_key_that_is_misspelt_is_one_problem():
    assert problems(nmae="x") == [(("nmae",), "no such key (did you mean 'name'?)")]


def test_problems_that_were_found_before_keep_their_words_and_places():
    found = [Problem(("a", 0), "is odd"), Problem(("b",), "no such key", unknown_key=True)]
    assert explain(refusal(found), {"a": [1]}, Model) == found
    with pytest.raises(ValidationError) as error:
        validated(Model, {"name": ""})
    assert explain(error.value, {}, Model) == [Problem(("name",), "must not be empty")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        ("x" * 60, f"'{'x' * 60}'"),
        ("x" * 61, f"'{'x' * 57}…'"),
        (0.5, "0.5"),
        (10**70, "1" + "0" * 59),
        ({}, "a mapping"),
        ((), "a list"),
        ({1}, "a set"),
    ],
)
def test_a_value_is_shown_as_a_file_has_it(value, text):
    assert shown(value) == text
