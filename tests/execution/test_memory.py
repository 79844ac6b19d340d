"""What scorers may ask of a run: its answers, and the scores on disk when it was opened."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.analysis.journals import Script

from karat.execution.scoring import ScorerMemory
from karat.index import RunIndex
from karat.journal import Codec
from karat.records import Reply, Score


def test_without_a_run_nothing_is_remembered() -> None:
    memory = ScorerMemory()
    assert memory.answer_of("0", "baseline", 0) is None
    assert memory.recall("k", "t") is None


def test_the_answer_that_counts_is_found_by_its_place(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=2, repetitions=2)
    script.answer(0, "baseline", 1, reply=Reply(text="first"))
    script.failure(1, "baseline", 0)
    memory = ScorerMemory()
    memory.answers = RunIndex(script.stop())
    memory.answers.follow()
    found = memory.answer_of("0", "baseline", 1)
    assert found is not None
    assert found.text == "first"
    for place in (("0", "baseline", 0), ("0", "with-docs", 1), ("1", "baseline", 0), ("9", "baseline", 0)):
        assert memory.answer_of(*place) is None


def test_a_score_is_recalled_by_its_key_of_the_trial_or_else_the_last_of_any(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=3)
    one, two, three = (script.trial(row, "baseline") for row in range(3))
    for row, value, key in ((0, 1.0, "k"), (0, 2.0, "k"), (1, 3.0, "k"), (1, 4.0, "other"), (2, 5.0, None)):
        script.score(row, "baseline", value=value, detail={"key": key} if key else {"why": '"key":'})
    run = script.stop()
    memory = ScorerMemory()
    memory.open(run)

    def recalled(key: str, trial: str) -> object:
        score = memory.recall(key, trial)
        return None if score is None else score.values["completeness"]

    assert [recalled("k", trial) for trial in (one, two, three)] == [2.0, 3.0, 3.0]
    assert [recalled("other", trial) for trial in (one, two)] == [4.0, 4.0]
    assert recalled("unknown", one) is None
    assert memory.workspaces.run == run.path
    memory.close()


@pytest.mark.parametrize("again", [False, True])
def test_rows_that_come_later_are_not_recalled_until_the_run_is_opened_again(tmp_path: Path, again: bool) -> None:
    script = Script(tmp_path / "run")
    script.score(0, "baseline", value=1.0, detail={"key": "k"})
    run = script.stop()
    memory = ScorerMemory()
    memory.open(run)
    (first,) = run.events_of(Score)
    with run.journal.open("ab") as journal:
        journal.write(Codec().line(msgspec.structs.replace(first, values={"completeness": 2.0})))
    if again:
        memory.open(run)
    score = memory.recall("k", script.trial(0, "baseline"))
    assert score is not None
    assert score.values["completeness"] == (2.0 if again else 1.0)
