"""`mcp_servers: {file: .mcp.json}`: the servers of an MCP client's file.

Such a file is JSON, with comments and trailing commas in VS Code. Its servers are under
`mcpServers`, under `servers`, or at the top; in a client's settings also below `mcp`. They become
nodes of the experiment, as if they had been written there, so that the same checks and the same
care for secrets apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from karat.config.environment import WORKSPACE, expand
from karat.documents.nodes import Node, Place, fault_at, walk
from karat.documents.reader import MAX_BYTES, parse
from karat.errors import Fault, did_you_mean, unreadable
from karat.files import open_regular

_SECTION = "mcp_servers"
_HOLDERS = ("mcpServers", "servers", "mcp_servers", "context_servers")
_SHOWN_HOLDERS = "`mcpServers` or `servers`"
_SETTINGS = "mcp"  # in a client's settings: what holds one of these, or the servers
_TAKEN = {"type", "command", "args", "env", "cwd", "url", "headers"}
# They concern a person at the client, or only describe the server.
_IGNORED = {
    *("disabled", "enabled", "alwaysAllow", "alwaysLoad", "autoApprove", "autoStart", "trust"),
    *("timeout", "timeout_ms", "timeoutMs", "initTimeout", "startupTimeout", "tool_timeout_sec"),
    *("startup_timeout_sec", "networkTimeout"),
    *("description", "name", "displayName", "title", "icon", "icons", "gallery", "version"),
    *("category", "tags", "author", "homepage", "repository", "docs", "notes", "note", "comment"),
    *("_comment", "_comments", "_note", "_notes", "//", "$comment", "source", "dev"),
}
# They leave out tools: ignored too, and that is said.
_FILTERS = {"tools", "includeTools", "excludeTools", "enabledTools", "disabledTools"} | {
    *("allowedTools", "enabled_tools", "disabled_tools"),
}
# Another client's name for a key, and the type that the name implies.
_OTHER_NAMES = {
    "transport": ("type", None),
    "transportType": ("type", None),
    "environment": ("env", None),
    "serverUrl": ("url", None),
    "httpUrl": ("url", "http"),
}
_TYPES = {
    **dict.fromkeys(("streamable-http", "streamable_http", "streamableHttp", "remote"), "http"),
    **dict.fromkeys(("streamableHTTP", "streamable", "http-stream"), "http"),
    "local": "stdio",
}
_CLIENT_FOLDERS = {".vscode", ".cursor", ".claude", ".gemini", ".roo", ".windsurf", ".idx", ".zed"}
# Each client's name for the folder of the project.
_PROJECT = {"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"}
_PLACES: dict[str, Callable[[Path], str]] = {
    "workspaceFolderBasename": lambda project: project.name,
    "userHome": lambda project: "${HOME}",
    "pathSeparator": lambda project: os.sep,
    "/": lambda project: os.sep,
}
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_SSE = re.compile(r"/sse/?(?:\?|\Z)")
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_COMMENTS = re.compile(rf"{_TEXT}|//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_TRAILING = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])|\t", re.DOTALL)


class Included(msgspec.Struct, frozen=True, kw_only=True):
    """What was found while the servers of a file were put into the experiment."""

    faults: list[Fault] = []
    warnings: list[tuple[Place, str]] = []
    disabled: set[str] = set()  # servers that the file switches off
    inputs: set[str] = set()  # variables in the place of what the client asks a person


def include(root: Node, *, folder: Path, env: Mapping[str, str]) -> Included:
    """Puts the servers of the client's file that `mcp_servers` names in the place of its name.

    Its path starts at `folder`. A server that is called `file` stays one: its value is a mapping.
    """
    section = root.get(_SECTION)
    reference = root.get(_SECTION, "file")
    if section is None or reference is None or not isinstance(reference.value, str):
        return Included()
    assert isinstance(section.value, dict)
    own = dict(section.value)
    del own["file"]
    only = own.get("only")
    if only is not None and not isinstance(only.value, dict):
        del own["only"]
    else:
        only = None

    included = Included()
    file = _ClientFile(root, included, folder=folder, env=env)
    servers = None if reference.unset else file.servers(only)  # unset: a fault already
    section.value = {**(servers or {}), **own}
    if servers is None:
        section.unset = True  # so that no name of a server is called wrong
        return included

    for name in sorted(servers.keys() & {str(key) for key in own}):
        message = (
            f"'{reference.value}' has a server of this name too; rename one, or leave it out of "
            f"`only: […]`"
        )
        included.faults.append(fault_at(root, (_SECTION, name), message))

    tree = Node({_SECTION: Node(servers)})
    included.faults.extend(expand(tree, {**env, WORKSPACE: str(file.project)}))
    return included


class _ClientFile:
    """A client's file, and its servers as karat's."""

    def __init__(
        self, root: Node, included: Included, *, folder: Path, env: Mapping[str, str]
    ) -> None:
        self._root = root
        self._found = included
        self._folder = folder
        self._env = env
        reference = root.get(_SECTION, "file")
        assert reference is not None
        self._reference = reference
        self._name = str(reference.value)
        self._listed: dict[str, Node] = {}
        self._path = path = Path(os.path.abspath(folder / Path(self._name).expanduser()))
        inside = path.parent.name in _CLIENT_FOLDERS
        self.project = path.parent.parent if inside else path.parent

    def servers(self, only: Node | None) -> dict[str, Node] | None:
        """Name → server, for all of them or for `only` some; None if that is a fault."""
        top = self._top()
        if top is None:
            return None
        both = [key for key in _HOLDERS if isinstance(getattr(top.get(key), "value", 0), dict)]
        if len(both) > 1:
            self._fault(f"'{self._name}' holds both {' and '.join(map(repr, both))}; remove one")
            return None

        listed = self._listed = _listed(top)
        if not listed:
            message = f"holds no servers, neither under {_SHOWN_HOLDERS} nor at its top"
            self._fault(f"'{self._name}' {message}")
            return None

        for _, node in walk(top):
            node.file = f"{self._name}, line {node.line}"
            node.line, node.column = self._reference.line, self._reference.column

        wanted = list(listed)
        if only is not None:
            names = [node.value for _, node in only.children()]
            wanted = [name for name in names if isinstance(name, str)]
            if not names or wanted != names:
                example = f"[{next(iter(listed), 'docs')}]"
                self._fault(f"must be a list of servers' names, e.g. {example}", "only")
                return None
            unknown = [name for name in wanted if name not in listed]
            for name in unknown:
                message = f"'{self._name}' has no server '{name}'{did_you_mean(name, listed)}"
                self._fault(message, "only")

            if unknown:
                return None

        servers = {}
        for name in wanted:
            if self._is_taken(name, listed[name]):
                servers[name] = listed[name]

        return servers

    def _fault(self, message: str, key: str = "file") -> None:
        self._found.faults.append(fault_at(self._root, (_SECTION, key), message))

    def _fault_inside(self, name: str, place: Place, message: str) -> None:
        tree = Node({_SECTION: Node(self._listed)})
        self._found.faults.append(fault_at(tree, (_SECTION, name, *place), message))

    def _top(self) -> Node | None:
        """The file's mapping; None if there is none, which is a fault."""
        try:
            with open_regular(self._path, at_most=MAX_BYTES) as file:
                text = file.read().decode("utf-8-sig")
        except FileNotFoundError:
            self._fault(f"there is no file '{self._name}' in the experiment's folder")
            return None
        except UnicodeDecodeError:
            self._fault(f"'{self._name}' is not UTF-8; save it as UTF-8")
            return None
        except (OSError, ValueError) as error:
            self._fault(f"'{self._name}' cannot be read: {unreadable(error)}")
            return None

        # JSON without comments, trailing commas and tabs, which YAML does not take; lines stay
        def blank(match: re.Match[str]) -> str:
            if match[0].startswith('"'):
                return match[0]
            return re.sub(r"[^\n]", " ", match[0])

        text = _TRAILING.sub(blank, _COMMENTS.sub(blank, text))

        if not text.lstrip().startswith("{"):
            self._fault(f"'{self._name}' is not a JSON object")
            return None

        document = parse(text.encode(), what="a file of MCP servers")
        for fault in document.faults:
            line = f", line {fault.line}" if fault.line else ""
            message = fault.message.removeprefix("not YAML: ")
            self._fault(f"'{self._name}'{line} is not JSON: {message}")

        return None if document.faults else document.root

    def _is_taken(self, name: str, server: Node) -> bool:
        """Makes the server karat's own; False if it is disabled."""
        if not isinstance(server.value, dict):
            return True  # its model reports the fault
        found = server.value
        if _value(found, "disabled") is True or _value(found, "enabled") is False:
            message = f"is disabled in '{self._name}', so it is left out"
            self._found.warnings.append(((_SECTION, name), message))
            self._found.disabled.add(name)
            return False

        if "envFile" in found:
            message = (
                "is not read: write the variables that the server needs in its `env`, as "
                "`${NAME}`, and name the file with --env-file"
            )
            self._fault_inside(name, ("envFile",), message)

        for other, (key, kind) in _OTHER_NAMES.items():
            if other not in found or (key in found and other != "httpUrl"):  # wins in Gemini CLI
                continue
            node = found[key] = found.pop(other)
            if other == "transport" and isinstance(node.value, dict):
                found[key] = node.get("type") or node
            if kind is not None and "type" not in found:
                found["type"] = Node(kind, line=node.line, column=node.column, file=node.file)

        command = found.get("command")
        more = _value(found, "args") or []
        if command is not None and isinstance(command.value, list) and isinstance(more, list):
            arguments = [*command.value[1:], *more]
            found["args"] = msgspec.structs.replace(command, value=arguments)
            if command.value:
                found["command"] = command.value[0]
            else:
                found["command"] = command

        kind_node = found.get("type")
        url = found.get("url")
        if kind_node is not None and isinstance(kind_node.value, str):
            kind_node.value = _TYPES.get(kind_node.value, kind_node.value)
        elif url is not None and _SSE.search(str(url.value)):  # as Cursor finds out by trying
            found["type"] = Node("sse", line=url.line, column=url.column, file=url.file)

        unread = []
        for key, node in found.items():
            chosen = [child.value for _, child in node.children()]
            if key in _FILTERS and node.value not in (None, "*") and chosen not in ([], ["*"]):
                unread.append(f"`{key}`")

        if unread:
            message = f"karat does not apply {' and '.join(unread)}: agents see every tool"
            self._found.warnings.append(((_SECTION, name), message))

        known = {*_TAKEN, *_IGNORED, *_FILTERS, "envFile"}
        for key in found:
            if key not in known:
                remedy = f"no such key of a server{did_you_mean(str(key), _TAKEN, listing=False)}"
                message = f"{remedy}; remove it, or leave the server out with `only: […]`"
                self._fault_inside(name, (key,), message)

        # An empty `env` of an address, or `headers` of a program, says nothing.
        kept = {key: found[key] for key in found if key in _TAKEN}
        server.value = {key: node for key, node in kept.items() if node.value not in ("", [], {})}
        self._read_values(name, server)
        return True

    def _read_values(self, name: str, server: Node) -> None:
        for key in ("args", "env", "headers"):
            below = server.get(key)
            if below is not None and isinstance(below.value, dict):  # null: not set
                below.value = {
                    name: node for name, node in below.value.items() if node.value is not None
                }

            for _, node in below.children() if below is not None else ():
                if isinstance(node.value, (bool, int, float)):
                    node.value = node.written

        for place, node in walk(server):
            if isinstance(node.value, str):
                self._translate(name, place, node)

        if server.get("command") is not None:
            # Lets a program start in the project, as the client does
            assert isinstance(server.value, dict)
            project = os.path.relpath(self.project, self._folder)
            given = server.value.pop("cwd", None)
            if given is None:
                cwd = Node(project, line=server.line, column=server.column, file=server.file)
            else:
                cwd = given
                if isinstance(cwd.value, str) and not cwd.value.startswith("$"):
                    cwd.value = os.path.normpath(os.path.join(project, cwd.value))

            if cwd.value != ".":
                server.value["cwd"] = cwd

    def _translate(self, name: str, place: Place, node: Node) -> None:
        """Writes the client's references in a text as karat's."""

        def reference(match: re.Match[str]) -> str:
            inner = match[1]
            if inner in _PROJECT and inner not in self._env:
                return f"${{{WORKSPACE}}}"
            if inner in _PLACES:
                return _PLACES[inner](self.project)
            if inner.startswith("input:"):
                variable = re.sub(r"[^A-Z0-9]+", "_", inner.removeprefix("input:").upper())
                self._found.inputs.add(variable)
                if variable not in self._env:
                    problems.append(
                        f"{match[0]} asks for a value, which a run cannot do; set the environment "
                        f"variable {variable}, or name a file with --env-file"
                    )

                return f"${{{variable}}}"

            variable, otherwise, default = inner.removeprefix("env:").partition(":-")
            if otherwise and variable not in self._env:
                return default
            return f"${{{variable}}}"

        text = str(node.value)
        problems: list[str] = []
        if "${" in _REFERENCE.sub("", text):
            problems.append(
                "a `${…}` holds a brace or does not end; write `${NAME}` or `${NAME:-text}`"
            )

        node.value = _REFERENCE.sub(reference, text)
        for problem in problems:
            self._fault_inside(name, place, problem)
            node.value, node.unset = "", True


def _value(server: Mapping[str, Node], key: str) -> object:
    node = server.get(key)
    return None if node is None else node.value


def _listed(top: Node) -> dict[str, Node]:
    """Name → server; none if this is no file of servers."""
    for key in _HOLDERS:
        holder = top.get(key)
        if holder is not None and isinstance(holder.value, dict):
            return {str(name): server for name, server in holder.value.items()}

    bare = {str(name): node for name, node in top.children() if node.keys() & {"command", "url"}}
    inner = top.get(_SETTINGS)
    if not bare and inner is not None and isinstance(inner.value, dict):
        return _listed(inner)
    return bare
