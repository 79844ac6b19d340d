"""Documents in JSON or YAML that are known by their keys, and hold no rows of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.documents.names import Meaning, meanings, word_set

_KNOWN = (
    (("openapi", "paths"), "describes an API (OpenAPI)"),
    (("swagger", "paths"), "describes an API (Swagger)"),
    (("cells", "nbformat"), "is a notebook (Jupyter)"),
    (("$schema", "properties"), "describes how rows look (a JSON schema)"),
    (("compilerOptions",), "is a configuration of a compiler"),
    (("name", "version", "dependencies"), "describes a package and what it needs"),
    (("name", "version", "scripts"), "describes a package and its commands"),
    (("features", "type"), "holds places on a map (GeoJSON)"),
    (("images", "annotations"), "holds labels of images"),
    (("jobs", "on"), "is a workflow of GitHub Actions"),
)
"""Keys at the top of a document → what it is, as the end of a sentence."""


_OF_SERVERS = word_set(
    """command args env envFile environment cwd type transport transportType url httpUrl headers
    disabled enabled timeout trust autoApprove autoStart alwaysAllow alwaysLoad tools includeTools
    excludeTools allowedTools disabledTools enabledTools oauth"""
)
"""Keys of an MCP server in the files of its clients, without those that other things have too."""
_HOLDERS = ("mcp", "servers", "mcpServers", "mcp_servers", "context_servers")
"""What holds servers by their names, or another of these: `mcp: {servers: …}`."""
_INSIDE = 2


def names_servers(document: object, inside: int = _INSIDE) -> bool:
    """Whether an object holds MCP servers by their names and nothing else, or has those of a
    client's settings: how each is started, or where it is.
    """
    if not isinstance(document, Mapping):
        return False
    servers = 0
    for part in document.values():
        keys = {*part} if isinstance(part, Mapping) else set()
        addressed = "url" in keys and {"type", "headers"} & keys
        servers += keys <= _OF_SERVERS and ("command" in keys or bool(addressed))

    if 0 < servers == len(document):
        return True
    return inside > 0 and any(names_servers(document.get(name), inside - 1) for name in _HOLDERS)


def known_document(document: Any, tables: Mapping[str, Sequence[Any]]) -> str | None:
    """What a document without questions is, as the end of a sentence; None: unknown, or one of its
    `tables` has questions.
    """
    if not isinstance(document, Mapping):
        return None
    for rows in tables.values():
        if rows:
            first = rows[0]
        else:
            first = None

        if not isinstance(first, Mapping):
            continue
        for key in first:
            if Meaning("question") in meanings(key):
                return None

    if "mcpServers" in document or names_servers(document):
        return "is a configuration of MCP servers, and holds no questions"
    for keys, what in _KNOWN:
        if {*keys} <= {*document}:
            return f"{what}, and holds no questions"

    parts = document.values()
    if tables or len(parts) < 2:
        return None

    for part in parts:
        if not isinstance(part, Mapping) or not part:
            return None

        for key, text in part.items():
            known = meanings(key)
            asks = Meaning("question") in known or Meaning("golden") in known
            if asks or not isinstance(text, str):
                return None

    shared = set[str].intersection(*map(set, parts))
    if any(2 * len(shared) <= len(part) for part in parts):
        return None

    return "holds the same texts in several languages or versions, and no questions"
