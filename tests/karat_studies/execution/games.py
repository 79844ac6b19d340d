"""Small studies with games of several rounds, and what an agent was asked in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

__all__ = ["AGENT", "MEMBERS", "ROUNDS", "asked", "write_game"]

MEMBERS, ROUNDS = 3, 3

MATERIALS = {
    "first": "Round {{ round }}: say a number, {{ profile.name }}.",
    "next": "Round {{ round }}: you said {{ last.number }}; {{ others.n }} others: mean {{ others.mean }}, "
    "{{ others.lowest }} to {{ others.highest }}. Say a number.",
    "one": "First question, {{ profile.name }}?",
    "two": "Second question?",
    "three": "Third question?",
    "four": "Fourth question?",
}

# Logs what it is asked, as one line, before it answers; the number says who, where and when.
AGENT = """
import json, os, pathlib
LOG = pathlib.Path(__file__).with_name("asked.jsonl")
def asked(**what):
    line = json.dumps(what).encode() + b"\\n"
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
def number(sample, turn):
    group = int(sample.id[-1]) if "members" in sample.detail else 0
    return 10 * group + turn + 0.5
"""
QUERY = """
def query(user_query, history, system_prompt, sample, turn, seed, condition, repetition):
    asked(sample=sample.id, turn=turn, question=user_query, system=system_prompt, seed=seed, condition=condition,
          repetition=repetition, history=[[one["question"], one["answer"]] for one in history])
    key, usage = user_query.split("\\n")[-1].partition(":")[0], {"input_tokens": 10, "output_tokens": 1}
    return {"text": f"{key}: {number(sample, turn)}", "dollars": 1.0, "usage": usage}
"""


def study(groups: int, tasks: int) -> dict[str, Any]:
    """A game of some groups, and an arm with some tasks for two participants alone."""
    said = {"number": {"type": "number", "range": [0, 100]}}
    arms: dict[str, Any] = {}
    if groups:
        rounds = {
            "count": ROUNDS, "group": MEMBERS, "first": "materials/first.md", "prompt": "materials/next.md",
            "fields": said,
        }  # fmt: skip
        arms["game"] = {"n": groups * MEMBERS, "rounds": rounds}
    if tasks:
        names = ["one", "two", "three", "four"][:tasks]
        arms["alone"] = {
            "n": 2,
            "tasks": [
                {"prompt": f"materials/{name}.md", "fields": {f"{name}_number": said["number"]}} for name in names
            ],
        }
    measure = "number" if groups else "one_number"
    human = {"mean": 30.0, "sd": 10.0, "n": groups * MEMBERS * ROUNDS if groups else 2, "t": 6.0}
    test = {"id": "T1", "kind": "ttest_one", "measure": measure, "against": 20.0, "expect": "greater", "human": human}
    test["n_reason"] = "made up"
    if groups:  # everyone answers once a round
        test["by"] = "participant"
    return {
        "study": "game", "title": "A game", "source": "Nobody (1999)", "domain": "strategic",
        "participants": {"per_arm": "human", "profile": {"name": ["Ada", "Bo", "Cy"], "age": [18, 60]}},
        "arms": arms,
        "findings": [{"id": "F1", "claim": "Numbers are large.", "tests": [test]}],
    }  # fmt: skip


def write_game(
    folder: Path, experiment: Callable[..., Path], code: str = "", *, groups: int = 2, tasks: int = 0, **sections: Any
) -> Path:
    """experiment.yaml on a study in `folder`; the agent is `query` in the code, or one that counts."""
    place = folder / "game"
    (place / "materials").mkdir(parents=True, exist_ok=True)
    for name, text in MATERIALS.items():
        (place / "materials" / f"{name}.md").write_text(text)
    (place / "study.yaml").write_text(yaml.safe_dump(study(groups, tasks), sort_keys=False))
    sys.modules.pop(f"agent_of_{folder.name.replace('-', '_')}", None)
    dataset = {"kind": "study", "path": str(place / "study.yaml"), **sections.pop("dataset", {})}
    sections = {"conditions": {"a": {"system_prompt": "You are {{ profile.name }}."}}, "scorers": [], **sections}
    execution = {"num_repetitions": 1, **sections.pop("execution", {})}
    return experiment(AGENT + (code or QUERY), dataset=dataset, execution=execution, **sections)


def asked(file: Path) -> list[dict[str, Any]]:
    """What the agent was asked, in the order in which it was."""
    log = file.with_name("asked.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
