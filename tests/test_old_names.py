"""Names that earlier guides documented still lead to what they named."""

import importlib
import operator

import pytest

import karat.charts
import karat.datasets
from karat.document import charts
from karat.kinds import sample_digest


@pytest.mark.needs_kind("study")
def test_functions_of_studies_are_found_in_karat_datasets():
    assert karat.datasets.read_study is importlib.import_module("karat.kinds.study.reading").read_study


@pytest.mark.needs_kind("study")
@pytest.mark.needs_kind("conversation")
def test_names_that_moved_to_a_kind_are_found_in_karat_datasets():
    assert karat.datasets.sample_digest is sample_digest
    every = [getattr(karat.datasets, name) for name in vars(karat.datasets)["_HOMES"]]
    assert all(map(callable, every))


def test_charts_are_found_in_karat_charts():
    assert karat.charts.png is charts.png


def test_a_name_that_is_gone_says_what_replaces_it():
    with pytest.raises(ImportError, match=r"svg\(chart\) draws a chart"):
        operator.attrgetter("themed")(karat.charts)


def test_a_name_that_was_never_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'studies'"):
        importlib.import_module("karat.datasets").__getattr__("studies")
