"""`--to skill-evals`: the questions of a run as `evals.json` of an Agent Skill.

Source of the format: `references/schemas.md` of the skill `skill-creator` in the repository
anthropics/skills. `karat init --from SKILL_FOLDER` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from karat import formats
from karat.analysis import Summary
from karat.journal import RunFolder
from karat.records import JsonObject

__all__ = ["SkillEvals"]


class SkillEvals:
    """`evals.json` of an Agent Skill: questions as prompts, golden answers, criteria as
    expectations.
    """

    kinds = ("golden",)

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        cases: list[JsonObject] = []
        for sample in run.samples():
            case: JsonObject = {"id": sample.id, "prompt": sample.turns[-1].question}
            if sample.turns[-1].golden is not None:
                case["expected_output"] = sample.turns[-1].golden

            triggers = sample.metadata.get("should_trigger")
            if isinstance(triggers, bool):
                case["should_trigger"] = triggers
            stated: list[str | JsonObject] = []
            for one in sample.criteria:
                if one.text == "Skill" and isinstance(triggers, bool):  # should_trigger says it
                    continue

                # A sentence; an object where a rule decides, or weight matters
                values: JsonObject = msgspec.to_builtins(one)
                stated.append(one.text if set(values) == {"text"} else values)

            if stated:
                case["expectations"] = stated
            cases.append(case)

        return {"evals.json": formats.json_file({"skill_name": summary.name, "evals": cases})}
