"""When an answer is the golden one: the five matches, and four further readings."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Literal

from karat_conversations.numeric.values import (
    POWERS,
    Value,
    currencies,
    fold,
    parse_value,
    spelled,
    unit_power,
)

MATCHES = (
    *("numerical", "soft", "unit_agnostic", "sign_agnostic", "general", "exact"),
    *("declared", "printed", "scale_and_sign", "right"),
)
RIGHT_RULES = (
    "numerical",
    "soft",
    "unit_agnostic",
    "sign_agnostic",
    "general",
    "exact",
    "declared",
)
"""The matches that may decide whether a turn is right; the same yes or no is right by each of
them.
"""
RULES = "karat-numeric/2"
"""The version of these rules: numbers of two versions are never compared silently.

Version 1 did not know the golden unit: a declared unit scaled every answer, so `1577`, unit
million, was not 1577.
"""

Side = Literal["expected", "actual", "both"]

# A tie in decimal arithmetic must be inside an inclusive bound and outside a strict one, although
# float64 may miss it by some 1e-16 on either side.
_GUARD = 1e-9
_NEAR = 0.001 * (1 - _GUARD)
_SHARE = 0.01 * (1 + _GUARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """How an answer compares with the golden one; if a side is unreadable, all False but `general`
    of equal texts.
    """

    numerical: bool  # the primary one: off by less than 0.001, or by at most 1 %
    soft: bool  # off by at most 1 %; a golden 0 needs exactly 0
    unit_agnostic: bool  # numerical, or within 1 % of 100 times or a hundredth of the golden number
    sign_agnostic: bool  # numerical on the absolute values
    # numerical, the same boolean, the same text, or the bare number of a side written with %
    general: bool
    # equal after rounding to 5 decimals, or the same boolean: the official execution rule
    exact: bool
    scale_and_sign: bool  # unit_agnostic on the absolute values
    # numerical or the same boolean, in the unit that the agent gave and in that of the golden
    # answer
    declared: bool
    printed: bool  # rounds, half to even, to the golden number as printed; or the same boolean
    # numerical or the same boolean: what counts in conversation accuracy, diagnosis and cost
    right: bool
    unreadable: Side | None  # which side could not be read; None: both could


def match(
    expected: object,
    actual: object,
    *,
    declared_unit: str | None = None,
    golden_unit: str | None = None,
    printed: object | None = None,
) -> Matches:
    """How an answer compares with the golden one, both read by `parse_value`.

    `declared_unit` is the unit that the agent gave separately from its answer, unless the answer
    has its own, such as `12%` or `3 million`; `golden_unit` is the unit that the dataset states for
    the golden number. With it, the answer is compared in that unit: for 1577, unit million, `1577
    million`, `1.577 billion` and `1577` are right, `1.577 million` is not. Without it, the answer
    is right as it stands or scaled by its unit; `percent` (also `%`, percentage, percentage points)
    likewise, but as it stands only if the golden answer was printed without %. A currency other
    than the golden one is wrong; any other unit has scale 1. `printed` is the golden answer as
    printed, if `expected` is another form of it; the default is `expected`, numbers in their
    shortest spelling (257.0 has no decimals).

    Bounds are those of exact decimal arithmetic: 0.5 against 0.505 is within 1 %, 0 against 0.001
    is not less than 0.001 apart. Booleans match only booleans, never a number. `unreadable` names a
    side that cannot be read; then only the same text matches, in `general`.

    >>> found = match(0.14136, "14.1", declared_unit="percent")
    >>> found.numerical, found.unit_agnostic, found.declared
    (False, True, True)
    >>> match(1577, "1.577", declared_unit="billion", golden_unit="million").declared
    True
    >>> match("3.97%", 3.97).general, match(5, "five").unreadable
    (True, 'actual')
    """
    e = parse_value(expected)
    a = parse_value(actual)
    if e is None or a is None:
        same = same_text(expected, actual)
        if e is None and a is None:
            side: Side = "both"
        elif e is None:
            side = "expected"
        else:
            side = "actual"

        return Matches(
            numerical=False,
            soft=False,
            unit_agnostic=False,
            sign_agnostic=False,
            general=same,
            exact=False,
            scale_and_sign=False,
            declared=False,
            printed=False,
            right=False,
            unreadable=side,
        )

    form = expected if printed is None else printed
    if printed is not None:
        p = parse_value(printed)
    else:
        p = e
    same = e.boolean is not None and e.boolean is a.boolean
    x = e.number
    y = a.number
    numerical = near(x, y)
    without_sign = numerical or near(abs(x), abs(y))
    right = numerical or same
    percentage = bare(x, y, e_percent=e.percent, a_percent=a.percent)
    return Matches(
        numerical=numerical,
        soft=close(x, y),
        unit_agnostic=numerical or scaled(x, y),
        sign_agnostic=without_sign,
        general=right or percentage or same_text(expected, actual),
        exact=round(x, 5) == round(y, 5) or same,
        scale_and_sign=without_sign or scaled(abs(x), abs(y)),
        declared=same or _declared(e, a, p, declared_unit=declared_unit, golden_unit=golden_unit),
        printed=prints_as(form, p, a),
        right=right,
        unreadable=None,
    )


def right_by(values: Mapping[str, Any], rule: str) -> Any:
    """Whether turns are right by one of `RIGHT_RULES`. `values`: match → bool, or a column of 1, 0
    and NaN.

    >>> right_by({"numerical": False, "declared": True, "right": False}, "declared")
    True
    """
    chosen = values[rule]
    right = values["right"]
    if chosen is None or isinstance(chosen, bool):
        if chosen is None:
            return chosen
        return chosen or bool(right and not values["numerical"])

    same = (right == 1) & (values["numerical"] == 0)  # the same yes or no, not a match of numbers
    return chosen * ~same + same


def near(e: Any, a: Any) -> Any:
    """`numerical`, for floats or arrays: |a−e| < 0.001, or |a−e| ≤ 0.01·|e| with e ≠ 0.

    With e = 0 the second part requires a = 0, which the first one covers. NaN is near nothing.
    """
    off = abs(a - e)
    return (off < _NEAR) | (off <= _SHARE * abs(e))


def close(e: Any, a: Any) -> Any:
    """`soft`, for floats or arrays: |a−e| ≤ 0.01·|e|."""
    return abs(a - e) <= _SHARE * abs(e)


def scaled(e: Any, a: Any) -> Any:
    """|a−100e| ≤ 0.01·|100e| or |a−e/100| ≤ 0.01·|e/100|, for floats or arrays.

    The first is written with a/100, since 100e may overflow. e = 0 needs no exception: it requires
    a = 0, which is numerical already.
    """
    return close(e, a / 100) | close(e / 100, a)


def bare(e: Any, a: Any, *, e_percent: Any, a_percent: Any) -> Any:
    """Whether one side of two floats or arrays was written with %, and the other is its bare
    number.
    """
    wanted = e * (1 + 99 * e_percent)
    got = a * (1 + 99 * a_percent)
    return (e_percent != a_percent) & (abs(wanted) < math.inf) & near(wanted, got)


def same_text(expected: object, actual: object) -> bool:
    """Whether both are non-empty texts, equal except for case and spaces."""
    if not (isinstance(expected, str) and isinstance(actual, str)):
        return False
    text = fold(expected)
    return text != "" and text == fold(actual)


def prints_as(form: object, p: Value | None, a: Value) -> bool:
    """Whether the answer, rounded half to even to the decimals of the printed golden answer, equals
    it.

    Decided in decimal arithmetic: 0.125 prints as 12% and not as 13%, 2.675 as 2.68. Decimals count
    before the printed unit: 10,460,000 prints as 10.5 million. Yes and no print as themselves. `p`
    is the value of `form`.
    """
    if p is None or p.boolean is not None or a.boolean is not None:
        return p is not None and p.boolean is not None and p.boolean is a.boolean
    if p.number == a.number:
        return True
    if isinstance(form, str):
        parts = spelled(form)
    else:
        parts = None

    try:
        stated = Decimal(parts.digits if parts else repr(p.number))
        if parts:
            step = stated
        elif stated % 1:
            step = stated.normalize()
        else:
            step = Decimal(1)

        number = _EXACT.scaleb(Decimal(repr(a.number)), -(parts.power if parts else 0))
        return bool(_EXACT.quantize(number, step) == stated)
    except InvalidOperation:  # more decimals than any float64 has: nothing is rounded away
        return False


_EXACT = Context(prec=800, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])


def _declared(
    e: Value,
    a: Value,
    p: Value | None,
    *,
    declared_unit: str | None,
    golden_unit: str | None,
) -> bool:
    texts = [e.text, golden_unit or "", p.text if p is not None else ""]
    if another_currency(texts, [a.text, declared_unit or ""]):
        return False
    own = "percent" if a.percent else a.unit
    if own is None:
        power = unit_power(declared_unit)
        plain = a.number
    else:
        power = POWERS[own]
        plain = shifted(a.number, -POWERS[own])

    if own is not None:
        scaled_number = a.number
    else:
        scaled_number = shifted(a.number, power or 0)

    percent_printed = p is not None and p.percent  # then the golden number is a share
    if e.percent or e.unit or percent_printed:
        golden_power = None
    else:
        golden_power = unit_power(golden_unit)

    if golden_power is None:
        as_it_stands = not (percent_printed and power == POWERS["percent"])
        return bool(near(e.number, scaled_number) or (as_it_stands and near(e.number, plain)))

    in_golden_unit = shifted(plain, (power or 0) - golden_power)
    return bool(near(e.number, in_golden_unit) or (power is None and near(e.number, plain)))


def shifted(number: Any, power: int) -> Any:
    """The number times a power of ten."""
    if power >= 0:
        return number * 10.0**power
    return number / 10.0**-power


def another_currency(golden: Iterable[str], answer: Iterable[str]) -> bool:
    """Whether both name a currency, and cannot mean the same one."""
    wanted = frozenset().union(*map(currencies, golden))
    if wanted:
        given = frozenset().union(*map(currencies, answer))
    else:
        given = wanted

    return bool(wanted and given and wanted.isdisjoint(given))


def null_answers(
    golden: Sequence[object], conversations: Sequence[Hashable]
) -> dict[str, list[float | bool | None]]:
    """The answers that five trivial strategies give to the same questions, in order; nothing is
    random.

    `zero` and `one` always answer 0 and 1. `sign_flipped` answers the golden number with the other
    sign, and no for yes; `times_100` a hundred times the golden number. `another_turn` answers with
    the golden answer of the previous turn (the first turn: of the last one); in a conversation of
    one turn, of the previous question. None if the golden answer does not allow this: it cannot be
    read, has no scale (yes and no), or is the only one.

    >>> null_answers([0.5, "10%"], ["a", "a"])["another_turn"]
    [0.1, 0.5]
    """
    if len(golden) != len(conversations):
        raise ValueError(
            f"conversations: must be as many as golden answers, {len(golden)}, got "
            f"{len(conversations)}"
        )

    values = [parse_value(answer) for answer in golden]
    answers: list[float | bool | None] = []
    for value in values:
        if value is None:
            answers.append(None)
        else:
            answers.append(value.number if value.boolean is None else value.boolean)

    # For each turn, the place of the previous one in its conversation, cyclically
    last = {conversation: at for at, conversation in enumerate(conversations)}
    seen: dict[Hashable, int] = {}
    others: list[float | bool | None] = []
    for at, conversation in enumerate(conversations):
        other = seen.get(conversation, last[conversation])
        if other == at:  # its only turn
            other = (at or len(conversations)) - 1
        others.append(None if other == at else answers[other])
        seen[conversation] = at

    return {
        "zero": [0.0] * len(values),
        "one": [1.0] * len(values),
        "sign_flipped": [
            None if value is None else -value.number if value.boolean is None else not value.boolean
            for value in values
        ],
        "times_100": [
            (None if value is None or value.boolean is not None else 100 * value.number)
            for value in values
        ],
        "another_turn": others,
    }
