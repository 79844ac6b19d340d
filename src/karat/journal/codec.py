"""Events to lines and back."""

from __future__ import annotations

from typing import Any

import msgspec

from karat.errors import BadRun
from karat.journal.events import Event
from karat.redact import Redactor

__all__ = ["Codec", "decode"]

# Names by which rows find each other. They come from the experiment, never from an agent or a tool.
_STRUCTURAL = frozenset({"event", "trial", "sample", "condition", "scorer", "scoring", "class"})

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class Codec:
    """Writes an event as one line: secrets replaced, lone surrogates mended, NaN as null."""

    def __init__(self, redact: Redactor | None = None) -> None:
        self._redact = redact or Redactor({})
        self._encode = msgspec.json.Encoder().encode

    def line(self, event: Any) -> bytes:
        try:
            line = self._encode(event)
        except UnicodeEncodeError:
            # Models and tools do send halves of surrogate pairs; U+FFFD keeps the rest of the text.
            event = _walk(msgspec.to_builtins(event), _mended)
            line = self._encode(event)
        if self._redact and self._redact(text := line.decode()) != text:
            # Value by value, so that no replacement can cross a quote of the line's own.
            line = self._encode(_walk(msgspec.to_builtins(event), self._redact))
        return line + b"\n"


def decode(line: bytes, *, path: str, number: int) -> Event:
    """The event in a line. Raises BadRun with the line's number."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRun(path, f"line {number} of the journal is damaged: {error}") from error


def _mended(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _walk(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): item if key in _STRUCTURAL else _walk(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walk(item, change) for item in value]
    return value
