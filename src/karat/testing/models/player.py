"""Plays a script: chooses what is said to a request, and counts the faults that were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from karat.testing.models.improvise import improvised
from karat.testing.models.request import Request
from karat.testing.models.script import Hook, Rule, Say, Script, ToolUse, filled

__all__ = ["Cue", "Player"]


@dataclass(frozen=True, kw_only=True)
class Cue:
    """What is said, and by which rule: from 0; None: improvised."""

    say: Say
    rule: int | None = None


class Player:
    """One performance of a script. Not for several threads."""

    def __init__(self, script: Script, hook: Hook | None = None) -> None:
        self._script, self._hook = script, hook
        self._used: Counter[int] = Counter()  # rule → requests that it answered
        self._asked: Counter[tuple[int, str, int]] = Counter()  # rule, conversation, step → requests

    @property
    def models(self) -> tuple[str, ...]:
        """What a listing of models names."""
        return self._script.models

    def cue(self, request: Request, *, busy: int) -> Cue:
        """What is said to the request; `busy` requests are being answered, this one included."""
        if self._hook is not None:
            told = self._hook(request)
            return Cue(say=_spoken(_as_say(told), request))
        for number, rule in enumerate(self._script.rules):
            limit = rule.when.times
            if (limit is None or self._used[number] < limit) and rule.when.holds(request, busy=busy):
                self._used[number] += 1
                return Cue(say=_spoken(self._step(number, rule, request), request), rule=number)
        return Cue(say=improvised(request))

    def _step(self, number: int, rule: Rule, request: Request) -> Say:
        steps = _steps(rule.say)
        position = min(_spoken_since(rule.when.contains, request), len(steps) - 1)
        faults, utterance = steps[position]
        key = (number, request.digest, position)
        before = self._asked[key]
        self._asked[key] += 1
        if before < len(faults):
            return faults[before]
        return utterance or faults[-1]


def _steps(said: tuple[Say, ...]) -> list[tuple[list[Say], Say | None]]:
    """Each utterance with the faults that come before it; None: faults without end."""
    steps: list[tuple[list[Say], Say | None]] = []
    faults: list[Say] = []
    for one in said:
        if one.fault:
            faults += [one] * one.times
        else:
            steps.append((faults, one))
            faults = []
    return [*steps, (faults, None)] if faults else steps


def _spoken_since(text: str | None, request: Request) -> int:
    """How often the model has spoken since the last message of the user that holds the text."""
    count = 0
    for said in reversed(request.messages):
        if said.role == "assistant":
            count += 1
        elif said.role == "user" and text is not None and text in said.text:
            break
    return count


def _as_say(told: str | Say | Mapping[str, Any] | None) -> Say:
    if told is None:
        return Say(improvise=True)
    if isinstance(told, str):
        return Say(text=told)
    return told if isinstance(told, Say) else Say.model_validate(told)


def _spoken(say: Say, request: Request) -> Say:
    """With its templates filled and its tools called by the names under which they are offered."""
    if say.improvise:
        made = improvised(request)
        return say.model_copy(update={"text": made.text, "tool_calls": made.tool_calls})
    calls = tuple(_call(call, request) for call in say.tool_calls)
    texts = {"text": filled(say.text, request), "reasoning": filled(say.reasoning, request)}
    return say.model_copy(update={**texts, "tool_calls": calls})


def _call(call: ToolUse, request: Request) -> ToolUse:
    tool = request.offered(call.name)
    arguments = call.arguments if isinstance(call.arguments, str) else filled(call.arguments, request)
    return ToolUse(name=tool.name if tool is not None else call.name, arguments=arguments)
