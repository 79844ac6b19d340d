"""What `karat lint` shows: the golden answers to be doubted, as a table and as a file of quarantined turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat import formats, plugins
from karat import kinds as datasets
from karat.cli.output import OUTPUT_FORMAT
from karat.cli.values import settings_of
from karat.errors import BadExperiment, BadOption
from karat.kinds import Doubted

if TYPE_CHECKING:
    from karat.cli.options import Linting

__all__ = ["Lint", "dataset_options", "lint", "write_quarantine"]

_SHOWN = 50  # turns or samples; --json and --quarantine have all
_WIDEST = 76  # columns of what shows a reason
_LONGEST_ID = 48  # columns
_DOUBTED = {"conversation": "turn", "study": "published number"}


class Lint(msgspec.Struct, frozen=True, kw_only=True):
    """`karat lint --json`."""

    format: int = OUTPUT_FORMAT
    file: str
    kind: str
    sha256: str
    samples: int
    turns: int
    reasons: dict[str, int]  # reason → of how many
    meanings: dict[str, str]  # reason → what it says
    doubted: tuple[Doubted, ...]
    faults: tuple[str, ...]  # for which a run would refuse the file

    def __str__(self) -> str:
        lines = [*self._head(), *self._reasons(), *self._rows()]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _head(self) -> list[str]:
        kind = datasets.of(self.kind)
        if kind.by_turn:
            what = f"{formats.plural(self.samples, kind.unit)}, {formats.plural(self.turns, 'turn')}"
        else:
            what = formats.plural(self.samples, "sample")
        if not self.doubted and self.faults:
            return [f"{formats.clean(self.file)}: {what} could be looked at; a run would refuse the file"]
        if not self.doubted:
            return [f"{formats.clean(self.file)}: {what}; nothing contradicts itself"]
        doubted = formats.plural(len(self.doubted), _DOUBTED.get(self.kind, "sample"))
        return [f"{formats.clean(self.file)}: {what}; {doubted} to be doubted"]

    def _reasons(self) -> list[str]:
        if not self.doubted:
            return []
        wide = max(len(reason) for reason in self.reasons)
        digits = max(len(formats.count(number)) for number in self.reasons.values())
        lines = [
            f"  {reason:<{wide}}  {formats.count(number):>{digits}}  {self.meanings.get(reason, '')}"
            for reason, number in self.reasons.items()
        ]
        return ["", *lines]

    def _rows(self) -> list[str]:
        if not self.doubted:
            return []
        rows = [
            (formats.excerpt(_place(found), _LONGEST_ID), reason, _told(found.evidence.get(reason)))
            for found in self.doubted[:_SHOWN]
            for reason in found.reasons
        ]
        first, second = (max(formats.width(row[column]) for row in rows) for column in (0, 1))
        lines = [
            f"  {place}{' ' * (first - formats.width(place))}  {reason:<{second}}  {told}"
            for place, reason, told in rows
        ]
        left = len(self.doubted) - _SHOWN
        more = [f"  … and {formats.count(left)} more; --json or --quarantine FILE has all"] if left > 0 else []
        return ["", *lines, *more]


def lint(asked: Linting) -> Lint:
    """Looks at a dataset. Raises BadDataset where nothing can be read, BadOption and BadExperiment for bad flags."""
    kind = asked.kind or datasets.kind_of(asked.dataset)
    plugin = plugins.find("kinds", kind, allow_code=False)
    if not hasattr(plugin, "lint"):
        raise BadOption("--kind", f"datasets of kind '{kind}' have no rules to be looked at by")
    options = dataset_options(plugin, asked.settings)
    found = plugins.build(plugin, options, folder=Path.cwd()).lint(asked.dataset)
    return Lint(
        file=str(asked.dataset),
        kind=kind,
        sha256=found.sha256,
        samples=found.samples,
        turns=found.turns,
        reasons=dict(Counter(reason for one in found.doubted for reason in one.reasons).most_common()),
        meanings=found.meanings,
        doubted=found.doubted,
        faults=tuple(str(fault) for fault in found.faults),
    )


def write_quarantine(found: Lint, path: Path) -> str:
    """Writes the file, and returns what to say of it. Raises BadOption for datasets that have no use for it."""
    if not datasets.of(found.kind).has_quarantine:
        raise BadOption("--quarantine", f"is for conversations; a run of {found.kind} datasets cannot name such a file")
    path.write_text(datasets.quarantine_text(found.doubted), encoding="utf-8", newline="")
    return f"wrote {path}: name it in the experiment as `dataset.quarantine`"


def dataset_options(plugin: type[Any], settings: tuple[str, ...]) -> dict[str, Any]:
    """The options that `--set` gives. Raises BadOption and BadExperiment."""
    given = {key.removeprefix("dataset."): value for key, value in settings_of(settings).items()}
    checked, faults = plugins.check_options(plugin, given, place="--set")
    if faults:
        raise BadExperiment("--set", faults)
    return checked


def _place(found: Doubted) -> str:
    return found.id if found.turn is None else f"{found.id} turn {found.turn}"


def _told(evidence: Any) -> str:
    """Evidence on one line."""
    if not isinstance(evidence, Mapping):
        return ""
    operands = evidence.get("operands")
    if isinstance(operands, list):
        return formats.excerpt("; ".join(_operand(one) for one in operands), _WIDEST)
    said = (f"{key} {formats.raw(value)}" if value is not None else key for key, value in evidence.items())
    return formats.excerpt(", ".join(said), _WIDEST)


def _operand(one: Mapping[str, Any]) -> str:
    if "value" not in one:
        return str(one.get("operand"))
    return f"{one['operand']}, but {formats.raw(one['value'])} in '{one['row']}', '{one['column']}'"
