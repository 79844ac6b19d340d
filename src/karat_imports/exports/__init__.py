"""The formats of other tools that `karat report --to` writes, one file each."""
