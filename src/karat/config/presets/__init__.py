"""System prompts that come with karat: what a study's participants are told of who they are, one file each.

The first line of a file says what the preset is; the rest is the prompt, in which `{{ profile.… }}`
stands for what the study says of a participant. A line that begins with `{{? profile.age }}` is
left out where a study says nothing of age.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Preset", "presets"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One way to say who takes part."""

    name: str
    summary: str
    text: str | None  # None: no system prompt


@cache
def presets() -> dict[str, Preset]:
    """Name → preset, from the one that says least to the one that says most."""
    found = {}
    for name in ("empty", "human", "demographic", "background"):
        first, _, rest = (files(__name__) / f"{name}.md").read_text(encoding="utf-8").partition("\n")
        found[name] = Preset(name=name, summary=first.lstrip("# ").strip(), text=rest.strip() or None)
    return found
