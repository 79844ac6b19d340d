"""Finds a study by path or name, and chooses the studies, arms and findings of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat.documents.reader import MAX_BYTES, parse
from karat.errors import BadOption, did_you_mean
from karat.files import open_regular
from karat.formats import excerpt

if TYPE_CHECKING:
    from karat_studies.kinds.study.format import StudyFile

WHERE = "study.yaml"
_OURS = {"study", "arms", "findings", "participants", "derive", "domain"}
_THEIRS = {"dataset", "agent", "conditions", "judge", "execution", "scorers"}

SHIPPED = "shipped"
"""The name that stands for all studies that come with karat."""


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A `study.yaml`, or a folder of study folders; and notes on the choice for the user."""

    path: Path
    notes: tuple[str, ...] = ()


def is_study(folder: Path) -> bool:
    """Whether a folder is that of one study."""
    try:
        return (folder / WHERE).is_file()
    except OSError:  # no permission to look into the folder
        return False


def studies_below(folder: Path) -> list[Path]:
    """The `study.yaml` of every folder in this one, sorted by name."""
    try:
        return sorted(
            child / WHERE for child in folder.iterdir() if child.is_dir() and is_study(child)
        )
    except OSError:
        return []


def locate(text: str, *, folders: Sequence[Path]) -> Located:
    """The study or studies that a text names: looked for in each folder in turn, then among karat's
    own.

    Raises BadOption with where it was looked for and the nearest name.
    """
    if not text.strip() or "\0" in text:
        raise BadOption(
            "dataset.path",
            f"must be a study: a {WHERE}, a folder with one, or a name from `karat list studies`",
        )

    shipped = {**shipped_studies(), SHIPPED: Path(__file__).parent / "studies"}
    try:
        here = [path for folder in folders if (path := _there(folder / text)) is not None]
    except OSError as error:  # a name that is too long
        raise BadOption(
            "dataset.path", f"'{excerpt(text, 60)}' cannot be looked for: {error.strerror}"
        ) from error

    if here:
        notes: list[str] = []
        if text in shipped:
            notes.append(
                f"'{text}' is here and is also the name of something that comes with karat; the "
                f"one here is used"
            )

        if any(not here[0].samefile(other) for other in here[1:]):
            notes.append(
                f"'{text}' is in the working directory and in the experiment's folder; the "
                f"first is used"
            )

        return Located(path=here[0], notes=tuple(notes))

    if text in shipped:
        return Located(path=shipped[text])

    near = next((folder / text for folder in folders if (folder / text).exists()), None)
    if near is not None and near.is_dir():
        missing = f"'{text}' is a folder without a {WHERE}, and no folder in it has one"
    elif near is not None:
        missing = f"'{text}' is not a regular file (but a device or a pipe); name a {WHERE}"
    else:
        beside = set()  # study files and folders with studies
        for folder in folders:
            with suppress(OSError):
                for entry in (folder / text).parent.iterdir():
                    if entry.suffix in {".yaml", ".yml"} or _there(entry) is not None:
                        beside.add(entry.name)

        hint = did_you_mean(Path(text).name, {*shipped, *beside}, listing=False)
        where = " or ".join(
            dict.fromkeys(
                "the working directory" if folder == Path.cwd() else "the experiment's folder"
                for folder in folders
            )
        )
        missing = (
            f"there is no file or folder '{text}' in {where}, and no study of that name comes with "
            f"karat{hint}"
        )

    raise BadOption("dataset.path", missing)


def study_of(path: Path) -> Path | None:
    """The study, or folder of studies, that a path or a shipped name means; None if it means
    neither.
    """
    if path.is_file() and path.name != WHERE:
        return path if reads_as(path) == "study" else None
    try:
        return locate(str(path), folders=[Path.cwd()]).path
    except BadOption:
        return None


def reads_as(path: Path) -> str:
    """`study` or `experiment`, judged by the keys of a file; "" if it has keys of neither, or is
    not YAML.
    """
    if path.suffix not in {".yaml", ".yml"}:
        return ""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return ""

    root = parse(data).root
    if root is not None and isinstance(root.value, dict):
        keys = set(root.value)
    else:
        keys = set()

    ours = len(keys & _OURS)
    theirs = len(keys & _THEIRS)
    if ours > theirs:
        return "study"
    if theirs:
        return "experiment"
    return ""


def _there(path: Path) -> Path | None:
    """The file or folder to read; None if there is no study."""
    if path.is_file():
        return path
    if is_study(path):
        return path / WHERE
    return path if studies_below(path) else None


def shipped_studies() -> dict[str, Path]:
    """The studies that come with karat: name → `study.yaml`, sorted by name."""
    files = (Path(__file__).parent / "studies").glob("*/study.yaml")
    return {path.parent.name: path for path in sorted(files)}


def chosen_folders(names: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The folders that `studies` names, in folder order; all of them if it names none.

    Raises BadOption.
    """
    _check("dataset.studies", asked, names, "there is no study")
    return [name for name in names if name in asked or not asked]


def chosen_arms(
    study: StudyFile, *, arms: Collection[str] = (), findings: Collection[str] = ()
) -> list[str]:
    """The arms to run, in file order. Raises BadOption for names that the study does not have.

    `findings` are named by id, or as `sub_study/id` if an id occurs twice; either may be
    prefixed with the name of the study.
    """
    arms = [_own(study, name, study.arms) for name in arms]
    known = _finding_names(study)
    findings = [_own(study, name, known) for name in findings]
    _check("dataset.arms", arms, study.arms)
    _check("dataset.findings", findings, known)
    chosen = _chosen(study, arms, findings)
    if not chosen:
        raise BadOption("dataset.findings", "none of the chosen arms is needed by these findings")
    return chosen


def chosen_of_several(
    studies: Sequence[StudyFile], *, arms: Collection[str] = (), findings: Collection[str] = ()
) -> dict[str, list[str]]:
    """The arms of each study that has any to run. Names are `study/arm`, `study/finding` or
    `study/sub_study/finding`.

    If only parts of other studies are named, a study is not run. Raises BadOption.
    """
    none = "no study that is run has"
    _check(
        "dataset.arms",
        arms,
        [f"{study.study}/{name}" for study in studies for name in study.arms],
        none,
    )
    known = [f"{study.study}/{name}" for study in studies for name in _finding_names(study)]
    _check("dataset.findings", findings, known, none)
    chosen = {}
    for study in studies:
        own_arms = _below(study, arms)
        own_findings = _below(study, findings)
        if (arms and not own_arms) or (findings and not own_findings):
            continue
        chosen[study.study] = _chosen(study, own_arms, own_findings)

    chosen = {name: some for name, some in chosen.items() if some}
    if not chosen:
        raise BadOption("dataset.findings", "none of the chosen arms is needed by these findings")
    return chosen


def _chosen(study: StudyFile, arms: Collection[str], findings: Collection[str]) -> list[str]:
    chosen = set(arms or study.arms)
    if findings:
        # imports NumPy, which asking does not need
        from karat_studies.kinds.study.experiments import arms_of_finding

        asked = []
        for one in study.findings:
            if {one.id, f"{one.sub_study}/{one.id}"} & set(findings):
                asked.append(one)

        chosen &= {arm for finding in asked for arm in arms_of_finding(study, finding)}

    return [name for name in study.arms if name in chosen]


def _finding_names(study: StudyFile) -> list[str]:
    names = []
    for finding in study.findings:
        names.append(finding.id)
        if finding.sub_study:
            names.append(f"{finding.sub_study}/{finding.id}")

    return names


def _own(study: StudyFile, name: str, known: Collection[str]) -> str:
    """The name without the study's name before it, unless the study has something of the full
    name.
    """
    if name in known:
        return name
    return name.removeprefix(f"{study.study}/")


def _below(study: StudyFile, names: Iterable[str]) -> list[str]:
    found = []
    for name in names:
        if name.startswith(f"{study.study}/"):
            found.append(name.removeprefix(f"{study.study}/"))

    return found


def _check(
    option: str,
    asked: Iterable[str],
    known: Collection[str],
    message: str = "the study has no",
) -> None:
    for name in asked:
        if name not in known:
            raise BadOption(option, f"{message} '{name}'{did_you_mean(name, known)}")


def asked_study(path: Path) -> Path | None:
    """The study or folder of studies given to `karat check`; None: an experiment file.

    Raises BadOption for a name that is neither a file nor a study.
    """
    study = study_of(path)
    if study is None and not path.exists() and path.suffix not in {".yaml", ".yml"}:
        try:
            locate(str(path), folders=[Path.cwd()])
        except BadOption as bad:
            raise BadOption("FILE", str(bad).removeprefix(f"{bad.option}: ")) from bad

    return study
