"""The official scorers' verdict on two programs: the same rational function of the golden program's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

from karat.numeric.algebra import MAX_DEGREE, Form, Rational, combine, variable
from karat.numeric.official import OfficialStep, official_steps, official_tokens, step_index, well_formed
from karat.numeric.trees import ARITHMETIC, Program

__all__ = ["MAX_NESTING", "official_equivalent"]

MAX_NESTING = 190
"""Calls within calls; the official scorers hand a formula to Python, which refuses 200 nested parentheses."""


def official_equivalent(
    golden: Program | Sequence[object], predicted: Program | Sequence[object], dialect: Literal["finqa", "convfinqa"]
) -> bool:
    """Whether the official scorer calls the prediction right; where it would fail, it is not.

    The golden program is not asked to be well formed, the prediction is. Arguments are
    symbols by their spelling; a whole step is the symbol of a table operation, with the `|`
    before it that every step but the first has.
    """
    wanted, given = official_tokens(golden), official_tokens(predicted)
    if wanted is None:
        return False
    if dialect == "convfinqa" and len(wanted) == 1:
        return given is not None and len(given) == 1 and given[0] == wanted[0]
    steps = official_steps(wanted)
    known = [step for step in steps if step is not None]
    if not known or len(known) != len(steps):
        return False
    symbols = {symbol for step in known for symbol in _symbols(step)}
    if given is None or not well_formed(given):
        return False
    answers = _backward(official_steps(given), symbols)
    if not answers:
        return False
    left, right = _Reading(known).last(), _Reading(answers).last()
    return left is not None and right is not None and left.same(right)


def _symbols(step: OfficialStep) -> list[str]:
    if "table" in step.operation:
        return [step.text]
    return [argument for argument in (step.first, step.second) if "#" not in argument]


def _backward(steps: Sequence[OfficialStep | None], symbols: set[str]) -> list[OfficialStep] | None:
    """The steps, if each uses only these symbols and refers to none that is not before it."""
    found = []
    for at, step in enumerate(steps):
        if step is None or not symbols.issuperset(_symbols(step)):
            return None
        if "table" not in step.operation:
            for argument in (step.first, step.second):
                index = step_index(argument.strip("#")) if "#" in argument else -1
                if index is None or "#" in argument.strip("#") or index >= at:
                    return None
        found.append(step)
    return found


class _Reading:
    """The functions of one program's steps, each read when another asks for it."""

    def __init__(self, steps: Sequence[OfficialStep]) -> None:
        self._steps = steps
        self._forms: dict[int, Form | None] = {}
        self._open: set[int] = set()
        self._undefined = False  # something is divided by an identical zero: only the same formula is equal then

    def last(self) -> Form | None:
        """What the last step is."""
        at = len(self._steps) - 1
        form = self._form(at)
        high = any(side.degree > MAX_DEGREE for found in self._forms.values() if found for side in found.sides)
        if form is None or form == _UNDEFINED or not (high or self._undefined):
            return form
        return Form((), self._structure(at, {}))

    def _form(self, at: int) -> Form | None:
        if at in self._forms:
            return self._forms[at]
        if at in self._open or len(self._open) >= MAX_NESTING or not 0 <= at < len(self._steps):
            return None
        self._open.add(at)
        form = self._read(self._steps[at])
        self._open.remove(at)
        self._forms[at] = form
        return form

    def _read(self, step: OfficialStep) -> Form | None:
        if "table" in step.operation:
            return Form((_symbol(step.text),))
        left, right = self._argument(step.first), self._argument(step.second)
        if left is None or right is None or step.operation not in ARITHMETIC:
            return None
        if _UNDEFINED in {left, right} and step.operation != "greater":
            return _UNDEFINED
        if len(left.sides) != 1 or len(right.sides) != 1:
            return None
        if step.operation == "greater":
            return Form((*left.sides, *right.sides))
        if step.operation == "divide" and not left.sides[0].above and not right.sides[0].above:
            return _UNDEFINED
        found = combine(step.operation, left.sides[0], right.sides[0])
        self._undefined = self._undefined or found is None
        return Form((found or _NOTHING,))

    def _argument(self, text: str) -> Form | None:
        if "#" not in text:
            return Form((_symbol(text),))
        index = step_index(text)
        return None if index is None else self._form(index)

    def _structure(self, at: int, known: dict[int, bytes]) -> bytes:
        """A digest of the formula; what it refers to has been read before, so there is no circle."""
        if at not in known:
            step = self._steps[at]
            parts = [step.text.encode("utf-8", "surrogatepass")]
            if "table" not in step.operation:
                parts = [step.operation.encode()]
                for text in (step.first, step.second):
                    index = step_index(text) if "#" in text else None
                    shown = text.encode("utf-8", "surrogatepass")
                    part = shown if index is None else self._structure(index, known)
                    parts.append(blake2b(part, digest_size=32).digest())
            known[at] = blake2b(b"".join(parts), digest_size=32).digest()
        return known[at]


_UNDEFINED = Form((), b"0/0")  # which the official scorers find equal to itself
_NOTHING = Rational(1, 1, 0)


def _symbol(text: str) -> Rational:
    return Rational(variable("symbol " + text), 1, 1)
