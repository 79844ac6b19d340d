"""What the conditions of a study say of its participants: presets, and `{{ profile.… }}` in system prompts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from karat import plugins
from karat.config.conditions import ConditionPart
from karat.config.reader import Reader
from karat.config.sections import DatasetPart
from karat.errors import BadDataset, BadOption, did_you_mean
from karat.kinds import persona_names

__all__ = ["check_personas"]

Attributes = Mapping[str, Collection[str]]


def check_personas(read: Reader, dataset: DatasetPart, conditions: Collection[ConditionPart]) -> None:
    """Notes what no participant could be told. Outside studies `{{ … }}` is text like any other.

    A study that cannot be read is left to where it is loaded: there all its faults are told.
    """
    if not hasattr(dataset.plugin, "attributes"):
        for part in conditions:
            if part.shown.get("preset") is not None:
                message = f"describes a participant of a study, and this dataset is of kind {dataset.spec.kind}"
                read.fault(f"conditions.{part.spec.name}.preset", f"{message}; write a `system_prompt`")
        return
    open_ = [part for part in conditions if "{{" in (part.spec.system_prompt or "")]
    known = _attributes(read, dataset) if open_ else {}
    for part in open_ if known else ():
        if part.shown.get("preset") is None:
            _check_prompt(read, part, known)
        else:
            _check_preset(read, part, known)


def _attributes(read: Reader, dataset: DatasetPart) -> Attributes:
    """Study → the attributes of its participants; empty where it cannot be read."""
    try:
        kind = plugins.build(dataset.plugin, dataset.spec.options, folder=read.folder)
        found: Attributes = kind.attributes(dataset.spec.path)
    except (BadDataset, BadOption):
        return {}
    return found


def _check_prompt(read: Reader, part: ConditionPart, known: Attributes) -> None:
    """One fault a name, with the studies that do not have it."""
    lacking: dict[str, list[str]] = {}
    for study, attributes in known.items():
        for name in persona_names(str(part.spec.system_prompt), attributes).missing:
            lacking.setdefault(name, []).append(study)
    everywhere = {name for attributes in known.values() for name in attributes}
    asked = persona_names(str(part.spec.system_prompt), everywhere)
    for name in asked.optional:
        if name not in asked.known:
            lacking[name] = list(known)
    place = f"conditions.{part.spec.name}.system_prompt"
    for name, studies in lacking.items():
        asks = f"asks for {{{{ {name} }}}}"
        if name.startswith("?"):
            read.fault(place, f"{{{{{name} }}}} must stand at the beginning of the line that is left out")
        elif name in asked.known:
            remedy = f"begin the line with {{{{? {name} }}}}, and it is left out there"
            read.fault(place, f"{asks}, which {_listed(studies)} not have; {remedy}")
        elif not asked.known:
            read.fault(place, f"{asks}, and the study says nothing of its participants (`participants.profile`)")
        else:
            read.fault(place, f"{asks}, which no participant has{did_you_mean(name, asked.known)}")


def _check_preset(read: Reader, part: ConditionPart, known: Attributes) -> None:
    """A preset that would say nothing of anybody is another preset by a wrong name."""
    text, name = str(part.spec.system_prompt), part.shown["preset"]
    silent = [study for study, attributes in known.items() if not _says(text, attributes)]
    if not silent:
        return
    place = f"conditions.{part.spec.name}.preset"
    asked = dict.fromkeys(persona_names(text, ()).optional)
    wanted = [one.removeprefix("profile.") for one in asked if one != "rest"]
    which = "anything of participants" if "rest" in asked else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    without = f"'{name}' says who somebody is, and {_listed(silent)} not say {which}"
    if len(silent) == len(known):
        read.fault(place, f"{without}; use `preset: human`, or write a `system_prompt`")
    else:
        read.warn(place, f"{without}: there participants are told that they take part, and nothing else")


def _says(text: str, attributes: Collection[str]) -> bool:
    asked = persona_names(text, attributes)
    return bool(set(asked.optional) & set(asked.known))


def _listed(studies: Collection[str]) -> str:
    """The studies and their verb."""
    names = [f"'{study}'" for study in studies]
    if len(names) == 1:
        return f"study {names[0]} does"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"studies {', '.join(names[:5])}{more} do"
