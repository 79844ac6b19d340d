"""An MCP server of the standard library alone that fails as `faults.json` says: `python mcp_server.py CONDITION`."""

from __future__ import annotations

import json
import os
import sys
import time

import ledger

VERSION = "2025-06-18"
TOOL = {
    "name": "look_up",
    "description": "Gives the limit.",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
}


def key_of(message: dict, condition: str) -> str:
    """What the ledger calls a request: a question for a call, the condition for the steps before it."""
    if message["method"] != "tools/call":
        return condition
    key = message.get("params", {}).get("arguments", {}).get("key", "")
    return key if "|" in key else f"{key}|{condition}|0|0"


def result_of(message: dict, key: str) -> dict:
    """The result of a request, or the error."""
    match message["method"]:
        case "initialize":
            information = {"name": "faulty", "version": "1"}
            result = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": information}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": ledger.answer(key, "")["text"]}], "isError": False}
        case "ping":
            result = {}
        case method:
            return {"error": {"code": -32601, "message": f"no {method}"}}
    return {"result": result}


def lie(step: str, answer: dict, fault: str | None) -> dict:
    """The answer to a request, where the fault is one of its content."""
    if fault == "wrong_id":
        return {**answer, "id": 987_654}
    if fault == "wrong_schema":
        wrong = {"initialize": {"protocolVersion": 7}, "tools/list": {"tools": {"look_up": 1}}}
        return {**answer, "result": wrong.get(step, {"content": "none"})}
    if fault == "huge":
        big = "x" * 50_000_000
        if step == "tools/list":
            return {**answer, "result": {"tools": [{**TOOL, "description": big}]}}
        content = {"content": [{"type": "text", "text": big}]}
        return {
            **answer,
            "result": {**answer["result"], **(content if step == "tools/call" else {"instructions": big})},
        }
    return answer


def main() -> None:
    condition = sys.argv[1]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        step, key = message["method"], key_of(message, condition)
        fault = ledger.asked(f"mcp {step}", key)
        if fault == "crash":
            os._exit(3)
        if fault == "hang":
            time.sleep(3600)
        if fault == "flood":
            for _ in range(50):
                sys.stderr.write("x" * 2**20)
        if fault == "garbage":
            sys.stdout.write('Traceback: {"no": json\n\x00\xff' * 100 + "\n")
        answer = lie(step, {"jsonrpc": "2.0", "id": message["id"], **result_of(message, key)}, fault)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if fault in (None, "flood") and step == "tools/call":
            ledger.delivered("tool", key, ledger.answer(key, "")["text"], 0.0)


if __name__ == "__main__":
    main()
