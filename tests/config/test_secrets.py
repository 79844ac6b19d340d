"""Which values are secret, and that none of them is shown."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest

from karat.config import Experiment
from karat.config.secrets import Secrets, sounds_secret
from karat.documents.nodes import from_python
from karat.errors import BadExperiment

Read = Callable[..., Experiment]

TEXT = """\
name: "run ${REPS}"
dataset: {path: questions.jsonl}
agent:
  type: http
  url: "http://${USER_NAME}:${PASS}@${HOST}/ask?sig=${SIGNATURE}&page=${PAGE}"
  headers: {X-Trace: "${TRACE}", Accept: text/html}
judge: {model: m/n, api_key_env: JUDGE_KEY}
mcp_servers:
  docs: {command: python, args: ["--token", "${DOCS_TOKEN}", "${PLAIN}"], env: {INDEX: "${INDEX}", MODE: fast}}
conditions:
  a: {system_prompt: "Ask ${HOST} as ${TRACE}, never ${NAMED}.", mcp_servers: [docs]}
execution: {num_repetitions: "${REPS}"}
secrets: [NAMED, UNUSED]
"""
ENV = {
    name: f"canary-{name.lower()}-{number:04}"
    for number, name in enumerate(
        [
            "USER_NAME",
            "PASS",
            "SIGNATURE",
            "PAGE",
            "TRACE",
            "JUDGE_KEY",
            "DOCS_TOKEN",
            "INDEX",
            "NAMED",
            "UNUSED",
            "PLAIN",
        ]
    )
} | {"REPS": "3", "HOST": "service.example"}
PUBLIC = {"PLAIN", "REPS", "HOST"}


def test_variables_in_secret_positions_are_secret_and_no_others(read: Read) -> None:
    found = read(TEXT, env=ENV)
    assert dict(found.secrets) == {name: value for name, value in ENV.items() if name not in PUBLIC}
    assert found.execution.num_repetitions == 3
    assert found.agent.options["headers"]["X-Trace"] == ENV["TRACE"]
    assert found.servers[0].args == ("--token", ENV["DOCS_TOKEN"], ENV["PLAIN"])


def test_resolved_settings_name_secrets_and_show_the_rest(read: Read) -> None:
    found = read(TEXT, env=ENV)
    assert not [
        key for key, choice in found.resolved.items() for value in found.secrets.values() if value in str(choice)
    ]
    values = {key: choice.value for key, choice in found.resolved.items()}
    assert values["agent.url"] == "http://${USER_NAME}:${PASS}@service.example/ask?sig=${SIGNATURE}&page=${PAGE}"
    assert values["mcp_servers.docs.args"] == ["--token", "${DOCS_TOKEN}", ENV["PLAIN"]]
    assert values["conditions.a.system_prompt"] == "Ask service.example as ${TRACE}, never ${NAMED}."
    assert values["name"] == "run 3"


def test_digests_do_not_change_with_a_secret_and_do_with_other_variables(read: Read) -> None:
    first = read(TEXT, env=ENV).conditions[0]
    for name in ENV:
        changed = read(TEXT, env=ENV | {name: "4"}).conditions[0]
        same = (changed.digest, changed.agent.digest) == (first.digest, first.agent.digest)
        assert same == (name not in PUBLIC - {"REPS"}), name


def test_the_written_file_is_masked_where_it_repeats_a_secret(read: Read) -> None:
    text = TEXT.replace("Ask ", f"Ask {ENV['PASS']} ")
    assert ENV["PASS"] in read(text, env=ENV).text
    assert read(text, env=ENV).masked_text == TEXT.replace("Ask ", "Ask ${PASS} ")


def test_a_fault_elsewhere_shows_no_secret(read: Read) -> None:
    text = TEXT.replace('num_repetitions: "${REPS}"', 'num_repetitions: "${NAMED}"').replace("page=${PAGE}", "page=[")
    with pytest.raises(BadExperiment) as caught:
        read(text, env=ENV)
    assert "canary" not in str(caught.value)
    assert "${NAMED}" in str(caught.value)


def test_an_unset_name_under_secrets_is_a_warning(read: Read) -> None:
    env = {name: value for name, value in ENV.items() if name != "UNUSED"}
    assert read(TEXT, env=env).warnings == ("secrets.1: UNUSED is not set, so there is nothing to mask",)


def test_conditions_and_servers_may_be_called_as_secret_positions_are(read: Read) -> None:
    text = """\
dataset: {path: questions.jsonl}
agent: {type: floor}
judge: {type: overlap}
mcp_servers: {headers: {command: run-key}, env: {command: "${PROGRAM}"}}
conditions: {env: {system_prompt: "${PROGRAM}", mcp_servers: [env, headers]}, api_key: {}}
"""
    assert read(text, env={"PROGRAM": "long-enough"}).secrets == {}


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("Authorization", True),
        ("proxy-authorization", True),
        ("X-Api-Key", True),
        ("x-apikey", True),
        ("Cookie", True),
        ("X-Auth-Token", True),
        ("OPENAI_API_KEY", True),
        ("githubToken", True),
        ("GitHubPAT", False),
        ("DB_PASSWORD", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("MAX_TOKENS", False),
        ("MONKEY", False),
        ("KEYWORDS", False),
        ("AUTHOR", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("Accept", False),
        ("INDEX", False),
    ],
)
def test_names_that_sound_secret(name: str, secret: bool) -> None:
    assert sounds_secret(name) is secret


KEY = "sk-proj-9fQ2Lr7xTn4KbVz8Wc1Y"


@pytest.mark.parametrize(
    "args",
    [
        ["--api-key", KEY],
        [f"--api-key={KEY}"],
        ["--githubToken", KEY],
        ["-e", f"GITHUB_TOKEN={KEY}"],
        ["--header", f"Authorization: Bearer {KEY}"],
        ["-y", "server-postgres", "postgresql://karat:pw123456@localhost/db"],
        [f"https://tools.example/mcp?api_key={KEY}"],
        [f"git+https://{KEY}@github.com/acme/docs"],
        [f"--endpoint=http://localhost/x http://localhost/y?token={KEY}"],
    ],
)
def test_a_key_in_a_programs_arguments_is_a_fault_and_is_not_shown(read: Read, args: list[str]) -> None:
    with pytest.raises(BadExperiment) as error:
        read(TEXT.replace('["--token", "${DOCS_TOKEN}", "${PLAIN}"]', json.dumps(args)), env=ENV)
    assert str(error.value).count("a secret must not be in the file") == 1
    assert KEY[8:] not in str(error.value)
    assert "pw123456" not in str(error.value)


@pytest.mark.parametrize(
    "args",
    [
        ["--key", "certs/server-2024-prod.key", "--max-tokens", "100000", "--auth=oauth2", "--cookie", "none"],
        ["--token", "${DOCS_TOKEN}", "--key", "server-2024-production.pem", "--name=release-2024-08-06-build"],
        ["--from", "git+ssh://git@github.com/acme/docs-mcp", "docs-mcp"],
        ["ssh://git@github.com:22/x", "https://user@host/x", "https://docs.example/mcp?key=docs"],
        ["postgresql://postgres@localhost/db", "postgresql://postgres:postgres@localhost/db"],
        ["--primary-key", "customer_id_2024_v2", "--sort-key=created_at_2024_desc", f"--public-key={KEY}"],
        ["--key", "text-embedding-3-small", "--auth", "oauth2-client-credentials", "--key", "server-2024-production"],
        ["--key", "id_ed25519_production", "--credentials", "service-account-1.jsonl", "--key", "20240818T120000Z"],
        ["--prompt", "Explain the key gpt-4o-mini-2024-07-18", "-c", "the token abcdefghijklmnop12"],
        ["-c", f"print('the key {KEY}')", "-c", "token: str = 'a1b2c3d4e5f6g7h8'", KEY],
    ],
)
def test_arguments_that_only_sound_secret_are_taken(read: Read, args: list[str]) -> None:
    found = read(TEXT.replace('["--token", "${DOCS_TOKEN}", "${PLAIN}"]', json.dumps(args)), env=ENV)
    assert len(found.servers[0].args) == len(args)


@pytest.mark.parametrize(
    "text",
    ["a" * 10**5, "a:" * 10**5, "var " + "a:b," * 10**5, "-" * 10**5, "a1" * 10**5, "x://" * 10**4 + " " * 10**5],
)
def test_long_arguments_are_read_in_time(text: str) -> None:
    tree = from_python({"mcp_servers": {"docs": {"command": "sh", "args": ["-c", text, f"--token={text}!"]}}})
    started = time.perf_counter()
    assert Secrets(tree, {}).variables == set()
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("args", [{0: KEY}, {1: "--token", 2: KEY}, {True: KEY, "b": None}])
def test_arguments_of_another_form_are_looked_at_without_a_crash(args: dict[object, object]) -> None:
    tree = from_python({"mcp_servers": {"docs": {"command": "sh", "args": args}}, "agent": {"command": args}})
    Secrets(tree, {})


def test_a_remedy_names_a_variable_of_its_own_for_each_secret(read: Read) -> None:
    text = TEXT.replace("MODE: fast", f"TOKEN_1: {KEY}, TOKEN_2: {KEY}x, 2_KEYS_KEY_: {KEY}y")
    with pytest.raises(BadExperiment) as error:
        read(text.replace('"${PLAIN}"', f'"--api-key={KEY}"'), env=ENV)
    assert re.findall(r"write `\$\{(\w+)\}`", str(error.value)) == ["API_KEY", "TOKEN_1", "TOKEN_2", "KEYS_KEY"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("command: python", "command: {path: python}", "mcp_servers.docs.command"),
        ("docs: {command: python,", "other: [python]\n  docs: {command: python,", "mcp_servers.other"),
        ("  type: http\n", "  type: [http]\n", "agent.type"),
    ],
)
def test_values_of_another_form_are_faults_of_their_own(read: Read, old: str, new: str, place: str) -> None:
    with pytest.raises(BadExperiment, match=re.escape(place)):
        read(TEXT.replace(old, new), env=ENV)


def test_the_password_in_an_address_among_arguments_is_secret_and_nothing_beside_it(read: Read) -> None:
    text = TEXT.replace('"${PLAIN}"', '"postgresql://${PGUSER}:${PLAIN}@localhost/db?sslmode=${PGMODE}&key=${A_KEY}"')
    found = read(text, env=ENV | {"PGUSER": "postgres", "PGMODE": "disabled", "A_KEY": "canary-key"}).secrets
    for harmless in ("https://${PLAIN}:x-oauth-basic@github.com/o/r.git", "docker://alpine:3.19@sha256:abcd"):
        read(TEXT.replace('"${PLAIN}"', f'"{harmless}"'), env=ENV)  # no fault
    with pytest.raises(BadExperiment, match="before the '@'"):
        read(TEXT.replace('"${PLAIN}"', '"HTTPS://u:pw@h"'), env=ENV)
    assert found["PLAIN"] == ENV["PLAIN"]
    assert found.keys() - {name for name in ENV if name not in PUBLIC} == {"PLAIN", "A_KEY"}
