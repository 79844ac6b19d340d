"""Reads one folder with a `study.yaml`, or several, in the wording asked for; reports every fault
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
import pydantic

from karat.documents.nodes import Node, Place, fault_at, plain
from karat.documents.reader import MAX_BYTES, parse
from karat.documents.rows import read_rows
from karat.documents.validation import explain, shown
from karat.errors import BadDataset, Fault, did_you_mean, unreadable
from karat.files import open_regular
from karat_studies.kinds.study.format import (
    Answered,
    Arm,
    Finding,
    Participants,
    Relabelled,
    Rounds,
    StudyDraft,
    StudyFile,
    Test,
)

WORDING = "relabelled"
"""The wording of relabelled materials: `gain.relabelled.md` instead of `gain.md`, if it exists."""


def changes(arm: Arm) -> bool:
    """Whether the arm, or a task of it, has other amounts."""
    return arm.relabel is not None or any(task.relabel is not None for task in arm.tasks or ())


def relabelled(arm: Arm) -> Arm:
    """The arm with its relabelled values and fields; answers on another scale are divided before
    they are counted.
    """
    own = arm.relabel or Relabelled()
    tasks = None
    if arm.tasks is not None:
        tasks = []
        for task in arm.tasks:
            more = task.relabel or Relabelled()
            fields = _fields(task.fields, {**own.fields, **more.fields})
            values = {**task.values, **more.values}
            tasks.append(task.model_copy(update={"values": values, "fields": fields}))

    rounds = arm.rounds
    if rounds is not None:
        rounds = rounds.model_copy(update={"fields": _fields(rounds.fields, own.fields)})
    return arm.model_copy(
        update={
            "values": {**arm.values, **own.values},
            "fields": _fields(arm.fields, own.fields),
            "tasks": tasks,
            "rounds": rounds,
        }
    )


def _fields(
    fields: Mapping[str, Answered] | None, others: Mapping[str, Answered]
) -> dict[str, Answered] | None:
    if fields is None:
        return None
    return {name: others.get(name, field) for name, field in fields.items()}


def wordings_of(study: StudyFile) -> tuple[str, ...]:
    """The values that `dataset.wording` may have. Sorted."""
    return wordings(study.folder / prompt for prompt in study.materials)


def wordings(materials: Iterable[Path]) -> tuple[str, ...]:
    """The wordings that any of these files has: `plain` if `gain.plain.md` lies beside `gain.md`.

    Sorted.
    """
    listings: dict[Path, list[str]] = {}
    names: set[str] = set()
    for file in materials:
        if file.parent not in listings:
            if file.parent.is_dir():
                listings[file.parent] = [entry.name for entry in file.parent.iterdir()]
            else:
                listings[file.parent] = []

        for name in listings[file.parent]:
            wording = name.removeprefix(f"{file.stem}.").removesuffix(file.suffix)
            if name == f"{file.stem}.{wording}{file.suffix}" and "." not in wording:
                names.add(wording)

    return tuple(sorted(names - {WORDING}))


def has_relabelled(study: StudyFile) -> bool:
    """Whether `dataset.relabel` changes anything that participants see."""
    if any(changes(arm) for arm in study.arms.values()):
        return True
    files = [study.folder / prompt for prompt in study.materials]
    return any(file.with_suffix(f".{WORDING}{file.suffix}").is_file() for file in files)


Model = TypeVar("Model", bound=pydantic.BaseModel)
_WHERE = "study.yaml"


def read_study(
    path: Path,
    *,
    sql: bool = True,
    wording: str | None = None,
    relabel: bool = False,
) -> StudyFile:
    """The study in a folder, or in a `study.yaml`. Raises BadDataset with every fault.

    `sql=False` skips the check that needs a separate process: whether `derive` is SQL that gives
    the columns the tests name. `wording`: use `gain.WORDING.md` instead of `gain.md`, if it exists.
    `relabel`: use the study's other names and amounts, if it has any.
    """
    try:
        if path.is_dir():
            path = path / _WHERE
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        message = f"cannot be read: {unreadable(error)}; a study is a folder with a {_WHERE}"
        raise BadDataset(str(path), [Fault(place="file", message=message)]) from error

    document = parse(data, what="a study file")
    if document.root is None or not isinstance(document.root.value, dict):
        faults = document.faults or [
            Fault(place="file", message="must be a mapping: study, title, arms, findings, …")
        ]
        raise BadDataset(str(path), faults)

    reader = _Reader(
        root=document.root,
        folder=path.parent,
        wording=WORDING if relabel else wording,
        relabel=relabel,
        faults=list(document.faults),
    )
    return _found(reader, path, data, document.warnings, sql=sql)


def read_kept_study(
    path: Path, data: bytes, *, persons: Iterable[Mapping[str, object]] = ()
) -> StudyFile:
    """A study from a run folder, for analysis: without materials, and without running its SQL.

    `persons`: placeholders for listed persons. Everything else is checked as in a file. Raises
    BadDataset.
    """
    document = parse(data, what="a study file")
    if document.root is None or not isinstance(document.root.value, dict):
        raise BadDataset(str(path), document.faults or [Fault(place="file", message="is empty")])
    kept = tuple(dict(person) for person in persons)
    reader = _Reader(
        root=document.root,
        folder=path.parent,
        kept=kept,
        faults=list(document.faults),
    )
    return _found(reader, path, data, document.warnings, sql=False)


def _found(
    reader: _Reader,
    path: Path,
    data: bytes,
    warnings: Iterable[str],
    *,
    sql: bool,
) -> StudyFile:
    study = reader.study(path, data, warnings, sql=sql)
    if reader.faults or study is None:
        ordered = sorted(dict.fromkeys(reader.faults), key=lambda fault: fault.line or 0)
        raise BadDataset(str(path), ordered)

    return study


class _Reader(msgspec.Struct):
    """Turns the parsed tree into a study and notes faults with their lines."""

    root: Node
    folder: Path
    wording: str | None = None
    relabel: bool = False
    # persons of a run folder, which has no materials
    kept: tuple[dict[str, Any], ...] | None = None
    reworded: int = 0  # number of materials that have this wording
    faults: list[Fault] = []

    def study(
        self,
        path: Path,
        data: bytes,
        warnings: Iterable[str],
        *,
        sql: bool,
    ) -> StudyFile | None:
        """The study; None if its parts cannot be put together. Faults are noted either way."""
        values = plain(self.root)
        draft = self.part(StudyDraft, values, ())
        participants = self.part(Participants, values.get("participants", {}), ("participants",))
        if values.get("rounds") is not None:
            rounds = self.part(Rounds, values["rounds"], ("rounds",))
        else:
            rounds = None

        raw_arms = values.get("arms")
        if not isinstance(raw_arms, Mapping):
            raw_arms = {}

        arms = {name: self.part(Arm, raw, ("arms", name)) for name, raw in raw_arms.items()}
        good = {}
        for name, arm in arms.items():
            if arm is not None:
                if rounds is None or arm.rounds is not None:
                    good[name] = arm
                else:
                    good[name] = arm.model_copy(update={"rounds": rounds})

        others = self.relabel and any(changes(arm) for arm in good.values())
        if others:
            good = {name: relabelled(arm) for name, arm in good.items()}
        findings = [
            self.part(Finding, raw, ("findings", at))
            for at, raw in enumerate(_listed(values.get("findings")))
        ]
        materials = self._materials(good)
        persons, persons_digest = self._persons(participants)
        digest = sha256(data + b"relabelled" * others)
        for text in [*(text for _, text in sorted(materials.items())), persons_digest]:
            digest.update(len(text).to_bytes(8, "big") + text.encode("utf-8", "surrogatepass"))
        top = draft or StudyDraft.model_construct(**{"derive": "", **_texts(values)})
        study = StudyFile(
            study=top.study,
            title=top.title,
            source=top.source,
            domain=top.domain,
            path=path,
            sha256=digest.hexdigest(),
            participants=participants or Participants(),
            design=top.design,
            arms=good,
            order=top.order,
            derive=top.derive,
            findings=tuple(finding for finding in findings if finding is not None),
            min_coverage=top.min_coverage,
            license=top.license,
            caveat=top.caveat,
            reducer=top.reducer,
            materials=materials,
            persons=persons,
            warnings=tuple(warnings),
            data=data,
            relabel=self.relabel,
            wording=None if self.relabel else self.wording,
        )
        complete = draft is not None and len(good) == len(arms) and participants is not None
        tests = self._readable_tests(values)
        # imports NumPy, which runs of other kinds do not need
        from karat_studies.kinds.study.checks import check

        checked = check(
            study,
            tests,
            node=self.root,
            whole=complete,
            sql=sql and complete,
            arms=tuple(arms),
        )
        self.faults += checked.faults
        if not complete or len(findings) > len(study.findings):
            return None
        return replace(study, warnings=(*study.warnings, *checked.notes))

    def part(self, model: type[Model], values: object, place: Place) -> Model | None:
        """One part of the file; None if it is wrong, with the faults noted."""
        if not isinstance(values, Mapping):
            self.fault(place, f"must be a mapping, got {shown(values)}")
            return None

        try:
            return model.model_validate(values)
        except pydantic.ValidationError as error:
            for problem in explain(error, values, model):
                self.fault((*place, *problem.place), problem.message)

        return None

    def _readable_tests(self, values: Mapping[str, object]) -> list[tuple[Place, Test]]:
        """Every readable test with its place, also in findings that are not readable.

        Notes no fault a second time.
        """
        quiet = _Reader(root=self.root, folder=self.folder)
        readable: list[tuple[Place, Test]] = []
        for at, finding in enumerate(_listed(values.get("findings"))):
            if isinstance(finding, Mapping):
                tests = finding.get("tests")
            else:
                tests = None

            for number, raw in enumerate(_listed(tests)):
                place = ("findings", at, "tests", number)
                before = len(quiet.faults)
                if isinstance(raw, Mapping):
                    test = quiet.part(Test, raw, place)
                else:
                    test = None

                if test is not None and len(quiet.faults) == before:
                    readable.append((place, test))

        return readable

    def fault(self, place: Place, message: str) -> None:
        """Notes a fault with the line of the value, or of its nearest parent."""
        self.faults.append(fault_at(self.root, place, message))

    def _materials(self, arms: Mapping[str, Arm]) -> dict[str, str]:
        texts: dict[str, str] = {}
        if self.kept is not None:
            return texts
        for name, arm in arms.items():
            named: list[tuple[Place, str | None]] = [(("prompt",), arm.prompt)]
            if arm.rounds is not None:
                named.append((("rounds", "prompt"), arm.rounds.prompt))
                named.append((("rounds", "first"), arm.rounds.first))
                for role, one in arm.roles.items():
                    named.append((("rounds", "roles", role, "prompt"), one.prompt))
                    named.append((("rounds", "roles", role, "first"), one.first))

            for at, task in enumerate(arm.tasks or ()):
                named.append((("tasks", at, "prompt"), task.prompt))
            for place, prompt in named:
                if prompt is None or prompt in texts:
                    continue
                text = self._material(("arms", name, *place), prompt)
                if text is not None:
                    texts[prompt] = text

        if self.relabel and not self.reworded and not any(changes(arm) for arm in arms.values()):
            message = (
                f"the study has no other names and amounts: no `relabel:`, no material such as "
                f"gain.{WORDING}.md"
            )
            self.fault(("relabel",), message)
        elif self.wording is not None and texts and not self.reworded and not self.relabel:
            hint = did_you_mean(self.wording, wordings(self.folder / prompt for prompt in texts))
            self.fault(
                ("wording",),
                f"no material has the wording '{self.wording}', as gain.{self.wording}.md{hint}",
            )

        return texts

    def _material(self, place: Place, prompt: str) -> str | None:
        file = self.folder / prompt
        if _leads_out(prompt):
            self.fault(place, f"'{prompt}' is outside the study's folder")
            return None

        if self.wording is not None:
            other = file.with_suffix(f".{self.wording}{file.suffix}")
        else:
            other = file

        try:
            if other != file and other.is_file():
                file, self.reworded = other, self.reworded + 1
            with open_regular(file, at_most=MAX_BYTES) as opened:
                text = opened.read().decode("utf-8-sig")
        except FileNotFoundError:
            there = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.md")]
            self.fault(place, f"there is no file '{prompt}'{did_you_mean(prompt, there)}")
        except (OSError, ValueError) as error:  # not UTF-8, or a null character in the name
            self.fault(place, f"'{prompt}' cannot be read: {error}")
        else:
            if text.strip():
                return text
            self.fault(place, f"'{prompt}' is empty")

        return None

    def _persons(
        self, participants: Participants | None
    ) -> tuple[tuple[dict[str, object], ...], str]:
        if participants is None or participants.given is None:
            return (), ""
        if self.kept is not None:
            return self.kept, ""
        place: Place = ("participants", "given")
        if _leads_out(participants.given):
            self.fault(place, f"'{participants.given}' is outside the study's folder")
            return (), ""

        try:
            rows = read_rows(self.folder / participants.given)
        except BadDataset as bad:
            self.fault(place, "; ".join(str(fault) for fault in bad.faults))
            return (), ""

        for fault in rows.faults:
            self.fault(place, str(fault))
        return tuple(dict(row) for _, row in rows.rows), rows.sha256


def _leads_out(path: str) -> bool:
    return PurePath(path).is_absolute() or ".." in PurePath(path).parts


def _listed(values: object) -> list[object]:
    if isinstance(values, list):
        return list(values)
    return []


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level texts of a file whose top level is wrong; anything else is empty."""
    known = {name: values.get(name) for name in StudyDraft.model_fields}
    return {name: value if isinstance(value, str) else "" for name, value in known.items()} | {
        "min_coverage": 0.5,
        "reducer": None,
    }


_AT_ONCE = 4  # most of the time goes to a process for each study's SQL


def read_studies(
    files: Sequence[Path],
    *,
    folder: Path,
    sql: bool = True,
    wording: str | None = None,
    relabel: bool = False,
) -> list[StudyFile]:
    """The studies, in the order of the files. Raises BadDataset with every fault in any of them.

    `folder`: the folder above the study folders; the place of a fault begins with its study's
    folder.
    """

    def read(file: Path) -> StudyFile | BadDataset:
        try:
            return read_study(file, sql=sql, wording=wording, relabel=relabel)
        except BadDataset as bad:
            return bad

    if len(files) == 1 and files[0] == folder:
        return [read_study(files[0], sql=sql, wording=wording, relabel=relabel)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(read, files))
    if relabel:
        form = "relabel"
    elif wording is not None:
        form = "wording"
    else:
        form = None

    faults = [
        Fault(place=f"{file.parent.name}: {fault.place}", message=fault.message, line=fault.line)
        for file, result in zip(files, results, strict=True)
        if isinstance(result, BadDataset)
        for fault in result.faults
        if fault.place != form
    ]
    studies = [study for study in results if isinstance(study, StudyFile)]
    if form is not None:
        faults += _without_form(files, results, form=form, wording=wording)
    # Sample ids begin with the study's name, so names must differ
    seen: dict[str, str] = {}
    for study in studies:
        name = study.path.parent.name
        first = seen.setdefault(study.study, name)
        if first != name:
            message = f"is called '{study.study}', like the study in '{first}'"
            faults.append(Fault(place=f"{name}: study", message=message))

    if faults:
        raise BadDataset(str(folder), faults)
    return studies


def _without_form(
    files: Sequence[Path],
    results: Sequence[StudyFile | BadDataset],
    *,
    form: str,
    wording: str | None,
) -> Iterator[Fault]:
    """One fault that says which studies lack the requested form, and how to choose the others."""
    lacking = []
    for read in results:
        lacking.append(
            isinstance(read, BadDataset) and any(fault.place == form for fault in read.faults)
        )

    if not any(lacking):
        return
    if form == "relabel":
        lack = "no other names and amounts"
    else:
        lack = f"no wording '{wording}'"

    if all(lacking):
        known = (
            {name for file in files for name in wordings(file.parent.rglob("*.md"))}
            if wording is not None
            else ()
        )
        if wording is not None:
            hint = did_you_mean(wording, known)
        else:
            hint = ""

        yield Fault(place=form, message=f"{lack} in any of the {len(files)} studies{hint}")
        return

    without, having = (
        [file.parent.name for file, missing in zip(files, lacking, strict=True) if missing is lacks]
        for lacks in (True, False)
    )
    message = f"{lack} in {len(without)} of {len(files)} studies: {', '.join(without)}"
    yield Fault(
        place=form,
        message=f"{message}; those that have some can be chosen: `studies: [{', '.join(having)}]`",
    )
