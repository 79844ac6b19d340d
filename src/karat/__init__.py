"""karat measures agents.

    import karat

    experiment = karat.load("experiment.yaml")      # or karat.Experiment(...)
    run = karat.run(experiment)                     # await karat.arun(...) in a notebook or server
    summary = karat.summarize(run)
    print(karat.compare(run, "baseline", "with-docs"))

Each name is imported when it is first used.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat.analysis import Comparison, Summary
    from karat.api import arun, compare, open, run, summarize  # noqa: A004 -- used as `karat.open`
    from karat.config import Experiment, load, rehearsal
    from karat.errors import (
        AgentFault,
        InfrastructureFault,
        JudgeFault,
        KaratError,
        LimitReached,
        OperatorError,
    )
    from karat.journal import RunFolder
    from karat.records import (
        Answer,
        Condition,
        Metric,
        Reply,
        Sample,
        Score,
        ToolCall,
        Trial,
        Turn,
        Usage,
    )
    from karat.scorers import Verdict

__version__ = "0.1.0"

BEGUN = time.time_ns()  # before the other modules were read: files that are newer are not what runs

__all__ = [
    "AgentFault",
    "Answer",
    "Comparison",
    "Condition",
    "Experiment",
    "InfrastructureFault",
    "JudgeFault",
    "KaratError",
    "LimitReached",
    "Metric",
    "OperatorError",
    "Reply",
    "RunFolder",
    "Sample",
    "Score",
    "Summary",
    "ToolCall",
    "Trial",
    "Turn",
    "Usage",
    "Verdict",
    "arun",
    "compare",
    "load",
    "open",
    "rehearsal",
    "run",
    "summarize",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "analysis": "Comparison Summary",
        "api": "arun compare open run summarize",
        "config": "Experiment load rehearsal",
        "errors": "AgentFault InfrastructureFault JudgeFault KaratError LimitReached OperatorError",
        "journal": "RunFolder",
        "records": "Answer Condition Metric Reply Sample Score ToolCall Trial Turn Usage",
        "scorers": "Verdict",
    },
    family="names",  # of the packages beside karat: `karat.query`
)
