"""One file a command; the file's name is the command's name, and its `command` the door."""
