"""Prices of tokens: the user's first, then the table of genai-prices."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from karat.errors import BadOption
from karat.models.names import ModelName, parse_model
from karat.records import Usage

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None  # None: as `input`
    cache_write: float | None = None  # None: as `input`

    def dollars(self, usage: Usage) -> float | None:
        """The cost of these tokens. Cached tokens are part of the input, and priced separately.

        None: more tokens were cached than sent, so how the provider counts is not known.
        """
        read = usage.cache_read_tokens or 0
        written = usage.cache_write_tokens or 0
        plain = (usage.input_tokens or 0) - read - written
        if plain < 0:
            return None
        return (
            plain * self.input
            + read * (self.input if self.cache_read is None else self.cache_read)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + (usage.output_tokens or 0) * self.output
        ) / _MILLION


def price(
    model: ModelName | str,
    usage: Usage | None,
    prices: Mapping[str, Price] | None = None,
    *,
    base_url: str | None = None,
) -> float | None:
    """Dollars for one response; None: not known, which is never zero.

    `prices` (model → Price, under its name in the experiment file, or the model's own)
    override the table. A service at its own address (`base_url`) is priced by the
    table only if the table knows the address: a local server does not cost OpenAI's price.
    """
    own = own_price(model, prices)
    if usage is None:
        return 0.0 if own is not None and not (own.input or own.output) else None
    if own is not None:
        return own.dollars(usage)
    named = _named(model)
    if named is not None:
        try:
            from genai_prices import Usage as Counted
            from genai_prices import calc_price
        except ImportError:
            return None

        counted = Counted(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        try:
            where: Any = {"provider_api_url": base_url}
            if base_url is None:
                where = {"provider_id": named.vendor}
            return float(calc_price(counted, named.name, **where).total_price)
        except (LookupError, ValueError):
            return None

    return None


def own_price(model: ModelName | str, prices: Mapping[str, Price] | None) -> Price | None:
    """The user's price, under any spelling of the model."""
    if not prices:
        return None
    if str(model) in prices:
        return prices[str(model)]
    named = _named(model)
    if named is None:
        return None
    for given, value in prices.items():
        other = _named(given)
        if given == named.name or (other and other.limited_as == named.limited_as):
            return value

    return None


def price_table() -> str:
    """The source of table prices, as named in `run.json`."""
    try:
        return f"genai-prices {version('genai-prices')}"
    except PackageNotFoundError:
        return "none"


def _named(model: ModelName | str) -> ModelName | None:
    if isinstance(model, ModelName):
        return model
    try:
        return parse_model(model)
    except BadOption:
        return None
