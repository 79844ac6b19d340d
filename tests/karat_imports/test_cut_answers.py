"""Answers that were cut at a limit of tokens are counted, whichever tool says so and in whichever words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.karat_imports.imported import imported, summary
from tests.karat_imports.test_eee import exported, instance
from tests.karat_imports.test_inspect import log

from karat_imports.imported import import_results


def inspect(folder: Path, reason: str) -> Path:
    choice = {"message": {"content": "The"}, "stop_reason": reason}
    return log(folder / "log.eval", {"output": {"model": "m", "choices": [choice]}})


def promptfoo(folder: Path, reason: str) -> Path:
    row = {
        "testIdx": 0, "promptIdx": 0, "vars": {"q": "q"}, "success": True, "score": 1,
        "response": {"output": "The", "finishReason": reason},
    }  # fmt: skip
    results = {"version": 3, "prompts": [{"raw": "{{q}}", "label": "p", "provider": "echo"}], "results": [row]}
    return written(folder, {"evalId": "e", "results": results})


def deepeval(folder: Path, reason: str) -> Path:
    return written(
        folder, {"testCases": [{"input": "q", "actualOutput": "The", "metadata": {"finish_reason": reason}}]}
    )


def openai_evals(folder: Path, reason: str) -> Path:
    sample = {"model": "m", "output": [{"role": "assistant", "content": "The"}], "finish_reason": reason}
    return written(
        folder,
        [{"object": "eval.run.output_item", "datasource_item_id": 1, "run_id": "r", "sample": sample}],
    )


def oaieval(folder: Path, reason: str) -> Path:
    data = {"prompt": "q", "sampled": ["The"], "finish_reason": reason}
    lines = [{"spec": {"eval_name": "e"}}, {"sample_id": "1", "type": "sampling", "data": data}]
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def eee(folder: Path, reason: str) -> Path:
    path = folder / "own_samples.jsonl"
    path.write_text(instance("a", 1.0, metadata={"finish_reason": reason}), encoding="utf-8")
    return path


def csv(folder: Path, reason: str) -> Path:
    path = folder / "table.csv"
    path.write_text(f"question,answer,finish_reason,score.right\nq,The,{reason},1\n", encoding="utf-8")
    return path


def written(folder: Path, content: object) -> Path:
    path = folder / "file.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("tool", "made_by"),
    [
        ("inspect", inspect), ("promptfoo", promptfoo), ("deepeval", deepeval), ("openai-evals", openai_evals),
        ("openai-evals", oaieval), ("eee", eee), ("csv", csv),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("reason", "cut"),
    [("length", 1), ("max_tokens", 1), ("MAX_TOKENS", 1), ("FinishReason.MAX_TOKENS", 1), ("stop", 0)],
)
def test_a_cut_answer_is_counted_as_one(
    tmp_path: Path, tool: str, made_by: Callable[[Path, str], Path], reason: str, cut: int
) -> None:
    made = imported(tool, tmp_path / "runs", made_by(tmp_path, reason))
    account = summary(made).total
    assert (account.attempts.answered, account.cut) == (1, cut)
    assert bool([text for text in summary(made).notices if "cut at the token limit" in text]) is bool(cut)


@pytest.mark.parametrize("column", ["stop_reason", "finish_reason", "Finish Reason", "finishReason", "why"])
def test_a_table_says_why_its_answers_ended(tmp_path: Path, column: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"question,answer,{column}\na,The,length\nb,Yes.,stop\nc,,length\nd,,\n", encoding="utf-8")
    options = {"map": {"stop_reason": column}} if column == "why" else {}
    (made,) = import_results("csv", [path], tmp_path / "runs", options=options)
    account = summary(made).total
    assert (account.attempts.answered, account.cut, account.ledger.not_run) == (3, 2, 1)


def test_an_export_for_every_eval_ever_keeps_it(tmp_path: Path) -> None:
    made = imported("inspect", tmp_path / "runs", inspect(tmp_path, "max_tokens"))
    assert summary(imported("eee", tmp_path / "after", *exported(made, tmp_path / "out"))).total.cut == 1
