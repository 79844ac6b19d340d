"""Responses that hold an error, or nothing, as providers and routers send them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault
from karat.models import close_model, open_model, stop_reason
from karat.models.faults import fault_of
from karat.models.metering import usage_of
from karat.records import Usage, was_cut


@contextmanager
def answering(status: int, body: object, *, location: str = "", seen: list[str] | None = None) -> Iterator[str]:
    """The address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            content = json.dumps(body).encode()
            if seen is not None:
                seen.append(self.path)
            moved = bool(location) and "moved" not in self.path
            self.send_response(307 if moved else status)
            if moved:
                self.send_header("location", location)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def asked(model: Any) -> Any:
    """The response to one short question."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart  # takes a second, in each process that collects tests
    from pydantic_ai.models import ModelRequestParameters

    request = ModelRequest(parts=[UserPromptPart(content="q")])
    return await model.request([request], None, ModelRequestParameters())


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_an_answer_that_was_cut_is_known_by_any_providers_word(reason: str) -> None:
    async def ask(address: str) -> str | None:
        model = open_model("openai-chat:m", base_url=address, env={})
        response = await asked(model)
        await close_model(model)
        return stop_reason(response)

    choice = {"index": 0, "message": {"role": "assistant", "content": "Par"}, "finish_reason": reason}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    with answering(200, body) as address:
        assert was_cut(asyncio.run(ask(address)))


def test_tokens_are_counted_as_the_provider_means_them() -> None:
    async def ask(address: str) -> tuple[Any, Any]:
        model = open_model("openai-chat:m", base_url=address, env={})
        response = await asked(model)
        await close_model(model)
        return usage_of(response.usage), stop_reason(response)

    choice = {"message": {"role": "model", "content": "Paris"}, "finish_reason": ""}
    body = {"created": 1.5, "choices": [choice]}  # no paid answer is lost for what is missing around it
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 10,
        "total_tokens": 1240,
        "prompt_cache_hit_tokens": 900,
        "completion_tokens_details": {"reasoning_tokens": 230},
    }
    with answering(200, body | {"usage": usage}) as address:
        counted = Usage(input_tokens=1000, output_tokens=240, cache_read_tokens=900, reasoning_tokens=230)
        assert asyncio.run(ask(address)) == (counted, "stop")


def test_google_states_the_wait_in_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]
    assert fault(429, {"error": {"code": 429, "message": "Quota", "details": details}}).retry_after == 1.5


def fault(status: int, body: object, *, location: str = "", model: str = "openai-chat:m") -> TrialFault:
    async def ask(address: str) -> TrialFault:
        opened = open_model(model, base_url=address, env={})
        try:
            with pytest.raises(Exception) as caught:  # noqa: PT011 -- any exception is read by `fault_of`
                await asked(opened)
        finally:
            await close_model(opened)
        return fault_of(caught.value)

    with answering(status, body, location=location) as address:
        return asyncio.run(ask(address))


@pytest.mark.parametrize(
    ("status", "body", "kind", "cls", "message"),
    [
        pytest.param(
            200, {"error": {"message": "Rate limited upstream", "code": 429}}, "rate_limit", InfrastructureFault,
            "HTTP 429: Rate limited upstream", id="an error in a response of status 200",
        ),
        pytest.param(
            200, {"user": "u", "error": {"message": "It broke"}}, "server_error", InfrastructureFault,
            "HTTP 502: It broke", id="an error that states no status",
        ),
        pytest.param(
            400, {"error": {"message": "the request exceeds the available context size", "code": 400}},
            "context_window", LimitReached, "HTTP 400: the request exceeds the available context size", id="too long",
        ),
        pytest.param(
            400, {"error": {"message": "The response was filtered.", "code": "content_filter"}}, "content_filter",
            AgentFault, "HTTP 400: The response was filtered.", id="a filter",
        ),
        pytest.param(
            403, {"error": {"message": "Flagged.", "code": 403, "metadata": {"flagged_input": "q"}}}, "content_filter",
            AgentFault, "HTTP 403: Flagged.", id="a moderator",
        ),
        pytest.param(
            200, {"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "server_error", InfrastructureFault,
            "HTTP 502: login fail", id="a status within the body",
        ),
        pytest.param(
            200, {"error": {"message": "Slow down", "code": "429"}}, "rate_limit", InfrastructureFault,
            "HTTP 429: Slow down", id="a status in a text",
        ),
        pytest.param(
            400, {"error": {"message": "No such parameter.", "code": None}}, "refused", InfrastructureFault,
            "HTTP 400: No such parameter.", id="a refusal",
        ),
        pytest.param(
            200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}, "bad_response",
            InfrastructureFault, "the provider's response holds no answer (no choices)", id="no choices",
        ),
        pytest.param(
            200, {"object": "error", "message": "The model `x` does not exist.", "code": 404}, "not_found",
            InfrastructureFault, "HTTP 404: The model `x` does not exist.", id="an error without a frame",
        ),
        pytest.param(
            200, {"success": False, "errors": [{"code": 7003, "message": "no route"}]}, "server_error",
            InfrastructureFault, "HTTP 502: no route", id="a list of errors",
        ),
        pytest.param(
            200, {"detail": "Not authenticated"}, "server_error", InfrastructureFault,
            "HTTP 502: Not authenticated", id="a detail",
        ),
        pytest.param(
            200, {"id": "x", "choices": [{
                "error": {"message": "Upstream idle", "code": 503}, "message": {"content": "Par"},
                "finish_reason": "error",
            }]},
            "server_error", InfrastructureFault, "HTTP 503: Upstream idle", id="an error amid the answer",
        ),
        pytest.param(
            422, {"detail": [{"loc": ["body", "model"], "msg": "field required"}]}, "refused", InfrastructureFault,
            "HTTP 422: body.model: field required", id="a list of details",
        ),
        pytest.param(
            400, [{"error": {"code": 400, "message": "API key not valid"}}], "refused", InfrastructureFault,
            "HTTP 400: API key not valid", id="a list",
        ),
        pytest.param(
            413, {"error": "Request too large"}, "refused", InfrastructureFault, "HTTP 413: Request too large",
            id="a text",
        ),
        pytest.param(
            500, "<html><title>Oh</title><h1>Bad  Gateway</h1></html>", "server_error", InfrastructureFault,
            "HTTP 500: Bad Gateway", id="a page",
        ),
        pytest.param(
            200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}, "bad_response",
            InfrastructureFault, "Invalid response from openai chat completions endpoint: choices is missing",
            id="another body",
        ),
    ],
)  # fmt: skip
def test_the_fault_is_the_provider_s_with_its_message_and_status(status, body, kind, cls, message):
    found = fault(status, body)
    assert (found.kind, type(found), found.message) == (kind, cls, message)


@pytest.mark.parametrize("model", ["openai-chat:m", "openai-responses:m", "anthropic:m"])
def test_keys_and_questions_do_not_follow_a_redirect_to_another_host(model: str) -> None:
    seen: list[str] = []
    with answering(200, {}, seen=seen) as other:
        found = fault(200, {}, location=f"{other}/moved?key=1", model=model)
    assert seen == []
    assert isinstance(found, InfrastructureFault)
    assert (found.kind, found.retriable) == ("redirect", False)
    assert found.message == f"HTTP 307: redirects to {other}/moved, which is not followed; give that as base_url"


def test_a_redirect_within_a_host_is_followed() -> None:
    found = fault(400, {"error": {"message": "No such parameter."}}, location="/moved")
    assert found.message == "HTTP 400: No such parameter."
