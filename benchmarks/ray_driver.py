"""What a trial costs the driver of a run with `executor: ray`, by the number of trials that each worker holds.

    python benchmarks/ray_driver.py

Runs instant trials of the `replay` agent on a local cluster with two workers. The driver is the process of `karat run`,
the only one that writes the journal, so it limits a large cluster in the end. The processor time of a run of few trials
is subtracted from its own, all threads included, so that starting karat and Ray does not count. *Saturated at*: how
many trials per second would keep one core busy with the driver alone. *Trials/s* is what this machine achieved, with
driver, Ray and workers sharing its cores.

The first row is a run without Ray, whose process also asks the agent. Needs Ray in `.venv/ray` (`scripts/setup dev`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from importlib.metadata import distributions
from pathlib import Path

import _results as results  # beside this file
import engine
from limits import Limits

RAY = Path(__file__).parents[1] / ".venv" / "ray"
SIZES = (1, 5, 20, 50, 100)
FEW, MANY, REPETITIONS = 10, 1000, 5  # samples; two conditions
WORKERS = 2
COLUMNS = (
    "trials a worker holds",
    "driver, µs/trial",
    "its event loop, µs/trial",
    "saturated at, trials/s",
    "trials/s",
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="trials that a worker holds")
    results.add_option(parser)
    options = parser.parse_args()
    if not (RAY / "ray").is_dir():
        print("no Ray in .venv/ray: nothing is measured")
        return
    limits = Limits()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        for samples in (FEW, MANY):
            engine.write_data(folder, samples, REPETITIONS)
        measured = rounds(folder, [None, *options.sizes], options.runs)
    print("".join(f"{name:>25}" for name in COLUMNS))
    rows: list[list[str | float | None]] = []
    for size, (driver, loop, rate) in measured.items():
        rows.append(["without Ray" if size is None else str(size), driver, loop, 1e6 / driver, rate])
        print(f"{rows[-1][0]:>25}" + "".join(f"{value:25,.0f}" for value in rows[-1][1:]), flush=True)
    cost = {size: driver for size, (driver, _, _) in measured.items()}
    verdicts = []
    for size, other, most in ((50, None, 1.5), (50, 1, 0.25), (100, 50, 1.5)):
        if {size, other} <= cost.keys():
            title = f"driver's cost with {size} trials a worker, to that " + (
                f"with {other}" if other else "without Ray"
            )
            verdicts.append(f"{title}: {limits.check(title, cost[size] / cost[other], '≤', most)}")
    print("\n".join(verdicts))
    results.write(
        options.json,
        {
            "title": "The driver of a run on Ray", "columns": COLUMNS, "rows": rows, "verdicts": verdicts,
            "about": f"Instant trials, {WORKERS} workers on this machine; processor time of the driver alone, "
            f"medians of {options.runs} runs of {trials(MANY):,} trials.",
            "versions": {"ray": next(dist.version for dist in distributions(path=[str(RAY)]) if dist.name == "ray")},
        },
    )  # fmt: skip
    limits.exit()


def trials(samples: int) -> int:
    return samples * 2 * REPETITIONS


def rounds(folder: Path, sizes: list[int | None], runs: int) -> dict[int | None, tuple[float, float, float]]:
    """Per size: µs per trial for the driver and for its main thread, and trials per second. Medians over rounds."""
    figures: dict[int | None, list[tuple[float, float, float]]] = {size: [] for size in sizes}
    for _ in range(runs):
        few = {remote: run(folder, FEW, WORKERS if remote else None) for remote in (False, True)}
        for size in sizes:
            start, many = few[size is not None], run(folder, MANY, size)
            costs = [1e6 * (a - b) / (trials(MANY) - trials(FEW)) for a, b in zip(many[:2], start[:2], strict=True)]
            figures[size].append((costs[0], costs[1], trials(MANY) / many[2]))
    return {
        size: (statistics.median(a), statistics.median(b), statistics.median(c))
        for size, samples in figures.items()
        for a, b, c in [tuple(zip(*samples, strict=True))]
    }


def run(folder: Path, samples: int, size: int | None) -> tuple[float, float, float]:
    """Processor seconds of the driver, of its main thread, and seconds from the first trial to the end."""
    text = engine.EXPERIMENT.format(
        samples=samples, repetitions=REPETITIONS, latency=0.0, concurrent=WORKERS, judge="scorers: []"
    )
    ray = f"{{num_workers: {WORKERS}, num_cpus: 0.5, batch_size: {(size or 1) - 1}}}"
    text = text.replace("execution: {", f"execution: {{ray: {ray}, ")
    (folder / "experiment.yaml").write_text(text)
    command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--results", "results"]
    process = subprocess.Popen(
        command + (["--executor", "ray"] if size else []), cwd=folder, env={**os.environ, "PYTHONPATH": str(RAY)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but its figures can still be read
    used = tuple(processor_seconds(f"/proc/{process.pid}{thread}/stat") for thread in ("", f"/task/{process.pid}"))
    assert process.wait() == 0, f"exit code {process.returncode}"
    journal = next((folder / "results").glob("*/journal.jsonl"))
    lines = journal.read_bytes().splitlines()
    shutil.rmtree(folder / "results")
    started = min(event["started"] for event in map(json.loads, lines) if event["event"] == "answer")
    end = json.loads(lines[-1])["at"]
    return used[0], used[1], (datetime.fromisoformat(end) - datetime.fromisoformat(started)).total_seconds()


def processor_seconds(stat: str) -> float:
    """Processor seconds of a process or a thread, without its children (Linux)."""
    user, system = Path(stat).read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
