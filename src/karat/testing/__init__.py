"""Scripted models and MCP servers for tests and rehearsals (real processes, not mocks), and checks
of your plug-ins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.testing.scorers import check_scorer

__all__ = ["check_scorer"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from karat.testing import scorers  # slow to import, and not needed by the scripted servers

    return getattr(scorers, name)
