"""One file per command, named after it; `command` in it is the click command."""
