"""Mutates files of every kind that karat reads: each must give a clear error or the right result.

    python benchmarks/fuzz_files.py                            20,000 mutations
    python benchmarks/fuzz_files.py --cases 100000 --log LOG --json benchmarks/measured/fuzz_files.json
    python benchmarks/fuzz_files.py --only 'rubric:answers.yaml#17' --keep FOLDER    one of them again

Seeds are the files of examples/, tests/corpus and tests/data. A mutation depends only on its seed and a number
(mutations.py). Each is read by the command for such files, in a forked process that the kernel ends after 2 seconds of
processor time. Findings are: exit code 70 or an undocumented one, a traceback, an error that does not name the file, a
hang, a process that dies, and a wrong result that is accepted.

`--log LOG` records a line per case as it ends. Running the same command again counts the recorded cases and runs only
the others; merge logs of several machines with `cat`. The figures of `--json` are written every half minute.

Readers that share no code with karat's decide what is right: Python's `json` without duplicate keys, a reader
of CSV and one of YAML nodes (fuzz_common.py); for run folders, counts and means computed again from the remaining lines
(fuzz_runs.py). Without a second reader (Parquet, Excel, most of a study), an accepted
file counts as "unverified". So do logs of other tools, whose scores are only looked up among the numbers of the files;
and run folders of the first format, whose lines have no checksum, and lines with a new matching checksum, where no
reader can see a changed number.
"""

from __future__ import annotations

import argparse
import atexit
import gzip
import io
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # before NumPy is loaded: forks are many

import _results as results
import yaml
from fuzz_common import (  # beside this file
    EXAMPLES,
    QUESTIONS,
    ROWS,
    RUBRICS,
    STUDIES,
    Seed,
    Wrong,
    differ,
    independent,
    rows_of,
    run,
    strict_yaml,
    table,
    yaml_of_both,
)
from fuzz_results import answer, answers, log, logs, sheet, sheets
from fuzz_runs import RUNS, crafted, index, indexes, report_of, run_folder, runs
from mutations import SMALL, mutated, resealed

LIMIT = 2  # seconds of processor time for one case
WAIT = 90  # seconds without progress, after which a case counts as hanging
MEMORY = 4 << 30  # bytes of address space


class Case(NamedTuple):
    kind: str
    seed: Seed
    number: int

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.seed.name}#{self.number}"


# --- datasets --------------------------------------------------------------------------------------------------------


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
    return without_times(file.getvalue())


def without_times(packed: bytes) -> bytes:
    """A workbook without the times at which it and its members were written: a case is the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = re.sub(rb"\d{4}-\d\d-\d\dT[\d:]{8}Z", b"2026-01-01T00:00:00Z", old.read(name))
            new.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def parquet(columns: Sequence[str]) -> bytes:
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        Path(folder, "rows.csv").write_bytes(table(",", ROWS, columns))
        connection.execute(f"COPY (SELECT * FROM read_csv('{folder}/rows.csv')) TO '{folder}/rows.parquet'")
        return Path(folder, "rows.parquet").read_bytes()


def dataset(seed: Seed, data: bytes) -> str:
    """`karat check --lint`; each sample must equal another reader's."""
    from karat.documents.rows import read_rows
    from karat.errors import BadDataset
    from karat.kinds.golden import Golden

    path = Path(seed.name)
    path.write_bytes(data)
    code, _ = run("check", "--lint", seed.name, "--kind", "golden", "--set", "id_key=id", "--json", names=[seed.name])
    try:
        rows = read_rows(path)
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
    if loaded.understood is None:
        return "unverified"
    columns = {part.role: part.columns[0] for part in loaded.understood.parts}
    if columns.keys() != {"id", "question", "golden"}:
        return "unverified"
    wanted = [tuple(row[columns[role]] for role in ("id", "question", "golden")) for row in theirs]
    if not all(isinstance(text, str) and not text.startswith("[") for row in wanted for text in row):
        return "unverified"  # a number, a list: what karat makes of them has tests of its own
    differ("samples", [list(row) for row in ours], [list(row) for row in wanted])
    return "right"


def conversations() -> Iterator[Seed]:
    document = json.loads((EXAMPLES / "convfinqa" / "conversations.json").read_bytes())
    yield Seed("conversations.json", json.dumps({"dev": document["dev"][:3]}).encode())
    yield Seed("conversations.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in document["dev"][4:6]))


def conversation(seed: Seed, data: bytes) -> str:
    """`karat check --lint`; each question and golden answer must equal another reader's."""
    from karat.errors import BadDataset
    from karat_conversations.kinds.conversation import Conversation

    path = Path(seed.name)
    path.write_bytes(data)
    code, _ = run("check", "--lint", seed.name, "--kind", "conversation", "--json", names=[seed.name])
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
    words = {True: "yes", False: "no"}
    texts = [[[question, words[v] if isinstance(v, bool) else str(v)] for question, v in turns] for turns in wanted]
    differ("turns", ours, texts)
    return "right"


# --- experiments, rubrics, studies -----------------------------------------------------------------------------------


def experiments() -> Iterator[Seed]:
    for path in sorted(EXAMPLES.glob("*/*.yaml")):
        if path.parent.name not in {"ray", "shards"}:  # manifests of clusters
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
    """`karat check`: the tree, and its display, must equal another reader's."""
    from karat.documents.nodes import plain
    from karat.documents.reader import parse

    for path in seed.about.iterdir():
        Path(path.name).symlink_to(path)
    Path("mutated.yaml").write_bytes(data)
    code, out = run(
        "check", "mutated.yaml", "--no-start", "--json", names=["mutated.yaml", "rubric: no", *os.listdir()]
    )
    document = parse(data)
    if document.faults or document.root is None:
        if code != 2:
            raise Wrong("wrong", f"check accepts a file with faults: {document.faults}")
        return "error"
    theirs = yaml_of_both(data)
    differ("tree", plain(document.root), theirs)
    if code:
        return "error"
    plan, execution = json.loads(out), theirs.get("execution") or {}
    for key, shown in SETTINGS.items():
        if execution.get(key) is not None:
            differ(key, float(plan[shown]), float(execution[key]))
    if isinstance(theirs.get("name"), str):  # for a number, its text as written
        differ("name", plan["name"], theirs["name"])
    differ("conditions", sorted(condition["name"] for condition in plan["conditions"]), sorted(theirs["conditions"]))
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


def rubric(seed: Seed, data: bytes) -> str:  # noqa: ARG001 -- like every target
    """`karat check` of an experiment with it: each level of each metric must equal another reader's."""
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
    """`karat check --lint`, which reads and checks a study without a bootstrap; for every 50th also `karat check`."""
    from karat.documents.nodes import plain
    from karat.documents.reader import parse

    source, name = seed.about
    shutil.copytree(source, "study")
    Path("study", name).write_bytes(data)
    code, _ = run("check", "--lint", "study/study.yaml", "--kind", "study", "--json", names=["study"])
    if name == "study.yaml" and not code:
        document = parse(data)
        differ("tree", plain(document.root), yaml_of_both(data))
    return "error" if code else "unverified"


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
    """The cases of a campaign: every truncation of small seeds, as far as possible, then random numbers."""
    chosen: list[Case] = []
    for kind in kinds:
        seeds, count = list(KINDS[kind].seeds()), math.ceil(total * KINDS[kind].share / 100)
        small = {seed.name: len(seed.data) if len(seed.data) <= SMALL else 0 for seed in seeds}
        cut = [Case(kind, seed, number) for seed in seeds for number in range(small[seed.name])]
        chosen += cut if len(cut) <= count // 2 else random.Random(kind).sample(cut, count // 2)
        share = math.ceil((count - min(len(cut), count // 2)) / (sum(map(weight, seeds)) or 1))
        for seed in seeds:
            chosen += [Case(kind, seed, small[seed.name] + number) for number in range(math.ceil(share * weight(seed)))]
    random.Random(0).shuffle(chosen)
    return chosen


def weight(seed: Seed) -> float:
    """A seed's share of its kind's cases: low if it is slow and has no second reader."""
    return 0.1 if seed.name.endswith(".parquet") else 1.0


def bytes_of(case: Case) -> tuple[str, bytes]:
    if case.kind == "crafted":
        return "resealed", resealed(case.seed.data, random.Random(case.id))
    return mutated(f"{case.kind}:{case.seed.name}", case.seed.data, case.number)


def carry_out(case: Case, *, whole: bool = False) -> tuple[str, str]:
    """The outcome and its description. `whole`: for the seed unchanged."""
    mutation, data = ("whole", case.seed.data) if whole else bytes_of(case)
    with tempfile.TemporaryDirectory(prefix="karat-fuzz-", ignore_cleanup_errors=True) as folder, chdir(folder):
        try:
            return KINDS[case.kind].target(case.seed, data), mutation
        except Wrong as wrong:
            return wrong.args[0], f"{mutation}: {wrong.args[1]}"
        except Exception as error:  # noqa: BLE001 -- from karat's functions, or from the other reader
            import traceback

            where = traceback.extract_tb(error.__traceback__)[-1]
            return "fault", f"{mutation}: {type(error).__name__}: {str(error)[:300]} ({where.filename}:{where.lineno})"


def work(todo: Sequence[Case], log_path: Path) -> None:
    """A child process: writes a line when a case starts, and one with its outcome."""
    parent = os.getppid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with log_path.open("a", encoding="utf-8", errors="replace", buffering=1) as log_file:
        for number, case in enumerate(todo):
            if os.getppid() != parent:  # killed
                return
            log_file.write(f"S\t{number}\n")
            signal.setitimer(signal.ITIMER_PROF, LIMIT)  # the kernel ends this process, whatever it is doing
            start = time.process_time()
            outcome, detail = carry_out(case)
            used = time.process_time() - start
            signal.setitimer(signal.ITIMER_PROF, 0)
            log_file.write(f"E\t{number}\t{outcome}\t{used:.3f}\t{json.dumps(detail)}\n")


class Tally:
    """The outcomes so far. `path`: a file with one line for each; read at the start, then appended to."""

    def __init__(self, path: Path | None) -> None:
        self.outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        self.seconds: Counter[str] = Counter()
        self.slowest: dict[str, tuple[float, str]] = {}
        self.findings: list[dict[str, str]] = []
        self.done: set[str] = set()
        self._file = None
        if path is not None:
            for line in path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else ():
                self._count(json.loads(line))
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def add(self, case: Case, outcome: str, used: float, detail: str) -> None:
        row = {"case": case.id, "outcome": outcome, "seconds": used}
        row |= {} if outcome in GOOD else {"detail": detail}
        if self._file is not None:
            self._file.write(json.dumps(row) + "\n")
        self._count(row)

    def _count(self, row: dict[str, Any]) -> None:
        if row["case"] in self.done:
            return
        kind, outcome, used = row["case"].partition(":")[0], row["outcome"], row["seconds"]
        self.done.add(row["case"])
        self.outcomes[kind][outcome] += 1
        self.seconds[kind] += used
        self.slowest[kind] = max(self.slowest.get(kind, (0.0, "")), (used, row["case"]))
        if outcome not in GOOD:
            self.findings.append({"case": row["case"], "outcome": outcome, "detail": row["detail"]})
            print(f"{outcome}: {row['case']}: {row['detail'][:600]}", flush=True)

    def bad(self) -> list[str]:
        """The findings, those that can occur in every kind first."""
        return [*BAD, *sorted({finding["outcome"] for finding in self.findings} - {*BAD})]


GOOD = ("error", "right", "unverified")
BAD = {
    "fault": "traceback or exit 70",
    "wrong": "wrong and accepted",
    "hang": f"> {LIMIT} s",
    "waits": f"waits > {WAIT} s",
    "died": "process died",
    "unnamed": "file not named",
}


class Worker:
    """A forked process that runs a queue of cases; replaced if it dies."""

    def __init__(self, queue: Sequence[Case], log_path: Path) -> None:
        self._queue, self._log_path = queue, log_path
        self._first = 0  # of the queue, in this process
        self.start()

    def start(self) -> None:
        self._log_path.write_text("")
        self._read, self._begun, self._ended = 0, 0, 0
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                work(self._queue[self._first :], self._log_path)
                code = 0
            finally:
                os._exit(code)

    def poll(self, tally: Tally) -> bool:
        """Counts cases that have ended since the last call; returns whether more will come."""
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if not ended and time.time() - self._log_path.stat().st_mtime > WAIT:
            os.kill(self.pid, signal.SIGKILL)
        self._take(tally)
        if not ended:
            return True
        if self._begun > self._ended:
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            names = {signal.SIGPROF: "hang", signal.SIGKILL: "waits"}
            case = self._queue[self._first + self._ended]
            tally.add(case, names.get(number, "died"), float(LIMIT), f"signal {number}, status {status}")
        self._first += self._begun
        if self._first < len(self._queue) and self._begun:
            self.start()
            return True
        return False

    def _take(self, tally: Tally) -> None:
        with self._log_path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        for line in text[: text.rfind(b"\n") + 1].splitlines():
            event, number, *columns = line.decode().split("\t")
            if event == "S":
                self._begun = int(number) + 1
            else:
                self._ended = int(number) + 1
                tally.add(self._queue[self._first + int(number)], columns[0], float(columns[1]), json.loads(columns[2]))
        self._read += text.rfind(b"\n") + 1


def campaign(todo: list[Case], workers: int, tally: Tally, written: Callable[[], None]) -> None:
    """Runs the cases in forked processes. `written`: called every half minute."""
    with tempfile.TemporaryDirectory(prefix="karat-fuzz-log-") as folder:
        queues = [todo[number::workers] for number in range(min(workers, len(todo)))]
        going = [Worker(queue, Path(folder, str(number))) for number, queue in enumerate(queues)]
        due = time.monotonic() + 30
        while going:
            going = [worker for worker in going if worker.poll(tally)]
            if time.monotonic() > due:
                written()
                due = time.monotonic() + 30
            time.sleep(0.05)


def section(tally: Tally, planned: int) -> dict[str, Any]:
    """The table, for _results.py."""
    bad = tally.bad()
    rows: list[list[Any]] = []
    for kind, counts in tally.outcomes.items():
        if counts:
            used, case = tally.slowest[kind]
            row = [kind, counts.total(), *(counts[name] for name in (*GOOD, *bad)), tally.seconds[kind], used, case]
            rows.append(row)
    sums = [sum(row[place] for row in rows) for place in range(1, len(rows[0]) - 2)] if rows else []
    slowest = max(tally.slowest.values(), default=(0.0, "–"))
    cases, findings = len(tally.done), len(tally.findings)
    verdict = f"{cases:,} mutations, {planned:,} wanted; {findings} findings"
    return {
        "title": "Mutated files",
        "about": "Each mutated file goes through the command that reads it. Right: as a second reader has it. "
        "Unverified: accepted, and there is no second reader.",
        "columns": ["file", "mutations", *GOOD, *(BAD.get(name, name) for name in bad), "s", "slowest, s", "case"],
        "rows": [*rows, ["all", *sums, *slowest]],
        "verdicts": [f"no finding: {'reached' if not findings and cases >= planned else 'MISSED'} ({verdict})"],
        "notes": [f"{entry['outcome']}: {entry['case']}: {entry['detail'][:300]}" for entry in tally.findings[:50]],
    }


def show(report: dict[str, Any]) -> None:
    for row in [report["columns"], *report["rows"]]:
        cells = [f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
                 for cell in row]  # fmt: skip
        print(f"{cells[0]:14}" + "".join(f"{cell:>{max(10, len(name) + 2)}}" for name, cell in
              zip(report["columns"][1:], cells[1:], strict=True)))  # fmt: skip
    print(*report["verdicts"], sep="\n")


def once_again(name: str, keep: Path | None) -> None:
    """Runs one case in this process."""
    kind, _, seeded = name.partition(":")
    seed_name, _, number = seeded.rpartition("#")
    case = next(Case(kind, seed, int(number)) for seed in KINDS[kind].seeds() if seed.name == seed_name)
    if keep:
        keep.write_bytes(bytes_of(case)[1])
    print(*carry_out(case))


def main() -> None:
    """Prints a table; exits with 1 if there are findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", metavar="KIND:SEED#NUMBER", help="one case, in this process")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --only: write the mutated file there")
    parser.add_argument("--log", type=Path, metavar="FILE", help="a line a case; cases that are there are not repeated")
    results.add_option(parser)
    chosen = parser.parse_args()
    tempfile.tempdir = tempfile.mkdtemp(prefix="karat-fuzz-")
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="cache-")
    if chosen.only:
        once_again(chosen.only, chosen.keep)
        return
    todo = cases(chosen.cases, chosen.kind or KINDS)
    wanted, tally = min(chosen.cases, len(todo)), Tally(chosen.log)
    for case in {(case.kind, case.seed.name): case for case in todo}.values():  # also loads everything before the forks
        outcome, detail = carry_out(case, whole=True)
        if outcome not in ("right", "unverified"):
            sys.exit(f"{case.kind}:{case.seed.name} is no seed: {outcome}: {detail}")
    for name in (*RUNS, "framing-designs"):
        report_of(name)
    left = [case for case in todo if case.id not in tally.done]
    campaign(left, chosen.workers, tally, lambda: results.write(chosen.json, section(tally, wanted)))
    report = section(tally, wanted)
    show(report)
    results.write(chosen.json, report)
    if tally.findings or len(tally.done) < wanted:
        sys.exit(report["verdicts"][0])


if __name__ == "__main__":
    main()
