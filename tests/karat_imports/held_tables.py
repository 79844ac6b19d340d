"""Runs a command on a table of results that a user holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from click.testing import CliRunner

from karat.cli import cli

Row = Mapping[str, object]


def run(folder: Path, table: Sequence[Row], *options: str, command: str = "import csv") -> tuple[int, str]:
    path = folder / "held.json"
    path.write_text(json.dumps(table))
    to = "--results" if command == "score" else "--out"
    result = CliRunner().invoke(cli, [*command.split(), str(path), *options, to, str(folder / "runs")])
    error = "" if isinstance(result.exception, SystemExit | None) else str(result.exception)
    return result.exit_code, result.output + error
