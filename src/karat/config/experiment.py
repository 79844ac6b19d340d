"""The experiment file → Experiment, or every fault in it at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat import plugins
from karat.config import announced, document, sections
from karat.config.environment import expand, read_env_file
from karat.config.model import DatasetSpec, Execution
from karat.config.nodes import Node, from_python, plain
from karat.config.reader import Reader
from karat.config.secrets import find_secrets
from karat.config.settings import apply, follow
from karat.errors import BadExperiment, Fault, did_you_mean
from karat.journal.events import Choice
from karat.records import AgentSpec, Condition, McpServer, ScorerSpec
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.datasets import Dataset

__all__ = ["Experiment", "load"]

_SECTIONS = (
    "name", "version", "dataset", "agent", "judge", "mcp_servers", "conditions", "execution", "scorers", "secrets",
)  # fmt: skip


@dataclass(frozen=True, init=False, kw_only=True)
class Experiment:
    """What is to be run: an agent, asked a dataset's questions under conditions, and how it is scored.

    The keywords are the keys of the experiment file, with the same meaning; `agent: {"type":
    "python", "target": callable}` is allowed. Relative paths start at `folder` (the working
    directory unless given). Raises BadExperiment with every fault at once.

    >>> Experiment(dataset={"path": "no-such-file.jsonl"}, agent={"type": "floor"}, conditions={"a": {}}, scorers=[])
    Traceback (most recent call last):
    karat.errors.BadExperiment: experiment: 1 fault
      dataset.path: no file 'no-such-file.jsonl' in the working directory
    """

    name: str
    slug: str  # the name as it stands in file names
    version: str
    folder: Path  # absolute; of the file, or the working directory
    path: Path | None  # None: made in Python
    text: str  # as written; YAML made of the keywords where it was made in Python
    masked_text: str  # `text` without secrets
    kind: str  # of the dataset
    dataset: DatasetSpec
    agent: AgentSpec
    conditions: tuple[Condition, ...]
    servers: tuple[McpServer, ...]
    scorers: tuple[ScorerSpec, ...]  # the judge first
    execution: Execution
    secrets: Mapping[str, str]  # name → value of every secret; never to be written
    resolved: Mapping[str, Choice]  # dotted key → value and source; secrets as ${NAME}
    warnings: tuple[str, ...]
    unready: tuple[Fault, ...]  # what it names that this version of karat can check but not run

    def __init__(self, *, folder: Path | str | None = None, env: Mapping[str, str] | None = None, **keys: Any) -> None:
        where = Path(folder).absolute() if folder is not None else Path.cwd()
        root = from_python({key: value for key, value in keys.items() if value is not None})
        import yaml

        text = yaml.safe_dump(_printable(keys), sort_keys=False, allow_unicode=True)
        source = _Source(path=None, folder=where, text=text, name="experiment")
        _fill(self, source, root, os.environ if env is None else env, [], [])

    def load_dataset(self) -> Dataset:
        """The samples. Raises BadDataset with every fault of the file at once."""
        plugin = plugins.find("datasets", self.kind, folder=self.folder)
        reader = plugins.build(plugin, self.dataset.options, folder=self.folder)
        loaded: Dataset = reader.load(self.dataset.path)
        return loaded

    def require_runnable(self) -> None:
        """Refuses what can be checked and planned but not run; to be asked before anything happens."""
        if self.unready:
            raise BadExperiment(str(self.path or "experiment"), self.unready)


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
    with every fault at once, each with its place, line, and what is wanted.
    """
    path = Path(path)
    data, faults = _read(path)
    found = document.parse(data) if data is not None else document.Document()
    faults += found.faults
    if found.root is not None and not isinstance(found.root.value, dict) and found.root.value is not None:
        faults.append(
            Fault(
                place="file",
                message="must be a mapping with the keys dataset, agent and conditions",
                line=found.root.line,
            )
        )
    if data is not None and not faults and (found.root is None or not found.root.value):
        faults.append(Fault(place="file", message="is empty; an experiment needs dataset, agent and conditions"))
    variables = dict(os.environ if env is None else env)
    if env_file is not None:
        more, env_faults = read_env_file(Path(env_file))
        faults += env_faults
        variables = {**more, **variables}
    if found.root is None or not isinstance(found.root.value, dict):
        raise BadExperiment(str(path), faults)
    faults += apply(found.root, settings)
    experiment = object.__new__(Experiment)
    source = _Source(path=path, folder=path.absolute().parent, text=(data or b"").decode("utf-8-sig"), name=path.stem)
    _fill(experiment, source, found.root, variables, faults, found.warnings)
    return experiment


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path | None
    folder: Path
    text: str
    name: str  # of the experiment, where it gives none


def _read(path: Path) -> tuple[bytes | None, list[Fault]]:
    try:
        with path.open("rb") as file:
            return file.read(document.MAX_BYTES + 1), []
    except FileNotFoundError:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.y*ml")])
        message = f"there is no such file{near}; `karat init golden` makes one to start from"
    except IsADirectoryError:
        inside = sorted(other.name for other in path.glob("*.y*ml"))
        hint = f", e.g. {path / inside[0]}" if inside else ""
        message = f"is a folder; name the experiment file in it{hint}"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    return None, [Fault(place="file", message=message)]


def _fill(
    experiment: Experiment,
    source: _Source,
    root: Node,
    env: Mapping[str, str],
    faults: list[Fault],
    warnings: list[str],
) -> None:
    """Reads every section into the (frozen) experiment, or raises with all that is wrong."""
    faults = faults + expand(root, env)
    secrets = find_secrets(root, env)
    kind = root.get("agent", "type")
    lenient = kind is not None and kind.value == "claude_code_sdk"
    read = Reader(root, source.folder, env, secrets, lenient, faults + secrets.faults, warnings + secrets.warnings)
    read.known_keys("", root.value, _SECTIONS, _homes())
    name, version = sections.identity(read, source.name)
    data = sections.dataset(read)
    agent = sections.agent(read)
    servers = sections.servers(read)
    conditions = sections.conditions(read, servers, agent)
    scorers = sections.scorers(read, judged=data is None or bool(getattr(data[1], "judged", False)))
    execution = sections.execution(read)
    _secrets_form(read)
    masked = Redactor(secrets.values(env))
    if read.faults or data is None or agent is None or servers is None:
        raise BadExperiment(str(source.path or "experiment"), _presentable(read.faults, masked, secrets.literals))
    _advise(read, agent, scorers, [condition for condition, _ in conditions])
    resolved = {
        "name": name,
        "version": version,
        "dataset": {"kind": data[0].kind, "path": plain(root)["dataset"]["path"], **data[0].options},
        "agent": {"type": agent.kind, **agent.shown},
        **{"judge": {"type": one.spec.type, **one.shown} for one in scorers if one.place.startswith("judge")},
        "mcp_servers": {server: shown for server, (_, shown) in servers.items()},
        "conditions": {condition.name: shown for condition, shown in conditions},
        "execution": execution.model_dump(),
        "scorers": [
            {"type": one.spec.type, "name": one.spec.name, **one.shown}
            for one in scorers
            if not one.place.startswith("judge")
        ],
        "secrets": plain(root).get("secrets") or [],
    }
    parts = {
        "name": name,
        "slug": sections.slug(name),
        "version": version,
        "folder": source.folder,
        "path": source.path,
        "text": source.text,
        "masked_text": masked(source.text),
        "kind": data[0].kind,
        "dataset": data[0],
        "agent": agent.spec,
        "conditions": tuple(condition for condition, _ in conditions),
        "servers": tuple(server for server, _ in servers.values()),
        "scorers": tuple(one.spec for one in scorers),
        "execution": execution,
        "secrets": secrets.values(env),
        "resolved": dict(_choices(resolved, root)),
        "warnings": tuple(masked(warning) for warning in read.warnings),
        "unready": tuple(_unready(agent, scorers, root)),
    }
    for key, value in parts.items():
        object.__setattr__(experiment, key, value)


def _homes() -> dict[str, str]:
    """Key → the section it belongs to, for keys that stand one level too high."""
    homes = {name: "execution" for name in Execution.model_fields}
    homes |= {name: "execution.retry" for name in ("max_attempts", "initial_backoff_seconds", "backoff_multiplier")}
    homes |= {name: "dataset" for name in ("question_key", "answer_key", "id_key", "sample_size")}
    return homes | {"system_prompt": "conditions.NAME", "model": "agent"}


def _secrets_form(read: Reader) -> None:
    node = read.root.get("secrets")
    if node is not None and node.value is not None and not isinstance(node.value, list):
        read.fault("secrets", "must be a list of names of environment variables, e.g. `secrets: [MY_PASSWORD]`")


def _presentable(faults: Sequence[Fault], masked: Redactor, literals: Sequence[str]) -> list[Fault]:
    """In the file's order, without the secrets that stand in it."""
    hidden = Redactor({"SECRET": ""} | {f"SECRET_{index}": text for index, text in enumerate(literals)})
    ordered = sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)
    return [Fault(place=fault.place, message=hidden(masked(fault.message)), line=fault.line) for fault in ordered]


def _advise(
    read: Reader, agent: sections.AgentPart, scorers: Sequence[sections.ScorerPart], conditions: Sequence[Condition]
) -> None:
    used = {server.name for condition in conditions for server in condition.mcp_servers}
    for name in read.mapping("mcp_servers", example=""):
        if name not in used:
            read.warn(f"mcp_servers.{name}", "no condition uses it")
    if not scorers:
        read.warn("scorers", "none: answers will be kept, but nothing will be scored")
    for one in scorers:
        if one.spec.options.get("temperature"):
            read.warn("judge.temperature", "above 0 the judge's scores of one answer differ from call to call")
        model = one.spec.options.get("model")
        if model and str(model).replace("/", ":").rpartition(":")[2] == agent.spec.options.get("model"):
            read.warn("judge.model", "the judge is the agent's own model; models tend to prefer their own answers")


def _unready(agent: sections.AgentPart, scorers: Sequence[sections.ScorerPart], root: Node) -> list[Fault]:
    """Announced plug-ins: known to the checks, and not there to be run."""
    sentence = "'{}' is not in this version of karat: a file that names it can be checked and planned, not run"
    faults = []
    if not announced.runs(agent.plugin):
        faults.append(
            Fault(
                place="agent.type", message=f"the agent {sentence.format(agent.kind)} (floor, python and command can)"
            )
        )
    for one in scorers:
        if not one.ready:
            remedy = " (`judge: {type: overlap}` can)"
            faults.append(Fault(place=one.place, message=f"the scorer {sentence.format(one.spec.type)}{remedy}"))
    return [Fault(place=fault.place, message=fault.message, line=follow(root, fault.place)[0].line) for fault in faults]


def _choices(value: Any, root: Node, place: tuple[str, ...] = ()) -> list[tuple[str, Choice]]:
    """Dotted key → value and source; lists and empty mappings are values."""
    if isinstance(value, Mapping) and (value or not place):
        return [choice for key, below in value.items() for choice in _choices(below, root, (*place, str(key)))]
    node = root.get(*place)
    source = "default" if node is None else _source(node)
    return [(".".join(place), Choice(value=_printable(value), source=source))]  # type: ignore[arg-type]


def _source(node: Node) -> str:
    """Of a list, the strongest of what it holds."""
    order = ("default", "file", "environment", "flag")
    return max([node.source, *(_source(child) for _, child in node.children())], key=order.index)


def _printable(value: Any) -> Any:
    """A value as YAML and JSON can hold it: a callable by its name."""
    if isinstance(value, Mapping):
        return {str(key): _printable(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(below) for below in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _target_name(value) if isinstance(value, Callable) else str(value)  # type: ignore[arg-type]


def _target_name(function: Any) -> str:
    module = getattr(function, "__module__", "")
    return f"{module}:{getattr(function, '__qualname__', type(function).__qualname__)}"
