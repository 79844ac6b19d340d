"""`--to eee`: a run in the formats of Every Eval Ever 0.3.0, aggregate and instance level.

One pair of files per model, at the place in the datastore that the format prescribes. A result
is one metric under one condition; a result without a number is left out, because the format has
no place for it. The same run gives the same bytes: names come from the run, times from its start.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import __version__, formats
from karat.analysis import Summary, trials
from karat.analysis.model import MetricInfo, Result
from karat.analysis.numbers import Estimate
from karat.analysis.parts import ConditionScore
from karat.exports import epoch
from karat.files import file_safe, streamed
from karat.journal import RunFolder
from karat.records import JsonObject
from karat_imports.exports._eee_instances import instances
from karat_imports.exports._eee_names import Model, described, model_of

__all__ = ["Eee"]

SCHEMA = "0.3.0"
_PIECE = 1 << 20  # characters of instances written at a time

# Many readers, the format's own validator among them, take these for the end of a line.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class Eee:
    """Aggregate (.json) and instance-level files (_samples.jsonl) of Every Eval Ever, schema
    0.3.0.
    """

    absolute_paths = True  # its validator reads the place in the datastore from relative paths

    class Options(BaseModel):
        """Facts that are not in a run."""

        model_config = ConfigDict(extra="forbid")

        collection: str | None = Field(
            default=None,
            description="the benchmark's folder in the datastore; null: the name of the experiment",
        )
        model: str | None = Field(
            default=None,
            description="developer/model, for every condition; null: as the experiment names it",
        )
        organization: str = Field(
            default="not stated", min_length=1, description="who provides the data"
        )
        relationship: Literal["first_party", "third_party", "collaborative", "other"] = Field(
            default="other", description="of the evaluator to the model's developer"
        )
        instances: bool = Field(
            default=True, description="whether the instance-level files are written too"
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    @streamed
    def render(self, summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
        models = {name: model_of(summary, name, self._options.model) for name in summary.conditions}
        logs = {model.id: _Log(self._options, summary, model) for model in models.values()}
        if self._options.instances:
            for trial in trials(run, summary):
                log = logs[models[trial.condition].id]
                for line in instances(
                    summary,
                    trial,
                    evaluation=log.evaluation,
                    model=log.model.id,
                ):
                    log.add(line)

                if log.waits > _PIECE:
                    yield log.taken()

            for log in logs.values():
                if log.waits:
                    yield log.taken()

        for log in logs.values():
            conditions = []
            for name, model in models.items():
                if model.id == log.model.id:
                    conditions.append(name)

            yield f"{log.stem}.json", formats.json_file(log.aggregate(conditions))


class _Log:
    """One model's pair of files."""

    def __init__(self, options: Eee.Options, summary: Summary, model: Model) -> None:
        self._options, self._summary, self.model = options, summary, model
        collection = file_safe(options.collection or summary.name)
        named = sha256(f"{summary.run}\0{summary.created}\0{model.id}".encode()).digest()
        file = uuid.UUID(bytes=named[:16], version=4)
        self.stem = f"data/{collection}/{model.folder}/{file}"
        self.evaluation = f"{collection}/{model.id}/{epoch(summary)}"
        self._lines: list[str] = []
        self._sum = sha256()
        self._rows = 0
        self.waits = 0  # characters

    def add(self, line: JsonObject) -> None:
        text = msgspec.json.encode(line).decode().translate(_LINE_ENDS) + "\n"
        self._lines.append(text)
        self._sum.update(text.encode())
        self._rows += 1
        self.waits += len(text)

    def taken(self) -> tuple[str, str]:
        """The file's name and its next piece."""
        text = "".join(self._lines)
        self._lines = []
        self.waits = 0
        return f"{self.stem}_samples.jsonl", text

    def aggregate(self, conditions: list[str]) -> JsonObject:
        summary = self._summary
        metrics = {metric.key: metric for metric in summary.metrics}
        results = []
        for entry in summary.results:
            if entry.condition in conditions and entry.mean.value is not None:
                results.append(_result(summary, entry, metrics[entry.metric]))

        samples: JsonObject = {
            "format": "jsonl",
            "file_path": f"{self.stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": self._sum.hexdigest(),
            "total_rows": self._rows,
        }

        # The run kind's own numbers for whole conditions, which have no instances
        known: list[ConditionScore] = []
        for part in summary.parts.values():
            known += part.condition_scores()

        condition_scores = []
        for score in known:
            if score.condition not in conditions or score.estimate.value is None:
                continue
            result = score.estimate
            numbers = _uncertainty(
                result, "bootstrap" if "bootstrap" in result.method else "analytic"
            )
            details = {"num_samples": f"{result.n} {score.unit}", **score.details}
            condition_scores.append(
                {
                    **_named(summary, score.condition, score.key),
                    "metric_config": {
                        "evaluation_description": score.meaning,
                        "metric_id": f"karat.{score.key}",
                        "metric_name": score.key,
                        **({"metric_unit": "proportion"} if score.kind == "share" else {}),
                        "lower_is_better": False,
                        "score_type": "continuous",
                        "min_score": score.low,
                        "max_score": score.high,
                        "additional_details": {
                            "direction": "higher",
                            "kind": score.kind,
                            "scorer": score.scorer,
                            "scoring": score.scoring,
                        },
                    },
                    "score_details": {
                        "score": result.value,
                        "details": details,
                        "uncertainty": numbers,
                    },
                }
            )

        return {
            "schema_version": SCHEMA,
            "evaluation_id": self.evaluation,
            "evaluation_timestamp": summary.created,
            "retrieved_timestamp": str(epoch(summary)),
            "source_metadata": {
                "source_name": summary.name,
                "source_type": "evaluation_run",
                "source_organization_name": self._options.organization,
                "evaluator_relationship": self._options.relationship,
                "additional_details": {
                    "run": summary.run,
                    "status": summary.status,
                    "headline": summary.headline,
                    "warnings": msgspec.json.encode(summary.warnings).decode(),
                },
            },
            "eval_library": {"name": "karat", "version": __version__},
            "model_info": self.model.info(),
            "evaluation_results": [*condition_scores, *results],
            **({"detailed_evaluation_results": samples} if self._rows else {}),
        }


def _result(summary: Summary, result: Result, metric: MetricInfo) -> JsonObject:
    mean = result.mean
    numbers = _uncertainty(mean, "analytic")
    if result.between_sd.value is not None:
        numbers["standard_deviation"] = result.between_sd.value
    details = {
        "answers": str(result.n_answers),
        "missing": str(result.n_missing),
        "questions": str(result.n_questions),
        **(
            {"within_sd": str(result.within_sd.value)} if result.within_sd.value is not None else {}
        ),
    }

    value = result.mean.value
    assert value is not None
    # A scorer's values are within its bounds, but not always in a run folder from elsewhere.
    low = metric.low if metric.low is not None and metric.low <= value else "-Infinity"
    high = metric.high if metric.high is not None and metric.high >= value else "Infinity"
    if metric.offline:
        judged = {}
    else:
        facts = summary.provenance.judges.get(metric.scorer, {})
        named = facts.get("judges") or metric.judges or [summary.provenance.judge or metric.scorer]
        if not isinstance(named, list | tuple):
            named = [named]
        judges = {
            "judges": [{"model_info": Model.named(str(name)).info()} for name in named],
            "input_prompt": f"karat's own judge prompt with the rubric {summary.provenance.rubric}",
            "additional_details": {
                key: msgspec.json.encode(value).decode() for key, value in facts.items()
            },
        }
        judged = {"llm_scoring": judges}

    return {
        **_named(summary, result.condition, metric.key),
        "metric_config": {
            "evaluation_description": metric.description
            or f"{metric.name}, scored by {metric.scorer}",
            "metric_id": f"karat.{metric.key}",
            "metric_name": metric.key,
            **({"metric_unit": "proportion"} if metric.percent else {}),
            "lower_is_better": metric.direction == "lower",
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
            **judged,
            "additional_details": {
                "direction": metric.direction,
                "kind": metric.kind,
                "scorer": metric.scorer,
                "scoring": metric.scoring,
                "offline": "true: by a rule, not by a model that understands"
                if metric.offline
                else "false",
            },
        },
        "score_details": {"score": mean.value, "details": details, "uncertainty": numbers},
    }


def _named(summary: Summary, condition: str, key: str) -> JsonObject:
    origin = summary.provenance
    settings = {}
    for setting, value in origin.settings.items():
        if setting.startswith(("agent.", f"conditions.{condition}.")):
            settings[setting] = formats.text_of(value)

    tools = []
    for server in origin.servers:
        if server.name in origin.condition_servers.get(condition, ()):
            for tool in server.tools:
                tools.append({"name": f"mcp__{server.name}__{tool}"})

    given = {"generation_args": {"agentic_eval_config": {"available_tools": tools}}}
    return {
        "evaluation_result_id": described(summary, condition, key),
        "evaluation_name": f"{summary.name}/{condition}/{key}",
        "source_data": {
            "dataset_name": origin.dataset,
            "source_type": "other",
            "additional_details": {
                "kind": origin.dataset_kind,
                "sha256": origin.sha256,
                "samples_in_file": str(origin.samples_in_file),
                "samples_used": str(summary.samples),
            },
        },
        "evaluation_timestamp": summary.created,
        "generation_config": {
            **(given if tools else {}),
            "additional_details": {
                "condition": condition,
                "condition_digest": origin.conditions.get(condition, ""),
                "agent_digest": origin.agents.get(condition, ""),
                "repetitions": str(summary.repetitions),
                **settings,
            },
        },
    }


def _uncertainty(estimate: Estimate, method: str) -> JsonObject:
    """`method`: that of the standard error."""
    numbers: JsonObject = {"num_samples": estimate.n}
    if estimate.se is not None:
        numbers["standard_error"] = {"value": estimate.se, "method": method}
    if estimate.low is not None and estimate.high is not None:
        numbers["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": estimate.level,
            "method": estimate.method,
        }

    return numbers
