"""Imports go one way, and nothing heavy is loaded before it is used."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
from pathlib import Path

import pytest
from tests.needed_packages import EVERY_PACKAGE

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "karat"
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}

# What a module of ours may never load on the way to `--help`; the lists of the commands follow from it.
HEAVY = {"_duckdb", "duckdb", "httpx2", "jinja2", "mcp", "msgspec", "numpy", "pydantic", "rich", "scipy", "yaml"}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"
    return subprocess.run(
        [program, "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_imports_go_one_way():
    done = lint_imports(SOURCE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs_package(*EVERY_PACKAGE)
@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        pytest.param("errors.py", "import karat.records", "Imports go one way", id="upwards"),
        pytest.param("agents/toy.py", "import karat.scorers", "Imports go one way", id="sideways"),
        pytest.param("leftovers.py", "", "Imports go one way", id="a module without a place"),
        pytest.param("exports/toy.py", "import karat.execution.plan", "What reads a run", id="a report that plans"),
        pytest.param("exports/toy.py", "import karat.scorers.toy_helper", "What reads a run", id="by a detour"),
        pytest.param("stats/toy.py", "import karat.records", "The pure cores", id="a core that knows records"),
        pytest.param("cli/toy.py", "import karat_viewer", "The core imports no", id="a core that knows a package"),
        pytest.param("cli/toy.py", "import karat.scorers.overlap", "A plug-in is reached", id="past the family"),
    ],
)
def test_a_forbidden_import_is_caught(tmp_path, module, line, broken):
    shutil.copytree(SOURCE, tmp_path, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    if "toy_helper" in line:
        (tmp_path / "karat" / "scorers" / "toy_helper.py").write_text("import karat.execution.plan\n", encoding="utf-8")
    path = tmp_path / "karat" / module
    path.write_text(f"{path.read_text(encoding='utf-8') if path.exists() else ''}\n{line}\n", encoding="utf-8")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert broken in done.stdout
    assert "BROKEN" in done.stdout


def test_the_contracts_name_every_module_they_are_about():
    """A contract can only name modules that are there, so a new one must be added to it."""
    expected = {
        "readers": {
            "source_modules": {"index", "analysis", "gates", "document", "exports"},
            "forbidden_modules": {"execution", "agents", "mcp", "models"},
        },
        "cores": {"source_modules": {"stats"}},
        "families": {"forbidden_modules": {"agents", "scorers", "kinds", "exports", "importers"}},
    }
    for contract, lists in expected.items():
        for key, modules in lists.items():
            named = {name.split(".")[1] for name in CONTRACTS[contract][key] if name.startswith("karat.")}
            assert named == {module for module in modules if _exists(module)}, f"{contract}: {key}"


def _exists(module: str) -> bool:
    return (PACKAGE / module).is_dir() or (PACKAGE / f"{module}.py").is_file()


def loaded_by(*arguments: str, folder: Path) -> set[str]:
    """The modules that a karat command has loaded when it ends."""
    code = """
        import atexit, pathlib, sys
        atexit.register(lambda: pathlib.Path("modules.txt").write_text("\\n".join(sys.modules)))
        sys.argv = ["karat", *sys.argv[1:]]
        from karat.__main__ import main
        sys.exit(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set((folder / "modules.txt").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("report", "--help")])
def test_help_loads_nothing_heavy(tmp_path, arguments):
    loaded = loaded_by(*arguments, folder=tmp_path)
    assert "karat.errors" in loaded
    assert sorted(loaded & HEAVY) == []


def test_help_of_score_loads_the_kinds_of_datasets_but_nothing_that_computes(tmp_path):
    """Kinds say which files of answers they take."""
    loaded = loaded_by("score", "--help", folder=tmp_path)
    assert sorted(loaded & HEAVY) == ["msgspec", "pydantic", "yaml"]


@pytest.mark.slow
@pytest.mark.needs_kind("study")
def test_what_asks_for_no_sql_needs_no_duckdb(tmp_path):
    """It comes with the extra `query`: a plain installation must list and check without it."""
    (tmp_path / "questions.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n', encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: floor}\nscorers: [equals]\nconditions: {a: {}}\n",
        encoding="utf-8",
    )
    for arguments in (("check", "experiment.yaml"), ("list", "studies"), ("list", "studies", "framing")):
        assert loaded_by(*arguments, folder=tmp_path) & {"duckdb", "_duckdb"} == set()


def test_importing_karat_loads_nothing_heavy(tmp_path):
    code = "import sys, karat; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(set(done.stdout.split()) & {*HEAVY, "click", "asyncio"}) == []


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param("karat.agents.replay", id="replayed answers"),
        pytest.param("karat.cli.reporting, karat.exports.terminal", id="a report of a cached summary"),
    ],
)
def test_what_computes_nothing_loads_no_numpy(tmp_path, modules):
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(set(done.stdout.split()) & {"numpy", "scipy", "_duckdb", "duckdb", "jinja2", "mcp"}) == []


def test_a_run_without_servers_loads_neither_scipy_stats_nor_duckdb_nor_the_mcp_sdk(tmp_path):
    (tmp_path / "questions.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n', encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(
        textwrap.dedent("""
            dataset: {path: questions.jsonl}
            agent: {type: floor}
            judge: {type: overlap}
            conditions:
              a: {system_prompt: Be brief.}
              b: {system_prompt: Be brief.}
        """),
        encoding="utf-8",
    )
    loaded = loaded_by("run", "experiment.yaml", folder=tmp_path)
    assert "karat.execution.runner" in loaded
    assert sorted(loaded & {"scipy.stats", "_duckdb", "duckdb", "mcp", "jinja2", "markdown_it", "karat_viewer"}) == []
