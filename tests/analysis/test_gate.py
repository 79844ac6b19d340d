"""Thresholds decided on intervals: passed, failed, undecided, and how often that is wrong."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from karat import summarize
from karat.analysis.gate import gate
from karat.analysis.thresholds import Threshold
from karat.document.gated import check_line
from karat.errors import BadOption
from karat.records import Metric, Reply

RIGHT = Metric(name="right", kind="share")
ERRORS = Metric(name="errors", low=0, high=10, direction="lower", kind="ordinal")
WORDS = Metric(name="words", low=0, direction="lower")


def at_least(value, name="completeness"):
    return Threshold(name=name, bound="min", value=value)


def at_most(value, name="completeness"):
    return Threshold(name=name, bound="max", value=value)


def drop(value, name="completeness"):
    return Threshold(name=name, bound="max_drop", value=value)


@pytest.fixture
def run(journals, tmp_path):
    """`run(a=[[4, 5], …])`: condition → questions → repetitions; None: the trial failed."""
    count = itertools.count()

    def made(metric=None, **scores):
        more = {} if metric is None else {"metric": metric}
        return summarize(journals.table(tmp_path / str(next(count)), scores, **more))

    return made


def varied(seed, n, k=1, around=4.0):
    rng = np.random.default_rng(seed)
    return np.clip(np.rint(rng.normal(around, 0.8, (n, k))), 1, 5).tolist()


def only(decided):
    (check,) = decided.checks
    return check


def test_bounds_of_a_mean_are_students_and_one_sided(run):
    scores = np.random.default_rng(1).uniform(1, 5, (40, 3)).tolist()
    means = np.mean(scores, axis=1)
    check = only(gate(run(a=scores), [at_least(3.9)]))
    reach = stats.t.ppf(0.95, 39) * means.std(ddof=1) / np.sqrt(40)
    assert (check.low, check.high) == pytest.approx((means.mean() - reach, means.mean() + reach))
    assert (check.value, check.questions, check.missing) == (pytest.approx(means.mean()), 40, 0)


@pytest.mark.parametrize(("limit", "verdict"), [(3.0, "passed"), (4.0, "undecided"), (4.9, "failed")])
def test_a_mean_passes_fails_or_is_undecided(run, limit, verdict):
    summary = run(a=varied(2, 60))
    assert gate(summary, [at_least(limit)]).verdict == verdict
    mirrored = {"passed": "failed", "failed": "passed", "undecided": "undecided"}
    assert gate(summary, [at_most(limit)]).verdict == mirrored[verdict]


def test_a_threshold_without_a_condition_is_for_each(run):
    decided = gate(run(good=varied(3, 50, around=4.5), poor=varied(4, 50, around=2)), [at_least(3.5)])
    assert [(check.condition, check.verdict) for check in decided.checks] == [("good", "passed"), ("poor", "failed")]
    assert decided.verdict == "failed"
    assert gate(run(good=varied(3, 50, around=4.5)), [at_least(3.5, "good.completeness")]).verdict == "passed"


@pytest.mark.parametrize(
    ("threshold", "warned"),
    [
        (at_least(42), "completeness at least 42: outside of what it can be, 1 to 5"),
        (at_most(0), "completeness at most 0: outside of what it can be, 1 to 5"),
        (drop(4.5), "completeness drops by at most 4.5: outside of what it can be, 0 to 4"),
        (at_least(5), None),
        (drop(4), None),
        (at_most(7, "failed"), None),
    ],
)
def test_a_threshold_outside_of_the_scale_is_warned_of(run, threshold, warned):
    decided = gate(run(a=varied(1, 20)), [threshold], no_baseline="none")
    assert [one for one in decided.warnings if "outside" in one] == [warned] * (warned is not None)


def test_a_share_in_percent_is_warned_of_with_what_was_meant(run):
    decided = gate(run(metric=RIGHT, a=[[1], [0]] * 10), [at_least(90, "right")])
    assert decided.warnings[0] == "right at least 90: outside of what it can be, 0 to 1 (0.9, or 90%, is a share)"


def test_holm_holds_back_failures_and_nothing_else(run):
    scores = varied(5, 30)
    bound = only(gate(run(a=scores), [at_least(1)])).high
    summary = run(**dict.fromkeys("abcdefgh", scores))
    just_missed = gate(summary, [at_least(bound + 1e-6)])
    assert {check.verdict for check in just_missed.checks} == {"undecided"}
    assert "not among so many thresholds" in just_missed.checks[0].reason
    assert only(gate(run(a=scores), [at_least(bound + 1e-6)])).verdict == "failed"
    low = only(gate(run(a=scores), [at_least(1)])).low
    assert gate(summary, [at_least(low)]).verdict == "passed"  # eight bounds, none of them adjusted


def test_a_share_has_the_bounds_of_clopper_and_pearson(run):
    check = only(gate(run(RIGHT, a=[[True]] * 48 + [[False]] * 2), [at_least(0.8, "right")]))
    exact = stats.binomtest(48, 50).proportion_ci(0.9, "exact")
    assert (check.low, check.high, check.percent) == (pytest.approx(exact.low), pytest.approx(exact.high), True)


def test_perfect_answers_do_not_pass_a_threshold_at_the_end_of_the_scale(run):
    check = only(gate(run(a=[[5]] * 30), [at_least(4.9)]))
    assert (check.verdict, check.value) == ("undecided", 5.0)
    assert check.high == 5.0  # no bound beyond the scale


def test_missing_trials_count_as_worst_and_as_best(run):
    scores = varied(6, 40, 2)
    for row in range(0, 40, 4):
        scores[row][1] = None
    scores[3] = [None, None]
    check = only(gate(run(a=scores), [at_least(3.5)]))
    worst, best = ([[end if value is None else value for value in row] for row in scores] for end in (1, 5))
    assert check.low == pytest.approx(only(gate(run(a=worst), [at_least(3.5)])).low)
    assert check.high == pytest.approx(only(gate(run(a=best), [at_least(3.5)])).high)
    assert (check.missing, check.questions) == (12, 39)
    assert only(gate(run(a=[[None]] * 5 + [[5]] * 2), [at_least(2)])).verdict == "undecided"


def test_missing_trials_of_a_metric_without_a_range_are_never_passed(run):
    check = only(gate(run(WORDS, a=[[3.0]] * 20 + [[None]]), [at_most(100, "words")]))
    assert (check.verdict, check.high) == ("undecided", None)
    assert "no range" in check.reason
    assert (
        only(gate(run(WORDS, a=[[200.0 + n] for n in range(20)] + [[None]]), [at_most(1, "words")])).verdict == "failed"
    )


def test_an_amount_without_an_upper_end_has_skewed_bounds(run):
    amounts = np.random.default_rng(7).lognormal(1, 0.8, (60, 1))
    assert only(gate(run(WORDS, a=amounts.tolist()), [at_most(9, "words")])).method == "Hall"


def test_totals_are_compared_as_they_are(run):
    summary = run(a=[[5], [None]], b=[[5], [4]])
    decided = gate(summary, [at_most(0.25, "failed"), at_most(0.3, "a.failed"), at_most(0, "cost_usd")])
    assert [(check.verdict, check.value) for check in decided.checks] == [
        ("passed", 0.25), ("failed", 0.5), ("passed", 0.0),
    ]  # fmt: skip


def test_times_of_answers_are_totals_in_seconds_and_unknown_without_answers(run):
    summary = run(a=[[5], [None]], b=[[None], [None]])
    latency = msgspec.structs.replace(summary.accounts["a"].latency, median=2.0, p95=31.5)
    account = msgspec.structs.replace(summary.accounts["a"], latency=latency)
    timed = msgspec.structs.replace(summary, accounts={**summary.accounts, "a": account})
    names = ("a.latency_p50", "a.latency_p95", "b.latency_p95")
    checks = gate(timed, [at_most(20, name) for name in names]).checks
    assert [(check_line(check), check.reason) for check in checks] == [
        ("latency_p50 at most 20 under a: passed, 2.0 s", None),
        ("latency_p95 at most 20 under a: failed, 31.5 s", None),
        ("latency_p95 at most 20 under b: undecided, –", "no answer has a time"),
    ]


def test_a_slow_condition_does_not_hide_behind_a_fast_one(run):
    summary = run(a=[[5], [5]], b=[[5], [5]])
    accounts = {}
    for name, seconds in (("a", 2.0), ("b", 31.5)):
        latency = msgspec.structs.replace(summary.accounts[name].latency, median=seconds, p95=seconds)
        accounts[name] = msgspec.structs.replace(summary.accounts[name], latency=latency)
    timed = msgspec.structs.replace(summary, accounts=accounts)
    assert [check_line(check) for check in gate(timed, [at_most(20, "latency_p95")]).checks] == [
        "latency_p95 at most 20 under a: passed, 2.0 s",
        "latency_p95 at most 20 under b: failed, 31.5 s",
    ]


def test_a_run_that_stopped_because_it_was_decided_is_not_taken_for_whole(run):
    summary = run(a=[[4]] * 30 + [[None]] * 30)
    account = summary.accounts["a"]
    ledger = msgspec.structs.replace(account.ledger, agent=0, decided=30)
    account = msgspec.structs.replace(account, ledger=ledger)
    stopped = msgspec.structs.replace(summary, accounts={"a": account}, total=account)
    check = only(gate(stopped, [at_least(3)]))
    assert (check.verdict, check.missing) == ("undecided", 30)
    assert "`execution.stop`" in check.reason
    assert only(gate(stopped, [at_most(0, "failed")])).verdict == "passed"


def test_an_unknown_cost_is_never_passed(journals, tmp_path):
    script = journals.Script(tmp_path, samples=2, conditions=("a",))
    for row in range(2):
        script.answer(row, "a", reply=Reply(text="x", dollars=0.5 if row else None))
        script.score(row, "a", value=4)
    summary = summarize(script.end())
    assert only(gate(summary, [at_most(1, "cost_usd")])).verdict == "undecided"
    assert only(gate(summary, [at_most(0.4, "cost_usd")])).verdict == "failed"
    assert "no known price" in only(gate(summary, [at_most(1, "cost_usd")])).reason


def test_a_drop_is_paired_by_question(run):
    old = varied(8, 60, 2)
    new = [[max(1, value - (row % 4 == 0)) for value in values] for row, values in enumerate(old)]
    check = only(gate(run(a=new), [drop(0.5)], baseline=run(a=old)))
    change = np.mean(new, axis=1) - np.mean(old, axis=1)
    reach = stats.t.ppf(0.95, 60) * np.append(change, -4).std(ddof=1) / np.sqrt(61)  # most are equal: a pseudo-value
    assert check.value == pytest.approx(change.mean())
    assert check.low == pytest.approx(np.append(change, -4).mean() - reach)
    assert check.verdict == "passed"
    assert gate(run(a=new), [drop(0.05)], baseline=run(a=old)).verdict in ("failed", "undecided")


def test_a_drop_of_what_is_better_when_lower_is_a_rise(run):
    old, new = [[n % 3] for n in range(60)], [[n % 3 + 3] for n in range(60)]
    better, worse = run(ERRORS, a=old), run(ERRORS, a=new)
    assert only(gate(worse, [drop(1, "errors")], baseline=better)).verdict == "failed"
    check = only(gate(better, [drop(0, "errors")], baseline=worse))
    assert (check.verdict, check.value) == ("passed", 3.0)


@pytest.mark.parametrize("metric", [RIGHT, ERRORS])
def test_missing_trials_of_both_runs_count_as_worst_and_as_best_of_a_drop(run, metric):
    rng = np.random.default_rng(9)
    old, new = (rng.integers(0, 2, (30, 2)).tolist() for _ in range(2))
    old[0][0] = new[5][1] = None
    low, high = (1, 0) if metric is RIGHT else (0, 10)  # the best of the old run makes the drop the largest
    worst_old, worst_new = (low, 1 - low) if metric is RIGHT else (low, high)

    def filled(scores, end):
        return [[end if value is None else value for value in row] for row in scores]

    check = only(gate(run(metric, a=new), [drop(0.1, metric.name)], baseline=run(metric, a=old)))
    worst = gate(
        run(metric, a=filled(new, worst_new)), [drop(0.1, metric.name)], baseline=run(metric, a=filled(old, worst_old))
    )
    best = gate(
        run(metric, a=filled(new, worst_old)), [drop(0.1, metric.name)], baseline=run(metric, a=filled(old, worst_new))
    )
    assert check.low == pytest.approx(only(worst).low)
    assert check.high == pytest.approx(only(best).high)
    assert check.missing == 2


def test_questions_that_changed_are_left_out_of_a_drop(journals, tmp_path):
    scores = {"a": varied(10, 20)}
    old = summarize(journals.table(tmp_path / "old", scores))
    samples = [journals.sample(n, digest=f"{n + 99:032x}" if n < 5 else None) for n in range(20)]
    new = summarize(journals.table(tmp_path / "new", scores, samples=samples))
    check = only(gate(new, [drop(0.5)], baseline=old))
    assert check.questions == 15
    assert "left out: 10" in check.reason


def test_a_baseline_that_was_scored_otherwise_decides_nothing(run):
    new, old = run(a=varied(11, 50)), run(a=varied(11, 50))
    infos = tuple(msgspec.structs.replace(info, scoring="ff" * 16) for info in old.metrics)
    check = only(gate(new, [drop(3)], baseline=msgspec.structs.replace(old, metrics=infos)))
    assert (check.verdict, check.p_failed) == ("undecided", None)
    assert "scored differently" in check.reason


def test_scores_of_a_condition_whose_servers_failed_pass_nothing(run):
    from karat.analysis.model import ServerProblem

    summary = run(a=varied(12, 50))
    broken = msgspec.structs.replace(
        summary, server_problems=(ServerProblem(condition="a", answers=50, calls=60, errors=60),)
    )
    assert gate(summary, [at_least(2)]).verdict == "passed"
    check = only(gate(broken, [at_least(2)]))
    assert check.verdict == "undecided"
    assert "MCP" in check.reason


def test_rates_over_turns_are_those_of_the_report():
    for name in ("demo", "live-conversations", "looked-up-conversations", "recorded-conversations"):
        path = Path(__file__).parents[1] / "corpus" / "runs" / name
        summary = summarize(path)
        keys = [info.key for info in summary.metrics]
        decided = gate(summary, [at_least(0, key) for key in keys])
        for check in decided.checks:
            mean = summary.result(check.condition, check.metric).mean.value
            assert check.value == (None if mean is None else pytest.approx(mean)), (path, check.metric)


@pytest.mark.parametrize(
    ("thresholds", "because"),
    [
        ([], "no threshold: name some with --min, --max or --max-drop"),
        ([at_least(1, "completness")], "did you mean 'completeness'"),
        ([at_least(1, "b.completeness")], "no condition is called 'b'"),
        ([drop(0.1)], "needs a run to compare with: --baseline RUN"),
        ([drop(0.1, "cost_usd")], "cost_usd has no drop: set a --max"),
    ],
)
def test_what_cannot_be_decided_is_refused(run, thresholds, because):
    with pytest.raises(BadOption) as refused:
        gate(run(a=[[4], [5]]), thresholds)
    assert because in str(refused.value)


def test_without_any_baseline_a_drop_is_undecided_and_says_why(run):
    decided = gate(run(a=[[4], [5]]), [drop(0.1), at_least(1)], no_baseline="no earlier run")
    assert [check.reason for check in decided.checks] == ["no earlier run", None]
    assert decided.verdict == "undecided"


@pytest.mark.parametrize(
    ("scores", "limit", "needed"),
    [
        ([5] * 10, 4.2, 14),  # 0.8 ** 14 is below 0.05
        ([5] * 10, 5.0, None),  # no number of perfect answers proves a perfect agent
        ([3, 5] * 5, 4.0, None),  # the mean is the threshold
        ([1, 5] * 3, 2.9, 2_970),  # (1.645 + 0.842)² · 4.8 / 0.1² + 1.645² / 2
    ],
)
def test_the_note_says_how_many_questions_decide_or_that_none_would(run, scores, limit, needed):
    (check,) = gate(run(a=[[score] for score in scores]), [at_least(limit)]).checks
    assert check.verdict == "undecided"
    assert check.needed == needed


def test_the_needed_questions_decide_four_runs_of_five():
    rng = np.random.default_rng(13)
    from karat.analysis.gate import _needed

    n = _needed(0.2, 1.0)
    decided = [stats.ttest_1samp(rng.normal(0.2, 1, n), 0, alternative="greater").pvalue <= 0.05 for _ in range(1000)]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.03)
    assert _needed(0.0, 1.0) is None
    assert _needed(1e-4, 1.0) is None


# How often it errs: 1,000 experiments; benchmarks/decisions.py has more sizes and shapes.

MOST = 0.064  # 5 % and two standard errors


def simulated(template, values):
    """The run with other question means."""
    table = template.table_of_samples
    (column,) = table.columns
    column = msgspec.structs.replace(column, mean=list(values), n=[1] * len(values))
    return msgspec.structs.replace(template, table_of_samples=msgspec.structs.replace(table, columns=(column,)))


@pytest.mark.slow
@pytest.mark.parametrize("best", [0.5, 0.95])
def test_a_mean_at_the_threshold_is_rarely_passed_or_failed(run, best):
    template = run(a=[[4]] * 50)
    rng = np.random.default_rng(int(100 * best))
    p = np.append((1 - best) * np.array([0.4, 0.3, 0.2, 0.1]), best)
    truth = float(p @ [1, 2, 3, 4, 5])
    verdicts = [
        gate(simulated(template, (rng.choice(5, 50, p=p) + 1.0).tolist()), [at_least(truth)]).verdict
        for _ in range(1000)
    ]
    assert verdicts.count("passed") <= MOST * 1000
    assert verdicts.count("failed") <= MOST * 1000


@pytest.mark.slow
def test_a_drop_at_the_threshold_is_rarely_passed_or_failed(run):
    template, rng = run(a=[[4]] * 60), np.random.default_rng(14)
    verdicts = []
    for _ in range(1000):
        old = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], 60, p=[0.02, 0.03, 0.1, 0.25, 0.6])
        new = np.where(rng.random(60) < 0.1, np.maximum(old - 1, 1), old)
        truth = 0.1 * (1 - 0.02)  # one question in ten loses a point, if it has one to lose
        decided = gate(simulated(template, new.tolist()), [drop(truth)], baseline=simulated(template, old.tolist()))
        verdicts.append(decided.verdict)
    assert verdicts.count("passed") <= MOST * 1000
    assert verdicts.count("failed") <= MOST * 1000


def test_missing_trials_that_would_have_failed_pass_nothing_that_is_violated(run):
    """Trials go missing where the answer is bad: the mean over the others is above the threshold, the truth is not."""
    template, rng, passed = run(RIGHT, a=[[True]] * 80), np.random.default_rng(15), 0
    for _ in range(500):
        right = rng.random(80) < 0.8
        seen = [None if not value and rng.random() < 0.5 else float(value) for value in right]
        summary = simulated(template, [0.0] * 80)
        table = summary.table_of_samples
        column = msgspec.structs.replace(table.columns[0], mean=seen, n=[0 if value is None else 1 for value in seen])
        summary = msgspec.structs.replace(summary, table_of_samples=msgspec.structs.replace(table, columns=(column,)))
        passed += gate(summary, [at_least(0.8, "right")]).verdict == "passed"
    assert passed <= MOST * 500


@pytest.mark.parametrize(("n", "undecided"), [(50, 0.60), (100, 0.37), (200, 0.12)])
def test_how_many_are_undecided_at_a_margin_of_a_fifth_of_the_spread(run, n, undecided):
    metric = Metric(name="score", low=-100, high=100, kind="ordinal")
    template, rng = run(metric, a=[[4]] * n), np.random.default_rng(n)
    verdicts = [
        gate(simulated(template, rng.normal(0.2, 1, n).tolist()), [at_least(0, "score")]).verdict for _ in range(500)
    ]
    assert verdicts.count("undecided") / 500 == pytest.approx(undecided, abs=0.06)


def test_a_threshold_with_a_condition_is_for_that_one_alone(run):
    summary = run(a=[[5], [5], [4]], b=[[1], [1], [2]])
    one = only(gate(summary, [at_least(1, "b.completeness")]))
    assert (one.condition, one.verdict) == ("b", "passed")
    spent = only(gate(summary, [at_most(100, "a.cost_usd")]))
    assert spent.condition == "a"


def test_a_condition_that_answers_as_the_baseline_did_has_no_drop_by_chance(run):
    few = {"a": [[5], [1]], "b": [[5], [1]]}
    new, old = run(**few), run(**few)
    undecided = gate(new, [drop(0.5)], baseline=old)
    assert [check.verdict for check in undecided.checks] == ["undecided", "undecided"]
    known = gate(new, [drop(0.5)], baseline=old, unchanged=["a"])
    assert [(check.condition, check.verdict) for check in known.checks] == [("a", "passed"), ("b", "undecided")]
    same = known.checks[0]
    assert same.reason is not None
    assert same.reason.startswith("unchanged: every answer is the baseline's, byte by byte")
    assert (same.p_failed, same.needed) == (None, None)


def test_equal_answers_with_a_larger_drop_or_missing_trials_do_not_pass(run):
    old = run(a=[[5], [5], [5], [4]])
    worse = gate(run(a=[[1], [1], [2], [1]]), [drop(0.5)], baseline=old, unchanged=["a"])
    assert only(worse).verdict != "passed"
    lost = gate(run(a=[[5], [5], [5], [None]]), [drop(0.5)], baseline=old, unchanged=["a"])
    assert only(lost).verdict != "passed"


@pytest.mark.parametrize(
    ("thresholds", "because"),
    [
        ([drop(0.1)], "--max-drop: needs a run to compare with: --baseline RUN, or `gate.baseline` in the file"),
        ([drop(0.1, "cost_usd")], "--max-drop: cost_usd has no drop: set a --max"),
        ([at_least(1, "c.completeness")], "no condition is called 'c'"),
        ([], "gate: no threshold: name some with --min, --max or --max-drop"),
    ],
)
def test_a_threshold_that_nothing_can_decide_is_refused(run, thresholds, because):
    with pytest.raises(BadOption) as refused:
        gate(run(a=[[5], [4]]), thresholds)
    assert because in str(refused.value)


def test_a_drop_of_what_the_baseline_does_not_have_is_refused(run):
    ours = run(a=[[5], [4]], b=[[5], [4]])
    with pytest.raises(BadOption, match=r"--baseline: run .* has no 'completeness' under 'b'"):
        gate(ours, [drop(0.1, "b.completeness")], baseline=run(a=[[5], [4]]))
    with pytest.raises(BadOption, match=r"has no 'completeness' under 'a'"):
        gate(ours, [drop(0.1, "a.completeness")], baseline=run(WORDS, a=[[5], [4]]))
    neither = Metric(name="tone", low=1, high=5)
    toned = run(msgspec.structs.replace(neither, direction="none"), a=[[5], [4]])
    with pytest.raises(BadOption, match="'tone' is better in no direction: set a --min or a --max"):
        gate(toned, [drop(0.1, "tone")], baseline=toned)


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [
        (at_most(0.3, "failed"), "passed"),
        (at_most(0.25, "failed"), "passed"),
        (at_most(0.2, "failed"), "failed"),
        (at_least(0.25, "failed"), "passed"),
        (at_least(0.3, "failed"), "failed"),
    ],
)
def test_a_total_at_its_threshold_meets_it(run, threshold, verdict):
    assert only(gate(run(a=[[5], [4], [5], [None]]), [threshold])).verdict == verdict
