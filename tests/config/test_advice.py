"""What is said of a judge before it is paid."""

from __future__ import annotations

from typing import Any

import pytest

from karat.config.advice import family, judge_advice, keys_of, models_of

SONNET = ["anthropic:claude-sonnet-4-5"]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"model": "openai:gpt-4.1", "temperature": 0.0}, []),
        ({"model": "openai:gpt-4.1", "temperature": None}, []),
        ({"model": "openai:gpt-4.1", "temperature": 0.1}, ["temperature"]),
        ({"model": "vertex_ai/claude-sonnet-4-5"}, ["model"]),
        ({"model": "anthropic:claude-opus-4-5"}, ["model"]),
        ({"judges": ["openai:gpt-4.1", {"model": "bedrock:us.anthropic.claude-haiku"}]}, ["judges"]),
        ({"pattern": "a+"}, []),
    ],
)
def test_a_judge_that_draws_at_random_or_grades_its_own_kind_is_warned_of(
    options: dict[str, Any], keys: list[str]
) -> None:
    assert [key for key, _ in judge_advice(options, SONNET)] == keys


def test_the_same_model_and_a_relative_are_told_apart() -> None:
    ((_, same),) = judge_advice({"model": "anthropic/claude-sonnet-4-5"}, SONNET)
    ((_, relative),) = judge_advice({"model": "anthropic:claude-opus-4-5"}, SONNET)
    assert same == "is the agent's own model, and models tend to prefer their own answers"
    assert relative.startswith("is of the agent's family of models (claude)")


@pytest.mark.parametrize(
    ("model", "found"),
    [("openai:gpt-4.1-mini", "gpt"), ("o4-mini", "gpt"), ("ollama:llama3:8b", "llama"), ("google/gemini-2.5", "gemini"),
     ("openai:4", "4")],
)  # fmt: skip
def test_the_family_is_the_first_word_of_the_name(model: str, found: str) -> None:
    assert family(model) == found


def test_the_keys_of_models_are_secrets() -> None:
    models = models_of({"judges": ["openai:a", {"model": "anthropic:b"}], "model": None})
    env = {"OPENAI_API_KEY": "canary-1", "ANTHROPIC_API_KEY": "canary-2", "OTHER": "x"}
    assert keys_of([*models, "claude-sonnet"], env) == {"OPENAI_API_KEY": "canary-1", "ANTHROPIC_API_KEY": "canary-2"}
