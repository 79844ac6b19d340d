"""What models are called, and what they cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from karat.errors import BadOption
from karat.models import ModelName, Price, key_variable, parse_model, price, price_table, total
from karat.records import Usage

THOUSAND = Usage(input_tokens=1000, output_tokens=100)


@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("openai:gpt-4.1", "openai", "gpt-4.1"),
        ("anthropic/claude-opus-4-5", "anthropic", "claude-opus-4-5"),
        ("openrouter/anthropic/claude-opus-4-5", "openrouter", "anthropic/claude-opus-4-5"),
        ("openrouter:anthropic/claude-opus-4-5", "openrouter", "anthropic/claude-opus-4-5"),
        ("ollama/llama3:8b", "ollama", "llama3:8b"),
        ("bedrock:us.anthropic.claude-v1:0", "bedrock", "us.anthropic.claude-v1:0"),
        ("vertex_ai/gemini-3-pro", "google-cloud", "gemini-3-pro"),
        ("gemini/gemini-3-pro", "google", "gemini-3-pro"),
        ("gateway/openai:gpt-5", "gateway/openai", "gpt-5"),
    ],
)
def test_both_spellings_are_read(text: str, provider: str, name: str) -> None:
    assert parse_model(text) == ModelName(provider, name)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gpt-4.1", "openai:gpt-4.1"),
        ("claude-opus-4-5", "anthropic:claude-opus-4-5"),
        ("openai:", "openai:gpt-4.1"),
        ("", "openai:gpt-4.1"),
    ],
)
def test_a_model_without_its_provider_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(BadOption, match=rf"judge\.model: must be provider:model, e\.g\. {hint}"):
        parse_model(text, place="judge.model")


def test_each_provider_has_its_own_key() -> None:
    names = ["openai", "openai-chat", "anthropic", "google", "mistral", "gateway/anthropic"]
    assert [key_variable(name) for name in names] == [
        "OPENAI_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "MISTRAL_API_KEY",
        "ANTHROPIC_API_KEY",
    ]


def test_the_users_prices_go_before_the_table() -> None:
    prices = {"openai:gpt-4.1": Price(input=1.0, output=10.0)}
    for model in ("openai:gpt-4.1", "openai/gpt-4.1", "openai-chat:gpt-4.1", "openai-responses:gpt-4.1"):
        assert price(model, THOUSAND, prices) == pytest.approx(0.002)
    assert price("openai:gpt-4.1", THOUSAND, {"gpt-4.1": Price(input=0, output=0)}) == 0.0
    assert price("anthropic:gpt-4.1", THOUSAND, prices) is None


def test_cached_tokens_are_part_of_the_input_and_priced_apart() -> None:
    usage = Usage(input_tokens=1000, output_tokens=0, cache_read_tokens=600, cache_write_tokens=300)
    plain = Price(input=10, output=0)
    apart = Price(input=10, output=0, cache_read=1, cache_write=20)
    assert plain.dollars(usage) == pytest.approx(1000 * 10 / 1e6)
    assert apart.dollars(usage) == pytest.approx((100 * 10 + 600 * 1 + 300 * 20) / 1e6)


def test_the_table_knows_the_models_of_providers_and_not_those_of_other_services() -> None:
    pytest.importorskip("genai_prices", reason="needs the extra `chat`")
    # https://openai.com/api/pricing, gpt-4.1: 2.00 and 8.00 dollars per million
    assert price("openai:gpt-4.1", THOUSAND) == pytest.approx((1000 * 2 + 100 * 8) / 1e6)
    assert price("openai-chat:gpt-4.1", THOUSAND) == price("openai:gpt-4.1", THOUSAND)
    assert price("openai:rehearsal", THOUSAND) is None
    assert price("openai:gpt-4.1", THOUSAND, base_url="http://127.0.0.1:8000/v1") is None
    assert price("openai:gpt-4.1", THOUSAND, base_url="https://api.openai.com/v1") is not None
    assert price("openai:gpt-4.1", None) is None
    assert price_table().startswith("genai-prices ")


def test_usage_adds_up_and_what_nobody_told_stays_unknown() -> None:
    first = Usage(input_tokens=1, output_tokens=2, reasoning_tokens=1)
    second = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=5)
    both = Usage(input_tokens=11, output_tokens=22, cache_read_tokens=5, reasoning_tokens=1)
    assert total(first, second) == both
    assert total(None, first) == first
    assert total(None, None) is None


def test_the_package_loads_no_sdk() -> None:
    code = (
        "import sys, karat.models as m; m.parse_model; m.limiter; m.metered; m.fault_of; m.open_model; m.price\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'genai_prices', 'httpx2', 'mcp'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
