"""How fast a journal becomes a summary, and in how much memory.

    python benchmarks/summary.py

Each figure is of a process of its own: reference seconds (`limits.py`) of `summarize`, and how much
the process grew by it, with what it must reach.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from limits import Limits  # beside this file

from karat.journal import Codec, DatasetInfo, End, Head, PlanInfo, RunInfo, ScorerInfo
from karat.records import Answer, Metric, Reply, Sample, Score, Turn

JUDGE = ScorerInfo(
    name="judge",
    type="overlap",
    scoring="0f" * 16,
    metrics=(Metric(name="completeness", low=1, high=5, kind="ordinal"),),
)
CONDITIONS = ("baseline", "with-docs")
REPETITIONS = 5
MEASURE = """
import json, resource, sys, time
from karat.journal import RunFolder
import karat.summary
run = RunFolder.open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
summary = karat.summary.summarize(run)
seconds = time.process_time() - start
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"seconds": seconds, "grown": grown, "scored": summary.total.ledger.scored}))
"""


def main() -> None:
    """Prints the table."""
    limits = Limits()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        found = measure(folder / "answers", samples=10_000, scored=False)
        show(limits, "100,000 answers, no scores", found, seconds=1, megabytes=10)
        found = measure(folder / "scores", samples=100_000, scored=True)
        show(limits, "1,000,000 answers, 1,000,000 scores", found, seconds=15, megabytes=1_500)
    limits.exit()


def show(limits: Limits, title: str, found: dict[str, float], *, seconds: float, megabytes: float) -> None:
    """A row: reference seconds of the processor, and how many megabytes the process grew by."""
    verdict = limits.check(title, found["megabytes"], "<", megabytes, "MB")
    limits.row(
        title,
        limits.scaled(found["seconds"], clock=time.process_time),
        at_most=seconds,
        note=f"   {found['megabytes']:,.1f} MB {verdict}",
    )


def measure(folder: Path, *, samples: int, scored: bool) -> dict[str, float]:
    """Writes a journal, and sums it up in a fresh process."""
    write(folder, samples, scored=scored)
    done = subprocess.run([sys.executable, "-c", MEASURE, folder], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["scored"] == samples * len(CONDITIONS) * REPETITIONS
    return {"seconds": found["seconds"], "megabytes": found["grown"] / (1e6 if sys.platform == "darwin" else 1e3)}


def write(folder: Path, samples: int, *, scored: bool) -> None:
    """A finished run of so many samples."""
    folder.mkdir()
    line, rng = Codec().line, random.Random(1)
    info = RunInfo(
        format=1, run="1234abcd", name="bench", version="1", created="2026-11-20T12:00:00Z", kind="golden",
        plan=PlanInfo(samples=samples, conditions=CONDITIONS, repetitions=REPETITIONS),
        dataset=DatasetInfo(kind="golden", path="questions.jsonl", sha256="00" * 32, samples=samples),
        experiment={}, conditions=dict.fromkeys(CONDITIONS, "00"), prompts={}, agents={}, agent_type="replay",
        scorers=(JUDGE,) if scored else (),
    )  # fmt: skip
    (folder / "run.json").write_bytes(line(info))
    reply = Reply(text="Words of an answer that is about as long as answers tend to be. " * 4, dollars=0.0)
    reasons = {"completeness": "A reason of the length that a judge may have given here."}
    with (folder / "samples.jsonl").open("wb") as file:
        for row in range(samples):
            file.write(line(Sample(id=str(row), position=row, digest=f"{row:032x}", turns=(Turn(question="?"),))))
    with (folder / "journal.jsonl").open("wb") as file:
        file.write(line(Head(format=1, run=info.run)))
        for number in range(samples * len(CONDITIONS) * REPETITIONS):
            row, place = divmod(number, len(CONDITIONS) * REPETITIONS)
            repetition, column = divmod(place, len(CONDITIONS))
            trial = f"{number:024x}"
            answer = Answer(
                trial=trial, sample=str(row), condition=CONDITIONS[column], repetition=repetition, replies=(reply,),
                started="2026-11-20T12:00:00Z", seconds=rng.random(),
            )  # fmt: skip
            file.write(line(answer))
            if scored:
                values: dict[str, float | bool | None] = {"completeness": rng.randint(1, 5)}
                score = Score(
                    trial=trial, scorer="judge", scoring=JUDGE.scoring, values=values, reasons=reasons, offline=True
                )
                file.write(line(score))
        file.write(line(End(at="2026-11-20T13:00:00Z", reason="done", seconds=3600.0)))


if __name__ == "__main__":
    main()
