"""An agent of any protocol, in the form in which trials call it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from karat.agents import as_agent


class Notes:
    async def ask(self, condition: object, sample: object, turn: object, history: object) -> None: ...

    def source_notes(self, samples: object, *, conditions: object, repetitions: int) -> Mapping[str, str]:
        return {"faults": f"{repetitions} rows are missing"}


class OldNotes:
    async def ask(self, condition: object, sample: object, turn: object, history: object) -> None: ...

    def told(self, samples: object, *, conditions: object, repetitions: int) -> Mapping[str, str]:
        return {"faults": f"{repetitions} rows are missing"}


class Neither:
    async def ask(self, condition: object, sample: object, turn: object, history: object) -> None: ...


@pytest.mark.parametrize(
    ("agent", "notes"),
    [(Notes(), {"faults": "2 rows are missing"}), (OldNotes(), {"faults": "2 rows are missing"}), (Neither(), {})],
    ids=["now", "by its old name", "none"],
)
def test_what_an_agent_says_of_its_source_is_found(agent, notes):
    assert as_agent(agent).source_notes((), conditions=["a"], repetitions=2) == notes  # type: ignore[attr-defined]
