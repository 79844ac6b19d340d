"""What a model request raised → whose fault it was, and whether another attempt could help.

kind                class            retriable
rate_limit          infrastructure   yes         429, 529, "overloaded"; with the requested seconds,
                                                 and the pace of requests is lowered
server_error        infrastructure   yes         5xx, 408, 409, 425
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

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault
from karat.waits import retry_after

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
    """The fault of an HTTP status of 400 and above. `wait`: seconds from its headers.

    A status belongs to `rate_limit` if fewer requests help, and to `server_error` if waiting does.
    """
    if status in (429, 529):
        return InfrastructureFault("rate_limit", message, retriable=True, retry_after=wait)
    if status >= 500 or status in (408, 409, 425):
        return InfrastructureFault("server_error", message, retriable=True, retry_after=wait)
    kinds = {401: "unauthorized", 403: "unauthorized", 402: "quota", 404: "not_found"}
    return InfrastructureFault(kinds.get(status, "refused"), message)


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
    reported = error_in(getattr(error, "body", None)) or {}  # why the provider refused it
    wait = None
    if isinstance(error, raised.ModelHTTPError):
        sentence = reported.get("message") or error.body
        if isinstance(sentence, str) and sentence.strip():  # the provider's own
            line = " ".join(_TAG.sub(" ", sentence).split())  # without the tags of a page
            shown = line or sentence.strip()
            words = f"HTTP {error.status_code}: {shown[:_SHOWN]}"

        wait = retry_after(error.headers)

    if wait is None:
        wait = getattr(error, "retry_after", None)
    if wait is None:
        wait = _retry_delay(reported)
    about = reported.get("metadata")
    code = str(reported.get("code"))
    flagged = isinstance(about, Mapping) and "flagged_input" in about  # OpenRouter's
    filtered = flagged or _FILTERED.search(code) is not None
    if isinstance(error, raised.ContentFilterError) or filtered:
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
            if error.status_code in (400, 413, 422) and _TOO_LONG.search(words):
                return LimitReached("context_window", words)
            return from_status(error.status_code, words, wait=wait)

    return _without_status(error, words)


# Of llama.cpp, Ollama, vLLM and Anthropic, also behind OpenAI's protocol
_TOO_LONG = re.compile(
    "exceed.{0,80}context|context.{0,80}exceed|maximum context|(prompt|input) is too long",
    re.IGNORECASE,
)
# Of Azure, OpenAI, Alibaba, Volcengine and others
_FILTERED = re.compile("content.?(filter|policy)|moderation|inspection|sensitive", re.IGNORECASE)


def _retry_delay(reported: Mapping[str, Any]) -> float | None:
    """The wait that Google's errors ask for, in seconds."""
    details = reported.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and isinstance(detail.get("retryDelay"), str):
            return retry_after({"retry-after": detail["retryDelay"]})

    return None


def error_in(body: object) -> Mapping[str, Any] | None:
    """What a body says of its request's failure, with a `message`; None: it holds an answer, or
    says nothing. Providers and gateways spell it differently.

    >>> (
    ...     error_in({"error": {"message": "It broke", "code": 429}})["message"],
    ...     error_in({"detail": [{"loc": ["body", "model"], "msg": "field required"}]}),
    ... )
    ('It broke', {'message': 'body.model: field required'})
    """
    if isinstance(body, list):
        body = next(iter(body), None)
    if not isinstance(body, Mapping):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices:  # a router's error after it had begun to answer
        choice = choices[0]
        broken = isinstance(choice, Mapping) and isinstance(choice.get("error"), Mapping)
        if broken:
            return _with_message(choice["error"])
        return None
    if any(body.get(key) for key in _ANSWER_KEYS):
        return None
    for key in ("error", "errors", "detail", "base_resp"):
        given = body.get(key)
        if isinstance(given, list):
            inner = next(iter(given), None)
        else:
            inner = given

        if isinstance(inner, str) and inner.strip():
            return {**body, "message": inner}
        if isinstance(inner, Mapping) and inner:
            return _with_message(inner)

    described = _with_message(body)
    return described if described.get("message") else None


_ANSWER_KEYS = ("choices", "output", "content", "candidates")


def _with_message(error: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, with a text as `message`, if one of the usual names has it."""
    keys = ("message", "msg", "error", "detail", "error_description", "status_msg")
    text = next((error[key] for key in keys if isinstance(error.get(key), str)), None)
    place = error.get("loc")
    if text is not None and isinstance(place, list):  # FastAPI's
        return {"message": f"{'.'.join(map(str, place))}: {text}"}
    return {**error, "message": text}


_TAG = re.compile(r"<(?:style|script|title).*?</(?:style|script|title)>|<[^<>]{1,200}>", re.DOTALL)


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
    cause = getattr(error, "__cause__", None)
    if isinstance(cause, ValidationError):  # pydantic-ai quotes all of it
        about = text.removesuffix(str(cause)).rstrip(": ")
        faults = []
        for fault in cause.errors()[:_FAULTS]:
            place = ".".join(map(str, fault["loc"]))
            message = fault["msg"]
            if fault["input"] is None:
                message = "is missing"
            message = message[:1].lower() + message[1:]
            faults.append(f"{place} {message}")

        text = f"{about}: {'; '.join(faults)}"
    if len(text) <= _SHOWN:
        return text
    return text[:_SHOWN] + " …"


_FAULTS = 3  # of a body that are shown
