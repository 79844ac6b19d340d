"""The viewer's page about one study: people beside the agent, who took part, what could not be
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs

from karat import formats
from karat.blocks import (
    Block,
    Cell,
    Count,
    Group,
    Note,
    Number,
    Row,
    Section,
    Share,
    Table,
    Text,
    columns,
    explained,
)
from karat.kind_views import KindPage, address
from karat_studies.kinds.study.analysis.model import (
    FindingResult,
    SideNumbers,
    StudyCondition,
    StudyResult,
    StudySummary,
    TestResult,
)
from karat_studies.kinds.study.sections import (
    DIRECTION,
    FLAGGED,
    by_study,
    coverage_cell,
    named,
    number_cell,
    pas_cell,
    statistic_of,
    unread,
)

_MOST_FINDINGS = 100
_MOST_TESTS = 60  # of one finding
_MOST_REPETITIONS = 20
_MOST_FIELDS = 300  # rows of what could not be read
_HEADS = ("test", "statistic", "ln BF", "P(effect)", "d", "PAS", "direction", "coverage")


def study_page(part: StudySummary, run: str, name: str) -> KindPage | None:
    """The page of one study; None if the run has no study of this name."""
    info = part.info(name)
    if info is None:
        return None
    results = []
    for condition in part.conditions:
        if (result := condition.study(name)) is not None:
            results.append((condition, result))

    alone = _alone(part, name)

    def unread_answers(
        condition: StudyCondition,
        study: str,
        arm: str,
        field: str,
        kind: str,
    ) -> str:
        if kind == "stopped":
            label = "turn=stopped"
        else:
            label = f"{field}={kind}"

        return _listed(run, study, arm, condition.condition, label=label)

    again = (
        " Statistic, ln BF and P(effect) are those of the first repetition; PAS and d are means "
        "over all of them."
    )
    lead = (
        f"ln BF: logarithm of the Bayes factor for an effect; above 6.9 it is decisive. d: "
        f"Cohen's d ({part.convention}). PAS: the probability that agent and people are in the "
        f"same state. Few answers: coverage below {formats.share(FLAGGED)}, so the number may "
        f"only reflect those who answered.{again if part.repetitions > 1 else ''}"
    )
    sections = (
        Section(
            id="agreement",
            title="Agreement with people",
            blocks=(explained(by_study(alone)),),
        ),
        Section(
            id="findings",
            title="Findings",
            blocks=tuple(map(explained, _findings(part, name))),
            lead=lead,
        ),
        Section(id="arms", title="Arms", blocks=(explained(_arms(run, results)),)),
        Section(
            id="unread",
            title="What could not be read",
            blocks=tuple(unread(alone, link=unread_answers, most=_MOST_FIELDS)),
        ),
        Section(
            id="lost", title="Participants without an answer", blocks=tuple(_lost(run, results))
        ),
    )
    changes = [
        f"wording {info.wording}" if info.wording else "",
        "options reversed" if info.reorder else "",
        "other names and amounts" if info.relabel else "",
    ]
    arms = f"{formats.count(len(info.arms))} of {formats.count(info.arms_in_file)} arms"
    code = info.reducer or ""
    if code and not info.reduced:
        code += ", which was not allowed to run"

    facts = {
        "Source": info.source,
        "Domain": info.domain,
        "Design": f"{info.design} subjects, {arms}",
        **({"Caveat": info.caveat} if info.caveat else {}),
        **({"License": info.license} if info.license else {}),
        "Shown": ", ".join(filter(None, changes)) or "as written",
        "Least coverage for a score": formats.share(info.min_coverage),
        **({"Own code": code} if code else {}),
        "sha256": info.sha256[:16],
    }
    return KindPage(
        name=name,
        title=info.title,
        facts=tuple(facts.items()),
        samples={"study": name},
        sections=tuple(section for section in sections if section.blocks),
    )


def _alone(part: StudySummary, name: str) -> StudySummary:
    """The part, as if the run had only this study."""
    conditions = []
    for condition in part.conditions:
        own = tuple(study for study in condition.studies if study.study == name)
        if own:
            conditions.append(structs.replace(condition, studies=own))

    floor = part.floor
    if floor is not None:
        random = tuple(score for score in floor.studies if score.name == name)
        floor = structs.replace(floor, studies=random)
    return structs.replace(part, conditions=tuple(conditions), floor=floor)


def _findings(part: StudySummary, name: str) -> Iterator[Block]:
    """Each finding, with its results under every condition."""
    findings: dict[str, list[tuple[int, FindingResult]]] = {}
    for color, condition in enumerate(part.conditions):
        study = condition.study(name)
        for finding in study.findings if study is not None else ():
            findings.setdefault(finding.name, []).append((color, finding))

    for own, sides in list(findings.items())[:_MOST_FINDINGS]:
        flagged = ", ".join(
            named(part.conditions[color]) for color, finding in sides if finding.flagged
        )
        texts = (sides[0][1].claim, f"few answers: {flagged}" if flagged else "")
        yield Note(title=own, texts=tuple(filter(None, texts)), tone="quiet")
        yield from _tests(part, own, sides)

    if (left := len(findings) - _MOST_FINDINGS) > 0:
        yield Note(texts=(f"{formats.plural(left, 'further finding')} left out.",), tone="quiet")


def _tests(
    part: StudySummary, name: str, sides: Sequence[tuple[int, FindingResult]]
) -> Iterator[Block]:
    rows: list[Row | Group] = []
    again: list[Row | Group] = []
    tests: dict[str, list[tuple[int, TestResult]]] = {}
    for color, finding in sides:
        for test in finding.tests:
            tests.setdefault(test.id, []).append((color, test))

    for own, results in list(tests.items())[:_MOST_TESTS]:
        test = results[0][1]
        reported = test.reported and f"“{test.reported}”"
        facts = [test.kind.replace("_", " "), f"expected of people: {test.expect}", reported]
        rows.append(Group(own, ", ".join(filter(None, facts))))
        first = next((result.repetitions[0] for _, result in results if result.repetitions), None)
        human = _side(test.kind, None if first is None else first.human)
        rows.append(Row(name="people", total=True, cells=(*human, Text(""), Text(""), Text(""))))
        for color, result in results:
            agent = None
            if result.repetitions:
                agent = result.repetitions[0].agent
            statistic, evidence, effect, d = _side(test.kind, agent)
            if len(result.repetitions) > 1:
                d = Number(result.d_agent, signed=True)
            pas: Cell = pas_cell(result.pas, color)
            said = agent is not None and result.reason in agent.reasons
            if result.pas.value is None and result.reason and not said:
                pas = Text(formats.UNKNOWN, below=result.reason)

            direction = _direction(
                result.same_direction, opposed=result.opposed, decisive=result.decisive
            )
            scores: tuple[Cell, ...] = (statistic, evidence, effect, d, pas)
            cells = (*scores, direction, coverage_cell(result.coverage))
            rows.append(Row(name=named(part.conditions[color]), color=color, cells=cells))

        again += _again(part, own, results)

    if len(tests) > 1:
        rows.append(Group("pooled over its tests"))
        for color, finding in sides:
            pas = pas_cell(finding.pas, color)
            if finding.pas.value is None and finding.reason:
                pas = Text(formats.UNKNOWN, below=finding.reason)
            directed = formats.count(finding.tests_directed)
            if finding.tests_directed:
                same = f"{formats.count(finding.tests_agreeing)} of {directed} the same"
            else:
                same = ""

            cells = (*[Text("")] * 4, pas, Text(same), coverage_cell(finding.coverage))
            rows.append(Row(name=named(part.conditions[color]), color=color, cells=cells))

    heads = columns(*_HEADS, text=("statistic", "direction"))
    yield Table(caption=f"Tests of {name}", columns=heads, rows=tuple(rows), legend=DIRECTION)
    if again:
        caption = f"Tests of {name}, each repetition"
        yield Table(
            caption=caption,
            folded=True,
            rows=tuple(again),
            columns=heads,
            legend=DIRECTION,
        )

    if (left := len(tests) - _MOST_TESTS) > 0:
        yield Note(texts=(f"{formats.plural(left, 'further test')} left out.",), tone="quiet")


def _again(
    part: StudySummary, name: str, results: Sequence[tuple[int, TestResult]]
) -> Iterator[Row | Group]:
    for color, test in results:
        if len(test.repetitions) > 1:
            yield Group(name, named(part.conditions[color]))
            for row in test.repetitions[:_MOST_REPETITIONS]:
                cells = (
                    *_side(test.kind, row.agent),
                    pas_cell(row.pas, color),
                    _direction(row.same_direction, opposed=row.opposed, decisive=row.decisive),
                    coverage_cell(row.coverage),
                )
                yield Row(name=f"repetition {formats.count(row.repetition + 1)}", cells=cells)


def _side(kind: str, side: SideNumbers | None) -> tuple[Cell, Cell, Cell, Cell]:
    """The statistic, the evidence for an effect, its probability, and its size."""
    if side is None:
        unknown = Text(formats.UNKNOWN)
        return unknown, unknown, unknown, unknown

    evidence = Number(side.evidence, digits=1)
    shown = Text(statistic_of(kind, side), below="; ".join(side.reasons))
    return shown, evidence, number_cell(side.pi), Number(side.d, signed=True)


def _direction(same: bool | None, *, opposed: bool, decisive: bool) -> Text:
    if opposed:
        return Text("opposite", below="decisive" if decisive else "", tone="bad")
    return Text({True: "same", False: "other", None: formats.UNKNOWN}[same])


def _arms(run: str, results: Sequence[tuple[StudyCondition, StudyResult]]) -> Table:
    """Who took part: one row per arm and condition."""
    rows = []
    for color, (condition, study) in enumerate(results):
        for arm in study.arms:
            people = arm.participants
            counts = (people.planned, people.asked, people.answered, people.parsed)
            cells = [
                Count(now, tone="bad" if now < before else "")
                for now, before in zip(counts, (people.planned, *counts), strict=False)
            ]
            numbers = (Count(arm.people), *cells, Count(people.stopped))
            rows.append(
                Row(
                    name=arm.arm,
                    link=_listed(run, study.study, arm.arm, condition.condition),
                    color=color,
                    cells=(Text(condition.condition), *numbers, Share(arm.share_read)),
                )
            )

    order = [*dict.fromkeys(row.name for row in rows)]
    heads = (
        "arm",
        "condition",
        "people",
        "planned",
        "asked",
        "answered",
        "parsed",
        "stopped",
        "read",
    )
    return Table(
        caption="Participants by arm",
        columns=columns(*heads, text=("condition",)),
        rows=tuple(sorted(rows, key=lambda row: order.index(row.name))),
        legend="Asked: at least one reply in a session that was scored. Answered: a reply to "
        "everything. Parsed: also with every needed field read. People: in the study. "
        "Read: of the answers that came.",
    )


def _lost(run: str, results: Sequence[tuple[StudyCondition, StudyResult]]) -> Iterator[Block]:
    """Participants without a score, with links to them."""
    rows = []
    for color, (condition, study) in enumerate(results):
        parts = [f"{kind} {formats.count(many)}" for kind, many in study.failures.items()]
        if study.not_run:
            parts += [f"not run {formats.count(study.not_run)}"]
        if parts:
            if study.failures:
                link = _listed(run, study.study, "", condition.condition, failure="any")
            else:
                link = ""

            rows.append(
                Row(
                    name=condition.condition,
                    color=color,
                    cells=(Text(", ".join(parts), link=link),),
                )
            )

    if rows:
        heads = columns("condition", "why", text=("why",))
        yield Table(caption="Participants without an answer", columns=heads, rows=tuple(rows))


def _listed(run: str, study: str, arm: str, condition: str, **query: str) -> str:
    return address("runs", run, "samples", study=study, arm=arm, condition=condition, **query)
