"""All numbers that karat reports for the run folders of the corpus.

`python -m tests.corpus.outputs` writes them to `expected/`, a file for each run: after a change that is meant to
change numbers. Look at what `git diff --stat` and the failing test named first.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import lzma
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from karat.__main__ import main

HERE = Path(__file__).parent
RUNS = sorted(path.name for path in (HERE / "runs").iterdir())
EXPORTS = ("csv", "keval", "eee", "convfinqa", "convfinqa_official", "humanstudy")
# Of the day on which a file was written, of the installed versions, and of the wording of a text.
_PASSED_OVER = re.compile(r"(^|/)(versions?|shown|retrieved_timestamp|evaluation_timestamp|file_bytes)(/|$)")
_NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")


def karat(*arguments: str) -> tuple[int, str]:
    """The exit code and the standard output of a command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main([*arguments])
    return code, out.getvalue()


def numbers(run: Path, work: Path) -> dict[str, str]:
    """Every number in karat's reports, exports, query tables and comparisons of a run, by command and place.

    Words are left out, since they may change; so are versions and the times at which a file was written. `work` is an
    empty folder, for exports that write files.
    """
    return {f"{name}{place}": text for name, value in _outputs(run, work) for place, text in _leaves(value)}


def _outputs(run: Path, work: Path) -> Iterator[tuple[str, Any]]:
    code, text = karat("report", str(run), "--to", "json", "--pairs", "all", "--allow-code")
    summary = json.loads(text)
    yield "report", summary
    yield "report/exit", code
    for name in EXPORTS:
        folder = work / name
        folder.mkdir()
        code, _ = karat("report", str(run), "--to", name, "--allow-code", "--out", str(folder / "out"))
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
        return list(csv.reader(io.StringIO(text)))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    try:
        return json.loads(text)
    except ValueError:
        return list(csv.reader(io.StringIO(text)))


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if _PASSED_OVER.search(place):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}/{key}")
    elif isinstance(value, list):
        yield f"{place}/#", str(len(value))
        for at, item in enumerate(value):
            yield from _leaves(item, f"{place}/{at}")
    elif not isinstance(value, str):
        yield place, json.dumps(value)
    elif _NUMBER.match(value):
        yield place, value


def expected(name: str) -> dict[str, str]:
    """The numbers that were written down for a run."""
    lines = lzma.decompress((HERE / "expected" / f"{name}.xz").read_bytes()).decode().splitlines()
    return dict(line.rsplit("\t", 1) for line in lines)


def write() -> None:
    """Writes down the numbers of all runs."""
    (HERE / "expected").mkdir(exist_ok=True)
    for name in RUNS:
        with tempfile.TemporaryDirectory() as work:
            figures = numbers(HERE / "runs" / name, Path(work))
        text = "".join(f"{place}\t{number}\n" for place, number in sorted(figures.items()))
        (HERE / "expected" / f"{name}.xz").write_bytes(lzma.compress(text.encode()))


if __name__ == "__main__":
    write()
