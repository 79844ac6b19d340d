"""Two runs, question by question."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs

from karat.analysis import compare, summarize
from karat.analysis.model import Repeat
from karat.errors import BadOption
from karat.records import Reply

BEFORE = {"base": [[1], [2], [3], [4], [2], [3]]}
AFTER = {"base": [[3], [3], [5], [5], [5], [2]]}


def two(tmp_path, journals, before=BEFORE, after=AFTER, **more):
    one = journals.table(tmp_path / "one", before, run="11111111")
    other = journals.table(tmp_path / "two", after, run="22222222", **more)
    return one, other


def test_runs_are_paired_by_question(tmp_path, journals):
    found = compare(*two(tmp_path, journals))
    (pairing,) = found.pairings
    # differences 2 1 2 1 3 −1
    assert pairing.difference.estimate.value == pytest.approx(8 / 6)
    assert (pairing.mean_a, pairing.mean_b) == (2.5, pytest.approx(23 / 6))
    assert (pairing.better, pairing.worse, pairing.equal) == (5, 1, 0)
    assert [(flip.sample, flip.difference) for flip in pairing.flips] == [
        ("4", 3), ("0", 2), ("2", 2), ("1", 1), ("3", 1), ("5", -1),
    ]  # fmt: skip
    assert (pairing.difference.a, pairing.difference.b) == ("base (11111111)", "base (22222222)")


def test_the_order_of_samples_in_the_other_run_does_not_matter(tmp_path, journals):
    one, _ = two(tmp_path, journals)
    turned = [msgspec.structs.replace(journals.sample(index), position=5 - index) for index in range(6)]
    again = {"base": list(BEFORE["base"])}
    other = journals.table(tmp_path / "three", again, samples=turned, run="33333333")
    (pairing,) = compare(one, other).pairings
    assert (pairing.difference.estimate.value, pairing.equal) == (0, 6)


def test_of_many_flips_the_largest_gains_and_some_losses_are_listed(tmp_path, journals):
    gains = {"base": [[1]] * 20}
    after = {"base": [[3], [5], [2], *[[4]] * 12, *[[1]] * 5]}
    (pairing,) = compare(*two(tmp_path, journals, before=gains, after=after)).pairings
    assert [flip.difference for flip in pairing.flips] == [4, *[3] * 9]
    mixed = {"base": [[2]] * 20}
    after = {"base": [*[[4]] * 15, [1], [1], [2], [2], [2]]}
    other = tmp_path / "mixed"
    (pairing,) = compare(*two(other, journals, before=mixed, after=after)).pairings
    assert [flip.difference for flip in pairing.flips] == [*[2] * 8, -1, -1]


def test_questions_whose_content_changed_are_left_out_and_counted(tmp_path, journals):
    samples = [journals.sample(index, digest="ee" * 16 if index == 4 else None) for index in range(6)]
    found = compare(*two(tmp_path, journals, samples=samples))
    assert (found.changed, found.only_a, found.only_b) == (1, 0, 0)
    assert found.pairings[0].difference.n_pairs == 5
    assert "1 question has the same id but another content" in found.warnings[0]


def test_questions_that_one_run_lacks_are_counted(tmp_path, journals):
    found = compare(*two(tmp_path, journals, after={"base": [[3], [3], [5]]}))
    assert (found.only_a, found.only_b, found.pairings[0].difference.n_pairs) == (3, 0, 3)


def test_two_conditions_of_one_run(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"a": BEFORE["base"], "b": AFTER["base"]})
    found = compare(run, run, condition_a="a", condition_b="b")
    assert (found.a.label, found.b.label) == ("a", "b")
    assert (found.pairings[0].difference.a, found.pairings[0].difference.b) == ("a", "b")


def test_conditions_of_one_name_are_all_compared_and_p_is_adjusted_over_them(tmp_path, journals):
    before = {"x": BEFORE["base"], "y": BEFORE["base"]}
    after = {"y": AFTER["base"], "x": AFTER["base"], "z": AFTER["base"]}
    found = compare(*two(tmp_path, journals, before=before, after=after))
    assert [one.difference.a for one in found.pairings] == ["x (11111111)", "y (11111111)"]
    assert found.pairings[0].difference.p_adjusted == pytest.approx(2 * found.pairings[0].difference.p)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "say which conditions to compare, as RUN:CONDITION (known: a, b | a, b)"),
        ({"condition_a": "a", "condition_b": "a"}, "cannot be compared with itself"),
        ({"condition_a": "a", "condition_b": "bb"}, "has no condition 'bb' (did you mean 'b'?)"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path, journals, conditions, message):
    run = journals.table(tmp_path / "run", {"a": [[1]], "b": [[2]]})
    with pytest.raises(BadOption) as caught:
        compare(run, run, **conditions)
    assert message in str(caught.value)


def test_runs_without_a_metric_in_common(tmp_path, journals):
    one = journals.table(tmp_path / "one", BEFORE, run="11111111")
    script = journals.Script(tmp_path / "two", samples=6, conditions=("base",), scorers=(), run="22222222")
    with pytest.raises(
        BadOption, match=r"^runs: the two share no metric \(they have: completeness \| none\); score both alike"
    ):
        compare(one, script.end())


def test_another_scoring_is_warned_of(tmp_path, journals):
    one = journals.table(tmp_path / "one", BEFORE, run="11111111")
    newer = msgspec.structs.replace(journals.JUDGE, scoring="cc" * 16)
    script = journals.Script(tmp_path / "two", samples=6, conditions=("base",), scorers=(newer,), run="22222222")
    for row in range(6):
        script.answer(row, "base")
        script.score(row, "base", value=3, scorer=newer)
    assert any("scored differently" in warning for warning in compare(one, script.end()).warnings)


def test_it_prints_itself(tmp_path, journals, golden):
    samples = [journals.sample(index, name=f"q-\x1b[31m{index}") for index in range(6)]
    one = journals.table(tmp_path / "one", BEFORE, run="11111111", samples=samples)
    other = journals.table(tmp_path / "two", AFTER, run="22222222", samples=samples)
    found = compare(one, other)
    golden("compare.txt", str(found))
    assert "\x1b" not in found._repr_html_()
    assert [row["verdict"] for row in found.table()] == [found.pairings[0].difference.verdict]


def test_runs_that_mean_another_direction_have_no_winner(tmp_path, journals):
    """A scorer that was corrected between two runs: its number is better when lower, and was taken as the contrary."""
    words = journals.SCALE.__class__(name="words", low=0)
    sides = []
    for number, direction in enumerate(("higher", "lower")):
        metric = msgspec.structs.replace(words, direction=direction)
        scorer = msgspec.structs.replace(journals.JUDGE, metrics=(metric,), scoring=f"{number}c" * 16)
        script = journals.Script(
            tmp_path / direction, samples=8, conditions=("c",), scorers=(scorer,), run=f"{number}234abcd"
        )
        for row in range(8):
            script.answer(row, "c")
            script.score(row, "c", value=10 * (number + 1) + row / 10, scorer=scorer)
        sides.append(script.end())
    found = compare(*sides)
    (pairing,) = found.pairings
    assert (pairing.difference.winner, pairing.difference.p_adjusted < 0.05) == (None, True)
    assert found.warnings[0] == (
        "words is a number, better when higher in run 0234abcd, and a number, better when lower in run 1234abcd: "
        "no side is called better on it"
    )


def test_an_old_run_whose_scorer_gave_what_it_did_not_announce_is_read_as_before_and_says_so(tmp_path, journals):
    metric = journals.SCALE.__class__(name="words", low=0, direction="lower")
    scorer = msgspec.structs.replace(journals.JUDGE, name="brevity", metrics=(metric,))
    script = journals.Script(tmp_path / "run", samples=2, conditions=("c",), scorers=(scorer,))
    for row in range(2):
        script.answer(row, "c")
        script.score(row, "c", values={"brevity": 7}, scorer=scorer)
    summary = summarize(script.end())
    assert [(one.key, one.direction) for one in summary.metrics] == [("brevity", "higher")]
    assert (
        "scorer 'brevity' announces words but gave brevity, of which karat does not know which way is better: "
        "higher is taken as better; correct the scorer and score the run again"
    ) in summary.warnings


def test_the_printed_comparison_says_what_was_left_out_and_what_it_is_a_part_of(tmp_path, journals):
    whole = compare(*two(tmp_path, journals))
    again = Repeat(shown=False, new_questions=0.75, same_questions=None)
    [pairing] = whole.pairings

    def lines(*, difference: dict[str, object] | None = None, **fields: object) -> list[str]:
        """The lines that come with these fields."""
        pairings = (structs.replace(pairing, difference=structs.replace(pairing.difference, **difference or {})),)
        shown = str(structs.replace(whole, pairings=pairings, **fields)).splitlines()
        return [line for line in shown if line and line not in str(whole).splitlines()]

    assert lines(only_a=1) == ["1 question only in the first"]
    assert lines(only_b=2, unit="conversation")[-1:] == ["2 conversations only in the second"]
    assert lines(only_a=2, only_b=1) == ["2 questions only in the first; 1 question only in the second"]
    assert lines(right="exact") == ["right: exact, or the same yes or no"]
    assert lines(conditions=(("old", "old"), ("old", "new"))) == ["conditions compared: old, old with new"]
    assert lines(conditions=(("a", "b"),), a=structs.replace(whole.a, condition="a")) == []
    assert lines(conditions=(("a", "b"),), b=structs.replace(whole.b, condition="b")) == []
    assert lines(warnings=("old",)) == ["warning: old"]
    assert lines(pairs=1) == []
    [text] = lines(pairs=2)
    assert text.startswith("the run has 2 pairs of conditions, and this is one: `karat report RUN --pairs all` adjusts")
    assert lines(difference={"least": -1.0, "most": 2.0}) == [
        "  bounds, if the missing scores were the lowest or the highest: [−1.00, +2.00]"
    ]
    assert lines(difference={"least": 1.0, "most": 1.0}) == []
    words = "  same verdict again: 75 % of runs with new questions"
    assert lines(difference={"again": again}) == [f"{words}, if effects of this size are usual"]
    assert lines(difference={"again": structs.replace(again, shown=True, same_questions=0.5)}) == [
        f"{words}, 50 % with the same questions, if effects of this size are usual; where nothing differs at all, 2 %"
    ]
    assert lines(difference={"again": structs.replace(again, new_questions=None)}) == []


def test_a_p_value_is_headed_as_adjusted_where_there_are_several(tmp_path, journals):
    found = compare(*two(tmp_path, journals))
    [pairing] = found.pairings
    assert found.p_label == "p"
    assert structs.replace(found, pairings=(pairing, pairing)).p_label == "p (Holm)"
    untested = structs.replace(pairing, difference=structs.replace(pairing.difference, p_adjusted=None))
    assert structs.replace(found, pairings=(pairing, untested)).p_label == "p"


@pytest.mark.needs_kind("conversation")
def test_metrics_that_a_kind_does_not_test_are_compared_without_a_verdict(tmp_path, journals):
    talks = [journals.asked(str(at), at, [{"golden": "1"}] * 2) for at in range(6)]
    runs = []
    for name, text in (("11111111", "2"), ("22222222", "1")):
        said = {"plain": [[[Reply(text=text), Reply(text="2" if at else text)]] for at in range(6)]}
        runs.append(journals.conversations(tmp_path / name, talks, said, run=name))
    found = {pairing.difference.metric: pairing.difference for pairing in compare(*runs).pairings}
    assert (found["numerical"].verdict, found["exact"].verdict) == ("plain (22222222) is better", "not tested")
    assert found["exact"].estimate.value == found["numerical"].estimate.value > 0.5
    assert found["exact"].again is None


@pytest.mark.parametrize(
    ("first", "second", "asked", "pairs"),
    [
        ("ab", "ab", {}, ["aa", "bb"]),
        ("ab", "bc", {}, ["bb"]),
        ("ab", "ab", {"condition_a": "a"}, ["aa"]),
        ("ab", "ab", {"condition_b": "b"}, ["bb"]),
        ("ab", "ab", {"condition_a": "a", "condition_b": "b"}, ["ab"]),
        ("ab", "c", {"condition_a": "a"}, ["ac"]),
        ("c", "ab", {"condition_b": "b"}, ["cb"]),
        ("a", "b", {}, ["ab"]),
    ],
)
def test_conditions_are_the_named_ones_else_those_of_one_name_else_the_only_ones(
    tmp_path, journals, first, second, asked, pairs
):
    one = journals.table(tmp_path / "one", {name: [[1], [2], [4]] for name in first}, run="11111111")
    two = journals.table(tmp_path / "two", {name: [[2], [2], [3]] for name in second}, run="22222222")
    found = compare(one, two, **asked)
    assert [pairing.difference.a[0] + pairing.difference.b[0] for pairing in found.pairings] == pairs


@pytest.mark.parametrize(
    ("first", "second", "asked", "message"),
    [
        ("ab", "cd", {}, "the runs have no condition in common; say which conditions to compare"),
        ("ab", "cd", {"condition_a": "a"}, "say which conditions to compare, as RUN:CONDITION (known: a, b | c, d)"),
        ("ab", "cd", {"condition_b": "d"}, "say which conditions to compare, as RUN:CONDITION (known: a, b | c, d)"),
        ("ab", "c", {}, "the runs have no condition in common; say which conditions to compare"),
        ("ab", "cd", {"condition_a": "c", "condition_b": "d"}, "run 11111111 has no condition 'c'"),
    ],
)
def test_where_it_is_not_clear_which_conditions_are_meant_it_asks(tmp_path, journals, first, second, asked, message):
    one = journals.table(tmp_path / "one", {name: [[1], [2]] for name in first}, run="11111111")
    two = journals.table(tmp_path / "two", {name: [[2], [2]] for name in second}, run="22222222")
    with pytest.raises(BadOption) as caught:
        compare(one, two, **asked)
    assert message in str(caught.value)
    if asked:
        assert "in common" not in str(caught.value)


@pytest.mark.parametrize("named", ["condition_a", "condition_b"])
def test_one_condition_of_a_run_is_not_compared_with_the_same_of_a_copy(tmp_path, journals, named):
    runs = [journals.table(tmp_path / name, {"a": [[1], [2]], "b": [[2], [2]]}) for name in ("one", "copy")]
    with pytest.raises(BadOption, match="say which conditions to compare"):
        compare(*runs, **{named: "a"})
