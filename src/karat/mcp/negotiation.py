"""The handshake with a server whose version of the protocol the experiment pins.

The SDK's own handshake offers its newest version, and accepts the server's answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from karat.errors import InfrastructureFault
from karat.mcp.faults import Evidence, printable
from karat.mcp.screen import Answered
from karat.records import MODERN_PROTOCOL, ProtocolVersion

if TYPE_CHECKING:
    from mcp import ClientSession, MCPError
    from mcp_types import Implementation


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    """The names of both sides, and whether the server may ask the user."""

    server: str
    information: Implementation
    elicits: bool = False


async def negotiate(
    session: ClientSession, pinned: ProtocolVersion, about: Introduction, *, evidence: Evidence
) -> None:
    """Agrees on exactly this version.

    Raises InfrastructureFault("mcp_protocol") if the server speaks another.
    """
    server = about.server
    if pinned == MODERN_PROTOCOL:
        await _discover(session, pinned, server=server, evidence=evidence)
        return

    from mcp import MCPError
    from mcp_types import (
        UNSUPPORTED_PROTOCOL_VERSION,
        ClientCapabilities,
        ElicitationCapability,
        FormElicitationCapability,
        InitializedNotification,
        InitializeRequest,
        InitializeRequestParams,
        InitializeResult,
        ServerCapabilities,
        UrlElicitationCapability,
    )

    # From here on the session validates and writes messages in this version.
    session.adopt(
        InitializeResult(
            protocol_version=pinned,
            capabilities=ServerCapabilities(),
            server_info=about.information,
        )
    )
    elicitation = ElicitationCapability(
        form=FormElicitationCapability(), url=UrlElicitationCapability()
    )
    parameters = InitializeRequestParams(
        protocol_version=pinned,
        capabilities=ClientCapabilities(elicitation=elicitation if about.elicits else None),
        client_info=about.information,
    )
    try:
        result = await session.send_request(InitializeRequest(params=parameters), InitializeResult)
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        raise _another(server, pinned, _versions(error)) from error

    if result.protocol_version != pinned:
        raise _another(server, pinned, result.protocol_version)
    session.adopt(result)
    await session.send_notification(InitializedNotification())


async def _discover(
    session: ClientSession, pinned: ProtocolVersion, *, server: str, evidence: Evidence
) -> None:
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, DiscoverResult

    refused = False
    while True:
        try:
            result = DiscoverResult.model_validate(await session.send_discover(pinned))
        except MCPError as error:
            by_the_sdk = not isinstance(error.error.data, Answered)
            if by_the_sdk and error.code == REQUEST_TIMEOUT:
                # the SDK gives it ten seconds; the time for the handshake is the server's own limit
                continue

            if (by_the_sdk and error.code == CONNECTION_CLOSED) or evidence.status not in (
                None,
                400,
                404,
                405,
            ):
                raise  # a status such as 401 is not about versions

            if refused or pinned not in _supported(error):
                raise _another(server, pinned, _versions(error)) from error
            refused = True
            continue  # it names this very version: the protocol has the client ask again

        break

    if pinned not in result.supported_versions:
        raise _another(server, pinned, ", ".join(result.supported_versions) or "none")
    session.adopt(result)


def _supported(error: MCPError) -> list[str]:
    """The versions that a server names when it refuses one."""
    data = error.error.data
    if isinstance(data, dict):
        supported = data.get("supported")
    else:
        supported = None

    if isinstance(supported, list):
        return [version for version in supported if isinstance(version, str)]
    return []


def _versions(error: MCPError) -> str:
    return ", ".join(_supported(error)) or f"an older one (it answered: {error.message})"


def _another(server: str, pinned: str, spoken: str) -> InfrastructureFault:
    message = (
        f"MCP server '{server}' speaks protocol {printable(spoken)[:200]}, and the experiment "
        f"pins {pinned}"
    )
    return InfrastructureFault("mcp_protocol", message)
