"""The examples that ask real models, rehearsed: each works without a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karat.__main__ import main

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "support-kb"


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_coding")
@pytest.mark.parametrize(
    ("file", "needs"), [("experiment.chat.yaml", "pydantic_ai"), ("experiment.claude.yaml", "claude_agent_sdk")]
)
def test_an_example_is_rehearsed_without_a_key(file, needs, tmp_path, monkeypatch, capsys):
    pytest.importorskip(needs, reason="the extras 'chat' and 'claude' bring what real agents need")
    pytest.importorskip("pydantic_ai", reason="the extra 'chat' brings what the judge needs")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code = main(
        [
            "run",
            "--rehearse",
            str(FOLDER / file),
            "--limit=1",
            "--set=execution.num_repetitions=1",
            "--results",
            str(tmp_path),
        ]
    )
    told = capsys.readouterr()
    assert code == 0, told.err + told.out
    (run,) = tmp_path.iterdir()
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = {line["condition"]: line["replies"][0] for line in lines if line["event"] == "answer"}
    assert not answers["baseline"].get("tool_calls")
    assert [call["server"] for call in answers["with-docs"]["tool_calls"]] == ["docs"]
    assert len([line for line in lines if line["event"] == "score"]) == 2
