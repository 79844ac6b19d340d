"""Games of several rounds: who plays together, and what each may see of the last round. Pure: answers in, texts out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from karat.errors import BadOption
from karat.kinds.study.columns import PAYOFF
from karat.kinds.study.format import Answered, Arm, Rounds, StudyFile, Task
from karat.kinds.study.people import Person
from karat.kinds.study.prompts import prompt_text
from karat.numeric import ExecutionError, execute, parse_program
from karat.templates import fill

__all__ = [
    "check_payoff",
    "filled_role",
    "filled_round",
    "groups_of",
    "payoffs_of",
    "round_names",
    "round_task",
    "round_template",
    "seen_of_others",
]

Answers = Mapping[str, Any]


def groups_of(rounds: Rounds, persons: Sequence[Person]) -> list[list[Person]]:
    """Who plays together: as many groups as `group` asks for, whose sizes differ by one at most.

    67 persons in groups of 17 are 17, 17, 17 and 16. Without `group` everybody plays alone. With roles each group has
    one person for each of them; raises BadOption where some would be left.
    """
    if not persons:
        return []
    if rounds.roles and len(persons) % len(rounds.roles):
        roles = f"{len(rounds.roles)} roles ({', '.join(rounds.roles)})"
        raise BadOption("dataset.per_arm", f"{len(persons)} participants cannot be divided into groups of {roles}")
    count = len(persons) if rounds.size is None else -(-len(persons) // rounds.size)
    size, larger = divmod(len(persons), count)
    found, at = [], 0
    for number in range(count):
        end = at + size + (number < larger)
        found.append(list(persons[at:end]))
        at = end
    return found


def round_task(arm: Arm, number: int, role: str | None = None) -> Task:
    """What is shown and answered in a round (from 1), by who has the role where there are roles."""
    rounds = arm.rounds
    assert rounds is not None
    if role is not None and rounds.roles:
        own = rounds.roles[role]
        return Task(prompt=(own.first if number == 1 else None) or own.prompt, fields=own.fields)
    prompt = (rounds.first if number == 1 else None) or rounds.prompt or arm.prompt or rounds.first
    assert prompt is not None
    return Task(prompt=prompt, fields=rounds.fields or arm.fields or {})


def round_template(study: StudyFile, arm: Arm, profile: Mapping[str, Any], number: int, role: str | None = None) -> str:
    """The text of a round for one participant, with {{ last.… }} and {{ others.… }} still open where it has any.

    Raises BadOption where the material asks for what its round may not see.
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


def filled_round(template: str, fields: Mapping[str, Answered], *, own: Answers, others: Sequence[Answers]) -> str:
    """A round's template as it is asked: from one's own last answers and those of the others of the group.

    `others`: of the last round only, without one's own; who could not be read is left out.
    """
    last = {name: _plain(own.get(name, "unknown")) for name in fields}
    return fill(template, {"last": last, "others": seen_of_others(fields, others)}, place="rounds")


def filled_role(template: str, *, now: Mapping[str, Answers], last: Mapping[str, Answers]) -> str:
    """A role's template as it is asked: role → what was answered, of earlier roles in this round, of all in the last.

    `last` holds what each role earned, too, where there are payoffs.

    What could not be read is the word `unknown`.
    """
    seen = {role: {name: _plain(value) for name, value in answers.items()} for role, answers in now.items()}
    before = {role: {name: _plain(value) for name, value in answers.items()} for role, answers in last.items()}
    return fill(template, {**seen, "last": before}, place="rounds")


def payoffs_of(
    formulas: Mapping[str, str], fields: Mapping[str, Mapping[str, Answered]], answers: Mapping[str, Answers]
) -> dict[str, float | None]:
    """What each role earned in a round, from the answers of all roles in it; both `fields` and `answers` by role.

    A formula may use + - * / ^ and parentheses. A field with a number has that number as its value; an option has the
    value 1 if it was chosen, otherwise 0. None: an answer that the formula needs is missing, or the result is not
    finite.

    >>> roles = {
    ...     "a": {"offer": Answered(type="number")},
    ...     "b": {"takes": Answered(type="choice", options=["yes", "no"])},
    ... }
    >>> payoffs_of(
    ...     {"a": "(10 - {{ a.offer }}) * {{ b.takes.yes }}"}, roles, {"a": {"offer": 4.0}, "b": {"takes": "yes"}}
    ... )
    {'a': 6.0}
    """
    values = {
        role: {name: _counted(one, answers.get(role, {}).get(name)) for name, one in own.items()}
        for role, own in fields.items()
    }
    found: dict[str, float | None] = {}
    for role, formula in formulas.items():
        value = execute(parse_program(fill(formula, values, place=f"payoffs.{role}")))
        found[role] = value if isinstance(value, float) and math.isfinite(value) else None
    return found


def check_payoff(formula: str, fields: Mapping[str, Mapping[str, Answered]]) -> str:
    """What is wrong with the formula of a payoff; empty: nothing."""
    values = {
        role: {
            name: _counted(one, one.labels[0] if one.labels else 1.0)
            for name, one in own.items()
            if (one.type in {"number", "likert", "choice"})
        }
        for role, own in fields.items()
    }
    try:
        value = execute(parse_program(fill(formula, values, place="payoffs")))
    except BadOption as error:
        return str(error).partition(": ")[2]
    if isinstance(value, ExecutionError) and value.kind != "division_by_zero":
        return f"cannot be computed: {value.message} (numbers, + - * / ^ and parentheses)"
    return "gives yes or no, and must give a number" if isinstance(value, bool) else ""


def _counted(one: Answered, value: Any) -> Any:
    """An answer as a formula sees it: in parentheses where it is negative; `null`, which has no value, if missing."""
    if one.type == "choice":
        return {label: "null" if value is None else str(int(value == label)) for label in one.labels}
    if not isinstance(value, float):
        return "null"
    return repr(value) if value >= 0 else f"({value!r})"


def seen_of_others(fields: Mapping[str, Answered], others: Sequence[Answers]) -> dict[str, Any]:
    """What {{ others.… }} gives: n, and for each field mean, median, lowest and highest, or how many chose what.

    With one field its values stand at the top as well: {{ others.mean }}. What is not known,
    because nobody could be read, is the word `unknown`.

    >>> field = {"number": Answered(type="number", range=[0, 100])}
    >>> seen_of_others(field, [{"number": 10.0}, {"number": 25.0}, {"number": 25.5}])["mean"]
    20.17
    """
    found: dict[str, Any] = {"n": len(others)}
    for name, one in fields.items():
        values = [answers[name] for answers in others if answers.get(name) is not None]
        if one.type in {"number", "likert"}:
            found[name] = _numbers(values)
        elif one.type == "choice":
            chosen = Counter(values)
            found[name] = {label: chosen[label] for label in one.labels}
    if len(fields) == 1:
        only = found.get(next(iter(fields)), {})
        found = {**only, **found}
    return found


def round_names(arm: Arm, *, first: bool, role: str | None = None) -> list[str]:
    """What {{ … }} of a round's material may be, besides the names of every material."""
    roles = (arm.rounds.roles if arm.rounds is not None else None) or {}
    if role is not None and role in roles:
        earlier = list(roles)[: list(roles).index(role)]
        names = ["round", *(f"{one}.{name}" for one in earlier for name in roles[one].fields)]
        paid = (arm.rounds.payoffs if arm.rounds is not None else None) or {}
        before = [f"last.{one}.{name}" for one in roles for name in roles[one].fields]
        return names + ([] if first else before + [f"last.{one}.{PAYOFF}" for one in paid])
    if first or arm.rounds is None:
        return ["round"]
    fields = round_task(arm, 2).fields
    seen = seen_of_others(fields, [])
    names = ["round", *(f"last.{name}" for name in fields)]
    for name, value in seen.items():
        names += [f"others.{name}.{below}" for below in value] if isinstance(value, dict) else [f"others.{name}"]
    return names


def _numbers(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return dict.fromkeys(("mean", "median", "lowest", "highest"), "unknown")
    found = {"mean": fmean(values), "median": median(values), "lowest": min(values), "highest": max(values)}
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    """A number as people write it: two decimals, and none where it is whole."""
    if not isinstance(value, float):
        return ", ".join(map(str, value)) if isinstance(value, list) else value
    return int(value) if value == int(value) else round(value, 2)
