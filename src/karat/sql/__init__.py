"""Other people's SQL: one SELECT over tables that karat filled, in a process that can reach nothing else.

The child has no files, no network, no settings to change, a bounded memory and a clock that
ends it wherever it is. Tables are filled before access is switched off.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from karat.errors import BadOption

__all__ = ["TYPES", "Limits", "Selected", "Shape", "Table", "select", "select_each", "shape_of"]

TYPES = ("number", "whole", "text", "texts", "truth")
"""What a column of ours may hold: DOUBLE, BIGINT, VARCHAR, VARCHAR[], BOOLEAN. None is NULL."""

_ENVIRONMENT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")
_GRACE = 10.0  # seconds for the child to start and to fill its tables, before its own clock runs


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much one query may take."""

    seconds: float = 20.0
    megabytes: int = 512
    rows: int = 1_000_000  # of its result


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table to select from: the type of each column, and its values."""

    types: Mapping[str, str]
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # none: an empty table


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """A result, column by column; numbers are int or float, whatever else is neither text nor truth is text."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What a query would give: its columns with DuckDB's types, and what each is made of."""

    types: dict[str, str]
    sources: dict[str, tuple[str, ...]]  # name given by AS, in any part of the query → the names it mentions
    constants: tuple[str, ...]  # every text that stands in the query


def select(sql: str, tables: Mapping[str, Table], *, limits: Limits | None = None, place: str = "sql") -> Selected:
    """The rows of one SELECT. Raises BadOption, naming `place`, for whatever the query may not or cannot do."""
    limits = limits or Limits()
    filled = {name: {"types": dict(table.types), "columns": dict(table.columns)} for name, table in tables.items()}
    answer = _asked({"what": "rows", "sql": sql, "tables": filled}, limits, place)
    return Selected(columns=answer["columns"])


def select_each(
    sql: str, name: str, tables: Sequence[Table], *, limits: Limits | None = None, place: str = "sql"
) -> list[Selected]:
    """The rows of one SELECT over a table called `name`, for one content of it after the other, in one process.

    All have the columns of the first. The time limit is that of each. Raises BadOption as `select` does.
    """
    if not tables:
        return []
    limits = limits or Limits()
    empty = {name: {"types": dict(tables[0].types), "columns": {}}}
    fills = [{name: dict(table.columns)} for table in tables]
    asked = {"what": "each", "sql": sql, "tables": empty, "fills": fills}
    answer = _asked(asked, limits, place, times=len(tables))
    return [Selected(columns=columns) for columns in answer["each"]]


def shape_of(sql: str, types: Mapping[str, Mapping[str, str]], *, place: str = "sql") -> Shape:
    """What one SELECT would give of tables with these columns, without any row. Raises BadOption."""
    known = tuple((name, tuple(columns.items())) for name, columns in types.items())
    try:
        return _shape(sql, known)
    except BadOption as error:
        raise BadOption(place, str(error).partition(": ")[2]) from None


@lru_cache(maxsize=256)
def _shape(sql: str, tables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> Shape:
    empty = {name: {"types": dict(types), "columns": {}} for name, types in tables}
    answer = _asked({"what": "shape", "sql": sql, "tables": empty}, Limits(), "sql")
    sources = {name: tuple(mentioned) for name, mentioned in answer["sources"].items()}
    return Shape(types=answer["types"], sources=sources, constants=tuple(answer["constants"]))


def _asked(question: dict[str, Any], limits: Limits, place: str, *, times: int = 1) -> dict[str, Any]:
    """What the child answers to its one question; `times`: how often the query runs."""
    question |= {"seconds": limits.seconds, "megabytes": limits.megabytes, "rows": limits.rows}
    try:
        done = subprocess.run(
            [sys.executable, "-P", Path(__file__).with_name("_child.py")],
            input=json.dumps(question).encode("utf-8", "surrogatepass"),
            capture_output=True,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            timeout=limits.seconds * times + _GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadOption(place, _too_long(limits)) from None
    if done.returncode == -signal.SIGALRM:
        raise BadOption(place, _too_long(limits))
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = last or f"does it need more than {limits.megabytes} MB of memory?"
        raise BadOption(place, f"its process ended with code {done.returncode}: {why}") from None
    if "error" in answer:
        raise BadOption(place, answer["error"])
    return answer


def _too_long(limits: Limits) -> str:
    return f"took longer than {limits.seconds:g} seconds and was ended; does a join or a recursion never end?"
