"""What a summary warns of: what its numbers leave out, and where its answers come from.

`scored` and `answered` make a run by its scores or by the texts of its answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.analysis.journals import JUDGE, SCALE, Script, sample, table

from karat.analysis import compare, summarize
from karat.analysis.warnings import Known, texts
from karat.index import read_index
from karat.journal import Choice, PlanInfo
from karat.records import NOT_ASKED, Metric, Reply

CHANGE = ": the numbers will change"


def scored(folder: Path, rows: int = 2, **info: Any) -> Script:
    script = Script(folder, samples=2, conditions=("a",), **info)
    for row in range(rows):
        script.scored(row, "a", value=3.0 + row)
    return script


def answered(folder: Path, replies: dict[str, list[str]]) -> Script:
    """Replies to "Question 0?", "Question 1?" and so on, by condition."""
    script = Script(folder, samples=max(map(len, replies.values())), conditions=tuple(replies))
    for condition, said in replies.items():
        for row, text in enumerate(said):
            script.answer(row, condition, reply=Reply(text=text))
            script.score(row, condition, value=3.0)
    return script


def notices(script: Script) -> tuple[str, ...]:
    return tuple(summarize(script.end()).notices)


def warnings(script: Script, reason: str | None = "done") -> tuple[str, ...]:
    run = script.stop() if reason is None else script.end(reason)
    return tuple(summarize(run).warnings)


@pytest.mark.parametrize(
    ("rows", "reason", "info", "warning"),
    [
        (2, "done", {}, None),
        (1, "budget", {}, "the run is not complete (status: budget; 1 trial not run): the numbers will change"),
        (
            1,
            None,
            {"shard": "1/2"},
            f"the run is not complete (status: crashed; 1 trial not run, those of other shards included){CHANGE}",
        ),
        (2, None, {}, "every trial was run, but the run did not end by itself (status: crashed)"),
        (2, None, {"source": {"incomplete": "half of it"}}, None),
        (1, "done", {}, "1 trial not run, because the last part was a selection: the numbers will change"),
        (
            1,
            "done",
            {"shard": "1/2"},
            f"1 trial not in this run, which is shard 1/2 (`karat runs merge` puts shards together){CHANGE}",
        ),
        (
            1,
            "done",
            {"source": {"format": "inspect"}},
            "1 trial without a result in the imported files: the numbers will change",
        ),
    ],
)
def test_a_run_that_is_not_whole_says_why(
    tmp_path: Path, rows: int, reason: str | None, info: dict[str, Any], warning: str | None
):
    found = [
        text for text in warnings(scored(tmp_path / "run", rows, **info), reason) if "run" in text or "trial" in text
    ]
    assert found == ([] if warning is None else [warning])


def test_events_that_do_not_count_are_counted(tmp_path: Path):
    script = scored(tmp_path / "run")
    script.answer(0, "a")
    script.answer(7, "a")
    script.answer(0, "elsewhere")
    script.write({"event": "later", "trial": "x"})
    found = warnings(script)
    assert "1 answer came after the one that counts: left out" in found
    assert "2 events of trials outside the plan: left out" in found
    assert not any("as karat writes them" in text for text in found), "a newer karat's events are passed over"


def test_scores_without_an_answer_and_beyond_all_numbers_are_counted(tmp_path: Path):
    script = scored(tmp_path / "run", 1)
    script.score(1, "a", value=2.0)
    assert "1 score of trials without an answer: left out" in warnings(script)
    script = scored(tmp_path / "large", 1)
    script.answer(1, "a")
    script.score(1, "a", value=1e101)
    assert "1 score too large to be added up (beyond 1e100): left out" in warnings(script)


def test_a_metric_that_was_not_announced_is_named(tmp_path: Path):
    script = scored(tmp_path / "run", 1)
    script.answer(1, "a")
    script.score(1, "a", values={"completeness": 3.0, "zeal": 1.0, "art": 2.0})
    assert (
        "scorer 'judge' announces completeness but gave art, zeal, of which karat does not know which way is better: "
        "higher is taken as better; correct the scorer and score the run again"
    ) in warnings(script)


def test_a_scorer_that_announces_nothing_may_give_anything(tmp_path: Path):
    silent = msgspec.structs.replace(JUDGE, metrics=(Metric(name="judge"),))
    script = Script(tmp_path / "run", samples=1, conditions=("a",), scorers=(silent,))
    script.answer(0, "a")
    script.score(0, "a", values={"zeal": 1.0}, scorer=silent)
    assert not any("announces" in text for text in warnings(script))


def test_what_is_not_real_is_said_first(tmp_path: Path):
    info = {
        "rehearsed": True,
        "experiment": {"mcp.replay": Choice(value="tapes", source="file")},
        "source": {"notes": "the agent takes no system_prompt", "faults": "one row is missing"},
    }
    found = warnings(scored(tmp_path / "run", **info))
    assert any("rehears" in text for text in found)
    assert tuple(text for text in found if "MCP servers" in text or "system_prompt" in text or "row" in text) == (
        "MCP servers were not asked: their answers and latencies come from the recording 'tapes'",
        "the agent takes no system_prompt",
        "one row is missing",
    )


def test_a_kind_that_is_not_installed_is_named(tmp_path: Path):
    found = warnings(scored(tmp_path / "run", kind="riddles"))
    assert any(
        text.startswith("the kind of dataset 'riddles' is not installed: a report shows ledger") for text in found
    )


def test_imported_files_that_lack_something_are_said_above_the_result(tmp_path: Path):
    script = scored(tmp_path / "run", source={"format": "inspect", "incomplete": "2 logs were cut off"})
    assert "Not the whole run: 2 logs were cut off" in notices(script)


def test_a_rule_can_compare_each_question_with_its_answer(tmp_path: Path):
    script = answered(tmp_path / "run", {"a": ["Question 0?", "No."], "b": ["Yes.", "Question 1?"], "c": []})
    script.answer(0, "c", reply=NOT_ASKED)  # is no exchange
    run = script.end()
    index = read_index(run)
    known = Known(run=run, index=index, shown={}, waiting=0, rule_unknown=None, summary=summarize(run))

    def echoes(known: Known) -> Iterator[str]:
        assert len(list(known.exchanges())) == 4
        for condition, turn, reply in known.exchanges():
            if reply.text == turn.question:
                yield f"{condition} echoes {turn.question}"

    assert texts((echoes,), known) == ("a echoes Question 0?", "b echoes Question 1?")


def both(tmp_path: Path, first: dict[str, Any], second: dict[str, Any], **changes: Any) -> list[str]:
    one = table(tmp_path / "one", first, run="11111111")
    two = table(tmp_path / "two", second, run="22222222", **changes)
    return list(compare(one, two).warnings)


SCORES = {"a": [[1], [2], [4]]}


def test_two_runs_that_are_alike_are_compared_without_a_warning(tmp_path: Path):
    assert both(tmp_path, SCORES, SCORES) == []


def test_questions_that_changed_between_two_runs_are_left_out_and_counted(tmp_path: Path):
    samples = [sample(0), sample(1), sample(2, digest="ee" * 16)]
    assert both(tmp_path, SCORES, SCORES, samples=samples) == [
        "1 question has the same id but another content in the two runs: left out"
    ]


def test_a_question_that_is_scored_on_one_side_only_is_a_warning(tmp_path: Path):
    (warning,) = both(tmp_path, SCORES, {"a": [[1], [None], [4]]})
    assert warning.endswith("on completeness: 1 question scored on one side only; the compared parts may differ")


def test_other_scorings_and_scales_of_two_runs_are_warnings(tmp_path: Path):
    one = table(tmp_path / "one", SCORES, run="11111111")
    other = msgspec.structs.replace(JUDGE, scoring="ee" * 16)
    script = Script(tmp_path / "two", samples=3, conditions=("a",), scorers=(other,), run="22222222")
    for row in range(3):
        script.answer(row, "a")
        script.score(row, "a", value=2.0, scorer=other)
    assert list(compare(one, script.end()).warnings) == [
        "completeness was scored differently in the two runs: score both alike with `karat score`"
    ]
    lower = msgspec.structs.replace(SCALE, direction="lower")
    turned = table(tmp_path / "three", SCORES, metric=lower, run="33333333")
    found = list(compare(one, turned).warnings)
    assert any(text.endswith("in run 33333333: no side is called better on it") for text in found)


def test_a_run_that_is_not_complete_is_named_once(tmp_path: Path):
    one = table(tmp_path / "one", SCORES, run="11111111")
    script = Script(tmp_path / "two", samples=3, conditions=("a",), run="22222222")
    for row in range(3):
        script.scored(row, "a", value=2.0)
    stopped = script.end("budget")
    assert list(compare(one, stopped).warnings) == ["run 22222222 is not complete (status: budget)"]
    assert list(compare(stopped, one).warnings) == ["run 22222222 is not complete (status: budget)"]


def test_a_resume_that_planned_more_than_it_ran_is_a_selection(tmp_path: Path):
    script = scored(tmp_path / "run")
    script.resume(plan=PlanInfo(samples=2, conditions=("a",), repetitions=2))
    assert "2 trials not run, because the last part was a selection: the numbers will change" in warnings(script)
