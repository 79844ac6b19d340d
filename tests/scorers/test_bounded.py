"""regex and json_schema: scorers that a hostile answer could keep busy for ever."""

import gc
import json
import subprocess
import sys
import textwrap
import time

import pydantic
import pytest

from karat.errors import BadOption, JudgeFault
from karat.records import Answer, Reply, Sample, Turn
from karat.scorers import ScorerSetting
from karat.scorers._child import Child, read_schema, short_json
from karat.scorers.json_schema import JsonSchema, unfenced
from karat.scorers.regex import Regex

PERSON = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer", "minimum": 0}}}


def say(scorer, text):
    sample = Sample(id="1", position=0, digest="", turns=(Turn(question="q"),))
    reply = Reply(text=text)
    answer = Answer(trial="t", sample="1", condition="c", repetition=0, replies=(reply,), started="", seconds=0.0)
    return scorer.score(sample, answer)


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("exit code 3", {"pattern": r"code \d"}, True),
        ("exit code x", {"pattern": r"code \d"}, False),
        ("exit code 123", {"pattern": r"code \d+$"}, True),
        ("code 1", {"pattern": "CODE", "ignore_case": True}, True),
        ("a\nb", {"pattern": "^b$", "multiline": True}, True),
        ("a\nb", {"pattern": "a.b"}, False),
        ("a\nb", {"pattern": "a.b", "dot_all": True}, True),
        ("a\nb", {"pattern": "a.+b", "dot_all": True}, True),
        ("xay", {"pattern": "a", "match": "fullmatch"}, False),
        ("ab", {"pattern": ["a", "b"]}, True),
        ("ab", {"pattern": ["a+", "c"]}, False),
        ("ab", {"pattern": "c", "negate": True}, True),
        ("\ud800 \x00 é 👍", {"pattern": "é.*👍"}, True),
        ("aaaa", {"pattern": "a", "max_characters": 3}, None),
    ],
)
def test_regex(judge, text, options, value):
    assert judge(Regex, None, text, **options) is value


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|a)*b", "a?" * 30 + "a" * 30, r"(?:.*,){20}x"], ids=lambda p: p[:12]
)
def test_a_catastrophic_pattern_is_a_fault_within_its_time_and_the_next_answer_is_scored(pattern):
    scorer = Regex(Regex.Options(pattern=pattern, timeout_seconds=0.3))
    hostile = "a" * 29 + "!" if "," not in pattern else "a," * 40
    start = time.perf_counter()
    with pytest.raises(JudgeFault, match=r"scorer_timeout: no result within 0\.3 seconds"):
        say(scorer, hostile)
    assert time.perf_counter() - start < 10
    assert say(scorer, "b") in {True, False}
    scorer.close()


def test_a_pattern_that_repeats_nothing_needs_no_process():
    scorer = Regex(Regex.Options(pattern=r"\bcode \d"))
    assert scorer._child is None
    scorer.close()


@pytest.mark.slow
def test_the_process_ends_with_its_scorer():
    scorer = Regex(Regex.Options(pattern="a+"))
    assert say(scorer, "caat") is True
    process = scorer._child._process
    assert process.poll() is None
    del scorer
    gc.collect()
    assert process.poll() is not None


def test_the_process_ends_when_its_parent_is_killed_and_sees_no_secret(tmp_path):
    """The parent is killed without a chance to clean up; the child's standard input closes."""
    program = textwrap.dedent(
        """
        import os, signal
        from karat.scorers._child import Child
        child = Child("import os\\ndef ask(q): return [os.getpid(), os.environ.get('SECRET')]", {}, seconds=5)
        print(*child.ask(None), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"SECRET": "canary-canary"}, check=False
    )
    pid, secret = done.stdout.split()
    assert secret == "None"
    for _ in range(600):
        alive = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
        if not alive.strip() or alive.startswith("Z"):
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still there")


@pytest.mark.parametrize(
    ("pattern", "message"), [("(", "is not a regular expression"), ("", "must not be empty"), ("a" * 10_001, "at most")]
)
def test_a_bad_pattern_is_refused_before_anything_runs(pattern, message):
    with pytest.raises(pydantic.ValidationError, match=message):
        Regex.Options(pattern=pattern)


def test_a_pattern_of_10_000_characters_is_taken():
    assert Regex.Options(pattern="a" * 10_000).pattern == "a" * 10_000


@pytest.mark.parametrize(("pattern", "bad"), [(["a", "("], "is not a regular"), ([], "must not be empty")])
def test_each_of_several_patterns_is_read(pattern, bad):
    with pytest.raises(pydantic.ValidationError, match=bad):
        Regex.Options(pattern=pattern)


@pytest.mark.parametrize(("characters", "value"), [(3, True), (4, None)])
def test_an_answer_may_be_as_long_as_the_limit(judge, characters, value):
    assert judge(Regex, None, "a" * characters, pattern="a", max_characters=3) is value
    scorer = JsonSchema(JsonSchema.Options(schema=True, max_characters=3))
    verdict = say(scorer, "1" * characters)
    assert verdict.values == {"json_schema": value}
    assert verdict.reasons == ({} if value else {"json_schema": "is longer than 3 characters"})
    scorer.close()


def test_a_process_that_crashes_is_a_fault_and_is_replaced():
    child = Child("def ask(q): return [1, q][q['at']]", {}, seconds=5)
    for _ in range(2):
        with pytest.raises(JudgeFault, match="scorer_crash: the process that scores ended with code 1"):
            child.ask({"at": 2})
        assert child.ask({"at": 0}) == 1
    child.close()
    assert child.ask({"at": 0}) == 1, "asking again starts another"
    child.close()


def test_a_schema_file_of_a_million_bytes_is_read_and_a_larger_one_is_not(tmp_path):
    file = tmp_path / "large.json"
    for size, read in ((1_000_000, True), (1_000_001, False)):
        file.write_text("{}" + " " * (size - 2), encoding="utf-8")
        if read:
            assert read_schema("large.json", tmp_path) == {}
        else:
            with pytest.raises(BadOption, match=r"schema: large\.json is larger than 1000000 bytes"):
                read_schema("large.json", tmp_path)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("no fence", "no fence"),
        ("```json\n{}\n```", "{}\n"),
        ("```\n{}\n``` and ```\n[]\n```", "{}\n"),
        ("```json\n{}", "```json\n{}"),
        ("``` {} ```", "``` {} ```"),
    ],
)
def test_the_first_code_fence_is_read(text, inside):
    assert unfenced(text) == inside


def test_a_fence_is_text_where_it_is_not_to_be_read():
    scorer = JsonSchema(JsonSchema.Options(schema=True, fence=False))
    assert say(scorer, "```\n1\n```").values == {"json_schema": False}
    scorer.close()


@pytest.mark.parametrize(("value", "length"), [("a" * 118, 120), ("a" * 119, 120), ({"a": 1}, 8)])
def test_a_value_in_a_reason_is_short(value, length):
    text = short_json(value)
    assert len(text) == length
    assert text.endswith("…") == (value == "a" * 119)


@pytest.mark.parametrize(
    ("text", "valid", "reason"),
    [
        ('{"name": "Ada", "age": 36}', True, None),
        ('Here it is:\n```json\n{"name": "Ada"}\n```\nDone.', True, None),
        ('{"age": 36}', False, "the whole: 'name' is a required property"),
        ('{"name": "Ada", "age": -1}', False, "age: -1 is less than the minimum of 0"),
        ("Ada", False, "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("", False, "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, False, "is nested too deeply"),
    ],
)
def test_json_schema(text, valid, reason):
    scorer = JsonSchema(JsonSchema.Options(schema=PERSON))
    verdict = say(scorer, text)
    assert verdict.values == {"json_schema": valid}
    assert verdict.reasons.get("json_schema") == reason
    scorer.close()


def test_a_schema_file_is_read_from_the_experiments_folder(tmp_path):
    (tmp_path / "person.json").write_text(json.dumps(PERSON), encoding="utf-8")
    scorer = JsonSchema(JsonSchema.Options(schema="person.json"), ScorerSetting(folder=tmp_path, name="shape"))
    assert say(scorer, '{"name": "Ada"}').values == {"shape": True}
    changed = dict(PERSON, required=[])
    (tmp_path / "person.json").write_text(json.dumps(changed), encoding="utf-8")
    other = JsonSchema(JsonSchema.Options(schema="person.json"), ScorerSetting(folder=tmp_path, name="shape"))
    assert other.fingerprint != scorer.fingerprint  # the digest of a scoring covers the file, not its name alone
    scorer.close()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("nowhere.json", "schema: nowhere.json cannot be read: No such file or directory"),
        ("broken.json", "schema: broken.json is not JSON"),
        ("list.json", "schema: must be an object or a bool, is a list"),
        ({"type": "strnig"}, "schema/type: 'strnig' is not valid"),
    ],
)
def test_a_bad_schema_is_refused_before_anything_runs(tmp_path, schema, message):
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(BadOption, match=message):
        JsonSchema(JsonSchema.Options(schema=schema), ScorerSetting(folder=tmp_path, name="shape"))


def test_nothing_outside_the_schema_is_fetched():
    """The suite refuses the network; the child could still try: it must not even look."""
    scorer = JsonSchema(JsonSchema.Options(schema={"$ref": "http://127.0.0.1:9/schema.json"}))
    verdict = say(scorer, "1")
    assert verdict.values == {"json_schema": None}
    assert verdict.reasons == {"json_schema": "the schema refers to http://127.0.0.1:9/schema.json, which is not in it"}
    scorer.close()


def test_a_schema_with_a_catastrophic_pattern_is_a_fault_within_its_time():
    scorer = JsonSchema(JsonSchema.Options(schema={"pattern": "^(a+)+$"}, timeout_seconds=0.3))
    with pytest.raises(JudgeFault, match="scorer_timeout"):
        say(scorer, json.dumps("a" * 40 + "!"))
    assert say(scorer, '"aa"').values == {"json_schema": True}
    scorer.close()


def test_an_answer_that_is_too_long_has_no_score():
    scorer = JsonSchema(JsonSchema.Options(schema=True, max_characters=3))
    assert say(scorer, "[1, 2]").values == {"json_schema": None}
    scorer.close()
