"""The HTTP client of an MCP session: a connection that breaks off ends one request, not the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from karat.errors import InfrastructureFault


class SessionClient(httpx2.AsyncClient):
    """Answers a request whose connection breaks off as a gateway does, with 502.

    The SDK's transport would end the session, and with it every other call in flight. A server that cannot be
    connected to does end it.
    """

    def __init__(self, *, on_lost: Callable[[str | InfrastructureFault], bool], **options: Any) -> None:
        """`on_lost`: gets the reason, and returns whether the session continues."""
        super().__init__(**options)
        self._on_lost = on_lost

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As `httpx2.AsyncClient.send`. Raises httpx2's errors."""
        try:
            return await super().send(request, **options)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError) as error:
            if request.method != "POST" or not self._on_lost(str(error) or type(error).__name__):
                raise
            return httpx2.Response(502, request=request)
        except InfrastructureFault as fault:  # there is no token for this request
            if request.method != "POST" or not self._on_lost(fault):
                raise
            return httpx2.Response(403, request=request)
