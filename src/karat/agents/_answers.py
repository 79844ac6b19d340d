"""What a program or a function returned, as a Reply."""

from __future__ import annotations

from typing import Any

import msgspec

from karat.errors import AgentFault
from karat.records import Reply, plain

__all__ = ["TEXT_KEYS", "reply_from"]

TEXT_KEYS = ("text", "answer", "output", "response")
_WANTED = (
    "a text, a mapping with `text`, or, from a Python function, a karat.Reply or the result of "
    "pydantic-ai, LangChain, LangGraph or the OpenAI Agents SDK"
)


def reply_from(said: Any) -> Reply:
    """A text, a Reply, or a mapping with `text` (or `answer`, `output`, `response`) and Reply's other fields.

    Raises AgentFault("bad_reply"): anything else is no answer, and None least of all.
    """
    if isinstance(said, Reply):
        return said
    if isinstance(said, str):
        return Reply(text=said)
    if not isinstance(said, dict):
        raise AgentFault("bad_reply", f"the agent returned a {type(said).__name__}, want {_WANTED}")
    fields = {name: said[name] for name in Reply.__struct_fields__ if name in said}
    if "text" not in fields:
        key = next((key for key in TEXT_KEYS if isinstance(said.get(key), str)), None)
        if key is None:
            raise AgentFault("bad_reply", f"the object has no 'text' (keys: {', '.join(map(str, said)) or 'none'})")
        fields["text"] = said[key]
    try:
        return msgspec.convert(msgspec.to_builtins(fields, enc_hook=plain), Reply)
    except (msgspec.ValidationError, TypeError) as error:
        raise AgentFault("bad_reply", f"the object is no reply: {error}") from error
