"""What the conditions of a study say of its participants: presets, and `{{ profile.… }}` in system prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

from karat.errors import did_you_mean
from karat.kinds import Preset
from karat.kinds.study.people import known_to, missing_in, optional_names

__all__ = ["presets", "prompt_problems"]

Attributes = Mapping[str, Collection[str]]
"""Study → the attributes of its participants."""


@cache
def presets() -> dict[str, Preset]:
    """Name → preset, from the one that says least to the one that says most.

    The first line of a file says what the preset is; the rest is the prompt, in which `{{ profile.… }}`
    stands for what the study says of a participant. A line that begins with `{{? profile.age }}` is
    left out where a study says nothing of age.
    """
    found = {}
    for name in ("empty", "human", "demographic", "background"):
        file = files("karat.kinds.study") / "presets" / f"{name}.md"
        first, _, rest = file.read_text(encoding="utf-8").partition("\n")
        found[name] = Preset(name=name, summary=first.lstrip("# ").strip(), text=rest.strip() or None)
    return found


def prompt_problems(text: str, preset: str | None, known: Attributes) -> tuple[list[str], list[str]]:
    """Faults and warnings of a system prompt, or of a preset's."""
    return _of_preset(text, preset, known) if preset is not None else (_of_text(text, known), [])


def _of_text(text: str, known: Attributes) -> list[str]:
    """One problem a name, with the studies that do not have it."""
    lacking: dict[str, list[str]] = {}
    for study, attributes in known.items():
        for name in missing_in(text, attributes):
            lacking.setdefault(name, []).append(study)
    names = known_to(text, {name for attributes in known.values() for name in attributes})
    lacking |= {name: list(known) for name in optional_names(text) if name not in names}
    problems = []
    for name, studies in lacking.items():
        if name.startswith("?"):
            problems.append(f"{{{{{name} }}}} must stand at the beginning of the line that is left out")
        elif name in names:
            remedy = f"begin the line with {{{{? {name} }}}}, and it is left out there"
            problems.append(f"asks for {{{{ {name} }}}}, which {_listed(studies)} not have; {remedy}")
        elif not names:
            nothing = "the study says nothing of its participants (`participants.profile`)"
            problems.append(f"asks for {{{{ {name} }}}}, and {nothing}")
        else:
            problems.append(f"asks for {{{{ {name} }}}}, which no participant has{did_you_mean(name, names)}")
    return problems


def _of_preset(text: str, name: str, known: Attributes) -> tuple[list[str], list[str]]:
    """A preset that would say nothing of anybody is another preset by a wrong name."""
    optional = dict.fromkeys(optional_names(text))
    silent = [study for study, attributes in known.items() if not set(optional) & set(known_to(text, attributes))]
    if not silent:
        return [], []
    wanted = [one.removeprefix("profile.") for one in optional if one != "rest"]
    which = "anything of participants" if "rest" in optional else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    without = f"'{name}' says who somebody is, and {_listed(silent)} not say {which}"
    if len(silent) == len(known):
        return [f"{without}; use `preset: human`, or write a `system_prompt`"], []
    return [], [f"{without}: there participants are told that they take part, and nothing else"]


def _listed(studies: Collection[str]) -> str:
    """The studies and their verb."""
    names = [f"'{study}'" for study in studies]
    if len(names) == 1:
        return f"study {names[0]} does"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"studies {', '.join(names[:5])}{more} do"
