"""Experiment files with faults: name → text. What is said of them stands in tests/golden/faults/experiments.txt."""

from __future__ import annotations

_REST = """\
agent: {type: floor}
judge: {type: overlap}
conditions: {baseline: {}}
"""
_DATA = "dataset: {path: questions.jsonl}\n"
_GOOD = _DATA + _REST


def _with(text: str) -> str:
    """A good experiment, and a fault."""
    return _GOOD + text


CASES: dict[str, str | bytes] = {
    # the file itself
    "an empty file": "",
    "only comments": "# dataset: …\n",
    "a list": "- dataset\n- agent\n",
    "one text": "dataset\n",
    "two documents": _GOOD + "---\n" + _GOOD,
    "binary": b"PK\x03\x04\x00\x00\x08\x00",
    "Latin-1": b"name: caf\xe9\n" + _GOOD.encode(),
    "more than a megabyte": "# " + "x" * 1_000_001,
    "a control character": "name: a\x07b\n" + _GOOD,
    "a kind that is a list": _REST + "dataset: {kind: [golden], path: questions.jsonl}\n",
    # YAML
    "a tab": "dataset:\n\tpath: questions.jsonl\n",
    "a colon in text": "name: karat: a test\n" + _GOOD,
    "a variable in braces": _REST + "dataset: {path: ${DATA}/questions.jsonl}\n",
    "an open quote": 'name: "karat\n' + _GOOD,
    "an open bracket": _DATA + "conditions: {a: {mcp_servers: [docs}}\n",
    "a key without a colon": _DATA + "agent\nconditions: {a: {}}\n",
    "indentation": "dataset:\n  path: questions.jsonl\n question_key: q\n",
    "a list in a line": "scorers: - equals\n",
    "an at sign": "name: @karat\n" + _GOOD,
    "a backslash": 'name: "C:\\data"\n' + _GOOD,
    "an alias of nothing": "agent: *nowhere\n",
    "an alias within itself": "conditions: &all\n  a: *all\n",
    "a key twice": _GOOD + "judge: {type: overlap}\n",
    "a condition twice": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions:\n  a: {}\n  b: {}\n  a: {}\n",
    "a Python object": _with("name: !!python/object/apply:os.system ['true']\n"),
    "a foreign tag": _with("name: !secret abc\n"),
    "a list as a key": _with("execution: {[a, b]: 1}\n"),
    "nested too deeply": "name: " + "[" * 200 + "]" * 200 + "\n",
    "an alias bomb": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "a merge of no mapping": _with("execution: {<<: 3}\n"),
    # what must be there
    "nothing that is required": "name: x\n",
    "an empty dataset and no conditions": "dataset:\nagent: {type: floor}\nconditions: {}\njudge: {type: overlap}\n",
    "no path": "dataset: {question_key: q}\n" + _REST,
    "no agent type": _DATA + "agent: {model: x}\njudge: {type: overlap}\nconditions: {a: {}}\n",
    "no judge": _DATA + "agent: {type: floor}\nconditions: {a: {}}\n",
    "a judge without a model": _DATA + "agent: {type: floor}\njudge: {temperature: 0}\nconditions: {a: {}}\n",
    # keys
    "a misspelt section": "datset: {path: questions.jsonl}\n" + _REST,
    "a key one level too high": _with("num_repetitions: 5\n"),
    "misspelt keys at every level": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\n"
    + "conditions: {a: {system_promt: hello, mcp_server: []}}\n"
    + "execution: {num_repetition: 3, retry: {max_attemts: 2}}\n",
    "a misspelt option of the dataset": "dataset: {path: questions.jsonl, anwser_key: a}\n" + _REST,
    "a misspelt option of the agent": _DATA
    + "agent: {type: chat, model: 'openai:x', temprature: 1}\njudge: {type: overlap}\nconditions: {a: {}}\n",
    # types and ranges
    "sections of the wrong form": "dataset: questions.jsonl\nagent: floor\njudge: overlap\n"
    "conditions: [a, b]\nexecution: fast\nmcp_servers: [docs]\nscorers: equals\nsecrets: KEY\n",
    "numbers out of range": _with(
        "execution:\n  num_repetitions: 0\n  max_concurrent: -1\n  timeout_seconds: 0\n  judge_timeout_seconds: .inf\n"
        "  max_failures: -0.1\n"
        "  retry: {max_attempts: 0, initial_backoff_seconds: -1, backoff_multiplier: 0.5}\n"
        "  budget: {usd: 0, tokens: -3}\n"
    ),
    "numbers that are none": _with(
        "execution:\n  num_repetitions: three\n  max_concurrent: 2.5\n  timeout_seconds: 10 minutes\n"
        "  max_failures: 1.5\n  retry: {timeouts: maybe}\n"
    ),
    "booleans that are read as such": _with("execution: {num_repetitions: yes, timeout_seconds: off}\n"),
    "a prompt that is no text": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {system_prompt: 5}, b: {system_prompt: [x]}}\n",
    "a name with a slash": _with("name: kb/support\n"),
    "a name that is no text": _with("name: [a]\nversion: {major: 1}\n"),
    "an empty condition name": _DATA + 'agent: {type: floor}\njudge: {type: overlap}\nconditions: {"": {}, " ": {}}\n',
    # names that lead nowhere
    "an unknown agent": _DATA + "agent: {type: flor}\njudge: {type: overlap}\nconditions: {a: {}}\n",
    "an agent of a missing module": _DATA
    + 'agent: {type: "no_such_module_here:Agent"}\njudge: {type: overlap}\nconditions: {a: {}}\n',
    "an unknown kind of dataset": "dataset: {path: questions.jsonl, kind: goldn}\n" + _REST,
    "an unknown judge": _DATA + "agent: {type: floor}\njudge: {type: overlaps}\nconditions: {a: {}}\n",
    "unknown scorers": _with("scorers: [equal, {contians: {}}, {type: xyzzy}]\n"),
    "scorers of the wrong form": _with("scorers: [3, {a: 1, b: 2}, [equals], {type: 5}]\n"),
    "two scorers of one name": _with("scorers: [equals, equals]\n"),
    "an unknown server": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nmcp_servers: {docs: {command: python}}\n"
    + "conditions: {a: {mcp_servers: [doc]}, b: {mcp_servers: [docs, docs]}}\n",
    "a server where there are none": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {mcp_servers: [docs]}}\n",
    "a missing dataset": "dataset: {path: question.jsonl}\n" + _REST,
    "a folder as dataset": "dataset: {path: .}\n" + _REST,
    # servers
    "servers that lack something": _with(
        "mcp_servers:\n  a: {}\n  b: {type: stdio}\n  c: {type: http}\n  d: {args: [x]}\n  e: {command: ''}\n"
    ),
    "servers of the wrong type": _with(
        "mcp_servers:\n  a: {type: stdoi, command: x}\n  b: {type: websocket, url: 'ws://x'}\n  c: {type: 5}\n"
    ),
    "keys of another type of server": _with(
        "mcp_servers:\n  a: {type: stdio, command: python, url: 'http://x/'}\n"
        "  b: {type: http, url: 'http://x/', command: python, env: {A: b}}\n"
    ),
    "addresses that are none": _with(
        "mcp_servers:\n  a: {type: http, url: localhost:8080}\n  b: {type: sse, url: 'http://'}\n"
        "  c: {type: http, url: 'http://x:99999/'}\n"
    ),
    "arguments and variables that are no text": _with(
        "mcp_servers:\n  a: {command: python, args: [--port, 8080], env: {PORT: 8080, DEBUG: true, EMPTY: }}\n"
    ),
    "a scope that is none": _with("mcp_servers: {a: {command: python, scope: session, init_timeout_seconds: 0}}\n"),
    # gates and overrides
    "a gate that cannot be met": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {require_mcp_tool_use: true}}\n",
    "a condition with another agent": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {agent: {type: command}}}\n",
    "a condition with a wrong option": _DATA
    + "agent: {type: chat, model: 'openai:m'}\njudge: {type: overlap}\n"
    + "conditions: {a: {agent: {temperature: 3}}, b: {agent: m2}}\n",
    # the environment
    "variables that are not set": _with(
        'name: ${KARAT_NAME}\nversion: "${KARAT_NAME} ${KARAT_VERSION}"\nexecution: {num_repetitions: "${REPS}"}\n'
    ),
    "a reference that is none": _DATA
    + 'agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {system_prompt: "Hello ${user.name}, ${}"}}\n',
    "a number from the environment": _with('execution: {num_repetitions: "${KARAT_WORD}"}\n'),
    # secrets
    "literal secrets": _with(
        "mcp_servers:\n"
        "  a: {type: http, url: 'http://x/', headers: {Authorization: Bearer canary-1234, X-Api-Key: canary-1234}}\n"
        "  b: {type: http, url: 'http://me:canary-1234@x/mcp?token=canary-1234&page=2'}\n"
        "  c: {command: python, env: {GITHUB_TOKEN: canary-1234, INDEX: ./docs}}\n"
    ),
    "a literal key": _DATA
    + "agent: {type: chat, model: 'openai:m', api_key_env: canary-1234}\n"
    + "judge: {model: 'openai:m', api_key_env: UNSET_API_KEY}\n"
    + "conditions: {a: {}}\n",
    "a key where none belongs": _DATA
    + "agent: {type: chat, model: 'openai:m', api_key: canary-1234}\njudge: {type: overlap}\nconditions: {a: {}}\n",
    "secrets that are values": _with("secrets: [canary-1234, 5]\n"),
    # the judge
    "a judge out of range": _DATA
    + "agent: {type: floor}\njudge: {model: 'openai:m', temperature: -1, repeats: 0, top_p: 2, max_tokens: x}\n"
    + "conditions: {a: {}}\n",
    "prices that cannot be": _DATA
    + "agent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n"
    + "prices: {'openai:gpt-4.1': {input: -1, outputs: 2}, 'openai:x': 3}\n",
    "an http agent that cannot ask": _DATA
    + "agent: {type: http, url: 'localhost:8000', body: {q: '{{ qestion }}'}, answer: 'a[0', timeout: 3}\n"
    + "judge: {type: overlap}\nconditions: {a: {}}\n",
    "a judge and a panel": _DATA
    + "agent: {type: floor}\njudge: {model: 'openai:m', judges: ['openai:a', 'openai:b']}\nconditions: {a: {}}\n",
    # the dataset's options
    "options of the dataset out of range": "dataset:\n"
    "  {path: questions.jsonl, sample_size: 0, seed: -1, question_key: 7, stratify: 5}\n" + _REST,
    "everything at once": "name: a/b\ndataset: {path: gone.jsonl, kind: golden}\nagent: {type: flor}\n"
    "judge: {type: overlap, model: x}\nconditions:\n  a: {mcp_servers: [docs]}\n  a: {system_promt: '${KARAT_NAME}'}\n"
    "execution: {num_repetitions: many}\nexekution: {}\n",
}
