"""The human copy test: an agent that answers as people did must agree with them.

Two layers. `statistic_copy` makes rows of `data` from the numbers that the human Bayes factor uses,
to check the tests. `answer_copy` reads the answers included with a study, to check the parser and
`derive`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat import formats
from karat.documents.rows import read_rows
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat_studies.kinds.study.experiments import Response, data_of_each, to_study_tests
from karat_studies.kinds.study.fields import read_answers
from karat_studies.kinds.study.format import Arm, StudyFile, Test
from karat_studies.kinds.study.samples import in_units
from karat_studies.kinds.study.sides import (
    agent_side,
    cell_sizes,
    human_side,
    levels_of,
    reference_of,
)
from karat_studies.replication import Agreement, Side, StudyTest, TestScore, score_tests

Floats = NDArray[np.float64]
_STEPS = 2_000  # of the search for a permutation with a given rank correlation


def statistic_copies(study: StudyFile) -> list[StudyTest]:
    """Every test with people's numbers on both sides: the agent's come from rows, processed like an
    agent's.

    A test without usable human numbers has none on either side.
    """
    tests = []
    for finding, test in study.tests:
        human = human_side(test, study.arms)
        if human.missing is not None:
            agent = Side(missing=human.missing)
        else:
            agent = agent_side(test, statistic_copy(test, human, study.arms))

        tests.append(
            StudyTest(
                study=study.study,
                finding=finding.id,
                sub_study=finding.sub_study,
                test=test.id,
                kind=test.statistic_kind,
                domain=study.domain,
                human=human,
                agent=agent,
                coverage=1.0,
            )
        )

    return tests


def answer_copy(study: StudyFile) -> list[Response]:
    """The answers of people's copy, through the parser: one row per participant of `copy.jsonl`.

    A row has `participant`, `arm`, and `answers` (field → value) or `text` (the reply). For a
    relabelled study the answers are given in its other amounts, so they pass its parser. Raises
    BadDataset for rows of no arm, with fields it does not have, or that cannot be read.
    """
    path = study.folder / ANSWERS
    rows = read_rows(path)
    faults = list(rows.faults)
    responses = []
    for number, row in rows.rows:
        place = f"{rows.unit} {number}"
        arm = study.arms.get(str(row.get("arm")))
        if arm is None:
            hint = did_you_mean(str(row.get("arm")), study.arms)
            faults.append(
                Fault(place=place, message=f"the study has no arm '{row.get('arm')}'{hint}")
            )
            continue

        given = row.get("answers")
        scales = {name: field.scale for name, field in arm.answered.items() if field.scale != 1}
        scaled = (
            {
                # 4.35 · 100 is 434.99999999999994
                name: round(value * scales[name], 9)
                if name in scales and isinstance(value, (int, float))
                else value
                for name, value in given.items()
            }
            if study.relabel and isinstance(given, dict)
            else given
        )
        if isinstance(scaled, dict):
            text = msgspec.json.encode(scaled).decode()
        else:
            text = str(row.get("text", ""))

        # The fields of a row: in a game with roles those of the matching role
        own = []
        for role in arm.roles.values():
            if isinstance(given, dict) and set(role.fields) & set(given):
                own.append(role.fields)

        if len(own) == 1:
            asked = own[0]
        else:
            asked = arm.answered

        read = read_answers(text, asked)
        faults += [
            Fault(
                place=place,
                message=(
                    f"arm '{row['arm']}' has no field '{name}'{did_you_mean(name, arm.answered)}"
                ),
            )
            for name in (given if isinstance(given, dict) else ())
            if name not in arm.answered
        ]
        faults += [
            Fault(place=place, message=f"'{name}' is {kind}")
            for name, kind in read.kinds.items()
            if not asked[name].optional
        ]
        responses.append(
            Response(
                participant=str(row.get("participant", number)),
                arm=str(row["arm"]),
                values=in_units(read.values, scales),
                profile={name: row.get(name) for name in study.attributes},
                group=row.get("group"),
                round=row.get("round"),
                fields=tuple(asked) if len(asked) < len(arm.answered) else None,
            )
        )

    if faults:
        raise BadDataset(str(path), faults)
    return responses


def statistic_copy(
    test: Test, human: Side, arms: Mapping[str, Arm] | None = None
) -> dict[str, list[Any]]:
    """Rows of `data` with the human statistic: column → values."""
    column = "everybody"
    levels: list[Any] = [True]
    if test.groups is not None:
        column = test.groups.column
        levels = list(test.groups.levels)

    second = test.against if isinstance(test.against, str) else None
    if test.factors:
        return _factorial(test, human, arms or {})
    if test.kind == "contingency":
        outcomes = test.outcomes or [True, False]
        samples: list[list[Any]] = []
        for row in human.table or ():
            counted = zip(outcomes, row, strict=True)
            samples.append([one for one, count in counted for _ in range(count)])

    elif test.kind in {"binomial", "proportion"}:
        samples = [[True] * round(human.statistic) + [False] * round(human.n1 - human.statistic)]
    elif test.kind in {"correlation", "spearman"}:
        n = round(human.n1)
        first = _pattern(n)
        if test.kind == "spearman":
            first = np.arange(n, dtype=np.float64)
            other = _permutation(n, human.statistic)
        else:
            # orthogonal to the straight line, as it is symmetric
            bent = first**2 - (first**2).mean()
            other = np.asarray(
                human.statistic * first
                + math.sqrt(1 - human.statistic * human.statistic) * bent / bent.std(ddof=1)
            )

        return {
            column: [levels[0]] * len(first),
            test.measure: first.tolist(),
            second or "against": other.tolist(),
        }
    elif test.kind in {"ttest_paired", "ttest_one", "wilcoxon"}:
        # Differences with the given t, or with signed ranks as close to z as ranks allow
        n = round(human.n1)
        if test.kind != "wilcoxon":
            apart = np.asarray(_pattern(n) + human.statistic / math.sqrt(n))
        else:
            spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
            left = round(min(max(human.statistic * spread + n * (n + 1) / 4, 0), n * (n + 1) / 2))
            apart = -np.arange(1.0, n + 1)
            for rank in range(n, 0, -1):
                if rank <= left:
                    apart[rank - 1], left = rank, left - rank

        samples = [(apart + reference_of(test)).tolist()]
    else:
        samples = [sample.tolist() for sample in _groups(test.kind, human, len(levels))]

    data: dict[str, list[Any]] = {
        column: [level for level, sample in zip(levels, samples, strict=False) for _ in sample],
        test.measure: [value for sample in samples for value in sample],
    }
    if second is not None:
        data[second] = [0.0] * len(data[test.measure])
    return data


def _pattern(n: int) -> Floats:
    """N numbers with mean 0 and standard deviation 1."""
    if n < 2:
        return np.zeros(1)
    values = np.linspace(-1.0, 1.0, n)
    return np.asarray(values / values.std(ddof=1))


def _groups(kind: str, human: Side, count: int) -> list[Floats]:
    sizes = [round(size) for size in (human.sizes or (human.n1, human.n2)) if not math.isnan(size)]
    if len(sizes) != count:
        sizes = [
            max(2, round((human.df1 + 2 if kind != "anova" else human.df1 + human.df2 + 1) / count))
        ] * count

    patterns = [_pattern(n) for n in sizes]
    if kind == "mannwhitney":
        # Without ties; the first sample is above the second in u of all pairs
        n1, n2 = sizes
        least, more = divmod(round(human.statistic), n1)
        beaten = np.full(n1, least, dtype=np.float64)
        beaten[:more] += 1
        return [beaten - 0.5 + np.linspace(-0.1, 0.1, n1), np.arange(n2, dtype=np.float64)]

    if kind == "variance_ratio":
        return [patterns[0] * math.sqrt(human.statistic), patterns[1]]
    if kind == "anova":
        means = _means_apart(
            human, np.array([len(pattern) for pattern in patterns], dtype=np.float64)
        )
        return [pattern + mean for pattern, mean in zip(patterns, means, strict=True)]

    error = math.sqrt(sum(1 / n for n in sizes))
    return [patterns[0] + human.statistic * error, patterns[1]]


def _means_apart(human: Side, sizes: Floats) -> Floats:
    """The means of groups of these sizes, with sd 1 in each; the first above the second, according
    to the sign.
    """
    means = np.arange(len(sizes), 0, -1, dtype=np.float64) * (human.sign or 1)
    grand = (sizes * means).sum() / sizes.sum()
    between = (sizes * (means - grand) ** 2).sum() / (len(sizes) - 1)
    return np.asarray(means * math.sqrt(human.statistic / between))


def _factorial(test: Test, human: Side, arms: Mapping[str, Arm]) -> dict[str, list[object]]:
    """The cells of a design with only the one effect: column → values."""
    groups = test.cells
    per_cell = len(test.cells[0])
    sizes = cell_sizes(test, levels_of(test, arms))
    if sizes is None:
        sizes = [max(2, round((human.df2 / sum(map(len, groups))) + 1))] * sum(map(len, groups))
    patterns = [_pattern(n) for n in sizes]
    effective = []
    for at in range(0, len(sizes), per_cell):
        effective.append(per_cell**2 / sum(1 / n for n in sizes[at : at + per_cell]))
    means = _means_apart(human, np.array(effective))
    cells = [(cell, mean) for group, mean in zip(groups, means, strict=True) for cell in group]
    columns: dict[str, list[object]] = {name: [] for name in (*groups[0][0], test.measure)}
    for (cell, mean), values in zip(cells, patterns, strict=True):
        for name, level in cell.items():
            columns[name] += [level] * len(values)
        columns[test.measure] += (values + mean).tolist()

    return columns


def _permutation(n: int, r: float) -> Floats:
    """Ranks whose squared distances from 1 … n sum as closely as possible to the value required by
    r.

    Swapping two places changes the sum by 2·(i − j)·(their ranks' difference): the best swap
    is made until none improves; then two places are swapped at random, and it repeats.
    """
    places = np.arange(n, dtype=np.float64)
    target = (1 - r) * n * (n * n - 1) / 6
    if r >= 0:
        order = places.copy()
    else:
        order = places[::-1].copy()

    best = order.copy()
    nearest = math.inf
    dice = np.random.default_rng(n)  # any seed: the same copy each time
    for _ in range(_STEPS):
        missing = target - float(((order - places) ** 2).sum())
        if abs(missing) < nearest:
            best = order.copy()
            nearest = abs(missing)
        if nearest <= 1:  # the sum is even
            break
        changes = 2 * np.subtract.outer(places, places) * np.subtract.outer(order, order)
        one, two = np.unravel_index(np.argmin(np.abs(changes - missing)), changes.shape)
        if abs(changes[one, two] - missing) >= abs(missing):
            one, two = dice.integers(n, size=2)
        order[[one, two]] = order[[two, one]]

    return best


ANSWERS = "copy.jsonl"
_EXACT = (1e-6, 1e-6)  # of d, and of PAS: the copy of the statistic
_RANKED = 2e-3  # … of ranks, where only some values of the statistic can be attained
_NEAR = (0.05, 0.02)  # the copy of the answers
_ROUNDED = 1e-9
_RANKS = {"spearman", "mannwhitney", "wilcoxon"}


class CopyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One layer: people's numbers as rows of `data`, or answers through parser and SQL."""

    layer: Literal["statistic", "answers"]
    tests: int  # that could be compared
    left_out: int  # without human numbers to copy
    apart: tuple[str, ...]  # differences from people, with their size
    reason: str | None = None  # why the layer was not checked
    unordered: tuple[str, ...] = ()  # tests whose result depends on the order of the answers

    @property
    def passed(self) -> bool:
        """Whether nothing differs; also if it was not checked."""
        return not self.apart


def human_scores(study: StudyFile) -> Agreement:
    """Every test with people's numbers on both sides."""
    return score_tests(statistic_copies(study))


def tested_copies(study: StudyFile, people: Agreement) -> tuple[CopyTest, CopyTest]:
    """Both layers. `people`: from `human_scores`."""
    wrong = []
    for score in people.tests:
        if text := _difference(score, _ranked(score) if score.test.kind in _RANKS else _EXACT):
            wrong.append(text)

    usable = [score for score in people.tests if score.test.human.missing is None]
    statistic = CopyTest(
        layer="statistic",
        tests=len(usable),
        left_out=len(people.tests) - len(usable),
        apart=tuple(wrong),
    )
    return statistic, _answers(study)


def _answers(study: StudyFile) -> CopyTest:
    if not (study.folder / ANSWERS).is_file():
        return _failed(study, reason=f"there is no {ANSWERS}")
    if study.reducer is not None:
        return _failed(study, reason=f"the study runs its own code, {study.reducer}")
    try:
        answers = answer_copy(study)
        data, turned = data_of_each(study, [answers, answers[::-1]])
        tests = to_study_tests(study, answers, data=data)
        again = to_study_tests(study, answers, data=turned)
    except BadOption as bad:
        return _failed(study, str(bad))
    except BadDataset as bad:
        return _failed(study, *map(str, bad.faults))

    scores = score_tests(tests).tests
    wrong = [text for score in scores if (text := _difference(score, _NEAR))]
    usable = sum(score.test.human.missing is None for score in scores)
    unordered = []
    for test, other in zip(tests, again, strict=True):
        # Equal up to rounding: a sum in another order has other last digits
        sides = (test.agent, other.agent)
        missing = [side.missing is not None for side in sides]
        one, two = map(_flat, sides)
        alike = all(missing)
        if not any(missing) and len(one) == len(two):
            alike = np.allclose(one, two, rtol=_ROUNDED, atol=_ROUNDED, equal_nan=True)
        if not alike:
            unordered.append(_label(test))

    return CopyTest(
        layer="answers",
        tests=usable,
        left_out=len(scores) - usable,
        apart=tuple(wrong),
        unordered=tuple(unordered),
    )


def _flat(side: Side) -> list[float]:
    cells = []
    for row in side.table or ():
        for cell in row:
            cells.append(float(cell))

    numbers = (side.statistic, side.n1, side.n2, side.df1, side.df2, side.tie_term, side.d)
    return [*numbers, *side.sizes, *cells, math.nan if side.sign is None else float(side.sign)]


def _failed(study: StudyFile, *messages: str, reason: str | None = None) -> CopyTest:
    return CopyTest(
        layer="answers",
        tests=0,
        left_out=len(study.tests),
        apart=messages,
        reason=reason,
    )


def _difference(score: TestScore, limits: tuple[float, float]) -> str:
    """How the copy differs from people; "" if it does not, or if there is nothing to compare."""
    test = score.test
    if test.human.missing is not None:
        return ""
    if test.agent.missing is not None:
        return f"{_label(test)}: the copy has no result: {test.agent.missing}"
    if _sizes(test.human) != _sizes(test.agent):
        return (
            f"{_label(test)}: n of people {_listed(_sizes(test.human))}, of the copy "
            f"{_listed(_sizes(test.agent))}"
        )

    if test.coverage < 1:
        return f"{_label(test)}: not every answer of the copy could be read"
    if score.same_direction is False:
        return f"{_label(test)}: the copy has the opposite direction"
    if _differs(score.human.d, score.agent.d, limits[0]):
        return (
            f"{_label(test)}: d of people {_three_digits(score.human.d)}, of the copy "
            f"{_three_digits(score.agent.d)}"
        )

    if _differs(score.ceiling, score.pas, limits[1]):
        return (
            f"{_label(test)}: PAS {_three_digits(score.pas)}, of a perfect copy "
            f"{_three_digits(score.ceiling)}"
        )

    return ""


def _differs(people: float, copy: float, most: float) -> bool:
    """What people do not have is not compared: some tests have no d, and some no Bayes factor."""
    return not math.isnan(people) and not abs(people - copy) <= most


def _ranked(score: TestScore) -> tuple[float, float]:
    """… and half a step between two such values, as d, if that is more."""
    side = score.test.human
    if math.isnan(side.n2):
        pairs = side.n1 * side.n1 / 2
    else:
        pairs = side.n1 * side.n2

    most = max(_RANKED, 2 / pairs * (1 + score.human.d**2 / 4) ** 1.5)
    return most, most


def _sizes(side: Side) -> list[float]:
    if side.table is not None:
        groups = [float(sum(row)) for row in side.table]
    else:
        groups = [side.n1, side.n2, *side.sizes]

    return [group for group in groups if not math.isnan(group)]


def _label(test: StudyTest) -> str:
    return " ".join(filter(None, (test.sub_study, test.finding, test.test)))


def _listed(sizes: Sequence[float]) -> str:
    return " and ".join(formats.brief(size) for size in sizes) or "unknown"


def _three_digits(value: float) -> str:
    return formats.number(value, digits=3)
