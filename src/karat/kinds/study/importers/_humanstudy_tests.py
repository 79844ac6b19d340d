"""Findings of a study folder → findings of the draft: what can be read about each test, and what stays undecided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from karat.formats import excerpt
from karat.importers import Open
from karat.kinds.study.importers._humanstudy_arms import ArmDraft
from karat.kinds.study.importers._humanstudy_files import Notes, Spot, slug
from karat.kinds.study.importers._humanstudy_statistics import (
    Beside,
    Point,
    ReportedText,
    check_point,
    check_reported_text,
    nested,
    numbers_of,
    points,
    reported_in,
    rows,
    shares_in,
)

__all__ = ["FindingDraft", "TestDraft", "findings_of"]

_TWO = {"ttest_ind", "welch", "mannwhitney", "variance_ratio"}
_GROUPED = {*_TWO, "anova", "contingency"}
_PAIRED = {"ttest_paired", "correlation", "spearman"}
_MEANS = {"ttest_ind", "welch", "anova"}
_NUMERIC = {"number", "likert"}
_BY_NAME = [  # pattern in a test's name → kind; the first match counts
    (r"wilcoxon.*(rank[- ]?sum)|mann[- ]?whitney|\bu[- ]test", "mannwhitney"),
    (r"wilcoxon", "wilcoxon"),
    (r"variances|f[- ]test of variance", "variance_ratio"),
    (r"spearman|rank correlation", "spearman"),
    (r"chi[- ]?squared?|χ|fisher's exact|contingency", "contingency"),
    (r"binomial|sign test", "binomial"),
    (r"welch", "welch"),
    (r"paired|matched.*t[- ]test|dependent.*t[- ]test(?<!independent)", "ttest_paired"),
    (r"one[- ]sample.*t[- ]test", "ttest_one"),
    (r"independent.*t[- ]test|two[- ]sample.*t[- ]test", "ttest_ind"),
]


class TestDraft(msgspec.Struct):
    """One test; keys that are missing in `values` are undecided."""

    id: str
    name: str  # as the source calls it
    hypothesis: str
    reported: ReportedText | None
    where: str
    values: dict[str, Any] = {}
    human: dict[str, Any] = {}
    open: list[tuple[str, str]] = []  # key, question


class FindingDraft(msgspec.Struct):
    """One finding with its tests, and every number of people given with it."""

    id: str
    sub_study: str
    claim: str | None
    where: str
    tests: list[TestDraft] = []
    points: list[Point] = []
    rows: list[tuple[str, str]] = []  # every number, as a line, and its place
    nested: list[ReportedText] = []

    def open(self, at: int) -> list[Open]:
        """What is undecided in it, as finding number `at` of the draft."""
        here = f"findings.{at}"
        undecided = []
        if self.claim is None:
            undecided.append(Open(place=f"{here}.claim", question="what the finding claims", source=self.where))
        if not self.tests:
            question = "which test shows it: the source has none; or leave the finding out"
            undecided.append(Open(place=f"{here}.tests", question=question, source=self.where))
        for number, test in enumerate(self.tests):
            undecided += [
                Open(place=f"{here}.tests.{number}.{key}", question=question, source=test.where)
                for key, question in test.open
            ]
        return undecided


def findings_of(
    truth: Spot, arms: Sequence[ArmDraft], *, people: Sequence[float], weights: Spot, notes: Notes
) -> list[FindingDraft]:
    """Every finding, in source order."""
    findings: list[FindingDraft] = []
    for at, study in enumerate(truth.get("studies").items()):
        sub_study = slug(study.get("study_id").as_text() or f"study_{at + 1}")
        for number, spot in enumerate(study.get("findings").items()):
            finding = _finding(spot, f"F{number + 1}", sub_study, arms, people)
            while any((other.sub_study, other.id) == (sub_study, finding.id) for other in findings):
                finding.id += "'"
            _weigh(finding, weights)
            findings.append(finding)
    for finding in findings:
        for point in finding.points:
            if wrong := check_point(point) or _other_size(point, arms):
                notes.add("contradiction", f"{excerpt(point.label, 60)}: {wrong}", point.where)
    return findings


def _other_size(point: Point, arms: Sequence[ArmDraft]) -> str:
    """What is wrong with the n of a group that has the name of an arm; "" for nothing."""
    n = point.numbers.get("n")
    own = next((arm.n for arm in arms if arm.name == slug(point.label)), None)
    return f"n is {n:g}, specification.json has {own}" if n is not None and own is not None and n != own else ""


def _finding(spot: Spot, name: str, sub_study: str, arms: Sequence[ArmDraft], people: Sequence[float]) -> FindingDraft:
    data = spot.get("original_data_points")
    tests = spot.get("statistical_tests").items()
    strings = [reported_in(test.get("reported_statistics")) for test in tests]
    shares = {share for some in strings for reported in some for share in shares_in(reported.text)}
    finding = FindingDraft(
        id=(spot.get("finding_id").as_text() or name)[:60], sub_study=sub_study,
        claim=spot.get("main_hypothesis").text(), where=spot.where,
        points=points(data, shares=shares), rows=rows(data), nested=nested(data),
    )  # fmt: skip
    numbers = numbers_of(data)
    sizes = [point.numbers["n"] for point in finding.points if "n" in point.numbers]
    total = sum(sizes)
    beside = Beside(
        points=finding.points, numbers=numbers, people=[*sizes, total, *people],
        alone=sum(len(group) for group in strings) == 1,
    )  # fmt: skip
    for test, some in zip(tests, strings, strict=True):
        for string in some:
            check_reported_text(string, beside, name=test.get("test_name").text() or "")
    for string in finding.nested:
        check_reported_text(string, beside)
    for at, (test, some) in enumerate(zip(tests, strings, strict=True), 1):
        for part, reported in enumerate(some or [None]):
            letter = chr(ord("a") + part % 26) if len(some) > 1 else ""
            finding.tests.append(_test(test, f"T{at}{letter}", reported, finding, arms, alone=beside.alone))
    return finding


def _test(
    spot: Spot, name: str, string: ReportedText | None, finding: FindingDraft, arms: Sequence[ArmDraft], *, alone: bool
) -> TestDraft:
    test = TestDraft(
        id=name, name=spot.get("test_name").text() or "", hypothesis=spot.get("statistical_hypothesis").text() or "",
        reported=string, where=string.where if string is not None else spot.where,
    )  # fmt: skip
    kind = _kind(test, finding)
    if kind is None:
        called = excerpt(test.name, 60)
        test.open.append(("kind", f"which kind of test this is, and what it compares; the source calls it '{called}'"))
    else:
        test.values["kind"] = kind
    _read_human(test, kind)
    groups, expect = _ordered(test, kind, finding, arms)
    if groups:
        test.values["groups"] = {"column": "arm", "levels": groups}
        test.human |= _by_level(groups, finding)
    elif kind in _GROUPED:
        labels = excerpt("; ".join(point.label for point in finding.points[:12]), 100) or "no groups"
        test.open.append(("groups.column", "which column tells the groups apart: arm, or an answer"))
        test.open.append(("groups.levels", f"which groups, the first against the second; the source has {labels}"))
    if kind in {"binomial", "proportion"} and alone and len(finding.points) == 1 and not groups:
        numbers = finding.points[0].numbers
        test.human |= {key: int(numbers[key]) for key in ("n", "k") if numbers.get(key, -1) >= (key == "n")}
    # The only number that all groups answer; anything else must be decided by a person
    own = [arm.fields for arm in arms if arm.name in groups]
    shared = {name for name in (own[0] if own else {}) if all(name in fields for fields in own)}
    only = next(iter(shared)) if len(shared) == 1 and all(len(fields) == 1 for fields in own) else None
    numeric = only is not None and all((fields[only] or {}).get("type") in _NUMERIC for fields in own)
    if numeric and kind in _GROUPED - {"contingency"}:
        test.values["measure"] = only
    else:
        test.open.append(("measure", "which answer, or which column that `derive` makes of them"))
    if kind in _PAIRED:
        test.open.append(("against", "the second column"))
    if expect is not None:
        test.values["expect"] = expect
    else:
        direction = spot.get("expected_direction").as_text()
        claim = f"; the source says '{excerpt(direction, 20)}'" if direction else ""
        test.open.append(("expect", f"which direction is claimed{claim}: '{excerpt(test.hypothesis, 120)}'"))
    return test


def _kind(test: TestDraft, finding: FindingDraft) -> str | None:
    """The kind, if name and statistic leave only one; else None."""
    reported = test.reported.found if test.reported is not None else None
    name = test.name[:200].lower()
    by_name = next((kind for words, kind in _BY_NAME if re.search(words, name)), None)
    if reported is None:
        given = test.reported.described if test.reported is not None else ()
        versus = test.reported is not None and re.search(r"\b(?:vs\.?|versus)\b", test.reported.text)
        pair = versus and len(given) == 2 and sum(given) != 100  # 41 % and 59 % belong to one group
        return by_name or ("contingency" if pair else None)
    fits = {
        "t": {"ttest_ind", "welch", "ttest_paired", "ttest_one"}, "F": {"anova", "variance_ratio"},
        "r": {"correlation", "spearman"}, "chi2": {"contingency"}, "U": {"mannwhitney"},
        "z": {"wilcoxon", "mannwhitney", "binomial", "contingency"},
    }[reported.kind]  # fmt: skip
    if by_name is not None and by_name in fits:
        return by_name
    if reported.kind == "t":
        sizes = [point.numbers["n"] for point in finding.points if "n" in point.numbers]
        return "ttest_ind" if len(sizes) == 2 and reported.df1 == sum(sizes) - 2 else None
    spearman = reported.kind == "r" and re.search(r"\brs\b|rho|ρ|r_s|rₛ", test.reported.text if test.reported else "")
    only = {"F": "anova", "r": "spearman" if spearman else "correlation", "chi2": "contingency", "U": "mannwhitney"}
    return only.get(reported.kind)


def _read_human(test: TestDraft, kind: str | None) -> None:
    """Stores what the string gives under the keys of a study file."""
    if test.reported is None:
        return
    reported = test.reported.found
    if reported is not None:
        name = "ratio" if kind == "variance_ratio" and reported.statistic > 0 else reported.kind
        test.human[name] = reported.statistic
        named = {"df1": reported.df1, "df2": reported.df2, "n": reported.n if kind not in _GROUPED else None}
        if reported.kind in {"t", "F"} or kind in _PAIRED:
            test.human |= {key: _whole(value) for key, value in named.items() if value is not None and value >= 1}
    test.human["reported"] = test.reported.text


def _ordered(
    test: TestDraft, kind: str | None, finding: FindingDraft, arms: Sequence[ArmDraft]
) -> tuple[list[str], str | None]:
    """Groups and direction, if the hypothesis itself orders two arms that have data: `a > b`.

    The direction is set only if means with sizes agree with it: otherwise we would be choosing the sign ourselves.
    """
    if kind not in _GROUPED:
        return [], None
    known = {slug(point.label): point for point in finding.points}
    named = {arm.name: arm for arm in arms if arm.name in known}
    sides = re.split(r"\s*(>|<|≠|=)\s*", test.hypothesis[:400])
    if len(sides) != 3 or len(named) != len(known):
        return [], None
    left, right = (
        [
            arm.name
            for arm in named.values()
            if any(
                re.search(rf"(?<!\w){re.escape(word)}(?!\w)", side, re.IGNORECASE) is not None
                for word in {arm.name, arm.label}
            )
        ]
        for side in (sides[0], sides[2])
    )
    if len(left) != 1 or len(right) != 1 or left == right:
        return [], None
    groups = [right[0], left[0]] if sides[1] == "<" else [left[0], right[0]]
    first, second = (known[name].numbers for name in groups)
    negative = test.reported is not None and test.reported.found is not None and test.reported.found.statistic < 0
    if kind not in _MEANS or negative or any(not {"n", "mean"} <= set(numbers) for numbers in (first, second)):
        return groups, None
    if sides[1] in "<>":
        return groups, "greater" if first["mean"] > second["mean"] else None
    return groups, {"=": "equal", "≠": "different"}[sides[1]]


def _by_level(groups: Sequence[str], finding: FindingDraft) -> dict[str, Any]:
    known = {slug(point.label): point.numbers for point in finding.points}
    levels: dict[str, Any] = {}
    for name in groups:
        numbers = known[name]
        counts = {key: int(numbers[key]) for key in ("n", "k") if numbers.get(key, -1) >= (key == "n")}
        levels[name] = counts | {key: _whole(numbers[key]) for key in ("mean", "sd") if key in numbers}
    return levels


def _weigh(finding: FindingDraft, weights: Spot) -> None:
    """Keeps weights other than 1, for other programs."""
    own = [entry for entry in weights.items() if entry.get("finding_id").as_text() == finding.id]
    for test in finding.tests:
        for spot in own[0].get("tests").items() if len(own) == 1 else []:
            weight = spot.get("weight").number()
            if spot.get("test_name").text() == test.name and weight is not None and weight > 0 and weight != 1:
                test.values["weight"] = weight


def _whole(value: float) -> float | int:
    return int(value) if value == int(value) else value
