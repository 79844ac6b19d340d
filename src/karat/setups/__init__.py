"""What a reader of setups is: it turns another tool's configuration into an experiment.

One file per reader, with the name of the tool. `karat init --from PATH` writes what it finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import msgspec

from karat import plugins
from karat.errors import BadDataset, BadOption, Fault, unreadable
from karat.files import open_regular
from karat.formats import plural, some_of
from karat.records import JsonObject

__all__ = ["Findings", "Setup", "SetupReader", "Tool", "questions", "tool_of"]

_ENDINGS = (".yaml", ".yml", ".json")
_HEAD = 64 << 10  # bytes of a file that a reader recognizes it by


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment and its questions, as another tool's configuration states them."""

    experiment: JsonObject  # the keys of an experiment file; its dataset is `questions.jsonl`
    rows: list[JsonObject]  # of `questions.jsonl`
    # the rows' answers describe what happens, so that no answer is compared with them
    answers_describe: bool = False
    files: dict[str, bytes] = {}  # further files, by their path below the experiment's folder
    taken: tuple[str, ...] = ()  # sentences for people
    left_out: tuple[str, ...] = ()  # what has no equivalent, and why


class SetupReader(Protocol):
    """Reads the configuration of one tool. Nothing in it is run."""

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Whether the path is such a configuration. `head`: its first bytes, b"" for a folder."""

    def read(self, path: Path, folder: Path) -> Setup:
        """The experiment that will be written into `folder`, to which its paths are relative.

        Raises OperatorError if nothing in the configuration can be taken.
        """


class Findings:
    """What was taken and what was not; things of one sort are told in one sentence."""

    def __init__(self) -> None:
        self._taken: dict[str, None] = {}
        self._left: dict[tuple[str, str], list[str]] = {}

    def take(self, sentence: str) -> None:
        """Notes what was taken, once."""
        self._taken[sentence] = None

    def leave(self, noun: str, why: str, place: str = "") -> None:
        """Notes that something was not taken. `noun`: what it is, in the singular."""
        self._left.setdefault((noun, why), []).append(place)

    @property
    def taken(self) -> tuple[str, ...]:
        """Sentences, in the order of their first mention."""
        return tuple(self._taken)

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each sort of thing, with its number and first places."""
        sentences = []
        for (noun, why), places in self._left.items():
            named = list(dict.fromkeys(filter(None, places)))
            where = f" ({some_of(named, most=3)})" if named else ""
            what = noun if len(places) == 1 else plural(len(places), noun)
            sentences.append(f"{what}: {why}{where}")

        return tuple(sentences)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and the reader of its configurations."""

    name: str
    reader: SetupReader


def tool_of(path: Path) -> Tool:
    """The tool whose configuration the path is. Raises BadOption if no reader knows it."""
    try:
        found = _recognized(path)
    except (OSError, ValueError) as error:
        raise BadOption("--from", f"{path} cannot be read: {unreadable(error)}") from error

    if found is None:
        names = [_name(*named) for named in plugins.installed("setups")]
        known = ", ".join(names) or "none"
        raise BadOption("--from", f"{path} is no configuration that karat reads (known: {known})")

    return found


def questions(path: Path) -> tuple[str, Setup] | None:
    """The name of the tool whose configuration a dataset's file is, and what is in it.

    None: it is another file. Raises BadDataset if nothing in it can be taken.
    """
    if path.suffix.lower() not in _ENDINGS:
        return None
    try:
        tool = _recognized(path)
    except (OSError, ValueError):  # whoever reads it says so
        return None

    if tool is None:
        return None
    try:
        return tool.name, tool.reader.read(path, path.parent)
    except BadOption as error:  # whose option the reader takes for that of `karat init`
        message = str(error).removeprefix(f"{error.option}: ")
        raise BadDataset(str(path), [Fault(place="file", message=message)]) from error


def _recognized(path: Path) -> Tool | None:
    head = b""
    if not path.is_dir():
        with open_regular(path) as file:
            head = file.read(_HEAD)

    for file_name, plugin in plugins.installed("setups"):
        if plugin.recognizes(path, head):
            return Tool(name=_name(file_name, plugin), reader=plugin())

    return None


def _name(file_name: str, plugin: type[Any]) -> str:
    return str(getattr(plugin, "listed_as", file_name))
