"""Analysis of tool calls: which tool was called, whether something a condition offers was used,
what was expected.

Pure functions of tool calls, conditions and samples: the index, the scorer `trajectory` and the
tables share them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Literal

import msgspec

from karat.records import Sample

_SKILL = "Skill"  # the tool that Claude Code loads a skill with
# options of the scorer `trajectory` that name tools to call
_EXPECTING = ("used", "in_order", "arguments")


class Offered(msgspec.Struct, frozen=True):
    """Something a condition gives its agent whose use is visible in tool calls."""

    kind: Literal["server", "skill", "plugin"]
    name: str


class CalledTool(msgspec.Struct, frozen=True):
    """A tool as named in calls."""

    tool: str
    server: str | None = None  # None: not an MCP tool
    # the skill that the call loads, such as `house:tables`; None: no skill
    skill: str | None = None

    @property
    def name(self) -> str:
        """`search`, or `docs.search` of the MCP server `docs`."""
        if self.server is None:
            return self.tool
        return f"{self.server}.{self.tool}"

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names for it in expectations, the most specific first."""
        if self.server is None:
            return (self.tool,)
        return (self.name, self.tool, f"{self.server}.*")

    def uses(self, offered: Offered) -> bool:
        """Whether a call of the tool uses the offer.

        A skill is used when it is loaded: Claude Code is given it as `skills:NAME`. A plug-in is
        used when one of its skills, `PLUGIN:NAME`, is loaded, or a tool of one of its MCP servers,
        `plugin:PLUGIN:SERVER`, is called.

        >>> CalledTool("search", "docs").uses(Offered("server", "docs"))
        True
        >>> loaded = CalledTool("Skill", skill="house:tables")
        >>> loaded.uses(Offered("plugin", "house")), loaded.uses(Offered("skill", "tables"))
        (True, False)
        """
        match offered.kind:
            case "server":
                return self.server == offered.name
            case "skill":
                return self.skill in (offered.name, f"skills:{offered.name}")
            case "plugin":
                mine = f"{offered.name}:"
                return (self.skill or "").startswith(mine) or (self.server or "").startswith(
                    f"plugin:{mine}"
                )


class _Skill(msgspec.Struct):
    skill: str | None = None
    command: str | None = None  # its name in older versions


_skill = msgspec.json.Decoder(_Skill).decode


def called_tool(
    tool: str, server: str | None, given: msgspec.Raw | Mapping[str, object]
) -> CalledTool:
    """The tool of a call. `given`: its input, as JSON or decoded."""
    if tool != _SKILL or server is not None:
        return CalledTool(tool, server)
    loaded = _Skill()
    with suppress(msgspec.DecodeError, msgspec.ValidationError):
        if isinstance(given, msgspec.Raw):
            loaded = _skill(given)
        else:
            loaded = msgspec.convert(given, _Skill)

    return CalledTool(tool, None, loaded.skill or loaded.command)


def names_in_cell(value: object) -> object:
    """The names in a dataset cell: a value unchanged; from text (CSV) its JSON, else names
    separated by commas.

    >>> names_in_cell("search, read"), names_in_cell('["search"]'), names_in_cell("")
    (['search', 'read'], ['search'], None)
    """
    if value == "":
        return None
    with suppress(ValueError):
        if isinstance(value, str):
            value = json.loads(value)

    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def expected_actions(sample: Sample) -> list[Mapping[str, object]]:
    """The calls that a task of tau-bench expects, in order; empty: it expects none."""
    listed = (turn.detail.get("actions") for turn in sample.turns)
    actions = [action for given in listed if isinstance(given, (list, tuple)) for action in given]
    found = []
    for action in actions:
        if isinstance(action, Mapping) and isinstance(action.get("name"), str):
            found.append(action)

    return found


def expected_tools(options: Mapping[str, object], sample: Sample) -> frozenset[str] | None:
    """The tools that a scorer `trajectory` with these options expects; None: it expects nothing
    here.

    They are those of `used`, `in_order` and `arguments`. An invalid expectation does not count: its
    answers have no score either.

    >>> sample = Sample(id="1", position=0, digest="", turns=(), metadata={"tools": "search, read"})
    >>> sorted(expected_tools({"used": ["docs.list"], "columns": {"in_order": "tools"}}, sample))
    ['docs.list', 'read', 'search']
    """
    columns, given = options.get("columns"), []
    for part in _EXPECTING:
        value, column = (
            options.get(part),
            columns.get(part) if isinstance(columns, Mapping) else None,
        )
        if isinstance(column, str):
            value = names_in_cell(sample.metadata.get(column))
            if value is None and column == "actions":
                value = [action["name"] for action in expected_actions(sample)] or None

        if isinstance(value, (list, tuple)):
            given += [value]

    if not given:
        return None
    names = (
        rule.get("tool") if isinstance(rule, Mapping) else rule for value in given for rule in value
    )
    return frozenset(name for name in names if isinstance(name, str) and name)


def tools_of_criteria(sample: Sample) -> tuple[frozenset[str], frozenset[str]]:
    """The tools that criteria of a sample want called, and those they want not called.

    A criterion whose weight is below 0 should not hold, so it wants the opposite.
    """
    wanted: tuple[set[str], set[str]] = (set(), set())
    for criterion in sample.criteria:
        if criterion.type in ("tool", "not-tool"):
            opposite = (criterion.type == "not-tool") != (criterion.weight < 0)
            wanted[opposite].add(criterion.text)

    return frozenset(wanted[False]), frozenset(wanted[True])


def chosen_tools(
    called: Iterable[CalledTool], expected: Collection[str], known: Collection[str]
) -> tuple[set[str], set[str]]:
    """The expected tools that were called, and the other called ones, under the names used in
    expectations.

    `known`: the expectations of all samples. A call that this sample does not expect gets its name
    from another sample's expectation, else from server and tool.

    >>> called = [CalledTool("search", "docs"), CalledTool("read", "docs"), CalledTool("rm")]
    >>> matched, others = chosen_tools(called, ["docs.search"], ["docs.search", "read"])
    >>> sorted(matched), sorted(others)
    (['docs.search'], ['read', 'rm'])
    """
    matched, others = set(), set()
    for tool in called:
        hits = [name for name in tool.spellings if name in expected]
        matched.update(hits)
        if not hits:
            others.add(next((name for name in tool.spellings if name in known), tool.name))

    return matched, others
