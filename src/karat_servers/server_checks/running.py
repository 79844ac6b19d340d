"""Runs all checks of one server, in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from karat import formats
from karat.mcp.faults import printable
from karat.records import JsonObject, McpServer
from karat.redact import Redactor, without_surrogates
from karat_servers.server_checks.checks import CHECKS
from karat_servers.server_checks.outcomes import Check, ServerReport
from karat_servers.server_checks.probe import Probe, Unavailable, failed, skipped

_LONGEST = 400  # columns of a finding
_LONGEST_NAME = 60


_NO_CONNECTION = "no connection: "


async def check_server(
    server: McpServer,
    *,
    folder: Path,
    redact: Redactor,
    seconds: float = 10.0,
    calls: Mapping[str, JsonObject] | None = None,
) -> ServerReport:
    """Starts or reaches the server several times, and checks its answers. Never raises for what the
    server does.

    `seconds`: how long one answer may take. `calls`: tools that may be called, with their
    arguments. Tools that the server marks as read-only are called too, with arguments made from
    their schemas.
    """
    probe = Probe(server, folder=folder, seconds=seconds, calls=calls or {}, redact=redact)
    checks: list[Check] = []
    try:
        for planned in CHECKS:
            unreachable = bool(checks) and checks[0].seen.startswith(_NO_CONNECTION)
            needs = planned.needs
            try:
                if unreachable and checks[0].verdict == "failed":
                    finding = skipped("there was no connection")
                elif needs in ("stdio", "http") and server.type != needs:
                    finding = skipped(f"for servers over {needs}")
                elif (
                    needs in ("tools", "resources", "prompts")
                    and not (await probe.listing(needs)).items
                ):
                    finding = skipped(f"the server has no {needs}")
                else:
                    finding = await planned.look(probe)
            except Unavailable as error:
                finding = failed(f"{_NO_CONNECTION}{error}")

            open_question = finding.verdict in ("failed", "warning")
            checks.append(
                Check(
                    id=planned.id,
                    verdict=finding.verdict,
                    seen=_plain(redact(finding.seen), _LONGEST),
                    advice=planned.advice if open_question else "",
                )
            )
    finally:
        await probe.end()

    about = probe.introduction.at("serverInfo")
    words = [str(about.get(key, "")) for key in ("name", "version")]
    counts = {kind: len(listing.items) for kind, listing in probe.lists.items()}
    return ServerReport(
        server=server.name,
        type=server.type,
        about=_plain(" ".join(words), _LONGEST_NAME),
        protocol=probe.version,
        tools=counts.get("tools", 0),
        resources=counts.get("resources", 0),
        prompts=counts.get("prompts", 0),
        checks=tuple(checks),
    )


def _plain(text: str, columns: int) -> str:
    return formats.excerpt(printable(without_surrogates(text)), columns)
