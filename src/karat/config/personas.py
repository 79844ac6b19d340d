"""What the conditions of a study say of its participants: presets, and `{{ profile.… }}` in system prompts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from karat import plugins
from karat.config.reading import DatasetPart, Reading
from karat.errors import BadDataset, BadOption, did_you_mean
from karat.kinds import PromptNames, completed

__all__ = ["prompt_problems"]

Attributes = Mapping[str, Collection[str]]
Names = Callable[[str, Collection[str]], PromptNames]


def prompt_problems(reading: Reading, text: str, preset: str | None) -> tuple[list[str], list[str]]:
    """Faults and warnings of a system prompt. Outside of studies `{{ … }}` is text like any other.

    A study that cannot be read has none: its faults are reported where it is loaded.
    """
    dataset = reading.dataset
    if dataset is None:
        return [], []
    if not hasattr(dataset.kind.plugin, "attributes"):
        message = f"describes a participant of a study, and this dataset is of kind {dataset.kind.type}"
        return [f"{message}; write a `system_prompt`"] if preset is not None else [], []
    if "{{" not in text:
        return [], []
    if reading.attributes is None:
        reading.attributes = _attributes(reading, dataset)
    if not reading.attributes:
        return [], []
    names = completed(dataset.kind.plugin).prompt_names
    found = reading.attributes
    return _of_preset(text, preset, found, names) if preset else (_of_text(text, found, names), [])


def _attributes(reading: Reading, dataset: DatasetPart) -> Attributes:
    """Study → the attributes of its participants; empty where it cannot be read."""
    try:
        kind = plugins.build(dataset.kind.plugin, dataset.kind.options, folder=reading.folder)
        found: Attributes = kind.attributes(dataset.path)
    except (BadDataset, BadOption):
        return {}
    return found


def _of_text(text: str, known: Attributes, persona_names: Names) -> list[str]:
    """One problem a name, with the studies that do not have it."""
    lacking: dict[str, list[str]] = {}
    for study, attributes in known.items():
        for name in persona_names(text, attributes).missing:
            lacking.setdefault(name, []).append(study)
    asked = persona_names(text, {name for attributes in known.values() for name in attributes})
    lacking |= {name: list(known) for name in asked.optional if name not in asked.known}
    problems = []
    for name, studies in lacking.items():
        if name.startswith("?"):
            problems.append(f"{{{{{name} }}}} must stand at the beginning of the line that is left out")
        elif name in asked.known:
            remedy = f"begin the line with {{{{? {name} }}}}, and it is left out there"
            problems.append(f"asks for {{{{ {name} }}}}, which {_listed(studies)} not have; {remedy}")
        elif not asked.known:
            nothing = "the study says nothing of its participants (`participants.profile`)"
            problems.append(f"asks for {{{{ {name} }}}}, and {nothing}")
        else:
            problems.append(f"asks for {{{{ {name} }}}}, which no participant has{did_you_mean(name, asked.known)}")
    return problems


def _of_preset(text: str, name: str, known: Attributes, persona_names: Names) -> tuple[list[str], list[str]]:
    """A preset that would say nothing of anybody is another preset by a wrong name."""
    names = {study: persona_names(text, attributes) for study, attributes in known.items()}
    silent = [study for study, asked in names.items() if not set(asked.optional) & set(asked.known)]
    if not silent:
        return [], []
    asked = dict.fromkeys(persona_names(text, ()).optional)
    wanted = [one.removeprefix("profile.") for one in asked if one != "rest"]
    which = "anything of participants" if "rest" in asked else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
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
