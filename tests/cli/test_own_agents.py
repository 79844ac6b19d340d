"""Agents that users write in Python, as the commands meet them."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def own(experiment, here, request):
    """`own(code)`: the experiment, answered by `agent` of this code; the module has a name of its own."""

    def write(code: str, target: str = "answer", **sections: object) -> str:
        module = f"own_{abs(hash(request.node.name))}"
        (here / f"{module}.py").write_text(code, encoding="utf-8")
        text = experiment.read_text(encoding="utf-8")
        command = "agent: {type: command, command: [python, adder.py]}"
        assert command in text
        agent = json.dumps({"type": "python", "target": f"{module}:{target}", **sections})
        experiment.write_text(text.replace(command, f"agent: {agent}"), encoding="utf-8")
        return experiment.name

    return write


def replies(here) -> list[dict]:
    (journal,) = here.glob("results/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return [event for event in events if event["event"] == "answer"]


def test_a_default_does_not_keep_the_condition_s_prompt_from_the_agent(karat, own, here):
    done = karat("run", own("def answer(question, system_prompt='You are helpful'):\n    return system_prompt\n"))
    assert done.code == 0
    assert {(one["condition"], one["replies"][0]["text"]) for one in replies(here)} == {
        ("guess", "Guess."),
        ("add", "Add."),
    }


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_signature_that_cannot_be_bound_is_refused_before_anything_is_asked(karat, own, here, command):
    file = own("def answer(question, context):\n    open('asked', 'w')\n    return ''\n")
    done = karat(command, file)
    assert done.code == 2
    assert "answer(question, context): its arguments cannot be bound\n  cannot fill 'context'" in done.err
    assert "It may name: question (query, prompt," in done.err
    assert not (here / "asked").exists()
    assert not list(here.glob("results/*"))


def test_conditions_that_cannot_differ_are_said_by_check_by_run_and_by_the_report(karat, own):
    sentence = (
        "conditions 'guess', 'add' cannot differ: they differ in system_prompt alone, "
        "and answer(question) takes no system_prompt"
    )
    file = own("def answer(question):\n    return 'It is 2.'\n")
    checked = karat("check", file, "--json")
    assert (checked.code, checked.json["warnings"]) == (0, [sentence])
    ran = karat("run", file, "--json")
    assert sentence in ran.err
    assert ran.json["summary"]["warnings"][0] == sentence


def test_an_http_agent_that_does_not_send_the_prompt_is_found_out_too(karat, experiment):
    agent = "agent={type: http, url: 'http://localhost:1/ask', body: {q: '{{ question }}'}}"
    done = karat("check", experiment.name, "--set", agent)
    assert "conditions 'guess', 'add' cannot differ" in done.err


def test_golden_answers_are_given_only_to_an_agent_that_may_have_them(karat, own, here):
    code = "def answer(question, sample):\n    return str(sample.turns[0].golden) + str(sample.turns[0].detail)\n"
    done = karat("run", own(code), "--limit", "1")
    assert {one["replies"][0]["text"] for one in replies(here)} == {"None{}"}
    assert "golden answers" not in done.err


def test_a_run_whose_agent_may_read_golden_answers_says_so(karat, own, here):
    code = "def answer(question, system_prompt, sample):\n    return sample.turns[0].golden\n"
    done = karat("run", own(code, allow_golden=True), "--limit", "1", "--json")
    assert {one["replies"][0]["text"] for one in replies(here)} == {"It is 2."}
    said = "answer(question, system_prompt, sample) may read the golden answers (allow_golden)"
    assert said in done.err
    assert done.json["summary"]["warnings"][0] == said


def test_a_plug_in_of_the_user_s_is_not_given_golden_answers_either(karat, experiment, here):
    (here / "own_plug_in.py").write_text(
        "from karat import Reply\n"
        "class Peeks:\n"
        "    async def ask(self, condition, sample, turn, history):\n"
        "        return Reply(text=f'{turn.golden} {sample.turns[0].golden}')\n"
        "class May(Peeks):\n"
        "    allow_golden = True\n",
        encoding="utf-8",
    )
    karat("run", experiment.name, "--limit", "1", "--set", "agent={type: 'own_plug_in:Peeks'}", "--results", "blind")
    karat("run", experiment.name, "--limit", "1", "--set", "agent={type: 'own_plug_in:May'}", "--results", "seeing")
    told = {
        path.parts[-3]: {
            json.loads(line)["replies"][0]["text"]
            for line in path.read_text(encoding="utf-8").splitlines()
            if '"event":"answer"' in line
        }
        for path in here.glob("*/*/journal.jsonl")
    }
    assert told == {"blind": {"None None"}, "seeing": {"It is 2. It is 2."}}


LOUD = """
import os, subprocess, sys
def loud(where):
    print("printed", where)
    sys.stderr.write(f"complained {where}\\n")
    sys.__stdout__.write(f"past the redirection {where}\\n")
    os.write(1, f"written {where}\\n".encode())
    subprocess.run(["sh", "-c", f"echo by a program {where}; echo its complaint {where} >&2"])
loud("at import")
def answer(question, system_prompt):
    loud("when asked")
    return "It is 2."
class Scorer:
    def score(self, sample, answer):
        loud("when scoring")
        return 1.0
"""


@pytest.fixture
def loud(own, experiment, here):
    """An experiment whose agent and scorer write wherever they can."""
    file = own(LOUD)
    module = next(path.stem for path in here.glob("own_*.py"))
    text = experiment.read_text(encoding="utf-8").replace("judge: {type: overlap}", f"scorers: ['{module}:Scorer']")
    experiment.write_text(text, encoding="utf-8")
    return file, f"{module}:Scorer"


@pytest.mark.slow
def test_json_stays_json_whatever_agents_and_scorers_print(process, loud):
    file, scorer = loud
    checked = process("check", file, "--json")
    assert (checked.code, checked.json["samples"]) == (0, 4)
    ran = process("run", file, "--json", "--limit", "1")
    assert (ran.code, ran.json["summary"]["samples"]) == (0, 1)
    scored = process("score", "latest", "--scorer", scorer, "--json")
    assert (scored.code, scored.json["summary"]["samples"]) == (0, 1)
    rehearsed = process("run", "--rehearse", file, "--set", "agent={type: floor}", "--limit", "1", "--json")
    assert (rehearsed.code, rehearsed.json["summary"]["samples"]) == (0, 1)
    ways = ("printed", "complained", "past the redirection", "written", "by a program", "its complaint")
    for done, times in [(checked, ["at import"]), (ran, ["at import", "when asked", "when scoring"])]:
        for time in times:
            for way in ways:
                assert f"{way} {time}\n" in done.err, "what is said is not lost"


def test_events_stay_lines_of_json_and_carry_what_programs_say(process, loud):
    done = process("run", loud[0], "--events", "--limit", "1", "--only-condition", "add")
    first, *events = done.err.split('{"event":', 1)
    assert "at import" in first
    parsed = [json.loads(line) for line in ('{"event":' + events[0]).splitlines()]
    said = {event["text"] for event in parsed if event["event"] == "output"}
    for way in ("printed", "complained", "past the redirection", "written", "by a program", "its complaint"):
        assert {f"{way} when asked", f"{way} when scoring"} <= said


def test_a_program_that_outlives_the_run_does_not_hold_it(process, own, here):
    code = (
        "import subprocess\n"
        "def answer(question, system_prompt):\n"
        "    wait = 'for n in $(seq 600); do test -e over && exit; echo waiting; sleep 0.2; done'\n"
        "    subprocess.Popen(['sh', '-c', wait])\n"
        "    return 'It is 2.'\n"
    )
    done = process("run", own(code), "--json", "--limit", "1", "--only-condition", "add")
    (here / "over").touch()
    assert done.json["exit_code"] == done.code == 0


@pytest.fixture
def many(here, own):
    """`many(code)`: 130 questions under one condition, so that a fifth of them would be 26 failed trials."""

    def write(code: str, **sections: object) -> str:
        rows = [{"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": f"It is {2 * n}."} for n in range(130)]
        (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return own(code, **sections)

    return write


ALIKE = [  # what the agent is, what is said, after how many trials and attempts each
    pytest.param("def answer(question):\n    import no_such_module\n", "ModuleNotFoundError", 3, 1, id="an import"),
    pytest.param("def answer(question):\n    return no_such_name\n", "NameError", 3, 1, id="a name"),
    pytest.param(
        "def shown(question): pass\ndef answer(*args): pass\nanswer.__wrapped__ = shown\n",
        "answer() got an unexpected keyword argument 'question'",
        *(3, 1),
        id="a signature that lies",
    ),
    pytest.param(
        "def inner(question, more): pass\ndef answer(question):\n    return inner(question)\n",
        "inner() missing 1 required positional argument: 'more'",
        *(5, 3),
        id="arguments of a function within",
    ),
    pytest.param("def answer(question):\n    return {}['KEY']\n", "KeyError: 'KEY'", 5, 3, id="the same crash"),
    pytest.param("def answer(question):\n    pass\n", "the agent returned a NoneType", 5, 1, id="no return"),
]


@pytest.mark.parametrize(("code", "says", "trials", "attempts"), ALIKE)
def test_trials_that_all_fail_alike_stop_the_run_at_the_first_few(karat, many, here, code, says, trials, attempts):
    done = karat("run", many(code), "--only-condition", "add", "--set", "execution.retry.initial_backoff_seconds=0")
    assert done.code == 3
    (journal,) = here.glob("results/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    failed = [event for event in events if event["event"] == "failure"]
    tried = [event for event in events if event["event"] == "attempt"]
    assert trials <= len(failed) <= trials + 4, "those in flight come to their end"
    assert len(tried) <= attempts * (trials + 4)
    assert f"stopped: the first {trials} trials all failed in the same way: " in done.err
    first = " ".join(done.out.partition("\n\n")[0].split())
    assert first.startswith("No result: ")
    assert says in first
    empty = {"Means with their 95 % intervals", "Differences between conditions", "Cost and time"}
    assert not empty & set(done.out.splitlines()), "no empty tables"


def test_a_program_that_is_missing_stops_the_run_too(karat, experiment, here):
    done = karat(
        "run", experiment.name, "--set", "agent.command=[no-such-program]", "--set", "execution.max_failures=99"
    )
    assert done.code == 3
    assert "the first 3 trials all failed in the same way: cannot start 'no-such-program'" in done.err


def test_a_service_that_does_not_answer_is_asked_again_and_stops_by_the_share_alone(karat, many, here):
    code = "def answer(question, repetition):\n    raise ConnectionRefusedError('not yet')\n"
    fast = ("--set", "execution.retry.initial_backoff_seconds=0", "--set", "execution.max_concurrent=1")
    done = karat("run", many(code), "--only-condition", "add", *fast, "--json")
    assert done.json["failed"] == 26
    assert "in the same way" not in done.err


def test_failures_that_differ_or_come_after_an_answer_do_not_stop_the_run(karat, many, here):
    code = (
        "def answer(question):\n"
        "    if question == 'What is 0 + 0?':\n        return 'It is 0.'\n"
        "    import no_such_module\n"
    )
    fast = ("--set", "execution.max_concurrent=1", "--limit", "10", "--set", "execution.max_failures=99")
    done = karat("run", many(code), "--only-condition", "add", *fast, "--json")
    assert (done.json["status"], done.json["failed"]) == ("done", 9)


@pytest.mark.parametrize(("questions", "ends"), [(3, "done"), (4, "done"), (30, "max_failures")])
def test_a_share_of_failures_says_nothing_of_a_few_trials(karat, many, questions, ends):
    code = (
        "import re\n"
        "def answer(question):\n"
        "    number = int(re.findall(r'\\d+', question)[0])\n"
        "    if number % 3 == 1:\n        raise ValueError(number)\n"
        "    return 'It is 0.'\n"
    )
    limits = ("--set", "execution.retry.max_attempts=1", "--set", "execution.max_concurrent=1")
    done = karat("run", many(code), "--limit", str(questions), "--only-condition", "add", *limits, "--json")
    assert done.json["status"] == ends
    assert done.json["summary"]["total"]["ledger"]["agent"] == {3: 1, 4: 1, 30: 6}[questions]


def test_a_scorer_that_fails_alike_for_every_answer_stops_the_run_and_is_the_first_line(karat, many, here):
    code = (
        "def answer(question):\n    return 'It is 0.'\n"
        "class Scorer:\n    def score(self, sample):\n        return 1.0\n"
    )
    file = many(code)
    module = next(path.stem for path in here.glob("own_*.py"))
    done = karat("run", file, "--only-condition", "add", "--set", f"scorers=['{module}:Scorer']", "--set", "judge=null")
    assert done.code == 3
    assert "trials all failed in the same way: TypeError: Scorer.score() takes 2 positional arguments" in done.err
    assert "could not be scored: TypeError" in done.out.splitlines()[0]
