"""The response if no rule matches: plausible enough to rehearse an experiment, and the same each
time.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Mapping

from karat.records import Json, JsonObject
from karat.testing.models.request import OfferedTool, Request
from karat.testing.models.script import ScriptedResponse, ToolUse

_SEARCH_WORDS = re.compile(r"search|find|query|look|retriev|ask", re.IGNORECASE)
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
# Arguments that are executed, and others that take no question: a dataset's text must never run as
# a command.
_RUN = re.compile(r"command|cmd|code|script", re.IGNORECASE)
_NO_QUERY = re.compile(r"path|file|url|skill", re.IGNORECASE)
# Tools of pydantic-ai, Claude Code and karat's judge: some models cannot be forced to call a tool.
_OUTPUT_TOOL = re.compile(r"^(?:final_result|StructuredOutput$|record_judgement$)")
_SKILL = re.compile(r"skills are available for use with the Skill tool:[\\n]+- ([\w.:-]+)(?::| \()")
_LOADED = "Base directory for this skill: "
_NOTE = re.compile(
    r"\b(minLength|maxLength|minItems|maxItems|minimum|maximum)\W{0,2}[=:] ?(-?\d+(?:\.\d+)?)"
)
_DEPTH = 6  # of a schema that refers to itself
_LONGEST_LIST = 3


def default_response(request: Request) -> ScriptedResponse:
    """Structured output if it is requested; else a skill and a search, then the filled-in form of
    the question, or the search result.
    """
    output = _output_tool(request)

    # Results of tools since the last question; a loaded skill's text follows them as a user
    # message
    if request.question.startswith(_LOADED):
        results = tuple(message.text for message in request.messages if message.role == "tool")
    else:
        results = request.tool_results

    search, calls = None, []
    if not results:
        search = _search_tool(request, but=output)
        if request.offered("Skill"):  # of Claude Code: it loads the first skill that is listed
            listed = _SKILL.search(json.dumps(request.body.get("messages")))
            if listed:
                calls.append(ToolUse(name="Skill", arguments={"skill": listed[1]}))

    if search is not None:
        tool, name = search

        properties = tool.schema.get("properties") or {}
        arguments = {
            name: value_of(properties.get(name, {}), f"{request.digest}.{name}", root=tool.schema)
            for name in tool.schema.get("required") or []
        }
        arguments = {**arguments, name: request.question}

        calls.append(ToolUse(name=tool.name, arguments=arguments))

    if calls:
        return ScriptedResponse(tool_calls=tuple(calls))
    if output is not None:
        return ScriptedResponse(
            tool_calls=(
                ToolUse(name=output.name, arguments=value_of(output.schema, request.digest)),
            )
        )

    schema = request.schema or _schema_in(request.system) or _schema_in(request.question)
    if schema is not None:
        return ScriptedResponse(text=json.dumps(value_of(schema, request.digest)))
    form = filled_form(request.question, request.digest)
    if form is not None:
        return ScriptedResponse(text=form)
    if results:
        return ScriptedResponse(text=results[-1].strip() or "Nothing was found.")
    return ScriptedResponse(
        text="This is a rehearsal: no model was asked, and I know nothing myself."
    )


def _output_tool(request: Request) -> OfferedTool | None:
    """The tool that returns structured output, if any."""
    if request.forced not in (None, "*"):
        return request.offered(str(request.forced))
    named = [tool for tool in request.tools if _OUTPUT_TOOL.match(tool.name)]
    if named:
        return named[0]
    if request.forced == "*" and len(request.tools) == 1:
        return request.tools[0]
    return None


def _search_tool(request: Request, *, but: OfferedTool | None) -> tuple[OfferedTool, str] | None:
    """The tool to search with and its argument for the question, chosen by name first, then by
    description.
    """
    if request.forced not in (None, "*"):
        return None
    usable = []
    for tool in request.tools:
        if tool is not but:
            properties = tool.schema.get("properties") or {}
            texts = []
            for name, field in properties.items():
                if isinstance(field, Mapping) and field.get("type") == "string":
                    texts.append(name)

            known = [name for name in _QUERY_NAMES if name in texts]
            required = [name for name in tool.schema.get("required") or [] if name in texts]
            if any(map(_RUN.search, required)):
                query_name = ""
            else:
                required = [name for name in required if not _NO_QUERY.search(name)]
                query_name = next(iter([*known, *required]), "")

            usable.append((tool, query_name))

    by_name = [(tool, name) for tool, name in usable if name and _SEARCH_WORDS.search(tool.name)]
    by_description = []
    for tool, name in usable:
        if name and _SEARCH_WORDS.search(tool.description):
            by_description.append((tool, name))

    return next(iter([*by_name, *by_description]), None)


def _schema_in(text: str) -> dict[str, object] | None:
    """The JSON schema in a prompt, where pydantic-ai puts it for models without structured
    output.
    """
    for match in re.finditer(r"schema[^{]{0,80}(\{)", text, re.IGNORECASE):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, match.start(1))
        except ValueError:
            continue

        if isinstance(value, dict) and ("properties" in value or "$ref" in value):
            return value

    return None


def value_of(
    schema: JsonObject, seed: str, *, root: JsonObject | None = None, depth: int = 0
) -> Json:
    """A value that fits the JSON schema, drawn by a hash of `seed`, so the same each time.

    >>> value_of(
    ...     {
    ...         "type": "object",
    ...         "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    ...     },
    ...     "x",
    ... )
    {'score': 1}
    """
    root = schema if root is None else root
    schema = _resolved(schema, root)
    # Clients put limits into the description for APIs that refuse them in the schema.
    noted = {
        name: float(number) for name, number in _NOTE.findall(str(schema.get("description", "")))
    }
    schema = {**noted, **schema}
    draw = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest())
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices:
        chosen: Json = choices[draw % len(choices)]
        return chosen

    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if not isinstance(kind, str):
        kind = "object" if "properties" in schema else "string"
    if kind == "object":
        properties = schema.get("properties") or {}
        wanted = [
            *properties,
            *(name for name in schema.get("required") or [] if name not in properties),
        ]
        if depth >= _DEPTH:
            wanted = list(schema.get("required") or [])
        found = {}
        for name in wanted:
            if depth < 3 * _DEPTH:
                found[name] = value_of(
                    properties.get(name, {}), f"{seed}.{name}", root=root, depth=depth + 1
                )

        return found

    if kind == "array":
        least = int(schema.get("minItems", 0))
        items = schema.get("items")
        if not isinstance(items, dict):
            return ["rehearsed"] * least
        many = max(
            least, min(int(schema.get("maxItems", _LONGEST_LIST)), 1 if depth < _DEPTH else 0)
        )
        return [
            value_of(items, f"{seed}.{number}", root=root, depth=depth + 1)
            for number in range(many)
        ]

    if kind in ("integer", "number"):
        return _number(schema, draw, whole=kind == "integer")
    if kind == "boolean":
        return draw % 2 == 0
    if kind == "null":
        return None

    text = f"Rehearsed, {draw % 10**6:06d}."
    least = int(schema.get("minLength", 0))
    most = schema.get("maxLength")
    return text.ljust(least, ".")[: int(most) if most is not None else None]


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """The schema with references resolved, and the first alternative that is not null."""
    for _ in range(_DEPTH):
        if "$ref" in schema:
            here = root
            for key in filter(None, str(schema["$ref"]).removeprefix("#").split("/")):
                below = here.get(key)
                here = below if isinstance(below, dict) else {}

            schema = {**here, **{key: value for key, value in schema.items() if key != "$ref"}}
            continue

        choices = next(
            (schema[key] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None
        )
        if choices is None:
            break
        chosen = next((choice for choice in choices if choice.get("type") != "null"), choices[0])
        others = {
            key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")
        }
        schema = {**others, **chosen}

    return dict(schema)


def _number(schema: JsonObject, draw: int, *, whole: bool) -> int | float:
    step = schema.get("multipleOf") or 1
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if whole:
        if low is None:
            first = 1
        else:
            first = int(low) + ("minimum" not in schema)

        if high is None:
            last = first + 4
        else:
            last = int(high) - ("maximum" not in schema)

        return first + step * (draw % (max(0, last - first) // step + 1))

    if low is None:
        low = 0.0
    else:
        low = float(low)

    if high is None:
        high = low + 1.0
    else:
        high = float(high)

    return round(low + (high - low) * (draw % 99 + 1) / 100, 6)


_FORM = re.compile(
    r"in this form\b[^\n:]{0,200}:[ \t]*\n(?P<lines>(?:[ \t]*[^\n:]{1,100}:[^\n]{0,2000}(?:\n"
    r"|$)){1,100})"
)
_FROM_TO = re.compile(r"(?P<low>-?\d+(?:\.\d+)?) to \D?(?P<high>-?\d+(?:\.\d+)?)")
_LEAST = re.compile(r"(?P<low>-?\d+(?:\.\d+)?) or more\b")
_AT_MOST = re.compile(r"(?P<high>-?\d+(?:\.\d+)?) or less\b")
_SPAN = 100.0  # for a number whose range has no end


def filled_form(question: str, seed: str) -> str | None:
    """The form in a question, filled in by a hash of `seed`, so the same each time. None: there is
    no form.

    >>> filled_form("A or B? End your answer with one line in this form:\\nchoice: A", "x")
    'choice: A'
    """
    forms = list(_FORM.finditer(question))
    if not forms:
        return None
    dice = random.Random(hashlib.blake2b(seed.encode(), digest_size=8).digest())
    lines = (line.partition(":") for line in forms[-1]["lines"].splitlines())
    return "\n".join(
        f"{name.strip()}: {_answer(wanted.strip(), dice)}" for name, _, wanted in lines
    )


def _answer(wanted: str, dice: random.Random) -> str:
    labels, in_order, _ = wanted.partition(" in your order")
    if in_order:
        ranked = labels.split(", ")
        return ", ".join(dice.sample(ranked, len(ranked)))

    if (span := _span(wanted)) is not None:
        low, high = span
        first, last = math.ceil(low), math.floor(high)
        if first < last:  # a whole number is valid wherever a number is
            return str(dice.randint(first, last))
        return f"{(low + high) / 2:g}"

    options = []
    for part in wanted.split(", "):
        for option in part.split(" or "):
            if option:
                options.append(option)

    if len(options) > 1 or len(wanted.split()) == 1:
        return dice.choice(options)
    return "Rehearsed, in three words."


def _span(wanted: str) -> tuple[float, float] | None:
    """The range of a number, as far as the form states it; None if it does not ask for a number."""
    limits = next(
        (
            hit.groupdict()
            for pattern in (_FROM_TO, _LEAST, _AT_MOST)
            if (hit := pattern.search(wanted))
        ),
        None,
    )
    if limits is None:
        if re.search(r"\bnumber\b", wanted):
            return (1.0, _SPAN)
        return None

    if "low" not in limits:
        return float(limits["high"]) - _SPAN, float(limits["high"])
    low = float(limits["low"])
    return low, float(limits["high"]) if "high" in limits else low + _SPAN
