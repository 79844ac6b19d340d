"""How long tables of existing answers take: scored by a rule, and imported.

    python benchmarks/answer_files.py

Each command runs in a process of its own, on a generated CSV file with an id, a question, its golden answer and an
answer a row. Reference seconds are processor seconds on the machine of `limits.py`; peak: the most memory it held.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _results as results  # beside this file
from limits import Limits

STEPS = {  # rows, and the most reference seconds and megabytes
    "score": (100_000, 4, None, ["score", "FILE", "--scorer", "equals", "--results", "scored"]),
    "import csv": (1_000_000, 15, 250, ["import", "csv", "FILE", "--out", "imported"]),
}
RUN = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)]))
"""


def main() -> None:
    """The command line."""
    options = results.parser(__doc__).parse_args()
    limits = Limits()
    rows: list[list[object]] = []
    verdicts = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        for name, (count, most_seconds, most_megabytes, words) in STEPS.items():
            file = Path(place) / f"{count}.csv"
            write(file, count)
            command = [sys.executable, "-m", "karat", *(file.name if word == "FILE" else word for word in words)]
            done = subprocess.run(
                [sys.executable, "-c", RUN, *command], cwd=place, capture_output=True, check=True, text=True
            )
            seconds, megabytes = json.loads(done.stdout)
            scaled = limits.scaled(seconds, clock=time.process_time)
            print(f"{name:12} {count:>10,} rows: {seconds:.1f} CPU s, {scaled:.1f} reference s, {megabytes:.0f} MB")
            rows.append([name, count, seconds, scaled, megabytes])
            verdicts.append(limits.check(f"karat {name}, {count:,} rows", scaled, "≤", most_seconds, "s"))
            if most_megabytes is not None:
                verdicts.append(limits.check(f"karat {name}, its memory", megabytes, "≤", most_megabytes, "MB"))

    section = {
        "title": "Tables of existing answers",
        "about": "Each command in a process of its own.",
        "columns": ["", "rows", "CPU s", "reference s", "peak MB"],
        "rows": rows,
        "verdicts": verdicts,
    }
    results.write(options.json, section)
    limits.exit()


def write(path: Path, rows: int) -> None:
    """A table of sums, of which one answer in five is wrong."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "question", "expected_answer", "answer"])
        for number in range(rows):
            right = 2 * number
            table.writerow([f"q{number}", f"What is {number} plus {number}?", right, right + (number % 5 == 0)])


if __name__ == "__main__":
    main()
