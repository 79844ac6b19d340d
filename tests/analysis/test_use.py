"""How many answers used what their condition offers, how they score, and which expected tools were called."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from karat.analysis import summarize
from karat.analysis.grids import Grid, TurnSums
from karat.analysis.model import MetricInfo
from karat.analysis.use import score_by_use
from karat.journal import ScorerInfo
from karat.records import Criterion, Metric, Reply, ToolCall
from karat.stats import share_interval
from karat.tool_use import Offered

RIGHT = ScorerInfo(
    name="equals", type="equals", scoring="2b" * 16, metrics=(Metric(name="equals", kind="share"),), offline=True
)
TOOLS = ScorerInfo(
    name="path",
    type="trajectory",
    scoring="3c" * 16,
    metrics=(Metric(name="path", kind="share"),),
    offline=True,
    options={"columns": {"used": "tools"}},
)


def call(name: str, *, error: str | None = None, **given) -> ToolCall:
    *server, tool = name.split(".")
    return ToolCall(tool=tool, server=server[0] if server else None, input=given, error=error)


def reply(*calls: ToolCall) -> Reply:
    return Reply(text="Yes.", tool_calls=calls, dollars=0.0)


FAILED, LOOKED = call("docs.look", error="no index"), call("docs.look")
USES = {  # question → repetitions → calls
    0: [(LOOKED,), (LOOKED, FAILED)],
    1: [(LOOKED,), ()],
    2: [(), (FAILED,)],
    3: [(), (call("other.look"), call("look"))],
}
SCORES = {0: [5, 3], 1: [4, 2], 2: [2, 1], 3: [3, 3]}


def answers(script, condition, uses=USES, scores=SCORES):
    for row, repetitions in uses.items():
        for repetition, calls in enumerate(repetitions):
            script.answer(row, condition, repetition, reply=reply(*calls))
            script.score(row, condition, repetition, value=scores[row][repetition])


@pytest.fixture
def summary(tmp_path, journals):
    """Two conditions, of which the second offers two servers; its last question has no second answer that counts."""
    script = journals.Script(
        tmp_path / "run", samples=4, repetitions=2, condition_servers={"with-docs": ("docs", "spare")}
    )
    answers(script, "baseline", {row: [(), ()] for row in USES})
    answers(script, "with-docs")
    return summarize(script.end())


def test_use_and_scores_by_use_are_those_counted_by_hand(summary):
    docs, spare = summary.contexts
    assert (docs.condition, docs.kind, docs.name) == ("with-docs", "server", "docs")
    assert (docs.answers, docs.used, docs.only_failed) == (8, 3, 1)
    assert docs.share.value == 3 / 8
    assert (spare.name, spare.used, spare.only_failed, spare.share.value) == ("spare", 0, 0, 0.0)
    (by,) = docs.scores
    assert (by.metric, by.answers_used, by.answers_not_used) == ("completeness", 3, 5)
    assert (by.used.value, by.used.n) == ((5 + 3 + 4) / 3, 2)
    assert (by.not_used.value, by.not_used.n) == ((2 + 2 + 1 + 3 + 3) / 5, 3)


def test_the_interval_of_a_balanced_share_is_that_of_all_shares(summary):
    used = [1, 1, 1, 0, 0, 0, 0, 0]
    known = share_interval(used, [0, 0, 1, 1, 2, 2, 3, 3])
    found = summary.contexts[0].share
    assert (found.value, found.low, found.high) == pytest.approx((known.value, known.low, known.high), rel=1e-12)


def test_the_interval_of_a_mean_by_use_is_that_of_leaving_out_each_question(summary):
    by = summary.contexts[0].scores[0].not_used
    groups = [[2], [2, 1], [3, 3]]  # questions 1, 2, 3
    mean = np.mean(np.concatenate(groups))
    left_out = [np.mean(np.concatenate([*groups[:at], *groups[at + 1 :]])) for at in range(3)]
    se = math.sqrt(2 / 3 * sum((value - mean) ** 2 for value in left_out))
    assert by.se == pytest.approx(se, rel=1e-12)
    reach = 4.302652729911275 * se  # t, 97.5 %, 2 degrees of freedom
    assert (by.low, by.high) == pytest.approx((max(1, mean - reach), mean + reach), rel=1e-9)


def test_what_was_never_used_is_said_first(summary):
    assert summary.warnings[0] == (
        "with-docs: never used its MCP server 'spare' in 8 answers, so its scores show the effect of offering it, "
        "not of using it"
    )


def test_what_was_called_in_vain_is_said_first(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=4, condition_servers={"with-docs": ("docs", "spare")})
    for row in range(4):
        calls = [call("spare.look"), *([FAILED] if row else [])]
        script.answer(row, "with-docs", reply=reply(*calls, call("spare.look"), call("spare.look")))
    summary = summarize(script.end())
    assert summary.warnings[0] == (
        "with-docs: called its MCP server 'docs' in 3 of 4 answers, and every call failed, so its scores show the "
        "effect of offering it, not of using it"
    )


def test_without_a_reported_call_use_is_not_known_unless_the_agent_reports_all(tmp_path, journals):
    def made(name, calls, **info):
        script = journals.Script(tmp_path / name, condition_servers={"with-docs": ("docs",)}, **info)
        script.scored(0, "baseline", value=2)
        script.answer(0, "with-docs", reply=reply(*calls))
        script.score(0, "with-docs", value=2)
        (use,) = summarize(script.end()).contexts
        return use

    silent = made("silent", ())
    assert (silent.used, silent.only_failed, silent.share.value, silent.share.low) == (None, None, None, None)
    assert silent.scores == ()
    assert "no answer reports a call" in silent.share.reason
    without_servers = made("without-servers", (call("look"),))
    assert without_servers.used is None, "an agent that does not say which server a tool is of"
    assert made("reports", (), reports_tool_calls=True).used == 0
    assert made("another-server", (call("other.look"),)).used == 0


def test_trials_without_an_answer_and_later_answers_do_not_count(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3, condition_servers={"with-docs": ("docs", "gone")})
    script.answer(0, "with-docs", reply=reply(LOOKED))
    script.answer(0, "with-docs", reply=reply(call("gone.look")))
    script.attempt(1, "with-docs", replies=(reply(LOOKED),))
    script.failure(1, "with-docs")
    docs, gone = summarize(script.end()).contexts
    assert (docs.answers, docs.used, docs.share.value, docs.share.n) == (1, 1, 1.0, 1)
    assert docs.scores[0].used.value is None, "not scored"
    assert gone.used == 0


def test_skills_and_plugins_are_used_when_they_are_loaded_or_called(tmp_path, journals):
    offers = {"with-docs": (Offered("skill", "tables"), Offered("plugin", "house"))}
    script = journals.Script(tmp_path / "run", samples=4, condition_offers=offers)
    script.answer(0, "with-docs", reply=reply(call("Skill", skill="skills:tables")))
    script.answer(1, "with-docs", reply=reply(call("Skill", skill="house:style")))
    script.answer(2, "with-docs", reply=reply(call("plugin:house:docs.look")))
    script.answer(3, "with-docs", reply=reply(call("Read")))
    uses = summarize(script.end()).contexts
    assert [(use.kind, use.name, use.used) for use in uses] == [("skill", "tables", 1), ("plugin", "house", 2)]


@pytest.mark.needs_kind("conversation")
def test_runs_over_conversations_are_split_by_trial(tmp_path, journals):
    samples = [journals.asked(f"c{at}", at, [{"golden": "1"}, {"golden": "2"}]) for at in range(3)]
    said = {
        "docs": [
            [[Reply(text="1", tool_calls=(LOOKED,)), Reply(text="3")]],
            [[Reply(text="1"), Reply(text="2")]],
            [None],
        ]
    }
    run = journals.conversations(tmp_path / "run", samples, said, condition_servers={"docs": ("docs",)})
    (use,) = summarize(run).contexts
    assert (use.answers, use.used) == (2, 1)
    by = next(by for by in use.scores if by.metric == "numerical")
    assert (by.used.value, by.answers_used, by.not_used.value, by.answers_not_used) == (0.5, 1, 1.0, 1)


INFO = MetricInfo(
    key="m", name="m", scorer="s", scoring="", low=None, high=None, direction="higher", kind="number", offline=True
)
SHAPE = (5, 1, 3)


@given(
    values=arrays.arrays(np.float64, SHAPE, elements=st.floats(-100, 100) | st.just(math.nan)),
    used=arrays.arrays(np.bool_, SHAPE),
    answered=arrays.arrays(np.bool_, SHAPE),
    counts=arrays.arrays(np.float64, SHAPE, elements=st.integers(0, 4).map(float)),
    weights=arrays.arrays(np.float64, SHAPE[0], elements=st.integers(1, 3).map(float)),
    by_turn=st.booleans(),
)
def test_the_two_sides_together_give_the_mean_of_all(values, used, answered, counts, weights, by_turn):
    values = np.where(answered, values, math.nan)
    grid = Grid(INFO, values, (np.empty(0), np.empty(0, dtype=np.int64)), {})
    sizes, sums, weight = ~np.isnan(values) * 1.0, np.nan_to_num(values), np.ones(SHAPE[0])
    if by_turn:
        sizes, weight = np.where(sizes > 0, counts, 0.0), weights
        sums = sums * sizes
        turns = TurnSums(totals=sums, counts=sizes, squares=sums**2, weights=weight, planned=sizes)
        grid = Grid(INFO, values, (np.empty(0), np.empty(0, dtype=np.int64)), {}, turns=turns)
    there, chosen = answered[:, 0], used[:, 0]
    by = score_by_use(grid, 0, (there & chosen, there & ~chosen), level=0.95)
    assert by.answers_used + by.answers_not_used == int((sizes > 0).sum())
    total = 0.0
    for side, mean in ((there & chosen, by.used), (there & ~chosen, by.not_used)):
        size = float(weight @ np.where(side, sizes[:, 0], 0).sum(axis=1))
        assert (mean.value is None) == (size == 0)
        total += size * (mean.value or 0.0)
    assert total == pytest.approx(float(weight @ sums[:, 0].sum(axis=1)), abs=1e-6)


def path_run(folder, journals, expected, made, *, info=TOOLS, criteria=(), **more):
    """`made`: condition → question → repetitions → names of the tools that were called.

    `criteria`: question → its criteria.
    """
    first = next(iter(made.values()))
    samples = [
        msgspec.structs.replace(
            journals.sample(row),
            metadata={} if tools is None else {"tools": tools},
            criteria=tuple(criteria[row]) if criteria else (),
        )
        for row, tools in enumerate(expected)
    ]
    script = journals.Script(
        folder, samples=samples, conditions=tuple(made), repetitions=len(first[0]), scorers=(info,), **more
    )
    for condition, questions in made.items():
        for row, repetitions in enumerate(questions):
            for repetition, names in enumerate(repetitions):
                calls = [call(name.strip("!"), error="no" if "!" in name else None) for name in names]
                script.answer(row, condition, repetition, reply=reply(*calls))
                script.score(row, condition, repetition, value=True, scorer=info)
    return script.end()


EXPECTED = [["a"], ["b"], ["a", "c"], [], None]
CALLED = [
    [["a"], ["a", "a"]],
    [["a"], ["s.b"]],
    [["a", "b"], []],
    [[], ["c"]],
    [["a"], ["z"]],
]


def test_precision_recall_and_confusions_are_those_counted_by_hand(tmp_path, journals):
    summary = summarize(path_run(tmp_path / "run", journals, EXPECTED, {"x": CALLED}))
    found = {
        use.tool: (use.expected, use.called, use.matched, use.precision.value, use.recall.value)
        for use in summary.tools
    }
    assert found == {
        "a": (4, 4, 3, 3 / 4, 3 / 4),
        "b": (2, 2, 1, 1 / 2, 1 / 2),
        "c": (2, 1, 0, 0.0, 0.0),
    }
    assert [(use.scorer, use.condition) for use in summary.tools] == [("path", "x")] * 3
    pairs = [(pair.expected, pair.called, pair.answers) for pair in summary.confusions]
    assert pairs == [("a", None, 1), ("b", "a", 1), ("c", None, 1), ("c", "b", 1)]


def test_criteria_say_when_a_skill_should_be_loaded_and_nothing_of_other_tools(tmp_path, journals):
    loads, stays = Criterion(text="Skill", type="tool"), Criterion(text="Skill", type="not-tool")
    criteria = [[loads], [stays], [Criterion(text="Skill", type="tool", weight=-1.0)], [Criterion(text="Is kind.")]]
    made = {"x": [[["Skill", "Bash"], ["Bash"]], [["Skill"], []], [[], []], [["Skill"], ["Skill"]]]}
    info = msgspec.structs.replace(TOOLS, name="rules", type="criteria", options={})
    summary = summarize(path_run(tmp_path / "run", journals, [None] * 4, made, info=info, criteria=criteria))
    (use,) = summary.tools
    assert (use.scorer, use.tool, use.expected, use.called, use.matched) == ("rules", "Skill", 2, 2, 1)
    assert (use.precision.value, use.recall.value) == (0.5, 0.5)
    assert [(pair.expected, pair.called, pair.answers) for pair in summary.confusions] == [("Skill", None, 1)]


def test_calls_that_failed_count_unless_the_scorer_passes_over_them(tmp_path, journals):
    made = {"x": [[["a!"]], [["b!", "b"]]]}
    every = summarize(path_run(tmp_path / "every", journals, [["a"], ["b"]], made))
    assert {use.tool: use.matched for use in every.tools} == {"a": 1, "b": 1}
    info = msgspec.structs.replace(TOOLS, options={**TOOLS.options, "only_successful": True})
    successful = summarize(path_run(tmp_path / "successful", journals, [["a"], ["b"]], made, info=info))
    assert {use.tool: use.matched for use in successful.tools} == {"a": 0, "b": 1}


def test_an_agent_that_may_not_report_its_calls_has_no_recall(tmp_path, journals):
    made: dict[str, list[list[list[str]]]] = {"x": [[[]], [[]]]}
    assert summarize(path_run(tmp_path / "silent", journals, [["a"], ["b"]], made)).tools == ()
    known = summarize(path_run(tmp_path / "known", journals, [["a"], ["b"]], made, reports_tool_calls=True))
    assert [(use.tool, use.recall.value, use.precision.value) for use in known.tools] == [
        ("a", 0, None),
        ("b", 0, None),
    ]


NAMES = ["a", "b", "c", "d"]


def drawn(seed):
    rng = np.random.default_rng(seed)

    def some(most):
        return sorted(rng.choice(NAMES, size=rng.integers(0, most + 1), replace=False).tolist())

    return [some(2) for _ in range(8)], {"x": [[some(3) for _ in range(2)] for _ in range(8)]}


def label_table(expected, called):
    """Columns of truth and of prediction, one a name; a row an answer: as for a classifier with several labels."""
    truth = np.array([[name in tools for name in NAMES] for tools in expected for _ in range(2)])
    guess = np.array([[name in tools for name in NAMES] for question in called["x"] for tools in question])
    return truth, guess


@pytest.mark.parametrize("seed", range(5))
def test_precision_and_recall_are_those_of_a_classifier_with_several_labels(tmp_path, journals, seed):
    expected, called = drawn(seed)
    summary = summarize(path_run(tmp_path / "run", journals, expected, called))
    truth, guess = label_table(expected, called)
    assert len(summary.tools) == 4
    for use in summary.tools:
        true, guessed = truth[:, NAMES.index(use.tool)], guess[:, NAMES.index(use.tool)]
        assert (use.expected, use.called, use.matched) == (true.sum(), guessed.sum(), (true & guessed).sum())
        for share, hits in ((use.recall, guessed[true]), (use.precision, true[guessed])):
            assert share.value == (pytest.approx(hits.mean()) if hits.size else None)
        known = share_interval(guessed[true], np.repeat(range(8), 2)[true])  # a question: all its answers, or none
        ends = use.recall.low, use.recall.high
        assert ends == (pytest.approx((known.low, known.high)) if known.n > 1 else (None, None))
    wrong: Counter[tuple[str, str | None]] = Counter()
    for true, guessed in zip(truth, guess, strict=True):
        extra = [name for name, t, g in zip(NAMES, true, guessed, strict=True) if g and not t] or [None]
        wrong.update((name, other) for name, t, g in zip(NAMES, true, guessed, strict=True) if t and not g
                     for other in extra)  # fmt: skip
    assert {(pair.expected, pair.called): pair.answers for pair in summary.confusions} == wrong


@pytest.mark.parametrize("seed", range(3))
def test_other_names_give_the_same_numbers(tmp_path, journals, seed):
    expected, called = drawn(seed)
    other = dict(zip(NAMES, ["s.q", "r", "t.p", "o"], strict=True))
    renamed = {"x": [[[other[name] for name in tools] for tools in question] for question in called["x"]]}
    one = summarize(path_run(tmp_path / "one", journals, expected, called))
    two = summarize(path_run(tmp_path / "two", journals, [[other[n] for n in tools] for tools in expected], renamed))
    replace = msgspec.structs.replace
    assert {replace(use, tool=other[use.tool]) for use in one.tools} == set(two.tools)
    assert {
        replace(pair, expected=other[pair.expected], called=pair.called and other[pair.called])
        for pair in one.confusions
    } == set(two.confusions)


@pytest.mark.parametrize("seed", range(3))
def test_expected_for_called_swaps_precision_and_recall(tmp_path, journals, seed):
    expected, called = drawn(seed)
    single = {"x": [[question[0]] for question in called["x"]]}
    swapped = {"x": [[tools] for tools in expected]}
    one = summarize(path_run(tmp_path / "one", journals, expected, single))
    two = summarize(path_run(tmp_path / "two", journals, [question[0] for question in single["x"]], swapped))
    there = {use.tool: (use.precision, use.recall) for use in one.tools}
    assert there == {use.tool: (use.recall, use.precision) for use in two.tools}
    for summary in (one, two):
        for use in summary.tools:
            lost = sum(pair.answers for pair in summary.confusions if pair.expected == use.tool)
            assert lost >= use.expected - use.matched
    transposed = {(pair.called, pair.expected, pair.answers) for pair in one.confusions if pair.called}
    assert transposed == {(pair.expected, pair.called, pair.answers) for pair in two.confusions if pair.called}
