"""`karat import deepeval`: test runs saved by DeepEval.

Source of the format: `deepeval.test_run.TestRun` of version 4.3.1, in
`.deepeval/.latest_test_run.json` (under `testRunData`) and in the files of its results folder (the
test run itself); `deepeval.test_run.cache.CachedTestRun` in `.deepeval/.deepeval-cache.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import Metric, Reply, ToolCall
from karat.sums import sum_of_known
from karat_imports.importers._chats import unpacked
from karat_imports.importers._reading import (
    bad_file,
    by_name,
    digest,
    document,
    each_readable,
    items,
    repeats,
    sample_name,
    title,
)

__all__ = ["Deepeval"]

_HEAD = re.compile(
    rb'\s*\{\s*(?:"testRunData"\s*:\s*\{\s*)?(?:"testFile"\s*:[^,]*,\s*)?"testCases"\s*:\s*\['
)
_CACHE = re.compile(rb'\s*\{\s*"test_cases_lookup_map"\s*:\s*\{')
_BY_RULE = ("Exact Match", "Pattern Match")
_WHOLE = "deepeval"  # the scorer of a whole test case: all its metrics together


class Deepeval:
    """A test run of DeepEval: .deepeval/.latest_run_full.json, .deepeval-cache.json, or a file of
    its results folder.
    """

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _HEAD.match(head) is not None or _CACHE.match(head) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run.

        Each file is a condition, named after its identifier, else its model, else the file.
        """
        files = each_readable(paths, _File, findings)
        named = by_name([file.name for file in files], files)
        scales = _Scales(findings)
        yield ImportedRun(
            name=files[0].name,
            tool="deepeval",
            trials=scales.filled(
                trial
                for name, file in named.items()
                for trial in file.trials(name, findings, scales)
            ),
            metrics=scales.metrics,
            stated=[file.stated(name) for name, file in named.items()],
            conditions={
                name: ImportedCondition(
                    model=file.run.at("hyperparameters").text("model"),
                    detail={key: file.run.get(key) for key in ("hyperparameters", "prompts")},
                )
                for name, file in named.items()
            },
            dataset=files[0].run.text("datasetAlias") or "",
            detail={
                file.path.name: file.run.without(
                    "testCases", "conversationalTestCases", "test_cases_lookup_map"
                )
                for file in files
            },
        )


class _File:
    def __init__(self, path: Path) -> None:
        root = document(path, "testRunData", "testCases")
        self.path = path
        self._above = ("testRunData",) if root.at("testRunData") else ()
        self.run = root.at("testRunData") or document(path, "testCases")
        self._cached = self.run.at("test_cases_lookup_map")
        if not isinstance(self.run.get("testCases"), list) and not self._cached:
            raise bad_file(path, "holds no test run of DeepEval (expected testCases)")
        model = self.run.at("hyperparameters").text("model")
        self.name = self.run.text("identifier") or model or title(path)

    def stated(self, condition: str) -> Stated:
        """The number of test cases that passed and failed, and the scores of each metric."""
        passed = self.run.count("testPassed")
        failed = self.run.count("testFailed")
        trials = None
        if passed is not None and failed is not None:
            trials = passed + failed
        means: dict[tuple[str, str], float] = {}
        for row in self.run.list("metricsScores"):
            name = row.text("metric") or ""
            scores = row.get("scores")
            if isinstance(scores, list):
                total = sum_of_known(Json({name: score}).number(name) for score in scores)
                if total is not None:
                    means[name, name] = total / len(scores)

        return Stated(file=self.path.name, conditions=(condition,), trials=trials, means=means)

    def _of_cache(self) -> Iterator[tuple[str, Json]]:
        """The test cases of a cache, as a test run has them: their keys are JSON of what was
        tested.
        """
        for number, (key, cached) in enumerate(self._cached.items(), start=1):
            tested = Json(unpacked(key))
            metrics = Json(cached).list("cached_metrics_data")
            case = {}
            for name, value in tested.items():
                case[_CACHED_NAMES.get(name, name)] = value

            found = [metric.at("metric_data") for metric in metrics]
            yield f"{self.path.name}, test case {number}", Json({**case, "metricsData": found})

    def trials(
        self, condition: str, findings: Findings, scales: _Scales
    ) -> Iterator[ImportedTrial]:
        for source in (
            items(self.path, *self._above, "testCases", findings=findings),
            items(self.path, *self._above, "conversationalTestCases", findings=findings),
            self._of_cache(),
        ):
            for place, case in source:
                turns = case.list("turns")
                users = []
                for turn in turns:
                    if turn.text("role") == "user":
                        users.append(turn)

                question = case.text("input", "scenario") or (
                    users[0].text("content") if users else None
                )
                if question is None:
                    findings.lose("test case without an input", place)
                    continue

                golden = case.text("expectedOutput", "expectedOutcome")
                identity = digest([question, golden, case.get("context")])
                scores, failed = _scores(case, scales)
                if self._cached:  # it holds no result of the whole
                    scores = [score for score in scores if score.scorer != _WHOLE]
                yield ImportedTrial(
                    sample=sample_name(question, identity),
                    question=question,
                    golden=golden,
                    condition=condition,
                    reply=_reply(case, turns),
                    seconds=case.number("completionTime", low=0),
                    failure=failed,
                    scores=scores,
                    metadata=case.at("metadata"),
                    detail=case.without(
                        "input",
                        "actualOutput",
                        "expectedOutput",
                        "metricsData",
                        "metadata",
                        "completionTime",
                        "tokenCost",
                        "toolsCalled",
                    ),
                )


_CACHED_NAMES = {
    "actual_output": "actualOutput",
    "expected_output": "expectedOutput",
    "retrieval_context": "retrievalContext",
}


def _reply(case: Json, turns: Sequence[Json]) -> Reply | None:
    """The answer; for a conversation, the assistant's last message."""
    replies = []
    for turn in turns:
        if turn.text("role") == "assistant":
            replies.append(turn.text("content"))

    if "actualOutput" in case:
        text = case.shown("actualOutput")
    elif replies:
        text = replies[-1]
    else:
        text = None

    if text is None:
        return None
    return Reply(
        text=text,
        usage=case.usage(input_tokens="inputTokenCount", output_tokens="outputTokenCount"),
        dollars=case.number("tokenCost", low=0),
        stop_reason=stop_reason(case.at("metadata")),
        tool_calls=tuple(
            ToolCall(
                tool=call.text("name") or "",
                input=call.at("inputParameters"),
                result=call.shown("output"),
            )
            for source in (case, *turns)
            for call in source.list("toolsCalled")
        ),
    )


class _Scales:
    """Which way each metric is better, as its scores, thresholds and verdicts show it."""

    def __init__(self, findings: Findings) -> None:
        # scorer → score and pass; complete once all is read
        self.metrics: dict[str, tuple[Metric, Metric]] = {}
        self._findings = findings
        self._names: dict[str, str] = {}  # scorer → the metric's name in DeepEval
        # metric → 1: a pass above the threshold or a fail below it; −1: reverse
        self._signs: dict[str, set[int]] = {}

    def add(self, scorer: str, metric: Json) -> None:
        """Counts one result of a metric."""
        name = self._names[scorer] = _named(metric)
        signs = self._signs.setdefault(name, set())
        score = metric.number("score")
        threshold = metric.number("threshold")
        passed = metric.flag("success")
        if (
            score is None
            or threshold is None
            or passed is None
            or score == threshold
            or metric.text("error")
        ):
            return

        signs.add(1 if (score > threshold) == passed else -1)

    def filled(self, trials: Iterable[ImportedTrial]) -> Iterator[ImportedTrial]:
        """The trials; after the last one, `metrics` holds every metric."""
        yield from trials
        directions = {name: self._direction(name, signs) for name, signs in self._signs.items()}
        for scorer, name in self._names.items():
            if name in _FROM_0_TO_1:
                low = 0.0
                high = 1.0
            else:
                low = None
                high = None

            score = Metric(name=scorer, low=low, high=high, direction=directions[name])
            self.metrics[scorer] = score, Metric(name=f"{scorer} pass", kind="share")

    def _direction(self, name: str, signs: set[int]) -> Literal["higher", "lower", "none"]:
        if len(signs) == 1:
            return "higher" if 1 in signs else "lower"
        if signs:
            why = "its scores, thresholds and verdicts contradict each other"
        elif any(word in name for word in _REVERSED):
            why = (
                f"no verdict shows its direction, and DeepEval 4.2 reversed that of "
                f"{', '.join(_REVERSED)}"
            )
        else:
            self._findings.note(
                f"{name}: no verdict shows its direction; taken as better when higher, "
                f"DeepEval's rule"
            )
            return "higher"

        self._findings.note(
            f"{name}: {why}; neither direction is taken as better, so no winner is named by "
            f"its score"
        )
        return "none"


_REVERSED = ("Bias", "Hallucination", "Misuse", "Toxicity")
"""DeepEval's metrics whose threshold was a maximum before version 4.2, and is a minimum since."""

_FROM_0_TO_1 = frozenset(_REVERSED) | frozenset(
    [
        "Agent Loop Detection",
        "Answer Relevancy",
        "Argument Correctness",
        "Citation Faithfulness",
        "Contextual Precision",
        "Contextual Recall",
        "Contextual Relevancy",
        "Conversation Completeness",
        "Conversation Relevancy",
        "Exact Match",
        "Faithfulness",
        "Goal Accuracy",
        "Json Correctness",
        "Knowledge Retention",
        "MCP Task Completion",
        "MCP Use",
        "Multi-Turn MCP Use",
        "Non-Advice",
        "PII Leakage",
        "Pattern Match",
        "Plan Adherence",
        "Plan Quality",
        "Prompt Alignment",
        "Role Adherence",
        "Role Violation",
        "Step Efficiency",
        "Summarization",
        "Task Completion",
        "Tool Correctness",
        "Tool Permission",
        "Tool Use",
        "Topic Adherence",
        "Turn Contextual Precision",
        "Turn Contextual Recall",
        "Turn Contextual Relevancy",
        "Turn Faithfulness",
        "Turn Relevancy",
    ]
)
"""DeepEval's metrics that compute a share.

A metric of one's own (GEval, DAG, a class) may give any number.
"""

_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")


def _named(metric: Json) -> str:
    return metric.text("name") or "metric"


def _scores(case: Json, scales: _Scales) -> tuple[list[ImportedScore], ImportedFailure | None]:
    """Each metric's result, and why the first metric that failed has none.

    A metric that is there several times, such as in two spans of one name, has repeats, whose mean
    counts.
    """
    # Every metric of a test case with its name; that of a span of its trace is preceded by the
    # span's name
    measured: list[tuple[str, Json]] = []
    trace = case.at("trace")
    spans = [
        (span.text("name", "type") or "span", span) for kind in _SPANS for span in trace.list(kind)
    ]
    for metric in case.list("metricsData"):
        measured.append((_named(metric), metric))

    for where, span in [("trace", trace), *spans]:
        for metric in span.list("metricsData"):
            measured.append((f"{where}: {_named(metric)}", metric))

    errors = {name: error for name, metric in measured if (error := metric.text("error"))}
    whole = ImportedScore(scorer=_WHOLE, values={"pass": None if errors else case.flag("success")})
    if measured:
        scores = [whole]
    else:
        scores = []

    for (name, metric), repeat in zip(measured, repeats(name for name, _ in measured), strict=True):
        scales.add(name, metric)
        if name == next(iter(errors), None):
            continue
        values = {name: metric.number("score"), f"{name} pass": metric.flag("success")}
        scores.append(
            ImportedScore(
                scorer=name,
                repeat=repeat,
                values=dict.fromkeys(values) if name in errors else values,
                judge=metric.text("evaluationModel"),
                reasons={name: metric.text("reason")},
                detail=metric.without("name", "score", "success", "reason", "evaluationCost"),
                usage=metric.usage(
                    input_tokens="inputTokenCount", output_tokens="outputTokenCount"
                ),
                dollars=metric.number("evaluationCost", low=0),
                offline=_named(metric) in _BY_RULE,
            )
        )

    for name, error in errors.items():
        return scores, ImportedFailure(
            cls="judge",
            kind="error",
            message=error,
            stage="score",
            scorer=name,
        )

    return scores, None
