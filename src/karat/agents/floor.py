"""The agent that knows nothing: the score that a real agent has to beat, without a key."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import BaseModel, ConfigDict

from karat.agents import AgentSetting, turns_from
from karat.kinds import of_sample
from karat.mcp import Tool, Tools
from karat.records import Condition, History, JsonObject, Reply, Sample, Trial, Turn

__all__ = ["Floor"]

NO_TOOL = "I do not know: I know nothing by myself, and there is nothing here to search in."
NOTHING_FOUND = "I do not know: I know nothing by myself, and the search found nothing."

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SEARCH_WORDS = re.compile(r"(?:search|find|quer|look|retriev|ask|recall)", re.IGNORECASE)
# A baseline changes nothing: such tools are never called, whatever arguments they take.
_ACTING = re.compile(
    r"(?i:add|append|checkout|commit|copy|create|delete|drop|echo|edit|insert|move|publish|put|remove|rename|reset|"
    r"save|send|set|simulate|start|stop|store|submit|toggle|trigger|update|upload|write)"
)
_QUERY_NAMES = (
    "query",
    "q",
    "question",
    "search",
    "search_query",
    "keywords",
    "terms",
    "text",
    "input",
    "prompt",
)
_LIMIT_NAMES = ("limit", "k", "top_k", "n", "count", "max_results", "num_results")
_TOOLS_SHOWN = 3  # in the message that none is suitable
_TEXT_KEYS = ("text", "content", "snippet", "answer", "body", "description")
_ONE_SENTENCE = re.compile(r"\b(?:one|a single|single)[- ]sentence\b", re.IGNORECASE)
_SHORT = re.compile(
    r"\b(?:terse|tersely|short|shortly|brief|briefly|concise|concisely)\b", re.IGNORECASE
)


class Floor:
    """Searches with the condition's first search tool and gives the first result. Also `type:
    floor`.

    Without such a tool, it gives what the kind of dataset can look up in the sample's own document.
    It computes nothing, so it shows what reading alone is worth. Where a kind has random replies,
    it answers at random, all answers equally likely, in the requested form: the score by chance.
    The same trial always gets the same answer. If it finds nothing, it answers that it does not
    know. It is free.
    """

    listed_as = "search-baseline"

    class Options(BaseModel):
        """Everything the experiment file may set."""

        model_config = ConfigDict(extra="forbid")

        # whether a system prompt that asks for brevity shortens the answer
        obey_length: bool = True
        """Whether a system prompt that asks for one sentence, or for a short answer, is obeyed: the
        first result is cut to its first sentence or paragraph.
        """

    offline = True
    reports_tool_calls = True

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._options = options
        self._toolbox = setting.toolbox

    @staticmethod
    def tool_advice(tools: Sequence[Tool]) -> str | None:
        """Why it can use none of a condition's tools, for `karat check`; None if it can use one."""
        return unsuitable(tools)

    @asynccontextmanager
    async def session(
        self, condition: Condition, sample: Sample, trial: Trial | None = None, first: int = 0
    ) -> AsyncIterator[_Session | _RandomAnswers]:
        """One trial's session, with the condition's servers open."""
        async with self._toolbox.open(condition) as tools:
            if of_sample(sample).has_random_replies:
                yield _RandomAnswers(sample, first, seed=trial.seed if trial is not None else 0)
                return

            if self._options.obey_length:
                prompt = condition.system_prompt or ""
            else:
                prompt = ""

            short = "paragraph" if _SHORT.search(prompt) else "full"
            yield _Session(tools, sample, "sentence" if _ONE_SENTENCE.search(prompt) else short)


class _RandomAnswers:
    """Answers at random: it sees only which fields there are."""

    def __init__(self, sample: Sample, first: int, *, seed: int) -> None:
        self._sample = sample
        self._seed = seed
        self._turns = turns_from(sample, first)
        self._asked = 0

    def restore(self, history: History) -> None:
        """Notes the progress so far."""
        self._asked += len(history)

    async def ask(self, turn: Turn) -> Reply:
        number = self._turns[self._asked]
        self._asked += 1
        text = of_sample(self._sample).random_reply(
            self._sample, number, random.Random(f"{self._seed}/{number}")
        )
        return Reply(text=text, dollars=0.0, model="floor")


class _Session:
    def __init__(self, tools: Tools, sample: Sample, length: str) -> None:
        self._tools = tools
        self._sample = sample
        self._length = length

    def restore(self, history: History) -> None:
        """Nothing to restore: it takes earlier questions from the sample."""

    async def ask(self, turn: Turn) -> Reply:
        before = len(self._tools.calls)
        text = await self._search(turn)
        return Reply(text=text, tool_calls=self._tools.calls[before:], dollars=0.0, model="floor")

    async def _search(self, turn: Turn) -> str:
        """The first result of the first search tool; without one, what the kind finds in the sample
        itself.
        """
        question = turn.question
        search = _search_tool(self._tools.tools)
        if search is None:
            found = of_sample(self._sample).look_up(self._sample, turn)
            return found or unsuitable(self._tools.tools) or NO_TOOL

        tool, arguments = search
        call = await self._tools.call(
            tool.server, tool.name, {**arguments, _query_name(tool): question}
        )
        result = _first_result(call.result or "")
        if result:
            # The first paragraph that is not a heading, or its first sentence. A short text is
            # unchanged.
            if self._length == "full":
                return result
            paragraphs = [part.strip() for part in re.split(r"\n\s*\n", result)]
            first = next((part for part in paragraphs if part and not part.startswith("#")), result)
            if self._length == "paragraph":
                return first
            return re.split(r"(?<=[.!?])\s+(?=[A-Z`*\"(])", first, maxsplit=1)[0]

        return NOTHING_FOUND


def _search_tool(tools: tuple[Tool, ...]) -> tuple[Tool, JsonObject] | None:
    """The tool to search with, and its arguments other than the query.

    By its name first, then by its description, then any that takes a query.
    """
    usable = [tool for tool in tools if _query_name(tool) and not _acts(tool)]
    for says_so in (_words, lambda tool: _WORD.findall(tool.description), lambda _: ["search"]):
        for tool in usable:
            if any(_SEARCH_WORDS.match(word) for word in says_so(tool)):
                limit = next(
                    (
                        name
                        for name in _LIMIT_NAMES
                        if _type_of(tool, name) in ("integer", "number")
                    ),
                    None,
                )
                return tool, {limit: 1} if limit else {}

    return None


def unsuitable(tools: Sequence[Tool]) -> str | None:
    """Why none of the tools can search; None if one can, or if there are none."""
    if not tools or _search_tool(tuple(tools)) is not None:
        return None
    searching = [tool for tool in tools if any(_SEARCH_WORDS.match(word) for word in _words(tool))]
    shown = []
    for tool in (searching or tools)[:_TOOLS_SHOWN]:
        required = ", ".join(map(str, tool.input_schema.get("required") or []))
        if required:
            obstacle = f"needs {required}"
        else:
            obstacle = "takes no query"

        shown.append(f"{tool.name} {'does more than search' if _acts(tool) else obstacle}")

    more = len(searching or tools) - len(shown)
    listed = "; ".join(shown) + (f"; {more} more" if more else "")
    return (
        f"I do not know: I know nothing by myself, and no tool here searches with a question "
        f"alone ({listed})."
    )


def _words(tool: Tool) -> list[str]:
    """search_files, search-files and searchFiles are two words."""
    return _WORD.findall(tool.name)


def _acts(tool: Tool) -> bool:
    return any(_ACTING.fullmatch(word) for word in _words(tool))


def _query_name(tool: Tool) -> str:
    """The argument that takes the question; empty if the tool has none, or requires others."""
    required = tool.input_schema.get("required") or []
    for name in _QUERY_NAMES:
        if _type_of(tool, name) == "string" and set(required) <= {name, *_LIMIT_NAMES}:
            return name

    searches = any(_SEARCH_WORDS.match(word) for word in _words(tool))
    if len(required) == 1 and _type_of(tool, required[0]) == "string" and searches:
        return str(required[0])
    return ""


def _type_of(tool: Tool, name: str) -> str | None:
    """The argument's type; `string` also if null is allowed, as for optional arguments."""
    described = (tool.input_schema.get("properties") or {}).get(name)
    if not isinstance(described, dict):
        return None
    types = []
    for choice in (described, *(described.get("anyOf") or ())):
        if isinstance(choice, dict):
            types.append(choice.get("type"))

    kinds = [
        kind for listed in types for kind in (listed if isinstance(listed, list) else [listed])
    ]
    return next((kind for kind in kinds if isinstance(kind, str) and kind != "null"), None)


def _first_result(text: str) -> str:
    """The first of several results if the text is JSON; else the text, as only one result was
    requested.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text.strip()

    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), list):
        value = next(iter(value.values()))
    if isinstance(value, list):
        if value:
            value = value[0]
        else:
            value = ""

    if isinstance(value, dict):
        value = next(
            (value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), json.dumps(value)
        )

    if isinstance(value, str):
        return value.strip()
    return str(value)
