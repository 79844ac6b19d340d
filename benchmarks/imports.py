"""How fast a log of Inspect becomes a run folder, and with how much memory, compared with Inspect's own reader.

    python -m venv /tmp/inspect && /tmp/inspect/bin/pip install inspect-ai==0.3.285
    python benchmarks/imports.py [--inspect /tmp/inspect/bin/python] [--samples 10000] [--gigabytes 2]

The log is one of the fixtures with its samples repeated under other ids. Times are processor times of separate
processes, medians of three alternating rounds. Without `--inspect`, only karat is measured. `--gigabytes` also imports
a log of that size, with longer, uncompressed samples.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _results as results  # beside this file
from backports.zstd.zipfile import ZIP_STORED, ZIP_ZSTANDARD, ZipFile
from limits import Limits

FIXTURE = Path(__file__).parent.parent / "tests/data/imports/inspect/tools.eval"
ROUNDS = 3
OURS = """
import runpy, sys
sys.argv[:] = ["karat", "import", "inspect", sys.argv[1], "--out", sys.argv[2]]
runpy.run_module("karat", run_name="__main__")
"""
READER = """
import sys
from karat.importers import Findings
from karat_imports.importers.inspect import Inspect
from pathlib import Path
for run in Inspect().runs([Path(sys.argv[1])], Findings()):
    for trial in run.trials:
        pass
"""
THEIRS = "import sys; from inspect_ai.log import read_eval_log; read_eval_log(sys.argv[1])"
MEASURE = """
import json, resource, subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
size = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
print(json.dumps({"seconds": used.ru_utime + used.ru_stime, "megabytes": size}))
"""


def measured(python: str, *arguments: str) -> dict[str, float]:
    process = subprocess.run([python, "-c", MEASURE, *arguments], check=True, stdout=subprocess.PIPE)
    return json.loads(process.stdout)


def repeated(path: Path, *, samples: int = 0, size: int = 0) -> int:
    """Writes a log with `samples` samples, or `size` bytes of longer ones. Returns the number of samples."""
    method = ZIP_STORED if size else ZIP_ZSTANDARD
    with ZipFile(FIXTURE) as source, ZipFile(path, "w", compression=method) as out:
        names = [name for name in source.namelist() if name.startswith("samples/")]
        texts = [json.loads(source.read(name)) for name in names]
        header = json.loads(source.read("header.json"))
        header["eval"]["dataset"].pop("sample_ids")
        out.writestr("header.json", json.dumps(header))
        number = written = 0
        while number < samples or written < size:
            sample = texts[number % len(texts)]
            sample["id"] = f"{number}"
            if size:  # longer ones
                sample["events"] = (sample["events"] * 100)[:1000]
            text = json.dumps(sample)
            written += len(text)
            out.writestr(f"samples/{number}_epoch_1.json", text)
            number += 1
    return number


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--inspect", help="a Python that has inspect-ai")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--gigabytes", type=float, default=0)
    options = parser.parse_args()
    limits = Limits()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "large.eval"
        repeated(log, samples=options.samples)
        print(f"{options.samples:,} samples, {log.stat().st_size / 1e6:.1f} MB")
        figures: dict[str, list[dict[str, float]]] = {"karat import": [], "its reader alone": [], "read_eval_log": []}
        for number in range(ROUNDS):
            figures["karat import"].append(measured(sys.executable, OURS, str(log), f"{folder}/{number}"))
            figures["its reader alone"].append(measured(sys.executable, READER, str(log)))
            if options.inspect:
                figures["read_eval_log"].append(measured(options.inspect, THEIRS, str(log)))
        seconds = {name: statistics.median(r["seconds"] for r in rounds) for name, rounds in figures.items() if rounds}
        for name, value in seconds.items():
            memory = max(r["megabytes"] for r in figures[name])
            print(f"{name:20} {value:8.2f} s  {memory:8.0f} MB", flush=True)
            limits.note(name, value, "s")
            if name != "karat import":
                limits.note(f"{name}, peak", memory, "MB")
        memory = max(r["megabytes"] for r in figures["karat import"])
        print("memory of karat import", limits.check("karat import, peak", memory, "≤", 200, "MB"))
        if options.inspect:
            ratio = seconds["karat import"] / seconds["read_eval_log"]
            print(f"ratio {ratio:.3f}", limits.check("karat import to read_eval_log", ratio, "≤", 0.15))
        if options.gigabytes:
            count = repeated(log, size=int(options.gigabytes * 1e9))
            used = measured(sys.executable, OURS, str(log), f"{folder}/huge")
            print(
                f"{options.gigabytes:g} GB in {count:,} samples: {used['seconds']:.1f} s, {used['megabytes']:.0f} MB",
                limits.check(f"{options.gigabytes:g} GB, peak", used["megabytes"], "≤", 200, "MB"),
            )
    about = f"A log of {options.samples:,} samples becomes a run folder; processor seconds, medians of {ROUNDS}."
    results.write(options.json, limits.section("Importing logs of Inspect", about))
    limits.exit()


if __name__ == "__main__":
    main()
