"""The experiment file: YAML, `${NAME}`, and all faults at once, each with place, line, found and
wanted.
"""

from karat.config.experiment import DatasetSpec, Experiment, load
from karat.config.model import Budget, Execution, Retry
from karat.config.rehearsed import Rehearsal, rehearsal

__all__ = [
    "Budget",
    "DatasetSpec",
    "Execution",
    "Experiment",
    "Rehearsal",
    "Retry",
    "load",
    "rehearsal",
]
