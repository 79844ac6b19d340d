"""What STYLE.md asks for and a program can see."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import karat

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "karat"
NOT_OURS = {"results", "build", "dist", "__pycache__"}
HIDDEN = {".ci", ".github"}
LONGEST_FUNCTION = 80
LONGEST_FILE = 1000


@cache
def tree() -> list[Path]:
    """Every file that belongs to the project."""
    found = []
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.is_dir():
                hidden = path.name.startswith(".") and path.name not in HIDDEN
                if not hidden and path.name not in NOT_OURS and path.suffix != ".egg-info":
                    folders.append(path)
            elif path.suffix != ".pyc":
                found.append(path)
    return found


@cache
def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def test_no_file_is_too_long_to_be_read():
    lengths = {
        place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in tree() if path.suffix == ".py"
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_long_functions_are_confessed():
    """STYLE.md ends with our present violations: no function is missing there, and none is there for nothing."""
    found = set()
    for path in modules():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _length(node, lines) > LONGEST_FUNCTION:
                found.add(f"{place(path)}: {node.name}")
    violations = (ROOT / "STYLE.md").read_text(encoding="utf-8").rpartition("\n## ")[2]
    assert found == set(re.findall(r"`(src/\S+: \w+)`", violations))


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Lines that are not blank, less those of the docstring."""
    first, last = function.lineno, function.end_lineno or 0
    length = sum(bool(line.strip()) for line in lines[first - 1 : last])
    text = function.body[0]
    if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
        length -= sum(bool(line.strip()) for line in lines[text.lineno - 1 : text.end_lineno or 0])
    return length


@pytest.mark.needs_kind("study")
def test_broad_catches_are_those_that_style_lists():
    """By module and function: `except Exception`, `suppress(Exception)` and `Caught`."""
    found = {f"{place(path)}: {name}" for path in modules() for name in _broad_catches(parsed(path), ())}
    listed = (ROOT / "STYLE.md").read_text(encoding="utf-8").partition("## Broad catches")[2].partition("\n## ")[0]
    assert found == set(re.findall(r"`(src/\S+: [\w.]+)`", listed))


def _broad_catches(tree: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
    """The dotted name of the function around each broad catch."""
    for node in ast.iter_child_nodes(tree):
        broad = isinstance(node, ast.ExceptHandler) and _is_broad(node.type)
        if isinstance(node, ast.Call):
            called = _called(node)
            broad = called == "Caught" or (called == "suppress" and any(map(_is_broad, node.args)))
        if broad:
            yield ".".join(inside)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _broad_catches(node, (*inside, node.name))
        else:
            yield from _broad_catches(node, inside)


def _called(call: ast.Call) -> str:
    """The last part of the name of a function that is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(map(_is_broad, caught.elts))
    return caught is None or ast.unparse(caught) in {"Exception", "BaseException"}


@pytest.mark.parametrize("path", modules(), ids=place)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(parsed(path)), "no docstring"


def declared(module: ast.Module) -> set[str] | None:
    """The names in a module's `__all__`; None without one."""
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


@pytest.mark.parametrize("path", modules(), ids=place)
def test_only_packages_plug_ins_and_public_modules_have_an_all(path):
    families = {"agents", "executors", "exports", "importers", "names", "rubrics", "scorers", "setups"}
    families |= {"column_names", "context_parts", "layouts", "mcp_parts", "run_files"}
    public = (
        path.name == "__init__.py"
        or path.parent.name in families
        or path.name in {"errors.py", "charts.py", "on_demand.py"}
    )
    assert public or declared(parsed(path)) is None


@pytest.mark.parametrize("family", ["agents", "exports", "importers", "scorers"])
def test_a_plug_in_declares_one_class(family):
    for path in (PACKAGE / family).glob("[a-z]*.py"):
        assert len(declared(parsed(path)) or ()) >= 1, place(path)


def test_the_public_names_are_few_and_resolve():
    assert len(karat.__all__) <= 30
    assert {name for name in karat.__all__ if getattr(karat, name) is None} == set()
    assert set(karat.__all__) <= set(dir(karat))


def test_numbers_are_written_by_formats_alone():
    spec = re.compile(r"(,|[eEfFG%])$")
    percent = re.compile(r"%[-+ #0]*\d*\.\d+[efgEFG]")
    found = []
    for path in modules():
        if path == PACKAGE / "formats.py":
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                text = ast.unparse(node.format_spec)[2:-1]
                if spec.search(text):  # not `:g`, which an error message may use: it rounds nothing away
                    found.append(f"{place(path)}:{node.lineno} :{text}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and percent.search(node.value):
                found.append(f"{place(path)}:{node.lineno} {node.value!r}")
    assert found == []


def test_an_exemption_names_its_rule_and_its_reason():
    exemption = re.compile(r"#\s*(?:noqa|type:\s*ignore)(.*)")
    reasoned = re.compile(r"^(?:: ?[A-Z]+\d+(?:, ?[A-Z]+\d+)*|\[[\w, -]+\])[\s#:–—-]+\S.*\w")
    found = [
        f"{place(path)}:{number}: {line.strip()}"
        for path in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (exempt := exemption.search(line)) and not reasoned.match(exempt[1])
    ]
    assert found == []


def test_tests_patch_nothing():
    patches = re.compile(r"monkeypatch\.(?:set|del)(?:attr|item)|\bunittest\.mock\b|\bmock\.patch\b|\bMagic" + "Mock")
    found = [
        place(path) for path in (ROOT / "tests").rglob("*.py") if patches.search(_text(path)) and path != Path(__file__)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a path of one machine", r"(?<![\w.$}])/(?:root|home/\w+|Users/\w+|opt|work)/\w"),
        (
            "the address of a package index",
            r"py" + r"pi\.org|python" + r"hosted|--(?:extra-)?index" + r"-url|--find" + r"-links",
        ),
        ("postponed work", r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b"),
        ("an unresolved merge", r"^(?:<{7}|>{7}) "),
    ],
)
def test_the_tree_does_not_hold(what, pattern):
    found = [
        f"{place(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in tree()
        for text in [_text(path)]
        for match in re.finditer(pattern, text, re.MULTILINE)
    ]
    assert found == [], what


@cache
def _text(path: Path) -> str:
    raw = path.read_bytes()
    return "" if b"\0" in raw else raw.decode("utf-8", "replace")


def test_the_version_stands_in_one_way_only():
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    assert project["version"] == karat.__version__


def test_what_is_imported_is_declared():
    """A library that comes along with another one can leave with it, too."""
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    declared = {_name(wanted) for wanted in [*project["dependencies"], *extras["all"], *extras["ray"]]}
    homes = packages_distributions()
    for path in modules():
        for module in _imported(parsed(path)):
            if module not in sys.stdlib_module_names | {path.name for path in SOURCE.glob("karat*")}:
                found = {_name(home) for home in homes.get(module, [module])}
                assert found & declared or module in OPTIONAL, f"{place(path)} imports {module}"


OPTIONAL = {
    "_duckdb",  # part of duckdb, which lists only its packages
    "compression",  # Python's own from 3.14 on
    "jwt",  # comes with mcp, whose OAuth signs with it
    "pandas",  # used where somebody has it: `Summary.to_frame`
    "pytest",  # imports the plug-in itself
    "uvicorn",  # comes with mcp, as what its HTTP servers run on
}


def _imported(tree: ast.Module) -> set[str]:
    """Top-level names of the modules that are imported anywhere in a file."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
        elif isinstance(node, ast.Call) and _called(node) == "import_module" and node.args:
            first = node.args[0]
            names |= {str(first.value)} if isinstance(first, ast.Constant) else set()
    return {name.partition(".")[0] for name in names}


def test_the_extra_all_is_everything_but_dev_and_ray():
    extras = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    everything = {item for name, items in extras.items() if name not in {"all", "dev", "ray"} for item in items}
    assert set(extras["all"]) == everything


def pins(name: str) -> dict[str, list[str]]:
    """Requirement → hashes, of a lock."""
    locked: dict[str, list[str]] = {}
    for line in _text(ROOT / "requirements" / name).splitlines():
        if line.startswith("    --hash=sha256:"):
            locked[next(reversed(locked))].append(line)
        elif not line.lstrip().startswith("#"):
            locked[line.removesuffix(" \\")] = []
    return locked


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "requirements").glob("*.txt")))
def test_a_lock_pins_everything_with_hashes_and_names_no_index(name):
    for requirement, hashes in pins(name).items():
        assert re.fullmatch(r"[a-z0-9.-]+==[\w.]+( ; .+)?", requirement), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes), requirement


def test_locks_agree():
    bare = {name: {line.partition(" ;")[0] for line in pins(name)} for name in ("core.txt", "all.txt", "dev.txt")}
    assert bare["core.txt"] <= bare["all.txt"] <= bare["dev.txt"]


def test_locks_hold_what_the_project_and_its_extras_ask_for():
    project = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]
    extras, core = project["optional-dependencies"], project["dependencies"]
    wanted = {
        ("core.txt",): [*core, "hatchling"],
        ("all.txt",): [*core, *extras["all"], "hatchling"],
        ("dev.txt",): [*core, *extras["all"], *extras["dev"]],
        ("all.txt", "ray.txt"): [*core, *extras["ray"]],
    }
    for names, requirements in wanted.items():
        locked: dict[str, list[str]] = {}
        for pinned in (Requirement(line) for name in names for line in pins(name)):
            locked.setdefault(pinned.name, []).append(next(iter(pinned.specifier)).version)
        for requirement in map(Requirement, requirements):
            versions = locked.get(_name(requirement.name))
            assert versions, f"{requirement} is not in {names}"
            assert all(requirement.specifier.contains(version) for version in versions), requirement


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~\[ ;]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_each_line_of_the_threat_model_names_tests_that_exist():
    rows = [line for line in _text(ROOT / "SECURITY.md").splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 10
    for row in rows:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", row)
        assert named, row
        for file, name in named:
            functions = {node.name for node in ast.walk(parsed(ROOT / file)) if isinstance(node, ast.FunctionDef)}
            assert name in functions, f"{file} has no {name}"
