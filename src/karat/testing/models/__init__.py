"""A scripted model server: speaks the APIs of OpenAI, Anthropic and Gemini, answers from a script
and costs nothing.

    with serve() as server:                     # without a script it makes up answers (see below)
        server.openai_url                       # http://127.0.0.1:PORT/v1: completions, responses
        server.anthropic_url                    # http://127.0.0.1:PORT    – messages, count_tokens
        server.gemini_url                       # http://127.0.0.1:PORT: generateContent
        server.requests                         # the requests, in order of arrival: list[Request]

    with serve([{"when": {"model": "judge"}, "say": ['{"score": 5}']},
                {"say": [{"tool_calls": [{"name": "search", "arguments": {"query": "lamp"}}]},
                         "It says: {{ tool_result }}"]}]) as server: ...
    with serve("script.yaml", log="requests.jsonl") as server: ...
    with serve(lambda request: {"status": 429, "retry_after": 1}) as server: ...

    python -m karat.testing.models [--script FILE] [--port N] [--log FILE]  # prints the URLs

Any API key is accepted. Every response can be streamed; the client decides.

**A script** is a YAML or JSON file (or the same in Python) with `rules`; the first one that matches
answers:

    format: 1
    rules:
      - when: {model: "claude-*", contains: lamp}    # all optional; see When in script.py
        say:                                         # the model's responses, one after another
          - {status: 429, retry_after: 1, times: 2}  # a fault; asked again: the next response
          - tool_calls:
            - {name: search, arguments: {query: lamp}}
            - {name: echo, arguments: {text: hi}}
          - text: "A match. {{ tool_result }}"
            usage: {input: 120, output: 9, cache_read: 64, reasoning: 4}

The n-th response (from 0) answers a conversation in which the model has answered n times since the
last user message with the text of `contains`, or since the start; the last response is repeated. So
a script needs no state, and trials that run at the same time do not affect each other; only faults
are counted, per conversation. A tool called `search` also matches an offered tool
`mcp__docs__search` or `docs_search`.

**Made-up answers** (if no rule matches, or with `improvise: true`): if structured output is
requested, values that fit its JSON schema, drawn by a hash of the conversation; otherwise the first
search tool is called with the question, and its result is the answer.
"""

from karat.testing.models.request import Message, OfferedTool, Request
from karat.testing.models.script import Rule, Script, ScriptedResponse, ToolUse, When, read_script
from karat.testing.models.server import ModelServer, serve

__all__ = [
    "Message",
    "ModelServer",
    "Offered",
    "OfferedTool",
    "Request",
    "Rule",
    "Said",
    "Say",
    "Script",
    "ScriptedResponse",
    "ToolUse",
    "When",
    "read_script",
    "serve",
]

Offered = OfferedTool
Said = Message
Say = ScriptedResponse  # their names before 2026-12
