"""What a run notes of the use of servers, skills and plug-ins, from the experiment file to the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from karat.analysis import summarize
from karat.execution import Outcome, Selection
from karat.tool_use import Offered

Write = Callable[..., Path]
Run = Callable[..., Outcome]

READER = """from karat import Reply, ToolCall

class Reader:
    context = ("skills", "plugins")
    reports_tool_calls = REPORTS

    async def ask(self, condition, sample, turn, history):
        calls = {
            "q0": (ToolCall(tool="Skill", input={"skill": "skills:tables"}),),
            "q1": (ToolCall(tool="Skill", input={"skill": "house-style:tone"}),),
        }
        return Reply(text="a0", tool_calls=calls.get(turn.question, ()) if condition.name == LOADS else ())
"""


def reader(experiment: Write, folder: Path, *, reports: bool, loads: str) -> Path:
    (folder / "tables").mkdir()
    (folder / "tables" / "SKILL.md").write_text("---\nname: tables\ndescription: d\n---\n")
    for name in ("house-style", "spare"):
        (folder / name / "skills").mkdir(parents=True)
    code = READER.replace("REPORTS", repr(reports)).replace("LOADS", repr(loads))
    conditions = {"plain": {}, "full": {"skills": ["tables"], "plugins": ["house-style", "spare"]}}
    module = f"agent_of_{folder.name.replace('-', '_')}"
    return experiment(code, agent={"type": f"{module}:Reader"}, conditions=conditions)


def test_a_run_notes_what_conditions_offer_and_answers_use(experiment: Write, run: Run, tmp_path: Path) -> None:
    outcome = run(reader(experiment, tmp_path, reports=True, loads="full"))
    info = outcome.run.info
    offers = (Offered("skill", "tables"), Offered("plugin", "house-style"), Offered("plugin", "spare"))
    assert (info.condition_offers, info.reports_tool_calls) == ({"full": offers}, True)
    summary = summarize(outcome.run)
    uses = [(use.condition, use.kind, use.name, use.answers, use.used) for use in summary.contexts]
    assert uses == [
        ("full", "skill", "tables", 6, 2),
        ("full", "plugin", "house-style", 6, 2),
        ("full", "plugin", "spare", 6, 0),
    ]
    words = (
        "full: never used its plug-in 'spare' in 6 answers, so its scores show the effect of offering it, not of "
        "using it"
    )
    assert words in summary.warnings


def test_a_condition_that_comes_with_a_resume_is_looked_at_like_the_others(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    file = reader(experiment, tmp_path, reports=True, loads="full")
    first = run(file, selection=Selection(conditions=("plain",)))
    assert not summarize(first.run).contexts
    again = run(file, selection=Selection(conditions=("plain", "full")), resume=first.run.path)
    summary = summarize(again.run)
    assert [(use.name, use.answers, use.used) for use in summary.contexts] == [
        ("tables", 6, 2), ("house-style", 6, 2), ("spare", 6, 0),
    ]  # fmt: skip
    assert set(summary.provenance.prompts) == set(summary.provenance.conditions) == {"plain", "full"}


def test_an_agent_that_does_not_say_that_it_reports_its_calls_may_have_made_some(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    outcome = run(reader(experiment, tmp_path, reports=False, loads="nobody"))
    summary = summarize(outcome.run)
    assert not outcome.run.info.reports_tool_calls
    assert [use.used for use in summary.contexts] == [None, None, None]
    assert not [text for text in summary.warnings if "never used" in text]
