"""The scripted model server, asked by the SDKs that people use."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from karat.testing.models import serve

APIS = ("chat", "responses", "messages")
EVERY = [pytest.param(api, stream, id=f"{api}{'-stream' * stream}") for api in APIS for stream in (False, True)]
STOPS = {
    "chat": ("stop", "tool_calls", "length"),
    "responses": ("completed", "completed", "incomplete"),
    "messages": ("end_turn", "tool_use", "max_tokens"),
}


@pytest.mark.parametrize(("api", "stream"), EVERY)
def test_text_usage_and_model_arrive(clients, api, stream):
    said = {
        "text": "A match lights it – “gently”.",
        "usage": {"input": 100, "output": 20, "cache_read": 30, "cache_write": 10, "reasoning": 5},
        "model": "some-model-2026",
    }
    with serve([{"say": [said]}]) as server:
        assert clients(server).ask(api, stream=stream) == {
            "text": "A match lights it – “gently”.",
            "calls": [],
            "stop": STOPS[api][0],
            "model": "some-model-2026",
            "usage": {"input": 100, "output": 20, "cache_read": 30, "reasoning": 5},
        }


@pytest.mark.parametrize(("api", "stream"), EVERY)
def test_parallel_tool_calls_arrive_beside_text_and_reasoning(clients, api, stream):
    calls = [
        {"name": "search", "arguments": {"query": "{{ question }}"}},
        {"name": "docs_search", "arguments": {"query": "match"}},
        {"name": "gone", "arguments": {}},
    ]
    said = {"text": "Let me look.", "reasoning": "A lamp, so to speak.", "tool_calls": calls}
    with serve([{"say": [said]}]) as server:
        found = clients(server).ask(api, stream=stream, tools=("mcp__docs__search", "docs_search"))
    assert (found["text"], found["stop"]) == ("Let me look.", STOPS[api][1])
    assert [(name, json.loads(arguments)) for name, arguments in found["calls"]] == [
        ("mcp__docs__search", {"query": "What lights a lamp?"}),
        ("docs_search", {"query": "match"}),
        ("gone", {}),
    ]


@pytest.mark.parametrize(("api", "stream"), EVERY)
def test_an_answer_can_be_cut_short_by_the_model(clients, api, stream):
    if api != "messages" and stream:
        pytest.skip("the SDK's helper for streams raises by itself where an answer is cut short")
    with serve([{"say": [{"text": "A match li", "stop": "length"}]}]) as server:
        found = clients(server).ask(api, stream=stream)
    assert (found["text"], found["stop"]) == ("A match li", STOPS[api][2])


@pytest.mark.parametrize("api", APIS)
def test_the_same_question_gets_the_same_bytes(api):
    paths = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    found = set()
    for _ in range(2):
        with serve() as server, httpx2.Client(trust_env=False) as client:
            found |= {client.post(server.anthropic_url + paths[api], json=body).content for _ in range(2)}
    assert len(found) == 1


def test_what_was_asked_is_kept_without_the_key_on_disk(clients, tmp_path):
    log = tmp_path / "requests.jsonl"
    with serve([{"say": "yes"}], log=log) as server:
        clients(server).ask("messages", stream=True, tools=("search",), system="Be brief.")
        clients(server).ask("chat", stream=False)
        first, second = server.requests
    assert (first.number, first.api, first.stream, first.system) == (1, "messages", True, "Be brief.")
    assert (first.question, [tool.name for tool in first.tools]) == ("What lights a lamp?", ["search"])
    assert (first.key, second.key) == ("a-secret-key", "a-secret-key")
    assert second.body["messages"] == [{"role": "user", "content": "What lights a lamp?"}]
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["answer"] for line in lines] == [{"rule": 0, "say": {"text": "yes"}}] * 2
    assert "a-secret-key" not in log.read_text(encoding="utf-8")


def test_models_are_listed_to_both_and_tokens_counted(clients):
    with serve({"models": ["one", "two"]}) as server:
        both = clients(server)
        assert [model.id for model in both.openai.models.list()] == ["one", "two"]
        assert [model.id for model in both.anthropic.models.list()] == ["one", "two"]
        assert both.openai.models.retrieve("three").id == both.anthropic.models.retrieve("three").id == "three"
        counted = both.anthropic.messages.count_tokens(model="one", messages=[{"role": "user", "content": "x" * 40}])
        assert counted.input_tokens == 10
        assert [request.api for request in server.requests] == ["count_tokens"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("HEAD", "/", 200, id="Claude Code looks whether anybody is there"),
        pytest.param("GET", "/api/hello", 200, id="and says hello"),
        pytest.param("POST", "/api/event_logging/batch", 200, id="and reports"),
        pytest.param("POST", "/v1/embeddings", 404, id="what is not here is told"),
    ],
)
def test_other_calls_are_taken_calmly(method, path, status):
    with serve() as server, httpx2.Client(trust_env=False) as client:
        answer = client.request(method, server.anthropic_url + path, json={} if method == "POST" else None)
        assert answer.status_code == status
        assert server.others == [f"{method} {path}"]
        assert server.requests == []


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/messages", b"{nonsense", "Expecting property name"),
        ("/v1/messages", b"[]", "the body is not an object"),
        ("/v1/chat/completions", b'{"messages": []}', "model: a text is required"),
        ("/v1/chat/completions", b'{"model": "m", "messages": []}', "messages: a non-empty list is required"),
        ("/v1/responses", b'{"model": "m", "input": 7}', "input: a non-empty list is required"),
        ("/v1/messages", b'{"model": "m", "messages": [7]}', "not a valid request of this API"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_reason(path, body, message):
    with serve() as server, httpx2.Client(trust_env=False) as client:
        answer = client.post(server.anthropic_url + path, content=body)
        assert answer.status_code == 400
        assert message in answer.json()["error"]["message"]
        assert len(server.others) == 1


@pytest.mark.parametrize(
    ("results", "message"), [(["1"], "no result: 2"), (["1", "2", "3"], "no tool call right before it: 3")]
)
@pytest.mark.parametrize("api", APIS)
def test_a_conversation_with_loose_ends_is_refused_as_the_providers_do(api, results, message):
    calls: dict[str, list[Any]] = {
        "chat": [
            {
                "role": "assistant",
                "tool_calls": [{"id": n, "function": {"name": "f", "arguments": "{}"}} for n in "12"],
            },
            *({"role": "tool", "tool_call_id": n, "content": "x"} for n in results),
        ],
        "responses": [
            *({"type": "function_call", "call_id": n, "name": "f", "arguments": "{}"} for n in "12"),
            *({"type": "function_call_output", "call_id": n, "output": "x"} for n in results),
        ],
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": n, "name": "f", "input": {}} for n in "12"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": n, "content": "x"} for n in results]},
        ],
    }
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, *calls[api]]}
    body["input"] = body["messages"]
    path = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}[api]
    with serve() as server, httpx2.Client(trust_env=False) as client:
        answer = client.post(server.openai_url + path, json=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_only_the_newest_requests_are_kept_where_one_says_so():
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with serve(keep=2) as server, httpx2.Client(trust_env=False) as client:
        for _ in range(3):
            client.post(f"{server.openai_url}/chat/completions", json=body)
        assert [request.number for request in server.requests] == [2, 3]
        assert server.asked == 3


def test_a_body_in_chunks_is_read_too():
    def parts():
        yield b'{"model": "m", "messages": '
        yield b'[{"role": "user", "content": "hi"}]}'

    with serve([{"say": "yes"}]) as server, httpx2.Client(trust_env=False) as client:
        answer = client.post(f"{server.openai_url}/chat/completions", content=parts())
        assert answer.json()["choices"][0]["message"]["content"] == "yes"


def test_many_are_answered_at_a_time(clients):
    with serve([{"say": [{"text": "yes", "delay": 1}]}]) as server:
        both = clients(server)
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda _: both.ask("chat", stream=False), range(10)))
        assert server.most_busy >= 5


def test_the_program_says_where_it_listens_and_ends_when_told(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("rules: [{say: from a file}]\n", encoding="utf-8")
    command = [sys.executable, "-m", "karat.testing.models", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        with httpx2.Client(trust_env=False) as client:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            answer = client.post(f"{urls['anthropic_url']}/v1/messages", json=body)
        assert answer.json()["content"][0]["text"] == "from a file"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.mark.slow
def test_the_program_refuses_a_script_that_is_none(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("rules: [{sey: hello}]\n", encoding="utf-8")
    command = [sys.executable, "-m", "karat.testing.models", "--script", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "rules.0.say" in done.stderr
