"""Documentation is code: its links lead somewhere, its examples run, its generated pages are fresh."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.needed_packages import EVERY_PACKAGE

import karat
from karat import errors
from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition, McpServer
from karat.redact import Redactor

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SKIPPED = {"results", "golden", "build"}
UNCHECKED = re.compile(r"<!-- not run: \w[^>]* -->\s*\Z")  # in the line above a block; gives the reason


@cache
def markdown() -> list[Path]:
    """Of all folders but those in which nothing is written by hand, which hold most files."""
    top = [path for path in ROOT.iterdir() if not path.name.startswith(".")]
    within = [path for folder in top for path in folder.rglob("*.md")]
    return sorted(path for path in [*ROOT.glob("*.md"), *within] if SKIPPED.isdisjoint(path.relative_to(ROOT).parts))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """One fenced block: ```language file=name."""

    language: str
    file: str | None
    text: str
    line: int
    checked: bool

    @property
    def name(self) -> str:
        return f"line {self.line}"


def blocks(path: Path, *languages: str) -> Iterator[Block]:
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^( *)```(\w+)(?: file=(\S+))?\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if match[2] in languages:
            body = "".join(line.removeprefix(match[1]) for line in match[4].splitlines(keepends=True))
            checked = UNCHECKED.search(text[: match.start()]) is None
            yield Block(match[2], match[3], body, text.count("\n", 0, match.start()) + 1, checked)


def anchors(path: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.needs_package(*EVERY_PACKAGE)
@pytest.mark.parametrize("page", markdown(), ids=place)
@pytest.mark.needs_kind("study", cases="examples/(framing|trust-pairs)")
def test_links_lead_somewhere(page):
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    broken = []
    for target in re.findall(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)", prose) + re.findall(
        r"<img[^>]+src=\"([^\"]+)\"", prose
    ):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.is_relative_to(ROOT) or not path.exists():
            broken.append(target)
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            broken.append(f"{target}: no such heading")
    assert broken == []


@pytest.mark.needs_kind("study", "conversation")
def test_generated_pages_say_what_the_code_says():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_every_error_has_its_paragraph():
    page = anchors(ROOT / "docs" / "reference" / "errors.md")
    slugs = {thing.slug for thing in vars(errors).values() if isinstance(thing, type) and hasattr(thing, "slug")}
    assert slugs <= page


def test_every_option_and_plugin_is_explained():
    """A line that ends with its dash is an option without an explanation."""
    bare = [
        f"{place(page)}: {row}"
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for row in re.findall(r"^\* `.*–\s*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert bare == []


def test_the_index_lists_every_page_once():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in markdown() if page.is_relative_to(ROOT / "docs")}
    listed = re.findall(r"\]\(([^)]+)\)", index)
    of_users = {page for page in pages if not page.startswith("decisions/")}
    assert sorted(listed) == sorted(of_users - {"README.md"})


def test_every_decision_is_on_the_site():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    decisions = (ROOT / "docs" / "decisions").glob("[0-9]*.md")
    assert {page.name for page in decisions if f"- decisions/{page.name}\n" not in listed} <= {"0000-template.md"}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_no_other_server(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: the extra dev has it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    loads = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?(?:https?:)?//")
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    assert [name for name, text in pages.items() if loads.search(text)] == []
    assert "Wilson (1927)" in pages["reference/statistics.html"]


def test_decisions_are_numbered_and_say_what_would_change_our_mind():
    folder = ROOT / "docs" / "decisions"
    numbers = []
    for page in sorted(folder.glob("*.md")):
        match = re.fullmatch(r"(\d{4})-[a-z0-9-]+\.md", page.name)
        assert match, f"{page.name}: expected NNNN-title.md"
        assert "change our mind" in page.read_text(encoding="utf-8"), page.name
        numbers.append(match[1])
    assert len(set(numbers)) == len(numbers)


def test_changelog_fragments_are_named_as_their_readme_says():
    code = (
        "import sys; sys.path.insert(0, 'scripts'); import changelog; changelog.fragments(changelog.ROOT / 'changes')"
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Examples ---------------------------------------------------------------------------------------------------------

QUESTIONS = [
    {"id": "q1", "question": "What is the capital of France?", "answer": "Paris is the capital of France."},
    {"id": "q2", "question": "How many minutes has an hour?", "answer": "An hour has 60 minutes."},
]
BASE = {
    "name": "example",
    "dataset": {"kind": "golden", "path": "questions.jsonl"},
    "agent": {"type": "floor"},
    "judge": {"type": "overlap"},
    "conditions": {"baseline": {"system_prompt": "Be brief."}, "with-docs": {"system_prompt": "Use the docs."}},
    "execution": {"num_repetitions": 2},
}


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """Where examples run: an experiment of two questions, and its dataset."""
    lines = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
    (tmp_path / "questions.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(BASE, sort_keys=False), encoding="utf-8")
    return tmp_path


def run(code: str, folder: Path, *arguments: str) -> None:
    """Runs a program in a process of its own, which must end well."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        pytest.fail(done.stderr, pytrace=False)


def pages_with(language: str) -> list[Path]:
    return [page for page in markdown() if page.parent.name != "reference" and any(blocks(page, language))]


def write_files(page: Path, folder: Path) -> None:
    """What a page shows as a file: blocks marked ```python file=name.py, and the modules that its experiments name."""
    for block in blocks(page, "python", "yaml", "json", "jsonl", "text"):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
    shown = [block.text for block in blocks(page, "python")]
    text = "".join(block.text for block in blocks(page, "yaml"))
    for module, name in re.findall(r"\b(\w+):([A-Za-z]\w+)", text):
        path = folder / f"{module}.py"
        defining = [one for one in shown if re.search(rf"^(?:async )?(?:def|class) {name}\b", one, re.MULTILINE)]
        if defining and not path.exists():
            path.write_text(defining[0], encoding="utf-8")


def test_the_guides_mcp_server_answers_as_it_is_pasted(workplace):
    write_files(ROOT / "docs" / "how-to" / "measure-an-mcp-server.md", workplace)
    (workplace / "docs").mkdir(exist_ok=True)
    (workplace / "docs" / "lamps.md").write_text("# Lamps\n\nA lamp burns for six hours.\n", encoding="utf-8")
    server = McpServer(name="docs", type="stdio", command="python", args=("docs_server.py",), env={"INDEX": "./docs"})
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=(server,))

    async def found() -> str | None:
        async with (
            Toolbox((server,), redact=Redactor({}), folder=workplace) as toolbox,
            toolbox.open(condition) as tools,
        ):
            return (await tools.call("docs", "search", {"query": "How long does a lamp burn?"})).result

    assert (asyncio.run(found()) or "").strip() == "A lamp burns for six hours."


@pytest.mark.quick(4)
@pytest.mark.parametrize("page", pages_with("python"), ids=place)
@pytest.mark.needs_kind("study", cases="write-a-study")
def test_python_examples_run(page, workplace):
    """The blocks of a page run in order, as one program, beside an experiment.yaml and its dataset."""
    write_files(page, workplace)
    program = []
    for block in blocks(page, "python"):
        compile(block.text, f"{place(page)}, {block.name}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if block.checked and not block.file:
            program.append(f"# {block.name}\n{block.text}")
    run("\n".join(program), workplace)


def test_the_readmes_example_runs_as_it_is_pasted(tmp_path):
    """In an empty folder: the example brings its own data."""
    (example,) = blocks(ROOT / "README.md", "python")
    run(example.text, tmp_path)
    answers = [json.loads(line)["question"] for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    assert len(answers) == 2


@pytest.mark.slow
@pytest.mark.needs_kind("study", "conversation")
def test_the_tutorial_shows_what_its_commands_print():
    command = [sys.executable, ROOT / "docs" / "outputs.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


LOAD = """
import sys
import karat
for path in sys.argv[2:]:
    karat.load(path, env=dict.fromkeys(sys.argv[1].split(), "a-value-of-some-length"))
"""


@pytest.mark.quick(5)
@pytest.mark.needs_package(*EVERY_PACKAGE)
@pytest.mark.parametrize("page", [*pages_with("yaml"), ROOT / "docs" / "reference" / "experiment-file.md"], ids=place)
@pytest.mark.needs_kind("study", cases="check-for-memory|compare-agent-designs|run-human-studies")
@pytest.mark.needs_kind("conversation", cases="prepare-conversations|score-conversations")
def test_experiment_examples_are_valid(page, workplace, monkeypatch):
    """A block may be a whole experiment file or some of its keys; what it leaves out is taken from a valid one."""
    write_files(page, workplace)
    names: set[str] = set()
    paths = []
    for block in blocks(page, "yaml"):
        content = yaml.safe_load(block.text)
        if not block.checked or not isinstance(content, dict):
            continue
        whole = {**BASE, **content}
        dataset = workplace / str(whole["dataset"].get("path", "questions.jsonl"))
        if not dataset.exists():
            dataset.parent.mkdir(parents=True, exist_ok=True)
            dataset.write_bytes((workplace / "questions.jsonl").read_bytes())
        path = workplace / f"line-{block.line}.yaml"
        complete = {"dataset", "agent", "conditions"} <= set(content)
        path.write_text(block.text if complete else yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
        paths.append(path.name)
        names |= set(re.findall(r"(?:\$\{|_env: )(\w+)", block.text))
    if any(workplace.glob("*.py")):  # that two pages may call alike
        run(LOAD, workplace, " ".join(sorted(names)), *paths)
        return
    monkeypatch.chdir(workplace)
    for path in paths:
        karat.load(path, env=dict.fromkeys(names, "a-value-of-some-length"))


def with_doctests() -> list[str]:
    paths = [path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")]
    return sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in paths)


@pytest.mark.parametrize("module", with_doctests())
def test_examples_in_docstrings_hold(module):
    result = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.attempted > 0
    assert result.failed == 0
