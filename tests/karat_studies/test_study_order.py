"""In which order participants are asked: all arms in turn, whoever is asked being the same person."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from karat.execution.plan import Plan
from karat.records import AgentSpec, Condition, Sample
from karat_studies.kinds.study import Study, in_turn
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study

from .studies import STUDY, write

CONDITION = Condition(name="a", position=0, digest="", agent=AgentSpec(type="floor"))


def load(path: Path, **options: Any) -> list[Sample]:
    return list(Study(Study.Options(**options)).load(path).samples)


def place(sample: Sample) -> str:
    """Study and arm, and whether it is a group."""
    return f"{sample.detail['study']}/{sample.metadata['arm']}"


@pytest.mark.parametrize("sizes", [(3, 3, 3), (152, 155, 40), (1, 100), (5, 0, 2), (1, 1, 1, 7, 60), ()])
def test_every_beginning_holds_about_the_share_of_each(sizes: tuple[int, ...]) -> None:
    queues = [[(number, at) for at in range(size)] for number, size in enumerate(sizes)]
    found = list(in_turn(queues))
    assert sorted(found) == [one for queue in queues for one in queue]
    for number, queue in enumerate(queues):
        assert [one for one in found if one[0] == number] == queue
        for seen in range(len(found)):
            met = sum(one[0] == number for one in found[:seen])
            share = len(queue) / len(found)
            assert abs(met - seen * share) <= 1 + share * len(queues) / 2


def test_equal_arms_take_turns_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = load(write(tmp_path) / "study.yaml", per_arm=2)
    assert [one.id for one in found] == ["gain-001", "loss-001", "rating-001", "gain-002", "loss-002", "rating-002"]
    assert [one.position for one in found] == list(range(6))


def test_arms_of_all_studies_of_a_folder_and_groups_take_turns() -> None:
    shipped = shipped_studies()["framing"].parents[1]
    names = ["beauty_contest", "disjunction", "trust"]
    found = load(shipped, studies=names)
    assert [one.position for one in found] == list(range(len(found)))
    arms = Counter(map(place, found))
    half = Counter(map(place, found[: len(found) // 2]))
    assert all(abs(half[arm] - count / 2) <= 1.5 for arm, count in arms.items()), (arms, half)
    few = load(shipped, studies=["disjunction", "side_effects"], per_arm=4)
    assert len({place(one) for one in few[:6]}) == 6  # one of each of two and four arms


@pytest.mark.parametrize("name", ["beauty_contest", "framing", "side_effects", "trust"])
def test_the_order_is_in_no_id_or_digest(name: str) -> None:
    study = read_study(shipped_studies()[name])
    reader = Study(Study.Options())
    together = {one.id: one for one in reader.samples(study)}
    if study.design == "within":
        return
    apart = {one.id: one for arm in study.arms for one in reader.samples(study, [arm])}
    assert set(apart) == set(together)
    for sample in apart.values():
        other = together[sample.id]
        assert msgspec.structs.replace(other, position=sample.position) == sample
        assert Plan([other], [CONDITION], 1)[0].id == Plan([sample], [CONDITION], 1)[0].id


def test_more_participants_in_each_arm_add_only(tmp_path: Path) -> None:
    path = write(tmp_path, STUDY) / "study.yaml"
    few, more = ({trial.id for trial in Plan(load(path, per_arm=size), [CONDITION], 1)} for size in (3, 7))
    assert few < more


def test_a_design_within_subjects_has_one_order(tmp_path: Path) -> None:
    study = read_study(write(tmp_path) / "study.yaml")
    found = list(Study(Study.Options(per_arm=3)).samples(replace(study, design="within")))
    assert [one.id for one in found] == ["p-001", "p-002", "p-003"]
