"""The process in which a query runs: one question on standard input, one answer on standard output.

The question `stream` is answered in lines. The first names the columns that the query needs; a
second line of input then names the files that hold them. After that come the columns of the result,
its rows, and their count. The last line is what every other question gets as its only one: the
answer, or an error.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

try:
    # all that is used here; the Python around it takes most of the time of a small query
    import _duckdb as duckdb
except ImportError:
    import duckdb  # type: ignore[no-redef]  # before 1.4

JsonObject = dict[str, Any]  # as in `karat.records`; this process imports nothing from karat
_TYPES = {
    "number": "DOUBLE",
    "whole": "BIGINT",
    "text": "VARCHAR",
    "texts": "VARCHAR[]",
    "truth": "BOOLEAN",
}
_LOCKS = (  # lock_configuration comes last: after it, nothing can be set
    ("threads", "1"),  # keeps the order of rows, and leaves the other core free
    ("temp_directory", "''"),
    ("TimeZone", "'UTC'"),  # else the same times are other dates on another machine
    ("python_enable_replacements", "false"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
    ("enable_external_access", "false"),
    ("lock_configuration", "true"),
)


class _Refused(Exception):
    """The query is not allowed."""


def main() -> None:
    """Answers the question on standard input."""
    question = json.loads(sys.stdin.buffer.readline())
    _limit_memory(question["megabytes"])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, question["seconds"])
    try:
        if question["what"] == "stream":
            answer = _stream(question)
        else:
            answer = _answer(question)
    except (_Refused, duckdb.Error) as error:
        # DuckDB's message without the pointer into the text; says so if karat has switched the
        # feature off
        message = " ".join(str(error).strip().partition("\n\n")[0].split())
        # a value such as now() needs a Python library
        if "Traceback" in message or "Required module" in message:
            error_message = (
                "returns values of a type that cannot be read here; CAST them to text or to a "
                "number"
            )
        elif isinstance(error, duckdb.PermissionException) or "disabled" in message:
            error_message = f"may not reach files, the network or settings: {message}"
        elif isinstance(error, duckdb.OutOfMemoryException):
            error_message = f"needs more memory than it is allowed: {message}"
        else:
            error_message = message

        answer = {"error": error_message}
    except MemoryError:
        answer = {"error": f"needs more than {question['megabytes']} MB of memory; select less"}

    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # skips a slow cleanup: the process ends anyway


def _limit_memory(megabytes: int) -> None:
    """Limits the address space to what is in use now plus twice the allowed memory.

    DuckDB's own limit does not count the memory of functions such as `repeat`. A connection uses
    some 640 MB of addresses, so this is called again once one is open.
    """
    with contextlib.suppress(ValueError, OSError):
        used = 0
        with contextlib.suppress(OSError):
            used = (
                int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
                * resource.getpagesize()
            )

        most = (used or 1 << 31) + (2 * megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _answer(question: JsonObject) -> JsonObject:
    sql = question["sql"]
    with duckdb.connect(":memory:") as connection:
        _check_one_select(connection, sql)
        for name, types in question["types"].items():
            connection.execute(_declaration(name, types))

        connection.execute(f"SET memory_limit = '{int(question['megabytes'])}MB'")
        _lock(connection)
        if question["what"] == "shape":
            return _shape(connection, sql)
        # The rows for each of several contents of the table. The clock starts anew for each.
        [(name, types)] = question["types"].items()
        results = []
        for columns in question["fills"]:
            signal.setitimer(signal.ITIMER_REAL, question["seconds"])
            connection.execute(f"DELETE FROM {_quoted(name)}")  # noqa: S608 -- quoted
            _insert(connection, name, types, columns)
            results.append(_rows(connection, sql, question["rows"]))

        return {"each": results}


def _check_one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise _Refused(f"must be one SELECT, got {len(statements) or 'no'} statements")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI and "pivot" in sql.lower():
        raise _Refused(
            "must be one SELECT; a PIVOT without a list is two, because it first queries the "
            "values: write PIVOT … ON column IN (value, …)"
        )

    if kind != duckdb.StatementType.SELECT:
        raise _Refused(f"must be one SELECT, got {str(kind).rpartition('.')[2]}")


def _insert(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    types: dict[str, str],
    columns: dict[str, list[Any]],
) -> None:
    if not any(columns.values()):
        return
    # The others are NULL, and a statement takes as long as it has columns
    given = [one for one in types if any(value is not None for value in columns[one])]
    given = given or list(types)
    shapes: dict[str, list[object]] = {}
    for column in given:
        whole = _TYPES[types[column]]
        part = whole.removesuffix("[]")
        shapes[column] = [whole if part == whole else [part]]

    text = json.dumps({column: columns[column] for column in given}, ensure_ascii=False)
    taken = ", ".join(f"unnest(struct_extract(filled, {_literal(column)}))" for column in given)
    into = f"{_quoted(name)} ({', '.join(map(_quoted, given))})"
    connection.execute(
        f"INSERT INTO {into} SELECT {taken} FROM (SELECT from_json(?, ?) AS filled)",  # noqa: S608 -- quoted
        # Half of a surrogate pair is not a character; one such answer must not spoil all others.
        [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), json.dumps(shapes)],
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, most: int) -> JsonObject:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    _check_names(names)
    rows = cursor.fetchmany(most + 1)
    if len(rows) > most:
        raise _Refused(f"gives more than {most} rows")
    columns: list[tuple[Any, ...]] = [()] * len(names)
    if rows:
        columns = [*zip(*rows, strict=True)]
    return {
        name: [_plain(value) for value in column]
        for name, column in zip(names, columns, strict=True)
    }


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _Refused(f"gives two columns called '{twice[0]}'; rename one of them with AS")


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _stream(question: JsonObject) -> JsonObject:
    """Loads tables from files into a database next to them; sends the result's rows, a few per
    line, as they come.
    """
    sql, folder, tables = question["sql"], Path(question["folder"]), question["types"]
    with duckdb.connect(":memory:") as empty:
        _check_one_select(empty, sql)
        for name, types in tables.items():
            empty.execute(_declaration(name, types))
        _lock(empty)  # before the query is parsed: parsing may open what it names
        described = empty.execute(f"DESCRIBE {sql}").fetchall()
        _check_names([row[0] for row in described])
        tree = _tree(empty, sql)
        # The tables that it may read: all if it cannot be analysed, or names one in a text
        needed, nodes = list(tables), list(_walk(tree))
        called = {str(node.get("function_name", "")) for node in nodes}
        if not tree.get("error", True) and not called & {"query", "query_table"}:
            read = {str(node.get("table_name", "")).lower() for node in nodes}
            needed = [name for name in tables if name.lower() in read]

        _say({"needed": needed, "samples": _samples_wanted(tree)})
        sys.stdout.flush()

    signal.setitimer(signal.ITIMER_REAL, 0)
    with duckdb.connect(str(folder / "tables.duckdb")) as connection:
        _limit_memory(question["megabytes"])
        connection.execute(f"SET memory_limit = '{int(question['megabytes'])}MB'")
        connection.execute("SET threads = 1")
        connection.execute(f"SET temp_directory = {_literal(str(folder / 'sorting'))}")
        connection.execute(f"SET max_temp_directory_size = '{int(question['disk_megabytes'])}MB'")
        filled = json.loads(sys.stdin.buffer.readline())
        for name, types in tables.items():
            connection.execute(_declaration(name, types))
        for name, table in filled.items():
            fill_from_file(
                connection, name, tables[name], Path(table["path"]), longest=table["longest"]
            )

        _lock(connection, leave="temp_directory")
        signal.setitimer(signal.ITIMER_REAL, question["seconds"])
        most = question["rows"]
        kinds = []
        for row in described:
            # A DuckDB type as one of ours; types that we do not have become text
            type_ = row[1]
            if type_ in _KINDS:
                kind = _KINDS[type_]
            elif type_.startswith("DECIMAL(") and type_.endswith(")"):
                kind = "huge" if type_.endswith(",0)") else "number"
            else:
                kind = "text"

            kinds.append(kind)

        cursor = connection.execute(sql)
        shapers = [_SHAPERS[kind] for kind in kinds]
        _say({"columns": dict(zip((row[0] for row in described), kinds, strict=True))})
        count = 0
        while rows := cursor.fetchmany(_ROWS):
            count += len(rows)
            if count > most:
                raise _Refused(f"gives more than {most} rows")
            _say(
                [[shape(value) for shape, value in zip(shapers, row, strict=True)] for row in rows]
            )

        return {"rows": count}


def _declaration(name: str, types: dict[str, str]) -> str:
    columns = ", ".join(f"{_quoted(column)} {_TYPES[kind]}" for column, kind in types.items())
    return f"CREATE TABLE {_quoted(name)} ({columns})"


def _lock(connection: duckdb.DuckDBPyConnection, *, leave: str | None = None) -> None:
    """Closes every way out of the database for all SQL that follows."""
    for setting, value in _LOCKS:
        if setting != leave:
            connection.execute(f"SET {setting} = {value}")


def _samples_wanted(tree: JsonObject) -> list[str] | None:
    """The samples of which a query over one table keeps rows: `WHERE sample = 'a' AND …`, or IN;
    None: it may keep others.
    """
    selects = [node for node in _walk(tree) if node.get("type") == "SELECT_NODE"]
    table = selects[0].get("from_table") or {} if len(selects) == 1 else {}
    if table.get("type") != "BASE_TABLE" or table.get("sample") or table.get("column_name_alias"):
        return None
    where = selects[0].get("where_clause") or {}
    parts = where["children"] if where.get("type") == "CONJUNCTION_AND" else [where]
    for part in parts:
        if part.get("type") == "COMPARE_EQUAL":
            column, *values = part["left"], part["right"]
        elif part.get("type") == "COMPARE_IN":
            column, *values = part["children"]
        else:
            continue

        texts = []
        for value in values:
            if (text := _text_literal(value)) is not None:
                texts.append(text)

        named = [name.lower() for name in column.get("column_names") or ()]
        if named[-1:] == ["sample"] and len(texts) == len(values):
            return texts

    return None


def _text_literal(node: JsonObject) -> str | None:
    literal = node.get("literal") or node.get("value") or {}
    if literal.get("kind") == "STRING":
        return str(literal["text"])
    if (literal.get("type") or {}).get("id") == "VARCHAR" and not literal.get("is_null"):
        return str(literal["value"])  # before 1.5
    return None


def fill_from_file(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    types: dict[str, str],
    path: Path,
    *,
    longest: int,
) -> None:
    """Loads JSON lines of at most `most` bytes into a table with these columns, and removes the
    file.
    """
    if longest:
        read = ", ".join(
            f"{_literal(column)}: {_literal(_TYPES[kind])}" for column, kind in types.items()
        )
        most = max(_LINE, 2 * longest)
        rows = (
            f"read_json({_literal(str(path))}, columns = {{{read}}}, "
            f"format = 'newline_delimited', maximum_object_size = {most})"
        )
        connection.execute(f"INSERT INTO {_quoted(name)} SELECT * FROM {rows}")  # noqa: S608 -- quoted

    path.unlink()


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


def _as_number(value: Any) -> float | None:
    if value is None:
        number = None
    else:
        number = float(value)

    return number if number is not None and math.isfinite(number) else None


def _as_whole(value: Any) -> int | None:
    if value is None:
        return None
    return int(value)


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return str(value)


_LINE = 16 << 20  # bytes: the longest line that DuckDB reads by default
_ROWS = 1000  # per line
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_HUGE = ("UBIGINT", "HUGEINT", "UHUGEINT")  # may exceed a signed 64-bit integer
_KINDS = {
    "BOOLEAN": "truth",
    "VARCHAR": "text",
    "VARCHAR[]": "texts",
    "FLOAT": "number",
    "DOUBLE": "number",
    **dict.fromkeys(_WHOLE, "whole"),
    **dict.fromkeys(_HUGE, "huge"),
}
_SHAPERS: dict[str, Callable[[Any], Any]] = {
    "number": _as_number,
    "whole": _as_whole,
    "huge": _as_whole,
    "text": _as_text,
    "texts": lambda value: value,
    "truth": lambda value: value,
}


def _shape(connection: duckdb.DuckDBPyConnection, sql: str) -> JsonObject:
    described = connection.execute(f"DESCRIBE {sql}").fetchall()
    _check_names([row[0] for row in described])
    tree = _tree(connection, sql)
    sources: dict[str, set[str]] = {}
    top = (tree.get("statements") or [{}])[0].get("node")
    for node in _walk(tree):
        if node.get("type") == "SET_OPERATION_NODE":
            for name, item in _united(node, [row[0] for row in described] if node is top else None):
                sources.setdefault(name, set()).update(_mentioned(item))

        alias = node.get("alias")
        if alias and "class" in node:
            sources.setdefault(alias, set()).update(_mentioned(node))

    return {
        "types": {row[0]: row[1] for row in described},
        "sources": {alias: sorted(names) for alias, names in sources.items()},
        "changing": _changing(connection, tree),
    }


def _changing(connection: duckdb.DuckDBPyConnection, tree: JsonObject) -> list[str]:
    """Why a query may give another result for the same tables, each as the start of a sentence."""
    tables = {
        str(row[0]).lower()
        for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    }
    columns = {
        str(row[0]).lower()
        for row in connection.execute("SELECT column_name FROM duckdb_columns()").fetchall()
    }
    if tree.get("error", True):
        return ["it is of a kind that karat cannot analyse"]
    nodes = list(_walk(tree))
    named = columns | {str(node.get("alias") or "").lower() for node in nodes}
    # of WITH
    tables |= {str(node["key"]).lower() for node in nodes if isinstance(node.get("key"), str)}
    reasons: dict[str, None] = {}
    for node in nodes:
        name = str(node.get("function_name") or "").lower()
        if name in _UNSTEADY or (
            name == "age" and len(node.get("arguments") or node.get("children") or ()) < 2
        ):
            reasons[f"{name}() gives another value each time"] = None

        if node.get("type") == "COLUMN_REF" and len(node["column_names"]) == 1:
            word = str(node["column_names"][0]).lower()
            if word in _WORDS - named:
                reasons[f"{word} gives another value each time"] = None

        if isinstance(node.get("sample"), dict) and node["sample"].get("seed") in (-1, None):
            reasons["a SAMPLE without REPEATABLE picks other rows each time"] = None
        if node.get("type") == "TABLE_FUNCTION":
            name = str(node["function"].get("function_name") or "").lower()
            if name not in _MADE:
                reasons[f"{name}() reads something other than the answers"] = None

        if node.get("type") == "BASE_TABLE" and str(node["table_name"]).lower() not in tables:
            reasons[f"{node['table_name']} is not a table of answers"] = None

    return list(reasons)


# By name: which functions an engine's catalogue calls volatile differs from release to release.
_UNSTEADY = frozenset(
    [
        "ago",
        "current_catalog",
        "current_connection_id",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query",
        "current_query_id",
        "current_role",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "current_user",
        "currval",
        "gen_random_uuid",
        "get_current_time",
        "get_current_timestamp",
        "getvariable",
        "in_search_path",
        "localtime",
        "localtimestamp",
        "nextval",
        "now",
        "pg_conf_load_time",
        "pg_postmaster_start_time",
        "random",
        "session_user",
        "setseed",
        "setval",
        "sleep_ms",
        "stats",
        "today",
        "transaction_timestamp",
        "txid_current",
        "user",
        "uuid",
        "uuidv4",
        "uuidv7",
        "vector_type",
        "write_log",
    ]
)
# called without ()
_WORDS = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
# from their arguments
_MADE = {"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"}


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> JsonObject:
    """The parsed query, as a tree."""
    serialized = connection.execute(
        "SELECT json_serialize_sql(?::VARCHAR)", [sql.rstrip().rstrip(";")]
    ).fetchone()
    if serialized:
        tree: JsonObject = json.loads(serialized[0])
    else:
        tree = {}

    return tree


def _united(node: JsonObject, names: list[str] | None) -> Iterator[tuple[str, JsonObject]]:
    """The columns of a union, with what each SELECT puts there; `names`: its columns, if they are
    known.

    Columns are matched by position: from the left up to the first *, whose width is unknown, and
    from the right after the last one.
    """
    # The select list of each SELECT, in order; those that only remove rows add no column.
    lists = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here.get("type") == "SELECT_NODE":
            lists.append(here["select_list"])
            continue

        below = []
        for child in here.get("children") or (here.get("left"), here.get("right")):
            if child:
                below.append(child)

        kind = here.get("setop_type")
        if kind != "UNION_BY_NAME":  # in one, every SELECT names its own columns
            waiting.extend(reversed(below if kind == "UNION" else below[:1]))

    parts = lists
    if not parts:
        return
    left = right = names
    if left is None or right is None:
        called = [
            None
            if item.get("class") == "STAR"
            else str(item.get("alias") or (item.get("column_names") or [""])[-1])
            for item in parts[0]
        ]
        stars = [at for at, name in enumerate(called) if name is None]
        left = []
        for name in called[: stars[0]] if stars else called:
            left.append(name or "")
        right = []
        for name in called[stars[-1] + 1 :] if stars else called:
            right.append(name or "")

    for part in parts:
        stars = [at for at, item in enumerate(part) if item.get("class") == "STAR"]
        for at, item in enumerate(part):
            back = len(part) - at
            if at < len(left) and (not stars or at < stars[0]):
                yield left[at], item
            elif back <= len(right) and (not stars or at > stars[-1]):
                yield right[-back], item


def _mentioned(tree: object) -> set[str]:
    """The last name of every column in an expression."""
    return {node["column_names"][-1] for node in _walk(tree) if node.get("column_names")}


def _walk(tree: object) -> Iterator[JsonObject]:
    """Every mapping in a tree, without recursion."""
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)


if __name__ == "__main__":
    main()
