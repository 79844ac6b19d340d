"""Measures how large and how tangled the source is: `python benchmarks/house.py [CHECKOUT]`.

Counts in the syntax tree of every module in `src/karat`, so comments and strings do not matter. Each figure is shown
next to its target.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import _results as results  # beside this file

CORES = ("stats", "numeric", "replication")
KINDS = {"golden", "conversation", "study"}
VALUES = {"Struct": "msgspec", "dataclass": "dataclass", "BaseModel": "pydantic", "NamedTuple": "NamedTuple"}
# Methods of `RunFolder` that go through a journal's lines or events; and names of variables that hold a `RunFolder`.
READS = {"lines", "events", "events_of"}
RUNS = {"run", "_run", "folder", "_folder"}


def modules(root: Path) -> Iterator[tuple[Path, ast.Module, str]]:
    """Each module under `src/karat`: its place in the package, its tree, its text."""
    package = root / "src" / "karat"
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(package), ast.parse(text), text


def private_named_once(tree: ast.Module) -> tuple[int, int]:
    """How many functions and methods are private and used at most once in their module; and how many there are."""
    names, named = [], Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Name):
            named[node.id] += 1
        elif isinstance(node, ast.Attribute):
            named[node.attr] += 1
    private = [name for name in names if name.startswith("_") and not name.startswith("__")]
    return sum(named[name] <= 1 for name in private), len(names)


def kind_comparisons(tree: ast.Module) -> int:
    """The number of comparisons with a kind of dataset, as a text or an attribute: `summary.study is None`."""
    return sum(
        any(_names_kind(leaf) for side in (node.left, *node.comparators) for leaf in ast.walk(side))
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
    )


def _names_kind(node: ast.AST) -> bool:
    """Whether a node names a kind. `turn.golden` is an answer, not a kind."""
    return (isinstance(node, ast.Constant) and node.value in KINDS) or (
        isinstance(node, ast.Attribute) and node.attr in KINDS - {"golden"}
    )


def value_classes(tree: ast.Module) -> Counter[str]:
    """Classes by the library that makes them value classes."""
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            marks = [*node.bases, *node.decorator_list]
            for mark in marks:
                name = mark.func if isinstance(mark, ast.Call) else mark
                last = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
                if last in VALUES:
                    counts[VALUES[last]] += 1
    return counts


def reads_journal(tree: ast.Module) -> bool:
    """Whether a module goes through a journal itself. `next(run.lines(start=…))` only reads one line."""
    single = {id(node.args[0]) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args
              and isinstance(node.func, ast.Name) and node.func.id == "next"}  # fmt: skip
    return any(
        isinstance(node, ast.Call)
        and id(node) not in single
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READS
        and getattr(node.func.value, "attr", getattr(node.func.value, "id", "")) in RUNS
        for node in ast.walk(tree)
    )


def uses_of_any(tree: ast.Module) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("checkout", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    root = options.checkout
    sources = list(modules(root))
    lines = {path: text.count("\n") for path, _, text in sources}
    outside = sum(count for path, count in lines.items() if path.parts[0] not in CORES)
    once, functions = map(sum, zip(*(private_named_once(tree) for _, tree, _ in sources), strict=True))
    # In the pure modules, `study` is the study of a test.
    kinds = {path: kind_comparisons(tree) for path, tree, _ in sources if path.parts[0] not in ("kinds", *CORES)}
    values = sum((value_classes(tree) for _, tree, _ in sources), Counter())
    readers = [path for path, tree, _ in sources if path.parts[0] not in ("index", "journal") and reads_journal(tree)]
    pages = list((root / "docs").rglob("*.md"))
    words = sum(len(re.findall(r"\S+", page.read_text(encoding="utf-8"))) for page in pages)
    decisions = sum(page.parent.name == "decisions" and not page.name.startswith("0000") for page in pages)
    rows = [
        ("lines of Python in src", f"{sum(lines.values()):,} in {len(lines)} files", "58,000"),
        ("  outside stats, numeric, replication", f"{outside:,}", "43,000"),
        ("functions, private and named once", f"{once / functions:.1%} of {functions:,}", "15 %"),
        ("modules that read a journal, outside index", f"{len(readers)}", "0"),
        (
            "comparisons that name a kind, outside kinds",
            f"{sum(kinds.values())} in {sum(map(bool, kinds.values()))}",
            "0",
        ),
        ("classes of values", ", ".join(f"{name} {n}" for name, n in values.most_common()), "msgspec, pydantic"),
        ("`Any`", f"{sum(uses_of_any(tree) for _, tree, _ in sources):,}", "500"),
        ("words of docs", f"{words:,}", "55,000"),
        ("decisions", f"{decisions}", "15"),
    ]
    for name, value, limit in rows:
        print(f"{name:<48} {value:<60} at most {limit}")
    for path in readers:
        print(f"  reads a journal: {path}")
    section = {"title": "The source", "columns": ["", "counted", "at most"], "rows": rows}
    results.write(options.json, section)


if __name__ == "__main__":
    main()
