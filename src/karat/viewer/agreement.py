"""How far people agree with what judges them: the same, within one step, and beyond chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

from karat import formats
from karat.analysis.model import MetricInfo
from karat.stats import Interval, cohen_kappa
from karat.viewer.trial_view import steps_of

__all__ = ["Agreement", "Pair", "WordPair", "agreements", "agreements_in_words"]


_MOST_WORDS = 200  # a kappa is reckoned from a table of all words by all words


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that both scored."""

    column: MetricInfo
    who: str
    person: float
    judge: float  # a mean, where there were repeats or several judges
    cluster: int  # the question: answers to one question are not independent


class WordPair(msgspec.Struct, frozen=True, kw_only=True):
    """What both say in words: right or wrong, a diagnosis, how a field is read."""

    what: str
    who: str
    person: Hashable  # None: they cannot tell
    karat: Hashable  # None: karat does not say
    cluster: int  # the conversation or the participant
    words: bool = True  # False: of things that have no words in common, so that chance cannot be reckoned


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """One person and the judge on one metric, written for people."""

    metric: str
    who: str
    answers: int
    clusters: int  # questions, conversations or participants
    undecided: int = 0  # of which the person cannot tell
    exact: str
    within_one: str
    kappa: str
    kappa_note: str
    bias: str  # judge less person, on average


def agreements(pairs: Sequence[Pair]) -> list[Agreement]:
    """One row a metric and person, in the order in which they come."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.column.key, pair.who), []).append(pair)
    return [_agreement(group) for _, group in sorted(groups.items())]


def agreements_in_words(found: Iterable[WordPair]) -> list[Agreement]:
    """One row a thing and person. What either of them does not say is no part of it, and counted for the person."""
    groups: dict[tuple[str, str], list[WordPair]] = {}
    for one in found:
        groups.setdefault((one.what, one.who), []).append(one)
    return [_of_words(group) for group in groups.values()]


def _agreement(group: Sequence[Pair]) -> Agreement:
    column, n = group[0].column, len(group)
    steps = [float(value) for value, _ in steps_of(column)]
    # A mean over repeats counts at the nearest step, as between the judges of a panel.
    apart = [abs(one.person - (_rounded(one.judge) if steps else one.judge)) for one in group]
    exact = formats.share(sum(one == 0 for one in apart) / n) if steps else formats.UNKNOWN
    within = formats.share(sum(one <= 1 for one in apart) / n) if len(steps) > 2 else formats.UNKNOWN
    kappa = _kappa(group, steps) if steps else None
    return Agreement(
        metric=column.key,
        who=group[0].who,
        answers=n,
        clusters=len({one.cluster for one in group}),
        exact=exact,
        within_one=within,
        kappa=formats.UNKNOWN if kappa is None else _estimate(kappa),
        kappa_note="no steps to agree on" if kappa is None else _note(kappa),
        bias=formats.signed(math.fsum(one.judge - one.person for one in group) / n),
    )


def _of_words(group: Sequence[WordPair]) -> Agreement:
    both = [one for one in group if one.person is not None and one.karat is not None]
    n, kappa, too_many = len(both), None, False
    if both and all(one.words for one in both):
        people, karats = [one.person for one in both], [one.karat for one in both]
        categories = list(dict.fromkeys([*people, *karats]))
        too_many = len(categories) > _MOST_WORDS
        if not too_many:
            kappa = cohen_kappa(people, karats, [one.cluster for one in both], categories=categories, weights="none")
    return Agreement(
        metric=group[0].what,
        who=group[0].who,
        answers=n,
        clusters=len({one.cluster for one in both}),
        undecided=sum(one.person is None for one in group),
        exact=formats.share(sum(one.person == one.karat for one in both) / n) if n else formats.UNKNOWN,
        within_one=formats.UNKNOWN,
        kappa=formats.UNKNOWN if kappa is None else _estimate(kappa),
        kappa_note=_note(kappa) if kappa is not None else _no_kappa(n, too_many=too_many),
        bias=formats.UNKNOWN,
    )


def _no_kappa(n: int, *, too_many: bool) -> str:
    if too_many:
        return "too many different answers for a kappa"
    return "fields have no words in common" if n else ""


def _kappa(group: Sequence[Pair], steps: Sequence[Any]) -> Interval:
    judged = [min(max(_rounded(one.judge), steps[0]), steps[-1]) for one in group]
    people = [one.person for one in group]
    if any(value not in steps for value in (*judged, *people)):
        return Interval(
            value=math.nan, level=0.95, n=0, method="cohen's kappa", reason="some scores are none of the metric's steps"
        )
    return cohen_kappa(people, judged, [one.cluster for one in group], categories=list(steps))


def _note(kappa: Interval) -> str:
    return kappa.reason or f"{kappa.method}, {formats.level(kappa.level)}"


def _rounded(value: float) -> float:
    return math.floor(value + 0.5)


def _estimate(found: Interval) -> str:
    return formats.estimate(found.value, _within(found.low), _within(found.high))


def _within(value: float) -> float:
    """Kappa is from −1 to 1, also where the interval of large samples goes on; what is not known stays so."""
    return value if math.isnan(value) else min(1.0, max(-1.0, value))
