"""What a scorer announces is what its results are held to, in a run, in `karat check` and in a test of one's own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.analysis import summarize
from karat.config import load
from karat.errors import BadPlugin, JudgeFault
from karat.execution import run_experiment
from karat.records import Metric
from karat.scorers import Verdict, announced, as_verdicts
from karat.testing import check_scorer

WORDS = Metric(name="words", low=0, high=100, direction="lower")
SHARE = Metric(name="right", kind="share")


@pytest.mark.parametrize(
    ("scored", "metrics", "values"),
    [
        pytest.param(7, (WORDS,), {"words": 7}, id="a number is the one metric, whatever the scorer's name"),
        pytest.param(True, (SHARE,), {"right": True}, id="so is a bool"),
        pytest.param(7, (), {"brevity": 7}, id="without an announced metric it has the scorer's name"),
        pytest.param(None, (WORDS, SHARE), {"words": None, "right": None}, id="None: no metric could be scored"),
        pytest.param({"words": 3}, (WORDS, SHARE), {"words": 3}, id="some of several"),
        pytest.param({"else": 3}, (), {"else": 3}, id="anything, where nothing is announced"),
        pytest.param(float("nan"), (WORDS,), {"words": None}, id="no number is outside no bounds"),
        pytest.param(1 + 2e-16, (SHARE,), {"right": 1 + 2e-16}, id="rounding of a sum is not out of bounds"),
    ],
)
def test_a_result_is_the_metric_that_was_announced(scored: Any, metrics: tuple[Metric, ...], values: Any) -> None:
    assert as_verdicts(scored, name="brevity", metrics=metrics) == (Verdict(values=values),)


@pytest.mark.parametrize(
    ("scored", "kind", "message"),
    [
        pytest.param(
            {"wrods": 3},
            "unannounced_metric",
            "scorer 'brevity' announces words, right, but returned 'wrods' (did you mean 'words'?): "
            "name it in `metrics` too",
            id="another name",
        ),
        pytest.param(
            3,
            "unannounced_metric",
            "scorer 'brevity' announces words, right, but returned a bare number: return a mapping of metric to number",
            id="a number that could be either",
        ),
        pytest.param(
            {"words": 101},
            "out_of_bounds",
            "scorer 'brevity' returned 101 for 'words', which it announces as 0 to 100",
            id="above",
        ),
        pytest.param(
            [Verdict(values={"right": True}), Verdict(values={"right": -0.5})],
            "out_of_bounds",
            "scorer 'brevity' returned -0.5 for 'right', which it announces as 0 to 1",
            id="a share is between 0 and 1",
        ),
    ],
)
def test_what_was_not_announced_is_a_fault_of_the_scorer(scored: Any, kind: str, message: str) -> None:
    with pytest.raises(JudgeFault) as fault:
        as_verdicts(scored, name="brevity", metrics=(WORDS, SHARE))
    assert (fault.value.kind, fault.value.message, fault.value.retriable) == (kind, message, False)


def test_a_fault_of_the_scorer_keeps_what_the_verdict_cost() -> None:
    with pytest.raises(JudgeFault) as fault:
        as_verdicts(Verdict(values={"x": 1}, dollars=0.5), name="judge", metrics=(WORDS,))
    assert fault.value.dollars == 0.5


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (("words",), "`metrics` must be a tuple of karat.Metric, got ('words',)"),
        (WORDS, "`metrics` is a Metric, expected a tuple of them: metrics = (Metric(…),)"),
        ((WORDS, WORDS), "announces the metric 'words' twice"),
        ((Metric(name="x", low=2, high=1),), "metric 'x': low (2) is above high (1)"),
        ((Metric(name="x", direction="down"),), "metrics[0] is not a valid Metric"),  # type: ignore[arg-type]
    ],
)
def test_metrics_that_mean_nothing_are_refused_before_the_run(metrics: Any, message: str) -> None:
    with pytest.raises(BadPlugin) as bad:
        announced(SimpleNamespace(metrics=metrics), "mine:Scorer")
    assert str(bad.value).startswith(f"mine:Scorer: {message}")


SCORERS = """
from karat import Metric, Verdict

class Brief:
    metrics = (Metric(name="words", low=0, direction="lower"),)
    def score(self, sample, answer):
        return len(answer.text.split())

class Typo(Brief):
    def score(self, sample, answer):
        return {"wrods": len(answer.text.split())}

class Beyond(Brief):
    metrics = (Metric(name="words", low=0, high=2),)

class Service(Typo):
    offline = False
"""
AGENT = """
def query(user_query, system_prompt, mcp_servers):
    return " ".join(["word"] * (int(user_query[1:]) + (40 if system_prompt == "long" else 4)))
"""


def experiment(folder: Path, scorer: str) -> Path:
    module = f"scorers_of_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(SCORERS + AGENT)
    rows = [f'{{"question": "q{number}", "answer": "words and some more"}}\n' for number in range(8)]
    (folder / "questions.jsonl").write_text("".join(rows))
    path = folder / "experiment.yaml"
    path.write_text(
        "name: brief\ndataset: {path: questions.jsonl}\n"
        f'agent: {{type: python, target: "{module}:query"}}\n'
        f'scorers: [{{type: "{module}:{scorer}", name: brevity}}]\n'
        "conditions: {short: {system_prompt: short}, long: {system_prompt: long}}\n"
        "execution: {num_repetitions: 1, max_failures: 100}\n"
    )
    return path


def test_a_number_under_another_name_keeps_its_direction_and_bounds(tmp_path: Path) -> None:
    run = asyncio.run(run_experiment(load(experiment(tmp_path, "Brief")), results=tmp_path / "results")).run
    summary = summarize(run)
    (metric,) = summary.metrics
    assert (metric.key, metric.scorer, metric.direction, metric.low) == ("words", "brevity", "lower", 0)
    assert summary.headline.startswith("short beats long on words by 36.00")


@pytest.mark.parametrize(("scorer", "kind"), [("Typo", "unannounced_metric"), ("Beyond", "out_of_bounds")])
def test_a_result_that_was_not_announced_gives_no_score_and_says_why(tmp_path: Path, scorer: str, kind: str) -> None:
    run = asyncio.run(run_experiment(load(experiment(tmp_path, scorer)), results=tmp_path / "results")).run
    summary = summarize(run)
    assert (summary.total.ledger.scored, summary.total.ledger.judge) == (0, 16)
    assert [(found.kind, found.trials) for found in summary.failures] == [(kind, 16)]


def test_a_scorer_of_ones_own_is_held_to_what_it_announces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = experiment(tmp_path, "Brief")
    monkeypatch.syspath_prepend(tmp_path)
    mine = __import__(next(path.parent.glob("scorers_of_*.py")).stem)
    assert {max(verdict.values.values()) for verdict in check_scorer(mine.Brief())} >= {0, 4}
    with pytest.raises(AssertionError, match="announces words, but returned 'wrods'"):
        check_scorer(mine.Typo(), name="brevity")
    with pytest.raises(AssertionError, match=r"returned 4 for 'words', which it announces as 0 to 2"):
        check_scorer(mine.Beyond())
    del sys.modules[mine.__name__]


def test_a_scorer_of_ones_own_says_the_same_of_the_same_answer() -> None:
    class Moody:
        metrics = (Metric(name="calls"),)
        calls = 0

        def score(self, sample: Any, answer: Any) -> int:
            self.calls += 1
            return self.calls

    with pytest.raises(AssertionError, match="is scored differently the second time"):
        check_scorer(Moody())


def test_a_fault_that_a_scorer_raises_is_a_result_and_a_crash_is_none() -> None:
    class Refusing:
        def score(self, sample: Any, answer: Any) -> bool:
            if not answer.text:
                raise JudgeFault("no_text", "there is nothing to score")
            return "40" in answer.text

    class Crashing:
        def score(self, sample: Any, answer: Any) -> float:
            return 1 / len(answer.text.strip())

    assert {verdict.values["scorer"] for verdict in check_scorer(Refusing())} == {False}
    with pytest.raises(AssertionError, match="the answer '': ZeroDivisionError"):
        check_scorer(Crashing())
