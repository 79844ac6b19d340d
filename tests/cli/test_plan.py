"""`karat plan`, `karat compare --history` and `karat compare` of many: what they print, and what they refuse."""

from __future__ import annotations

import pytest


@pytest.fixture
def pilot(here, journals):
    """A run whose two conditions differ by 0 to 2 points."""
    scores = {"base": [[1 + row % 3] for row in range(12)], "other": [[2 + row % 2] for row in range(12)]}
    journals.table(here / "results" / "pilot", scores)
    return "results/pilot"


def test_a_run_plans_the_next(karat, pilot):
    done = karat("plan", pilot, "--difference", "0.5", "--questions", "10", "--questions", "20", "--json")
    assert done.code == 0
    made = done.json
    assert [design["questions"] for design in made["designs"]] == [10, 20]
    assert made["designs"][0]["detectable"] > made["designs"][1]["detectable"]
    assert made["needed"][-1]["power"] >= 0.8
    shown = karat("plan", pilot, "--difference", "0.5")
    assert f"To show 0.50: {made['needed'][-1]['questions']} questions" in shown.out
    assert "What a run of each size shows" in shown.out


@pytest.mark.parametrize(
    ("repeated", "asked", "shown"),
    [(3, (), {1}), (3, ("3",), {3}), (3, ("2", "5"), {2, 5}), (1, (), {1}), (1, ("4",), {4})],
    ids=["steady: one", "steady: 3 asked", "steady: 2 and 5 asked", "once: one", "once: 4 asked"],
)
def test_repetitions_are_those_asked_for_or_one_where_they_do_not_vary(karat, here, journals, repeated, asked, shown):
    scores = {
        "base": [[1 + row % 3] * repeated for row in range(12)],
        "other": [[2 + row % 2] * repeated for row in range(12)],
    }
    journals.table(here / "results" / "steady", scores)
    options = [word for k in asked for word in ("--repetitions", k)]
    done = karat("plan", "results/steady", "--difference", "0.5", *options, "--json")
    for designs in (done.json["designs"], done.json["needed"]):
        assert {design["repetitions"] for design in designs} == shown
    text = " ".join(karat("plan", "results/steady", *options).out.split())
    assert ("Repeated answers to a question did not differ in this run" in text) == (repeated > 1)
    assert ("what repetitions would change is not known" in text) == (repeated == 1)


@pytest.mark.slow
def test_a_run_without_variation_plans_nothing(karat, run):
    refused = karat("plan", run)
    assert (refused.code, refused.out) == (2, "")
    assert "every question has the same difference; leave out RUN and assume a value with --sd-questions" in refused.err


def test_a_plan_from_assumed_variation(karat, here):
    done = karat("plan", "--sd-questions", "0.8", "--difference", "0.4", "--cost", "0.01", "--chart", "plan.svg")
    assert done.code == 0
    assert "To show 0.40: 34 questions × 1 repetition, $0.68." in done.out  # G*Power: 34 for dz 0.5, power 0.8
    assert (here / "plan.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_plan_without_a_difference_says_what_its_sizes_show(karat, here):
    done = karat("plan", "--sd-questions", "0.8", "--questions", "50", "--questions", "200")
    text = " ".join(done.out.split())
    for line in [
        "50 questions × 1 repetition show a difference of 0.32 or more in 80 % of runs.",
        "200 questions × 1 repetition show a difference of 0.16 or more in 80 % of runs.",
    ]:
        assert line in text
    beyond = karat("plan", "--sd-questions", "1e9", "--difference", "1e-9")
    assert (beyond.code, beyond.out.splitlines()[0]) == (0, "To show 1.0e-09: more questions than can be counted.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--sd-questions: is required without RUN: how much differences vary"),
        (["nowhere"], "there is no such file or folder"),
        (["latest", "--sd-answers", "1"], "--sd-answers: is only for a plan without RUN"),
        (["latest", "--metric", "qualty"], "has no metric 'qualty'"),
        (["latest", "--pair", "guess", "ad"], "has no condition 'ad' (did you mean 'add'?)"),
        (["--sd-questions", "1", "--metric", "x"], "--metric: needs a RUN"),
        (["--sd-questions", "-1"], "-1"),
        (["--sd-questions", "0"], "0.0 is not in the range"),
        (["--sd-questions", "nan"], "--sd-questions: must be a finite number, got nan"),
        (["--sd-questions", "1", "--difference", "inf"], "--difference: must be a finite number, got inf"),
        (["--sd-questions", "1", "--power", "0.01"], "--power: must be above --alpha (0.05), got 0.01"),
    ],
)
def test_what_cannot_be_planned_is_refused(karat, run, arguments, message):
    done = karat("plan", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "bug in karat" not in done.err


def test_the_history_of_one_run_says_that_it_is_short(karat, run):
    done = karat("compare", "--history", "--json")
    assert done.code == 0
    assert (done.json["runs"], done.json["left_out"]) == (1, 0)
    shown = karat("compare", "--history", "--condition", "add")
    assert "needs 10 runs to detect a change" in shown.out
    refused = karat("compare", "--history", "nowhere")
    assert (refused.code, "nowhere is not a folder" in refused.err) == (2, True)
    assert "no metric 'x'" in karat("compare", "--history", "--metric", "x").err


def test_one_run_ranks_its_conditions(karat, run):
    done = karat("compare", run, "--json")
    assert done.code == 0
    assert {entry["condition"] for entry in done.json["entries"]} == {"guess", "add"}
    shown = karat("compare", f"{run}:add", ":guess", f"{run}:add", "--metric", done.json["metric"])
    assert "groups" in shown.out
    refused = karat("compare", f"{run}:add", ":guess", "--metric", "completeness")
    assert (refused.code, "--metric: is for three or more" in refused.err) == (2, True)
    alone = karat("compare", f"{run}:add")
    assert (alone.code, "ranks 2 conditions or more, got 1" in alone.err) == (2, True)
