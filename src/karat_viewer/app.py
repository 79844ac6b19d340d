"""The viewer's routes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from karat import formats
from karat.errors import BadRun, KaratError
from karat_viewer.comparing import compare_page, flips_page
from karat_viewer.jobs import NotYet
from karat_viewer.open_run import OpenRun
from karat_viewer.overview import history_page, kind_page, overview_page, runs_page, state
from karat_viewer.queries import TooSlow
from karat_viewer.reviews_page import reviews_page, save
from karat_viewer.samples_page import found_page, sample_page, samples_page, text_page
from karat_viewer.web import Site, assets

_log = logging.getLogger(__package__)

View = Callable[[Site, Request, OpenRun], Response]


def application(site: Site) -> Starlette:
    """The pages, without the access control around them (`karat_viewer.safety.Door`)."""
    run = "/runs/{run}"

    async def answer(request: Request) -> Response:
        try:
            body = await request.body()
        except ClientDisconnect:
            return PlainTextResponse("The request is too large.", status_code=413)

        return await run_in_threadpool(_answered, site, request, lambda opened: save(opened, body))

    app = Starlette(
        routes=[
            Route("/", _plain(site, runs_page)),
            Route("/compare", _plain(site, compare_page)),
            Route("/compare/flips", _plain(site, flips_page)),
            Route("/history", _plain(site, history_page)),
            Route("/static/{mark}/{name}", _static),
            Route(run, _of_run(site, overview_page)),
            Route(f"{run}/state", _of_run(site, lambda _, request, opened: state(request, opened))),
            Route(f"{run}/samples", _of_run(site, samples_page)),
            Route(f"{run}/samples/{{n:int}}", _of_run(site, sample_page)),
            Route(f"{run}/find", _of_run(site, found_page)),
            Route(f"{run}/text/{{trial}}/{{turn:int}}", _of_run(site, text_page)),
            Route(f"{run}/reviews", _of_run(site, reviews_page)),
            Route(f"{run}/labels", answer, methods=["POST"]),
            Route(f"{run}/{{group}}/{{name}}", _of_run(site, kind_page)),
        ],
        exception_handlers={HTTPException: _missing(site), 500: _fault},
    )
    app.router.redirect_slashes = False  # wrong addresses are not corrected
    return app


def _plain(site: Site, view: Callable[[Site, Request], Response]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return _page_or_problem(site, request, None, lambda: view(site, request))

    return answer


def _of_run(site: Site, view: View) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return _answered(site, request, lambda opened: view(site, request, opened))

    return answer


def _answered(site: Site, request: Request, view: Callable[[OpenRun], Response]) -> Response:
    try:
        opened = site.library.open(request.path_params["run"])
    except BadRun as error:
        return site.problem(request, 404, "The run cannot be opened", str(error))

    return _page_or_problem(site, request, opened, lambda: view(opened))


def _page_or_problem(
    site: Site,
    request: Request,
    opened: OpenRun | None,
    view: Callable[[], Response],
) -> Response:
    """The page, or a page that says why it cannot be shown."""
    try:
        return view()
    except NotYet as error:
        if opened is None:
            opened = site.library.open(request.query_params.get("run", ""))
        return site.waiting(request, opened, error)
    except TooSlow as error:
        return site.problem(request, 503, "This takes too long", str(error))
    except BadRun as error:
        return site.problem(request, 409, "The run cannot be shown", str(error))
    except KaratError as error:
        return site.problem(request, 500, "This could not be computed", str(error))
    except OSError as error:
        return site.problem(
            request,
            500,
            "The run cannot be read",
            f"{type(error).__name__}: {error}",
        )


def _static(request: Request) -> Response:
    asset = assets().get(request.path_params["name"])
    if asset is None or asset.mark != request.path_params["mark"]:
        return PlainTextResponse("There is no such file.", status_code=404)
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(asset.body, media_type=asset.type, headers=headers)


def _missing(site: Site) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        if status == 404:
            message = "There is no such page."
        else:
            message = formats.clean(str(getattr(error, "detail", "")))

        return site.problem(
            request,
            status,
            "No such page" if status == 404 else "Bad request",
            message,
        )

    return answer


def _fault(request: Request, error: Exception) -> Response:
    _log.error("%s: %s: %s", request.url.path, type(error).__name__, error)
    return PlainTextResponse("A bug in karat: see the terminal of `karat view`.", status_code=500)
