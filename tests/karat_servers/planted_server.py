"""An MCP server of the standard library alone, sound unless a fault is named: `python planted_server.py FAULT`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
VERSIONS = ("2025-06-18", "2025-11-25")
TEXT = {"type": "string", "description": "any text"}


def tool(name, description, properties, **more):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def tools():
    reading = {"annotations": {"readOnlyHint": True}}
    output = {"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
    listed = [
        tool("count_words", "Counts the words of a text.", {"text": TEXT}, **reading, **output),
        tool("send_letter", "Posts a letter to an address in town.", {"text": TEXT}),
        tool("find_street", "Gives the district in which a street lies.", {"street": TEXT}, **reading),
    ]
    match FAULT:
        case "duplicate-names":
            listed.append(listed[0])
        case "hostile":
            listed[1]["name"] = "\x1b[31mred\x1b[0m\u202e\ud800" + 200 * "key-of-the-house "
        case "bad-name":
            listed[1]["name"] = "send letter!"
        case "dotted-name":
            listed[1]["name"] = "letters.send"
        case "bad-schema":
            listed[1]["inputSchema"]["properties"]["text"] = {"type": "strnig"}
        case "schema-not-object":
            listed[1]["inputSchema"] = {"type": "string"}
        case "no-description":
            del listed[1]["description"]
        case "argument-without-description":
            listed[1]["inputSchema"]["properties"] = {"text": {"type": "string"}}
        case "long-description":
            listed[1]["description"] += " It really does." * 100
        case "near-duplicates":
            listed[2]["description"] = "Counts all the words of a text."
        case "list-changes":
            listed[1]["description"] += f" Process {os.getpid()}."
    return listed


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def listing(params):
    cursor = params.get("cursor", "0")
    page = int(cursor) if cursor.isdigit() else None
    listed = tools()
    if FAULT == "cursor-repeats":
        return {"tools": listed[:1], "nextCursor": "1"}
    if FAULT == "endless-list":
        return {"tools": listed[:1], "nextCursor": str((page or 0) + 1)}
    if page is None:
        if FAULT != "any-cursor":
            raise ValueError(-32602, "Unknown cursor")
        page = 0
    return {"tools": listed[2 * page : 2 * page + 2], **({"nextCursor": "1"} if page == 0 else {})}


def call(params):
    name, arguments = params.get("name"), params.get("arguments") or {}
    known = {tool["name"]: tool for tool in tools()}
    if name not in known:
        if FAULT == "unknown-tool-succeeds":
            return {"content": [{"type": "text", "text": "done"}]}
        if FAULT == "unknown-tool-crashes":
            os._exit(3)
        raise ValueError(-32602, "Unknown tool")
    if not arguments and FAULT != "arguments-unchecked":
        return {"content": [{"type": "text", "text": "text is missing"}], "isError": True}
    if FAULT == "slow-call":
        time.sleep(60)
    text = "x" * (200_000 if FAULT == "long-result" else 10)
    result: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    if FAULT == "no-content":
        result = {"contents": text}
    if name == "count_words" and FAULT != "no-structured-content":
        result["structuredContent"] = {"n": "seven" if FAULT == "structured-mismatch" else 7}
    return result


def answer(method, params):
    match method:
        case "initialize":
            version = params["protocolVersion"]
            if version not in VERSIONS and FAULT != "echoes-version":
                version = VERSIONS[-1]
            about = {} if FAULT == "no-server-info" else {"serverInfo": {"name": "planted", "version": "1"}}
            capabilities: dict[str, object] = {"tools": {}, "resources": {}}
            return {"protocolVersion": version, "capabilities": capabilities, **about}
        case "ping" if FAULT != "no-ping":
            return {}
        case "tools/list":
            return listing(params)
        case "tools/call":
            return call(params)
        case "resources/list" if FAULT != "undeclared":
            return {"resources": [{"uri": "planted://a", "name": "a"}]}
        case "resources/read":
            if params.get("uri") != "planted://a" and FAULT != "unknown-resource-succeeds":
                raise ValueError(-32002, "Resource not found")
            return {"contents": [{"uri": params["uri"], "text": "a"}]}
    if FAULT == "unknown-method-succeeds":
        return {}
    raise ValueError(-32601, "Method not found")


def main():
    if FAULT == "stdout-noise":
        sys.stdout.write("Server is up!\n")
        sys.stdout.flush()
    if FAULT == "stderr-flood":
        sys.stderr.write("debug " * 400_000)
    if FAULT == "leaves-child":
        subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for line in sys.stdin:
        try:
            asked = json.loads(line)
        except ValueError:
            if FAULT == "malformed-crashes":
                raise
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
            continue
        method, number = asked["method"], asked.get("id")
        if number is None:
            if method == "notifications/cancelled" and FAULT == "cancellation-crashes":
                os._exit(4)
            continue
        if FAULT == "unknown-method-hangs" and method.startswith("karat/"):
            continue
        if FAULT == "ids-as-text":
            number = str(number)
        head = {"jsonrpc": "1.0" if FAULT == "old-jsonrpc" else "2.0", "id": number}
        try:
            send({**head, "result": answer(method, asked.get("params") or {})})
        except ValueError as error:
            code, message = error.args
            send({**head, "error": {"code": code, "message": message}})
    if FAULT == "exit-code":
        sys.exit(5)
    if FAULT == "stays":
        time.sleep(60)


if FAULT == "silent":
    time.sleep(60)
main()
