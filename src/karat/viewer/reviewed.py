"""The page of reviews: what people said, beside what the judge or karat said, and how far they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from karat import formats
from karat.journal import Label
from karat.records import Score
from karat.viewer.agreeing import Pair, Said, agreements, agreements_in_words
from karat.viewer.conversing import right_of, verdict_row
from karat.viewer.looking import unit_of
from karat.viewer.opened import Opened, Page
from karat.viewer.queries import Questions
from karat.viewer.readings import Answered, read_by, read_by_karat, said
from karat.viewer.tasks import reading_rows
from karat.viewer.voices import VERDICTS
from karat.viewer.web import Site, address

__all__ = ["reviews_page"]

_MOST_LABELS = 20_000
_MOST_TURNS = 5_000  # labels of turns: each takes a look into the journal
_LISTED = 200
_LARGEST = 1e100  # of a score: what is larger nobody gave, and its sums overflow
_MOST_FIELDS = 60


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """The trial of a label in the index."""

    cell: int
    row: int
    id: str  # of the sample
    condition: str
    values: dict[str, float]  # metric's key → number; NaN: none
    study: str = ""
    group: bool = False


class _Beside(msgspec.Struct, kw_only=True):
    """What labels and the run both say."""

    pairs: list[Pair] = []
    found: list[Said] = []
    told: dict[int, list[tuple[str, bool]]] = {}  # place of a label → what it says, and whether karat says otherwise
    places: dict[str, _Place | None] = {}  # trial → where it stands
    turns: int = 0  # labels of turns that were looked at
    left: int = 0  # labels that were not


def reviews_page(site: Site, request: Request, opened: Opened) -> Response:
    """What was reviewed, and the agreement of people and judge."""
    labels = opened.labels()
    newest = [label for group in labels.newest.values() for label in group]
    newest.sort(key=lambda label: label.at, reverse=True)
    with opened.page() as page:
        beside = _beside(newest, page)
        unit = unit_of(opened, page)
        rows = [_listed(at, label, beside, opened, page) for at, label in enumerate(newest[:_LISTED])]
    claims = [verdict for label in newest for verdict in label.claims.values()]
    return site.page(
        request,
        "reviews.html.j2",
        title=opened.run.info.name,
        run=opened.name,
        unit=unit,
        kind=opened.run.info.kind,
        agreements=[*agreements(beside.pairs), *agreements_in_words(_sorted(beside.found))][:_LISTED],
        words=bool(beside.found),
        rows=rows,
        total=len(newest),
        left=beside.left,
        claims={verdict: claims.count(verdict) for verdict in ("confirmed", "rejected")},
        damaged=labels.damaged,
        live=address("runs", opened.name, "state"),
        stamp=opened.stamp(),
    )


def _beside(labels: Sequence[Label], page: Page) -> _Beside:
    beside = _Beside()
    for at, label in enumerate(labels):
        if label.trial not in beside.places and len(beside.places) < _MOST_LABELS:
            beside.places[label.trial] = _place(label.trial, page.questions)
        place = beside.places.get(label.trial)
        beside.told[at] = []
        if at >= _MOST_LABELS or (label.turn is not None and (beside.turns >= _MOST_TURNS or page.texts.spent)):
            beside.left += 1
        elif place is None:
            continue
        elif label.turn is None:
            beside.pairs += _pairs(label, place, page)
        else:
            beside.turns += 1
            for one, words, differs in _of_turn(
                label, label.turn, place, page.texts.scores_of(place.cell, label.turn), rule=page.right
            ):
                beside.found += [] if one is None else [one]
                beside.told[at].append((words, differs))
    return beside


def _place(trial: str, questions: Questions) -> _Place | None:
    cell = questions.index.cell_of(trial)
    if cell is None:
        return None
    row, condition, repetition = questions.index.place(cell)
    person = questions.people.by_row.get(row)
    return _Place(
        cell=cell,
        row=row,
        id=questions.ids[row],
        condition=questions.conditions[condition],
        values={key: float(values[row, condition, repetition]) for key, values in questions.values.items()},
        study="" if person is None else person.study,
        group=person is not None and person.members > 0,
    )


def _pairs(label: Label, place: _Place, page: Page) -> Iterator[Pair]:
    """The scores of a whole answer that the person and the judge both gave."""
    for column in page.questions.columns:
        theirs = label.scores.get(column.key)
        judged = place.values[column.key]
        if theirs is not None and not math.isnan(judged) and max(abs(theirs), abs(judged)) < _LARGEST:
            yield Pair(column=column, who=label.who, person=theirs, judge=judged, cluster=place.row)


def _of_turn(
    label: Label, turn: int, place: _Place, scores: Sequence[Score], *, rule: str
) -> Iterator[tuple[Said | None, str, bool]]:
    """What is said of a turn, in words, and whether karat says otherwise; None: karat has nothing to hold beside it."""
    if label.verdict is not None:
        row = verdict_row(scores, turn)
        right = right_of(row, rule)
        karat = None if right is None else "right" if right else "wrong"
        person = None if label.verdict == "cannot_tell" else label.verdict
        words, differs = _words("", VERDICTS[label.verdict], karat, person)
        yield _said("right or wrong", label, place, person, karat), words, differs and person is not None
        diagnosis = row.labels.get("diagnosis") if row is not None else None
        if label.diagnosis:
            both = label.verdict == "wrong" and right is False
            one = _said("diagnosis, where both say wrong", label, place, label.diagnosis, diagnosis) if both else None
            shown = None if diagnosis is None else diagnosis.replace("_", " ")
            yield one, *_words("", label.diagnosis.replace("_", " "), shown, label.diagnosis.replace("_", " "))
    row = reading_rows(scores).get(turn)
    for name in [*label.answers, *label.unread][:_MOST_FIELDS]:
        theirs, karats = read_by(label, name), read_by_karat(row, name)
        known = None if karats == (None, "") else _plain(karats)
        one = _said(f"{place.study}: {name}", label, place, _plain(theirs), known)
        shown = None if known is None else said(*karats)
        yield one, *_words(f"{name}: ", said(*theirs), shown, shown if theirs == karats else None)


def _said(what: str, label: Label, place: _Place, person: Any, karat: Any) -> Said:
    return Said(what=what, who=label.who, person=person, karat=karat, cluster=place.row)


def _words(before: str, words: str, karat: str | None, person: str | None) -> tuple[str, bool]:
    """What a person said, with what karat says where that is something else."""
    if karat is None or karat == person:
        return f"{before}{words}", False
    return f"{before}{words} (karat: {karat})", True


def _plain(reading: tuple[Answered | None, str]) -> tuple[Any, str]:
    value, kind = reading
    return (tuple(value) if isinstance(value, list) else value), kind


def _sorted(found: Sequence[Said]) -> list[Said]:
    """By thing and person; of a study before its fields all of them together."""
    together = [
        msgspec.structs.replace(one, what="every field", words=False) for one in found if isinstance(one.person, tuple)
    ]
    order = {"right or wrong": 0, "every field": 1}
    return sorted([*found, *together], key=lambda one: (order.get(one.what, 2), one.what, one.who))


def _listed(at: int, label: Label, beside: _Beside, opened: Opened, page: Page) -> dict[str, Any]:
    place = beside.places.get(label.trial)
    told = [*beside.told[at], *((f"{key} {formats.brief(value)}", False) for key, value in label.scores.items())]
    told += [(formats.plural(len(label.claims), "claim"), False)] if label.claims else []
    return {
        "label": label,
        "turn": None if label.turn is None else label.turn + 1,
        "path": None if place is None else _path(label.turn, place, opened, page),
        "sample": label.trial if place is None else place.id,
        "condition": "" if place is None else place.condition,
        "told": told,
    }


def _path(turn: int | None, place: _Place, opened: Opened, page: Page) -> str:
    """To where one can see what a label is about: in a game that is the session of a member."""
    here = ("runs", opened.name, "samples", place.row + 1)
    if place.group and turn is not None:
        sample = page.texts.sample(place.row)
        seat = sample.turns[turn].seat if 0 <= turn < len(sample.turns) else None
        return address(*here, seat=seat)
    part = {"conversation": "turn", "study": "task"}.get(opened.run.info.kind)
    return address(*here) if part is None or turn is None else f"{address(*here)}#{part}-{turn + 1}"
