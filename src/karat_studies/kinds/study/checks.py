"""Every fault of a study whose parts can be read: arms, materials, findings, tests, SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from karat.documents.nodes import Node, Place, fault_at
from karat.documents.validation import shown
from karat.errors import BadOption, Fault, QueryTooLong, did_you_mean
from karat.sums import exact_sum
from karat.templates import names
from karat_query.sql import Shape
from karat_studies.kinds.study.columns import (
    arms_of,
    column_type,
    fields_needed,
    own_columns,
    responses_types,
    shape_of_data,
)
from karat_studies.kinds.study.format import (
    Answered,
    Arm,
    Relabelled,
    StudyFile,
    Task,
    Test,
    level_name,
)
from karat_studies.kinds.study.numbers import Numbers, check_numbers
from karat_studies.kinds.study.probes import CLUSTERED, counted_unread, repeated_people
from karat_studies.kinds.study.prompts import ANSWER_FORM, forms_in, known_names
from karat_studies.kinds.study.rounds import check_payoff, round_names, round_task

_GROUPS = {  # how many levels a kind compares; None: any number from two on
    "ttest_ind": 2,
    "welch": 2,
    "mannwhitney": 2,
    "variance_ratio": 2,
    "interaction": 2,
    "anova": None,
    "contingency": None,
}
_UNDIRECTED = {"equal", "different"}


class Checked(msgspec.Struct):
    """Faults with their lines, and notes: what cannot be checked."""

    root: Node
    faults: list[Fault] = []
    notes: list[str] = []

    def fault(self, place: Place, message: str) -> None:
        """Records a fault."""
        self.faults.append(fault_at(self.root, place, message))


def check_test(
    checked: Checked,
    study: StudyFile,
    test: Test,
    *,
    place: Place,
    shape: Shape | None,
    arms: Sequence[str],
) -> None:
    """Every fault of one test.

    `shape`: the columns of `derive`, if requested; `arms`: the names of all.
    """
    good = _check_groups(checked, study, test, place, shape, arms)
    good &= _check_columns(checked, test, place, shape, reduced=study.reducer is not None)
    if study.reducer is not None and test.needs is None:
        checked.fault(place, "needs is missing: karat cannot see which fields the reducer uses")
    for at, name in enumerate(test.needs or ()):
        if name not in study.fields:
            checked.fault(
                (*place, "needs", at),
                f"no arm has a field '{name}'{did_you_mean(name, study.fields)}",
            )

    label = test_label(checked.root, place)
    if test.kind == "ttest_one" and test.against is None:  # rarely intended
        checked.notes.append(
            f"{label}: '{test.measure}' is compared with 0; `against` sets another number"
        )

    if test.by is not None and test.cluster is not None:
        checked.fault(
            (*place, "cluster"),
            "is one way to count several rows of a person, and `by` another: remove one",
        )

    if test.cluster is not None and test.kind not in CLUSTERED:
        checked.fault(
            (*place, "cluster"),
            f"is for {', '.join(CLUSTERED)}; for a {test.kind} write `by: participant`",
        )

    if test.use is not None and test.reason is None:
        checked.fault((*place, "use"), "needs a `reason`: why the published numbers disagree")
    if test.expect not in _UNDIRECTED and (test.outcomes is not None or len(test.cells) > 2):
        checked.fault(
            (*place, "expect"),
            (
                f"must be 'equal' or 'different', got '{test.expect}': several groups or outcomes "
                f"have no direction"
            ),
        )
        good = False

    if not good:
        return
    numbers = Numbers(test=test, arms=study.arms, root=checked.root, place=place)
    check_numbers(numbers)
    _check_n(numbers, study, shape)
    for where, message in numbers.faults:
        checked.fault(where, message)
    checked.notes.extend(f"{label}: {note}" for note in numbers.notes)


def test_label(root: Node, place: Place) -> str:
    """The finding and the test, as named in the file."""
    named = [root.get(*place[:2], "sub_study"), root.get(*place[:2], "id"), root.get(*place, "id")]
    return " ".join(str(node.value) for node in named if node is not None and node.value)


def _check_groups(
    checked: Checked,
    study: StudyFile,
    test: Test,
    place: Place,
    shape: Shape | None,
    arms: Sequence[str],
) -> bool:
    wanted = _GROUPS.get(test.kind, 1)
    groups = test.groups
    if groups is None:
        if wanted != 1:
            checked.fault(place, f"groups is missing: what a {test.kind} compares")
        return wanted == 1

    count = len(groups.levels)
    good = True
    if (wanted is None and count < 2) or (wanted is not None and count != wanted):
        if wanted is None:
            few = "two or more levels"
        else:
            few = f"{wanted} level{'s' if wanted > 1 else ''}"

        checked.fault((*place, "groups", "levels"), f"a {test.kind} takes {few}, got {count}")
        good = False

    if len(set(groups.names)) < count:
        checked.fault((*place, "groups", "levels"), "a level appears twice")
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
                checked.fault(where, f"'{column}' is never '{name}'{did_you_mean(name, possible)}")
                good = False

    # The other columns of a factorial design
    factors = test.factors or {}
    wrong = ""
    if factors and test.statistic_kind != "anova":
        wrong = f"are the other columns of an anova or an interaction; this is a {test.kind}"
    elif groups.column in factors:
        wrong = (
            f"'{groups.column}' is the column of `groups` already: name the other columns of the "
            f"design"
        )
    elif any(
        len({level_name(level) for level in levels}) < len(levels) for levels in factors.values()
    ):
        wrong = "a level appears twice"
    elif test.kind == "interaction" and [len(levels) for levels in factors.values()] != [2]:
        wrong = (
            "an interaction is the contrast of four cells: one other column with two levels; "
            "of a larger design, test the contrasts that the claim is about"
        )

    if wrong:
        checked.fault((*place, "factors"), wrong)
    return good and not wrong


def _possible(
    study: StudyFile,
    column: str,
    arms: Sequence[str],
    shape: Shape | None,
) -> list[str] | None:
    """The values that a column can have; None if unknown."""
    if shape is not None and column in shape.sources and column not in shape.sources[column]:
        derived = shape.types.get(column)  # by derive, perhaps over a column of the same name
        if derived == "BOOLEAN":
            return ["true", "false"]
        return None

    if column == "arm":
        return list(arms)
    attribute = study.participants.profile.get(column)
    if isinstance(attribute, dict):
        return list(attribute)
    options = [
        label
        for arm in study.arms.values()
        for name, field in arm.answered.items()
        if name == column
        for label in field.labels
    ]
    return list(dict.fromkeys(options)) or None


def _check_columns(
    checked: Checked,
    test: Test,
    place: Place,
    shape: Shape | None,
    *,
    reduced: bool,
) -> bool:
    named: list[tuple[Place, str]] = [((*place, "measure"), test.measure)]
    if isinstance(test.against, str):
        named.append(((*place, "against"), test.against))
    if test.groups is not None:
        named.append(((*place, "groups", "column"), test.groups.column))
        named += [((*place, "factors", name), name) for name in test.factors or {}]

    good = True
    if test.kind in {"correlation", "spearman"} and not isinstance(test.against, str):
        checked.fault(place, "against is missing: the second column of a correlation")
        good = False

    if test.kind == "ttest_paired" and test.against is None:
        checked.fault(
            place,
            "against is missing: the column, or the number, that each answer is compared with",
        )
        good = False

    if test.outcomes is not None and test.kind != "contingency":
        checked.fault((*place, "outcomes"), f"are for contingency; this is a {test.kind}")
    if shape is None or reduced:
        return good
    for where, name in named:
        if name not in shape.types:
            checked.fault(
                where,
                f"derive gives no column '{name}'{did_you_mean(name, shape.types, listing=False)}",
            )
            good = False

    for key, column in (("measure", test.measure), ("against", test.against)):
        kind = shape.types.get(str(column), "")
        if test.outcomes is None and kind.startswith(("VARCHAR", "ENUM")):
            checked.fault(
                (*place, key),
                f"'{column}' is text; make it true or false, or a number, in `derive`",
            )
            good = False

    return good


def _check_n(numbers: Numbers, study: StudyFile, shape: Shape | None) -> None:
    """Compares human n with the arms: each level's, or all together.

    If a person gives several rows, n is a multiple of the people, and the file explains why.
    """
    test = numbers.test
    needed = fields_needed(study, numbers.test, shape)
    levels = [
        numbers.test.human.levels.get(name) for name in (test.groups.names if test.groups else ())
    ]
    if test.groups is not None and test.groups.column == "arm":
        for name, level in zip(test.groups.names, levels, strict=True):
            if name not in study.arms:
                continue
            own = study.arms[name].people_with(needed)
            n = (
                level.n
                if level is not None and level.n is not None
                else test.human.n
                if len(levels) == 1
                else None
            )
            if (
                own is not None
                and n is not None
                and not _fits(test, n, {own}, {_groups_in(study, name)})
            ):
                numbers.doubt(f"n is {n}, arm '{name}' has {own} people", name, "n", key="n_reason")

        return

    if shape is None and test.measure not in responses_types(study) and test.needs is None:
        return  # it is not known whose answers it uses
    together = [level.n for level in levels if level is not None and level.n is not None]
    if together and len(together) == len(levels):
        n = sum(together)
    else:
        n = test.human.n
    arms = arms_of(study, test, needed)
    sizes = [size for name in arms if (size := study.arms[name].people_with(needed)) is not None]
    if n is None or len(sizes) < len(arms) or not sizes:
        return
    people = {sum(sizes)}
    if study.design == "within":
        people.add(max(sizes))
    if not _fits(test, n, people, {sum(_groups_in(study, name) for name in arms)}):
        message = (
            f"n is {n} in all, the arms with these answers have {sum(sizes)} people; name its "
            f"fields in `needs`"
        )
        numbers.doubt(message, key="n_reason")


def _fits(test: Test, n: int, people: set[int], groups: set[int]) -> bool:
    """Whether n counts the people, or, with a reason, groups of them or each of them several
    times.
    """
    return n in people or (
        test.reason is not None and (n in groups or any(n % person == 0 for person in people))
    )


def _groups_in(study: StudyFile, arm: str) -> int:
    """How many groups play in an arm; 0 if it is not a game."""
    rounds = study.arms[arm].rounds
    n = study.arms[arm].n
    if rounds is not None and rounds.size is not None and n is not None:
        return -(-n // rounds.size)
    return 0


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHORT = re.compile(r"\w[\w.-]{0,99}\Z")  # ids of samples and files of runs begin with it
_CLOSED = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MOST = 1e15  # of a number in a profile


def check(
    study: StudyFile,
    tests: Sequence[tuple[Place, Test]],
    *,
    node: Node,
    whole: bool,
    sql: bool,
    arms: Sequence[str],
) -> Checked:
    """Every fault that involves more than one part.

    `whole`: top, participants and arms could all be read; `arms`: the names of all, including
    unreadable ones; `sql`: ask the SQL engine for the result of `derive`.
    """
    checked = Checked(root=node)
    if study.study and not _SHORT.match(study.study):
        checked.fault(
            ("study",),
            f"must be a short name of letters, digits, _, . and -, got {shown(study.study)}",
        )

    for name, arm in study.arms.items():
        if arm.rounds is not None and arm.rounds.roles:
            _check_roles(checked, study, arm, ("arms", name), whole=whole)
        else:
            _check_arm(checked, study, name, arm, whole=whole)

    _check_names(checked, study)
    _check_people(checked, study)
    columns_hold = not any(
        re.search(r"\.(fields|profile)\b", fault.place) for fault in checked.faults
    )
    shape = None
    if sql and columns_hold:
        try:
            shape = shape_of_data(study)
        except BadOption as error:
            checked.fault(("derive",), str(error).partition(": ")[2])

    for why in shape.changing if shape is not None else ():
        checked.fault(("derive",), f"{why}: the same answers must give the same numbers")
    for place, test in tests:
        check_test(
            checked,
            study,
            test,
            place=place,
            shape=shape,
            arms=arms if not whole else tuple(study.arms),
        )

    if whole and shape is not None and study.reducer is None and not checked.faults:
        # The rows of made-up participants
        named = [test for _, test in tests]
        try:
            repeated = repeated_people(study, named, shape)
            for (place, _), (why, doubt) in zip(tests, repeated, strict=True):
                if why:
                    checked.fault(place, why)
                if doubt:
                    checked.notes.append(f"{test_label(checked.root, place)}: {doubt}")

            unread = counted_unread(study, named, shape)
            for (place, _), why in zip(tests, unread, strict=True):
                if why:
                    checked.notes.append(f"{test_label(checked.root, place)}: {why}")
        except QueryTooLong as error:
            checked.fault(("derive",), str(error).partition(": ")[2])

    if whole and shape is not None and len(tests) == len(study.tests):
        used = {
            arm
            for _, test in tests
            for arm in arms_of(study, test, fields_needed(study, test, shape))
        }
        checked.notes += [
            f"arms.{name}: no test looks at its participants"
            for name in study.arms
            if name not in used
        ]

    return checked


def _check_arm(checked: Checked, study: StudyFile, name: str, arm: Arm, *, whole: bool) -> None:
    place: Place = ("arms", name)
    game = arm.rounds is not None and (
        arm.rounds.prompt is not None or arm.rounds.first is not None
    )
    if (arm.prompt is None) == (arm.tasks is None) and not (game and arm.tasks is None):
        checked.fault(place, "needs either `prompt` with `fields`, or `tasks`")
        return

    if arm.rounds is not None and arm.tasks is not None:
        checked.fault((*place, "tasks"), "a game has one prompt per round, and no tasks")
        return

    if arm.tasks is not None and arm.fields is not None:
        checked.fault((*place, "fields"), "belongs in each of the tasks")
    if study.participants.per_arm == "human" and arm.n is None:
        checked.fault(
            place, "n is missing: how many people there were (participants.per_arm is 'human')"
        )

    rounds = arm.rounds
    seen: set[str] = set()
    for at, task in enumerate(arm.shown):
        if arm.tasks is not None:
            here = (*place, "tasks", at)
        else:
            here = place

        fields = (rounds.fields if rounds is not None else None) or task.fields
        for twice in seen & set(task.fields):
            checked.fault(
                (*here, "fields", twice), "another task of the arm has a field of this name"
            )

        seen |= set(task.fields)
        _check_fields(checked, study, (*here, "fields"), fields)
        if arm.tasks is not None:
            _check_relabelled(checked, task.relabel, fields, (*here, "relabel", "fields"))
        if rounds is None:
            if whole:
                known = known_names(study, arm, task)
            else:
                known = None

            _check_material(checked, study, arm, task, (*here, "prompt"), known=known)

    _check_relabelled(checked, arm.relabel, arm.answered, (*place, "relabel", "fields"))
    if rounds is None:
        return
    if rounds.payoffs:
        checked.fault((*place, "rounds", "payoffs"), "need `roles`: each earns its own")
    if not arm.shown:
        fields = rounds.fields or arm.fields or {}
        _check_fields(checked, study, (*place, "rounds", "fields"), fields)

    _check_prompts(checked, study, arm, (*place, "rounds"), whole=whole)
    if rounds.group is not None and arm.n is not None and arm.n < rounds.group:
        checked.fault((*place, "n"), f"is {arm.n}, and a group has {rounds.group}")


def _check_roles(
    checked: Checked,
    study: StudyFile,
    arm: Arm,
    place: Place,
    *,
    whole: bool,
) -> None:
    """A game in which each member of a group has a role: an answer may be shown to those who are
    asked later.
    """
    rounds = arm.rounds
    here = (*place, "rounds", "roles")
    assert rounds is not None
    roles = arm.roles
    if any((arm.tasks, arm.shown, rounds.prompt, rounds.first, rounds.fields, rounds.group)):
        checked.fault(
            here,
            (
                "each role has its own prompt and fields, and a group one of each: leave out the "
                "others"
            ),
        )

    if arm.relabel is not None:
        checked.fault((*place, "relabel"), "does not change roles: leave it out")
    if len(roles) < 2:
        checked.fault(here, "a game has two roles or more")
    if study.participants.per_arm == "human":
        size = arm.n
    else:
        size = study.participants.per_arm

    if size is None:
        checked.fault(
            place, "n is missing: how many people there were (participants.per_arm is 'human')"
        )
    elif int(size) % len(roles):
        checked.fault(
            place, f"{size} participants cannot be divided into groups of {len(roles)} roles"
        )

    twice = Counter(name for role in roles.values() for name in role.fields)
    for name, role in roles.items():
        for column, times in twice.items():
            if times > 1 and column in role.fields:
                checked.fault(
                    (*here, name, "fields", column), "another role has a field of this name"
                )

        if not _NAME.match(name) or name in _NO_ROLES:
            checked.fault(
                (*here, name),
                f"is not a valid role name: use letters, digits and _, but none of "
                f"{', '.join(_NO_ROLES)}",
            )

        _check_fields(checked, study, (*here, name, "fields"), role.fields)
        _check_prompts(checked, study, arm, (*here, name), role=name, whole=whole)

    place = (*place, "rounds", "payoffs")
    fields = {name: role.fields for name, role in arm.roles.items()}
    for name, formula in arm.payoffs.items():
        if name in fields:
            wrong = check_payoff(formula, fields)
        else:
            wrong = f"is not a role{did_you_mean(name, fields)}"

        if wrong:
            checked.fault((*place, name), wrong)

    if arm.payoffs and any(field.scale != 1 for own in fields.values() for field in own.values()):
        checked.fault(place, "use the answers as they are given: remove `scale` from the fields")


_NO_ROLES = ("last", "others", "profile", "round", "answer_form")


def _check_prompts(
    checked: Checked,
    study: StudyFile,
    arm: Arm,
    place: Place,
    *,
    role: str | None = None,
    whole: bool,
) -> None:
    """The materials of a game's rounds, or of a role in them: none uses values that are unavailable
    in its round, as the first has no last one.
    """
    rounds = arm.rounds
    assert rounds is not None
    first = rounds.first
    if role is not None:
        first = arm.roles[role].first
    for number in {1, min(2, rounds.count)}:
        task = round_task(arm, number, role)
        where = (*place, "first" if number == 1 and task.prompt == first else "prompt")
        if role is None and task.prompt == arm.prompt:
            where = (*place[:-1], "prompt")
        known = None
        if whole:
            now = round_names(arm, first=number == 1, role=role)
            known = [*known_names(study, arm, task), *now]
        _check_material(checked, study, arm, task, where, known=known)


def _check_fields(
    checked: Checked,
    study: StudyFile,
    place: Place,
    fields: Mapping[str, Answered],
) -> None:
    if not fields:
        checked.fault(place, "is missing: it defines what is answered, and how")
    for name, field in fields.items():
        here = (*place, name)
        if not _NAME.match(name):
            checked.fault(
                here, "must name a column: letters, digits and _, beginning with a letter"
            )

        if name in own_columns(study) or name in study.attributes:
            checked.fault(here, "is also a column in `responses`; give the field another name")
        _check_field(checked, here, field)


def _check_relabelled(
    found: Checked,
    relabel: Relabelled | None,
    fields: Mapping[str, Answered],
    place: Place,
) -> None:
    """Answers to other amounts must fit what `derive` counts: the same fields, types and labels."""
    for name, field in (relabel.fields if relabel is not None else {}).items():
        first = fields.get(name)
        if first is None:
            found.fault((*place, name), f"is not a field of this task{did_you_mean(name, fields)}")
        elif (field.type, field.labels, field.optional) != (
            first.type,
            first.labels,
            first.optional,
        ):
            found.fault(
                (*place, name),
                f"must stay a {first.type} with the same options: `derive` counts them",
            )
        else:
            _check_field(found, (*place, name), field)


def _check_field(checked: Checked, place: Place, field: Answered) -> None:
    if field.type in {"choice", "rank"}:
        if len(field.labels) < 2:
            checked.fault(place, f"a {field.type} needs `options`: two or more")
        folded = [label.casefold().strip() for label in field.labels]
        if len(set(folded)) < len(folded):
            checked.fault((*place, "options"), "two options differ only in upper and lower case")
    elif field.options is not None:
        checked.fault((*place, "options"), f"are for choice and rank; this is a {field.type}")

    low, high = field.range or (None, None)
    if field.type == "likert" and (low is None or high is None):
        checked.fault(place, "a likert needs `range: [lowest, highest]`")
    if field.type not in {"number", "likert"} and field.range is not None:
        checked.fault((*place, "range"), f"is for number and likert; this is a {field.type}")
    if low is not None and high is not None and low >= high:
        checked.fault((*place, "range"), f"must go from low to high, got {low:g} to {high:g}")
    for key, given in (("whole", field.whole), ("scale", field.scale != 1)):
        if given and field.type != "number":
            checked.fault((*place, key), f"is for number; this is a {field.type}")


def _check_material(
    checked: Checked,
    study: StudyFile,
    arm: Arm,
    task: Task,
    place: Place,
    *,
    known: Sequence[str] | None,
) -> None:
    """`place`: of the prompt; `known`: the valid names in {{ … }}, None if unknown."""
    text = study.materials.get(task.prompt)
    if text is None:
        return  # that is already a fault
    for name in names(text) if known is not None else ():
        if name not in (known or ()):
            hint = did_you_mean(name, known or (), listing=False)
            checked.fault(
                place, f"'{task.prompt}' asks for {{{{ {name} }}}}, which has no value{hint}"
            )

    unclosed = f"{task.prompt}: '{{{{' without a closing '}}}}' is shown unchanged"
    if "{{" in _CLOSED.sub("", text) and unclosed not in checked.notes:
        checked.notes.append(unclosed)
    if ANSWER_FORM not in names(text):
        explained = forms_in(text, task.fields)
        silent = [name for name in task.fields if name not in explained]
        if explained and silent:
            listed = ", ".join(f"'{name}:'" for name in silent)
            checked.fault(place, f"'{task.prompt}' does not say how to answer {listed}")

    values = " ".join(str(value) for value in (*arm.values.values(), *task.values.values()))
    said = f"{text}\n{values}"
    for name, one in task.fields.items():
        unsaid = []
        for label in one.labels:
            word = rf"(?<!\w){re.escape(label)}(?!\w)"
            if label not in one.meanings and not re.search(word, said, re.IGNORECASE):
                unsaid.append(label)

        if unsaid:
            listed = ", ".join(f"'{label}'" for label in unsaid)
            where = (*place[:-1], "fields", name, "options")
            checked.fault(where, f"'{task.prompt}' does not say what {listed} of '{name}' is")


def _check_names(checked: Checked, study: StudyFile) -> None:
    """A column has one type in all arms, and an id one finding or test."""
    types: dict[str, tuple[str, str]] = {}
    for name, arm in study.arms.items():
        for column, field in arm.answered.items():
            kind, first = types.setdefault(column, (column_type(field), name))
            if kind != column_type(field):
                checked.fault(
                    ("arms", name, "fields", column),
                    f"is a {field.type} here and a {kind} in arm '{first}'; "
                    "give one of them another name",
                )

    seen: set[tuple[str, str]] = set()
    for at, finding in enumerate(study.findings):
        key = (finding.sub_study, finding.id)
        if key in seen:
            checked.fault(
                ("findings", at, "id"),
                f"'{finding.id}' is the id of another finding (of this sub_study)",
            )

        seen.add(key)
        tests = [test.id for test in finding.tests]
        for number, test in enumerate(tests):
            if test in tests[:number]:
                checked.fault(
                    ("findings", at, "tests", number, "id"),
                    f"'{test}' is the id of another test of it",
                )


def _check_people(checked: Checked, study: StudyFile) -> None:
    place: Place = ("participants", "profile")
    for name, entry in study.participants.profile.items():
        if not _NAME.match(name) or name in own_columns(study):
            checked.fault(
                (*place, name), "must name a column: letters, digits and _, and none of karat's own"
            )

        wrong = _profile_fault(entry)
        if wrong:
            checked.fault((*place, name), wrong)
        elif doubt := _profile_doubt(entry):
            checked.notes.append(f"participants.profile.{name}: {doubt}")

    if study.participants.given is not None:
        lacking = []
        for at, person in enumerate(study.persons, 1):
            if set(person) != set(study.persons[0]):
                lacking.append(at)

        if lacking:
            checked.fault(
                ("participants", "given"),
                f"person {lacking[0]} does not have the columns of the first",
            )

        for name in study.persons[0] if study.persons else ():
            if not _NAME.match(name) or name in own_columns(study):
                checked.fault(("participants", "given"), f"'{name}' cannot be the name of an entry")


def _profile_fault(entry: object) -> str:
    if isinstance(entry, Mapping):
        shares = list(entry.values())
        if not shares or not all(_is_number(share) and 0 <= share <= _MOST for share in shares):
            return "must give each value its share: {female: 0.5, male: 0.5}"
        return "" if sum(shares) > 0 else "the shares add up to 0"

    if isinstance(entry, list):
        if not entry or any(not isinstance(value, (str, bool, int, float)) for value in entry):
            return "must be [lowest, highest], or a list of values"
        if len(entry) == 2 and all(map(_is_number, entry)) and entry[0] > entry[1]:
            return f"must go from low to high, got {shown(entry[0])} to {shown(entry[1])}"

    if entry is None:
        return "must be a value, a list, or values with shares, got nothing"
    numbers = []
    for value in entry if isinstance(entry, list) else [entry]:
        if isinstance(value, (int, float)):
            numbers.append(value)

    return (
        ""
        if all(abs(number) <= _MOST for number in numbers)
        else "numbers must be finite, and below 10^15"
    )


def _profile_doubt(entry: object) -> str:
    """Profiles that are valid but rarely intended."""
    if isinstance(entry, str) and re.fullmatch(r"\d+\s?(?:-|–|to|\.\.)\s?\d+", entry.strip()):
        return f"everybody has {shown(entry)}; [lowest, highest] draws from a range"
    if isinstance(entry, Mapping):
        total = exact_sum(float(share) for share in entry.values())
        # counts, or percentages
        integral = all(float(share).is_integer() for share in entry.values())
        if not integral and not any(abs(total - all_) <= 0.02 * all_ for all_ in (1, 100)):
            return f"the shares add up to {total:g}; they are used as proportions"

    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
