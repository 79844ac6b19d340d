"""The output of `karat runs verify`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from karat import api, formats
from karat.formats import OUTPUT_FORMAT
from karat.journal import Verified, verify


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`karat runs verify --json`."""

    format: int = OUTPUT_FORMAT
    ok: bool
    runs: tuple[Verified, ...]

    def __str__(self) -> str:
        lines = []
        for run in self.runs:
            count = formats.plural(run.lines, "line")
            faults = formats.plural(len(run.damages), "fault")
            if run.ok:
                lines.append(f"{run.folder}: ok, {count}")
            else:
                lines.append(f"{run.folder}: {faults} in {count}")

            for damage in run.damages:
                if damage.line is None:
                    place = damage.file
                else:
                    place = f"{damage.file}, line {damage.line}"

                lines += [f"  {place}: {damage.reason}", f"    {damage.remedy}"]

            if run.deletion is not None:
                lines.append(f"  to delete the damaged lines and keep a copy: {run.deletion}")
            lines += [f"  {note}" for note in run.notes]
            if run.unprotected:
                old = f"{formats.plural(run.unprotected, 'line')} from an older karat"
                lines.append(f"  {old} without a checksum could only be parsed")

        return formats.clean("\n".join(lines))


def check(names: Iterable[str], results: Path) -> Checked:
    """Raises BadRun if a name is not a run."""
    runs = tuple(verify(folder) for name in names for folder in api.folders(name, results=results))
    return Checked(ok=all(run.ok for run in runs), runs=runs)
