"""The work of `karat check`: everything that could stop a run, and what the run would do.

Asks no agent.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat import formats, kinds, plugins, stats
from karat.analysis.verdicts import ALPHA, few_clusters_factor, least_p
from karat.cli.asking import AskedJudge, asked_judges
from karat.clusters import SharedValues, codes_of
from karat.config.advice import models_of
from karat.documents.hub import shown
from karat.documents.understood import Understood
from karat.errors import BadOption
from karat.execution import (
    ScorerInUse,
    Selection,
    agent_notes,
    agents_taken,
    build_agents,
    close_agents,
    executor_of,
    experiment_scorers,
    opened_scorers,
    refuse_unfit_samples,
    refuse_unknown_gates,
    refuse_unpriced,
    run_in_own_loop,
)
from karat.execution.plan import Plan, plan
from karat.execution.stopping import horizon_of, stops_when
from karat.formats import OUTPUT_FORMAT
from karat.kinds import Dataset, DatasetPart
from karat.mcp import Toolbox
from karat.models import parse_model
from karat.records import Condition, Metric, Sample
from karat.redact import Redactor
from karat.testing.scorers import probe

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.journal import ScorerInfo
    from karat.mcp import ServerFault, ToolList

    Started = dict[str, ToolList | ServerFault]

_TOOLS_SHOWN = 20
_SCORER_SECONDS = 10.0  # limit for one call of a scorer; being slow is no fault
_REMEDY = "Fix mcp_servers.{} (`karat check --no-start` does not start servers)."


class CheckedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of the plan."""

    name: str
    servers: tuple[str, ...]
    gates: tuple[str, ...]
    preset: str | None = None  # of a study's participants
    context: tuple[str, ...] = ()  # skills, tools and so on, with their names

    def __str__(self) -> str:
        if self.servers:
            servers = f" with {', '.join(self.servers)}"
        else:
            servers = ""

        if self.gates:
            gates = f" ({', '.join(self.gates)})"
        else:
            gates = ""

        if self.preset:
            preset = f" (preset {self.preset})"
        else:
            preset = ""

        return "; ".join((f"{self.name}{servers}{gates}{preset}", *self.context))


class CheckedScorer(msgspec.Struct, frozen=True, kw_only=True):
    """One scorer of the plan."""

    name: str
    type: str
    offline: bool
    metrics: tuple[str, ...]
    models: tuple[str, ...] = ()  # that it asks, each with its service

    def __str__(self) -> str:
        if self.type == self.name:
            name = self.type
        else:
            name = f"{self.name}: {self.type}"

        offline = " (offline)" if self.offline else ""
        if self.metrics and self.metrics != (self.name,):
            metrics = f": {', '.join(self.metrics)}"
        else:
            metrics = ""

        if self.models:
            models = f"; asks {' and '.join(self.models)}"
        else:
            models = ""

        return f"{name}{offline}{metrics}{models}"


class CheckedServer(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server."""

    name: str
    type: str
    scope: str
    conditions: tuple[str, ...]
    tools: tuple[str, ...] | None  # None: not started, or broken
    fault: str | None = None
    # the version of MCP that was negotiated; None: not started, or broken
    protocol: str | None = None

    def __str__(self) -> str:
        if self.fault or self.tools is None:
            state = "does not work" if self.fault else "not started"
        elif self.tools:
            more = ", …" if len(self.tools) > _TOOLS_SHOWN else ""
            state = (
                f"{formats.plural(len(self.tools), 'tool')}: "
                f"{', '.join(self.tools[:_TOOLS_SHOWN])}{more}"
            )
        else:
            state = "no tools"

        if self.protocol:
            protocol = f", protocol {self.protocol}"
        else:
            protocol = ""

        return f"{self.name} ({self.type}, scope {self.scope}{protocol}): {state}"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check --json`."""

    format: int = OUTPUT_FORMAT
    file: str
    name: str
    ready: bool  # `karat run` would begin
    samples: int
    conditions: tuple[CheckedCondition, ...]
    repetitions: int
    agent: str
    agent_calls: int
    # answers × scorers that ask a model × judges of a panel × repeats × calls each (a pair takes 2)
    judge_calls: int
    dataset: str
    dataset_kind: str
    sha256: str
    scorers: tuple[CheckedScorer, ...]
    servers: tuple[CheckedServer, ...]
    max_concurrent: int
    timeout_seconds: float
    max_attempts: int
    stops_after_failures: int
    budget_usd: float | None
    budget_tokens: int | None
    results: str  # where the run folder will be
    problems: tuple[str, ...]  # why it is not ready
    warnings: tuple[str, ...]
    parts: tuple[DatasetPart, ...] = ()  # of the dataset; empty: it is one whole
    # the smallest difference that two conditions can show; None: nothing is compared
    can_show: str | None = None
    may_stop: str | None = None  # when the run may stop early; None: it asks every question
    rates: tuple[str, ...] = ()  # rate limits of models, and the least time that they cost
    # what judges gave to a right and to a wrong answer, with --ask
    asked: tuple[AskedJudge, ...] = ()
    first_row: Understood | None = None  # of the dataset, as it was read
    taken: tuple[str, ...] = ()  # what of the user's objects is called

    def __str__(self) -> str:
        repetitions = formats.plural(self.repetitions, "repetition")
        times = f"{formats.plural(len(self.conditions), 'condition')} × {repetitions}"
        calls = formats.plural(self.agent_calls, "agent call")
        if self.judge_calls:
            calls += f", {formats.plural(self.judge_calls, 'judge call')}"
        limits = [
            f"{self.max_concurrent} at a time",
            f"{formats.duration(self.timeout_seconds)} for an answer",
            f"up to {formats.plural(self.max_attempts, 'attempt')}",
            f"stops after {formats.plural(self.stops_after_failures, 'failed trial')}",
        ]
        if self.budget_usd is not None:
            limits += [f"at most {formats.dollars(self.budget_usd)}"]
        if self.budget_tokens is not None:
            limits += [f"at most {formats.plural(self.budget_tokens, 'token')}"]
        size = formats.plural(self.samples, "sample")
        parts = []
        if self.parts:
            size = _size(*self.parts)
        if len(self.parts) > 1:
            kind = kinds.of(self.dataset_kind)
            size = f"{formats.plural(len(self.parts), kind.noun, kind.noun_of_several)}, {size}"
            parts = [f"{_size(part)}, {part.name}" for part in self.parts]

        blocks = {
            "dataset": [
                f"{self.dataset_kind}, {self.dataset} (sha256 {self.sha256[:12]})",
                *parts,
            ],
            "first row": [] if self.first_row is None else self.first_row.lines(),
            "agent": [self.agent, *(f"asked {text}" for text in self.taken)],
            "conditions": list(map(str, self.conditions)),
            "scored by": list(map(str, self.scorers))
            or ["nothing: answers are saved but not scored"],
            "asked": list(map(str, self.asked)),
            "MCP servers": list(map(str, self.servers)) or ["none"],
            "running": [", ".join(limits), *filter(None, [self.may_stop]), *self.rates],
            "will detect": self.can_show.split("; ") if self.can_show else [],
            "results": [f"{self.results}/"],
        }
        lines = [f"{self.name}: {size} × {times} = {calls}", ""]
        for title, block in blocks.items():
            lines += [f"{title if row == 0 else '':13}{line}" for row, line in enumerate(block)]

        return "\n".join(map(formats.clean, lines)) + "\n"


def _size(*parts: DatasetPart) -> str:
    counts = Counter[str]()
    for part in parts:
        counts.update(part.counts)

    return ", ".join(formats.plural(count, noun) for noun, count in counts.items())


def check(
    experiment: Experiment,
    *,
    selection: Selection,
    results: Path,
    start: Callable[[str], None] | None,
    ask: bool = False,
) -> Checked:
    """Plans the experiment, loads its agent, and starts and lists its MCP servers.

    `start` is called with a line before servers start; if it is None, no server is started and no
    agent loaded. `ask`: each judge scores a right and a wrong answer, which costs money. Raises
    OperatorError for the dataset, a plug-in, or a selected name that does not exist.
    """
    executor_of(experiment)
    experiment, dataset = experiment.with_dataset()
    selected = plan(
        experiment,
        dataset,
        limit=selection.limit,
        only_samples=selection.samples,
        only_conditions=selection.conditions,
    )
    samples, conditions = selected.samples, selected.conditions
    scorers = experiment_scorers(experiment)
    refuse_unknown_gates(experiment, scorers)
    refuse_unfit_samples(scorers, samples)
    problems = [fault for scorer in scorers if (fault := _scorer_fault(scorer, dataset.samples[0]))]
    if start:
        started, notes, taken = run_in_own_loop(_started(experiment, selected, scorers, start))
    else:
        started, notes, taken = ({}, [], [])

    asked: tuple[AskedJudge, ...] = ()
    if ask:
        asked = run_in_own_loop(asked_judges(scorers, samples, redact=Redactor(experiment.secrets)))
        problems += [f"{judge.judge}: {judge.fault}" for judge in asked if judge.fault]

    servers = _servers(selected, started)
    problems += [
        f"{server.fault}\n{_REMEDY.format(server.name)}" for server in servers if server.fault
    ]
    turns = sum(len(sample.turns) for sample in samples)
    judges = [scorer.info for scorer in scorers if not scorer.info.offline]
    metrics = [metric for one in scorers for metric in one.info.metrics]
    execution = experiment.execution
    first_row = None
    if dataset.understood is not None:
        first_row = dataset.understood.masked(Redactor(experiment.secrets))

    return Checked(
        file=str(experiment.path or ""),
        name=experiment.name,
        ready=not problems,
        samples=len(samples),
        conditions=tuple(_checked_condition(experiment, condition) for condition in conditions),
        repetitions=selected.repetitions,
        agent=experiment.agent.type,
        agent_calls=turns * len(conditions) * selected.repetitions,
        judge_calls=sum(_calls(judge, selected) for judge in judges),
        dataset=shown(dataset.path),
        dataset_kind=dataset.kind,
        sha256=dataset.sha256,
        scorers=tuple(_checked_scorer(scorer) for scorer in scorers),
        servers=servers,
        max_concurrent=execution.max_concurrent,
        timeout_seconds=execution.timeout_seconds,
        max_attempts=execution.retry.max_attempts,
        stops_after_failures=execution.stops_after(len(selected)),
        budget_usd=execution.budget.usd,
        budget_tokens=execution.budget.tokens,
        results=str(results / f"{experiment.slug}-<date>-<id>"),
        problems=tuple(problems),
        warnings=(
            *filter(None, (judge.doubt for judge in asked)),
            *dataset.warnings,
            *filter(None, [cluster_hint(dataset, "set dataset.cluster:")]),
            *notes,
            *experiment.warnings,
            *_tool_advice(experiment, selected, started),
        ),
        parts=kinds.of(dataset.kind).parts_asked(dataset, samples),
        can_show=can_show(samples, len(conditions), dataset.kind, metrics=metrics),
        may_stop=stops_when(horizon_of(experiment, selected, scorers)),
        rates=tuple(_rates(experiment, selected, scorers)),
        asked=asked,
        first_row=first_row,
        taken=tuple(taken),
    )


def _checked_condition(experiment: Experiment, condition: Condition) -> CheckedCondition:
    # What the context sets, with the names of its folders, files or tools.
    shown: list[str] = []
    for key in condition.context.keys:
        value = getattr(condition.context, key)
        names = []
        for part in value if isinstance(value, tuple) else (value,):
            names.append(str(getattr(part, "name", part)))

        shown.append(f"{key}: {', '.join(names)}")

    return CheckedCondition(
        name=condition.name,
        servers=tuple(server.name for server in condition.mcp_servers),
        gates=tuple(
            gate for gate in condition.gate.__struct_fields__ if getattr(condition.gate, gate)
        ),
        preset=getattr(
            experiment.resolved.get(f"conditions.{condition.name}.preset"), "value", None
        ),
        context=tuple(shown),
    )


def cluster_hint(dataset: Dataset, option: str, *, used: Collection[str] = ()) -> str | None:
    """A sentence about a column that looks as if it made questions dependent; None: there is
    none. `used`: columns that hold something else.
    """
    if not kinds.of(dataset.kind).compared or all(sample.cluster is not None for sample in dataset):
        return None
    shared = SharedValues()
    for sample in dataset:
        metadata = sample.metadata
        if not metadata.keys().isdisjoint(used):
            metadata = {name: value for name, value in metadata.items() if name not in used}
        shared.add(metadata)

    return shared.hint(option)


def _checked_scorer(used: ScorerInUse) -> CheckedScorer:
    return CheckedScorer(
        name=used.info.name,
        type=used.info.type,
        offline=used.info.offline,
        metrics=tuple(metric.name for metric in used.info.metrics),
        models=tuple(getattr(used.scorer, "routes", ())),
    )


def can_show(
    samples: Iterable[Sample], conditions: int, kind: str, *, metrics: Sequence[Metric] = ()
) -> str | None:
    """The smallest difference between two conditions that an experiment can show; None if it
    compares nothing.

    In standard deviations of the differences, which are unknown before a run: `karat plan` gives
    points. After
    adjustment for the comparisons of a report: each condition with the baseline, and with the best,
    on each metric.
    """
    if not kinds.of(kind).compared or conditions < 2:
        return None
    clusters = [sample.cluster for sample in samples]
    codes = codes_of(clusters)
    if codes is None:
        questions = len(clusters)
    else:
        questions = len(set(codes))

    tests = (2 * conditions - 3) * max(1, sum(metric.compared for metric in metrics))
    unit = kinds.of(kind).unit if codes is None else "cluster"
    if least_p(tests, questions) >= ALPHA:
        needed = next(
            count for count in itertools.count(questions) if least_p(tests, count) < ALPHA
        )
        return (
            f"no difference between conditions: ask at least {needed} {unit}s for "
            f"{formats.plural(tests, 'comparison')}"
        )

    alpha = ALPHA / tests
    if codes is not None:
        alpha /= few_clusters_factor(questions - 1)
    effect = stats.minimum_detectable_effect(questions, 1.0, (0.0, 0.0), 1, alpha=alpha)
    if tests > 1:
        among = f" (Holm, {formats.plural(tests, 'comparison')})"
    else:
        among = ""

    return (
        f"differences of at least {formats.number(effect.value)} SD over {unit}s, with 80 % "
        f"power{among}; after a run, in points: karat plan RUN"
    )


def _rates(
    experiment: Experiment, selected: Plan, scorers: tuple[ScorerInUse, ...]
) -> Iterator[str]:
    """For each limited model, its limits and the least time that the planned requests take.

    An agent that calls tools asks its model several times per answer, so it can take longer.
    """
    turns = sum(len(sample.turns) for sample in selected.samples) * selected.repetitions
    planned = Counter[tuple[str, str] | None]()
    for condition in selected.conditions:
        planned.update({_model(condition.agent.options.get("model")): turns})

    for scorer in scorers:
        models = models_of(scorer.info.options)
        for model in models if not scorer.info.offline else ():
            planned.update({_model(model): _calls(scorer.info, selected) // len(models)})

    for name, rate in experiment.limits.items():
        per_minute = rate.requests_per_minute
        limits, least = [], 0.0
        if per_minute is not None:
            limits += [f"{formats.number(per_minute, digits=0)} requests"]
            least = 60 * planned[_model(name)] / per_minute

        if rate.tokens_per_minute:
            limits += [f"{formats.number(rate.tokens_per_minute, digits=0)} tokens"]
        if least:
            time = f": {formats.duration(least)} or more"
        else:
            time = ""

        yield (
            f"{name}: at most {' and '.join(limits)} a minute{time}"
            if limits
            else f"{name}: not limited"
        )


def _model(name: object) -> tuple[str, str] | None:
    """The provider and name that `limits` matches; None if `name` is not a model."""
    try:
        return parse_model(str(name)).limited_as
    except BadOption:
        return None


def _calls(scorer: ScorerInfo, selected: Plan) -> int:
    """Model calls needed to score the plan's answers."""
    options = scorer.options
    judges = max(1, len(options.get("judges") or ()))
    if scorer.compared_with is not None:  # a pair is judged in both orders
        names = [condition.name for condition in selected.conditions]
        if scorer.compared_with in names:
            pairs = len(names) - 1
        else:
            pairs = 0

        return 2 * judges * pairs * len(selected.samples) * selected.repetitions

    if options.get("call_per_metric"):
        calls = len(scorer.metrics)
    else:
        calls = 1

    return len(selected) * judges * int(options.get("repeats", 1)) * calls


def _scorer_fault(used: ScorerInUse, sample: Sample) -> str | None:
    """What a user's own scorer returns without announcing it; scorers that may call a service are
    not tried.
    """
    if used.waits or not used.info.offline or type(used.scorer).__module__.startswith("karat."):
        return None
    fault = probe(
        used.scorer, sample, name=used.info.name, metrics=used.metrics, seconds=_SCORER_SECONDS
    )
    if fault is None:
        return None
    return f"{fault}\nFix {used.info.type} (tried on the golden answer of '{sample.id}')."


async def _started(
    experiment: Experiment,
    selected: Plan,
    scorers: tuple[ScorerInUse, ...],
    say: Callable[[str], None],
) -> tuple[Started, list[str], list[str]]:
    """What each server offers, notes about the agents, and what is called of the user's objects."""
    servers = {}
    for condition in selected.conditions:
        for server in condition.mcp_servers:
            servers[server.name] = server

    redact = Redactor(experiment.secrets)
    cassettes = experiment.cassettes
    if cassettes is not None and cassettes.mode == "record":
        cassettes = None  # only a run is recorded
    toolbox = Toolbox(
        tuple(servers.values()), redact=redact, folder=experiment.folder, cassettes=cassettes
    )
    async with opened_scorers(scorers), toolbox:
        agents = build_agents(experiment, selected, toolbox)
        try:
            refuse_unpriced(experiment, agents, scorers)
            if servers:
                say(f"starting {formats.plural(len(servers), 'MCP server')} …")
            notes = agent_notes(selected, agents)
            return await toolbox.preflight(), notes, agents_taken(agents)
        finally:
            await close_agents(agents)


def _tool_advice(experiment: Experiment, selected: Plan, started: Started) -> list[str]:
    """The agents' advice about the tools that a condition gives them."""
    advice = []
    for condition in selected.conditions:
        plugin = plugins.find("agents", condition.agent.type, folder=experiment.folder)
        tools = [
            tool
            for server in condition.mcp_servers
            for tool in getattr(started.get(server.name), "tools", ())
        ]
        if hasattr(plugin, "tool_advice"):
            text = plugin.tool_advice(tools)
        else:
            text = None

        if text:
            advice += [f"conditions.{condition.name}.mcp_servers: every answer will be: {text}"]

    return advice


def _servers(selected: Plan, started: Started) -> tuple[CheckedServer, ...]:
    users: dict[str, list[str]] = {}
    servers = {}
    for condition in selected.conditions:
        for server in condition.mcp_servers:
            servers[server.name] = server
            users.setdefault(server.name, []).append(condition.name)

    checked = []
    for name, server in servers.items():
        outcome = started.get(name)
        tools = getattr(outcome, "tools", None)
        checked.append(
            CheckedServer(
                name=name,
                type=server.type,
                scope=server.scope,
                conditions=tuple(users[name]),
                tools=tuple(tool.name for tool in tools) if tools is not None else None,
                fault=getattr(outcome, "message", None),
                protocol=getattr(outcome, "protocol", None),
            )
        )

    return tuple(checked)
