"""Responses of providers' SDKs, or their JSON, recognized by their shape: OpenAI's ChatCompletion
and Response, Anthropic's Message, Google's GenerateContentResponse.

Of text, what follows the last tool that the provider ran is the answer; what comes before it is
the model's commentary.
"""

from __future__ import annotations

from collections.abc import Sequence

from karat.agents._reading import (
    Calls,
    asks,
    dollars_of,
    empty_answer,
    get,
    items,
    joined_blocks,
    name_in,
    role_of,
    several,
    unfinished,
)
from karat.errors import AgentFault
from karat.models.usage import usage_from
from karat.records import Reply, was_cut
from karat.thoughts import without_thoughts


def provider_reply(result: object) -> Reply | None:
    """The reply in a provider's response; None if it is none.

    Raises TrialFault if it holds no answer: it was refused, cut before its first word, or asks for
    a tool.
    """
    choices = get(result, "choices")
    content = get(result, "content")
    for choice in items(choices):
        completed = _ended(choice) and get(choice, "text") is not None
        if completed or get(choice, "message") is not None:
            return _from_completion(result, items(choices))

    if get(result, "object") == "chat.completion" and not choices:
        raise _no_answer(result)
    if get(result, "object") == "response" and isinstance(get(result, "output"), list):
        return _from_response(result)
    if any(get(item, "type") == "message" and role_of(item) for item in items(result)):
        return _from_response({"output": result})
    by_anthropic = get(result, "type") == "message" and get(result, "role") == "assistant"
    if by_anthropic and isinstance(content, list):
        return _from_anthropic(result, items(content))
    feedback = get(result, "prompt_feedback")
    candidates = items(get(result, "candidates"))
    by_google = hasattr(result, "candidates") and hasattr(result, "prompt_feedback")
    written = any(_ended(one) or get(get(one, "content"), "parts") for one in candidates)
    if by_google or feedback is not None or written:
        if len(candidates) > 1:
            raise several([f"candidates[{place}]" for place in range(len(candidates))])
        if not candidates:
            blocked = get(feedback, "block_reason") is not None
            raise empty_answer("content_filter" if blocked else None)

        said = _Said()
        for part in items(get(get(candidates[0], "content"), "parts")):
            if get(part, "function_call") is not None:
                raise unfinished()
            text = get(part, "text")
            if isinstance(text, str) and get(part, "thought"):
                said.thought(text)
            elif isinstance(text, str):
                said.text(text)

        stopped = name_in(candidates[0], "finish_reason")
        if not said.answer:
            raise empty_answer(stopped)
        return Reply(
            text=said.answer,
            reasoning=said.reasoning,
            usage=usage_from(get(result, "usage_metadata")),
            model=name_in(result, "model_version"),
            stop_reason=stopped,
        )

    return None


def _ended(choice: object) -> bool:
    """Whether it says why it ends: what only has such a name may be a program's own."""
    return get(choice, "finish_reason") is not None


def _from_completion(result: object, choices: Sequence[object]) -> Reply:
    """OpenAI's ChatCompletion, and what others return in its shape."""
    if len(choices) > 1:
        raise several([f"choices[{place}].message.content" for place in range(len(choices))])
    message = get(choices[0], "message")
    if asks(message):
        raise unfinished()
    stopped = name_in(choices[0], "finish_reason")
    if message is None:
        said = get(choices[0], "text")
    else:
        said = get(message, "content")

    text, thought = without_thoughts(joined_blocks(said), cut=was_cut(stopped))
    if not text:
        raise empty_answer("refusal" if get(message, "refusal") else stopped)
    usage = get(result, "usage")
    cost = get(usage, "cost")  # OpenRouter's
    if cost is None:
        cost = get(get(result, "_hidden_params"), "response_cost")  # LiteLLM's
    return Reply(
        text=text,
        reasoning=name_in(message, "reasoning_content", "reasoning") or thought,
        usage=usage_from(usage),
        dollars=dollars_of(cost),
        model=name_in(result, "model"),
        stop_reason=stopped,
    )


# Calls that the client has to answer; the provider answers all others itself.
_CLIENT_CALLS = (
    *("function_call", "custom_tool_call", "computer_call", "local_shell_call"),
    *("apply_patch_call", "mcp_approval_request"),
)


def _from_response(result: object) -> Reply:
    """OpenAI's Response, with the calls of MCP servers and hosted tools that OpenAI made."""
    calls = Calls()
    said = _Said()
    refused = False
    for item in items(get(result, "output")):
        kind = str(get(item, "type"))
        if kind in _CLIENT_CALLS:
            raise unfinished()
        if kind == "message":
            content = items(get(item, "content"))
            refused = refused or any(get(block, "type") == "refusal" for block in content)
            said.text(joined_blocks(content), comments=get(item, "phase") == "commentary")
        elif kind == "reasoning":
            said.thought("\n".join(str(get(part, "text")) for part in items(get(item, "summary"))))
        elif kind.endswith("_call"):
            name = get(item, "name") or kind  # a hosted tool has only a type
            server = get(item, "server_label")
            calls.called(get(item, "id"), name, get(item, "arguments"), server=server)
            error = get(item, "error")
            why = get(error, "message") or get(error, "content") or error
            outcome = get(item, "output") if error is None else why
            if outcome is not None:
                calls.returned(get(item, "id"), outcome, failed=error is not None)
            said.tool()

    status = get(result, "status")
    if status in ("queued", "in_progress"):
        raise AgentFault("bad_reply", f"the response is not finished (status '{status}')")
    stopped = name_in(get(result, "incomplete_details"), "reason")
    if not said.answer:
        if get(result, "error") is not None:
            raise _no_answer(result)
        raise empty_answer("refusal" if refused else stopped)

    return Reply(
        text=said.answer,
        reasoning=said.reasoning,
        tool_calls=calls.joined(),
        usage=usage_from(get(result, "usage")),
        model=name_in(result, "model"),
        stop_reason=stopped,
    )


def _from_anthropic(result: object, content: Sequence[object]) -> Reply:
    """Anthropic's Message, with the calls of MCP servers and tools that Anthropic made."""
    calls = Calls()
    said = _Said()
    for block in content:
        kind = str(get(block, "type"))
        if kind == "tool_use":
            raise unfinished()
        if kind == "text":
            said.text(str(get(block, "text")))
        elif kind == "thinking":
            said.thought(str(get(block, "thinking")))
        elif kind in ("mcp_tool_use", "server_tool_use"):
            server = get(block, "server_name")
            calls.called(get(block, "id"), get(block, "name"), get(block, "input"), server=server)
        elif kind.endswith("_tool_result"):
            failed = get(block, "is_error") is True
            calls.returned(get(block, "tool_use_id"), get(block, "content"), failed=failed)
            said.tool()

    stopped = name_in(result, "stop_reason")
    if stopped == "pause_turn":
        raise AgentFault("bad_reply", "the turn was paused: send it back so that it continues")
    if not said.answer:
        raise empty_answer(stopped)
    return Reply(
        text=said.answer,
        reasoning=said.reasoning,
        tool_calls=calls.joined(),
        usage=usage_from(get(result, "usage")),
        model=name_in(result, "model"),
        stop_reason=stopped,
    )


class _Said:
    """What a model wrote in one response, part by part."""

    def __init__(self) -> None:
        self._texts = [""]  # one for the text after each tool
        self._thoughts: list[str] = []

    def text(self, text: str, *, comments: bool = False) -> None:
        self._texts[-1] += text
        if comments:
            self.tool()

    def thought(self, text: str) -> None:
        self._thoughts.append(text)

    def tool(self) -> None:
        self._texts.append("")

    @property
    def answer(self) -> str:
        """The last text; "" if there is none."""
        return next(filter(None, reversed(self._texts)), "")

    @property
    def reasoning(self) -> str | None:
        return "\n\n".join(filter(None, self._thoughts)) or None


def _no_answer(result: object) -> AgentFault:
    """The provider's own error, as far as the response has one."""
    message = get(get(result, "error"), "message") or "it holds no choices"
    return AgentFault("provider_error", f"the response failed: {message}", retriable=True)
