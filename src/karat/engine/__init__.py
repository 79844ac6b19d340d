"""The run: one trial, then the crowd; what is tried again; what a person sees of it."""

from karat.engine.build import agent_notes, build_agents, build_scorers, close_agents, opened_scorers
from karat.engine.loop import Limits, ScorerInUse
from karat.engine.spend import refuse_unpriced
from karat.engine.start import Outcome, Selection, carry_out, rescore
from karat.engine.watch import Watch

__all__ = [
    "Limits",
    "Outcome",
    "ScorerInUse",
    "Selection",
    "Watch",
    "agent_notes",
    "build_agents",
    "build_scorers",
    "carry_out",
    "close_agents",
    "opened_scorers",
    "refuse_unpriced",
    "rescore",
]
