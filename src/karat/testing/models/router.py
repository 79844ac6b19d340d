"""Answers HTTP requests: finds the API, gets the script's response, and sends it or breaks the
connection.

HTTP/1.1 is written by hand, because a server that breaks off in mid-sentence must control the
connection itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import IO

import msgspec

from karat.records import JsonObject
from karat.testing.models import chat_completions, gemini, messages, responses
from karat.testing.models.default_response import default_response
from karat.testing.models.output import CREATED, Event, ModelOutput, model_output, tokens_in
from karat.testing.models.request import Api, BadRequest, Request, read_request
from karat.testing.models.script import Hook, Rule, Script, ScriptedResponse, ToolUse, filled


class ConnectionEnded(Exception):
    """The client has closed the connection, or sent something that is not HTTP."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request."""

    method: str
    path: str  # without the query
    headers: Mapping[str, str]  # lower case names
    body: bytes


class Connection:
    """One client's connection: requests in, answers out, one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._method = ""

    async def next_request(self) -> HttpRequest:
        """The next request. Raises ConnectionEnded if there is none."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            self._method, target, _ = first.split(" ", 2)
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            if headers.get("expect", "").lower() == "100-continue":
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if "chunked" not in headers.get("transfer-encoding", "").lower():
                body = await self._reader.readexactly(int(headers.get("content-length") or 0))
            else:
                parts: list[bytes] = []
                while size := int((await self._reader.readline()).partition(b";")[0], 16):
                    parts.append(await self._reader.readexactly(size))
                    await self._reader.readexactly(2)

                while (await self._reader.readline()).strip():
                    pass
                body = b"".join(parts)
        except (
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            OSError,
            ValueError,
        ) as error:
            raise ConnectionEnded from error

        return HttpRequest(
            method=self._method, path=target.partition("?")[0], headers=headers, body=body
        )

    async def answer(
        self, status: int, body: bytes, headers: Mapping[str, str], *, cut: int | None = None
    ) -> None:
        """Sends a whole answer; with `cut` only that many bytes, then breaks the connection."""
        length = {"content-length": str(len(body))}
        shown = b"" if self._method == "HEAD" else body
        await self._send(
            _head(status, {**headers, **length}) + (shown if cut is None else shown[:cut])
        )
        if cut is not None:
            self.close()

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Starts a stream, which `send` continues and `end` ends."""
        await self._send(_head(200, {**headers, "transfer-encoding": "chunked"}))

    async def send(self, part: bytes) -> None:
        await self._send(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    async def end(self) -> None:
        await self._send(b"0\r\n\r\n")

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionEnded from error

    async def wait(self, seconds: float | None) -> None:
        """Waits (None: forever). Raises ConnectionEnded if the client gives up first."""
        try:
            # The request is complete, so what comes now is the client's end or a request that is
            # too early.
            early = await asyncio.wait_for(self._reader.read(1), seconds)
        except TimeoutError:
            return
        except OSError as error:
            raise ConnectionEnded from error

        raise (
            ConnectionEnded
            if not early
            else ConnectionEnded("a second call before the first was answered")
        )

    def close(self) -> None:
        """Close the connection at once."""
        self._writer.close()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded" if status == 529 else "Unknown"

    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1", "replace")


class ScriptPlayer:
    """Plays a script and counts its responses. Not thread-safe."""

    def __init__(self, script: Script, hook: Hook | None = None) -> None:
        self._script = script
        self._hook = hook
        self._used: Counter[int] = Counter()  # rule → requests that it answered
        # rule, conversation, step → requests
        self._asked: Counter[tuple[int, str, int]] = Counter()

    @property
    def models(self) -> tuple[str, ...]:
        """The names in a list of models."""
        return self._script.models

    def respond(self, request: Request, *, busy: int) -> tuple[ScriptedResponse, int | None]:
        """The response, and its rule's number from 0 (None: no rule, or a hook).

        `busy`: how many requests are being answered, including this one.
        """
        if self._hook is not None:
            chosen = self._hook(request)
            if chosen is None:
                chosen = {"improvise": True}
            elif isinstance(chosen, str):
                chosen = {"text": chosen}

            if isinstance(chosen, ScriptedResponse):
                response = chosen
            else:
                response = ScriptedResponse.model_validate(chosen)

            return _filled(response, request), None

        for number, rule in enumerate(self._script.rules):
            limit = rule.when.times
            if (limit is None or self._used[number] < limit) and rule.when.holds(
                request, busy=busy
            ):
                self._used[number] += 1
                return _filled(self._step(number, rule, request), request), number

        return default_response(request), None

    def _step(self, number: int, rule: Rule, request: Request) -> ScriptedResponse:
        # Each response with the faults before it; None: endless faults.
        steps: list[tuple[list[ScriptedResponse], ScriptedResponse | None]] = []
        faults: list[ScriptedResponse] = []
        for response in rule.say:
            if response.fault:
                faults += [response] * response.times
            else:
                steps.append((faults, response))
                faults = []

        if faults:
            steps += [(faults, None)]
        # How often the model has answered since the last message of the user that contains the
        # text.
        answers = 0
        for message in reversed(request.messages):
            if message.role == "assistant":
                answers += 1
            elif (
                message.role == "user"
                and rule.when.contains is not None
                and rule.when.contains in message.text
            ):
                break

        position = min(answers, len(steps) - 1)
        before, after = steps[position]
        key = (number, request.digest, position)
        self._asked[key] += 1
        if self._asked[key] <= len(before):
            return before[self._asked[key] - 1]
        return after or before[-1]


def _filled(response: ScriptedResponse, request: Request) -> ScriptedResponse:
    """The response with its templates filled in, and its tool calls under the offered names."""
    if response.improvise:
        improvised = default_response(request)
        return response.model_copy(
            update={"text": improvised.text, "tool_calls": improvised.tool_calls}
        )

    calls = []
    for call in response.tool_calls:
        tool = request.offered(call.name)
        arguments = (
            call.arguments if isinstance(call.arguments, str) else filled(call.arguments, request)
        )
        calls.append(
            ToolUse(name=tool.name if tool is not None else call.name, arguments=arguments)
        )

    texts = {
        "text": filled(response.text, request),
        "reasoning": filled(response.reasoning, request),
    }
    return response.model_copy(update={**texts, "tool_calls": tuple(calls)})


_APIS: dict[str, Api] = {  # by the end of the path: a client may put anything before it
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    "/messages/count_tokens": "count_tokens",
}
_SPOKEN: dict[
    str, tuple[Callable[[ModelOutput], dict[str, object]], Callable[[ModelOutput], Iterator[Event]]]
] = {
    "chat": (chat_completions.whole, chat_completions.events),
    "responses": (responses.whole, responses.events),
    "messages": (messages.whole, messages.events),
    "gemini": (gemini.whole, gemini.events),
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_JSON = "application/json"


class Router:
    """Answers the requests of all connections, on one event loop."""

    def __init__(
        self, player: ScriptPlayer, *, log: IO[str] | None = None, keep: int | None = None
    ) -> None:
        self._player = player
        self._log = log
        self._busy = 0
        self.requests: deque[Request] = deque(maxlen=keep)
        self.others: deque[str] = deque(maxlen=keep)
        self.asked = 0  # requests, including those no longer kept
        self.most_busy = 0

    async def serve(self, connection: Connection) -> None:
        """Answers one request. Raises ConnectionEnded when the connection is no longer usable."""
        call = await connection.next_request()
        ending = next(
            (end for end in sorted(_APIS, key=len, reverse=True) if call.path.endswith(end)), None
        )
        if ending is None or call.method != "POST":
            # Lists of models, and other requests that a client sends before it starts.
            self.others.append(f"{call.method} {call.path}")
            head, _, name = call.path.rpartition("/models")
            if call.method in ("GET", "HEAD") and (head or call.path.startswith("/models")):
                wanted = name.strip("/")
                both = []  # with the keys of both providers
                for model in [wanted] if wanted else self._player.models:
                    both.append(
                        {
                            "id": model,
                            "object": "model",
                            "created": CREATED,
                            "owned_by": "karat",
                            "type": "model",
                            "display_name": model,
                            "created_at": "2023-11-14T22:13:20Z",
                        }
                    )

                listing = {
                    "object": "list",
                    "data": both,
                    "has_more": False,
                    "first_id": None,
                    "last_id": None,
                }
                await _whole(connection, both[0] if wanted else listing, headers={})
            elif call.method in ("GET", "HEAD", "OPTIONS") or call.path.startswith("/api/"):
                await _whole(connection, {}, headers={})
            else:
                message = f"no {call.path} here; known: {', '.join(_APIS)}, /models"
                await _refuse(connection, "chat", status=404, message=message, headers={})

            return

        self._busy += 1
        self.most_busy = max(self.most_busy, self._busy)
        try:
            await self._model(_APIS[ending], call, connection)
        finally:
            self._busy -= 1

    async def _model(self, api: Api, call: HttpRequest, connection: Connection) -> None:
        try:
            body = json.loads(call.body)
            if not isinstance(body, dict):
                raise BadRequest("the body is not an object")
            request = read_request(
                api, number=self.asked + 1, path=call.path, headers=call.headers, body=body
            )
        except (ValueError, BadRequest) as error:
            self.others.append(f"{call.method} {call.path}: {error}")
            await _refuse(connection, api, status=400, message=str(error), headers={})
            return

        self.asked += 1
        self.requests.append(request)
        if api == "count_tokens":
            self._note(request, None)
            await _whole(connection, {"input_tokens": tokens_in(request)}, headers={})
            return

        response, rule = self._player.respond(request, busy=self._busy)
        self._note(request, {"rule": rule, "say": response.model_dump(exclude_defaults=True)})
        await _respond(connection, response, request)

    def _note(self, request: Request, answer: JsonObject | None) -> None:
        if self._log is not None:
            self._log.write(
                json.dumps({**request.as_json(), "answer": answer}, ensure_ascii=False) + "\n"
            )
            self._log.flush()


async def _respond(connection: Connection, say: ScriptedResponse, request: Request) -> None:
    if say.delay:
        await connection.wait(say.delay)
    if say.hang is not None:
        await connection.wait(None if say.hang is True else say.hang)
    if say.disconnect:
        raise ConnectionEnded
    output = model_output(say, request)
    name = "request-id" if request.api == "messages" else "x-request-id"
    headers = {name: f"req_{output.id}"}
    if say.status is not None and not (say.after and request.stream):
        if say.retry_after is not None:
            if isinstance(say.retry_after, float):
                headers["retry-after"] = f"{say.retry_after:g}"
            else:
                headers["retry-after"] = say.retry_after

        await _refuse(
            connection,
            request.api,
            status=say.status,
            message=say.error,
            headers=headers,
            body=say.body,
        )
    elif say.body is not None:
        await connection.answer(200, say.body.encode(), {"content-type": "text/html", **headers})
    elif request.stream:
        await _stream(connection, output, headers)
    else:
        answer = json.dumps(_SPOKEN[request.api][0](output)).encode()
        if say.malformed:
            answer = answer[: len(answer) // 2] + b'"'
        if say.truncate is None:
            cut = None
        else:
            cut = len(answer) // 2

        await connection.answer(200, answer, {"content-type": _JSON, **headers}, cut=cut)
        if cut is not None:
            raise ConnectionEnded


async def _stream(connection: Connection, output: ModelOutput, headers: Mapping[str, str]) -> None:
    say = output.say
    api = output.request.api
    events = list(_SPOKEN[api][1](output))
    stop = say.after if say.status is not None else say.truncate
    if stop is True:
        last = len(events) // 2
    else:
        last = stop or len(events)

    await connection.begin(
        {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", **headers}
    )
    for number, (name, data) in enumerate(events[:last]):
        if number and say.chunk_seconds:
            await asyncio.sleep(say.chunk_seconds)
        text = json.dumps(data)
        await connection.send(
            _event(name, text[:-2] if say.malformed and number == len(events) // 2 else text)
        )

    if say.status is not None:
        error = _error(api, say.status, say.error)
        await connection.send(
            _event("error" if api not in ("chat", "gemini") else None, json.dumps(error))
        )
    elif say.truncate is not None:
        raise ConnectionEnded
    elif api == "chat":
        await connection.send(_event(None, "[DONE]"))

    await connection.end()


def _event(name: str | None, data: str) -> bytes:
    if name is not None:
        head = f"event: {name}\n"
    else:
        head = ""

    return f"{head}data: {data}\n\n".encode()


async def _whole(connection: Connection, value: object, headers: Mapping[str, str]) -> None:
    await connection.answer(200, json.dumps(value).encode(), {"content-type": _JSON, **headers})


async def _refuse(
    connection: Connection,
    api: Api,
    *,
    status: int,
    message: str,
    headers: Mapping[str, str],
    body: str | None = None,
) -> None:
    if body is not None:
        await connection.answer(status, body.encode(), {"content-type": "text/html", **headers})
        return

    data = json.dumps(_error(api, status, message)).encode()
    await connection.answer(status, data, {"content-type": _JSON, **headers})


def _error(api: Api, status: int, message: str) -> dict[str, object]:
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    message = message or f"rehearsed {kind.replace('_', ' ')}"
    if api == "gemini":
        return gemini.error(status, message)
    if api in ("messages", "count_tokens"):
        return {"type": "error", "error": {"type": kind, "message": message}}
    if api == "responses":
        return {
            "type": "error",
            "code": kind,
            "message": message,
            "param": None,
            "error": {"message": message, "type": kind},
        }

    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}
