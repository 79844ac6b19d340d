"""System prompts: text in the experiment file, or in a separate file."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import msgspec

from karat import plugins
from karat.config.reading import Reading
from karat.errors import BadDataset, BadOption
from karat.files import LARGEST_TEXT, open_regular
from karat.kinds import Preset, completed, installed

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?\S+")
_PATH = re.compile(
    r"@\S+|(?:~|\.{1,2})?(?:[\w.~-]*[/\\])+[\w.-]+|[\w.-]+\.(?:txt|md|markdown|rst|prompt|tmpl|j2|jinja2?|ya?ml|json|xml|html?)",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*\}")


class PromptText(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt's file."""

    path: str  # as in the experiment file
    text: str
    sha256: str  # hex, of its bytes


def read_prompt(folder: Path, name: str) -> PromptText:
    """The prompt in a file. Raises ValueError with its fault."""
    try:
        with open_regular(folder / Path(name).expanduser(), at_most=LARGEST_TEXT) as file:
            data = file.read(LARGEST_TEXT)
        return PromptText(path=name, text=data.decode("utf-8-sig"), sha256=sha256(data).hexdigest())
    except UnicodeDecodeError as error:
        raise ValueError(f"'{name}' is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"'{name}' cannot be read: {reason}; paths start at the experiment's folder"
        ) from None


def presets() -> dict[str, Preset]:
    """Every preset of the dataset kinds, by name."""
    found = {}
    for kind in installed().values():
        for name, preset in kind.presets().items():
            found[name] = preset

    return found


def prompt_problems(reading: Reading, text: str, preset: str | None) -> tuple[list[str], list[str]]:
    """Faults and warnings of a system prompt. For a kind without participants `{{ … }}` is ordinary
    text.

    None for an unreadable dataset: its faults are reported when it is loaded.
    """
    dataset = reading.dataset
    if dataset is None:
        return [], []
    kind = completed(dataset.kind.plugin)
    if preset is not None and preset not in kind.presets():
        owner = next(
            (other.noun for other in installed().values() if preset in other.presets()), "dataset"
        )
        message = f"is for a {owner}, and this dataset is of kind {dataset.kind.type}"
        return [f"{message}; write a `system_prompt`"], []

    if "{{" not in text or not hasattr(dataset.kind.plugin, "attributes"):
        return [], []
    if reading.attributes is None:
        try:
            built = plugins.build(dataset.kind.plugin, dataset.kind.options, folder=reading.folder)
            reading.attributes = built.attributes(dataset.path)
        except (BadDataset, BadOption):
            reading.attributes = {}

    if reading.attributes:
        return kind.prompt_problems(text, preset, reading.attributes)
    return ([], [])


def prompt_advice(folder: Path, prompt: str | PromptText | None) -> str:
    """Probable mistakes: text that looks like a path or an address, a variable in a file;
    else "".
    """
    if isinstance(prompt, PromptText):
        if _VARIABLE.search(prompt.text):
            return (
                f"'{prompt.path}' holds ${{NAME}}, which is not filled in there; it is sent "
                f"unchanged"
            )
    elif prompt is not None and _looks_like_a_file(folder, prompt):
        path = re.sub(r"^(?:file:(?://)?|@)", "", prompt.strip())
        suggested = "prompt.txt" if _URI.fullmatch(path) else path
        return (
            "looks like a path or an address, and is sent to the agent unchanged; "
            f"to send a file's text write `system_prompt: {{file: {suggested}}}`"
        )

    return ""


def _looks_like_a_file(folder: Path, text: str) -> bool:
    """Whether a prompt is a file name rather than text."""
    line = text.strip()
    if not line or "\n" in line or len(line) > 250:
        return False
    if _URI.fullmatch(line) or _PATH.fullmatch(line):
        return True
    try:
        return (folder / line).is_file()
    except (OSError, ValueError):
        return False
