"""Games of several rounds: who plays together, and what each player sees of the last round.

Pure functions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from karat.errors import BadOption
from karat.templates import fill
from karat_studies.kinds.study.arithmetic import compute
from karat_studies.kinds.study.columns import PAYOFF
from karat_studies.kinds.study.format import Answered, Arm, Rounds, StudyFile, Task
from karat_studies.kinds.study.people import Person
from karat_studies.kinds.study.prompts import prompt_text

Answers = Mapping[str, Any]


def groups_of(rounds: Rounds, persons: Sequence[Person]) -> list[list[Person]]:
    """Who plays together: groups of up to `group` persons, whose sizes differ by one at most.

    67 persons in groups of 17 are 17, 17, 17 and 16. Without `group` everyone plays alone. With
    roles each group has one person per role; raises BadOption if some persons would be left over.
    """
    if not persons:
        return []
    if rounds.roles and len(persons) % len(rounds.roles):
        roles = f"{len(rounds.roles)} roles ({', '.join(rounds.roles)})"
        raise BadOption(
            "dataset.per_arm",
            f"{len(persons)} participants cannot be divided into groups of {roles}",
        )

    if rounds.size is None:
        count = len(persons)
    else:
        count = -(-len(persons) // rounds.size)

    size, larger = divmod(len(persons), count)
    groups, at = [], 0
    for number in range(count):
        end = at + size + (number < larger)
        groups.append(list(persons[at:end]))
        at = end

    return groups


def round_task(arm: Arm, number: int, role: str | None = None) -> Task:
    """The prompt and fields of a round (from 1), and of a role if there are roles."""
    rounds = arm.rounds
    assert rounds is not None
    if role is not None and rounds.roles:
        own = rounds.roles[role]
        return Task(prompt=(own.first if number == 1 else None) or own.prompt, fields=own.fields)

    prompt = (rounds.first if number == 1 else None) or rounds.prompt or arm.prompt or rounds.first
    assert prompt is not None
    return Task(prompt=prompt, fields=rounds.fields or arm.fields or {})


def round_template(
    study: StudyFile,
    arm: Arm,
    profile: Mapping[str, Any],
    number: int,
    role: str | None = None,
) -> str:
    """The text of a round for one participant, in which {{ last.… }} and {{ others.… }} are not yet
    filled.

    Raises BadOption if the material uses values that this round may not show.
    """
    task = round_task(arm, number, role)
    open_: dict[str, Any] = {}
    for name in round_names(arm, first=number == 1, role=role):
        *path, last = name.split(".")
        here = open_
        for part in path:
            here = here.setdefault(part, {})
        here[last] = f"{{{{ {name} }}}}"

    return prompt_text(study, arm, task, profile, open_ | {"round": number})


def filled_round(
    template: str,
    fields: Mapping[str, Answered],
    *,
    own: Answers,
    others: Sequence[Answers],
) -> str:
    """A round's template, filled with the member's own last answers and those of the rest of the
    group.

    `others`: answers of the last round, without the member's own and without those that could not
    be read.
    """
    last = {name: _plain(own.get(name, "unknown")) for name in fields}
    return fill(template, {"last": last, "others": seen_of_others(fields, others)}, place="rounds")


def filled_role(template: str, *, now: Mapping[str, Answers], last: Mapping[str, Answers]) -> str:
    """A role's template, filled with the answers of earlier roles in this round, and of all roles
    in the last.

    `last` also holds what each role earned, if there are payoffs.

    An answer that could not be read is shown as `unknown`.
    """
    seen = {}
    for role, answers in now.items():
        seen[role] = {name: _plain(value) for name, value in answers.items()}
    before = {}
    for role, answers in last.items():
        before[role] = {name: _plain(value) for name, value in answers.items()}
    return fill(template, {**seen, "last": before}, place="rounds")


def payoffs_of(
    formulas: Mapping[str, str],
    fields: Mapping[str, Mapping[str, Answered]],
    answers: Mapping[str, Answers],
) -> dict[str, float | None]:
    """What each role earned in a round, given the answers of all roles. `fields` and `answers` are
    by role.

    A formula may use + - * / ^ and parentheses. A field with a number has that number as its value;
    an option has the value 1 if it was chosen, otherwise 0. None: an answer that the formula needs
    is missing, or the result is not finite.

    >>> roles = {
    ...     "a": {"offer": Answered(type="number")},
    ...     "b": {"takes": Answered(type="choice", options=["yes", "no"])},
    ... }
    >>> payoffs_of(
    ...     {"a": "(10 - {{ a.offer }}) * {{ b.takes.yes }}"},
    ...     roles,
    ...     {"a": {"offer": 4.0}, "b": {"takes": "yes"}},
    ... )
    {'a': 6.0}
    """
    values = {
        role: {
            name: _counted(field, answers.get(role, {}).get(name)) for name, field in own.items()
        }
        for role, own in fields.items()
    }
    payoffs: dict[str, float | None] = {}
    for role, formula in formulas.items():
        filled = fill(formula, values, place=f"payoffs.{role}")
        if "null" in filled:
            value = math.nan
        else:
            value = compute(filled)

        payoffs[role] = value if math.isfinite(value) else None

    return payoffs


def check_payoff(formula: str, fields: Mapping[str, Mapping[str, Answered]]) -> str:
    """What is wrong with a payoff's formula; empty if nothing."""
    values = {}
    for role, own in fields.items():
        values[role] = {
            name: _counted(field, field.labels[0] if field.labels else 1.0)
            for name, field in own.items()
            if (field.type in {"number", "likert", "choice"})
        }

    try:
        compute(fill(formula, values, place="payoffs"))
    except BadOption as error:
        return str(error).partition(": ")[2]
    except ValueError as error:
        return str(error)

    return ""


def _counted(field: Answered, value: object) -> object:
    """An answer as it is put into a formula: in parentheses if negative; `null`, which has no
    value, if missing.
    """
    if field.type == "choice":
        found = {}
        for label in field.labels:
            if value is None:
                found[label] = "null"
            else:
                found[label] = str(int(value == label))

        return found

    if not isinstance(value, float):
        return "null"
    if value >= 0:
        return repr(value)
    return f"({value!r})"


def seen_of_others(fields: Mapping[str, Answered], others: Sequence[Answers]) -> dict[str, Any]:
    """What {{ others.… }} gives: n, and for each field mean, median, lowest and highest, or how
    many chose what.

    With one field its values are also at the top level: {{ others.mean }}. A value is `unknown`
    if no answer could be read.

    >>> field = {"number": Answered(type="number", range=[0, 100])}
    >>> seen_of_others(field, [{"number": 10.0}, {"number": 25.0}, {"number": 25.5}])["mean"]
    20.17
    """
    seen: dict[str, Any] = {"n": len(others)}
    for name, field in fields.items():
        values = []
        for answers in others:
            if answers.get(name) is not None:
                values.append(answers[name])

        if field.type in {"number", "likert"}:
            if not values:
                seen[name] = dict.fromkeys(("mean", "median", "lowest", "highest"), "unknown")
            else:
                summary = {
                    "mean": fmean(values),
                    "median": median(values),
                    "lowest": min(values),
                    "highest": max(values),
                }
                seen[name] = {name: _plain(value) for name, value in summary.items()}
        elif field.type == "choice":
            chosen = Counter(values)
            seen[name] = {label: chosen[label] for label in field.labels}

    if len(fields) == 1:
        only = seen.get(next(iter(fields)), {})
        seen = {**only, **seen}

    return seen


def round_names(arm: Arm, *, first: bool, role: str | None = None) -> list[str]:
    """The names that {{ … }} in a round's material may use, besides those of every material."""
    roles = arm.roles
    if role is not None and role in roles:
        earlier = list(roles)[: list(roles).index(role)]
        names = ["round", *(f"{other}.{name}" for other in earlier for name in roles[other].fields)]
        before = [f"last.{other}.{name}" for other in roles for name in roles[other].fields]
        return names + (
            [] if first else before + [f"last.{other}.{PAYOFF}" for other in arm.payoffs]
        )

    if first or arm.rounds is None:
        return ["round"]
    fields = round_task(arm, 2).fields
    seen = seen_of_others(fields, [])
    names = ["round", *(f"last.{name}" for name in fields)]
    for name, value in seen.items():
        if isinstance(value, dict):
            names += [f"others.{name}.{below}" for below in value]
        else:
            names += [f"others.{name}"]

    return names


def _plain(value: object) -> object:
    """A number as people write it: with two decimals, or none if it is whole."""
    if not isinstance(value, float):
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value

    if value == int(value):
        return int(value)
    return round(value, 2)
