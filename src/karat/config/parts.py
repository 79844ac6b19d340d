"""Nodes → the parts of an experiment: every section is read, whatever is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from karat.config import conditions, sections
from karat.config.advice import judge_advice, keys_of, models_of
from karat.config.environment import expand
from karat.config.model import Execution
from karat.config.personas import check_personas
from karat.config.reader import Reader
from karat.config.secrets import Secrets, find_secrets
from karat.documents.nodes import Node, plain, printable
from karat.errors import Fault
from karat.journal.events import Choice
from karat.models import Price
from karat.records import Cassettes, McpServer
from karat.redact import Redactor

__all__ = ["Parts", "read_parts"]

_SECTIONS = {
    *("name", "version", "dataset", "agent", "judge", "mcp_servers", "baseline"),
    *("conditions", "execution", "scorers", "secrets", "prices", "mcp"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What was read, and what is wrong with it. Parts are None only where there are faults."""

    name: str
    version: str
    dataset: sections.DatasetPart | None
    agent: conditions.AgentPart | None
    servers: dict[str, conditions.ServerPart | None]
    conditions: list[conditions.ConditionPart]
    baseline: str | None  # the condition that the others are compared with; None: the first
    scorers: list[sections.ScorerPart]
    execution: Execution
    cassettes: Cassettes | None
    prices: dict[str, Price]
    secrets: dict[str, str]  # name → value
    named: list[str]  # the names under `secrets:`
    faults: list[Fault]  # in the file's order, without any secret
    warnings: list[str]

    def resolved(self, root: Node) -> dict[str, Choice]:
        """Dotted key → value and source, secrets as ${NAME}."""
        assert self.dataset is not None
        assert self.agent is not None
        judge = [one for one in self.scorers if one.judge]
        others = [one for one in self.scorers if not one.judge]
        settings: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "dataset": {"kind": self.dataset.spec.kind, "path": self.dataset.written, **self.dataset.spec.options},
            "agent": {"type": self.agent.spec.type, **self.agent.shown},
            "judge": {"type": judge[0].spec.type, **judge[0].shown} if judge else None,
            "mcp_servers": {name: part.shown for name, part in self.servers.items() if part is not None},
            "conditions": {part.spec.name: part.shown for part in self.conditions},
            "execution": self.execution.model_dump(),
            "scorers": [{"type": one.spec.type, "name": one.spec.name, **one.shown} for one in others],
            "secrets": self.named,
            "prices": {model: msgspec.structs.asdict(price) for model, price in self.prices.items()},
        }
        if self.baseline is not None:
            settings["baseline"] = self.baseline
        if self.cassettes is not None:
            settings["mcp"] = {self.cassettes.mode: plain(root.get("mcp") or Node({}))[self.cassettes.mode]}
        choices = dict(_choices(settings, root))
        for part in self.conditions:
            if "prompt_file" in part.shown:  # the text is the file's, under whichever key that was named
                for key in ("system_prompt", "prompt_file.path", "prompt_file.sha256"):
                    place = f"conditions.{part.spec.name}.{key}"
                    choices[place] = msgspec.structs.replace(choices[place], source="file")
        return choices


def read_parts(root: Node, *, folder: Path, env: Mapping[str, str], name: str, before: Iterable[Fault]) -> Parts:
    """Everything that the tree says. `name` is the experiment's where it gives none; `before`: faults found so far."""
    faults = [*before, *expand(root, env)]
    secrets = find_secrets(root, env)
    kind = root.get("agent", "type")
    read = Reader(root, folder, env, secrets, lenient=kind is not None and kind.value == "claude_code_sdk")
    read.known_keys("", root.value, _SECTIONS)
    name, version = sections.identity(read, name)
    dataset = sections.dataset(read)
    agent = conditions.agent(read)
    servers = conditions.servers(read)
    conditioned = conditions.conditions(read, servers, agent)
    if dataset is not None:
        check_personas(read, dataset, conditioned)
    parts = Parts(
        name=name,
        version=version,
        dataset=dataset,
        agent=agent,
        servers=servers,
        conditions=conditioned,
        baseline=conditions.baseline(read, conditioned),
        scorers=sections.scorers(read, dataset),
        execution=sections.execution(read),
        cassettes=conditions.traffic(read),
        prices=sections.prices(read),
        secrets=secrets.values(env),
        named=sections.named_secrets(read),
        faults=_presentable([*faults, *secrets.faults, *read.faults], secrets, env),
        warnings=[*secrets.warnings, *read.warnings],
    )
    options = [part.spec.agent.options for part in parts.conditions] + [one.spec.options for one in parts.scorers]
    parts.secrets.update(keys_of((model for one in options for model in models_of(one)), env))
    if not parts.faults:
        told = len(read.warnings)
        _advise(read, parts)
        parts.warnings.extend(read.warnings[told:])
    return parts


def _presentable(faults: Iterable[Fault], secrets: Secrets, env: Mapping[str, str]) -> list[Fault]:
    """In the file's order, each once, without the secrets that stand in it."""
    literals = {f"SECRET_{index}": text for index, text in enumerate(secrets.literals)}
    hidden = Redactor({**literals, **secrets.values(env)})
    ordered = sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)
    return [Fault(place=fault.place, message=hidden(fault.message), line=fault.line) for fault in ordered]


def _advise(read: Reader, parts: Parts) -> None:
    """What is allowed, and probably not meant."""
    assert parts.agent is not None
    used = {server.name: server for part in parts.conditions for server in part.spec.mcp_servers}
    for name in parts.servers:
        if name not in used:
            read.warn(f"mcp_servers.{name}", "no condition uses it")
    if getattr(parts.agent.plugin, "connects_itself", False):
        _advise_on_proxies(read, parts, used)
    if not parts.scorers:
        read.warn("scorers", "there are none: answers are kept, but nothing is scored")
    agents = {model for part in parts.conditions for model in models_of(part.spec.agent.options)}
    for one in parts.scorers:
        place = one.place.removesuffix(".type")
        for key, message in judge_advice(one.spec.options, agents):
            read.warn(f"{place}.{key}", message)


def _advise_on_proxies(read: Reader, parts: Parts, used: dict[str, McpServer]) -> None:
    """What an agent that connects to its MCP servers by itself does not see of them through karat's proxy."""
    assert parts.agent is not None
    itself = f"the agent '{parts.agent.spec.type}' connects to its MCP servers by itself"
    if parts.cassettes is not None and parts.cassettes.mode == "replay":
        if used:
            message = f"{itself}; a replay answers its requests, but sends no notifications and no requests of a server"
            read.warn("mcp.replay", message)
        return
    for name in sorted(name for name, server in used.items() if server.scope == "run"):
        message = (
            f"{itself}, and reaches a shared server through a proxy that passes on tools only, over protocol "
            "2025-11-25 or older: no resources, prompts or notifications. With `scope: trial` it sees all of the server"
        )
        read.warn(f"mcp_servers.{name}.scope", message)


def _choices(value: Any, root: Node, place: tuple[str, ...] = ()) -> list[tuple[str, Choice]]:
    """Dotted key → value and source; lists and empty mappings are values."""
    if isinstance(value, Mapping) and (value or not place):
        return [choice for key, below in value.items() for choice in _choices(below, root, (*place, str(key)))]
    node = root.get(*place)
    source = "default" if node is None else _source(node)
    return [(".".join(place), Choice(value=printable(value), source=source))]


_Source = Literal["default", "file", "environment", "flag"]


def _source(node: Node) -> _Source:
    """Of a list, the strongest of what it holds."""
    order: list[_Source] = ["default", "file", "environment", "flag"]
    return max([node.source, *(_source(child) for _, child in node.children())], key=order.index)
