"""A run over conversations: every number against plain Python over the rows, and the figures on real answers."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.rounding import rounded

from karat import formats
from karat.analysis import Summary, compare, summarize
from karat.analysis.parts import from_json
from karat.analysis.verdicts import NOT_TESTED
from karat.blocks import Table
from karat.errors import BadOption
from karat.exports.html import Html
from karat.exports.terminal import Terminal
from karat.journal import Choice
from karat.records import Reply, Score, Usage
from karat_conversations.exports.convfinqa import Convfinqa
from karat_conversations.kinds.conversation import Conversation
from karat_conversations.kinds.conversation.analysis.model import right_in_words
from karat_conversations.kinds.conversation.analysis.scoring import NumericTurns
from karat_conversations.kinds.conversation.sections import reasoning


def said(answer: str, *, tokens: int = 10, **more: Any) -> Reply:
    usage = Usage(input_tokens=tokens, output_tokens=1)
    return Reply(text="", answer=answer, milliseconds=100.0, usage=usage, dollars=0.5, **more)


def built(folder: Path, journals: ModuleType, **more: Any) -> Any:
    """Three conversations under two conditions, twice: one breaks off, one was not begun."""
    one = journals.asked(
        "one",
        0,
        [
            {"golden": "10.0", "program": "10"},
            {"golden": "2.0", "program": "subtract(10, 8)"},
            {"golden": "0.25", "program": "subtract(10, 8), divide(#0, 8)"},
        ],
        metadata={"has_type2_question": False, "turns": 3},
    )
    two = journals.asked(
        "two", 1, [{"golden": "0.5"}, {"golden": "-3.0"}], metadata={"has_type2_question": True, "turns": 2}, weight=3.0
    )
    three = journals.asked(
        "three",
        2,
        [{"golden": "7.0", "quarantined": ["sign"]}, {"golden": "yes", "quarantined": []}],
        metadata={"has_type2_question": True, "turns": 2},
    )
    a = [
        [[said("10"), said("2"), said("0.25")], [said("12"), said("4"), said("0.5")]],
        [[said("50", unit="percent"), said("3")], None],
        [[said("7"), said("yes")], [said("7"), said("no")]],
    ]
    b = [
        [[said("10"), said("2"), said("25", unit="percent")], [said("10"), said("2"), said("0.25")]],
        [[said("0.5"), said("-3")], [said("0.5"), said("-3")]],
        [[said("N/A"), said("yes")], []],
    ]
    return journals.conversations(folder, [one, two, three], {"a": a, "b": b}, **more)


@pytest.fixture
def summary(tmp_path: Path, journals: ModuleType) -> Summary:
    return summarize(built(tmp_path / "run", journals))


def clustered(clusters: list[list[float]], weights: list[float]) -> tuple[float, float, float]:
    """Rate, clustered se, naive se: plain Python."""
    size = sum(w * len(one) for w, one in zip(weights, clusters, strict=True))
    rate = sum(w * sum(one) for w, one in zip(weights, clusters, strict=True)) / size
    pulls = sum(
        (w * (sum(one) - rate * len(one)) / (size - w * len(one))) ** 2
        for w, one in zip(weights, clusters, strict=True)
    )
    naive = sum(w**2 * (value - rate) ** 2 for w, one in zip(weights, clusters, strict=True) for value in one)
    g, n = len(clusters), sum(map(len, clusters))
    return rate, math.sqrt((g - 1) / g * pulls), math.sqrt(n / (n - 1) * naive) / size


# Condition a, numerical: 10, 2, 0.25 all right, then none of three; 50 and 3 wrong, then two never reached; 7 and 7
# right, and yes is no number.
A = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]]


def test_the_whole_part_of_a_summary(summary, golden):
    golden("conversations/summary.json", rounded(msgspec.json.encode(summary.conversation)))


def test_a_rate_is_over_all_declared_turns_with_weights_and_clustered(summary):
    part = summary.conversation
    assert part is not None
    assert (part.conversations, part.turns, part.weighted, part.rules) == (3, 7, True, ("karat-numeric/2",))
    found = part.conditions[0].accuracies[0]
    rate, se, naive = clustered([[float(v) for v in one] for one in A], [1, 3, 1])
    assert (found.name, found.metric, found.n, found.total) == ("numerical_accuracy", "numerical", 14, 5)
    assert found.estimate.value == pytest.approx(rate)
    assert found.estimate.se == pytest.approx(se)
    assert found.naive_se == pytest.approx(naive)
    assert found.design_effect == pytest.approx((se / naive) ** 2)
    assert found.estimate.n == 3


def test_the_results_of_a_summary_are_the_same_numbers(summary):
    for one in summary.conversation.conditions:
        for rate in one.accuracies:
            result = summary.result(one.condition, rate.metric)
            assert result.mean == rate.estimate
            assert sum(result.distribution.values()) == rate.n


def test_what_was_never_reached_is_wrong_and_what_was_not_begun_counts_nowhere(summary):
    a, b = summary.conversation.conditions
    assert (a.conversations, a.turns, a.unreached, a.not_run, a.failures) == (6, 14, 2, 0, {"agent: crash": 1})
    assert (b.conversations, b.turns, b.unreached, b.not_run, b.failures) == (5, 12, 0, 2, {})


def test_what_was_never_reached_is_warned_of(summary):
    assert "a: 2 of 14 turns never reached, so wrong (agent: crash 1)" in summary.warnings


def test_a_conversation_is_right_when_every_turn_is(summary):
    found = summary.conversation.conditions[0].conversation_accuracy
    rate, se, _ = clustered([[1, 0], [0, 0], [1, 0]], [1, 3, 1])
    assert (found.n, found.total) == (6, 2)
    assert found.estimate.value == pytest.approx(rate)
    assert found.estimate.se == pytest.approx(se)


def test_trivial_answerers_stand_beside_each_rate(summary):
    rates = {rate.metric: rate.nulls for rate in summary.conversation.conditions[0].accuracies}
    assert rates["numerical"]["zero"] == 0
    # 100 times the golden answer: wrong by every rule but one, and of yes there is no 100 times. Weighted, both
    # repetitions: 6 turns of one, 4 × 3 of two, and 2 of the 4 of three are numbers.
    assert rates["unit_agnostic"]["times_100"] == pytest.approx((6 + 12 + 2) / (6 + 12 + 4))
    assert rates["numerical"]["times_100"] == 0
    assert rates["sign_agnostic"]["sign_flipped"] == pytest.approx((6 + 12 + 2) / (6 + 12 + 4))
    assert set(rates["numerical"]) == {one.name for one in summary.conversation.nulls}


def test_the_ladder_counts_what_each_match_forgives(summary):
    rungs = {rung.metric: (rung.right, rung.forgiven) for rung in summary.conversation.conditions[0].ladder}
    assert rungs["numerical"] == (5, 0)
    assert rungs["declared"] == (7, 2)  # 50 percent for 0.5, and yes
    assert rungs["unit_agnostic"] == (6, 1)
    assert rungs["sign_agnostic"] == (6, 1)  # 3 for −3
    assert rungs["scale_and_sign"] == (7, 2)


def test_by_turn_by_operations_and_by_feature(summary):
    found = summary.conversation.conditions[0]
    assert [(one.key, one.n, one.right) for one in found.by_turn] == [("0", 6, 3), ("1", 6, 2), ("2", 2, 1)]
    assert [(one.key, one.n, one.right, one.golden_operations) for one in found.by_operations] == [
        ("0", 2, 1, 0.0),
        ("1", 2, 1, 1.0),
        ("2", 2, 1, 2.0),
    ]
    feature = next(one for one in found.features if one.name == "has_type2_question")
    assert [(one.key, one.n, one.right) for one in feature.strata] == [("false", 6, 3), ("true", 8, 3)]
    assert feature.correlation == pytest.approx(correlation())
    assert feature.difference is None  # one conversation on one side


def correlation() -> float:
    rows = [(0.0, float(v), 1.0) for v in A[0]]
    rows += [(1.0, float(v), w) for one, w in ((A[1], 3.0), ([1, 1, 1, 0], 1.0)) for v in one]  # yes is right, too
    weight = sum(w for *_, w in rows)
    x, y = (sum(row[side] * row[2] for row in rows) / weight for side in (0, 1))
    xy, xx, yy = (
        sum(w * f(p - x, q - y) for p, q, w in rows)
        for f in (lambda p, q: p * q, lambda p, q: p * p, lambda p, q: q * q)
    )
    return xy / math.sqrt(xx * yy)


def test_diagnoses_add_up_to_the_wrong_turns_that_were_answered(summary):
    found = summary.conversation.conditions[0]
    labels = {one.label: one.turns for one in found.diagnoses}
    # 12 4 0.5 for 10 2 0.25; 50 for 0.5; 3 for −3; no for yes.
    assert labels == {"propagated": 2, "other": 2, "scale": 1, "sign": 1}
    assert sum(one.share for one in found.diagnoses) == pytest.approx(1)
    example = next(one for one in found.diagnoses if one.label == "sign").examples[0]
    assert (example.conversation, example.turn, example.expected, example.actual) == ("two", 1, "-3.0", "3")


def test_a_turn_that_a_file_does_not_hold_is_unreached_and_has_no_diagnosis(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "2.0"}, {"golden": "3.0"}])
    gap = Reply(text="", answer="", stop_reason="not_recorded")
    run = journals.conversations(tmp_path / "run", [only], {"a": [[[said("1"), gap, said("4")]]]})
    found = summarize(run).conversation.conditions[0]
    assert (found.turns, found.unreached) == (3, 1)
    assert found.accuracies[0].estimate.value == pytest.approx(1 / 3)
    assert sum(one.turns for one in found.diagnoses) == 1


def broken(tmp_path, journals, *, extract="json", replies=("1", "7", "3")):
    only = journals.asked("only", 0, [{"golden": f"{number}.0"} for number in range(1, 6)])
    scorer = msgspec.structs.replace(journals.NUMERIC, options={"extract": extract, "pattern": "(a+)+$"})
    script = journals.Script(
        tmp_path / extract, samples=[only], conditions=("a",), scorers=(scorer,), kind="conversation"
    )
    for turn, text in enumerate(replies):
        script.reply(0, "a", turn=turn, reply=Reply(text=f'{{"answer": {text}}}', milliseconds=5.0))
    script.failure(0, "a")
    return summarize(script.end()).conversation.conditions[0]


def test_the_turns_before_a_break_count_as_what_they_are(tmp_path, journals):
    found = broken(tmp_path, journals)
    assert (found.turns, found.unreached) == (5, 2)
    assert found.accuracies[0].estimate.value == pytest.approx(2 / 5)
    assert [(one.key, one.right) for one in found.by_turn] == [("0", 1), ("1", 0), ("2", 1), ("3", 0), ("4", 0)]
    assert found.conversation_accuracy.total == 0
    passed = found.propagation
    assert (passed.first_wrong, passed.never_wrong) == ({"1": 1}, 0)
    assert (passed.after_right.n, passed.after_wrong.total) == (1, 1)
    assert found.pace.timed == 3


def test_a_conversation_that_broke_off_before_it_went_wrong_is_not_one_without_a_wrong_turn(tmp_path, journals):
    passed = broken(tmp_path, journals, replies=("1", "2")).propagation
    assert (passed.first_wrong, passed.never_wrong) == ({}, 0)


def test_an_expression_that_a_run_folder_names_is_not_run(tmp_path, journals):
    found = broken(tmp_path, journals, extract="regex", replies=("1", "a" * 40 + "!"))
    assert (found.unreached, found.accuracies[0].estimate.value) == (5, 0)


def test_how_an_error_goes_on(summary):
    found = summary.conversation.conditions[0].propagation
    # Right, or the same yes: 111, 000; 00; 11, 10. The conversation that broke off tells nothing.
    assert found.first_wrong == {"0": 2, "1": 1}
    assert found.never_wrong == 2
    assert (found.after_right.total, found.after_right.n) == (3, 4)
    assert (found.after_wrong.total, found.after_wrong.n) == (0, 3)
    assert (found.cascades, found.propagated) == (3, 2)
    # 6 of 14 are right, and 2 more would have been; with weights: 3 + 2 of 6, 0 of 4 × 3, 3 of 4.
    assert found.had_earlier_been_right.estimate.value == pytest.approx((5 + 0 + 3) / (6 + 12 + 4))


def test_cost_is_what_everything_cost_over_what_came_out_right(summary):
    a, b = (one.cost for one in summary.conversation.conditions)
    assert (a.right_conversations, a.right_turns, a.tokens, a.dollars) == (2, 6, 12 * 11, 6.0)
    assert (a.tokens_per_right_conversation, a.dollars_per_right_turn) == (66, 1.0)
    assert (b.right_conversations, b.right_turns) == (3, 10)


def test_without_a_right_conversation_its_cost_is_not_known_and_not_zero(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}])
    run = journals.conversations(tmp_path / "run", [only], {"a": [[[said("5")]]]})
    found = summarize(run).conversation.conditions[0].cost
    assert (found.tokens, found.tokens_per_right_conversation, found.dollars_per_right_turn) == (11, None, None)


def test_a_cost_of_which_a_part_is_unknown_is_shown_as_a_lower_bound(tmp_path, journals):
    half = msgspec.structs.replace(said("1.0"), usage=None, dollars=None)
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "1.0"}])
    answers = {"all": [[[said("1.0"), said("1.0")]]], "half": [[[said("1.0"), half]]]}
    run = journals.conversations(tmp_path / "run", [only], answers)
    summary = summarize(run)
    text = Terminal(Terminal.Options(width=120, full=True)).render(summary, run)["report.txt"]
    table = text.partition("\nCost of right answers")[2].partition("Time: median")[0]
    rows = {name: row for line in table.splitlines() for name, *row in [line.split() or [""]]}
    assert rows["all"][:5] == ["1", "2", "22", "22", "11"]
    assert " ".join(rows["half"][:8]) == "1 2 ≥ 11 ≥ 11 ≥ 6"
    page = Html().render(summary, run)["report.html"]
    assert "all spends 22 tokens for a fully right conversation" in page
    assert "half spends" not in page
    exported = json.loads(dict(Convfinqa().render(summary, run))["statistics.json"])
    assert exported["cost_per_correct_answer"] == (22 + 11) / 2
    assert "cost_per_correct_answer" in exported["unknown"]


def test_time_and_tokens_a_turn(summary):
    found = summary.conversation.conditions[0].pace
    assert (found.timed, found.metered, found.milliseconds_median, found.tokens_mean) == (12, 12, 100, 11)


def test_with_and_without_quarantined_turns(summary):
    found = summary.conversation.conditions[0].quarantine
    assert (found.turns, found.reasons) == (2, {"sign": 2})
    rate, se, _ = clustered([[1, 1, 1, 0, 0, 0], [0, 0, 0, 0], [0, 0]], [1, 3, 1])
    assert found.accuracies[0].n == 12
    assert found.accuracies[0].estimate.value == pytest.approx(rate)
    assert found.accuracies[0].estimate.se == pytest.approx(se)
    assert found.conversation_accuracy.total == 2  # one at first, three at first: its yes is what is left of it


def test_the_verdicts_of_a_file_stand_beside_ours(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "0.5"}, {"golden": "2.0"}, {"golden": "3.0"}])
    replies = [said("50", verdict=True), said("2", verdict=True), said("4", verdict=None)]
    found = summarize(journals.conversations(tmp_path / "run", [only], {"a": [[replies]]})).conversation.conditions[0]
    verdicts = found.verdicts
    assert (verdicts.n, verdicts.right) == (2, 2)
    assert (verdicts.agreement["numerical"], verdicts.agreement["unit_agnostic"]) == (0.5, 1.0)
    assert (verdicts.only_theirs["numerical"], verdicts.only_ours["numerical"]) == (1, 0)


def test_differences_are_paired_by_conversation(summary):
    found = next(one for one in summary.differences if one.metric == "numerical")
    b = [[1, 1, 0, 1, 1, 1], [1, 1, 1, 1], [0, 0]]
    weights = [1, 3, 1]

    def pulls(clusters: list[list[int]]) -> tuple[float, list[float]]:
        size = sum(w * len(one) for w, one in zip(weights, clusters, strict=True))
        rate = sum(w * sum(one) for w, one in zip(weights, clusters, strict=True)) / size
        return rate, [
            w * (sum(one) - rate * len(one)) / (size - w * len(one)) for w, one in zip(weights, clusters, strict=True)
        ]

    (first, one), (second, two) = pulls(A), pulls(b)
    assert found.estimate.value == pytest.approx(second - first)
    assert found.estimate.se == pytest.approx(
        math.sqrt(2 / 3 * sum((q - p) ** 2 for p, q in zip(one, two, strict=True)))
    )
    assert found.n_pairs == 3


def test_readings_of_the_same_answers_are_not_tested_over_and_over(summary):
    tested = {one.metric for one in summary.differences if one.verdict != NOT_TESTED}
    assert tested == {"right", "declared"}  # one golden answer is yes
    assert {one.p_adjusted for one in summary.differences if one.verdict == NOT_TESTED} == {None}


def test_reasoning_is_over_the_turns_that_have_it(tmp_path, journals):
    only = journals.asked(
        "only",
        0,
        [
            {"golden": "2.0", "program": "subtract(10, 8)"},
            {"golden": "0.25", "program": "subtract(10, 8), divide(#0, 8)"},
        ],
    )
    replies = [said("2", program="subtract(10, 8)"), said("0.25", program="divide(2, 8)")]
    run = journals.conversations(tmp_path / "run", [only], {"a": [[replies]]})
    found = {one.name: one for one in summarize(run).conversation.conditions[0].reasoning}
    assert found["avg_logic_recall"].estimate.value == pytest.approx(fmean([1, 0.5]))
    assert found["avg_step_logic_recall"].estimate.value == 1
    assert found["avg_logic_recall"].n == 2


def test_programs_that_cannot_be_read_are_counted_beside_the_reasoning(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "2.0", "program": "subtract(10, 8)"}] * 3)
    written = [said("2", program=text) for text in ("subtract(10,8)", "10 - 8", "the difference")]
    spoiled = [said("2", program="the difference")] * 3
    run = journals.conversations(
        tmp_path / "run", [only], {"a": [[written]], "b": [[spoiled]], "c": [[written[:2] * 2]]}
    )
    found = summarize(run).conversation
    assert [one.unreadable_programs for one in found.conditions] == [1, 3, 0]
    assert found.conditions[0].rate("logic_recall").n == 2
    assert found.conditions[0].rate("logic_recall").estimate.value == 1
    assert found.conditions[1].reasoning == ()
    expected = "Programs that cannot be read, so not available here: 1 of 3 (a), 3 of 3 (b)."
    assert found.unreadable_programs() == expected
    (text,) = Terminal(Terminal.Options(width=200, full=True)).render(summarize(run), run).values()
    assert expected in " ".join(text.split())
    (table,) = (block for block in reasoning(found) if isinstance(block, Table))
    assert table.legend.endswith(expected)


def test_a_summary_survives_json(summary):
    assert from_json(msgspec.json.encode(summary), Summary) == summary


def test_two_runs_are_compared_by_turns_as_well(tmp_path, journals):
    one, two = (built(tmp_path / name, journals, run=name) for name in ("1234abce", "1234abcf"))
    found = compare(one, two, condition_a="a", condition_b="b")
    inside = next(one for one in summarize(one).differences if one.metric == "numerical")
    pairing = next(one for one in found.pairings if one.difference.metric == "numerical")
    assert pairing.difference.estimate.value == pytest.approx(inside.estimate.value)
    assert pairing.difference.estimate.se == pytest.approx(inside.estimate.se)


def test_a_run_without_any_answer_is_wrong_throughout(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "2.0"}])
    found = summarize(journals.conversations(tmp_path / "run", [only], {"a": [[None]]})).conversation.conditions[0]
    assert (found.turns, found.unreached, found.accuracies[0].estimate.value) == (2, 2, 0)
    assert found.cost.tokens_per_right_turn is None


# ── Real answers.


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, journals: ModuleType) -> Summary:
    data = Path(__file__).resolve().parents[3] / "shared" / "data" / "convfinqa"
    if not (data / "dev.json").is_file():
        pytest.skip("no ../shared/data/convfinqa beside this checkout")
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for line in (data / "predictions_sonnet.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["record_id"], {})[row["turn_idx"]] = row
    samples = list(Conversation(Conversation.Options()).load(data / "dev.json"))
    model = [
        [
            [
                Reply(text="", answer=row["predicted_answer"], unit=row["predicted_unit"], verdict=row["correct"])
                for _, row in sorted(rows[sample.id].items())
            ]
        ]
        for sample in samples
    ]
    zero = [[[Reply(text="0") for _ in sample.turns]] for sample in samples]
    folder = tmp_path_factory.mktemp("real") / "run"
    return summarize(journals.conversations(folder, samples, {"sonnet": model, "zero": zero}))


@pytest.mark.slow
def test_clustering_widens_the_interval_as_measured(real):
    found = {rate.metric: rate for rate in real.conversation.of("sonnet").accuracies}
    assert found["declared"].design_effect == pytest.approx(2.6, abs=0.1)
    assert found["declared"].estimate.se / found["declared"].naive_se == pytest.approx(1.6, abs=0.05)
    assert found["numerical"].design_effect == pytest.approx(1.75, abs=0.05)
    assert found["numerical"].estimate.se / found["numerical"].naive_se == pytest.approx(1.3, abs=0.05)
    width = found["declared"].estimate.high - found["declared"].estimate.low
    assert width == pytest.approx(2 * 1.966 * found["declared"].estimate.se, rel=0.02)


def test_a_constant_zero_scores_what_its_null_rate_says(real):
    zero, model = (real.conversation.of(name).accuracies[0] for name in ("zero", "sonnet"))
    assert zero.estimate.value <= 0.005
    assert zero.estimate.value == pytest.approx(model.nulls["zero"])


def test_the_file_and_the_declared_rule_nearly_always_agree(real):
    found = real.conversation.of("sonnet").verdicts
    assert (found.n, found.right) == (1490, 1244)
    assert found.agreement["declared"] == pytest.approx(0.996, abs=0.001)


def test_the_counterfactual_adds_what_was_proved(real):
    found = real.conversation.of("sonnet")
    assert found.propagation.propagated == next(d.turns for d in found.diagnoses if d.label == "propagated")
    # Wrong by scale or sign as well, some turns have another diagnosis; proved by declared percent, some stay wrong.
    assert found.propagation.had_earlier_been_right.estimate.value == pytest.approx(0.713, abs=0.0005)


def test_scores_of_a_trial_that_a_kill_cut_short_are_none(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "1.0"}, {"golden": "2.0"}])
    script = journals.Script(
        tmp_path / "run", samples=[only], conditions=("a",), scorers=(journals.NUMERIC,), kind="conversation"
    )
    script.answer(0, "a", replies=(said("1"), said("2")))
    script.write(
        Score(
            trial=script.trial(0, "a"),
            scorer="numeric",
            scoring=journals.NUMERIC.scoring,
            turn=0,
            rows=2,
            values={"numerical": True, "right": True},
            labels={"diagnosis": "other"},
            offline=True,
        )
    )
    found = summarize(script.stop()).conversation.conditions[0]
    assert (found.turns, found.not_run, found.diagnoses) == (0, 2, ())
    assert found.accuracies[0].estimate.value is None


@pytest.fixture
def in_percent(tmp_path, journals):
    """Right in the unit that the agent declared, or with yes; numerically only once."""
    turns = [{"golden": "0.141", "printed": "14.1%"}, {"golden": "yes"}, {"golden": "7.0"}]
    only = journals.asked("only", 0, turns)
    said = [
        Reply(text="", answer="14.1", unit="percent", usage=Usage(input_tokens=3, output_tokens=1)),
        Reply(text="", answer="yes"),
        Reply(text="", answer="7.03"),
    ]
    return journals.conversations(tmp_path / "percent", [only], {"a": [[said]]})


@pytest.mark.parametrize(
    ("rule", "right", "first_wrong", "whole", "labels"),
    [
        (None, 2 / 3, {"0": 1}, 0, ["scale"]),
        ("declared", 1.0, {}, 1, []),
        ("exact", 1 / 3, {"0": 1}, 0, ["scale", "within_1_percent"]),
        ("unit_agnostic", 1.0, {}, 1, []),
    ],
)
def test_one_rule_says_what_is_right(in_percent, rule, right, first_wrong, whole, labels):
    summary = summarize(in_percent, right=rule)
    part, found = summary.conversation, summary.conversation.conditions[0]
    assert part.right == (rule or "numerical")
    assert found.rate("right").estimate.value == pytest.approx(right)
    assert found.propagation.first_wrong == first_wrong
    assert (found.cost.right_conversations, found.conversation_accuracy.total) == (whole, whole)
    assert found.cost.right_turns == round(3 * right)
    assert [one.label for one in found.diagnoses] == labels
    assert [one.right for one in found.by_turn] == [int(right == 1), 1, int(rule != "exact")]
    assert summary.result("a", "right").mean.value == pytest.approx(right)
    assert summary.headline.startswith(f"a: {formats.share(right)}")
    assert right_in_words(part.right) in summary.headline


def test_the_headline_of_a_perfect_agent_is_100_percent(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "yes"}, {"golden": "2.0"}])
    said = [Reply(text="", answer="yes"), Reply(text="", answer="2")]
    run = journals.conversations(tmp_path / "perfect", [only], {"a": [[said]]})
    assert summarize(run).headline.startswith("a: 100.0 %")


def test_yes_and_no_count_where_two_conditions_are_tested(tmp_path, journals):
    samples = [journals.asked(str(at), at, [{"golden": "yes"}, {"golden": "2.0"}]) for at in range(8)]
    good, bad = ([Reply(text="", answer=word), Reply(text="", answer="2")] for word in ("yes", "no"))
    run = journals.conversations(tmp_path / "two", samples, {"good": [[good]] * 8, "bad": [[bad]] * 8})
    summary = summarize(run)
    assert summary.conversation.tested == ("right", "declared", "logic_recall")
    assert summary.headline.startswith("good beats bad on right")
    assert compare(run, run, condition_a="good", condition_b="bad").right == "numerical"


def test_the_experiment_may_choose_the_rule(tmp_path, journals):
    only = journals.asked("only", 0, [{"golden": "0.5"}])
    experiment = {"dataset.right": Choice(value="unit_agnostic", source="file")}
    said = {"a": [[[Reply(text="", answer="50")]]]}
    run = journals.conversations(tmp_path / "chosen", [only], said, experiment=experiment)
    assert summarize(run).conversation.conditions[0].rate("right").estimate.value == 1.0
    assert summarize(run, right="numerical").conversation.conditions[0].rate("right").estimate.value == 0.0


@pytest.mark.parametrize("rule", ["newer", ["numerical"], {"a": 1}, "</script>\x1b" * 100])
def test_a_run_with_an_unknown_rule_is_readable_and_the_rule_is_named(tmp_path, journals, rule):
    only = journals.asked("only", 0, [{"golden": "0.5"}])
    said = {"a": [[[Reply(text="", answer="50")]]]}
    experiment = {"dataset.right": Choice(value=rule, source="file")}
    run = journals.conversations(tmp_path / "chosen", [only], said, experiment=experiment)
    summary = summarize(run)
    assert summary.conversation.right == "numerical"
    [warning] = [text for text in summary.warnings if "dataset.right" in text]
    assert "numerical is used" in warning and "\x1b" not in warning and len(warning) < 200
    assert not [text for text in summarize(run, right="declared").warnings if "dataset.right" in text]


def test_an_unknown_rule_is_refused(in_percent, tmp_path, journals):
    with pytest.raises(BadOption, match="declared"):
        summarize(in_percent, right="declard")
    with pytest.raises(BadOption, match="answers have turns"):
        summarize(journals.table(tmp_path / "golden", {"only": [[3]]}), right="declared")


@pytest.mark.needs_kind("study")
def test_an_option_that_no_kind_has_is_refused_and_a_permission_of_another_kind_ignored(in_percent):
    with pytest.raises(BadOption, match=r"rigth: there is no such option \(did you mean 'right'\?\)"):
        summarize(in_percent, rigth="declared")
    assert summarize(in_percent, allow_code=True, right=None) == summarize(in_percent)


def test_every_heading_that_counts_right_turns_names_the_rule(in_percent):
    summary = summarize(in_percent, right="declared")
    text = Terminal(Terminal.Options(width=120, full=True)).render(summary, in_percent)["report.txt"]
    titles = (
        "Accuracy under each rule (offline)",
        "Accuracy by turn",
        "Propagation of errors",
        "Cost of right answers",
    )
    for title in titles:
        assert f"\n{title}, right: declared\n" in text
    page = Html().render(summary, in_percent)["report.html"]
    assert "Propagation of errors, right: declared" in page
    files = dict(Convfinqa().render(summary, in_percent))
    assert [row["right"] for row in csv.DictReader(io.StringIO(files["turns.csv"]))] == ["True"] * 3
    assert (json.loads(files["statistics.json"])["right"], files["errors.csv"].count("\n")) == ("declared", 1)


@pytest.mark.parametrize(
    ("rule", "columns", "tested"),
    [
        pytest.param("soft", {}, ("soft", "declared", "logic_recall"), id="nothing is scored"),
        pytest.param(
            "numerical",
            {"numerical": [1.0, 0.0], "right": [1.0, 0.0]},
            ("numerical", "declared", "logic_recall"),
            id="no yes or no",
        ),
        pytest.param(
            "numerical",
            {"numerical": [1.0, 0.0], "right": [1.0, 1.0]},
            ("right", "declared", "logic_recall"),
            id="yes or no",
        ),
        pytest.param(
            "declared",
            {"numerical": [0.0], "right": [0.0], "declared": [1.0]},
            ("declared", "logic_recall"),
            id="once each",
        ),
    ],
)
def test_conditions_are_tested_first_on_what_makes_a_turn_right(rule, columns, tested):
    arrays = {name: np.array(values) for name, values in columns.items()}
    assert NumericTurns(rule).tested(arrays) == tested


def test_right_follows_the_rule():
    columns = {"numerical": np.array([0.0, 0.0]), "right": np.array([0.0, 1.0]), "declared": np.array([1.0, 0.0])}
    assert NumericTurns("declared").values("right", columns).tolist() == [1.0, 1.0]
    assert NumericTurns("declared").values("numerical", columns).tolist() == [0.0, 0.0]
    assert NumericTurns("soft").values("right", columns).tolist() == [0.0, 1.0], "an old run has no such column"
