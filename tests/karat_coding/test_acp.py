"""The agent `acp` with a scripted agent: what it says, what it may do, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("acp") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `acp`", allow_module_level=True)

from tests.karat_coding.acp_trials import AcpTrials
from tests.karat_coding.claude_trials import descendants, wait_for

from karat.errors import AgentFault, BadExperiment, BadOption, InfrastructureFault, LimitReached, TrialFault
from karat.models import Price
from karat.records import Cassettes, Reply, ToolCall, Usage
from karat.testing.mcp_server import stdio_server
from karat_coding.agents._acp_session import Files, reported_usage
from karat_coding.workspace import Overlay, overlay_for

AGENT = str(Path(__file__).with_name("scripted_acp_agent.py"))


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[AcpTrials]:
    """What the trials start is gone when they are over, and so are their folders."""
    before = descendants(os.getpid())
    yield AcpTrials(tmp_path)
    assert wait_for(lambda: not (descendants(os.getpid()) - before), seconds=5)
    assert not list(Path(tempfile.gettempdir()).glob(f"karat-acp-{os.getpid()}-*"))


def scripted(*prompts: Any, **more: Any) -> dict[str, Any]:
    """The options of the agent; each prompt is a list of steps, or a text that it says."""
    steps = [[{"say": one}] if isinstance(one, str) else one for one in prompts]
    return {"command": [sys.executable, AGENT, json.dumps({"steps": steps, **more})]}


def tool(key: str, **told: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call", "toolCallId": key, **told}}


def done(key: str, text: str = "done", **told: Any) -> dict[str, Any]:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    what = {"sessionUpdate": "tool_call_update", "toolCallId": key, "status": "completed", "content": content, **told}
    return {"update": what}


def permission(key: str, **told: Any) -> dict[str, Any]:
    options = [
        {"optionId": "a", "name": "Yes", "kind": "allow_once"},
        {"optionId": "b", "name": "No", "kind": "reject_once"},
    ]
    params = {"toolCall": {"toolCallId": key, **told}, "options": options}
    return {"ask": "session/request_permission", "params": params}


def chosen(option: str) -> str:
    return json.dumps({"outcome": {"outcome": "selected", "optionId": option}})


def kept(fault: Any) -> Reply:
    assert isinstance(fault.value.reply, Reply)
    return fault.value.reply


def test_the_system_prompt_and_the_materials_precede_the_first_question_of_one_session(trials: AcpTrials) -> None:
    trials.system_prompt, trials.materials = "Be brief.", "A document."
    first, second = trials.ask(scripted([{"echo": "prompt"}]), "why?", "and then?")
    assert first.text == "Be brief.\n\nA document.\n\nwhy?"
    assert second.text == "and then?"
    assert first == Reply(
        text=first.text, milliseconds=first.milliseconds, stop_reason="end_turn", agent="scripted 1.0"
    )


def test_the_agent_sees_the_declared_environment_and_an_empty_home_and_folder(trials: AcpTrials) -> None:
    os.environ["KARAT_TEST_CANARY"] = "tweet"
    try:
        (reply,) = trials.ask({**scripted([{"echo": "env"}]), "env": {"DECLARED": "yes"}})
    finally:
        del os.environ["KARAT_TEST_CANARY"]
    seen = json.loads(reply.text)
    cwd, home = seen.pop("cwd"), seen.pop("home")
    assert home == []
    assert Path(cwd).parent.name.startswith("karat-acp-")
    assert seen.keys() - {"LC_CTYPE"} == {"PATH", "LANG", "HOME", "TMPDIR", "PWD", "DECLARED"}
    (leaky,) = trials.ask({**scripted([{"echo": "env"}]), "env": {"KARAT_TEST_CANARY": "tweet"}})
    assert "tweet" in leaky.text  # the test would see it


def test_usage_that_is_not_reported_is_absent_and_never_zero(trials: AcpTrials) -> None:
    trials.prices = {"m": Price(input=1, output=2)}
    counts = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}
    models = {"models": {"availableModels": [{"modelId": "m"}], "currentModelId": "m"}}
    script = scripted([{"say": "a", "result": {"usage": counts}}], [{"say": "b"}], session=models)
    first, second = trials.ask(script, "1", "2")
    assert (first.usage, first.dollars) == (Usage(input_tokens=100, output_tokens=10), pytest.approx(120e-6))
    assert (second.usage, second.dollars, second.model) == (None, None, "m")


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}, Usage(input_tokens=5, output_tokens=3)),
        (
            {"inputTokens": 5, "outputTokens": 3, "cachedReadTokens": 4, "thoughtTokens": 2, "totalTokens": 14},
            Usage(input_tokens=9, output_tokens=5, cache_read_tokens=4, reasoning_tokens=2),
        ),
        (
            {"inputTokens": 9, "outputTokens": 5, "cachedReadTokens": 4, "thoughtTokens": 2, "totalTokens": 14},
            Usage(input_tokens=9, output_tokens=5, cache_read_tokens=4, reasoning_tokens=2),
        ),
        ({"inputTokens": 5, "outputTokens": 3, "totalTokens": 9}, None),  # they do not add up
        ({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, None),
        ({"inputTokens": -1, "outputTokens": 3, "totalTokens": 2}, None),
        ({"inputTokens": True, "outputTokens": 3, "totalTokens": 4}, None),
        (None, None),
        ([], None),
    ],
)
def test_tokens_are_read_as_their_sum_allows(told: object, wanted: Usage | None) -> None:
    assert reported_usage(told) == wanted


def test_the_cost_is_what_the_session_has_grown_by_and_zero_is_not_known(trials: AcpTrials) -> None:
    def cost(amount: float, currency: str = "USD") -> dict[str, Any]:
        return {"update": {"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": currency}}}

    prompts = [[one, {"say": "so"}] for one in (cost(0.5), cost(0.75), cost(0.0), cost(9, "EUR"))]
    assert [reply.dollars for reply in trials.ask(scripted(*prompts), *"1234")] == [0.5, 0.25, None, None]


def test_a_tool_call_may_come_as_an_update_only_and_unknown_messages_are_passed_over(trials: AcpTrials) -> None:
    trials.tools = ("read", "fancy")
    steps = [
        {"raw": "Listening on stdio…"},
        {"send": {"method": "_vendor/whatever", "params": {"x": 1}}},
        {"update": {"sessionUpdate": "brand_new", "value": [1]}},
        {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}},
        {"say": "Let me see."},
        done("1", "text of it", kind="read", rawInput={"path": "x"}),
        tool("2", name="fancy", title="Something fancy", kind="other"),
        done("2", "", status="failed"),
        {"say": "It is so."},
    ]
    (reply,) = trials.ask(scripted(steps))
    assert (reply.text, reply.reasoning) == ("It is so.", "hmLet me see.\n\n")
    first, second = reply.tool_calls
    assert (first.tool, first.server, first.input, first.result) == ("read", None, {"path": "x"}, "text of it")
    assert (second.tool, second.result, second.error) == ("fancy", None, "the tool failed and did not say why")


def test_permission_is_given_for_listed_tools_only_and_a_refusal_is_kept(trials: AcpTrials) -> None:
    trials.tools = ("Write",)
    steps = [
        tool("1", name="Write", title="Write a.txt", kind="edit"),
        permission("1", title="Write a.txt"),
        done("1"),
        tool("2", name="Bash", title="Write", kind="execute"),  # a title is chosen by the model
        permission("2", title="Write", kind="execute"),
    ]
    (reply,) = trials.ask(scripted(steps))
    assert reply.text == chosen("b")
    assert reply.reasoning is not None
    assert chosen("a") in reply.reasoning
    assert [(call.tool, call.error) for call in reply.tool_calls] == [
        ("Write", None),
        ("Bash", "rejected: the condition does not allow this tool"),
    ]


def test_a_tool_that_ran_without_asking_and_is_not_listed_is_a_fault_of_the_agent(trials: AcpTrials) -> None:
    with pytest.raises(AgentFault, match="ran 'WebSearch' without asking") as fault:
        trials.ask(scripted([tool("1", name="WebSearch"), done("1"), {"say": "so"}]))
    assert fault.value.kind == "tool_not_allowed"
    assert kept(fault).text == "so"


def test_an_agent_that_decides_itself_takes_no_allow_list(trials: AcpTrials) -> None:
    script = scripted("hi", agent={"name": "codex-acp", "version": "1"})
    assert trials.ask(script)[0].text == "hi"
    trials.tools = ("read",)
    with pytest.raises(BadExperiment, match=r"conditions\.a\.tools.*\n?.*an allow-list would have no effect"):
        trials.ask(script)


def test_files_are_served_in_the_workspace_only(trials: AcpTrials, tmp_path: Path) -> None:
    work = trials.work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret").write_text("canary")
    (work / "out").symlink_to(tmp_path)
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "inside").symlink_to("a.txt")
    os.mkfifo(work / "pipe")
    outside = [
        f"{work}/../secret", "/etc/hostname", f"{work}/out/secret", f"{work}/link", f"{work}/pipe", "a.txt", str(work),
        f"{work}/inside", f"{work}x/secret", f"{work}/a\0b",
    ]  # fmt: skip
    reads = [{"ask": "fs/read_text_file", "params": {"path": path}} for path in outside]
    writes = [{"ask": "fs/write_text_file", "params": {"path": path, "content": "gone"}} for path in outside]
    good = [
        {"ask": "fs/read_text_file", "params": {"path": f"{work}/a.txt", "line": 2, "limit": 1}},
        {"ask": "fs/write_text_file", "params": {"path": f"{work}/new/b.txt", "content": "hello"}},
        {"ask": "fs/read_text_file", "params": {"path": f"{work}/none.txt"}},
    ]
    with pytest.raises(TrialFault) as none_allowed:
        trials.ask(scripted([*good, {"exit": 1}]))
    assert {call.error for call in kept(none_allowed).tool_calls} == {"the condition allows no tool of the agent's own"}
    assert not (work / "new").exists()
    trials.tools = ("edit",)
    (reply,) = trials.ask(scripted([*reads, *writes, *good]))
    assert "canary" not in reply.text
    assert '{"content": "two\\n"}' in reply.text
    assert (work / "new/b.txt").read_text() == "hello"
    refused = [(call.tool, call.input["path"]) for call in reply.tool_calls]
    assert refused == [
        *(("fs/read_text_file", path) for path in outside),
        *(("fs/write_text_file", path) for path in outside),
    ]
    assert (tmp_path / "secret").read_text() == "canary"
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"


OUTSIDE = {
    "absolute": {"rawInput": {"filePath": "/elsewhere/x"}},
    "up": {"rawInput": {"file_path": "../x"}},
    "down and up": {"rawInput": {"path": "a/../../x"}},
    "a folder whose name begins alike": {"rawInput": {"AbsolutePath": "{work}x/y"}},
    "another case": {"rawInput": {"path": "{WORK}/y"}},
    "a link to a folder": {"rawInput": {"path": "out/y"}},
    "a link to a file": {"rawInput": {"path": "{work}/link"}},
    "a link to a link": {"rawInput": {"path": "first/y"}},
    "links without an end": {"rawInput": {"path": "loop/y"}},
    "home": {"rawInput": {"path": "~/y"}},
    "address": {"rawInput": {"uri": "file:///elsewhere/a%20b"}},
    "escaped": {"rawInput": {"path": "file://{work}/%2e%2e/x"}},
    "one of several": {"rawInput": {"edits": [{"target": "a"}, {"target": "/elsewhere/x"}]}},
    "as a key": {"rawInput": {"files": {"/elsewhere/x": "text"}}},
    "patch": {"rawInput": {"patchText": "*** Begin Patch\n*** Add File: /elsewhere/x\n+a"}},
    "diff": {"rawInput": {"diff": "--- a/b\n+++ /elsewhere/x\n"}},
    "location": {"locations": [{"path": "{work}/a"}, {"path": "/elsewhere/x"}]},
    "shown difference": {"content": [{"type": "diff", "path": "/elsewhere/x", "newText": ""}]},
}
INSIDE = [
    {"rawInput": {"filePath": "{work}/new/x", "content": "/etc/passwd"}},
    {"rawInput": {"path": "within/x", "old_string": "../", "newString": "/usr"}},
    {"rawInput": {"path": "a/../b", "mode": "overwrite", "pattern": "/x/"}},
    {"rawInput": {"diff": "--- /dev/null\n+++ {work}/x\n"}, "locations": [{"path": "{work}/x", "line": 3}]},
]


def filled(report: Any, work: Path) -> Any:
    return json.loads(json.dumps(report).replace("{work}", str(work)).replace("{WORK}", str(work).upper()))


@pytest.fixture
def linked(trials: AcpTrials, tmp_path: Path) -> Path:
    """A workspace with links, in which `write` is allowed."""
    work = trials.work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to(tmp_path)
    (work / "link").symlink_to("../secret")
    (work / "first").symlink_to("out")
    (work / "loop").symlink_to("loop")
    (work / "inner").mkdir()
    (work / "within").symlink_to("inner")
    trials.tools = ("write",)
    return work


@pytest.mark.parametrize("when", ["before", "as it asks"])
def test_an_allowed_tool_is_refused_out_of_the_workspace(trials: AcpTrials, linked: Path, when: str) -> None:
    steps = []
    for key, report in filled(OUTSIDE, linked).items():
        early, late = (report, {}) if when == "before" else ({"rawInput": {"path": "a"}}, report)
        steps += [tool(key, name="write", kind="edit", **early), permission(key, **late)]
    (reply,) = trials.ask(scripted([*steps, {"say": "so"}]))
    assert chosen("a") not in f"{reply.reasoning}{reply.text}"
    assert len(reply.tool_calls) == len(OUTSIDE)
    for call in reply.tool_calls:
        assert call.error is not None
        assert re.fullmatch("rejected: .* is outside of the working folder", call.error)


def test_an_allowed_tool_may_work_in_the_workspace(trials: AcpTrials, linked: Path) -> None:
    steps = []
    for key, report in enumerate(filled(INSIDE, linked)):
        steps += [tool(f"{key}", name="write", kind="edit", **report), permission(f"{key}"), done(f"{key}")]
    (reply,) = trials.ask(scripted([*steps, {"say": "so"}]))
    assert [call.error for call in reply.tool_calls] == [None] * len(INSIDE)


def test_a_tool_that_wrote_out_of_the_workspace_without_asking_is_a_fault(trials: AcpTrials, linked: Path) -> None:
    steps = [tool("1", name="write", kind="edit", rawInput={"path": "../x"}), done("1"), {"say": "so"}]
    with pytest.raises(AgentFault, match=r"ran 'write' outside of the working folder, on \.\./x, without asking"):
        trials.ask(scripted(steps))


def overlay() -> Overlay:
    with tempfile.TemporaryDirectory(prefix="karat-test-") as folder:
        found = overlay_for(Path(folder))
    if not found.enter:
        pytest.skip(f"overlays cannot be mounted here: {found.shown}")
    return found


def test_files_of_an_overlay_are_those_that_the_agent_sees(trials: AcpTrials, tmp_path: Path) -> None:
    trials.work, trials.overlay, trials.tools = tmp_path / "base", overlay(), ("edit",)
    trials.work.mkdir()
    (trials.work / "a.txt").write_text("before")
    steps = [
        {"file": "a.txt", "content": "by the agent itself"},
        {"ask": "fs/read_text_file", "params": {"path": "a.txt"}},
        {"ask": "fs/write_text_file", "params": {"path": "new/b.txt", "content": "by way of karat"}},
        {"ask": "fs/read_text_file", "params": {"path": "../base/a.txt"}},
    ]
    (reply,) = trials.ask(scripted(steps, relative=True))
    assert '{"content": "by the agent itself"}' in reply.text
    assert [call.error is None for call in reply.tool_calls] == [False]
    assert trials.changed == {"a.txt": "by the agent itself", "new/b.txt": "by way of karat"}
    assert (trials.work / "a.txt").read_text() == "before"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(OSError, match="larger than"):
        Files(tmp_path, tmp_path).read(f"{tmp_path}/large", None, None)


@pytest.mark.parametrize(
    ("result", "kind", "cls"),
    [
        ({"stopReason": "refusal"}, "content_filter", AgentFault),
        ({"stopReason": "max_tokens"}, "max_tokens", LimitReached),
        ({"stopReason": "max_turn_requests"}, "max_turns", LimitReached),
        ({"stopReason": "cancelled"}, "cancelled", AgentFault),
        ({"stopReason": None}, "bad_reply", AgentFault),
        ({"stopReason": "bored"}, "bad_reply", AgentFault),
        ({"stopReason": ["end_turn"]}, "bad_reply", AgentFault),
    ],
)
def test_a_turn_that_did_not_end_well_is_a_fault_with_what_was_said(
    trials: AcpTrials, result: dict[str, Any], kind: str, cls: type[TrialFault]
) -> None:
    with pytest.raises(cls) as fault:
        trials.ask(scripted([{"say": "half an ans", "result": result}]))
    assert fault.value.kind == kind
    assert kept(fault).text == "half an ans"


def test_silence_is_an_empty_answer(trials: AcpTrials) -> None:
    with pytest.raises(AgentFault) as fault:
        trials.ask(scripted([]))
    assert fault.value.kind == "empty_answer"


def test_an_agent_that_dies_in_the_middle_says_how_without_secrets(trials: AcpTrials) -> None:
    trials.secrets = {"KEY": "s3cr3t-value"}
    with pytest.raises(AgentFault, match="exit code 3") as fault:
        trials.ask(scripted([{"say": "half"}, {"spawn": 60.0}, {"exit": 3, "stderr": "no: s3cr3t-value"}]))
    assert fault.value.kind == "agent_ended"
    assert fault.value.retriable
    assert "s3cr3t" not in fault.value.message
    assert "no: ${KEY}" in fault.value.message
    assert kept(fault).text == "half"


@pytest.mark.parametrize("steps", [[{"say": "x", "times": 50_000_000}], [{"say": "x", "times": 10_000_000}] * 7])
def test_more_than_fits_is_a_limit(trials: AcpTrials, steps: list[Any]) -> None:
    with pytest.raises(LimitReached) as fault:
        trials.ask(scripted(steps))
    assert fault.value.kind == "output_too_long"


def test_a_hanging_agent_is_ended_with_all_that_it_started(trials: AcpTrials) -> None:
    trials.timeout = 1.5
    with pytest.raises(TimeoutError):
        trials.ask(scripted([{"spawn": 60.0}, {"hang": 60.0}]))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([sys.executable, "-c", "print('usage: agent [--acp]')"], "instead of a message: usage: agent"),
        ([sys.executable, "-c", "import sys; sys.exit('no such option: --acp')"], "exit code 1.*no such option: --acp"),
        (["cat"], "answered 'initialize' with an error.*does it speak ACP"),
    ],
)
def test_a_program_that_is_no_such_agent_is_said_to_be_none(trials: AcpTrials, command: list[str], words: str) -> None:
    with pytest.raises(InfrastructureFault, match=f"(?s){words}"):
        trials.ask({"command": command})


def test_another_version_of_the_protocol_and_a_login_are_named(trials: AcpTrials) -> None:
    with pytest.raises(InfrastructureFault, match="speaks version 9 of the protocol, not 1"):
        trials.ask(scripted("hi", version=9))
    with pytest.raises(InfrastructureFault, match="requires a login: give it a key with `env`") as fault:
        trials.ask(scripted("hi", error={"code": -32000, "message": "Authentication required"}))
    assert fault.value.kind == "unauthorized"


def test_a_missing_program_is_found_before_the_first_trial(trials: AcpTrials) -> None:
    for command in ("nosuchagent acp", "./nosuchagent", "/nosuchagent acp"):
        with pytest.raises(BadOption, match="is not a program; install the agent, or give its path"):
            trials.ask({"command": command})


def test_a_temporary_folder_below_instructions_is_refused(trials: AcpTrials, tmp_path: Path) -> None:
    """Agents would read them: those of folders above their working folder, too."""
    temporary = tmp_path / "above/tmp"
    temporary.mkdir(parents=True)
    (tmp_path / "above/AGENTS.md").write_text("CANARY")
    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        with pytest.raises(BadOption, match=r"would also find '.*AGENTS\.md'"):
            trials.ask(scripted("hi"))
    finally:
        tempfile.tempdir = before


def test_a_command_of_the_agent_is_not_sent_as_a_question(trials: AcpTrials) -> None:
    commands = {"update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "help"}]}}
    script = scripted([commands, {"say": "hi"}])
    assert [reply.text for reply in trials.ask(script, "/help", "/etc is a folder")] == ["hi", "hi"]
    with pytest.raises(AgentFault, match="begins with a command of the agent"):
        trials.ask(script, "hello", "/help me")


def test_the_model_is_what_the_agent_says_it_asks(trials: AcpTrials) -> None:
    option = {"id": "m", "category": "model", "type": "select", "currentValue": "a", "options": []}
    assert trials.ask(scripted("hi", session={"configOptions": [{"id": "mode"}, option]}))[0].model == "a"
    assert trials.ask(scripted("hi"))[0].model is None


def test_another_version_of_the_agent_within_a_run_is_said(trials: AcpTrials, tmp_path: Path) -> None:
    wrapper = tmp_path / "agent"
    count = tmp_path / "count"
    first, second = (scripted("hi", agent={"name": "x", "version": v})["command"][2] for v in ("1", "2"))
    wrapper.write_text(
        f"#!/bin/sh\nif [ -e {count} ]; then exec {sys.executable} {AGENT} '{second}'; fi\n"
        f"touch {count}\nexec {sys.executable} {AGENT} '{first}'\n"
    )
    wrapper.chmod(0o755)
    (reply,) = trials.ask({"command": ["./agent"]}, times=3)
    assert reply.agent == "x 2"
    assert trials.changes == ("the agent was x 1 and is now x 2",)


CALL = {"call": "docs", "tool": "echo", "arguments": {"text": "hi"}}


@pytest.mark.needs_package("karat_servers")
def test_calls_of_mcp_tools_are_recorded_as_they_were_on_the_way(trials: AcpTrials, tmp_path: Path) -> None:
    """By a name that the agent gives them, by their arguments, or where the agent says nothing of them."""
    trials.servers = (stdio_server("docs"),)
    steps = [
        tool("1", name="mcp__docs__echo", title="Echo"),
        permission("1"),
        {**CALL, "arguments": {"text": "one"}},
        done("1", "the agent's own words"),
        tool("2", title="a title", kind="execute", rawInput={"text": "two"}),
        {**CALL, "arguments": {"text": "two"}},
        done("2"),
        {**CALL, "arguments": {"text": "three"}},
        {"call": "docs", "tool": "fail", "arguments": {"message": "oops"}},
    ]
    script = scripted(steps, agent={"name": "x", "version": "1"})
    with pytest.raises(AgentFault, match="ran 'execute' without asking") as fault:
        trials.ask(script)
    calls = kept(fault).tool_calls
    assert [(call.server, call.tool, call.input.get("text"), call.result) for call in calls] == [
        ("docs", "echo", "one", "one"),
        ("docs", "echo", "two", "two"),
        ("docs", "echo", "three", "three"),
        ("docs", "fail", None, None),
    ]
    assert calls[-1].error == "Error executing tool fail: oops"


@pytest.mark.slow
@pytest.mark.needs_package("karat_servers")
def test_recorded_servers_are_replayed_alike(trials: AcpTrials, tmp_path: Path) -> None:
    trials.servers = (stdio_server("docs"),)
    script = scripted([CALL])

    def ask(mode: Any) -> ToolCall:
        trials.cassettes = Cassettes(mode=mode, folder=tmp_path / "cassettes")
        return trials.ask(script)[0].tool_calls[0]

    live = trials.ask(script)[0].tool_calls[0]
    assert live == ToolCall(tool="echo", server="docs", input={"text": "hi"}, result="hi")
    assert ask("record") == ask("replay") == live


@pytest.mark.needs_package("karat_servers")
def test_an_agent_without_its_tools_is_a_fault_of_the_infrastructure(trials: AcpTrials) -> None:
    trials.servers = (stdio_server("docs", init_timeout_seconds=4.0),)
    with pytest.raises(InfrastructureFault, match="did not list the tools of MCP server 'docs' within 4 s") as fault:
        trials.ask(scripted("hi", lists=False))
    assert (fault.value.kind, fault.value.retriable) == ("mcp_init_timeout", True)


@pytest.mark.needs_package("karat_servers")
def test_a_server_that_cannot_start_or_dies_is_named(trials: AcpTrials) -> None:
    trials.servers = (stdio_server("docs"),)
    with pytest.raises(InfrastructureFault, match="'docs'") as fault:
        trials.ask(scripted([{"call": "docs", "tool": "crash", "arguments": {}}, {"say": "sorry"}]))
    assert fault.value.kind == "mcp_server_down"
    assert "sorry" in kept(fault).text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="overlays")
def test_a_run_keeps_what_the_agent_changed_in_its_workspace(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/a.txt").write_text("before")
    (tmp_path / "data.jsonl").write_text('{"question": "why?", "answer": "because"}\n')
    written = {
        "name": "t",
        "dataset": {"path": "data.jsonl"},
        "agent": {"type": "acp", **scripted([{"file": "a.txt", "content": "after"}, {"say": "because"}])},
        "conditions": {"with": {"workspace": "base", "tools": ["edit"]}, "without": {}},
        "execution": {"num_repetitions": 1},
        "scorers": ["contains"],
    }
    (tmp_path / "experiment.yaml").write_text(json.dumps(written))
    command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (journal,) = tmp_path.glob("results/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    answers = {event["condition"]: event for event in events if event["event"] == "answer"}
    assert answers["with"]["workspace"]["changed"] == 1
    assert answers["without"].get("workspace") is None
    assert answers["with"]["replies"][0]["agent"] == "scripted 1.0"
    assert (tmp_path / "base/a.txt").read_text() == "before"


def test_a_file_that_is_written_again_holds_the_new_text_alone(tmp_path: Path) -> None:
    files = Files(Path("/shown"), tmp_path)
    files.write("/shown/a/b.txt", "one\ntwo\nthree")
    files.write("/shown/a/b.txt", "1\n2\n3\n4")
    assert (tmp_path / "a" / "b.txt").read_text() == "1\n2\n3\n4"
    parts = [(None, None), (2, None), (1, 2), (2, 1), (None, 3), (9, 1)]
    assert [files.read("/shown/a/b.txt", line, limit) for line, limit in parts] == [
        "1\n2\n3\n4", "2\n3\n4", "1\n2\n", "2\n", "1\n2\n3\n", ""]  # fmt: skip
    os.mkfifo(tmp_path / "pipe")
    for path in ("/shown/pipe", "/etc/passwd", "/shown/../x", "/shown/a", "b.txt"):
        with pytest.raises((OSError, ValueError)):
            files.write(path, "gone")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b.txt", "pipe"]
