"""What a resumed run counts as answered, and what it asks."""

from __future__ import annotations

from array import array

import pytest

from karat.execution.plan import Plan
from karat.execution.resume import JournalState
from karat.records import AgentSpec, Condition, Sample

SAMPLES = [Sample(id=str(number), position=number, digest="d", turns=()) for number in range(3)]
CONDITIONS = [Condition(name=name, position=0, digest=name, agent=AgentSpec(type="t")) for name in "ab"]
WHOLE = Plan(SAMPLES, CONDITIONS, 2)


@pytest.fixture
def state() -> JournalState:
    """All of sample 0, sample 1 under b; sample 2 failed by the agent's fault under a."""
    answered = [trial.sample.id == "0" or (trial.sample.id, trial.condition.name) == ("1", "b") for trial in WHOLE]
    faults = [(trial.sample.id, trial.condition.name) == ("2", "a") for trial in WHOLE]
    return JournalState(plan=WHOLE, offsets=array("q", answered), agent_faults=bytearray(faults), scored={})


def test_answers_are_counted_by_condition_and_only_those_selected(state: JournalState) -> None:
    assert state.answered(WHOLE) == {"a": 2, "b": 4}
    assert state.answered(Plan(SAMPLES[1:], CONDITIONS, 2)) == {"a": 0, "b": 2}
    assert state.answered(Plan(SAMPLES, CONDITIONS[1:], 2)) == {"b": 4}
    assert JournalState.none(WHOLE).answered(WHOLE) == {"a": 0, "b": 0}


def test_what_has_no_answer_is_asked_and_faults_of_the_agent_only_on_request(state: JournalState) -> None:
    def asked(selected: Plan, *, retry_failed: bool = False) -> list[tuple[str, str]]:
        trials = state.to_ask(selected, retry_failed=retry_failed)
        return [(trial.sample.id, trial.condition.name) for trial in trials if trial.repetition == 1]

    assert asked(WHOLE) == [("1", "a"), ("2", "b")]
    assert asked(WHOLE, retry_failed=True) == [("1", "a"), ("2", "a"), ("2", "b")]
    assert asked(Plan(SAMPLES[2:], CONDITIONS, 2)) == [("2", "b")]
    assert asked(Plan(SAMPLES, CONDITIONS[:1], 2)) == [("1", "a")]
    assert [*JournalState.none(WHOLE).to_ask(WHOLE, retry_failed=False)] == [*WHOLE]
