"""The contents of a study, for `karat check`, `karat list studies` and `karat check --lint`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat import formats
from karat.analysis.numbers import from_fields, known
from karat.cli.output import aligned
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.kinds import Doubted, Linted
from karat.records import Sample
from karat_studies.kinds.study import Study, study_samples
from karat_studies.kinds.study.copy import CopyTest, human_scores, tested_copies
from karat_studies.kinds.study.format import Arm, Finding, StudyFile, studies_of
from karat_studies.kinds.study.places import WHERE, locate, reads_as, shipped_studies
from karat_studies.kinds.study.prompts import described
from karat_studies.kinds.study.reading import has_relabelled, read_study, wordings_of
from karat_studies.kinds.study.rounds import round_task
from karat_studies.kinds.study.sides import STATISTIC

if TYPE_CHECKING:
    from karat.kinds import Dataset
    from karat_studies.kinds.study.copy import CopyTest

_WIDEST = 40  # columns of one cell


def held(study: StudyContents) -> list[str]:
    """The whole page."""
    lines = [f"{study.name}: {study.title}", study.source, "", size(study)]
    forms = ", ".join(
        [*(f"wording: {name}" for name in study.wordings), *["relabel: true"] * study.relabelled]
    )
    about = {
        "profile": ", ".join(study.attributes),
        "licence": study.license,
        "caveat": study.caveat,
        "code": study.reducer,
        "forms": forms,
    }
    lines += [f"{key + ':':8} {value}" for key, value in about.items() if value]
    rows: list[tuple[str, ...]] = []
    for arm in study.arms:
        fields = [f"{name}: {formats.excerpt(how, _WIDEST)}" for name, how in arm.fields.items()]
        shown = "; ".join(fields[:3]) + (f"; … {len(fields)} in all" if len(fields) > 3 else "")
        shown += "".join(
            f"; {role} earns {formats.excerpt(how, _WIDEST)}" for role, how in arm.payoffs.items()
        )
        if arm.participants:
            participants = formats.count(arm.participants)
        else:
            participants = "not asked"

        if arm.participants and arm.groups is not None:
            participants += f" in {formats.plural(arm.groups, 'group')}"
        rows.append(
            (arm.name, formats.count(arm.people), participants, formats.count(arm.questions), shown)
        )

    lines += ["", *table([_ARMS, *rows])]
    lines += [
        "",
        *table(
            [("finding", "claim"), *((finding.id, finding.claim) for finding in study.findings)]
        ),
    ]
    results = [_TESTS]
    missing = []
    for test in study.tests:
        results.append(
            (
                test.finding,
                test.id,
                test.kind,
                formats.excerpt(test.compares, _WIDEST),
                formats.excerpt(people_statistic(test), _WIDEST),
                formats.brief(test.n) if test.n is not None else formats.UNKNOWN,
                formats.signed(test.d),
                formats.signed(test.log_bf, digits=1),
                test.expect,
            )
        )
        if test.reasons:
            missing.append(f"{test.finding} {test.id}: {'; '.join(test.reasons)}")

    lines += ["", *table(results)]
    if missing:
        lines += ["", *missing]
    if study.copies:
        lines += ["", *(f"copy of people's {_copy(copy)}" for copy in study.copies)]
    return [formats.clean(line).rstrip() for line in lines]


_ARMS = ("arm", "people", "participants", "questions", "answers")
_TESTS = ("finding", "test", "kind", "compares", "people", "n", "d", "ln BF", "expected")


def size(contents: StudyContents) -> str:
    """The amounts, in a sentence."""
    if contents.groups is not None:
        groups = f" in {formats.plural(contents.groups, 'group')}"
    else:
        groups = ""

    design = (
        f"{contents.domain}, {contents.design} subjects, "
        f"{formats.plural(len(contents.arms), 'arm')}"
    )
    people = f"{formats.plural(contents.participants, 'participant')}{groups}"
    return (
        f"{design}: {people}, {formats.plural(contents.questions, 'question')} under one condition"
    )


def people_statistic(test: HeldTest) -> str:
    """`t(78) = 2.66`, `121/155, 43/152`.

    Unpublished values are a dash.
    """
    if test.table is not None:
        if all(len(row) == 2 for row in test.table):
            return ", ".join(f"{row[0]}/{sum(row)}" for row in test.table)
        return " | ".join(" ".join(map(str, row)) for row in test.table)

    if test.statistic is None:
        return formats.UNKNOWN
    letter = STATISTIC.get(test.kind, "t")
    if letter == "k":
        return f"{formats.brief(test.statistic)}/{'' if test.n is None else formats.brief(test.n)}"
    free = [formats.brief(df) for df in (test.df1, test.df2) if df is not None]
    return (
        f"{letter}{'(' + ', '.join(free) + ')' if free else ''} = {formats.number(test.statistic)}"
    )


def _copy(test: CopyTest) -> str:
    name = {"statistic": "numbers", "answers": "answers"}[test.layer]
    if test.reason is not None:
        return f"{name}: not tried, {test.reason}"
    if test.left_out:
        without = f", {formats.plural(test.left_out, 'test')} without numbers left out"
    else:
        without = ""

    if test.passed:
        return f"{name}: gives their result in {formats.plural(test.tests, 'test')}{without}"
    return f"{name}: does not give their result{without}"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side; the head first."""
    cells = []
    for row in rows:
        cells.append([formats.clean(cell) for cell in row])

    return aligned(cells)


class HeldArm(msgspec.Struct, frozen=True, kw_only=True):
    """What some of the participants are shown."""

    name: str
    people: int | None  # their number; None: not in the file
    participants: int  # of the agent
    groups: int | None  # in a game; None: everyone answers alone
    questions: int  # that one participant is asked in this arm
    fields: dict[str, str]  # field → how it is answered
    payoffs: dict[str, str] = {}  # role → its payoff in a round


class HeldTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test, with people's side. None: not known, and `reasons` explain why."""

    finding: str  # sub_study/id, or the id
    id: str
    kind: str
    compares: str
    reported: str | None  # as printed
    expect: str
    statistic: float | None  # None also if the test is a table
    df1: float | None
    df2: float | None
    table: tuple[tuple[int, ...], ...] | None  # rows = groups
    n: float | None
    d: float | None  # effect
    log_bf: float | None
    reasons: tuple[str, ...]


class HeldFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A claim."""

    id: str  # sub_study/id, or the id
    claim: str
    tests: int


class StudyContents(msgspec.Struct, frozen=True, kw_only=True):
    """One study: `karat list studies NAME --json`, and a part of `karat check STUDY --json`."""

    name: str
    title: str
    source: str
    domain: str
    design: str
    license: str | None
    caveat: str | None
    path: str
    sha256: str
    attributes: tuple[str, ...]  # of the participants
    reducer: str | None  # its own code that it requires
    wordings: tuple[str, ...]  # what `dataset.wording` may be
    relabelled: bool  # whether `dataset.relabel` has an effect
    participants: int
    groups: int | None  # None: no game
    questions: int  # asked under one condition, once: calls of the agent
    arms: tuple[HeldArm, ...]
    findings: tuple[HeldFinding, ...]
    tests: tuple[HeldTest, ...]
    copies: tuple[CopyTest, ...]  # empty: not tested
    warnings: tuple[str, ...]


_UNORDERED = (
    "derive: {} gives another result when the same answers are in another order; "
    "does a LIMIT, first() or OVER () lack its ORDER BY?"
)


def contents_of(
    study: StudyFile, samples: Sequence[Sample], *, copies: bool = True
) -> StudyContents:
    """The contents of the study, and its samples. `copies=False`: without the copy test."""
    people = human_scores(study)
    arms = tuple(_arm(name, arm, samples) for name, arm in study.arms.items())
    tested = tested_copies(study, people) if copies else ()
    games = [arm.groups for arm in arms if arm.groups is not None]
    if games:
        groups = sum(games)
    else:
        groups = None

    tests = []
    for (finding, test), score in zip(study.tests, people.tests, strict=True):
        against = ""
        if test.against is not None:
            against = f" against {test.against}"
        levels = ""
        if test.groups is not None:
            levels = f": {', '.join(test.groups.names)}"
        tests.append(
            from_fields(
                HeldTest,
                score.human,
                score.test.human,
                finding=finding_name(finding),
                id=test.id,
                kind=test.kind,
                compares=f"{test.measure}{against}{levels}",
                reported=test.human.reported,
                expect=test.expect,
                n=known(score.human.n_eff),
                reasons=tuple(dict.fromkeys(score.human.reasons)),
            )
        )

    return from_fields(
        StudyContents,
        study,
        name=study.study,
        path=str(study.path),
        wordings=wordings_of(study),
        relabelled=has_relabelled(study),
        participants=sum(len(sample.detail.get("members", (sample,))) for sample in samples),
        groups=groups,
        questions=sum(len(sample.turns) for sample in samples),
        arms=arms,
        findings=tuple(
            HeldFinding(id=finding_name(one), claim=one.claim, tests=len(one.tests))
            for one in study.findings
        ),
        tests=tuple(tests),
        copies=tested,
        warnings=(
            *study.warnings,
            *(_UNORDERED.format(name) for copy in tested for name in copy.unordered),
        ),
    )


def finding_name(finding: Finding) -> str:
    """`sub_study/id`, or just the id."""
    return "/".join(filter(None, (finding.sub_study, finding.id)))


def _arm(name: str, arm: Arm, samples: Sequence[Sample]) -> HeldArm:
    own = []
    for sample in samples:
        if any(turn.detail["arm"] == name for turn in sample.turns):
            own.append(sample)

    rounds = arm.rounds
    roles: list[str | None] = list(arm.roles) or [None]
    if rounds is None:
        shown = arm.shown
        groups = None
        questions = len(shown)
    else:
        shown = tuple(round_task(arm, min(2, rounds.count), role) for role in roles)
        groups = len(own)
        questions = rounds.count

    return HeldArm(
        name=name,
        people=arm.n,
        participants=sum(len(sample.detail.get("members", (sample,))) for sample in own),
        groups=groups,
        questions=questions,
        fields={
            field: described(answered) for task in shown for field, answered in task.fields.items()
        },
        payoffs=arm.payoffs,
    )


_LONGEST_TITLE = 60  # columns of a title or a source


class ListedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """One study in a line."""

    name: str
    title: str
    domain: str
    participants: int
    questions: int  # asked under one condition, once
    findings: int
    tests: int
    source: str
    wordings: tuple[str, ...]  # what `dataset.wording` may be
    relabelled: bool  # whether `dataset.relabel` has an effect


class ListedStudies(msgspec.Struct, frozen=True, kw_only=True):
    """`karat list studies --json`."""

    format: int = formats.OUTPUT_FORMAT
    family: str = "studies"
    studies: tuple[ListedStudy, ...]

    def __str__(self) -> str:
        head = ("name", "title", "domain", "participants", "findings", "tests", "forms", "source")
        rows = []
        for study in self.studies:
            rows.append(
                (
                    study.name,
                    formats.excerpt(study.title, _LONGEST_TITLE),
                    study.domain,
                    *map(formats.count, (study.participants, study.findings, study.tests)),
                    ", ".join([*study.wordings, *["relabelled"] * study.relabelled]),
                    _authors(study.source),
                )
            )

        return "\n".join([*table([head, *rows])]) + "\n"


class StudyPage(msgspec.Struct, frozen=True, kw_only=True):
    """`karat list studies NAME --json`."""

    format: int = formats.OUTPUT_FORMAT
    study: StudyContents

    def __str__(self) -> str:
        use = f"In an experiment file: dataset: {{kind: study, path: {self.study.name}}}"
        return "\n".join([*held(self.study), "", f"Files: {self.study.path}", use]) + "\n"


def shipped_pages() -> ListedStudies:
    """Every study included with karat."""
    studies = [_contents(name) for name in shipped_studies()]
    return ListedStudies(
        studies=tuple(
            from_fields(ListedStudy, study, findings=len(study.findings), tests=len(study.tests))
            for study in studies
        )
    )


def shipped_page(name: str) -> StudyPage:
    """One study. Raises BadOption for a name not included with karat."""
    known = shipped_studies()
    if name not in known:
        hint = did_you_mean(name, known)
        raise BadOption(
            "NAME",
            f"no study '{name}' comes with karat{hint}; for one of your own: `karat check STUDY`",
        )

    return StudyPage(study=_contents(name))


def _contents(name: str) -> StudyContents:
    study = read_study(shipped_studies()[name], sql=False)  # tests check what comes with karat
    return contents_of(study, study_samples(study), copies=False)


def _authors(source: str) -> str:
    """Authors and year, from a source in the style of a reference list.

    >>> _authors(
    ...     "Tversky, A., & Kahneman, D. (1981). The framing of decisions. Science, 211, 453-458."
    ... )
    'Tversky & Kahneman (1981)'
    """
    before, year, after = source.partition(" (")
    names = re.findall(r"(?:^|[,&] )([^\W\d_][\w' -]+), [^\W\d_]\.", before)
    if not names or not year:
        return formats.excerpt(source, _LONGEST_TITLE)
    if len(names) > 3:
        authors = f"{names[0]} et al."
    else:
        authors = " & ".join([", ".join(names[:-1]), names[-1]]).removeprefix(" & ")

    return formats.excerpt(f"{authors} ({after.partition(')')[0]})", _LONGEST_TITLE)


"""1: 2026-11, the first."""


class StudyFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault in a study's files."""

    place: str
    line: int | None
    message: str


class CheckedStudies(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check STUDY --json`."""

    format: int = formats.OUTPUT_FORMAT
    path: str
    ready: bool  # `karat run` would accept it, and its copy of people gives their result
    faults: tuple[StudyFault, ...]  # faults that make a run refuse it
    studies: tuple[StudyContents, ...]  # empty if there are faults

    @property
    def was_read(self) -> bool:
        return bool(self.studies)

    def __str__(self) -> str:
        blocks = ["\n".join(held(study)) for study in self.studies]
        if len(self.studies) > 1:
            studies = self.studies
            counts = [
                formats.plural(len(studies), "study", "studies"),
                formats.plural(sum(len(study.findings) for study in studies), "finding"),
                formats.plural(sum(len(study.tests) for study in studies), "test"),
                formats.plural(sum(study.participants for study in studies), "participant"),
                formats.plural(sum(study.questions for study in studies), "question"),
            ]
            blocks.append("\n".join([f"together: {', '.join(counts)} under one condition"]))

        return "\n\n\n".join(blocks) + "\n"

    @property
    def warnings(self) -> list[str]:
        """What cannot be checked, and what a person must check."""
        warnings = []
        for study in self.studies:
            for warning in study.warnings:
                warnings.append((study.name, warning))

        found = []
        for name, text in warnings:
            if len(self.studies) > 1:
                found.append(f"{name}: {text}")
            else:
                found.append(text)

        return found

    @property
    def problems(self) -> list[str]:
        """How copies of people differ from people."""
        found = []
        for study in self.studies:
            for copy in study.copies:
                for text in copy.apart:
                    found.append(f"{study.name}, {_LAYERS[copy.layer]}: {text}")

        return found


_LAYERS = {"statistic": "copy of people's numbers", "answers": "copy.jsonl"}


def check_studies(kind: Study, path: Path) -> CheckedStudies:
    """Reads the studies, and tests their copies."""
    try:
        dataset: Dataset = kind.load(path)
    except BadDataset as bad:
        faults = tuple(
            StudyFault(place=fault.place, line=fault.line, message=fault.message)
            for fault in bad.faults
        )
        return CheckedStudies(path=bad.path, ready=False, faults=faults, studies=())

    studies = tuple(
        contents_of(study, [sample for sample in dataset if sample.detail["study"] == study.study])
        for study in studies_of(dataset)
    )
    good = all(copy.passed for study in studies for copy in study.copies)
    return CheckedStudies(path=str(dataset.path), ready=good, faults=(), studies=studies)


_MEANINGS = {
    "unchecked": (
        "a published number that nothing could be compared with, or that is printed otherwise"
    )
}


def lint(path: Path, kind: Study) -> Linted:
    """The notes of every study, and the faults that make a run refuse them.

    Raises BadDataset if there is no study.
    """
    try:
        path = locate(str(path), folders=[Path.cwd()]).path
    except BadOption as bad:
        message = str(bad).removeprefix(f"{bad.option}: ")
        raise BadDataset(str(path), [Fault(place="file", message=message)]) from bad

    if path.is_file() and path.name != WHERE and reads_as(path) == "experiment":
        message = "is an experiment file: use `karat check` for it, and lint for its dataset"
        raise BadDataset(str(path), [Fault(place="file", message=message)])

    try:
        dataset = kind.load(path)
    except BadDataset as bad:
        return Linted(
            kind="study",
            path=path,
            sha256="",
            samples=0,
            turns=0,
            doubted=(),
            meanings=_MEANINGS,
            faults=tuple(bad.faults),
        )

    # One for each note; its place is the finding and the test.
    doubted = []
    for study in studies_of(dataset):
        for note in study.warnings:
            where, colon, message = note.partition(": ")
            if colon:
                place, text = (where, message)
            else:
                place, text = ("file", note)

            if dataset.path.is_file():
                name = place
            else:
                name = f"{study.study}: {place}"

            doubted.append(
                Doubted(
                    id=name,
                    turn=None,
                    reasons=("unchecked",),
                    evidence={"unchecked": {text: None}},
                )
            )

    return Linted(
        kind="study",
        path=path,
        sha256=dataset.sha256,
        samples=len(dataset),
        turns=sum(len(sample.turns) for sample in dataset),
        doubted=tuple(doubted),
        meanings=_MEANINGS,
    )
