"""The laws of each protocol, held against every plug-in that is found: a new file is tested by being there."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from karat import plugins
from karat.analysis import summarize
from karat.config import load
from karat.context import Workspace
from karat.errors import BadDataset, BadOption, KaratError
from karat.execution import run_experiment
from karat.importers import Findings
from karat.records import Answer, Sample
from karat.scorers import ScorerSetting
from karat.testing import check_scorer
from karat.testing.models import ModelServer, serve
from karat.testing.scorers import ANSWERS, _hard

FAMILIES = ("agents", "exports", "importers", "kinds", "scorers")
EVERY = [(family, name) for family in FAMILIES for name in plugins.names(family)]

# What a plug-in cannot do without; everything else must have a default.
REQUIRED: dict[str, dict[str, Any]] = {
    "acp": {"command": ["agent", "--acp"]},
    "chat": {"model": "openai:rehearsal"},
    "claude": {"model": "claude-sonnet-4-5"},
    "command": {"command": ["echo", "hi"]},
    "python": {"target": "json:dumps"},
    "replay": {"path": "answers.jsonl"},
    "regex": {"pattern": "a+"},
    "http": {"url": "http://localhost:8000/ask"},
    "judge": {"model": "openai:rehearsal", "max_asks": 1},
    "pairwise": {"model": "openai:rehearsal", "max_asks": 1},
    "json_schema": {"schema": {"type": "object"}},
    "mcp_result": {"max_milliseconds": 500},
    "trajectory": {"max_calls": 10},
    "files": {"exists": ["a"]},
    "tests": {"command": ["false"]},
    "scorers.command": {"command": ["echo", '{"n": 1}'], "metrics": {"n": {"high": 2}}},
}


def required(family: str, name: str) -> dict[str, Any]:
    return REQUIRED.get(f"{family}.{name}", REQUIRED.get(name, {}))


@contextmanager
def workspace_of(folder: Path, answer: Answer) -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        (path := Path(place) / "workspace").mkdir()
        yield cast(Workspace, SimpleNamespace(path=path, left_out=()))


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_a_plugin_describes_itself_and_its_options(family: str, name: str) -> None:
    plugin = plugins.find(family, name)
    assert (inspect.getdoc(plugin) or "").partition("\n\n")[0].endswith("."), "it begins with a sentence"
    model = plugins.options_model(plugin)
    assert model is None or issubclass(model, BaseModel)
    if model is not None:
        assert model.model_config.get("extra") == "forbid"
        _, faults = plugins.check_options(plugin, {**required(family, name), "no_such_option": 1}, place="here")
        assert [fault.place for fault in faults] == ["here.no_such_option"]
        filled, faults = plugins.check_options(plugin, required(family, name), place="here")
        assert not faults
        again, faults = plugins.check_options(plugin, filled, place="here")
        assert (again, faults) == (filled, []), "filled-in options are options too"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_loading_a_plugin_loads_no_heavy_library(family: str) -> None:
    heavy = ["mcp", "duckdb", "scipy", "jinja2", "pandas", *(() if family == "exports" else ("rich",))]
    load = f"import sys\nfrom karat import plugins\nfor name in plugins.names({family!r}):\n"
    script = load + f"    plugins.find({family!r}, name)\n    print(name, *(set({heavy}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == plugins.names(family)


@pytest.fixture(scope="module")
def rehearsal() -> Iterator[ModelServer]:
    """Asked by scorers that ask a model."""
    with serve() as server:
        yield server


def built(name: str, tmp_path: Path, server: ModelServer) -> Any:
    (_, other), *_ = _hard()
    setting = ScorerSetting(
        folder=tmp_path, name=name, conditions=("a", "c"), answer_of=lambda *_: other,
        workspace_of=partial(workspace_of, tmp_path),
    )  # fmt: skip
    plugin = plugins.find("scorers", name)
    model = plugins.options_model(plugin)
    address = {"base_url": server.openai_url} if model is not None and "base_url" in model.model_fields else {}
    return plugins.build(plugin, {**required("scorers", name), **address}, setting=setting)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", plugins.names("scorers"))
def test_a_scorer_gives_the_metrics_that_it_announces_in_their_range_whatever_the_answer(
    name: str, tmp_path: Path, rehearsal: ModelServer
) -> None:
    scorer = built(name, tmp_path, rehearsal)
    assert scorer.metrics, "reports know range and direction"
    assert check_scorer(scorer, name=name, cases=_some_hard() if name in STARTS_A_PROCESS else None)


STARTS_A_PROCESS = {"command", "tests"}


def _some_hard() -> list[tuple[Sample, Answer]]:
    """Each hard answer to the first sample, and the first answer to each: 17 cases that differ, not 56."""
    cases = list(_hard())
    (sample, first), *_ = cases
    return [(one, answer) for one, answer in cases if one is sample or answer.replies == first.replies]


@pytest.mark.parametrize("name", plugins.names("kinds"))
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[]", b"null\n", b"{}\n", b'{"a": 1}\n' * 3, b"\x00" * 100])
def test_a_dataset_kind_names_every_fault_and_raises_nothing_else(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    kind = plugins.build(plugins.find("kinds", name), {})
    with pytest.raises(BadDataset) as bad:
        kind.load(path)
    assert bad.value.faults
    assert all(fault.place and fault.message for fault in bad.value.faults)


JUNK = [b"", b"\xff\xfe\x00", b"[]", b"null", b"{}", b'{"a": [{}]}', b"[" * 10_000]


@pytest.mark.parametrize("name", plugins.names("importers"))
@pytest.mark.parametrize("content", JUNK)
def test_an_importer_of_results_reads_a_file_or_refuses_it(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(content)
    importer = plugins.build(plugins.find("importers", name), {})
    assert importer.recognizes(path, content) is False
    with suppress(BadDataset, BadOption):
        for run in importer.runs([path], Findings()):
            assert list(run.trials) == []
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("hostile")
    rows = [{"question": f"\x1b]0;evil\x07 {text}", "answer": "x"} for text in ANSWERS if text.isprintable()]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    script = "import sys; sys.stdin.read(); print('\\x1b[2J\\x1b]8;;http://evil\\x07=1+1<script>alert(1)</script>')"
    (folder / "agent.py").write_text(script)
    (folder / "experiment.yaml").write_text(
        "name: hostile\ndataset: {path: questions.jsonl}\nagent: {type: command, command: [python, -S, agent.py]}\n"
        "judge: {type: overlap}\nconditions: {a: {}, b: {}}\nexecution: {num_repetitions: 2}\n"
    )
    return asyncio.run(run_experiment(load(folder / "experiment.yaml"), results=folder / "results")).run


@pytest.mark.parametrize("name", plugins.names("exports"))
def test_a_report_gives_files_without_escape_sequences_and_the_same_twice(name: str, hostile_run: Any) -> None:
    report = plugins.build(plugins.find("exports", name), {})
    files = report.render(summarize(hostile_run), hostile_run)
    assert files
    for file, text in files.items():
        assert all(Path(part).name == part for part in file.split("/"))
        assert file.count("/") <= 4, "a few folders at most"
        assert text
        assert "\x1b" not in text
        assert "\x07" not in text
    assert plugins.build(plugins.find("exports", name), {}).render(summarize(hostile_run), hostile_run) == files


def test_every_error_has_a_slug_an_exit_code_and_a_sentence() -> None:
    def below(kind: type[KaratError]) -> list[type[KaratError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in below(child))]

    public = [
        kind for kind in below(KaratError) if kind.__module__ == "karat.errors" and not kind.__name__.startswith("_")
    ]
    assert len(public) > 10
    for kind in public:
        assert kind.slug
        assert kind.exit_code in (2, 70)
        assert (kind.__doc__ or "").strip()
