"""Numeric answers and reasoning programs: values, matches, programs, and why an answer failed.

For questions whose golden answer is a number (or yes/no) and may come with a program,
asked one at a time or as turns of a conversation. Pure: text and numbers in, frozen
results out; what a model wrote never raises, is never run as code, and cannot hang. Names
are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.numeric.diagnosis import Diagnosis, TurnFacts, diagnose
    from karat.numeric.document import Document
    from karat.numeric.equivalence import equivalent
    from karat.numeric.extraction import Extracted, Stated, extract, stated
    from karat.numeric.many import match_many
    from karat.numeric.matches import MATCHES, RIGHT_RULES, RULES, Matches, match, null_answers, right_by
    from karat.numeric.programs import Argument, Call, ExecutionError, Program, Step, execute, parse_program
    from karat.numeric.proofs import Proof, replay, would_be_right
    from karat.numeric.reasoning import Reasoning, compare_programs, operations_attempted
    from karat.numeric.values import Value, parse_value

__all__ = [
    "MATCHES",
    "RIGHT_RULES",
    "RULES",
    "Argument",
    "Call",
    "Diagnosis",
    "Document",
    "ExecutionError",
    "Extracted",
    "Matches",
    "Program",
    "Proof",
    "Reasoning",
    "Stated",
    "Step",
    "TurnFacts",
    "Value",
    "compare_programs",
    "diagnose",
    "equivalent",
    "execute",
    "extract",
    "match",
    "match_many",
    "null_answers",
    "operations_attempted",
    "parse_program",
    "parse_value",
    "replay",
    "right_by",
    "stated",
    "would_be_right",
]

_HOME = {
    "MATCHES": "matches",
    "RIGHT_RULES": "matches",
    "RULES": "matches",
    "Argument": "programs",
    "Call": "programs",
    "Diagnosis": "diagnosis",
    "Document": "document",
    "ExecutionError": "programs",
    "Extracted": "extraction",
    "Matches": "matches",
    "Program": "programs",
    "Proof": "proofs",
    "Reasoning": "reasoning",
    "Stated": "extraction",
    "Step": "programs",
    "TurnFacts": "diagnosis",
    "Value": "values",
    "compare_programs": "reasoning",
    "diagnose": "diagnosis",
    "equivalent": "equivalence",
    "execute": "programs",
    "extract": "extraction",
    "match": "matches",
    "match_many": "many",
    "null_answers": "matches",
    "operations_attempted": "reasoning",
    "parse_program": "programs",
    "parse_value": "values",
    "replay": "proofs",
    "right_by": "matches",
    "stated": "extraction",
    "would_be_right": "proofs",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
