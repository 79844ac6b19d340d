"""The sections of an experiment file, one function each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.config import announced, digests
from karat.config.model import ConditionModel, DatasetSpec, Execution, RemoteServer, StdioServer
from karat.config.nodes import Node, plain
from karat.config.reader import ALIASES, Reader
from karat.errors import did_you_mean
from karat.records import AgentSpec, Condition, Gate, McpServer, ScorerSpec

__all__ = ["AgentPart", "ScorerPart", "agent", "conditions", "dataset", "execution", "identity", "scorers", "servers"]


@dataclass(frozen=True, slots=True)
class AgentPart:
    """The agent, and what a condition needs to make a variant of it."""

    kind: str
    plugin: type[Any]
    spec: AgentSpec
    given: dict[str, Any]  # the options as the file gives them
    shown: dict[str, Any]  # checked, secrets as ${NAME}


@dataclass(frozen=True, slots=True)
class ScorerPart:
    """A scorer, and its options with secrets as ${NAME}."""

    spec: ScorerSpec
    shown: dict[str, Any]
    ready: bool
    place: str


def identity(read: Reader, default_name: str) -> tuple[str, str]:
    """Name and version."""
    name = default_name
    node = read.root.get("name")
    if node is not None and node.value is not None:
        name = node.value if isinstance(node.value, str) else node.written or str(node.value)
        if not isinstance(node.value, (str, int, float)) or not name.strip():
            read.fault("name", "must be a text, e.g. support-kb")
        elif "/" in name or not name.isprintable():
            read.fault("name", "must not hold a '/' or a control character: files are called after it")
    version = "1"
    node = read.root.get("version")
    if node is not None and node.value is not None:
        version = node.value if isinstance(node.value, str) else node.written or str(node.value)
        if not isinstance(node.value, (str, int, float)):
            read.fault("version", 'must be a text or a number, e.g. "1.2"')
    return str(name).strip(), str(version)


def dataset(read: Reader) -> tuple[DatasetSpec, type[Any]] | None:
    """Which file, read how, and the plug-in that reads it."""
    found = read.mapping("dataset", example="dataset: {path: questions.jsonl}")
    if not found:
        if read.root.get("dataset") is None or read.root.get("dataset", "path") is None:
            _required(read, "dataset", "dataset: {path: questions.jsonl}")
        return None
    values = {key: plain(node) for key, node in found.items()}
    kind = values.pop("kind", None) or "golden"
    path = _dataset_path(read, values.pop("path", None))
    if not isinstance(kind, str):
        read.fault("dataset.kind", "must be the name of a kind of dataset, e.g. golden")
        return None
    plugin = read.plugin("datasets", kind, "dataset.kind")
    if plugin is None:
        return None
    options = read.options(plugin, values, "dataset")
    if options is None or path is None:
        return None
    return DatasetSpec(kind=kind, path=path, options=options), plugin


def _dataset_path(read: Reader, text: Any) -> Path | None:
    if text is None:
        read.fault("dataset.path", "is required: the file with the questions, e.g. questions.jsonl")
        return None
    if not isinstance(text, str) or not text:
        read.fault("dataset.path", "must be the path of a file, e.g. questions.jsonl")
        return None
    if "\0" in text:
        read.fault("dataset.path", "holds a NUL character")
        return None
    here, beside = Path(text).absolute(), read.folder / text
    if here.is_file():
        if beside.is_file() and not here.samefile(beside):
            read.warn(
                "dataset.path", f"'{text}' is in the working directory and beside the experiment; the first is used"
            )
        return here
    if beside.is_file():
        return beside
    for folder in (here, beside):
        if folder.is_dir():
            read.fault("dataset.path", f"'{text}' is a folder; name the file in it")
            return None
    near = did_you_mean(here.name, [other.name for other in _files(beside.parent)]) if beside.name else ""
    looked = (
        "the working directory" if read.folder == Path.cwd() else "the working directory and the experiment's folder"
    )
    read.fault("dataset.path", f"no file '{text}' in {looked}{near if 'mean' in near else ''}")
    return None


def _files(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []


def agent(read: Reader) -> AgentPart | None:
    """The experiment's agent."""
    found = read.mapping("agent", example="agent: {type: floor}")
    if not found:
        if read.root.get("agent") is None or plain(read.root).get("agent") in (None, {}):
            _required(read, "agent", "agent: {type: floor}")
        return None
    values = {key: plain(node) for key, node in found.items()}
    kind = values.pop("type", None)
    if not isinstance(kind, str) or not kind:
        read.fault(
            "agent.type", "is required: which agent, e.g. claude, python, floor" if kind is None else "must be text"
        )
        return None
    name = ALIASES.get(kind, kind)
    plugin = read.plugin("agents", name, "agent.type")
    options = read.options(plugin, values, "agent") if plugin is not None else None
    if plugin is None or options is None:
        return None
    shown = read.shown(options, read.root.get("agent"))
    digest = digests.agent_digest(name, plugin, shown)
    return AgentPart(name, plugin, AgentSpec(type=name, options=options, digest=digest), values, shown)


def servers(read: Reader) -> dict[str, tuple[McpServer, dict[str, Any]]] | None:
    """Name → server, and its definition with secrets as ${NAME}. None where the section is unusable."""
    example = "mcp_servers: {docs: {type: stdio, command: python, args: [server.py]}}"
    node = read.root.get("mcp_servers")
    found = read.mapping("mcp_servers", example=example)
    if node is not None and node.value is not None and not isinstance(node.value, dict):
        return None
    made: dict[str, tuple[McpServer, dict[str, Any]]] = {}
    for name in found:
        server = _server(read, name, example)
        made[name] = server if server is not None else (McpServer(name=name, type="stdio"), {})
    return made


def _server(read: Reader, name: str, example: str) -> tuple[McpServer, dict[str, Any]] | None:
    place = f"mcp_servers.{name}"
    found = read.mapping(place, example=example.partition("docs: ")[2].removesuffix("}"))
    values = {key: plain(node) for key, node in found.items()}
    if not values:
        if isinstance(read.root.get("mcp_servers", name), Node) and plain(read.root)["mcp_servers"][name] in (None, {}):
            read.fault(place, "is empty; a server needs a type and a command (stdio) or a url (http, sse)")
        return None
    kind = values.get("type") or ("stdio" if "command" in values else "http" if "url" in values else None)
    if kind not in ("stdio", "http", "sse"):
        near = did_you_mean(kind, ("stdio", "http", "sse")) if isinstance(kind, str) else ""
        got = f", got '{kind}'{near if 'mean' in near else ''}" if kind is not None else ""
        read.fault(f"{place}.type", f"must be stdio, http or sse{got}")
        return None
    values["type"] = kind
    model = StdioServer if kind == "stdio" else RemoteServer
    for key in [key for key in values if key in _MISPLACED[kind]]:
        read.fault(f"{place}.{key}", f"a server of type {kind} takes no '{key}': {_MISPLACED[kind][key]}")
        del values[key]
    checked = read.model(model, values, place)
    if checked is None:
        return None
    dump = checked.model_dump()
    shown = read.shown(dump, read.root.get("mcp_servers", name))
    defaults = {key: known.default for key, known in model.model_fields.items()}
    digest = digests.server_digest({"name": name, **shown}, defaults)
    return McpServer(name=name, digest=digest, **{**dump, "args": tuple(dump.get("args", ()))}), shown


_MISPLACED: dict[str, dict[str, str]] = {
    "stdio": {
        "url": "it is started with `command`; for an address write `type: http`",
        "headers": "it has no headers; give it variables with `env`",
    },
    "http": {
        "command": "it is reached by its `url`; to start a program write `type: stdio`",
        "args": "it is reached by its `url`; to start a program write `type: stdio`",
        "env": "it is not started by karat; give it `headers`",
    },
}
_MISPLACED["sse"] = _MISPLACED["http"]
_EXAMPLE = "conditions: {baseline: {system_prompt: Answer briefly.}}"


def conditions(
    read: Reader,
    known: Mapping[str, tuple[McpServer, dict[str, Any]]] | None,
    base: AgentPart | None,
) -> list[tuple[Condition, dict[str, Any]]]:
    """The conditions in the file's order, each with its settings, secrets as ${NAME}."""
    found = read.mapping("conditions", example=_EXAMPLE)
    node = read.root.get("conditions")
    if node is None or node.value is None or node.value == {}:
        _required(read, "conditions", _EXAMPLE)
    made = []
    for position, name in enumerate(found):
        one = _condition(read, name, position, known, base)
        if one is not None:
            made.append(one)
    return made


def _condition(
    read: Reader,
    name: str,
    position: int,
    known: Mapping[str, tuple[McpServer, dict[str, Any]]] | None,
    base: AgentPart | None,
) -> tuple[Condition, dict[str, Any]] | None:
    place = f"conditions.{name}"
    if not name.strip() or not name.isprintable():
        read.fault(place, "a condition needs a name that can be printed")
    read.mapping(place, example="baseline: {system_prompt: Answer briefly.}")
    node = read.root.get("conditions", name)
    values = plain(node) if node is not None and isinstance(node.value, dict) else {}
    checked = read.model(ConditionModel, values, place)
    if checked is None:
        _listed_servers(read, place, values.get("mcp_servers"), known)
        _variant(read, place, values.get("agent"), base)
        return None
    _listed_servers(read, place, checked.mcp_servers, known)
    if checked.require_mcp_tool_use and not checked.mcp_servers:
        message = "can never be met: the condition has no mcp_servers"
        read.fault(f"{place}.require_mcp_tool_use", message)
    spec, shown_agent = _variant(read, place, checked.agent, base)
    shown = read.shown(checked.model_dump(exclude={"agent"}), node)
    chosen = [known[server] for server in checked.mcp_servers if known is not None and server in known]
    gates = {key: shown[key] for key in ("require_mcp_tool_use", "require_mcp_tool_success")}
    condition = Condition(
        name=name,
        position=position,
        digest=digests.condition_digest(shown["system_prompt"], [server.digest for server, _ in chosen], gates),
        agent=spec,
        system_prompt=checked.system_prompt,
        mcp_servers=tuple(server for server, _ in chosen),
        gate=Gate(**gates),
    )
    return condition, {**shown, **({"agent": shown_agent} if checked.agent else {})}


def _listed_servers(read: Reader, place: str, listed: Any, known: Mapping[str, Any] | None) -> None:
    if not isinstance(listed, list) or known is None:
        return
    for index, server in enumerate(listed):
        if not isinstance(server, str):
            continue
        where = f"{place}.mcp_servers.{index}"
        if server not in known:
            hint = did_you_mean(server, known) if known else "; the file has no mcp_servers"
            read.fault(where, f"no server is called '{server}'{hint}")
        elif server in listed[:index]:
            read.fault(where, f"the server '{server}' stands here twice; remove one")


def _variant(read: Reader, place: str, overrides: Any, base: AgentPart | None) -> tuple[AgentSpec, dict[str, Any]]:
    """The experiment's agent with the condition's options laid over it."""
    if base is None:
        return AgentSpec(type=""), {}
    if not isinstance(overrides, Mapping) or not overrides:
        return base.spec, {}
    kind = overrides.get("type", base.kind)
    if not isinstance(kind, str) or ALIASES.get(kind, kind) != base.kind:
        read.fault(
            f"{place}.agent.type",
            f"a condition may change the agent's options, not which agent it is ('{base.kind}'); "
            "for another agent make a second experiment and use `karat compare`",
        )
        return base.spec, {}
    own = {key: value for key, value in overrides.items() if key != "type"}
    options = read.options(base.plugin, {**base.given, **own}, f"{place}.agent")
    if options is None:
        return base.spec, {}
    # An option shows the text it came from: the condition's where it has one, else the experiment's.
    theirs, ours = read.root.get(*place.split(".", 1), "agent"), read.root.get("agent")
    shown = {
        key: read.shown(
            value, theirs.get(key) if theirs is not None and key in own else ours.get(key) if ours else None
        )
        for key, value in options.items()
    }
    digest = digests.agent_digest(base.kind, base.plugin, shown)
    return AgentSpec(type=base.kind, options=options, digest=digest), {key: shown[key] for key in own if key in shown}


def scorers(read: Reader, judged: bool) -> list[ScorerPart]:
    """The judge, then what `scorers:` lists."""
    made = []
    judge = read.root.get("judge")
    listed = read.root.get("scorers")
    if judge is not None and judge.value is not None:
        values = {key: plain(node) for key, node in read.mapping("judge", example="judge: {type: overlap}").items()}
        if values or judge.value == {}:
            kind = values.pop("type", None) or "judge"
            made.append(_scorer(read, kind, "judge", values, ("judge", "judge.type", judge)))
    elif judged and (listed is None or listed.value is None):
        read.fault(
            "judge",
            "is required for golden answers: `judge: {model: anthropic:claude-opus-4-5}`, `judge: {type: overlap}` "
            "for the offline one, or `scorers: [...]` to do without",
        )
    if listed is not None and listed.value is not None:
        if isinstance(listed.value, list):
            made += [_listed_scorer(read, index, node) for index, node in enumerate(listed.value)]
        else:
            read.fault("scorers", "must be a list, e.g. `scorers: [equals, {regex: {pattern: '^yes'}}]`")
    good = [one for one in made if one is not None]
    for index, one in enumerate(good):
        if any(one.spec.name == other.spec.name for other in good[:index]):
            read.fault(one.place, f"a second scorer called '{one.spec.name}'; give it a `name` of its own")
    return good


def _listed_scorer(read: Reader, index: int, node: Node) -> ScorerPart | None:
    """`equals`, `{regex: {pattern: …}}` or `{type: regex, name: has-flag, pattern: …}`."""
    place = f"scorers.{index}"
    value = plain(node)
    if isinstance(value, str):
        return _scorer(read, value, value, {}, (place, place, node))
    if isinstance(value, dict) and "type" in value:
        kind = value.pop("type")
        return _scorer(read, kind, value.pop("name", None) or kind, value, (place, f"{place}.type", node))
    if isinstance(value, dict) and len(value) == 1:
        ((kind, options),) = value.items()
        inner = node.get(kind)
        if isinstance(options, dict) or options is None:
            options = options or {}
            return _scorer(read, kind, options.pop("name", None) or kind, options, (f"{place}.{kind}", place, inner))
    read.fault(place, "must be a name or a mapping: `equals`, `regex: {pattern: '^yes'}`, or `{type: regex, name: …}`")
    return None


def _scorer(
    read: Reader, kind: Any, name: Any, options: dict[str, Any], where: tuple[str, str, Node | None]
) -> ScorerPart | None:
    place, type_place, node = where
    if not isinstance(kind, str):
        read.fault(type_place, "must be the name of a scorer, e.g. equals")
        return None
    if not isinstance(name, str) or not name.strip():
        read.fault(f"{place}.name", "must be text: what the scorer is called in tables")
        return None
    plugin = read.plugin("scorers", kind, type_place)
    checked = read.options(plugin, options, place) if plugin is not None else None
    if plugin is None or checked is None:
        return None
    spec = ScorerSpec(type=kind, name=name, options=checked)
    return ScorerPart(spec, read.shown(checked, node), announced.runs(plugin), type_place)


def execution(read: Reader) -> Execution:
    """How the run is carried out; the defaults where the section is absent or wrong."""
    found = read.mapping("execution", example="execution: {num_repetitions: 3}")
    values = {key: plain(node) for key, node in found.items() if node.value is not None}
    return read.model(Execution, values, "execution") or Execution()


def slug(name: str) -> str:
    """A name as it can stand in a file name: ASCII letters, digits, dot, dash and underscore."""
    import unicodedata

    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_only).strip("-._")[:60].lower() or "run"


def _required(read: Reader, place: str, example: str) -> None:
    read.fault(place, f"is required, e.g. `{example}`")
