"""The system prompts that a participant of a study read, filled with who they are by the engine's own function."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec

from karat.errors import KaratError
from karat.journal import RunInfo
from karat.kinds import of_sample
from karat.records import AgentSpec, Condition, Sample

__all__ = ["Prompt", "prompts"]

_LONGEST = 100_000  # characters of a template that is filled
_MOST_FILLED = 10_000_000  # characters that can come of it, at most: its fields times the whole profile
_MOST_CONDITIONS = 50

What = Literal["read", "none", "template", "unknown"]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What stood before the first task."""

    conditions: list[tuple[int, str]]  # place in the plan, and name
    what: What  # as it was read; there was none; it could not be filled; the run folder does not keep it
    text: str = ""
    other: bool = False  # whether the run notes the digest of another text: secrets stand in it as ${NAME}


def prompts(info: RunInfo, sample: Sample, seat: int | None) -> list[Prompt]:
    """One a text, with the conditions under which it was read, in the plan's order. `seat`: of a group, from 0."""
    found: dict[tuple[What, str, bool], list[tuple[int, str]]] = {}
    for at, name in enumerate(info.plan.conditions[:_MOST_CONDITIONS]):
        found.setdefault(_prompt(info, name, sample, seat), []).append((at, name))
    return [Prompt(conditions=names, what=what, text=text, other=other) for (what, text, other), names in found.items()]


def _prompt(info: RunInfo, name: str, sample: Sample, seat: int | None) -> tuple[What, str, bool]:
    choice = info.experiment.get(f"conditions.{name}.system_prompt")
    template = None if choice is None else choice.value
    if choice is None or not (template is None or isinstance(template, str)):
        return "unknown", "", False
    noted = info.prompts.get(name)
    other = noted is not None and noted != sha256((template or "").encode("utf-8", "surrogatepass")).hexdigest()
    if not template:
        return "none", "", other
    if len(template) > _LONGEST or (1 + template.count("{{")) * _size(sample, seat) > _MOST_FILLED:
        return "template", template, other
    condition = Condition(name=name, position=0, digest="", agent=AgentSpec(type=""), system_prompt=template)
    try:
        return "read", of_sample(sample).prompt(condition, sample, seat) or "", other
    except (AttributeError, KaratError, LookupError, TypeError, ValueError):
        return "template", template, other  # samples that no study made


def _size(sample: Sample, seat: int | None) -> int:
    """Of the profile, in bytes."""
    members = sample.detail.get("members")
    who = members[seat] if isinstance(members, list) and seat is not None and seat < len(members) else sample.detail
    return len(msgspec.json.encode(who.get("profile"))) if isinstance(who, dict) else 0
