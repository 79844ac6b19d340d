"""Parts of commands, a folder each: `karat runs list` of a group, `karat run --rehearse` of
another command.
"""
