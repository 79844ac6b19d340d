"""Questions that servers ask the user: answered by a script, journalled with the call, the same on tape as live."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from mcp_types import ElicitRequestFormParams

from karat.analysis.server_news import server_news
from karat.errors import AgentFault, InfrastructureFault
from karat.mcp import Toolbox
from karat.mcp.attempts import Attempt
from karat.mcp.elicitation import Answering, answers_for, answers_from
from karat.records import AgentSpec, Cassettes, Condition, Elicit, Elicited, McpServer, Sample, ServerEvent, Turn
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server

THREE = Elicited(action="accept", content={"copies": 3})
SCRIPT = (THREE, Elicited(action="decline"), Elicited(action="cancel"))
VERSIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]


def order(toolbox, condition, server, script, *, times=1):
    async def story():
        async with toolbox as box:
            with Attempt("t-1", elicit=script):
                async with box.open(condition(server)) as tools:
                    books = ["Emma", "Ulysses", "Persuasion", "Middlemarch"][:times]
                    return [await tools.call_in_full("s", "order", {"book": book}) for book in books]

    return asyncio.run(story())


def boxed(tmp_path, server, mode=None):
    cassettes = Cassettes(mode=mode, folder=tmp_path / "tapes") if mode is not None else None
    return Toolbox((server,), redact=Redactor({}), folder=tmp_path, cassettes=cassettes)


@pytest.mark.quick(1)
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("version", VERSIONS)
def test_questions_are_answered_in_order_and_the_last_answer_repeats(
    tmp_path, condition, shared_server, version, transport
):
    url = shared_server("http") if transport == "http" else ""
    server = McpServer(name="s", type="http", url=url, protocol=version) if url else stdio_server("s", protocol=version)
    made = order(boxed(tmp_path, server), condition, server, SCRIPT, times=4)
    assert [result["copies"] for _, result in made] == [3, 0, 0, 0]
    kinds = ["AcceptedElicitation", "DeclinedElicitation", "CancelledElicitation", "CancelledElicitation"]
    assert [result["said"] for _, result in made] == kinds
    asked = Elicited(action="accept", content={"copies": 3}, message="How many copies of Emma?")
    assert made[0][0].elicited == (asked,)
    assert [call.elicited[0].action for call, _ in made] == ["accept", "decline", "cancel", "cancel"]


FORM = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30, "minimum": 18}},
}


@pytest.mark.parametrize(
    ("schema", "given", "sent", "problem"),
    [
        (FORM, {"name": "Ada"}, {"name": "Ada", "age": 30}, ""),
        (FORM, {"name": "Ada", "age": 40}, {"name": "Ada", "age": 40}, ""),
        (FORM, {}, None, "'name' is a required property"),
        (FORM, {"name": 5}, None, "'name': 5 is not of type 'string'"),
        (FORM, {"name": "Ada", "age": "old"}, None, "'age': 'old' is not of type 'integer'"),
        (FORM, {"name": "Ada", "age": 3}, None, "'age': 3 is less than the minimum of 18"),
        (FORM, {"name": "Ada", "extra": True}, None, "the form has no field 'extra'"),
        ({"properties": {"kind": {"enum": ["a", "b"], "default": "b"}}}, {}, {"kind": "b"}, ""),
        ({"properties": {"kind": {"enum": ["a", "b"]}}}, {"kind": "c"}, None, "'kind': 'c' is not one of ['a', 'b']"),
        ({"properties": {"at": {"type": "string", "format": "date"}}}, {"at": "soon"}, None, "'soon' is not a 'date'"),
        ({"properties": {"n": {"type": "integer", "default": "x"}}}, {}, None, "'n': 'x' is not of type 'integer'"),
        ({"type": "object", "properties": {}}, {}, {}, ""),
        ({"properties": {"n": {"type": 5}}}, {}, None, "the form's schema is not valid"),
        ({"properties": {"n": {"$ref": "http://127.0.0.1:9/x"}}}, {"n": 1}, None, "it refers to another"),
    ],
)
def test_only_what_a_form_can_send_is_sent_and_else_declined(tmp_path, schema, given, sent, problem):
    news: list[ServerEvent] = []
    with Attempt("t-1", elicit=(Elicited(action="accept", content=given),)) as attempt:
        answering = Answering(attempt, "s", on_news=news.append)
        asked = ElicitRequestFormParams(message="who?", requested_schema=schema)
        result = asyncio.run(answering(None, asked))
    (noted,) = answering.noted()
    assert (result.action, result.content) == ("accept" if sent is not None else "decline", sent)
    assert (noted.action, noted.content, problem in noted.problem) == (result.action, sent or {}, True)
    assert [event.problem for event in news] == ([noted.problem] if problem else [])


SHOP = """
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

shop = MCPServer("shop")


class Copies(BaseModel):
    copies: int


@shop.tool()
async def order(book: str, ctx: Context) -> str:
    answer = await ctx.elicit(message="How many?", schema=Copies)
    return f"{answer.action}:{answer.data.copies}"


shop.run()
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize(("version", "unasked"), [("auto", True), ("2025-11-25", False)])
def test_a_server_that_cannot_ask_over_its_protocol_is_named_with_the_setting(tmp_path, condition, version, unasked):
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    server = McpServer(
        name="s", type="stdio", command=sys.executable, args=(str(tmp_path / "shop.py"),), protocol=version
    )
    news: list[ServerEvent] = []
    toolbox = Toolbox((server,), redact=Redactor({}), folder=tmp_path, on_news=news.append)
    ((call, _),) = order(toolbox, condition, server, (THREE,))
    assert (call.result, "back-channel" in (call.error or "")) == ((None, True) if unasked else ("accept:3", False))
    assert [event.what for event in news] == ["unasked"] * unasked
    said = [sentence for sentence in server_news((), news) if "set `protocol: 2025-11-25` for this server" in sentence]
    assert len(said) == unasked


@pytest.mark.slow
def test_without_a_script_servers_cannot_ask(tmp_path, condition):
    server = stdio_server("s")
    ((call, _),) = order(boxed(tmp_path, server), condition, server, ())
    assert "did not declare" in call.error
    assert call.elicited == ()


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_is_live(tmp_path, condition, version):
    server = stdio_server("s", digest="d", protocol=version)
    gone = McpServer(name="s", type="stdio", command="python", args=("-c", "exit(1)"), digest="d", protocol=version)
    live = order(boxed(tmp_path, server, "record"), condition, server, SCRIPT, times=3)
    assert order(boxed(tmp_path, gone, "replay"), condition, gone, SCRIPT, times=3) == live
    assert [result["copies"] for _, result in live] == [3, 0, 0]


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_servers")
@pytest.mark.parametrize("script", [(Elicited(action="accept", content={"copies": 4}),), SCRIPT[1:], ()])
def test_a_recording_with_other_answers_is_none(tmp_path, condition, script):
    server = stdio_server("s", digest="d")
    order(boxed(tmp_path, server, "record"), condition, server, SCRIPT)
    with pytest.raises(InfrastructureFault) as caught:
        order(boxed(tmp_path, server, "replay"), condition, server, script)
    assert caught.value.kind == "cassette_miss"


def test_calls_at_the_same_time_keep_their_own_questions(tmp_path, condition):
    server = stdio_server("s", protocol="2025-11-25")

    async def story():
        async with boxed(tmp_path, server) as box:
            with Attempt("t-1", elicit=(THREE,)):
                async with box.open(condition(server)) as tools:
                    books = [f"volume {number}" for number in range(4)]
                    return await asyncio.gather(*(tools.call("s", "order", {"book": book}) for book in books))

    for number, call in enumerate(asyncio.run(story())):
        assert [each.message for each in call.elicited] == [f"How many copies of volume {number}?"]


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_servers", cases="record")
@pytest.mark.parametrize("mode", [None, "record"])
def test_an_agent_that_connects_itself_has_its_questions_answered_by_the_script(tmp_path, mode):
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    server = stdio_server("s")

    async def story():
        async with boxed(tmp_path, server, mode) as box:
            with Attempt("t-1", elicit=(THREE,)):
                started = box.proxy_command(server)
                assert started is not None
                (program, *arguments), env = started
                async with Client(StdioServerParameters(command=program, args=arguments, env=env)) as client:
                    return (await client.call_tool("order", {"book": "Emma"})).structured_content

    assert asyncio.run(story())["copies"] == 3


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ("decline", (Elicited(action="decline"),)),
        ({"accept": {"copies": 3}}, (THREE,)),
        ([{"accept": {"copies": 3}}, "decline", "cancel"], SCRIPT),
    ],
)
def test_what_a_key_may_hold(value, answers):
    assert answers_from(value) == answers
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata={"said": value})
    text = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata={"said": json.dumps(value)})
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), elicit=Elicit(column="said"))
    assert answers_for(condition, sample) == answers_for(condition, text) == answers


@pytest.mark.parametrize("value", ["yes", {"accept": 3}, {"accept": {}, "decline": {}}, [], [["decline"]], 7, "{"])
def test_what_is_no_answer_is_refused(value):
    with pytest.raises(ValueError, match="must be accept, decline, cancel"):
        answers_from(value)
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata={"said": value})
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), elicit=Elicit(column="said"))
    with pytest.raises(AgentFault, match="the column `said` must be accept"):
        answers_for(condition, sample)


def test_an_empty_cell_leaves_the_user_out():
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),), metadata={"said": ""})
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="mcp"), elicit=Elicit(column="said"))
    assert answers_for(condition, sample) == ()
