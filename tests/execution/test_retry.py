"""What is tried again, and when; what may still be spent; which trial is next."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import execution
from karat.config import Retry
from karat.errors import AgentFault, InfrastructureFault, JudgeFault, LimitReached
from karat.execution.limits import Budget
from karat.execution.retry import AttemptError, bounded, classify, delay, is_foreign, timed_out
from karat.execution.runner import TrialQueue
from karat.execution.trial import Job
from karat.records import AgentSpec, Condition, Reply, Sample, Trial, Usage


class TopOfTheRange(random.Random):
    """Dice that always show the most."""

    def uniform(self, a: float, b: float) -> float:
        return b


def fallen(**changes: Any) -> AttemptError:
    return AttemptError(**{"cls": "agent", "kind": "crash", "message": "m", "retriable": True, **changes})


def test_waits_are_initial_times_multiplier_to_the_k_before_jitter() -> None:
    policy = Retry(max_attempts=6, initial_backoff_seconds=1, backoff_multiplier=3, max_backoff_seconds=20)
    waits = [delay(policy, attempt, fallen(), TopOfTheRange()) for attempt in range(1, 7)]
    assert waits == [1, 3, 9, 20, 20, None], "max_attempts counts the first attempt"


@given(attempt=st.integers(1, 10_000), seed=st.integers(), asked=st.one_of(st.none(), st.floats(0, 1000)))
def test_jitter_is_full_and_retry_after_is_the_least(attempt: int, seed: int, asked: float | None) -> None:
    policy = Retry(max_attempts=100)
    wait = delay(policy, attempt, fallen(retry_after=asked), random.Random(seed))
    if attempt >= 100:
        assert wait is None
    else:
        assert wait is not None
        assert (asked or 0) <= wait <= (asked or 0) + min(60, 2.0 ** min(attempt - 1, 64))


def test_what_cannot_help_is_not_tried_again_and_timeouts_only_when_asked() -> None:
    assert delay(Retry(), 1, fallen(retriable=False), random.Random()) is None
    timeout = fallen(cls="limit", kind="timeout", retriable=False)
    assert delay(Retry(), 1, timeout, random.Random()) is None
    assert delay(Retry(timeouts=True), 1, timeout, random.Random()) is not None


@pytest.mark.parametrize(
    ("error", "stage", "expected"),
    [
        (AgentFault("k", "m", retriable=True), "agent", ("agent", "k", "m", True)),
        (AgentFault("k", "m"), "score", ("judge", "k", "m", False)),
        (InfrastructureFault("k", "m", retriable=True), "score", ("infrastructure", "k", "m", True)),
        (JudgeFault("k", "m"), "score", ("judge", "k", "m", False)),
        (LimitReached("turns", "m"), "agent", ("limit", "turns", "m", False)),
        (ConnectionResetError("gone"), "agent", ("infrastructure", "os_error", "ConnectionResetError: gone", True)),
        (ValueError("x"), "agent", ("agent", "crash", "ValueError: x", True)),
        (ValueError("x"), "score", ("judge", "crash", "ValueError: x", False)),
        (
            ExceptionGroup("g", [ValueError("noise"), ExceptionGroup("h", [InfrastructureFault("k", "m")])]),
            "agent",
            ("infrastructure", "k", "m", False),
        ),
        (ExceptionGroup("g", [ValueError("x")]), "agent", ("agent", "crash", "ValueError: x", True)),
    ],
)
def test_whose_fault_an_exception_is(error: Exception, stage: Any, expected: tuple[Any, ...]) -> None:
    found = classify(error, stage=stage)
    assert (found.cls, found.kind, found.message, found.retriable) == expected


@pytest.mark.parametrize("error", [NameError("x"), ImportError("x"), SyntaxError("x"), NotImplementedError("x")])
def test_code_that_is_broken_fails_every_trial_and_is_not_tried_again(error: Exception) -> None:
    found = classify(error, stage="agent")
    assert (found.cls, found.kind, found.retriable, found.passes) == ("agent", "crash", False, False)
    judge = classify(error, stage="score")
    assert (judge.cls, judge.kind, judge.retriable, judge.passes) == ("judge", "crash", False, False)


def calling(filename: str) -> Callable[[Callable[..., object]], object]:
    """A caller whose code is of this file."""
    names: dict[str, Any] = {}
    exec(compile("def call(function):\n    return function(1, 2, 3)\n", filename, "exec"), names)
    call: Callable[[Callable[..., object]], object] = names["call"]
    return call


def raised(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except (TypeError, ValueError) as error:
        return error
    raise AssertionError("it raised nothing")


def test_a_plug_in_that_cannot_even_be_called_is_broken_and_a_type_error_of_its_own_is_not() -> None:
    def no_parameters() -> None: ...

    def adds(*numbers: object) -> object:
        return "1" + numbers[0]  # type: ignore[operator]

    by_karat = calling(execution.__file__)
    uncallable = classify(raised(lambda: by_karat(no_parameters)), stage="agent")
    assert (uncallable.retriable, uncallable.passes) == (False, False)
    own = classify(raised(lambda: by_karat(adds)), stage="agent")
    assert (own.retriable, own.passes) == (True, True)
    by_itself = classify(raised(lambda: calling("/elsewhere/agent.py")(no_parameters)), stage="agent")
    assert (by_itself.retriable, by_itself.passes) == (True, True)
    assert classify(TypeError("x"), stage="agent").passes, "nothing is known of where"
    value = classify(raised(lambda: by_karat(lambda *_: int("x"))), stage="agent")
    assert value.passes


def test_a_crash_names_the_innermost_line_that_is_no_librarys() -> None:
    def fails(*numbers: object) -> None:
        raise ValueError("x")

    line = fails.__code__.co_firstlineno + 1
    at = f"ValueError: x (test_retry.py, line {line}, in fails)"
    assert classify(raised(fails), stage="agent").message == at
    assert classify(raised(lambda: calling(execution.__file__)(fails)), stage="score").message == at
    for filename in ("/x/site-packages/library.py", f"{Path(json.__file__)}", "<string>", execution.__file__):
        within = calling(filename)
        found = classify(raised(lambda within=within: within("no function")), stage="agent")  # type: ignore[misc]
        assert found.message.startswith("TypeError: 'str' object is not callable (test_retry.py, line "), filename
    assert classify(ValueError("x"), stage="agent").message == "ValueError: x"


@pytest.mark.parametrize(
    ("filename", "foreign"),
    [
        ("/elsewhere/agent.py", True),
        ("/x/site-packages/library.py", False),
        (json.__file__, False),
        (execution.__file__, False),
        ("<string>", False),
    ],
)
def test_code_is_foreign_unless_it_is_karats_or_a_librarys(filename: str, foreign: bool) -> None:
    assert is_foreign(filename) is foreign


def test_a_call_of_exit_says_with_what() -> None:
    wrapped = RuntimeError("on a thread")
    wrapped.__cause__ = SystemExit(3)
    for error, said in (
        (SystemExit(), "SystemExit: it called sys.exit()"),
        (SystemExit("bye"), "SystemExit: it called sys.exit('bye')"),
        (wrapped, "SystemExit: it called sys.exit(3)"),
    ):
        found = classify(error, stage="agent")
        assert (found.cls, found.kind, found.message, found.retriable) == ("agent", "crash", said, True)
    other = RuntimeError("of its own")
    other.__cause__ = ValueError("x")
    assert classify(other, stage="agent").message == "RuntimeError: of its own"


@pytest.mark.parametrize("error", [EOFError("x"), OSError("x"), TimeoutError("x")])
def test_what_the_operating_system_raises_is_infrastructure_and_a_scorer_is_tried_again(error: Exception) -> None:
    found = classify(error, stage="agent")
    assert (found.cls, found.kind, found.retriable, found.passes) == ("infrastructure", "os_error", True, True)
    judge = classify(error, stage="score")
    assert (judge.cls, judge.kind, judge.retriable) == ("judge", "crash", isinstance(error, OSError))


@pytest.mark.parametrize("error", [ValueError("x" * 9999), AgentFault("k", "x" * 9999)])
def test_a_long_message_is_cut_after_its_secrets_are_masked(error: Exception) -> None:
    found = classify(error, stage="agent", redact=lambda text: text.replace("x", "yy"))
    assert len(found.message) == 4000
    assert found.message.endswith("yy")


def test_an_error_in_a_group_is_an_explicit_fault_or_else_the_first() -> None:
    assert classify(BaseExceptionGroup("g", [KeyError("a"), ValueError("b")]), stage="agent").message == "KeyError: 'a'"
    nested = ExceptionGroup("g", [ValueError("b"), ExceptionGroup("h", [KeyError("c")])])
    assert classify(nested, stage="agent").message == "KeyError: 'c'"


class Odd(InfrastructureFault):
    """What a plug-in may make of a fault."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("k", "m")
        for name, value in attributes.items():
            setattr(self, name, value)


LASTING = ("unauthorized", "quota", "no_program", "redirect")


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, {}),
        ({"kind": ""}, {"kind": "fault"}),
        ({"kind": 3}, {"kind": "fault"}),
        ({"message": None}, {"message": "Odd: k: m"}),
        ({"retriable": True}, {"retriable": True}),
        ({"retriable": "yes"}, {"retriable": True}),
        ({"retry_after": 2}, {"retry_after": 2.0}),
        ({"retry_after": "soon"}, {}),
        ({"usage": Usage(input_tokens=3)}, {"usage": Usage(input_tokens=3)}),
        ({"usage": Usage(input_tokens=-3)}, {}),
        ({"usage": "much"}, {}),
        ({"dollars": 0.5}, {"dollars": 0.5}),
        ({"dollars": -0.5}, {}),
        ({"dollars": "much"}, {}),
        ({"passes": False}, {"passes": False}),
        *[
            ({"kind": kind}, {"kind": kind, "passes": False})
            for kind in ("unauthorized", "quota", "no_program", "redirect")
        ],
        ({"ledger_class": "nobody"}, {"cls": "agent"}),
        ({"ledger_class": "limit"}, {"cls": "limit"}),
    ],
)
def test_nothing_that_a_fault_says_of_itself_is_trusted(attributes: dict[str, Any], expected: dict[str, Any]) -> None:
    plain = {"cls": "infrastructure", "kind": "k", "message": "m", "retriable": False}
    assert classify(Odd(**attributes), stage="agent") == AttemptError(**{**plain, **expected})


@pytest.mark.parametrize(
    ("declared", "cls"),
    [("agent", "judge"), ("limit", "judge"), ("infrastructure", "infrastructure"), ("judge", "judge")],
)
def test_where_an_answer_is_scored_no_agent_is_to_blame(declared: str, cls: str) -> None:
    assert classify(Odd(ledger_class=declared), stage="score").cls == cls
    assert classify(Odd(ledger_class=declared), stage="agent").cls == declared


def test_a_timeout_says_what_is_missing_and_keeps_what_was_paid() -> None:
    paid = fallen(dollars=0.5, usage=Usage(input_tokens=3))
    assert timed_out(1.5, stage="agent") == AttemptError(
        cls="limit", kind="timeout", message="no answer within 1.5 s", retriable=False
    )
    assert timed_out(60, stage="score", paid=paid) == AttemptError(
        cls="judge", kind="timeout", message="no score within 60 s", retriable=False, dollars=0.5,
        usage=Usage(input_tokens=3),
    )  # fmt: skip


def test_the_rows_of_a_failure_have_its_class_kind_and_message() -> None:
    assert fallen(dollars=1.0).fields() == {"cls": "agent", "kind": "crash", "message": "m", "retriable": True}


class Response:
    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        self.status_code, self.headers = status_code, headers


class FromTheSdk(Exception):
    """As the SDKs of model providers raise it."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.status_code, self.response = status, Response(status, headers or {})
        super().__init__(f"status {status}")


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"retry-after": "7.5"}, ("infrastructure", "rate_limit", True, 7.5)),
        (529, {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, ("infrastructure", "rate_limit", True, 0.0)),
        (429, {"retry-after-ms": "250"}, ("infrastructure", "rate_limit", True, 0.25)),
        (429, {"retry-after": "soon"}, ("infrastructure", "rate_limit", True, None)),
        (503, {}, ("infrastructure", "server_error", True, None)),
        (401, {}, ("infrastructure", "unauthorized", False, None)),
        (404, {}, ("infrastructure", "not_found", False, None)),
        (422, {}, ("infrastructure", "refused", False, None)),
        (200, {}, ("agent", "crash", True, None)),
    ],
)
def test_a_providers_refusal_is_infrastructure(status: int, headers: dict[str, str], expected: tuple[Any, ...]) -> None:
    found = classify(FromTheSdk(status, headers), stage="agent")
    assert (found.cls, found.kind, found.retriable, found.retry_after) == expected


def test_a_fault_keeps_what_it_cost_and_what_it_was_asked_to_wait() -> None:
    usage = Usage(input_tokens=5)
    found = classify(AgentFault("k", "m", retry_after=7, dollars=0.5, usage=usage), stage="agent")
    assert (found.retry_after, found.dollars, found.usage) == (7, 0.5, usage)


@given(
    costs=st.lists(st.floats(0, 3), min_size=1, max_size=60),
    crowd=st.integers(1, 5),
    usd=st.floats(0.5, 40),
)
def test_once_the_largest_cost_was_seen_the_budget_is_never_passed(costs: list[float], crowd: int, usd: float) -> None:
    largest = max(costs)
    budget = Budget(usd=usd, tokens=None)
    budget.add("agent", largest, None)
    first = budget.dollars
    in_flight: list[float] = []
    for cost in costs:
        while len(in_flight) >= crowd:
            budget.add("agent", in_flight.pop(0), None)
        if budget.allows(agents=len(in_flight), judges=0):
            in_flight.append(cost)
    for cost in in_flight:
        budget.add("agent", cost, None)
    assert budget.dollars <= max(first, usd) + 1e-9


def test_tokens_and_judges_are_reserved_too() -> None:
    budget = Budget(usd=None, tokens=100, tokens_before=40)
    budget.add("agent", None, Usage(input_tokens=8, output_tokens=2, reasoning_tokens=2))
    budget.add("judge", None, Usage(input_tokens=20))
    assert budget.tokens == 70
    assert budget.allows(agents=0, judges=0)
    assert not budget.allows(agents=0, judges=1), "70 + 10 + 20 + 20 is too much"
    assert not budget.unknown, "an unknown price matters only under a budget in dollars"


def test_a_trial_reserves_all_its_turns_and_an_unknown_failure_counts_one() -> None:
    budget = Budget(usd=100.0, tokens=None)
    budget.add_replies([Reply(text="x", dollars=dollars) for dollars in (3.0, 5.0, 2.0)])
    budget.add_failure("agent", None, None)
    assert budget.dollars == 15.0, "one call failed, not a conversation"
    assert budget.allows(agents=7, judges=0)
    assert not budget.allows(agents=8, judges=0), "15 + 9 × 10 is too much"


def trials(count: int) -> Iterator[Trial]:
    for number in range(count):
        sample = Sample(id=str(number), position=number, digest="d", turns=())
        condition = Condition(name="a", position=0, digest="d", agent=AgentSpec(type="x"))
        yield Trial(id=str(number), index=number, sample=sample, condition=condition, repetition=0, seed=0)


async def taken(queue: TrialQueue, due: asyncio.Event, *, count: int) -> list[tuple[str, int]]:
    """Jobs in the order in which the queue gives them; sample 1 is put back after its first attempt."""
    order: list[tuple[str, int]] = []
    while len(order) < count:
        if not queue.ready():
            due.clear()
            await asyncio.wait_for(due.wait(), 5)
        job = queue.take()
        order.append((job.trial.id, job.attempt))
        if order[-1] == ("1", 1):
            queue.again(Job(job.trial, 2), 0)
            await asyncio.sleep(0.01)
    return order


def test_retries_that_are_due_go_before_new_trials() -> None:
    async def go() -> list[tuple[str, int]]:
        due = asyncio.Event()
        return await taken(TrialQueue(trials(4), most_waiting=64, on_due=due.set), due, count=5)

    assert asyncio.run(go()) == [("0", 1), ("1", 1), ("1", 2), ("2", 1), ("3", 1)]


def test_a_queue_is_not_exhausted_while_a_retry_waits_and_starts_nothing_new_while_many_do() -> None:
    async def go() -> list[bool]:
        due = asyncio.Event()
        queue = TrialQueue(trials(2), most_waiting=1, on_due=due.set)
        first = queue.take()
        queue.again(Job(first.trial, 2), 0.05)
        seen = [queue.ready(), queue.exhausted]
        await asyncio.wait_for(due.wait(), 5)
        assert (queue.take().attempt, queue.take().attempt) == (2, 1)
        return [*seen, queue.ready(), queue.exhausted]

    assert asyncio.run(go()) == [False, False, False, True]


@pytest.mark.parametrize(
    ("asked", "longest", "waits"),
    [(None, 60, True), (7, 60, True), (600, 60, True), (601, 60, False), (86_400, 60, False), (601, 3600, True),
     (4000, 3600, False), (math.inf, 60, False), (math.nan, 60, False), (-1, 60, False)],
)  # fmt: skip
def test_a_wait_of_more_than_ten_minutes_or_the_setting_is_refused_and_said(
    asked: float | None, longest: float, waits: bool
) -> None:
    error = fallen(kind="rate_limit", retry_after=asked)
    found = bounded(Retry(max_backoff_seconds=longest), error)
    if waits:
        assert found == error
    else:
        assert (found.retriable, found.passes, found.retry_after) == (False, False, None)
        assert found.message.startswith(f"m; it asks to wait {asked:g} s, and karat ")
        assert found.message.endswith(f"waits at most {max(600, longest)} s (execution.retry.max_backoff_seconds)")
