"""The state of a journal: answered, scored, spent; and whether the current experiment still fits
it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from math import fsum
from typing import TYPE_CHECKING

import msgspec

from karat import plugins
from karat.errors import ResumeRefused
from karat.execution.limits import larger, tokens_of
from karat.execution.plan import Plan
from karat.execution.scoring import PendingScore, ScorerInUse, ScorerMemory
from karat.index import read_index, trusted
from karat.index.lines import ReplyLine
from karat.journal import Horizon, ReplyEvent, RunFolder, ScorerInfo
from karat.records import Answer, JsonObject, Reply, Sample, Score, Trial
from karat.redact import Redactor, map_texts
from karat.scorers import Row

if TYPE_CHECKING:
    from karat.config import Experiment


class JournalState(msgspec.Struct, kw_only=True):
    """One byte or one offset per planned trial: a million trials take ten megabytes."""

    plan: Plan
    offsets: array[int]  # offset of a trial's answer in the journal, plus 1; 0: none
    agent_faults: bytearray  # 1: finally failed by the agent's fault
    scored: dict[str, bytearray]  # scoring → 1 if all its rows are on disk, by trial
    # (scoring, trial) → rows on disk, if some are missing
    torn: dict[tuple[str, str], set[Row]] = {}
    # trial with only some turns answered → offsets of these replies
    interrupted: dict[str, Sequence[int]] = {}
    dollars: float = 0.0
    tokens: int = 0
    # dollars and tokens of the most expensive of the newest answers
    largest_trial: tuple[float, int] = (0.0, 0)
    largest_score: tuple[float, int] = (0.0, 0)  # of a judge
    horizon: Horizon | None = None  # for a run that may stop early
    price_unknown: bool = False  # some answer came without its price
    tokens_unknown: bool = False  # … without its tokens

    @classmethod
    def none(cls, plan: Plan) -> JournalState:
        """The state of a new run."""
        return cls(plan=plan, offsets=array("q"), agent_faults=bytearray(), scored={})

    def answered(self, selected: Plan) -> dict[str, int]:
        """How many trials of `selected` have an answer, by condition."""
        names = [condition.name for condition in self.plan.conditions]
        wanted = {condition.name for condition in selected.conditions}
        counts = {name: 0 for name in names if name in wanted}
        if not self.offsets:
            return counts
        samples = {sample.id for sample in selected.samples}
        chosen = [sample.id in samples for sample in self.plan.samples]
        for index, offset in enumerate(self.offsets):
            name = names[index % len(names)]
            if offset and name in counts and chosen[index // (self.plan.repetitions * len(names))]:
                counts[name] += 1

        return counts

    def to_ask(self, selected: Plan, *, retry_failed: bool) -> Iterator[Trial]:
        """The trials of `selected` without an answer."""
        if not self.offsets:
            return iter(selected)
        samples = {sample.id for sample in selected.samples}
        conditions = {condition.name for condition in selected.conditions}
        return (
            trial
            for trial in self.plan
            if not self.offsets[trial.index]
            and (retry_failed or not self.agent_faults[trial.index])
            and trial.sample.id in samples
            and trial.condition.name in conditions
            and (selected.shard is None or selected.shard.has(trial.id))
        )

    def pending(self, folder: RunFolder, scorers: Sequence[ScorerInUse]) -> Iterator[PendingScore]:
        """The answers on disk that some scorer has not scored, read one by one."""
        decoder = msgspec.json.Decoder(Answer)
        nothing = bytes(len(self.offsets))
        for index, offset in enumerate(self.offsets):
            missing = []
            for used in scorers:
                if not self.scored.get(used.info.scoring, nothing)[index]:
                    missing.append(used)

            if offset and missing:
                answer = decoder.decode(next(folder.lines(start=offset - 1)))
                scorings = []
                for used in missing:
                    if (used.info.scoring, answer.trial) in self.torn:
                        scorings.append(used.info.scoring)

                present = {scoring: self.torn[scoring, answer.trial] for scoring in scorings}
                yield PendingScore(
                    answer=answer, sample=self.plan[index].sample, scorers=missing, present=present
                )


class SavedReplies:
    """`saved(trial)`: the replies of an interrupted conversation, read when its trial is due."""

    def __init__(self, folder: RunFolder, past: JournalState) -> None:
        self._folder = folder
        self._places = past.interrupted

    def __call__(self, trial: str) -> tuple[Reply, ...]:
        places = self._places.pop(trial, ())  # it is requested once
        lines = (next(self._folder.lines(start=place)) for place in places)
        return tuple(_reply_event(line).reply for line in lines)


class _Costs(msgspec.Struct):
    replies: tuple[ReplyLine, ...]


_NEWEST = 100  # answers
_costs = msgspec.json.Decoder(_Costs).decode
_reply_event = msgspec.json.Decoder(ReplyEvent).decode


def read_journal(folder: RunFolder, plan: Plan) -> JournalState:
    """The journal's state of the trials of a plan that `refuse_changes` has accepted."""
    with trusted(folder):
        index = read_index(folder)
    size = len(plan)
    names = [condition.name for condition in plan.conditions]
    offsets = array("q", bytes(8 * size))
    faults = bytearray(size)
    numbers = array("q", [-1]) * index.planned
    faulty = set()
    for group, count in index.groups.items():
        if (group.cls, group.stage) == ("agent", "agent"):
            faulty.add(count.code)

    number = 0
    for sample in plan.samples:
        for repetition in range(plan.repetitions):
            for name in names:
                cell = index.cell(sample.id, name, repetition)
                if cell is not None:
                    numbers[cell] = number
                    if index.answered[cell]:
                        offsets[number] = index.answers[cell] + 1
                    else:
                        faults[number] = index.failed[cell] in faulty

                number += 1

    state = JournalState(
        plan=plan, offsets=offsets, agent_faults=faults, scored={}, horizon=index.horizon
    )
    for _, scoring in index.scores:
        complete = state.scored[scoring] = bytearray(size)
        for cell in filter(index.scored(scoring).__getitem__, range(index.planned)):
            if (number := numbers[cell]) >= 0:
                complete[number] = 1

        for cell, rows in index.partial_rows(scoring).items():
            if (number := numbers[cell]) >= 0:
                state.torn[scoring, plan[number].id] = rows

    open_trials = {trial: pending.partial.resumable for trial, pending in index.open_trials.items()}
    state.interrupted = {
        trial: [at for at, _ in replies] for trial, replies in open_trials.items() if replies
    }
    tallies = [*index.tallies, index.unassigned]
    state.dollars = fsum(
        dollars for tally in tallies for dollars in (*tally.dollars, *tally.judge_dollars)
    )
    state.tokens = sum((tally.tokens[0] or 0) + (tally.tokens[1] or 0) for tally in tallies)
    newest = []
    for place in nlargest(_NEWEST, offsets):
        if place:
            newest.append(_costs(next(folder.lines(start=place - 1))))

    for answer in newest:
        tokens = sum(tokens_of(reply.usage) for reply in answer.replies)
        state.largest_trial = larger(
            state.largest_trial, fsum(reply.dollars or 0.0 for reply in answer.replies), tokens
        )

    for tally in tallies:
        tokens = tally.judge_tokens // max(1, tally.answered)
        state.largest_score = larger(
            state.largest_score, max(tally.judge_dollars, default=0.0), tokens
        )

    state.price_unknown = any(tally.unpriced_replies for tally in tallies)
    state.tokens_unknown = any(tally.uncounted_replies for tally in tallies)
    return state


def pending_scores(
    folder: RunFolder, scorers: Sequence[ScorerInUse], memory: ScorerMemory, *, again: bool = False
) -> tuple[Iterator[PendingScore], int]:
    """The answers of a run that some of these scorers have not scored, and their number.

    `memory` serves these answers from now on. `again`: other scorers have counted the trials as
    settled.
    """
    with trusted(folder):
        index = read_index(folder)
    memory.answers = index
    scored = {used.info.scoring: index.scored(used.info.scoring) for used in scorers}
    partial = {scoring: index.partial_rows(scoring) for scoring in scored}
    cells = [
        cell
        for cell in range(index.planned)
        if index.answered[cell] and not all(has[cell] for has in scored.values())
    ]

    def pending() -> Iterator[PendingScore]:
        samples = {sample.id: sample for sample in folder.samples()}
        cells.sort(key=index.answers.__getitem__)  # in the order they were given
        decode = msgspec.json.Decoder(Answer).decode
        for cell, line in zip(
            cells, index.lines(index.answers[cell] for cell in cells), strict=True
        ):
            answer = decode(line)
            missing = []
            for used in scorers:
                if not scored[used.info.scoring][cell]:
                    missing.append(used)

            present = {scoring: rows[cell] for scoring, rows in partial.items() if cell in rows}
            yield PendingScore(
                answer=answer,
                sample=samples[answer.sample],
                scorers=missing,
                present=present,
                again=again,
            )

    return pending(), len(cells)


def refuse_changes(
    folder: RunFolder, experiment: Experiment, plan: Plan, scorers: Sequence[ScorerInfo]
) -> None:
    """Raises ResumeRefused if the answers on disk would be asked for differently now.

    More repetitions, conditions or samples, and any change under `execution`, are
    allowed; a change to what was asked is not, nor another judge.
    """
    info = folder.info
    path = str(folder.path)
    if info.rehearsed != experiment.rehearsed:
        kind = (
            "a rehearsal, in which scripts played the models" if info.rehearsed else "no rehearsal"
        )
        raise ResumeRefused(path, [f"it is {kind}"], "Start a new run without --resume.")

    changes: list[str] = []
    conditions = {condition.name: condition for condition in experiment.conditions}
    before = {key: choice.value for key, choice in folder.info.experiment.items()}
    now = {key: choice.value for key, choice in experiment.resolved.items()}
    for name, (digest, agent) in folder.digests().items():
        if name not in conditions:
            changes.append(f"condition '{name}' is gone")
        elif conditions[name].digest != digest:
            keys = (f"conditions.{name}", "mcp_servers")
            changes.append(f"condition '{name}' changed" + _differences(before, now, keys, most=4))
        elif conditions[name].agent.digest != agent:
            keys = ("agent", f"conditions.{name}.agent")
            changes.append(
                f"the agent of condition '{name}' changed" + _differences(before, now, keys, most=4)
            )

    changes += _changed_samples(folder, experiment, plan)
    if changes:
        remedy = "Start a new run without --resume, or undo the change."
        raise ResumeRefused(path, list(dict.fromkeys(changes)), remedy)

    new = {scorer.name for scorer in new_scorers(folder, scorers)}
    replaced = {scorer.scoring for scorer in folder.scorers() if scorer.name in new}
    scored = {score.scoring for score in folder.events_of(Score)} if new else set()
    # a judge that has no score yet may be changed
    has_scored = bool(new) and (not replaced or not replaced.isdisjoint(scored))
    if has_scored or (info.scorers and not scorers):
        use = f"`karat score {folder.path} --judge …` (or --scorer)"
        remedy = f"To score the answers that are there in another way, use {use}."
        old = {scorer.name: scorer for scorer in info.scorers}
        asked = {scorer.name: scorer for scorer in scorers}
        for name in dict.fromkeys([*old, *asked]):
            if name not in asked:
                changes.append(f"the scorer '{name}' is gone")
            elif name not in old:
                changes.append(f"the scorer '{name}' is new")
            elif old[name].type != asked[name].type:
                types = f"its type was {old[name].type}, is {asked[name].type}"
                changes.append(f"the scorer '{name}' changed: {types}")
            elif old[name].scoring != asked[name].scoring:
                differences = _differences(old[name].options, asked[name].options)
                how = differences or ": its rubric or its rule is another"
                changes.append(f"the scorer '{name}' changed{how}")

        raise ResumeRefused(path, changes, remedy)


def new_scorers(folder: RunFolder, scorers: Sequence[ScorerInfo]) -> tuple[ScorerInfo, ...]:
    """The scorers that the run does not know yet."""
    known = {scorer.scoring for scorer in folder.scorers()}
    return tuple(scorer for scorer in scorers if scorer.scoring not in known)


def _changed_samples(folder: RunFolder, experiment: Experiment, plan: Plan) -> Iterator[str]:
    """Flags may select fewer samples: `plan` is that of the whole experiment."""
    plugin = plugins.find("agents", experiment.agent.type, folder=experiment.folder)
    elicit = set()
    for condition in experiment.conditions:
        if condition.elicit is not None:
            elicit.add(condition.elicit.column)

    columns = {*getattr(plugin, "columns", ()), *filter(None, elicit)}
    redact = Redactor(experiment.secrets)

    def asked(sample: Sample) -> JsonObject:
        """What is asked, including columns that the agent reads, as in the run folder."""
        read = {name: sample.metadata.get(name) for name in columns}
        return {"digest": sample.digest, **map_texts(read, redact)}

    today = {sample.id: asked(sample) for sample in plan.samples}
    before = [(sample.id, asked(sample)) for sample in folder.samples()]
    changed = []
    for name, digest in before:
        if today.get(name, digest) != digest:
            changed.append(name)

    gone = [name for name, _ in before if name not in today]
    if changed:
        yield (
            f"the dataset changed in {_some(changed)}: what is asked, golden answer or materials "
            f"differ"
        )

    if gone:
        yield f"the dataset no longer has {_some(gone)}"


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in ids[:5])
    if len(ids) > 5:
        more = f" and {len(ids) - 5} more"
    else:
        more = ""

    return f"sample{'s' if len(ids) > 1 else ''} {shown}{more}"


def _differences(
    before: Mapping[str, object],
    now: Mapping[str, object],
    under: tuple[str, ...] = ("",),
    *,
    most: int | None = None,
) -> str:
    """`: max_turns was 3, is 4; …` of the keys that begin with one of `under`; "" if none
    differs.
    """
    keys = []
    for key in {**before, **now}:
        if key.startswith(under) and before.get(key) != now.get(key):
            keys.append(key)

    if most is not None:
        keys = sorted(keys)[:most]
    shown = "; ".join(f"{key} was {before.get(key)!r:.80}, is {now.get(key)!r:.80}" for key in keys)
    if shown:
        return f": {shown}"
    return ""
