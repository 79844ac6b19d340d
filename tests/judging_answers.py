"""Samples and answers in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karat.records import Answer, Reply, Sample, Turn
from karat.scorers import ScorerSetting, as_verdicts


def sample(golden: str | None, question: str = "") -> Sample:
    return Sample(id="1", position=0, digest="", turns=(Turn(question=question, golden=golden),))


def answer(text: str) -> Answer:
    reply = Reply(text=text)
    return Answer(trial="t", sample="1", condition="c", repetition=0, replies=(reply,), started="", seconds=0.0)


@pytest.fixture
def judge(tmp_path) -> Callable[..., Any]:
    """`judge(Class, golden, text, **options)` → the value, as the journal would hold it."""

    def score(plugin: type[Any], golden: str | None, text: str, **options: Any) -> Any:
        scorer = plugin(plugin.Options.model_validate(options), ScorerSetting(folder=tmp_path, name="it"))
        (verdict,) = as_verdicts(scorer.score(sample(golden), answer(text)), name="it")
        return verdict.values["it"]

    return score
