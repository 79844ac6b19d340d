"""The command `karat import`."""
