"""`karat import deepeval`: test runs saved by DeepEval.

Source of the format: `deepeval.test_run.TestRun` of version 4.3.1, in `.deepeval/.latest_test_run.json` (under
`testRunData`) and in the files of its results folder (the test run itself).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from karat.formats import clean, excerpt
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.importers._reading import Json, bad_file, digest, document, items, unique
from karat.records import Metric, Reply, ToolCall

__all__ = ["Deepeval"]

_HEAD = re.compile(rb'\s*\{\s*(?:"testRunData"\s*:\s*\{\s*)?(?:"testFile"\s*:[^,]*,\s*)?"testCases"\s*:\s*\[')
_BY_RULE = ("Exact Match", "Pattern Match")
_WHOLE = "deepeval"  # the scorer of a whole test case: all its metrics together


class Deepeval:
    """A test run of DeepEval: .deepeval/.latest_run_full.json, or a file of its results folder."""

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        return _HEAD.match(head) is not None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run. Each file is a condition, named after its identifier, else its model, else the file."""
        files = [_File(path) for path in paths]
        names = unique([file.name for file in files])
        scales = _Scales()
        yield ImportedRun(
            name=files[0].name,
            tool="deepeval",
            trials=scales.filled(
                trial for file, name in zip(files, names, strict=True) for trial in file.trials(name, findings, scales)
            ),
            metrics=scales.metrics,
            stated=[file.stated(name) for file, name in zip(files, names, strict=True)],
            conditions={
                name: ImportedCondition(
                    model=file.run.at("hyperparameters").text("model"),
                    detail={key: file.run.raw.get(key) for key in ("hyperparameters", "prompts")},
                )
                for file, name in zip(files, names, strict=True)
            },
            dataset=files[0].run.text("datasetAlias") or "",
            detail={file.path.name: file.run.without("testCases", "conversationalTestCases") for file in files},
        )


class _File:
    def __init__(self, path: Path) -> None:
        root = document(path, "testRunData", "testCases")
        self.path, self._above = path, ("testRunData",) if root.at("testRunData").raw else ()
        self.run = root.at(*self._above) if self._above else document(path, "testCases")
        if not isinstance(self.run.raw.get("testCases"), list):
            raise bad_file(path, "holds no test run of DeepEval (want testCases)")
        model = self.run.at("hyperparameters").text("model")
        self.name = self.run.text("identifier") or model or path.name.strip(".").partition(".")[0]

    def stated(self, condition: str) -> Stated:
        """The number of test cases that passed and failed."""
        ended = [self.run.count(key) for key in ("testPassed", "testFailed")]
        trials = None if None in ended else sum(filter(None, ended))
        return Stated(file=self.path.name, conditions=(condition,), trials=trials)

    def trials(self, condition: str, findings: Findings, scales: _Scales) -> Iterator[ImportedTrial]:
        earlier: dict[str, int] = {}  # test case → how often it has occurred
        for key in ("testCases", "conversationalTestCases"):
            for place, case in items(self.path, *self._above, key, findings=findings):
                turns = case.list("turns")
                users = [turn for turn in turns if turn.text("role") == "user"]
                question = case.text("input", "scenario") or (users[0].text("content") if users else None)
                if question is None:
                    findings.unreadable("test case without an input", place)
                    continue
                golden = case.text("expectedOutput", "expectedOutcome")
                identity = digest([question, golden, case.raw.get("context")])
                repetition = earlier[identity] = earlier.get(identity, -1) + 1
                scores, failed = _scores(case, scales)
                yield ImportedTrial(
                    sample=f"{excerpt(clean(question), 48)} ({identity[:8]})",
                    question=question,
                    golden=golden,
                    condition=condition,
                    repetition=repetition,
                    reply=_reply(case, turns),
                    seconds=case.number("completionTime", low=0),
                    failure=failed,
                    scores=scores,
                    metadata=case.at("metadata").raw,
                    detail=case.without(
                        "input", "actualOutput", "expectedOutput", "metricsData", "metadata", "completionTime",
                        "tokenCost", "toolsCalled",
                    ),
                )  # fmt: skip


def _reply(case: Json, turns: Sequence[Json]) -> Reply | None:
    """The answer; for a conversation, the assistant's last message."""
    replies = [turn.text("content") for turn in turns if turn.text("role") == "assistant"]
    text = case.shown("actualOutput") if "actualOutput" in case.raw else replies[-1] if replies else None
    if text is None:
        return None
    seconds = case.number("completionTime", low=0)
    return Reply(
        text=text,
        usage=case.usage(input_tokens="inputTokenCount", output_tokens="outputTokenCount"),
        dollars=case.number("tokenCost", low=0),
        milliseconds=None if seconds is None else 1000 * seconds,
        tool_calls=tuple(
            ToolCall(tool=call.text("name") or "", input=call.at("inputParameters").raw, result=call.shown("output"))
            for source in (case, *turns)
            for call in source.list("toolsCalled")
        ),
    )


class _Scales:
    """Which way each metric is better, as its scores, thresholds and verdicts show it. Scores are from 0 to 1."""

    def __init__(self) -> None:
        self.metrics: dict[str, tuple[Metric, Metric]] = {}  # scorer → score and pass; complete once all is read
        self._signs: dict[str, set[int]] = {}  # metric → 1: a pass above the threshold or a fail below it; −1: reverse

    def add(self, name: str, metric: Json) -> None:
        """Counts one result of a metric."""
        signs = self._signs.setdefault(name, set())
        score, threshold, passed = metric.number("score"), metric.number("threshold"), metric.flag("success")
        if score is None or threshold is None or passed is None or score == threshold:
            return
        signs.add(1 if (score > threshold) == passed else -1)

    def filled(self, trials: Iterable[ImportedTrial]) -> Iterator[ImportedTrial]:
        """The trials; after the last one, `metrics` holds every metric."""
        yield from trials
        for name, signs in self._signs.items():
            score = Metric(name=name, low=0.0, high=1.0, direction=_direction(name, signs))
            self.metrics[name] = score, Metric(name=f"{name} pass", kind="share")


_LOWER = ("hallucination", "bias", "toxicity")
"""DeepEval's metrics whose threshold is a maximum."""


def _direction(name: str, signs: set[int]) -> Literal["higher", "lower", "none"]:
    if len(signs) > 1:  # verdicts of its own: neither way is better
        return "none"
    if signs:
        return "higher" if 1 in signs else "lower"
    words = name.lower().split()
    return "lower" if any(word in _LOWER for word in words) else "higher"


_SPANS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")


def _measured(case: Json) -> list[tuple[str, Json]]:
    """Every metric of a test case with its name; that of a span of its trace is preceded by the span's name."""
    trace = case.at("trace")
    found = [(metric.text("name") or "metric", metric) for metric in case.list("metricsData")]
    found += [(f"trace: {metric.text('name') or 'metric'}", metric) for metric in trace.list("metricsData")]
    for span in (span for kind in _SPANS for span in trace.list(kind)):
        where = span.text("name", "type") or "span"
        found += [(f"{where}: {metric.text('name') or 'metric'}", metric) for metric in span.list("metricsData")]
    names = unique([name for name, _ in found])
    return [(name, metric) for name, (_, metric) in zip(names, found, strict=True)]


def _scores(case: Json, scales: _Scales) -> tuple[list[ImportedScore], ImportedFailure | None]:
    """Each metric's result, and why the first metric that failed has none."""
    measured = _measured(case)
    errors = {name: error for name, metric in measured if (error := metric.text("error"))}
    whole = ImportedScore(scorer=_WHOLE, values={"pass": None if errors else case.flag("success")})
    scores = [whole] if measured else []
    for name, metric in measured:
        scales.add(name, metric)
        if name == next(iter(errors), None):
            continue
        values = {name: metric.number("score"), f"{name} pass": metric.flag("success")}
        reason = metric.text("reason")
        scores.append(
            ImportedScore(
                scorer=name,
                values=dict.fromkeys(values) if name in errors else values,
                judge=metric.text("evaluationModel"),
                reasons={name: reason} if reason else {},
                detail=metric.without("name", "score", "success", "reason", "evaluationCost"),
                usage=metric.usage(input_tokens="inputTokenCount", output_tokens="outputTokenCount"),
                dollars=metric.number("evaluationCost", low=0),
                offline=name in _BY_RULE,
            )
        )
    for name, error in errors.items():
        return scores, ImportedFailure(cls="judge", kind="error", message=error, stage="score", scorer=name)
    return scores, None
