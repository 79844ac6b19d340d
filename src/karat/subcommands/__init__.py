"""Parts of commands, a folder each: `karat runs merge` of a group, `karat run --rehearse` of
another command.
"""
