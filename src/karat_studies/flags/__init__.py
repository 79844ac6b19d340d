"""Options of commands that human studies add, one file each."""
