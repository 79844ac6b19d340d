"""Runs twelve human studies end to end, resamples participants, and kills a run in the middle of a game.

    python benchmarks/studies.py [--runs N]

A folder of twelve studies: the ten that come with karat, and two of them in other sizes (a framing
study with 15 participants per arm, a guessing game with groups of 24), 6,500 questions in all. Each
participant answers like one of the made-up people in `copy.jsonl`, picked by its seed, and logs every
question. Every figure is for whole processes, including interpreter start, and is shown next to its
limit.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _results as results  # beside this file
from limits import Limits

EXPERIMENT = """name: studies
dataset: {kind: study, path: studies}
agent: {type: python, target: "people:answer"}
conditions: {copied: {}}
execution: {num_repetitions: 1, max_concurrent: 8}
"""

PEOPLE = '''"""Participants who answer as people's copy does."""

import json
import os
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
LOG = os.open(HERE / "asked.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
PAUSE = float(os.environ.get("PAUSE", "0"))


@lru_cache
def copies(study):
    found = {}
    for line in (HERE / "studies" / study / "copy.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        arm = found.setdefault(row["arm"], {})
        arm.setdefault(row["participant"], {})[row.get("round")] = row["answers"]
    return {arm: list(persons.values()) for arm, persons in found.items()}


async def answer(user_query, sample, condition, repetition, turn, seed):
    if PAUSE:
        import asyncio

        await asyncio.sleep(PAUSE)
    os.write(LOG, f"{sample.id}\\t{condition}\\t{repetition}\\t{turn}\\n".encode())
    detail = sample.turns[turn].detail
    persons = copies(sample.detail["study"])[detail["arm"]]
    said = persons[seed % len(persons)][detail.get("round")]
    return "\\n".join(f"{name}: {said[name]}" for name in sample.detail["fields"][turn] if name in said)
'''

QUESTIONS = 6_499
REPLICATES = 2_000

Key = tuple[str, str, int, int]
"""Sample, condition, repetition, turn."""


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        lay_out(folder)
        limits = Limits()
        print("12 studies, 6,499 questions")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = [end_to_end(folder, number) for number in range(options.runs)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / options.runs
        limits.row("run, scores, summary: `karat run`", statistics.median(times["run"] for times in seconds))
        limits.row("`karat report --to humanstudy`", statistics.median(times["report"] for times in seconds))
        total = limits.scaled(statistics.median(sum(times.values()) for times in seconds))
        limits.row("end to end", total, at_most=60, note=f" (processors: {busy:.1f} s)")
        replicates = limits.scaled(bootstrap(folder))
        limits.row(f"{REPLICATES:,} replicates of participants, PAS and ECS", replicates, at_most=10)
        print(killed(folder), flush=True)
        about = f"12 studies, {QUESTIONS:,} questions; medians of {options.runs} in reference seconds."
        results.write(options.json, limits.section("Studies", about))
        limits.exit()


def lay_out(folder: Path) -> None:
    """Writes the studies, the participants and the experiment to `folder`."""
    from karat_studies.kinds.study.places import shipped_studies

    for name, path in shipped_studies().items():
        shutil.copytree(path.parent, folder / "studies" / name)
    variant(folder / "studies", "framing", "framing_small", ("per_arm: human", "per_arm: 15"))
    game = [("per_arm: human", "per_arm: 96"), ("group: 16", "group: 24"), ("group: 17", "group: 24")]
    variant(folder / "studies", "beauty_contest", "beauty_contest_large", *game)
    (folder / "people.py").write_text(PEOPLE, encoding="utf-8")
    (folder / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")


def variant(studies: Path, name: str, new: str, *changes: tuple[str, str]) -> None:
    """Writes a study in another size and under another name."""
    shutil.copytree(studies / name, studies / new)
    file = studies / new / "study.yaml"
    text = file.read_text(encoding="utf-8").replace(f"study: {name}\n", f"study: {new}\n", 1)
    for old, other in changes:
        assert old in text, f"{name} has no '{old}'"
        text = text.replace(old, other)
    file.write_text(text, encoding="utf-8")


def end_to_end(folder: Path, number: int) -> dict[str, float]:
    """Seconds of a run and of its report."""
    results = folder / f"results-{number}"
    (folder / "asked.log").write_text("")
    times = {"run": timed(folder, "run", "experiment.yaml", "--results", str(results))}
    asked = Counter(logged(folder))
    assert len(asked) == QUESTIONS, f"{len(asked)} questions of {QUESTIONS}"
    assert set(asked.values()) == {1}
    run = next(results.glob("studies-*"))
    times["report"] = timed(folder, "report", str(run), "--to", "humanstudy", "--out", str(folder / f"out-{number}"))
    return times


def timed(folder: Path, *arguments: str) -> float:
    """Seconds of a command that must succeed."""
    started = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "karat", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    return time.perf_counter() - started


def bootstrap(folder: Path) -> float:
    """Seconds for the replicates of all studies and their standard errors, with the answers of the copies."""
    import numpy as np

    from karat_studies.kinds.study.bootstrap import StudyRun, study_draws
    from karat_studies.kinds.study.copy import answer_copy
    from karat_studies.kinds.study.experiments import data_of, to_study_tests
    from karat_studies.kinds.study.reading import read_study
    from karat_studies.replication import join_draws, score_tests, score_uncertainty

    scored: list[Any] = []
    for path in sorted((folder / "studies").iterdir()):
        study = read_study(path)
        responses = answer_copy(study)
        data = data_of(study, responses)
        scores = score_tests(to_study_tests(study, responses, data=data)).tests
        scored.append((study, StudyRun(responses=responses, data=data.columns, scores=scores)))
    agreement = score_tests([score.test for _, run in scored for score in run.scores])
    started = time.perf_counter()
    drawn = [study_draws(study, [run], rng=np.random.default_rng(1), replicates=REPLICATES)[0] for study, run in scored]
    score_uncertainty(agreement, rng=np.random.default_rng(1), draws=join_draws([part.draws for part in drawn]))
    return time.perf_counter() - started


def killed(folder: Path) -> str:
    """Raises AssertionError if a question is asked again although its answer was on disk at the kill."""
    results, log = folder / "killed", folder / "asked.log"
    log.write_text("")
    command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--results", str(results)]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PAUSE": "0.005"}
    )
    while not (inside := within_a_game(logged(folder))):
        assert process.poll() is None, f"exit code {process.returncode}"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = next(results.glob("studies-*"))
    before, durable = Counter(logged(folder)), told(folder, run)
    timed(folder, "run", "experiment.yaml", "--resume", str(run))
    asked = Counter(logged(folder))
    again = {key for key, count in asked.items() if count > 1}
    assert len(asked) == QUESTIONS
    assert not again & durable, "what was on disk was asked again"
    assert len(again) <= 8, f"{len(again)} were asked twice: more than were under way"
    assert figures(run) == figures(next((folder / "results-0").glob("studies-*"))), "the undisturbed run says otherwise"
    rounds = sum(key in durable for key in before if key[0] == inside[0])
    return (
        f"killed with {len(durable):,} answers on disk, {rounds} of them of the group {inside[0]}, which went on from\n"
        f"there: nobody whose answer was kept was asked again ({len(again)} questions that were under way were),\n"
        "and every test came out as in the undisturbed run"
    )


def within_a_game(asked: list[Key]) -> Key | None:
    """A question from a later round; None if there is none yet."""
    return next((turn for turn in asked if "group" in turn[0] and turn[3] > 40), None)


def logged(folder: Path) -> list[Key]:
    """The logged questions, with their participants."""
    rows = ((folder / "asked.log").read_text(encoding="utf-8").split("\n"))[:-1]
    parts = (row.split("\t") for row in rows)
    return [(sample, condition, int(repetition), int(turn)) for sample, condition, repetition, turn in parts]


def told(folder: Path, run: Path) -> set[Key]:
    """The questions whose answers are on disk."""
    from karat import config
    from karat.execution import plan

    experiment = config.load(folder / "experiment.yaml")
    trials = {trial.id: trial for trial in plan.plan(experiment, experiment.load_dataset())}
    turns = {(event["trial"], event["turn"]) for event in events(run, "reply")}
    turns |= {(event["trial"], turn) for event in events(run, "answer") for turn in range(len(event["replies"]))}
    return {
        (trials[name].sample.id, trials[name].condition.name, trials[name].repetition, turn) for name, turn in turns
    }


def figures(run: Path) -> Any:
    """The result of every test of every study, and the number of participants."""
    from karat import analysis as summary
    from karat import journal

    outcome = summary.summarize(journal.RunFolder.open(run)).study
    assert outcome is not None
    return [
        (study.study, study.participants, [test for finding in study.findings for test in finding.tests])
        for condition in outcome.conditions
        for study in condition.studies
    ]


def events(run: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The journal's whole lines of one kind."""
    for line in (run / "journal.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        if line.startswith(f'{{"event":"{kind}"'):
            yield json.loads(line)


if __name__ == "__main__":
    main()
