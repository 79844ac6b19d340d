"""Which answers of a study could be read: where many could not, and where reading differs between what is compared."""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.unreadable import OFTEN, unreadable_notices
from karat.kinds.study.analysis.model import QUOTES, StudySummary

APART = 0.2  # between the shares read in two arms, or under two conditions
_REMEDY = "ask in the system prompt for one line in the form that the prompt ends with, such as `choice: A`"


def reading_notices(part: StudySummary) -> list[str]:
    """Where 5 % or more of the answers could not be read, with three of them; and the most selective reading."""
    counts: dict[str, tuple[int, int]] = {}
    quotes: list[str] = []
    for condition in part.conditions:
        arms = [arm for study in condition.studies for arm in study.arms]
        unreadable, came = sum(arm.unreadable for arm in arms), sum(arm.came for arm in arms)
        counts[condition.condition] = unreadable, came
        if unreadable >= OFTEN * came:
            quotes += condition.unread
    such = "; ".join(f'"{quote}"' for quote in quotes[:QUOTES])
    left_out = f"and are left out, such as {such}" if such else "and are left out"
    return [*unreadable_notices(counts, what=left_out, remedy=_REMEDY), *_selective(part)]


def _selective(part: StudySummary) -> Iterator[str]:
    """The two arms of a study, or conditions of an arm, that are furthest apart, if that is too far."""
    groups: dict[str, list[tuple[float, str]]] = {}
    pairs = ((condition, study) for condition in part.conditions for study in condition.studies)
    for condition, study in pairs:
        for arm in study.arms:
            if arm.share_read is None:
                continue
            by_arm = groups.setdefault(f"arm {study.study}/{arm.arm}", [])
            by_arm.append((arm.share_read, condition.condition))
            by_condition = groups.setdefault(f"{study.study} under {condition.condition}", [])
            by_condition.append((arm.share_read, arm.arm))
    ends = [(min(shares), max(shares), where) for where, shares in groups.items()]
    apart = [(high[0] - low[0], low, high, where) for low, high, where in ends]
    wide = [gap for gap in apart if round(gap[0], 9) > APART]
    if wide:
        _, (least, low), (most, high), where = max(wide)
        more = ""
        if len(wide) > 1:
            more = f", and more than 20 points apart in {formats.plural(len(wide) - 1, 'more comparison')}"
        yield (
            f"{formats.share(most)} of the answers were read in {high}, {formats.share(least)} in {low} "
            f"({where}{more}): a difference between them may be one of what could be read"
        )
