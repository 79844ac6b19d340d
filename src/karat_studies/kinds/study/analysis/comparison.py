"""The comparison of two runs over human studies, as frozen values and plain text."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from karat import formats
from karat.analysis.numbers import Estimate
from karat.analysis.parts import Part
from karat_studies.kinds.study.analysis.model import Participants, plain, signed
from karat_studies.kinds.study.analysis.verdicts import Pair, but, closer_to_people

LISTED = 12  # tests in the text; the values include all
DIGITS = 3


class StudySide(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a pairing, over everything it was asked."""

    label: str
    form: str  # the study's form: "as written", "relabelled", "wording other", "options in reverse"
    participants: Participants
    pas: Estimate  # benchmark
    pas_directional: float | None
    ecs: Estimate
    above_chance: bool = False


class StudyChange(msgspec.Struct, frozen=True, kw_only=True):
    """One study on both sides."""

    study: str
    pas_a: float | None
    pas_b: float | None
    ecs_a: float | None
    ecs_b: float | None
    participants_a: Participants
    participants_b: Participants


class TestChange(msgspec.Struct, frozen=True, kw_only=True):
    """One test on both sides: means over repetitions."""

    __test__ = False  # not a test class, despite the name

    study: str
    sub_study: str
    finding: str
    test: str
    kind: str
    d_human: float | None
    d_a: float | None
    d_b: float | None
    change: Estimate  # d of the second minus d of the first; ± z bootstrap SE
    pas_a: float | None
    pas_b: float | None
    sign_changed: bool  # the agent's effect has the other sign: near 0 also by chance
    flipped: bool  # it has, and the interval of the change excludes 0

    @property
    def name(self) -> str:
        """Study, sub-study, finding and test."""
        return f"{'/'.join(filter(None, (self.study, self.sub_study, self.finding)))} {self.test}"


class StudyPairing(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of each side. Differences are b − a, over the tests that are scored on both."""

    a: StudySide
    b: StudySide
    pas: Estimate
    ecs: Estimate
    paired: bool  # the same participants, drawn together
    repetitions: int  # of each side that were compared
    studies: tuple[StudyChange, ...]
    # those whose direction flipped first, then by how far the effect moved
    tests: tuple[TestChange, ...]
    # PAS, ECS → those of single agents with one answer an arm
    floor: dict[str, tuple[float | None, ...]] = {}

    def judged(self, name: str) -> Pair:
        """The difference in PAS or ECS, for `closer_to_people`."""
        above = (self.a.above_chance, self.b.above_chance)
        return Pair(difference=_of(self, name), above=above, floor=self.floor.get(name, ()))


class StudyComparison(Part, frozen=True, kw_only=True):
    """What changed between two runs over human studies."""

    level: float
    convention: str  # of Cohen's d
    pairings: tuple[StudyPairing, ...]
    only_a: tuple[str, ...]  # studies that only one side has
    only_b: tuple[str, ...]

    def lines(self) -> list[str]:
        lines: list[str] = []
        for pairing in self.pairings:
            lines.append("")
            for side in (pairing.a, pairing.b):
                lines.append(f"{side.label}, {side.form}: {side.participants.took_part}")
                directional = formats.number(side.pas_directional, digits=DIGITS)
                pas = plain(side.pas, digits=DIGITS)
                ecs = plain(side.ecs, digits=DIGITS)
                lines.append(f"  PAS {pas} (with direction {directional}), ECS {ecs}")

            how = "other participants: drawn apart"
            if pairing.paired:
                how = "paired: the same participants, drawn together"
            if not pairing.studies:
                how = "no study in common"
            elif self.only_a or self.only_b:
                both = formats.plural(len(pairing.studies), "study", "studies")
                how += f"; over the {both} that both have"

            lines.append(f"second − first ({how})")
            for name, difference in (("PAS", pairing.pas), ("ECS", pairing.ecs)):
                reason = ""
                if difference.value is None and difference.reason:
                    reason = f": {difference.reason}"
                lines.append(
                    f"  {name} {signed(difference, digits=DIGITS)} over "
                    f"{formats.plural(difference.n, 'test')}{reason}"
                )

            lines += ["", "  by study"]
            for study in pairing.studies:
                lines.append(
                    f"    {study.study}: PAS {_from_to(study.pas_a, study.pas_b)}, ECS "
                    f"{_from_to(study.ecs_a, study.ecs_b)}"
                )
                people = (study.participants_a, study.participants_b)
                lines.append(f"      {' | '.join(side.took_part for side in people)}")

            lines += _tests(pairing, self)

        for names, where in ((self.only_a, "first"), (self.only_b, "second")):
            if names:
                lines += ["", f"only in the {where}: {', '.join(names)}"]

        return lines

    def headline(self) -> str:
        """The clearest shown difference, of PAS or else of ECS, or that there is none."""
        known = []
        for pairing in self.pairings:
            if pairing.pas.value is not None or pairing.ecs.value is not None:
                known.append(pairing)

        if not known:
            return "No test has a score on both sides: nothing can be compared"
        looked_at = [(pair, name) for name in ("PAS", "ECS") for pair in known]
        verdicts = closer_to_people([pair.judged(name) for pair, name in looked_at])
        for wanted in ("closer", "different"):
            for name in ("PAS", "ECS"):
                compared = zip(looked_at, verdicts, strict=True)
                alike = [
                    pair
                    for (pair, score), verdict in compared
                    if (verdict, score) == (wanted, name)
                ]
                if alike:
                    first = max(alike, key=lambda pair: abs(_of(pair, name).value or 0.0))
                    a = first.a.label
                    b = first.b.label
                    by = _by(first, name)
                    nearer = "closer to" if (_of(first, name).value or 0.0) > 0 else "further from"
                    said = f"{b} is {nearer} people than {a}: {by}"
                    if wanted == "different":
                        said = f"{b} and {a} differ: {by}, {but(first.judged(name), (a, b))}"
                    nothing = "; no difference shown in PAS" if name == "ECS" else ""
                    return f"{said}{nothing}{_turned(first)}"

        first = max(known, key=lambda pair: abs(pair.pas.value or 0.0))
        return (
            f"No difference shown in PAS or ECS: {first.b.label} against {first.a.label} "
            f"{_by(first, 'ECS' if first.pas.value is None else 'PAS')}{_turned(first)}"
        )


def _of(pairing: StudyPairing, name: str) -> Estimate:
    return pairing.pas if name == "PAS" else pairing.ecs


def _by(pairing: StudyPairing, name: str) -> str:
    return (
        f"{signed(_of(pairing, name), digits=DIGITS)} {name} over "
        f"{formats.plural(_of(pairing, name).n, 'test')}"
    )


def _turned(pairing: StudyPairing) -> str:
    flips = sum(test.flipped for test in pairing.tests)
    if flips:
        return f"; {formats.plural(flips, 'test')} in the other direction"
    return ""


def _tests(pairing: StudyPairing, compared: StudyComparison) -> Iterator[str]:
    flips = sum(test.flipped for test in pairing.tests)
    counted = (
        f"{formats.count(flips)} of {formats.plural(len(pairing.tests), 'test')} in the other "
        f"direction"
    )
    yield ""
    yield (
        f"  by test: {counted}; effects as Cohen's d ({compared.convention}), of the agent "
        f"first → second"
    )
    for test in pairing.tests[:LISTED]:
        if test.flipped:
            mark = "FLIPPED "
        elif test.sign_changed:
            mark = "(sign changed) "
        else:
            mark = ""

        moved = f"{formats.signed(test.d_a)} → {formats.signed(test.d_b)}"
        change = signed(test.change)
        yield f"    {mark}{test.name}: {moved} ({change}), people {formats.signed(test.d_human)}"
        yield f"      PAS {_from_to(test.pas_a, test.pas_b)}"

    if len(pairing.tests) > LISTED:
        yield (
            f"    {formats.count(len(pairing.tests) - LISTED)} more, which moved less; --json has "
            f"them"
        )

    level = f"{formats.level(compared.level)} interval"
    if flips:
        yield f"    FLIPPED: the sign is the other one, and the {level} of the change leaves out 0"
    if any(test.sign_changed and not test.flipped for test in pairing.tests):
        why = "holds 0 or is not known: it may be chance, and is not counted"
        yield f"    (sign changed): the {level} of the change {why}"


def _from_to(a: float | None, b: float | None) -> str:
    return f"{formats.number(a, digits=DIGITS)} → {formats.number(b, digits=DIGITS)}"
