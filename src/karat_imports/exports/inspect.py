"""`--to inspect`: a run as logs of Inspect AI (`.json`, version 2), one per condition.

`inspect view` and `inspect_ai.log.read_eval_log` read them; `karat import inspect` gives the same
numbers back. Source of the format: `inspect_ai.log.EvalLog`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from karat import __version__
from karat.analysis import Summary, TrialRecord, trials
from karat.analysis.model import MetricInfo
from karat.files import file_safe, streamed
from karat.journal import RunFolder
from karat.records import Answer, JsonObject, Reply, Sample, Usage
from karat.sums import exact_sum, sum_of_known
from karat_imports.exports._eee_names import model_of, tool_name

__all__ = ["Inspect"]

_STOPS = ("stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown")
_TOKENS = {
    "cache_read_tokens": "input_tokens_cache_read",
    "cache_write_tokens": "input_tokens_cache_write",
    "reasoning_tokens": "reasoning_tokens",
}


class Inspect:
    """Logs of Inspect AI (.json), one per condition: for `inspect view` and other readers."""

    @streamed
    def render(self, summary: Summary, run: RunFolder) -> Iterator[tuple[str, str]]:
        # Inspect sorts its logs by the time at the start: time_task_id.json
        time = _time(summary.created).replace(":", "-")
        names = {}
        for condition in summary.conditions:
            task = file_safe(f"{summary.name}-{condition}")
            names[condition] = f"{time}_{task}_{_identity(summary, condition)}.json"

        ids = [
            sample.id
            for sample in sorted(run.samples(), key=lambda sample: (sample.position, sample.id))
        ]
        opened_conditions: set[str] = set()
        for condition in summary.conditions:
            yield names[condition], _encoded(_header(summary, condition, ids))[:-1] + ',"samples":['

        for trial in trials(run, summary):
            if trial.answer is None and trial.failure is None:
                continue  # not run
            text = _encoded(_sample(summary, trial, model_of(summary, trial.condition, None).id))
            yield (
                names[trial.condition],
                f",\n{text}" if trial.condition in opened_conditions else f"\n{text}",
            )
            opened_conditions.add(trial.condition)

        for name in names.values():
            yield name, "\n]}\n"


def _identity(summary: Summary, condition: str) -> str:
    return sha256(f"{summary.run}\0{condition}".encode("utf-8", "replace")).hexdigest()[:22]


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # a run folder may come from a stranger
        return "1970-01-01T00:00:00+00:00"

    if moment.tzinfo:
        return moment.replace(microsecond=0).isoformat()
    return f"{moment:%Y-%m-%dT%H:%M:%S}+00:00"


def _header(summary: Summary, condition: str, ids: Sequence[str]) -> JsonObject:
    identity = _identity(summary, condition)
    complete = summary.status == "done"
    account = summary.accounts[condition].ledger
    return {
        "version": 2,
        "status": "success" if complete else "cancelled",
        "eval": {
            "eval_id": identity,
            "run_id": summary.run,
            "created": _time(summary.created),
            "task": summary.name,
            "task_id": identity,
            "task_args": {"condition": condition},
            "dataset": {
                "name": summary.provenance.dataset,
                "samples": len(ids),
                "sample_ids": ids,
                "shuffled": False,
            },
            "model": model_of(summary, condition, None).id,
            "config": {
                "epochs": summary.repetitions,
                "epochs_reducer": ["mean"],
                "fail_on_error": False,
            },
            "packages": {"karat": __version__},
            "metadata": {"karat_run": summary.run, "warnings": list(summary.warnings)},
        },
        "plan": {"name": "karat", "steps": []},  # readers of headers require one
        "results": {
            "total_samples": len(ids) * summary.repetitions,
            "completed_samples": account.scored,
            "scores": [
                {
                    "name": metric.key,
                    "scorer": metric.scorer,
                    "reducer": "mean",
                    "scored_samples": result.n_questions,
                    "metadata": {"direction": metric.direction, "description": metric.description},
                    "metrics": {
                        name: {"name": name, "value": value}
                        for name, value in (("mean", result.mean.value), ("stderr", result.mean.se))
                        if value is not None
                    },
                }
                for metric in summary.metrics
                if (result := summary.result(condition, metric.key)) is not None
            ],
        },
        "stats": {"started_at": _time(summary.created), "completed_at": ""},
    }


def _sample(summary: Summary, trial: TrialRecord, model: str) -> JsonObject:
    sample = trial.sample
    answer = trial.answer
    goldens = []
    for turn in sample.turns:
        if turn.golden is not None:
            goldens.append(turn.golden)

    if answer:
        detail = answer.detail
    else:
        detail = {}

    common: JsonObject = {
        "id": sample.id,
        "epoch": trial.repetition + 1,
        "input": _asked(sample, 0),
        "target": goldens[0] if len(goldens) == 1 else goldens or "",
        "messages": [],
        "output": {"model": model, "choices": [], "completion": ""},
        "scores": {},
        "metadata": sample.metadata,
        "store": {
            "karat": {
                "attempts": answer.attempts if answer else None,
                "detail": detail,
            }
        },
    }
    if answer is None:
        assert trial.failure is not None
        message = f"{trial.failure.kind}: {trial.failure.message}"
        return {**common, "error": {"message": message, "traceback": "", "traceback_ansi": ""}}

    messages = list(_messages(sample, answer))
    if answer.replies:
        last = answer.replies[-1]
    else:
        last = Reply(text="")

    spoken = [message for message in messages if message["role"] == "assistant"]
    stop = last.stop_reason if last.stop_reason in _STOPS else "unknown"
    choices = [{"message": message, "stop_reason": stop} for message in spoken[-1:]]

    usage = _usage(
        [reply.usage for reply in answer.replies], [reply.dollars for reply in answer.replies]
    )
    judged = _usage([row.usage for row in trial.scores], [row.dollars for row in trial.scores])
    times = sum_of_known(reply.milliseconds for reply in answer.replies)
    if usage:
        model_usage = {last.model or model: usage}
    else:
        model_usage = {}

    if judged:
        role_usage = {"grader": judged}
    else:
        role_usage = {}

    return {
        **common,
        "messages": messages,
        "output": {
            "model": last.model or model,
            "choices": choices,
            "completion": last.text,
        },
        "scores": dict(_scores(summary, trial, last)),
        "model_usage": model_usage,
        "role_usage": role_usage,
        "started_at": answer.started,
        "total_time": answer.seconds,
        "working_time": None if times is None else times / 1000,
        "uuid": answer.trial,
        "turn_count": sum(filter(None, (reply.responses for reply in answer.replies))) or None,
    }


def _asked(sample: Sample, turn: int) -> str:
    text = ""
    if turn < len(sample.turns):
        text = sample.turns[turn].question
    if sample.materials and turn == 0:
        return f"{sample.materials}\n\n{text}"
    return text


def _messages(sample: Sample, answer: Answer) -> Iterator[JsonObject]:
    for turn, reply in enumerate(answer.replies):
        yield {"role": "user", "content": _asked(sample, turn)}
        calls = [
            {
                "id": f"{turn}.{index}",
                "function": tool_name(call),
                "arguments": call.input,
                "type": "function",
            }
            for index, call in enumerate(reply.tool_calls)
        ]
        if calls:
            yield {"role": "assistant", "content": "", "tool_calls": calls, "source": "generate"}
        for index, call in enumerate(reply.tool_calls):
            result: JsonObject = {
                "role": "tool",
                "content": call.result or "",
                "tool_call_id": f"{turn}.{index}",
                "function": tool_name(call),
            }
            if call.error is not None:
                result["error"] = {"type": "unknown", "message": call.error}
            yield result

        content: object = reply.text
        if reply.reasoning:
            thought = {"type": "reasoning", "reasoning": reply.reasoning}
            content = [thought, {"type": "text", "text": reply.text}]

        yield {"role": "assistant", "content": content, "source": "generate"}


def _scores(summary: Summary, trial: TrialRecord, last: Reply) -> Iterator[tuple[str, JsonObject]]:
    """Scorer → its values. A single number named after its scorer is the value itself."""
    by_scorer: dict[str, list[MetricInfo]] = {}
    for metric in summary.metrics:
        by_scorer.setdefault(metric.scorer, []).append(metric)

    for scorer, metrics in by_scorer.items():
        values = {metric.name: trial.value(metric) for metric in metrics}
        if all(value is None for value in values.values()):
            continue
        rows = []
        for row in trial.scores:
            if row.scorer == scorer:
                rows.append(row)

        whys = dict.fromkeys(why for row in rows for why in row.reasons.values() if why)
        yield (
            scorer,
            {
                "value": values[scorer] if list(values) == [scorer] else values,
                "answer": last.answer,
                "explanation": "\n\n".join(whys) or None,
                "metadata": {
                    "rows": [
                        {"judge": row.judge, "values": row.values, **row.labels} for row in rows
                    ]
                },
            },
        )


def _usage(uses: Sequence[Usage | None], dollars: Sequence[float | None]) -> JsonObject | None:
    """The sum; None if a call reported no tokens, because Inspect would read that as zero."""
    known = []
    for use in uses:
        if use is not None and use.input_tokens is not None and use.output_tokens is not None:
            known.append(use)

    if not known or len(known) < len(uses):
        return None
    tokens: JsonObject = {}
    for ours, theirs in _TOKENS.items():
        counts = [getattr(use, ours) for use in known]
        if any(count is not None for count in counts):
            tokens[theirs] = sum(filter(None, counts))

    total = sum(use.input_tokens or 0 for use in known)
    output = sum(use.output_tokens or 0 for use in known)
    cached = tokens.get("input_tokens_cache_read", 0) + tokens.get("input_tokens_cache_write", 0)
    return {
        "input_tokens": max(0, total - cached),  # Inspect counts cached ones separately
        "output_tokens": output,
        "total_tokens": max(total, cached) + output,
        **tokens,
        **({} if None in dollars else {"total_cost": exact_sum(filter(None, dollars))}),
    }


def _encoded(value: JsonObject) -> str:
    return msgspec.json.encode(value).decode()
