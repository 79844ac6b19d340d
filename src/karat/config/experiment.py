"""The experiment file → Experiment, or every fault in it at once."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from pydantic import ValidationError

from karat import kinds, plugins
from karat.config import digests
from karat.config.advice import advise, keys_of, models_of
from karat.config.clients import include
from karat.config.context import CONTEXT_KEYS
from karat.config.environment import expand, read_env_file
from karat.config.model import Execution, ExperimentFile, RemoteServer, StdioServer
from karat.config.prompts import PromptText
from karat.config.reading import Plugged, Reading
from karat.config.secrets import Secrets
from karat.config.settings import apply, write_out
from karat.documents import reader as documents
from karat.documents.hub import at_commit
from karat.documents.nodes import Node, Place, fault_at, from_python, plain, printable
from karat.documents.validation import explain
from karat.errors import BadExperiment, Fault, did_you_mean, unreadable
from karat.files import open_regular
from karat.journal.events import Choice
from karat.journal.folder import slugged
from karat.models import Price, Rate
from karat.records import (
    AgentSpec,
    Cassettes,
    Condition,
    Context,
    ContextPart,
    Gate,
    JsonObject,
    McpServer,
    ScorerSpec,
    ServerAuth,
)
from karat.redact import Redactor

if TYPE_CHECKING:
    from karat.kinds import Dataset


class DatasetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The file, and how to read it."""

    kind: str
    path: Path
    options: JsonObject


class Experiment:
    """An experiment: an agent, asked a dataset's questions under conditions, and how it is scored.

    The keywords are the keys of the experiment file, with the same meaning; `agent={"type":
    "python", "target": function}` is allowed. Relative paths start at the working directory, then
    at `folder`. `${NAME}` is taken from `env`, the process's environment unless given. Raises
    BadExperiment with every fault at once.

    >>> Experiment(
    ...     dataset={"path": "gone.jsonl"},
    ...     agent={"type": "floor"},
    ...     conditions={"a": {}},
    ...     scorers=[],
    ... )
    Traceback (most recent call last):
    karat.errors.BadExperiment: experiment: 1 fault
      dataset.path: there is no file 'gone.jsonl' in the working directory
    """

    name: str
    slug: str  # the name as used for the run folder
    version: str
    folder: Path  # absolute; of the file, or the working directory
    path: Path | None  # None: made in Python
    text: str  # as written; if made in Python, YAML from the keywords
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
    limits: Mapping[str, Rate]  # how often a model may be asked
    env: Mapping[str, str]  # the environment it was read with; never write it
    secrets: Mapping[str, str]  # name → value of every secret; never write it
    resolved: Mapping[str, Choice]  # dotted key → value and source; secrets as ${NAME}
    warnings: tuple[str, ...]
    rehearsed: bool  # whether its models are scripts on this machine

    def __init__(
        self, *, folder: Path | str | None = None, env: Mapping[str, str] | None = None, **keys: Any
    ) -> None:
        import yaml

        root = from_python({key: value for key, value in keys.items() if value is not None})
        text = yaml.safe_dump(printable(keys), sort_keys=False, allow_unicode=True)
        if folder is not None:
            where = Path(folder).absolute()
        else:
            where = Path.cwd()

        _fill(
            self,
            root,
            _Source(path=None, folder=where, text=text),
            os.environ if env is None else env,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an experiment does not change: make another one to set '{name}'")

    def __repr__(self) -> str:
        # Not the fields: they include secrets.
        names = [condition.name for condition in self.conditions]
        return f"Experiment(name={self.name!r}, agent={self.agent.type!r}, conditions={names!r})"

    def moved(self, places: Mapping[Path, Path], env: Mapping[str, str]) -> Experiment:
        """The same with its files in other places (old → new) and other variables."""

        def place(path: Path) -> Path:
            for old, new in places.items():
                if path.is_relative_to(old):
                    path = new / path.relative_to(old)

            return path

        def part(original: ContextPart) -> ContextPart:
            return msgspec.structs.replace(
                original, path=places.get(original.path) or place(original.path)
            )

        moved = copy.copy(self)
        conditions = []
        for condition in self.conditions:
            if condition.context.instructions:
                instructions = part(condition.context.instructions)
            else:
                instructions = None

            if condition.context.workspace:
                workspace = part(condition.context.workspace)
            else:
                workspace = None

            context = msgspec.structs.replace(
                condition.context,
                skills=tuple(map(part, condition.context.skills)),
                plugins=tuple(map(part, condition.context.plugins)),
                instructions=instructions,
                workspace=workspace,
            )
            conditions.append(msgspec.structs.replace(condition, context=context))

        cassettes = self.cassettes
        if cassettes is not None:
            folder = places.get(cassettes.folder) or place(cassettes.folder)
            cassettes = msgspec.structs.replace(cassettes, folder=folder)

        changed = {
            "folder": place(self.folder),
            "conditions": tuple(conditions),
            "cassettes": cassettes,
            "env": env,
        }
        for field, value in changed.items():
            object.__setattr__(moved, field, value)
        return moved

    def load_dataset(self, commit: str | None = None, *, first: int | None = None) -> Dataset:
        """The samples. Raises BadDataset with every fault of the file at once.

        `commit`: which one to read for a Hugging Face dataset with no revision in its path; None:
        the newest. `first`: how many samples are enough; other rows may be left unread.
        """
        plugin = plugins.find("kinds", self.kind, folder=self.folder)
        if commit is None:
            path = self.dataset.path
        else:
            path = at_commit(self.dataset.path, commit)

        kind = plugins.build(plugin, self.dataset.options, folder=self.folder)
        scorers = [plugins.find("scorers", spec.type, folder=self.folder) for spec in self.scorers]
        if not any(getattr(scorer, "golden", True) for scorer in scorers):
            kind = getattr(kind, "without_answers", lambda: kind)()
        elif not any(getattr(scorer, "scores_criteria", False) for scorer in scorers):
            kind = getattr(kind, "without_criteria", lambda: kind)()

        if first is not None:
            kind = getattr(kind, "first", lambda _: kind)(first)
        loaded: Dataset = kind.load(path)
        if loaded.samples and not loaded.samples[0].kind:
            named = [msgspec.structs.replace(sample, kind=self.kind) for sample in loaded.samples]
            return msgspec.structs.replace(loaded, samples=named)

        return loaded

    def with_dataset(
        self,
        commit: str | None = None,
        *,
        first: int | None = None,
        dataset: Dataset | None = None,
    ) -> tuple[Experiment, Dataset]:
        """The dataset as `load_dataset` gives it, or has given it, and the experiment with its
        default scorer if none is named.
        """
        if dataset is None:
            dataset = self.load_dataset(commit, first=first)
        wanted = kinds.of(self.kind).own_scorer(dataset)
        if wanted is None or self.resolved["scorers"].source != "default":
            return self, dataset
        options = _default_scorer(wanted, self.folder).options
        filled = copy.copy(self)
        choice = Choice(value=[{"type": wanted, "name": wanted, **options}], source="default")
        spec = ScorerSpec(type=wanted, name=wanted, options=options)
        object.__setattr__(filled, "scorers", (spec, *self.scorers[1:]))
        object.__setattr__(filled, "resolved", {**self.resolved, "scorers": choice})
        return filled, dataset

    def agent_at(self, condition: str, option: str) -> str:
        """The file, and the place in it that sets an option of a condition's agent."""
        own = ("conditions", condition, "agent", option)
        place: Place = own if ".".join(own) in self.resolved else ("agent", option)
        choice = self.resolved.get(".".join(map(str, place)))
        root = None
        if self.path is not None:
            root = documents.parse(self.text.encode()).root
        if choice is not None and choice.source == "flag":
            root = Node({}, source="flag")
        if root is None:
            root = Node({})
        fault = fault_at(root, place, "")
        named = str(self.path or "experiment")
        return f"{named}: {fault}".removesuffix(": ")


def load(
    path: Path | str,
    *,
    settings: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    env_file: Path | str | None = None,
) -> Experiment:
    """The experiment in a YAML file. Creates nothing, makes no calls.

    `settings` override the file (`"execution.num_repetitions=5"`); `${NAME}` is taken from
    `env` (the process's environment unless given), then from `env_file`. Raises BadExperiment
    with every fault at once, each with its place, its line, and the expected value.
    """
    path = Path(path)
    data, faults = _read(path)
    variables = dict(os.environ if env is None else env)
    if env_file is not None:
        more, wrong = read_env_file(Path(env_file))
        variables = {**more, **variables}
        faults += wrong

    parsed = documents.parse(data)
    if data:
        faults += parsed.faults
    root = parsed.root
    if root is None or not isinstance(root.value, dict):
        if not faults:
            wanted = "an experiment needs the keys dataset, agent and conditions"
            if root is None or root.value is None:
                shapeless = Fault(place="file", message=f"is empty; {wanted}")
            else:
                shape = "a list" if isinstance(root.value, list) else "one text"
                shapeless = Fault(place="file", message=f"is {shape}; {wanted}", line=root.line)

            faults += [shapeless]

        raise BadExperiment(path, faults)

    faults += apply(root, settings)
    experiment = object.__new__(Experiment)
    source = _Source(path=path, folder=path.absolute().parent, text=data.decode("utf-8-sig"))
    _fill(experiment, root, source, variables, faults, parsed.warnings)
    return experiment


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where an experiment comes from."""

    path: Path | None
    folder: Path
    text: str


# of this process: `karat check <(…)`
_DESCRIPTOR = re.compile(r"/dev/(stdin|fd/[0-9]+)\Z|/proc/self/fd/[0-9]+\Z")


def _read(path: Path) -> tuple[bytes, list[Fault]]:
    try:
        with path.open("rb") if _DESCRIPTOR.match(str(path)) else open_regular(path) as file:
            return file.read(documents.MAX_BYTES + 1), []
    except FileNotFoundError:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.y*ml")])
        message = f"there is no such file{near}; `karat init golden` writes one to begin with"
    except IsADirectoryError:
        inside = sorted(other.name for other in path.glob("*.y*ml"))
        message = "is a folder; name the experiment file in it" + (
            f", e.g. {path / inside[0]}" if inside else ""
        )
    except (OSError, ValueError) as error:
        message = f"cannot be read: {unreadable(error)}"

    return b"", [Fault(place="file", message=message)]


def _fill(
    experiment: Experiment,
    root: Node,
    source: _Source,
    env: Mapping[str, str],
    faults: Sequence[Fault] = (),
    warnings: Sequence[str] = (),
) -> None:
    """Reads the tree into a new experiment, or raises with all faults."""
    write_out(root)
    faults = [*faults, *expand(root, env)]
    included = include(root, folder=source.folder, env=env)
    faults += included.faults
    secrets = Secrets(root, env)
    secrets.variables |= included.inputs
    reading = Reading(root, source.folder, env, secrets, disabled=included.disabled)
    for place, message in included.warnings:
        reading.warn(place, message)
    file = _validated(reading, faults)
    named = str(source.path or "experiment")
    if faults or file is None:
        literals = {f"SECRET_{index}": text for index, text in enumerate(reading.secrets.literals)}
        hidden = Redactor({**literals, **reading.secrets.values()})
        named_only = set(reading.secrets.faults)  # they hold no value, and the name of a variable
        ordered = sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)
        raise BadExperiment(
            named,
            [
                one if one in named_only else replace(one, message=hidden(one.message))
                for one in ordered
            ],
        )

    values = _Builder(reading, file).values(
        source.path.stem if source.path is not None else "experiment"
    )
    masked = Redactor(values["secrets"])
    every_warning = dict.fromkeys([*warnings, *reading.secrets.warnings, *reading.warnings])
    values |= {
        "slug": slugged(values["name"]),
        "folder": source.folder,
        "path": source.path,
        "text": source.text,
        "masked_text": masked(source.text),
        "env": env,
        "warnings": tuple(masked(warning) for warning in every_warning),
        "rehearsed": False,
    }
    for field, value in values.items():
        object.__setattr__(experiment, field, value)


def _validated(reading: Reading, faults: list[Fault]) -> ExperimentFile | None:
    """The file's values, checked; None, with the faults added, if something is wrong."""
    root = reading.root
    kind = root.get("agent", "type")
    # a k-eval file: unknown keys are warnings
    lenient = kind is not None and kind.value == "claude_code_sdk"
    execution = root.get("execution") or root
    if lenient and execution.keys() & {"num_samples", "num_repetitions"} == {"num_samples"}:
        message = "is read as `num_repetitions`, the name that k-eval gave it later"
        reading.warn(("execution", "num_samples"), message)
        named = {"num_samples": "num_repetitions"}
        execution.value = {named.get(str(key), key): node for key, node in execution.children()}

    faults += reading.secrets.faults
    for _ in range(2 if lenient else 1):
        try:
            return ExperimentFile.model_validate(plain(root), context=reading)
        except ValidationError as error:
            problems = explain(error, plain(root), ExperimentFile)

        if lenient:
            unknown = [problem for problem in problems if problem.unknown_key]
        else:
            unknown = []

        for problem in unknown:
            reading.warn(problem.place, f"{problem.message}; it is ignored")
            parent = root.get(*problem.place[:-1])
            if parent is not None and isinstance(parent.value, dict):
                del parent.value[problem.place[-1]]

        if not unknown:
            break

    faults += [fault for problem in problems if (fault := reading.fault(problem)) is not None]
    return None


class _Builder:
    """The specs of an experiment from its checked file."""

    def __init__(self, reading: Reading, file: ExperimentFile) -> None:
        self._reading = reading
        self._file = file
        self._root = reading.root
        self._shown: dict[str, JsonObject] = {"mcp_servers": {}, "conditions": {}}

    def values(self, default_name: str) -> JsonObject:
        file = self._file
        reading = self._reading
        kind = self._file.dataset.kind
        shown = reading.shown(file.agent.options, self._root.get("agent"))
        agent = self._agent(file.agent, shown)
        servers = {name: self._server(name, server) for name, server in file.mcp_servers.items()}
        conditions = tuple(
            self._condition(position, name, agent, shown, servers)
            for position, name in enumerate(file.conditions)
        )
        # the judge, then the listed scorers, each with its place; without any, the kind's default
        scorers: list[tuple[Place, Plugged]] = []
        default = getattr(kind.plugin, "scorer", None)
        if default is not None and file.scorers is None:
            scorers.append(((), _default_scorer(default, reading.folder)))
        if file.judge is not None:
            scorers.append((("judge",), file.judge))
        for at, scorer in enumerate(file.scorers or []):
            scorers.append((("scorers", at, *scorer.place), scorer))

        specs = [
            ScorerSpec(type=scorer.type, name=scorer.name, options=scorer.options)
            for _, scorer in scorers
        ]
        named = [
            *(condition.agent.options for condition in conditions),
            *(spec.options for spec in specs),
        ]
        secrets = reading.secrets.values() | keys_of(
            (model for one in named for model in models_of(one)), reading.env
        )
        name = file.name or default_name
        mcp = file.mcp.record or file.mcp.replay
        mode: Literal["record", "replay"] = "record" if file.mcp.record else "replay"
        if mcp:
            cassettes = Cassettes(mode=mode, folder=reading.folder / mcp)
        else:
            cassettes = None

        advise(reading, file, conditions, scorers, cassettes)
        return {
            "name": name,
            "version": file.version,
            "kind": kind.type,
            "dataset": DatasetSpec(kind=kind.type, path=file.dataset.path, options=kind.options),
            "agent": agent,
            "conditions": conditions,
            "servers": tuple(servers.values()),
            "scorers": tuple(specs),
            "execution": file.execution,
            "cassettes": cassettes,
            "prices": {model: Price(**price.model_dump()) for model, price in file.prices.items()},
            "limits": {model: Rate(**rate.model_dump()) for model, rate in file.limits.items()},
            "secrets": secrets,
            "resolved": self._resolved(name, shown, scorers),
        }

    def _agent(self, part: Plugged, shown: JsonObject) -> AgentSpec:
        return AgentSpec(
            type=part.type,
            options=part.options,
            digest=digests.agent_digest(part.type, part.plugin, shown),
        )

    def _server(self, name: str, model: StdioServer | RemoteServer) -> McpServer:
        settings = model.model_dump()
        if settings.get("cwd") is None:
            settings.pop("cwd", None)  # not in the settings of earlier runs
        auth = getattr(model, "auth", None)
        if "auth" in settings:
            if auth is None:
                settings["auth"] = None
            else:
                settings["auth"] = auth.model_dump(exclude_none=True)

        shown = self._reading.shown(settings, self._root.get("mcp_servers", name))
        self._shown["mcp_servers"][name] = shown
        defaults = {}
        for key, field in type(model).model_fields.items():
            if key != "type":
                defaults[key] = field.default

        digest = digests.server_digest({"name": name, **shown}, defaults)
        settings["args"] = tuple(settings.get("args", ()))
        if auth is not None:
            settings["auth"] = ServerAuth(
                type=auth.type,
                issuer=auth.issuer,
                client_id=auth.client_id or "",
                secret=self._reading.env.get(
                    auth.client_secret_env or auth.private_key_env or "", ""
                ),
                algorithm=auth.algorithm,
                token_endpoint_auth_method=auth.token_endpoint_auth_method,
                scopes=tuple(auth.scopes),
            )

        return McpServer(name=name, digest=digest, **settings)

    def _condition(
        self,
        position: int,
        name: str,
        agent: AgentSpec,
        agent_shown: JsonObject,
        servers: dict[str, McpServer],
    ) -> Condition:
        model = self._file.conditions[name]
        node = self._root.get("conditions", name)
        prompt = model.prompt
        fields = model.model_dump(
            exclude={"agent", "prompt_file", "preset", "system_prompt", "elicit", *CONTEXT_KEYS}
        )
        shown: JsonObject = self._reading.shown({"system_prompt": prompt, **fields}, node)
        if isinstance(prompt, PromptText):
            shown["system_prompt"] = prompt.text
            shown["prompt_file"] = {"path": prompt.path, "sha256": prompt.sha256}

        if model.preset is not None:
            shown |= {"system_prompt": prompt, "preset": model.preset}
        if model.agent is not None:
            own = self._root.get("conditions", name, "agent")
            # A value shows its source text: the condition's if it has one, else the experiment's.
            mine = self._reading.shown(model.agent.options, own)
            both = {}
            for key in mine:
                if key in model.agent.given:
                    both[key] = mine[key]
                else:
                    both[key] = agent_shown[key]

            agent = self._agent(model.agent, both)
            if model.agent.given:
                shown["agent"] = {
                    key: value for key, value in both.items() if key in model.agent.given
                }

        self._shown["conditions"][name] = shown
        chosen = tuple(servers[server] for server in model.mcp_servers)
        context = Context(
            skills=tuple(model.skills),
            plugins=tuple(model.plugins),
            instructions=model.instructions,
            workspace=model.workspace,
            tools=tuple(model.tools),
        )
        # each part that is set, with its path as in the file and its digest
        for key in context.keys:
            value = getattr(context, key)
            below = None if node is None else node.get(key)
            if key == "tools":
                shown[key] = list(value)
            elif isinstance(value, ContextPart):
                shown[key] = _shown_part(value, below)
            else:
                shown[key] = [
                    _shown_part(part, below.get(at) if below else None)
                    for at, part in enumerate(value)
                ]

        if model.elicit is not None:
            shown["elicit"] = msgspec.to_builtins(model.elicit)
        gate = Gate(
            require_mcp_tool_use=model.require_mcp_tool_use,
            require_mcp_tool_success=model.require_mcp_tool_success,
        )
        return Condition(
            name=name,
            position=position,
            digest=digests.condition_digest(
                shown["system_prompt"],
                [server.digest for server in chosen],
                gate,
                context,
                model.elicit,
            ),
            agent=agent,
            system_prompt=prompt.text if isinstance(prompt, PromptText) else prompt,
            mcp_servers=chosen,
            gate=gate,
            elicit=model.elicit,
            context=context,
        )

    def _resolved(
        self, name: str, agent: JsonObject, scorers: Sequence[tuple[Place, Plugged]]
    ) -> dict[str, Choice]:
        """Dotted key → value and source, secrets as ${NAME}."""
        file = self._file
        reading = self._reading
        root = self._root
        judge = []
        for scorer in scorers:
            if scorer[0] == ("judge",):
                judge.append(self._shown_scorer(*scorer))

        others = [self._shown_scorer(*scorer) for scorer in scorers if scorer[0] != ("judge",)]
        path = root.get("dataset", "path")
        settings: JsonObject = {
            "name": name,
            "version": file.version,
            "dataset": {
                "kind": file.dataset.kind.type,
                "path": reading.shown(path.value if path is not None else "", path),
                **file.dataset.kind.options,
            },
            "agent": {"type": file.agent.type, **agent},
            "judge": {key: value for key, value in judge[0].items() if key != "name"}
            if judge
            else None,
            "mcp_servers": self._shown["mcp_servers"],
            "conditions": self._shown["conditions"],
            "execution": file.execution.model_dump(
                exclude={
                    *({} if file.execution.stop else {"stop"}),
                    *({} if file.execution.executor == "ray" else {"executor", "ray"}),
                }
            ),
            "scorers": others,
            "secrets": list(file.secrets),
            "prices": {model: price.model_dump() for model, price in file.prices.items()},
        }
        if file.limits:
            settings["limits"] = {model: rate.model_dump() for model, rate in file.limits.items()}
        if file.baseline is not None:
            settings["baseline"] = file.baseline
        if gate := file.gate.model_dump(exclude_defaults=True):
            settings["gate"] = gate
        if file.mcp.record or file.mcp.replay:
            settings["mcp"] = file.mcp.model_dump(exclude_none=True)
        choices = dict(_choices(settings, root))
        for condition, values in self._shown["conditions"].items():
            # The text is from the file, under the key used there.
            for key in (
                ("system_prompt", "prompt_file.path", "prompt_file.sha256")
                if "prompt_file" in values
                else ()
            ):
                place = f"conditions.{condition}.{key}"
                choices[place] = msgspec.structs.replace(choices[place], source="file")

        return choices

    def _shown_scorer(self, place: Place, part: Plugged) -> JsonObject:
        options = self._reading.shown(part.options, self._root.get(*place) if place else None)
        return {"type": part.type, "name": part.name, **options}


def _shown_part(part: ContextPart, node: Node | None) -> dict[str, str]:
    if node is not None:
        path = str(node.value)
    else:
        path = str(part.path)

    return {"path": path, "digest": part.digest}


def _default_scorer(name: str, folder: Path) -> Plugged:
    plugin = plugins.find("scorers", name, folder=folder)
    options, _ = plugins.check_options(plugin, {}, place="scorers.0")
    return Plugged(type=name, plugin=plugin, options=options, given={}, name=name)


def _choices(
    value: object, root: Node, place: tuple[str, ...] = ()
) -> Iterator[tuple[str, Choice]]:
    """Dotted key → value and source; lists and empty mappings are values."""
    if isinstance(value, Mapping) and (value or not place):
        for key, below in value.items():
            yield from _choices(below, root, (*place, str(key)))
    else:
        node = root.get(*place)
        yield (
            ".".join(place),
            Choice(value=printable(value), source="default" if node is None else node.strongest),
        )
