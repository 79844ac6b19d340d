"""Every way in which the scripted server can fail, as the SDKs see it."""

from __future__ import annotations

import time

import pytest

from karat.testing.models import serve

APIS = ("chat", "responses", "messages")
EVERY = [pytest.param(api, stream, id=f"{api}{'-stream' * stream}") for api in APIS for stream in (False, True)]
STREAMS = [pytest.param(api, id=api) for api in APIS]


@pytest.mark.quick(7)
@pytest.mark.parametrize(("api", "stream"), EVERY)
@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ({"status": 429, "retry_after": 7}, "RateLimitError", 429),
        ({"status": 500, "error": "out of order"}, "InternalServerError", 500),
        ({"status": 529}, "", 529),
        ({"status": 401}, "AuthenticationError", 401),
        ({"status": 502, "body": "<html>Bad Gateway</html>"}, "InternalServerError", 502),
    ],
)
def test_an_error_is_the_sdks_own_and_then_comes_the_answer(clients, api, stream, fault, kind, status):
    with serve([{"say": [{**fault, "times": 2}, "yes"]}]) as server:
        both = clients(server)
        for _ in range(2):
            with pytest.raises(both.errors) as caught:
                both.ask(api, stream=stream)
            assert caught.value.status_code == status
            assert kind in ("", type(caught.value).__name__)
            if "retry_after" in fault:
                assert caught.value.response.headers["retry-after"] == "7"
            if "error" in fault:
                assert "out of order" in str(caught.value)
        assert both.ask(api, stream=stream)["text"] == "yes"


@pytest.mark.parametrize(("api", "stream"), EVERY)
def test_a_broken_connection_is_a_connection_error(clients, api, stream):
    with serve([{"say": [{"disconnect": True}, "yes"]}]) as server:
        both = clients(server)
        with pytest.raises(both.errors, match="Connection error"):
            both.ask(api, stream=stream)
        assert both.ask(api, stream=stream)["text"] == "yes"


@pytest.mark.parametrize(("api", "stream"), EVERY)
def test_a_hang_ends_with_the_clients_patience(clients, api, stream):
    with serve([{"say": [{"hang": True}, "yes"]}]) as server:
        both, hasty = clients(server), clients(server)
        hasty.openai, hasty.anthropic = (one.with_options(timeout=0.3) for one in (both.openai, both.anthropic))
        with pytest.raises(both.errors, match="timed out"):
            hasty.ask(api, stream=stream)
        assert both.ask(api, stream=stream)["text"] == "yes"


def test_a_hang_of_some_seconds_passes(clients):
    with serve([{"say": [{"hang": 0.2, "text": "late"}]}]) as server:
        started = time.monotonic()
        assert clients(server).ask("chat", stream=False)["text"] == "late"
        assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(("api", "stream"), EVERY)
@pytest.mark.parametrize("fault", ["malformed", "truncate"])
def test_what_is_no_json_or_only_half_of_it_never_passes_for_an_answer(clients, api, stream, fault):
    with serve([{"say": [{"text": "word " * 100, fault: True}, "yes"]}]) as server:
        both = clients(server)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever each SDK makes of it; the text is looked at below
            both.ask(api, stream=stream)
        assert "AssertionError" not in type(caught.value).__name__
        assert both.ask(api, stream=stream)["text"] == "yes"


@pytest.mark.parametrize("api", STREAMS)
def test_an_error_may_come_in_the_middle_of_a_stream(clients, api):
    with serve([{"say": [{"text": "word " * 20, "status": 529, "error": "busy now", "after": 4}, "yes"]}]) as server:
        both = clients(server)
        with pytest.raises(both.errors, match="busy now"):
            both.ask(api, stream=True)
        assert both.ask(api, stream=True)["text"] == "yes"


@pytest.mark.parametrize("api", STREAMS)
def test_a_stream_may_be_slow(clients, api):
    with serve([{"say": [{"text": "word " * 20, "chunk_seconds": 0.02}]}]) as server:
        started = time.monotonic()
        assert clients(server).ask(api, stream=True)["text"] == "word " * 20
        assert time.monotonic() - started >= 0.2


def test_a_fault_without_an_utterance_after_it_never_ends(clients):
    with serve([{"say": [{"status": 429}]}]) as server:
        both = clients(server)
        for _ in range(3):
            with pytest.raises(both.errors):
                both.ask("chat", stream=False)


def test_faults_are_counted_by_conversation(clients):
    with serve([{"say": [{"status": 500}, "yes"]}]) as server:
        both = clients(server)
        for model in ("one", "two"):
            with pytest.raises(both.errors):
                both.ask("chat", stream=False, model=model)
            assert both.ask("chat", stream=False, model=model)["text"] == "yes"
