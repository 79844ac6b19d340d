"""Every planned trial ends in exactly one class, whatever happened, in whatever order."""

from __future__ import annotations

import random
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.analysis import summarize
from karat.analysis.model import Attempts, Ledger, Money
from karat.analysis.verdicts import attempts_sentence
from karat.errors import BadRun
from karat.journal import PlanInfo
from karat.records import Reply


def ledger(**counts: int) -> Ledger:
    none = dict.fromkeys(("scored", "agent", "infrastructure", "judge", "limit", "not_run"), 0)
    return Ledger(planned=sum(counts.values()), **{**none, **counts})


@pytest.fixture
def script(tmp_path, journals):
    return journals.Script(tmp_path / "run", samples=2, conditions=("only",), repetitions=2)


def total(run) -> Ledger:
    return summarize(run).total.ledger


def test_answered_and_scored(script):
    for row in (0, 1):
        for repetition in (0, 1):
            script.scored(row, "only", repetition, value=3)
    assert total(script.end()) == ledger(scored=4)


def test_classes_come_from_the_last_failure(script):
    script.failure(0, "only", 0, cls="infrastructure", kind="network")
    script.failure(0, "only", 0, cls="limit", kind="timeout")
    script.failure(0, "only", 1, cls="agent")
    script.failure(1, "only", 0, cls="infrastructure", stage="preflight", kind="mcp_server_down")
    assert total(script.end("max_failures")) == ledger(limit=1, agent=1, infrastructure=1, not_run=1)


def test_a_failure_that_a_resume_mended_is_none(script):
    script.failure(0, "only", 0)
    script.resume()
    script.scored(0, "only", 0, value=4)
    summary = summarize(script.end())
    assert summary.total.ledger == ledger(scored=1, not_run=3)
    assert summary.total.retried == 1
    assert summary.failures == ()


def test_an_answer_without_a_score_is_the_judges_fault_when_it_said_so(script, journals):
    script.answer(0, "only", 0)
    script.failure(
        0, "only", 0, cls="judge", stage="score", kind="malformed", scorer="judge", scoring=journals.JUDGE.scoring
    )
    assert total(script.end("interrupted")) == ledger(judge=1, not_run=3)


def test_a_score_that_came_later_mends_the_judges_failure(script, journals):
    script.answer(0, "only", 0)
    script.failure(0, "only", 0, cls="judge", stage="score", scorer="judge", scoring=journals.JUDGE.scoring)
    script.score(0, "only", 0, value=2)
    assert total(script.end()) == ledger(scored=1, not_run=3)


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("done", ledger(judge=1, not_run=3)),
        ("interrupted", ledger(not_run=4)),
        ("budget", ledger(not_run=4)),
    ],
)
def test_a_missing_score_is_the_judges_fault_only_when_the_run_was_carried_through(script, reason, wanted):
    script.answer(0, "only", 0)
    assert total(script.end(reason)) == wanted


def test_scoring_a_stopped_run_with_another_scorer_makes_its_gaps_nobodys_fault(script, journals):
    second = msgspec.structs.replace(journals.JUDGE, name="contains", scoring="cc" * 16)
    script.answer(0, "only", 0)
    script.pause("interrupted")
    script.resume(second)
    script.score(0, "only", value=1, scorer=second)
    assert total(script.end("done")) == ledger(not_run=4)


def test_a_scoring_that_was_stopped_is_to_be_gone_on_with(script, journals):
    second = msgspec.structs.replace(journals.JUDGE, name="contains", scoring="cc" * 16)
    for row in (0, 1):
        script.scored(row, "only", 0, value=3)
    script.pause("done")
    script.resume(second)
    script.score(0, "only", value=1, scorer=second)
    summary = summarize(script.end("interrupted", command="score"))
    assert summary.total.ledger == ledger(scored=1, not_run=3)
    assert summary.warnings[0].startswith(
        "2 trials not run, because the last part was a selection; 1 answer not scored"
    )


def test_trials_that_no_part_ran_are_a_warning_also_where_every_part_ended_well(script):
    script.scored(0, "only", 0, value=3)
    (warning,) = [text for text in summarize(script.end("done")).warnings if "not run" in text]
    assert warning.startswith("3 trials not run, because the last part was a selection")


def test_conditions_that_a_resume_added_have_their_digests(tmp_path, journals):
    script = journals.Script(tmp_path / "run", conditions=("a",))
    plan = PlanInfo(samples=2, conditions=("a", "b"), repetitions=1)
    script.resume(plan=plan, conditions={"a": "00" * 16, "b": "bb" * 16}, agents={"a": "aa" * 16, "b": "cc" * 16})
    found = summarize(script.end()).provenance
    assert found.conditions == {"a": f"{0:032x}", "b": "bb" * 16}
    assert found.agents == {"a": "aa" * 16, "b": "cc" * 16}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        pytest.param({"repetitions": 10**12}, "repetitions is 1000000000000", id="too many repetitions"),
        pytest.param({"repetitions": 0}, "expected 1 to 100000", id="none"),
        pytest.param({"conditions": ("only", "only")}, "names a condition twice", id="a condition twice"),
    ],
)
def test_a_plan_that_karat_would_not_write_is_a_bad_run(tmp_path, journals, plan, said):
    facts = {"samples": 2, "conditions": ("only",), "repetitions": 1, **plan}
    run = journals.Script(tmp_path / "run", plan=PlanInfo(**facts)).stop()
    with pytest.raises(BadRun, match=said):
        summarize(run)


def test_numbers_and_depths_without_bounds_are_a_bad_run(script, journals):
    script.answer(0, "only", 0)
    script.score(0, "only", value=1, repeat=10**12)
    with pytest.raises(BadRun, match="too large"):
        summarize(script.stop())


def test_without_scorers_an_answer_is_enough(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",), scorers=())
    script.answer(0, "only")
    summary = summarize(script.end())
    assert summary.total.ledger == ledger(scored=1, not_run=1)
    assert summary.results == ()


def test_attempts_add_up_and_say_what_those_without_an_answer_cost(tmp_path, journals):
    """Two trials answered (one of them at the third attempt), one failed, two not run: one of these broken off."""
    script = journals.Script(tmp_path / "run", samples=5, conditions=("only",), scorers=())
    script.attempt(0, "only", dollars=0.25)
    script.attempt(0, "only", n=2)
    script.answer(0, "only", attempts=3, reply=Reply(text="yes", dollars=1.0))
    script.answer(1, "only", reply=Reply(text="yes", dollars=1.0))
    script.attempt(2, "only", cls="agent", dollars=0.5)
    script.failure(2, "only")
    script.attempt(3, "only", dollars=0.125)
    script.reply(4, "only", reply=Reply(text="first turn", dollars=2.0))
    summary = summarize(script.end("max_failures"))
    assert summary.total.ledger == ledger(scored=2, agent=1, not_run=2)
    lost = Money(known=0.25 + 0.5 + 0.125 + 2.0, unknown=1)
    assert summary.total.attempts == Attempts(answered=2, failed=4, unfinished=1, of_trials_not_run=2, lost=lost)
    assert summary.total.cost.agent == Money(known=2.0 + lost.known, unknown=1)
    assert attempts_sentence(summary.total) == (
        "Attempts: 7 = 2 answered + 4 failed + 1 unfinished. Those without an answer cost ≥ $2.88, "
        "which the cost above includes; 2 of them are of trials that were not run."
    )


def test_an_attempt_that_a_resumed_run_goes_on_from_is_not_lost(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=())
    first, second = Reply(text="one", dollars=1.0), Reply(text="two", dollars=1.0)
    script.reply(0, "only", reply=first)
    script.resume()
    script.answer(0, "only", replies=(first, second), attempts=2)
    total = summarize(script.end()).total
    assert total.attempts == Attempts(
        answered=1, failed=0, unfinished=1, of_trials_not_run=0, lost=Money(known=0.0, unknown=0)
    )
    assert total.cost.agent.known == 2.0


def test_every_scorer_must_have_scored(tmp_path, journals):
    second = msgspec.structs.replace(journals.JUDGE, name="contains", scoring="cc" * 16)
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",), scorers=(journals.JUDGE, second))
    script.scored(0, "only", value=3)
    script.score(0, "only", value=1, scorer=second)
    script.scored(1, "only", value=3)
    assert total(script.end()) == ledger(scored=1, judge=1)


def test_a_later_answer_is_a_duplicate_and_changes_nothing(script):
    script.scored(0, "only", 0, value=3)
    script.answer(0, "only", 0, seconds=99.0)
    summary = summarize(script.end("interrupted"))
    assert summary.duplicates == 1
    assert summary.total.latency.n == 1
    assert summary.total.latency.p95 == 1.0
    assert any("1 answer came after" in warning for warning in summary.warnings)


def test_what_no_plan_holds_is_left_out_aloud(script):
    script.answer(0, "only", 7)
    script.answer(5, "only", 0)
    script.answer(0, "gone", 0)
    summary = summarize(script.end())
    assert summary.total.ledger.scored == 0
    assert any("3 events of trials outside the plan" in warning for warning in summary.warnings)


def test_a_resume_widens_the_plan(script):
    script.scored(0, "only", 0, value=3)
    script.resume(plan=PlanInfo(samples=2, conditions=("only",), repetitions=5))
    assert total(script.end()) == ledger(scored=1, not_run=9)


def test_a_torn_last_line_is_not_there_yet(script):
    script.scored(0, "only", 0, value=3)
    run = script.end()
    with run.journal.open("ab") as file:
        file.write(b'{"event":"answer","trial":"torn')
    assert total(run).scored == 1


def test_a_damaged_line_is_named_by_its_number(script):
    script.scored(0, "only", 0, value=3)
    run = script.stop()
    with run.journal.open("ab") as file:
        file.write(b'{"event":"answer","trial":12}\n')
    with pytest.raises(BadRun, match="line 4 of the journal is damaged"):
        summarize(run)


def test_lines_that_somebody_typed_are_left_out_aloud(script):
    script.scored(0, "only", 0, value=3)
    run = script.stop()
    lines = [re.sub(rb',"crc":"[0-9a-f]{8}"}$', b"}", line) for line in run.lines()]  # as before lines had checksums
    run.journal.write_bytes(b"\n".join([*lines, b'\n{"event": "answer", "trial": "typed by hand"}\n']))
    summary = summarize(run)
    assert summary.total.ledger.scored == 1
    assert any("1 line of the journal not as karat writes them" in warning for warning in summary.warnings)


def test_a_run_that_has_only_begun(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2)
    run = script.stop()
    run.journal.unlink()
    summary = summarize(run)
    assert summary.total.ledger == ledger(not_run=4)
    assert summary.results[0].mean.value is None
    assert summary.results[0].mean.reason == "no values"


# What may happen to one trial, in the order in which it is written.
STORIES = {
    "nothing": [],
    "scored": ["answer", "score"],
    "answered": ["answer"],
    "judge failed": ["answer", "judge failure"],
    "judge mended": ["answer", "judge failure", "score"],
    "agent": ["attempt", "failure agent"],
    "limit": ["failure limit"],
    "infrastructure": ["failure infrastructure"],
    "mended": ["failure infrastructure", "attempt", "answer", "score"],
    "twice": ["answer", "score", "answer", "score"],
}
WRITERS = {
    "answer": lambda script, *place: script.answer(*place),
    "score": lambda script, *place: script.score(*place, value=3),
    "judge failure": lambda script, *place: script.failure(*place, cls="judge", stage="score", scorer="judge"),
    "attempt": lambda script, *place: script.attempt(*place),
    "failure agent": lambda script, *place: script.failure(*place, cls="agent"),
    "failure limit": lambda script, *place: script.failure(*place, cls="limit"),
    "failure infrastructure": lambda script, *place: script.failure(*place, cls="infrastructure"),
}
PLACES = [(row, condition, repetition) for row in range(2) for condition in ("a", "b") for repetition in range(2)]


def written(folder, journals, stories, seed: int, reason: str):
    """The stories, told all at once: each trial's events keep their order, the trials' do not."""
    script = journals.Script(folder, samples=2, conditions=("a", "b"), repetitions=2)
    turns = [place for place, story in zip(PLACES, stories, strict=True) for _ in STORIES[story]]
    random.Random(seed).shuffle(turns)
    left = {place: list(STORIES[story]) for place, story in zip(PLACES, stories, strict=True)}
    for place in turns:
        WRITERS[left[place].pop(0)](script, *place)
    return script.end(reason)


@given(
    st.lists(st.sampled_from(sorted(STORIES)), min_size=len(PLACES), max_size=len(PLACES)),
    st.integers(0, 10**6),
    st.sampled_from(["done", "interrupted", "max_failures", "budget"]),
)
def test_every_journal_adds_up_and_the_order_of_completion_does_not_show(
    tmp_path_factory, journals, stories, seed, reason
):
    summary = summarize(written(tmp_path_factory.mktemp("run"), journals, stories, seed, reason))
    for account in [*summary.accounts.values(), summary.total]:
        found = msgspec.structs.asdict(account.ledger)
        assert found.pop("planned") == sum(found.values())
    assert summary.total.ledger.planned == len(PLACES)
    assert summary.total.ledger.scored == sum("score" in STORIES[story] for story in stories)
    again = summarize(written(tmp_path_factory.mktemp("run"), journals, stories, seed + 1, reason))
    assert msgspec.structs.replace(again, failures=()) == msgspec.structs.replace(summary, failures=())
    assert set(again.failures) == set(summary.failures)


def test_a_summary_survives_json(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"a": [[1, None], [4, 5]], "b": [[2, 3], [None, None]]})
    summary = summarize(run)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=type(summary)) == summary


@pytest.mark.parametrize(("reason", "planned"), [("done", 2), ("interrupted", 6), (None, 6)])
def test_only_a_run_that_went_to_its_end_holds_all_that_there_is(tmp_path, journals, reason, planned):
    script = journals.Script(tmp_path / "run", samples=3, conditions=("only",), repetitions=2, sparse=True)
    script.scored(0, "only", value=3)
    script.scored(1, "only", value=3)
    run = script.stop() if reason is None else script.end(reason)
    assert summarize(run).total.ledger.planned == planned
