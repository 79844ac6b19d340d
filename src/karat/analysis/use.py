"""Whether answers used what their condition offers, how they score with and without it, and which
tools were confused.

Rates are over answers, with errors clustered by question (`karat.stats.ratio_interval`): if two of
three answers to a question used a server, two count on one side and one on the other, so the two
sides together are all answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat.analysis.estimates import estimated
from karat.analysis.grids import Grid
from karat.analysis.model import ContextUse, ScoreByUse, ToolConfusion, ToolUse
from karat.analysis.numbers import Estimate
from karat.stats import ratio_interval
from karat.stats.ratios import Sums
from karat.tool_use import (
    CalledTool,
    Offered,
    chosen_tools,
    expected_tools,
    tools_of_criteria,
)

if TYPE_CHECKING:
    from karat.index import RunIndex
    from karat.journal import RunFolder, RunInfo, ScorerInfo

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_UNREPORTED = "no answer reports a call, and the agent does not say that it reports every call"


def offered(info: RunInfo) -> dict[str, tuple[Offered, ...]]:
    """What each condition offers whose use is visible in tool calls."""
    found = {}
    for name, parts in ((name, info.condition_offers.get(name, ())) for name in info.conditions):
        found[name] = (
            *(Offered("server", server) for server in info.condition_servers.get(name, ())),
            *parts,
        )

    return found


def is_reported(index: RunIndex, kind: str) -> bool:
    """Whether calls are reported: the agent says it reports all of them, or the run has some call
    of that kind.
    """
    seen: Iterable[CalledTool] = index.calls.codes
    if index.run.info.reports_tool_calls:
        return True
    if kind == "server":
        return any(tool.server is not None for tool in seen) or any(
            tally.servers for tally in index.all_tallies
        )

    return any(tool.skill is not None for tool in seen)


def context_uses(index: RunIndex, grids: Sequence[Grid], *, level: float) -> tuple[ContextUse, ...]:
    """For each condition and what it offers: how many answers used it, and the scores with and
    without it.
    """
    conditions = offered(index.run.widened_info())
    uses = []
    shape = (len(index.samples), len(index.conditions), index.repetitions)
    answered = np.frombuffer(index.answered, dtype=np.uint8).reshape(shape) > 0
    weights = next(
        (grid.turns.weights for grid in grids if grid.turns is not None), np.ones(shape[0])
    )
    for (name, column), part in (
        (item, part) for item in index.conditions.items() for part in conditions.get(item[0], ())
    ):
        # For each cell: 2 if some call succeeded, 1 if every call failed, 0 if it was not
        # called
        states = np.zeros(index.planned, dtype=np.int8)
        codes = []
        for tool, code in index.calls.codes.items():
            if tool.uses(part):
                codes.append(code)

        mine = np.isin(np.frombuffer(index.calls.tools, dtype=np.int32), codes)
        cells = np.frombuffer(index.calls.cells, dtype=np.int64)[mine]
        np.maximum.at(states, cells, 1 + np.frombuffer(index.calls.succeeded, dtype=np.int8)[mine])

        there = answered[:, column, :]
        state = states.reshape(shape)[:, column, :]
        used = there & (state == 2)
        known = is_reported(index, part.kind)
        share = _mean(there, (used, there, used), weights, share=True, level=level)
        if not known:
            reason = _UNREPORTED if there.any() else "no answers"
            share = msgspec.structs.replace(
                share,
                value=None,
                low=None,
                high=None,
                se=None,
                reason=reason,
            )

        scores = (
            score_by_use(grid, column, (used, there & ~used), level=level)
            for grid in grids
            if known
        )
        uses.append(
            ContextUse(
                condition=name,
                kind=part.kind,
                name=part.name,
                answers=int(there.sum()),
                used=int(used.sum()) if known else None,
                only_failed=int((there & (state == 1)).sum()) if known else None,
                share=share,
                scores=tuple(scores),
            )
        )

    return tuple(uses)


def score_by_use(
    grid: Grid,
    column: int,
    sides: tuple[Flags, Flags],
    *,
    level: float,
) -> ScoreByUse:
    """One metric under one condition. `sides`: samples × repetitions, the answers that used
    something, and the others.

    Mean: Σ w y / Σ w m over questions, with y the sum of a question's m numbers on that side, and w
    its weight. The means of both sides, weighted by how many numbers each has, therefore give the
    mean of all.
    """
    info = grid.info
    values = np.nan_to_num(grid.values[:, column, :])
    turns = grid.turns
    parts = (values, ~np.isnan(grid.values[:, column, :]), values**2)
    weights = np.ones(len(values))
    if turns is not None:
        totals, counts, squares = (
            part[:, column, :] for part in (turns.totals, turns.counts, turns.squares)
        )
        parts = (totals, counts, squares)
        weights = turns.weights

    ends = (info.low, info.high)
    share = info.kind == "share"
    used, unused = (
        _mean(side, parts, weights, share=share, level=level, ends=ends) for side in sides
    )
    with_use, without_use = (int((side & (parts[1] > 0)).sum()) for side in sides)
    return ScoreByUse(
        metric=info.key,
        used=used,
        answers_used=with_use,
        not_used=unused,
        answers_not_used=without_use,
    )


def _mean(
    side: Flags,
    parts: Sequence[NDArray[np.generic]],
    weights: Floats,
    *,
    share: bool,
    level: float,
    ends: tuple[float | None, float | None] = (0.0, 1.0),
) -> Estimate:
    """Over the answers of one side.

    `parts`: for each answer the sum of its numbers, count and sum of squares.
    """
    totals, counts, squares = (
        np.where(side, part, 0).astype(np.float64).sum(axis=1) for part in parts
    )
    sums = Sums(totals=totals, counts=counts, squares=squares, weights=weights)
    share = share and bool(np.array_equal(totals, squares))
    return estimated(ratio_interval(sums, share=share, level=level).interval, *ends)


class Expectation(msgspec.Struct, frozen=True):
    """Which tools one scorer expects to be called."""

    tools: Sequence[frozenset[str] | None]  # by sample; None: nothing is expected
    known: frozenset[str]  # of any sample
    only_successful: bool = False  # whether failed calls are ignored
    only_known: bool = False  # whether calls of tools that no sample names are ignored

    def choices(
        self, sample: int, calls: Iterable[tuple[CalledTool, bool]]
    ) -> tuple[set[str], set[str]]:
        """The expected tools that were called, and the unexpected ones.

        `calls`: tool, and whether it succeeded.
        """
        called = (tool for tool, succeeded in calls if succeeded or not self.only_successful)
        matched, others = chosen_tools(called, self.tools[sample] or (), self.known)
        if self.only_known:
            others &= self.known
        return matched, others


def expectations(
    run: RunFolder,
    index: RunIndex,
    scorers: Iterable[ScorerInfo],
    shown: Mapping[str, str],
) -> dict[str, Expectation]:
    """What each shown scorer of tool calls expects, by its name: `trajectory`, and `criteria` with
    criteria of the type `tool`, which say nothing of tools that none of them names.

    `shown`: scorer → scoring.
    """
    looking = [
        one
        for one in scorers
        if one.type in ("trajectory", "criteria") and shown.get(one.name) == one.scoring
    ]
    expected: dict[str, list[frozenset[str] | None]] = {
        one.name: [None] * len(index.samples) for one in looking
    }
    known: dict[str, set[str]] = {one.name: set() for one in looking}
    for sample in run.samples() if looking else ():
        stated = tools_of_criteria(sample)
        for one in looking:
            if one.type == "trajectory":
                tools = expected_tools(one.options, sample)
                known[one.name] |= tools or set()
            else:
                tools = None
                if any(stated):
                    tools = stated[0]
                known[one.name] |= stated[0] | stated[1]

            expected[one.name][index.samples[sample.id]] = tools

    return {
        one.name: Expectation(
            expected[one.name],
            frozenset(known[one.name]),
            only_successful=one.options.get("only_successful") is True,
            only_known=one.type == "criteria",
        )
        for one in looking
        if any(names is not None for names in expected[one.name])
    }


def tool_uses(
    index: RunIndex, expected: Mapping[str, Expectation], *, level: float
) -> tuple[tuple[ToolUse, ...], tuple[ToolConfusion, ...]]:
    """Precision and recall of each tool under each condition, and which tools were called instead
    of others.

    Empty if no answer reports a call and the agent does not claim to report every call.
    """
    uses: list[ToolUse] = []
    confusions: list[ToolConfusion] = []
    names = list(index.conditions)
    offered = list(index.calls.codes)
    calls = index.calls
    order = np.argsort(np.frombuffer(calls.cells, dtype=np.int64), kind="stable").tolist()
    for scorer, wanted in (
        expected.items() if index.calls.codes or index.run.info.reports_tool_calls else ()
    ):
        # condition and tool → sample → expected, called, both
        counts: dict[tuple[int, str], dict[int, list[int]]] = {}
        pairs: Counter[tuple[int, str, str | None]] = Counter()
        at = 0
        for cell in range(index.planned):
            start = at
            while at < len(order) and calls.cells[order[at]] == cell:
                at += 1

            sample, condition, _ = index.place(cell)
            tools = wanted.tools[sample]
            if tools is None or not index.answered[cell]:
                continue
            called = [(offered[calls.tools[i]], calls.succeeded[i] > 0) for i in order[start:at]]
            matched, others = wanted.choices(sample, called)
            for tool in tools | others:
                count = counts.setdefault((condition, tool), {}).setdefault(sample, [0, 0, 0])
                count[0] += tool in tools
                count[1] += tool in matched or tool in others
                count[2] += tool in matched

            instead: Iterable[str | None] = others or (None,)
            pairs.update(
                (condition, missing, other) for other in instead for missing in tools - matched
            )

        rows = []
        for (condition, tool), tallies in counts.items():
            golden, chosen, both = np.array(list(tallies.values()), dtype=np.float64).T
            precision, recall = (
                estimated(
                    ratio_interval(Sums.of(both, of), share=True, level=level).interval, 0.0, 1.0
                )
                for of in (chosen, golden)
            )
            rows.append(
                ToolUse(
                    scorer=scorer,
                    condition=names[condition],
                    tool=tool,
                    expected=int(golden.sum()),
                    called=int(chosen.sum()),
                    matched=int(both.sum()),
                    precision=precision,
                    recall=recall,
                )
            )

        uses += sorted(
            rows, key=lambda use: (names.index(use.condition), -use.expected, -use.called, use.tool)
        )
        most = sorted(
            pairs.items(), key=lambda pair: (-pair[1], pair[0][0], pair[0][1], pair[0][2] or "")
        )
        confusions += [
            ToolConfusion(
                scorer=scorer,
                condition=names[at],
                expected=missing,
                called=other,
                answers=answers,
            )
            for (at, missing, other), answers in most
        ]

    return tuple(uses), tuple(confusions)
