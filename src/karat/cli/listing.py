"""The output of `karat list` and `karat runs list`."""

from __future__ import annotations

import inspect
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from karat import api, formats, plugins
from karat.cli.output import aligned
from karat.config.prompts import presets
from karat.errors import BadRun, UnknownPlugin
from karat.formats import OUTPUT_FORMAT
from karat.records import JsonObject


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a plug-in."""

    name: str
    type: str
    required: bool
    default: Any = None
    description: str = ""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One plug-in: `karat list FAMILY NAME --json`."""

    format: int = OUTPUT_FORMAT
    family: str
    name: str
    summary: str
    source: str  # "built in", or the distribution that provides it
    about: str = ""  # the whole text
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        lines = [
            self.name,
            "",
            self.about or self.summary,
            *(["", "Options:"] if self.options else []),
        ]
        for option in self.options:
            default = f"default {msgspec.json.encode(option.default).decode()}"
            lines.append(
                f"  {option.name}: {option.type} ({'required' if option.required else default})"
            )
            if option.description:
                lines += [f"      {option.description}"]

        return _lines(lines)


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All plug-ins of a family: `karat list FAMILY --json`."""

    format: int = OUTPUT_FORMAT
    family: str
    plugins: tuple[Listed, ...]

    def __str__(self) -> str:
        if not self.plugins:
            return f"No {self.family} are installed."
        rows = [
            (
                plugin.name,
                plugin.summary + ("" if plugin.source == "built in" else f"  [{plugin.source}]"),
            )
            for plugin in self.plugins
        ]
        return _lines(aligned(rows))


def family(name: str) -> Listing:
    """Every installed plug-in of a family."""
    if name in _TEXTS:
        return Listing(family=name, plugins=tuple(_TEXTS[name]()))
    described = []
    for plugin in plugins.describe(name):
        options = []
        required = plugin.options.get("required", ())
        for option, about in plugin.options.get("properties", {}).items():
            options.append(
                Option(
                    name=option,
                    type=_type(about),
                    required=option in required,
                    default=about.get("default"),
                    description=about.get("description", ""),
                )
            )

        described.append(
            Listed(
                family=name,
                name=plugin.name,
                summary=plugin.summary,
                source=plugin.source,
                options=tuple(options),
            )
        )

    return Listing(family=name, plugins=tuple(described))


def plugin(family_name: str, name: str) -> Listed:
    """One plug-in with its full description. Raises UnknownPlugin."""
    there = {listed.name: listed for listed in family(family_name).plugins}
    by_file = {plugins.file_name(family_name, listed): listed for listed in there}
    name = by_file.get(plugins.file_name(family_name, name), name)
    if name not in there:
        raise UnknownPlugin(family_name, name, {*there, *by_file})
    if family_name in _TEXTS:
        return there[name]
    code = plugins.find(family_name, plugins.file_name(family_name, name), allow_code=False)
    return msgspec.structs.replace(there[name], about=inspect.getdoc(code) or "")


def _rubrics() -> list[Listed]:
    """The built-in rubrics; any other is a file."""
    rubrics = []
    for file in sorted((files("karat") / "rubrics").iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            text = file.read_text(encoding="utf-8")
            first = text.partition("\n")[0]
            if first.startswith("#"):
                summary = first.lstrip("# ").strip()
            else:
                summary = ""

            name = file.name.removesuffix(".yaml")
            rubrics.append(
                Listed(family="rubrics", name=name, summary=summary, source="built in", about=text)
            )

    return rubrics


def _presets() -> list[Listed]:
    """The system prompts that say who takes part in a study."""
    found = []
    for preset in presets().values():
        found.append(
            Listed(
                family="presets",
                name=preset.name,
                summary=preset.summary,
                source="built in",
                about=preset.text or "",
            )
        )

    return found


_TEXTS = {"rubrics": _rubrics, "presets": _presets}
"""Families of texts, which have no options."""


def _type(about: JsonObject) -> str:
    if "enum" in about:
        return " | ".join(str(value) for value in about["enum"])
    if "anyOf" in about:
        return " | ".join(_type(member) for member in about["anyOf"])
    if "$ref" in about:
        return "mapping"
    if about.get("type") == "array":
        return f"list of {_type(about.get('items', {}))}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true | false",
    }
    return (words | {"object": "mapping", "null": "null"}).get(about.get("type", ""), "anything")


def _lines(rows: list[str]) -> str:
    return formats.clean("\n".join(row.rstrip() for row in rows).rstrip()) + "\n"


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run folder."""

    folder: str
    name: str  # of the experiment
    created: str  # UTC, ISO 8601
    status: str  # done, running, crashed, or why it was stopped
    conditions: tuple[str, ...]
    trials: int  # planned
    rehearsed: bool


class ListedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """`karat runs list --json`."""

    format: int = OUTPUT_FORMAT
    runs: tuple[ListedRun, ...]
    unreadable: tuple[str, ...] = ()  # folders that are left out, and why

    def __str__(self) -> str:
        if not self.runs:
            return "There are no runs here."
        rows = []
        for run in self.runs:
            what = formats.plural(len(run.conditions), "condition")
            if run.rehearsed:
                status = f"{run.status}, rehearsed"
            else:
                status = run.status

            rows.append(
                (
                    run.folder,
                    run.name,
                    run.created[:16].replace("T", " "),
                    status,
                    what,
                    str(run.trials),
                )
            )

        heads = ("run", "experiment", "made (UTC)", "status", "", "trials")
        return _lines(
            aligned([heads, *(tuple(map(formats.clean, row)) for row in rows)], right={5})
        )


def listed_runs(place: Path) -> ListedRuns:
    """The runs in a folder, the newest first. One that cannot be read hides no other."""
    runs, unreadable = [], []
    for path in reversed(api.folders(place) if place.is_dir() else []):
        if path == place:  # it holds no runs
            continue
        try:
            run = api.open(path)
            runs.append(
                ListedRun(
                    folder=str(path),
                    name=run.info.name,
                    created=run.info.created,
                    status=run.status(),
                    conditions=run.info.plan.conditions,
                    trials=run.info.plan.trials,
                    rehearsed=run.info.rehearsed,
                )
            )
        except BadRun as error:
            unreadable.append(f"left out: {error}")

    return ListedRuns(runs=tuple(runs), unreadable=tuple(unreadable))
