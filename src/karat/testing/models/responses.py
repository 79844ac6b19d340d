"""The OpenAI responses API."""

from __future__ import annotations

from collections.abc import Iterator

from karat.records import JsonObject
from karat.testing.models.output import CREATED, Event, ModelOutput, arguments_text, pieces


def whole(answer: ModelOutput) -> JsonObject:
    """The answer in one piece."""
    return _response(answer, output=_output(answer))


def events(answer: ModelOutput) -> Iterator[Event]:
    """The answer in parts, numbered."""
    for number, (kind, data) in enumerate(_events(answer)):
        yield kind, {"type": kind, "sequence_number": number, **data}


def _events(answer: ModelOutput) -> Iterator[tuple[str, JsonObject]]:
    unfinished = {**_response(answer, output=[]), "status": "in_progress", "usage": None}
    yield "response.created", {"response": unfinished}
    yield "response.in_progress", {"response": unfinished}
    output = _output(answer)
    for index, item in enumerate(output):
        empty = {
            **item,
            **{"reasoning": {"summary": []}, "message": {"content": []}}.get(item["type"], {}),
        }
        if item["type"] == "function_call":
            empty["arguments"] = ""
        if "status" in item:
            empty["status"] = "in_progress"
        yield "response.output_item.added", {"output_index": index, "item": empty}
        where = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                (part,) = item["summary"]
                where = {**where, "summary_index": 0}
                empty_part = {**part, "text": ""}
                yield "response.reasoning_summary_part.added", {**where, "part": empty_part}
                for piece in pieces(part["text"]):
                    yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
                yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
                yield "response.reasoning_summary_part.done", {**where, "part": part}
            case "message":
                (part,) = item["content"]
                key, kind = "text", "response.output_text"
                extra: JsonObject = {"logprobs": []}
                if part["type"] == "refusal":
                    key, kind, extra = "refusal", "response.refusal", {}
                where = {**where, "content_index": 0}
                yield "response.content_part.added", {**where, "part": {**part, key: ""}}
                for piece in pieces(part[key]):
                    yield f"{kind}.delta", {**where, **extra, "delta": piece}
                yield f"{kind}.done", {**where, **extra, key: part[key]}
                yield "response.content_part.done", {**where, "part": part}
            case "function_call":
                for piece in pieces(item["arguments"]):
                    yield "response.function_call_arguments.delta", {**where, "delta": piece}
                called = {"name": item["name"], "arguments": item["arguments"]}
                yield "response.function_call_arguments.done", {**where, **called}

        yield "response.output_item.done", {"output_index": index, "item": item}

    ended = "response.incomplete" if answer.say.stop == "length" else "response.completed"
    yield ended, {"response": _response(answer, output=output)}


def _output(answer: ModelOutput) -> list[JsonObject]:
    say = answer.say
    items: list[JsonObject] = []
    if say.reasoning:
        summary = [{"type": "summary_text", "text": say.reasoning}]
        items.append({"id": f"rs_{answer.id}", "type": "reasoning", "summary": summary})

    if say.text or not say.tool_calls:
        part: JsonObject = {
            "type": "output_text",
            "text": say.text,
            "annotations": [],
            "logprobs": [],
        }
        if say.stop == "refusal":
            part = {"type": "refusal", "refusal": say.text}
        head = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
        items.append({**head, "status": _status(answer), "content": [part]})

    for number, call in enumerate(say.tool_calls):
        head = {"id": answer.call_id("fc", number), "type": "function_call", "status": "completed"}
        words = {"name": call.name, "arguments": arguments_text(call.arguments)}
        items.append({**head, "call_id": answer.call_id("call", number), **words})

    return items


def _status(answer: ModelOutput) -> str:
    return "incomplete" if answer.say.stop == "length" else "completed"


def _response(answer: ModelOutput, *, output: list[JsonObject]) -> JsonObject:
    body = answer.request.body
    read, written = answer.parts
    if answer.say.stop == "length":
        incomplete_details = {"reason": "max_output_tokens"}
    else:
        incomplete_details = None

    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": CREATED,
        "status": _status(answer),
        "error": None,
        "incomplete_details": incomplete_details,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": body.get("temperature"),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }
