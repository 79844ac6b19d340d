"""pydantic-ai models, ready to use: shared connections, no hidden retries, metered."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from karat.errors import BadOption, Caught, InfrastructureFault, KaratError, MissingExtra
from karat.installation import install_command
from karat.models import vertex
from karat.models.faults import error_in
from karat.models.names import ModelName, key_variable, parse_model
from karat.models.prices import Price
from karat.models.usage import usage_from
from karat.records import JsonObject

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

_CONNECT_SECONDS = 20.0
_READ_SECONDS = 600.0

# Services without a key whose SDKs still require one.
_NO_KEY = "no-key"

_NO_TAGS = ("\0<think>", "\0</think>")  # no text has them


def open_model(
    name: ModelName | str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    env: Mapping[str, str] | None = None,
    prices: Mapping[str, Price] | None = None,
    place: str = "model",
) -> Model:
    """A model of pydantic-ai, for `model.request` or `pydantic_ai.Agent(model)`; close it with
    `close_model`.

    The key is the variable `api_key_env` of `env` (the process's unless given), else the
    provider's own. At a `base_url`, `openai:` means the chat-completions protocol, as
    compatible servers use; without one, the responses API. Raises MissingExtra, and
    BadOption, naming `place`, for an unknown provider or a missing key.
    """
    if isinstance(name, ModelName):
        named = name
    else:
        named = parse_model(name, place=place)

    vertex.refuse_partner_model(named, place)
    try:
        from karat.models.limited import LimitedModel
    except ImportError as error:
        raise MissingExtra("chat", f"{place}: the model '{named}'") from error

    if named.provider == "openai" and base_url is not None:
        named = ModelName("openai-chat", named.name)
    env = os.environ if env is None else env
    if api_key_env is not None:
        if not env.get(api_key_env):
            raise BadOption(
                _beside(place, "api_key_env"), f"the environment variable {api_key_env} is not set"
            )

        key: str | None = env[api_key_env]
    else:  # None: the provider finds one itself, or reports what is missing
        key = env.get(key_variable(named.provider)) or None
        if key is None and base_url is not None:
            key = _NO_KEY

    lease = _Lease()
    # Each provider's SDK has its own exceptions for missing or unreadable credentials.
    with Caught() as caught:
        model = _model(named, env, base_url=base_url, key=key, lease=lease, place=place)
    if caught.error is not None:
        lease.give_up()
        if isinstance(caught.error, KaratError) or not isinstance(caught.error, Exception):
            raise caught.error
        raise _unusable(caught.error, name, place) from caught.error

    # SDKs retry twice by default, which would hide rate limits from the limiter and attempts from
    # the journal.
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    # A thought that does not end would become text without its tag: `karat.thoughts` parts them
    model.profile = {**model.profile, "thinking_tags": _NO_TAGS}
    return LimitedModel(model, named, base_url=base_url, prices=prices, lease=lease)


async def close_model(model: Model) -> None:
    """Closes what only this model uses; the shared connections with the last model of the event
    loop.
    """
    async with model:
        pass  # leaving a model closes its own connections
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
    """The given inference parameters.

    Raises BadOption for one that this model would silently ignore.
    """
    given = {
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "seed": seed,
        "thinking": thinking,
    }
    chosen: Any = {key: value for key, value in given.items() if value is not None}
    inner = getattr(model, "wrapped", model)
    for key in chosen:
        if key in inner.unsupported_settings:
            hint = (
                "; `openai-chat:` takes one" if key == "seed" and inner.system == "openai" else ""
            )
            raise BadOption(
                f"{place}.{key}",
                f"'{model.model_name}' is reached by an interface without it{hint}",
            )

    settings: ModelSettings = chosen
    return settings


def _model(
    named: ModelName,
    env: Mapping[str, str],
    *,
    base_url: str | None,
    key: str | None,
    lease: _Lease,
    place: str,
) -> Model:
    """pydantic-ai's model of the right class."""
    if vertex.is_claude(named):
        from pydantic_ai.models.anthropic import AnthropicModel

        provider = vertex.anthropic_provider(
            env, base_url=base_url, key=key, place=place, http_client=lease.client()
        )
        return AnthropicModel(named.name.rpartition("/")[2], provider=provider)

    from pydantic_ai.models import infer_model

    if named.provider == "google-cloud" and key is None:
        more = vertex.google_settings(env, place)
    else:
        more = {}

    return infer_model(
        str(named),
        provider_factory=lambda provider: _provider(
            provider,
            more,
            base_url=base_url,
            key=key,
            lease=lease,
            place=_beside(place, "base_url"),
        ),
    )


_BY_ARGUMENT = re.compile(
    r",? or pass (?:it|the API key) via `[^`]*`|, pass `region_name`, or pass `base_url`"
)


def _unusable(error: Exception, name: ModelName | str, place: str) -> BadOption:
    """The provider's error on creating its client, without advice that only its Python callers can
    follow.
    """
    words = _BY_ARGUMENT.sub("", str(error).partition(" To try Pydantic AI")[0]).strip().rstrip(".")
    if isinstance(error, ImportError):
        extra = re.search(r"pydantic-ai-slim\[[\w-]+\]", words)
        if extra is not None:
            remedy = install_command(extra[0])
        else:
            remedy = words

        return BadOption(place, f"'{name}' needs a package that is not installed: {remedy}")

    if words.startswith("Unknown provider"):
        words += "; a service that speaks OpenAI's protocol is `openai:MODEL` with its `base_url`"
    elif not words:
        words = type(error).__name__

    return BadOption(place, f"'{name}' cannot be used: {words}")


class _Lease:
    """One model's share of the connections of its event loop."""

    def __init__(self) -> None:
        self._pool: _Pool | None = None

    def client(self) -> httpx2.AsyncClient:
        """The client, created for the first model of the loop."""
        if self._pool is None:
            self._pool = _pool()
            self._pool.users += 1

        return self._pool.client

    async def end(self) -> None:
        """Releases the share; the last one closes the connections."""
        pool = self.give_up()
        if pool is not None and not pool.users:
            await pool.client.aclose()

    def give_up(self) -> _Pool | None:
        """Release the share without closing anything: there is no connection yet."""
        pool = self._pool
        self._pool = None
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
        self.client = httpx2.AsyncClient(
            limits=limits,
            timeout=timeout,
            follow_redirects=True,
            event_hooks={"response": [_refuse_redirect, _restate]},
        )

    def forget(self) -> None:
        if self._loop is not None:
            _POOLS.pop(self._loop, None)


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()


def _pool() -> _Pool:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        # outside an event loop nothing can be shared: its later loop is not known
        return _Pool(None)

    if loop not in _POOLS:
        _POOLS[loop] = _Pool(loop)
    return _POOLS[loop]


async def _refuse_redirect(response: httpx2.Response) -> None:
    """Raises InfrastructureFault for a redirect to another host: keys and questions would go
    there.
    """
    if not response.has_redirect_location:
        return
    here = response.request.url
    there = here.join(response.headers["location"])
    same = (there.host, there.port) == (here.host, here.port)
    if not same or there.scheme not in ("https", here.scheme):
        shown = there.copy_with(userinfo=b"", query=None, fragment=None)
        message = (
            f"HTTP {response.status_code}: redirects to {shown}, which is not followed; give that "
            f"as base_url"
        )
        raise InfrastructureFault("redirect", message)


async def _restate(response: httpx2.Response) -> None:
    """Gives a response of status 200 whose body is an error the status of that error, as routers
    send them; and a chat completion the usage and the stop reason in OpenAI's form.
    """
    if response.status_code != 200 or "json" not in response.headers.get("content-type", ""):
        return
    try:
        body = json.loads(await response.aread())
        error = error_in(body)
    except (ValueError, RecursionError):
        return

    if error is not None:
        response.status_code = 502
        for key in ("code", "status", "status_code"):
            code = str(error.get(key))
            if re.fullmatch("[45][0-9][0-9]", code):
                response.status_code = int(code)
                break

    elif isinstance(body, dict) and isinstance(body.get("choices"), list):
        restated = _in_form(body)
        if restated != body:
            response._content = json.dumps(restated).encode()  # noqa: SLF001 -- httpx has no other way


_FRAME: JsonObject = {"id": "", "created": 0, "model": "", "object": "chat.completion"}


def _in_form(body: JsonObject) -> JsonObject:
    """A chat completion with what the protocol requires around its answer, which is paid for."""
    framed = {**body, "choices": [], "object": _FRAME["object"]}
    for key, default in _FRAME.items():
        if not isinstance(framed.get(key), type(default)):
            framed[key] = default

    for place, choice in enumerate(body["choices"]):
        given = choice
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
            given = {
                "index": place,
                **choice,
                "message": {**choice["message"], "role": "assistant"},
            }
            given["finish_reason"] = choice.get("finish_reason") or None

        framed["choices"].append(given)

    framed["usage"] = _counted(body.get("usage"))
    return framed


def _counted(given: Any) -> JsonObject | None:
    """A usage in OpenAI's form; None: it does not tell what was sent and what came back."""
    usage = usage_from(given)
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    stated: JsonObject = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    for details, name, count in (
        ("prompt_tokens_details", "cached_tokens", usage.cache_read_tokens),
        ("prompt_tokens_details", "cache_write_tokens", usage.cache_write_tokens),
        ("completion_tokens_details", "reasoning_tokens", usage.reasoning_tokens),
    ):
        split = stated.get(details, given.get(details))
        if not isinstance(split, dict):
            split = {}
        if count:
            stated[details] = {**split, name: count}

    return {**given, **stated}


def _beside(place: str, key: str) -> str:
    """A sibling of the model's key: judge.base_url for judge.model."""
    return f"{place.rpartition('.')[0]}.{key}".lstrip(".")


def _provider(
    provider: str,
    more: Mapping[str, object],
    *,
    base_url: str | None,
    key: str | None,
    lease: _Lease,
    place: str,
) -> Any:
    """The provider, with our connections if its SDK accepts them."""
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if provider.startswith("gateway/"):
        return infer_provider(provider)
    provider_class = infer_provider_class(provider)
    takes = inspect.signature(provider_class).parameters
    given: JsonObject = dict(more)
    address = next(
        (key for key in ("azure_endpoint", "api_base", "base_url") if key in takes), None
    )
    if base_url is not None:
        if address is None:
            raise BadOption(place, f"the provider '{provider}' takes none")
        given[address] = base_url
    elif provider == "litellm":
        raise BadOption(
            place, "is required: the address of the LiteLLM proxy, e.g. http://localhost:4000"
        )

    if key is not None and "api_key" in takes:
        given["api_key"] = key
    # Annotations are strings there; some SDKs still need the older kind of client and create it
    # themselves.
    if "http_client" in takes and str(takes["http_client"].annotation).startswith(
        ("httpx2", "_Open", "AsyncHTTP")
    ):
        given["http_client"] = lease.client()

    return provider_class(**given)
