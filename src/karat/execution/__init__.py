"""The run: one trial, many trials, retries, progress. Names are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.execution.executors import executor_of
    from karat.execution.limits import Limits, RunStatus, refuse_unpriced
    from karat.execution.own_loop import run_in_own_loop
    from karat.execution.plan import Shard
    from karat.execution.scoring import ScorerInUse
    from karat.execution.setup import (
        agent_notes,
        agents_taken,
        build_agents,
        build_scorers,
        close_agents,
        experiment_scorers,
        opened_scorers,
        refuse_unfit_samples,
        refuse_unknown_gates,
    )
    from karat.execution.start import Loaded, Outcome, Selection, rescore, run_experiment

__all__ = [
    "Limits",
    "Loaded",
    "Outcome",
    "RunStatus",
    "ScorerInUse",
    "Selection",
    "Shard",
    "agent_notes",
    "agents_taken",
    "build_agents",
    "build_scorers",
    "close_agents",
    "executor_of",
    "experiment_scorers",
    "opened_scorers",
    "refuse_unfit_samples",
    "refuse_unknown_gates",
    "refuse_unpriced",
    "rescore",
    "run_experiment",
    "run_in_own_loop",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "executors": "executor_of",
        "limits": "Limits RunStatus refuse_unpriced",
        "own_loop": "run_in_own_loop",
        "plan": "Shard",
        "scoring": "ScorerInUse",
        "setup": (
            "agent_notes agents_taken build_agents build_scorers close_agents experiment_scorers "
            "opened_scorers refuse_unfit_samples refuse_unknown_gates"
        ),
        "start": "Loaded Outcome Selection rescore run_experiment",
    },
)
