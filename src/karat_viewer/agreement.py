"""How well the judge agrees with people: exactly, within one step, and beyond chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from karat import formats
from karat.analysis.model import MetricInfo
from karat.stats import Interval, cohen_kappa
from karat_viewer.trial_view import steps_of

_MOST_WORDS = 200  # kappa needs a table of all words by all words


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that a person and the judge both scored."""

    column: MetricInfo
    who: str
    person: float
    judge: float  # a mean if there were repeats or several judges
    cluster: int  # the question: answers to one question are not independent


class WordPair(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement in words by a person and by karat: right or wrong, a diagnosis, how a field is
    read.
    """

    what: str
    who: str
    person: Hashable  # None: they cannot tell
    karat: Hashable  # None: karat does not say
    cluster: int  # the conversation or the participant
    words: bool = True  # False: the fields share no words, so chance agreement cannot be computed


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """One person and the judge on one metric, written for people."""

    metric: str
    who: str
    answers: int
    clusters: int  # questions, conversations or participants
    undecided: int = 0  # answers about which the person cannot tell
    exact: str
    within_one: str
    kappa: str
    kappa_note: str
    bias: str  # judge minus person, on average


def agreements(pairs: Sequence[Pair]) -> list[Agreement]:
    """One row per metric and person, sorted by both."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.column.key, pair.who), []).append(pair)
    rows: list[Agreement] = []
    for _, group in sorted(groups.items()):
        column = group[0].column
        n = len(group)
        steps = [float(value) for value, _ in steps_of(column)]
        # A mean over repeats is rounded to the nearest step, as between the judges of a panel.
        gaps = []
        for pair in group:
            gaps.append(abs(pair.person - (_rounded(pair.judge) if steps else pair.judge)))
        if steps:
            exact = formats.share(sum(gap == 0 for gap in gaps) / n)
        else:
            exact = formats.UNKNOWN

        if len(steps) > 2:
            within = formats.share(sum(gap <= 1 for gap in gaps) / n)
        else:
            within = formats.UNKNOWN

        if steps:
            judged = [min(max(_rounded(pair.judge), steps[0]), steps[-1]) for pair in group]
            people = [pair.person for pair in group]
            if any(value not in steps for value in (*judged, *people)):
                kappa = Interval(
                    value=math.nan,
                    level=0.95,
                    n=0,
                    method="cohen's kappa",
                    reason="some scores are not among the metric's steps",
                )
            else:
                kappa = cohen_kappa(
                    people,
                    judged,
                    [pair.cluster for pair in group],
                    categories=list(steps),
                )
        else:
            kappa = None

        if kappa is None:
            kappa_note = "the metric has no steps"
        else:
            kappa_note = _note(kappa)

        rows.append(
            Agreement(
                metric=column.key,
                who=group[0].who,
                answers=n,
                clusters=len({pair.cluster for pair in group}),
                exact=exact,
                within_one=within,
                kappa=formats.UNKNOWN if kappa is None else _estimate(kappa),
                kappa_note=kappa_note,
                bias=formats.signed(math.fsum(pair.judge - pair.person for pair in group) / n),
            )
        )

    return rows


def agreements_in_words(pairs: Iterable[WordPair]) -> list[Agreement]:
    """One row per question asked and person.

    Missing judgements are left out; the person's are counted.
    """
    groups: dict[tuple[str, str], list[WordPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.what, pair.who), []).append(pair)
    rows: list[Agreement] = []
    for group in groups.values():
        both = [pair for pair in group if pair.person is not None and pair.karat is not None]
        n = len(both)
        kappa = None
        note = "the fields share no words" if both else ""
        if both and all(pair.words for pair in both):
            people = [pair.person for pair in both]
            karats = [pair.karat for pair in both]
            categories = list(dict.fromkeys([*people, *karats]))
            note = "too many different answers for a kappa"
            if len(categories) <= _MOST_WORDS:
                kappa = cohen_kappa(
                    people,
                    karats,
                    [pair.cluster for pair in both],
                    categories=categories,
                    weights="none",
                )

        if n:
            exact = formats.share(sum(pair.person == pair.karat for pair in both) / n)
        else:
            exact = formats.UNKNOWN

        if kappa is None:
            kappa_note = note
        else:
            kappa_note = _note(kappa)

        rows.append(
            Agreement(
                metric=group[0].what,
                who=group[0].who,
                answers=n,
                clusters=len({pair.cluster for pair in both}),
                undecided=sum(pair.person is None for pair in group),
                exact=exact,
                within_one=formats.UNKNOWN,
                kappa=formats.UNKNOWN if kappa is None else _estimate(kappa),
                kappa_note=kappa_note,
                bias=formats.UNKNOWN,
            )
        )

    return rows


def _note(kappa: Interval) -> str:
    return kappa.reason or f"{kappa.method}, {formats.level(kappa.level)}"


def _rounded(value: float) -> float:
    return math.floor(value + 0.5)


def _estimate(kappa: Interval) -> str:
    return formats.estimate(kappa.value, _within(kappa.low), _within(kappa.high))


def _within(value: float) -> float:
    """Clips to kappa's range, −1 to 1, which the large-sample interval can exceed; unknown values
    stay unknown.
    """
    if math.isnan(value):
        return value
    return min(1.0, max(-1.0, value))
