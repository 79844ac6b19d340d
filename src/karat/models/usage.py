"""Token counts as OpenAI, Anthropic, Google, Bedrock, Ollama, LangChain and karat name them, as a
Usage.

All of them count what was sent and what came back; they differ in whether the input includes cached
tokens (Anthropic's and Bedrock's does not) and whether the output includes reasoning (Google's does
not). A Usage includes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from karat.records import MOST_COUNTED, JsonObject, Usage

_COUNTS = {
    "input_tokens": (
        "input_tokens",
        "prompt_tokens",
        "prompt_token_count",
        "input_token_count",
        "prompt_eval_count",
        "tokens_evaluated",
        "input",
    ),
    "output_tokens": (
        "output_tokens",
        "completion_tokens",
        "candidates_token_count",
        "response_token_count",
        "output_token_count",
        "eval_count",
        "tokens_predicted",
        "output",
    ),
    "cache_read_tokens": (
        "cache_read_tokens",
        "cache_read_input_tokens",
        "cached_tokens",
        "cached_content_token_count",
        "cached_input_tokens",
        "cached_prompt_tokens",
        "cached_read_tokens",
        "prompt_cache_hit_tokens",
        "cache_read",
    ),
    "cache_write_tokens": (
        "cache_write_tokens",
        "cache_creation_input_tokens",
        "cache_write_input_tokens",
        "cached_write_tokens",
        "cache_creation_tokens",
        "cache_creation",
    ),
    "reasoning_tokens": (
        "reasoning_tokens",
        "thoughts_token_count",
        "thinking_tokens",
        "reasoning_output_tokens",
        "reasoning",
    ),
}
"""Field of a Usage → the names that it has elsewhere."""

_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
    "completion_tokens_details",
    "output_tokens_details",
    "output_token_details",
    "tokens",  # Cohere's
)
"""Mappings inside that split the input or the output, or hold them."""

# Google's: tokens of tools' results, which its input leaves out
_TOOL_INPUT = "tool_use_prompt_token_count"
_NOT_COUNTED = frozenset(
    {
        "total_tokens",
        "total_token_count",
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
        "requests",
        "tool_calls",
        "details",
        "cost",
        "is_byok",
        "billed_units",
        "cost_details",
        "queue_time",
        "prompt_time",
        "completion_time",
        "total_time",
        "service_tier",
        "server_tool_use",
        "traffic_type",
        "inference_geo",
        "prompt_cache_miss_tokens",
        "input_audio_tokens",
        "output_audio_tokens",
        "cache_audio_read_tokens",
        "candidates_tokens_details",
        "cache_tokens_details",
        "tool_use_prompt_tokens_details",
        "iterations",
    }
)
"""Known, and not part of a Usage: they repeat other counts, or count something else."""

_APART = frozenset(
    {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens"}
)
"""Anthropic's and Bedrock's names: beside `input_tokens` these tokens are not part of the input."""


def usage_from(reported: object) -> Usage | None:
    """The tokens in a mapping or an object of any known shape; None: it reports neither input nor
    output.

    A count that is not a whole number is unknown.

    >>> anthropic = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 30}
    >>> (
    ...     usage_from(anthropic).input_tokens,
    ...     usage_from({"promptTokenCount": 7, "thoughtsTokenCount": 2}).output_tokens,
    ... )
    (1000, 2)
    """
    found = counts_of(reported)
    counts: dict[str, int | None] = {}
    for field, names in _COUNTS.items():
        known = (whole(found.get(name)) for name in names)
        counts[field] = next((count for count in known if count is not None), None)

    if (
        counts["input_tokens"] is None
        and counts["output_tokens"] is None
        and "thoughts_token_count" not in found
    ):
        return None

    if "input_tokens" in found and _APART & found.keys():
        cached = (counts["cache_read_tokens"] or 0) + (counts["cache_write_tokens"] or 0)
        counts["input_tokens"] = _sum(counts["input_tokens"], cached)

    counts["input_tokens"] = _sum(counts["input_tokens"], whole(found.get(_TOOL_INPUT)))
    counts["output_tokens"] = _sum(
        counts["output_tokens"], whole(found.get("thoughts_token_count"))
    )
    # xAI leaves the reasoning out of the output, not of the total; Gemini's chat completions do not
    # even name it, and bill it as output
    if "prompt_tokens" in found and "completion_tokens" in found:
        both = _sum(counts["input_tokens"], counts["output_tokens"])
        rest = (whole(found.get("total_tokens")) or 0) - (both or 0)
        cached = (counts["cache_read_tokens"] or 0) + (counts["cache_write_tokens"] or 0)
        reasoning = counts["reasoning_tokens"]
        if rest > 0 and rest == cached != reasoning:  # gateways to Anthropic leave out cached input
            counts["input_tokens"] = _sum(counts["input_tokens"], rest)
        elif rest > 0 and reasoning in (None, 0, rest):
            counts["output_tokens"] = _sum(counts["output_tokens"], rest)

    return Usage(**counts)


def counts_of(reported: object) -> JsonObject:
    """Every count by its name in snake case, with those of the details."""
    found: JsonObject = {}
    for name, value in _items(reported):
        if name in _DETAILS and whole(value) is None:
            for inner, count in _items(value):
                if count is not None:
                    found[inner] = count

        elif value is not None:
            found[name] = value

    return found


def unread_counts(reported: object) -> list[str]:
    """The names in a mapping that no shape has, and those whose value is not a whole number."""
    if not isinstance(reported, Mapping):
        return []
    known = {name for names in _COUNTS.values() for name in names}
    found = counts_of(reported)
    out = []
    for name, value in found.items():
        if name == "cache_creation" and isinstance(value, Mapping):
            continue  # Anthropic's: by lifetime what its other name counts
        if (
            name not in _NOT_COUNTED
            and name != _TOOL_INPUT
            and (name not in known or whole(value) is None)
        ):
            out.append(name)

    return out


def whole(value: object) -> int | None:
    """A whole number of any type that can count tokens; None for anything else.

    >>> whole(5.0), whole(Decimal("5")), whole(5.5), whole(True), whole("5"), whole(-1)
    (5, 5, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None

    if number.is_integer() and 0 <= number <= MOST_COUNTED:
        return int(number)
    return None


def _items(reported: object) -> Iterator[tuple[str, Any]]:
    if isinstance(reported, Mapping):
        for key, value in reported.items():
            yield re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", str(key)), value

        return

    names = (name for names in _COUNTS.values() for name in names)
    for name in (*names, *_DETAILS, _TOOL_INPUT, "total_tokens"):
        value = getattr(reported, name, None)
        if not callable(value):
            yield name, value


def _sum(count: int | None, more: int | None) -> int | None:
    if count is None or more is None:
        return more if count is None else count
    return count + more
