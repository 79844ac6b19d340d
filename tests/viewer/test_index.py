"""The index: the same numbers as the summary, whatever way it was made; and what may be wrong with a folder."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.journals import JUDGE, NUMERIC, Script, asked, conversations, resealed, sample, table

from karat.analysis import summarize, trials
from karat.journal import Labels, PlanInfo, RunFolder
from karat.records import Metric, Reply, ToolCall, Usage
from karat.viewer import index as index_module
from karat.viewer.filling import unpacked
from karat.viewer.index import Index
from karat.viewer.opened import Opened
from karat.viewer.queries import Filter, count, listed, neighbour, place_of
from karat.viewer.schema import FORMAT_VERSION

TABLES = ("samples", "conditions", "metrics", "trials", "scores", "labels", "attempts", "heard", "parts", "cells")


def made(run: RunFolder, elsewhere) -> Index:
    index = Index(run, elsewhere=elsewhere)
    index.catch_up()
    return index


def content(index: Index) -> dict[str, list]:
    with index.reading() as base:
        rows = {name: sorted(base.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in TABLES}
        rows["standings"] = [
            tuple(round(one, 9) if isinstance(one, float) else one for one in row)
            for row in base.execute("SELECT * FROM standings ORDER BY metric, sample")
        ]
    return rows


def opened(run: RunFolder, elsewhere) -> Opened:
    pool = ThreadPoolExecutor(1)
    return Opened(run, pool, elsewhere=elsewhere, going_on=lambda: True)


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
    with opened(run, tmp_path).page() as page:
        by_key = {column.key: column for column in page.columns}
        told = {}
        for n in range(1, 5):
            for one in page.texts.trials(n)[0]:
                told[n - 1, page.conditions[one.condition], one.repetition] = one
    summary = summarize(run)
    shown = [metric for metric in summary.metrics if metric.key in by_key]
    assert shown
    compared = 0
    for record in trials(run, summary):
        one = told.get((record.sample.position, record.condition, record.repetition))
        assert (one is not None and one.answer is not None) == (record.answer is not None)
        if one is None:
            assert record.failure is None
            continue
        assert (one.answer, one.failure, one.heard) == (record.answer, record.failure, record.heard)
        for metric in shown:
            at = by_key[metric.key].n - 1
            value = one.values[at] if at < len(one.values) else math.nan
            wanted = record.value(metric)
            assert value == wanted or (math.isnan(value) and wanted is None)
            compared += wanted is not None
    assert compared


def test_a_conversation_has_the_numbers_of_its_turns(tmp_path):
    turns = [{"golden": "5", "program": "add(2, 3)"}, {"golden": "7"}]
    said = [Reply(text='{"answer": "5", "program": "add(2, 3)"}'), Reply(text='{"answer": "8"}')]
    run = conversations(tmp_path / "run", [asked("c1", 0, turns)], {"look-up": [[said]]})
    with opened(run, tmp_path).page() as page:
        [one] = page.texts.trials(1)[0]
        column = next(column for column in page.columns if column.key == "numerical")
        assert (column.kind, one.values[column.n - 1]) == ("share", 0.5)
        assert [score.turn for score in one.scores] == [0, 1]
        [(label,)] = page.base.execute("SELECT value FROM labels WHERE name = 'diagnosis'").fetchall()
        found = listed(page.base, Filter(label=f"diagnosis={label}"), page.columns)
        assert [row.id for row in found] == ["c1"]
        assert listed(page.base, Filter(label="diagnosis=none-such"), page.columns) == []


@given(cuts=st.lists(st.integers(0, 100_000), max_size=8))
@settings(max_examples=25, deadline=None)
def test_an_index_that_follows_a_run_is_the_same_as_one_made_at_its_end(tmp_path_factory, cuts):
    folder = tmp_path_factory.mktemp("following")
    run = eventful(folder / "run").end(command="score")
    wanted = content(made(run, folder))
    whole = run.journal.read_bytes()
    following = Index(run, elsewhere=folder / "b")
    following.path = folder / "following.sqlite"
    for cut in sorted(cut % len(whole) for cut in cuts):
        run.journal.write_bytes(whole[:cut])
        following.catch_up()
        progress = following.progress()
        assert progress.finished
        assert progress.lines == whole[:cut].count(b"\n")
    run.journal.write_bytes(whole)
    following.catch_up()
    assert content(following) == wanted


def test_a_torn_line_is_left_alone_until_it_is_whole(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    whole = run.journal.read_bytes()
    at = whole.rindex(b'{"event":"score"') + 20
    run.journal.write_bytes(whole[:at])
    index = made(run, tmp_path)
    assert index.progress().finished
    assert index.progress().damaged == 0
    assert not index.catch_up()
    run.journal.write_bytes(whole[: at + 5])
    assert not index.catch_up()
    run.journal.write_bytes(whole)
    assert not index.progress().finished
    assert index.catch_up()
    assert content(index) == content(made(table(tmp_path / "other", {"baseline": [[3.0], [4.0]]}), tmp_path))


def test_a_run_that_was_killed_stands(tmp_path):
    script = Script(tmp_path / "run", samples=2)
    script.scored(0, "baseline", value=3)
    script.answer(0, "with-docs")
    with opened(script.stop(), tmp_path).page() as page:
        rows = listed(page.base, Filter(), page.columns)
        assert [[(cell.condition, cell.mean, cell.answers) for cell in row.cells] for row in rows] == [
            [(0, 3.0, 1), (1, None, 1)],
            [],
        ]


def test_a_run_without_a_journal_stands(tmp_path):
    run = Script(tmp_path / "run").stop()
    run.journal.unlink()
    with opened(run, tmp_path).page() as page:
        assert len(listed(page.base, Filter(), page.columns)) == 2


@pytest.mark.parametrize("change", ["other", "shorter", "version", "trigger", "garbage", "table", "empty"])
def test_an_index_that_does_not_fit_is_made_anew(tmp_path, change):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    index = made(run, tmp_path)
    whole = run.journal.read_bytes()
    if change == "other":
        run.journal.write_bytes(resealed(whole.replace(b"Answer 1", b"Reply  1")))
    elif change == "shorter":
        run.journal.write_bytes(whole[: whole.rindex(b'{"event":"end"')])
    elif change == "garbage":
        index.path.write_bytes(b"x" * 5000)
    elif change == "empty":
        index.path.write_bytes(b"")
    else:
        statement = {
            "version": "UPDATE meta SET value = '99' WHERE name = 'format'",
            "trigger": "CREATE TRIGGER bad AFTER INSERT ON attempts BEGIN DELETE FROM samples; END",
            "table": "DROP TABLE cells",
        }[change]
        base = sqlite3.connect(index.path)
        base.executescript(statement)
        base.close()
    assert not index.progress().finished
    again = made(RunFolder.open(run.path), tmp_path)
    assert again.progress().finished
    fresh = Index(run, elsewhere=tmp_path)
    fresh.path = tmp_path / "fresh.sqlite"
    fresh.catch_up()
    assert content(again) == content(fresh)
    assert again.path == index.path
    with again.reading() as base:
        assert base.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)


def test_an_index_with_places_that_are_wrong_is_made_anew(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    first = opened(run, tmp_path)
    with first.page():
        pass
    base = sqlite3.connect(first.index.path)
    base.executescript("UPDATE trials SET answer_at = answer_at + 1; UPDATE samples SET length = 'x'")
    base.close()
    with pytest.raises(Exception, match="index") as caught, first.page() as page:
        page.texts.trials(1)
    assert type(caught.value).__name__ == "NotYet"
    with first.page() as page:
        assert page.texts.sample(place_of(page.base, 1)).id == "0"
        assert len(page.texts.trials(1)[0]) == 1


@pytest.mark.parametrize("where", ["folder", "file", "plain file"])
def test_a_folder_that_leads_elsewhere_is_not_written_to(tmp_path, where):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    target = tmp_path / "target"
    target.mkdir()
    if where == "folder":
        (run.path / "cache").symlink_to(target)
    elif where == "file":
        (run.path / "cache").mkdir()
        (target / "precious").write_text("precious")
        (run.path / "cache" / f"index-{FORMAT_VERSION}.sqlite").symlink_to(target / "precious")
    else:
        (run.path / "cache").write_text("not a folder")
    before = sorted(path.name for path in target.iterdir())
    (tmp_path / "elsewhere").mkdir()
    index = made(run, tmp_path / "elsewhere")
    assert index.note is not None
    assert index.path.parent == tmp_path / "elsewhere"
    assert index.progress().finished
    assert sorted(path.name for path in target.iterdir()) == before
    assert where != "file" or (target / "precious").read_text() == "precious"


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
    index = made(run, tmp_path)
    progress = index.progress()
    assert progress.finished
    assert progress.damaged >= 4
    with opened(run, tmp_path).page() as page:
        assert len(listed(page.base, Filter(sort="gap"), page.columns)) == 2
        assert page.base.execute("SELECT count(*) FROM metrics").fetchone()[0] <= 64
        assert page.texts.trials(1)[1] == 2


def test_a_line_that_only_the_index_can_read_is_told_and_does_not_make_it_anew(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("baseline",))
    script.scored(1, "baseline", value=3)
    run = script.stop()
    place = script.place(0, "baseline", 0)
    with run.journal.open("ab") as file:
        line = {"event": "answer", **place, "replies": [{"text": "x"}], "seconds": 1}  # without `started`
        file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    with opened(run, tmp_path).page() as page:
        [one] = page.texts.trials(1)[0]
        assert (one.answer, one.damaged) == (None, True)
        [other] = page.texts.trials(2)[0]
        assert other.answer is not None


def test_a_page_reads_only_so_much_of_the_journal(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",), repetitions=4)
    for repetition in range(4):
        script.answer(0, "baseline", repetition, reply=Reply(text="x" * 20_000_000))
    with opened(script.stop(), tmp_path).page() as page:
        found, total = page.texts.trials(1)
        assert (len(found), total) == (2, 4)


def test_a_line_too_long_to_be_one_of_ours_is_passed_over(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    whole = run.journal.read_bytes()
    with run.journal.open("ab") as file:
        file.truncate(len(whole) + index_module.LONGEST_LINE + 10)
        file.seek(0, 2)
        file.write(b'\n{"event":"end","at":"","reason":"done","seconds":1}\n')
    index = made(run, tmp_path)
    progress = index.progress()
    assert (progress.finished, progress.damaged, progress.lines) == (True, 1, whole.count(b"\n") + 2)


def test_two_processes_may_follow_one_run(tmp_path):
    run = eventful(tmp_path / "run").end(command="score")
    whole = run.journal.read_bytes()
    indexes = [Index(run, elsewhere=tmp_path), Index(run, elsewhere=tmp_path)]
    for cut in range(0, len(whole) + 700, 700):
        run.journal.write_bytes(whole[:cut])
        threads = [threading.Thread(target=index.catch_up) for index in indexes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fresh = Index(run, elsewhere=tmp_path)
    fresh.path = tmp_path / "fresh.sqlite"
    fresh.catch_up()
    assert content(indexes[0]) == content(fresh)


def test_samples_that_a_resume_brings_are_known(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",))
    script.scored(0, "baseline", value=3)
    run = script.stop()
    index = made(run, tmp_path)
    lines = (run.path / "samples.jsonl").read_bytes() + msgspec.json.encode(sample(1)) + b"\n"
    (run.path / "samples.jsonl").write_bytes(lines)
    more = Script(tmp_path / "more", samples=2, conditions=("baseline",))
    more.scored(1, "baseline", value=5)
    more.stop()
    with run.journal.open("ab") as file:
        file.write(b"".join((more.path / "journal.jsonl").read_bytes().splitlines(keepends=True)[1:]))
    index.catch_up()
    with opened(run, tmp_path).page() as page:
        rows = listed(page.base, Filter(), page.columns)
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
    with opened(run, tmp_path).page() as page:
        found = [row.id for row in listed(page.base, wanted, page.columns)]
        if wanted.sort == "gap":  # one that has no gap comes last, and equal ones in any order
            found.sort(key=lambda one: ids.index(one) if one in ids else 99)
        assert found == ids
        assert count(page.base, wanted, page.columns) == len(ids)
        order = [neighbour(page.base, wanted, page.columns, at) for at in range(-1, len(ids) + 1)]
        assert (order[0], order[-1]) == (None, None)
        assert len(set(order[1:-1])) == len(ids)


def test_a_metric_of_which_less_is_better_is_sorted_the_other_way(tmp_path):
    metric = Metric(name="errors", low=0, direction="lower")
    run = table(tmp_path / "run", {"baseline": [[1.0], [7.0], [3.0]]}, metric=metric)
    with opened(run, tmp_path).page() as page:
        assert [row.id for row in listed(page.base, Filter(sort="worst"), page.columns)] == ["1", "2", "0"]
        assert [row.id for row in listed(page.base, Filter(sort="best"), page.columns)] == ["0", "2", "1"]


def test_the_newest_scoring_is_shown(tmp_path):
    script = Script(tmp_path / "run", samples=1, conditions=("baseline",))
    script.scored(0, "baseline", value=2)
    newer = msgspec.structs.replace(JUDGE, scoring="ee" * 16)
    script.resume(newer)
    script.score(0, "baseline", value=4, scorer=newer)
    with opened(script.end(command="score"), tmp_path).page() as page:
        assert [column.scoring for column in page.columns] == ["ee" * 16]
        assert [row.cells[0].mean for row in listed(page.base, Filter(), page.columns)] == [4.0]
        [one] = page.texts.trials(1)[0]
        assert [score.scoring for score in one.scores] == ["ee" * 16]


def test_packed_numbers_of_any_length_are_read():
    assert unpacked(b"\0" * 19) == [0.0, 0.0]
    assert unpacked(None) == []


def test_a_run_over_nothing_has_no_labels(tmp_path):
    run = Script(tmp_path / "run", samples=[], scorers=(NUMERIC,)).end()
    found = opened(run, tmp_path)
    assert found.labels() == Labels(newest={})
    with found.page() as page:
        assert (page.columns, listed(page.base, Filter(sort="gap"), page.columns)) == ((), [])


@pytest.mark.parametrize(
    "wanted",
    [Filter(label="choice=refused"), Filter(label="=refused"), Filter(study="s"), Filter(study="s", arm="a"),
     Filter(label="=refused", condition="b", study="s", arm="a")],
)  # fmt: skip
def test_filters_of_labels_and_arms_jump_to_their_rows(tmp_path, wanted):
    script = Script(tmp_path / "run", samples=1, conditions=("b",))
    script.answer(0, "b")
    script.score(0, "b", values={"completeness": 3}, labels={"choice": "refused"})
    page = opened(script.end(), tmp_path)
    page.index.catch_up()
    with page.page() as found:
        told: list[str] = []
        found.base.set_trace_callback(told.append)
        listed(found.base, wanted, found.columns)
        found.base.set_trace_callback(None)
        plan = [row[-1] for row in found.base.execute(f"EXPLAIN QUERY PLAN {told[0]}")]
    assert not [line for line in plan if line.startswith(("SCAN l", "SCAN arms"))], plan
