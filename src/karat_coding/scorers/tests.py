"""Whether tests pass in the workspace that a trial left."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from karat import formats
from karat.context import is_plain_name
from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting, Values, Verdict
from karat_coding.changes import remove
from karat_coding.scorers._junit import BadReport, read_junit
from karat_coding.scorers._programs import ProgramOptions, added, read_output, run_program

__all__ = ["Tests"]

_NAMED = 50  # failing tests


class Tests:
    """The share of tests that pass in a copy of the workspace, as the trial left it.

    `command` runs the tests, with the folder `add` copied over the workspace: tests that the agent
    did not see. With `junit`, the report that the command writes (`pytest --junit-xml=report.xml`)
    lists the tests that passed, and `reasons` names those that failed; without it the exit code
    tells whether all passed. `expected` names the tests that count; one that did not run has
    failed. If the command exceeds a limit, or writes no report, no test passed. The agent's code
    can tamper with the tests: put your own configuration into `add`, too.
    """

    blocking = True
    runs_programs = True

    class Options(ProgramOptions):
        """What the experiment file may set."""

        junit: str | None = Field(
            default=None, description="the JUnit XML file that the command writes, a path in it"
        )
        expected: list[str] = Field(
            default=[], description="the tests that count, as the report names them; all"
        )

        @field_validator("junit")
        @classmethod
        def _is_path(cls, junit: str | None) -> str | None:
            if junit is not None and not is_plain_name(junit):
                raise ValueError("must be a path within the workspace")
            return junit

        @model_validator(mode="after")
        def _names_need_a_report(self) -> Tests.Options:
            if self.expected and self.junit is None:
                raise ValueError("`expected` needs `junit`: an exit code names no tests")
            return self

    def __init__(self, options: Options, setting: ScorerSetting) -> None:
        self._options, self._name, self._workspace_of = options, setting.name, setting.workspace_of
        self._files, self.fingerprint = added(setting.folder, options.add)
        all_passed = Metric(
            name="all_passed",
            low=0,
            high=1,
            kind="share",
            description="answers for which every test passed",
        )
        share = Metric(name=self._name, low=0, high=1, description="share of the tests that passed")
        alone = Metric(
            name=self._name,
            low=0,
            high=1,
            kind="share",
            description="answers for which the tests passed",
        )
        self.metrics = (alone,) if options.junit is None else (share, all_passed)

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """Raises JudgeFault if there is no workspace, or the command cannot be started."""
        options, report = self._options, None
        with self._workspace_of(answer) as workspace:
            if options.junit is not None:
                remove(workspace.path / options.junit)  # not one that the agent left
            finished = run_program(options, sample, workspace, self._files)
            if options.junit is not None and not finished.limit:
                report = read_output(workspace, options.junit)

        if options.junit is None:
            passed = finished.code == 0
            if passed:
                reasons = {}
            else:
                reasons = {self._name: finished.ending}

            return Verdict(values={self._name: passed}, reasons=reasons)

        if report is None:
            if finished.limit:
                why = finished.ending
            else:
                why = f"there is no report '{self._options.junit}'; {finished.ending}"

            return self._nothing(why)

        try:
            cases = read_junit(report)
        except BadReport as error:
            return self._nothing(f"the report '{self._options.junit}' {error}")

        if self._options.expected:
            cases = {name: cases.get(name, "did not run") for name in self._options.expected}
        ran = {name: why for name, why in cases.items() if why is not None}
        if not ran:
            return self._nothing("no test ran")
        failed = [
            f"{name}: {why}" if why else name
            for name, why in sorted(ran.items())
            if why != "passed"
        ]
        share = (len(ran) - len(failed)) / len(ran)
        named = failed[:_NAMED]
        if len(failed) > _NAMED:
            named.append(f"and {formats.count(len(failed) - _NAMED)} more")
        reason = "\n".join(named)
        values: Values = {self._name: share, "all_passed": not failed}
        if reason:
            reasons = {self._name: reason}
        else:
            reasons = {}

        return Verdict(
            values=values,
            reasons=reasons,
            detail={"tests": len(ran)},
        )

    def _nothing(self, why: str) -> Verdict:
        return Verdict(values={self._name: 0.0, "all_passed": False}, reasons={self._name: why})
