"""What was paid for a conversation counts once, and what is gone on from is what stands, whatever happened to it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.analysis import summarize
from karat.execution.plan import Plan
from karat.execution.resume import SavedReplies, read_journal
from karat.journal import (
    FORMAT_VERSION,
    Attempt,
    Codec,
    DatasetInfo,
    Head,
    PlanInfo,
    ReplyEvent,
    Resume,
    RunFolder,
    RunInfo,
    create_run,
)
from karat.records import AgentSpec, Answer, Condition, Failure, Reply, Sample, Trial, Turn, Usage
from karat.redact import Redactor

TURNS = 4
SAMPLES = [
    Sample(id=str(n), position=n, digest=f"d{n}", turns=tuple(Turn(question=f"t{t}") for t in range(TURNS)))
    for n in range(2)
]
PLAN = Plan(SAMPLES, [Condition(name="a", position=0, digest="c", agent=AgentSpec(type="x"))], 1)


class Told:
    """One trial, as the engine would carry it out, with agents that go on or begin anew as it comes."""

    def __init__(self, trial: Trial, dice: random.Random) -> None:
        self.trial, self.dice = trial, dice
        self.stands: list[Reply] = []
        self.paid = 0.0
        self.answered = self.killed = False

    def story(self) -> Iterator[Any]:
        """Events up to an answer, or for ever; None where karat is killed, or ends, and all trials with it."""
        while not self.answered:
            self.killed = False
            attempt = 0
            while not self.answered and not self.killed:
                attempt += 1
                yield from self.attempt(attempt)

    def attempt(self, number: int) -> Iterator[Any]:
        goes_on = len(self.stands) == TURNS or self.dice.random() < 0.5
        kept = list(self.stands) if goes_on else []
        own: list[Reply] = []
        for turn in range(len(kept), TURNS):
            what = self.dice.choice(["told", "told", "told", "failed", "failed and said", "for good", "killed"])
            if what == "told":
                own.append(self.reply())
                self.stands = [*kept, *own]
                yield ReplyEvent(trial=self.trial.id, attempt=number, turn=turn, reply=own[-1])
                if not self.killed:
                    continue
            elif what == "killed":
                yield None
            else:
                said = [self.reply()] if what == "failed and said" else []
                yield self.failed(number, "crash", own + said)
                if what == "for good" and not self.killed:
                    yield Failure(
                        trial=self.trial.id, stage="agent", cls="infrastructure", kind="crash", message="x",
                        sample=self.trial.sample.id, condition="a", repetition=0,
                    )  # fmt: skip
                    yield None  # only another part of the run tries it again
            return
        if self.dice.random() < 0.2:
            self.stands = []
            yield self.failed(number, "gate_tool_use", own)
            return
        self.answered = True
        yield Answer(
            trial=self.trial.id, sample=self.trial.sample.id, condition="a", repetition=0,
            replies=(*kept, *own), attempts=number, kept=len(kept), started="", seconds=1.0,
        )  # fmt: skip

    def reply(self) -> Reply:
        dollars = float(self.dice.randrange(1, 1000))
        self.paid += dollars
        return Reply(text=f"for {dollars}", dollars=dollars, usage=Usage(input_tokens=int(dollars)))

    def failed(self, n: int, kind: str, replies: list[Reply]) -> Attempt:
        spent = float(self.dice.randrange(1, 1000)) if kind == "crash" else None
        self.paid += spent or 0.0
        usage = Usage(output_tokens=int(spent)) if spent is not None else None
        return Attempt(
            trial=self.trial.id, n=n, cls="agent", kind=kind, message="x", dollars=spent, usage=usage,
            replies=tuple(replies),
        )  # fmt: skip


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    info = RunInfo(
        format=FORMAT_VERSION, run="", name="paid", version="1", created="", kind="turns",
        plan=PlanInfo(samples=2, conditions=("a",), repetitions=1),
        dataset=DatasetInfo(kind="turns", path="x", sha256="0", samples=2), experiment={}, conditions={"a": "c"},
        prompts={}, agents={}, agent_type="x",
    )  # fmt: skip
    folder: Path = tmp_path_factory.mktemp("paid")
    return create_run(folder, info, experiment="", samples=SAMPLES, redact=Redactor({}))


@given(seed=st.integers(0, 2**32), events=st.integers(1, 60))
def test_what_was_paid_counts_once_whatever_happened(empty: RunFolder, seed: int, events: int) -> None:
    dice = random.Random(seed)
    told = [Told(trial, dice) for trial in PLAN]
    stories = [one.story() for one in told]
    lines: list[Any] = [Head(format=FORMAT_VERSION, run=empty.info.run)]
    for _ in range(events):
        which = dice.randrange(len(stories))
        event = next(stories[which], "over")
        if event is None:
            lines.append(Resume(at="", versions={}, host="h", pid=1))
            for one in told:
                one.killed = True
        elif event != "over":
            lines.append(event)
    empty.journal.write_bytes(b"".join(map(Codec().line, lines)))
    past = read_journal(empty, PLAN)
    paid = sum(one.paid for one in told)
    assert (past.dollars, past.tokens) == (paid, paid)
    account = summarize(empty).total
    assert account.cost.agent.known == paid
    assert (account.tokens.input or 0) + (account.tokens.output or 0) == paid
    begun = SavedReplies(empty, past)
    for one in told:
        assert begun(one.trial.id) == (() if one.answered else tuple(one.stands))
        assert begun(one.trial.id) == ()


OLD = [
    {"event": "reply", "trial": "T", "attempt": 1, "turn": 0, "reply": {"text": "a", "dollars": 1.0}},
    {"event": "reply", "trial": "T", "attempt": 1, "turn": 1, "reply": {"text": "b", "dollars": 1.0}},
    {
        "event": "attempt", "trial": "T", "n": 1, "class": "agent", "kind": "crash", "message": "x", "retriable": True,
        "dollars": 0.25, "replies": [{"text": "a", "dollars": 1.0}, {"text": "b", "dollars": 1.0}],
    },
    {"event": "reply", "trial": "T", "attempt": 2, "turn": 0, "reply": {"text": "c", "dollars": 1.0}},
    {"event": "reply", "trial": "T", "attempt": 2, "turn": 1, "reply": {"text": "d", "dollars": 1.0}},
    {"event": "reply", "trial": "T", "attempt": 2, "turn": 2, "reply": {"text": "e", "dollars": 1.0}},
    {
        "event": "answer", "trial": "T", "sample": "0", "condition": "a", "repetition": 0, "attempts": 2,
        "started": "2026-11-20T00:00:00.000+00:00", "seconds": 1.0,
        "replies": [{"text": text, "dollars": 1.0} for text in "cde"],
    },
]  # fmt: skip


@pytest.mark.parametrize("upto", range(1, len(OLD) + 1))
def test_journals_written_before_conversations_went_on_are_read_alike(empty: RunFolder, upto: int) -> None:
    trial = PLAN[0].id
    lines = [Head(format=FORMAT_VERSION, run=empty.info.run), *({**line, "trial": trial} for line in OLD[:upto])]
    empty.journal.write_bytes(b"".join(map(Codec().line, lines)))
    past = read_journal(empty, PLAN)
    paid = sum("reply" in line for line in OLD[:upto]) + (0.25 if upto > 2 else 0)
    assert past.dollars == paid
    assert summarize(empty).total.cost.agent.known == paid
    said = {1: "a", 2: "ab", 3: "ab", 4: "c", 5: "cd", 6: "cde", 7: ""}[upto]
    assert "".join(reply.text for reply in SavedReplies(empty, past)(trial)) == said
