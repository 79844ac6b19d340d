"""Rubrics: the metrics of a judge, their scale, and the meaning of each level.

A rubric is a YAML file: `rubrics/NAME.yaml` in this package, or a file of the user.

    format: 2
    name: default
    instructions: |            the judge's instructions, before the answer
    scale: {low: 1, high: 5}   whole numbers; a metric may have its own
    metrics:
      completeness:
        description: Is everything there?
        levels: {1: Nothing., 2: …, 5: Everything.}     one text per level
        empty: 1                                        optional: that of an answer without text
    extra_fields:              optional: what the judge gives in addition to scores
      unverified_claims: {type: list, description: …}    type: list, text, bool or number
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from karat.documents.nodes import plain
from karat.documents.reader import parse as read_yaml
from karat.documents.storable import why_unfit
from karat.errors import BadOption, BadRubric, Fault, did_you_mean
from karat.files import open_regular

__all__ = ["FORMAT_VERSION", "ExtraField", "Rubric", "RubricMetric", "load", "names", "parse"]

FORMAT_VERSION = 2
"""1: the first. 2: `empty`, the level of an answer without text."""

_MAX_BYTES = 1_000_000
_MAX_LEVELS = 101
_NO_SCALE = (0, 0)


class RubricMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One judged metric, and the meaning of each whole number of its scale."""

    name: str
    description: str
    low: int
    high: int
    levels: dict[int, str]  # every whole number from low to high → its meaning
    direction: Literal["higher", "lower"] = "higher"  # which way is better
    empty: int | None = None  # the level of an answer without text; None: the judge is asked


class ExtraField(msgspec.Struct, frozen=True, kw_only=True):
    """A value the judge gives in addition to scores."""

    name: str
    type: Literal["list", "text", "bool", "number"]  # list: of texts
    description: str


class Rubric(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions of a judge, and what it must return."""

    name: str
    instructions: str
    metrics: tuple[RubricMetric, ...]  # in the order of the file
    extra_fields: tuple[ExtraField, ...] = ()
    source: str = ""  # the built-in name or the path, as requested

    @property
    def digest(self) -> str:
        """32 hex digits over all instructions of a judge; not over the name, comments or layout."""
        from hashlib import blake2b

        metrics = [  # without None: digests are older than the field `empty`
            {
                name: value
                for name, value in msgspec.structs.asdict(metric).items()
                if value is not None
            }
            for metric in self.metrics
        ]
        prompt_parts = (self.instructions, metrics, self.extra_fields)
        return blake2b(msgspec.json.encode(prompt_parts), digest_size=16).hexdigest()

    @property
    def of_empty_answers(self) -> dict[str, int] | None:
        """Metric → level of an answer without text; None if the judge must be asked for one of
        them.
        """
        levels = {metric.name: metric.empty for metric in self.metrics if metric.empty is not None}
        return levels if len(levels) == len(self.metrics) else None

    def single(self) -> tuple[Rubric, ...]:
        """One rubric for each metric; the first also asks for the extra fields."""
        return tuple(
            msgspec.structs.replace(
                self, metrics=(metric,), extra_fields=() if position else self.extra_fields
            )
            for position, metric in enumerate(self.metrics)
        )


def names() -> list[str]:
    """The built-in rubrics."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))


def load(rubric: str | Path, *, folder: Path | None = None) -> Rubric:
    """The built-in rubric of this name, or the one in this file, from `folder` on.

    A name with a slash, a dot or a file that exists is a path, except `rubrics/NAME` for a
    built-in one. Raises BadRubric with every fault of the file, and BadOption for an unknown
    name and a file that cannot be read.
    """
    asked = str(rubric)
    if asked.removeprefix("rubrics/") in names():
        asked = asked.removeprefix("rubrics/")
        return parse((resources.files(__name__) / f"{asked}.yaml").read_bytes(), source=asked)

    path = (folder or Path()) / asked
    try:
        with open_regular(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        if "/" not in asked and "." not in asked:
            hint = did_you_mean(asked, names())
            raise BadOption(
                "rubric", f"no rubric is called '{asked}', and no such file is there{hint}"
            ) from error

        raise BadOption("rubric", f"{asked} cannot be read: {error.strerror}") from error

    return parse(raw, source=asked)


def parse(raw: bytes, *, source: str) -> Rubric:
    """The rubric in these bytes. Raises BadRubric with every fault at once."""
    if len(raw) > _MAX_BYTES:
        raise BadRubric(
            source,
            [Fault(place="file", message=f"must be at most {_MAX_BYTES} bytes, has {len(raw)}")],
        )

    read = read_yaml(raw, what="a rubric")
    faults = read.faults
    if read.root is None:
        values = None
    else:
        values = plain(read.root)

    unfit = why_unfit(values)
    if unfit is not None:
        faults.append(Fault(place="file", message=unfit))
    if faults:
        raise BadRubric(source, faults)
    if not isinstance(values, dict):
        raise BadRubric(
            source, [Fault(place="file", message=f"must be a mapping, got {_kind(values)}")]
        )

    root = _Section(values, "", faults)
    root.known("format", "name", "instructions", "scale", "metrics", "extra_fields")
    version = root.take("format", int, "a whole number")
    if version is not None and not 1 <= version <= FORMAT_VERSION:
        root.fault("format", f"this karat reads formats 1 to {FORMAT_VERSION}, got {version}")
    scale = _scale(root, required=False)
    metrics = [
        _metric(root.inner("metrics", name), name, scale)
        for name in root.keys_of("metrics", required=True)
    ]
    extra = []
    for name in root.keys_of("extra_fields"):
        section = root.inner("extra_fields", name)
        section.known("type", "description")
        kind = section.take("type", str, "a text", default="list")
        if kind not in ("list", "text", "bool", "number"):
            section.fault("type", f"must be list, text, bool or number, got '{kind}'")
            kind = "list"

        extra.append(ExtraField(name=name, type=kind, description=section.text("description")))

    for name in {metric.name for metric in metrics} & {field.name for field in extra}:
        root.fault(f"extra_fields.{name}", "is a metric too")
    instructions = root.text("instructions")
    name = root.take("name", str, "a text", default=Path(source).stem)
    if faults:
        raise BadRubric(source, sorted(faults, key=lambda fault: fault.place))
    return Rubric(
        name=name or source,
        instructions=instructions,
        metrics=tuple(metrics),
        extra_fields=tuple(extra),
        source=source,
    )


class _Section:
    """A mapping that is read key by key; faults are collected, with their places."""

    def __init__(self, values: object, place: str, faults: list[Fault]) -> None:
        self._place, self._faults = place, faults
        self.values: dict[str, Any] = values if isinstance(values, dict) else {}
        if not isinstance(values, dict):
            faults.append(
                Fault(place=place or "file", message=f"must be a mapping, got {_kind(values)}")
            )

    def fault(self, key: str, message: str) -> None:
        self._faults.append(Fault(place=f"{self._place}.{key}".lstrip("."), message=message))

    def known(self, *keys: str) -> None:
        """Every other key is a fault."""
        for key in self.values:
            if key not in keys:
                self.fault(key, f"unknown key{did_you_mean(key, keys)}")

    def take(self, key: str, kind: type[object], wanted: str, *, default: Any = None) -> Any:
        """The value, or the default if it is missing; a value of another type is a fault."""
        value = self.values.get(key, default)
        if value is not None and (
            not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        ):
            self.fault(key, f"must be {wanted}, got {_kind(value)}")
            return default

        return value

    def text(self, key: str) -> str:
        """A required text."""
        value = self.take(key, str, "a text", default="") or ""
        if not isinstance(self.values.get(key), (str, type(None))):
            return ""
        if not value.strip():
            self.fault(key, "is required")
        return str(value).strip()

    def keys_of(self, key: str, *, required: bool = False) -> list[str]:
        """The names in a mapping of named things."""
        inner = self.values.get(key)
        if inner is None or inner == {}:
            if required:
                self.fault(key, "must name at least one")
            return []

        if not isinstance(inner, dict):
            self.fault(key, f"must be a mapping of names, got {_kind(inner)}")
            return []

        for name in inner:
            if not name.isidentifier():
                self.fault(f"{key}.{name}", "a name must be letters, digits and underscores")

        return [name for name in inner if name.isidentifier()]

    def inner(self, key: str, name: str) -> _Section:
        """One of the named things."""
        return _Section(
            self.values[key][name], f"{self._place}.{key}.{name}".lstrip("."), self._faults
        )

    def sub(self, key: str) -> _Section | None:
        """A mapping under this key; None if it is missing."""
        if self.values.get(key) is None:
            return None
        return _Section(self.values[key], f"{self._place}.{key}".lstrip("."), self._faults)


def _scale(section: _Section, *, required: bool) -> tuple[int, int] | None:
    inner = section.sub("scale")
    if inner is None:
        if required:
            section.fault("scale", "is required: here, or for the whole rubric")
        return None

    inner.known("low", "high")
    low = inner.take("low", int, "a whole number")
    high = inner.take("high", int, "a whole number")
    if low is None or high is None:
        section.fault("scale", "needs low and high, whole numbers")
        return None

    if not low < high < low + _MAX_LEVELS:
        section.fault(
            "scale", f"high must be above low, by less than {_MAX_LEVELS}; got {low} to {high}"
        )
        return None

    return low, high


def _metric(section: _Section, name: str, scale: tuple[int, int] | None) -> RubricMetric:
    section.known("description", "scale", "levels", "direction", "empty")
    own = _scale(section, required=scale is None) or scale or _NO_SCALE
    direction = section.take("direction", str, "a text", default="higher")
    if direction not in ("higher", "lower"):
        section.fault("direction", f"must be higher or lower, got '{direction}'")
    empty = section.take("empty", int, "a whole number")
    if empty is not None and own != _NO_SCALE and not own[0] <= empty <= own[1]:
        section.fault("empty", f"is not a level: the scale goes from {own[0]} to {own[1]}")

    description = section.text("description")
    levels: dict[int, str] = {}
    inner = section.sub("levels")
    if inner is None:
        section.fault("levels", "is required: one text for each level")
    elif own != _NO_SCALE:  # whose fault is already reported
        wanted = [str(level) for level in range(own[0], own[1] + 1)]
        for level in inner.values:
            if level not in wanted:
                inner.fault(level, f"is not a level: the scale goes from {own[0]} to {own[1]}")

        for level in wanted:
            text = inner.values.get(level)
            if text is None:
                inner.fault(level, "is missing")
            elif not isinstance(text, str) or not text.strip():
                inner.fault(level, f"must be a text, got {_kind(text)}")

            levels[int(level)] = str(inner.values.get(level, "")).strip()

    return RubricMetric(
        name=name,
        description=description,
        low=own[0],
        high=own[1],
        levels=levels,
        direction="lower" if direction == "lower" else "higher",
        empty=empty,
    )


_KINDS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (lambda value: value is None, "nothing"),
    (lambda value: isinstance(value, bool), "true or false; put it in quotes to have a text"),
    (lambda value: isinstance(value, dict), "a mapping"),
    (lambda value: isinstance(value, list), "a list"),
    (lambda value: isinstance(value, str) and not value.strip(), "an empty text"),
    (
        lambda value: isinstance(value, float) and not math.isfinite(value),
        "a number that is not finite",
    ),
)


def _kind(value: object) -> str:
    for fits, words in _KINDS:
        if fits(value):
            return words

    shown = repr(value)
    if len(shown) <= 60:
        return shown
    return f"{shown[:57]}…"
