"""Reviews: what people say of answers, kept in the run folder, and how far they agree with the judge."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from karat import formats
from karat.errors import BadRun
from karat.journal import Label, add_label
from karat.viewer.agreeing import Pair, agreements
from karat.viewer.columns import Column
from karat.viewer.filling import unpacked
from karat.viewer.opened import Opened, Page
from karat.viewer.texts import Told
from karat.viewer.told import claims_of, steps_of
from karat.viewer.web import Site, address

__all__ = ["Review", "reviews_page", "save"]

_MOST_PAIRS = 20_000
_LISTED = 200


class Review(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the form of a trial sends: everything that its reviewer now says of it."""

    trial: str
    who: str
    scores: dict[str, float] = {}
    claims: dict[str, str] = {}  # place of a claim, as digits → confirmed, rejected
    note: str = ""


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
    if len(review.note) > 10_000:
        raise _Refused("a note has at most 10,000 characters")
    columns = {column.key: column for column in page.columns}
    claims = claims_of(told.scores)
    return Label(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        who=who,
        trial=told.id,
        scores={key: _score(key, value, columns) for key, value in review.scores.items()},
        claims=dict(_verdict(place, verdict, claims) for place, verdict in review.claims.items()),
        note=formats.clean(review.note).strip(),
    )


def _score(key: str, value: float, columns: dict[str, Column]) -> float:
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


def reviews_page(site: Site, request: Request, opened: Opened) -> Response:
    """What was reviewed, and the agreement of people and judge."""
    labels = opened.labels()
    newest = [label for group in labels.newest.values() for label in group]
    newest.sort(key=lambda label: label.at, reverse=True)
    with opened.page() as page:
        pairs, places = _pairs(newest[:_MOST_PAIRS], page)
        rows = [_listed(label, places, opened) for label in newest[:_LISTED]]
    claims = [verdict for label in newest for verdict in label.claims.values()]
    return site.page(
        request,
        "reviews.html.j2",
        title=opened.run.info.name,
        run=opened.name,
        agreements=agreements(pairs)[:_LISTED],
        rows=rows,
        total=len(newest),
        claims={verdict: claims.count(verdict) for verdict in ("confirmed", "rejected")},
        damaged=labels.damaged,
        live=address("runs", opened.name, "state"),
        stamp=opened.stamp(),
    )


_Places = dict[str, tuple[int, str, int, int]]


def _pairs(labels: list[Label], page: Page) -> tuple[list[Pair], _Places]:
    """The scores that a person and the judge both gave; and where each trial stands."""
    pairs, places = [], {}
    for label in labels:
        row = page.base.execute(
            "SELECT r.sample, s.id, r.condition, r.repetition, r.vals FROM trials r JOIN samples s ON s.n = r.sample "
            "WHERE r.id = ?", (label.trial,)
        ).fetchone()  # fmt: skip
        if row is None:
            continue
        sample, name, condition, repetition, packed = msgspec.convert(row, tuple[int, str, int, int, bytes | None])
        places[label.trial] = sample, name, condition, repetition
        values = unpacked(packed)
        for column in page.columns:
            said = label.scores.get(column.key)
            judged = values[column.n - 1] if column.n <= len(values) else math.nan
            if said is not None and not math.isnan(judged):
                pairs.append(Pair(column=column, who=label.who, person=said, judge=judged, cluster=sample))
    return pairs, places


def _listed(label: Label, places: _Places, opened: Opened) -> dict[str, Any]:
    place = places.get(label.trial)
    path = None if place is None else address("runs", opened.name, "samples", place[0])
    conditions = opened.run.info.plan.conditions
    known = place is not None and 0 <= place[2] < len(conditions)
    return {
        "label": label,
        "path": path,
        "sample": label.trial if place is None else place[1],
        "condition": conditions[place[2]] if place is not None and known else "",
        "scores": ", ".join(f"{key} {formats.brief(value)}" for key, value in label.scores.items()),
        "claims": formats.plural(len(label.claims), "claim") if label.claims else "",
    }
