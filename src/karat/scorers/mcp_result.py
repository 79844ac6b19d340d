"""Whether a tool of an MCP server returned what was expected: values, a schema, an error, in
time.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from karat import formats
from karat.errors import JudgeFault
from karat.records import Answer, Sample, ToolCall
from karat.scorers import ScorerSetting, Verdict
from karat.scorers._child import Schemas, read_schema, short_json
from karat.scorers._expectations import Outcome, metrics_of, verdict_of

__all__ = ["McpResult"]

_Part = Literal["error", "values", "schema", "max_milliseconds"]
_PARTS: dict[_Part, str] = {
    "error": "the call failed where it should, and only there",
    "values": "structuredContent has the expected values",
    "schema": "structuredContent is valid against the schema",
    "max_milliseconds": "the call took no longer than allowed",
}
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_ABSENT = object()


class McpResult:
    """True if a tool call returned what was expected: for the agent `mcp`, which makes one call per
    sample.

    Expectations are in the options, or, sample by sample, in columns of the dataset named in
    `columns`. Each gives its own metric, with a reason if it was not met; the metric with the
    scorer's name is true if all hold. Texts are for `equals` and `contains`.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid", populate_by_name=True)
        error: bool | str | None = Field(
            default=None,
            description="whether the call must fail; a text: it must fail, and say this",
        )
        values: dict[str, object] | None = Field(
            default=None,
            description="path in structuredContent → its value, e.g. {'items[0].name': lamp}",
        )
        json_schema: dict[str, object] | str | None = Field(
            default=None,
            alias="schema",
            description="a JSON schema of structuredContent, or the path of a file",
        )
        max_milliseconds: float | None = Field(
            default=None, gt=0, description="how long the call may take"
        )
        columns: dict[_Part, str] = Field(
            default={},
            description="expectation → column of the dataset that holds it for each sample",
        )
        timeout_seconds: float = Field(default=5.0, gt=0, le=60)  # for one check against a schema

        @model_validator(mode="after")
        def _something_is_expected(self) -> McpResult.Options:
            given: dict[_Part, object] = {
                "error": self.error,
                "values": self.values,
                "schema": self.json_schema,
            }
            given["max_milliseconds"] = self.max_milliseconds
            if twice := [part for part in self.columns if given[part] is not None]:
                raise ValueError(
                    f"'{twice[0]}' is set both in the options and in `columns`; leave out one"
                )

            if not self.columns and all(value is None for value in given.values()):
                raise ValueError(f"expects nothing; give at least one of {', '.join(_PARTS)}")
            return self

    golden = False
    blocking = True  # a check against a schema waits for another process

    def __init__(self, options: Options, setting: ScorerSetting) -> None:
        self._name, self._columns = setting.name, options.columns
        if options.json_schema is None:
            schema = None
        else:
            schema = read_schema(options.json_schema, setting.folder)

        self._given: dict[_Part, object] = {
            "error": options.error,
            "values": options.values,
            "schema": schema,
            "max_milliseconds": options.max_milliseconds,
        }
        self._parts = [
            part for part in _PARTS if self._given[part] is not None or part in options.columns
        ]
        self.metrics = metrics_of(
            self._name, "calls as expected", {part: _PARTS[part] for part in self._parts}
        )
        self.fingerprint = blake2b(
            json.dumps(schema, sort_keys=True).encode(), digest_size=16
        ).hexdigest()
        self._schemas = Schemas([], seconds=options.timeout_seconds)

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """One value per expectation; None if the sample has none.

        Raises JudgeFault for an invalid column.
        """
        calls = [call for reply in answer.replies for call in reply.tool_calls]
        if not calls:
            names = [metric.name for metric in self.metrics]
            return Verdict(
                values=dict.fromkeys(names),
                reasons=dict.fromkeys(names, "the agent reports no tool call"),
            )

        if answer.replies[-1].answer is not None:
            structured = _loaded(answer.replies[-1].answer)
        else:
            structured = _ABSENT

        outcomes: dict[str, Outcome] = {}
        for part in self._parts:
            column = self._columns.get(part)
            if column is None:
                wanted = self._given[part]
            else:
                wanted = _loaded(sample.metadata.get(column))

            if wanted is not None and wanted != "":
                outcomes[part] = self._judged(part, wanted, calls[-1], structured)

        return verdict_of(self._name, self._parts, outcomes)

    def close(self) -> None:
        """End the process that applies schemas."""
        self._schemas.close()

    def _judged(self, part: _Part, wanted: object, call: ToolCall, structured: object) -> Outcome:
        if part == "error":
            if wanted is False:
                return (
                    call.error is None,
                    f"the call failed: {short_json(call.error)}" if call.error is not None else "",
                )

            if call.error is None:
                return False, "the call succeeded, expected an error"
            as_wanted = wanted is True or str(wanted).casefold() in call.error.casefold()
            if as_wanted:
                return True, ""
            return False, f"the error says {short_json(call.error)}, expected {short_json(wanted)}"

        if part == "max_milliseconds":
            if call.milliseconds is None or not isinstance(wanted, (int, float)):
                return None, "it is not known how long the call took, or may take"
            slow = (
                f"took {formats.brief(call.milliseconds)} ms, expected at most "
                f"{formats.brief(wanted)}"
            )
            return call.milliseconds <= wanted, slow if call.milliseconds > wanted else ""

        if structured is _ABSENT:
            return False, "there is no structuredContent"
        if not isinstance(wanted, dict):
            raise JudgeFault("bad_column", f"`{part}` of the sample must be a JSON object")
        if part == "schema":
            return self._schemas.check(wanted, json.dumps(structured))
        for path, value in wanted.items():
            given = structured
            for name, place in _STEP.findall(str(path)):  # such as `items[0].name`
                if isinstance(given, dict) and name in given:
                    given = given[name]
                elif place and isinstance(given, list) and int(place) < len(given):
                    given = given[int(place)]
                else:
                    given = _ABSENT
                    break

            if given is _ABSENT or (given, isinstance(given, bool)) != (
                value,
                isinstance(value, bool),
            ):
                if given is _ABSENT:
                    shown = "is missing"
                else:
                    shown = f"is {short_json(given)}"

                return False, f"{path} {shown}, expected {short_json(value)}"

        return True, ""


def _loaded(value: object) -> object:
    """The value of a cell, also from text (CSV)."""
    try:
        if isinstance(value, str):
            return json.loads(value)
        return value
    except ValueError:
        return value
