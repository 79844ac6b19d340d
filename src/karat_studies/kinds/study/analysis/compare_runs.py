"""Two runs over human studies, or two conditions of one: differences of PAS and ECS, and test by
test.

Participants are paired by name: two runs of one study with one seed have the same ones, whatever
the wording, so a relabelled study is compared with the original person by person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from karat import formats
from karat.analysis.comparison import Comparison, Side
from karat.analysis.model import Summary
from karat.analysis.numbers import Estimate, from_fields, mean
from karat.analysis.verdicts import REHEARSED
from karat.index import read_index, trusted
from karat.journal import RunFolder
from karat_studies.kinds.study.analysis.comparison import (
    StudyChange,
    StudyComparison,
    StudyPairing,
    StudySide,
    TestChange,
)
from karat_studies.kinds.study.analysis.model import StudyCondition, StudySummary
from karat_studies.kinds.study.analysis.readability import selective_between
from karat_studies.kinds.study.analysis.runs import (
    CONVENTION,
    REPLICATES,
    Measured,
    agreement_of,
    measured,
    people_of,
    read_answers_of,
    reducer_of,
    seed_of,
)
from karat_studies.kinds.study.analysis.scores import changed
from karat_studies.kinds.study.analysis.verdicts import (
    above_chance,
    floor_scores,
    narrow_studies,
    narrow_warnings,
    other_code,
)
from karat_studies.kinds.study.bootstrap import study_draws
from karat_studies.kinds.study.kept import kept_studies
from karat_studies.replication import join_draws, repeated_differences, z_of_level

if TYPE_CHECKING:
    from karat_studies.kinds.study.allowed import AllowCode
    from karat_studies.kinds.study.experiments import Reducer, Response
    from karat_studies.kinds.study.format import StudyFile
    from karat_studies.replication import Agreement, Draws

MOVED = 1e-9  # below it an effect has no sign


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """One side: an agreement and its replicates for each repetition."""

    agreements: Sequence[Agreement]
    draws: Sequence[Draws]
    level: float = 0.95  # of intervals


def changes(first: Scored, second: Scored) -> list[TestChange]:
    """Those whose direction flipped first, then those that moved most."""
    places = {}
    for at, score in enumerate(second.agreements[0].tests if second.agreements else ()):
        places[(score.test.finding_id, score.test.test)] = at
    tests = []
    for here, score in enumerate(first.agreements[0].tests if first.agreements else ()):
        test = score.test
        there = places.get((test.finding_id, test.test))
        if there is None:
            continue
        sides = [
            [agreement.tests[here] for agreement in first.agreements],
            [agreement.tests[there] for agreement in second.agreements],
        ]
        d_a, d_b = (mean(score.agent.d for score in side) for side in sides)
        pas_a, pas_b = (mean(score.pas for score in side) for side in sides)
        z = z_of_level(first.level)
        value = low = high = se = reason = None
        if d_a is None or d_b is None:
            reason = "no effect on one side"
        else:
            value = d_b - d_a
            # The error of the difference of both means over repetitions, draw by draw
            before = np.stack([draw.d[:, here] for draw in first.draws])
            after = np.stack([draw.d[:, there] for draw in second.draws])
            if before.shape == after.shape:
                drawn = (after - before).mean(axis=0)
                drawn = drawn[np.isfinite(drawn)]
            else:
                drawn = before[:0]

            if drawn.size > 1:
                se = float(drawn.std(ddof=1))
                low = value - z * se
                high = value + z * se
            else:
                reason = "no replicate has an effect"

        change = Estimate(
            value=value,
            low=low,
            high=high,
            se=se,
            n=1,
            level=first.level,
            method=f"± {round(z, 2)} bootstrap SE",
            reason=reason,
        )

        turned = (
            d_a is not None
            and d_b is not None
            and min(abs(d_a), abs(d_b)) > MOVED
            and (d_a > 0) != (d_b > 0)
        )
        tests.append(
            from_fields(
                TestChange,
                test,
                d_human=mean(score.human.d for score in sides[0]),
                d_a=d_a,
                d_b=d_b,
                change=change,
                pas_a=pas_a,
                pas_b=pas_b,
                sign_changed=turned,
                flipped=turned
                and change.low is not None
                and change.high is not None
                and not change.low <= 0 <= change.high,
            )
        )

    return sorted(tests, key=lambda test: (not test.flipped, -abs(test.change.value or 0.0)))


class _Study(msgspec.Struct, frozen=True, kw_only=True):
    """One study of a run, all its answers, and the permissions of its own code."""

    file: StudyFile
    responses: Mapping[tuple[int, int], Sequence[Response]]  # by condition and repetition
    arms: Sequence[str]
    reducer: Reducer | None
    refused: str | None
    seed: int  # of the draws

    def measured(self, condition: int, repetitions: int) -> Measured:
        experiments = [self.responses[condition, repetition] for repetition in range(repetitions)]
        return measured(
            self.file,
            experiments,
            arms=self.arms,
            reducer=self.reducer,
            refused=self.refused,
        )


class _Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """One study on both sides, with replicates for each repetition."""

    sides: tuple[tuple[Measured, Sequence[Draws]], tuple[Measured, Sequence[Draws]]]
    paired: bool


def compare_studies(
    runs: tuple[RunFolder, RunFolder],
    summaries: tuple[Summary, Summary],
    pairs: Sequence[tuple[str, str]],
    sides: tuple[Side, Side],
    *,
    allow_code: AllowCode = False,
) -> Comparison:
    """Over the studies that both have, by name. Raises BadRun for a damaged run."""
    first, second = (_part(summary) for summary in summaries)
    studies_a = _studies(runs[0], first, allow_code=allow_code)
    if runs[0].path == runs[1].path:
        studies_b = studies_a
    else:
        studies_b = _studies(runs[1], second, allow_code=allow_code)

    shared = [name for name in studies_a if name in studies_b]
    comparison = StudyComparison(
        level=first.level,
        convention=CONVENTION,
        pairings=tuple(
            _pairing(summaries, names, [(studies_a[name], studies_b[name]) for name in shared])
            for names in pairs
        ),
        only_a=tuple(name for name in studies_a if name not in studies_b),
        only_b=tuple(name for name in studies_b if name not in studies_a),
    )
    return Comparison(
        format=formats.OUTPUT_FORMAT,
        unit="participant",
        a=sides[0],
        b=sides[1],
        level=comparison.level,
        headline=comparison.headline(),
        metrics=(),
        pairings=(),
        only_a=0,
        only_b=0,
        changed=0,
        warnings=tuple(_warnings(summaries, pairs, comparison)),
        parts={"study": comparison},
    )


def _warnings(
    summaries: tuple[Summary, Summary],
    pairs: Sequence[tuple[str, str]],
    comparison: StudyComparison,
) -> Iterator[str]:
    first, second = summaries
    if REHEARSED in (*first.warnings, *second.warnings):
        yield REHEARSED
    for run, status in {first.run: first.status, second.run: second.status}.items():
        if status != "done":
            yield f"run {run} is not complete (status: {status})"

    yield from dict.fromkeys(
        warning
        for summary in (first, second)
        for info in _part(summary).studies
        for warning in other_code(info)
    )
    yield from dict.fromkeys(
        warning for summary in (first, second) for warning in narrow_warnings(_part(summary))
    )
    if _part(first).scoring != _part(second).scoring:
        yield "answers were read by other rules in the two runs: read both alike with `karat score`"
    if any(not pairing.paired for pairing in comparison.pairings):
        yield (
            "the two have other participants, or other tests: the difference is that of "
            "independent runs"
        )

    if first.repetitions != second.repetitions:
        fewer = formats.plural(min(first.repetitions, second.repetitions), "repetition")
        yield f"one run has more repetitions: the differences are over the first {fewer} of each"

    # Where the two sides differ by what could be read
    for (name, other), pairing in zip(pairs, comparison.pairings, strict=True):
        sides = (
            (pairing.a.label, _part(first).of(name)),
            (pairing.b.label, _part(second).of(other)),
        )
        yield from selective_between(
            [(label, condition) for label, condition in sides if condition is not None]
        )


def _part(summary: Summary) -> StudySummary:
    part = summary.part(StudySummary)
    assert part is not None
    return part


def _studies(run: RunFolder, part: StudySummary, *, allow_code: AllowCode) -> dict[str, _Study]:
    with trusted(run):
        index = read_index(run)
        files = kept_studies(run)
        answers = read_answers_of(
            index, [file.study for file in files], (part.scorer, part.scoring)
        )
        studies = {}
        for number, (file, copy) in enumerate(zip(files, run.kept(), strict=True)):
            people = people_of(run, index, answers, study=file, number=number)
            code = reducer_of(file, inside=run.path, allowed=allow_code)
            responses = {}
            for unit, rows in people.responses.items():
                # Responses with the participants' names in the study: a run over several puts
                # the study's name before them
                prefix = f"{file.study}/"
                found = []
                for row in rows:
                    found.append(
                        replace(
                            row,
                            participant=row.participant.removeprefix(prefix),
                            group=None if row.group is None else row.group.removeprefix(prefix),
                        )
                    )

                responses[unit] = found

            studies[file.study] = _Study(
                file=file,
                responses=responses,
                arms=list(people.arms[0]),
                reducer=code.reducer,
                refused=code.refused,
                seed=seed_of(copy, answers.samples_of(number, index.samples)),
            )

        return studies


def _pairing(
    summaries: tuple[Summary, Summary],
    names: tuple[str, str],
    studies: Sequence[tuple[_Study, _Study]],
) -> StudyPairing:
    parts = [_part(summary) for summary in summaries]
    places = [
        summary.conditions.index(name) for summary, name in zip(summaries, names, strict=True)
    ]
    repetitions = min(part.repetitions for part in parts)
    drawn = [_drawn(pair, places, repetitions=repetitions) for pair in studies]
    level = parts[0].level
    sides = []
    for at in (0, 1):
        own = [study.sides[at] for study in drawn]
        agreements, draws = [], []
        for number in range(repetitions):
            scores = [side.agreements[number].tests for side, _ in own]
            tests = [[score.test for score in of_study] for of_study in scores]
            agreements.append(agreement_of(*tests, level=level))
            draws.append(join_draws([of_side[number] for _, of_side in own]))

        sides.append(Scored(agreements=agreements, draws=draws, level=level))

    paired = all(study.paired for study in drawn)
    apart: dict[str, Sequence[Draws]] = {
        "first_draws": sides[0].draws,
        "second_draws": sides[1].draws,
    }
    shared = [first.file.study for first, _ in studies]
    narrow = list(dict.fromkeys(name for part in parts for name in narrow_studies(part)))
    pas, ecs = repeated_differences(
        sides[0].agreements,
        sides[1].agreements,
        paired=paired,
        without=narrow,
        **apart,
    )
    conditions = [part.of(name) for part, name in zip(parts, names, strict=True)]
    labels = (
        names
        if names[0] != names[1]
        else tuple(f"{names[at]} ({summaries[at].run})" for at in (0, 1))
    )
    pair = []
    for label, condition, part in zip(labels, conditions, parts, strict=True):
        if condition is not None:
            pair.append(_side(label, condition, part))

    changes_of_studies = []
    for name in shared:
        before, after = (None if one is None else one.study(name) for one in conditions)
        assert before is not None
        assert after is not None
        changes_of_studies.append(
            StudyChange(
                study=name,
                pas_a=before.score.pas.value,
                pas_b=after.score.pas.value,
                ecs_a=before.score.ecs.value,
                ecs_b=after.score.ecs.value,
                participants_a=before.participants,
                participants_b=after.participants,
            )
        )

    return StudyPairing(
        a=pair[0],
        b=pair[1],
        pas=changed(pas, level=level),
        ecs=changed(ecs, level=level),
        paired=paired,
        repetitions=repetitions,
        studies=tuple(changes_of_studies),
        tests=tuple(changes(sides[0], sides[1])),
        floor={
            "PAS": floor_scores(parts[0], "pas", [name for name in shared if name not in narrow]),
            "ECS": floor_scores(parts[0], "ecs", shared),
        },
    )


def _side(label: str, condition: StudyCondition, part: StudySummary) -> StudySide:
    forms = []
    for info in part.studies:
        changed_how = []
        if info.relabel:
            changed_how.append("relabelled")
        elif info.wording is not None:
            changed_how.append(f"wording {info.wording}")

        if info.reorder:
            changed_how.append("options in reverse")
        forms.append(", ".join(changed_how) or "as written")

    return StudySide(
        label=label,
        form=" / ".join(dict.fromkeys(forms)),
        participants=condition.participants,
        pas=condition.benchmark.pas,
        pas_directional=condition.benchmark.pas_directional,
        ecs=condition.benchmark.ecs,
        above_chance=above_chance(condition, part),
    )


def _drawn(pair: tuple[_Study, _Study], places: Sequence[int], *, repetitions: int) -> _Drawn:
    """Both sides of one study, drawn together if the same people did the same tests."""
    first, second = (
        study.measured(place, repetitions) for study, place in zip(pair, places, strict=True)
    )
    files = [study.file for study in pair]
    rng = np.random.default_rng(pair[0].seed)
    same = (
        (files[0].findings, files[0].derive, files[0].reducer)
        == (files[1].findings, files[1].derive, files[1].reducer)
    ) and _people(first) == _people(second)
    reducers = [study.reducer for study in pair]
    if same and (reducers[0] is None) == (reducers[1] is None):
        together = study_draws(
            files[0],
            [*first.runs, *second.runs],
            rng=rng,
            replicates=REPLICATES,
            reducer=reducers[0],
        )
        draws = [resampled.draws for resampled in together]
        return _Drawn(
            sides=((first, draws[:repetitions]), (second, draws[repetitions:])), paired=True
        )

    own = []
    for file, side, stream, reducer in zip(
        files,
        (first, second),
        rng.spawn(2),
        reducers,
        strict=True,
    ):
        own.append(
            [
                resampled.draws
                for resampled in study_draws(
                    file,
                    side.runs,
                    rng=stream,
                    replicates=REPLICATES,
                    reducer=reducer,
                )
            ]
        )

    return _Drawn(sides=((first, own[0]), (second, own[1])), paired=False)


def _people(side: Measured) -> set[tuple[str, str, str]]:
    """Who took part: name, arm and profile."""
    if side.runs:
        rows = side.runs[0].responses
    else:
        rows = ()

    return {(row.participant, row.arm, repr(sorted(row.profile.items()))) for row in rows}
