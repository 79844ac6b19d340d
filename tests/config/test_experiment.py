"""What a good experiment file becomes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.reading_experiments import GOOD, REST

from karat import plugins
from karat.config import Execution, Experiment, load
from karat.config.digests import agent_digest
from karat.errors import BadExperiment
from karat.records import AgentSpec, ScorerSpec

Read = Callable[..., Experiment]

EXAMPLE = """\
name: support-kb
version: 1.10
dataset: {kind: golden, path: questions.jsonl, id_key: null, sample_size: null}
agent: {type: chat, model: "anthropic:claude-sonnet-4-5"}
judge: {model: "anthropic:claude-opus-4-5", temperature: 0.0, repeats: 1, rubric: default}
mcp_servers:
  docs: {type: stdio, command: python, args: [docs_server.py], env: {INDEX: ./docs}, scope: trial}
  rag:  {type: http, url: "http://localhost:8080/mcp", headers: {Authorization: "Bearer ${RAG_KEY}"}}
conditions:
  with-docs: {system_prompt: "Use the {{ docs }} tool.", mcp_servers: [docs, rag], require_mcp_tool_use: true}
  baseline:  {system_prompt: "Answer from your own knowledge."}
execution:
  num_repetitions: 3
  retry: {max_attempts: 3, initial_backoff_seconds: 1, backoff_multiplier: 2, max_backoff_seconds: 60}
  budget: {usd: null, tokens: null}
scorers: []
secrets: []
"""
RAG_KEY = {"RAG_KEY": "canary-secret-1"}


def test_the_example_of_the_design_is_read_whole(read: Read, folder: Path) -> None:
    found = read(EXAMPLE, env=RAG_KEY)
    assert (found.name, found.slug, found.version, found.kind) == ("support-kb", "support-kb", "1.10", "golden")
    assert found.folder == folder
    assert found.dataset.path == folder / "questions.jsonl"
    assert [condition.name for condition in found.conditions] == ["with-docs", "baseline"]
    assert [condition.position for condition in found.conditions] == [0, 1]
    assert found.conditions[0].system_prompt == "Use the {{ docs }} tool."
    assert [server.name for server in found.conditions[0].mcp_servers] == ["docs", "rag"]
    assert found.conditions[0].gate.require_mcp_tool_use
    assert found.servers[0].env == {"INDEX": "./docs"}
    assert found.servers[1].headers == {"Authorization": "Bearer canary-secret-1"}
    assert found.execution == Execution()
    assert [scorer.name for scorer in found.scorers] == ["judge"]
    assert found.text == EXAMPLE


def test_little_is_required(read: Read) -> None:
    found = read(GOOD)
    assert found.name == "experiment"
    assert found.agent == AgentSpec(type="floor", options=found.agent.options, digest=found.agent.digest)
    assert found.execution == Execution()
    assert found.warnings == ()
    assert len(found.load_dataset()) == 1


def test_more_conditions_than_a_report_reads_are_refused_before_anything_is_asked() -> None:
    many: dict[str, Any] = {f"c{at}": {} for at in range(501)}
    with pytest.raises(BadExperiment, match=r"conditions: at most 500 entries, got 501"):
        Experiment(dataset={"path": "q.jsonl"}, agent={"type": "floor"}, conditions=many, scorers=[])


def test_an_offline_judge_is_called_judge_and_stands_first(read: Read) -> None:
    text = GOOD + "scorers: [equals, regex: {pattern: ^2}, {type: regex, name: has-digit, pattern: '[0-9]'}]\n"
    found = read(text)
    assert [(scorer.type, scorer.name) for scorer in found.scorers] == [
        ("overlap", "judge"),
        ("equals", "equals"),
        ("regex", "regex"),
        ("regex", "has-digit"),
    ]
    assert found.scorers[2].options["pattern"] == "^2"


def test_no_judge_is_wanted_where_scorers_are_given_even_none(read: Read) -> None:
    without = GOOD.replace("judge: {type: overlap}\n", "")
    assert read(without + "scorers: [equals]\n").warnings == ()
    unscored = read(without + "scorers: []\n")
    assert unscored.scorers == ()
    assert "nothing is scored" in unscored.warnings[0]


def test_a_condition_overrides_options_of_the_agent(read: Read) -> None:
    text = """\
dataset: {path: questions.jsonl}
agent: {type: chat, model: "openai:a", temperature: 0.5}
judge: {type: overlap}
conditions:
  a: {}
  b: {agent: {model: "openai:b"}}
  c: {agent: {model: "openai:a"}}
"""
    a, b, c = read(text).conditions
    assert (a.agent.options["model"], b.agent.options["model"]) == ("openai:a", "openai:b")
    assert b.agent.options["temperature"] == 0.5
    assert a.agent.digest == c.agent.digest != b.agent.digest
    assert a.digest == b.digest
    assert read(text).resolved["conditions.b.agent.model"].value == "openai:b"


def test_the_dataset_is_looked_for_in_the_working_directory_then_beside_the_file(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "experiment.yaml").write_text(GOOD)
    assert load("inner/experiment.yaml", env={}).dataset.path == folder / "questions.jsonl"
    (inner / "questions.jsonl").write_text("{}\n")
    both = load("inner/experiment.yaml", env={})
    assert both.dataset.path == folder / "questions.jsonl"
    assert "the first is used" in both.warnings[0]
    (folder / "questions.jsonl").unlink()
    assert load("inner/experiment.yaml", env={}).dataset.path == inner / "questions.jsonl"


def test_each_setting_knows_where_it_comes_from(read: Read) -> None:
    text = GOOD + 'execution: {num_repetitions: "${REPS}", max_concurrent: 7}\n'
    found = read(text, env={"REPS": "4"}, settings=["execution.timeout_seconds=30", "execution.retry.max_attempts=1"])
    sources = {key.removeprefix("execution."): (choice.value, choice.source) for key, choice in found.resolved.items()}
    assert sources["num_repetitions"] == (4, "environment")
    assert sources["max_concurrent"] == (7, "file")
    assert sources["timeout_seconds"] == (30.0, "flag")
    assert sources["retry.max_attempts"] == (1, "flag")
    assert sources["retry.timeouts"] == (False, "default")
    assert sources["judge.type"] == ("overlap", "file")


def test_numbers_that_come_as_text_through_the_environment_are_numbers(read: Read) -> None:
    text = GOOD + 'execution: {num_repetitions: "${N}", timeout_seconds: "${S}", retry: {timeouts: "${B}"}}\n'
    found = read(text, env={"N": "7", "S": "1.5", "B": "true"}).execution
    assert (found.num_repetitions, found.timeout_seconds, found.retry.timeouts) == (7, 1.5, True)


def test_digests_cover_what_an_answer_depends_on_and_no_name_or_secret(read: Read) -> None:
    first = read(EXAMPLE, env=RAG_KEY).conditions[0]

    def digest(text: str, **env: str) -> str:
        return read(text, env=RAG_KEY | env).conditions[0].digest

    assert digest(EXAMPLE, RAG_KEY="another-secret-2") == first.digest
    assert digest(EXAMPLE.replace("with-docs:", "documented:")) == first.digest
    assert digest(EXAMPLE.replace("scope: trial", "scope: trial, call_timeout_seconds: 5")) == first.digest
    for changed in (
        EXAMPLE.replace("Use the", "Do use the"),
        EXAMPLE.replace("docs_server.py", "server.py"),
        EXAMPLE.replace("scope: trial", "scope: run"),
        EXAMPLE.replace("require_mcp_tool_use: true", "require_mcp_tool_success: true"),
        EXAMPLE.replace("[docs, rag]", "[docs]"),
        EXAMPLE.replace("RAG_KEY", "RAG_KEY_2"),
    ):
        assert digest(changed, RAG_KEY_2="canary-secret-1") != first.digest


def test_a_default_that_is_written_out_changes_no_agent_digest(read: Read) -> None:
    text = GOOD.replace("{type: floor}", "{type: chat, model: 'openai:m'%s}")
    assert read(text % "").agent.digest == read(text % ", top_p: null").agent.digest
    assert read(text % "").agent.digest == read(text % ", max_turns: 50").agent.digest
    assert read(text % "").agent.digest != read(text % ", top_p: 0.5").agent.digest


def test_an_option_that_a_newer_karat_adds_changes_no_agent_digest_at_its_default() -> None:
    plugin = plugins.find("agents", "chat")
    whole = plugin.Options(model="openai:m").model_dump()
    assert agent_digest("chat", plugin, {"model": "openai:m"}) == agent_digest("chat", plugin, whole)
    assert agent_digest("chat", plugin, {"model": "openai:n"}) != agent_digest("chat", plugin, whole)


def test_an_experiment_is_made_in_python_with_the_keys_of_the_file(folder: Path) -> None:
    def answer(user_query: str, system_prompt: str, mcp_servers: Any) -> str:
        return user_query

    keys: dict[str, Any] = {
        "dataset": {"path": Path("questions.jsonl")},
        "agent": {"type": "python", "target": answer},
        "scorers": ("equals",),
        "conditions": {"a": {"system_prompt": "${WHO}"}},
        "execution": Execution(num_repetitions=2),
    }
    found = Experiment(**keys, env={"WHO": "you"})
    assert found.agent.options["target"] is answer
    assert found.conditions[0].system_prompt == "you"
    assert found.scorers == (ScorerSpec(type="equals", name="equals", options=found.scorers[0].options),)
    assert found.resolved["agent.target"].value.endswith("answer")
    assert "target: " in found.text
    assert found.agent.digest == Experiment(**keys, env={"WHO": "you"}).agent.digest
    assert found.folder == folder
    assert found.execution.num_repetitions == 2
    assert found.resolved["execution.num_repetitions"].source == "file"
    assert found.resolved["execution.max_concurrent"].source == "default"


def test_faults_of_an_experiment_made_in_python_come_all_at_once(folder: Path) -> None:
    with pytest.raises(BadExperiment) as caught:
        Experiment(dataset={"path": "gone.jsonl"}, agnt={}, conditions={}, judge={"type": "overlap"})
    assert [fault.place for fault in caught.value.faults] == ["dataset.path", "conditions", "agnt"]


def test_it_can_be_pickled_and_shows_no_secret(read: Read) -> None:
    found = read(EXAMPLE, env=RAG_KEY)
    assert repr(found) == "Experiment(name='support-kb', agent='chat', conditions=['with-docs', 'baseline'])"
    assert pickle.loads(pickle.dumps(found)).resolved == found.resolved


def test_warnings_tell_what_is_probably_not_meant(read: Read) -> None:
    text = """\
dataset: {path: questions.jsonl}
agent: {type: chat, model: "openai:gpt"}
judge: {model: openai/gpt, temperature: 0.5}
mcp_servers: {docs: {command: python}}
conditions: {no: {require_mcp_tool_success: on}}
"""
    assert list(read(text).warnings) == [
        (
            "conditions.no (line 5, column 14): other YAML readers take the key no for true or false; here it is "
            'the text. Write "no" to be sure'
        ),
        (
            "conditions.no.require_mcp_tool_success (line 5, column 45): YAML reads on as true; write true, "
            'or "on" for the text'
        ),
        "mcp_servers.docs (line 4, column 15): no condition uses it",
        "judge.temperature (line 3, column 28): above 0 the judge scores one answer differently from call to call",
        "judge.model (line 3, column 9): is the agent's own model, and models tend to prefer their own answers",
    ]


def test_a_file_that_is_not_there_is_told_with_its_nearest_name(folder: Path) -> None:
    (folder / "experiment.yaml").write_text(GOOD)
    with pytest.raises(BadExperiment, match=r"there is no such file \(did you mean 'experiment.yaml'\?\)"):
        load("experimet.yaml")
    with pytest.raises(BadExperiment, match=r"is a folder; name the experiment file in it, e\.g\. experiment\.yaml"):
        load(".")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Größe & Gewicht: v2", "gr-e-gewicht-v2"),
        ("日本", "run"),
        ("../up", None),
        ("a" * 200, "a" * 60),
        ("1.2", "1-2"),
    ],
)
def test_names_become_slugs(read: Read, name: str, slug: str | None) -> None:
    if slug is None:
        with pytest.raises(BadExperiment, match="must not contain a '/'"):
            read(f"name: '{name}'\n{GOOD}")
    else:
        assert read(f"name: '{name}'\n{GOOD}").slug == slug


def test_a_misspelt_path_is_one_fault_with_the_key_that_was_meant(read: Read) -> None:
    with pytest.raises(BadExperiment) as caught:
        read(GOOD.replace("path:", "pth:", 1))
    assert [(fault.place, fault.message) for fault in caught.value.faults] == [
        ("dataset.pth", "no such key (did you mean 'path'?)")
    ]


def test_a_dataset_that_is_there_and_no_file_is_not_said_to_be_missing(read: Read) -> None:
    with pytest.raises(BadExperiment, match="'/dev/null' is not a regular file"):
        read(GOOD.replace("questions.jsonl", "/dev/null", 1))


def test_reading_loads_nothing_heavy(folder: Path) -> None:
    (folder / "experiment.yaml").write_text(GOOD)
    code = (
        "import sys; from karat.config import load; load('experiment.yaml'); "
        "print([name for name in ('numpy', 'scipy', 'duckdb', 'mcp', 'rich', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_agents_of_the_experiments_folder_are_found(folder: Path) -> None:
    inner = folder / "own"
    inner.mkdir()
    (inner / "my_config_test_agent.py").write_text("class Mine:\n    def ask(self): ...\n")
    (inner / "e.yaml").write_text(GOOD.replace("{type: floor}", '{type: "my_config_test_agent:Mine"}'))
    before = list(sys.path)
    with contextlib.chdir(folder):
        assert load("own/e.yaml", env={}).agent.type == "my_config_test_agent:Mine"
    sys.path[:] = before


def test_rest_of_the_file_is_read_though_the_dataset_is_wrong(read: Read) -> None:
    with pytest.raises(BadExperiment) as caught:
        read("dataset: {kind: nonsense}\n" + REST.replace("{}", "{mcp_servers: [x]}"))
    assert [fault.place for fault in caught.value.faults] == [
        "dataset.kind",
        "dataset.path",
        "conditions.baseline.mcp_servers.0",
    ]


def test_the_search_baseline_has_its_plain_name(read: Read) -> None:
    text = "dataset: {path: questions.jsonl}\nagent: {type: NAME}\njudge: {type: overlap}\nconditions: {a: {}}\n"
    new, old = read(text.replace("NAME", "search-baseline")), read(text.replace("NAME", "floor"))
    assert new.agent == old.agent


def test_the_baseline_is_one_of_the_conditions(read):
    name = read(GOOD).conditions[0].name
    assert read(f"{GOOD}\nbaseline: {name}\n").resolved["baseline"].value == name
    with pytest.raises(BadExperiment) as bad:
        read(f"{GOOD}\nbaseline: {name}x\n")
    assert [fault.place for fault in bad.value.faults] == ["baseline"]
    assert f"no condition is called '{name}x' (did you mean '{name}'?)" in str(bad.value)


@pytest.mark.parametrize(
    ("traffic", "scope", "place", "words"),
    [
        (
            "mcp: {replay: tapes}",
            "trial",
            "mcp.replay (line 6, column 7)",
            "sends no notifications and no requests of a server",
        ),
        (
            "mcp: {replay: tapes}",
            "run",
            "mcp.replay (line 6, column 7)",
            "sends no notifications and no requests of a server",
        ),
        (
            "mcp: {record: tapes}",
            "run",
            "mcp_servers.docs.scope (line 4, column 53)",
            "passes on tools, resources",
        ),
        ("", "run", "mcp_servers.docs.scope (line 4, column 53)", "passes on tools, resources"),
        ("mcp: {record: tapes}", "trial", None, None),
        ("", "trial", None, None),
    ],
)
def test_what_a_proxy_does_not_pass_on_is_a_warning(
    read: Read, folder: Path, traffic: str, scope: str, place: str | None, words: str | None
) -> None:
    (folder / "tapes").mkdir()
    text = (
        "dataset: {path: questions.jsonl}\nagent: {type: AGENT}\njudge: {type: overlap}\n"
        f"mcp_servers: {{docs: {{command: python, args: [d.py], scope: {scope}}}}}\n"
        f"conditions: {{a: {{mcp_servers: [docs]}}}}\n{traffic}\n"
    )
    warnings = read(text.replace("{type: AGENT}", "{type: command, command: [a]}")).warnings
    assert len(warnings) == (place is not None)
    for warning in warnings:
        assert warning.startswith(f"{place}: the agent 'command' connects to its MCP servers by itself")
        assert words in warning
    assert read(text.replace("AGENT", "floor")).warnings == ()


def test_a_file_with_thousands_of_faults_is_read_once_and_each_is_told(read: Read) -> None:
    """Each place and each plug-in is looked up once, however often it is wrong: quadratic work took minutes."""
    unknown = "".join(f"k{at}: 1\n" for at in range(5000))
    with pytest.raises(BadExperiment) as caught:
        read(f"{GOOD}{unknown}scorers: [{', '.join(['xyzzy'] * 2000)}]\n")
    assert len(caught.value.faults) == 7000


@pytest.mark.parametrize(
    ("gate", "fault"),
    [
        ({"min": {"completeness": "much"}}, "gate.min.completeness"),
        ({"min": {"completeness": True}}, "must be a number, got true"),
        ({"max_drop": {"completeness": -0.1}}, "gate.max_drop.completeness"),
        ({"minimum": {"completeness": 4}}, "gate.minimum"),
        ({"baseline": ""}, "gate.baseline"),
    ],
)
def test_thresholds_are_numbers_by_name(tmp_path, gate, fault):
    (tmp_path / "q.jsonl").write_text('{"question": "1?", "answer": "1"}\n', encoding="utf-8")
    keys = {"dataset": {"path": "q.jsonl"}, "agent": {"type": "floor"}, "conditions": {"a": {}}, "folder": tmp_path}
    with pytest.raises(BadExperiment) as refused:
        Experiment(**keys, judge={"type": "overlap"}, gate=gate)
    assert fault in str(refused.value)


AUTH = """
dataset: {path: questions.jsonl}
agent: {type: floor}
judge: {type: overlap}
mcp_servers:
  shop: {url: "http://x.example/mcp", auth: AUTH}
conditions: {a: {mcp_servers: [shop]}}
"""
CLIENT = "{type: client_credentials, issuer: 'http://y.example', client_id: me, client_secret_env: SHOP_KEY}"


def test_the_secret_of_a_server_is_named_and_masked_and_not_in_its_digest(read: Read) -> None:
    one = read(AUTH.replace("AUTH", CLIENT), env={"SHOP_KEY": "the-first-secret"})
    other = read(AUTH.replace("AUTH", CLIENT), env={"SHOP_KEY": "another-secret"})
    auth = one.servers[0].auth
    assert auth is not None
    assert (auth.secret, auth.client_id, auth.issuer) == ("the-first-secret", "me", "http://y.example")
    assert one.secrets == {"SHOP_KEY": "the-first-secret"}
    assert one.servers[0].digest == other.servers[0].digest
    assert "the-first-secret" not in str(one.resolved)
    without = read(AUTH.replace(", auth: AUTH", ""))
    assert without.servers[0].digest != one.servers[0].digest


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        (
            "{type: client_credentials, client_id: me}",
            "needs `issuer` and `client_secret_env`",
        ),
        ("{type: login, private_key_env: SHOP_KEY}", "`type: login` takes no `private_key_env`"),
        (CLIENT.replace("SHOP_KEY", "UNSET_KEY"), "the environment variable UNSET_KEY is not set"),
        (CLIENT.replace("SHOP_KEY", "a-pasted-secret"), "must be the name of an environment variable that is set"),
        (CLIENT.replace("client_secret_env: SHOP_KEY", "client_secret: a-pasted-secret"), "must not be in the file"),
        ("{type: login}, type: sse", "OAuth needs `type: http`"),
        ("{type: login}, headers: {Authorization: 'Bearer ${SHOP_KEY}'}", "leave out one of `auth` and the header"),
    ],
)
def test_what_is_no_way_to_a_token_is_refused(read: Read, auth: str, words: str) -> None:
    with pytest.raises(BadExperiment) as bad:
        read(AUTH.replace("AUTH", auth), env={"SHOP_KEY": "the-first-secret"})
    assert words in str(bad.value)
    assert "a-pasted-secret" not in str(bad.value)


def test_sse_is_a_warning(read: Read) -> None:
    warnings = read(AUTH.replace("auth: AUTH", "type: sse")).warnings
    assert any("SSE is no longer part of the protocol" in str(warning) for warning in warnings)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("{mcp_servers: [shop], elicit: yes}", "must be accept, decline, cancel"),
        ("{mcp_servers: [shop], elicit: {colum: user}}", "or {column: NAME}"),
        ("{elicit: decline}", "the condition has no mcp_servers, so none can ask"),
    ],
)
def test_what_answers_no_question_of_a_server_is_refused(read: Read, condition: str, words: str) -> None:
    text = AUTH.replace(", auth: AUTH", "").replace("{mcp_servers: [shop]}", condition)
    with pytest.raises(BadExperiment) as bad:
        read(text)
    assert words in str(bad.value)


def test_the_script_of_a_user_is_part_of_its_conditions_digest(read: Read) -> None:
    text = AUTH.replace(", auth: AUTH", "")
    digests = [
        read(text.replace("[shop]}", f"[shop]{elicit}}}")).conditions[0].digest
        for elicit in ("", ", elicit: decline", ", elicit: {accept: {copies: 3}}", ", elicit: {column: user}")
    ]
    assert len(set(digests)) == 4


def test_an_experiment_does_not_change(read: Read) -> None:
    found = read(GOOD)
    with pytest.raises(AttributeError, match="an experiment does not change: make another one to set 'name'"):
        found.name = "other"
    assert found.name == "experiment"


@pytest.mark.parametrize(
    ("text", "settings", "place"),
    [
        ("agent: {type: python, target: 'a:b'}\n", [], r"experiment\.yaml: agent\.target \(line 2, column 23\)"),
        ("agent: {type: python}\n", ["agent.target=a:b"], r"experiment\.yaml: --set agent\.target"),
    ],
)
def test_the_place_that_sets_an_option_of_the_agent_is_known(
    read: Read, text: str, settings: list[str], place: str
) -> None:
    rest = "judge: {type: overlap}\nconditions: {a: {}, b: {agent: {target: 'c:d'}}}\n"
    found = read(f"dataset: {{path: questions.jsonl}}\n{text}{rest}", settings=settings)
    assert re.fullmatch(f".*{place}", found.agent_at("a", "target"))
    assert re.fullmatch(
        r".*experiment\.yaml: conditions\.b\.agent\.target \(line 4, column \d+\)", found.agent_at("b", "target")
    )


def test_an_experiment_made_in_python_has_keys_and_no_lines(folder: Path) -> None:
    made = Experiment(
        dataset={"path": "questions.jsonl"}, agent={"type": "python", "target": "a:b"}, judge={"type": "overlap"},
        conditions={"a": {}},
    )  # fmt: skip
    assert made.agent_at("a", "target") == "experiment: agent.target"


def test_what_cannot_be_read_as_a_file_says_why(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(BadExperiment, match=r"is a folder; name the experiment file in it$"):
        load("empty")
    os.mkfifo(folder / "pipe.yaml")
    with pytest.raises(BadExperiment, match="cannot be read: "):
        load("pipe.yaml")
    with pytest.raises(BadExperiment, match="cannot be read: "):
        load("a" * 300)
    with pytest.raises(BadExperiment, match="there is no such file; `karat init golden` writes one to begin with"):
        load("nowhere/like-it.yaml")


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        ("path: folder", "'folder' is a folder; name the file in it"),
        ("path: question.jsonl", "there is no file 'question.jsonl' in the working directory (did you mean"),
        ("path: [a, b]", "must be the path of a file, got a list"),
        ("path: 5", "must be the path of a file, got 5"),
        (f"path: {'a' * 300}", "cannot be read: "),
    ],
)
def test_a_dataset_that_is_no_file_is_told_apart(read: Read, folder: Path, dataset: str, says: str) -> None:
    (folder / "folder").mkdir()
    with pytest.raises(BadExperiment) as bad:
        read(GOOD.replace("path: questions.jsonl", dataset, 1))
    assert says in str(bad.value)


def test_a_prompt_from_a_file_is_recorded_with_its_digest(read: Read, folder: Path) -> None:
    (folder / "long.txt").write_text("Be long.")
    text = GOOD.replace(
        "baseline: {}",
        "a: {prompt_file: long.txt}, b: {system_prompt: {file: long.txt}}, c: {system_prompt_file: long.txt}",
    )
    found = read(text)
    assert [condition.system_prompt for condition in found.conditions] == ["Be long."] * 3
    assert len({condition.digest for condition in found.conditions}) == 1
    resolved = found.resolved
    for name in "abc":
        told = {
            key: resolved[f"conditions.{name}.{key}"]
            for key in ("system_prompt", "prompt_file.path", "prompt_file.sha256")
        }
        assert {choice.source for choice in told.values()} == {"file"}
        assert told["system_prompt"].value == "Be long."
        assert told["prompt_file.path"].value == "long.txt"
        assert told["prompt_file.sha256"].value == hashlib.sha256(b"Be long.").hexdigest()


def test_a_limit_on_a_model_that_nobody_asks_is_a_warning(read: Read) -> None:
    text = GOOD.replace("{type: floor}", "{type: chat, model: 'openai:asked'}")
    limits = "limits: {'openai:asked': {requests_per_minute: 5}, 'openai:other': {requests_per_minute: 5}}\n"
    (warning,) = read(text + limits).warnings
    assert str(warning).startswith("limits.openai:other")
    assert "no agent `chat` and no judge here asks this model, so it limits nothing" in str(warning)
    with pytest.raises(BadExperiment, match=r"limits\.other"):
        read(text + "limits: {other: {requests_per_minute: 5}}\n")


@pytest.mark.parametrize(
    ("prompt", "warns"),
    [
        ("prompts/brief.txt", "to send a file's text write `system_prompt: {file: prompts/brief.txt}`"),
        ("'file://brief.txt'", "{file: "),
        ("'@brief.txt'", "{file: brief.txt}"),
        ("questions.jsonl", "{file: questions.jsonl}"),
        ("Read brief.txt first.", None),
        ('"one\\nquestions.jsonl"', None),
        ("''", None),
    ],
)
def test_a_prompt_that_looks_like_a_file_is_a_warning(read: Read, prompt: str, warns: str | None) -> None:
    warnings = [
        str(warning) for warning in read(GOOD.replace("baseline: {}", f"a: {{system_prompt: {prompt}}}")).warnings
    ]
    if warns is None:
        assert warnings == []
    else:
        (warning,) = warnings
        assert warning.startswith("conditions.a.system_prompt")
        assert "looks like a path or an address, and is sent to the agent unchanged" in warning
        assert warns in warning


def test_a_variable_in_a_prompt_file_is_a_warning(read: Read, folder: Path) -> None:
    (folder / "brief.txt").write_text("Hello ${NAME}.")
    for key, place in (
        ("prompt_file: brief.txt", "prompt_file"),
        ("system_prompt: {file: brief.txt}", "system_prompt.file"),
    ):
        (warning,) = read(GOOD.replace("baseline: {}", f"a: {{{key}}}")).warnings
        assert str(warning).startswith(f"conditions.a.{place} ")
        assert "'brief.txt' holds ${NAME}, which is not filled in there; it is sent unchanged" in str(warning)


@pytest.mark.parametrize(
    ("server", "key", "shown"),
    [
        ("command: x, scope: run", "scope", "`scope: run`"),
        ("command: x, protocol: '2025-06-18'", "protocol", "`protocol: 2025-06-18`"),
        ("url: 'http://x/', auth: {type: login}", "auth", "`auth`"),
        ("url: 'http://x/', auth: {type: login}, protocol: '2025-06-18'", "auth", "`auth`"),
        ("command: x, scope: run, protocol: '2025-06-18'", "scope", "`scope: run`"),
    ],
)
def test_what_makes_a_server_go_through_a_proxy_is_named(read: Read, server: str, key: str, shown: str) -> None:
    text = GOOD.replace("{type: floor}", "{type: command, command: [a]}").replace(
        "baseline: {}", "a: {mcp_servers: [docs]}"
    )
    (warning,) = read(f"{text}mcp_servers: {{docs: {{{server}}}}}\n").warnings
    assert str(warning).startswith(f"mcp_servers.docs.{key} ")
    assert f"reaches a server with {shown} through a proxy" in str(warning)
    assert str(warning).endswith(f"Without `{key}` it sees all of the server")


def test_a_shared_server_asks_nobody(read: Read) -> None:
    text = GOOD.replace("baseline: {}", "a: {mcp_servers: [docs], elicit: decline}")
    read(text + "mcp_servers: {docs: {command: x}}\n")
    with pytest.raises(BadExperiment, match=r"conditions\.a\.elicit.*'docs' is shared \(`scope: run`\)"):
        read(text + "mcp_servers: {docs: {command: x, scope: run}}\n")


@pytest.mark.parametrize(
    ("traffic", "says"),
    [("record: a, replay: tapes", "leave out one of `record` and `replay`"), ("replay: gone", "there is no folder '")],
)
def test_traffic_is_recorded_or_replayed(read: Read, folder: Path, traffic: str, says: str) -> None:
    (folder / "tapes").mkdir()
    with pytest.raises(BadExperiment, match=says):
        read(f"{GOOD}mcp: {{{traffic}}}\n")


def test_a_command_in_one_text_is_split_as_a_shell_would(read: Read) -> None:
    text = GOOD.replace("{type: floor}", "{type: command, command: \"python 'my agent.py' --x\"}")
    assert read(text).agent.options["command"] == ["python", "my agent.py", "--x"]


@pytest.mark.parametrize("place", [".", "inner"])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (os.mkfifo, r"'rows' is not a regular file \(but a device or a pipe\); name a file of samples"),
        (os.mkdir, r"'rows' is a folder; name the file in it"),
        (lambda path: None, r"there is no file 'rows' in the working directory or the experiment's folder"),
    ],
)
def test_a_dataset_is_looked_at_in_both_folders_before_it_is_said_to_be_missing(
    folder: Path, place: str, make: Callable[[Path], None], says: str
) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "e.yaml").write_text(GOOD.replace("questions.jsonl", "rows"))
    make(folder / place / "rows")
    with pytest.raises(BadExperiment, match=says):
        load("inner/e.yaml", env={})


@pytest.mark.parametrize(
    ("text", "section", "settings"),
    [
        ("mcp: {record: tapes}", "mcp", {"mcp.record": "tapes"}),
        ("mcp: {replay: tapes}", "mcp", {"mcp.replay": "tapes"}),
        ("gate: {min: {m: 1}, max_drop: {m: 0.5}}", "gate", {"gate.min.m": 1.0, "gate.max_drop.m": 0.5}),
        ("gate: {baseline: 'latest:x'}", "gate", {"gate.baseline": "latest:x"}),
        ("baseline: baseline", "baseline", {"baseline": "baseline"}),
        (
            "prices: {'openai:m': {input: 1, output: 2}}",
            "prices",
            {
                "prices.openai:m.input": 1.0,
                "prices.openai:m.output": 2.0,
                "prices.openai:m.cache_read": None,
                "prices.openai:m.cache_write": None,
            },
        ),
    ],
)
def test_sections_that_are_not_set_are_not_recorded(
    read: Read, folder: Path, text: str, section: str, settings: dict[str, object]
) -> None:
    (folder / "tapes").mkdir()

    def recorded(text: str) -> dict[str, object]:
        resolved = read(text).resolved
        return {key: choice.value for key, choice in resolved.items() if key.split(".")[0] == section}

    assert recorded(f"{GOOD}{text}\n") == settings
    assert recorded(GOOD) == ({"prices": {}} if section == "prices" else {})


def test_the_workers_of_a_cluster_are_recorded_where_one_is_used(read: Read) -> None:
    plain = {key for key in read(GOOD).resolved if key.startswith("execution.")}
    assert "execution.num_repetitions" in plain
    assert not any(key.startswith(("execution.ray", "execution.executor")) for key in plain)
    assert read(GOOD + "execution: {num_repetitions: 1}\n").resolved["execution.num_repetitions"].value == 1
