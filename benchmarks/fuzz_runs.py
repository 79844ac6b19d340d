"""Run folders for the fuzzer of fuzz_files.py: seeds, and checks of the results.

The report of a changed journal must have the counts and means that a second reader computes from its lines.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from fuzz_common import CORPUS, Seed, Wrong, damaged_lines, difference, run

__all__ = ["RUNS", "crafted", "index", "indexes", "report_of", "run_folder", "runs"]

FILES = ("run.json", "journal.jsonl", "samples.jsonl", "experiment.yaml")
RUNS = (
    "scored-table",
    "broken-server",
    "budget-spent",
    "killed-and-resumed",
    "chat-panel",
    "first-format-conversations",
)


def runs(files: Sequence[str] = FILES) -> Iterator[Seed]:
    for name in RUNS:
        for file in files:
            yield Seed(f"{name}.{file}", (CORPUS / name / file).read_bytes(), (name, file))
    study = next((CORPUS / "framing-designs" / "studies").iterdir())
    if files == FILES:
        yield Seed("framing-designs.study.yaml", study.read_bytes(), ("framing-designs", f"studies/{study.name}"))


@cache
def report_of(name: str) -> Any:
    """The report of the unchanged run."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(CORPUS / name, "run")
        return json.loads(run("report", "run", "--to", "json", names=["run"])[1])


@cache
def has_checksums(name: str) -> bool:
    return bool(json.loads((CORPUS / name / "run.json").read_bytes())["format"] > 1)


def run_folder(seed: Seed, data: bytes) -> str:
    """`karat report` and `karat runs verify`: the same numbers, those of the remaining lines, or an error."""
    name, file = seed.about
    shutil.copytree(CORPUS / name, "run")
    Path("run", file).write_bytes(data)
    code, out = run("report", "run", "--to", "json", names=["run"])
    verified, _ = run("runs", "verify", "run", "--json", names=["run"])
    undamaged = damaged_lines(seed.data, data) == 0
    if file.endswith(".jsonl") and has_checksums(name) and not undamaged and verified == 0:
        raise Wrong("wrong", "`karat runs verify` finds nothing wrong")
    if code:
        return "error"
    report, before = json.loads(out), report_of(name)
    if report == before:
        return "right"
    if not has_checksums(name):
        return "unverified"
    if file != "journal.jsonl" or not undamaged:
        raise Wrong("wrong", f"another report, and no error: {difference(report, before)}")
    compare_with_lines(report, data)
    return "right"


def compare_with_lines(report: Any, journal: bytes) -> None:
    """Raises Wrong if a report's counts or means differ from those of the journal's complete lines.

    A score before its answer must be left out with a warning.
    """
    events = [json.loads(line) for line in journal.split(b"\n")[:-1]]
    answered: dict[str, set[str]] = defaultdict(set)
    answers = {event["trial"]: event for event in reversed(events) if event["event"] == "answer"}  # the first counts
    for trial, event in answers.items():
        answered[event["condition"]].add(trial)
    for condition, account in report["accounts"].items():
        count = len(answered[condition])
        if account["attempts"]["answered"] != count or account["ledger"]["scored"] > count:
            raise Wrong("wrong", f"{condition}: {count} trials are answered in the journal, the report says {account}")
    scores, seen = list[Any](), set[str]()
    for event in events:
        if event["event"] == "answer":
            seen.add(event["trial"])
        elif event["event"] == "score" and event["trial"] in seen:
            scores.append(event)
    orphans = sum(event["event"] == "score" for event in events) - len(scores)
    if orphans and not any(line.startswith(f"{orphans} score") for line in report["warnings"]):
        raise Wrong("wrong", f"{orphans} scores without an answer before them; the report does not say so")
    means = means_of(scores, answers)
    for row in report["results"]:
        by_question = means.get((row["condition"], row["metric"]), {})
        wanted = fmean(map(fmean, by_question.values())) if by_question else None
        value, count = row["mean"]["value"], sum(map(len, by_question.values()))
        same = value == wanted or (None not in (value, wanted) and math.isclose(value, wanted, rel_tol=1e-12))
        if not same or row["n_answers"] != count or row["n_questions"] != len(by_question):
            place = f"{row['condition']}, {row['metric']}"
            raise Wrong("wrong", f"{place}: {count} answers, mean {wanted} in the journal; the report has {row}")


def means_of(scores: list[Any], answers: dict[str, Any]) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Condition and metric → question → the value of each of its answers: the mean of its judges' repeats."""
    newest = {event["scorer"]: event["scoring"] for event in scores}
    last: dict[tuple[str, str], dict[tuple[Any, int], Any]] = defaultdict(dict)
    for event in scores:
        if event["scoring"] == newest[event["scorer"]]:
            last[event["trial"], event["scorer"]][event.get("judge"), event.get("repeat", 0)] = event
    means: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (trial, _), rows in last.items():
        first = next(iter(rows.values()))
        if len(rows) < first.get("rows", 1):
            continue  # an incomplete scoring
        for metric in first["values"]:
            by_judge: dict[Any, list[float]] = defaultdict(list)
            for (judge, _), event in rows.items():
                if event["values"][metric] is not None:
                    by_judge[judge].append(float(event["values"][metric]))
            if by_judge:
                answer = answers[trial]
                means[answer["condition"], metric][answer["sample"]].append(fmean(map(fmean, by_judge.values())))
    return means


def crafted(seed: Seed, data: bytes) -> str:
    """A hostile journal: changed lines with matching checksums. No crash, no hang."""
    name, file = seed.about
    shutil.copytree(CORPUS / name, "run")
    Path("run", file).write_bytes(data)
    code, _ = run("report", "run", "--to", "json", names=["run"])
    run("report", "run", "--to", "html", names=["run"])
    return "error" if code else "unverified"


# --- the index in the cache ------------------------------------------------------------------------------------------


@cache
def indexed_run() -> tuple[Path, str, bytes]:
    """A run, and its index in the cache: the file's name and content."""
    from karat.index.stored import read_index
    from karat.journal import RunFolder

    folder = Path(tempfile.mkdtemp(prefix="karat-fuzz-index-"))
    shutil.copytree(CORPUS / "budget-spent", folder / "run")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    (folder / "cache").mkdir(mode=0o700)
    for _ in range(100):  # files that have just changed are not cached
        read_index(RunFolder.open(folder / "run"), at_least=1)
        files = list((folder / "cache" / "karat").glob("*.index"))
        if files:
            return folder, files[0].name, files[0].read_bytes()
        time.sleep(0.2)
    return folder, "", b""


def indexes() -> Iterator[Seed]:
    _, name, data = indexed_run()
    if data:
        yield Seed("cached.index", data, name)


def index(seed: Seed, data: bytes) -> str:
    """A damaged file in the cache is ignored: the index must be that of the journal."""
    from karat.index.run_index import RunIndex
    from karat.index.stored import _stored, read_index
    from karat.journal import RunFolder

    folder, name = indexed_run()[0], seed.about
    path = folder / "cache" / "karat" / f"{os.getpid()}"
    path.write_bytes(data)
    path.chmod(0o400)
    path.rename(path.with_name(name))
    run_folder = RunFolder.open(folder / "run")
    fresh = RunIndex(run_folder)
    fresh.read()
    used = read_index(run_folder, at_least=1)
    if _stored(used) != _stored(fresh):  # equal sets may differ in order, so what is written may differ
        raise Wrong("wrong", "the index is not that of the journal")
    return "right"
