"""The pages as a server: who may reach them, and how a connection is limited."""

from __future__ import annotations

import socket

import uvicorn

from karat_viewer.app import application
from karat_viewer.connections import LimitedConnection
from karat_viewer.library import Library
from karat_viewer.safety import Door, hosts_of, is_loopback
from karat_viewer.web import Site

_GRACE_SECONDS = 2
_EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - recognised, not listened at


def site_server(
    library: Library, host: str, port: int, reviewer: str
) -> tuple[uvicorn.Server, str]:
    """The server, not yet started, and the address that lets one browser in."""
    near = is_loopback(host)
    door = Door(
        application(Site(library, reviewer=reviewer)),
        hosts=hosts_of(host),
        port=port,
        any_address=not near,
    )
    config = uvicorn.Config(
        door,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=LimitedConnection,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=15,
    )
    if host in _EVERYWHERE:
        name = socket.gethostname()
    else:
        name = host

    return uvicorn.Server(
        config
    ), f"http://{f'[{name}]' if ':' in name else name}:{port}/?token={door.token}"
