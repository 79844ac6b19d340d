"""`--to humanstudy`: the files that HumanStudy-Bench writes, from a run over human studies."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from karat.analysis import Summary
from karat.errors import BadOption
from karat.journal import RunFolder
from karat.kinds.study.analysis.model import StudySummary
from karat.kinds.study.analysis.scored_tests import summary_of_tests
from karat.kinds.study.exports import _humanstudy_files
from karat.replication import Agreement, Uncertainty

__all__ = ["Humanstudy"]


class Humanstudy:
    """`detailed_stats.csv`, `evaluation_results.json` and `benchmark_summary.json`, as HumanStudy-Bench has them.

    For a folder: `--out FOLDER`. PAS and ECS are the main numbers, everything else stands under `auxiliary`; what is
    not known is empty or null. With several repetitions a row of the table is one of them, by its last
    column. Below `FOLDER/benchmark` are the same results as the benchmark's own scripts read them: a folder for each
    study and condition, without what is not known. For runs over human studies.
    """

    kinds = ("study",)

    class Options(BaseModel):
        """Nothing can be set: the format is theirs."""

        model_config = ConfigDict(extra="forbid")

    def __init__(self, options: Options | None = None) -> None:
        pass

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        part = summary.part(StudySummary)
        if part is None and run.info.kind in self.kinds:
            raise BadOption("report humanstudy", "no scores of the scorer `replication` are shown: there are no tests")
        return _humanstudy_files.files(part)


def files_of_tests(scored: Mapping[str, tuple[Agreement, Uncertainty]]) -> dict[str, str]:
    """The same of a table of tests, by condition."""
    return _humanstudy_files.files(summary_of_tests(scored))
