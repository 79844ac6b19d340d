"""A run over two studies under three conditions: like people, the other way round, and one that says little."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from tests.karat_studies.copied_runs import copy_of, put_through, several

from karat.journal import RunFolder
from karat.records import Sample

__all__ = ["CONDITIONS", "story"]

CONDITIONS = ("like", "against", "shy")
STUDIES = ("representativeness", "side_effects")


def story(folder: Path, *, repetitions: int = 1) -> RunFolder:
    """The run, with an id that does not change from test to test."""
    studies = folder / "studies"
    studies.mkdir(parents=True)
    like = several(copy_of(studies, *STUDIES))

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        said = like(sample, turn, condition, repetition)
        if condition == "against":
            return json.dumps({name: _other(name, value) for name, value in json.loads(said).items()})
        if condition == "shy" and int(sample.id.rpartition("-")[2]) % 3 == 0:
            return "I am sorry, but I cannot answer this question."
        if condition == "shy" and "army" in sample.id and int(sample.id.rpartition("-")[2]) % 3 == 1:
            return "blame: 17\npraise: 17\nintentional: yes"
        return said

    run = put_through(folder, studies, say, conditions=CONDITIONS, repetitions=repetitions)
    return RunFolder(run.path, msgspec.structs.replace(run.info, run="1234abcd", name="two studies"))


def _other(name: str, value: object) -> object:
    """The other option; of numbers the opposite one."""
    others = {"yes": "no", "no": "yes", "A": "B", "B": "A", "first": "second", "second": "first"}
    if isinstance(value, str):
        return others[value]
    assert isinstance(value, (int, float))
    return 6 - value if name in {"blame", "praise"} else 144 - value if name == "families" else 10 - min(10, value)
