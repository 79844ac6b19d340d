"""A model of pydantic-ai that waits for its provider's limiter, and counts its cost.

Loads pydantic-ai.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from karat.models.faults import fault_of
from karat.models.metering import spent, usage_of
from karat.models.names import ModelName
from karat.models.pacing import limiter
from karat.models.prices import Price, price
from karat.models.rates import rate_limit
from karat.records import Usage

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.settings import ModelSettings


class Lease(Protocol):
    """A share of connections, released when the model is closed."""

    async def end(self) -> None: ...


class LimitedModel(WrapperModel):
    """Every request waits for its provider's limiter and its model's rate, and every response is
    metered.
    """

    def __init__(
        self,
        wrapped: Model,
        named: ModelName,
        *,
        base_url: str | None,
        prices: Mapping[str, Price] | None,
        lease: Lease,
    ) -> None:
        super().__init__(wrapped)
        self.named = named
        self.address = base_url
        self.prices = prices
        self.lease = lease

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """As the wrapped model's, once there is a slot."""
        async with (
            self._slot(),
            self._admitted(messages, model_settings, model_request_parameters) as used,
        ):
            try:
                response = await self.wrapped.request(
                    messages, model_settings, model_request_parameters
                )
            except LookupError as error:  # pydantic-ai takes the first choice of an empty list
                raise UnexpectedModelBehavior(
                    "the provider's response holds no answer (no choices)"
                ) from error

            used(usage_of(response.usage))

        self._count(response.usage)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """As the wrapped model's; the slot is held until the stream ends."""
        async with (
            self._slot(),
            self._admitted(messages, model_settings, model_request_parameters) as used,
            self.wrapped.request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream,
        ):
            yield stream
            used(usage_of(stream.usage))

        self._count(stream.usage)

    def _count(self, counted: object) -> None:
        usage = usage_of(counted)
        spent(usage, price(self.named, usage, self.prices, base_url=self.address))

    @asynccontextmanager
    async def _admitted(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> AsyncGenerator[Callable[[Usage | None], None]]:
        limit = rate_limit(self.named)
        if limit is None:
            yield lambda _: None
            return

        characters = len(ModelMessagesTypeAdapter.dump_json(messages)) + len(
            repr(parameters.function_tools)
        )
        async with limit.admitted(
            limit.estimate(characters, (settings or {}).get("max_tokens"))
        ) as used:
            yield used

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        pace = limiter(self.named.vendor, self.address)
        async with pace.slot():
            try:
                yield
            except ModelAPIError as error:
                fault = fault_of(error)
                if fault.kind == "rate_limit":
                    pace.refused(fault.retry_after)
                raise

            pace.success()
