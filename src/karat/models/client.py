"""Models as pydantic-ai has them, ready to be asked: shared connections, no retries behind karat's back, metered."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from karat.errors import BadOption, MissingExtra
from karat.models.names import ModelName, key_variable, parse_model
from karat.models.prices import Price

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

__all__ = ["close_model", "open_model", "settings_of"]

_CONNECT_SECONDS = 20.0
_READ_SECONDS = 600.0

# Services that want no key, and SDKs that want one all the same.
_NO_KEY = "no-key"


def open_model(
    name: ModelName | str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    env: Mapping[str, str] | None = None,
    prices: Mapping[str, Price] | None = None,
    place: str = "model",
) -> Model:
    """A model of pydantic-ai, for `model.request` or `pydantic_ai.Agent(model)`; to be closed with `close_model`.

    The key is the variable `api_key_env` of `env` (the process's unless given), else the
    provider's own. At a `base_url`, `openai:` means the chat-completions protocol, which is
    what compatible servers speak; without one, the responses API. Raises MissingExtra, and
    BadOption, naming `place`, for a provider that does not exist or a key that is missing.
    """
    named = name if isinstance(name, ModelName) else parse_model(name, place=place)
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        from karat.models.limited import LimitedModel
    except ImportError as error:
        raise MissingExtra("chat", f"the model '{named}'") from error
    if named.provider == "openai" and base_url is not None:
        named = ModelName("openai-chat", named.name)
    key = _key(named, base_url, api_key_env, os.environ if env is None else env)
    lease = _Lease()
    try:
        found = infer_model(
            str(named), provider_factory=lambda provider: _provider(provider, base_url=base_url, key=key, lease=lease)
        )
    except (UserError, ValueError) as error:
        lease.give_up()
        words = str(error).partition(" To try Pydantic AI")[0]
        raise BadOption(place, f"'{name}' cannot be used: {words}") from error
    except ImportError as error:
        lease.give_up()
        raise BadOption(place, f"'{name}' needs a package that is not installed: {error}") from error
    _no_retries(found)
    return LimitedModel(found, named, base_url=base_url, prices=prices, lease=lease)


async def close_model(model: Model) -> None:
    """Closes what only this model uses; the shared connections with the last model of the event loop."""
    async with model:
        pass  # leaving a model closes the connections that are its own
    lease = getattr(model, "lease", None)
    if lease is not None:
        await lease.end()


def settings_of(
    model: Model,
    *,
    place: str,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    thinking: bool | str | None = None,
) -> ModelSettings:
    """The inference parameters that are given. Raises BadOption for one that this model would silently ignore."""
    given = {
        "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "seed": seed, "thinking": thinking,
    }  # fmt: skip
    chosen: Any = {key: value for key, value in given.items() if value is not None}
    inner = getattr(model, "wrapped", model)
    for key in chosen:
        if key in inner.unsupported_settings:
            hint = "; `openai-chat:` takes one" if key == "seed" and inner.system == "openai" else ""
            raise BadOption(f"{place}.{key}", f"'{model.model_name}' is reached by an interface without it{hint}")
    settings: ModelSettings = chosen
    return settings


class _Lease:
    """One model's share of the connections of its event loop."""

    def __init__(self) -> None:
        self._pool: _Pool | None = None

    def client(self) -> httpx2.AsyncClient:
        """The client, made when the first model of the loop asks for it."""
        if self._pool is None:
            self._pool = _pool()
            self._pool.users += 1
        return self._pool.client

    async def end(self) -> None:
        """Gives the share back; the last one closes the connections."""
        pool = self.give_up()
        if pool is not None and not pool.users:
            await pool.client.aclose()

    def give_up(self) -> _Pool | None:
        """Gives the share back without closing anything: nobody has connected yet."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.users -= 1
            if not pool.users:
                pool.forget()
        return pool


class _Pool:
    """The connections of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        import httpx2

        self.users = 0
        self._loop = loop
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
        timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        self.client = httpx2.AsyncClient(limits=limits, timeout=timeout, follow_redirects=True)

    def forget(self) -> None:
        if self._loop is not None:
            _POOLS.pop(self._loop, None)


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()


def _pool() -> _Pool:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _Pool(None)  # outside of a loop nothing can be shared: nobody knows which loop will ask
    if loop not in _POOLS:
        _POOLS[loop] = _Pool(loop)
    return _POOLS[loop]


def _key(named: ModelName, base_url: str | None, api_key_env: str | None, env: Mapping[str, str]) -> str | None:
    """The key; None where the provider finds its own (or says what is missing)."""
    if api_key_env is not None:
        if not env.get(api_key_env):
            raise BadOption("api_key_env", f"the environment variable {api_key_env} is not set")
        return env[api_key_env]
    key = env.get(key_variable(named.provider))
    return key or (_NO_KEY if base_url is not None else None)


def _provider(provider: str, *, base_url: str | None, key: str | None, lease: _Lease) -> Any:
    """The provider, with our connections where its SDK takes them."""
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if provider.startswith("gateway/"):
        return infer_provider(provider)
    found = infer_provider_class(provider)
    takes = inspect.signature(found).parameters
    given: dict[str, Any] = {}
    if base_url is not None:
        address = "azure_endpoint" if "azure_endpoint" in takes else "base_url"
        if address not in takes:
            raise BadOption("base_url", f"the provider '{provider}' takes none")
        given[address] = base_url
    if key is not None and "api_key" in takes:
        given["api_key"] = key
    # Annotations are texts there; some SDKs still want the older kind of client and make their own.
    if "http_client" in takes and str(takes["http_client"].annotation).startswith(("httpx2", "_Open", "AsyncHTTP")):
        given["http_client"] = lease.client()
    return found(**given)


def _no_retries(model: Model) -> None:
    """SDKs try twice more on their own, which would hide rate limits from the limiter and attempts from the journal."""
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0
