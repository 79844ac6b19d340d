"""Whether files in the workspace that a trial left are as they should be."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from karat import formats, templates
from karat.context import Workspace, is_plain_name
from karat.errors import JudgeFault, unreadable
from karat.files import open_regular
from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting, Verdict
from karat.scorers._child import Schemas, read_schema
from karat.scorers._expectations import Outcome, metrics_of, verdict_of
from karat_coding.changes import why_left_out, why_mostly_left_out
from karat_coding.scorers._programs import LARGEST_READ

__all__ = ["Files"]

_UNKNOWN = "not known: a changed text is too long to be compared line by line"
_PARTS = {
    "exists": "every file is there",
    "absent": "none of the files is there",
    "equals": "the files are as they should be",
    "contains": "the files contain what they should",
    "schemas": "the files are JSON that their schemas allow",
    "max_changed_lines": "no more lines were changed than allowed",
}


class Files:
    """True if files of the workspace are as they should be when the trial has ended.

    Paths start at the workspace. They and the texts of `equals` and `contains` may contain `{{
    sample }}`, the sample's id, and `{{ metadata.NAME }}`, a column of the dataset. Each
    expectation gives its own metric, with a reason if it was not met; the metric with the scorer's
    name is true if all hold. `changed_lines` is the size of the difference to the starting
    workspace. No link is followed.
    """

    blocking = True

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid", populate_by_name=True)
        exists: list[str] = Field(default=[], description="paths of files or folders")
        absent: list[str] = Field(default=[], description="paths where nothing must be")
        equals: dict[str, str] = Field(
            default={}, description="path → text; line ends at the end do not count"
        )
        contains: dict[str, str] = Field(
            default={}, description="path → a text that is in the file"
        )
        json_schemas: dict[str, dict[str, object] | bool | str] = Field(
            default={},
            alias="schemas",
            description="path → a JSON schema, or the path of a file with it",
        )
        max_changed_lines: int | None = Field(
            default=None, ge=0, description="most lines added and removed together"
        )
        changed_lines: bool = False  # also give the number of lines that were added and removed
        timeout_seconds: float = Field(default=5.0, gt=0, le=60)  # for one check against a schema

        @field_validator("exists", "absent", "equals", "contains", "json_schemas")
        @classmethod
        def _are_paths(cls, paths: list[str] | dict[str, object]) -> list[str] | dict[str, object]:
            for path in paths:
                if not is_plain_name(path):
                    raise ValueError(f"'{path}' is no path within the workspace")

            return paths

        @model_validator(mode="after")
        def _something_is_expected(self) -> Files.Options:
            if (
                not any(self.given.values())
                and self.max_changed_lines is None
                and not self.changed_lines
            ):
                raise ValueError(
                    f"expects nothing; give at least one of {', '.join([*_PARTS, 'changed_lines'])}"
                )

            return self

        @property
        def given(self) -> dict[str, Sequence[str] | Mapping[str, object]]:
            """The expectations of files."""
            texts = {"equals": self.equals, "contains": self.contains}
            return {
                "exists": self.exists,
                "absent": self.absent,
                **texts,
                "schemas": self.json_schemas,
            }

    def __init__(self, options: Options, setting: ScorerSetting) -> None:
        self._options, self._name, self._workspace_of = options, setting.name, setting.workspace_of
        self._parts = [part for part, value in options.given.items() if value]
        if options.max_changed_lines is not None:
            self._parts += ["max_changed_lines"]

        self._schemas = {
            path: read_schema(schema, setting.folder)
            for path, schema in options.json_schemas.items()
        }
        self.metrics: tuple[Metric, ...] = ()
        if self._parts:
            whole = "answers whose files are as they should be"
            self.metrics = metrics_of(
                self._name, whole, {part: _PARTS[part] for part in self._parts}
            )

        if options.changed_lines:
            text = "lines added and removed"
            self.metrics += (
                Metric(name="changed_lines", low=0, direction="lower", description=text),
            )

        self.fingerprint = blake2b(
            json.dumps(self._schemas, sort_keys=True).encode(), digest_size=16
        ).hexdigest()
        self._checker = Schemas([*self._schemas.values()], seconds=options.timeout_seconds)

    def close(self) -> None:
        """End the process that applies schemas."""
        self._checker.close()

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """Raises JudgeFault if there is no workspace, or a schema takes too long."""
        fields = {"sample": sample.id, "metadata": sample.metadata}
        outcomes: dict[str, Outcome] = {}
        with self._workspace_of(answer) as workspace:
            for part in self._parts:
                if part != "max_changed_lines":
                    paths = self._options.given[part]
                    faults = (self._fault(part, path, workspace, fields) for path in paths)
                    fault = next(filter(None, faults), "")
                    outcomes[part] = not fault, fault

        changes = answer.workspace
        lines = None
        if (
            changes is not None
            and changes.added_lines is not None
            and changes.removed_lines is not None
        ):
            lines = changes.added_lines + changes.removed_lines

        most = self._options.max_changed_lines
        if most is not None and lines is None:
            outcomes["max_changed_lines"] = None, _UNKNOWN
        elif most is not None and lines is not None:
            many = (
                f"{formats.count(lines)} lines were changed, expected at most {formats.count(most)}"
            )
            outcomes["max_changed_lines"] = lines <= most, many if lines > most else ""

        if self._parts:
            verdict = verdict_of(self._name, self._parts, outcomes)
        else:
            verdict = Verdict(values={})

        if self._options.changed_lines:
            verdict.values["changed_lines"] = lines
            if lines is None:
                verdict.reasons["changed_lines"] = _UNKNOWN

        return verdict

    def _fault(
        self, part: str, given: str, workspace: Workspace, fields: Mapping[str, object]
    ) -> str:
        """The fault of one file; empty: none."""
        path = templates.fill(given, fields, place=part)
        if not is_plain_name(path):
            raise JudgeFault(
                "bad_path",
                f"'{given}' is, for this sample, no path within the workspace: {path!r:.100}",
            )

        there, why = os.path.lexists(workspace.path / path), why_left_out(path, workspace.left_out)
        if why is None and not there:
            why = why_mostly_left_out(workspace.left_out)
        elif why is not None and why.startswith(f"{path}: ") and part in ("exists", "absent"):
            there, why = True, None

        if why is not None:
            raise JudgeFault(
                "workspace_incomplete", f"what {path} was is not known, as it was not kept: {why}"
            )

        if part in ("exists", "absent"):
            if there == (part == "exists"):
                return ""
            return f"{path} is {'there' if there else 'missing'}"

        try:
            with open_regular(
                workspace.path / path, within=workspace.path, at_most=LARGEST_READ
            ) as file:
                data = file.read(LARGEST_READ)
        except FileNotFoundError:
            return f"{path} is missing"
        except OSError as error:
            return f"{path} {unreadable(error)}"

        text = data.decode("utf-8", "replace")
        if part == "schemas":
            valid, reason = self._checker.check([*self._schemas].index(given), text)
            if valid is None:
                raise JudgeFault("bad_schema", reason)
            if valid:
                return ""
            return f"{path} {reason}"

        wanted = templates.fill(getattr(self._options, part)[given], fields, place=part)
        if part == "equals":
            met = text.rstrip("\r\n") == wanted.rstrip("\r\n")
        else:
            met = wanted in text

        if met:
            return ""
        return f"{path} {'is not' if part == 'equals' else 'does not contain'} {wanted!r:.100}"
