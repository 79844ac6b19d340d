"""The agent, the MCP servers, and the conditions that combine them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from karat.config import digests
from karat.config.model import ConditionModel, McpTraffic, RemoteServer, StdioServer
from karat.config.presets import presets
from karat.config.prompts import system_prompt
from karat.config.reader import Reader
from karat.documents.nodes import Node, plain
from karat.errors import did_you_mean
from karat.plugins import file_name
from karat.records import AgentSpec, Cassettes, Condition, Gate, McpServer

__all__ = ["AgentPart", "ConditionPart", "ServerPart", "agent", "baseline", "conditions", "servers", "traffic"]


@dataclass(frozen=True, slots=True)
class AgentPart:
    """The agent, and what a condition needs to make a variant of it."""

    plugin: type[Any]
    spec: AgentSpec
    given: dict[str, Any]  # the options as the file gives them
    shown: dict[str, Any]  # checked, secrets as ${NAME}


@dataclass(frozen=True, slots=True)
class ServerPart:
    """A server, and its definition with secrets as ${NAME}."""

    spec: McpServer
    shown: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConditionPart:
    """A condition, and its settings with secrets as ${NAME}."""

    spec: Condition
    shown: dict[str, Any]


def agent(read: Reader) -> AgentPart | None:
    """The experiment's agent."""
    example = "agent: {type: floor}"
    if not read.required("agent", example=example):
        return None
    values = {key: plain(node) for key, node in read.mapping("agent", example=example).items()}
    if not values:
        return None
    kind = values.pop("type", None)
    if not isinstance(kind, str) or not kind:
        what = "is required" if kind is None else "must be text"
        read.fault("agent.type", f"{what}: which agent is asked, e.g. floor, python or command")
        return None
    name = file_name("agents", kind)
    plugin = read.plugin("agents", name, "agent.type")
    options = read.options(plugin, values, "agent") if plugin is not None else None
    if plugin is None or options is None:
        return None
    shown = read.shown(options, read.root.get("agent"))
    digest = digests.agent_digest(name, plugin, shown)
    return AgentPart(plugin, AgentSpec(type=name, options=options, digest=digest), values, shown)


def servers(read: Reader) -> dict[str, ServerPart | None]:
    """Name → server, in the file's order; None for one with faults: conditions may name it all the same."""
    found = read.mapping("mcp_servers", example="mcp_servers: {docs: {command: python, args: [server.py]}}")
    return {name: _server(read, name, node) for name, node in found.items()}


def _server(read: Reader, name: str, node: Node) -> ServerPart | None:
    place = f"mcp_servers.{name}"
    if not name or not name.isprintable():
        read.fault(place, "a server needs a name that can be printed")
    values = {key: plain(below) for key, below in read.mapping(place, example="docs: {command: python}").items()}
    if not values:
        if node.value in (None, {}):
            read.fault(place, "is empty; a server needs a `command` (stdio) or a `url` (http, sse)")
        return None
    kind = values.get("type") or ("stdio" if "command" in values else "http" if "url" in values else None)
    if kind not in ("stdio", "http", "sse"):
        got = f", got '{kind}'{did_you_mean(kind, _TYPES, listing=False)}" if isinstance(kind, str) else ""
        read.fault(f"{place}.type", f"must be stdio, http or sse{got}")
        return None
    model = StdioServer if kind == "stdio" else RemoteServer
    misplaced = [key for key in values if key in _TYPES[kind]]
    for key in misplaced:
        tell = read.warn if read.lenient else read.fault
        tell(f"{place}.{key}", f"a server of type {kind} takes no `{key}`; {_TYPES[kind][key]}")
    kept = {key: value for key, value in values.items() if key not in misplaced}
    checked = read.model(model, {**kept, "type": kind}, place)
    if checked is None:
        return None
    settings = checked.model_dump()
    shown = read.shown(settings, node)
    defaults = {key: known.default for key, known in model.model_fields.items()}
    digest = digests.server_digest({"name": name, **shown}, defaults)
    settings["args"] = tuple(settings.get("args", ()))
    return ServerPart(McpServer(name=name, digest=digest, **settings), shown)


def traffic(read: Reader) -> Cassettes | None:
    """Where MCP traffic is recorded, or replayed from: a folder, from the experiment's."""
    values = {key: plain(node) for key, node in read.mapping("mcp", example="mcp: {record: cassettes}").items()}
    checked = read.model(McpTraffic, values, "mcp")
    if checked is None or not (checked.record or checked.replay):
        return None
    if checked.record:
        return Cassettes(mode="record", folder=read.folder / checked.record)
    folder = read.folder / str(checked.replay)
    if not folder.is_dir():
        remedy = "`karat run FILE --set mcp.record=FOLDER` makes one (and leave out `replay`)"
        read.fault("mcp.replay", f"there is no folder '{folder}'; {remedy}")
    return Cassettes(mode="replay", folder=folder)


# The types, each with the keys of the others and what to do about them.
_REACHED = {
    "command": "it is reached by its `url`; to start a program write `type: stdio`",
    "args": "it is reached by its `url`; to start a program write `type: stdio`",
    "env": "karat does not start it; write `headers`, or set the variable where it is started",
}
_TYPES: dict[str, dict[str, str]] = {
    "stdio": {
        "url": "it is started by its `command`; to reach an address write `type: http`",
        "headers": "it is a program; write `env`",
    },
    "http": _REACHED,
    "sse": _REACHED,
}


MOST_CONDITIONS = 500
"""As many as a summary reads."""


def baseline(read: Reader, known: Iterable[ConditionPart]) -> str | None:
    """The condition that the others are compared with; None where the file names none."""
    node, names = read.root.get("baseline"), [part.spec.name for part in known]
    if node is None or node.value is None:
        return None
    name = node.value if isinstance(node.value, str) else node.written or str(node.value)
    if names and name not in names:
        read.fault("baseline", f"no condition is called '{name}'{did_you_mean(name, names)}")
    return name


def conditions(read: Reader, known: Mapping[str, ServerPart | None], base: AgentPart | None) -> list[ConditionPart]:
    """The conditions, in the file's order."""
    example = "conditions: {baseline: {system_prompt: Answer briefly.}}"
    if not read.required("conditions", example=example):
        return []
    found = read.mapping("conditions", example=example)
    if len(found) > MOST_CONDITIONS:
        read.fault("conditions", f"at most {MOST_CONDITIONS}, got {len(found)}: every two of them are compared")
        return []
    made = [_condition(read, (name, position), known, base) for position, name in enumerate(found)]
    return [one for one in made if one is not None]


def _condition(
    read: Reader, which: tuple[str, int], known: Mapping[str, ServerPart | None], base: AgentPart | None
) -> ConditionPart | None:
    name, position = which
    place = f"conditions.{name}"
    if not name.strip() or not name.isprintable():
        read.fault(place, "a condition needs a name that can be printed")
    node = Node(read.mapping(place, example="baseline: {system_prompt: Answer briefly.}"))
    values = plain(node)
    chosen = _chosen(read, f"{place}.mcp_servers", values.get("mcp_servers"), known)
    variant = _variant(read, f"{place}.agent", node.get("agent"), base)
    _check_prompt_keys(read, place, values)
    checked = read.model(ConditionModel, values, place)
    if checked is None or variant is None:
        return None
    text, from_file = system_prompt(read, place, checked)
    if checked.require_mcp_tool_use and not checked.mcp_servers:
        message = "no trial can meet this: the condition has no mcp_servers"
        read.fault(f"{place}.require_mcp_tool_use", message)
    shown = read.shown(checked.model_dump(exclude={"agent", "prompt_file"}), node)
    if from_file:
        shown |= {"system_prompt": text, **from_file}
    if checked.preset is None:
        del shown["preset"]
    else:
        shown["system_prompt"] = presets()[checked.preset].text
    gate = Gate(
        require_mcp_tool_use=checked.require_mcp_tool_use, require_mcp_tool_success=checked.require_mcp_tool_success
    )
    condition = Condition(
        name=name,
        position=position,
        digest=digests.condition_digest(shown["system_prompt"], [server.digest for server in chosen], gate),
        agent=variant.spec,
        system_prompt=text if checked.preset is None else shown["system_prompt"],
        mcp_servers=tuple(chosen),
        gate=gate,
    )
    return ConditionPart(condition, {**shown, "agent": variant.shown} if checked.agent else shown)


def _check_prompt_keys(read: Reader, place: str, values: dict[str, Any]) -> None:
    """At most one key says what the system prompt is; k-eval's name of a prompt's file becomes ours."""
    if "prompt_file" not in values and "system_prompt_file" in values:
        values["prompt_file"] = values.pop("system_prompt_file")
    given = [key for key in ("preset", "system_prompt", "prompt_file") if values.get(key) is not None]
    if len(given) > 1:
        read.fault(f"{place}.{given[0]}", f"leave out one of `{given[0]}` and `{given[1]}`: each is the system prompt")


def _chosen(read: Reader, place: str, listed: Any, known: Mapping[str, ServerPart | None]) -> list[McpServer]:
    """The servers that a condition names."""
    chosen = []
    for index, server in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(server, str):
            continue
        if server not in known:
            hint = did_you_mean(server, known) if known else "; `mcp_servers` names none"
            read.fault(f"{place}.{index}", f"no server is called '{server}'{hint}")
        elif server in listed[:index]:
            read.fault(f"{place}.{index}", f"the server '{server}' stands here twice; remove one")
        else:
            part = known[server]
            chosen += [part.spec] if part is not None else []
    return chosen


def _variant(read: Reader, place: str, node: Node | None, base: AgentPart | None) -> AgentPart | None:
    """The experiment's agent with the condition's options laid over it; None where one of them is wrong."""
    if base is None or node is None or not isinstance(node.value, dict):
        return base
    own = plain(node)
    kind = own.pop("type", base.spec.type)
    if not isinstance(kind, str) or file_name("agents", kind) != base.spec.type:
        read.fault(
            f"{place}.type",
            f"a condition changes the agent's options, not which agent it is ('{base.spec.type}'); "
            "for another agent write a second experiment and use `karat compare`",
        )
        return None
    options = read.options(base.plugin, {**base.given, **own}, place)
    if options is None:
        return None
    # A value shows the text it came from: the condition's where it has one, else the experiment's.
    theirs = read.root.get("agent")
    shown = {
        key: read.shown(value, node.get(key) if key in own else theirs and theirs.get(key))
        for key, value in options.items()
    }
    spec = AgentSpec(
        type=base.spec.type, options=options, digest=digests.agent_digest(base.spec.type, base.plugin, shown)
    )
    return AgentPart(base.plugin, spec, own, {key: value for key, value in shown.items() if key in own})
