"""Sets up an environment per peer below `build/peers/`, and measures their programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "PLACE", "Installed", "Used", "environment", "install", "measured", "model_server", "tool_server"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / "build" / "peers"
PACKAGES: Mapping[str, Sequence[str]] = {
    "karat": [str(ROOT)],
    "inspect-ai": ["inspect-ai"],
    "pydantic-evals": ["pydantic-evals"],
    "deepeval": ["deepeval"],
    "lm-eval": ["lm-eval"],
    "promptfoo": ["promptfoo"],  # from npm
    # What else they need to call a model and an MCP server.
    "karat-chat": [f"{ROOT}[chat]"],
    "inspect-ai-chat": ["inspect-ai", "openai", "mcp"],
    "pydantic-evals-chat": ["pydantic-evals", "pydantic-ai-slim[openai,mcp]"],
}
# No tool may use the network: reporting, look-ups and updates are switched off.
OFFLINE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DO_NOT_TRACK": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}
CONTENTS = """
import importlib.metadata, json, os, sysconfig
OWN = {"pip", "setuptools", "wheel"}
found = {one.name: one.version for one in importlib.metadata.distributions() if one.name not in OWN}
top, size = sysconfig.get_path("purelib"), 0
for folder, folders, files in os.walk(top):
    if folder == top:
        folders[:] = [name for name in folders if name.partition("-")[0] not in OWN | {"pkg_resources"}]
    size += sum(os.lstat(os.path.join(folder, name)).st_size for name in files)
print(json.dumps([found, size / 1e6]))
"""


@dataclass(frozen=True)
class Installed:
    """The content of one environment."""

    version: str
    packages: int
    megabytes: float  # of files, including compiled ones; without Python, Node.js and pip


def install(name: str) -> Installed:
    """Creates an environment if it is missing; karat itself is installed again each time."""
    folder = PLACE / name
    ready = folder / "installed"
    if name == "promptfoo":
        if not ready.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}", encoding="utf-8")  # npm wants one
            _quietly("npm", "install", "--prefix", str(folder), "--no-fund", "--no-audit", *PACKAGES[name])
            ready.touch()
        return _node_contents(folder)
    python = str(folder / "bin" / "python")
    if not ready.exists():
        _quietly(sys.executable, "-m", "venv", "--clear", str(folder))
        _quietly(python, "-m", "pip", "install", "--quiet", *PACKAGES[name])
        ready.touch()
    elif name.startswith("karat"):
        _quietly(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(ROOT))
    text = subprocess.run([python, "-c", CONTENTS], check=True, stdout=subprocess.PIPE, text=True).stdout
    packages, megabytes = json.loads(text)
    project = name.removesuffix("-chat").replace("karat", "karat-eval")
    normal = {key.replace("_", "-").lower(): version for key, version in packages.items()}
    return Installed(normal[project], len(packages), megabytes)


def _quietly(*argv: str) -> None:
    print("$", " ".join(argv), flush=True)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=PLACE if PLACE.exists() else None)


def _node_contents(folder: Path) -> Installed:
    top = folder / "node_modules"
    packages = json.loads((top / ".package-lock.json").read_text(encoding="utf-8"))["packages"]
    size = sum(path.lstat().st_size for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    return Installed(packages["node_modules/promptfoo"]["version"], len(packages), size / 1e6)


@dataclass(frozen=True)
class Used:
    """What one process used, including the children it waited for."""

    cpu: float  # seconds of processor time
    seconds: float  # wall-clock time
    megabytes: float  # peak


def environment(home: Path, out: Path) -> dict[str, str]:
    """The environment of a measured process. Caches go into `home`, promptfoo's database into `out`."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    folders = {"HOME": str(home), "HF_HOME": str(home / "hf"), "PROMPTFOO_CONFIG_DIR": str(out / "promptfoo")}
    return {**kept, **folders, **OFFLINE, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "ignore"}


# A process inherits the peak memory of its parent, so a small process starts it.
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
megabytes = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
print(json.dumps({"code": code, "cpu": used.ru_utime + used.ru_stime, "seconds": seconds, "megabytes": megabytes}))
"""


def measured(argv: Sequence[str], *, folder: Path, env: Mapping[str, str]) -> Used:
    """Runs one process in a folder. Exits if it fails."""
    wrapped = [sys.executable, "-I", "-S", "-c", MEASURE, *argv]
    process = subprocess.run(wrapped, cwd=folder, env=env, capture_output=True, check=True)
    figures = json.loads(process.stdout)
    if code := figures.pop("code"):
        raise SystemExit(f"{process.stderr.decode(errors='replace')[-3000:]}\n{' '.join(argv)}: exit {code}")
    return Used(**figures)


TOOL_CALL = {"tool_calls": [{"name": "search", "arguments": {"query": "lamp"}}]}


@contextmanager
def model_server() -> Iterator[str]:
    """The address of a scripted model that asks for one tool call, then answers."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"rules": [{"say": [TOOL_CALL, "A lamp is lit with a match."]}]}))
        with _serving("karat.testing.models", "--script", str(script)) as urls:
            yield urls["openai_url"]


@contextmanager
def tool_server() -> Iterator[str]:
    """The address of an MCP server with the tool `search`."""
    with _serving("karat.testing.mcp_server", "--transport", "http") as urls:
        yield urls["url"]


@contextmanager
def _serving(module: str, *options: str) -> Iterator[dict[str, str]]:
    argv = [sys.executable, "-m", module, *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
