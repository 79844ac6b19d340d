"""Small experiments on disk."""

from __future__ import annotations

from tests.running_experiments import experiment, run

__all__ = ["experiment", "run"]
