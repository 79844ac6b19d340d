"""Copies of the files that conditions name, made once per run, so that edits during a run do not
reach agents.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from karat.context.trees import copy_tree, read_file, read_tree
from karat.errors import BadExperiment, Fault
from karat.files import temporary_folder
from karat.records import Condition, Context, ContextPart


@contextmanager
def snapshots(conditions: Iterable[Condition]) -> Iterator[tuple[Condition, ...]]:
    """The conditions with paths of copies in their contexts. The copies exist during the block.

    Raises BadExperiment if something has changed since the experiment was read, or can no longer be
    read.
    """
    conditions = tuple(conditions)
    if not any(condition.context.parts for condition in conditions):
        yield conditions
        return

    with temporary_folder("context") as folder:
        copies: dict[str, ContextPart] = {}
        yield tuple(_copied(condition, folder, copies) for condition in conditions)


def _copied(condition: Condition, folder: Path, copies: dict[str, ContextPart]) -> Condition:
    context = condition.context

    def copy(part: ContextPart) -> ContextPart:
        if part.digest not in copies:
            target = folder / f"{len(copies)}"
            try:
                # Copies one folder or file, if it is the one that the experiment was read with
                target.mkdir()
                to = target / part.path.name
                if part.path.is_dir():
                    copy_tree(read_tree(part.path), part.path, to)
                    digest = read_tree(to).digest
                else:
                    shutil.copyfile(part.path, to)
                    digest = read_file(to)

                if digest != part.digest:
                    raise ValueError("has changed since the experiment was read; start again")
            except (OSError, ValueError) as error:
                message = f"'{part.path}' {getattr(error, 'strerror', None) or error}"
                place = f"conditions.{condition.name}"
                raise BadExperiment("experiment", [Fault(place=place, message=message)]) from error

            copies[part.digest] = msgspec.structs.replace(part, path=target / part.path.name)

        return msgspec.structs.replace(copies[part.digest], name=part.name)

    if context.instructions is not None:
        instructions = copy(context.instructions)
    else:
        instructions = None

    if context.workspace is not None:
        workspace = copy(context.workspace)
    else:
        workspace = None

    copied = Context(
        skills=tuple(map(copy, context.skills)),
        plugins=tuple(map(copy, context.plugins)),
        instructions=instructions,
        workspace=workspace,
        tools=context.tools,
    )
    return msgspec.structs.replace(condition, context=copied)
