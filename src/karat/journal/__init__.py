"""The journal: what happened, one event a line, on disk before anything builds on it.

`Journal` writes (one process at a time, from a thread of its own); `RunFolder` reads,
never repairs, and never runs code that a folder names.
"""

from karat.journal.codec import Codec, damaged
from karat.journal.events import (
    FORMAT_VERSION,
    Attempt,
    Choice,
    DatasetInfo,
    End,
    Event,
    Head,
    PlanInfo,
    ReplyEvent,
    Resume,
    RunInfo,
    ScorerInfo,
    ServerInfo,
    StudyCopy,
)
from karat.journal.folder import RunFolder, create_run, slugged
from karat.journal.labels import Label, Labels, add_label, labels_path, read_labels
from karat.journal.lock import RunLock
from karat.journal.scorings import Torn
from karat.journal.turns import MISSED_GATE, Conversation
from karat.journal.writer import Journal

__all__ = [
    "FORMAT_VERSION",
    "MISSED_GATE",
    "Attempt",
    "Choice",
    "Codec",
    "Conversation",
    "DatasetInfo",
    "End",
    "Event",
    "Head",
    "Journal",
    "Label",
    "Labels",
    "PlanInfo",
    "ReplyEvent",
    "Resume",
    "RunFolder",
    "RunInfo",
    "RunLock",
    "ScorerInfo",
    "ServerInfo",
    "StudyCopy",
    "Torn",
    "add_label",
    "create_run",
    "damaged",
    "labels_path",
    "read_labels",
    "slugged",
]
