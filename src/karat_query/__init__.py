"""SQL over runs: their tables, a query in a process of its own, and the command `query`.

from karat_query import query

query("latest", "SELECT condition, avg(value) FROM scores GROUP BY ALL")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_query.api import query, relation

__all__ = ["query", "relation"]

__getattr__, __dir__ = lazy(__name__, {"api": "query relation"})
