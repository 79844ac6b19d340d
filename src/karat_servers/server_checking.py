"""The work of `karat check --server`: which servers it checks, and what it prints."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path, PurePath
from urllib.parse import urlsplit

import msgspec

from karat import formats
from karat.cli.ending import keep_hidden
from karat.cli.output import aligned
from karat.config import load
from karat.document.junit import junit_xml
from karat.errors import BadOption, did_you_mean
from karat.exports import save
from karat.formats import OUTPUT_FORMAT
from karat.records import JsonObject, McpServer
from karat.redact import Redactor
from karat_servers.server_checks.outcomes import ServerReport
from karat_servers.server_checks.running import check_server

_WORDS = {"failed": "failed", "warning": "warning", "passed": "passed", "not_applicable": "n/a"}
_WIDEST = 100


class CheckedServers(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check --server --json`."""

    format: int = OUTPUT_FORMAT
    servers: tuple[ServerReport, ...]

    def __str__(self) -> str:
        return "\n".join(map(_shown, self.servers))


def check_servers(
    file: Path | None,
    name: str | None,
    *,
    url: str | None,
    command: tuple[str, ...],
    calls: tuple[str, ...],
    seconds: float,
    env_file: Path | None,
) -> CheckedServers:
    """Checks one server after another. Raises BadOption and BadExperiment."""
    if sum(given is not None for given in (file, url, command or None)) != 1:
        raise BadOption("check --server", "needs one of: FILE [SERVER], --url URL, or -- COMMAND")
    redact = Redactor({})
    folder = Path.cwd()
    servers = []
    if file is not None:
        experiment = load(file, env_file=env_file)
        keep_hidden(experiment.secrets)
        redact = Redactor(experiment.secrets)
        folder = file.resolve().parent
        chosen = [server for server in experiment.servers if name in (None, server.name)]
        if not chosen:
            if name:
                hint = did_you_mean(name, [server.name for server in experiment.servers])
            else:
                hint = " (it has none)"

            raise BadOption(
                "SERVER", f"the experiment has no MCP server{f' {name!r}' if name else ''}{hint}"
            )

        for server in chosen:
            if server.type == "sse":
                raise BadOption(
                    "SERVER",
                    (
                        f"'{server.name}' uses SSE, which the protocol no longer has; offer it "
                        f"over `http`"
                    ),
                )

        servers = chosen
    elif url is not None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise BadOption(
                "--url", f"'{url}' is not an HTTP address, e.g. http://localhost:8000/mcp"
            )

        servers = [McpServer(name=urlsplit(url).hostname or "server", type="http", url=url)]
    else:
        servers = [
            McpServer(
                name=PurePath(command[0]).name,
                type="stdio",
                command=command[0],
                args=command[1:],
            )
        ]

    wanted: dict[str, JsonObject] = {}
    for text in calls:
        tool, _, arguments = text.partition("=")
        try:
            wanted[tool] = json.loads(arguments or "{}")
        except ValueError as error:
            raise BadOption("--call", f"the arguments of '{tool}' are not JSON: {error}") from None

        if not isinstance(wanted[tool], dict):
            raise BadOption(
                "--call",
                f"the arguments of '{tool}' must be an object, e.g. {tool}='{{\"query\": \"a\"}}'",
            )

    async def check_all() -> tuple[ServerReport, ...]:
        return tuple(
            [
                await check_server(one, folder=folder, redact=redact, seconds=seconds, calls=wanted)
                for one in servers
            ]
        )

    return CheckedServers(servers=asyncio.run(check_all()))


def _shown(report: ServerReport) -> str:
    counts = ", ".join(
        formats.plural(count, "warning")
        if verdict == "warning"
        else f"{formats.count(count)} {_WORDS[verdict]}"
        for verdict, count in report.counts.items()
        if count
    )
    if report.about:
        about = f", {report.about}"
    else:
        about = ""

    if report.protocol:
        protocol = f"; protocol {report.protocol}"
    else:
        protocol = ""

    has = ", ".join(
        formats.plural(count, noun)
        for count, noun in (
            (report.tools, "tool"),
            (report.resources, "resource"),
            (report.prompts, "prompt"),
        )
    )
    lines = [
        f"{formats.excerpt(report.server, 60)} ({report.type}{about}): {counts}",
        f"{has}{protocol}",
        "",
    ]
    order = list(_WORDS)
    checks = sorted(report.checks, key=lambda check: order.index(check.verdict))
    first = aligned([(_WORDS[check.verdict], check.id) for check in checks])
    indent = " " * (max(map(len, first)) + 2)
    for start, check in zip(first, checks, strict=True):
        seen, *continued = textwrap.wrap(check.seen, _WIDEST - len(indent)) or [""]
        lines += [f"{start:<{len(indent)}}{seen}".rstrip(), *(indent + line for line in continued)]
        lines += [
            indent + line
            for line in textwrap.wrap(f"→ {check.advice}", _WIDEST - len(indent))
            if check.advice
        ]

    return "\n".join(lines) + "\n"


def write_junit(reports: Sequence[ServerReport], path: Path) -> None:
    """Writes JUnit XML of the checks of servers: one suite per server.

    Checks that do not apply are skipped; warnings pass. Raises BadOption if it cannot write.
    """
    kinds = {"failed": "failure", "not_applicable": "skipped"}
    suites = {}
    for report in reports:
        suites[report.server] = [
            (
                check.id,
                report.server,
                (kinds[check.verdict], check.verdict, check.seen, check.advice)
                if check.verdict in kinds
                else None,
            )
            for check in report.checks
        ]

    text = junit_xml("karat check --server", suites)
    save({path.name: text}, path, option="--junit")
