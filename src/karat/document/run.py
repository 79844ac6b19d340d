"""A run as sections, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from karat import formats
from karat.analysis import Summary
from karat.document import conversations as talk
from karat.document import failing, scores, spending, variation
from karat.document import studies as human
from karat.document.blocks import Block, Figure, Fold, Note, Section, Table
from karat.document.charts import Chart, charts
from karat.document.charts.chart import slug
from karat.document.charts.written import unit_of
from karat.document.failing import Texts
from karat.document.origin import origin
from karat.kinds.conversation.analysis.model import ConversationSummary

__all__ = ["facts", "sections", "shortened"]

_NONE: Mapping[str, str] = {}


def facts(summary: Summary) -> list[tuple[str, str]]:
    """What one must know to read the answer: term and value, a line of them."""
    source, total, unit = summary.provenance, summary.total, unit_of(summary)
    asked = formats.plural(summary.samples, unit)
    if summary.study is not None and summary.study.conditions:
        people = summary.study.conditions[0].participants.planned // max(1, summary.repetitions)
        studies = formats.plural(len(summary.study.studies), "study", "studies")
        asked = f"{formats.plural(people, 'participant')} of {studies}"
    size = f"{asked} × {formats.plural(len(summary.conditions), 'condition')}"
    ledger, cost = total.ledger, total.cost
    scored = f"{formats.count(ledger.scored)} of {formats.count(ledger.planned)}"
    known, unknown = cost.agent.known + cost.judge.known, cost.agent.unknown + cost.judge.unknown
    agent = f"{source.agent} ({source.model})" if source.model else source.agent
    judged = ", ".join(dict.fromkeys(info.scorer for info in summary.metrics))
    turns = summary.conversation.turns if summary.conversation is not None else 0
    return [
        ("Asked", f"{size} × {formats.plural(summary.repetitions, 'repetition')}"),
        *([("Turns", formats.count(turns))] if turns else []),
        ("Trials scored" if summary.metrics else "Trials answered", scored),
        ("Agent", agent),
        *([("Scored by", f"{judged} (offline)" if summary.offline else judged)] if judged else []),
        ("Cost", formats.dollars(known, unknown=unknown)),
        ("Median time", formats.duration(total.latency.median)),
    ]


class _Charts:
    """The charts that no section has taken yet."""

    def __init__(self, left: Sequence[Chart]) -> None:
        self._left = list(left)

    def take(self, *names: str) -> tuple[Figure, ...]:
        """Those whose names begin so."""
        found = [one for one in self._left if one.name.startswith(names)]
        self._left = [one for one in self._left if one not in found]
        return tuple(Figure(chart=one) for one in found)

    def called(self, *names: str) -> tuple[Figure, ...]:
        """Those of exactly these names."""
        found = [one for one in self._left if one.name in names]
        self._left = [one for one in self._left if one not in found]
        return tuple(Figure(chart=one) for one in found)


def sections(
    summary: Summary,
    *,
    texts: Texts | None = None,
    files: Mapping[str, str] = _NONE,
    lowest: int = 5,
    longest: int = 8_000,
    drawn: Sequence[Chart] | None = None,
) -> tuple[Section, ...]:
    """The parts of a run's page after the answer itself; empty ones are left out.

    `texts` and `files` are what no summary holds. `longest`: characters of an
    answer that is quoted. `drawn`: the charts, where they are there already.
    """
    left = _Charts(charts(summary) if drawn is None else drawn)
    low = tuple(failing.lowest(summary, texts, most=lowest, limit=longest))
    found = [
        *_measured(summary, left),
        *_conversation(summary, left),
        *_study(summary, left),
        _failing(summary, left, texts, low),
        _spending(summary, left),
        Section(id="charts", title="Further charts", blocks=left.take("")),
        Section(id="origin", title="How to repeat it", blocks=tuple(origin(summary, files))),
    ]
    return tuple(one for one in found if one.blocks)


def _measured(summary: Summary, left: _Charts) -> Iterator[Section]:
    metrics, part, study = scores.measured(summary), summary.conversation, summary.study
    means, apart = left.take("means-"), left.take("differences-")
    matrix = tuple(scores.matrix(summary, metrics))
    blocks: tuple[Block, ...] = (*matrix, *means)
    if part is not None:
        blocks = (*_accuracies(part), *matrix, *_folded(means))
    elif study is not None:
        blocks = (*human.agreement(study), *matrix, *_folded(means))
    blocks = (*blocks, *scores.rests_on(summary, metrics), *_nothing(summary))
    yield Section(id="scores", title="Conditions × metrics", blocks=blocks)
    table = tuple(scores.differences(summary) if study is None else human.differences(study))
    blocks = (*apart, *table) if part is None and study is None else (*table, *_folded(apart))
    yield Section(id="differences", title="Differences between conditions", blocks=blocks)
    again = tuple(human.repetitions(study)) if study is not None else ()
    blocks = (*again, *variation.variation(summary, metrics), *left.take("scores-"), *variation.retried(summary))
    yield Section(id="variation", title="Where the variation comes from", blocks=blocks)


def _failing(summary: Summary, left: _Charts, texts: Texts | None, low: Sequence[Block]) -> Section:
    lost = human.lost(summary.study) if summary.study is not None else ()
    blocks = (
        *lost, *low, *left.take("gaps-"), *failing.every(summary), *failing.failures(summary.failures),
        *failing.claims(summary, texts),
    )  # fmt: skip
    return Section(id="failing", title="Where it fails", blocks=blocks)


def _spending(summary: Summary, left: _Charts) -> Section:
    blocks = (
        *spending.ledger(summary), *spending.spent(summary), *spending.right_answers(summary), *left.take("cost-"),
        *(human.used(summary.study) if summary.study is not None else ()), *spending.servers(summary),
    )  # fmt: skip
    return Section(id="cost", title="Cost and time", blocks=blocks)


def _accuracies(part: ConversationSummary) -> Iterator[Block]:
    yield from talk.accuracies(part)
    yield from talk.reasoning(part)


def _folded(figures: Sequence[Figure]) -> Iterator[Block]:
    """Of conversations there are many such charts, and the tables before say the same."""
    if figures:
        yield Fold(title=f"These and further metrics as {formats.plural(len(figures), 'chart')}", blocks=(*figures,))


def _nothing(summary: Summary) -> Iterator[Block]:
    if not any(one.n_answers for one in summary.results):
        going = bool(summary.total.ledger.not_run)
        yield Note(texts=("Nothing was scored yet." if going else "No answer has a score.",), tone="quiet")


def _conversation(summary: Summary, left: _Charts) -> Iterator[Section]:
    """Of a run over conversations: along the turns, the rules, the reasons, what follows from an error."""
    part = summary.conversation
    if part is None:
        return
    blocks: list[Block] = [
        *left.take("accuracy-by-turn"),
        *talk.strata(part, "Accuracy by turn", "turn", lambda one: one.by_turn),
        *left.take("complexity-ceiling"),
        *talk.strata(part, "Complexity ceiling", "golden operations", lambda one: one.by_operations),
        *left.take("ladder-of-matches"),
        *talk.ladder(part),
        *left.take("diagnoses"),
        *talk.diagnoses(part),
        *left.take("propagation"),
        *talk.propagation(part),
        *left.take("first-wrong-turn", "features"),
        *talk.features(part),
        *talk.besides(part),
    ]
    yield Section(id="conversation", title="Where the chain breaks", blocks=tuple(blocks))


def _study(summary: Summary, left: _Charts) -> Iterator[Section]:
    """Of a run over studies: by study and finding, effects beside those of people, who took part."""
    part = summary.study
    if part is None:
        return
    blocks: list[Block] = [*human.levels(part)]
    for place, one in enumerate(part.conditions):
        names = [slug(kind, one.condition) for kind in ("agreement", "effects", "effect-differences", "participants")]
        figures = left.called(*names)
        if place and figures:
            told = formats.plural(len(figures), "chart")
            blocks.append(Fold(title=f"{one.condition}: {told}", blocks=figures))
        else:
            blocks += figures
        blocks += human.findings(one, folded=bool(place))
    blocks += human.auxiliary(part)
    yield Section(id="study", title="Beside what people did", blocks=tuple(blocks))


def shortened(section: Section, most: int) -> Section:
    """The same with at most so many rows in a table, which says how many there are besides."""
    return replace(section, blocks=tuple(_shortened(one, most) for one in section.blocks))


def _shortened(block: Block, most: int) -> Block:
    if not isinstance(block, Table) or len(block.rows) <= most:
        return block
    left = formats.plural(len(block.rows) - most, "further row")
    return replace(block, rows=block.rows[:most], legend=f"{block.legend} {left} left out: `karat report --to json`.")
