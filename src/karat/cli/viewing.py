"""What `karat view` looks at, and what it says."""

from __future__ import annotations

import getpass
from pathlib import Path

import msgspec

from karat.cli.options import Viewing
from karat.cli.output import OUTPUT_FORMAT, Output
from karat.errors import BadRun
from karat.formats import clean
from karat.viewer import Listening, serve

__all__ = ["Served", "view"]


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """`--json` of `view`, printed once it listens."""

    format: int = OUTPUT_FORMAT
    url: str  # works once
    host: str
    port: int

    def __str__(self) -> str:
        return self.url


def view(run: str | None, results: Path, viewing: Viewing, output: Output) -> None:
    """Serves until Ctrl-C. Raises BadRun where there is nothing to look at."""
    root, only = _what(run, results)

    def ready(where: Listening) -> None:
        if viewing.allow_remote:
            output.complain(
                "warning: other machines can reach these pages. Whoever opens the address reads every prompt, answer "
                "and review, and can add reviews; all of it travels unencrypted. Prefer an SSH tunnel to 127.0.0.1."
            )
        output.say("Open this address; it works once. Ctrl-C ends the viewer.")
        # Last: whoever waits for it may go on at once, and has heard everything.
        output.result(where.url, Served(url=where.url, host=where.host, port=where.port))
        if viewing.open_browser:
            _open(where.url)

    serve(
        root,
        only=only,
        host=viewing.host,
        port=viewing.port,
        remote=viewing.allow_remote,
        reviewer=_as_saved(viewing.reviewer or _user()),
        ready=ready,
    )


def _what(run: str | None, results: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder, and the run in it if only one is meant."""
    from karat import api

    path = results if run is None else Path(run)
    if path.is_dir() and not (path / "run.json").exists():
        return path, ()
    if run is None:
        raise BadRun(str(results), "there is no such folder; `karat run FILE` makes one")
    folder = api.open(run, results=results).path.resolve()
    return folder.parent, (folder.name,)


def _as_saved(name: str) -> str:
    """As a review that this person saves names them, so that theirs are found again."""
    return " ".join(clean(name).split())[:60].strip()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return ""


def _open(url: str) -> None:
    import threading
    import webbrowser

    # A browser that stays in the foreground must not hold up the pages that it is to show.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
