"""The index of a run that is looked at: the summary's numbers, however it was followed; hostile and damaged folders."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from tests.analysis.journals import JUDGE, NUMERIC, Script, asked, conversations, resealed, sample, table

from karat.analysis import summarize, trials
from karat.journal import Labels, PlanInfo, RunFolder
from karat.journal.codec import LONGEST_LINE
from karat.kind_views import TrialRecord
from karat.records import Metric, Reply, ToolCall, Usage
from karat_viewer.jobs import NotYet
from karat_viewer.library import Library
from karat_viewer.live_index import LiveIndex, Progress
from karat_viewer.open_run import OpenRun
from karat_viewer.queries import Filter
from karat_viewer.web import Site


def made(run: RunFolder) -> LiveIndex:
    index = LiveIndex(run)
    index.catch_up()
    return index


def content(live: LiveIndex) -> list[object]:
    """Everything that pages may ask of an index."""
    with live.reading() as questions:
        index = questions.index
        cells = range(index.planned)
        scores = {
            key: (list(rows.cells), list(rows.at), rows.labels, rows.partial) for key, rows in index.scores.items()
        }
        return [
            questions.columns,
            questions.choices,
            questions.listed(Filter()).__repr__(),
            bytes(index.answered),
            list(index.answers),
            scores,
            questions.failures,
            [index.attempts_of(cell) for cell in cells],
            {trial: [at for at, _ in one.partial.replies] for trial, one in index.open_trials.items()},
        ]


def opened(run: RunFolder) -> OpenRun:
    return OpenRun(run, ThreadPoolExecutor(1), going_on=lambda: True)


def listed(page, wanted: Filter):
    return page.questions.listed(wanted)


def eventful(folder, *, again: bool = True) -> Script:
    """A journal in which most of what can happen does."""
    panel = msgspec.structs.replace(JUDGE, scoring="1d" * 16, offline=False)
    script = Script(folder, samples=4, repetitions=2)
    script.attempt(0, "baseline")
    script.scored(0, "baseline", 0, value=2)
    script.scored(0, "baseline", 0, value=5)  # too late: the first answer counts, the last score does
    script.answer(
        0, "with-docs", reply=Reply(text="said", tool_calls=(ToolCall(tool="t", error="no"), ToolCall(tool="u")))
    )
    script.failure(0, "with-docs", stage="score", cls="judge", scorer="judge", scoring=JUDGE.scoring)
    script.answer(1, "baseline", reply=Reply(text="x", usage=Usage(input_tokens=3, output_tokens=4), dollars=0.25))
    for judge in ("a", "b"):
        for repeat in range(2):
            script.score(
                1, "baseline", value=2 + repeat, judge=judge, repeat=repeat, rows=4, claims=(f"claim {judge}",)
            )
    script.failure(1, "with-docs", cls="limit", kind="timeout")
    script.answer(1, "with-docs", 1)
    script.score(1, "with-docs", 1, value=4, judge="a", rows=2)  # torn
    script.reply(2, "baseline", reply=Reply(text="first turn"), turn=0)
    script.reply(2, "baseline", reply=Reply(text="second turn"), turn=1)
    script.reply(2, "baseline", reply=Reply(text="first again"), turn=0)
    script.failure(2, "baseline")
    script.failure(2, "with-docs", kind="crash")
    script.pause("interrupted")
    script.resume(plan=PlanInfo(samples=4, conditions=("with-docs", "third"), repetitions=3))
    script.conditions = (*script.conditions, "third")
    script.scored(2, "with-docs", value=1)  # what failed before
    script.scored(3, "third", 2, value=3)
    script.scored(9, "baseline", value=3)  # of no plan
    script.score(1, "with-docs", 1, value=4, judge="a", rows=2)
    script.score(1, "with-docs", 1, value=1, judge="b", rows=2)
    if again:
        script.resume(panel)
        script.score(0, "with-docs", scorer=panel, values={"completeness": 4, "new": True}, labels={"diagnosis": "off"})
    return script


@pytest.mark.parametrize("again", [False, True])
def test_the_numbers_of_a_trial_are_those_of_the_summary(tmp_path, again):
    run = eventful(tmp_path / "run", again=again).end()
    with opened(run).page() as page:
        by_key = {column.key: column for column in page.questions.columns}
        told: dict[tuple[int, str, int], TrialRecord] = {}
        for row in range(4):
            for trial in page.texts.trials(row)[0]:
                told[row, page.questions.conditions[trial.condition], trial.repetition] = trial
    summary = summarize(run)
    shown = [metric for metric in summary.metrics if metric.key in by_key]
    assert shown
    compared = 0
    for record in trials(run, summary):
        one = told.get((record.sample.position, record.condition, record.repetition))
        if one is None:
            assert (record.answer, record.failure) == (None, None)
            continue
        assert (one.answer, one.failure, one.heard) == (record.answer, record.failure, record.heard)
        for metric in shown:
            value = one.values[metric.key]
            wanted = record.value(metric)
            assert value == wanted or (math.isnan(value) and wanted is None)
            compared += wanted is not None
    assert compared


def test_a_conversation_has_the_numbers_of_its_turns(tmp_path):
    turns = [{"golden": "5", "program": "add(2, 3)"}, {"golden": "7"}]
    said = [Reply(text='{"answer": "5", "program": "add(2, 3)"}'), Reply(text='{"answer": "8"}')]
    run = conversations(tmp_path / "run", [asked("c1", 0, turns)], {"look-up": [[said]]})
    with opened(run).page() as page:
        [one] = page.texts.trials(0)[0]
        column = page.questions.column("numerical")
        assert (column.kind, one.values[column.key]) == ("share", 0.5)
        assert [score.turn for score in one.scores] == [0, 1]
        [label] = [label for label, _ in page.questions.choices.labels if label.startswith("diagnosis=")]
        found = listed(page, Filter(label=label))
        assert [row.id for row in found] == ["c1"]
        assert listed(page, Filter(label="diagnosis=none-such")) == []


@given(cuts=st.lists(st.integers(0, 100_000), max_size=8))
def test_an_index_that_follows_a_run_is_the_same_as_one_made_at_its_end(tmp_path_factory, cuts):
    folder = tmp_path_factory.mktemp("following")
    run = eventful(folder / "run").end(command="score")
    wanted = content(made(run))
    whole = run.journal.read_bytes()
    following = LiveIndex(run)
    for cut in sorted(cut % len(whole) for cut in cuts):
        run.journal.write_bytes(whole[:cut])
        following.catch_up()
        assert following.progress().finished
    run.journal.write_bytes(whole)
    following.catch_up()
    assert content(following) == wanted


def goes_on(steps: Iterator[int]) -> bool:
    return next(steps) < 10


def test_an_index_follows_a_run_whose_last_line_lacks_only_its_newline(tmp_path):
    run = eventful(tmp_path / "run").end(command="score")
    whole = run.journal.read_bytes()
    for end, byte in enumerate(whole):
        if byte == ord("\n"):
            run.journal.write_bytes(whole[:end])
            steps = count()
            LiveIndex(run).catch_up(going_on=partial(goes_on, steps))
            assert next(steps) < 10, f"it reads the first {end} bytes again and again"


def test_a_torn_line_is_left_alone_until_it_is_whole(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    whole = run.journal.read_bytes()
    at = whole.rindex(b'{"event":"score"') + 20
    run.journal.write_bytes(whole[:at])
    index = made(run)
    assert index.progress().finished
    assert index.progress().damaged == 0
    run.journal.write_bytes(whole[: at + 5])
    index.catch_up()
    assert index.progress().damaged == 0
    run.journal.write_bytes(whole)
    assert not index.progress().finished
    index.catch_up()
    assert content(index) == content(made(run))


def test_a_run_that_was_killed_stands(tmp_path):
    script = Script(tmp_path / "run", samples=2)
    script.scored(0, "baseline", value=3)
    script.answer(0, "with-docs")
    with opened(script.stop()).page() as page:
        rows = listed(page, Filter())
        assert [[(cell.condition, str(cell.mean), cell.answers) for cell in row.cells] for row in rows] == [
            [(0, "3.0", 1), (1, "nan", 1)],
            [],
        ]


def test_a_run_without_a_journal_stands(tmp_path):
    run = Script(tmp_path / "run").stop()
    run.journal.unlink()
    with opened(run).page() as page:
        assert len(listed(page, Filter())) == 2


@pytest.mark.parametrize("change", ["other", "shorter", "missing"])
def test_a_journal_that_is_another_one_is_read_again(tmp_path, change):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    index = made(run)
    whole = run.journal.read_bytes()
    if change == "other":
        run.journal.write_bytes(resealed(whole.replace(b"Answer 1", b"Reply  1")))
    elif change == "shorter":
        run.journal.write_bytes(whole[: whole.rindex(b'{"event":"end"')])
    else:
        run.journal.unlink()
    assert not index.progress().finished
    index.catch_up()
    assert index.progress().finished or change == "missing"
    assert content(index) == content(made(RunFolder.open(run.path)))


def test_a_line_that_has_moved_makes_the_index_anew(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    first = opened(run)
    with pytest.raises(NotYet), first.page() as page:
        run.journal.write_bytes(b"\n" + run.journal.read_bytes())
        page.texts.trials(0)
    with first.page() as page:
        assert page.texts.sample(0).id == "0"
        assert len(page.texts.trials(0)[0]) == 1


HOSTILE = [
    b'{"event":"answer","trial":"h1","sample":"0","condition":"baseline","repetition":99999999999999999999,"replies":[],"started":"","seconds":1}',
    b'{"event":"answer","trial":"h2","sample":"0","condition":"baseline","repetition":-1,"replies":[],"started":"","seconds":1}',
    b'{"event":"answer","trial":"h3","sample":"0","condition":"baseline","repetition":0,"replies":[],"started":"","seconds":1e308,"attempts":99999999999999999999}',
    b'{"event":"answer","trial":"\\ud800","sample":"1","condition":"baseline","repetition":0,"replies":[{"text":"\\udfff\\u0000"}],"started":"","seconds":1}',
    b'{"event":"score","trial":"h3","scorer":"judge","scoring":"x","values":{"completeness":1e308},"turn":99999999999999999999,"repeat":-99999999999999999999,"rows":99999999999999999999}',
    b'{"event":"score","trial":"h3","scorer":"judge\\u0000","scoring":"x","values":{"a":true},"labels":{"diagnosis":"\\u0000\';--"}}',
    b'{"event":"score","trial":"h3","scorer":"judge","scoring":"x","values":'
    + json.dumps({f"m{n}": n for n in range(500)}).encode()
    + b"}",
    b'{"event":"failure","trial":"h9","stage":"agent","class":"agent","kind":"'
    + b"k" * 100_000
    + b'","message":"m","sample":"1","condition":"with-docs","repetition":0}',
    b'{"event":"reply","trial":"h9","attempt":1,"turn":-5,"reply":{"text":"x"}}',
    b'{"event":"resume","at":"","versions":{},"host":"","pid":1,"plan":{"samples":1,"conditions":["x","x"],"repetitions":1}}',
    b'{"event":"score","trial":"h3"',
    b'{"event":"answer"}',
    b"[" * 100_000,
    b"\xff\xfe",
    b"",
]


def test_hostile_lines_are_counted_and_the_rest_stands(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]], "with-docs": [[1.0], [2.0]]}, samples=2)
    run.journal.write_bytes(run.journal.read_bytes() + b"\n".join(HOSTILE) + b"\n")
    index = made(run)
    progress = index.progress()
    assert progress.finished
    assert progress.damaged >= 4
    with opened(run).page() as page:
        assert len(listed(page, Filter(sort="gap"))) == 2
        assert page.texts.trials(0)[1] == 2


def test_a_line_that_only_the_index_can_read_is_told_and_does_not_make_it_anew(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("baseline",))
    script.scored(1, "baseline", value=3)
    run = script.stop()
    place = script.place(0, "baseline", 0)
    with run.journal.open("ab") as file:
        line = {"event": "answer", **place, "replies": [{"text": "x"}], "seconds": 1, "started": 5}  # no text
        file.write(resealed(json.dumps(line, separators=(",", ":")).encode() + b"\n"))
    with opened(run).page() as page:
        [one] = page.texts.trials(0)[0]
        assert (one.answer, one.damaged) == (None, True)
        [other] = page.texts.trials(1)[0]
        assert other.answer is not None


def test_a_page_reads_only_so_much_of_the_journal(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",), repetitions=4)
    for repetition in range(4):
        script.answer(0, "baseline", repetition, reply=Reply(text="x" * 20_000_000))
    run = opened(script.stop())
    while not run.fresh().finished:
        pass  # a page does not wait so long for an index on a busy machine
    with run.page() as page:
        found, total = page.texts.trials(0)
        assert (len(found), total) == (2, 4)


def test_nothing_is_read_behind_a_line_too_long_to_be_one_of_ours(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    whole = run.journal.read_bytes()
    with run.journal.open("ab") as file:
        file.truncate(len(whole) + 3 * LONGEST_LINE)
        file.seek(0, 2)
        file.write(b'\n{"event":"end","at":"","reason":"done","seconds":1}\n')
    index = made(run)
    assert index.progress().finished
    with index.reading() as questions:
        assert [question.cells[0].mean for question in questions.listed(Filter())] == [3.0, 4.0]


def test_samples_that_a_resume_brings_are_known(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",))
    script.scored(0, "baseline", value=3)
    run = script.stop()
    index = made(run)
    lines = (run.path / "samples.jsonl").read_bytes() + resealed(msgspec.json.encode(sample(1)) + b"\n")
    (run.path / "samples.jsonl").write_bytes(lines)
    more = Script(tmp_path / "more", samples=2, conditions=("baseline",))
    more.scored(1, "baseline", value=5)
    more.stop()
    with run.journal.open("ab") as file:
        file.write(b"".join((more.path / "journal.jsonl").read_bytes().splitlines(keepends=True)[1:]))
    index.catch_up()
    with opened(run).page() as page:
        rows = listed(page, Filter())
        assert [(row.id, row.cells[0].mean) for row in rows] == [("0", 3.0), ("1", 5.0)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four questions, two conditions, two repetitions; the second question failed under one of them."""
    scores = {
        "baseline": [[1.0, 1.0], [2.0, 4.0], [5.0, 5.0], [3.0, 3.0]],
        "with-docs": [[5.0, 4.0], [None, None], [5.0, 5.0], [2.0, 4.0]],
    }
    return table(tmp_path_factory.mktemp("filtered") / "run", scores)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Filter(), ["0", "1", "2", "3"]),
        (Filter(sort="gap"), ["0", "3", "2", "1"]),
        (Filter(sort="worst"), ["0", "1", "3", "2"]),
        (Filter(sort="best"), ["2", "0", "3", "1"]),
        (Filter(sort="variance"), ["1", "3", "0", "2"]),
        (Filter(low=4.5), ["0", "2"]),
        (Filter(low=4.5, condition="baseline"), ["2"]),
        (Filter(high=1.0), ["0"]),
        (Filter(low=2.5, high=3.5, sort="gap"), ["3", "1"]),
        (Filter(condition="no-such", low=0), []),
        (Filter(failure="any"), ["1"]),
        (Filter(failure="crash"), ["1"]),
        (Filter(failure="crash", condition="baseline"), []),
        (Filter(failure="timeout"), []),
        (Filter(text="Question 2"), ["2"]),
        (Filter(text="golden ANSW 3"), []),
        (Filter(text="3 golden answ"), ["3"]),
        (Filter(text="with docs 2 1"), ["2"]),
        (Filter(text='") OR 1=1 --'), []),
        (Filter(metric="no-such", sort="gap"), ["0", "3", "2", "1"]),
    ],
)  # fmt: skip
def test_questions_are_filtered_and_sorted(run, tmp_path, wanted, ids):
    with opened(run).page() as page:
        found = [row.id for row in listed(page, wanted)]
        if wanted.sort == "gap":  # one that has no gap comes last, and equal ones in any order
            found.sort(key=lambda one: ids.index(one) if one in ids else 99)
        assert found == ids
        assert len(page.questions.rows(wanted)) == len(ids)


def test_a_metric_of_which_less_is_better_is_sorted_the_other_way(tmp_path):
    metric = Metric(name="errors", low=0, direction="lower")
    run = table(tmp_path / "run", {"baseline": [[1.0], [7.0], [3.0]]}, metric=metric)
    with opened(run).page() as page:
        assert [row.id for row in listed(page, Filter(sort="worst"))] == ["1", "2", "0"]
        assert [row.id for row in listed(page, Filter(sort="best"))] == ["0", "2", "1"]


def test_the_newest_scoring_is_shown(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",))
    script.scored(0, "baseline", value=2)
    newer = msgspec.structs.replace(JUDGE, scoring="ee" * 16)
    script.resume(newer)
    script.score(0, "baseline", value=4, scorer=newer)
    with opened(script.end(command="score")).page() as page:
        assert [column.scoring for column in page.questions.columns] == ["ee" * 16]
        assert [row.cells[0].mean for row in listed(page, Filter())] == [4.0]
        [one] = page.texts.trials(0)[0]
        assert [score.scoring for score in one.scores] == ["ee" * 16]


def test_a_run_over_nothing_has_no_labels(tmp_path):
    run = Script(tmp_path / "run", samples=[], scorers=(NUMERIC,)).end()
    found = opened(run)
    assert found.labels() == Labels(newest={})
    with found.page() as page:
        assert (page.questions.columns, listed(page, Filter(sort="gap"))) == ((), [])


@pytest.mark.parametrize(
    ("wanted", "count"),
    [(Filter(label="choice=refused"), 1), (Filter(label="=refused"), 1), (Filter(label="=refused", condition="c"), 0),
     (Filter(label="choice=other"), 0), (Filter(label="nothing"), 2), (Filter(choices=(("study", "s"),)), 0)],
)  # fmt: skip
def test_labels_of_the_rows_that_count_are_filtered_by(tmp_path, wanted, count):
    script = Script(tmp_path / "run", samples=2, conditions=("b", "c"))
    for row in range(2):
        script.answer(row, "b")
        script.score(row, "b", values={"completeness": 3}, labels={"choice": "refused"})
    script.score(1, "b", values={"completeness": 3}, labels={})
    with opened(script.end()).page() as page:
        assert len(page.questions.rows(wanted)) == count


def test_a_page_that_waits_for_the_index_says_how_far_it_is(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0]]})
    with ThreadPoolExecutor(1) as pool:
        library = Library(tmp_path, pool=pool)
        progress = Progress(done=1, total=4, damaged=0)
        request = Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""})
        page = Site(library).waiting(request, library.open(run.path.name), NotYet("index", progress))
    assert (page.status_code, "25.0 %" in bytes(page.body).decode()) == (202, True)
