"""An agent's context besides its prompt and servers: skills, plug-ins, instructions and a
workspace.
"""

from __future__ import annotations

from karat.context.changes import put, read_stored, remove, why_left_out, why_mostly_left_out
from karat.context.run_workspaces import RebuiltWorkspaces, TrialWorkspaces, trial_workspaces
from karat.context.snapshots import snapshots
from karat.context.trees import is_plain_name, leads_out, read_file, read_tree
from karat.context.workspace import Workspace

__all__ = [
    "RebuiltWorkspaces",
    "TrialWorkspaces",
    "Workspace",
    "is_plain_name",
    "leads_out",
    "put",
    "read_file",
    "read_stored",
    "read_tree",
    "remove",
    "snapshots",
    "trial_workspaces",
    "why_left_out",
    "why_mostly_left_out",
]
