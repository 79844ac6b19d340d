"""What the index keeps of a journal, and how it finds the lines again."""

from __future__ import annotations

import json

import msgspec
import pytest

from karat.errors import BadRun
from karat.index import read_index, trusted
from karat.journal import CHECKSUMS_SINCE, PlanInfo
from karat.records import NOT_ASKED, Answer, Reply, Score, ToolCall, Usage

answer = msgspec.json.Decoder(Answer).decode
score = msgspec.json.Decoder(Score).decode


@pytest.fixture
def script(journals, tmp_path):
    """Two questions under two conditions; the second one's answers are longer than a block that is read."""
    script = journals.Script(tmp_path / "run", format=CHECKSUMS_SINCE)
    for row, condition in [(1, "with-docs"), (0, "baseline"), (1, "baseline")]:
        text = f"{row} {condition} " + "long " * (100_000 * row)
        script.answer(row, condition, reply=Reply(text=text, dollars=0.25))
        script.score(row, condition, value=row + 1)
    script.answer(0, "baseline", reply=Reply(text="a second answer"))
    script.score(0, "baseline", value=5)
    return script


def test_texts_are_found_again_by_their_bytes(script):
    index = read_index(script.end())
    found = {index.place(cell): line.text[:8].rstrip() for cell, line in index.answer_lines(answer)}
    assert found == {(1, 1, 0): "1 with-d", (0, 0, 0): "0 baseli", (1, 0, 0): "1 baseli"}
    assert list(found) == [(1, 1, 0), (0, 0, 0), (1, 0, 0)], "in the journal's order"
    rows = [(index.place(cell)[:2], row.values) for cell, row in index.score_lines(("judge", "0f" * 16), score)]
    values = [((1, 1), 2.0), ((0, 0), 1.0), ((1, 0), 2.0), ((0, 0), 5.0)]
    assert rows == [(place, {"completeness": value}) for place, value in values]
    assert index.duplicates == 1
    assert index.scores["judge", "0f" * 16].counting().tolist() == [3, 2, 0], "the last row at a place counts"


def test_a_journal_that_is_another_one_by_now_is_refused(script):
    run = script.end()
    index = read_index(run)
    run.journal.write_bytes(run.journal.read_bytes().replace(b"0 baseline", b"0 basel1ne"))
    with pytest.raises(BadRun, match="the journal changed while it was being read"):
        list(index.answer_lines(answer))
    run.journal.write_bytes(b"")
    with pytest.raises(BadRun, match="the journal changed while it was being read"):
        list(index.answer_lines(answer))


def test_what_a_trial_cost_that_has_no_answer_is_kept_with_its_conversation(script):
    script.reply(0, "with-docs", turn=0, reply=Reply(text="first", dollars=1.0))
    script.reply(0, "with-docs", turn=1, reply=Reply(text="second", dollars=2.0))
    script.attempt(0, "with-docs", dollars=0.5)
    script.failure(0, "with-docs", cls="infrastructure", kind="network")
    index = read_index(script.end())
    (pending,) = index.open_trials.values()
    assert index.place(pending.cell) == (0, 1, 0)
    lines = index.lines(at for at, _ in pending.partial.replies)
    assert [json.loads(line)["reply"]["text"] for line in lines] == ["first", "second"]
    assert sorted(index.tallies[1].lost_dollars) == [0.5, 1.0, 2.0]
    assert [(index.place(cell), code) for _, cell, code in index.failures] == [((0, 1, 0), 2)], (
        "the attempt has another kind"
    )
    assert [index.place(cell) for _, cell, _ in index.attempts] == [(0, 1, 0)]


@pytest.mark.parametrize("padding", range(0, 160, 7))
def test_a_resume_is_found_wherever_blocks_end(journals, tmp_path, padding):
    script = journals.Script(tmp_path / "run", format=CHECKSUMS_SINCE)
    script.answer(0, "baseline", reply=Reply(text="x" * (2**20 - 500 + padding) + '\n{"event":"resume"'))
    script.resume(plan=PlanInfo(samples=2, conditions=("third",), repetitions=2))
    script.answer(0, "third", reply=Reply(text="y" * 2**20))
    script.resume(plan=PlanInfo(samples=2, conditions=("fourth",), repetitions=1))
    run = script.end()
    assert run.plan().conditions == ("baseline", "with-docs", "third", "fourth")
    assert run.plan().repetitions == 2


def test_a_damaged_resume_is_named_with_its_line(script):
    script.resume(plan=PlanInfo(samples=2, conditions=("third",), repetitions=2))
    run = script.end()
    run.journal.write_bytes(run.journal.read_bytes().replace(b'"third"', b'"th1rd"'))
    with pytest.raises(BadRun, match="line 10 of the journal is damaged"):
        run.plan()


def test_what_is_not_known_to_have_been_paid_is_counted_apart(journals, tmp_path):
    """Of answers, of attempts that failed and of the judge; nothing unknown becomes zero, or the reverse."""
    script = journals.Script(tmp_path / "run", conditions=("plain",), samples=3)
    used = Usage(input_tokens=10, output_tokens=2, reasoning_tokens=1)
    script.answer(0, "plain", reply=Reply(text="a", dollars=0.5, usage=used), seconds=2.0)
    script.answer(1, "plain", reply=Reply(text="b", dollars=0.0, usage=Usage(input_tokens=5)))
    script.attempt(2, "plain", dollars=0.25)
    script.attempt(2, "plain", n=2)
    script.answer(2, "plain", replies=(Reply(text="c"), NOT_ASKED), attempts=3)
    script.score(0, "plain", value=1, offline=False, dollars=0.125, usage=used)
    script.score(1, "plain", value=1, offline=False)
    script.score(2, "plain", value=1)
    script.score(2, "plain", value=1, dollars=0.75)
    index = read_index(script.end())
    tally = index.tallies[0]
    assert (tally.answered, [*tally.seconds]) == (3, [2.0, 1.0, 1.0])
    assert (sorted(tally.dollars), tally.unknown, tally.unpriced_replies) == ([0.25, 0.5], 2, 1)
    assert ([*tally.lost_dollars], tally.lost_unknown) == ([0.25], 1)
    assert ([*tally.judge_dollars], tally.judge_unknown, tally.judge_tokens) == ([0.125, 0.75], 1, 12)
    assert (tally.tokens, tally.tokens_unknown, tally.uncounted_replies) == ([25, 4, None, None, 2], 4, 1)


def test_a_tool_succeeded_if_one_of_its_calls_of_an_answer_did(journals, tmp_path):
    script = journals.Script(tmp_path / "run", conditions=("plain",))
    bad, good = (ToolCall(tool="search", server="docs", input={}, error=error) for error in ("no", None))
    other = ToolCall(tool="read", server="docs", input={}, error="no")
    own = ToolCall(tool="think", input={})
    script.answer(
        0, "plain", replies=(Reply(text="a", tool_calls=(bad, good, bad)), Reply(text="b", tool_calls=(other, own)))
    )
    index = read_index(script.end())
    names = {code: (tool.server, tool.tool) for tool, code in index.calls.codes.items()}
    rows = {names[tool]: succeeded for tool, succeeded in zip(index.calls.tools, index.calls.succeeded, strict=True)}
    assert rows == {("docs", "search"): 1, ("docs", "read"): 0, (None, "think"): 1}
    assert [*index.calls.cells] == [0, 0, 0]
    calls = index.tallies[0].servers
    assert {name: (one.calls, one.errors, one.trials) for name, one in calls.items()} == {"docs": (4, 3, 1)}


def test_scores_of_a_run_that_knows_no_scorer_are_paid_all_the_same(journals, tmp_path):
    script = journals.Script(tmp_path / "run", scorers=())
    script.attempt(0, "baseline", stage="score", dollars=0.5)
    script.answer(0, "baseline")
    script.score(0, "baseline", value=1, offline=False, dollars=0.25)
    index = read_index(script.end())
    assert [*index.unassigned.judge_dollars] == [0.5, 0.25]
    assert not any(tally.judge_dollars for tally in index.tallies)


def test_samples_are_in_the_order_of_their_positions_whatever_that_of_the_lines(journals, tmp_path):
    samples = [journals.sample(at) for at in (2, 0, 1)]
    script = journals.Script(tmp_path / "run", samples=samples, conditions=("plain",))
    for row in range(3):
        script.answer(row, "plain")
    index = read_index(script.end())
    assert {name: (row, index.positions[row], index.digests[row]) for name, row in index.samples.items()} == {
        str(at): (at, at, journals.sample(at).digest) for at in range(3)
    }
    assert {index.place(cell)[0]: line.sample for cell, line in index.answer_lines(answer)} == {0: "0", 1: "1", 2: "2"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RecursionError(), "holds values nested too deeply to be read"),
        (OverflowError(), "holds numbers that are too large to compute with"),
        (MemoryError(), "holds numbers that are too large to compute with"),
        (msgspec.DecodeError("bad"), "the journal is damaged: bad"),
    ],
)
def test_values_that_karat_never_writes_are_a_fault_of_the_run(journals, tmp_path, error, said):
    run = journals.Script(tmp_path / "run").end()
    with pytest.raises(BadRun, match=said) as refused, trusted(run):
        raise error
    assert str(refused.value).startswith(str(run.path))
