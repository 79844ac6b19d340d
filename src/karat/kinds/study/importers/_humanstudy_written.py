"""A draft as files: study.yaml with what is open left open, materials, and pages for people with everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from karat.formats import excerpt
from karat.importers import Doubt, Open
from karat.kinds.study.importers._humanstudy_arms import ArmDraft
from karat.kinds.study.importers._humanstudy_tables import Table
from karat.kinds.study.importers._humanstudy_tests import FindingDraft, TestDraft

__all__ = ["StudyDraft", "files_of"]

_WIDEST = 120
_MOST_ROWS = 100  # of numbers, a finding; the source has them all
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


@dataclass(kw_only=True, slots=True)
class StudyDraft:
    """Everything that was read."""

    name: str
    title: str | None
    source: str | None
    domain: str | None
    profile: dict[str, Any]
    arms: list[ArmDraft]
    findings: list[FindingDraft]
    design: str | None  # between or within
    factors: list[str]  # what the source says was varied, for people
    folder: str  # the source's, as it is called
    tables: list[Table] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)


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
    """The keys in the order in which studies are written; open ones with what no study may hold."""
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
    """`flat`: a key a line; otherwise what holds no further mappings stands on one."""
    style = False if flat else None
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDEST, default_flow_style=style).rstrip()


def _indented(parts: Iterable[str]) -> str:
    return "\n".join(f"    {line}" if line else line for part in parts for line in part.split("\n"))


def _readme(draft: StudyDraft) -> str:
    people = [f"{arm.name}: {arm.n}" for arm in draft.arms if arm.n is not None]
    by_arm = f"People by arm: {', '.join(people)}." if people else "The source gives no number of people by arm."
    made = f"A draft of a study for karat, made by `karat import humanstudy` from the folder `{_inline(draft.folder)}`."
    return "\n\n".join(
        [
            f"# {_inline(draft.title or draft.name)}",
            _inline(draft.source or "The source names no paper."),
            f"{made} {_NEXT}",
            "## Words",
            _WORDS,
            "## Licence",
            _LICENCES,
            "## Numbers",
            f"Statistics are as the source has them; nothing was mended. {by_arm}",
            "",
        ]
    )


def _decisions(draft: StudyDraft) -> str:
    left = f"`karat check` refuses the draft until these are decided: {len(draft.open)}."
    parts = [
        f"# {_inline(draft.name)}: what a person must decide",
        f"{left} Sources are files of the folder `{_inline(draft.folder)}`.",
    ]
    general = [one for one in draft.open if not one.place.startswith("findings.")]
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
        doubts = [one for one in draft.doubts if one.kind == kind]
        if doubts:
            parts += [title, "\n".join(f"* {_inline(one.message)} – {_inline(one.source)}" for one in doubts)]
    return "\n\n".join(parts) + "\n"


def _decisions_of(finding: FindingDraft, at: int, opened: Sequence[Open]) -> list[str]:
    """One finding: its claim, each test with what is open, and the numbers that the source has."""
    parts = [f"## {_inline(finding.sub_study)} {_inline(finding.id)}", f"> {_inline(finding.claim or 'no claim')}"]
    own = [one for one in opened if one.place.startswith(f"findings.{at}.") and ".tests." not in one.place]
    if own:
        parts.append(_open_lines(own))
    for number, test in enumerate(finding.tests):
        told = f": {_inline(test.said.text, 150)}" if test.said is not None else ": no statistic"
        parts += [f"### {test.id}, {_inline(test.name or 'without a name', 100)}{told}", f"In {_inline(test.where)}."]
        here = f"findings.{at}.tests.{number}."
        mine = [one for one in opened if one.place.startswith(here)]
        parts.append(_open_lines(mine, sources=False) or "Nothing is open.")
    if finding.rows:
        rows = "\n".join(f"* {_inline(told, 300)} – {_inline(where)}" for told, where in finding.rows[:_MOST_ROWS])
        left = len(finding.rows) - _MOST_ROWS
        parts += ["Numbers of people in the source:", rows, *([f"… and {left} rows more."] if left > 0 else [])]
    if finding.nested:
        parts.append("Statistics in its data: " + _inline("; ".join(one.text for one in finding.nested), 2000))
    return parts


def _open_lines(opened: Sequence[Open], *, sources: bool = True) -> str:
    return "\n".join(
        f"* [ ] `{one.place}`: {_inline(one.question, 300)}" + (f" – {_inline(one.source)}" if sources else "")
        for one in opened
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
    """Foreign text within a line of Markdown: on one line, and no markup of its own."""
    line = excerpt(text, columns)
    for sign in "\\`*_[]<>|#":
        line = line.replace(sign, f"\\{sign}")
    return line
