"""Small files of questions, and what is read from them."""

from __future__ import annotations

import json

import pytest

from karat.errors import BadDataset
from karat.kinds.golden import Golden

ASKED = ["How high is the tower?", "Who wrote the old play?", "Where does the river end?", "When did it begin?"]
SAID = ["Ninety metres.", "A poet of the court did.", "In the cold sea.", "In the spring of 1820."]


def load(path, **options):
    return Golden(Golden.Options(**options)).load(path)


def written(folder, rows, name="q.json"):
    path = folder / name
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def table(**columns):
    return [{name: values[at] for name, values in columns.items()} for at in range(4)]


def refused(path, **options):
    with pytest.raises(BadDataset) as bad:
        load(path, **options)
    return str(bad.value)


def turns(dataset):
    return [(turn.question, turn.golden) for sample in dataset.samples for turn in sample.turns]
