"""`karat check --login`: logs you in to an MCP server, once."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("check --login")
@click.argument("file", type=options.PATH)
@click.argument("server")
@click.option("--no-browser", is_flag=True, help="Print the address but do not open a browser.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Port on this machine that the browser is redirected to. Default: a free one.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1, max=3600),
    default=300,
    show_default=True,
    metavar="N",
    help="How long the login may take.",
)
@click.option(
    "--env-file",
    type=options.PATH,
    metavar="PATH",
    help="NAME=value lines for each ${NAME} that the environment does not set.",
)
@options.output()
def command(
    file: Path,
    server: str,
    no_browser: bool,
    port: int | None,
    seconds: float,
    env_file: Path | None,
    output: Output,
) -> Exit:
    """Log in to SERVER, an MCP server of the experiment in FILE.

    The server has `auth: {type: login}`. Prints the address of the server's login page and opens it
    in the browser. The tokens are saved in ~/.local/state/karat/tokens (or
    $XDG_STATE_HOME/karat/tokens), readable only by you; runs renew them.
    """
    from karat_servers.logging_in import log_in

    login = log_in(
        file,
        server,
        browser=not no_browser,
        port=port,
        seconds=seconds,
        env_file=env_file,
        show=output.say,
    )
    output.result(str(login), login)
    return Exit.DONE
