"""An experiment whose models are scripts on this machine: run by `karat run --rehearse`."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat import plugins
from karat.config.experiment import Experiment, load
from karat.config.model import Budget
from karat.errors import BadExperiment, BadOption, Fault
from karat.journal.events import Choice
from karat.journal.folder import slugged
from karat.models import parse_model
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.testing.models import ModelServer, Script
    from karat.testing.models.script import Hook

KEY = "KARAT_REHEARSAL_KEY"
_KEPT = 1000  # requests, for inspection; a rehearsal may have a million
_PROTOCOLS = {"openai", "openai-chat", "openai-responses", "anthropic"}  # protocols of the server


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """The experiment to run instead, and the server that acts as its models."""

    experiment: Experiment
    server: ModelServer


@contextmanager
def rehearsal(
    experiment: Experiment | str | os.PathLike[str],
    *,
    script: Script | Sequence[object] | Mapping[str, object] | Path | str | Hook | None = None,
    log: Path | str | None = None,
) -> Iterator[Rehearsal]:
    """The experiment with every model replaced by a script, during the block; costs nothing, needs
    no key.

        with karat.rehearsal("experiment.yaml") as rehearsed:
            run = karat.run(rehearsed.experiment, results="results/rehearsed")

    MCP servers are the real ones. Without a script the models improvise: the agent searches
    with the question and answers with the result, the judge's scores come from a hash. The
    run, and every report of it, is marked as a rehearsal. Raises BadExperiment for an agent
    or a judge that karat cannot keep from asking a real model.
    """
    from karat.testing.models import serve

    if not isinstance(experiment, Experiment):
        experiment = load(os.fspath(experiment))

    # Raises BadExperiment if something would still ask a real model
    asks = "asks its models by itself, and karat cannot send it to a scripted one"
    tried = "; to try the file unchanged: `karat run FILE --limit 1`"
    used = [
        (
            "agents",
            experiment.agent.type,
            "agent.type",
            f"the agent '{experiment.agent.type}' {asks}{tried}",
        )
    ]
    for scorer in experiment.scorers:
        place = "judge" if scorer.name == "judge" else "scorers"
        used.append(("scorers", scorer.type, place, f"the scorer '{scorer.type}' {asks}"))

    faults = []
    for family, kind, place, message in used:
        plugin = plugins.find(family, kind, folder=experiment.folder)
        # Scorers call no model unless they declare it.
        if not getattr(plugin, "offline", family == "scorers") and "base_url" not in _fields(
            plugin
        ):
            faults.append(Fault(place=place, message=message))

    if faults:
        raise BadExperiment(str(experiment.path or "experiment"), faults)

    with serve(script, log=log, keep=_KEPT) as server, _environment(_unproxied(os.environ)):
        yield Rehearsal(experiment=redirected(experiment, server.anthropic_url), server=server)


def redirected(experiment: Experiment, url: str) -> Experiment:
    """The experiment with its agents and judges asking the server at `url`, and marked as a
    rehearsal.
    """
    conditions = tuple(
        msgspec.structs.replace(
            condition,
            agent=msgspec.structs.replace(
                condition.agent,
                options=_options(
                    experiment, "agents", condition.agent.type, condition.agent.options, url
                ),
            ),
        )
        for condition in experiment.conditions
    )
    agent = experiment.agent
    options = _options(experiment, "agents", agent.type, agent.options, url)
    scorers = tuple(
        msgspec.structs.replace(
            scorer, options=_options(experiment, "scorers", scorer.type, scorer.options, url)
        )
        for scorer in experiment.scorers
    )
    resolved = {**experiment.resolved, **_choices("agent", agent.options, options)}
    for before, after in zip(experiment.scorers, scorers, strict=True):
        if before.name == "judge":
            resolved.update(_choices("judge", before.options, after.options))

    rehearsal = copy.copy(experiment)
    cassettes = experiment.cassettes
    name = f"{experiment.name} (rehearsed)"
    changes = {
        "name": name,
        "slug": slugged(name),
        "agent": msgspec.structs.replace(agent, options=options),
        "conditions": conditions,
        "scorers": scorers,
        # It costs nothing, and a budget in dollars would be refused without prices.
        "execution": experiment.execution.model_copy(update={"budget": Budget()}),
        # Requests of scripts are not worth keeping, and would be mixed with those of a real run.
        "cassettes": cassettes if cassettes is not None and cassettes.mode == "replay" else None,
        "resolved": resolved,
        "env": {**experiment.env, KEY: "rehearsal"},
        "rehearsed": True,
    }
    for field, value in changes.items():
        object.__setattr__(rehearsal, field, value)
    return rehearsal


def _options(
    experiment: Experiment, family: str, kind: str, options: Mapping[str, Any], url: str
) -> JsonObject:
    """The options, with the address of the server if the plug-in takes one."""
    fields = _fields(plugins.find(family, kind, folder=experiment.folder))
    if "base_url" not in fields:
        return dict(options)
    changed: JsonObject = {"base_url": url, "api_key_env": KEY, "headers": {}}
    if isinstance(options.get("env"), Mapping):
        changed["env"] = {**options["env"], **_unproxied(options["env"])}
    if options.get("model") and "provider" not in fields:  # with one, the name has no provider
        changed["model"] = _spoken(options["model"])
    if options.get("judges"):
        changed["judges"] = [
            _spoken(item if isinstance(item, str) else item["model"]) for item in options["judges"]
        ]

    return {**options, **{key: value for key, value in changed.items() if key in fields}}


def _spoken(model: str) -> str:
    """The model, reached by a protocol that the server speaks; a name without a provider is
    unchanged.
    """
    try:
        named = parse_model(model)
    except BadOption:
        return model

    if named.provider in _PROTOCOLS:
        return model
    return f"openai:{named.provider}/{named.name}"


def _choices(
    place: str, before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, Choice]:
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {f"{place}.{key}": Choice(value=value, source="flag") for key, value in changed.items()}


def _fields(plugin: type[Any]) -> set[str]:
    model = plugins.options_model(plugin)
    if model is not None:
        return set(model.model_fields)
    return set()


def _unproxied(env: Mapping[str, str]) -> dict[str, str]:
    """No proxy between karat and this machine."""
    return {
        name: ",".join(filter(None, [env.get(name), "127.0.0.1"]))
        for name in ("NO_PROXY", "no_proxy")
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """This process's environment, with these variables during the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
