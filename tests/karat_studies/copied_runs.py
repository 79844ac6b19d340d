"""Whole runs over studies, with recorded answers: those of the human copies, or whatever a function says."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.karat_studies.study_oracle import SHIPPED, copied

from karat import Experiment
from karat.execution import Selection, run_experiment
from karat.journal import RunFolder
from karat.records import Sample
from karat_studies.kinds.study import Study

__all__ = ["Say", "copy_of", "put_through", "several", "spoilt"]

Say = Callable[[Sample, int, str, int], str]
"""Sample, turn, condition, repetition → what is said."""


def put_through(
    folder: Path,
    dataset: Path,
    say: Say,
    *,
    conditions: Sequence[str] = ("agent",),
    repetitions: int = 1,
    options: Mapping[str, Any] | None = None,
    selection: Selection | None = None,
) -> RunFolder:
    """Records what is said, and runs an experiment whose agent gives it back."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = list(Study(Study.Options.model_validate(options or {})).load(dataset).samples)
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        for condition in conditions:
            for repetition in range(repetitions):
                for sample in samples:
                    replies = [{"text": say(sample, at, condition, repetition)} for at in range(len(sample.turns))]
                    row = {"id": sample.id, "condition": condition, "repetition": repetition, "answer": "",
                           "replies": replies}  # fmt: skip
                    file.write(json.dumps(row) + "\n")
    experiment = Experiment(
        dataset={"kind": "study", "path": str(dataset), **(options or {})},
        agent={"type": "replay", "path": str(folder / "answers.jsonl")},
        conditions={name: {} for name in conditions},
        execution={"num_repetitions": repetitions, "max_concurrent": 50, "max_failures": 10**9},
    )
    return asyncio.run(run_experiment(experiment, results=folder / "results", selection=selection)).run


def copy_of(folder: Path, *names: str) -> Callable[[Sample, int], dict[str, Any]]:
    """What the human copies of shipped studies answer, participant by participant: sample, turn → answers.

    Puts the studies into `folder`. Where a test is about the participants' gender, the participants
    are those of the copy.
    """
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for name in names:
        shutil.copytree(SHIPPED / name, folder / name)
        _take_persons(folder / name, name)
        for row in copied(name):
            key = (name, row["arm"], row.get("gender", "") if name == "alcohol_norms" else "")
            rows.setdefault(key, []).append(row)
    served: dict[tuple[str, str, str], Iterator[dict[str, Any]]] = {}
    whose: dict[tuple[str, str, str], list[dict[str, Any]]] = {}

    def answers(sample: Sample, turn: int) -> dict[str, Any]:
        study, detail = sample.detail["study"], sample.turns[turn].detail
        member = detail.get("member")
        who = sample.id if member is None else sample.detail["members"][member]["participant"]
        profile = sample.detail.get("profile", {})
        key = (study, detail["arm"], profile.get("gender", "") if study == "alcohol_norms" else "")
        if (study, detail["arm"], who) not in whose:
            if key not in served:
                served[key] = iter(_by_person(rows[key]))
            whose[study, detail["arm"], who] = next(served[key])
        own = whose[study, detail["arm"], who]
        return next(entry["answers"] for entry in own if entry.get("round") == detail.get("round"))

    return answers


def _by_person(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each participant; in games group by group, as samples come."""
    persons: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: str(row.get("group", ""))):
        persons.setdefault((str(row.get("group", "")), row["participant"]), []).append(row)
    return list(persons.values())


def _take_persons(folder: Path, name: str) -> None:
    if name != "alcohol_norms":
        return
    lines = [json.dumps({"gender": row["gender"]}) for row in copied(name)]
    (folder / "persons.jsonl").write_text("\n".join(lines), encoding="utf-8")
    text = (folder / "study.yaml").read_text(encoding="utf-8")
    text = text.replace("  per_arm: human\n", "  per_arm: human\n  given: persons.jsonl\n")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("    gender:"))
    (folder / "study.yaml").write_text(text, encoding="utf-8")


def several(answers: Callable[[Sample, int], dict[str, Any]]) -> Say:
    """As JSON, the same under every condition and in every repetition."""
    known: dict[tuple[str, int], str] = {}

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        del condition, repetition
        if (sample.id, turn) not in known:
            fields = sample.detail["fields"][turn]
            said = {name: value for name, value in answers(sample, turn).items() if name in fields}
            known[sample.id, turn] = json.dumps(said)
        return known[sample.id, turn]

    return say


def spoilt(say: Say, *, every: int, by: str = "") -> Say:
    """The same, but for one participant in so many, who says something else."""

    def otherwise(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        return by if int(sample.id.rpartition("-")[2]) % every == 0 else say(sample, turn, condition, repetition)

    return otherwise
