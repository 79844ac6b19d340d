"""Reads files that people write: YAML as trees of nodes with line numbers, and tables as rows."""
