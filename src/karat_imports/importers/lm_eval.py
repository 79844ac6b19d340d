"""`karat import lm-eval`: what lm-evaluation-harness writes with `--log_samples --output_path`.

Source of the format: `lm_eval.loggers.EvaluationTracker` and `lm_eval.evaluator` of version 0.4.13.
A samples file has a line for each document and filter, one filter after the other; the results file
beside it says what model it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from karat.foreign import Json
from karat.formats import some_of
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import JsonObject, Metric, Reply
from karat_imports.importers._reading import (
    asked,
    bad_file,
    document,
    each_readable,
    lines,
    unique,
    utc,
)

__all__ = ["LmEval"]

_SAMPLES = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl", re.DOTALL)
_RESULTS = re.compile(r"results_(.+)\.json", re.DOTALL)
_HEAD = re.compile(rb'\s*\{\s*(?:"doc_id"\s*:|"results"\s*:\s*\{\s*"(?:[^"\\]|\\.)+"\s*:\s*\{)')
_NOT_METRICS = frozenset(
    (
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
        "doc_hash",
        "prompt_hash",
    )
)
# not a mean over samples
_OF_ALL = frozenset(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"))
_SCORER = "lm-eval"  # the filter "none"


class LmEval:
    """samples_*.jsonl and results_*.json of lm-evaluation-harness: tasks are runs, models are
    conditions.
    """

    listed_as: ClassVar[str] = "lm-eval"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        named = _SAMPLES.fullmatch(path.name) or _RESULTS.fullmatch(path.name)
        return named is not None and _HEAD.match(head) is not None

    @staticmethod
    def beside(path: Path) -> list[Path]:
        """The samples files of a results file, or the results file of a samples file, if it is
        there.
        """
        if of_results := _RESULTS.fullmatch(path.name):
            samples = sorted(path.parent.glob("samples_*.jsonl"))
            found = []
            for file in samples:
                if file.stem.endswith(f"_{of_results[1]}"):
                    found.append(file)

            return found

        named = _SAMPLES.fullmatch(path.name)
        if named:
            results = path.with_name(f"results_{named[2]}.json")
        else:
            results = path

        if named and results.is_file():
            return [results]
        return []

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per task.

        A results file also means the samples files of the same time, and the other way round.
        """
        tasks: dict[str, list[_Samples]] = {}
        opened = each_readable(paths, lambda path: _opened(path, findings), findings)
        for samples in {file.path: file for files in opened for file in files}.values():
            tasks.setdefault(samples.task, []).append(samples)

        for task, files in tasks.items():
            names = [file.model for file in files]
            names = unique(
                [
                    f"{file.model} ({file.stamp})" if names.count(file.model) > 1 else file.model
                    for file in files
                ]
            )
            named = dict(zip(names, files, strict=True))
            lower: dict[str, None] = {}
            for file in files:
                for name, better in file.results.at("higher_is_better", task).items():
                    if better is False:
                        lower[name] = None

            filters = {name for file in files for name in file.filters}
            version = files[0].results.text("lm_eval_version")
            yield ImportedRun(
                name=task,
                tool=f"lm-eval {version or ''}".strip(),
                trials=_trials(named, findings),
                conditions={name: file.condition() for name, file in named.items()},
                metrics={
                    _scorer(filtered): [
                        Metric(name=_metric(filtered, name), direction="lower") for name in lower
                    ]
                    for filtered in (filters if lower else ())
                },
                dataset=files[0].results.at("configs", task).text("dataset_path") or task,
                stated=[file.stated(name) for name, file in named.items()],
                created=utc(files[0].results.number("date", low=0)),
                versions={"lm_eval": version} if version else {},
                detail={
                    file.path.name: {"results": file.results.at("results", task)} for file in files
                },
            )


def _opened(path: Path, findings: Findings) -> list[_Samples]:
    if not _RESULTS.fullmatch(path.name):
        return [_Samples(path)]
    files = [_Samples(file) for file in LmEval.beside(path)]
    if not files:
        raise bad_file(
            path,
            "has no samples_*.jsonl of the same time next to it: run lm_eval with --log_samples",
        )

    absent = set(files[0].results.at("n-samples")) - {file.task for file in files}
    if absent:
        findings.note(
            f"{path.name} has results of tasks without samples here: {some_of(sorted(absent))}"
        )

    return files


class _Samples:
    """A samples file, and its data in the results file of the same time."""

    def __init__(self, path: Path) -> None:
        named = _SAMPLES.fullmatch(path.name)
        beside = LmEval.beside(path)
        self.path = path
        self.task = path.stem
        self.stamp = ""
        if named:
            self.task, self.stamp = named.groups()
        self.results = Json()
        if beside:
            self.results = document(beside[0])
        self.model = self.results.text("model_name", "model_source") or path.stem
        combined = self.results.at("configs", self.task).list("metric_list")
        self.of_all = _OF_ALL | {
            item.text("metric") or ""
            for item in combined
            if item.text("aggregation") not in (None, "mean", "nanmean")
        }
        keys = self.results.at("results", self.task)
        self.filters = {
            filtered for _, comma, filtered in (key.partition(",") for key in keys) if comma
        }

    def stated(self, condition: str) -> Stated:
        """The number of documents and the means in the results file."""
        means: dict[tuple[str, str], float] = {}
        of_task = self.results.at("results", self.task)
        for key in of_task:
            metric, comma, filtered = key.partition(",")
            mean = of_task.number(key)
            if comma and mean is not None:
                means[_scorer(filtered), _metric(filtered, metric)] = mean

        documents = self.results.at("n-samples", self.task).count("effective")
        return Stated(file=self.path.name, conditions=(condition,), trials=documents, means=means)

    def condition(self) -> ImportedCondition:
        results = self.results
        detail = {}
        for key in ("config", "chat_template_sha", "fewshot_as_multiturn"):
            detail[key] = results.get(key)

        return ImportedCondition(
            model=results.text("model_name"),
            system_prompt=results.text("system_instruction"),
            detail={**detail, "num_fewshot": results.at("n-shot").get(self.task)}
            if results
            else {},
        )


def _trials(files: Mapping[str, _Samples], findings: Findings) -> Iterator[ImportedTrial]:
    """One trial per document and model, with the scores of all filters."""
    for name, file in files.items():
        scores: dict[str, dict[str, ImportedScore]] = {}  # document → filter → score
        for place, row in lines(file.path, findings):
            known = scores.setdefault(row.shown("doc_id") or "", {})
            filtered = row.text("filter") or "none"
            if filtered in known:
                findings.left_out("a second result of a document and filter", place)
                continue

            listed = row.get("metrics")
            values: dict[str, float | bool | None] = {}
            detail: JsonObject = {}
            if filtered != "none":
                detail["filtered"] = row.get("filtered_resps")
            for metric in listed if isinstance(listed, list) else row:
                if not isinstance(metric, str) or metric in _NOT_METRICS:
                    continue
                value = row.score(metric)
                if value is not None and metric not in file.of_all:
                    values[_metric(filtered, metric)] = value
                else:
                    detail[metric] = row.get(metric)
                    findings.changed(
                        f"{metric} is not a mean over samples: its values are in detail", place
                    )

            known[filtered] = ImportedScore(
                scorer=_scorer(filtered),
                values=values,
                detail=detail,
                offline=True,
            )

        for place, row in lines(file.path, Findings()):  # its faults are counted already
            sample = row.shown("doc_id")
            if sample is None:
                findings.lose("sample without a doc_id", place)
            elif of_sample := scores.pop(sample, None):
                yield _trial(name, sample, row, list(of_sample.values()))


def _trial(
    condition: str,
    sample: str,
    row: Json,
    scores: Sequence[ImportedScore],
) -> ImportedTrial:
    doc = row.at("doc")
    responses = row.get("resps")
    # before version 0.4.5, requests and their arguments were lists
    requests = [*filter(None, map(_values, _values(row.get("arguments"))))]
    flat = []
    for response in _values(responses):
        flat.append(next(iter(_values(response)), response))

    if requests:
        prompt = str(requests[0][0])
    else:
        prompt = ""

    key = asked(doc)
    target = row.shown("target")
    detail = {"prompt": prompt, "target": row.get("target"), "responses": responses}
    text = None
    if flat:
        text = Json({"text": flat[0]}).shown("text")
    choices = []
    for request in requests:
        if len(request) > 1:
            choices.append(str(request[1]).strip())

    chances = [_log_likelihood(response) for response in flat]
    if len(choices) == len(chances) > 1 and None not in chances:
        best = max(range(len(chances)), key=lambda place: chances[place] or 0.0)
        text = choices[best]
        detail["responses"] = [list(pair) for pair in zip(choices, chances, strict=True)]
        by_number = {}
        for number, choice in enumerate(choices):
            by_number[str(number)] = choice

        target = by_number.get(target or "", target)

    if key:
        question = str(doc[key])
    else:
        question = prompt or sample

    if text is None:
        reply = None
    else:
        reply = Reply(text=text)

    return ImportedTrial(
        sample=sample,
        question=question,
        golden=target or None,
        condition=condition,
        repetition=0,
        reply=reply,
        scores=[score for score in scores if score.values],
        metadata=doc.without(key or ""),
        detail=detail,
    )


def _values(value: object) -> list[object]:
    """The values of an object or a list; none of anything else."""
    if isinstance(value, dict):
        return [*value.values()]
    if isinstance(value, list):
        return value
    return []


def _log_likelihood(response: object) -> float | None:
    """The log-likelihood of a choice, from a pair: the number (a text in newer versions), and
    whether it was greedy.
    """
    if (
        not isinstance(response, list)
        or len(response) != 2
        or str(response[1]) not in ("True", "False")
    ):
        return None

    try:
        return float(str(response[0]))
    except ValueError:
        return None


def _scorer(filtered: str) -> str:
    if filtered == "none":
        return _SCORER
    return filtered


def _metric(filtered: str, name: str) -> str:
    if filtered == "none":
        return name
    return f"{filtered}.{name}"
