"""Skills, plug-ins, instructions, workspaces and tools of a condition, as named in the experiment
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticKnownError

from karat import plugins
from karat.config.reading import reading_of
from karat.context import read_file, read_tree
from karat.documents.validation import Problem, refusal, shown
from karat.errors import unreadable
from karat.records import ContextPart

CONTEXT_KEYS = ("skills", "plugins", "instructions", "workspace", "tools")


def _context_folder(name: object, info: ValidationInfo) -> ContextPart:
    """A folder given to agents. Raises ValueError with its fault."""
    path = _context_path(name, info)
    if not path.exists():
        raise ValueError(f"there is no folder '{name}'; paths start at the experiment's folder")
    if not path.is_dir():
        raise ValueError(f"'{name}' is a file; name the folder it is in")
    digests = reading_of(info).trees  # many conditions may name the same folder
    try:
        if path not in digests:
            digests[path] = read_tree(path).digest
        return ContextPart(name=path.name, path=path, digest=digests[path])
    except OSError as error:
        raise ValueError(f"'{name}' cannot be read: {unreadable(error)}") from None
    except ValueError as error:
        raise ValueError(f"'{name}' {error}") from None


def _context_path(name: object, info: ValidationInfo) -> Path:
    if not isinstance(name, str):
        raise PydanticKnownError("string_type")
    if not name.strip() or "\0" in name:
        raise ValueError(f"must be a path, got {shown(name)}")
    return (reading_of(info).folder / Path(name).expanduser()).resolve()


def _skill_folder(name: object, info: ValidationInfo) -> ContextPart:
    part = _context_folder(name, info)
    if not (part.path / "SKILL.md").is_file():
        raise ValueError(f"'{name}' has no file SKILL.md, so it is not a skill")
    return part


def _instructions(name: object, info: ValidationInfo) -> ContextPart:
    path = _context_path(name, info)
    try:
        return ContextPart(name=path.name, path=path, digest=read_file(path))
    except OSError as error:
        raise ValueError(
            f"'{name}' cannot be read: {unreadable(error)}; paths start at the experiment's folder"
        ) from None


def names_differ(parts: list[ContextPart]) -> list[ContextPart]:
    """Raises ValidationError if two have the same name, since agents know them by name."""
    names = [part.name for part in parts]
    if twice := [at for at, name in enumerate(names) if name in names[:at]]:
        raise refusal(
            Problem((at,), f"is a second one called '{names[at]}'; rename its folder")
            for at in twice
        )

    return parts


def is_taken(value: object, info: ValidationInfo) -> object:
    """Rejects parts that the experiment's agent does not support: the condition would not match its
    definition.
    """
    agent = reading_of(info).agent
    key = str(info.field_name)
    if agent is None or not value:
        return value
    if key not in getattr(agent.plugin, "context", ()):
        able = []
        for name, plugin in plugins.installed("agents"):
            if key in getattr(plugin, "context", ()):
                able.append(name)

        if able:
            remedy = f"; these do: {', '.join(sorted(able))}"
        else:
            remedy = ""

        raise ValueError(f"the agent '{agent.type}' takes no {key}{remedy}")

    if (check := getattr(agent.plugin, "check_context", None)) is not None:
        problems: list[Problem] = []
        for at, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            try:
                check(key, part)
            except ValueError as error:
                problems.append(Problem(() if at is None else (at,), str(error)))

        if problems:
            raise refusal(problems)

    return value


_PATH_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1})
Folder = Annotated[ContextPart, PlainValidator(_context_folder), _PATH_SCHEMA]
SkillFolder = Annotated[ContextPart, PlainValidator(_skill_folder), _PATH_SCHEMA]
InstructionsFile = Annotated[ContextPart, PlainValidator(_instructions), _PATH_SCHEMA]
