"""What `karat list` shows."""

from __future__ import annotations

import inspect
from importlib.resources import files
from typing import Any

import msgspec

from karat import formats, plugins
from karat.cli.output import OUTPUT_FORMAT
from karat.config.presets import presets
from karat.errors import UnknownPlugin

__all__ = ["Listed", "Listing", "Option", "family", "one"]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a plug-in can be told."""

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
    source: str  # "built in", or the distribution that brings it
    about: str = ""  # the whole text
    options: tuple[Option, ...] = ()

    def __str__(self) -> str:
        return _lines([self.name, "", self.about or self.summary, *_option_lines(self.options)])


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All plug-ins of a family: `karat list FAMILY --json`."""

    format: int = OUTPUT_FORMAT
    family: str
    plugins: tuple[Listed, ...]

    def __str__(self) -> str:
        width = max(formats.width(one.name) for one in self.plugins)
        rows = []
        for one in self.plugins:
            source = "" if one.source == "built in" else f"  [{one.source}]"
            rows.append(f"{one.name:{width}}  {one.summary}{source}")
        return _lines(rows)


def family(name: str) -> Listing:
    """Every plug-in of a family that is installed."""
    if name in _TEXTS:
        return Listing(family=name, plugins=tuple(_TEXTS[name]()))
    return Listing(
        family=name,
        plugins=tuple(
            Listed(family=name, name=found.name, summary=found.summary, source=found.source, options=_options(found))
            for found in plugins.describe(name)
        ),
    )


def one(family_name: str, name: str) -> Listed:
    """One plug-in with its whole text. Raises UnknownPlugin."""
    there = {listed.name: listed for listed in family(family_name).plugins}
    by_file = {plugins.file_name(family_name, listed): listed for listed in there}
    name = by_file.get(plugins.file_name(family_name, name), name)
    if name not in there:
        raise UnknownPlugin(family_name, name, {*there, *by_file})
    if family_name in _TEXTS:
        return there[name]
    plugin = plugins.find(family_name, plugins.file_name(family_name, name), allow_code=False)
    return msgspec.structs.replace(there[name], about=inspect.getdoc(plugin) or "")


def _rubrics() -> list[Listed]:
    """The rubrics that karat brings; any other is a file."""
    folder = files("karat") / "rubrics"
    found = []
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            text = file.read_text(encoding="utf-8")
            found.append(
                Listed(
                    family="rubrics",
                    name=file.name.removesuffix(".yaml"),
                    summary=_first_comment(text),
                    source="built in",
                    about=text,
                )
            )
    return found


def _presets() -> list[Listed]:
    """The system prompts that say who takes part in a study."""
    return [
        Listed(family="presets", name=one.name, summary=one.summary, source="built in", about=one.text or "")
        for one in presets().values()
    ]


_TEXTS = {"rubrics": _rubrics, "presets": _presets}
"""Families of texts, which can be told nothing."""


def _first_comment(text: str) -> str:
    first = text.partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


def _options(found: plugins.Description) -> tuple[Option, ...]:
    properties: dict[str, dict[str, Any]] = found.options.get("properties", {})
    required = set(found.options.get("required", ()))
    return tuple(
        Option(
            name=name,
            type=_type(about),
            required=name in required,
            default=about.get("default"),
            description=about.get("description", ""),
        )
        for name, about in properties.items()
    )


def _type(about: dict[str, Any]) -> str:
    if "enum" in about:
        return " | ".join(str(value) for value in about["enum"])
    if "anyOf" in about:
        return " | ".join(_type(member) for member in about["anyOf"])
    if "$ref" in about:
        return "mapping"
    if about.get("type") == "array":
        return f"list of {_type(about.get('items', {}))}"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true | false"}
    return words.get(
        about.get("type", ""), {"object": "mapping", "null": "null"}.get(about.get("type", ""), "anything")
    )


def _option_lines(options: tuple[Option, ...]) -> list[str]:
    if not options:
        return []
    lines = ["", "Options:"]
    for option in options:
        default = "required" if option.required else f"default {_yaml(option.default)}"
        lines.append(f"  {option.name}: {option.type} ({default})")
        lines += [f"      {option.description}"] if option.description else []
    return lines


def _yaml(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(rows: list[str]) -> str:
    return formats.clean("\n".join(row.rstrip() for row in rows).rstrip()) + "\n"
