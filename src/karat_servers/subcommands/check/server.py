"""`karat check --server`: whether an MCP server follows the protocol."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

_COMMAND = "karat.command"


class _WithCommand(click.Command):
    """Takes what follows `--` as the command of a server: click itself would drop the `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
        else:
            place = len(args)

        ctx.meta[_COMMAND] = tuple(args[place + 1 :])
        return super().parse_args(ctx, args[:place])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command("check --server", cls=_WithCommand)
@click.argument("file", required=False, type=options.PATH)
@click.argument("server", required=False)
@click.option("--url", metavar="URL", help="Check the server at this address (streamable HTTP).")
@click.option(
    "--call",
    "calls",
    multiple=True,
    metavar="TOOL[=JSON]",
    help="Also call this tool, with these arguments. Repeatable.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True, max=3600),
    default=10,
    show_default=True,
    metavar="N",
    help="How long one answer may take.",
)
@click.option(
    "--env-file",
    type=options.PATH,
    metavar="PATH",
    help="NAME=value lines for each ${NAME} that the environment does not set.",
)
@click.option(
    "--junit",
    type=options.FILE,
    metavar="FILE",
    help="Write JUnit XML: a test case for each check.",
)
@options.output()
@click.pass_context
def command(  # noqa: PLR0913 - an argument for each option
    ctx: click.Context,
    file: Path | None,
    server: str | None,
    url: str | None,
    calls: tuple[str, ...],
    seconds: float,
    env_file: Path | None,
    junit: Path | None,
    output: Output,
) -> Exit:
    """Check whether an MCP server follows the protocol.

    Needs no model. The server is SERVER of the experiment in FILE (without SERVER: each of them),
    the one at --url, or the one that COMMAND starts, e.g. `karat check --server -- python
    server.py`. It is started several times.

    A tool is called only if the server marks it as read-only, if --call names it, or, unless it is
    marked as destructive, without its required arguments. Exit code 0: no check failed, 1: one
    failed.
    """
    from karat_servers.server_checking import check_servers, write_junit

    checked = check_servers(
        file,
        server,
        url=url,
        command=ctx.meta[_COMMAND],
        calls=calls,
        seconds=seconds,
        env_file=env_file,
    )
    if junit is not None:
        write_junit(checked.servers, junit)
    output.result(str(checked), checked)
    return Exit.GATE_MISSED if any(report.failed for report in checked.servers) else Exit.DONE
