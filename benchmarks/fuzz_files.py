"""Mutated files of every kind that karat reads: each ends in a clear error or in the right result.

    python benchmarks/fuzz_files.py                            20,000 mutations
    python benchmarks/fuzz_files.py --cases 100000 --json FILE
    python benchmarks/fuzz_files.py --only 'rubric:answers.yaml#17' --keep FOLDER    one of them again

Seeds are the files of examples/, tests/corpus and tests/data. A mutation follows from the seed and a number alone
(mutations.py). Each goes through the command that reads such a file, in a forked process that the kernel ends after
2 seconds of processor time. Found is: exit code 70 or a code that is not documented, a traceback, an error that does
not name the file, a hang, a process that dies, and a wrong result that is accepted.

What is right is decided by readers that share no code with karat's: Python's `json` without duplicate keys and NaN, a
reader of CSV and one of YAML nodes (fuzz_common.py), and for run folders the lines of the seed. Where there is no
second reader (Parquet, Excel, most of a study) an accepted file counts as "unverified". In run folders of the first
format, whose lines have no checksum, and in lines with a new checksum that fits, no reader can see a changed number:
also "unverified".
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # before NumPy is loaded: forks are many

import yaml
from fuzz_common import (  # beside this file
    CORPUS,
    DATA,
    EXAMPLES,
    RUBRICS,
    STUDIES,
    Refused,
    Seed,
    Wrong,
    damaged_lines,
    differ,
    difference,
    drawn_run,
    independent,
    numbers_in,
    run,
    strict_csv,
    strict_json,
    strict_yaml,
    table,
    yaml_of_both,
)
from mutations import SMALL, mutated, resealed

LIMIT = 2  # seconds of processor time for one case
WAIT = 90  # seconds without a sign of life: it waits for something that never comes
MEMORY = 4 << 30  # bytes of address space


class Case(NamedTuple):
    kind: str
    seed: Seed
    number: int

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.seed.name}#{self.number}"


# --- datasets --------------------------------------------------------------------------------------------------------

QUESTIONS = (EXAMPLES / "support-kb" / "questions.jsonl").read_bytes()
ROWS = [json.loads(line) for line in QUESTIONS.splitlines()[:6]]
for row in ROWS:
    row |= {"difficulty": len(row["id"]) / 4, "tags": ["a", None], "seen": True}


def datasets() -> Iterator[Seed]:
    columns = ["id", "question", "answer", "difficulty"]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    yield Seed("questions.jsonl", lines)
    yield Seed("short.jsonl", b"".join(lines.splitlines(keepends=True)[:2]))
    yield Seed("questions.json", json.dumps({"data": ROWS}, indent=1).encode())
    yield Seed("questions.csv", table(",", ROWS, columns))
    yield Seed("short.csv", table(",", ROWS[:2], columns))
    yield Seed("questions.tsv", table("\t", ROWS, columns))
    yield Seed("questions.yaml", yaml.safe_dump(ROWS, sort_keys=False).encode())
    yield Seed("questions.jsonl.gz", gzip.compress(lines, mtime=0), lines)
    yield Seed("questions.xlsx", workbook(columns))
    yield Seed("questions.parquet", parquet(columns))


def workbook(columns: Sequence[str]) -> bytes:
    import openpyxl

    book, file = openpyxl.Workbook(), io.BytesIO()
    for cells in [columns, *([row[column] for column in columns] for row in ROWS)]:
        book.active.append(cells)
    book.save(file)
    return file.getvalue()


def parquet(columns: Sequence[str]) -> bytes:
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        Path(folder, "rows.csv").write_bytes(table(",", ROWS, columns))
        connection.execute(f"COPY (SELECT * FROM read_csv('{folder}/rows.csv')) TO '{folder}/rows.parquet'")
        return Path(folder, "rows.parquet").read_bytes()


def dataset(seed: Seed, data: bytes) -> str:
    """`karat lint`, and each sample as another reader has it."""
    from karat.documents.rows import read_rows
    from karat.errors import BadDataset
    from karat.kinds.golden import Golden

    path = Path(seed.name)
    path.write_bytes(data)
    code, _ = run("lint", seed.name, "--kind", "golden", "--set", "id_key=id", "--json", names=[seed.name])
    try:
        rows = read_rows(path, lists=True)
        loaded = Golden(Golden.Options(id_key="id")).load(path)
    except BadDataset as error:
        if code != 2:
            raise Wrong("wrong", f"lint accepts what a run refuses: {error}") from None
        return "error"
    if code:
        raise Wrong("wrong", "lint refuses what a run accepts")
    if path.suffix in (".parquet", ".xlsx"):
        return "unverified"
    theirs = independent(lambda: rows_of(path, data))
    if not rows.faults:
        differ("rows", [row for _, row in rows.rows], theirs)
    ours = [(sample.id, sample.turns[0].question, sample.turns[0].golden) for sample in loaded.samples]
    wanted = [(str(row["id"]), row["question"], row["answer"]) for row in theirs]
    differ("samples", [list(row) for row in ours], [list(row) for row in wanted])
    return "right"


def rows_of(path: Path, data: bytes) -> list[Any]:
    suffixes = path.suffixes
    if suffixes[-1] == ".gz":
        data = gzip.decompress(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from None
    if suffixes[0] == ".jsonl":
        return [strict_json(line) for line in text.encode().split(b"\n") if line.strip(b" \t\r\x0b\x0c")]
    if suffixes[0] in (".csv", ".tsv"):
        header, *records = strict_csv(text, "," if suffixes[0] == ".csv" else "\t")
        if any(len(record) != len(header) for record in records):
            raise Refused("a record of another length")
        return [dict(zip(map(str.strip, header), record, strict=True)) for record in records]
    value = strict_json(text.encode()) if suffixes[0] == ".json" else strict_yaml(data)
    if isinstance(value, dict):
        (value,) = [child for child in value.values() if isinstance(child, list)]
    return list(value)


def conversations() -> Iterator[Seed]:
    whole = json.loads((EXAMPLES / "convfinqa" / "conversations.json").read_bytes())
    yield Seed("conversations.json", json.dumps({"dev": whole["dev"][:3]}).encode())
    yield Seed("conversations.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in whole["dev"][4:6]))


def conversation(seed: Seed, data: bytes) -> str:
    """`karat lint`, and each question and golden answer as another reader has it."""
    from karat.errors import BadDataset
    from karat.kinds.conversation import Conversation

    path = Path(seed.name)
    path.write_bytes(data)
    code, _ = run("lint", seed.name, "--kind", "conversation", "--json", names=[seed.name])
    try:
        samples = Conversation(Conversation.Options()).load(path).samples
    except BadDataset:
        return "error"
    if code:
        raise Wrong("wrong", "lint refuses what a run accepts")
    theirs = independent(lambda: rows_of(path, data))
    ours = [[[turn.question, turn.golden] for turn in sample.turns] for sample in samples]
    keys = ("conv_questions", "executed_answers")
    wanted = [zip(*(row["dialogue"][key] for key in keys), strict=True) for row in theirs]
    differ("turns", ours, [[[question, str(value)] for question, value in turns] for turns in wanted])
    return "right"


# --- experiments, rubrics, studies -----------------------------------------------------------------------------------


def experiments() -> Iterator[Seed]:
    for path in sorted(EXAMPLES.glob("*/*.yaml")):
        if path.parent.name != "shards":
            yield Seed(f"{path.parent.name}.{path.name}", path.read_bytes(), path.parent)
    yield Seed("every-section.yaml", EVERY_SECTION.encode(), EXAMPLES / "support-kb")


EVERY_SECTION = """\
name: every section
version: 7
dataset: {kind: golden, path: questions.jsonl, id_key: id, sample_size: 12, seed: 3, stratify: [topic]}
agent: {type: chat, model: "openai:gpt-5.6-luna", temperature: 0.5, max_tokens: 500}
judge: {model: "openai:gpt-6.1-terra", repeats: 2, rubric: default}
scorers:
  - {type: regex, pattern: "[0-9]+"}
  - {type: contains, texts: [one, two]}
mcp_servers:
  docs: &server {type: stdio, command: python, args: [docs_server.py], env: {INDEX: ../../docs}}
  other: {<<: *server, scope: run}
conditions:
  plain: {}
  docs: {system_prompt: "Look it up, {{ topic }}.", mcp_servers: [docs, other], require_mcp_tool_use: true}
baseline: plain
execution:
  num_repetitions: 4
  max_concurrent: 7
  timeout_seconds: 12.5
  retry: {max_attempts: 2}
  budget: {usd: 1.5, tokens: 100_000}
prices: {"openai:gpt-5.6-luna": {input: 1.25, output: 10}}
limits: {"openai:gpt-5.6-luna": {requests_per_minute: 60, tokens_per_minute: 1e5}}
"""
SETTINGS = {
    "num_repetitions": "repetitions",
    "max_concurrent": "max_concurrent",
    "timeout_seconds": "timeout_seconds",
}


def experiment(seed: Seed, data: bytes) -> str:
    """`karat check`: the tree, and what is shown of it, as another reader has them."""
    from karat.documents.nodes import plain
    from karat.documents.reader import parse

    for path in seed.about.iterdir():
        Path(path.name).symlink_to(path)
    Path("mutated.yaml").write_bytes(data)
    code, out = run("check", "mutated.yaml", "--no-start", "--json", names=["mutated.yaml", *os.listdir()])
    document = parse(data)
    if document.faults or document.root is None:
        if code != 2:
            raise Wrong("wrong", f"check accepts a file with faults: {document.faults}")
        return "error"
    theirs = yaml_of_both(data)
    differ("tree", plain(document.root), theirs)
    if code:
        return "error"
    found, execution = json.loads(out), theirs.get("execution") or {}
    for key, shown in SETTINGS.items():
        if execution.get(key) is not None:
            differ(key, float(found[shown]), float(execution[key]))
    if isinstance(theirs.get("name"), str):  # of a number, the text as it is written
        differ("name", found["name"], theirs["name"])
    differ("conditions", sorted(one["name"] for one in found["conditions"]), sorted(theirs["conditions"]))
    return "right"


EXPERIMENT_WITH_RUBRIC = """\
name: judged
dataset: {path: questions.jsonl, id_key: id}
agent: {type: floor}
judge: {model: "openai:gpt-6.1-terra", rubric: rubric.yaml}
conditions: {plain: {}}
"""


def rubrics() -> Iterator[Seed]:
    for path in sorted(RUBRICS.glob("*.yaml")):
        yield Seed(path.name, path.read_bytes())
    yield Seed(
        "small.yaml",
        b"format: 2\nname: small\ninstructions: Judge.\nscale: {low: 0, high: 2}\nmetrics:\n  good:\n"
        b"    description: Is it good?\n    levels: {0: No., 1: Half., 2: Yes.}\n    empty: 0\n"
        b"  short:\n    description: Is it short?\n    scale: {low: 1, high: 2}\n    levels: {1: No., 2: Yes.}\n",
    )


def rubric(seed: Seed, data: bytes) -> str:  # noqa: ARG001 -- as every target
    """`karat check` of an experiment with it: each level of each metric as another reader has it."""
    from karat import rubrics as ours

    Path("rubric.yaml").write_bytes(data)
    if not Path("judged.yaml").exists():
        Path("judged.yaml").write_text(EXPERIMENT_WITH_RUBRIC, encoding="utf-8")
        Path("questions.jsonl").write_bytes(QUESTIONS)
    code, _ = run("check", "judged.yaml", "--no-start", "--json", names=["rubric.yaml"])
    if code:
        return "error"
    loaded, theirs = ours.load("rubric.yaml"), independent(lambda: strict_yaml(data, yaml.CSafeLoader))
    differ("metrics", [metric.name for metric in loaded.metrics], list(theirs["metrics"]))
    for metric in loaded.metrics:
        told = theirs["metrics"][metric.name]
        differ("levels", {str(key): text for key, text in metric.levels.items()}, stripped(told["levels"]))
        scale = told.get("scale") or theirs["scale"]
        differ("scale", [metric.low, metric.high], [scale["low"], scale["high"]])
        differ("empty", metric.empty, told.get("empty"))
    return "right"


def stripped(levels: dict[str, str]) -> dict[str, str]:
    return {str(int(yaml.safe_load(key))): text.strip() for key, text in levels.items()}


def studies() -> Iterator[Seed]:
    for study in sorted([*STUDIES.iterdir(), EXAMPLES / "trust-pairs" / "study"]):
        if (study / "study.yaml").is_file():
            name = study.name if study.parent == STUDIES else "trust-pairs"
            yield Seed(f"{name}.study.yaml", (study / "study.yaml").read_bytes(), (study, "study.yaml"))
    for study in (STUDIES / "framing", EXAMPLES / "trust-pairs" / "study"):
        for path in [study / "copy.jsonl", *sorted(study.glob("materials/*.md"))[:1]]:
            head = b"".join(path.read_bytes().splitlines(keepends=True)[:20])
            yield Seed(f"{study.parent.name}.{path.name}", head, (study, str(path.relative_to(study))))


def study(seed: Seed, data: bytes) -> str:
    """`karat lint`, which reads and checks a study without a bootstrap; every 50th also `karat check`."""
    from karat.documents.nodes import plain
    from karat.documents.reader import parse

    source, name = seed.about
    shutil.copytree(source, "study")
    Path("study", name).write_bytes(data)
    code, _ = run("lint", "study/study.yaml", "--kind", "study", "--json", names=["study"])
    if name == "study.yaml" and not code:
        document = parse(data)
        differ("tree", plain(document.root), yaml_of_both(data))
    return "error" if code else "unverified"


# --- answers and logs ------------------------------------------------------------------------------------------------

ANSWERS = [
    {"Q": row["question"], "G": row["answer"], "A": row["answer"] if n % 2 else "No."} for n, row in enumerate(ROWS)
]


def answers() -> Iterator[Seed]:
    yield Seed("answers.csv", table(",", ANSWERS, ["Q", "G", "A"]))
    yield Seed("answers.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in ANSWERS))
    yield Seed("answers.json", json.dumps(ANSWERS).encode())


def answer(seed: Seed, data: bytes) -> str:
    """`karat score`: questions, golden answers, answers and scores in the run folder as another reader has them."""
    path = Path(seed.name)
    path.write_bytes(data)
    columns = ("--question", "Q", "--golden", "G", "--answer", "A")
    code, _ = run("score", seed.name, *columns, "--scorer", "equals", "--json", names=[seed.name])
    if code == 2:
        return "error"
    (made,) = Path("results").iterdir()
    samples = {(row := json.loads(line))["id"]: row for line in (made / "samples.jsonl").open("rb")}
    events = [json.loads(line) for line in (made / "journal.jsonl").open("rb")]
    given = {event["trial"]: event for event in events if event["event"] == "answer"}
    ours = []
    for event in events:
        if event["event"] == "score" and "equals" in event["values"]:
            one = given[event["trial"]]
            turn = samples[one["sample"]]["turns"][0]
            ours.append([turn["question"], turn.get("golden"), one["replies"][0]["text"], event["values"]["equals"]])
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
    """Whether a row has nothing that could be an answer to a question of its own."""
    return any(not isinstance(row.get(key), str) or not row[key].strip() for row in rows for key in "QGA") or len(
        {row["Q"] for row in rows}
    ) < len(rows)


def logs() -> Iterator[Seed]:
    imports = DATA / "imports"
    for path in sorted(imports.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            others = [other for other in path.parent.iterdir() if other.suffix != ".md" and other != path]
            together = others if path.parent.name in ("eee", "lm-eval") else []
            yield Seed(f"{path.parent.name}.{path.name}", path.read_bytes(), (path.parent.name, path.name, together))
    yield Seed(
        "csv.results.csv",
        b"id,question,answer,score\n" + b"q1,Why?,So.,0.5\nq2,When?,Now.,1\n" * 1,
        ("csv", "results.csv", []),
    )


DERIVED = ("promptfoo",)  # whose scores are made of several
MAPS = ("--map", "score.score=score")


def log(seed: Seed, data: bytes) -> str:
    """`karat import`: no score in the run folder is a number that the files do not have."""
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
    for found in json.loads(out)["runs"]:
        for line in (Path(found["folder"]) / "journal.jsonl").open("rb") if tool not in DERIVED else ():
            event = json.loads(line)
            for value in event["values"].values() if event["event"] == "score" else ():
                if value is not None and float(value) not in known:
                    raise Wrong("wrong", f"the score {value!r} is in none of the files")
        run("report", found["folder"], "--to", "json", names=[found["folder"]])
    return "unverified" if tool in DERIVED else "right"


def sheets() -> Iterator[Seed]:
    text = (drawn_run() / "sheet.csv").read_text(encoding="utf-8-sig")
    header, *records = csv.reader(io.StringIO(text, newline=""))
    for number, record in enumerate(records):
        record[-3:] = [str(number % 5 + 1), "3", "4"]
    file = io.StringIO(newline="")
    csv.writer(file).writerows([header, *records])
    yield Seed("sheet.csv", file.getvalue().encode())


def sheet(seed: Seed, data: bytes) -> str:  # noqa: ARG001 -- as every target
    """`karat calibrate`: the scores that are kept are those of the sheet, as another reader has it."""
    shutil.copytree(drawn_run() / "run", "run")
    Path("sheet.csv").write_bytes(data)
    code, _ = run("calibrate", "run", "sheet.csv", "--who", "ann", "--json", names=["sheet.csv"])
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


# --- run folders -----------------------------------------------------------------------------------------------------

FILES = ("run.json", "journal.jsonl", "samples.jsonl", "experiment.yaml")
RUNS = (
    "scored-table",
    "broken-server",
    "budget-spent",
    "killed-and-resumed",
    "chat-panel",
    "first-format-conversations",
)


def runs(files: Sequence[str] = FILES) -> Iterator[Seed]:
    for name in RUNS:
        for file in files:
            yield Seed(f"{name}.{file}", (CORPUS / name / file).read_bytes(), (name, file))
    study = next((CORPUS / "framing-designs" / "studies").iterdir())
    if files == FILES:
        yield Seed("framing-designs.study.yaml", study.read_bytes(), ("framing-designs", f"studies/{study.name}"))


@cache
def report_of(name: str) -> Any:
    """What is reported of a run as it is."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(CORPUS / name, "run")
        return json.loads(run("report", "run", "--to", "json", names=["run"])[1])


def run_folder(seed: Seed, data: bytes) -> str:
    """`karat report` and `karat verify`: the same numbers, those of the lines that are left, or an error."""
    name, file = seed.about
    shutil.copytree(CORPUS / name, "run")
    Path("run", file).write_bytes(data)
    code, out = run("report", "run", "--to", "json", names=["run"])
    verified, _ = run("verify", "run", "--json", names=["run"])
    has_checksums = report_of(name)["run"] and json.loads((CORPUS / name / "run.json").read_bytes())["format"] > 1
    whole = damaged_lines(seed.data, data) == 0
    if file.endswith(".jsonl") and has_checksums and not whole and verified == 0:
        raise Wrong("wrong", "`karat verify` finds nothing wrong")
    if code:
        return "error"
    found, before = json.loads(out), report_of(name)
    if found == before:
        return "right"
    if not has_checksums:
        return "unverified"
    if file != "journal.jsonl" or not whole:
        raise Wrong("wrong", f"another report, and no error: {difference(found, before)}")
    answered: dict[str, set[str]] = {}
    for line in data.split(b"\n")[:-1]:
        event = json.loads(line)
        if event["event"] == "answer":
            answered.setdefault(event["condition"], set()).add(event["trial"])
    for condition, account in found["accounts"].items():
        count = len(answered.get(condition, ()))
        if account["attempts"]["answered"] != count or account["ledger"]["scored"] > count:
            raise Wrong("wrong", f"{condition}: {count} trials are answered in the journal, the report says {account}")
    return "right"


def crafted(seed: Seed, data: bytes) -> str:
    """A journal of a stranger with lines that say something else under checksums that fit: no crash, no hang."""
    name, file = seed.about
    shutil.copytree(CORPUS / name, "run")
    Path("run", file).write_bytes(data)
    code, _ = run("report", "run", "--to", "json", names=["run"])
    run("report", "run", "--to", "html", names=["run"])
    return "error" if code else "unverified"


@cache
def indexed_run() -> tuple[Path, str, bytes]:
    """A run, and its index in the cache: the file's name and content."""
    from karat.index.stored import read_index
    from karat.journal import RunFolder

    folder = Path(tempfile.mkdtemp(prefix="karat-fuzz-index-"))
    shutil.copytree(CORPUS / "budget-spent", folder / "run")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    (folder / "cache").mkdir(mode=0o700)
    for _ in range(100):  # files that have just changed are not cached
        read_index(RunFolder.open(folder / "run"), at_least=1)
        files = list((folder / "cache" / "karat").glob("*.index"))
        if files:
            return folder, files[0].name, files[0].read_bytes()
        time.sleep(0.2)
    return folder, "", b""


def indexes() -> Iterator[Seed]:
    _, name, data = indexed_run()
    if data:
        yield Seed("cached.index", data, name)


def index(seed: Seed, data: bytes) -> str:
    """A damaged file in the cache is not believed: the index is that of the journal."""
    from karat.index.run_index import RunIndex
    from karat.index.stored import _encoder, _stored, read_index
    from karat.journal import RunFolder

    folder, name = indexed_run()[0], seed.about
    path = folder / "cache" / "karat" / f"{os.getpid()}"
    path.write_bytes(data)
    path.chmod(0o400)
    path.rename(path.with_name(name))
    run_folder = RunFolder.open(folder / "run")
    fresh = RunIndex(run_folder)
    fresh.read()
    used = read_index(run_folder, at_least=1)
    if _encoder.encode(_stored(used)) != _encoder.encode(_stored(fresh)):
        raise Wrong("wrong", "the index is not that of the journal")
    return "right"


class Kind(NamedTuple):
    seeds: Callable[[], Iterator[Seed]]
    target: Callable[[Seed, bytes], str]
    share: int  # of 100


KINDS = {
    "experiment": Kind(experiments, experiment, 8),
    "dataset": Kind(datasets, dataset, 62),
    "conversation": Kind(conversations, conversation, 8),
    "rubric": Kind(rubrics, rubric, 12),
    "study": Kind(studies, study, 1),
    "answers": Kind(answers, answer, 2),
    "log": Kind(logs, log, 2),
    "sheet": Kind(sheets, sheet, 1),
    "run": Kind(runs, run_folder, 3),
    "crafted": Kind(lambda: runs(("journal.jsonl",)), crafted, 1),
    "index": Kind(indexes, index, 1),
}


# --- carrying out ----------------------------------------------------------------------------------------------------


def cases(total: int, kinds: Iterable[str]) -> list[Case]:
    """The cases of a campaign: every truncation of small seeds, as far as there is room, then drawn numbers."""
    chosen: list[Case] = []
    for kind in kinds:
        seeds, count = list(KINDS[kind].seeds()), math.ceil(total * KINDS[kind].share / 100)
        small = {seed.name: len(seed.data) if len(seed.data) <= SMALL else 0 for seed in seeds}
        cut = [Case(kind, seed, number) for seed in seeds for number in range(small[seed.name])]
        chosen += cut if len(cut) <= count // 2 else random.Random(kind).sample(cut, count // 2)
        each = math.ceil((count - min(len(cut), count // 2)) / max(1, len(seeds)))
        chosen += [Case(kind, seed, small[seed.name] + number) for seed in seeds for number in range(each)]
    random.Random(0).shuffle(chosen)
    return chosen


def bytes_of(case: Case) -> tuple[str, bytes]:
    if case.kind == "crafted":
        return "resealed", resealed(case.seed.data, random.Random(case.id))
    return mutated(f"{case.kind}:{case.seed.name}", case.seed.data, case.number)


def carry_out(case: Case, *, whole: bool = False) -> tuple[str, str]:
    """The outcome, and what there is to say of it. `whole`: of the seed as it is."""
    what, data = ("whole", case.seed.data) if whole else bytes_of(case)
    with tempfile.TemporaryDirectory(prefix="karat-fuzz-", ignore_cleanup_errors=True) as folder, chdir(folder):
        try:
            return KINDS[case.kind].target(case.seed, data), what
        except Wrong as wrong:
            return wrong.args[0], f"{what}: {wrong.args[1]}"
        except Exception as error:  # noqa: BLE001 -- of karat's own functions, or of the other reader
            import traceback

            where = traceback.extract_tb(error.__traceback__)[-1]
            return "fault", f"{what}: {type(error).__name__}: {str(error)[:300]} ({where.filename}:{where.lineno})"


def work(todo: Sequence[Case], log_path: Path) -> None:
    """A child's life: a line when a case starts, and one with what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with log_path.open("a", encoding="utf-8", errors="replace", buffering=1) as log_file:
        for number, case in enumerate(todo):
            log_file.write(f"S\t{number}\n")
            signal.setitimer(signal.ITIMER_PROF, LIMIT)  # the kernel ends this process, wherever it is
            start = time.process_time()
            outcome, detail = carry_out(case)
            used = time.process_time() - start
            signal.setitimer(signal.ITIMER_PROF, 0)
            shown = json.dumps(detail)
            log_file.write(f"E\t{number}\t{outcome}\t{used:.3f}\t{shown}\n")


class Tally:
    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.slowest: dict[str, tuple[float, str]] = {}
        self.findings: list[dict[str, str]] = []

    def add(self, case: Case, outcome: str, used: float, detail: str) -> None:
        self.outcomes[case.kind][outcome] += 1
        self.slowest[case.kind] = max(self.slowest.get(case.kind, (0.0, "")), (used, case.id))
        if outcome not in GOOD:
            self.findings.append({"case": case.id, "outcome": outcome, "detail": detail})
            print(f"{outcome}: {case.id}: {detail[:600]}", flush=True)


GOOD = ("error", "right", "unverified")


def campaign(todo: list[Case], workers: int, tally: Tally) -> None:
    """Carries out the cases in forked processes, each anew after one of them has died."""
    with tempfile.TemporaryDirectory(prefix="karat-fuzz-log-") as folder:
        queues = [todo[number::workers] for number in range(workers)]
        logs = [Path(folder, str(number)) for number in range(workers)]
        first = [0] * workers
        children: dict[int, int] = {}

        def start(worker: int) -> None:
            logs[worker].write_text("")
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    work(queues[worker][first[worker] :], logs[worker])
                    code = 0
                finally:
                    os._exit(code)
            children[pid] = worker

        for worker in range(workers):
            start(worker)
        while children:
            for pid in list(children):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    worker = children.pop(pid)
                    first[worker] += _take(queues[worker][first[worker] :], logs[worker], status, tally)
                    if first[worker] < len(queues[worker]):
                        start(worker)
                elif time.time() - logs[children[pid]].stat().st_mtime > WAIT:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _take(queue: Sequence[Case], log_path: Path, status: int, tally: Tally) -> int:
    """Counts what a worker wrote down, and how many cases that were."""
    begun = ended = 0
    for line in log_path.read_text(encoding="utf-8").splitlines():
        event, number, *rest = line.split("\t")
        if event == "S":
            begun = int(number) + 1
        else:
            ended = int(number) + 1
            tally.add(queue[int(number)], rest[0], float(rest[1]), json.loads(rest[2]))
    if begun > ended:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        names = {signal.SIGPROF: "hang", signal.SIGKILL: "waits"}
        tally.add(queue[ended], names.get(number, "died"), float(LIMIT), f"signal {number}, status {status}")
    return begun


def show(tally: Tally) -> None:
    columns = [*GOOD, *sorted({outcome for counts in tally.outcomes.values() for outcome in counts} - {*GOOD})]
    print(f"{'kind':14}{'cases':>9}" + "".join(f"{name:>12}" for name in columns) + "   slowest, s of processor time")
    total = Counter[str]()
    for kind, counts in tally.outcomes.items():
        if counts:
            total += counts
            used, case = tally.slowest[kind]
            print(f"{kind:14}{counts.total():>9,}" + "".join(f"{counts[name]:>12,}" for name in columns), end="")
            print(f"   {used:.2f} {case}")
    print(f"{'all':14}{total.total():>9,}" + "".join(f"{total[name]:>12,}" for name in columns))


def main() -> None:
    """Prints a table; exits with 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", metavar="KIND:SEED#NUMBER", help="one case, in this process")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --only: write the mutated file there")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="karat-fuzz-cache-")
    if chosen.only:
        kind, _, rest = chosen.only.partition(":")
        name, _, number = rest.rpartition("#")
        case = next(Case(kind, seed, int(number)) for seed in KINDS[kind].seeds() if seed.name == name)
        if chosen.keep:
            chosen.keep.write_bytes(bytes_of(case)[1])
        print(*carry_out(case))
        return
    todo = cases(chosen.cases, chosen.kind or KINDS)
    begun, tally = time.monotonic(), Tally()
    for case in {(case.kind, case.seed.name): case for case in todo}.values():  # also loads everything before the forks
        outcome, detail = carry_out(case, whole=True)
        if outcome not in ("right", "unverified"):
            sys.exit(f"{case.kind}:{case.seed.name} is no seed: {outcome}: {detail}")
    for name in RUNS:
        report_of(name)
    report_of("framing-designs")
    campaign(todo, chosen.workers, tally)
    show(tally)
    print(f"{len(tally.findings)} findings in {len(todo):,} mutations, {time.monotonic() - begun:.0f} s")
    if chosen.json:
        outcomes = {kind: dict(counts) for kind, counts in tally.outcomes.items() if counts}
        slowest = {kind: {"seconds": used, "case": case} for kind, (used, case) in tally.slowest.items()}
        text = json.dumps({"cases": len(todo), "outcomes": outcomes, "slowest": slowest, "findings": tally.findings})
        chosen.json.write_text(text + "\n", encoding="utf-8")
    if tally.findings:
        sys.exit(f"{len(tally.findings)} findings")


if __name__ == "__main__":
    main()
