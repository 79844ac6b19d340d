"""The output of `karat check --lint`: doubtful golden answers, as a table and as a file of
quarantined turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat import formats, plugins
from karat import kinds as datasets
from karat.analysis.numbers import from_fields
from karat.cli.output import aligned
from karat.cli.values import settings_of
from karat.documents.hub import shown
from karat.errors import BadExperiment, BadOption
from karat.formats import OUTPUT_FORMAT
from karat.kinds import Doubted
from karat.records import JsonObject

if TYPE_CHECKING:
    from karat.cli.options import Linting

_SHOWN = 50  # turns or samples; --json and --quarantine have all
_WIDEST = 76  # columns of a reason
_LONGEST_ID = 48  # columns


class Lint(msgspec.Struct, frozen=True, kw_only=True):
    """`karat check --lint --json`."""

    format: int = OUTPUT_FORMAT
    file: str
    kind: str
    sha256: str
    samples: int
    turns: int
    reasons: dict[str, int]  # reason → how many
    meanings: dict[str, str]  # reason → its meaning
    doubted: tuple[Doubted, ...]
    faults: tuple[str, ...]  # why a run would refuse the file

    def __str__(self) -> str:
        kind = datasets.of(self.kind)
        size = formats.plural(self.samples, kind.unit if kind.by_turn else "sample")
        if kind.by_turn:
            size += f", {formats.plural(self.turns, 'turn')}"
        lines = [f"{formats.clean(self.file)}: {size}; nothing contradicts itself"]
        if self.doubted:
            doubted = formats.plural(len(self.doubted), kind.doubted)
            lines = [f"{formats.clean(self.file)}: {size}; {doubted} doubtful", ""]
            reasons = [
                ("", reason, formats.count(number), self.meanings.get(reason, ""))
                for reason, number in self.reasons.items()
            ]
            rows = []
            for doubt in self.doubted[:_SHOWN]:
                for reason in doubt.reasons:
                    if doubt.turn is None:
                        place = doubt.id
                    else:
                        place = f"{doubt.id} turn {doubt.turn}"

                    rows.append(
                        (
                            "",
                            formats.excerpt(place, _LONGEST_ID),
                            reason,
                            _evidence(doubt.evidence.get(reason)),
                        )
                    )

            lines += [*aligned(reasons, right={2}), "", *aligned(rows)]
            more = len(self.doubted) - _SHOWN
            if more > 0:
                lines += [
                    f"  … and {formats.count(more)} more; --json or --quarantine FILE has all"
                ]
        elif self.faults:
            lines = [
                f"{formats.clean(self.file)}: {size} could be checked; a run would refuse the file"
            ]

        return "\n".join(lines) + "\n"


def lint(asked: Linting) -> Lint:
    """Checks a dataset.

    Raises BadDataset if nothing can be read, BadOption and BadExperiment for bad flags.
    """
    kind = asked.kind or datasets.kind_of(asked.dataset)
    plugin = plugins.find("kinds", kind, allow_code=False)
    if not hasattr(plugin, "lint"):
        raise BadOption("--kind", f"datasets of kind '{kind}' cannot be linted")
    options = dataset_options(plugin, asked.settings)
    result = plugins.build(plugin, options, folder=Path.cwd()).lint(asked.dataset)
    return from_fields(
        Lint,
        result,
        file=shown(asked.dataset),
        kind=kind,
        reasons=dict(
            Counter(reason for doubt in result.doubted for reason in doubt.reasons).most_common()
        ),
        faults=tuple(str(fault) for fault in result.faults),
    )


def write_quarantine(report: Lint, path: Path) -> str:
    """Writes the file, and returns a message about it.

    Raises BadOption for datasets that cannot use it.
    """
    text = datasets.of(report.kind).quarantine_text(report.doubted)
    if text is None:
        raise BadOption(
            "--quarantine",
            f"a dataset of kind {report.kind} has no key `quarantine` for such a file",
        )

    path.write_text(text, encoding="utf-8", newline="")
    return f"wrote {path}: name it in the experiment as `dataset.quarantine`"


def dataset_options(plugin: plugins.Plugin, settings: tuple[str, ...]) -> JsonObject:
    """The options that `--set` gives. Raises BadOption and BadExperiment."""
    given = {key.removeprefix("dataset."): value for key, value in settings_of(settings).items()}
    checked, faults = plugins.check_options(plugin, given, place="--set")
    if faults:
        raise BadExperiment("--set", faults)
    return checked


def _evidence(evidence: object) -> str:
    """Evidence on one line."""
    if not isinstance(evidence, Mapping):
        return ""
    operands = evidence.get("operands")
    if isinstance(operands, list):
        named = []
        for operand in operands:
            text = str(operand.get("operand"))
            if "value" in operand:
                cell = f"'{operand['row']}', '{operand['column']}'"
                text += f", but {formats.raw(operand['value'])} in {cell}"
            named.append(text)

        return formats.excerpt("; ".join(named), _WIDEST)
    parts = (
        f"{key} {formats.raw(value)}" if value is not None else key
        for key, value in evidence.items()
    )
    return formats.excerpt(", ".join(parts), _WIDEST)
