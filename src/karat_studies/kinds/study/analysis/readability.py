"""Which answers of a study could be read: where many could not, and where reading differs between
what is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat import formats
from karat.analysis.unreadable import OFTEN, unreadable_notices
from karat_studies.kinds.study.analysis.model import QUOTES, StudyCondition, StudySummary

APART = 0.2  # between the shares read in two arms, or under two conditions
_REMEDY = (
    "ask in the system prompt for one line in the form that the prompt ends with, such as "
    "`choice: A`"
)


def reading_notices(part: StudySummary) -> list[str]:
    """Where 5 % or more of the answers could not be read, with three of them; and the most
    selective reading.
    """
    counts: dict[str, tuple[int, int]] = {}
    quotes: list[str] = []
    for condition in part.conditions:
        arms = [arm for study in condition.studies for arm in study.arms]
        unreadable = sum(arm.unreadable for arm in arms)
        came = sum(arm.came for arm in arms)
        counts[condition.condition] = unreadable, came
        if unreadable >= OFTEN * came:
            quotes += condition.unread

    such = "; ".join(f'"{quote}"' for quote in quotes[:QUOTES])
    if such:
        left_out = f"and are left out, such as {such}"
    else:
        left_out = "and are left out"

    named = [(condition.condition, condition) for condition in part.conditions]
    by_condition = [
        (f"{study} under {name}", share, arm) for name, study, arm, share in _shares(named)
    ]
    apart = _selective([*_by_arm(named), *by_condition])
    return [*unreadable_notices(counts, what=left_out, remedy=_REMEDY), *apart]


def selective_between(sides: Sequence[tuple[str, StudyCondition]]) -> Iterator[str]:
    """The arm whose answers were read most unlike under two conditions, if that is too far.

    `sides`: with labels.
    """
    return _selective(_by_arm(sides))


def _shares(
    conditions: Sequence[tuple[str, StudyCondition]],
) -> Iterator[tuple[str, str, str, float]]:
    """Label of the condition, study, arm, and the share of its answers that were read."""
    for name, condition in conditions:
        for study in condition.studies:
            for arm in study.arms:
                if arm.share_read is not None:
                    yield name, study.study, arm.arm, arm.share_read


def _by_arm(conditions: Sequence[tuple[str, StudyCondition]]) -> list[tuple[str, float, str]]:
    return [(f"arm {study}/{arm}", share, name) for name, study, arm, share in _shares(conditions)]


def _selective(read: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    """What is furthest apart within a group, if that is too far.

    `read`: group, share read, and whose it is.
    """
    groups: dict[str, list[tuple[float, str]]] = {}
    for group, share, whose in read:
        groups.setdefault(group, []).append((share, whose))
    ends = [(min(shares), max(shares), where) for where, shares in groups.items()]
    apart = [(high[0] - low[0], low, high, where) for low, high, where in ends]
    wide = [gap for gap in apart if round(gap[0], 9) > APART]
    if wide:
        _, (least, low), (most, high), where = max(wide)
        more = ""
        if len(wide) > 1:
            more = (
                f", and more than 20 points apart in "
                f"{formats.plural(len(wide) - 1, 'more comparison')}"
            )

        yield (
            f"{formats.share(most)} of the answers were read in {high}, {formats.share(least)} in "
            f"{low} ({where}{more}): a difference between them may be one of what could be read"
        )
