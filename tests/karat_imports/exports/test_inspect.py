"""`--to inspect`: Inspect's own package reads it, and importing it gives the same numbers back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from tests.document.hostile import hostile_run

import karat
from karat.analysis import summarize
from karat.cli import cli
from karat.exports import save
from karat.importers import Findings
from karat.journal import ServerInfo
from karat.records import Reply, Sample, ToolCall, Turn, Usage
from karat_imports.exports.eee import Eee
from karat_imports.exports.inspect import Inspect
from karat_imports.exports.keval import Keval
from karat_imports.imported import import_results
from karat_imports.importers.inspect import Inspect as Importer

LOGS = Path(__file__).parents[2] / "data" / "imports" / "inspect"
VERSION = "0.3.285"
READ = """
import json, sys
from inspect_ai.log import bundle_log_dir, list_eval_logs, read_eval_log, read_eval_log_sample_summaries
found = []
for info in list_eval_logs(sys.argv[1], descending=False):
    log = read_eval_log(info)
    assert read_eval_log(info, header_only=True).eval == log.eval
    summaries = read_eval_log_sample_summaries(info)
    found.append({
        "task": log.eval.task, "status": log.status, "args": log.eval.task_args, "summaries": len(summaries),
        "results": [{key: metric.value for key, metric in score.metrics.items()} for score in log.results.scores],
        "samples": [json.loads(sample.model_dump_json(exclude_none=True)) for sample in log.samples],
    })
bundle_log_dir(sys.argv[1], sys.argv[2])
print(json.dumps(found))
"""


def exported(run: karat.RunFolder, out: Path) -> list[Path]:
    return save(Inspect().render(summarize(run), run), out)


def again(paths: list[Path], out: Path) -> karat.RunFolder:
    (made,) = import_results("inspect", paths, out)
    assert list(made.findings) == []
    return made.run


def numbers(run: karat.RunFolder) -> list[tuple[Any, ...]]:
    summary = summarize(run)
    return [
        (place, one.metric, one.n_answers, pytest.approx(one.mean.value, abs=1e-12), pytest.approx(one.within_sd.value))
        for place, condition in enumerate(summary.conditions)
        for one in summary.results
        if one.condition == condition
    ]


def with_tools(folder: Path, journals: Any, **info: Any) -> karat.RunFolder:
    """One sample of two turns with tool calls and costs, and a failure."""
    sample = Sample(
        id="q", position=0, digest="0" * 32, materials="A map.", metadata={"year": "2014"},
        turns=(Turn(question="Where?", golden="here"), Turn(question="When?", golden="now")),
    )  # fmt: skip
    other = Sample(id="r", position=1, digest="1" * 32, turns=(Turn(question="Who?"),))
    used = Usage(input_tokens=70, output_tokens=3, cache_read_tokens=60)
    look = ToolCall(tool="look", server="docs", input={"q": "x", "n": 2}, result="found")
    replies = (
        Reply(text="Here.", tool_calls=(look, ToolCall(tool="write", error="denied")), usage=used, dollars=0.25),
        Reply(text="It was now.", answer="now", usage=used, dollars=0.5, stop_reason="end_turn", reasoning="hm"),
    )
    script = journals.Script(folder, samples=[sample, other], conditions=("a",), **info)
    script.answer(0, "a", replies=replies)
    script.score(0, "a", value=4)
    script.failure(1, "a", 0)
    run: karat.RunFolder = script.end()
    return run


@pytest.mark.parametrize("name", ["one.eval", "old20.json"])
def test_an_imported_log_comes_back_with_the_same_numbers(tmp_path: Path, name: str) -> None:
    (made,) = import_results("inspect", [LOGS / name], tmp_path / "runs")
    back = again(exported(made.run, tmp_path / "out"), tmp_path / "back")
    assert numbers(back) == numbers(made.run)
    assert [sample.digest for sample in back.samples()] == [sample.digest for sample in made.run.samples()]


def test_conditions_scores_and_failures_come_back(tmp_path: Path, journals: Any) -> None:
    run = journals.table(tmp_path / "run", {"a": [[1, 2], [2, 5]], "b": [[3, 4], [5, None]]})
    paths = exported(run, tmp_path / "out")
    assert len(paths) == 2
    back = again(paths, tmp_path / "back")
    assert numbers(back) == numbers(run)
    summary = summarize(back)
    assert summary.conditions == ("condition=a", "condition=b")
    assert summary.total.ledger.scored == 7
    assert summary.total.ledger.planned == 8


def test_tool_calls_turns_tokens_and_cost_have_their_places(tmp_path: Path, journals: Any) -> None:
    (path,) = exported(with_tools(tmp_path / "run", journals), tmp_path / "out")
    first, failed = json.loads(path.read_text())["samples"]
    assert [(message["role"], message["content"]) for message in first["messages"]] == [
        ("user", "A map.\n\nWhere?"), ("assistant", ""), ("tool", "found"), ("tool", ""), ("assistant", "Here."),
        ("user", "When?"),
        ("assistant", [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "It was now."}]),
    ]  # fmt: skip
    assert first["messages"][1]["tool_calls"][0]["function"] == "mcp__docs__look"
    assert first["messages"][3]["error"] == {"type": "unknown", "message": "denied"}
    assert first["target"] == ["here", "now"]
    (usage,) = first["model_usage"].values()
    assert usage == {
        "input_tokens": 20, "output_tokens": 6, "total_tokens": 146, "input_tokens_cache_read": 120, "total_cost": 0.75,
    }  # fmt: skip
    assert first["output"]["choices"][0]["stop_reason"] == "unknown"
    assert failed["error"]["message"]
    assert failed["scores"] == {}
    ((trial, failure),) = [run.trials for run in Importer().runs([path], Findings())]
    assert trial.reply.usage == Usage(input_tokens=140, output_tokens=6, cache_read_tokens=120)
    assert trial.reply.dollars == 0.75
    assert failure.failure is not None


@pytest.mark.parametrize("export", [Eee(Eee.Options()), Inspect(), Keval()])
def test_the_whole_files_of_a_run(tmp_path: Path, journals: Any, golden: Any, export: Any) -> None:
    """With a server, a judge and a time of another place."""
    created = "2026-11-20T14:00:00.5+02:00"
    docs = ServerInfo(name="docs", digest="", tools=("look", "find"))
    served = {"servers": (docs,), "condition_servers": {"a": ("docs",)}}
    judge = msgspec.structs.replace(journals.JUDGE, offline=False, provenance={"judges": "m-1"})
    run = with_tools(tmp_path / "run", journals, created=created, scorers=(judge,), **served)
    files = export.render(summarize(run), run)
    name = type(export).__name__.lower()
    golden(f"imports/to-{name}.txt", "".join(f"{path}\n{text}\n" for path, text in files.items()))


def test_the_command_writes_logs_whose_names_inspect_lists(tmp_path: Path, journals: Any) -> None:
    run = journals.table(tmp_path / "run", {"a/../b": [[1], [2]]})
    done = CliRunner().invoke(cli, ["report", str(run.path), "--to", "inspect", "--out", str(tmp_path / "logs")])
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("2026-") or path.name[4] == "-"
    assert path.suffix == ".json"
    assert str(path) in done.output


@pytest.fixture(scope="session")
def inspect_python(tmp_path_factory: pytest.TempPathFactory, certificates: dict[str, str]) -> Path:
    """A Python that has inspect-ai, which is no part of karat's own environment."""
    folder = tmp_path_factory.mktemp("inspect")
    python = folder / "bin" / "python"
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True, capture_output=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python), f"inspect-ai=={VERSION}"]
    env = {name: value for name, value in os.environ.items() if name != "SSL_CERT_DIR"} | certificates
    done = subprocess.run(install, capture_output=True, check=False, timeout=280, env=env)
    if done.returncode:
        pytest.skip(f"inspect-ai {VERSION} could not be installed: no package index can be reached")
    return python


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_inspect_reads_lists_and_bundles_the_logs(tmp_path: Path, journals: Any, inspect_python: Path) -> None:
    runs = [
        journals.table(tmp_path / "table", {"a": [[1, 2], [2, 5]], "b": [[3, 4], [5, None]]}),
        with_tools(tmp_path / "tools", journals),
        hostile_run(tmp_path / "hostile", journals),
        *(made.run for made in import_results("inspect", [LOGS / "tools.eval"], tmp_path / "runs")),
    ]
    wanted = []
    for number, run in enumerate(runs):
        exported(run, tmp_path / "logs" / str(number))
        for one in summarize(run).results:
            known = {"mean": one.mean.value, "stderr": one.mean.se}
            wanted.append(sorted((key, value) for key, value in known.items() if value is not None))
    done = subprocess.run(
        [str(inspect_python), "-W", "error::UserWarning", "-c", READ, str(tmp_path / "logs"), str(tmp_path / "site")],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    logs = json.loads(done.stdout.splitlines()[-1])
    assert len(logs) == sum(len(summarize(run).conditions) for run in runs)
    assert all(log["summaries"] == len(log["samples"]) for log in logs)
    read = [sorted(metrics.items()) for log in logs for metrics in log["results"]]
    assert sorted(read) == sorted(wanted)
    assert (tmp_path / "site" / "index.html").exists()
