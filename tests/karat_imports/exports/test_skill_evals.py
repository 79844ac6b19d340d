"""The questions of a run as `evals.json` of a skill, which `karat init --from` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from karat.analysis import summarize
from karat.kinds.golden import Golden
from karat_imports.exports.skill_evals import SkillEvals
from karat_imports.setups.skill import Skill

EVALS: list[dict[str, Any]] = [
    {
        "id": "1",
        "prompt": "Say it.",
        "expected_output": "Said.",
        "expectations": ["Says it.", {"text": "a+", "type": "regex", "weight": 2.0}],
    },
    {"id": "2", "prompt": "Weather?", "should_trigger": False},
    {"id": "3", "prompt": "Do it.", "should_trigger": True, "expectations": ["Does it."]},
]


def test_evaluations_come_back_as_they_were(tmp_path: Path, journals: Any) -> None:
    (tmp_path / "demo" / "evals").mkdir(parents=True)
    (tmp_path / "demo" / "SKILL.md").write_text("---\nname: demo\ndescription: A demo.\n---\n")
    (tmp_path / "demo" / "evals" / "evals.json").write_text(json.dumps({"skill_name": "demo", "evals": EVALS}))
    setup = Skill().read(tmp_path / "demo", tmp_path)
    rows = "".join(f"{json.dumps(row)}\n" for row in setup.rows)
    (tmp_path / "questions.jsonl").write_text(rows)

    named = {key: value for key, value in setup.experiment["dataset"].items() if key != "path"}
    samples = Golden(Golden.Options(**named)).load(tmp_path / "questions.jsonl").samples
    run = journals.Script(tmp_path / "run", samples=samples, name="demo").end()
    (text,) = SkillEvals().render(summarize(run), run).values()
    assert json.loads(text) == {"skill_name": "demo", "evals": EVALS}
    assert setup.rows[1]["criteria"] == [{"text": "Skill", "type": "not-tool"}], "what should_trigger says"
