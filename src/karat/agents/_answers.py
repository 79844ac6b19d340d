"""What a program or a function returned, as a Reply."""

from __future__ import annotations

from typing import Any

import msgspec

from karat.errors import AgentFault
from karat.records import Reply, plain

__all__ = ["reply_from"]

_TEXT_KEYS = ("text", "answer", "output", "response")


def reply_from(said: Any) -> Reply:
    """A text, a Reply, or a mapping with `text` (or `answer`, `output`, `response`) and Reply's other fields.

    Raises AgentFault("bad_reply"): anything else is no answer, and None least of all.
    """
    if isinstance(said, Reply):
        return said
    if isinstance(said, str):
        return Reply(text=said)
    if not isinstance(said, dict):
        raise AgentFault("bad_reply", f"the agent returned a {type(said).__name__}, want a text or an object")
    fields = dict(said)
    if "text" not in fields:
        key = next((key for key in _TEXT_KEYS if isinstance(fields.get(key), str)), None)
        if key is None:
            raise AgentFault("bad_reply", f"the object has no 'text' (keys: {', '.join(map(str, fields)) or 'none'})")
        fields["text"] = fields[key]
    try:
        return msgspec.convert(msgspec.to_builtins(fields, enc_hook=plain), Reply)
    except (msgspec.ValidationError, TypeError) as error:
        raise AgentFault("bad_reply", f"the object is no reply: {error}") from error
