"""Language models, for agents and judges alike: one HTTP client, one rate limiter per provider,
prices, faults.

    # a pydantic-ai model, ready to use
    model = open_model("anthropic:claude-sonnet-4-5", api_key_env="MY_KEY")
    with metered() as meter:
        # or pydantic_ai.Agent(model).run(…)
        response = await model.request(messages, settings, parameters)
    meter.usage, meter.dollars  # of every response in the block
    await close_model(model)

A request of such a model waits for its provider's limiter, and reports its outcome:
agent and judge with the same provider slow down together. SDKs do not retry by
themselves. `fault_of` turns what a request raises into a TrialFault.

Importing this package loads neither pydantic-ai nor a provider's SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.models.client import close_model, open_model, settings_of
    from karat.models.faults import fault_of, from_status, known_fault
    from karat.models.metering import Meter, less, metered, stop_reason, total, usage_of
    from karat.models.names import ModelName, key_variable, parse_model, with_provider
    from karat.models.pacing import Limiter, limiter, limiters
    from karat.models.prices import Price, price, price_table
    from karat.models.rates import Rate, RateLimit, limit_rates, rate_limit
    from karat.models.vertex import route

__all__ = [
    "Limiter",
    "Meter",
    "ModelName",
    "Price",
    "Rate",
    "RateLimit",
    "close_model",
    "fault_of",
    "from_status",
    "key_variable",
    "known_fault",
    "less",
    "limit_rates",
    "limiter",
    "limiters",
    "metered",
    "open_model",
    "parse_model",
    "price",
    "price_table",
    "rate_limit",
    "route",
    "settings_of",
    "stop_reason",
    "total",
    "usage_of",
    "with_provider",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "client": "close_model open_model settings_of",
        "faults": "fault_of from_status known_fault",
        "metering": "Meter less metered stop_reason total usage_of",
        "names": "ModelName key_variable parse_model with_provider",
        "pacing": "Limiter limiter limiters",
        "prices": "Price price price_table",
        "rates": "Rate RateLimit limit_rates rate_limit",
        "vertex": "route",
    },
)
