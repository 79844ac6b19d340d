"""The work of `karat view`: what it serves and prints."""

from __future__ import annotations

import getpass
from contextlib import suppress
from pathlib import Path

import msgspec

from karat import api
from karat.cli.output import Output
from karat.errors import BadRun
from karat.formats import OUTPUT_FORMAT, clean
from karat_viewer import Listening, serve
from karat_viewer.commands.view import Viewing


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """`--json` of `view`, printed once it listens."""

    format: int = OUTPUT_FORMAT
    url: str  # works once
    host: str
    port: int

    def __str__(self) -> str:
        return self.url


def view(run: str | None, results: Path, viewing: Viewing, output: Output) -> None:
    """Serves until Ctrl-C. Raises BadRun if there is nothing to view."""
    import threading
    import webbrowser

    # The folder, and the run in it if there is only one to view
    if run is None:
        path = results
    else:
        path = Path(run)

    only: tuple[str, ...] = ()
    if path.is_dir() and not (path / "run.json").exists():
        root = path
    else:
        if run is None:
            raise BadRun(results, "there is no such folder; `karat run FILE` creates one")
        folder = api.open(run, results=results, to_write=True).path.resolve()
        root = folder.parent
        only = (folder.name,)

    reviewer = viewing.reviewer or ""
    if not reviewer:
        with suppress(OSError, KeyError):  # an account without a name
            reviewer = getpass.getuser()

    def ready(where: Listening) -> None:
        if viewing.allow_remote:
            output.complain(
                "warning: other machines can reach these pages. Whoever opens the address reads "
                "every prompt, answer and review, and can add reviews; all of it travels "
                "unencrypted. Prefer an SSH tunnel to 127.0.0.1."
            )

        output.say("Open this address; it works once. Ctrl-C ends the viewer.")
        # Printed last: a program that waits for this line has then read the others.
        output.result(where.url, Served(url=where.url, host=where.host, port=where.port))
        if viewing.open_browser:
            # A browser that stays in the foreground must not block the server.
            threading.Thread(target=webbrowser.open, args=(where.url,), daemon=True).start()

    serve(
        root,
        only=only,
        host=viewing.host,
        port=viewing.port,
        remote=viewing.allow_remote,
        reviewer=" ".join(clean(reviewer).split())[:60].strip(),  # as saved reviews spell it
        ready=ready,
    )
