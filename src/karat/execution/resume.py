"""What a journal already holds: answered, scored, spent; and whether today's experiment still fits it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

import msgspec

from karat.errors import ResumeRefused
from karat.execution.plan import Plan
from karat.execution.scoring import PendingScore, ScorerInUse
from karat.index import read_index, trusted
from karat.journal import Choice, ReplyEvent, RunFolder, ScorerInfo
from karat.records import Answer, Reply, Sample, Trial
from karat.scorers import Row

if TYPE_CHECKING:
    from karat.config import Experiment

__all__ = ["JournalState", "SavedReplies", "pending_scores", "read_journal", "refuse_changes"]


class JournalState(msgspec.Struct, kw_only=True):
    """One byte or one offset a planned trial: a million trials take ten megabytes."""

    plan: Plan
    offsets: array[int]  # where a trial's answer stands in the journal, plus 1; 0: nowhere
    agent_faults: bytearray  # 1: failed for good by the agent's fault
    scored: dict[str, bytearray]  # scoring → 1 where all its rows are on disk, by trial
    torn: dict[tuple[str, str], set[Row]] = {}  # (scoring, trial) → rows on disk, where some are missing
    begun: dict[str, Sequence[int]] = {}  # trial with some of its turns answered → where these replies stand
    dollars: float = 0.0
    tokens: int = 0
    price_unknown: bool = False  # some answer came without its price
    tokens_unknown: bool = False  # … without its tokens

    @classmethod
    def none(cls, plan: Plan) -> JournalState:
        """Of a run that has not begun."""
        return cls(plan=plan, offsets=array("q"), agent_faults=bytearray(), scored={})

    def answered(self, selected: Plan) -> dict[str, int]:
        """How many trials of `selected` have an answer, by condition."""
        names = [condition.name for condition in self.plan.conditions]
        wanted = {one.name for one in selected.conditions}
        found = dict.fromkeys((name for name in names if name in wanted), 0)
        if not self.offsets:
            return found
        samples = {sample.id for sample in selected.samples}
        size, index = self.plan.repetitions * len(names), 0
        for sample in self.plan.samples:
            if sample.id in samples:
                for at in range(index, index + size):
                    name = names[at % len(names)]
                    if self.offsets[at] > 0 and name in wanted:
                        found[name] += 1
            index += size
        return found

    def to_ask(self, selected: Plan, *, retry_failed: bool) -> Iterator[Trial]:
        """The trials of `selected` without an answer."""
        if not self.offsets:
            yield from selected
            return
        samples = {sample.id for sample in selected.samples}
        conditions = {condition.name for condition in selected.conditions}
        for trial in self.plan:
            if self.offsets[trial.index] or (self.agent_faults[trial.index] and not retry_failed):
                continue
            if trial.sample.id in samples and trial.condition.name in conditions:
                yield trial

    def pending(self, folder: RunFolder, scorers: Sequence[ScorerInUse]) -> Iterator[PendingScore]:
        """The answers on disk that some scorer has not seen, read one by one."""
        decoder = msgspec.json.Decoder(Answer)
        for index, offset in enumerate(self.offsets):
            if not offset:
                continue
            missing = [used for used in scorers if not self._is_scored(used.info.scoring, index)]
            if missing:
                answer = decoder.decode(next(folder.lines(start=offset - 1)))
                scorings = [used.info.scoring for used in missing if (used.info.scoring, answer.trial) in self.torn]
                present = {scoring: self.torn[scoring, answer.trial] for scoring in scorings}
                yield PendingScore(answer=answer, sample=self.plan[index].sample, scorers=missing, present=present)

    def _is_scored(self, scoring: str, index: int) -> bool:
        complete = self.scored.get(scoring)
        return complete is not None and complete[index] == 1


class SavedReplies:
    """`begun(trial)`: the replies of a conversation that was broken off, read when its trial's turn comes."""

    def __init__(self, folder: RunFolder, past: JournalState) -> None:
        self._folder, self._places = folder, past.begun

    def __call__(self, trial: str) -> tuple[Reply, ...]:
        places = self._places.pop(trial, ())  # asked for once: what is told now is not remembered twice
        lines = (next(self._folder.lines(start=place)) for place in places)
        return tuple(_reply_event(line).reply for line in lines)


_reply_event = msgspec.json.Decoder(ReplyEvent).decode


def read_journal(folder: RunFolder, plan: Plan) -> JournalState:
    """What the journal says of the trials of a plan that `refuse_changes` has accepted."""
    with trusted(folder):
        index = read_index(folder)
    size, names = len(plan), [condition.name for condition in plan.conditions]
    offsets, faults, numbers = array("q", bytes(8 * size)), bytearray(size), array("q", [-1]) * index.planned
    faulty = {count.code for group, count in index.groups.items() if (group.cls, group.stage) == ("agent", "agent")}
    number = 0
    for sample in plan.samples:
        for repetition in range(plan.repetitions):
            for name in names:
                cell = index.cell(sample.id, name, repetition)
                if cell is not None:
                    numbers[cell] = number
                    offsets[number] = index.answers[cell] + 1 if index.answered[cell] else 0
                    faults[number] = not index.answered[cell] and index.failed[cell] in faulty
                number += 1
    state = JournalState(plan=plan, offsets=offsets, agent_faults=faults, scored={})
    for _, scoring in index.scores:
        complete = state.scored[scoring] = bytearray(size)
        for cell in filter(index.scored(scoring).__getitem__, range(index.planned)):
            if (number := numbers[cell]) >= 0:
                complete[number] = 1
        for cell, rows in index.partial_rows(scoring).items():
            if (number := numbers[cell]) >= 0:
                state.torn[scoring, plan[number].id] = rows
    open_trials = {trial: pending.conversation.resumable for trial, pending in index.open_trials.items()}
    state.begun = {trial: [at for at, _ in replies] for trial, replies in open_trials.items() if replies}
    tallies = [*index.tallies, index.unassigned]
    state.dollars = fsum(dollars for tally in tallies for dollars in (*tally.dollars, *tally.judge_dollars))
    state.tokens = sum((tally.tokens[0] or 0) + (tally.tokens[1] or 0) for tally in tallies)
    state.price_unknown = any(tally.unpriced_replies for tally in tallies)
    state.tokens_unknown = any(tally.uncounted_replies for tally in tallies)
    return state


def pending_scores(folder: RunFolder, scorers: Sequence[ScorerInUse]) -> tuple[Iterator[PendingScore], int]:
    """The answers of a run that some of these scorers have not scored, and how many these are."""
    with trusted(folder):
        index = read_index(folder)
    scored = {used.info.scoring: index.scored(used.info.scoring) for used in scorers}
    partial = {scoring: index.partial_rows(scoring) for scoring in scored}
    cells = [
        cell for cell in range(index.planned) if index.answered[cell] and not all(has[cell] for has in scored.values())
    ]

    def pending() -> Iterator[PendingScore]:
        samples = {sample.id: sample for sample in folder.samples()}
        cells.sort(key=index.answers.__getitem__)  # as they were given
        decode = msgspec.json.Decoder(Answer).decode
        for cell, line in zip(cells, index.lines(index.answers[cell] for cell in cells), strict=True):
            answer = decode(line)
            missing = [used for used in scorers if not scored[used.info.scoring][cell]]
            present = {scoring: rows[cell] for scoring, rows in partial.items() if cell in rows}
            yield PendingScore(answer=answer, sample=samples[answer.sample], scorers=missing, present=present)

    return pending(), len(cells)


def refuse_changes(folder: RunFolder, experiment: Experiment, plan: Plan, scorers: Sequence[ScorerInfo]) -> None:
    """Raises ResumeRefused when answers on disk would not be asked for in this way today.

    More repetitions, conditions or samples, and whatever stands under `execution`, are
    welcome; a change to what was asked is not, nor another judge.
    """
    info = folder.info
    if info.rehearsed != experiment.rehearsed:
        told = "a rehearsal, in which scripts played the models" if info.rehearsed else "no rehearsal"
        raise ResumeRefused(str(folder.path), [f"it is {told}"], "Start a new run without --resume.")
    changes: list[str] = []
    conditions = {condition.name: condition for condition in experiment.conditions}
    for name, (digest, agent) in folder.digests().items():
        if name not in conditions:
            changes.append(f"condition '{name}' is gone")
        elif conditions[name].digest != digest:
            changes.append(
                _what_changed(
                    info.experiment,
                    experiment.resolved,
                    (f"conditions.{name}", "mcp_servers"),
                    f"condition '{name}' changed",
                )
            )
        elif conditions[name].agent.digest != agent:
            changes.append(
                _what_changed(
                    info.experiment,
                    experiment.resolved,
                    ("agent", f"conditions.{name}.agent"),
                    f"the agent of condition '{name}' changed",
                )
            )
    changes += _changed_samples(folder, {sample.id: sample for sample in plan.samples})
    if changes:
        remedy = "Start a new run without --resume, or undo the change."
        raise ResumeRefused(str(folder.path), list(dict.fromkeys(changes)), remedy)
    known = {scorer.scoring for scorer in folder.scorers()}
    if {scorer.scoring for scorer in scorers} <= known and (scorers or not info.scorers):
        return
    remedy = (
        f"To score the answers that are there in another way, use `karat score {folder.path} --judge …` (or --scorer)."
    )
    raise ResumeRefused(str(folder.path), _changed_scorers(info.scorers, scorers), remedy)


def _changed_scorers(before: Sequence[ScorerInfo], now: Sequence[ScorerInfo]) -> list[str]:
    found = []
    old, new = {one.name: one for one in before}, {one.name: one for one in now}
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            found.append(f"the scorer '{name}' is gone")
        elif name not in old:
            found.append(f"the scorer '{name}' is new")
        elif old[name].scoring != new[name].scoring:
            found.append(f"the scorer '{name}' changed{_options_changed(old[name], new[name])}")
    return found


def _options_changed(old: ScorerInfo, new: ScorerInfo) -> str:
    if old.type != new.type:
        return f": its type was {old.type}, is {new.type}"
    keys = [key for key in {**old.options, **new.options} if old.options.get(key) != new.options.get(key)]
    if not keys:
        return ": its rubric or its rule is another"
    return ": " + "; ".join(f"{key} was {old.options.get(key)!r:.80}, is {new.options.get(key)!r:.80}" for key in keys)


def _changed_samples(folder: RunFolder, today: Mapping[str, Sample]) -> list[str]:
    changed, gone = [], []
    for sample in folder.samples():
        if sample.id not in today:
            gone.append(sample.id)
        elif today[sample.id].digest != sample.digest:
            changed.append(sample.id)
    found = []
    if changed:
        found.append(f"the dataset changed in {_some(changed)}: question, golden answer or materials differ")
    # Fewer samples are no change of an answer when flags select them; the caller plans without flags to find out.
    if gone:
        found.append(f"the dataset no longer has {_some(gone)}")
    return found


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in ids[:5])
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"sample{'s' if len(ids) > 1 else ''} {shown}{more}"


def _what_changed(
    before: Mapping[str, Choice], now: Mapping[str, Choice], under: tuple[str, ...], otherwise: str
) -> str:
    keys = [key for key in sorted({*before, *now}) if key.startswith(under) and _value(before, key) != _value(now, key)]
    if not keys:
        return otherwise
    shown = "; ".join(f"{key} was {_value(before, key)!r:.80}, is {_value(now, key)!r:.80}" for key in keys[:4])
    return f"{otherwise}: {shown}"


def _value(choices: Mapping[str, Choice], key: str) -> object:
    choice = choices.get(key)
    return None if choice is None else choice.value
