"""What a journal already holds: answered, scored, spent; and whether today's experiment still fits it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from karat.errors import ResumeRefused
from karat.execution.plan import Plan
from karat.execution.progress import tokens_of
from karat.execution.scoring import PendingScore, ScorerInUse
from karat.journal import Choice, Conversation, ReplyEvent, RunFolder, ScorerInfo, Torn, damaged
from karat.records import Answer, Reply, Sample, Trial, Usage
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
                yield _pending(answer, self.plan[index].sample, missing, self.torn)

    def _is_scored(self, scoring: str, index: int) -> bool:
        complete = self.scored.get(scoring)
        return complete is not None and complete[index] == 1


def _pending(
    answer: Answer, sample: Sample, missing: Sequence[ScorerInUse], torn: Mapping[tuple[str, str], set[Row]]
) -> PendingScore:
    scorings = [used.info.scoring for used in missing]
    present = {scoring: torn[scoring, answer.trial] for scoring in scorings if (scoring, answer.trial) in torn}
    return PendingScore(answer=answer, sample=sample, scorers=missing, present=present)


class SavedReplies:
    """`begun(trial)`: the replies of a conversation that was broken off, read when its trial's turn comes."""

    def __init__(self, folder: RunFolder, past: JournalState) -> None:
        self._folder, self._places = folder, past.begun

    def __call__(self, trial: str) -> tuple[Reply, ...]:
        places = self._places.pop(trial, ())  # asked for once: what is told now is not remembered twice
        lines = (next(self._folder.lines(start=place)) for place in places)
        return tuple(_reply_event(line).reply for line in lines)


_reply_event = msgspec.json.Decoder(ReplyEvent).decode


class _Row(msgspec.Struct):
    """The few fields of any event that a resume needs."""

    event: str
    trial: str = ""
    scoring: str = ""
    rows: int = 1
    turn: int | None = None
    judge: str | None = None
    repeat: int = 0
    stage: str = ""
    kind: str = ""
    cls: str = msgspec.field(name="class", default="")
    dollars: float | None = None
    usage: Usage | None = None
    reply: _Spent | None = None
    replies: tuple[_Spent, ...] = ()

    @property
    def place(self) -> Row:
        return self.turn, self.judge, self.repeat


class _Spent(msgspec.Struct):
    dollars: float | None = None
    usage: Usage | None = None


def read_journal(folder: RunFolder, plan: Plan) -> JournalState:
    """One pass over the journal. The first durable answer of a trial counts."""
    index_of = {trial.id: trial.index for trial in plan}
    size = len(plan)
    past = JournalState(plan=plan, offsets=array("q", bytes(8 * size)), agent_faults=bytearray(size), scored={})
    decoder = msgspec.json.Decoder(_Row)
    torn: Torn[tuple[str, str], Row] = Torn()
    told: dict[str, Conversation[int]] = {}
    at = 0
    for number, line in enumerate(folder.lines(), start=1):
        start, at = at, at + len(line) + 1
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise damaged(str(folder.path), number, error) from error
        _add_up(past, row, _not_counted_yet(told, row, start))
        index = index_of.get(row.trial)
        if index is None:
            continue
        if row.event == "answer":
            past.offsets[index] = past.offsets[index] or start + 1
            past.agent_faults[index] = 0
        elif row.event == "failure" and row.stage == "agent":
            past.agent_faults[index] = row.cls == "agent"
        elif row.event == "score":
            whole = past.scored.get(row.scoring)
            if whole is None:
                whole = past.scored[row.scoring] = bytearray(size)
            if not whole[index] and torn.completes((row.scoring, row.trial), row.place, rows=row.rows):
                whole[index] = 1
    past.torn = torn.there
    past.begun = {trial: one.taken_up for trial, one in told.items() if one.taken_up}
    return past


def _not_counted_yet(told: dict[str, Conversation[int]], row: _Row, place: int) -> Sequence[_Spent]:
    """The replies of a line that stand in no earlier one. `told`: trials with replies and, as yet, no answer."""
    if row.event == "reply" and row.reply is not None:
        told.setdefault(row.trial, Conversation()).add(row.turn or 0, place)
        return (row.reply,)
    if row.event == "resume":
        for begun in told.values():
            begun.broken_off()
    one = told.get(row.trial)
    if one is None:
        return row.replies
    if row.event == "answer":
        del told[row.trial]
        return row.replies[len(one.replies) :]
    return row.replies[one.failed(row.kind) :] if row.event == "attempt" else row.replies


def _add_up(past: JournalState, row: _Row, replies: Sequence[_Spent]) -> None:
    past.dollars += (row.dollars or 0.0) + sum(reply.dollars or 0.0 for reply in replies)
    past.tokens += tokens_of(row.usage) + sum(tokens_of(reply.usage) for reply in replies)
    if row.event in ("answer", "reply"):
        past.price_unknown |= any(reply.dollars is None for reply in replies)
        past.tokens_unknown |= any(reply.usage is None for reply in replies)


def pending_scores(folder: RunFolder, scorers: Sequence[ScorerInUse]) -> tuple[Iterator[PendingScore], int]:
    """The answers of a run that some of these scorers have not seen, and how many these are."""
    stop = folder.journal.stat().st_size
    torn: Torn[tuple[str, str], Row] = Torn()
    scored: dict[str, set[str]] = {used.info.scoring: set() for used in scorers}
    answered: set[str] = set()
    decoder = msgspec.json.Decoder(_Row)
    for line in folder.lines(stop=stop):
        if line.startswith(b'{"event":"answer"'):
            answered.add(decoder.decode(line).trial)
        elif line.startswith(b'{"event":"score"'):
            row = decoder.decode(line)
            whole = scored.get(row.scoring)
            if whole is None or row.trial in whole:
                continue
            if torn.completes((row.scoring, row.trial), row.place, rows=row.rows):
                whole.add(row.trial)

    def unscored() -> Iterator[PendingScore]:
        samples = {sample.id: sample for sample in folder.samples()}
        seen: set[str] = set()
        for answer in folder.events_of(Answer, stop=stop):
            missing = [used for used in scorers if answer.trial not in scored[used.info.scoring]]
            if answer.trial not in seen and missing:
                yield _pending(answer, samples[answer.sample], missing, torn.there)
            seen.add(answer.trial)

    return unscored(), sum(any(trial not in whole for whole in scored.values()) for trial in answered)


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
