"""XML is read as the objects and lists that it would be in JSON, within bounds."""

from __future__ import annotations

import pytest

from karat.documents.rows import read_rows
from karat.documents.xml_rows import read_xml
from karat.errors import BadDataset

PAIR = "<pair><question>{}</question><answer>{}</answer></pair>"


def read(tmp_path, text, name="q.xml"):
    path = tmp_path / name
    path.write_text(text)
    return [row for _, row in read_rows(path).rows]


def test_equal_elements_are_rows(tmp_path):
    text = f"<set>{PAIR.format('What is 1: 1?', '1')}{PAIR.format('Who?', 'Ann &amp; Bob')}</set>"
    assert read(tmp_path, text) == [
        {"question": "What is 1: 1?", "answer": "1"},
        {"question": "Who?", "answer": "Ann & Bob"},
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<a><b>x</b></a>", {"b": ["x"]}),
        ("<a><b i='1'>x</b><b i='2'/></a>", {"b": [{"i": "1", "text": "x"}, {"i": "2"}]}),
        ("<a><b><c>x</c><c>y</c></b></a>", {"b": [{"c": ["x", "y"]}]}),
        ("<a><b><c i='1'>x</c><c>y</c></b></a>", {"b": [{"c": [{"i": "1", "text": "x"}, "y"]}]}),
        ("<a><b><c i='1'/><c i='2'/></b></a>", {"b": [{"i": "1"}, {"i": "2"}]}),
        ("<a><b>Is it <i>so</i> now?</b></a>", {"b": ["Is it so now?"]}),
        ("<a xmlns='http://x'><b>x</b></a>", {"b": ["x"]}),
        ("<a>x</a>", "x"),
    ],
)
def test_an_element_is_a_text_or_an_object(text, value):
    assert read_xml(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!DOCTYPE a [<!ENTITY b 'ha'>]><a><q>&b;</q></a>", "declares a document type"),
        ("<a><q>1</a>", "is not XML (line 1, column 10)"),
        ("<a>" * 60 + "</a>" * 60, "is nested too deeply"),
        ("<testsuites><testsuite/></testsuites>", "`karat import junit` reads it"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, said):
    with pytest.raises(BadDataset) as bad:
        read(tmp_path, text)
    assert said in str(bad.value)
