"""How a program compares with the golden one: in operations, operands, parts and value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from karat_conversations.numeric.algebra import (
    Key,
    Setting,
    step_forms,
    whole_form,
)
from karat_conversations.numeric.equivalence import setting_of
from karat_conversations.numeric.matches import match, near
from karat_conversations.numeric.programs import (
    Readable,
    execute,
    once_a_text,
    read_program,
)
from karat_conversations.numeric.tables import Table, one_cell
from karat_conversations.numeric.trees import TABLE, Argument, ExecutionError, Program, Step
from karat_conversations.numeric.values import parse_value

MOST_OPERATIONS: Final = 1_000
"""How many operations of a prediction are compared."""

# the multiply of a percentage: it counts while golden ones are unmatched
_PERHAPS: Final = "multiply?"
PERCENTAGES: Final = {
    "percentage": ("divide", _PERHAPS),
    "percentage_change": ("subtract", "divide"),
}


class Shares(NamedTuple):
    """Recall (golden ones that were predicted) and precision (predicted ones that are golden); 0 to
    1.
    """

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 if both are 0."""
        total = self.recall + self.precision
        if total:
            return 2 * self.recall * self.precision / total
        return 0.0


def named_operations(names: Iterable[str]) -> list[str]:
    """The basic operations of a list of names, in order, with `percentage` and `percentage_change`
    written out.
    """
    operations: list[str] = []
    for name in names:
        word = name.strip().lower()
        operations.extend(PERCENTAGES.get(word, (word,)))
        if len(operations) >= MOST_OPERATIONS:
            break

    return operations


def step_operations(steps: Iterable[Step]) -> list[str]:
    """The operations of a prediction's steps; for a plan's percentages, only those that count."""
    operations: list[str] = []
    for step in steps:
        if step.operation != "multiply" or step.written not in PERCENTAGES:
            operations.append(step.operation)
        elif step.written == "percentage":
            operations.append(_PERHAPS)

    return operations


def operations_attempted(program: Program) -> int | None:
    """How many operations an agent's program has, whatever the golden one has; None if it cannot be
    read.

    As in the comparison with the golden program, `percentage(a, b)` is one divide and
    `percentage_change` a subtract and a divide: the factor 100 is a matter of the unit.
    """
    if not program.readable:
        return None
    return sum(name != _PERHAPS for name in step_operations(program.steps))


def settled(predicted: Sequence[str], golden: Sequence[str]) -> list[str]:
    """The predicted operations; a percentage's multiply counts only while golden multiplies are
    unmatched.
    """
    if _PERHAPS not in predicted:
        return list(predicted)
    remaining = golden.count("multiply") - predicted.count("multiply")
    operations = []
    for operation in predicted:
        if operation != _PERHAPS:
            operations.append(operation)
        elif remaining > 0:
            operations.append("multiply")
            remaining -= 1

    return operations


def operation_shares(golden: Sequence[str], predicted: Sequence[str]) -> Shares:
    """Recall and precision of multisets; if one side is empty, 1.0 if and only if the other
    is too.
    """
    if not golden or not predicted:
        same = float(not golden and not predicted)
        return Shares(same, same)

    shared = (Counter(golden) & Counter(predicted)).total()
    return Shares(shared / len(golden), shared / len(predicted))


def order_score(golden: Sequence[str], predicted: Sequence[str]) -> float:
    """The longest common subsequence over the longer length; 1.0 if both are empty."""
    if golden == predicted:
        return 1.0
    lengths = [0] * (len(predicted) + 1)
    for mine in golden:
        before = 0
        for at, theirs in enumerate(predicted, 1):
            above = lengths[at]
            if mine == theirs:
                lengths[at] = before + 1
            else:
                lengths[at] = max(above, lengths[at - 1])

            before = above

    return lengths[-1] / max(len(golden), len(predicted))


Earlier = Sequence[tuple[Readable, object] | tuple[Readable, object, object]]
"""For each earlier turn, oldest first: the golden program, the golden answer and, if known, the
agent's answer.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A program in one reading.

    `keys`: what each of its steps computes; `whole`: what the program computes; None if it does not
    parse or divides by an identical zero. `counted`: the steps of this turn. `literals`: the
    absolute values of the numbers in them, and whether each is a constant (`const_`).
    """

    program: Program
    keys: tuple[Key, ...] | None
    whole: Key | None
    counted: tuple[int, ...]
    literals: tuple[tuple[float, bool], ...]

    @property
    def steps(self) -> list[Step]:
        """The counted steps."""
        return [self.program.steps[at] for at in self.counted]


def parts_of(source: Readable, table: Table | None) -> Parts:
    """The program on its own; values that depend only on its text are computed once."""
    parts = _of_text(source)
    if table is None or not any(
        (step.operation in TABLE or any(argument.kind == "cell" for argument in step.arguments))
        for step in parts.program.steps
    ):
        return parts

    return _apart(parts.program, Setting(table=table))


@once_a_text
def _of_text(source: Readable) -> Parts:
    return _apart(read_program(source), Setting())


def _apart(program: Program, setting: Setting) -> Parts:
    keys, program_key = _keys(program, setting)
    counted = tuple(range(len(program.steps)))
    return Parts(
        program,
        keys,
        program_key,
        counted,
        tuple(_literals(program, counted, setting.table)),
    )


def _keys(program: Program, setting: Setting) -> tuple[tuple[Key, ...] | None, Key | None]:
    """What each step computes, and what the program does."""
    if program.error is not None:
        return None, None
    forms = step_forms(program.steps, setting)
    if forms is None:
        return None, None
    steps = tuple(form.key for form in forms)
    whole = whole_form(program, forms, setting)
    return steps, whole.key


def _literals(
    program: Program, counted: Sequence[int], table: Table | None
) -> Iterator[tuple[float, bool]]:
    for at in counted:
        step = program.steps[at]
        for argument in step.arguments:
            # The hundred of a plan's percentage is implicit.
            if not (argument.text == "const_100" and step.written in PERCENTAGES):
                yield from _literal(argument, table)

    if program.number is not None:
        yield from _literal(program.number, table)


def _literal(argument: Argument, table: Table | None) -> Iterator[tuple[float, bool]]:
    if argument.kind == "number" and argument.value is not None:
        yield abs(argument.value), argument.text.startswith("const_")
    elif argument.kind == "cell":
        cell = one_cell(table, argument.text, argument.column or "")
        if not isinstance(cell, ExecutionError):
            yield abs(float(cell)), False


class Before:
    """The history of a turn: the golden programs of the earlier turns, and what was answered
    there.
    """

    def __init__(self, earlier: Earlier, table: Table | None) -> None:
        self.table = table
        self._golden: list[tuple[Program, object]] = []
        self._own: list[tuple[Program, object]] = []
        computed: list[object] = []
        self._extracted: list[object] = []
        self.keys: set[Key] = set()
        for source, value, *own in earlier:
            parts = parts_of(source, table)
            self._golden.append((parts.program, value))
            self._own.extend((parts.program, answer) for answer in own)
            if parts.program.steps and parts.whole is not None:
                self.keys.add(parts.whole)
            (computed if parts.program.steps else self._extracted).extend((value, *own))

        self.computed = frozenset(_sizes(computed))

    @cached_property
    def extracted(self) -> frozenset[float]:
        """Absolute values of the earlier answers that were extracted from the report."""
        return frozenset(_sizes(self._extracted))

    @cached_property
    def setting(self) -> Setting:
        """The meaning of literals after these turns: answers (golden ones first) stand for the
        golden programs.
        """
        golden = setting_of(self.table, self._golden)
        own = setting_of(self.table, self._own).inlined
        if own:
            return replace(golden, inlined={**own, **golden.inlined})
        return golden

    def step(self, parts: Parts) -> Parts:
        """The program without what earlier turns computed: such steps are values, and steps that
        only lead to them do not count.

        An earlier answer in the program stands for the program that gave it.
        """
        keys = parts.keys
        program_key = parts.whole
        if keys is not None:
            # Without an earlier answer in the program the history changes nothing
            arguments = (one for step in parts.program.steps for one in step.arguments)
            if any(number in self.computed for number, _ in parts.literals) or any(
                argument.kind == "history" for argument in arguments
            ):
                keys, program_key = _keys(parts.program, self.setting)

        if keys and self.keys:
            # The steps that are neither known nor used only by known ones
            steps = parts.program.steps
            values = {at for at, key in enumerate(keys) if key in self.keys}
            if not values:
                counted = tuple(range(len(steps)))
            else:
                used = []
                for step in steps:
                    used.append(
                        {
                            arg.index
                            for arg in step.arguments
                            if arg.kind == "reference" and arg.index is not None
                        }
                    )

                wanted = set(range(len(steps))).difference(*used)
                for at in range(len(steps) - 1, -1, -1):
                    if at in wanted and at not in values:
                        wanted |= used[at]

                counted = tuple(sorted(wanted - values))
        else:
            counted = parts.counted

        if keys is parts.keys and program_key is parts.whole and counted == parts.counted:
            return parts
        literals = tuple(_literals(parts.program, counted, self.table))
        return Parts(parts.program, keys, program_key, counted, literals)


def _sizes(values: Iterable[object]) -> Iterator[float]:
    """Absolute values, exact and rounded to the 5 decimals of the data sets."""
    for given in values:
        number = given if type(given) is float else None
        if number is None:
            value = parse_value(given)
            if value is not None and value.boolean is None:
                number = value.number
            else:
                number = float("nan")

        yield abs(number)
        yield abs(round(number, 5))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reasoning:
    """How much of the golden program a prediction has. Shares are 0 to 1; None is "not available",
    never 0.

    The attributes are for the reading `chain`: the whole golden program, as published. `step`
    leaves out what earlier turns computed, so that reusing earlier results costs nothing.
    """

    operations: int | None = None  # compute operations of the turn
    logic_recall: float | None = None  # golden operations that the prediction has, in any order
    logic_precision: float | None = None  # predicted operations that are golden
    logic_f1: float | None = None
    # longest common subsequence of operations, over the longer length
    order_score: float | None = None
    operand_recall: float | None = None  # golden numbers of the document that the prediction has
    operand_precision: float | None = None
    partial_credit: float | None = None  # golden sub-expressions that the prediction contains
    program_match: bool | None = None  # equivalent programs
    # the prediction executes to the golden answer, to 5 decimals
    execution_match: bool | None = None
    self_consistent: bool | None = None  # the stated answer is the stated program's result
    # there is a prediction but it cannot be read: nothing above is available
    unreadable: bool = False
    step: Reasoning | None = None


def compare_programs(
    gold: Readable,
    predicted: Readable | Sequence[str],
    *,
    earlier: Earlier = (),
    table: Table | None = None,
    expected: object = None,
    stated: object = None,
    unit: str | None = None,
) -> Reasoning:
    """How much of the golden program the predicted one has, in the readings `chain` and `step`.

    `predicted` is a program in any spelling, a plan, or a list of operation names (then only
    operations are compared); None or empty if the agent gave none. `earlier` has, for each earlier
    turn, oldest first, the golden program, the golden answer and, if known, the agent's answer.
    `expected` is the golden answer (default: the golden program's result), `stated` the agent's, in
    the `unit` that it declared.

    Without a golden program or a readable prediction, all comparisons are None. Nothing that a
    model wrote raises.

    >>> found = compare_programs("subtract(8181, 20454), divide(#0, 20454)", "divide(8181, 20454)")
    >>> found.logic_recall, found.logic_precision, found.operand_recall, found.program_match
    (0.5, 1.0, 0.6666666666666666, False)
    >>> compare_programs("subtract(8181, 20454), divide(#0, 20454)", ["percentage_change"]).logic_f1
    1.0
    """
    # The operations of a list of names; None for a program, whose tokens have parentheses,
    # digits or an end
    if not isinstance(predicted, list | tuple) or not all(
        isinstance(name, str) for name in predicted
    ):
        names: list[str] | None = None
    elif any(
        name.strip() == "EOF" or not name.strip().replace("_", "").isalpha() for name in predicted
    ):
        names = None
    else:
        names = named_operations(predicted)

    if _missing(gold):
        golden = None
    else:
        golden = parts_of(gold, table)

    if names is not None or _missing(predicted):
        mine = None
    else:
        mine = parts_of(predicted, table)

    unreadable = mine is not None and not mine.program.readable
    if unreadable:
        mine = None
    before = Before(earlier, table)
    chain = _reading(golden, mine, names, before.computed)
    step = chain
    if earlier:
        target, own = (None if parts is None else before.step(parts) for parts in (golden, mine))
        same = target is golden and own is mine
        same = same and (mine is None or before.extracted <= before.computed)
        if same:
            step = chain
        else:
            step = _reading(target, own, names, before.computed | before.extracted)

    both: dict[str, Any] = {}
    if mine is not None:
        # on the agent's own answers
        executed = execute(mine.program, table, [(turn[0], turn[-1]) for turn in earlier])
        value = None if isinstance(executed, str | ExecutionError) else executed
        both["execution_match"] = _execution_match(value, golden, table, expected)
        if stated is None:
            both["self_consistent"] = None
        else:
            # Whether the stated answer is the program's value, unchanged or in the unit it was
            # stated in
            if value is None:
                both["self_consistent"] = False
            elif type(stated) is float and type(value) is float and near(value, stated):
                both["self_consistent"] = True
            else:
                both["self_consistent"] = match(
                    value, stated, declared_unit=unit if isinstance(unit, str) else None
                ).declared

    both["unreadable"] = unreadable
    return Reasoning(**chain, **both, step=Reasoning(**step, **both))


def _missing(source: object) -> bool:
    """Whether there is no program at all."""
    return source is None or (isinstance(source, str | list | tuple | dict) and not source)


def _reading(
    golden: Parts | None,
    mine: Parts | None,
    names: list[str] | None,
    produced: frozenset[float],
) -> dict[str, Any]:
    """The existing fields of one reading."""
    if golden is None or not golden.program.readable:
        return {}
    operations = [step.operation for step in golden.steps]
    if names is not None:
        return _of_operations(operations, names)
    if mine is None:
        return {"operations": len(operations)}
    scores = _of_operations(operations, step_operations(mine.steps))

    # Recall and precision of the numbers, by absolute value; None if the golden program has
    # none.
    wanted = [
        number for number, constant in golden.literals if not constant and number not in produced
    ]
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

    scores["operand_recall"], scores["operand_precision"] = (
        shared / len(wanted) if wanted else None,
        shared / predicted if predicted else None,
    )
    # The share of golden sub-expressions that the prediction computes; a bare number, or value,
    # counts as a whole
    scores["partial_credit"] = scores["program_match"] = None
    if golden.whole is not None:
        scores["program_match"] = golden.whole == mine.whole
    if golden.keys is not None and golden.whole is not None:
        hits = 0
        subs = [golden.keys[at] for at in golden.counted] or [golden.whole]
        if mine.keys is not None:
            have = {*mine.keys, mine.whole}
            hits = sum(key in have for key in subs)
            bare = golden.program.number
            if not hits and bare is not None and bare.value is not None:
                hits = int(any(abs(bare.value) == size for size, _ in mine.literals))

        scores["partial_credit"] = hits / len(subs)

    return scores


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


_DECIMALS: Final = 5


def _execution_match(
    value: float | bool | None,
    golden: Parts | None,
    table: Table | None,
    expected: object,
) -> bool | None:
    """The official rule of execution: equal after rounding to 5 decimals, or the same yes or no."""
    known = False
    if (wanted := parse_value(expected)) is not None:
        known = True
        if value is not None and _same(
            value, wanted.number if wanted.boolean is None else wanted.boolean
        ):
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
