"""Options of commands that conversations add, one file each."""
