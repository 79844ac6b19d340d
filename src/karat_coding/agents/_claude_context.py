"""What a condition gives Claude Code beyond its prompt and servers: skills, plug-ins, instructions
and tools.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from karat.errors import BadExperiment, Fault, unreadable
from karat.files import LARGEST_TEXT, open_regular
from karat.foreign import Json
from karat.records import Condition, ContextPart, JsonObject, McpServer

_PLUGIN = "skills"  # the generated plug-in: the model knows the skill `tables` as `skills:tables`
_OF_A_PLUGIN = (".claude-plugin/plugin.json", "skills", "commands", "agents", "hooks", ".mcp.json")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

# Claude Code confines these to the working directories; in the list of allowed tools they would not
# be confined.
_CONFINED = frozenset(
    {"Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS"}
)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A condition's context in Claude Code's terms."""

    skills: tuple[ContextPart, ...]
    plugins: tuple[ContextPart, ...]
    instructions: ContextPart | None
    loadable: tuple[str, ...]  # skills and commands by the names the model uses
    servers: tuple[McpServer, ...]  # of the plug-ins; nothing is started by these definitions
    tools: tuple[str, ...]  # built-in ones

    @property
    def options(self) -> JsonObject:
        """Options of the SDK for every condition with a context, wherever its files are."""
        if not (self.tools or self.plugins or self.skills or self.instructions):
            return {}
        return {
            "permission_mode": "acceptEdits",
            "extra_args": {"restricted": None},
            # Without plug-ins, only the condition's servers may be found.
            "strict_mcp_config": not self.plugins,
        }

    @property
    def allowed(self) -> list[str]:
        """The built-in tools that need no permission; file tools need none in the working
        directories.
        """
        return [tool for tool in self.tools if tool not in _CONFINED]

    def unexpected(self, commands: Iterable[str]) -> list[str]:
        """Skills and plug-ins that Claude Code has found and karat has not, or the other way
        round.
        """
        prefixes = tuple(f"{name}:" for name in (_PLUGIN, *(part.name for part in self.plugins)))
        return sorted(set(self.loadable) ^ {name for name in commands if name.startswith(prefixes)})

    def put(self, home: Path) -> tuple[list[Path], list[Path], dict[str, str]]:
        """Copies everything below `home`: folders of plug-ins, further working directories,
        variables.
        """
        plugins = list[Path]()
        folders = list[Path]()
        env = dict[str, str]()
        if self.skills:
            plugins.append(home / _PLUGIN)
            folders.append(home / _PLUGIN / "skills")  # a skill's files are there to be read
            for part in self.skills:
                shutil.copytree(part.path, folders[-1] / part.name, symlinks=True)

        for part in self.plugins:
            plugins.append(home / "plugins" / part.name)
            shutil.copytree(part.path, plugins[-1], symlinks=True)

        if self.instructions is not None:
            folders.append(home / "instructions")
            folders[-1].mkdir()
            shutil.copyfile(self.instructions.path, folders[-1] / "CLAUDE.md")
            env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] = "1"

        return plugins, folders, env


def check_context(key: str, value: ContextPart | str) -> None:
    """Raises ValueError for a skill, plug-in, tool etc. that Claude Code cannot be given."""
    if isinstance(value, str):
        if not value.isalpha():
            raise ValueError(f"must be the name of a tool alone, such as Bash, got '{value}'")
        return

    try:
        if key == "plugins":
            _read_plugin(value)
        if key == "skills":
            if not _NAME.fullmatch(value.name):
                raise ValueError(
                    f"Claude Code loads no skill called '{value.name}': rename its folder "
                    f"(letters, digits, - _ .)"
                )

            if _has_hooks(_text(value.path, "SKILL.md")):
                raise ValueError(
                    f"the SKILL.md of '{value.name}' has hooks, which run commands on this "
                    f"machine once it is loaded: remove them, or give it as a plug-in (plugins)"
                )
    except OSError as error:
        raise ValueError(f"'{value.name}' cannot be read: {unreadable(error)}") from error


def given(condition: Condition) -> Given:
    """The condition's context, read and checked. Raises BadExperiment with every fault."""
    context = condition.context
    faults = list[Fault]()
    for key, values in (
        ("skills", context.skills),
        ("plugins", context.plugins),
        ("tools", context.tools),
    ):
        for value in values:
            try:
                check_context(key, value)
            except ValueError as error:
                faults.append(Fault(place=f"conditions.{condition.name}.{key}", message=str(error)))

    if faults:
        raise BadExperiment("experiment", faults)
    loadable = [f"{_PLUGIN}:{part.name}" for part in context.skills]
    servers: list[McpServer] = []
    for part in context.plugins:
        offered, started = _read_plugin(part)
        loadable += offered
        servers += started

    tools = dict.fromkeys((*context.tools, *(["Skill"] if loadable else [])))
    return Given(
        skills=context.skills,
        plugins=context.plugins,
        instructions=context.instructions,
        loadable=tuple(loadable),
        servers=tuple(servers),
        tools=tuple(tools),
    )


def _has_hooks(text: str) -> bool:
    head = re.match(r"\ufeff?---[^\n]*\n(.*?)\n---", text, re.DOTALL)
    if head is None:
        return False
    try:
        fields = yaml.safe_load(head[1])
    except (yaml.YAMLError, RecursionError):
        fields = None

    # unclear cases are refused
    if isinstance(fields, dict):
        return "hooks" in fields
    return "hooks" in head[1]


def _read_plugin(part: ContextPart) -> tuple[list[str], list[McpServer]]:
    """Its skills and commands, and its servers. Raises OSError and ValueError."""
    if not any((part.path / name).exists() for name in _OF_A_PLUGIN):
        raise ValueError(
            f"'{part.name}' is not a plug-in: it has none of {', '.join(_OF_A_PLUGIN)}"
        )

    manifest = _json(part.path, ".claude-plugin/plugin.json")
    name = part.name
    if not _NAME.fullmatch(name) or name == _PLUGIN:
        raise ValueError(
            f"a plug-in cannot be called '{name}' here: rename its folder (letters, digits, - _ .)"
        )

    if manifest.get("name", name) != name:  # results name it by its folder
        raise ValueError(
            f"'{name}': its manifest gives it another name, {manifest['name']!r}: rename the folder"
        )

    skills = [path.parent.name for path in part.path.glob("skills/*/SKILL.md")]
    commands = [
        ":".join(path.relative_to(part.path / "commands").with_suffix("").parts)
        for path in part.path.glob("commands/**/*.md")
    ]
    loadable = [f"{name}:{skill}" for skill in sorted({*skills, *commands})]
    servers = []
    declared = manifest.get("mcpServers", ".mcp.json")
    for declaration in [".mcp.json", *(declared if isinstance(declared, list) else [declared])]:
        if isinstance(declaration, str):
            listed = _json(part.path, declaration)
        else:
            listed = declaration

        for server, entry in Json(Json(listed).get("mcpServers", listed)).items():
            remote = "url" in Json(entry)
            servers.append(
                McpServer(name=f"plugin:{name}:{server}", type="http" if remote else "stdio")
            )

    return loadable, list({server.name: server for server in servers}.values())


def _json(folder: Path, name: str) -> JsonObject:
    """The object in a file of a plug-in; empty if there is no such file.

    Raises OSError and ValueError.
    """
    try:
        text = _text(folder, name)
    except FileNotFoundError:
        return {}

    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"'{folder.name}': {name} is not JSON: {error}") from error

    if not isinstance(value, dict):
        raise ValueError(f"'{folder.name}': {name} must hold an object")
    return value


def _text(folder: Path, name: str) -> str:
    """Raises OSError, and ValueError for a path that leads out of the folder, or text that is not
    UTF-8.
    """
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"'{folder.name}': {name} leads out of its folder")
    with open_regular(folder / name, within=folder, at_most=LARGEST_TEXT) as file:
        try:
            return file.read(LARGEST_TEXT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"'{folder.name}': {name} is not UTF-8") from error
