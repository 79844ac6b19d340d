"""Skills of Claude Code as a factor: `python benchmarks/claude_skills.py [RUNS [REAL]]`.

Uses the real Claude Code (the extra `claude`) with a scripted model. If both conditions answer at random and one has an
empty skill, there must be no more winners than by chance, in RUNS whole runs (default: 40) and in 1,000 simulated ones.
With a skill that helps when loaded, runs must have the power that `questions_needed`, which `karat plan` uses, predicts
from a pilot, in 1,000 simulated runs and in REAL whole ones (default: 5).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import _results as results  # beside this file
import numpy as np
from decisions import _winners
from limits import Limits
from scipy import stats

import karat
from karat.stats import questions_needed
from karat.testing.models import Request, serve

LOADED, RIGHT, RIGHT_WITH = 0.8, 0.5, 0.9  # how often the skill is loaded, and answers right without and with it
EFFECT = LOADED * (RIGHT_WITH - RIGHT)
SIMULATED = 1000
EXPERIMENT = """
dataset: {{path: {name}.jsonl}}
agent: {{type: claude, model: claude-sonnet-4-5, base_url: "{url}"}}
scorers: [{{type: equals}}]
conditions:
  without: {{}}
  with: {{skills: [{skill}/tables]}}
execution: {{num_repetitions: {repetitions}, max_concurrent: 3}}
"""


def chance(_: Request) -> str:
    """Answers at random, whatever is offered."""
    return "right" if random.random() < RIGHT else "wrong"


def helped(request: Request) -> object:
    """Loads the skill as often as not, and answers better once its text is in the request."""
    if request.offered("Skill") is not None and not request.tool_results and random.random() < LOADED:
        return {"tool_calls": [{"name": "Skill", "arguments": {"skill": "skills:tables"}}]}
    share = RIGHT_WITH if "MARKER-OF-THE-SKILL" in json.dumps(request.body) else RIGHT
    return "right" if random.random() < share else "wrong"


def real(model: Callable[[Request], object], skill: str, folder: Path, *, questions: int, repetitions: int = 1) -> Path:
    """Runs a whole experiment; returns its folder."""
    rows = [json.dumps({"question": f"Question {number}?", "answer": "right"}) for number in range(questions)]
    (folder / f"q{questions}.jsonl").write_text("\n".join(rows) + "\n")
    with serve(model) as server:
        fields = {"name": f"q{questions}", "url": server.anthropic_url, "skill": skill, "repetitions": repetitions}
        (folder / "experiment.yaml").write_text(EXPERIMENT.format(**fields))
        run = karat.run(folder / "experiment.yaml", results=folder / "results")
        for request in server.requests:
            assert (request.offered("Skill") is not None) == ("skills:tables" in json.dumps(request.body))
    return run.path


def winner(path: Path) -> str | None:
    (difference,) = karat.summarize(path).differences
    return difference.winner


def promised(pilot: Path) -> int:
    """The number of questions that `karat plan` asks for, with one repetition each."""
    command = [sys.executable, "-m", "karat", "plan", str(pilot), "--metric", "equals", "--difference", str(EFFECT)]
    process = subprocess.run([*command, "--json"], capture_output=True, check=True)
    return next(row["questions"] for row in json.loads(process.stdout)["needed"] if row["repetitions"] == 1)


def simulated(rng: np.random.Generator, questions: int, better: float) -> float:
    """The share of runs with a winner, for conditions that answer 0 or 1."""
    rows = [
        np.column_stack((rng.binomial(1, RIGHT, questions), rng.binomial(1, RIGHT + better, questions)))[:, :, None]
        for _ in range(SIMULATED)
    ]
    return _winners([row.astype(float) for row in rows])


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=40)
    parser.add_argument("real", type=int, nargs="?", default=5)
    options = parser.parse_args()
    runs, whole = options.runs, options.real
    limits, rng = Limits(), np.random.default_rng(20261123)
    random.seed(20261123)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for skill, text in (("empty", ""), ("good", "MARKER-OF-THE-SKILL")):
            (folder / skill / "tables").mkdir(parents=True)
            (folder / skill / "tables" / "SKILL.md").write_text(f"---\nname: tables\ndescription: d\n---\n{text}\n")
        share = simulated(rng, 8, 0.0)
        print(
            f"empty skill, {SIMULATED} simulated runs: a winner in {share:.3f}",
            limits.check("A/A, simulated", share, "≤", 0.064),
        )
        won = sum(winner(real(chance, "empty", folder, questions=8)) is not None for _ in range(runs))
        most = int(stats.binom.ppf(0.975, runs, 0.05))
        print(
            f"empty skill, {runs} whole runs: winners in {won}", limits.check("A/A, whole", won, "≤", most), flush=True
        )
        questions = promised(real(helped, "good", folder, questions=30, repetitions=2))
        print(
            f"a pilot of 30 questions: `karat plan` wants {questions} for a power of 0.80 at {EFFECT:.2f}", flush=True
        )
        power = simulated(rng, questions, EFFECT)
        print(f"{SIMULATED} simulated runs of {questions} questions: found in {power:.3f}")
        exact = questions_needed(EFFECT, 0.0, (RIGHT * (1 - RIGHT), (RIGHT + EFFECT) * (1 - RIGHT - EFFECT)), 1).n
        power = simulated(rng, exact, EFFECT)
        print(
            f"{exact} questions, by the true variances: found in {power:.3f}", limits.check("power", power, "≥", 0.77)
        )
        wins = [winner(real(helped, "good", folder, questions=questions)) for _ in range(whole)]
        print(
            f"{whole} whole runs of {questions} questions: `with` wins in {wins.count('with')}, `without` in", end=" "
        )
        print(wins.count("without"), limits.check("false winners", wins.count("without"), "≤", 0))
        limits.note("`with` wins", wins.count("with"), f"of {whole}")
    about = f"Real Claude Code, scripted model: {SIMULATED:,} simulated runs, {runs} whole A/A runs, {whole} others."
    results.write(options.json, limits.section("Skills of Claude Code as a factor", about))
    limits.exit()


if __name__ == "__main__":
    main()
