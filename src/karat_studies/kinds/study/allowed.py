"""Whether a study may run its own code, its `reducer`, when a run is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

AllowCode = bool | Literal["changed"]
"""`changed`: also code that has changed since the run was made."""


def code_allowed(asked: Mapping[str, object]) -> AllowCode:
    """What the options `allow_code` (which may be "changed") and `allow_changed_code` permit."""
    if asked.get("allow_changed_code") or asked.get("allow_code") == "changed":
        return "changed"
    return bool(asked.get("allow_code"))
