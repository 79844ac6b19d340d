"""Answers, logs of other tools and sheets of labels for the fuzzer: seeds, and checks of the results."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz_common import (
    DATA,
    ROWS,
    Seed,
    Wrong,
    drawn_run,
    independent,
    numbers_in,
    rows_of,
    run,
    strict_csv,
    table,
)

__all__ = ["answer", "answers", "log", "logs", "sheet", "sheets"]

ANSWERS = [
    {"Q": row["question"], "G": row["answer"], "A": row["answer"] if n % 2 else "No."} for n, row in enumerate(ROWS)
]


def answers() -> Iterator[Seed]:
    yield Seed("answers.csv", table(",", ANSWERS, ["Q", "G", "A"]))
    yield Seed("answers.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in ANSWERS))
    yield Seed("answers.json", json.dumps(ANSWERS).encode())


def answer(seed: Seed, data: bytes) -> str:
    """`karat score`: questions, golden answers, answers and scores in the run folder must equal another reader's."""
    path = Path(seed.name)
    path.write_bytes(data)
    columns = ("--question", "Q", "--golden", "G", "--answer", "A")
    code, _ = run("score", seed.name, *columns, "--scorer", "equals", "--json", names=[seed.name])
    if code == 2:
        return "error"
    (folder,) = Path("results").iterdir()
    samples = {(row := json.loads(line))["id"]: row for line in (folder / "samples.jsonl").open("rb")}
    events = [json.loads(line) for line in (folder / "journal.jsonl").open("rb")]
    given = {event["trial"]: event for event in events if event["event"] == "answer"}
    ours = []
    for event in events:
        if event["event"] == "score" and "equals" in event["values"]:
            record = given[event["trial"]]
            turn = samples[record["sample"]]["turns"][0]
            ours.append([turn["question"], turn.get("golden"), record["replies"][0]["text"], event["values"]["equals"]])
    theirs = independent(lambda: rows_of(path, data))
    wanted = [[row["Q"], row["G"], row["A"]] for row in theirs]
    if [row[:3] for row in ours] != wanted:
        left = Counter(map(str, wanted)) - Counter(str(row[:3]) for row in ours)
        invented = Counter(str(row[:3]) for row in ours) - Counter(map(str, wanted))
        if invented or (left and not code and not _left_out(theirs)):
            raise Wrong("wrong", f"left out {list(left)[:2]}, invented {list(invented)[:2]}")
    for question, golden, text, value in ours:
        if float(value) != float(" ".join(golden.split()) == " ".join(text.split())) and golden.isascii():
            raise Wrong("wrong", f"equals {value} for {question!r}: {golden!r}, {text!r}")
    return "right"


def _left_out(rows: list[Any]) -> bool:
    """Whether a row has nothing that could be an answer to its own question."""
    return any(not isinstance(row.get(key), str) or not row[key].strip() for row in rows for key in "QGA") or len(
        {row["Q"] for row in rows}
    ) < len(rows)


def logs() -> Iterator[Seed]:
    imports = DATA / "imports"
    for path in sorted(imports.rglob("*")):
        if path.is_file() and path.suffix != ".md" and path.relative_to(imports).parts[0] in ONE_FILE:
            others = [other for other in path.parent.iterdir() if other.suffix != ".md" and other != path]
            together = others if path.parent.name in ("eee", "lm-eval") else []
            yield Seed(f"{path.parent.name}.{path.name}", path.read_bytes(), (path.parent.name, path.name, together))
    yield Seed(
        "csv.results.csv",
        b"id,question,answer,score\n" + b"q1,Why?,So.,0.5\nq2,When?,Now.,1\n" * 1,
        ("csv", "results.csv", []),
    )


# formats whose files can be read alone, or with their neighbours; tests/karat_imports damages the others
ONE_FILE = ("deepeval", "eee", "inspect", "lm-eval", "openai-evals", "promptfoo", "skill-evals")
DERIVED = ("promptfoo",)  # their scores are computed from several numbers
MAPS = ("--map", "score.score=score")


def log(seed: Seed, data: bytes) -> str:
    """`karat import`: every score in the run folder must be a number from the files."""
    tool, name, together = seed.about
    folder = Path("logs")
    folder.mkdir()
    for other in together:
        shutil.copy(other, folder)
    (folder / name).write_bytes(data)
    target = str(folder) if together else str(folder / name)
    names = [name, "logs", *(other.name for other in together)]  # a file of no known form is not of this tool
    code, out = run("import", tool, target, "--json", *(MAPS if tool == "csv" else ()), names=names)
    if code:
        return "error"
    known: set[float] = {0.0, 1.0, 0.5}  # right, wrong, half right: words
    for path in folder.iterdir():
        known |= set(numbers_in(path))
    for imported in json.loads(out)["runs"]:
        for line in (Path(imported["folder"]) / "journal.jsonl").open("rb") if tool not in DERIVED else ():
            event = json.loads(line)
            for value in event["values"].values() if event["event"] == "score" else ():
                if value is not None and float(value) not in known:
                    raise Wrong("wrong", f"the score {value!r} is in none of the files")
        run("report", imported["folder"], "--to", "json", names=[imported["folder"]])
    return "unverified"


def sheets() -> Iterator[Seed]:
    text = (drawn_run() / "sheet.csv").read_text(encoding="utf-8-sig")
    header, *records = csv.reader(io.StringIO(text, newline=""))
    for number, record in enumerate(records):
        record[-3:] = [str(number % 5 + 1), "3", "4"]
    file = io.StringIO(newline="")
    csv.writer(file).writerows([header, *records])
    yield Seed("sheet.csv", file.getvalue().encode())


def sheet(seed: Seed, data: bytes) -> str:  # noqa: ARG001 -- like every target
    """`karat label`: the saved scores must be those of the sheet according to another reader."""
    shutil.copytree(drawn_run() / "run", "run")
    Path("sheet.csv").write_bytes(data)
    code, _ = run("label", "run", "sheet.csv", "--who", "ann", "--json", names=["sheet.csv"])
    if code == 2:
        return "error"
    header, *records = independent(lambda: list(strict_csv(data.decode("utf-8-sig"), ",")))
    header = [cell.strip() for cell in header]
    wanted = Counter()
    for record in records:
        if len(record) > len(header):
            raise Wrong("wrong", f"a record of {len(record)} cells was accepted")
        for column, cell in zip(header, record, strict=False):  # cells that are missing are empty
            if column in ("factual_adherence", "completeness", "helpfulness_and_clarity") and cell.strip():
                wanted[column, float(cell.replace(",", "."))] += 1
    ours = Counter()
    for line in Path("run", "calibration.jsonl").read_bytes().splitlines():
        if (event := json.loads(line))["event"] == "scores":
            ours.update((key, float(value)) for key, value in event["scores"].items())
    if not ours or ours != wanted:
        raise Wrong("wrong", f"kept {dict(ours)}, the sheet has {dict(wanted)}")
    return "right"
