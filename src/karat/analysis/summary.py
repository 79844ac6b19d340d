"""A run's Summary, computed from its journal and its kind's part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, structs

from karat import formats
from karat.analysis import on_demand
from karat.analysis.failures import failure_kinds
from karat.analysis.ledger import accounts, outcome, server_problems
from karat.analysis.model import (
    Account,
    ContextUse,
    Difference,
    Family,
    JudgePair,
    LowSample,
    MetricInfo,
    Provenance,
    Result,
    SampleTable,
    ServerProblem,
    Stopping,
    Summary,
    ToolConfusion,
    ToolUse,
)
from karat.analysis.numbers import from_fields
from karat.analysis.parts import AnalysisInput, KindAnalysis, Part, kind_of, options_of
from karat.analysis.stopping import stopping_of
from karat.analysis.verdicts import (
    headline,
    judge_name,
    main_finding,
    nothing_scored,
    server_warnings,
    unmeasured,
)
from karat.analysis.warnings import NOTICES, WARNINGS, Known, texts
from karat.errors import BadOption, did_you_mean
from karat.formats import clean
from karat.index import plan_of, read_index, trusted
from karat.journal import RunFolder, ScorerInfo


def summarize(
    run: RunFolder,
    *,
    scorings: Mapping[str, str] | None = None,
    level: float = 0.95,
    pairs: Literal["baseline", "all"] = "baseline",
    baseline: str | None = None,
    **asked: Any,
) -> Summary:
    """Every number of a run, finished or not.

    `scorings`: scorer → scoring digest (or its beginning) to show instead of the newest.
    `pairs`: "baseline" compares each condition with `baseline` (default: the experiment's
    `baseline`, else its first condition) and with the best on the metric, "all" compares every
    pair; p-values are adjusted over all shown.
    `asked`: options of the kind of dataset (`Kind.reading_options`); permissions of other kinds are
    ignored.
    The journal is streamed; memory grows by a few bytes per planned trial
    and by about twenty per score. Raises BadRun for a damaged run, BadOption for a
    scoring that the run does not have.
    """
    if not 0 < level < 1:
        raise BadOption("level", f"must lie between 0 and 1, got {level}")
    with trusted(run):
        conditions = plan_of(run).conditions
        choice = run.info.experiment.get("baseline")
        if baseline is not None and baseline not in conditions:
            raise BadOption(
                "baseline",
                f"run {run.info.run} has no condition '{baseline}'"
                f"{did_you_mean(baseline, conditions)}",
            )

        if baseline is None and choice is not None:
            baseline = choice.value
        if baseline not in conditions:  # a partial run may lack the one in the file
            baseline = conditions[0]
        own = options_of(run.info.kind, asked)
        rule = kind_of(run.info.kind).rule(run, own)
        compared = _Asked(baseline, pairs == "all", *rule, own)
        summary = _summary(run, scorings or {}, level, compared)
        if not summary.differences:
            return _with_problems(summary)
        # with every pair, a condition is compared with all others
        side = cache(partial(on_demand.units_of, summary))
        differences = []
        for pair in summary.differences:
            units = side(pair.a, pair.metric), side(pair.b, pair.metric)
            again = on_demand.would_repeat(pair, units, ((summary, pair.a), (summary, pair.b)))
            differences.append(structs.replace(pair, again=again))

        return _with_problems(structs.replace(summary, differences=tuple(differences)))


class _Asked(NamedTuple):
    """What the numbers depend on in addition to the run."""

    baseline: str
    every: bool  # whether every pair of conditions is compared
    rule: str  # by which the kind reads answers
    unknown: str | None  # a warning that the run's own rule is unknown
    options: Mapping[str, object]  # of the kind


def _with_problems(summary: Summary) -> Summary:
    """The summary, headed by the conditions whose MCP servers were not used: it says nothing about
    their effect.
    """
    problems = summary.server_problems
    if not problems:
        return summary
    names = {problem.condition for problem in problems}
    differences = tuple(unmeasured(difference, names) for difference in summary.differences)
    finding = summary.headline
    if differences != summary.differences:
        finding = main_finding(differences, summary.metrics, unit=kind_of(summary.kind).unit)
    return structs.replace(
        summary,
        headline=". ".join([*server_warnings(problems), finding]),
        differences=differences,
    )


def _summary(run: RunFolder, scorings: Mapping[str, str], level: float, asked: _Asked) -> Summary:
    # The status is read first, so that a run that ends meanwhile counts as running.
    status = run.status()
    info = run.info
    index = read_index(run)
    scorers = run.scorers()
    shown = index.shown(scorings)
    rows, total = accounts(index, ended := outcome(index, shown))
    failures = failure_kinds(index, ended)
    stopping = stopping_of(index, level=level)
    given = AnalysisInput(
        run=run,
        index=index,
        scorers=scorers,
        shown=shown,
        ended=ended,
        accounts=rows,
        level=level,
        asked=asked.options,
        rule=asked.rule,
        baseline=None if asked.every else asked.baseline,
    )
    figures = _Figures()
    if shown:
        figures = _figures(given, asked, stopping)
    kind = kind_of(info.kind)
    parts: dict[str, Part] = {}
    head = ""
    if not kind.is_installed:
        head = f"Not analysed: the kind of dataset '{clean(info.kind)}' is not installed"
    elif (part := kind.analyse(given)) is not None:
        parts = {info.kind: part}
        head = part.headline()

    compared = figures.compared if kind.compared else ()
    contexts, tools, confusions = _use(given, compared)
    summary = Summary(
        format=formats.OUTPUT_FORMAT,
        run=info.run,
        name=info.name,
        version=info.version,
        created=info.created,
        kind=info.kind,
        status=status,
        level=level,
        headline=nothing_scored(total, failures, status) or head or figures.headline(total, kind),
        conditions=tuple(index.conditions),
        samples=len(index.samples),
        repetitions=index.repetitions,
        metrics=figures.metrics,
        accounts=rows,
        total=total,
        results=figures.results,
        differences=figures.differences,
        lowest=figures.lowest,
        failures=failures,
        family=figures.family,
        duplicates=index.duplicates,
        warnings=(),
        provenance=_provenance(run, scorers, shown),
        table_of_samples=figures.samples,
        panel=figures.panel,
        stopping=stopping or UNSET,
        contexts=contexts,
        tools=tools,
        confusions=confusions,
        server_problems=_problems(run, rows, contexts),
        parts=parts,
    )
    known = Known(
        run=run,
        index=index,
        shown=shown,
        waiting=ended.waiting,
        rule_unknown=asked.unknown,
        summary=summary,
    )
    return structs.replace(summary, warnings=texts(WARNINGS, known), notices=texts(NOTICES, known))


def _problems(
    run: RunFolder, rows: Mapping[str, Account], contexts: Sequence[ContextUse]
) -> tuple[ServerProblem, ...]:
    info = run.widened_info()
    if not contexts and not any(info.condition_servers.values()):
        return ()
    unknown = {use.condition for use in contexts if use.kind == "server" and use.used is None}
    return server_problems(
        rows, info.condition_servers, unknown, measures_calls=info.measures_calls
    )


def _use(
    given: AnalysisInput, grids: Sequence[on_demand.Grid]
) -> tuple[tuple[ContextUse, ...], tuple[ToolUse, ...], tuple[ToolConfusion, ...]]:
    run = given.run
    index = given.index
    level = given.level
    info = run.widened_info()
    if not given.shown and not any(info.condition_servers.values()) and not info.condition_offers:
        return (), (), ()
    expected = on_demand.expectations(run, index, given.scorers, given.shown)
    tools, confusions = on_demand.tool_uses(index, expected, level=level)
    return on_demand.context_uses(index, grids, level=level), tools, confusions


class _Figures(NamedTuple):
    """The part that needs numpy."""

    metrics: tuple[MetricInfo, ...] = ()
    compared: Sequence[on_demand.Grid] = ()  # tested metrics
    results: tuple[Result, ...] = ()
    differences: tuple[Difference, ...] = ()
    lowest: tuple[LowSample, ...] = ()
    samples: SampleTable | None = None
    panel: tuple[JudgePair, ...] = ()
    family: Family | None = None

    def headline(self, total: Account, kind: KindAnalysis) -> str:
        shown = self.results, self.differences, self.metrics
        return headline(*shown, total, unit=kind.unit, unscored=kind.unscored)


def _figures(given: AnalysisInput, asked: _Asked, stopping: Stopping | None) -> _Figures:
    import numpy as np

    index = given.index
    level = given.level
    conditions = tuple(index.conditions)
    by_turn = on_demand.declared(
        given.run,
        index,
        filter(given.shows, given.scorers),
        rule=given.rule,
    )
    all_grids = on_demand.grids(index, given.scorers, given.shown, by_turn)
    if not all_grids:
        return _Figures()
    shape = (len(index.samples), len(conditions), index.repetitions)
    retried = np.frombuffer(index.retried, dtype=np.uint8).reshape(shape).astype(bool)
    first = conditions.index(asked.baseline)
    losses = on_demand.losses_of(index, given.ended)
    clusters = on_demand.clusters_of(index.clusters)
    units = []
    for grid in all_grids:
        units.append(
            {
                name: on_demand.units_of_grid(grid, column, losses, clusters)
                for column, name in enumerate(conditions)
            }
        )

    apart = tuple(
        on_demand.differences(
            all_grids,
            conditions,
            units,
            level=level,
            baseline=first,
            every=asked.every,
            stopping=stopping,
        )
    )
    columns = tuple(
        column for sides in units for column in on_demand.columns_of(sides, index.repetitions)
    )
    compared = [grid for grid in all_grids if grid.info.compared is not False]
    family = None
    if apart:
        family = Family(
            pairs="all" if asked.every else "baseline",
            baseline=asked.baseline,
            tests=sum(difference.p_adjusted is not None for difference in apart),
            left_out=len(compared) * math.comb(len(conditions), 2) - len(apart),
        )

    return _Figures(
        metrics=tuple(grid.info for grid in all_grids),
        compared=[grid for grid in compared if grid.is_tested],
        results=tuple(
            result
            for grid, sides in zip(all_grids, units, strict=True)
            for result in on_demand.results(grid, sides, retried, level=level)
            # the baseline has no position bias to measure
            if result.n_answers or grid.info.compared is not False
        ),
        differences=apart,
        lowest=on_demand.lowest(index, all_grids[0], conditions),
        samples=SampleTable(
            ids=list(index.samples),
            positions=index.positions.tolist(),
            digests=index.digests,
            columns=columns,
            weights=None if by_turn is None else by_turn.weights.tolist(),
            clusters=index.clusters if any(name is not None for name in index.clusters) else None,
        ),
        panel=tuple(on_demand.judge_pairs(all_grids)),
        family=family,
    )


def _provenance(
    run: RunFolder, scorers: tuple[ScorerInfo, ...], shown: Mapping[str, str]
) -> Provenance:
    info = run.widened_info()
    used = []
    judge = rubric = None
    for scorer in scorers:
        if shown.get(scorer.name) == scorer.scoring:
            used.append(scorer)
            if judge is None and not scorer.offline:
                judge = scorer
            if rubric is None and scorer.rubric is not None:
                rubric = scorer

    return from_fields(
        Provenance,
        info,
        dataset_kind=info.dataset.kind,
        dataset=info.dataset.path,
        sha256=info.dataset.sha256,
        samples_in_file=info.dataset.samples,
        first_row=info.dataset.first_row,
        agent=info.agent_type,
        model=info.agent_model,
        agents={name: agent for name, agent in info.agents.items() if agent},
        judge=judge_name(judge) if judge is not None else None,
        scorers=dict(shown),
        rubric=rubric.rubric if rubric is not None else None,
        rubric_digest=rubric.rubric_digest if rubric is not None else None,
        settings={key: choice.value for key, choice in info.experiment.items()},
        judges={
            scorer.name: {
                "rubric": scorer.rubric,
                "rubric_digest": scorer.rubric_digest,
                **scorer.provenance,
            }
            for scorer in used
            if scorer.provenance
        },
    )
