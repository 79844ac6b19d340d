"""Which conversations are drawn, and what they weigh."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from karat.errors import BadDataset, BadOption

from .conversations import CLEANED, load, write


def many(count: int) -> list[dict[str, Any]]:
    """Conversations of two to four turns; every third has a second question."""
    records = []
    for number in range(count):
        turns = 2 + number % 3
        dialogue = {key: value[:turns] for key, value in CLEANED["dialogue"].items()}
        dialogue["qa_split"] = [number % 9 == 0] * turns
        records.append({"id": f"c{number}", "doc": CLEANED["doc"], "dialogue": dialogue})
    return records


def test_a_draw_is_proportional_to_its_strata(folder: Path) -> None:
    write("many.json", many(90))
    drawn = load("many.json", sample_size=18, seed=4)
    assert Counter((one.metadata["turns"], one.metadata["has_type2_question"]) for one in drawn) == {
        (2, True): 2,
        (2, False): 4,
        (3, False): 6,
        (4, False): 6,
    }
    assert {one.weight for one in drawn} == {1.0}
    assert [one.position for one in drawn] == sorted(one.position for one in drawn)
    assert list(drawn) == list(load("many.json", sample_size=18, seed=4))
    kept = {one.id for one in load("many.json", sample_size=30, seed=4)}
    assert {one.id for one in drawn} <= kept


def test_an_equal_draw_is_weighted_back_to_the_file(folder: Path) -> None:
    write("many.json", many(90))
    drawn = list(load("many.json", sample_size=12, seed=4, allocation="equal"))
    assert Counter((one.metadata["turns"], one.metadata["has_type2_question"], one.weight) for one in drawn) == {
        (2, True, 10 / 3): 3,
        (2, False, 20 / 3): 3,
        (3, False, 10.0): 3,
        (4, False, 10.0): 3,
    }
    weighted = sum(one.weight * one.metadata["turns"] for one in drawn) / sum(one.weight for one in drawn)
    assert weighted == pytest.approx(3.0)
    assert {one.id for one in drawn} <= {
        one.id for one in load("many.json", sample_size=20, seed=4, allocation="equal")
    }


def test_an_equal_draw_needs_one_of_each_stratum(folder: Path) -> None:
    write("many.json", many(90))
    with pytest.raises(
        BadOption, match=r"dataset.sample_size: is too small for `allocation: equal`: there are 4 strata"
    ):
        load("many.json", sample_size=3, allocation="equal")


def test_a_stratum_that_no_conversation_has_is_a_fault(folder: Path) -> None:
    write("many.json", many(9))
    with pytest.raises(BadDataset, match=r"dataset.stratify.0: no conversation has the feature 'turn' \(did you mean"):
        load("many.json", sample_size=2, stratify="turn")


@pytest.mark.slow
def test_a_draw_of_convfinqa_keeps_its_shares(convfinqa: Path) -> None:
    whole, drawn = load(convfinqa), load(convfinqa, sample_size=100, seed=1)
    for feature in ("turns", "has_type2_question"):
        there = Counter(sample.metadata[feature] for sample in whole)
        here = Counter(sample.metadata[feature] for sample in drawn)
        assert all(abs(here[value] - 100 * count / 421) < 2 for value, count in there.items()), feature
    equal = load(convfinqa, sample_size=100, seed=1, allocation="equal")
    assert sum(sample.weight for sample in equal) == pytest.approx(421)
