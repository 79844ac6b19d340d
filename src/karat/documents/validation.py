"""Turns pydantic's errors into problems in plain words: where, what was found, what is wanted."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, TypeVar, Union, get_args, get_origin

import msgspec
import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from karat.documents.nodes import Place
from karat.errors import did_you_mean

Model = TypeVar("Model", bound=BaseModel)


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong in a tree of values."""

    place: Place
    message: str
    unknown_key: bool = False  # readers of other programs' files may ignore these


def validated(model: type[Model], values: object, *, context: object = None) -> Model:
    """The values as an instance of the model. Raises ValidationError; `explain` keeps its messages
    unchanged.

    For validators that choose a model by the values, so that errors name this model's keys.
    """
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        raise refusal(explain(error, values, model)) from None


def refusal(problems: Iterable[Problem]) -> ValidationError:
    """The error for a validator to raise if it found several problems, or one below its own
    place.
    """
    details: list[InitErrorDetails] = []
    for problem in problems:
        details.append(
            {
                "type": PydanticCustomError(
                    _UNKNOWN if problem.unknown_key else _PROBLEM,
                    "{message}",
                    {"message": problem.message},
                ),
                "loc": problem.place,
                "input": None,
            }
        )

    return ValidationError.from_exception_data("problems", details)


def explain(error: ValidationError, values: object, model: type[BaseModel]) -> list[Problem]:
    """The problems that pydantic found: one per place, and one in all for a required key that is
    misspelt.
    """
    problems_at: dict[Place, list[Problem]] = {}
    errors = error.errors(include_url=False)
    missing = any(item["type"] == "missing" for item in errors)
    meant: set[Place] = set()  # places of keys that unknown keys were probably meant to be
    for item in errors:
        if missing and item["type"] == "extra_forbidden":
            *above, key = _place(item, values, model)
            near = did_you_mean(str(key), _keys(model, tuple(above)), listing=False)
            if near:
                meant.add((*above, near.split("'")[1]))

    for item in errors:
        place = _place(item, values, model)
        if item["type"] == "missing" and place in meant:
            continue
        if item["type"] in (_PROBLEM, _UNKNOWN):
            problem = Problem(place, item["ctx"]["message"], item["type"] == _UNKNOWN)
            problems_at.setdefault((*place, problem.message), []).append(problem)
            continue

        problem = Problem(place, _sentence(item, place, model), item["type"] == "extra_forbidden")
        if problem not in problems_at.setdefault(place, []):
            problems_at[place].append(problem)

    around: set[Place] = set()  # places with a problem inside
    for place in problems_at:
        around.update(place[:depth] for depth in range(len(place)))

    explained = []
    for place, problems in problems_at.items():
        messages = [one.message for one in problems]
        # for a union, a problem inside one member says more than that it is not the other member
        if place in around and all(message.startswith(_SHAPES) for message in messages):
            continue
        message = messages[0]
        if len(messages) > 1 and all(one.startswith("must be ") for one in messages):
            # those of a union's members as one: "must be A or B"
            wishes = []
            for one in messages:
                wishes.append(one.partition(", got ")[0].removeprefix("must be "))

            message = f"must be {' or '.join(wishes)}, got {message.partition(', got ')[2]}"

        explained.append(msgspec.structs.replace(problems[0], message=message))

    return explained


def shown(value: object) -> str:
    """A value as in a YAML file, cut if it is long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            if len(value) <= 60:
                return f"'{value}'"
            return f"'{value[:57]}…'"
        case int() | float():
            return f"{value!r:.60}"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"

    return f"a {type(value).__name__}"


_PROBLEM, _UNKNOWN = "karat_problem", "karat_unknown_key"
_SHAPES = ("must be a mapping, got a ", "must be a list, got a ", "must be text, got a ")


def _place(item: ErrorDetails, values: object, model: type[BaseModel]) -> Place:
    """The error's place without pydantic's additions: union members, and `[key]`."""
    if item["type"] in (_PROBLEM, _UNKNOWN):
        return item["loc"]
    place: list[str | int] = []
    for part in item["loc"]:
        if (isinstance(values, Mapping) and part in values) or (
            isinstance(values, (list, tuple)) and isinstance(part, int) and part < len(values)
        ):
            values = values[part]  # type: ignore[index]  # a list has an int, a mapping any of its keys
        elif part != item["loc"][-1] or _field(model, (*place, part)) is None:
            continue  # else a key that should be there

        place.append(part)

    return tuple(place)


_WISHES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_too_short": "at least {min_length} characters long",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "literal_error": "{expected}",
    "path_type": "the path of a file",
}


def _sentence(item: ErrorDetails, place: Place, model: type[BaseModel]) -> str:
    kind, got, context = item["type"], item["input"], item.get("ctx", {})
    field = _field(model, place)
    if field is not None and field.examples:
        flow: str = yaml.safe_dump(
            field.examples[0],
            default_flow_style=True,
            sort_keys=False,
            width=1000,
        )
        flow = flow.removesuffix("...\n").strip()
        example = f"; write e.g. `{place[-1]}: {flow}`"
    else:
        example = ""

    if kind == "extra_forbidden":
        for parent in _models(model, place[:-1]):
            elsewhere: Mapping[str | int, str] = getattr(parent, "elsewhere", {})
            if place[-1] in elsewhere:
                return elsewhere[place[-1]]

        return f"no such key{did_you_mean(str(place[-1]), _keys(model, place[:-1]))}"

    if kind == "missing":
        if field and field.description and not example:
            about = f": {field.description}"
        else:
            about = ""

        return f"is required{about}{example}"

    if kind in {"string_too_short", "too_short"} and not got and context.get("min_length") == 1:
        if example:
            return f"is empty{example}"
        return "must not be empty"

    if kind == "string_type" and isinstance(got, (bool, int, float)):
        return f"must be text, got {shown(got)}; put it in quotes"
    if kind == "too_long" and isinstance(got, Mapping):
        return f"at most {context['max_length']} entries, got {len(got)}"
    if kind in _WISHES:
        if isinstance(got, str):
            known = context.get("expected", "").split("'")[1::2]
        else:
            known = ()

        near = did_you_mean(str(got), known, listing=False)
        return f"must be {_WISHES[kind].format(**context)}, got {shown(got)}{near}{example}"

    if kind == "value_error":
        return str(context["error"])
    return item["msg"][:1].lower() + item["msg"][1:]


def _models(annotation: object, place: Place) -> Iterator[type[BaseModel]]:
    """The models that a value at `place` below a value of this type may be."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not place:
            yield annotation
        elif (field := _by_key(annotation, place[0])) is not None:
            yield from _models(field.annotation, place[1:])
    elif origin in (dict, list, tuple) and place and inside:
        yield from _models(inside[-1] if origin is dict else inside[0], place[1:])
    elif origin is Annotated:
        yield from _models(inside[0], place)
    elif origin in (Union, types.UnionType):
        for member in inside:
            yield from _models(member, place)


def _by_key(model: type[BaseModel], key: str | int) -> FieldInfo | None:
    return next(
        (field for name, field in model.model_fields.items() if key == (field.alias or name)), None
    )


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    """The keys of the models at a place; none if there is no model."""
    found = []
    for section in _models(model, place):
        for name, field in section.model_fields.items():
            found.append(field.alias or name)

    return found


def _field(model: type[BaseModel], place: Place) -> FieldInfo | None:
    """The models' definition of the value at a place; None if it is not a field of a model."""
    if place:
        fields = []
        for parent in _models(model, place[:-1]):
            fields.append(_by_key(parent, place[-1]))
    else:
        fields = []

    return next((field for field in fields if field is not None), None)
