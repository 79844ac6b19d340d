"""A journal of answers in random words from these docs, in which nothing repeats except what repeats in every run."""

from __future__ import annotations

import random
import re
from pathlib import Path

from karat.journal import Codec, DatasetInfo, End, Head, PlanInfo, RunInfo, ScorerInfo
from karat.records import Answer, Metric, Reply, Sample, Score, Turn, Usage

JUDGE = ScorerInfo(
    name="judge", type="judge", scoring="0f" * 16, metrics=(Metric(name="correctness", low=1, high=5, kind="ordinal"),)
)
CONDITIONS = ("baseline", "with-docs")
DOCS = Path(__file__).resolve().parent.parent / "docs"


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
