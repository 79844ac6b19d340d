"""Questions that MCP servers ask the user (elicitation), answered by the script of a condition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from karat.errors import AgentFault
from karat.records import Condition, Elicited, Sample

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

    from karat.mcp.attempts import Attempt

_WANTED = "must be accept, decline, cancel, {accept: {FIELD: VALUE}}, or a list of these"
_LONGEST = 2_000  # characters of a question


def answers_from(value: object) -> tuple[Elicited, ...]:
    """The answers in a key or a cell. Raises ValueError.

    >>> answers_from(["decline", {"accept": {"copies": 3}}])
    (Elicited(action='decline', content={}, message=''), Elicited(action='accept', content={'copies': 3}, message=''))
    """
    return tuple(map(_answer, value)) if isinstance(value, list) and value else (_answer(value),)


def _answer(value: object) -> Elicited:
    match value:
        case "accept" | "decline" | "cancel":
            return Elicited(action=value)
        case {"accept": dict(content), **rest} if not rest and all(isinstance(field, str) for field in content):
            return Elicited(action="accept", content=content)
    raise ValueError(_WANTED)


def answers_for(condition: Condition, sample: Sample) -> tuple[Elicited, ...]:
    """The answers of one trial; none if the sample's cell is empty. Raises AgentFault for an invalid cell."""
    if condition.elicit is None or condition.elicit.column is None:
        return condition.elicit.answers if condition.elicit is not None else ()
    cell = sample.metadata.get(condition.elicit.column)
    if cell is None or cell == "":
        return ()
    try:
        text = isinstance(cell, str) and cell not in ("accept", "decline", "cancel")
        return answers_from(json.loads(cell) if text else cell)
    except ValueError as error:
        message = f"the column `{condition.elicit.column}` {error if str(error) == _WANTED else _WANTED}"
        raise AgentFault("bad_elicit", message) from None


class Answering:
    """Answers the questions of one session, and records them for the call in progress."""

    def __init__(self, attempt: Attempt, server: str) -> None:
        self._attempt, self._server = attempt, server
        self._noted: list[Elicited] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """The SDK's callback, for requests of the server and for `input_required`."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        answer = self._attempt.elicited(self._server)
        form = answer.action == "accept" and isinstance(params, ElicitRequestFormParams)
        content = answer.content if form else {}
        self._noted.append(Elicited(action=answer.action, content=content, message=params.message[:_LONGEST]))
        return ElicitResult(action=answer.action, content=content if form else None)

    def noted(self) -> tuple[Elicited, ...]:
        """The questions and answers since the last call."""
        noted, self._noted = tuple(self._noted), []
        return noted
