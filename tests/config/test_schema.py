"""The JSON Schema of an experiment file: what an editor marks, and what only `karat check` can see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.karat_studies.config.bad_study_experiments import CASES as STUDY_CASES
from tests.reading_experiments import GOOD

from karat.config import load
from karat.config.schema import schema_of, schema_text
from karat.documents.nodes import plain
from karat.documents.reader import parse
from karat.errors import BadExperiment, BadOption

from .bad_experiments import CASES
from .test_experiment import EXAMPLE
from .test_keval import EARLIER

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in ("examples", "docs", "src/karat/kinds", "tests")
    for path in (ROOT / folder).rglob("*.y*ml")
    if "golden" not in path.relative_to(ROOT).parts
    and re.search(r"^conditions:", path.read_text("utf-8"), re.MULTILINE)
)

ELSEWHERE = {
    r"no condition is called|no server is called|'.*' is listed twice|is a second scorer called|"
    r"a condition changes the agent's options|`mcp_servers` names none": "refers to another part of the file",
    r"there is no file|is a folder|holds a study|is a dataset of another kind|no file or folder|cannot be read|"
    r"cannot be imported|without a study.yaml|must be a study": "depends on what is on this machine",
    r"the environment variable .* is not set|is not an environment variable": "depends on the environment",
    r"a secret must not be in the file": "which names sound secret is decided by their words",
    r"there is no value called|is not a JMESPath expression|asks for \{\{|must be at the beginning|"
    r"says who somebody is|is for a study, and this dataset": "is text in another language, or depends on the study",
    r"must be an address such as http://localhost:8080/mcp": "is a port beyond 65535, in one of three addresses",
    r"must be a whole number, got 'many'$": "came through a variable",
    r"needs a name that can be printed": "is a name of blanks, marked at the section that holds it",
}
"""What a schema cannot see of a file that is YAML, by what karat says of it, and why."""


_MARKED_ABOVE = "is required|is empty|needs either|no trial can meet|leave out one|must be stdio, http or sse$"
"""What is wrong with several keys together, or with one that is not there, is marked at the mapping."""


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    made = schema_of("experiment")
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def marked(schema: jsonschema.Draft202012Validator, values: Any) -> set[tuple[str | int, ...]]:
    """The places that an editor marks: of an unknown key the key, of a missing one what should hold it."""
    return set(_places(schema.iter_errors(values)))


def _places(errors: Any) -> Iterator[tuple[str | int, ...]]:
    for error in errors:
        place = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            for key in re.findall(r"'([^']*)'", error.message):
                yield (*place, key)
        yield place
        yield from _places(error.context)


def faults_of(text: str, folder: Path) -> BadExperiment:
    path = folder / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadExperiment) as caught:
        load(path, env={"KARAT_WORD": "many"})
    return caught.value


@pytest.mark.parametrize("name", [*CASES, *(f"study: {name}" for name in STUDY_CASES)])
@pytest.mark.needs_kind("study", cases="study: ")
def test_each_fault_that_a_schema_can_see_is_marked(
    schema: jsonschema.Draft202012Validator, name: str, folder: Path
) -> None:
    text = STUDY_CASES[name.removeprefix("study: ")] if name.startswith("study: ") else CASES[name]
    document = parse(text.encode() if isinstance(text, str) else text)
    if document.faults or document.root is None or not isinstance(document.root.value, dict):
        return  # not YAML, or no mapping: an editor marks it without a schema
    places = marked(schema, plain(document.root))
    missed = []
    for fault in faults_of(str(text), folder).faults:
        if any(re.search(words, fault.message) for words in ELSEWHERE):
            continue
        place = fault.place.split(".")
        around = [".".join(map(str, one)) for one in places]
        together = re.search(_MARKED_ABOVE, fault.message)
        if fault.place not in around and not (together and ".".join(place[:-1]) in around):
            missed.append(str(fault))
    assert missed == []


def test_a_file_that_is_not_seen_to_be_wrong_is_accepted(schema: jsonschema.Draft202012Validator) -> None:
    only = "dataset: {path: gone.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n"
    assert marked(schema, plain(parse(only.encode()).root)) == set()


@pytest.mark.parametrize(("servers", "wrong"), [("[]", True), ("[docs]", False)])
def test_a_gate_on_the_use_of_tools_needs_a_server(
    schema: jsonschema.Draft202012Validator, servers: str, wrong: bool
) -> None:
    gated = f"""
dataset: {{path: gone.jsonl}}
agent: {{type: floor}}
judge: {{type: overlap}}
mcp_servers: {{docs: {{type: stdio, command: docs}}}}
conditions: {{a: {{require_mcp_tool_use: true, mcp_servers: {servers}}}}}
"""
    assert bool(marked(schema, plain(parse(gated.encode()).root))) == wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.needs_kind("study", cases="framing|trust-pairs|studies")
@pytest.mark.needs_kind("conversation", cases="convfinqa|conversations")
def test_every_experiment_of_the_tree_is_accepted(schema: jsonschema.Draft202012Validator, path: Path) -> None:
    document = parse(path.read_bytes())
    assert document.root is not None
    assert [error.message for error in schema.iter_errors(plain(document.root))] == []


VALID = {
    "the example": EXAMPLE,
    "numbers as text": GOOD + "execution: {num_repetitions: '5', max_failures: '0.5', retry: {timeouts: 'yes'}}\n",
    "variables": GOOD + "execution: {num_repetitions: '${N}', timeout_seconds: '${S}', shared: '${B}'}\n"
    "mcp_servers: {a: {command: '${C}', scope: '${SCOPE}'}, b: {url: '${URL}'}}\n",
    "keys without a value": GOOD + "execution: {retry: , num_repetitions: }\nprices:\nmcp:\nscorers:\nbaseline:\n",
    "scorers": GOOD + "scorers: [equals, {regex: {pattern: x}}, {contains: }, {type: regex, name: n, pattern: y}]\n",
    "a scorer of one's own": GOOD + "scorers: ['mine:Scorer', {'mine:Other': {a: 1}}]\n",
    "an agent of one's own": GOOD.replace("{type: floor}", "{type: 'mine:Agent', anything: [1]}"),
    "an old name": GOOD.replace("{type: floor}", "{type: search-baseline}"),
    "one text for a list": GOOD.replace("path: questions.jsonl", "path: q.jsonl, stratify: topic, sample_size: 5"),
    "a variant of the agent": "dataset: {path: q}\nagent: {type: chat, model: 'openai:a'}\njudge: {type: overlap}\n"
    "conditions: {a: , b: {agent: {temperature: 1}}}\n",
    "no judge with scorers": "dataset: {path: q}\nagent: {type: floor}\nconditions: {a: {}}\nscorers: []\n",
    "a study": "dataset: {kind: study, path: framing, arms: gain}\nagent: {type: floor}\n"
    "conditions: {a: {preset: empty}, b: {system_prompt: {file: p.txt}}}\n",
    "a file for k-eval": EARLIER.replace("    allowed_tools: [Read, Grep]\n", "").replace(
        "num_samples", "num_repetitions"
    ),
}


@pytest.mark.parametrize("name", VALID)
@pytest.mark.needs_kind("study", cases="a study")
def test_what_karat_takes_the_schema_takes(schema: jsonschema.Draft202012Validator, name: str) -> None:
    document = parse(VALID[name].encode())
    assert document.root is not None
    assert [error.message for error in schema.iter_errors(plain(document.root))] == []


def test_a_schema_is_written_as_json_that_reads_back() -> None:
    made = schema_of("experiment")
    text = schema_text(made)
    assert json.loads(text) == made
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")
    assert schema_text({"title": "Größe"}) == '{\n "title": "Größe"\n}\n'


def test_a_schema_that_there_is_not_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BadOption, match=r"there is no schema of 'experimnt' \(did you mean 'experiment'\?\)"):
        schema_of("experimnt")


def mappings(value: object) -> Iterator[dict[str, Any]]:
    """Every mapping in a schema."""
    if isinstance(value, dict):
        yield value
        for below in value.values():
            yield from mappings(below)
    elif isinstance(value, list):
        for below in value:
            yield from mappings(below)


def test_limits_are_in_the_words_of_the_standard_and_references_lead_somewhere(
    schema: jsonschema.Draft202012Validator,
) -> None:
    found = list(mappings(schema.schema))
    limits = [one[key] for one in found for key in ("ge", "gt", "le", "lt") if isinstance(one.get(key), (int, float))]
    assert limits == []
    references = {one["$ref"] for one in found if isinstance(one.get("$ref"), str)}
    assert references
    assert {reference.removeprefix("#/$defs/") for reference in references} <= schema.schema["$defs"].keys()
    assert not any(name.startswith("karat__config") for name in schema.schema["$defs"])


@pytest.mark.parametrize(
    ("gate", "right"),
    [({"max_drop": {"m": 0}}, True), ({"max_drop": {"m": -1}}, False), ({"min": {"m": -1}}, True), ({"min": 3}, False)],
)
def test_limits_hold_in_mappings_of_any_names(
    schema: jsonschema.Draft202012Validator, gate: dict[str, Any], right: bool
) -> None:
    assert schema.is_valid({**plain(parse(GOOD.encode()).root), "gate": gate}) is right
