"""The agent that knows nothing: deterministic, free, and honest about it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pydantic
import pytest

from karat import plugins
from karat.agents import AgentSetting, as_agent
from karat.agents.floor import NO_TOOL, NOTHING_FOUND, Floor, _search_tool, unsuitable
from karat.errors import InfrastructureFault
from karat.kinds import of_sample
from karat.mcp import Tool, Toolbox
from karat.records import AgentSpec, Condition, McpServer, Reply, Sample, ToolCall, Turn
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server

LAMPS = "# Lamps\n\nA lamp is lit with a match. It burns for six hours.\n\nKeep it away from curtains."


def ask(tmp_path: Path, question: str, *servers: McpServer, prompt: str | None = None, **options) -> Reply:
    (reply,) = ask_each(tmp_path, [question], *servers, prompt=prompt, **options)
    return reply


def ask_each(tmp_path: Path, questions: list[str], *servers: McpServer, prompt: str | None = None, **options):
    condition = Condition(
        name="c", position=0, digest="", agent=AgentSpec(type="floor"), system_prompt=prompt, mcp_servers=servers
    )
    sample = Sample(id="1", position=0, digest="", turns=tuple(Turn(question=question) for question in questions))

    async def story() -> list[Reply]:
        async with Toolbox(servers, redact=Redactor({}), folder=tmp_path) as toolbox:
            setting = AgentSetting(folder=tmp_path, toolbox=toolbox)
            agent = plugins.build(plugins.find("agents", "floor"), options, setting=setting)
            async with agent.session(condition, sample) as session:
                return [await session.ask(turn) for turn in sample.turns]

    return asyncio.run(story())


def test_without_a_tool_it_says_that_it_does_not_know(tmp_path):
    reply = ask(tmp_path, "How is a lamp lit?")
    assert reply == Reply(text=NO_TOOL, dollars=0.0, model="floor")


def test_it_asks_the_search_tool_for_one_result_and_gives_it(tmp_path):
    reply = ask(tmp_path, "How is a lamp lit?", stdio_server("docs"))
    (call,) = reply.tool_calls
    assert call == ToolCall(
        server="docs",
        tool="search",
        input={"query": "How is a lamp lit?", "limit": 1},
        result=LAMPS,
        milliseconds=call.milliseconds,
    )
    assert (reply.text, reply.dollars, reply.usage) == (LAMPS, 0.0, None)


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_it_searches_over_http_and_sse_alike(tmp_path, shared_server, kind):
    assert ask(tmp_path, "lamp", McpServer(name="docs", type=kind, url=shared_server(kind))).text == LAMPS


def test_the_same_question_gives_the_same_answer(tmp_path, shared_server):
    docs = McpServer(name="docs", type="http", url=shared_server("http"))
    replies = {ask(tmp_path, "rain or boats?", docs).text for _ in range(3)}
    assert len(replies) == 1


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        pytest.param(None, LAMPS, id="no prompt"),
        pytest.param("Use the docs tool.", LAMPS, id="no word about length"),
        pytest.param("Use the docs tool. Answer in one sentence.", "A lamp is lit with a match.", id="one sentence"),
        pytest.param("Be terse.", "A lamp is lit with a match. It burns for six hours.", id="terse"),
        pytest.param("Keep it SHORT", "A lamp is lit with a match. It burns for six hours.", id="short"),
        pytest.param("Use the shortcut.", LAMPS, id="a word that only begins so"),
    ],
)
def test_a_prompt_that_asks_for_a_short_answer_is_obeyed(tmp_path, shared_server, prompt, text):
    docs = McpServer(name="docs", type="http", url=shared_server("http"))
    assert ask(tmp_path, "lamp", docs, prompt=prompt).text == text
    assert ask(tmp_path, "lamp", docs, prompt=prompt, obey_length=False).text == LAMPS


def test_unknown_options_are_refused():
    with pytest.raises(pydantic.ValidationError, match="obey_lenght"):
        Floor.Options.model_validate({"obey_lenght": True})


def test_a_server_that_is_down_is_not_the_agents_fault(tmp_path):
    with pytest.raises(InfrastructureFault, match="no-such-program"):
        ask(tmp_path, "lamp", McpServer(name="docs", type="stdio", command="no-such-program"))


def served(tmp_path: Path, body: str) -> McpServer:
    lines = [
        "from mcp.server.mcpserver import MCPServer",
        "from mcp.server.mcpserver.exceptions import ToolError",
        "server = MCPServer('s', log_level='CRITICAL')",
        body,
        "server.run()",
    ]
    (tmp_path / "server.py").write_text("\n".join(lines))
    return McpServer(name="s", type="stdio", command="python", args=("server.py",))


@pytest.mark.slow
def test_a_search_that_fails_or_finds_nothing_is_no_answer(tmp_path):
    failing = "@server.tool()\ndef search(query: str) -> str:\n    raise ToolError('index is broken')"
    reply = ask(tmp_path, "lamp", served(tmp_path, failing))
    assert reply.text == NOTHING_FOUND
    assert [call.error for call in reply.tool_calls] == ["Error executing tool search: index is broken"]
    empty = "@server.tool()\ndef search(query: str) -> str:\n    return ' '"
    assert ask(tmp_path, "lamp", served(tmp_path, empty)).text == NOTHING_FOUND


FIRST = [
    (["one", "two"], "one"),
    ([{"title": "T", "text": "one"}, {"text": "two"}], "one"),
    ({"results": [{"url": "u", "snippet": "one"}]}, "one"),
    ({"title": "T", "content": "one"}, "one"),
    ([], NOTHING_FOUND),
    ({"results": []}, NOTHING_FOUND),
    ({"a": 1, "b": 2}, json.dumps({"a": 1, "b": 2})),
    (7, "7"),
]
"""What a search tool returns, and the first result in it."""


def test_the_first_of_several_results_in_json(tmp_path):
    returned = [json.dumps(result) for result, _ in FIRST]
    body = f"@server.tool()\ndef search(query: str) -> str:\n    return {returned!r}[int(query)]"
    replies = ask_each(tmp_path, [str(number) for number in range(len(FIRST))], served(tmp_path, body))
    assert [reply.text for reply in replies] == [first for _, first in FIRST]


def tool(name: str, description: str = "", required: tuple[str, ...] = (), **properties: str) -> Tool:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(required),
    }
    return Tool(server="s", name=name, description=description, input_schema=schema)


@pytest.mark.parametrize(
    ("tools", "chosen", "arguments"),
    [
        pytest.param([tool("read", path="string"), tool("search", query="string")], "search", {}, id="by its name"),
        pytest.param(
            [tool("read", path="string"), tool("kb", "Finds passages.", q="string", top_k="integer")],
            "kb",
            {"top_k": 1},
            id="by its description",
        ),
        pytest.param([tool("kb", query="string")], "kb", {}, id="by its query"),
        pytest.param([tool("lookup", required=("symptom",), symptom="string")], "lookup", {}, id="by its one argument"),
        pytest.param(
            [
                tool("search", required=("query", "tenant"), query="string", tenant="string"),
                tool("find", text="string"),
            ],
            "find",
            {},
            id="one that needs more than a question is left alone",
        ),
        pytest.param([tool("search", query="array")], None, {}, id="a query that is no text"),
        pytest.param([tool("restart"), tool("read", path="string")], None, {}, id="no search at all"),
        pytest.param([Tool(server="s", name="search", description="", input_schema={})], None, {}, id="no schema"),
    ],
)
def test_which_tool_is_for_searching(tools, chosen, arguments):
    from karat.agents.floor import _search_tool

    found = _search_tool(tuple(tools))
    assert (found[0].name, found[1]) == (chosen, arguments) if found else chosen is None


REPORT = {
    "pre_text": "sales in millions of dollars .",
    "post_text": "a swap of $ 1,250 was settled .",
    "table": {"2019": {"net sales": 412.5, "costs": "n/m", "margin": "31.5%"}, "2018": {"net sales": 388.0}},
}


@pytest.mark.needs_package("karat_conversations")
@pytest.mark.parametrize(
    ("questions", "answer"),
    [
        pytest.param(["what were the net sales in 2018?"], "388", id="row and column"),
        pytest.param(
            ["what were the net sales in 2018?", "and in 2019?"], "412.5", id="the row of the question before"
        ),
        pytest.param(["what was the margin?"], "0.315", id="a percentage as a share"),
        pytest.param(["how large was the swap?"], "1250", id="no cell: the last number of the text"),
    ],
)
@pytest.mark.parametrize("rows", [False, True])
def test_of_a_report_it_looks_the_number_up(tmp_path, questions, answer, rows):
    table = [["", "2019", "2018"], ["net sales", 412.5, 388.0], ["costs", "n/m", "-"], ["margin", "31.5%", ""]]
    detail = {**REPORT, "table": table} if rows else REPORT
    turns = tuple(Turn(question=question, golden="7") for question in questions)
    sample = Sample(kind="conversation", id="1", position=0, digest="", turns=turns, detail=detail)
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"))

    async def story() -> Reply:
        async with Toolbox((), redact=Redactor({}), folder=tmp_path) as toolbox:
            agent = Floor(Floor.Options(), AgentSetting(folder=tmp_path, toolbox=toolbox))
            async with agent.session(condition, sample) as session:
                return await session.ask(turns[-1])

    said = json.loads(asyncio.run(story()).text)
    assert said == {"answer": answer, "unit": "none", "program": answer}


@pytest.mark.needs_package("karat_conversations")
def test_without_a_search_only_a_kind_with_documents_finds_something():
    turn = Turn(question="what were the net sales in 2018?", golden="7")
    found = {}
    for kind in ("", "golden", "study", "conversation", "not-installed"):
        sample = Sample(kind=kind, id="1", position=0, digest="", turns=(turn,), detail=REPORT)
        found[kind] = of_sample(sample).look_up(sample, turn)
    number = '{"answer": "388", "unit": "none", "program": "388"}'
    assert found == {"": None, "golden": None, "study": None, "conversation": number, "not-installed": None}


def test_a_report_without_a_number_gives_nothing():
    turn = Turn(question="what were the net sales?", golden="7")
    sample = Sample(kind="conversation", id="1", position=0, digest="", turns=(turn,), detail={"table": {}})
    assert of_sample(sample).look_up(sample, turn) is None


REFERENCE = json.loads((Path(__file__).parent / "reference_servers.json").read_text(encoding="utf-8"))
"""The tools of the official reference servers (November 2026): names, first words of descriptions, arguments."""


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("memory", "search_nodes"),
        ("filesystem", "search_files needs path, pattern"),
        ("everything", "simulate-research-query does more than search"),
        ("fetch", "fetch needs url"),
        ("git", "git_status needs repo_path"),
        ("time", "get_current_time needs timezone"),
    ],
)
def test_the_search_tool_of_reference_servers_is_found_or_it_is_said_why_none_is(server, expected):
    tools = tuple(Tool(server=server, **tool) for tool in REFERENCE[server])
    found = _search_tool(tools)
    if found is not None:
        assert (found[0].name, unsuitable(tools)) == (expected, None)
    else:
        assert f"no tool here searches with a question alone ({expected}" in unsuitable(tools)


@pytest.mark.parametrize(
    ("name", "properties", "required", "taken"),
    [
        ("searchDocs", {"query": {"type": "string"}}, ["query"], True),
        ("lookup", {"term": {"type": "string"}}, ["term"], True),
        ("docs", {"query": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, [], True),
        ("docs", {"query": {"type": ["string", "null"]}}, [], True),
        ("delete_by_query", {"query": {"type": "string"}}, ["query"], False),
        ("research", {"path": {"type": "string"}}, ["path"], False),
    ],
)
def test_a_search_tool_is_one_that_takes_a_question_and_changes_nothing(name, properties, required, taken):
    schema = {"type": "object", "properties": properties, "required": required}
    tool = Tool(server="s", name=name, description="", input_schema=schema)
    assert (_search_tool((tool,)) is not None) == taken


def test_without_tools_there_is_nothing_to_explain():
    assert unsuitable(()) is None


def test_which_tools_it_used_is_known_and_its_answers_cost_nothing(tmp_path):
    """So a run under it can say that an expected tool was not called."""
    toolbox = Toolbox((), redact=Redactor({}), folder=tmp_path)
    agent = as_agent(Floor(Floor.Options(), AgentSetting(folder=tmp_path, toolbox=toolbox)))
    assert getattr(agent, "reports_tool_calls", False)
    assert Floor.offline
