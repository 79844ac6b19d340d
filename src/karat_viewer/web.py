"""What all pages share: rendering, assets, error pages, and reading parameters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from karat import __version__
from karat.analysis import Comparison
from karat.document.assets import css, script
from karat.document.templating import environment
from karat.kind_views import address
from karat_viewer.jobs import Jobs, NotYet
from karat_viewer.library import Library
from karat_viewer.open_run import OpenRun

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent


class Site:
    """What all pages share: templates, runs, the reviewer."""

    def __init__(self, library: Library, *, reviewer: str = "") -> None:
        self.library, self.reviewer = library, reviewer
        self.compared: Jobs[Comparison] = Jobs(library.pool, what="summary")
        self._environments: dict[Path | None, Environment] = {}

    def page(
        self,
        request: Request,
        template: str,
        *,
        status: int = 200,
        folder: Path | None = None,
        **content: Any,
    ) -> Response:
        """A page.

        `content`: data for its template. `folder`: a kind's own templates, named `kind/…`.
        """
        if folder not in self._environments:
            if folder is None:
                more = {}
            else:
                more = {"kind": folder}

            templates = self._environments[folder] = environment(view=_HERE / "templates", **more)
            templates.globals.update(address=address, assets=assets(), version=__version__)

        common = {
            "csrf": request.scope.get("karat.csrf", ""),
            "reviewer": self.reviewer,
            "alone": len(self.library.only) == 1,
            "live": None,
            "going": False,
            "up": None,
        }
        if folder is not None:
            name = template
        else:
            name = f"view/{template}"

        text = self._environments[folder].get_template(name).render({**common, **content})
        return HTMLResponse(text.encode("utf-8", "replace"), status_code=status)

    def problem(self, request: Request, status: int, title: str, message: str) -> Response:
        """A page that says why something cannot be shown."""
        return self.page(request, "problem.html.j2", status=status, title=title, message=message)

    def waiting(self, request: Request, opened: OpenRun, error: NotYet) -> Response:
        """A page that shows what is being computed, and its progress; it reloads by itself."""
        progress = error.progress
        return self.page(
            request,
            "waiting.html.j2",
            status=202,
            title=opened.run.info.name,
            run=opened.name,
            what=error.what,
            progress=progress,
            live=address("runs", opened.name, "state"),
        )


def asked(
    request: Request, name: str, *, among: Mapping[str, Any] | tuple[str, ...] | None = None
) -> str:
    """A parameter as text; empty if it is missing, or not in `among`."""
    value = request.query_params.get(name, "")
    return value if among is None or value in among else ""


def whole_asked(request: Request, name: str) -> int:
    """A parameter as a whole number of at most nine digits; 0 if it is invalid."""
    value = request.query_params.get(name, "")
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return 0


def number_asked(request: Request, name: str) -> float | None:
    """A parameter as a number; None if it is invalid."""
    try:
        value = float(request.query_params.get(name, "")[:30])
    except ValueError:
        return None

    return value if math.isfinite(value) else None


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One of the viewer's own files."""

    name: str
    type: str
    body: bytes
    mark: str  # changes with the body

    @property
    def path(self) -> str:
        """The address, under which a browser may cache the file."""
        return f"/static/{self.mark}/{self.name}"


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """Styles and scripts by name."""
    texts = {
        "page.css": css() + (_HERE / "static" / "viewer.css").read_text(encoding="utf-8"),
        "page.js": script(),
        "viewer.js": (_HERE / "static" / "viewer.js").read_text(encoding="utf-8"),
    }
    types = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
    by_name = {}
    for name, text in texts.items():
        body = text.encode()
        mark = hashlib.sha256(body).hexdigest()[:16]
        if body:
            by_name[name] = Asset(
                name=name,
                type=types[name.rpartition(".")[2]],
                body=body,
                mark=mark,
            )

    return by_name
