"""How conditions describe the participants of a study: presets, and `{{ profile.… }}` in system
prompts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

from karat.errors import did_you_mean
from karat.kinds import Preset
from karat_studies.kinds.study.people import known_to, missing_in, optional_names

Attributes = Mapping[str, Collection[str]]
"""Study → the attributes of its participants."""


@cache
def presets() -> dict[str, Preset]:
    """Name → preset, from the least to the most detailed.

    The first line of a file is the summary; the rest is the prompt, in which `{{ profile.… }}` is
    replaced by the participant's attribute. A line that begins with `{{? profile.age }}` is left
    out in studies that do not give an age.
    """
    loaded = {}
    for name in ("empty", "human", "demographic", "background"):
        file = files(__package__) / "presets" / f"{name}.md"
        first, _, prompt = file.read_text(encoding="utf-8").partition("\n")
        loaded[name] = Preset(
            name=name, summary=first.lstrip("# ").strip(), text=prompt.strip() or None
        )

    return loaded


def prompt_problems(
    text: str, preset: str | None, known: Attributes
) -> tuple[list[str], list[str]]:
    """Faults and warnings for a system prompt, written out or from a preset."""
    if preset is not None:
        # A preset that says nothing about anyone would be another preset under a misleading name
        optional = dict.fromkeys(optional_names(text))
        silent = []
        for study, attributes in known.items():
            if not set(optional) & set(known_to(text, attributes)):
                silent.append(study)

        if not silent:
            return [], []
        wanted = [key.removeprefix("profile.") for key in optional if key != "rest"]
        if "rest" in optional:
            which = "anything about participants"
        else:
            which = f"{', '.join(wanted[:-1])} or {wanted[-1]}"

        without = f"'{preset}' describes participants, but {_listed(silent)} not say {which}"
        if len(silent) == len(known):
            return [f"{without}; use `preset: human`, or write a `system_prompt`"], []
        return [], [f"{without}: its participants learn only that they take part"]

    # One problem per name, with the studies that do not have it
    lacking: dict[str, list[str]] = {}
    for study, attributes in known.items():
        for name in missing_in(text, attributes):
            lacking.setdefault(name, []).append(study)

    names = known_to(text, {name for attributes in known.values() for name in attributes})
    lacking |= {name: list(known) for name in optional_names(text) if name not in names}
    problems = []
    for name, studies in lacking.items():
        if name.startswith("?"):
            problems.append(
                f"{{{{{name} }}}} must be at the beginning of the line that it leaves out"
            )
        elif name in names:
            remedy = f"begin the line with {{{{? {name} }}}}, and it is left out there"
            problems.append(
                f"asks for {{{{ {name} }}}}, which {_listed(studies)} not have; {remedy}"
            )
        elif not names:
            nothing = "the study does not describe its participants (`participants.profile`)"
            problems.append(f"asks for {{{{ {name} }}}}, and {nothing}")
        else:
            problems.append(
                f"asks for {{{{ {name} }}}}, which no participant has{did_you_mean(name, names)}"
            )

    return problems, []


def _listed(studies: Collection[str]) -> str:
    """The studies as a subject, with `does` or `do`."""
    names = [f"'{study}'" for study in studies]
    if len(names) == 1:
        return f"study {names[0]} does"
    if len(names) > 5:
        more = f" and {len(names) - 5} more"
    else:
        more = ""

    return f"studies {', '.join(names[:5])}{more} do"
