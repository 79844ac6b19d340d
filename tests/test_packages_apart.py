"""The core does its work without the packages beside it, and each package is removed by deleting its folder.

The commands run as a user runs them, in processes of their own, from a copy of the source.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.other_copies import python, stdout_of, told

import karat

pytestmark = pytest.mark.slow

SOURCE = Path(karat.__file__).resolve().parent.parent
NEEDED_BY = {"karat_query": ("karat_studies",)}  # `derive` and `select` of a study are SQL
PACKAGES = sorted(path.name for path in SOURCE.glob("karat_*") if (path / "__init__.py").is_file())
EVERY_MODULE = """
import importlib, json, os, pkgutil, sys

def import_all(tops):
    for top in tops:
        for module in pkgutil.walk_packages(importlib.import_module(top).__path__, top + "."):
            if not module.name.endswith((".__main__", "_child")):
                importlib.import_module(module.name)

def imported():
    return sorted(name for name in sys.modules if name.startswith("karat"))

source, every_package, copies = json.loads(sys.argv[1])
import_all(every_package)  # what others wrote stays, for all copies
for copy, packages in copies.items():
    if os.fork() == 0:
        for name in imported():
            del sys.modules[name]
        sys.path[:] = [copy if path == source else path for path in sys.path]
        import_all(packages)
        print(json.dumps([copy, imported()]), flush=True)
        os._exit(0)
    os.wait()
"""


CHAT = """
dataset: {path: questions.jsonl}
agent: {type: chat, model: "openai:gpt-4.1"}
judge: {type: judge, model: "openai:gpt-4.1"}
conditions: {plain: {system_prompt: Be brief.}}
"""


def copy_without(packages: list[str], folder: Path) -> Path:
    """A copy of the source without some packages, already compiled."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns(*packages))
    return folder


def commands(source: Path, folder: Path) -> set[str]:
    shown = stdout_of(python(source, folder, "-m", "karat", "--help")).partition("Start:")[2]
    return {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2] != " "}


@pytest.fixture(scope="module")
def every_command(tmp_path_factory) -> set[str]:
    return commands(SOURCE, tmp_path_factory.mktemp("every"))


def gone_with(package: str) -> list[str]:
    return [package, *NEEDED_BY.get(package, ())]


@pytest.fixture(scope="module")
def copies(tmp_path_factory) -> dict[str, Path]:
    """Each package, and a copy of the source without it."""
    folder = tmp_path_factory.mktemp("copies")
    return {package: copy_without(gone_with(package), folder / package) for package in PACKAGES}


@pytest.fixture(scope="module")
def every_module(copies, tmp_path_factory) -> tuple[dict[str, list[str]], str]:
    """Each copy, and our modules that are loaded when all of its modules are; and what was said of errors."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "every.py").write_text(EVERY_MODULE, encoding="utf-8")
    every_package = ["karat", *PACKAGES]
    kept = {
        str(copy): [name for name in every_package if name not in gone_with(package)]
        for package, copy in copies.items()
    }
    done = python(SOURCE, folder, "every.py", json.dumps([str(SOURCE), every_package, kept]))
    return dict(map(json.loads, stdout_of(done).splitlines())), done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_without_a_package_its_commands_are_gone_and_all_other_modules_are_there(
    package, copies, every_command, every_module, tmp_path
):
    gone, source = gone_with(package), copies[package]
    its = {path.stem.rstrip("_").replace("_", "-") for path in (SOURCE / package / "commands").glob("[!_]*.py")}
    assert commands(source, tmp_path) == every_command - its
    loaded, errors = every_module
    assert str(source) in loaded, errors
    assert {"karat.execution.trial", "karat", *PACKAGES} - {*gone} <= {*loaded[str(source)]}
    assert not [name for name in loaded[str(source)] if name.partition(".")[0] in gone]


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    return copy_without(PACKAGES, tmp_path_factory.mktemp("core") / "src")


def test_the_core_alone_takes_an_experiment_from_the_first_file_to_the_gate(core, tmp_path):
    mine = tmp_path / "mine"
    told(core, tmp_path, ["init", "golden", "mine"])
    (mine / "chat.yaml").write_text(CHAT, encoding="utf-8")
    checked, *_ = told(
        core,
        mine,
        ["check", "experiment.yaml"],
        ["run", "--rehearse", "chat.yaml", "--quiet", "--results", "rehearsed"],
        ["run", "experiment.yaml", "--quiet", "--limit", "1"],
        ["run", "experiment.yaml", "--quiet", "--resume", "latest"],
    )
    assert "agent calls" in checked
    (run,) = (mine / "results").iterdir()
    _, shown = told(core, mine, ["score", run], ["report", run, "--to", "json"])
    report = json.loads(shown)
    assert report["results"]
    first, second = report["conditions"][:2]
    metric = report["results"][0]["metric"]
    compared, *_ = told(
        core,
        mine,
        ["compare", f"{run}:{first}", f"{run}:{second}"],
        ["gate", run, "--min", f"{metric}=0"],
        ["runs", "verify", run],
    )
    assert f"{first} → {second}" in compared
    assert "no such command 'view'" in python(core, tmp_path, "-m", "karat", "view").stderr


SERVED = """
dataset: {path: questions.jsonl}
agent: {type: command, command: cat}
scorers: [equals]
mcp_servers:
  plain: {command: python, args: [-m, karat.testing.mcp_server]}
  shop: {url: "http://127.0.0.1:9/mcp", auth: {type: login}}
"""
OWN_CLIENT = """
import asyncio
from pathlib import Path
from karat.mcp import Toolbox
from karat.mcp.observed import Observed
from karat.redact import Redactor
from karat.testing.mcp_server import stdio_server

async def observed():
    server, redact = stdio_server("plain"), Redactor({})
    async with Toolbox([server], redact=redact, folder=Path()) as toolbox:
        toolbox.observed_command(server, Observed("plain", redact))

asyncio.run(observed())
"""


@pytest.mark.parametrize(
    ("rest", "key"),
    [
        ("mcp: {record: tapes}\nconditions: {a: {mcp_servers: [plain]}}", "mcp.record"),
        ("mcp: {replay: tapes}\nconditions: {a: {mcp_servers: [plain]}}", "mcp.replay"),
        ("conditions: {a: {mcp_servers: [shop]}}", "mcp_servers.shop.auth"),
        ("conditions: {a: {workspace: tapes}}", "conditions.a.workspace"),
    ],
)
def test_a_file_that_needs_a_package_which_is_gone_is_told_which(core, tmp_path, rest, key):
    package = "karat_coding" if "workspace" in key else "karat_servers"
    (tmp_path / "questions.jsonl").write_text('{"question": "q", "answer": "a"}\n', encoding="utf-8")
    (tmp_path / "tapes").mkdir()
    (tmp_path / "experiment.yaml").write_text(SERVED + rest, encoding="utf-8")
    done = python(core, tmp_path, "-m", "karat", "run", "experiment.yaml", "--quiet")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert f"{key}: needs the package {package}, which this copy of karat does not have" in said
    assert not list((tmp_path / "results").glob("[!.]*/journal.jsonl"))


def test_an_agent_with_its_own_client_needs_the_relay(core, tmp_path):
    done = python(core, tmp_path, "-c", OWN_CLIENT)
    assert "mcp_servers.plain: needs the package karat_servers" in done.stderr


def test_a_file_of_another_tool_needs_the_package_that_reads_it(core, tmp_path):
    (tmp_path / "log.json").write_text("{}", encoding="utf-8")
    done = python(core, tmp_path, "-m", "karat", "report", "log.json")
    assert done.returncode == 2
    assert "log.json: needs the package karat_imports" in done.stderr
