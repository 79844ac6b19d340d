"""Docstrings and option models as Markdown."""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["attributes", "docstring", "fenced", "fields_rows", "fields_table", "headed"]


def docstring(thing: Any) -> str:
    """The docstring with its examples fenced; "" where it has none of its own."""
    return fenced(inspect.cleandoc(thing.__doc__ or ""))


def fenced(text: str) -> str:
    """A docstring as Markdown: its examples are fenced."""
    blocks = [
        f"```pycon\n{inspect.cleandoc(block)}\n```" if block.lstrip().startswith(">>>") else block.replace("``", "`")
        for block in text.split("\n\n")
    ]
    return "\n\n".join(blocks)


def fields_table(model: type[BaseModel]) -> str:
    """A model's fields: name, possible values with the default (none: null or empty), meaning."""
    return "\n".join(fields_rows(model).values())


def fields_rows(model: type[BaseModel]) -> dict[str, str]:
    """The row of each field, by its key. A field with a table of its own is explained there."""
    schema = model.model_json_schema(by_alias=True)
    required = set(schema.get("required", ()))
    notes = {name: note for name, _, note in attributes(model)}
    rows = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        entry = schema["properties"].get(key)
        if entry is None:
            continue  # no key of the file: a test's groups stand beside the others, each by its own name
        nested = dict(headed(model)).get(key)
        described = field.description or notes.get(name) or ""
        meaning = re.sub(r"\bNone\b", "`null`", described)
        value, default = _kind(entry, schema.get("$defs", {})), entry.get("default")
        if key in required:
            value += ", *required*"
        elif isinstance(default, bool) and value == "`true`/`false`":
            value = f"default `{json.dumps(default)}`"
        elif default is not None and default not in ([], {}) and not nested:
            value += f", default `{json.dumps(default, ensure_ascii=False)}`"
        row = f"* `{key}` ({value.removesuffix(' or `null`')}) – {' '.join(meaning.split())}"
        rows[key] = row.removesuffix(" – ") if nested else row
    return rows


def headed(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The fields that are models themselves, which get a table of their own."""
    for name, field in model.model_fields.items():
        for nested in _models_in(field.annotation):
            yield field.alias or name, nested


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type: itself, or what a list or a union holds."""
    from pydantic import BaseModel as Model

    if inspect.isclass(annotation) and issubclass(annotation, Model):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def attributes(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, type and note of each annotated attribute, in the order of the source.

    The note is the comment that ends its line, or one directly above it: there a value's unit
    and the meaning of None are said (STYLE.md). "" where there is none.
    """
    for owner in reversed(cls.__mro__):
        if not re.match(r"karat(_[a-z]+)?\.", owner.__module__):
            continue
        try:
            source = inspect.cleandoc("\n" + inspect.getsource(owner))
        except OSError:  # a model that was made of others: its fields have descriptions
            continue
        comments = {
            token.start[0]: token.string.lstrip("# ").strip()
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:)", token.string)
        }
        lines_of = source.splitlines()
        tree = ast.parse(source).body[0]
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                first = node.lineno
                while lines_of[first - 2].lstrip().startswith("#"):
                    first -= 1
                lines = range(first, (node.end_lineno or node.lineno) + 1)
                note = " ".join(comments[line] for line in lines if line in comments)
                yield node.target.id, ast.unparse(node.annotation), note


def _kind(entry: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """What may stand in a place, in words."""
    if "$ref" in entry:
        below = definitions[entry["$ref"].rpartition("/")[2]]
        return _kind(below, definitions) if below.get("type") != "object" else "mapping, see below"
    if "const" in entry:
        return f"`{entry['const']}`"
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    if "anyOf" in entry:
        return " or ".join(dict.fromkeys(_kind(one, definitions) for one in entry["anyOf"]))
    kind = entry.get("type")
    if kind == "array":
        return f"list of {_plural(_kind(entry.get('items', {}), definitions))}"
    if kind == "object":
        below = entry.get("additionalProperties")
        return (
            f"mapping of names to {_plural(_kind(below, definitions))}"
            if isinstance(below, dict) and below
            else "mapping"
        )
    words = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "`true`/`false`",
        "null": "`null`",
    }
    return words.get(kind or "", "anything") + _bounds(entry)


def _plural(kind: str) -> str:
    return re.sub(r"^(whole number|number|text)", r"\1s", kind).replace("mapping", "mappings", 1)


def _bounds(entry: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    signs |= {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}  # what pydantic writes behind a validator
    bounds = [f"{sign} {entry[key]:g}" for key, sign in signs.items() if key in entry and abs(entry[key]) < 10_000]
    return " " + ", ".join(bounds) if bounds else ""
