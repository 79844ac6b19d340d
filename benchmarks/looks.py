"""What looking at runs costs: every pair of conditions, a second report, one sample's scores, the first rows of a file.

    python benchmarks/looks.py

Processor seconds of whole commands, interpreter start included, medians of five. Limits are relative to work on the
same machine: the pairs to a third as many conditions, a second look to the first, a part to the whole.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _results as results  # beside this file
from limits import Limits
from summary import COMMAND, write

ROUNDS = 5
ROWS = 200_000
EXPERIMENT = """
dataset: {path: questions.jsonl}
agent: {type: floor}
scorers: [equals]
conditions: {plain: {}}
"""


def main() -> None:
    """Prints the table."""
    options, limits = results.parser(__doc__).parse_args(), Limits()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        pairs(limits, folder)
        second_looks(limits, folder)
        first_rows(limits, folder)
    about = f"Processor seconds of whole commands, medians of {ROUNDS}; ratios to the larger piece of work."
    results.write(options.json, limits.section("Looking at runs", about))
    limits.exit()


def pairs(limits: Limits, folder: Path) -> None:
    """A report of all pairs: nine times as many must not take much more than nine times as long."""
    seconds = []
    for count in (50, 150):
        run = folder / f"{count} conditions"
        write(run, 10, scored=True, conditions=[f"c{number}" for number in range(count)], repetitions=1)
        seconds.append(cost(limits, f"{count} conditions, every pair", "report", run, "--pairs", "all", "--full"))
    compare(limits, "nine times as many pairs", seconds[1] / seconds[0], 12)


def second_looks(limits: Limits, folder: Path) -> None:
    """What a run of 100,000 trials costs once its index and its summary are in the cache."""
    run = folder / "large"
    write(run, 10_000, scored=True)
    first = cost(limits, "100,000 trials, first report", "report", run, rounds=1)
    second = cost(limits, "second report", "report", run)
    compare(limits, "second report to the first", second / first, 0.4)
    whole = cost(limits, "query of all scores", "query", run, "SELECT count(*) FROM scores")
    part = cost(limits, "query of one sample's", "query", run, "SELECT count(*) FROM scores WHERE sample = '7'")
    compare(limits, "one sample to all", part / whole, 0.5)


def first_rows(limits: Limits, folder: Path) -> None:
    """Ten questions of a large file."""
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for number in range(ROWS):
            file.write(json.dumps({"question": f"What is {number} + 1?", "answer": str(number + 1)}) + "\n")
    (folder / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
    arguments = (folder / "experiment.yaml", "-q", "--results", folder / "results")
    part = cost(limits, f"10 of {ROWS:,} questions", "run", *arguments, "--limit", "10")
    whole = cost(limits, f"check of {ROWS:,} questions", "check", folder / "experiment.yaml", rounds=1)
    compare(limits, "a run of ten to a check of all", part / whole, 0.5)


def cost(limits: Limits, title: str, *arguments: str | Path, rounds: int = ROUNDS) -> float:
    """Prints and returns a command's processor seconds."""
    seconds = []
    for _ in range(rounds):
        process = subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True
        )
        seconds.append(json.loads(process.stdout)["seconds"])
    median = float(statistics.median(seconds))
    limits.note(title, median, "s")
    print(f"{title:52} {median:8.2f} s", flush=True)
    return median


def compare(limits: Limits, title: str, ratio: float, most: float) -> None:
    """Prints a ratio with its limit."""
    print(f"{title:52} {ratio:8.2f} x {limits.check(title, ratio, '≤', most)}", flush=True)


if __name__ == "__main__":
    main()
