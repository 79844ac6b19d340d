"""Columns that say who took part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

__all__ = ["Participants"]


class Participants:
    """The role `participant`, and what groups of them are called."""

    names: ClassVar[Mapping[str, str]] = {
        "participant": "persona personaname participant participantid subject subjectid userid",
        "condition": "studygroup",
    }
