"""The whole way, as a user goes it: run, kill −9, resume, score again, report. No network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from karat.analysis.means_columns import COLUMNS

QUESTIONS = 40
REPETITIONS = 3


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An agent that writes down what it is asked, and is sometimes right."""
    rows = [{"id": f"q{n:02}", "question": f"What is {n} + 1?", "answer": f"It is {n + 1}."} for n in range(QUESTIONS)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "agent.py").write_text(
        textwrap.dedent("""
            import json, os, random, sys
            task = json.load(sys.stdin)
            asked = os.open("asked.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(asked, f"{task['sample']} {task['condition']} {task['repetition']}\\n".encode())
            number = int(task["question"].split()[2])
            right = random.Random(task["seed"]).random() < (0.9 if task["condition"] == "careful" else 0.3)
            print(f"It is {number + (1 if right else 2)}.")
        """),
        encoding="utf-8",
    )
    (tmp_path / "experiment.yaml").write_text(
        textwrap.dedent(f"""
            name: story
            dataset: {{path: questions.jsonl, id_key: id}}
            agent: {{type: command, command: [python, -S, -E, agent.py]}}
            judge: {{type: overlap}}
            conditions: {{quick: {{system_prompt: Be quick.}}, careful: {{system_prompt: Be careful.}}}}
            execution: {{num_repetitions: {REPETITIONS}, max_concurrent: 4}}
        """),
        encoding="utf-8",
    )
    return tmp_path


def start(here: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "karat", *arguments]
    return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(here: Path, *arguments: str) -> dict:
    """The JSON of a command that must succeed."""
    process = start(here, *arguments, "--json", "--quiet")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return json.loads(out)


def answered(run: Path) -> list[tuple[str, str, int]]:
    """The trials with an answer in the journal's whole lines."""
    lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    events = [json.loads(line) for line in lines if line.startswith(b'{"event":"answer"')]
    return [(event["sample"], event["condition"], event.get("repetition", 0)) for event in events]


def kill_after(here: Path, answers: int, *arguments: str) -> Path:
    """Starts a run and ends it without warning once so many answers are on disk."""
    process = start(here, *arguments)
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up and process.poll() is None:
        runs = list((here / "results").glob("[!.]*/journal.jsonl"))
        if runs and len(answered(runs[0].parent)) >= answers:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (run,) = (here / "results").glob("[!.]*")
    return run


@pytest.mark.slow
def test_run_kill_resume_score_report(here):
    trials = QUESTIONS * 2 * REPETITIONS
    assert result(here, "check", "experiment.yaml")["agent_calls"] == trials

    run = kill_after(here, 30, "run", "experiment.yaml")
    kept = set(answered(run))
    assert 30 <= len(kept) < trials
    assert result(here, "report", str(run))["status"] == "crashed"
    (here / "asked.log").unlink()

    again = kill_after(here, len(kept) + 30, "run", "experiment.yaml", "--resume", str(run))
    assert again == run
    more = set(answered(run))
    assert kept < more
    assert not kept & asked(here)
    (here / "asked.log").unlink()

    ended = result(here, "run", "experiment.yaml", "--resume", str(run))
    assert (ended["status"], ended["failed"]) == ("done", 0)
    assert not more & asked(here)
    counted = Counter(answered(run))
    assert len(counted) == trials
    assert set(counted.values()) == {1}

    undisturbed = result(here, "run", "experiment.yaml", "--results", "whole")["summary"]
    assert figures(ended["summary"]) == figures(undisturbed)
    assert "careful beats quick" in ended["summary"]["headline"]

    (here / "agent.py").unlink()
    rescored = result(here, "score", str(run), "--scorer", "equals")["summary"]
    assert {metric["scorer"] for metric in rescored["metrics"]} == {"judge", "equals"}
    assert figures(rescored) == figures(undisturbed)

    compared = result(here, "compare", f"{run}:quick", ":careful")
    assert {one["difference"]["winner"] for one in compared["pairings"]} == {"careful"}
    files = result(here, "report", str(run), "--to", "keval", "--out", "files")["paths"]
    assert len(files) == 2


def asked(here: Path) -> set[tuple[str, str, int]]:
    lines = (here / "asked.log").read_text(encoding="utf-8").splitlines()
    return {(sample, condition, int(repetition)) for sample, condition, repetition in map(str.split, lines)}


def figures(summary: dict) -> list[dict]:
    """The judge's numbers, and how the trials ended."""
    times = {column.name for column in COLUMNS if column.of_times}
    results = []
    for one in summary["results"]:
        if one["metric"] != "equals":
            shown = {name: text for name, text in one["shown"].items() if name not in times}
            results.append({**one, "shown": shown})

    return [*results, summary["total"]["ledger"]]
