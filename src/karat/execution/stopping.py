"""Early stopping: fixes the horizon, looks as scores arrive, and determines the trials still
needed.

The rule is `karat.analysis.stopping`; it uses the journal, so a resumed run decides the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from karat import formats
from karat.analysis.stopping import FIRST_LOOK, RunLooks, order_digest, questions_in_order
from karat.clusters import codes_of
from karat.errors import BadOption, ResumeRefused, did_you_mean
from karat.index import RunIndex
from karat.journal import Decided, Horizon, RunFolder
from karat.records import Metric, Trial

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.execution.plan import Plan
    from karat.execution.scoring import ScorerInUse


def horizon_of(
    experiment: Experiment, selected: Plan, scorers: Sequence[ScorerInUse]
) -> Horizon | None:
    """What is fixed before the first answer of a run that may stop early; None for one that asks
    every question.

    Raises BadOption if its metric is not measured or has no range, and if there is nothing to
    compare.
    """
    stop = experiment.execution.stop
    if stop is None:
        return None
    used, metric = _metric(stop.metric, scorers)
    if used.late:
        why = f"'{used.info.name}' compares answers when all of them are in, so it cannot end a run"
        raise BadOption("execution.stop.metric", f"{why}: name another metric, or leave out `stop`")

    names = [condition.name for condition in selected.conditions]
    if len(names) < 2:
        raise BadOption(
            "execution.stop", f"needs two conditions to compare, '{names[0]}' alone is selected"
        )

    codes = codes_of([sample.cluster for sample in selected.samples])
    choice = experiment.resolved.get("baseline")
    if choice is not None and choice.value in names:
        first = choice.value
    else:
        first = names[0]

    if codes is None:
        clusters = None
    else:
        clusters = len(set(codes))

    return Horizon(
        questions=len(selected.samples),
        clusters=clusters,
        order=order_digest(sample.id for sample in selected.samples),
        seed=stop.seed,
        repetitions=selected.repetitions,
        pairs=tuple((first, name) for name in names if name != first),
        metric=metric.name,
        scorer=used.info.name,
        scoring=used.info.scoring,
        alpha=stop.alpha,
        margin=stop.margin,
        futility=stop.futility,
    )


def _metric(wanted: str, scorers: Sequence[ScorerInUse]) -> tuple[ScorerInUse, Metric]:
    option = "execution.stop.metric"
    known = []
    for used in scorers:
        for metric in used.info.metrics:
            known.append((used, metric))

    matches = [
        (used, metric)
        for used, metric in known
        if wanted in (metric.name, f"{used.info.name}.{metric.name}")
    ]
    if len(matches) > 1:
        full = " or ".join(f"{used.info.name}.{metric.name}" for used, metric in matches)
        raise BadOption(option, f"'{wanted}' is measured by {len(matches)} scorers: write {full}")

    if not matches:
        names = list(dict.fromkeys(metric.name for _, metric in known))
        if names:
            hint = did_you_mean(wanted, names)
        else:
            hint = ": the experiment names none"

        raise BadOption(option, f"no scorer measures '{wanted}'{hint}")

    low, high = matches[0][1].bounds
    if low is None or high is None or not low < high:
        why = (
            "one answer that was not asked yet could outweigh all others, so nothing can be "
            "decided early"
        )
        raise BadOption(
            option,
            f"'{wanted}' has no range: {why}; leave out `stop`, or announce `low` and `high`",
        )

    return matches[0]


def stops_when(horizon: Horizon | None) -> str | None:
    """When a run may stop, in one line; None: it asks every question."""
    if horizon is None:
        return None
    plan = formats.plural(horizon.questions, "question")
    if horizon.clusters is not None:
        plan = f"{formats.plural(horizon.clusters, 'cluster')} ({plan})"
    if (horizon.clusters or horizon.questions) <= FIRST_LOOK:
        return f"asks all {plan}: nothing is decided early with {FIRST_LOOK} or fewer"
    if horizon.margin is not None:
        within = f", or surely differs by less than {horizon.margin:g}"
    else:
        within = ""

    conditions = formats.plural(len(horizon.pairs) + 1, "condition")
    return (
        f"may stop early, from {FIRST_LOOK} of {plan} on: once {horizon.metric} of the "
        f"{conditions} is shown to differ{within} (alpha {horizon.alpha:g})"
    )


def refuse_another_horizon(folder: RunFolder, before: Horizon | None, now: Horizon | None) -> None:
    """Raises ResumeRefused if the run would stop by another rule, or look further, than in its
    journal.
    """
    if before == now:
        return
    changes = []
    if before is None or now is None:
        changes.append(f"`execution.stop` is {'new' if before is None else 'gone'}")
    else:
        fields = {
            name: (getattr(before, name), getattr(now, name)) for name in before.__struct_fields__
        }
        differing = {name: values for name, values in fields.items() if values[0] != values[1]}
        if differing.keys() > {"order"}:
            differing.pop("order", None)  # it follows from the other differences
        changes += [
            f"{_WORDS.get(name, name)} {old}, now {new}" for name, (old, new) in differing.items()
        ]

    remedy = (
        "A run that may stop early is planned before its first answer: enlarging it after a look "
        "finds a difference where there is none in 6.7 % of runs instead of 5 %. Undo the change, "
        "leave out --limit and --only-…, or start a new run without --resume."
    )
    raise ResumeRefused(folder.path, changes, remedy)


_WORDS = {
    "questions": "the number of questions was",
    "clusters": "the number of clusters was",
    "order": "the questions were other ones: their order was",
    "repetitions": "num_repetitions was",
    "pairs": "the comparisons were",
}


class EarlyStop:
    """Which trials of a run are still needed, and in which order they may start."""

    def __init__(self, folder: RunFolder, horizon: Horizon, *, max_concurrent: int) -> None:
        self._index = RunIndex(folder)
        self._looks: RunLooks | None = None
        self._horizon = horizon
        units = questions_in_order(self._index, horizon)
        self._place = {name: at for at, name in enumerate(chain.from_iterable(units))}
        # Questions asked ahead of the next look may turn out to be unneeded; with fewer, agents
        # would idle.
        a_question = 2 * horizon.repetitions
        self._ahead = 1 + math.ceil(2 * max_concurrent / a_question)
        self.out: frozenset[str] = frozenset()
        self._open = 0.0  # questions that may start

    def look(self) -> list[Decided]:
        """The decisions from the scores on disk, for the journal."""
        self._index.follow()
        if self._looks is None:
            self._looks = RunLooks(self._index, self._horizon)
        decisions = self._looks.decide()
        self.out = self._looks.rule.out
        self._open = max(self._looks.rule.next_look, self._looks.ended()) + self._ahead
        return decisions

    def wants(self, trial: Trial) -> bool:
        """Whether its condition is still asked."""
        return trial.condition.name not in self.out

    def may_start(self, trial: Trial) -> bool:
        """Whether its question is not too far ahead of the next look."""
        return self._place[trial.sample.id] < self._open
