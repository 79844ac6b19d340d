"""Moves changes/*.md under a heading in CHANGELOG.md: `changelog.py VERSION`."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed", "security": "Security"}


def fragments(folder: Path) -> dict[str, list[Path]]:
    """Fragments by kind. Exits with a list of misnamed or empty ones, if there are any."""
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    faults = []
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        match = re.fullmatch(r"[a-z0-9][a-z0-9-]*\.([a-z]+)\.md", path.name)
        if not match or match[1] not in KINDS:
            faults.append(f"changes/{path.name}: want <name-with-dashes>.<kind>.md, kind one of {', '.join(KINDS)}")
        elif not path.read_text(encoding="utf-8").strip():
            faults.append(f"changes/{path.name}: is empty")
        else:
            found[match[1]].append(path)
    if faults:
        sys.exit("\n".join(faults))
    return found


def section(version: str, date: str, found: dict[str, list[Path]]) -> str:
    """The new part of the changelog."""
    parts = [f"## {version} – {date}"]
    for kind, title in KINDS.items():
        if found[kind]:
            items = (" ".join(path.read_text(encoding="utf-8").split()) for path in found[kind])
            parts.append("\n".join([f"### {title}", *(f"* {item}" for item in items)]))
    return "\n\n".join(parts)


def gather(root: Path, version: str, date: str) -> str:
    """Writes the changelog, removes the fragments, returns what was added."""
    found = fragments(root / "changes")
    paths = [path for some in found.values() for path in some]
    if not paths:
        sys.exit("changes/ holds no fragment: nothing to release")
    log = root / "CHANGELOG.md"
    before, heading, after = log.read_text(encoding="utf-8").partition("\n## ")
    new = section(version, date, found)
    log.write_text(f"{before.rstrip()}\n\n{new}\n{heading}{after}", encoding="utf-8")
    for path in paths:
        path.unlink()
    return new


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+\w*", sys.argv[1]):
        sys.exit("want a version: make changelog VERSION=1.2.3")
    sys.stdout.write(gather(ROOT, sys.argv[1], datetime.now(UTC).date().isoformat()) + "\n")
