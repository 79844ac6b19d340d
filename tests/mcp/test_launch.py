"""How a stdio server is started: what it sees, what it does not, and whose signals reach it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from karat.mcp import launch_command
from karat.records import McpServer
from karat.testing.mcp_server import stdio_server

LOOK = (
    "import json, os, signal, sys; "
    "print(json.dumps({'variables': dict(os.environ), 'cwd': os.getcwd(), 'python': sys.executable, "
    "'ids': [os.getpid(), os.getpgrp(), os.getsid(0)]}))"
)


def server(*args: str, command: str = "python", **env: str) -> McpServer:
    return McpServer(name="look", type="stdio", command=command, args=args, env=env)


def run(definition: McpServer, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    argv, env = launch_command(definition, folder=folder)
    return subprocess.run(argv, env=env | more, capture_output=True, text=True, timeout=30, check=False)


def test_a_server_sees_path_home_lang_and_the_files_env_and_nothing_else(tmp_path):
    seen = json.loads(run(server("-c", LOOK, INDEX="./docs"), tmp_path, PARENT_CANARY="c4nary-of-the-parent").stdout)
    assert set(seen["variables"]) - {"__CF_USER_TEXT_ENCODING", "LC_CTYPE"} == {"PATH", "HOME", "LANG", "INDEX"}
    assert seen["variables"]["INDEX"] == "./docs"
    assert seen["variables"]["PATH"] == os.environ["PATH"]


def test_the_files_env_may_replace_path_home_and_lang(tmp_path):
    definition = server("-c", LOOK, HOME="/nowhere", LANG="de_AT.UTF-8")
    seen = json.loads(run(definition, tmp_path).stdout)["variables"]
    assert (seen["HOME"], seen["LANG"]) == ("/nowhere", "de_AT.UTF-8")


def test_a_server_leads_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path):
    pid, group, session = json.loads(run(server("-c", LOOK), tmp_path).stdout)["ids"]
    assert pid == group == session != os.getsid(0)


@pytest.mark.parametrize("command", ["python", "python3"])
def test_python_means_karats_own_interpreter_and_the_server_runs_in_the_folder(tmp_path, command):
    seen = json.loads(run(server("-c", LOOK, command=command), tmp_path).stdout)
    assert (seen["python"], seen["cwd"]) == (sys.executable, str(tmp_path.resolve()))


@pytest.mark.parametrize("absolute", [False, True])
def test_a_server_runs_in_its_own_cwd(tmp_path, absolute):
    (tmp_path / "tools").mkdir()
    cwd = str(tmp_path / "tools") if absolute else "tools"
    seen = json.loads(run(msgspec.structs.replace(server("-c", LOOK), cwd=cwd), tmp_path).stdout)
    assert seen["cwd"] == str((tmp_path / "tools").resolve())


def test_a_program_of_the_folder_can_be_named_by_its_relative_path(tmp_path):
    program = tmp_path / "serve.sh"
    program.write_text("#!/bin/sh\necho served by $0\n")
    program.chmod(0o755)
    assert run(server(command="./serve.sh"), tmp_path).stdout == "served by ./serve.sh\n"


def test_modules_of_the_folder_do_not_shadow_what_the_start_needs(tmp_path):
    for name in ("json", "signal", "karat"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    argv, env = launch_command(server("-c", "print('up')"), folder=tmp_path)
    started = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert started.stdout == "up\n", started.stderr


def test_a_secret_stands_in_the_environment_and_not_in_the_arguments_of_the_start(tmp_path):
    argv, env = launch_command(server("-c", "pass", API_KEY="s3cret-of-the-server"), folder=tmp_path)
    assert "s3cret-of-the-server" not in " ".join(argv)
    assert "s3cret-of-the-server" in "".join(env.values())
    seen = json.loads(run(server("-c", LOOK, API_KEY="s3cret-of-the-server"), tmp_path).stdout)
    assert [name for name, value in seen["variables"].items() if "s3cret" in value] == ["API_KEY"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param("no-such-program", "'no-such-program': No such file or directory", id="not there"),
        pytest.param("./not-executable", "'./not-executable': Permission denied", id="not executable"),
        pytest.param("./no-program", "'./no-program': Exec format error", id="no program"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(tmp_path, command, reason):
    (tmp_path / "not-executable").write_text("")
    (tmp_path / "no-program").write_text("hello")
    (tmp_path / "no-program").chmod(0o755)
    ended = run(server(command=command), tmp_path)
    assert (ended.returncode, ended.stderr) == (127, f"karat: cannot start {reason}\n")


def test_a_missing_folder_is_named(tmp_path):
    ended = run(server("-c", "pass"), tmp_path / "absent")
    assert ended.returncode == 127
    assert (
        ended.stderr
        == f"karat: cannot start '{sys.executable}': in '{tmp_path / 'absent'}': No such file or directory\n"
    )


def test_signals_that_python_ignores_have_their_meaning_back(tmp_path):
    program = tmp_path / "pipe.sh"
    program.write_text("#!/bin/sh\nkill -PIPE $$\necho survived\n")
    program.chmod(0o755)
    assert run(server(command="./pipe.sh"), tmp_path).returncode == -signal.SIGPIPE


def test_called_by_hand_it_says_who_calls_it():
    ended = subprocess.run(
        [sys.executable, "-m", "karat.mcp.launch"], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 1
    assert "KARAT_MCP_LAUNCH is not set" in ended.stderr


HOLD = """
import asyncio, sys
from pathlib import Path
from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server

async def main():
    server = stdio_server("held", *sys.argv[1:])
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=(server,))
    async with Toolbox([server], redact=Redactor({}), folder=Path.cwd()) as toolbox, toolbox.open(condition) as tools:
        print((await tools.call("held", "environment", {})).result, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="a normal server"),
        pytest.param(
            ("--ignore-end",),
            id="a server that does not read its stdin",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death"),
        ),
    ],
)
def test_killing_karat_outright_ends_its_servers(tmp_path, ends, options):
    with subprocess.Popen([sys.executable, "-c", HOLD, *options], stdout=subprocess.PIPE, cwd=tmp_path) as karat:
        assert karat.stdout is not None
        pid = json.loads(karat.stdout.readline())["pid"]
        os.kill(karat.pid, signal.SIGKILL)
    assert ends(pid)


def test_nothing_of_karats_environment_reaches_a_server(tmp_path):
    env = os.environ | {"OPENAI_API_KEY": "c4nary-of-the-parent", "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, cwd=tmp_path, env=env) as karat:
        assert karat.stdout is not None
        seen = karat.stdout.readline().decode()
        karat.kill()
    assert "c4nary-of-the-parent" not in seen
    assert set(json.loads(seen)["variables"]) - {"__CF_USER_TEXT_ENCODING", "LC_CTYPE"} == {"PATH", "HOME", "LANG"}


@pytest.mark.slow
def test_an_interrupt_of_karats_group_leaves_the_servers_alone(tmp_path, toolbox, condition):
    """What a terminal does on Ctrl-C: SIGINT to the whole foreground group."""
    script = HOLD.replace("await asyncio.sleep(600)", "await pause(tools)").replace(
        "async def main",
        "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n\n"
        "async def pause(tools):\n"
        "    sys.stdin.readline()\n"
        "    print((await tools.call('held', 'echo', {'text': 'alive'})).result, flush=True)\n\nasync def main",
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    ) as karat:
        assert karat.stdout is not None
        karat.stdout.readline()
        os.killpg(karat.pid, signal.SIGINT)
        time.sleep(0.2)
        answer, _ = karat.communicate("\n", timeout=30)
    assert answer == "alive\n"


def test_a_start_costs_little_more_than_a_bare_interpreter(tmp_path):
    """15 ms and 9 ms were measured; the bound only catches a heavy import."""
    loaded = run(server("-c", "pass"), tmp_path)
    assert loaded.returncode == 0
    argv, env = launch_command(server("-c", "pass"), folder=tmp_path)
    argv = [*argv[:-2], "-X", "importtime", *argv[-2:]]
    listing = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=False).stderr
    names = {line.rpartition("|")[2].strip() for line in listing.splitlines()}
    assert "karat" in names
    assert not {"asyncio", "mcp", "msgspec", "pydantic", "importlib.metadata", "subprocess"} & names


def test_the_command_line_is_the_documented_one(tmp_path):
    argv, _ = launch_command(stdio_server(), folder=tmp_path)
    assert argv[0] == sys.executable
    assert argv[-2:] == ["-m", "karat.mcp.launch"]


def test_a_server_may_be_tied_to_the_process_that_starts_it(tmp_path):
    async def start() -> str:
        argv, env = launch_command(server("-c", "print('up')"), folder=tmp_path, parent=os.getpid())
        process = await asyncio.create_subprocess_exec(*argv, env=env, stdout=subprocess.PIPE)
        out, _ = await process.communicate()
        return out.decode()

    assert asyncio.run(start()) == "up\n"
