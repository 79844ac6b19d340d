"""Several experiments with one study, from responses to tests; what goes wrong is the reason for no score."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from karat.errors import BadOption
from karat.kinds.study.columns import fields_needed, shape_of_data
from karat.kinds.study.format import StudyFile
from karat.kinds.study.test_checks import arms_of
from karat.kinds.study.tests import Reducer, Response, data_of_each, to_study_tests, untested
from karat.sql import Selected

if TYPE_CHECKING:
    from karat.replication import StudyTest
    from karat.sql import Shape

__all__ = ["Experiment", "study_experiments"]

NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The study once, with its participants."""

    tests: list[StudyTest]
    data: Mapping[str, Sequence[Any]] | None  # what `derive` gave; None: nothing that participants can be drawn from


def study_experiments(
    study: StudyFile,
    experiments: Sequence[Sequence[Response]],
    *,
    reducer: Reducer | None = None,
    refused: str | None = None,
    arms: Collection[str] = (),
) -> list[Experiment]:
    """The tests of several experiments with one study, each with the rows of `data` that they were made from.

    Raises nothing for what cannot be computed: those tests have no agent's side and say why.
    `refused`: why the study's `reducer` does not run. `arms`: those that were run; empty: all.
    """
    try:
        shape = shape_of_data(study)
    except BadOption as error:
        return [_untested(study, one, f"derive {_told(error)}", arms) for one in experiments]
    if study.reducer is not None and reducer is None:
        why = refused or f"the study runs code of its own, {study.reducer}: look at it, then say --allow-code"
        return [_untested(study, one, why, arms) for one in experiments]
    found = []
    for responses, data in zip(experiments, _selected(study, experiments), strict=True):
        if isinstance(data, str):
            found.append(_untested(study, responses, data, arms))
            continue
        try:
            tests = to_study_tests(study, responses, data=data, reducer=reducer)
        except BadOption as error:
            found.append(_untested(study, responses, str(error), arms))
            continue
        found.append(Experiment(tests=_of_arms(study, tests, arms, shape), data=data.columns))
    return found


def _selected(study: StudyFile, experiments: Sequence[Sequence[Response]]) -> list[Selected | str]:
    """What `derive` gives of each; where it fails for one of them, each by itself, or why it fails."""
    try:
        return list(data_of_each(study, experiments))
    except BadOption as error:
        if len(experiments) == 1:
            return [f"derive {_told(error)}"]
    return [one for responses in experiments for one in _selected(study, [responses])]


def _untested(study: StudyFile, responses: Sequence[Response], why: str, arms: Collection[str]) -> Experiment:
    return Experiment(tests=_of_arms(study, untested(study, responses, why), arms, None), data=None)


def _of_arms(
    study: StudyFile, tests: Sequence[StudyTest], arms: Collection[str], shape: Shape | None
) -> list[StudyTest]:
    """Where an arm was not run, that is why there is no score: nobody was there to be read."""
    from karat.replication import Side

    if not arms or set(study.arms) <= set(arms):
        return list(tests)
    found = []
    for (_, test), one in zip(study.tests, tests, strict=True):
        lacking = [name for name in arms_of(study, test, fields_needed(study, test, shape)) if name not in arms]
        nobody = Side(missing=f"arm '{lacking[0]}' was not run") if lacking else one.agent
        found.append(replace(one, agent=nobody, coverage=NAN if lacking else one.coverage))
    return found


def _told(error: BadOption) -> str:
    return str(error).partition(": ")[2] or str(error)
