"""MCP over stdio without the SDK, which takes most of a second to import: for scripted servers.

Speaks the versions that begin with `initialize`, and 2026-07-28, where every request says its own.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
SCHEMA_TYPES = {
    "str": ("string", str),
    "int": ("integer", int),
    "float": ("number", int | float),
    "bool": ("boolean", bool),
}
META = "io.modelcontextprotocol/"

Json = dict[str, Any]


class Refusal(Exception):
    """The request gets an error instead of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unanswered(Exception):
    """The client is to ask the user, and then to call again with the answer."""

    def __init__(self, question: Json) -> None:
        super().__init__(question["message"])
        self.question = question


class Request:
    """A call, for tools that want to know more than their arguments."""

    def __init__(self, server: StdioServer, params: Json) -> None:
        meta = params.get("_meta", {})
        self.server = server
        self.modern = f"{META}protocolVersion" in meta
        self._responses = params.get("inputResponses")
        self._capabilities = meta.get(f"{META}clientCapabilities", server.client_capabilities)

    def elicit(self, question: Json) -> Json:
        """The user's answer."""
        if "elicitation" not in self._capabilities:
            raise Refusal(-32021, "Client did not declare the form elicitation capability")
        if not self.modern:
            return self.server.ask("elicitation/create", question)
        if self._responses is None:
            raise Unanswered(question)
        answer: Json = self._responses["question"]
        return answer


class StdioServer:
    """Serves tools, documents and prompts by name; each request on a thread of its own.

    A tool is a function of strings, numbers and booleans that gives a text, an object, or a list
    of the SDK's content blocks. A first parameter `request` is the `Request`. A RuntimeError is
    the tool's failure.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Mapping[str, Callable[..., object]],
        documents: Mapping[str, Callable[[], str]],
        prompts: Mapping[str, Callable[..., str]],
    ) -> None:
        self.tools = dict(tools)
        self.client_capabilities: Json = {}
        self._name = name
        self._documents = documents
        self._prompts = prompts
        self._writing = threading.Lock()
        self._cancelled: set[object] = set()
        self._replies: dict[str, SimpleQueue[Json]] = {}

    def serve(self) -> None:
        """Answers until stdin is closed."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            match message:
                case {"method": "notifications/cancelled", "params": {"requestId": number}}:
                    self._cancelled.add(number)
                case {"method": _, "id": _}:
                    threading.Thread(target=self._respond, args=(message,), daemon=True).start()
                case {"id": number} if number in self._replies:
                    self._replies[number].put(message)

        self._writing.acquire()  # a thread that still writes would abort the interpreter as it ends

    def ask(self, method: str, params: Json) -> Json:
        """The client's result of a request of the server's."""
        number = f"of-the-server-{threading.get_ident()}"  # a thread waits for one at a time
        replies = self._replies[number] = SimpleQueue()
        self._send({"id": number, "method": method, "params": params})
        reply = replies.get()
        if "error" in reply:
            raise Refusal(reply["error"]["code"], reply["error"]["message"])
        result: Json = reply["result"]
        return result

    def _send(self, message: Json) -> None:
        with self._writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def _respond(self, message: Json) -> None:
        params = message.get("params") or {}
        request = Request(self, params)
        response: Json
        try:
            result = self._result(message["method"], params, request=request)
        except Refusal as refusal:
            response = {"error": {"code": refusal.code, "message": str(refusal)}}
        else:
            if request.modern:
                about = {f"{META}serverInfo": self._about()}
                result = {"resultType": "complete", **result, "_meta": about}

            response = {"result": result}

        if message["id"] not in self._cancelled:
            self._send({"id": message["id"], **response})

    def _result(self, method: str, params: Json, *, request: Request) -> Json:
        cache = {"ttlMs": 0, "cacheScope": "private"} if request.modern else {}
        offered: Json = {"capabilities": {"tools": {}, "resources": {}, "prompts": {}}}
        match method:
            case "initialize":
                self.client_capabilities = params["capabilities"]
                asked = params["protocolVersion"]
                version = asked if asked in VERSIONS else VERSIONS[-1]
                return {"protocolVersion": version, "serverInfo": self._about(), **offered}
            case "server/discover":
                return {"supportedVersions": [MODERN], **offered, **cache}
            case "ping":
                return {}
            case "tools/list":
                tools = []
                for name, tool in self.tools.items():
                    # as the SDK describes it, so that both have one digest
                    schema: Json = {"title": f"{name}Arguments", "type": "object", "properties": {}}
                    for key, parameter in _parameters(tool).items():
                        about = {
                            "title": key.title(),
                            "type": SCHEMA_TYPES[parameter.annotation][0],
                        }
                        schema["properties"][key] = about
                        if parameter.default is parameter.empty:
                            schema.setdefault("required", []).append(key)
                        else:
                            about["default"] = parameter.default

                    described = {"name": name, "description": tool.__doc__}
                    tools.append({**described, "inputSchema": schema})

                return {"tools": tools, **cache}
            case "tools/call":
                tool = _named(params["name"], self.tools, "tool")
                return _called(tool, params, request=request)
            case "resources/list":
                resources = []
                for uri, document in self._documents.items():
                    named = {"uri": uri, "name": document.__name__, "mimeType": "text/markdown"}
                    resources.append({**named, "description": document.__doc__})

                return {"resources": resources, **cache}
            case "resources/templates/list":
                return {"resourceTemplates": [], **cache}
            case "resources/read":
                text = _named(params["uri"], self._documents, "resource")()
                content = {"uri": params["uri"], "mimeType": "text/markdown", "text": text}
                return {"contents": [content], **cache}
            case "prompts/list":
                prompts = []
                for name, prompt in self._prompts.items():
                    required = [{"name": key, "required": True} for key in _parameters(prompt)]
                    described = {"name": name, "description": prompt.__doc__}
                    prompts.append({**described, "arguments": required})

                return {"prompts": prompts, **cache}
            case "prompts/get":
                prompt = _named(params["name"], self._prompts, "prompt")
                text = prompt(**params.get("arguments", {}))
                content = {"type": "text", "text": text}
                message = {"role": "user", "content": content}
                return {"description": prompt.__doc__, "messages": [message]}

        raise Refusal(-32601, "Method not found")

    def _about(self) -> Json:
        return {"name": self._name, "version": ""}


def _named(name: str, known: Mapping[str, Callable[..., Any]], what: str) -> Callable[..., Any]:
    if name not in known:
        raise Refusal(-32602, f"Unknown {what}: {name}")
    return known[name]


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    parameters.pop("request", None)
    return parameters


def _called(tool: Callable[..., object], params: Json, *, request: Request) -> Json:
    """The result of `tools/call`."""
    arguments = params.get("arguments") or {}
    taken: Json = {}
    try:
        for key, parameter in _parameters(tool).items():
            kind, python_type = SCHEMA_TYPES[parameter.annotation]
            if key in arguments:
                if not isinstance(arguments[key], python_type):
                    raise RuntimeError(f"the argument '{key}' must be of the type {kind}")
                taken[key] = arguments[key]
            elif parameter.default is parameter.empty:
                raise RuntimeError(f"the argument '{key}' is missing")

        if "request" in inspect.signature(tool).parameters:
            taken["request"] = request
        returned = tool(**taken)
        if inspect.iscoroutine(returned):
            import asyncio

            returned = asyncio.run(returned)
    except RuntimeError as error:
        text = f"Error executing tool {params['name']}: {error}"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    except Unanswered as unanswered:
        asked = {"method": "elicitation/create", "params": unanswered.question}
        more_input = {"inputRequests": {"question": asked}, "requestState": "asked"}
        return {"resultType": "input_required", **more_input}

    result: Json = {"isError": False}
    match returned:
        case str():
            result["content"] = [{"type": "text", "text": returned}]
        case dict():
            result["content"] = [{"type": "text", "text": json.dumps(returned, indent=2)}]
            result["structuredContent"] = returned
        case list():
            blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in returned]
            result["content"] = blocks

    return result
