"""Kinds of datasets are apart: karat works without their packages, and with a kind of another distribution.

The commands run as a user runs them, in processes of their own, from a copy of the package.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from tests.karat_viewer.serving import Viewer
from tests.needed_packages import needed_packages
from tests.other_copies import python, stdout_of, told

import karat

pytestmark = pytest.mark.slow

PACKAGE = Path(karat.__file__).resolve().parent
ROOT = PACKAGE.parent.parent
RUNS = ROOT / "tests" / "corpus" / "runs"
OF_KIND = {"study": "framing-designs", "conversation": "recorded-conversations"}
PACKAGES = {"study": "karat_studies", "conversation": "karat_conversations"}
KINDS = [pytest.param(kind, marks=pytest.mark.needs_kind(kind)) for kind in sorted(OF_KIND)]


def copy_without(kind: str, folder: Path) -> Path:
    """A copy of the source without the package of a kind, already compiled; the folder it is imported from."""
    shutil.copytree(PACKAGE.parent, folder / "src", ignore=shutil.ignore_patterns("*.egg-info", PACKAGES[kind]))
    return folder / "src"


@pytest.fixture(scope="module", params=KINDS)
def without(request, tmp_path_factory) -> tuple[str, Path]:
    """A kind, and a copy of the source without its package."""
    return request.param, copy_without(request.param, tmp_path_factory.mktemp("without"))


@pytest.fixture(scope="module")
def with_it_and_without(without, tmp_path_factory) -> tuple[list[str], list[str]]:
    """A report and a query of a run of the kind, and the list of kinds, where its package is and where it is not."""
    kind, source = without
    run = RUNS / OF_KIND[kind]
    commands: list[list[str | Path]] = [
        ["report", run, "--to", "json"],
        ["query", run, "select * from ledger order by all", "--to", "csv"],
        ["list", "kinds"],
    ]
    folder = tmp_path_factory.mktemp("told")
    return told(PACKAGE.parent, folder, *commands), told(source, folder, *commands)


def test_a_run_of_a_kind_that_is_not_installed_is_still_reported(without, with_it_and_without):
    kind, _ = without
    there, here = (json.loads(texts[0]) for texts in with_it_and_without)
    missing = f"the kind of dataset '{kind}' is not installed"
    assert here["headline"] == f"Not analysed: {missing}"
    assert any(warning.startswith(missing) for warning in here["warnings"])
    for same in ("accounts", "total", "conditions", "samples", "failures"):
        assert here[same] == there[same]
    before, after = (
        {(result["metric"], result["condition"]): result["mean"]["value"] for result in report["results"]}
        for report in (there, here)
    )
    assert before.keys() <= after.keys()
    assert kind == "conversation" or before == after  # with the kind rates are over turns, and without over samples
    assert all(0 <= mean <= 1 for metric, mean in after.items() if not metric[0].endswith("operations"))
    assert there[kind] is not None
    assert kind not in here


def reported(path: Path | str, run: Path, folder: Path, forms: list[str]) -> dict[str, Path]:
    """Reports of a run in all forms, written by one process."""
    out = {form: folder / f"report.{form}" for form in forms}
    shown = told(path, folder, *(["report", run, "--to", form, "--out", file] for form, file in out.items()))
    assert list(map(str.strip, shown)) == [str(file) for file in out.values()]
    return out


FORMS = ["terminal", "markdown", "csv", "html"]


@pytest.fixture(scope="module")
def reports(without, tmp_path_factory) -> dict[str, Path]:
    kind, source = without
    return reported(source, RUNS / OF_KIND[kind], tmp_path_factory.mktemp("reports"), FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_every_report_of_such_a_run_says_so(without, reports, form):
    kind, _ = without
    text = reports[form].read_text(encoding="utf-8")
    if form == "csv":
        assert text.count("\n") > 1
    else:
        assert f"'{kind}' is not installed" in re.sub(r"&#39;|&#x27;", "'", text)


def test_such_a_run_is_queried_and_its_kind_is_not_listed(without, with_it_and_without):
    kind, _ = without
    (_, there, every), (_, here, listed) = with_it_and_without
    assert here == there != ""
    assert re.search(rf"^{kind}\b", every, re.MULTILINE)
    assert not re.search(rf"^{kind}\b", listed, re.MULTILINE)
    assert re.search(r"^golden\b", listed, re.MULTILINE)


def test_the_import_contracts_hold_without_the_kind(without, tmp_path):
    _, source = without
    shutil.copy(ROOT / "pyproject.toml", source.parent)
    command = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    stdout_of(python(source, source.parent, "-c", command))


def tree_without(kind: str, folder: Path) -> Path:
    """A copy of the whole tree without the package of a kind, and without the modules of tests that import it."""
    # Mypy's cache comes along: it checks again what has lost an import, in 2 s instead of 60. So does what is compiled.
    left_out = (".git", ".venv", ".[pri]*_cache", ".hypothesis", "results", "build", "dist")
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*left_out))
    shutil.rmtree(folder / "src" / PACKAGES[kind])
    for module in (ROOT / "tests").rglob("*.py"):
        if PACKAGES[kind] in needed_packages(module):
            (folder / module.relative_to(ROOT)).unlink()
    return folder


# One process finds all tests and runs a few, but none of those that only ask what SQL can do.
FEW = """
import sys, pytest

class Few:
    def pytest_collection_modifyitems(self, items):
        places = ("tests/config/", "tests/karat_query/test_tables.py")
        others = ("::test_a_query_", "::test_hostile_")
        few = [item for item in items if item.nodeid.startswith(places)]
        items[:] = [item for item in few if not any(map(item.nodeid.count, others))]

sys.exit(pytest.main(["-p", "no:cacheprovider", "-m", "not slow"], plugins=[Few()]))
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_without_the_kind_passes_lint_and_finds_its_remaining_tests(kind, tmp_path):
    """Mypy in an environment that knows no other copy of the package."""
    tree = tree_without(kind, tmp_path / "tree")
    stdout_of(subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], capture_output=True,
                        text=True, check=False))  # fmt: skip
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    source = tree / "src"
    stdout_of(python(source, tree, "-m", "ruff", "check", "--no-cache", "."))
    stdout_of(python(source, tree, "-m", "ruff", "format", "--no-cache", "--check", "."))
    stdout_of(python(source, tree, "-m", "mypy", "--python-executable", tmp_path / "env" / "bin" / "python"))
    shown = stdout_of(python(source, tree, "-c", FEW))
    assert int(re.findall(r"collected (\d+) items", shown)[0]) > 6000
    assert int(re.findall(r"(\d+) passed", shown)[0]) > 400


TOY = '''
    """Words, each asked twice."""

    from __future__ import annotations

    from collections.abc import Iterable, Iterator, Sequence
    from hashlib import sha256
    from pathlib import Path

    from pydantic import BaseModel, ConfigDict

    from karat.analysis.model import Summary
    from karat.analysis.parts import AnalysisInput, Part
    from karat.blocks import Column, Count, KindBlocks, Row, Section, Table
    from karat.kinds import Column as TableColumn
    from karat.kinds import Dataset, Kind, Preset, TableInfo, sample_digest
    from karat.kind_views import KindPage, SampleList, Views
    from karat.records import Answer, Sample, Score, Turn


    class WordsPart(Part, frozen=True, kw_only=True, tag="words"):
        """How many words were asked."""

        words: int

        def headline(self) -> str:
            return f"{self.words} words were asked"


    class WordsViews(Views):
        def listing(self, samples: Iterable[tuple[int, Sample]]) -> SampleList:
            cells = {row: ((sample.id[0].upper(), ""),) for row, sample in samples}
            return SampleList(unit="word", heads=("initial",), cells=cells)

        def links(self, summary: Summary) -> tuple[str, list[tuple[str, str]]]:
            return "Words", [("words", "all")]

        def page(self, summary: Summary, run: str, group: str, name: str) -> KindPage | None:
            if (group, name) != ("words", "all"):
                return None
            sections = Words.sections(summary).sections
            return KindPage(name=name, title="Every word", facts=(("Run", run),), samples={}, sections=sections)


    class Words(Kind):
        """One word a line."""

        judged = False
        scorer = "equals"
        unit = "word"
        parts = (WordsPart,)
        tables = (
            TableInfo(
                name="letters",
                rows="one row per answer and score",
                columns=(
                    TableColumn(name="word", type="text", meaning="which word was asked"),
                    TableColumn(name="characters", type="whole", meaning="of the answer; NULL: a score"),
                    TableColumn(name="scorer", type="text", meaning="whose score it is; NULL: an answer"),
                ),
            ),
        )

        class Options(BaseModel):
            model_config = ConfigDict(extra="forbid")

            ending: str = "?"  # what follows each word

        def __init__(self, options: Options) -> None:
            self._options = options

        def load(self, path: Path) -> Dataset:
            data = path.read_bytes()
            samples = [
                Sample(
                    id=word, position=at, digest=sample_digest(word),
                    turns=(Turn(question=word + self._options.ending, golden=word), Turn(question="again", open=True)),
                )
                for at, word in enumerate(data.decode().split())
            ]
            return Dataset(kind="words", path=path, sha256=sha256(data).hexdigest(), samples=samples)

        @staticmethod
        def looks_like(path: Path) -> bool:
            return path.suffix == ".words"

        @staticmethod
        def next_turn(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
            return f"you said {replies[turn - 1]}, sure?"

        @staticmethod
        def presets() -> dict[str, Preset]:
            return {"brief": Preset(name="brief", summary="One word", text="Answer with one word.")}

        @staticmethod
        def analyse(given: AnalysisInput) -> WordsPart:
            return WordsPart(words=len(given.index.samples))

        @staticmethod
        def fill(table: str, sample: Sample, record: Answer | Score) -> Iterator[dict[str, object]]:
            assert table == "letters"
            if isinstance(record, Answer):
                yield {"word": sample.id, "characters": sum(len(reply.text) for reply in record.replies)}
            else:
                yield {"word": sample.id, "scorer": record.scorer}

        @staticmethod
        def views() -> WordsViews:
            return WordsViews()

        @staticmethod
        def sections(summary: Summary) -> KindBlocks:
            part = summary.part(WordsPart)
            rows = () if part is None else (Row(name="all", cells=(Count(part.words),)),)
            table = Table(caption="Words asked", columns=(Column("what"), Column("words")), rows=rows, brief=True)
            return KindBlocks(sections=(Section(id="words", title="Words", blocks=(table,)),))
'''

EXPERIMENT = """
    name: words
    dataset: {kind: words, path: some.words, ending: "!"}
    agent: {type: python, target: "agent:answer"}
    conditions: {a: {preset: brief}, b: {}}
    scorers: [equals]
    execution: {num_repetitions: 2}
"""

AGENT = """
    def answer(question, system_prompt):
        return f"{question} {system_prompt}"
"""


@pytest.fixture(scope="module")
def distribution(tmp_path_factory) -> Path:
    """A path with karat and an installed distribution that brings a kind in one folder."""
    site = tmp_path_factory.mktemp("site")
    (site / "words_kind").mkdir()
    (site / "words_kind" / "__init__.py").write_text(textwrap.dedent(TOY).lstrip(), encoding="utf-8")
    info = site / "words-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: words\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[karat.kinds]\nwords = words_kind:Words\n", encoding="utf-8")
    return Path(os.pathsep.join(map(str, (PACKAGE.parent, site))))


@pytest.fixture(scope="module")
def finished(distribution, tmp_path_factory) -> Path:
    """A folder in which an experiment over the kind was checked and run."""
    folder = tmp_path_factory.mktemp("words")
    for name, text in (("experiment.yaml", EXPERIMENT), ("agent.py", AGENT), ("some.words", "one\ntwo\n")):
        (folder / name).write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    told(distribution, folder, ["check", "experiment.yaml"], ["run", "experiment.yaml"])
    return folder


def test_a_kind_of_another_package_is_checked_and_run(distribution, finished):
    wrong = EXPERIMENT.replace("ending", "endin").replace("brief", "breif")
    (finished / "wrong.yaml").write_text(textwrap.dedent(wrong), encoding="utf-8")
    done = python(distribution, finished, "-m", "karat", "check", "wrong.yaml")
    assert done.returncode == 2
    assert "did you mean 'ending'?" in done.stderr
    assert "did you mean 'brief'?" in done.stderr
    (run,) = (finished / "results").iterdir()
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    said = {(event["sample"], event["condition"]): [reply["text"] for reply in event["replies"]]
            for event in events if event["event"] == "answer"}  # fmt: skip
    assert said["one", "a"] == [
        "one! Answer with one word.", "you said one! Answer with one word., sure? Answer with one word."
    ]  # fmt: skip
    assert said["two", "b"] == ["two! ", "you said two! , sure? "]


FORMS_OF_WORDS = ["terminal", "markdown", "html", "json"]


@pytest.fixture(scope="module")
def reports_of_words(distribution, finished) -> dict[str, Path]:
    (run,) = (finished / "results").iterdir()
    return reported(distribution, run, finished, FORMS_OF_WORDS)


@pytest.mark.parametrize("form", FORMS_OF_WORDS)
def test_it_is_reported_in_every_form(reports_of_words, form):
    text = reports_of_words[form].read_text(encoding="utf-8")
    assert "2 words were asked" in text
    if form == "json":
        assert json.loads(text)["words"] == {"type": "words", "words": 2}
    else:
        assert "Words asked" in text


def test_it_is_queried(distribution, finished):
    (run,) = (finished / "results").iterdir()
    select = "select sample, count(*) as n from replies group by sample order by sample"
    table = stdout_of(python(distribution, finished, "-m", "karat", "query", run, select, "--to", "csv"))
    assert table.splitlines() == ["sample,n", "one,8", "two,8"]


def test_its_own_table_is_listed_queried_and_written(distribution, finished):
    (run,) = (finished / "results").iterdir()
    first = """select run, sample, condition, repetition, word, characters, line from letters
               where scorer is null order by line limit 1"""
    count = "select scorer, count(*) as n, count(distinct trial) as trials from letters group by scorer order by all"
    listed, selected, counted, _ = told(
        distribution, finished, ["query", run], ["query", run, first, "--json"],
        ["query", run, count, "--to", "csv"], ["query", run, "--to", "csv", "--out", "tables"],
    )  # fmt: skip
    assert "letters: one row per answer and score" in listed
    (row,) = json.loads(selected)["rows"]
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    answer = json.loads(lines[row["line"] - 1])
    assert row == {
        "run": run.name, "word": row["sample"], "line": row["line"],
        "characters": sum(len(reply["text"]) for reply in answer["replies"]),
        **{name: answer[name] for name in ("sample", "condition", "repetition")},
    }  # fmt: skip
    assert counted.splitlines() == ["scorer,n,trials", "equals,8,8", ",8,8"]
    assert (finished / "tables" / "letters.csv").read_text(encoding="utf-8").count("\n") == 17


def test_without_the_package_the_run_has_the_tables_of_every_run(finished):
    (run,) = (finished / "results").iterdir()
    assert "letters" not in stdout_of(python(PACKAGE.parent, finished, "-m", "karat", "query", run))
    done = python(PACKAGE.parent, finished, "-m", "karat", "query", run, "select * from letters")
    assert (done.returncode, "there is no table 'letters'" in done.stderr) == (2, True)


def test_the_viewer_shows_its_column_and_its_page(distribution, finished):
    (run,) = (finished / "results").iterdir()
    with Viewer(finished / "results", path=distribution) as viewer:
        viewer.enter()
        samples = viewer.get(f"/runs/{run.name}/samples").text
        assert '<th scope="col">initial</th>' in samples
        assert re.findall(r'data-head="initial">(?:<bdi>)?(\w)', samples) == ["O", "T"]
        overview = viewer.get(f"/runs/{run.name}").text
        assert f'href="/runs/{run.name}/words/all"' in overview
        page = viewer.get(f"/runs/{run.name}/words/all")
        assert page.status == 200
        assert "Every word" in page.text
        assert "Words asked" in page.text
        assert viewer.get(f"/runs/{run.name}/words/none").status == 404
