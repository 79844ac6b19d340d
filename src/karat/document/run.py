"""A run as a document: its result, its facts, and its sections in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from karat import formats, kinds
from karat.analysis import Summary
from karat.blocks import Block, Figure, KindBlocks, Note, Section, Table, limited
from karat.document import failing, scores, spending, variation
from karat.document.charts import Chart
from karat.document.failing import Texts
from karat.document.origin import origin
from karat.document.verdicts import verdicts

__all__ = ["Document", "document", "facts", "shortened"]

_NONE: Mapping[str, str] = {}
_DRAWN_BY_TABLES = ("means-", "differences-")  # charts of what a table draws, too: `karat plot` still makes them


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report of a run shows; renderers give it a form."""

    name: str
    run: str
    status: str
    created: str
    verdicts: tuple[str, ...]  # who is better than whom, a line each
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]


def document(
    summary: Summary,
    *,
    texts: Texts | None = None,
    files: Mapping[str, str] = _NONE,
    lowest: int = 5,
    longest: int = 8_000,
    drawn: Sequence[Chart] = (),
) -> Document:
    """The document of a run; empty sections are left out.

    `texts` and `files` are what no summary holds. `longest`: characters of an answer that is quoted. `drawn`: charts,
    which stand where they belong.
    """
    charts = _Charts([chart for chart in drawn if not chart.name.startswith(_DRAWN_BY_TABLES)])
    kind = kinds.of(summary.kind).sections(summary, charts.called)
    low = tuple(failing.lowest(summary, texts, most=lowest, limit=longest))
    found = [
        *_measured(summary, kind, charts),
        *kind.sections,
        Section(id="failing", title="Where it fails", blocks=(
            *failing.failures(summary.failures), *kind.failing, *low, *charts.take("gaps-"), *failing.every(summary),
            *failing.claims(summary, texts),
        )),
        Section(id="cost", title="Cost and time", blocks=(
            *spending.ledger(summary), *spending.spent(summary), *charts.take("cost-"), *kind.cost,
            *spending.servers(summary),
        )),
        Section(id="charts", title="Further charts", blocks=charts.take("")),
        Section(id="origin", title="How to repeat it", blocks=(*origin(summary, files), *kind.origin)),
    ]  # fmt: skip
    return Document(
        name=summary.name,
        run=summary.run,
        status=summary.status,
        created=summary.created,
        verdicts=verdicts(summary),
        facts=tuple(facts(summary, kind)),
        warnings=summary.warnings,
        sections=tuple(section for section in found if section.blocks),
    )


def facts(summary: Summary, kind: KindBlocks) -> Iterator[tuple[str, str]]:
    """What a reader must know to read the result: term and value."""
    source, total = summary.provenance, summary.total
    asked = kind.asked or formats.plural(summary.samples, kinds.of(summary.kind).unit)
    sizes = (formats.plural(len(summary.conditions), "condition"), formats.plural(summary.repetitions, "repetition"))
    yield "Asked", " × ".join((asked, *sizes))
    ledger, cost = total.ledger, total.cost
    yield (
        "Trials scored" if summary.metrics else "Trials answered",
        f"{formats.count(ledger.scored)} of {formats.count(ledger.planned)}",
    )
    yield "Agent", f"{source.agent} ({source.model})" if source.model else source.agent
    judged = dict.fromkeys((f"{info.scorer} (offline)" if info.offline else info.scorer) for info in summary.metrics)
    if judged:
        yield "Scored by", ", ".join(judged)
    if kind.asked_with:
        yield "Asked with", ", ".join(kind.asked_with)
    known, unknown = cost.agent.known + cost.judge.known, cost.agent.unknown + cost.judge.unknown
    yield "Cost", formats.dollars(known, unknown=unknown)
    yield "Median time", formats.duration(total.latency.median)


class _Charts:
    """The charts that no section has taken yet."""

    def __init__(self, left: Sequence[Chart]) -> None:
        self._left = list(left)

    def take(self, *names: str) -> tuple[Figure, ...]:
        """Those whose names begin so."""
        return self._taken([chart for chart in self._left if chart.name.startswith(names)])

    def called(self, *names: str) -> tuple[Figure, ...]:
        """Those of exactly these names."""
        return self._taken([chart for chart in self._left if chart.name in names])

    def _taken(self, found: Sequence[Chart]) -> tuple[Figure, ...]:
        self._left = [chart for chart in self._left if chart not in found]
        return tuple(Figure(chart) for chart in found)


def _measured(summary: Summary, kind: KindBlocks, charts: _Charts) -> Iterator[Section]:
    metrics = scores.measured(summary, kind)
    results: tuple[Block, ...] = (*kind.results, *scores.means(summary, metrics), *kind.details)
    if not any(result.n_answers for result in summary.results):
        going = bool(summary.total.ledger.not_run)
        texts = ("Nothing was scored yet." if going else "No answer has a score.",)
        results = (*results, Note(texts=texts, tone="quiet"))
    yield Section(id="scores", title="Results", blocks=results)
    compared = tuple(scores.differences(summary)) if kind.differences is None else kind.differences
    yield Section(id="differences", title="Differences", blocks=compared)
    spread = (*variation.variation(summary, metrics), *charts.take("scores-"), *variation.retried(summary))
    yield Section(id="variation", title="Variation", blocks=(*kind.variation, *spread))


def shortened(section: Section, most: int) -> Section:
    """The same with at most so many rows in a table, which says how many there are besides."""
    rest = "`karat report --to json` has them"
    return msgspec.structs.replace(
        section,
        blocks=tuple(limited(block, most, rest) if isinstance(block, Table) else block for block in section.blocks),
    )
