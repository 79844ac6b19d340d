"""`karat import eee`: instance-level results of Every Eval Ever, with the aggregates beside them.

Source of the format: the schemas of Every Eval Ever 0.3.0. `--to eee` writes it too; a run that is
exported and imported again has the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from karat.documents.answers import stop_reason
from karat.foreign import Json
from karat.importers import (
    Findings,
    ImportedCondition,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    Stated,
)
from karat.records import Metric, Reply, ToolCall
from karat_imports.importers._reading import (
    bad_file,
    document,
    each_readable,
    failure,
    grouped,
    lines,
    utc,
)

__all__ = ["Eee"]

_SAMPLES = re.compile(r"(.+)_samples\.jsonl", re.DOTALL)
_MCP = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_NO_SAMPLE = "no sample"  # the key of lines without a sample
_KINDS: dict[str | None, Literal["ordinal", "share", "number"]] = {
    "ordinal": "ordinal",
    "share": "share",
}
_DIRECTIONS: dict[str | None, Literal["none", "lower"]] = {"none": "none", "lower": "lower"}


class Eee:
    """Instance-level results (_samples.jsonl) of Every Eval Ever: models are conditions."""

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        if path.suffix == ".jsonl":
            also = b'"interaction_type"'
        else:
            also = b'"retrieved_timestamp"'

        return b'"schema_version"' in head and b'"evaluation_id"' in head and also in head

    @staticmethod
    def beside(path: Path) -> list[Path]:
        """The aggregate of instance-level results, or these of an aggregate."""
        if (other := _other(path)) != path and other.is_file():
            return [other]
        return []

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per collection.

        NAME.json also means the NAME_samples.jsonl beside it, and the other way round.
        """
        collections: dict[str, dict[Path, _File]] = {}
        for file in each_readable(paths, _File, findings):
            collections.setdefault(file.collection, {}).setdefault(file.path, file)

        for collection, of_path in collections.items():
            files = list(of_path.values())
            first = files[0].aggregate
            library = first.at("eval_library")
            names = (library.text("name"), library.text("version"))
            metrics: dict[str, dict[str, Metric]] = {}
            unfinished: list[str] = []
            stated: list[Stated] = []
            for file in files:
                for scorer, metric in file.announced:
                    metrics.setdefault(scorer, {})[metric.name] = metric

            yield ImportedRun(
                name=collection,
                tool=" ".join(filter(None, names)) or "every-eval-ever",
                trials=_trials(files, findings, unfinished=unfinished, stated=stated),
                conditions={
                    name: condition for file in files for name, condition in file.conditions()
                },
                metrics={scorer: tuple(known.values()) for scorer, known in metrics.items()},
                dataset=next(
                    (
                        text
                        for result in first.list("evaluation_results")
                        if (text := result.at("source_data").text("dataset_name"))
                    ),
                    "",
                ),
                created=utc(first.text("evaluation_timestamp")),
                unfinished=unfinished,
                stated=stated,
                detail={file.path.name: file.aggregate.get("source_metadata") for file in files},
            )


def _other(path: Path) -> Path:
    if path.suffix != ".jsonl":
        return path.with_name(f"{path.stem}_samples.jsonl")
    named = _SAMPLES.fullmatch(path.name)
    if named:
        return path.with_name(f"{named[1]}.json")
    return path


def _trials(
    files: Sequence[_File],
    findings: Findings,
    *,
    unfinished: list[str],
    stated: list[Stated],
) -> Iterator[ImportedTrial]:
    """The trials of all files; afterwards the lists are complete.

    What a later file repeats is a repetition.
    """
    # condition, sample, question → repetitions in earlier files
    taken: dict[tuple[str, str, str], int] = {}
    for file in files:
        here = dict(taken)
        for trial in file.trials(findings):
            key = trial.condition, trial.sample, trial.question
            repetition = taken.get(key, 0) + (trial.repetition or 0)
            file.read.setdefault(trial.condition)
            here[key] = max(here.get(key, 0), repetition + 1)
            yield msgspec.structs.replace(trial, repetition=repetition)

        taken = here
        total = file.aggregate.at("detailed_evaluation_results").count("total_rows") or 0
        if file.rows < total:
            unfinished.append(f"{file.path.name}: {file.rows} of {total} rows are here")

    # Files of one model are one condition, and what they state is taken together
    together: dict[tuple[str, ...], list[_File]] = {}
    for file in files:
        together.setdefault(tuple(file.read), []).append(file)

    for conditions, same in together.items():
        planned = [file.planned for file in same]
        stated.append(
            Stated(
                file=", ".join(file.path.name for file in same),
                conditions=conditions,
                trials=None if 0 in planned else sum(planned),
                means=same[0].means if len(same) == 1 else {},
            )
        )


class _File:
    """Instances of one model, and the aggregate's data about their metrics."""

    def __init__(self, path: Path) -> None:
        """`path`: the instances, or their aggregate. Raises BadDataset."""
        if path.suffix == ".jsonl":
            instances = path
        else:
            instances = _other(path)

        if not instances.is_file():
            raise bad_file(
                path, f"has no instance-level results next to it (want {instances.name})"
            )
        self.path = instances
        self.rows = 0
        beside = Eee.beside(instances)
        self.read: dict[str, None] = {}  # the conditions of its instances, in order
        self.aggregate = Json()
        if beside:
            self.aggregate = document(beside[0])
        self.collection = (self.aggregate.text("evaluation_id") or instances.stem).partition("/")[0]
        results = {
            result.text("evaluation_result_id", "evaluation_name"): result
            for result in self.aggregate.list("evaluation_results")
        }
        self._names: dict[str | None, tuple[str, str]] = {}  # scorer and metric of a result
        self.announced: list[tuple[str, Metric]] = []
        self.planned = 0  # samples; 0: not known
        scores: dict[tuple[str, str], list[float | None]] = {}
        for key, result in results.items():
            # The scorer and metric of an aggregate; karat's own are recognized by their details
            config = result.at("metric_config")
            stated = config.at("additional_details")
            task, part = _task(result.text("evaluation_name"))
            name = config.text("metric_name", "metric_id") or part or "score"
            scorer = stated.text("scorer") or "every-eval-ever"
            # such as a filter: two may have one metric
            if stated.text("scorer") is None and task and part != name:
                name = f"{part}.{name}"
            kind = stated.text("kind")
            if config.text("score_type") == "binary":
                kind = "share"
            lower = None
            if config.flag("lower_is_better"):
                lower = "lower"

            metric = Metric(
                name=name,
                low=config.number("min_score"),
                high=config.number("max_score"),
                direction=_DIRECTIONS.get(stated.text("direction") or lower, "higher"),
                kind=_KINDS.get(kind, "number"),
                description=config.text("evaluation_description") or "",
            )
            self._names[key] = scorer, name
            details = result.at("score_details")
            samples = details.at("uncertainty").count("num_samples") or 0
            self.planned = max(self.planned, samples)
            scores.setdefault((scorer, name), []).append(details.number("score"))
            # If the file does not name the scale, the values show it: only 0 and 1 is a share.
            if metric.direction != "higher" or stated.text("kind"):
                self.announced.append((scorer, metric))

        # karat's own are means over questions or turns
        own = self.aggregate.at("eval_library").text("name") == "karat"
        self.means: dict[tuple[str, str], float] = {}
        for of_metric, (score, *others) in scores.items():
            if score is not None and not others and not own:
                self.means[of_metric] = score

    def conditions(self) -> Iterator[tuple[str, ImportedCondition]]:
        model = self.aggregate.at("model_info")
        for result in self.aggregate.list("evaluation_results"):
            details = result.at("generation_config", "additional_details")
            name = details.text("condition") or model.text("id")
            if name:
                yield (
                    name,
                    ImportedCondition(
                        model=model.text("name", "id"), detail=result.at("generation_config")
                    ),
                )

    def trials(self, findings: Findings) -> Iterator[ImportedTrial]:
        for place, key, rows in grouped(self._keyed, findings):
            if key == _NO_SAMPLE:
                findings.lose("instance without a sample_id", place)
                continue

            self.rows += len(rows)
            # of rows without one: counted for each metric
            repetitions: list[dict[tuple[str, str], Json]] = []
            for row in rows:
                name = row.text("evaluation_result_id", "evaluation_name")
                unknown = "every-eval-ever", _task(name)[1] or "score"
                metric = self._names.get(name, unknown)
                known = next((metrics for metrics in repetitions if metric not in metrics), None)
                if known is None:
                    repetitions.append(known := {})
                known[metric] = row

            for number, metrics in enumerate(repetitions):
                row = next(iter(metrics.values()))
                error = next(
                    (error for instance in metrics.values() if (error := instance.text("error"))),
                    None,
                )
                scores: dict[str, dict[str, float | bool | None]] = {}
                for (scorer, part), instance in metrics.items():
                    value = instance.at("evaluation").number("score")
                    if value is None:
                        findings.unreadable("instance without a score", place)
                    scores.setdefault(scorer, {})[part] = value

                metadata = row.at("metadata")
                asked = row.at("input")
                repetition = metadata.text("karat.repetition") or ""
                yield ImportedTrial(
                    sample=row.text("sample_id") or "",
                    question=asked.text("raw", "formatted") or row.text("sample_id") or "",
                    golden="\n".join(filter(None, _texts(asked.get("reference")))) or None,
                    condition=_condition(row),
                    repetition=int(repetition)
                    if number == 0 and repetition.isdecimal() and len(repetition) < 7
                    else number,
                    reply=_reply(row),
                    seconds=row.at("performance").number("latency_ms", low=0, times=0.001),
                    failure=failure(error),
                    scores=[]
                    if error
                    else [
                        ImportedScore(scorer=scorer, values=values)
                        for scorer, values in scores.items()
                    ],
                    metadata={
                        key: value
                        for key, value in metadata.items()
                        if not key.startswith("karat.")
                    },
                    detail={
                        "formatted": asked.get("formatted"),
                        "choices": asked.get("choices"),
                        "messages": row.get("messages"),
                        "answer_attribution": row.get("answer_attribution"),
                        "is_correct": {
                            name: entry.at("evaluation").get("is_correct")
                            for (_, name), entry in metrics.items()
                        },
                    },
                )

    def _keyed(self, findings: Findings) -> Iterator[tuple[str, Hashable, Json]]:
        """Each instance with its place, and what it has in common with others of one answer (of
        several answers, if the repetition is not given).
        """
        for place, row in lines(self.path, findings):
            sample = row.text("sample_id")
            repetition = row.at("metadata").text("karat.repetition")
            if sample is None:
                yield place, _NO_SAMPLE, row
            else:
                yield place, (_condition(row), sample, row.text("sample_hash"), repetition), row


def _condition(row: Json) -> str:
    return row.at("metadata").text("karat.condition") or row.text("model_id") or "not named"


def _task(name: str | None) -> tuple[str, str]:
    """The task and the part of it in the name of an evaluation: "task/part"; the task "" if there
    is no part.
    """
    task, _, part = (name or "").rpartition("/")
    return task, part


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for text in value if isinstance(text, str)]
    return []


def _reply(row: Json) -> Reply | None:
    messages = row.list("messages")
    usage = row.at("token_usage")
    replies = [message for message in messages if message.text("role") == "assistant"]
    texts = _texts(row.at("output").get("raw")) or [
        text for message in replies if (text := message.text("content"))
    ]
    if not texts:
        return None
    traces = [text for message in replies if (text := message.text("reasoning_trace"))]
    results = {}
    for message in messages:
        for id_ in _texts(message.get("tool_call_id")):
            results[id_] = message.text("content")

    calls: list[ToolCall] = []
    for call in [call for message in replies for call in message.list("tool_calls")]:
        server = None
        tool = call.text("name") or ""
        if mcp := _MCP.fullmatch(tool):
            server, tool = mcp.groups()
        result = results.get(call.text("id") or "")
        calls.append(ToolCall(tool=tool, server=server, input=call.at("arguments"), result=result))

    answer = None
    for attribution in row.list("answer_attribution"):
        if attribution.flag("is_terminal"):
            answer = attribution.text("extracted_value")

    return Reply(
        text=texts[0] if row.at("output") else texts[-1],
        answer=None if answer in texts else answer,
        reasoning="\n".join(_texts(row.at("output").get("reasoning_trace")) or traces) or None,
        tool_calls=tuple(calls),
        usage=usage.usage(
            input_tokens="input_tokens",
            output_tokens="output_tokens",
            reasoning_tokens="reasoning_tokens",
            cache_read_tokens="input_tokens_cache_read",
            cache_write_tokens="input_tokens_cache_write",
        ),
        stop_reason=row.at("metadata").text("karat.stop_reason") or stop_reason(row.at("metadata")),
    )
