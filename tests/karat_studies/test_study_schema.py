"""The JSON Schema of a study file: an editor marks what the models refuse, and accepts what karat reads."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
from tests.config.test_schema import marked

from karat.config.schema import schema_of
from karat.documents.nodes import plain
from karat.documents.reader import parse
from karat.errors import BadDataset
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study

from .studies import STUDY, write
from .test_study_format import BAD

_OF_THE_MODELS = re.compile(
    r"no such key|is required$|must not be empty$"
    r"|must be (a |text|true or false|at least|at most|more than|less than)[^:;]*, got [^:;]*(; put it in quotes)?$"
)
"""What keys, types and ranges say. All else compares parts of a study: names, materials, numbers and statistics."""


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    made = schema_of("study")
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("name", BAD)
def test_each_fault_of_the_models_is_marked(schema: jsonschema.Draft202012Validator, name: str, tmp_path: Path) -> None:
    text, materials = BAD[name]
    root = parse(text.encode() if isinstance(text, str) else text).root
    if root is None or not isinstance(root.value, dict):
        return  # not YAML, or no mapping: an editor marks it without a schema
    around = {".".join(map(str, place)) for place in marked(schema, plain(root))}
    with pytest.raises(BadDataset) as caught:
        read_study(write(tmp_path, text, materials))
    seen = [fault for fault in caught.value.faults if _OF_THE_MODELS.match(fault.message)]
    missed = [
        str(fault)
        for fault in seen
        if fault.place not in around
        and not (fault.message == "is required" and fault.place.rpartition(".")[0] in around)
    ]
    assert missed == []


@pytest.mark.parametrize("name", [*shipped_studies(), "small"])
def test_what_karat_reads_is_accepted(schema: jsonschema.Draft202012Validator, name: str) -> None:
    data = STUDY.encode() if name == "small" else shipped_studies()[name].read_bytes()
    root = parse(data).root
    assert root is not None
    assert [error.message for error in schema.iter_errors(plain(root))] == []
