"""Documents in JSON or YAML that are known by their keys, and hold no rows of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.documents.names import Meaning, meanings

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


_INSIDE = 2
"""Objects around the servers in a configuration of MCP servers, at most: `mcp: {servers: …}`."""


def names_servers(document: Mapping[str, Any], inside: int = _INSIDE) -> bool:
    """Whether an object, or one inside of it, holds MCP servers by their names: how each is
    started, or where it is.
    """
    parts = [part for part in document.values() if isinstance(part, Mapping)]
    servers = 0
    for part in parts:
        servers += "command" in part
        servers += "url" in part and not {"type", "headers"}.isdisjoint(part)

    if parts and servers >= len(document):
        return True
    if inside == 0:
        return False
    return any(names_servers(part, inside - 1) for part in parts)


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
