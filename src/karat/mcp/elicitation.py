"""Questions that MCP servers ask the user (elicitation), answered by the script of a condition."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from karat.errors import AgentFault
from karat.records import Condition, Elicited, JsonObject, Sample, ServerEvent

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

    from karat.mcp.attempts import Attempt

_WANTED = "must be accept, decline, cancel, {accept: {FIELD: VALUE}}, or a list of these"
_LONGEST = 2_000  # characters of a question
_REFERENCE = re.compile(r'"\$(?:dynamic|recursive)?[Rr]ef":')


def answers_from(value: object) -> tuple[Elicited, ...]:
    """The answers in a key or a cell. Raises ValueError.

    >>> [
    ...     (answer.action, answer.content)
    ...     for answer in answers_from(["decline", {"accept": {"copies": 3}}])
    ... ]
    [('decline', {}), ('accept', {'copies': 3})]
    """
    if isinstance(value, list) and value:
        return tuple(map(_answer, value))
    return (_answer(value),)


def _answer(value: object) -> Elicited:
    match value:
        case "accept" | "decline" | "cancel":
            return Elicited(action=value)
        case {"accept": dict(content), **rest} if not rest and all(
            isinstance(field, str) for field in content
        ):
            return Elicited(action="accept", content=content)

    raise ValueError(_WANTED)


def answers_for(condition: Condition, sample: Sample) -> tuple[Elicited, ...]:
    """The answers of one trial; none if the sample's cell is empty.

    Raises AgentFault for an invalid cell.
    """
    elicit = condition.elicit
    if elicit is None:
        return ()
    if elicit.column is None:
        return elicit.answers
    cell = sample.metadata.get(elicit.column)
    if cell in (None, ""):
        return ()
    try:
        text = isinstance(cell, str) and cell not in ("accept", "decline", "cancel")
        return answers_from(json.loads(cell) if text else cell)
    except ValueError as error:
        message = f"the column `{elicit.column}` {error if str(error) == _WANTED else _WANTED}"
        raise AgentFault("bad_elicit", message) from None


class Answering:
    """Answers the questions of one session, and records them for the call in progress."""

    def __init__(
        self, attempt: Attempt, server: str, *, on_news: Callable[[ServerEvent], object]
    ) -> None:
        """`on_news`: hears that the script's answer did not fit the form."""
        self._attempt = attempt
        self._server = server
        self._on_news = on_news
        self._noted: list[Elicited] = []

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """The SDK's callback, for requests of the server and for `input_required`."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        answer = self._attempt.elicited(self._server)
        action = answer.action
        content = None
        problem = ""
        if action == "accept" and isinstance(params, ElicitRequestFormParams):
            content, problem = filled_in(dict(params.requested_schema), answer.content)
        if problem:
            action = "decline"
            content = None
            self._on_news(ServerEvent(server=self._server, what="declined", problem=problem))

        message = params.message[:_LONGEST]
        self._noted.append(
            Elicited(action=action, content=content or {}, message=message, problem=problem)
        )
        return ElicitResult(action=action, content=content)

    def noted(self) -> tuple[Elicited, ...]:
        """The questions and answers since the last call."""
        noted = tuple(self._noted)
        self._noted = []
        return noted


def filled_in(schema: JsonObject, given: JsonObject) -> tuple[JsonObject, str]:
    """What a form sends whose fields begin with their defaults, and why no form can; empty if one
    can.

    >>> filled_in({"properties": {"copies": {"type": "integer", "default": 1}}}, {})
    ({'copies': 1}, '')
    >>> filled_in({"properties": {"copies": {"type": "integer"}}}, {"copies": "two"})
    ({'copies': 'two'}, "'copies': 'two' is not of type 'integer'")
    """
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import validator_for

    fields = schema.get("properties")
    if not isinstance(fields, dict):
        fields = {}
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    content = defaults | given
    if unknown := [name for name in given if name not in fields]:
        return content, f"the form has no field {unknown[0]!r}"
    if _REFERENCE.search(json.dumps(schema)):  # which would be fetched
        return content, "the form's schema is not valid: it refers to another"
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return content, f"the form's schema is not valid: {error.message[:_LONGEST]}"

    form: Any = kind(schema, format_checker=kind.FORMAT_CHECKER)
    fault = best_match(form.iter_errors(content))
    if fault is None:
        return content, ""
    where = "".join(f"{name!r}: " for name in fault.absolute_path)
    return content, f"{where}{fault.message[:_LONGEST]}"
