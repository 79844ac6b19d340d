"""What a compressed journal saves, and what reading it costs compared with the plain one.

    python benchmarks/segments.py

Uses a journal of answers in random words from these docs, in which nothing repeats except what repeats in every run.
Shows sizes, and medians of processor seconds, measured in turn for plain and compressed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import _results as results  # beside this file
from limits import Limits

import karat
from karat.journal import Codec, DatasetInfo, End, Head, PlanInfo, RunFolder, RunInfo, ScorerInfo
from karat.journal.compressed import compress_journal, expand_journal
from karat.records import Answer, Metric, Reply, Sample, Score, Turn, Usage

JUDGE = ScorerInfo(
    name="judge", type="judge", scoring="0f" * 16, metrics=(Metric(name="correctness", low=1, high=5, kind="ordinal"),)
)
CONDITIONS = ("baseline", "with-docs")
LEAST_RATIO, MOST_TIME = 3.0, 1.5
DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=20_000)
    results.add_option(parser)
    options = parser.parse_args()
    limits, rows = Limits(), list[list[object]]()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        plain, packed = Path(place) / "plain" / "run", Path(place) / "packed" / "run"
        plain.parent.mkdir()
        write(plain, options.samples)
        shutil.copytree(plain, packed)
        taken = seconds(lambda: compress_journal(packed, checksums=False))
        back = seconds(lambda: expand_journal(packed))
        compress_journal(packed, checksums=False)
        sizes = [RunFolder.open(run).journal.stat().st_size / 1e6 for run in (plain, packed)]
        rows.append(["MB on disk", *sizes, sizes[0] / sizes[1]])
        places = line_places(plain)
        for name, read in {
            "every line, checked": lambda run: sum(len(line) for line in RunFolder.open(run).lines()),
            "summarize": karat.summarize,
            "1,000 lines in random order": lambda run: random_lines(run, places),
        }.items():
            rows.append([f"{name}: s", *in_turns(lambda read=read: read(plain), lambda read=read: read(packed))])
        rows.append(["compressing, and reading back what was written: s", None, taken, None])
        rows.append(["making it plain again: s", None, back, None])
    print(f"{'':52} {'plain':>9} {'.zst':>9} {'ratio':>7}")
    for title, one, other, ratio in rows:
        shown = ["–" if value is None else f"{value:.3f}" for value in (one, other, ratio)]
        print(f"{title!s:52} {shown[0]:>9} {shown[1]:>9} {shown[2]:>7}")
    verdicts = [
        f"size, plain to compressed: {limits.check('size', rows[0][3], '≥', LEAST_RATIO)}",
        f"summarize, compressed to plain: {limits.check('summarize', rows[2][3], '≤', MOST_TIME)}",
    ]
    print(*verdicts, sep="\n")
    about = f"A journal of {10 * options.samples:,} answers and scores; processor seconds, medians of 5 in turns."
    columns = ["", "journal.jsonl", "journal.jsonl.zst", "ratio"]
    section = {"title": "Compressed journals", "about": about, "columns": columns, "rows": rows, "verdicts": verdicts}
    results.write(options.json, section)
    limits.exit()


def seconds(call: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def in_turns(plain: Callable[[], object], packed: Callable[[], object]) -> tuple[float, float, float]:
    """Medians of both, and their ratio, compressed to plain."""
    times = [(seconds(plain), seconds(packed)) for _ in range(5)]
    one, other = (statistics.median(column) for column in zip(*times, strict=True))
    return one, other, other / one


def line_places(run: Path) -> list[int]:
    """Where 1,000 lines start, in random order."""
    places, end = [], 0
    for line in RunFolder.open(run).lines():
        places.append(end)
        end += len(line) + 1
    return random.Random(2).sample(places, 1000)


def random_lines(run: Path, places: list[int]) -> None:
    """Reads lines by their places."""
    folder = RunFolder.open(run)
    for place in places:
        next(folder.lines(start=place))


def write(folder: Path, samples: int) -> None:
    """Writes a finished run with this many samples, five repetitions and two conditions."""
    folder.mkdir()
    line, rng = Codec().line, random.Random(1)
    words = re.findall(r"[a-zA-Z]+[,.]?", "".join(page.read_text("utf-8") for page in sorted(DOCS.rglob("*.md"))))
    info = RunInfo(
        format=1, run="1234abcd", name="bench", version="1", created="2026-11-20T12:00:00Z", kind="golden",
        plan=PlanInfo(samples=samples, conditions=CONDITIONS, repetitions=5),
        dataset=DatasetInfo(kind="golden", path="questions.jsonl", sha256="00" * 32, samples=samples),
        experiment={}, conditions=dict.fromkeys(CONDITIONS, "00"), prompts={}, agents={}, agent_type="chat",
        scorers=(JUDGE,),
    )  # fmt: skip
    (folder / "run.json").write_bytes(line(info))
    with (folder / "samples.jsonl").open("wb") as file:
        for row in range(samples):
            file.write(line(Sample(id=str(row), position=row, digest=f"{row:032x}", turns=(Turn(question="?"),))))
    with (folder / "journal.jsonl").open("wb") as file:
        file.write(line(Head(format=1, run=info.run)))
        for number in range(samples * len(CONDITIONS) * 5):
            row, place = divmod(number, len(CONDITIONS) * 5)
            repetition, column = divmod(place, len(CONDITIONS))
            text = " ".join(rng.choices(words, k=rng.randrange(20, 150)))
            usage = Usage(input_tokens=rng.randrange(200, 400), output_tokens=rng.randrange(30, 200))
            reply = Reply(
                text=text, dollars=rng.random() / 100, usage=usage, milliseconds=1000 * rng.random(), model="a-model"
            )
            started = f"2026-11-20T12:{number // 60 % 60:02}:{number % 60:02}Z"
            answer = Answer(
                trial=rng.randbytes(12).hex(), sample=str(row), condition=CONDITIONS[column], repetition=repetition,
                replies=(reply,), started=started, seconds=rng.random(),
            )  # fmt: skip
            score = Score(
                trial=answer.trial, scorer="judge", scoring=JUDGE.scoring, values={"correctness": rng.randint(1, 5)},
                reasons={"correctness": " ".join(rng.choices(words, k=25))}, dollars=rng.random() / 100,
            )  # fmt: skip
            file.write(line(answer) + line(score))
        file.write(line(End(at="2026-11-20T13:00:00Z", reason="done", seconds=3600.0)))


if __name__ == "__main__":
    main()
