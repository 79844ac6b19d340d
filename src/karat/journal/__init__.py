"""The journal: what happened in a run, one event per line, on disk before anything depends on it.

`Journal` writes (one process at a time, on its own thread). `RunFolder` reads; it
never repairs, and never runs code that a folder names.
"""

from karat.journal.codec import (
    Codec,
    Gap,
    LineDamaged,
    checked_lines,
    checksum_fault,
    damaged,
    with_checksum,
)
from karat.journal.events import (
    CHECKSUMS_SINCE,
    FORMAT_VERSION,
    FORMAT_WITHOUT_STOP,
    KEPT,
    MISSED_GATE,
    NO_PLAN,
    Attempt,
    Choice,
    DatasetInfo,
    Decided,
    End,
    Event,
    Head,
    Horizon,
    KeptFile,
    Merged,
    PlanInfo,
    ReplyEvent,
    Resume,
    RunInfo,
    ScorerInfo,
    ServerInfo,
)
from karat.journal.folder import (
    LARGEST_INFO,
    RUN_FILES,
    RunFolder,
    create_run,
    server_changes,
    slugged,
)
from karat.journal.labels import Label, Labels, add_label, labels_path, read_labels
from karat.journal.lock import RunLock
from karat.journal.verify import Damage, Verified, verify
from karat.journal.writer import Journal

__all__ = [
    "CHECKSUMS_SINCE",
    "FORMAT_VERSION",
    "FORMAT_WITHOUT_STOP",
    "KEPT",
    "LARGEST_INFO",
    "MISSED_GATE",
    "NO_PLAN",
    "RUN_FILES",
    "Attempt",
    "Choice",
    "Codec",
    "Damage",
    "DatasetInfo",
    "Decided",
    "End",
    "Event",
    "Gap",
    "Head",
    "Horizon",
    "Journal",
    "KeptFile",
    "Label",
    "Labels",
    "LineDamaged",
    "Merged",
    "PlanInfo",
    "ReplyEvent",
    "Resume",
    "RunFolder",
    "RunInfo",
    "RunLock",
    "ScorerInfo",
    "ServerInfo",
    "Verified",
    "add_label",
    "checked_lines",
    "checksum_fault",
    "create_run",
    "damaged",
    "labels_path",
    "read_labels",
    "server_changes",
    "slugged",
    "verify",
    "with_checksum",
]
