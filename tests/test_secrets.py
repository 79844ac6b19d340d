"""A canary in every secret position, in the parent's environment, in tool results and in errors.

It must reach its server, and stand in no file, no output and no stranger's environment.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from karat.journal import RunFolder
from karat.records import Answer, Failure
from karat.testing.mcp_server import serving

pytestmark = pytest.mark.slow

HEADER, VARIABLE, QUERY, NAMED, PARENT = (
    "hdr-7Q+canary/1==",
    'env-"quoted"-cänary-2',
    "qry-canary-3?&=",
    "nmd-canary-4\\n",
    "prt-canary-5",
)
SECRETS = {"HEADER_KEY": HEADER, "VARIABLE_KEY": VARIABLE, "QUERY_KEY": QUERY, "NAMED": NAMED}

# The worst agent there is: says on stdout, or on stderr, everything it was told and everything it sees.
TELLTALE = """
import json, os, sys
task = sys.stdin.read()
everything = task + json.dumps(dict(os.environ))
if '"condition":"fails"' in task:
    sys.exit(everything)
print("everything: " + everything)
"""

EXPERIMENT = """
name: canaries
dataset: {{path: questions.jsonl}}
agent: {{type: command, command: [python, telltale.py], env: {{AGENT_KEY: "${{NAMED}}"}}}}
mcp_servers:
  remote: {{type: http, url: "{url}?api_key=${{QUERY_KEY}}", headers: {{Authorization: "Bearer ${{HEADER_KEY}}"}}}}
  gone: {{type: http, url: "http://127.0.0.1:9/mcp?token=${{QUERY_KEY}}", headers: {{X-Api-Key: "${{HEADER_KEY}}"}}}}
  local:
    type: stdio
    command: python
    args: [-m, karat.testing.mcp_server]
    env: {{SERVER_TOKEN: "${{VARIABLE_KEY}}", REPS: "${{REPS}}"}}
conditions:
  tells: {{system_prompt: "Say all.", mcp_servers: [remote, local]}}
  fails: {{system_prompt: "Say all.", mcp_servers: [remote, local]}}
  down: {{system_prompt: "Say all.", mcp_servers: [gone]}}
  asks: {{system_prompt: "Say all.", mcp_servers: [local], agent: {{command: [python, asks.py]}}}}
scorers: [contains]
secrets: [NAMED]
execution: {{num_repetitions: "${{REPS}}", retry: {{max_attempts: 1}}, max_failures: 100}}
"""

# An agent that opens the server that it was told of, and tells what the server sees.
ASKS = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters, stdio_client
task = json.load(sys.stdin)
server = task["mcp_servers"]["local"]
async def go():
    parameters = StdioServerParameters(command=server["command"], args=server["args"], env=server["env"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        result = await session.call_tool("environment", {})
        print("the server sees " + result.content[0].text)
asyncio.run(go())
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run folder, and everything that was printed."""
    folder = tmp_path_factory.mktemp("canaries")
    (folder / "questions.jsonl").write_text(json.dumps({"question": "What do you see?", "answer": "everything"}) + "\n")
    (folder / "telltale.py").write_text(TELLTALE)
    (folder / "asks.py").write_text(ASKS)
    environment = {**os.environ, **SECRETS, "PARENT_CANARY": PARENT, "REPS": "3"}
    printed = ""
    with serving("http", "--require-header", f"authorization: Bearer {HEADER}") as url:
        (folder / "experiment.yaml").write_text(EXPERIMENT.format(url=url))
        for command in (["check", "experiment.yaml"], ["run", "experiment.yaml", "--events", "--json"]):
            done = subprocess.run(
                [sys.executable, "-m", "karat", *command],
                cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            printed += done.stdout + done.stderr
    (run,) = (folder / "results").iterdir()
    for report in ("terminal", "json", "csv"):
        command = [sys.executable, "-m", "karat", "report", str(run), "--to", report]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        printed += done.stdout + done.stderr
    return run, printed


def spellings(secret: str) -> set[str]:
    raw = secret.encode()
    escaped = json.dumps(secret)[1:-1]
    return {
        secret, escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret), quote(secret, safe=""),
        base64.b64encode(raw).decode(), base64.b64encode(b"x:" + raw).decode()[4:-4],
    }  # fmt: skip


def test_no_canary_stands_in_any_file_of_the_run(told: tuple[Path, str]) -> None:
    run, _ = told
    files = [path for path in run.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"experiment.yaml", "run.json", "samples.jsonl", "journal.jsonl"}
    for path in files:
        text = path.read_text()
        for name, secret in {**SECRETS, "PARENT_CANARY": PARENT}.items():
            assert not [form for form in spellings(secret) if form in text], f"{name} stands in {path.name}"


def test_no_canary_was_printed(told: tuple[Path, str]) -> None:
    _, printed = told
    for name, secret in {**SECRETS, "PARENT_CANARY": PARENT}.items():
        assert not [form for form in spellings(secret) if form in printed], f"{name} was printed"
    assert "Traceback" not in printed


def test_each_canary_reached_where_it_should(told: tuple[Path, str]) -> None:
    folder = RunFolder.open(told[0])
    answers = list(folder.events_of(Answer))
    said = {one.condition: one.text for one in answers if one.repetition == 0}
    # In the journal the values are masked by name, so a mask shows that the value was there.
    for name in SECRETS:
        assert f"${{{name}}}" in said["tells"]
    assert '"SERVER_TOKEN": "${VARIABLE_KEY}"' in said["asks"]
    failures = {one.condition: one for one in folder.events_of(Failure)}
    assert "${NAMED}" in failures["fails"].message
    assert failures["down"].cls == "infrastructure"
    # The remote server refuses without its header: that these trials ran shows that it came.
    assert [one.condition for one in answers].count("tells") == 3


def test_a_short_value_is_never_masked(told: tuple[Path, str]) -> None:
    run, _ = told
    assert "${REPS}" not in (run / "journal.jsonl").read_text()
    info = RunFolder.open(run).info
    assert info.plan.repetitions == 3
    assert info.experiment["execution.num_repetitions"].value in (3, "${REPS}")


def test_a_stranger_sees_path_home_lang_and_its_own(told: tuple[Path, str]) -> None:
    answers = RunFolder.open(told[0]).events_of(Answer)
    seen = next(one.text for one in answers if one.condition == "asks").removeprefix("the server sees ")
    assert set(json.loads(seen)["variables"]) - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "SERVER_TOKEN", "REPS"}
