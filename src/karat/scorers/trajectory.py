"""Whether the agent took the path that was expected: which tools it called, in which order, with
which arguments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from karat import formats
from karat.errors import JudgeFault
from karat.records import Answer, Sample, ToolCall
from karat.scorers import ScorerSetting, Verdict
from karat.scorers._child import Schemas, read_schema, short_json
from karat.scorers._expectations import Outcome, metrics_of, verdict_of
from karat.tool_use import CalledTool, expected_actions, names_in_cell

__all__ = ["Trajectory"]

_Tool = Annotated[str, Field(min_length=1)]
_Tools = TypeAdapter(list[_Tool])
_Part = Literal["used", "not_used", "in_order", "arguments", "max_calls"]
_PARTS: dict[_Part, str] = {
    "used": "every tool that was expected was called",
    "not_used": "no tool that was not wanted was called",
    "in_order": "the expected calls came in the expected order, others perhaps between them",
    "arguments": "the calls had the expected arguments",
    "max_calls": "there were not more calls than allowed",
}


class _Arguments(BaseModel):
    """The arguments that a tool must have been called with."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    tool: _Tool = Field(description="as under `used`")
    equals: dict[str, object] | None = None  # exactly these arguments
    json_schema: dict[str, object] | bool | str | None = Field(
        default=None,
        alias="schema",
        description="or: a JSON schema of the arguments, or the path of a file with it",
    )
    calls: Literal["any", "all"] = "any"  # whether one call must match, or every call of the tool

    @model_validator(mode="after")
    def _one_of_them(self) -> _Arguments:
        if (self.equals is None) == (self.json_schema is None):
            raise ValueError("needs either `equals` or `schema`")
        return self


_ArgumentList = TypeAdapter(list[_Arguments])


class Trajectory:
    """True if the agent's tool calls were as expected: tools used, not used, in order, with
    arguments, at most n.

    A tool is written `search`, `docs.search` (of the MCP server `docs`) or `docs.*`. Expectations
    are in the options, or, sample by sample, in columns of the dataset named in `columns`; for
    tau-bench tasks the column `actions` means the calls that the task expects. Each gives its own
    metric, and `reasons` explains what differed; the metric with the scorer's name is true if all
    hold. Calls of all turns count, in the order in which the agent reports them.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        used: list[_Tool] | None = Field(default=None, description="tools that must be called")
        not_used: list[_Tool] | None = Field(
            default=None, description="tools that must not be called"
        )
        in_order: list[_Tool] | None = Field(
            default=None, description="calls that must come in this order"
        )
        arguments: list[_Arguments] | None = Field(
            default=None, description="arguments that calls must have"
        )
        max_calls: int | None = Field(default=None, ge=0, description="how many calls there may be")
        columns: dict[_Part, _Tool] = Field(
            default={},
            description="expectation → column of the dataset that holds it for each sample",
        )
        only_successful: bool = Field(
            default=False,
            description="whether calls that failed are passed over (not by max_calls)",
        )
        timeout_seconds: float = Field(default=5.0, gt=0, le=60)  # for one check against a schema

        @model_validator(mode="after")
        def _something_is_expected(self) -> Trajectory.Options:
            twice = []
            for part in self.columns:
                if getattr(self, part) is not None:
                    twice.append(part)

            if twice:
                raise ValueError(
                    f"'{twice[0]}' is set both in the options and in `columns`; leave out one"
                )

            if not self.columns and all(getattr(self, part) is None for part in _PARTS):
                raise ValueError(f"expects nothing; give at least one of {', '.join(_PARTS)}")
            return self

    golden = False

    def __init__(self, options: Options, setting: ScorerSetting) -> None:
        self._options, self._name = options, setting.name
        self._parts = [
            part for part in _PARTS if getattr(options, part) is not None or part in options.columns
        ]
        described: dict[str, str] = {part: _PARTS[part] for part in self._parts}
        self.metrics = metrics_of(setting.name, "the path was as expected", described)
        given = [rule.json_schema for rule in options.arguments or []]
        schemas = [
            None if schema is None else read_schema(schema, setting.folder) for schema in given
        ]
        self.fingerprint = blake2b(
            json.dumps(schemas, sort_keys=True).encode(), digest_size=16
        ).hexdigest()
        self._schemas = Schemas(schemas, seconds=options.timeout_seconds)
        # A check against a schema waits for another process.
        self.blocking = "arguments" in options.columns or any(
            schema is not None for schema in schemas
        )

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """One value per expectation; None if the sample has none.

        Raises JudgeFault for an invalid column.
        """
        calls = [call for reply in answer.replies for call in reply.tool_calls]
        expected: dict[_Part, object] = {}  # None: nothing for this sample
        for part in self._parts:
            column = self._options.columns.get(part)
            if column is None:
                expected[part] = getattr(self._options, part)
            else:
                found_there = sample.metadata.get(
                    column, _actions(part, sample) if column == "actions" else None
                )
                expected[part] = _of_column(part, found_there)

        outcomes: dict[str, Outcome] = {}
        for part, wanted in expected.items():
            if wanted is not None:
                outcomes[part] = self._judged(part, wanted, calls)

        return verdict_of(self._name, self._parts, outcomes)

    def close(self) -> None:
        """End the process that applies schemas."""
        self._schemas.close()

    def _judged(self, part: _Part, expected: Any, calls: Sequence[ToolCall]) -> Outcome:
        if part == "max_calls":
            few = len(calls) <= expected
            return few, "" if few else f"{len(calls)} calls, expected at most {expected}"

        if self._options.only_successful:
            calls = [call for call in calls if call.error is None]
        match part:
            case "used":
                missing = []
                for tool in expected:
                    if not any(_is(call, tool) for call in calls):
                        missing.append(tool)

                return (
                    not missing,
                    f"not called: {', '.join(missing)} ({_listed_calls(calls)})" if missing else "",
                )
            case "not_used":
                used = []
                for tool in expected:
                    if any(_is(call, tool) for call in calls):
                        used.append(tool)

                return not used, f"called: {', '.join(used)}" if used else ""
            case "in_order":
                left = list(expected)
                for call in calls:
                    if left and _is(call, left[0]):
                        del left[0]

                if not left:
                    return True, ""
                if len(left) < len(expected):
                    after = f" after {expected[len(expected) - len(left) - 1]}"
                else:
                    after = ""

                return False, f"{left[0]} was not called{after} ({_listed_calls(calls)})"

        for place, rule in enumerate(expected):
            schema = place if (part not in self._options.columns) else rule.json_schema
            outcome = self._one_argued(
                rule, schema, [call for call in calls if _is(call, rule.tool)]
            )
            if outcome[0] is not True:
                return outcome

        return True, ""

    def _one_argued(self, rule: _Arguments, schema: Any, calls: Sequence[ToolCall]) -> Outcome:
        """The first call that decides it."""
        wrong = f"'{rule.tool}' was not called"
        for number, call in enumerate(calls, start=1):
            if rule.equals is not None:
                good: bool | None = call.input == rule.equals
                reason = f"has {short_json(call.input)}, expected {short_json(rule.equals)}"
            else:
                good, reason = self._schemas.check(schema, json.dumps(call.input))

            if good is None:
                return None, reason
            wrong = f"call {number} of '{rule.tool}': {reason}"
            if good and rule.calls == "any":
                return True, ""
            if not good and rule.calls == "all":
                return False, wrong

        if calls and rule.calls == "all":
            return (True, "")
        return (False, wrong)


def _is(call: ToolCall, tool: str) -> bool:
    return tool in CalledTool(call.tool, call.server).spellings


def _listed_calls(calls: Sequence[ToolCall]) -> str:
    names = [CalledTool(call.tool, call.server).name for call in calls]
    if names:
        return f"the calls were {formats.some_of(names, most=12)}"
    return "there were no calls"


def _actions(part: _Part, sample: Sample) -> object:
    """The calls that a task of tau-bench expects, as this expectation states them; None: it expects
    none.
    """
    actions = expected_actions(sample)
    if part == "max_calls" and actions:
        return len(actions)
    if part == "arguments":
        return [
            {"tool": action["name"], "equals": action["arguments"]} for action in actions
        ] or None

    return [action["name"] for action in actions if part != "not_used"] or None


def _of_column(part: _Part, value: object) -> object:
    """The expectation in a dataset cell: a value, or text (CSV) with one as JSON, or names with
    commas.
    """
    if value is None or value == "":
        return None
    value = names_in_cell(value)
    try:
        if part == "max_calls":
            return TypeAdapter(Annotated[int, Field(ge=0)]).validate_python(value)
        if part == "arguments":
            return _ArgumentList.validate_python(value)
        return _Tools.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{step}: " for step in first["loc"])
        raise JudgeFault(
            "bad_expectation", f"the sample's '{part}' is not valid: {place}{first['msg']}"
        ) from error
