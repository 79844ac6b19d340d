"""One run of each kind that pages have to show, made by karat itself where it can make it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

from tests.analysis.journals import Script
from tests.browser.hostile import hostile_run, spoilt

from karat.journal import RunFolder

__all__ = ["KINDS", "Held", "all_kinds"]

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("golden", "talk", "study", "failures", "killed", "early", "hostile", "hostile-talk", "hostile-study")
STUDY = """
    name: studies
    dataset: {kind: study, path: shipped, studies: [beauty_contest, framing], per_arm: 3}
    agent: {type: floor}
    conditions: {empty: {preset: empty}, human: {preset: human}}
    execution: {num_repetitions: 1}
"""


def all_kinds(folder: Path) -> None:
    """Makes every one of KINDS in the folder."""
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(dedent(STUDY), encoding="utf-8")
    examples = ROOT / "examples"
    few = ("--limit", "4", "--set", "execution.num_repetitions=2")
    started = {
        "golden": _started(folder, "golden", examples / "support-kb" / "experiment.yaml", *few),
        "talk": _started(folder, "talk", examples / "convfinqa" / "experiment.yaml", "--limit", "4"),
        "study": _started(folder, "study", folder / "study.yaml"),
    }
    _failures(folder / "failures")
    _early(folder / "early")
    hostile_run(folder / "hostile")
    with Held(folder / ".killed") as held:
        held.stop(signal.SIGKILL)
        held.run.rename(folder / "killed")
    for name, process in started.items():
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        [run] = (folder / f".{name}").glob("[!.]*")
        run.rename(folder / name)
    for name in ("talk", "study"):
        spoilt(RunFolder.open(folder / name), folder / f"hostile-{name}")


def _started(folder: Path, name: str, file: Path, *flags: str) -> subprocess.Popen[str]:
    results = str(folder / f".{name}")
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", results, "--quiet", *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _failures(path: Path) -> None:
    """Every class of failure; one condition without a single answer."""
    script = Script(path, samples=6, repetitions=1, conditions=("some", "none"), name="failures", run="fa11fa11")
    classes = ("agent", "infrastructure", "judge", "limit", "agent", "agent")
    for row, cls in enumerate(classes):
        if cls == "judge":
            script.answer(row, "some")
            script.failure(row, "some", cls="judge", stage="score", kind="unreadable", scorer="judge",
                           scoring="0f" * 16, message="no JSON in what the judge said")  # fmt: skip
        elif row < 4:
            script.attempt(row, "some", n=1)
            script.failure(row, "some", cls=cls, kind="timeout" if cls == "limit" else "crash",
                           message="Traceback (most recent call last):\n  ValueError: it fell over " * 8)  # fmt: skip
        else:
            script.scored(row, "some", value=row - 2)
        script.failure(row, "none", cls="infrastructure", kind="mcp_server_down", message="the server does not answer")
    script.end("max_failures")


def _early(path: Path) -> None:
    """Format 1 as its first day wrote it: nothing that a field was added for later.

    There is no other format yet; the next one keeps this run, and adds its own.
    """
    run = Script(path, samples=2, name="early", run="ea51ea51")
    for row in range(2):
        for condition in run.conditions:
            run.scored(row, condition, value=3 + row)
    run.end()
    told = json.loads((path / "run.json").read_bytes())
    for name in ("versions", "rehearsed", "host", "source", "servers", "condition_servers", "studies", "agent_model"):
        told.pop(name, None)
    (path / "run.json").write_text(json.dumps(told), encoding="utf-8")


class Held:
    """A real run that answers three of six questions, and the others once it is let go."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        rows = [{"id": f"q{n}", "question": f"Question {n}?", "answer": f"Answer {n}."} for n in range(6)]
        (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (folder / "agent.py").write_text(
            dedent("""
                import pathlib, time
                def query(user_query, system_prompt, mcp_servers):
                    number = int(user_query.split()[1].rstrip("?"))
                    while number > 2 and not pathlib.Path(__file__).with_name("go").exists():
                        time.sleep(0.02)
                    return f"Answer {number}."
            """),
            encoding="utf-8",
        )
        (folder / "experiment.yaml").write_text(
            dedent("""
                name: held
                dataset: {path: questions.jsonl, id_key: id}
                agent: {type: python, target: "agent:query"}
                judge: {type: overlap}
                conditions: {only: {system_prompt: Answer.}}
                execution: {num_repetitions: 1, max_concurrent: 6}
            """),
            encoding="utf-8",
        )

    def __enter__(self) -> Held:
        """Runs, and has its three answers."""
        command = [sys.executable, "-m", "karat", "run", str(self.folder / "experiment.yaml"), "--quiet",
                   "--results", str(self.folder / "results")]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        give_up = time.monotonic() + 120
        while self._scored() < 3:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < give_up, "no three answers in two minutes"
            time.sleep(0.05)
        [self.run] = (self.folder / "results").glob("[!.]*")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)
        self.process.stderr.close()

    def let_go(self) -> None:
        """The rest is answered, and the run ends."""
        (self.folder / "go").touch()
        assert self.process.wait(timeout=120) == 0

    def stop(self, how: int) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def _scored(self) -> int:
        journals = list((self.folder / "results").glob("[!.]*/journal.jsonl"))
        return journals[0].read_bytes().count(b'{"event":"score"') if journals else 0
