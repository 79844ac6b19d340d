"""A question that ends with the form of its answer, as those of human studies do, answered in that form."""

from __future__ import annotations

import hashlib
import math
import random
import re

__all__ = ["filled_in"]

_FORM = re.compile(
    r"in this form\b[^\n:]{0,200}:[ \t]*\n(?P<lines>(?:[ \t]*[^\n:]{1,100}:[^\n]{0,2000}(?:\n|$)){1,100})"
)
_FROM_TO = re.compile(r"(?P<low>-?\d+(?:\.\d+)?) to \D?(?P<high>-?\d+(?:\.\d+)?)")
_LEAST = re.compile(r"(?P<low>-?\d+(?:\.\d+)?) or more\b")
_MOST = re.compile(r"(?P<high>-?\d+(?:\.\d+)?) or less\b")
_SPAN = 100.0  # of a number whose range has no end


def filled_in(question: str, seed: str) -> str | None:
    """One line for each of the form's, drawn by a hash of `seed`: the same each time. None: there is no form.

    >>> filled_in("A or B? End your answer with one line in this form:\\nchoice: A", "x")
    'choice: A'
    """
    forms = list(_FORM.finditer(question))
    if not forms:
        return None
    dice = random.Random(hashlib.blake2b(seed.encode(), digest_size=8).digest())
    lines = (line.partition(":") for line in forms[-1]["lines"].splitlines())
    return "\n".join(f"{name.strip()}: {_answer(wanted.strip(), dice)}" for name, _, wanted in lines)


def _answer(wanted: str, dice: random.Random) -> str:
    labels, in_order, _ = wanted.partition(" in your order")
    if in_order:
        ranked = labels.split(", ")
        return ", ".join(dice.sample(ranked, len(ranked)))
    if (span := _span(wanted)) is not None:
        return _between(*span, dice)
    options = [one for part in wanted.split(", ") for one in part.split(" or ") if one]
    return dice.choice(options) if len(options) > 1 or len(wanted.split()) == 1 else "Rehearsed, in three words."


def _span(wanted: str) -> tuple[float, float] | None:
    """The range that a number may have, as far as the form says it; None where no number is asked for."""
    found = next((one.groupdict() for pattern in (_FROM_TO, _LEAST, _MOST) if (one := pattern.search(wanted))), None)
    if found is None:
        return (1.0, _SPAN) if re.search(r"\bnumber\b", wanted) else None
    if "low" not in found:
        return float(found["high"]) - _SPAN, float(found["high"])
    low = float(found["low"])
    return low, float(found["high"]) if "high" in found else low + _SPAN


def _between(low: float, high: float, dice: random.Random) -> str:
    """A whole number where the range has two of them: it is right wherever a number is."""
    first, last = math.ceil(low), math.floor(high)
    return str(dice.randint(first, last)) if first < last else f"{(low + high) / 2:g}"
