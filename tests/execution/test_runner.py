"""The crowd: how many trials and scores are under way at a time, in which order, and how a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.execution.parts import AT_ONCE, Parts, Saying, answer, condition, sample, scorer, trial, work_of

from karat.errors import AgentFault, BadRun, InfrastructureFault
from karat.execution.retry import AttemptError
from karat.execution.runner import Runner, TrialQueue
from karat.execution.scoring import PendingScore
from karat.execution.trial import Job, Work
from karat.journal import Attempt, Decided
from karat.records import Answer, Failure, Reply, Sample, Score, Trial, Turn
from karat.scorers import Verdict


def trials(count: int, *conditions: str) -> Iterator[Trial]:
    """Of as many questions, under each condition."""
    for number in range(count):
        question = sample(Turn(question=f"q{number}"), id=str(number), position=number)
        for name in conditions or ("c",):
            yield trial(question, condition(name), id=f"{number}{name}", index=number)


def work(**changes: Any) -> Work:
    return work_of(changes)


def answered(*scorers: Any, count: int, noted: list[str] | None = None) -> Iterator[PendingScore]:
    """Answers of an earlier part of the run."""
    for number in range(count):
        if noted is not None:
            noted.append(str(number))
        told = answer(trial=str(number), sample=str(number))
        yield PendingScore(answer=told, sample=sample(id=str(number)), scorers=scorers)


class Ran:
    """A whole run, with a journal in memory."""

    def __init__(self, what: Work, parts: Parts | None = None, **options: Any) -> None:
        self.parts = parts or Parts()
        self.work = what
        self.options = options
        self.runner: Any = None
        self.reason: str | None = None

    def run(self, beside: Callable[[Ran], Any] | None = None) -> Ran:
        async def go() -> None:
            parts = self.parts
            journal: Any = parts.journal
            self.runner = Runner(
                self.work,
                journal=journal,
                limits=parts.limits,
                budget=parts.budget,
                status=parts.status,
                **self.options,
            )
            other = None if beside is None else asyncio.create_task(beside(self))
            self.reason = await self.runner.run()
            if other is not None:
                await other

        asyncio.run(asyncio.wait_for(go(), 30))
        return self

    def order(self) -> list[tuple[str, str]]:
        return [(type(event).__name__, event.trial) for event in self.parts.journal.events]


def test_a_run_asks_so_many_at_a_time_and_says_so() -> None:
    now = most = 0

    async def counting() -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return "a"

    ran = Ran(work(trials=trials(12), agents={"c": Saying(lambda turn: counting())}), Parts(max_concurrent=3)).run()
    assert (most, ran.reason, len(ran.parts.written(Answer))) == (3, "done", 12)
    status = ran.parts.status
    assert (status.most, status.in_flight, status.scoring) == (3, 0, 0)
    assert status.began is not None


def test_a_run_without_agents_only_scores() -> None:
    ran = Ran(work(pending=answered(scorer(lambda sample, answer: True), count=3))).run()
    assert (ran.reason, ran.parts.status.most, ran.parts.status.settled) == ("done", 0, 3)
    assert ran.order() == [("Score", str(number)) for number in range(3)]


def test_answers_of_before_are_scored_once_the_last_trial_is_asked() -> None:
    async def judged(sample: Sample, answer: Answer) -> bool:
        return True

    def rule(sample: Sample, answer: Answer) -> bool:
        return True

    used = (scorer(rule, "rule"), scorer(judged, "judge", waits=True))
    noted: list[str] = []

    def ask(turn: Turn) -> str:
        noted.append("asked")
        return "a"

    agent = Saying(ask)
    what = work(trials=trials(2), agents={"c": agent}, pending=answered(*used, count=2, noted=noted))
    ran = Ran(what, Parts(max_concurrent=1)).run()
    assert noted == ["asked", "asked", "0", "1"]
    assert ran.parts.fields(Score, "trial", "scorer") == [
        ("0", "rule"), ("1", "rule"), ("0", "judge"), ("1", "judge"),
    ]  # fmt: skip
    assert ran.parts.status.settled == 4


@pytest.mark.parametrize(("waits", "offline", "most"), [(False, True, 1000), (True, True, 64), (False, False, 64)])
def test_few_answers_are_read_ahead_of_a_judge_and_many_of_a_rule(waits: bool, offline: bool, most: int) -> None:
    read: list[str] = []
    ahead: list[int] = []

    def sync(sample: Sample, answer: Answer) -> Any:
        ahead.append(len(read))
        return Verdict(values={"m": 1.0}, dollars=0.0)

    async def later(sample: Sample, answer: Answer) -> Any:
        return sync(sample, answer)

    used = scorer(later if waits else sync, offline=offline, waits=waits)
    ran = Ran(work(scorers=(used,), pending=answered(used, count=2 * most + 9, noted=read))).run()
    assert ran.parts.status.settled == len(read) == 2 * most + 9
    assert ahead[0] == 2 * most, "a batch is scored while the next one is written"


def test_a_judge_that_has_given_nothing_yet_is_sent_few_answers() -> None:
    asked = 0

    def ask(turn: Turn) -> str:
        nonlocal asked
        asked += 1
        return "a"

    async def first(sample: Sample, answer: Answer) -> float:
        steps = 0 if seen else 400
        for _ in range(steps):  # until nothing more happens without its verdict
            await asyncio.sleep(0)
        seen.append(asked)
        return 1.0

    seen: list[int] = []
    judge = scorer(first, offline=False, waits=True)
    free = scorer(first, offline=True, waits=True)
    for used, most in ((judge, 2), (free, 66)):
        asked = 0
        seen.clear()
        what = work(trials=trials(100), agents={"c": Saying(ask)}, scorers=(used,))
        Ran(what, Parts(max_concurrent=2)).run()
        assert seen[0] == most
        assert len(seen) == 100


def test_a_slow_judge_holds_the_agents_back() -> None:
    asked = judged = most = 0

    def ask(turn: Turn) -> str:
        nonlocal asked, most
        asked += 1
        most = max(most, asked - judged)
        return "a"

    async def slow(sample: Sample, answer: Answer) -> float:
        nonlocal judged
        await asyncio.sleep(0)
        judged += 1
        return 1.0

    what = work(trials=trials(300), agents={"c": Saying(ask)}, scorers=(scorer(slow, waits=True),))
    Ran(what, Parts(max_concurrent=1)).run()
    assert (asked, judged) == (300, 300)
    assert most <= 1 + 64


def test_a_failed_trial_comes_again_when_it_is_due() -> None:
    said: list[Any] = [InfrastructureFault("gone", "m", retriable=True), "a"]
    ran = Ran(work(trials=trials(1), agents={"c": Saying(lambda turn: said.pop(0))}), Parts(retry=AT_ONCE)).run()
    assert [type(event) for event in ran.parts.journal.events] == [Attempt, Answer]
    assert ran.parts.fields(Answer, "attempts") == [(2,)]


def test_the_first_reason_to_end_is_the_one_that_is_told() -> None:
    async def drained(ran: Ran) -> None:
        ran.runner.drain("max_failures")
        ran.runner.drain("interrupted")

    agent = Saying(lambda turn: asyncio.sleep(0.01, "a"))
    ran = Ran(work(trials=trials(9), agents={"c": agent}), Parts(max_concurrent=2)).run(drained)
    assert (ran.reason, ran.parts.status.draining) == ("max_failures", "max_failures")
    assert len(ran.parts.written(Answer)) == 2, "those in flight finish"


def test_too_many_failures_end_a_run() -> None:
    ran = Ran(
        work(trials=trials(9), agents={"c": Saying(lambda turn: AgentFault("k", turn.question))}),
        Parts(max_concurrent=1, max_failures=2),
    ).run()
    assert (ran.reason, len(ran.parts.written(Failure))) == ("max_failures", 2)


def test_a_run_that_is_cancelled_cuts_off_what_is_in_flight() -> None:
    closed: list[str] = []

    async def hangs() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            closed.append("closed")
        return "late"

    async def cancelled(ran: Ran) -> None:
        while ran.parts.status.in_flight < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        ran.runner.cancel()

    agent = Saying(lambda turn: hangs())
    ran = Ran(work(trials=trials(9), agents={"c": agent}), Parts(max_concurrent=2)).run(cancelled)
    assert (ran.reason, closed, ran.parts.journal.events) == ("interrupted", ["closed", "closed"], [])


def test_a_journal_that_cannot_be_read_on_ends_the_run() -> None:
    def broken() -> Iterator[PendingScore]:
        yield from answered(scorer(lambda sample, answer: True), count=1)
        raise OSError("the disk is gone")

    ran = Ran(work(pending=broken()))
    with pytest.raises(OSError, match="the disk is gone"):
        ran.run()
    assert ran.parts.status.draining == "interrupted"


@pytest.mark.parametrize("waits", [False, True])
def test_what_no_trial_can_go_on_from_ends_the_run_and_the_others_in_flight_finish(waits: bool) -> None:
    def full(sample: Sample, answer: Answer) -> bool:
        if sample.id == "0":
            raise BadRun("run", "the disk is full")
        return True

    async def later(sample: Sample, answer: Answer) -> bool:
        return full(sample, answer)

    used = scorer(later if waits else full, waits=waits)
    ran = Ran(work(trials=trials(9), agents={"c": Saying()}, scorers=(used,)), Parts(max_concurrent=2))
    with pytest.raises(BadRun, match="the disk is full"):
        ran.run()
    assert ran.parts.status.draining == "interrupted"
    answers = len(ran.parts.written(Answer))
    assert len(ran.parts.written(Score)) == answers - 1


def test_a_budget_ends_a_run_and_each_judge_waits_for_what_the_one_before_cost() -> None:
    async def judged(sample: Sample, answer: Answer) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(values={"m": 1.0}, dollars=1.0)

    used = scorer(judged, offline=False, waits=True)
    parts = Parts(max_concurrent=3, usd=5.0)
    ran = Ran(work(scorers=(used,), pending=answered(used, count=20)), parts).run()
    assert (ran.reason, parts.budget.dollars) == ("budget", 5.0)


def test_scorers_that_compare_answers_are_asked_when_all_are_in() -> None:
    order: list[str] = []

    def noting(name: str) -> Any:
        async def score(sample: Sample, answer: Answer) -> float:
            await asyncio.sleep(0.001)
            order.append(name)
            return 1.0

        return scorer(score, name, waits=True)

    first, late = noting("first"), noting("late")
    what = work(
        trials=trials(3),
        agents={"c": Saying()},
        scorers=(first,),
        pending=answered(first, count=2),
        late=lambda: answered(late, count=4),
    )
    Ran(what, Parts(max_concurrent=2)).run()
    assert order == ["first"] * 5 + ["late"] * 4


@pytest.mark.parametrize("bounded", [False, True])
def test_answers_that_are_recorded_are_looked_up_unless_a_budget_bounds_what_they_cost(bounded: bool) -> None:
    agent = Saying(lambda turn: Reply(text="asked", dollars=0.5), recorded_reply=lambda *_: Reply(text="found"))
    parts = Parts(usd=100.0 if bounded else None)
    ran = Ran(work(trials=trials(3), agents={"c": agent}), parts).run()
    assert [one.text for one in ran.parts.written(Answer)] == ["asked" if bounded else "found"] * 3


class Elsewhere:
    """Trials that run somewhere else, as far as the run can tell."""

    most = 2

    def __init__(self, end: Callable[[Any], None] | None = None) -> None:
        self.end = end
        self.calls: list[str] = []
        self.open_now = self.seen = 0

    def __call__(self, work: Work, run: Any, *, local: Any, scoring: Any, fail: Any) -> Elsewhere:
        self.local, self.fail = local, fail
        return self

    def start(self) -> None:
        self.calls.append("start")

    async def run(self, job: Job, *, asked: Callable[[], None], retry: Any) -> None:
        self.open_now += 1
        self.seen = max(self.seen, self.open_now)
        await asyncio.sleep(0)
        self.open_now -= 1
        self.calls.append(job.trial.id)
        if self.end is not None:
            self.end(self.fail)
        await self.local.run(job, asked=asked, retry=retry)

    async def close(self) -> None:
        self.calls.append("close")


def test_trials_may_run_elsewhere_as_many_as_fit_there() -> None:
    place = Elsewhere()
    what = work(trials=trials(5), agents={"c": Saying()})
    ran = Ran(what, Parts(max_concurrent=1), elsewhere=place).run()
    assert place.calls == ["start", *(f"{number}c" for number in range(5)), "close"]
    assert (place.seen, ran.reason, len(ran.parts.written(Answer))) == (2, "done", 5)


def test_without_anything_to_run_it_a_run_ends_and_its_faults_are_raised() -> None:
    def made(end: Callable[[Any], None]) -> Ran:
        return Ran(work(trials=trials(5), agents={"c": Saying()}), Parts(max_concurrent=1), elsewhere=Elsewhere(end))

    assert made(lambda fail: fail(None)).run().reason == "no_workers"
    broken = made(lambda fail: (fail(OSError("gone")), fail(OSError("again"))))
    with pytest.raises(OSError, match="gone"):
        broken.run()
    assert broken.parts.status.draining == "interrupted"


class Deciding:
    """An early stop that decides after so many scores, and looks no further ahead than told."""

    def __init__(self, parts: Parts, after: int, *, clusters: int | None = None, ahead: int = 99) -> None:
        self.parts, self.after, self.clusters, self.ahead = parts, after, clusters, ahead
        self.out: frozenset[str] = frozenset()

    def look(self) -> list[Decided]:
        scores = len(self.parts.written(Score))
        if scores < self.after or self.out:
            return []
        self.out = frozenset({"b"})
        return [
            Decided(a="a", b="b", verdict="better", questions=scores, clusters=self.clusters, n=2, value=0.5, p=0.1)
        ]

    def wants(self, trial: Trial) -> bool:
        return trial.condition.name not in self.out

    def may_start(self, trial: Trial) -> bool:
        return trial.index < self.ahead


@pytest.mark.parametrize(("clusters", "over"), [(None, "4 questions"), (3, "3 clusters")])
def test_a_decision_is_told_and_what_it_decided_is_not_asked_any_more(clusters: int | None, over: str) -> None:
    parts = Parts(max_concurrent=1)
    parts.status.expects({"a": 5, "b": 5}, {})
    agent = Saying()
    what = work(
        trials=trials(5, "a", "b"), agents={"a": agent, "b": agent}, scorers=(scorer(lambda sample, answer: True),)
    )
    ran = Ran(what, parts, early=Deciding(parts, 4, clusters=clusters)).run()
    assert ran.reason == "done"
    assert parts.status.notices == [f"decided after {over}: b against a: better"]
    assert [one.condition for one in parts.written(Answer)] == ["a", "b", "a", "b", "a", "a", "a"]
    assert len(parts.written(Decided)) == 1
    assert (parts.status.planned, parts.status.conditions["b"].planned) == (7, 2)


def queue(early: Any = None, count: int = 3, most_waiting: int = 64) -> TrialQueue:
    return TrialQueue(trials(count, "a", "b"), most_waiting=most_waiting, on_due=lambda: None, early=early)


def test_a_queue_skips_what_was_decided_in_the_meantime() -> None:
    parts = Parts()
    early: Any = Deciding(parts, 99)

    async def go() -> list[str]:
        order = queue(early)
        first, other = order.take(), order.take()
        order.again(Job(other.trial, 2), 0)
        order.again(Job(first.trial, 2), 0)
        await asyncio.sleep(0.01)
        early.out = frozenset({"b"})
        taken = []
        while order.ready():
            taken.append(order.take().trial.id)
        assert order.exhausted
        return taken

    assert asyncio.run(go()) == ["0a", "1a", "2a"]


def test_a_queue_does_not_wait_for_the_retries_of_what_was_decided() -> None:
    early: Any = Deciding(Parts(), 99)

    async def go() -> list[bool]:
        order = queue(early, count=1)
        order.take()
        order.again(Job(order.take().trial, 2), 60)
        seen = [order.exhausted]
        early.out = frozenset({"b"})
        return [*seen, order.exhausted]

    assert asyncio.run(go()) == [False, True]


def test_a_queue_gives_no_trial_too_far_ahead_of_the_next_look_but_one_that_is_due() -> None:
    early: Any = Deciding(Parts(), 99, ahead=1)

    async def go() -> None:
        order = queue(early)
        first = order.take()
        order.take()
        assert not order.ready()
        assert not order.exhausted
        order.again(Job(first.trial, 2), 0)
        await asyncio.sleep(0.01)
        assert order.ready()
        assert order.take().attempt == 2
        early.ahead = 2
        assert order.ready()

    asyncio.run(go())


def test_a_condition_that_is_down_is_not_asked_though_the_others_are() -> None:
    down = AttemptError(cls="infrastructure", kind="mcp_start", message="m", retriable=True)
    ran = Ran(work(trials=trials(2, "a", "b"), agents={"a": Saying(), "b": Saying()}, broken={"b": down})).run()
    assert sorted(one.condition for one in ran.parts.written(Answer)) == ["a", "a"]
    assert {one.condition for one in ran.parts.written(Failure)} == {"b"}
