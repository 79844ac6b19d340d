"""The tables of the page on PAS and ECS, computed again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from karat_studies.replication import Side, StudyTest, score_test, score_tests

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "how-to-read-pas-and-ecs.md"
AGENTS: list[tuple[Callable[[float], float], int, int]] = [  # what it makes of d; people and answers per group
    (lambda d: d, 100, 100),
    (lambda d: d / 10, 100, 10_000),
    (lambda d: -d, 100, 100),
    (lambda d: 5 * d, 100, 100),
    (lambda d: d + 0.5, 100, 100),
    (lambda d: d, 20, 20),
]


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    text = PAGE.read_text(encoding="utf-8").replace("−", "-").partition(f"\n## {heading}\n")[2]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()[2:]]


def effect(human: tuple[float, int], agent: tuple[float, int], finding: str = "F1") -> StudyTest:
    """A t test of two groups on both sides, from d and n per group."""
    sides = [Side(statistic=d / math.sqrt(2 / n), n1=n, n2=n) for d, n in (human, agent)]
    return StudyTest(study="s", finding=finding, test="T1", kind="ttest_ind", human=sides[0], agent=sides[1])


def d_and_n(cell: str) -> tuple[float, int]:
    d, n = cell.replace(",", "").rstrip(")").split(" (")
    return float(d), int(n)


@pytest.mark.parametrize("row", table("One test: PAS"), ids=lambda row: row[0])
def test_one_test_has_the_printed_pas(row):
    result = score_test(effect(d_and_n(row[1]), d_and_n(row[2])))
    computed = [f"{value:.3f}" for value in (result.pas, result.pas_directional, result.ceiling)]
    assert computed == row[3:6]
    assert result.opposed == (row[0] == "opposite direction")


@pytest.mark.parametrize(("row", "agent"), list(zip(table("Several tests: PAS and ECS"), AGENTS, strict=True)))
def test_several_tests_have_the_printed_pas_and_ecs(row, agent):
    makes, people, answers = agent
    effects = enumerate((0.2, 0.5, 0.8, -0.4))
    result = score_tests([effect((d, people), (makes(d), answers), f"F{at}") for at, d in effects])
    whole = result.benchmark
    computed = [f"{value:.3f}" for value in (whole.pas, whole.pas_directional, whole.ecs.value)]
    assert computed == row[1:4]
    assert bool(result.opposed) == ("other way round" in row[0])
