"""The conclusions from a run over human studies: which differences are shown, headline and
warnings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import stdev
from typing import Literal

import msgspec
from msgspec import structs

from karat import formats, stats
from karat.analysis.numbers import Estimate, mean
from karat.stats import special
from karat_studies.kinds.study.analysis.model import (
    FindingResult,
    FloorDifference,
    StudyCondition,
    StudyFloor,
    StudyInfo,
    StudySummary,
    plain,
    signed,
)

NARROW = 0.1  # of PAS between the floor and a perfect copy: trust has .05, the next study .2
NARROW_STUDY = (
    "random answers and a perfect copy of people hardly differ in PAS; left out of comparisons of "
    "PAS"
)


def above_chance(agent: StudyCondition, part: StudySummary) -> bool:
    """Whether an agent shows knowledge of people: above both floors, and nowhere opposed to people.

    Of agents that give random answers, one arbitrary answer per arm, or an arbitrary distribution
    of them, at most one in 20 passes in any shipped study, and the best of several no more often;
    `benchmarks/knowledge_free.py` counts them.
    """
    floors = _floors(part)
    above_all = all(beyond_floor(floor.of(agent.condition)) for floor in floors)
    return bool(floors) and above_all and not opposed_in(agent)


def can_show(part: StudySummary) -> bool:
    """Whether these studies can tell knowledge from chance: people's own copy is above chance."""
    copies = [floor.copy for floor in _floors(part) if floor.copy is not None]
    return all(beyond_floor(copy) for copy in copies)


def _floors(part: StudySummary) -> list[StudyFloor]:
    """Those that have a score: random answers, and one answer an arm (where that has no score,
    mostly one).
    """
    second = part.floor_one_answer
    both = (part.floor, second if second is None or second.mostly is None else second.mostly)
    return [floor for floor in both if floor is not None and floor.benchmark.pas.value is not None]


def narrow_studies(part: StudySummary) -> list[str]:
    """Studies in which random answers and a perfect copy of people hardly differ in PAS: an agent's
    score there tells little.
    """
    if part.floor is None:
        return []
    ceilings: dict[str, float] = {}
    for condition in part.conditions:
        for study in condition.studies:
            if study.score.ceiling is not None:
                ceilings.setdefault(study.study, study.score.ceiling)

    floors = {score.name: score.pas.value for score in part.floor.studies}
    return [
        name
        for name, top in ceilings.items()
        if (floor := floors.get(name)) is not None and top - floor < NARROW
    ]


def beyond_floor(more: FloorDifference | None) -> bool:
    """Whether PAS is above the floor's mean beyond the error of both, and directional PAS above
    what single draws of the floor reach in 95 of 100 cases; of several designs, in 95 of 100 runs
    of as many.
    """
    return more is not None and more.pas.low is not None and more.pas.low > 0 and more.beyond


def opposed_in(condition: StudyCondition) -> list[str]:
    """The findings, as study/finding, with an effect opposite to people's that PAS counts as
    agreement.
    """
    found = []
    for entry in condition.findings:
        if any(test.opposed for test in entry.tests):
            found.append(f"{entry.study}/{entry.name}")

    return found


def leaves_out_0(estimate: Estimate) -> bool:
    """Whether the interval excludes zero, for a single comparison."""
    return (
        estimate.low is not None
        and estimate.high is not None
        and (estimate.low > 0 or estimate.high < 0)
    )


def beyond_chance(differences: Sequence[Estimate]) -> list[bool]:
    """Whether each difference is shown, allowing for all comparisons: with equal conditions one in
    20 runs has any (at 95 %).

    The interval must exclude 0, and p, from the standard error, adjusted over all (Holm), must be
    small enough.

    >>> one = Estimate(
    ...     value=0.2, low=0.01, high=0.39, se=0.097, n=6, level=0.95, method="", reason=None
    ... )
    >>> beyond_chance([one]), beyond_chance([one, one])
    ([True], [False, False])
    """
    ps = []
    for difference in differences:
        # Two-sided; NaN if there is no difference, or no error
        if difference.value is None or difference.se is None:
            p = math.nan
        elif difference.se == 0:
            p = 1.0 if difference.value == 0 else 0.0
        else:
            p = math.erfc(abs(difference.value) / difference.se / math.sqrt(2))

        ps.append(p)

    adjusted = stats.adjust(ps)
    return [
        leaves_out_0(gap) and bool(p < round(1 - gap.level, 15))
        for gap, p in zip(differences, adjusted, strict=True)
    ]


Verdict = Literal["closer", "different", "not shown"]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents, and how agents that know nothing score in the same studies."""

    difference: Estimate  # second minus first
    above: tuple[bool, bool]  # whether each is above chance
    floor: tuple[float | None, ...]  # of single agents with one answer an arm

    @property
    def winner(self) -> int:
        """Which of the two is ahead."""
        return int((self.difference.value or 0.0) > 0)

    @property
    def beyond_floor(self) -> bool:
        """Whether two agents that know nothing are so far apart in at most one of 20 pairs
        (Student's t).

        What such an agent answers in an arm is one draw: asking more participants does not make it
        more certain.
        """
        scores = [score for score in self.floor if score is not None]
        if len(scores) < 2:
            return False
        reach = float(special.stdtrit(len(scores) - 1, 0.975)) * math.sqrt(2) * stdev(scores)
        return abs(self.difference.value or 0.0) > reach


def closer_to_people(pairs: Sequence[Pair]) -> list[Verdict]:
    """What each difference between two agents shows, allowing for all comparisons.

    `closer`: other participants would confirm it, agents that know nothing do not differ so much,
    and the one ahead is above chance. `different`: only other participants would confirm it.

    >>> gap = Estimate(
    ...     value=0.3, low=0.2, high=0.4, se=0.05, n=6, level=0.95, method="", reason=None
    ... )
    >>> floor = (0.5, 0.52, 0.55, 0.58, 0.6)
    >>> closer_to_people([Pair(difference=gap, above=(False, True), floor=floor)])
    ['closer']
    >>> closer_to_people([Pair(difference=gap, above=(False, False), floor=floor)])
    ['different']
    """
    verdicts: list[Verdict] = []
    for pair, shown in zip(pairs, beyond_chance([pair.difference for pair in pairs]), strict=True):
        if not shown:
            verdicts.append("not shown")
        elif pair.beyond_floor and pair.above[pair.winner]:
            verdicts.append("closer")
        else:
            verdicts.append("different")

    return verdicts


def but(pair: Pair, names: tuple[str, str]) -> str:
    """Why a difference that other participants would confirm makes no winner."""
    if not any(pair.above):
        return "but neither is shown to know people"
    if not pair.above[pair.winner]:
        return f"but {names[pair.winner]} is not shown to know people"
    return "but two agents that know nothing can differ as much"


def floor_scores(
    part: StudySummary, name: str, studies: Collection[str]
) -> tuple[float | None, ...]:
    """PAS or ECS (`name`: pas, ecs) of each agent with one answer an arm: the mean over these
    studies.
    """
    floor = next(reversed(_floors(part)), None)
    if floor is None:
        return ()
    levels = [level for level in floor.studies if level.name in studies]
    if len(levels) == len(floor.studies):
        levels = [floor.benchmark]
    each = [level.pas_each if name == "pas" else level.ecs_each for level in levels]
    return tuple(mean(scores) for scores in zip(*each, strict=True))


def pairs_of(part: StudySummary) -> list[Pair]:
    """The comparisons of PAS that a run shows."""
    narrow = narrow_studies(part)
    floor = floor_scores(
        part, "pas", [info.study for info in part.studies if info.study not in narrow]
    )
    above = {condition.condition: above_chance(condition, part) for condition in part.conditions}
    return [
        Pair(difference=gap.pas, above=(above[gap.a], above[gap.b]), floor=floor)
        for gap in part.differences
    ]


_MOST_NAMED = 3
NOT_EVEN_PEOPLE = "people's own answers would not be"
PAS_CEILING = "Copy: the PAS that a perfect copy of people would get."
ECS_CEILING = (
    "Ceiling: the mean ECS of new samples of the same people, given the standard errors of both "
    "sides."
)


def study_headline(part: StudySummary) -> str:
    """The answer in one sentence, with its uncertainty."""
    if len(part.conditions) == 1:
        return _alone(part.conditions[0], part)
    scored = [
        condition for condition in part.conditions if condition.benchmark.pas.value is not None
    ]
    if not scored:
        return (
            f"No score under any of {formats.plural(len(part.conditions), 'condition')}: "
            f"{_why(part.conditions[0])}"
        )

    if not part.differences or all(difference.pas.value is None for difference in part.differences):
        return _alone(scored[0], part)
    pairs = pairs_of(part)
    verdicts = closer_to_people(pairs)
    for wanted in ("closer", "different", "not shown"):
        compared = zip(part.differences, pairs, verdicts, strict=True)
        alike = [(gap, pair) for gap, pair, verdict in compared if verdict == wanted]
        if alike:
            gap, pair = max(alike, key=lambda compared: abs(compared[0].pas.value or 0.0))
            break

    if wanted == "closer":
        value = gap.pas.value or 0.0
        low = gap.pas.low
        high = gap.pas.high
        if value > 0:
            better = gap.b
            other = gap.a
        else:
            better = gap.a
            other = gap.b

        if value < 0 and low is not None and high is not None:
            low, high = -high, -low
        by = formats.estimate(abs(value), low, high)
        condition = part.of(better)
        if condition is not None:
            scores = f"; {_scores(condition)}{_beside_floor(condition, part)}"
        else:
            scores = ""

        return (
            f"{better} is closer to people than {other} by {by} PAS over "
            f"{formats.plural(gap.pas.n, 'test')}{scores}"
        )

    best = max(scored, key=lambda condition: condition.benchmark.pas.value or 0.0)
    shown_best = f"{_scores(best)}{_beside_floor(best, part)}"
    by = signed(gap.pas)
    over = formats.plural(gap.pas.n, "test")
    if wanted == "different":
        return (
            f"{gap.b} and {gap.a} differ by {by} PAS over {over}, {but(pair, (gap.a, gap.b))}; "
            f"{shown_best}"
        )

    if len(part.differences) > 1:
        looked_at = f" in any of {len(part.differences)} comparisons (Holm)"
    else:
        looked_at = ""

    return (
        f"No difference shown in PAS{looked_at}: {gap.b} against {gap.a} {by} over {over}; "
        f"{shown_best}"
    )


def shown_pairs(part: StudySummary, baseline: str | None) -> StudySummary:
    """With the comparisons of `baseline`, and of the condition with the highest PAS only; None:
    with all of them.
    """
    if baseline is None:
        return part
    scored = []
    for condition in part.conditions:
        if condition.benchmark.pas.value is not None:
            scored.append(condition)

    kept = {
        baseline,
        *(
            one.condition
            for one in sorted(scored, key=lambda one: -(one.benchmark.pas.value or 0.0))[:1]
        ),
    }
    shown = tuple(
        difference for difference in part.differences if kept & {difference.a, difference.b}
    )
    return structs.replace(
        part,
        differences=shown,
        baseline=baseline,
        left_out=len(part.differences) - len(shown),
    )


def pairs_sentence(part: StudySummary) -> str:
    """Which comparisons are shown, if some are not; empty if all are."""
    if not part.left_out or part.baseline is None:
        return ""
    left = formats.plural(part.left_out, "comparison")
    compared = (
        f"Each condition is compared with {formats.clean(part.baseline)}, and with the one with "
        f"the highest PAS"
    )
    return f"{compared}; --pairs all shows {left} more."


def _alone(one: StudyCondition, part: StudySummary) -> str:
    benchmark = one.benchmark
    if benchmark.pas.value is None:
        return f"{one.condition}: no score: {_why(one)}"
    tests = (
        f"{formats.count(benchmark.tests_used)} of "
        f"{formats.plural(benchmark.tests_planned, 'test')}"
    )
    studies = formats.plural(len(part.studies), "study", "studies")
    people = (
        f"{formats.count(one.participants.parsed)} of {formats.count(one.participants.planned)} "
        f"participants read"
    )
    return f"{_scores(one)} over {tests} in {studies}, {people}{_beside_floor(one, part)}"


def _scores(condition: StudyCondition) -> str:
    pas = condition.benchmark.pas
    ecs = condition.benchmark.ecs
    floor = " (floor)" if condition.floor else ""
    text = f"{condition.condition}{floor}: PAS {plain(pas)}"
    if condition.benchmark.ceiling is not None:
        text += f" (a perfect copy: {formats.number(condition.benchmark.ceiling)})"
    if ecs.value is not None:
        text += f", ECS {plain(ecs)}"
        if condition.benchmark.ecs_ceiling is not None:
            text += f" (ceiling: {formats.number(condition.benchmark.ecs_ceiling)})"

    return text


def _beside_floor(condition: StudyCondition, part: StudySummary) -> str:
    """Whether it is above answers without knowledge; empty if there is no score, or if it is such
    an agent.
    """
    if part.floor is None or condition.floor:
        more = None
    else:
        more = part.floor.of(condition.condition)

    if part.floor is None or more is None or more.pas.low is None or more.pas.high is None:
        return ""
    second = None
    if part.floor_one_answer is not None:
        second = part.floor_one_answer.benchmark.pas.value
    floors = f"random answers (PAS {formats.number(part.floor.benchmark.pas.value)})"
    if second is not None:
        floors += f" and one answer an arm (PAS {formats.number(second)})"
    if more.pas.high < 0:
        verdict = f"; below random answers (PAS {formats.number(part.floor.benchmark.pas.value)})"
    elif opposed := opposed_in(condition):
        verdict = (
            f"; not called above chance: {formats.plural(len(opposed), 'finding')} opposite to "
            f"people's"
        )
    elif above_chance(condition, part):
        verdict = f"; above {floors}"
    elif not can_show(part):
        verdict = f"; {_these(part)} cannot show whether it is above {floors}: {NOT_EVEN_PEOPLE}"
    else:
        verdict = f"; not shown to be above {floors}"

    alike, arms = _unvaried(condition)
    return verdict + (
        f"; answers do not vary in {alike} of {formats.plural(arms, 'arm')}" if alike else ""
    )


def _these(part: StudySummary) -> str:
    return "this study" if len(part.studies) == 1 else "these studies"


def _unvaried(condition: StudyCondition) -> tuple[int, int]:
    """In how many arms all gave the same answers, and how many there are."""
    arms = [arm for study in condition.studies for arm in study.arms]
    return sum(arm.unvaried for arm in arms), len(arms)


def _why(condition: StudyCondition) -> str:
    return formats.clean(condition.benchmark.reason or "nothing was answered")


def warnings_of(part: StudySummary, *, lost: int = 0) -> Iterator[str]:
    """Caveats about the numbers. `lost`: samples of no study in the run folder."""
    if lost:
        yield (
            f"{formats.plural(lost, 'sample')} of studies that the run folder does not keep: left "
            f"out"
        )

    for info in part.studies:
        if info.reducer is not None and not info.reduced:
            yield (
                f"{info.study}: its own code ({formats.clean(info.reducer)}) did not run, and "
                f"made no scores"
            )

        yield from other_code(info)
        if len(info.arms) < info.arms_in_file:
            arms = f"{formats.count(len(info.arms))} of {formats.plural(info.arms_in_file, 'arm')}"
            yield f"{info.study}: {arms} run; findings that need the others have no score"

    yield from narrow_warnings(part)
    for condition in part.conditions:
        name = condition.condition
        findings = condition.findings
        scored = [finding for finding in findings if finding.pas.value is not None]
        without = [finding for finding in findings if finding.pas.value is None]
        if not scored:
            yield f"{name}: no score: {_why(condition)}"
        elif without:
            every = formats.plural(len(findings), "finding")
            count = f"{formats.count(len(without))} of {every}"
            reasons = "; ".join(
                dict.fromkeys(
                    formats.clean(finding.reason or "not known") for finding in without[:2]
                )
            )
            yield f"{name}: {count} without a score ({_named(without)}): {reasons}"

        alike, run = _unvaried(condition)
        if alike:
            yield (
                f"{name}: answers do not vary in {alike} of {formats.plural(run, 'arm')}: "
                f"everybody there gave the same, so these are few answers, not many participants"
            )

        flagged = [finding for finding in scored if finding.flagged]
        if flagged:
            least = min(finding.coverage for finding in flagged if finding.coverage is not None)
            count = formats.plural(len(flagged), "finding rests", "findings rest")
            yield (
                f"{name}: {count} on fewer than 80 % of the participants, at worst "
                f"{formats.share(least)} ({_named(flagged)}): the number may only reflect those "
                f"who answered"
            )

        opposed = [one for one in scored if any(test.decisive for test in one.tests)]
        if opposed:
            count = formats.plural(len(opposed), "finding has", "findings have")
            yield (
                f"{name}: {count} a decisive effect opposite to people's "
                f"({_named(opposed)}): PAS counts it as agreement, directional PAS does not"
            )

    yield from _of_floor(part)


def narrow_warnings(part: StudySummary) -> Iterator[str]:
    """A line for each study that comparisons of PAS leave out."""
    for name in narrow_studies(part):
        yield f"{name}: {NARROW_STUDY}"


def studies_counted(part: StudySummary) -> str:
    """Over which studies PAS is a mean: all of the run, or those that have a score."""
    counts = set()
    for condition in part.conditions:
        counts.add(sum(study.score.pas.value is not None for study in condition.studies))
    if counts == {len(part.studies)}:
        return formats.plural(len(part.studies), "study", "studies")
    shown = " or ".join(formats.count(count) for count in sorted(counts))
    return f"the studies that have a score ({shown} of {formats.count(len(part.studies))})"


def other_code(info: StudyInfo) -> Iterator[str]:
    """Where the numbers come, or may come, from other code than at the time of the run."""
    if info.code_differs is not None:
        named = f"{info.study}: its own code ({formats.clean(info.reducer or '')})"
        yield f"{named} made these numbers in its present state: {formats.clean(info.code_differs)}"


def _of_floor(part: StudySummary) -> Iterator[str]:
    """Where there is no floor, or a short one; and which conditions are not above it."""
    floor = part.floor
    if floor is None:
        return
    if floor.benchmark.pas.value is None:
        yield (
            f"no floor beside these numbers: "
            f"{formats.clean(floor.benchmark.pas.reason or 'not known')}"
        )
        return

    for study, why in floor.without.items():
        yield f"{study}: no floor: {formats.clean(why)}"
    if floor.repetitions < floor.repetitions_wanted:
        drawn = (
            f"{formats.plural(floor.repetitions, 'repetition')} instead of "
            f"{floor.repetitions_wanted}"
        )
        yield (
            f"floor: random answers in {drawn}, for each has "
            f"{formats.plural(floor.questions, 'question')}"
        )

    showable = can_show(part)
    if not showable:
        yield f"{_these(part)} cannot show whether an agent is above chance: {NOT_EVEN_PEOPLE}"
    for condition in part.conditions:
        if not condition.floor:
            yield from _not_above(condition, floor, "random answers", showable=showable)
            second = part.floor_one_answer
            if second is not None:
                yield from _not_above(condition, second, "one answer an arm", showable=showable)
            if second is not None and second.mostly is not None:
                yield from _not_above(
                    condition,
                    second.mostly,
                    "mostly one answer an arm",
                    showable=showable,
                )


def _not_above(
    agent: StudyCondition,
    floor: StudyFloor,
    name: str,
    *,
    showable: bool,
) -> Iterator[str]:
    more = floor.of(agent.condition)
    if more is None or more.pas.low is None or beyond_floor(more):
        return
    if not showable and (more.pas.high is None or more.pas.high >= 0):
        return
    by = signed(more.pas)
    if more.pas.low <= 0:
        below = more.pas.high is not None and more.pas.high < 0
        yield (
            f"{agent.condition}: {'below' if below else 'not shown to be above'} {name} in PAS "
            f"({by})"
        )
    else:
        yield (
            f"{agent.condition}: above the mean of {name} in PAS ({by}), but not beyond what "
            f"single agents that answer so reach: counted by direction, PAS is "
            f"{formats.number(more.directed)}"
        )


def _named(findings: Sequence[FindingResult]) -> str:
    shown = ", ".join(f"{finding.study}/{finding.name}" for finding in findings[:_MOST_NAMED])
    more = len(findings) - _MOST_NAMED
    return f"{formats.clean(shown)}{f' and {more} more' if more > 0 else ''}"
