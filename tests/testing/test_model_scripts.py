"""What a script says to whom."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from karat.errors import BadOption
from karat.testing.models import Request, Say, read_script, serve
from karat.testing.models.request import read_request
from karat.testing.models.router import ScriptPlayer

SEARCH = {"type": "function", "function": {"name": "docs_search", "parameters": {"type": "object"}}}


def asked(*messages: tuple[str, str], **more: Any) -> Request:
    """A conversation: `("user", "hi"), ("assistant", "call"), ("tool", "found")`."""
    listed: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in messages]
    for before, one in pairwise(listed):
        if one["role"] == "tool":
            before["tool_calls"] = [{"id": "call_1", "function": {"name": "search", "arguments": "{}"}}]
            one["tool_call_id"] = "call_1"
    body = {"model": "some-model", "messages": listed, **more}
    return read_request("chat", number=1, path="/v1/chat/completions", headers={}, body=body)


def said(script: Any, *requests: Request, busy: int = 1) -> list[str | int | None]:
    player = ScriptPlayer(read_script(script))
    responses = [player.respond(request, busy=busy)[0] for request in requests]
    return [response.status or response.text for response in responses]


HI = asked(("user", "hi"))
HI_AGAIN = asked(("user", "hi"), ("assistant", "one"), ("user", "and then?"))
HI_A_THIRD_TIME = asked(("user", "hi"), ("assistant", "one"), ("user", "so?"), ("assistant", "two"), ("user", "and?"))


def test_the_nth_utterance_answers_the_nth_time_and_the_last_is_repeated():
    assert said([{"say": ["one", "two"]}], HI, HI_AGAIN, HI_A_THIRD_TIME, HI) == ["one", "two", "two", "one"]


def test_utterances_count_from_the_message_that_contains():
    script = [{"when": {"contains": "and then"}, "say": ["from here"]}, {"say": ["one", "two"]}]
    assert said(script, HI, HI_AGAIN) == ["one", "from here"]
    script = [{"when": {"contains": "hi"}, "say": ["one", "two", "three"]}]
    assert said(script, HI_A_THIRD_TIME) == ["three"]


def test_a_fault_comes_before_its_utterance_as_often_as_it_says():
    script = [{"say": [{"status": 429, "times": 2}, {"status": 500}, "one", {"status": 529}, "two"]}]
    assert said(script, HI, HI, HI, HI, HI) == [429, 429, 500, "one", "one"]
    assert said(script, HI_AGAIN, HI_AGAIN) == [529, "two"]


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({}, True),
        ({"api": "chat"}, True),
        ({"api": "messages"}, False),
        ({"model": "some-*"}, True),
        ({"model": "other-*"}, False),
        ({"contains": "lamp"}, True),
        ({"contains": "boat"}, False),
        ({"system": "Be brief"}, True),
        ({"system": "Be verbose"}, False),
        ({"tool": "search"}, True),
        ({"tool": "fetch"}, False),
        ({"tools": True}, True),
        ({"tools": False}, False),
        ({"structured": False}, True),
        ({"structured": True}, False),
        ({"stream": False}, True),
        ({"stream": True}, False),
        ({"busy": 2}, True),
        ({"busy": 3}, False),
        ({"contains": "lamp", "model": "other-*"}, False),
    ],
)
def test_a_rule_answers_what_its_when_describes(when, holds):
    request = asked(("system", "Be brief."), ("user", "a lamp?"), tools=[SEARCH])
    script = [{"when": when, "say": "mine"}, {"say": "another's"}]
    assert said(script, request, busy=3) == ["mine" if holds else "another's"]


def test_a_rule_may_answer_only_so_many_requests():
    assert said([{"when": {"times": 2}, "say": {"status": 429}}, {"say": "yes"}], HI, HI, HI) == [429, 429, "yes"]


def test_texts_are_filled_once_and_tools_called_as_they_are_offered():
    request = asked(("user", "{{ model }}?"), ("assistant", ""), ("tool", "found"), tools=[SEARCH])
    utterance = {
        "text": "{{ question }} {{tool_result}} {{ model }} {{ other }}",
        "tool_calls": [{"name": "search", "arguments": {"query": ["{{ tool_result }}"]}}, {"name": "fetch"}],
    }
    response, _ = ScriptPlayer(read_script([{"say": utterance}])).respond(request, busy=1)
    assert response.text == "{{ model }}? found some-model {{ other }}"
    assert [(call.name, call.arguments) for call in response.tool_calls] == [
        ("docs_search", {"query": ["found"]}),
        ("fetch", {}),
    ]


def test_arguments_that_are_no_json_are_sent_as_they_stand():
    script = [{"say": {"tool_calls": [{"name": "search", "arguments": '{"query": '}]}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with serve(script) as server, httpx2.Client(trust_env=False) as client:
        found = client.post(f"{server.openai_url}/chat/completions", json=body).json()
    assert found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"query": '


def test_a_function_is_a_script_too(clients):
    def script(request: Request) -> Any:
        return {"text": None, "say": Say(text="an utterance"), "mapping": {"text": "a mapping"}}.get(
            request.model, f"heard {request.question}"
        )

    with serve(script) as server:
        both = clients(server)
        found = [both.ask("chat", stream=False, model=name)["text"] for name in ("some", "say", "mapping", "text")]
    assert found[:3] == ["heard What lights a lamp?", "an utterance", "a mapping"]
    assert "This is a rehearsal" in found[3]


def test_a_function_that_raises_ends_the_block(clients):
    def script(request: Request) -> str:
        raise ValueError("a fault of the test's own")

    with pytest.raises(ValueError, match="a fault of the test's own"), serve(script) as server:
        both = clients(server)
        with pytest.raises(both.errors):
            both.ask("chat", stream=False)


def test_a_script_is_read_from_yaml_or_json(tmp_path):
    rules = {"format": 1, "rules": [{"when": {"model": "a"}, "say": ["yes", {"status": 429, "retry_after": 2.5}]}]}
    as_json, as_yaml = tmp_path / "script.json", tmp_path / "script.yaml"
    as_json.write_text(json.dumps(rules), encoding="utf-8")
    as_yaml.write_text(
        "format: 1\nrules:\n- when: {model: a}\n  say: [yes!, {status: 429, retry_after: 2.5}]\n".replace(
            "yes!", "'yes'"
        ),
        encoding="utf-8",
    )
    assert read_script(as_json) == read_script(str(as_yaml)) == read_script(rules) == read_script(rules["rules"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules: [{say: []}]", "rules.0.say"),
        ("rules: [{say: [{status: 200}]}]", "rules.0.say.0.status"),
        ("rules: [{when: {modell: a}, say: hi}]", "rules.0.when.modell"),
        ("format: 2", "format"),
        ("rules: [", "is not YAML"),
        ("just text", "is not a script"),
    ],
)
def test_a_script_with_faults_is_refused_with_their_places(tmp_path, text, told):
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadOption, match=told):
        read_script(path)


def test_a_script_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadOption, match="cannot be read: No such file"):
        read_script(tmp_path / "gone.yaml")


def test_a_port_that_is_taken_is_refused():
    with serve() as server:
        port = int(server.anthropic_url.rpartition(":")[2])
        with pytest.raises(BadOption, match=f"port: {port} cannot be used"), serve(port=port):
            pass
