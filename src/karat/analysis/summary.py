"""A run's Summary, computed from its journal and its kind's part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    FailureKind,
    Family,
    JudgePair,
    LowSample,
    MetricInfo,
    Provenance,
    Result,
    SampleTable,
    Stopping,
    Summary,
    ToolConfusion,
    ToolUse,
)
from karat.analysis.numbers import from_fields
from karat.analysis.parts import AnalysisInput, KindAnalysis, Part, kind_of, options_of
from karat.analysis.server_news import server_news
from karat.analysis.stopping import stopping_of
from karat.analysis.unreadable import unreadable_counts, unreadable_notices
from karat.analysis.verdicts import (
    REHEARSED,
    cut_notices,
    headline,
    loss_warnings,
    main_finding,
    nothing_scored,
    server_warnings,
    unmeasured,
    unnumbered,
    use_warnings,
)
from karat.errors import BadOption, did_you_mean
from karat.formats import clean, plural
from karat.index import RunIndex, plan_of, read_index, trusted
from karat.journal import RunFolder, ScorerInfo, server_changes
from karat.records import Metric


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
        conditions, choice = plan_of(run).conditions, run.info.experiment.get("baseline")
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
            return _with_problems(run, summary)
        # with every pair, a condition is compared with all others
        side = cache(partial(on_demand.units_of, summary))
        differences = []
        for pair in summary.differences:
            units = side(pair.a, pair.metric), side(pair.b, pair.metric)
            again = on_demand.would_repeat(pair, units, ((summary, pair.a), (summary, pair.b)))
            differences.append(structs.replace(pair, again=again))
        return _with_problems(run, structs.replace(summary, differences=tuple(differences)))


class _Asked(NamedTuple):
    """What the numbers depend on in addition to the run."""

    baseline: str
    every: bool  # whether every pair of conditions is compared
    rule: str  # by which the kind reads answers
    unknown: str | None  # a warning that the run's own rule is unknown
    options: Mapping[str, object]  # of the kind


def _with_problems(run: RunFolder, summary: Summary) -> Summary:
    """The summary, headed by the conditions whose MCP servers were not used: it says nothing about
    their effect.
    """
    info = run.widened_info()
    if not summary.contexts and not any(info.condition_servers.values()):
        return summary
    unknown = set()
    for use in summary.contexts:
        if use.kind == "server" and use.used is None:
            unknown.add(use.condition)
    problems = server_problems(
        summary.accounts, info.condition_servers, unknown, measures_calls=info.measures_calls
    )
    offered = [use for use in summary.contexts if not (info.measures_calls and use.only_failed)]
    summary = structs.replace(
        summary, warnings=(*use_warnings(offered, problems), *summary.warnings)
    )
    if not problems:
        return summary
    names, words = {problem.condition for problem in problems}, server_warnings(problems)
    differences = tuple(unmeasured(difference, names) for difference in summary.differences)
    gates = (
        "`require_mcp_tool_use` and `require_mcp_tool_success` of the condition make such answers "
        "failures"
    )
    advice = []
    for problem in problems:
        if problem.answers or problem.calls:
            advice.append(f" (see Failures); {gates}")
        else:
            advice.append("")

    finding = summary.headline
    if differences != summary.differences:
        finding = main_finding(differences, summary.metrics, unit=kind_of(summary.kind).unit)
    return structs.replace(
        summary,
        server_problems=problems,
        headline=". ".join([*words, finding]),
        differences=differences,
        warnings=(*map("".join, zip(words, advice, strict=True)), *summary.warnings),
    )


def _summary(run: RunFolder, scorings: Mapping[str, str], level: float, asked: _Asked) -> Summary:
    # The status is read first, so that a run that ends meanwhile counts as running.
    status, info, index, scorers = run.status(), run.info, read_index(run), run.scorers()
    shown = index.shown(scorings)
    rows, total = accounts(index, ended := outcome(index, shown))
    failures = failure_kinds(index, ended)
    first = [
        *_server_warnings(run, rows, failures),
        *_warnings(run, index, status, total, ended.waiting),
    ]
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
    kind, (parts, head, own) = kind_of(info.kind), _part(given, asked)
    if kind.compared:
        compared = figures.compared
    else:
        compared = ()

    contexts, tools, confusions = _use(given, compared)
    incomplete = []  # what imported files state and do not hold
    if info.source.get("incomplete"):
        incomplete = [f"Not the whole run: {info.source['incomplete']}"]
    return Summary(
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
        warnings=(*first, *own, *figures.losses(total, kind)),
        provenance=_provenance(run, scorers, shown),
        table_of_samples=figures.samples,
        panel=figures.panel,
        stopping=stopping or UNSET,
        contexts=contexts,
        tools=tools,
        confusions=confusions,
        notices=(
            *run.gap_notices(),
            *incomplete,
            *_undiscerning(index, shown),
            *unreadable_notices(unreadable_counts(index, shown)),
            *cut_notices(rows),
            *(text for part in parts.values() for text in part.notices()),
        ),
        parts=parts,
    )


def _undiscerning(index: RunIndex, shown: Mapping[str, str]) -> Iterator[str]:
    """Judges that gave one value to everything: they may not tell a right answer from a wrong
    one.
    """
    for name, scoring in shown.items():
        scorer, rows = index.scorers.get(scoring), index.scores.get((name, scoring))
        # a damaged journal may not name its scorer
        if rows is None or scorer is None or not scorer.provenance:
            continue
        import numpy as np

        names = {code: name for name, code in rows.names.items()} or {-1: _judge_name(scorer)}
        values, codes = np.array(list(rows.values.values())), np.array(rows.judges)
        for code, judge in names.items():
            scored = values[:, codes == code]
            given = scored[~np.isnan(scored)]
            if scored.shape[1] >= _ENOUGH_TO_DIFFER and np.unique(given).size == 1:
                what = (
                    f"{formats.brief(given[0])} in all "
                    f"{formats.plural(scored.shape[1], 'judgement')}"
                )
                yield (
                    f"{judge} gave {what}: alike answers, or it cannot rate them (see `karat "
                    f"label`)"
                )


_ENOUGH_TO_DIFFER = 10
"""Judgements of one value from which on a judge is named."""


def _use(
    given: AnalysisInput, grids: Sequence[on_demand.Grid]
) -> tuple[tuple[ContextUse, ...], tuple[ToolUse, ...], tuple[ToolConfusion, ...]]:
    run, index, level = given.run, given.index, given.level
    info = run.widened_info()
    if not given.shown and not any(info.condition_servers.values()) and not info.condition_offers:
        return (), (), ()
    expected = on_demand.expectations(run, index, given.scorers, given.shown)
    tools, confusions = on_demand.tool_uses(index, expected, level=level)
    return on_demand.context_uses(index, grids, level=level), tools, confusions


def _part(given: AnalysisInput, asked: _Asked) -> tuple[dict[str, Part], str, list[str]]:
    """The kind's additions to the summary: its part, the headline and the warnings."""
    kind = given.run.info.kind
    if not kind_of(kind).is_installed:
        missing = f"the kind of dataset '{clean(kind)}' is not installed"
        fallback = (
            "a report shows ledger, cost and scores as means over samples, and nothing that only "
            "the kind knows"
        )
        return {}, f"Not analysed: {missing}", [f"{missing}: {fallback}"]

    part = kind_of(kind).analyse(given)
    if part is None:
        return {}, "", []
    return {kind: part}, part.headline(), [*filter(None, [asked.unknown]), *part.warning_lines()]


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

    def losses(self, total: Account, kind: KindAnalysis) -> list[str]:
        if not kind.compared:
            return []
        keys = {info.key for info in self.metrics if info.compared is not False}
        results = [result for result in self.results if result.metric in keys]
        warnings = loss_warnings(results, self.differences, bounds=kind.loss_bounds)
        if kind.loss_bounds:
            return [*unnumbered(results, total.ledger.scored), *warnings]
        return warnings

    def headline(self, total: Account, kind: KindAnalysis) -> str:
        shown = self.results, self.differences, self.metrics
        return headline(*shown, total, unit=kind.unit, unscored=kind.unscored)


def _figures(given: AnalysisInput, asked: _Asked, stopping: Stopping | None) -> _Figures:
    import numpy as np

    index, level = given.index, given.level
    conditions = tuple(index.conditions)
    by_turn = on_demand.declared(
        given.run, index, filter(given.shows, given.scorers), rule=given.rule
    )
    all_grids = on_demand.grids(index, given.scorers, given.shown, by_turn)
    if not all_grids:
        return _Figures()
    shape = (len(index.samples), len(conditions), index.repetitions)
    retried = np.frombuffer(index.retried, dtype=np.uint8).reshape(shape).astype(bool)
    first = conditions.index(asked.baseline)
    losses, clusters = (
        on_demand.losses_of(index, given.ended),
        on_demand.clusters_of(index.clusters),
    )
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


def _server_warnings(
    run: RunFolder, accounts: Mapping[str, Account], failures: Sequence[FailureKind]
) -> Iterator[str]:
    """The servers that did not answer, unless the failures mention them, or a later part ran
    without them.
    """
    info = run.widened_info()
    if not info.servers:
        return
    for _, text in server_changes(info.servers, run.changed_servers()):
        yield clean(f"{text}; answers of both parts are not alike")
    yield from map(clean, server_news(info.servers, run.server_events()))
    examples = [failure.example for failure in failures if failure.trials]
    for server in info.servers:
        if not server.fault or any(
            text == server.fault or f"'{server.name}'" in text for text in examples
        ):
            continue

        users = [name for name, servers in info.condition_servers.items() if server.name in servers]
        ledgers = [accounts[name].ledger for name in users if name in accounts]
        if not ledgers or any(ledger.infrastructure or ledger.not_run for ledger in ledgers):
            yield f"MCP server '{server.name}' did not answer: {clean(server.fault)}"


def _unannounced(index: RunIndex, scorers: Iterable[ScorerInfo]) -> Iterator[str]:
    """Metrics that a scorer returned without announcing them, which karat allowed in 2026 (format
    1).
    """
    for info in scorers:
        rows = index.scores.get((info.name, info.scoring))
        nothing = info.metrics == (Metric(name=info.name),)  # it announces none
        if rows is None or nothing or index.newest.get(info.name) != info.scoring:
            continue
        known = []
        for metric in info.metrics:
            known.append(metric.name)
        if others := sorted(set(rows.values) - set(known)):
            yield clean(
                f"scorer '{info.name}' announces {', '.join(known)} but gave {', '.join(others)}, "
                f"of which karat does not know which way is better: higher is taken as better; "
                f"correct the scorer and score the run again"
            )


def _warnings(
    run: RunFolder, index: RunIndex, status: str, total: Account, waiting: int
) -> list[str]:
    warnings = [*_unannounced(index, run.scorers())]
    # How results differ from those of the real agent or judge.
    if run.info.rehearsed:
        warnings.append(REHEARSED)
    if (replay := run.info.experiment.get("mcp.replay")) is not None:
        warnings.append(
            f"MCP servers were not asked: their answers and latencies come from the recording "
            f"'{clean(str(replay.value))}'"
        )
    for key in ("notes", "faults"):
        if run.info.source.get(key):
            warnings.append(clean(run.info.source[key]))

    left = f"{plural(total.ledger.not_run, 'trial')} not run"
    if run.info.shard is not None:
        left += ", those of other shards included"
    unscored = (
        sum(tally.answered for tally in index.tallies)
        - total.ledger.scored
        - total.ledger.judge
        - waiting
    )
    unasked = total.ledger.not_run - unscored - waiting
    if status != "done" and total.ledger.not_run:
        warnings.append(
            f"the run is not complete (status: {status}; {left}): the numbers will change"
        )
    elif total.ledger.not_run:
        selection = "not run, because the last part was a selection"
        why = "without a result in the imported files" if run.info.imported else selection
        if run.info.shard is not None:
            why = (
                f"not in this run, which is shard {run.info.shard} (`karat runs merge` puts "
                f"shards together)"
            )

        if unasked:
            parts = [f"{plural(unasked, 'trial')} {why}"]
        else:
            parts = []

        if unscored:
            parts += [f"{plural(unscored, 'answer')} not scored, because the scoring was stopped"]
        other = "because the answer to compare with is missing"
        if waiting:
            parts += [f"{plural(waiting, 'answer')} not compared, {other}"]
        warnings.append(f"{'; '.join(parts)}: the numbers will change")
    elif status != "done" and "incomplete" not in run.info.source:
        warnings.append(
            f"every trial was run, but the run did not end by itself (status: {status})"
        )

    if index.duplicates:
        warnings.append(
            f"{plural(index.duplicates, 'answer')} came after the one that counts: left out"
        )

    if index.outside_plan:
        warnings.append(
            f"{plural(index.outside_plan, 'event')} of trials outside the plan: left out"
        )

    if index.foreign_lines:
        warnings.append(
            f"{plural(index.foreign_lines, 'line')} of the journal not as karat writes them: "
            f"left out"
        )

    if endless := sum(rows.too_large for rows in index.scores.values()):
        warnings.append(
            f"{plural(endless, 'score')} too large to be added up (beyond 1e100): left out"
        )

    if index.orphan_scores:
        warnings.append(
            f"{plural(index.orphan_scores, 'score')} of trials without an answer: left out"
        )

    return warnings


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
        judge=_judge_name(judge) if judge is not None else None,
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


def _judge_name(judge: ScorerInfo) -> str:
    models = judge.provenance.get("judges") or [judge.options.get("model") or judge.type]
    return ", ".join(map(str, models))
