"""How this karat was installed, and the command that installs more into the same environment."""

from __future__ import annotations

import json
import pkgutil
import shlex
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# The name on package indexes. Another project owns `karat` there, so no hint may ever name that to
# pip.
DISTRIBUTION = "karat-eval"


def install_extra_command(extra: str) -> str:
    """The command that adds an extra of karat to the environment in use: `.venv/bin/pip install -e
    '.[plots]'`.
    """
    return install_command(*_requirement(extra, _direct_url()))


def install_command(*requirements: str) -> str:
    """The command that installs packages into the environment in use; paths are relative to the
    working directory.
    """
    return shlex.join([*_installer(Path(sys.executable)), *requirements])


def shown_path(path: Path) -> str:
    """A path as a user would type it: relative if it lies below the working directory."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _installer(python: Path) -> list[str]:
    """`pip install` of this environment; `uv pip install` if the environment has no pip."""
    pip = python.with_name("pip")
    command = shutil.which("pip")
    if pip.is_file():
        return [
            "pip" if command is not None and pip.samefile(command) else shown_path(pip),
            "install",
        ]

    shown = shown_path(python)
    if find_spec("pip") is not None:
        return [shown, "-m", "pip", "install"]
    return ["uv", "pip", "install", "--python", shown]


def _direct_url() -> str | None:
    """Where karat was installed from if not from a package index, as PEP 610 records it."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # run from the sources, without being installed
        root = Path(__file__).resolve().parents[2]
        if not (root / "pyproject.toml").is_file():
            return None
        return json.dumps({"url": root.as_uri(), "dir_info": {"editable": True}})


def _requirement(extra: str, direct_url: str | None) -> list[str]:
    """The arguments of `pip install` for an extra, installed from where karat itself came from."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    if direct_url:
        origin = json.loads(direct_url)
    else:
        origin = {}

    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = shown_path(Path(url2pathname(urlsplit(url).path)))
        if folder.startswith((".", "/")):
            named = f"{folder}[{extra}]"
        else:
            named = f"./{folder}[{extra}]"

        if origin["dir_info"].get("editable"):
            return ["-e", named]
        return [named]

    if "vcs_info" in origin:
        commit = origin["vcs_info"].get("commit_id", "")
        return [f"{DISTRIBUTION}[{extra}] @ {origin['vcs_info'].get('vcs', 'git')}+{url}@{commit}"]

    return [f"{DISTRIBUTION}[{extra}] @ {url}" if url else f"{DISTRIBUTION}[{extra}]"]


@cache
def packages() -> tuple[str, ...]:
    """`karat`, and the packages of the same distribution that add to it: folders beside it called
    `karat_…`.
    """
    home = Path(__file__).parent.parent
    return ("karat", *sorted(file.parent.name for file in home.glob("karat_*/__init__.py")))


@cache
def plugin_modules(family: str) -> dict[str, str]:
    """The built-in plug-ins of a family: name of the file, such as `json_schema` → module, in order
    of the names.

    A family is a folder, such as `agents` or `subcommands/runs`.
    """
    found: dict[str, str] = {}
    home = Path(__file__).parent.parent
    for package in packages():
        place = f"{package}.{family}".replace("/", ".")
        modules = (module.name for module in pkgutil.iter_modules([str(home / package / family)]))
        found |= {module: f"{place}.{module}" for module in modules if not module.startswith("_")}

    return dict(sorted(found.items()))
