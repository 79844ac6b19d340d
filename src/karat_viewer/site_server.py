"""The pages as a server: who may reach them, and how a connection is limited."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import uvicorn

from karat.errors import BadOption
from karat_viewer.app import application
from karat_viewer.connections import LimitedConnection
from karat_viewer.library import Library
from karat_viewer.safety import Door, hosts_of, is_loopback
from karat_viewer.web import Site

_GRACE_SECONDS = 2
_EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - recognised, not listened at


class Served(NamedTuple):
    """A server, not yet started."""

    library: Library
    server: uvicorn.Server
    url: str  # lets one browser in


def refuse_reachable(host: str) -> None:
    """Raises BadOption for an address that other machines can reach."""
    if not is_loopback(host):
        raise BadOption(
            "--host", f"{host} can be reached by other machines: add --allow-remote to allow that"
        )


def site_server(
    root: Path,
    *,
    only: Iterable[str],
    pool: ThreadPoolExecutor,
    host: str,
    port: int,
    reviewer: str,
) -> Served:
    """The pages of the runs in `root`, or of `only` these."""
    library = Library(root, only=only, pool=pool)
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

    if ":" in name:
        name = f"[{name}]"
    url = f"http://{name}:{port}/?token={door.token}"
    return Served(library, uvicorn.Server(config), url)
