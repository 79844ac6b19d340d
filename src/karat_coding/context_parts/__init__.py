"""What the core finds here of an agent's context: workspaces."""
