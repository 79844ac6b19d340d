"""What a package beside karat adds to the client of MCP servers: the family `mcp_parts`.

`cassettes` records servers and replays them, `relay` carries the messages of agents that connect to
their servers themselves, and `oauth` obtains tokens.
"""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from karat import plugins
from karat.errors import InfrastructureFault
from karat.mcp.attempts import Attempt
from karat.mcp.preflight import Offer
from karat.mcp.results import Outcome
from karat.records import JsonObject, McpServer

if TYPE_CHECKING:
    import httpx2

    from karat.mcp.faults import Evidence


def require(name: str, needed_by: str) -> None:
    """Raises BadOption for `needed_by` if the part is not there. Imports nothing."""
    plugins.require_part("mcp_parts", name, package="servers", needed_by=needed_by)


def part(name: str, needed_by: str) -> Any:
    """The class of a part, which keeps the protocol below. Raises as `require`."""
    return plugins.part("mcp_parts", name, package="servers", needed_by=needed_by)


class ServerConnection(Protocol):
    """Anything that can be called like a server: a session with it, or a view that records or
    replays one.
    """

    def offer(self) -> Coroutine[object, object, Offer]: ...

    async def ask(self, tool: str, arguments: JsonObject) -> Outcome: ...

    async def read(self, method: str, parameters: JsonObject) -> Outcome: ...


@runtime_checkable
class AnswersAgents(Protocol):
    """A connection that answers every request of an agent's own client: a recording."""

    async def served(
        self, method: str, parameters: JsonObject, *, hang_up: Callable[[], None]
    ) -> JsonObject:
        """The result. Raises hub.Refused and InfrastructureFault.

        `hang_up`: ends the agent's connection, where it ended as it was recorded.
        """
        ...


class Recordings(Protocol):
    """`cassettes`: the recordings of a run, built with `Cassettes` and a `Redactor`."""

    replays: bool

    def recorded(
        self, server: McpServer, line: ServerConnection, attempt: Attempt | None
    ) -> ServerConnection:
        """The same connection, with every request recorded."""
        ...

    def recording(self, server: McpServer, attempt: Attempt | None) -> object:
        """The recorder of this attempt's requests to the server, for a relay."""
        ...

    def refused(
        self, server: McpServer, fault: InfrastructureFault, attempt: Attempt | None
    ) -> None:
        """Records why there was no connection at all."""
        ...

    def replayed(self, server: McpServer, attempt: Attempt | None) -> ServerConnection:
        """A connection answered only from the recording."""
        ...

    def close(self) -> None: ...


class Carrier(Protocol):
    """`relay`: one agent's connection to one server."""

    async def carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Runs until one side closes.

        Raises InfrastructureFault if the server does, or cannot be reached.
        """
        ...


class ServerTokens(Protocol):
    """`oauth`: the tokens of one server, shared by all its connections."""

    def authentication(self, evidence: Evidence) -> httpx2.Auth:
        """What adds them to the requests of one connection."""
        ...
