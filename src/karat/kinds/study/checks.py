"""Every fault of a study whose parts can be read: arms, materials, findings, tests, SQL."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat.documents.nodes import Node, Place, fault_at
from karat.documents.validation import shown
from karat.errors import BadOption, Fault, did_you_mean
from karat.kinds.study.columns import arms_of, column_type, fields_needed, own_columns, responses_types, shape_of_data
from karat.kinds.study.experiments import Response, data_of_each
from karat.kinds.study.format import Answered, Arm, Groups, Relabelled, Rounds, StudyFile, Task, Test, level_name
from karat.kinds.study.numbers import Numbers, check_numbers
from karat.kinds.study.prompts import ANSWER_FORM, forms_in, known_names
from karat.kinds.study.rounds import check_payoff, round_names, round_task
from karat.kinds.study.sides import columns_of, group_rows
from karat.templates import names

if TYPE_CHECKING:
    from karat.sql import Shape

__all__ = ["Checked", "check"]

_PICKS = 6  # answers that the other fields are given, one after another
Case = tuple[str, tuple[str, ...], int]  # arm, the fields that could not be read, which answers the others have


def counted_unread(study: StudyFile, tests: Sequence[Test], shape: Shape) -> list[str]:
    """For each test what is wrong, "" for nothing: its measure must be NULL where a needed answer is.

    Each person is alone in the experiment, so that no other's answers are in the measure.
    """
    cases = [list(_cases(study, test, fields_needed(study, test, shape))) for test in tests]
    every = list(dict.fromkeys(case for own in cases for case in own))
    people = [[_person(study, case)] for case in every]
    try:
        data = dict(zip(every, data_of_each(study, people), strict=True)) if people else {}
    except BadOption as error:
        return [f"where an answer could not be read, {error}"] * len(tests)
    return [
        next((fault for case in own if (fault := _counted(test, case, data[case].columns))), "")
        for test, own in zip(tests, cases, strict=True)
    ]


def _cases(study: StudyFile, test: Test, needed: Sequence[str]) -> Iterator[Case]:
    for arm in arms_of(study, test, needed):
        fields = study.arms[arm].answered
        must = [name for name in needed if name in fields and not fields[name].optional]
        if not must:
            continue
        yield arm, tuple(fields), 0
        picks = min(_PICKS, max(len(one.labels) or 2 for one in fields.values()))
        yield from ((arm, (name,), pick) for name in must for pick in range(picks) if len(fields) > 1)


def _person(study: StudyFile, case: Case) -> Response:
    arm, gaps, pick = case
    values = {name: _answer(one, pick) for name, one in study.arms[arm].answered.items() if name not in gaps}
    given = study.persons[0] if study.persons else {}
    profile = {name: given.get(name, _first(study.participants.profile.get(name))) for name in study.attributes}
    game = study.arms[arm].rounds is not None
    return Response(
        participant="1", arm=arm, profile=profile, values=values, group="1" if game else None, round=1 if game else None
    )


def _first(values: Any) -> Any:
    return next(iter(values), None) if isinstance(values, (Mapping, list)) else values


def _answer(one: Answered, pick: int) -> float | str | list[str]:
    labels = list(one.labels)
    if one.type == "choice":
        return labels[pick % len(labels)]
    if one.type == "rank":
        return labels[pick % len(labels) :] + labels[: pick % len(labels)]
    if one.type == "text":
        return "words"
    low, high = one.range or (None, None)
    least = low if low is not None else min(0.0, high or 0.0)
    return (high if high is not None else least + 1) if pick % 2 else least


def _counted(test: Test, case: Case, columns: Mapping[str, Sequence[Any]]) -> str:
    named = [name for name in columns_of(test) if test.groups is None or name not in test.cells[0][0]]
    if any(name not in columns for name in columns_of(test)):
        return ""
    rows = [int(at) for group in group_rows(test, columns) for at in group]
    rows = rows if test.groups is not None else list(range(len(columns[test.measure])))
    if not rows or not all(
        columns[name][at] is not None and not (isinstance(columns[name][at], float) and math.isnan(columns[name][at]))
        for name in named
        for at in rows
    ):
        return ""  # a person may give a row for each of several fields: then one of them is NULL
    arm, gaps, _ = case
    value = columns[test.measure][rows[0]]
    counted_as = str(value).lower() if isinstance(value, bool) else shown(value)
    lacking = ", ".join(f"'{name}'" for name in gaps)
    return (
        f"an answer that could not be read counts as {counted_as}: '{test.measure}' of arm '{arm}' without {lacking}; "
        "in `derive` it must be NULL there"
    )


_GROUPS = {  # how many levels a kind compares; None: any number from two on
    "ttest_ind": 2, "welch": 2, "mannwhitney": 2, "variance_ratio": 2, "interaction": 2, "anova": None,
    "contingency": None,
}  # fmt: skip
_UNDIRECTED = {"equal", "different"}


class Found(Protocol):
    """Takes faults and notes."""

    root: Node
    notes: list[str]

    def fault(self, place: Place, message: str) -> None: ...


def check_test(
    found: Found, study: StudyFile, test: Test, *, place: Place, shape: Shape | None, arms: Sequence[str]
) -> None:
    """Every fault of one test. `shape`: what `derive` gives, where that was asked; `arms`: the names of all."""
    good = _check_groups(found, study, test, place, shape, arms)
    good &= _check_columns(found, test, place, shape, reduced=study.reducer is not None)
    if study.reducer is not None and test.needs is None:
        found.fault(place, "needs is missing: what the reducer makes its columns of cannot be seen")
    for at, name in enumerate(test.needs or ()):
        if name not in study.fields:
            found.fault((*place, "needs", at), f"no arm has a field '{name}'{did_you_mean(name, study.fields)}")
    found.notes.extend(f"{test_label(found.root, place)}: {note}" for note in _of_design(study, test, shape))
    if test.use is not None and test.reason is None:
        found.fault((*place, "use"), "needs a `reason`: why the published numbers do not all hold")
    if test.expect not in _UNDIRECTED and (test.outcomes is not None or len(test.cells) > 2):
        found.fault(
            (*place, "expect"),
            f"must be 'equal' or 'different', got '{test.expect}': several groups or outcomes have no direction",
        )
        good = False
    if not good:
        return
    numbers = Numbers(test=test, arms=study.arms, root=found.root, place=place)
    check_numbers(numbers)
    _check_n(numbers, study, shape)
    for where, message in numbers.faults:
        found.fault(where, message)
    found.notes.extend(f"{test_label(found.root, place)}: {note}" for note in numbers.notes)


def _of_design(study: StudyFile, test: Test, shape: Shape | None) -> Iterator[str]:
    """What is not wrong, and is seldom meant."""
    if test.kind == "ttest_one" and test.against is None:
        yield f"'{test.measure}' is compared with 0; `against` says with which number"
    if test.groups is None or test.kind not in _GROUPS:
        return
    made_of: set[str] = set()
    for column in (test.groups.column, *(test.factors or {})):
        made_of |= {column} if shape is None else set(shape.sources.get(column, {column}))
    again = {"arm"} if study.design == "within" else {"round"} if study.plays else set()
    if again & made_of:
        yield (
            f"the same people are in each of its groups, and a {test.kind} takes their answers as those of different "
            "people; a column for each and ttest_paired or wilcoxon takes them as pairs"
        )


def test_label(root: Node, place: Place) -> str:
    """The finding and the test, as the file calls them."""
    named = [root.get(*place[:2], "sub_study"), root.get(*place[:2], "id"), root.get(*place, "id")]
    return " ".join(str(one.value) for one in named if one is not None and one.value)


def _check_groups(
    found: Found, study: StudyFile, test: Test, place: Place, shape: Shape | None, arms: Sequence[str]
) -> bool:
    wanted = _GROUPS.get(test.kind, 1)
    groups = test.groups
    if groups is None:
        if wanted != 1:
            found.fault(place, f"groups is missing: what a {test.kind} compares")
        return wanted == 1
    count = len(groups.levels)
    good = True
    if (wanted is None and count < 2) or (wanted is not None and count != wanted):
        few = "two or more levels" if wanted is None else f"{wanted} level{'s' if wanted > 1 else ''}"
        found.fault((*place, "groups", "levels"), f"a {test.kind} takes {few}, got {count}")
        good = False
    if len(set(groups.names)) < count:
        found.fault((*place, "groups", "levels"), "a level stands twice")
        good = False
    columns = [((*place, "groups", "levels"), groups.column, groups.names)]
    columns += [
        ((*place, "factors", name), name, tuple(map(level_name, levels)))
        for name, levels in (test.factors or {}).items()
    ]
    for where, column, known in columns:
        possible = _possible(study, column, arms, shape)
        for name in known:
            if possible is not None and name not in possible:
                found.fault(where, f"'{column}' is never '{name}'{did_you_mean(name, possible)}")
                good = False
    return _check_factors(found, test, groups, place) and good


def _check_factors(found: Found, test: Test, groups: Groups, place: Place) -> bool:
    """The other columns of a factorial design."""
    factors, wrong = test.factors or {}, ""
    if factors and test.statistic_kind != "anova":
        wrong = f"are the other columns of an anova or an interaction; this is a {test.kind}"
    elif groups.column in factors:
        wrong = f"'{groups.column}' is the column of `groups` already: name the other columns of the design"
    elif any(len({level_name(level) for level in levels}) < len(levels) for levels in factors.values()):
        wrong = "a level stands twice"
    elif test.kind == "interaction" and [len(levels) for levels in factors.values()] != [2]:
        wrong = (
            "an interaction is the contrast of four cells: one other column with two levels; "
            "of a larger design, test the contrasts that the claim is about"
        )
    if wrong:
        found.fault((*place, "factors"), wrong)
    return not wrong


def _possible(study: StudyFile, column: str, arms: Sequence[str], shape: Shape | None) -> list[str] | None:
    """The values that a column can have; None where that cannot be told."""
    if shape is not None and column in shape.sources and column not in shape.sources[column]:
        made = shape.types.get(column)  # by derive, perhaps over a column of the same name
        return ["true", "false"] if made == "BOOLEAN" else None
    if column == "arm":
        return list(arms)
    attribute = study.participants.profile.get(column)
    if isinstance(attribute, dict):
        return list(attribute)
    options = [label for arm in study.arms.values() for name, one in arm.answered.items() if name == column
               for label in one.labels]  # fmt: skip
    return list(dict.fromkeys(options)) or None


def _check_columns(found: Found, test: Test, place: Place, shape: Shape | None, *, reduced: bool) -> bool:
    named: list[tuple[Place, str]] = [((*place, "measure"), test.measure)]
    if isinstance(test.against, str):
        named.append(((*place, "against"), test.against))
    if test.groups is not None:
        named.append(((*place, "groups", "column"), test.groups.column))
        named += [((*place, "factors", name), name) for name in test.factors or {}]
    good = True
    if test.kind in {"correlation", "spearman"} and not isinstance(test.against, str):
        found.fault(place, "against is missing: the second column of a correlation")
        good = False
    if test.kind == "ttest_paired" and test.against is None:
        found.fault(place, "against is missing: the column, or the number, that each answer is compared with")
        good = False
    if test.outcomes is not None and test.kind != "contingency":
        found.fault((*place, "outcomes"), f"are for contingency; this is a {test.kind}")
    if shape is None or reduced:
        return good
    for where, name in named:
        if name not in shape.types:
            found.fault(where, f"derive gives no column '{name}'{did_you_mean(name, shape.types, listing=False)}")
            good = False
    kind = shape.types.get(test.measure)
    if kind is not None and test.outcomes is None and kind.startswith(("VARCHAR", "ENUM")):
        found.fault((*place, "measure"), f"'{test.measure}' is text; make it true or false, or a number, in `derive`")
        good = False
    return good


def _check_n(numbers: Numbers, study: StudyFile, shape: Shape | None) -> None:
    """Human n against the arms: each level's, or all together.

    Where a person gives several rows, n is a multiple of the people, and the file says why.
    """
    test, needed = numbers.test, fields_needed(study, numbers.test, shape)
    levels = [numbers.test.human.levels.get(name) for name in (test.groups.names if test.groups else ())]
    if test.groups is not None and test.groups.column == "arm":
        for name, level in zip(test.groups.names, levels, strict=True):
            own = study.arms[name].people_with(needed) if name in study.arms else None
            n = level.n if level is not None and level.n is not None else test.human.n if len(levels) == 1 else None
            if own is not None and n is not None and not _fits(test, n, {own}, {_groups_in(study, name)}):
                numbers.doubt(f"n is {n}, arm '{name}' has {own} people", name, "n", key="n_reason")
        return
    if shape is None and test.measure not in responses_types(study) and test.needs is None:
        return  # whose answers it is made of is not known
    together = [level.n for level in levels if level is not None and level.n is not None]
    n = sum(together) if together and len(together) == len(levels) else test.human.n
    arms = arms_of(study, test, needed)
    sizes = [size for name in arms if (size := study.arms[name].people_with(needed)) is not None]
    if n is None or len(sizes) < len(arms) or not sizes:
        return
    people = {sum(sizes), max(sizes)} if study.design == "within" else {sum(sizes)}
    if not _fits(test, n, people, {sum(_groups_in(study, name) for name in arms)}):
        message = f"n is {n} in all, the arms with these answers have {sum(sizes)} people; name its answers in `needs`"
        numbers.doubt(message, key="n_reason")


def _fits(test: Test, n: int, people: set[int], groups: set[int]) -> bool:
    """Whether n counts the people, or with a reason groups of them or each of them several times."""
    return n in people or (test.reason is not None and (n in groups or any(n % one == 0 for one in people)))


def _groups_in(study: StudyFile, arm: str) -> int:
    """How many groups play in an arm; 0 where nobody plays."""
    rounds, n = study.arms[arm].rounds, study.arms[arm].n
    return -(-n // rounds.size) if rounds is not None and rounds.size is not None and n is not None else 0


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHORT = re.compile(r"\w[\w.-]{0,99}\Z")  # ids of samples and files of runs begin with it
_CLOSED = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MOST = 1e15  # of a number in a profile


class Checked(msgspec.Struct):
    """Faults with their lines, and notes: what cannot be checked."""

    root: Node
    faults: list[Fault] = []
    notes: list[str] = []

    def fault(self, place: Place, message: str) -> None:
        """Notes a fault."""
        self.faults.append(fault_at(self.root, place, message))


def check(
    study: StudyFile, tests: Sequence[tuple[Place, Test]], *, node: Node, whole: bool, sql: bool, arms: Sequence[str]
) -> Checked:
    """Every fault that needs more than one part to be seen.

    `whole`: top, participants and arms could all be read; `arms`: the names of all, also of those
    that could not; `sql`: ask the SQL engine what `derive` gives.
    """
    found = Checked(root=node)
    if study.study and not _SHORT.match(study.study):
        found.fault(("study",), f"must be a short name of letters, digits, _, . and -, got {shown(study.study)}")
    for name, arm in study.arms.items():
        if arm.rounds is not None and arm.rounds.roles:
            _check_roles(found, study, arm, ("arms", name), whole=whole)
        else:
            _check_arm(found, study, name, arm, whole=whole)
    _check_types(found, study)
    _check_people(found, study)
    columns_hold = not any(re.search(r"\.(fields|profile)\b", fault.place) for fault in found.faults)
    _check_ids(found, study)
    shape = _shape(found, study) if sql and columns_hold else None
    for place, test in tests:
        check_test(found, study, test, place=place, shape=shape, arms=arms if not whole else tuple(study.arms))
    if whole and shape is not None and study.reducer is None and not found.faults:
        unread = counted_unread(study, [test for _, test in tests], shape)
        labels = [test_label(node, place) for place, _ in tests]
        found.notes += [f"{label}: {why}" for label, why in zip(labels, unread, strict=True) if why]
    if whole and shape is not None and len(tests) == len(study.tests):
        used = {arm for _, test in tests for arm in arms_of(study, test, fields_needed(study, test, shape))}
        found.notes += [f"arms.{name}: no test looks at its participants" for name in study.arms if name not in used]
    return found


def _shape(found: Checked, study: StudyFile) -> Shape | None:
    try:
        shape = shape_of_data(study)
    except BadOption as error:
        found.fault(("derive",), str(error).partition(": ")[2])
        return None
    for why in shape.changing:
        found.fault(("derive",), f"{why}: the same answers must give the same numbers")
    return shape


def _check_arm(found: Checked, study: StudyFile, name: str, arm: Arm, *, whole: bool) -> None:
    place: Place = ("arms", name)
    game = arm.rounds is not None and (arm.rounds.prompt is not None or arm.rounds.first is not None)
    if (arm.prompt is None) == (arm.tasks is None) and not (game and arm.tasks is None):
        found.fault(place, "needs either `prompt` with `fields`, or `tasks`")
        return
    if arm.rounds is not None and arm.tasks is not None:
        found.fault((*place, "tasks"), "a game has one prompt a round, and no tasks")
        return
    if arm.tasks is not None and arm.fields is not None:
        found.fault((*place, "fields"), "belongs to each of the tasks")
    if study.participants.per_arm == "human" and arm.n is None:
        found.fault(place, "n is missing: how many people there were (participants.per_arm is 'human')")
    rounds = arm.rounds
    seen: set[str] = set()
    for at, task in enumerate(arm.shown):
        here = (*place, "tasks", at) if arm.tasks is not None else place
        fields = (rounds.fields if rounds is not None else None) or task.fields
        for twice in seen & set(task.fields):
            found.fault((*here, "fields", twice), "another task of the arm has a field of this name")
        seen |= set(task.fields)
        _check_fields(found, study, (*here, "fields"), fields)
        if arm.tasks is not None:
            _check_relabelled(found, task.relabel, fields, (*here, "relabel", "fields"))
        if rounds is None:
            known = known_names(study, arm, task) if whole else None
            _check_material(found, study, arm, task, (*here, "prompt"), known=known)
    _check_relabelled(found, arm.relabel, arm.answered, (*place, "relabel", "fields"))
    if rounds is not None:
        _check_rounds(found, study, arm, place, whole=whole)


def _check_roles(found: Checked, study: StudyFile, arm: Arm, place: Place, *, whole: bool) -> None:
    """A game in which each member of a group has a role: what one answers may be shown to those who are asked later."""
    rounds, here = arm.rounds, (*place, "rounds", "roles")
    assert rounds is not None
    roles = rounds.roles or {}
    if any((arm.tasks, arm.shown, rounds.prompt, rounds.first, rounds.fields, rounds.group)):
        found.fault(here, "each role has its own prompt and fields, and a group one of each: leave out the others")
    if arm.relabel is not None:
        found.fault((*place, "relabel"), "does not change roles: leave it out")
    if len(roles) < 2:
        found.fault(here, "a game has two roles or more")
    size = arm.n if study.participants.per_arm == "human" else study.participants.per_arm
    if size is None:
        found.fault(place, "n is missing: how many people there were (participants.per_arm is 'human')")
    elif int(size) % len(roles):
        found.fault(place, f"{size} participants cannot be divided into groups of {len(roles)} roles")
    twice = Counter(name for role in roles.values() for name in role.fields)
    for name in roles:
        for column, times in twice.items():
            if times > 1 and column in roles[name].fields:
                found.fault((*here, name, "fields", column), "another role has a field of this name")
        _check_role(found, study, arm, name, (*here, name), whole=whole)
    _check_payoffs(found, rounds, (*place, "rounds", "payoffs"))


def _check_payoffs(found: Checked, rounds: Rounds, place: Place) -> None:
    fields = {name: role.fields for name, role in (rounds.roles or {}).items()}
    for name, formula in (rounds.payoffs or {}).items():
        wrong = check_payoff(formula, fields) if name in fields else f"is no role{did_you_mean(name, fields)}"
        if wrong:
            found.fault((*place, name), wrong)
    if rounds.payoffs and any(one.scale != 1 for own in fields.values() for one in own.values()):
        found.fault(place, "count answers as they are given: leave out `scale` of the fields")


def _check_role(found: Checked, study: StudyFile, arm: Arm, name: str, place: Place, *, whole: bool) -> None:
    rounds = arm.rounds
    assert rounds is not None
    role = (rounds.roles or {})[name]
    if not _NAME.match(name) or name in _NO_ROLES:
        found.fault(place, f"is no name of a role: letters, digits and _, none of {', '.join(_NO_ROLES)}")
    _check_fields(found, study, (*place, "fields"), role.fields)
    for number in {1, min(2, rounds.count)}:
        task = round_task(arm, number, name)
        own = "first" if number == 1 and role.first is not None else "prompt"
        known = [*known_names(study, arm, task), *round_names(arm, first=number == 1, role=name)] if whole else None
        _check_material(found, study, arm, task, (*place, own), known=known)


_NO_ROLES = ("last", "others", "profile", "round", "answer_form")


def _check_rounds(found: Checked, study: StudyFile, arm: Arm, place: Place, *, whole: bool) -> None:
    """Also that no material asks for what its round may not see: in the first there is no last one."""
    rounds = arm.rounds
    assert rounds is not None
    if rounds.payoffs:
        found.fault((*place, "rounds", "payoffs"), "need `roles`: each earns its own")
    if not arm.shown:
        _check_fields(found, study, (*place, "rounds", "fields"), rounds.fields or arm.fields or {})
    for number in {1, min(2, rounds.count)}:
        task = round_task(arm, number)
        own = "first" if number == 1 and task.prompt == rounds.first else "prompt"
        where = (*place, "prompt") if task.prompt == arm.prompt else (*place, "rounds", own)
        known = [*known_names(study, arm, task), *round_names(arm, first=number == 1)] if whole else None
        _check_material(found, study, arm, task, where, known=known)
    if rounds.group is not None and arm.n is not None and arm.n < rounds.group:
        found.fault((*place, "n"), f"is {arm.n}, and a group has {rounds.group}")


def _check_fields(found: Checked, study: StudyFile, place: Place, fields: Mapping[str, Answered]) -> None:
    if not fields:
        found.fault(place, "is missing: it says what is answered, and how")
    for name, one in fields.items():
        here = (*place, name)
        if not _NAME.match(name):
            found.fault(here, "is the name of a column: letters, digits and _, beginning with a letter")
        if name in own_columns(study) or name in study.attributes:
            found.fault(here, "is also a column of its own in `responses`; call the field otherwise")
        _check_field(found, here, one)


def _check_relabelled(found: Checked, relabel: Relabelled | None, fields: Mapping[str, Answered], place: Place) -> None:
    """What is answered to other amounts must be what `derive` counts: the same fields, types and labels."""
    for name, one in (relabel.fields if relabel is not None else {}).items():
        first = fields.get(name)
        if first is None:
            found.fault((*place, name), f"relabels no field of its own{did_you_mean(name, fields)}")
        elif (one.type, one.labels, one.optional) != (first.type, first.labels, first.optional):
            found.fault((*place, name), f"must stay a {first.type} with the same options: `derive` counts them")
        else:
            _check_field(found, (*place, name), one)


def _check_field(found: Checked, place: Place, one: Answered) -> None:
    if one.type in {"choice", "rank"}:
        if len(one.labels) < 2:
            found.fault(place, f"a {one.type} needs `options`: two or more")
        folded = [label.casefold().strip() for label in one.labels]
        if len(set(folded)) < len(folded):
            found.fault((*place, "options"), "two options are the same but for upper and lower case")
    elif one.options is not None:
        found.fault((*place, "options"), f"are for choice and rank; this is a {one.type}")
    low, high = one.range or (None, None)
    if one.type == "likert" and (low is None or high is None):
        found.fault(place, "a likert needs `range: [lowest, highest]`")
    if one.type not in {"number", "likert"} and one.range is not None:
        found.fault((*place, "range"), f"is for number and likert; this is a {one.type}")
    if low is not None and high is not None and low >= high:
        found.fault((*place, "range"), f"must go from low to high, got {low:g} to {high:g}")
    for key, given in (("whole", one.whole), ("scale", one.scale != 1)):
        if given and one.type != "number":
            found.fault((*place, key), f"is for number; this is a {one.type}")


def _check_material(
    found: Checked, study: StudyFile, arm: Arm, task: Task, place: Place, *, known: Sequence[str] | None
) -> None:
    """`place`: of the prompt; `known`: what {{ … }} may be, None where that cannot be told."""
    text = study.materials.get(task.prompt)
    if text is None:
        return  # that is a fault already
    for name in names(text) if known is not None else ():
        if name not in (known or ()):
            hint = did_you_mean(name, known or (), listing=False)
            found.fault(place, f"'{task.prompt}' asks for {{{{ {name} }}}}, which nothing gives{hint}")
    unclosed = f"{task.prompt}: '{{{{' without '}}}}' behind it is shown as it stands"
    if "{{" in _CLOSED.sub("", text) and unclosed not in found.notes:
        found.notes.append(unclosed)
    if ANSWER_FORM not in names(text):
        explained = forms_in(text, task.fields)
        silent = [name for name in task.fields if name not in explained]
        if explained and silent:
            listed = ", ".join(f"'{name}:'" for name in silent)
            found.fault(place, f"'{task.prompt}' does not say how to answer {listed}")
    for name, one in task.fields.items():
        unsaid = [label for label in one.labels if label not in one.meanings and not _stands_in(label, text, arm, task)]
        if unsaid:
            listed = ", ".join(f"'{label}'" for label in unsaid)
            where = (*place[:-1], "fields", name, "options")
            found.fault(where, f"'{task.prompt}' does not say what {listed} of '{name}' is")


def _stands_in(label: str, text: str, arm: Arm, task: Task) -> bool:
    values = " ".join(str(one) for one in (*arm.values.values(), *task.values.values()))
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", f"{text}\n{values}", re.IGNORECASE) is not None


def _check_types(found: Checked, study: StudyFile) -> None:
    """A column is of one type, in whichever arms it is answered."""
    types: dict[str, tuple[str, str]] = {}
    for name, arm in study.arms.items():
        for column, one in arm.answered.items():
            kind, first = types.setdefault(column, (column_type(one), name))
            if kind != column_type(one):
                found.fault(
                    ("arms", name, "fields", column), f"is a {one.type} here and a {kind} in arm '{first}'; "
                    "give one of them another name"
                )  # fmt: skip


def _check_people(found: Checked, study: StudyFile) -> None:
    place: Place = ("participants", "profile")
    for name, entry in study.participants.profile.items():
        if not _NAME.match(name) or name in own_columns(study):
            found.fault((*place, name), "is the name of a column: letters, digits and _, and none of karat's own")
        wrong = _profile_fault(entry)
        if wrong:
            found.fault((*place, name), wrong)
        elif doubt := _profile_doubt(entry):
            found.notes.append(f"participants.profile.{name}: {doubt}")
    if study.participants.given is not None:
        lacking = [at for at, person in enumerate(study.persons, 1) if set(person) != set(study.persons[0])]
        if lacking:
            found.fault(("participants", "given"), f"person {lacking[0]} has not the columns of the first")
        for name in study.persons[0] if study.persons else ():
            if not _NAME.match(name) or name in own_columns(study):
                found.fault(("participants", "given"), f"'{name}' cannot be the name of an entry")


def _profile_fault(entry: Any) -> str:
    if isinstance(entry, Mapping):
        shares = list(entry.values())
        if not shares or not all(_is_number(one) and 0 <= one <= _MOST for one in shares):
            return "must give each value its share: {female: 0.5, male: 0.5}"
        return "" if sum(shares) > 0 else "the shares add up to 0"
    if isinstance(entry, list):
        if not entry or any(not isinstance(one, (str, bool, int, float)) for one in entry):
            return "must be [lowest, highest], or a list of values"
        if len(entry) == 2 and all(map(_is_number, entry)) and entry[0] > entry[1]:
            return f"must go from low to high, got {shown(entry[0])} to {shown(entry[1])}"
    if entry is None:
        return "must be a value, a list, or values with shares, got nothing"
    numbers = [one for one in (entry if isinstance(entry, list) else [entry]) if isinstance(one, (int, float))]
    return "" if all(abs(one) <= _MOST for one in numbers) else "numbers must be finite, and below 10^15"


def _profile_doubt(entry: Any) -> str:
    """What can be drawn, and is seldom meant."""
    if isinstance(entry, str) and re.fullmatch(r"\d+\s?(?:-|–|to|\.\.)\s?\d+", entry.strip()):
        return f"everybody has {shown(entry)}; [lowest, highest] draws from a range"
    if isinstance(entry, Mapping):
        total = sum(float(share) for share in entry.values())
        whole = all(float(share).is_integer() for share in entry.values())  # counts, or percentages
        if not whole and not any(abs(total - all_) <= 0.02 * all_ for all_ in (1, 100)):
            return f"the shares add up to {total:g}; each counts as its part of that"
    return ""


def _is_number(one: Any) -> bool:
    return isinstance(one, (int, float)) and not isinstance(one, bool)


def _check_ids(found: Checked, study: StudyFile) -> None:
    seen: set[tuple[str, str]] = set()
    for at, finding in enumerate(study.findings):
        key = (finding.sub_study, finding.id)
        if key in seen:
            found.fault(("findings", at, "id"), f"'{finding.id}' is the id of another finding (of this sub_study)")
        seen.add(key)
        tests = [test.id for test in finding.tests]
        for number, test in enumerate(tests):
            if test in tests[:number]:
                found.fault(("findings", at, "tests", number, "id"), f"'{test}' is the id of another test of it")
