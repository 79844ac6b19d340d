"""The experiment file → Experiment, or every fault in it at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat import plugins
from karat.config.environment import read_env_file
from karat.config.model import DatasetSpec, Execution
from karat.config.parts import read_parts
from karat.config.settings import apply
from karat.documents import reader as documents
from karat.documents.nodes import Node, from_python, printable
from karat.errors import BadExperiment, Fault, did_you_mean, unreadable
from karat.files import open_regular
from karat.journal.events import Choice
from karat.journal.folder import slugged
from karat.models import Price
from karat.records import AgentSpec, Cassettes, Condition, McpServer, ScorerSpec
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.kinds import Dataset

__all__ = ["Experiment", "load"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Experiment:
    """What is to be run: an agent, asked a dataset's questions under conditions, and how it is scored.

    The keywords are the keys of the experiment file, with the same meaning; `agent={"type":
    "python", "target": function}` is allowed. Relative paths start at the working directory, then
    at `folder`. `${NAME}` is taken from `env`, the process's environment unless given. Raises
    BadExperiment with every fault at once.

    >>> Experiment(dataset={"path": "gone.jsonl"}, agent={"type": "floor"}, conditions={"a": {}}, scorers=[])
    Traceback (most recent call last):
    karat.errors.BadExperiment: experiment: 1 fault
      dataset.path: there is no file 'gone.jsonl' in the working directory
    """

    name: str
    slug: str  # the name as the run folder carries it
    version: str
    folder: Path  # absolute; of the file, or the working directory
    path: Path | None  # None: made in Python
    text: str  # as written; YAML made of the keywords where it was made in Python
    masked_text: str  # `text` without secrets
    kind: str  # of the dataset
    dataset: DatasetSpec
    agent: AgentSpec
    conditions: tuple[Condition, ...]  # in the file's order
    servers: tuple[McpServer, ...]
    scorers: tuple[ScorerSpec, ...]  # the judge first
    execution: Execution
    cassettes: Cassettes | None  # None: MCP servers are neither recorded nor replayed
    prices: Mapping[str, Price]  # the file's own, by model
    env: Mapping[str, str]  # the variables it was read with; never to be written
    secrets: Mapping[str, str]  # name → value of every secret; never to be written
    resolved: Mapping[str, Choice]  # dotted key → value and source; secrets as ${NAME}
    warnings: tuple[str, ...]
    rehearsed: bool  # whether its models are scripts on this machine

    def __init__(self, *, folder: Path | str | None = None, env: Mapping[str, str] | None = None, **keys: Any) -> None:
        import yaml

        root = from_python({key: value for key, value in keys.items() if value is not None})
        text = yaml.safe_dump(printable(keys), sort_keys=False, allow_unicode=True)
        where = Path(folder).absolute() if folder is not None else Path.cwd()
        _fill(self, root, _Source(path=None, folder=where, text=text), os.environ if env is None else env)

    def __repr__(self) -> str:
        # Not the fields: secrets are among them.
        names = [condition.name for condition in self.conditions]
        return f"Experiment(name={self.name!r}, agent={self.agent.type!r}, conditions={names!r})"

    def load_dataset(self) -> Dataset:
        """The samples. Raises BadDataset with every fault of the file at once."""
        plugin = plugins.find("kinds", self.kind, folder=self.folder)
        loaded: Dataset = plugins.build(plugin, self.dataset.options, folder=self.folder).load(self.dataset.path)
        return loaded


def load(
    path: Path | str,
    *,
    settings: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    env_file: Path | str | None = None,
) -> Experiment:
    """The experiment in a YAML file. Creates nothing, asks nobody.

    `settings` are laid over the file (`"execution.num_repetitions=5"`); `${NAME}` is taken from
    `env` (the process's environment unless given), then from `env_file`. Raises BadExperiment
    with every fault at once, each with its place, its line, and what is wanted.
    """
    path = Path(path)
    data, faults = _read(path)
    variables = dict(os.environ if env is None else env)
    if env_file is not None:
        more, wrong = read_env_file(Path(env_file))
        variables = {**more, **variables}
        faults += wrong
    parsed = documents.parse(data)
    faults += parsed.faults if data else []
    root = parsed.root
    if root is None or not isinstance(root.value, dict):
        faults += [_shapeless(root)] if not faults else []
        raise BadExperiment(str(path), faults)
    faults += apply(root, settings)
    experiment = object.__new__(Experiment)
    source = _Source(path=path, folder=path.absolute().parent, text=data.decode("utf-8-sig"))
    _fill(experiment, root, source, variables, faults, parsed.warnings)
    return experiment


@dataclass(frozen=True, slots=True)
class _Source:
    """Where an experiment comes from."""

    path: Path | None
    folder: Path
    text: str


_DESCRIPTOR = re.compile(r"/dev/(stdin|fd/[0-9]+)\Z|/proc/self/fd/[0-9]+\Z")  # of this process: `karat check <(…)`


def _read(path: Path) -> tuple[bytes, list[Fault]]:
    try:
        with path.open("rb") if _DESCRIPTOR.match(str(path)) else open_regular(path) as file:
            return file.read(documents.MAX_BYTES + 1), []
    except FileNotFoundError:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.y*ml")])
        message = f"there is no such file{near}; `karat init golden` writes one to begin with"
    except IsADirectoryError:
        inside = sorted(other.name for other in path.glob("*.y*ml"))
        message = "is a folder; name the experiment file in it" + (f", e.g. {path / inside[0]}" if inside else "")
    except (OSError, ValueError) as error:
        message = f"cannot be read: {unreadable(error)}"
    return b"", [Fault(place="file", message=message)]


def _shapeless(root: Node | None) -> Fault:
    wanted = "an experiment needs the keys dataset, agent and conditions"
    if root is None or root.value is None:
        return Fault(place="file", message=f"is empty; {wanted}")
    what = "a list" if isinstance(root.value, list) else "one text"
    return Fault(place="file", message=f"is {what}; {wanted}", line=root.line)


def _fill(
    experiment: Experiment,
    root: Node,
    source: _Source,
    env: Mapping[str, str],
    faults: Sequence[Fault] = (),
    warnings: Sequence[str] = (),
) -> None:
    """Reads the tree into a new experiment, or raises with all that is wrong."""
    name = source.path.stem if source.path is not None else "experiment"
    parts = read_parts(root, folder=source.folder, env=env, name=name, before=faults)
    if parts.faults or parts.dataset is None or parts.agent is None:
        raise BadExperiment(str(source.path or "experiment"), parts.faults)
    masked = Redactor(parts.secrets)
    values = {
        "name": parts.name,
        "slug": slugged(parts.name),
        "version": parts.version,
        "folder": source.folder,
        "path": source.path,
        "text": source.text,
        "masked_text": masked(source.text),
        "kind": parts.dataset.spec.kind,
        "dataset": parts.dataset.spec,
        "agent": parts.agent.spec,
        "conditions": tuple(part.spec for part in parts.conditions),
        "servers": tuple(part.spec for part in parts.servers.values() if part is not None),
        "scorers": tuple(part.spec for part in parts.scorers),
        "execution": parts.execution,
        "cassettes": parts.cassettes,
        "prices": parts.prices,
        "env": env,
        "secrets": parts.secrets,
        "resolved": parts.resolved(root),
        "warnings": tuple(masked(warning) for warning in [*warnings, *parts.warnings]),
        "rehearsed": False,
    }
    for field, value in values.items():
        object.__setattr__(experiment, field, value)
