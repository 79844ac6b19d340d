"""`--events`: what programs may rely on stands on a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from karat.cli.progress import ConditionCounts, LastFailure, Progress, RunningMean
from karat.formats import OUTPUT_FORMAT
from karat.journal import Event

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"


def fields(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def named(text: str) -> set[str]:
    """What stands in backquotes in the first column of a table, or in a text."""
    return set(re.findall(r"`(\w+)`", text))


def test_the_page_names_every_field():
    page = PAGE.read_text(encoding="utf-8")
    rows = [line for line in page.split("## progress")[1].splitlines() if line.startswith("| `")]
    first = {name for row in rows for name in named(row.split("|")[1])}
    assert first == fields(Progress)
    assert fields(ConditionCounts) <= named(next(row for row in rows if "`conditions`" in row)) | {"mean"}
    assert fields(LastFailure) <= named(next(row for row in rows if "`last_failure`" in row))
    assert fields(RunningMean) <= named(page.rpartition("`mean` is null")[2])
    assert f"| `format` | {OUTPUT_FORMAT} |" in page


def test_the_page_names_every_event(process, experiment):
    done = process("run", experiment.name, "--events")
    kinds = {json.loads(line)["event"] for line in done.err.splitlines()}
    table = PAGE.read_text(encoding="utf-8").split("## progress")[0]
    assert kinds <= named(table)
    of_the_writer = {"head", "horizon", "resume", "end"}
    assert {kind.__struct_config__.tag for kind in Event.__args__} - of_the_writer <= named(table)


def test_the_last_event_is_how_things_ended(process, experiment):
    done = process("run", experiment.name, "--events", "--json")
    last = msgspec.json.decode(done.err.splitlines()[-1], type=Progress)
    assert set(json.loads(done.err.splitlines()[-1])) == fields(Progress) | {"event"}
    assert (last.planned, last.done, last.failed, last.in_flight, last.scoring) == (8, 8, 0, 0, 0)
    assert last.seconds_left == 0
    results = {one["condition"]: one["mean"]["value"] for one in done.json["summary"]["results"]
               if one["metric"] == last.metric}  # fmt: skip
    assert {name: one.mean.value for name, one in last.conditions.items() if one.mean is not None} == results


@pytest.mark.slow
def test_scoring_again_tells_of_what_needs_a_score(process, experiment):
    run = process("run", experiment.name, "--json", "-q").json["run"]
    done = process("score", run, "--scorer", "equals", "--events")
    last = msgspec.json.decode(done.err.splitlines()[-1], type=Progress)
    assert (last.planned, last.done, last.most_in_flight, last.metric) == (8, 8, 0, "equals")
    assert {name: (one.planned, one.done) for name, one in last.conditions.items()} == {
        "guess": (None, 4),
        "add": (None, 4),
    }
    again = process("score", run, "--scorer", "equals", "--events")
    assert [line for line in again.err.splitlines() if '"progress"' in line] == []


def test_a_file_that_is_refused_is_told_in_plain_text(process, experiment):
    done = process("run", experiment.name, "--events", "--set", "dataset.path=nowhere.jsonl")
    assert done.code == 2
    assert "nowhere.jsonl" in done.err
    assert '"event"' not in done.err
