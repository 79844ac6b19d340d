"""karat as the client of a scenario: one experiment of the agent `mcp` that calls what the server lists.

The suite gives the server's URL as the last argument, and the scenario in variables. `login.txt` and `run.txt` in
the folder OUT hold what karat printed. Exits with 0 always: the suite judges what the server received.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from karat.mcp import Toolbox, ToolList
from karat.records import McpServer
from karat.redact import Redactor

URL = sys.argv[-1]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
HOME = Path(os.environ["OUT"]).resolve() / SCENARIO.replace("/", "_")
KARAT = [sys.executable, "-m", "karat"]
# The suite waits for a minute.
PINNED = {"protocol": VERSION} if VERSION else {}
SERVER = {"url": URL, "init_timeout_seconds": 15, "call_timeout_seconds": 15, **PINNED}
ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}, "valid_tool": {"region": "x"}}
LOGIN_SECONDS = 10


def requests() -> list[dict[str, object]]:
    """What to call: as the scenario says, else everything that the server lists."""
    if wanted := CONTEXT.get("toolCalls"):
        return [{"tool": call["name"], "arguments": call.get("arguments") or {}} for call in wanted]
    if SCENARIO.startswith("auth/"):
        return [{"tool": "test-tool", "arguments": {}}]
    tools = asyncio.run(listed())
    schemas = {tool.name: tool.input_schema for tool in tools}
    arguments = {**ARGUMENTS, "json_schema_echo": {"schema": schemas.get("json_schema_2020_12_tool")}}
    rows = [{"tool": name, "arguments": arguments.get(name, {})} for name in schemas]
    if SCENARIO == "http-standard-headers":
        rows += [{"resource": "file:///path/to/file%20name.txt"}, {"prompt": "test_prompt"}]
    return rows or [{"tool": "none", "arguments": {}}]


async def listed() -> tuple:
    server = McpServer(name="s", type="http", url=URL, **PINNED)
    async with Toolbox((server,), redact=Redactor({}), folder=HOME) as toolbox:
        offer = (await toolbox.preflight())["s"]
        return offer.tools if isinstance(offer, ToolList) else ()


def authentication(env: dict[str, str]) -> dict[str, object]:
    """`auth` of the server. Secrets go into the environment."""
    if SCENARIO == "auth/client-credentials-basic":
        env["SECRET"] = CONTEXT["client_secret"]
        own = {"type": "client_credentials", "client_secret_env": "SECRET"}
    elif SCENARIO == "auth/client-credentials-jwt":
        env["KEY"] = CONTEXT["private_key_pem"]
        algorithm = CONTEXT.get("signing_algorithm", "ES256")
        own = {"type": "private_key_jwt", "private_key_env": "KEY", "algorithm": algorithm}
    else:
        auth: dict[str, object] = {"type": "login"}
        if CONTEXT.get("client_id"):
            auth["client_id"] = CONTEXT["client_id"]
        if CONTEXT.get("client_secret"):
            env["SECRET"] = CONTEXT["client_secret"]
            auth["client_secret_env"] = "SECRET"
        return auth
    # The issuer, as a user reads it in the server's metadata.
    parts = urlsplit(URL)
    where = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    issuer = httpx2.get(where).json()["authorization_servers"][0]
    return {**own, "client_id": CONTEXT["client_id"], "issuer": issuer}


def log_in(env: dict[str, str]) -> None:
    """`karat check --login`, with a browser that follows every address it shows."""
    out = HOME / "login.txt"
    argv = [*KARAT, "login", "experiment.yaml", "s", "--no-browser", "--seconds", str(LOGIN_SECONDS)]
    seen: set[str] = set()
    with out.open("w") as stream, subprocess.Popen(argv, cwd=HOME, env=env, stdout=stream, stderr=stream) as process:
        while process.poll() is None:
            for address in set(re.findall(r"http://\S+/authorize\S*", out.read_text())) - seen:
                seen.add(address)
                httpx2.get(address, follow_redirects=True)
            time.sleep(0.1)


def main() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    env = {**os.environ, "XDG_STATE_HOME": str(HOME / "state"), "NO_COLOR": "1"}
    rows = [{"question": str(number), **row} for number, row in enumerate(requests())]
    (HOME / "calls.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    auth = {"auth": authentication(env)} if SCENARIO.startswith("auth/") else {}
    elicit = {"elicitation-sep1034-client-defaults": "accept"}.get(SCENARIO)
    if SCENARIO.startswith("sep-2322"):
        elicit = {"accept": {"confirmed": True}}
    condition = {"mcp_servers": ["s"]} | ({"elicit": elicit} if elicit is not None else {})
    experiment = {
        "name": "conformance",
        "dataset": {"path": "calls.jsonl"},
        "agent": {"type": "mcp"},
        "execution": {"num_repetitions": 1},
        "scorers": [{"mcp_result": {"error": False}}],
        "mcp_servers": {"s": SERVER | auth},
        "conditions": {"c": condition},
    }
    (HOME / "experiment.yaml").write_text(json.dumps(experiment, indent=1))
    with (HOME / "run.txt").open("w") as out:
        logs_in = auth and auth["auth"]["type"] == "login"
        for _ in range(2):
            if logs_in:
                log_in(env)
            subprocess.run([*KARAT, "run", "experiment.yaml"], cwd=HOME, env=env, stdout=out, stderr=out, check=False)
            if not logs_in or "needs another login" not in (HOME / "run.txt").read_text():
                break


if __name__ == "__main__":
    main()
