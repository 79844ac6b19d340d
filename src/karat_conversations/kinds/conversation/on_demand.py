"""What a conversation needs besides being asked and scored, loaded when it is first used: most of
it takes NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.lazy import lazy

if TYPE_CHECKING:
    from karat_conversations.kinds.conversation.analysis.summary import conversation
    from karat_conversations.kinds.conversation.lint import lint
    from karat_conversations.kinds.conversation.recorded import RecordedTurns, TurnColumns
    from karat_conversations.kinds.conversation.sections import sections
    from karat_conversations.kinds.conversation.views import ConversationViews

__all__ = ["ConversationViews", "RecordedTurns", "TurnColumns", "conversation", "lint", "sections"]

__getattr__, __dir__ = lazy(
    __package__,
    {
        "analysis.summary": "conversation",
        "lint": "lint",
        "recorded": "RecordedTurns TurnColumns",
        "sections": "sections",
        "views": "ConversationViews",
    },
)
