"""How fast a journal becomes a summary, with how much memory, and what the checksums of its lines cost.

    python benchmarks/summary.py

The first figures are from separate processes: reference seconds (`limits.py`) of `summarize`, and how much the process
grew, next to their limits. Then come a first report of the larger run, a second one, and a query, each including
interpreter start, with the most memory that one of their processes held. The last ones are medians of processor time,
with and without checksums, measured in turn in this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import _results as results  # beside this file
from limits import Limits

import karat
from karat.journal import Codec, DatasetInfo, End, Event, Head, Journal, PlanInfo, RunFolder, RunInfo, ScorerInfo, codec
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
import karat.analysis
run = RunFolder.open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
summary = karat.analysis.summarize(run)
seconds = time.process_time() - start
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"seconds": seconds, "grown": grown, "scored": summary.total.ledger.scored}))
"""
COMMAND = """
import json, resource, subprocess, sys
subprocess.run([sys.executable, "-m", "karat", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
size = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
print(json.dumps({"seconds": used.ru_utime + used.ru_stime, "megabytes": size}))
"""
QUERY = "SELECT condition, avg(value) FROM scores GROUP BY condition"


def main() -> None:
    """Prints the table."""
    options, limits = results.parser(__doc__).parse_args(), Limits()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        figures = measure(folder / "answers", samples=10_000, scored=False)
        show(limits, "100,000 answers, no scores", figures, seconds=1, megabytes=10)
        figures = measure(folder / "scores", samples=100_000, scored=True)
        show(limits, "1,000,000 answers, 1,000,000 scores", figures, seconds=15, megabytes=320)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        first = command(limits, "  its first report", "report", folder / "scores", megabytes=320)
        command(limits, "  its second report", "report", folder / "scores", at_most=0.09 * first)
        command(limits, "  a query", "query", folder / "scores", QUERY, at_most=0.175 * first)
        checksums(limits, folder)
    about = "Reference seconds and growth of `summarize`; processor seconds and peaks of commands; checksums: ratios."
    results.write(options.json, limits.section("From journal to summary", about))
    limits.exit()


def show(limits: Limits, title: str, figures: dict[str, float], *, seconds: float, megabytes: float) -> None:
    """Prints a row: processor time in reference seconds, and by how many megabytes the process grew."""
    verdict = limits.check(f"{title}: growth", figures["megabytes"], "<", megabytes, "MB")
    limits.row(
        title,
        limits.scaled(figures["seconds"], clock=time.process_time),
        at_most=seconds,
        note=f"   {figures['megabytes']:,.1f} MB {verdict}",
    )


def command(
    limits: Limits, title: str, *arguments: str | Path, at_most: float | None = None, megabytes: float | None = None
) -> float:
    """Prints a row for a command and its children: processor seconds, peak in megabytes. Returns the seconds."""
    process = subprocess.run([sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True)
    figures = json.loads(process.stdout)
    verdict = ""
    for unit, measured, limit in (("seconds", figures["seconds"], at_most), ("MB", figures["megabytes"], megabytes)):
        if limit is None:
            limits.note(f"{title.strip()}: {unit}", measured, unit)
        else:
            verdict += f"  {limits.check(f'{title.strip()}: {unit}', measured, '≤', limit, unit)}"
    print(f"{title:52} {figures['seconds']:8.2f} s {figures['megabytes']:8.1f} MB{verdict}", flush=True)
    return float(figures["seconds"])


def measure(folder: Path, *, samples: int, scored: bool) -> dict[str, float]:
    """Writes a journal, and summarizes it in a fresh process."""
    write(folder, samples, scored=scored)
    process = subprocess.run([sys.executable, "-c", MEASURE, folder], capture_output=True, text=True, check=True)
    figures = json.loads(process.stdout)
    assert figures["scored"] == samples * len(CONDITIONS) * REPETITIONS
    return {"seconds": figures["seconds"], "megabytes": figures["grown"] / (1e6 if sys.platform == "darwin" else 1e3)}


def checksums(limits: Limits, folder: Path) -> None:
    """Prints what checksums cost, step by step; with limits only where a user could notice."""
    journal = folder / "few"
    write(journal, 2_000, scored=True)
    events = list(RunFolder.open(journal).events())
    (folder / "echo.py").write_text("def answer(question, system_prompt):\n    return question\n")
    (folder / "questions.jsonl").write_text("".join(f'{{"question":"{n}?","answer":"{n}"}}\n' for n in range(5_000)))
    (folder / "echo.yaml").write_text(ECHO)
    encode = Codec().line
    print(f"\n{'':52} {'with':>8} {'without':>8}   processor seconds")
    compare(limits, "40,000 lines encoded", lambda: [encode(event) for event in events])
    compare(limits, "40,000 lines encoded and written, not synced", lambda: append(folder, events))
    compare(limits, "40,000 lines read", lambda: list(RunFolder.open(journal).lines()))
    compare(limits, "40,000 lines summarized", lambda: karat.summarize(journal), at_most=1.25)
    echo = folder / "echo.yaml"
    compare(limits, "10,000 trials", lambda: karat.run(echo, results=folder / "results"), at_most=1.05, rounds=5)


ECHO = """dataset: {path: questions.jsonl}
agent: {type: python, target: "echo:answer"}
scorers: []
conditions: {one: {system_prompt: First.}, two: {system_prompt: Second.}}
execution: {num_repetitions: 1, max_concurrent: 50}
"""


def append(folder: Path, events: list[Event]) -> None:
    """Writes the events to a journal of their own, without syncing to disk."""

    async def write_all() -> None:
        async with Journal(place, sync=lambda _: None) as journal:
            for event in events:
                written = journal.append(event)
            await written

    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        asyncio.run(write_all())


def compare(
    limits: Limits, title: str, call: Callable[[], Any], *, at_most: float | None = None, rounds: int = 9
) -> None:
    """Prints one row: the medians of both, measured in turns, and their ratio."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * (rounds + 1)):
        with ExitStack() as stack:
            if number % 2:
                stack.enter_context(without_checksums())
            start = time.process_time()
            call()
            seconds[number % 2 == 0].append(time.process_time() - start)
    on, off = (statistics.median(seconds[which][1:]) for which in (True, False))
    ratio = f"{title}: with checksums to without"
    verdict = "" if at_most is None else limits.check(ratio, on / off, "≤", at_most)
    if at_most is None:
        limits.note(ratio, on / off)
    print(f"{title:52} {on:8.3f} {off:8.3f}   ratio {on / off:.3f}  {verdict}", flush=True)


@contextmanager
def without_checksums() -> Iterator[None]:
    """Neither writes nor checks checksums during the block."""
    with (
        patch.object(codec, "with_checksum", lambda line, end=b"": line + end),
        patch("karat.journal.codec._Checks.all_match", lambda _, lines: True),
        patch.object(codec, "checksum_fault", lambda line, required: None),
        patch.object(karat.journal.folder, "checksum_fault", lambda line, required: None),
    ):
        yield


def write(
    folder: Path,
    samples: int,
    *,
    scored: bool,
    conditions: Sequence[str] = CONDITIONS,
    repetitions: int = REPETITIONS,
) -> None:
    """Writes a finished run with this many samples."""
    folder.mkdir()
    line, rng = Codec().line, random.Random(1)
    info = RunInfo(
        format=1, run="1234abcd", name="bench", version="1", created="2026-11-20T12:00:00Z", kind="golden",
        plan=PlanInfo(samples=samples, conditions=tuple(conditions), repetitions=repetitions),
        dataset=DatasetInfo(kind="golden", path="questions.jsonl", sha256="00" * 32, samples=samples),
        experiment={}, conditions=dict.fromkeys(conditions, "00"), prompts={}, agents={}, agent_type="replay",
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
        for number in range(samples * len(conditions) * repetitions):
            row, place = divmod(number, len(conditions) * repetitions)
            repetition, column = divmod(place, len(conditions))
            trial = f"{number:024x}"
            answer = Answer(
                trial=trial, sample=str(row), condition=conditions[column], repetition=repetition, replies=(reply,),
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
