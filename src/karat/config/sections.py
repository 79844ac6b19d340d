"""Name and version, dataset, scorers and execution of an experiment file: one function a section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat import plugins
from karat.config.model import DatasetSpec, Execution, PriceModel
from karat.config.reader import Reader
from karat.documents.nodes import Node, plain
from karat.errors import BadOption, BadPlugin, MissingExtra, UnknownPlugin, did_you_mean, unreadable
from karat.formats import excerpt
from karat.kinds import shipped_studies
from karat.models import Price
from karat.records import ScorerSpec

__all__ = ["DatasetPart", "ScorerPart", "dataset", "execution", "identity", "named_secrets", "prices", "scorers"]


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """The dataset, and whether its answers need a judge."""

    spec: DatasetSpec
    written: str  # the path as the file gives it
    plugin: type[Any]
    judged: bool
    scorer: str | None = None  # what scores it where the file names no scorer


@dataclass(frozen=True, slots=True)
class ScorerPart:
    """A scorer, and its options with secrets as ${NAME}."""

    spec: ScorerSpec
    shown: dict[str, Any]
    place: str  # of its type
    judge: bool  # it stands under `judge:`


def identity(read: Reader, default_name: str) -> tuple[str, str]:
    """Name and version."""
    name = _text_or_number(read, "name", default_name, "support-kb")
    if "/" in name or not name.isprintable():
        read.fault("name", "must not hold a '/' or a line break, because files are called after it")
    return name.strip(), _text_or_number(read, "version", "1", '"1.2"')


def _text_or_number(read: Reader, place: str, default: str, example: str) -> str:
    node = read.root.get(place)
    if node is None or node.value is None:
        return default
    if isinstance(node.value, (str, int, float)) and not isinstance(node.value, bool):
        # As written: version 1.10 is not version 1.1.
        text = node.value if isinstance(node.value, str) else node.written or str(node.value)
        if text.strip():
            return text
    read.fault(place, f"must be text, e.g. {example}")
    return default


def dataset(read: Reader) -> DatasetPart | None:
    """Which file, read how."""
    example = "dataset: {path: questions.jsonl}"
    if not read.required("dataset", example=example):
        return None
    values = {key: plain(node) for key, node in read.mapping("dataset", example=example).items()}
    if not values:
        return None
    # A misspelt path is one fault, not two.
    misspelt = "path" not in values and did_you_mean("path", values, listing=False)
    text, kind = values.pop("path", None), values.pop("kind", None) or "golden"
    if not isinstance(kind, str):
        read.fault("dataset.kind", "must be the name of a kind of dataset, e.g. golden")
        return None
    plugin = read.plugin("kinds", kind, "dataset.kind")
    path = None if misspelt else _dataset_path(read, text, plugin)
    if plugin is not None:
        values = _known_options(read, plugin, values)
    options = read.options(plugin, values, "dataset") if plugin is not None else None
    if plugin is None or options is None or path is None:
        return None
    node = read.root.get("dataset", "path")
    written = read.shown(node.value if node is not None else "", node)
    spec = DatasetSpec(kind=kind, path=path, options=options)
    scorer = getattr(plugin, "scorer", None)
    return DatasetPart(spec, written, plugin, judged=bool(getattr(plugin, "judged", False)), scorer=scorer)


def _known_options(read: Reader, plugin: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values that the kind of dataset knows; a misspelt `path` or `kind` is compared with these as well."""
    model = plugins.options_model(plugin)
    if model is None or model.model_config.get("extra") != "forbid":
        return values
    known = ["path", "kind", *(field.alias or name for name, field in model.model_fields.items())]
    return {key: values[key] for key in read.known_keys("dataset", values, known)}


def _dataset_path(read: Reader, text: Any, plugin: type[Any] | None) -> Path | None:
    located = getattr(plugin, "locate", None)
    if located is not None and isinstance(text, str):
        return _located(read, text, located)
    if not isinstance(text, str) or not text or "\0" in text:
        what = (
            "is required" if text is None else "must be one path or name" if located else "must be the path of a file"
        )
        read.fault("dataset.path", f"{what}, e.g. {'framing' if located else 'questions.jsonl'}")
        return None
    return _file(read, text)


def _located(read: Reader, text: str, locate: Callable[[str, Sequence[Path]], Any]) -> Path | None:
    """What a kind of dataset with places of its own finds under the path."""
    try:
        found = locate(text, list(dict.fromkeys([Path.cwd(), read.folder])))
    except BadOption as bad:
        read.fault("dataset.path", str(bad).removeprefix(f"{bad.option}: "))
        return None
    for note in found.notes:
        read.warn("dataset.path", note)
    path: Path = found.path.absolute()
    return path


def _file(read: Reader, text: str) -> Path | None:
    try:
        return _existing_file(read, text)
    except OSError as error:  # a name that is too long
        read.fault("dataset.path", f"'{excerpt(text, 60)}' cannot be read: {unreadable(error)}")
        return None


def _existing_file(read: Reader, text: str) -> Path | None:
    here, beside = Path(text).absolute(), read.folder / text
    if here.is_file():
        if beside.is_file() and not here.samefile(beside):
            message = f"'{text}' is in the working directory and in the experiment's folder; the first is used"
            read.warn("dataset.path", message)
        return here
    if beside.is_file():
        return beside
    if here.is_dir() or beside.is_dir():
        folder = here if here.is_dir() else beside
        holds = any((one / "study.yaml").is_file() for one in (folder, *folder.glob("*/")))
        hint = "holds a study: write `kind: study`" if holds else "is a folder; name the file in it"
        read.fault("dataset.path", f"'{text}' {hint}")
        return None
    if here.exists() or beside.exists():
        read.fault("dataset.path", f"'{text}' is not a regular file (but a device or a pipe); name a file of samples")
        return None
    where = "the working directory" + (" or the experiment's folder" if read.folder != Path.cwd() else "")
    near = did_you_mean(here.name, [*_files(beside.parent), *_files(here.parent)], listing=False)
    study = "; a study of that name comes with karat: `kind: study`" if text in shipped_studies() else ""
    read.fault("dataset.path", f"there is no file '{text}' in {where}{near}{study}")
    return None


def _files(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []


def scorers(read: Reader, part: DatasetPart | None) -> list[ScorerPart]:
    """The kind of dataset's own where the file names none; the judge, then what `scorers:` lists."""
    listed = read.root.get("scorers")
    none_listed = listed is None or listed.value is None
    found = [_judge(read, needed=_judged(read, part) and none_listed)]
    if part is not None and part.scorer is not None and none_listed:
        found.insert(0, _scorer(read, part.scorer, part.scorer, {}, _Where("scorers.0", "scorers.0", None)))
    if listed is not None and isinstance(listed.value, list):
        found += [_listed_scorer(read, index, node) for index, node in enumerate(listed.value)]
    elif listed is not None and listed.value is not None:
        read.fault("scorers", "must be a list, e.g. `scorers: [equals, {regex: {pattern: '^yes'}}]`")
    good = [one for one in found if one is not None]
    for index, one in enumerate(good):
        if any(one.spec.name == other.spec.name for other in good[:index]):
            read.fault(one.place, f"is a second scorer called '{one.spec.name}'; give it a `name` of its own")
    return good


def _judged(read: Reader, part: DatasetPart | None) -> bool:
    """Whether the kind of dataset needs a judge: also of one whose path or options are wrong."""
    if part is not None:
        return part.judged
    kind = read.root.get("dataset", "kind")
    try:
        plugin = plugins.find("kinds", str(kind.value if kind is not None else "golden"), folder=read.folder)
    except (UnknownPlugin, BadPlugin, MissingExtra):
        return True
    return bool(getattr(plugin, "judged", False))


def _judge(read: Reader, *, needed: bool) -> ScorerPart | None:
    node = read.root.get("judge")
    if node is None or node.value is None:
        if needed:
            read.fault(
                "judge",
                "is required for golden answers: `judge: {model: anthropic:claude-opus-4-5}`, "
                "`judge: {type: overlap}` for the offline one, or `scorers: [equals]` to do without",
            )
        return None
    if not isinstance(node.value, dict):
        read.mapping("judge", example="judge: {type: overlap}")
        return None
    values = plain(node)
    kind = values.pop("type", None) or "judge"
    return _scorer(read, kind, "judge", values, _Where("judge", "judge.type", node, judge=True))


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a scorer stands: its options, its type, and the node of its options."""

    options: str
    kind: str
    node: Node | None
    judge: bool = False


def _listed_scorer(read: Reader, index: int, node: Node) -> ScorerPart | None:
    """`equals`, `regex: {pattern: …}` or `{type: regex, name: has-flag, pattern: …}`."""
    place = f"scorers.{index}"
    value = plain(node)
    if isinstance(value, str):
        return _scorer(read, value, value, {}, _Where(place, place, node))
    if isinstance(value, dict) and "type" in value:
        kind = value.pop("type")
        return _scorer(read, kind, value.pop("name", None) or kind, value, _Where(place, f"{place}.type", node))
    if isinstance(value, dict) and len(value) == 1:
        ((kind, options),) = value.items()
        if isinstance(options, dict) or options is None:
            options = dict(options or {})
            where = _Where(f"{place}.{kind}", place, node.get(kind))
            return _scorer(read, kind, options.pop("name", None) or kind, options, where)
    read.fault(place, "must be a name or a mapping: `equals`, `regex: {pattern: '^yes'}` or `{type: regex, name: …}`")
    return None


def _scorer(read: Reader, kind: Any, name: Any, options: dict[str, Any], where: _Where) -> ScorerPart | None:
    if not isinstance(kind, str):
        read.fault(where.kind, "must be the name of a scorer, e.g. equals")
        return None
    if not isinstance(name, str) or not name.strip():
        read.fault(f"{where.options}.name", "must be text: what the scorer is called in tables")
        return None
    plugin = read.plugin("scorers", kind, where.kind)
    checked = read.options(plugin, options, where.options) if plugin is not None else None
    if plugin is None or checked is None:
        return None
    spec = ScorerSpec(type=kind, name=name, options=checked)
    return ScorerPart(spec, read.shown(checked, where.node), where.kind, where.judge)


def execution(read: Reader) -> Execution:
    """How the run is carried out; the defaults where the section is absent or wrong."""
    found = read.mapping("execution", example="execution: {num_repetitions: 3}")
    values = {key: plain(node) for key, node in found.items() if node.value is not None}
    if read.lenient and "num_samples" in values and "num_repetitions" not in values:
        read.warn("execution.num_samples", "is read as `num_repetitions`, the name that k-eval gave it later")
        values["num_repetitions"] = values.pop("num_samples")
    return read.model(Execution, values, "execution") or Execution()


def prices(read: Reader) -> dict[str, Price]:
    """The prices that the file gives, by model."""
    example = "prices: {openai:my-model: {input: 2.5, output: 10}}"
    found = read.mapping("prices", example=example)
    given = {}
    for model, node in found.items():
        read.mapping(f"prices.{model}", example=example)
        checked = read.model(PriceModel, plain(node), f"prices.{model}") if isinstance(node.value, dict) else None
        if checked is not None:
            given[model] = Price(**checked.model_dump())
    return given


def named_secrets(read: Reader) -> list[str]:
    """The names under `secrets:`; each was looked at with the other secrets."""
    node = read.root.get("secrets")
    if node is None or node.value is None:
        return []
    if not isinstance(node.value, list):
        read.fault("secrets", "must be a list of names of environment variables, e.g. `secrets: [MY_PASSWORD]`")
        return []
    return [str(name) for name in plain(node)]
