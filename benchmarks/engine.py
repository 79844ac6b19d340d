"""How fast karat itself is: whole processes, the `replay` agent, durable journals.

    python benchmarks/engine.py

Each figure is the median of `--runs` runs of `karat run`, including interpreter start, summary
and report, in trials per reference second (`limits.py`); "own clock": the run alone, by its own
clock, in plain seconds. With latency, the figure is the share of the ideal, which is the same on
every machine. The limits are below each row.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import _results as results  # beside this file
from limits import Limits

EXPERIMENT = """name: bench
dataset: {{path: questions-{samples}.jsonl, id_key: id}}
agent: {{type: replay, path: answers-{samples}-{repetitions}.jsonl, latency_seconds: {latency}}}
{judge}
conditions:
  baseline: {{system_prompt: Answer from your own knowledge.}}
  with-docs: {{system_prompt: Use the docs.}}
execution: {{num_repetitions: {repetitions}, max_concurrent: {concurrent}}}
"""


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        for samples, repetitions in ((1000, 5), (1000, 50), (10_000, 5)):
            write_data(folder, samples, repetitions)
        print(f"{'':50} {'trials/s':>9} {'own clock':>9} {'peak MB':>8} {'B/trial':>8}")
        limits = Limits()
        few = Case("10,000 trials, concurrency 5", per_second=5_000, megabytes=100, bytes=600, concurrent=5)
        measure(limits, folder, options.runs, few)
        more = Case("10,000 trials, concurrency 50", per_second=6_000)
        most = measure(limits, folder, options.runs, more) * 1.1
        large = Case("100,000 trials (1,000 samples × 2 × 50)", megabytes=most, repetitions=50)
        measure(limits, folder, 1, large)
        large = Case("100,000 trials (10,000 samples × 2 × 5)", megabytes=most, samples=10_000)
        measure(limits, folder, 1, large)
        measure(limits, folder, options.runs, Case("10,000 trials, overlap", per_second=2_000, judge="overlap"))
        slow = Case("10,000 trials, 100 ms latency, concurrency 100", concurrent=100, latency=0.1, ideal=0.97)
        measure(limits, folder, options.runs, slow)
        about = f"Whole processes with the `replay` agent and durable journals; medians of {options.runs}."
        results.write(options.json, limits.section("karat itself", about))
        limits.exit()


@dataclass(frozen=True)
class Case:
    """One row of the table: what is run, and its limits."""

    title: str
    per_second: float | None = None  # trials per reference second, at least
    megabytes: float | None = None  # peak, at most
    bytes: float | None = None  # on disk a trial, at most
    ideal: float | None = None  # share of what the latency alone would allow, at least
    samples: int = 1000
    repetitions: int = 5
    concurrent: int = 50
    judge: str | None = None
    latency: float = 0.0  # seconds


def write_data(folder: Path, samples: int, repetitions: int) -> None:
    """Writes questions, and an answer for each trial."""
    with (folder / f"questions-{samples}.jsonl").open("w") as file:
        for number in range(samples):
            question = f"What does option {number} do, and when is it used?"
            golden = f"Option {number} sets the limit to {7 * number} items; it is used in batch mode."
            file.write(json.dumps({"id": str(number), "question": question, "answer": golden}) + "\n")
    with (folder / f"answers-{samples}-{repetitions}.jsonl").open("w") as file:
        for number in range(samples):
            for repetition in range(repetitions):
                for condition in ("baseline", "with-docs"):
                    limit = 7 * number + repetition
                    answer = f"Option {number} sets the limit to {limit} items. Use it in batch mode ({condition})."
                    row = {"id": str(number), "condition": condition, "repetition": repetition, "answer": answer}
                    file.write(json.dumps(row) + "\n")


def measure(limits: Limits, folder: Path, runs: int, case: Case) -> float:
    """Prints one row; returns the peak memory in MB."""
    text = EXPERIMENT.format(
        samples=case.samples,
        repetitions=case.repetitions,
        concurrent=case.concurrent,
        judge=f"judge: {{type: {case.judge}}}" if case.judge else "scorers: []",
        latency=case.latency,
    )
    (folder / "experiment.yaml").write_text(text)
    trials = 2 * case.samples * case.repetitions
    rates, scaled, own, peaks, sizes = [], [], [], [], []
    for _ in range(runs):
        place = folder / "results"
        seconds, peak = timed(folder, place)
        journal = next(place.glob("*/journal.jsonl"))
        assert journal.read_bytes().count(b'{"event":"answer"') == trials
        size = sum(file.stat().st_size for file in journal.parent.rglob("*") if file.is_file())
        rates.append(trials / seconds)
        scaled.append(trials / limits.scaled(seconds))
        own.append(trials / json.loads(journal.read_bytes().rstrip().rpartition(b"\n")[2])["seconds"])
        peaks.append(peak)
        sizes.append(size / trials)
        shutil.rmtree(place)
    rate, per_second, run, peak, size = map(statistics.median, (rates, scaled, own, peaks, sizes))
    shown = rate if case.latency else per_second
    print(f"{case.title:50} {shown:9,.0f} {run:9,.0f} {peak:8.1f} {size:8.0f}", flush=True)
    ideal = rate * case.latency / case.concurrent
    limits.note(f"{case.title}, own clock", run, "/s")
    wanted = [
        ("trials/s", per_second, "≥", case.per_second, "/s"),
        ("memory", peak, "≤", case.megabytes, "MB"),
        ("size", size, "≤", case.bytes, "B"),
        ("share of the ideal, whole process", ideal, "≥", case.ideal, ""),
    ]
    for name, value, comparison, limit, unit in wanted:
        if limit is None and value:
            limits.note(f"{case.title}, {name}", value, unit)
        elif limit is not None:
            print(f"  {name}: {limits.check(f'{case.title}, {name}', value, comparison, limit, unit)}", flush=True)
    return peak


def timed(folder: Path, place: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of a whole `karat run`."""
    command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--results", str(place)]
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.execv(sys.executable, command)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - started
    assert os.waitstatus_to_exitcode(status) == 0, f"exit code {os.waitstatus_to_exitcode(status)}"
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_maxrss * unit / 2**20


if __name__ == "__main__":
    main()
