"""Reviews: what people say of answers and of their turns, checked and kept in the run folder."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
from starlette.responses import JSONResponse, Response

from karat import formats
from karat.analysis.model import MetricInfo
from karat.errors import BadRun
from karat.journal import Label, add_label
from karat.journal.labels import LONGEST_NOTE, Judged
from karat.numeric.diagnosis import MEANINGS
from karat.records import Sample
from karat.viewer.conversing import is_judged
from karat.viewer.opened import Opened, Page
from karat.viewer.readings import Answered, checked
from karat.viewer.tasks import reading_rows
from karat.viewer.texts import Told
from karat.viewer.told import claims_of, steps_of

__all__ = ["Reading", "Review", "save"]


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a field is read: one of the two."""

    value: Answered | None = None
    kind: str = ""  # why there is no answer


class Review(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a form sends: everything that its reviewer now says of a trial, or of one of its turns."""

    trial: str
    who: str
    turn: int | None = None  # from 0; None: of the whole, and then without the last three
    scores: dict[str, float] = {}
    claims: dict[str, str] = {}  # place of a claim, as digits → confirmed, rejected
    note: str = ""
    verdict: str = ""
    diagnosis: str = ""
    readings: dict[str, Reading] = {}  # place of a field, as digits → how it is read


class _Refused(Exception):
    """What a form said that cannot be kept."""


def save(opened: Opened, body: bytes) -> Response:
    """Keeps a review; 422 with a sentence where it says what cannot be."""
    try:
        review = msgspec.json.decode(body, type=Review)
        with opened.page() as page:
            told = page.texts.trial(review.trial)
            if told is None or told.answer is None:
                raise _Refused("the run has no answer of this trial")
            label = _label(review, told, page)
        add_label(opened.run, label)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return JSONResponse({"problem": f"not a review: {error}"}, status_code=422)
    except _Refused as error:
        return JSONResponse({"problem": str(error)}, status_code=422)
    except BadRun as error:
        return JSONResponse({"problem": str(error)}, status_code=409)
    return JSONResponse({"saved": label.at, "stamp": opened.stamp()}, status_code=201)


def _label(review: Review, told: Told, page: Page) -> Label:
    who = " ".join(formats.clean(review.who).split())
    if not who or len(who) > 60:
        raise _Refused("say who you are, in at most 60 characters")
    if len(review.note) > LONGEST_NOTE:
        raise _Refused(f"a note has at most {formats.count(LONGEST_NOTE)} characters")
    found = _of_turn(review, told, page) if review.turn is not None else _of_whole(review, told, page)
    at, note = datetime.now(UTC).isoformat(timespec="seconds"), formats.clean(review.note).strip()
    return msgspec.structs.replace(found, at=at, who=who, note=note)


def _of_whole(review: Review, told: Told, page: Page) -> Label:
    if review.verdict or review.diagnosis or review.readings:
        raise _Refused("a verdict, a diagnosis and a reading are of one turn: say which")
    columns = {column.key: column for column in page.questions.columns}
    claims = claims_of(told.scores)
    return Label(
        at="",
        who="",
        trial=told.id,
        scores={key: _score(key, value, columns) for key, value in review.scores.items()},
        claims=dict(_verdict(place, verdict, claims) for place, verdict in review.claims.items()),
    )


def _of_turn(review: Review, told: Told, page: Page) -> Label:
    turn, sample = review.turn or 0, page.texts.sample_of(told.n)
    replies = told.answer.replies if told.answer is not None else ()
    if review.scores or review.claims:
        raise _Refused("scores and claims are of a whole answer, not of a turn")
    if not 0 <= turn < min(len(sample.turns), len(replies)) or replies[turn].absent:
        raise _Refused("the trial has no such turn, or nothing was said in it")
    if review.verdict and (review.verdict not in get_args(Judged) or not is_judged(sample, turn, told)):
        raise _Refused(f"a verdict is {', '.join(get_args(Judged))}, and of a turn that has a golden answer")
    if review.diagnosis and (review.diagnosis not in MEANINGS or review.verdict != "wrong"):
        raise _Refused("a diagnosis is one of karat's, and of a turn that is wrong")
    answers, unread = _readings(review, turn, told, sample)
    return Label(
        at="",
        who="",
        trial=told.id,
        turn=turn,
        verdict=review.verdict or None,  # type: ignore[arg-type] # one of them
        diagnosis=review.diagnosis,
        answers=answers,
        unread=unread,
    )


def _readings(review: Review, turn: int, told: Told, sample: Sample) -> tuple[dict[str, Answered], dict[str, str]]:
    answers: dict[str, Answered] = {}
    unread: dict[str, str] = {}
    row = reading_rows(told.scores).get(turn)
    if review.readings and row is None:
        raise _Refused("the run is over no study, or this turn has not been read yet")
    for place, reading in review.readings.items():
        try:
            name, value, kind = checked(sample, turn, row, place, (reading.value, reading.kind))
        except ValueError as error:
            raise _Refused(formats.excerpt(formats.clean(str(error)), 300)) from error
        if value is None:
            unread[name] = kind
        else:
            answers[name] = value
    return answers, unread


def _score(key: str, value: float, columns: dict[str, MetricInfo]) -> float:
    column = columns.get(key)
    if column is None:
        raise _Refused(f"the run has no metric {key!r:.100}")
    steps = [float(step) for step, _ in steps_of(column)]
    low = -math.inf if column.low is None else column.low
    high = math.inf if column.high is None else column.high
    if (steps and value not in steps) or not math.isfinite(value) or not low <= value <= high:
        wanted = (
            ", ".join(step for step, _ in steps_of(column)) or formats.interval(column.low, column.high) or "a number"
        )
        raise _Refused(f"{key}: want {wanted}")
    return value


def _verdict(place: str, verdict: str, claims: list[str]) -> tuple[str, Any]:
    at = int(place) if place.isascii() and place.isdigit() and len(place) < 6 else -1
    if not 0 <= at < len(claims) or verdict not in ("confirmed", "rejected"):
        raise _Refused("a claim is confirmed or rejected, and one of the trial's")
    return claims[at], verdict
