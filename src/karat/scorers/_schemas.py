"""JSON schemas, checked here and applied in a process of their own: a hostile text cannot hold up or load anything."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karat.errors import BadOption
from karat.files import open_regular
from karat.scorers._child import Child

__all__ = ["Schemas", "read_schema"]

_SCHEMA_BYTES = 1_000_000
_PROGRAM = """
import json
import jsonschema, referencing
validators = {}
def validator_of(schema):
    key = json.dumps(schema, sort_keys=True)
    if key not in validators:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        if len(validators) > 1000:
            validators.clear()
        # An empty registry: a reference to anything outside the schema fails, and nothing is fetched.
        validators[key] = kind(schema, registry=referencing.Registry())
    return validators[key]
def ask(question):
    schema, text = question
    try:
        validator = validator_of(setting["schemas"][schema] if type(schema) is int else schema)
    except (jsonschema.SchemaError, TypeError, AttributeError) as fault:
        return [None, "the schema is none: %s" % getattr(fault, "message", fault)]
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(text)))
    except ValueError as fault:
        return [False, "is not JSON: %s" % fault]
    except RecursionError:
        return [False, "is nested too deeply"]
    except referencing.exceptions.Unresolvable as fault:
        return [None, "the schema refers to %s, which is not in it" % fault.ref]
    if error is None:
        return [True, ""]
    place = "".join("[%r]" % part if isinstance(part, int) else ".%s" % part for part in error.absolute_path)
    return [False, "%s: %s" % (place.lstrip(".") or "the whole", error.message[:300])]
"""


class Schemas:
    """Validates texts against the schemas that it is made with, or against one that comes with the text."""

    def __init__(self, schemas: Sequence[Any], *, seconds: float) -> None:
        self._child = Child(_PROGRAM, {"schemas": list(schemas)}, seconds=seconds)

    def check(self, schema: int | dict[str, Any], text: str) -> tuple[bool | None, str]:
        """Whether the text is JSON that the schema allows, and the first thing that is wrong; None: it cannot be told.

        `schema`: a place among those given, or a schema of its own. Raises JudgeFault when it takes too long.
        """
        valid, reason = self._child.ask([schema, text])
        return valid, reason

    def close(self) -> None:
        """End the process that validates."""
        self._child.close()


def read_schema(given: dict[str, Any] | bool | str, folder: Path) -> dict[str, Any] | bool:
    """The schema itself, or the one in the file. Raises BadOption for a file or a schema that is none."""
    jsonschema: Any = importlib.import_module("jsonschema")  # has no types; 60 ms, so only here
    schema: Any = given
    if isinstance(given, str):
        path = folder / given
        try:
            with open_regular(path) as file:
                raw = file.read(_SCHEMA_BYTES + 1)
        except OSError as error:
            raise BadOption("schema", f"{given} cannot be read: {error.strerror}") from error
        if len(raw) > _SCHEMA_BYTES:
            raise BadOption("schema", f"{given} is larger than {_SCHEMA_BYTES} bytes")
        try:
            schema = json.loads(raw)
        except ValueError as error:
            raise BadOption("schema", f"{given} is not JSON: {error}") from error
    if not isinstance(schema, (dict, bool)):
        raise BadOption("schema", f"must be an object or a bool, is a {type(schema).__name__}")
    try:
        jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        raise BadOption(f"schema{'/' if place else ''}{place}", error.message) from error
    return schema
