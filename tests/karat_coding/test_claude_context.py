"""Skills, plug-ins, instructions and tools of Claude Code: what reaches the model, and what does not.

Every canary is looked for in the requests that the scripted model received. That it would be found there is shown with
the same files where they are declared, or with Claude Code's own settings.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("claude_agent_sdk") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `claude`", allow_module_level=True)

from tests.karat_coding.claude_trials import Trials, part, write

from karat.errors import BadExperiment, ForeignTools, InfrastructureFault
from karat.records import Context, Usage
from karat.testing.models import Request, serve

Script = Callable[[Request], Any]


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


def canaries(requests: Iterable[Request]) -> set[str]:
    """The words CANARY-… in everything that was sent."""
    return set(re.findall(r"CANARY-\w+", json.dumps([[request.body, dict(request.headers)] for request in requests])))


def calls(*wanted: tuple[str, dict[str, Any]]) -> Script:
    """Calls these tools one after the other, and then says what each gave."""

    def answer(request: Request) -> Any:
        done = sum(len(message.tool_calls) for message in request.messages)
        if done < len(wanted):
            name, arguments = wanted[done]
            return {"tool_calls": [{"name": name, "arguments": arguments}]}
        return "done"

    return answer


def skill(folder: Path, name: str = "tables", *, head: str = "", more: str = "") -> Path:
    text = f"---\nname: {name}\ndescription: CANARY-description of {name}\n{head}---\nCANARY-body {more}\n"
    return write(folder, {"SKILL.md": text, "ref.md": "CANARY-reference", "CLAUDE.md": "CANARY-within"})


HOOK = {"type": "command", "command": "echo CANARY-hook"}
PLUGIN = {
    ".claude-plugin/plugin.json": '{"name": "style", "version": "1.0.0"}',
    "hooks/hooks.json": json.dumps({"hooks": {"SessionStart": [{"hooks": [HOOK]}]}}),
    "commands/greet.md": "---\ndescription: CANARY-command\n---\nCANARY-greeting",
    "agents/reviewer.md": "---\nname: reviewer\ndescription: CANARY-agent\n---\nreview",
    "skills/tables/SKILL.md": "---\nname: tables\ndescription: CANARY-skill\n---\nCANARY-body",
    ".mcp.json": json.dumps(
        {"mcpServers": {"my docs": {"command": sys.executable, "args": ["-m", "karat.testing.mcp_server"]}}}
    ),
}


@pytest.mark.slow
def test_a_skill_reaches_its_arm_alone_and_is_loaded_when_it_is_called(trials: Trials) -> None:
    folder = skill(trials.folder / "tables", more="[more](ref.md)")
    load = calls(("Skill", {"skill": "skills:tables"}))
    with serve(load) as server:
        trials.ask(server)
        assert not canaries(server.requests)
        assert all(not request.tools for request in server.requests)
    trials.context = Context(skills=(part(folder),))
    with serve(load) as server:
        (reply,) = trials.ask(server)
        first, second = server.requests
    assert [tool.name for tool in first.tools] == ["Skill"]
    assert canaries([first]) == {"CANARY-description"}
    assert "- skills:tables: CANARY-description of tables" in json.dumps(first.body)
    assert canaries([second]) == {"CANARY-description", "CANARY-body"}
    (call,) = reply.tool_calls
    assert (call.tool, call.server, call.input, call.error) == ("Skill", None, {"skill": "skills:tables"}, None)
    assert call.milliseconds is not None


@pytest.mark.slow
def test_the_request_differs_between_arms_in_what_is_declared_alone(trials: Trials) -> None:
    """An A/A comparison: the skill's own lines aside, both arms send the same."""
    sent = []
    for context in (Context(), Context(skills=(part(skill(trials.folder / "tables")),))):
        trials.context = context
        with serve(lambda _: "done") as server:
            trials.ask(server)
            (request,) = server.requests
        blocks = [block["text"] for block in request.body["messages"][0]["content"]]
        kept = [re.sub(r"/\S*karat-claude-\S*", "FOLDER", text) for text in blocks if "CANARY" not in text]
        kept = [text.replace(" - Additional working directories:\n  - FOLDER\n", "") for text in kept]
        body = {key: value for key, value in request.body.items() if key not in ("messages", "metadata", "tools")}
        body["system"] = [block for block in body["system"] if "billing-header" not in block["text"]]
        sent.append((kept, body))
    assert sent[0] == sent[1]


def test_a_skills_files_can_be_read_and_not_written(trials: Trials) -> None:
    folder = skill(trials.folder / "tables")
    trials.context = Context(skills=(part(folder),), tools=("Read", "Write"))

    def answer(request: Request) -> Any:
        base = re.search(r"Base directory for this skill: ([^\\]*)\\n", json.dumps(request.body))
        path = f"{base[1]}/ref.md" if base else ""
        steps = [("Skill", {"skill": "skills:tables"}), ("Read", {"file_path": path})]
        return calls(*steps, ("Write", {"file_path": path, "content": "x"}))(request)

    with serve(answer) as server:
        (reply,) = trials.ask(server)
    _, read, write_ = reply.tool_calls
    assert "CANARY-reference" in str(read.result)
    assert "sensitive file" in str(write_.error)
    assert (folder / "ref.md").read_text() == "CANARY-reference"
    assert "CANARY-within" not in json.dumps([request.body for request in server.requests])


@pytest.mark.slow
def test_a_plug_in_brings_its_hooks_skills_commands_and_servers(trials: Trials) -> None:
    trials.context = Context(plugins=(part(write(trials.folder / "style", PLUGIN)),))
    tool = "mcp__plugin_style_my_docs__echo"
    with serve(calls((tool, {"text": "hi"}), ("Skill", {"skill": "style:greet"}))) as server:
        (reply,) = trials.ask(server)
        first, last = server.requests[0], server.requests[-1]
    assert canaries([first]) == {"CANARY-hook", "CANARY-command", "CANARY-skill"}
    assert canaries([last]) == {"CANARY-hook", "CANARY-command", "CANARY-skill", "CANARY-greeting"}
    assert {tool, "Skill"} <= {offered.name for offered in first.tools}
    echo, greet = reply.tool_calls
    assert (echo.server, echo.tool, echo.result) == ("plugin:style:my docs", "echo", "hi")
    assert (greet.tool, greet.error) == ("Skill", None)


def test_hooks_of_a_plug_in_reach_the_model_without_any_tool(trials: Trials) -> None:
    trials.context = Context(
        plugins=(part(write(trials.folder / "style", {"hooks/hooks.json": PLUGIN["hooks/hooks.json"]})),)
    )
    with serve(lambda _: "done") as server:
        trials.ask(server)
        (request,) = server.requests
    assert request.tools == ()
    assert canaries([request]) == {"CANARY-hook"}


def test_a_plug_in_whose_server_does_not_start_asks_nothing(trials: Trials) -> None:
    broken = json.dumps({"mcpServers": {"docs": {"command": "false"}}})
    trials.context = Context(plugins=(part(write(trials.folder / "style", {".mcp.json": broken})),))
    with serve(lambda _: "done") as server, pytest.raises(InfrastructureFault, match="'plugin:style:docs'") as caught:
        trials.ask(server)
    assert caught.value.kind == "mcp_server_start"
    assert not server.requests


def test_a_plug_ins_agents_come_with_the_tool_task(trials: Trials) -> None:
    plugin = {name: text for name, text in PLUGIN.items() if name.startswith(("agents", ".claude-plugin"))}
    trials.context = Context(plugins=(part(write(trials.folder / "style", plugin)),), tools=("Task",))
    with serve(lambda _: "done") as server:
        trials.ask(server)
        assert canaries(server.requests) == {"CANARY-agent"}


def test_instructions_reach_the_model_as_a_claude_md_and_import_nothing(trials: Trials) -> None:
    write(trials.folder / "other", {"secret.md": "CANARY-import"})
    text = f"CANARY-instructions ä\n@{trials.folder}/other/secret.md\n@other/secret.md @../other/secret.md\n"
    trials.context = Context(instructions=part(write(trials.folder, {"AGENTS.md": text}) / "AGENTS.md"))
    with serve(lambda _: "done") as server:
        trials.ask(server)
        (request,) = server.requests
    assert canaries([request]) == {"CANARY-instructions"}
    (block,) = [one["text"] for one in request.body["messages"][0]["content"] if "CANARY" in one["text"]]
    assert "These instructions OVERRIDE any default behavior" in block
    assert text.strip() in block


def test_tools_are_those_of_the_list(trials: Trials) -> None:
    trials.context = Context(tools=("Read", "Bash"))
    with serve(calls(("Bash", {"command": "echo $((6*7))"}), ("Write", {"file_path": "x", "content": ""}))) as server:
        (reply,) = trials.ask(server)
        assert {tool.name for tool in server.requests[0].tools} == {"Read", "Bash"}
    bash, refused = reply.tool_calls
    assert (bash.tool, bash.server, bash.result) == ("Bash", None, "42")
    assert "No such tool" in str(refused.error)


def test_a_tool_that_does_not_exist_is_refused_with_the_nearest_name(trials: Trials) -> None:
    trials.context = Context(tools=("Raed",))
    with serve(lambda _: "done") as server, pytest.raises(BadExperiment) as caught:
        trials.ask(server)
    assert "conditions.a.tools: Claude Code has no tool 'Raed' (did you mean 'Read'?)" in str(caught.value)


SAYS_IT_RAN = """#!{python}
import json, sys
def say(value): print(json.dumps(value), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "control_request":
        answer = {{"subtype": "success", "request_id": asked["request_id"], "response": {{"mcpServers": []}}}}
        say({{"type": "control_response", "response": answer}})
    else:
        use = {{"type": "tool_use", "id": "1", "name": "Bash", "input": {{}}}}
        done = {{"type": "tool_result", "tool_use_id": "1", "content": "ran"}}
        say({{"type": "system", "subtype": "init", "tools": [], "mcp_servers": [], "session_id": "s"}})
        say({{"type": "assistant", "message": {{"model": "m", "content": [use]}}, "session_id": "s"}})
        say({{"type": "user", "message": {{"role": "user", "content": [done]}}, "session_id": "s"}})
"""


def test_a_tool_that_was_not_offered_and_ran_all_the_same_stops_the_run(trials: Trials) -> None:
    program = write(trials.folder, {"program": SAYS_IT_RAN.format(python=sys.executable)}) / "program"
    program.chmod(0o755)
    with serve() as server, pytest.raises(ForeignTools, match="Bash"):
        trials.ask(server, program="./program")


FAULTS: dict[str, tuple[dict[str, str], str, str]] = {
    "hooks in a skill": (
        {"tables/SKILL.md": "---\nname: tables\nhooks: {PreToolUse: []}\n---\n"},
        "skills",
        "the SKILL.md of 'tables' has hooks",
    ),
    "hooks that cannot be read": ({"tables/SKILL.md": "---\nname: [\nhooks:\n---\n"}, "skills", "has hooks"),
    "a name with a space": ({"my tables/SKILL.md": "x"}, "skills", "called 'my tables': rename its folder"),
    "not text": ({"tables/SKILL.md": "\udcff"}, "skills", "'tables': SKILL.md is not UTF-8"),
    "a manifest that is none": ({"style/.claude-plugin/plugin.json": "["}, "plugins", "'style': .claude-plugin/plug"),
    "a manifest without its braces": ({"style/.claude-plugin/plugin.json": "[]"}, "plugins", "must hold an object"),
    "a plug-in with two names": (
        {"style/.claude-plugin/plugin.json": '{"name": "x"}'},
        "plugins",
        "'style': its manifest gives it another name, 'x': rename the folder",
    ),
    "a plug-in whose name has a space": ({"a b/hooks/hooks.json": "{}"}, "plugins", "cannot be called 'a b' here"),
    "a skill for a plug-in": (
        {"style/SKILL.md": "x"},
        "plugins",
        "'style' is not a plug-in: it has none of .claude-pl",
    ),
    "karat's own name": ({"skills/commands/x.md": "x"}, "plugins", "cannot be called 'skills' here"),
    "servers elsewhere": (
        {"style/.claude-plugin/plugin.json": '{"mcpServers": "../x.json"}'},
        "plugins",
        "'style': ../x.json leads out of its folder",
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_what_claude_code_cannot_be_given_is_refused_before_it_starts(trials: Trials, what: str) -> None:
    files, key, message = FAULTS[what]
    for name, text in files.items():
        path = trials.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    folder = part(trials.folder / next(iter(files)).partition("/")[0])
    trials.context = Context(skills=(folder,)) if key == "skills" else Context(plugins=(folder,))
    with serve() as server, pytest.raises(BadExperiment) as caught:
        trials.ask(server)
    assert f"conditions.a.{key}: " in str(caught.value)
    assert message in str(caught.value)
    assert not server.requests


def test_a_skill_that_claude_code_does_not_find_is_refused_before_it_is_asked(trials: Trials) -> None:
    plugin = {"skills/tables/SKILL.md": "x", ".claude-plugin/plugin.json": '{"name": "p", "skills": "./more"}'}
    write(trials.folder / "p", {**plugin, "more/other/SKILL.md": "---\nname: other\ndescription: d\n---\n"})
    trials.context = Context(plugins=(part(trials.folder / "p"),))
    with serve() as server, pytest.raises(BadExperiment, match=r"read skills or plug-ins differently: p:other"):
        trials.ask(server)
    assert not server.requests


def test_tokens_and_dollars_of_subagents_are_counted(trials: Trials) -> None:
    trials.context = Context(tools=("Task", "Bash"))

    def answer(request: Request) -> Any:
        below = "below" in request.question
        usage = {"input": 1000, "output": 100} if below else {"input": 10, "output": 1}
        if request.tool_results:
            return {"text": "done", "usage": usage}
        task = {"description": "d", "prompt": "below", "subagent_type": "general-purpose"}
        name, arguments = ("Bash", {"command": "echo in it"}) if below else ("Agent", task)
        return {"tool_calls": [{"name": name, "arguments": arguments}], "usage": usage}

    with serve(answer) as server:
        replies = trials.ask(server, "one", "two")
        assert len(server.requests) == 8
    for reply in replies:
        assert reply.usage == Usage(input_tokens=2020, output_tokens=202)
        assert reply.dollars == pytest.approx(2020 * 3e-6 + 202 * 15e-6)
        assert [call.tool for call in reply.tool_calls] == ["Agent", "Bash"]
        assert (reply.text, reply.responses) == ("done", None)


OUTSIDE: dict[str, tuple[str, dict[str, str]]] = {
    "read a file": ("Read", {"file_path": "{out}/secret.txt"}),
    "read by a way around": ("Read", {"file_path": "{in}/../../../out/secret.txt"}),
    "read the system's": ("Read", {"file_path": "/etc/passwd"}),
    "list a folder": ("Glob", {"pattern": "*", "path": "{out}"}),
    "search a folder": ("Grep", {"pattern": "CANARY", "path": "{out}", "output_mode": "content"}),
    "write a file": ("Write", {"file_path": "{out}/new.txt", "content": "x"}),
    "write into karat's own folder of the trial": ("Write", {"file_path": "{in}/../prompt.txt", "content": "x"}),
    "read its keys": ("Read", {"file_path": "{in}/../launch.json"}),
    "write settings": ("Write", {"file_path": "{in}/.claude/settings.json", "content": "{{}}"}),
}
INSIDE: dict[str, tuple[str, dict[str, str]]] = {
    "write": ("Write", {"file_path": "{in}/a.txt", "content": "CANARY-inside"}),
    "read": ("Read", {"file_path": "{in}/a.txt"}),
    "edit": ("Edit", {"file_path": "{in}/a.txt", "old_string": "inside", "new_string": "edited"}),
    "list": ("Glob", {"pattern": "*"}),
}


@pytest.mark.slow
def test_file_tools_reach_nothing_outside_the_working_directory(trials: Trials) -> None:
    """Bash, allowed as well, says where that is; it is not confined, and reads what the others cannot."""
    write(trials.folder / "out", {"secret.txt": "CANARY-secret"})
    trials.context = Context(tools=("Read", "Write", "Edit", "Glob", "Grep", "Bash"))
    steps = [*INSIDE.values(), *OUTSIDE.values()]

    def answer(request: Request) -> Any:
        work = next((message.text.split()[0] for message in request.messages if message.role == "tool"), "")
        places = {"in": work, "out": trials.folder / "out"}
        filled = [(name, {key: text.format(**places) for key, text in given.items()}) for name, given in steps]
        secret = ("Bash", {"command": f"cat {trials.folder}/out/secret.txt"})
        return calls(("Bash", {"command": "pwd"}), *filled, secret)(request)

    with serve(answer) as server:
        (reply,) = trials.ask(server)
    _, *confined, last = reply.tool_calls
    errors = dict(zip([*INSIDE, *OUTSIDE], (call.error for call in confined), strict=True))
    assert {name for name, error in errors.items() if error is not None} == set(OUTSIDE)
    assert sorted(os.listdir(trials.folder / "out")) == ["secret.txt"]
    assert last.result == "CANARY-secret"
