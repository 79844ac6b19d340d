"""The scorers of a workspace, one file each."""
