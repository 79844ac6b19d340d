"""The list of runs, and the page of one run: its report, kept up to date."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from karat import formats, kinds
from karat.analysis.history import history
from karat.document.followed import history_document
from karat.errors import BadOption
from karat.kind_views import address
from karat_viewer.open_run import OpenRun
from karat_viewer.samples_page import unit_of
from karat_viewer.web import Site, asked, whole_asked

_PAGE = 100


def runs_page(site: Site, request: Request) -> Response:
    """Every run in the folder. A viewer of a single run redirects to it."""
    if len(site.library.only) == 1:
        return RedirectResponse(address("runs", site.library.only[0]), status_code=303)
    listing = site.library.listing()
    q = asked(request, "q").strip()
    tag = asked(request, "tag")
    sort = asked(request, "sort", among=("oldest", "name", "status"))
    words = q.lower().split()
    cards = []
    for card in listing.cards:
        text = " ".join((card.folder, card.name, card.run, *card.tags)).lower()
        if (not tag or tag in card.tags) and all(word in text for word in words):
            cards.append(card)

    if sort == "oldest":
        cards.reverse()
    elif sort:
        cards.sort(
            key=lambda card: (
                (card.name.lower(), card.created) if sort == "name" else (card.status, card.name)
            )
        )

    page = whole_asked(request, "page")
    most = max(1, -(-len(cards) // _PAGE))
    shown = cards[page * _PAGE : (page + 1) * _PAGE]
    return site.page(
        request,
        "runs.html.j2",
        title="Runs",
        root=str(site.library.root),
        results=site.library.results([card.folder for card in shown]),
        cards=shown,
        total=len(cards),
        left=listing.left,
        tags=sorted({tag for card in listing.cards for tag in card.tags}),
        tag=tag,
        q=q,
        sort=sort,
        page=page,
        pages_=most,
    )


def overview_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """The main result, its numbers, and links to details."""
    stamp = opened.stamp()
    summary = opened.summary()
    links_of, links = kinds.of(summary.kind).views().links(summary)
    made_of = opened.document(summary)

    # Links to other pages: name, address, what is there
    unit = unit_of(opened)

    def listed(**query: Any) -> str:
        return address("runs", opened.name, "samples", **query)

    failed = summary.total.ledger.failed
    doors = [(f"All {unit}s", listed(), formats.count(summary.samples))]
    if summary.metrics:
        doors += [("Worst first", listed(sort="worst"), "")]
    if summary.metrics and len(summary.conditions) > 1:
        doors += [("Largest gaps", listed(sort="gap"), "")]
    if failed:
        doors += [("Failures", listed(failure="any"), formats.plural(failed, "trial"))]
    several = len(summary.conditions) > 1 and summary.metrics
    if several:
        doors += [("Compare conditions", address("compare", run=opened.name), "")]
    if summary.metrics:
        doors += [("History", address("history", run=opened.name), "over runs")]
    doors += [("Reviews", address("runs", opened.name, "reviews"), "")]
    page = site.page(
        request,
        "overview.html.j2",
        title=summary.name,
        run=opened.name,
        summary=summary,
        eyebrow=f"{summary.name} · run {summary.run} · {summary.created[:10]} · {summary.status}",
        verdicts=made_of.verdicts,
        facts=made_of.facts,
        warnings=made_of.warnings,
        sections=made_of.sections,
        doors=doors,
        links_of=links_of,
        links=[(name, address("runs", opened.name, group, name)) for group, name in links],
        live=address("runs", opened.name, "state"),
        stamp=stamp,
        going=summary.status == "running",
    )
    opened.look_ahead()
    return page


def history_page(site: Site, request: Request) -> Response:
    """One metric over all runs of the experiment that `run` belongs to."""
    name = asked(request, "run")
    summaries, waiting = site.library.history_of(name)
    metric = asked(request, "metric") or None
    condition = asked(request, "condition") or None
    newest = max(summaries, key=lambda summary: summary.created, default=None)
    if newest is None:
        return site.problem(request, 503, "Not computed yet", "Reload the page in a few seconds.")
    try:
        made_of = history_document(history(summaries, metric=metric, condition=condition))
    except BadOption as error:
        return site.problem(request, 400, "No such history", str(error))

    more = (f"{formats.plural(waiting, 'run')} being computed: reload the page",) if waiting else ()
    return site.page(
        request,
        "history.html.j2",
        title=made_of.name,
        run=name,
        name=newest.name,
        made_of=made_of,
        warnings=more,
        metrics=[info.key for info in newest.metrics],
        metric=metric or newest.metrics[0].key,
        conditions=newest.conditions,
        condition=condition or "",
    )


def kind_page(site: Site, request: Request, opened: OpenRun) -> Response:
    """A page that only runs of this kind have."""
    summary = opened.summary()
    group = request.path_params["group"]
    name = request.path_params["name"]
    shown = kinds.of(summary.kind).views().page(summary, opened.name, group, name)
    if shown is None:
        return site.problem(request, 404, "No such page", "The run has no page with this name.")
    return site.page(
        request,
        "kind_page.html.j2",
        title=summary.name,
        run=opened.name,
        shown=shown,
        path=address("runs", opened.name, group, name),
        samples=address("runs", opened.name, "samples", **shown.samples),
        live=address("runs", opened.name, "state"),
        stamp=opened.stamp(),
    )


def state(request: Request, opened: OpenRun) -> Response:
    """Whether anything has changed: open pages poll this."""
    stamp = opened.stamp()
    tag = f'"{stamp}"'
    headers = {"etag": tag, "cache-control": "no-cache, private"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    progress = opened.index.progress()
    content = {
        "stamp": stamp,
        "going": opened.going(),
        "done": progress.done,
        "total": progress.total,
    }
    return JSONResponse(content, headers=headers)
