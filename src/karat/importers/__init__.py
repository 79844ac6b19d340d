"""What an importer is. There is one file per importer, which gives it its name.

An importer reads what people already have: it turns results of another tool into run folders
(`ResultImporter`).
"""

from __future__ import annotations

from karat.importers._results import (
    Findings,
    ImportedCondition,
    ImportedFailure,
    ImportedRun,
    ImportedScore,
    ImportedTrial,
    ResultImporter,
    Stated,
    bounded,
)

__all__ = [
    "Findings",
    "ImportedCondition",
    "ImportedFailure",
    "ImportedRun",
    "ImportedScore",
    "ImportedTrial",
    "ResultImporter",
    "Stated",
    "bounded",
]
