"""`karat init --from promptfooconfig.yaml`: what is taken, what is not, and that the rest runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karat.cli.checking import check
from karat.cli.scaffold import scaffold_from
from karat.config import load
from karat.errors import BadDataset, BadOption
from karat.execution import Selection, run_experiment
from karat.kinds.golden import Golden
from karat.records import Answer
from karat.setups import Setup, tool_of
from karat_imports.setups._javascript import as_assertion
from karat_imports.setups.promptfoo import Promptfoo

BOTH = ["openai:gpt-4o-mini", {"id": "openai:chat:gpt-4o", "label": "large", "config": {"temperature": 0}}]


def read(folder: Path, config: Any, **files: str) -> Setup:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    path = folder / "promptfooconfig.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False))
    assert Promptfoo.recognizes(path, path.read_bytes())
    return Promptfoo().read(path, folder / "out")


def rows(setup: Setup) -> list[Any]:
    return [{key: value for key, value in row.items() if key != "id"} for row in setup.rows]


def test_one_prompt_is_the_question_and_providers_are_conditions(tmp_path: Path) -> None:
    config = {
        "description": "Capitals",
        "prompts": ["Where is {{ place }}? Be {{tone|trim}}."],
        "providers": BOTH,
        "defaultTest": {"vars": {"tone": " brief "}, "assert": [{"type": "not-icontains", "value": "as an AI"}]},
        "tests": [
            {
                "description": "about {{place}}",
                "vars": {"place": "Paris"},
                "assert": [{"type": "llm-rubric", "value": "Names {{place}}'s country", "weight": 2}],
            },
            {"vars": {"place": ["Oslo", "Rome"]}, "assert": [{"type": "equals", "value": "In {{place}}"}]},
        ],
        "evaluateOptions": {"repeat": 4, "maxConcurrency": 2},
    }
    setup = read(tmp_path, config)
    default = {"type": "not-icontains", "text": "as an AI"}
    assert setup.experiment == {
        "name": "Capitals",
        "dataset": {"path": "questions.jsonl", "id_key": "id", "criteria_key": "criteria"},
        "agent": {"type": "chat", "model": "openai:gpt-4o-mini"},
        "conditions": {
            "openai-gpt-4o-mini": {},
            "large": {"agent": {"model": "openai:gpt-4o", "temperature": 0}},
        },
        "judge": {"type": "criteria", "model": "openai:gpt-4.1"},
        "execution": {"num_repetitions": 4, "max_concurrent": 2},
    }
    assert rows(setup) == [
        {
            "question": "Where is Paris? Be brief.",
            "description": "about Paris",
            "criteria": [default, {"type": "judge", "text": "Names Paris's country", "weight": 2.0}],
        },
        {
            "question": "Where is Oslo? Be brief.",
            "answer": "In Oslo",
            "criteria": [default, {"type": "equals", "text": "In Oslo"}],
        },
        {
            "question": "Where is Rome? Be brief.",
            "answer": "In Rome",
            "criteria": [default, {"type": "equals", "text": "In Rome"}],
        },
    ]
    assert setup.left_out == ()


def test_prompts_that_differ_are_system_prompts(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "{{q}}"}])
    kind_and_plain = read(tmp_path, {"prompts": [chat, "{{q}}"], "tests": [{"vars": {"q": "Why?"}}]})
    assert [one.get("system_prompt") for one in kind_and_plain.experiment["conditions"].values()] == ["Be kind.", None]
    assert kind_and_plain.rows == [{"id": "1", "question": "Why?"}]

    texts = ["Translate:\n{{q}}", "Say {{q}} in ${HOME}."]
    single = read(tmp_path, {"prompts": texts, "tests": [{"vars": {"q": "cat"}}]})
    assert [one["system_prompt"] for one in single.experiment["conditions"].values()] == [
        "Translate:",
        "Say [the user's message] in $${HOME}.",
    ]
    assert single.rows == [{"id": "1", "question": "cat"}]

    several = read(tmp_path, {"prompts": ["{{a}} or {{b}}?", "{{b}}: {{a}}"], "tests": [{"vars": {"a": 1, "b": "x"}}]})
    assert [one["system_prompt"] for one in several.experiment["conditions"].values()] == ["[a] or [b]?", "[b]: [a]"]
    assert several.rows == [{"id": "1", "question": "a: 1\nb: x"}]


def test_tests_come_from_files_and_scenarios(tmp_path: Path) -> None:
    config = {
        "prompts": "file://p_dot_txt".replace("_dot_", "."),
        "tests": ["file://t/*.csv", "t/more.yaml"],
        "scenarios": [
            {"config": [{"vars": {"who": "you"}}, {"vars": {"who": "they"}}], "tests": [{"vars": {"q": "go"}}]},
        ],
    }
    table = "q,__expected,__expected2,__metadata:topic\nHow long?,contains: three,,time\nFree?,yes,fn: x,cost\n"
    listed = "- vars: {q: file://q.txt, who: me}\n  assert: [{type: is-json, value: file://s.json}]\n"
    setup = read(
        tmp_path, config, p_dot_txt="{{q}} {{who}}", t__a_dot_csv=table, t__more_dot_yaml=listed,
        q_dot_txt="Why?\n", s_dot_json='{"type": "object"}',
    )  # fmt: skip
    assert rows(setup) == [
        {"question": "How long? {{who}}", "criteria": [{"type": "contains", "text": "three"}], "topic": "time"},
        {"question": "Free? {{who}}", "criteria": [{"type": "equals", "text": "yes"}], "topic": "cost"},
        {"question": "Why? me", "criteria": [{"type": "is-json", "text": '{"type": "object"}'}]},
        {"question": "go you"},
        {"question": "go they"},
    ]
    assert setup.left_out == ("assertion: fn: a program (test 2)",)


def test_a_whole_configuration_is_taken(tmp_path: Path) -> None:
    config = {
        "prompts": {"{{system}}": "plain", "file://p.jsonl": "", "file://more.csv": "listed"},
        "providers": ["file://providers.yaml"],
        "defaultTest": "file://default.yaml",
        "assertionTemplates": {
            "short": {"type": "javascript", "value": "output.length < 9", "weight": 3},
            "polite": {"type": "not-contains", "value": "{{a}}!"},
        },
        "tests": [
            {
                "vars": ["vars.yaml"],
                "assert": [
                    {"$ref": "#/assertionTemplates/short", "weight": 2},
                    {"type": "assert-set", "assert": [
                        {"type": "contains-any", "value": ["{{a}}", "b"]}, {"$ref": "#/assertionTemplates/polite"}]},
                    {"type": "similar", "value": "like {{a}}", "provider": "openai:grader"},
                    7,
                ],
            },
            {"path": "t.csv"},
            {"vars": {"system": "{{ x.y }}", "x": {"y": [1]}}, "options": {"disableDefaultAsserts": True}},
        ],
    }  # fmt: skip
    providers = """
    - id: anthropic:claude-code
      label: with tools
      config: &shared {max_turns: 3, working_dir: w, mcp: {servers: [{command: npx, args: [a, 1]}, {url: "$URL"}]}}
    - {id: anthropic:claude-agent-sdk, label: small, config: {<<: *shared, model: haiku, mcp: {enabled: false}}}
    """
    (tmp_path / "w").mkdir()
    setup = read(
        tmp_path, config, providers_dot_yaml=providers, p_dot_jsonl='{"prompt": "Say {{a | dump}}"}\n',
        more_dot_csv="text\nAsk {{a|trim}} {{b}}\n", vars_dot_yaml="a: [1, ' x ']\nb: file://b.json",
        b_dot_json='{"c": "d"}', default_dot_yaml="metadata: {k: v}\nassert: [{type: equals, value: E}]",
        t_dot_csv="a,__prefix,__suffix,__description,__threshold,__metadata:m[]\nz,p-,-s,about {{a}},,M\n",
    )  # fmt: skip
    servers = {"server-1": {"command": "npx", "args": ["a", "1"]}, "server-2": {"url": "${URL}"}}
    assert {name: setup.experiment[name] for name in ("agent", "mcp_servers", "judge", "execution")} == {
        "agent": {"type": "claude", "model": "sonnet", "max_turns": 3},
        "mcp_servers": servers,
        "judge": {"type": "criteria", "model": "openai:grader"},
        "execution": {"num_repetitions": 1},
    }
    conditions = setup.experiment["conditions"]
    assert conditions["plain-with-tools"] == {
        "system_prompt": "[system]", "mcp_servers": [*servers], "workspace": "../w"}  # fmt: skip
    assert conditions["listed-small"] == {
        "system_prompt": "Ask [a] [b]", "workspace": "../w", "agent": {"model": "haiku"}}  # fmt: skip
    assert len(conditions) == 6
    assert [row["question"] for row in setup.rows] == [
        'a: 1\nb: {"c": "d"}', 'a:  x \nb: {"c": "d"}', "p-z-s", "{{ x.y }}"]  # fmt: skip
    assert [(row.get("description"), row.get("k"), row.get("m")) for row in setup.rows] == [
        (None, "v", None), (None, "v", None), ("about z", "v", "M"), (None, "v", None)]  # fmt: skip
    assert [row.get("criteria") for row in setup.rows[::2]] == [
        [
            {"type": "equals", "text": "E"},
            {"type": "regex", "text": "(?s)\\A.{0,8}\\Z", "weight": 2.0},
            {"type": "contains-any", "text": "1\nb", "weight": 0.5},
            {"type": "not-contains", "text": "1!", "weight": 0.5},
            "The answer means the same as: like 1",
        ],
        [{"type": "equals", "text": "E"}],
    ]
    assert [row.get("answer") for row in setup.rows] == ["E", "E", "E", None]
    assert "criteria" not in setup.rows[3]
    assert setup.taken == (
        "`javascript` that only compares is taken as a rule",
        "`similar` is judged by a model: karat has no embeddings",
        """prompts differ in more than their system messages: each is the system prompt of its condition, and the \
variables of a test are the question""",
        "3 prompts × 2 providers = 6 conditions",
        "11 criteria of the answers",
        "4 questions",
    )
    assert setup.left_out == ()


@pytest.mark.parametrize(
    ("provider", "agent"),
    [
        ("anthropic:messages:claude-x", {"type": "chat", "model": "anthropic:claude-x"}),
        ("openai:responses:gpt-5", {"type": "chat", "model": "openai-responses:gpt-5"}),
        ("ollama:chat:llama3:8b", {"type": "chat", "model": "ollama:llama3:8b"}),
        ("vertex:gemini-x", {"type": "chat", "model": "google-cloud:gemini-x"}),
        (
            {"openai:gpt-4o": {"config": {"max_tokens": 5, "apiBaseUrl": "{{env.BASE}}", "apiKey": "sk-1"}}},
            {"type": "chat", "model": "openai:gpt-4o", "max_tokens": 5, "base_url": "${BASE}"},
        ),
        (
            {
                "id": "https",
                "config": {
                    "url": "http://localhost/ask",
                    "headers": {"X-Api-Key": "abc", "Authorization": "Bearer {{env.T}}", "Accept": "a/b"},
                    "body": {"q": "{{prompt}}", "n": 3},
                    "transformResponse": "json.choices[0].text",
                },
            },
            {
                "type": "http",
                "url": "http://localhost/ask",
                "headers": {"X-Api-Key": "${X_API_KEY}", "Authorization": "Bearer ${T}", "Accept": "a/b"},
                "body": {"q": "{{ question }}", "n": 3},
                "answer": "choices[0].text",
            },
        ),
        ("echo", {"type": "python", "target": "provider_echo:answer"}),
        ("file://p.py:ask", {"type": "python", "target": "provider_file_p_py_ask:answer"}),
        ("exec: python p.py", {"type": "python", "target": "provider_exec:answer"}),
        ("anthropic:claude-agent-sdk", {"type": "claude", "model": "sonnet"}),
        ("google:claude-x", {"type": "chat", "model": "google-cloud:claude-x"}),
        (
            {"id": "mistral", "config": {"model": "m", "temperature": 2, "top_p": 0, "seed": 0, "apiKeyEnvar": "K"}},
            {"type": "chat", "model": "mistral:m", "temperature": 2, "top_p": 0, "seed": 0, "api_key_env": "K"},
        ),
        ("http://localhost/{{env.PLACE}}", {"type": "http", "url": "http://localhost/${PLACE}", "method": "GET"}),
        (
            {"id": "http", "config": {
                "url": "http://localhost/", "method": "put", "body": [{"q": "{{ query }}"}, "$NAME", None],
                "queryParams": {"text": "{{prompt}}", "n": 1}, "responseParser": "data?.text"}},
            {"type": "http", "url": "http://localhost/", "method": "PUT",
             "body": [{"q": "{{ question }}"}, "${NAME}", None],
             "query": {"text": "{{ question }}", "n": "1"}, "answer": "text"},
        ),
    ],
)  # fmt: skip
def test_a_provider_is_an_agent(tmp_path: Path, provider: Any, agent: Any) -> None:
    setup = read(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": []} | ONE, p_dot_py="")
    assert setup.experiment["agent"] == agent
    assert "sk-1" not in repr(setup)
    assert ("p.py is called by provider_file_p_py_ask.py" in setup.taken) == (provider == "file://p.py:ask")


ONE: Any = {"tests": [{"vars": {"q": "hi"}}]}


def of_provider(name: str, **config: Any) -> Any:
    return {"providers": [{"id": name, "config": config}]}


def of_assertion(**given: Any) -> Any:
    return {"tests": [{"vars": {"q": "hi"}, "assert": [given]}]}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"providers": ["file://a.js"]}, "provider: file://a.js: karat does not run it; write an agent of type"),
        ({"providers": ["openai:embedding:x"]}, "provider: openai:embedding:x: embedding is no chat model"),
        ({"providers": ["other:x"]}, "provider: other:x: there is no such agent"),
        ({"providers": ["echo", "openai:x"]}, "provider: another agent; write a second experiment, and"),
        ({"prompts": ["file://a.py"]}, "prompt: 'file://a.py' is a program"),
        ({"prompts": ["{% if q %}a{% endif %}"]}, "prompt: its template has tags ({% … %})"),
        ({"prompts": ["file://none.txt"]}, "prompt: 'none.txt' cannot be read: No such file or directory"),
        ({"prompts": ["file:///etc/passwd"]}, "prompt: 'file:///etc/passwd' is outside of the project"),
        ({"redteam": {}}, "`redteam`: has no equivalent"),
        ({"defaultTest": {"options": {"transform": "x"}}}, "`options.transform`: a program (defaultTest)"),
        ({"defaultTest": {"threshold": 0.5}}, "`threshold`: the threshold of a test; gate on the score instead"),
        ({"tests": ["gen.py:tests", ONE["tests"][0]]}, "file of tests: 'gen.py:tests' is a program"),
        ({"tests": ["https://a.example/t", ONE["tests"][0]]}, "file of tests: 'https://a.example/t' is on the"),
        ({"providers": [{"label": "x", "config": {}}]}, "provider: it has no id"),
        ({"providers": ["python:p.py:a-b"]}, "provider: python:p.py:a-b: 'a-b' is no name of a function"),
        ({"providers": ["exec: 'a"]}, "provider: exec: 'a: its command cannot be read (No closing quotation)"),
        ({"providers": ["exec:"]}, "provider: exec:: it names no program"),
        ({"providers": ["openai:chat"]}, "provider: openai:chat: it names no model"),
        ({"providers": ["http"]}, "provider: http: it has no address (`config.url`)"),
        ({"providers": ["file://none.yaml"]}, "provider: 'none.yaml' cannot be read: No such file or directory"),
        (of_provider("http://a", request="GET /"), "provider: http://a: a raw HTTP request; write it as `url`"),
        (of_provider("http://a", transformResponse="f(json)"), "`transformResponse`: a program; set `answer` (http"),
        (of_provider("http://a", auth={}), "`config.auth`: no such option of the agent `http` (http://a)"),
        (of_provider("openai:x", tools=[]), "`config.tools`: give tools by MCP servers (openai:x)"),
        (of_provider("openai:x", other=1), "`config.other`: no such option of the agent `chat` (openai:x)"),
        (of_provider("openai:x", temperature=2.1), "`temperature`: 2.1 is not from 0 to 2 (openai:x)"),
        (of_provider("openai:x", max_tokens=0), "`max_tokens`: 0 is not from 1 to 1000000000 (openai:x)"),
        (of_provider("openai:x", seed=True), "`seed`: True is not from 0 to 4611686018427387904 (openai:x)"),
        (
            of_provider("openai:x", mcp={"server": {"name": "a b"}}),
            "MCP server: it has neither `command` nor `url` (a",
        ),
        (
            of_provider("anthropic:claude-code", working_dir="none"),
            "`config.working_dir`: there is no such folder (an",
        ),
        ({"defaultTest": "none.yaml"}, "default test: 'none.yaml' cannot be read: No such file or directory"),
        ({"scenarios": ["file://s.yaml"]}, "scenario: it is in another file"),
        ({"tests": [{"vars": {"q": "file://a.py"}}]}, "variable: 'file://a.py' is a program (test 1)"),
        (
            {"tests": [{"vars": "none.yaml"}]},
            "file of variables: 'none.yaml' cannot be read: No such file or directory",
        ),
        (of_assertion(value="a"), "assertion: it has no type (test 1)"),
        (of_assertion(type="contains", value="a", transform="f"), "assertion: contains with a `transform`, which is a"),
        (of_assertion(type="contains", value="{% a %}"), "assertion: contains: its template has tags ({% … %}) (test"),
        (of_assertion(type="equals", value="file://none.txt"), "assertion: equals: 'none.txt' cannot be read: No such"),
    ],
)
def test_what_has_no_equivalent_is_named(tmp_path: Path, config: Any, sentence: str) -> None:
    (left,) = read(tmp_path, {"prompts": ["{{q}}"], **ONE, **config}).left_out
    assert left.startswith(sentence)


def test_things_of_one_sort_are_told_together(tmp_path: Path) -> None:
    unknown = {"assert": [{"type": "rouge-n", "value": "x"}, {"type": "javascript", "value": "f(output)"}]}
    setup = read(tmp_path, {"prompts": ["a"], "tests": [unknown] * 5})
    assert setup.left_out == (
        "5 assertions: `rouge-n` has no equivalent (test 1, test 2, test 3 and 2 more)",
        "5 assertions: `javascript` has no equivalent (test 1, test 2, test 3 and 2 more)",
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("output.includes('a')", {"type": "contains", "value": "a"}),
        ('return !output.includes("it\'s");', {"type": "not-contains", "value": "it's"}),
        ("output.includes('a') && output.includes('b')", {"type": "contains-all", "value": ["a", "b"]}),
        ("!output.includes('a') && !output.includes('b')", {"type": "not-contains-any", "value": ["a", "b"]}),
        ("output.toLowerCase().includes('a')", {"type": "icontains", "value": "a"}),
        ("output.toLowerCase().includes('A')", None),
        ("output.includes('a') || !output.includes('b')", None),
        ("output.length >= 3", {"type": "regex", "value": "(?s)\\A.{3,}\\Z"}),
        ("output.length > 3", {"type": "regex", "value": "(?s)\\A.{4,}\\Z"}),
        ("(output.length <= 3)", {"type": "regex", "value": "(?s)\\A.{0,3}\\Z"}),
        ("output.length < 3 ? 1 : 0", {"type": "regex", "value": "(?s)\\A.{0,2}\\Z"}),
        ("output.length < 1", {"type": "regex", "value": "(?s)\\A.{0,0}\\Z"}),
        ("output.length < 0", {"type": "regex", "value": "(?s)\\A.{0}(?!)\\Z"}),
        (
            "['a', 1].includes(JSON.parse(output).k)",
            {
                "type": "is-json",
                "value": {"type": "object", "required": ["k"], "properties": {"k": {"enum": ["a", 1]}}},
            },
        ),
        ("[name].includes(JSON.parse(output).k)", None),
        ("JSON.parse(output).k === name", None),
        ("JSON.parse(output).k === {}", None),
        (
            "JSON.parse(output).a.b === 'x'",
            {
                "type": "is-json",
                "value": {
                    "type": "object",
                    "required": ["a"],
                    "properties": {"a": {"type": "object", "required": ["b"], "properties": {"b": {"const": "x"}}}},
                },
            },
        ),
        ("output.includes(name)", None),
        ("output.includes('a'); process.exit()", None),
    ],
)
def test_a_comparison_in_javascript_is_a_rule(code: str, expected: Any) -> None:
    assert as_assertion(code) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompts: [a\n", "'promptfooconfig.yaml': "),
        ("prompts: []\ntests: file://gen.py\n", "no question of .* can be taken: file of tests: 'file://gen.py' is a"),
        ("prompts: []\ntests: []\n", "no question of .* can be taken: it has no tests"),
        ("- prompts: []\n", "holds no prompts, providers or tests of promptfoo"),
    ],
)
def test_a_configuration_without_questions_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(text)
    with pytest.raises(BadOption, match=message):
        Promptfoo().read(path, tmp_path / "out")


def test_other_files_are_not_promptfoos(tmp_path: Path) -> None:
    for name, text in {"a.yaml": "conditions: {}\ntests: 3\n", "b.txt": "prompts: []\ntests: []\n"}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(BadOption, match=r"no configuration that karat reads \(known: .*promptfoo"):
            tool_of(tmp_path / name)
    with pytest.raises(BadOption, match=r"none.yaml cannot be read: No such file"):
        tool_of(tmp_path / "none.yaml")


def test_what_is_written_passes_the_check_and_nothing_is_overwritten(tmp_path: Path) -> None:
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "a"}, "assert": [
        {"type": "contains", "value": "a"}, {"type": "rouge-n", "value": "a"}]}]}  # fmt: skip
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump(config))
    made = scaffold_from(path, tmp_path / "out")
    assert (made.tool, made.taken, made.left_out) == (
        "promptfoo",
        ("1 prompt × 1 provider = 1 condition", "1 criterion of the answers", "1 question"),
        (
            "assertion: `rouge-n` has no equivalent (test 1)",
            "provider: it says the prompt back, so tests check no model (echo)",
        ),
    )
    experiment = load(tmp_path / "out" / "experiment.yaml")
    assert check(experiment, selection=Selection(), results=tmp_path, start=None).ready
    with pytest.raises(BadOption, match=r"already holds .*nothing was written"):
        scaffold_from(path, tmp_path / "out")


@pytest.mark.parametrize("provider", ["file://sub/p.py", "python:sub/p.py:other", "exec: echo", "echo"])
def test_a_provider_that_is_a_program_answers(tmp_path: Path, provider: str) -> None:
    (tmp_path / "sub").mkdir()
    code = "def call_api(prompt, options, context):\n    return {'output': prompt + options['config'].get('end', '')}\n"
    (tmp_path / "sub" / "p.py").write_text(f"{code}\nasync def other(*given):\n    return call_api(*given)\n")
    config = {"prompts": ["{{q}}!"], "providers": [{"id": provider, "config": {"end": "."}}]} | ONE
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump(config))
    scaffold_from(path, tmp_path / "out")
    experiment = load(tmp_path / "out" / "experiment.yaml", settings=["execution.retry.max_attempts=1"])
    run = asyncio.run(run_experiment(experiment, results=tmp_path / "results")).run
    (answer,) = [event for event in run.events() if isinstance(event, Answer)]
    assert answer.text == ("hi!" if provider.startswith("e") else "hi!.")


def test_a_configuration_is_a_dataset_too(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: ['Say {{q}}']\ntests:\n- {vars: {q: a}, assert: [{type: contains, value: '{{q}}'}]}\n")
    dataset = Golden(Golden.Options()).load(path)
    assert [(one.id, one.turns[0].question, one.criteria[0].text) for one in dataset] == [("1", "Say a", "a")]
    assert dataset.warnings[0] == "a configuration of promptfoo, of which its tests are taken"


def test_a_dataset_without_questions_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: []\ntests: none.csv\n")
    with pytest.raises(BadDataset, match=r"1 fault\n  file: no question of .* can be taken: file of tests: 'none.csv'"):
        Golden(Golden.Options()).load(path)


def test_a_table_of_tests_is_a_dataset_too(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    path.write_text("question,__expected,__expected2\nHow long?,contains: three,\nFree?,equals: yes,icontains: free\n")
    dataset = Golden(Golden.Options()).load(path)
    assert [[(one.type, one.text) for one in sample.criteria] for sample in dataset] == [
        [("contains", "three")],
        [("equals", "yes"), ("icontains", "free")],
    ]
    path.write_text("question,__expected\nHow long?,python: f(output)\n")
    with pytest.raises(BadDataset, match="line 2: '__expected' has no equivalent in karat \\(python: a program\\)"):
        Golden(Golden.Options()).load(path)
