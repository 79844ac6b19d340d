"""All numbers that karat reports for the run folders of the corpus."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.corpus.tables import sections, text_of

from karat.__main__ import main
from karat.analysis import summarize
from karat.cli.reporting import render
from karat.errors import BadOption
from karat.exports import save
from karat.journal import RunFolder

HERE = Path(__file__).parent
RUNS = sorted(path.name for path in (HERE / "runs").iterdir())
EXPORTS = ("csv", "keval", "eee", "convfinqa", "convfinqa_official", "humanstudy")


def karat(*arguments: str) -> tuple[int, str]:
    """The exit code and the standard output of a command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main([*arguments])
    return code, out.getvalue()


def numbers(run: Path, work: Path) -> str:
    """Every number in karat's reports, exports, query tables and comparisons of a run, as text: see tables.py.

    `work` is an empty folder, for exports that write files.
    """
    return text_of([table for name, value in _outputs(run, work) for table in sections(value, name)])


def _outputs(run: Path, work: Path) -> Iterator[tuple[str, Any]]:
    code, text = karat("report", str(run), "--to", "json", "--pairs", "all", "--allow-code")
    summary = json.loads(text)
    yield "report", summary
    yield "report/exit", code
    opened = RunFolder.open(run)
    summary_of_exports = summarize(opened, allow_code=True)  # computed once: the command would for each export
    for name in EXPORTS:
        folder = work / name
        folder.mkdir()
        try:
            save(render(name, summary_of_exports, opened), folder / "out")
            code = 0
        except BadOption as error:
            code = error.exit_code
        yield f"{name}/exit", code
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield f"{name}/{path.relative_to(folder)}", _read(path)
    _, text = karat("query", str(run), "--json")
    tables: dict[str, list[Any]] = {table["name"]: [] for table in json.loads(text)["tables"]}
    # All tables by one query: each query is a process.
    parts = (f"SELECT '{name}' AS name, to_json(part) AS row FROM \"{name}\" AS part" for name in tables)
    _, text = karat("query", str(run), " UNION ALL ".join(parts), "--json")
    for line in json.loads(text)["rows"]:
        tables[line["name"]].append(dict(sorted(json.loads(line["row"]).items())))
    for name, rows in tables.items():
        yield f"query/{name}", sorted(rows, key=json.dumps)  # rows have no order of their own
    for first, second in itertools.combinations(summary["conditions"], 2):
        code, text = karat("compare", f"{run}:{first}", f":{second}", "--json", "--allow-code")
        yield f"compare/{first}/{second}", json.loads(text) if code == 0 else code


def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".csv":
        return _table(text)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    try:
        return json.loads(text)
    except ValueError:
        return _table(text)


def _table(text: str) -> list[dict[str, str]]:
    header, *rows = csv.reader(io.StringIO(text)) if text else [[]]
    return [dict(zip(header, row, strict=False)) for row in rows]
