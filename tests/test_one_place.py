"""A plug-in is one file. A toy of each family is dropped into a copy of the package, and the rest follows by itself.

The commands run as a user runs them, in processes of their own, from that copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.needed_packages import EVERY_PACKAGE

import karat

pytestmark = pytest.mark.slow

PACKAGE = Path(karat.__file__).resolve().parent
ROOT = PACKAGE.parent.parent

TOYS = {
    "agents": '''
        """Says it back."""

        from __future__ import annotations

        from typing import Any

        from pydantic import BaseModel, ConfigDict

        from karat.records import Reply

        __all__ = ["Toy"]


        class Toy:
            """Says the question back."""

            class Options(BaseModel):
                model_config = ConfigDict(extra="forbid")

                loudness: int = 1  # how many exclamation marks follow

            def __init__(self, options: Options) -> None:
                self._end = "!" * options.loudness

            async def ask(self, condition: Any, sample: Any, turn: Any, history: Any) -> Reply:
                return Reply(text=turn.question + self._end, dollars=0.0)
    ''',
    "scorers": '''
        """Counts."""

        from __future__ import annotations

        from typing import Any

        from pydantic import BaseModel, ConfigDict

        __all__ = ["Toy"]


        class Toy:
            """Counts the exclamation marks of an answer."""

            class Options(BaseModel):
                model_config = ConfigDict(extra="forbid")

                factor: float = 1.0  # what each of them counts

            def __init__(self, options: Options) -> None:
                self._factor = options.factor

            def score(self, sample: Any, answer: Any) -> float:
                return self._factor * answer.text.count("!")
    ''',
    "kinds": '''
        """A line is a question."""

        from __future__ import annotations

        import hashlib
        from pathlib import Path

        from pydantic import BaseModel, ConfigDict

        from karat.kinds import Dataset, sample_digest
        from karat.records import Sample, Turn

        __all__ = ["Toy"]


        class Toy:
            """Every line of a text file is a question."""

            judged = False

            class Options(BaseModel):
                model_config = ConfigDict(extra="forbid")

                ending: str = "?"  # what is added to each line

            def __init__(self, options: Options) -> None:
                self._end = options.ending

            def load(self, path: Path) -> Dataset:
                raw = path.read_bytes()
                samples = [
                    Sample(id=str(n), position=n, digest=sample_digest(line), turns=(Turn(question=line + self._end),))
                    for n, line in enumerate(raw.decode().splitlines())
                ]
                return Dataset(kind="toy", path=path, sha256=hashlib.sha256(raw).hexdigest(), samples=samples)
    ''',
    "importers": '''
        """One file."""

        from __future__ import annotations

        from collections.abc import Iterable, Sequence
        from pathlib import Path

        from pydantic import BaseModel, ConfigDict

        from karat.importers import Findings, ImportedRun, ImportedTrial
        from karat.records import Reply

        __all__ = ["Toy"]


        class Toy:
            """Reads one answer per line."""

            class Options(BaseModel):
                model_config = ConfigDict(extra="forbid")

                name: str = "toy run"  # what the run is called

            def __init__(self, options: Options) -> None:
                self._name = options.name

            @staticmethod
            def recognizes(path: Path, head: bytes) -> bool:
                return False

            def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
                lines = [line for path in paths for line in path.read_text().splitlines()]
                trials = [
                    ImportedTrial(sample=line, question=line, condition="toy", repetition=0, reply=Reply(text=line))
                    for line in lines
                ]
                yield ImportedRun(name=self._name, tool="toy", trials=trials)
    ''',
    "exports": '''
        """One line."""

        from __future__ import annotations

        from typing import Any

        from pydantic import BaseModel, ConfigDict

        __all__ = ["Toy"]


        class Toy:
            """One line that says how many samples there are."""

            class Options(BaseModel):
                model_config = ConfigDict(extra="forbid")

                greeting: str = "toy report"  # what the line begins with

            def __init__(self, options: Options) -> None:
                self._greeting = options.greeting

            def render(self, summary: Any, run: Any) -> dict[str, str]:
                samples = sum(1 for _ in run.samples())
                return {"toy.txt": f"{self._greeting}: {samples} samples\\n"}
    ''',
}

EXPERIMENT = """
    dataset: {kind: toy, path: lines.txt, ending: " please?"}
    agent: {type: toy, loudness: 2}
    scorers: [{type: toy, factor: 10}]
    conditions:
      a: {system_prompt: Be brief.}
      b: {system_prompt: Be loud., agent: {loudness: 3}}
    execution: {num_repetitions: 2}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of its docs generator, with one more file in each family."""
    folder = tmp_path_factory.mktemp("house")
    for package in PACKAGE.parent.glob("karat*"):
        shutil.copytree(package, folder / package.name)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for family, source in TOYS.items():
        (folder / "karat" / family / "toy.py").write_text(textwrap.dedent(source).lstrip(), encoding="utf-8")
    return folder


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text("first\nsecond\n", encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(textwrap.dedent(EXPERIMENT), encoding="utf-8")
    return tmp_path


def python(house: Path, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(house)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def summary_of(family: str) -> str:
    """The first line of the toy's docstring."""
    return TOYS[family].partition("class Toy:")[2].split('"""')[1]


@pytest.mark.parametrize("family", TOYS)
def test_it_is_listed(house, tmp_path, family):
    done = python(house, tmp_path, "-m", "karat", "list", family)
    assert done.returncode == 0, done.stderr
    assert "toy" in done.stdout
    assert summary_of(family) in " ".join(done.stdout.split())


def test_its_options_are_checked(house, workplace):
    wrong = (
        EXPERIMENT.replace("loudness: 2", "loudnes: 2").replace("factor: 10", "factor: many").replace("ending", "end")
    )
    (workplace / "wrong.yaml").write_text(textwrap.dedent(wrong), encoding="utf-8")
    done = python(house, workplace, "-m", "karat", "check", "wrong.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "did you mean 'loudness'?" in done.stderr
    assert "did you mean 'ending'?" in done.stderr
    assert "scorers.0.factor" in done.stderr


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_it_is_documented(house):
    done = python(house, house, house / "docs" / "generate.py")
    assert done.returncode == 0, done.stderr
    explained = {
        "agents": "* `loudness` (whole number, default `1`) – how many exclamation marks follow",
        "scorers": "* `factor` (number, default `1.0`) – what each of them counts",
        "kinds": '* `ending` (text, default `"?"`) – what is added to each line',
        "importers": '* `name` (text, default `"toy run"`) – what the run is called',
        "exports": '* `greeting` (text, default `"toy report"`) – what the line begins with',
    }
    for family, row in explained.items():
        page = (house / "docs" / "reference" / f"{family}.md").read_text(encoding="utf-8")
        assert f"## toy\n\n{summary_of(family)}\n\n" in page
        assert row in page


def test_it_runs_and_reports(house, workplace):
    done = python(house, workplace, "-m", "karat", "run", "experiment.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (workplace / "results").iterdir()
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = {reply["text"] for event in events if event["event"] == "answer" for reply in event["replies"]}
    assert answers == {f"{line} please?{end}" for line in ("first", "second") for end in ("!!", "!!!")}
    scores = sorted(event["values"]["toy"] for event in events if event["event"] == "score")
    assert scores == [20.0] * 4 + [30.0] * 4
    report = python(house, workplace, "-m", "karat", "report", run, "--to", "toy")
    assert report.returncode == 0, report.stderr
    assert report.stdout == "toy report: 2 samples\n"


@pytest.mark.needs_package("karat_imports")
def test_it_imports(house, workplace):
    done = python(house, workplace, "-m", "karat", "import", "toy", "lines.txt", "--set", "name=mine")
    assert done.returncode == 0, done.stderr
    (made,) = (workplace / "results").glob("mine-*")
    assert done.stdout.splitlines()[0].endswith("2 answers; 2 samples × 1 condition × 1 repetition")
    assert json.loads((made / "run.json").read_text(encoding="utf-8"))["name"] == "mine"
    wrong = python(house, workplace, "-m", "karat", "import", "toy", "lines.txt", "--set", "nam=mine")
    assert wrong.returncode == 2
    assert "did you mean 'name'?" in wrong.stderr


def test_a_class_beside_the_experiment_needs_no_installation(house, workplace):
    (workplace / "mine.py").write_text(textwrap.dedent(TOYS["agents"]).lstrip(), encoding="utf-8")
    other = EXPERIMENT.replace("agent: {type: toy,", 'agent: {type: "mine:Toy",')
    (workplace / "experiment.yaml").write_text(textwrap.dedent(other), encoding="utf-8")
    done = python(house, workplace, "-m", "karat", "run", "experiment.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_distribution_announces_its_own(house, workplace, tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    (site / "their_package.py").write_text(textwrap.dedent(TOYS["agents"]).lstrip(), encoding="utf-8")
    info = site / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[karat.agents]\ntheirs = their_package:Toy\n", encoding="utf-8")
    path = Path(os.pathsep.join(map(str, (house, site))))
    listed = python(path, workplace, "-m", "karat", "list", "agents")
    assert "theirs" in listed.stdout, listed.stderr
    other = EXPERIMENT.replace("agent: {type: toy,", "agent: {type: theirs,")
    (workplace / "experiment.yaml").write_text(textwrap.dedent(other), encoding="utf-8")
    done = python(path, workplace, "-m", "karat", "run", "experiment.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
