"""Who takes the calls: finds the API, asks the player, sends what it says, or breaks off as it wants."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from karat.testing.models import chat_completions, messages, responses
from karat.testing.models.asked import Unreadable, read_request
from karat.testing.models.player import Cue, Player
from karat.testing.models.request import Api, Request
from karat.testing.models.script import Say
from karat.testing.models.speech import CREATED, Event, Speech, speech_of, tokens_in
from karat.testing.models.wire import Call, Connection, Gone

__all__ = ["Desk"]

_APIS: dict[str, Api] = {  # by the end of the path: a client may put anything before it
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    "/messages/count_tokens": "count_tokens",
}
_SPOKEN: dict[str, tuple[Callable[[Speech], dict[str, Any]], Callable[[Speech], Iterator[Event]]]] = {
    "chat": (chat_completions.whole, chat_completions.events),
    "responses": (responses.whole, responses.events),
    "messages": (messages.whole, messages.events),
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


class Desk:
    """Takes the calls of all connections, on one event loop."""

    def __init__(self, player: Player, *, log: IO[str] | None = None, keep: int | None = None) -> None:
        self._player, self._log = player, log
        self._busy = 0
        self.requests: deque[Request] = deque(maxlen=keep)
        self.others: deque[str] = deque(maxlen=keep)
        self.asked = 0  # requests, also those that are no longer kept
        self.most_busy = 0

    async def serve(self, connection: Connection) -> None:
        """One call. Raises Gone when the connection is of no more use."""
        call = await connection.next_call()
        ending = next((end for end in sorted(_APIS, key=len, reverse=True) if call.path.endswith(end)), None)
        if ending is None or call.method != "POST":
            await self._other(call, connection)
            return
        self._busy += 1
        self.most_busy = max(self.most_busy, self._busy)
        try:
            await self._model(_APIS[ending], call, connection)
        finally:
            self._busy -= 1

    async def _model(self, api: Api, call: Call, connection: Connection) -> None:
        try:
            body = json.loads(call.body)
            if not isinstance(body, dict):
                raise Unreadable("the body is no object")
            request = read_request(api, number=self.asked + 1, path=call.path, headers=call.headers, body=body)
        except (ValueError, Unreadable) as error:
            self.others.append(f"{call.method} {call.path}: {error}")
            await _refuse(connection, api, status=400, message=str(error), headers={})
            return
        self.asked += 1
        self.requests.append(request)
        if api == "count_tokens":
            self._note(request, None)
            await _whole(connection, {"input_tokens": tokens_in(request)}, headers={})
            return
        cue = self._player.cue(request, busy=self._busy)
        self._note(request, cue)
        await _speak(connection, cue.say, request)

    def _note(self, request: Request, cue: Cue | None) -> None:
        if self._log is not None:
            said = None if cue is None else {"rule": cue.rule, "say": cue.say.model_dump(exclude_defaults=True)}
            self._log.write(json.dumps({**request.as_json(), "answer": said}, ensure_ascii=False) + "\n")
            self._log.flush()

    async def _other(self, call: Call, connection: Connection) -> None:
        """Listings of models, and whatever else a client likes to call before it begins."""
        self.others.append(f"{call.method} {call.path}")
        head, _, name = call.path.rpartition("/models")
        if call.method in ("GET", "HEAD") and (head or call.path.startswith("/models")):
            wanted = name.strip("/")
            both = [_listed(model) for model in ([wanted] if wanted else self._player.models)]
            listing = {"object": "list", "data": both, "has_more": False, "first_id": None, "last_id": None}
            await _whole(connection, both[0] if wanted else listing, headers={})
        elif call.method in ("GET", "HEAD", "OPTIONS") or call.path.startswith("/api/"):
            await _whole(connection, {}, headers={})
        else:
            message = f"no {call.path} here; known: {', '.join(_APIS)}, /models"
            await _refuse(connection, "chat", status=404, message=message, headers={})


def _listed(model: str) -> dict[str, Any]:
    """A model in the words of both providers."""
    named = {"type": "model", "display_name": model, "created_at": "2023-11-14T22:13:20Z"}
    return {"id": model, "object": "model", "created": CREATED, "owned_by": "karat", **named}


async def _speak(connection: Connection, say: Say, request: Request) -> None:
    if say.delay:
        await connection.wait(say.delay)
    if say.hang is not None:
        await connection.wait(None if say.hang is True else say.hang)
    if say.disconnect:
        raise Gone
    speech = speech_of(say, request)
    headers = _ids(request, speech)
    if say.status is not None and not (say.after and request.stream):
        if say.retry_after is not None:
            headers["retry-after"] = f"{say.retry_after:g}" if isinstance(say.retry_after, float) else say.retry_after
        await _refuse(connection, request.api, status=say.status, message=say.error, headers=headers, body=say.body)
    elif say.body is not None:
        await connection.answer(200, say.body.encode(), {"content-type": "text/html", **headers})
    elif request.stream:
        await _stream(connection, speech, headers)
    else:
        answer = json.dumps(_SPOKEN[request.api][0](speech)).encode()
        if say.malformed:
            answer = answer[: len(answer) // 2] + b'"'
        cut = None if say.truncate is None else len(answer) // 2
        await connection.answer(200, answer, {"content-type": _JSON, **headers}, cut=cut)
        if cut is not None:
            raise Gone


async def _stream(connection: Connection, speech: Speech, headers: Mapping[str, str]) -> None:
    say, api = speech.say, speech.request.api
    events = list(_SPOKEN[api][1](speech))
    stop = say.after if say.status is not None else say.truncate
    last = len(events) // 2 if stop is True else (stop or len(events))
    await connection.begin({"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", **headers})
    for number, (name, data) in enumerate(events[:last]):
        if number and say.chunk_seconds:
            await asyncio.sleep(say.chunk_seconds)
        text = json.dumps(data)
        await connection.send(_event(name, text[:-2] if say.malformed and number == len(events) // 2 else text))
    if say.status is not None:
        error = _error(api, say.status, say.error)
        await connection.send(_event("error" if api != "chat" else None, json.dumps(error)))
    elif say.truncate is not None:
        raise Gone
    elif api == "chat":
        await connection.send(_event(None, "[DONE]"))
    await connection.end()


def _event(name: str | None, data: str) -> bytes:
    head = f"event: {name}\n" if name is not None else ""
    return f"{head}data: {data}\n\n".encode()


def _ids(request: Request, speech: Speech) -> dict[str, str]:
    name = "request-id" if request.api == "messages" else "x-request-id"
    return {name: f"req_{speech.id}"}


async def _whole(connection: Connection, value: Any, headers: Mapping[str, str]) -> None:
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


def _error(api: Api, status: int, message: str) -> dict[str, Any]:
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    told = message or f"rehearsed {kind.replace('_', ' ')}"
    if api in ("messages", "count_tokens"):
        return {"type": "error", "error": {"type": kind, "message": told}}
    if api == "responses":
        return {"type": "error", "code": kind, "message": told, "param": None, "error": {"message": told, "type": kind}}
    return {"error": {"message": told, "type": kind, "param": None, "code": kind}}
