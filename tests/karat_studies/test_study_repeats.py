"""Rows that are not people: several rows of one participant in a group of a test."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import BadDataset
from karat_studies.kinds.study.experiments import Response, to_study_tests
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study
from karat_studies.kinds.study.repeats import clustered_error, shares_of_people
from karat_studies.replication import Side, measure

STUDY = """study: items
title: Three items a person
source: "Made up (2026)."
domain: social
participants: {per_arm: 20, profile: {first: [old, new], second: [old, new]}}
arms:
  a: &arm {n: 20, prompt: form.md, fields: &fields {
    q1: {type: likert, range: [1, 7]}, q2: {type: likert, range: [1, 7]}, q3: {type: likert, range: [1, 7]}}}
  b: *arm
derive: |
  DERIVE
findings:
  - id: F1
    claim: a above b
    tests:
      - {id: T1, kind: KIND, measure: q, expect: greater, HOW groups: {column: GROUPS}, human: HUMAN}
"""
ITEMS = "SELECT participant, arm, unnest([q1, q2, q3]) AS q FROM responses"
TWO_GROUPS = "{a: {n: 20, mean: 4.6, sd: 1.2}, b: {n: 20, mean: 4.0, sd: 1.2}}"
COUNTS = "{a: {k: 12, n: 20}, b: {k: 8, n: 20}}"
LARGE = "SELECT participant, arm, unnest([q1 > 4, q2 > 4, q3 > 4]) AS q FROM responses"
PROFILES = (
    "SELECT participant, arm, q1 AS q, first AS job FROM responses UNION ALL "
    "SELECT participant, arm, q2, second FROM responses"
)
JOBS = "{old: {n: 40, mean: 4.6, sd: 1.2}, new: {n: 40, mean: 4.0, sd: 1.2}}"


def study_in(folder: Path, derive: str, *, kind: str = "ttest_ind", how: str = "", human: str = TWO_GROUPS) -> Path:
    groups = "job, levels: [old, new]" if derive == PROFILES else "arm, levels: [a, b]"
    text = STUDY.replace("DERIVE", derive).replace("KIND", kind).replace("HOW", how)
    (folder / "study.yaml").write_text(text.replace("GROUPS", groups).replace("HUMAN", human), encoding="utf-8")
    (folder / "form.md").write_text("How good, from 1 to 7?\n\n{{ answer_form }}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("derive", "kind", "human", "rows"),
    [
        pytest.param(ITEMS, "ttest_ind", TWO_GROUPS, 3, id="unnest"),
        pytest.param(ITEMS, "mannwhitney", "{a: {n: 20}, b: {n: 20}, z: 2.0}", 3, id="ranks"),
        pytest.param(LARGE, "contingency", COUNTS, 3, id="counts"),
        pytest.param(PROFILES, "ttest_ind", JOBS, 2, id="two profiles a person"),
    ],
)
def test_several_rows_of_one_participant_in_a_group_are_a_fault(
    derive: str, kind: str, human: str, rows: int, tmp_path: Path
) -> None:
    how = "n_reason: several a person," if derive == PROFILES else ""
    with pytest.raises(BadDataset) as caught:
        read_study(study_in(tmp_path, derive, kind=kind, how=how, human=human))
    [fault] = caught.value.faults
    assert f"has {rows} rows of one participant of arm 'a' in a group, and rows are not people" in str(fault)
    assert "`by: participant`" in str(fault)


@pytest.mark.parametrize("how", ["", "by: participant,", "cluster: participant,"])
@pytest.mark.parametrize(
    "derive", [ITEMS.replace("participant, ", ""), ITEMS.replace("participant", "participant AS who")]
)
def test_several_rows_of_one_participant_are_a_fault_where_derive_does_not_say_whose(
    derive: str, how: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataset) as caught:
        read_study(study_in(tmp_path, derive, how=how))
    assert "has 3 rows of one participant of arm 'a' in a group" in str(caught.value)
    assert "keep the column `participant` in `derive`" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "human", "paired"),
    [
        ("ttest_ind", JOBS, "ttest_paired"),
        ("welch", JOBS, "ttest_paired"),
        ("mannwhitney", "{old: {n: 40}, new: {n: 40}, z: 2.0}", "wilcoxon"),
        ("anova", JOBS, "ttest_paired"),
    ],
)
@pytest.mark.parametrize("whose", ["participant, ", ""])
def test_the_same_people_in_both_groups_of_an_independent_test_are_a_fault(
    kind: str, human: str, paired: str, whose: str, tmp_path: Path
) -> None:
    derive = f"SELECT {whose}q1 AS q, 'old' AS job FROM responses UNION ALL SELECT {whose}q2, 'new' FROM responses"
    folder = study_in(tmp_path, derive, kind=kind, how="n_reason: two a person,", human=human)
    study = folder / "study.yaml"
    text = study.read_text(encoding="utf-8").replace(
        "{column: arm, levels: [a, b]}", "{column: job, levels: [old, new]}"
    )
    study.write_text(text, encoding="utf-8")
    with pytest.raises(BadDataset) as caught:
        read_study(folder)
    assert "has one participant of arm 'a' in both groups, and takes them for two" in str(caught.value)
    assert f"use {paired} (`measure` and `against`)" in str(caught.value)


def test_people_who_meet_both_levels_only_by_chance_are_in_both_groups(tmp_path: Path) -> None:
    """The jobs of two profiles are drawn for each person: `by` makes one row of those of one group, not of two."""
    with pytest.raises(BadDataset, match="in both groups, and takes them for two"):
        read_study(study_in(tmp_path, PROFILES, how="by: participant, n_reason: two a person,", human=JOBS))
    apart = study_in(tmp_path, PROFILES, how="cluster: participant, n_reason: two a person,", human=JOBS)
    assert not any("same people" in text for text in read_study(apart).warnings)


def test_counts_of_the_same_people_are_doubted_and_unread_answers_to_other_questions_are_not(tmp_path: Path) -> None:
    derive = " UNION ALL ".join(
        f"SELECT participant, q{at} > 4 AS q, '{job}' AS job FROM responses"
        for at, job in enumerate(("old", "new", "none"), start=1)
    )
    folder = study_in(
        tmp_path, derive, kind="contingency", how="n_reason: two a person,",
        human="{old: {k: 12, n: 40}, new: {k: 8, n: 40}, reported: '12 of 40 vs 8 of 40'}",
    )  # fmt: skip
    text = (folder / "study.yaml").read_text(encoding="utf-8")
    text = text.replace("{column: arm, levels: [a, b]}", "{column: job, levels: [old, new]}")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    [doubt] = read_study(folder).warnings
    assert doubt.startswith("F1 T1: the same people are in each of its groups, and a contingency treats their answers")
    counted = text.replace("q2 > 4 AS q", "coalesce(q2 > 4, false) AS q")
    (folder / "study.yaml").write_text(counted, encoding="utf-8")
    assert "F1 T1: an answer that could not be read counts as false" in "".join(read_study(folder).warnings)


def test_cluster_is_refused_where_no_error_between_persons_is_known(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="for a contingency write `by: participant`"):
        read_study(study_in(tmp_path, LARGE, kind="contingency", how="cluster: participant,", human=COUNTS))


def answers(seed: int = 2) -> list[Response]:
    rng = np.random.default_rng(seed)
    responses = []
    for at, arm in enumerate("ab"):
        for number in range(20):
            own = rng.normal(4.5 - at / 2, 1)
            values = {f"q{item}": float(np.clip(round(own + rng.normal()), 1, 7)) for item in (1, 2, 3)}
            profile = {name: str(rng.choice(["old", "new"])) for name in ("first", "second")}
            responses.append(Response(participant=f"{arm}-{number}", arm=arm, profile=profile, values=values))
    return responses


def agent_of(folder: Path, responses: list[Response]) -> Side:
    [test] = to_study_tests(read_study(folder), responses)
    return test.agent


def test_by_participant_tests_the_mean_of_each_person(tmp_path: Path) -> None:
    responses = answers()
    side = agent_of(study_in(tmp_path, ITEMS, how="by: participant,"), responses)
    means = [[np.mean(list(row.values.values())) for row in responses if row.arm == arm] for arm in "ab"]
    assert side.statistic == pytest.approx(stats.ttest_ind(*means).statistic)
    assert (side.n1, side.n2) == (20, 20)


def test_by_participant_counts_each_person_once_in_shares(tmp_path: Path) -> None:
    responses = answers()
    side = agent_of(study_in(tmp_path, LARGE, kind="contingency", how="by: participant,", human=COUNTS), responses)
    shares = [sum(np.mean([q > 4 for q in row.values.values()]) for row in responses if row.arm == arm) for arm in "ab"]
    assert side.table == tuple((round(share), 20 - round(share)) for share in shares)


def test_cluster_counts_every_row_with_the_error_between_persons(tmp_path: Path) -> None:
    responses = answers()
    side = agent_of(study_in(tmp_path, ITEMS, how="cluster: participant,"), responses)
    means = [[np.mean(list(row.values.values())) for row in responses if row.arm == arm] for arm in "ab"]
    rows = [np.array([q for row in responses if row.arm == arm for q in row.values.values()]) for arm in "ab"]
    assert side.statistic == pytest.approx(stats.ttest_ind(*means, equal_var=False).statistic)
    assert (side.n1, side.n2) == (20, 20), "n counts people"
    pooled = math.sqrt(sum(part.var(ddof=1) for part in rows) / 2)
    assert measure("ttest_ind", side, method="default").d == pytest.approx((rows[0].mean() - rows[1].mean()) / pooled)


def test_a_person_in_both_groups_is_one_cluster(tmp_path: Path) -> None:
    responses = answers()
    side = agent_of(
        study_in(tmp_path, PROFILES, how="cluster: participant, n_reason: two a person,", human=JOBS), responses
    )
    used = {job: {row.participant for row in responses if job in row.profile.values()} for job in ("old", "new")}
    assert (side.n1, side.n2) == (len(used["old"]), len(used["new"]))


values = st.floats(-10, 10, allow_nan=False).map(lambda value: round(value, 3))


@given(st.lists(values, min_size=2, max_size=12, unique=True), st.lists(values, min_size=2, max_size=12, unique=True))
def test_one_row_a_person_has_the_error_of_welch(first: list[float], second: list[float]) -> None:
    people: list[Any] = [[f"a{at}" for at in range(len(first))], [f"b{at}" for at in range(len(second))]]
    found = clustered_error([np.array(first), np.array(second)], people)
    assert found == pytest.approx(math.sqrt(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second)))


@given(st.lists(st.tuples(values, values), min_size=3, max_size=12, unique=True))
def test_one_row_in_each_group_has_the_error_of_pairs(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    people = [list(range(len(pairs)))] * 2
    paired = np.std(first - second, ddof=1) / math.sqrt(len(pairs))
    assert clustered_error([first, second], people) == pytest.approx(paired, abs=1e-9)


@pytest.mark.parametrize(
    ("who", "outcomes", "whole"),
    [
        (["a", "b", "c"], ["true", "true", "false"], [2, 1]),
        (["a", "a", "a", "b", "b", "b"], ["true", "true", "false", "true", "true", "false"], [1, 1]),
        (["a", "a", None, None], ["true", "true", "true", "false"], [2, 1]),
        (["a", "b"], [None, "false"], [0, 1]),
        ([], [], [0, 0]),
    ],
)
def test_shares_are_rounded_to_whole_people(
    who: list[str | None], outcomes: list[str | None], whole: list[int]
) -> None:
    data = {"participant": who}
    assert shares_of_people(data, np.arange(len(who)), outcomes, ["true", "false"]) == whole


@pytest.mark.slow
def test_no_shipped_study_has_rows_that_are_not_people() -> None:
    """The guessing game counts three moves of each player; it says `by: participant`."""
    said = {name: read_study(path.parent) for name, path in shipped_studies().items()}
    counted = {name: [test.id for _, test in study.tests if test.by] for name, study in said.items()}
    expected = ["half", "two_thirds", "four_thirds", "half", "two_thirds"]
    assert {name: tests for name, tests in counted.items() if tests} == {"beauty_contest": expected}


@pytest.mark.slow
def test_a_derive_that_never_ends_is_stopped_and_named(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    derive = f"{endless} SELECT participant, arm, q1 + (SELECT count(*) FROM n WHERE i < 0) AS q FROM responses"
    with pytest.raises(BadDataset) as caught:
        read_study(study_in(tmp_path, derive))
    [fault] = caught.value.faults
    assert fault.place.startswith("derive")
    assert "took longer than 20 seconds and was stopped" in str(fault)
