"""What the core finds here of files that are no run folders."""
