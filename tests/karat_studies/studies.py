"""A small study, and ways to bend it."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

from karat_studies.kinds.study.format import StudyFile
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study
from karat_studies.replication import Agreement, Difference, Draws, repeated_differences
from karat_studies.replication.evidence import Side

__all__ = ["MATERIALS", "STUDY", "differences", "read", "shipped", "stated", "write"]


def differences(
    first: Agreement, second: Agreement, *, first_draws: Draws, second_draws: Draws, **more: Any
) -> tuple[Difference, Difference]:
    """Of PAS and of ECS, for one repetition."""
    return repeated_differences([first], [second], first_draws=[first_draws], second_draws=[second_draws], **more)


@cache
def shipped(name: str, *, sql: bool = True) -> StudyFile:
    """One of the studies that come with karat, read once; no test changes it."""
    return read_study(shipped_studies()[name], sql=sql)


STUDY = """\
study: small
title: A small study
source: Nobody (1999)
domain: cognition
participants:
  per_arm: human
  profile: {age: [18, 25], gender: {female: 0.5, male: 0.5}, occupation: student}
arms:
  gain: {prompt: materials/gain.md, fields: {choice: {type: choice, options: [A, B]}}, n: 152}
  loss: {prompt: materials/loss.md, fields: {choice: {type: choice, options: [C, D]}}, n: 155}
  rating:
    tasks:
      - {prompt: materials/first.md, fields: {first: {type: likert, range: [1, 7]}}}
      - prompt: materials/second.md
        fields: {second: {type: likert, range: [1, 7]}, why: {type: text, optional: true}}
    n: 40
derive: |
  SELECT *, choice IN ('B', 'D') AS risky, first - second AS apart FROM responses
findings:
  - id: F1
    claim: Losses make people take risks.
    tests:
      - id: T1
        kind: contingency
        groups: {column: arm, levels: [loss, gain]}
        measure: risky
        expect: greater
        human: {loss: {k: 121, n: 155}, gain: {k: 43, n: 152}, reported: "78 % vs 28 %"}
  - id: F2
    claim: First ratings are higher.
    tests:
      - id: T1
        kind: ttest_paired
        measure: first
        against: second
        expect: greater
        human: {t: 2.66, n: 40, mean: 0.84, sd: 2.0, reported: "t(39) = 2.66, p = .011"}
      - id: T2
        kind: correlation
        measure: first
        against: second
        expect: positive
        human: {r: 0.53, n: 40, reported: "r(38) = .53, p < .001"}
"""
MATERIALS = {
    "gain": "600 people are ill.\n\nA: 200 are saved.\nB: One third of a chance that all are saved.\n\nWhich one?",
    "loss": "600 people are ill.\n\nC: 400 die.\nD: One third of a chance that nobody dies.\n\nWhich one?",
    "first": "How much do you like rain, {{ profile.occupation }}?\n\n{{ answer_form }}\n\nTake your time.",
    "second": "How much do you like sunshine?\n\nAnswer with two lines:\nsecond: 1 to 7\nwhy: in a word",
}


def write(folder: Path, text: str = STUDY, materials: dict[str, str] | None = None) -> Path:
    """The study in a folder."""
    (folder / "materials").mkdir(parents=True, exist_ok=True)
    for name, said in {**MATERIALS, **(materials or {})}.items():
        (folder / "materials" / f"{name}.md").write_text(said, encoding="utf-8")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, text: str = STUDY, materials: dict[str, str] | None = None, **options: Any) -> StudyFile:
    """The study, read."""
    return read_study(write(folder, text, materials), **options)


def stated(side: Side) -> dict[str, object]:
    """What a side says: its fields but for None and NaN, which equals nothing."""
    said = {field.name: getattr(side, field.name) for field in dataclasses.fields(side)}
    return {name: value for name, value in said.items() if value is not None and value == value}
