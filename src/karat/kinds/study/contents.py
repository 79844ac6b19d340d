"""What a study holds, as plain values: for `karat check` and `karat list studies`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from karat.kinds.study.copied import CopyTest, human_scores, tested_copies
from karat.kinds.study.format import Arm, Finding, StudyFile, Test
from karat.kinds.study.forms import has_relabelled, wordings_of
from karat.kinds.study.prompts import described
from karat.kinds.study.rounds import round_task
from karat.records import Sample

if TYPE_CHECKING:
    from karat.replication import TestScore

__all__ = ["HeldArm", "HeldTest", "StudyContents", "contents_of"]


class HeldArm(msgspec.Struct, frozen=True, kw_only=True):
    """What some of the participants are shown."""

    name: str
    people: int | None  # how many there were; None: the file does not say
    participants: int  # of the agent
    groups: int | None  # in a game; None: everybody answers alone
    questions: int  # that one participant is asked in this arm
    fields: dict[str, str]  # field → how it is answered
    payoffs: dict[str, str] = {}  # role → what it earns in a round


class HeldTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test, with people's side. None: not known, and `reasons` say why."""

    finding: str  # sub_study/id, or the id
    id: str
    kind: str
    compares: str
    reported: str | None  # as it is printed
    expect: str
    statistic: float | None  # None also where the test is a table
    df1: float | None
    df2: float | None
    table: tuple[tuple[int, ...], ...] | None  # rows = groups
    n: float | None
    d: float | None  # effect
    log_bf: float | None
    reasons: tuple[str, ...]


class HeldFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A claim."""

    id: str  # sub_study/id, or the id
    claim: str
    tests: int


class StudyContents(msgspec.Struct, frozen=True, kw_only=True):
    """One study: `karat list studies NAME --json`, and a part of `karat check STUDY --json`."""

    name: str
    title: str
    source: str
    domain: str
    design: str
    license: str | None
    caveat: str | None
    path: str
    sha256: str
    attributes: tuple[str, ...]  # of the participants
    reducer: str | None  # code of its own that it needs
    wordings: tuple[str, ...]  # what `dataset.wording` may be
    relabelled: bool  # whether `dataset.relabel` shows other names and amounts
    participants: int
    groups: int | None  # None: no game
    questions: int  # asked under one condition, once: calls of the agent
    arms: tuple[HeldArm, ...]
    findings: tuple[HeldFinding, ...]
    tests: tuple[HeldTest, ...]
    copies: tuple[CopyTest, ...]  # empty: not tested
    warnings: tuple[str, ...]


_UNORDERED = (
    "derive: {} comes out otherwise where the same answers stand in another order; "
    "does a LIMIT, first() or OVER () lack its ORDER BY?"
)


def contents_of(study: StudyFile, samples: Sequence[Sample], *, copies: bool = True) -> StudyContents:
    """What the study holds, and the samples that were made of it. `copies=False`: without the copy test."""
    people = human_scores(study)
    arms = tuple(_arm(name, arm, samples) for name, arm in study.arms.items())
    tested = tested_copies(study, people) if copies else ()
    games = [one.groups for one in arms if one.groups is not None]
    return StudyContents(
        name=study.study,
        title=study.title,
        source=study.source,
        domain=study.domain,
        design=study.design,
        license=study.license,
        caveat=study.caveat,
        path=str(study.path),
        sha256=study.sha256,
        attributes=study.attributes,
        reducer=study.reducer,
        wordings=wordings_of(study),
        relabelled=has_relabelled(study),
        participants=sum(len(one.detail.get("members", (one,))) for one in samples),
        groups=sum(games) if games else None,
        questions=sum(len(one.turns) for one in samples),
        arms=arms,
        findings=tuple(
            HeldFinding(id=finding_name(one), claim=one.claim, tests=len(one.tests)) for one in study.findings
        ),
        tests=tuple(_test(*named, score) for named, score in zip(study.tests, people.tests, strict=True)),
        copies=tested,
        warnings=(*study.warnings, *(_UNORDERED.format(name) for copy in tested for name in copy.unordered)),
    )


def finding_name(finding: Finding) -> str:
    """`sub_study/id`, or the id alone."""
    return "/".join(part for part in (finding.sub_study, finding.id) if part)


def _arm(name: str, arm: Arm, samples: Sequence[Sample]) -> HeldArm:
    own = [one for one in samples if any(turn.detail["arm"] == name for turn in one.turns)]
    rounds = arm.rounds
    roles: list[str | None] = list((rounds.roles if rounds is not None else None) or [None])
    shown = arm.shown if rounds is None else tuple(round_task(arm, min(2, rounds.count), role) for role in roles)
    return HeldArm(
        name=name,
        people=arm.n,
        participants=sum(len(one.detail.get("members", (one,))) for one in own),
        groups=None if rounds is None else len(own),
        questions=len(shown) if rounds is None else rounds.count,
        fields={field: described(one) for task in shown for field, one in task.fields.items()},
        payoffs=(rounds.payoffs if rounds is not None else None) or {},
    )


def _test(finding: Finding, test: Test, score: TestScore) -> HeldTest:
    human, side = score.human, score.test.human
    return HeldTest(
        finding=finding_name(finding),
        id=test.id,
        kind=test.kind,
        compares=_compared(test),
        reported=test.human.reported,
        expect=test.expect,
        statistic=_known(side.statistic),
        df1=_known(side.df1),
        df2=_known(side.df2),
        table=side.table,
        n=_known(human.n_eff),
        d=_known(human.d),
        log_bf=_known(human.log_bf),
        reasons=tuple(dict.fromkeys(human.reasons)),
    )


def _compared(test: Test) -> str:
    """`risky: loss, gain`, `first against second`."""
    against = f" against {test.against}" if test.against is not None else ""
    groups = f": {', '.join(test.groups.names)}" if test.groups is not None else ""
    return f"{test.measure}{against}{groups}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
