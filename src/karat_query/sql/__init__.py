"""Runs untrusted SQL: one SELECT over tables that karat filled, in a process that can reach nothing
else.

The child process has no access to files, network or settings, and its memory and time are limited.
Tables are filled before access is switched off.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat.errors import BadOption, MissingExtra, QueryTooLong

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "SQL_TYPES",
    "TYPES",
    "Filled",
    "Limits",
    "Selected",
    "Shape",
    "Stream",
    "Table",
    "load",
    "need_duckdb",
    "quoted",
    "select_each",
    "shape_of",
]

TYPES = ("number", "whole", "text", "texts", "truth")
"""The types of values in a column. None is NULL."""

SQL_TYPES = {
    "number": "DOUBLE",
    "whole": "BIGINT",
    "text": "VARCHAR",
    "texts": "VARCHAR[]",
    "truth": "BOOLEAN",
    "huge": "HUGEINT",
}
"""Their SQL names.

`huge`, only in results: whole numbers of any size, such as sums of whole numbers.
"""

JsonObject = dict[str, Any]  # as in `karat.records`, which this package does not import

_ENVIRONMENT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")
_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("_child.py")))
_GRACE = 10.0  # seconds for the child to start and fill its tables before its own clock starts


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much time, memory and disk one query may use."""

    seconds: float = 20.0
    megabytes: int = 512
    rows: int = 1_000_000  # in its result
    disk_megabytes: int = 8192  # for sorting and grouping on disk; `stream` only


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table to select from: the type of each column, and its values."""

    types: Mapping[str, str]
    columns: Mapping[str, Sequence[Any]] = {}  # {}: an empty table


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A result, column by column: int, float, bool, or text for everything else."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a file of JSON lines, one object each. Columns that a line lacks are NULL."""

    path: Path
    longest: int  # bytes of its longest line; 0: the file is empty


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a query would return: its columns with DuckDB's types, and what each is made of."""

    types: dict[str, str]
    # name given by AS, in any part of the query → the names it mentions
    sources: dict[str, tuple[str, ...]]
    # why the same tables may give another result, each as the start of a sentence
    changing: tuple[str, ...]


def select_each(
    sql: str,
    name: str,
    tables: Sequence[Table],
    *,
    limits: Limits | None = None,
    place: str = "sql",
) -> list[Selected]:
    """The rows of one SELECT over a table called `name`, once for each of several contents, in one
    process.

    All have the columns of the first. The time limit applies to each. Raises BadOption, naming
    `place`, if the query is not allowed or fails.
    """
    if not tables:
        return []
    limits = limits or Limits()
    types = {name: dict(tables[0].types)}
    fills = [dict(table.columns) for table in tables]
    asked = {"what": "each", "sql": sql, "types": types, "fills": fills}
    answer = _asked(asked, limits, place, times=len(tables))
    return [Selected(columns=columns) for columns in answer["each"]]


def shape_of(sql: str, types: Mapping[str, Mapping[str, str]], *, place: str = "sql") -> Shape:
    """What one SELECT would return for tables with these columns, without any rows.

    Raises BadOption.
    """
    known = tuple((name, tuple(columns.items())) for name, columns in types.items())
    try:
        return _shape(sql, known)
    except BadOption as error:
        raise BadOption(place, str(error).partition(": ")[2]) from None


@lru_cache(maxsize=256)
def _shape(sql: str, tables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> Shape:
    types = {name: dict(columns) for name, columns in tables}
    answer = _asked({"what": "shape", "sql": sql, "types": types}, Limits(), "sql")
    sources = {name: tuple(mentioned) for name, mentioned in answer["sources"].items()}
    return Shape(
        types=answer["types"],
        sources=sources,
        changing=tuple(answer["changing"]),
    )


def load(
    connection: duckdb.DuckDBPyConnection, name: str, types: Mapping[str, str], table: Filled
) -> None:
    """Loads a table of JSON lines into a database in this process, never for a user's SQL. Removes
    the file.
    """
    from karat_query.sql._child import fill_from_file

    declared = ", ".join(f"{quoted(column)} {SQL_TYPES[kind]}" for column, kind in types.items())
    connection.execute(f"CREATE TABLE {quoted(name)} ({declared})")
    fill_from_file(connection, name, dict(types), table.path, longest=table.longest)


def need_duckdb() -> None:
    """Raises MissingExtra where DuckDB is not installed."""
    if find_spec("duckdb") is None:
        raise MissingExtra("query", "SQL")


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


class Stream:
    """The rows of one SELECT over tables of any size, as they arrive. Close it to end its process.

    `fill` is called with the tables that the query may read, and the values of a column `sample`
    that it keeps (None: any); it returns the files that hold them.
    These are loaded into a database in `folder`, which the caller makes for this query and removes
    afterwards.
    """

    def __init__(
        self,
        sql: str,
        types: Mapping[str, Mapping[str, str]],
        fill: Callable[[Sequence[str], Sequence[str] | None], Mapping[str, Filled]],
        folder: Path,
        *,
        limits: Limits | None = None,
        place: str = "sql",
    ) -> None:
        need_duckdb()
        self._limits, self._place = limits or Limits(), place
        question = {"what": "stream", "sql": sql, "types": types, "folder": str(folder)}
        self._errors = (folder / "errors").open("w+b")
        self._child = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
        )
        self._lines = self._read()
        with ExitStack() as undone:
            undone.callback(self.close)
            self._write(question | msgspec.structs.asdict(self._limits))
            reads = next(self._lines)
            files = fill(reads["needed"], reads["samples"])
            self._write(msgspec.to_builtins(files, enc_hook=str), last=True)
            # name → type, a key of `SQL_TYPES`
            self.columns: dict[str, str] = next(self._lines)["columns"]
            undone.pop_all()

    def __iter__(self) -> Iterator[list[list[Any]]]:
        """Batches of rows. Raises BadOption if the query fails on the way."""
        for line in self._lines:
            if isinstance(line, dict):
                return
            yield line

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout, self._errors):
            with suppress(OSError):  # written to a process that has ended
                if pipe is not None:
                    pipe.close()

        self._child.wait()

    def _write(self, value: object, *, last: bool = False) -> None:
        assert self._child.stdin is not None
        with suppress(OSError):  # it has ended already, and its exit says why
            self._child.stdin.write(json.dumps(value).encode("utf-8", "surrogatepass") + b"\n")
            self._child.stdin.flush()
            if last:
                self._child.stdin.close()

    def _read(self) -> Iterator[Any]:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if not line.endswith(b"}") and not line.endswith(b"\n"):
                break
            answer = json.loads(line)
            if isinstance(answer, dict) and "error" in answer:
                raise BadOption(self._place, answer["error"])
            yield answer
            if isinstance(answer, dict) and "rows" in answer:
                return

        code = self._child.wait()
        if code == -signal.SIGALRM:
            raise QueryTooLong(self._place, _too_long(self._limits))
        self._errors.seek(0)
        raise BadOption(self._place, _ended(code, self._errors.read(), self._limits))


def _asked(question: JsonObject, limits: Limits, place: str, *, times: int = 1) -> JsonObject:
    """The child's answer to its one question; `times`: how often the query runs."""
    need_duckdb()
    question |= {"seconds": limits.seconds, "megabytes": limits.megabytes, "rows": limits.rows}
    try:
        process = subprocess.run(
            _COMMAND,
            input=json.dumps(question).encode("utf-8", "surrogatepass"),
            capture_output=True,
            env=_environment(),
            timeout=limits.seconds * times + _GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QueryTooLong(place, _too_long(limits)) from None

    if process.returncode == -signal.SIGALRM:
        raise QueryTooLong(place, _too_long(limits))
    try:
        answer: JsonObject = json.loads(process.stdout)
    except ValueError:
        raise BadOption(place, _ended(process.returncode, process.stderr, limits)) from None

    if "error" in answer:
        raise BadOption(place, answer["error"])
    return answer


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


def _ended(code: int, stderr: bytes, limits: Limits) -> str:
    last = stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    why = last or f"does it need more than {limits.megabytes} MB of memory?"
    return f"its process ended with exit code {code}: {why}"


def _too_long(limits: Limits) -> str:
    return (
        f"took longer than {limits.seconds:g} seconds and was stopped; does a join or a recursion "
        f"never end?"
    )
