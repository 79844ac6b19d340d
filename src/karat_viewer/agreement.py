"""How well the judge agrees with people: exactly, within one step, and beyond chance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean

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


class Agreement(msgspec.Struct, kw_only=True):
    """One person and the judge on one metric, written for people."""

    metric: str
    who: str
    answers: int
    clusters: int  # questions, conversations or participants
    undecided: int = 0  # answers about which the person cannot tell
    exact: str = formats.UNKNOWN
    within_one: str = formats.UNKNOWN
    kappa: str = formats.UNKNOWN
    kappa_note: str = ""
    bias: str = formats.UNKNOWN  # judge minus person, on average


def agreements(pairs: Sequence[Pair]) -> list[Agreement]:
    """One row per metric and person, sorted by both."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.column.key, pair.who), []).append(pair)
    rows: list[Agreement] = []
    for (metric, who), group in sorted(groups.items()):
        clusters = [pair.cluster for pair in group]
        differences = [pair.judge - pair.person for pair in group]
        row = Agreement(
            metric=metric,
            who=who,
            answers=len(group),
            clusters=len(set(clusters)),
            kappa_note="the metric has no steps",
            bias=formats.signed(math.fsum(differences) / len(group)),
        )
        rows.append(row)
        steps = [float(value) for value, _ in steps_of(group[0].column)]
        if not steps:
            continue
        people = [pair.person for pair in group]
        # A mean over repeats is rounded to the nearest step, as between the judges of a panel.
        judged = []
        gaps = []
        for pair in group:
            rounded = math.floor(pair.judge + 0.5)
            judged.append(min(max(rounded, steps[0]), steps[-1]))
            gaps.append(abs(pair.person - rounded))

        row.exact = _share(gap == 0 for gap in gaps)
        if len(steps) > 2:
            row.within_one = _share(gap <= 1 for gap in gaps)

        if {*people, *judged} <= {*steps}:
            _beyond_chance(row, cohen_kappa(people, judged, clusters, categories=steps))
        else:
            row.kappa_note = "some scores are not among the metric's steps"

    return rows


def agreements_in_words(pairs: Iterable[WordPair]) -> list[Agreement]:
    """One row per question asked and person.

    Missing judgements are left out; the person's are counted.
    """
    groups: dict[tuple[str, str], list[WordPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.what, pair.who), []).append(pair)
    rows: list[Agreement] = []
    for (what, who), group in groups.items():
        both = [pair for pair in group if pair.person is not None and pair.karat is not None]
        people = [pair.person for pair in both]
        karats = [pair.karat for pair in both]
        clusters = [pair.cluster for pair in both]
        categories = list(dict.fromkeys([*people, *karats]))
        row = Agreement(
            metric=what,
            who=who,
            answers=len(both),
            clusters=len(set(clusters)),
            undecided=sum(pair.person is None for pair in group),
        )
        rows.append(row)
        if not both:
            continue
        row.exact = _share(pair.person == pair.karat for pair in both)
        if not all(pair.words for pair in both):
            row.kappa_note = "the fields share no words"
        elif len(categories) > _MOST_WORDS:
            row.kappa_note = "too many different answers for a kappa"
        else:
            kappa = cohen_kappa(people, karats, clusters, categories=categories, weights="none")
            _beyond_chance(row, kappa)

    return rows


def _share(these: Iterable[bool]) -> str:
    return formats.share(fmean(these))


def _beyond_chance(row: Agreement, kappa: Interval) -> None:
    low = _within(kappa.low)
    high = _within(kappa.high)
    row.kappa = formats.estimate(kappa.value, low, high)
    row.kappa_note = kappa.reason or f"{kappa.method}, {formats.level(kappa.level)}"


def _within(value: float) -> float:
    """Clips to kappa's range, −1 to 1, which the large-sample interval can exceed; unknown values
    stay unknown.
    """
    if math.isnan(value):
        return value
    return min(1.0, max(-1.0, value))
