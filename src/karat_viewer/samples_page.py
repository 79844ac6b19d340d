"""The pages of questions: the list, and one of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from msgspec import structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from karat import formats, kinds
from karat.analysis.model import MetricInfo
from karat.index import trusted
from karat.kind_views import Reviews, SamplePage, TrialRecord, address
from karat_viewer import queries
from karat_viewer.open_run import OpenRun, Page
from karat_viewer.queries import Filter, Listed, Questions
from karat_viewer.trial_view import TrialContext, trial_view
from karat_viewer.web import Site, asked, number_asked, whole_asked

_VIEWS = (("rendered", "Rendered"), ("plain", "Plain"), ("diff", "Difference to golden"))


def unit_of(opened: OpenRun, page: Page | None = None) -> str:
    """The word for one sample.

    Some kinds need the index to distinguish participants from groups.
    """
    kind = kinds.of(opened.run.info.kind)
    if kind.by_session:
        return (page.questions.listing.unit if page is not None else "") or "session"
    return kind.unit


def samples_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """The list, filtered and sorted."""
    number = whole_asked(request, "page")
    kind = kinds.of(opened.run.info.kind)
    if text := asked(request, "text").strip():
        with opened.page() as page:
            questions = page.questions
        with trusted(opened.run):  # without the lock, so that other pages do not wait for a search
            questions.search(text, asked(request, "condition"))

    with opened.page() as page:
        questions = page.questions
        wanted = _wanted(request, page)
        column = questions.column(wanted.metric)
        total = len(questions.rows(wanted))

        sorts = [("position", "as in the dataset")]
        if page.questions.columns:
            sorts += [("worst", "worst first")]
            if len(page.questions.conditions) > 1:
                sorts += [("gap", "largest gap between conditions")]
            several = opened.run.info.plan.repetitions > 1
            if several:
                sorts += [("variance", "most varied repetitions")]
            sorts += [("best", "best first")]

        return site.page(
            request,
            "samples.html.j2",
            **_of(opened, page),
            views=questions.views,
            listing=questions.listing,
            by_id=kind.by_session,
            wanted=wanted,
            chosen=dict(wanted.choices),
            choices=questions.choices,
            columns=questions.columns,
            metric=column,
            by_turn=kind.by_session or kind.by_turn,
            conditions=questions.conditions,
            rows=[_row(row, questions, column) for row in questions.listed(wanted, page=number)],
            counted=formats.plural(total, unit_of(opened, page)),
            damaged=questions.index.damaged,
            sorts=sorts,
            query=_query(wanted),
            page=number,
            first=number * queries.PAGE,
            more=(number + 1) * queries.PAGE < total,
        )


def sample_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """One question with all its answers."""
    n = int(request.path_params["n"])
    first = whole_asked(request, "first")
    view = asked(request, "view", among=tuple(name for name, _ in _VIEWS)) or "rendered"
    kind = kinds.of(opened.run.info.kind)
    by_turn = kind.by_turn or kind.by_session
    with opened.page() as page:
        questions = page.questions
        if not 0 < n <= len(questions.index.samples):
            return site.problem(
                request,
                404,
                "No such question",
                "The run has no question with this number.",
            )

        sample = page.texts.sample(n - 1)
        trials, total = page.texts.trials(n - 1, first=first)
        reviews = Reviews(labels=opened.labels(), reviewer=site.reviewer)
        context = TrialContext(
            run=opened.name,
            columns=questions.columns,
            conditions=questions.conditions,
            reviews=reviews,
            view=view,
            golden_answers=[turn.golden for turn in sample.turns],
            by_turn=by_turn,
            folder=opened.run.path,
        )

        # The list from which the page was opened, with the previous and next entry
        wanted = _wanted(request, page)
        at = whole_asked(request, "at")
        query = _query(wanted)
        number = max(0, at - 1) // queries.PAGE
        before = after = None
        if at:
            before = _beside(opened, page, wanted, at - 1, view)
            after = _beside(opened, page, wanted, at + 1, view)

        content = {
            **_of(opened, page),
            "n": n,
            "sample": sample,
            "heading": sample.turns[0].question if sample.turns else sample.id,
            "by_turn": by_turn,
            "conditions": questions.conditions,
            "trials": (views := [trial_view(trial, context) for trial in trials]),
            "groups": _grouped(trials, views, reviews),
            "total": total,
            "first": first,
            "view": view,
            "views": _VIEWS[:2] if by_turn else _VIEWS,
            "at": at or None,
            "query": query,
            "list_path": address("runs", opened.name, "samples", page=number or None, **query),
            "before": before,
            "after": after,
        }
        given = SamplePage(
            run=opened.name,
            info=opened.run.info,
            n=n,
            sample=sample,
            trials=trials,
            conditions=questions.conditions,
            reviews=reviews,
            rule=page.right,
            seat=asked(request, "seat"),
            query=query,
        )
        own = questions.views.sample_page(given)

    if own is None:
        return site.page(request, "sample.html.j2", **content)
    template, more = own
    return site.page(
        request,
        f"kind/{template}",
        folder=questions.views.templates,
        **{**content, **more},
    )


def _grouped(
    trials: Sequence[TrialRecord], views: Sequence[dict[str, object]], reviews: Reviews
) -> list[dict[str, object]]:
    """Groups a condition's trials with the same texts and scores: the first, and the others folded
    below it.

    A trial that failed or was reviewed is shown on its own.
    """
    groups: dict[object, list[dict[str, object]]] = {}
    for trial, view in zip(trials, views, strict=True):
        alone = trial.answer is None or trial.failure is not None or reviews.labels.of(trial.id)
        texts = tuple(reply.text for reply in trial.replies)
        groups.setdefault(
            trial.n if alone else (trial.condition, texts, repr(trial.values)), []
        ).append(view)

    of = Counter(view["condition"] for view in views)
    return [
        {"trial": first, "same": same, "of": of[first["condition"]]}
        for first, *same in groups.values()
    ]


def _of(opened: OpenRun, page: Page | None = None) -> dict[str, Any]:
    """What the pages of a run have in common."""
    return {
        "title": opened.run.info.name,
        "run": opened.name,
        "unit": unit_of(opened, page),
        "live": address("runs", opened.name, "state"),
        "stamp": opened.stamp(),
    }


def text_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """The full text of one reply, unchanged, as a download that the browser never runs."""
    with opened.page() as page:
        trial = page.texts.trial(request.path_params["trial"])
    turn = int(request.path_params["turn"])
    replies = () if trial is None else trial.replies
    if turn >= len(replies):
        return site.problem(
            request,
            404,
            "No such text",
            "The run has no answer for this trial and turn.",
        )

    body = replies[turn].text.encode("utf-8", "replace")
    headers = {"content-disposition": f'attachment; filename="answer-{turn + 1}.txt"'}
    return PlainTextResponse(body, headers=headers)


def found_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """Redirects to the page of the question with this id."""
    with opened.page() as page:
        row = page.questions.index.samples.get(request.query_params.get("id", ""))
    if row is None:
        return site.problem(
            request,
            404,
            "No such question",
            "The run has no question with this id.",
        )

    return RedirectResponse(address("runs", opened.name, "samples", row + 1), status_code=303)


def _wanted(request: Request, page: Page) -> Filter:
    chosen = [(name, asked(request, name)) for name in page.questions.listing.choices]
    return Filter(
        sort=asked(request, "sort", among=get_args(queries.Sort)) or "position",  # type: ignore[arg-type] # one of them
        metric=asked(request, "metric"),
        condition=asked(request, "condition"),
        low=number_asked(request, "low"),
        high=number_asked(request, "high"),
        label=asked(request, "label"),
        failure=asked(request, "failure"),
        claims=asked(request, "claims") == "1",
        text=asked(request, "text").strip(),
        choices=tuple((name, value) for name, value in chosen if value),
    )


def _query(wanted: Filter) -> dict[str, Any]:
    """The filter as parameters, without defaults."""
    default = Filter()
    given = {}
    for name, value in structs.asdict(wanted).items():
        if value != getattr(default, name):
            given[name] = value

    return {
        name: "1" if value is True else value for name, value in given.items() if name != "choices"
    } | dict(wanted.choices)


def _beside(opened: OpenRun, page: Page, wanted: Filter, at: int, view: str) -> str | None:
    """The address of the question at a place (from 1) in the list from which the page was
    opened.
    """
    rows = page.questions.rows(wanted)
    if not 0 < at <= len(rows):
        return None
    shown = None if view == "rendered" else view
    return address(
        "runs",
        opened.name,
        "samples",
        int(rows[at - 1]) + 1,
        view=shown,
        at=at,
        **_query(wanted),
    )


def _row(row: Listed, questions: Questions, column: MetricInfo | None) -> dict[str, Any]:
    cells = {cell.condition: cell for cell in row.cells}
    if column is None:
        gap = ""
    else:
        gap = _number(column, row.gap)

    shown: list[dict[str, Any]] = []
    for n in range(len(questions.conditions)):
        cell = cells.get(n)
        if cell is None:
            shown.append({"text": formats.UNKNOWN, "below": "", "failed": False})
            continue

        has_spread = not math.isnan(cell.sd) and column is not None and not column.percent
        failed = ""
        if cell.failures:
            failed = f"{formats.count(cell.failures)} failed"
        below = (
            f"± {formats.number(cell.sd)}" if has_spread else "",
            f"n {cell.n}" if cell.n > 1 else "",
            failed,
        )
        text = formats.plural(cell.answers, "answer")
        if column is not None:
            text = _number(column, cell.mean)
        shown.append(
            {"text": text, "below": ", ".join(filter(None, below)), "failed": bool(failed)}
        )

    return {
        "n": row.row + 1,
        "id": row.id,
        "position": row.position,
        "question": row.question or row.id,
        "turns": row.turns,
        "gap": gap,
        "more": questions.listing.cells.get(row.row, [("", "")] * len(questions.listing.heads)),
        "cells": shown,
    }


def _number(column: MetricInfo, value: float) -> str:
    if math.isnan(value):
        return formats.UNKNOWN
    if column.percent:
        return formats.share(value)
    return formats.number(value)
