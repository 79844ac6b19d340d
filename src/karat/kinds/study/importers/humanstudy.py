"""Study folders of HumanStudy-Bench: materials, specification, published statistics → a draft of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from pydantic import BaseModel, ConfigDict

from karat.documents.reader import parse
from karat.errors import BadDataset, Fault, unreadable
from karat.formats import excerpt, plural
from karat.importers import Doubt, Draft, Open
from karat.kinds.study.importers._humanstudy_arms import ArmDraft, arms_of, profile_of, sizes_of
from karat.kinds.study.importers._humanstudy_files import Notes, Spot, Table, read_folder, slug, tables_of
from karat.kinds.study.importers._humanstudy_statistics import ReportedText
from karat.kinds.study.importers._humanstudy_tests import FindingDraft, TestDraft, findings_of

__all__ = ["HumanStudy"]

_WIDEST = 120
_MOST_ROWS = 100  # rows of numbers per finding; the source has all of them
_LICENSE = "Texts and numbers as HumanStudy-Bench has them (MIT); the words of a paper may belong to its publisher"
_NEXT = (
    "`DECISIONS.md` lists what a person must decide before it can be run, and what is in doubt; `karat check` says "
    "what is left."
)
_WORDS = (
    "Texts in `materials/` are those of the source, which took them from the paper or retold them; instructions may "
    "speak about participants instead of to them. Write them in your own words, or make sure that you may use these. "
    "Wording matters: a difference between people and an agent can be one of wording."
)
_LICENCES = (
    "HumanStudy-Bench is published under the MIT licence. Numbers are facts of the paper. Texts and questionnaires may "
    "belong to their authors or publishers, whatever the licence of a collection says."
)
_CAVEAT = "A draft that karat imported; texts, groups and directions are still to be checked by a person."


class StudyDraft(msgspec.Struct, kw_only=True):
    """Everything that was read."""

    name: str
    title: str | None
    source: str | None
    domain: str | None
    profile: dict[str, Any]
    arms: list[ArmDraft]
    findings: list[FindingDraft]
    design: str | None  # between or within
    factors: list[str]  # what was varied according to the source, in words
    folder: str  # the name of the source folder
    tables: list[Table] = []
    open: list[Open] = []
    doubts: list[Doubt] = []


def files_of(draft: StudyDraft) -> dict[str, str]:
    """Path → text."""
    materials = {arm.prompt: arm.text for arm in draft.arms}
    tables = {"TABLES.md": _tables(draft)} if draft.tables else {}
    return {
        "study.yaml": _study(draft),
        **materials,
        "README.md": _readme(draft),
        "DECISIONS.md": _decisions(draft),
        **tables,
    }


def _study(draft: StudyDraft) -> str:
    top = {
        "study": draft.name, "title": draft.title, "source": draft.source, "domain": draft.domain,
        "license": _LICENSE, "caveat": _CAVEAT,
    }  # fmt: skip
    participants: dict[str, Any] = {"per_arm": "human"}
    if draft.profile:
        participants["profile"] = draft.profile
    arms = {arm.name: _arm(arm) for arm in draft.arms}
    lines = [
        "# A draft: null, [] and '?' are open, and `karat check` names each. DECISIONS.md says what the source has.",
        _yaml(top, flat=True),
        _yaml({"participants": participants}),
        _yaml({"design": draft.design}, flat=True),
        _yaml({"arms": arms or {}}),
        "# `derive: |` makes the columns that the tests measure, by SQL over the answers: docs, how to write a study.",
        _yaml({"derive": "SELECT * FROM responses"}, flat=True),
        "findings:" if draft.findings else "findings: []",
        *(_finding(finding) for finding in draft.findings),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _arm(arm: ArmDraft) -> dict[str, Any]:
    fields = {name: answer if answer is not None else {"type": None} for name, answer in arm.fields.items()}
    values = {"values": dict(arm.values)} if arm.values else {}
    rounds = {"rounds": {"count": arm.rounds, "group": "?"}} if arm.rounds is not None else {}
    n = arm.n if arm.n is not None else "?"
    return {"prompt": arm.prompt, **values, "fields": fields or [], **rounds, "n": n}


def _finding(finding: FindingDraft) -> str:
    head = {"id": finding.id, "sub_study": finding.sub_study, "claim": finding.claim}
    tests = [_yaml([_test(test)]) for test in finding.tests]
    body = _indented([_yaml(head, flat=True), *(["tests:", *tests] if tests else ["tests: []"])])
    return f"  -{body[3:]}"


def _test(test: TestDraft) -> dict[str, Any]:
    """The keys in the usual order; undecided ones get a placeholder that no study may contain."""
    given = test.values
    kept: dict[str, Any] = {"id": test.id, "kind": given.get("kind")}
    keys = {key.partition(".")[0] for key, _ in test.open}
    if "groups" in given or "groups" in keys:
        kept["groups"] = given.get("groups", {"column": None, "levels": None})
    kept["measure"] = given.get("measure")
    if "against" in keys:
        kept["against"] = []
    kept["expect"] = given.get("expect")
    if "weight" in given:
        kept["weight"] = given["weight"]
    return {**kept, "human": test.human}


def _yaml(value: Any, *, flat: bool = False) -> str:
    """`flat`: one key per line; otherwise a mapping without nested mappings is on one line."""
    style = False if flat else None
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDEST, default_flow_style=style).rstrip()


def _indented(parts: Iterable[str]) -> str:
    return "\n".join(f"    {line}" if line else line for part in parts for line in part.split("\n"))


def _readme(draft: StudyDraft) -> str:
    people = [f"{arm.name}: {arm.n}" for arm in draft.arms if arm.n is not None]
    by_arm = f"People by arm: {', '.join(people)}." if people else "The source gives no number of people by arm."
    lead = f"A draft of a study for karat, made by `karat import humanstudy` from the folder `{_inline(draft.folder)}`."
    return "\n\n".join(
        [
            f"# {_inline(draft.title or draft.name)}",
            _inline(draft.source or "The source names no paper."),
            f"{lead} {_NEXT}",
            "## Words",
            _WORDS,
            "## Licence",
            _LICENCES,
            "## Numbers",
            f"Statistics are as the source has them; nothing was corrected. {by_arm}",
            "",
        ]
    )


def _decisions(draft: StudyDraft) -> str:
    left = f"`karat check` refuses the draft until these are decided: {len(draft.open)}."
    parts = [
        f"# {_inline(draft.name)}: what a person must decide",
        f"{left} Sources are files of the folder `{_inline(draft.folder)}`.",
    ]
    general = [entry for entry in draft.open if not entry.place.startswith("findings.")]
    if general:
        parts += ["## The study and its arms", _open_lines(general)]
    if draft.factors:
        parts += ["What was varied, as the source says:", "\n".join(f"* {_inline(one, 300)}" for one in draft.factors)]
    for at, finding in enumerate(draft.findings):
        parts += _decisions_of(finding, at, draft.open)
    titles = {
        "contradiction": "## What contradicts itself", "unreadable": "## What could not be read",
        "left out": "## What is not in the draft", "changed": "## What was changed",
    }  # fmt: skip
    for kind, title in titles.items():
        doubts = [doubt for doubt in draft.doubts if doubt.kind == kind]
        if doubts:
            parts += [title, "\n".join(f"* {_inline(doubt.message)} – {_inline(doubt.source)}" for doubt in doubts)]
    return "\n\n".join(parts) + "\n"


def _decisions_of(finding: FindingDraft, at: int, opened: Sequence[Open]) -> list[str]:
    """One finding: its claim, each test with what is undecided, and the numbers in the source."""
    parts = [f"## {_inline(finding.sub_study)} {_inline(finding.id)}", f"> {_inline(finding.claim or 'no claim')}"]
    own = [entry for entry in opened if entry.place.startswith(f"findings.{at}.") and ".tests." not in entry.place]
    if own:
        parts.append(_open_lines(own))
    for number, test in enumerate(finding.tests):
        result = f": {_inline(test.reported.text, 150)}" if test.reported is not None else ": no statistic"
        parts += [
            f"### {test.id}, {_inline(test.name or 'without a name', 100)}{result}",
            f"In {_inline(test.where)}.",
        ]
        here = f"findings.{at}.tests.{number}."
        mine = [entry for entry in opened if entry.place.startswith(here)]
        parts.append(_open_lines(mine, sources=False) or "Nothing is open.")
    if finding.rows:
        rows = "\n".join(f"* {_inline(line, 300)} – {_inline(where)}" for line, where in finding.rows[:_MOST_ROWS])
        left = len(finding.rows) - _MOST_ROWS
        parts += ["Numbers of people in the source:", rows, *([f"… and {left} rows more."] if left > 0 else [])]
    if finding.nested:
        parts.append("Statistics in its data: " + _inline("; ".join(nested.text for nested in finding.nested), 2000))
    return parts


def _open_lines(opened: Sequence[Open], *, sources: bool = True) -> str:
    return "\n".join(
        f"* [ ] `{entry.place}`: {_inline(entry.question, 300)}" + (f" – {_inline(entry.source)}" if sources else "")
        for entry in opened
    )


def _tables(draft: StudyDraft) -> str:
    parts = [f"# {_inline(draft.name)}: tables of results, as the source has them"]
    for table in draft.tables:
        parts += [f"## {_inline(table.name, 200)}", f"In {_inline(table.where)}."]
        rows = [table.headers, ["---"] * len(table.headers), *table.rows]
        written = (f"| {' | '.join(cell if cell == '---' else _inline(cell, 120) for cell in row)} |" for row in rows)
        parts.append("\n".join(written))
    return "\n\n".join(parts) + "\n"


def _inline(text: str, columns: int = 500) -> str:
    """Foreign text for use within a line of Markdown: on one line, with its own markup escaped."""
    line = excerpt(text, columns)
    for sign in "\\`*_[]<>|#":
        line = line.replace(sign, f"\\{sign}")
    return line


_DOMAINS = ("cognition", "strategic", "social")
_MOST_STUDIES = 100  # in one folder
_SOURCE = "source"


class HumanStudy:
    """A study folder of HumanStudy-Bench, or a folder of several: a draft of `study.yaml` with its materials.

    It reads as much as possible: who took part, what was shown, how it was answered, findings,
    tests, and every published statistic, which is checked against the p, the degrees of freedom
    and the data given with it. Groups, directions and measures are filled in only if the source's
    own words leave a single possibility.
    """

    class Options(BaseModel):
        """What becomes an arm."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        unlisted: bool = False  # also import materials that the study's list of scenarios does not name

    def __init__(self, options: Options) -> None:
        self._options = options

    def drafts(self, path: Path) -> Sequence[Draft]:
        """A draft for each study. Raises BadDataset if no study can be read."""
        try:
            if not path.is_dir():
                message = "is not a folder: a study of HumanStudy-Bench is a folder with ground_truth.json"
                raise BadDataset(str(path), [Fault(place="file", message=message)])
            folder = _study_folder(path)
            below = [] if folder else sorted(child for child in path.iterdir() if child.is_dir())
            folders = [folder] if folder else [place for child in below if (place := _study_folder(child)) is not None]
        except (OSError, ValueError) as error:
            faults = [Fault(place="file", message=f"cannot be read: {unreadable(error)}")]
            raise BadDataset(str(path), faults) from error
        if len(folders) > _MOST_STUDIES:
            message = f"holds {len(folders)} studies; at most {_MOST_STUDIES} are imported at once"
            raise BadDataset(str(path), [Fault(place="file", message=message)])
        return [self._draft(folder) for folder in folders or [path]]

    def _draft(self, folder: Path) -> Draft:
        outer, materials, notes = read_folder(folder)
        draft, reported = _read(folder, outer, materials, notes, unlisted=self._options.unlisted)
        draft.doubts = notes.doubts
        files = files_of(draft)
        if faults := parse(files["study.yaml"].encode(), what="a draft of study.yaml").faults:
            raise BadDataset(str(folder), faults)
        counts = {
            "findings": len(draft.findings),
            "tests": sum(len(finding.tests) for finding in draft.findings),
            "met": len(reported),
            "in data": sum(text.nested for text in reported),
            "parsed": sum(text.found is not None for text in reported),
            "described": sum(text.found is None and bool(text.described) for text in reported),
            "unreadable": sum(not text.read for text in reported),
            "checked": sum(bool(text.checked) for text in reported),
            "contradictory": sum(bool(text.wrong) for text in reported),
        }
        fields = sum(len(arm.fields) for arm in draft.arms)
        typed = sum(answer is not None for arm in draft.arms for answer in arm.fields.values())
        sized = sum(arm.n is not None for arm in draft.arms)
        return Draft(
            name=draft.name, files=files, open=tuple(draft.open), doubts=tuple(draft.doubts),
            counts=counts, notes=((
        f"{plural(len(draft.arms), 'arm')}, {sized} with n; {plural(fields, 'field')}, {typed} with type",
        f"profile: {', '.join(draft.profile) or 'nothing'}",
    )),
        )  # fmt: skip


def _study_folder(folder: Path) -> Path | None:
    """The folder with a study's files: the folder itself, or its `source/`, as in the benchmark's repository."""
    for place in (folder, folder / _SOURCE):
        if (place / "ground_truth.json").is_file() or (place / "materials").is_dir():
            return place
    return None


def _name(folder: Path) -> str:
    """The study's folder; that of `study_007/source` is `study_007`."""
    path = folder.resolve()
    return path.parent.name if path.name == _SOURCE and path.parent.name else path.name


def _read(
    folder: Path, outer: dict[str, Spot], materials: Sequence[Spot], notes: Notes, *, unlisted: bool
) -> tuple[StudyDraft, list[ReportedText]]:
    meta, specification, truth = outer["metadata"], outer["specification"], outer["ground_truth"]
    people = sizes_of(specification, notes)
    arms = arms_of(
        materials, scenarios=meta.get("scenarios"), people=specification.get("participants", "by_sub_study"),
        notes=notes, unlisted=unlisted,
    )  # fmt: skip
    findings = findings_of(truth, arms, people=people, weights=meta.get("findings"), notes=notes)
    title = _agreed("title", [truth, meta, specification], notes)
    factors = []
    for factor in specification.get("design", "factors").items()[:50]:
        levels = [text for level in factor.get("levels").items()[:50] if (text := level.as_text())]
        kind = f" ({kind.lower()})" if (kind := factor.get("type").text()) else ""
        factors.append(f"{factor.get('name').as_text() or 'without a name'}{kind}: {', '.join(levels) or 'no levels'}")
    draft = StudyDraft(
        name=slug(_name(folder)), title=title, source=_source(truth, meta, title, notes),
        domain=_domain(meta), design=_design(specification), factors=factors,
        profile=profile_of(specification, notes), arms=arms, findings=findings,
        folder=excerpt(_name(folder), 80),
    )  # fmt: skip
    reported = [
        *[test.reported for finding in findings for test in finding.tests if test.reported is not None],
        *(nested for finding in findings for nested in finding.nested),
    ]
    _doubt(reported, notes)
    for finding in findings:
        for test in finding.tests:
            if test.reported is None:
                notes.add("unreadable", f"{finding.id} {test.id} has no statistic", test.where)
    draft.open = _open(draft, meta, truth, specification)
    draft.tables = tables_of(truth.get("overall_original_results"), notes)
    return draft, reported


def _agreed(key: str, sources: Sequence[Spot], notes: Notes) -> str | None:
    """What the files say; if they differ, what the first one says, with a note."""
    values = [spot.get(key) for spot in sources if spot.get(key).as_text() is not None]
    texts = [" ".join((spot.as_text() or "").split()) for spot in values]
    for spot, text in zip(values[1:], texts[1:], strict=True):
        if text.casefold() != texts[0].casefold():
            other = f"{key} is '{excerpt(text, 60)}', but {values[0].file} says '{excerpt(texts[0], 60)}'"
            notes.add("contradiction", other, spot.where)
    return texts[0] if texts else None


def _source(truth: Spot, meta: Spot, title: str | None, notes: Notes) -> str | None:
    """`Ross, Greene & House (1977). The title.`, as far as known; None without an author."""
    lists = [[name for author in spot.get("authors").items() if (name := author.text())] for spot in (truth, meta)]
    authors = [" ".join(name.split()) for name in (lists[0] or lists[1])]
    if all(lists) and lists[0] != lists[1]:
        notes.add("contradiction", "authors differ from those in ground_truth.json", meta.get("authors").where)
    year = _agreed("year", [truth, meta], notes)
    if year is None or not re.fullmatch(r"(1[6-9]|20)\d\d", year):
        notes.add("unreadable", "gives no year", truth.get("year").where)
        year = "year unknown"
    if not authors:
        return None
    named = f"{', '.join(authors[:-1])} & {authors[-1]}" if len(authors) > 1 else authors[0]
    return f"{named} ({year})." + (f" {title}" if title else "")


def _domain(meta: Spot) -> str | None:
    domain = (meta.get("domain").text() or "").lower()
    return domain if domain in _DOMAINS else None


def _design(specification: Spot) -> str | None:
    """Between or within subjects; None if the source says neither, or both."""
    design = slug(specification.get("design", "type").text() or "")
    return {"between_subjects": "between", "within_subjects": "within"}.get(design)


def _open(draft: StudyDraft, meta: Spot, truth: Spot, specification: Spot) -> list[Open]:
    """Everything that is undecided, in the order of the draft."""
    undecided = []
    if draft.title is None:
        undecided.append(Open(place="title", question="what the study is called", source=truth.where))
    if draft.source is None:
        undecided.append(Open(place="source", question="authors, year and title of the paper", source=truth.where))
    if draft.domain is None:
        words = [meta.get(key).text() for key in ("domain", "subdomain")]
        given = excerpt(", ".join(word for word in words if word), 80) or "nothing"
        question = f"cognition, strategic or social; the source says {given}"
        undecided.append(Open(place="domain", question=question, source=meta.get("domain").where))
    if draft.design is None:
        given = excerpt(specification.get("design", "type").text() or "nothing", 60)
        question = f"between: each person is in one arm; within: in all of them; the source says {given}"
        undecided.append(Open(place="design", question=question, source=specification.get("design").where))
    if not draft.arms:
        undecided.append(Open(place="arms", question="what participants are shown", source="materials"))
    undecided += [entry for arm in draft.arms for entry in arm.open]
    if not draft.findings:
        undecided.append(Open(place="findings", question="what the study found", source=truth.where))
    return undecided + [entry for at, finding in enumerate(draft.findings) for entry in finding.open(at)]


def _doubt(reported: Sequence[ReportedText], notes: Notes) -> None:
    for text in reported:
        quoted = excerpt(text.text, 100)
        if not text.read:
            notes.add("unreadable", f"'{quoted}' {text.why}", text.where)
        for wrong in text.wrong:
            notes.add("contradiction", f"'{quoted}': {wrong}", text.where)
