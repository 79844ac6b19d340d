"""`--to keval`: the two files that k-eval's viewer and scripts read.

One line per (question, condition). Lines refer to repetitions by position, so repetitions
without an answer or a score are left out and the others renumbered. The viewer shows as many
repetitions of every line as the first line has, so a line with most of them comes first.
`<metric>_stddev` of a line is null for one repetition; in the aggregate it is the mean over
lines, as in k-eval, not the pooled one that karat's own reports show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from math import sqrt

import msgspec

from karat import __version__, formats
from karat.analysis import Summary, TrialRecord, trials
from karat.analysis.model import MetricInfo
from karat.exports import epoch
from karat.journal import End, RunFolder
from karat.records import JsonObject, Usage
from karat.sums import exact_sum

__all__ = ["Keval"]


class Keval:
    """An aggregate (.json) and a detailed file (.detailed.jsonl), in k-eval's format 0.2.1."""

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        # A run folder may come from a stranger, so none of the three is trusted.
        day = summary.created[:10].replace("-", "")
        parts = (summary.name, day, summary.run)
        stem = "_".join(re.sub(r"[^\w.+ -]", "_", part).strip(". ")[:80] or "run" for part in parts)
        seconds = round(exact_sum(end.seconds or 0.0 for end in run.events_of(End)), 1)
        lines = list(_lines(summary, run, seconds))
        if lines:  # the first of those with most repetitions comes first
            first = max(lines, key=lambda line: len(line["run_details"]))
            lines = [first, *(line for line in lines if line is not first)]

        detailed = "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)

        now = str(epoch(summary))
        source = {
            "source_name": "karat",
            "source_type": "evaluation_run",
            "source_organization_name": "karat",
            "evaluator_relationship": "self",
        }
        model = {
            "id": _model(summary),
            "name": _model(summary),
            "developer": None,
            "inference_platform": None,
        }
        aggregate = {
            "schema_version": "0.2.1",
            "evaluation_id": summary.run,
            "retrieved_timestamp": now,
            "source_metadata": source,
            "model_info": model,
            "eval_library": {"name": "karat", "version": __version__},
            "evaluation_results": [
                _condition(summary, name, lines, now) for name in summary.conditions
            ],
            "detailed_evaluation_results": {
                "file_path": f"{stem}.detailed.jsonl",
                "format": "jsonl",
                "checksum": sha256(detailed.encode("utf-8")).hexdigest(),
            },
        }

        return {f"{stem}.json": formats.json_file(aggregate), f"{stem}.detailed.jsonl": detailed}


def _lines(summary: Summary, run: RunFolder, seconds: float) -> Iterator[JsonObject]:
    cells = groupby(
        trials(run, summary),
        key=lambda trial: (trial.sample.position, trial.sample.id, trial.condition),
    )
    for _, group in cells:
        kept = [
            trial
            for trial in group
            if trial.answer is not None and (trial.scores or not summary.metrics)
        ]
        if kept:
            sample = kept[0].sample
            traces = [_trace(trial, position) for position, trial in enumerate(kept)]
            reasoning: list[str] = []
            for trial in kept:
                texts = [
                    *(reply.reasoning for reply in trial.replies),
                    *(reply.text for reply in trial.replies[:-1]),
                ]
                reasoning.append(" ".join(text for text in texts if text))

            agentic = any(step["source"] == "mcp_tool" for steps in traces for step in steps)
            several = "multi_turn" if len(sample.turns) > 1 else "single_turn"
            timing = {"evaluation_timestamp": epoch(summary), "elapsed_seconds": seconds}
            yield {
                "schema_version": "instance_level_eval_0.2.1",
                "evaluation_id": summary.run,
                "model_id": _model(summary),
                "evaluation_name": f"{summary.name}/{kept[0].condition}",
                "sample_idx": str(sample.position),
                "sample_id": sample.id,
                "interaction_type": "agentic" if agentic else several,
                "input": {
                    "raw": "\n\n".join(turn.question for turn in sample.turns),
                    "reference": "\n\n".join(
                        turn.golden for turn in sample.turns if turn.golden is not None
                    ),
                },
                "output": {"raw": _text(kept[0]), "reasoning_trace": reasoning[0]},
                "answer_attribution": [step for steps in traces for step in steps],
                "evaluation": {
                    "score": None,
                    "details": timing | _details(summary.metrics, kept, reasoning),
                },
                "token_usage": {
                    "input_tokens": _tokens(kept, "input_tokens"),
                    "output_tokens": _tokens(kept, "output_tokens"),
                },
                "run_details": [
                    _run_detail(summary.metrics, trial, position, steps, trace)
                    for position, (trial, steps, trace) in enumerate(
                        zip(kept, traces, reasoning, strict=True)
                    )
                ],
            }


def _details(
    metrics: Sequence[MetricInfo], kept: Sequence[TrialRecord], reasoning: Sequence[str]
) -> JsonObject:
    details: JsonObject = {}
    for metric in metrics:
        values = [value for trial in kept if (value := trial.value(metric)) is not None]
        details[f"{metric.key}_mean"] = _mean(values)

        if len(values) < 2:
            details[f"{metric.key}_stddev"] = None
        else:
            mean = exact_sum(values) / len(values)
            details[f"{metric.key}_stddev"] = sqrt(
                exact_sum((value - mean) ** 2 for value in values) / (len(values) - 1)
            )

        reasonings: list[str] = []
        for trial in kept:
            reasons: dict[str | None, None] = {}
            for score in trial.scores:
                if score.scorer == metric.scorer:
                    reasons[score.reasons.get(metric.name)] = None

            reasonings.append("\n\n".join(filter(None, reasons)))

        details[f"{metric.key}_reasonings"] = reasonings

    claims = dict.fromkeys(
        claim for trial in kept for score in trial.scores for claim in score.claims
    )
    details["unverified_claims"] = list(claims)
    details["offline"] = any(metric.offline for metric in metrics)
    details["reasoning_traces"] = [
        {"repetition_index": position, "reasoning_trace": text}
        for position, text in enumerate(reasoning)
    ]
    return details


def _run_detail(
    metrics: Sequence[MetricInfo],
    trial: TrialRecord,
    position: int,
    steps: Sequence[JsonObject],
    trace: str,
) -> JsonObject:
    assert trial.answer is not None
    costs = [reply.dollars for reply in trial.answer.replies]
    if None in costs:
        cost_usd = None
    else:
        cost_usd = exact_sum(cost for cost in costs if cost is not None)

    if trial.answer.seconds is None:
        duration_ms = None
    else:
        duration_ms = round(1000 * trial.answer.seconds)

    values: dict[str, float | None] = {}
    for metric in metrics:
        value = trial.value(metric)
        values[metric.key] = value
        if value is not None and value == int(value):
            values[metric.key] = int(value)

    return {
        "repetition_index": position,
        "agent_response": _text(trial),
        "reasoning_trace": trace,
        "cost_usd": cost_usd,
        "duration_ms": duration_ms,
        "num_turns": len(steps),
        **values,
    }


def _text(trial: TrialRecord) -> str:
    if trial.answer is not None:
        return trial.answer.text
    return ""


def _trace(trial: TrialRecord, position: int) -> list[JsonObject]:
    """Every step of one repetition, in order: thoughts, MCP calls, messages."""
    steps: list[JsonObject] = []
    for place, reply in enumerate(trial.replies, start=1):
        if reply.reasoning:
            steps.append(_reasoning_step(reply.reasoning, terminal=False))
        for call in reply.tool_calls:
            if call.server is not None:
                steps.append(
                    {
                        "source": "mcp_tool",
                        "extracted_value": call.result or "",
                        "extraction_method": "tool_call",
                        "is_terminal": False,
                        "tool_name": f"mcp__{call.server}__{call.tool}",
                        "tool_input": call.input,
                        "tool_error": call.error is not None,
                        "duration_ms": call.milliseconds,
                    }
                )

        steps.append(_reasoning_step(reply.text, terminal=place == len(trial.replies)))

    return [
        {"repetition_index": position, "turn_idx": index, **step}
        for index, step in enumerate(steps)
    ]


def _reasoning_step(text: str, *, terminal: bool) -> JsonObject:
    return {
        "source": "agent_reasoning",
        "extracted_value": text,
        "extraction_method": "text_generation",
        "is_terminal": terminal,
    }


def _tokens(kept: Sequence[TrialRecord], field: str) -> int | None:
    """The sum over repetitions; None if any of them did not report it."""
    replies = [reply for trial in kept for reply in trial.replies]
    counts: list[int | None] = [getattr(reply.usage or Usage(), field) for reply in replies]
    if None in counts:
        return None
    return sum(filter(None, counts))


def _model(summary: Summary) -> str:
    return summary.provenance.model or summary.provenance.agent


def _condition(
    summary: Summary,
    condition: str,
    lines: Sequence[JsonObject],
    now: str,
) -> JsonObject:
    name = f"{summary.name}/{condition}"
    details = []
    for line in lines:
        if line["evaluation_name"] == name:
            details.append(line["evaluation"]["details"])

    averages: JsonObject = {}
    for metric in summary.metrics:
        for key in (f"{metric.key}_mean", f"{metric.key}_stddev"):
            averages[key] = _mean([detail[key] for detail in details if detail[key] is not None])

    servers = [msgspec.to_builtins(use) for use in summary.accounts[condition].servers]

    lows = {metric.low for metric in summary.metrics}
    highs = {metric.high for metric in summary.metrics}
    listed = ", ".join(
        f"{metric.key}{' (offline)' if metric.offline else ''}" for metric in summary.metrics
    )
    metric_config = {
        "evaluation_description": f"karat: {listed or 'answers without scores'}",
        "lower_is_better": bool(summary.metrics)
        and all(metric.direction == "lower" for metric in summary.metrics),
        "score_type": "composite",
        "min_score": lows.pop() if len(lows) == 1 else None,
        "max_score": highs.pop() if len(highs) == 1 else None,
    }

    return {
        "evaluation_name": name,
        "evaluation_timestamp": now,
        "source_data": {
            "source_type": "jsonl_file",
            "dataset_sha256": summary.provenance.sha256,
            "samples_number": len({line["sample_idx"] for line in lines}),
        },
        "metric_config": metric_config,
        "score_details": {"score": None, "details": averages},
        "generation_config": {
            "judge_temperature": summary.provenance.settings.get("judge.temperature"),
            **({"judges": summary.provenance.judges} if summary.provenance.judges else {}),
        },
        **({"mcp_servers": servers} if servers else {}),
    }


def _mean(values: Sequence[float]) -> float | None:
    if values:
        return exact_sum(values) / len(values)
    return None
