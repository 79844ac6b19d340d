"""An answer and its scorers: what is journalled of each, what it costs, and what follows from a failure."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Collection
from typing import Any

import msgspec
import pytest
from tests.execution.parts import AT_ONCE, Parts, answer, sample, scorer

from karat.config import Retry
from karat.errors import BadRun, InfrastructureFault, JudgeFault
from karat.execution.scoring import PendingScore, ScorerInUse, Scoring, Unfinished
from karat.journal import Attempt
from karat.records import Answer, Failure, Metric, Sample, Score, Turn, Usage
from karat.scorers import Row, Verdict


def pending(*scorers: ScorerInUse, **changes: Any) -> PendingScore:
    return PendingScore(**{"answer": answer(), "sample": sample(), "scorers": scorers, **changes})


def scored(what: PendingScore, parts: Parts | None = None, unfinished: dict[str, Unfinished] | None = None) -> Parts:
    """What is told of the scores of one answer."""
    parts = parts or Parts()

    async def go() -> None:
        scoring = Scoring(parts.context)
        await scoring.score(what, unfinished or {})
        scoring.close()

    asyncio.run(go())
    return parts


def always(value: Any) -> Any:
    """A `score` that returns or raises this."""

    def score(sample: Sample, answer: Answer) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return score


def later(value: Any) -> Any:
    """The same, to be waited for."""
    given = always(value)

    async def score(sample: Sample, answer: Answer) -> Any:
        await asyncio.sleep(0)
        return given(sample, answer)

    return score


class Panel:
    """Verdicts that come one by one; where one is an error, the stream ends with it."""

    def __init__(self, *told: Any) -> None:
        self.told = [*told]
        self.done: list[Collection[Row]] = []

    async def score(self, sample: Sample, answer: Answer, *, done: Collection[Row]) -> AsyncGenerator[Verdict]:
        self.done.append(done)
        for repeat in range(3):
            if (None, None, repeat) in done:
                continue
            told = self.told.pop(0) if self.told else 0.0
            if isinstance(told, BaseException):
                raise told
            yield Verdict(values={"m": told}, repeat=repeat, rows=3, dollars=0.5)


def streaming(panel: Panel, **changes: Any) -> ScorerInUse:
    return scorer(panel.score, **{"streams": True, "waits": True, "offline": False, **changes})


@pytest.mark.parametrize(
    ("value", "flag", "values"),
    [(True, "m", {"m": True}), (False, "m", {"m": False}), (True, None, {"m": True}), (0.5, "m", {"m": 0.5}),
     ({"x": 1.0, "y": None}, "m", {"x": 1.0, "y": None})],
)  # fmt: skip
def test_a_score_names_its_answer_and_its_scorer(value: Any, flag: str | None, values: dict[str, Any]) -> None:
    (row,) = scored(pending(scorer(always(value), flag=flag))).written(Score)
    assert row.seconds == round(row.seconds, 6) >= 0
    assert msgspec.structs.replace(row, seconds=None) == Score(
        trial="t", scorer="m", scoring="digest of m", values=values, offline=True
    )


def test_a_bare_bool_is_the_metric_that_a_scorer_announces() -> None:
    (row,) = scored(pending(scorer(always(True), flag="right", metrics=(Metric(name="right"),)))).written(Score)
    assert row.values == {"right": True}


def test_several_verdicts_are_as_many_rows_and_each_says_so() -> None:
    rows = [Verdict(values={"m": 1.0}, turn=turn, reasons={"m": "so"}) for turn in (0, 1)]
    found = scored(pending(scorer(always(rows)))).written(Score)
    assert [(row.turn, row.rows, row.reasons) for row in found] == [(0, 2, {"m": "so"}), (1, 2, {"m": "so"})]


@pytest.mark.parametrize("wait", [False, True])
def test_what_a_judge_costs_is_counted_and_a_rule_costs_nothing(wait: bool) -> None:
    verdict = Verdict(values={"m": 1.0}, dollars=2.0, usage=Usage(input_tokens=3))
    given = later(verdict) if wait else always(verdict)
    judge = scorer(given, offline=False, waits=wait)
    parts = scored(pending(judge), Parts(usd=100.0))
    assert (parts.budget.dollars, parts.budget.tokens, parts.budget.unknown) == (2.0, 3, None)
    assert [row.offline for row in parts.written(Score)] == [False]
    rule = scored(pending(scorer(given, waits=wait)), Parts(usd=100.0))
    assert (rule.budget.dollars, [row.offline for row in rule.written(Score)]) == (0.0, [True])
    bare = scored(pending(scorer(later(True) if wait else always(True), offline=False, waits=wait)), Parts(usd=9.0))
    assert bare.budget.unknown == "an answer came without its price"


def test_scorers_that_wait_are_left_for_later_and_those_that_may_cost_something_on_request() -> None:
    calls: list[str] = []

    def noting(name: str) -> Any:
        def score(sample: Sample, answer: Answer) -> bool:
            calls.append(name)
            return True

        return scorer(score, name, offline=name != "judge", waits=name == "waits", blocking=name == "waits")

    async def at_once(*, only_offline: bool) -> list[str]:
        scoring = Scoring(Parts().context)
        what = pending(noting("rule"), noting("judge"), noting("waits"))
        scores, unfinished = scoring.score_at_once(what, **({"only_offline": True} if only_offline else {}))
        assert unfinished == {}
        return [score.scorer for score in scores]

    assert asyncio.run(at_once(only_offline=False)) == ["rule", "judge"]
    assert asyncio.run(at_once(only_offline=True)) == ["rule"]
    assert calls == ["rule", "judge", "rule"]


def test_what_was_tried_at_once_is_not_tried_again() -> None:
    calls: list[str] = []

    def fails(sample: Sample, answer: Answer) -> bool:
        calls.append("called")
        raise JudgeFault("down", "m", retriable=True)

    async def go() -> Parts:
        parts = Parts()
        scoring = Scoring(parts.context)
        what = pending(scorer(fails), scorer(later(0.5), "other"))
        scores, unfinished = scoring.score_at_once(what)
        assert [score.scorer for score in scores] == []
        assert set(unfinished) == {"digest of m", "digest of other"}
        await scoring.score(what, unfinished)
        return parts

    parts = asyncio.run(go())
    assert calls == ["called"], "one attempt is allowed"
    assert parts.fields(Attempt, "n", "kind", "stage") == [(1, "down", "score")]
    assert parts.fields(Score, "scorer", "values") == [("other", {"other": 0.5})]


def test_a_blocking_scorer_runs_on_a_thread() -> None:
    async def none(sample: Sample, answer: Answer) -> str:
        return threading.current_thread().name

    def own(sample: Sample, answer: Answer) -> str:
        return threading.current_thread().name

    main = threading.current_thread().name
    used = [
        scorer(own, "blocking", blocking=True, waits=True),
        scorer(own, "sync", waits=True),
        scorer(none, "async", waits=True),
    ]
    rows = scored(pending(*used)).written(Score)
    assert [row.labels for row in rows] == [{"blocking": "karat-call"}, {"sync": main}, {"async": main}]


def test_one_scorers_failure_leaves_the_others_alone_and_the_trial_fails_once() -> None:
    faults = [scorer(always(ValueError("no")), name) for name in ("one", "two")]
    parts = scored(pending(faults[0], scorer(always(True)), faults[1]), Parts(max_failures=1))
    assert parts.fields(Score, "scorer") == [("m",)]
    assert parts.fields(Failure, "trial", "stage", "sample", "condition", "repetition", "scorer", "scoring", "cls") == [
        ("t", "score", "s", "c", 0, name, f"digest of {name}", "judge") for name in ("one", "two")
    ]
    status = parts.status
    assert (status.failed, status.settled, status.unasked, status.conditions["c"].failed) == (1, 1, 0, 1)
    assert parts.draining.is_set(), "it counts towards the limit of failures"


def test_a_scored_answer_settles_its_trial_unless_it_was_settled_before() -> None:
    parts = scored(pending(scorer(always(True))))
    assert (parts.status.settled, parts.status.failed, parts.status.conditions["c"].failed) == (1, 0, 0)
    again = scored(pending(scorer(always(ValueError("no"))), again=True))
    assert (again.status.settled, again.status.failed) == (0, 1)
    nothing = scored(pending())
    assert (nothing.status.settled, nothing.journal.events) == (1, [])


def test_a_judge_has_its_attempts_and_each_is_charged() -> None:
    told: list[Any] = [
        InfrastructureFault("rate_limit", "slow", retriable=True, dollars=1.0, usage=Usage(input_tokens=2)),
        InfrastructureFault("rate_limit", "slow", retriable=True),
        0.5,
    ]

    async def score(sample: Sample, answer: Answer) -> float:
        value = told.pop(0)
        if isinstance(value, BaseException):
            raise value
        return float(value)

    parts = scored(pending(scorer(score, offline=False, waits=True)), Parts(retry=AT_ONCE, usd=None))
    assert parts.fields(Attempt, "trial", "n", "stage", "kind", "retriable", "dollars", "usage") == [
        ("t", 1, "score", "rate_limit", True, 1.0, Usage(input_tokens=2)),
        ("t", 2, "score", "rate_limit", True, None, None),
    ]
    assert (parts.budget.dollars, parts.budget.tokens) == (2.0, 4), "an unknown cost is the largest one seen"
    assert parts.fields(Score, "values") == [({"m": 0.5},)]
    assert parts.written(Failure) == []
    assert (parts.failures.judged, parts.status.settled, parts.status.failed) == (True, 1, 0)


def test_a_rule_that_fails_costs_nothing_and_has_its_attempts_too() -> None:
    fault = InfrastructureFault("network", "gone", retriable=True, dollars=1.0)
    parts = scored(pending(scorer(always(fault))), Parts(retry=AT_ONCE))
    assert parts.fields(Attempt, "n") == [(1,), (2,), (3,)]
    assert parts.fields(Failure, "kind", "message", "retriable") == [("network", "gone", True)]
    assert parts.budget.dollars == 0.0


def test_a_judge_that_asks_for_a_long_wait_is_not_waited_for() -> None:
    fault = InfrastructureFault("rate_limit", "slow", retriable=True, retry_after=700)
    parts = scored(pending(scorer(later(fault), waits=True)), Parts(retry=Retry(max_attempts=3)))
    assert len(parts.written(Attempt)) == 1
    ((retriable, message),) = parts.fields(Failure, "retriable", "message")
    assert not retriable
    assert "it asks to wait 700 s" in message


def test_a_judge_has_its_own_time() -> None:
    async def hangs(sample: Sample, answer: Answer) -> float:
        await asyncio.sleep(60)
        return 1.0

    parts = scored(pending(scorer(hangs, waits=True)), Parts(judge_timeout_seconds=0.01))
    assert parts.fields(Failure, "cls", "kind", "message") == [("judge", "timeout", "no score within 0.01 s")]


def test_judges_are_asked_as_many_at_a_time_as_the_run_allows() -> None:
    now = most = 0

    async def counting(sample: Sample, answer: Answer) -> float:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return 1.0

    async def go() -> None:
        scoring = Scoring(Parts(max_concurrent=2).context)
        await asyncio.gather(*(scoring.score(pending(scorer(counting, waits=True)), {}) for _ in range(6)))

    asyncio.run(go())
    assert most == 2


def test_once_a_run_drains_no_judge_is_tried_again_and_nothing_is_final() -> None:
    parts = Parts(retry=Retry(max_attempts=3))
    slow = InfrastructureFault("rate_limit", "slow", retriable=True, retry_after=300)

    async def drains(sample: Sample, answer: Answer) -> float:
        parts.draining.set()
        raise slow

    scored(pending(scorer(drains, waits=True), scorer(always(True), "next")), parts)
    assert [type(event) for event in parts.journal.events] == [Attempt]
    assert (parts.status.settled, parts.status.failed) == (0, 0)


def test_an_error_of_the_operator_ends_the_run() -> None:
    with pytest.raises(BadRun, match="the disk is full"):
        scored(pending(scorer(always(BadRun("run", "the disk is full")))))
    with pytest.raises(KeyboardInterrupt):
        scored(pending(scorer(always(KeyboardInterrupt()))))


def test_each_verdict_of_a_stream_is_on_disk_before_the_next_is_asked_for() -> None:
    parts = Parts()
    written: list[int] = []

    async def score(sample: Sample, answer: Answer, *, done: Collection[Row]) -> AsyncGenerator[Verdict]:
        assert done == frozenset()
        for repeat in range(3):
            written.append(len(parts.written(Score)))
            yield Verdict(values={"m": float(repeat)}, repeat=repeat, rows=3, dollars=0.5)
        written.append(len(parts.written(Score)))

    scored(pending(scorer(score, streams=True, waits=True, offline=False)), parts)
    assert written == [0, 1, 2, 3]
    assert parts.fields(Score, "repeat", "rows", "values", "offline") == [
        (repeat, 3, {"m": float(repeat)}, False) for repeat in range(3)
    ]
    assert parts.budget.dollars == 1.5


def test_a_stream_goes_on_behind_its_last_verdict_and_each_verdict_has_its_own_attempts() -> None:
    fault = InfrastructureFault("network", "gone", retriable=True)
    panel = Panel(0.25, fault, fault, 0.5, fault, fault, 1.0)
    parts = scored(pending(streaming(panel)), Parts(retry=AT_ONCE))
    assert parts.fields(Score, "repeat", "values") == [(0, {"m": 0.25}), (1, {"m": 0.5}), (2, {"m": 1.0})]
    assert parts.fields(Attempt, "n") == [(1,), (2,), (1,), (2,)]
    assert parts.written(Failure) == []
    assert [len(done) for done in panel.done] == [0, 1, 1, 2, 2]
    assert (None, None, 0) in panel.done[1]


def test_the_attempts_at_one_verdict_of_a_stream_end_and_its_others_stay() -> None:
    fault = InfrastructureFault("network", "gone", retriable=True)
    parts = scored(pending(streaming(Panel(0.25, fault, fault, fault))), Parts(retry=AT_ONCE))
    assert parts.fields(Score, "repeat") == [(0,)]
    assert parts.fields(Attempt, "n") == [(1,), (2,), (3,)]
    assert parts.fields(Failure, "kind") == [("network",)]
    assert parts.status.failed == 1


def test_rows_that_are_on_disk_are_asked_for_by_nobody() -> None:
    panel = Panel(0.5)
    present = {"digest of m": [(None, None, 0), (None, None, 2)], "another": [(None, None, 1)]}
    parts = scored(pending(streaming(panel), present=present))
    assert parts.fields(Score, "repeat") == [(1,)]
    assert panel.done == [{(None, None, 0), (None, None, 2)}]
    wrong = scored(pending(streaming(Panel("label", 3))))
    assert wrong.written(Score) == []


def test_a_stream_is_closed_with_its_last_verdict_or_its_failure() -> None:
    closed: list[str] = []

    async def score(sample: Sample, answer: Answer, *, done: Collection[Row]) -> AsyncGenerator[Any]:
        try:
            yield Verdict(values={"m": 1.0}, rows=2)
            yield object()
        finally:
            closed.append("closed")

    parts = scored(pending(scorer(score, streams=True, waits=True)))
    assert (closed, parts.fields(Failure, "kind")) == (["closed"], [("bad_verdict",)])


def batch_of(*many: PendingScore, parts: Parts) -> list[tuple[PendingScore, Any]]:
    async def go() -> list[tuple[PendingScore, Any]]:
        return await Scoring(parts.context).score_batch(many)

    return asyncio.run(go())


def test_a_batch_is_written_before_it_is_scored_and_what_waits_or_costs_is_left() -> None:
    parts = Parts()
    written: list[int] = []

    def score(sample: Sample, answer: Answer) -> bool:
        written.append(len(parts.journal.events))
        return True

    rule, judge, waits = (
        scorer(score, "rule"),
        scorer(always(True), "judge", offline=False),
        scorer(later(1), "w", waits=True),
    )
    fails = scorer(always(ValueError("no")), "fails")
    new, old = answer("new"), answer("old")
    left = batch_of(
        pending(rule, answer=new, is_new=True),
        pending(rule, judge, waits, fails, answer=old),
        pending(rule, answer=old, again=True),
        parts=parts,
    )
    assert written == [1, 1, 1], "the one new answer"
    assert parts.journal.events[0] == new
    assert [type(event) for event in parts.journal.events] == [Answer, Score, Score, Score]
    assert (parts.status.answered, parts.status.settled, parts.status.failed) == (1, 1, 0)
    ((rest, unfinished),) = left
    assert (rest.answer, [used.info.name for used in rest.scorers]) == (old, ["judge", "w", "fails"])
    assert {scoring: error.kind for scoring, error in unfinished.items()} == {"digest of fails": "crash"}


def test_a_batch_without_anything_new_writes_nothing() -> None:
    parts = Parts()
    assert batch_of(pending(), parts=parts) == []
    assert (parts.journal.events, parts.status.settled) == ([], 1)


def test_a_long_batch_lets_others_run_in_between() -> None:
    turns: list[int] = []

    def slow(sample: Sample, answer: Answer) -> bool:
        time.sleep(0.03)
        return True

    async def go() -> None:
        async def other() -> None:
            while True:
                turns.append(1)
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        await asyncio.sleep(0)
        before = len(turns)
        await Scoring(Parts().context).score_batch([pending(scorer(slow)) for _ in range(3)])
        assert len(turns) > before
        beside.cancel()

    asyncio.run(go())


def test_a_scorer_reads_samples_as_the_run_folder_has_them_and_their_names_as_they_are() -> None:
    seen: list[tuple[str, str | None]] = []

    def score(sample: Sample, answer: Answer) -> bool:
        seen.append((sample.id, sample.turns[0].golden))
        return True

    secret = sample(Turn(question="q", golden="it is correct-horse-battery"), id="correct-horse-battery")
    other = sample(Turn(question="q", golden="another correct-horse-battery"))
    parts = Parts(secrets={"KEY": "correct-horse-battery"})

    async def go() -> None:
        scoring = Scoring(parts.context)
        used = scorer(score)
        for given in (secret, secret, other):
            scoring.score_at_once(pending(used, sample=given))
        await scoring.score(pending(used, sample=secret), {})

    asyncio.run(go())
    assert seen == [
        *[("correct-horse-battery", "it is ${KEY}")] * 2,
        ("s", "another ${KEY}"),
        ("correct-horse-battery", "it is ${KEY}"),
    ]
    seen.clear()
    scored(pending(scorer(score), sample=secret))
    assert seen == [("correct-horse-battery", "it is correct-horse-battery")], "nothing is a secret"
