"""Numeric answers and reasoning programs: values, matches, programs, and why an answer failed.

For questions whose golden answer is a number (or yes/no), perhaps with a program, asked one at a
time or as turns of a conversation. Everything here is pure: text and numbers in, frozen results
out. Model output never raises, is never run as code, and cannot hang. Names are loaded when first
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_conversations.numeric.diagnosis import Diagnosis, diagnose
    from karat_conversations.numeric.document import Document
    from karat_conversations.numeric.equivalence import equivalent
    from karat_conversations.numeric.extraction import Extracted, Stated, extract, stated
    from karat_conversations.numeric.facts import TurnFacts
    from karat_conversations.numeric.many import match_many
    from karat_conversations.numeric.matches import (
        MATCHES,
        RIGHT_RULES,
        RULES,
        Matches,
        match,
        null_answers,
        right_by,
    )
    from karat_conversations.numeric.programs import execute, parse_program
    from karat_conversations.numeric.proofs import Proof, replay, would_be_right
    from karat_conversations.numeric.reasoning import (
        Reasoning,
        compare_programs,
        operations_attempted,
    )
    from karat_conversations.numeric.trees import Argument, Call, ExecutionError, Program, Step
    from karat_conversations.numeric.values import Value, parse_value

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

# The names in each module, which is imported when one is first used.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "diagnosis": "Diagnosis diagnose",
        "document": "Document",
        "equivalence": "equivalent",
        "extraction": "Extracted Stated extract stated",
        "facts": "TurnFacts",
        "many": "match_many",
        "matches": "MATCHES Matches RIGHT_RULES RULES match null_answers right_by",
        "programs": "execute parse_program",
        "proofs": "Proof replay would_be_right",
        "reasoning": "Reasoning compare_programs operations_attempted",
        "trees": "Argument Call ExecutionError Program Step",
        "values": "Value parse_value",
    },
)
