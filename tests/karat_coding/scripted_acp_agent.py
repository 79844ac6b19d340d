"""An agent of the Agent Client Protocol that does what its script says: `python scripted_acp_agent.py SCRIPT`.

SCRIPT is a JSON object: `steps`, what it does for each prompt; `agent`, its agentInfo; `silent`, it answers nothing;
`version`, of the protocol; `lists`, whether it asks its MCP servers for their tools; `session`, more of the answer to
session/new; `error`, with which it answers session/new; `relative`: paths in the script start in its working folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

SCRIPT: dict[str, Any] = json.loads(sys.argv[1])
SESSION = "s1"


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(**fields: Any) -> None:
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": fields}})


def say(text: str) -> None:
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


class Server:
    """A client of one MCP server."""

    def __init__(self, about: dict[str, Any]) -> None:
        env = {variable["name"]: variable["value"] for variable in about["env"]}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([about["command"], *about["args"]], env=env, stdin=pipe, stdout=pipe, text=True)
        about_me = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", about_me)
        self.write({"method": "notifications/initialized"})
        if SCRIPT.get("lists", True):
            self.ask("tools/list", {})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.write({"id": 1, "method": method, "params": params})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == 1:
                return message
        return {"error": "the server has ended"}


def do(step: dict[str, Any], servers: dict[str, Server], asked: str) -> None:
    match step:
        case {"say": str(text)}:
            say(text * step.get("times", 1))
        case {"echo": "prompt"}:
            say(asked)
        case {"echo": "env"}:
            say(json.dumps(dict(os.environ) | {"cwd": os.getcwd(), "home": sorted(os.listdir(os.environ["HOME"]))}))
        case {"raw": str(text)}:
            sys.stdout.write(text + "\n")
        case {"update": dict(fields)}:
            update(**fields)
        case {"send": dict(message)}:
            send(message)
        case {"ask": str(method), "params": dict(params)}:
            if SCRIPT.get("relative"):
                params["path"] = os.path.join(os.getcwd(), params["path"])
            send({"id": 99, "method": method, "params": {"sessionId": SESSION, **params}})
            while (answer := receive()).get("id") != 99 or "method" in answer:
                pass
            say(json.dumps(answer.get("result", answer.get("error"))))
        case {"call": str(server), "tool": str(tool), "arguments": dict(arguments)}:
            answer = servers[server].ask("tools/call", {"name": tool, "arguments": arguments})
            say(json.dumps(answer.get("result", answer.get("error"))))
        case {"file": str(name), "content": str(text)}:
            with open(name, "w") as file:
                file.write(text)
        case {"spawn": float(seconds)}:
            command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
            subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        case {"exit": int(code)}:
            sys.stderr.write(step.get("stderr", ""))
            sys.exit(code)
        case {"hang": float(seconds)}:
            time.sleep(seconds)


def main() -> None:
    servers: dict[str, Server] = {}
    prompts = 0
    if SCRIPT.get("silent"):
        time.sleep(600)
    while True:
        message = receive()
        params = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": SCRIPT.get("version", 1)}
                result["agentInfo"] = SCRIPT.get("agent", {"name": "scripted", "version": "1.0"})
            case "session/new" if "error" in SCRIPT:
                send({"id": message["id"], "error": SCRIPT["error"]})
                continue
            case "session/new":
                servers = {about["name"]: Server(about) for about in params["mcpServers"]}
                result = {"sessionId": SESSION, **SCRIPT.get("session", {})}
            case "session/prompt":
                steps = SCRIPT["steps"][min(prompts, len(SCRIPT["steps"]) - 1)]
                prompts += 1
                result = {"stopReason": "end_turn"}
                for step in steps:
                    do(step, servers, params["prompt"][0]["text"])
                    result |= step.get("result", {})
                result = {name: value for name, value in result.items() if value is not None}
            case "session/set_config_option":
                result = {"configOptions": []}
            case _:
                continue
        send({"id": message["id"], "result": result})


main()
