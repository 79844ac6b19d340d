"""Whatever fails, is killed and goes on: the prompts of a game are those of an undisturbed one, and costs add up."""

from __future__ import annotations

import asyncio
import random
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.running_experiments import write_experiment

from karat.analysis import summarize
from karat.config import load
from karat.execution import Outcome, run_experiment
from karat.execution.plan import plan
from karat.execution.resume import read_journal
from karat.records import NOT_ASKED, Answer

from .games import MEMBERS, ROUNDS, asked, write_game

TURNS = MEMBERS * ROUNDS

# What is said depends on seed, group and turn; whether it fails first, on how often it was tried, too.
AGENT = """
import contextlib, random
from karat.errors import AgentFault, InfrastructureFault
from karat.records import Reply
SEED, RESUMES = 0, True
TRIED = {}
def said(group, turn):
    dice = random.Random(f"{SEED}/{group}/{turn}")
    return "no" if dice.random() < 0.3 else f"number: {dice.randrange(100)}"
class query:
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        yield (Told if RESUMES else Session)(sample)
class Session:
    def __init__(self, sample):
        self.sample, self.so_far = sample, []
    async def ask(self, turn):
        group, number = int(self.sample.id[-1]), (turn.detail["round"] - 1) * 3 + turn.seat
        times = TRIED[group, number] = TRIED.get((group, number), 0) + 1
        what = random.Random(f"{SEED}/{group}/{number}/{times}").random()
        what *= 1 if RESUMES else 4  # who begins anew each time must come to an end
        dollars = 1.0 if what > 0.2 else 0.0
        asked(group=group, turn=number, question=turn.question, so_far=self.so_far, dollars=dollars)
        if what < 0.2:
            raise InfrastructureFault("network", "gone", retriable=True, dollars=0.0)
        if what < 0.3:
            fault = AgentFault("half", "of an answer", retriable=True)
            fault.reply = Reply(text="half", dollars=dollars)
            raise fault
        self.so_far.append(said(group, number))
        return Reply(text=said(group, number), dollars=dollars)
class Told(Session):
    def restore(self, history):
        self.so_far = [reply.text for turn, reply in history]
"""


def said(seed: int, group: int, turn: int) -> str:
    dice = random.Random(f"{seed}/{group}/{turn}")
    return "no" if dice.random() < 0.3 else f"number: {dice.randrange(100)}"


def wanted(seed: int, group: int) -> dict[int, tuple[str | None, list[str]]]:
    """Turn → what a later round must show, and what its session must know; only of turns that are asked."""
    found: dict[int, tuple[str | None, list[str]]] = {}
    texts: list[str | None] = []
    for turn in range(TURNS):
        own = [text for text in texts[turn % MEMBERS :: MEMBERS] if text is not None]
        if own[-2:] == ["no", "no"]:
            texts.append(None)
            continue
        shown = None
        if turn >= MEMBERS:
            start = turn // MEMBERS * MEMBERS - MEMBERS
            values = [text and text.partition(": ")[2] for text in texts[start : start + MEMBERS]]
            mine = values.pop(turn % MEMBERS) or "unknown"
            numbers = [int(value) for value in values if value]
            mean = f"{round(sum(numbers) / len(numbers), 2):g}" if numbers else "unknown"
            shown = f"you said {mine}; {len(numbers)} others: mean {mean},"
        found[turn] = (shown, own)
        texts.append(said(seed, group, turn))
    return found


@pytest.mark.slow
@given(seed=st.integers(0, 2**20), resumes=st.booleans(), cuts=st.lists(st.floats(0, 1), max_size=3))
@settings(max_examples=10, deadline=None)
def test_prompts_and_costs_whatever_happens(seed: int, resumes: bool, cuts: list[float]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        code = AGENT.replace("SEED, RESUMES = 0, True", f"SEED, RESUMES = {seed}, {resumes}")
        execution = {"max_concurrent": 2, "retry": {"max_attempts": 60, "initial_backoff_seconds": 0}}
        file = write_game(folder, partial(write_experiment, folder), code, execution=execution)
        outcome = run(file, folder, resume=None)
        spent = sum(one["dollars"] for one in asked(file))
        for share in cuts:
            assert paid(file, outcome) == spent
            cut(outcome.run.journal, share)
            spent = paid(file, outcome)
            before = len(asked(file))
            outcome = run(file, folder, resume=outcome.run.path)
            spent += sum(one["dollars"] for one in asked(file)[before:])
        assert paid(file, outcome) == spent
        for group in (1, 2):
            expected = wanted(seed, group)
            heard = [one for one in asked(file) if one["group"] == group]
            assert {one["turn"] for one in heard} == set(expected)
            for one in heard:
                shown, own = expected[one["turn"]]
                assert shown is None or shown in one["question"]
                assert one["so_far"] == own
            (answer,) = [one for one in outcome.run.events_of(Answer) if one.sample == f"game-group-0{group}"]
            assert [reply.text for reply in answer.replies] == [
                said(seed, group, turn) if turn in expected else "" for turn in range(TURNS)
            ]
            assert [reply == NOT_ASKED for reply in answer.replies] == [turn not in expected for turn in range(TURNS)]


def run(file: Path, folder: Path, resume: Path | None) -> Outcome:
    return asyncio.run(run_experiment(load(file), results=folder / "results", resume=resume))


def paid(file: Path, outcome: Outcome) -> float:
    """What the journal says was spent: resume and summary must agree."""
    loaded = load(file)
    dollars = read_journal(outcome.run, plan(loaded, loaded.load_dataset())).dollars
    assert summarize(outcome.run).total.cost.agent.known == pytest.approx(dollars)
    return dollars


def cut(journal: Path, share: float) -> None:
    """As kill −9 leaves it: the head, and some of the lines behind it."""
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: 1 + int(share * (len(lines) - 1))]))
