"""Reviews: people's judgements of answers and turns, checked and saved in the run folder; and the
page of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import get_args

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from karat import formats
from karat.errors import BadRun
from karat.journal import Label, add_label
from karat.journal.labels import LONGEST_NOTE, Judged
from karat.kind_views import TrialRecord, address, is_judged
from karat.records import MOST_VALUE
from karat_viewer.agreement import Pair, WordPair, agreements, agreements_in_words
from karat_viewer.open_run import OpenRun, Page
from karat_viewer.samples_page import unit_of
from karat_viewer.trial_view import claims_of, steps_of
from karat_viewer.web import Site

_LISTED = 200


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A label's trial, as in the index."""

    cell: int
    row: int
    id: str  # of the sample
    condition: str
    values: dict[str, float]  # metric's key → number; NaN: none


class _Compared(msgspec.Struct, kw_only=True):
    """Judgements that labels and the run have in common."""

    pairs: list[Pair] = []
    word_pairs: list[WordPair] = []
    # place of a label → its texts, and whether karat disagrees
    texts: dict[int, list[tuple[str, bool]]] = {}
    places: dict[str, _Place | None] = {}  # trial → its place
    left_out: int = 0  # labels that were not compared


def reviews_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """The reviews, and how well people and judge agree."""
    labels = opened.labels()
    newest = [label for group in labels.newest.values() for label in group]
    newest.sort(key=lambda label: label.at, reverse=True)
    with opened.page() as page:
        compared = _compared(newest, page)
        unit = unit_of(opened, page)
        texts = page.questions.views.reviews
        rows = [
            _listed(at, label, compared, opened, page) for at, label in enumerate(newest[:_LISTED])
        ]

    claims = [verdict for label in newest for verdict in label.claims.values()]
    # If the kind's turns have fields, all fields together come before each single one.
    fields = [
        msgspec.structs.replace(pair, what="every field", words=False)
        for pair in compared.word_pairs
        if isinstance(pair.person, tuple)
    ]
    order = {"right or wrong": 0, "every field": 1}
    in_words = sorted(
        [*fields, *compared.word_pairs],
        key=lambda pair: (order.get(pair.what, 2), pair.what, pair.who),
    )
    return site.page(
        request,
        "reviews.html.j2",
        title=opened.run.info.name,
        run=opened.name,
        unit=unit,
        texts=texts,
        agreements=[*agreements(compared.pairs), *agreements_in_words(in_words)][:_LISTED],
        words=bool(in_words),
        rows=rows,
        total=len(newest),
        left=compared.left_out,
        claims={verdict: claims.count(verdict) for verdict in ("confirmed", "rejected")},
        damaged=labels.damaged,
        live=address("runs", opened.name, "state"),
        stamp=opened.stamp(),
    )


def _compared(labels: Sequence[Label], page: Page) -> _Compared:
    compared = _Compared()
    views = page.questions.views
    for at, label in enumerate(labels):
        if label.trial not in compared.places:
            questions = page.questions
            cell = questions.index.cell_of(label.trial)
            if cell is None:
                compared.places[label.trial] = None
            else:
                row, condition, repetition = questions.index.place(cell)
                compared.places[label.trial] = _Place(
                    cell=cell,
                    row=row,
                    id=questions.ids[row],
                    condition=questions.conditions[condition],
                    values={
                        key: float(values[row, condition, repetition])
                        for key, values in questions.values.items()
                    },
                )

        place = compared.places.get(label.trial)
        compared.texts[at] = []
        if label.turn is not None and page.texts.spent:
            compared.left_out += 1
        elif place is None:
            continue
        elif label.turn is None:
            # The scores that the person and the judge both gave
            for column in page.questions.columns:
                theirs = label.scores.get(column.key)
                judged = place.values[column.key]
                if theirs is None or math.isnan(judged) or abs(judged) >= MOST_VALUE:
                    continue
                if abs(theirs) < MOST_VALUE:
                    compared.pairs.append(
                        Pair(
                            column=column,
                            who=label.who,
                            person=theirs,
                            judge=judged,
                            cluster=place.row,
                        )
                    )
        else:
            scores = page.texts.scores_of(place.cell, label.turn)
            part = page.questions.listing.parts.get(place.row, "")
            for pair in views.judgements(label, scores, part, page.right):
                compared.texts[at].append((pair.words, pair.differs))
                if pair.what:
                    compared.word_pairs.append(
                        WordPair(
                            what=pair.what,
                            who=label.who,
                            person=pair.person,
                            karat=pair.karat,
                            cluster=place.row,
                        )
                    )

    return compared


def _listed(
    at: int,
    label: Label,
    compared: _Compared,
    opened: OpenRun,
    page: Page,
) -> dict[str, object]:
    place = compared.places.get(label.trial)
    path = None
    texts = [
        *compared.texts[at],
        *((f"{key} {formats.brief(value)}", False) for key, value in label.scores.items()),
    ]
    if label.claims:
        texts += [(formats.plural(len(label.claims), "claim"), False)]
    if place is not None:
        turn = label.turn
        views = page.questions.views
        query, fragment = (
            ({}, "") if turn is None else views.place_of(page.texts.sample(place.row), turn)
        )
        path = address("runs", opened.name, "samples", place.row + 1, **query) + (
            f"#{fragment}" if fragment else ""
        )

    return {
        "label": label,
        "turn": None if label.turn is None else label.turn + 1,
        "path": path,
        "sample": label.trial if place is None else place.id,
        "condition": "" if place is None else place.condition,
        "texts": texts,
    }


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a field is read: a value, or why there is none."""

    value: float | str | list[str] | None = None
    kind: str = ""  # why there is no answer


class Review(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of a form: the reviewer's whole label of a trial, or of one of its turns."""

    trial: str
    who: str
    # from 0; None: the whole answer, which does not take the last three fields
    turn: int | None = None
    scores: dict[str, float] = {}
    claims: dict[str, str] = {}  # place of a claim, as digits → confirmed, rejected
    note: str = ""
    verdict: str = ""
    diagnosis: str = ""
    readings: dict[str, Reading] = {}  # place of a field, as digits → how it is read


def save(opened: OpenRun, body: bytes) -> Response:
    """Saves a review; status 422 and a sentence if it is invalid."""
    try:
        review = msgspec.json.decode(body, type=Review)
        with opened.page() as page:
            trial = page.texts.trial(review.trial)
            if trial is None or trial.answer is None:
                raise ValueError("the run has no answer for this trial")

            who = " ".join(formats.clean(review.who).split())
            if not who or len(who) > 60:
                raise ValueError("enter your name, in at most 60 characters")
            if len(review.note) > LONGEST_NOTE:
                raise ValueError(f"a note has at most {formats.count(LONGEST_NOTE)} characters")
            if review.turn is not None:
                label = _of_turn(review, trial, page)
            else:
                label = _of_whole(review, trial, page)

            at = datetime.now(UTC).isoformat(timespec="seconds")
            note = formats.clean(review.note).strip()
            label = msgspec.structs.replace(label, at=at, who=who, note=note)

        add_label(opened.run, label)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return JSONResponse({"problem": f"not a review: {error}"}, status_code=422)
    except ValueError as error:
        return JSONResponse(
            {"problem": formats.excerpt(formats.clean(str(error)), 300)}, status_code=422
        )
    except BadRun as error:
        return JSONResponse({"problem": str(error)}, status_code=409)

    return JSONResponse({"saved": label.at, "stamp": opened.stamp()}, status_code=201)


def _of_whole(review: Review, trial: TrialRecord, page: Page) -> Label:
    if review.verdict or review.diagnosis or review.readings:
        raise ValueError("a verdict, a diagnosis and a reading belong to one turn: say which")
    columns = {column.key: column for column in page.questions.columns}
    for key, value in review.scores.items():
        column = columns.get(key)
        if column is None:
            raise ValueError(f"the run has no metric {key!r:.100}")
        names = steps_of(column)
        steps = [float(step) for step, _ in names]
        if column.low is None:
            low = -math.inf
        else:
            low = column.low
        high = math.inf if column.high is None else column.high
        if (steps and value not in steps) or not math.isfinite(value) or not low <= value <= high:
            wanted = (
                ", ".join(step for step, _ in names)
                or formats.interval(column.low, column.high)
                or "a number"
            )
            raise ValueError(f"{key}: expected {wanted}")

    claims = claims_of(trial.scores)
    chosen = {}
    for place, verdict in review.claims.items():
        if place.isascii() and place.isdigit() and len(place) < 6:
            at = int(place)
        else:
            at = -1

        if not 0 <= at < len(claims) or verdict not in ("confirmed", "rejected"):
            raise ValueError("a claim must be one of the trial's, and confirmed or rejected")
        chosen[claims[at]] = verdict

    return Label(at="", who="", trial=trial.id, scores=review.scores, claims=chosen)  # type: ignore[arg-type] # checked


def _of_turn(review: Review, trial: TrialRecord, page: Page) -> Label:
    turn = review.turn or 0
    sample = page.texts.sample_of(trial.n)
    replies = trial.replies
    if review.scores or review.claims:
        raise ValueError("scores and claims belong to a whole answer, not to a turn")
    if not 0 <= turn < min(len(sample.turns), len(replies)) or replies[turn].absent:
        raise ValueError("the trial has no such turn, or no reply to it")
    if review.verdict and (
        review.verdict not in get_args(Judged) or not is_judged(sample, turn, trial)
    ):
        raise ValueError(
            f"a verdict is one of {', '.join(get_args(Judged))}, and the turn needs a golden answer"
        )

    if review.diagnosis and (
        review.diagnosis not in page.questions.views.diagnoses or review.verdict != "wrong"
    ):
        raise ValueError("a diagnosis must be one of karat's, and the turn must be wrong")

    readings = {place: (reading.value, reading.kind) for place, reading in review.readings.items()}
    answers, unread = page.questions.views.check_readings(sample, turn, trial.scores, readings)
    return Label(
        at="",
        who="",
        trial=trial.id,
        turn=turn,
        verdict=review.verdict or None,  # type: ignore[arg-type] # one of them
        diagnosis=review.diagnosis,
        answers=answers,
        unread=unread,
    )
