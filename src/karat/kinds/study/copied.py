"""The human copy test of one study: whether an agent that answers as people did gets their result, in both layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from karat import formats
from karat.errors import BadDataset, BadOption
from karat.kinds.study.copy import answer_copy, statistic_copies
from karat.kinds.study.format import StudyFile
from karat.kinds.study.tests import data_of_each, to_study_tests

if TYPE_CHECKING:
    from karat.replication import Agreement, Side, StudyTest, TestScore

__all__ = ["CopyTest", "human_scores", "tested_copies"]

ANSWERS = "copy.jsonl"
_EXACT = (1e-6, 1e-6)  # of d, and of PAS: the copy of the statistic
_RANKED = (2e-3, 2e-3)  # … of ranks, where only some values of the statistic can be attained
_NEAR = (0.05, 0.02)  # the copy of the answers
_ROUNDED = 1e-9
_RANKS = {"spearman", "mannwhitney", "wilcoxon"}


class CopyTest(msgspec.Struct, frozen=True, kw_only=True):
    """One layer: people's numbers as rows of `data`, or answers through parser and SQL."""

    layer: Literal["statistic", "answers"]
    tests: int  # that could be compared
    left_out: int  # without human numbers that a copy could have
    apart: tuple[str, ...]  # what differs from people, and by how much
    reason: str | None = None  # why the layer was not tried
    unordered: tuple[str, ...] = ()  # tests that come out otherwise where the same answers stand in another order

    @property
    def passed(self) -> bool:
        """Whether nothing differs; also where it was not tried."""
        return not self.apart


def human_scores(study: StudyFile) -> Agreement:
    """Every test with people's numbers on both sides."""
    from karat.replication import score_tests

    return score_tests(statistic_copies(study))


def tested_copies(study: StudyFile, people: Agreement) -> tuple[CopyTest, CopyTest]:
    """Both layers. `people`: as `human_scores` gives them."""
    wrong = [one for score in people.tests if (one := _difference(score, _limits(score.test.kind)))]
    usable = [score for score in people.tests if score.test.human.missing is None]
    statistic = CopyTest(
        layer="statistic", tests=len(usable), left_out=len(people.tests) - len(usable), apart=tuple(wrong)
    )
    return statistic, _answers(study)


def _answers(study: StudyFile) -> CopyTest:
    from karat.replication import score_tests

    if not (study.folder / ANSWERS).is_file():
        return _untried(study, f"there is no {ANSWERS}")
    if study.reducer is not None:
        return _untried(study, f"the study runs code of its own, {study.reducer}")
    try:
        answers = answer_copy(study)
        data, turned = data_of_each(study, [answers, answers[::-1]])
        tests = to_study_tests(study, answers, data=data)
        again = to_study_tests(study, answers, data=turned)
    except BadOption as bad:
        return _failed(study, [str(bad)])
    except BadDataset as bad:
        return _failed(study, [str(fault) for fault in bad.faults])
    scores = score_tests(tests).tests
    wrong = [one for score in scores if (one := _difference(score, _NEAR))]
    usable = sum(score.test.human.missing is None for score in scores)
    unordered = [_label(one) for one, other in zip(tests, again, strict=True) if not _alike(one.agent, other.agent)]
    return CopyTest(
        layer="answers",
        tests=usable,
        left_out=len(scores) - usable,
        apart=tuple(wrong),
        unordered=tuple(unordered),
    )


def _alike(one: Side, other: Side) -> bool:
    """But for rounding: a sum in another order has other last digits."""
    pairs = ((_flat(one), _flat(other)),) if one.missing is None and other.missing is None else ()
    return (one.missing is None) == (other.missing is None) and all(
        len(first) == len(second) and all(map(_equal, first, second)) for first, second in pairs
    )


def _flat(side: Side) -> list[float]:
    cells = [float(cell) for row in side.table or () for cell in row]
    numbers = (side.statistic, side.n1, side.n2, side.df1, side.df2, side.tie_term, side.d)
    return [*numbers, *side.sizes, *cells, math.nan if side.sign is None else float(side.sign)]


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDED, abs_tol=_ROUNDED) or (math.isnan(one) and math.isnan(other))


def _untried(study: StudyFile, reason: str) -> CopyTest:
    return CopyTest(layer="answers", tests=0, left_out=len(study.tests), apart=(), reason=reason)


def _failed(study: StudyFile, messages: Sequence[str]) -> CopyTest:
    return CopyTest(layer="answers", tests=0, left_out=len(study.tests), apart=tuple(messages))


def _limits(kind: str) -> tuple[float, float]:
    return _RANKED if kind in _RANKS else _EXACT


def _difference(score: TestScore, limits: tuple[float, float]) -> str:
    """In what the copy is not what people did; "" where it is, and where there is nothing to compare."""
    test = score.test
    if test.human.missing is not None:
        return ""
    if test.agent.missing is not None:
        return f"{_label(test)}: the copy has no result: {test.agent.missing}"
    if _sizes(test.human) != _sizes(test.agent):
        return f"{_label(test)}: n of people {_listed(_sizes(test.human))}, of the copy {_listed(_sizes(test.agent))}"
    if test.coverage < 1:
        return f"{_label(test)}: not every answer of the copy could be read"
    if score.same_direction is False:
        return f"{_label(test)}: the copy has the opposite direction"
    if _apart(score.human.d, score.agent.d, limits[0]):
        return f"{_label(test)}: d of people {_told(score.human.d)}, of the copy {_told(score.agent.d)}"
    if _apart(score.pas, score.ceiling, limits[1]):
        return f"{_label(test)}: PAS {_told(score.pas)}, of a perfect copy {_told(score.ceiling)}"
    return ""


def _apart(one: float, other: float, most: float) -> bool:
    """Neither known is alike: some tests have no d, and some no Bayes factor."""
    return math.isnan(one) != math.isnan(other) or abs(one - other) > most


def _sizes(side: Side) -> list[float]:
    groups = [float(sum(row)) for row in side.table] if side.table is not None else [side.n1, side.n2, *side.sizes]
    return [one for one in groups if not math.isnan(one)]


def _label(test: StudyTest) -> str:
    return " ".join(part for part in (test.sub_study, test.finding, test.test) if part)


def _listed(sizes: Sequence[float]) -> str:
    return " and ".join(formats.brief(one) for one in sizes) or "unknown"


def _told(value: float) -> str:
    return formats.number(value, digits=3)
