"""The formats of other tools that `karat import` reads, one file each."""
