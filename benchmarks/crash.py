"""Sends kill −9 at random moments of a run, then --resume: nothing may be lost or asked twice.

Each round starts a run of `--trials` trials with the `command` agent (a seeded program
that logs each call), kills it at a random moment, resumes it, and checks that

* every planned trial has exactly one answer in the final journal,
* no answer, and no turn of a conversation, that was on disk at the kill was asked for again,
* the summary equals that of an undisturbed run.

    python benchmarks/crash.py --rounds 20 --trials 2000
    python benchmarks/crash.py --rounds 20 --trials 400 --turns 5
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import _results as results  # beside this file

# Plain sh: the program must start faster than karat can call it. It logs the call, then answers by its seed.
AGENT = r"""read -r task
printf '%s\n' "$task" >> calls.log
seed=${task##*'"seed":'}; seed=${seed%%[!0-9]*}
turn=${task##*'"turn":'}; turn=${turn%%[!0-9]*}
case $task in
  *'"history":[]'*) printf 'The limit is %s items.' "$((seed % 5))";;
  *) printf '%s' "$(((seed + turn) % 5))";;
esac
"""

EXPERIMENT = """name: crash
dataset: {path: questions.jsonl}
agent: {type: command, command: [sh, agent.sh]}
judge: {type: overlap}
conditions:
  first: {system_prompt: one}
  second: {system_prompt: two}
execution: {num_repetitions: 5, max_concurrent: 8}
"""

CONVERSATIONS = EXPERIMENT.replace("{path: questions.jsonl}", "{kind: conversation, path: questions.jsonl}").replace(
    "judge: {type: overlap}", "scorers: [contains]"
)


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=2000, help="a multiple of 10")
    parser.add_argument("--turns", type=int, default=1, help="of each trial; more than one: conversations")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    killed: list[list[object]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lay_out(folder, options.trials, options.turns)
        started = time.perf_counter()
        undisturbed = figures(run(folder, folder / "undisturbed"))
        total = time.perf_counter() - started
        print(f"undisturbed: {options.trials} trials of {options.turns} turns in {total:.1f} s")
        for number in range(options.rounds):
            moment = dice.uniform(0.02, 0.98) * total
            kept = one_round(folder, number, moment, undisturbed, options.trials)
            print(
                f"round {number + 1:2}: killed after {moment:5.1f} s with {kept:5} turns on disk; resumed, equal",
                flush=True,
            )
            killed.append([str(number + 1), moment, kept])
    verdict = f"{options.rounds} rounds: every trial once, nothing asked twice, summaries equal"
    print(verdict)
    about = f"kill −9 at random moments of {options.trials:,} trials of {options.turns} turns, then `--resume`."
    columns = ["round", "killed after (s)", "turns on disk"]
    section = {"title": "Crashes", "about": about, "columns": columns, "rows": killed, "verdicts": [verdict]}
    results.write(options.json, section)


def lay_out(folder: Path, trials: int, turns: int) -> None:
    """Writes the experiment to `folder`."""
    rows: list[dict[str, Any]] = [
        {"question": f"What is limit {number}?", "answer": f"{number % 5} items."} for number in range(trials // 10)
    ]
    if turns > 1:
        rows = [
            {"conversation_id": f"c{number}", "turn": turn, "question": f"And {turn}?", "answer": number % 5}
            for number in range(trials // 10)
            for turn in range(turns)
        ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "agent.sh").write_text(AGENT)
    (folder / "experiment.yaml").write_text(CONVERSATIONS if turns > 1 else EXPERIMENT)


def one_round(folder: Path, number: int, moment: float, undisturbed: Any, trials: int) -> int:
    """Returns how many turns were on disk at the kill. Raises AssertionError if a promise is broken."""
    log = folder / "calls.log"
    log.write_text("")
    results = folder / f"round-{number}"
    process = start(folder, results)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # Programs that were running when karat died may still log; they end within milliseconds.
    time.sleep(0.5)
    runs = list(results.glob("crash-*")) if results.exists() else []
    if not runs:
        finished = run(folder, results)
        durable: set[Key] = set()
    else:
        durable = told(runs[0])
        log.write_text("")
        finished = run(folder, results, "--resume", str(runs[0]))
        asked = Counter(key(json.loads(line)) for line in log.read_text().splitlines())
        assert not durable & set(asked), "what was on disk was asked for again"
        assert max(asked.values(), default=1) == 1
        assert len(durable) + len(asked) == len(told(finished)), "something was asked for that is not there"
    answers = Counter(event["trial"] for event in events(finished, "answer"))
    assert len(answers) == trials, f"{len(answers)} answers of {trials}"
    assert set(answers.values()) == {1}
    assert figures(finished) == undisturbed, "the summary differs from the undisturbed run's"
    return len(durable)


Key = tuple[str, str, int, int]
"""Sample, condition, repetition, turn."""


def key(task: dict[str, Any]) -> Key:
    """Which turn of which trial a program was asked for."""
    return task["sample"], task["condition"], task["repetition"], task["turn"]


def told(run: Path) -> set[Key]:
    """The turns on disk, including those of interrupted conversations."""
    from karat import config
    from karat.execution import plan

    experiment = config.load(run.parent.parent / "experiment.yaml")
    trials = {
        trial.id: (trial.sample.id, trial.condition.name, trial.repetition)
        for trial in plan.plan(experiment, experiment.load_dataset())
    }
    turns = {(event["trial"], event["turn"]) for event in events(run, "reply")}
    turns |= {(event["trial"], turn) for event in events(run, "answer") for turn in range(len(event["replies"]))}
    return {(*trials[trial], turn) for trial, turn in turns}


def start(folder: Path, results: Path, *more: str) -> subprocess.Popen[bytes]:
    """Starts `karat run` in a process of its own."""
    command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--results", str(results), *more]
    with open(os.devnull, "wb") as nothing:
        return subprocess.Popen(command, cwd=folder, stdout=nothing, stderr=nothing)


def run(folder: Path, results: Path, *more: str) -> Path:
    """Runs an experiment to its end; returns the run folder."""
    process = start(folder, results, *more)
    assert process.wait() == 0, f"exit code {process.returncode}"
    return next(results.glob("crash-*"))


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    """The journal's complete lines of one kind."""
    head = f'{{"event":"{kind}"'
    lines = (run / "journal.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines[:-1] if line.startswith(head)]


def figures(run: Path) -> Any:
    """The summary without times, names of the run, and the number of resumes."""
    from karat import analysis as summary
    from karat import journal

    result = summary.summarize(journal.RunFolder.open(run))
    ledgers = {name: account.ledger for name, account in result.accounts.items()}
    return ledgers, result.headline, result.results, result.differences, result.table_of_samples, result.duplicates


if __name__ == "__main__":
    main()
