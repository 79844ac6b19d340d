"""Events to lines and back."""

from __future__ import annotations

from typing import Any

import msgspec

from karat.errors import BadRun
from karat.journal.events import Event
from karat.records import Sample
from karat.redact import Redactor

__all__ = ["Codec", "damaged", "decode"]

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
            event = msgspec.convert(_walk(msgspec.to_builtins(event), _mended), type(event))
            line = self._encode(event)
        if self._redact and self._redact(text := line.decode()) != text:
            # Value by value, so that no replacement can cross a quote of the line's own.
            line = self._encode(self._masked(event))
        return line + b"\n"

    def _masked(self, event: Any) -> Any:
        fields = msgspec.to_builtins(event)
        # Only an event has such names, and only at its top: a tool's input may have a key of the same name.
        names = frozenset() if isinstance(event, Sample) else _STRUCTURAL
        return {key: value if key in names else _walk(value, self._redact) for key, value in fields.items()}


def decode(line: bytes, *, path: str, number: int) -> Event:
    """The event in a line. Raises BadRun with the line's number."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(path, number, error) from error


def damaged(path: str, number: int, error: Exception) -> BadRun:
    """What to say of a line that nobody can read."""
    remedy = "restore the journal from a copy, or delete that line: its trial is then asked, or scored, again"
    return BadRun(path, f"line {number} of the journal is damaged ({error}); {remedy}")


def _mended(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _walk(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _walk(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_walk(item, change) for item in value]
    return value
