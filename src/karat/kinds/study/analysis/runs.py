"""One study, done once or several times: from everybody's answers to tests, and to what participants are drawn from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import BadPlugin
from karat.journal import StudyCopy
from karat.kinds.study.bootstrap import StudyRun
from karat.kinds.study.experiments import study_experiments
from karat.kinds.study.reducer import load_reducer
from karat.replication import score_tests

if TYPE_CHECKING:
    from karat.kinds.study.format import StudyFile
    from karat.kinds.study.tests import Reducer, Response
    from karat.records import AllowCode
    from karat.replication import Agreement, StudyTest

__all__ = ["CONVENTION", "REPLICATES", "Code", "Measured", "measured", "reducer_of", "seed_of"]

REPLICATES = 2_000
CONVENTION = "humanstudy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The tests of each experiment. Those of which too few answers could be read are without the agent's side."""

    agreements: Sequence[Agreement]
    runs: Sequence[StudyRun]
    floor: Sequence[Sequence[StudyTest]]  # of each repetition of random answers


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A study's own code where it may run, or why it does not."""

    reducer: Reducer | None = None
    refused: str | None = None
    differs: str | None = None  # in what it is not the code of when the run was made


def seed_of(copy: StudyCopy, samples: Iterable[str]) -> int:
    """Of whatever is drawn for one study: by what was asked and of whom, so another run with the same answers has the
    same numbers, whatever its id, the order of its journal, its conditions and its other studies.
    """
    told = [copy.digest, *sorted(one.removeprefix(f"{copy.study}/") for one in samples)]
    return int.from_bytes(blake2b("\n".join(told).encode("utf-8", "surrogatepass"), digest_size=8).digest())


def measured(
    file: StudyFile,
    experiments: Sequence[Sequence[Response]],
    *,
    arms: Collection[str],
    reducer: Reducer | None,
    refused: str | None,
    floor: Sequence[Sequence[Response]] = (),
) -> Measured:
    """`experiments`: everybody's answers, for each; `floor`: random ones, which go the same way.

    Raises nothing for what cannot be computed: it is the reason.
    """
    every = study_experiments(file, [*experiments, *floor], reducer=reducer, refused=refused, arms=arms)
    found, guessed = every[: len(experiments)], every[len(experiments) :]
    agreements = [score_tests(one.tests, convention=CONVENTION, min_coverage=file.min_coverage) for one in found]
    runs = [
        StudyRun(responses=responses, data=one.data or {}, scores=agreement.tests)
        for responses, one, agreement in zip(experiments, found, agreements, strict=True)
    ]
    random = [_covered(one.tests, file.min_coverage) for one in guessed]
    return Measured(agreements=agreements, runs=runs, floor=random)


def _covered(tests: Sequence[StudyTest], least: float) -> Sequence[StudyTest]:
    """The tests as they are scored: without the agent where an arm had nobody."""
    if all(not one.coverage < least for one in tests):
        return tests
    return [one.test for one in score_tests(tests, convention=CONVENTION, min_coverage=least).tests]


def reducer_of(file: StudyFile, *, inside: Path, allowed: AllowCode) -> Code:
    """`inside`: the run folder, which brings no code."""
    if file.reducer is None or not allowed:
        return Code()
    try:
        reducer, differs = load_reducer(file, inside=inside, changed=allowed == "changed")
    except BadPlugin as error:
        return Code(refused=str(error))
    return Code(reducer=reducer, differs=differs)
