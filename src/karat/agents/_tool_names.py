"""What tools are called before a model: several servers may use one name, and providers allow few characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from karat.mcp import Tool

__all__ = ["named_tools"]

_LONGEST = 64  # what every provider takes
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")


def named_tools(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Each tool under a name of its own, in order: its plain name, or `server__tool` where two servers share it.

    Characters that providers refuse become `_`; a name that is too long ends in a hash of itself.
    """
    shared = Counter(_allowed(tool.name) for tool in tools)
    named: dict[str, Tool] = {}
    for tool in tools:
        name = _allowed(tool.name)
        if shared[name] > 1 or name in named:
            name = _allowed(f"{tool.server}__{tool.name}")
        if name in named:
            name = _hashed(name, f"{tool.server}\0{tool.name}")
        named[name] = tool
    return named


def _allowed(name: str) -> str:
    plain = _NOT_ALLOWED.sub("_", name)
    return plain if 0 < len(plain) <= _LONGEST else _hashed(plain, name)


def _hashed(plain: str, whole: str) -> str:
    digest = blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{plain[: _LONGEST - 9]}_{digest}"
