"""A study in other names and amounts: what `dataset.relabel` makes of its arms."""

from __future__ import annotations

from collections.abc import Mapping

from karat.kinds.study.format import Answered, Arm, Relabelled, Task

__all__ = ["WORDING", "changes", "relabelled"]

WORDING = "relabelled"
"""Of the materials that are shown: `gain.relabelled.md` for `gain.md`, where there is one."""


def changes(arm: Arm) -> bool:
    """Whether the arm, or a task of it, has other amounts."""
    return arm.relabel is not None or any(task.relabel is not None for task in arm.tasks or ())


def relabelled(arm: Arm) -> Arm:
    """The arm with its other values and fields; an answer of another scale is divided before it is counted."""
    own = arm.relabel or Relabelled()
    tasks = None if arm.tasks is None else [_task(task, own.fields) for task in arm.tasks]
    rounds = arm.rounds
    if rounds is not None:
        rounds = rounds.model_copy(update={"fields": _fields(rounds.fields, own.fields)})
    return arm.model_copy(
        update={
            "values": {**arm.values, **own.values},
            "fields": _fields(arm.fields, own.fields),
            "tasks": tasks,
            "rounds": rounds,
        }
    )


def _task(task: Task, of_arm: Mapping[str, Answered]) -> Task:
    own = task.relabel or Relabelled()
    fields = _fields(task.fields, {**of_arm, **own.fields})
    return task.model_copy(update={"values": {**task.values, **own.values}, "fields": fields})


def _fields(fields: Mapping[str, Answered] | None, others: Mapping[str, Answered]) -> dict[str, Answered] | None:
    return None if fields is None else {name: others.get(name, one) for name, one in fields.items()}
