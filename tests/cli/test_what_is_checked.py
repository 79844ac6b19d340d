"""What `karat check`, `--lint` and `runs verify` print, from values that are made up."""

from __future__ import annotations

import pytest

from karat.cli.asking import AskedJudge
from karat.cli.checking import Checked, CheckedCondition, CheckedScorer, CheckedServer, can_show
from karat.cli.linting import Lint
from karat.cli.verifying import Checked as CheckedRuns
from karat.journal.verify import Damage, Verified
from karat.kinds import DatasetPart, Doubted
from karat.records import Sample, Turn


def condition(**fields):
    return str(CheckedCondition(**{"name": "docs", "servers": (), "gates": (), **fields}))


def scorer(**fields):
    return str(CheckedScorer(**{"name": "judge", "type": "judge", "offline": False, "metrics": (), **fields}))


def server(**fields):
    given = {"name": "docs", "type": "http", "scope": "run", "conditions": ("docs",), "tools": None, **fields}
    return str(CheckedServer(**given))


def test_a_condition_is_one_line():
    assert condition() == "docs"
    assert (
        condition(servers=("a", "b"), gates=("max_turns 3", "max_tools 2"))
        == "docs with a, b (max_turns 3, max_tools 2)"
    )
    assert (
        condition(preset="v1", context=("skills: grep", "tools: cat")) == "docs (preset v1); skills: grep; tools: cat"
    )


def test_a_scorer_is_one_line():
    assert scorer() == "judge"
    assert scorer(name="mine", offline=True) == "mine: judge (offline)"
    assert scorer(metrics=("judge",)) == "judge"
    assert (
        scorer(metrics=("tone", "judge"), models=("m of x", "n of y")) == "judge: tone, judge; asks m of x and n of y"
    )


def test_a_server_is_one_line():
    assert server() == "docs (http, scope run): not started"
    assert server(fault="gone", tools=("find",)) == "docs (http, scope run): does not work"
    assert server(tools=()) == "docs (http, scope run): no tools"
    assert server(tools=("find",), protocol="2025-06-18") == "docs (http, scope run, protocol 2025-06-18): 1 tool: find"
    twenty = tuple(f"t{at}" for at in range(20))
    assert server(tools=twenty).endswith(": 20 tools: " + ", ".join(twenty))
    assert server(tools=(*twenty, "more")).endswith("t18, t19, …")


CHECKED = Checked(
    file="experiment.yaml", name="support", ready=True, samples=3, conditions=(), repetitions=2, agent="floor",
    agent_calls=12, judge_calls=0, dataset="q.jsonl", dataset_kind="golden", sha256="0123456789abcdef", scorers=(),
    servers=(), max_concurrent=4, timeout_seconds=60.0, max_attempts=1, stops_after_failures=5, budget_usd=None,
    budget_tokens=None, results="results/support", problems=(), warnings=(),
)  # fmt: skip


def checked(**fields):
    from msgspec.structs import replace

    return str(replace(CHECKED, **fields)).split("\n")


def test_an_experiment_is_one_screen():
    assert checked() == [
        "support: 3 samples × 0 conditions × 2 repetitions = 12 agent calls",
        "",
        "dataset      golden, q.jsonl (sha256 0123456789ab)",
        "agent        floor",
        "scored by    nothing: answers are saved but not scored",
        "MCP servers  none",
        "running      4 at a time, 1 min 00 s for an answer, up to 1 attempt, stops after 5 failed trials",
        "results      results/support/",
        "",
    ]


def test_what_is_set_is_shown():
    one, two = (
        CheckedCondition(name="a", servers=(), gates=()),
        CheckedCondition(name="b", servers=(), gates=()),
    )
    lines = checked(
        conditions=(one, two), judge_calls=1, budget_usd=1.5, budget_tokens=1, may_stop="may stop",
        rates=("m: 3 a minute",), can_show="differences", taken=("query(x)",),
        asked=(AskedJudge(judge="j", sample="q", fault="x"),),
    )  # fmt: skip
    assert lines[0] == "support: 3 samples × 2 conditions × 2 repetitions = 12 agent calls, 1 judge call"
    for line in (
        "conditions   a", "             b", "agent        floor", "             asked query(x)",
        "asked        j: failed", "             may stop", "             m: 3 a minute", "will detect  differences",
    ):  # fmt: skip
        assert line in lines
    assert any(line.endswith("stops after 5 failed trials, at most $1.50, at most 1 token") for line in lines)


def test_a_dataset_of_parts_is_counted_by_what_they_have():
    parts = (DatasetPart(name="s1", counts={"trial": 2, "person": 1}), DatasetPart(name="s2", counts={"trial": 3}))
    assert checked(parts=parts[:1])[0].startswith("support: 2 trials, 1 person × ")
    lines = checked(parts=parts)
    assert ", 5 trials, 1 person × " in lines[0]
    assert lines[3:5] == ["             2 trials, 1 person, s1", "             3 trials, s2"]


def linted(*doubted, **fields):
    given = {"file": "q.jsonl", "kind": "golden", "sha256": "", "samples": 2, "turns": 2, "reasons": {}, "meanings": {}}
    return str(Lint(**{**given, "faults": (), **fields}, doubted=doubted))


def doubt(name="q1", turn=None, **evidence):
    return Doubted(id=name, turn=turn, reasons=tuple(evidence), evidence=evidence)


def test_doubtful_answers_are_a_table():
    assert linted() == "q.jsonl: 2 samples; nothing contradicts itself\n"
    assert linted(faults=("line 1",)) == "q.jsonl: 2 samples could be checked; a run would refuse the file\n"
    operands = [{"operand": 5}, {"operand": 7, "value": 7.5, "row": "Sales", "column": "2020"}]
    found = linted(
        doubt("q1", odd={"share": 0.5, "alone": None}),
        doubt("q2", turn=3, wrong={"operands": operands}, odd="no mapping"),
        reasons={"odd": 2, "wrong": 1},
        meanings={"odd": "looks odd"},
    )
    assert found.split("\n") == [
        "q.jsonl: 2 samples; 2 samples doubtful",
        "",
        "  odd    2  looks odd",
        "  wrong  1",
        "",
        "  q1         odd    share 0.5, alone",
        "  q2 turn 3  wrong  5; 7, but 7.5 in 'Sales', '2020'",
        "  q2 turn 3  odd",
        "",
    ]


@pytest.mark.parametrize(("many", "more"), [(50, 0), (51, 1)])
def test_many_doubtful_answers_are_cut(many, more):
    lines = linted(*(doubt(str(at), odd={"a": 1}) for at in range(many)), reasons={"odd": many}).split("\n")
    assert sum("odd    a 1" in line or "odd  a 1" in line for line in lines) == 50
    assert ("  … and 1 more; --json or --quarantine FILE has all" in lines) is bool(more)


def test_verified_runs_are_listed_with_what_is_damaged():
    whole = Verified(folder="runs/a", run="a", lines=1, unprotected=0, damages=())
    damage = Damage(file="journal.jsonl", line=3, reason="is cut", remedy="delete it")
    lost = Damage(file="run.json", line=None, reason="is gone", remedy="restore it")
    bad = Verified(folder="runs/b", run="b", lines=5, unprotected=2, damages=(damage, lost), notes=("a note",))
    lines = str(CheckedRuns(ok=False, runs=(whole, bad))).split("\n")
    assert lines[0] == "runs/a: ok, 1 line"
    assert lines[1:6] == [
        "runs/b: 2 faults in 5 lines",
        "  journal.jsonl, line 3: is cut",
        "    delete it",
        "  run.json: is gone",
        "    restore it",
    ]
    assert lines[-2:] == ["  a note", "  2 lines from an older karat without a checksum could only be parsed"]
    assert any(line.startswith("  to delete the damaged lines") for line in lines) is (bad.deletion is not None)


SAME = "j gave a right and a wrong answer to 'q' the same scores (tone 5): use another model, or look at its rubric"


@pytest.mark.parametrize(
    ("fields", "line", "doubt"),
    [
        ({"fault": "no key"}, "j: failed", None),
        (
            {"right": {"tone": 5, "ok": True}, "wrong": {"tone": 1.5, "ok": None}, "dollars": 0.01},
            "j: right answer tone 5, ok 1; wrong answer tone 1.5, ok – ($0.01)",
            None,
        ),
        (
            {"right": {"tone": 5}, "wrong": {"tone": 5}},
            "j: right answer tone 5; wrong answer tone 5 (unknown cost)",
            SAME,
        ),
    ],
)
def test_what_a_judge_gave_is_one_line(fields, line, doubt):
    asked = AskedJudge(judge="j", sample="q", **fields)
    assert (str(asked), asked.doubt) == (line, doubt)


POINTS = "after a run, in points: karat plan RUN"
HOLM = "with 80 % power (Holm, 3 comparisons)"


@pytest.mark.parametrize(
    ("questions", "conditions", "clusters", "line"),
    [
        (0, 2, None, "no difference between conditions: ask at least 6 questions for 1 comparison"),
        (1, 2, None, "no difference between conditions: ask at least 6 questions for 1 comparison"),
        # 2^(1 − n) is below 0.05 from n = 6 on
        (2, 2, None, "no difference between conditions: ask at least 6 questions for 1 comparison"),
        (50, 1, None, None),
        # 2.80 standard errors for 5 %, 3.24 for a third of it, and a little more by t
        (50, 2, None, f"differences of at least 0.40 SD over questions, with 80 % power; {POINTS}"),
        (
            50,
            3,
            None,
            f"differences of at least 0.47 SD over questions, {HOLM}; {POINTS}",
        ),
        # fewer than 11 clusters need p < 0.01
        (50, 2, 10, f"differences of at least 1.33 SD over clusters, with 80 % power; {POINTS}"),
        (55, 2, 11, f"differences of at least 0.94 SD over clusters, with 80 % power; {POINTS}"),
    ],
)
def test_what_an_experiment_can_show(questions, conditions, clusters, line):
    samples = [
        Sample(
            id=str(at), position=at, digest="", turns=(Turn(question="?"),),
            cluster=None if clusters is None else str(at % clusters),
        )
        for at in range(questions)
    ]  # fmt: skip
    assert can_show(samples, conditions, "golden") == line
