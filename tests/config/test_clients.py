"""MCP servers from the files of other clients: what is taken, what is translated, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from karat import Experiment
from karat.config.schema import schema_of
from karat.documents.nodes import plain
from karat.documents.reader import parse
from karat.errors import BadExperiment

Read = Callable[..., Experiment]

DOCS = {"command": "python", "args": ["server.py"]}
START = "dataset: {path: questions.jsonl}\nagent: {type: floor}\nscorers: [equals]\n"


def written(folder: Path, content: object, name: str = ".mcp.json") -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")


def text(servers: str = "{file: .mcp.json}", used: str = "[docs]") -> str:
    return f"{START}mcp_servers: {servers}\nconditions: {{a: {{mcp_servers: {used}}}}}\n"


def definitions(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Name → what is not a default."""
    found = {}
    for server in experiment.servers:
        default = type(server)(name=server.name, type="sse", digest=server.digest)
        values, defaults = json.loads(json.dumps([msgspec.structs.asdict(one) for one in (server, default)]))
        found[server.name] = {key: value for key, value in values.items() if value != defaults[key]}
    return found


def said(read: Read, experiment: str, **arguments: Any) -> str:
    with pytest.raises(BadExperiment) as caught:
        read(experiment, **arguments)
    return str(caught.value)


STDIO = {"type": "stdio", **DOCS}


@pytest.mark.parametrize(
    "content",
    [
        {"mcpServers": {"docs": DOCS}},
        {"servers": {"docs": {"type": "stdio", **DOCS}}, "inputs": []},
        {"docs": DOCS, "$schema": "https://schema.example"},
        {"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"docs": DOCS}}},
        {"mcp": {"docs": {"type": "local", "command": ["python", "server.py"], "environment": {}, "enabled": True}}},
        {"docs": {"command": ["python"], "args": ["server.py"]}},
        {"context_servers": {"docs": {"source": "custom", **DOCS}}},
        (
            '\ufeff// ours\n{\n\t"servers": { /* one\n of two */\n\t\t"docs": {\n\t\t\t"command": "python",\n'
            '\t\t\t"args": ["server.py",], // the last one\n\t\t},\n\t},\n}\n'
        ),
    ],
    ids=[
        "mcpServers",
        "servers",
        "bare",
        "VS Code",
        "opencode",
        "a list beside args",
        "Zed",
        "comments, tabs and trailing commas",
    ],
)
def test_each_format_gives_the_servers_as_if_written_here(folder: Path, read: Read, content: object) -> None:
    written(folder, content)
    found = read(text())
    assert definitions(found) == {"docs": STDIO}
    assert found.warnings == ()
    here = read(text("{docs: {command: python, args: [server.py]}}"))
    assert found.conditions[0].digest == here.conditions[0].digest


def test_comment_signs_commas_and_tabs_inside_texts_stay(folder: Path, read: Read) -> None:
    args = ["http://a/b", "/* c */", ",]", 'say \\"hi\\" //', "a\\tb"]
    lines = ", ".join(f'"{arg}"' for arg in args)
    written(folder, f'{{"mcpServers": {{"docs": {{"command": "x", "args": [{lines}]}}}}}}')
    assert read(text()).servers[0].args == ("http://a/b", "/* c */", ",]", 'say "hi" //', "a\tb")


def test_what_clients_note_for_themselves_is_ignored(folder: Path, read: Read) -> None:
    own = {
        "disabled": False,
        "alwaysAllow": [],
        "autoApprove": ["search"],
        "timeout": 60,
        "description": "d",
        "name": "n",
        "gallery": "g",
        "version": "1",
    }
    written(
        folder,
        {
            "mcpServers": {
                "docs": {**DOCS, **own, "args": ["--port", 80], "env": {"PORT": 8080, "LOUD": True}, "headers": {}},
                "web": {"type": "streamable-http", "url": "http://127.0.0.1:9/mcp", "env": {}, "headers": {"X-N": 1}},
            }
        },
    )
    found = read(text(used="[docs, web]"))
    assert definitions(found) == {
        "docs": {**STDIO, "args": ["--port", "80"], "env": {"PORT": "8080", "LOUD": "true"}},
        "web": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-N": "1"}},
    }
    assert found.warnings == ()


def test_servers_that_are_switched_off_and_filters_of_tools_are_said(folder: Path, read: Read) -> None:
    off = {"old": {**DOCS, "disabled": True}, "older": {**DOCS, "enabled": False}}
    docs = {**DOCS, "dev": {}, "enabled": True, "tools": ["*"], "excludeTools": ["delete"]}
    written(folder, {"mcpServers": {"docs": docs, **off}})
    found = read(text())
    assert list(definitions(found)) == ["docs"]
    assert found.warnings == (
        (
            "mcp_servers.docs (line 4, column 15): karat does not apply `excludeTools`: agents see every tool "
            "(.mcp.json, line 3)"
        ),
        "mcp_servers.old (line 4, column 1): is disabled in '.mcp.json', so it is left out",
        "mcp_servers.older (line 4, column 1): is disabled in '.mcp.json', so it is left out",
    )


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"type": "local", **DOCS}, STDIO),
        ({"serverUrl": "http://a/mcp"}, {"type": "http", "url": "http://a/mcp"}),
        ({"httpUrl": "http://a/sse"}, {"type": "http", "url": "http://a/sse"}),
        ({"httpUrl": "http://a/mcp", "url": "http://a/sse"}, {"type": "http", "url": "http://a/mcp"}),
        ({"url": "http://a/sse"}, {"url": "http://a/sse"}),
        ({"url": "http://a/sse", "type": "streamableHttp"}, {"type": "http", "url": "http://a/sse"}),
        ({"url": "http://a/mcp", "transport": "sse"}, {"url": "http://a/mcp"}),
        ({"url": "http://a/sse", "transport": {"type": "http"}}, {"type": "http", "url": "http://a/sse"}),
        ({**DOCS, "env": {"A": None, "B": "1"}}, {**STDIO, "env": {"B": "1"}}),
    ],
)
def test_each_clients_names_of_keys_and_types_are_known(
    folder: Path, read: Read, server: dict[str, Any], expected: dict[str, Any]
) -> None:
    written(folder, {"mcpServers": {"docs": server}})
    found = read(text())
    assert definitions(found)["docs"] == expected
    assert found.servers[0].type == expected.get("type", "sse")


def test_only_takes_some_and_servers_may_stand_beside_the_file(folder: Path, read: Read) -> None:
    written(folder, {"mcpServers": {"docs": DOCS, "other": {"command": "${GONE}"}}})
    found = read(text("{file: .mcp.json, only: [docs], mine: {command: me}}", "[docs, mine]"))
    assert definitions(found) == {"docs": STDIO, "mine": {"type": "stdio", "command": "me"}}


def test_servers_may_be_called_file_and_only(read: Read) -> None:
    found = read(text("{file: {command: a}, only: {command: b}}", "[file, only]"))
    assert {name: one["command"] for name, one in definitions(found).items()} == {"file": "a", "only": "b"}


def test_servers_that_no_condition_uses_are_no_warnings_in_a_file(folder: Path, read: Read) -> None:
    written(folder, {"mcpServers": {"docs": DOCS, "other": DOCS}})
    assert read(text("{file: .mcp.json, mine: {command: me}}")).warnings == (
        "mcp_servers.mine (line 4, column 32): no condition uses it",
    )


def test_variables_are_read_as_each_client_writes_them(folder: Path, read: Read) -> None:
    env = {"A": "${fromA}", "B": "b"}
    args = ["${A}", "${env:B}", "${B:-no}", "${C:-yes}", "${C:-}", "$${A}", "${workspaceFolder}/x", "$A"]
    args += ["${CLAUDE_PLUGIN_ROOT}${/}y", "${workspaceFolderBasename}"]
    written(folder, {"mcpServers": {"docs": {"command": "x", "args": args}}})
    assert read(text(), env=env).servers[0].args == (
        *("${fromA}", "b", "b", "yes", "", "${A}", f"{folder}/x", "$A"),
        *(f"{folder}/y", folder.name),
    )


def test_secrets_and_the_place_of_the_project_are_kept_by_name(folder: Path, read: Read) -> None:
    env = {"TOKEN": "canary-token", "KEY": "canary-key", "MODE": "fast"}
    servers = {
        "docs": {"command": "x", "args": ["${workspaceFolder}/${MODE}", "${env:KEY}"], "env": {"T": "${TOKEN:-}"}},
        "web": {"url": "http://h/mcp?key=${KEY:-none}", "headers": {"X-T": "Bearer ${env:TOKEN}"}},
    }
    written(folder, {"mcpServers": servers})
    found = read(text(used="[docs, web]"), env=env)
    kept = json.dumps({place: choice.value for place, choice in found.resolved.items()})
    assert found.servers[0].env == {"T": "canary-token"}
    assert found.secrets == {"TOKEN": "canary-token", "KEY": "canary-key"}
    assert "canary" not in kept
    assert str(folder) not in kept
    assert found.resolved["mcp_servers.docs.args"].value == ["${workspaceFolder}/fast", "${KEY}"]
    assert found.resolved["mcp_servers.docs.env.T"].value == "${TOKEN}"
    assert found.resolved["mcp_servers.web.headers.X-T"].value == "Bearer ${TOKEN}"
    assert found.resolved["mcp_servers.web.url"].value == "http://h/mcp?key=${KEY}"


def test_what_a_client_asks_a_person_is_a_secret_variable(folder: Path, read: Read) -> None:
    written(folder, {"servers": {"docs": {"command": "x", "args": ["--pat", "${input:hub-pat}"]}}})
    found = read(text(), env={"HUB_PAT": "canary-pat"})
    assert found.servers[0].args == ("--pat", "canary-pat")
    assert found.secrets == {"HUB_PAT": "canary-pat"}
    assert found.resolved["mcp_servers.docs.args"].value == ["--pat", "${HUB_PAT}"]


@pytest.mark.parametrize(
    ("name", "own", "cwd"),
    [
        (".mcp.json", None, None),
        (".mcp.json", ".", None),
        (".mcp.json", "tools", "tools"),
        (".vscode/mcp.json", None, None),
        (".cursor/mcp.json", "tools", "tools"),
        ("app/.mcp.json", None, "app"),
        ("app/.mcp.json", "tools", "app/tools"),
        ("app/.mcp.json", "..", None),
        ("app/.mcp.json", "/srv", "/srv"),
    ],
)
def test_programs_start_in_the_folder_of_the_files_project(
    folder: Path, read: Read, name: str, own: str | None, cwd: str | None
) -> None:
    written(folder, {"mcpServers": {"docs": DOCS | ({"cwd": own} if own else {})}}, name)
    assert read(text(f"{{file: {name}}}")).servers[0].cwd == cwd


def test_the_project_of_a_file_in_a_clients_folder_is_above_it(folder: Path, read: Read) -> None:
    written(folder, {"servers": {"docs": {"command": "x", "args": ["${workspaceFolder}"]}}}, ".vscode/mcp.json")
    assert read(text("{file: .vscode/mcp.json}")).servers[0].args == (str(folder),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"servers": {"docs": {"url": "http://h", "headers": {"X-K": "Bearer ${input:git-hub}"}}}},
            "${input:git-hub} asks for a value, which a run cannot do; set the environment variable GIT_HUB",
        ),
        (
            {"servers": {"docs": {**DOCS, "env": {"T": "${GONE}"}}}},
            "GONE is not set; set it, or name a file with --env-file (.mcp.json, line 9)",
        ),
        ({"docs": {**DOCS, "args": ["${A:-${B}}"]}}, "a `${…}` holds a brace or does not end"),
        ({"docs": {**DOCS, "args": ["${config:x}"]}}, "${config:x} is not an environment variable"),
        ({"docs": {**DOCS, "envFile": ".env"}}, "mcp_servers.docs.envFile (line 4, column 15): is not read: write"),
        (
            {"docs": {**DOCS, "env": {"API_KEY": "canary"}}},
            "a secret must not be in the file; write `${API_KEY}` and set that environment variable (.mcp.json, line",
        ),
        ({"docs": {**DOCS, "env": {"API_KEY": "${X:-canary}"}}}, "a secret must not be in the file"),
        ({"docs": {**DOCS, "env": {"API_KEY": "YOUR_API_KEY"}}}, "write `${API_KEY}` and set that"),
        (
            {"docs": {**DOCS, "evn": {}}},
            "mcp_servers.docs.evn (line 4, column 15): no such key of a server (did you mean 'env'?); remove it, or",
        ),
        (
            {"mcpServers": {"docs": DOCS}, "servers": {"docs": DOCS}},
            "'.mcp.json' holds both 'mcpServers' and 'servers'; remove one",
        ),
        (
            {"mcpServers": {"docs": {"type": "ws", "url": "x"}}},
            "must be stdio, http or sse, got 'ws' (.mcp.json, line 4)",
        ),
        (
            {"mcpServers": {"docs": 5}},
            "mcp_servers.docs (line 4, column 15): must be a mapping, got 5 (.mcp.json, line",
        ),
        ({"tools": [DOCS]}, "'.mcp.json' holds no servers, neither under `mcpServers` or `servers` nor at its top"),
        ({"mcpServers": {}}, "'.mcp.json' holds no servers"),
        ("[]", "mcp_servers.file (line 4, column 15): '.mcp.json' is not a JSON object"),
        ("{", "'.mcp.json', line 2 is not JSON: "),
        ('{"a": 1,\n"a": 2}', "'.mcp.json', line 2 is not JSON: the key 'a' appears twice"),
        ('{"a": ' * 200, "'.mcp.json', line 1 is not JSON: is nested deeper than 100 levels"),
        ("{/*" + "/*" * 100_000, "'.mcp.json', line 1 is not JSON: "),
        ({"docs": {**DOCS, "disabled": True}}, "no server is called 'docs'; its file switches it off"),
    ],
)
def test_what_cannot_be_taken_is_a_fault_with_its_place_in_both_files(
    folder: Path, read: Read, content: object, expected: str
) -> None:
    written(folder, content)
    message = said(read, text())
    assert expected in message
    assert "1 fault" in message
    assert "canary" not in message


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("{file: gone.json}", "mcp_servers.file (line 4, column 15): there is no file 'gone.json'"),
        ("{file: '${GONE}'}", "mcp_servers.file (line 4, column 15): the environment variable GONE is not set"),
        ("{file: .}", "mcp_servers.file (line 4, column 15): '.' cannot be read: "),
        ("{file: /dev/zero}", "'/dev/zero' cannot be read: "),
        ("{file: .mcp.json, only: [dosc]}", "'.mcp.json' has no server 'dosc' (did you mean 'docs'?)"),
        (
            "{file: .mcp.json, only: docs}",
            "mcp_servers.only (line 4, column 32): must be a list of servers' names, e.g.",
        ),
        (
            "{file: .mcp.json, docs: {command: x}}",
            "mcp_servers.docs (line 4, column 32): '.mcp.json' has a server of this",
        ),
        ("{only: [docs], docs: {command: x}}", "mcp_servers.only (line 4, column 15): must be a mapping"),
    ],
)
def test_a_wrong_reference_is_one_fault(folder: Path, read: Read, servers: str, expected: str) -> None:
    written(folder, {"mcpServers": {"docs": DOCS}})
    message = said(read, text(servers))
    assert expected in message
    assert "1 fault" in message


def test_the_file_can_be_set_on_the_command_line_and_from_python(folder: Path, read: Read) -> None:
    written(folder, {"mcpServers": {"docs": DOCS}}, "mine.json")
    assert definitions(read(text("{}"), settings=["mcp_servers.file=mine.json"])) == {"docs": STDIO}
    assert "--set mcp_servers.file: there is no file" in said(read, text(), settings=["mcp_servers.file=gone.json"])
    made = Experiment(
        dataset={"path": "questions.jsonl"},
        agent={"type": "floor"},
        scorers=["equals"],
        mcp_servers={"file": Path("mine.json")},
        conditions={"a": {"mcp_servers": ["docs"]}},
        folder=folder,
    )
    assert definitions(made) == {"docs": STDIO}


@pytest.mark.parametrize(
    ("servers", "right"),
    [
        ("{file: .mcp.json}", True),
        ("{file: .mcp.json, only: [docs], mine: {command: x}}", True),
        ("{file: {command: x}, only: {url: 'http://h'}}", True),
        ("{file: 5}", False),
        ("{file: .mcp.json, only: docs}", False),
    ],
)
def test_the_schema_knows_the_reference(servers: str, right: bool) -> None:
    root = parse(text(servers).encode()).root
    assert root is not None
    assert jsonschema.Draft202012Validator(schema_of("experiment")).is_valid(plain(root)) is right
