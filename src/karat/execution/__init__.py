"""The run: one trial, many trials, retries, progress."""

from karat.execution.executors import executor_of
from karat.execution.limits import Limits, refuse_unpriced
from karat.execution.merging import MergedRun, merge_runs
from karat.execution.own_loop import run_in_own_loop
from karat.execution.plan import Shard
from karat.execution.progress import RunStatus
from karat.execution.scoring import ScorerInUse
from karat.execution.setup import (
    agent_notes,
    build_agents,
    build_scorers,
    close_agents,
    experiment_scorers,
    opened_scorers,
    refuse_unfit_samples,
    refuse_unknown_gates,
)
from karat.execution.start import Outcome, Selection, rescore, run_experiment

__all__ = [
    "Limits",
    "MergedRun",
    "Outcome",
    "RunStatus",
    "ScorerInUse",
    "Selection",
    "Shard",
    "agent_notes",
    "build_agents",
    "build_scorers",
    "close_agents",
    "executor_of",
    "experiment_scorers",
    "merge_runs",
    "opened_scorers",
    "refuse_unfit_samples",
    "refuse_unknown_gates",
    "refuse_unpriced",
    "rescore",
    "run_experiment",
    "run_in_own_loop",
]
