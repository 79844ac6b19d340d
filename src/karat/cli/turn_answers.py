"""Files with one answer a turn: which column is what, and everything that is wrong with them, at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.output import Output
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.formats import count, plural
from karat.installation import shown_path

if TYPE_CHECKING:
    from karat.config import Experiment

__all__ = ["checked", "named"]

_MOST_NAMED = 50
"""Faults of one kind that are listed; all are counted."""

_OF_SAMPLES = {
    "id": "id_key",
    "answer": "answer_key",
    "condition": "condition_key",
    "repetition": "repetition_key",
}
"""What can be named in a file with one answer a sample → the agent's option."""


def named(pairs: Sequence[str], replay: type[Any], *, kind: str) -> dict[str, str]:
    """`--map TARGET=COLUMN` as options of the agent. Raises BadOption for targets that there are not."""
    own = {"conversation": (*replay.turn_columns, "first_turn"), "study": replay.participant_columns}
    known = own.get(kind, tuple(_OF_SAMPLES))
    found: dict[str, str] = {}
    for pair in pairs:
        target, equals, column = (part.strip() for part in pair.partition("="))
        if not equals:
            raise BadOption(f"--map {pair}", "want TARGET=COLUMN, e.g. --map answer=predicted_answer")
        if target not in known:
            elsewhere = kind != "conversation" and target in replay.turn_columns
            hint = " (it is for --kind conversation)" if elsewhere else did_you_mean(target, known, listing=False)
            raise BadOption("--map", f"nothing is called '{target}'{hint}; known are {', '.join(known)}")
        if target in found:
            raise BadOption("--map", f"'{target}' is there twice: '{found[target]}' and '{column}'")
        found[target] = column
    return found if kind in own else {_OF_SAMPLES[target]: column for target, column in found.items()}


def checked(held: Any, experiment: Experiment, *, strict: bool, output: Output) -> list[str]:
    """Tells what is wrong with the file: all of it at once, each kind counted. Returns it as sentences.

    Without `strict` the file is scored as far as it goes. Raises BadDataset with it.
    """
    names = [condition.name for condition in experiment.conditions]
    repetitions = experiment.execution.num_repetitions
    census = held.census(experiment.load_dataset(), conditions=names, repetitions=repetitions)
    if census is None:
        return []
    said = " ".join(f"{target}={column}" for target, column in census.columns.items())
    output.say(f"columns: {said} (change one with --map TARGET=COLUMN)")
    if not census.faults:
        return []
    listed = _listed(census)
    file = shown_path(Path(held.source["file"]))
    if strict or not census.used:
        hint = [Fault(place="file", message=census.hint)] if census.hint else []
        nothing = Fault(place="file", message="no row answers a turn of the dataset: nothing is scored")
        each = (fault for _, faults in listed for fault in faults)
        raise BadDataset(file, [*([] if census.used else [nothing]), *hint, *each])
    output.say(f"{file}: {plural(sum(census.counts.values()), 'fault')} in {count(census.rows)} rows")
    for line, faults in listed:
        output.say(f"  {line}", *(f"    {fault}" for fault in faults))
    output.say(*([f"  {census.hint}"] if census.hint else []))
    output.say("  The rest is scored; with --strict nothing would be.")
    return [f"the file of answers: {line}" for line in census.lines]


def _listed(census: Any) -> list[tuple[str, list[Fault]]]:
    """Each kind of fault: how many there are, and the first of them."""
    found = []
    for kind, line in zip(census.counts, census.lines, strict=True):
        faults = [Fault(place=one.place, message=one.message) for one in census.faults if one.kind == kind]
        more = len(faults) - _MOST_NAMED
        rest = [Fault(place="and", message=f"{more} more like these")] if more > 0 else []
        found.append((line, faults[:_MOST_NAMED] + rest))
    return found
