"""Turns MCP servers' replies that violate JSON-RPC into errors of their requests.

The SDK drops such a line, and the request would wait for its timeout and be reported as slow.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

    from karat.mcp.faults import Evidence
    from karat.mcp.screen import Screen

_INVALID_REPLY = -32600
_OF_THE_SDK = ("Failed to parse JSON response", "Failed to parse SSE message")
_FAULT = re.compile(r"^JSONRPC(?:Response|Error)\.?([\w.]*)\n {1,9}(\S.*?) \[type=", re.MULTILINE)
_TOO_DEEP = "its reply is nested too deeply"  # for the SDK, or for Python
_ABSENT = "Field required"  # the message for absent forms of a reply
_NO_JSON = re.compile(r"Invalid JSON: .*?(?= \[type=|$)", re.MULTILINE)
# pieces of the reply, which pydantic cuts
_INPUT = re.compile(r", input_value=.*?, input_type=\w+", re.DOTALL)
_SHOWN = 200  # characters of a server's own error
# After other text, such as a progress bar; not where a log or a help text quotes it
_START = re.compile(
    r"""\{(?:(?<=\.\.\. \{)|(?<![ \t"'`=:(\[,<>]\{))\s*"(?:jsonrpc|id|result|error)"\s*:"""
)
_MOST_STARTS = 10  # of replies in one line
_PARTS = {"jsonrpc", "id", "result", "error"}  # of a reply
_VERSION = r'(?:"jsonrpc"\s*:\s*"2\.0"\s*)'
# The id of a reply that is nested too deeply, before or after all that could have an id of its own
_NUMBER = re.compile(
    rf"""\s*\{{\s*(?:{_VERSION},\s*)?(?:
        "id"\s*:\s*(\d{{1,15}})\s*,\s*(?:{_VERSION},\s*)?"(?:result|error)"
        | "(?:result|error)".*,\s*"id"\s*:\s*(\d{{1,15}})\s*(?:,\s*{_VERSION})?\}}\s*$
    )""",
    re.DOTALL | re.VERBOSE,
)
_decode = json.JSONDecoder().raw_decode


class Pending:
    """The requests that a server has not answered yet."""

    def __init__(self, screen: Screen | None = None) -> None:
        """`screen`: sees the messages for karat's own client; None: an agent gets them
        unchanged.
        """
        self._screen = screen
        self._ids: dict[int | str, Any] = {}  # → the request
        # requests whose error is made by the transport → why
        self.undelivered: dict[int | str, Evidence] = {}

    def sent(self, message: object) -> None:
        """Records a request."""
        number = getattr(message, "id", None)
        if number is not None and hasattr(message, "method"):
            self._ids[number] = message

    def received(self, message: JSONRPCMessage) -> Sequence[JSONRPCMessage]:
        """The message, or an error instead if its id has another type than the request's."""
        number = getattr(message, "id", None)
        if hasattr(message, "method"):
            if self._screen is not None:
                self._screen.notified(message.method)
            return [message]

        error_message: str = getattr(getattr(message, "error", None), "message", "")
        if number in self._ids:
            if error_message.startswith(_OF_THE_SDK):
                return [self._error(number, _in_short(error_message))]
            self._finish(number, message)
            return [message]

        meant = self._meant(number)
        if meant is None:
            return [message]
        if number is None:  # an error that names no request: there is only one
            return [self._error(meant, f"its error has no id: {error_message}")]
        return [self._error(meant, f"its reply has the id {number!r}, the request has {meant!r}")]

    def unreadable(self, error: Exception) -> JSONRPCError | None:
        """An error for the only open request (the SDK's client drops the event); None: there is
        none, or several.
        """
        if not isinstance(error, ValueError) or len(self._ids) != 1:
            return None
        (alone,) = self._ids
        return self._error(alone, _in_short(str(error)))

    def malformed(self, line: bytes) -> tuple[Sequence[JSONRPCMessage], str]:
        """What a line that is no message brings for the requests: errors, or the replies that stand
        among other text; and the start of a line that is not a reply.
        """
        try:
            text = line.decode()
            problem = None
        except UnicodeDecodeError as error:
            text = line.decode("utf-8", "replace")
            problem = f"its reply is not UTF-8 (byte {error.start})"

        junk = text[:_SHOWN].strip()
        try:
            message = json.loads(text)
        except ValueError:
            finished: list[JSONRPCMessage] = []
            for found in self._among(text):
                assert found.id is not None
                self._finish(found.id, found)
                finished.append(found)

            return finished, junk
        except RecursionError:
            message = {}
            if (number := _NUMBER.match(text)) is not None:
                message = {"jsonrpc": "2.0", "id": int(number[1] or number[2])}
            problem = _TOO_DEEP

        if isinstance(message, list):
            problem = "its reply is a batch, which the protocol does not have"
            replies = message
        else:
            replies = [message]

        errors: list[JSONRPCMessage] = []
        for reply in replies:
            # Logs are JSON too, with fields such as `id` and `error`
            if not isinstance(reply, dict) or not _is_reply(reply):
                continue
            meant = self._meant(reply.get("id"))
            if meant is not None:
                errors.append(self._error(meant, problem or _problem(reply)))

        return errors, "" if errors else junk

    def _among(self, text: str) -> Iterator[JSONRPCResponse | JSONRPCError]:
        """The replies that stand in a line with other text, such as a progress bar before them."""
        from mcp_types import jsonrpc_message_adapter

        end = 0
        for start in itertools.islice(_START.finditer(text), _MOST_STARTS):
            if start.start() < end:
                continue
            with suppress(ValueError, RecursionError):
                found, end = _decode(text, start.start())
                reply: Any = jsonrpc_message_adapter.validate_python(found, by_name=False)
                if _is_reply(found) and reply.id in self._ids:
                    yield reply

    def _meant(self, number: object) -> int | str | None:
        """The request that a reply with this id answers; None if unknown."""
        if number is None and len(self._ids) == 1:
            (number,) = self._ids
        return next((known for known in self._ids if _spelled(known) == _spelled(number)), None)

    def _error(self, number: int | str, problem: str) -> JSONRPCError:
        from mcp_types import ErrorData, JSONRPCError

        error = ErrorData(
            code=_INVALID_REPLY, message=f"the server does not follow the protocol: {problem}"
        )
        reply = JSONRPCError(jsonrpc="2.0", id=number, error=error)
        self._finish(number, reply)
        return reply

    def _finish(self, number: int | str, reply: JSONRPCMessage) -> None:
        request = self._ids.pop(number, None)
        why = self.undelivered.pop(number, None)
        if self._screen is not None and request is not None:
            self._screen(request, reply, undelivered=why)


def _in_short(validation: str) -> str:
    """The errors of pydantic for a reply, without those of other forms of reply."""
    faults = []
    for where, text in _FAULT.findall(validation):
        if text != _ABSENT:
            faults.append(f"{where}: {text[:1].lower()}{text[1:]}".removeprefix(": "))

    no_json = _NO_JSON.search(validation)
    if no_json:
        otherwise = no_json[0]
    else:
        otherwise = _INPUT.sub("", validation)

    return f"its reply is not valid ({'; '.join(dict.fromkeys(faults)) or otherwise})"


def _is_reply(message: dict[str, object]) -> bool:
    brings = "result" in message or message.get("error") is not None
    signs = ("jsonrpc" in message, "id" in message, brings)
    return message.keys() <= _PARTS and sum(signs) > 1


def _spelled(number: object) -> str:
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


def _problem(reply: dict[str, object]) -> str:
    """What is wrong with a reply that is a JSON object."""
    if reply.get("jsonrpc") != "2.0":
        return f"its reply has jsonrpc {_kind(reply.get('jsonrpc'))} instead of '2.0'"
    if not isinstance(reply.get("id"), (int, str)) or isinstance(reply.get("id"), bool):
        return f"its reply has {_kind(reply.get('id'))} as id"
    error = reply.get("error")
    if error is not None:
        if not isinstance(error, dict):
            return f"its error must be an object with code and message, got {_kind(error)}"
        if not isinstance(error.get("code"), int) or not isinstance(error.get("message"), str):
            return (
                f"its error needs a code (a whole number) and a message (a text), got "
                f"{_kind(error)}"
            )
    elif "result" not in reply:
        return "its reply has neither result nor error"
    elif not isinstance(reply["result"], dict):
        # Without its words: a scorer could find the answer in them
        return f"its result must be an object, got {_kind(reply['result'], quoted=False)}"

    try:
        json.dumps(reply, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "its reply holds half of a surrogate pair (\\ud800 to \\udfff), which is no text"

    from mcp_types import jsonrpc_message_adapter

    try:
        jsonrpc_message_adapter.validate_json(json.dumps(reply), by_name=False)
    except ValueError as error:
        words = str(error)
        return _TOO_DEEP if "recursion limit" in words else _in_short(words)

    return "its reply is not valid"


def _kind(value: object, *, quoted: bool = True) -> str:
    if value is None:
        return "null"
    if isinstance(value, str) and not quoted:
        return "a text"
    if isinstance(value, str):
        return repr(value[:_SHOWN])
    if isinstance(value, bool):
        return str(value).lower()
    kinds = ((dict, "an object"), (list, "a list"), ((int, float), "a number"))
    kind = next(name for types, name in kinds if isinstance(value, types))
    if isinstance(value, dict):
        return f"{kind}: {json.dumps(value)[:_SHOWN]}"
    return kind
