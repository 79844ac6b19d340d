"""An experiment whose models are scripts: what changes in it, and what does not."""

from __future__ import annotations

import os

import pytest

from karat.config import Experiment, rehearsal
from karat.config.rehearsed import redirected
from karat.errors import BadExperiment

URL = "http://127.0.0.1:7"


@pytest.fixture
def made(tmp_path):
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answer": "Me."}\n', encoding="utf-8")

    def make(agent, **keys):
        standing = {"dataset": {"path": "questions.jsonl"}, "conditions": {"plain": {}}, "judge": {"type": "overlap"}}
        return Experiment(folder=tmp_path, env={"REAL_KEY": "a-real-key"}, agent=agent, **{**standing, **keys})

    return make


@pytest.mark.parametrize(
    ("model", "spoken"),
    [
        ("openai:gpt-4.1", "openai:gpt-4.1"),
        ("anthropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("openai-responses:gpt-5", "openai-responses:gpt-5"),
        ("google:gemini-2.5-pro", "openai:google/gemini-2.5-pro"),
        ("bedrock:us.anthropic.claude-opus-5-v1:0", "openai:bedrock/us.anthropic.claude-opus-5-v1:0"),
        ("gateway/anthropic:claude-opus-5", "openai:gateway/anthropic/claude-opus-5"),
    ],
)
def test_every_model_is_reached_by_a_protocol_that_the_server_speaks(made, model, spoken):
    found = redirected(made({"type": "chat", "model": model}), URL)
    assert found.agent.options["model"] == spoken
    assert found.conditions[0].agent.options == found.agent.options


def test_addresses_keys_and_headers_of_the_file_do_not_reach_the_rehearsal(made):
    agent = {
        "type": "chat",
        "model": "openai:m",
        "base_url": "https://example.org/v1",
        "api_key_env": "REAL_KEY",
        "headers": {"x-more": "${REAL_KEY}"},
    }
    before = made(agent, conditions={"plain": {}, "other": {"agent": {"base_url": "https://example.com/v1"}}})
    found = redirected(before, URL)
    for condition in found.conditions:
        options = condition.agent.options
        assert (options["base_url"], options["api_key_env"], options["headers"]) == (URL, "KARAT_REHEARSAL_KEY", {})
    assert found.env["KARAT_REHEARSAL_KEY"] == "rehearsal"
    assert found.resolved["agent.base_url"].value == URL
    # The trials are the same ones: a rehearsal shows the run that is to come.
    assert [one.digest for one in found.conditions] == [one.digest for one in before.conditions]
    assert (before.rehearsed, found.rehearsed) == (False, True)
    assert before.agent.options["base_url"] == "https://example.org/v1"


@pytest.mark.needs_package("karat_coding")
def test_claude_code_keeps_its_models_own_name(made):
    found = redirected(made({"type": "claude", "model": "us.anthropic.claude-opus-5-v1:0", "provider": "bedrock"}), URL)
    assert (found.agent.options["model"], found.agent.options["base_url"]) == ("us.anthropic.claude-opus-5-v1:0", URL)


def test_each_judge_of_a_panel_is_redirected(made):
    judges = ["openai:a", {"model": "google:b", "base_url": "https://example.org/v1"}]
    found = redirected(made({"type": "floor"}, judge={"judges": judges}), URL)
    (judge,) = found.scorers
    assert (judge.options["judges"], judge.options["base_url"]) == (["openai:a", "openai:google/b"], URL)


def test_from_python_it_is_a_block(made):
    before = dict(os.environ)
    with rehearsal(made({"type": "floor"}), script=[{"say": "hello"}]) as found:
        assert found.experiment.name == "experiment (rehearsed)"
        assert found.server.requests == []
        assert "127.0.0.1" in os.environ["NO_PROXY"]
    assert dict(os.environ) == before


def test_a_variable_that_was_set_before_is_so_again(made, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "intranet")
    with rehearsal(made({"type": "floor"}), script=[{"say": "hello"}]):
        assert os.environ["NO_PROXY"] == "intranet,127.0.0.1"
    assert os.environ["NO_PROXY"] == "intranet"


@pytest.mark.needs_package("karat_coding")
def test_an_agents_own_environment_has_no_proxy_before_this_machine(made):
    agent = {"type": "claude", "model": "opus", "env": {"NO_PROXY": "intranet", "A": "1"}}
    found = redirected(made(agent), URL)
    assert found.agent.options["env"] == {"A": "1", "NO_PROXY": "intranet,127.0.0.1", "no_proxy": "127.0.0.1"}


def test_an_experiment_that_is_moved_has_its_files_in_other_places(made, tmp_path):
    (tmp_path / "tapes").mkdir()
    before = made({"type": "floor"}, mcp={"replay": "tapes"})
    there = before.moved({tmp_path: tmp_path / "there"}, {"A": "1"})
    assert there.folder == tmp_path / "there"
    assert there.cassettes.folder == tmp_path / "there" / "tapes"
    assert (there.cassettes.mode, there.env) == ("replay", {"A": "1"})
    assert before.cassettes.folder == tmp_path / "tapes"
    apart = before.moved({tmp_path / "tapes": tmp_path / "reel"}, {})
    assert (apart.folder, apart.cassettes.folder) == (tmp_path, tmp_path / "reel")


OWN = """
from karat import Reply

class Asks:
    async def ask(self, condition, sample, turn, history):
        return Reply(text="x")

class Plays(Asks):
    offline = True

class Rule:
    def score(self, sample, answer):
        return True

class Service(Rule):
    offline = False
"""


@pytest.fixture
def own(made, tmp_path):
    """An experiment with an agent and a scorer of one's own."""
    module = f"rehearsed_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(OWN)

    def make(agent, scorer):
        return made({"type": f"{module}:{agent}"}, judge=None, scorers=[f"{module}:{scorer}"])

    return make


def test_what_karat_cannot_keep_from_asking_a_model_is_refused_together(own):
    with pytest.raises(BadExperiment) as bad, rehearsal(own("Asks", "Service")):
        pass
    agent, scorer = bad.value.faults
    assert (agent.place, scorer.place) == ("agent.type", "scorers")
    assert agent.message.endswith(
        "asks its models by itself, and karat cannot send it to a scripted one; to try the file unchanged: "
        "`karat run FILE --limit 1`"
    )
    assert scorer.message.startswith("the scorer 'rehearsed_")


def test_an_agent_that_says_that_it_asks_none_and_a_scorer_that_does_not_say_are_rehearsed(own):
    with rehearsal(own("Plays", "Rule")) as found:
        assert found.experiment.rehearsed


def test_a_file_is_rehearsed_by_its_path(made, tmp_path):
    made({"type": "floor"})
    (tmp_path / "e.yaml").write_text(
        f"dataset: {{path: {tmp_path / 'questions.jsonl'}}}\n"
        "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n"
    )
    with rehearsal(tmp_path / "e.yaml") as found:
        assert (found.experiment.name, found.experiment.path) == ("e (rehearsed)", tmp_path / "e.yaml")
