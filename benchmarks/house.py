"""Measures how large and how legible the source is: `python benchmarks/house.py [CHECKOUT] [--install]`.

Counts in the syntax trees of all modules in `src`, so comments do not matter, and prints each figure beside what is
wanted. The calls of a trial, the functions entered and the help are those of the karat that runs this program, whatever
CHECKOUT is. `--install` also installs the core into an environment of its own and measures that; it takes minutes and
needs a network.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import _results as results  # beside this file

HERE = Path(__file__).resolve().parents[1]
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
RUNS = 5  # of which the calls of a trial are the median
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
CAPS = re.compile(r"_?(MOST|LONGEST|LARGEST|DEEPEST|WIDEST)[A-Z_]*")
# Words of one kind of dataset, and the metrics that only its scorers have.
OF_KINDS = re.compile(
    r"stud(y|ies)|participant|conversation|persona|\b(pas|ecs|numerical_accuracy|turn_accuracy)\b", re.IGNORECASE
)
ENTERED = """
import inspect, os, sys, threading
from pathlib import Path
import karat
from karat.__main__ import main

source = str(Path(karat.__file__).parents[1]) + os.sep + "karat"
entered = set()

def look(frame, event, _):
    code = frame.f_code
    called = event == "call" and code.co_flags & inspect.CO_NEWLOCALS  # a module or a class body is none
    if called and code.co_filename.startswith(source):
        entered.add((code.co_filename, code.co_qualname))

threading.setprofile(look)
sys.setprofile(look)
code = main(sys.argv[1:])
sys.setprofile(None)
print(len(entered), file=sys.stderr)
sys.exit(code)
"""


class Module(NamedTuple):
    """One module: its path below `src`, its text and its tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def core(self) -> bool:
        return self.path.parts[0] == "karat"


def modules(root: Path) -> list[Module]:
    source = root / "src"
    paths = (path for package in sorted(source.glob("karat*")) for path in sorted(package.rglob("*.py")))
    texts = ((path, path.read_text(encoding="utf-8")) for path in paths)
    return [Module(path.relative_to(source), text, ast.parse(text)) for path, text in texts]


def nodes(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def packed(tree: ast.AST) -> tuple[int, int]:
    """Conditional expressions and comprehensions; and statements."""
    inner = statements = 0
    for node in ast.walk(tree):
        inner += isinstance(node, ast.IfExp | COMPREHENSIONS)
        statements += isinstance(node, ast.stmt)
    return inner, statements


def inner_imports(tree: ast.AST) -> int:
    """Imports of karat, or of a package beside it, inside functions."""
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        for node in ast.walk(function):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.partition(".")[0].startswith("karat") for name in names):
                found.add(node)
    return len(found)


def docstrings(tree: ast.AST) -> set[ast.expr]:
    owners = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS))
    firsts = (owner.body[0] for owner in owners if owner.body)
    return {first.value for first in firsts if isinstance(first, ast.Expr)}


def named_by_string(tree: ast.AST, known: set[str]) -> int:
    """Texts that are the name of a module of ours, such as "karat.kinds" or "karat.kinds:of"."""
    return sum(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(":")[0] in known
        for node in ast.walk(tree)
    )


def private_named_once(tree: ast.AST) -> tuple[int, int]:
    """Functions and methods that are private and used at most once in their module; and all of them."""
    functions, used = [], Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            functions.append(node.name)
        elif isinstance(node, ast.Name):
            used[node.id] += 1
        elif isinstance(node, ast.Attribute):
            used[node.attr] += 1
    private = [name for name in functions if name.startswith("_") and not name.startswith("__")]
    return sum(used[name] <= 1 for name in private), len(functions)


def copies_fields(tree: ast.AST) -> int:
    """Calls with five arguments or more like `name=value.name`, all of one value."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(max(Counter(_copied(call)).values(), default=0) >= 5 for call in calls)


def _copied(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        value = keyword.value
        if isinstance(value, ast.Attribute) and value.attr == keyword.arg:
            yield ast.dump(value.value)


def duplicates(sources: list[Module]) -> int:
    """Functions whose body, of 30 nodes or more besides its docstring, stands elsewhere too, word for word."""
    bodies: Counter[str] = Counter()
    for module in sources:
        texts = docstrings(module.tree)
        for node in ast.walk(module.tree):
            if isinstance(node, FUNCTIONS):
                body = [part for part in node.body if not (isinstance(part, ast.Expr) and part.value in texts)]
                if sum(map(nodes, body)) >= 30:
                    bodies["".join(map(ast.dump, body))] += 1
    return sum(count - 1 for count in bodies.values())


def lines_of_kinds(module: Module) -> int:
    """Lines whose names or texts, outside docstrings, are words of one kind of dataset."""
    texts = docstrings(module.tree)
    lines = set()
    for node in ast.walk(module.tree):
        words = [str(getattr(node, field, "") or "") for field in ("id", "attr", "arg", "name", "module")]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in texts:
            words.append(node.value)
        if any(map(OF_KINDS.search, words)):
            lines.add(getattr(node, "lineno", 0))
    return len(lines)


def caps(tree: ast.Module) -> int:
    """Constants of a module that are called MOST…, LONGEST… or the like."""
    targets: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    names = (leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
    return sum(CAPS.fullmatch(name) is not None for name in names)


def entered(folder: Path, *words: str) -> int:
    """How many functions of ours a command enters, in a process of its own."""
    command = [sys.executable, "-c", ENTERED, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(done.stderr.rpartition("\n")[0].rpartition("\n")[2])


def commands_entered() -> tuple[int, int]:
    """By `run` on two questions, and by `report` of the example."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [{"question": f"Say {n}", "answer": str(n)} for n in range(2)]
        (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (folder / "small.yaml").write_text(
            "dataset: {path: questions.jsonl}\nagent: {type: floor}\nscorers: [equals]\n"
            "conditions: {plain: {system_prompt: Be brief.}}\n",
            encoding="utf-8",
        )
        run = entered(folder, "run", "small.yaml", "--results", "small")
        demo = ["run", "examples/support-kb/experiment.yaml", "--results", str(folder / "demo"), "--quiet"]
        subprocess.run([sys.executable, "-m", "karat", *demo], cwd=HERE, check=True, capture_output=True)
        return run, entered(folder, "report", "latest", "--results", "demo")


def one_trial() -> tuple[int, int]:
    """Files and calls of one more trial, as trial_path.py counts them: medians, as the writer's batches differ."""
    from trial_path import karat_run, path_of

    import karat

    found = [path_of("karat", Path(karat.__file__).parent, karat_run) for _ in range(RUNS)]
    return int(median(map(len, found))), int(median(files.total() for files in found))


def first_screen() -> tuple[int, int]:
    """Commands of `karat --help`, and lines of it that are cut off at 80 columns."""
    import click

    from karat.cli import cli

    context = click.Context(cli, info_name="karat", terminal_width=80)
    lines = cli.get_help(context).partition("Start:")[2].splitlines()
    return len(cli.list_commands(context)), sum(line.endswith("...") for line in lines)


def installed_megabytes(root: Path) -> float:
    """What `pip install karat-eval` brings, at the locked versions, without pip and what Python compiles."""
    locked = (root / "requirements" / "core.txt").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        target, versions = Path(name) / "site", Path(name) / "versions.txt"
        versions.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]+", locked, re.MULTILINE)), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(target)]
        subprocess.run([*pip, "--constraint", str(versions), str(root)], check=True)
        return sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) / 1e6


def summed(sources: list[Module], count: Callable[[ast.Module], int]) -> int:
    return sum(count(module.tree) for module in sources)


def measured(root: Path, *, install: bool) -> list[tuple[str, str, str]]:
    """Each figure: its name, its value, and what is wanted."""
    sources = modules(root)
    core = [module for module in sources if module.core]
    size, size_of_core = summed(sources, nodes), summed(core, nodes)
    lines = sum(module.text.count("\n") for module in sources)
    inner, statements = map(sum, zip(*(packed(module.tree) for module in sources), strict=True))
    once, functions = map(sum, zip(*(private_named_once(module.tree) for module in sources), strict=True))
    known = {".".join(module.path.with_suffix("").parts).removesuffix(".__init__") for module in sources} - {"karat"}
    any_ = summed(sources, lambda tree: sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree)))
    pages = [page for page in (root / "docs").rglob("*.md") if page.parent.name != "reference"]
    words = sum(len(re.findall(r"\S+", page.read_text(encoding="utf-8"))) for page in pages)
    guides = sum(page.parent.name == "how-to" for page in pages)
    (files, calls), (run, report), (commands, cut) = one_trial(), commands_entered(), first_screen()
    rows = [
        ("syntax nodes of the core; of all of src", f"{size_of_core:,}; {size:,}", "330,000; 660,000"),
        ("nodes a line", f"{size / lines:.2f}", "6.5"),
        ("conditional expressions, comprehensions a 100 statements", f"{100 * inner / statements:.1f}", "9"),
        ("files; calls of a trial", f"{files}; {calls}", "12; 90"),
        ("functions entered by run; by report", f"{run:,}; {report:,}", "1,100; 650"),
        ("imports of ours inside functions", f"{summed(sources, inner_imports)}", "60"),
        ("modules of ours named by a text", f"{summed(sources, lambda tree: named_by_string(tree, known))}", "0"),
        ("functions that are private and named once", f"{once / functions:.1%} of {functions:,}", "18 %"),
        ("`Any`", f"{any_}", "500"),
        ("calls that copy five fields or more", f"{summed(sources, copies_fields)}", "10"),
        ("functions that stand twice", f"{duplicates(sources)}", "0"),
        ("lines of the core that speak of a kind", f"{sum(map(lines_of_kinds, core))}", "0"),
        ("caps", f"{summed(sources, caps)}", "those at borders"),
        ("commands; help lines cut off", f"{commands}; {cut}", "14; 0"),
        ("words of docs besides the reference; how-to pages", f"{words:,}; {guides}", "45,000; 30"),
    ]
    if install:
        rows.append(("core install without pip, MB", f"{installed_megabytes(root):.0f}", "220"))
    return rows


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("checkout", type=Path, nargs="?", default=HERE)
    parser.add_argument("--install", action="store_true", help="also measure an installation of the core")
    options = parser.parse_args()
    rows = measured(options.checkout, install=options.install)
    for name, value, wanted in rows:
        print(f"{name:<58} {value:<22} at most {wanted}")
    about = "Counts in the syntax trees of the source; `benchmarks/house.py` says how each is counted."
    section = {"title": "The source", "about": about, "columns": ["", "counted", "at most"], "rows": rows}
    results.write(options.json, section)


if __name__ == "__main__":
    main()
