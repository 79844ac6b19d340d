"""`${NAME}` in any text value is the environment variable's value; `$${NAME}` is the text
`${NAME}`.

Inserted text is not expanded again. Numbers from variables are text,
and numeric settings accept them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from karat.documents.nodes import Node, Place, dotted, fault_at, walk
from karat.errors import Fault, did_you_mean, unreadable
from karat.files import LARGEST_TEXT, open_regular

_REFERENCE = re.compile(r"\$(\$?)\{([^{}]*)\}")
WORKSPACE = "workspaceFolder"
"""The project of an MCP client's file. Stays by name in what is kept, as a secret does."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_variable(name: str) -> bool:
    """Whether a text can be the name of an environment variable."""
    return _NAME.match(name) is not None


def fill(text: str, value: Callable[[str], str]) -> str:
    """`text` with each `${NAME}` replaced by `value(NAME)`, and `$${…}` without its first `$`."""
    return _REFERENCE.sub(lambda match: match[0][1:] if match[1] else value(match[2]), text)


def expand(root: Node, env: Mapping[str, str]) -> list[Fault]:
    """Fills every text below `root`; every unset variable is a fault, with all its places."""
    faults: list[Fault] = []
    unset: dict[str, list[Place]] = {}
    for place, node in walk(root):
        if not isinstance(node.value, str) or "${" not in node.value:
            continue
        variables = []
        for match in _REFERENCE.finditer(node.value):
            if not match[1]:
                variables.append(match[2])

        for name in dict.fromkeys(variables):
            if name in env:
                continue
            node.unset = True
            if is_variable(name):
                unset.setdefault(name, []).append(place)
            else:
                shown = f"${{{name}}}"
                message = (
                    "is not an environment variable (letters, digits and _); for the text itself "
                    "write"
                )
                faults.append(fault_at(root, place, f"{shown} {message} ${shown}"))

        node.template = node.value
        node.variables = tuple(variables)
        if variables and node.source == "file":
            node.source = "environment"
        node.value = fill(node.value, lambda name: env.get(name, f"${{{name}}}"))

    for name, (place, *others) in unset.items():
        if others:
            also = f" (wanted also at {', '.join(dotted(other) for other in others)})"
        else:
            also = ""

        near = did_you_mean(name, env, listing=False)
        message = (
            f"the environment variable {name} is not set{near}{also}; set it, or name a file with "
            f"--env-file"
        )
        faults.append(fault_at(root, place, message))

    return faults


def read_env_file(path: Path) -> tuple[dict[str, str], list[Fault]]:
    """`NAME=value` lines, with `export`, comments and quotes as in shells; nothing is expanded."""
    try:
        with open_regular(path, at_most=LARGEST_TEXT) as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        return {}, [Fault(place=f"--env-file {path}", message=f"cannot be read: {error.strerror}")]
    except UnicodeDecodeError:
        return {}, [Fault(place=f"--env-file {path}", message="is not UTF-8; save it as UTF-8")]
    except ValueError as error:
        return {}, [Fault(place="--env-file", message=f"cannot be read: {unreadable(error)}")]

    values: dict[str, str] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.split("\n"), start=1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        name, equals, value = entry.removeprefix("export ").partition("=")
        if not equals or not is_variable(name.strip()):
            # Never shown: an invalid line may contain a secret.
            faults.append(
                Fault(place=f"--env-file {path}", message="must be NAME=value", line=number)
            )
            continue

        value = value.strip()
        quote = value[:1]
        if len(value) < 2 or quote not in "'\"" or value[-1] != quote:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        else:
            value = value[1:-1]
            if quote == '"':
                value = value.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")

        values[name.strip()] = value

    return values, faults
