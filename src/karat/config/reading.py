"""The context that the experiment file is validated in, and the sections defined by plug-ins."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)
from pydantic_core import PydanticKnownError

from karat import plugins
from karat.config.environment import WORKSPACE
from karat.config.secrets import Secrets
from karat.documents.hub import hub_name
from karat.documents.nodes import Node, Place, fault_at
from karat.documents.validation import Problem, explain, refusal, shown, validated
from karat.errors import (
    BadOption,
    BadPlugin,
    Fault,
    MissingExtra,
    UnknownPlugin,
    did_you_mean,
    unreadable,
)
from karat.formats import excerpt
from karat.kinds import DEFAULT_KIND, installed
from karat.records import JsonObject

Plugin = type[Any]


class Plugged(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in with its options."""

    type: str
    plugin: Plugin
    options: JsonObject  # checked, with defaults
    given: JsonObject  # as in the file
    name: str  # for a scorer: its name in tables
    place: Place = ()  # the place of its options, below its own


class DatasetPart(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset: its kind, its options, and where it is."""

    kind: Plugged
    path: Path


class Reading(msgspec.Struct, eq=False):
    """An experiment as nodes, what its values depend on, and the findings so far."""

    root: Node
    folder: Path
    env: Mapping[str, str]
    secrets: Secrets
    warnings: list[str] = []
    kind: Plugin | None = None  # of the dataset; None: not known yet, or wrongly named
    dataset: DatasetPart | None = None  # once it is valid
    agent: Plugged | None = None  # once it is valid
    not_found: dict[tuple[str, str], str] = {}  # family and name of a plug-in → its fault
    trees: dict[Path, str] = {}  # folder named in conditions → its digest
    # of participants, by study; None: not read yet
    attributes: Mapping[str, Collection[str]] | None = None
    disabled: Collection[str] = ()  # MCP servers that a client's file switches off

    def warn(self, place: Place, message: str) -> None:
        """Notes a warning, with its line."""
        fault = fault_at(self.root, place, message)
        self.warnings.append(str(fault).removeprefix("--set "))

    def fault(self, problem: Problem) -> Fault | None:
        """The problem with its line; None for a value whose variable is not set: that is already a
        fault.
        """
        node, missing = self.root.nearest(problem.place)
        message = problem.message
        if node.unset and not missing and not problem.unknown_key:
            return None
        if (
            not missing
            and isinstance(node.value, bool)
            and node.written not in (None, "true", "false")
        ):
            message = f"{message} (YAML reads {node.written} as {str(node.value).lower()})"

        return fault_at(self.root, problem.place, message)

    def names(self, section: str) -> list[str]:
        """The keys of a section of the file, valid or not."""
        node = self.root.get(section)
        if node is not None and isinstance(node.value, dict):
            return list(node.value)
        return []

    def shown(self, value: object, node: Node | None) -> Any:
        """A checked value with secret variables as `${NAME}`, if the file's text names one."""
        if node is None:
            return value
        if isinstance(value, Mapping):
            return {key: self.shown(below, node.get(key)) for key, below in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.shown(below, node.get(index)) for index, below in enumerate(value)]
        if (self.secrets.variables | {WORKSPACE}).intersection(node.variables):
            return self.secrets.shown(node)
        return value


def reading_of(info: ValidationInfo) -> Reading:
    """The validation context."""
    assert isinstance(info.context, Reading)
    return info.context


class _NoOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _AnyOptions(BaseModel):
    """For an unknown plug-in: its options cannot be checked."""

    model_config = ConfigDict(extra="allow")


# creating one takes as long as reading a file
_sections: dict[tuple[str, Plugin | None], type[BaseModel]] = {}


def section(family: str, plugin: Plugin | None) -> type[BaseModel]:
    """The valid keys of a section: the plug-in's options, and those that name and place the
    plug-in.
    """
    if (family, plugin) not in _sections:
        base = _AnyOptions if plugin is None else plugins.options_model(plugin) or _NoOptions
        base.model_rebuild()  # its module may have gained classes since
        name = f"{family}.{base.__qualname__}"
        _sections[family, plugin] = create_model(
            name, __base__=base, __doc__=base.__doc__, **_KEYS[family]
        )

    return _sections[family, plugin]


def read_dataset(value: object, info: ValidationInfo) -> DatasetPart:
    """The dataset, with its path and its options."""
    reading = reading_of(info)
    values = _mapping(value)
    kind = values.get("kind") or DEFAULT_KIND
    problems: list[Problem] = []
    try:
        reading.kind = _find("kinds", kind, reading, "kind")
    except ValidationError as error:
        problems += explain(error, values, _AnyOptions)

    model = section("kinds", reading.kind)
    try:
        checked = model.model_validate(
            {**values, "kind": None} if problems else values, context=reading
        )
    except ValidationError as error:
        raise refusal(problems + explain(error, values, model)) from None

    if reading.kind is None:
        raise refusal(problems)
    part = _plugged("kinds", kind, reading.kind, checked, values)
    reading.dataset = DatasetPart(kind=part, path=dict(checked)["path"])
    return reading.dataset


def read_agent(value: object, info: ValidationInfo) -> Plugged:
    """The experiment's agent."""
    reading = reading_of(info)
    values = _mapping(value)
    kind = values.get("type")
    if not isinstance(kind, str) or not kind:
        problem = "is required" if kind is None else "must be text"
        raise refusal(
            [
                Problem(
                    ("type",), f"{problem}: the agent that is asked, e.g. floor, python or command"
                )
            ]
        )

    name = plugins.file_name("agents", kind)
    plugin = _find("agents", name, reading, "type")
    reading.agent = _plugged(
        "agents", name, plugin, validated(section("agents", plugin), values), values
    )
    return reading.agent


def read_variant(value: object, info: ValidationInfo) -> Plugged | None:
    """The experiment's agent with options replaced by a condition's; None if that agent is
    invalid.
    """
    base = reading_of(info).agent
    values = _mapping(value)
    if base is None:
        return None
    kind = values.get("type", base.type)
    if not isinstance(kind, str) or plugins.file_name("agents", kind) != base.type:
        message = (
            f"a condition changes the agent's options, not which agent it is ('{base.type}'); "
            "for another agent write a second experiment and use `karat compare`"
        )
        raise refusal([Problem(("type",), message)])

    checked = validated(section("agents", base.plugin), {**base.given, **values, "type": base.type})
    return _plugged("agents", base.type, base.plugin, checked, values)


def read_judge(value: object, info: ValidationInfo) -> Plugged | None:
    """The scorer of golden answers; None if there is none, and none is needed."""
    reading = reading_of(info)
    if value is None:
        listed = reading.root.get("scorers")
        if (listed is None or listed.value is None) and getattr(
            reading.kind or _find("kinds", DEFAULT_KIND, reading, "kind"), "judged", False
        ):
            raise ValueError(
                "is required for golden answers: `judge: {model: anthropic:claude-opus-4-5}`, "
                "`judge: {type: overlap}` for the offline one, or `scorers: [equals]` to do without"
            )

        return None

    values = {"type": "judge", **_mapping(value)}
    return msgspec.structs.replace(_scorer("judge", values, reading), name="judge")


def read_scorer(value: object, info: ValidationInfo) -> Plugged:
    """`equals`, `regex: {pattern: …}` or `{type: regex, name: has-flag, pattern: …}`."""
    reading = reading_of(info)
    match value:
        case str():
            return _scorer("scorers", {"type": value}, reading, key="")
        case {"type": _}:
            return _scorer("scorers", dict(_mapping(value)), reading)
        case dict() if len(value) == 1:
            ((kind, below),) = value.items()
            if below is None or isinstance(below, Mapping):
                scorer = _scorer(
                    "scorers", {**(below or {}), "type": kind}, reading, key="", place=(str(kind),)
                )
                return msgspec.structs.replace(scorer, place=(str(kind),))

    raise ValueError(
        "must be a name or a mapping: `equals`, `regex: {pattern: '^yes'}` or `{type: regex, "
        "name: …}`"
    )


def _scorer(
    family: str, values: JsonObject, reading: Reading, *, key: str = "type", place: Place = ()
) -> Plugged:
    kind = values["type"]
    plugin = _find("scorers", kind, reading, key)
    try:
        checked = validated(section(family, plugin), values)
    except ValidationError as error:
        faults = explain(error, values, _AnyOptions)
        raise refusal(
            msgspec.structs.replace(problem, place=(*place, *problem.place)) for problem in faults
        ) from None

    return _plugged(family, kind, plugin, checked, values)


def _plugged(
    family: str, kind: str, plugin: Plugin, checked: BaseModel, values: JsonObject
) -> Plugged:
    keys = set(_KEYS[family])
    given = {key: value for key, value in values.items() if key not in keys}
    options = checked.model_dump(mode="python", exclude=keys)
    for key, field in type(checked).model_fields.items():
        # a user's object, which may be a dataclass or a model
        if key in options and field.annotation is Any:
            options[key] = getattr(checked, key)

    return Plugged(
        type=kind,
        plugin=plugin,
        options=options,
        given=given,
        name=getattr(checked, "name", None) or kind,
    )


def _mapping(value: object) -> JsonObject:
    if not isinstance(value, Mapping):
        raise PydanticKnownError("dict_type")
    return dict(value)


_ONE = {"agents": "agent", "scorers": "scorer", "kinds": "kind of dataset"}


def _find(family: str, name: object, reading: Reading, key: str) -> Plugin:
    """The plug-in named `name`. Raises ValidationError with a problem at `key`."""
    if not isinstance(name, str):
        raise refusal(
            [Problem((key,), f"must be the name of a {_ONE[family]}, e.g. {_EXAMPLES[family]}")]
        )

    if (family, name) not in reading.not_found:
        try:
            return plugins.find(family, name, folder=reading.folder)
        except UnknownPlugin as unknown:
            hint = did_you_mean(name, unknown.known)
            message = (
                f"no {_ONE[family]} is called '{name}'{hint}; `karat list {family}` describes them"
            )
        except (BadPlugin, MissingExtra) as error:
            message = str(error)

        # looking it up takes 40 ms, and a list may name it a thousand times
        reading.not_found[family, name] = message

    raise refusal([Problem((key,) if key else (), reading.not_found[family, name])])


def _path(text: object, info: ValidationInfo) -> Path:
    """The dataset's location: from its kind, else a file in the working directory or next to the
    experiment.
    """
    reading = reading_of(info)
    locate = getattr(reading.kind, "locate", None)
    if not isinstance(text, str) or "\0" in text or (not text and locate is None):
        wanted = "the path of a file" if locate is None else "one path or name"
        raise ValueError(f"must be {wanted}, got {shown(text)}")

    if locate is None:
        try:
            return _file(text, reading)
        except OSError as error:  # a name that is too long
            raise ValueError(f"'{excerpt(text, 60)}' cannot be read: {unreadable(error)}") from None

    try:
        location = locate(text, list(dict.fromkeys([Path.cwd(), reading.folder])))
    except BadOption as bad:
        raise ValueError(str(bad).removeprefix(f"{bad.option}: ")) from None

    for note in location.notes:
        reading.warn(("dataset", "path"), note)
    path: Path = location.path.absolute()
    return path


def _file(text: str, reading: Reading) -> Path:
    if hub_name(text) is not None:  # fetched when the dataset is loaded
        return Path(text)
    here = Path(text).absolute()
    beside = reading.folder / text
    if here.is_file():
        if beside.is_file() and not here.samefile(beside):
            message = (
                f"'{text}' is in the working directory and in the experiment's folder; the first "
                f"is used"
            )
            reading.warn(("dataset", "path"), message)

        return here

    if beside.is_file():
        return beside
    for name, kind in installed().items():
        locate = getattr(kind, "locate", None)
        with contextlib.suppress(BadOption):
            if locate is not None and locate(text, [Path.cwd(), reading.folder]):
                raise ValueError(f"'{text}' is a dataset of another kind: write `kind: {name}`")

    if here.is_dir() or beside.is_dir():
        raise ValueError(f"'{text}' is a folder; name the file in it")
    if here.exists() or beside.exists():
        raise ValueError(
            f"'{text}' is not a regular file (but a device or a pipe); name a file of samples"
        )

    where = "the working directory" + (
        " or the experiment's folder" if reading.folder != Path.cwd() else ""
    )
    near = did_you_mean(here.name, [*_files(beside.parent), *_files(here.parent)], listing=False)
    raise ValueError(f"there is no file '{text}' in {where}{near}")


def _files(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []


def _not_blank(name: str | None) -> str | None:
    if name is not None and not name.strip():
        raise ValueError("must be text: what the scorer is called in tables")
    return name


_EXAMPLES = {"agents": "floor", "scorers": "equals", "kinds": DEFAULT_KIND}
_TYPE = (str, Field(description="which one; the other keys are its options"))
_KEYS: dict[str, JsonObject] = {
    "agents": {"type": _TYPE},
    "judge": {"type": _TYPE},
    "scorers": {
        "type": _TYPE,
        "name": (
            Annotated[Annotated[str, Strict()] | None, AfterValidator(_not_blank)],
            Field(default=None, description="what it is called in tables; null: as its type"),
        ),
    },
    "kinds": {
        "kind": (
            str | None,
            Field(
                default=DEFAULT_KIND, description="which kind of dataset; decides what a sample is"
            ),
        ),
        "path": (
            Annotated[Path, PlainValidator(_path), WithJsonSchema({"type": "string"})],
            Field(
                description=(
                    "the dataset, e.g. questions.jsonl, from the working directory or this file's "
                    "folder"
                )
            ),
        ),
    },
}
