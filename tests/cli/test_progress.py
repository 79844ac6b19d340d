"""Where a run stands, in words: for terminals of every size, and in one line for logs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from karat import formats
from karat.cli.progress import ConditionCounts, LastFailure, Progress, RunningMean
from karat.cli.progress_lines import bar, block, log_line

NOTHING = Progress(
    seconds=0.0,
    planned=0,
    done=0,
    failed=0,
    in_flight=0,
    most_in_flight=4,
    scoring=0,
    retries=0,
    dollars=0.0,
    dollars_unknown=False,
    dollars_in_all=None,
    tokens=0,
    tokens_unknown=False,
    tokens_in_all=None,
    per_second=None,
    seconds_left=None,
    slowed={},
    finishing=None,
    continued=False,
    metric=None,
    metric_kind=None,
    unit="question",
    noun="question",
    conditions={},
    last_failure=None,
)
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp\u2066\x9b31m\r\n\t\x00x\ud800"


def standing(**counts: Any) -> Progress:
    return msgspec.structs.replace(NOTHING, **counts)


def condition(**counts: Any) -> ConditionCounts:
    made: dict[str, Any] = {"planned": 225, "done": 0, "failed": 0, "in_flight": 0, "mean": None}
    return ConditionCounts(**made | counts)


def mean(value: float, low: float | None, high: float | None, n: int = 53) -> RunningMean:
    return RunningMean(value=value, low=low, high=high, level=0.95, n=n)


RUNNING = standing(
    seconds=303.2,
    planned=450,
    done=206,
    failed=6,
    in_flight=20,
    most_in_flight=20,
    scoring=3,
    retries=11,
    dollars=1.234,
    dollars_in_all=2.614,
    tokens=1_234_567,
    tokens_in_all=2_614_321.0,
    per_second=2.1,
    seconds_left=113.3,
    slowed={"openai": 10},
    metric="completeness",
    metric_kind="ordinal",
    conditions={
        "baseline": condition(done=104, failed=2, in_flight=9, mean=mean(4.21, 3.9, 4.52)),
        "with-docs": condition(done=102, failed=4, in_flight=11, mean=mean(4.61, 4.4, 4.8)),
    },
    last_failure=LastFailure(
        seconds_ago=12.3,
        stage="agent",
        cls="infrastructure",
        kind="rate_limit",
        message="429 Too Many Requests, slow down",
    ),
)


def test_eighty_columns_show_everything():
    assert block(RUNNING, columns=79, rows=23) == [
        "━━━━━━━━━─────────── 212/450 · 1 min 53 s left · 2.1/s",
        "in flight 20 of 20 · being scored 3 · failed 6 · retries 11",
        "$1.23 of about $2.60 · 1,234,567 of about 2,600,000 tokens",
        "              done  failed  in flight  completeness so far",
        "baseline   104/225       2          9  4.21 [3.90, 4.52] over 53 questions",
        "with-docs  102/225       4         11  4.61 [4.40, 4.80] over 53 questions",
        "openai at most 10 at a time: it refused more",
        "last failure 12.0 s ago: rate_limit: 429 Too Many Requests, slow down",
    ]


def test_forty_columns_leave_out_what_of_a_condition_failed_and_is_in_flight():
    assert block(RUNNING, columns=39, rows=23) == [
        "━━━━────── 212/450 · 1 min 53 s left",
        "in flight 20 of 20 · being scored 3",
        "failed 6 · retries 11",
        "$1.23 of about $2.60",
        "1,234,567 of about 2,600,000 tokens",
        "              done  completeness so far",
        "baseline   104/225  4.21 [3.90, 4.52]",
        "with-docs  102/225  4.61 [4.40, 4.80]",
        "openai at most 10 at a time: it refuse…",
        "last failure 12.0 s ago: rate_limit: 4…",
    ]


def test_a_log_line_can_be_read_alone():
    assert log_line(RUNNING) == (
        "after 5 min 03 s: 212/450 · in flight 20 of 20 · being scored 3 · failed 6 · retries 11 · 1 min 53 s left"
        " · 2.1/s · $1.23 of about $2.60 · 1,234,567 of about 2,600,000 tokens · openai at most 10 at a time"
        " · completeness so far: baseline 4.21 [3.90, 4.52], with-docs 4.61 [4.40, 4.80]"
        " · last failure 12.0 s ago: rate_limit: 429 Too Many Requests, slow down"
    )


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "preparing"),
        ({"planned": 12, "in_flight": 4}, "after 0 ms: 0/12 · in flight 4 of 4"),
        ({"planned": 1200, "done": 2, "retries": 1}, "after 0 ms: 2/1,200 · in flight 0 of 4 · retries 1 · $0.00"),
        ({"planned": 9, "done": 1, "dollars": 0.5, "dollars_unknown": True, "most_in_flight": 0},
         "after 0 ms: 1/9 · ≥ $0.50"),
        ({"planned": 9, "done": 1, "dollars_unknown": True, "most_in_flight": 0}, "after 0 ms: 1/9 · cost –"),
        ({"planned": 9, "tokens": 1000, "tokens_unknown": True, "tokens_in_all": 900.0, "most_in_flight": 0},
         "after 0 ms: 0/9 · ≥ 1,000 tokens"),
        ({"planned": 9, "finishing": "interrupted", "seconds_left": 3.0, "per_second": 1.0, "most_in_flight": 0},
         "after 0 ms: 0/9 · finishing"),
        ({"planned": 9, "seconds_left": 0.3, "per_second": 9.0, "most_in_flight": 0},
         "after 0 ms: 0/9 · 1.0 s left · 9.0/s"),
        ({"planned": 9, "seconds_left": 7200.0, "per_second": 0.02, "most_in_flight": 0},
         "after 0 ms: 0/9 · 2 h 00 min left · 1.2/min"),
    ],
)  # fmt: skip
def test_the_line_says_what_is_known_and_no_more(counts, line):
    assert log_line(standing(**counts)) == line


def test_rates_of_conversations_are_percentages_and_a_part_says_that_it_is_one():
    rate = standing(
        planned=9,
        most_in_flight=0,
        metric="numerical",
        metric_kind="share",
        unit="turn",
        noun="conversation",
        continued=True,
        conditions={"only": condition(mean=mean(0.719, 0.6, 1.0, 1))},
    )
    assert log_line(rate).endswith("numerical so far, this part: only 71.9 % [60.0 %, 100.0 %]")
    assert block(rate, columns=79, rows=9)[-1] == "only  0/225       0  71.9 % [60.0 %, 100.0 %] over 1 conversation"


def many(count: int, name: str = "condition {}") -> Progress:
    conditions = {
        name.format(n): condition(done=n, failed=n % 3, in_flight=n % 2, mean=mean(4.0, 3.0, 5.0)) for n in range(count)
    }
    return msgspec.structs.replace(RUNNING, conditions=conditions)


@pytest.mark.parametrize("columns", [1, 2, 8, 20, 39, 63, 64, 79, 200])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5, 8, 23, 60])
@pytest.mark.parametrize(
    "now",
    [NOTHING, RUNNING, many(1), many(40), many(3, "漢字の名前がとても長い条件 {}"), many(30, HOSTILE + " {}")],
    ids=["nothing", "two", "one", "forty", "wide letters", "hostile"],
)
def test_no_terminal_is_too_small(now, columns, rows):
    lines = block(now, columns=columns, rows=rows)
    assert len(lines) <= rows
    assert [line for line in lines if formats.width(line) > columns] == []
    assert bool(lines) == (rows > 0)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (23, "24 more conditions: done 660 · failed 24 · in flight 12"),
        (8, "39 more conditions: done 780 · failed 39 · in flight 20"),
        (7, "40 conditions: done 780 · failed 39 · in flight 20"),
    ],
)
def test_the_conditions_without_room_are_one_line(rows, told):
    lines = block(many(40), columns=79, rows=rows)
    assert told in lines
    assert len(lines) <= rows


def test_what_is_foreign_moves_no_cursor():
    now = msgspec.structs.replace(
        RUNNING,
        metric=HOSTILE,
        slowed={HOSTILE: 3},
        conditions={HOSTILE: condition(mean=mean(1.0, None, None))},
        last_failure=LastFailure(seconds_ago=0.1, stage="agent", cls="agent", kind=HOSTILE, message=HOSTILE * 50),
    )
    shown = [log_line(now), *block(now, columns=79, rows=23), *block(now, columns=39, rows=23)]
    assert [line for line in shown if line != formats.clean(line) or "\n" in line or "\t" in line] == []


@pytest.mark.parametrize(("share", "full"), [(0.0, 0), (0.26, 5), (0.9999, 19), (1.0, 20), (1.5, 20)])
def test_the_bar_is_full_only_at_the_end(share, full):
    assert bar(share) == "━" * full + "─" * (20 - full)


def test_a_share_is_whole_only_when_every_answer_is_right():
    found = {"conditions": {"baseline": condition(done=400, mean=mean(0.9975, 0.986, 0.9996))}}
    now = standing(planned=900, done=400, metric="right", metric_kind="share", **found)
    assert (
        block(now, columns=80, rows=24)[-1]
        == "baseline  400/225       0          0  99.8 % [98.6 %, >99.9 %] over 53 questions"
    )


def test_conditions_that_are_called_alike_are_told_apart():
    name = "a-model-with-a-very-long-name-indeed-v{}"
    now = standing(planned=900, done=4, conditions={name.format(at): condition() for at in range(3)})
    for columns in (80, 40):
        shown = [line.split()[0] for line in block(now, columns=columns, rows=24) if line.startswith("a-model")]
        assert len(set(shown)) == 3


def test_the_last_failure_stays_where_there_is_no_room_for_conditions():
    lines = block(RUNNING, columns=79, rows=3)
    assert [line.split()[0] for line in lines] == ["━━━━━━━━━───────────", "in", "last"]
    assert [line.split()[0] for line in block(RUNNING, columns=79, rows=4)][2:] == ["$1.23", "last"]
