"""The command `karat view`."""
