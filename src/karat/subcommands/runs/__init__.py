"""The commands of `karat runs`."""
