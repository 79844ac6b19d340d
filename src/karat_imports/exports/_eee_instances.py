"""One trial as instances of Every Eval Ever: one per metric with a number."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from karat import formats
from karat.analysis import Summary, TrialRecord
from karat.records import Answer, JsonObject, Reply, Sample, Usage
from karat_imports.exports._eee_names import described, tool_name

SCHEMA = "0.3.0"


def instances(
    summary: Summary,
    trial: TrialRecord,
    *,
    evaluation: str,
    model: str,
) -> Iterator[JsonObject]:
    """The instances of a trial.

    A metric without a number, or without a bound for being right, has none.
    """
    if trial.answer is None:
        return
    numbers = []
    for metric in summary.metrics:
        # The number that counts as right: the metric's threshold, else the best value of its
        # scale
        line = metric.threshold
        if line is None:
            line = metric.high if metric.direction == "higher" else metric.low
        value = trial.value(metric)
        if metric.direction != "none" and value is not None and line is not None:
            numbers.append((metric, value, line))

    if not numbers:
        return
    instance = _instance(trial, trial.answer, evaluation, model)
    calls = sum(len(reply.tool_calls) for reply in trial.answer.replies)
    for metric, value, line in numbers:
        if metric.direction == "lower":
            right = value <= line
        else:
            right = value >= line

        yield {
            **instance,
            "evaluation_name": f"{summary.name}/{trial.condition}/{metric.key}",
            "evaluation_result_id": described(summary, trial.condition, metric.key),
            "evaluation": {
                "score": value,
                "is_correct": right,
                "num_turns": max(1, len(trial.answer.replies)),
                "tool_calls_count": calls,
            },
        }


def _instance(trial: TrialRecord, answer: Answer, evaluation: str, model: str) -> JsonObject:
    """What all instances of a trial have in common."""
    sample = trial.sample
    replies = answer.replies
    raw = "\n\n".join(turn.question for turn in sample.turns)
    reference = []
    for turn in sample.turns:
        if turn.golden is not None:
            reference.append(turn.golden)

    calls = any(reply.tool_calls for reply in replies)
    alone = len(sample.turns) == 1 and len(replies) <= 1 and not calls
    if alone:
        kind = "single_turn"
    elif calls:
        kind = "agentic"
    else:
        kind = "multi_turn"

    messages, places = ([], []) if alone else _messages(sample, replies)
    usage = _usage(replies)
    metadata = {key: formats.text_of(value) for key, value in sample.metadata.items()}
    if alone:
        traces = [reply.reasoning for reply in answer.replies if reply.reasoning]
        output = {"raw": [answer.text], **({"reasoning_trace": traces} if traces else {})}
    else:
        output = None

    # The short answer if the agent gave one separately, else the whole reply
    scored = []
    for index, reply in enumerate(replies):
        scored.append(
            {
                "turn_idx": places[index] if places else 0,
                "source": f"messages[{places[index]}].content" if places else "output.raw",
                "extracted_value": reply.answer if reply.answer is not None else reply.text,
                "extraction_method": "whole_text" if reply.answer is None else "answer_given_apart",
                "is_terminal": index == len(replies) - 1,
            }
        )

    return {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation,
        "model_id": model,
        "sample_id": sample.id,
        "sample_hash": sha256((raw + "".join(reference)).encode("utf-8", "replace")).hexdigest(),
        "interaction_type": kind,
        "input": {"raw": raw, "reference": reference},
        "output": output,
        "messages": None if alone else messages,
        "answer_attribution": scored,
        **({"token_usage": usage} if usage is not None else {}),
        **(
            {}
            if answer.seconds is None
            else {"performance": {"latency_ms": max(0.0, 1000 * answer.seconds)}}
        ),
        "metadata": {
            **metadata,
            "karat.trial": answer.trial,
            "karat.condition": trial.condition,
            "karat.repetition": str(trial.repetition),
            "karat.attempts": str(answer.attempts),
            **(
                {"karat.stop_reason": replies[-1].stop_reason}
                if replies and replies[-1].stop_reason
                else {}
            ),
        },
    }


def _messages(sample: Sample, replies: tuple[Reply, ...]) -> tuple[list[JsonObject], list[int]]:
    """The messages, in order, with each reply's text after the calls that led to it."""
    messages: list[JsonObject] = []
    places = []
    for turn, reply in enumerate(replies):
        if turn < len(sample.turns):
            asked = sample.turns[turn].asked or sample.turns[turn].question
            if sample.materials and turn == 0:
                asked = f"{sample.materials}\n\n{asked}"
            messages.append({"role": "user", "content": asked})

        for index, call in enumerate(reply.tool_calls):
            arguments = {key: formats.text_of(value) for key, value in call.input.items()}
            request = {"id": f"{turn}.{index}", "name": tool_name(call), "arguments": arguments}
            messages.append({"role": "assistant", "content": None, "tool_calls": [request]})
            messages.append(
                {
                    "role": "tool",
                    "content": call.error or call.result,
                    "tool_call_id": [request["id"]],
                }
            )

        places.append(len(messages))
        said: JsonObject = {"role": "assistant", "content": reply.text}
        if reply.reasoning:
            said["reasoning_trace"] = reply.reasoning
        messages.append(said)

    return [{"turn_idx": index, **message} for index, message in enumerate(messages)], places


def _usage(replies: tuple[Reply, ...]) -> JsonObject | None:
    """Tokens of all turns; None if one did not report them, or reported an invalid count."""
    tokens: JsonObject = {}
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_write_tokens": "input_tokens_cache_write",
        "cache_read_tokens": "input_tokens_cache_read",
        "reasoning_tokens": "reasoning_tokens",
    }
    for ours, theirs in names.items():
        counts = [getattr(reply.usage or Usage(), ours) for reply in replies]
        if counts and all(tokens is not None and tokens >= 0 for tokens in counts):
            tokens[theirs] = sum(counts)

    if "input_tokens" not in tokens or "output_tokens" not in tokens:
        return None
    return {**tokens, "total_tokens": tokens["input_tokens"] + tokens["output_tokens"]}
