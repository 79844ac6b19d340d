"""The JSON Schema (2020-12) of an experiment file, for editors: with the options of every installed
plug-in.

It accepts every file that `karat check` accepts. `check` also reports what it cannot express: names
that refer to another part of the file, missing files and variables, expressions in another
language.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from karat import plugins
from karat.config.model import ExperimentFile, Section
from karat.config.reading import section
from karat.errors import BadOption, did_you_mean
from karat.kinds import DEFAULT_KIND

Json = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILLED_IN = r"\$\{"  # a text with ${NAME}: its value is not known here


def schema_of(name: str) -> Json:
    """Of `experiment`, or of the file of a dataset kind. Raises BadOption if there is none."""
    models = {
        name: plugin.file_model()
        for name, plugin in plugins.installed("kinds")
        if hasattr(plugin, "file_model")
    }
    if name == "experiment":
        return _experiment_schema()
    if name not in models:
        raise BadOption(
            "WHAT", f"there is no schema of '{name}'{did_you_mean(name, ['experiment', *models])}"
        )

    schema = models[name].model_json_schema(schema_generator=_Generator)
    result: Json = _tidied({"$schema": DIALECT, "title": f"A {name} of karat", **schema})
    return result


def schema_text(schema: Json) -> str:
    """The schema as the text of a file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _experiment_schema() -> Json:
    families: dict[str, dict[str, type[BaseModel]]] = {
        family: {name: section(keys, plugin) for name, plugin in plugins.installed(family)}
        for family, keys in (("kinds", "kinds"), ("agents", "agents"), ("scorers", "scorers"))
    }
    judges = {name: section("judge", plugin) for name, plugin in plugins.installed("scorers")}
    models: list[type[BaseModel]] = [
        ExperimentFile,
        *judges.values(),
        *(model for family in families.values() for model in family.values()),
    ]
    references, shared = models_json_schema(
        [(model, "validation") for model in models], schema_generator=_Generator
    )
    defs: Json = shared["$defs"]
    needed = {}
    for model in models:
        # A model's required keys, removed from its definition: a condition gives only some of
        # an agent's options
        required: list[str] = defs[references[model, "validation"]["$ref"].rpartition("/")[2]].pop(
            "required", []
        )
        needed[id(model)] = required

    root = defs.pop(references[ExperimentFile, "validation"]["$ref"].rpartition("/")[2])
    root["required"] = needed[id(ExperimentFile)]

    def branches(family: dict[str, type[BaseModel]]) -> dict[str, Json]:
        return {
            name: {**references[model, "validation"], "required": needed[id(model)]}
            for name, model in family.items()
        }

    fields: Json = root["properties"]
    dataset = _choice(
        "kind", branches(families["kinds"]), plugins.aliases("kinds"), default=DEFAULT_KIND
    )
    fields["dataset"] = {"anyOf": [{"type": "string", "minLength": 1}, dataset]}
    fields["agent"] = _choice("type", branches(families["agents"]), plugins.aliases("agents"))
    fields["judge"] = _or_null(_choice("type", branches(judges), {}, default="judge"))
    fields["scorers"] = _or_null(
        {"type": "array", "uniqueItems": True, "items": _scorer(branches(families["scorers"]))}
    )
    (condition,) = fields["conditions"].pop("patternProperties").values()
    del fields["mcp_servers"]["patternProperties"]
    for name, below in (("conditions", _or_null(condition)), ("mcp_servers", _server())):
        fields[name] |= {"propertyNames": {"pattern": r"\S"}, "additionalProperties": below}
    fields["mcp_servers"]["properties"] = {
        "file": {"anyOf": [{"type": "string", "minLength": 1}, _server()]},
        "only": {"anyOf": [{"type": "array", "items": {"type": "string"}}, _server()]},
    }
    aliases = plugins.aliases("agents")
    variants = []
    for name, model in families["agents"].items():
        names = [name, *(alias for alias, of in aliases.items() if of == name)]
        agent = {"properties": {"type": {"enum": names}}, "required": ["type"]}
        options = {
            "anyOf": [
                {"type": "null"},
                {**references[model, "validation"], "properties": {"type": {"enum": names}}},
            ]
        }
        below = {"additionalProperties": {"properties": {"agent": options}}}
        variants.append(
            {"if": {"properties": {"agent": agent}}, "then": {"properties": {"conditions": below}}}
        )

    # dataset kinds whose answers need a judge if no scorers are listed
    no_scorers: Json = {"not": {"required": ["scorers"]}}
    unscored: Json = {"anyOf": [no_scorers, {"properties": {"scorers": {"type": "null"}}}]}
    there: Json = {"required": ["judge"], "properties": {"judge": {"type": "object"}}}
    for name, plugin in plugins.installed("kinds"):
        if getattr(plugin, "judged", False):
            kind: Json = {"properties": {"kind": {"const": name}}}
            if name != DEFAULT_KIND:
                kind |= {"required": ["kind"]}
            variants.append({"if": {"properties": {"dataset": kind}, **unscored}, "then": there})

    root["allOf"] = variants
    schema: Json = _tidied(
        {"$schema": DIALECT, "title": "A karat experiment", **root, "$defs": defs}
    )
    return schema


def _choice(
    key: str, branches: dict[str, Json], aliases: dict[str, str], *, default: str | None = None
) -> Json:
    """A section whose `key` names a plug-in: its other keys depend on the name."""
    names = {}
    for name in branches:
        names[name] = [name, *(alias for alias, of in aliases.items() if of == name)]
    conditions = []
    for name, branch in branches.items():
        conditions.append(
            {
                "if": {
                    "properties": {key: {"enum": names[name]}},
                    **({} if name == default else {"required": [key]}),
                },
                "then": branch
                if name != default
                else {**branch, "required": _without(branch["required"], key)},
            }
        )

    known = {key: _name(name for both in names.values() for name in both)}
    if default is not None:
        required = {}
    else:
        required = {"required": [key]}

    return {"type": "object", "properties": known, **required, "allOf": conditions}


def _scorer(branches: dict[str, Json]) -> Json:
    """`equals`, `regex: {pattern: …}` or `{type: regex, name: has-flag, pattern: …}`."""
    short = {}
    for name, branch in branches.items():
        if _without(branch["required"], "type"):
            null_if_none: list[Json] = []
        else:
            null_if_none = [{"type": "null"}]

        short[name] = {
            "anyOf": [
                {**branch, "required": _without(branch["required"], "type")},
                *null_if_none,
            ]
        }

    own = {":": {"type": ["object", "null"]}}
    mapping = {
        "type": "object",
        "if": {"required": ["type"]},
        "then": _choice("type", branches, {}),
        "else": {
            "minProperties": 1,
            "maxProperties": 1,
            "properties": short,
            "patternProperties": own,
            "additionalProperties": False,
        },
    }
    return {"if": {"type": "string"}, "then": _name(branches), "else": mapping}


def _server() -> Json:
    """A program or an address, by `type`, else by a key that only one of them has."""
    remote = {"properties": {"type": {"enum": ["http", "sse"]}}, "required": ["type"]}
    by_url = {
        "required": ["url"],
        "not": {"anyOf": [{"required": ["type"]}, {"required": ["command"]}]},
    }
    return {
        "type": "object",
        "if": {"anyOf": [remote, by_url]},
        "then": {"$ref": "#/$defs/RemoteServer", "required": ["url"]},
        "else": {"$ref": "#/$defs/StdioServer", "required": ["command"]},
    }


def _name(names: Iterable[str]) -> Json:
    """An installed plug-in, or `module:Class`."""
    return {"anyOf": [{"enum": sorted(names)}, {"type": "string", "pattern": f":|{_FILLED_IN}"}]}


def _without(names: list[str], name: str) -> list[str]:
    return [other for other in names if other != name]


def _or_null(schema: Json) -> Json:
    null: Json = {"type": "null"}
    nullable = dict(schema)
    if "type" in nullable:
        if isinstance(nullable["type"], list):
            types = nullable["type"]
        else:
            types = [nullable["type"]]

        nullable["type"] = [*types, *([] if "null" in types else ["null"])]

    if "anyOf" in nullable:
        nullable["anyOf"] = [*nullable["anyOf"], *([] if null in nullable["anyOf"] else [null])]
    if "$ref" in schema:
        return {"anyOf": [schema, null]}
    return nullable


class _Generator(GenerateJsonSchema):
    """As pydantic reads values: numbers also as text, and every value as text with `${NAME}`."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def int_schema(self, schema: core_schema.IntSchema) -> Json:
        return _as_text_too(
            super().int_schema(schema), r"^\s*[-+]?[0-9_]+(\.0*)?\s*$", strict=schema.get("strict")
        )

    def float_schema(self, schema: core_schema.FloatSchema) -> Json:
        number = r"^\s*[-+]?([0-9_]+\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
        return _as_text_too(super().float_schema(schema), number, strict=schema.get("strict"))

    def bool_schema(self, schema: core_schema.BoolSchema) -> Json:
        words = (
            r"^([tT]([rR][uU][eE])?|[fF]([aA][lL][sS][eE])?|[yY]([eE][sS])?|[nN][oO]?"
            r"|[oO][nN]|[oO][fF][fF]|0|1)$"
        )
        return _as_text_too(super().bool_schema(schema), words, strict=schema.get("strict"))

    def str_schema(self, schema: core_schema.StringSchema) -> Json:
        generated = super().str_schema(schema)
        if "pattern" in generated:
            return {**generated, "pattern": f"{generated['pattern']}|{_FILLED_IN}"}
        return generated

    def literal_schema(self, schema: core_schema.LiteralSchema) -> Json:
        generated = super().literal_schema(schema)
        if generated.get("type") != "string":
            return generated
        allowed = generated.get("enum") or [generated["const"]]
        return {"anyOf": [{"enum": allowed}, {"type": "string", "pattern": _FILLED_IN}]}

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Json:
        """A list with such a validator accepts a single text, in every plug-in."""
        generated = super().function_before_schema(schema)
        if generated.get("type") == "array":
            return {"anyOf": [{"type": ["string", "null"]}, generated]}
        return generated

    def model_schema(self, schema: core_schema.ModelSchema) -> Json:
        """In a section of the file, a key without a value counts as absent."""
        generated = super().model_schema(schema)
        generated.pop("title", None)
        if issubclass(schema["cls"], Section):
            required = generated.get("required", ())
            generated["properties"] = {
                key: value if key in required else _or_null(value)
                for key, value in generated["properties"].items()
            }

        return generated


_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_MODULE = "karat__config__reading__"  # pydantic puts it before the names of sections


def _tidied(value: object, *, names: bool = False) -> Any:
    """With the standard's words for limits behind a validator, and short names.

    `names`: the keys are names.
    """
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if isinstance(value, dict):
        found = {}
        for key, below in value.items():
            found[str(key if names else _LIMITS.get(key, key)).removeprefix(_MODULE)] = _tidied(
                below, names=not names and key in ("properties", "$defs")
            )

        return found

    if isinstance(value, str):
        return value.replace(f"#/$defs/{_MODULE}", "#/$defs/")
    return value


def _as_text_too(schema: Json, pattern: str, *, strict: bool | None) -> Json:
    if strict:
        return schema
    return {**schema, "type": [schema["type"], "string"], "pattern": f"{pattern}|{_FILLED_IN}"}
