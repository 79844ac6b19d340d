"""Columns that hold a conversation, or say which one a row is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

__all__ = ["Conversations"]


class Conversations:
    """The role `conversation`, and names of columns with messages."""

    names: ClassVar[Mapping[str, str]] = {
        "messages": "conversations conversation",
        "conversation": "conversationid convid dialogueid sessionid session threadid chatid "
        "dialogid",
    }
    before_id: ClassVar[Mapping[str, str]] = {
        "conversation": "conversation session dialogue thread chat conv"
    }
    identifying = ("conversation",)
    files_of_runs = "conversation conversations"
