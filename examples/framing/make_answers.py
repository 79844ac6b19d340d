"""Writes the recorded answers of this example, always the same: ``python make_answers.py [FOLDER]``.

No person and no model gave them. Each participant decides by a rule, prospect theory with the numbers of Tversky and
Kahneman (1992), J. Risk Uncertainty 5, 297-323: gains and losses are worth |x|^0.88, losses 2.25 times as much,
chances are bent by exponents of 0.61 (gains) and 0.69 (losses). `strength` says how far: at 0 a participant computes
expected values and has no accounts, at 1 the numbers are those of 1992, above 1 they are exaggerated. The logistic
rule on top, what a play is worth and how lives are refused were made up for this example; nothing is fitted to people.

The conditions are five such participants. `remembers` is of another kind: where it knows a problem again it chooses
with the shares that the paper prints, and where names and amounts are others it computes. Everybody else answers a
relabelled problem by the same rule as the original, since the rule looks at ratios alone.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SEED = 1981
PER_ARM = 60  # as in recorded.yaml
SENSITIVITY = 6.0  # how much a relative difference of two prospects decides
LAPSES = 0.03  # the share of answers that are drawn at random


class Design(NamedTuple):
    """A participant: how far the theory holds of them, and how they talk. Shares of answers; the rest are lines."""

    strength: float
    refuses: float = 0.0
    refuses_lives: float = 0.0  # where people may die
    unreadable: float = 0.0
    in_json: float = 0.0
    in_prose: float = 0.0
    remembers: bool = False


DESIGNS = {
    "empty": Design(strength=0.0, refuses=0.08, refuses_lives=0.6, in_json=0.3, in_prose=0.2),
    "human": Design(strength=0.5, refuses=0.02, refuses_lives=0.1, in_prose=0.3),
    "demographic": Design(strength=1.0, unreadable=0.02, in_prose=0.3),
    "background": Design(strength=1.6, refuses=0.03, unreadable=0.12, in_prose=0.6),
    "remembers": Design(strength=0.0, in_json=0.5, remembers=True),
}


class Prospect(NamedTuple):
    """An amount with its chance, else nothing. `stage`: the chance of an earlier stage, which is easily forgotten."""

    amount: float
    chance: float = 1.0
    stage: float = 1.0


Choices = tuple[str, ...]  # one a field

PAIRS = {  # arm: the option, the prospects of both, the other option
    "gain": ("A", Prospect(200), Prospect(600, 1 / 3), "B"),
    "loss": ("C", Prospect(-400), Prospect(-600, 2 / 3), "D"),
    "certain": ("A", Prospect(30), Prospect(45, 0.8), "B"),
    "two_stages": ("C", Prospect(30, stage=0.25), Prospect(45, 0.8, stage=0.25), "D"),
    "uncertain": ("E", Prospect(30, 0.25), Prospect(45, 0.2), "F"),
}
FIRST = ("A", Prospect(240), Prospect(1000, 0.25), "B")
SECOND = ("C", Prospect(-750), Prospect(-1000, 0.75), "D")
PRICES = {"cheap": 15, "dear": 125}

PRINTED: dict[str, tuple[Choices, float]] = {  # arm: a choice, and the share of people who made it
    "gain": (("A",), 0.72),
    "loss": (("D",), 0.78),
    "apart": (("A", "D"), 0.73),
    "together": (("BC",), 1.0),
    "certain": (("A",), 0.78),
    "two_stages": (("C",), 0.74),
    "uncertain": (("E",), 0.42),
    "lost_note": (("yes",), 0.88),
    "lost_ticket": (("yes",), 0.46),
    "cheap": (("yes",), 0.68),
    "dear": (("yes",), 0.29),
}
OPTIONS: dict[str, tuple[tuple[str, str], ...]] = {  # arm: the options of each field
    **{arm: ((one, other),) for arm, (one, _, _, other) in PAIRS.items()},
    "apart": (("A", "B"), ("C", "D")),
    "together": (("AD", "BC"),),
    **dict.fromkeys(("lost_note", "lost_ticket", "cheap", "dear"), (("yes", "no"),)),
}


def worth(prospect: Prospect, strength: float) -> float:
    """The value of the amount times the weight of its chance."""
    gain = prospect.amount >= 0
    value = abs(prospect.amount) ** (1 - 0.12 * strength) * (1.0 if gain else -1 - 1.25 * strength)
    chance = prospect.chance * prospect.stage ** (1 - min(strength, 1.0))
    bend = 1 - (0.39 if gain else 0.31) * strength
    weight = chance**bend / (chance**bend + (1 - chance) ** bend) ** (1 / bend)
    return float(value * weight)


def logistic(x: float) -> float:
    """A chance from log odds."""
    return 1 / (1 + math.exp(-x))


def chosen(pair: tuple[str, Prospect, Prospect, str], strength: float, draw: float) -> str:
    """One of the two options, by how far apart they are."""
    one, first, second, other = pair
    here, there = worth(first, strength), worth(second, strength)
    difference = (here - there) / ((abs(here) + abs(there)) / 2)
    return one if draw < logistic(SENSITIVITY * difference) else other


def decided(arm: str, strength: float, draw: Callable[[], float]) -> Choices:
    """What a participant chooses, by the rule."""
    if arm in PAIRS:
        return (chosen(PAIRS[arm], strength, draw()),)
    if arm == "together":
        return ("BC",)  # it wins more and loses less
    if arm == "apart":
        one_by_one = draw() < strength
        first, second = chosen(FIRST, strength, draw()), chosen(SECOND, strength, draw())
        return (first, second) if one_by_one else ("B", "C")
    if arm in PRICES:  # the same five dollars are less of a higher price
        odds = strength * 0.8 * math.log(math.sqrt(math.prod(PRICES.values())) / PRICES[arm])
    else:  # the evening is worth twice its price; a ticket, unlike money, is booked to it
        booked = 2**strength if arm == "lost_ticket" else 1.0
        odds = 3 * math.log(2 / booked)
    return ("yes" if draw() < logistic(odds) else "no",)


def spoken(choices: Choices, design: Design, draw: Callable[[], float]) -> str:
    """The answer in one of the forms in which agents answer."""
    names = ("choice",) if len(choices) == 1 else ("first", "second")
    how = draw()
    if how < design.in_json:
        return json.dumps(dict(zip(names, choices, strict=True)))
    said = list(zip(names, choices, strict=True))
    if how < design.in_json + design.in_prose:
        told = " and ".join(f"my {name} is {choice}" for name, choice in said)
        return f"I went back and forth for a while. In the end {told}."
    return "\n".join(f"{name}: {choice}" for name, choice in said)


def answer(condition: str, arm: str, draw: Callable[[], float], *, relabelled: bool) -> str:
    """All that a participant says."""
    design = DESIGNS[condition]
    if draw() < (design.refuses_lives if arm in ("gain", "loss") else design.refuses):
        return "As a language model I have no wishes of my own, and I would rather not choose."
    if draw() < design.unreadable:
        return "It depends on so much that one would have to know first. Both have something to be said for them."
    if design.remembers and not relabelled:
        choices, share = PRINTED[arm]
        if draw() >= share:
            choices = tuple(
                next(one for one in pair if one != choice) for pair, choice in zip(OPTIONS[arm], choices, strict=True)
            )
    elif draw() < LAPSES:
        choices = tuple(pair[int(draw() * 2)] for pair in OPTIONS[arm])
    else:
        choices = decided(arm, design.strength, draw)
    return spoken(choices, design, draw)


def rows(*, relabelled: bool) -> Iterator[dict[str, str]]:
    """One row a participant and condition."""
    for condition in DESIGNS:
        for arm in OPTIONS:
            for number in range(1, PER_ARM + 1):
                who = f"{arm}-{number:03}"
                draw = random.Random(f"{SEED}/{condition}/{who}/{relabelled}").random
                text = answer(condition, arm, draw, relabelled=relabelled)
                yield {"participant": who, "condition": condition, "text": text}


def main(folder: Path) -> None:
    """Both files: for the problems of the paper, and for the same in other names and amounts."""
    for name, relabelled in ("answers.jsonl", False), ("answers.relabelled.jsonl", True):
        lines = [json.dumps(row) + "\n" for row in rows(relabelled=relabelled)]
        (folder / name).write_text("".join(lines), encoding="utf-8", newline="\n")
        print(f"{name}: {len(lines)} answers")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
