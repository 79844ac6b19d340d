"""The reader of JSON plans: steps that take a value out of the document, and steps that compute.

`{"steps": [{"tool": "extract_value", "table_params": {…}}, {"tool": "compute",
"operation": "subtract", "operands": [{"type": "reference", "step_ref": 1}, {"type":
"literal", "value": 5}]}]}`. A step is referred to by its `step_id` (its one-based place
where it has none), an earlier turn by a negative one: -1 and `prev_0` are the latest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat.numeric.literals import read_literal, written
from karat.numeric.parsing import MAX_STEPS, read_text, read_tokens
from karat.numeric.trees import OPERATIONS, TABLE, Argument, ExecutionError, Program, Step, fault_of

__all__ = ["MAX_PLAN", "read_json", "read_plan"]

MAX_PLAN = 50_000
"""Characters of the longest plan that is read from text."""

_NAMED = re.compile(r"(?:(?P<step>step[_ ]?)|(?P<prev>prev_)|(?P<place>#))(?P<number>[0-9]{1,6})")
_HUNDRED = Argument("const_100", "number", 100.0)
_PAIRS = (("old", "new"), ("part", "whole"), ("a", "b"), ("left", "right"), ("numerator", "denominator"))
_MANY = frozenset({"add", "multiply"})
_VALUES = ("value", "result", "extracted_value")


def read_json(text: str) -> Program:
    """The plan or the token list that JSON text holds; text that is no JSON is read as a program."""
    if len(text) <= MAX_PLAN:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return read_text(text)
        if isinstance(found, Mapping) or (isinstance(found, list) and found and isinstance(found[0], Mapping)):
            return read_plan(found, text)
        if isinstance(found, list):
            return read_tokens(found)
    return read_text(text)


def read_plan(plan: Mapping[str, Any] | Sequence[Any], text: str = "") -> Program:
    """The program that a plan describes; its operations keep their names, its steps are the basic ones."""
    reader = _Planner()
    steps = _steps_of(plan)
    if steps is None:
        reader.error = ExecutionError("malformed", "the plan has no list of steps")
    else:
        for place, step in enumerate(steps[: MAX_STEPS + 1], start=1):
            reader.read(place, step)
    return reader.program(text)


def _steps_of(plan: Mapping[str, Any] | Sequence[Any]) -> Sequence[Any] | None:
    """The list of steps, also one wrapping further in: `{"plan": {"steps": […]}}`."""
    if not isinstance(plan, Mapping):
        return plan
    for found in (plan, *plan.values()):
        steps = found.get("steps") if isinstance(found, Mapping) else None
        if isinstance(steps, list | tuple):
            return steps
    return None


class _Planner:
    """Reads step by step; values that are taken out become arguments of the steps that use them."""

    def __init__(self) -> None:
        self.error: ExecutionError | None = None
        self._steps: list[Step] = []
        self._operations: list[str] = []
        self._results: dict[str, Argument] = {}  # by step id
        self._places: list[Argument] = []  # by place in the plan
        self._broken = False

    def program(self, text: str) -> Program:
        """What was read, once everything has been."""
        last = self._places[-1] if self._places else None
        if last is None and not self._broken:
            self._break("the plan has no step")
        number = last
        if last is not None and last.kind == "reference" and last.index is not None:
            number = None
            del self._steps[last.index + 1 :]  # the plan ends by pointing at an earlier step
        if number is not None:
            self.error = self.error or fault_of("add", [number], [])
        return Program(
            text=text or " ".join(self._operations),
            tokens=(),
            steps=tuple(self._steps),
            number=number,
            error=self.error,
            operations=tuple(self._operations),
            spelling="plan",
        )

    def read(self, place: int, step: Any) -> None:
        """One step of the plan."""
        if self._broken:
            return
        if not isinstance(step, Mapping):
            self._break(f"step {place} is not a mapping")
            return
        if len(self._steps) >= MAX_STEPS:
            self._break(f"longer than {MAX_STEPS} steps")
            return
        operation, tool = step.get("operation"), step.get("tool")
        if tool == "extract_value" or (operation is None and tool != "compute"):
            result: Argument | None = self._taken(step)
        elif isinstance(operation, str):
            result = self._compute(operation, self._operands(step))
        else:
            result = None
            self._break(f"step {place} has no operation")
        if result is not None:
            self._places.append(result)
            self._results[_shown(_first(step, ("step_id", "id", "step"), place))] = result

    def _taken(self, step: Mapping[str, Any]) -> Argument:
        """What an `extract_value` step takes: the value it states, or the cell it names."""
        stated = _first(step, _VALUES)
        if stated is not None:
            return self._operand(stated)
        params = next((step[key] for key in ("table_params", "params") if isinstance(step.get(key), Mapping)), step)
        row, column = _first(params, ("row_query", "row")), _first(params, ("col_query", "column", "col"))
        if isinstance(row, str) and isinstance(column, str):
            return Argument(row, "cell", column=column)
        return Argument("a value that the plan does not state", "name")

    def _operands(self, step: Mapping[str, Any]) -> list[Argument]:
        given = _first(step, ("operands", "arguments", "args"), [])
        if isinstance(given, Mapping):
            pair = next((pair for pair in _PAIRS if all(key in given for key in pair)), None)
            given = [given[key] for key in pair] if pair else list(given.values())
        return [self._operand(one) for one in given[:MAX_STEPS]] if isinstance(given, list | tuple) else []

    def _operand(self, given: Any) -> Argument:
        if isinstance(given, Mapping):
            reference = _first(given, ("step_ref", "ref", "step_id"))
            if reference is not None:
                return self._reference(reference)
            turn = _first(given, ("turn", "turn_idx"))
            if type(turn) is int:
                return Argument(f"turn {turn}", "history", index=turn)
            given = _first(given, (*_VALUES, "row"))
        if isinstance(given, str) and (found := _NAMED.fullmatch(given.strip())):
            number = int(found["number"])
            if found["prev"]:
                return self._reference(-1 - number)
            return self._reference(number) if found["step"] else self._at(number, given)
        text = _shown(given)
        literal = read_literal(text)
        return Argument(text, "name") if literal is None else Argument(text, "number", literal.number)

    def _reference(self, to: Any) -> Argument:
        if isinstance(to, str) and (found := _NAMED.fullmatch(to.strip())):
            number = int(found["number"])
            if found["place"]:
                return self._at(number, to)
            to = -1 - number if found["prev"] else number
        if type(to) is int and to < 0:
            return Argument(f"step {_shown(to)}", "history", index=to)
        return self._results.get(_shown(to), Argument(f"step {_shown(to)[:40]}", "reference"))

    def _at(self, place: int, text: str) -> Argument:
        return self._places[place] if place < len(self._places) else Argument(text, "reference")

    def _compute(self, operation: str, operands: list[Argument]) -> Argument | None:
        """Adds the basic steps of one operation; answers with a reference to the last of them."""
        self._operations.append(operation[:40])
        if operation == "percentage" and len(operands) == 2:
            share = self._step("divide", operands, operation)
            return self._step("multiply", [share, _HUNDRED], operation)
        if operation == "percentage_change" and len(operands) == 2:
            old, new = operands
            share = self._step("divide", [self._step("subtract", [new, old], operation), old], operation)
            return self._step("multiply", [share, _HUNDRED], operation)
        if operation in _MANY and len(operands) >= 2:
            total = operands[0]
            for operand in operands[1:]:
                total = self._step(operation, [total, operand], operation)
            return total
        if operation in OPERATIONS and (len(operands) == 2 or (operation in TABLE and len(operands) == 1)):
            return self._step(operation, operands, operation)
        known = operation in OPERATIONS or operation.startswith("percentage")
        self._break(f"{operation[:40]} " + (f"has {len(operands)} operands" if known else "is not an operation"))
        return None

    def _step(self, operation: str, arguments: list[Argument], said: str) -> Argument:
        self.error = self.error or fault_of(operation, arguments, self._steps)
        self._steps.append(Step(operation, tuple(arguments), said))
        at = len(self._steps) - 1
        return Argument(f"#{at}", "reference", index=at)

    def _break(self, message: str) -> None:
        self.error = ExecutionError("malformed", message)
        self._broken = True


def _first(given: Mapping[str, Any], keys: Sequence[str], default: Any = None) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), default)


def _shown(given: Any) -> str:
    """Text as it is, a number by its digits, anything else by nothing: it may be of any size."""
    return given if isinstance(given, str) else written(given)
