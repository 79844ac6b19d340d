"""Tokens, from a provider's count to karat's."""

from __future__ import annotations

from typing import Any

from karat.records import Usage

__all__ = ["less", "total", "usage_of"]


def usage_of(counted: Any) -> Usage | None:
    """The tokens of one response or of a run, as pydantic-ai counts them; None: the provider did not tell.

    Input tokens include cached ones, output tokens include reasoning. Kinds that a provider
    does not count are None where pydantic-ai has a zero and the whole says nothing of them.
    """
    if counted is None or not (counted.input_tokens or counted.output_tokens):
        return None
    reasoning = getattr(counted, "output_reasoning_tokens", 0) or counted.details.get("reasoning_tokens", 0)
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens or None,
        cache_write_tokens=counted.cache_write_tokens or None,
        reasoning_tokens=reasoning or None,
    )


def total(first: Usage | None, second: Usage | None) -> Usage | None:
    """Both together. What one of them does not know is taken from the other.

    >>> total(Usage(input_tokens=1), Usage(input_tokens=2, output_tokens=3))
    Usage(input_tokens=3, output_tokens=3, cache_read_tokens=None, cache_write_tokens=None, reasoning_tokens=None)
    """
    if first is None or second is None:
        return first or second
    return Usage(
        input_tokens=_sum(first.input_tokens, second.input_tokens),
        output_tokens=_sum(first.output_tokens, second.output_tokens),
        cache_read_tokens=_sum(first.cache_read_tokens, second.cache_read_tokens),
        cache_write_tokens=_sum(first.cache_write_tokens, second.cache_write_tokens),
        reasoning_tokens=_sum(first.reasoning_tokens, second.reasoning_tokens),
    )


def less(whole: Usage, part: Usage | None) -> Usage:
    """What is left of the whole; never below 0, and None where the whole is not known."""
    if part is None:
        return whole
    return Usage(
        input_tokens=_rest(whole.input_tokens, part.input_tokens),
        output_tokens=_rest(whole.output_tokens, part.output_tokens),
        cache_read_tokens=_rest(whole.cache_read_tokens, part.cache_read_tokens),
        cache_write_tokens=_rest(whole.cache_write_tokens, part.cache_write_tokens),
        reasoning_tokens=_rest(whole.reasoning_tokens, part.reasoning_tokens),
    )


def _rest(whole: int | None, part: int | None) -> int | None:
    return None if whole is None else max(0, whole - (part or 0))


def _sum(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second
