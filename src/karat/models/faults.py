"""What a model request raised → whose fault it was, and whether another attempt could help.

kind                class            retriable
rate_limit          infrastructure   yes         429, 529, "overloaded"; with the requested seconds
server_error        infrastructure   yes         5xx, 408
network             infrastructure   yes         no connection, or a broken one
model_timeout       infrastructure   yes         no data in time
bad_response        infrastructure   yes         an answer that violates the provider's protocol
quota               infrastructure   no          credits or billing
unauthorized        infrastructure   no          401, 403
not_found           infrastructure   no          404: no such model, or a wrong address
refused             infrastructure   no          any other 4xx
context_window      limit            no          the conversation exceeds the model's context
max_tokens          limit            no          the answer is longer than `max_tokens`
content_filter      agent            no          the provider's filter stopped the answer
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault

_SHOWN = 1000  # characters of a provider's message


def fault_of(error: BaseException) -> TrialFault:
    """The fault behind an exception of pydantic-ai, of a provider's SDK, or of the HTTP client.

    Exception groups are unwrapped. Anything else is a crash of the agent.
    """
    error = next(_leaves(error))
    if isinstance(error, TrialFault):
        return error
    fault = known_fault(error) or _from_network(error)
    return fault or AgentFault("crash", _words(error), retriable=True)


def known_fault(error: BaseException) -> TrialFault | None:
    """The fault behind an exception of pydantic-ai, or one that carries an HTTP status; None for
    any other.
    """
    # A fault that karat raised within a request, which the SDK took for a broken connection
    cause = error.__cause__ if type(error).__module__.startswith("pydantic_ai") else None
    inner = cause.__cause__ if cause is not None else None
    from_request = inner if isinstance(inner, TrialFault) else None

    fault = from_request or _from_pydantic_ai(error)
    if fault is not None:
        return fault

    # An SDK's exception has the status, and usually the response with its headers.
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if not isinstance(status, int) or status < 400:
        return None
    headers: Any = getattr(response, "headers", None)
    return from_status(status, _words(error), wait=retry_after(headers))


def from_status(status: int, message: str, *, wait: float | None) -> InfrastructureFault:
    """The fault of an HTTP status of 400 and above. `wait`: seconds from its headers."""
    if status in (429, 529):
        return InfrastructureFault("rate_limit", message, retriable=True, retry_after=wait)
    if status >= 500 or status == 408:
        return InfrastructureFault("server_error", message, retriable=True, retry_after=wait)
    kinds = {401: "unauthorized", 403: "unauthorized", 402: "quota", 404: "not_found"}
    return InfrastructureFault(kinds.get(status, "refused"), message)


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); None: not given.

    >>> retry_after({"retry-after": "7"})
    7.0
    """
    if headers is None:
        return None
    try:
        if "retry-after-ms" in headers:
            return _seconds(float(headers["retry-after-ms"]) / 1000)
        value = headers["retry-after"]
    except (KeyError, ValueError):
        return None

    try:
        return _seconds(float(value))
    except ValueError:
        pass

    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None

    return _seconds((when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _seconds(wait: float) -> float | None:
    if math.isfinite(wait):
        return max(0.0, wait)
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """An explicit fault comes first."""
    if isinstance(error, BaseExceptionGroup):
        inner = [leaf for part in error.exceptions for leaf in _leaves(part)]
        yield from sorted(inner, key=lambda leaf: not isinstance(leaf, TrialFault))
    else:
        yield error


def _from_pydantic_ai(error: BaseException) -> TrialFault | None:
    if not type(error).__module__.startswith("pydantic_ai"):
        return None
    from pydantic_ai import exceptions as raised

    words = _words(error)
    if isinstance(error, raised.ModelHTTPError):
        message = _provider_error(error).get("message")
        if isinstance(message, str) and message.strip():  # the provider's own sentence
            words = f"HTTP {error.status_code}: {message.strip()[:_SHOWN]}"

    wait = getattr(error, "retry_after", None)
    if (
        isinstance(error, raised.ContentFilterError)
        or _provider_error(error).get("code") in _FILTER_CODES
    ):
        return AgentFault("content_filter", words)

    match error:
        case raised.ModelRateLimitError() | raised.ModelOverloadedError():
            return InfrastructureFault("rate_limit", words, retriable=True, retry_after=wait)
        case raised.ModelQuotaExceededError():
            return InfrastructureFault("quota", words)
        case raised.ModelContextWindowExceededError():
            return LimitReached("context_window", words)
        case raised.OutputTokenLimitExceeded() | raised.IncompleteToolCall():
            return LimitReached("max_tokens", words)
        case raised.ModelHTTPError():
            return from_status(error.status_code, words, wait=wait)

    return _without_status(error, words)


_FILTER_CODES = ("content_filter", "content_policy_violation")


def _provider_error(error: object) -> Mapping[str, Any]:
    """The object in the body of a refused request that says why; empty if there is none."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
    else:
        inner = None

    if isinstance(inner, Mapping):
        return inner
    return {}


def _without_status(error: BaseException, words: str) -> TrialFault | None:
    from pydantic_ai import exceptions as raised

    match error:
        case raised.ModelTimeoutError() | raised.ModelRequestTimeout():
            return InfrastructureFault("model_timeout", words, retriable=True)
        case raised.ModelConnectionError():
            return InfrastructureFault("network", words, retriable=True)
        case raised.ModelUnavailableError() | raised.ModelServerError():
            return InfrastructureFault("server_error", words, retriable=True)
        case raised.ModelRequestRejectedError():
            return InfrastructureFault("refused", words)
        case raised.ModelAPIError() if _from_network(error.__cause__) is not None:
            return _from_network(error.__cause__)
        case raised.ModelAPIError() | raised.UnexpectedModelBehavior():
            return InfrastructureFault("bad_response", words, retriable=True)
        case raised.UsageLimitExceeded():
            return LimitReached("usage", words)

    return None


def _from_network(error: BaseException | None) -> TrialFault | None:
    if error is not None:
        kinds = {kind.__name__ for kind in type(error).__mro__}
    else:
        kinds = set()

    if kinds & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        return InfrastructureFault("model_timeout", _words(error), retriable=True)
    # google-auth, when the first token is fetched
    if kinds & {"RefreshError", "DefaultCredentialsError"}:
        return InfrastructureFault("unauthorized", _words(error))
    if kinds & {"TransportError", "APIConnectionError", "OSError"}:
        return InfrastructureFault("network", _words(error), retriable=True)
    return None


def _words(error: BaseException | None) -> str:
    text = str(error).strip() or type(error).__name__
    if len(text) <= _SHOWN:
        return text
    return text[:_SHOWN] + " …"
