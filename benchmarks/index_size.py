"""How much memory and time the index of a very large run takes: to build, reopen, query and summarize.

    python benchmarks/index_size.py

The journals are generated, with four metrics per score line; each command runs in a process of its own, with its
children. Peak: the most memory that one of its processes held. The last journal has 10,000,000 scores: each command on
it must stay below 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import _results as results  # beside this file

from karat.journal import Codec, DatasetInfo, End, Head, PlanInfo, RunInfo, ScorerInfo
from karat.records import Answer, Metric, Reply, Sample, Score, Turn

METRICS = ("completeness", "correctness", "clarity", "helpfulness")
JUDGE = ScorerInfo(
    name="judge",
    type="overlap",
    scoring="0f" * 16,
    metrics=tuple(Metric(name=name, low=1, high=5, kind="ordinal") for name in METRICS),
)
CONDITIONS = ("baseline", "with-docs")
REPETITIONS = 5
MOST_MEGABYTES = 1000
COLUMNS = ("scores", "step", "seconds", "processor seconds", "peak MB")
INDEX = """
import sys
from karat.index import read_index
from karat.journal import RunFolder
index = read_index(RunFolder.open(sys.argv[1]))
(rows,) = index.scores.values()
assert len(rows.cells) == sum(index.answered) == index.planned
"""
QUERY = "SELECT condition, metric, avg(value), count(value) FROM scores GROUP BY ALL ORDER BY ALL"
SORT = "SELECT sample, avg(value) AS mean FROM scores GROUP BY sample ORDER BY mean, sample LIMIT 5"
STEPS = {
    "index, first": [sys.executable, "-c", INDEX],
    "index, kept": [sys.executable, "-c", INDEX],
    "report, first": [sys.executable, "-m", "karat", "report"],
    "report, kept": [sys.executable, "-m", "karat", "report"],
    "query: means": [sys.executable, "-m", "karat", "query", QUERY],
    "query: worst samples": [sys.executable, "-m", "karat", "query", SORT],
}
RUN = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, peak]))
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scores", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    results.add_option(parser)
    options = parser.parse_args()
    rows: list[list[object]] = []
    worst, largest = 0.0, max(options.scores)
    print(f"{'scores':>12} {'step':24} {'s':>8} {'CPU s':>8} {'peak MB':>8}")
    for scores in options.scores:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
            folder = Path(place)
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            write(folder / "run", samples=scores // (len(METRICS) * len(CONDITIONS) * REPETITIONS))
            time.sleep(3)  # recently changed files are not cached
            for name, command in STEPS.items():
                at = 4 if "query" in command else len(command)
                seconds, processor, peak = measure([*command[:at], str(folder / "run"), *command[at:]])
                print(f"{scores:12,} {name:24} {seconds:8.1f} {processor:8.1f} {peak:8.0f}", flush=True)
                rows.append([f"{scores:,}", name, round(seconds, 1), round(processor, 1), round(peak)])
                if scores == largest:
                    worst = max(worst, peak)
            size = (folder / "run" / "journal.jsonl").stat().st_size / 1e6
            kept = sum(file.stat().st_size for file in (folder / "cache").rglob("*") if file.is_file()) / 1e6
            print(f"{'':12} journal {size:,.0f} MB, kept in the cache {kept:,.0f} MB", flush=True)
    note = f"worst peak at {largest:,} scores: {worst:,.0f} MB; at most {MOST_MEGABYTES} MB"
    print(note)
    about = f"A journal of {len(METRICS)} metrics a score line; each step is a process of its own."
    versions = {name: version(name) for name in ("duckdb", "numpy", "msgspec")}
    section = {"title": "The index of very large runs", "about": about, "columns": COLUMNS, "rows": rows}
    results.write(options.json, {**section, "verdicts": [note], "versions": versions})
    sys.exit(worst > MOST_MEGABYTES)


def measure(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak megabytes of a command with its children."""
    process = subprocess.run([sys.executable, "-c", RUN, *command], stdout=subprocess.PIPE, text=True, check=True)
    seconds, processor, peak = json.loads(process.stdout)
    return seconds, processor, peak


def write(folder: Path, samples: int) -> None:
    """Writes a finished run with this many samples."""
    folder.mkdir()
    line, rng = Codec().line, random.Random(1)
    info = RunInfo(
        format=1, run="1234abcd", name="bench", version="1", created="2026-11-20T12:00:00Z", kind="golden",
        plan=PlanInfo(samples=samples, conditions=CONDITIONS, repetitions=REPETITIONS),
        dataset=DatasetInfo(kind="golden", path="questions.jsonl", sha256="00" * 32, samples=samples),
        experiment={}, conditions=dict.fromkeys(CONDITIONS, "00"), prompts={}, agents={}, agent_type="replay",
        scorers=(JUDGE,),
    )  # fmt: skip
    (folder / "run.json").write_bytes(line(info))
    reply = Reply(text="Words of an answer.", dollars=0.0, milliseconds=800.0)
    with (folder / "samples.jsonl").open("wb") as file:
        for row in range(samples):
            file.write(line(Sample(id=str(row), position=row, digest=f"{row:032x}", turns=(Turn(question="?"),))))
    with (folder / "journal.jsonl").open("wb") as file:
        file.write(line(Head(format=1, run=info.run)))
        for row in range(samples):
            for repetition in range(REPETITIONS):
                for condition in CONDITIONS:
                    trial = rng.randbytes(12).hex()
                    answer = Answer(
                        trial=trial, sample=str(row), condition=condition, repetition=repetition, replies=(reply,),
                        started="2026-11-20T12:00:00Z", seconds=0.8,
                    )  # fmt: skip
                    values: dict[str, float | bool | None] = {name: rng.randint(1, 5) for name in METRICS}
                    score = Score(trial=trial, scorer="judge", scoring=JUDGE.scoring, values=values, offline=True)
                    file.write(line(answer) + line(score))
        file.write(line(End(at="2026-11-20T13:00:00Z", reason="done", seconds=3600.0)))


if __name__ == "__main__":
    main()
