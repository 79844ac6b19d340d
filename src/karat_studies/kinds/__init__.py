"""Kinds of datasets, one folder each."""
