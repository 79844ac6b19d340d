"""The http agent against a real service on this machine."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

pytest.importorskip("jmespath", reason="needs the extra `chat`")

from karat.agents import AgentSetting
from karat.agents.http import Http
from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault
from karat.mcp import Toolbox
from karat.plugins import check_options
from karat.records import ToolCall, Usage
from karat.redact import Redactor

from .conftest import Ask


def test_the_default_body_is_answered_by_a_plain_object(ask: Ask, httpserver: HTTPServer) -> None:
    seen: list[Any] = []

    def answer(request: Request) -> Response:
        seen.append(request.get_json())
        return Response(json.dumps({"text": f"to {request.get_json()['question']}", "dollars": 0.5}))

    httpserver.expect_request("/ask", method="POST").respond_with_handler(answer)
    replies = ask("http", {"url": httpserver.url_for("/ask")}, turns=("one", 'two "quoted"'))
    assert [(reply.text, reply.dollars) for reply in replies] == [("to one", 0.5), ('to two "quoted"', 0.5)]
    assert seen == [
        {"question": "one", "system_prompt": "be brief", "history": []},
        {
            "question": 'two "quoted"',
            "system_prompt": "be brief",
            "history": [{"question": "one", "answer": "to one"}],
        },
    ]


def test_templates_fill_body_and_query_and_expressions_take_the_answer_apart(ask: Ask, httpserver: HTTPServer) -> None:
    seen: dict[str, Any] = {}
    response = {
        "choices": [{"message": {"content": "42"}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "reasoning_tokens": 2},
        "cost": {"usd": 0.25},
        "steps": [{"name": "search", "arguments": {"q": "x"}, "output": ["a"]}, {"tool": "fly", "error": "no wings"}],
        "model": "m-1",
    }

    def answer(request: Request) -> Response:
        seen.update(
            body=request.get_json(), args=dict(request.args), key=request.headers["x-key"], kind=request.content_type
        )
        return Response(json.dumps(response))

    httpserver.expect_request("/v1").respond_with_handler(answer)
    options = {
        "url": httpserver.url_for("/v1"),
        "headers": {"x-key": "k"},
        "query": {"id": "{{ sample }}-{{ repetition }}"},
        "body": {
            "messages": [
                {"role": "system", "content": "{{ system_prompt }}"},
                {"role": "user", "content": "Q: {{ question }}"},
            ],
            "seed": "{{ seed }}",
            "condition": "{{ condition }}",
        },
        "answer": "choices[0].message.content",
        "usage": "usage",
        "dollars": "cost.usd",
        "tool_calls": "steps",
        "model": "model",
    }  # fmt: skip
    (reply,) = ask("http", options, sample="s 7", repetition=2)
    assert seen == {
        "body": {
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "Q: q"}],
            "seed": 7,
            "condition": "a",
        },
        "args": {"id": "s 7-2"},
        "key": "k",
        "kind": "application/json",
    }
    assert (reply.text, reply.dollars, reply.model) == ("42", 0.25, "m-1")
    assert reply.usage == Usage(input_tokens=10, output_tokens=5, reasoning_tokens=2)
    assert reply.tool_calls == (
        ToolCall(tool="search", input={"q": "x"}, result='["a"]'),
        ToolCall(tool="fly", error="no wings"),
    )
    assert reply.milliseconds > 0


def test_get_sends_no_body_and_plain_text_is_an_answer(ask: Ask, httpserver: HTTPServer) -> None:
    def answer(request: Request) -> Response:
        assert request.get_data() == b""
        return Response(f"you asked {request.args['q']}")

    httpserver.expect_request("/", method="GET").respond_with_handler(answer)
    options = {"url": httpserver.url_for("/"), "method": "GET", "query": {"q": "{{ question }}&x=1"}, "dollars": 0}
    (reply,) = ask("http", options, turns=("a b",))
    assert (reply.text, reply.dollars) == ("you asked a b&x=1", 0.0)


@pytest.mark.parametrize("body", ["42", "1.50", "-0", "true", "1e3", "seven"])
def test_a_body_such_as_a_number_is_the_answer_as_it_is_written(ask: Ask, httpserver: HTTPServer, body: str) -> None:
    httpserver.expect_request("/").respond_with_data(f"{body}\n")
    (reply,) = ask("http", {"url": httpserver.url_for("/")})
    assert reply.text.strip() == body


@pytest.mark.parametrize(
    ("status", "headers", "kind", "retriable", "wait"),
    [
        (429, {"Retry-After": "3"}, "rate_limit", True, 3.0),
        (529, {}, "rate_limit", True, None),
        (500, {}, "server_error", True, None),
        (408, {}, "server_error", True, None),
        (401, {}, "unauthorized", False, None),
        (404, {}, "not_found", False, None),
        (422, {}, "refused", False, None),
        (302, {"Location": "http://elsewhere.example/"}, "redirect", False, None),
    ],
)
def test_a_status_is_a_fault_of_the_infrastructure(
    ask: Ask,
    httpserver: HTTPServer,
    status: int,
    headers: dict[str, str],
    kind: str,
    retriable: bool,
    wait: float | None,
) -> None:
    httpserver.expect_request("/").respond_with_data("what it says", status=status, headers=headers)
    with pytest.raises(InfrastructureFault) as caught:
        ask("http", {"url": httpserver.url_for("/")})
    fault = caught.value
    assert (fault.kind, fault.retriable, fault.retry_after) == (kind, retriable, wait)
    assert f"HTTP {status}: " in fault.message
    assert kind == "redirect" or "what it says" in fault.message


@pytest.mark.parametrize(
    ("said", "more", "kind_of", "kind"),
    [
        ("{", {"answer": "text"}, AgentFault, "bad_json"),
        ('{"text": "cut', {}, AgentFault, "bad_json"),
        ('{"texts": 1}', {"answer": "text"}, AgentFault, "no_answer"),
        ('{"texts": 1}', {}, AgentFault, "bad_reply"),
        ("[1]", {}, AgentFault, "bad_reply"),
        ("", {}, AgentFault, "empty_output"),
        ('{"text": " "}', {"answer": "text"}, AgentFault, "empty_output"),
        ('{"text": 1}', {"answer": "length(text)"}, AgentFault, "no_answer"),
        ("x" * 2000, {"max_response_bytes": 1000}, LimitReached, "output_too_long"),
    ],
)
def test_an_answer_that_cannot_be_used_is_a_fault_with_a_name(
    ask: Ask, httpserver: HTTPServer, said: str, more: dict[str, Any], kind_of: type[TrialFault], kind: str
) -> None:
    httpserver.expect_request("/").respond_with_data(said)
    with pytest.raises(kind_of) as caught:
        ask("http", {"url": httpserver.url_for("/"), **more})
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("text/event-stream", "data: 42\n\n"),
        ("text/plain", "event: delta\ndata: {}\n\n"),
        ("text/plain", "\n: ping\r\n\r\nid: 1\r\ndata: {}\r\n\r\ndata: {}\r\n\r\n"),
        ("", 'data: {"text": "a"}\n\ndata: [DONE]\n\n'),
    ],
)
def test_a_streamed_answer_is_no_text(ask: Ask, httpserver: HTTPServer, kind: str, said: str) -> None:
    httpserver.expect_request("/").respond_with_data(said, content_type=kind)
    with pytest.raises(AgentFault, match=r"the service streams its answer \(text/event-stream\)"):
        ask("http", {"url": httpserver.url_for("/")})


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (b"\xef\xbb\xbfParis", "Paris"),
        (b'\xef\xbb\xbf{"text": "Paris"}', "Paris"),
        (b'{"text": "one\ntwo"}', "one\ntwo"),
        (b"{1, 2, 3}", "{1, 2, 3}"),
        (b"data: {a: 1}\nmore: {}", "data: {a: 1}\nmore: {}"),
        (b"data: {a: 1}\n\nThat is the file.", "data: {a: 1}\n\nThat is the file."),
    ],
)
def test_a_text_is_read_behind_a_mark_and_in_braces(ask: Ask, httpserver: HTTPServer, said: bytes, text: str) -> None:
    httpserver.expect_request("/").respond_with_data(said)
    assert ask("http", {"url": httpserver.url_for("/")})[0].text == text


@pytest.mark.parametrize(
    ("options", "beside"),
    [
        ({"dollars": "cost"}, {"cost": -1}),
        ({"dollars": "cost"}, {"cost": True}),
        ({"dollars": "sum(costs)"}, {"costs": None}),
        ({"model": "model"}, {"model": {"name": "m"}}),
        ({"model": "join(',', n)"}, {"n": 3}),
        ({"usage": "usage"}, {"usage": "12 tokens"}),
        ({"tool_calls": "steps"}, {"steps": {"search": 2}}),
        ({"tool_calls": "steps"}, {"steps": 3}),
    ],
)
def test_no_answer_is_lost_for_what_another_expression_finds(
    ask: Ask, httpserver: HTTPServer, options: dict[str, Any], beside: dict[str, Any]
) -> None:
    httpserver.expect_request("/").respond_with_json({"a": "Paris", **beside})
    (reply,) = ask("http", {"url": httpserver.url_for("/"), "answer": "a", **options})
    assert (reply.text, reply.dollars, reply.model, reply.usage) == ("Paris", None, None, None)


def test_calls_without_a_name_are_counted(ask: Ask, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_json({"a": "Paris", "steps": ["look", None, {"x": 1}, {"name": "s"}]})
    (reply,) = ask("http", {"url": httpserver.url_for("/"), "answer": "a", "tool_calls": "steps"})
    assert [call.tool for call in reply.tool_calls] == ["look", "", "s"]


def test_an_expression_that_does_not_fit_says_why_and_is_named(ask: Ask, tmp_path: Path) -> None:
    setting = AgentSetting(folder=tmp_path, toolbox=Toolbox((), redact=Redactor({}), folder=tmp_path))
    options = {"url": "http://localhost/", "answer": "max(a)", "model": "join(',', n)", "tool_calls": "n"}
    agent = Http(Http.Options.model_validate(options), setting)
    assert agent._read('{"a": ["Paris"], "n": 3}').text == "Paris"
    assert agent.unread == {"model", "tool_calls"}
    with pytest.raises(AgentFault, match="does not fit the response: In function max"):
        agent._read('{"a": "Paris", "n": 3}')


def test_a_body_that_cannot_be_unpacked_is_no_crash_of_the_agent(ask: Ask, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("Paris", headers={"content-encoding": "gzip"})
    with pytest.raises(InfrastructureFault) as caught:
        ask("http", {"url": httpserver.url_for("/")})
    assert (caught.value.kind, caught.value.retriable) == ("network", True)


def test_a_service_that_hangs_or_is_not_there_is_told(ask: Ask, httpserver: HTTPServer) -> None:
    def late(_: Request) -> Response:
        time.sleep(1)
        return Response("late")

    httpserver.expect_request("/").respond_with_handler(late)
    with pytest.raises(LimitReached) as caught:
        ask("http", {"url": httpserver.url_for("/"), "timeout_seconds": 0.1})
    assert caught.value.kind == "timeout"
    with pytest.raises(InfrastructureFault) as refused:
        ask("http", {"url": "http://127.0.0.1:1/"})
    assert (refused.value.kind, refused.value.retriable) == ("network", True)


@pytest.mark.parametrize(
    ("options", "place", "message"),
    [
        ({"body": {"q": ["{{ qestion }}"]}}, "agent.body", "no value called 'qestion' (did you mean 'question'?)"),
        ({"query": {"q": "{{ answer }}"}}, "agent.query", "there is no value called 'answer'"),
        ({"answer": "choices[0"}, "agent.answer", "is not a JMESPath expression: "),
        ({"method": "DELETE"}, "agent.method", "must be 'GET', 'POST', 'PUT' or 'PATCH', got 'DELETE'"),
        ({"anwser": "x"}, "agent.anwser", "no such key (did you mean 'answer'?)"),
    ],
)  # fmt: skip
def test_options_are_checked_before_anything_is_asked(options: dict[str, Any], place: str, message: str) -> None:
    _, (fault,) = check_options(Http, {"url": "http://localhost/", **options}, place="agent")
    assert fault.place == place
    assert message in fault.message


@pytest.mark.parametrize(
    "body", ["{{\n  question\n}}", {"sys": "Fields are written as {{ name", "q": "{{question}}", "opt": {}}]
)
def test_a_field_is_within_one_text(body: object) -> None:
    _, faults = check_options(Http, {"url": "http://localhost/", "body": {"q": body}}, place="agent")
    assert not faults
