"""Games: who sees what, in whose session, and that a group that was broken off goes on where it was."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.analysis import summarize
from karat.config import load
from karat.errors import BadExperiment
from karat.execution import Outcome
from karat.execution.plan import plan
from karat.execution.resume import read_journal
from karat.journal import Attempt, ReplyEvent, RunFolder
from karat.records import NOT_ASKED, Answer, Failure
from karat_studies.kinds.study.samples import read_reply

from .games import MEMBERS, ROUNDS, asked, write_game

Write = Callable[..., Path]
Run = Callable[..., Outcome]
FORM = "\n\nEnd your answer with one line in this form:\nnumber: a number from 0 to 100"
TURNS = MEMBERS * ROUNDS


@pytest.fixture
def game(experiment: Write, tmp_path: Path) -> Write:
    """`game(code, groups=2, tasks=0, **sections)` writes an experiment on a study with groups of three."""

    def write(code: str = "", **options: Any) -> Path:
        return write_game(tmp_path, experiment, code, **options)

    return write


def said(group: int, number: int) -> float:
    return 10 * group + number + 0.5


def shown(value: float) -> str:
    return f"{round(value, 2):g}"


def question(group: int, number: int) -> str:
    """What a turn must ask, from what everybody said: numbers of one's own group's last round alone."""
    round_, member = divmod(number, MEMBERS)
    if round_ == 0:
        raise LookupError
    before = [said(group, (round_ - 1) * MEMBERS + at) for at in range(MEMBERS)]
    own = before.pop(member)
    return (
        f"Round {round_ + 1}: you said {shown(own)}; {len(before)} others: mean {shown(sum(before) / len(before))}, "
        f"{shown(min(before))} to {shown(max(before))}. Say a number." + FORM
    )


def cut(run: RunFolder, number: int) -> None:
    """As kill −9 leaves a journal: nothing behind the `number`-th reply."""
    lines, seen = [], 0
    for line in run.lines():
        lines.append(line)
        seen += line.startswith(b'{"event":"reply"')
        if seen == number:
            break
    run.journal.write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.mark.parametrize("concurrent", [1, 5])
def test_a_round_sees_its_own_group_s_last_round_and_nothing_else(game: Write, run: Run, concurrent: int) -> None:
    file = game(groups=3, execution={"max_concurrent": concurrent, "num_repetitions": 2})
    outcome = run(file)
    heard = asked(file)
    assert Counter((one["sample"], one["turn"], one["repetition"]) for one in heard) == {
        (f"game-group-0{group}", number, repetition): 1
        for group in (1, 2, 3) for number in range(TURNS) for repetition in (0, 1)
    }  # fmt: skip
    for one in heard:
        group, number = int(one["sample"][-1]), one["turn"]
        if number >= MEMBERS:
            assert one["question"] == question(group, number)
        own = [at for at in range(number) if at % MEMBERS == number % MEMBERS]
        assert [answer for _, answer in one["history"]] == [f"number: {said(group, at)}" for at in own]
        assert [text for text, _ in one["history"][1:]] == [question(group, at) for at in own[1:]]
    assert [len(one.replies) for one in outcome.run.events_of(Answer)] == [TURNS] * 6


def test_the_turns_of_a_group_are_asked_in_their_order(game: Write, run: Run) -> None:
    file = game(groups=1)
    run(file)
    assert [one["turn"] for one in asked(file)] == list(range(TURNS))


def test_everybody_has_their_own_session_system_prompt_and_seed(game: Write, run: Run) -> None:
    code = """
import contextlib
from karat.records import Reply
class query:
    opened = closed = 0
    @contextlib.asynccontextmanager
    async def session(self, condition, sample, trial, first):
        query.opened += 1
        session = Session(query.opened, condition.system_prompt, trial.seed, first)
        yield session
        query.closed += 1
class Session:
    def __init__(self, *what):
        self.what = what
    async def ask(self, turn):
        asked(session=self.what, seat=turn.seat, open=query.opened - query.closed, round=turn.detail["round"])
        return Reply(text=f"number: {self.what[0]}")
"""
    file = game(code, groups=1)
    outcome = run(file)
    heard = asked(file)
    by_seat = {seat: {tuple(one["session"]) for one in heard if one["seat"] == seat} for seat in range(MEMBERS)}
    assert all(len(one) == 1 for one in by_seat.values())
    sessions = [next(iter(by_seat[seat])) for seat in range(MEMBERS)]
    (sample,) = outcome.run.samples()
    names = [member["profile"]["name"] for member in sample.detail["members"]]
    assert [one[:2] for one in sessions] == [(at + 1, f"You are {name}.") for at, name in enumerate(names)]
    assert len({one[2] for one in sessions}) == MEMBERS
    assert [one[3] for one in sessions] == list(range(MEMBERS))
    assert {one["open"] for one in heard if one["round"] > 1} == {MEMBERS}, "all stay open"


def test_a_participant_alone_has_a_system_prompt_of_their_own(game: Write, run: Run) -> None:
    file = game(groups=0, tasks=2)
    outcome = run(file)
    names = {sample.id: sample.detail["profile"]["name"] for sample in outcome.run.samples()}
    heard = asked(file)
    assert {(one["sample"], one["system"]) for one in heard} == {
        (sample, f"You are {name}.") for sample, name in names.items()
    }
    assert all(f"First question, {names[one['sample']]}?" in one["question"] for one in heard if one["turn"] == 0)


def test_a_system_prompt_that_asks_for_what_nobody_has_is_refused_before_the_first_call(game: Write, run: Run) -> None:
    file = game(conditions={"a": {"system_prompt": "You are {{ profile.nam }}."}})
    with pytest.raises(BadExperiment) as caught:
        run(file)
    assert [fault.place for fault in caught.value.faults] == ["conditions.a.system_prompt"]
    assert asked(file) == []


@pytest.mark.quick(4)
@pytest.mark.parametrize("number", range(1, 2 * TURNS + 1))
def test_after_a_kill_the_same_is_asked_and_nothing_twice(game: Write, run: Run, number: int) -> None:
    file = game(execution={"max_concurrent": 2})
    whole = run(file)
    wanted = {(one["sample"], one["turn"]): one for one in asked(file)}
    figures = summarize(whole.run).total
    cut(whole.run, number)
    before = {(one.trial, one.turn) for one in whole.run.events() if isinstance(one, ReplyEvent)}
    assert len(before) == number
    file.with_name("asked.jsonl").unlink()
    again = run(file, resume=whole.run.path)
    heard = asked(file)
    assert len(heard) == 2 * TURNS - number
    assert all(one == wanted[one["sample"], one["turn"]] for one in heard), "prompts are the same, byte by byte"
    after = summarize(again.run).total
    assert (after.cost.agent, after.tokens, after.ledger) == (figures.cost.agent, figures.tokens, figures.ledger)
    assert after.cost.agent.known == 2 * TURNS


WITH_SESSIONS = """
import contextlib
from karat.errors import InfrastructureFault
from karat.records import Reply
FAILS = ()
class query:
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        yield Session(sample)
class Session:
    def __init__(self, sample):
        self.sample, self.so_far = sample, []
    async def ask(self, turn):
        number = (turn.detail["round"] - 1) * 3 + turn.seat
        asked(sample=self.sample.id, turn=number, question=turn.question, so_far=self.so_far)
        lines = LOG.read_text().splitlines()
        if number in FAILS and sum(json.loads(one)["turn"] == number for one in lines) == 1:
            raise InfrastructureFault("network", "gone", retriable=True)
        said = f"number: {10 * int(self.sample.id[-1]) + number + 0.5}"
        self.so_far.append([turn.question, said])
        return Reply(text=said, dollars=1.0)
"""
RESTORE = """
    def restore(self, history):
        assert not self.so_far
        self.so_far = [[turn.question, reply.text] for turn, reply in history]
"""


def test_each_session_is_told_its_own_history_and_no_other(game: Write, run: Run) -> None:
    file = game(WITH_SESSIONS.replace("FAILS = ()", "FAILS = (4, 8)") + RESTORE, groups=1)
    outcome = run(file)
    heard = asked(file)
    assert [one["turn"] for one in heard] == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    for one in heard:
        own = [at for at in range(one["turn"]) if at % MEMBERS == one["turn"] % MEMBERS]
        assert [text for _, text in one["so_far"]] == [f"number: {said(1, at)}" for at in own]
        assert [text for text, _ in one["so_far"][1:]] == [question(1, at) for at in own[1:]]
    (answer,) = outcome.run.events_of(Answer)
    assert (answer.attempts, answer.kept) == (3, 8)
    assert summarize(outcome.run).total.cost.agent.known == TURNS


def test_sessions_that_cannot_be_told_begin_the_group_anew_and_all_that_was_spent_counts(game: Write, run: Run) -> None:
    file = game(WITH_SESSIONS.replace("FAILS = ()", "FAILS = (4,)"), groups=1)
    outcome = run(file)
    heard = asked(file)
    assert [one["turn"] for one in heard] == [0, 1, 2, 3, 4, *range(TURNS)]
    assert [one["so_far"] for one in heard[5:8]] == [[], [], []]
    (answer,) = outcome.run.events_of(Answer)
    assert (answer.attempts, answer.kept) == (2, 0)
    assert summarize(outcome.run).total.cost.agent.known == TURNS + 4
    loaded = load(file)
    assert read_journal(outcome.run, plan(loaded, loaded.load_dataset())).dollars == TURNS + 4


def test_one_group_that_fails_leaves_the_others_alone(game: Write, run: Run) -> None:
    code = """
from karat.errors import AgentFault
def query(user_query, sample, turn):
    asked(sample=sample.id, turn=turn, question=user_query)
    if sample.id == "game-group-01" and turn == 4:
        raise AgentFault("tired", "no more")
    return f"number: {number(sample, turn)}"
"""
    file = game(code, groups=3, execution={"max_concurrent": 3})
    outcome = run(file)
    heard = Counter(one["sample"] for one in asked(file))
    assert heard == {"game-group-01": 5, "game-group-02": TURNS, "game-group-03": TURNS}
    assert [one.sample for one in outcome.run.events_of(Failure)] == ["game-group-01"]
    assert [len(one.replies) for one in outcome.run.events_of(Attempt)] == [4]
    assert all(one["question"] == question(2, one["turn"]) for one in asked(file)
               if one["sample"] == "game-group-02" and one["turn"] >= MEMBERS)  # fmt: skip


def test_arms_with_games_and_without_run_side_by_side(game: Write, run: Run) -> None:
    file = game(groups=2, tasks=3, execution={"max_concurrent": 4})
    outcome = run(file)
    heard = asked(file)
    assert Counter(one["sample"] for one in heard) == {
        "game-group-01": TURNS, "game-group-02": TURNS, "alone-001": 3, "alone-002": 3
    }  # fmt: skip
    alone = [one for one in heard if one["sample"] == "alone-001"]
    assert [len(one["history"]) for one in alone] == [0, 1, 2]
    assert {one.sample: len(one.replies) for one in outcome.run.events_of(Answer)} == Counter(
        one["sample"] for one in heard
    )


STOPPING = """
UNREAD = {}
def query(user_query, history, sample, turn):
    asked(sample=sample.id, turn=turn, question=user_query, history=len(history))
    text = "I would rather not say." if turn in UNREAD else f"number: {number(sample, turn)}"
    return {"text": text, "dollars": 1.0}
"""
STOPS = {
    "nobody": ({}, []),
    "once is not twice": ({4}, []),
    "twice, at the end": ({4, 7}, []),
    "at once": ({1, 4}, [7]),
    "two of three": ({0, 3, 2, 5}, [6, 8]),
}


@pytest.mark.parametrize("kind", STOPS)
def test_who_cannot_be_read_twice_is_asked_no_more_and_the_others_play_on(game: Write, run: Run, kind: str) -> None:
    unread, stopped = STOPS[kind]
    file = game(STOPPING.replace("UNREAD = {}", f"UNREAD = {set(unread) or '()'}"), groups=1)
    outcome = run(file)
    heard = {one["turn"]: one for one in asked(file)}
    assert sorted(heard) == [number for number in range(TURNS) if number not in stopped]
    (answer,) = outcome.run.events_of(Answer)
    assert [number for number, reply in enumerate(answer.replies) if reply == NOT_ASKED] == stopped
    assert len(answer.replies) == TURNS
    for number, one in heard.items():
        if number < MEMBERS:
            continue
        round_, member = divmod(number, MEMBERS)
        before = {at: said(1, at) for at in range((round_ - 1) * MEMBERS, round_ * MEMBERS)}
        known = {at: value for at, value in before.items() if at not in unread and at not in stopped}
        own = known.pop((round_ - 1) * MEMBERS + member, None)
        mean = shown(sum(known.values()) / len(known)) if known else "unknown"
        assert (
            f"you said {'unknown' if own is None else shown(own)}; {len(known)} others: mean {mean}" in one["question"]
        )
    total = summarize(outcome.run).total
    assert total.cost.agent.known == TURNS - len(stopped)
    assert total.cost.agent.unknown == 0
    assert (total.tokens.input, total.tokens.unknown) == (None, TURNS - len(stopped))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("stop", [1, 2, 3, None])
def test_a_kill_changes_nothing_of_who_is_stopped(game: Write, run: Run, stop: int | None, number: int) -> None:
    code = STOPPING.replace("if turn in UNREAD", "if turn != 3")
    file = game(code, groups=0, tasks=4, dataset={"stop_after_unread": stop, "per_arm": 1})
    outcome = run(file)
    wanted = asked(file)
    assert [one["turn"] for one in wanted] == list(range(4 if stop is None else stop))
    (before,) = outcome.run.events_of(Answer)
    cut(outcome.run, number)
    file.with_name("asked.jsonl").unlink()
    again = run(file, resume=outcome.run.path)
    assert asked(file) == wanted[number:]
    (after,) = again.run.events_of(Answer)
    assert [one.text for one in after.replies] == [one.text for one in before.replies]
    assert [one == NOT_ASKED for one in after.replies] == [one == NOT_ASKED for one in before.replies]
    assert summarize(again.run).total.cost.agent.known == len(wanted)


def test_a_session_is_not_opened_for_who_is_asked_no_more(game: Write, run: Run) -> None:
    code = """
import contextlib
from karat.records import Reply
class query:
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        asked(opened=sample.id)
        class Session:
            async def ask(self, turn):
                return Reply(text="no", dollars=1.0)
        yield Session()
"""
    file = game(code, groups=0, tasks=4, dataset={"per_arm": 1})
    outcome = run(file)
    assert len(asked(file)) == 1
    cut(outcome.run, 2)
    again = run(file, resume=outcome.run.path)
    assert len(asked(file)) == 1, "its answers were all there, though it could not have been told of them"
    (answer,) = again.run.events_of(Answer)
    assert (answer.kept, len(answer.replies)) == (2, 4)


def test_the_timeout_is_for_each_of_a_group(game: Write, run: Run) -> None:
    code = """
import asyncio
async def query(user_query, sample, turn):
    if turn == 5:
        await asyncio.sleep(1.0)
    asked(sample=sample.id, turn=turn)
    return f"number: {turn}"
"""
    limits = {"timeout_seconds": 0.9, "retry": {"max_attempts": 1}}
    assert [one.attempts for one in run(game(code, groups=1, execution=limits)).run.events_of(Answer)] == [1]
    limits = {"timeout_seconds": 0.3, "retry": {"max_attempts": 1}}
    failed = run(game(code, groups=1, execution=limits))
    assert [(one.kind, one.cls) for one in failed.run.events_of(Failure)] == [("timeout", "limit")]


def test_the_floor_answers_every_field_in_the_range_and_alike_after_a_kill(game: Write, run: Run) -> None:
    file = game(groups=2, tasks=2, agent={"type": "floor"}, execution={"num_repetitions": 2})
    outcome = run(file)
    first = {one.trial: [reply.text for reply in one.replies] for one in outcome.run.events_of(Answer)}
    samples = {sample.id: sample for sample in outcome.run.samples()}
    for answer in outcome.run.events_of(Answer):
        for number, reply in enumerate(answer.replies):
            assert read_reply(samples[answer.sample], number, reply.text).kinds == {}
    assert len({text for texts in first.values() for text in texts}) > 30, "members and rounds differ"
    cut(outcome.run, 7)
    again = run(file, resume=outcome.run.path)
    assert {one.trial: [reply.text for reply in one.replies] for one in again.run.events_of(Answer)} == first


def test_a_recorded_game_is_replayed_from_a_file_and_from_its_run(game: Write, run: Run, tmp_path: Path) -> None:
    sections: dict[str, Any] = {"groups": 2, "tasks": 2}
    first = run(game(**sections))
    texts = {one.sample: [reply.text for reply in one.replies] for one in first.run.events_of(Answer)}
    samples = {sample.id: sample for sample in first.run.samples()}
    rows = []
    for answer in first.run.events_of(Answer):
        sample = samples[answer.sample]
        for turn, reply in zip(sample.turns, answer.replies, strict=True):
            member = turn.detail.get("member")
            who = sample.id if member is None else sample.detail["members"][member]["participant"]
            place = {"task": turn.detail["task"], "round": turn.detail.get("round")}
            rows.append({"participant": who, **place, "text": reply.text})
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    for replay in ({"path": str(tmp_path / "said.jsonl"), "participants": {}}, {"path": str(first.run.path)}):
        again = run(game(**sections, agent={"type": "replay", **replay}))
        replayed = {one.sample: [reply.text for reply in one.replies] for one in again.run.events_of(Answer)}
        assert replayed == texts
        assert "faults" not in again.run.info.source


def test_what_was_not_recorded_stops_nobody(game: Write, run: Run, tmp_path: Path) -> None:
    rows = [{"participant": "alone-001", "task": "materials/four.md", "text": "7"}]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    agent = {"type": "replay", "path": str(tmp_path / "said.jsonl"), "participants": {}}
    outcome = run(game(groups=0, tasks=4, agent=agent, dataset={"per_arm": 1}))
    (answer,) = outcome.run.events_of(Answer)
    assert [(reply.text, reply.stop_reason) for reply in answer.replies] == [("", "not_recorded")] * 3 + [("7", None)]
    assert outcome.run.info.source["faults"] == "the file of answers has faults: 3 turns without a row (not answered)"


@pytest.mark.needs_package("karat_servers")
@pytest.mark.slow
@pytest.mark.parametrize("breaks", [False, True])
def test_what_servers_said_to_each_of_a_group_is_recorded_and_replayed(game: Write, run: Run, breaks: bool) -> None:
    code = """
import contextlib
from karat.errors import InfrastructureFault
from karat.records import Reply
class query:
    def __init__(self, setting):
        self.toolbox = setting.toolbox
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        async with self.toolbox.open(condition) as tools:
            yield Session(tools)
class Session:
    def __init__(self, tools):
        self.tools = tools
    def restore(self, history):
        pass
    async def ask(self, turn):
        number = (turn.detail["round"] - 1) * 3 + turn.seat
        call = await self.tools.call("docs", "echo", {"text": f"number: {number if BREAKS else number % 2}"})
        if BREAKS and number == 4 and not LOG.exists():
            asked(failed=number)
            raise InfrastructureFault("network", "gone")
        return Reply(text=call.result, tool_calls=self.tools.calls[-1:])
"""
    code = code.replace("BREAKS", str(breaks))
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"]}
    sections: dict[str, Any] = {
        "mcp_servers": {"docs": docs}, "conditions": {"a": {"mcp_servers": ["docs"]}}, "groups": 1
    }  # fmt: skip
    wanted = [[f"number: {number if breaks else number % 2}" for number in range(TURNS)]]
    file = game(code, mcp={"record": "tapes"}, **sections)
    recorded = run(file)
    if breaks:
        assert [one.kind for one in recorded.run.events_of(Failure)] == ["network"]
        recorded = run(file, resume=recorded.run.path)
    assert [[reply.text for reply in one.replies] for one in recorded.run.events_of(Answer)] == wanted
    again = run(game(code, mcp={"replay": "tapes"}, **sections))
    assert [[reply.text for reply in one.replies] for one in again.run.events_of(Answer)] == wanted


def test_chat_takes_part_and_goes_on_with_the_same_messages(game: Write, run: Run) -> None:
    pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")
    from karat.testing.models import serve

    with serve([{"say": ["number: 40"]}]) as server:
        agent = {"type": "chat", "model": "openai:rehearsal", "base_url": server.openai_url}
        file = game(groups=1, agent=agent)
        outcome = run(file)
        systems = [request.system for request in server.requests]
        whole = [[(one.role, one.text) for one in request.messages] for request in server.requests]
        cut(outcome.run, 4)
        again = run(file, resume=outcome.run.path)
        after = [[(one.role, one.text) for one in request.messages] for request in server.requests][TURNS:]
        assert [request.system for request in server.requests] == systems + systems[4:]
    assert after == whole[4:]
    (sample,) = outcome.run.samples()
    names = [member["profile"]["name"] for member in sample.detail["members"]]
    assert systems == [f"You are {name}." for name in names] * ROUNDS
    assert [len(one) for one in whole] == [1] * 3 + [3] * 3 + [5] * 3
    assert "you said 40; 2 others: mean 40, 40 to 40" in whole[-1][-1][1]
    assert [len(one.replies) for one in again.run.events_of(Answer)] == [TURNS]
