"""An agent's context besides its prompt and servers: skills, plug-ins, instructions and a
workspace.
"""

from __future__ import annotations

from karat.context.parts import (
    FOLDER,
    RebuiltWorkspaces,
    TrialWorkspaces,
    Workspace,
    stored_differences,
    trial_workspaces,
)
from karat.context.snapshots import snapshots
from karat.context.trees import is_plain_name, leads_out, read_file, read_tree

__all__ = [
    "FOLDER",
    "RebuiltWorkspaces",
    "TrialWorkspaces",
    "Workspace",
    "is_plain_name",
    "leads_out",
    "read_file",
    "read_tree",
    "snapshots",
    "stored_differences",
    "trial_workspaces",
]
