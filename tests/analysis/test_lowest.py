"""The questions that went worst, and the words about them."""

from __future__ import annotations

from karat.analysis import summarize
from karat.records import Metric, Reply


def test_the_lowest_come_first_and_perfect_ones_not_at_all(tmp_path, journals):
    scores = {"a": [[5], [3], [1], [2]], "b": [[5], [2], [2], [5]]}
    lowest = summarize(journals.table(tmp_path / "run", scores)).lowest
    assert [(one.sample, one.mean, one.gap) for one in lowest] == [("2", 1.5, 1.0), ("1", 2.5, 1.0), ("3", 3.5, 3.0)]
    assert [cell.mean for cell in lowest[0].cells] == [1, 2]
    assert lowest[0].question == "Question 2?"


def test_where_lower_is_better_the_highest_are_the_lowest(tmp_path, journals):
    errors = Metric(name="errors", low=0, high=9, direction="lower", kind="ordinal")
    lowest = summarize(journals.table(tmp_path / "run", {"a": [[0], [3], [7]]}, metric=errors)).lowest
    assert [one.sample for one in lowest] == ["2", "1"]
    assert lowest[0].gap is None


def test_the_words_are_those_of_the_worst_repetition_and_claims_of_all_each_once(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), repetitions=3)
    for repetition, (value, claims) in enumerate([(4, ("x", "y")), (1, ("y",)), (3, ("z",))]):
        script.answer(0, "only", repetition, reply=Reply(text=f"said {repetition}\n\x1b[31m"))
        reasons = {"completeness": f"because {repetition}"}
        script.score(0, "only", repetition, value=value, reasons=reasons, claims=claims)
    (cell,) = summarize(script.end()).lowest[0].cells
    assert (cell.reason, cell.answer, cell.claims, cell.n) == ("because 1", "said 1", ("x", "y", "z"), 3)


def test_words_of_another_scoring_are_not_mixed_in(tmp_path, journals):
    import msgspec

    newer = msgspec.structs.replace(journals.JUDGE, scoring="cc" * 16)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",))
    script.answer(0, "only")
    script.score(0, "only", value=2, reasons={"completeness": "old"})
    script.resume(newer)
    script.score(0, "only", value=3, reasons={"completeness": "new"}, scorer=newer)
    run = script.end()
    assert summarize(run).lowest[0].cells[0].reason == "new"
    assert summarize(run, scorings={"judge": "0f"}).lowest[0].cells[0].reason == "old"


def test_a_condition_that_never_answered_is_shown_as_such(tmp_path, journals):
    lowest = summarize(journals.table(tmp_path / "run", {"a": [[2]], "b": [[None]]})).lowest
    assert [(cell.mean, cell.n) for cell in lowest[0].cells] == [(2, 1), (None, 0)]
    assert lowest[0].gap is None
