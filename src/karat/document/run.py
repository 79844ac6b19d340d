"""A run as a document: its result, its facts, and its sections in reading order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from karat import formats, kinds
from karat.analysis import Summary
from karat.analysis.verdicts import probable_flips, server_warnings
from karat.blocks import Block, Chart, Fold, KindBlocks, Note, Section, Table, limited
from karat.document import failing, scores, spending, use, variation
from karat.document.charts import gaps, spread, with_names_apart
from karat.document.corrected import corrected_blocks, corrected_lines
from karat.document.failing import Texts
from karat.document.origin import origin
from karat.document.verdicts import verdicts

_NONE: Mapping[str, str] = {}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report of a run shows; renderers format it."""

    name: str
    run: str = ""
    status: str = ""
    created: str = ""
    verdicts: tuple[str, ...]  # who is better than whom, one per line
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        """The run in a line; for a document that is not about a single run, its name."""
        if self.run:
            return f"{self.name} {self.run} ({self.status})"
        return self.name


def document(
    summary: Summary,
    *,
    texts: Texts | None = None,
    files: Mapping[str, str] = _NONE,
    lowest: int = 5,
    longest: int = 8_000,
    brief: bool = False,
) -> Document:
    """The document of a run; empty sections are left out.

    `texts` and `files` are not in a summary. `longest`: characters of a quoted answer. `brief`:
    blocks that a first screen does not show are not made.
    """
    kind = kinds.of(summary.kind).sections(summary)
    failed: list[Block] = [*failing.failures(summary.failures), *kind.failing]
    spent: list[Block] = [*kind.cost]
    repeated: list[Block] = [*kind.origin]
    if not brief:
        failed += [
            *failing.lowest(summary, texts, most=lowest, limit=longest),
            *gaps(summary),
            *failing.every(summary),
            *failing.claims(summary, texts),
        ]
        spent = [*spending.ledger(summary), *spending.spent(summary), *spent]
        spent += spending.servers(summary)
        repeated = [*origin(summary, files), *repeated]

    metrics = scores.measured(summary, kind)
    results: tuple[Block, ...] = (*kind.results, *scores.means(summary, metrics), *kind.details)
    if not any(result.n_answers for result in summary.results):
        going = bool(summary.total.ledger.not_run)
        why = "Nothing was scored yet." if going else "No answer has a score."
        results = (*results, Note(texts=(why,), tone="quiet"))

    if summary.calibrated is not msgspec.UNSET:
        results = (*results, *corrected_blocks(summary.calibrated))
    if kind.differences is None:
        compared = tuple(scores.differences(summary, brief=brief))
    else:
        compared = kind.differences

    used: tuple[Block, ...] = ()
    varied: tuple[Block, ...] = tuple(kind.variation)
    if not brief:
        used = (*use.use(summary), *use.tools(summary))
        varied += (*variation.variation(summary, metrics), *spread(summary))
        varied += (*variation.retried(summary),)

    sections = [
        Section(id="scores", title="Results", blocks=results),
        Section(id="differences", title="Differences", blocks=compared),
        Section(id="use", title="What was used", blocks=used),
        Section(id="variation", title="Variation", blocks=varied),
        *kind.sections,
        Section(id="failing", title="Where it fails", blocks=tuple(failed)),
        Section(id="cost", title="Cost and time", blocks=tuple(spent)),
        Section(id="origin", title="How to repeat it", blocks=tuple(repeated)),
    ]
    taken: set[str] = set()
    if summary.calibrated is not msgspec.UNSET:
        notes = summary.calibrated.notes
    else:
        notes = ()
    return Document(
        name=summary.name,
        run=summary.run,
        status=summary.status,
        created=summary.created,
        verdicts=verdict_lines(summary),
        facts=tuple(facts(summary, kind)),
        warnings=(*summary.warnings, *notes),
        sections=tuple(
            msgspec.structs.replace(section, blocks=with_names_apart(section.blocks, taken))
            for section in sections
            if section.blocks
        ),
    )


def verdict_lines(summary: Summary) -> tuple[str, ...]:
    """The verdicts; where people's labels correct a difference, the corrected one takes its
    place.
    """
    people = summary.calibrated
    if people is msgspec.UNSET:
        return verdicts(summary)
    corrected = set()
    for row in people.corrected:
        if row.against:
            corrected.add(frozenset((row.metric, row.condition, row.against)))

    lines = tuple(corrected_lines(people))
    if not corrected:
        return (*verdicts(summary), *lines)
    others = tuple(
        pair
        for pair in summary.differences
        if pair.winner is not None and frozenset((pair.metric, pair.b, pair.a)) not in corrected
    )
    if others:
        rest = verdicts(msgspec.structs.replace(summary, differences=others))
    else:
        rest = ()

    return (*server_warnings(summary.server_problems if not others else ()), *lines, *rest)


def facts(summary: Summary, kind: KindBlocks) -> Iterator[tuple[str, str]]:
    """Facts needed to understand the result: term and value."""
    source = summary.provenance
    total = summary.total
    asked = kind.asked or formats.plural(summary.samples, kinds.of(summary.kind).unit)
    ledger = total.ledger
    cost = total.cost
    conditions = formats.plural(len(summary.conditions), "condition")
    repetitions = formats.plural(summary.repetitions, "repetition")
    if ledger.planned < summary.samples * len(summary.conditions) * summary.repetitions:
        repetitions = f"up to {repetitions}"
    yield "Asked", " × ".join((asked, conditions, repetitions))
    yield (
        "Trials scored" if summary.metrics else "Trials answered",
        f"{formats.count(ledger.scored)} of {formats.count(ledger.planned)}",
    )
    yield "Agent", f"{source.agent} ({source.model})" if source.model else source.agent
    judged: dict[str, None] = {}
    for info in summary.metrics:
        said = [info.scorer]
        if info.offline:
            said.append("(offline)")
        if info.direction == "lower":
            said.append("(lower is better)")
        judged[" ".join(said)] = None

    if judged:
        yield "Scored by", ", ".join(judged)
    if kind.asked_with:
        yield "Asked with", ", ".join(kind.asked_with)
    known = cost.agent.known + cost.judge.known
    unknown = cost.agent.unknown + cost.judge.unknown
    yield "Cost", formats.dollars(known, unknown=unknown)
    yield "Median time", formats.duration(total.latency.median)
    if kind.differences is None:
        flips = probable_flips(summary.differences)
    else:
        flips = None

    if flips is not None:
        count = round(flips[0], 1)
        of_all = formats.plural(flips[1], "verdict")
        yield (
            "If run again",
            f"expect about {formats.number(count, digits=1)} of {of_all} to change"
            if count
            else f"the same {of_all}",
        )


def shortened(sections: Sequence[Section], *, rows: int, charts: int) -> tuple[list[Section], int]:
    """The sections with a limited number of table rows and charts; further charts become tables.

    Also returns how many charts were left out.
    """
    drawn = left_out = 0

    def fitting(block: Block) -> Block:
        nonlocal drawn, left_out
        if isinstance(block, Fold):
            return Fold(block.title, tuple(map(fitting, block.blocks)))
        if isinstance(block, Table):
            return limited(block, rows, "`karat report --to json` has them")
        if not isinstance(block, Chart):
            return block
        table = limited(block.table, rows, "`karat report --charts --json` has them")
        if drawn < charts and table is block.table:
            drawn += 1
            return block

        left_out += 1
        return msgspec.structs.replace(table, folded=True)

    shown = [
        msgspec.structs.replace(section, blocks=tuple(map(fitting, section.blocks)))
        for section in sections
    ]
    return shown, left_out
