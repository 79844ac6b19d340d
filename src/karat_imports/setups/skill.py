"""`karat init --from SKILL_FOLDER`: the evaluations of an Agent Skill, with and without it.

Source of the format: `evals/evals.json`, as `references/schemas.md` of the skill `skill-creator` in
the repository anthropics/skills describes it, and its sets of queries with `should_trigger`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

import msgspec

from karat.context import is_plain_name
from karat.errors import BadOption
from karat.formats import excerpt, plural
from karat.kinds.golden import criteria
from karat.records import Json, JsonObject
from karat.setups import Findings, Setup
from karat_imports.setups._files import NotRead, ProjectFiles

__all__ = ["Skill"]

_PLACES = ("evals/evals.json", "evals.json", "evals/trigger_evals.json", "evals/trigger-evals.json")
_PROMPT = ("prompt", "query", "input", "question")
_EXPECTED = ("expected_output", "expected", "expected_answer")
_CRITERIA = ("expectations", "assertions", "expected_behavior", "criteria", "scorers")
_TYPES = {"llm_judge": "judge", "llm": "judge", "manual": "judge", "programmatic": "judge"}
_TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "Write")
_MOST_EVALS = 5_000
_JUDGE = "anthropic:claude-opus-4-5"
_EVALS = re.compile(rb"\"(evals|skill_name|should_trigger)\"\s*:")


class Skill:
    """A folder with SKILL.md and evals/evals.json, or that file: prompts become questions,
    expectations criteria.
    """

    listed_as: ClassVar[str] = "skill"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        if path.is_dir():
            return (path / "SKILL.md").is_file() or any((path / at).is_file() for at in _PLACES)
        if path.suffix.lower() != ".json" or _EVALS.search(head) is None:
            return False
        if b'"skill_name"' in head and b'"evals"' in head:
            return True
        return any((home / "SKILL.md").is_file() for home in path.absolute().parents[:2])

    def read(self, path: Path, folder: Path) -> Setup:
        """The experiment. Raises BadOption if the skill or its evaluations cannot be read."""
        path = path.absolute()
        if path.is_dir():
            home = path
            evals = next((path / at for at in _PLACES if (path / at).is_file()), None)
            if evals is None:
                raise BadOption("--from", f"{path} has no evaluations (expected: {_PLACES[0]})")
        else:
            evals = path
            if path.parent.name == "evals":
                home = path.parent.parent
            else:
                home = path.parent

        has_skill = (home / "SKILL.md").is_file()
        if path == home and not has_skill:
            raise BadOption("--from", f"{home} is no skill: it has no SKILL.md")
        home = home.resolve()
        files = ProjectFiles(home)
        findings = Findings()
        try:
            value = files.document(evals.resolve())
        except NotRead as error:
            raise BadOption("--from", str(error)) from error

        if isinstance(value, dict):
            cases = value.get("evals")
        else:
            cases = value
        reader = _Cases(files, findings)
        rows = reader.read(cases if isinstance(cases, list) else [])
        if not rows:
            why = "; ".join(findings.left_out) or "`evals` is no list, or it is empty"
            raise BadOption("--from", f"no question of {evals} can be taken: {why}")

        name = None
        if isinstance(value, dict):
            name = value.get("skill_name")
        if has_skill:
            findings.take(f"{plural(len(rows), 'question')}, asked with and without the skill")
        else:
            findings.take(plural(len(rows), "question"))
            findings.leave("skill", "its SKILL.md is not beside the evaluations")
        findings.take(f"the tools {', '.join(_TOOLS)}: with Bash, the model can run any command")

        # Two conditions: without the skill, the baseline, and with it
        shared: JsonObject = {"tools": [*_TOOLS]}
        if reader.taken:
            shared["workspace"] = "workspace"
        conditions: JsonObject = {"without": shared}
        if has_skill:
            skills: list[Json] = [os.path.relpath(home, folder.resolve())]
            conditions["with"] = {**shared, "skills": skills}
        dataset: JsonObject = {"path": "questions.jsonl", "id_key": "id"}
        if any("answer" in row for row in rows):
            dataset["answer_key"] = "answer"
        stated = [one for row in rows for one in row.get("criteria", ())]
        if stated:
            dataset["criteria_key"] = "criteria"
        judged = [
            one for one in stated if isinstance(one, str) or one.get("type", "judge") == "judge"
        ]
        scoring: JsonObject = {"scorers": ["criteria"] if stated else []}
        if judged:
            scoring = {"judge": {"type": "criteria", "model": _JUDGE}}
        return Setup(
            experiment={
                "name": excerpt(str(name or home.name), 80).replace("${", "$${"),
                "dataset": dataset,
                "agent": {"type": "claude", "model": "claude-sonnet-4-5"},
                **scoring,
                "conditions": conditions,
                "execution": {"num_repetitions": 3},
            },
            rows=rows,
            answers_describe=True,
            files=reader.taken,
            taken=findings.taken,
            left_out=findings.left_out,
        )


class _Cases:
    """Reads the evaluations of one skill. What is not taken goes to the findings."""

    def __init__(self, files: ProjectFiles, findings: Findings) -> None:
        self._files, self._findings = files, findings
        self.taken: dict[str, bytes] = {}  # files of the workspace, from the experiment's folder

    def read(self, cases: Sequence[Json]) -> list[JsonObject]:
        """A row for each case with a prompt."""
        rows: list[JsonObject] = []
        ids: set[str] = set()
        for number, case in enumerate(cases[:_MOST_EVALS], start=1):
            if not isinstance(case, dict) or not (prompt := _text(case, _PROMPT)):
                self._findings.leave("evaluation", "it has no `prompt`", f"number {number}")
                continue

            name = str(case.get("id", number))
            if name in ids:
                name = f"{name} ({number})"
            ids.add(name)

            names = []  # of its files in the workspace
            files = case.get("files")
            for given in files if isinstance(files, list) else []:
                plain = str(given).removeprefix("./")
                try:
                    if not is_plain_name(plain):
                        raise NotRead(f"'{plain:.80}' is no path within the skill")
                    tried = [
                        self._files.path(f"{folder}{plain}")
                        for folder in ("", "evals/", "evals/files/")
                    ]
                    file = next((path for path in tried if path.is_file()), tried[0])
                    self.taken[f"workspace/{plain}"] = self._files.data(file)
                except NotRead as error:
                    self._findings.leave("file", str(error), f"evaluation {name}")
                else:
                    names.append(PurePosixPath(plain).as_posix())

            if names:
                prompt = f"{prompt}\n\nFiles: {', '.join(names)}"
            row: JsonObject = {"id": name, "question": prompt}
            for key in ("name", "eval_name", "category"):
                if isinstance(case.get(key), str):
                    row[key.removeprefix("eval_")] = case[key]

            if expected := _text(case, _EXPECTED):
                row["answer"] = expected
            stated = self._criteria(case, name)
            if expected and not stated:
                stated = [f"The outcome is as described: {expected}"]
            if stated:
                row["criteria"] = stated
            if isinstance(case.get("should_trigger"), bool):
                row["should_trigger"] = case["should_trigger"]
            rows.append(row)

        if len(cases) > _MOST_EVALS:
            self._findings.leave("evaluation", f"only the first {_MOST_EVALS} are taken")
        return rows

    def _criteria(self, case: JsonObject, place: str) -> list[Json]:
        stated: list[Json] = []
        for key in _CRITERIA:
            value = case.get(key)
            given = [_criterion(one) for one in value] if isinstance(value, list) else value
            for entry in given if isinstance(given, list) else [given]:
                found, wrong = criteria.read(entry, column=key)
                for fault in wrong:
                    self._findings.leave("criterion", fault, f"evaluation {place}")

                for one in found:
                    values = msgspec.to_builtins(one)
                    stated.append(values["text"] if set(values) == {"text"} else values)

        if isinstance(case.get("should_trigger"), bool):
            kind = "tool" if case["should_trigger"] else "not-tool"
            stated.append({"type": kind, "text": "Skill"})
            self._findings.take(
                "`should_trigger` is a criterion: whether the agent calls the tool Skill, which it "
                "does not have under `without`"
            )

        return stated


def _criterion(value: Json) -> Json:
    """An assertion as a criterion: a name beside its description says nothing new."""
    if not isinstance(value, Mapping):
        return value
    kind = str(value.get("type") or "")
    known = {**value, "type": _TYPES.get(kind, kind)}
    if kind == "regex":
        known["text"] = value.get("pattern") or value.get("value") or value.get("text")
    elif "text" not in value and not any(key in value for key in ("description", "criterion")):
        known["text"] = value.get("assertion") or value.get("value") or value.get("name")

    return {key: below for key, below in known.items() if below not in ("", None)}


def _text(case: JsonObject, keys: Sequence[str]) -> str:
    values = (case.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")
