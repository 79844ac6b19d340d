"""Participants with several rows in one group of a test: their mean first, clustered errors, or a
fault.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat_studies.kinds.study.format import Test

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Columns = Mapping[str, Sequence[Any]]
"""Column → values: the result of `derive`, whose values are text, numbers, booleans or None."""

Rows = Sequence[Places]

COUNTED = ("contingency", "binomial", "proportion")
"""The kinds that count outcomes: a person who has several counts in shares."""


def person_of(data: Columns, row: int) -> Hashable:
    """Who a row is of: a participant, else the row itself, such as one that `derive` made for a
    group.
    """
    people = data.get("participant")
    if people is None or people[row] is None:
        return row
    who: Hashable = people[row]
    return who


def rows_of_people(test: Test, data: Columns, groups: Rows) -> list[Counter[Hashable]]:
    """How many usable rows each participant has, by group of the test."""
    usable = []
    for name in (test.measure, test.against):
        if isinstance(name, str):
            usable.append(name)

    counts = []
    for group in groups:
        rows = []
        for row in group.tolist():
            if all(data[name][row] is not None for name in usable):
                rows.append(row)

        counts.append(Counter(person_of(data, row) for row in rows))

    return counts


def of_people(test: Test, data: Columns, groups: Rows) -> tuple[dict[str, list[object]], Places]:
    """One row per person in each group, with the mean of their known values; and the row it begins
    with.
    """
    columns: dict[str, list[object]] = {name: [] for name in data}
    first: list[int] = []
    averaged = [name for name in (test.measure, test.against) if isinstance(name, str)]
    for group in groups:
        persons: dict[Hashable, list[int]] = {}
        for row in group.tolist():
            persons.setdefault(person_of(data, row), []).append(row)

        for rows in persons.values():
            known = []
            for row in rows:
                own = [data[name][row] for name in averaged]
                if all(isinstance(one, (bool, int, float)) and math.isfinite(one) for one in own):
                    known.append(row)

            first.append(rows[0])
            for name, values in data.items():
                columns[name].append(values[rows[0]])
            for name in averaged:
                values = [float(data[name][row]) for row in known]
                if values:
                    columns[name][-1] = math.fsum(values) / len(values)
                else:
                    columns[name][-1] = None

    return columns, np.array(first, dtype=np.intp)


def shares_of_people(
    data: Columns,
    rows: Places,
    outcomes: Sequence[str | None],
    names: Sequence[str],
) -> list[int]:
    """How many people show each outcome, where a person with several rows counts in shares: rounded
    to whole people.

    `outcomes`: of each of the rows; None: not usable. The largest remainders are rounded up.

    >>> data = {"participant": ["a", "a", "a", "b"]}
    >>> shares_of_people(data, np.arange(4), ["true", "true", "false", "false"], ["true", "false"])
    [1, 1]
    """
    people: dict[Hashable, Counter[str]] = {}
    for row, outcome in zip(rows.tolist(), outcomes, strict=True):
        if outcome in names:
            people.setdefault(person_of(data, row), Counter())[str(outcome)] += 1

    shares = []
    for name in names:
        shares.append(math.fsum(own[name] / own.total() for own in people.values()))
    whole = [math.floor(share + 1e-9) for share in shares]
    by_remainder = sorted(range(len(names)), key=lambda at: whole[at] - shares[at])
    for at in by_remainder[: len(people) - sum(whole)]:
        whole[at] += 1
    return whole


def clustered_error(samples: Sequence[Floats], people: Sequence[Sequence[Hashable]]) -> float:
    """The standard error of a mean, or of the difference of two, with persons as clusters: CR2.

    One person per row gives the error of Welch's t; persons with one row in each of two groups that
    of paired values.

    Bell and McCaffrey (2002), Survey Methodology 28:169.
    """
    values = np.concatenate(samples)
    group = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    design = (group[:, None] == np.arange(len(samples))).astype(np.float64)
    shares = 1 / design.sum(axis=0)
    residuals = values - design @ (design.T @ values * shares)
    contrast = np.array([1.0, -1.0])[: len(samples)] * shares
    order: dict[Hashable, list[int]] = {}
    for row, who in enumerate(who for own in people for who in own):
        order.setdefault(who, []).append(row)
    variance = 0.0
    for rows in order.values():
        own = design[rows]
        held = np.eye(len(rows)) - (own * shares) @ own.T
        roots, vectors = np.linalg.eigh(held)
        inverse = np.where(roots > 1e-10, 1 / np.sqrt(np.maximum(roots, 1e-10)), 0.0)
        adjusted = vectors @ (inverse * (vectors.T @ residuals[rows]))
        variance += float(contrast @ (own.T @ adjusted)) ** 2

    return math.sqrt(variance)
