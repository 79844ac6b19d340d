"""The question that a dataset's columns leave open, asked on a terminal; the choice is written into
the experiment file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click

from karat.cli.ending import Exit
from karat.documents.nodes import Node
from karat.documents.reader import parse
from karat.errors import BadDataset
from karat.files import open_regular, write_durably
from karat.formats import clean


def with_roles_asked(file: Path, act: Callable[[], Exit]) -> Exit:
    """The result of `act`; if it fails because columns can be read in several ways, asks which, on
    a terminal, writes the answer into the experiment file and acts again.

    Raises as `act`, without a terminal or an answer.
    """
    try:
        return act()
    except BadDataset as error:
        if not error.readings or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise

        # The reading that the user chooses; None: none of these
        click.echo(clean(f"{error.path}: {error.faults[0].message}"), err=True)
        none = len(error.readings) + 1
        click.echo(f"  {none}) none of these", err=True)
        number = click.prompt("which", type=click.IntRange(1, none), err=True)
        if number == none:
            chosen: str | None = None
        else:
            chosen = error.readings[number - 1]

        if chosen is None or not write_roles(file, chosen):
            raise
        click.echo(f"written into {file}: {chosen}", err=True)
        return act()


def write_roles(file: Path, roles: str) -> bool:
    """Writes `roles: {…}`, and perhaps further lines with settings, below `dataset` of an
    experiment file; the rest stays as it is.

    False, and nothing written, if the file does not say so plainly where its dataset is.
    """
    with open_regular(file) as opened:
        data = opened.read()
    text = data.decode("utf-8-sig", "surrogateescape")
    lines = text.splitlines(keepends=True)
    root = parse(data).root
    dataset = None if root is None else root.get("dataset")
    if dataset is None or not dataset.line:
        return False
    changed = _with_roles(lines, dataset, roles)
    if changed is None:
        return False
    written = "".join(changed).encode("utf-8", "surrogateescape")
    again = parse(written).root
    if again is None or again.get("dataset", "roles") is None:
        return False
    mode = file.stat().st_mode
    write_durably(file, [written])
    file.chmod(mode)
    return True


def _with_roles(lines: list[str], dataset: Node, roles: str) -> list[str] | None:
    """The file's lines with the roles; None: the dataset is written in an unusual way."""
    assert dataset.line is not None
    place = dataset.line - 1
    line = lines[place]
    in_one_line = roles.replace("\n", ", ")
    if isinstance(dataset.value, str):
        plain = re.fullmatch(r"(\s*dataset\s*:\s*)(\S+)(\s*)", line)
        if plain is None:
            return None
        lines[place] = f"{plain[1]}{{path: {plain[2]}, {in_one_line}}}{plain[3]}"
        return lines

    flow = re.fullmatch(r"(\s*dataset\s*:\s*\{.*)(\}\s*(?:#.*)?)", line, re.DOTALL)
    if flow is not None:
        lines[place] = f"{flow[1]}, {in_one_line}{flow[2]}"
        return lines

    path = dataset.get("path")
    if path is None or not path.line or not path.column:
        return None
    margin = " " * (path.column - 1)
    lines[path.line : path.line] = [f"{margin}{setting}\n" for setting in roles.split("\n")]
    return lines
