"""Whether the answer is JSON, and valid against a schema."""

from __future__ import annotations

import importlib
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from karat.errors import BadOption
from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting, Verdict
from karat.scorers._child import Child

__all__ = ["JsonSchema"]

_SCHEMA_BYTES = 1_000_000
_PROGRAM = """
import jsonschema, referencing
schema = setting["schema"]
kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
# An empty registry: a reference to anything outside the schema fails, and nothing is fetched.
validator = kind(schema, registry=referencing.Registry())
def ask(text):
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


class JsonSchema:
    """True where the answer is JSON (also in a code fence) and valid against a JSON schema.

    The schema stands in the experiment file, or in a file of its own. It is applied in a
    process of its own that ends after `timeout_seconds`, because a schema's pattern on a
    hostile text may never end. References outside the schema are not followed: nothing
    is fetched. `reasons` says the first thing that is wrong.
    """

    blocking = True

    class Options(BaseModel):
        """What the experiment file may say about it."""

        model_config = ConfigDict(extra="forbid", populate_by_name=True)
        json_schema: dict[str, Any] | bool | str = Field(
            alias="schema", description="the schema, or the path of a JSON file with it, from the experiment's folder"
        )
        fence: bool = Field(default=True, description="read the first code fence, where the answer has one")
        timeout_seconds: float = Field(default=5.0, gt=0, le=60)  # for one answer; after that it has no score
        max_characters: int = Field(default=1_000_000, ge=1)  # a longer answer has no score

    def __init__(self, options: Options, setting: ScorerSetting | None = None) -> None:
        self._options = options
        self._name = setting.name if setting is not None else "json_schema"
        description = "answers valid against the schema"
        self.metrics = (Metric(name=self._name, low=0, high=1, kind="share", description=description),)
        schema = _schema(options.json_schema, setting.folder if setting is not None else Path())
        self.fingerprint = blake2b(json.dumps(schema, sort_keys=True).encode(), digest_size=16).hexdigest()
        self._child = Child("import json\n" + _PROGRAM, {"schema": schema}, seconds=options.timeout_seconds)

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """The reason names the first fault; None: the answer is longer than `max_characters`."""
        text = answer.text
        if len(text) > self._options.max_characters:
            return self._verdict(None, f"is longer than {self._options.max_characters} characters")
        valid, reason = self._child.ask(_unfenced(text) if self._options.fence else text)
        return self._verdict(valid, reason)

    def close(self) -> None:
        """End the process that validates."""
        self._child.close()

    def _verdict(self, valid: bool | None, reason: str) -> Verdict:
        return Verdict(values={self._name: valid}, reasons={self._name: reason} if reason else {})


def _schema(given: dict[str, Any] | bool | str, folder: Path) -> dict[str, Any] | bool:
    """The schema itself. Raises BadOption for a file that cannot be read and a schema that is none."""
    jsonschema: Any = importlib.import_module("jsonschema")  # has no types; 60 ms, so only here
    schema: Any = given
    if isinstance(given, str):
        path = folder / given
        try:
            raw = path.read_bytes()
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


def _unfenced(text: str) -> str:
    """What stands in the first code fence; the text itself where there is none."""
    start = text.find("```")
    if start < 0:
        return text
    line_end = text.find("\n", start)
    end = text.find("```", line_end)
    return text[line_end + 1 : end] if 0 <= line_end < end else text
