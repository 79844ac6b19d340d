"""What a run counts as it goes, and which failures and costs end it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import karat
from karat.config import Execution, Retry
from karat.errors import BadOption
from karat.execution.limits import (
    Budget,
    FailureLimit,
    Limits,
    RunStatus,
    SameFailures,
    Spending,
    refuse_unpriced,
    tokens_of,
)
from karat.execution.retry import AttemptError
from karat.journal import Attempt, ScorerInfo
from karat.records import Answer, Failure, Metric, Reply, Sample, Score, Usage

SAMPLE = Sample(id="s", position=0, digest="d", turns=())
USAGE = Usage(input_tokens=5, output_tokens=2, reasoning_tokens=2)


def fault(kind: str = "crash", message: str = "m", **changes: Any) -> AttemptError:
    return AttemptError(**{"cls": "agent", "kind": kind, "message": message, "retriable": False, **changes})


def answer(*replies: Reply, kept: int = 0) -> Answer:
    return Answer(trial="t", sample="s", condition="a", repetition=0, replies=replies, kept=kept)


def score(**changes: Any) -> Score:
    return Score(**{"trial": "t", "scorer": "s", "scoring": "x", "values": {"m": 1.0}, **changes})


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(None, 0), (Usage(), 0), (Usage(input_tokens=3), 3), (Usage(output_tokens=4), 4), (USAGE, 7)],
)
def test_reasoning_tokens_are_part_of_the_output(usage: Usage | None, tokens: int) -> None:
    assert tokens_of(usage) == tokens


def test_what_a_reply_does_not_report_is_unknown_and_adds_nothing() -> None:
    spending = Spending()
    spending.add(None, None)
    assert spending == Spending(), "a call without either is no reply"
    spending.add(0.5, USAGE)
    spending.answered([Reply(text="", dollars=0.25, usage=USAGE)])
    assert spending == Spending(dollars=0.75, tokens=14)
    spending.answered([Reply(text="", usage=USAGE)])
    assert spending == Spending(dollars=0.75, tokens=21, dollars_unknown=True)
    spending.answered([Reply(text="", dollars=1.0)])
    assert spending == Spending(dollars=1.75, tokens=21, dollars_unknown=True, tokens_unknown=True)


class Following:
    """Notes what a follower is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def expects(self, scorer: ScorerInfo, kind: str) -> None:
        self.told.append((scorer.name, kind))

    def scored(self, score: Score) -> None:
        self.told.append(score)

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        self.told.append((trial, condition, sample, answered))


def test_each_event_is_counted_once_and_passed_on() -> None:
    heard: list[Any] = []
    follower = Following()
    status = RunStatus(heard.append, follower)
    replies = [Reply(text="", dollars=dollars, usage=USAGE) for dollars in (1.0, 2.0)]
    attempt = Attempt(trial="t", n=1, cls="agent", kind="k", message="m", retriable=True, dollars=0.5,
                      replies=(replies[0],))  # fmt: skip
    judged = Attempt(trial="t", n=1, cls="judge", kind="k", message="m", stage="score", dollars=0.125)
    failure = Failure(
        trial="t", sample="s", condition="a", repetition=0, stage="agent", cls="agent", kind="k", message=""
    )
    events = [
        attempt,
        judged,
        answer(*replies, kept=1),
        score(dollars=4.0, usage=USAGE, offline=False),
        score(offline=True),
        failure,
    ]
    status.journalled(*events)
    assert heard == events
    assert (status.answered, status.retries) == (1, 1)
    assert status.agent == Spending(dollars=0.5 + 1.0 + 2.0, tokens=14), "a kept reply was counted before"
    assert status.judge == Spending(dollars=4.125, tokens=7)
    assert status.dollars == 3.5 + 4.125
    assert status.last_failure is not None
    assert status.last_failure[1] == failure
    assert follower.told == [event for event in events if isinstance(event, Score)]


def test_the_last_failure_is_an_attempt_or_a_trial_whichever_came_last() -> None:
    status = RunStatus()
    status.journalled(answer(Reply(text="")))
    assert (status.last_failure, status.answered) == (None, 1)
    attempt = Attempt(trial="t", n=1, cls="agent", kind="k", message="m", retriable=False)
    status.journalled(attempt, score(offline=True))
    assert status.last_failure is not None
    assert status.last_failure[1] is attempt
    assert status.retries == 0, "it is not tried again"


def test_a_run_that_has_not_begun_has_counted_nothing() -> None:
    status = RunStatus()
    assert (status.retries, status.unasked, status.scoring, status.most, status.dollars) == (0, 0, 0, 0, 0.0)
    assert (status.past, status.agent, status.judge) == (Spending(), Spending(), Spending())
    assert (status.notices, status.slowed, status.draining, status.began) == ([], {}, None, None)
    assert status.conditions["a"].planned is None
    assert (status.conditions["a"].settled, status.conditions["a"].in_flight) == (0, 0)
    status.begins(7)
    assert status.most == 7
    assert status.began is not None
    assert 0 <= status.began - status.started <= status.seconds


def test_the_limits_of_a_run_are_those_of_its_file() -> None:
    retry = Retry(max_attempts=4)
    given = {"max_concurrent": 3, "timeout_seconds": 11.0, "judge_timeout_seconds": 12.0, "retry": retry}
    alike = Execution(**given, max_failures=5)
    assert Limits.of(alike, 1000) == Limits(**given, max_failures=5)
    share = Limits.of(Execution(**given, max_failures=0.25), 8)
    assert share == Limits(**given, max_failures=2, by_share=True)


def test_a_judge_that_does_not_tell_its_cost_leaves_it_unknown_and_an_offline_scorer_does_not() -> None:
    status = RunStatus()
    status.journalled(score(offline=True))
    assert (status.judge.dollars_unknown, status.judge.tokens_unknown) == (False, False)
    status.journalled(score(offline=False, dollars=1.0))
    assert (status.judge.dollars_unknown, status.judge.tokens_unknown) == (False, True)
    status.journalled(score(offline=False, usage=USAGE))
    assert (status.judge.dollars_unknown, status.judge.tokens_unknown) == (True, True)


def test_trials_that_are_not_asked_any_more_are_not_planned_any_more() -> None:
    status = RunStatus()
    status.expects({"a": 10, "b": 8}, {"a": 3})
    assert (status.planned, status.before) == (18, 3)
    status.settled_trial("t", "a", SAMPLE, failed=False)
    status.settled_trial("t", "a", SAMPLE, answered=False, failed=True)
    status.conditions["a"].in_flight = 2
    status.spares(["a"])
    assert status.conditions["a"].planned == 3 + 2 + 2
    assert status.planned == 7 + 8
    assert (status.settled, status.unasked, status.conditions["a"].failed) == (2, 1, 1)


def test_a_notice_is_shown_once_and_a_remark_is_no_notice() -> None:
    heard: list[Any] = []
    remarks: list[str] = []
    status = RunStatus(heard.append)
    status.remark("nobody listens")
    status.on_remark = remarks.append
    for text in ("twice", "twice", "once"):
        status.notice(text)
        status.remark(text)
    assert heard == status.notices == ["twice", "once"]
    assert remarks == ["twice", "twice", "once"]
    others: list[str] = []
    apart = RunStatus(heard.append, on_notice=others.append)
    apart.notice("elsewhere")
    assert others == ["elsewhere"]
    assert "elsewhere" not in heard


def test_a_follower_expects_the_scorer_that_a_report_shows_first() -> None:
    follower = Following()
    scorers = [ScorerInfo(name=name, type="t", scoring=name, metrics=(Metric(name="m"),)) for name in ("one", "two")]
    RunStatus(follower=follower).scores_with(scorers, "golden")
    RunStatus(follower=follower).scores_with([], "golden")
    RunStatus(follower=follower).settled_trial("t", "a", SAMPLE, answered=False, failed=True)
    assert follower.told == [("one", "golden"), ("t", "a", SAMPLE, False)]


def test_providers_that_are_slowed_down_are_named_with_their_limit() -> None:
    status = RunStatus()
    status.limiters = {"one": SimpleNamespace(limit=3), "two": SimpleNamespace(limit=None)}  # type: ignore[dict-item]
    assert status.slowed == {"one": 3}


@pytest.mark.parametrize(
    ("errors", "stops"),
    [
        ([fault()] * 5, 5),
        ([fault()] * 4, None),
        ([fault("exit_code")] * 5, 5),
        ([fault("bad_reply")] * 5, 5),
        ([fault("other")] * 9, None),
        ([fault("no_program", passes=False)] * 3, 3),
        ([fault("no_program", passes=False)] * 2, None),
        ([fault(message="1"), *[fault()] * 9], None),
        ([fault("bad_reply"), *[fault()] * 9], None),
        ([fault(cls="infrastructure"), *[fault()] * 9], None),
        ([fault("quota", f"request {number}", passes=False) for number in range(3)], 3),
        ([fault("unauthorized", f"request {number}", passes=False) for number in range(3)], 3),
        ([fault("no_program", f"{number}", passes=False) for number in range(9)], None),
        ([fault("bad_output", cls="judge", passes=False)], 1),
        ([fault("bad_output", cls="judge")] * 9, None),
        ([fault(), fault("bad_output", cls="judge", passes=False)], None),
    ],
)
def test_trials_that_all_fail_alike_stop_a_run(errors: list[AttemptError], stops: int | None) -> None:
    same = SameFailures()
    stopped = [number for number, error in enumerate(errors, start=1) if same.failed(error)]
    assert (stopped[0] if stopped else None) == stops


def test_after_a_success_no_failures_are_all_of_them() -> None:
    same = SameFailures(over=True)
    assert not any(same.failed(fault("no_program", passes=False)) for _ in range(9))


class Stopping:
    """A failure limit whose stops are counted."""

    def __init__(self, most: float, *, by_share: bool = False) -> None:
        self.status = RunStatus()
        self.stops = 0
        limits = Limits(max_concurrent=1, timeout_seconds=1, judge_timeout_seconds=1, retry=Retry(),
                        max_failures=most, by_share=by_share)  # fmt: skip
        self.limit = FailureLimit(limits, self.status, stop=self.stop)

    def stop(self) -> None:
        self.stops += 1


def test_the_failure_that_reaches_the_limit_stops_the_run_and_a_service_that_is_down_does_not_count() -> None:
    counting = Stopping(2)
    counting.limit.answered()
    counting.limit.unanswered(fault(), counts=False)
    counting.limit.unanswered(fault(), counts=True)
    assert (counting.stops, counting.status.failed) == (0, 2)
    counting.limit.count()
    assert (counting.stops, counting.status.failed) == (1, 3)


@pytest.mark.parametrize(("settled", "stops"), [(0, [5]), (19, [5]), (20, [2, 3, 4, 5])])
def test_a_share_of_failures_needs_five_failures_or_twenty_trials(settled: int, stops: list[int]) -> None:
    counting = Stopping(2, by_share=True)
    counting.status.settled = settled
    found = []
    for number in range(1, 6):
        before = counting.stops
        counting.limit.count()
        if counting.stops > before:
            found.append(number)
    assert found == stops


def test_a_run_that_stops_for_failures_that_are_all_alike_says_so_once() -> None:
    counting = Stopping(100)
    for _ in range(3):
        counting.limit.unanswered(fault("no_program", "there is no such program", passes=False), counts=True)
    assert counting.stops == 1
    assert counting.status.notices == [
        "stopped: the first 3 trials all failed in the same way: there is no such program"
    ]
    counting.status.draining = "max_failures"
    counting.limit.unanswered(fault("no_program", "there is no such program", passes=False), counts=True)
    assert counting.stops == 1


def test_a_hopeless_judge_stops_a_run_by_itself_and_one_that_has_scored_does_not() -> None:
    hopeless = fault("bad_output", "nothing usable", cls="judge", passes=False)
    counting = Stopping(100)
    assert not counting.limit.judged
    counting.limit.scored("one")
    counting.limit.unscored("one", hopeless)
    assert counting.stops == 0
    counting.limit.unscored("two", hopeless)
    assert (counting.stops, counting.status.notices) == (1, ["stopped: nothing usable"])


def test_an_answer_is_judged_once_each_scorer_has_scored_one() -> None:
    def judged(*calls: str) -> bool:
        limit = Stopping(100).limit
        for call in calls:
            if call.startswith("-"):
                limit.unscored(call[1:], fault())
            else:
                limit.scored(call)
        return limit.judged

    assert not judged()
    assert judged("one")
    assert judged("one", "-one")
    assert not judged("one", "-two")
    assert judged("one", "-two", "two")


@pytest.mark.parametrize(
    ("limits", "dollars", "usage", "unknown"),
    [
        ({"usd": 1.0, "tokens": None}, None, USAGE, "an answer came without its price"),
        ({"usd": None, "tokens": 10}, 0.5, None, "an answer came without its tokens"),
        ({"usd": None, "tokens": 100}, None, USAGE, None),
        ({"usd": 1.0, "tokens": None}, 0.5, None, None),
        ({"usd": None, "tokens": None}, None, None, None),
    ],
)
def test_a_budget_ends_where_a_cost_that_it_bounds_is_unknown(
    limits: dict[str, Any], dollars: float | None, usage: Usage | None, unknown: str | None
) -> None:
    budget = Budget(**limits)
    budget.add("agent", dollars, usage)
    assert budget.unknown == unknown
    assert budget.allows(agents=0, judges=0) == (unknown is None)


def test_an_earlier_part_whose_cost_is_unknown_matters_only_under_a_budget() -> None:
    assert Budget(usd=None, tokens=None, unknown="earlier").unknown is None
    assert Budget(usd=1.0, tokens=None, unknown="earlier").unknown == "earlier"


@pytest.mark.parametrize(("spent", "fits"), [(8.0, True), (8.5, False), (10.0, False), (11.0, False)])
def test_a_trial_fits_as_long_as_the_largest_cost_seen_does(spent: float, fits: bool) -> None:
    budget = Budget(usd=10.0, tokens=None, dollars_before=spent, largest_trial=(1.5, 0), largest_score=(0.5, 0))
    assert budget.allows(agents=0, judges=0) is fits


@pytest.mark.parametrize(("spent", "fits"), [(80, True), (81, False), (100, False)])
def test_tokens_fit_as_long_as_the_most_seen_do(spent: int, fits: bool) -> None:
    budget = Budget(usd=None, tokens=100, tokens_before=spent, largest_trial=(0.0, 15), largest_score=(0.0, 5))
    assert budget.allows(agents=0, judges=0) is fits


def test_an_answer_that_is_only_scored_reserves_no_other_answer() -> None:
    budget = Budget(usd=10.0, tokens=None, dollars_before=8.0, largest_trial=(5.0, 0), largest_score=(1.0, 0))
    assert not budget.allows(agents=0, judges=0)
    assert budget.allows(agents=0, judges=0, asks=False)
    assert not budget.allows(agents=0, judges=2, asks=False)


def test_a_failed_call_counts_what_it_cost_or_else_the_most_that_one_has() -> None:
    budget = Budget(usd=100.0, tokens=None)
    budget.add("agent", 2.0, USAGE)
    budget.add_failure("agent", None, None)
    assert (budget.dollars, budget.tokens) == (4.0, 14)
    budget.add_failure("agent", 3.0, None)
    assert (budget.dollars, budget.tokens) == (7.0, 14)
    budget.add_failure("agent", None, Usage(input_tokens=1))
    assert (budget.dollars, budget.tokens) == (7.0, 15)
    budget.add_failure("judge", None, None)
    assert budget.dollars == 7.0, "no judge has cost anything yet"
    assert budget.allows(agents=30, judges=0), "7 + 31 × 3 is 100"
    assert not budget.allows(agents=31, judges=0)


def test_a_budget_in_dollars_needs_the_price_of_every_model(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "q", "answer": "a"}\n')

    def experiment(**budget: Any) -> Any:
        return karat.Experiment(
            dataset={"path": "questions.jsonl"}, folder=tmp_path, agent={"type": "floor"}, scorers=[],
            conditions={"a": {}}, execution={"budget": budget},
        )  # fmt: skip

    agents: Any = {"a": SimpleNamespace(unpriced=("openai:x", "openai:y"))}
    scorers: Any = [SimpleNamespace(scorer=SimpleNamespace(unpriced=("openai:y",))), SimpleNamespace(scorer=object())]
    refuse_unpriced(experiment(tokens=5), agents, scorers)
    refuse_unpriced(experiment(usd=5), {}, scorers[1:])
    with pytest.raises(BadOption) as refused:
        refuse_unpriced(experiment(usd=5), agents, scorers)
    assert str(refused.value) == (
        "execution.budget.usd: cannot be kept, because no price is known for 'openai:x', 'openai:y'; give it, e.g. "
        '`prices: {"openai:x": {input: 2.5, output: 10}}` (dollars per million tokens)'
    )


def test_the_cost_of_an_attempt_is_that_of_its_fault_or_else_what_was_metered() -> None:
    bare = fault()
    assert bare.having_spent(None, None) is bare
    assert bare.having_spent(USAGE, None).usage == USAGE
    assert bare.having_spent(None, 0.5).dollars == 0.5
    told = fault(dollars=1.0)
    assert told.having_spent(USAGE, 0.5) is told
    told = fault(usage=USAGE)
    assert told.having_spent(None, 0.5) is told


def test_what_replies_cost_is_not_counted_in_the_fault_again() -> None:
    replies = [Reply(text="", dollars=0.25, usage=Usage(input_tokens=2, output_tokens=1)), Reply(text="")]
    error = fault(dollars=1.0, usage=Usage(input_tokens=5, output_tokens=4))
    assert error.besides([]) is error
    rest = error.besides(replies)
    assert (rest.dollars, rest.usage) == (0.75, Usage(input_tokens=3, output_tokens=3))
    assert fault(dollars=0.125).besides(replies).dollars == 0.0
    bare = fault()
    assert bare.besides(replies) is bare


def test_what_is_free_costs_nothing() -> None:
    budget = Budget(usd=1.0, tokens=None)
    for _ in range(3):
        budget.add("agent", 0.0, USAGE)
        budget.add_failure("judge", 0.0, None)
    budget.add_replies([Reply(text="", dollars=0.0, usage=USAGE)] * 2)
    assert (budget.dollars, budget.tokens, budget.unknown) == (0.0, 35, None)
    assert budget.allows(agents=1000, judges=1000)


def test_without_a_limit_what_is_not_told_adds_nothing() -> None:
    budget = Budget(usd=None, tokens=None)
    budget.add("agent", None, USAGE)
    budget.add("agent", 0.5, None)
    budget.add("agent", None, None)
    budget.add_replies([Reply(text=""), Reply(text="", dollars=0.25)])
    assert (budget.dollars, budget.tokens, budget.unknown) == (0.75, 7, None)


def test_the_turns_of_a_trial_are_reserved_together_and_a_call_of_a_judge_alone() -> None:
    budget = Budget(usd=None, tokens=100)
    budget.add_replies([Reply(text="", dollars=0.0, usage=Usage(input_tokens=10))] * 3)
    budget.add("judge", 0.0, Usage(input_tokens=4))
    assert budget.tokens == 34
    assert budget.allows(agents=0, judges=8), "34 + 30 + 9 × 4 is 100"
    assert not budget.allows(agents=0, judges=9)
    assert not budget.allows(agents=1, judges=0), "34 + 2 × 30 + 2 × 4 is too much"
