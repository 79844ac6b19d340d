"""What the tests of result importers share: files made by the tools themselves, imported, summarized."""

from __future__ import annotations

from pathlib import Path

import karat
from karat.analysis import Summary
from karat_imports.imported import Imported, import_results

FILES = Path(__file__).parents[1] / "data" / "imports"


def imported(name: str, folder: Path, *paths: Path) -> Imported:
    """The one run in some files of a format."""
    (result,) = import_results(name, paths, folder)
    return result


def means(result: Imported) -> dict[tuple[str, str], tuple[float | None, int]]:
    """Condition, metric → the mean over questions and how many answers it is of."""
    return {(score.condition, score.metric): (score.mean.value, score.n_answers) for score in summary(result).results}


def summary(result: Imported) -> Summary:
    return karat.summarize(result.run)


def findings(result: Imported) -> dict[tuple[str, str], int]:
    return {(kind, problem): count for kind, problem, count, _ in result.findings}
