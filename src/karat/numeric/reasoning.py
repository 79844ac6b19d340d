"""How good a program is beside the golden one: its operations, its operands, its parts, its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from karat.numeric.counting import (
    named_operations,
    operation_shares,
    order_score,
    settled,
    step_operations,
)
from karat.numeric.matches import match, near
from karat.numeric.parts import Before, Earlier, Parts, parts_of
from karat.numeric.programs import ExecutionError, Program, Readable, execute
from karat.numeric.values import parse_value

if TYPE_CHECKING:
    from karat.numeric.tables import Table

__all__ = ["Reasoning", "compare_programs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reasoning:
    """What a prediction has of the golden program. Shares are 0 to 1; None is "not available", never 0.

    The attributes hold the reading `chain`: the whole golden program, as published. `step`
    holds the same without what earlier turns computed, so that reusing one's history costs nothing.
    """

    operations: int | None = None  # compute operations of the turn
    logic_recall: float | None = None  # golden operations that the prediction has, in any order
    logic_precision: float | None = None  # predicted operations that are golden
    logic_f1: float | None = None
    order_score: float | None = None  # longest common subsequence of operations, of the longer length
    operand_recall: float | None = None  # golden numbers of the document that the prediction has
    operand_precision: float | None = None
    partial_credit: float | None = None  # golden sub-expressions that the prediction contains
    program_match: bool | None = None  # equivalent programs
    execution_match: bool | None = None  # the prediction executes to the golden answer, to 5 decimals
    self_consistent: bool | None = None  # the stated answer is what the stated program gives
    unreadable: bool = False  # there is a prediction, and it cannot be read: nothing above is available
    step: Reasoning | None = None


def compare_programs(
    gold: Readable,
    predicted: Readable | Sequence[str],
    *,
    earlier: Earlier = (),
    table: Table | None = None,
    expected: Any = None,
    stated: Any = None,
    unit: str | None = None,
) -> Reasoning:
    """What the predicted program has of the golden one, in the readings `chain` and `step`.

    `predicted` is a program in any spelling, a plan, or a list of operation names, of which
    only operations are compared; None or nothing where the agent gave none. `earlier` has of
    each turn before, oldest first, the golden program, the golden answer, and where it is
    known the agent's own. `expected` is the golden answer (without it, what the golden
    program gives), `stated` the agent's, in the `unit` that it declared.

    Without a golden program, without a prediction, and with one that cannot be read, what
    would compare them is None.
    Nothing that a model wrote raises.

    >>> found = compare_programs("subtract(8181, 20454), divide(#0, 20454)", "divide(8181, 20454)")
    >>> found.logic_recall, found.logic_precision, found.operand_recall, found.program_match
    (0.5, 1.0, 0.6666666666666666, False)
    >>> compare_programs("subtract(8181, 20454), divide(#0, 20454)", ["percentage_change"]).logic_f1
    1.0
    """
    names = _names(predicted)
    golden = None if _missing(gold) else parts_of(gold, table)
    mine = None if names is not None or _missing(predicted) else parts_of(predicted, table)
    unreadable = mine is not None and not mine.program.readable
    if unreadable:
        mine = None
    before = Before(earlier, table)
    chain = _reading(golden, mine, names, before.computed)
    step = chain
    if earlier:
        whole, own = (None if parts is None else before.step(parts) for parts in (golden, mine))
        same = whole is golden and own is mine
        same = same and (mine is None or before.extracted <= before.computed)
        step = chain if same else _reading(whole, own, names, before.computed | before.extracted)
    both: dict[str, Any] = {}
    if mine is not None:
        value = _value(mine.program, table, earlier)
        both["execution_match"] = _execution_match(value, golden, table, expected)
        both["self_consistent"] = None if stated is None else _self_consistent(value, stated, unit)
    both["unreadable"] = unreadable
    return Reasoning(**chain, **both, step=Reasoning(**step, **both))


def _missing(source: Any) -> bool:
    """Whether there is no program at all."""
    return source is None or (isinstance(source, str | list | tuple | dict) and not source)


def _names(predicted: Any) -> list[str] | None:
    """The operations of a list of names; None of a program: its tokens have parentheses, digits or an end."""
    if not isinstance(predicted, list | tuple) or not all(isinstance(each, str) for each in predicted):
        return None
    if any(each.strip() == "EOF" or not each.strip().replace("_", "").isalpha() for each in predicted):
        return None
    return named_operations(predicted)


def _reading(
    golden: Parts | None, mine: Parts | None, names: list[str] | None, produced: frozenset[float]
) -> dict[str, Any]:
    """The fields of one reading, those that exist."""
    if golden is None or not golden.program.readable:
        return {}
    operations = [step.operation for step in golden.steps]
    if names is not None:
        return _of_operations(operations, names)
    if mine is None:
        return {"operations": len(operations)}
    found = _of_operations(operations, step_operations(mine.steps))
    found["operand_recall"], found["operand_precision"] = _operands(golden, mine, produced)
    found["partial_credit"] = _partial_credit(golden, mine)
    found["program_match"] = None if golden.whole is None else golden.whole == mine.whole
    return found


def _of_operations(golden: list[str], predicted: list[str]) -> dict[str, Any]:
    predicted = settled(predicted, golden)
    shares = operation_shares(golden, predicted)
    return {
        "operations": len(golden),
        "logic_recall": shares.recall,
        "logic_precision": shares.precision,
        "logic_f1": shares.f1,
        "order_score": order_score(golden, predicted),
    }


def _operands(golden: Parts, mine: Parts, produced: frozenset[float]) -> tuple[float | None, float | None]:
    """Recall and precision of the numbers, by their absolute value; None where there is none to be found.

    Constants are what the golden program spells `const_`, however the prediction spells them.
    """
    wanted = [number for number, constant in golden.literals if not constant and number not in produced]
    left = list(wanted)
    constants = {number for number, constant in golden.literals if constant}
    shared = predicted = 0
    for number, constant in mine.literals:
        if number in left:
            left.remove(number)
            shared += 1
            predicted += 1
        elif number in wanted or not (constant or number in constants or number in produced):
            predicted += 1
    return shared / len(wanted) if wanted else None, shared / predicted if predicted else None


def _partial_credit(golden: Parts, mine: Parts) -> float | None:
    """The share of golden sub-expressions that the prediction computes; of a bare number, or a value, the whole."""
    if golden.keys is None or golden.whole is None:
        return None
    wanted = [golden.keys[at] for at in golden.counted] or [golden.whole]
    if mine.keys is None:
        return 0.0
    have = {*mine.keys, mine.whole}
    found = sum(key in have for key in wanted)
    number = golden.program.number
    if not found and number is not None and number.value is not None:
        found = int(any(abs(number.value) == size for size, _ in mine.literals))
    return found / len(wanted)


def _value(program: Program, table: Table | None, earlier: Earlier) -> float | bool | None:
    """What the prediction gives, with the agent's own answers as its history where they are known."""
    history = [(each[0], each[-1]) for each in earlier]
    value = execute(program, table, history)
    return None if isinstance(value, str | ExecutionError) else value


_DECIMALS: Final = 5


def _execution_match(
    value: float | bool | None, golden: Parts | None, table: Table | None, expected: Any
) -> bool | None:
    """The official rule of execution: equal after rounding to 5 decimals, or the same yes or no."""
    known = False
    if (wanted := parse_value(expected)) is not None:
        known = True
        if value is not None and _same(value, wanted.number if wanted.boolean is None else wanted.boolean):
            return True
    if golden is not None and golden.program.error is None:
        reference = execute(golden.program, table)
        if isinstance(reference, float | bool):
            return value is not None and _same(value, reference)
    return False if known else None


def _same(value: float | bool, wanted: float | bool) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return round(value, _DECIMALS) == round(wanted, _DECIMALS)


def _self_consistent(value: float | bool | None, stated: Any, unit: str | None) -> bool:
    """Whether the stated answer is the program's value, as it stands or in the unit it was stated in."""
    if value is None:
        return False
    if type(stated) is float and type(value) is float and near(value, stated):
        return True
    return match(value, stated, declared_unit=unit if isinstance(unit, str) else None).declared
