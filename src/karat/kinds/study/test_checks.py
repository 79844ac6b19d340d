"""What can be wrong with one test of a study: its groups, columns, sizes, and the human numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from karat.documents.nodes import Node, Place
from karat.errors import did_you_mean
from karat.kinds.study.columns import fields_needed, responses_types
from karat.kinds.study.format import Groups, StudyFile, Test, level_name
from karat.kinds.study.numbers import Numbers, check_numbers

if TYPE_CHECKING:
    from karat.sql import Shape

__all__ = ["arms_of", "check_test", "test_label"]

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
    _check_needs(found, study, test, place)
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
    for where, column, names in _columns_with_levels(test, groups, place):
        possible = _possible(study, column, arms, shape)
        for name in names:
            if possible is not None and name not in possible:
                found.fault(where, f"'{column}' is never '{name}'{did_you_mean(name, possible)}")
                good = False
    return _check_factors(found, test, groups, place) and good


def _columns_with_levels(test: Test, groups: Groups, place: Place) -> Iterator[tuple[Place, str, Sequence[str]]]:
    yield (*place, "groups", "levels"), groups.column, groups.names
    for column, levels in (test.factors or {}).items():
        yield (*place, "factors", column), column, [level_name(level) for level in levels]


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
    said = study.participants.profile.get(column)
    if isinstance(said, dict):
        return list(said)
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
    if kind is not None and test.outcomes is None and _is_text(kind):
        found.fault((*place, "measure"), f"'{test.measure}' is text; make it true or false, or a number, in `derive`")
        good = False
    return good


def _is_text(kind: str) -> bool:
    return kind.startswith(("VARCHAR", "ENUM"))


def _check_needs(found: Found, study: StudyFile, test: Test, place: Place) -> None:
    for at, name in enumerate(test.needs or ()):
        if name not in study.fields:
            found.fault((*place, "needs", at), f"no arm has a field '{name}'{did_you_mean(name, study.fields)}")


def arms_of(study: StudyFile, test: Test, needed: Sequence[str]) -> list[str]:
    """The arms whose participants a test is about: its levels, or all that answer something it needs."""
    if test.groups is not None and test.groups.column == "arm":
        return [name for name in test.groups.names if name in study.arms]
    with_it = [name for name, arm in study.arms.items() if set(needed) & set(arm.answered)]
    return with_it or list(study.arms)


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
