"""Files of the dataset that a run keeps: those it began with, and those that a later part brings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.karat_studies.studies import STUDY, write
from tests.karat_studies.test_study_reducer import NEEDS

from karat.config import load
from karat.execution import Selection, run_experiment
from karat.journal import Resume, RunFolder


def part(folder: Path, *, resume: Path | None = None) -> RunFolder:
    """The first sample of the studies under one condition."""
    sections = {
        "dataset": {"kind": "study", "path": "studies"},
        "agent": {"type": "floor"},
        "conditions": {"a": {}},
        "execution": {"num_repetitions": 1},
    }
    file = folder / "experiment.yaml"
    file.write_text(json.dumps(sections))
    selected = Selection(limit=1)
    run = run_experiment(load(file), results=folder / "results", resume=resume, selection=selected)
    return asyncio.run(run).run


def test_a_file_keeps_the_code_that_the_run_began_with_and_a_new_one_is_kept_too(tmp_path: Path) -> None:
    study = write(tmp_path / "studies" / "first", f"{NEEDS}reducer: reduce:apart\n")
    code = study / "reduce.py"
    code.write_text("def apart(columns): return columns\n")
    first = part(tmp_path)
    (copy,) = first.info.kept
    assert copy.code is not None
    assert len(list(first.path.rglob(copy.file))) == 1

    code.write_text("def apart(columns): return {**columns}\n")
    second = part(tmp_path, resume=first.path)
    assert second.kept() == (copy,)
    assert [event.kept for event in second.events_of(Resume)] == [()]

    write(tmp_path / "studies" / "second", STUDY.replace("study: small", "study: other"))
    third = part(tmp_path, resume=first.path)
    other = third.kept()[1]
    assert third.kept() == (copy, other)
    assert (other.name != copy.name, other.code) == (True, None)
    assert [event.kept for event in third.events_of(Resume)] == [(), (other,)]
    assert len(list(third.path.rglob(other.file))) == 1
