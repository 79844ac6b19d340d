"""System prompts: text in the experiment file, or in a file of its own."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Any

from karat.config.model import ConditionModel, PromptFile
from karat.config.reader import Reader

__all__ = ["MOST_BYTES", "system_prompt"]

MOST_BYTES = 1_000_000
"""Of a prompt's file. Longer ones are no prompts, and each trial sends them."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?\S+")
_PATH = re.compile(
    r"@\S+|(?:~|\.{1,2})?(?:[\w.~-]*[/\\])+[\w.-]+|[\w.-]+\.(?:txt|md|markdown|rst|prompt|tmpl|j2|jinja2?|ya?ml|json|xml|html?)",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")


def system_prompt(read: Reader, place: str, condition: ConditionModel) -> tuple[str | None, dict[str, Any]]:
    """The text of the prompt, and what the run records of its file: path and sha256 (empty without one).

    A file that cannot be read is a fault; text that looks like a path or an address is a warning.
    """
    given = condition.system_prompt
    named = given.file if isinstance(given, PromptFile) else condition.prompt_file
    if named is None:
        assert not isinstance(given, PromptFile)
        if given is not None and _looks_like_a_file(read.folder, given):
            path = re.sub(r"^(?:file:(?://)?|@)", "", given.strip())
            suggested = "prompt.txt" if _URI.fullmatch(path) else path
            message = (
                "looks like a path or an address, and is sent to the agent as it stands; "
                f"to send a file's text write `system_prompt: {{file: {suggested}}}`"
            )
            read.warn(f"{place}.system_prompt", message)
        return given, {}
    key = "system_prompt.file" if isinstance(given, PromptFile) else "prompt_file"
    try:
        data = _content(read.folder / Path(named).expanduser())
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        read.fault(f"{place}.{key}", f"'{named}' is not UTF-8 (byte {error.start}); save it as UTF-8")
        return None, {}
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        read.fault(f"{place}.{key}", f"'{named}' cannot be read: {reason}; paths start at the experiment's folder")
        return None, {}
    if _VARIABLE.search(text):
        read.warn(f"{place}.{key}", f"'{named}' holds ${{NAME}}, which is not filled in there; it is sent as it stands")
    return text, {"prompt_file": {"path": named, "sha256": hashlib.sha256(data).hexdigest()}}


def _looks_like_a_file(folder: Path, text: str) -> bool:
    """Whether a prompt is the name of a file rather than words."""
    line = text.strip()
    if not line or "\n" in line or len(line) > 250:
        return False
    if _URI.fullmatch(line) or _PATH.fullmatch(line):
        return True
    try:
        return (folder / line).is_file()
    except (OSError, ValueError):
        return False


def _content(path: Path) -> bytes:
    """The bytes of a regular file. Raises OSError, and ValueError for what is no file of text."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would wait for a writer
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return data
